/* planner_pools -- copies that prefill and others that decode, and what joins them. */
#include <math.h>

#include "calc/serve/planner_parts.h"

struct planner_link planner_link_of(const struct planner_request *q, size_t device, int64_t gpus)
{
    const struct planner_device *d = &q->device[device];
    if (gpus <= d->per_node && (double)gpus <= d->hw->link_domain)
        return (struct planner_link){d->hw->link_bytes_per_s, d->latency.link_s};
    return (struct planner_link){d->hw->fabric_bytes_per_s, d->latency.fabric_s};
}

static enum err_code solve(struct planner *p, struct planner_unit *u, const struct planner_plan *limits,
                           int64_t prefill, int64_t decode, int64_t most, size_t *solved, struct planner_plan *out,
                           struct err *e)
{
    *out = *limits;
    planner_copies(p->q, out, u, prefill + decode);
    /* more are asked about than there may be, and joined as those are */
    if (out->gpus > u->gpus * most) out->gpus = u->gpus * most;
    out->prefill = prefill;
    ++*solved;
    return planner_solve(p, u, out, e);
}

/* Whether the first token is in time: decoding has nothing to do with it. */
static bool first_in_time(const struct planner_request *q, const struct planner_plan *x)
{
    if (!(x->rate_per_s < x->point.saturation_per_s)) return false;
    return isnan(q->ttft.s) || x->point.ttft_s <= q->ttft.s;
}

static enum err_code illegal(struct planner_plan *out, const struct planner_plan *limits, const char *why)
{
    *out = *limits;
    out->verdict = PLANNER_ILLEGAL;
    out->why = why;
    return ERR_OK;
}

enum err_code planner_pool_counts(struct planner *p, struct planner_unit *u, const struct planner_plan *limits,
                                  int64_t most, size_t *solved, struct planner_plan *out, struct err *e)
{
    const struct planner_request *q = p->q;
    int64_t fails = 0, prefill = most - 1;
    struct planner_plan x;
    if (!(planner_link_of(q, u->device, u->gpus * most).bytes_per_s > 0) ||
        !(planner_link_of(q, u->device, u->gpus * 2).bytes_per_s > 0))
        return illegal(out, limits, "no rate is known of what would join the pools");
    /* as many decode as there can be beside, so that they are not what saturates */
    TRY(solve(p, u, limits, prefill, most, most, solved, out, e));
    if (!first_in_time(q, out)) return ERR_OK;
    while (prefill - fails > 1) {
        const int64_t m = fails + (prefill - fails) / 2;
        TRY(solve(p, u, limits, m, most, most, solved, &x, e));
        *(first_in_time(q, &x) ? &prefill : &fails) = m;
    }
    int64_t decode = most - prefill;
    fails = 0;
    TRY(solve(p, u, limits, prefill, decode, most, solved, out, e));
    if (out->verdict != PLANNER_MEETS || q->like.replicas > 0) return ERR_OK;
    while (decode - fails > 1) {
        const int64_t m = fails + (decode - fails) / 2;
        TRY(solve(p, u, limits, prefill, m, most, solved, &x, e));
        if (x.verdict == PLANNER_MEETS) {
            *out = x;
            decode = m;
        } else
            fails = m;
    }
    return ERR_OK;
}
