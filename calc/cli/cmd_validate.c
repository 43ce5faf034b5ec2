/* cmd_validate -- measured rows against bounds and calibrated times. */
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "calc/base/table.h"
#include "calc/cli/commands.h"
#include "calc/cli/fit_plot.h"
#include "calc/cli/model_shapes.h"
#include "calc/cli/plot.h"
#include "calc/cli/progress.h"
#include "calc/cli/store_rows.h"
#include "calc/cli/validate_model.h"
#include "calc/cli/validate_served.h"
#include "calc/fit/rows_cells.h"
#include "calc/fit/validate.h"

static const struct option OPTIONS[] = {
    {.name = "from",
     .kind = OPTION_MANY,
     .value = "FILE|DIR|GLOB,...|store",
     .group = "What",
     .help =
         "measured rows, CSV (ridge list rows); of a directory its *.csv; store: what ridge probe measured; or a table "
         "of servers: engine, model, system, tp, attention_dp, ep, weights, prompt_tokens, output_tokens, "
         "concurrency, ttft_ms, tpot_ms"},
    {.name = "device",
     .letter = 'g',
     .kind = OPTION_TEXT,
     .value = "DEVICE",
     .help = "the device they ran on; this-cpu: the core whose ceilings the probe measured last"},
    STORE_OPTION,
    IMPORTED_OPTION,
    MODEL_SHAPES_OPTIONS(NULL),
    {.name = "efficiency",
     .kind = OPTION_TEXT,
     .value = "NAME|FILE",
     .help = "fitted parameters: a file that ridge fit wrote, or a built-in such as h100-sxm.vllm; without them bounds "
             "alone, and of the store what its own rows are fitted to"},
    {.name = "transfer-from",
     .kind = OPTION_TEXT,
     .value = "DEVICE",
     .help = "parameters of all that was fitted on another device, taken here by the ratios of datasheets: h100-sxm"},
    {.name = "framework", .kind = OPTION_TEXT, .value = "NAME", .help = "rows of this framework only: vllm"},
    {.name = "kind",
     .kind = OPTION_MANY,
     .value = "KIND,...",
     .help = "kinds of kernels: gemm, prefill, decode, moe, ..."},
    {.name = "by",
     .kind = OPTION_MANY,
     .value = "WORD,...",
     .fallback = "kind,regime",
     .group = "Groups",
     .help = "group by: any of kind, regime, framework, class; of servers clients, ranks"},
    {.name = "rows", .kind = OPTION_FLAG, .help = "every row instead of groups"},
    OPTION_FORMAT("text, md, csv, json, jsonl"),
    OPTION_FILE("output", 'o', "write there instead of standard output"),
    OPTION_FILE(
        "plot", 0,
        "calibrated against measured; of the store and of a model, measured on the roofline: .png .svg .pdf, or -"),
};

#define GROUP(field, kind, unit, heading, help)                                                                        \
    COLUMN_AT(struct validate_group, field, kind, unit, COLUMN_SHOWN, heading, help)

#define SPARE_GROUP(field, kind, unit, heading, help)                                                                  \
    COLUMN_AT(struct validate_group, field, kind, unit, COLUMN_SHOWN | COLUMN_SPARE, heading, help)

static const struct column GROUPS[] = {
    GROUP(group, COLUMN_STRING, UNITS_NONE, "group", "what the rows share"),
    GROUP(rows, COLUMN_INT, UNITS_NONE, "rows", "measured rows"),
    GROUP(below_bound, COLUMN_INT, UNITS_NONE, "< bound", "measured below the credited bound"),
    SPARE_GROUP(weak, COLUMN_INT, UNITS_NONE, "weak", "of which the bytes fit the cache: only flops bound them"),
    GROUP(bound_ratio, COLUMN_REAL, UNITS_RATIO, "x bound", "geometric mean of measured over the bound"),
    GROUP(calibrated, COLUMN_INT, UNITS_NONE, "fitted", "rows whose class has parameters"),
    SPARE_GROUP(below_bound_fitted, COLUMN_INT, UNITS_NONE, "fit<b.", "calibrated below the credited bound"),
    GROUP(mape_frac, COLUMN_REAL, UNITS_FRAC, "mean", "mean error of the calibrated time"),
    GROUP(median_frac, COLUMN_REAL, UNITS_FRAC, "median", "its median"),
    GROUP(p90_frac, COLUMN_REAL, UNITS_FRAC, "P90", "its ninetieth percentile"),
    SPARE_GROUP(baseline_mape_frac, COLUMN_REAL, UNITS_FRAC, "simple",
                "mean error of start + max(flops, bytes), three parameters"),
    GROUP(coverage_frac, COLUMN_REAL, UNITS_FRAC, "band", "measured within P10..P90"),
};

#define ROW(field, kind, unit, heading, help)                                                                          \
    COLUMN_AT(struct validate_row, field, kind, unit, COLUMN_SHOWN, heading, help)

#define SPARE_ROW(field, kind, unit, heading, help)                                                                    \
    COLUMN_AT(struct validate_row, field, kind, unit, COLUMN_SHOWN | COLUMN_SPARE, heading, help)

#define TIME(field, flags, heading, help)                                                                              \
    COLUMN_AT(struct validate_row, field, COLUMN_REAL, UNITS_SECONDS, COLUMN_SHOWN | COLUMN_ALIKE | (flags), heading,  \
              help)

static const struct column ROWS[] = {
    ROW(file, COLUMN_STRING, UNITS_NONE, "file", "where the row stands"),
    ROW(line, COLUMN_INT, UNITS_NONE, "line", "line of the file"),
    SPARE_ROW(kind, COLUMN_STRING, UNITS_NONE, "kind", "kind of kernel"),
    ROW(class_name, COLUMN_STRING, UNITS_NONE, "class", "calls that one set of parameters describes"),
    SPARE_ROW(regime, COLUMN_STRING, UNITS_NONE, "regime", "tiny, memory or compute"),
    TIME(bound_s, 0, "bound", "max(flops/peak, bytes/bandwidth)"),
    TIME(credited_bound_s, COLUMN_SPARE, "credited", "the same, a cache full of bytes forgiven"),
    TIME(baseline_s, COLUMN_SPARE, "simple", "start + max(flops, bytes), three parameters"),
    TIME(p10_s, 0, "P10", "of ten such calls one is faster"),
    TIME(calibrated_s, 0, "median", "calibrated time"),
    TIME(p90_s, 0, "P90", "of ten such calls one is slower"),
    TIME(measured_s, 0, "measured", "measured time"),
};

/* NULL: no memory. */
static const char *transferred(struct arena *a, const struct efficiency *f, const struct hw *hw)
{
    struct hw from;
    struct err unknown;
    if (hw_load(a, f->device, &from, &unknown) != ERR_OK)
        return arena_printf(a, "Parameters of %.40s, as they are.", f->device);
    const bool same = efficiency_same_generation(&from, hw);
    return arena_printf(a,
                        "Parameters of %.40s, rates and clock of %s: not measured here but transferred %s. Their band "
                        "is the own one or, where wider, what holds four of five calls transferred to other devices: "
                        "within a factor of %.2f for products, %.2f prefill, %.2f decode.",
                        f->device, hw->key, same ? "within a generation" : "between generations",
                        efficiency_factor(KERNEL_GEMM, same, hw->key), efficiency_factor(KERNEL_PREFILL, same, hw->key),
                        efficiency_factor(KERNEL_DECODE, same, hw->key));
}

static enum err_code sentences(struct arena *a, const struct rows *rows, const struct efficiency *f,
                               const struct hw *hw, const struct validate_row *v, const char **notes, size_t *n,
                               struct err *e)
{
    size_t passed = 0, below;
    for (size_t i = 0; i < rows->files_n; i++) passed += rows->files[i].why != NULL;
    *n = 0;
    TRY(validate_doubt(a, v, rows->n, hw->key, &below, &notes[*n], e));
    const bool exported = rows->n && strcmp(rows->v[0].framework, "ridge") == 0;
    if (notes[*n] && below && hw->measured && exported)
        notes[*n] =
            arena_printf(a,
                         "%zu of %zu rows are faster than %s was when its ceilings were measured (%s): the rows "
                         "are of another moment, or another machine; --from store holds each to its own.",
                         below, rows->n, hw->key, hw->measured);
    *n += notes[*n] != NULL;
    TRY(rows_assumed(a, rows, &notes[*n], e));
    *n += notes[*n] != NULL;
    TRY(rows_others(a, rows, &notes[*n], e));
    *n += notes[*n] != NULL;
    if (passed) {
        notes[*n] = arena_printf(a, "%zu file%s passed over: of another device, or columns of no kind of kernel.",
                                 passed, passed == 1 ? "" : "s");
        if (!notes[(*n)++]) return err_nomem(e);
    }
    if (f && strcmp(f->device, hw->key) != 0) {
        notes[*n] = transferred(a, f, hw);
        if (!notes[(*n)++]) return err_nomem(e);
    }
    return ERR_OK;
}

/* Parameters of another device become those of hw, by what the files of both say. */
static enum err_code transfer(struct arena *a, const struct hw *hw, struct efficiency *f, struct err *e)
{
    struct hw from;
    struct err unknown;
    const struct efficiency fitted = *f;
    if (strcmp(f->device, hw->key) == 0 || hw_load(a, f->device, &from, &unknown) != ERR_OK) return ERR_OK;
    return efficiency_transfer(a, &fitted, &from, hw, f, e);
}

/* Why a file has no rows of any kind, where no device is named to read them for. */
static enum err_code readable(struct arena *a, const char *path, struct err *e)
{
    struct rows_cells c;
    bool more;
    TRY(rows_cells_open(a, path, &c, e));
    TRY(rows_cells_next(&c, &more, e));
    return more ? ERR_OK : err_set(e, ERR_INPUT, "%s: an empty file: no header", c.name);
}

/* What the options say, checked before anything is read. */
struct wanted {
    const char *plot, *efficiency, *transfer_from;
    bool model, roofline; /* roofline: what the picture is */
    enum table_format format;
};

static enum err_code read_wanted(const struct option_values *v, struct wanted *out, struct err *e)
{
    const char *from = option_get(v, "from");
    if (v->operands_n || !from || !option_get(v, "device"))
        return err_set(e, ERR_USAGE,
                       "validate: ridge validate --from FILE|DIR|GLOB,...|store --device DEVICE [options]");
    *out = (struct wanted){.plot = option_get(v, "plot"),
                           .efficiency = option_get(v, "efficiency"),
                           .transfer_from = option_get(v, "transfer-from"),
                           .model = option_get(v, "model") != NULL};
    TRY(model_shapes_check(v, e));
    out->roofline = out->model || strcmp(from, STORE_FROM) == 0;
    TRY(table_format_parse(option_get(v, "format"), &out->format, e));
    if (out->plot && out->roofline)
        TRY(plot_check("roofline", out->plot, e));
    else if (out->plot)
        TRY(fit_plot_check(out->plot, e));
    if (out->transfer_from && out->efficiency)
        return err_set(e, ERR_USAGE, "--transfer-from: --efficiency already says whose parameters");
    if (out->plot && !out->roofline && !out->efficiency && !out->transfer_from)
        return err_set(e, ERR_USAGE, "--plot: needs --efficiency or --transfer-from, the times to draw");
    if (out->model && option_given(v, "rows")) return err_set(e, ERR_USAGE, "--rows: -m shows those of the model");
    return ERR_OK;
}

/* Parameters: those named, or of the store what its own rows are fitted to, in which case sentences say how well. */
static enum err_code open_fitted(struct arena *a, const struct wanted *w, const struct measured *m,
                                 struct efficiency *f, const char ***notes, size_t *n, struct err *e)
{
    const struct hw *hw = &m->hw;
    struct fit_class *classes = NULL;
    size_t classes_n = 0;
    if (w->efficiency) TRY(efficiency_load(a, w->efficiency, f, e));
    if (w->transfer_from) TRY(efficiency_load_device(a, w->transfer_from, f, e));
    if (w->efficiency || w->transfer_from) TRY(transfer(a, hw, f, e));
    const bool own = (m->from || m->probed) && !w->efficiency && !w->transfer_from;
    if (own) {
        struct progress bar;
        progress_start(&bar, "rows");
        const enum err_code code = fit_rows(a, hw, &m->rows, FIT_SPLITS, progress_tell, &bar, &classes, &classes_n, e);
        progress_end(&bar);
        TRY(code);
        *f = (struct efficiency){.device = hw->key, .classes = classes, .n = classes_n};
    }
    if (own) return measured_notes(a, m, classes, classes_n, notes, n, e);
    const char **line = arena_array(a, 8, sizeof *line); /* with room for sentences */
    if (!line) return err_nomem(e);
    *n = 0;
    if (m->said && !(line[(*n)++] = arena_printf(a, "%s.", m->said))) return err_nomem(e);
    *notes = line;
    return ERR_OK;
}

/* Rows of a machine too noisy for its ceilings test nothing: those before them, for errors, and how many. */
static size_t leave_out_noisy(struct validate_row *row, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (!row[i].row->uncalibrated) {
            const struct validate_row other = row[kept];
            row[kept++] = row[i];
            row[i] = other;
        }
    return kept ? kept : n;
}

static enum err_code run(struct arena *a, const struct command *c, int argc, char **argv, struct err *e)
{
    struct option_values v;
    struct wanted w;
    struct measured m;
    struct model model;
    struct shapes shapes;
    struct efficiency f = {.n = 0};
    struct validate_row *row;
    struct validate_group *groups = NULL;
    struct operator_row *ops = NULL;
    struct out *o;
    size_t n = 0, more;
    const char **notes;
    TRY(option_parse(a, c, argc, argv, &v, e));
    const char *from = option_get(&v, "from");
    if (from && !v.operands_n && served_is(a, from)) return validate_served(a, &v, from, e);
    const char *lacks = from && !v.operands_n ? served_lacks(a, from) : NULL;
    if (lacks) return err_set(e, ERR_INPUT, "%s: a table of servers without a column %s", from, lacks);
    struct stat is;
    if (from && !v.operands_n && !option_get(&v, "device") && stat(from, &is) == 0 && !S_ISDIR(is.st_mode))
        TRY(readable(a, from, e));
    TRY(read_wanted(&v, &w, e));
    TRY(measured_open(a, &v, &m, e));
    if (w.model) TRY(model_shapes_open(a, &v, &m.hw, &model, &shapes, e));
    struct table t = {.schema = "ridge.validate.1", .tool = commands_tool()};
    TRY(open_fitted(a, &w, &m, &f, &notes, &t.n_notes, e));
    TRY(validate_rows(a, &m.hw, &m.rows, f.classes ? &f : NULL, &row, e));
    t.notes = notes;
    t.scenario_json = option_scenario_json(a, &v);
    const bool own = (m.from || m.probed) && !w.efficiency && !w.transfer_from;
    if (!own) TRY(sentences(a, &m.rows, f.classes ? &f : NULL, &m.hw, row, notes + t.n_notes, &more, e));
    if (!own) t.n_notes += more;
    const bool all = option_given(&v, "rows");
    const struct operator_rows of = {
        .model = &model, .shapes = w.model ? &shapes : NULL, .rows = row, .n = m.rows.n, .imported = m.imported};
    if (w.model)
        TRY(validate_model_rows(a, &of, &ops, &n, &notes[t.n_notes++], e));
    else if (!all)
        TRY(validate_groups(a, row, leave_out_noisy(row, m.rows.n), &m.hw, option_get(&v, "by"), &groups, &n, e));
    t.columns = w.model ? operator_columns : all ? ROWS : GROUPS;
    t.n_columns = w.model ? operator_columns_n : all ? sizeof ROWS / sizeof ROWS[0] : sizeof GROUPS / sizeof GROUPS[0];
    t.rows = w.model ? (const void *)ops : all ? (const void *)row : (const void *)groups;
    t.n_rows = all ? m.rows.n : n;
    t.stride_bytes = w.model ? sizeof *ops : all ? sizeof *row : sizeof *groups;
    const bool terminal = w.plot && strcmp(w.plot, "-") == 0;
    struct err unplotted = {.code = ERR_OK};
    if (w.plot && w.roofline)
        (void)validate_draw(a, &m.hw, &of, w.plot, &unplotted);
    else if (w.plot)
        (void)fit_plot(a, row, m.rows.n, m.hw.name, w.plot, &unplotted);
    if (terminal && unplotted.code != ERR_OK) return err_set(e, unplotted.code, "%s", unplotted.text);
    if (terminal) return measured_senseless(&m, e);
    if (unplotted.code == ERR_NOMEM) return err_nomem(e);
    TRY(out_open(a, option_get(&v, "output"), &o, e));
    TRY(table_write(&t, w.format, o, e));
    TRY(out_commit(o, e));
    if (unplotted.code != ERR_OK)
        return err_set(e, unplotted.code == ERR_NOMEM ? ERR_NOMEM : ERR_IO, "no picture: %s", unplotted.text);
    return measured_senseless(&m, e);
}

const struct command command_validate = {
    .name = "validate",
    .summary = "Measured times of kernels and servers against bounds and calibrated times.",
    .usage = "--from FILE|DIR|GLOB,...|store --device DEVICE [options]",
    .options = OPTIONS,
    .options_n = sizeof OPTIONS / sizeof OPTIONS[0],
    .examples = "  ridge validate --from rows/ -g h100-sxm\n"
                "  ridge validate --from rows/ -g h100-sxm --efficiency h100-sxm.vllm --framework vllm --by class\n"
                "  ridge validate --from rows/ -g a100-80g --transfer-from h100-sxm --by class\n"
                "  ridge validate --from servers.csv --rows -f csv\n"
                "  ridge validate --from store -m llama-3.1-8b -g this-cpu --plot measured.svg\n",
    .run = run,
};
