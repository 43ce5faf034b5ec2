/* steady_closed -- clients who ask again as soon as they are answered: answers end and prompts come at the ends of
 * steps, so that nothing is left to chance where answers are of one length; of steady_parts.h. */
#include <math.h>

#include "calc/serve/steady_parts.h"

static const double NORMAL[] = {-1.465, -.792, -.366, 0, .366, .792, 1.465};
enum { NORMALS = sizeof NORMAL / sizeof NORMAL[0] };

/* ---- answers of one length ---- */

bool steady_one_length(const struct steady_lengths *l)
{
    return l->steps > 0 && l->steps_square <= l->steps * l->steps * (1 + 1e-6);
}

/* A cycle as it is put together: its time so far, and first tokens as they are made. */
struct cycle {
    struct steady_replica *r;
    struct steady_histogram *ttft, *tpot; /* NULL: only its seconds are asked */
    double n, wait_s, more_s, more_frac;  /* that requests wait for a place; some of them by more_s longer */
    double first_s;                       /* sum over the sequences of their own time to the first token */
    double steps;                         /* that compute prompts */
    double prefill_s;
};

/* `some` of the n have their first token `own_s` after they begin, after so many prompts, whose lengths spread it. */
static void see_first(struct cycle *c, double some, double own_s, double prompts)
{
    const struct steady_lengths *l = c->r->s->lengths;
    const double spread = l->prompt_square / (l->prompt_tokens * l->prompt_tokens) - 1;
    const double s2 = log1p(fmax(spread, 0) / fmax(prompts, 1)), w = some / c->n / NORMALS;
    double mean = 0; /* of the few points */
    c->first_s += some * own_s;
    for (int i = 0; i < NORMALS; i++) mean += exp(sqrt(s2) * NORMAL[i]) / NORMALS;
    for (int i = 0; c->ttft && i < NORMALS; i++) {
        const double at_s = c->wait_s + own_s * exp(sqrt(s2) * NORMAL[i]) / mean;
        steady_histogram_add(c->ttft, at_s, w * (1 - c->more_frac));
        if (c->more_frac > 0) steady_histogram_add(c->ttft, at_s + c->more_s, w * c->more_frac);
    }
}

/* Whole prompts of n that begin together, step after step; then all decode, and end together. */
static double whole_s(struct cycle *c)
{
    struct steady_times *t = c->r->times;
    const struct steady_lengths *l = c->r->s->lengths;
    const double prompt = l->prompt_tokens, fit = steady_flow_fit(t);
    double took_s = 0;
    for (double left = c->n; left > 1e-9; left -= fit) {
        const double some = fmin(left, fit);
        took_s += steady_times_step_s(t, 0, some * prompt);
        see_first(c, some, took_s, fit > 1 ? some : c->n - left + 1);
        c->steps++;
    }
    c->prefill_s = took_s;
    return took_s + l->steps * steady_times_step_s(t, c->n, 0);
}

/* Prompts of different lengths that begin in one step: where they are too long for it some begin later, and stay apart
 * from then on, so that in the end as many are together as hardly ever are too long. 0: they are of one length, or not
 * even one is. */
static double settled(const struct steady_times *t, const struct steady_lengths *l, double n)
{
    enum { AWAY = 2 }; /* standard deviations */
    const double prompt = l->prompt_tokens, variance = l->prompt_square - prompt * prompt;
    if (!(variance > 1e-6 * prompt * prompt)) return 0;
    /* g prompt + AWAY sqrt(g variance) = budget - n */
    const double b = AWAY * sqrt(variance), room = fmax(t->budget_tokens - n, 1);
    const double root = (-b + sqrt(b * b + 4 * prompt * room)) / (2 * prompt);
    return floor(root * root);
}

/* Pieces: those that began in one step end in one, and their followers' prompts are in the step after that, beside all
 * others. How many begin together is what a step had room for when they all came. 0: steps are full for ever. */
static double pieces_s(struct cycle *c)
{
    struct steady_times *t = c->r->times;
    const struct steady_lengths *l = c->r->s->lengths;
    const double prompt = l->prompt_tokens, budget = t->budget_tokens, all = c->n * prompt;
    const double own = fmax(ceil(prompt / budget - 1e-9), 1), period = l->steps + own;
    double done = 0, begun = 0, took_s = 0;
    const double together = settled(t, l, c->n);
    if (together > 0) {
        const double some = fmin(together, c->n), step_s = steady_times_step_s(t, fmax(c->n - some, 0), some * prompt);
        c->steps = c->n / some;
        if (c->steps > period) return 0;
        see_first(c, c->n, own * step_s, some);
        c->prefill_s = c->steps * step_s;
        return c->prefill_s + (period - c->steps) * steady_times_step_s(t, c->n, 0);
    }
    while (done < all - 1e-6) {
        const double x = fmin(budget - begun, all - done);
        if (c->steps + 1 > period || !(x > 0)) return 0;
        done += x;
        const double now = fmin(floor(done / prompt + 1e-6), c->n),
                     some = done < all - 1e-6 ? now - begun : c->n - begun;
        const double step_s = steady_times_step_s(t, fmax(c->n - fmax(some, 1), 0), x);
        if (some > 0) see_first(c, some, own * step_s, some);
        begun += some;
        took_s += step_s;
        c->steps++;
    }
    c->prefill_s = took_s;
    return took_s + (period - c->steps) * steady_times_step_s(t, c->n, 0);
}

double steady_cohort_s(struct steady_replica *r, double n)
{
    struct cycle c = {.r = r, .n = n};
    return r->times->beside ? pieces_s(&c) : whole_s(&c);
}

/* All ask together, the others wait behind them. False: it is no cycle. */
static bool tell_cycle(struct steady_replica *r, double clients, double n, struct steady_histogram *ttft,
                       struct steady_histogram *tpot)
{
    const double steps = r->s->lengths->steps, cycle_s = steady_cohort_s(r, n);
    if (!(cycle_s > 0)) return false;
    const double ahead = clients / n - 1, whole = r->times->beside ? ahead : floor(ahead);
    struct cycle c = {
        .r = r, .ttft = ttft, .n = n, .wait_s = whole * cycle_s, .more_s = cycle_s, .more_frac = ahead - whole};
    (void)(r->times->beside ? pieces_s(&c) : whole_s(&c));
    r->rate_per_s = n / cycle_s;
    r->wait_s = ahead * cycle_s;
    r->token_s = (cycle_s - c.first_s / n) / steps;
    r->flow = (struct steady_flow){.rate_per_s = r->rate_per_s,
                                   .n = n,
                                   .decode_s = steady_times_step_s(r->times, n, 0),
                                   .batches_per_s = 1 / cycle_s,
                                   .steps = c.steps,
                                   .busy_frac = c.prefill_s / cycle_s};
    const double low_s = r->flow.decode_s, high_s = 2 * r->token_s - low_s; /* the last to begin, and the first */
    if (r->times->beside || !(high_s > low_s)) {
        steady_histogram_add(tpot, r->token_s, 1);
        return true;
    }
    for (int i = 0; i < 8; i++) steady_histogram_add(tpot, low_s + (high_s - low_s) * (i + .5) / 8, 1. / 8);
    return true;
}

/* ---- answers of any length ---- */

/* A Poisson number of prompts: none, or one of two sums with their mean and variance when there are some. */
static void sums_of(const struct steady_lengths *l, double mean, double x[3], double weight[3])
{
    const double none = exp(-mean), some = -expm1(-mean), a = mean * l->prompt_tokens, at = a / some;
    const double away = fmin(sqrt(fmax((mean * l->prompt_square + a * a) / some - at * at, 0)), .9 * at);
    x[0] = 0;
    x[1] = at - away;
    x[2] = at + away;
    weight[0] = none;
    weight[1] = weight[2] = some / 2;
}

/* A request's own step, others beside it; waits that are nearly equal: of so many answers. */
static void own_step(struct steady_replica *r, double n, double others, double wait_s, double wait_n, double scale,
                     struct steady_histogram *h)
{
    const struct steady_times *t = r->times;
    double x[3], weight[3];
    sums_of(r->s->lengths, fmax(others, 1e-9), x, weight);
    for (size_t i = 0; i < t->groups; i++)
        for (int k = 0; k < 3; k++) {
            const double tokens = t->group[i].tokens + x[k], room = fmax(t->budget_tokens - (t->beside ? n : 0), 1);
            const double most = t->beside ? room : fmax(room, t->group[i].tokens);
            const double steps = fmax(tokens / most, 1),
                         own_s = steady_times_step_s(r->times, t->beside ? n : 0, fmin(tokens, most));
            /* where steps are several, it is in any of them */
            const double at_s = t->beside ? steps * own_s : (steps + 1) / 2 * own_s;
            for (int q = 0; q < NORMALS; q++) {
                const double away = wait_n > 0 ? NORMAL[q] / sqrt(fmax(wait_n, 2)) : 0;
                steady_histogram_add(h, scale * at_s + wait_s * fmax(1 + away, 0),
                                     t->group[i].weight * weight[k] / NORMALS);
            }
        }
}

/* Between decode steps the prompts of those who follow on answers; nobody comes meanwhile. */
static double whole_cycle(struct steady_replica *r, double n, double again)
{
    return steady_flow_replaced_s(r->times, n, n / r->s->lengths->steps * (1 + again), r->s->lengths->single_frac);
}

/* Every step has the prompts of those who follow on the answers of the one before. */
static double pieces_step(struct steady_replica *r, double n)
{
    double x[3], weight[3], sum_s = 0;
    const double ends = n / (r->s->lengths->steps + 1);
    sums_of(r->s->lengths, ends, x, weight);
    for (int k = 0; k < 3; k++) sum_s += weight[k] * steady_times_step_s(r->times, fmax(n - ends, 1), x[k]);
    return sum_s;
}

static void tell_any(struct steady_replica *r, double clients, double n, struct steady_histogram *ttft,
                     struct steady_histogram *tpot)
{
    struct steady_times *t = r->times;
    const struct steady_lengths *l = r->s->lengths;
    const double steps = l->steps, decode_s = steady_times_step_s(t, n, 0);
    double token_s, between_s = 0, ends = n / steps, inside = n;
    if (t->beside) {
        const double full = t->budget_tokens * steps / (l->prompt_tokens + steps);
        token_s = pieces_step(r, n);
        ends = n / (steps + 1);
        r->rate_per_s = n / ((steps + fmax(l->prompt_tokens / t->budget_tokens, 1)) * token_s);
        if (full < n) { /* more ends than there is room for in the steps: prompts wait, and all steps are full */
            token_s = steady_times_step_s(t, fmax(full, 1), t->budget_tokens - full);
            r->rate_per_s = full / (steps * token_s);
            inside = full;
        }
    } else {
        const double cycle_s = whole_cycle(r, n, 0);
        between_s = cycle_s - decode_s; /* none of it before the first step of one's own */
        token_s = cycle_s - between_s / steps;
        r->rate_per_s = n / (steps * cycle_s);
    }
    if (r->by == STEADY_BLOCKS && n >= r->most && r->most_per_s < r->rate_per_s) r->rate_per_s = r->most_per_s;
    if (!(inside < n)) {
        /* Little: what is not before a request's first token is its others' time, and no shorter than steps alone */
        own_step(r, n, ends, 0, 0, 1, ttft);
        const double own_s = ttft->sum / ttft->total;
        token_s = fmax((n / r->rate_per_s - own_s) / steps, decode_s);
        r->rate_per_s = n / (own_s + steps * token_s);
        steady_histogram_clear(ttft);
    }
    r->token_s = token_s;
    r->wait_s = fmax(clients / r->rate_per_s - n / r->rate_per_s, 0);
    const double own_s = fmax(n / r->rate_per_s - steps * token_s, 0);
    const double queue = r->wait_s * r->rate_per_s;
    if (inside < n)
        own_step(r, inside, 0, r->wait_s + own_s, n - inside + queue, 0, ttft);
    else
        own_step(r, n, ends, r->wait_s, queue, 1, ttft);
    r->flow = (struct steady_flow){.rate_per_s = r->rate_per_s,
                                   .n = n,
                                   .decode_s = decode_s,
                                   .extra_s = -between_s,
                                   .each_s = between_s / ends,
                                   .batches_per_s = -expm1(-ends) / token_s,
                                   .steps = 1,
                                   .busy_frac = t->beside ? -expm1(-ends) : between_s / (between_s + decode_s)};
    if (t->beside) r->flow.each_s = fmax(token_s - decode_s, 0) / ends;
    r->decoding = r->rate_per_s * steps * token_s;
    r->square = r->decoding * r->decoding;
    r->slope_s = 0;
    steady_tpot(r, tpot);
}

void steady_clients_solve(struct steady_replica *r, double clients, struct steady_result *o)
{
    struct steady_histogram ttft, tpot;
    const struct steady_setup *s = r->s;
    const double places = r->by == STEADY_BLOCKS ? fmax(r->most, 1) : (double)s->max_seqs;
    const double n = fmin(clients, places);
    steady_histogram_clear(&ttft);
    steady_histogram_clear(&tpot);
    r->idle_frac = r->wait_frac = 0;
    if (!steady_one_length(s->lengths) || (r->by == STEADY_BLOCKS && n >= r->most) ||
        !tell_cycle(r, clients, n, &ttft, &tpot)) {
        steady_histogram_clear(&ttft);
        tell_any(r, clients, n, &ttft, &tpot);
    }
    r->decoding = r->rate_per_s * s->lengths->steps * r->token_s;
    o->saturated = clients > places;
    steady_tell_of(r, &ttft, &tpot, o);
}
