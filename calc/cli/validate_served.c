#include "calc/cli/validate_served.h"

#include <math.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/plot.h"

#define GROUP(field, kind, unit, heading, help)                                                                        \
    COLUMN_AT(struct served_group, field, kind, unit, COLUMN_SHOWN, heading, help)
#define SPARE(field, kind, unit, heading, help)                                                                        \
    COLUMN_AT(struct served_group, field, kind, unit, COLUMN_SHOWN | COLUMN_SPARE, heading, help)
/* A field of a drift under the key "drift_OF<suffix>". */
#define DRIFT(of, suffix, field, kind_, unit_, spare, heading_, help_)                                                 \
    {                                                                                                                  \
        .key = "drift_" #of #suffix, .heading = (heading_), .help = (help_), .kind = (kind_), .unit = (unit_),         \
        .offset = offsetof(struct served_group, drift_##of.field), .flags = COLUMN_SHOWN | (spare)                     \
    }

const struct column served_columns[] = {
    GROUP(engine, COLUMN_STRING, UNITS_NONE, "engine", "of the servers"),
    GROUP(kind, COLUMN_STRING, UNITS_NONE, "kind", "dense models; experts (these, or latent attention); all"),
    GROUP(rows, COLUMN_INT, UNITS_NONE, "rows", "scored"),
    SPARE(families, COLUMN_INT, UNITS_NONE, "families", "of models, each left out once"),
    SPARE(unscored, COLUMN_INT, UNITS_NONE, "unscored", "noted by their source, not described, or below their bound"),
    SPARE(host_s, COLUMN_REAL, UNITS_SECONDS, "host",
          "of a step, fitted to all kinds of the engine; 0: the next two are"),
    SPARE(kernel_s, COLUMN_REAL, UNITS_SECONDS, "kernel", "of each kernel of a step, likewise"),
    SPARE(sequence_s, COLUMN_REAL, UNITS_SECONDS, "sequence", "of each sequence of a step, likewise"),
    SPARE(collective_frac, COLUMN_REAL, UNITS_FRAC, "ranks +",
          "that collectives take beyond their time alone, likewise"),
    GROUP(median_frac, COLUMN_REAL, UNITS_FRAC, "median", "error of TPOT, the row's family left out of the fit"),
    SPARE(bias_frac, COLUMN_REAL, UNITS_FRAC, "bias", "median of predicted/measured - 1"),
    SPARE(p90_frac, COLUMN_REAL, UNITS_FRAC, "P90", "ninetieth percentile of the errors of TPOT"),
    SPARE(slow_p90, COLUMN_REAL, UNITS_RATIO, "slow P90",
          "nine in ten rows take at most so many times what is predicted"),
    GROUP(within_frac, COLUMN_REAL, UNITS_FRAC, "<= 25 %", "part of the rows within 25 %"),
    SPARE(fitted_median_frac, COLUMN_REAL, UNITS_FRAC, "in fit", "median error with all families in the fit"),
    GROUP(baseline_median_frac, COLUMN_REAL, UNITS_FRAC, "3 consts",
          "median error of roofline and three constants an engine, families left out alike"),
    GROUP(ratio, COLUMN_REAL, UNITS_RATIO, "ratio", "of the medians"),
    DRIFT(clients, , mean, COLUMN_REAL, UNITS_FRAC, 0, "2x clients",
          "drift of ln(predicted/measured) per doubling among rows alike in all else: of families' slopes the mean"),
    DRIFT(clients, _half, half, COLUMN_REAL, UNITS_FRAC, 0, "+-",
          "half of its 95 % interval, families of models drawn"),
    DRIFT(clients, _p, p, COLUMN_REAL, UNITS_NONE, COLUMN_SPARE, "p", "that there is none: Holm's over all drifts"),
    DRIFT(clients, _models, models, COLUMN_INT, UNITS_NONE, COLUMN_SPARE, "models",
          "families with rows alike in all else"),
    DRIFT(clients, _median, median, COLUMN_REAL, UNITS_FRAC, COLUMN_SPARE, "median", "of the slopes of all sets"),
    DRIFT(clients, _se, se, COLUMN_REAL, UNITS_FRAC, COLUMN_SPARE, "+- sets",
          "standard error of that median, sets drawn"),
    DRIFT(clients, _sets, sets, COLUMN_INT, UNITS_NONE, COLUMN_SPARE, "sets", "of rows alike in all else"),
    DRIFT(tp, , mean, COLUMN_REAL, UNITS_FRAC, 0, "2x ranks", "drift per doubling, likewise"),
    DRIFT(tp, _half, half, COLUMN_REAL, UNITS_FRAC, 0, "+-", "half of its 95 % interval, likewise"),
    DRIFT(tp, _p, p, COLUMN_REAL, UNITS_NONE, COLUMN_SPARE, "p", "that there is none, likewise"),
    DRIFT(tp, _models, models, COLUMN_INT, UNITS_NONE, COLUMN_SPARE, "models", "families with rows alike in all else"),
    DRIFT(tp, _median, median, COLUMN_REAL, UNITS_FRAC, COLUMN_SPARE, "median", "of the slopes of all sets"),
    DRIFT(tp, _se, se, COLUMN_REAL, UNITS_FRAC, COLUMN_SPARE, "+- sets", "standard error of that median, sets drawn"),
    DRIFT(tp, _sets, sets, COLUMN_INT, UNITS_NONE, COLUMN_SPARE, "sets", "of rows alike in all else"),
    SPARE(slope_clients, COLUMN_REAL, UNITS_FRAC, "all 2x clients",
          "least squares over all rows, whichever models were run at which load"),
    SPARE(slope_tp, COLUMN_REAL, UNITS_FRAC, "all 2x ranks", "likewise"),
    SPARE(first_rows, COLUMN_INT, UNITS_NONE, "TTFT rows", "of at most 4 clients"),
    GROUP(first_median_frac, COLUMN_REAL, UNITS_FRAC, "TTFT", "median error of first tokens of at most 4 clients"),
};
const size_t served_columns_n = sizeof served_columns / sizeof served_columns[0];

/* Told apart by loads and ranks. */
const struct column served_load_columns[] = {
    GROUP(engine, COLUMN_STRING, UNITS_NONE, "engine", "of the servers"),
    GROUP(kind, COLUMN_STRING, UNITS_NONE, "kind", "dense models; experts (these, or latent attention)"),
    GROUP(clients, COLUMN_STRING, UNITS_NONE, "clients", "in closed loop"),
    GROUP(ranks, COLUMN_STRING, UNITS_NONE, "ranks", "of a copy"),
    GROUP(rows, COLUMN_INT, UNITS_NONE, "rows", "scored"),
    GROUP(bias_frac, COLUMN_REAL, UNITS_FRAC, "bias", "median of predicted/measured - 1, the row's family left out"),
    GROUP(median_frac, COLUMN_REAL, UNITS_FRAC, "median", "error of TPOT, the row's family left out of the fit"),
    GROUP(within_frac, COLUMN_REAL, UNITS_FRAC, "<= 25 %", "part of the rows within 25 %"),
    GROUP(baseline_median_frac, COLUMN_REAL, UNITS_FRAC, "3 consts",
          "median error of roofline and three constants an engine, families left out alike"),
    SPARE(families, COLUMN_INT, UNITS_NONE, "families", "of models, each left out once"),
    SPARE(first_rows, COLUMN_INT, UNITS_NONE, "TTFT rows", "of at most 4 clients"),
    GROUP(first_median_frac, COLUMN_REAL, UNITS_FRAC, "TTFT", "median error of first tokens of at most 4 clients"),
};
const size_t served_load_columns_n = sizeof served_load_columns / sizeof served_load_columns[0];

#define ROW(field, kind, unit, heading, help)                                                                          \
    COLUMN_AT(struct served_row, field, kind, unit, COLUMN_SHOWN, heading, help)
#define SPARE_ROW(field, kind, unit, heading, help)                                                                    \
    COLUMN_AT(struct served_row, field, kind, unit, COLUMN_SHOWN | COLUMN_SPARE, heading, help)
#define TIME(field, flags, heading, help)                                                                              \
    COLUMN_AT(struct served_row, field, COLUMN_REAL, UNITS_SECONDS, COLUMN_SHOWN | (flags), heading, help)

const struct column served_row_columns[] = {
    ROW(line, COLUMN_INT, UNITS_NONE, "line", "of the file"),
    ROW(engine, COLUMN_STRING, UNITS_NONE, "engine", "of the server"),
    SPARE_ROW(version, COLUMN_STRING, UNITS_NONE, "version", "of the engine"),
    ROW(model, COLUMN_STRING, UNITS_NONE, "model", "as published"),
    SPARE_ROW(device, COLUMN_STRING, UNITS_NONE, "device", "as published"),
    SPARE_ROW(weights, COLUMN_STRING, UNITS_NONE, "weights", "as published"),
    SPARE_ROW(tp, COLUMN_INT, UNITS_NONE, "TP", "tensor-parallel ranks"),
    SPARE_ROW(attention_dp, COLUMN_INT, UNITS_NONE, "DP", "attention groups"),
    SPARE_ROW(ep, COLUMN_INT, UNITS_NONE, "EP", "parts of the experts"),
    SPARE_ROW(prompt_tokens, COLUMN_REAL, UNITS_COUNT, "prompt", "tokens in"),
    SPARE_ROW(output_tokens, COLUMN_REAL, UNITS_COUNT, "output", "tokens out"),
    ROW(clients, COLUMN_REAL, UNITS_COUNT, "clients", "in closed loop"),
    TIME(tpot_s, 0, "TPOT", "measured"),
    TIME(predicted_s, COLUMN_ALIKE, "predicted", "its family left out of the fit"),
    TIME(fitted_s, COLUMN_ALIKE | COLUMN_SPARE, "in fit", "with all in the fit"),
    TIME(baseline_s, COLUMN_ALIKE | COLUMN_SPARE, "3 consts", "roofline and three constants, its family left out"),
    TIME(ttft_s, 0, "TTFT", "measured"),
    TIME(first_s, COLUMN_ALIKE, "predicted", "time to the first token, its family left out"),
    SPARE_ROW(why, COLUMN_STRING, UNITS_NONE, "not scored", "why"),
    SPARE_ROW(corrected, COLUMN_BOOL, UNITS_NONE, "corrected", "version and layout as the runs' script has them"),
};
const size_t served_row_columns_n = sizeof served_row_columns / sizeof served_row_columns[0];

static enum err_code draw(struct arena *a, const struct served *s, const char *output, struct err *e)
{
    struct out *csv;
    size_t drawn = 0;
    TRY(out_memory(a, &csv, e));
    out_str(csv, "group,measured_s,calibrated_s\n");
    for (size_t i = 0; i < s->n; i++) {
        const struct served_row *r = &s->row[i];
        if (r->why || isnan(r->predicted_s)) continue;
        out_printf(csv, "%s %s,%.6e,%.6e\n", r->engine, r->kind, r->tpot_s, r->predicted_s);
        drawn++;
    }
    if (!drawn) return err_set(e, ERR_NO, "no row is predicted: nothing to draw");
    const char *subtitle = arena_printf(a, "%zu rows of servers, each model left out of its fit", drawn);
    const struct plot_request r = {.kind = "scatter",
                                   .csv = out_text(csv, NULL),
                                   .title = "Time per output token: predicted against measured",
                                   .subtitle = subtitle,
                                   .output = output};
    if (!r.csv || !subtitle) return err_nomem(e);
    return plot_render(a, &r, e);
}

static enum err_code only_servers(const struct option_values *v, struct err *e)
{
    static const char *const KERNELS[] = {"device", "efficiency", "transfer-from", "framework", "kind", "model"};
    for (size_t i = 0; i < sizeof KERNELS / sizeof KERNELS[0]; i++)
        if (option_given(v, KERNELS[i]))
            return err_set(e, ERR_USAGE, "--%s: rows of servers say their own; it is of kernels", KERNELS[i]);
    return ERR_OK;
}

/* Words of --by, joined by ','. */
static enum err_code read_by(const struct option_values *v, unsigned *by, struct err *e)
{
    static const char *const WORDS[] = {"clients", "ranks"};
    *by = 0;
    if (!option_given(v, "by")) return ERR_OK;
    for (const char *p = option_get(v, "by"); *p;) {
        const size_t len = strcspn(p, ",");
        size_t k = 0;
        while (k < 2 && (strlen(WORDS[k]) != len || strncmp(p, WORDS[k], len) != 0)) k++;
        if (k == 2) return err_set(e, ERR_USAGE, "--by: of servers wanted clients, ranks or both joined by ','");
        *by |= k ? SERVED_BY_RANKS : SERVED_BY_CLIENTS;
        p += len + (p[len] == ',');
    }
    return ERR_OK;
}

enum { REASONS_MAX = 8 };

/* Why rows are not scored, each reason once; how many are not as they were labelled; families that nothing is left of
 * without their own rows. */
static enum err_code reasons(struct arena *a, const struct served *s, const char **notes, size_t *n, struct err *e)
{
    size_t others = 0, alone = 0, corrected = 0, *count = arena_array(a, REASONS_MAX, sizeof *count), of = 0;
    const char *why[REASONS_MAX];
    if (!count) return err_nomem(e);
    for (size_t i = 0; i < s->n; i++) {
        const struct served_row *r = &s->row[i];
        size_t k = 0;
        alone += !r->why && isnan(r->predicted_s);
        corrected += r->corrected;
        if (!r->why) continue;
        while (k < of && strcmp(why[k], r->why) != 0) k++;
        if (k == REASONS_MAX) {
            others++;
            continue;
        }
        if (k == of) {
            why[of] = r->why;
            count[of++] = 0;
        }
        count[k]++;
    }
    for (size_t k = 0; k < of; k++) {
        char clean[200];
        notes[*n] = arena_printf(a, "%zu row%s not scored: %s.", count[k], count[k] == 1 ? "" : "s",
                                 text_clean(clean, sizeof clean, why[k], strlen(why[k])));
        if (!notes[(*n)++]) return err_nomem(e);
    }
    if (others && !(notes[(*n)++] = arena_printf(a, "%zu more rows not scored, for other reasons (--rows).", others)))
        return err_nomem(e);
    if (corrected &&
        !(notes[(*n)++] = arena_printf(a,
                                       "%zu row%s labelled otherwise than the script of their runs (configs/runs): "
                                       "version and layout are the script's.",
                                       corrected, corrected == 1 ? "" : "s")))
        return err_nomem(e);
    if (alone && !(notes[(*n)++] = arena_printf(
                       a, "%zu row%s without a prediction: no other family of models of the engine is there to fit to.",
                       alone, alone == 1 ? "" : "s")))
        return err_nomem(e);
    return ERR_OK;
}

enum err_code validate_served(struct arena *a, const struct option_values *v, const char *path, struct err *e)
{
    struct served s;
    struct served_group *groups = NULL;
    enum table_format format;
    struct out *o;
    size_t n = 0;
    const char *plot = option_get(v, "plot");
    const bool all = option_given(v, "rows");
    unsigned by;
    TRY(only_servers(v, e));
    TRY(read_by(v, &by, e));
    TRY(table_format_parse(option_get(v, "format"), &format, e));
    if (plot) TRY(plot_check("scatter", plot, e));
    TRY(served_read(a, path, &s, e));
    TRY(served_predict(a, &s, e));
    TRY(served_leave_out(&s, e));
    if (!all) TRY(served_groups(a, &s, by, &groups, &n, e));
    const char *notes[REASONS_MAX + 4] = {"TPOT of each family is predicted by terms fitted to the others."};
    size_t notes_n = 1;
    TRY(reasons(a, &s, notes, &notes_n, e));
    size_t scored = 0;
    for (size_t i = 0; i < s.n; i++) scored += !s.row[i].why;
    if (!scored && !all)
        return notes_n > 1 ? err_set(e, ERR_INPUT, "%s: no row could be scored: %s%s", path, notes[1],
                                     notes_n > 2 ? " And others (--rows)." : "")
                           : err_set(e, ERR_INPUT, "%s: no row behind the header", path);
    const struct table t = {.schema = "ridge.validate.servers.1",
                            .tool = commands_tool(),
                            .scenario_json = option_scenario_json(a, v),
                            .notes = notes,
                            .n_notes = notes_n,
                            .columns = all  ? served_row_columns
                                       : by ? served_load_columns
                                            : served_columns,
                            .n_columns = all  ? served_row_columns_n
                                         : by ? served_load_columns_n
                                              : served_columns_n,
                            .rows = all ? (const void *)s.row : (const void *)groups,
                            .n_rows = all ? s.n : n,
                            .stride_bytes = all ? sizeof *s.row : sizeof *groups};
    if (plot) TRY(draw(a, &s, plot, e));
    if (plot && strcmp(plot, "-") == 0) return ERR_OK;
    TRY(out_open(a, option_get(v, "output"), &o, e));
    TRY(table_write(&t, format, o, e));
    return out_commit(o, e);
}
