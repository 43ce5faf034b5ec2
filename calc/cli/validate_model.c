#include "calc/cli/validate_model.h"

#include <math.h>
#include <string.h>

#include "calc/cli/plot.h"

#define ROW(field, kind, unit, heading, help)                                                                          \
    COLUMN_AT(struct operator_row, field, kind, unit, COLUMN_SHOWN, heading, help)

const struct column operator_columns[] = {
    ROW(phase, COLUMN_STRING, UNITS_NONE, "phase", "prefill or decode"),
    ROW(batch, COLUMN_INT, UNITS_NONE, "batch", "sequences of the step"),
    ROW(op, COLUMN_STRING, UNITS_NONE, "operator", "of the model; a layer: the sum of its measured operators"),
    ROW(sizes, COLUMN_STRING, UNITS_NONE, "sizes", "of a call, as rows of its kind have them"),
    ROW(dtype, COLUMN_STRING, UNITS_NONE, "format", "of weights or cache"),
    ROW(calls, COLUMN_INT, UNITS_NONE, "calls", "in a step; of a layer, layers like it"),
    ROW(kernel, COLUMN_STRING, UNITS_NONE, "kernel", "the fastest code that was measured"),
    ROW(bound_s, COLUMN_REAL, UNITS_SECONDS, "bound", "max(flops/peak, bytes/bandwidth)"),
    ROW(calibrated_s, COLUMN_REAL, UNITS_SECONDS, "calibrated", "calibrated time"),
    ROW(measured_s, COLUMN_REAL, UNITS_SECONDS, "measured", "measured time"),
    ROW(ratio, COLUMN_REAL, UNITS_RATIO, "meas/bound", "measured over the bound"),
    ROW(calibrated_ratio, COLUMN_REAL, UNITS_RATIO, "meas/calib", "measured over the calibrated time"),
    ROW(covered_frac, COLUMN_REAL, UNITS_FRAC, "covered", "of a layer: part of its bound that was measured"),
};
const size_t operator_columns_n = sizeof operator_columns / sizeof operator_columns[0];

static bool is_cold(const struct validate_row *r) { return strcmp(r->row->state, "hot") != 0; }

/* Whether a later row repeats this one's code on the same call. */
static bool is_repeated(const struct validate_row *rows, size_t i, size_t n, const struct shape *s)
{
    for (size_t j = i + 1; j < n; j++)
        if (shape_is(s, rows[j].row) && is_cold(&rows[j]) && strcmp(rows[j].class_name, rows[i].class_name) == 0 &&
            strcmp(rows[j].row->kernel_name, rows[i].row->kernel_name) == 0)
            return true;
    return false;
}

static const struct validate_row *best_of(const struct shape *s, const struct validate_row *rows, size_t n)
{
    const struct validate_row *best = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!shape_is(s, rows[i].row) || !is_cold(&rows[i])) continue;
        if (best && best->measured_s <= rows[i].measured_s) continue;
        if (!is_repeated(rows, i, n, s)) best = &rows[i];
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
                                 .covered_frac = nan};
    finish(out);
    return out->sizes ? ERR_OK : err_nomem(e);
}

/* What a layer's calls add up to. */
struct sum {
    double all_s, bound_s, calibrated_s, measured_s; /* all_s: the bound of those too that were not measured */
};

static void add_to(struct sum *sum, const struct shape *x, const struct operator_row *call)
{
    const double times = (double)x->count / (double)x->layers;
    sum->all_s += times * call->bound_s;
    if (isnan(call->measured_s)) return;
    sum->bound_s += times * call->bound_s;
    sum->calibrated_s += times * call->calibrated_s;
    sum->measured_s += times * call->measured_s;
}

static bool is_of_mlp(const char *op)
{
    return strcmp(op, "up_proj") == 0 || strcmp(op, "down_proj") == 0 || strcmp(op, "mlp_act") == 0;
}

/* One layer of the kind that shape `at` is the first of: the sum over the measured calls of its phase and batch. An MLP
 * counts once: whole where that was measured, and took less than its products or they were not all. */
static struct operator_row layer_of(const struct model *m, const struct shapes *s, const struct operator_row *call,
                                    size_t at)
{
    const struct shape *first = &s->v[at];
    struct operator_row r = {.phase = first->phase,
                             .op = m->kinds_n > 1 ? m->kinds[first->kind_index].label : "layer",
                             .batch = (int64_t)first->batch,
                             .calls = first->layers};
    struct sum rest = {.all_s = 0}, parts = rest, whole = rest;
    for (size_t i = at; i < s->n; i++) {
        const struct shape *x = &s->v[i];
        if (x->kind_index != first->kind_index || strcmp(x->phase, first->phase) != 0 || x->batch != first->batch)
            continue;
        add_to(x->whole ? &whole : is_of_mlp(x->op) ? &parts : &rest, x, &call[i]);
    }
    const bool all = parts.bound_s >= parts.all_s && parts.measured_s <= whole.measured_s;
    const struct sum *mlp = whole.measured_s > 0 && !all ? &whole : &parts;
    r.bound_s = rest.bound_s + mlp->bound_s;
    r.calibrated_s = rest.calibrated_s + mlp->calibrated_s;
    r.measured_s = rest.measured_s + mlp->measured_s;
    r.covered_frac = r.bound_s / (rest.all_s + mlp->all_s);
    if (!(r.measured_s > 0)) r.bound_s = r.calibrated_s = r.measured_s = (double)NAN;
    finish(&r);
    return r;
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

enum err_code validate_model_rows(struct arena *a, const struct model *m, const struct shapes *shapes,
                                  const struct validate_row *rows, size_t n, struct operator_row **out, size_t *out_n,
                                  struct err *e)
{
    struct operator_row *v = arena_array(a, 2 * shapes->n + 1, sizeof *v);
    size_t measured = 0, at = shapes->n;
    if (!v) return err_nomem(e);
    for (size_t i = 0; i < shapes->n; i++) {
        const struct validate_row *best = best_of(&shapes->v[i], rows, n);
        measured += best != NULL;
        TRY(add_call(a, &shapes->v[i], best, &v[i], e));
    }
    if (!measured)
        return err_set(e, ERR_NO,
                       "no row is a call of %.60s at this batch, context and prompt: ridge probe run -m with the same",
                       m->name);
    for (size_t i = 0; i < shapes->n; i++)
        if (is_first_of_layer(shapes, i)) v[at++] = layer_of(m, shapes, v, i);
    *out = v;
    *out_n = at;
    return ERR_OK;
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

static enum err_code put_calls(struct arena *a, const struct hw *hw, const struct shapes *shapes,
                               const struct validate_row *rows, size_t n, struct out *csv, struct err *e)
{
    for (size_t i = 0; i < shapes->n; i++) {
        const struct shape *s = &shapes->v[i];
        const struct validate_row *best = best_of(s, rows, n);
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

enum err_code validate_draw(struct arena *a, const struct hw *hw, const struct shapes *shapes,
                            const struct validate_row *rows, size_t n, const char *output, struct err *e)
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
    if (shapes)
        TRY(put_calls(a, hw, shapes, rows, n, csv, e));
    else
        TRY(put_all(a, hw, rows, n, csv, e));
    const struct plot_request r = {.kind = "roofline",
                                   .csv = out_text(csv, NULL),
                                   .ceilings_csv = out_text(roofs, NULL),
                                   .title = "Measured kernels on the roofline of their device",
                                   .subtitle = hw->name,
                                   .output = output};
    if (!r.csv || !r.ceilings_csv) return err_nomem(e);
    return plot_render(a, &r, e);
}
