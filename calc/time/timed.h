/* timed -- seconds of operators as expressions, the device's rates being symbols until they are bound.
 *
 * An operator takes max(matrix flops/peak, vector flops/vector peak, bytes/bandwidth, sent bytes/link), cold between
 * kernels. A pass takes the sum of that over its dependent operators (STEP_ROOFLINE), or pooled max(sum of flops/peak,
 * (weights once + cache entries and state needed)/bandwidth, sent bytes/link) (STEP_BOUND). Derivation: MODEL.md
 * "Time". Source: Williams, Waterman, Patterson, Roofline, CACM 52(4), 2009. */
#ifndef RIDGE_TIME_TIMED_H
#define RIDGE_TIME_TIMED_H

#include "calc/cost/cost.h"
#include "calc/time/hw.h"

enum step_fidelity { STEP_BOUND, STEP_ROOFLINE };

/* The rates as symbols, per device: peak_bf16, ... (flops/s; the vector unit's is peak_fp32_vector), bandwidth
 * (bytes/s), link (bytes/s, one direction, to all other ranks together). */
struct rates {
    const struct sym *peak[HW_DTYPES_N], *bandwidth, *link;
    const struct sym *spread;  /* the link among the ranks of a stage, where tokens go to their experts */
    const struct sym *fabric;  /* between nodes, bytes/s of one rank */
    const struct sym *context; /* the link among the ranks that share a context */
    const struct sym *host;    /* from the host, bytes/s; NULL: nothing is read there */
    /* Start-up seconds of a sum over ranks, an all-gather, an all-to-all, a message to the next stage; NULL: none. */
    const struct sym *sum_s, *gather_s, *spread_s, *hop_s;
    const struct sym *context_s; /* of an all-gather or reduce-scatter among the ranks that share a context */
};
enum { RATES_N = HW_DTYPES_N + 2 };

struct rates rates_make(struct sym_ctx *c);

/* rates_list -- all of them, with one sentence each; i < RATES_N. */
const struct sym *rates_list(const struct rates *r, size_t i, const char **meaning);

/* rates_of -- the numbers of a device in place of the symbols, so that the same functions give seconds of that device;
 * unknown rates stay symbols. link_bytes_per_s: of timed_link_rate, NAN unknown. */
struct rates rates_of(struct sym_ctx *c, const struct hw *hw, double link_bytes_per_s);

/* timed_unit -- the matrix unit that a stored format computes in on a device: its own, else bf16, fp16, tf32, fp32. hw
 * NULL: its own, else bf16. Errors: ERR_INPUT no peak rate is known. */
enum err_code timed_unit(const struct hw *hw, const struct dtype *d, enum hw_dtype *out, struct err *e);

/* timed_link_rate -- bytes/s that one of tp ranks sends to the others: hw_link_rate, else PCIe; NAN for tp 1. Errors:
 * ERR_USAGE more ranks than the link joins; ERR_INPUT neither is known. */
enum err_code timed_link_rate(const struct hw *hw, int64_t tp, double *out_bytes_per_s, struct err *e);

/* What links do in a layout. */
struct timed_links {
    double link_bytes_per_s;                 /* among tensor-parallel ranks in a node; NAN: one rank */
    double spread_bytes_per_s;               /* among the ranks of a stage in a node; NAN: one rank */
    double fabric_bytes_per_s;               /* NAN: one node */
    double context_bytes_per_s;              /* among the ranks that share a context in a node; NAN: one rank */
    double wire_factor;                      /* the number of r */
    double sum_s, gather_s, spread_s, hop_s; /* start-up: messages in a row, each with its latency */
    double context_s;
};

/* Seconds that a message takes on top of its bytes; 0: none is charged (a floor). */
struct timed_latency {
    double link_s, fabric_s;
};

/* timed_links -- of a layout on a device: hw_link_rate, else PCIe, within nodes, the fabric between them. In a node a
 * sum over ranks is 2(t-1) messages in a row around a ring, an all-gather t-1, in a switch that reduces one; over q
 * nodes 2(q-1) and q-1 more on the fabric; an all-to-all one of each. Errors: ERR_USAGE more ranks in a node than the
 * link joins; ERR_INPUT a link is not known. */
enum err_code timed_links(const struct hw *hw, const struct layout *l, const struct timed_latency *latency,
                          struct timed_links *out, struct err *e);

/* timed_wire_factor -- the number of r: bytes that a rank sends for a byte all-reduced, 2(t-1)/t on a ring, 1 in a
 * switch that reduces (more than two ranks). hw NULL: a ring. */
const struct sym *timed_wire_factor(struct sym_ctx *c, const struct hw *hw, int64_t tp);

/* An operator's time, once (not times its count). */
struct timed {
    const struct sym *compute_s, *vector_s, *memory_s, *link_s, *time_s;
    const struct sym *bytes; /* weights + cache + state + activations, of the device's memory */
    /* Weights at the host (offload.h): bytes and seconds of reading them there, bytes that no fusion avoids, and time_s
     * without; NULL: none. */
    const struct sym *host_bytes, *host_s, *host_needed_bytes, *resident_s;
    const char *unit;      /* matrix unit; "unknown" when the device has no known peak */
    const char *half_unit; /* that of flops in 16 bits beside it (outlier columns); NULL none */
};

/* timed_ops -- times of all operators; their wire_bytes get the number of r (MODEL.md "all_reduce"), sent: NULL leaves
 * it. hw NULL: no device, own units. *untimed (may be NULL) becomes true where a device has no known peak: times then
 * mean nothing. Errors: ERR_NOMEM. */
enum err_code timed_ops(struct arena *a, struct sym_ctx *c, const struct rates *r, const struct hw *hw,
                        const struct model *m, const struct sym *sent, struct cost_ops *ops, struct timed **out,
                        bool *untimed, struct err *e);

/* A pass: sums over operators of count times what one has. */
struct timed_total {
    const struct sym *flops, *vector_flops, *weight_bytes, *kv_bytes, *kv_needed_bytes, *activation_bytes, *wire_bytes;
    const struct sym *fabric_bytes;
    const struct sym *weight_needed_bytes, *state_bytes, *state_needed_bytes;
    const struct sym *bytes; /* that the fidelity charges: all of them, or those that no fusion avoids */
    const struct sym *compute_s, *memory_s, *link_s, *time_s;
    const struct sym *host_bytes, *host_s; /* weights read from the host; 0 */
};

/* timed_sum -- layers: a further factor of every operator that belongs to a layer (a symbol for their number); NULL 1.
 * Errors: ERR_NOMEM. */
enum err_code timed_sum(struct arena *a, struct sym_ctx *c, const struct rates *r, enum step_fidelity fidelity,
                        const struct cost_ops *ops, const struct timed *timed, const struct sym *layers,
                        struct timed_total *out, struct err *e);

/* timed_sum_stage -- the same of a stage. */
enum err_code timed_sum_stage(struct arena *a, struct sym_ctx *c, const struct rates *r, enum step_fidelity fidelity,
                              const struct cost_ops *ops, const struct timed *timed, const struct cost_stage *stage,
                              struct timed_total *out, struct err *e);

#endif
