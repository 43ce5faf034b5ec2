/* steady_ttft -- what requests see of a replica at equilibrium; of steady_parts.h. */
#include <math.h>

#include "calc/serve/steady_chain.h"

/* Middles of equal parts of an exponential distribution of mean 1, and of a normal one. */
static const double EXPONENTIAL[] = {.137, .471, .981, 2.411};
static const double FIFTH[] = {-1.400, -.532, 0, .532, 1.400};
enum {
    LASTS = sizeof FIFTH / sizeof FIFTH[0],
    WAITS = sizeof EXPONENTIAL / sizeof EXPONENTIAL[0],
    RESIDUES = 4,
};

/* Steps of a prompt behind `ahead` tokens with `behind` after it in the same step. */
static double own_s(struct steady_times *t, const struct steady_flow *f, double tokens, double ahead, double behind)
{
    const double room = f->room_tokens;
    if (!t->pieces) {
        if (ahead + tokens <= room) return steady_times_step_s(t, f->n, fmin(ahead + tokens + behind, room));
        return steady_times_step_s(t, f->n, fmax(tokens, fmin(tokens + behind, room))) +
               (ahead > 0 ? steady_times_step_s(t, f->n, ahead) : 0);
    }
    const double steps = fmax(ceil((ahead + tokens) / room - 1e-9), 1);
    const double last = fmin(ahead + tokens + behind - (steps - 1) * room, room);
    return (steps - 1) * f->full_s + steady_times_step_s(t, f->n, last);
}

struct seen {
    struct steady_replica *r;
    struct steady_histogram *h;
    double prompt_tokens, spread; /* E, and E of the square over its square */
    size_t n;                     /* prompts that stand for all */
    struct {
        double tokens, weight;
    } prompt[STEADY_GROUPS_MAX * 3];
};

/* Prompts of a group lie between those of its neighbours, on either side alike: three of them. */
static void find_prompts(struct seen *x)
{
    const struct steady_times *t = x->r->times;
    for (size_t i = 0; i < t->groups; i++) {
        const double own = t->group[i].tokens, below = own - (i > 0 ? t->group[i - 1].tokens : 0),
                     above = i + 1 < t->groups ? t->group[i + 1].tokens - own : below;
        const double away = t->groups > 1 ? fmin(below, above) / 3 : 0;
        for (int k = -1; k <= 1; k++) {
            if (k != 0 && !(away > 0)) continue;
            x->prompt[x->n].tokens = own + k * away;
            x->prompt[x->n++].weight = away > 0 ? t->group[i].weight / 3 : t->group[i].weight;
        }
    }
}

/* The prompts of others that come in the same step, when there are any: quarters of a lognormal sum with the mean and
 * variance of Poisson many, in an order that is none with what they are put beside. */
static void find_others(const struct seen *x, double others, double tokens[RESIDUES])
{
    static const size_t PLACE[RESIDUES] = {1, 3, 0, 2};
    static const double EDGE[] = {-.6745, 0, .6745}; /* of quarters of a normal one */
    const double some = -expm1(-others), mean = others / some * x->prompt_tokens;
    const double sd = sqrt(log1p(fmax((x->spread / others + 1) * some - 1, 0)));
    double below = 0;
    for (size_t i = 0; i < RESIDUES; i++) {
        const double to = i + 1 < RESIDUES ? .5 * erfc((sd - EDGE[i]) / sqrt(2)) : 1;
        tokens[PLACE[i]] = RESIDUES * mean * (to - below);
        below = to;
    }
}

/* Who finds another of the last so long, against a Poisson stream. */
static double found_of(const struct steady_replica *r, double count)
{
    return count > 1e-9              ? fmin((1 - steady_turn_none(r->s, count)) / -expm1(-count), 1)
           : steady_routed(r->s) > 1 ? 0
                                     : 1;
}

/* Requests that find a step of step_s in progress, which ends with `left` full steps to do before. Those that came
 * before it in that step are ahead of it: of prompts that do not fit into one step, where the step had prompts too,
 * they are among what is left. */
static void find_step(struct seen *x, const struct steady_flow *f, double step_s, double left_s, bool counted,
                      double weight)
{
    if (!(weight > 1e-7)) return;
    struct steady_times *t = x->r->times;
    const double others = f->rate_per_s * step_s * found_of(x->r, f->rate_per_s * step_s),
                 none = others > 1e-9 ? exp(-others) : 1;
    double beside[RESIDUES];
    if (none < 1) find_others(x, others, beside);
    for (size_t p = 0; p < x->n; p++) {
        const double tokens = x->prompt[p].tokens, w = weight * x->prompt[p].weight / RESIDUES;
        const double alone_s = own_s(t, f, tokens, 0, 0);
        for (int i = 0; i < RESIDUES; i++) {
            const double from_s = (x->r->at_ends ? 0 : step_s * (i + .5) / RESIDUES) + left_s;
            steady_histogram_add(x->h, from_s + alone_s, w * none);
            if (!(w * (1 - none) > 1e-9)) continue;
            const double half = .5 * beside[i];
            const bool apart = counted && !t->pieces && half + tokens > f->room_tokens;
            steady_histogram_add(x->h, from_s + (apart ? alone_s : own_s(t, f, tokens, half, half)), w * (1 - none));
        }
    }
}

static void find_flow(struct seen *x, const struct steady_flow *f, double weight, double wait_s)
{
    struct steady_replica *r = x->r;
    if (!(weight > 1e-7)) return;
    r->times->others = r->times->parts > 1 && f->others.n > 0 ? &f->others : NULL;
    const double left_frac = f->left_frac, left_steps = f->left_steps;
    const double full = (f->steps - 1) * f->full_s;
    const double in_full = full + f->last_s > 0 ? full / (full + f->last_s) : 0;
    const double waits = f->busy_frac > 0 ? fmin(left_frac / f->busy_frac, 1) : 0;
    const double mean_s = waits > 0 ? left_steps * f->full_s / fmin(left_frac, f->busy_frac) : 0;
    /* arrivals more even than Poisson find fewer prompts in progress where nothing else is (Allen-Cunneen) */
    const struct steady_lengths *l = r->s->lengths;
    const double cs2 = fmax(l->prompt_square / (l->prompt_tokens * l->prompt_tokens) - 1, 0);
    const double even = f->n > 0 ? 1 : fmin((r->arrival_cv2 + cs2) / (1 + cs2), 1);
    const double last_of_s = fmax(f->period_s, f->own_s);
    const double finds = steady_routed(r->s) > 1 ? fmin(even, found_of(r, f->rate_per_s * last_of_s)) : even;
    double last_s[LASTS]; /* as found: the longer, the more often */
    const double s2 = log1p(f->last_cv2);
    for (int k = 0; k < LASTS; k++)
        last_s[k] = fmin(f->last_s * exp(s2 / 2 + sqrt(s2) * FIFTH[k]), fmax(f->full_s, f->last_s));
    const double busy = weight * f->busy_frac * finds;
    if (f->n > 0)
        find_step(x, f, f->decode_s, wait_s, false, weight - busy);
    else
        for (size_t p = 0; p < x->n; p++)
            steady_histogram_add(x->h, wait_s + own_s(r->times, f, x->prompt[p].tokens, 0, 0),
                                 (weight - busy) * x->prompt[p].weight);
    find_step(x, f, f->full_s, wait_s, true, busy * (1 - waits) * in_full);
    for (int k = 0; k < LASTS; k++)
        find_step(x, f, last_s[k], wait_s, true, busy * (1 - waits) * (1 - in_full) / LASTS);
    for (int k = 0; k < WAITS && waits > 0; k++)
        find_step(x, f, f->full_s, wait_s + mean_s * EXPONENTIAL[k], true, busy * waits / WAITS);
    r->times->others = NULL;
}

void steady_ttft(struct steady_replica *r, struct steady_histogram *h)
{
    const struct steady_lengths *l = r->s->lengths;
    struct seen x = {.r = r, .h = h, .prompt_tokens = l->prompt_tokens};
    x.spread = l->prompt_square / (l->prompt_tokens * l->prompt_tokens);
    find_prompts(&x);
    steady_histogram_clear(h);
    const double waits = r->wait_s > 0 ? r->wait_frac : 0;
    if (r->chain) {
        if (r->idle_frac > 1e-4) steady_chain_first(r->alone_chain, l, 0, r->idle_frac * (1 - waits), h);
        steady_chain_first(r->chain, l, 0, (1 - r->idle_frac) * (1 - waits), h);
        for (int k = 0; k < WAITS && waits > 0; k++)
            steady_chain_first(r->chain, l, r->wait_s / waits * EXPONENTIAL[k], waits / WAITS, h);
        return;
    }
    find_flow(&x, &r->alone, r->idle_frac * (1 - waits), 0);
    if (r->times->parts > 1 && r->flow.chained) { /* the others have most where this group's step was long */
        struct steady_chain *c = r->times->chain;
        steady_chain_open(r, r->flow.rate_per_s, r->flow.n, r->flow.n, false, c);
        steady_chain_first(c, l, 0, (1 - r->idle_frac) * (1 - waits), h);
        for (int k = 0; k < WAITS && waits > 0; k++)
            steady_chain_first(c, l, r->wait_s / waits * EXPONENTIAL[k], waits / WAITS, h);
        return;
    }
    find_flow(&x, &r->flow, (1 - r->idle_frac) * (1 - waits), 0);
    for (int k = 0; k < WAITS && waits > 0; k++)
        find_flow(&x, &r->flow, waits / WAITS, r->wait_s / waits * EXPONENTIAL[k]);
}

/* Points of a normal distribution, fine where tails are, and the part of all that each stands for. */
enum { TAILED = 12, OWN = 8 };
static const double TAIL[TAILED] = {-2.2, -1.5, -1.05, -.67, -.32, 0, .32, .67, 1.05, 1.5, 1.95, 2.6};
static const double TAIL_PART[TAILED] = {.036, .08, .108, .13, .128, .12, .118, .108, .08, .052, .025, .015};

/* How long others are there with one of `steps` steps, who are of any number of steps, each slower so that they stay
 * `stretch` times as many: of those that come while it decodes, S(u) the part of them that is there for longer than u,
 * and of those that are there as it begins, R(u) of them for longer than u,
 *     come = 2/m^2 integral to m of (m - u) S(u),     there = 2/m^2 integral to m of (m - u) R(u) */
static void see_overlap(const struct steady_lengths *l, double steps, double stretch, double *come, double *there)
{
    double a = 0, b = 0, mean = 0;
    for (size_t i = 0; i < STEADY_QUANTILES; i++) {
        double part;
        (void)steady_quantile(i, &part);
        const double x = fmax(l->output_at[i] - 1, 0) * stretch / steps, y = fmin(x, 1);
        mean += part * x;
        a += part * (2 * y - y * y);
        b += part * (y * y - y * y * y / 3 + (x - y));
    }
    *come = a;
    *there = b / mean;
}

/* Variance of the seconds of prompts between two decode steps. A busy period has no more prompts than there are places
 * for, and what is in [0, M] and x on average varies by x (M - x) at most (Bhatia and Davis 2000). */
static double between_s2(const struct steady_replica *r, double spread)
{
    const struct steady_flow *f = &r->flow;
    const double x = f->rate_per_s * f->decode_s / (1 - fmin(f->busy_frac, .99));
    const double free = fmax(r->places - r->decoding, x);
    return fmin(f->between_s2, f->each_s * f->each_s * x * (free - x + spread - 1));
}

/* The most by which the seconds of so many prompts vary that fall into so many steps, where places bind, within two
 * standard deviations of how many decode; infinite elsewhere. They are those that decode at the end, less those at the
 * beginning, and those whose answers end meanwhile: of one length all that were there at the beginning, so that they
 * vary as those that decode do, and periods are not independent. */
static double within_places_s2(const struct steady_replica *r, double steps, double prompts, double spread)
{
    const double variance = fmax(r->square - r->decoding * r->decoding, 0), each_s = r->flow.each_s;
    if (!(r->decoding + 2 * sqrt(variance) > r->places)) return (double)INFINITY;
    return each_s * each_s * (variance * steps / r->s->lengths->steps + prompts * (spread - 1));
}

/* Answers of so many steps whose prompts had a step of own_s: a step that decodes, by how many do, and beside it what
 * prompts take. */
static void put_tokens(struct steady_replica *r, double steps, double own_s, double weight, struct steady_tokens *to)
{
    const struct steady_lengths *l = r->s->lengths;
    const struct steady_flow *f = &r->flow;
    const double common = r->token_s - (f->extra_s * (1 - l->single_frac) - r->fewer_s) / l->steps;
    const double spread = l->prompt_square / (l->prompt_tokens * l->prompt_tokens);
    const double number = fmax(r->square - r->decoding * r->decoding, 0) * r->slope_s * r->slope_s;
    /* steps in which others are replaced, the longer the more they slow each other down */
    const double follows = fmin(fmax(r->decoding * r->slope_s / fmax(r->token_s, 1e-12), 0), .9); /* not a unit */
    double come, smooth;
    see_overlap(l, steps, 1 / (1 - follows), &come, &smooth);
    const double stride = l->drafted.inverse > 0 ? 1 / l->drafted.inverse : 1;
    const double extra_s = f->extra_s + f->rate_per_s * f->period_s * (own_s - f->own_s) -
                           f->period_s * steady_turn_fewer(r->s, f->rate_per_s * steps * common);
    const double mean = fmax(common + extra_s / steps, f->decode_s), more_s = (mean - f->decode_s) * steps;
    const double prompts = f->each_s > 0 ? more_s / f->each_s : 0; /* that fall into its steps */
    double events = prompts, squares_s2 = prompts * f->each_s * f->each_s * spread, both_s2 = 0;
    if (f->between_s2 > 0) { /* in busy periods, which begin with those that come in its steps and its prompt's */
        const double window_s = f->decode_s * (steps - 1) + own_s;
        events = f->rate_per_s * window_s;
        squares_s2 = fmin(window_s / f->decode_s * between_s2(r, spread), within_places_s2(r, steps, prompts, spread));
        if (steady_routed(r->s) > 1) /* their number varies less than a Poisson one */
            squares_s2 -= fmin((1 - 1 / (r->s->route == SIMULATE_ROUND_ROBIN ? (double)r->s->replicas : 2)) * events *
                                   f->period_s * f->period_s,
                               .8 * squares_s2);
        both_s2 = r->slope_s * between_s2(r, spread) / f->each_s * come;
    }
    squares_s2 += steps * f->varies_s2; /* steps that other attention groups make longer */
    const double none = f->varies_s2 > 0 ? 0 : steady_turn_none(r->s, events), some = fmax(1 - none, 1e-9),
                 at = (mean - f->decode_s) / some;
    const double variance = squares_s2 / (steps * steps),
                 s2 = log1p(fmax((variance + at * at * some * some) / some / fmax(at * at, 1e-30) - 1, 0)),
                 sd = sqrt(s2);
    const double kept = l->drafted.step_cv2 * mean * mean / steps;
    const double wider = number > 0 ? sqrt(smooth + (both_s2 + kept) / number) : 0;
    double point[TAILED], sum = 0;
    for (int q = 0; q < TAILED; q++) sum += TAIL_PART[q] * (point[q] = exp(sd * TAIL[q] - s2 / 2));
    for (int k = 0; k < STEADY_NUMBERS; k++) {
        const double w = weight * STEADY_NUMBER_PART[k];
        const double base = f->decode_s + wider * r->number_s[k] + r->later_s / steps;
        if (none > 1e-3) steady_tokens_add(to, base / stride, w * none);
        for (int q = 0; q < TAILED; q++)
            steady_tokens_add(to, (base + at * point[q] / sum) / stride, w * some * TAIL_PART[q]);
    }
}

/* Steps of prompts by their own length, beside as many others as a step has. */
static int own_steps(struct steady_replica *r, double own_s[OWN], double part[OWN])
{
    const struct steady_lengths *l = r->s->lengths;
    const struct steady_flow *f = &r->flow;
    const double others = fmax(f->requests / fmax(f->steps, 1) - 1, 0) * l->prompt_tokens;
    double tokens[OWN], mean_s = 0;
    if (!(f->between_s2 > 0)) {
        own_s[0] = f->own_s;
        part[0] = 1;
        return 1;
    }
    struct steady_times *t = r->times;
    const int n = steady_chain_prompts(l, 1. / 4, OWN, tokens, part);
    t->others = t->parts > 1 && f->others.n > 0 ? &f->others : NULL;
    for (int i = 0; i < n; i++)
        mean_s += part[i] * (own_s[i] = steady_times_step_s(t, t->parts > 1 ? f->n : 0, tokens[i] + others));
    t->others = NULL;
    for (int i = 0; i < n; i++) own_s[i] *= f->own_s / mean_s;
    return n;
}

/* Of the mean of the steps of a request: prompts fall between or into them, and how many decode changes while it runs.
 * By the answer's length, short ones in small parts, as they are far from the mean. */
void steady_tpot(struct steady_replica *r, struct steady_histogram *h)
{
    const double LEAST = .03;
    const struct steady_lengths *l = r->s->lengths;
    double sum = 0, part = 0, seen = 0, own_s[OWN], own_part[OWN];
    if (r->chain) {
        steady_chain_tokens(r, h);
        return;
    }
    const int owns = own_steps(r, own_s, own_part);
    struct steady_tokens to = {
        .tpot = h, .answers = r->answers, .lengths = l, .stride = l->drafted.inverse > 0 ? 1 / l->drafted.inverse : 1};
    size_t first = 0;
    steady_histogram_clear(h);
    for (size_t i = 0; i < STEADY_QUANTILES; i++) {
        double one;
        (void)steady_quantile(i, &one);
        if (l->output_at[i] > 1) {
            if (!(part > 0)) first = i;
            sum += one * (l->output_at[i] - 1);
            part += one;
        }
        if (!(part > 0) || (part < fmin(LEAST, .004 + seen / 2) && i + 1 < STEADY_QUANTILES)) continue;
        steady_tokens_begin(&to, first, i);
        const double steps = sum / part, own = r->flow.own_s / (r->flow.own_s + r->flow.decode_s * steps);
        if (own < .1) /* of many steps it is little */
            put_tokens(r, steps, r->flow.own_s, part, &to);
        else
            for (int k = 0; k < owns; k++) put_tokens(r, steps, own_s[k], part * own_part[k], &to);
        steady_tokens_end(&to);
        seen += part;
        sum = part = 0;
    }
}
