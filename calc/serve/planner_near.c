/* planner_near -- plans that miss a promise on paper by no more than paper is off. */
#include <math.h>
#include <string.h>

#include "calc/serve/planner_parts.h"
#include "calc/serve/planner_verify.h"

struct planner_margin planner_margin_of(const struct planner_request *q, const struct planner_plan *plan)
{
    /* p95 of the steady state over the simulator, at the p95 of requests (MODEL.md "Steady state"): [fcfs][copies] */
    static const struct planner_margin PAPER[2][2] = {{{1.10, 1.05, 1.05}, {1.25, 1.20, 1.05}},
                                                      {{1.30, 1.10, 1.05}, {1.35, 1.50, 1.05}}};
    if (q->aim != PLANNER_SERVE || plan->prefill > 0 || planner_verifies(plan)) return (struct planner_margin){1, 1, 1};
    struct planner_margin m = PAPER[planner_policy(q) == SIMULATE_FCFS][plan->layout.replicas > 1];
    if (!planner_tells(q)) m.rate = 1;
    return m;
}

/* How much of its margin a time takes. */
static double part(double is_s, const struct planner_promise *p, double margin)
{
    return isnan(p->s) || is_s <= p->s ? 0 : (is_s / p->s - 1) / (margin - 1);
}

double planner_near_part(const struct planner_request *q, const struct planner_plan *plan)
{
    const struct planner_margin m = planner_margin_of(q, plan);
    const bool late = plan->paper == PLANNER_LATE_TPOT || plan->paper == PLANNER_LATE_TTFT;
    if (plan->paper == PLANNER_MEETS) return 0;
    if (plan->paper == PLANNER_SATURATED && m.rate > 1 && plan->miss >= 1) return (plan->miss - 1) / (m.rate - 1);
    if (!late || m.tpot <= 1) return (double)INFINITY;
    return fmax(part(plan->point.tpot_s, &q->tpot, m.tpot), part(plan->point.ttft_s, &q->ttft, m.ttft));
}

enum err_code planner_near_cheapest(struct arena *a, const struct planner_request *q, double part_of_margin,
                                    double below_usd_per_h, struct planner_plan *out, bool *found, struct err *e)
{
    struct planner_request near = *q;
    struct planner_device *device = arena_array(a, q->devices_n, sizeof *device);
    struct planner_result r;
    *found = false;
    if (!device) return err_nomem(e);
    if (q->aim != PLANNER_SERVE) return ERR_OK;
    near.near = part_of_margin;
    near.pools = false;
    near.device = device;
    memcpy(device, q->device, q->devices_n * sizeof *device);
    /* the GPUs of each that cost less; the order of devices is that of the plan */
    for (size_t d = 0; d < q->devices_n && !isnan(below_usd_per_h); d++) {
        const double usd = device[d].price.usd_per_h;
        if (isnan(usd)) continue;
        const double most = ceil(below_usd_per_h / usd) - 1;
        if (most < (double)device[d].most) device[d].most = most < 1 ? 1 : (int64_t)most;
    }
    TRY(planner_search(a, &near, &r, e));
    if (r.best_n == 0 || r.best[0].paper == PLANNER_MEETS) return ERR_OK;
    *out = r.best[0];
    *found = isnan(below_usd_per_h) || out->cost.usd_per_h < below_usd_per_h;
    return ERR_OK;
}
