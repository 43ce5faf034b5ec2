/* probe_export -- `ridge probe export`: which results are rows of a file, and what counts before which. Ceilings of the
 * devices stand behind the rows. */
#include <math.h>
#include <string.h>

#include "calc/cli/commands.h"
#include "calc/cli/probe_sheet.h"
#include "calc/cli/probe_verbs.h"
#include "calc/cli/store_rows.h"
#include "calc/fit/rows_formats.h"

/* Ceilings behind n rows, each that has a number: of their devices, or of all. */
static enum err_code add_ceilings(struct arena *a, struct store *s, bool all_devices, struct result **r, size_t *n,
                                  struct err *e)
{
    const struct store_filter f = {.ceilings = true, .samples = true};
    const size_t rows_n = *n;
    struct result *c;
    size_t c_n;
    TRY(store_read(a, s, &f, &c, &c_n, e));
    struct result *all = arena_array(a, rows_n + c_n + 1, sizeof *all);
    if (!all) return err_nomem(e);
    memcpy(all, *r, rows_n * sizeof *all);
    for (size_t i = 0; i < c_n; i++) {
        size_t j = all_devices ? rows_n : 0;
        while (j < rows_n && strcmp(all[j].origin.device, c[i].origin.device) != 0) j++;
        if ((all_devices || j < rows_n) && sheet_is_ceiling(&c[i]) && store_is_probed(&c[i]) &&
            !isnan(result_time_s(&c[i])))
            all[(*n)++] = c[i];
    }
    *r = all;
    return ERR_OK;
}

/* Of each result how many kinds of results count before it, of those that there are: what a store that imports them
 * keeps, whatever there was between. */
static enum err_code rank(struct arena *a, const struct result *r, size_t n, int64_t **out, struct err *e)
{
    int64_t *at = arena_array(a, n + 1, sizeof *at), *ranks = arena_array(a, n + 1, sizeof *ranks);
    if (!at || !ranks) return err_nomem(e);
    for (size_t i = 0; i < n; i++) at[i] = store_precedence(a, &r[i]);
    int64_t before = -1;
    for (int64_t count = 0;; count++) {
        int64_t next = INT64_MAX;
        for (size_t i = 0; i < n; i++)
            if (at[i] > before && at[i] < next) next = at[i];
        if (next == INT64_MAX) break;
        for (size_t i = 0; i < n; i++)
            if (at[i] == next) ranks[i] = count;
        before = next;
    }
    *out = ranks;
    return ERR_OK;
}

enum err_code probe_export(struct arena *a, const struct option_values *v, const char *command, struct err *e)
{
    struct store *s;
    struct store_filter f;
    struct result *r;
    struct sheet *sheet = arena_alloc(a, sizeof *sheet);
    size_t n, kept = 0;
    int64_t *ranks = NULL;
    (void)command;
    if (!sheet) return err_nomem(e);
    TRY(probe_read_filter(v, &f, e));
    if (f.device) TRY(probe_device_name(a, v, &f.device, e));
    const bool whole = !f.kernel && !f.row_kind && !f.device && !f.outcome && !f.last;
    f.samples = true;
    TRY(probe_store_open(a, v, false, &s, e));
    TRY(store_read(a, s, &f, &r, &n, e));
    if (f.kernel) TRY(probe_check_found(a, s, &f, n, e));
    for (size_t i = 0; i < n; i++)
        if (!isnan(result_time_s(&r[i])) && *r[i].row_kind && store_row_format(&r[i])) r[kept++] = r[i];
    if (!kept) TRY(store_senseless(s, e));
    if (!kept) return err_set(e, ERR_NO, "no results with a number that are of a kind of rows");
    /* without the column of kinds nothing would tell ceilings from rows */
    if (!option_given(v, "columns") || wire_list_has(option_get(v, "columns"), ROWS_KIND_COLUMN))
        TRY(add_ceilings(a, s, whole, &r, &kept, e));
    TRY(rank(a, r, kept, &ranks, e));
    TRY(sheet_plan(a, r, ranks, kept, sheet, e));
    union sheet_cell *rows = arena_array(a, kept, sheet->n * sizeof *rows);
    if (!rows) return err_nomem(e);
    for (size_t i = 0; i < kept; i++) TRY(sheet_fill(a, &r[i], ranks[i], sheet, rows + i * sheet->n, e));
    const struct table t = {.columns = sheet->columns,
                            .n_columns = sheet->n,
                            .rows = rows,
                            .n_rows = kept,
                            .stride_bytes = sheet->n * sizeof *rows,
                            .schema = "ridge.probe.rows.1",
                            .tool = commands_tool()};
    TRY(probe_write_out(a, v, &t, TABLE_CSV, false, e));
    return store_senseless(s, e);
}
