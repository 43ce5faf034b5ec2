/* DeepSeek-V4.1: attention to entries that layers share, tables of n-grams. Tensors as in transformers'
 * modular_deepseek_v41.py; operators by loops over queries and keys. */
#include "tests/families.h"

#include <math.h>
#include <string.h>

/* Two layers of a window, groups of entries of two tokens, one of single tokens; some of those choose anew. */
static const struct subject FLASH[] = {
    {"deepseek-v4.1-flash", /* published: 763 billion with the drafter and the tower, 196 of them in tables */
     "{\"model_type\":\"deepseek_v41\",\"architectures\":[\"DeepseekV41ForCausalLM\"],\"text_config\":{\"model_type\":"
     "\"deepseek_v41_text\",\"vocab_size\":129280,\"hidden_size\":5120,\"num_hidden_layers\":40,"
     "\"num_attention_heads\":64,\"num_key_value_heads\":1,\"head_dim\":512,\"q_lora_rank\":1280,"
     "\"qk_rope_head_dim\":64,\"sliding_window\":128,\"compress_ratios\":[0,0,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,1,1,"
     "1,"
     "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,0,0,0],\"kv_source_layer_ids\":[2,8,14,20],\"index_source_layer_ids\":[2,8,14,"
     "20,"
     "24,28,32,36],\"candidate_source_layer_id\":20,\"index_n_heads\":32,\"index_head_dim\":128,\"index_topk\":512,"
     "\"o_groups\":8,\"o_lora_rank\":1024,\"moe_intermediate_size\":2304,\"n_routed_experts\":384,\"n_shared_experts\":"
     "1,"
     "\"num_experts_per_tok\":6,\"topk_method\":\"noaux_tc\",\"hc_mult\":4,\"engram_layer_ids\":[1,14],"
     "\"engram_num_embeddings\":[384006168,384016682],\"engram_max_ngram_size\":4,\"engram_n_heads\":8,"
     "\"engram_head_dim\":256}}",
     {ENDS(129280, 5120),
      HEAD(129280, 5120),
      NORMS(2, 5120, 40),
      EACH("wq_a", 1280, 5120, 40),
      EACH("q_norm", 1, 1280, 40),
      EACH("wq_b", 32768, 1280, 40),
      EACH("wkv", 512, 5120, 40),
      EACH("kv_norm", 1, 512, 40),
      EACH("wo_a", 8 * 1024, 32768 / 8, 40),
      EACH("wo_b", 5120, 8 * 1024, 40),
      EACH("attn_sink", 1, 64, 40),
      EACH("compressor.wkv, wgate (2)", 2 * 512, 5120, 3),
      EACH("compressor.wkv (1)", 512, 5120, 1),
      EACH("compressor.norm", 1, 512, 4),
      EACH("indexer.wq_b", 32 * 128, 1280, 8),
      EACH("indexer.weights_proj", 32, 5120, 8),
      EACH("indexer.wk", 128, 512, 4),
      EACH("indexer.k_norm", 1, 128, 4),
      EACH("hc_fn", 24, 4 * 5120, 80),
      EACH("hc_base, hc_scale", 1, 24 + 3, 80),
      EXPERTS(5120, 2304, 40, 384, 6),
      GATED(5120, 2304, 40),
      EACH("gate", 384, 5120, 40),
      EACH("gate.bias", 1, 384, 40),
      HELD("gate.bias_vl", 1, 384, 40),
      HELD("engram.embed", 384006168 + 384016682, 256, 1),
      EACH("engram.wkv", 5 * 5120, 3 * 8 * 256, 2),
      EACH("engram.q_weight, k_weight", 2 * 4, 5120, 2)},
     3 * (512 + 128) / 2 + 512 + 128,
     36 * 512,
     4 * 128 * 512,
     3 * 2 * 2 * 512},
};

static void test_tensors(void **state)
{
    (void)state;
    families_tensors(FLASH, 1);
}

static void test_caches(void **state)
{
    (void)state;
    families_caches(FLASH, 1);
}

/* Sizes of the small model: width, heads, their width and its rotated part; window, chosen entries, heads of the
 * indexer and their width; streams; rows of a token in a table and their width; candidates. */
enum { D = 10, N = 4, H = 6, W = 4, CHOSEN = 3, NI = 3, HI = 4, A = 3, COLUMNS = 2 * 2, WIDE = 5, LEFT = 2 * 4 };

#define SMALL(lists)                                                                                                   \
    "{\"model_type\":\"deepseek_v41\",\"hidden_size\":10,\"num_hidden_layers\":5,\"num_attention_heads\":4,"           \
    "\"head_dim\":6,\"qk_rope_head_dim\":2,\"q_lora_rank\":7,\"o_groups\":2,\"o_lora_rank\":5,\"sliding_window\":4,"   \
    "\"vocab_size\":18,\"index_n_heads\":3,\"index_head_dim\":4,\"index_topk\":3,\"hc_mult\":3,"                       \
    "\"hc_sinkhorn_iters\":5,\"n_routed_experts\":6,\"num_experts_per_tok\":2,\"moe_intermediate_size\":8,"            \
    "\"candidate_topk_blocks\":2,\"candidate_block_size\":4,\"engram_max_ngram_size\":3,\"engram_n_heads\":2,"         \
    "\"engram_head_dim\":5,\"topk_method\":\"noaux_tc\"" lists "}"

static const char LISTS[] = SMALL(",\"compress_ratios\":[0,2,2,1,1],\"kv_source_layer_ids\":[1,3],"
                                  "\"index_source_layer_ids\":[1,2,3,4],\"candidate_source_layer_id\":3,"
                                  "\"engram_layer_ids\":[2],\"engram_num_embeddings\":[1001]");

/* An operator's flops, elementwise flops, weights, cache and activations, in bytes of two. */
struct sums {
    double flops, vector, weights, cache, activations;
};

static double number(const struct sym *x)
{
    double v = -1;
    assert_true(sym_constant(x, &v));
    return v;
}

/* Of the i-th kind, -1 of the model; found only there. */
static void same(const struct cost_ops *ops, int kind, const char *name, struct sums want)
{
    int met = 0;
    for (size_t i = 0; i < ops->n; i++) {
        const struct cost_op *op = &ops->op[i];
        if (strcmp(op->name, name) != 0 || op->kind_index != kind) continue;
        met++;
        const double got[] = {number(op->flops), number(op->vector_flops), number(op->weight_bytes),
                              number(op->kv_bytes), number(op->activation_bytes)};
        const double all[] = {want.flops, want.vector, want.weights, want.cache, want.activations};
        for (size_t k = 0; k < 5; k++)
            if (fabs(got[k] - all[k]) > 1e-9 * (all[k] + 1))
                fail_msg("%s of kind %d: number %zu is %.3f, not %.3f", name, kind, k, got[k], all[k]);
    }
    if (met != 1) fail_msg("%s of kind %d: met %d times", name, kind, met);
}

static void absent(const struct cost_ops *ops, int kind, const char *name)
{
    for (size_t i = 0; i < ops->n; i++)
        if (ops->op[i].kind_index == kind && strcmp(ops->op[i].name, name) == 0) fail_msg("%s of kind %d", name, kind);
}

static double least(double a, double b) { return a < b ? a : b; }

/* Three sequences of 29 tokens, one of them new in each. */
static void test_operators(void **state)
{
    static const struct cost_conventions PLAIN = {0};
    static const double B = 3, S = 29;
    struct arena *a = arena_open();
    struct sym_ctx *c = sym_open(a);
    struct cost_ops ops;
    struct err e = {.code = ERR_OK};
    const struct subject s = {.model = "small", .json = LISTS};
    const struct model m = families_read(a, &s);
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_pass pass = {
        .name = "decode", .B = sym_int(c, 3), .T = sym_int(c, 1), .S = sym_int(c, 29), .absorbed = true};
    (void)state;
    assert_int_equal(m.kinds_n, 5);
    assert_int_equal(cost_build(a, c, &y, &m, &PLAIN, &pass, 1, &ops, &e), ERR_OK);
    assert_int_equal(cost_bind(c, &y, &m, 1, &ops, &e), ERR_OK);
    for (int kind = 0; kind < 5; kind++) {
        const double ratio = kind == 0 ? 0 : kind < 3 ? 2 : 1;
        const double entries = ratio > 0 ? least(CHOSEN, S / ratio) : 0, keys = W + entries;
        same(&ops, kind, "attention",
             (struct sums){.flops = B * 2 * N * 2 * H * keys,
                           .vector = B * 5 * N * keys,
                           .weights = 2 * N,
                           .cache = 2 * B * keys * H,
                           .activations = 2 * B * N * 2 * H});
        absent(&ops, kind, "q_norm");
        if (ratio == 0) continue;
        const double scored = kind == 4 ? least(LEFT, S) : S / ratio; /* what the indexer before left */
        same(&ops, kind, "index",
             (struct sums){.flops = B * 2 * NI * HI * scored,
                           .vector = B * (3 * NI + 1) * scored,
                           .cache = 2 * B * scored * HI,
                           .activations = 2 * B * (NI * HI + NI)});
    }
    /* of two tokens: products and gates, a softmax of gates (5), a product and a sum; the norm of half an entry */
    same(
        &ops, 1, "pool",
        (struct sums){.vector = B * (7 * H + 4 * H / 2.0), .weights = 2 * H, .activations = 2 * B * (2 * H + H / 2.0)});
    same(&ops, 1, "pool_proj",
         (struct sums){.flops = B * 2 * D * 2 * H, .weights = 2 * D * 2 * H, .activations = 2 * B * (D + 2 * H)});
    same(&ops, 3, "pool", (struct sums){.vector = B * 4 * H, .weights = 2 * H, .activations = 2 * B * 2 * H});
    same(&ops, 3, "pool_proj",
         (struct sums){.flops = B * 2 * D * H, .weights = 2 * D * H, .activations = 2 * B * (D + H)});
    same(&ops, 1, "index_k_proj",
         (struct sums){.flops = B / 2 * 2 * H * HI, .weights = 2 * H * HI, .activations = 2 * B / 2 * (H + HI)});
    for (int kind = 2; kind < 5; kind += 2) {
        absent(&ops, kind, "pool");
        absent(&ops, kind, "pool_write");
        absent(&ops, kind, "index_k_proj");
        absent(&ops, kind, "index_write");
    }
    same(&ops, 2, "engram_rows",
         (struct sums){.weights = 2 * B * COLUMNS * WIDE, .activations = 2 * B * COLUMNS * WIDE});
    same(&ops, 2, "engram_proj",
         (struct sums){.flops = B * 2 * COLUMNS * WIDE * (A + 1) * D,
                       .weights = 2 * COLUMNS * WIDE * (A + 1) * D,
                       .activations = 2 * B * (COLUMNS * WIDE + (A + 1) * D)});
    same(&ops, 2, "engram_add",
         (struct sums){.vector = B * 9 * A * D, .weights = 2 * 2 * A * D, .activations = 2 * B * (3 * A + 1) * D});
    absent(&ops, 3, "engram_rows");
    absent(&ops, -1, "streams_close_proj");
    same(&ops, -1, "streams_close", (struct sums){.vector = B * 2 * A * D, .activations = 2 * B * (A * D + A + D)});
    arena_close(a);
}

/* On two ranks each has half of a table, rounded up, and the rows of a token are put together. */
static void test_ranks(void **state)
{
    static const struct cost_conventions PLAIN = {0};
    struct arena *a = arena_open();
    struct sym_ctx *c = sym_open(a);
    struct cost_ops ops;
    struct err e = {.code = ERR_OK};
    const struct subject s = {.model = "small", .json = LISTS};
    const struct model m = families_read(a, &s);
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_pass pass = {
        .name = "decode", .B = sym_int(c, 3), .T = sym_int(c, 1), .S = sym_int(c, 29), .absorbed = true};
    int met = 0;
    (void)state;
    assert_int_equal(cost_build(a, c, &y, &m, &PLAIN, &pass, 2, &ops, &e), ERR_OK);
    assert_int_equal(cost_bind(c, &y, &m, 2, &ops, &e), ERR_OK);
    for (size_t i = 0; i < ops.n; i++) {
        const struct cost_op *op = &ops.op[i];
        if (strcmp(op->name, "engram_rows") == 0) {
            assert_true(number(op->tensor[0].elems) == 501 * WIDE);
            assert_true(number(op->weight_bytes) == 3 * COLUMNS * WIDE);
            met++;
        }
        met += strcmp(op->name, "engram_all_reduce") == 0;
    }
    assert_int_equal(met, 2);
    arena_close(a);
}

static void test_refused(void **state)
{
    static const struct refused CASES[] = {
        {SMALL(",\"kv_source_layer_ids\":[1,3],\"index_source_layer_ids\":[1,3]"), "compress_ratios is missing"},
        {SMALL(",\"compress_ratios\":[0,2,2,1],\"kv_source_layer_ids\":[1,3],\"index_source_layer_ids\":[1,3]"),
         "a list of one number per layer"},
        {SMALL(",\"compress_ratios\":[0,2,2,1,1],\"kv_source_layer_ids\":[2,3],\"index_source_layer_ids\":[2,3]"),
         "layer 1 has no source of entries"},
        {SMALL(",\"compress_ratios\":[0,2,2,1,1],\"kv_source_layer_ids\":[1,3],\"index_source_layer_ids\":[1,4]"),
         "layer 3 has no source of chosen ones"},
        {SMALL(",\"compress_ratios\":[0,2,2,1,1],\"kv_source_layer_ids\":[1],\"index_source_layer_ids\":[1]"),
         "layer 3 has entries of 1 tokens, and their source of 2"},
        {SMALL(",\"compress_ratios\":[0,2,2,1,1],\"kv_source_layer_ids\":[0,1],\"index_source_layer_ids\":[1]"),
         "layer 0 is a source and has a compress_ratio of 0"},
        {SMALL(",\"compress_ratios\":[0,0,0,0,0],\"kv_source_layer_ids\":[],\"index_source_layer_ids\":[],"
               "\"engram_layer_ids\":[1,2],\"engram_num_embeddings\":[9]"),
         "a number for each of engram_layer_ids"},
    };
    (void)state;
    families_refused(CASES, sizeof CASES / sizeof CASES[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tensors), cmocka_unit_test(test_caches),
                                       cmocka_unit_test(test_operators), cmocka_unit_test(test_ranks),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests_name("families_shared", tests, NULL, NULL);
}
