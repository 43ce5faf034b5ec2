/* steady_pieces -- clients who ask again at once where prompts are computed in pieces beside those that decode; of
 * steady_parts.h. */
#include <math.h>

#include "calc/serve/steady_parts.h"

/* Middles of equal parts of a normal distribution. */
static const double NORMAL[] = {-1.400, -.532, 0, .532, 1.400};
enum {
    NORMALS = sizeof NORMAL / sizeof NORMAL[0],
    ORDERS = 2,  /* places among others that came in the same step */
    STATES = 8,  /* numbers in prefill that first tokens are looked at with */
    PLACES = 3,  /* of a group of prompts, between those of its neighbours */
    POINTS = 2048,
};

/* ---- sums of prompts ---- */

struct sum {
    int n;
    double tokens[NORMALS], weight[NORMALS];
};

/* The tokens of so many prompts: of a lognormal sum with their mean and variance. */
static struct sum sum_of(const struct steady_lengths *l, double prompts)
{
    struct sum s = {.n = 1, .tokens = {prompts * l->prompt_tokens}, .weight = {1}};
    const double spread = l->prompt_square / (l->prompt_tokens * l->prompt_tokens) - 1;
    if (!(spread > 1e-6) || !(prompts > 0)) return s;
    const double sd = sqrt(log1p(spread / prompts));
    double mean = 0;
    for (int i = 0; i < NORMALS; i++) mean += exp(sd * NORMAL[i]) / NORMALS;
    s.n = NORMALS;
    for (int i = 0; i < NORMALS; i++) {
        s.tokens[i] = prompts * l->prompt_tokens * exp(sd * NORMAL[i]) / mean;
        s.weight[i] = 1. / NORMALS;
    }
    return s;
}

static double room_of(const struct steady_times *t, double decoding)
{
    return fmax(t->budget_tokens - t->rows * decoding, 1);
}

static void add_steps(struct steady_times *t, double decoding, double tokens, double weight, struct steady_pieces *x)
{
    const double room = room_of(t, decoding), steps = fmax(ceil(tokens / room - 1e-9), 1);
    const double full_s = steps > 1 ? steady_times_step_s(t, decoding, room) : 0;
    x->steps += weight * steps;
    x->seconds += weight * ((steps - 1) * full_s + steady_times_step_s(t, decoding, tokens - (steps - 1) * room));
}

struct steady_pieces steady_pieces_of(struct steady_replica *r, double decoding, double prompts)
{
    struct steady_times *t = r->times;
    struct steady_pieces x = {0};
    if (prompts <= 1) {
        for (size_t i = 0; i < t->groups; i++)
            for (int k = 0; k < PLACES; k++)
                add_steps(t, decoding, steady_group_at(t, i, (k + .5) / PLACES), t->group[i].weight / PLACES, &x);
        return x;
    }
    const struct sum s = sum_of(r->s->lengths, prompts);
    for (int i = 0; i < s.n; i++) add_steps(t, decoding, s.tokens[i], s.weight[i], &x);
    return x;
}

/* ---- first tokens ---- */

struct points {
    int n;
    double value_s[POINTS], weight[POINTS], sum_s, total;
};

static void put(struct points *p, double value_s, double weight)
{
    if (p->n == POINTS || !(weight > 0)) return;
    p->value_s[p->n] = value_s;
    p->weight[p->n++] = weight;
    p->sum_s += value_s * weight;
    p->total += weight;
}

/* A request beside `others` whose prompts are not done, the part `same` of whom came in the same step, in any order. */
static void see_own(struct points *p, struct steady_replica *r, double decoding, double others, double same,
                    double weight)
{
    struct steady_times *t = r->times;
    const double room = room_of(t, decoding);
    const struct sum s = sum_of(r->s->lengths, others);
    const int orders = others > 0 ? ORDERS : 1, places = others > 0 ? 1 : PLACES;
    for (size_t i = 0; i < t->groups; i++)
        for (int q = 0; q < places; q++)
            for (int k = 0; k < s.n; k++)
                for (int u = 0; u < orders; u++) {
                    const double tokens = steady_group_at(t, i, (q + .5) / places);
                    const double ahead = s.tokens[k] * (1 - same * (u + .5) / orders);
                    const double steps = fmax(ceil((ahead + tokens) / room - 1e-9), 1);
                    const double last = fmin(tokens + s.tokens[k] - (steps - 1) * room, room);
                    const double full_s = steps > 1 ? (steps - 1) * steady_times_step_s(t, decoding, room) : 0;
                    put(p, full_s + steady_times_step_s(t, decoding, last),
                        weight * t->group[i].weight * s.weight[k] / places / orders);
                }
}

/* Their mean is what Little's law has. */
static void add_points(const struct points *p, double mean_s, double wait_s, struct steady_histogram *h)
{
    const double scale = mean_s * p->total / p->sum_s;
    for (int i = 0; i < p->n; i++) steady_histogram_add(h, wait_s + p->value_s[i] * scale, p->weight[i] / p->total);
}

double steady_pieces_first(struct steady_replica *r, double n, double together, double wait_s, double more_s,
                         double more_frac, struct steady_histogram *h)
{
    struct points p = {0};
    const double few = floor(together), more = together - few; /* groups of few, and of one more */
    see_own(&p, r, n - few, few - 1, 1, (1 - more) * few);
    if (more > 1e-6) see_own(&p, r, n - few - 1, few, 1, more * (few + 1));
    for (int i = 0; i < p.n; i++) {
        steady_histogram_add(h, wait_s + p.value_s[i], p.weight[i] / p.total * (1 - more_frac));
        if (more_frac > 0) steady_histogram_add(h, wait_s + more_s + p.value_s[i], p.weight[i] / p.total * more_frac);
    }
    return p.sum_s / p.total;
}

/* ---- answers of any length ---- */

/* Steps with j prompts that are not done: p(j), as they are found, and what they take. */
struct states {
    double total, ends, seconds, prefill_s; /* sums over steps: of their part, answers that end, time, time of prompts */
    double mixed, mixed_s;
    double at[STATES], weight[STATES], steps[STATES];
};

static void scale_states(struct states *s, double by)
{
    double *const sums[] = {&s->total, &s->ends, &s->seconds, &s->prefill_s, &s->mixed, &s->mixed_s};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) *sums[i] *= by;
    for (int i = 0; i < STATES; i++) {
        s->weight[i] *= by;
        s->at[i] *= by;
        s->steps[i] *= by;
    }
}

/* First tokens with j prompts in prefill: 1, 2, 3, 4 .. 5, 6 .. 8, and so on. */
static int state_of(double j)
{
    int i = 0;
    for (double most = 1; most < j && i + 1 < STATES; most = fmax(most + 1, floor(1.5 * most))) i++;
    return i;
}

static void find_states(struct steady_replica *r, double n, struct states *s)
{
    const double m = r->s->lengths->steps;
    double p = 1;
    *s = (struct states){0};
    for (double j = 0; j <= n; j++) {
        const double decoding = n - j;
        struct steady_pieces x = {1, steady_times_step_s(r->times, decoding, 0)};
        if (j > 0) {
            x = steady_pieces_of(r, decoding, j);
            p *= (decoding + 1) / m * x.steps / j; /* ends with one less, against prompts done with j */
        }
        if (p > 1e100) { /* not a unit */
            scale_states(s, 1e-100);
            p *= 1e-100;
        }
        const double step_s = x.seconds / x.steps;
        s->total += p;
        s->ends += p * decoding / m;
        s->seconds += p * step_s;
        s->prefill_s += p * step_s * j;
        if (j > 0) {
            const int i = state_of(j);
            const double done = p * j / x.steps;
            s->mixed += p;
            s->mixed_s += p * step_s;
            s->weight[i] += done;
            s->at[i] += done * j;
            s->steps[i] += done * x.steps;
        }
        if (j > 0 && p < 1e-7 * s->total) break;
    }
}

void steady_pieces_solve(struct steady_replica *r, double clients, double n, struct steady_histogram *ttft)
{
    const struct steady_lengths *l = r->s->lengths;
    const double m = l->steps;
    struct states s;
    struct points p = {0};
    find_states(r, n, &s);
    const double one_s = s.seconds / s.total, spread = l->prompt_square / (l->prompt_tokens * l->prompt_tokens);
    /* What waits for others beyond its own steps does so by half of what prompts of uneven service would (Allen-Cunneen),
     * unless steps are full for ever. */
    const double mixed_s = s.mixed_s / s.mixed, all = s.prefill_s / s.seconds, per_s = s.ends / s.seconds;
    const double least = fmin(per_s * steady_pieces_of(r, n - 1, 1).steps * mixed_s, all);
    const double load = per_s * l->prompt_tokens * one_s / room_of(r->times, n - all);
    const double even = fmax(1 - spread / 2, 0) * fmin(2 * (1 - load), 1);
    const double in_prefill = all - (all - least) * fmax(even, 0);
    r->rate_per_s = s.ends / s.seconds;
    if (r->by == STEADY_BLOCKS && n >= r->most && r->most_per_s < r->rate_per_s) r->rate_per_s = r->most_per_s;
    const double first_s = in_prefill / r->rate_per_s;
    r->token_s = (n - in_prefill) / (r->rate_per_s * m);
    r->wait_s = fmax(clients - n, 0) / r->rate_per_s;
    for (int i = 0; i < STATES; i++) {
        if (!(s.weight[i] > 0)) continue;
        const double j = s.at[i] / s.weight[i], steps = s.steps[i] / s.weight[i];
        see_own(&p, r, n - j, j - 1, 1 / steps, s.weight[i]);
    }
    add_points(&p, first_s, r->wait_s, ttft);
    const double decode_s = steady_times_step_s(r->times, n, 0);
    r->flow = (struct steady_flow){.rate_per_s = r->rate_per_s,
                                   .n = n,
                                   .decode_s = decode_s,
                                   .each_s = fmax(one_s - decode_s, 0) * s.total / s.ends,
                                   .batches_per_s = s.mixed / s.seconds,
                                   .steps = 1,
                                   .busy_frac = s.mixed_s / s.seconds};
}
