/* planner_bounds -- what shows a plan's verdict without its point. MODEL.md "Planner", *What is not solved*. */
#include <math.h>

#include "calc/serve/planner_parts.h"
#include "calc/serve/steady_flights.h"
#include "calc/serve/steady_parted.h"
#include "calc/serve/steady_parts.h"

/* Of a number of roundings. */
static const double MORE = 1 + 1e-9; /* not a unit */

struct planner_beyond planner_beyond_of(const struct planner_request *q, const struct planner_plan *plan,
                                        const struct planner_told *told)
{
    struct planner_beyond b = {.saturation_per_s = 0, .tpot_s = (double)INFINITY, .ttft_s = (double)INFINITY};
    if (!told || q->aim == PLANNER_JOB) return b;
    /* up to there a margin may let it meet */
    const struct planner_margin m = q->near > 0 ? planner_margin_of(q, plan) : (struct planner_margin){1, 1, 1};
    b.saturation_per_s = plan->rate_per_s / fmax(told->saturated, 1 + q->near * (m.rate - 1)) / MORE;
    if (q->aim != PLANNER_SERVE) return b;
    if (!isnan(q->tpot.s)) b.tpot_s = q->tpot.s * fmax(told->late_tpot, 1 + q->near * (m.tpot - 1)) * MORE;
    if (isnan(q->ttft.s)) return b;
    const double beside_s = q->server ? engine_first_s(q->traffic.asked_tokens) : 0;
    b.ttft_s = q->ttft.s * fmax(told->late_ttft, 1 + q->near * (m.ttft - 1)) * MORE - beside_s;
    return b;
}

void planner_settle(struct planner_plan *plan, enum planner_verdict v)
{
    plan->verdict = plan->paper = v;
    plan->miss = (double)INFINITY;
    plan->point = planner_point_unknown();
}

/* ---- a first token ---- */

/* TTFT over that, at least: of 800 drawn at hardly any rate .991 of runs, .937 where steps are solved. */
static const double FIRST_RUN = .98, FIRST_STEPS = .9; /* not a unit */

/* A piece of x tokens where nobody decodes; of groups in its own, the others without. */
static double piece_s(struct steady_times *t, double x)
{
    double at_s[STEADY_SHARES];
    if (!(t->parts > 1)) return steady_times_step_s(t, 0, x);
    steady_times_shares_s(t, 0, x, at_s);
    return steady_times_share_s(at_s, 0);
}

double planner_first_s(const struct planner_request *q, struct steady_times *through, struct steady_times *slowest,
                       double slower)
{
    const double prompt = planner_quantile(q->traffic.prompts, q->traffic.n, planner_promised_frac(&q->ttft));
    const double room = through->budget_tokens, pieces = ceil(prompt / room), last = prompt - (pieces - 1) * room;
    const double one_s = piece_s(through, pieces > 1 ? room : last);
    const double least = slower * (through == slowest ? FIRST_STEPS : FIRST_RUN);
    if (!(pieces > 1)) return least * one_s;
    return least * (one_s + (pieces - 2) * fmin(piece_s(slowest, room), one_s) + fmin(piece_s(slowest, last), one_s));
}

/* ---- steps ---- */

/* A copy as a fluid: of each request its prompt in steps as full as can be, or by itself, and its share of steps of all
 * that have a place. Of attention groups with queues of their own one of them, beside others that are as full. */
struct fluid {
    double groups, least_per_s, most_per_s; /* of one: where it saturates lies between them */
    double prompt_s, most, fewest;          /* what a prompt adds; those that have a place; that decode, of a group */
};

/* By so much the steady state was seen beyond its fluid, and more: of 41,000 drawn solutions its saturation 6.7 % above
 * the upper one, 7.6 % below the lower one, 23.6 % where a full cache computes prompts anew; of 1300 of attention
 * groups 22 % above that of prompts by chance, 25 % below the lesser. */
static const double ABOVE = 1.15, BELOW = 1.15, BELOW_CACHE = 1.4, ABOVE_GROUPS = 1.35,
                    BELOW_GROUPS = 1.6; /* not a unit */

/* A step of attention groups whose prompts come by chance, so many pieces of x tokens in one on average, of Poisson's
 * law, in groups of their own: those of a group twice as long are not shorter. */
static double chance_step_s(struct steady_times *t, double n, double x, double pieces)
{
    double at_s[STEADY_SHARES], chance = exp(-pieces), left = 1 - chance;
    double sum_s = chance * steady_times_decode_s(t, n);
    steady_times_shares_s(t, n, x, at_s);
    for (double k = 0; k < t->parts - 1 && left > 1e-9; k++) { /* others with a piece */
        chance *= pieces / (k + 1);
        left -= chance;
        sum_s += chance * steady_times_share_s(at_s, k / (t->parts - 1));
    }
    return sum_s + fmax(left, 0) * at_s[STEADY_SHARES - 1];
}

/* Of so many Poisson numbers the largest, on average. */
static double largest_of(double mean, double groups)
{
    enum { TAIL = 100 }; /* not a unit: beyond it a normal variate's */
    if (mean > TAIL) return mean + sqrt(mean) * steady_largest_of(groups);
    double term = exp(-mean), below = term, most = 0;
    for (double m = 1;; m++) {
        const double more = 1 - pow(below, groups);
        most += more;
        if (!(more >= 1e-3)) return most;
        term *= mean / m;
        below = fmin(below + term, 1);
    }
}

/* Of so many on average, Poisson, dealt in turn: the mean of ceil(number/groups). */
static double largest_in_turn(double mean, double groups)
{
    enum { TAIL = 500 }; /* not a unit: beyond it phases are as good as uniform */
    if (mean > TAIL) return mean / groups + (groups - 1) / (2 * groups);
    double term = exp(-mean), below = term, most = 0;
    for (double n = 0, next = 0;; n++) {
        if (n >= next) { /* more than that many: all groups have one more */
            if (!(1 - below > 1e-6)) return most;
            most += 1 - below;
            next += groups;
        }
        term *= mean / (n + 1);
        below += term;
    }
}

/* Of those where `prompts` begin in a step of all groups on average; where a group has several, the largest. */
static double chance_s(const struct steady_setup *s, double n, double prompts)
{
    struct steady_times *t = s->times;
    const double prompt = s->lengths->prompt_tokens, room = fmax(t->budget_tokens - n, 1), x = fmin(prompt, room);
    const double pieces = prompts * prompt / x, apart_s = chance_step_s(t, n, x, pieces);
    if (!(4 * pieces > t->parts)) return apart_s;
    double at_s[STEADY_SHARES];
    const double number =
        steady_in_turn(s) ? largest_in_turn(pieces, t->parts) : largest_of(pieces / t->parts, t->parts);
    const double largest = fmin(x * number, room), sum = fmax(pieces * x, largest);
    steady_times_shares_s(t, n, largest, at_s);
    return fmax(apart_s, steady_times_share_s(at_s, fmin(fmax(sum / largest - 1, 0) / (t->parts - 1), 1)));
}

static struct fluid fluid_of(const struct steady_setup *s)
{
    struct steady_times *t = s->times;
    const struct steady_lengths *l = s->lengths;
    const double b = (double)s->block_tokens, prompt = l->prompt_tokens, all = t->budget_tokens, g = t->parts;
    const double seqs = floor((double)s->max_seqs / g), blocks = floor((double)s->blocks / g);
    const double cache = blocks * (1 - s->watermark_frac) / (t->context_tokens / b + .5 * (b - 1) / b);
    const double full = all * l->steps / (prompt + l->steps), most = fmin(seqs, cache);
    struct fluid f = {.groups = g, .most = most, .fewest = 1};
    const double n = fmax(fmin(full, most), 1), decode_s = steady_times_step_s(t, n, 0), room = fmax(all - n, 1);
    const double one = fmin(prompt, room), one_s = (steady_times_step_s(t, n, one) - decode_s) / one;
    const double room_s = (steady_times_step_s(t, n, room) - decode_s) / room, each_s = decode_s / n;
    f.prompt_s = prompt * fmin(one_s, room_s);
    if (full <= most) { /* exactly so (steady_saturation_of) */
        f.most_per_s = f.least_per_s = full / (l->steps * steady_times_step_s(t, n, all - full));
        return f;
    }
    f.most_per_s = ABOVE / ((l->steps + 1) * each_s + f.prompt_s);
    f.least_per_s = 1 / ((l->steps + 2) * each_s + prompt * fmax(one_s, room_s));
    f.least_per_s /= cache < seqs ? BELOW_CACHE : BELOW;
    if (g > 1) { /* as many begin as end */
        const double chance_per_s = n / ((l->steps + 1) * chance_s(s, n, g * n / (l->steps + 1)));
        f.least_per_s = fmin(f.most_per_s / ABOVE, chance_per_s) / BELOW_GROUPS;
        f.most_per_s = fmin(f.most_per_s, chance_per_s * ABOVE_GROUPS);
    }
    return f;
}

/* Seconds of a token at a rate: as many decode as the rate brings in the time that their steps and its prompts take.
 * The time rises from that of one alone, so that whatever is reached is too short. */
static double fluid_token_s(const struct steady_setup *s, const struct fluid *f, double rate_per_s)
{
    enum { ROUNDS = 16 };
    const double left = 1 - fmin(rate_per_s * f->prompt_s, .99), asks = rate_per_s * s->lengths->steps;
    double token_s = steady_times_step_s(s->times, f->fewest, 0);
    for (int i = 0; i < ROUNDS && asks * token_s <= f->most; i++) {
        const double longer_s = steady_times_step_s(s->times, fmax(asks * token_s, f->fewest), 0) / left;
        if (!(longer_s > token_s)) break;
        token_s = longer_s;
    }
    return token_s;
}

/* The same of attention groups. */
static double chance_token_s(const struct steady_setup *s, const struct fluid *f, double rate_per_s)
{
    enum { ROUNDS = 16 };
    double token_s = steady_times_step_s(s->times, 1, 0);
    for (int i = 0; i < ROUNDS && rate_per_s * s->lengths->steps * token_s <= f->most; i++) {
        const double longer_s =
            chance_s(s, fmax(rate_per_s * s->lengths->steps * token_s, 1), rate_per_s * f->groups * token_s);
        if (!(longer_s > token_s)) break;
        token_s = longer_s;
    }
    return token_s;
}

/* Attention groups that compute prompts first: a run over what they do if they were independent (steady_parted_about)
 * was up to 49 % above it and down to half of it, of 14,000 solutions. */
static const double ABOVE_FIRST = 1.7, BELOW_FIRST = 2.5; /* not a unit */

/* What one's prompts take of its time at the least: its own alone, in steps that are as full as can be and that all
 * others share or none. */
static struct fluid first_of(const struct steady_setup *s)
{
    struct steady_times *t = s->times;
    const struct steady_lengths *l = s->lengths;
    struct fluid f = {.groups = t->parts, .fewest = 1 / t->parts, .prompt_s = (double)INFINITY};
    const double about_per_s = steady_parted_about(s, &f.most), prompt = l->prompt_tokens;
    const double room = fmax(t->budget_tokens, prompt);
    f.least_per_s = about_per_s / BELOW_FIRST;
    f.most_per_s = about_per_s * ABOVE_FIRST;
    for (double share = 0; share <= 1; share++) {
        const double one_s = steady_times_whole_s(t, prompt, l->prompt_square, share),
                     full_s = steady_times_whole_s(t, room, room * prompt, share) / room * prompt;
        f.prompt_s = fmin(f.prompt_s, fmin(one_s, full_s));
    }
    return f;
}

/* Quantiles of TPOT over that, at least: seen .96 of it at p95 and p99, .78 at p50; of groups .93 and .63. */
static double least_of(const struct fluid *f, double frac)
{
    if (f->groups > 1) return frac >= .95 ? .85 : .5;
    return frac >= .95 ? .9 : .7;
}

enum planner_verdict planner_steps_beyond(const struct planner_request *q, const struct steady_setup *s,
                                          double rate_per_s, const struct planner_beyond *b)
{
    enum { FEW = 8 }; /* not a unit */
    const double slower = s->slower > 0 ? s->slower : 1, little = 1 / MORE;
    const bool first = steady_parts_of(s) > 1 && steady_parted_of(s);
    const bool alone = s->policy == SIMULATE_CHUNKED && !s->decode && !s->draft.of && s->times;
    if (isfinite(b->ttft_s) && alone && !(s->lengths->cached_tokens > 0) &&
        planner_first_s(q, s->times, s->times, slower) > b->ttft_s)
        return PLANNER_LATE_TTFT;
    if ((!(b->saturation_per_s > 0) && !isfinite(b->tpot_s)) || !(first || s->policy == SIMULATE_CHUNKED) ||
        s->decode || s->draft.of || !s->times || !(s->lengths->steps >= FEW) || s->lengths->cached_tokens > 0)
        return PLANNER_MEETS;
    const struct fluid f = first ? first_of(s) : fluid_of(s);
    const double fast_per_s = rate_per_s * slower / f.groups;
    if (f.most_per_s < b->saturation_per_s * slower / f.groups * little) return PLANNER_SATURATED;
    if (!isfinite(b->tpot_s) || !(fast_per_s < f.least_per_s * little)) return PLANNER_MEETS;
    double token_s = fluid_token_s(s, &f, fast_per_s);
    if (f.groups > 1 && !first) /* prompts of groups come neither all at once nor each by itself */
        token_s = sqrt(token_s * fmax(token_s, chance_token_s(s, &f, fast_per_s)));
    token_s *= slower * least_of(&f, planner_promised_frac(&q->tpot));
    return token_s > b->tpot_s ? PLANNER_LATE_TPOT : PLANNER_MEETS;
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

/* Batches under way as a fluid: the slowest stage takes one after another, of each request its steps and its prompt in
 * batches as full as can be; and each of those that have a place is in one at a time. */
struct flow {
    double most_per_s, prompt_s, most; /* prompt_s: through all stages */
};

static struct flow flow_of(const struct steady_flights *f, const struct planner_traffic *t)
{
    enum { ROUNDS = 14 };
    const double steps = t->output_tokens - 1, prompt = t->prompt_tokens, all = (double)f->budget_tokens;
    struct flow x = {.most = fmin((double)f->max_seqs, f->cache_tokens / (t->context_tokens + f->block_tokens / 2))};
    double low = 1, high = fmax(fmin(x.most, all - 1), 1);
    for (int i = 0; i < ROUNDS; i++) { /* sequences of a batch: more of them for the stage, fewer for the places */
        const double n = sqrt(low * high), room = fmax(all - n, 1), one = fmin(prompt, room);
        const double last_s = steady_times_step_s(f->slowest, n, 0), all_s = steady_times_step_s(f->through, n, 0);
        const double late_s = (steady_times_step_s(f->slowest, n, room) - last_s) / room * prompt;
        const double room_s = (steady_times_step_s(f->through, n, room) - all_s) / room,
                     one_s = (steady_times_step_s(f->through, n, one) - all_s) / one;
        const double stage = 1 / (steps * last_s / n + late_s),
                     places = x.most / (steps * all_s + n * prompt * fmin(room_s, one_s));
        if (fmin(stage, places) > x.most_per_s) {
            x.most_per_s = fmin(stage, places);
            x.prompt_s = prompt * fmin(room_s, one_s);
        }
        *(stage < places ? &low : &high) = n;
    }
    x.most_per_s /= f->slower;
    x.prompt_s *= f->slower;
    return x;
}

/* A run beyond its fluid, and more: of 3,200 runs the saturation was up to 2.4 % above it (10.9 % of 5,000 that were
 * shorter), TPOT down to .91. */
static const double FLOWS_ABOVE = 1.15, FLOWS_TOKEN = .75;

bool planner_flights_below(const struct steady_flights *f, const struct planner_traffic *t, double rate_per_s)
{
    enum { FEW = 8, MANY = 8192 }; /* not a unit */
    static const double PART[] = {0, 1, .25, .05, .6};
    const double steps = t->output_tokens - 1, edge = 1 + 4 / steps; /* batches that were under way before one looks */
    if (!(steps >= FEW) || f->max_seqs > MANY) return false;
    const double most = fmin((double)f->max_seqs, (double)f->budget_tokens), tokens = rate_per_s * steps / edge;
    for (size_t i = 0; i < sizeof PART / sizeof *PART; i++)
        if (all_below(f, PART[i], 1, most, tokens)) return true;
    return flow_of(f, t).most_per_s * FLOWS_ABOVE < rate_per_s;
}

double planner_flights_token_s(const struct steady_flights *f, const struct planner_traffic *t)
{
    enum { ROUNDS = 16, FEW = 8 }; /* not a unit */
    const double steps = t->output_tokens - 1, stages = (double)f->stages;
    double token_s = f->slower * steady_times_step_s(f->through, 1, 0);
    if (!(steps >= FEW)) return token_s;
    const struct flow x = flow_of(f, t);
    const double alone_s = token_s, left = 1 - fmin(f->rate_per_s * x.prompt_s / stages, .99);
    for (int i = 0; i < ROUNDS && f->rate_per_s * steps * token_s <= x.most; i++) { /* batches alike in all stages */
        const double n = fmax(f->rate_per_s * steps * token_s / stages, 1),
                     longer_s = f->slower * steady_times_step_s(f->through, n, 0) / left;
        if (!(longer_s > token_s)) break;
        token_s = longer_s;
    }
    return fmax(alone_s, token_s * FLOWS_TOKEN);
}
