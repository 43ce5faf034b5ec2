/* train -- a training step on a device, and a training run: flops, seconds, memory. Floors, as step.h.
 *
 *   flops    6*params*tokens, the rule; exact: three times the matrix flops of forward passes with all logits (the
 *            backward pass is two products for each one)
 *   run      flops / (devices*peak*MFU)
 *   step     forward*(3, or 4 where layers are computed anew) + the optimizer's bytes/bandwidth + what copies send each
 *            other, nothing overlapped: gradients are summed, parameters gathered where they are split
 *   sending  of P parameters among n copies, c of them in each of k nodes: P*bytes*max((c-1)/c/link,
 * (k-1)/(k*c)/fabric) for a reduce-scatter or an all-gather Derivation: MODEL.md "Training". Sources: Kaplan et al.,
 * arXiv 2001.08361, section 2.1; PaLM, arXiv 2204.02311, appendix B (MFU); ZeRO, arXiv 1910.02054. */
#ifndef RIDGE_TIME_TRAIN_H
#define RIDGE_TIME_TRAIN_H

#include "calc/cost/train.h"
#include "calc/time/step.h"

struct train_setup {
    const struct model *model;
    const struct hw *hw;
    int64_t tp, copies; /* ranks that share the model; data-parallel copies */
    int64_t per_node;   /* GPUs of a node; 0: those that the device's link joins, all where it has none */
    struct cost_conventions conventions;
    const struct train_recipe *recipe;
    enum train_recompute recompute;
    int zero; /* 0..3 */
};

struct train_plan; /* compiled; lives in the arena */

/* A step: each copy takes B sequences of S tokens. Bytes are per device; NAN: not known. */
struct train_step {
    double tokens;                       /* of all copies */
    double flops, forward_s, backward_s; /* flops: of all devices; backward with what is computed anew */
    double update_s, reduce_s, step_s;   /* NAN: copies in several nodes, and no fabric is known */
    double mfu;                          /* flops/(devices*peak*step_s): what the floor allows */
    struct train_memory memory;
    double activation_bytes, memory_bytes;
};

/* train_compile -- The model is trained as train_model makes it. Errors: as step_compile, train_model; ERR_USAGE a zero
 * stage that is none. */
enum err_code train_compile(struct arena *a, const struct train_setup *setup, struct train_plan **out, struct err *e);
void train_eval(struct train_plan *p, double B, double S, struct train_step *out);

/* train_flops -- 6*params*tokens. train_run_s -- seconds of so many flops on n devices of a peak at a part of it. */
double train_flops(double params, double tokens);
double train_run_s(double flops, double n, double peak_flops_per_s, double mfu);

double train_peak(const struct train_plan *p); /* flops/s of one device in the format of activations */

#endif
