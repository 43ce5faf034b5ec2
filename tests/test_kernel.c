/* Work of every kind of kernel against counts made one multiply-add and one byte at a time; mistakes that published
 * calculators make, which these counts must not. */
#include "tests/kernel_work.h"

/* (query, key) pairs, one at a time. */
static double naive_pairs(int t, int p, int window)
{
    double n = 0;
    for (int q = p; q < p + t; q++)
        for (int k = 0; k <= q; k++) n += window == 0 || q - k < window;
    return n;
}

static void test_pairs_are_those_of_a_loop(void **state)
{
    (void)state;
    static const int cases[][3] = {{1, 0, 0},    {7, 0, 0},   {13, 5, 0},  {37, 0, 11}, {37, 3, 11},
                                   {37, 29, 11}, {5, 2, 97},  {11, 0, 11}, {22, 0, 11}, {1, 53, 17},
                                   {2, 16, 17},  {3, 15, 17}, {17, 16, 1}, {29, 0, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        near(kernel_pairs(cases[i][0], cases[i][1], cases[i][2]), naive_pairs(cases[i][0], cases[i][1], cases[i][2]),
             0);
    /* mean of the minimum, not the minimum of the mean: S = 2W is 3,072 a query, not 4,096 */
    near(kernel_pairs(8192, 0, 4096) / 8192, 3072.25, 1e-12);
}

static void test_product(void **state)
{
    const struct hw hw = device(state, "h100-sxm");
    const struct kernel k = {
        .kind = KERNEL_GEMM, .unit = HW_BF16, .element_bytes = 2, .m = 13, .n = 17, .k = 29, .groups = 1};
    double flops = 0, bytes = 0;
    for (int m = 0; m < 13; m++)
        for (int n = 0; n < 17; n++)
            for (int i = 0; i < 29; i++) flops += 2;
    for (int i = 0; i < 13 * 29 + 17 * 29 + 13 * 17; i++) bytes += 2;
    const struct kernel_work w = work(&k, &hw);
    near(w.flops, flops, 0);
    near(w.bytes, bytes, 0);
    near(w.compute_s, flops / 989.4e12, 1e-12);
    near(w.memory_s, bytes / 3.35e12, 1e-12); /* bytes by bytes/s: not elements, and no GiB/s */
    assert_true(w.weak);
    near(w.credited_bound_s, w.compute_s, 0);
    /* a head of a model multiplies and adds: 2 flops, and for every row */
    const struct kernel head = {
        .kind = KERNEL_GEMM, .unit = HW_BF16, .element_bytes = 2, .m = 64, .n = 32000, .k = 5120, .groups = 1};
    near(work(&head, &hw).flops, 2.0 * 64 * 5120 * 32000, 0);
}

static void test_quantised_product(void **state)
{
    const struct hw hw = device(state, "h100-sxm");
    const struct kernel k = {.kind = KERNEL_GEMM,
                             .quant = KERNEL_QUANT_BLOCK,
                             .unit = HW_FP8,
                             .element_bytes = 1,
                             .m = 101,
                             .n = 211,
                             .k = 307,
                             .groups = 1};
    const struct kernel_work w = work(&k, &hw);
    near(w.bytes, 101 * 307 * 2 + 211 * 307 * 1 + 101 * 211 * 2, 0); /* bf16 in and out, fp8 weights */
    near(w.quant_bytes, 101 * 307 * 2, 0);                           /* fp8 copy written and read */
    near(w.compute_s, 2.0 * 101 * 211 * 307 / 1978.9e12, 1e-12);
    assert_int_equal(kernel_params_n(&k), kernel_form_of(&k)->n_params + 2);
}

static void test_credit_is_one_cache(void **state)
{
    const struct hw hw = device(state, "h100-sxm");
    const struct kernel k = {
        .kind = KERNEL_GEMM, .unit = HW_BF16, .element_bytes = 2, .m = 3, .n = 14336, .k = 8192, .groups = 1};
    const struct kernel_work w = work(&k, &hw);
    assert_false(w.weak);
    near(w.credited_bound_s, (w.bytes - hw.l2_bytes) / 3.35e12, 1e-12);
    assert_true(w.credited_bound_s < w.bound_s);
}

static void test_decode_reads_keys_of_kv_heads(void **state)
{
    const struct hw hw = device(state, "h100-sxm");
    struct kernel k = decode(64, 1024);
    const struct kernel_work w = work(&k, &hw);
    const double kv = 64.0 * 1024 * 8 * 256 * 2, queries = 64.0 * 64 * 256 * 2;
    near(w.bytes, kv + queries, 0); /* per KV head, not per query head: 8 times less; each once, not twice */
    near(w.flops, 64.0 * 64 * 1024 * 256 * 2, 0);
    /* 80 layers of Llama-2-70B at batch 64, context 1024: 21.47 GB, which one calculator puts at 171.8 */
    near(80 * kv, 21.47e9, 1e-3);
    k.context_tokens = 2048;
    near(work(&k, &hw).flops, 2 * w.flops, 0); /* attention over a context costs flops in decode too */
    k.window = 512;
    near(work(&k, &hw).flops, w.flops / 2, 0);
    k.window = 4096;
    near(work(&k, &hw).flops, 2 * w.flops, 0);
    k = decode(7, 997);
    k.kv_element_bytes = 1;
    near(work(&k, &hw).bytes, 7.0 * 997 * 8 * 256 + 7.0 * 64 * 256 * 2, 0);
}

static void test_prefill(void **state)
{
    const struct hw hw = device(state, "h100-sxm");
    struct kernel k = {.kind = KERNEL_PREFILL,
                       .unit = HW_BF16,
                       .element_bytes = 2,
                       .kv_element_bytes = 2,
                       .batch = 3,
                       .query_tokens = 37,
                       .heads = 10,
                       .kv_heads = 2,
                       .head_dim = 64,
                       .value_dim = 64};
    for (int window = 0; window < 60; window += 13) {
        for (int prefix = 0; prefix < 40; prefix += 19) {
            double flops = 0, keys = 0;
            for (int key = 0; key < prefix + 37; key++) { /* read when any query sees it */
                bool seen = false;
                for (int q = prefix; q < prefix + 37; q++) seen |= key <= q && (window == 0 || q - key < window);
                keys += seen;
            }
            for (int s = 0; s < 3 * 10; s++) flops += naive_pairs(37, prefix, window) * 2 * 128;
            k.window = window;
            k.prefix_tokens = prefix;
            near(work(&k, &hw).flops, flops, 0);
            near(work(&k, &hw).bytes, 3 * (37.0 * 10 * 128 * 2 + keys * 2 * 128 * 2), 0);
        }
    }
}

static void test_latent_attention(void **state)
{
    const struct hw hw = device(state, "h100-sxm");
    const struct kernel k = {.kind = KERNEL_MLA_DECODE,
                             .unit = HW_BF16,
                             .element_bytes = 2,
                             .kv_element_bytes = 2,
                             .batch = 5,
                             .context_tokens = 1009,
                             .heads = 128,
                             .kv_heads = 1,
                             .head_dim = 576,
                             .value_dim = 512};
    const struct kernel_work w = work(&k, &hw);
    /* 576 elements a token, of which 512 serve as the value as well: neither 512 nor 1088 nor once per head */
    near(w.bytes, 5.0 * (1009 * 576 * 2 + 128 * (576 + 512) * 2), 0);
    near(w.flops, 5.0 * 1009 * 128 * 2 * (576 + 512), 0);
    const struct kernel p = {.kind = KERNEL_MLA_PREFILL,
                             .unit = HW_BF16,
                             .element_bytes = 2,
                             .kv_element_bytes = 2,
                             .batch = 2,
                             .query_tokens = 31,
                             .heads = 16,
                             .kv_heads = 16,
                             .head_dim = 192,
                             .value_dim = 128};
    near(work(&p, &hw).flops, 2.0 * 16 * naive_pairs(31, 0, 0) * 2 * 320, 0);
    near(work(&p, &hw).bytes, 2.0 * 31 * 16 * 2 * (192 + 128 + 192 + 128), 0);
}

/* Expected distinct experts by summing over all draws of small cases. */
static double naive_experts(int tokens, int topk, int experts)
{
    /* one expert is missed by a token with probability C(E-1, k)/C(E, k) = 1 - k/E */
    double missed = 1;
    for (int t = 0; t < tokens; t++) missed *= 1 - (double)topk / experts;
    return experts * (1 - missed);
}

static void test_experts(void **state)
{
    (void)state;
    static const int cases[][3] = {{1, 2, 8}, {1, 8, 128}, {3, 2, 8}, {17, 8, 256}, {64, 8, 256}, {5, 10, 512}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        near(kernel_experts(cases[i][0], cases[i][1], cases[i][2]),
             naive_experts(cases[i][0], cases[i][1], cases[i][2]), 1e-12);
    near(kernel_experts(1, 2, 8), 2, 1e-12);     /* not 1.875: one token's experts differ */
    near(kernel_experts(1, 8, 128), 8, 1e-12);   /* not 7.785 */
    near(kernel_experts(64, 2, 8), 8, 1e-6);     /* not 2 of 8 */
    assert_true(kernel_experts(4, 8, 256) < 32); /* an expectation, below min(E, tokens*k) */
    near(kernel_experts(9, 8, 8), 8, 0);
}

static struct kernel experts(double tokens)
{
    return (struct kernel){.kind = KERNEL_MOE,
                           .unit = HW_BF16,
                           .element_bytes = 2,
                           .tokens = tokens,
                           .width = 4096,
                           .hidden = 14336,
                           .topk = 2,
                           .experts = 8,
                           .tp = 2,
                           .ep = 1,
                           .gated = 1,
                           .active_experts = (double)NAN,
                           .routed_rows = (double)NAN,
                           .max_rows = (double)NAN};
}

static void test_routed_experts(void **state)
{
    const struct hw hw = device(state, "h100-sxm");
    struct kernel k = experts(1);
    const double one = 3.0 * 4096 * 7168; /* elements of an expert of this rank, three matrices */
    struct kernel_work w = work(&k, &hw);
    near(w.flops, 2 * 2 * one, 1e-12);
    near(w.bytes, 2 * one * 2 + 4096 * 4, 1e-12);
    k = experts(64);
    w = work(&k, &hw);
    near(w.flops, 64 * 2 * 2 * one, 1e-12);
    near(w.bytes, kernel_experts(64, 2, 8) * one * 2 + 64 * 4096 * 4, 1e-12);
    k.active_experts = 3; /* what was observed goes before what is expected */
    k.routed_rows = 41;
    k.gated = 0;
    w = work(&k, &hw);
    near(w.flops, 41 * 2 * one * 2 / 3, 1e-12);
    near(w.bytes, 3 * one * 2 * 2 / 3 + 41 * 4096 * 4, 1e-12);
}

/* Few tokens are not sorted by a kernel that can do without: 4 of 8 experts each in 128, but 5 are, and those of an
 * experts' part; always, or never apart from its start-up, where so it is said. */
static void test_few_tokens_unsorted(void **state)
{
    const struct hw hw = device(state, "h100-sxm");
    static const struct {
        double tokens, ep, sparse;
        bool sorted;
    } CASES[] = {{4, 1, 4, false},       {5, 1, 4, true},   {4, 2, 4, true},    {1, 1, 8, false},
                 {1, 1, HUGE_VAL, true}, {611, 1, 4, true}, {611, 1, 0, false}, {611, 1, HUGE_VAL, true}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        double room[KERNEL_FEATURES_MAX], p[KERNEL_PARAMS_MAX], s[2];
        struct kernel k = experts(CASES[i].tokens);
        k.hidden = 1536;
        k.topk = 8;
        k.experts = 128;
        k.ep = CASES[i].ep;
        for (int part = 0; part < 2; part++) {
            struct kernel_features f;
            k.sparse = part ? CASES[i].sparse : 0;
            assert_int_equal(kernel_prepare(&k, &hw, room, &f, NULL), ERR_OK);
            for (size_t j = 0; j < kernel_params_n(&k); j++)
                p[j] = strcmp(kernel_param(&k, j)->name, "sort_s") == 0 ? 1.3e-5 : kernel_param(&k, j)->start[0];
            s[part] = kernel_time_s(kernel_form_of(&k), &f, p);
        }
        near(s[1], s[0] + (CASES[i].sorted ? 1.3e-5 : 0), 1e-12);
    }
}

/* Where computing is all that takes time, tiles of 16 rows take a quarter of those of 64 for 16 tokens of one expert,
 * and no more than them for any number. */
static void test_experts_in_small_tiles(void **state)
{
    const struct hw hw = device(state, "h100-sxm");
    static const double TOKENS[] = {1, 16, 17, 61, 64, 1021};
    for (size_t i = 0; i < sizeof TOKENS / sizeof TOKENS[0]; i++) {
        double room[KERNEL_FEATURES_MAX], p[KERNEL_PARAMS_MAX], s[2];
        struct kernel k = experts(TOKENS[i]);
        k.topk = k.experts = 1;
        for (int small = 0; small < 2; small++) {
            struct kernel_features f;
            k.tile_rows = small ? 16 : 0; /* not a unit */
            assert_int_equal(kernel_prepare(&k, &hw, room, &f, NULL), ERR_OK);
            for (size_t j = 0; j < kernel_params_n(&k); j++) {
                const struct kernel_param *q = kernel_param(&k, j);
                const bool rate = strcmp(q->unit, "s") != 0;
                p[j] = strcmp(q->name, "compute_frac") == 0 ? q->lo : rate ? q->hi : q->lo;
                if (strcmp(q->name, "throttle_frac") == 0) p[j] = q->lo;
            }
            s[small] = kernel_time_s(kernel_form_of(&k), &f, p) - p[0]; /* without its start-up */
        }
        assert_true(s[1] <= s[0] * (1 + 1e-12));
        if (TOKENS[i] <= 16) assert_true(fabs(s[1] / s[0] - 0.25) < 0.05);
        if (TOKENS[i] >= 64 && TOKENS[i] < 65) assert_true(fabs(s[1] / s[0] - 1) < 0.2);
    }
}

static void test_recurrent_layers(void **state)
{
    const struct hw hw = device(state, "h100-sxm");
    struct kernel k = {.kind = KERNEL_SCAN,
                       .unit = HW_BF16,
                       .element_bytes = 2,
                       .batch = 3,
                       .query_tokens = 71,
                       .heads = 8,
                       .key_heads = 4,
                       .state_dim = 128,
                       .value_dim = 64,
                       .chunk_tokens = 64,
                       .state_bytes = 4,
                       .gated = 1};
    double flops = 0;
    for (int t = 0; t < 3 * 71 * 8; t++) flops += 3.0 * 2 * 128 * 64;
    near(work(&k, &hw).flops, flops, 0); /* a state has flops, and is written back */
    near(work(&k, &hw).bytes, 3.0 * 71 * 2 * (2 * 4 * 128 + 2 * 8 * 64) + 2.0 * 3 * 8 * 128 * 64 * 4, 0);
    k = (struct kernel){.kind = KERNEL_CONV, .batch = 3, .query_tokens = 71, .channels = 1009, .taps = 4};
    near(work(&k, &hw).bytes, 3.0 * 71 * 1009 * 4, 0);
    k.query_tokens = 1;
    near(work(&k, &hw).bytes, 3.0 * 1009 * 4 * 4, 0);
}

static void test_collectives(void **state)
{
    const struct hw h100 = device(state, "h100-sxm"), a100 = device(state, "a100-80g");
    struct kernel k = {.kind = KERNEL_COLLECTIVE,
                       .collective = KERNEL_ALL_REDUCE,
                       .ranks = 8,
                       .per_node = 8,
                       .payload_bytes = 1000003};
    near(work(&k, &a100).bytes, 2 * 7.0 / 8 * 1000003, 1e-12); /* around a ring */
    near(work(&k, &a100).bound_s, 2 * 7.0 / 8 * 1000003 / 300e9, 1e-12);
    near(work(&k, &h100).bytes, 1000003, 1e-12); /* the switch sums */
    near(work(&k, &h100).bound_s, 1000003 / 450e9, 1e-12);
    near(work(&k, &h100).credited_bound_s, work(&k, &h100).bound_s, 0); /* a link forgives nothing */
    k.ranks = k.per_node = 2;
    near(work(&k, &h100).bytes, 1000003, 1e-12);
    k.collective = KERNEL_ALL_GATHER;
    k.ranks = k.per_node = 4;
    near(work(&k, &h100).bytes, 0.75 * 1000003, 1e-12);
    /* a path to each of three others */
    const struct hw mesh = device(state, "mi300x");
    near(work(&k, &mesh).bound_s, 0.75 * 1000003 / (3 * mesh.link_pair_bytes_per_s), 1e-12);
}

/* Factors of a product in the format of its unit: narrower weights are widened where that has 16 bits. */
static void test_factors_of_a_unit(void **state)
{
    const struct hw hw = device(state, "h100-sxm");
    static const struct {
        enum hw_dtype unit;
        double input_bytes;
    } CASES[] = {{HW_BF16, 2}, {HW_FP16, 2}, {HW_FP8, 1}, {HW_INT8, 1}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const struct kernel k = {
            .kind = KERNEL_GEMM, .m = 3, .n = 1009, .k = 997, .groups = 1, .element_bytes = 1, .unit = CASES[i].unit};
        near(work(&k, &hw).bytes, 3.0 * 997 * CASES[i].input_bytes + 1009.0 * 997 + 3.0 * 1009 * 2, 1e-12);
    }
    /* what multiplies nothing needs no unit */
    struct hw none = hw;
    for (size_t i = 0; i < HW_DTYPES_N; i++) none.peak_flops_per_s[i] = (double)NAN;
    const struct kernel copy = {.kind = KERNEL_ELEMENTWISE, .moved_bytes = 1e9};
    const struct kernel_work w = work(&copy, &none);
    assert_true(w.compute_s == 0);
    near(w.memory_s, 1e9 / hw.bandwidth_bytes_per_s, 1e-12);
}

/* What a cold call of a core writes, counted in outputs: where reading is what takes time, the rest is read. */
static void test_written_bytes_of_a_core(void **state)
{
    static const struct {
        struct kernel k;
        double outputs, output_bytes;
    } cases[] = {
        {{.kind = KERNEL_MLA_BMM, .unit = HW_BF16, .element_bytes = 2, .groups = 16, .m = 3, .n = 512, .k = 131},
         16.0 * 3 * 512,
         2},
        {{.kind = KERNEL_MLA_PREFILL,
          .unit = HW_TF32,
          .element_bytes = 4,
          .kv_element_bytes = 4,
          .batch = 2,
          .query_tokens = 31,
          .heads = 16,
          .kv_heads = 16,
          .head_dim = 192,
          .value_dim = 128},
         2.0 * 31 * 16 * 128,
         4},
        {{.kind = KERNEL_MLA_DECODE,
          .unit = HW_BF16,
          .element_bytes = 2,
          .kv_element_bytes = 2,
          .batch = 5,
          .context_tokens = 1009,
          .heads = 128,
          .kv_heads = 1,
          .head_dim = 576,
          .value_dim = 512},
         5.0 * 128 * 512,
         2},
        {{.kind = KERNEL_MLP,
          .unit = HW_BF16,
          .element_bytes = 2,
          .tokens = 11,
          .width = 307,
          .hidden = 1009,
          .topk = 1,
          .experts = 1,
          .tp = 1,
          .ep = 1,
          .gated = 1,
          .active_experts = 1,
          .routed_rows = 11,
          .max_rows = 11},
         11.0 * 307,
         2},
        {{.kind = KERNEL_ELEMENTWISE, .m = 7, .moved_bytes = 7.0 * 1009 * 2 * 3, .written_bytes = 7.0 * 1009 * 2},
         7.0 * 1009,
         2},
    };
    struct hw hw = device(state, "h100-sxm");
    hw.bandwidth_bytes_per_s = 31e9;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kernel k = cases[i].k;
        k.host = k.cold = true;
        const double written = cases[i].outputs * cases[i].output_bytes;
        hw.moved_bytes_per_s = 1e15;
        const struct kernel_work w = work(&k, &hw);
        near(w.memory_s, (w.bytes - written) / 31e9, 1e-12);
        hw.moved_bytes_per_s = 31.0000001e9; /* all of it then takes longer than what is read */
        near(work(&k, &hw).memory_s, w.bytes / 31.0000001e9, 1e-12);
        hw.moved_bytes_per_s = 17e9; /* never below reading: it is a mistake of the ceilings */
        near(work(&k, &hw).memory_s, w.bytes / 31e9, 1e-12);
    }
}

static void test_unknown_peak_is_refused(void **state)
{
    struct hw hw = device(state, "h100-sxm");
    struct kernel k = decode(3, 101);
    struct kernel_work w = {.flops = 7};
    struct err e = {.code = ERR_OK};
    hw.peak_flops_per_s[HW_BF16] = (double)NAN;
    assert_int_equal(kernel_work(&k, &hw, &w, &e), ERR_INPUT);
    assert_non_null(strstr(e.text, "peak.bf16"));
    near(w.flops, 7, 0);
    hw = device(state, "h100-sxm");
    hw.sm_count = (double)NAN;
    double room[KERNEL_FEATURES_MAX];
    struct kernel_features f;
    assert_int_equal(kernel_prepare(&k, &hw, room, &f, &e), ERR_INPUT);
    assert_non_null(strstr(e.text, "sm_count"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs_are_those_of_a_loop),
        cmocka_unit_test(test_product),
        cmocka_unit_test(test_quantised_product),
        cmocka_unit_test(test_credit_is_one_cache),
        cmocka_unit_test(test_decode_reads_keys_of_kv_heads),
        cmocka_unit_test(test_prefill),
        cmocka_unit_test(test_latent_attention),
        cmocka_unit_test(test_experts),
        cmocka_unit_test(test_routed_experts),
        cmocka_unit_test(test_few_tokens_unsorted),
        cmocka_unit_test(test_experts_in_small_tiles),
        cmocka_unit_test(test_recurrent_layers),
        cmocka_unit_test(test_collectives),
        cmocka_unit_test(test_factors_of_a_unit),
        cmocka_unit_test(test_written_bytes_of_a_core),
        cmocka_unit_test(test_unknown_peak_is_refused),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
