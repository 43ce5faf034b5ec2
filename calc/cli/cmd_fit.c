/* cmd_fit -- parameters of calibrated kernel times from measured rows. */
#define _XOPEN_SOURCE 700 /* realpath; not a unit */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "calc/base/table.h"
#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/fit_plot.h"
#include "calc/cli/fit_workload.h"
#include "calc/cli/progress.h"
#include "calc/cli/store_rows.h"
#include "calc/fit/efficiency.h"
#include "calc/fit/validate.h"
#include "probe/run.h"
#include "probe/store.h"

static const struct option OPTIONS[] = {
    {.name = "from",
     .kind = OPTION_MANY,
     .value = "FILE|DIR|GLOB,...|store",
     .group = "What",
     .help = "measured rows, CSV (ridge list rows); of a directory its *.csv; store: what ridge probe measured"},
    {.name = "workload",
     .kind = OPTION_FLAG,
     .help = "the file is a trace of requests (ridge simulate --trace): distributions of its lengths and arrivals"},
    {.name = "device",
     .letter = 'g',
     .kind = OPTION_TEXT,
     .value = "DEVICE",
     .help = "the device they ran on; this-cpu: the core whose ceilings the probe measured last"},
    STORE_OPTION,
    IMPORTED_OPTION,
    {.name = "framework", .kind = OPTION_TEXT, .value = "NAME", .help = "rows of this framework only: vllm"},
    {.name = "kind",
     .kind = OPTION_MANY,
     .value = "KIND,...",
     .help = "kinds of kernels: gemm, prefill, decode, moe, ... (ridge list rows)"},
    {.name = "source",
     .kind = OPTION_TEXT,
     .value = "TEXT",
     .help = "who measured the rows, and where they are; goes to the file"},
    {.name = "date", .kind = OPTION_TEXT, .value = "YYYY-MM", .help = "when; goes to the file"},
    {.name = "splits",
     .kind = OPTION_TEXT,
     .value = "N",
     .fallback = "20",
     .help = "random splits for held-out errors: 20, or 0 to go without errors and bands"},
    OPTION_FORMAT("of the summary: text, md, csv, json, jsonl"),
    OPTION_FILE("output", 'o',
                "the efficiencies, JSON; without it only the summary. Of --from store the store remembers it, and -g "
                "this-cpu takes it from then on"),
    OPTION_FILE("plot", 0, "calibrated against measured: .png .svg .pdf, or - for the terminal"),
};

/* A line of the summary. */
struct line {
    const char *name, *kind, *class_name;
    int64_t rows, families, params;
    double fitted_frac, held_out_frac, held_out_sd, held_out_median_frac, held_out_most_frac, baseline_frac, ratio,
        large_frac, large_baseline_frac, coverage_frac;
};

#define LINE(field, kind, unit, heading, help) COLUMN_AT(struct line, field, kind, unit, COLUMN_SHOWN, heading, help)
#define SPARE(field, kind, unit, heading, help)                                                                        \
    COLUMN_AT(struct line, field, kind, unit, COLUMN_SHOWN | COLUMN_SPARE, heading, help)

static const struct column COLUMNS[] = {
    COLUMN_AT(struct line, name, COLUMN_STRING, UNITS_NONE, 0, "name", "calls that one set of parameters describes"),
    LINE(kind, COLUMN_STRING, UNITS_NONE, "kind", "kind of kernel"),
    LINE(class_name, COLUMN_STRING, UNITS_NONE, "class", "the rest of the name"),
    LINE(rows, COLUMN_INT, UNITS_NONE, "rows", "measured rows"),
    SPARE(families, COLUMN_INT, UNITS_NONE, "shapes", "shape families, left out whole"),
    SPARE(params, COLUMN_INT, UNITS_NONE, "params", "parameters fitted"),
    LINE(fitted_frac, COLUMN_REAL, UNITS_FRAC, "fitted", "mean error of the rows fitted"),
    LINE(held_out_frac, COLUMN_REAL, UNITS_FRAC, "left out", "mean error of families left out"),
    LINE(held_out_sd, COLUMN_REAL, UNITS_FRAC, "sd", "its standard deviation over the splits"),
    COLUMN_AT(struct line, held_out_median_frac, COLUMN_REAL, UNITS_FRAC, 0, "median", "of all rows left out"),
    COLUMN_AT(struct line, held_out_most_frac, COLUMN_REAL, UNITS_FRAC, 0, "most", "the largest of their errors"),
    LINE(baseline_frac, COLUMN_REAL, UNITS_FRAC, "simple", "the same of start + max(flops, bytes), three parameters"),
    LINE(ratio, COLUMN_REAL, UNITS_RATIO, "of simple", "left out over that"),
    LINE(large_frac, COLUMN_REAL, UNITS_FRAC, ">20us", "left out, bound above 20 us"),
    SPARE(large_baseline_frac, COLUMN_REAL, UNITS_FRAC, "simple",
          "the same of start + max(flops, bytes), three parameters"),
    LINE(coverage_frac, COLUMN_REAL, UNITS_FRAC, "band", "held-out rows within P10..P90, wanted 0.8"),
};

/* Where the rows come from, unless --source says it. */
static const char *said(const struct measured *m, const struct option_values *v)
{
    const char *source = option_get(v, "source");
    return source || !m->from ? source : m->said ? m->said : m->rows.files[0].path;
}

/* Whose kernels: --framework, or that of all rows of the store. */
static const char *framework_of(const struct measured *m, const struct option_values *v)
{
    const char *first = m->rows.v[0].framework;
    if (option_get(v, "framework") || !(m->from || m->probed)) return option_get(v, "framework");
    for (size_t i = 0; i < m->rows.n; i++)
        if (strcmp(m->rows.v[i].framework, first) != 0) return NULL;
    return *first ? first : NULL;
}

/* Rows that can hardly be true are refused before anything is fitted to them: half of them below what bounds them, or
 * all far above. A few below are said. */
static enum err_code check_rows(struct arena *a, const struct hw *hw, const struct rows *rows, const char **doubt,
                                struct err *e)
{
    struct validate_row *v;
    size_t below;
    TRY(validate_rows(a, hw, rows, NULL, &v, e));
    TRY(validate_doubt(a, v, rows->n, hw->key, &below, doubt, e));
    if (*doubt && (below == 0 || below * 2 >= rows->n)) return err_set(e, ERR_INPUT, "%s", *doubt);
    return ERR_OK;
}

/* "2026-08", or with a day. */
static enum err_code check_date(const char *date, struct err *e)
{
    static const char FORM[] = "dddd-dd-dd";
    const size_t n = date ? strlen(date) : 0;
    if (!date) return ERR_OK;
    bool good = n == strlen("2026-08") || n == strlen(FORM);
    for (size_t i = 0; i < n && good; i++)
        good = FORM[i] == 'd' ? date[i] >= '0' && date[i] <= '9' : date[i] == FORM[i];
    if (good) {
        const int month = (date[5] - '0') * 10 + date[6] - '0';
        const int day = n == strlen(FORM) ? (date[8] - '0') * 10 + date[9] - '0' : 1;
        good = month >= 1 && month <= 12 && day >= 1 && day <= 31;
    }
    return good ? ERR_OK : err_set(e, ERR_USAGE, "--date is a month, 2026-08, not '%.40s'", date);
}

/* The store remembers which file its results were fitted to last, so that estimates find it. */
static enum err_code remember(struct arena *a, const struct measured *m, const struct option_values *v,
                              const char *output, const char **said, struct err *e)
{
    static const struct store_access WRITE = {.write = true, .patience_s = 20};
    struct store_fitted f;
    struct store *s;
    struct err why = {.code = ERR_OK};
    const char *path = option_get(v, "store");
    if (!path) TRY(store_default_path(a, &path, e));
    char *real = realpath(output, NULL);
    f.path = arena_strndup(a, real ? real : output, strlen(real ? real : output));
    free(real);
    if (!f.path) return err_nomem(e);
    TRY(run_now(a, &f.made, e));
    enum err_code code = store_open(a, path, &WRITE, &s, &why);
    if (code == ERR_OK) code = store_add_fitted(s, m->hw.name, &f, &why);
    if (code == ERR_NOMEM) return err_nomem(e);
    *said = code == ERR_OK ? arena_printf(a, "ridge estimate -g %s --fidelity calibrated takes %s.", m->hw.key, output)
                           : arena_printf(a, "estimates take it by --efficiency alone: %s.", why.text);
    return *said ? ERR_OK : err_nomem(e);
}

static enum err_code write_summary(struct arena *a, const struct measured *m, const char *const extra[2],
                                   const struct fit_class *classes, size_t n, enum table_format format, struct err *e)
{
    struct line *lines = arena_array(a, n ? n : 1, sizeof *lines);
    struct out *o;
    if (!lines) return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        const struct fit_class *c = &classes[i];
        const char *slash = strchr(c->name, '/');
        lines[i] = (struct line){.name = c->name,
                                 .kind = kernel_kind_name(c->like.kind),
                                 .class_name = slash ? slash + 1 : c->name,
                                 .rows = (int64_t)c->rows_n,
                                 .families = (int64_t)c->families_n,
                                 .params = (int64_t)c->n_params,
                                 .fitted_frac = c->mape_frac,
                                 .held_out_frac = c->held_out.mean,
                                 .held_out_sd = c->held_out.sd,
                                 .held_out_median_frac = c->held_out_median_frac,
                                 .held_out_most_frac = c->held_out_most_frac,
                                 .baseline_frac = c->held_out_baseline.mean,
                                 .ratio = c->held_out.mean / c->held_out_baseline.mean,
                                 .large_frac = c->large.mean,
                                 .large_baseline_frac = c->large_baseline.mean,
                                 .coverage_frac = c->coverage_frac.mean};
    }
    const char **notes;
    struct table t = {.columns = COLUMNS,
                      .n_columns = sizeof COLUMNS / sizeof COLUMNS[0],
                      .rows = lines,
                      .n_rows = n,
                      .stride_bytes = sizeof *lines,
                      .schema = "ridge.fit.1",
                      .tool = commands_tool()};
    TRY(measured_notes(a, m, classes, n, &notes, &t.n_notes, e));
    for (size_t i = 0; i < 2; i++)
        if (extra[i]) notes[t.n_notes++] = extra[i];
    TRY(rows_assumed(a, &m->rows, &notes[t.n_notes], e));
    t.n_notes += notes[t.n_notes] != NULL;
    t.notes = notes;
    TRY(out_open(a, NULL, &o, e));
    TRY(table_write(&t, format, o, e));
    return out_commit(o, e);
}

/* The classes as a file would give them, for the picture. */
static enum err_code draw(struct arena *a, const struct hw *hw, const struct rows *rows,
                          const struct fit_class *classes, size_t n, const char *output, struct err *e)
{
    const struct efficiency f = {.classes = classes, .n = n};
    struct validate_row *v;
    TRY(validate_rows(a, hw, rows, &f, &v, e));
    return fit_plot(a, v, rows->n, hw->name, output, e);
}

static enum err_code run(struct arena *a, const struct command *c, int argc, char **argv, struct err *e)
{
    struct option_values v;
    struct measured m;
    struct fit_class *classes;
    enum table_format format;
    size_t n;
    int64_t splits;
    TRY(option_parse(a, c, argc, argv, &v, e));
    if (!v.operands_n && option_get(&v, "from") && option_get(&v, "workload")) {
        TRY(table_format_parse(option_get(&v, "format"), &format, e));
        return fit_workload_run(a, &v, format, e);
    }
    if (v.operands_n || !option_get(&v, "from") || !option_get(&v, "device"))
        return err_set(e, ERR_USAGE, "fit: ridge fit --from FILE|DIR|GLOB,... --device DEVICE [-o FILE.json]");
    TRY(table_format_parse(option_get(&v, "format"), &format, e));
    if (units_parse_count(option_get(&v, "splits"), 0, FIT_SPLITS, &splits, e) != ERR_OK)
        return e ? err_prepend(e, "--splits: ") : ERR_USAGE;
    const char *plot = option_get(&v, "plot"), *output = option_get(&v, "output");
    if (plot) TRY(fit_plot_check(plot, e));
    TRY(check_date(option_get(&v, "date"), e));
    TRY(measured_open(a, &v, &m, e));
    const struct hw *hw = &m.hw;
    const struct rows *rows = &m.rows;
    const char *extra[2] = {NULL, NULL}; /* a doubt, and where the file is found */
    TRY(check_rows(a, hw, rows, &extra[0], e));
    struct progress bar;
    progress_start(&bar, "rows");
    const enum err_code code = fit_rows(a, hw, rows, (int)splits, progress_tell, &bar, &classes, &n, e);
    progress_end(&bar);
    TRY(code);
    if (!n)
        return err_set(e, ERR_NO, "no class has %zu different shapes or more, of %zu row%s in all%s",
                       fit_shapes_min(&rows->v[0].kernel), rows->n, rows->n == 1 ? "" : "s",
                       m.from ? ": ridge probe run --kernel NAME --shape, with ranges, measures more" : "");
    if (output) {
        struct out *o;
        const struct efficiency_origin origin = {hw->key, framework_of(&m, &v), said(&m, &v), option_get(&v, "date")};
        TRY(out_open(a, output, &o, e));
        TRY(efficiency_write(o, &origin, rows, classes, n, e));
        TRY(out_commit(o, e));
        struct stat is; /* a pipe or /dev/null holds nothing that an estimate could read again */
        const bool own = m.from && m.said && strcmp(output, "-") != 0 && stat(output, &is) == 0 && S_ISREG(is.st_mode);
        if (own) TRY(remember(a, &m, &v, output, &extra[1], e));
    }
    if (plot) TRY(draw(a, hw, rows, classes, n, plot, e));
    const bool taken = (output && strcmp(output, "-") == 0) || (plot && strcmp(plot, "-") == 0);
    if (!taken) TRY(write_summary(a, &m, extra, classes, n, format, e));
    return measured_senseless(&m, e);
}

const struct command command_fit = {
    .name = "fit",
    .summary = "Fit calibrated kernel times to measured rows; errors on shapes left out.",
    .usage = "--from FILE|DIR|GLOB,... --device DEVICE | --workload --from TRACE [options]",
    .options = OPTIONS,
    .options_n = sizeof OPTIONS / sizeof OPTIONS[0],
    .examples = "  ridge fit --from rows/ --device h100-sxm --framework vllm -o h100-sxm.vllm.json\n"
                "  ridge fit --from 'rows/gemm_*.csv' -g h100-sxm --kind gemm --plot fit.svg\n"
                "  ridge fit --workload --from azure2023_conv.csv -o conversations.json\n"
                "  ridge fit --from store --device this-cpu -o this-cpu.json\n",
    .run = run,
};
