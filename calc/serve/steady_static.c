/* steady_static -- batches of whoever waits, all of which run until the longest is done; of steady_parts.h. */
#include <math.h>

#include "calc/serve/steady_batches.h"

static double part_of(int spread)
{
    return STEADY_BATCH_PROMPT_PART[spread / STEADY_BATCH_ANSWERS] *
           STEADY_BATCH_ANSWER_PART[spread % STEADY_BATCH_ANSWERS];
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

/* ---- how many wait when a batch ends ---- */

static double knot_of(size_t i) { return i <= 8 ? (double)i : floor(8 * exp2((double)(i - 8) / 2)); }

/* Weight at a number: to the knots around it, so that the mean stays. */
static void put(const struct steady_batches *c, double *part, double n, double weight)
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
static void arrivals(const struct steady_batches *c, double *part, double left, double mean, double weight)
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

static enum err_code find_parts(struct arena *a, struct steady_batches *c, struct err *e)
{
    enum { ROUNDS = 200 };
    double *next = arena_array(a, STEADY_BATCH_KNOTS * STEADY_BATCH_KNOTS, sizeof *next);
    if (!next) return err_nomem(e);
    for (size_t i = 0; i < STEADY_BATCH_KNOTS * STEADY_BATCH_KNOTS; i++) next[i] = 0;
    for (size_t i = 0; i < c->knots; i++)
        for (int k = 0; k < STEADY_BATCH_SPREADS; k++)
            arrivals(c, next + i * STEADY_BATCH_KNOTS, fmax(c->waits[i] - c->batch[i].n, 0),
                     c->rate_per_s * c->batch[i].spread_s[k], part_of(k));
    for (size_t i = 0; i < c->knots; i++) c->part[i] = 1. / (double)c->knots;
    for (int round = 0; round < ROUNDS; round++) {
        double new[STEADY_BATCH_KNOTS] = {0}, sum = 0, change = 0;
        for (size_t i = 0; i < c->knots; i++)
            for (size_t k = 0; k < c->knots; k++) new[k] += c->part[i] * next[i * STEADY_BATCH_KNOTS + k];
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
static double prefill_at(const struct steady_batches *c, double n, int prompt)
{
    size_t i = 1;
    n = fmin(fmax(n, 1), c->most);
    while (i + 2 < c->knots && c->batch[i + 1].n < n) i++;
    const struct steady_batch *x = &c->batch[i], *y = &c->batch[i + 1];
    const double low = x->first_s[prompt], high = y->first_s[prompt];
    return y->n > x->n ? low + (high - low) * (n - x->n) / (y->n - x->n) : low;
}

static void see_first(struct steady_batches *c, struct steady_histogram *h)
{
    enum { PLACES = 10, ALONE = 32 };
    const struct steady_batch *full = &c->batch[c->knots - 1];
    steady_histogram_clear(h);
    for (int i = 0; i < ALONE; i++) { /* finds nobody */
        mix_clear(&c->x);
        mix_prefill(&c->x, 1, value_at(c->s->lengths->prompt_at, (i + .5) / ALONE), 0);
        steady_histogram_add(h, steady_batches_step_s(c), c->part[0] / ALONE);
    }
    for (size_t i = 0; i < c->knots; i++)
        for (int k = 0; k < STEADY_BATCH_SPREADS; k++) {
            const double all_s = c->batch[i].spread_s[k], left = fmax(c->waits[i] - c->batch[i].n, 0);
            const double come = c->rate_per_s * all_s, weight = c->part[i] * come * part_of(k) / PLACES;
            for (int p = 0; p < PLACES && weight > 1e-9; p++) {
                const double at = (p + .5) / PLACES, before = left + come * at;
                const double batches = floor(before / c->most), n = left + come + 1;
                for (int q = 0; q < STEADY_BATCH_PROMPTS; q++)
                    steady_histogram_add(
                        h, (1 - at) * all_s + batches * full->all_s + prefill_at(c, n - batches * c->most, q),
                        weight * STEADY_BATCH_PROMPT_PART[q]);
            }
        }
}

/* All run as long as the longest, (longest - 1) steps over the own output - 1. Returns what the mean is above that of
 * the histogram. */
static double see_tokens(const struct steady_batches *c, struct steady_histogram *h)
{
    const double *at = c->s->lengths->output_at, less = steady_batches_inverse_more(c->s->lengths);
    double more_s = 0, all = 0;
    steady_histogram_clear(h);
    for (size_t i = 1; i < c->knots; i++) {
        const struct steady_batch *b = &c->batch[i];
        const double weight = (c->part[i] + (i == 1 ? c->part[0] : 0)) * b->n;
        double other[STEADY_BATCH_ANSWERS];
        if (!(weight > 1e-6)) continue;
        double others = 0;
        for (int k = 0; k < STEADY_BATCH_ANSWERS; k++) other[k] = 1;
        if (b->n > 1)
            steady_batches_longest(at, c->log_below, b->n - 1, STEADY_BATCH_ANSWER_PART, STEADY_BATCH_ANSWERS, other);
        for (int k = 0; k < STEADY_BATCH_ANSWERS; k++) others += STEADY_BATCH_ANSWER_PART[k] * fmax(other[k] - 1, 1);
        all += weight;
        more_s += weight * b->step_s * less * others;
        for (size_t q = 0; q < STEADY_QUANTILES; q++) {
            double part;
            (void)steady_quantile(q, &part);
            if (!(at[q] > 1)) continue;
            for (int k = 0; k < STEADY_BATCH_ANSWERS; k++)
                steady_histogram_add(h, b->step_s * (fmax(other[k], at[q]) - 1) / (at[q] - 1),
                                     weight * part * STEADY_BATCH_ANSWER_PART[k]);
        }
    }
    return all > 0 ? more_s / all : 0;
}

static void see_latency(const struct steady_batches *c, const struct steady_histogram *ttft, struct steady_histogram *h)
{
    enum { PARTS = 16 };
    double all = 0;
    steady_histogram_clear(h);
    for (size_t i = 1; i < c->knots; i++) all += (c->part[i] + (i == 1 ? c->part[0] : 0)) * c->batch[i].n;
    for (size_t q = 0; q < STEADY_BINS; q++) {
        if (!(ttft->weight[q] > 0)) continue;
        const double first_s = ttft->sums[q] / ttft->weight[q];
        for (size_t i = 1; i < c->knots; i++) {
            const struct steady_batch *b = &c->batch[i];
            const double weight = (c->part[i] + (i == 1 ? c->part[0] : 0)) * b->n / all;
            if (weight > 1e-4) steady_histogram_add(h, first_s + b->decode_s, weight * ttft->weight[q]);
        }
    }
}

static void put_answer(const struct steady_batches *c, const struct steady_histogram *ttft,
                       const struct steady_histogram *tpot, const struct steady_histogram *latency,
                       struct steady_result *o)
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

static void tell(struct steady_batches *c, struct steady_result *o)
{
    struct steady_histogram ttft, tpot, latency;
    double busy_s = 0, all_s = 0, seqs = 0, decode_s = 0, wait = 0;
    for (size_t i = 0; i < c->knots; i++) {
        const struct steady_batch *b = &c->batch[i];
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

/* Those answered together ask again together: batches of n, or of the most that fit, which wait for each other. All at
 * once: the same batches, one after another. */
static void tell_together(struct steady_batches *c, double n, struct steady_result *o)
{
    const struct steady_setup *s = c->s;
    const bool closed = s->load == STEADY_CLOSED;
    struct steady_histogram ttft, tpot, latency;
    c->batch[1] = steady_batches_of(c, fmin(n, c->most));
    const struct steady_batch *b = &c->batch[1];
    const double batches = n / b->n;
    c->part[1] = 1;
    c->knots = 2;
    steady_histogram_clear(&ttft);
    struct steady_turns x = {0};
    if (closed && batches < STEADY_TURNS_MAX - 1) steady_turns_of(c, b->n, fmin((double)s->max_seqs, n), &x);
    const bool turned = x.number > 0 && x.number < n * (1 - 1e-3); /* not all of them always fit */
    if (turned)
        steady_turns_first(c, n, &x, &ttft);
    else if (closed)
        steady_turns_add_first(c, &ttft, b->n, fmax(batches - 1, 0) * b->all_s);
    for (double k = 0; k < ceil(batches) && !closed; k++)
        for (int i = 0; i < STEADY_BATCH_PROMPTS; i++)
            steady_histogram_add(&ttft, k * b->all_s + b->first_s[i],
                                 fmin(batches - k, 1) * STEADY_BATCH_PROMPT_PART[i]);
    const double more_s = turned ? steady_turns_tokens(c, &x, &tpot) : see_tokens(c, &tpot);
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
    struct steady_batches c = {.s = s};
    const double replicas = (double)s->replicas;
    TRY(mix_open(a, s->plan, &c.x, e));
    double below = 0;
    for (size_t q = 0; q < STEADY_QUANTILES; q++) {
        double part;
        (void)steady_quantile(q, &part);
        below += part;
        c.log_below[q] = log(fmin(below, 1));
    }
    c.most = steady_batches_most(&c, &o->by);
    struct steady_turns x;
    steady_turns_of(&c, c.most, (double)s->max_seqs, &x);
    const double most_per_s = x.number / x.seconds; /* renewal and reward: longer ones mean fewer */
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
    while (c.knots < STEADY_BATCH_KNOTS && (c.knots < 2 || c.waits[c.knots - 1] < 8 * c.most)) {
        const double waits = knot_of(c.knots), n = fmin(fmax(waits, 1), c.most);
        c.waits[c.knots] = waits;
        c.batch[c.knots] =
            c.knots > 1 && !(n > c.batch[c.knots - 1].n) ? c.batch[c.knots - 1] : steady_batches_of(&c, n);
        c.knots++;
    }
    TRY(find_parts(a, &c, e));
    tell(&c, o);
    return ERR_OK;
}
