/* plan_source -- of an encoder-decoder the source that is in front of every prompt. MODEL.md "Encoder-decoders",
 * *Served*. */
#include <string.h>

#include "calc/cli/plan_parts.h"

/* What is not planned of one: an option, and why. */
static enum err_code refuse(const struct option_values *v, const struct model *m, struct err *e)
{
    static const char UNMEASURED[] = "no kernels of one are measured (--fidelity roofline or bound)",
                      UNSHARED[] = "engines share no prompts of one (--prefix-cache, --kv-offloading-size)";
    static const struct {
        const char *option, *why;
    } NOT[] = {{"draft", "drafts for one are not described (--draft)"},
               {"disagg", "no engine is known to send its caches between pools (--disagg)"},
               {"prefix-cache", UNSHARED},
               {"kv-offloading-size", UNSHARED},
               {"max-loras", "adapters of one are not described (--max-loras)"},
               {"server", "steps of a server with one are not measured (--fidelity roofline or bound)"},
               {"efficiency", UNMEASURED},
               {"framework", UNMEASURED}};
    for (size_t i = 0; i < sizeof NOT / sizeof *NOT; i++)
        if (option_given(v, NOT[i].option)) TRY(model_refuse_encoder(m, NOT[i].why, e));
    const char *fidelity = option_get(v, "fidelity");
    return fidelity && strcmp(fidelity, "calibrated") == 0 ? model_refuse_encoder(m, UNMEASURED, e) : ERR_OK;
}

enum err_code plan_source_open(const struct option_values *v, struct model *m, struct plan_case *c, struct err *e)
{
    int64_t source = 0;
    TRY(option_count(v, "source", 1, WORKLOAD_TOKENS_MAX, &source, e));
    c->short_source = source > 0 && source < m->encoder.source_tokens;
    if (source > 0) TRY(model_set_source(m, source, e));
    TRY(refuse(v, m, e));
    if (m->encoder.layers > 0 && m->encoder.source_tokens == 0)
        return err_set(e, ERR_USAGE, "%s: its file does not say how long a source is: --source N", m->name);
    c->source = model_source_ahead(m);
    return ERR_OK;
}

const char *plan_source_prompt(struct arena *a, const struct option_values *v, const struct plan_case *c)
{
    const struct model *m = c->format[0].model;
    if (m->encoder.layers == 0 || option_given(v, "prompt")) return option_get(v, "prompt");
    return arena_printf(a, "%lld", (long long)m->encoder.start_tokens);
}

enum err_code plan_source_whole(struct arena *a, struct plan_case *c, struct err *e)
{
    struct planner_request *q = &c->request;
    int64_t *kept = arena_array(a, q->step_tokens_n, sizeof *kept);
    size_t n = 0;
    if (!kept) return err_nomem(e);
    for (size_t i = 0; i < q->step_tokens_n; i++)
        if (q->step_tokens[i] > c->source) kept[n++] = q->step_tokens[i];
    if (n == 0)
        return err_set(e, ERR_USAGE, "--max-num-batched-tokens: engines encode a source of %lld tokens whole",
                       (long long)c->source);
    q->step_tokens = kept;
    q->step_tokens_n = n;
    return ERR_OK;
}
