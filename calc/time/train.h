/* train -- a training step on a device, and a training run: flops, seconds, memory. Floors, as step.h.
 *
 *   flops    6*params*tokens, the rule; exact: three times the matrix flops of forward passes with all logits (the
 *            backward pass is two products for each one)
 *   run      flops / (devices*peak*MFU)
 *   step     forward*(3, or 4 where layers are computed anew) + the optimizer's bytes/bandwidth + gradients over the
 *            link, 2*(n-1)/n of them (with parameters split 3*(n-1)/n), nothing overlapped
 * Derivation: MODEL.md "Training". Sources: Kaplan et al., arXiv 2001.08361, section 2.1; PaLM, arXiv 2204.02311,
 * appendix B (MFU); ZeRO, arXiv 1910.02054. */
#ifndef RIDGE_TIME_TRAIN_H
#define RIDGE_TIME_TRAIN_H

#include "calc/cost/train.h"
#include "calc/time/step.h"

struct train_setup {
    const struct model *model;
    const struct hw *hw;
    int64_t tp, copies; /* ranks that share the model; data-parallel copies */
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
    double update_s, reduce_s, step_s;   /* reduce_s NAN: copies beyond one link domain; step_s then without it */
    double mfu;                          /* flops/(devices*peak*step_s): what the floor allows */
    struct train_memory memory;
    double activation_bytes, memory_bytes;
};

/* train_compile -- Errors: as step_compile; ERR_USAGE a zero stage that is none. */
enum err_code train_compile(struct arena *a, const struct train_setup *setup, struct train_plan **out, struct err *e);
void train_eval(struct train_plan *p, double B, double S, struct train_step *out);

/* train_flops -- 6*params*tokens. train_run_s -- seconds of so many flops on n devices of a peak at a part of it. */
double train_flops(double params, double tokens);
double train_run_s(double flops, double n, double peak_flops_per_s, double mfu);

double train_peak(const struct train_plan *p); /* flops/s of one device in the format of activations */

#endif
