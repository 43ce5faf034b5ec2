/* Layouts: what ranks compute and read, and what they read of experts, counted by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/layouts.h"

/* Matrix flops of a decode step of B sequences, over all ranks: stages one after the other, groups side by side. */
static double flops_of_all(struct arena *a, const struct model *m, const struct hw *hw, struct layout l, double B)
{
    struct step_op *ops;
    struct err e = {0};
    size_t n;
    double sum = 0;
    l.microbatches = 1;
    struct step *s = compile(a, m, hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
    assert_int_equal(step_ops(a, s, STEP_DECODE, B, 1009, 1009, 1, &ops, &n, &e), ERR_OK);
    for (size_t i = 0; i < n; i++) sum += ops[i].flops;
    return sum * (double)layout_group(&l);
}

static void test_ranks_share_the_work(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    static const struct {
        const char *model;
        struct layout layout;
        double again; /* flops of products that all t ranks of a group do, for one sequence */
    } CASES[] = {
        {"llama-3.1-70b", {.tp = 8, .per_node = 8}, 0},
        {"llama-3.1-70b", {.tp = 4, .pp = 5, .per_node = 4}, 0},
        {"mixtral-8x7b", {.tp = 1, .dp = 4, .ep = 4}, 0},
        {"mixtral-8x7b", {.tp = 1, .dp = 4, .ep = 2}, 0},
        {"mixtral-8x7b", {.tp = 2, .dp = 2, .ep = 4}, 2.0 * 32 * 4096 * 8}, /* the router */
        {"mixtral-8x7b", {.tp = 4, .ep = 4}, 3 * 2.0 * 32 * 4096 * 8},      /* three times more */
        {"mixtral-8x7b", {.tp = 4, .ep = 2, .pp = 3}, 3 * 2.0 * 32 * 4096 * 8},
        /* down into both latents in 61 layers, routers of 58 */
        {"deepseek-v3", {.tp = 2, .dp = 8, .ep = 16, .per_node = 8}, 2.0 * 7168 * (61 * (1536 + 576) + 58 * 256)},
    };
    const struct hw hw = device(a, "h200-sxm");
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const struct model m = load(a, CASES[i].model);
        const double B = 48, one = flops_of_all(a, &m, &hw, (struct layout){0}, B);
        const struct layout l = CASES[i].layout;
        near_to(flops_of_all(a, &m, &hw, l, B), one + B * CASES[i].again, 1e-12);
    }
    arena_close(a);
}

/* A batch that groups cannot share evenly: the fullest group counts. */
static void test_an_uneven_batch(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3");
    const struct hw hw = device(a, "h200-sxm");
    const struct layout l = {.dp = 8, .ep = 8};
    struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
    double x[STEP_VALUES_N], y[STEP_VALUES_N];
    eval(s, NULL, 17, 100, 100, x);
    eval(s, NULL, 24, 100, 100, y);
    for (size_t v = 0; v < STEP_VALUES_N; v++) assert_true(x[v] == y[v]);
    arena_close(a);
}

/* Experts of the part that has most, of s drawn: every choice walked. */
static double busiest_by_walking(int experts, int parts, int s)
{
    double most = 0, all = 0;
    const int held = experts / parts;
    for (uint32_t set = 0; set < 1U << experts; set++) {
        if (__builtin_popcount(set) != s) continue;
        int top = 0;
        for (int p = 0; p < parts; p++) {
            const int here = __builtin_popcount(set >> (p * held) & ((1U << held) - 1));
            top = here > top ? here : top;
        }
        most += top;
        all++;
    }
    return most / all;
}

static void test_the_busiest_part(void **state)
{
    (void)state;
    static const int CASES[][2] = {{12, 3}, {14, 7}, {15, 5}, {10, 2}, {13, 13}, {16, 4}};
    for (size_t i = 0; i < COUNT(CASES); i++)
        for (int s = 1; s <= CASES[i][0]; s++)
            near_to(layout_busiest(CASES[i][0], CASES[i][1], s), busiest_by_walking(CASES[i][0], CASES[i][1], s),
                    1e-12);
    assert_true(layout_busiest(256, 1, 97) == 97);
    near_to(layout_busiest(1000, 2, 1000), 500, 1e-9);
    near_to(layout_busiest(1001, 7, 77), 11, 1e-12); /* more than a double counts: the mean */
}

/* Expected maximum over parts of the distinct experts of n tokens, each drawing k different ones: drawn. */
static double busiest_by_drawing(int experts, int k, int parts, int n, int rounds)
{
    uint64_t seed = 88172645463325252U;
    double sum = 0;
    for (int round = 0; round < rounds; round++) {
        bool touched[512] = {false};
        int here[512] = {0}, top = 0;
        for (int token = 0; token < n; token++) {
            bool own[512] = {false};
            for (int drawn = 0; drawn < k;) {
                seed ^= seed << 13; /* xorshift64 */
                seed ^= seed >> 7;
                seed ^= seed << 17;
                const int at = (int)((seed >> 11) % (uint64_t)experts);
                if (own[at]) continue;
                own[at] = true;
                drawn++;
                if (touched[at]) continue;
                touched[at] = true;
                const int now = ++here[at / (experts / parts)];
                top = now > top ? now : top;
            }
        }
        sum += top;
    }
    return sum / rounds;
}

/* Layers whose experts are not those that a layout's numbers are of: parts read as many as the mean, all alike. */
static void test_experts_of_two_kinds(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct model m = load(a, "deepseek-v3");
    const struct hw hw = device(a, "h200-sxm");
    const struct layout l = {.dp = 16, .ep = 16, .per_node = 8};
    for (int change = 0; change < 2; change++) {
        struct layer_kind kind[2] = {m.kinds[0], m.kinds[1]};
        kind[0].ffn = kind[1].ffn;
        if (change == 0) kind[1].ffn.experts_per_token = 5;
        if (change == 1) kind[1].ffn.experts = 128;
        m.kinds = kind;
        const double E = (double)kind[1].ffn.experts, k = (double)kind[1].ffn.experts_per_token;
        struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
        const struct step_op op = find_op(a, s, STEP_DECODE, 16, 1000, "experts_up", 1);
        near_to(op.weight_bytes / (58 * 2 * (2048.0 * 7168 + 4 * 16 * 56)), E / 16 * (1 - pow(1 - k / E, 16)), 1e-12);
        m = load(a, "deepseek-v3");
    }
    arena_close(a);
}

/* The slowest rank reads the experts of the part that has most of them; the mean over parts, which a step cannot be as
 * fast as, has a fraction of one expert for one token. */
static void test_experts_that_the_busiest_part_reads(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    static const struct {
        const char *model;
        int experts, k, layers;
        double expert; /* bytes of gate and up of one */
        int64_t ranks;
        int n[5];
    } CASES[] = {
        {"deepseek-v3", 256, 8, 58, 2 * (2048.0 * 7168 + 4 * 16 * 56), 16, {1, 5, 16, 32, 128}},
        {"deepseek-v3", 256, 8, 58, 2 * (2048.0 * 7168 + 4 * 16 * 56), 2, {1, 3, 7, 24, 64}},
        {"mixtral-8x7b", 8, 2, 32, 2 * 14336.0 * 4096 * 2, 8, {1, 2, 3, 5, 11}},
        {"mixtral-8x7b", 8, 2, 32, 2 * 14336.0 * 4096 * 2, 4, {1, 2, 3, 5, 11}},
        {"mixtral-8x7b", 8, 2, 32, 2 * 14336.0 * 4096 * 2, 2, {1, 2, 3, 5, 11}},
    };
    const struct hw hw = device(a, "h200-sxm");
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const struct model m = load(a, CASES[i].model);
        const struct layout l = {.tp = CASES[i].ranks, .ep = CASES[i].ranks, .per_node = 8};
        struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
        for (size_t j = 0; j < COUNT(CASES[i].n); j++) {
            const int n = CASES[i].n[j], parts = (int)CASES[i].ranks;
            const struct step_op op = find_op(a, s, STEP_DECODE, n, 1000, "experts_up", 0);
            const double found = op.weight_bytes / (CASES[i].layers * CASES[i].expert);
            const double drawn = busiest_by_drawing(CASES[i].experts, CASES[i].k, parts, n, 4000);
            near_to(found, drawn, 0.02); /* the draws' own error, and H at the mean for the mean of H */
            if (n == 1) near_to(found, layout_busiest(CASES[i].experts, parts, CASES[i].k), 1e-12);
            assert_true(found >= 1);
            const double pairs = op.flops / (CASES[i].layers * 2.0 * (CASES[i].experts == 8 ? 4096 : 7168) * 2 *
                                             (CASES[i].experts == 8 ? 14336 : 2048));
            near_to(pairs, fmax(found, n * (double)CASES[i].k / parts), 1e-12); /* an expert that is read has one */
        }
    }
    arena_close(a);
}

/* As many GPUs as nodes: everything goes over the fabric, at its rate. */
static void test_one_gpu_a_node(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct hw hw = device(a, "h100-sxm"); /* 50 GB/s a GPU */
    const struct model m = load(a, "llama-3.1-8b");
    static const struct layout LAYOUT[] = {{.tp = 4, .per_node = 1}, {.tp = 4, .sp = true, .per_node = 1}};
    for (size_t i = 0; i < COUNT(LAYOUT); i++)
        for (int fidelity = STEP_BOUND; fidelity <= STEP_ROOFLINE; fidelity++) {
            struct step *s =
                compile(a, &m, &hw, (struct step_setup){.layout = LAYOUT[i], .fidelity = (enum step_fidelity)fidelity});
            double v[STEP_VALUES_N];
            eval(s, NULL, 7, 501, 501, v);
            /* 65 sums around a ring of 4, and logits of the other three */
            const double sent = 65 * 2 * 3.0 / 4 * 7 * 4096 * 2 + 3.0 * 7 * 128256 / 4 * 2;
            assert_true(v[STEP_decode_wire_bytes] == 0 && v[STEP_prefill_wire_bytes] == 0);
            near_to(v[STEP_decode_fabric_bytes], sent, 1e-12);
            near_to(v[STEP_decode_link_s], sent / 50e9, 1e-12);
        }
    struct step *s = compile(
        a, &m, &hw, (struct step_setup){.layout = {.tp = 1, .pp = 2, .per_node = 1}, .fidelity = STEP_ROOFLINE});
    const struct step_op hop = find_op(a, s, STEP_DECODE, 14, 501, "stage_send", 0);
    assert_true(hop.wire_bytes == 0 && hop.fabric_bytes == 7 * 4096.0 * 2);
    /* a group of two nodes hands on what each of its GPUs has of the stream: an eighth within a node of eight */
    s = compile(a, &m, &hw,
                (struct step_setup){.layout = {.tp = 16, .pp = 2, .per_node = 8}, .fidelity = STEP_ROOFLINE});
    const struct step_op wide = find_op(a, s, STEP_DECODE, 14, 501, "stage_send", 0);
    assert_true(wide.wire_bytes == 7 * 4096.0 * 2 * 7 / 8 && wide.fabric_bytes == 7 * 4096.0 * 2 / 8);
    /* logits of 16 ranks: 14 of 15 others come within the node */
    const struct step_op logits = find_op(a, s, STEP_DECODE, 14, 501, "logits_all_gather", 0);
    near_to(logits.wire_bytes, 14 * 7.0 * 128256 / 16 * 2, 1e-12);
    near_to(logits.fabric_bytes, 7.0 * 128256 / 16 * 2, 1e-12);
    arena_close(a);
}

/* Without stages a batch is in one part, whatever is asked. */
static void test_microbatches_are_of_stages(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "mixtral-8x7b");
    const struct hw hw = device(a, "h100-sxm");
    const struct layout l = {.dp = 8, .ep = 8}, parts = {.dp = 8, .ep = 8, .microbatches = 4};
    double x[STEP_VALUES_N], y[STEP_VALUES_N];
    eval(compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE}), NULL, 64, 97, 97, x);
    eval(compile(a, &m, &hw, (struct step_setup){.layout = parts, .fidelity = STEP_ROOFLINE}), NULL, 64, 97, 97, y);
    for (size_t v = 0; v < STEP_VALUES_N; v++) assert_true(x[v] == y[v]);
    arena_close(a);
}

/* Operators of experts over ranks, each number by hand; a layer's. */
static void test_operators_of_experts(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3");
    const struct hw hw = device(a, "h200-sxm");
    /* 4 groups of 2 ranks, 8 parts: a group has 24 of 96 sequences, a rank sends 12 */
    struct layout l = {.tp = 2, .dp = 4, .ep = 8, .per_node = 8};
    struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
    const double pairs = 96.0 * 8 / 8, fp8 = 1 + 4.0 / 128;
    struct step_op op = find_op(a, s, STEP_DECODE, 96, 1000, "experts_up", 0);
    assert_true(op.count == 58 && op.flops == 58 * 2 * pairs * 7168 * 2 * 2048);
    assert_true(op.activation_bytes == 58 * pairs * (7168 + 2 * 2048) * 2);
    op = find_op(a, s, STEP_DECODE, 96, 1000, "experts_act", 0);
    assert_true(op.vector_flops == 58 * 5 * pairs * 2048);
    op = find_op(a, s, STEP_DECODE, 96, 1000, "combine", 0); /* a rank's 12 tokens, 8 results each */
    assert_true(op.vector_flops == 58 * 2 * 12 * 8.0 * 7168);
    assert_true(op.activation_bytes == 58 * (12 * 8 + 12) * 7168.0 * 2);
    op = find_op(a, s, STEP_DECODE, 96, 1000, "dispatch", 0); /* 8 experts of 8 ranks: to all 7 others */
    near_to(op.wire_bytes, 58 * 7 * 12 * 7168 * fp8, 1e-12);
    near_to(op.activation_bytes, 58 * 8 * 12 * 7168 * fp8, 1e-12);
    assert_true(op.fabric_bytes == 0);
    op = find_op(a, s, STEP_DECODE, 96, 1000, "mlp_all_reduce", 1); /* of the layers with experts */
    assert_true(op.count == 58 && op.wire_bytes == 58 * 24 * 7168.0 * 2);
    /* a group of 25 sequences, one of 24: a rank has 13 of them at most */
    for (int B = 98; B <= 100; B += 2) {
        op = find_op(a, s, STEP_DECODE, B, 1000, "combine", 0);
        assert_true(op.vector_flops == 58 * 2 * 13 * 8.0 * 7168);
    }
    op = find_op(a, s, STEP_DECODE, 100, 1000, "return", 0);
    near_to(op.wire_bytes, 58 * 7 * 13 * 7168.0 * 2, 1e-12);
    /* two nodes: 4 of the 8 others' copies in the node, one over the fabric */
    l.per_node = 4;
    s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
    op = find_op(a, s, STEP_DECODE, 96, 1000, "dispatch", 0);
    near_to(op.wire_bytes, 58 * 6 * 12 * 7168 * fp8, 1e-12);
    near_to(op.fabric_bytes, 58 * 1 * 12 * 7168 * fp8, 1e-12);
    near_to(op.activation_bytes, 58 * (1 + 6 + 1) * 12 * 7168 * fp8, 1e-12);
    /* without groups every rank has all tokens: a part's own results are summed */
    l = (struct layout){.tp = 8, .ep = 4};
    s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
    op = find_op(a, s, STEP_DECODE, 96, 1000, "combine", 0);
    assert_true(op.vector_flops == 58 * 2 * (96 * 8.0 / 4) * 7168);
    assert_true(op.activation_bytes == 58 * (96 * 8 / 4 + 96) * 7168.0 * 2);
    op = find_op(a, s, STEP_DECODE, 96, 1000, "experts_down", 0); /* two ranks split the columns */
    assert_true(op.flops == 58 * 2 * (96 * 8.0 / 4) * 1024 * 7168);
    arena_close(a);
}

/* The stream to the next stage: within a node the whole of it from each rank; to another node a part of it. */
static void test_hand_over(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "llama-3.1-70b");
    const struct hw hw = device(a, "h100-sxm");
    struct layout l = {.tp = 4, .pp = 2, .microbatches = 1, .per_node = 8};
    struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
    struct step_op op = find_op(a, s, STEP_DECODE, 36, 1000, "stage_send", 0);
    assert_true(op.count == 1 && op.wire_bytes == 36 * 8192.0 * 2 && op.fabric_bytes == 0);
    assert_true(op.activation_bytes == 2 * 36 * 8192.0 * 2);
    l.per_node = 4;
    s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
    op = find_op(a, s, STEP_DECODE, 36, 1000, "stage_send", 0);
    assert_true(op.wire_bytes == 3.0 / 4 * 36 * 8192 * 2 && op.fabric_bytes == 36 * 8192.0 * 2 / 4);
    /* stages 1 and 3 of 4 end their nodes */
    l = (struct layout){.tp = 4, .pp = 4, .per_node = 8};
    assert_true(!layout_crosses(&l, 0) && layout_crosses(&l, 1) && !layout_crosses(&l, 2));
    l = (struct layout){.tp = 4, .pp = 7, .per_node = 16};
    for (int64_t at = 0; at < 7; at++) assert_int_equal(layout_crosses(&l, at), at == 3);
    l = (struct layout){.tp = 8, .per_node = 8}; /* one stage hands on to none */
    assert_true(!layout_crosses(&l, 0));
    l = (struct layout){.tp = 8, .pp = 2, .per_node = 8};
    assert_true(layout_crosses(&l, 0));
    arena_close(a);
}

/* The busiest part has skew times the tokens, and so much more work, and as many bytes arrive there. */
static void test_skew(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3");
    const struct hw hw = device(a, "h200-sxm");
    struct layout l = {.dp = 16, .ep = 16, .per_node = 8};
    struct step *even = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
    l.skew = 1.75;
    struct step *skewed = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
    const struct step_op x = find_op(a, even, STEP_DECODE, 320, 1000, "experts_up", 0),
                         y = find_op(a, skewed, STEP_DECODE, 320, 1000, "experts_up", 0);
    near_to(y.flops, 1.75 * x.flops, 1e-12);
    near_to(y.weight_bytes / (58 * 16 * 2 * (2048.0 * 7168 + 4 * 16 * 56)), 1 - pow(1 - 1.75 * 8 / 256, 320), 1e-9);
    near_to(find_op(a, skewed, STEP_DECODE, 320, 1000, "dispatch", 0).fabric_bytes,
            1.75 * find_op(a, even, STEP_DECODE, 320, 1000, "dispatch", 0).fabric_bytes, 1e-12);
    near_to(find_op(a, skewed, STEP_DECODE, 320, 1000, "attention", 0).flops,
            find_op(a, even, STEP_DECODE, 320, 1000, "attention", 0).flops, 1e-12);
    arena_close(a);
}

/* Latent attention absorbed: 278,528 flops a pair, 1,152 bytes a key; heads split over ranks, keys not. */
static void test_intensity_of_latent_attention(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3");
    const struct hw hw = device(a, "h200-sxm");
    static const struct {
        struct layout layout;
        double ranks;
    } CASES[] = {{{.tp = 1}, 1}, {{.tp = 8}, 8}, {{.dp = 8, .ep = 8}, 1}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = CASES[i].layout});
        const struct step_op op = find_op(a, s, STEP_DECODE, 8, 4096, "attention", 0);
        const double sequences = CASES[i].layout.dp ? 1 : 8;
        assert_true(op.flops == 3 * sequences * 4096 * 278528 / CASES[i].ranks); /* the three dense layers */
        assert_true(op.kv_bytes == 3 * sequences * 4096 * 1152);
        near_to(op.flops / op.kv_bytes, 242 / CASES[i].ranks, 1e-3);
    }
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_share_the_work),
        cmocka_unit_test(test_an_uneven_batch),
        cmocka_unit_test(test_the_busiest_part),
        cmocka_unit_test(test_experts_of_two_kinds),
        cmocka_unit_test(test_experts_that_the_busiest_part_reads),
        cmocka_unit_test(test_one_gpu_a_node),
        cmocka_unit_test(test_microbatches_are_of_stages),
        cmocka_unit_test(test_operators_of_experts),
        cmocka_unit_test(test_hand_over),
        cmocka_unit_test(test_skew),
        cmocka_unit_test(test_intensity_of_latent_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
