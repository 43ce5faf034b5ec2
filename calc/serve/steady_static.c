/* steady_static -- batches of whoever waits, all of which run until the longest is done; of steady_parts.h. */
#include <math.h>

#include "calc/serve/steady_parts.h"

enum {
    KNOTS = 48,  /* of requests that wait: 0 .. 8, then by fourth and third roots of two */
    LONGEST = 8, /* parts of the distribution of the longest answer of a batch */
    PROMPTS = 3, /* and of the longest prompt */
    SPREADS = LONGEST * PROMPTS,
    TURNS = 64, /* batches that a client waits for; not a unit */
};
static const double OUTPUT_PART[LONGEST] = {.25, .25, .2, .15, .1, .04, .008, .002},
                    PROMPT_PART[PROMPTS] = {.5, .4, .1};

/* A batch of so many. */
struct batch {
    double n, prefill_s, decode_s; /* of all its decode steps */
    double all_s;                  /* both */
    double step_s;
    double first_s[PROMPTS];  /* its prefill, by the longest prompt */
    double spread_s[SPREADS]; /* both, by the longest answer and prompt */
};

struct chain {
    const struct steady_setup *s;
    struct mix x;
    double rate_per_s, most;
    size_t knots;
    double waits[KNOTS]; /* when a batch ends */
    struct batch batch[KNOTS];
    double part[KNOTS]; /* of batch ends */
    double log_below[STEADY_QUANTILES];
};

static double step_s(struct chain *c)
{
    double v[MIX_VALUES_N];
    struct calibrated_time t;
    if (c->s->server) return engine_mix_s(c->s->server, &c->x, c->s->overlapped) + c->s->overhead_s;
    mix_eval(&c->x, v);
    if (!c->s->calibrated) return v[MIX_step_s] + c->s->overhead_s;
    calibrated_mix_eval(c->s->calibrated, &c->x, v[MIX_step_s], &t);
    return t.s + c->s->overhead_s;
}

/* The value at place u of a distribution, from its quantiles. */
static double value_at(const double at[STEADY_QUANTILES], double u)
{
    double before = 0, low = at[0], part;
    for (size_t i = 0; i < STEADY_QUANTILES; i++) {
        const double place = steady_quantile(i, &part);
        if (place >= u) return i == 0 ? at[0] : low + (at[i] - low) * (u - before) / (place - before);
        before = place;
        low = at[i];
    }
    return at[STEADY_QUANTILES - 1];
}

/* The longest of n, its mean within each of so many parts of its distribution: below a quantile are all of n with the
 * n-th power of the chance that one is. */
static void longest(const double at[STEADY_QUANTILES], const double log_below[STEADY_QUANTILES], double n,
                    const double *part, int parts, double *mean)
{
    double before = 0, edge = part[0], weight = 0, sum = 0;
    int k = 0;
    for (size_t q = 0; q < STEADY_QUANTILES; q++) {
        const double all = q + 1 < STEADY_QUANTILES ? exp(n * log_below[q]) : 1;
        while (k + 1 < parts && all > edge) {
            sum += (edge - before) * at[q];
            weight += edge - before;
            mean[k] = sum / weight;
            before = edge;
            weight = sum = 0;
            edge += part[++k];
        }
        sum += (all - before) * at[q];
        weight += all - before;
        before = all;
    }
    mean[k] = weight > 0 ? sum / weight : at[STEADY_QUANTILES - 1];
}

/* Prompts padded to the longest, then a step for each token of the longest answer but its first. */
static struct batch batch_of(struct chain *c, double n)
{
    const struct steady_lengths *l = c->s->lengths;
    double prompt[PROMPTS], steps[LONGEST], prompts = 0, mean = 0, square = 0;
    struct batch b = {.n = n};
    longest(l->prompt_at, c->log_below, n, PROMPT_PART, PROMPTS, prompt);
    longest(l->output_at, c->log_below, n, OUTPUT_PART, LONGEST, steps);
    for (int i = 0; i < PROMPTS; i++) prompts += PROMPT_PART[i] * prompt[i];
    for (int i = 0; i < LONGEST; i++) {
        steps[i]--;
        mean += OUTPUT_PART[i] * steps[i];
        square += OUTPUT_PART[i] * steps[i] * steps[i];
    }
    if (mean > 0) {
        mix_clear(&c->x);
        mix_decode(&c->x, n, prompts + .5 + square / mean / 2);
        b.step_s = step_s(c);
    }
    for (int i = 0; i < PROMPTS; i++) {
        mix_clear(&c->x);
        mix_prefill(&c->x, n, prompt[i], 0);
        const double took_s = step_s(c);
        b.first_s[i] = took_s;
        b.prefill_s += PROMPT_PART[i] * took_s;
        for (int k = 0; k < LONGEST; k++) b.spread_s[i * LONGEST + k] = took_s + steps[k] * b.step_s;
    }
    b.decode_s = mean * b.step_s;
    b.all_s = b.prefill_s + b.decode_s;
    return b;
}

/* Of the longest prompt and the longest answer of n: as many fit as the cache has of these tokens, so that their mean
 * number is of 1/tokens. Independent of each other. */
static double tokens_of(const struct chain *c, double n)
{
    const struct steady_lengths *l = c->s->lengths;
    double prompt[PROMPTS], output[LONGEST], inverse = 0;
    longest(l->prompt_at, c->log_below, n, PROMPT_PART, PROMPTS, prompt);
    longest(l->output_at, c->log_below, n, OUTPUT_PART, LONGEST, output);
    for (int i = 0; i < PROMPTS; i++)
        for (int k = 0; k < LONGEST; k++) inverse += PROMPT_PART[i] * OUTPUT_PART[k] / (prompt[i] + output[k]);
    return 1 / inverse;
}

/* The most that fit, on average. */
static double most_of(const struct chain *c, enum steady_limit *by)
{
    const struct steady_setup *s = c->s;
    double low = 1, high = (double)s->max_seqs;
    const double b = (double)s->block_tokens;
    *by = STEADY_SEQS;
    for (int i = 0; i < 30 && low + .5 < high; i++) {
        const double n = i == 0 ? high : ceil((low + high) / 2);
        const double tokens = tokens_of(c, n);
        if (n * ceil(tokens / b) <= (double)s->blocks) {
            low = n;
            if (i == 0) return n;
        } else {
            *by = STEADY_BLOCKS;
            high = n - 1;
        }
    }
    return low;
}

/* Batches that the cache has room for, `seqs` at most: N of a longest prompt and answer, in S seconds. */
struct turns {
    double number, seconds; /* E[N], E[S] */
    double n[SPREADS], output[SPREADS], step_s[SPREADS];
};

static double part_of(int spread) { return PROMPT_PART[spread / LONGEST] * OUTPUT_PART[spread % LONGEST]; }

static struct turns turns_of(struct chain *c, double most, double seqs)
{
    const struct steady_setup *s = c->s;
    const struct steady_lengths *l = s->lengths;
    const double b = (double)s->block_tokens;
    double prompt[PROMPTS], output[LONGEST];
    struct turns x = {0};
    longest(l->prompt_at, c->log_below, most, PROMPT_PART, PROMPTS, prompt);
    longest(l->output_at, c->log_below, most, OUTPUT_PART, LONGEST, output);
    for (int i = 0; i < SPREADS; i++) {
        const double w = part_of(i), own = prompt[i / LONGEST],
                     n = (double)s->blocks / ceil((own + output[i % LONGEST]) / b);
        x.n[i] = fmax(fmin(n, seqs), 1);
        x.output[i] = output[i % LONGEST];
        mix_clear(&c->x);
        mix_prefill(&c->x, x.n[i], own, 0);
        x.number += w * x.n[i];
        x.seconds += w * step_s(c);
        if (!(x.output[i] > 1)) continue;
        mix_clear(&c->x);
        mix_decode(&c->x, x.n[i], own + .5 + x.output[i] / 2);
        x.step_s[i] = step_s(c);
        x.seconds += w * (x.output[i] - 1) * x.step_s[i];
    }
    return x;
}

/* Where others always wait: E[N]/E[S] a second (renewal and reward), as longer ones mean fewer. `most` is E[N]. */
static double most_per_s_of(struct chain *c, double most)
{
    const struct turns x = turns_of(c, most, (double)c->s->max_seqs);
    return x.number / x.seconds;
}

/* ---- how many wait when a batch ends ---- */

static double knot_of(size_t i) { return i <= 8 ? (double)i : floor(8 * exp2((double)(i - 8) / 2)); }

/* Weight at a number: to the knots around it, so that the mean stays. */
static void put(const struct chain *c, double *part, double n, double weight)
{
    const double most = c->waits[c->knots - 1];
    if (n >= most) {
        part[c->knots - 1] += weight;
        return;
    }
    size_t i = n <= 8 ? (size_t)n : 8 + (size_t)(2 * log2(n / 8));
    while (i > 0 && c->waits[i] > n) i--;
    while (i + 2 < c->knots && c->waits[i + 1] <= n) i++;
    const double t = (n - c->waits[i]) / (c->waits[i + 1] - c->waits[i]);
    part[i] += weight * (1 - t);
    part[i + 1] += weight * t;
}

/* Poisson arrivals of that mean on top of `left`. */
static void arrivals(const struct chain *c, double *part, double left, double mean, double weight)
{
    const double mode = floor(mean);
    const double top = weight * exp(mode * log(fmax(mean, 1e-300)) - mean - lgamma(mode + 1));
    double w = top;
    for (double k = mode; k >= 0 && w > 1e-7 * top; k--) {
        put(c, part, left + k, w);
        w *= k / mean;
    }
    w = top * mean / (mode + 1);
    for (double k = mode + 1; w > 1e-7 * top; k++) {
        put(c, part, left + k, w);
        w *= mean / (k + 1);
    }
}

static enum err_code find_parts(struct arena *a, struct chain *c, struct err *e)
{
    enum { ROUNDS = 200 };
    double *next = arena_array(a, KNOTS * KNOTS, sizeof *next);
    if (!next) return err_nomem(e);
    for (size_t i = 0; i < KNOTS * KNOTS; i++) next[i] = 0;
    for (size_t i = 0; i < c->knots; i++)
        for (int k = 0; k < SPREADS; k++)
            arrivals(c, next + i * KNOTS, fmax(c->waits[i] - c->batch[i].n, 0), c->rate_per_s * c->batch[i].spread_s[k],
                     part_of(k));
    for (size_t i = 0; i < c->knots; i++) c->part[i] = 1. / (double)c->knots;
    for (int round = 0; round < ROUNDS; round++) {
        double new[KNOTS] = {0}, sum = 0, change = 0;
        for (size_t i = 0; i < c->knots; i++)
            for (size_t k = 0; k < c->knots; k++) new[k] += c->part[i] * next[i * KNOTS + k];
        for (size_t k = 0; k < c->knots; k++) sum += new[k];
        for (size_t k = 0; k < c->knots; k++) {
            change += fabs(new[k] / sum - c->part[k]);
            c->part[k] = new[k] / sum;
        }
        if (change < 1e-6) break;
    }
    return ERR_OK;
}

/* ---- what requests see ---- */

/* The batch of so many, between the knots. */
static double prefill_at(const struct chain *c, double n, int prompt)
{
    size_t i = 1;
    n = fmin(fmax(n, 1), c->most);
    while (i + 2 < c->knots && c->batch[i + 1].n < n) i++;
    const struct batch *x = &c->batch[i], *y = &c->batch[i + 1];
    const double low = x->first_s[prompt], high = y->first_s[prompt];
    return y->n > x->n ? low + (high - low) * (n - x->n) / (y->n - x->n) : low;
}

static void see_first(struct chain *c, struct steady_histogram *h)
{
    enum { PLACES = 5, ALONE = 12 };
    const struct batch *full = &c->batch[c->knots - 1];
    steady_histogram_clear(h);
    for (int i = 0; i < ALONE; i++) { /* finds nobody */
        mix_clear(&c->x);
        mix_prefill(&c->x, 1, value_at(c->s->lengths->prompt_at, (i + .5) / ALONE), 0);
        steady_histogram_add(h, step_s(c), c->part[0] / ALONE);
    }
    for (size_t i = 0; i < c->knots; i++)
        for (int k = 0; k < SPREADS; k++) {
            const double all_s = c->batch[i].spread_s[k], left = fmax(c->waits[i] - c->batch[i].n, 0);
            const double come = c->rate_per_s * all_s, weight = c->part[i] * come * part_of(k) / PLACES;
            for (int p = 0; p < PLACES && weight > 1e-9; p++) {
                const double at = (p + .5) / PLACES, before = left + come * at;
                const double batches = floor(before / c->most), n = left + come * (1 - 1. / PLACES) + 1;
                for (int q = 0; q < PROMPTS; q++)
                    steady_histogram_add(
                        h, (1 - at) * all_s + batches * full->all_s + prefill_at(c, n - batches * c->most, q),
                        weight * PROMPT_PART[q]);
            }
        }
}

/* E[1 / (output - 1)] as it is, less that of the quantiles: of the shortest answers, of few tokens each. */
static double inverse_more(const struct steady_lengths *l)
{
    double sum = 0, all = 0;
    for (size_t q = 0; q < STEADY_QUANTILES; q++) {
        double part;
        (void)steady_quantile(q, &part);
        if (!(l->output_at[q] > 1)) continue;
        sum += part / (l->output_at[q] - 1);
        all += part;
    }
    return all > 0 ? l->inverse - sum / all : 0;
}

/* All run as long as the longest, (longest - 1) steps over the own output - 1. Returns what the mean is above that of
 * the histogram. */
static double see_tokens(const struct chain *c, struct steady_histogram *h)
{
    const double *at = c->s->lengths->output_at, less = inverse_more(c->s->lengths);
    double more_s = 0, all = 0;
    steady_histogram_clear(h);
    for (size_t i = 1; i < c->knots; i++) {
        const struct batch *b = &c->batch[i];
        const double weight = (c->part[i] + (i == 1 ? c->part[0] : 0)) * b->n;
        double other[LONGEST];
        if (!(weight > 1e-6)) continue;
        double others = 0;
        for (int k = 0; k < LONGEST; k++) other[k] = 1;
        if (b->n > 1) longest(at, c->log_below, b->n - 1, OUTPUT_PART, LONGEST, other);
        for (int k = 0; k < LONGEST; k++) others += OUTPUT_PART[k] * fmax(other[k] - 1, 1);
        all += weight;
        more_s += weight * b->step_s * less * others;
        for (size_t q = 0; q < STEADY_QUANTILES; q++) {
            double part;
            (void)steady_quantile(q, &part);
            if (!(at[q] > 1)) continue;
            for (int k = 0; k < LONGEST; k++)
                steady_histogram_add(h, b->step_s * (fmax(other[k], at[q]) - 1) / (at[q] - 1),
                                     weight * part * OUTPUT_PART[k]);
        }
    }
    return all > 0 ? more_s / all : 0;
}

static void see_latency(const struct chain *c, const struct steady_histogram *ttft, struct steady_histogram *h)
{
    enum { PARTS = 16 };
    double all = 0;
    steady_histogram_clear(h);
    for (size_t i = 1; i < c->knots; i++) all += (c->part[i] + (i == 1 ? c->part[0] : 0)) * c->batch[i].n;
    for (size_t q = 0; q < STEADY_BINS; q++) {
        if (!(ttft->weight[q] > 0)) continue;
        const double first_s = ttft->sums[q] / ttft->weight[q];
        for (size_t i = 1; i < c->knots; i++) {
            const struct batch *b = &c->batch[i];
            const double weight = (c->part[i] + (i == 1 ? c->part[0] : 0)) * b->n / all;
            if (weight > 1e-4) steady_histogram_add(h, first_s + b->decode_s, weight * ttft->weight[q]);
        }
    }
}

static void put_answer(const struct chain *c, const struct steady_histogram *ttft, const struct steady_histogram *tpot,
                       const struct steady_histogram *latency, struct steady_result *o)
{
    const struct steady_setup *s = c->s;
    const struct steady_lengths *l = s->lengths;
    double good = 1, steps = 0, seqs = 0;
    for (size_t i = 1; i < c->knots; i++) {
        seqs += c->part[i] * c->batch[i].n;
        steps += c->part[i] * c->batch[i].n * c->batch[i].step_s;
    }
    o->ttft_s = steady_histogram_spread(ttft);
    o->tpot_s = steady_histogram_spread(tpot);
    o->latency_s = steady_histogram_spread(latency);
    o->rate_per_s = c->rate_per_s * (double)s->replicas;
    o->step_s = l->steps > 0 ? steps / seqs : (double)NAN;
    o->input_tok_per_s = o->rate_per_s * (l->prompt_tokens + l->cached_tokens);
    o->output_tok_per_s = o->rate_per_s * l->output_tokens;
    if (!isnan(s->ttft_limit_s)) good *= steady_histogram_below(ttft, s->ttft_limit_s);
    if (!isnan(s->tpot_limit_s) && tpot->total > 0)
        good *= l->single_frac + (1 - l->single_frac) * steady_histogram_below(tpot, s->tpot_limit_s);
    o->good_frac = good;
    o->goodput_per_s = good * o->rate_per_s;
}

static void tell(struct chain *c, struct steady_result *o)
{
    struct steady_histogram ttft, tpot, latency;
    double busy_s = 0, all_s = 0, seqs = 0, decode_s = 0, wait = 0;
    for (size_t i = 0; i < c->knots; i++) {
        const struct batch *b = &c->batch[i];
        busy_s += c->part[i] * b->all_s;
        all_s += c->part[i] * (b->all_s + (i == 0 ? 1 / c->rate_per_s : 0));
        seqs += c->part[i] * b->n * b->all_s;
        decode_s += c->part[i] * b->n * b->decode_s;
    }
    see_first(c, &ttft);
    const double more_s = see_tokens(c, &tpot);
    see_latency(c, &ttft, &latency);
    put_answer(c, &ttft, &tpot, &latency, o);
    o->tpot_s.mean += more_s;
    o->batch = seqs / busy_s;
    o->decoding = decode_s / all_s;
    o->utilisation = busy_s / all_s;
    wait = fmax(c->rate_per_s * o->latency_s.mean - seqs / all_s, 0);
    o->waiting = wait;
}

/* First tokens of a batch of n, by the longest prompt in parts fine enough for a median: at so many seconds before its
 * own. */
static void add_first(struct chain *c, struct steady_histogram *h, double n, double before_s, double weight)
{
    enum { PARTS = 16 }; /* not a unit */
    double part[PARTS], prompt[PARTS];
    for (int i = 0; i < PARTS; i++) part[i] = 1. / PARTS;
    longest(c->s->lengths->prompt_at, c->log_below, n, part, PARTS, prompt);
    for (int i = 0; i < PARTS; i++) {
        mix_clear(&c->x);
        mix_prefill(&c->x, n, prompt[i], 0);
        steady_histogram_add(h, before_s + step_s(c), weight / PARTS);
    }
}

/* Clients where some of them are let into a batch, N by the longest prompt and answer among them where the cache binds.
 * When a batch ends its N ask again, behind the n - N that have waited: those whose place is within what the next one
 * takes are in it, the others wait for more. */
static void see_turns(struct chain *c, double n, const struct turns *x, struct steady_histogram *h)
{
    enum { PLACES = 16 };
    double all = 0, turn[TURNS] = {0};
    for (int i = 0; i < SPREADS; i++)
        for (int k = 0; k < SPREADS; k++)
            for (int q = 0; q < PLACES; q++) {
                const double place = n - x->n[i] * (1 - (q + .5) / PLACES),
                             w = part_of(i) * part_of(k) * x->n[i] / PLACES;
                const double turns = place <= x->n[k] ? 0 : 1 + floor((place - x->n[k]) / x->number);
                turn[(size_t)fmin(turns, TURNS - 1)] += w;
                all += w;
            }
    for (size_t i = 0; i < TURNS; i++)
        if (turn[i] > 0) add_first(c, h, c->batch[1].n, (double)i * x->seconds, turn[i] / all);
}

/* Their tokens: of the longest answer and of others no longer than it. Returns what the mean is above that of the
 * histogram. */
static double see_turned(const struct chain *c, const struct turns *x, struct steady_histogram *h)
{
    const double *at = c->s->lengths->output_at, less = inverse_more(c->s->lengths);
    double more_s = 0, all = 0;
    steady_histogram_clear(h);
    for (int i = 0; i < SPREADS; i++) {
        const double weight = part_of(i) * x->n[i];
        double several = 0, part;
        for (size_t q = 0; q < STEADY_QUANTILES; q++) {
            (void)steady_quantile(q, &part);
            if (at[q] > 1 && at[q] <= x->output[i]) several += part;
        }
        if (!(several > 0)) continue;
        all += weight;
        more_s += weight * less * x->step_s[i] * (x->output[i] - 1);
        steady_histogram_add(h, x->step_s[i], part_of(i)); /* the longest itself */
        for (size_t q = 0; q < STEADY_QUANTILES; q++) {
            (void)steady_quantile(q, &part);
            if (at[q] > 1 && at[q] <= x->output[i])
                steady_histogram_add(h, x->step_s[i] * (x->output[i] - 1) / (at[q] - 1),
                                     part_of(i) * (x->n[i] - 1) * part / several);
        }
    }
    return all > 0 ? more_s / all : 0;
}

/* Those answered together ask again together: batches of n, or of the most that fit, which wait for each other. All at
 * once: the same batches, one after another. */
static void tell_together(struct chain *c, double n, struct steady_result *o)
{
    const struct steady_setup *s = c->s;
    const bool closed = s->load == STEADY_CLOSED;
    struct steady_histogram ttft, tpot, latency;
    c->batch[1] = batch_of(c, fmin(n, c->most));
    const struct batch *b = &c->batch[1];
    const double batches = n / b->n;
    c->part[1] = 1;
    c->knots = 2;
    steady_histogram_clear(&ttft);
    struct turns x = {0};
    if (closed && batches < TURNS - 1) x = turns_of(c, b->n, fmin((double)s->max_seqs, n));
    const bool turned = x.number > 0 && x.number < n * (1 - 1e-3); /* not all of them always fit */
    if (turned)
        see_turns(c, n, &x, &ttft);
    else if (closed)
        add_first(c, &ttft, b->n, fmax(batches - 1, 0) * b->all_s, 1);
    for (double k = 0; k < ceil(batches) && !closed; k++)
        for (int i = 0; i < PROMPTS; i++)
            steady_histogram_add(&ttft, k * b->all_s + b->first_s[i], fmin(batches - k, 1) * PROMPT_PART[i]);
    const double more_s = turned ? see_turned(c, &x, &tpot) : see_tokens(c, &tpot);
    see_latency(c, &ttft, &latency);
    double span_s = closed ? fmax(batches * b->all_s, b->all_s + s->think_s) : batches * b->all_s;
    if (turned) span_s = fmax(n * x.seconds / x.number, x.seconds + s->think_s);
    c->rate_per_s = n / span_s;
    put_answer(c, &ttft, &tpot, &latency, o);
    o->tpot_s.mean += more_s;
    o->batch = b->n;
    o->utilisation = fmin(batches * b->all_s / span_s, 1);
    o->decoding = b->n * b->decode_s / b->all_s * o->utilisation;
    o->waiting = closed ? n - b->n : (n - b->n) / 2;
    if (!closed) o->span_s = span_s;
}

enum err_code steady_static_solve(struct arena *a, const struct steady_setup *s, struct steady_result *o, struct err *e)
{
    struct chain c = {.s = s};
    const double replicas = (double)s->replicas;
    TRY(mix_open(a, s->plan, &c.x, e));
    double below = 0;
    for (size_t q = 0; q < STEADY_QUANTILES; q++) {
        double part;
        (void)steady_quantile(q, &part);
        below += part;
        c.log_below[q] = log(fmin(below, 1));
    }
    c.most = most_of(&c, &o->by);
    const double most_per_s = most_per_s_of(&c, c.most);
    o->saturation_rate_per_s = most_per_s * replicas;
    if (s->load != STEADY_OPEN) {
        const double n = fmax((s->load == STEADY_CLOSED ? s->concurrency : s->requests) / replicas, 1);
        o->saturated = n > c.most;
        tell_together(&c, n, o);
        return ERR_OK;
    } else {
        c.rate_per_s = s->rate_per_s / replicas;
        o->saturated = c.rate_per_s >= most_per_s;
        if (o->saturated) return ERR_OK;
    }
    while (c.knots < KNOTS && (c.knots < 2 || c.waits[c.knots - 1] < 8 * c.most)) {
        const double waits = knot_of(c.knots), n = fmin(fmax(waits, 1), c.most);
        c.waits[c.knots] = waits;
        c.batch[c.knots] = c.knots > 1 && !(n > c.batch[c.knots - 1].n) ? c.batch[c.knots - 1] : batch_of(&c, n);
        c.knots++;
    }
    TRY(find_parts(a, &c, e));
    tell(&c, o);
    return ERR_OK;
}
