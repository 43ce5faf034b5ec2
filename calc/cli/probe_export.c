/* probe_export -- `ridge probe export`: which results are rows of a file, and what counts before which. Ceilings of the
 * devices stand behind the rows. The store is read twice, for the columns and for the cells, and never held. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/cli/commands.h"
#include "calc/cli/probe_sheet.h"
#include "calc/cli/probe_sink.h"
#include "calc/cli/probe_verbs.h"
#include "calc/cli/store_rows.h"
#include "calc/fit/rows_formats.h"

struct exporting {
    struct arena *arena;
    struct store *store;
    struct store_filter filter;
    bool all_devices, ceilings; /* ceilings: of any */
    const char **devices;       /* of the rows */
    size_t devices_n;
    int64_t *precedences;           /* that there are, sorted */
    size_t precedences_n, found, n; /* found: results, n of which are rows and ceilings */
    struct sheet_plan *plan;
    struct sheet sheet;
    struct probe_sink sink;
};

typedef enum err_code exporting_take(struct exporting *x, struct arena *a, const struct result *r, struct err *e);

/* Room for one more of n elements that double; NULL no memory. */
static void *grown(struct arena *a, void *v, size_t n, size_t size)
{
    if (n && (n & (n - 1))) return v;
    void *more = arena_array(a, n ? 2 * n : 1, size);
    if (more && n) memcpy(more, v, n * size);
    return more;
}

static bool is_of_rows(const struct exporting *x, const char *device)
{
    size_t i = 0;
    while (i < x->devices_n && strcmp(x->devices[i], device) != 0) i++;
    return i < x->devices_n;
}

static bool is_row(const struct result *r) { return !isnan(result_time_s(r)) && *r->row_kind && store_row_format(r); }

/* Ceilings are of the devices of the rows, or of all. */
static bool is_ceiling(const struct exporting *x, const struct result *r)
{
    return sheet_is_ceiling(r) && store_is_probed(r) && !isnan(result_time_s(r)) &&
           (x->all_devices || is_of_rows(x, r->origin.device));
}

static enum err_code each_of(struct exporting *x, const struct store_filter *f, bool ceilings, exporting_take *take,
                             struct err *e)
{
    struct store_reading *c;
    enum err_code code = ERR_OK;
    TRY(store_each(x->arena, x->store, f, &c, e));
    for (bool more = true; more && code == ERR_OK;) {
        struct arena *own = x->sink.kept ? x->arena : arena_open(); /* of one result */
        struct result r;
        if (!own) return err_nomem(e);
        code = store_next(c, own, &r, &more, e);
        x->found += code == ERR_OK && more && !ceilings;
        if (code == ERR_OK && more && (ceilings ? is_ceiling(x, &r) : is_row(&r))) code = take(x, own, &r, e);
        if (own != x->arena) arena_close(own);
    }
    store_end(c);
    return code;
}

/* The rows, and the ceilings behind them where there are rows. */
static enum err_code each(struct exporting *x, exporting_take *take, struct err *e)
{
    static const struct store_filter CEILINGS = {.ceilings = true, .samples = true};
    TRY(each_of(x, &x->filter, false, take, e));
    return x->ceilings && x->n ? each_of(x, &CEILINGS, true, take, e) : ERR_OK;
}

static size_t precedence_at(const struct exporting *x, int64_t v)
{
    size_t lo = 0, hi = x->precedences_n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (x->precedences[mid] < v)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static enum err_code see(struct exporting *x, struct arena *a, const struct result *r, struct err *e)
{
    const int64_t precedence = store_precedence(a, r);
    const size_t at = precedence_at(x, precedence);
    x->n++;
    if (at == x->precedences_n || x->precedences[at] != precedence) {
        x->precedences = grown(x->arena, x->precedences, x->precedences_n, sizeof *x->precedences);
        if (!x->precedences) return err_nomem(e);
        memmove(x->precedences + at + 1, x->precedences + at, (x->precedences_n - at) * sizeof *x->precedences);
        x->precedences[at] = precedence;
        x->precedences_n++;
    }
    if (!is_of_rows(x, r->origin.device)) {
        x->devices = grown(x->arena, x->devices, x->devices_n, sizeof *x->devices);
        if (!x->devices) return err_nomem(e);
        const char *device = arena_strndup(x->arena, r->origin.device, strlen(r->origin.device));
        if (!(x->devices[x->devices_n++] = device)) return err_nomem(e);
    }
    return sheet_see(x->plan, a, r, e);
}

/* Of a result how many kinds of results count before it, of those that there are: what a store that imports them
 * keeps, whatever there was between. */
static enum err_code write(struct exporting *x, struct arena *a, const struct result *r, struct err *e)
{
    union sheet_cell *row = arena_array(a, x->sheet.n, sizeof *row);
    if (!row) return err_nomem(e);
    TRY(sheet_fill(a, r, (int64_t)precedence_at(x, store_precedence(a, r)), &x->sheet, row, e));
    return probe_sink_row(&x->sink, row, e);
}

enum err_code probe_export(struct arena *a, const struct option_values *v, const char *command, struct err *e)
{
    struct exporting *x = arena_alloc(a, sizeof *x);
    (void)command;
    if (!x) return err_nomem(e);
    x->arena = a;
    struct store_filter *f = &x->filter;
    TRY(probe_read_filter(v, f, e));
    if (f->device) TRY(probe_device_name(a, v, &f->device, e));
    x->all_devices = !f->kernel && !f->row_kind && !f->device && !f->outcome && !f->last;
    f->samples = true;
    /* without the column of kinds nothing would tell ceilings from rows */
    x->ceilings = !option_given(v, "columns") || wire_list_has(option_get(v, "columns"), ROWS_KIND_COLUMN);
    TRY(probe_store_open(a, v, false, &x->store, e));
    TRY(store_hold(x->store, e));
    TRY(sheet_plan_open(a, &x->plan, e));
    if (f->kernel) TRY(probe_check_found(a, x->store, f, 1, e));
    TRY(each(x, see, e));
    if (f->kernel && !x->found) TRY(probe_check_found(a, x->store, f, 0, e));
    if (!x->n) TRY(store_senseless(x->store, e));
    if (!x->n) return err_set(e, ERR_NO, "no results with a number that are of a kind of rows");
    TRY(sheet_columns(x->plan, x->precedences_n > 1, &x->sheet, e));
    const struct table t = {.columns = x->sheet.columns,
                            .n_columns = x->sheet.n,
                            .stride_bytes = x->sheet.n * sizeof(union sheet_cell),
                            .schema = "ridge.probe.rows.1",
                            .tool = commands_tool()};
    TRY(probe_sink_open(a, v, &t, TABLE_CSV, &x->sink, e));
    TRY(each(x, write, e));
    TRY(probe_sink_end(&x->sink, e));
    return store_senseless(x->store, e);
}
