/* step -- a model on a device: memory, prefill time and decode step time as functions of batch and context.
 *
 * Two fidelities, both floors and never predictions of a server (MODEL.md "Time"):
 *   bound     max(matrix flops/peak, needed bytes/bandwidth, sent bytes/link), pooled over the pass: true whatever the
 *             fusion; needed bytes are weights once, old cache entries read and new ones written
 *   roofline  sum over dependent operators of max(matrix flops/peak, vector flops/vector peak, bytes/bandwidth,
 *             sent/link), each cold between kernels: the textbook figure
 * Weights at the host are read from there in every pass (offload.h) and are not among the device's bytes.
 * The device enters through struct rates, as numbers here and as symbols where a formula is shown. */
#ifndef RIDGE_TIME_STEP_H
#define RIDGE_TIME_STEP_H

#include "calc/cost/layout.h"
#include "calc/time/offload.h"

enum step_phase { STEP_PREFILL, STEP_DECODE, STEP_PHASES };

const char *step_phase_name(enum step_phase p);
const char *step_fidelity_name(enum step_fidelity f);

struct step_setup {
    const struct model *model;
    const struct hw *hw;
    struct layout layout; /* of the ranks that share the model */
    bool any_layout;  /* the layout is given with each point (step_eval_layout); of this one sp counts alone, and dcp
                         where it is more than one: all points then have more than one */
    bool any_context; /* beside any_layout: points with and without ranks that share a context */
    bool served; /* of an encoder-decoder as a server sees it: T and S have its source in front, as many tokens as the
                    model states, and behind it those that its decoder has before it generates (mixed.h) */
    struct timed_latency latency; /* of links */
    enum step_fidelity fidelity;
    struct cost_conventions conventions;
    bool prefill_together;  /* the prefill pass takes B prompts, not one */
    bool uncached;          /* --kv none */
    bool averaged;          /* decode time is the mean over M steps, the last at S; else one step at S */
    bool verify;            /* the decode step has T query tokens, the first at context S, the last at S+T-1, and judges
                               them all (speculation); at T = 1 it is a decode step */
    int64_t block_tokens;   /* of the engine's cache pages, for allocated bytes */
    int64_t pass_tokens;    /* query tokens of a sequence in a decode step; 0: one */
    bool overlapped;        /* roofline: what is sent goes on while other operators compute */
    struct offload offload; /* weights of layers at the host */
};

/* What a point yields, columns of step_eval. Bytes are per GPU. B is the batch of one copy of the model: an attention
 * group has ceil(B/dp) of it, a microbatch its part of that. With stages, a decode step is the time between two tokens
 * of a sequence in the steady state, max(sum of stages, m * slowest stage); prefill passes all stages; flops, bytes and
 * seconds by resource are the largest of any stage, for all microbatches. MODEL.md "Layouts". */
#define STEP_VALUES(X)                                                                                                 \
    X(kv_bytes)           /* cache at context S, windows cut, heads replicated when fewer than ranks */                \
    X(kv_allocated_bytes) /* the same in whole blocks, every layer at full length */                                   \
    X(state_bytes)        /* of recurrent layers, whatever the context */                                              \
    X(activation_bytes)   /* largest operator's inputs and outputs beside the residual stream */                       \
    X(memory_bytes)       /* weights + beside_bytes + kv_bytes + state_bytes + activation_bytes */                     \
    X(prefill_s)                                                                                                       \
    X(prefill_flops)                                                                                                   \
    X(prefill_bytes)                                                                                                   \
    X(prefill_compute_s) /* demand on the matrix unit alone */                                                         \
    X(prefill_memory_s)                                                                                                \
    X(prefill_link_s)                                                                                                  \
    X(decode_step_s)                                                                                                   \
    X(decode_flops)                                                                                                    \
    X(decode_bytes)                                                                                                    \
    X(decode_compute_s)                                                                                                \
    X(decode_memory_s)                                                                                                 \
    X(decode_link_s)                                                                                                   \
    X(weight_bytes)         /* of the stage whose memory is largest; so are the other bytes of memory */               \
    X(beside_bytes)         /* of towers, not among them (model_beside) */                                             \
    X(adapter_bytes)        /* of those, slots of adapters */                                                          \
    X(offloaded_bytes)      /* weights at the host, not among them */                                                  \
    X(prefill_wire_bytes)   /* sent by one GPU within its node */                                                      \
    X(prefill_fabric_bytes) /* sent by it to other nodes */                                                            \
    X(prefill_host_bytes)   /* weights that it reads from the host */                                                  \
    X(decode_wire_bytes)                                                                                               \
    X(decode_fabric_bytes)                                                                                             \
    X(decode_host_bytes)

enum step_value {
#define X(name) STEP_##name,
    STEP_VALUES(X)
#undef X
        STEP_VALUES_N
};

struct step; /* compiled; lives in the arena */

/* step_compile -- operators built, bound to one rank and the device, compiled. Errors: ERR_USAGE a layout that does not
 * divide or a device without link; ERR_INPUT stored format unknown; ERR_NOMEM. */
enum err_code step_compile(struct arena *a, const struct step_setup *setup, struct step **out, struct err *e);

/* step_eval -- n points: batch B[i], tokens T[i] (the prompt of prefill; of a verify step its query tokens), context
 * S[i] of the (last) decode step, M[i] steps averaged (may be NULL when not averaged). out[v] is a column or NULL. Of
 * an encoder-decoder T is the source: prefill is the encoder's pass and the decoder's over the tokens that it starts
 * with; with `served` both are in T, and in S too. Cost: O(n * operators of all layer kinds). */
void step_eval(struct step *s, size_t n, const double *B, const double *T, const double *S, const double *M,
               double *const out[STEP_VALUES_N]);

/* step_prompt -- T of a point whose prompt is all of the context S: S, or of an encoder-decoder its own source. */
double step_prompt(const struct step *s, double S);

/* step_eval_layout -- one point in a layout; compiled with any_layout, or l NULL: the one compiled. Errors: those of
 * layout_check and timed_links. Cost: O(operators * different stages). */
enum err_code step_eval_layout(struct step *s, const struct layout *l, double B, double T, double S, double M,
                               double out[STEP_VALUES_N], struct err *e);

bool step_timed(const struct step *s);             /* false: the device has no known peak rate, times mean nothing */
double step_weight_bytes(const struct step *s);    /* per GPU, on it */
double step_beside_bytes(const struct step *s);    /* per GPU, towers, not among those; of the first stage */
double step_adapter_bytes(const struct step *s);   /* per GPU, of its weights: slots of adapters */
double step_offloaded_bytes(const struct step *s); /* per GPU, at the host */
double step_offloaded_frac(const struct step *s);  /* of the weights of layers; with stages, of the one that has most */
double step_kv_bytes_per_token_full(const struct step *s);     /* per GPU, grows with context */
double step_kv_bytes_per_token_windowed(const struct step *s); /* per GPU, within the window only */
double step_state_bytes_per_sequence(const struct step *s);    /* per GPU */
double step_kv_bytes_per_token_index(const struct step *s);    /* per GPU, of indexers' keys; grows with context */
double step_kv_bytes_per_source_token(const struct step *s); /* per GPU, of an encoder's output; whatever the context */
double step_kv_bytes_per_token(const struct step *s);        /* per GPU, all three: of a sequence within its windows */

/* step_stages -- different stages of the layout that was compiled; 1 without. step_stage_of -- what each GPU of one of
 * them holds; first, last: whether it is one end of the model, both without stages. */
struct step_stage {
    double weight_bytes, beside_bytes, kv_bytes_per_token, state_bytes_per_sequence;
    bool first, last;
};
size_t step_stages(const struct step *s);
struct step_stage step_stage_of(const struct step *s, size_t i);

size_t step_length(const struct step *s); /* instructions a point costs */

/* One operator of a phase at one point, times its count; per GPU. */
struct step_op {
    const char *phase, *layer, *name, *kind, *shape;
    int64_t count;
    const char *compute; /* matrix unit */
    double flops, vector_flops, weight_bytes, kv_bytes, state_bytes, activation_bytes, wire_bytes, fabric_bytes, bytes;
    double intensity_flops_per_byte; /* matrix flops/bytes; vector flops/bytes where there are no others */
    double time_s, share_frac;
    const char *bound_by; /* "compute" "vector" "memory" "link" "host" */
};

/* step_ops -- the operators of a phase at one point, one microbatch through all stages. Errors: ERR_NOMEM. */
enum err_code step_ops(struct arena *a, const struct step *s, enum step_phase phase, double B, double T, double S,
                       double M, struct step_op **out, size_t *out_n, struct err *e);

/* Operators with their times, in the symbols in[in_n]. */
struct step_list {
    struct sym_ctx *c; /* of the expressions */
    const struct model *model;
    const char *phase;
    const struct cost_op *op;
    const struct timed *timed;
    size_t n;
    const struct sym *const *in;
    size_t in_n;
};

/* step_ops_of -- rows of any such list, l->n of them, where its symbols have these values. Errors: ERR_NOMEM. */
enum err_code step_ops_of(struct arena *a, const struct step_list *l, const double *values, struct step_op **out,
                          struct err *e);

/* step_rates -- the rates of a device and of the links of a setup's layout as numbers; *sent: the number of r. Errors:
 * as timed_links. */
enum err_code step_rates(struct sym_ctx *c, const struct step_setup *u, struct rates *out, const struct sym **sent,
                         struct err *e);

/* step_overlapped -- seconds of a pass whose collectives run beside its other operators: the longer of the two sums; of
 * a stage, or (NULL) of the whole model. */
const struct sym *step_overlapped(struct sym_ctx *c, const struct cost_ops *ops, const struct timed *timed,
                                  const struct cost_stage *stage);

/* step_activation -- bytes of the largest inputs and outputs of one operator, beside the residual stream (or streams)
 * of `rows` tokens that waits; of a stage, or (NULL) of the whole model. */
const struct sym *step_activation(struct sym_ctx *c, const struct model *m, const struct cost_ops *ops,
                                  const struct sym *rows, const struct cost_stage *stage);

/* The operators of a phase with their times, and what their expressions are in: for whoever prices each anew. */
struct step_pass {
    const struct step_setup *setup;
    struct sym_ctx *c;
    const struct sym *const *in; /* B, T, S, M; of a mixed pass its sums */
    size_t in_n;
    const struct cost_op *op;
    const struct timed *timed;
    size_t n;
};

/* step_pass_of -- all of it is borrowed from the step. */
struct step_pass step_pass_of(const struct step *s, enum step_phase phase);

/* step_peak -- the rate and name of the matrix unit for a stored format on a device: its own, else bf16, fp16, tf32,
 * fp32. Errors: ERR_INPUT none known. */
enum err_code step_peak(const struct hw *hw, const struct dtype *d, double *out_flops_per_s, const char **out_name,
                        struct err *e);

#endif
