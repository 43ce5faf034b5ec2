/* planner_headroom -- how far the traffic of a plan may rise: on paper, and simulated. */
#include <math.h>
#include <string.h>

#include "calc/serve/planner_parts.h"
#include "calc/serve/planner_verify.h"

/* What a step waits for, or what keeps more sequences out. */
static const char *binder(const struct planner_plan *x, enum planner_verdict breaks)
{
    const struct planner_point *o = &x->point;
    /* a first token is late for want of a place as well */
    if ((breaks == PLANNER_SATURATED || breaks == PLANNER_LATE_TTFT) &&
        !(x->batch_most - o->batch >= .25 * x->batch_most)) /* NAN: saturated on paper */
        return x->memory_binds ? "memory" : "batch cap";
    if (breaks == PLANNER_LATE_TTFT)
        return x->floor_ttft_by && strcmp(x->floor_ttft_by, "host link") == 0 ? "host link" : "compute";
    if (o->host_s > fmax(o->link_s, fmax(o->compute_s, o->memory_s))) return "host link";
    if (o->link_s > o->compute_s && o->link_s > o->memory_s) return "link";
    return o->compute_s >= o->memory_s ? "compute" : "memory bandwidth";
}

/* Whether a larger cap of the candidates, all else the same, keeps the promises beyond the rate of *out. */
static enum err_code look_larger(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                                 struct planner_headroom *out, struct err *e)
{
    const double beyond = 1 + 5e-3; /* the bisection's own width, and a little */
    struct planner_request there = *q;
    struct planner p;
    struct planner_unit u;
    struct planner_plan x;
    struct planner_held held;
    there.traffic.rate_per_s = out->rate_per_s * beyond;
    out->larger_cap = false;
    if (strcmp(out->binds, "batch cap") != 0) return ERR_OK;
    TRY(planner_open_one(a, q, plan, &p, &u, &x, e));
    TRY(planner_held(&p, &u, plan->step_tokens, &held, e));
    for (size_t i = 0; i < q->seqs_n + held.n && !out->larger_cap; i++) {
        struct planner_plan larger = *plan;
        larger.seqs = i < q->seqs_n ? q->seqs[i] : held.seqs[i - q->seqs_n];
        if (larger.seqs <= plan->seqs || larger.seqs > plan->step_tokens / planner_judged(q, plan->gamma)) continue;
        TRY(planner_at(a, &there, &larger, &x, e));
        out->larger_cap = x.verdict == PLANNER_MEETS;
    }
    return ERR_OK;
}

enum err_code planner_headroom(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                               struct planner_headroom *out, struct err *e)
{
    struct planner p;
    struct planner_unit u;
    struct planner_plan x, last = *plan;
    const double copies = (double)plan->layout.replicas;
    TRY(planner_check(q, e));
    TRY(planner_open_one(a, q, plan, &p, &u, &x, e));
    out->simulations = 0;
    double low = x.rate_per_s, high = fmax(plan->point.saturation_per_s, low * (1 + 1e-9));
    out->breaks = PLANNER_SATURATED;
    const double now = low;
    /* times of kernels have steps: a promise may break just above the rate there is */
    for (int i = 0; i < 40 && high - low > (low > now ? 2e-3 : 1e-6) * high; i++) {
        x.rate_per_s = (low + high) / 2;
        TRY(planner_solve(&p, &u, &x, e));
        if (x.verdict == PLANNER_MEETS) {
            low = x.rate_per_s;
            last = x;
        } else {
            high = x.rate_per_s;
            out->breaks = x.verdict;
        }
    }
    out->rate_per_s = low * copies;
    planner_finish(&p, &u, &last);
    out->binds = binder(&last, out->breaks);
    return look_larger(a, q, plan, out, e);
}

/* ---- simulated ---- */

struct attempt {
    const struct planner_plan *plan;
    const struct workload *work;
    const struct planner_watch *watch;
    bool interrupted;
    size_t simulations;
};

/* MEETS, or what breaks at such a rate of all copies: the same requests, so much closer together. */
static enum err_code simulate_at(const struct planner_request *q, struct attempt *t, double rate_per_s,
                                 enum planner_verdict *out, struct err *e)
{
    struct planner_request faster = *q;
    struct planner_run run;
    struct planner_verified v;
    struct arena *own = arena_open();
    if (!own) return err_nomem(e);
    faster.traffic.rate_per_s = rate_per_s;
    if (planner_floods(&faster, t->plan)) {
        arena_close(own);
        *out = PLANNER_LATE_TTFT;
        return ERR_OK;
    }
    t->simulations++;
    enum err_code code = planner_run_until(own, &faster, t->plan, t->work, t->watch, &run, e);
    if (code == ERR_OK) code = planner_run_judge(own, &faster, &run, &v, e);
    if (code == ERR_OK) {
        t->interrupted = run.result.partial && !run.hopeless;
        *out = v.breaks;
    }
    arena_close(own);
    return code;
}

/* What binds at a rate that it keeps, from its steady state. */
static enum err_code binds_at(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                              struct planner_headroom *out, struct err *e)
{
    struct planner_request there = *q;
    struct planner_plan x;
    there.traffic.rate_per_s = out->rate_per_s;
    TRY(planner_at(a, &there, plan, &x, e));
    out->binds = binder(&x, out->breaks);
    return look_larger(a, q, plan, out, e);
}

enum err_code planner_headroom_simulated(struct arena *a, const struct planner_request *q,
                                         const struct planner_plan *plan, const struct workload *w,
                                         const struct planner_watch *watch, struct planner_headroom *out, struct err *e)
{
    enum { RUNS = 12, LONG_RUNS = 4, LONGEST_RUNS = 2, LONG = 1 << 17, SOME = 1 << 14, ENOUGH = 20 };
    const double within = w->n > SOME ? .02 : .01; /* runs that last are off by as much themselves */
    const size_t most = w->n > 4 * LONG ? LONGEST_RUNS : w->n > LONG ? LONG_RUNS : RUNS;
    struct attempt t = {.plan = plan, .work = w, .watch = watch};
    double low = q->traffic.rate_per_s, high = (double)INFINITY;
    TRY(planner_headroom(a, q, plan, out, e));
    const struct planner_headroom paper = *out;
    const double saturation_per_s = plan->point.saturation_per_s * (double)plan->layout.replicas;
    /* a run that fills the copies a few times ends before a queue is long: what saturates on paper breaks */
    const double full = fmax(plan->batch_most, 1) * (double)plan->layout.replicas,
                 judged = (double)(q->judged.end > 0 ? q->judged.end - q->judged.first : w->n);
    if (judged < ENOUGH * full && saturation_per_s > low) {
        high = saturation_per_s;
        out->breaks = PLANNER_SATURATED;
    }
    double at = fmin(fmax(paper.rate_per_s, low * (1 + within)), isinf(high) ? high : (low + high) / 2);
    while (t.simulations < most && high > low * (1 + within)) {
        enum planner_verdict v;
        TRY(simulate_at(q, &t, at, &v, e));
        if (t.interrupted) {
            *out = paper;
            return ERR_OK;
        }
        if (v == PLANNER_MEETS) {
            low = at;
        } else {
            high = at;
            out->breaks = v;
        }
        at = isinf(high) ? low * 1.25 : (low + high) / 2;
    }
    out->simulations = t.simulations;
    out->rate_per_s = low;
    out->within_frac = isinf(high) ? (double)INFINITY : high / low - 1;
    return binds_at(a, q, plan, out, e);
}
