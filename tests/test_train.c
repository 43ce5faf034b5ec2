/* Training: published memory of ZeRO and of activations, the lecture's two questions, flops of a step. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "calc/time/train.h"

struct fixture {
    struct arena *a;
    struct model m;
    struct hw hw;
    struct train_plan *plan;
};

static void open_plan(struct fixture *f, const char *model, struct train_setup u)
{
    struct err e = {0};
    f->a = arena_open();
    if (model_load(f->a, model, NULL, 0, &f->m, &e) != ERR_OK) fail_msg("%s", e.text);
    if (hw_load(f->a, "h100-sxm", &f->hw, &e) != ERR_OK) fail_msg("%s", e.text);
    u.model = &f->m;
    u.hw = &f->hw;
    if (!u.tp) u.tp = 1;
    if (!u.copies) u.copies = 1;
    if (!u.recipe) u.recipe = train_recipe_find("adamw");
    if (train_compile(f->a, &u, &f->plan, &e) != ERR_OK) fail_msg("%s: %s", model, e.text);
}

static void close_to(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance * fabs(want))) fail_msg("%.17g, want %.17g", got, want);
}

/* arXiv 1910.02054, figure 1: 7.5e9 parameters on 64 devices take 120, 31.4, 16.6 and 1.9 GB. */
static void test_zero(void **state)
{
    (void)state;
    static const double GB[] = {120, 31.4, 16.6, 1.9};
    for (int stage = 0; stage < 4; stage++) {
        const struct train_memory m = train_memory(train_recipe_find("adamw"), 7.5e9, 64, stage);
        assert_true(fabs((m.param_bytes + m.grad_bytes + m.state_bytes) / 1e9 - GB[stage]) < 0.05);
    }
    size_t n;
    const struct train_recipe *r = train_recipes(&n);
    for (size_t i = 0; i < n; i++) {
        assert_ptr_equal(train_recipe_find(r[i].name), &r[i]);
        assert_true(r[i].param_bytes >= 2 && r[i].grad_bytes >= 2 && r[i].state_bytes > 0 && r[i].source);
    }
    assert_null(train_recipe_find("adam"));
}

/* CS336, lecture 2: days of a 70B model over 15T tokens on 1024 H100 at half of 989.5e12; the largest model on 8 x 80e9
 * bytes at 16 bytes a parameter. */
static void test_lecture(void **state)
{
    (void)state;
    close_to(train_run_s(train_flops(70e9, 15e12), 1024, 989.5e12, 0.5) / 86400, 143.93, 1e-4);
    const struct train_memory m = train_memory(train_recipe_find("adamw"), 40e9, 8, 3);
    assert_true(m.param_bytes + m.grad_bytes + m.state_bytes == 80e9);
}

/* arXiv 2205.05198, equations 1 and 2 without dropout: a layer of a GPT keeps s*b*h*(8 + 24/t) bytes, and 2*a*s*s*b/t
 * of its softmax where that is kept. OPT 1.3B: h = 2048, a = 32, 24 layers, 50,272 tokens, MLP of 4*h, no gate. Beside
 * it: 4 bytes a head and row where the softmax is computed anew; of the final norm and the head 2*h each a token, and
 * logits in fp32. */
static void test_activations(void **state)
{
    (void)state;
    const double b = 3, s = 1019, h = 2048, heads = 32, L = 24, V = 50272;
    for (int t = 1; t <= 4; t *= 2)
        for (int how = 0; how < 3; how++) {
            struct fixture f;
            struct train_step step;
            open_plan(&f, "opt-1.3b", (struct train_setup){.tp = t, .recompute = (enum train_recompute)how});
            train_eval(f.plan, b, s, &step);
            const double statistic = 4 * heads / t * s * b, softmax = 2 * heads * s * s * b / t;
            const double layer = s * b * h * (8 + 24.0 / t) + statistic;
            const double outside = s * b * (2 * 2 * h + 4 * V / t);
            const double kept = how == TRAIN_RECOMPUTE_LAYERS ? L * 2 * s * b * h + layer
                                : how == TRAIN_RECOMPUTE_NONE ? L * (layer - statistic + softmax)
                                                              : L * layer;
            close_to(step.activation_bytes, kept + outside, 1e-12);
            arena_close(f.a);
        }
}

/* Llama 3.1 8B: forward flops are 2 for each of 7,504,924,672 - 4096*65 weights of products and a token, and
 * 4*32*4096 a causal pair; backward twice as much. 6ND counts the embedding and no pairs. */
static void test_flops(void **state)
{
    (void)state;
    struct fixture f;
    struct train_step one, anew;
    const double B = 3, S = 1021, products = 32 * (4096.0 * (4096 + 2 * 1024) + 4096 * 4096.0 + 3 * 4096 * 14336.0);
    open_plan(&f, "llama-3.1-8b", (struct train_setup){.copies = 4, .zero = 1});
    train_eval(f.plan, B, S, &one);
    assert_true(one.tokens == 4 * B * S);
    const double forward = 2 * (products + 4096 * 128256.0) * B * S + 4 * 32 * 4096 * B * S * (S + 1) / 2;
    close_to(one.flops, 4 * 3 * forward, 1e-12);
    close_to(one.backward_s, 2 * one.forward_s, 1e-12);
    assert_true(one.mfu > 0.4 && one.mfu < 1);
    /* 8,030,261,248 parameters: 2 + 2 bytes each, 12 split over 4 */
    assert_true(one.memory.param_bytes == 2 * 8030261248.0 && one.memory.state_bytes == 3 * 8030261248.0);
    /* gradients once around the ring of four: 2*3/4 of them at 450 GB/s */
    close_to(one.reduce_s, 1.5 * 2 * 8030261248.0 / 450e9, 1e-12);
    close_to(one.update_s, 8030261248.0 / 4 * (2 + 24 + 2) / 3.35e12, 1e-12);
    arena_close(f.a);
    open_plan(&f, "llama-3.1-8b", (struct train_setup){.copies = 4, .recompute = TRAIN_RECOMPUTE_LAYERS});
    train_eval(f.plan, B, S, &anew);
    close_to(anew.backward_s, 3 * anew.forward_s, 1e-12);
    assert_true(anew.flops == one.flops); /* what is computed anew is no flop of the model: MFU falls */
    assert_true(anew.mfu < one.mfu && anew.activation_bytes < one.activation_bytes / 4);
    arena_close(f.a);
    open_plan(&f, "llama-3.1-8b", (struct train_setup){.copies = 16});
    train_eval(f.plan, B, S, &anew);
    assert_true(isnan(anew.reduce_s) && anew.step_s > 0); /* beyond the 8 that the link joins */
    arena_close(f.a);
}

/* Experts: active parameters count, all are held. */
static void test_experts(void **state)
{
    (void)state;
    struct fixture f;
    struct train_step s;
    open_plan(&f, "mixtral-8x7b", (struct train_setup){.zero = 0});
    train_eval(f.plan, 2, 1021, &s);
    assert_true(s.memory.param_bytes == 2 * 46702792704.0);
    close_to(s.flops / s.tokens, 6 * 12.88e9, 0.03);
    arena_close(f.a);
}

static void test_refused(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct err e = {0};
    struct model m;
    struct hw hw;
    struct train_plan *p;
    assert_int_equal(model_load(a, "llama-3.1-8b", NULL, 0, &m, &e), ERR_OK);
    assert_int_equal(hw_load(a, "h100-sxm", &hw, &e), ERR_OK);
    struct train_setup u = {
        .model = &m, .hw = &hw, .tp = 1, .copies = 1, .recipe = train_recipe_find("sgd"), .zero = 4};
    assert_int_equal(train_compile(a, &u, &p, &e), ERR_USAGE);
    u.zero = 0;
    u.tp = 7;
    assert_int_equal(train_compile(a, &u, &p, &e), ERR_USAGE);
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zero),  cmocka_unit_test(test_lecture), cmocka_unit_test(test_activations),
        cmocka_unit_test(test_flops), cmocka_unit_test(test_experts), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
