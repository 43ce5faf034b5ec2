#include "calc/cli/fit_workload.h"

#include <math.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/trace_read.h"
#include "calc/serve/describe.h"

struct row {
    const char *what, *name, *chosen, *text;
    double mean, cv, alpha, log_likelihood, distance;
};

#define ROW(field, kind, heading, help)                                                                                \
    COLUMN_AT(struct row, field, COLUMN_##kind, UNITS_NONE, COLUMN_SHOWN, heading, help)

static const struct column COLUMNS[] = {
    ROW(what, STRING, "what", "prompts, answers (tokens) or gaps between requests (seconds)"),
    ROW(name, STRING, "family", "trace: as it is; else the likeliest of the family"),
    ROW(mean, REAL, "mean", "of the distribution, before it is cut"),
    ROW(cv, REAL, "CV", "standard deviation over mean"),
    ROW(alpha, REAL, "alpha", "exponent of a Pareto tail"),
    COLUMN_AT(struct row, log_likelihood, COLUMN_REAL, UNITS_NONE, 0, "ln L", "of a value, on average"),
    ROW(distance, REAL, "KS", "largest difference to the trace's distribution function"),
    ROW(chosen, STRING, "chosen", "yes: the smallest Schwarz criterion"),
    COLUMN_AT(struct row, text, COLUMN_STRING, UNITS_NONE, 0, "option", "as ridge simulate takes it"),
};

static void add_lengths(const char *what, const struct describe_lengths *l, struct row *rows, size_t *n)
{
    const double unknown = (double)NAN;
    rows[(*n)++] = (struct row){what, "trace", NULL, NULL, l->mean, l->cv, unknown, unknown, unknown};
    for (size_t i = 0; i < DESCRIBE_FITS; i++) {
        const struct describe_fit *f = &l->fit[i];
        if (!*f->text) continue;
        rows[(*n)++] = (struct row){what,  f->name,  f->chosen ? "yes" : "no", f->text,    f->mean,
                                    f->cv, f->alpha, f->log_likelihood,        f->distance};
    }
}

static const char *chosen(const struct describe_lengths *l)
{
    for (size_t i = 0; i < DESCRIBE_FITS; i++)
        if (l->fit[i].chosen) return l->fit[i].text;
    return "";
}

static const char *sentence(struct arena *a, const struct describe_arrivals *r)
{
    struct out *o;
    if (out_memory(a, &o, NULL) != ERR_OK) return NULL;
    out_printf(o, "variance over mean of the requests in windows (1 of a Poisson process):");
    for (size_t i = 0; i < DESCRIBE_WINDOWS; i++)
        if (!isnan(r->dispersion[i]))
            out_printf(o, "%s %.3g in %g s", i > 0 ? "," : "", r->dispersion[i], r->window_s[i]);
    if (!isnan(r->swing_frac)) out_printf(o, "; over a day the rate swings by %.3g of itself", r->swing_frac);
    if (r->ties) out_printf(o, "; several requests have one time, so the CV of gaps is that of their moments");
    return out_text(o, NULL);
}

static enum err_code write_summary(struct arena *a, const struct describe *d, const char *note,
                                   const struct option_values *v, enum table_format format, struct err *e)
{
    const struct describe_arrivals *r = &d->arrivals;
    const double unknown = (double)NAN;
    struct row *rows = arena_array(a, 2 * DESCRIBE_FITS + 5, sizeof *rows);
    const char **notes = arena_array(a, 2, sizeof *notes);
    struct out *o;
    size_t n = 0;
    if (!rows || !notes) return err_nomem(e);
    add_lengths("prompts", &d->prompt, rows, &n);
    add_lengths("answers", &d->output, rows, &n);
    struct table t = {.columns = COLUMNS,
                      .n_columns = sizeof COLUMNS / sizeof *COLUMNS,
                      .rows = rows,
                      .stride_bytes = sizeof *rows,
                      .schema = "ridge.workload.fit.1",
                      .tool = commands_tool(),
                      .scenario_json = option_scenario_json(a, v),
                      .notes = notes};
    if (!isnan(r->rate_per_s)) {
        const double gap_s = 1 / r->rate_per_s;
        const bool gamma = strncmp(r->text, "gamma", 5) == 0, poisson = strcmp(r->text, "poisson") == 0;
        rows[n++] = (struct row){"gaps", "trace", NULL, NULL, gap_s, r->cv, unknown, unknown, unknown};
        rows[n++] = (struct row){"gaps",  "gamma", gamma ? "yes" : "no", gamma ? r->text : NULL, gap_s, r->gamma_cv,
                                 unknown, unknown, r->distance};
        rows[n++] = (struct row){"gaps",  "exponential", poisson ? "yes" : "no", "poisson", gap_s, 1,
                                 unknown, unknown,       r->poisson_distance};
        notes[t.n_notes] = sentence(a, r);
        if (!notes[t.n_notes++]) return err_nomem(e);
    }
    if (note) notes[t.n_notes++] = note;
    t.n_rows = n;
    TRY(out_open(a, NULL, &o, e));
    TRY(table_write(&t, format, o, e));
    return out_commit(o, e);
}

static void put_string(struct out *o, const char *s)
{
    const size_t len = strlen(s);
    out_char(o, '"');
    for (size_t i = 0, used; i < len; i += used) {
        char piece[TEXT_JSON_MAX];
        out_write(o, piece, text_json_char(piece, s + i, len - i, &used));
    }
    out_char(o, '"');
}

/* The form of configs/workloads, and the distributions. */
static enum err_code write_workload(struct arena *a, const struct describe *d, const struct option_values *v,
                                    struct err *e)
{
    const char *source = option_get(v, "source") ? option_get(v, "source") : option_get(v, "from");
    const char *path = option_get(v, "output");
    struct out *o;
    TRY(out_open(a, path, &o, e));
    out_printf(o,
               "{\n  \"description\": \"distributions of %zu requests\",\n  \"prompt_tokens\": %.0f,\n"
               "  \"generate_tokens\": %.0f,\n  \"prompt\": \"%s\",\n  \"generate\": \"%s\",\n",
               d->n, fmax(round(d->prompt.mean), 1), fmax(round(d->output.mean), 1), chosen(&d->prompt),
               chosen(&d->output));
    if (!isnan(d->arrivals.rate_per_s))
        out_printf(o, "  \"arrivals\": \"%s\",\n  \"rate_per_s\": %.6g,\n", d->arrivals.text, d->arrivals.rate_per_s);
    out_str(o, "  \"source\": ");
    put_string(o, source);
    out_str(o, "\n}\n");
    return out_commit(o, e);
}

enum err_code fit_workload_run(struct arena *a, const struct option_values *v, enum table_format format, struct err *e)
{
    static const char *const KERNELS[] = {"device", "framework", "kind", "splits", "plot"};
    struct workload w;
    struct describe d;
    for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++)
        if (option_given(v, KERNELS[i]))
            return err_set(e, ERR_USAGE, "--workload fits requests of a trace; --%s is of kernels", KERNELS[i]);
    TRY(trace_read(a, option_get(v, "from"), &w, e));
    TRY(describe_work(a, &w, &d, e));
    if (option_get(v, "output")) TRY(write_workload(a, &d, v, e));
    if (option_get(v, "output") && strcmp(option_get(v, "output"), "-") == 0) return ERR_OK;
    return write_summary(a, &d, w.note, v, format, e);
}
