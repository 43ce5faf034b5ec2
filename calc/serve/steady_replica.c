/* steady_replica -- how many decode on one replica, at a rate or of clients; of steady_parts.h. */
#include <math.h>

#include "calc/serve/steady_chain.h"

/* ---- at a rate ---- */

double steady_token_s(const struct steady_replica *r, const struct steady_flow *f)
{
    const struct steady_lengths *l = r->s->lengths;
    if (!f->stable) return (double)INFINITY;
    const double token_s = fmax(f->token_s + f->extra_s * (1 - l->single_frac) / l->steps, f->decode_s);
    return r->times->beside ? fmin(token_s, fmax(f->full_s, f->token_s)) : token_s;
}

/* Of a decode step's time, what part a token of a request takes: the others are prompts'. At the grid's numbers of
 * sequences that are powers of two, found once each. Here sequences are those of all attention groups of a copy;
 * elsewhere all is one group's. */
struct tokens {
    struct steady_replica *r;
    double rate_per_s;
    double part[24], mates[24];
    double longer; /* a token takes so many times what lies between those numbers, by kernels that have jumps there */
    bool even;     /* numbers are the same on all copies, but for one */
};
enum { EVEN_MOST = 64 }; /* beyond it between whole numbers is as good; not a unit */

/* A chain at a power of four of sequences; at others half of both sides, where those are near to each other. */
static void look_at_chain(struct tokens *k, int i)
{
    struct steady_replica *r = k->r;
    struct steady_times *t = r->times;
    const struct steady_lengths *l = r->s->lengths;
    const double n = exp2(i) / t->parts, rate = k->rate_per_s * r->prompts_frac;
    const double room = fmax(t->budget_tokens - t->rows * n, 1);
    if (i % 2) {
        if (isnan(k->part[i - 1])) look_at_chain(k, i - 1);
        if (isnan(k->part[i + 1])) look_at_chain(k, i + 1);
        k->part[i] = (k->part[i - 1] + k->part[i + 1]) / 2;
        k->mates[i] = (k->mates[i - 1] + k->mates[i + 1]) / 2;
        if (fabs(k->part[i + 1] - k->part[i - 1]) < .1 * k->part[i]) return;
    }
    const double full_s = steady_times_step_s(t, n, room);
    k->part[i] = steady_times_decode_s(t, n) / full_s; /* full steps, where prompts come faster than those take them */
    k->mates[i] = 0;
    if (rate * full_s * l->prompt_tokens > .99 * room) return;
    steady_chain_open(r, rate, n, n, true, r->chain);
    k->part[i] = r->chain->plain_s * l->steps / steady_chain_answer_s(r->chain, l);
    k->mates[i] = steady_chain_mates(r->chain, l->steps);
}

/* Whether nobody decodes while prompts are computed. */
static bool between(const struct steady_replica *r) { return !r->times->beside && !(r->times->shared > 1); }

static double part_at(struct tokens *k, int i)
{
    if (!isnan(k->part[i])) return k->part[i];
    if (k->r->chain) {
        look_at_chain(k, i);
    } else {
        struct steady_flow f;
        const double n = exp2(i) / k->r->times->parts;
        steady_flow_solve(k->r->times, k->rate_per_s * k->r->prompts_frac, k->r->arrival_cv2, n, &f);
        if (between(k->r) && k->r->prompts_frac > 0 && f.stable)
            steady_chain_between(k->r, k->rate_per_s * k->r->prompts_frac, n, &f);
        /* while prompts are between decode steps nobody goes on, so that what is paid once is no part of a step */
        k->part[i] = steady_times_decode_s(k->r->times, n) /
                     (k->r->times->beside ? steady_token_s(k->r, &f) : fmax(f.token_s, f.decode_s));
        k->mates[i] = f.mates;
    }
    return k->part[i];
}

static double mates_at(struct tokens *k, double n)
{
    int e;
    const double part = 2 * frexp(fmax(n, 1), &e) - 1;
    (void)part_at(k, e - 1);
    if (!(part > 0)) return k->mates[e - 1];
    (void)part_at(k, e);
    return k->mates[e - 1] + part * (k->mates[e] - k->mates[e - 1]);
}

static double token_at(struct tokens *k, double n)
{
    int e;
    const double at = fmax(n, 1), part = 2 * frexp(at, &e) - 1, low = part_at(k, e - 1);
    const double progress = part > 0 ? low + part * (part_at(k, e) - low) : low;
    const double decode_s = steady_times_decode_s(k->r->times, at / k->r->times->parts);
    return progress > 0 ? k->longer * decode_s / progress : (double)INFINITY;
}

/* By how much a token's time grows with each one more, over so many to either side: between points of the grid it is a
 * straight line, whose slope alone would jump where n goes from one to the next. */
static double slope_of(struct tokens *k, double n, double away)
{
    const double low = fmax(n - fmax(away, 1), 1), high = n + fmax(away, 1);
    const double slope_s = (token_at(k, high) - token_at(k, low)) / (high - low);
    return isfinite(slope_s) ? fmax(slope_s, 0) : 0;
}

/* How many would decode for ever where n do: those that come in the time a token takes, for all their tokens; but no
 * more come than full steps let through. */
static double come_at(struct tokens *k, double n)
{
    const struct steady_lengths *l = k->r->s->lengths;
    const struct steady_times *t = k->r->times;
    const double come = t->parts * k->rate_per_s * l->steps * token_at(k, n);
    if (!t->beside || !(k->r->prompts_frac > 0)) return come;
    return fmin(come, l->steps * fmax(t->parts * t->budget_tokens - t->rows * n, 0) / l->prompt_tokens);
}

static void start(struct tokens *k, struct steady_replica *r, double rate_per_s)
{
    *k = (struct tokens){.r = r,
                         .rate_per_s = rate_per_s,
                         .longer = 1,
                         .even = steady_routed(r->s) > 1 && r->s->route != SIMULATE_ROUND_ROBIN};
    for (size_t i = 0; i < sizeof k->part / sizeof k->part[0]; i++) k->part[i] = (double)NAN;
}

/* Behind a router that evens numbers out n is of all copies over theirs: some have a whole number, others one more. */
static double come_even(struct tokens *k, double n)
{
    const double low = floor(n), more = n - low;
    if (!k->even || low > EVEN_MOST || !(more > 1e-9)) return come_at(k, n);
    return n / ((low > 0 ? (1 - more) * low / come_at(k, low) : 0) + more * (low + 1) / come_at(k, low + 1));
}

struct counts {
    double total, sum, square, wait, full, none;
};

static void count(const struct tokens *k, struct counts *c, double n, double weight)
{
    const double more = n - floor(n);
    c->total += weight;
    c->sum += weight * n;
    c->square += weight * (n * n + (k->even ? more * (1 - more) : 0));
    if (k->even ? n < 1 : n < .5) c->none += k->even ? weight * (1 - more) : weight;
}

/* p(n)/p(n-bunch) = rate steps token_s(n) / n: from a number near the mean down and up, until nothing is left. Those of
 * a bunch begin together. Beyond the most others wait, one by one, while places go from one to the next: geometric. */
static void walk(struct tokens *k, double near, double bunch, double most, struct counts *c)
{
    enum { FAR = 1 << 21 };
    const double from = floor(near / bunch) * bunch;
    double w = 1;
    *c = (struct counts){0};
    for (double n = from; n > -.5 * bunch && w > 1e-9; n -= bunch) {
        count(k, c, fmax(n, 0), w);
        if (n > .5 * bunch) w *= n / come_even(k, n);
    }
    w = 1;
    for (double n = from + bunch; n <= FAR; n += bunch) {
        if (n > most) {
            const double last = fmin(k->rate_per_s / k->r->most_per_s, .999), first = w / bunch * last;
            const double rest = first / (1 - last);
            c->total += rest;
            c->sum += rest * most;
            c->square += rest * most * most;
            c->full += rest + w / bunch;
            c->wait += rest / (1 - last);
            break;
        }
        w *= fmin(come_even(k, n) / n, 4);
        if (!(w > 1e-9 * c->total) || !isfinite(w)) break;
        count(k, c, n, w);
    }
}

/* The largest n below `most` at which still more come than go. */
static double near_mean(struct tokens *k, double most)
{
    double low = 0, high = floor(most);
    if (k->r->chain && high > 16) { /* a fluid's number, so that few numbers are looked at */
        struct steady_times *t = k->r->times;
        const struct steady_lengths *l = k->r->s->lengths;
        double n = 1 / t->parts;
        for (int i = 0; i < 4; i++) {
            const double room = fmax(t->budget_tokens - t->rows * n, 1), decode_s = steady_times_step_s(t, n, 0);
            const double adds = k->rate_per_s * l->prompt_tokens / room * (steady_times_step_s(t, n, room) - decode_s);
            n = fmin(adds < .95 ? k->rate_per_s * l->steps * decode_s / (1 - adds) : (double)INFINITY, high / t->parts);
        }
        const double most_likely = floor(2 * n * t->parts + 8);
        if (most_likely < high && come_at(k, most_likely) <= most_likely) high = most_likely;
    }
    while (low + 1 < high) {
        const double n = floor((low + high) / 2);
        if (come_at(k, n) > n)
            low = n;
        else
            high = n;
    }
    return low;
}

static void see_flows(struct steady_replica *r, double n)
{
    const double least = fmax(n, 1 / r->times->parts);
    steady_flow_solve(r->times, r->rate_per_s * r->others_frac * r->prompts_frac, r->arrival_cv2, least, &r->flow);
    if (between(r) && r->prompts_frac > 0 && !r->at_ends && r->flow.stable)
        steady_chain_between(r, r->rate_per_s * r->others_frac * r->prompts_frac, least, &r->flow);
    steady_flow_solve(r->times, r->rate_per_s * r->others_frac * r->prompts_frac, r->arrival_cv2, 0, &r->alone);
}

/* Of those that begin to decode with a request, what part of its steps the others are there, on average. */
static double kept_together(const struct steady_lengths *l)
{
    double below = 0, steps_below = 0, sum = 0, several = 0;
    for (size_t i = 0; i < STEADY_QUANTILES; i++) { /* E[min(m, m')]/m */
        double part;
        (void)steady_quantile(i, &part);
        const double m = l->output_at[i] - 1;
        below += part;
        steps_below += part * m;
        if (!(m > 0)) continue;
        sum += part * (steps_below + m * fmax(1 - below, 0)) / m;
        several += part;
    }
    return several > 0 ? sum / several : 0;
}

/* Of how many are there, variance over mean, where those that begin together are apart: 1 of a Poisson stream. Of every
 * R-th of one, 1 - (1 - 1/R) E[min(m, m')]/E[m]; where the router evens numbers out, that of all copies together, and
 * of the numbers around it. MODEL.md "Steady state". */
static double spread_of(const struct steady_setup *s)
{
    const double copies = (double)s->replicas;
    double below = 0, steps_below = 0, sum = 0, mean = 0;
    if (steady_routed(s) < 2) return 1;
    if (s->route != SIMULATE_ROUND_ROBIN) return 1 / copies;
    for (size_t i = 0; i < STEADY_QUANTILES; i++) {
        double part;
        (void)steady_quantile(i, &part);
        const double m = s->lengths->output_at[i] - 1;
        sum += part * (steps_below + part * m / 2 + m * fmax(1 - below - part / 2, 0));
        below += part;
        steps_below += part * m;
        mean += part * m;
    }
    return 1 - (1 - 1 / copies) * fmin(sum / mean, 1);
}

double steady_turn_none(const struct steady_setup *s, double count)
{
    const int n = s->route == SIMULATE_ROUND_ROBIN ? (int)fmin((double)s->replicas, 8) : 2; /* not a unit */
    double sum = 0, p = exp(-n * count);
    if (steady_routed(s) < 2) return exp(-count);
    for (int i = 0; i < n; i++) {
        sum += p;
        p *= n * count / (i + 1);
    }
    return fmin(sum, 1);
}

double steady_turn_fewer(const struct steady_setup *s, double count)
{
    if (steady_routed(s) < 2) return 0;
    const double most = ((double)s->replicas - 1) / (2 * (double)s->replicas);
    return most * -expm1(-count / most);
}

/* Prompts between decode steps: of those that come in its steps a request sees fewer than come in as long a time. */
static void see_fewer(struct steady_replica *r)
{
    const struct steady_lengths *l = r->s->lengths;
    double all = 0;
    r->fewer_s = r->fewer_each_s = 0;
    for (size_t i = 0; i < STEADY_QUANTILES && steady_routed(r->s) > 1; i++) {
        double part;
        (void)steady_quantile(i, &part);
        const double m = l->output_at[i] - 1;
        if (!(m > 0)) continue;
        const double fewer_s = r->flow.period_s * steady_turn_fewer(r->s, r->rate_per_s * m * r->token_s);
        all += part;
        r->fewer_s += part * fewer_s;
        r->fewer_each_s += part * fewer_s / m;
    }
    if (all > 0) r->fewer_each_s /= all;
}

const double STEADY_NUMBER_PART[STEADY_NUMBERS] = {.02, .06, .12, .18, .24, .18, .12, .06, .02};

/* Who comes finds as many as are there at any time (PASTA), whose mean and variance are known: by a gamma distribution
 * of these (Wilson and Hilferty). */
static void see_numbers(struct tokens *k, struct steady_replica *r)
{
    static const double NORMAL[STEADY_NUMBERS] = {-2.457, -1.698, -1.11, -.569, 0, .569, 1.11, 1.698, 2.457};
    const double n = r->decoding, v = fmax(r->square / (n * n) - 1, 0) / 9;
    double mean_s = 0;
    for (int i = 0; i < STEADY_NUMBERS; i++) {
        const double others = n * pow(fmax(1 - v + sqrt(v) * NORMAL[i], 0), 3);
        r->number_s[i] = token_at(k, 1 + fmin(others, r->most * r->times->parts - 1));
        mean_s += STEADY_NUMBER_PART[i] * r->number_s[i];
    }
    for (int i = 0; i < STEADY_NUMBERS; i++) r->number_s[i] -= mean_s;
}

/* Between the numbers of the grid kernels have jumps: what a token takes at n itself, over what lies there. False: the
 * same as before. */
static bool is_longer(struct tokens *k, double n)
{
    const double within = .005;
    struct steady_replica *r = k->r;
    const double rate = k->rate_per_s * r->prompts_frac, room = fmax(r->times->budget_tokens - r->times->rows * n, 1);
    if (!r->chain || !r->times->rows_s) return false;
    if (rate * steady_times_step_s(r->times, n, room) * r->s->lengths->prompt_tokens > .99 * room) return false;
    steady_chain_open(r, rate, n, n, true, r->chain);
    const double before = k->longer, token_s = steady_chain_answer_s(r->chain, r->s->lengths) / r->s->lengths->steps;
    k->longer *= token_s / token_at(k, n);
    return fabs(k->longer - before) > within * before;
}

void steady_open_solve(struct steady_replica *r)
{
    enum { ROUNDS = 4 };
    const struct steady_lengths *l = r->s->lengths;
    const double parts = r->times->parts, a = parts * r->rate_per_s * l->steps;
    struct tokens k;
    struct counts c = {.total = 1, .none = 1};
    start(&k, r, r->rate_per_s);
    /* Between decode steps prompts come in bunches: others that begin with one, as long as both are there. */
    const bool bunched = a > 0 && r->prompts_frac > 0;
    r->chain = r->times->beside && bunched ? r->times->chain : NULL;
    const double kept = bunched ? kept_together(l) : 0;
    for (int i = 0; i < (r->chain && r->times->rows_s ? ROUNDS : 1) && a > 0; i++) {
        const double near = near_mean(&k, r->most * parts);
        walk(&k, near, spread_of(r->s) + (bunched ? kept * mates_at(&k, near) : 0), r->most * parts, &c);
        if (!is_longer(&k, fmax(c.sum / fmax(c.total - c.none, .001 * c.total), 1))) break;
    }
    r->decoding = c.sum / c.total;
    r->square = c.square / c.total;
    r->idle_frac = c.none / c.total;
    if (bunched && !r->times->beside) /* nobody comes in as many steps as the longer of two answers has */
        r->idle_frac = exp(-a * (2 - kept) * steady_times_decode_s(r->times, fmax(r->decoding, 1) / parts));
    r->token_s = a > 0 ? r->decoding / a : (double)NAN;
    if (a > 0 && c.full > 0 &&
        steady_in_turn(r->s)) { /* who waits for a place is not among them, and is served as fast */
        const double within = fmin(token_at(&k, r->decoding), r->most * parts / a);
        if (within > r->token_s) {
            r->square *= within / r->token_s;
            r->decoding = a * (r->token_s = within);
        }
    }
    r->slope_s =
        a > 0 ? parts * slope_of(&k, r->decoding + 1, sqrt(fmax(r->square - r->decoding * r->decoding, 0))) : 0;
    if (a > 0 && !r->chain) see_numbers(&k, r);
    r->decoding /= parts;
    r->square /= parts * parts;
    const double in_steps = r->decoding;
    const double cv2 = l->steps > 0 ? l->steps_square / (l->steps * l->steps) - 1 : 0;
    r->wait_frac = c.full / c.total;
    r->wait_s = c.wait / c.total / (parts * r->rate_per_s) * (r->arrival_cv2 + cv2) / 2;
    see_flows(r, r->decoding / (1 - fmin(r->idle_frac, .999)));
    if (bunched && !r->times->beside && r->flow.stable) {
        see_fewer(r);
        r->token_s =
            fmax(r->token_s + (r->flow.extra_s * (1 - l->single_frac) - r->fewer_s) / l->steps, r->flow.decode_s);
        r->decoding = a / parts * r->token_s;
        r->square *= r->decoding / in_steps;
    }
    if (r->chain) {
        const double rate = r->rate_per_s * r->prompts_frac;
        const double n = fmax(parts * r->decoding / (1 - fmin(r->idle_frac, .999)), 1);
        r->alone_chain = r->chain + 1;
        steady_chain_open(r, rate, n / parts, n / parts, false, r->chain);
        r->scale = r->token_s * l->steps / steady_chain_answer_s(r->chain, l);
        const double still = (1 + (n - 1) * r->chain->still_frac) / parts; /* itself, and others */
        if (steady_times_decode_s(r->times, still) < .99 * r->chain->plain_s) {
            steady_chain_open(r, rate, n / parts, still, false, r->chain);
            r->token_s = r->scale * steady_chain_answer_s(r->chain, l) / l->steps;
            const double before = r->decoding;
            r->decoding = a / parts * r->token_s;
            r->square *= r->decoding / before;
        }
        steady_chain_squares(r->chain);
        if (r->idle_frac > 1e-4) steady_chain_open(r, rate, 0, 0, false, r->alone_chain);
    }
}

/* ---- closed ---- */

/* A token's time of so many when all steps are full. */
static double full_s(struct tokens *k, double n)
{
    struct steady_times *t = k->r->times;
    return t->beside ? steady_times_step_s(t, n, fmax(t->budget_tokens - t->rows * n, 1)) : (double)INFINITY;
}

static double ttft_mean(struct steady_replica *r)
{
    struct steady_histogram h;
    steady_ttft(r, &h);
    return h.sum / h.total;
}

void steady_closed_solve(struct steady_replica *r, double clients, double think_s)
{
    const double steps = r->s->lengths->steps;
    const double most_per_s = r->most_per_s;
    double low = 0, high = most_per_s;
    r->others_frac = (clients - 1) / clients;
    r->wait_s = r->wait_frac = 0;
    for (int k = 0; k < 24; k++) {
        r->rate_per_s = .5 * (low + high);
        double n = fmin(r->decoding > 0 ? r->decoding : clients / 2, clients);
        for (int i = 0; i < 8 && steps > 0; i++) { /* those that decode, itself always one of them */
            struct tokens t;
            start(&t, r, r->rate_per_s * r->others_frac);
            const double others = 1 + n * r->others_frac;
            r->token_s = fmin(token_at(&t, others), full_s(&t, others));
            const double next = fmin(r->rate_per_s * steps * r->token_s, clients);
            if (fabs(next - n) < 1e-3 * n) break;
            n = .5 * (n + next);
        }
        r->decoding = n;
        r->square = n * n;
        r->idle_frac = fmax(1 - n, 0);
        see_flows(r, n);
        if (steps > 0) r->token_s = fmax(r->token_s, n / (r->rate_per_s * steps));
        const double latency_s = ttft_mean(r) + (steps > 0 ? steps * r->token_s : 0) + think_s;
        if (r->rate_per_s * latency_s > clients)
            high = r->rate_per_s;
        else
            low = r->rate_per_s;
        if (high - low < 1e-3 * high) break;
    }
    /* Where even the saturation rate is answered sooner than clients ask, the others wait for a place. */
    const double own_s = ttft_mean(r) + (steps > 0 ? steps * r->token_s : 0) + think_s;
    if (clients > 1.02 * r->rate_per_s * own_s && r->rate_per_s > .99 * most_per_s) {
        r->wait_s = clients / r->rate_per_s - own_s;
        r->wait_frac = 1;
    }
}
