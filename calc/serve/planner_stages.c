/* planner_stages -- the steady state of layouts whose stages mixed steps know, pieces of prompts beside those that
 * decode. MODEL.md "Planner", *Stages*. */
#include <gsl/gsl_statistics_double.h>
#include <math.h>

#include "calc/serve/planner_parts.h"
#include "calc/serve/steady_flights.h"
#include "calc/serve/steady_parts.h"

/* Seconds of a batch in the slowest stage, or in all of them. */
static enum err_code times_of(struct planner *p, struct planner_clock *c, const struct steady_setup *of, bool slowest,
                              struct steady_times **out, struct err *e)
{
    struct steady_setup s = *of;
    s.slowest = slowest;
    s.times = NULL;
    TRY(planner_steady_times(p, c, s.budget_tokens, &s, NULL, e));
    if (!s.times) TRY(steady_times_open(p->arena, &s, &s.times, e));
    *out = s.times;
    return ERR_OK;
}

/* All as full as can be: of a batch's tokens c the part m/(P + m) decode, and others always wait; 0 where so many have
 * no place, or no room in the cache beside a batch of prompts. */
static double full_per_s(const struct steady_flights *f, const struct planner_traffic *t)
{
    const double p = (double)f->stages, c = (double)f->budget_tokens, m = t->output_tokens - 1;
    const double n = c * m / (t->prompt_tokens + m), prompts = p * (c - n) / t->prompt_tokens + 1;
    if (!(m > 0) || !(n >= 1)) return 0;
    const double one = t->context_tokens + f->block_tokens / 2; /* tokens of a sequence */
    if (p * n + prompts > (double)f->max_seqs || (p * n + prompts) * one > f->cache_tokens) return 0;
    return n / (m * f->slower * steady_times_step_s(f->slowest, n, c - n));
}

/* Where others always wait. */
static enum err_code saturate(struct planner *p, struct planner_clock *c, const struct steady_flights *f,
                              struct planner_plan *plan, struct err *e)
{
    struct planner_saturated *k = c->saturated;
    const size_t most = sizeof c->saturated / sizeof *c->saturated;
    while (k < c->saturated + c->saturated_n &&
           (k->step_tokens != f->budget_tokens || k->seqs != f->max_seqs || k->cache_tokens < f->cache_tokens ||
            k->cache_tokens > f->cache_tokens || k->slower < f->slower || k->slower > f->slower))
        k++;
    if (k == c->saturated + c->saturated_n) {
        struct steady_flights x = *f;
        struct steady_flights_result r = {.rate_per_s = full_per_s(f, &p->q->traffic)};
        x.rate_per_s = (double)INFINITY;
        if (!(r.rate_per_s > 0)) TRY(steady_flights_run(p->arena, &x, &r, e));
        if (c->saturated_n == most) k = c->saturated, c->saturated_n = 0;
        *k = (struct planner_saturated){.step_tokens = f->budget_tokens,
                                        .seqs = f->max_seqs,
                                        .cache_tokens = f->cache_tokens,
                                        .slower = f->slower,
                                        .rate_per_s = r.rate_per_s,
                                        .cache = r.cache};
        c->saturated_n++;
    }
    plan->point.saturation_per_s = k->rate_per_s;
    plan->memory_binds = k->cache;
    return ERR_OK;
}

/* The quantile of so many times, which are put in another order; NAN of none. */
static double quantile(double *v, size_t n, double frac)
{
    const double rank = ceil(frac * (double)n);
    if (n == 0) return (double)NAN;
    return gsl_stats_select(v, 1, n, rank < 1 ? 0 : (size_t)fmin(rank - 1, (double)(n - 1)));
}

static void tell(const struct planner_request *q, const struct planner_unit *u, const struct planner_plan *plan,
                 const struct steady_flights_result *r, struct planner_point *o)
{
    const double steps = fmax(0, q->traffic.output_tokens - 1);
    o->ttft_mean_s = r->ttft_mean_s;
    o->ttft_s = quantile(r->ttft_s, r->n, planner_promised_frac(&q->ttft));
    o->ttft_s = fmax(o->ttft_s, u->floor_ttft_s);
    o->tpot_mean_s = r->tpot_mean_s;
    o->tpot_s = quantile(r->tpot_s, r->tokens_n, planner_promised_frac(&q->tpot));
    o->step_s = o->tpot_mean_s;
    o->busy_frac = r->busy_frac;
    o->batch = plan->rate_per_s * (o->ttft_mean_s + (steps > 0 ? steps * o->tpot_mean_s : 0)); /* Little */
}

enum err_code planner_stages(struct planner *p, struct planner_unit *u, const struct planner_told *told,
                             struct planner_plan *plan, struct err *e)
{
    const struct planner_request *q = p->q;
    const struct planner_traffic *t = &q->traffic;
    struct planner_point *o = &plan->point;
    struct planner_clock *c;
    struct steady_setup s;
    struct steady_flights_result r;
    *o = planner_point_unknown();
    TRY(planner_clock_of(p, u->device, u->format, &u->layout, 0, &c, e));
    planner_steady(p, u, plan, c, &s);
    TRY(planner_ratio(p, u, plan, &s.slower, e));
    plan->slower = s.slower;
    struct steady_flights f = {.slower = s.slower,
                               .stages = u->layout.pp,
                               .budget_tokens = s.budget_tokens,
                               .max_seqs = s.max_seqs,
                               .cache_tokens = (double)s.blocks * (double)s.block_tokens,
                               .block_tokens = (double)s.block_tokens,
                               .prompt = t->prompts,
                               .output = t->outputs,
                               .lengths_n = t->n,
                               .rate_per_s = plan->rate_per_s,
                               .arrival_cv2 = t->arrival_cv2};
    TRY(times_of(p, c, &s, false, &f.through, e));
    TRY(times_of(p, c, &s, true, &f.slowest, e));
    const struct planner_beyond beyond = planner_beyond_of(q, plan, told);
    if (isfinite(beyond.ttft_s) && planner_first_s(q, f.through, f.slowest, f.slower) > beyond.ttft_s) {
        planner_settle(plan, PLANNER_LATE_TTFT);
        return ERR_OK;
    }
    if (beyond.saturation_per_s > 0 && planner_flights_below(&f, t, beyond.saturation_per_s)) {
        planner_settle(plan, PLANNER_SATURATED);
        return ERR_OK;
    }
    TRY(saturate(p, c, &f, plan, e));
    if (q->aim == PLANNER_JOB) { /* all at once, prompts fill the steps and all stages */
        const double each = ceil(q->requests / (double)plan->layout.replicas), held = fmin(plan->batch_most, each);
        const double batch = fmax(1, held / (double)u->layout.pp);
        planner_drain(t, each, held, o->saturation_per_s, s.slower * steady_times_step_s(f.through, batch, 0),
                      s.slower * steady_times_step_s(f.through, 1, 0), o);
        o->batch = held; /* until the last begin; nobody waits for one of them, so none is followed */
        o->busy_frac = 1;
        return ERR_OK;
    }
    if (!(plan->rate_per_s < o->saturation_per_s)) return ERR_OK;
    if (isfinite(beyond.tpot_s) && planner_flights_token_s(&f, t) > beyond.tpot_s) {
        planner_settle(plan, PLANNER_LATE_TPOT);
        return ERR_OK;
    }
    f.load_frac = plan->rate_per_s / o->saturation_per_s;
    TRY(steady_flights_run(p->arena, &f, &r, e));
    if (r.growing) { /* all at once fill the stages, one by one they need not */
        o->saturation_per_s = fmin(r.rate_per_s, plan->rate_per_s);
        return ERR_OK;
    }
    tell(q, u, plan, &r, o);
    return ERR_OK;
}
