/* Dense products: the fastest of a set of tiles and splits of k, each in waves over the SMs. */
#include <math.h>

#include "calc/time/kernel.h"

enum { START, COMPUTE, FEED, STORE, MEMORY, NORM, SPLIT, SPLIT_START, ROUND, HOT_RATE, HOT_ROOM, THROTTLE, PARAMS_N };

static const struct kernel_param params[PARAMS_N] = {
    [START] = {"start_s", "s", "start-up", 1e-7, 3e-5, {3e-6, 2e-6}, KERNEL_CYCLES},
    [COMPUTE] = {"compute_frac", "fraction", "of the peak rate inside a tile", 0.05, 1, {0.85, 0.7}, KERNEL_KEPT},
    [FEED] = {"feed_ratio",
              "ratio",
              "rate at which one SM is fed, to its share of the bandwidth",
              0.3,
              60,
              {5, 2},
              KERNEL_SM_FEED},
    [STORE] = {"store_ratio",
               "ratio",
               "rate at which one SM stores its tile, to its share of the bandwidth",
               0.2,
               1000,
               {3, 1},
               KERNEL_SM_RATE},
    [MEMORY] = {"memory_frac", "fraction", "of the bandwidth", 0.05, 1, {0.85, 0.95}, KERNEL_KEPT},
    [NORM] = {"overlap",
              "exponent",
              "of the norm that joins compute and memory: 1 no overlap",
              0.7,
              16,
              {3, 1.5},
              KERNEL_KEPT},
    [SPLIT] = {"split_ratio", "ratio", "rate of partial sums, to the bandwidth", 0.1, 50, {2, 1}, KERNEL_SM_RATE},
    [SPLIT_START] = {"split_s",
                     "s",
                     "start-up of the sum over splits; of block scales, the sum after 128 of k",
                     1e-8,
                     3e-5,
                     {2e-6, 1e-6},
                     KERNEL_CYCLES},
    [ROUND] = {"ragged_frac",
               "fraction",
               "of the last wave's idle SMs that find other work",
               1e-3,
               1,
               {0.1, 0.5},
               KERNEL_KEPT},
    [HOT_RATE] = {"hot_ratio",
                  "ratio",
                  "rate of what is in the last-level cache, to the bandwidth",
                  1,
                  20,
                  {2.5, 4},
                  KERNEL_SM_RATE},
    [HOT_ROOM] =
        {"hot_frac", "fraction", "of the last-level cache that keeps operands", 0.05, 1, {0.7, 0.4}, KERNEL_KEPT},
    [THROTTLE] = {"throttle_frac",
                  "fraction",
                  "of time that long products lose to lower clocks",
                  1e-3,
                  1,
                  {0.1, 0.02},
                  KERNEL_KEPT},
};

/* Features: memory_s of inputs, weights and output; their bytes, then candidates. */
enum { INPUT_S, WEIGHT_S, OUTPUT_S, REUSE, COPIES, CANDIDATES, CANDIDATE_N = 6 };
enum { COPIES_N = 6, K_STEP = 64, PROMOTE = 128 };

static const double tile_rows[] = {64, 128, 192, 256};
static const double tile_columns[] = {32, 64, 96, 128, 192, 256};
static const double splits[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Whether one of n candidates is no slower whatever the parameters. */
static bool dominated(const double *v, size_t n, const double *c)
{
    for (size_t i = 0; i < n; i++) {
        const double *o = v + CANDIDATE_N * i;
        size_t j = 0;
        while (j < CANDIDATE_N && o[j] <= c[j]) j++;
        if (j == CANDIDATE_N) return true;
    }
    return false;
}

double kernel_tiles(double m, double n, double rows, double columns) { return ceil(m / rows) * ceil(n / columns); }

double kernel_waves(double tiles, double units) { return ceil(tiles / units); }

static void prepare(const struct kernel *k, const struct hw *hw, const struct kernel_work *w,
                    struct kernel_features *out)
{
    const double sm = hw->sm_count, rate = hw->bandwidth_bytes_per_s, b = k->element_bytes;
    const double fed = kernel_fed_bytes(k), input = k->groups * k->m * k->k * fed,
                 weights = k->groups * k->n * k->k * b;
    const double output = k->groups * k->m * k->n * 2;
    double *v = out->v;
    v[INPUT_S] = input / rate;
    v[WEIGHT_S] = weights / rate;
    v[OUTPUT_S] = output / rate;
    v[REUSE] = (input + weights + output) / hw->l2_bytes;
    v[COPIES] = k->cold ? HUGE_VAL : (input + COPIES_N * weights + output) / hw->l2_bytes;
    const double rate_s = w->flops > 0 ? sm * w->compute_s / w->flops : 0; /* of one SM, per flop */
    /* with block scales partial products are added up outside the matrix unit, every 128 of k, and k is not split;
     * tiles of 64 rows describe what is measured */
    const bool narrow = k->quant == KERNEL_QUANT_BLOCK && k->kind == KERNEL_GEMM;
    size_t n = 0;
    for (size_t t = 0; t < COUNT(tile_rows) * COUNT(tile_columns); t++) {
        const double tm = tile_rows[t / COUNT(tile_columns)], tn = tile_columns[t % COUNT(tile_columns)];
        if (narrow && tm > 64) continue;
        const double blocks = k->groups * kernel_tiles(k->m, k->n, tm, tn);
        for (size_t i = 0; i < COUNT(splits); i++) {
            const double s = splits[i], depth = ceil(k->k / s / K_STEP) * K_STEP;
            if (s > 1 && (narrow || k->k / s < 2 * K_STEP)) break; /* DeepGEMM splits nothing */
            const double waves = kernel_waves(blocks * s, sm), even = fmax(1, blocks * s / sm);
            const double c[CANDIDATE_N] = {waves * 2 * tm * tn * depth * rate_s,
                                           even * 2 * tm * tn * depth * rate_s,
                                           waves * (tm * fed + tn * b) * depth * sm / rate,
                                           waves * tm * tn * 2 * sm / rate,
                                           s > 1 ? s * k->groups * k->m * k->n * 8 / rate : 0,
                                           narrow ? waves * ceil(k->k / PROMOTE) : s > 1};
            /* a fit asks often and saves by it; a step asks once */
            if (!k->cold && dominated(v + CANDIDATES, n, c)) continue;
            for (size_t j = 0; j < CANDIDATE_N; j++) v[CANDIDATES + CANDIDATE_N * n + j] = c[j];
            n++;
        }
    }
    out->n = CANDIDATES + CANDIDATE_N * n;
}

static double time_s(const struct kernel_features *f, const double *p)
{
    const double *v = f->v, whole = (1 - p[ROUND]) / p[COMPUTE], part = p[ROUND] / p[COMPUTE], feed = 1 / p[FEED],
                 split = 1 / p[SPLIT];
    const double cold = 1 / p[MEMORY], hot = fmin(cold, 1 / p[HOT_RATE]);
    const double input_hot = kernel_hot_frac(v[REUSE], p[HOT_ROOM]),
                 weight_hot = kernel_hot_frac(v[COPIES], p[HOT_ROOM]);
    const double memory_s = v[INPUT_S] * (input_hot * hot + (1 - input_hot) * cold) +
                            v[WEIGHT_S] * (weight_hot * hot + (1 - weight_hot) * cold) + v[OUTPUT_S] * cold;
    double best = HUGE_VAL, partial_s = 0;
    for (size_t i = CANDIDATES; i < f->n; i += CANDIDATE_N) {
        const double waves_s = fmax(v[i] * whole + v[i + 1] * part, v[i + 2] * feed) + v[i + 3] / p[STORE];
        const double split_s = v[i + 4] * split + v[i + 5] * p[SPLIT_START];
        if (waves_s + split_s >= best) continue;
        best = waves_s + split_s;
        partial_s = v[i + 4] > 0 ? split_s : 0; /* of scaled blocks the product itself sums */
    }
    const double compute_s = best - partial_s;
    return p[START] + partial_s + kernel_norm(compute_s * kernel_throttle(compute_s, p[THROTTLE]), memory_s, p[NORM]);
}

const struct kernel_form kernel_gemm_form = {
    .name = "tiles",
    .meaning = "start + norm(waves of the fastest tile, memory) + partial sums",
    .params = params,
    .n_params = PARAMS_N,
    .prepare = prepare,
    .time_s = time_s,
};
