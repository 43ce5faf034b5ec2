/* planner_bounds -- what shows a plan's verdict without its point. MODEL.md "Planner", *What is not solved*. */
#include <math.h>

#include "calc/serve/planner_parts.h"
#include "calc/serve/steady_flights.h"
#include "calc/serve/steady_parts.h"

/* Of a number of roundings. */
static const double MORE = 1 + 1e-9; /* not a unit */

struct planner_beyond planner_beyond_of(const struct planner_request *q, const struct planner_plan *plan,
                                        const struct planner_told *told)
{
    struct planner_beyond b = {.saturation_per_s = 0, .tpot_s = (double)INFINITY};
    if (!told || q->aim == PLANNER_JOB) return b;
    b.saturation_per_s = plan->rate_per_s / fmax(told->saturated, 1) / MORE;
    if (q->aim != PLANNER_SERVE || isnan(q->tpot.s)) return b;
    /* up to there a margin may let it meet */
    const double near = q->near > 0 ? 1 + q->near * (planner_margin_of(q, plan).tpot - 1) : 1;
    b.tpot_s = q->tpot.s * fmax(told->late_tpot, near) * MORE;
    return b;
}

void planner_settle(struct planner_plan *plan, enum planner_verdict v)
{
    plan->verdict = plan->paper = v;
    plan->miss = (double)INFINITY;
    plan->point = planner_point_unknown();
}

/* ---- stages ---- */

/* Of batches of n, so many tokens a second at most, by a part of either: the last stage takes one after another, and a
 * sequence is in one batch at a time. */
static double tokens_per_s(const struct steady_flights *f, double part, double n, double least)
{
    const double all_s = steady_times_step_s(f->through, least, 0),
                 last_s = fmin(all_s, steady_times_step_s(f->slowest, least, 0));
    return n / (f->slower * (part * last_s + (1 - part) * n * all_s / (double)f->max_seqs));
}

/* Whether batches of low..high are below it: more sequences are not faster, so that those of `low` bound all; halved
 * where that does not tell. */
static bool all_below(const struct steady_flights *f, double part, double low, double high, double most_per_s)
{
    if (tokens_per_s(f, part, high, low) <= most_per_s) return true;
    if (low >= high || tokens_per_s(f, part, high, high) > most_per_s) return false;
    const double half = floor((low + high) / 2);
    return all_below(f, part, half + 1, high, most_per_s) && all_below(f, part, low, half, most_per_s);
}

bool planner_flights_below(const struct steady_flights *f, double steps, double rate_per_s)
{
    enum { FEW = 8, MANY = 8192 }; /* not a unit */
    static const double PART[] = {0, 1, .25, .05, .6};
    /* tokens of batches that were under way when one began to look */
    const double edge = 1 + 4 / steps;
    if (!(steps >= FEW) || f->max_seqs > MANY) return false;
    const double most = fmin((double)f->max_seqs, (double)f->budget_tokens), tokens = rate_per_s * steps / edge;
    for (size_t i = 0; i < sizeof PART / sizeof *PART; i++)
        if (all_below(f, PART[i], 1, most, tokens)) return true;
    return false;
}

double planner_flights_token_s(const struct steady_flights *f)
{
    return f->slower * steady_times_step_s(f->through, 1, 0);
}
