#include "calc/cli/model_shapes.h"

#include <math.h>
#include <string.h>

#include "calc/base/units.h"
#include "calc/fit/rows_formats.h"
#include "calc/model/stored.h"

enum { BATCHES_MAX = 500, BATCH_MAX = 1 << 20, TOKENS_MAX = 1 << 24 };

enum err_code model_shapes_check(const struct option_values *v, struct err *e)
{
    static const char *const OF_MODEL[] = {"weights", "batch", "context", "prompt"};
    for (size_t i = 0; i < sizeof OF_MODEL / sizeof OF_MODEL[0]; i++)
        if (option_given(v, OF_MODEL[i]) && !option_get(v, "model"))
            return err_set(e, ERR_USAGE, "--%s: of the model of -m, and there is none", OF_MODEL[i]);
    return ERR_OK;
}

enum err_code model_shapes_open(struct arena *a, const struct option_values *v, const struct hw *hw,
                                struct model *model, struct shapes *out, struct err *e)
{
    const int64_t *batch;
    int64_t context, prompt;
    size_t n;
    *out = (struct shapes){.n = 0};
    if (units_parse_range(a, option_get(v, "batch"), 1, BATCH_MAX, &batch, &n, e) != ERR_OK)
        return e ? err_prepend(e, "--batch: ") : ERR_USAGE;
    if (n > BATCHES_MAX) return err_set(e, ERR_RANGE, "--batch: %zu of them, at most %d", n, BATCHES_MAX);
    TRY(option_count(v, "context", 1, TOKENS_MAX, &context, e));
    TRY(option_count(v, "prompt", 1, TOKENS_MAX, &prompt, e));
    TRY(model_load(a, option_get(v, "model"), NULL, 0, model, e));
    if (option_get(v, "weights")) TRY(stored_set_all(model, option_get(v, "weights"), e));
    if (model->weights_unknown)
        return err_set(e, ERR_INPUT, "%s: %s; state the format with --weights", model->source, model->weights_unknown);
    for (size_t i = 0; i < n; i++) {
        const struct shapes_point decode = {STEP_DECODE, (double)batch[i], 1, (double)context};
        TRY(shapes_of_model(a, model, hw, &decode, out, e));
    }
    const struct shapes_point prefill = {STEP_PREFILL, 1, (double)prompt, (double)prompt};
    return shapes_of_model(a, model, hw, &prefill, out, e);
}

/* -- as points of a plan -- */

/* Whether a kernel of the machine has rows as a point's. */
static bool has_kind(const struct wire_device *d, const struct plan_point *p)
{
    size_t i = 0;
    while (i < d->kernels_n && !plan_point_is_of(p, &d->kernels[i])) i++;
    return i < d->kernels_n;
}

/* Each sentence once; room for one more of them. */
static enum err_code leave_out(struct arena *a, const struct shape *s, const char **out, size_t *n, struct err *e)
{
    const char *text =
        arena_printf(a, "%s: no kernel here has rows of kind %s.", s->op, kernel_kind_name(s->kernel.kind));
    size_t i = 0;
    if (!text) return err_nomem(e);
    while (i < *n && strcmp(out[i], text) != 0) i++;
    if (i == *n) out[(*n)++] = text;
    return ERR_OK;
}

static struct plan_point point_of(struct arena *a, const struct shape *s)
{
    const struct rows_format *f = rows_format_of(&s->kernel);
    struct plan_point p = {.row_kind = kernel_kind_name(s->kernel.kind),
                           .dtype = s->dtype,
                           .ones = shape_ones(a, &s->kernel),
                           .kernel = f ? f->op : NULL};
    const char *name;
    double v;
    for (size_t i = 0; shape_number(&s->kernel, i, &name, &v); i++) {
        if (isnan(v) || p.shape.n == WIRE_ARGS_MAX) continue;
        p.shape.arg[p.shape.n].name = name;
        p.shape.arg[p.shape.n++].value = (int64_t)v;
    }
    return p;
}

/* A point in each format of a list, its own without one. */
static enum err_code add_formats(struct arena *a, const struct plan_point *p, const char *dtypes,
                                 struct plan_point *out, size_t *n, struct err *e)
{
    if (!dtypes) out[(*n)++] = *p;
    for (const char *s = dtypes; s && *s;) {
        const size_t len = strcspn(s, ",");
        out[*n] = *p;
        out[*n].dtype = arena_strndup(a, s, len);
        if (!out[(*n)++].dtype) return err_nomem(e);
        s += len + (s[len] == ',');
    }
    return ERR_OK;
}

enum err_code model_shapes_points(struct arena *a, const struct option_values *v, const struct wire_device *device,
                                  struct plan_request *q, const char ***left_out, size_t *left_out_n, struct err *e)
{
    struct model model;
    struct shapes s;
    const char *dtypes = option_get(v, "dtype");
    size_t n = 0, formats = 1;
    if (q->shape) return err_set(e, ERR_USAGE, "--shape: -m already says which");
    TRY(model_shapes_open(a, v, NULL, &model, &s, e));
    for (const char *p = dtypes; p && *p; p++) formats += *p == ',';
    struct plan_point *points = arena_array(a, s.n * formats + 1, sizeof *points);
    const char **lines = arena_array(a, s.n + 1, sizeof *lines);
    if (!points || !lines) return err_nomem(e);
    *left_out_n = 0;
    for (size_t i = 0; i < s.n; i++) {
        const struct plan_point p = point_of(a, &s.v[i]);
        if (!p.ones) return err_nomem(e);
        if (has_kind(device, &p))
            TRY(add_formats(a, &p, dtypes, points, &n, e));
        else
            TRY(leave_out(a, &s.v[i], lines, left_out_n, e));
    }
    *left_out = lines;
    q->points = points;
    q->points_n = n;
    return n ? ERR_OK : err_set(e, ERR_NO, "%s: no kernel here has a kind of its operators", model.name);
}
