#include "probe/sample.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *const STOPS[SAMPLE_STOPS_N] = {[SAMPLE_GOING] = "going",
                                                  [SAMPLE_QUIET] = "quiet",
                                                  [SAMPLE_PLATEAU] = "plateau",
                                                  [SAMPLE_DEADLINE] = "deadline",
                                                  [SAMPLE_FULL] = "full"};

const char *sample_stop_name(enum sample_stop stop) { return STOPS[stop]; }

bool sample_stop_find(const char *name, enum sample_stop *out)
{
    for (size_t i = 0; i < SAMPLE_STOPS_N; i++)
        if (strcmp(STOPS[i], name) == 0) {
            *out = (enum sample_stop)i;
            return true;
        }
    return false;
}

static int ascending(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* The part p of n sorted values, n >= 1. */
static double quantile(const double *sorted, size_t n, double p)
{
    const double at = p * (double)(n - 1), below = floor(at);
    const size_t i = (size_t)below;
    return i + 1 < n ? sorted[i] + (at - below) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

static double median_of(const double *v, size_t n, double *room)
{
    memcpy(room, v, n * sizeof *v);
    qsort(room, n, sizeof *room, ascending);
    return quantile(room, n, 0.5);
}

/* Samples that say as much as one alone: 1 + 2 * sum of the correlations of signs about the median, in pairs of lags
 * that are above 0 and fall. */
static double alike(const double *time_s, size_t n, double median_s)
{
    signed char sign[SAMPLE_MAX];
    double last = 2, sum = -1;
    int64_t power = 0;
    if (n > SAMPLE_MAX) n = SAMPLE_MAX;
    for (size_t i = 0; i < n; i++) {
        sign[i] = (signed char)((time_s[i] > median_s) - (time_s[i] < median_s));
        power += sign[i] * sign[i];
    }
    for (size_t lag = 0; power && lag + 1 <= n / 2 && last > 0; lag += 2) {
        int64_t pair = 0;
        for (size_t i = 0; i + lag < n; i++) pair += sign[i] * sign[i + lag];
        for (size_t i = 0; i + lag + 1 < n; i++) pair += sign[i] * sign[i + lag + 1];
        last = fmin(last, (double)pair / (double)power);
        sum += 2 * fmax(last, 0);
    }
    return fmin(fmax(sum, 1), (double)n);
}

struct sample_summary sample_summarise(const double *time_s, size_t n, double *room)
{
    const double unknown = (double)NAN;
    struct sample_summary s = {n, unknown, unknown, unknown, unknown, unknown, unknown, unknown, unknown, unknown};
    if (n == 0) return s;
    s.median_s = median_of(time_s, n, room);
    s.least_s = room[0];
    s.most_s = room[n - 1];
    s.q1_s = quantile(room, n, 0.25);
    s.q3_s = quantile(room, n, 0.75);
    s.like = alike(time_s, n, s.median_s);
    const double off = fmin(sqrt(s.like / (double)n), 0.5);
    const double low_s = quantile(room, n, 0.5 - off), high_s = quantile(room, n, 0.5 + off);
    s.error_frac = fmax(s.median_s - low_s, high_s - s.median_s) / (2 * s.median_s);
    for (size_t i = 0; i < n; i++) room[i] = fabs(time_s[i] - s.median_s);
    qsort(room, n, sizeof *room, ascending);
    s.spread_frac = 1.4826 * quantile(room, n, 0.5) / s.median_s;
    const size_t half = n / 2;
    s.drift_frac =
        half ? fabs(median_of(time_s, half, room) - median_of(time_s + (n - half), half, room)) / s.median_s : unknown;
    return s;
}

enum sample_stop sample_decide(const struct sample_rule *rule, const double *time_s, size_t n, double elapsed_s,
                               double *room)
{
    if (n >= rule->least) {
        const struct sample_summary s = sample_summarise(time_s, n, room);
        if (s.spread_frac < rule->noise_frac) return SAMPLE_QUIET;
        if (n >= 4 * rule->least && s.error_frac < rule->noise_frac) {
            const struct sample_summary first = sample_summarise(time_s, n / 2, room);
            if (fabs(first.spread_frac - s.spread_frac) < 0.1 * s.spread_frac) return SAMPLE_PLATEAU;
        }
    }
    if (elapsed_s >= rule->deadline_s) return SAMPLE_DEADLINE;
    return n >= SAMPLE_MAX ? SAMPLE_FULL : SAMPLE_GOING;
}

const char *sample_doubt(const struct sample_summary *s)
{
    if (s->n < SAMPLE_LEAST) return "fewer than 10 undisturbed samples";
    if (!(s->error_frac <= 0.02)) return "the median is uncertain by more than 2 %";
    if (!(s->drift_frac <= 0.05)) return "the second half of the samples differs from the first by more than 5 %";
    return NULL;
}
