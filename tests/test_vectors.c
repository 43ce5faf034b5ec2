/* Numbers that planners of inference quote, worked out once more here: those of speculation, experts, latent attention,
 * links and windows that no other test has. Elsewhere: yields, best lengths and depths of drafts in test_speculate;
 * latents' flops in test_cost_rules and their intensity in test_layout; sums over ranks, bytes to experts and pipelines
 * in test_layout; pairs of windows in test_kernel and test_cost_rules; passes of diffusion in test_step. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "calc/time/kernel.h"
#include "calc/time/speculate.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static void close_to(double got, double want, double within, const char *what)
{
    if (!(fabs(got - want) <= within * fabs(want))) fail_msg("%s: %.17g, want %.17g", what, got, want);
}

static struct model load(struct arena *a, const char *name)
{
    struct model m;
    struct err e = {0};
    if (model_load(a, name, NULL, 0, &m, &e) != ERR_OK) fail_msg("%s", e.text);
    return m;
}

static struct hw device(struct arena *a, const char *name)
{
    struct hw hw;
    struct err e = {0};
    if (hw_load(a, name, &hw, &e) != ERR_OK) fail_msg("%s", e.text);
    return hw;
}

static struct step *compile(struct arena *a, const struct model *m, const struct hw *hw, struct step_setup setup)
{
    struct step *s;
    struct err e = {0};
    setup.model = m;
    setup.hw = hw;
    setup.block_tokens = 16;
    if (step_compile(a, &setup, &s, &e) != ERR_OK) fail_msg("%s: %s", m->name, e.text);
    return s;
}

static void eval(struct step *s, double B, double T, double S, double *v)
{
    double *column[STEP_VALUES_N];
    const double M = 1;
    for (size_t i = 0; i < STEP_VALUES_N; i++) column[i] = &v[i];
    step_eval(s, 1, &B, &T, &S, &M, column);
}

/* ---- speculation ---- */

/* A draft that takes c of a step's time gains something exactly where it is accepted more often than c. */
static void test_drafts_gain_above_their_cost(void **state)
{
    (void)state;
    for (int hundredths = 3; hundredths < 98; hundredths += 5)
        for (int cost = 4; cost < 98; cost += 5) {
            const double alpha = hundredths / 100., c = cost / 100.;
            const struct speculate_accept a = {.at = {alpha}, .n = 1};
            double draft[SPECULATE_DEPTH_MAX], verify[SPECULATE_DEPTH_MAX], speedup;
            for (int i = 0; i < SPECULATE_DEPTH_MAX; i++) draft[i] = (i + 1) * c, verify[i] = 1;
            (void)speculate_best(&a, true, SPECULATE_DEPTH_MAX, 1, draft, verify, &speedup);
            assert_true((speedup > 1) == (alpha > c));
        }
}

/* The pass that judges them is flat up to the ridge: at 3 drafts B = 74 on H100, at a tree of 60 tokens B = 5. */
static void test_passes_reach_the_ridge(void **state)
{
    (void)state;
    static const struct {
        double drafted, batch;
    } ROWS[] = {{3, 74}, {60, 5}};
    struct arena *a = arena_open();
    const struct model m = load(a, "llama-3.1-8b");
    const struct hw hw = device(a, "h100-sxm");
    struct step *verify = compile(a, &m, &hw, (struct step_setup){.fidelity = STEP_BOUND, .verify = true});
    double below[STEP_VALUES_N], above[STEP_VALUES_N];
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        const double T = ROWS[i].drafted + 1;
        close_to(hw_ridge(&hw, HW_BF16) / T, ROWS[i].batch, .04, "ridge");
        /* a short cache: products with weights alone */
        eval(verify, floor(.9 * ROWS[i].batch), T, 1, below);
        eval(verify, ceil(1.15 * ROWS[i].batch), T, 1, above);
        assert_true(below[STEP_decode_memory_s] > below[STEP_decode_compute_s]);
        assert_true(above[STEP_decode_memory_s] < above[STEP_decode_compute_s]);
    }
    arena_close(a);
}

/* ---- experts ---- */

static void test_distinct_experts(void **state)
{
    (void)state;
    static const struct {
        double E, k, n, touched, within;
    } ROWS[] = {
        {8, 2, 1, 2, 0},        {8, 2, 4, 5.47, .005},    {8, 2, 16, 7.92, .005},   {128, 8, 1, 8, 0},
        {128, 8, 8, 51.6, .05}, {128, 8, 32, 111.8, .05}, {128, 8, 128, 128, .05},  {256, 8, 1, 8, 0},
        {256, 8, 8, 57.4, .05}, {256, 8, 32, 163.3, .05}, {256, 8, 64, 222.4, .05}, {256, 8, 128, 251.6, .05},
        {128, 4, 8, 28.7, .05}, {128, 4, 64, 111.2, .05},
    };
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        const double got = kernel_experts(ROWS[i].n, ROWS[i].k, ROWS[i].E);
        if (!(fabs(got - ROWS[i].touched) <= ROWS[i].within + 1e-12)) fail_msg("%zu: %.6f", i, got);
    }
}

/* DeepSeek-V3 in fp8: its experts are bound by compute from n*k/E = 295 rows on, about 9,450 tokens a group of all. */
static void test_tokens_that_fill_experts(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct hw hw = device(a, "h100-sxm");
    const struct model m = load(a, "deepseek-v3");
    const struct ffn *f = &m.kinds[1].ffn;
    const double rows = hw_ridge(&hw, HW_FP8) / 2; /* a byte a weight */
    close_to(rows * (double)f->experts / (double)f->experts_per_token, 9450, 2e-3, "tokens");
    arena_close(a);
}

/* Ranks that one token's k experts fall on: p*(1 - (1-1/p)^k) when each is on any rank, fewer experts than which are on
 * a rank each meet less often; against all choices of k of E experts. */
static void test_busy_ranks(void **state)
{
    (void)state;
    enum { E = 12, K = 3, P = 4 };
    double hit = 0, all = 0;
    for (int i = 0; i < E; i++)
        for (int j = 0; j < i; j++)
            for (int l = 0; l < j; l++) {
                const int on[] = {i % P, j % P, l % P};
                int busy = 0;
                for (int p = 0; p < P; p++) busy += on[0] == p || on[1] == p || on[2] == p;
                hit += busy;
                all++;
            }
    close_to(P * layout_touched(E, K, P), hit / all, 1e-12, "all choices");
    close_to(8 * layout_touched(4096, 8, 8), 8 * (1 - pow(7. / 8, 8)), 1e-3, "of many experts");
    assert_true(layout_touched(256, 8, 8) > 1 - pow(7. / 8, 8));
}

static void test_all_and_active_parameters(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "mixtral-8x7b");
    const struct cost_conventions v = {0};
    struct cost_parameters p;
    struct err e = {0};
    assert_int_equal(cost_parameters(a, &m, &v, &p, &e), ERR_OK);
    close_to(p.total, 46.7e9, 1e-3, "all");
    close_to(p.active, 12.9e9, 2e-3, "active");
    arena_close(a);
}

/* ---- latent attention ---- */

static double mixer_flops(struct arena *a, const struct model *m, bool absorbed, int64_t T, int64_t S)
{
    struct sym_ctx *c = sym_open(a);
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_conventions v = {.causal_full = true};
    const struct cost_pass pass = {
        .name = "prefill", .B = sym_int(c, 1), .T = sym_int(c, T), .S = sym_int(c, S), .absorbed = absorbed};
    struct cost_ops ops;
    struct err e = {0};
    double sum = 0, x;
    assert_int_equal(cost_build(a, c, &y, m, &v, &pass, 1, &ops, &e), ERR_OK);
    assert_int_equal(cost_bind(c, &y, m, 1, &ops, &e), ERR_OK);
    for (size_t i = 0; i < ops.n; i++) {
        if (ops.op[i].kind_index != 0) continue;
        if (ops.op[i].kind != OP_ATTENTION && ops.op[i].kind != OP_ABSORB && strcmp(ops.op[i].name, "kv_b_proj") != 0)
            continue;
        assert_true(sym_constant(ops.op[i].flops, &x));
        sum += x;
    }
    return sum;
}

/* Expanding costs 33.55 MFLOP a key once, absorbing 196,608 more a pair: 171 queries a key are worth it. */
static void test_queries_that_are_worth_expanding(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3");
    const int64_t S = 10000000;
    assert_true(mixer_flops(a, &m, true, 170, S) < mixer_flops(a, &m, false, 170, S));
    assert_true(mixer_flops(a, &m, true, 171, S) > mixer_flops(a, &m, false, 171, S));
    arena_close(a);
}

/* 7168*1536 + 1536*128*192 + 7168*576 + 512*128*256 + 128*128*7168: 187.1 million weights of attention a layer. A log
 * of 635,648 tokens in 41.60 GiB at 70,272 bytes. */
static void test_projections_and_tokens_of_latents(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct model m = load(a, "deepseek-v3");
    const struct hw hw = device(a, "h200-sxm");
    struct step *s = compile(a, &m, &hw, (struct step_setup){.fidelity = STEP_BOUND});
    struct sym_ctx *c = sym_open(a);
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_conventions v = {0};
    const struct cost_pass pass = {.name = "prefill", .B = sym_int(c, 1), .T = sym_int(c, 7), .S = sym_int(c, 7)};
    struct cost_ops ops;
    struct err e = {0};
    double sum = 0, x;
    assert_int_equal(cost_build(a, c, &y, &m, &v, &pass, 1, &ops, &e), ERR_OK);
    assert_int_equal(cost_bind(c, &y, &m, 1, &ops, &e), ERR_OK);
    for (size_t i = 0; i < ops.n; i++)
        for (size_t t = 0; t < ops.op[i].tensors_n; t++)
            if (ops.op[i].kind_index == 0 && ops.op[i].tensor[t].class == WEIGHT_MIXER) {
                assert_true(sym_constant(ops.op[i].tensor[t].elems, &x));
                sum += x;
            }
    close_to(sum, 187.1e6, 1e-3, "projections");
    close_to(sum, 7168. * 1536 + 1536. * 128 * 192 + 7168. * 576 + 512. * 128 * 256 + 128. * 128 * 7168, 1e-12,
             "by hand");
    close_to(635648 * step_kv_bytes_per_token_full(s) / 0x1p30, 41.60, 1.3e-4, "GiB of the log");
    arena_close(a);
}

/* ---- links ---- */

/* Measured with 128 tokens a rank on H800 (DeepEP, README, low-latency kernels), dispatch and combine: a floor is below
 * each, and where most bytes cross the fabric not far below. */
static void test_floors_of_measured_exchanges(void **state)
{
    (void)state;
    static const struct {
        int64_t ranks;
        double dispatch_us, combine_us;
    } ROWS[] = {{8, 77, 114}, {16, 118, 195}, {32, 155, 273}, {64, 173, 314}, {128, 192, 369}, {256, 194, 360}};
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3");
    const struct hw hw = device(a, "h800-sxm");
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        /* copies: at 8 ranks each has k = 8, and gathers instead */
        const struct layout l = {.dp = ROWS[i].ranks, .ep = ROWS[i].ranks, .per_node = 8};
        struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
        struct step_op *ops;
        struct err e = {0};
        size_t n, seen = 0;
        assert_int_equal(step_ops(a, s, STEP_DECODE, 128. * (double)ROWS[i].ranks, 1, 1000, 1, &ops, &n, &e), ERR_OK);
        for (size_t k = 0; k < n; k++) {
            if (strcmp(ops[k].kind, "all_to_all") != 0) continue;
            const double took =
                (strcmp(ops[k].name, "dispatch") == 0 ? ROWS[i].dispatch_us : ROWS[i].combine_us) * 1e-6;
            const double floor_s = ops[k].time_s / (double)ops[k].count;
            assert_true(floor_s < took);
            if (ROWS[i].ranks > 8) assert_true(floor_s > .6 * took);
            seen++;
        }
        assert_true(seen == 2);
    }
    /* 58 layers of 192 + 369 us are 32.5 ms a step */
    int64_t with_experts = 0;
    for (size_t k = 0; k < m.kinds_n; k++) with_experts += m.kinds[k].ffn.kind == FFN_MOE ? m.kinds[k].count : 0;
    close_to((double)with_experts * (192 + 369) * 1e-6, 32.5e-3, 2e-3, "of a step");
    arena_close(a);
}

/* What prefill hands to decode: 8,192 tokens of a 70B model are 2.7 GB, 54 ms at 50 GB/s; of latents 0.58 GB. */
static void test_caches_that_are_handed_over(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct hw hw = device(a, "h200-sxm");
    const struct model m = load(a, "llama-3.1-70b"), latent = load(a, "deepseek-v3");
    struct step *s = compile(a, &m, &hw, (struct step_setup){.fidelity = STEP_BOUND});
    struct step *t = compile(a, &latent, &hw, (struct step_setup){.fidelity = STEP_BOUND});
    double v[STEP_VALUES_N];
    eval(s, 1, 8192, 8192, v);
    close_to(v[STEP_kv_bytes] / 50e9, 54e-3, 1e-2, "seconds");
    eval(t, 1, 8192, 8192, v);
    close_to(v[STEP_kv_bytes], .58e9, 1e-2, "of latents");
    arena_close(a);
}

/* ---- windows ---- */

static void test_windows_of_models(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        int64_t window, with, of;
        bool chunked;
    } ROWS[] = {{"gemma-3-27b", 1024, 52, 62, false}, /* 5 of 6, the last two short of six */
                {"gemma-3-12b", 1024, 40, 48, false},
                {"gpt-oss-120b", 128, 18, 36, false},
                {"mistral-7b-v0.1", 4096, 32, 32, false},
                {"llama-4-scout", 8192, 36, 48, true}};
    struct arena *a = arena_open();
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        const struct model m = load(a, ROWS[i].model);
        int64_t with = 0;
        for (size_t k = 0; k < m.kinds_n; k++) {
            const struct mixer *x = &m.kinds[k].mixer;
            if (x->window_tokens == 0) continue;
            assert_true(x->window_tokens == ROWS[i].window && x->chunked == ROWS[i].chunked);
            with += m.kinds[k].count;
        }
        assert_true(with == ROWS[i].with && m.layers == ROWS[i].of);
    }
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drafts_gain_above_their_cost),
        cmocka_unit_test(test_passes_reach_the_ridge),
        cmocka_unit_test(test_distinct_experts),
        cmocka_unit_test(test_tokens_that_fill_experts),
        cmocka_unit_test(test_busy_ranks),
        cmocka_unit_test(test_all_and_active_parameters),
        cmocka_unit_test(test_queries_that_are_worth_expanding),
        cmocka_unit_test(test_projections_and_tokens_of_latents),
        cmocka_unit_test(test_floors_of_measured_exchanges),
        cmocka_unit_test(test_caches_that_are_handed_over),
        cmocka_unit_test(test_windows_of_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
