/* Attention: prefill in blocks of queries over the keys they see, decode with the keys split over SMs. */
#include <math.h>

#include "calc/time/kernel.h"

enum { ROWS = 128, KEYS = 128 };

/* Before the asynchronous products of sm_90 other kernels run. FlashAttention-2 over a paged cache has blocks of 64
 * rows, two of which share an SM, takes the heads of a group into one block only of single queries, and splits keys
 * only then; TensorRT-LLM has blocks of 64 rows for prompts that fit one. Sources: MODEL.md "Transfers". */
enum { ASYNCHRONOUS = 90, HALF_ROWS = 64 };

static bool is_old(const struct hw *hw) { return hw->sm_version > 0 && hw->sm_version < ASYNCHRONOUS; }

static bool is_flash2(const struct kernel *k, const struct hw *hw) { return is_old(hw) && k->flash2 > 0; }

/* -- prefill -- */

enum { START, COMPUTE, PACK, BLOCK, STEP, MEMORY, WRITE, NORM, BALANCE, THROTTLE, TAIL, EDGE, PREFILL_N };

static const struct kernel_param prefill_params[PREFILL_N] = {
    [START] = {"start_s", "s", "start-up", 1e-6, 1e-4, {1e-5, 1.5e-5}, KERNEL_KEPT},
    [COMPUTE] = {"compute_frac", "fraction", "of the peak rate", 0.05, 1, {0.85, 0.6}, KERNEL_KEPT},
    [PACK] = {"packed_s", "s", "what rows of several heads add to a block", 1e-9, 5e-5, {1e-7, 1e-6}, KERNEL_CYCLES},
    [BLOCK] = {"block_s", "s", "start and end of a block of queries", 1e-9, 5e-5, {2e-6, 5e-6}, KERNEL_CYCLES},
    [STEP] = {"step_s",
              "s",
              "softmax and synchronisation of a step over 128 keys",
              1e-10,
              5e-6,
              {1e-7, 3e-7},
              KERNEL_VECTOR},
    [MEMORY] = {"memory_frac", "fraction", "of the bandwidth", 0.05, 1, {0.8, 0.5}, KERNEL_KEPT},
    [WRITE] = {"write_frac", "fraction", "of the bandwidth, writing the cache", 0.02, 1, {0.4, 0.2}, KERNEL_KEPT},
    [NORM] = {"overlap",
              "exponent",
              "of the norm that joins compute and memory: 1 no overlap",
              0.7,
              16,
              {2, 1.2},
              KERNEL_KEPT},
    [BALANCE] = {"imbalance", "ratio", "of the longest block that waits at the end", 1e-3, 2, {0.3, 0.8}, KERNEL_KEPT},
    [THROTTLE] = {"throttle_frac",
                  "fraction",
                  "of time that long products lose to lower clocks",
                  1e-3,
                  1,
                  {0.1, 0.02},
                  KERNEL_KEPT},
    [EDGE] =
        {"window_s", "s", "what a window that hides keys adds to a block", 1e-9, 5e-5, {1e-6, 5e-6}, KERNEL_CYCLES},
    [TAIL] = {"token_s",
              "s",
              "per 1000 tokens of all prompts: rope, layout and cache indices",
              1e-10,
              1e-4,
              {1e-7, 1e-6},
              KERNEL_CYCLES},
};

enum {
    MEMORY_S,
    WRITE_S,
    PACKS,
    TOKENS,
    HIDES,
    ALL_S, /* compute of all blocks per SM, of the longest; steps of both; blocks per SM */
    LONGEST_S,
    ALL_STEPS,
    LONGEST_STEPS,
    BLOCKS,
    PREFILL_FEATURES_N
};

struct blocks {
    double n, steps, longest; /* per sequence and head: blocks, steps of 128 keys over all, over the longest */
};

/* `packed` query heads share the `rows` of a block. */
static struct blocks count_blocks(const struct kernel *k, double packed, double rows)
{
    struct blocks b = {.n = ceil(k->query_tokens * packed / rows)};
    const double window_steps = k->window > 0 ? ceil(k->window / KEYS) + 1 : HUGE_VAL;
    const double last = ceil((k->prefix_tokens + k->query_tokens) / KEYS);
    const double first = fmin(last, ceil((k->prefix_tokens + fmin(k->query_tokens, rows / packed)) / KEYS));
    b.longest = fmin(last, window_steps);
    if (window_steps >= last) {
        b.steps = b.n * (first + last) / 2;
        return b;
    }
    const double rise = fmax(0, window_steps - first), per_block = fmax((last - first) / fmax(b.n - 1, 1), 1e-9);
    const double rising = fmin(b.n, rise / per_block);
    b.steps = rising * (first + window_steps) / 2 + (b.n - rising) * window_steps;
    return b;
}

static void prepare_prefill(const struct kernel *k, const struct hw *hw, const struct kernel_work *w,
                            struct kernel_features *out)
{
    const double rate = hw->bandwidth_bytes_per_s, sm = hw->sm_count, wide = k->head_dim + k->value_dim;
    const double computed = k->padded_dim > 0 ? 2 * k->padded_dim : wide;
    const double peak = w->compute_s > 0 ? w->flops / w->compute_s : 1, group = k->heads / k->kv_heads;
    double *v = out->v;
    v[MEMORY_S] = w->memory_s;
    v[WRITE_S] = k->batch * k->query_tokens * k->kv_heads * wide * (2 + k->kv_element_bytes) / rate;
    const bool flash2 = is_flash2(k, hw), knows_groups = !(k->ungrouped > 0);
    const bool fits_half = is_old(hw) && !knows_groups && k->query_tokens <= HALF_ROWS;
    const double rows = flash2 || fits_half ? HALF_ROWS : ROWS, part = rows / ROWS;
    const bool packs = group > 1 && knows_groups && (!flash2 || k->query_tokens <= 1);
    const double packed = packs ? group : 1, heads = k->batch * (packs ? k->kv_heads : k->heads);
    const struct blocks b = count_blocks(k, packed, rows);
    const double step_s = 2 * rows * KEYS * computed / (peak / sm);
    v[PACKS] = packs;
    v[TOKENS] = k->batch * k->query_tokens / 1000; /* not a unit */
    v[HIDES] = k->window > 0 && k->window < k->prefix_tokens + k->query_tokens;
    v[ALL_S] = heads * b.steps * step_s / sm;
    v[LONGEST_S] = b.longest * step_s;
    v[ALL_STEPS] = part * heads * b.steps / sm;
    v[LONGEST_STEPS] = part * b.longest;
    v[BLOCKS] = part * heads * b.n / sm;
    out->n = PREFILL_FEATURES_N;
}

static double prefill_s(const struct kernel_features *f, const double *p)
{
    const double *v = f->v, compute = 1 / p[COMPUTE];
    const double block_s = p[BLOCK] + v[HIDES] * p[EDGE] + v[PACKS] * p[PACK];
    const double longest_s = v[LONGEST_S] * compute + v[LONGEST_STEPS] * p[STEP] + block_s;
    const double all_s = v[ALL_S] * compute + v[ALL_STEPS] * p[STEP] + v[BLOCKS] * block_s;
    const double blocks_s = fmax(longest_s, all_s + p[BALANCE] * longest_s);
    return p[START] + kernel_norm(blocks_s * kernel_throttle(blocks_s, p[THROTTLE]), v[MEMORY_S] / p[MEMORY], p[NORM]) +
           v[WRITE_S] / p[WRITE] + v[TOKENS] * p[TAIL];
}

const struct kernel_form kernel_prefill_form = {
    .name = "query blocks",
    .meaning = "start + norm(blocks of 128 queries over the SMs, memory) + writing the cache",
    .params = prefill_params,
    .n_params = PREFILL_N,
    .prepare = prepare_prefill,
    .time_s = prefill_s,
};

/* -- decode -- */

enum {
    D_START,
    D_BLOCK,
    D_STREAM,
    D_OTHER,
    D_MEMORY,
    D_HOT_RATE,
    D_ROOM,
    D_COMBINE,
    D_COMBINE_RATE,
    D_NORM,
    D_STEP,
    D_QUERY,
    DECODE_N
};

/* What both forms of decode share. */
#define DECODE_SHARED                                                                                                  \
    [D_START] = {"start_s", "s", "start-up", 1e-6, 1e-4, {9e-6, 5e-6}, KERNEL_CYCLES},                                 \
    [D_BLOCK] = {"block_s", "s", "start and end of a block", 1e-9, 5e-5, {2e-6, 5e-6}, KERNEL_CYCLES},                 \
    [D_STREAM] = {"stream_ratio", "ratio",       "rate at which one SM reads, to its share of the bandwidth", 0.2, 60, \
                  {2, 5},         KERNEL_SM_RATE},                                                                     \
    [D_MEMORY] = {"memory_frac", "fraction", "of the bandwidth", 0.05, 1, {0.9, 0.7}, KERNEL_KEPT},                    \
    [D_HOT_RATE] = {"hot_ratio", "ratio",       "rate of what is in the last-level cache, to the bandwidth", 1, 20,    \
                    {2, 4},      KERNEL_SM_RATE},                                                                      \
    [D_COMBINE] = {"combine_s", "s", "start-up of the sum over splits", 1e-9, 5e-5, {2e-6, 5e-6}, KERNEL_CYCLES},      \
    [D_COMBINE_RATE] = {"combine_ratio", "ratio",       "rate of partial results, to the bandwidth", 0.02, 50,         \
                        {1, 0.3},        KERNEL_SM_RATE},                                                              \
    [D_NORM] = {"overlap", "exponent", "of the norm that joins blocks and memory: 1 no overlap", 0.7, 16,              \
                {2, 4},    KERNEL_KEPT},                                                                               \
    [D_STEP] = {"step_s", "s", "latency of a step over 128 keys", 1e-10, 5e-6, {2e-7, 5e-7}, KERNEL_CYCLES}

static const struct kernel_param decode_params[DECODE_N] = {
    DECODE_SHARED,
    [D_ROOM] = {"half_rate_width",
                "elements",
                "width of a head at which a block reads half as fast",
                64,
                4096,
                {256, 1024}, /* not a unit */
                KERNEL_KEPT},
    [D_OTHER] = {"window_s", "s", "what a window that hides keys adds", 1e-8, 1e-4, {1e-6, 1e-5}, KERNEL_CYCLES},
    [D_QUERY] =
        {"sequence_s", "s", "per sequence: cache indices and schedule", 1e-11, 1e-6, {1e-9, 1e-8}, KERNEL_CYCLES},
};

static const struct kernel_param mla_decode_params[DECODE_N] = {
    DECODE_SHARED,
    [D_ROOM] =
        {"sequence_s", "s", "per sequence: cache indices and schedule", 1e-11, 1e-6, {1e-9, 1e-8}, KERNEL_CYCLES},
    [D_OTHER] = {"compute_frac", "fraction", "of the peak rate", 0.02, 1, {0.5, 0.9}, KERNEL_KEPT},
    [D_QUERY] = {"query_ratio",
                 "ratio",
                 "rate of rotating and laying out queries, to the bandwidth",
                 0.05,
                 50,
                 {1, 10},
                 KERNEL_KEPT},
};

/* Features, then per split: blocks in a row, what they read and compute, steps, whether split, partial results. */
enum { D_MEMORY_S, D_BYTES, D_READ_S, D_WINDOWED, D_BATCH, D_QUERIES, D_SPLITS, D_SPLIT_N = 6 };
enum { D_ROWS = 64, MMA_ROWS = 8, SPLITS_MAX = 32, LATENT_SPLITS_MAX = 128 };
static const double splits[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128};

static void prepare_decode(const struct kernel *k, const struct hw *hw, const struct kernel_work *w,
                           struct kernel_features *out)
{
    const bool latent = k->kind == KERNEL_MLA_DECODE;
    const double sm = hw->sm_count, rate = hw->bandwidth_bytes_per_s, wide = k->head_dim + k->value_dim;
    const double peak = w->compute_s > 0 ? w->flops / w->compute_s : 1;
    const double keys = k->window > 0 ? fmin(k->window, k->context_tokens) : k->context_tokens;
    /* heads whose keys a block reads once */
    const double heads = latent ? 1 : k->ungrouped > 0 ? k->heads : k->kv_heads, group = k->heads / heads;
    const double splits_max = latent ? LATENT_SPLITS_MAX : is_flash2(k, hw) && group <= 1 ? 1 : SPLITS_MAX;
    const double units = k->batch * heads * ceil(group / D_ROWS), all = ceil(k->context_tokens / KEYS);
    const double blocks = k->window > 0 ? fmin(all, ceil(k->window / KEYS) + 1) : all;
    const double entry = (latent ? k->head_dim : wide) * k->kv_element_bytes, read = KEYS * entry;
    double *v = out->v;
    v[D_MEMORY_S] = w->memory_s;
    v[D_BYTES] = k->cold ? HUGE_VAL : w->bytes / hw->l2_bytes;
    v[D_READ_S] = units * keys * entry / rate;
    v[D_WINDOWED] = k->window > 0 && k->window < k->context_tokens;
    v[D_BATCH] = k->batch;
    v[D_QUERIES] = latent ? 2 * k->batch * k->heads * k->head_dim * k->element_bytes / rate : k->batch;
    size_t at = D_SPLITS;
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        const double s = splits[i];
        if (s > blocks || s > splits_max) break;
        const double waves = ceil(units * s / sm), steps = waves * ceil(blocks / s);
        v[at++] = waves;
        v[at++] = steps * read * sm / rate;
        v[at++] = latent ? steps * 2 * D_ROWS * KEYS * wide * sm / peak
                         : steps * read * sm / rate * (k->head_dim * k->head_dim);
        v[at++] = latent ? steps : steps * ceil(group / MMA_ROWS);
        v[at++] = s > 1;
        v[at++] = s > 1 ? s * k->batch * k->heads * k->value_dim * 8 / rate : 0;
    }
    out->n = at;
}

/* What the blocks of the best split take; compute: 1 / part of the peak, or 0 where flops do not count; hot_frac: of
 * the keys, in the cache. */
static double blocks_s(const struct kernel_features *f, const double *p, double compute, double hot_frac)
{
    const double *v = f->v, cold = 1 / p[D_MEMORY];
    const double hot = fmin(cold, 1 / p[D_HOT_RATE]), stream = 1 / p[D_STREAM], partial = 1 / p[D_COMBINE_RATE];
    const double memory_s = fmax(v[D_MEMORY_S] * (hot_frac * hot + (1 - hot_frac) * cold), v[D_READ_S] * hot);
    double best = HUGE_VAL, all_s = 0, combine_s = 0;
    for (size_t i = D_SPLITS; i < f->n; i += D_SPLIT_N) {
        const double own_s = v[i] * p[D_BLOCK] + v[i + 1] * stream + v[i + 2] * compute + v[i + 3] * p[D_STEP];
        const double sum_s = v[i + 4] * p[D_COMBINE] + v[i + 5] * partial;
        const double both_s =
            sqrt(own_s * own_s + memory_s * memory_s) + sum_s; /* chosen by the norm of 2: no powers */
        if (both_s >= best) continue;
        best = both_s;
        all_s = own_s;
        combine_s = sum_s;
    }
    return kernel_norm(all_s, memory_s, p[D_NORM]) + combine_s;
}

static double decode_s(const struct kernel_features *f, const double *p)
{
    return p[D_START] + blocks_s(f, p, 1 / (p[D_STREAM] * p[D_ROOM] * p[D_ROOM]), kernel_hot_frac(f->v[D_BYTES], 0.5)) +
           f->v[D_WINDOWED] * p[D_OTHER] + f->v[D_QUERIES] * p[D_QUERY];
}

static double mla_decode_s(const struct kernel_features *f, const double *p)
{
    return p[D_START] + blocks_s(f, p, 1 / p[D_OTHER], 0) + f->v[D_BATCH] * p[D_ROOM] + f->v[D_QUERIES] / p[D_QUERY];
}

#define DECODE_FORM(name_, params_, time_)                                                                             \
    {                                                                                                                  \
        .name = (name_), .meaning = "start + norm(blocks of the best split over the SMs, memory) + combination",       \
        .params = (params_), .n_params = DECODE_N, .prepare = prepare_decode, .time_s = (time_)                        \
    }

const struct kernel_form kernel_decode_form = DECODE_FORM("split keys", decode_params, decode_s);
const struct kernel_form kernel_mla_decode_form = DECODE_FORM("split latents", mla_decode_params, mla_decode_s);
