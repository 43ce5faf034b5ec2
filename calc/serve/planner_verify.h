/* planner_verify -- a plan through the scheduler, request by request. */
#ifndef RIDGE_SERVE_PLANNER_VERIFY_H
#define RIDGE_SERVE_PLANNER_VERIFY_H

#include "calc/serve/planner.h"

struct planner_verified {
    size_t n, finished;    /* requests */
    bool growing;          /* arrivals outran the service */
    double ttft_s, tpot_s; /* at the parts promised (0.95 without) */
    bool keeps;            /* every promise */
};

/* planner_verify -- calc/serve/simulate.h with the plan's limits, cache and copies (least loaded first), at the same
 * part of the band as the plan: a service that is slower by b takes arrivals that come b times closer, in a clock that
 * runs b times slower. Errors: ERR_USAGE a layout that is not simulated (planner_verifies), or more copies than are;
 * ERR_NOMEM. Cost: that of simulate_run. */
enum err_code planner_verify(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                             const struct workload *w, struct planner_verified *out, struct err *e);

/* planner_verifies -- why a plan is not simulated, a sentence; NULL: it is. */
const char *planner_verifies(const struct planner_plan *plan);

#endif
