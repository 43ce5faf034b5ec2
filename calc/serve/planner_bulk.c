/* planner_bulk -- jobs and tokens a day through the scheduler. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/serve/planner_parts.h"
#include "calc/serve/planner_verify.h"

/* What is known of a plan of the list. */
struct looked_at {
    struct planner_plan plan;
    bool simulated;
    struct planner_verified verified;
};

enum { DAILY_LEAST = 1 << 14 }; /* requests of a copy: a queue needs time to grow */

/* Requests of one copy: those of w over and over, n of them; of a job all at once. */
static enum err_code share_of(struct arena *a, const struct workload *w, bool at_once, size_t n, struct workload *out,
                              struct err *e)
{
    const double span_s = w->first_n > 1 ? w->span_s * (double)w->first_n / (double)(w->first_n - 1) : w->span_s;
    *out = *w;
    out->n = out->first_n = n;
    out->timed = !at_once;
    out->request = arena_array(a, n, sizeof *out->request);
    if (!out->request) return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        struct workload_request *x = &out->request[i];
        *x = w->request[i % w->first_n];
        x->arrival_s = at_once ? 0 : x->arrival_s + span_s * (double)(i / w->first_n);
        x->next = WORKLOAD_NO_NEXT;
        x->stream = (uint32_t)i;
    }
    out->span_s = out->request[n - 1].arrival_s;
    return ERR_OK;
}

static enum err_code simulate_one(const struct planner_request *q, const struct workload *w,
                                  const struct planner_watch *watch, struct looked_at *x, bool *interrupted,
                                  struct err *e)
{
    const bool job = q->aim == PLANNER_JOB;
    const double each = ceil(q->requests / (double)x->plan.layout.replicas);
    struct planner_request one = *q;
    struct planner_plan copy = x->plan;
    struct planner_run run;
    struct workload share;
    struct arena *own = arena_open();
    if (!own) return err_nomem(e);
    one.traffic.rate_per_s = x->plan.rate_per_s;
    copy.layout.replicas = 1;
    const size_t n = job ? (size_t)each : w->first_n > DAILY_LEAST ? w->first_n : DAILY_LEAST;
    enum err_code code = share_of(own, w, job, n, &share, e);
    if (code == ERR_OK) code = planner_run_until(own, &one, &copy, &share, watch, &run, e);
    if (code == ERR_OK) code = planner_run_judge(own, &one, &run, &x->verified, e);
    if (code == ERR_OK) *interrupted = run.result.partial;
    arena_close(own);
    x->simulated = code == ERR_OK && !*interrupted;
    return code;
}

/* With a copy more, on paper again; false: there are no GPUs for it. */
static enum err_code one_more(struct arena *a, const struct planner_request *q, struct looked_at *x, bool *left,
                              struct err *e)
{
    const struct planner_plan *p = &x->plan;
    const int64_t copy = p->gpus / p->layout.replicas;
    struct planner_plan more = *p;
    *left = p->gpus + copy > q->device[p->device].most;
    if (*left) return ERR_OK;
    more.layout.replicas++;
    TRY(planner_at(a, q, &more, &x->plan, e));
    x->simulated = false;
    *left = x->plan.verdict != PLANNER_MEETS;
    return ERR_OK;
}

static enum planner_skip skip_of(const struct planner_request *q, const struct planner_plan *x)
{
    const enum planner_skip why = planner_skip_of(x);
    const bool long_job = q->aim == PLANNER_JOB && ceil(q->requests / (double)x->layout.replicas) > PLANNER_SHARE_MAX;
    return why == PLANNER_SIMULATED && long_job ? PLANNER_SKIP_SHARE : why;
}

/* The place of the best, of those that can be simulated alone; n: there is none. */
static size_t best_of(const struct planner_request *q, const struct looked_at *x, size_t n, bool alone)
{
    size_t best = n;
    for (size_t i = 0; i < n; i++) {
        if (alone && skip_of(q, &x[i].plan) != PLANNER_SIMULATED) continue;
        if (best == n || planner_order(q, &x[i].plan, &x[best].plan) < 0) best = i;
    }
    return best;
}

static enum err_code walk(struct arena *a, const struct planner_request *q, const struct workload *w,
                          const struct planner_watch *watch, struct looked_at *x, size_t *n,
                          struct planner_confirmed *out, struct err *e)
{
    for (size_t runs = 0;; runs++) {
        const size_t i = best_of(q, x, *n, true);
        bool left = false;
        if (i == *n) return ERR_OK;
        if (x[i].simulated) {
            out->found = true;
            out->verified = x[i].verified;
            return ERR_OK;
        }
        out->cut = runs >= watch->most;
        if (out->cut) return ERR_OK;
        TRY(simulate_one(q, w, watch, &x[i], &out->interrupted, e));
        if (out->interrupted) return ERR_OK;
        if (x[i].verified.keeps) {
            if (q->aim == PLANNER_JOB) x[i].plan.point.makespan_s = x[i].verified.makespan_s;
            continue;
        }
        out->refuted++;
        TRY(one_more(a, q, &x[i], &left, e));
        if (left) x[i] = x[--*n];
    }
}

enum err_code planner_confirm_bulk(struct arena *a, const struct planner_request *q, const struct workload *w,
                                   const struct planner_watch *watch, struct planner_result *r,
                                   struct planner_confirmed *out, struct err *e)
{
    size_t n = r->best_n;
    struct looked_at *x = arena_array(a, n + 1, sizeof *x);
    *out = (struct planner_confirmed){.found = false};
    if (!x) return err_nomem(e);
    for (size_t i = 0; i < n; i++) x[i] = (struct looked_at){.plan = r->best[i]};
    TRY(walk(a, q, w, watch, x, &n, out, e));
    if (out->interrupted) return ERR_OK;
    r->best_n = 0;
    while (n > 0) { /* what is not simulated and better than the one that was is told of apart */
        const size_t i = best_of(q, x, n, false);
        if (!out->found || x[i].simulated || r->best_n > 0) {
            r->best[r->best_n++] = x[i].plan;
        } else if (skip_of(q, &x[i].plan) != PLANNER_SIMULATED) {
            planner_skip(q, &x[i].plan, skip_of(q, &x[i].plan), out);
        }
        x[i] = x[--n];
    }
    return ERR_OK;
}
