/* plan_near -- what a plan could be for less, and what is not tried unless it is asked for. */
#include <math.h>

#include "calc/cli/plan.h"

const char *plan_paper_miss(struct arena *a, const struct plan_case *c, const struct planner_plan *x)
{
    const struct planner_request *q = &c->request;
    const bool first = x->paper == PLANNER_LATE_TTFT;
    char is[UNITS_TEXT_MAX], may[UNITS_TEXT_MAX];
    if (x->paper == PLANNER_SATURATED) return arena_printf(a, "on paper it %s", plan_saturates(a, x));
    if (!first && x->paper != PLANNER_LATE_TPOT) return NULL;
    plan_times_apart(first ? x->point.ttft_s : x->point.tpot_s, first ? q->ttft.s : q->tpot.s, is, may);
    return arena_printf(a, "on paper %s %s %s > %s", first ? "TTFT" : "TPOT", plan_part(first ? &q->ttft : &q->tpot),
                        is, may);
}

const char *plan_near_text(struct arena *a, const struct plan_case *c, const struct planner_plan *x)
{
    const struct planner_margin m = planner_margin_of(&c->request, x);
    const bool first = x->paper == PLANNER_LATE_TTFT;
    const char *miss = plan_paper_miss(a, c, x);
    if (!miss) return "";
    if (x->paper == PLANNER_SATURATED)
        return arena_printf(a, "%s; simulated: keeps (saturation on paper is up to %.0f %% off)", miss,
                            100 * (m.rate - 1));
    return arena_printf(a, "%s misses; simulated: keeps (on paper %s is up to %.0f %% too long%s)", miss,
                        first ? "TTFT" : "TPOT", 100 * ((first ? m.ttft : m.tpot) - 1),
                        x->layout.replicas > 1 ? ", of copies behind a router" : "");
}

void plan_near(struct arena *a, struct out *o, const struct plan_case *c, const char *prefix)
{
    const struct planner_plan *x = &c->near;
    char money[UNITS_TEXT_MAX];
    if (!c->has_near) return;
    const char *layout = plan_layout_words(a, &x->layout), *miss = plan_paper_miss(a, c, x);
    plan_say(o, prefix, "note: %lld x %s, %s, %s/h: %s, by less than paper may be off: --verify would try it",
             (long long)x->gpus, c->device[x->device].hw->key, layout ? layout : "",
             plan_money(money, x->cost.usd_per_h), miss ? miss : "");
}

void plan_shares(struct out *o, const struct plan_case *c, const char *prefix)
{
    const struct planner_plan *x = &c->result.best[0];
    const struct planner_request *q = &c->request;
    const int64_t most = layout_context_most(q->format[x->format].model, x->layout.tp);
    if (q->any_context || q->like.dcp > 0 || x->layout.dcp > 1 || most <= 1) return;
    struct layout l = x->layout;
    struct err why;
    l.dcp = most;
    if (layout_check(q->format[x->format].model, &l, &why) != ERR_OK) return;
    if (q->refuse && q->refuse(q->closure, &l)) return; /* its engine does not */
    plan_say(o, prefix, "note: every rank has the cache of %lld: --dcp any also tries ranks that share it",
             (long long)most);
}
