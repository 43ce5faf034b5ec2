/* steady_pieces -- clients who ask again at once where prompts are computed in pieces beside those that decode; of
 * steady_parts.h. */
#include <math.h>
#include <string.h>

#include "calc/serve/steady_parts.h"

/* Middles of equal parts of a normal distribution. */
static const double NORMAL[] = {-1.400, -.532, 0, .532, 1.400};
enum {
    NORMALS = sizeof NORMAL / sizeof NORMAL[0],
    ORDERS = 2,    /* places among others that came in the same step */
    OVERS = 56,    /* points of what is left over; not a unit */
    ALONE = 9,     /* places of a prompt in its group */
    PLACES = 3,    /* of a group of prompts, between those of its neighbours */
    POINTS = 6144, /* not a unit */
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
    const int orders = others > 0 ? ORDERS : 1, places = others > 0 ? 1 : ALONE;
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

/* Prompt tokens that a step leaves over, on a grid that is fine where they are few: W' = max(W + A - room, 0) with A
 * those of the answers that end meanwhile (Lindley). */
struct over {
    double tokens, part;           /* of steps */
    double left;                   /* prompts that are left over */
    double comes;                  /* more, in a step */
    double decoding;               /* beside those; where some come fewer */
    double room, step_s, decode_s; /* a step; of it and of those that decode in it, the product */
};

struct overs {
    double n, m;
    struct over at[OVERS];
    double to[OVERS][OVERS];
    struct steady_others others; /* of several attention groups; n 0: all alike */
};

/* None, or a sum of those of a binomial number, with its mean and variance. */
static struct sum come_of(const struct steady_lengths *l, double others, double chance, double *none)
{
    const double prompt = l->prompt_tokens, mean = others * chance;
    struct sum s = {.n = 0};
    *none = others > 0 ? fmin(exp(others * log1p(-chance)), 1) : 1;
    const double some = 1 - *none;
    if (!(some > 1e-9)) {
        *none = 1;
        return s;
    }
    const double two = fmax(others * (others - 1), 0) * chance * chance;
    const double at = mean * prompt / some, square = (mean * l->prompt_square + two * prompt * prompt) / some;
    const double sd = sqrt(log1p(fmax(square / (at * at) - 1, 0)));
    double sum = 0;
    s.n = sd > 1e-3 ? NORMALS : 1;
    for (int i = 0; i < s.n; i++) sum += s.tokens[i] = s.n > 1 ? exp(sd * NORMAL[i]) : 1;
    for (int i = 0; i < s.n; i++) {
        s.tokens[i] *= at * s.n / sum;
        s.weight[i] = some / s.n;
    }
    return s;
}

/* From a step to the next: to the points around, so that the mean stays. */
static void go(struct overs *o, int from, double tokens, double weight)
{
    int i = 0;
    while (i + 2 < OVERS && o->at[i + 1].tokens <= tokens) i++;
    const double low = o->at[i].tokens, part = fmin(fmax((tokens - low) / (o->at[i + 1].tokens - low), 0), 1);
    o->to[from][i] += weight * (1 - part);
    o->to[from][i + 1] += weight * part;
}

static void look_at(struct steady_replica *r, struct overs *o, int i)
{
    const struct steady_lengths *l = r->s->lengths;
    struct over *x = &o->at[i];
    const double spread = l->prompt_square / (l->prompt_tokens * l->prompt_tokens), chance = 1 / (o->m + 1);
    double none;
    x->step_s = x->decode_s = 0;
    x->left = i > 0 ? fmin(fmax(x->tokens / l->prompt_tokens + 1 - spread / 2, 1), o->n) : 0;
    x->comes = (o->n - x->left) * chance;
    const struct sum s = come_of(l, o->n - x->left, chance, &none);
    x->decoding = fmax(o->n - x->left - x->comes / fmax(1 - none, 1e-9), 0);
    x->room = room_of(r->times, x->decoding);
    for (int k = -1; k < s.n; k++) {
        const double all = x->tokens + (k < 0 ? 0 : s.tokens[k]), w = k < 0 ? none : s.weight[k];
        const double now = fmin(all, x->room), decoding = k < 0 ? o->n - x->left : x->decoding;
        const double took_s = steady_times_step_s(r->times, decoding, now);
        x->step_s += w * took_s;
        x->decode_s += w * took_s * decoding;
        go(o, i, all - now, w);
    }
}

/* Grassmann, Taksar and Heyman: the stationary parts, without differences. */
static void find_parts(struct overs *o)
{
    double sum = 1;
    for (int k = OVERS - 1; k > 0; k--) {
        double out = 0;
        for (int i = 0; i < k; i++) out += o->to[k][i];
        for (int i = 0; i < k; i++) {
            o->to[i][k] = out > 0 ? o->to[i][k] / out : 0;
            if (!(o->to[i][k] > 0)) continue;
            for (int j = 0; j < k; j++) o->to[i][j] += o->to[i][k] * o->to[k][j];
        }
    }
    o->at[0].part = 1;
    for (int k = 1; k < OVERS; k++) {
        o->at[k].part = 0;
        for (int i = 0; i < k; i++) o->at[k].part += o->at[i].part * o->to[i][k];
        sum += o->at[k].part;
    }
    for (int k = 0; k < OVERS; k++) o->at[k].part /= sum;
}

/* As many tokens as steps leave over when all are full, so that as many prompts are done as answers end: others wait.
 * Below 0: they are not full. */
static double fluid_of(const struct steady_replica *r, double n, double m, double *away)
{
    const struct steady_lengths *l = r->s->lengths;
    const double full = r->times->budget_tokens * m / (l->prompt_tokens + r->times->rows * m);
    *away = l->prompt_tokens * sqrt(2 * fmin(full, n));
    const double begun =
        1 - l->prompt_square / (2 * l->prompt_tokens * l->prompt_tokens); /* more than its tokens say */
    return (n - full * (1 + 1 / m) - begun) * l->prompt_tokens;
}

/* What other attention groups have in a step. */
static void see_others(struct steady_replica *r, struct overs *o)
{
    struct steady_steps seen = {.weight = {0}};
    struct steady_law law;
    double some = 0, none;
    for (int i = 0; i < OVERS; i++) {
        const struct over *x = &o->at[i];
        const struct sum s = come_of(r->s->lengths, o->n - x->left, 1 / (o->m + 1), &none);
        for (int k = -1; k < s.n; k++) {
            const double now = fmin(x->tokens + (k < 0 ? 0 : s.tokens[k]), x->room);
            const double part = x->part * (k < 0 ? none : s.weight[k]);
            if (!(now > 0)) continue;
            steady_steps_add(&seen, now, part);
            some += part;
        }
    }
    steady_steps_law(&seen, fmin(some, 1), &law);
    steady_others_of(&law, r->times->parts, &o->others);
}

/* Attention groups step together: what the others have is what this one has, from nothing to where both are the same.
 */
static void settle(struct steady_replica *r, struct overs *o)
{
    enum { ROUNDS = 8 };
    struct steady_times *t = r->times;
    double step_s = 0;
    steady_others_none(&o->others);
    for (int k = 0; k < (t->parts > 1 ? ROUNDS : 1); k++) {
        const double before_s = step_s;
        if (k > 0) see_others(r, o);
        t->others = t->parts > 1 ? &o->others : NULL;
        memset(o->to, 0, sizeof o->to);
        for (int i = 0; i < OVERS; i++) look_at(r, o, i);
        find_parts(o);
        step_s = 0;
        for (int i = 0; i < OVERS; i++) step_s += o->at[i].part * o->at[i].step_s;
        if (fabs(step_s - before_s) < 3e-3 * step_s) break;
    }
    t->others = NULL;
}

static void find_overs(struct steady_replica *r, double n, double again, struct overs *o)
{
    enum { FAR = 6 }; /* standard deviations */
    const struct steady_lengths *l = r->s->lengths;
    const double prompt = l->prompt_tokens, spread = l->prompt_square / (prompt * prompt);
    double away, low = 1 + 1e-9, high = 4;
    const double m = l->steps / (1 + again), fluid = fluid_of(r, n, m, &away);
    *o = (struct overs){.n = n, .m = m};
    if (fluid > FAR * away) { /* never all done */
        o->at[1].tokens = fluid;
        o->at[2].tokens = 2 * fluid;
        look_at(r, o, 1);
        o->at[1].part = 1;
        return;
    }
    const double load = fmin(n / (o->m + 1) * prompt / room_of(r->times, n), .95);
    const double step = fmin(room_of(r->times, n), prompt) / 6;
    const double most =
        fmin(n * prompt * (1 + 3 / sqrt(n)), fmax(fluid, 0) + FAR * away + 2 * FAR * prompt * spread / (1 - load));
    for (int k = 0; k < 40; k++) { /* gaps grow so that the last is all of them */
        const double q = .5 * (low + high), reach = step * (pow(q, OVERS - 1) - 1) / (q - 1);
        if (reach < most)
            low = q;
        else
            high = q;
    }
    for (int i = 1; i < OVERS; i++) o->at[i].tokens = o->at[i - 1].tokens + step * pow(high, i - 1);
    settle(r, o);
}

double steady_pieces_rate(struct steady_replica *r, double n, double again, double *in_prefill)
{
    struct overs o;
    double seconds = 0, comes = 0;
    find_overs(r, n, again, &o);
    *in_prefill = 0;
    for (int i = 0; i < OVERS; i++) {
        seconds += o.at[i].part * o.at[i].step_s;
        comes += o.at[i].part * o.at[i].comes;
        *in_prefill += o.at[i].part * (o.at[i].left + o.at[i].comes);
    }
    return comes / (1 + again) / seconds;
}

/* Who comes finds what is left over, and others of its step before and behind it in any order; what comes later is
 * behind it too. */
static void see_over(struct points *p, struct steady_replica *r, const struct overs *o, const struct over *x)
{
    struct steady_times *t = r->times;
    double none;
    const struct sum s = come_of(r->s->lengths, fmax(o->n - x->left - 1, 0), 1 / (o->m + 1), &none);
    const double later = x->comes * r->s->lengths->prompt_tokens, weight = x->part * x->comes;
    const double full_s = steady_times_step_s(t, x->decoding, x->room);
    for (size_t i = 0; i < t->groups; i++)
        for (int k = -1; k < s.n; k++)
            for (int u = 0, places = k < 0 ? ALONE : PLACES; u < places; u++) {
                const double others = k < 0 ? 0 : s.tokens[k], w = k < 0 ? none : s.weight[k];
                const double place = (u + .5) / places, tokens = steady_group_at(t, i, k < 0 ? place : .5);
                const double ahead = x->tokens + others * place;
                const double steps = fmax(ceil((ahead + tokens) / x->room - 1e-9), 1);
                const double own = x->tokens + others + tokens - (steps - 1) * x->room,
                             part = weight * t->group[i].weight * w / places;
                /* what comes later is nothing, or little or much of its last step */
                const double behind = (steps - 1) * x->comes, nothing = exp(-behind), some = 1 - nothing;
                const double before_s = (steps - 1) * full_s;
                put(p, before_s + steady_times_step_s(t, x->decoding, fmin(own, x->room)), part * nothing);
                if (!(part * some > 1e-8)) continue;
                const double more = (steps - 1) * later / some;
                put(p, before_s + steady_times_step_s(t, x->decoding, fmin(own + .5 * more, x->room)), part * some / 2);
                put(p, before_s + steady_times_step_s(t, x->decoding, fmin(own + 1.5 * more, x->room)),
                    part * some / 2);
            }
}

/* A few of the points stand for all: nothing left over, and parts of equal weight. */
static void see_overs(struct points *p, struct steady_replica *r, const struct overs *o)
{
    enum { PARTS = 8 };
    double all = 0;
    for (int i = 1; i < OVERS; i++) all += o->at[i].part * o->at[i].comes;
    if (o->at[0].part * o->at[0].comes > 0) see_over(p, r, o, &o->at[0]);
    struct over sum = {0};
    double seen = 0, next = all / PARTS;
    for (int i = 1; i < OVERS; i++) {
        const struct over *x = &o->at[i];
        const double w = x->part * x->comes;
        seen += w;
        sum.part += w;
        sum.tokens += w * x->tokens;
        sum.left += w * x->left;
        sum.comes += w * x->comes;
        sum.decoding += w * x->decoding;
        sum.room += w * x->room;
        if (!(sum.part > 0) || (seen < next && i + 1 < OVERS)) continue;
        const double total = sum.part;
        const struct over mean = {.tokens = sum.tokens / total,
                                  .left = sum.left / total,
                                  .comes = sum.comes / total,
                                  .decoding = sum.decoding / total,
                                  .room = sum.room / total,
                                  .part = total / (sum.comes / total)};
        if (total > 1e-6 * all) see_over(p, r, o, &mean);
        sum = (struct over){0};
        while (next <= seen) next += all / PARTS;
    }
}

void steady_pieces_solve(struct steady_replica *r, double clients, double n, struct steady_histogram *ttft)
{
    struct overs o;
    struct points p = {0};
    double seconds = 0, comes = 0, none = 0, decoding = 0, decoding_s = 0;
    const double m = r->s->lengths->steps, again = r->by == STEADY_BLOCKS && n >= r->places ? r->again_frac : 0;
    find_overs(r, n, again, &o);
    for (int i = 0; i < OVERS; i++) {
        seconds += o.at[i].part * o.at[i].step_s;
        comes += o.at[i].part * o.at[i].comes;
        decoding += o.at[i].part * (o.at[i].comes * o.m);
        decoding_s += o.at[i].part * o.at[i].decode_s;
    }
    r->rate_per_s = comes / (1 + again) / seconds;
    r->times->others = o.others.n > 0 && r->times->parts > 1 ? &o.others : NULL;
    see_overs(&p, r, &o);
    r->times->others = NULL;
    /* Little: first tokens and the others take n/R in all; what the two sums miss is of the longer one, as it has most
     * of the error */
    const double decode_s = steady_times_decode_s(r->times, n), all_s = n / r->rate_per_s;
    const double first_s = p.sum_s / p.total, later_s = m * decoding_s / decoding;
    const double miss_s = all_s - first_s - later_s, squares = first_s * first_s + later_s * later_s;
    r->token_s = fmax((later_s + miss_s * later_s * later_s / squares) / m, decode_s * (decoding < .9 * n ? 0 : 1));
    const double scale = fmax((all_s - m * r->token_s) / first_s, .1);
    r->rate_per_s = n / (scale * first_s + m * r->token_s);
    r->wait_s = fmax(clients - n, 0) / r->rate_per_s;
    for (int i = 0; i < p.n; i++) steady_histogram_add(ttft, r->wait_s + scale * p.value_s[i], p.weight[i] / p.total);
    (void)come_of(r->s->lengths, n, 1 / (o.m + 1), &none);
    none *= o.at[0].part;
    r->flow = (struct steady_flow){.rate_per_s = r->rate_per_s,
                                   .n = n,
                                   .decode_s = decode_s,
                                   .each_s = fmax(seconds - decode_s, 0) / comes,
                                   .batches_per_s = (1 - none) / seconds,
                                   .steps = 1,
                                   .busy_frac = fmin(fmax(1 - none * decode_s / seconds, 0), 1)};
}
