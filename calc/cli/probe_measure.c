/* probe_measure -- `ridge probe list`, `run` and `ceilings`: what starts a worker. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calc/base/hold.h"
#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/model_shapes.h"
#include "calc/cli/plot.h"
#include "calc/cli/probe_rows.h"
#include "calc/cli/probe_verbs.h"
#include "calc/cli/progress.h"

enum { NOTES_MAX = 320, CEILINGS_MAX = RUN_UNITS_MAX + 2 + RUN_LEVELS + RUN_LAUNCHES_MAX };

/* A verb while it runs. */
struct work {
    struct arena *a;
    const struct option_values *v;
    struct run run;
    struct progress bar;
    const char *notes[NOTES_MAX];
    size_t notes_n;
    const char *store_path;
    size_t done, total;
};

static enum err_code note(struct work *w, const char *text, struct err *e)
{
    if (!text) return err_nomem(e);
    if (w->notes_n < NOTES_MAX) w->notes[w->notes_n++] = text;
    return ERR_OK;
}

/* -- options -- */

static enum err_code read_time(const struct option_values *v, const char *name, double lo, double hi, double *out,
                               struct err *e)
{
    const char *text = option_get(v, name);
    if (!text) return ERR_OK;
    if (units_parse_time(text, out, e) != ERR_OK) return e ? err_prepend(e, "--%s: ", name) : ERR_USAGE;
    if (*out >= lo && *out <= hi) return ERR_OK;
    return err_set(e, ERR_USAGE, "--%s: wanted %g to %g seconds", name, lo, hi);
}

static enum err_code read_count(const struct option_values *v, const char *name, int64_t lo, int64_t hi, int64_t *out,
                                struct err *e)
{
    if (units_parse_count(option_get(v, name), lo, hi, out, e) == ERR_OK) return ERR_OK;
    return e ? err_prepend(e, "--%s: ", name) : ERR_USAGE;
}

static enum err_code find_worker(struct arena *a, const struct option_values *v, const char **out, struct err *e)
{
    static const struct {
        const char *device, *program;
    } WORKERS[] = {{"cpu", "ridge-worker-cpu"}, {"cuda", "ridge-worker-cuda"}};
    const char *device = option_get(v, "device");
    if (option_get(v, "worker")) {
        *out = option_get(v, "worker");
        return ERR_OK;
    }
    for (size_t i = 0; i < sizeof WORKERS / sizeof WORKERS[0]; i++)
        if (strcmp(WORKERS[i].device, device) == 0) {
            TRY(session_worker_path(a, WORKERS[i].program, out, e));
            if (i == 0 || access(*out, X_OK) == 0) return ERR_OK;
            return err_set(e, ERR_DEVICE, "there is no %s beside this program: make builds it where there is nvcc",
                           WORKERS[i].program);
        }
    char clean[64];
    return err_set(e, ERR_USAGE, "--device: found \"%s\", wanted cpu or cuda",
                   text_clean(clean, sizeof clean, device, strlen(device)));
}

static enum err_code read_settings(struct work *w, struct err *e)
{
    struct run_settings *s = &w->run.set;
    s->deadline_s = option_given(w->v, "quick") ? 1 : 3;
    s->noise_frac = 0.005;
    TRY(read_time(w->v, "deadline", 1e-3, 1e4, &s->deadline_s, e));
    TRY(read_time(w->v, "ceilings", 1e-3, 1e2, &s->ceiling_s, e));
    TRY(read_time(w->v, "patience", 0.05, 1e5, &s->patience_s, e));
    TRY(read_count(w->v, "samples", SAMPLE_LEAST, SAMPLE_MAX / 4, &s->least, e));
    TRY(read_count(w->v, "seed", 0, INT64_MAX, &s->seed, e));
    return find_worker(w->a, w->v, &s->worker, e);
}

/* A store that cannot be had costs the keeping, not the measuring. */
static enum err_code open_store(struct work *w, struct err *e)
{
    static const struct store_access WRITE = {.write = true, .patience_s = 20};
    const char *path = option_get(w->v, "store");
    struct err why = {.code = ERR_OK};
    if (path && strcmp(path, "none") == 0) return note(w, "not stored (--store none).", e);
    enum err_code code = probe_store_path(w->a, w->v, &w->store_path, &why);
    if (code == ERR_OK) code = store_open(w->a, w->store_path, &WRITE, &w->run.store, &why);
    if (code == ERR_OK) return ERR_OK;
    w->run.store = NULL;
    if (code == ERR_NOMEM) return err_nomem(e);
    return note(w, arena_printf(w->a, "not stored: %s.", why.text), e);
}

static void show_phase(void *closure, const char *phase)
{
    struct work *w = closure;
    (void)phase;
    progress_show(&w->bar, w->done, w->total);
}

static enum err_code begin(struct work *w, const char *command, struct err *e)
{
    w->run.arena = w->a;
    w->run.progress = show_phase;
    w->run.closure = w;
    w->run.origin = (struct result_origin){.device = "", .identity = "{}", .tool = commands_tool(), .command = command};
    TRY(run_now(w->a, &w->run.origin.started, e));
    TRY(read_settings(w, e));
    TRY(run_open(&w->run, e));
    return *w->run.device.left_out ? note(w, arena_printf(w->a, "%s.", w->run.device.left_out), e) : ERR_OK;
}

/* What became of the results. */
static enum err_code say_stored(struct work *w, struct err *e)
{
    const struct run *r = &w->run;
    if (!r->store) return ERR_OK;
    char clean[200];
    (void)text_clean(clean, sizeof clean, w->store_path, strlen(w->store_path));
    TRY(note(w, arena_printf(w->a, "%zu result%s stored in %s.", r->stored, r->stored == 1 ? "" : "s", clean), e));
    if (!r->not_stored) return ERR_OK;
    return note(w, arena_printf(w->a, "%zu not stored: %s.", r->not_stored, r->store_err.text), e);
}

/* -- output -- */

static enum err_code write_table(struct work *w, const char *schema, const struct column *columns, size_t columns_n,
                                 const void *rows, size_t n, size_t stride, struct err *e)
{
    enum table_format format = TABLE_TEXT;
    struct out *o;
    const struct table all = {.columns = columns,
                              .n_columns = columns_n,
                              .rows = rows,
                              .n_rows = n,
                              .stride_bytes = stride,
                              .schema = schema,
                              .tool = commands_tool(),
                              .scenario_json = option_scenario_json(w->a, w->v),
                              .notes = w->notes,
                              .n_notes = w->notes_n};
    struct table t = all;
    if (!all.scenario_json) return err_nomem(e);
    if (option_get(w->v, "format")) TRY(table_format_parse(option_get(w->v, "format"), &format, e));
    if (option_get(w->v, "columns")) TRY(table_select(w->a, &all, option_get(w->v, "columns"), &t, e));
    TRY(out_open(w->a, option_get(w->v, "output"), &o, e));
    TRY(table_write(&t, format, o, e));
    return out_commit(o, e);
}

/* Whether a file can be made; what exists and is no regular file is left alone. */
static enum err_code check_file(struct work *w, const char *path, struct err *e)
{
    struct stat st;
    struct out *o;
    if (!path || (stat(path, &st) == 0 && !S_ISREG(st.st_mode))) return ERR_OK;
    TRY(out_open(w->a, path, &o, e));
    out_abandon(o);
    return ERR_OK;
}

/* Formats, columns and files that would be refused are refused before hours of measuring. */
static enum err_code check_output(struct work *w, const struct column *columns, size_t n, struct err *e)
{
    enum table_format format;
    const struct table all = {.columns = columns, .n_columns = n};
    struct table t;
    if (option_get(w->v, "format")) TRY(table_format_parse(option_get(w->v, "format"), &format, e));
    if (option_get(w->v, "columns")) TRY(table_select(w->a, &all, option_get(w->v, "columns"), &t, e));
    TRY(check_file(w, option_get(w->v, "output"), e));
    return option_get(w->v, "plot") ? plot_check("roofline", option_get(w->v, "plot"), e) : ERR_OK;
}

/* -- ceilings -- */

struct ceiling_row {
    const char *ceiling, *kernel, *variant, *dtype, *why;
    double flops_per_s, bytes_per_s, launch_s, ridge_flops_per_byte, spread_frac, footprint_bytes;
};

#define CEILING(field, kind, unit, heading, help)                                                                      \
    COLUMN_AT(struct ceiling_row, field, kind, unit, COLUMN_SHOWN, heading, help)

static const struct column CEILINGS[] = {
    CEILING(ceiling, COLUMN_STRING, UNITS_NONE, "ceiling", "what nothing on this machine exceeds"),
    CEILING(flops_per_s, COLUMN_REAL, UNITS_FLOPS_PER_S, "peak", "measured flops per second"),
    CEILING(bytes_per_s, COLUMN_REAL, UNITS_BYTES_PER_S, "bandwidth", "measured bytes per second"),
    CEILING(launch_s, COLUMN_REAL, UNITS_SECONDS, "start", "measured seconds until work that does nothing is done"),
    CEILING(ridge_flops_per_byte, COLUMN_REAL, UNITS_FLOPS_PER_BYTE, "ridge", "peak over bandwidth of reading memory"),
    CEILING(footprint_bytes, COLUMN_REAL, UNITS_BYTES, "footprint", "bytes that the measurement touches"),
    CEILING(kernel, COLUMN_STRING, UNITS_NONE, "kernel", "with what"),
    CEILING(variant, COLUMN_STRING, UNITS_NONE, "variant", "the best of its variants"),
    COLUMN_AT(struct ceiling_row, dtype, COLUMN_STRING, UNITS_NONE, 0, "dtype", "format"),
    CEILING(spread_frac, COLUMN_REAL, UNITS_FRAC, "spread", "relative spread of the samples"),
    COLUMN_AT(struct ceiling_row, why, COLUMN_STRING, UNITS_NONE, 0, "why", "why there is no number"),
};

static struct ceiling_row row_of(const char *name, const struct run_ceiling *c, bool flops)
{
    const double nan = (double)NAN;
    return (struct ceiling_row){.ceiling = name,
                                .kernel = c->kernel,
                                .variant = c->variant,
                                .dtype = c->dtype,
                                .why = c->why,
                                .flops_per_s = flops ? c->per_s : nan,
                                .bytes_per_s = flops ? nan : c->per_s,
                                .launch_s = nan,
                                .ridge_flops_per_byte = nan,
                                .spread_frac = c->kernel ? c->spread_frac : nan,
                                .footprint_bytes = c->kernel ? c->footprint_bytes : nan};
}

/* Rows of all ceilings; rows has room for CEILINGS_MAX. */
static size_t ceiling_rows(struct work *w, struct ceiling_row *rows)
{
    static const char *const LEVELS[RUN_LEVELS] = {"read L1", "read L2", "read last cache"};
    const struct run_ceilings *c = &w->run.ceilings;
    const double nan = (double)NAN;
    size_t n = 0;
    for (size_t i = 0; i < c->peaks_n; i++) {
        const char *name = arena_printf(w->a, "peak %s", c->peak[i].unit);
        rows[n] = row_of(name, &c->peak[i], true);
        rows[n++].ridge_flops_per_byte = c->peak[i].per_s / c->read.per_s;
    }
    rows[n++] = row_of("read memory", &c->read, false);
    rows[n++] = row_of("move memory", &c->moved, false);
    for (size_t i = 0; i < RUN_LEVELS; i++)
        if (w->run.device.cache_bytes[i] > 0 &&
            (i == 0 || w->run.device.cache_bytes[i] > w->run.device.cache_bytes[i - 1]))
            rows[n++] = row_of(LEVELS[i], &c->cache[i], false);
    for (size_t i = 0; i < c->launches_n; i++) {
        rows[n] = row_of(arena_printf(w->a, "start %s", c->launch[i].variant), &c->launch[i], false);
        rows[n].bytes_per_s = rows[n].footprint_bytes = nan;
        rows[n++].launch_s = 1 / c->launch[i].per_s;
    }
    return n;
}

static enum err_code ceilings_within(struct work *w, const char *command, struct err *e)
{
    struct ceiling_row rows[CEILINGS_MAX];
    size_t known = 0;
    TRY(check_output(w, CEILINGS, sizeof CEILINGS / sizeof CEILINGS[0], e));
    w->run.set.launches = true;
    TRY(begin(w, command, e));
    TRY(open_store(w, e));
    progress_start(&w->bar, "ceilings");
    w->total = 1;
    const enum err_code code = run_measure_ceilings(&w->run, e);
    progress_end(&w->bar);
    run_close(&w->run);
    TRY(code);
    const size_t n = ceiling_rows(w, rows);
    for (size_t i = 0; i < n; i++) {
        const bool has = !isnan(rows[i].flops_per_s) || !isnan(rows[i].bytes_per_s) || !isnan(rows[i].launch_s);
        known += has;
        if (!has && rows[i].why) TRY(note(w, arena_printf(w->a, "%s: %s.", rows[i].ceiling, rows[i].why), e));
    }
    TRY(note(w, arena_printf(w->a, "%s, one core.", w->run.device.name), e));
    if (w->run.stopped) TRY(note(w, "stopped by a signal.", e));
    TRY(say_stored(w, e));
    TRY(write_table(w, "ridge.probe.ceilings.1", CEILINGS, sizeof CEILINGS / sizeof CEILINGS[0], rows, n,
                    sizeof rows[0], e));
    return known || w->run.stopped ? ERR_OK
                                   : err_set(e, ERR_NO, "no ceiling could be measured: the machine was too noisy");
}

/* -- run -- */

static enum err_code say_ceilings(struct work *w, struct err *e)
{
    const struct run_ceilings *c = &w->run.ceilings;
    char peak[UNITS_TEXT_MAX], rate[UNITS_TEXT_MAX], ridge[UNITS_TEXT_MAX];
    for (size_t i = 0; i < c->peaks_n; i++) {
        if (isnan(c->peak[i].per_s)) continue;
        TRY(note(w,
                 arena_printf(w->a, "%s, one core: %s peak %s, memory %s, ridge %s flops/byte.", w->run.device.name,
                              c->peak[i].unit, units_format(peak, UNITS_FLOPS_PER_S, c->peak[i].per_s),
                              units_format(rate, UNITS_BYTES_PER_S, c->read.per_s),
                              units_format_plain(ridge, c->peak[i].per_s / c->read.per_s)),
                 e));
    }
    return ERR_OK;
}

/* Which ceiling a measured row lacks. */
static enum err_code say_unpredicted(struct work *w, const struct result *r, const struct probe_row *row, struct err *e)
{
    const bool peak = r->flops > 0 && isnan(row->peak_flops_per_s);
    return note(w,
                arena_printf(w->a, "%s %s %s %s %s: no prediction: the %s%s could not be measured around it.",
                             row->kernel, row->variant, row->dtype, row->shape, row->state,
                             peak ? "peak of " : "bandwidth", peak ? r->unit : ""),
                e);
}

/* Beside the bytes that a kernel must move those that memory moved, or once why they are not known. */
static enum err_code say_dram(struct work *w, const struct result *r, const struct probe_row *row, struct err *e)
{
    char read[UNITS_TEXT_MAX], written[UNITS_TEXT_MAX], counted[UNITS_TEXT_MAX];
    if (!isnan(row->dram_read_bytes))
        return note(w,
                    arena_printf(w->a, "%s %s %s %s %s: memory read %s and wrote %s, %.3f of the %s counted.",
                                 row->kernel, row->variant, row->dtype, row->shape, row->state,
                                 units_format(read, UNITS_BYTES, row->dram_read_bytes),
                                 units_format(written, UNITS_BYTES, row->dram_write_bytes), row->dram_ratio,
                                 units_format(counted, UNITS_BYTES, r->read_bytes + r->written_bytes)),
                    e);
    if (!r->dram_reason || !*r->dram_reason) return ERR_OK;
    const char *text = arena_printf(w->a, "bytes of memory are not known: %s.", r->dram_reason);
    for (size_t i = 0; text && i < w->notes_n; i++)
        if (strcmp(w->notes[i], text) == 0) return ERR_OK;
    return note(w, text, e);
}

static enum err_code keep_row(struct work *w, const struct result *r, struct probe_row *row, struct err *e)
{
    char measured[UNITS_TEXT_MAX];
    TRY(probe_row_fill(w->a, r, row, e));
    TRY(say_dram(w, r, row, e));
    const char *line =
        arena_printf(w->a, "%s %s %s %s %s: %s %s%.0f%s", row->kernel, row->variant, row->dtype, row->shape, row->state,
                     isnan(row->measured_s) ? row->outcome : units_format_time(measured, row->measured_s),
                     isnan(row->roofline_frac) ? "" : "(", isnan(row->roofline_frac) ? 0 : 100 * row->roofline_frac,
                     isnan(row->roofline_frac) ? "" : " % of the roofline)");
    if (!line) return err_nomem(e);
    progress_line(&w->bar, line);
    if (r->outcome == RESULT_MEASURED) return isnan(row->predicted_s) ? say_unpredicted(w, r, row, e) : ERR_OK;
    return note(w,
                arena_printf(w->a, "%s %s %s %s %s: %s: %s.", row->kernel, row->variant, row->dtype, row->shape,
                             row->state, row->outcome, r->reason),
                e);
}

/* All jobs; a hot result where the cold one says that its operands fit the last cache. */
static enum err_code run_jobs(struct work *w, const struct plan *plan, struct probe_row *rows, size_t *n, struct err *e)
{
    const char *state = option_get(w->v, "state");
    const bool cold = strcmp(state, "hot") != 0, hot = strcmp(state, "cold") != 0;
    for (w->done = 0; w->done < plan->n && !w->run.stopped; w->done++) {
        const struct plan_job *job = &plan->jobs[w->done];
        struct result r = {.outcome = RESULT_REFUSED};
        bool fits = true;
        progress_show(&w->bar, w->done, w->total);
        if (cold) {
            TRY(run_job(&w->run, job, true, &r, e));
            if (w->run.stopped) break;
            TRY(keep_row(w, &r, &rows[(*n)++], e));
            fits = (r.outcome == RESULT_MEASURED || r.outcome == RESULT_NOISY) &&
                   r.footprint_bytes <= w->run.device.cache_bytes[RUN_LEVELS - 1];
        }
        if (!hot || !fits) continue;
        TRY(run_job(&w->run, job, false, &r, e));
        if (w->run.stopped) break;
        TRY(keep_row(w, &r, &rows[(*n)++], e));
    }
    return ERR_OK;
}

static enum err_code run_within(struct work *w, const char *command, struct err *e)
{
    struct plan plan;
    struct plan_request q = {.kernels = option_get(w->v, "kernel"),
                             .variants = option_get(w->v, "variant"),
                             .dtypes = option_get(w->v, "dtype"),
                             .shape = option_get(w->v, "shape"),
                             .quick = option_given(w->v, "quick")};
    const char *state = option_get(w->v, "state"), *plot = option_get(w->v, "plot");
    size_t n = 0, measured = 0;
    bool noisy = false;
    if (strcmp(state, "cold") != 0 && strcmp(state, "hot") != 0 && strcmp(state, "both") != 0)
        return err_set(e, ERR_USAGE, "--state: wanted cold, hot or both");
    q.all = q.variants && strcmp(q.variants, "all") == 0;
    if (q.all) q.variants = NULL;
    TRY(check_output(w, probe_row_columns, probe_row_columns_n, e));
    w->run.set.hot = strcmp(state, "hot") == 0;
    w->run.set.dram_bytes = option_given(w->v, "dram-bytes");
    TRY(begin(w, command, e));
    if (option_get(w->v, "model")) {
        const char **left_out;
        size_t left_out_n;
        TRY(model_shapes_points(w->a, w->v, &w->run.device, &q, &left_out, &left_out_n, e));
        for (size_t i = 0; i < left_out_n; i++) TRY(note(w, left_out[i], e));
    }
    TRY(plan_make(w->a, &w->run.device, &q, &plan, e));
    for (size_t i = 0; i < plan.left_out_n; i++) TRY(note(w, arena_printf(w->a, "%s.", plan.left_out[i]), e));
    TRY(open_store(w, e));
    struct probe_row *rows = arena_array(w->a, 2 * plan.n, sizeof *rows);
    if (!rows) return err_nomem(e);
    w->total = plan.n;
    progress_start(&w->bar, "measurements");
    progress_line(&w->bar, "measuring the ceilings of this machine");
    enum err_code code = run_measure_ceilings(&w->run, e);
    if (code == ERR_OK) code = run_jobs(w, &plan, rows, &n, e);
    progress_end(&w->bar);
    run_close(&w->run);
    TRY(code);
    TRY(say_ceilings(w, e));
    if (w->run.stopped)
        TRY(note(
            w,
            arena_printf(w->a, "stopped by a signal: %zu of %zu shapes were not measured.", plan.n - w->done, plan.n),
            e));
    TRY(say_stored(w, e));
    for (size_t i = 0; i < n; i++) {
        measured += isnan(rows[i].measured_s) ? 0 : 1;
        noisy = noisy || strcmp(rows[i].outcome, result_outcome_name(RESULT_NOISY)) == 0;
    }
    if (noisy)
        TRY(note(
            w, "noisy results: a longer --deadline helps, and priority where it is allowed: chrt -f 1 ridge probe run.",
            e));
    struct err unplotted = {.code = ERR_OK};
    if (plot && measured && probe_draw(w->a, &w->run, rows, n, plot, &unplotted) != ERR_OK)
        TRY(note(w, arena_printf(w->a, "no picture: %s.", unplotted.text), e));
    TRY(write_table(w, "ridge.probe.1", probe_row_columns, probe_row_columns_n, rows, n, sizeof *rows, e));
    if (measured || w->run.stopped) return ERR_OK;
    return err_set(e, ERR_NO, "no number: %s", n && rows[0].reason ? rows[0].reason : "nothing was measured");
}

/* -- list -- */

struct list_row {
    const char *kernel, *variant, *dtypes, *unit, *parameters, *here, *summary;
    int64_t points;
};

#define LISTED(field, kind, heading, help)                                                                             \
    COLUMN_AT(struct list_row, field, kind, UNITS_NONE, COLUMN_SHOWN, heading, help)

static const struct column LIST[] = {
    LISTED(kernel, COLUMN_STRING, "kernel", "what can be measured"),
    LISTED(variant, COLUMN_STRING, "variant", "which code of it"),
    LISTED(dtypes, COLUMN_STRING, "formats", "of weights or cache"),
    LISTED(unit, COLUMN_STRING, "unit", "whose peak counts"),
    COLUMN_AT(struct list_row, parameters, COLUMN_STRING, UNITS_NONE, COLUMN_SHOWN | COLUMN_SPARE, "parameters",
              "of a shape"),
    LISTED(points, COLUMN_INT, "shapes", "measured when none is named"),
    LISTED(here, COLUMN_STRING, "here", "whether this machine can run it, or what it lacks"),
    COLUMN_AT(struct list_row, summary, COLUMN_STRING, UNITS_NONE, 0, "summary", "what it does"),
};

static enum err_code list_within(struct work *w, const char *command, struct err *e)
{
    size_t n = 0, most = 0;
    TRY(check_output(w, LIST, sizeof LIST / sizeof LIST[0], e));
    TRY(begin(w, command, e));
    run_close(&w->run);
    const struct wire_device *d = &w->run.device;
    const char *wanted = option_get(w->v, "kernel");
    TRY(plan_check_kernels(d, wanted, e));
    for (size_t i = 0; i < d->kernels_n; i++) most += d->kernels[i].variants_n;
    struct list_row *rows = arena_array(w->a, most + 1, sizeof *rows);
    if (!rows) return err_nomem(e);
    for (size_t i = 0; i < d->kernels_n; i++) {
        const struct wire_kernel *k = &d->kernels[i];
        const char *parameters = "", *bounds = "";
        if (wanted && !wire_list_has(wanted, k->name)) continue;
        for (size_t j = 0; j < k->args_n && parameters && bounds; j++) {
            const struct wire_arg *arg = &k->args[j];
            parameters = arena_printf(w->a, "%s%s%s", parameters, j ? "," : "", arg->name);
            bounds = arena_printf(w->a, "%s%s%s=%lld..%lld", bounds, j ? ", " : "", arg->name, (long long)arg->lo,
                                  (long long)arg->hi);
        }
        if (!parameters || !bounds) return err_nomem(e);
        TRY(note(w, arena_printf(w->a, "%s: %s; %s.", k->name, k->summary, bounds), e));
        for (size_t j = 0; j < k->variants_n; j++) {
            const struct wire_variant *v = &k->variants[j];
            rows[n++] = (struct list_row){k->name,    v->name,
                                          v->dtypes,  v->unit,
                                          parameters, *v->lacks ? v->lacks : "yes",
                                          k->summary, (int64_t)k->points_n};
        }
    }
    TRY(note(w, arena_printf(w->a, "Device: %s.", d->name), e));
    return write_table(w, "ridge.probe.list.1", LIST, sizeof LIST / sizeof LIST[0], rows, n, sizeof *rows, e);
}

/* -- the frame of each -- */

/* Signals are held while a worker runs, so that the table of what was measured still comes out; they take effect at the
 * end, when the store is closed. */
static enum err_code held(const struct option_values *v, const char *command,
                          enum err_code (*verb)(struct work *w, const char *command, struct err *e), struct err *e)
{
    sigset_t before;
    struct arena *own = arena_open();
    struct work *w = own ? arena_alloc(own, sizeof *w) : NULL;
    enum err_code code;
    hold_begin(&before);
    if (w) {
        w->a = own;
        w->v = v;
        w->run.set.before = &before;
        code = verb(w, command, e);
        progress_end(&w->bar);
        run_close(&w->run);
    } else {
        code = err_nomem(e);
    }
    arena_close(own);
    hold_end(&before);
    return code;
}

enum err_code probe_list(struct arena *a, const struct option_values *v, const char *command, struct err *e)
{
    (void)a;
    return held(v, command, list_within, e);
}

enum err_code probe_run(struct arena *a, const struct option_values *v, const char *command, struct err *e)
{
    (void)a;
    return held(v, command, run_within, e);
}

enum err_code probe_ceilings(struct arena *a, const struct option_values *v, const char *command, struct err *e)
{
    (void)a;
    return held(v, command, ceilings_within, e);
}
