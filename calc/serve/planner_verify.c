#include "calc/serve/planner_verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/serve/planner_parts.h"

const char *planner_verifies(const struct planner_plan *plan)
{
    if (!planner_mixes(&plan->layout))
        return "simulations know the ranks of one stage in one node and copies, no other layout";
    if (plan->layout.replicas > SIMULATE_REPLICAS_MAX) return "so many copies are not simulated";
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static enum err_code quantile_of(const struct simulate_result *r, double (*value)(const struct simulate_record *),
                                 double frac, struct arena *a, double *out, struct err *e)
{
    double *v = arena_array(a, r->n + 1, sizeof *v);
    size_t n = 0;
    if (!v) return err_nomem(e);
    for (size_t i = 0; i < r->n; i++) {
        v[n] = value(&r->record[i]);
        if (!isnan(v[n])) n++;
    }
    qsort(v, n, sizeof *v, by_value);
    *out = n ? planner_quantile(v, n, frac) : (double)NAN;
    return ERR_OK;
}

enum err_code planner_verify(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                             const struct workload *w, struct planner_verified *out, struct err *e)
{
    struct planner p;
    struct planner_unit u;
    struct planner_clock *c;
    struct simulate_result r;
    struct workload closer = *w;
    struct layout one = plan->layout;
    const char *why = planner_verifies(plan);
    if (why) return err_set(e, ERR_USAGE, "%s", why);
    one.replicas = 1;
    TRY(planner_open(a, q, &p, e));
    TRY(planner_unit_make(&p, plan->device, plan->format, &one, &u, e));
    TRY(planner_clock_of(&p, plan->device, plan->format, &one, &c, e));
    const double band = planner_band(&p, c, plan->batch_most);
    const double own = w->span_s > 0 ? (double)(w->first_n - 1) / w->span_s * (double)w->n / (double)w->first_n
                                     : q->traffic.rate_per_s;
    const double faster =
        band * q->traffic.rate_per_s / own; /* the plan's rate, where it is not that of the requests */
    closer.request = arena_array(a, w->n, sizeof *closer.request);
    if (!closer.request) return err_nomem(e);
    memcpy(closer.request, w->request, w->n * sizeof *closer.request);
    for (size_t i = 0; i < w->n; i++) closer.request[i].arrival_s /= faster;
    closer.span_s /= faster;
    closer.think_s /= band;
    const struct simulate_setup s = {.work = &closer,
                                     .plan = c->plan,
                                     .calibrated = c->calibrated,
                                     .server = c->server,
                                     .overlapped = c->overlapped,
                                     .policy = planner_policy(q),
                                     .watermark_frac = planner_watermark(q),
                                     .budget_tokens = plan->step_tokens,
                                     .max_seqs = plan->seqs,
                                     .memory = SIMULATE_PAGED,
                                     .blocks = planner_blocks(&p, &u, plan),
                                     .block_tokens = p.engine->block_tokens,
                                     .max_len_tokens = q->traffic.longest_tokens,
                                     .replicas = plan->layout.replicas,
                                     .route = SIMULATE_LEAST_LOADED};
    TRY(simulate_run(a, &s, &r, e));
    *out = (struct planner_verified){.n = r.n, .finished = r.finished, .growing = r.growing};
    TRY(quantile_of(&r, simulate_ttft_s, isnan(q->ttft.s) ? .95 : q->ttft.frac, a, &out->ttft_s, e));
    TRY(quantile_of(&r, simulate_tpot_s, isnan(q->tpot.s) ? .95 : q->tpot.frac, a, &out->tpot_s, e));
    out->ttft_s *= band;
    out->tpot_s *= band;
    out->keeps = !r.growing && (isnan(q->ttft.s) || out->ttft_s <= q->ttft.s) &&
                 (isnan(q->tpot.s) || isnan(out->tpot_s) || out->tpot_s <= q->tpot.s);
    return ERR_OK;
}
