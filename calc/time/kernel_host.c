/* One core of a CPU, whatever the kernel: it computes, and it waits for memory, and does little of both at once. */
#include <math.h>

#include "calc/time/kernel.h"

enum { START, COMPUTE, HALF_ROWS, MEMORY, EXPOSED, SUM, CORE, WAIT, LAY_OUT, ROLLED_ROWS, PARAMS_N };

static const struct kernel_param params[PARAMS_N] = {
    [START] = {"start_s", "s", "start-up of a call", 1e-8, 1e-3, {1e-6, 1e-5}, KERNEL_KEPT},
    [COMPUTE] = {"compute_frac", "fraction", "of the peak rate, with many rows", 0.02, 1, {0.85, 0.5}, KERNEL_KEPT},
    [HALF_ROWS] = {"half_rows", "rows", "at which half of that rate is reached", 1e-3, 128, {0.1, 8}, KERNEL_KEPT},
    [MEMORY] = {"memory_frac",
                "fraction",
                "of the bandwidth, or of the cache's that holds the operands",
                0.05,
                1,
                {0.9, 0.7},
                KERNEL_KEPT},
    [EXPOSED] = {"exposed",
                 "fraction",
                 "of the time of memory that no computing hides: 1 the sum of both",
                 0.01,
                 1,
                 {0.5, 0.1},
                 KERNEL_KEPT},
    [SUM] = {"sum_s",
             "s",
             "of every sum of its own: a result of a product, a key of a cache, a score of a prompt",
             1e-12,
             1e-6,
             {1e-10, 1e-8},
             KERNEL_KEPT},
    [CORE] = {"core_frac",
              "fraction",
              "of the rate of the second cache that the core takes in, wherever from",
              0.05,
              1,
              {0.9, 0.6},
              KERNEL_KEPT},
    [WAIT] = {"wait_s",
              "s",
              "of every piece that comes from memory, until what is fetched ahead of it is there",
              1e-12,
              1e-6,
              {1e-8, 1e-10},
              KERNEL_KEPT},
    [LAY_OUT] = {"lay_out_s",
                 "s",
                 "of every activation of a product, laid out or quantised before it",
                 1e-12,
                 1e-8,
                 {3e-10, 1e-11},
                 KERNEL_KEPT},
    [ROLLED_ROWS] = {"rolled_rows",
                     "rows",
                     "at which half of the rate is reached by heads of a width that no loop is written out for",
                     1e-3,
                     128,
                     {4, 0.5},
                     KERNEL_KEPT},
};

/* FAR: the part of the operands that comes from memory and no cache; BUSY_SUMS: those that are made while the next row
 * comes; ROLLED: 1 where the loops over a row are not written out */
enum { COMPUTE_S, MEMORY_S, ROWS, PIECES, CORE_S, FAR, ACTIVATIONS, SUMS, BUSY_SUMS, ROLLED, FEATURES_N };

/* Decode attention takes so many query heads of a group together, and one alone (kernels/attend.h); what is left of a
 * group is filled up with queries of 0. */
enum { HEADS_TOGETHER = 4, USUAL_WIDTH = 128 /* of a head, whose loops are written out */ };

static double together_of(const struct kernel *k) { return k->heads > k->kv_heads ? HEADS_TOGETHER : 1; }

/* Rounds over the same rows that a group takes. */
static double rounds_of(const struct kernel *k) { return ceil(k->heads / fmax(1, k->kv_heads) / together_of(k)); }

/* Tiles in which the values of a row are summed: 128 elements of one head, 64 of several, what is left in registers of
 * 64 bytes. Loops that are written out read 16-bit rows to their end. */
static double tiles_of(const struct kernel *k)
{
    const double wide = together_of(k) > 1 ? 64 : 128;
    const double bytes = k->kv_element_bytes > 2 ? 4 : 2;
    if (k->value_dim == USUAL_WIDTH && bytes < 4) return 1;
    return fmax(1, floor(k->value_dim / wide) + ceil(fmod(k->value_dim, wide) * bytes / 64));
}

/* Rows that share one reading of the weights, or of the cache; infinite where the kernel has none. */
static double rows_of(const struct kernel *k)
{
    switch (k->kind) {
    case KERNEL_GEMM:
    case KERNEL_MLA_BMM: return k->m;
    case KERNEL_DECODE: return together_of(k);
    case KERNEL_MLA_DECODE: return k->heads / fmax(1, k->kv_heads);
    case KERNEL_PREFILL: /* what is masked of a block of keys is computed, and is more of a short prompt */
    case KERNEL_MLA_PREFILL: return k->query_tokens;
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

/* Rows of keys that a decode reads. */
static double key_rows_of(const struct kernel *k)
{
    const double keys = k->window > 0 ? fmin(k->window, k->context_tokens) : k->context_tokens;
    return k->batch * keys * k->kv_heads;
}

/* What is begun anew: the sum over a row of weights, where the next one is fetched; a tile of values behind the first,
 * whose rows were left before their end; of a prompt, and of absorbed heads, every score, for its exponential. */
static double pieces_of(const struct kernel *k)
{
    switch (k->kind) {
    case KERNEL_GEMM:
    case KERNEL_MLA_BMM: return k->groups * k->n;
    case KERNEL_DECODE: return key_rows_of(k) * (tiles_of(k) - 1);
    case KERNEL_MLA_DECODE: return k->batch * k->context_tokens * k->heads;
    case KERNEL_PREFILL:
    case KERNEL_MLA_PREFILL: return k->batch * k->heads * kernel_pairs(k->query_tokens, k->prefix_tokens, k->window);
    case KERNEL_MOE:
    case KERNEL_MLP: {
        const double experts = isnan(k->active_experts)
                                   ? kernel_experts(k->tokens, k->topk, k->experts) / fmax(1, k->ep)
                                   : k->active_experts;
        return experts * ((1 + k->gated) * k->hidden / fmax(1, k->tp) + k->width);
    }
    case KERNEL_ELEMENTWISE: return k->m > 0 ? k->m : 0;
    case KERNEL_SCAN:
    case KERNEL_CONV:
    case KERNEL_COLLECTIVE:
    case KERNEL_KINDS_N: break;
    }
    return 0;
}

/* Sums whose lanes are added up: each result of a product, so of a row of weights as many as share its reading. Else
 * one a piece; those of a decode are made while rows come, in busy_sums_of. */
static double sums_of(const struct kernel *k)
{
    switch (k->kind) {
    case KERNEL_GEMM:
    case KERNEL_MLA_BMM: return k->groups * k->m * k->n;
    case KERNEL_MOE:
    case KERNEL_MLP:
        return k->tokens * k->topk / fmax(1, k->ep) * ((1 + k->gated) * k->hidden / fmax(1, k->tp) + k->width);
    case KERNEL_DECODE: return 0;
    case KERNEL_MLA_DECODE:
    case KERNEL_PREFILL:
    case KERNEL_MLA_PREFILL:
    case KERNEL_SCAN:
    case KERNEL_CONV:
    case KERNEL_ELEMENTWISE:
    case KERNEL_COLLECTIVE:
    case KERNEL_KINDS_N: break;
    }
    return pieces_of(k);
}

/* Those of heads that are taken together: their scores of a key, and each tile of its values, taken up and left. */
static double busy_sums_of(const struct kernel *k)
{
    return k->kind == KERNEL_DECODE ? key_rows_of(k) * rounds_of(k) * tiles_of(k) : 0;
}

/* Heads that are computed over those that there are. */
static double filled_up(const struct kernel *k)
{
    if (k->kind != KERNEL_DECODE) return 1;
    return together_of(k) * rounds_of(k) * fmax(1, k->kv_heads) / fmax(1, k->heads);
}

/* Activations that go into products of weights: elements. */
static double activations_of(const struct kernel *k)
{
    switch (k->kind) {
    case KERNEL_GEMM:
    case KERNEL_MLA_BMM: return k->groups * k->m * k->k;
    case KERNEL_MOE:
    case KERNEL_MLP: return k->tokens * k->topk / fmax(1, k->ep) * (k->width + k->hidden / fmax(1, k->tp));
    case KERNEL_DECODE:
    case KERNEL_MLA_DECODE:
    case KERNEL_PREFILL:
    case KERNEL_MLA_PREFILL:
    case KERNEL_SCAN:
    case KERNEL_CONV:
    case KERNEL_ELEMENTWISE:
    case KERNEL_COLLECTIVE:
    case KERNEL_KINDS_N: break;
    }
    return 0;
}

/* Of a cold call all comes from memory. Of a hot one whose caches were measured beside it the part x that makes up for
 * the rate that was found, 1/found = x/memory + (1 - x)/cache: an operand of most of the last cache does not stay
 * whole. */
static double far_of(const struct kernel *k, const struct hw *hw, const struct kernel_work *w)
{
    const double memory = hw->bandwidth_bytes_per_s, cache = hw_cache_rate(hw, w->bytes);
    if (k->cold) return 1;
    if (!(k->memory_slower > 1) || !(cache > memory)) return 0;
    return fmin(1, (k->memory_slower - 1) / (cache / memory - 1));
}

static void prepare(const struct kernel *k, const struct hw *hw, const struct kernel_work *w,
                    struct kernel_features *out)
{
    const double second = hw->cache_bytes_per_s[1];
    out->v[COMPUTE_S] = w->compute_s * filled_up(k);
    out->v[MEMORY_S] = w->memory_s;
    out->v[ROWS] = rows_of(k);
    out->v[FAR] = far_of(k, hw, w);
    out->v[ACTIVATIONS] = activations_of(k);
    out->v[PIECES] = pieces_of(k);
    out->v[SUMS] = sums_of(k);
    out->v[BUSY_SUMS] = busy_sums_of(k);
    out->v[ROLLED] = k->kind == KERNEL_DECODE && k->head_dim != USUAL_WIDTH;
    out->v[CORE_S] = second > 0 ? w->bytes / second : 0;
    out->n = FEATURES_N;
}

static double time_s(const struct kernel_features *f, const double *p)
{
    const double half = f->v[ROLLED] > 0 ? p[ROLLED_ROWS] : p[HALF_ROWS];
    const double compute_s = f->v[COMPUTE_S] / p[COMPUTE] * (1 + half / f->v[ROWS]) + f->v[BUSY_SUMS] * p[SUM];
    const double busy_s = compute_s + p[EXPOSED] * f->v[FAR] * f->v[MEMORY_S] / p[MEMORY];
    const double memory_s = fmax(f->v[MEMORY_S] / p[MEMORY], f->v[CORE_S] / p[CORE]);
    const double pieces_s = f->v[SUMS] * p[SUM] + f->v[PIECES] * f->v[FAR] * p[WAIT];
    return p[START] + fmax(busy_s, memory_s) + pieces_s + f->v[ACTIVATIONS] * p[LAY_OUT];
}

const struct kernel_form kernel_host_form = {
    .name = "core",
    .meaning =
        "start + max(compute at the rate of so many rows + exposed memory, memory, core) + sums + waits + layout",
    .params = params,
    .n_params = PARAMS_N,
    .prepare = prepare,
    .time_s = time_s,
};
