/* Families of latent attention with more beside it: gates, recurrent layers, indexers of pools, several streams. Tensor
 * lists: as in tests/families.h; of Kimi K3 vLLM's kimi_k3, of GLM-5.3-Flash, Hy4 and A.X K2 transformers' classes. */
#include "tests/families.h"

#include <math.h>
#include <string.h>

#define K3_LISTS                                                                                                       \
    "\"full_attn_layers\":[4,8,12,16,20,24,28,32,36,40,44,48,52,56,60,64,68,72,76,80,84,88,92,93],\"kda_layers\":["    \
    "1,2,3,5,6,7,9,10,11,13,14,15,17,18,19,21,22,23,25,26,27,29,30,31,33,34,35,37,38,39,41,42,43,45,46,47,49,50,51,"   \
    "53,54,55,57,58,59,61,62,63,65,66,67,69,70,71,73,74,75,77,78,79,81,82,83,85,86,87,89,90,91]"
#define D "\"deepseek_sparse_attention\""
#define L "\"linear_attention\""
#define LLLD L "," L "," L "," D ","
#define KDA(width, heads, each, rank, taps, layers)                                                                    \
    EACH("q_proj, k_proj, v_proj", 3 * (heads) * (each), width, layers),                                               \
        EACH("o_proj", width, (heads) * (each), layers), EACH("b_proj", heads, width, layers),                         \
        EACH("f_a_proj", rank, width, layers), EACH("f_b_proj", (heads) * (each), rank, layers),                       \
        EACH("q, k, v conv1d", 3 * (heads) * (each), taps, layers), EACH("A_log", 1, heads, layers),                   \
        EACH("dt_bias", 1, (heads) * (each), layers), EACH("o_norm", 1, each, layers)
#define INDEXER(width, q, heads, each, layers)                                                                         \
    EACH("indexer.wq_b", (heads) * (each), q, layers), EACH("indexer.wk", each, width, layers),                        \
        EACH("indexer.k_norm", 2, each, layers), EACH("indexer.weights_proj", heads, width, layers)

static const struct subject SUBJECTS[] = {
    {"kimi-k3", /* published: 2.8T, 104B active without the embedding */
     "{\"model_type\":\"kimi_k3\",\"architectures\":[\"KimiK3ForConditionalGeneration\"],\"text_config\":{"
     "\"model_type\":\"kimi_linear\",\"hidden_size\":7168,\"num_hidden_layers\":93,\"num_attention_heads\":96,"
     "\"num_key_value_heads\":96,\"kv_lora_rank\":512,\"q_lora_rank\":1536,\"qk_nope_head_dim\":128,"
     "\"qk_rope_head_dim\":64,\"v_head_dim\":128,\"mla_use_nope\":true,\"mla_use_output_gate\":true,"
     "\"intermediate_size\":33792,\"moe_intermediate_size\":3072,\"num_experts\":896,\"num_experts_per_token\":16,"
     "\"num_shared_experts\":2,\"first_k_dense_replace\":1,\"vocab_size\":163840,\"routed_expert_hidden_size\":3584,"
     "\"latent_moe_use_norm\":true,\"attn_res_block_size\":12,\"linear_attn_config\":{" K3_LISTS
     ",\"num_heads\":96,\"head_dim\":128,\"short_conv_kernel_size\":4,\"use_full_rank_gate\":true}}}",
     {ENDS(163840, 7168), HEAD(163840, 7168), NORMS(2, 7168, 93), EACH("res norms and projs", 4, 7168, 93),
      EACH("output_attn_res_norm, _proj", 2, 7168, 1), KDA(7168, 96, 128, 128, 4, 69),
      EACH("g_proj", 96 * 128, 7168, 69), LATENT(7168, 96, 1536, 512, 128, 64, 128, 24),
      EACH("mla g_proj", 96 * 128, 7168, 24), GATED(7168, 33792, 1), EXPERTS(3584, 3072, 92, 896, 16),
      EACH("routed_expert_down_proj, _up_proj", 2 * 3584, 7168, 92), EACH("routed_expert_norm", 1, 3584, 92),
      GATED(7168, 2 * 3072, 92), EACH("gate", 896, 7168, 92), EACH("e_score_correction_bias", 1, 896, 92),
      EACH("A_log beyond the heads", 1, 128 - 96, 69)},
     24 * 576,
     0,
     69 * 3 * 3 * 96 * 128,
     69 * 96 * 128 * 128},
    {"kimi-linear as transformers saves it", /* no latent space, gates of low rank, layers by words */
     "{\"model_type\":\"kimi_linear\",\"hidden_size\":36,\"num_hidden_layers\":3,\"num_attention_heads\":4,"
     "\"kv_lora_rank\":17,\"qk_nope_head_dim\":7,\"qk_rope_head_dim\":4,\"v_head_dim\":9,\"intermediate_size\":29,"
     "\"dense_ffn_hidden\":31,\"moe_intermediate_size\":13,\"num_experts\":5,\"num_experts_per_token\":2,"
     "\"num_shared_experts\":1,\"vocab_size\":101,\"linear_num_heads\":3,\"linear_head_dim\":5,"
     "\"linear_conv_kernel_dim\":4,\"attn_res_block_size\":0,\"mla_use_output_gate\":false,"
     "\"layer_types\":[" L "," L ",\"full_attention\"],\"mlp_layer_types\":[\"dense\",\"sparse\",\"sparse\"]}",
     {ENDS(101, 36), HEAD(101, 36), NORMS(2, 36, 3), KDA(36, 3, 5, 5, 4, 2), EACH("g_a_proj", 5, 36, 2),
      EACH("g_b_proj", 15, 5, 2), EACH("q_proj", 4 * 11, 36, 1), EACH("kv_a_proj_with_mqa", 21, 36, 1),
      EACH("kv_a_layernorm", 1, 17, 1), EACH("kv_b_proj", 4 * 16, 17, 1), EACH("o_proj", 36, 36, 1), GATED(36, 31, 1),
      EXPERTS(36, 13, 2, 5, 2), GATED(36, 13, 2), EACH("gate", 5, 36, 2), EACH("bias", 1, 5, 2)},
     21,
     0,
     2 * 3 * 3 * 15,
     2 * 3 * 25},
    {"deepseek-ocr", /* published: 3B with its encoders, 570M active without the embedding; no latents */
     "{\"model_type\":\"deepseek_vl_v2\",\"language_config\":{\"model_type\":\"deepseek_v2\",\"hidden_size\":1280,"
     "\"num_hidden_layers\":12,\"num_attention_heads\":10,\"num_key_value_heads\":10,\"intermediate_size\":6848,"
     "\"moe_intermediate_size\":896,\"n_routed_experts\":64,\"n_shared_experts\":2,\"num_experts_per_tok\":6,"
     "\"first_k_dense_replace\":1,\"vocab_size\":129280,\"kv_lora_rank\":null,\"q_lora_rank\":null,"
     "\"qk_nope_head_dim\":0,\"qk_rope_head_dim\":0,\"v_head_dim\":0,\"use_mla\":false}}",
     {ENDS(129280, 1280), HEAD(129280, 1280), NORMS(2, 1280, 12), QKVO(1280, 1280, 1280, 12), GATED(1280, 6848, 1),
      EXPERTS(1280, 896, 11, 64, 6), GATED(1280, 2 * 896, 11), EACH("gate", 64, 1280, 11)},
     12 * 2 * 1280,
     0,
     0,
     0},
    {"glm-5.3-flash", /* published: 320B with the multi-token layer, 18B active; indexer keys of four tokens */
     "{\"model_type\":\"glm5_next\",\"text_config\":{\"model_type\":\"glm5_next_text\",\"hidden_size\":4096,"
     "\"num_hidden_layers\":45,\"num_attention_heads\":64,\"vocab_size\":154880,\"intermediate_size\":12288,"
     "\"moe_intermediate_size\":2048,\"n_routed_experts\":288,\"n_shared_experts\":1,\"num_experts_per_tok\":8,"
     "\"kv_lora_rank\":512,\"q_lora_rank\":1536,\"qk_rope_head_dim\":0,\"qk_nope_head_dim\":256,\"v_head_dim\":256,"
     "\"index_topk\":2048,\"index_kpool\":4,\"index_n_heads\":32,\"index_head_dim\":128,\"hc_mult\":4,"
     "\"layer_types\":[" LLLD LLLD LLLD LLLD LLLD LLLD LLLD LLLD LLLD LLLD LLLD L "],"
     "\"linear_attn_config\":{\"num_heads\":64,\"head_dim\":128,\"short_conv_kernel_size\":4}}}",
     {ENDS(154880, 4096), HEAD(154880, 4096), NORMS(2, 4096, 45), KDA(4096, 64, 128, 128, 4, 34),
      EACH("g_a_proj", 128, 4096, 34), EACH("g_b_proj", 8192, 128, 34), LATENT(4096, 64, 1536, 512, 256, 0, 256, 11),
      INDEXER(4096, 1536, 32, 128, 11), EACH("index_kpool_compress_gate", 128, 4096, 11),
      EACH("index_kpool_compress_ape", 4, 128, 11), EACH("hc fn", 2 * 24, 4 * 4096, 45),
      EACH("hc base, scale", 2, 24 + 3, 45), GATED(4096, 12288, 3), EXPERTS(4096, 2048, 42, 288, 8),
      GATED(4096, 2048, 42), EACH("gate", 288, 4096, 42), EACH("e_score_correction_bias", 1, 288, 42)},
     11 * (512 + 128 / 4),
     0,
     34 * 3 * 3 * 64 * 128,
     34 * 64 * 128 * 128 + 11 * 2 * 4 * 128},
    {"ling-3.0-tiny", /* every fourth layer attends; decay and gate are whole products */
     "{\"model_type\":\"bailing_hybrid\",\"architectures\":[\"BailingMoeV3ForCausalLM\"],\"hidden_size\":1536,"
     "\"intermediate_size\":4608,\"num_hidden_layers\":24,\"num_attention_heads\":16,\"head_dim\":128,"
     "\"vocab_size\":157184,\"layer_group_size\":4,\"first_k_dense_replace\":1,\"num_experts\":128,"
     "\"num_experts_per_tok\":8,\"num_shared_experts\":1,\"moe_intermediate_size\":512,"
     "\"moe_shared_expert_intermediate_size\":512,\"moe_router_enable_expert_bias\":true,\"q_lora_rank\":256,"
     "\"kv_lora_rank\":512,\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,\"v_head_dim\":128,"
     "\"gated_attention_proj_granularity_type\":\"head_wise\",\"short_conv_kernel_size\":4,"
     "\"kda_lower_bound\":-5.0,\"no_kda_lora\":true}",
     {ENDS(157184, 1536), HEAD(157184, 1536), NORMS(2, 1536, 24),
      EACH("q_proj, k_proj, v_proj, f_proj, g_proj", 5 * 2048, 1536, 18), EACH("o_proj", 1536, 2048, 18),
      EACH("b_proj", 16, 1536, 18), EACH("q, k, v conv1d", 3 * 2048, 4, 18), EACH("A_log", 1, 16, 18),
      EACH("dt_bias", 1, 2048, 18), EACH("o_norm", 1, 128, 18), LATENT(1536, 16, 256, 512, 128, 64, 128, 6),
      EACH("mla g_proj", 16, 1536, 6), GATED(1536, 4608, 1), EXPERTS(1536, 512, 23, 128, 8), GATED(1536, 512, 23),
      EACH("gate", 128, 1536, 23), EACH("expert_bias", 1, 128, 23)},
     6 * 576,
     0,
     18 * 3 * 3 * 2048,
     18 * 16 * 128 * 128},
    {"hy4", /* sizes of the class; an indexer in the first layer, the second, and each fourth behind it */
     "{\"model_type\":\"hy_v4\",\"hidden_size\":2816,\"num_hidden_layers\":34,\"num_attention_heads\":32,"
     "\"vocab_size\":120832,\"intermediate_size\":6912,\"moe_intermediate_size\":768,\"n_routed_experts\":256,"
     "\"n_shared_experts\":1,\"num_experts_per_tok\":8,\"kv_lora_rank\":512,\"q_lora_rank\":1536,"
     "\"qk_rope_head_dim\":64,\"qk_nope_head_dim\":192,\"v_head_dim\":256}",
     {ENDS(120832, 2816), HEAD(120832, 2816), NORMS(2, 2816, 34), LATENT(2816, 32, 1536, 512, 192, 64, 256, 34),
      EACH("gate_proj of attention", 32 * 256, 2816, 34), EACH("sinks", 1, 32, 34), INDEXER(2816, 1536, 16, 128, 10),
      EACH("hc fn", 2 * 8, 4 * 2816, 34), EACH("hc base, scale", 2, 8 + 2, 34), EACH("hc_head fn", 4, 4 * 2816, 1),
      EACH("hc_head base, scale", 1, 5, 1), GATED(2816, 6912, 1), EXPERTS(2816, 768, 33, 256, 8), GATED(2816, 768, 33),
      EACH("gate", 256, 2816, 33), EACH("e_score_correction_bias", 1, 256, 33)},
     34 * 576 + 10 * 128,
     0,
     0,
     0},
    {"a.x-k2-light", /* sizes of the class: queries and gate of one product of the latent before and behind its norm */
     "{\"model_type\":\"axk2\",\"hidden_size\":2048,\"num_hidden_layers\":48,\"num_attention_heads\":32,"
     "\"vocab_size\":163840,\"intermediate_size\":5120,\"moe_intermediate_size\":512,\"n_routed_experts\":128,"
     "\"n_shared_experts\":1,\"num_experts_per_tok\":8,\"kv_lora_rank\":128,\"q_lora_rank\":384,"
     "\"qk_rope_head_dim\":32,\"qk_nope_head_dim\":64,\"v_head_dim\":64,\"first_k_dense_replace\":1}",
     {ENDS(163840, 2048), HEAD(163840, 2048), NORMS(2, 2048, 48),
      EACH("input_layernorm.mlp.fc1, fc2", 2 * 16, 2048, 48),
      EACH("post_attention_layernorm.mlp.fc1, fc2", 2 * 16, 2048, 47), EACH("q_a_proj", 384, 2048, 48),
      EACH("q_a_layernorm", 1, 384, 48), EACH("q_gate_proj", 32 * (96 + 64), 2 * 384, 48),
      EACH("kv_a_proj_with_mqa", 160, 2048, 48), EACH("kv_a_layernorm", 1, 128, 48),
      EACH("kv_b_proj", 32 * 128, 128, 48), EACH("o_proj", 2048, 2048, 48), INDEXER(2048, 384, 16, 128, 48),
      GATED(2048, 5120, 1), EXPERTS(2048, 512, 47, 128, 8), GATED(2048, 512, 47), EACH("gate", 128, 2048, 47),
      EACH("e_score_correction_bias", 1, 128, 47)},
     48 * (160 + 128),
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

#define SMALL_DSA                                                                                                      \
    ",\"hidden_size\":44,\"num_hidden_layers\":5,\"num_attention_heads\":6,\"q_lora_rank\":17,\"kv_lora_rank\":19,"    \
    "\"qk_nope_head_dim\":7,\"qk_rope_head_dim\":3,\"v_head_dim\":5,\"intermediate_size\":37,"                         \
    "\"moe_intermediate_size\":11,\"num_experts_per_tok\":2,\"n_routed_experts\":9,\"vocab_size\":101}"

static void test_refused(void **state)
{
#define KIMI                                                                                                           \
    "{\"model_type\":\"kimi_linear\",\"hidden_size\":36,\"num_hidden_layers\":2,\"num_attention_heads\":4,"            \
    "\"kv_lora_rank\":17,\"qk_nope_head_dim\":7,\"qk_rope_head_dim\":4,\"v_head_dim\":9,\"intermediate_size\":29,"     \
    "\"moe_intermediate_size\":13,\"num_experts\":5,\"num_experts_per_token\":2,\"first_k_dense_replace\":1,"          \
    "\"vocab_size\":101,\"linear_attn_config\":{\"full_attn_layers\":[2],\"kda_layers\":[1],\"num_heads\":3,"          \
    "\"head_dim\":5,\"short_conv_kernel_size\":4}"
#define V3                                                                                                             \
    "{\"model_type\":\"deepseek_v3\",\"hidden_size\":36,\"num_hidden_layers\":2,\"num_attention_heads\":4,"            \
    "\"kv_lora_rank\":17,\"q_lora_rank\":11,\"qk_nope_head_dim\":7,\"qk_rope_head_dim\":4,\"v_head_dim\":9,"           \
    "\"intermediate_size\":29,\"moe_intermediate_size\":13,\"n_routed_experts\":5,\"num_experts_per_tok\":2,"          \
    "\"first_k_dense_replace\":1,\"vocab_size\":101"
    static const struct refused CASES[] = {
        {KIMI ",\"routed_expert_hidden_size\":11}", "latent_moe_use_norm is missing"},
        {KIMI ",\"hc_mult\":4}", "hc_mult means several residual streams, which the kimi_linear family"},
        /* what would change every layer is no detail of a family that knows nothing of it */
        {V3 ",\"attn_res_block_size\":12}", "means attention over residuals, which the deepseek_v3 family"},
        {V3 ",\"mla_use_output_gate\":true}", "a gate of the latent attention"},
        {V3 ",\"gated_norm_rank\":16}", "norms with gates"},
        {V3 ",\"hc_mult\":4}", "several residual streams"},
        {V3 ",\"use_mla\":false,\"attention_bias\":true}", "attention_bias without latents is not known"},
        {"{\"model_type\":\"hy_v4\",\"index_topk_freq\":3" SMALL_DSA, "index_topk_freq without indexer_types"},
        {"{\"model_type\":\"axk2\",\"index_topk_freq\":4" SMALL_DSA, "index_topk_freq without indexer_types"},
        {"{\"model_type\":\"hy_v4\",\"index_topk_pattern\":\"FSSS\"" SMALL_DSA, "index_topk_pattern without"},
        {V3 ",\"routed_expert_hidden_size\":11}", "experts in a latent space"},
        {V3 ",\"engram_layer_ids\":[1]}", "embeddings of several tokens by layer"},
        {"{\"model_type\":\"glm_moe_dsa\",\"hidden_size\":36,\"num_hidden_layers\":4,\"num_attention_heads\":4,"
         "\"kv_lora_rank\":17,\"q_lora_rank\":11,\"qk_nope_head_dim\":7,\"qk_rope_head_dim\":4,\"v_head_dim\":9,"
         "\"intermediate_size\":29,\"moe_intermediate_size\":13,\"n_routed_experts\":5,\"num_experts_per_tok\":2,"
         "\"vocab_size\":101,\"index_topk\":3,\"index_n_heads\":2,\"index_head_dim\":5,\"index_topk_freq\":4}",
         "index_topk_freq without indexer_types is not read"},
        {"{\"model_type\":\"glm5_next\",\"hidden_size\":36,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
         "\"kv_lora_rank\":17,\"q_lora_rank\":11,\"qk_nope_head_dim\":7,\"qk_rope_head_dim\":0,\"v_head_dim\":9,"
         "\"intermediate_size\":29,\"moe_intermediate_size\":13,\"vocab_size\":101,\"index_topk\":10,\"index_kpool\":4,"
         "\"linear_num_heads\":3,\"linear_head_dim\":5,\"linear_conv_kernel_dim\":4,\"first_k_dense_replace\":1,"
         "\"layer_types\":[" L "," D "]}",
         "index_topk is 10, no multiple of index_kpool, 4"},
        {"{\"model_type\":\"hy_v4\",\"hidden_size\":36,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
         "\"kv_lora_rank\":17,\"q_lora_rank\":11,\"qk_nope_head_dim\":7,\"qk_rope_head_dim\":4,\"v_head_dim\":9,"
         "\"intermediate_size\":29,\"moe_intermediate_size\":13,\"vocab_size\":101,"
         "\"indexer_types\":[\"shared\",\"full\"]}",
         "wanted \"full\" in the first layer"},
    };
    (void)state;
    families_refused(CASES, sizeof CASES / sizeof CASES[0]);
}

/* Attention residuals: of five layers in groups of two, mixers read 1, 2, 2, 3 and 3 sources, MLPs 2, 2, 3, 3 and 4,
 * the output 4; each is normed (4 flops), scored (2) and summed (2), with a softmax of 5 flops a source. */
static void test_residuals(void **state)
{
    static const struct subject K = {
        .model = "residuals",
        .json = "{\"model_type\":\"kimi_linear\",\"hidden_size\":36,\"num_hidden_layers\":5,\"num_attention_heads\":4,"
                "\"kv_lora_rank\":17,\"qk_nope_head_dim\":7,\"qk_rope_head_dim\":4,\"v_head_dim\":9,"
                "\"intermediate_size\":29,\"moe_intermediate_size\":13,\"num_experts\":5,\"num_experts_per_token\":2,"
                "\"first_k_dense_replace\":5,\"vocab_size\":101,\"attn_res_block_size\":2,\"linear_attn_config\":{"
                "\"full_attn_layers\":[2,5],\"kda_layers\":[1,3,4],\"num_heads\":3,\"head_dim\":5,"
                "\"short_conv_kernel_size\":4}}"};
    static const struct cost_conventions PLAIN = {0};
    static const char *const NAMES[] = {"mixer_residuals", "mlp_residuals", "residuals_close"};
    const double sources[] = {1 + 2 + 2 + 3 + 3, 2 + 2 + 3 + 3 + 4, 4}, blocks[] = {5, 5, 1};
    struct arena *a = arena_open();
    struct sym_ctx *c = sym_open(a);
    struct cost_ops ops;
    struct err e = {.code = ERR_OK};
    const struct model m = families_read(a, &K);
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_pass pass = {
        .name = "decode", .B = sym_int(c, 7), .T = sym_int(c, 1), .S = sym_int(c, 19), .absorbed = true};
    (void)state;
    assert_int_equal(cost_build(a, c, &y, &m, &PLAIN, &pass, 1, &ops, &e), ERR_OK);
    assert_int_equal(cost_bind(c, &y, &m, 1, &ops, &e), ERR_OK);
    for (size_t n = 0; n < 3; n++) {
        double flops = 0, bytes = 0, weights = 0, v;
        for (size_t i = 0; i < ops.n; i++) {
            if (strcmp(ops.op[i].name, NAMES[n]) != 0) continue;
            assert_true(sym_constant(ops.op[i].vector_flops, &v));
            flops += (double)ops.op[i].count * v;
            assert_true(sym_constant(ops.op[i].activation_bytes, &v));
            bytes += (double)ops.op[i].count * v;
            assert_true(sym_constant(ops.op[i].weight_bytes, &v));
            weights += (double)ops.op[i].count * v;
        }
        assert_true(fabs(flops - 7 * sources[n] * (8 * 36 + 5)) < 1e-6);
        assert_true(fabs(bytes - 7 * 2.0 * 36 * (sources[n] + blocks[n])) < 1e-6);
        assert_true(fabs(weights - 2.0 * 2 * 36 * blocks[n]) < 1e-6);
    }
    /* two stages: of three layers and two, so that the sums of two groups and of the one at hand are sent */
    const struct cost_layout stages = {.layout = {.tp = 1, .pp = 2}};
    assert_int_equal(layout_stage_layers(5, 2, 0), 3);
    bool sent = false;
    assert_int_equal(cost_build_layout(a, c, &y, &m, &PLAIN, &pass, &stages, &ops, &e), ERR_OK);
    assert_int_equal(cost_bind_layout(c, &y, &m, &stages, &ops, &e), ERR_OK);
    for (size_t i = 0; i < ops.n; i++) {
        double v;
        if (strcmp(ops.op[i].name, "stage_send") != 0) continue;
        assert_true(sym_constant(ops.op[i].activation_bytes, &v));
        assert_true(fabs(v - 2 * 7 * 2.0 * 36 * 3) < 1e-6);
        sent = true;
    }
    assert_true(sent);
    arena_close(a);
}

/* DeepSeek-V4 Flash: model and multi-token module are what its safetensors headers hold (290,944,616,402 numbers), but
 * for the three tables from tokens to experts, of integers. The module's layer has a window, as its entry of
 * compress_ratios says, and it stores no embedding and no head. */
static void test_module(void **state)
{
    static const char CONFIG[] =
        "{\"model_type\":\"deepseek_v4\",\"hidden_size\":4096,\"num_hidden_layers\":43,\"num_attention_heads\":64,"
        "\"num_key_value_heads\":1,\"head_dim\":512,\"qk_rope_head_dim\":64,\"q_lora_rank\":1024,\"o_groups\":8,"
        "\"o_lora_rank\":1024,\"sliding_window\":128,\"vocab_size\":129280,\"n_routed_experts\":256,"
        "\"num_experts_per_tok\":6,\"n_shared_experts\":1,\"moe_intermediate_size\":2048,\"num_hash_layers\":3,"
        "\"index_n_heads\":64,\"index_head_dim\":128,\"index_topk\":512,\"hc_mult\":4,"
        "\"num_nextn_predict_layers\":1%s,\"compress_ratios\":[0,0,%s4%s]}";
    static const struct cost_conventions PLAIN = {0};
    static const struct {
        const char *further, *behind;
        int64_t modules;
    } CASES[] = {{"", ",0", 1}, {"", "", 0}, {",\"dspark_block_size\":5", ",0,0,0", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct arena *a = arena_open();
        struct err e = {.code = ERR_OK};
        struct cost_parameters whole, one;
        struct model module;
        const char *turns = "";
        for (int k = 0; k < 20; k++) turns = arena_printf(a, "%s4,128,", turns);
        const struct subject s = {.model = "V4",
                                  .json = arena_printf(a, CONFIG, CASES[i].further, turns, CASES[i].behind)};
        const struct model m = families_read(a, &s);
        assert_int_equal(m.mtp.modules, CASES[i].modules);
        assert_int_equal(m.notes == NULL, CASES[i].modules > 0);
        if (model_mtp(&m, &module)) {
            assert_int_equal(cost_parameters(a, &m, &PLAIN, &whole, &e), ERR_OK);
            assert_int_equal(cost_parameters(a, &module, &PLAIN, &one, &e), ERR_OK);
            assert_true(whole.total + one.total == 290944616402.0 - 3.0 * 129280 * 6);
            assert_int_equal(module.kinds->mixer.window_tokens, 128);
            assert_int_equal(module.kinds->mixer.pool_tokens, 0);
            const struct subject pooled = {.model = "V4", .json = arena_printf(a, CONFIG, "", turns, ",128")};
            const struct model other = families_read(a, &pooled), again = families_read(a, &s);
            assert_true(model_same(&m, &again));
            assert_false(model_same(&m, &other));
        }
        arena_close(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tensors), cmocka_unit_test(test_caches),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_residuals),
                                       cmocka_unit_test(test_module)};
    return cmocka_run_group_tests_name("families_latent", tests, NULL, NULL);
}
