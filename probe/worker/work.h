/* work -- one kernel at one shape, ready to be called: its buffers, the check against the reference, the timing.
 *
 * Calls are one thread's, or of a team that makes each together (kernels/split.h). Buffers of all copies lie in one
 * mapping, in huge pages where the system gives them; of a place with memory of its own, in one piece of that, and a
 * mirror of one copy here. */
#ifndef RIDGE_PROBE_WORKER_WORK_H
#define RIDGE_PROBE_WORKER_WORK_H

#include "kernels/split.h"
#include "probe/sample.h"
#include "probe/worker/place.h"
#include "probe/worker/team.h"

struct work_spec {
    const struct kern *kernel;
    const struct kern_variant *variant;
    struct kern_shape shape;
    bool cold;
    uint64_t seed;
    struct place *place; /* NULL: here */
    struct team *team;   /* NULL: one thread */
    double cache_bytes;  /* of the last level, all that the team has; 0: the machine's */
    bool flush;          /* cold operands may be flushed before a sample (probe/worker/flush.h) */
    struct spare *spare; /* NULL: memory is the system's each time */
};

/* Memory that work gave back, for the next: its pages are there already, which for copies of a cache of 300 MiB takes
 * seconds. One piece, the largest so far. */
struct spare {
    char *at; /* NULL: none */
    size_t bytes;
};
void spare_close(struct spare *s);

/* A piece of the output that is compared: block of buffer b, its reference values. */
struct work_block {
    size_t b, block, granule;
    const double *value;
};

struct work {
    struct work_spec spec;
    struct kern_buffer buffer[KERN_BUFFERS_MAX];
    size_t buffers_n;
    struct kern_call *calls; /* [copies] */
    struct kern_call here;   /* what the reference reads, and what is compared: the first of calls, or its mirror */
    size_t copies;
    const struct kern_split *split; /* of a team */
    struct kern_part *parts;        /* [copies][team_size]; NULL without one */
    void *room;                     /* of the split */
    size_t room_bytes;
    size_t packed_bytes;
    bool flushes;                            /* cold: by flushing them, not by what rotates between */
    double footprint_bytes;                  /* of one copy, scratch not counted */
    char *memory[KERN_DEVICES_MAX], *mirror; /* of each device that has buffers, [devices] of them */
    size_t memory_bytes[KERN_DEVICES_MAX], devices, mirror_bytes, scratch_bytes;
    struct work_block *blocks;
    size_t blocks_n;
    double *values;
    size_t last;   /* copy that was called last */
    double call_s; /* of the fastest that warmed up; 0: it was not timed yet */
    bool changes;  /* has a state: a second call computes something else */
};

/* work_open -- allocate and fill; memory_bytes is the most that buffers may take. Cold calls rotate over copies that
 * together are COLD_CACHES times the last-level cache. Where spec.flush they rotate over what is flushed before every
 * sample, FLUSHED_BYTES for each thread: lines are then written back between samples, where rotation has that inside
 * them. One core hides it (probe/METHOD.md), several that share the memory need not, so that of them only what writes
 * no more than a WRITTEN_PART of what it reads is flushed. Returns NULL, or why not (text[cap]). The machine outlives
 * it. */
enum { WORK_COLD_CACHES = 8, WORK_WRITTEN_PART = 32 };
#define WORK_FLUSHED_BYTES 0x1p24
#define WORK_ONE_THREAD "it runs on one thread alone"
const char *work_open(const struct work_spec *spec, const struct kern_machine *m, double memory_bytes, struct work *out,
                      char *text, size_t cap);
void work_close(struct work *w);

/* work_rotates -- whether the copies of a buffer rotate: its packed form does instead, or nothing of it is to be cold.
 */
bool work_rotates(const struct work *w, size_t b);

/* work_renew -- the states of the first copy, which is the one that is checked, as they were before any call; those of
 * the others are as large as calls left them. */
void work_renew(struct work *w);

/* work_check -- run once on poisoned outputs and compare. *error_frac is the largest relative distance in norm over the
 * outputs, infinite where one holds no number; *checked counts elements compared. Returns NULL, or what is wrong. */
const char *work_check(struct work *w, double *error_frac, size_t *checked, char *text, size_t cap);

/* work_check_again -- compare what the copy called last holds after the timing; NULL where that is not known (a state).
 */
const char *work_check_again(struct work *w, char *text, size_t cap);

/* Timings of one call each: of a sample divided by its calls. */
struct work_times {
    double time_s[SAMPLE_MAX], discard_s[SAMPLE_MAX];
    size_t n, discards_n;
    size_t calls;
    enum sample_stop stop;
    char conditions[512]; /* a JSON object of texts, "" */
};

/* work_call -- one call of copy i; work_calls -- n of them through the copies from *next on. Seconds from the start to
 * the (last) end; *lost_s of them a thread did not run. */
void work_call(struct work *w, size_t i);
double work_calls(struct work *w, size_t n, size_t *next, double *lost_s);

/* work_time -- warm up, then sample until the rule says enough. A sample during which the thread lost the processor is
 * put among the discards. */
void work_time(struct work *w, const struct sample_rule *rule, struct work_times *out);

/* work_count -- bytes that memory read, bytes[0], and wrote, bytes[1], for one call, by the counters of its place: the
 * mean over a round of all copies, sixteen calls at least, after a round that is not counted. Returns NULL, or why they
 * are not known. Nothing is to be timed in a process that has counted. */
const char *work_count(struct work *w, double bytes[2], char *text, size_t cap);

#endif
