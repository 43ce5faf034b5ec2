/* plan_find -- the search of `ridge plan`, and its simulations. */
#include <math.h>

#include "calc/cli/interrupt.h"
#include "calc/cli/plan_parts.h"
#include "calc/cli/progress.h"

/* Requests in flight in all copies: of the best plan on paper; without one, as the promise has it. */
static double in_flight(const struct plan_case *c)
{
    const struct planner_request *q = &c->request;
    const struct planner_plan *x = &c->result.best[0];
    if (c->result.best_n > 0 && x->point.batch > 0) return x->point.batch * (double)x->layout.replicas;
    const double answer_s = isnan(q->tpot.s) ? 0 : q->traffic.output_tokens * q->tpot.s;
    return q->traffic.rate_per_s * (answer_s + (isnan(q->ttft.s) ? 0 : q->ttft.s / 2));
}

/* How many requests are simulated, and which of them are judged: as many as fill the copies often, those while they
 * fill and empty left out; end 0: all that there are. */
static struct planner_window window_of(const struct plan_case *c, size_t *requests, bool *few)
{
    enum { FILL = 3, JUDGED = 20, EMPTY = 1, MOST = 1 << 17 };
    const double n = in_flight(c), wanted = ceil((FILL + JUDGED + EMPTY) * n);
    *requests = c->work.n;
    *few = false;
    if (c->trace || c->request.aim != PLANNER_SERVE || c->period_s > 0 || !(n > 0)) return (struct planner_window){0};
    if (wanted > (double)c->work.n) *requests = wanted < MOST ? (size_t)wanted : MOST;
    const double all = (double)*requests, part = fmin(n, all / (2 * (FILL + EMPTY)));
    *few = wanted > all;
    return (struct planner_window){(size_t)(FILL * part), *requests - (size_t)(EMPTY * part)};
}

/* The requests that are simulated, the first ones the same. What is longer than the plan's longest is cut there, as its
 * limit of a sequence does. */
static enum err_code lengthen(struct arena *a, struct plan_case *c, struct err *e)
{
    struct planner_request *q = &c->request;
    size_t requests;
    bool few;
    q->judged = window_of(c, &requests, &few);
    if (q->judged.end == 0) return ERR_OK;
    c->fillings = (double)(q->judged.end - q->judged.first) / in_flight(c);
    c->few = few ? c->fillings : 0;
    if (requests <= c->work.n) return ERR_OK;
    struct workload_spec s = c->spec;
    s.requests = (int64_t)requests;
    TRY(workload_make(a, &s, &c->work, e));
    TRY(workload_put_ahead(&c->work, c->source, e));
    c->truncated = workload_truncate(&c->work, q->traffic.longest_tokens);
    return ERR_OK;
}

static bool show(void *closure, size_t finished, size_t all)
{
    progress_show(closure, finished, all);
    return !interrupt_pending();
}

/* The cheapest plan that the scheduler agrees with. */
static enum err_code verify(struct arena *a, struct plan_case *c, struct err *e)
{
    struct planner_result *r = &c->result;
    struct progress bar;
    struct interrupt held;
    enum { LEAST = 8 };
    TRY(lengthen(a, c, e));
    const int64_t fit =
        PLAN_SIMULATIONS * (int64_t)PLAN_DRAWN * 4 / (int64_t)c->work.n; /* as long in all, of long runs */
    c->simulations = fit < LEAST ? LEAST : fit < PLAN_SIMULATIONS ? fit : PLAN_SIMULATIONS;
    const struct planner_watch watch = {.show = show, .closure = &bar, .most = (size_t)c->simulations};
    interrupt_hold(&held, false);
    progress_start(&bar, "requests of a plan simulated");
    const enum err_code code = c->request.aim == PLANNER_SERVE
                                   ? planner_confirm(a, &c->request, &c->work, &watch, r, &c->confirmed, e)
                                   : planner_confirm_bulk(a, &c->request, &c->work, &watch, r, &c->confirmed, e);
    progress_end(&bar);
    const enum err_code came = interrupt_release(&held);
    TRY(interrupt_relay(code, came, e));
    c->verified = c->confirmed.verified;
    c->refuted = (int64_t)c->confirmed.refuted;
    if (c->confirmed.interrupted)
        return err_set(e, interrupt_relay(ERR_STOPPED, came, NULL),
                       "interrupted: %zu plans were simulated and refuted, and nothing is known of the rest",
                       c->confirmed.refuted);
    if (r->best_n > 0) c->unverified = planner_verifies(&r->best[0]);
    if (c->confirmed.found && c->request.tier_bytes > 0) {
        struct planner_request without = c->request;
        without.tier_bytes = 0;
        TRY(planner_verify(a, &without, &r->best[0], &c->work, &c->tierless, e));
    }
    if (r->best_n > 0 && !c->confirmed.found && !c->unverified && c->request.aim != PLANNER_SERVE)
        c->unverified = c->confirmed.cut ? "too many simulations said no" : "no plan of so many requests a copy";
    return ERR_OK;
}

/* What would cost less and is late on paper, or saturated, by a third of what paper is off at most: of what is farther
 * a simulation refutes most. */
static enum err_code near(struct arena *a, struct plan_case *c, struct err *e)
{
    const struct planner_plan *x = c->result.best_n > 0 ? &c->result.best[0] : NULL;
    const double usd = x ? x->cost.usd_per_h : (double)NAN, part = 1. / 3;
    struct planner_request simulated = c->request;
    size_t requests;
    bool few;
    if (c->request.aim != PLANNER_SERVE || (x && isnan(usd))) return ERR_OK;
    simulated.judged = window_of(c, &requests, &few);
    return planner_near_cheapest(a, &simulated, part, usd, &c->near, &c->has_near, e);
}

static enum err_code search(struct arena *a, struct plan_case *c, struct err *e)
{
    struct progress bar;
    struct interrupt held;
    c->request.progress = show;
    c->request.watching = &bar;
    interrupt_hold(&held, false);
    progress_start(&bar, "parts of the search");
    const enum err_code code = planner_search(a, &c->request, &c->result, e);
    progress_end(&bar);
    const enum err_code came = interrupt_release(&held);
    c->request.progress = NULL;
    return interrupt_relay(code, came, e);
}

/* How far the traffic may rise: simulated where the plan was. */
static enum err_code headroom(struct arena *a, struct plan_case *c, struct err *e)
{
    const struct planner_plan *x = &c->result.best[0];
    struct progress bar;
    struct interrupt held;
    const struct planner_watch watch = {.show = show, .closure = &bar};
    if (c->request.aim == PLANNER_JOB) return ERR_OK;
    if (c->request.aim == PLANNER_DAILY || c->verified.n == 0)
        return planner_headroom(a, &c->request, x, &c->headroom, e);
    interrupt_hold(&held, false);
    progress_start(&bar, "requests of the plan at a higher rate simulated");
    const enum err_code code = planner_headroom_simulated(a, &c->request, x, &c->work, &watch, &c->headroom, e);
    progress_end(&bar);
    return interrupt_relay(code, interrupt_release(&held), e);
}

enum err_code plan_find(struct arena *a, struct plan_case *c, struct err *e)
{
    TRY(search(a, c, e));
    /* on paper none need keep its promises: paper is off */
    if (c->verify && (c->result.best_n > 0 || c->request.aim == PLANNER_SERVE)) TRY(verify(a, c, e));
    if (!c->verify) TRY(near(a, c, e));
    return c->result.best_n > 0 ? headroom(a, c, e) : ERR_OK;
}
