#include "calc/cli/model_shapes.h"

#include "calc/base/units.h"
#include "calc/model/stored.h"

enum { BATCH_MAX = 1 << 20, TOKENS_MAX = 1 << 24 };

static enum err_code count(const struct option_values *v, const char *name, int64_t *out, struct err *e)
{
    if (units_parse_count(option_get(v, name), 1, TOKENS_MAX, out, e) == ERR_OK) return ERR_OK;
    return e ? err_prepend(e, "--%s: ", name) : ERR_USAGE;
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
    TRY(count(v, "context", &context, e));
    TRY(count(v, "prompt", &prompt, e));
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
