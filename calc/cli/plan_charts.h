/* plan_charts -- what pictures of a plan show: how latency rises with throughput, and cost with the rate. */
#ifndef RIDGE_CLI_PLAN_CHARTS_H
#define RIDGE_CLI_PLAN_CHARTS_H

#include "calc/cli/chart.h"
#include "calc/cli/plan.h"

enum { PLAN_CURVES_MAX = 6, PLAN_CURVE_POINTS = 30 };

/* A layout, one copy of it, at rising rates up to saturation. */
struct plan_curve {
    const char *name; /* "h200-sxm TP2, weights fp8" */
    const struct planner_plan *plan;
    struct planner_plan at[PLAN_CURVE_POINTS];
    double copy_gpus;
    double most_per_s; /* requests a second that one copy takes within every promise; 0: none */
};

struct plan_curves {
    struct plan_curve curve[PLAN_CURVES_MAX];
    size_t n;
    bool misses; /* nothing keeps the promises: the nearest late ones are shown */
};

/* plan_curves_of -- of the best of each device and precision, at most PLAN_CURVES_MAX; where nothing keeps the
 * promises, of the nearest late plan of each device. Of a job none. Errors: as planner_search. Cost: some 50 solves
 * each. */
enum err_code plan_curves_of(struct arena *a, const struct plan_case *c, struct plan_curves *out, struct err *e);

/* plan_frontier_charts -- TPOT and TTFT at the parts promised against output tokens a second of one GPU, a line a
 * layout. plan_cost_chart -- dollars an hour against the rate, a line a layout, a step where it takes one more copy;
 * GPUs where a price is not known. Errors: ERR_NOMEM; ERR_NO there are no curves. */
enum err_code plan_frontier_charts(struct arena *a, const struct plan_case *c, const struct plan_curves *of,
                                   struct chart out[2], struct err *e);
enum err_code plan_cost_chart(struct arena *a, const struct plan_case *c, const struct plan_curves *of,
                              struct chart *out, struct err *e);

/* plan_copies_at -- copies of a curve's layout that a rate takes; 0: more than there are GPUs, or it keeps no promise.
 */
int64_t plan_copies_at(const struct plan_case *c, const struct plan_curve *of, double rate_per_s);

/* plan_plot -- the frontier (cost false) or the cost as a picture. Errors: as chart_render. */
enum err_code plan_plot(struct arena *a, const struct plan_case *c, bool cost, const char *output, struct err *e);

#endif
