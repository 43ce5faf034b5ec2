/* Collectives: the faster of a protocol with little latency and one with much bandwidth. */
#include <math.h>

#include "calc/time/kernel.h"

enum { LOW_START, LOW_STEP, LOW_RATE, HIGH_START, HIGH_STEP, HIGH_RATE, SWITCH_RATE, NORM, PARAMS_N };

static const struct kernel_param params[PARAMS_N] = {
    [LOW_START] =
        {"low_start_s", "s", "start-up of the protocol of short messages", 1e-7, 1e-4, {5e-6, 2e-6}, KERNEL_KEPT},
    [LOW_STEP] = {"low_step_s", "s", "per further rank, short messages", 1e-9, 2e-5, {5e-7, 1e-6}, KERNEL_KEPT},
    [LOW_RATE] = {"low_frac", "fraction", "of the link, short messages", 0.001, 1, {0.2, 0.05}, KERNEL_KEPT},
    [HIGH_START] =
        {"high_start_s", "s", "start-up of the protocol of long messages", 1e-7, 1e-3, {2e-5, 1e-5}, KERNEL_KEPT},
    [HIGH_STEP] = {"high_step_s", "s", "per further rank, long messages", 1e-9, 1e-4, {1e-6, 3e-6}, KERNEL_KEPT},
    [HIGH_RATE] =
        {"high_frac", "fraction", "of the link around the ring, long messages", 0.01, 1, {0.8, 0.5}, KERNEL_KEPT},
    [SWITCH_RATE] = {"switch_frac", "fraction", "of the link where the switch sums", 0.01, 1, {0.6, 0.9}, KERNEL_KEPT},
    [NORM] =
        {"join", "exponent", "of the norm that joins start-up and transfer: 1 the sum", 0.7, 16, {1, 2}, KERNEL_KEPT},
};

enum { STEPS, RING_S, WIRE_S, SHOT_S, FEATURES_N };

static void prepare(const struct kernel *k, const struct hw *hw, const struct kernel_work *w,
                    struct kernel_features *out)
{
    const double ring = (k->collective == KERNEL_ALL_REDUCE ? 2 : 1) * (k->ranks - 1) / k->ranks * k->payload_bytes;
    (void)hw;
    out->v[STEPS] = k->ranks - 1;
    out->v[RING_S] = w->bytes > 0 ? ring * w->memory_s / w->bytes : 0;
    out->v[WIRE_S] = w->bytes < ring ? w->memory_s : HUGE_VAL; /* the switch sums */
    out->v[SHOT_S] = w->bytes > 0 && k->collective == KERNEL_ALL_REDUCE
                         ? (k->ranks - 1) * k->payload_bytes * w->memory_s / w->bytes
                         : out->v[RING_S];
    out->n = FEATURES_N;
}

static double time_s(const struct kernel_features *f, const double *p)
{
    const double *v = f->v;
    const double low_s = kernel_norm(p[LOW_START] + v[STEPS] * p[LOW_STEP], v[SHOT_S] / p[LOW_RATE], p[NORM]);
    const double high = fmin(v[RING_S] / p[HIGH_RATE], v[WIRE_S] / p[SWITCH_RATE]);
    return fmin(low_s, kernel_norm(p[HIGH_START] + v[STEPS] * p[HIGH_STEP], high, p[NORM]));
}

const struct kernel_form kernel_collective_form = {
    .name = "two protocols",
    .meaning = "the faster of two: norm(start + steps, bytes over the link)",
    .params = params,
    .n_params = PARAMS_N,
    .prepare = prepare,
    .time_s = time_s,
};
