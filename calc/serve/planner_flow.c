/* planner_flow -- arrivals whose rate changes in time, against what a plan serves. */
#include <math.h>

#include "calc/serve/planner.h"

enum err_code planner_flow_of(struct arena *a, const struct workload_spec *spec, const struct workload *w,
                              struct planner_flow *out, struct err *e)
{
    enum { BINS = 4096 }; /* not a unit */
    const double period_s = workload_period_s(spec), half = .5;
    const bool sine = spec->arrival == WORKLOAD_DIURNAL;
    *out = (struct planner_flow){.n = 0};
    if (!(period_s > 0) || !(sine || w->span_s > 0)) return ERR_OK;
    double *requests = arena_array(a, BINS, sizeof *requests);
    if (!requests) return err_nomem(e);
    *out = (struct planner_flow){
        .requests = requests, .n = BINS, .bin_s = (sine ? period_s : w->span_s) / BINS, .rate_per_s = spec->rate_per_s};
    for (size_t i = 0; i < BINS; i++)
        requests[i] = sine ? workload_sine_per_s(spec, ((double)i + half) * out->bin_s) * out->bin_s : 0;
    for (size_t i = 0; !sine && i < w->n; i++) {
        const size_t bin = (size_t)(w->request[i].arrival_s / out->bin_s);
        requests[bin < BINS ? bin : BINS - 1]++;
    }
    return ERR_OK;
}

bool planner_floods(const struct planner_request *q, const struct planner_plan *plan)
{
    const struct planner_flow *f = &q->flow;
    const double more = 1.1; /* than the steady state serves: it is no bound */
    if (f->n == 0 || isnan(q->ttft.s) || plan->prefill > 0) return false;
    const double copies = (double)plan->layout.replicas, faster = q->traffic.rate_per_s / f->rate_per_s;
    const double serves = more * plan->point.saturation_per_s * copies; /* requests a second */
    const double groups = plan->layout.dp > 1 ? (double)plan->layout.dp : 1;
    const double held = (double)plan->seqs * groups * copies;
    double queue = 0, late = 0, all = 0;
    for (size_t i = 0; i < f->n; i++) {
        queue = fmax(0, queue + f->requests[i] - serves * f->bin_s / faster);
        all += f->requests[i];
        if (queue - held > serves * q->ttft.s) late += f->requests[i];
    }
    return late > (1 - q->ttft.frac) * all;
}
