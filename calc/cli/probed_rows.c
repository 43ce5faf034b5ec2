#include "calc/cli/probed_rows.h"

#include <string.h>

#include "calc/cli/probe_cells.h"
#include "calc/cli/store_rows.h"
#include "calc/fit/rows_cells.h"

/* Of the row in c what the probe knew, into its row. */
static enum err_code mark_row(struct arena *a, const struct rows_cells *header, const struct rows_cells *c,
                              const struct hw *hw, struct row *row, struct err *e)
{
    struct result r = result_unknown();
    r.cold = row->kernel.cold;
    r.summary.median_s = row->time_s;
    for (size_t i = 0; i < c->n; i++) {
        if (probe_cells_read(a, header->cell[i], c->cell[i], &r, e) == ERR_OK) continue;
        if (e && e->code == ERR_INPUT)
            return err_prepend(e, "%s: line %zu: %s: ", c->name, c->row_line, header->cell[i]);
        return e ? e->code : ERR_INPUT;
    }
    if (!*r.kernel || !store_is_probed(&r)) return ERR_OK;
    if (result_check_rates(&r, e) != ERR_OK)
        return e ? err_prepend(e, "%s: line %zu: ", c->name, c->row_line) : ERR_INPUT;
    row->probed = true;
    store_calibrate(&r, hw, row);
    return ERR_OK;
}

/* The rows of one file, which stand in the order of its lines. */
static enum err_code mark_file(struct arena *a, const char *path, const struct hw *hw, struct row *row, size_t n,
                               struct err *e)
{
    struct rows_cells *header = arena_alloc(a, sizeof *header), *c = arena_alloc(a, sizeof *c);
    size_t i = 0, at = 0;
    bool more = n > 0;
    if (!header || !c) return err_nomem(e);
    if (!more) return ERR_OK;
    TRY(rows_cells_open(a, path, c, e));
    TRY(rows_cells_next(c, &more, e));
    *header = *c;
    while (at < header->n && strcmp(header->cell[at], PROBE_CELLS_KERNEL) != 0) at++;
    if (at == header->n) return ERR_OK;
    while (more && i < n) {
        TRY(rows_cells_next(c, &more, e));
        if (!more || c->row_line != row[i].line || c->n != header->n) continue;
        TRY(mark_row(a, header, c, hw, &row[i++], e));
    }
    return ERR_OK;
}

enum err_code probed_rows_mark(struct arena *a, const struct hw *hw, struct rows *rows, bool *any, struct err *e)
{
    size_t first = 0;
    *any = false;
    if (!rows_of_host(hw)) return ERR_OK;
    for (size_t f = 0; f < rows->files_n; first += rows->files[f++].n)
        TRY(mark_file(a, rows->files[f].path, hw, rows->v + first, rows->files[f].n, e));
    for (size_t i = 0; i < rows->n; i++) {
        rows->v[i].imported = !rows->v[i].probed; /* nobody saw the ceilings of those */
        *any = *any || rows->v[i].probed;
    }
    return ERR_OK;
}
