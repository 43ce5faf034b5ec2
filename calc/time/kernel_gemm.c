/* Dense products: the fastest of a set of tiles and splits of k, each in waves over the SMs. */
#include <math.h>
#include <stdint.h>

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

/* What all candidates of a call have in common. */
struct product {
    double rows, columns, depth, groups, sm, rate, rate_s;    /* rate_s: of one SM, per flop */
    double fed_bytes, weight_bytes;                           /* of an element */
    double tall[COUNT(tile_rows)], wide[COUNT(tile_columns)]; /* tiles in a column, in a row */
    double split_depth[COUNT(splits)];                        /* k of a split, in whole steps */
    size_t splits_n;
    bool narrow; /* block scales */
};

/* With block scales partial products are added up outside the matrix unit, every 128 of k, and k is not split (DeepGEMM
 * splits nothing); tiles of 64 rows describe what is measured. */
static struct product product_of(const struct kernel *k, const struct hw *hw, const struct kernel_work *w)
{
    struct product x = {.rows = k->m,
                        .columns = k->n,
                        .depth = k->k,
                        .groups = k->groups,
                        .sm = hw->sm_count,
                        .rate = hw->bandwidth_bytes_per_s,
                        .fed_bytes = kernel_fed_bytes(k),
                        .weight_bytes = k->element_bytes,
                        .narrow = k->quant == KERNEL_QUANT_BLOCK && k->kind == KERNEL_GEMM};
    x.rate_s = w->flops > 0 ? x.sm * w->compute_s / w->flops : 0;
    for (size_t i = 0; i < COUNT(tile_rows); i++) x.tall[i] = ceil(x.rows / tile_rows[i]);
    for (size_t i = 0; i < COUNT(tile_columns); i++) x.wide[i] = ceil(x.columns / tile_columns[i]);
    for (size_t i = 0; i < COUNT(splits); i++) {
        if (i > 0 && (x.narrow || x.depth / splits[i] < 2 * K_STEP)) break;
        x.split_depth[x.splits_n++] = ceil(x.depth / splits[i] / K_STEP) * K_STEP;
    }
    return x;
}

/* As ceil, of what is not below 0; it is asked for each candidate. */
static inline double up(double x)
{
    if (!(x < 0x1p52)) return x;
    const double whole = (double)(int64_t)x;
    return whole < x ? whole + 1 : whole;
}

static inline void candidate(const struct product *x, double tm, double tn, double blocks, size_t split, double *c)
{
    const double s = splits[split], depth = x->split_depth[split], sm = x->sm, rate = x->rate;
    const double tiles = blocks * s, even = tiles / sm > 1 ? tiles / sm : 1, waves = up(tiles / sm);
    c[0] = waves * 2 * tm * tn * depth * x->rate_s;
    c[1] = even * 2 * tm * tn * depth * x->rate_s;
    c[2] = waves * (tm * x->fed_bytes + tn * x->weight_bytes) * depth * sm / rate;
    c[3] = waves * tm * tn * 2 * sm / rate;
    c[4] = split > 0 ? s * x->groups * x->rows * x->columns * 8 / rate : 0;
    c[5] = x->narrow ? waves * ceil(x->depth / PROMOTE) : split > 0;
}

/* Features before the candidates. */
static void moves(const struct kernel *k, const struct hw *hw, double v[CANDIDATES])
{
    const double rate = hw->bandwidth_bytes_per_s, fed = kernel_fed_bytes(k), b = k->element_bytes;
    const double input = k->groups * k->m * k->k * fed, weights = k->groups * k->n * k->k * b;
    const double output = k->groups * k->m * k->n * 2;
    v[INPUT_S] = input / rate;
    v[WEIGHT_S] = weights / rate;
    v[OUTPUT_S] = output / rate;
    v[REUSE] = (input + weights + output) / hw->l2_bytes;
    v[COPIES] = k->cold ? HUGE_VAL : (input + COPIES_N * weights + output) / hw->l2_bytes;
}

static void prepare(const struct kernel *k, const struct hw *hw, const struct kernel_work *w,
                    struct kernel_features *out)
{
    const struct product x = product_of(k, hw, w);
    double *v = out->v;
    size_t n = 0;
    moves(k, hw, v);
    for (size_t t = 0; t < COUNT(tile_rows) * COUNT(tile_columns); t++) {
        const size_t row = t / COUNT(tile_columns), column = t % COUNT(tile_columns);
        if (x.narrow && row > 0) continue;
        const double blocks = x.groups * (x.tall[row] * x.wide[column]);
        for (size_t i = 0; i < x.splits_n; i++) {
            double *c = v + CANDIDATES + CANDIDATE_N * n;
            candidate(&x, tile_rows[row], tile_columns[column], blocks, i, c);
            /* a fit asks often and saves by it; a step asks once */
            if (k->cold || !dominated(v + CANDIDATES, n, c)) n++;
        }
    }
    out->n = CANDIDATES + CANDIDATE_N * n;
}

/* What parameters make of candidates, and the fastest. */
struct fastest {
    double whole, part, feed, store, split, split_start;
    double best_s, partial_s;
};

static struct fastest fastest_open(const double *p)
{
    return (struct fastest){.whole = (1 - p[ROUND]) / p[COMPUTE],
                            .part = p[ROUND] / p[COMPUTE],
                            .feed = 1 / p[FEED],
                            .store = p[STORE],
                            .split = 1 / p[SPLIT],
                            .split_start = p[SPLIT_START],
                            .best_s = HUGE_VAL};
}

static inline void consider(struct fastest *f, const double *c)
{
    const double compute_s = c[0] * f->whole + c[1] * f->part, feed_s = c[2] * f->feed;
    const double waves_s = (compute_s > feed_s ? compute_s : feed_s) + c[3] / f->store;
    const double split_s = c[4] * f->split + c[5] * f->split_start;
    if (waves_s + split_s >= f->best_s) return;
    f->best_s = waves_s + split_s;
    f->partial_s = c[4] > 0 ? split_s : 0; /* of scaled blocks the product itself sums */
}

static double whole_s(const double v[CANDIDATES], const struct fastest *f, const double *p)
{
    const double cold = 1 / p[MEMORY], hot = fmin(cold, 1 / p[HOT_RATE]);
    const double input_hot = kernel_hot_frac(v[REUSE], p[HOT_ROOM]),
                 weight_hot = kernel_hot_frac(v[COPIES], p[HOT_ROOM]);
    const double memory_s = v[INPUT_S] * (input_hot * hot + (1 - input_hot) * cold) +
                            v[WEIGHT_S] * (weight_hot * hot + (1 - weight_hot) * cold) + v[OUTPUT_S] * cold;
    const double compute_s = f->best_s - f->partial_s;
    return p[START] + f->partial_s +
           kernel_norm(compute_s * kernel_throttle(compute_s, p[THROTTLE]), memory_s, p[NORM]);
}

static double time_s(const struct kernel_features *f, const double *p)
{
    struct fastest x = fastest_open(p);
    for (size_t i = CANDIDATES; i < f->n; i += CANDIDATE_N) consider(&x, f->v + i);
    return whole_s(f->v, &x, p);
}

/* Nothing of the candidates is kept. A tile whose flops alone, spread evenly, take longer than the fastest so far is
 * not looked at: whatever the splits, k is no less and waves are no fewer. */
static double once_s(const struct kernel *k, const struct hw *hw, const struct kernel_work *w, const double *p)
{
    const struct product x = product_of(k, hw, w);
    const double close = 1 + 1e-9; /* of roundings */
    struct fastest f = fastest_open(p);
    double v[CANDIDATES], c[CANDIDATE_N];
    moves(k, hw, v);
    for (size_t row = 0; row < (x.narrow ? 1 : COUNT(tile_rows)); row++)
        for (size_t column = 0; column < COUNT(tile_columns); column++) {
            const double tm = tile_rows[row], tn = tile_columns[column];
            const double blocks = x.groups * (x.tall[row] * x.wide[column]);
            if (blocks / x.sm * 2 * tm * tn * x.depth * x.rate_s * (f.whole + f.part) > f.best_s * close) continue;
            for (size_t i = 0; i < x.splits_n; i++) {
                candidate(&x, tm, tn, blocks, i, c);
                consider(&f, c);
            }
        }
    return whole_s(v, &f, p);
}

const struct kernel_form kernel_gemm_form = {
    .name = "tiles",
    .meaning = "start + norm(waves of the fastest tile, memory) + partial sums",
    .params = params,
    .n_params = PARAMS_N,
    .prepare = prepare,
    .time_s = time_s,
    .once_s = once_s,
};
