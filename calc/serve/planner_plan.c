/* planner_plan -- one plan: its order among others, and at other traffic. */
#include <math.h>
#include <string.h>

#include "calc/serve/planner_parts.h"

static const char *const VERDICTS[PLANNER_VERDICTS] = {"meets",     "dearer",    "late-ttft", "late-tpot", "late-job",
                                                       "saturated", "slow-ttft", "slow-tpot", "short",     "illegal"};

const char *planner_verdict_name(enum planner_verdict v) { return VERDICTS[v]; }

/* -- which is better -- */

static int rising(double a, double b) { return a < b ? -1 : a > b ? 1 : 0; }

/* Changes of precision, and a draft: none before some. */
static int changes(const struct planner_request *q, const struct planner_plan *x)
{
    const struct planner_format *f = &q->format[x->format];
    return (f->weights != NULL) + (f->kv != NULL) + (x->gamma > 0) + (x->prefill > 0);
}

int planner_order(const struct planner_request *q, const struct planner_plan *a, const struct planner_plan *b)
{
    const bool job = q->aim == PLANNER_JOB;
    const double pa = a->cost.usd_per_h, pb = b->cost.usd_per_h;
    int r = isnan(pa) - isnan(pb);
    if (!r && !isnan(pa)) r = job ? rising(pa * a->point.makespan_s, pb * b->point.makespan_s) : rising(pa, pb);
    if (!r && job) r = rising((double)a->gpus * a->point.makespan_s, (double)b->gpus * b->point.makespan_s);
    if (!r && q->near > 0) r = rising(planner_near_part(q, a), planner_near_part(q, b));
    if (!r) r = rising((double)a->gpus, (double)b->gpus);
    if (!r) r = changes(q, a) - changes(q, b);
    if (!r && job) r = rising(a->point.makespan_s, b->point.makespan_s);
    const double ra = a->point.saturation_per_s * (double)a->layout.replicas,
                 rb = b->point.saturation_per_s * (double)b->layout.replicas;
    if (!r) r = rising(rb, ra);
    if (!r) r = rising(a->point.tpot_s, b->point.tpot_s);
    const int64_t x[] = {a->layout.replicas, a->layout.pp,       a->layout.dp,       a->layout.ep, a->seqs,
                         a->step_tokens,     (int64_t)a->device, (int64_t)a->format, a->gamma,     a->prefill,
                         a->layout.dcp};
    const int64_t y[] = {b->layout.replicas, b->layout.pp,       b->layout.dp,       b->layout.ep, b->seqs,
                         b->step_tokens,     (int64_t)b->device, (int64_t)b->format, b->gamma,     b->prefill,
                         b->layout.dcp};
    for (size_t i = 0; !r && i < sizeof x / sizeof *x; i++) r = x[i] < y[i] ? -1 : x[i] > y[i];
    return r;
}

int64_t planner_settings(const struct planner_request *q, int64_t gamma)
{
    const int64_t judged = planner_judged(q, gamma);
    int64_t n = 0;
    for (size_t i = 0; i < q->seqs_n; i++)
        for (size_t k = 0; k < q->step_tokens_n; k++) n += q->seqs[i] <= q->step_tokens[k] / judged;
    return n;
}

struct planner_plan planner_blank(const struct planner_unit *u)
{
    return (struct planner_plan){.device = u->device,
                                 .format = u->format,
                                 .layout = u->layout,
                                 .gpus = u->gpus,
                                 .gamma = u->gamma,
                                 .why = u->why,
                                 .floor_tpot_s = u->floor_tpot_s,
                                 .floor_ttft_s = u->floor_ttft_s,
                                 .floor_tpot_by = u->floor_tpot_by,
                                 .floor_ttft_by = u->floor_ttft_by};
}

double planner_promised_frac(const struct planner_promise *p) { return isnan(p->s) ? .95 : p->frac; }

struct planner_point planner_point_unknown(void)
{
    const double unknown = (double)NAN;
    return (struct planner_point){.ttft_s = unknown,
                                  .tpot_s = unknown,
                                  .ttft_mean_s = unknown,
                                  .tpot_mean_s = unknown,
                                  .batch = unknown,
                                  .step_s = unknown,
                                  .busy_frac = unknown,
                                  .makespan_s = unknown,
                                  .tail_s = unknown};
}

void planner_copies(const struct planner_request *q, struct planner_plan *plan, const struct planner_unit *u,
                    int64_t copies)
{
    plan->layout.replicas = copies;
    plan->gpus = u->gpus * copies;
    plan->rate_per_s = q->traffic.rate_per_s / (double)copies;
}

enum err_code planner_check(const struct planner_request *q, struct err *e)
{
    if (q->devices_n == 0 || q->formats_n == 0 || planner_settings(q, 0) == 0)
        return err_set(e, ERR_RANGE, "nothing to choose from: no step of so many tokens holds so many sequences");
    if (!(q->traffic.rate_per_s > 0)) return err_set(e, ERR_RANGE, "a plan needs requests: their rate is not above 0");
    for (size_t d = 0; d < q->devices_n; d++)
        if (q->device[d].most < 1 || q->device[d].per_node < 1)
            return err_set(e, ERR_RANGE, "%s: no GPUs to plan with", q->device[d].hw->name);
    return ERR_OK;
}

/* -- one plan -- */

enum err_code planner_open_one(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                               struct planner *p, struct planner_unit *u, struct planner_plan *out, struct err *e)
{
    struct layout one = plan->layout;
    one.replicas = 1;
    TRY(planner_open(a, q, p, e));
    TRY(planner_unit_make(p, plan->device, plan->format, &one, u, e));
    if (plan->gamma > 0) TRY(planner_unit_draft(p, u, plan->gamma, e));
    *out = planner_blank(u);
    out->seqs = plan->seqs;
    out->step_tokens = plan->step_tokens;
    out->prefill = plan->prefill;
    if (u->why) {
        out->verdict = PLANNER_ILLEGAL;
        return ERR_OK;
    }
    TRY(planner_memory(p, u, plan->step_tokens, plan->seqs, out, e));
    planner_copies(q, out, u, plan->layout.replicas);
    return ERR_OK;
}

enum err_code planner_at(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                         struct planner_plan *out, struct err *e)
{
    struct planner p;
    struct planner_unit u;
    TRY(planner_check(q, e));
    TRY(planner_open_one(a, q, plan, &p, &u, out, e));
    if (out->verdict != PLANNER_MEETS) return ERR_OK;
    TRY(planner_solve(&p, &u, out, e));
    planner_finish(&p, &u, out);
    return ERR_OK;
}

enum err_code planner_sweep(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                            const double *rate_per_s, size_t n, struct planner_plan *out, struct err *e)
{
    struct planner p;
    struct planner_unit u;
    struct planner_plan x;
    TRY(planner_check(q, e));
    TRY(planner_open_one(a, q, plan, &p, &u, &x, e));
    for (size_t i = 0; i < n; i++) {
        if (!(rate_per_s[i] > 0)) return err_set(e, ERR_RANGE, "a rate of a sweep is not above 0");
        out[i] = x;
        if (x.verdict != PLANNER_MEETS) continue;
        out[i].rate_per_s = rate_per_s[i];
        TRY(planner_solve(&p, &u, &out[i], e));
        planner_finish(&p, &u, &out[i]);
    }
    return ERR_OK;
}
