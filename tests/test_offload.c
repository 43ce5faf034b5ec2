/* Weights at the host: memory, seconds and break-even against counts by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "calc/fit/calibrated.h"
#include "calc/time/mix.h"

/* Llama 3.1 8B: a layer's matrices and norms, by hand, in 16 bits. */
static const double LAYER_BYTES = 2 * (2. * 4096 * 4096 + 2. * 1024 * 4096 + 3. * 14336 * 4096 + 2 * 4096);
static const double AWAY = 3.7e9, LINK = 53e9;

struct bench {
    struct arena *a;
    struct model model;
    struct hw hw;
};

static void open_bench(struct bench *b, const char *model)
{
    struct err e = {0};
    b->a = arena_open();
    if (model_load(b->a, model, NULL, 0, &b->model, &e) != ERR_OK) fail_msg("%s", e.text);
    if (hw_load(b->a, "h100-sxm", &b->hw, &e) != ERR_OK) fail_msg("%s", e.text);
}

static struct step_setup setup_of(const struct bench *b, enum step_fidelity f, double away)
{
    return (struct step_setup){.model = &b->model,
                               .hw = &b->hw,
                               .fidelity = f,
                               .layout = {.tp = 1},
                               .block_tokens = 16,
                               .offload = {away, LINK}};
}

static struct step *compile(const struct bench *b, const struct step_setup *u)
{
    struct err e = {0};
    struct step *s = NULL;
    if (step_compile(b->a, u, &s, &e) != ERR_OK) fail_msg("%s", e.text);
    return s;
}

static void at(struct step *s, double B, double T, double S, double v[STEP_VALUES_N])
{
    struct err e = {0};
    if (step_eval_layout(s, NULL, B, T, S, 1, v, &e) != ERR_OK) fail_msg("%s", e.text);
}

static void near_to(double found, double wanted, double within, const char *what)
{
    if (!(fabs(found - wanted) <= within * fabs(wanted))) fail_msg("%s: %.15g, wanted %.15g", what, found, wanted);
}

/* The operators of the model whose weights are all on the device, each by hand with its part at the host. */
static double by_hand_s(const struct bench *b, const struct step *s, enum step_phase phase, double B, double T,
                        double S, double F)
{
    struct err e = {0};
    struct step_op *op;
    size_t n;
    double sum = 0;
    if (step_ops(b->a, s, phase, B, T, S, 1, &op, &n, &e) != ERR_OK) fail_msg("%s", e.text);
    for (size_t i = 0; i < n; i++) {
        const bool layer = strcmp(op[i].layer, "model") != 0;
        const double rest = (op[i].bytes - op[i].weight_bytes) / b->hw.bandwidth_bytes_per_s;
        const double compute = op[i].flops / b->hw.peak_flops_per_s[HW_BF16];
        const double vector = op[i].vector_flops / b->hw.peak_flops_per_s[HW_FP32_VECTOR];
        const double away = fmax(fmax(compute, vector), fmax(rest, op[i].weight_bytes / LINK));
        sum += layer && op[i].weight_bytes > 0 ? (1 - F) * op[i].time_s + F * away : op[i].time_s;
    }
    return sum;
}

static void test_by_hand(void **state)
{
    struct bench b;
    double x[STEP_VALUES_N], y[STEP_VALUES_N];
    (void)state;
    open_bench(&b, "llama-3.1-8b");
    const struct step_setup all = setup_of(&b, STEP_ROOFLINE, 0), some = setup_of(&b, STEP_ROOFLINE, AWAY);
    struct step *whole = compile(&b, &all), *away = compile(&b, &some);
    const double layers = 32 * LAYER_BYTES, F = AWAY / layers;
    near_to(step_offloaded_bytes(away), AWAY, 1e-15, "at the host");
    assert_true(step_offloaded_bytes(whole) == 0 && step_offloaded_frac(whole) == 0);
    near_to(step_offloaded_frac(away), F, 1e-12, "part of the layers");
    near_to(step_weight_bytes(whole) - step_weight_bytes(away), AWAY, 1e-12, "off the device");
    static const double POINTS[][3] = {{1, 701, 1409}, {13, 4799, 307}, {211, 23, 2003}, {1, 30011, 30013}};
    for (size_t i = 0; i < sizeof POINTS / sizeof *POINTS; i++) {
        const double B = POINTS[i][0], T = POINTS[i][1], S = POINTS[i][2];
        at(whole, B, T, S, x);
        at(away, B, T, S, y);
        near_to(y[STEP_decode_step_s], by_hand_s(&b, whole, STEP_DECODE, B, T, S, F), 1e-12, "step");
        near_to(y[STEP_prefill_s], by_hand_s(&b, whole, STEP_PREFILL, B, T, S, F), 1e-12, "prefill");
        near_to(y[STEP_decode_host_bytes], AWAY, 1e-12, "read there");
        near_to(y[STEP_memory_bytes], x[STEP_memory_bytes] - AWAY, 1e-12, "memory");
        near_to(y[STEP_decode_bytes], x[STEP_decode_bytes] - AWAY, 1e-12, "no byte is read twice");
        assert_true(y[STEP_decode_step_s] > x[STEP_decode_step_s] && y[STEP_decode_flops] > 0);
    }
    /* more than the layers have: embedding, last norm and head stay */
    const struct step_setup more = setup_of(&b, STEP_ROOFLINE, 1e12);
    struct step *none = compile(&b, &more);
    near_to(step_weight_bytes(none), step_weight_bytes(whole) - layers, 1e-12, "what stays");
    near_to(step_offloaded_frac(none), 1, 1e-15, "all layers");
    arena_close(b.a);
}

/* The pooled bound, and a mixed step that only decodes. */
static void test_bound(void **state)
{
    struct bench b;
    struct err e = {0};
    double x[STEP_VALUES_N], y[STEP_VALUES_N], v[MIX_VALUES_N];
    (void)state;
    open_bench(&b, "llama-3.1-8b");
    const struct step_setup all = setup_of(&b, STEP_BOUND, 0), some = setup_of(&b, STEP_BOUND, AWAY);
    struct step *whole = compile(&b, &all), *away = compile(&b, &some);
    struct mix_plan *plan;
    struct mix m;
    assert_int_equal(mix_compile(b.a, &some, &plan, &e), ERR_OK);
    assert_int_equal(mix_open(b.a, plan, &m, &e), ERR_OK);
    static const double POINTS[][2] = {{1, 1409}, {87, 15013}, {9001, 31}};
    for (size_t i = 0; i < sizeof POINTS / sizeof *POINTS; i++) {
        const double B = POINTS[i][0], S = POINTS[i][1], bandwidth = b.hw.bandwidth_bytes_per_s;
        at(whole, B, 77, S, x);
        at(away, B, 77, S, y);
        const double memory_s = (x[STEP_decode_bytes] - AWAY) / bandwidth;
        near_to(y[STEP_decode_step_s], fmax(fmax(x[STEP_decode_compute_s], memory_s), AWAY / LINK), 1e-12, "bound");
        mix_clear(&m);
        mix_decode(&m, B, S);
        mix_eval(&m, v);
        near_to(v[MIX_step_s], y[STEP_decode_step_s], 1e-9, "mixed step");
        near_to(v[MIX_host_s], AWAY / LINK, 1e-12, "mixed step's link");
        near_to(v[MIX_memory_bytes], y[STEP_memory_bytes], 2e-3, "mixed step's memory"); /* activations of prompts */
    }
    arena_close(b.a);
}

/* Tokens from which on a product hides its own weights: bytes*peak/(2*link), one less does not. */
static void test_break_even(void **state)
{
    struct bench b;
    struct err e = {0};
    (void)state;
    open_bench(&b, "llama-3.1-8b");
    const struct step_setup u = setup_of(&b, STEP_ROOFLINE, 1e12);
    struct step *s = compile(&b, &u);
    const double tokens = offload_hides_tokens(&u.offload, 2, b.hw.peak_flops_per_s[HW_BF16]);
    near_to(tokens, 989.4e12 / 53e9, 1e-12, "tokens");
    for (int k = 0; k < 2; k++) {
        struct step_op *op;
        size_t n, seen = 0;
        const double T = k ? ceil(tokens) : floor(tokens);
        assert_int_equal(step_ops(b.a, s, STEP_PREFILL, 1, T, T, 1, &op, &n, &e), ERR_OK);
        for (size_t i = 0; i < n; i++) {
            const char *name = op[i].name;
            if (strcmp(name, "qkv_proj") != 0 && strcmp(name, "o_proj") != 0 && strcmp(name, "down_proj") != 0)
                continue;
            assert_string_equal(op[i].bound_by, k ? "compute" : "host");
            seen++;
        }
        assert_int_equal(seen, 3);
    }
    arena_close(b.a);
}

/* A norm of 200 tokens: 8192 bytes of weights take 155 ns over the link, reading and writing 200*4096 numbers 978 ns of
 * memory, and 4 flops a number 49 ns; on a device of 1e12 elementwise flops 328 ns for 20. Of one token the link takes
 * longest. */
static void test_bound_of_norms(void **state)
{
    static const struct {
        double tokens, vector;
        const char *bound_by;
    } CASES[] = {{1, 66.9e12, "host"}, {200, 66.9e12, "memory"}, {20, 1e12, "vector"}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct bench b;
        struct err e = {0};
        struct step_op *op;
        size_t n, seen = 0;
        open_bench(&b, "llama-3.1-8b");
        b.hw.peak_flops_per_s[HW_FP32_VECTOR] = CASES[i].vector;
        const struct step_setup u = setup_of(&b, STEP_ROOFLINE, 1e12);
        const double T = CASES[i].tokens;
        assert_int_equal(step_ops(b.a, compile(&b, &u), STEP_PREFILL, 1, T, T, 1, &op, &n, &e), ERR_OK);
        for (size_t o = 0; o < n; o++) {
            if (strcmp(op[o].name, "mixer_norm") != 0) continue;
            assert_string_equal(op[o].bound_by, CASES[i].bound_by);
            seen++;
        }
        assert_int_equal(seen, 1);
        arena_close(b.a);
    }
}

/* Stages and groups: each GPU has its own part there, of any layout as of that one compiled alone. */
static void test_layouts(void **state)
{
    static const struct layout OF[] = {{.tp = 1, .pp = 2}, {.tp = 4}, {.tp = 2, .pp = 4}};
    struct bench b;
    struct err e = {0};
    (void)state;
    open_bench(&b, "llama-3.1-8b");
    struct step_setup any = setup_of(&b, STEP_ROOFLINE, 1.3e9);
    any.any_layout = true;
    struct step *s = compile(&b, &any);
    for (size_t i = 0; i < sizeof OF / sizeof *OF; i++) {
        double x[STEP_VALUES_N], y[STEP_VALUES_N], z[STEP_VALUES_N];
        const struct layout l = layout_whole(&OF[i]);
        struct step_setup one = setup_of(&b, STEP_ROOFLINE, 1.3e9), resident = setup_of(&b, STEP_ROOFLINE, 0);
        one.layout = resident.layout = l;
        if (step_eval_layout(s, &l, 8, 311, 1201, 1, x, &e) != ERR_OK) fail_msg("%s", e.text);
        at(compile(&b, &one), 8, 311, 1201, y);
        at(compile(&b, &resident), 8, 311, 1201, z);
        near_to(x[STEP_decode_step_s], y[STEP_decode_step_s], 1e-9, "step");
        near_to(x[STEP_weight_bytes], z[STEP_weight_bytes] - 1.3e9, 1e-9, "on a GPU");
        near_to(y[STEP_offloaded_bytes], 1.3e9, 1e-9, "at the host");
        near_to(y[STEP_decode_host_bytes], 1.3e9 * (double)(l.pp > 1 ? l.microbatches : 1), 1e-9, "read there");
    }
    arena_close(b.a);
}

/* Of experts only those that a step touches are read. */
static void test_experts(void **state)
{
    struct bench b;
    double x[STEP_VALUES_N], y[STEP_VALUES_N];
    (void)state;
    open_bench(&b, "qwen3-30b-a3b");
    const struct step_setup all = setup_of(&b, STEP_BOUND, 0), some = setup_of(&b, STEP_BOUND, 17e9);
    struct step *whole = compile(&b, &all), *away = compile(&b, &some);
    at(whole, 1, 5, 701, x);
    at(away, 1, 5, 701, y);
    assert_true(y[STEP_decode_host_bytes] < .2 * 17e9); /* 8 of 128 experts */
    near_to(x[STEP_decode_bytes] - y[STEP_decode_bytes], y[STEP_decode_host_bytes], 1e-12, "off the device");
    at(away, 4001, 5, 701, y);
    near_to(y[STEP_decode_host_bytes], 17e9, 1e-6, "all of them");
    arena_close(b.a);
}

/* Calibrated: what the link takes beyond each kernel of the layers that are there; other kernels hide nothing. */
static void test_calibrated(void **state)
{
    struct bench b;
    struct err e = {0};
    struct source source;
    struct calibrated *cal[2];
    struct step *s[2];
    (void)state;
    open_bench(&b, "llama-3.1-8b");
    if (source_open(b.a, &b.hw, NULL, NULL, &source, &e) != ERR_OK) fail_msg("%s", e.text);
    for (int k = 0; k < 2; k++) {
        const struct step_setup u = setup_of(&b, STEP_BOUND, k ? AWAY : 0);
        s[k] = compile(&b, &u);
        const struct calibrated_setup c = {.step = s[k], .source = &source};
        if (calibrated_open(b.a, &c, &cal[k], &e) != ERR_OK) fail_msg("%s", e.text);
    }
    static const double POINTS[][3] = {{7, 701, 1409}, {1, 30011, 4001}};
    for (size_t i = 0; i < sizeof POINTS / sizeof *POINTS; i++)
        for (enum step_phase p = 0; p < STEP_PHASES; p++) {
            const double B = p == STEP_PREFILL ? 1 : POINTS[i][0], T = POINTS[i][1], S = POINTS[i][2], floor_s = 0;
            struct calibrated_time t[2];
            struct step_op *op;
            size_t n;
            double wait_s = 0;
            for (int k = 0; k < 2; k++) calibrated_eval(cal[k], p, 1, &B, &T, &S, NULL, &floor_s, &t[k]);
            assert_int_equal(step_ops(b.a, s[0], p, B, T, S, 1, &op, &n, &e), ERR_OK);
            calibrated_ops(cal[0], p, B, T, S, 1, op, n);
            for (size_t o = 0; o < n; o++)
                if (strcmp(op[o].layer, "model") != 0 && op[o].weight_bytes > 0)
                    wait_s += AWAY / (32 * LAYER_BYTES) * fmax(0, op[o].weight_bytes / LINK - op[o].time_s);
            near_to(t[1].s, t[0].s + wait_s, 1e-6, step_phase_name(p));
            near_to(t[1].p90_s, t[0].p90_s + wait_s, 1e-6, "P90");
            assert_true(p != STEP_DECODE || wait_s > 0);
        }
    arena_close(b.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),    cmocka_unit_test(test_bound_of_norms), cmocka_unit_test(test_bound),
        cmocka_unit_test(test_break_even), cmocka_unit_test(test_layouts),        cmocka_unit_test(test_experts),
        cmocka_unit_test(test_calibrated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
