/* steady_spread -- distributions of times; of steady_parts.h. */
#include <math.h>
#include <string.h>

#include "calc/serve/steady_parts.h"

static void later(struct steady_spread *x, double by_s)
{
    x->mean += by_s;
    x->p50 += by_s;
    x->p90 += by_s;
    x->p95 += by_s;
    x->p99 += by_s;
}

void steady_front(double prompt_tokens, struct steady_result *r)
{
    later(&r->ttft_s, engine_first_s(prompt_tokens));
    later(&r->latency_s, engine_first_s(prompt_tokens));
}

/* Sixteen equal bins between a power of two and the next, from 2^-30 s (a nanosecond) to 2^34 s: 4.4 % each on average.
 */
enum { LOWEST = -30, PER_OCTAVE = 16 };

void steady_histogram_clear(struct steady_histogram *h) { memset(h, 0, sizeof *h); }

/* Sixteenths of an octave are the first four bits of the mantissa. */
static size_t place_of(double value_s)
{
    const int64_t lowest = (int64_t)(LOWEST + 1023) * PER_OCTAVE; /* not a unit */
    if (!(value_s > 0)) return 0;
    const int64_t i = (int64_t)(steady_bits(value_s) >> 48) - lowest;
    return i < 0 ? 0 : i >= STEADY_BINS ? STEADY_BINS - 1 : (size_t)i;
}

void steady_histogram_add(struct steady_histogram *h, double value_s, double weight)
{
    if (!(weight > 0)) return;
    const size_t i = place_of(value_s);
    if (!(h->weight[i] > 0))
        h->low_s[i] = h->high_s[i] = value_s;
    else if (value_s < h->low_s[i])
        h->low_s[i] = value_s;
    else if (value_s > h->high_s[i])
        h->high_s[i] = value_s;
    h->weight[i] += weight;
    h->sums[i] += weight * value_s;
    h->sum += weight * value_s;
    h->total += weight;
}

/* The exponent of a bin's quantiles; 0: all of it is its largest time. */
static double bend_of(const struct steady_histogram *h, size_t i)
{
    const double mean_s = h->sums[i] / h->weight[i], least_s = 1e-9 * h->high_s[i]; /* rounding; not a unit */
    if (h->high_s[i] - h->low_s[i] <= least_s) return 0;
    return fmax(h->high_s[i] - mean_s, 0) / fmax(mean_s - h->low_s[i], least_s);
}

static double percentile(const struct steady_histogram *h, double p)
{
    double sum = 0;
    for (size_t i = 0; i < STEADY_BINS; i++) {
        const double w = h->weight[i];
        if (w > 0 && sum + w >= p * h->total * (1 - 1e-9)) /* rounding; half of them is half of them */
            return h->low_s[i] + (h->high_s[i] - h->low_s[i]) * pow(fmin((p * h->total - sum) / w, 1), bend_of(h, i));
        sum += w;
    }
    return (double)NAN;
}

struct steady_spread steady_histogram_spread(const struct steady_histogram *h)
{
    const double unknown = (double)NAN;
    if (!(h->total > 0)) return (struct steady_spread){unknown, unknown, unknown, unknown, unknown};
    return (struct steady_spread){h->sum / h->total, percentile(h, .5), percentile(h, .9), percentile(h, .95),
                                  percentile(h, .99)};
}

double steady_histogram_below(const struct steady_histogram *h, double value_s)
{
    const size_t i = place_of(value_s);
    double sum = 0;
    for (size_t k = 0; k < i; k++) sum += h->weight[k];
    if (h->weight[i] > 0) {
        const double bend = bend_of(h, i), width_s = h->high_s[i] - h->low_s[i];
        if (!(bend > 0))
            sum += value_s >= h->low_s[i] ? h->weight[i] : 0;
        else
            sum += h->weight[i] * pow(fmin(fmax((value_s - h->low_s[i]) / width_s, 0), 1), 1 / bend);
    }
    return h->total > 0 ? sum / h->total : (double)NAN;
}

static void slow(struct steady_spread *s, double by)
{
    s->mean *= by;
    s->p50 *= by;
    s->p90 *= by;
    s->p95 *= by;
    s->p99 *= by;
}

void steady_slow(struct steady_result *r, double slower)
{
    double *const rates[] = {&r->saturation_rate_per_s, &r->rate_per_s, &r->input_tok_per_s, &r->output_tok_per_s,
                             &r->goodput_per_s};
    double *const times[] = {&r->step_s, &r->move_s, &r->span_s};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) *rates[i] /= slower;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) *times[i] *= slower;
    slow(&r->ttft_s, slower);
    slow(&r->tpot_s, slower);
    slow(&r->latency_s, slower);
}
