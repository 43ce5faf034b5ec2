/* probe_import -- `ridge probe import`: rows that others measured, into the store. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/cli/commands.h"
#include "calc/cli/probe_verbs.h"
#include "calc/cli/this_cpu.h"
#include "calc/fit/rows_cells.h"
#include "calc/fit/rows_formats.h"

static int column_of(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return (int)i;
    return -1;
}

/* One checked row of the file as a result: numbers of its kind are the shape, further cells stay as they are. */
static enum err_code import_row(struct arena *a, const struct rows_cells *c, const char *const *names,
                                const struct row *row, const struct rows_format *f, struct result *r, struct err *e)
{
    static const char *const TIMES[] = {"time_s", "latency_us"};
    struct out *cells;
    bool any = false;
    TRY(out_memory(a, &cells, e));
    out_char(cells, '{');
    for (size_t i = 0; i < c->n; i++) {
        size_t j = 0;
        while (j < f->numbers_n && !rows_number_is(&f->numbers[j], names[i])) j++;
        if (j < f->numbers_n && !*c->cell[i]) continue; /* an expected value */
        if (j < f->numbers_n && r->shape.n < WIRE_ARGS_MAX) {
            const double v = strtod(c->cell[i], NULL);
            if (v != floor(v))
                return err_set(e, ERR_INPUT, "%s: line %zu: %s: wanted a whole number", c->name, c->row_line, names[i]);
            r->shape.arg[r->shape.n].name = names[i];
            r->shape.arg[r->shape.n++].value = (int64_t)v;
            continue;
        }
        if (strcmp(names[i], TIMES[0]) == 0 || strcmp(names[i], TIMES[1]) == 0 || strcmp(names[i], "dtype") == 0 ||
            strcmp(names[i], "device") == 0 || strcmp(names[i], "made") == 0 || strcmp(names[i], "spread_frac") == 0 ||
            strcmp(names[i], "samples") == 0 || !*c->cell[i])
            continue;
        if (any) out_char(cells, ',');
        any = true;
        wire_write_text(cells, names[i]);
        out_char(cells, ':');
        wire_write_text(cells, c->cell[i]);
    }
    out_char(cells, '}');
    r->cells = out_text(cells, NULL);
    r->dtype = row->dtype;
    r->variant = *row->kernel_name ? row->kernel_name : row->framework;
    r->cold = row->kernel.cold;
    r->summary.median_s = row->time_s;
    return r->cells ? ERR_OK : err_nomem(e);
}

static const struct rows_format *format_with(const char *const *names, size_t n)
{
    for (size_t i = 0; i < rows_formats_n; i++) {
        size_t j = 0;
        while (j < rows_formats[i].numbers_n &&
               (rows_formats[i].numbers[j].optional || column_of(names, n, rows_formats[i].numbers[j].column) >= 0))
            j++;
        if (j == rows_formats[i].numbers_n) return &rows_formats[i];
    }
    return NULL;
}

/* -- what is there already -- */

static int by_time(const void *x, const void *y)
{
    const double a = (*(const struct result *const *)x)->summary.median_s;
    const double b = (*(const struct result *const *)y)->summary.median_s;
    return (a > b) - (a < b);
}

static bool same_row(const struct result *x, const struct result *y)
{
    if (x->shape.n != y->shape.n || strcmp(x->row_kind, y->row_kind) != 0 || strcmp(x->dtype, y->dtype) != 0 ||
        strcmp(x->cells, y->cells) != 0)
        return false;
    for (size_t i = 0; i < x->shape.n; i++)
        if (strcmp(x->shape.arg[i].name, y->shape.arg[i].name) != 0 || x->shape.arg[i].value != y->shape.arg[i].value)
            return false;
    return true;
}

/* Imported results of one device, by time. */
struct known {
    const struct result **v;
    size_t n;
};

static enum err_code read_known(struct arena *a, struct store *s, const char *device, struct known *out, struct err *e)
{
    const struct store_filter f = {.device = device, .outcome = result_outcome_name(RESULT_IMPORTED)};
    struct result *r;
    TRY(store_read(a, s, &f, &r, &out->n, e));
    out->v = arena_array(a, out->n + 1, sizeof *out->v);
    if (!out->v) return err_nomem(e);
    for (size_t i = 0; i < out->n; i++) out->v[i] = &r[i];
    qsort(out->v, out->n, sizeof *out->v, by_time);
    return ERR_OK;
}

static bool is_known(const struct known *known, const struct result *r)
{
    size_t lo = 0, hi = known->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (known->v[mid]->summary.median_s < r->summary.median_s)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < known->n && !(known->v[lo]->summary.median_s > r->summary.median_s); lo++)
        if (same_row(known->v[lo], r)) return true;
    return false;
}

/* -- files -- */

struct imported {
    size_t added, again, numberless; /* again: the store had them; numberless: whose outcome is no number */
};

static enum err_code import_file(struct arena *a, const char *path, const struct result *like, struct store *s,
                                 struct imported *sum, struct err *e)
{
    static const struct rows_filter ALL = {.hw = NULL};
    struct rows rows = {.n = 0};
    struct rows_cells *c = arena_alloc(a, sizeof *c);
    struct known known;
    const char *names[ROWS_CELLS_COLUMNS_MAX];
    bool more;
    size_t n = 0;
    if (!c) return err_nomem(e);
    TRY(rows_read_file(a, path, &ALL, &rows, e)); /* all checks; it keeps every row that has a number */
    TRY(read_known(a, s, like->origin.device, &known, e));
    TRY(rows_cells_open(a, path, c, e));
    TRY(rows_cells_next(c, &more, e));
    const size_t names_n = c->n;
    for (size_t i = 0; i < names_n; i++) names[i] = c->cell[i];
    const struct rows_format *f = format_with(names, names_n);
    struct result *r = arena_array(a, rows.n + 1, sizeof *r);
    if (!r) return err_nomem(e);
    if (!f) return err_set(e, ERR_INPUT, "%s: columns of no kind of kernel", c->name);
    for (size_t i = 0; i < rows.n; i++) {
        do TRY(rows_cells_next(c, &more, e));
        while (more && c->row_line != rows.v[i].line);
        if (!more) break;
        r[n] = *like;
        r[n].row_kind = r[n].kernel = kernel_kind_name(rows.v[i].kernel.kind);
        TRY(import_row(a, c, names, &rows.v[i], f, &r[n], e));
        if (is_known(&known, &r[n]))
            sum->again++;
        else
            n++;
    }
    sum->numberless += rows.lines_n - rows.n;
    sum->added += n;
    return store_add_all(s, r, n, e);
}

/* The name of the device that --device means: of this-cpu that of the core. */
static enum err_code device_name(struct arena *a, const struct option_values *v, const char **out, struct err *e)
{
    struct this_cpu cpu;
    *out = option_get(v, "device");
    if (strcmp(*out, THIS_CPU) != 0) return ERR_OK;
    TRY(this_cpu_load(a, option_get(v, "store"), &cpu, e));
    *out = cpu.hw.name;
    return ERR_OK;
}

static enum err_code say(struct arena *a, const struct option_values *v, const struct imported *sum, struct err *e)
{
    struct out *o;
    TRY(out_open(a, option_get(v, "output"), &o, e));
    out_printf(o, "%zu row%s imported", sum->added, sum->added == 1 ? "" : "s");
    if (sum->again) out_printf(o, "; %zu %s there already", sum->again, sum->again == 1 ? "was" : "were");
    if (sum->numberless)
        out_printf(o, "; %zu %s no number, by %s outcome", sum->numberless, sum->numberless == 1 ? "has" : "have",
                   sum->numberless == 1 ? "its" : "their");
    out_str(o, ".\n");
    return out_commit(o, e);
}

enum err_code probe_import(struct arena *a, const struct option_values *v, const char *command, struct err *e)
{
    struct store *s;
    struct imported sum = {.added = 0};
    const char *now, *device;
    const double nan = (double)NAN;
    const struct result_ceilings none = {nan, nan, nan};
    if (!option_given(v, "device"))
        return err_set(e, ERR_USAGE, "probe import: --device NAME says what the rows were measured on");
    TRY(device_name(a, v, &device, e));
    TRY(run_now(a, &now, e));
    struct result like = {.origin = {device, "{}", commands_tool(), command, now},
                          .made = now,
                          .unit = "",
                          .cold = false,
                          .outcome = RESULT_IMPORTED,
                          .reason = "",
                          .ceiling = "",
                          .stop = SAMPLE_GOING,
                          .error_frac = nan,
                          .tolerance_frac = nan,
                          .flops = nan,
                          .vector_flops = nan,
                          .read_bytes = nan,
                          .written_bytes = nan,
                          .footprint_bytes = nan,
                          .dram_read_bytes = nan,
                          .dram_write_bytes = nan,
                          .dram_reason = "",
                          .before = none,
                          .after = none,
                          .summary = sample_summarise(NULL, 0, NULL)};
    TRY(probe_store_open(a, v, true, &s, e));
    for (size_t i = 0; i < v->operands_n; i++) TRY(import_file(a, v->operands[i], &like, s, &sum, e));
    return say(a, v, &sum, e);
}
