/* Layouts: what ranks send to each other, over which links and in how many messages, counted by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/layouts.h"

/* 70B over 8 H100: 160 sums of B*D*2 bytes; 4.1 us of wire around a ring and 2.3 in the switch for 64 tokens. */
static void test_sums_over_ranks(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "llama-3.1-70b");
    const struct hw nvls = device(a, "h100-sxm");
    struct hw ring = nvls;
    ring.nvls = false;
    const struct step_setup setup = {.layout = {.tp = 8}, .fidelity = STEP_ROOFLINE};
    struct step *with = compile(a, &m, &nvls, setup), *without = compile(a, &m, &ring, setup);
    static const char *const NAMES[] = {"mixer_all_reduce", "mlp_all_reduce"};
    for (size_t i = 0; i < COUNT(NAMES); i++) {
        const struct step_op x = find_op(a, without, STEP_DECODE, 64, 1000, NAMES[i], 0),
                             y = find_op(a, with, STEP_DECODE, 64, 1000, NAMES[i], 0);
        assert_int_equal(x.count, 80); /* two a layer */
        assert_true(x.wire_bytes == 80 * 2 * 7.0 / 8 * 64 * 8192 * 2 && y.wire_bytes == 80.0 * 64 * 8192 * 2);
        near_to(x.time_s / 80, 4.1e-6, 0.01);
        near_to(y.time_s / 80, 2.33e-6, 0.01);
    }
    near_to(find_op(a, without, STEP_PREFILL, 1, 8192, "mlp_all_reduce", 0).time_s / 80, 522e-6, 0.001);
    near_to(find_op(a, with, STEP_PREFILL, 1, 8192, "mlp_all_reduce", 0).time_s / 80, 298e-6, 0.001);
    arena_close(a);
}

/* One rank sums with nobody; all ranks of two nodes do. */
static void test_one_rank_sends_nothing(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    static const char *const MODELS[] = {"llama-3.1-8b", "deepseek-v3"};
    for (size_t i = 0; i < COUNT(MODELS); i++) {
        const struct model m = load(a, MODELS[i]);
        const struct hw hw = device(a, "h200-sxm");
        const struct step_setup any = {.any_layout = true, .latency = {5e-6, 20e-6}, .fidelity = STEP_ROOFLINE};
        double v[STEP_VALUES_N], w[STEP_VALUES_N];
        eval(compile(a, &m, &hw, any), &(struct layout){.tp = 1}, 7, 1009, 1009, v);
        eval(compile(a, &m, &hw, (struct step_setup){.fidelity = STEP_ROOFLINE}), NULL, 7, 1009, 1009, w);
        assert_true(v[STEP_decode_wire_bytes] == 0 && v[STEP_decode_fabric_bytes] == 0 && v[STEP_prefill_link_s] == 0);
        near_to(v[STEP_decode_step_s], w[STEP_decode_step_s], 1e-12);
        near_to(v[STEP_activation_bytes], w[STEP_activation_bytes], 1e-12);
    }
    arena_close(a);
}

/* Over two nodes of 8: what a node cannot sum itself goes over the fabric, an eighth of it by each rank. */
static void test_sums_over_nodes(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "llama-3.1-70b");
    const struct hw hw = device(a, "h100-sxm");
    const struct layout l = {.tp = 16, .per_node = 8};
    struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
    const struct step_op op = find_op(a, s, STEP_DECODE, 64, 1000, "mixer_all_reduce", 0);
    const double sum = 64 * 8192.0 * 2;
    near_to(op.fabric_bytes, 80 * 2 * (1.0 / 2) * sum / 8, 1e-12);
    near_to(op.time_s, 80 * fmax(sum / 450e9, sum / 8 / 50e9), 1e-9);
    const struct step_op logits = find_op(a, s, STEP_DECODE, 64, 1000, "logits_all_gather", 0);
    assert_true(logits.wire_bytes == 14 * 64 * 8016.0 * 2 && logits.fabric_bytes == 64 * 8016.0 * 2);
    arena_close(a);
}

/* Start-up: 2(t-1) messages around a ring, one in the switch. */
static void test_latency_of_links(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct hw hw = device(a, "h100-sxm");
    struct err e = {0};
    const struct timed_latency each = {5e-6, 20e-6};
    struct timed_links k;
    assert_int_equal(timed_links(&hw, &(struct layout){.tp = 8}, &each, &k, &e), ERR_OK);
    near_to(k.sum_s, 5e-6, 1e-12);
    assert_int_equal(timed_links(&hw, &(struct layout){.tp = 16, .per_node = 8}, &each, &k, &e), ERR_OK);
    near_to(k.sum_s, 5e-6 + 2 * 20e-6, 1e-12);
    hw.nvls = false;
    assert_int_equal(timed_links(&hw, &(struct layout){.tp = 8}, &each, &k, &e), ERR_OK);
    near_to(k.sum_s, 14 * 5e-6, 1e-12);
    near_to(k.gather_s, 7 * 5e-6, 1e-12);
    near_to(k.wire_factor, 1.75, 1e-12);
    assert_int_equal(timed_links(&hw, &(struct layout){.tp = 2, .sp = true}, &each, &k, &e), ERR_OK);
    near_to(k.sum_s, 5e-6, 1e-12);
    assert_int_equal(timed_links(&hw, &(struct layout){.dp = 16, .ep = 16, .per_node = 8}, &each, &k, &e), ERR_OK);
    near_to(k.spread_s, 25e-6, 1e-12);
    hw.fabric_bytes_per_s = (double)NAN;
    assert_int_equal(timed_links(&hw, &(struct layout){.tp = 16, .per_node = 8}, &each, &k, &e), ERR_INPUT);
    assert_non_null(strstr(e.text, "fabric"));
    arena_close(a);
}

/* The same of every kind of layout, messages in a row counted by hand: 3 us in a node, 11 us between nodes. */
static void test_messages_in_a_row(void **state)
{
    (void)state;
    static const struct {
        struct layout l;
        double factor, sum_us, gather_us, spread_us, hop_us, spread_rate;
    } CASES[] = {
        /* in a switch that sums: one message; two ranks have no use for it: a ring there and back */
        {{.tp = 4}, 1, 3, 3, 0, 3, 450e9},
        {{.tp = 2}, 1, 2 * 3, 3, 0, 3, 450e9},
        {{.tp = 3}, 1, 3, 3, 0, 3, 450e9},
        /* halves of a sum: out of the switch's reach; every pair has a path */
        {{.tp = 4, .sp = true}, 1.5, 3, 3, 0, 3, 450e9},
        /* two nodes of eight: there and back on the fabric behind the sum within */
        {{.tp = 16, .per_node = 8}, 1, 3 + 2 * 11, 3 + 11, 0, 11, 450e9},
        {{.tp = 24, .per_node = 8}, 1, 3 + 4 * 11, 3 + 2 * 11, 0, 11, 450e9},
        /* experts of several groups: a message in the node, one between nodes where there are several */
        {{.dp = 4, .ep = 4}, 0, 0, 0, 3, 3, 450e9},
        {{.dp = 16, .ep = 16, .per_node = 8}, 0, 0, 0, 3 + 11, 11, 450e9},
        {{.tp = 2, .dp = 2, .ep = 4, .per_node = 4}, 1, 6, 3, 3, 3, 450e9},
        /* stages: by the link of a node, or between nodes */
        {{.pp = 2}, 0, 0, 0, 0, 3, 450e9},
        {{.pp = 2, .per_node = 1}, 0, 0, 0, 0, 11, (double)NAN},
        {{.tp = 4, .pp = 4, .per_node = 8}, 1, 3, 3, 0, 11, 450e9},
        {{.tp = 1}, 0, 0, 0, 0, 3, (double)NAN},
    };
    struct arena *a = arena_open();
    struct err e = {0};
    const struct hw hw = device(a, "h100-sxm");
    const struct timed_latency each = {3e-6, 11e-6};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct timed_links k;
        if (timed_links(&hw, &CASES[i].l, &each, &k, &e) != ERR_OK) fail_msg("%zu: %s", i, e.text);
        const double got[] = {k.wire_factor, k.sum_s * 1e6, k.gather_s * 1e6, k.spread_s * 1e6, k.hop_s * 1e6};
        const double want[] = {CASES[i].factor, CASES[i].sum_us, CASES[i].gather_us, CASES[i].spread_us,
                               CASES[i].hop_us};
        for (size_t v = 0; v < 5; v++)
            if (!(fabs(got[v] - want[v]) < 1e-9)) fail_msg("case %zu, value %zu: %g, want %g", i, v, got[v], want[v]);
        assert_true(isnan(CASES[i].spread_rate) ? isnan(k.spread_bytes_per_s)
                                                : k.spread_bytes_per_s == CASES[i].spread_rate);
        const int64_t gpus = layout_gpus(&CASES[i].l), node = CASES[i].l.per_node ? CASES[i].l.per_node : gpus;
        assert_true(isnan(k.fabric_bytes_per_s) == (gpus <= node));
    }
    arena_close(a);
}

/* Time of one operator, apart from how often it runs, against bytes over rates and messages in a row. */
static void one_takes(struct arena *a, struct step *s, const char *name, double near_rate, double far_rate,
                      double start_s)
{
    const struct step_op op = find_op(a, s, STEP_DECODE, 8, 1000, name, 0);
    const double n = (double)op.count;
    near_to(op.time_s / n, fmax(op.wire_bytes / n / near_rate, op.fabric_bytes / n / far_rate) + start_s, 1e-9);
    assert_string_equal(op.bound_by, "link");
}

/* Devices that each reach every other by a path of its own: of n of them one sends n - 1 times as fast. 3 us in a node,
 * 11 between nodes, where each operator takes its own number of messages and the rate of those that it joins. */
static void test_seconds_of_what_is_sent(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3"), dense = load(a, "llama-3.1-8b");
    struct hw hw = device(a, "mi300x");
    hw.fabric_bytes_per_s = 50e9;
    const double pair = hw.link_pair_bytes_per_s;
    assert_true(!hw.nvls && pair > 0 && 7 * pair <= hw.link_bytes_per_s * 1.001);
    struct step_setup u = {.fidelity = STEP_ROOFLINE, .latency = {3e-6, 11e-6}};
    u.layout = (struct layout){.tp = 2, .dp = 4, .ep = 8, .per_node = 8};
    struct step *s = compile(a, &m, &hw, u);
    one_takes(a, s, "mlp_all_reduce", pair, 50e9, 6e-6);
    one_takes(a, s, "logits_all_gather", pair, 50e9, 3e-6);
    one_takes(a, s, "dispatch", 7 * pair, 50e9, 3e-6);
    one_takes(a, s, "return", 7 * pair, 50e9, 3e-6);
    u.layout = (struct layout){.dp = 8, .ep = 8, .per_node = 4};
    s = compile(a, &m, &hw, u);
    one_takes(a, s, "dispatch", 3 * pair, 50e9, 14e-6);
    u.layout = (struct layout){.tp = 4, .per_node = 2};
    s = compile(a, &dense, &hw, u);
    one_takes(a, s, "mixer_all_reduce", pair, 50e9, 2 * 3e-6 + 2 * 11e-6);
    one_takes(a, s, "logits_all_gather", pair, 50e9, 14e-6);
    u.layout.sp = true;
    s = compile(a, &dense, &hw, u);
    one_takes(a, s, "mixer_reduce_scatter", pair, 50e9, 14e-6);
    one_takes(a, s, "mixer_all_gather", pair, 50e9, 14e-6);
    u.layout = (struct layout){.tp = 4, .pp = 2, .microbatches = 1, .per_node = 8};
    one_takes(a, compile(a, &dense, &hw, u), "stage_send", 3 * pair, 50e9, 3e-6);
    u.layout = (struct layout){.tp = 1, .pp = 2, .microbatches = 1, .per_node = 8};
    one_takes(a, compile(a, &dense, &hw, u), "stage_send", pair, 50e9, 3e-6);
    u.layout.per_node = 1;
    one_takes(a, compile(a, &dense, &hw, u), "stage_send", pair, 50e9, 11e-6);
    /* either latency by itself */
    u.layout = (struct layout){.tp = 4, .per_node = 2};
    u.latency = (struct timed_latency){.link_s = 3e-6};
    one_takes(a, compile(a, &dense, &hw, u), "logits_all_gather", pair, 50e9, 3e-6);
    u.latency = (struct timed_latency){.fabric_s = 11e-6};
    one_takes(a, compile(a, &dense, &hw, u), "logits_all_gather", pair, 50e9, 11e-6);
    struct timed_links k;
    struct err e = {0};
    assert_int_equal(timed_links(&hw, &(struct layout){.tp = 1, .per_node = 8}, &u.latency, &k, &e), ERR_OK);
    assert_true(isnan(k.spread_bytes_per_s) && isnan(k.link_bytes_per_s));
    arena_close(a);
}

/* Columns of points through stages: what is not asked for is left alone, and no mean of contexts is one context. */
static void test_columns_through_stages(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "llama-3.1-8b");
    const struct hw hw = device(a, "h100-sxm");
    const struct layout l = {.tp = 2, .pp = 2, .microbatches = 2};
    struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE, .averaged = true});
    const double B[] = {12, 38}, T[] = {1009, 517}, S[] = {1009, 517}, M[] = {64, 3};
    for (int averaged = 0; averaged < 2; averaged++) {
        double got[2], want[STEP_VALUES_N], *column[STEP_VALUES_N] = {0};
        struct err e = {0};
        column[STEP_decode_step_s] = got;
        step_eval(s, 2, B, T, S, averaged ? M : NULL, column);
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(step_eval_layout(s, NULL, B[i], T[i], S[i], averaged ? M[i] : 1, want, &e), ERR_OK);
            assert_true(!(got[i] < want[STEP_decode_step_s]) && !(got[i] > want[STEP_decode_step_s]));
        }
    }
    /* an odd batch: the larger of two microbatches counts, for memory all sequences */
    double odd[STEP_VALUES_N], even[STEP_VALUES_N];
    eval(s, NULL, 37, 1009, 1009, odd);
    eval(s, NULL, 38, 1009, 1009, even);
    assert_true(odd[STEP_decode_step_s] == even[STEP_decode_step_s]);
    assert_true(odd[STEP_kv_bytes] == even[STEP_kv_bytes] / 38 * 37);
    const struct step_op send = find_op(a, s, STEP_DECODE, 37, 1009, "stage_send", 0);
    assert_true(send.wire_bytes == 19 * 4096.0 * 2);
    arena_close(a);
}

/* A step that takes layouts as they come forgets the one before, whatever is other in it. */
static void test_layouts_that_follow_each_other(void **state)
{
    (void)state;
    static const struct layout FIRST = {
        .tp = 2, .dp = 4, .ep = 8, .pp = 2, .replicas = 1, .per_node = 8, .microbatches = 2, .skew = 1};
    struct layout next[8];
    for (size_t i = 0; i < 8; i++) next[i] = FIRST;
    next[0].tp = 4;
    next[1].dp = 8;
    next[2].ep = 4;
    next[3].pp = 4;
    next[4].per_node = 4;
    next[5].microbatches = 4;
    next[6].dispatch = LAYOUT_ONCE;
    next[7].skew = 1.5;
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3");
    const struct hw hw = device(a, "h200-sxm");
    const struct step_setup any = {.any_layout = true, .fidelity = STEP_ROOFLINE, .latency = {1e-6, 9e-6}};
    struct step *both = compile(a, &m, &hw, any), *alone = compile(a, &m, &hw, any);
    double base[STEP_VALUES_N], after[STEP_VALUES_N], fresh[STEP_VALUES_N];
    for (size_t i = 0; i < 8; i++) {
        eval(both, &FIRST, 96, 1021, 1021, base);
        eval(both, &next[i], 96, 1021, 1021, after);
        eval(alone, &(struct layout){.tp = 1}, 1, 7, 7, fresh); /* nothing alike before it */
        eval(alone, &next[i], 96, 1021, 1021, fresh);
        bool other = false;
        for (size_t v = 0; v < STEP_VALUES_N; v++) {
            if (after[v] < fresh[v] || after[v] > fresh[v]) fail_msg("layout %zu, value %zu", i, v);
            other = other || after[v] < base[v] || after[v] > base[v];
        }
        assert_true(other);
        eval(both, &FIRST, 96, 1021, 1021, after); /* and back */
        for (size_t v = 0; v < STEP_VALUES_N; v++) assert_true(!(after[v] < base[v]) && !(after[v] > base[v]));
    }
    arena_close(a);
}

/* DeepEP: 128 tokens of a rank, 8 copies of 7,168 elements of 1 + 4/128 bytes out and of 2 back: 7.57 and 14.7 MB. Of
 * G ranks one is the sender itself. */
static void test_all_to_all(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3");
    const struct hw hw = device(a, "h800-sxm");
    static const int64_t RANKS[] = {16, 32, 64, 128, 256};
    for (size_t i = 0; i < COUNT(RANKS); i++) {
        const struct layout l = {.dp = RANKS[i], .ep = RANKS[i], .per_node = 8};
        struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
        const double g = (double)RANKS[i], B = 128 * g;
        const struct step_op out = find_op(a, s, STEP_DECODE, B, 1000, "dispatch", 0),
                             back = find_op(a, s, STEP_DECODE, B, 1000, "return", 0);
        near_to((out.wire_bytes + out.fabric_bytes) / 58 * g / (g - 1), 7569408, 1e-12);
        near_to((back.wire_bytes + back.fabric_bytes) / 58 * g / (g - 1), 14680064, 1e-12);
        near_to(out.fabric_bytes / 58, 7569408 * (g - 8) / g, 1e-12);
        near_to(out.time_s / 58, fmax(out.fabric_bytes / 50e9, out.wire_bytes / 200e9) / 58, 1e-9);
    }
    arena_close(a);
}

/* Nodes and parts that k of E experts lie in, every choice walked. */
static double touched_by_walking(int experts, int k, int parts)
{
    double hit = 0, all = 0;
    for (uint32_t set = 0; set < 1U << experts; set++) {
        if (__builtin_popcount(set) != k) continue;
        all++;
        hit += (set & ((1U << (experts / parts)) - 1)) != 0;
    }
    return hit / all;
}

static void test_tokens_sent_once(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    static const int CASES[][3] = {{12, 3, 4}, {14, 2, 7}, {15, 5, 3}, {12, 7, 2}, {10, 9, 5}, {9, 1, 3}};
    for (size_t i = 0; i < COUNT(CASES); i++)
        near_to(layout_touched(CASES[i][0], CASES[i][1], CASES[i][2]),
                touched_by_walking(CASES[i][0], CASES[i][1], CASES[i][2]), 1e-12);
    const struct model m = load(a, "deepseek-v3");
    struct layout l = {.dp = 32, .ep = 32, .per_node = 8, .dispatch = LAYOUT_ONCE};
    double n[LAYOUT_NUMBERS];
    layout_numbers(&l, &m, false, n);
    near_to(n[LAYOUT_near], 28 * layout_touched(256, 8, 32), 1e-12);
    near_to(n[LAYOUT_far], 3 * layout_touched(256, 8, 4), 1e-12);
    l.dispatch = LAYOUT_COPIES;
    layout_numbers(&l, &m, false, n);
    near_to(n[LAYOUT_near], 8 * 7.0 / 32, 1e-12);
    near_to(n[LAYOUT_far], 8 * 24.0 / 32, 1e-12);
    l.ep = 1; /* every rank has columns of every expert: each gets the token once */
    layout_numbers(&l, &m, false, n);
    assert_true(n[LAYOUT_near] == 28 && n[LAYOUT_far] == 3);
    l.skew = 3; /* nor more often where it is busiest */
    layout_numbers(&l, &m, false, n);
    assert_true(n[LAYOUT_near] == 28 && n[LAYOUT_far] == 3);
    l.dp = 1;
    l.tp = 32; /* all ranks have all tokens */
    layout_numbers(&l, &m, false, n);
    assert_true(n[LAYOUT_near] == 0 && n[LAYOUT_far] == 0);
    arena_close(a);
}

/* Sequence parallelism: the same bytes in two halves around a ring, a t-th of the norms, and no sum in the switch. */
static void test_sequence_parallel_norms(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "llama-3.1-70b");
    const struct hw hw = device(a, "h100-sxm");
    const struct step_setup plain = {.layout = {.tp = 8}, .fidelity = STEP_ROOFLINE};
    const struct step_setup split = {.layout = {.tp = 8, .sp = true}, .fidelity = STEP_ROOFLINE};
    struct step *x = compile(a, &m, &hw, plain), *y = compile(a, &m, &hw, split);
    const double sum = 64 * 8192.0 * 2;
    assert_true(find_op(a, y, STEP_DECODE, 64, 1000, "mixer_reduce_scatter", 0).wire_bytes == 80 * 7.0 / 8 * sum);
    assert_true(find_op(a, y, STEP_DECODE, 64, 1000, "mixer_all_gather", 0).wire_bytes == 80 * 7.0 / 8 * sum);
    /* a rank reads the sum of all rows and writes its own eighth, or the other way round */
    assert_true(find_op(a, y, STEP_DECODE, 64, 1000, "mixer_reduce_scatter", 0).activation_bytes ==
                80 * (64 + 8) * 8192.0 * 2);
    assert_true(find_op(a, y, STEP_DECODE, 64, 1000, "mixer_all_gather", 0).activation_bytes ==
                80 * (64 + 8) * 8192.0 * 2);
    assert_true(find_op(a, x, STEP_DECODE, 64, 1000, "mixer_norm", 0).vector_flops ==
                8 * find_op(a, y, STEP_DECODE, 64, 1000, "mixer_norm", 0).vector_flops);
    assert_true(find_op(a, y, STEP_DECODE, 3, 1000, "mlp_residual", 0).vector_flops == 80 * 8192.0); /* one row */
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_over_ranks),
        cmocka_unit_test(test_one_rank_sends_nothing),
        cmocka_unit_test(test_sums_over_nodes),
        cmocka_unit_test(test_latency_of_links),
        cmocka_unit_test(test_messages_in_a_row),
        cmocka_unit_test(test_seconds_of_what_is_sent),
        cmocka_unit_test(test_columns_through_stages),
        cmocka_unit_test(test_layouts_that_follow_each_other),
        cmocka_unit_test(test_all_to_all),
        cmocka_unit_test(test_tokens_sent_once),
        cmocka_unit_test(test_sequence_parallel_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
