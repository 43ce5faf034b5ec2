/* simulate_charts -- a simulation as pictures: batch, queue and cache over time, and parts of requests against times.
 */
#ifndef RIDGE_CLI_SIMULATE_CHARTS_H
#define RIDGE_CLI_SIMULATE_CHARTS_H

#include "calc/cli/chart.h"
#include "calc/serve/simulate.h"

/* Steps as means over equal pieces of time. blocks_percent: of the blocks of all copies. wait_s: the longest of
 * requests that came within a piece, until a step computed them; 0: none came. (How many wait is next to none on
 * average up to where a service saturates, as steps take in whoever came during the one before.) */
enum { SIMULATE_BINS = 300 };
struct simulate_bins {
    double time_s[SIMULATE_BINS], batch[SIMULATE_BINS], wait_s[SIMULATE_BINS], blocks_percent[SIMULATE_BINS];
};

/* simulate_bins_of -- n > 0 runs of steps of a result, and its requests; blocks: of all copies. */
void simulate_bins_of(const struct simulate_step *step, size_t n, const struct simulate_result *r, double blocks,
                      struct simulate_bins *out);

/* simulate_time_charts -- the three over time. Errors: ERR_NOMEM. */
enum err_code simulate_time_charts(struct arena *a, const struct simulate_bins *b, struct chart out[3], struct err *e);

/* simulate_part_charts -- TTFT and TPOT: which part of the requests had it within so long. limit_s and frac of each;
 * NAN: nothing is promised. Errors: ERR_NOMEM; ERR_NO no request was answered. */
enum err_code simulate_part_charts(struct arena *a, const struct simulate_result *r, const double limit_s[2],
                                   const double frac[2], struct chart out[2], struct err *e);

#endif
