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

/* How many prompts are in front of a request's own, of those that come with it in any order: each number up to a few,
 * equal parts of more; and how many are behind then. */
enum { FRONTS = 24, PAIRS = 66 };
struct fronts {
    int n;
    double ahead[PAIRS], behind[PAIRS], weight[PAIRS];
};

/* Of so many others, always. */
static struct fronts fronts_of_all(double others)
{
    struct fronts x = {.n = (int)fmin(floor(others + 1.5), FRONTS)};
    for (int i = 0; i < x.n; i++) {
        x.ahead[i] = others + 1 < FRONTS ? fmin(i, others) : (i + .5) / FRONTS * (others + 1) - .5;
        x.behind[i] = others - x.ahead[i];
        x.weight[i] = 1. / x.n;
    }
    return x;
}

/* Of a Poisson number j of mean `others`, k of them in front, with the chance p(j)/(j + 1): of few each pair. */
static struct fronts fronts_of_poisson(double others)
{
    enum { MOST = 2 * FRONTS, FEW = 11 };
    double p[MOST];
    struct fronts x = {.n = FRONTS};
    if (others > FRONTS / 3.) return fronts_of_all(others);
    p[0] = exp(-others);
    for (int j = 1; j < MOST; j++) p[j] = p[j - 1] * others / j;
    if (others < FEW / 4.) {
        x.n = 0;
        for (int j = 0; j < FEW; j++)
            for (int k = 0; k <= j; k++) {
                x.ahead[x.n] = k;
                x.behind[x.n] = j - k;
                x.weight[x.n++] = p[j] / (j + 1);
            }
        return x;
    }
    for (int k = 0; k < FRONTS; k++) {
        for (int j = k; j < MOST; j++) {
            x.weight[k] += p[j] / (j + 1);
            x.behind[k] += p[j] / (j + 1) * (j - k);
        }
        x.ahead[k] = k;
        x.behind[k] /= x.weight[k];
    }
    return x;
}

/* Whole prompts of those behind that fit into so many tokens, on average. */
static double fit_behind(double room, double prompt, double spread, double behind)
{
    const double fit = spread > 1e-6 ? fmax(room / prompt + (spread - 1) / 2, 0) : floor(room / prompt + 1e-9);
    return fmin(fit, behind) * prompt;
}

/* Whole prompts: a request's own step, with what is before it; its mean. Waits for a place are as even as those of so
 * many answers; some are longer by more_s. */
static double own_step(struct steady_replica *r, const struct fronts *x, double wait_s, double wait_n, double more_frac,
                       double more_s, struct steady_histogram *h)
{
    enum { SUMS = 5, PLACES = 8 };
    static const double SUM[SUMS] = {-1.400, -.532, 0, .532, 1.400};
    struct steady_times *t = r->times;
    const struct steady_lengths *l = r->s->lengths;
    const double prompt = l->prompt_tokens, spread = l->prompt_square / (prompt * prompt) - 1,
                 budget = t->budget_tokens;
    const double fit_tokens = steady_flow_fit(t) * prompt;
    double mean_s = 0;
    for (int k = 0; k < x->n; k++) {
        const double sd = x->ahead[k] > 0 ? sqrt(log1p(fmax(spread, 0) / x->ahead[k])) : 0;
        const int parts = x->ahead[k] > 0 ? SUMS : PLACES;
        if (!(x->weight[k] > 1e-4)) continue;
        for (size_t i = 0; i < t->groups; i++)
            for (int u = 0; u < parts; u++) {
                const double w = t->group[i].weight * x->weight[k] / parts;
                const double ahead = x->ahead[k] > 0 ? x->ahead[k] * prompt * exp(sd * SUM[u] - sd * sd / 2) : 0;
                const double own = x->ahead[k] > 0 ? t->group[i].tokens : steady_group_at(t, i, (u + .5) / parts);
                const double all = ahead + own + x->behind[k] * prompt, full = fmax(fit_tokens, own);
                const double before =
                    ahead + own <= budget * (1 + 1e-9) ? 0 : fmax(floor(ahead / fit_tokens + 1e-9), 1);
                double now = fmax(fmin(all - before * fit_tokens, full), own);
                if (!(before > 0))
                    now = fmin(ahead + own + fit_behind(budget - ahead - own, prompt, spread, x->behind[k]),
                               fmax(budget, own));
                const double front_s =
                    before > 0 ? before * steady_times_step_s(t, 0, fmin(fit_tokens, ahead / before)) : 0;
                const double at_s = front_s + steady_times_step_s(t, 0, now);
                mean_s += w * at_s;
                for (int q = 0; h && q < (wait_n > 0 ? NORMALS : 1); q++) {
                    const double away = wait_n > 0 ? NORMAL[q] / sqrt(fmax(wait_n, 2)) : 0;
                    const double all_s = at_s + wait_s * fmax(1 + away, 0), part = wait_n > 0 ? w / NORMALS : w;
                    steady_histogram_add(h, all_s, part * (1 - more_frac));
                    if (more_frac > 0) steady_histogram_add(h, all_s + more_s, part * more_frac);
                }
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
        const struct fronts x = fronts_of_all(c->n - 1);
        steady_histogram_clear(c->ttft);
        c->first_s = c->n * own_step(c->r, &x, c->wait_s, 0, c->more_frac, c->more_s, c->ttft);
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
    /* where a whole one fits, one that was cut when they all came ends later, and the next of its client's is whole: so
     * many as fit whole beside those that decode are together from then on */
    const double whole = floor(fmax(budget - c->n, 0) / fmax(prompt - 1, 1) + 1e-9);
    while (done < all - 1e-6) {
        const double x = fmin(whole >= 1 ? whole * prompt : budget - begun, all - done);
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
    const double steps = r->s->lengths->steps;
    if (r->times->beside) {
        if (steady_ring_solve(r, clients, n, ttft, tpot)) return true;
        steady_histogram_clear(ttft);
        steady_histogram_clear(tpot);
    }
    const double cycle_s = steady_cohort_s(r, n);
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
    const struct fronts x = fronts_of_poisson(ends);
    const double own_s = own_step(r, &x, 0, 0, 0, 0, NULL);
    r->token_s = fmax((n / r->rate_per_s - own_s) / steps, decode_s);
    r->rate_per_s = n / (own_s + steps * r->token_s);
    r->wait_s = fmax(clients - n, 0) / r->rate_per_s;
    (void)own_step(r, &x, r->wait_s, r->wait_s * r->rate_per_s, 0, 0, ttft);
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

static void clients_of(struct steady_replica *r, double clients, double places, struct steady_histogram *ttft,
                       struct steady_histogram *tpot)
{
    const struct steady_lengths *l = r->s->lengths;
    const double n = fmin(clients, places);
    steady_histogram_clear(ttft);
    steady_histogram_clear(tpot);
    r->idle_frac = r->wait_frac = 0;
    r->cycle = steady_one_length(l) && !(r->times->beside && r->by == STEADY_BLOCKS && n >= places) &&
               tell_cycle(r, clients, n, ttft, tpot);
    if (r->cycle) return;
    steady_histogram_clear(ttft);
    tell_any(r, clients, n, ttft, tpot);
}

void steady_clients_solve(struct steady_replica *r, double clients, struct steady_result *o)
{
    enum { TURNS = 12 };
    struct steady_histogram ttft, tpot;
    const struct steady_setup *s = r->s;
    const double places = r->by == STEADY_BLOCKS ? fmax(r->places, 1) : (double)s->max_seqs;
    double there = clients;
    /* Little: X (R + front) = clients, and R = there/X of those that the engine has. Who is of a cycle that holds all
     * clients is away together, and so is one alone. */
    for (int k = 0; k < (s->front_s > 0 ? TURNS : 1); k++) {
        clients_of(r, there, places, &ttft, &tpot);
        const double own_s = there / r->rate_per_s, now = r->cycle && clients <= places ? clients : 1;
        if (!(s->front_s > 0)) break;
        r->rate_per_s = clients / (own_s + s->front_s);
        r->idle_frac = fmax(1 - r->rate_per_s * own_s / there, 0);
        const double next = fmax(clients - r->rate_per_s * s->front_s, now);
        if (fabs(next - there) < 1e-4 * there) break;
        there = next;
    }
    r->decoding = r->rate_per_s * s->lengths->steps * r->token_s;
    o->saturated = clients > places;
    steady_tell_of(r, &ttft, &tpot, o);
}
