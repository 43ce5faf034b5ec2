/* steady_parted -- attention groups that compute prompts before they decode: queues that wait for each other.
 *
 * A group with prompts waiting takes whole ones of its budget and makes no token; the others decode meanwhile, and a
 * step is as long as the one with most to do takes, T = max(d(n), t(most, sum)). What comes in a long step comes to all
 * of them, so that their next step is long too, and all of them make no token in it:
 *
 *     queue'_j = queue_j - taken_j + come_j(T)        T of all groups, come_j to the one of the fewest requests
 *
 * That is Lindley's recurrence of g queues with one clock, whose joint law has no closed form and is no product of
 * those of its groups. It is run on one fixed stream, whose gaps scale with the rate, from empty groups until what they
 * hold has been replaced. Step times are those of a steady state's grid, the cache is a number of tokens. MODEL.md
 * "Steady state", *Prompts first in groups*. Source: Lindley, Proc. Camb. Phil. Soc. 48, 1952. */
#ifndef RIDGE_SERVE_STEADY_PARTED_H
#define RIDGE_SERVE_STEADY_PARTED_H

#include "calc/serve/steady_parts.h"

/* steady_parted_of -- whether that is asked: prompts first, several groups of one copy (what a router sends to several
 * depends on their numbers, which a stream of its own has not), no drafts, requests that come at a rate; or one alone
 * whose steps are a server's or of measured kernels, as a line through steps that have jumps says nothing of them. */
bool steady_parted_of(const struct steady_setup *s);

/* steady_parted_saturate -- the rate at which a group of r saturates, where `all` is what was asked of all groups: sets
 * most_per_s, which is kept with the limits of r->times. steady_parted_solve -- below it: sets the members of r that
 * steady_tell_of asks for, and the distributions. Errors: ERR_NOMEM. Cost: some thousand requests, 50 to 200 ns each
 * and each step. */
enum err_code steady_parted_saturate(struct steady_replica *r, struct err *e);
enum err_code steady_parted_solve(struct steady_replica *r, struct steady_histogram *ttft,
                                  struct steady_histogram *tpot, struct steady_histogram *latency, struct err *e);

/* steady_parted_about -- where a group of s, whose times are there, saturates if groups were independent: the closed
 * form that was before the run, which is within its margins (planner_bounds.c); most: that decode at a time. */
double steady_parted_about(const struct steady_setup *s, double *most);

#endif
