/* planner_flow -- arrivals whose rate changes in time, against what a plan serves. */
#include <math.h>

#include "calc/serve/planner.h"

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
