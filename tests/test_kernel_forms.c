/* Forms of kernel times: blocks, splits and waves against counts one at a time, and calibrated times against their
 * bounds. */
#include "tests/kernel_work.h"

/* Seconds of a form with parameters by name; all others are `rest`. */
struct named {
    const char *name;
    double value;
};

static double form_s(const struct kernel *k, const struct hw *hw, const struct named *v, size_t n, double rest)
{
    double p[KERNEL_PARAMS_MAX], room[KERNEL_FEATURES_MAX];
    struct kernel_features f;
    struct err e = {.code = ERR_OK};
    size_t found = 0;
    for (size_t i = 0; i < kernel_params_n(k); i++) {
        p[i] = rest;
        for (size_t j = 0; j < n; j++)
            if (strcmp(v[j].name, kernel_param(k, i)->name) == 0) {
                p[i] = v[j].value;
                found++;
            }
    }
    assert_int_equal(found, n);
    if (kernel_prepare(k, hw, room, &f, &e) != ERR_OK) fail_msg("%s", e.text);
    return kernel_form_of(k)->time_s(&f, p);
}

#define FREE 1e12 /* a rate that costs nothing */
#define FORM_S(k, hw, v) form_s(k, hw, v, sizeof(v) / sizeof *(v), 0)

/* Blocks of 128 queries over whole steps of 128 keys up to the diagonal, one at a time, in a width of powers of two;
 * where a window hides keys, every block pays for it. */
static void test_prefill_blocks(void **state)
{
    const struct hw hw = device(state, "h100-sxm");
    const double peak = hw.peak_flops_per_s[HW_BF16];
    struct kernel k = {.kind = KERNEL_PREFILL,
                       .unit = HW_BF16,
                       .element_bytes = 2,
                       .kv_element_bytes = 2,
                       .batch = 3,
                       .query_tokens = 896,
                       .heads = 60,
                       .kv_heads = 60,
                       .head_dim = 192,
                       .value_dim = 192,
                       .ungrouped = 1,
                       .padded_dim = 256};
    static const struct named v[] = {{"compute_frac", 1}, {"memory_frac", FREE}, {"write_frac", FREE}, {"overlap", 16}};
    double steps = 0, blocks = 0;
    for (int q = 0; q < 896; q += 128) {
        blocks++;
        for (int key = 0; key < q + 128; key += 128) steps++;
    }
    near(FORM_S(&k, &hw, v), 3 * 60 * steps * 2 * 128 * 128 * 512 / peak, 1e-12); /* not 384 wide */
    static const struct named edge[] = {{"compute_frac", FREE}, {"memory_frac", FREE},   {"write_frac", FREE},
                                        {"overlap", 16},        {"window_s", 0.0078125}, {"block_s", 0.015625}};
    near(FORM_S(&k, &hw, edge), 3 * 60 * blocks * 0.015625 / 132, 1e-9);
    k.window = 300;
    near(FORM_S(&k, &hw, edge), 3 * 60 * blocks * (0.015625 + 0.0078125) / 132, 1e-9);
    /* heads of a group share the rows of a block, which gathers them */
    static const struct named packed[] = {{"compute_frac", FREE}, {"memory_frac", FREE}, {"write_frac", FREE},
                                          {"overlap", 16},        {"packed_s", 0.03125}, {"block_s", 0.015625}};
    k.window = k.ungrouped = k.padded_dim = 0;
    k.kv_heads = 12;
    near(FORM_S(&k, &hw, packed), 3 * 12 * 35 * (0.015625 + 0.03125) / 132, 1e-9); /* 896*5/128 blocks of a KV head */
}

/* One block a unit, wave after wave: as many as units and splits make, no more splits than 32. */
static void test_decode_splits(void **state)
{
    const struct hw hw = device(state, "h100-sxm");
    const double read_s = 128.0 * 2 * 192 * 2 * 132 / hw.bandwidth_bytes_per_s; /* 128 keys by one SM */
    struct kernel k = decode(1, 128 * 96);
    k.heads = 24;
    k.kv_heads = 1;
    k.head_dim = k.value_dim = 192;
    static const struct named v[] = {{"stream_ratio", 1},     {"half_rate_width", 384}, {"memory_frac", FREE},
                                     {"hot_ratio", FREE},     {"combine_ratio", FREE},  {"overlap", 16},
                                     {"step_s", 0.0009765625}};
    /* 3 steps in a row; heads of 192 at 1 + (192/384)^2; 24 heads are three times 8 rows of the matrix unit */
    near(FORM_S(&k, &hw, v), 3 * (read_s * 1.25 + 3 * 0.0009765625), 1e-9);
    k.window = 257; /* hides most: ceil(257/128) + 1 blocks, each its own split */
    near(FORM_S(&k, &hw, v), read_s * 1.25 + 3 * 0.0009765625, 1e-9);
}

/* Short messages go to all peers at once, not around a ring. */
static void test_short_all_reduce(void **state)
{
    const struct hw hw = device(state, "a100-80g");
    struct kernel k = {
        .kind = KERNEL_COLLECTIVE, .collective = KERNEL_ALL_REDUCE, .ranks = 8, .per_node = 8, .payload_bytes = 65537};
    static const struct named v[] = {
        {"low_frac", 1}, {"high_start_s", 1}, {"high_frac", 1}, {"switch_frac", 1}, {"join", 1}};
    near(FORM_S(&k, &hw, v), 7 * 65537 / 300e9, 1e-12);
    k.collective = KERNEL_ALL_GATHER;
    near(FORM_S(&k, &hw, v), 7.0 / 8 * 65537 / 300e9, 1e-12);
}

/* Features of a form, before it has parameters. */
static size_t features(const struct kernel *k, const struct hw *hw, double v[KERNEL_FEATURES_MAX])
{
    const struct kernel_work w = work(k, hw);
    struct kernel_features f = {.v = v};
    kernel_form_of(k)->prepare(k, hw, &w, &f);
    return f.n;
}

/* Blocks of absorbed latent attention in each number of splits: 130 heads are three blocks of 64, 20,011 keys 157 steps
 * of 128. Of other decoding a window is so many steps and one that it begins in. */
static void test_splits_of_decoding(void **state)
{
    const struct hw hw = device(state, "h100-sxm");
    static const double SPLITS[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128};
    enum { FIRST = 6, EACH = 6, N = sizeof SPLITS / sizeof SPLITS[0] };
    double v[KERNEL_FEATURES_MAX];
    struct kernel k = {.kind = KERNEL_MLA_DECODE,
                       .unit = HW_BF16,
                       .batch = 11,
                       .heads = 130,
                       .kv_heads = 1,
                       .head_dim = 576,
                       .value_dim = 512,
                       .context_tokens = 20011,
                       .element_bytes = 2,
                       .kv_element_bytes = 2};
    const double rate = hw.bandwidth_bytes_per_s, sm_flops_per_s = hw.peak_flops_per_s[HW_BF16] / 132;
    assert_true(hw.sm_count == 132);
    assert_int_equal(features(&k, &hw, v), FIRST + EACH * N);
    for (size_t i = 0; i < N; i++) {
        const double *x = v + FIRST + EACH * i, s = SPLITS[i];
        const double waves = ceil(11 * 3 * s / 132), steps = waves * ceil(157 / s);
        near(x[0], waves, 0);
        near(x[1], steps * 128 * 576 * 2 * 132 / rate, 1e-12);
        near(x[2], steps * 2 * 64 * 128 * (576 + 512) / sm_flops_per_s, 1e-12);
        near(x[3], steps, 0);
        near(x[4], s > 1, 0);
        near(x[5], s > 1 ? s * 11 * 130 * 512 * 8 / rate : 0, 1e-12);
    }
    k = decode(3, 20011);
    k.heads = 9 * k.kv_heads;                                  /* two times 8 rows of the matrix unit */
    assert_int_equal(features(&k, &hw, v), FIRST + EACH * 13); /* to 32 */
    for (size_t i = 0; i < 13; i++)
        near(v[FIRST + EACH * i + 3], 2 * ceil(3 * k.kv_heads * SPLITS[i] / 132) * ceil(157 / SPLITS[i]), 0);
    k.window = 300; /* ceil(300/128) + 1 */
    assert_int_equal(features(&k, &hw, v), FIRST + EACH * 4);
    k.window = 384;
    assert_int_equal(features(&k, &hw, v), FIRST + EACH * 4);
}

/* Kernels of cards before Hopper: blocks of 64 queries where as few are asked and groups are not known. */
static void test_half_blocks_of_prefill(void **state)
{
    const struct hw old = device(state, "a100-80g"), hopper = device(state, "h100-sxm");
    enum { PACKS = 2, BLOCKS = 9 };
    double v[KERNEL_FEATURES_MAX];
    struct kernel k = {.kind = KERNEL_PREFILL,
                       .unit = HW_BF16,
                       .batch = 3,
                       .heads = 28,
                       .kv_heads = 4,
                       .head_dim = 128,
                       .value_dim = 128,
                       .query_tokens = 64,
                       .prefix_tokens = 1009,
                       .element_bytes = 2,
                       .kv_element_bytes = 2,
                       .ungrouped = 1};
    (void)features(&k, &old, v);
    near(v[BLOCKS], 3.0 * 28 / 2 / 108, 1e-12);
    (void)features(&k, &hopper, v);
    near(v[BLOCKS], 3.0 * 28 / 132, 1e-12);
    k.query_tokens = 65;
    (void)features(&k, &old, v);
    near(v[BLOCKS], 3.0 * 28 / 108, 1e-12);
    k.ungrouped = 0;
    k.flash2 = 1; /* packs the heads of a group for one query alone */
    for (int t = 1; t <= 3; t++) {
        k.query_tokens = t;
        (void)features(&k, &old, v);
        assert_true(v[PACKS] == (t == 1));
    }
}

/* Ways to cut a product: every tile in as many parts of k as have two steps of 64 each. */
static void test_splits_of_products(void **state)
{
    const struct hw hw = device(state, "h100-sxm");
    enum { FIRST = 5, EACH = 6 };
    double v[KERNEL_FEATURES_MAX];
    struct kernel k = {.kind = KERNEL_GEMM,
                       .unit = HW_BF16,
                       .element_bytes = 2,
                       .m = 13,
                       .n = 1031,
                       .k = 127,
                       .groups = 1,
                       .cold = true};
    const size_t tiles = (features(&k, &hw, v) - FIRST) / EACH;
    static const struct {
        double k;
        size_t parts; /* of 1, 2, 3, 4, 6, 8, .. */
    } CASES[] = {{127, 1}, {255, 1}, {256, 2}, {383, 2}, {384, 3}, {511, 3}, {512, 4}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        k.k = CASES[i].k;
        assert_int_equal(features(&k, &hw, v), FIRST + EACH * tiles * CASES[i].parts);
    }
    k.quant = KERNEL_QUANT_BLOCK;
    k.unit = HW_FP8;
    k.element_bytes = 1;
    k.k = 1032; /* nine sums of 128, the last of 8 */
    const size_t n = features(&k, &hw, v);
    assert_true(n > FIRST);
    for (size_t i = FIRST; i < n; i += EACH) {
        assert_true(fabs(fmod(v[i + 5], 9)) < 1e-9 && v[i + 5] >= 9);
    }
}

static const struct kernel samples[] = {
    {.kind = KERNEL_GEMM, .unit = HW_BF16, .element_bytes = 2, .m = 97, .n = 4096, .k = 7168, .groups = 1},
    {.kind = KERNEL_GEMM,
     .quant = KERNEL_QUANT_BLOCK,
     .unit = HW_FP8,
     .element_bytes = 1,
     .m = 5003,
     .n = 1536,
     .k = 7168,
     .groups = 1},
    {.kind = KERNEL_PREFILL,
     .unit = HW_BF16,
     .element_bytes = 2,
     .kv_element_bytes = 2,
     .batch = 3,
     .query_tokens = 2999,
     .heads = 32,
     .kv_heads = 8,
     .head_dim = 128,
     .value_dim = 128},
    {.kind = KERNEL_DECODE,
     .unit = HW_BF16,
     .element_bytes = 2,
     .kv_element_bytes = 2,
     .batch = 61,
     .context_tokens = 7001,
     .heads = 32,
     .kv_heads = 8,
     .head_dim = 128,
     .value_dim = 128},
    {.kind = KERNEL_MLA_DECODE,
     .unit = HW_BF16,
     .element_bytes = 2,
     .kv_element_bytes = 2,
     .batch = 61,
     .context_tokens = 7001,
     .heads = 16,
     .kv_heads = 1,
     .head_dim = 576,
     .value_dim = 512},
    {.kind = KERNEL_MOE,
     .unit = HW_BF16,
     .element_bytes = 2,
     .tokens = 611,
     .width = 2048,
     .hidden = 768,
     .topk = 8,
     .experts = 128,
     .tp = 1,
     .ep = 2,
     .gated = 1,
     .active_experts = 60,
     .routed_rows = 2444,
     .max_rows = 50},
    {.kind = KERNEL_SCAN,
     .unit = HW_BF16,
     .batch = 3,
     .query_tokens = 4099,
     .heads = 32,
     .key_heads = 16,
     .state_dim = 128,
     .value_dim = 128,
     .chunk_tokens = 64,
     .state_bytes = 4,
     .gated = 1},
    {.kind = KERNEL_CONV, .batch = 3, .query_tokens = 4099, .channels = 8192, .taps = 4},
    {.kind = KERNEL_ELEMENTWISE, .m = 7001, .moved_bytes = 7001.0 * 8192 * 4},
    {.kind = KERNEL_COLLECTIVE, .collective = KERNEL_ALL_REDUCE, .ranks = 8, .per_node = 8, .payload_bytes = 7e7},
};

static void test_calibrated_times_respect_bounds(void **state)
{
    const struct hw hw = device(state, "h100-sxm");
    uint64_t seed = 88172645463325252U;
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        const struct kernel *k = &samples[i];
        const struct kernel_form *form = kernel_form_of(k);
        double room[KERNEL_FEATURES_MAX], p[KERNEL_PARAMS_MAX];
        struct kernel_features f;
        struct err e = {.code = ERR_OK};
        const size_t n = kernel_params_n(k);
        assert_true(n <= 12 + (k->quant ? 2U : 0U));
        if (kernel_prepare(k, &hw, room, &f, &e) != ERR_OK) fail_msg("%s", e.text);
        assert_true(f.n <= KERNEL_FEATURES_MAX);
        for (int trial = 0; trial < 300; trial++) {
            for (size_t j = 0; j < n; j++) {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                const struct kernel_param *q = kernel_param(k, j);
                p[j] = q->lo * pow(q->hi / q->lo, (double)(seed >> 11) / 9007199254740992.0);
                assert_true(q->lo > 0 && q->lo < q->hi && q->start[0] >= q->lo && q->start[0] <= q->hi);
                assert_true(q->start[1] >= q->lo && q->start[1] <= q->hi);
            }
            const double s = kernel_time_s(form, &f, p);
            assert_true(isfinite(s) && s >= work(k, &hw).credited_bound_s);
            /* a start-up that is longer makes no call shorter */
            const double before = s;
            p[0] = kernel_param(k, 0)->hi;
            assert_true(kernel_time_s(form, &f, p) >= before * (1 - 1e-12));
        }
    }
}

static void test_more_work_takes_longer(void **state)
{
    const struct hw hw = device(state, "h100-sxm");
    for (size_t i = 0; i < 5; i++) {
        double room[KERNEL_FEATURES_MAX], p[KERNEL_PARAMS_MAX], before = 0;
        struct kernel k = samples[i];
        for (size_t j = 0; j < kernel_params_n(&k); j++) p[j] = kernel_param(&k, j)->start[0];
        for (int step = 0; step < 8; step++) {
            struct kernel_features f;
            assert_int_equal(kernel_prepare(&k, &hw, room, &f, NULL), ERR_OK);
            const double s = kernel_time_s(kernel_form_of(&k), &f, p);
            assert_true(s >= before);
            before = s;
            k.m *= 4;
            k.query_tokens *= 2;
            k.context_tokens *= 4;
        }
    }
}

static void test_kinds_have_names(void **state)
{
    (void)state;
    enum kernel_kind kind;
    for (int i = 0; i < KERNEL_KINDS_N; i++) {
        assert_true(kernel_kind_find(kernel_kind_name((enum kernel_kind)i), &kind));
        assert_int_equal(kind, i);
    }
    assert_false(kernel_kind_find("gem", &kind));
    near(kernel_norm(3, 4, 2), 5, 1e-12);
    near(kernel_norm(3, 4, 1), 7, 1e-12);
    near(kernel_norm(0, 0, 3), 0, 0);
    near(kernel_hot_frac(70, 100), 1, 0);
    near(kernel_hot_frac(150, 100), 0.5, 1e-12);
    near(kernel_hot_frac(230, 100), 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_splits_of_decoding),
        cmocka_unit_test(test_half_blocks_of_prefill),
        cmocka_unit_test(test_splits_of_products),
        cmocka_unit_test(test_prefill_blocks),
        cmocka_unit_test(test_decode_splits),
        cmocka_unit_test(test_short_all_reduce),
        cmocka_unit_test(test_calibrated_times_respect_bounds),
        cmocka_unit_test(test_more_work_takes_longer),
        cmocka_unit_test(test_kinds_have_names),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
