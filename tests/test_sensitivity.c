/* Elasticities against central differences: of rates by steps compiled for a changed device, of batch and context by
 * the same step elsewhere, of sizes by models read with changed keys; and the exact ones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "calc/learn/sensitivity.h"
#include "calc/time/step.h"
#include "tests/learn.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Elasticities below this are left out. */
static const double LEAST = 0.0005;

static const struct {
    const char *model, *gpu;
    int64_t tp, B, S;
} CASES[] = {{"llama-2-13b", "h100-sxm", 1, 61, 1021},  {"llama-2-13b", "h100-sxm", 1, 1423, 37},
             {"deepseek-v3", "h200-sxm", 8, 67, 4099},  {"gemma-3-27b", "a100-80g", 2, 13, 3001},
             {"mixtral-8x7b", "mi300x", 4, 5, 911},     {"gpt-oss-20b", "b200-sxm", 1, 257, 1777},
             {"phi-3-mini-4k", "rtx-4090", 1, 3, 1531}, {"llama-3.1-70b", "h100-sxm", 8, 1999, 211}};

static double of(const struct sensitivity *r, const char *symbol)
{
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->rows[i].symbol, symbol) == 0) return r->rows[i].elasticity;
    return 0;
}

static bool is_rate(const char *symbol)
{
    return strncmp(symbol, "peak_", 5) == 0 || strcmp(symbol, "bandwidth") == 0 || strcmp(symbol, "link") == 0;
}

static double sum_of_rates(const struct sensitivity *r)
{
    double sum = 0;
    for (size_t i = 0; i < r->n; i++)
        if (is_rate(r->rows[i].symbol)) sum += r->rows[i].elasticity;
    return sum;
}

static struct sensitivity get(struct learn *f, const char *quantity, int64_t B, int64_t S)
{
    struct err e = {0};
    struct sensitivity r = {0};
    if (sensitivity_of(&f->scope, QUANTITY_ANY, quantity, B, S, &r, &e) != ERR_OK)
        fail_msg("%s of %s: %s", quantity, f->model.name, e.text);
    return r;
}

static void open_case(struct learn *f, size_t i, enum step_fidelity fidelity)
{
    struct err e = {0};
    if (learn_open(f, CASES[i].model, CASES[i].gpu, CASES[i].tp, false, &e) != ERR_OK) fail_msg("%s", e.text);
    f->scope.fidelity = fidelity;
    f->scope.prefill_together = i % 2;
}

/* One kind of unit over the time it takes: rates twice as high halve it. */
static void test_elasticities_of_rates_add_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(CASES); i++)
        for (int fidelity = STEP_BOUND; fidelity <= STEP_ROOFLINE; fidelity++) {
            static const struct {
                const char *quantity;
                double sum;
            } ROWS[] = {{"decode_step", -1}, {"prefill", -1}, {"throughput", 1}, {"attention", -1},
                        {"lm_head", -1},     {"ridge", 0},    {"peak", 1},       {"resident_bytes", 0}};
            struct learn f;
            open_case(&f, i, (enum step_fidelity)fidelity);
            for (size_t k = 0; k < COUNT(ROWS); k++) {
                const struct sensitivity r = get(&f, ROWS[k].quantity, CASES[i].B, CASES[i].S);
                /* up to RATES_N of them may be left out */
                if (fabs(sum_of_rates(&r) - ROWS[k].sum) > RATES_N * LEAST)
                    fail_msg("%s %s: %g", CASES[i].model, ROWS[k].quantity, sum_of_rates(&r));
                for (size_t j = 1; j < r.n; j++)
                    assert_true(fabs(r.rows[j].elasticity) <= fabs(r.rows[j - 1].elasticity));
                for (size_t j = 0; j < r.n; j++) assert_true(fabs(r.rows[j].elasticity) >= LEAST);
            }
            arena_close(f.a);
        }
}

/* ---- central differences ---- */

struct values {
    double decode_s, prefill_s;
};

static struct values step_at(struct arena *a, const struct model *m, const struct hw *hw, int64_t tp,
                             enum step_fidelity fidelity, bool together, double B, double S)
{
    struct err e = {0};
    struct step *step = NULL;
    struct values v;
    double *out[STEP_VALUES_N] = {0};
    const struct step_setup setup = {.model = m,
                                     .hw = hw,
                                     .layout = {.tp = tp},
                                     .fidelity = fidelity,
                                     .prefill_together = together,
                                     .block_tokens = 16};
    if (step_compile(a, &setup, &step, &e) != ERR_OK) fail_msg("%s: %s", m->name, e.text);
    out[STEP_decode_step_s] = &v.decode_s;
    out[STEP_prefill_s] = &v.prefill_s;
    step_eval(step, 1, &B, &S, &S, NULL, out);
    return v;
}

/* d ln y / d ln x of values at x*(1 +- h) */
static double log_slope(double up, double down, double h) { return (log(up) - log(down)) / (log1p(h) - log1p(-h)); }

static void check(const struct sensitivity *r, const char *symbol, double want, double tolerance, const char *model)
{
    const double got = of(r, symbol);
    if (fabs(want) < LEAST + tolerance && fabs(got) < LEAST + tolerance) return;
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%s %s by %s: %.9g, want %.9g", model, r->quantity, symbol, got, want);
}

static void test_rates_against_a_changed_device(void **state)
{
    static const double H = 1e-6;
    (void)state;
    for (size_t i = 0; i < COUNT(CASES); i++)
        for (int fidelity = STEP_BOUND; fidelity <= STEP_ROOFLINE; fidelity++) {
            struct learn f;
            open_case(&f, i, (enum step_fidelity)fidelity);
            const struct sensitivity decode = get(&f, "decode_step", CASES[i].B, CASES[i].S);
            const struct sensitivity prefill = get(&f, "prefill", CASES[i].B, CASES[i].S);
            assert_false(decode.kink || prefill.kink);
            for (size_t k = 0; k < RATES_N; k++) {
                const char *meaning;
                const struct rates names = rates_make(f.scope.c);
                const char *symbol = sym_name(rates_list(&names, k, &meaning));
                struct values v[2];
                for (int side = 0; side < 2; side++) {
                    struct hw hw = f.hw;
                    const double x = side ? 1 - H : 1 + H;
                    if (k < HW_DTYPES_N) hw.peak_flops_per_s[k] *= x;
                    if (k == HW_DTYPES_N) hw.bandwidth_bytes_per_s *= x;
                    if (k > HW_DTYPES_N) hw.link_bytes_per_s *= x;
                    if (k > HW_DTYPES_N) hw.link_pair_bytes_per_s *= x;
                    if (k > HW_DTYPES_N) hw.pcie_bytes_per_s *= x;
                    v[side] = step_at(f.a, &f.model, &hw, CASES[i].tp, (enum step_fidelity)fidelity,
                                      f.scope.prefill_together, (double)CASES[i].B, (double)CASES[i].S);
                }
                check(&decode, symbol, log_slope(v[0].decode_s, v[1].decode_s, H), 1e-7, CASES[i].model);
                check(&prefill, symbol, log_slope(v[0].prefill_s, v[1].prefill_s, H), 1e-7, CASES[i].model);
            }
            arena_close(f.a);
        }
}

static void test_batch_and_context_against_other_points(void **state)
{
    static const double H = 1e-6;
    (void)state;
    for (size_t i = 0; i < COUNT(CASES); i++)
        for (int fidelity = STEP_BOUND; fidelity <= STEP_ROOFLINE; fidelity++) {
            struct learn f;
            open_case(&f, i, (enum step_fidelity)fidelity);
            const struct sensitivity decode = get(&f, "decode_step", CASES[i].B, CASES[i].S);
            const struct sensitivity prefill = get(&f, "prefill", CASES[i].B, CASES[i].S);
            const struct sensitivity rate = get(&f, "throughput", CASES[i].B, CASES[i].S);
            for (int var = 0; var < 2; var++) {
                struct values v[2];
                for (int side = 0; side < 2; side++) {
                    const double x = side ? 1 - H : 1 + H;
                    v[side] = step_at(f.a, &f.model, &f.hw, CASES[i].tp, (enum step_fidelity)fidelity,
                                      f.scope.prefill_together, (double)CASES[i].B * (var ? 1 : x),
                                      (double)CASES[i].S * (var ? x : 1));
                }
                const char *symbol = var ? "S" : "B";
                const double want = log_slope(v[0].decode_s, v[1].decode_s, H);
                check(&decode, symbol, want, 1e-7, CASES[i].model);
                check(&rate, symbol, (var ? 0 : 1) - want, 1e-7, CASES[i].model);
                check(&prefill, symbol, log_slope(v[0].prefill_s, v[1].prefill_s, H), 1e-7, CASES[i].model);
            }
            assert_true(of(&decode, "T") <= 0 && of(&decode, "T") >= 0);
            arena_close(f.a);
        }
}

/* A step is linear in layers, and between changes of what binds in F and V: differences over whole numbers are exact.
 */
static void test_sizes_against_changed_models(void **state)
{
    static const struct {
        const char *model, *key, *symbol;
        int64_t at, by;
    } ROWS[] = {{"llama-2-13b", "L", "L", 40, 1},
                {"llama-3.1-8b", "num_hidden_layers", "L", 32, 3},
                {"mixtral-8x7b", "num_hidden_layers", "L", 32, 1},
                {"llama-2-13b", "F", "F", 13824, 8},
                {"llama-3.1-8b", "V", "V", 128256, 16},
                {"qwen2.5-14b", "L", "L", 48, 1},
                {"mixtral-8x7b", "F", "F", 14336, 8}};
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        struct learn f;
        struct err e = {0};
        struct values v[2];
        if (learn_open(&f, ROWS[i].model, "h100-sxm", 1, false, &e) != ERR_OK) fail_msg("%s", e.text);
        f.scope.fidelity = STEP_ROOFLINE;
        const struct sensitivity decode = get(&f, "decode_step", 67, 1021), prefill = get(&f, "prefill", 67, 1021);
        for (int side = 0; side < 2; side++) {
            struct model m;
            char text[32];
            (void)snprintf(text, sizeof text, "%lld", (long long)(ROWS[i].at + (side ? -1 : 1) * ROWS[i].by));
            const struct model_setting set = {ROWS[i].key, text};
            if (model_load(f.a, ROWS[i].model, &set, 1, &m, &e) != ERR_OK) fail_msg("%s", e.text);
            v[side] = step_at(f.a, &m, &f.hw, 1, STEP_ROOFLINE, false, 67, 1021);
        }
        const double x = (double)ROWS[i].at / (2 * (double)ROWS[i].by);
        check(&decode, ROWS[i].symbol, x * (v[0].decode_s - v[1].decode_s) / decode.value, 1e-9, ROWS[i].model);
        check(&prefill, ROWS[i].symbol, x * (v[0].prefill_s - v[1].prefill_s) / prefill.value, 1e-9, ROWS[i].model);
        arena_close(f.a);
    }
}

/* ---- exact ones ---- */

static void test_exponents_of_bytes(void **state)
{
    static const struct {
        const char *model, *quantity, *symbol;
        int64_t B, S;
        double want;
    } ROWS[] = {
        {"llama-2-13b", "kv_bytes", "B", 7, 1531, 1},
        {"llama-2-13b", "kv_bytes", "S", 7, 1531, 1},
        {"llama-2-13b", "kv_bytes", "L", 7, 1531, 1},
        {"llama-2-13b", "kv_bytes", "K", 7, 1531, 1},
        {"llama-2-13b", "kv_bytes", "b_kv", 7, 1531, 1},
        {"llama-2-13b", "kv_bytes", "D", 7, 1531, 0},
        {"llama-2-13b", "weight_bytes", "B", 7, 1531, 0},
        {"llama-2-13b", "weight_bytes", "S", 7, 1531, 0},
        {"mistral-7b-v0.1", "kv_bytes", "S", 7, 5003, 0}, /* 32 of 32 layers see 4096 */
        {"mistral-7b-v0.1", "kv_bytes", "W", 7, 5003, 1},
        {"mistral-7b-v0.1", "kv_bytes", "S", 7, 4001, 1},
        {"mistral-7b-v0.1", "kv_bytes", "W", 7, 4001, 0},
        {"mistral-7b-v0.1", "kv_bytes", "B", 7, 5003, 1},
        /* 10 full layers of S = 3001, 52 of 1024 */
        {"gemma-3-27b", "kv_bytes", "S", 7, 3001, 10 * 3001.0 / (10 * 3001 + 52 * 1024)},
        {"gemma-3-27b", "kv_bytes", "W", 7, 3001, 52 * 1024.0 / (10 * 3001 + 52 * 1024)},
        {"deepseek-v3", "kv_bytes", "C", 7, 3001, 512.0 / 576},
        {"deepseek-v3", "kv_bytes", "R", 7, 3001, 64.0 / 576},
        {"mixtral-8x7b", "params", "E", 7, 3001,
         32 * 8 * 3 * 4096.0 * 14336 / 46702792704 + 32 * 8 * 4096.0 / 46702792704},
        {"llama-2-13b", "ridge", "peak_fp16", 7, 1531, 1},
        {"llama-2-13b", "ridge", "bandwidth", 7, 1531, -1},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        struct learn f;
        struct err e = {0};
        const bool device = strcmp(ROWS[i].quantity, "ridge") == 0;
        if (learn_open(&f, ROWS[i].model, device ? "h100-sxm" : NULL, 1, false, &e) != ERR_OK) fail_msg("%s", e.text);
        const struct sensitivity r = get(&f, ROWS[i].quantity, ROWS[i].B, ROWS[i].S);
        check(&r, ROWS[i].symbol, ROWS[i].want, 1e-12, ROWS[i].model);
        if (ROWS[i].want > LEAST) assert_true(of(&r, ROWS[i].symbol) > 0);
        assert_false(r.kink);
        arena_close(f.a);
    }
}

/* Work and traffic of one step made equal by the bandwidth: one side's answer, and said so. */
static void test_a_tie_is_said(void **state)
{
    (void)state;
    struct learn f;
    struct err e = {0};
    struct quantity_topic t;
    if (learn_open(&f, "llama-2-13b", "h100-sxm", 1, true, &e) != ERR_OK) fail_msg("%s", e.text);
    assert_int_equal(quantity_topic(&f.scope, "decode_step", QUANTITY_DECODE, &t, &e), ERR_OK);
    const double bytes = learn_at(&f.scope, t.bytes, 61, 1021);
    const double compute_s = learn_at(&f.scope, t.total.compute_s, 61, 1021);
    f.hw.bandwidth_bytes_per_s = bytes / compute_s;
    assert_int_equal(quantity_device(&f.scope, &f.hw, &e), ERR_OK);
    struct sensitivity r = get(&f, "decode_step", 61, 1021);
    assert_true(r.kink);
    assert_true(fabs(sum_of_rates(&r) + 1) < 1e-12);
    f.hw.bandwidth_bytes_per_s *= 1 + 1e-9;
    assert_int_equal(quantity_device(&f.scope, &f.hw, &e), ERR_OK);
    r = get(&f, "decode_step", 61, 1021);
    assert_false(r.kink);
    assert_true(of(&r, "peak_fp16") < -0.999999); /* more bandwidth than needed */
    f.hw.bandwidth_bytes_per_s *= 1 - 1e-8;
    assert_int_equal(quantity_device(&f.scope, &f.hw, &e), ERR_OK);
    r = get(&f, "decode_step", 61, 1021);
    assert_true(!r.kink && of(&r, "bandwidth") < -0.999999);
    arena_close(f.a);
}

static void test_refusals(void **state)
{
    (void)state;
    struct learn f, g;
    struct err e = {0};
    struct sensitivity r;
    assert_int_equal(learn_open(&f, NULL, NULL, 1, false, &e), ERR_OK);
    assert_int_equal(sensitivity_of(&f.scope, QUANTITY_ANY, "decode_step", 3, 5, &r, &e), ERR_USAGE);
    assert_non_null(strstr(e.text, "-m"));
    assert_int_equal(learn_open(&g, "llama-2-13b", NULL, 1, false, &e), ERR_OK);
    assert_int_equal(sensitivity_of(&g.scope, QUANTITY_ANY, "throughput", 3, 5, &r, &e), ERR_USAGE);
    assert_non_null(strstr(e.text, "-g"));
    assert_int_equal(sensitivity_of(&g.scope, QUANTITY_ANY, "throughptu", 3, 5, &r, &e), ERR_USAGE);
    assert_non_null(strstr(e.text, "throughptu"));
    arena_close(f.a);
    arena_close(g.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elasticities_of_rates_add_up),
        cmocka_unit_test(test_rates_against_a_changed_device),
        cmocka_unit_test(test_batch_and_context_against_other_points),
        cmocka_unit_test(test_sizes_against_changed_models),
        cmocka_unit_test(test_exponents_of_bytes),
        cmocka_unit_test(test_a_tie_is_said),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
