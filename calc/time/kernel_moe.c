/* Routed experts: permute, grouped products in waves of tiles, combine. */
#include <math.h>
#include <string.h>

#include "calc/time/kernel.h"

enum { START, COMPUTE, FEED, WAVE, MEMORY, NORM, PERMUTE, EXPERT, TOKEN, FOREIGN, THROTTLE, SORT, PARAMS_N };

static const struct kernel_param params[PARAMS_N] = {
    [START] = {"start_s", "s", "start-up of all kernels", 1e-6, 2e-4, {2e-5, 3e-5}, KERNEL_CYCLES},
    [COMPUTE] = {"compute_frac", "fraction", "of the peak rate inside a tile", 0.03, 1, {0.8, 0.4}, KERNEL_KEPT},
    [FEED] = {"feed_ratio",
              "ratio",
              "rate at which one SM is fed, to its share of the bandwidth",
              0.2,
              60,
              {4, 1.5},
              KERNEL_SM_RATE},
    [WAVE] = {"wave_s", "s", "start and end of a wave of tiles", 1e-9, 5e-5, {1e-6, 3e-6}, KERNEL_CYCLES},
    [MEMORY] = {"memory_frac", "fraction", "of the bandwidth", 0.05, 1, {0.9, 0.7}, KERNEL_KEPT},
    [NORM] = {"overlap",
              "exponent",
              "of the norm that joins compute and memory: 1 no overlap",
              0.7,
              16,
              {2, 1.2},
              KERNEL_KEPT},
    [PERMUTE] = {"permute_frac",
                 "fraction",
                 "of the bandwidth, for rows gathered, activated and summed",
                 0.01,
                 1,
                 {0.5, 0.2},
                 KERNEL_KEPT},
    [EXPERT] = {"expert_s", "s", "per expert of this rank", 1e-11, 1e-6, {3e-8, 1e-8}, KERNEL_CYCLES},
    [TOKEN] = {"token_ratio",
               "ratio",
               "rate of reading and writing rows of all tokens of all ranks, to the bandwidth",
               0.02,
               1e4,
               {1, 100},
               KERNEL_KEPT},
    [FOREIGN] = {"foreign_ratio",
                 "ratio",
                 "rate of passing over rows of other ranks, to the bandwidth",
                 0.02,
                 1e4,
                 {100, 1},
                 KERNEL_KEPT},
    [THROTTLE] = {"throttle_frac",
                  "fraction",
                  "of time that long products lose to lower clocks",
                  1e-3,
                  1,
                  {0.1, 0.02},
                  KERNEL_KEPT},
    [SORT] = {"sort_s",
              "s",
              "sorting tokens by expert, of a kernel that does not sort a few",
              1e-8,
              5e-5,
              {1e-5, 2e-5},
              KERNEL_CYCLES},
};

/* Features, then per tile: compute, feed and waves of the first products, of the last. */
enum { UP_S, DOWN_S, HOT, PERMUTE_S, EXPERTS, TOKENS_S, FOREIGN_S, SORTED, TILES, TILE_N = 6 };

static const double rows_tiles[] = {16, 32, 64, 128, 256};
enum { INSTRUCTION_ROWS = 64 }; /* of Hopper's matrix instruction */
static const double column_tiles[] = {32, 64, 128, 256};

struct load {
    double active, mean, most; /* experts with rows; rows of one */
};

struct operands {
    double fed_bytes, weight_bytes; /* of an element */
};

/* Waves of one grouped product [rows of each expert, depth] x [depth, columns]. */
static void add_product(const struct load *l, const struct operands *b, double columns, double depth, double tm,
                        double tn, double sm, double *c)
{
    const double per_expert = ceil(l->mean / tm);
    const double blocks = (l->active * per_expert + ceil(l->most / tm) - per_expert) * ceil(columns / tn);
    const double waves = fmax(1, blocks / sm);
    c[0] += waves * 2 * tm * tn * depth;
    c[1] += waves * (tm * b->fed_bytes + tn * b->weight_bytes) * depth;
    c[2] += waves;
}

static void prepare(const struct kernel *k, const struct hw *hw, const struct kernel_work *w,
                    struct kernel_features *out)
{
    const double sm = hw->sm_count, rate = hw->bandwidth_bytes_per_s, hidden = k->hidden / k->tp;
    const double pairs = k->tokens * k->topk, local = k->experts / k->ep;
    const double active =
        isnan(k->active_experts) ? kernel_experts(k->tokens, k->topk, k->experts) / k->ep : k->active_experts;
    const double rows = isnan(k->routed_rows) ? pairs / k->ep : k->routed_rows;
    const double mean = rows / fmax(active, 1), most = isnan(k->max_rows) ? mean : k->max_rows;
    const struct load l = {active, mean, fmax(mean, most)};
    const struct operands b = {kernel_fed_bytes(k), k->element_bytes};
    double *v = out->v;
    v[DOWN_S] = active * k->width * hidden * k->element_bytes / rate;
    v[UP_S] = (1 + k->gated) * v[DOWN_S];
    v[HOT] = k->cold ? 0 : kernel_hot_frac((v[UP_S] + v[DOWN_S]) * rate, hw->l2_bytes);
    v[PERMUTE_S] = rows * 2 * (3 * k->width + (2 + k->gated) * hidden) / rate;
    v[EXPERTS] = local;
    v[TOKENS_S] = 2 * k->tokens * k->width * 2 / rate; /* bf16, read and written */
    v[FOREIGN_S] = (pairs - fmin(rows, pairs)) * 2 * (k->width + (1 + k->gated) * hidden) / rate;
    v[SORTED] = k->sparse > 0 && (k->ep > 1 || pairs * k->sparse > k->experts);
    const double flops_s = w->flops > 0 ? sm * w->compute_s / w->flops : 0;
    const double least = k->tile_rows > 0 ? k->tile_rows : INSTRUCTION_ROWS;
    size_t at = TILES;
    for (size_t i = 0; i < sizeof rows_tiles / sizeof rows_tiles[0]; i++) {
        if (rows_tiles[i] < least) continue;
        for (size_t j = 0; j < sizeof column_tiles / sizeof column_tiles[0]; j++) {
            double *c = v + at;
            memset(c, 0, TILE_N * sizeof *c);
            add_product(&l, &b, (1 + k->gated) * hidden, k->width, rows_tiles[i], column_tiles[j], sm, c);
            add_product(&l, &b, k->width, hidden, rows_tiles[i], column_tiles[j], sm, c + TILE_N / 2);
            for (size_t product = 0; product < TILE_N; product += TILE_N / 2) {
                c[product] *= flops_s;
                c[product + 1] *= sm / rate;
            }
            at += TILE_N;
        }
    }
    out->n = at;
}

static double time_s(const struct kernel_features *f, const double *p)
{
    const double *v = f->v, compute = 1 / p[COMPUTE], feed = 1 / p[FEED];
    const double memory = v[HOT] + (1 - v[HOT]) / p[MEMORY]; /* from the cache: at the bandwidth of memory */
    double up = HUGE_VAL, down = HUGE_VAL;
    for (size_t i = TILES; i < f->n; i += TILE_N) {
        const double first = v[i] * compute + v[i + 1] * feed + v[i + 2] * p[WAVE];
        const double last = v[i + 3] * compute + v[i + 4] * feed + v[i + 5] * p[WAVE];
        if (first + last >= up + down) continue;
        up = first;
        down = last;
    }
    const double slower = kernel_throttle(up + down, p[THROTTLE]);
    return p[START] + kernel_norm(up * slower, v[UP_S] * memory, p[NORM]) +
           kernel_norm(down * slower, v[DOWN_S] * memory, p[NORM]) + v[PERMUTE_S] / p[PERMUTE] +
           v[EXPERTS] * p[EXPERT] + v[TOKENS_S] / p[TOKEN] + v[FOREIGN_S] / p[FOREIGN] + v[SORTED] * p[SORT];
}

const struct kernel_form kernel_moe_form = {
    .name = "grouped tiles",
    .meaning = "start + both products, each norm(waves of the fastest tile, weights of active experts) + rows + "
               "experts + tokens",
    .params = params,
    .n_params = PARAMS_N,
    .prepare = prepare,
    .time_s = time_s,
};
