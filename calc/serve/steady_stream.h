/* steady_stream -- requests of a run on paper: a fixed stream whose means are exactly those asked for.
 *
 * A few hundred independent gaps have a mean that is off by their standard error, 5 % of 400, and so has the load of
 * every run on that stream: all answers are off alike, and few runs show it. So a stream of n has each n-th part of a
 * distribution once, in a random order, and gaps are scaled to a mean of 1: of n requests nothing is left to chance but
 * the order, while some in a row, fewer than n, are as good as independent. Source: McKay, Beckman, Conover,
 * Technometrics 21(2), 1979 (Latin hypercubes); Vigna's splitmix64. */
#ifndef RIDGE_SERVE_STEADY_STREAM_H
#define RIDGE_SERVE_STEADY_STREAM_H

#include <stdint.h>

/* steady_stream_strata -- u[i] in (0, 1), i < n, one in each of n equal parts, in an order that *state draws. */
void steady_stream_strata(uint64_t *state, double *u, int64_t n);

/* steady_stream_gaps -- gap[n] of mean 1 and a squared coefficient of variation cv2, of a constant and an exponential
 * part up to 1 and hyperexponential beyond (two phases of equal parts in the mean); scratch[n] is overwritten. */
void steady_stream_gaps(uint64_t *state, double cv2, double *gap, double *scratch, int64_t n);

#endif
