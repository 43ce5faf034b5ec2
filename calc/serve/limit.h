/* limit -- the largest batch or context that a model takes on its GPUs: in memory, and within promised latencies.
 *
 * Memory, prefill and step time do not fall as batch or context grow, so doubling and bisection find the last whole
 * number that holds, in O(log) evaluations. */
#ifndef RIDGE_SERVE_LIMIT_H
#define RIDGE_SERVE_LIMIT_H

#include "calc/time/step.h"

/* Larger than any answer: what to ask for when the model sets no limit. */
#define LIMIT_MOST (INT64_C(1) << 40) /* not a unit */

enum limit_of { LIMIT_BATCH, LIMIT_CONTEXT };

struct limit_request {
    struct step *step; /* not averaged */
    enum limit_of of;
    int64_t other;         /* the context of a batch, the batch of a context */
    int64_t most;          /* the model's own limit, or the largest asked for */
    double capacity_bytes; /* of one GPU */
    double tpot_s, ttft_s; /* a decode step and a prefill may take at most; NAN: any time */
};

/* One point. */
struct limit_point {
    int64_t batch, context;
    double memory_bytes, kv_bytes, state_bytes, decode_step_s, prefill_s;
};

struct limit {
    int64_t value;       /* 0: not even one */
    const char *because; /* what the next one would break: "memory", "TPOT", "TTFT"; NULL: request.most was reached */
    struct limit_point at, next; /* the last that holds (none for value 0), the first that does not */
};

/* limit_find -- the answer. Cost: some 60 evaluations of the step. */
struct limit limit_find(const struct limit_request *q);

#endif
