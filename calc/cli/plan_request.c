/* plan_request -- the options of `ridge plan`, all of them, and what comes of them. */
#include <math.h>
#include <string.h>

#include "calc/cli/plan_parts.h"

/* What the engine whose line is asked for cannot start, whatever the plan. */
static enum err_code check_engine(const struct plan_case *c, struct err *e)
{
    const struct planner_request *q = &c->request;
    for (size_t i = 0; i < q->formats_n; i++) {
        const struct layout one = layout_whole(NULL);
        const struct model *m = c->format[i].model;
        const struct emit_plan of = {.layout = one,
                                     .encoder = c->source > 0 ? m->family : NULL,
                                     .short_source = c->short_source,
                                     .towerless = m->towerless};
        if (emit_refusal(c->emit, &of))
            return err_set(e, ERR_USAGE, "--emit %s: %s", emit_name(c->emit), emit_refusal(c->emit, &of));
        const struct emit_plan p = {.layout = one, .kv = c->format[i].kv};
        const struct emit_plan drafted = {.layout = one,
                                          .drafting = c->draft_kind,
                                          .draft_tokens = 1,
                                          .draft_nodes = c->tree_depth > 0 ? c->shape.drafted : 0,
                                          .draft_wide = c->tree_wide};
        if (c->draft && emit_refusal(c->emit, &drafted))
            return err_set(e, ERR_USAGE, "--draft %s beside --emit: %s", c->draft, emit_refusal(c->emit, &drafted));
        const struct emit_plan away = {.layout = one, .offload_bytes = c->offload.bytes};
        if (emit_refusal(c->emit, &away))
            return err_set(e, ERR_USAGE, "--cpu-offload-gb beside --emit: %s", emit_refusal(c->emit, &away));
        if (emit_refusal(c->emit, &p))
            return err_set(e, ERR_USAGE, "--kv %s beside --emit: %s", c->format[i].kv, emit_refusal(c->emit, &p));
    }
    return ERR_OK;
}

enum err_code plan_case_open(struct arena *a, const struct option_values *v, struct plan_case *c, struct err *e)
{
    *c = (struct plan_case){.options = v};
    struct planner_request *q = &c->request;
    if (!option_get(v, "model"))
        return err_set(e, ERR_USAGE, "%s: which model? -m NAME (ridge list models)", v->command->name);
    c->has_emit = option_get(v, "emit") != NULL;
    if (c->has_emit) TRY(emit_find(option_get(v, "emit"), &c->emit, e));
    TRY(option_count(v, "top", 1, 1 << 20, &c->top, e));
    TRY(plan_formats_open(a, v, c, e)); /* a model that is not planned is refused before its traffic is asked for */
    TRY(plan_traffic_open(a, v, c, e));
    TRY(plan_promise_open(v, "ttft", &q->ttft, e));
    TRY(plan_promise_open(v, "tpot", &q->tpot, e));
    if (!isnan(q->tpot.s) && !(q->traffic.outputs[q->traffic.n - 1] > 1))
        return err_set(e, ERR_USAGE,
                       "--tpot: every answer %s is one token, which has no time per output token behind it",
                       c->trace ? "of the trace" : "(--generate)");
    TRY(plan_draft_open(a, v, c, e));
    if (c->draft && model_check_context(&c->draft_model, q->traffic.longest_tokens, e) != ERR_OK)
        return err_prepend(e, "--draft: ");
    TRY(plan_devices_open(a, v, c, e));
    TRY(plan_choice_open(a, v, c, e));
    if (c->max_context_tokens > 0 && q->traffic.longest_tokens > c->max_context_tokens)
        return err_set(e, ERR_USAGE, "%s takes %lld tokens, but the longest request has %lld, prompt and answer (%s)",
                       c->model, (long long)(c->max_context_tokens - c->source),
                       (long long)(q->traffic.longest_tokens - c->source),
                       c->trace    ? "of the trace: leave its longer requests out"
                       : c->source ? "of its decoder: what the encoder reads is --source"
                                   : "lengths end with ',max=N'");
    /* a report shows the simulation, so what it recommends has passed it */
    const bool report = strcmp(v->command->name, "report") == 0;
    c->uneven = q->aim != PLANNER_JOB && (c->trace ? !c->drawn : strcmp(c->arrivals, "poisson") != 0);
    /* pools of a cache that binds are some percent better on paper than simulated */
    c->verify = option_get(v, "verify") || q->prefix_cache ||
                ((c->uneven || c->trace || report || q->pools) && q->aim == PLANNER_SERVE);
    if (c->has_emit && !report) TRY(check_engine(c, e));
    TRY(plan_find(a, c, e));
    if (c->result.best_n == 0) return ERR_OK;
    TRY(plan_pays(a, c, e));
    TRY(plan_hosted_of(a, c, e));
    /* answers of one token: none has a time behind it, nor a price */
    for (size_t i = 0; i < c->result.best_n && q->traffic.outputs[q->traffic.n - 1] <= 1; i++) {
        c->result.best[i].point.tpot_s = c->result.best[i].point.tpot_mean_s = (double)NAN;
        c->result.best[i].cost.usd_per_mtok_out = (double)NAN;
    }
    return ERR_OK;
}
