/* sample -- what repeated timings say: their median and spread, whether there are enough, whether they can be trusted.
 *
 * Timings are skewed: nothing makes a call faster than the machine, much makes it slower. And they follow one another:
 * what disturbs a machine outlasts a sample. So everything is ranks, and samples that are alike count as fewer: spread
 * = 1.4826 * median |x - median| / median   the standard deviation of normals with that median deviation like   = 1 + 2
 * * sum over lags of the correlation of sign(x - median)   samples that say as much as one alone error  = max |x(p) -
 * median| / (2 * median), p = 1/2 -+ sqrt(like / n)   relative standard error of the median drift  = |median of the
 * first half - median of the second| / median x(p) is the part p of the sorted samples. A median is wrong by as much as
 * the number of samples below the true one is not n/2; that number has the variance like * n / 4, so the two x(p) hold
 * the true median in 95 of 100 series, whatever the samples are distributed like: of two speeds in turn, where no
 * formula of a spread holds, they are both speeds. Sources: Rousseeuw and Croux, JASA 88 (1993) for the factor of the
 * spread; Woodruff, JASA 47 (1952) for the interval of a median; Sen, J. Multivariate Analysis 2 (1972) for it from
 * dependent samples. */
#ifndef RIDGE_PROBE_SAMPLE_H
#define RIDGE_PROBE_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>

enum { SAMPLE_MAX = 4096 };

/* When to stop. */
struct sample_rule {
    size_t least;      /* samples before anything stops but the deadline, >= 2 */
    double noise_frac; /* spread that is quiet */
    double deadline_s; /* of all sampling, discards included */
};

enum sample_stop {
    SAMPLE_GOING,
    SAMPLE_QUIET,    /* spread < noise_frac */
    SAMPLE_PLATEAU,  /* the spread is the machine's: it no longer changes, and the error < noise_frac */
    SAMPLE_DEADLINE, /* time is up */
    SAMPLE_FULL,     /* SAMPLE_MAX samples */
    SAMPLE_STOPS_N
};

/* sample_stop_name -- "quiet"; sample_stop_find -- back, false for another text. */
const char *sample_stop_name(enum sample_stop stop);
bool sample_stop_find(const char *name, enum sample_stop *out);

struct sample_summary {
    size_t n;
    double least_s, q1_s, median_s, q3_s, most_s;
    double spread_frac, error_frac, drift_frac;
    double like; /* samples that say as much as one alone, 1 to n */
};

/* sample_summarise -- of n timings in the order they were taken; n = 0 gives NANs. Quartiles interpolate (type 7 of
 * Hyndman and Fan, 1996). Correlations are summed in pairs of lags as long as these are above 0, each pair at most the
 * one before it, up to lags of n/2 (Geyer, Statistical Science 7 (1992): the initial monotone sequence); beyond them
 * they are noise. room[n] is overwritten. Cost: O(n log n + n * lags). */
struct sample_summary sample_summarise(const double *time_s, size_t n, double *room);

/* sample_decide -- whether n timings are enough after elapsed_s. A plateau needs 4 * least samples, spreads of the
 * first half and of all that agree within a tenth, and an error under noise_frac. room[n]. Cost: as sample_summarise.
 */
enum sample_stop sample_decide(const struct sample_rule *rule, const double *time_s, size_t n, double elapsed_s,
                               double *room);

/* The verdict on a result: a number is given only when the machine was quiet enough for it. */
enum { SAMPLE_LEAST = 10 };

/* sample_doubt -- NULL when the summary can be trusted, else why not, as a piece of a sentence: fewer than SAMPLE_LEAST
 * samples, error over 2 %, drift over 5 %. */
const char *sample_doubt(const struct sample_summary *s);

#endif
