/* steady_spread -- distributions of times; of steady_parts.h. */
#include <math.h>
#include <string.h>

#include "calc/serve/steady_parts.h"

/* Sixteen equal bins between a power of two and the next, from 2^-30 s (a nanosecond) to 2^34 s: 4.4 % each on average.
 */
enum { LOWEST = -30, PER_OCTAVE = 16 };

void steady_histogram_clear(struct steady_histogram *h) { memset(h, 0, sizeof *h); }

static double place_of(double value_s)
{
    int e;
    const double part = frexp(value_s, &e); /* value = part * 2^e, part in [1/2, 1) */
    if (!(value_s > 0) || e - 1 < LOWEST) return 0;
    return fmin((double)(e - 1 - LOWEST) * PER_OCTAVE + (2 * part - 1) * PER_OCTAVE, STEADY_BINS - 1);
}

void steady_histogram_add(struct steady_histogram *h, double value_s, double weight)
{
    h->weight[(size_t)place_of(value_s)] += weight;
    h->sum += weight * value_s;
    h->total += weight;
}

double steady_histogram_value(double place)
{
    const double octave = floor(place / PER_OCTAVE);
    return ldexp(1 + place / PER_OCTAVE - octave, (int)octave + LOWEST);
}

static double percentile(const struct steady_histogram *h, double p)
{
    double sum = 0;
    for (size_t i = 0; i < STEADY_BINS; i++) {
        const double w = h->weight[i];
        if (w > 0 && sum + w >= p * h->total) return steady_histogram_value((double)i + (p * h->total - sum) / w);
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
    const double place = place_of(value_s);
    double sum = 0;
    for (size_t i = 0; i < (size_t)place; i++) sum += h->weight[i];
    return h->total > 0 ? (sum + h->weight[(size_t)place] * (place - floor(place))) / h->total : (double)NAN;
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
    double *const times[] = {&r->step_s, &r->transfer_s, &r->span_s};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) *rates[i] /= slower;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) *times[i] *= slower;
    slow(&r->ttft_s, slower);
    slow(&r->tpot_s, slower);
    slow(&r->latency_s, slower);
}
