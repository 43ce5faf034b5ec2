/* Recurrences, convolutions and elementwise work: bytes, and rows that follow one another. */
#include <math.h>

#include "calc/time/kernel.h"

/* -- scan -- */

enum { START, CHUNK, PARALLEL, COMPUTE, MEMORY, NORM, HOT_RATE, HOT_ROOM, SCAN_N };

static const struct kernel_param scan_params[SCAN_N] = {
    [START] = {"start_s", "s", "start-up of all kernels", 1e-6, 3e-4, {1e-5, 5e-5}, KERNEL_CYCLES},
    [CHUNK] = {"chunk_s", "s", "a chunk of tokens, after the one before it", 1e-9, 1e-4, {2e-6, 5e-7}, KERNEL_CYCLES},
    [PARALLEL] =
        {"parallel_s", "s", "work of a chunk on one SM, in any order", 1e-9, 1e-3, {2e-6, 1e-5}, KERNEL_CYCLES},
    [COMPUTE] = {"compute_frac", "fraction", "of the peak rate", 0.005, 1, {0.3, 0.1}, KERNEL_KEPT},
    [MEMORY] = {"memory_frac", "fraction", "of the bandwidth", 0.03, 1, {0.8, 0.4}, KERNEL_KEPT},
    [NORM] = {"overlap",
              "exponent",
              "of the norm that joins chunks and memory: 1 no overlap",
              0.7,
              16,
              {2, 1.2},
              KERNEL_KEPT},
    [HOT_RATE] = {"hot_ratio",
                  "ratio",
                  "rate of what is in the last-level cache, to the bandwidth",
                  1,
                  20,
                  {2, 4},
                  KERNEL_SM_RATE},
    [HOT_ROOM] =
        {"hot_frac", "fraction", "of the last-level cache that keeps the operands", 0.05, 1, {0.7, 0.4}, KERNEL_KEPT},
};

enum { SERIAL, ALL_CHUNKS, COMPUTE_S, MEMORY_S, BYTES, SCAN_FEATURES_N };

static void prepare_scan(const struct kernel *k, const struct hw *hw, const struct kernel_work *w,
                         struct kernel_features *out)
{
    const double chunks = ceil(k->query_tokens / k->chunk_tokens), units = k->batch * k->heads;
    out->v[SERIAL] = chunks * ceil(units / hw->sm_count);
    out->v[ALL_CHUNKS] = chunks * units / hw->sm_count;
    out->v[COMPUTE_S] = w->compute_s;
    out->v[MEMORY_S] = w->memory_s;
    out->v[BYTES] = k->cold ? HUGE_VAL : w->bytes / hw->l2_bytes;
    out->n = SCAN_FEATURES_N;
}

/* Memory seconds when part of the operands is in the last-level cache. */
static double memory_s(double cold_s, double bytes, double memory, double hot_rate, double hot_room)
{
    const double cold = 1 / memory, hot = fmin(cold, 1 / hot_rate), part = kernel_hot_frac(bytes, hot_room);
    return cold_s * (part * hot + (1 - part) * cold);
}

static double scan_s(const struct kernel_features *f, const double *p)
{
    const double *v = f->v;
    const double chunks_s = v[SERIAL] * p[CHUNK] + v[ALL_CHUNKS] * p[PARALLEL] + v[COMPUTE_S] / p[COMPUTE];
    return p[START] +
           kernel_norm(chunks_s, memory_s(v[MEMORY_S], v[BYTES], p[MEMORY], p[HOT_RATE], p[HOT_ROOM]), p[NORM]);
}

const struct kernel_form kernel_scan_form = {
    .name = "serial chunks",
    .meaning = "start + norm(chunks one after another in waves of heads, memory)",
    .params = scan_params,
    .n_params = SCAN_N,
    .prepare = prepare_scan,
    .time_s = scan_s,
};

/* -- convolution -- */

enum { C_START, C_ROW, C_PARALLEL, C_BLOCK, C_MEMORY, C_NORM, C_HOT_RATE, C_HOT_ROOM, CONV_N };

static const struct kernel_param conv_params[CONV_N] = {
    [C_START] = {"start_s", "s", "start-up", 1e-7, 1e-4, {2e-6, 8e-6}, KERNEL_CYCLES},
    [C_ROW] =
        {"row_s", "s", "a token of one sequence, after the one before it", 1e-13, 1e-6, {1e-9, 1e-8}, KERNEL_CYCLES},
    [C_PARALLEL] =
        {"parallel_s", "s", "1000 elements on one SM, in any order", 1e-12, 1e-5, {1e-8, 1e-7}, KERNEL_CYCLES},
    [C_BLOCK] = {"block_s", "s", "a channel of a sequence, on one SM", 1e-12, 1e-5, {1e-10, 1e-7}, KERNEL_CYCLES},
    [C_MEMORY] = {"memory_frac", "fraction", "of the bandwidth", 0.03, 1, {0.8, 0.4}, KERNEL_KEPT},
    [C_NORM] =
        {"overlap", "exponent", "of the norm that joins rows and memory: 1 no overlap", 0.7, 16, {2, 1.2}, KERNEL_KEPT},
    [C_HOT_RATE] = {"hot_ratio",
                    "ratio",
                    "rate of what is in the last-level cache, to the bandwidth",
                    1,
                    20,
                    {2, 4},
                    KERNEL_SM_RATE},
    [C_HOT_ROOM] =
        {"hot_frac", "fraction", "of the last-level cache that keeps the operands", 0.05, 1, {0.7, 0.4}, KERNEL_KEPT},
};

enum { C_TOKENS, C_ELEMENTS, C_BLOCKS, C_MEMORY_S, C_BYTES, CONV_FEATURES_N };

static void prepare_conv(const struct kernel *k, const struct hw *hw, const struct kernel_work *w,
                         struct kernel_features *out)
{
    out->v[C_TOKENS] = k->query_tokens;
    out->v[C_ELEMENTS] = k->batch * k->query_tokens * k->channels / hw->sm_count / 1000; /* not a unit */
    out->v[C_BLOCKS] = k->batch * k->channels / hw->sm_count;
    out->v[C_MEMORY_S] = w->memory_s;
    out->v[C_BYTES] = w->bytes / hw->l2_bytes;
    out->n = CONV_FEATURES_N;
}

static double conv_s(const struct kernel_features *f, const double *p)
{
    const double *v = f->v, rows_s = v[C_TOKENS] * p[C_ROW] + v[C_ELEMENTS] * p[C_PARALLEL] + v[C_BLOCKS] * p[C_BLOCK];
    return p[C_START] + kernel_norm(rows_s,
                                    memory_s(v[C_MEMORY_S], v[C_BYTES], p[C_MEMORY], p[C_HOT_RATE], p[C_HOT_ROOM]),
                                    p[C_NORM]);
}

const struct kernel_form kernel_conv_form = {
    .name = "serial rows",
    .meaning = "start + norm(tokens one after another, memory)",
    .params = conv_params,
    .n_params = CONV_N,
    .prepare = prepare_conv,
    .time_s = conv_s,
};

/* -- elementwise -- */

enum { E_START, E_ROW, E_MEMORY, E_NORM, E_HOT_RATE, E_HOT_ROOM, ELEMENTWISE_N };

static const struct kernel_param elementwise_params[ELEMENTWISE_N] = {
    [E_START] = {"start_s", "s", "start-up", 1e-7, 1e-4, {2e-6, 8e-6}, KERNEL_CYCLES},
    [E_ROW] = {"row_s", "s", "a row on one SM", 1e-11, 1e-5, {1e-8, 1e-7}, KERNEL_CYCLES},
    [E_MEMORY] = {"memory_frac", "fraction", "of the bandwidth", 0.03, 1, {0.8, 0.4}, KERNEL_KEPT},
    [E_NORM] =
        {"overlap", "exponent", "of the norm that joins rows and memory: 1 no overlap", 0.7, 16, {2, 1.2}, KERNEL_KEPT},
    [E_HOT_RATE] = {"hot_ratio",
                    "ratio",
                    "rate of what is in the last-level cache, to the bandwidth",
                    1,
                    20,
                    {2, 4},
                    KERNEL_SM_RATE},
    [E_HOT_ROOM] =
        {"hot_frac", "fraction", "of the last-level cache that keeps the operands", 0.05, 1, {0.7, 0.4}, KERNEL_KEPT},
};

enum { E_ROWS, E_MEMORY_S, E_BYTES, ELEMENTWISE_FEATURES_N };

static void prepare_elementwise(const struct kernel *k, const struct hw *hw, const struct kernel_work *w,
                                struct kernel_features *out)
{
    out->v[E_ROWS] = ceil(k->m / hw->sm_count);
    out->v[E_MEMORY_S] = w->memory_s;
    out->v[E_BYTES] = w->bytes / hw->l2_bytes;
    out->n = ELEMENTWISE_FEATURES_N;
}

static double elementwise_s(const struct kernel_features *f, const double *p)
{
    const double *v = f->v;
    return p[E_START] + kernel_norm(v[E_ROWS] * p[E_ROW],
                                    memory_s(v[E_MEMORY_S], v[E_BYTES], p[E_MEMORY], p[E_HOT_RATE], p[E_HOT_ROOM]),
                                    p[E_NORM]);
}

const struct kernel_form kernel_elementwise_form = {
    .name = "rows",
    .meaning = "start + norm(rows over the SMs, memory)",
    .params = elementwise_params,
    .n_params = ELEMENTWISE_N,
    .prepare = prepare_elementwise,
    .time_s = elementwise_s,
};
