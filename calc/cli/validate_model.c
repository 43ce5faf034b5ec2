#include "calc/cli/validate_model.h"

#include <math.h>
#include <string.h>

#include "calc/cli/plot.h"

#define ROW(field, kind, unit, heading, help)                                                                          \
    COLUMN_AT(struct operator_row, field, kind, unit, COLUMN_SHOWN, heading, help)

#define SPARE_ROW(field, kind, unit, heading, help)                                                                    \
    COLUMN_AT(struct operator_row, field, kind, unit, COLUMN_SHOWN | COLUMN_SPARE, heading, help)

#define TIME(field, heading, help)                                                                                     \
    COLUMN_AT(struct operator_row, field, COLUMN_REAL, UNITS_SECONDS, COLUMN_SHOWN | COLUMN_ALIKE, heading, help)

const struct column operator_columns[] = {
    ROW(phase, COLUMN_STRING, UNITS_NONE, "phase", "prefill or decode"),
    ROW(batch, COLUMN_INT, UNITS_NONE, "batch", "sequences of the step"),
    ROW(op, COLUMN_STRING, UNITS_NONE, "operator",
        "of the model; a layer, the step: the sum of their operators, (measured): of those that were measured"),
    SPARE_ROW(sizes, COLUMN_STRING, UNITS_NONE, "sizes", "of a call, as rows of its kind have them"),
    SPARE_ROW(dtype, COLUMN_STRING, UNITS_NONE, "format", "of weights or cache"),
    SPARE_ROW(calls, COLUMN_INT, UNITS_NONE, "calls", "in a step; of a layer, layers like it"),
    SPARE_ROW(kernel, COLUMN_STRING, UNITS_NONE, "kernel", "the fastest code that was measured"),
    TIME(bound_s, "bound", "max(flops/peak, bytes/bandwidth)"),
    TIME(calibrated_s, "fitted", "calibrated time"),
    TIME(measured_s, "measured", "measured time"),
    ROW(ratio, COLUMN_REAL, UNITS_RATIO, "/bound", "measured over the bound"),
    SPARE_ROW(calibrated_ratio, COLUMN_REAL, UNITS_RATIO, "/calib", "measured over the calibrated time"),
    ROW(covered_frac, COLUMN_REAL, UNITS_FRAC, "part",
        "of a layer and a step: part of the bound of their operators that was measured"),
    TIME(whole_bound_s, "whole", "of a layer and a step: the bound of all their calls"),
};
const size_t operator_columns_n = sizeof operator_columns / sizeof operator_columns[0];

static bool is_cold(const struct validate_row *r) { return strcmp(r->row->state, "hot") != 0; }

/* Whether a later row repeats this one's code on the same call, and on a machine no noisier. */
static bool is_repeated(const struct validate_row *rows, size_t i, size_t n, const struct shape *s)
{
    for (size_t j = i + 1; j < n; j++)
        if (shape_is(s, rows[j].row) && is_cold(&rows[j]) && rows[j].row->uncalibrated <= rows[i].row->uncalibrated &&
            strcmp(rows[j].class_name, rows[i].class_name) == 0 &&
            strcmp(rows[j].row->kernel_name, rows[i].row->kernel_name) == 0)
            return true;
    return false;
}

/* Whether x stands for a call rather than y: one's own, or imported ones as asked for, before the others; of those one
 * from a machine quiet enough; of those the fastest code. */
static bool is_better(const struct validate_row *x, const struct validate_row *y, bool imported)
{
    if ((x->row->imported == imported) != (y->row->imported == imported)) return x->row->imported == imported;
    if (x->row->uncalibrated != y->row->uncalibrated) return !x->row->uncalibrated;
    return x->measured_s < y->measured_s;
}

static const struct validate_row *best_of(const struct shape *s, const struct operator_rows *of)
{
    const struct validate_row *best = NULL;
    for (size_t i = 0; i < of->n; i++) {
        const struct validate_row *r = &of->rows[i];
        if (!shape_is(s, r->row) || !is_cold(r) || is_repeated(of->rows, i, of->n, s)) continue;
        if (!best || is_better(r, best, of->imported)) best = r;
    }
    return best;
}

static const char *sizes_of(struct arena *a, const struct kernel *k)
{
    const char *text = "", *name;
    double v;
    for (size_t i = 0; text && shape_number(k, i, &name, &v); i++)
        if (!isnan(v)) text = arena_printf(a, "%s%s%.0f", text, i ? "x" : "", v);
    return text;
}

static void finish(struct operator_row *r)
{
    r->ratio = r->measured_s / r->bound_s;
    r->calibrated_ratio = r->measured_s / r->calibrated_s;
}

static enum err_code add_call(struct arena *a, const struct shape *s, const struct validate_row *best,
                              struct operator_row *out, struct err *e)
{
    const double nan = (double)NAN;
    *out = (struct operator_row){.phase = s->phase,
                                 .op = s->op,
                                 .sizes = sizes_of(a, &s->kernel),
                                 .dtype = s->dtype,
                                 .kernel = best ? best->row->kernel_name : NULL,
                                 .batch = (int64_t)s->batch,
                                 .calls = s->count,
                                 .bound_s = best ? best->bound_s : s->bound_s,
                                 .calibrated_s = best ? best->calibrated_s : nan,
                                 .measured_s = best ? best->measured_s : nan,
                                 .covered_frac = nan,
                                 .whole_bound_s = nan};
    finish(out);
    return out->sizes ? ERR_OK : err_nomem(e);
}

/* What a layer's calls add up to. */
struct sum {
    double all_s, known_s;                    /* bounds by the ceilings of the device: of all; of what was measured */
    double bound_s, calibrated_s, measured_s; /* of what was measured; NAN where one of it has none */
    double fitted_s, fitted_measured_s;       /* of those that were fitted too: foretold, measured */
};

static void add_to(struct sum *sum, const struct shape *x, const struct operator_row *call)
{
    const double times = (double)x->count / (double)x->layers;
    const double floor_s = isnan(call->bound_s) ? x->bound_s : call->bound_s;
    sum->all_s += times * floor_s;
    if (isnan(call->measured_s)) return;
    sum->known_s += times * floor_s;
    sum->bound_s += times * call->bound_s;
    sum->calibrated_s += times * call->calibrated_s;
    sum->measured_s += times * call->measured_s;
    if (isnan(call->calibrated_s)) return;
    sum->fitted_s += times * call->calibrated_s;
    sum->fitted_measured_s += times * call->measured_s;
}

static struct sum add_sums(struct sum x, double times, struct sum y)
{
    x.all_s += times * y.all_s;
    x.known_s += times * y.known_s;
    x.bound_s += times * y.bound_s;
    x.calibrated_s += times * y.calibrated_s;
    x.measured_s += times * y.measured_s;
    x.fitted_s += times * y.fitted_s;
    x.fitted_measured_s += times * y.fitted_measured_s;
    return x;
}

static bool is_of_mlp(const char *op)
{
    return strcmp(op, "up_proj") == 0 || strcmp(op, "down_proj") == 0 || strcmp(op, "mlp_act") == 0;
}

static bool is_beside(const struct shape *x, const struct shape *y)
{
    return strcmp(x->phase, y->phase) == 0 && x->batch == y->batch;
}

/* One layer of the kind that shape `at` is the first of: the sum over the measured calls of its phase and batch. An MLP
 * counts once: whole where that was measured, and took less than its products or they were not all. */
static struct sum layer_of(const struct shapes *s, const struct operator_row *call, size_t at)
{
    struct sum rest = {.all_s = 0}, parts = rest, whole = rest;
    for (size_t i = 0; i < s->n; i++) {
        const struct shape *x = &s->v[i];
        if (x->kind_index != s->v[at].kind_index || !is_beside(x, &s->v[at])) continue;
        add_to(x->whole ? &whole : is_of_mlp(x->op) ? &parts : &rest, x, &call[i]);
    }
    const bool all = parts.known_s >= parts.all_s && parts.measured_s <= whole.measured_s;
    return add_sums(rest, 1, whole.measured_s > 0 && !all ? whole : parts);
}

/* Whether calls are missing in a sum: one that is measured whole is added up in the same order as all_s. */
static bool is_part(struct sum sum) { return !(sum.known_s >= sum.all_s); }

static enum err_code add_row(struct arena *a, const struct shape *first, const char *op, int64_t calls, struct sum sum,
                             struct operator_row *out, struct err *e)
{
    const char *name = is_part(sum) ? arena_printf(a, "%s (measured)", op) : op;
    if (!name) return err_nomem(e);
    struct operator_row r = {.phase = first->phase,
                             .op = name,
                             .batch = (int64_t)first->batch,
                             .calls = calls,
                             .bound_s = sum.bound_s,
                             .calibrated_s = sum.calibrated_s,
                             .measured_s = sum.measured_s,
                             .covered_frac = sum.known_s / sum.all_s,
                             .whole_bound_s = sum.all_s};
    if (!(r.measured_s > 0)) r.bound_s = r.calibrated_s = r.measured_s = (double)NAN;
    finish(&r);
    *out = r;
    return ERR_OK;
}

static bool is_first_of_layer(const struct shapes *s, size_t at)
{
    if (s->v[at].kind_index < 0) return false;
    for (size_t i = 0; i < at; i++)
        if (s->v[i].kind_index == s->v[at].kind_index && strcmp(s->v[i].phase, s->v[at].phase) == 0 &&
            s->v[i].batch == s->v[at].batch)
            return false;
    return true;
}

/* The whole step of the phase and batch of shape `at`: every layer, and what is outside of them. */
static struct sum step_of(const struct shapes *s, const struct operator_row *call, size_t at)
{
    struct sum step = {.all_s = 0};
    for (size_t i = 0; i < s->n; i++) {
        struct sum one = {.all_s = 0};
        const struct shape *x = &s->v[i];
        if (!is_beside(x, &s->v[at])) continue;
        if (is_first_of_layer(s, i)) {
            step = add_sums(step, (double)x->layers, layer_of(s, call, i));
        } else if (x->kind_index < 0) {
            const struct shape once = {.count = x->count, .layers = 1, .bound_s = x->bound_s};
            add_to(&one, &once, &call[i]);
            step = add_sums(step, 1, one);
        }
    }
    return step;
}

static bool is_first_of_step(const struct shapes *s, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (is_beside(&s->v[i], &s->v[at])) return false;
    return true;
}

/* Whether a call is in the sum of its step, or stands for others that are: an MLP by its products, or they by it. */
static bool is_covered(const struct shapes *s, const struct operator_row *call, size_t at)
{
    const struct shape *x = &s->v[at];
    if (!isnan(call[at].measured_s)) return true;
    if (!x->whole && !is_of_mlp(x->op)) return false;
    bool whole = false, parts = true;
    for (size_t i = 0; i < s->n; i++) {
        const struct shape *y = &s->v[i];
        if (y->kind_index != x->kind_index || !is_beside(x, y)) continue;
        whole = whole || (y->whole && !isnan(call[i].measured_s));
        parts = parts && (y->whole || !is_of_mlp(y->op) || !isnan(call[i].measured_s));
    }
    return whole || parts;
}

/* The calls that the step of shape `at` lacks: "kv_write, attention". NULL: no memory. */
static const char *missing_of_step(struct arena *a, const struct shapes *s, const struct operator_row *call, size_t at)
{
    const char *list = "";
    for (size_t i = at; list && i < s->n; i++) {
        bool again = false;
        if (!is_beside(&s->v[i], &s->v[at]) || is_covered(s, call, i)) continue;
        for (size_t j = at; j < i; j++)
            again = again ||
                    (is_beside(&s->v[j], &s->v[at]) && strcmp(s->v[j].op, s->v[i].op) == 0 && !is_covered(s, call, j));
        if (!again) list = arena_printf(a, "%s%s%s", list, *list ? ", " : "", s->v[i].op);
    }
    return list;
}

/* " Not measured of decode, batch 1: 3.5 % of the floor's time, batch 5: 3.4 %: kv_write, attention." of the batches
 * that lack the same as the one of shape `at`, "" where an earlier one said it. NULL: no memory. */
static const char *missing_of_batches(struct arena *a, const struct shapes *s, const struct operator_row *call,
                                      size_t at)
{
    const char *list = missing_of_step(a, s, call, at), *text = "";
    if (!list || !*list) return list;
    for (size_t i = 0; text && i < s->n; i++) {
        if (!is_first_of_step(s, i) || strcmp(s->v[i].phase, s->v[at].phase) != 0) continue;
        const char *other = missing_of_step(a, s, call, i);
        if (!other) return NULL;
        if (strcmp(other, list) != 0) continue;
        if (i < at) return "";
        const struct sum step = step_of(s, call, i);
        text = arena_printf(a, "%s, batch %.0f: %.3g %%%s", text, s->v[i].batch, 100 * (1 - step.known_s / step.all_s),
                            *text ? "" : " of the floor's time");
    }
    return text ? arena_printf(a, " Not measured of %s%s: %s.", s->v[at].phase, text, list) : NULL;
}

/* " Fitted of decode, batch 1: 93.1 % of the time measured, foretold 1.2 % longer." "": nothing of it. NULL: no memory.
 */
static const char *fitted_of_step(struct arena *a, const struct shapes *s, const struct operator_row *call, size_t at)
{
    const struct sum step = step_of(s, call, at);
    const double off = step.fitted_s / step.fitted_measured_s - 1;
    if (!(step.fitted_measured_s > 0)) return "";
    return arena_printf(a, " Fitted of %s, batch %.0f: %.3g %% of the time measured, foretold %.1f %% %s.",
                        s->v[at].phase, s->v[at].batch, 100 * step.fitted_measured_s / step.measured_s, 100 * fabs(off),
                        off < 0 ? "shorter" : "longer");
}

/* " 3 calls have no bound: ..." and " 2 calls are faster than their bound: ..." by operator. NULL: no memory. */
static const char *say_unbounded(struct arena *a, const struct shapes *s, const struct operator_row *call)
{
    const char *none = "", *below = "";
    for (size_t i = 0; i < s->n && none && below; i++) {
        const bool unbounded = !isnan(call[i].measured_s) && isnan(call[i].bound_s);
        if (!unbounded && !(call[i].measured_s < call[i].bound_s)) continue;
        const char **list = unbounded ? &none : &below;
        *list = arena_printf(a, "%s%s%s %s, batch %.0f", *list, **list ? "; " : "", s->v[i].op, s->v[i].phase,
                             s->v[i].batch);
    }
    if (none && *none)
        none = arena_printf(
            a, " No ceilings could be measured around these, so neither they nor sums of them have a bound: %s.", none);
    if (below && *below)
        below = arena_printf(a, " Measured below the bound, by ceilings that were too low around them: %s.", below);
    return none && below ? arena_printf(a, "%s%s", none, below) : NULL;
}

static enum err_code say_missing(struct arena *a, const struct shapes *s, const struct operator_row *call,
                                 const char **out, struct err *e)
{
    const char *text = "", *fitted = "", *others = "", *one, *two;
    for (size_t i = 0; i < s->n; i++) {
        if (!is_first_of_step(s, i)) continue;
        one = missing_of_batches(a, s, call, i);
        two = fitted_of_step(a, s, call, i);
        if (!one || !two) return err_nomem(e);
        text = arena_printf(a, "%s%s", text, one);
        fitted = arena_printf(a, "%s%s", fitted, two);
        if (!text || !fitted) return err_nomem(e);
    }
    for (size_t i = 0; others && i < s->others_n; i++)
        others = arena_printf(a, "%s%s%s", others, i ? ", " : "", s->others[i]);
    if (others && *others) others = arena_printf(a, " No calls of a kind of rows, so in no sum: %s.", others);
    const char *unbounded = say_unbounded(a, s, call);
    if (!others || !unbounded) return err_nomem(e);
    *out = arena_printf(a,
                        "layer, step (measured): sums of what was measured; part: that of the bound of the "
                        "whole.%s%s%s%s",
                        unbounded, fitted, text, others);
    return *out ? ERR_OK : err_nomem(e);
}

enum err_code validate_model_rows(struct arena *a, const struct operator_rows *of, struct operator_row **out,
                                  size_t *out_n, const char **missing, struct err *e)
{
    const struct shapes *s = of->shapes;
    const struct model *m = of->model;
    struct operator_row *v = arena_array(a, 3 * s->n + 1, sizeof *v);
    size_t measured = 0, at = s->n;
    if (!v) return err_nomem(e);
    for (size_t i = 0; i < s->n; i++) {
        const struct validate_row *best = best_of(&s->v[i], of);
        measured += best != NULL;
        TRY(add_call(a, &s->v[i], best, &v[i], e));
    }
    if (!measured)
        return err_set(e, ERR_NO,
                       "no row is a call of %.60s at this batch, context and prompt: ridge probe run -m with the same",
                       m->name);
    for (size_t i = 0; i < s->n; i++)
        if (is_first_of_layer(s, i))
            TRY(add_row(a, &s->v[i], m->kinds_n > 1 ? m->kinds[s->v[i].kind_index].label : "layer", s->v[i].layers,
                        layer_of(s, v, i), &v[at++], e));
    for (size_t i = 0; i < s->n; i++)
        if (is_first_of_step(s, i)) TRY(add_row(a, &s->v[i], "step", 1, step_of(s, v, i), &v[at++], e));
    *out = v;
    *out_n = at;
    return say_missing(a, s, v, missing, e);
}

/* -- the picture -- */

static enum err_code put_point(struct out *csv, const struct hw *hw, const char *op, const char *phase,
                               const struct validate_row *r)
{
    struct kernel_work w;
    if (kernel_work(&r->row->kernel, hw, &w, NULL) != ERR_OK || !(w.flops > 0)) return ERR_OK;
    out_printf(csv, "%s,%s,%.9e,%.9e,%.9e\n", op, phase, w.flops, w.bytes, r->measured_s);
    return ERR_OK;
}

static enum err_code put_calls(struct arena *a, const struct hw *hw, const struct operator_rows *of, struct out *csv,
                               struct err *e)
{
    for (size_t i = 0; i < of->shapes->n; i++) {
        const struct shape *s = &of->shapes->v[i];
        const struct validate_row *best = best_of(s, of);
        if (!best) continue;
        const char *op = s->batch > 1 ? arena_printf(a, "%s B=%.0f", s->op, s->batch) : s->op;
        if (!op) return err_nomem(e);
        TRY(put_point(csv, hw, op, s->phase, best));
    }
    return ERR_OK;
}

/* The newest row of each call, by the names of classes. */
static enum err_code put_all(struct arena *a, const struct hw *hw, const struct validate_row *rows, size_t n,
                             struct out *csv, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        const struct shape s = {.kernel = rows[i].row->kernel, .dtype = rows[i].row->dtype};
        if (!is_cold(&rows[i]) || is_repeated(rows, i, n, &s)) continue;
        const char *op = arena_printf(a, "%s %s", rows[i].kind, rows[i].row->dtype);
        if (!op) return err_nomem(e);
        TRY(put_point(csv, hw, op, "cold", &rows[i]));
    }
    return ERR_OK;
}

enum err_code validate_draw(struct arena *a, const struct hw *hw, const struct operator_rows *of, const char *output,
                            struct err *e)
{
    static const enum hw_dtype ROOFS[] = {HW_FP32_VECTOR, HW_BF16, HW_FP8};
    struct out *csv, *roofs;
    double below = 0;
    TRY(out_memory(a, &csv, e));
    TRY(out_memory(a, &roofs, e));
    out_str(roofs, "dtype,peak_flops_per_s,bandwidth_bytes_per_s\n");
    for (size_t i = 0; i < sizeof ROOFS / sizeof ROOFS[0]; i++) {
        const double peak = hw->peak_flops_per_s[ROOFS[i]];
        if (!(peak > below)) continue; /* unknown, or another's */
        out_printf(roofs, "%s,%.9e,%.9e\n", ROOFS[i] == HW_FP32_VECTOR ? "fp32" : hw_dtype_name(ROOFS[i]), peak,
                   hw->bandwidth_bytes_per_s);
        below = peak;
    }
    out_str(csv, "op,phase,flops,bytes,time_s\n");
    if (of->shapes)
        TRY(put_calls(a, hw, of, csv, e));
    else
        TRY(put_all(a, hw, of->rows, of->n, csv, e));
    const struct plot_request r = {.kind = "roofline",
                                   .csv = out_text(csv, NULL),
                                   .ceilings_csv = out_text(roofs, NULL),
                                   .title = "Measured kernels on the roofline of their device",
                                   .subtitle = hw->name,
                                   .output = output};
    if (!r.csv || !r.ceilings_csv) return err_nomem(e);
    return plot_render(a, &r, e);
}
