/* sample -- what repeated timings say: their median and spread, whether there are enough, whether they can be trusted.
 *
 * Timings are skewed: nothing makes a call faster than the machine, much makes it slower. So everything is ranks:
 *   spread = 1.4826 * median |x - median| / median   the standard deviation of normals with that median deviation
 *   error  = 1.2533 * spread / sqrt(n)               relative standard error of a median of normals
 *   drift  = |median of the first half - median of the second| / median
 * Sources: Rousseeuw and Croux, JASA 88 (1993) for the first factor; sqrt(pi/2) = 1.2533 is the asymptotic efficiency
 * of the median (any textbook). */
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
    SAMPLE_PLATEAU,  /* the spread is the machine's: it no longer changes, and both errors < noise_frac */
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
};

/* sample_summarise -- of n timings in the order they were taken; n = 0 gives NANs. Quartiles interpolate (type 7 of
 * Hyndman and Fan, 1996). room[n] is overwritten. Cost: O(n log n). */
struct sample_summary sample_summarise(const double *time_s, size_t n, double *room);

/* sample_decide -- whether n timings are enough after elapsed_s. A plateau needs 4 * least samples, spreads of the
 * first half and of all that agree within a tenth, and besides a standard error under noise_frac of the medians of ten
 * blocks of samples that follow one another, which do not count a slow moment as many independent samples (batch means:
 * Conway, Management Science 10 (1963)). room[n]. Cost: O(n log n). */
enum sample_stop sample_decide(const struct sample_rule *rule, const double *time_s, size_t n, double elapsed_s,
                               double *room);

/* The verdict on a result: a number is given only when the machine was quiet enough for it. */
enum { SAMPLE_LEAST = 10 };

/* sample_doubt -- NULL when the summary can be trusted, else why not, as a piece of a sentence: fewer than SAMPLE_LEAST
 * samples, error over 1 %, drift over 5 %. */
const char *sample_doubt(const struct sample_summary *s);

#endif
