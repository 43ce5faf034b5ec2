/* Training: published memory of ZeRO and of activations, the lecture's two questions, flops of a step. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "calc/model/stored.h"
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

/* What layers keep for the backward pass, array by array, bf16; experts: arrays of each of a token's k. */
static void test_activations_of_others(void **state)
{
    (void)state;
    const double B = 2, S = 509;
    struct fixture f;
    struct train_step step;
    /* Llama 3.1 8B: inputs of two norms, of q, k and v, of gate and up: 4*D; q, k, v and what o reads; gate, up and
     * what down reads; a statistic of 4 bytes a head */
    open_plan(&f, "llama-3.1-8b", (struct train_setup){.zero = 0});
    train_eval(f.plan, B, S, &step);
    const double llama = 2 * (4 * 4096 + (32 + 2 * 8) * 128 + 32 * 128 + 3 * 14336) + 4 * 32;
    close_to(step.activation_bytes, B * S * (32 * llama + 2 * 2 * 4096 + 4 * 128256), 1e-12);
    arena_close(f.a);
    /* Mixtral 8x7B, k = 2 of 8: the router's input, its scores (8 in, 2*2 out: all of them, as they are few), each
     * expert's input, gate, up and product; what is added up (k in, one out) */
    open_plan(&f, "mixtral-8x7b", (struct train_setup){.zero = 0});
    train_eval(f.plan, B, S, &step);
    const double attention = 2 * (2 * 4096 + (32 + 2 * 8) * 128 + 32 * 128) + 4 * 32;
    const double experts = 2 * (4096 + 4096 + 2 * 4096 + 2 * 3 * 14336 + (2 + 1) * 4096);
    const double layer = (step.activation_bytes / (B * S) - 2 * 2 * 4096 - 4 * 32000) / 32;
    const double scores = layer - attention - experts;
    if (!(scores >= 2 * 8 && scores <= 4 * 8 + 2 * 8)) fail_msg("%g bytes of scores", scores);
    arena_close(f.a);
}

/* A scan keeps what it reads, and not what it writes, which the product after it keeps. */
static void test_what_a_scan_keeps(void **state)
{
    (void)state;
    struct fixture f;
    struct err e = {0};
    open_plan(&f, "llama-3.1-8b", (struct train_setup){.zero = 0}); /* 32 layers of 32 heads of 128 */
    struct sym_ctx *c = sym_open(f.a);
    const struct cost_pass pass = {.name = "prefill", .B = sym_int(c, 3), .T = sym_int(c, 5), .S = sym_int(c, 5)};
    struct cost_op op = {.kind = OP_SCAN, .name = "scan", .shape = "", .activation_bytes = sym_int(c, 700001)};
    const struct cost_ops ops = {.op = &op, .n = 1};
    const struct sym *kept;
    double bytes;
    assert_int_equal(train_saved_bytes(f.a, c, &f.m, &ops, &pass, 2, TRAIN_RECOMPUTE_ATTENTION, &kept, &e), ERR_OK);
    assert_true(sym_constant(kept, &bytes));
    assert_true(bytes == 32 * (700001 - 3 * 5 * 4096.0 / 2 * 2));
    arena_close(f.a);
}

/* A recipe decides the format of the weights; activations keep theirs, and decide the unit. */
static void test_formats(void **state)
{
    (void)state;
    static const struct {
        const char *recipe, *activations, *weights;
    } CASES[] = {{"adamw", "bf16", "bf16"},      {"adamw", "fp16", "fp16"},      {"adamw", "fp32", "bf16"},
                 {"adamw-fp32", "bf16", "fp32"}, {"adamw-fp32", "fp32", "fp32"}, {"adamw-bf16", "fp16", "fp16"}};
    struct arena *a = arena_open();
    struct err e = {0};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct model m;
        assert_int_equal(model_load(a, "llama-3.1-8b", NULL, 0, &m, &e), ERR_OK);
        assert_int_equal(dtype_find(CASES[i].activations, &m.activations, &e), ERR_OK);
        assert_int_equal(train_model(train_recipe_find(CASES[i].recipe), &m, &e), ERR_OK);
        for (size_t k = 0; k < WEIGHT_CLASSES; k++) {
            assert_string_equal(m.weights[k].name, CASES[i].weights);
            assert_string_equal(m.weights[k].compute, m.activations.compute);
        }
    }
    arena_close(a);
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
    /* the flops of a step are those of its copies, however many ranks share each; memory is the sum of what is held */
    open_plan(&f, "llama-3.1-8b", (struct train_setup){.copies = 4, .tp = 2, .zero = 0});
    train_eval(f.plan, B, S, &anew);
    close_to(anew.flops, 4 * 3 * forward, 1e-12);
    close_to(anew.memory_bytes,
             anew.memory.param_bytes + anew.memory.grad_bytes + anew.memory.state_bytes + anew.activation_bytes, 1e-15);
    assert_true(anew.memory.param_bytes > 0 && anew.memory.grad_bytes > 0 && anew.memory.state_bytes > 0);
    close_to(anew.update_s, anew.memory.param_bytes / 2 * (2 + 24 + 2) / 3.35e12, 1e-12); /* all of it: ZeRO 0 */
    arena_close(f.a);
    open_plan(&f, "llama-3.1-8b", (struct train_setup){.copies = 1});
    train_eval(f.plan, B, S, &anew);
    assert_true(anew.reduce_s == 0); /* nobody to send to */
    close_to(anew.update_s, 8030261248.0 * (2 + 24 + 2) / 3.35e12, 1e-12);
    arena_close(f.a);
    open_plan(&f, "llama-3.1-8b", (struct train_setup){.copies = 4, .recompute = TRAIN_RECOMPUTE_LAYERS});
    train_eval(f.plan, B, S, &anew);
    close_to(anew.backward_s, 3 * anew.forward_s, 1e-12);
    assert_true(anew.flops == one.flops); /* what is computed anew is no flop of the model: MFU falls */
    assert_true(anew.mfu < one.mfu && anew.activation_bytes < one.activation_bytes / 4);
    arena_close(f.a);
}

/* Bytes that come into one rank from its own node and from others when copies gather a vector of n*7 bytes: every piece
 * enters a node once, by the adapter of one rank in turn, and is handed on there. */
static void count_gather(int copies, int node, double *near, double *far)
{
    const int pieces = 7 * copies;
    double in_node = 0, from_outside = 0;
    for (int piece = 0; piece < pieces; piece++) {
        const int owner = piece % copies, me = 0;
        if (owner / node != me / node) {
            const int taker = (owner + piece / copies) % node; /* whose adapter it came by */
            if (taker == me)
                from_outside++;
            else
                in_node++;
        } else if (owner != me) {
            in_node++;
        }
    }
    *near = in_node / pieces;
    *far = from_outside / pieces;
}

/* What copies send, in one node and several, by stage; gradients of another width than parameters. */
static void test_copies(void **state)
{
    (void)state;
    static const struct {
        int copies, tp, per_node;
    } cases[] = {{2, 1, 0}, {8, 1, 0}, {16, 1, 0}, {56, 1, 8}, {24, 2, 8}, {6, 4, 4}, {9, 1, 8}, {3, 8, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int stage = 0; stage < 4; stage++) {
            struct fixture f;
            struct train_step s;
            const int node = cases[i].per_node ? cases[i].per_node : 8;
            const int here = node > cases[i].tp ? node / cases[i].tp : 1;
            open_plan(&f, "llama-3.1-8b",
                      (struct train_setup){.copies = cases[i].copies,
                                           .tp = cases[i].tp,
                                           .per_node = cases[i].per_node,
                                           .zero = stage,
                                           .recipe = train_recipe_find("adamw-fp32-grad")});
            train_eval(f.plan, 2, 509, &s);
            double near, far;
            count_gather(cases[i].copies, here < cases[i].copies ? here : cases[i].copies, &near, &far);
            const double slow = fmax(near * (here > 1 ? 1 : 0) / 450e9, far / 50e9);
            const double held = s.memory.param_bytes / 2 * (stage == 3 ? cases[i].copies : 1); /* parameters */
            const double bytes = stage == 0 ? 4 + 4 : stage < 3 ? 4 + 2 : 4 + 2 + 2;
            close_to(s.reduce_s, held * bytes * slow, 0.08);
            if (cases[i].copies <= here) close_to(s.reduce_s, held * bytes * slow, 1e-9);
            close_to(s.step_s, s.forward_s + s.backward_s + s.update_s + s.reduce_s, 1e-12);
            close_to(s.memory_bytes,
                     s.memory.param_bytes + s.memory.grad_bytes + s.memory.state_bytes + s.activation_bytes, 1e-15);
            arena_close(f.a);
        }
    /* more GPUs never take less time a step: 8 in a node, 16 in two */
    double before = 0;
    for (int n = 8; n <= 512; n *= 4) {
        struct fixture f;
        struct train_step s;
        open_plan(&f, "llama-3.1-8b", (struct train_setup){.copies = n, .zero = 3});
        train_eval(f.plan, 1, 2039, &s);
        assert_true(s.reduce_s >= before * (1 - 1e-12));
        before = s.reduce_s;
        arena_close(f.a);
    }
    struct err e = {0};
    struct fixture f;
    struct train_step s;
    open_plan(&f, "llama-3.1-8b", (struct train_setup){.copies = 1});
    f.hw.fabric_bytes_per_s = (double)NAN;
    const struct train_setup u = {
        .model = &f.m, .hw = &f.hw, .tp = 1, .copies = 16, .zero = 3, .recipe = train_recipe_find("adamw")};
    assert_int_equal(train_compile(f.a, &u, &f.plan, &e), ERR_OK);
    train_eval(f.plan, 1, 1021, &s);
    assert_true(isnan(s.reduce_s) && isnan(s.step_s) && isnan(s.mfu) && s.forward_s > 0); /* unknown, not free */
    struct train_setup node = u;
    node.copies = 8; /* nothing leaves the node */
    assert_int_equal(train_compile(f.a, &node, &f.plan, &e), ERR_OK);
    train_eval(f.plan, 1, 1021, &s);
    assert_true(s.reduce_s > 0 && s.step_s > 0);
    arena_close(f.a);
}

/* A recipe's precision, whatever the file stores: no serving format makes a pass faster. */
static void test_precision(void **state)
{
    (void)state;
    struct err e = {0};
    struct fixture f, g;
    struct train_step plain, stored;
    open_plan(&f, "llama-3.1-8b", (struct train_setup){.copies = 4});
    train_eval(f.plan, 3, 1021, &plain);
    open_plan(&g, "llama-3.1-8b", (struct train_setup){.copies = 4});
    static const char *const FORMATS[] = {"fp8", "int4-g128", "mxfp4"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(stored_set_all(&g.m, FORMATS[i], &e), ERR_OK);
        const struct train_setup u = {
            .model = &g.m, .hw = &g.hw, .tp = 1, .copies = 4, .recipe = train_recipe_find("adamw")};
        assert_int_equal(train_compile(g.a, &u, &g.plan, &e), ERR_OK);
        train_eval(g.plan, 3, 1021, &stored);
        close_to(stored.forward_s, plain.forward_s, 1e-12);
        close_to(stored.step_s, plain.step_s, 1e-12);
        assert_true(train_peak(g.plan) == 989.4e12 && stored.mfu <= 1);
    }
    assert_int_equal(dtype_find("fp8", &g.m.activations, &e), ERR_OK);
    const struct train_setup narrow = {
        .model = &g.m, .hw = &g.hw, .tp = 1, .copies = 4, .recipe = train_recipe_find("adamw")};
    assert_int_equal(train_compile(g.a, &narrow, &g.plan, &e), ERR_USAGE);
    arena_close(f.a);
    arena_close(g.a);
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
        cmocka_unit_test(test_zero),
        cmocka_unit_test(test_lecture),
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_activations_of_others),
        cmocka_unit_test(test_what_a_scan_keeps),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_flops),
        cmocka_unit_test(test_experts),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_precision),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
