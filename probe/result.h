/* result -- what is kept of one measurement: what was asked, what came of it, around which ceilings, by whom. */
#ifndef RIDGE_PROBE_RESULT_H
#define RIDGE_PROBE_RESULT_H

#include "probe/sample.h"
#include "probe/wire.h"

enum result_outcome {
    RESULT_MEASURED,
    RESULT_NOISY,    /* right, but the machine was too noisy for a number: the samples are kept, no median is given */
    RESULT_WRONG,    /* not what the reference says */
    RESULT_REFUSED,  /* cannot run here */
    RESULT_ABOVE,    /* faster than the machine can be: a fault of the harness, no number */
    RESULT_CRASHED,  /* the worker ended */
    RESULT_HUNG,     /* the worker did not answer in time */
    RESULT_GARBAGE,  /* the worker wrote no answer */
    RESULT_IMPORTED, /* from a file of rows that others measured */
    RESULT_OUTCOMES_N
};
const char *result_outcome_name(enum result_outcome outcome);
bool result_outcome_find(const char *name, enum result_outcome *out);

/* Rates that nothing on the machine exceeds, measured; NAN where not. Those of memory are for cold results; of a hot
 * one read is that of an array as large as its operands, which stays where they do, and moved is not known. */
struct result_ceilings {
    double peak_flops_per_s;   /* of the unit of the variant */
    double read_bytes_per_s;   /* reading alone */
    double moved_bytes_per_s;  /* reading and writing, the best of all patterns */
    double gather_bytes_per_s; /* reading pieces as large as those of a result that reads in no order; NAN of others */
};

/* Where a run comes from; the same for all its results. */
struct result_origin {
    const char *device, *identity; /* name; JSON object */
    const char *tool, *command;    /* "ridge v0.1-7-gabc"; the command line */
    const char *started;           /* "2026-11-30T00:10:39Z" */
};

/* One result. Unknown numbers are NAN, unknown texts "". */
struct result {
    int64_t id; /* in the store; 0: not stored */
    struct result_origin origin;
    const char *made; /* time of day */
    const char *kernel, *variant, *dtype, *unit, *row_kind;
    bool cold;
    struct wire_shape shape;
    enum result_outcome outcome;
    const char *reason;
    enum sample_stop stop;
    int64_t seed, calls, copies, checked;
    double error_frac, tolerance_frac;
    double flops, vector_flops, read_bytes, written_bytes, footprint_bytes;
    double piece_bytes; /* of what it reads in pieces that lie in no order; 0 or NAN: it does not */
    /* what memory read and wrote for a call by the device's counters, in a run that was not timed; "" or why not */
    double dram_read_bytes, dram_write_bytes;
    const char *dram_reason;
    struct result_ceilings before, after;
    struct sample_summary summary; /* of times_s */
    double *times_s, *discards_s;
    size_t times_n, discards_n;
    const char *ceiling; /* what it measures besides itself: "compute" "read" "bandwidth" "gather", "" nothing */
    const char *cells;   /* a JSON object of texts: of an imported row its cells that are no parameter, else what the
                            worker told of the conditions; "" or NULL: none */
};

/* result_unknown -- one of which nothing is known: every number NAN, every text "", no samples. */
struct result result_unknown(void);

/* result_fill -- what a worker answered, into r, whose request is filled in: summary and outcome follow from the
 * samples (sample_doubt): more work than any device does in their time (1e18 flops/s, 1e15 bytes/s) is RESULT_ABOVE,
 * and what has no number has a reason. Errors: ERR_NOMEM. */
enum err_code result_fill(struct arena *a, const struct wire_result *w, struct result *r, struct err *e);

/* result_count -- what a worker answered that was asked to count, into r: bytes, or dram_reason. */
void result_count(const struct wire_result *w, struct result *r);

/* result_join -- r from several measurements of one call, each between ceilings of its own: of those that count the
 * samples, one behind the other, and the medians of the ceilings before and of those behind; the samples of the others
 * are discards; of both the first SAMPLE_MAX. Summary and outcome follow as in result_fill. n >= 1, one counts at
 * least. Errors: ERR_NOMEM. */
struct result_spell {
    struct result of;
    bool counts;
};
enum err_code result_join(struct arena *a, const struct result_spell *spells, size_t n, struct result *r,
                          struct err *e);

/* result_weighs -- whether the peak, and the rates of memory or of a cache, have a part in a result: work at one of
 * them takes `part` of the bound or more. Both where the bound is not known. */
void result_weighs(const struct result *r, double part, bool *peak, bool *bytes);

/* result_floor -- of a hot result: where reading an array of its size was too slow to bound it (one that does not
 * wholly stay in a cache is kept in part, which part depends on the order), the rate of that cache is the bound. */
void result_floor(struct result *r, double cache_bytes_per_s);

/* result_judge -- hold a measured result against its ceilings: above 1.03 of one it is RESULT_ABOVE; ceilings before
 * and after that differ by more than a tenth make it RESULT_NOISY. Only RESULT_MEASURED is changed. Errors: ERR_NOMEM.
 */
enum err_code result_judge(struct arena *a, struct result *r, struct err *e);

/* result_time_s -- the median of a measured or imported result, NAN of any other: no number where there is none. */
double result_time_s(const struct result *r);

/* Beyond any one device, whatever its own ceilings are said to be: a hundred times the fastest of 2025. */
#define RESULT_FLOPS_PER_S_MAX 1e18
#define RESULT_BYTES_PER_S_MAX 1e15

/* result_check_rates -- work and rates that no machine has: negative, infinite, or beyond limits far above those of any
 * device; a ceiling of no work. Errors: ERR_INPUT with the number and what it is of. */
enum err_code result_check_rates(const struct result *r, struct err *e);

/* result_ceilings_of -- what a result is held against, wherever it is: of each rate the larger of before and after, the
 * one that is known, or NAN. What disturbs the measurement of a ceiling only ever makes it lower, so of two the higher
 * is nearer to what the machine could do. */
struct result_ceilings result_ceilings_of(const struct result *r);

/* result_gather -- the rate at which a result's pieces are read at best, where it is known and below that of reading;
 * else NAN. */
double result_gather(const struct result *r);

/* result_bound_s -- the least time of work on result_ceilings_of: max(flops/peak, read bytes/read rate, all bytes/best
 * rate); what is read in pieces has the rate of these. NAN when there is work whose ceiling is not known (moved
 * excepted where reading bounds it). read_bytes NAN: not known. */
double result_bound_s(const struct result *r, double flops, double read_bytes, double moved_bytes);

/* result_lacks_move -- whether a cold result's bound hangs on a move rate that was not measured: it is at least that of
 * reading, so that the bound lies between result_bound_s and all bytes at the read rate; true where these are more than
 * the 3 % apart that ceilings are known to. What reads memory is then bounded too low by result_bound_s, and has no
 * prediction. */
bool result_lacks_move(const struct result *r, double flops, double read_bytes, double moved_bytes);

#endif
