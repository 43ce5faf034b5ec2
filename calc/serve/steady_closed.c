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

/* Tokens of other prompts in a row with a request's: none, or a sum with mean and variance when there are any. */
struct others {
    double none, mean, square;
};

/* Whole prompts in any order: a request's own step, with what is before it; its mean. Waits for a place are as even as
 * those of so many answers. */
static double own_step(struct steady_replica *r, struct others x, double wait_s, double wait_n, double more_frac,
                       double more_s, struct steady_histogram *h)
{
    struct steady_times *t = r->times;
    enum { ORDERS = 8, SUMS = 5 };
    static const double SUM[SUMS] = {-1.400, -.532, 0, .532, 1.400};
    const double fit_tokens = steady_flow_fit(t) * r->s->lengths->prompt_tokens, budget = t->budget_tokens;
    const double s2 = log1p(fmax(x.square / (x.mean * x.mean) - 1, 0));
    double mean_s = 0;
    for (size_t i = 0; i < t->groups; i++)
        for (int k = -1; k < SUMS; k++)
            for (int u = 0; u < ORDERS; u++) {
                const double others = k < 0 ? 0 : x.mean * exp(sqrt(s2) * SUM[k] - s2 / 2);
                const double w = t->group[i].weight * (k < 0 ? x.none : (1 - x.none) / SUMS) / ORDERS;
                if (!(w > 0)) continue;
                /* alone: those of its group, by themselves */
                const double tokens = k < 0 ? steady_group_at(t, i, (u + .5) / ORDERS) : t->group[i].tokens;
                const double ahead = others * (u + .5) / ORDERS;
                const double before = ahead + tokens <= budget ? 0 : fmax(floor(ahead / fit_tokens), 1);
                double now = fmin(tokens + others - before * fit_tokens, fit_tokens);
                if (!(before > 0)) now = others + tokens <= budget ? others + tokens : fmax(fit_tokens, tokens + ahead);
                const double at_s =
                    (before > 0 ? before * steady_times_step_s(t, 0, fmin(fit_tokens, ahead / before)) : 0) +
                    steady_times_step_s(t, 0, fmax(now, tokens));
                mean_s += w * at_s;
                for (int q = 0; h && q < (wait_n > 0 ? NORMALS : 1); q++) {
                    const double away = wait_n > 0 ? NORMAL[q] / sqrt(fmax(wait_n, 2)) : 0;
                    const double all_s = at_s + wait_s * fmax(1 + away, 0), part = wait_n > 0 ? w / NORMALS : w;
                    steady_histogram_add(h, all_s, part * (1 - more_frac));
                    if (more_frac > 0) steady_histogram_add(h, all_s + more_s, part * more_frac);
                }
            }
    return mean_s;
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
    if (l->prompt_square > prompt * prompt * (1 + 1e-6) && c->n > 1 && c->ttft) {
        const double mean = (c->n - 1) * prompt, square = (c->n - 1) * (l->prompt_square - prompt * prompt);
        const struct others x = {0, mean, mean * mean + square};
        steady_histogram_clear(c->ttft);
        c->first_s = c->n * own_step(c->r, x, c->wait_s, 0, c->more_frac, c->more_s, c->ttft);
    }
    c->prefill_s = took_s;
    return took_s + l->steps * steady_times_step_s(t, c->n, 0);
}

/* Prompts of different lengths that begin in one step: where they are too long for it some begin later, and stay apart
 * from then on, so that as many are together as hardly ever are too long; the last of these groups is not whole. 0:
 * they are of one length. */
static double settled(const struct steady_times *t, const struct steady_lengths *l, double n)
{
    enum { AWAY = 2 }; /* standard deviations */
    const double prompt = l->prompt_tokens, variance = l->prompt_square - prompt * prompt;
    if (!(variance > 1e-6 * prompt * prompt)) return 0;
    /* g prompt + AWAY sqrt(g variance) = budget - n */
    const double b = AWAY * sqrt(variance), room = fmax(t->budget_tokens - n, 1);
    const double root = (-b + sqrt(b * b + 4 * prompt * room)) / (2 * prompt), most = root * root;
    return fmax(n / (n / most + .5), 1);
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
        const double some = fmin(together, c->n);
        const struct steady_pieces x = steady_pieces_of(c->r, fmax(c->n - some, 0), some);
        c->steps = c->n / some * x.steps;
        if (c->steps > .5 * (l->steps + x.steps)) return 0; /* as good as at any place */
        if (c->ttft)
            c->first_s = c->n * steady_pieces_first(c->r, c->n, some, c->wait_s, c->more_s, c->more_frac, c->ttft);
        c->prefill_s = c->n / some * x.seconds;
        return c->prefill_s + (l->steps + x.steps - c->steps) * steady_times_step_s(t, c->n, 0);
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

/* Between decode steps are the prompts of those who follow on answers; nobody comes meanwhile. */
static void whole_solve(struct steady_replica *r, double clients, double n, struct steady_histogram *ttft)
{
    struct steady_times *t = r->times;
    const struct steady_lengths *l = r->s->lengths;
    const double steps = l->steps, decode_s = steady_times_step_s(t, n, 0), ends = n / steps;
    const double cycle_s = steady_flow_replaced_s(t, n, ends, 1, l->single_frac), between_s = cycle_s - decode_s;
    r->rate_per_s = n / (steps * cycle_s);
    if (r->by == STEADY_BLOCKS && n >= r->most && r->most_per_s < r->rate_per_s) r->rate_per_s = r->most_per_s;
    /* Little: what is not before a request's first token is its others' time, and no shorter than steps alone */
    const double some = -expm1(-ends);
    const struct others x = {1 - some, ends * l->prompt_tokens / some,
                             (ends * l->prompt_square + ends * ends * l->prompt_tokens * l->prompt_tokens) / some};
    const double own_s = own_step(r, x, 0, 0, 0, 0, NULL);
    r->token_s = fmax((n / r->rate_per_s - own_s) / steps, decode_s);
    r->rate_per_s = n / (own_s + steps * r->token_s);
    r->wait_s = fmax(clients - n, 0) / r->rate_per_s;
    (void)own_step(r, x, r->wait_s, r->wait_s * r->rate_per_s, 0, 0, ttft);
    r->flow = (struct steady_flow){.rate_per_s = r->rate_per_s,
                                   .n = n,
                                   .decode_s = decode_s,
                                   .extra_s = -between_s,
                                   .each_s = between_s / ends,
                                   .batches_per_s = -expm1(-ends) / r->token_s,
                                   .steps = 1,
                                   .busy_frac = between_s / (between_s + decode_s)};
}

static void tell_any(struct steady_replica *r, double clients, double n, struct steady_histogram *ttft,
                     struct steady_histogram *tpot)
{
    if (r->times->beside)
        steady_pieces_solve(r, clients, n, ttft);
    else
        whole_solve(r, clients, n, ttft);
    r->decoding = r->rate_per_s * r->s->lengths->steps * r->token_s;
    r->square = r->decoding * r->decoding;
    r->slope_s = 0;
    steady_tpot(r, tpot);
}

void steady_clients_solve(struct steady_replica *r, double clients, struct steady_result *o)
{
    struct steady_histogram ttft, tpot;
    const struct steady_setup *s = r->s;
    const double places = r->by == STEADY_BLOCKS ? fmax(r->places, 1) : (double)s->max_seqs;
    const double n = fmin(clients, places);
    steady_histogram_clear(&ttft);
    steady_histogram_clear(&tpot);
    r->idle_frac = r->wait_frac = 0;
    if (!steady_one_length(s->lengths) || (r->times->beside && r->by == STEADY_BLOCKS && n >= places) ||
        !tell_cycle(r, clients, n, &ttft, &tpot)) {
        steady_histogram_clear(&ttft);
        tell_any(r, clients, n, &ttft, &tpot);
    }
    r->decoding = r->rate_per_s * s->lengths->steps * r->token_s;
    o->saturated = clients > places;
    steady_tell_of(r, &ttft, &tpot, o);
}
