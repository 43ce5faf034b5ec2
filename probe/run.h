/* run -- a session of measurements: the machine's ceilings, then jobs between ceilings, each result stored as it comes.
 *
 * Nothing here knows a prediction: results carry counted work and measured rates, nothing else. */
#ifndef RIDGE_PROBE_RUN_H
#define RIDGE_PROBE_RUN_H

#include "probe/plan.h"
#include "probe/session.h"
#include "probe/store.h"

enum { RUN_UNITS_MAX = 8, RUN_LEVELS = 3, RUN_LAUNCHES_MAX = 4, RUN_GATHERS_MAX = 8 };

/* One ceiling: what was reached, by which code. */
struct run_ceiling {
    char unit[32]; /* of a peak; "" of a rate */
    const char *kernel, *variant, *dtype;
    struct wire_shape shape;
    double per_s;      /* flops, bytes or starts; NAN not measured */
    double best_per_s; /* the same at any later time of this run, where it was better */
    double spread_frac;
    double footprint_bytes;
    const char *why; /* what is wrong where per_s is NAN */
    int tries;       /* further ones of a ceiling that was too noisy */
    size_t noisy_n;  /* codes that were too noisy for a number, of which one may be the best */
};

/* The roofline of the machine, of the threads that are asked for. */
struct run_ceilings {
    struct run_ceiling peak[RUN_UNITS_MAX];
    size_t peaks_n;
    struct run_ceiling read;                    /* from memory, reading alone */
    struct run_ceiling moved;                   /* from and to memory, the best of read, copy, triad and update */
    struct run_ceiling cache[RUN_LEVELS];       /* reading what stays in L1, L2, the last level */
    struct run_ceiling gather[RUN_GATHERS_MAX]; /* from memory, pieces in no order, each of another size */
    size_t gathers_n;
    struct run_ceiling launch[RUN_LAUNCHES_MAX]; /* starting work, one by each code */
    size_t launches_n;
};

struct run_settings {
    const char *worker;     /* path */
    const sigset_t *before; /* of hold_begin */
    double deadline_s;      /* of the sampling of one job */
    double ceiling_s;       /* of the sampling of one ceiling; 0: a quarter of a second */
    bool hot;               /* no job is cold: ceilings of memory are not measured */
    bool cold;              /* no job is hot: where time is short those of caches are not */
    bool launches;          /* what a start costs too, and reading in pieces of 32 KiB, whether a job does or not */
    bool dram_bytes;        /* count the bytes that memory moves, after the timing and apart from it */
    bool lists;             /* nothing is measured: a device that can run nothing is described all the same */
    double patience_s;      /* beyond that, until a worker counts as hung */
    double noise_frac;      /* spread that is quiet */
    int64_t least, seed;
    /* Moments of clock_now_s, 0 never: what is not there then is given up, a ceiling and the others left out (but
     * one that a job needs and that has no number yet), a job. */
    double ceilings_until_s, until_s;
    int64_t threads; /* make a call together; 0 as 1; WIRE_ALL_THREADS: as many as there are */
};

struct run {
    struct arena *arena;
    struct run_settings set;
    struct session *session;  /* NULL: to be started for the next job */
    struct session *counting; /* another worker, which counts and times nothing; NULL the same */
    struct wire_device device;
    struct run_ceilings ceilings;
    struct store *store; /* NULL: results are not kept */
    struct result_origin origin;
    size_t stored, not_stored;
    struct err store_err;        /* the first failure of the store */
    const struct plan_job *last; /* the job measured last, NULL none, and its footprint */
    double last_bytes;
    double share_s, share_until_s; /* of the codes that are measured now; 0: no end of their own */
    size_t untried;                /* codes of ceilings that there was no time for */
    size_t failed_n, garbage_n; /* codes of ceilings that crashed, hung, answered no answer or a wrong one; no answer */
    const char *failed;         /* the first of them and why; NULL: none */
    const char *crash;          /* the last time that the worker ended by itself, and how; NULL: it did not */
    bool begun;                 /* a job */
    int choices;                /* of codes that read and move memory, after the first */
    bool stopped;               /* a held signal arrived, or set.until_s came: then it is late too */
    bool late;
    session_progress *progress;
    void *closure;
};

/* run_open -- start the worker and hear what it has. r->arena and r->set are filled in by the caller. Errors:
 * ERR_RANGE not so many threads; ERR_DEVICE the worker cannot be started or does not answer, or there is no kernel, or
 * none that can run here (unless set.lists); ERR_NOMEM. */
enum err_code run_open(struct run *r, struct err *e);

/* run_is_able -- whether the device can run any code of any kernel. */
bool run_is_able(const struct run *r);

/* run_measure_ceilings -- all of them, those of memory only for cold jobs; results go to the store. With
 * set.ceilings_until_s those that jobs may need: of caches where one may be hot, of moving behind the first that writes
 * enough for it to bind. Of codes for one ceiling those that a short look shows beaten are not sampled further.
 * r->stopped: not all were measured; r->untried: codes that set.ceilings_until_s left no time for, in the order of
 * variants the last ones. One that was too noisy is tried again before a job that needs it, twice at most. Errors:
 * ERR_NOMEM. */
enum err_code run_measure_ceilings(struct run *r, struct err *e);

/* run_refuses -- whether the worker refuses a job at once, for its shape or its memory: *why, else NULL. A worker that
 * does not answer within a fraction of a second does not refuse; it is replaced. Errors: ERR_NOMEM. */
enum err_code run_refuses(struct run *r, const struct plan_job *job, bool cold, const char **why, struct err *e);

/* run_job -- measure one job in spells between measurements of its ceilings (probe/run_spells.h), judge it, have bytes
 * of memory counted where that is set and the result is right, and store it. A cold one above what memory is said to do
 * is stored as that, and measured once more after the codes that read memory were chosen anew. A worker that crashed or
 * hung is replaced for the next. r->stopped: there is no result. Errors: ERR_NOMEM. */
enum err_code run_job(struct run *r, const struct plan_job *job, bool cold, struct result *out, struct err *e);

/* run_counts -- what a call of a job computes, reads and writes, as its worker counts it; NAN: it does not say so at
 * once, and is replaced where it says nothing. */
struct run_count {
    double flops, bytes;
};
struct run_count run_counts(struct run *r, const struct plan_job *job);

/* run_close -- end the worker. */
void run_close(struct run *r);

/* run_peak -- the peak of a unit, flops/s; NAN not known. run_hot_rate -- bytes/s of the cache that holds a footprint:
 * the next faster one up to twice that one's size; NAN beyond the caches. */
double run_peak(const struct run_ceilings *c, const char *unit);
double run_hot_rate(const struct run *r, double footprint_bytes);

/* run_piece_bytes -- of a ceiling that reads in pieces. */
double run_piece_bytes(const struct run_ceiling *c);

/* run_now -- the time of day in UTC, "2026-11-30T00:10:39Z". Errors: ERR_NOMEM. */
enum err_code run_now(struct arena *a, const char **out, struct err *e);

#endif
