/* Layouts: the numbers of one, what cannot be and why, and all that can. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/layouts.h"

/* What is left unsaid of a layout, and which are tensor parallelism in one node and copies alone. */
static void test_what_is_left_unsaid(void **state)
{
    (void)state;
    const struct layout w = layout_whole(&(struct layout){.tp = 2, .dp = 3, .pp = 5, .replicas = 7});
    assert_int_equal(w.per_node, 210);
    assert_int_equal(w.microbatches, 5);
    assert_int_equal(layout_nodes(&w, 210), 1);
    static const struct {
        struct layout l;
        bool plain;
    } CASES[] = {{{.tp = 4}, true},
                 {{.tp = 4, .replicas = 3, .per_node = 4}, true},
                 {{.tp = 4, .per_node = 2}, false},
                 {{.tp = 4, .sp = true}, false},
                 {{.tp = 4, .dcp = 1}, true},
                 {{.tp = 4, .dcp = 2}, false},
                 {{.tp = 4, .pp = 2}, false},
                 {{.tp = 4, .ep = 2}, false},
                 {{.dp = 2}, false},
                 {{.dp = 2, .ep = 2}, false}};
    for (size_t i = 0; i < COUNT(CASES); i++) assert_int_equal(layout_plain(&CASES[i].l), CASES[i].plain);
}

/* The numbers of a layout of DeepSeek-V3 (8 of 256 experts), each by hand. */
static void test_numbers_by_hand(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3"), dense = load(a, "llama-3.1-8b");
    const double of_4 = layout_touched(256, 8, 4), of_8 = layout_touched(256, 8, 8);
    const struct {
        struct layout l;
        double near, far, skew_most;
    } CASES[] = {
        {{.tp = 1}, 0, 0, 1},
        {{.tp = 4, .ep = 4}, 0, 0, 4}, /* all ranks have all tokens */
        /* room in the node for twice as many: 8 copies, a quarter of them to the sender itself */
        {{.dp = 4, .ep = 4, .per_node = 8}, 3, 0, 4},
        {{.dp = 16, .ep = 16, .per_node = 32}, 8 * 15.0 / 16, 0, 16},
        /* as many copies as ranks: each gets the token, over the fabric once for the node */
        {{.dp = 8, .ep = 8, .per_node = 4}, 6, 1, 8},
        {{.dp = 8, .ep = 8, .skew = 2, .per_node = 4}, 6, 1, 8},
        /* two ranks have columns of an expert: twice the copies */
        {{.dp = 32, .ep = 16, .per_node = 8}, 8 * 2 * 7.0 / 32, 8 * 2 * 24.0 / 32, 16},
        {{.dp = 32, .ep = 32, .skew = 1.25, .per_node = 8}, 1.25 * 8 * 7 / 32, 1.25 * 8 * 24 / 32, 32},
        {{.dp = 64, .ep = 64, .per_node = 8}, 8 * 7.0 / 64, 8 * 56.0 / 64, 32}, /* 256/8: no token twice to an expert */
        /* once to a rank and a node that has any of its experts, at most always */
        {{.dp = 8, .ep = 8, .dispatch = LAYOUT_ONCE, .per_node = 2}, 4 * of_8, 3 * of_4, 8},
        {{.dp = 4, .ep = 4, .skew = 1.5, .dispatch = LAYOUT_ONCE, .per_node = 2}, 2, 1, 4},
        {{.dp = 8, .ep = 8, .skew = 1.25, .dispatch = LAYOUT_ONCE, .per_node = 2}, 4 * 1.25 * of_8, 3, 8},
        {{.dp = 6, .ep = 3, .dispatch = LAYOUT_ONCE, .per_node = 3}, 4 * layout_touched(256, 8, 3), 1, 3},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        double n[LAYOUT_NUMBERS];
        const struct layout *l = &CASES[i].l;
        layout_numbers(l, &m, false, n);
        if (fabs(n[LAYOUT_near] - CASES[i].near) > 1e-12 || fabs(n[LAYOUT_far] - CASES[i].far) > 1e-12)
            fail_msg("case %zu: %.17g and %.17g", i, n[LAYOUT_near], n[LAYOUT_far]);
        near_to(layout_skew_most(&m, l), CASES[i].skew_most, 1e-15);
        assert_true(layout_skew_most(&dense, l) == 1);
        assert_true(n[LAYOUT_narrow] == 1 && n[LAYOUT_reduced] == 0 && n[LAYOUT_gathered] == 0);
        layout_numbers(l, &dense, false, n);
        assert_true(n[LAYOUT_near] == 0 && n[LAYOUT_far] == 0);
        assert_true(n[LAYOUT_rise0] == 1); /* of no experts, as of one part */
        for (int k = LAYOUT_rise0 + 1; k < LAYOUT_rise0 + LAYOUT_KNOTS - 1; k++) assert_true(n[k] == 0);
    }
    double n[LAYOUT_NUMBERS];
    layout_numbers(&(struct layout){.tp = 24, .sp = true, .per_node = 8}, &m, false, n);
    near_to(n[LAYOUT_reduced], 2 * 2.0 / 3 / 8, 1e-15);
    assert_true(n[LAYOUT_narrow] == 24 && n[LAYOUT_gathered] == 2);
    assert_true(layout_touched(256, 8, 1) == 1 && layout_touched(0, 0, 4) == 1);
    near_to(layout_touched(256, 8, 2),
            1 - 128.0 / 256 * 127 / 255 * 126 / 254 * 125 / 253 * 124 / 252 * 123 / 251 * 122 / 250 * 121 / 249, 1e-14);
    assert_true(layout_busiest(1000, 2, 9) > 5); /* still counted, not the mean */
    arena_close(a);
}

/* Knots by a constant factor from k to E; at each of them the straight pieces meet what they stand for. */
static void test_knots(void **state)
{
    (void)state;
    static const int64_t CASES[][3] = {{256, 8, 16}, {128, 8, 4}, {8, 2, 2}, {60, 4, 5}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const double n = (double)CASES[i][0], k = (double)CASES[i][1];
        double knot[LAYOUT_KNOTS];
        layout_knots(CASES[i][0], CASES[i][1], knot);
        assert_true(knot[0] == 0 && knot[1] == k && knot[LAYOUT_KNOTS - 1] == n);
        for (int j = 1; j < LAYOUT_KNOTS; j++) near_to(knot[j], k * pow(n / k, (j - 1) / 10.0), 0.5 / k + 1e-12);
    }
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3");
    double knot[LAYOUT_KNOTS], out[LAYOUT_NUMBERS];
    layout_knots(256, 8, knot);
    layout_numbers(&(struct layout){.dp = 16, .ep = 16}, &m, false, out);
    for (int at = 1; at < LAYOUT_KNOTS; at++) {
        double sum = 0;
        for (int i = 0; i < LAYOUT_KNOTS - 1; i++) sum += out[LAYOUT_rise0 + i] * fmax(0, knot[at] - knot[i]);
        near_to(sum, layout_busiest(256, 16, (int64_t)knot[at]), 1e-12);
    }
    arena_close(a);
}

/* Heads of a rank: a part of them, or one that several ranks have. */
static void test_heads_of_a_rank(void **state)
{
    (void)state;
    static const int64_t CASES[][3] = {{8, 2, 4}, {8, 8, 1}, {2, 8, 1}, {1, 3, 1}, {12, 3, 4}}; /* heads, ranks, own */
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct err e = {0};
        int64_t n = -1;
        const struct mixer x = {.kv_heads = CASES[i][0]};
        assert_int_equal(layout_kv_heads(&x, CASES[i][1], &n, &e), ERR_OK);
        assert_int_equal(n, CASES[i][2]);
    }
    int64_t n;
    assert_int_equal(layout_kv_heads(&(struct mixer){.kv_heads = 2}, 3, &n, NULL), ERR_USAGE);
    assert_int_equal(layout_kv_heads(&(struct mixer){.kv_heads = 8}, 3, &n, NULL), ERR_USAGE);
}

/* Models that are not published: what refuses them is named. */
static void test_reasons_by_hand(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct model narrow = load(a, "qwen3-30b-a3b"), dense = load(a, "llama-3.1-8b"), wide = load(a, "llama-3.1-8b"),
                 streams = load(a, "llama-3.1-8b");
    assert_int_equal(narrow.kinds_n, 1);
    struct layer_kind kind = narrow.kinds[0];
    kind.ffn.width = 1000;
    narrow.kinds = &kind;
    struct model even = load(a, "qwen3-30b-a3b"), many = even; /* 128 experts, 8 or 100 of them a token */
    struct layer_kind most = even.kinds[0];
    most.ffn.experts_per_token = 100;
    many.kinds = &most;
    wide.per_layer_dim = 64;
    streams.streams = 4;
    const struct {
        const struct model *m;
        struct layout l;
        const char *why;
    } CASES[] = {{&narrow, {.tp = 16}, "1000 columns of an expert cannot be split over 16 tensor-parallel ranks"},
                 {&narrow, {.dp = 16}, "1000 columns of an expert cannot be split over 16 ranks"},
                 {&narrow, {.dp = 2, .tp = 8}, "1000 columns of an expert cannot be split over 16 ranks"},
                 {&narrow, {.tp = 32, .ep = 2}, "1000 columns of an expert cannot be split over 16 ranks"},
                 {&narrow, {.tp = 32, .dp = 3, .ep = 6}, "128 experts cannot be split over 6"},
                 {&dense, {.pp = 32}, NULL},
                 {&dense, {.pp = 33}, "32 layers cannot fill 33 stages"},
                 {&dense, {.tp = 2, .skew = 1.5}, "has no experts, so none are skewed"},
                 {&narrow, {.tp = 1, .skew = 1.5}, "one part has all tokens"},
                 {&even, {.dp = 4, .ep = 4, .skew = 0.5}, "skew is between 1 (all parts alike) and 4"},
                 {&even, {.dp = 4, .ep = 4, .skew = 4}, NULL},
                 {&even, {.dp = 4, .ep = 4, .skew = 4.01}, "skew is between 1"},
                 {&many, {.dp = 4, .ep = 4, .skew = 1.5}, "skew is between 1 (all parts alike) and 1.28"},
                 {&many, {.dp = 4, .ep = 4, .skew = 1.25}, NULL},
                 {&wide, {.pp = 2}, "stages hand on one stream"},
                 {&streams, {.pp = 2}, "stages hand on one stream"}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct err e = {0};
        const enum err_code code = layout_check(CASES[i].m, &CASES[i].l, &e);
        if (code != (CASES[i].why ? ERR_USAGE : ERR_OK)) fail_msg("%zu: %s", i, e.text);
        if (CASES[i].why && !strstr(e.text, CASES[i].why)) fail_msg("%zu: %s", i, e.text);
    }
    /* a cache is asked for as a step is: in a layout that there is */
    struct err e = {0};
    struct sym_ctx *c = sym_open(a);
    const struct cost_symbols y = cost_symbols_make(c);
    struct cost_cache cache;
    assert_int_equal(cost_cache(c, &y, &dense, 3, &cache, &e), ERR_USAGE);
    arena_close(a);
}

static void test_illegal_layouts_are_named(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    static const struct {
        const char *model;
        struct layout layout;
        const char *why; /* NULL: legal */
    } CASES[] = {
        {"deepseek-v3", {.tp = 12}, "128 heads cannot be split over 12 tensor-parallel ranks"},
        {"deepseek-v3", {.tp = 4, .ep = 3}, "3 expert-parallel parts cannot be dealt to 4 ranks"},
        {"deepseek-v3", {.dp = 12, .ep = 12}, "256 experts cannot be split over 12 expert-parallel parts"},
        {"deepseek-v3", {.tp = 4, .dp = 8, .ep = 16}, NULL},
        {"deepseek-v3", {.pp = 62}, "61 layers cannot fill 62 stages"},
        {"deepseek-v3", {.dp = 4, .ep = 4, .skew = 5}, "skew is between 1 (all parts alike) and 4"},
        {"llama-3.1-70b", {.ep = 2, .tp = 2}, "no experts"},
        {"llama-3.1-70b", {.dp = 2}, "no experts"},
        {"llama-3.1-70b", {.tp = 24}, "64 heads cannot be split over 24"},
        {"llama-3.1-70b", {.tp = 16, .per_node = 12, .pp = 3}, "a TP group of 16 ranks does not fill nodes of 12"},
        {"llama-3.1-70b", {.tp = 2, .pp = 3}, NULL},
        {"qwen2-0.5b", {.tp = 4}, "14 heads cannot be split over 4"},
        {"gpt-oss-120b", {.tp = 5, .ep = 5}, "64 heads"},
        {"mixtral-8x7b", {.dp = 3}, "14336 columns of an expert cannot be split over 3"},
        {"gemma-3n-e4b", {.pp = 2}, "stages cannot part layers that share a cache"},
        {"zamba2-7b", {.pp = 3}, "stages cannot part layers that share weights"},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct err e = {0};
        const struct model m = load(a, CASES[i].model);
        const enum err_code code = layout_check(&m, &CASES[i].layout, &e);
        if (code != (CASES[i].why ? ERR_USAGE : ERR_OK)) fail_msg("%s %zu: %s", CASES[i].model, i, e.text);
        if (CASES[i].why && !strstr(e.text, CASES[i].why)) fail_msg("%s: %s", CASES[i].model, e.text);
    }
    arena_close(a);
}

/* Every ordered factorisation of the GPUs, and every divisor of a stage: walked over all numbers. */
static void test_all_layouts_are_listed(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    static const struct {
        const char *model;
        int64_t gpus;
    } CASES[] = {{"deepseek-v3", 16}, {"llama-3.1-70b", 24}, {"qwen3-30b-a3b", 12}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const struct model m = load(a, CASES[i].model);
        const struct hw hw = device(a, "h200-sxm");
        const int64_t n = CASES[i].gpus;
        const bool experts = i != 1;
        struct err e = {0};
        size_t want = 0, found;
        for (int64_t r = 1; r <= n; r++)
            for (int64_t pp = 1; pp <= n; pp++)
                for (int64_t dp = 1; dp <= (experts ? n : 1); dp++)
                    for (int64_t tp = 1; tp <= n; tp++)
                        for (int64_t ep = 1; ep <= (experts ? n : 1); ep++)
                            want += r * pp * dp * tp == n && tp * dp % ep == 0;
        struct layouts_request q = {.model = &m,
                                    .hw = &hw,
                                    .gpus = n,
                                    .per_node = n % 8 == 0 ? 8 : n,
                                    .batch = 31,
                                    .prompt = 500,
                                    .context = 500,
                                    .average = 1,
                                    .capacity_bytes = hw_capacity_bytes(&hw)};
        q.step = compile(a, &m, &hw, (struct step_setup){.any_layout = true, .fidelity = STEP_ROOFLINE});
        struct layouts_item *items;
        if (n == 12) q.per_node = 4;
        if (layouts_list(a, &q, &items, &found, &e) != ERR_OK) fail_msg("%s", e.text);
        assert_true(found == want);
        for (size_t k = 0; k < found; k++) {
            assert_int_equal(layout_gpus(&items[k].layout), n);
            assert_int_equal(items[k].verdict == LAYOUTS_ILLEGAL, layout_check(&m, &items[k].layout, NULL) != ERR_OK);
            assert_true(items[k].verdict == LAYOUTS_ILLEGAL ||
                        (items[k].left_bytes >= 0) == (items[k].verdict == LAYOUTS_FITS));
            assert_true(k == 0 || items[k - 1].verdict <= items[k].verdict);
        }
    }
    arena_close(a);
}

/* Windows: w*S - w*(w-1)/2 pairs, not the mean context cut to the window. */
static void test_pairs_in_windows(void **state)
{
    (void)state;
    static const int CASES[][2] = {{8192, 4096}, {1009, 128}, {97, 96}, {50, 50}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const double S = CASES[i][0], w = CASES[i][1];
        double pairs = 0;
        for (int s = 1; s <= CASES[i][0]; s++) pairs += s < CASES[i][1] ? s : CASES[i][1];
        assert_true(kernel_pairs(S, 0, w) == pairs && pairs == w * S - w * (w - 1) / 2);
    }
    assert_true(kernel_pairs(8192, 0, 4096) != 8192.0 * 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_left_unsaid),
        cmocka_unit_test(test_numbers_by_hand),
        cmocka_unit_test(test_knots),
        cmocka_unit_test(test_heads_of_a_rank),
        cmocka_unit_test(test_reasons_by_hand),
        cmocka_unit_test(test_illegal_layouts_are_named),
        cmocka_unit_test(test_all_layouts_are_listed),
        cmocka_unit_test(test_pairs_in_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
