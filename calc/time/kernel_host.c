/* One core of a CPU, whatever the kernel: it computes, and it waits for memory, and does little of both at once. */
#include <math.h>

#include "calc/time/kernel.h"

enum { START, COMPUTE, HALF_ROWS, MEMORY, OVERLAP, PARAMS_N };

static const struct kernel_param params[PARAMS_N] = {
    [START] = {"start_s", "s", "start-up of a call", 1e-8, 1e-3, {1e-6, 1e-5}, KERNEL_KEPT},
    [COMPUTE] = {"compute_frac", "fraction", "of the peak rate, with many rows", 0.02, 1, {0.85, 0.5}, KERNEL_KEPT},
    [HALF_ROWS] = {"half_rows", "rows", "at which half of that rate is reached", 1e-3, 32, {0.1, 1}, KERNEL_KEPT},
    [MEMORY] = {"memory_frac",
                "fraction",
                "of the bandwidth, or of the cache's that holds the operands",
                0.05,
                1,
                {0.9, 0.7},
                KERNEL_KEPT},
    [OVERLAP] = {"overlap",
                 "exponent",
                 "of the norm that joins compute and memory: 1 no overlap",
                 1,
                 16,
                 {1.3, 4},
                 KERNEL_KEPT},
};

enum { COMPUTE_S, MEMORY_S, ROWS, FEATURES_N };

/* Rows that share one reading of the weights, or of the cache; infinite where the kernel has none. */
static double rows_of(const struct kernel *k)
{
    switch (k->kind) {
    case KERNEL_GEMM:
    case KERNEL_MLA_BMM: return k->m;
    case KERNEL_DECODE:
    case KERNEL_MLA_DECODE: return k->heads / fmax(1, k->kv_heads);
    case KERNEL_PREFILL:
    case KERNEL_MLA_PREFILL: return k->query_tokens * k->heads / fmax(1, k->kv_heads);
    case KERNEL_MOE:
    case KERNEL_MLP: return fmax(1, k->tokens * k->topk / k->experts);
    case KERNEL_SCAN:
    case KERNEL_CONV:
    case KERNEL_ELEMENTWISE:
    case KERNEL_COLLECTIVE:
    case KERNEL_KINDS_N: break;
    }
    return HUGE_VAL;
}

static void prepare(const struct kernel *k, const struct hw *hw, const struct kernel_work *w,
                    struct kernel_features *out)
{
    (void)hw;
    out->v[COMPUTE_S] = w->compute_s;
    out->v[MEMORY_S] = w->memory_s;
    out->v[ROWS] = rows_of(k);
    out->n = FEATURES_N;
}

static double time_s(const struct kernel_features *f, const double *p)
{
    const double compute_s = f->v[COMPUTE_S] / p[COMPUTE] * (1 + p[HALF_ROWS] / f->v[ROWS]);
    return p[START] + kernel_norm(compute_s, f->v[MEMORY_S] / p[MEMORY], p[OVERLAP]);
}

const struct kernel_form kernel_host_form = {
    .name = "core",
    .meaning = "start + norm(compute at the rate of so many rows, memory)",
    .params = params,
    .n_params = PARAMS_N,
    .prepare = prepare,
    .time_s = time_s,
};
