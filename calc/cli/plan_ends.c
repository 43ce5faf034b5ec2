/* plan_ends -- what comes of a plan: an engine's command line, or that there is none. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/plan.h"

/* -- emit -- */

/* The longest request planned and a quarter more, in whole pages of 256 tokens; within what the model takes and what
 * the planned cache holds of one sequence, without which no engine starts, and never below the longest. */
static int64_t longest(const struct plan_case *c, const struct planner_plan *x)
{
    const int64_t page = EMIT_LENGTH_PAGE, need = c->request.traffic.longest_tokens - c->source,
                  limit = c->max_context_tokens > 0 ? c->max_context_tokens - c->source : 0;
    const double held = x->pool_bytes / x->sequence_bytes * ceil(c->request.traffic.context_tokens) - (double)c->source;
    int64_t most = (need + need / 4 + page - 1) / page * page;
    if (limit > 0 && most > limit) most = limit;
    if (held < (double)most) most = (int64_t)held / page * page;
    return most > need ? most : need;
}

enum err_code plan_command(struct arena *a, const struct plan_case *c, const struct planner_plan *x,
                           enum emit_engine engine, const char **out, struct err *e)
{
    const struct planner_format *f = &c->format[x->format];
    const double visible = hw_capacity_bytes(c->device[x->device].hw);
    const double left = isnan(c->request.utilization_frac) ? .9 : c->request.utilization_frac;
    const struct emit_plan p = {
        .model = c->hub,
        .layout = x->layout,
        .experts = layout_routed(f->model) != NULL,
        .encoder = c->source > 0 ? f->model->family : NULL,
        .short_source = c->short_source,
        .towerless = f->model->towerless,
        .max_num_seqs = x->seqs,
        .step_tokens = x->step_tokens,
        .max_model_len = longest(c, x),
        .longest_tokens = c->request.traffic.longest_tokens - c->source,
        .utilization_frac = left,
        .static_frac =
            floor((x->weight_bytes + x->tower_bytes + x->pool_bytes) / visible * 1000) / 1000,    /* not a unit */
        .free_frac = floor(x->pool_bytes / (x->pool_bytes + visible * (1 - left)) * 1000) / 1000, /* not a unit */
        .mixed = !c->request.server || c->request.server->mixed,
        .prefill = x->prefill,
        .drafting = c->draft_kind,
        .draft = c->draft_hub,
        .draft_tokens = x->gamma,
        .draft_nodes = x->gamma > 0 && c->drafting.shape ? c->shape.drafted : 0,
        .draft_wide = c->tree_wide,
        .weights = f->weights,
        .kv = f->kv,
        .adapters = c->adapters.served,
        .host_adapters = c->adapters.host,
        .offload_bytes = c->offload.bytes,
        .tier_bytes = c->request.tier_bytes,
        .fp8_on_load = f->weights && strcmp(f->weights, "fp8") == 0};
    return emit_command(a, engine, &p, out, e);
}

/* That of the plan, and no other plan's, where the engine cannot run it. */
static enum err_code command_of(struct arena *a, const struct plan_case *c, const struct planner_plan *x,
                                const char *layout, const char **out, struct err *e)
{
    const char *engine = emit_name(c->emit);
    struct err why = {0};
    const enum err_code code = plan_command(a, c, x, c->emit, out, &why);
    if (code != ERR_NO) return code == ERR_OK ? ERR_OK : err_set(e, code, "%s", why.text);
    const bool own = c->request.fidelity == PLANNER_CALIBRATED && !c->request.framework;
    return err_set(e, ERR_NO, "the plan, %lld x %s, %s, is none for %s: %s (%s%s)", (long long)x->gpus,
                   c->device[x->device].hw->key, layout ? layout : "", engine, why.text,
                   own ? "plans among what it runs: --server " : "--tp, --pp and --attention-dp narrow the choice",
                   own ? engine : "");
}

enum err_code plan_emit(struct arena *a, const struct plan_case *c, struct out *o, struct err *e)
{
    const struct planner_plan *x = &c->result.best[0];
    const char *command, *layout = plan_layout_words(a, &x->layout);
    char s[UNITS_TEXT_MAX], t[UNITS_TEXT_MAX], u[UNITS_TEXT_MAX];
    const char *reached = "";
    TRY(command_of(a, c, x, layout, &command, e));
    if (c->request.aim == PLANNER_SERVE)
        reached = arena_printf(a, "%sTTFT %s, TPOT %s at %.4g requests/s", c->verified.n ? "simulated " : "",
                               units_format_time(t, c->verified.n ? c->verified.ttft_s : x->point.ttft_s),
                               units_format_time(u, c->verified.n ? c->verified.tpot_s : x->point.tpot_s),
                               c->request.traffic.rate_per_s);
    if (!reached) return err_nomem(e);
    plan_say(o, "# ", "%lld x %s, %s: %s/h%s%s", (long long)x->gpus, c->device[x->device].hw->key, layout ? layout : "",
             plan_money(s, x->cost.usd_per_h), *reached ? "; " : "", reached);
    if (c->server)
        plan_say(o, "# ", "steps as %s's server takes them%s%s%s", c->request.server->name,
                 c->request.p90 ? ", at P90 of what it serves" : "",
                 c->runs == c->emit ? "" : "; as its own: --server ", c->runs == c->emit ? "" : emit_name(c->emit));
    else if (c->request.fidelity == PLANNER_CALIBRATED)
        plan_say(o, "# ", "times calibrated, kernels and steps of %s%s", plan_kernels(c),
                 c->request.p90 ? ", at P90 of their band" : "");
    plan_times_doubts(o, "# ", c);
    if (c->draft && x->gamma == 0)
        plan_say(o, "# ", "no draft: beside %.60s nothing keeps the promises for less", c->draft);
    TRY(plan_devices_doubts(a, o, "# ", c, (int)x->device, -1, e));
    plan_hosted(o, c, "# ");
    plan_doubts(a, o, c, "# ");
    out_str(o, command);
    return ERR_OK;
}

/* The nearest of all devices that fail so; NULL: none does. */
static const struct planner_plan *nearest(const struct plan_case *c, enum planner_verdict v)
{
    const struct planner_plan *near = NULL;
    for (size_t d = 0; d < c->request.devices_n; d++) {
        const struct planner_tally *t = &c->result.tally[d][v];
        if (t->n && (!near || t->nearest.miss < near->miss)) near = &t->nearest;
    }
    return near;
}

static size_t count_of(const struct plan_case *c, enum planner_verdict v)
{
    size_t n = 0;
    for (size_t d = 0; d < c->request.devices_n; d++) n += c->result.tally[d][v].n;
    return n;
}

static enum err_code too_slow(const char *what, const char *which, double promised_s, double floor_s, const char *by,
                              const char *where, struct err *e)
{
    char is[UNITS_TEXT_MAX], may[UNITS_TEXT_MAX];
    return err_set(e, ERR_NO,
                   "no plan: %s within %s is forbidden by %s: %s alone takes %s at least on %s, whatever the engine",
                   what, units_format_time(may, promised_s), by, which, units_format_time(is, floor_s), where);
}

static enum err_code too_late(const char *what, double promised_s, double value_s, double floor_s, const char *by,
                              const char *where, struct err *e)
{
    char is[UNITS_TEXT_MAX], may[UNITS_TEXT_MAX], least[UNITS_TEXT_MAX];
    plan_times_apart(value_s, promised_s, is, may);
    return err_set(
        e, ERR_NO,
        "no plan: the nearest, %s, has a %s of %s, and %s are promised, at the rate asked for; the floor of a request "
        "alone there is %s (%s): more or faster GPUs (--max-gpus, -g), or fewer requests",
        where, what, is, may, units_format_time(least, floor_s), by);
}

/* The nearest with its figures, of those that a simulation said no to. */
static enum err_code refuted(const struct plan_case *c, struct err *e)
{
    const struct planner_refuted *x = &c->confirmed.near[0];
    char n[TEXT_COUNT_MAX];
    struct arena *own = c->confirmed.near_n > 0 ? arena_open() : NULL;
    const char *why = own ? plan_refuted_text(own, c, x) : NULL,
               *layout = own ? plan_layout_words(own, &x->plan.layout) : NULL;
    enum err_code code =
        err_set(e, ERR_NO, "no plan: what keeps every promise on paper does not when it is simulated (%s)",
                text_count(n, c->refuted, "plan"));
    if (why && layout)
        code = err_set(e, ERR_NO,
                       "no plan: what keeps every promise on paper does not when it is simulated (%s); the nearest, "
                       "%lld x %s, %s: %s",
                       n, (long long)x->plan.gpus, c->device[x->plan.device].hw->key, layout, why);
    arena_close(own);
    return code;
}

/* Rates with as many digits as tell them apart. */
static enum err_code saturated(const struct planner_plan *x, double come_per_s, const char *where, struct err *e)
{
    const double serves_per_s = x->point.saturation_per_s * (double)x->layout.replicas;
    char come[32], serves[32];
    if (!(serves_per_s < come_per_s))
        return err_set(e, ERR_NO, "no plan: the nearest, %s, has no steady state at %.4g requests/s", where,
                       come_per_s);
    for (int digits = 4; digits <= 17; digits++) {
        (void)snprintf(come, sizeof come, "%.*g", digits, come_per_s);
        (void)snprintf(serves, sizeof serves, "%.*g", digits, serves_per_s);
        if (strcmp(come, serves) != 0) break;
    }
    return err_set(e, ERR_NO,
                   "no plan: the rate is above saturation: %s requests/s come, and the nearest, %s, serves %s", come,
                   where, serves);
}

static enum err_code forbidden(const struct plan_case *c, struct err *e)
{
    static const enum planner_verdict FIRST[] = {PLANNER_LATE_TPOT, PLANNER_LATE_TTFT, PLANNER_LATE_JOB,
                                                 PLANNER_SATURATED, PLANNER_SLOW_TPOT, PLANNER_SLOW_TTFT,
                                                 PLANNER_SHORT,     PLANNER_ILLEGAL};
    const struct planner_request *q = &c->request;
    const struct planner_plan *x = NULL;
    char is[UNITS_TEXT_MAX], may[UNITS_TEXT_MAX], where[96], n[TEXT_COUNT_MAX];
    const double beside_s = q->server ? engine_first_s(q->traffic.asked_tokens) : 0;
    for (size_t i = 0; !x && i < sizeof FIRST / sizeof *FIRST; i++) x = nearest(c, FIRST[i]);
    if (x && x->verdict == PLANNER_SLOW_TPOT && count_of(c, PLANNER_SLOW_TTFT) > count_of(c, PLANNER_SLOW_TPOT))
        x = nearest(c, PLANNER_SLOW_TTFT);
    if (x && x->verdict != PLANNER_SLOW_TPOT && x->verdict != PLANNER_SLOW_TTFT &&
        beside_s > q->ttft.s) /* NAN: not promised */
        return err_set(e, ERR_NO,
                       "no plan: TTFT within %s is forbidden at any size: a first token takes %s beside its steps",
                       units_format_time(may, q->ttft.s), units_format_time(is, beside_s));
    if (c->refuted) return refuted(c, e);
    if (c->confirmed.flooded)
        return err_set(e, ERR_NO, "no plan: what keeps every promise at the mean rate does not at its heights (%s)",
                       text_count(n, (int64_t)c->confirmed.flooded, "plan"));
    if (!x && (q->like.dp > 1 || q->like.ep > 1) && !layout_routed(c->format[0].model))
        return err_set(
            e, ERR_NO,
            "no plan: %s has no experts, and attention groups and expert parallel ranks (--attention-dp, --ep) "
            "are planned of models that have; --replicas are copies of the whole",
            c->model);
    if (!x) return err_set(e, ERR_NO, "no plan: no layout of so many GPUs has those numbers");
    (void)snprintf(where, sizeof where, "%lld x %s", (long long)x->gpus, c->device[x->device].hw->key);
    switch (x->verdict) {
    case PLANNER_SLOW_TPOT: return too_slow("TPOT", "a decode step", q->tpot.s, x->value_s, x->floor_tpot_by, where, e);
    case PLANNER_SLOW_TTFT: return too_slow("TTFT", "a prompt", q->ttft.s, x->value_s, x->floor_ttft_by, where, e);
    case PLANNER_LATE_TPOT: return too_late("TPOT", q->tpot.s, x->value_s, x->floor_tpot_s, x->floor_tpot_by, where, e);
    case PLANNER_LATE_TTFT: return too_late("TTFT", q->ttft.s, x->value_s, x->floor_ttft_s, x->floor_ttft_by, where, e);
    case PLANNER_SATURATED: return saturated(x, q->traffic.rate_per_s, where, e);
    case PLANNER_LATE_JOB:
        return err_set(e, ERR_NO, "no plan: the nearest, %s, takes %s, the deadline is %s", where,
                       units_format_time(is, x->value_s), units_format_time(may, q->deadline_s));
    case PLANNER_SHORT:
        return err_set(e, ERR_NO, "no plan: nothing fits; the nearest, %s, needs %s more on every GPU", where,
                       units_format_bytes(is, x->miss));
    case PLANNER_ILLEGAL: return err_set(e, ERR_NO, "no plan: no layout can be: %s", x->why ? x->why : "");
    case PLANNER_MEETS:
    case PLANNER_DEARER:
    case PLANNER_VERDICTS: break;
    }
    return err_set(e, ERR_NO, "no plan");
}

enum err_code plan_none(const struct plan_case *c, struct err *e)
{
    struct err why = {0};
    char money[UNITS_TEXT_MAX];
    const enum err_code code = forbidden(c, &why);
    if (c->has_near)
        return err_set(e, code,
                       "%s; on paper %lld x %s for %s/h miss by less than paper may be off: --verify would try them",
                       why.text, (long long)c->near.gpus, c->device[c->near.device].hw->key,
                       plan_money(money, c->near.cost.usd_per_h));
    if (c->confirmed.near_refuted > 0)
        return err_set(e, code, "%s; simulated, %zu that miss on paper by less than it may be off do as well", why.text,
                       c->confirmed.near_refuted);
    return err_set(e, code, "%s", why.text);
}
