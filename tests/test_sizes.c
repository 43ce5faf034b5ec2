/* Sizes of models: their numbers kind by kind against the model description, and a free size of the whole model, put
 * back to its number, against the quantities with numbers: on one rank and on several, in one kind of layer and in all.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "calc/learn/sizes.h"
#include "tests/learn.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void open_or_fail(struct learn *f, const char *model, const char *gpu, int64_t tp)
{
    struct err e = {0};
    if (learn_open(f, model, gpu, tp, false, &e) != ERR_OK) fail_msg("%s on %s: %s", model, gpu, e.text);
}

static struct sizes get(const struct learn *f, const struct sym *var, uint64_t kinds)
{
    struct err e = {0};
    struct sizes z = {0};
    if (sizes_of(&f->scope, var, kinds, &z, &e) != ERR_OK) fail_msg("%s", e.text);
    return z;
}

static double number(const struct sym *e)
{
    double v = (double)NAN;
    (void)sym_constant(e, &v);
    return v;
}

/* ---- numbers ---- */

static void test_numbers_of_a_model_with_experts(void **state)
{
    (void)state;
    struct learn f;
    open_or_fail(&f, "deepseek-v3", NULL, 8);
    const struct cost_symbols *y = &f.scope.y;
    struct sizes z = get(&f, y->F, UINT64_MAX);
    assert_int_equal(z.n, 2); /* config.json: intermediate_size 18432, moe_intermediate_size 2048 */
    assert_true(number(z.at[0].whole) == 18432 && number(z.at[0].rank) == 2304 && z.at[0].kinds == 1);
    assert_true(number(z.at[1].whole) == 2048 && number(z.at[1].rank) == 256 && z.at[1].kinds == 2);
    assert_string_equal(sizes_text(&f.scope, &z, false), "18432 in layer kind 1, 2048 in layer kind 2");
    assert_string_equal(sizes_text(&f.scope, &z, true), "18432/8 = 2304 in layer kind 1, 2048/8 = 256 in layer kind 2");
    z = get(&f, y->F, 2);
    assert_int_equal(z.n, 1);
    assert_string_equal(sizes_text(&f.scope, &z, false), "2048");
    z = get(&f, y->E, UINT64_MAX);
    assert_true(z.n == 1 && number(z.at[0].whole) == 256 && z.at[0].kinds == 2); /* the dense kind has none */
    z = get(&f, y->D, 2);
    assert_true(z.n == 1 && z.at[0].kinds == UINT64_MAX && number(z.at[0].rank) == 7168);
    z = get(&f, y->t, UINT64_MAX);
    assert_true(z.n == 1 && number(z.at[0].whole) == 8);
    z = get(&f, y->r, UINT64_MAX); /* no device: a ring of 8 */
    assert_true(z.n == 1 && number(z.at[0].whole) == 1.75);
    assert_int_equal(get(&f, y->W, UINT64_MAX).n, 0);
    assert_int_equal(get(&f, y->B, UINT64_MAX).n, 0);
    arena_close(f.a);
}

/* 8 KV heads on 16 ranks are copied, 128256 rows of a vocabulary on 7 rounded up: neither is a quotient */
static void test_parts_that_are_no_quotients(void **state)
{
    (void)state;
    struct learn f;
    open_or_fail(&f, "llama-3.1-70b", NULL, 16);
    struct sizes z = get(&f, f.scope.y.K, UINT64_MAX);
    assert_string_equal(sizes_text(&f.scope, &z, true), "1 of 8");
    assert_string_equal(sizes_text(&f.scope, &z, false), "8");
    arena_close(f.a);
}

/* ---- free sizes ---- */

static const char *const NAMES[] = {"params",         "active_params", "weight_bytes", "kv_bytes",  "state_bytes",
                                    "resident_bytes", "decode_step",   "prefill",      "throughput"};

/* The quantity with var free, and then put to its number, is the one with numbers; *depends when var is in it. */
static void check_named(const struct learn *f, const struct quantity_scope *free, const char *name,
                        const struct size *own, bool *depends)
{
    static const struct {
        int64_t B, S;
    } POINTS[] = {{1, 1031}, {61, 4099}};
    struct err e = {0};
    const struct quantity_scope *s = &f->scope;
    const struct sym *numbers = learn_named(s, name, &e), *q = learn_named(free, name, &e);
    if (!numbers && strcmp(name, "state_bytes") == 0) return;
    if (!numbers || !q) fail_msg("%s: %s", name, e.text);
    const struct sym_binding at = {free->free, own->whole};
    const struct sym *back = sym_bind(s->c, q, &at, 1);
    *depends = *depends || back != q;
    for (size_t i = 0; i < COUNT(POINTS); i++) {
        const double want = learn_at(s, numbers, POINTS[i].B, POINTS[i].S);
        const double got = learn_at(s, back, POINTS[i].B, POINTS[i].S);
        if (!(fabs(got - want) <= 1e-12 * fabs(want)))
            fail_msg("%s of %s, --for %s: %.17g, want %.17g", name, s->model->name, sym_name(free->free), got, want);
    }
}

/* A free size that is not put back leaves no number: the quantity must depend on it wherever the model has it. */
static void test_free_sizes_put_back(void **state)
{
    static const struct {
        const char *model, *gpu;
        int64_t tp;
    } ROWS[] = {{"llama-3.1-8b", "h100-sxm", 1},   {"llama-3.1-70b", "h100-sxm", 8}, {"mixtral-8x7b", "a100-80g", 2},
                {"deepseek-v3", "h200-sxm", 8},    {"gemma-3-27b", "h100-sxm", 4},   {"gpt-oss-120b", "b200-sxm", 8},
                {"llama-3.1-70b", "h100-sxm", 16}, {"gpt2-xl", "h100-sxm", 1}};
    (void)state;
    size_t free = 0;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        struct learn f;
        struct err e = {0};
        struct sizes all[SIZES_SYMBOLS];
        size_t n;
        if (learn_open(&f, ROWS[i].model, ROWS[i].gpu, ROWS[i].tp, false, &e) != ERR_OK) {
            arena_close(f.a); /* more ranks than the link joins */
            continue;
        }
        assert_int_equal(sizes_all(&f.scope, UINT64_MAX, all, &n, &e), ERR_OK);
        for (size_t k = 0; k < n; k++) {
            struct quantity_scope s = f.scope;
            bool depends = false;
            if (all[k].n != 1 || all[k].var == s.y.t || all[k].var == s.y.r) continue;
            if (all[k].var == s.y.L && f.model.kinds_n > 1) continue; /* refused by who asks */
            s.free = all[k].var;
            for (size_t j = 0; j < COUNT(NAMES); j++) check_named(&f, &s, NAMES[j], &all[k].at[0], &depends);
            free += depends;
        }
        arena_close(f.a);
    }
    assert_true(free > 60);
}

/* A size of one kind of layer alone: the other kinds keep their numbers. */
static void test_free_in_one_kind(void **state)
{
    (void)state;
    struct learn f;
    struct err e = {0};
    open_or_fail(&f, "deepseek-v3", "h200-sxm", 8);
    struct quantity_scope s = f.scope;
    s.free = s.y.F;
    s.layer = 1;
    const struct sym *params = learn_named(&s, "params", &e);
    assert_non_null(params);
    const struct sym_binding at = {s.y.F, sym_int(s.c, 2048)}, more = {s.y.F, sym_int(s.c, 2049)};
    const double own = number(sym_bind(s.c, params, &at, 1));
    assert_true(own == number(learn_named(&f.scope, "params", &e)));
    /* a column more in gate, up and down of 256 experts in 58 layers of width 7168 */
    assert_true(number(sym_bind(s.c, params, &more, 1)) - own == 58.0 * 256 * 3 * 7168);
    arena_close(f.a);
}

/* One size more, in the whole model: what a rank has of it is its share. */
static void test_a_free_size_is_the_whole_models(void **state)
{
    (void)state;
    struct learn f;
    struct err e = {0};
    open_or_fail(&f, "llama-3.1-8b", "h100-sxm", 4);
    struct quantity_scope s = f.scope;
    s.free = s.y.F;
    const struct sym *bytes = learn_named(&s, "weight_bytes", &e);
    const struct sym_binding at = {s.y.F, sym_int(s.c, 14336)}, more = {s.y.F, sym_int(s.c, 14336 + 4)};
    /* four columns of the model are one of a rank: three matrices of 32 layers of width 4096, two bytes each */
    assert_true(number(sym_bind(s.c, bytes, &more, 1)) - number(sym_bind(s.c, bytes, &at, 1)) == 32.0 * 3 * 4096 * 2);
    s.free = s.y.H; /* value heads follow: 8 KV heads of 4 ranks, keys and values, 32 layers, two bytes */
    const struct sym *kv = learn_named(&s, "kv_bytes", &e);
    const struct sym_binding wide = {s.y.H, sym_int(s.c, 131)};
    assert_true(learn_at(&s, sym_bind(s.c, kv, &wide, 1), 7, 1031) == 7.0 * 1031 * 32 * 2 * 131 * 2 * 2);
    s.free = s.y.K; /* three heads on four ranks: one each */
    const struct sym *heads = learn_named(&s, "kv_bytes", &e);
    const struct sym_binding few = {s.y.K, sym_int(s.c, 3)};
    assert_true(learn_at(&s, sym_bind(s.c, heads, &few, 1), 7, 1031) == 7.0 * 1031 * 32 * 2 * 128 * 2);
    arena_close(f.a);
}

/* Parameters are of the model whatever the ranks, and so are those of a topic. */
static void test_parameters_are_of_the_model(void **state)
{
    (void)state;
    for (int64_t tp = 1; tp <= 8; tp *= 2) {
        struct learn f;
        struct err e = {0};
        const struct sym *mlp;
        open_or_fail(&f, "llama-3.1-8b", "h100-sxm", tp);
        assert_true(number(learn_named(&f.scope, "params", &e)) == 8030261248.0);
        assert_true(number(learn_named(&f.scope, "active_params", &e)) == 8030261248.0);
        assert_int_equal(quantity_resolve(&f.scope, QUANTITY_ANY, "params", "mlp", &mlp, &e), ERR_OK);
        assert_true(number(mlp) == 3.0 * 4096 * 14336);
        arena_close(f.a);
    }
}

/* ---- rates ---- */

static void test_free_rates(void **state)
{
    static const char *const RATES[] = {"bandwidth", "peak_fp8", "peak_bf16", "link"};
    (void)state;
    for (size_t i = 0; i < COUNT(RATES); i++) {
        struct learn f;
        struct err e = {0};
        open_or_fail(&f, "deepseek-v3", "h200-sxm", 8);
        struct quantity_scope s = f.scope;
        s.free = sym_var(s.c, RATES[i]);
        assert_int_equal(quantity_device(&s, &f.hw, &e), ERR_OK);
        const struct rates names = rates_make(s.c);
        const char *meaning;
        const struct sym *value = NULL;
        for (size_t k = 0; k < RATES_N; k++)
            if (rates_list(&names, k, &meaning) == s.free) {
                assert_true(rates_list(&s.rates, k, &meaning) == s.free);
                value = rates_list(&f.scope.rates, k, &meaning);
            } else {
                assert_true(rates_list(&s.rates, k, &meaning) == rates_list(&f.scope.rates, k, &meaning));
            }
        const struct sym_binding back = {s.free, value};
        const struct sym *step = learn_named(&s, "decode_step", &e), *bound = sym_bind(s.c, step, &back, 1);
        assert_true(bound != step);
        const double want = learn_at(&s, learn_named(&f.scope, "decode_step", &e), 61, 4099);
        assert_true(fabs(learn_at(&s, bound, 61, 4099) - want) <= 1e-12 * want);
        arena_close(f.a);
    }
}

/* ridge and peak are of the linear layers' format; a topic runs on its own. */
static void test_units(void **state)
{
    (void)state;
    struct learn f;
    struct err e = {0};
    enum hw_dtype unit;
    struct quantity_topic t;
    open_or_fail(&f, "deepseek-v3", "h200-sxm", 8);
    assert_int_equal(quantity_linear_unit(&f.scope, &unit, &e), ERR_OK);
    assert_int_equal(unit, HW_FP8);
    assert_true(number(learn_named(&f.scope, "peak", &e)) == f.hw.peak_flops_per_s[HW_FP8]);
    const double ridge = number(learn_named(&f.scope, "ridge", &e));
    assert_true(fabs(ridge - hw_ridge(&f.hw, HW_FP8)) < 1e-12 * ridge);
    assert_int_equal(quantity_topic(&f.scope, "attention", QUANTITY_DECODE, &t, &e), ERR_OK);
    assert_true(quantity_units(&t) == 1U << HW_BF16);
    assert_int_equal(quantity_topic(&f.scope, "experts", QUANTITY_DECODE, &t, &e), ERR_OK);
    assert_true(quantity_units(&t) == 1U << HW_FP8);
    assert_int_equal(quantity_topic(&f.scope, "norm", QUANTITY_DECODE, &t, &e), ERR_OK);
    assert_true(quantity_units(&t) == 0);
    assert_int_equal(quantity_topic(&f.scope, "decode_step", QUANTITY_DECODE, &t, &e), ERR_OK);
    assert_true(quantity_units(&t) == (1U << HW_FP8 | 1U << HW_BF16));
    arena_close(f.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_of_a_model_with_experts),
        cmocka_unit_test(test_parts_that_are_no_quotients),
        cmocka_unit_test(test_free_sizes_put_back),
        cmocka_unit_test(test_free_in_one_kind),
        cmocka_unit_test(test_a_free_size_is_the_whole_models),
        cmocka_unit_test(test_parameters_are_of_the_model),
        cmocka_unit_test(test_free_rates),
        cmocka_unit_test(test_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
