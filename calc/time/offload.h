/* offload -- weights of layers that a device does not hold: its kernels read them from the host, in every pass.
 *
 * Of each device's layers the first are at the host, whole (vLLM --cpu-offload-gb: parameters by unified addressing,
 * read over the link by the kernel that needs them). With F the part of the layers' bytes that is there, an operator
 * that reads w bytes of weights in its time takes
 *
 *     (1 - F) * time + F * max(flops/peak, vector flops/vector peak, (bytes - w)/bandwidth, sent/link, w/host link)
 *
 * and a pooled pass max(compute, (bytes - W)/bandwidth, link, W/host link), W the weights that all of it reads there.
 * Streaming hides where a step has so many tokens that a product takes as long as its weights:
 *
 *     tokens = b * peak / (2 * host link)      b bytes a weight: a dense product does 2 flops a weight and token
 *
 * Derivation: MODEL.md "Weights at the host". Source: vLLM model_executor/offloader/uva.py, config/offload.py. */
#ifndef RIDGE_TIME_OFFLOAD_H
#define RIDGE_TIME_OFFLOAD_H

#include "calc/time/timed.h"

/* On each device. bytes 0: nothing is at the host. */
struct offload {
    double bytes;            /* asked for; no more than its layers have is there; >= 0 */
    double host_bytes_per_s; /* from the host to the device; > 0 */
};

/* offload_bytes -- of the weights of layers, what is at the host: min(asked, all of them); stage NULL: the whole model.
 * offload_part -- over all of them. */
const struct sym *offload_bytes(struct sym_ctx *c, const struct offload *o, const struct cost_ops *ops,
                                const struct cost_conventions *v, const struct cost_stage *stage);
const struct sym *offload_part(struct sym_ctx *c, const struct offload *o, const struct cost_ops *ops,
                               const struct cost_conventions *v, const struct cost_stage *stage);

/* offload_ops -- the operators of timed_ops with that part of layers at the host: time_s, memory_s, bytes (of the
 * device's memory) and host_bytes, resident_s what time_s was; r->host is the link's rate. Before timed_sum. Errors:
 * ERR_NOMEM. */
enum err_code offload_ops(struct sym_ctx *c, const struct rates *r, const struct sym *part, const struct cost_ops *ops,
                          struct timed *timed, struct err *e);

/* offload_hides_tokens -- tokens of a step from which on a dense product hides the streaming of its own weights. */
double offload_hides_tokens(const struct offload *o, double weight_bytes, double peak_flops_per_s);

#endif
