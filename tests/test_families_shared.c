/* DeepSeek-V4.1 and Qwen4: attention to entries that layers share, or to keys chosen by means of several; tables of
 * n-grams; streams read by products of low rank. Tensors as in transformers' modular_deepseek_v41.py and
 * modular_qwen4_exp.py; operators by what each does for a token. */
#include "tests/families.h"

#include <math.h>
#include <string.h>

#include "calc/cost/layout.h"

#define QWEN4                                                                                                          \
    "{\"model_type\":\"qwen4_exp\",\"text_config\":{\"model_type\":\"qwen4_exp_text\",\"vocab_size\":101,"             \
    "\"hidden_size\":24,\"num_hidden_layers\":4,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":6,"   \
    "\"linear_conv_kernel_dim\":4,\"linear_key_head_dim\":5,\"linear_value_head_dim\":5,"                              \
    "\"linear_num_key_heads\":2,\"linear_num_value_heads\":4,\"moe_intermediate_size\":7,"                             \
    "\"shared_expert_intermediate_size\":9,\"num_experts\":6,\"num_experts_per_tok\":2,\"layer_types\":["              \
    "\"linear_attention\",\"linear_attention\",\"linear_attention\",\"hybrid_indexed\"],\"hc_count\":3,"               \
    "\"hc_lowrank\":5,\"ple_layer_ids\":[4,2],\"ple_embed_dim\":16,\"ngram_size\":3,\"heads_per_ngram\":2,"            \
    "\"ngram_vocab_size_base\":23,\"make_ngram_vocab_size_divisible_by\":7,\"indexer_n_heads\":3,"                     \
    "\"indexer_kv_heads\":1,\"indexer_head_dim\":8,\"indexer_budget\":12"
#define QWEN4_RATIO QWEN4 ",\"indexer_compress_ratio\":4}}"

/* Two layers of a window, groups of entries of two tokens, one of single tokens; some of those choose anew. */
static const struct subject SUBJECTS[] = {
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
    {"qwen4", /* sizes of no published model; tables of 23 + 29 + 31 + 37 and 41 + 43 + 47 + 53 rows, in parts of 7 */
     QWEN4_RATIO,
     {EACH("embed_tokens", 101, 24, 1),
      HEAD(101, 24),
      EACH("hc_norm", 1, 3 * 24, 8),
      EACH("input_mix_weight_down, _up", 2 * 5, 3 * 24, 8),
      EACH("block_inject_weight", 3, 3 * 24, 8),
      EACH("hyper_connection_mixer norm, down, up", 1 + 2 * 5, 3 * 24, 1),
      EACH("in_proj_qkv", 2 * 2 * 5 + 4 * 5, 24, 3),
      EACH("in_proj_z, b, a", 4 * 5 + 4 + 4, 24, 3),
      EACH("conv1d", 2 * 2 * 5 + 4 * 5, 4, 3),
      EACH("A_log, dt_bias", 2, 4, 3),
      EACH("norm", 1, 5, 3),
      EACH("out_proj", 24, 4 * 5, 3),
      EACH("q_proj", 2 * 4 * 6, 24, 1),
      EACH("k_proj, v_proj", 2 * 2 * 6, 24, 1),
      EACH("o_proj", 24, 4 * 6, 1),
      EACH("q_norm, k_norm", 2, 6, 1),
      EACH("index_qk_proj", (3 + 1) * 8, 24, 1),
      EACH("q_layernorm, k_layernorm", 2, 8, 1),
      EXPERTS(24, 7, 4, 6, 2),
      GATED(24, 9, 4),
      EACH("gate", 6, 24, 4),
      EACH("shared_expert_gate", 1, 24, 4),
      HELD("ngram_embedding", 126 + 189, 4, 1),
      EACH("key_proj", 3 * 24, 16, 2),
      EACH("value_proj", 24, 16, 2),
      EACH("norm_key, norm_query, norm_conv", 3, 3 * 24, 2),
      EACH("ple conv1d", 3 * 24, 4, 2)},
     2 * 2 * 6 + 8 / 4,
     0,
     3 * 3 * (2 * 2 * 5 + 4 * 5) + 2 * 3 * 3 * 3 * 24 + 4 * 8,
     3 * 4 * 5 * 5},
    {"jetmoe-8b", /* published: 8B, 2.2B active */
     "{\"model_type\":\"jetmoe\",\"hidden_size\":2048,\"num_hidden_layers\":24,\"num_key_value_heads\":16,"
     "\"kv_channels\":128,\"intermediate_size\":5632,\"num_local_experts\":8,\"num_experts_per_tok\":2,"
     "\"vocab_size\":32000}",
     {ENDS(32000, 2048),
      NORMS(2, 2048, 24),
      EXPERTS(2048, 5632, 24, 8, 2),
      EACH("mlp.router, mlp.bias", 8 + 1, 2048, 24),
      {"experts.input_linear", 16 * 128, 2048, 24 * 8, 24 * 2},
      {"experts.output_linear", 2048, 16 * 128, 24 * 8, 24 * 2},
      EACH("experts.router, experts.bias", 8 + 1, 2048, 24),
      EACH("kv_proj", 2 * 16 * 128, 2048, 24)},
     24 * 2 * 16 * 128,
     0,
     0,
     0},
};

static void test_tensors(void **state)
{
    (void)state;
    families_tensors(SUBJECTS, sizeof SUBJECTS / sizeof SUBJECTS[0]);
}

static void test_caches(void **state)
{
    (void)state;
    families_caches(SUBJECTS, sizeof SUBJECTS / sizeof SUBJECTS[0]);
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

#define TABLE(rows)                                                                                                    \
    SMALL(",\"compress_ratios\":[0,2,2,1,1],\"kv_source_layer_ids\":[1,3],\"index_source_layer_ids\":[1,2,3,4],"       \
          "\"candidate_source_layer_id\":3,\"engram_layer_ids\":[2],\"engram_num_embeddings\":[" rows "]")
static const char LISTS[] = TABLE("1001");

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

/* Operators of a model on so many ranks: three sequences of 29 tokens, one of them new in each. */
static struct model decode(struct arena *a, const struct subject *s, int64_t tp, struct cost_ops *ops)
{
    static const struct cost_conventions PLAIN = {0};
    struct sym_ctx *c = sym_open(a);
    struct err e = {.code = ERR_OK};
    const struct model m = families_read(a, s);
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_pass pass = {
        .name = "decode", .B = sym_int(c, 3), .T = sym_int(c, 1), .S = sym_int(c, 29), .absorbed = true};
    assert_int_equal(cost_build(a, c, &y, &m, &PLAIN, &pass, tp, ops, &e), ERR_OK);
    assert_int_equal(cost_bind(c, &y, &m, tp, ops, &e), ERR_OK);
    return m;
}

static double least(double a, double b) { return a < b ? a : b; }

static void test_operators(void **state)
{
    static const double B = 3, S = 29;
    struct arena *a = arena_open();
    struct cost_ops ops;
    const struct subject s = {.model = "small", .json = LISTS};
    const struct model m = decode(a, &s, 1, &ops);
    (void)state;
    assert_int_equal(m.kinds_n, 5);
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

/* Qwen4. */
static void test_low_rank_streams(void **state)
{
    enum { D4 = 24, A4 = 3, ALL = A4 * D4, RANK = 5, NI4 = 3, HI4 = 8, EACH4 = 4, E4 = 16, TAPS = 4, KEPT = 3 * 3 };
    static const double B = 3, S = 29;
    static const char *const BLOCK[] = {"mixer_streams", "mlp_streams"};
    struct arena *a = arena_open();
    struct cost_ops ops;
    const struct subject s = {.model = "small", .json = QWEN4_RATIO};
    const struct model m = decode(a, &s, 1, &ops);
    (void)state;
    assert_int_equal(m.kinds_n, 3); /* the delta rule without a table and with one, attention with one */
    for (int kind = -1; kind < 3; kind++)
        for (int i = 0; i < (kind < 0 ? 1 : 2); i++) {
            const char *of = kind < 0 ? "streams_close" : BLOCK[i];
            same(&ops, kind, arena_printf(a, "%s_norm", of),
                 (struct sums){.vector = B * 4 * ALL, .weights = 2 * ALL, .activations = 2 * B * 2 * ALL});
            same(&ops, kind, arena_printf(a, "%s_down", of),
                 (struct sums){
                     .flops = B * 2 * ALL * RANK, .weights = 2 * ALL * RANK, .activations = 2 * B * (ALL + RANK)});
            same(&ops, kind, arena_printf(a, "%s_act", of),
                 (struct sums){.vector = B * 5 * RANK, .activations = 2 * B * 2 * RANK});
            same(&ops, kind, arena_printf(a, "%s_up", of),
                 (struct sums){
                     .flops = B * 2 * ALL * RANK, .weights = 2 * ALL * RANK, .activations = 2 * B * (ALL + RANK)});
            same(&ops, kind, arena_printf(a, "%s_read", of),
                 (struct sums){.vector = B * (6 * ALL + D4), .activations = 2 * B * (2 * ALL + D4)});
            if (kind < 0) continue;
            same(&ops, kind, arena_printf(a, "%s_inject", of),
                 (struct sums){.flops = B * 2 * ALL * A4, .weights = 2 * ALL * A4, .activations = 2 * B * (ALL + A4)});
            same(&ops, kind, arena_printf(a, "%s_weights", of),
                 (struct sums){.vector = B * 6 * A4, .activations = 2 * B * 2 * A4});
            same(&ops, kind, arena_printf(a, "%s_write", of),
                 (struct sums){.vector = B * 2 * ALL, .activations = 2 * B * (2 * ALL + D4 + A4)});
        }
    absent(&ops, -1, "final_norm");
    absent(&ops, 0, "engram_rows");
    for (int kind = 1; kind < 3; kind++) {
        same(&ops, kind, "engram_proj",
             (struct sums){.flops = B * 2 * E4 * (ALL + D4),
                           .weights = 2 * E4 * (ALL + D4),
                           .activations = 2 * B * (E4 + ALL + D4)});
        /* norms of key, stream and value 4 each, product and sum 2, gate times value 1 */
        same(&ops, kind, "engram_gate",
             (struct sums){.vector = B * (3 * 4 + 2 + 1) * ALL,
                           .weights = 2 * 3 * ALL,
                           .activations = 2 * B * (ALL + D4 + ALL + 2 * ALL)});
        same(&ops, kind, "engram_conv",
             (struct sums){
                 .vector = B * (2 * TAPS + 4) * ALL, .weights = 2 * TAPS * ALL, .activations = 2 * B * 2 * ALL});
        same(&ops, kind, "engram_add", (struct sums){.vector = B * 2 * ALL, .activations = 2 * B * 4 * ALL});
    }
    same(&ops, 2, "index_qk_proj",
         (struct sums){.flops = B * 2 * D4 * (NI4 + 1) * HI4,
                       .weights = 2 * D4 * (NI4 + 1) * HI4,
                       .activations = 2 * B * (D4 + (NI4 + 1) * HI4)});
    same(&ops, 2, "index_pool",
         (struct sums){.vector = B * (HI4 + 5 * HI4 / (double)EACH4),
                       .weights = 2 * HI4,
                       .activations = 2 * B * (HI4 + HI4 / (double)EACH4)});
    same(&ops, 2, "index",
         (struct sums){.flops = B * 2 * NI4 * HI4 * S / EACH4,
                       .vector = B * (2 * NI4 + 1) * S / EACH4,
                       .cache = 2 * B * S / EACH4 * HI4,
                       .activations = 2 * B * NI4 * HI4});
    absent(&ops, 2, "index_weights");
    for (size_t i = 0; i < ops.n; i++)
        if (strcmp(ops.op[i].name, "engram_conv") == 0) {
            assert_true(number(ops.op[i].held_bytes) == B * 2 * KEPT * ALL);
            assert_true(number(ops.op[i].state_bytes) == B * 2 * 2 * KEPT * ALL);
        }
    arena_close(a);
}

/* JetMoE: three tokens touch 8*(1 - (1 - 2/8)^3) experts' queries; each has two of them, of 16 heads. */
static void test_routed_queries(void **state)
{
    enum { DJ = 2048, KH = 16 * 128 };
    static const double B = 3, S = 29;
    const double touched = 8 * (1 - 0.75 * 0.75 * 0.75);
    const struct layout two = {.tp = 2};
    struct arena *a = arena_open();
    struct cost_ops ops;
    struct err e = {.code = ERR_OK};
    const struct model m = decode(a, &SUBJECTS[2], 1, &ops);
    (void)state;
    assert_int_equal(m.kinds->mixer.heads, 32);
    same(&ops, 0, "q_experts",
         (struct sums){
             .flops = B * 2 * 2 * DJ * KH, .weights = touched * 2 * DJ * KH, .activations = 2 * B * 2 * (DJ + KH)});
    same(&ops, 0, "o_experts",
         (struct sums){
             .flops = B * 2 * 2 * DJ * KH, .weights = touched * 2 * DJ * KH, .activations = 2 * B * 2 * (DJ + KH)});
    same(&ops, 0, "o_combine", (struct sums){.vector = B * 2 * 2 * DJ, .activations = 2 * B * 3 * DJ});
    same(&ops, 0, "o_bias", (struct sums){.vector = B * DJ, .weights = 2 * DJ, .activations = 2 * B * 2 * DJ});
    same(&ops, 0, "attention",
         (struct sums){.flops = B * 2 * 32 * 256 * S,
                       .vector = B * 5 * 32 * S,
                       .cache = 2 * B * S * 2 * KH,
                       .activations = 2 * B * 32 * 256});
    assert_int_equal(layout_check(&m, &two, &e), ERR_USAGE);
    assert_non_null(strstr(e.text, "queries made by experts"));
    arena_close(a);
}

/* On two ranks each has half of a table, rounded up, and the rows of a token are put together. */
static void test_ranks(void **state)
{
    struct arena *a = arena_open();
    struct cost_ops ops;
    const struct subject s = {.model = "small", .json = LISTS};
    int met = 0;
    (void)state;
    (void)decode(a, &s, 2, &ops);
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

/* Models that differ in the rows of a table alone are two. */
static void test_same(void **state)
{
    static const struct subject MORE = {.model = "more", .json = TABLE("1003")};
    const struct subject s = {.model = "small", .json = LISTS};
    struct arena *a = arena_open();
    const struct model one = families_read(a, &s), other = families_read(a, &s), more = families_read(a, &MORE);
    (void)state;
    assert_true(model_same(&one, &other));
    assert_false(model_same(&one, &more));
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
        {QWEN4 "}}", "indexer_compress_ratio is missing"},
        {QWEN4 ",\"indexer_compress_ratio\":5}}", "12 tokens in blocks of 5"},
    };
    (void)state;
    families_refused(CASES, sizeof CASES / sizeof CASES[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tensors),        cmocka_unit_test(test_caches),
                                       cmocka_unit_test(test_operators),      cmocka_unit_test(test_low_rank_streams),
                                       cmocka_unit_test(test_routed_queries), cmocka_unit_test(test_ranks),
                                       cmocka_unit_test(test_same),           cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests_name("families_shared", tests, NULL, NULL);
}
