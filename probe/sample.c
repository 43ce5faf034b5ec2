#include "probe/sample.h"

#include <math.h>
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

struct sample_summary sample_summarise(const double *time_s, size_t n, double *room)
{
    const double unknown = (double)NAN;
    struct sample_summary s = {n, unknown, unknown, unknown, unknown, unknown, unknown, unknown, unknown};
    if (n == 0) return s;
    s.median_s = median_of(time_s, n, room);
    s.least_s = room[0];
    s.most_s = room[n - 1];
    s.q1_s = quantile(room, n, 0.25);
    s.q3_s = quantile(room, n, 0.75);
    for (size_t i = 0; i < n; i++) room[i] = fabs(time_s[i] - s.median_s);
    qsort(room, n, sizeof *room, ascending);
    s.spread_frac = 1.4826 * quantile(room, n, 0.5) / s.median_s;
    s.error_frac = 1.2533 * s.spread_frac / sqrt((double)n);
    const size_t half = n / 2;
    s.drift_frac =
        half ? fabs(median_of(time_s, half, room) - median_of(time_s + (n - half), half, room)) / s.median_s : unknown;
    return s;
}

/* Standard error of the median, relative, from medians of blocks of samples that follow one another: what disturbs a
 * machine lasts longer than a sample, and samples that are alike say less than as many independent ones. */
static double block_error(const double *time_s, size_t n, double median_s, double *room)
{
    enum { BLOCKS = 10 };
    double sum = 0, squares = 0;
    for (size_t i = 0; i < BLOCKS; i++) {
        const size_t from = n * i / BLOCKS, end = n * (i + 1) / BLOCKS;
        const double off = median_of(time_s + from, end - from, room) / median_s - 1;
        sum += off;
        squares += off * off;
    }
    const double variance = (squares - sum * sum / BLOCKS) / (BLOCKS - 1);
    return sqrt(fmax(variance, 0) / BLOCKS);
}

enum sample_stop sample_decide(const struct sample_rule *rule, const double *time_s, size_t n, double elapsed_s,
                               double *room)
{
    if (n >= rule->least) {
        const struct sample_summary s = sample_summarise(time_s, n, room);
        if (s.spread_frac < rule->noise_frac) return SAMPLE_QUIET;
        if (n >= 4 * rule->least && s.error_frac < rule->noise_frac) {
            const struct sample_summary first = sample_summarise(time_s, n / 2, room);
            const bool settled = fabs(first.spread_frac - s.spread_frac) < 0.1 * s.spread_frac;
            if (settled && block_error(time_s, n, s.median_s, room) < rule->noise_frac) return SAMPLE_PLATEAU;
        }
    }
    if (elapsed_s >= rule->deadline_s) return SAMPLE_DEADLINE;
    return n >= SAMPLE_MAX ? SAMPLE_FULL : SAMPLE_GOING;
}

const char *sample_doubt(const struct sample_summary *s)
{
    if (s->n < SAMPLE_LEAST) return "fewer than 10 undisturbed samples";
    if (!(s->error_frac <= 0.01)) return "the median is uncertain by more than 1 %";
    if (!(s->drift_frac <= 0.05)) return "the second half of the samples differs from the first by more than 5 %";
    return NULL;
}
