/* planner_stages -- the steady state of layouts whose stages mixed steps know, pieces of prompts beside those that
 * decode. MODEL.md "Planner", *Stages*. */
#include <math.h>

#include "calc/serve/planner_parts.h"
#include "calc/serve/steady_parts.h"

/* Three ways in which batches may be under way, each a steady state of its own. */
struct ways {
    struct steady_setup full, even, turn;
    struct steady_result full_of, even_of, turn_of;
    double full_s;                    /* of a token where all steps are full, or all places taken */
    double together_per_s, all_per_s; /* that the places serve where batches never part; and where they are even */
    double steps;                     /* of an answer that decode */
};

/* All as full as can be: a step is its slowest stage's, one of as many batches as there are stages. */
static struct steady_setup full_of(const struct planner_unit *u, const struct steady_setup *s, int64_t longest_tokens)
{
    const int64_t p = u->layout.pp, longest = longest_tokens / s->block_tokens + 2;
    struct steady_setup x = *s;
    x.max_seqs = (s->max_seqs + p - 1) / p;
    x.blocks = s->blocks / p > longest ? s->blocks / p : longest;
    x.slowest = true;
    return x;
}

/* Even ones, through all stages one after another. */
static struct steady_setup even_of(const struct planner_unit *u, const struct steady_setup *full)
{
    struct steady_setup x = *full;
    x.slowest = false;
    x.rate_per_s /= (double)u->layout.pp;
    return x;
}

/* A turn: whoever decodes is in the first batch, and what it leaves of prompts is in those close behind it. */
static struct steady_setup turn_of(const struct planner_unit *u, const struct steady_setup *s)
{
    struct steady_setup x = *s;
    x.batch_tokens = s->budget_tokens;
    x.budget_tokens *= u->layout.pp;
    return x;
}

static enum err_code solve(struct planner *p, struct planner_clock *c, struct steady_setup *s,
                           struct steady_result *out, struct err *e)
{
    TRY(planner_steady_times(p, c, s->budget_tokens, s, NULL, e));
    return steady_solve(p->arena, s, out, e);
}

/* More than k of a Poisson number. */
static double more_than(double mean, double k)
{
    double term = exp(-mean), below = 0;
    for (double i = 0; i <= k && i < 1e4; term *= mean / ++i) below += term; /* not a unit */
    return fmax(0, 1 - below);
}

/* That the prompts of a turn do not all fit beside n that decode. */
static double overflows(const struct planner_plan *plan, const struct planner_traffic *t, double prompts, double n)
{
    const double room = fmax((double)plan->step_tokens - n, 0);
    return more_than(prompts, floor(room / t->prompt_tokens));
}

/* Where all have a place that may: of batches that never part the first has all of them, or the full ones as many as
 * there are; they part where a turn's prompts do not fit now and then in the time of an answer. */
static double saturation(const struct planner_plan *plan, const struct planner_traffic *t, struct ways *w)
{
    const double budget = (double)plan->step_tokens, places = fmax(1, plan->batch_most);
    const double most = budget * w->steps / (t->prompt_tokens + w->steps), n = fmax(1, fmin(places, most));
    const double prompts = n / w->steps, tokens = fmin(budget - n, prompts * t->prompt_tokens);
    w->full_s = w->full.slower * steady_times_step_s(w->turn.times, n, fmax(tokens, 0));
    const double all = w->full_of.saturation_rate_per_s, together = places / (w->steps * w->full_s);
    w->together_per_s = together;
    w->all_per_s = all;
    const double part = places > most ? 1 : -expm1(-w->steps * overflows(plan, t, prompts, n));
    return together < all ? together + part * (all - together) : all;
}

/* Of a place, where they are all taken unless batches part: it is passed on in the time of an answer. A sixth of that
 * is of simulations. */
static double wait_s(const struct ways *w, double rate_per_s, double token_s)
{
    if (!(w->together_per_s < w->all_per_s)) return 0;
    const double part = (rate_per_s - w->together_per_s) / (w->all_per_s - w->together_per_s);
    return part > 0 ? part / fmax(1 - part, .01) * w->steps * token_s / 6 : 0;
}

/* How much of a token's time is that of turns: all of it where no turn overflows, half of its logarithm where most do,
 * more as turns alone saturate, from .9 to 1.2 of their rate. Of simulations, as are all numbers here. */
static double turns_frac(const struct planner_plan *plan, const struct planner_traffic *t, const struct ways *w)
{
    const double even_s = fmin(isnan(w->even_of.tpot_s.mean) ? w->full_s : w->even_of.tpot_s.mean, w->full_s);
    const double n = plan->rate_per_s * w->steps * even_s;
    const double load = plan->rate_per_s / w->turn_of.saturation_rate_per_s;
    const double beyond = t->prompt_tokens > (double)plan->step_tokens - n ? 0 : fmin(fmax((load - .9) / .3, 0), 1);
    return fmax(.5 + .35 * beyond, exp(-4 * overflows(plan, t, plan->rate_per_s * even_s, n)));
}

static double between(double even, double turn, double frac) { return exp((1 - frac) * log(even) + frac * log(turn)); }

/* A token, no longer than in full steps. */
static double token_s(const struct ways *w, double even_s, double turn_s, double frac)
{
    return between(isnan(even_s) ? w->full_s : fmin(even_s, w->full_s),
                   isnan(turn_s) ? w->full_s : fmin(turn_s, w->full_s), frac);
}

/* A first token. Its pieces are close behind one another. Of a steady state that is saturated it takes so many full
 * steps. */
static double first_s(const struct ways *w, double even_s, double turn_s, double frac, double steps, double more_s)
{
    const double turn = isnan(turn_s) ? steps * w->full_s : turn_s;
    if (more_s > 0) return isnan(even_s) ? turn + more_s : fmin(even_s, turn + more_s);
    return between(isnan(even_s) ? steps * w->full_s : even_s, turn, frac);
}

/* Of a prompt, its pieces in the batches behind the first. */
static double behind_s(const struct ways *w, const struct planner_plan *plan, double tokens, double n, double stages)
{
    const double pieces = ceil(tokens / fmax(1, (double)plan->step_tokens - n));
    return fmin(pieces - 1, stages - 1) * w->full_s / stages;
}

static void tell(const struct planner_request *q, const struct planner_unit *u, const struct planner_plan *plan,
                 struct ways *w, struct planner_point *o)
{
    w->full_s = fmin(w->full_s, fmax(1, plan->batch_most) / (plan->rate_per_s * w->steps)); /* Little */
    const struct planner_traffic *t = &q->traffic;
    const double frac = turns_frac(plan, t, w), stages = (double)u->layout.pp;
    const double of_token = planner_promised_frac(&q->tpot), of_first = planner_promised_frac(&q->ttft);
    o->tpot_mean_s = token_s(w, w->even_of.tpot_s.mean, w->turn_of.tpot_s.mean, frac);
    o->tpot_s = token_s(w, planner_spread_at(&w->even_of.tpot_s, of_token),
                        planner_spread_at(&w->turn_of.tpot_s, of_token), frac);
    const double n = plan->rate_per_s * w->steps * o->tpot_mean_s;
    const double long_tokens = planner_quantile(t->prompts, t->n, of_first);
    const double late_s = wait_s(w, plan->rate_per_s, o->tpot_mean_s);
    o->ttft_mean_s = late_s + first_s(w, w->even_of.ttft_s.mean, w->turn_of.ttft_s.mean, frac, 2,
                                      behind_s(w, plan, t->prompt_tokens, n, stages));
    o->ttft_s =
        first_s(w, planner_spread_at(&w->even_of.ttft_s, of_first), planner_spread_at(&w->turn_of.ttft_s, of_first),
                frac, of_first > .5 ? 3 : 2, behind_s(w, plan, long_tokens, n, stages));
    o->ttft_s = fmax(o->ttft_s + late_s * (of_first > .5 ? -log(1 - of_first) : 1), u->floor_ttft_s);
    o->step_s = o->tpot_mean_s;
    o->busy_frac = isnan(w->turn_of.utilisation) ? 1 : w->turn_of.utilisation;
    o->batch = n + plan->rate_per_s * o->ttft_mean_s;
}

enum err_code planner_stages(struct planner *p, struct planner_unit *u, struct planner_plan *plan, struct err *e)
{
    const struct planner_request *q = p->q;
    const struct planner_traffic *t = &q->traffic;
    struct planner_point *o = &plan->point;
    struct planner_clock *c;
    struct steady_setup s;
    struct ways w = {.steps = fmax(1, t->output_tokens - 1)};
    *o = planner_point_unknown();
    TRY(planner_clock_of(p, u->device, u->format, &u->layout, 0, &c, e));
    planner_steady(p, u, plan, c, &s);
    TRY(planner_ratio(p, u, plan, &s.slower, e));
    w.full = full_of(u, &s, t->longest_tokens);
    w.even = even_of(u, &w.full);
    w.turn = turn_of(u, &s);
    TRY(solve(p, c, &w.full, &w.full_of, e));
    TRY(solve(p, c, &w.turn, &w.turn_of, e));
    plan->memory_binds = w.full_of.by == STEADY_BLOCKS;
    o->saturation_per_s = saturation(plan, t, &w);
    if (q->aim == PLANNER_JOB) { /* all at once, prompts fill the steps and all stages */
        const double each = ceil(q->requests / (double)plan->layout.replicas), held = fmin(plan->batch_most, each);
        const double batch = fmax(1, held / (double)u->layout.pp);
        o->saturation_per_s = w.full_of.saturation_rate_per_s;
        planner_drain(t, each, held, o->saturation_per_s, s.slower * steady_times_step_s(w.turn.times, batch, 0),
                      s.slower * steady_times_step_s(w.turn.times, 1, 0), o);
    }
    if (!(plan->rate_per_s < o->saturation_per_s)) return ERR_OK;
    TRY(solve(p, c, &w.even, &w.even_of, e));
    tell(q, u, plan, &w, o);
    return ERR_OK;
}
