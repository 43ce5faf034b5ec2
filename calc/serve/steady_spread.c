/* steady_spread -- distributions of times; of steady_parts.h. */
#include <math.h>
#include <string.h>

#include "calc/serve/steady_parts.h"

/* Bins by logarithm, from 2^-30 s (a nanosecond) to 2^34 s: 16 to a factor of two, 4.4 % each. */
enum { LOWEST = -30, PER_OCTAVE = 16 };

void steady_histogram_clear(struct steady_histogram *h) { memset(h, 0, sizeof *h); }

static double place_of(double value_s)
{
    const double at = value_s > 0 ? (log2(value_s) - LOWEST) * PER_OCTAVE : 0;
    return fmin(fmax(at, 0), STEADY_BINS - 1);
}

void steady_histogram_add(struct steady_histogram *h, double value_s, double weight)
{
    h->weight[(size_t)place_of(value_s)] += weight;
    h->sum += weight * value_s;
    h->total += weight;
}

static double value_of(double place) { return exp2(place / PER_OCTAVE + LOWEST); }

static double percentile(const struct steady_histogram *h, double p)
{
    double sum = 0;
    for (size_t i = 0; i < STEADY_BINS; i++) {
        const double w = h->weight[i];
        if (w > 0 && sum + w >= p * h->total) return value_of((double)i + (p * h->total - sum) / w);
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
