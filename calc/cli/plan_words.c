/* plan_words -- a layout, a promise, a reason and what breaks first of `ridge plan`, in words. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/plan_parts.h"

const char *plan_layout_words(struct arena *a, const struct layout *l)
{
    char pp[32] = "", dp[32] = "", ep[32] = "", x[32] = "", dcp[32] = "";
    if (l->dcp > 1) (void)snprintf(dcp, sizeof dcp, " DCP%lld", (long long)l->dcp);
    if (l->pp > 1) (void)snprintf(pp, sizeof pp, " PP%lld", (long long)l->pp);
    if (l->dp > 1) (void)snprintf(dp, sizeof dp, " DP%lld", (long long)l->dp);
    if (l->ep > 1) (void)snprintf(ep, sizeof ep, " EP%lld", (long long)l->ep);
    if (l->replicas > 1) (void)snprintf(x, sizeof x, " x%lld", (long long)l->replicas);
    return arena_printf(a, "TP%lld%s%s%s%s%s", (long long)l->tp, dcp, pp, dp, ep, x);
}

const char *plan_layout_sentence(struct arena *a, const struct layout *l)
{
    const long long copy = (long long)(layout_group(l) * l->pp), n = (long long)l->replicas;
    const char *text =
        n > 1 ? arena_printf(a, "%lld copies of the model, each on %lld GPU%s", n, copy, copy > 1 ? "s" : "")
              : arena_printf(a, "one copy of the model, on %lld GPU%s", copy, copy > 1 ? "s" : "");
    const char *colon = ": ";
    if (text && l->tp > 1) {
        text = arena_printf(a, "%s%severy layer split over %lld (TP%lld)", text, colon, (long long)l->tp,
                            (long long)l->tp);
        colon = ", ";
    }
    if (text && l->dcp > 1)
        text = arena_printf(a, "%s, the cache of a sequence over %lld of them (DCP%lld)", text, (long long)l->dcp,
                            (long long)l->dcp);
    if (text && l->dp > 1) {
        text = arena_printf(a, "%s%s%lld groups with sequences of their own (DP%lld)", text, colon, (long long)l->dp,
                            (long long)l->dp);
        colon = ", ";
    }
    if (text && l->ep > 1) {
        text = arena_printf(a, "%s%sexperts dealt in %lld parts (EP%lld)", text, colon, (long long)l->ep,
                            (long long)l->ep);
        colon = ", ";
    }
    if (text && l->pp > 1)
        text = arena_printf(a, "%s%slayers in %lld stages, one behind the other (PP%lld)", text, colon,
                            (long long)l->pp, (long long)l->pp);
    return text;
}

#define LEGEND(contexts, experts)                                                                                      \
    "layouts: TP GPUs split every layer" contexts ", PP stages hold whole layers" experts ", x copies"
#define LEGEND_CONTEXTS ", DCP of them share a sequence's cache"
#define LEGEND_EXPERTS ", DP attention groups have sequences of their own, experts are dealt in EP parts"

const char *plan_layout_legend(bool experts, bool contexts)
{
    static const char *const TEXT[2][2] = {{LEGEND("", ""), LEGEND("", LEGEND_EXPERTS)},
                                           {LEGEND(LEGEND_CONTEXTS, ""), LEGEND(LEGEND_CONTEXTS, LEGEND_EXPERTS)}};
    return TEXT[contexts][experts];
}

const char *plan_part(const struct planner_promise *p)
{
    return p->frac >= .99 ? "p99" : p->frac >= .95 ? "p95" : p->frac >= .9 ? "p90" : "p50";
}

void plan_times_apart(double is_s, double may_s, char is[UNITS_TEXT_MAX], char may[UNITS_TEXT_MAX])
{
    (void)units_format_time(is, is_s);
    (void)units_format_time(may, may_s);
    const bool ms = may_s < 1;
    for (int digits = 5; digits <= 17 && is_s != may_s && strcmp(is, may) == 0; digits++) {
        (void)snprintf(is, UNITS_TEXT_MAX, "%.*g %s", digits, ms ? is_s * 1000 : is_s,
                       ms ? "ms" : "s"); /* not a unit */
        (void)snprintf(may, UNITS_TEXT_MAX, "%.*g %s", digits, ms ? may_s * 1000 : may_s,
                       ms ? "ms" : "s"); /* not a unit */
    }
}

const char *plan_saturates(struct arena *a, const struct planner_plan *x)
{
    const double below = 1 - x->point.saturation_per_s / x->rate_per_s;
    const double serves = x->point.saturation_per_s * (double)x->layout.replicas;
    const char *text =
        below < .9
            ? arena_printf(a, "saturates at %.4g requests/s, %.3g %% below those that come", serves, 100 * below)
            : arena_printf(a, "saturates at %.4g requests/s, and %.0f times as many come", serves, 1 / (1 - below));
    if (!(below > 0)) text = "has no steady state at the rate that comes";
    return text ? text : "";
}

/* Under which limits: what else is said of a candidate depends on them. */
static const char *limits_text(struct arena *a, const struct planner_plan *x)
{
    char seqs[TEXT_COUNT_MAX], tokens[TEXT_COUNT_MAX];
    if (x->seqs < 1 || x->step_tokens < 1) return "";
    const char *text = arena_printf(a, ", at %s, %s a step", text_count(seqs, x->seqs, "sequence"),
                                    text_count(tokens, x->step_tokens, "token"));
    return text ? text : "";
}

/* Why a candidate fails, with its number. */
const char *plan_reason(struct arena *a, const struct plan_case *c, const struct planner_plan *x)
{
    const struct planner_request *q = &c->request;
    char is[UNITS_TEXT_MAX], may[UNITS_TEXT_MAX];
    const char *limits = limits_text(a, x);
    switch (x->verdict) {
    case PLANNER_ILLEGAL: return x->why;
    case PLANNER_SHORT: return arena_printf(a, "needs %s more on every GPU%s", units_format_bytes(is, x->miss), limits);
    case PLANNER_SLOW_TPOT:
        plan_times_apart(x->value_s, q->tpot.s, is, may);
        return arena_printf(a, "a step takes %s > %s at batch 1, whatever the engine", is, may);
    case PLANNER_SLOW_TTFT:
        plan_times_apart(x->value_s, q->ttft.s, is, may);
        return arena_printf(a, "a prompt alone takes %s > %s, whatever the engine", is, may);
    case PLANNER_LATE_TPOT:
        plan_times_apart(x->value_s, q->tpot.s, is, may);
        return arena_printf(a, "TPOT %s %s > %s at batch %.0f%s", plan_part(&q->tpot), is, may, ceil(x->point.batch),
                            limits);
    case PLANNER_LATE_TTFT:
        plan_times_apart(x->value_s, q->ttft.s, is, may);
        return arena_printf(a, "TTFT %s %s > %s at batch %.0f%s", plan_part(&q->ttft), is, may, ceil(x->point.batch),
                            limits);
    case PLANNER_LATE_JOB:
        return arena_printf(a, "takes %s, %.4g %% longer than the deadline%s", units_format_time(is, x->value_s),
                            100 * (x->miss - 1), limits);
    case PLANNER_SATURATED: return arena_printf(a, "%s%s", plan_saturates(a, x), limits);
    case PLANNER_DEARER:
        return c->result.best_n > 0 ? "costs more than a plan that keeps every promise"
                                    : "costs more than a plan that keeps every promise on paper";
    case PLANNER_MEETS: return plan_paper_miss(a, c, x);
    case PLANNER_VERDICTS: break;
    }
    return NULL;
}

const char *plan_money(char out[UNITS_TEXT_MAX], double usd)
{
    (void)snprintf(out, UNITS_TEXT_MAX,
                   isnan(usd)             ? "no known price"
                   : usd > 0 && usd < .01 ? "$%.2g"
                   : usd < .1             ? "$%.3f"
                   : usd < 100            ? "$%.2f"
                                          : "$%.0f",
                   usd);
    return out;
}

const char *plan_promises_text(struct arena *a, const struct plan_case *c)
{
    const struct planner_request *q = &c->request;
    char s[UNITS_TEXT_MAX], t[UNITS_TEXT_MAX];
    if (q->aim == PLANNER_JOB)
        return arena_printf(a, "done within %s, whatever the latency of each", units_format_time(s, q->deadline_s));
    if (q->aim == PLANNER_DAILY)
        return arena_printf(a, "%s token%s out a day, whatever the latency: %.4g requests/s",
                            units_format_count(s, c->tokens_per_day),
                            c->tokens_per_day > 1 || c->tokens_per_day < 1 ? "s" : "", q->traffic.rate_per_s);
    const char *ttft = "", *tpot = "";
    if (!isnan(q->ttft.s))
        ttft = arena_printf(a, "TTFT %s within %s%s", plan_part(&q->ttft), units_format_time(s, q->ttft.s),
                            isnan(q->tpot.s) ? "" : ", ");
    if (!isnan(q->tpot.s))
        tpot = arena_printf(a, "TPOT %s within %s", plan_part(&q->tpot), units_format_time(t, q->tpot.s));
    return ttft && tpot ? arena_printf(a, "promised: %s%s", ttft, tpot) : NULL;
}

/* What to do where the first promise breaks. */
const char *plan_advice(const struct planner_headroom *h)
{
    if (strcmp(h->binds, "memory") == 0) return "more memory: more copies, a narrower cache, larger GPUs";
    if (strcmp(h->binds, "batch cap") == 0)
        return h->larger_cap ? "a larger --max-num-seqs, then more copies"
                             : "more copies: no larger --max-num-seqs of the candidates takes more";
    if (strcmp(h->binds, "host link") == 0) return "fewer weights at the host: more GPUs, or larger ones";
    if (strcmp(h->binds, "link") == 0) return "fewer GPUs a copy, or faster links";
    if (strcmp(h->binds, "compute") == 0)
        return "more flops: more copies, or narrower weights where the unit is faster";
    return "more memory bandwidth: more copies, more GPUs a copy, narrower weights";
}

/* No nearer than another run may be. */
double plan_known_within(const struct plan_case *c)
{
    const struct planner_headroom *h = &c->headroom;
    const double error = h->breaks == PLANNER_LATE_TPOT   ? c->verified.tpot_error_frac
                         : h->breaks == PLANNER_LATE_TTFT ? c->verified.ttft_error_frac
                                                          : 0;
    if (!(h->simulations > 0) || isinf(h->within_frac)) return 0;
    return fmax(h->within_frac, error); /* of NAN and a number the number */
}

const char *plan_headroom_how(struct arena *a, const struct plan_case *c)
{
    const struct planner_headroom *h = &c->headroom;
    char n[TEXT_COUNT_MAX];
    if (h->simulations > 0 && isinf(h->within_frac))
        return arena_printf(a, " (%s of the same requests closer together: none failed)",
                            text_count(n, (int64_t)h->simulations, "simulation"));
    if (h->simulations > 0)
        return arena_printf(a, " (simulated, within %.2g %%: the same requests closer together)",
                            100 * plan_known_within(c));
    return c->uneven       ? " (on paper, for arrivals without bursts; with them, earlier)"
           : c->verified.n ? " (on paper)"
                           : "";
}

const char *plan_breaks(enum planner_verdict v)
{
    return v == PLANNER_LATE_TPOT ? "TPOT" : v == PLANNER_LATE_TTFT ? "TTFT" : "saturation";
}
