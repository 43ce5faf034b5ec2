/* wire -- the lines that `ridge` and a worker exchange; METHOD.md specifies them.
 *
 * One JSON object a line, UTF-8, "\n" at its end and nowhere else. Both sides read with these functions: strictly
 * (types, bounds, what must be there), passing over members they do not know, so that a later minor version can add
 * some. */
#ifndef RIDGE_PROBE_WIRE_H
#define RIDGE_PROBE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"
#include "calc/base/out.h"
#include "probe/sample.h"

/* Relative errors above it are no rounding: no check of a kernel may allow more. */
#define WIRE_TOLERANCE_MAX 0.05

enum { WIRE_VERSION = 1, WIRE_LINE_MAX = 1 << 20, WIRE_ARGS_MAX = 16, WIRE_LIST_MAX = 256, WIRE_TEXT_MAX = 4096 };

/* A shape: parameters by name, in the kernel's order. */
struct wire_shape {
    size_t n;
    struct {
        const char *name;
        int64_t value;
    } arg[WIRE_ARGS_MAX];
};

enum wire_ask { WIRE_DESCRIBE, WIRE_MEASURE, WIRE_COUNT, WIRE_QUIT };

/* What is to be measured. */
struct wire_job {
    const char *kernel, *variant, *dtype;
    struct wire_shape shape;
    bool cold;       /* every call finds nothing of its operands in a cache; else all that fits */
    bool keep;       /* buffers stay for the next such job: ceilings, which are measured again and again */
    bool again;      /* the job before, once more: its buffers are there and were checked */
    bool dram_bytes; /* instead of timing it count the bytes that memory moves, where the device has counters */
    int64_t seed;
    int64_t least; /* samples */
    double noise_frac, deadline_s;
};

/* As many threads as there are processors. */
#define WIRE_ALL_THREADS ((int64_t)1 << 30)

struct wire_request {
    int64_t id;
    enum wire_ask ask;
    int64_t threads;     /* make a call together, where there are so many: the device says how many; 0 as 1 */
    struct wire_job job; /* of WIRE_MEASURE; of WIRE_COUNT kernel, variant, dtype and shape */
};

enum wire_outcome {
    WIRE_MEASURED,
    WIRE_WRONG,   /* the result is not the reference's; nothing was timed, or the times do not count */
    WIRE_REFUSED, /* cannot run here, or not be counted: the reason says why */
    WIRE_COUNTED, /* not timed: bytes of memory were counted */
    WIRE_OUTCOMES_N
};
const char *wire_outcome_name(enum wire_outcome outcome);

/* What came of it. Times are of one call: of a sample divided by its calls. */
struct wire_result {
    enum wire_outcome outcome;
    const char *reason; /* "" when measured */
    const char *unit;   /* whose peak counts: "fp32", "bf16-dot" */
    enum sample_stop stop;
    double *times_s, *discards_s; /* discards: samples that lost the processor to others */
    size_t times_n, discards_n;
    int64_t calls, copies, checked; /* calls a sample; copies of the buffers; elements compared */
    double error_frac, tolerance_frac;
    double flops, vector_flops, read_bytes, written_bytes, footprint_bytes;
    double piece_bytes; /* of what is read in pieces that lie in no order; 0 or NAN: it is not */
    double dram_read_bytes,
        dram_write_bytes;   /* of WIRE_COUNTED: what memory read and wrote for one call, by counters */
    const char *conditions; /* a JSON object of texts: clocks, power, temperature ...; "" none are known */
};

struct wire_arg {
    const char *name, *help;
    int64_t lo, hi;
};

struct wire_point {
    struct wire_shape shape;
    const char *dtype;
    bool quick;
};

struct wire_variant {
    const char *name, *unit;
    const char *lacks;  /* why it cannot run here; "" when it can */
    const char *dtypes; /* "fp32,bf16" */
    bool library;       /* somebody else's code, to compare with */
    bool splits;        /* threads can make a call of it together */
};

struct wire_kernel {
    const char *name, *summary, *row_kind, *ceiling; /* ceiling: "compute", "read", "bandwidth", "" */
    const struct wire_arg *args;
    const struct wire_point *points;
    const struct wire_variant *variants;
    size_t args_n, points_n, variants_n;
    bool card; /* there is code of it for a card too, in another worker */
};

/* The machine and what can be measured on it. */
struct wire_device {
    const char *name;                    /* "AMD EPYC 9654" */
    const char *identity;                /* a JSON object: what tells machines and software apart */
    double memory_bytes, cache_bytes[3]; /* of buffers at most; L1 data, L2, last level, 0 unknown */
    const struct wire_kernel *kernels;
    size_t kernels_n;
    const char *left_out; /* what is missing here, sentences; "" */
    int64_t threads;      /* that make a call together */
};

/* What a call is by the kernel's own count, wherever it was measured. Unknown numbers are NAN. */
struct wire_work {
    const char *refused;            /* why it is none: no such kernel, no such shape or format of it; "" */
    const char *row_kind, *ceiling; /* of the kernel */
    const char *unit;               /* of the variant; "": this worker has none of that name */
    double flops, vector_flops, read_bytes, written_bytes;
    double piece_bytes; /* as of a result; 0: it reads none in no order */
};

enum wire_is { WIRE_IS_DEVICE, WIRE_IS_PROGRESS, WIRE_IS_RESULT, WIRE_IS_WORK };

struct wire_reply {
    int64_t id;
    enum wire_is is;
    const char *phase; /* of WIRE_IS_PROGRESS: "fill", "check", "time", "count" */
    struct wire_device device;
    struct wire_result result;
    struct wire_work work;
};

/* wire_write_request, wire_write_reply -- one line with its end. */
void wire_write_request(struct out *o, const struct wire_request *r);
void wire_write_reply(struct out *o, const struct wire_reply *r);

/* wire_read_request, wire_read_reply -- of len bytes without the line end. Texts are copied to the arena, clean of what
 * steers a terminal. Errors: ERR_INPUT what was found and wanted, also another version; ERR_NOMEM. Cost: O(len). */
enum err_code wire_read_request(struct arena *a, const char *line, size_t len, struct wire_request *out, struct err *e);
enum err_code wire_read_reply(struct arena *a, const char *line, size_t len, struct wire_reply *out, struct err *e);

/* wire_write_text, wire_write_shape -- a JSON string; {"m":1,"n":4096}. */
void wire_write_text(struct out *o, const char *s);
void wire_write_shape(struct out *o, const struct wire_shape *s);

/* wire_read_shape -- of {"m":1,...} alone, as the store holds it. Errors: as wire_read_reply. */
enum err_code wire_read_shape(struct arena *a, const char *text, struct wire_shape *out, struct err *e);

/* wire_shape_get -- a parameter by name; false when the shape has none. */
bool wire_shape_get(const struct wire_shape *s, const char *name, int64_t *out);

/* wire_list_has -- whether a word is in a list joined by ','. */
bool wire_list_has(const char *list, const char *word);

#endif
