/* One core of a CPU: its caches, the work of a call, the form of its times, and a fit that finds known parameters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calc/fit/efficiency.h"
#include "calc/fit/fit.h"
#include "tests/scratch.h"

#define assert_near(x, y, most) assert_true(fabs((x) - (y)) <= (most))

static const double FP32 = 1.13e11, BF16 = 2.29e11, READ = 3.3e10;

static struct hw core(void)
{
    const double nan = (double)NAN;
    struct hw hw = {.file = "core",
                    .key = "core",
                    .name = "Core",
                    .device_kind = "cpu",
                    .bandwidth_bytes_per_s = READ,
                    .sm_count = 1,
                    .l2_bytes = 31e6,
                    .clock_mhz = nan,
                    .cache_bytes = {49152, 1.9e6, 31e6},
                    .cache_bytes_per_s = {2.1e11, 1.2e11, 8.3e10}};
    for (size_t i = 0; i < HW_DTYPES_N; i++) hw.peak_flops_per_s[i] = nan;
    hw.peak_flops_per_s[HW_FP32_VECTOR] = FP32;
    hw.peak_flops_per_s[HW_BF16] = BF16;
    return hw;
}

static struct kernel product(double m, double n, double k, bool cold)
{
    return (struct kernel){.kind = KERNEL_GEMM,
                           .unit = HW_BF16,
                           .element_bytes = 2,
                           .groups = 1,
                           .m = m,
                           .n = n,
                           .k = k,
                           .cold = cold,
                           .host = true};
}

static void caches_by_what_they_hold(void **state)
{
    struct hw hw = core();
    (void)state;
    assert_true(hw_cache_rate(&hw, 1) == 2.1e11);
    assert_true(hw_cache_rate(&hw, 49152) == 2.1e11);
    assert_true(hw_cache_rate(&hw, 98304) == 2.1e11); /* a part stays in the first */
    assert_true(hw_cache_rate(&hw, 98305) == 1.2e11);
    assert_true(hw_cache_rate(&hw, 3.8e6) == 1.2e11);
    assert_true(hw_cache_rate(&hw, 3.9e6) == 8.3e10);
    assert_true(hw_cache_rate(&hw, 62e6) == 8.3e10);
    assert_true(isnan(hw_cache_rate(&hw, 62.1e6)));
    hw.cache_bytes_per_s[1] = (double)NAN; /* not measured */
    assert_true(isnan(hw_cache_rate(&hw, 98305)));
    assert_true(hw_cache_rate(&hw, 3.9e6) == 8.3e10);
    hw = core();
    hw.cache_bytes_per_s[1] = hw.cache_bytes_per_s[2] = 0; /* nor is a rate of nothing one */
    assert_true(isnan(hw_cache_rate(&hw, 98305)) && isnan(hw_cache_rate(&hw, 5e7)));
    const struct hw none = {.file = ""};
    assert_true(isnan(hw_cache_rate(&none, 1)));
}

static void nothing_is_credited(void **state)
{
    const struct hw hw = core();
    const double bytes = 2 * (7 * 509 + 1031 * 509 + 7 * 1031), flops = 2.0 * 7 * 1031 * 509;
    struct kernel k = product(7, 1031, 509, true);
    struct kernel_work w;
    (void)state;
    assert_int_equal(kernel_work(&k, &hw, &w, NULL), ERR_OK);
    assert_near(w.bytes, bytes, 0);
    assert_near(w.flops, flops, 0);
    assert_near(w.memory_s, bytes / READ, 1e-15);
    assert_near(w.bound_s, w.credited_bound_s, 0);
    assert_false(w.weak);
    k.cold = false; /* 1.1 MB: read from the second cache */
    assert_int_equal(kernel_work(&k, &hw, &w, NULL), ERR_OK);
    assert_near(w.memory_s, bytes / 1.2e11, 1e-15);
    assert_near(w.credited_bound_s, fmax(flops / BF16, (bytes - 2 * 7 * 1031) / 1.2e11), 1e-15);
    k = product(1, 1031, 509, false); /* slower to read, from a cache, than to multiply */
    assert_int_equal(kernel_work(&k, &hw, &w, NULL), ERR_OK);
    assert_true(w.memory_s > 1.5 * w.compute_s);
    assert_near(w.memory_s, 2 * (509 + 1031 * 509 + 1031) / 1.2e11, 1e-15);
    assert_near(w.bound_s, 2 * (509 + 1031 * 509) / 1.2e11, 1e-15); /* what is written goes on beside it */
    assert_near(w.credited_bound_s, w.bound_s, 0);
    k.memory_slower = 1.7; /* an array of its size was read so much slower */
    assert_int_equal(kernel_work(&k, &hw, &w, NULL), ERR_OK);
    assert_near(w.bound_s, 1.7 * 2 * (509 + 1031 * 509) / 1.2e11, 1e-15);
    k = (struct kernel){.kind = KERNEL_ELEMENTWISE, .host = true, .moved_bytes = 70001};
    assert_int_equal(kernel_work(&k, &hw, &w, NULL), ERR_OK); /* nobody says what of it is written */
    assert_near(w.bound_s, 70001 / 2.1e11, 1e-15);
    k.written_bytes = 30011;
    assert_int_equal(kernel_work(&k, &hw, &w, NULL), ERR_OK);
    assert_near(w.bound_s, (70001 - 30011) / 2.1e11, 1e-15);
    k = product(1, 1031, 509, false);
    struct hw unknown = hw; /* no cache is known: what its last one holds is no work for memory */
    for (size_t i = 0; i < HW_CACHES; i++) unknown.cache_bytes_per_s[i] = (double)NAN;
    assert_int_equal(kernel_work(&k, &unknown, &w, NULL), ERR_OK);
    assert_near(w.memory_s, w.bytes / READ, 1e-15);
    assert_near(w.credited_bound_s, w.compute_s, 0);
    k = product(7, 1031, 509, false);
    k.host = false; /* a loop on a card finds all of it on chip: only flops bound it */
    assert_int_equal(kernel_work(&k, &hw, &w, NULL), ERR_OK);
    assert_near(w.memory_s, bytes / READ, 1e-15);
    assert_near(w.credited_bound_s, flops / BF16, 1e-15);
    assert_true(w.weak);
}

/* Rows that share one reading of weights or of a cache, by hand: experts have those of a token's k choices. */
static void rows_of_a_reading(void **state)
{
    static const struct {
        struct kernel k;
        double rows;
    } CASES[] = {
        {{.kind = KERNEL_MOE, .tokens = 37, .topk = 6, .experts = 64, .n = 512, .k = 256, .groups = 1}, 37 * 6 / 64.0},
        {{.kind = KERNEL_MOE, .tokens = 5, .topk = 2, .experts = 64, .n = 512, .k = 256, .groups = 1}, 1},
        {{.kind = KERNEL_MLA_DECODE, .heads = 18, .kv_heads = 1, .head_dim = 576, .value_dim = 512}, 18},
        /* of 7, and of 2, four at a time, what is missing filled up; one alone */
        {{.kind = KERNEL_DECODE, .heads = 28, .kv_heads = 4, .head_dim = 128, .value_dim = 128}, 4},
        {{.kind = KERNEL_DECODE, .heads = 12, .kv_heads = 6, .head_dim = 128, .value_dim = 128}, 4},
        {{.kind = KERNEL_DECODE, .heads = 12, .kv_heads = 12, .head_dim = 128, .value_dim = 128}, 1},
        {{.kind = KERNEL_MLA_PREFILL,
          .heads = 12,
          .kv_heads = 12,
          .head_dim = 192,
          .value_dim = 128,
          .query_tokens = 301},
         301},
        /* a prompt's masked keys are of its tokens, whatever shares them; one latent for all heads may be said by no KV
         * head at all */
        {{.kind = KERNEL_MLA_PREFILL, .heads = 12, .kv_heads = 1, .query_tokens = 301}, 301},
        {{.kind = KERNEL_MLA_DECODE, .heads = 18}, 18},
        {{.kind = KERNEL_PREFILL, .heads = 28, .kv_heads = 4, .head_dim = 128, .value_dim = 128, .query_tokens = 301},
         301},
    };
    const struct hw hw = core();
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct kernel k = CASES[i].k;
        const struct kernel_work w = {.compute_s = 3e-5, .memory_s = 2e-5};
        double v[KERNEL_FEATURES_MAX];
        struct kernel_features f = {.v = v};
        k.host = k.cold = true;
        kernel_host_form.prepare(&k, &hw, &w, &f);
        assert_near(f.v[2], CASES[i].rows, 1e-12);
        /* half the rate at as many rows as half_rows says */
        const double p[] = {0, 0.5, CASES[i].rows, 1, 1, 0, 1, 0, 0, 77};
        double computed = 1; /* heads of a group, those that fill it up included, over those that count */
        if (k.kind == KERNEL_DECODE) {
            computed = 0;
            for (double h = 0; h < k.heads / k.kv_heads; h += CASES[i].rows) computed += CASES[i].rows;
            computed *= k.kv_heads / k.heads;
        }
        assert_near(kernel_host_form.time_s(&f, p), computed * 3e-5 / 0.5 * 2 + 2e-5, 1e-15);
    }
}

/* What is begun anew, counted in loops. */
static void pieces_of_a_call(void **state)
{
    enum { PIECES = 3 };
    const struct hw hw = core();
    double prompt = 0, window = 0, weights = 0;
    for (int query = 1; query <= 53; query++)
        for (int key = 1; key <= 11 + query; key++) {
            prompt += 3 * 5;
            window += key > 11 + query - 7 ? 3 * 5 : 0;
        }
    for (int row = 0; row < 2 * 97 + 31; row++) weights += 4;
    const struct {
        struct kernel k;
        double pieces;
    } cases[] = {
        {{.kind = KERNEL_GEMM, .m = 7, .n = 101, .k = 53, .groups = 3}, 303},
        {{.kind = KERNEL_MLA_DECODE, .batch = 3, .context_tokens = 211, .heads = 12, .kv_heads = 1}, 3 * 211 * 12},
        {{.kind = KERNEL_PREFILL, .batch = 3, .query_tokens = 53, .prefix_tokens = 11, .heads = 5}, prompt},
        {{.kind = KERNEL_PREFILL, .batch = 3, .query_tokens = 53, .prefix_tokens = 11, .heads = 5, .window = 7},
         window},
        {{.kind = KERNEL_MLA_BMM, .m = 7, .n = 101, .k = 53, .groups = 3}, 303},
        /* a window is of keys that there are */
        {{.kind = KERNEL_MLP, .tokens = 7, .width = 31, .hidden = 97, .gated = 1, .active_experts = 4, .tp = 1},
         weights},
        {{.kind = KERNEL_ELEMENTWISE, .m = 37, .k = 53}, 37},
        {{.kind = KERNEL_ELEMENTWISE, .m = (double)NAN}, 0},
        {{.kind = KERNEL_SCAN, .batch = 3, .heads = 5}, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct kernel_work w = {.compute_s = 3e-5, .memory_s = 2e-5};
        double v[KERNEL_FEATURES_MAX];
        struct kernel_features f = {.v = v};
        kernel_host_form.prepare(&cases[i].k, &hw, &w, &f);
        assert_near(f.v[PIECES], cases[i].pieces, 1e-9);
    }
}

/* Experts that 2 tokens touch with 2 of 5 each: every pair of choices, counted. */
static double experts_of_two(void)
{
    double touched = 0, ways = 0;
    for (int a = 0; a < 5; a++)
        for (int b = a + 1; b < 5; b++)
            for (int c = 0; c < 5; c++)
                for (int d = c + 1; d < 5; d++) {
                    touched += 2 + (c != a && c != b) + (d != a && d != b);
                    ways++;
                }
    return touched / ways;
}

/* Rows of weights that are begun by experts, of one rank of `ep` with a part of `tp` of the hidden width; what goes
 * into both products. Ranks that no one said are one. */
static void experts_of_a_core(void **state)
{
    enum { ROWS = 2, PIECES = 3, ACTIVATIONS = 6, SUMS = 7, WIDTH = 31, HIDDEN = 102 };
    static const struct {
        double ep, tp, gated;
    } CASES[] = {{1, 1, 1}, {0, 0, 0}, {5, 1, 1}, {1, 3, 1}, {5, 3, 0}};
    const struct hw hw = core();
    const double experts = experts_of_two();
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const int ep = CASES[i].ep > 0 ? (int)CASES[i].ep : 1, tp = CASES[i].tp > 0 ? (int)CASES[i].tp : 1;
        struct kernel k = {.kind = KERNEL_MOE,
                           .tokens = 2,
                           .topk = 2,
                           .experts = 5,
                           .width = WIDTH,
                           .hidden = HIDDEN,
                           .gated = CASES[i].gated,
                           .ep = CASES[i].ep,
                           .tp = CASES[i].tp,
                           .active_experts = (double)NAN};
        const struct kernel_work w = {.compute_s = 3e-5, .memory_s = 2e-5};
        double v[KERNEL_FEATURES_MAX], rows = 0, elements = 0;
        struct kernel_features f = {.v = v};
        for (int row = 0; row < HIDDEN / tp; row++) rows += CASES[i].gated > 0 ? 2 : 1; /* up, and gate */
        for (int row = 0; row < WIDTH; row++) rows++;                                   /* down */
        for (int choice = 0; choice < 2 * 2; choice++) elements += WIDTH + HIDDEN / tp;
        kernel_host_form.prepare(&k, &hw, &w, &f);
        assert_near(f.v[PIECES], experts * rows / ep, 1e-9);
        assert_near(f.v[ACTIVATIONS], elements / ep, 1e-9);
        assert_near(f.v[SUMS], 2 * 2 * rows / ep, 1e-9); /* each choice has every row's sum */
        assert_near(f.v[ROWS], 1, 0);                    /* 4 choices of 5 experts */
        k.active_experts = 3;                            /* known, and of this rank */
        kernel_host_form.prepare(&k, &hw, &w, &f);
        assert_near(f.v[PIECES], 3 * rows, 1e-9);
    }
    /* a block that all tokens have: its weights are read once for all of them */
    const struct kernel mlp = {.kind = KERNEL_MLP,
                               .tokens = 37,
                               .topk = 1,
                               .experts = 1,
                               .width = WIDTH,
                               .hidden = HIDDEN,
                               .gated = 1,
                               .active_experts = (double)NAN};
    const struct kernel_work some = {.compute_s = 3e-5, .memory_s = 2e-5};
    double v[KERNEL_FEATURES_MAX];
    struct kernel_features f = {.v = v};
    kernel_host_form.prepare(&mlp, &hw, &some, &f);
    assert_near(f.v[ROWS], 37, 0);
    assert_near(f.v[PIECES], HIDDEN + HIDDEN + WIDTH, 0);
    assert_near(f.v[ACTIVATIONS], 37 * WIDTH + 37 * HIDDEN, 0);
    assert_near(f.v[SUMS], 37 * (HIDDEN + HIDDEN + WIDTH), 0);
}

/* A pass over elements and a recurrence stream no weights: no rate by rows, nothing laid out; a core without a second
 * cache takes in what memory gives. */
static void nothing_is_shared(void **state)
{
    enum { ROWS = 2, CORE_S = 4, ACTIVATIONS = 6 };
    static const enum kernel_kind KINDS[] = {KERNEL_SCAN, KERNEL_CONV, KERNEL_ELEMENTWISE};
    struct hw hw = core();
    const struct kernel_work w = {.bytes = 7e5, .compute_s = 3e-5, .memory_s = 2e-5};
    double v[KERNEL_FEATURES_MAX];
    struct kernel_features f = {.v = v};
    (void)state;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        const struct kernel k = {.kind = KINDS[i], .m = 37, .groups = 1, .n = 5, .k = 3, .tokens = 7, .topk = 2};
        kernel_host_form.prepare(&k, &hw, &w, &f);
        assert_true(isinf(f.v[ROWS]) && f.v[ROWS] > 0);
        assert_near(f.v[ACTIVATIONS], 0, 0);
        assert_near(f.v[CORE_S], 7e5 / 1.2e11, 1e-18);
    }
    const double NONE[] = {(double)NAN, 0};
    const struct kernel k = product(5, 4099, 2053, true);
    for (size_t i = 0; i < 2; i++) {
        hw.cache_bytes_per_s[1] = NONE[i];
        kernel_host_form.prepare(&k, &hw, &w, &f);
        assert_near(f.v[CORE_S], 0, 0);
    }
}

/* Of a decode: rows of keys, the rounds and tiles in which they are taken, by the loops of the kernel. */
static void rounds_of_a_cache(void **state)
{
    enum { PIECES = 3, SUMS = 7, BUSY_SUMS = 8, ROLLED = 9 };
    static const struct {
        double heads, kv_heads, dim, bytes, window;
    } CASES[] = {{12, 12, 128, 2, 0}, {12, 12, 64, 2, 0}, {12, 12, 96, 2, 13}, {12, 12, 192, 2, 0},
                 {12, 4, 64, 2, 0},   {12, 4, 96, 2, 0},  {12, 2, 128, 2, 13}, {18, 2, 80, 2, 0},
                 {12, 12, 80, 4, 0},  {12, 3, 128, 4, 0}, {12, 4, 96, 2, 509}};
    const struct hw hw = core();
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const double group = CASES[i].heads / CASES[i].kv_heads, left = 64 / CASES[i].bytes;
        const double wide = group > 1 ? 64 : 128, lanes = group > 1 ? 4 : 1;
        const bool whole = CASES[i].dim == 128 && CASES[i].bytes == 2;
        double later = 0, sums = 0, v[KERNEL_FEATURES_MAX];
        for (int sequence = 0; sequence < 3; sequence++)
            for (int token = CASES[i].window > 0 && CASES[i].window < 211 ? 211 - 13 : 0; token < 211; token++)
                for (double head = 0; head < CASES[i].kv_heads; head++)
                    for (double h = 0; h < group; h += lanes)
                        for (double d = 0; d < CASES[i].dim;) {
                            sums++;
                            later += h == 0 && d > 0 ? 1 : 0; /* from memory once, whatever the rounds */
                            d += whole ? 128 : CASES[i].dim - d >= wide ? wide : left;
                        }
        const struct kernel k = {.kind = KERNEL_DECODE,
                                 .batch = 3,
                                 .context_tokens = 211,
                                 .heads = CASES[i].heads,
                                 .kv_heads = CASES[i].kv_heads,
                                 .head_dim = CASES[i].dim,
                                 .value_dim = CASES[i].dim,
                                 .kv_element_bytes = CASES[i].bytes,
                                 .window = CASES[i].window,
                                 .cold = true};
        const struct kernel_work w = {.compute_s = 3e-5, .memory_s = 2e-5};
        struct kernel_features f = {.v = v};
        kernel_host_form.prepare(&k, &hw, &w, &f);
        assert_near(f.v[PIECES], later, 1e-9);
        assert_near(f.v[BUSY_SUMS], sums, 1e-9);
        assert_near(f.v[SUMS], 0, 0);
        assert_true((f.v[ROLLED] > 0) == (CASES[i].dim != 128));
        /* sums are made beside the reading: hidden behind a long one, rows of another parameter where loops are rolled
         */
        const double p[] = {0, 0.5, 2, 0.01, 0.02, 1e-9, 1, 0, 0, 3};
        assert_near(kernel_host_form.time_s(&f, p), 2e-5 / 0.01, 1e-12);
        const double q[] = {0, 0.5, 2, 1, 0.01, 1e-6, 1, 0, 0, 3};
        const double busy_s = 6e-5 * ceil(group / lanes) * lanes / group * (1 + (CASES[i].dim == 128 ? 2 : 3) / lanes);
        assert_near(kernel_host_form.time_s(&f, q), busy_s + sums * 1e-6 + 2e-7, 1e-12);
    }
}

/* What was measured while the ceilings were lower is held to those. */
static void ceilings_around_a_call(void **state)
{
    const struct hw hw = core();
    struct kernel k = product(7, 1031, 509, true);
    struct kernel_work plain, w;
    (void)state;
    assert_int_equal(kernel_work(&k, &hw, &plain, NULL), ERR_OK);
    k.compute_slower = 1.3;
    k.memory_slower = 1.1;
    assert_int_equal(kernel_work(&k, &hw, &w, NULL), ERR_OK);
    assert_near(w.compute_s / plain.compute_s, 1.3, 1e-12);
    assert_near(w.memory_s / plain.memory_s, 1.1, 1e-12);
    assert_near(w.bound_s, fmax(w.compute_s, w.memory_s), 0);
    k.host = false; /* of a core alone */
    assert_int_equal(kernel_work(&k, &hw, &w, NULL), ERR_OK);
    assert_near(w.compute_s, plain.compute_s, 0);
}

/* start + max(compute + exposed*memory, memory, core) + pieces. */
static void form_of_a_core(void **state)
{
    enum { START, COMPUTE, HALF, MEMORY, EXPOSED, PIECE, CORE };
    const struct hw hw = core();
    const struct kernel k = product(5, 4099, 2053, true);
    const struct kernel_form *form = kernel_form_of(&k);
    struct kernel_features f;
    double room[KERNEL_FEATURES_MAX], p[] = {3e-6, 0.8, 2, 0.9, 1, 0, 1, 0, 0, 1};
    (void)state;
    assert_ptr_equal(form, &kernel_host_form);
    assert_int_equal(kernel_params_n(&k), 10);
    assert_int_equal(kernel_prepare(&k, &hw, room, &f, NULL), ERR_OK);
    const double compute_s = 2.0 * 5 * 4099 * 2053 / BF16 / 0.8 * (1 + 2.0 / 5);
    const double memory_s = 2.0 * (5 * 2053 + 4099 * 2053 + 5 * 4099) / READ / 0.9;
    assert_near(kernel_time_s(form, &f, p) / (3e-6 + compute_s + memory_s), 1, 1e-12);
    p[EXPOSED] = 0.25;
    assert_near(kernel_time_s(form, &f, p) / (3e-6 + compute_s + memory_s / 4), 1, 1e-12);
    p[COMPUTE] = 3; /* a stream takes its time, whatever is computed */
    assert_true(compute_s * 0.8 / 3 + memory_s / 4 < memory_s);
    assert_near(kernel_time_s(form, &f, p) / (3e-6 + memory_s), 1, 1e-12);
    p[PIECE] = 7e-9; /* of each of 5x4099 results */
    assert_near(kernel_time_s(form, &f, p) / (3e-6 + memory_s + 5 * 4099 * 7e-9), 1, 1e-12);
    p[CORE] = 0.2; /* of the second cache: slower than memory */
    const double core_s = 2.0 * (5 * 2053 + 4099 * 2053 + 5 * 4099) / 1.2e11 / 0.2;
    assert_true(core_s > memory_s);
    assert_near(kernel_time_s(form, &f, p) / (3e-6 + core_s + 5 * 4099 * 7e-9), 1, 1e-12);
    struct kernel hot = k; /* no cache's time is exposed */
    struct kernel_features g = {.v = (double[KERNEL_FEATURES_MAX]){0}};
    const struct kernel_work some = {.compute_s = 5e-5, .memory_s = 3e-5};
    const double of_hot[] = {0, 0.5, 1e-3, 0.5, 1, 0, 1, 0, 0, 1};
    hot.cold = false;
    form->prepare(&hot, &hw, &some, &g);
    assert_near(form->time_s(&g, of_hot), 1e-4 * (1 + 1e-3 / 5), 1e-12);
    p[PIECE] = 0;
    p[CORE] = 1;
    p[HALF] = 1e-3; /* many rows alike, and never below the bound */
    p[START] = 1e-8;
    p[COMPUTE] = p[MEMORY] = 1;
    p[EXPOSED] = 0.01;
    assert_true(kernel_time_s(form, &f, p) >= f.credited_bound_s);
    /* heads of a group share one reading of the cache, tokens of a prompt too; a collective is none of a core */
    struct kernel d = {.kind = KERNEL_DECODE, .heads = 32, .kv_heads = 8, .head_dim = 128, .host = true};
    struct kernel_work w = {.compute_s = 7, .memory_s = 0};
    form->prepare(&d, &hw, &w, &f);
    const double q[] = {1e-8, 1, 3, 1, 1, 0, 1, 0, 0, 1};
    assert_near(form->time_s(&f, q), 7 * 1.75, 1e-6);
    d.kind = KERNEL_PREFILL;
    d.query_tokens = 100;
    form->prepare(&d, &hw, &w, &f);
    assert_near(form->time_s(&f, q), 7 * 1.03, 1e-6);
    d.kind = KERNEL_COLLECTIVE;
    assert_ptr_equal(kernel_form_of(&d), &kernel_collective_form);
}

/* What comes from memory waits a piece at a time; of a hot call the part that does is told by the rate that was found.
 */
static void pieces_wait_for_memory(void **state)
{
    enum { WAIT = 7, LAY_OUT = 8, FAR = 5, ACTIVATIONS = 6, SUMS = 7 };
    const struct hw hw = core();
    struct kernel k = product(5, 4099, 2053, true);
    struct kernel_features f;
    double room[KERNEL_FEATURES_MAX], p[] = {1e-6, 0.8, 1e-3, 0.9, 0.3, 2e-9, 1, 0, 0, 1};
    (void)state;
    for (int hot = 0; hot < 2; hot++) {
        k.cold = !hot;
        k.memory_slower = 0;
        assert_int_equal(kernel_prepare(&k, &hw, room, &f, NULL), ERR_OK);
        p[WAIT] = p[LAY_OUT] = 0;
        const double plain_s = kernel_time_s(&kernel_host_form, &f, p);
        p[WAIT] = 1.3e-8; /* of each of 4099 rows of weights */
        assert_near(kernel_time_s(&kernel_host_form, &f, p) - plain_s, hot ? 0 : 4099 * 1.3e-8, 1e-12);
        p[WAIT] = 0;
        p[LAY_OUT] = 3e-10; /* of five rows of activations, whatever comes from where */
        assert_near(kernel_time_s(&kernel_host_form, &f, p) - plain_s, 5 * 2053 * 3e-10, 1e-12);
    }
    /* of the bytes a quarter at the rate of memory, the others at that of the cache, by hand */
    const double found = 1 / (0.25 / READ + 0.75 / 8.3e10);
    k.memory_slower = 8.3e10 / found;
    assert_int_equal(kernel_prepare(&k, &hw, room, &f, NULL), ERR_OK);
    assert_near(f.v[FAR], 0.25, 1e-12);
    k.memory_slower = 0.97; /* faster than the cache was: nothing; slower than memory: all */
    assert_int_equal(kernel_prepare(&k, &hw, room, &f, NULL), ERR_OK);
    assert_near(f.v[FAR], 0, 0);
    k.memory_slower = 9;
    assert_int_equal(kernel_prepare(&k, &hw, room, &f, NULL), ERR_OK);
    assert_near(f.v[FAR], 1, 0);
    struct hw even = hw; /* where a cache gives what memory does, no rate tells them apart */
    for (size_t i = 0; i < HW_CACHES; i++) even.cache_bytes_per_s[i] = READ;
    assert_int_equal(kernel_prepare(&k, &even, room, &f, NULL), ERR_OK);
    assert_near(f.v[FAR], 0, 0);
    /* what goes into both products of 7 tokens' 3 experts each, of 2 ranks; into keys and values nothing does */
    double elements = 0;
    for (int token = 0; token < 7; token++)
        for (int choice = 0; choice < 3; choice++) elements += (31 + 97) / 2.0;
    const struct kernel moe = {
        .kind = KERNEL_MOE, .tokens = 7, .topk = 3, .experts = 16, .ep = 2, .tp = 1, .width = 31, .hidden = 97};
    const struct kernel decode = {.kind = KERNEL_DECODE, .batch = 3, .context_tokens = 211, .heads = 12, .kv_heads = 4};
    const struct kernel_work some = {.compute_s = 3e-5, .memory_s = 2e-5};
    f.v = room;
    kernel_host_form.prepare(&moe, &hw, &some, &f);
    assert_near(f.v[ACTIVATIONS], elements, 1e-9);
    /* sums: results of a product, 7 tokens' hidden elements twice and their outputs */
    const struct kernel mlp = {.kind = KERNEL_MLP,
                               .tokens = 7,
                               .topk = 1,
                               .experts = 1,
                               .active_experts = 1,
                               .tp = 1,
                               .width = 31,
                               .hidden = 97,
                               .gated = 1};
    double sums = 0;
    for (int token = 0; token < 7; token++) sums += 2 * 97 + 31;
    kernel_host_form.prepare(&mlp, &hw, &some, &f);
    assert_near(f.v[SUMS], sums, 1e-9);
    const struct kernel bmm = {.kind = KERNEL_MLA_BMM, .m = 7, .n = 101, .k = 53, .groups = 3};
    kernel_host_form.prepare(&bmm, &hw, &some, &f);
    assert_near(f.v[SUMS], 3 * 7 * 101, 1e-9);
    kernel_host_form.prepare(&decode, &hw, &some, &f);
    assert_near(f.v[ACTIVATIONS], 0, 0);
}

/* Cold and hot rows of known parameters: what waits, what is begun anew wherever it lies, and what is laid out. */
static void waits_are_found(void **state)
{
    enum { N = 96, PIECE = 5, WAIT = 7, LAY_OUT = 8 };
    static const double MS[] = {1, 3, 7, 13, 24, 47}, NS[] = {257, 509, 2053, 4099};
    static const double TRUTH[] = {3e-7, 0.93, 0.02, 0.95, 0.2, 2.8e-9, 0.7, 1.2e-8, 3.4e-10, 1};
    struct arena *a = *state;
    const struct hw hw = core();
    struct row *v = arena_array(a, N, sizeof *v);
    const struct rows rows = {.v = v, .n = N};
    double room[KERNEL_FEATURES_MAX];
    uint64_t seed = 4099;
    for (int i = 0; i < N; i++) {
        struct kernel_features f;
        const struct kernel k = product(MS[i % 6], NS[i / 6 % 4], i / 24 % 2 ? 1543 : 449, i < N / 2);
        assert_int_equal(kernel_prepare(&k, &hw, room, &f, NULL), ERR_OK);
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const double noise = (double)(seed >> 11) / 0x1p53 - 0.5;
        v[i] = (struct row){.kernel = k,
                            .class_name = "gemm/bf16/ridge/wide",
                            .family = arena_printf(a, "%g,%g", k.n, k.k),
                            .framework = "ridge",
                            .file = "store",
                            .line = (size_t)i + 1,
                            .time_s = kernel_time_s(&kernel_host_form, &f, TRUTH) * exp(0.02 * noise)};
    }
    struct fit_class *c;
    size_t n;
    struct err e = {.code = ERR_OK};
    if (fit_rows(a, &hw, &rows, 4, NULL, NULL, &c, &n, &e) != ERR_OK) fail_msg("%s", e.text);
    assert_int_equal(n, 1);
    assert_near(c->p[PIECE] / TRUTH[PIECE], 1, 0.15);
    assert_near(c->p[WAIT] / TRUTH[WAIT], 1, 0.15);
    assert_near(c->p[LAY_OUT] / TRUTH[LAY_OUT], 1, 0.15);
    assert_true(c->lo[WAIT] < TRUTH[WAIT] * 1.05 && c->hi[WAIT] > TRUTH[WAIT] * 0.95);
    assert_true(c->held_out_median_frac < 0.02 && c->held_out_most_frac < 0.06);
}

/* Rows of known parameters with 2 % of noise: a fit finds them, a maximum of both cannot. */
static void sums_are_found(void **state)
{
    enum { N = 72, START = 0, COMPUTE = 1, MEMORY = 3, EXPOSED = 4 };
    static const double MS[] = {1, 2, 3, 5, 8, 13, 24, 47, 96}, NS[] = {509, 1031, 2053, 4099};
    static const double TRUTH[] = {4e-6, 0.83, 0.4, 0.91, 0.6, 2e-9, 1, 1e-12, 1e-12, 1};
    struct arena *a = *state;
    const struct hw hw = core();
    struct row *v = arena_array(a, N, sizeof *v);
    struct rows rows = {.v = v, .n = N};
    struct rows_file file = {.path = "store", .n = N, .hash = "0123456789abcdef"};
    double room[KERNEL_FEATURES_MAX];
    uint64_t seed = 977;
    for (int i = 0; i < N; i++) {
        struct kernel_features f;
        const struct kernel k = product(MS[i % 9], NS[i / 9 % 4], i < N / 2 ? 1543 : 769, true);
        assert_int_equal(kernel_prepare(&k, &hw, room, &f, NULL), ERR_OK);
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const double noise = (double)(seed >> 11) / 0x1p53 - 0.5;
        v[i] = (struct row){.kernel = k,
                            .class_name = "gemm/bf16/ridge/wide",
                            .family = arena_printf(a, "%g,%g", k.n, k.k),
                            .framework = "ridge",
                            .file = "store",
                            .line = (size_t)i + 1,
                            .time_s = kernel_time_s(&kernel_host_form, &f, TRUTH) * exp(0.04 * noise)};
    }
    struct fit_class *c;
    size_t n;
    struct err e = {.code = ERR_OK};
    if (fit_rows(a, &hw, &rows, 6, NULL, NULL, &c, &n, &e) != ERR_OK) fail_msg("%s", e.text);
    assert_int_equal(n, 1);
    assert_int_equal(c->n_params, 10);
    assert_near(c->p[COMPUTE], TRUTH[COMPUTE], 0.05);
    assert_near(c->p[MEMORY], TRUTH[MEMORY], 0.06);
    assert_near(c->p[EXPOSED], TRUTH[EXPOSED], 0.2);
    assert_true(c->held_out_median_frac < 0.03 && c->held_out_most_frac < 0.08);
    assert_true(c->held_out_median_frac <= c->held_out_most_frac);
    assert_true(c->held_out_baseline.mean > 2 * c->held_out.mean);
    /* few rows of a core are enough, fewer are not */
    rows.n = FIT_SHAPES_MIN_HOST;
    assert_int_equal(fit_rows(a, &hw, &rows, 0, NULL, NULL, &c, &n, &e), ERR_OK);
    assert_int_equal(n, 1);
    assert_true(isnan(c->held_out_median_frac));
    rows.n--;
    assert_int_equal(fit_rows(a, &hw, &rows, 0, NULL, NULL, &c, &n, &e), ERR_OK);
    assert_int_equal(n, 0);
    /* written and read, it is of a core again */
    rows.n = N;
    rows.files = &file;
    rows.files_n = 1;
    assert_int_equal(fit_rows(a, &hw, &rows, 0, NULL, NULL, &c, &n, &e), ERR_OK);
    struct out *o;
    struct efficiency read;
    const struct efficiency_origin origin = {"core", NULL, NULL, NULL};
    char dir[SCRATCH_MAX], path[SCRATCH_FILE_MAX];
    (void)snprintf(path, sizeof path, "%s/core.json", scratch_dir(dir));
    assert_int_equal(out_open(a, path, &o, &e), ERR_OK);
    assert_int_equal(efficiency_write(o, &origin, &rows, c, n, &e), ERR_OK);
    assert_int_equal(out_commit(o, &e), ERR_OK);
    if (efficiency_load(a, path, &read, &e) != ERR_OK) fail_msg("%s", e.text);
    assert_true(read.classes[0].like.host);
    assert_near(read.classes[0].p[EXPOSED] / c->p[EXPOSED], 1, 1e-5);
}

/* Caches of 1 to 8 query heads a key head, in widths with and without loops of their own: what each costs is found. */
static void widths_are_found(void **state)
{
    enum { N = 72, HALF = 2, SUM = 5, WAIT = 7, ROLLED = 9 };
    static const double GROUPS[] = {1, 2, 3, 4, 6, 8}, DIMS[] = {64, 96, 128}, TOKENS[] = {1021, 4093};
    static const double TRUTH[] = {3e-6, 0.9, 0.35, 0.97, 0.28, 1.3e-9, 0.9, 8.9e-10, 1e-11, 2.3};
    struct arena *a = *state;
    const struct hw hw = core();
    struct row *v = arena_array(a, N, sizeof *v);
    const struct rows rows = {.v = v, .n = N};
    double room[KERNEL_FEATURES_MAX];
    uint64_t seed = 2053;
    for (int i = 0; i < N; i++) {
        struct kernel_features f;
        const double dim = DIMS[i / 6 % 3], kv = i < N / 2 ? 3 : 5;
        const struct kernel k = {.kind = KERNEL_DECODE,
                                 .unit = HW_BF16,
                                 .element_bytes = 2,
                                 .kv_element_bytes = 2,
                                 .batch = 2,
                                 .context_tokens = TOKENS[i / 18 % 2],
                                 .heads = kv * GROUPS[i % 6],
                                 .kv_heads = kv,
                                 .head_dim = dim,
                                 .value_dim = dim,
                                 .cold = true,
                                 .host = true};
        assert_int_equal(kernel_prepare(&k, &hw, room, &f, NULL), ERR_OK);
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const double noise = (double)(seed >> 11) / 0x1p53 - 0.5;
        v[i] = (struct row){.kernel = k,
                            .class_name = "decode/bf16/ridge/wide",
                            .family = arena_printf(a, "%g,%g,%g", k.heads, kv, dim),
                            .framework = "ridge",
                            .file = "store",
                            .line = (size_t)i + 1,
                            .time_s = kernel_time_s(&kernel_host_form, &f, TRUTH) * exp(0.01 * noise)};
    }
    struct fit_class *c;
    size_t n;
    struct err e = {.code = ERR_OK};
    if (fit_rows(a, &hw, &rows, 4, NULL, NULL, &c, &n, &e) != ERR_OK) fail_msg("%s", e.text);
    assert_int_equal(n, 1);
    assert_near(c->p[SUM] / TRUTH[SUM], 1, 0.2);
    assert_near(c->p[WAIT] / TRUTH[WAIT], 1, 0.2);
    assert_near(c->p[ROLLED] / TRUTH[ROLLED], 1, 0.2);
    assert_true(c->p[HALF] < 0.4 * c->p[ROLLED]);
    assert_true(c->held_out_median_frac < 0.02 && c->held_out_most_frac < 0.06);
}

static int begin(void **state)
{
    *state = arena_open();
    return *state ? 0 : -1;
}

static int end(void **state)
{
    arena_close(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(caches_by_what_they_hold),
        cmocka_unit_test(nothing_is_credited),
        cmocka_unit_test(rows_of_a_reading),
        cmocka_unit_test(form_of_a_core),
        cmocka_unit_test(pieces_of_a_call),
        cmocka_unit_test(experts_of_a_core),
        cmocka_unit_test(nothing_is_shared),
        cmocka_unit_test(pieces_wait_for_memory),
        cmocka_unit_test(rounds_of_a_cache),
        cmocka_unit_test(ceilings_around_a_call),
        cmocka_unit_test_setup_teardown(sums_are_found, begin, end),
        cmocka_unit_test_setup_teardown(waits_are_found, begin, end),
        cmocka_unit_test_setup_teardown(widths_are_found, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
