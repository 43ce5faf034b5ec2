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

/* A plan's run through the scheduler, in the clock of the service: times of records and steps are those of the band. */
struct planner_run {
    struct simulate_result result;
    double band;                /* P90 over the median; 1 */
    struct simulate_step *step; /* runs of equal steps of all copies, as they came */
    size_t steps_n;
    int64_t blocks; /* of a copy */
};

/* planner_run -- what planner_verify looks at, step by step. Errors: as planner_verify. Cost: likewise, and a struct
 * for each run of steps. planner_run_judge -- its quantiles at the parts promised, against the promises. Errors:
 * ERR_NOMEM. */
enum err_code planner_run(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                          const struct workload *w, struct planner_run *out, struct err *e);
enum err_code planner_run_judge(struct arena *a, const struct planner_request *q, const struct planner_run *run,
                                struct planner_verified *out, struct err *e);

/* planner_verifies -- why a plan is not simulated, a sentence; NULL: it is. */
const char *planner_verifies(const struct planner_request *q, const struct planner_plan *plan);

#endif
