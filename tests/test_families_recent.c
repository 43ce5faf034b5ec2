/* Families against their tensors: pairs of heads whose answers are subtracted, one cache and one memory for many
 * layers, masks made of values, experts of groups, heads behind a product, and encoder-decoders of decoders' layers.
 * Tensors as in transformers' modeling_diffllama, _doge, _chameleon, _gpt_neox_japanese, _modernbert_decoder, _t5gemma,
 * _moonshine, _switch_transformers, _longt5 and _nllb_moe, and in modeling_phi4flash and modeling_grove_moe of the
 * published models.
 */
#include "tests/families.h"

#include <math.h>
#include <string.h>

#define HALVES(width, wide, ups, layers)                                                                               \
    EACH("self_attn", 4 * (width), width, 2 * (layers)), EACH("cross_attn", 4 * (width), width, layers),               \
        EACH("norms", 2 + 3, width, layers), EACH("mlp", ((ups) + 1) * (wide), width, layers)
#define GEMMA_HALF                                                                                                     \
    "{\"hidden_size\":2304,\"num_hidden_layers\":26,\"num_attention_heads\":8,\"num_key_value_heads\":4,"              \
    "\"head_dim\":256,\"intermediate_size\":9216,\"vocab_size\":256000,\"sliding_window\":4096,"                       \
    "\"max_position_embeddings\":8192}"
#define T5(width, heads, wide, layers)                                                                                 \
    "\"d_model\":" #width ",\"num_layers\":" #layers ",\"num_decoder_layers\":" #layers ",\"num_heads\":" #heads       \
    ",\"d_kv\":64,\"d_ff\":" #wide ",\"is_encoder_decoder\":true,\"torch_dtype\":\"float16\""

static const struct subject SUBJECTS[] = {
    {"phi-4-mini-flash",
     "{\"model_type\":\"phi4flash\",\"hidden_size\":2560,\"intermediate_size\":10240,\"num_attention_heads\":40,"
     "\"num_hidden_layers\":32,\"num_key_value_heads\":20,\"mamba_d_state\":16,\"mamba_d_conv\":4,\"mamba_expand\":2,"
     "\"mamba_dt_rank\":160,\"mb_per_layer\":2,\"sliding_window\":512,\"vocab_size\":200064,"
     "\"tie_word_embeddings\":true,\"mlp_bias\":false,\"lm_head_bias\":false,\"torch_dtype\":\"bfloat16\"}",
     {EACH("embed_tokens", 200064, 2560, 1), EACH("final_layernorm", 2, 2560, 1), NORMS(4, 2560, 32),
      EACH("fc1, fc2", 3 * 10240, 2560, 32), EACH("in_proj", 2 * 5120, 2560, 9), EACH("conv1d", 4 + 1, 5120, 9),
      EACH("x_proj", 160 + 2 * 16, 5120, 9), EACH("dt_proj", 160 + 1, 5120, 9), EACH("A_log, D", 16 + 1, 5120, 9),
      EACH("out_proj", 5120, 2560, 9), EACH("gate in_proj, out_proj", 2 * 5120, 2560, 7),
      EACH("Wqkv", 2560 + 2 * 1280, 2560 + 1, 9), EACH("Wqkv of queries", 2560, 2560 + 1, 7),
      EACH("out_proj", 2560, 2560 + 1, 16), EACH("lambda_q1, _k1, _q2, _k2", 4, 64, 16), EACH("subln", 1, 128, 16)},
     2560, /* one layer makes the cache that seven more read */
     8 * 2560,
     9 * 3 * 5120,
     9 * 5120 * 16},
    {"diffllama",
     "{\"model_type\":\"diffllama\",\"hidden_size\":2048,\"intermediate_size\":8192,\"num_hidden_layers\":16,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"vocab_size\":32000}",
     {ENDS(32000, 2048), HEAD(32000, 2048), QKVO(2048, 512, 2048, 16), EACH("lambda_*", 4, 64, 16),
      GATED(2048, 8192, 16), NORMS(2, 2048, 16)},
     16 * 2 * 512,
     0,
     0,
     0},
    {"doge-320m",
     "{\"model_type\":\"doge\",\"hidden_size\":1024,\"intermediate_size\":2048,\"num_hidden_layers\":32,"
     "\"num_attention_heads\":8,\"num_key_value_heads\":4,\"vocab_size\":32768,\"keep_window_size\":2048,"
     "\"is_moe\":false,\"num_experts\":16384,\"tie_word_embeddings\":true}",
     {ENDS(32768, 1024), QKVO(1024, 512, 1024, 32), EACH("A", 1, 4, 32), EACH("dt_proj", 4, 512, 32),
      EACH("q_norm, k_norm", 2, 128, 32), EACH("input_residual, post_attention_residual", 2, 1024, 32),
      GATED(1024, 2048, 32), NORMS(2, 1024, 32)},
     32 * 2 * 512,
     0,
     0,
     0},
    {"chameleon-7b", /* text */
     "{\"model_type\":\"chameleon\",\"hidden_size\":4096,\"intermediate_size\":11008,\"num_hidden_layers\":32,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":32,\"vocab_size\":65536,\"vq_config\":{\"embed_dim\":256}}",
     {ENDS(65536, 4096), HEAD(65536, 4096), QKVO(4096, 4096, 4096, 32),
      EACH("q_norm, k_norm, weight and bias", 2 * 2 * 32, 128, 32), GATED(4096, 11008, 32), NORMS(2, 4096, 32)},
     32 * 2 * 4096,
     0,
     0,
     0},
    {"gpt-neox-japanese-2.7b",
     "{\"model_type\":\"gpt_neox_japanese\",\"hidden_size\":2560,\"intermediate_multiple_size\":4,"
     "\"num_hidden_layers\":32,\"num_attention_heads\":32,\"vocab_size\":32000}",
     {EACH("embed_in, which is embed_out", 32000, 2560, 1), EACH("final_layer_norm", 2, 2560, 1),
      EACH("query_key_value", 3 * 2560, 2560, 32), EACH("dense", 2560, 2560, 32), EACH("dense_bias", 1, 2560, 1),
      EACH("dense_h_to_4h, dense_4h_to_h", 2 * 10240, 2560, 32), NORMS(4, 2560, 32)},
     32 * 2 * 2560,
     0,
     0,
     0},
    {"ettin-decoder-150m", /* 8 full layers of 22, the first among them; no norm before the first attention */
     "{\"model_type\":\"modernbert-decoder\",\"hidden_size\":768,\"intermediate_size\":1152,\"num_hidden_layers\":22,"
     "\"num_attention_heads\":12,\"vocab_size\":50368,\"local_attention\":128,\"global_attn_every_n_layers\":3}",
     {EACH("tok_embeddings", 50368, 768, 1), EACH("embeddings.norm, final_norm", 2, 768, 1),
      EACH("lm_head.dense, norm", 768 + 1, 768, 1), EACH("decoder.bias", 1, 50368, 1), QKVO(768, 768, 768, 22),
      EACH("Wi, Wo", 3 * 1152, 768, 22), EACH("attn_norm", 1, 768, 21), EACH("mlp_norm", 1, 768, 22)},
     8 * 2 * 768,
     14 * 2 * 768,
     0,
     0},
    {"grove", /* six of sixteen experts, which are of five of eight groups in the mean */
     "{\"model_type\":\"grove_moe\",\"hidden_size\":44,\"num_hidden_layers\":3,\"num_attention_heads\":6,"
     "\"num_key_value_heads\":2,\"head_dim\":10,\"intermediate_size\":37,\"moe_intermediate_size\":16,"
     "\"num_experts\":16,\"num_experts_per_tok\":6,\"parallel_expert_intermediate_size\":5,\"vocab_size\":101}",
     {ENDS(101, 44), HEAD(101, 44), QKVO(60, 20, 44, 3), EACH("q_norm, k_norm", 2, 10, 3), EACH("gate", 16, 44, 3),
      EACH("expert_bias", 1, 16, 3), EXPERTS(44, 16, 3, 16, 6), EXPERTS(44, 5, 3, 8, 5), NORMS(2, 44, 3)},
     3 * 40,
     0,
     0,
     0},
    {"t5gemma-2b-2b",
     "{\"model_type\":\"t5gemma\",\"is_encoder_decoder\":true,\"vocab_size\":256000,\"encoder\":" GEMMA_HALF
     ",\"decoder\":" GEMMA_HALF "}",
     {EACH("embed_tokens of either", 256000, 2304, 2), EACH("norm of either", 1, 2304, 2), QKVO(2048, 1024, 2304, 52),
      EACH("cross_attn.q_proj", 2048, 2304, 26), EACH("cross_attn.k_proj, v_proj", 2048, 2304, 26),
      EACH("cross_attn.o_proj", 2304, 2048, 26), GATED(2304, 9216, 52), EACH("encoder's norms", 4, 2304, 26),
      EACH("decoder's norms", 6, 2304, 26)},
     13 * 2048,
     13 * 2048,
     0,
     0},
    {"moonshine-tiny",
     "{\"model_type\":\"moonshine\",\"is_encoder_decoder\":true,\"hidden_size\":288,\"intermediate_size\":1152,"
     "\"encoder_num_hidden_layers\":6,\"decoder_num_hidden_layers\":6,\"encoder_num_attention_heads\":8,"
     "\"decoder_num_attention_heads\":8,\"vocab_size\":32768,\"max_position_embeddings\":194}",
     {EACH("embed_tokens", 32768, 288, 1), EACH("conv1", 127, 288, 1), EACH("groupnorm", 2, 288, 1),
      EACH("conv2", 7 * 288 + 1, 576, 1), EACH("conv3", 3 * 576 + 1, 288, 1), EACH("layer_norm, norm", 2, 288, 1),
      EACH("self_attn", 4 * 288, 288, 12), EACH("encoder_attn", 4 * 288, 288, 6),
      EACH("encoder fc1, fc2", 2 * 1152, 288, 6), EACH("their biases", 1, 1152 + 288, 6),
      EACH("decoder fc1, fc2", 3 * 1152, 288, 6), EACH("their biases", 1, 2 * 1152 + 288, 6), NORMS(2 + 3, 288, 6)},
     6 * 2 * 288,
     0,
     0,
     0},
    {"switch-base-8",
     "{\"model_type\":\"switch_transformers\",\"vocab_size\":32128,\"num_experts\":8,\"num_sparse_encoder_layers\":6,"
     "\"num_sparse_decoder_layers\":6," T5(768, 12, 3072, 12) "}",
     {EACH("shared", 32128, 768, 1),
      EACH("relative_attention_bias", 32, 12, 2),
      EACH("final_layer_norm", 2, 768, 1),
      EACH("SelfAttention", 4 * 768, 768, 24),
      EACH("EncDecAttention", 4 * 768, 768, 12),
      NORMS(2 + 3, 768, 12),
      EACH("mlp", 2 * 3072, 768, 12),
      EACH("router.classifier", 8, 768, 12),
      {"experts.wi, wo", 2 * 3072, 768, 12 * 8, 12}},
     12 * 2 * 768,
     0,
     0,
     0},
    {"long-t5-local-base",
     "{\"model_type\":\"longt5\",\"vocab_size\":32128,\"encoder_attention_type\":\"local\",\"local_radius\":127,"
     "\"feed_forward_proj\":\"gated-gelu\",\"tie_word_embeddings\":false," T5(768, 12, 2048, 12) "}",
     {EACH("shared", 32128, 768, 1), HEAD(32128, 768), EACH("relative_attention_bias", 32, 12, 2),
      EACH("final_layer_norm", 2, 768, 1), HALVES(768, 2 * 2048, 2, 12)},
     12 * 2 * 768,
     0,
     0,
     0},
    {"nllb-moe", /* the second of two layers has experts, with biases */
     "{\"model_type\":\"nllb-moe\",\"vocab_size\":101,\"d_model\":44,\"encoder_layers\":4,\"decoder_layers\":4,"
     "\"encoder_attention_heads\":4,\"decoder_attention_heads\":4,\"encoder_ffn_dim\":37,\"decoder_ffn_dim\":29,"
     "\"encoder_sparse_step\":2,\"decoder_sparse_step\":2,\"num_experts\":6,\"is_encoder_decoder\":true}",
     {EACH("shared", 101, 44, 1),
      EACH("layer_norm", 4, 44, 1),
      EACH("attention", 4 * 44, 44 + 1, 4 + 8),
      NORMS(2 * 5, 44, 4),
      EACH("fc1, fc2", 2 * (37 + 29), 44, 2),
      EACH("their biases", 1, 37 + 29 + 2 * 44, 2),
      EACH("router.classifier", 6, 44, 4),
      {"experts", 2 * (37 + 29), 44, 2 * 6, 2 * 2},
      {"their biases", 1, 37 + 29 + 2 * 44, 2 * 6, 2 * 2}},
     4 * 2 * 44,
     0,
     0,
     0},
};

enum { SUBJECTS_N = sizeof SUBJECTS / sizeof SUBJECTS[0] };

static void test_tensors(void **state)
{
    (void)state;
    families_tensors(SUBJECTS, SUBJECTS_N);
}

static void test_caches(void **state)
{
    (void)state;
    families_caches(SUBJECTS, SUBJECTS_N);
}

/* Published counts. Moonshine tiny and Switch base-8: Hugging Face's num_parameters of the loaded models. GroveMoE: 33
 * B (README of inclusionAI/GroveMoE). Phi-4-mini-flash: 3.8 B, T5Gemma 2B-2B: 6 B, Ettin: 17 M to 1 B by their names.
 */
static void test_published(void **state)
{
    static const struct {
        const char *model;
        double total;
    } OF[] = {{"moonshine-tiny", 27092736},
              {"switch-base-8", 619339008},
              {"phi-4-mini-flash", 3852562944},
              {"t5gemma-2b-2b", 5596853760},
              {"ettin-decoder-150m", 149655232}};
    static const struct subject GROVE = {
        .model = "GroveMoE-Inst",
        .json =
            "{\"model_type\":\"grove_moe\",\"hidden_size\":2048,\"num_hidden_layers\":48,\"num_attention_heads\":32,"
            "\"num_key_value_heads\":4,\"head_dim\":128,\"intermediate_size\":6144,\"moe_intermediate_size\":768,"
            "\"num_experts\":128,\"num_experts_per_tok\":8,\"vocab_size\":151936}"};
    static const struct cost_conventions PLAIN = {0};
    struct arena *a = arena_open();
    struct cost_parameters p;
    struct err e = {.code = ERR_OK};
    (void)state;
    for (size_t i = 0; i < sizeof OF / sizeof OF[0]; i++)
        for (size_t k = 0; k < SUBJECTS_N; k++) {
            if (strcmp(SUBJECTS[k].model, OF[i].model) != 0) continue;
            const struct model m = families_read(a, &SUBJECTS[k]);
            assert_int_equal(cost_parameters(a, &m, &PLAIN, &p, &e), ERR_OK);
            if (p.total != OF[i].total) fail_msg("%s: %.0f, published %.0f", OF[i].model, p.total, OF[i].total);
        }
    const struct model m = families_read(a, &GROVE);
    assert_int_equal(cost_parameters(a, &m, &PLAIN, &p, &e), ERR_OK);
    /* Qwen3-30B-A3B, from which it was made, and 64 experts of 128 a layer with their routing bias */
    assert_true(p.total == 30532122624.0 + 48.0 * (64.0 * 3 * 2048 * 128 + 128));
    assert_true(p.total > 32.5e9 && p.total < 33.5e9);
    /* eight choices lie in four pairs at the least and in eight at the most: 3.19 to 3.34 billion without the
     * embedding, published 3.14 to 3.28 (arXiv 2508.07785) */
    const double group = 48.0 * 3 * 2048 * 128;
    assert_true(p.active_max - p.active_min == 4 * group);
    assert_true(p.active > p.active_min && p.active < p.active_max);

    arena_close(a);
}

/* Sizes as their makers round them, and half of the last digit: model cards of swiss-ai, inclusionAI, nvidia,
 * MiniMaxAI, tiiuae, arcee-ai, meituan-longcat, stepfun-ai (316 B of text), tencent and baidu. */
static void test_rounded(void **state)
{
    static const struct {
        const char *model;
        double published, within;
        const char *json;
    } OF[] = {
        {"apertus-70b", 70.6e9, .05e9,
         "{\"model_type\":\"apertus\",\"hidden_size\":8192,\"num_hidden_layers\":80,\"num_atte"
         "ntion_heads\":64,\"num_key_value_heads\":8,\"intermediate_size\":43008,\"vocab_size"
         "\":131072,\"hidden_act\":\"xielu\",\"tie_word_embeddings\":false,\"qk_norm\":true}"},
        {"ling-flash-2.0", 103e9, .5e9,
         "{\"model_type\":\"bailing_moe_v2\",\"hidden_size\":4096,\"num_hidden_layers\":32,\"n"
         "um_attention_heads\":32,\"num_key_value_heads\":4,\"head_dim\":128,\"intermediate_si"
         "ze\":9216,\"moe_intermediate_size\":1024,\"num_experts\":256,\"num_experts_per_tok\""
         ":8,\"num_shared_experts\":1,\"first_k_dense_replace\":1,\"vocab_size\":157184,\"tie_"
         "word_embeddings\":false,\"use_qk_norm\":true,\"use_bias\":false,\"use_qkv_bias\":fal"
         "se,\"moe_router_enable_expert_bias\":true,\"moe_shared_expert_intermediate_size\":10"
         "24}"},
        {"ling-1t", 1000e9, 5e9,
         "{\"model_type\":\"bailing_moe_v2\",\"hidden_size\":8192,\"num_hidden_layers\":80,\"n"
         "um_attention_heads\":64,\"num_key_value_heads\":8,\"head_dim\":128,\"intermediate_si"
         "ze\":18432,\"moe_intermediate_size\":2048,\"num_experts\":256,\"num_experts_per_tok"
         "\":8,\"num_shared_experts\":1,\"first_k_dense_replace\":4,\"vocab_size\":157184,\"ti"
         "e_word_embeddings\":false,\"use_qk_norm\":true,\"use_bias\":false,\"use_qkv_bias\":f"
         "alse,\"moe_router_enable_expert_bias\":true,\"moe_shared_expert_intermediate_size\":"
         "2048}"},
        {"nemotron-h-8b", 8.1e9, .05e9,
         "{\"model_type\":\"nemotron_h\",\"hidden_size\":4096,\"num_hidden_layers\":52,\"num_a"
         "ttention_heads\":32,\"num_key_value_heads\":8,\"head_dim\":128,\"intermediate_size\""
         ":21504,\"vocab_size\":131072,\"hybrid_override_pattern\":\"M-M-M-M*-M-M-M-M-M*-M-M-M"
         "-M-M*-M-M-M-M-M*-M-M-M-M-M-\",\"mamba_num_heads\":128,\"mamba_head_dim\":64,\"n_grou"
         "ps\":8,\"ssm_state_size\":128,\"conv_kernel\":4,\"chunk_size\":128,\"expand\":2,\"ti"
         "e_word_embeddings\":false,\"use_conv_bias\":true,\"use_bias\":false}"},
        {"minimax-m2", 229e9, .5e9,
         "{\"model_type\":\"minimax_m2\",\"hidden_size\":3072,\"num_hidden_layers\":62,\"num_a"
         "ttention_heads\":48,\"num_key_value_heads\":8,\"head_dim\":128,\"intermediate_size\""
         ":1536,\"num_local_experts\":256,\"num_experts_per_tok\":8,\"vocab_size\":200064,\"ti"
         "e_word_embeddings\":false,\"use_qk_norm\":true,\"use_routing_bias\":true,\"qk_norm_t"
         "ype\":\"per_layer\"}"},
        {"falcon-h1-34b", 33.6e9, .05e9,
         "{\"model_type\":\"falcon_h1\",\"hidden_size\":5120,\"num_hidden_layers\":72,\"num_at"
         "tention_heads\":20,\"num_key_value_heads\":4,\"head_dim\":128,\"intermediate_size\":"
         "21504,\"vocab_size\":261120,\"mamba_d_ssm\":4096,\"mamba_n_heads\":32,\"mamba_d_head"
         "\":128,\"mamba_n_groups\":2,\"mamba_d_state\":256,\"mamba_d_conv\":4,\"mamba_chunk_s"
         "ize\":128,\"mamba_rms_norm\":false,\"mamba_proj_bias\":false,\"projectors_bias\":fal"
         "se,\"attention_bias\":false,\"mlp_bias\":false,\"tie_word_embeddings\":false}"},
        {"afm-4.5b", 4.62e9, .005e9,
         "{\"model_type\":\"arcee\",\"hidden_size\":2560,\"num_hidden_layers\":36,\"num_attent"
         "ion_heads\":20,\"num_key_value_heads\":4,\"head_dim\":128,\"intermediate_size\":1843"
         "2,\"vocab_size\":128000,\"tie_word_embeddings\":false,\"attention_bias\":false,\"mlp"
         "_bias\":false}"},
        {"longcat-flash", 560e9, 5e9,
         "{\"model_type\":\"longcat_flash\",\"hidden_size\":6144,\"num_layers\":28,\"num_atten"
         "tion_heads\":64,\"ffn_hidden_size\":12288,\"expert_ffn_hidden_size\":2048,\"n_routed"
         "_experts\":512,\"moe_topk\":12,\"zero_expert_num\":256,\"zero_expert_type\":\"identi"
         "ty\",\"q_lora_rank\":1536,\"kv_lora_rank\":512,\"qk_nope_head_dim\":128,\"qk_rope_he"
         "ad_dim\":64,\"v_head_dim\":128,\"vocab_size\":131072,\"tie_word_embeddings\":false,"
         "\"attention_bias\":false,\"router_bias\":false}"},
        {"step3", 316e9, .5e9,
         "{\"model_type\":\"step3_text\",\"hidden_size\":7168,\"num_hidden_layers\":61,\"num_a"
         "ttention_heads\":64,\"num_attention_groups\":1,\"head_dim\":256,\"share_q_dim\":2048"
         ",\"intermediate_size\":18432,\"moe_intermediate_size\":5120,\"share_expert_dim\":512"
         "0,\"moe_num_experts\":48,\"moe_top_k\":3,\"vocab_size\":128815,\"moe_layers_enum\":"
         "\"4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,3"
         "3,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59\",\""
         "tie_word_embeddings\":false}"},
        {"hunyuan-0.5b", 539e6, .5e6,
         "{\"model_type\":\"hunyuan_v1_dense\",\"hidden_size\":1024,\"num_hidden_layers\":24,"
         "\"num_attention_heads\":16,\"num_key_value_heads\":8,\"head_dim\":128,\"intermediate"
         "_size\":3584,\"vocab_size\":120818,\"tie_word_embeddings\":true,\"use_qk_norm\":true"
         ",\"attention_bias\":false}"},
        {"ernie-4.5-300b-a47b", 300e9, 5e9,
         "{\"model_type\":\"ernie4_5_moe\",\"hidden_size\":8192,\"num_hidden_layers\":54,\"num"
         "_attention_heads\":64,\"num_key_value_heads\":8,\"intermediate_size\":28672,\"moe_in"
         "termediate_size\":3584,\"moe_num_experts\":64,\"moe_k\":8,\"moe_num_shared_experts\""
         ":0,\"moe_layer_start_index\":3,\"moe_layer_end_index\":53,\"moe_layer_interval\":1,"
         "\"vocab_size\":103424,\"tie_word_embeddings\":false,\"use_bias\":false}"},
    };
    static const struct cost_conventions PLAIN = {0};
    struct arena *a = arena_open();
    struct cost_parameters p;
    struct err e = {.code = ERR_OK};
    (void)state;
    for (size_t i = 0; i < sizeof OF / sizeof OF[0]; i++) {
        const struct subject s = {.model = OF[i].model, .json = OF[i].json};
        const struct model m = families_read(a, &s);
        assert_int_equal(cost_parameters(a, &m, &PLAIN, &p, &e), ERR_OK);
        if (!(fabs(p.total - OF[i].published) <= OF[i].within))
            fail_msg("%s: %.0f, published as %g", OF[i].model, p.total, OF[i].published);
        assert_int_equal(p.active_min < p.active_max, strcmp(OF[i].model, "longcat-flash") == 0);
        if (!(p.active_min < p.active_max)) continue;
        /* none to 12 experts of 28 layers: published 18.6 to 31.3 billion without the embedding (arXiv 2509.01322) */
        const double table = 131072.0 * 6144, expert = 28.0 * 3 * 6144 * 2048;
        assert_true(p.active_max - p.active_min == 12 * expert);
        assert_true(fabs(p.active_min - table - 18.6e9) < .1e9 && fabs(p.active_max - table - 31.3e9) < .1e9);
    }
    arena_close(a);
}

static double number(const struct sym *e)
{
    double v = 0;
    assert_true(sym_constant(e, &v));
    return v;
}

/* Flops of one operator of a kind of layer (-1: outside), B = 1. */
static double flops_of(struct arena *a, const struct model *m, const char *name, int kind, int64_t tokens,
                       int64_t context, int64_t source)
{
    static const struct cost_conventions PLAIN = {0};
    struct sym_ctx *c = sym_open(a);
    struct cost_symbols y = cost_symbols_make(c);
    struct cost_ops ops;
    struct err e = {.code = ERR_OK};
    y.X = sym_int(c, source);
    const struct cost_pass pass = {
        .name = "pass", .B = sym_int(c, 1), .T = sym_int(c, tokens), .S = sym_int(c, context), .encodes = true};
    assert_int_equal(cost_build(a, c, &y, m, &PLAIN, &pass, 1, &ops, &e), ERR_OK);
    assert_int_equal(cost_bind(c, &y, m, 1, &ops, &e), ERR_OK);
    for (size_t i = 0; i < ops.n; i++)
        if (ops.op[i].kind_index == kind && strcmp(ops.op[i].name, name) == 0) return number(ops.op[i].flops);
    fail_msg("no operator %s", name);
    return 0;
}

/* An encoder's window is on either side of a token: 2W-1 tokens, fewer at the ends. A causal one, or one that counts
 * the token twice, is another number. */
static void test_windows_on_either_side(void **state)
{
    enum { WINDOW = 128, WIDE = 768 };
    struct arena *a = arena_open();
    const struct subject *s = NULL;
    (void)state;
    for (size_t i = 0; i < SUBJECTS_N; i++)
        if (strcmp(SUBJECTS[i].model, "long-t5-local-base") == 0) s = &SUBJECTS[i];
    assert_non_null(s);
    const struct model m = families_read(a, s);
    for (int64_t source = 60; source < 700; source += 127) {
        double pairs = 0;
        for (int64_t q = 0; q < source; q++)
            for (int64_t k = 0; k < source; k++) pairs += k - q < WINDOW && q - k < WINDOW;
        assert_true(flops_of(a, &m, "attention", 0, 1, 1, source) == 2 * pairs * 2 * WIDE);
    }
    arena_close(a);
}

/* Places of Moonshine's convolutions: of a token's 384 samples 6, 2 and 1. */
static void test_stem(void **state)
{
    enum { WIDE = 288, X = 416 };
    struct arena *a = arena_open();
    const struct subject *s = NULL;
    (void)state;
    for (size_t i = 0; i < SUBJECTS_N; i++)
        if (strcmp(SUBJECTS[i].model, "moonshine-tiny") == 0) s = &SUBJECTS[i];
    assert_non_null(s);
    const struct model m = families_read(a, s);
    double flops[3] = {0, 0, 0};
    for (int64_t sample = 0; sample < 384 * X; sample += 64) {
        const int64_t place = sample / 64;
        flops[0] += 2.0 * 127 * 1 * WIDE;
        if (place % 3 == 0) flops[1] += 2.0 * 7 * WIDE * 2 * WIDE;
        if (place % 6 == 0) flops[2] += 2.0 * 3 * 2 * WIDE * WIDE;
    }
    assert_true(flops_of(a, &m, "stem_conv", -1, 1, 1, X) == flops[0]);
    assert_true(flops_of(a, &m, "stem_conv_strided", -1, 1, 1, X) == flops[1]);
    assert_true(flops_of(a, &m, "stem_conv_last", -1, 1, 1, X) == flops[2]);
    arena_close(a);
}

/* Of a pair of heads both scores weigh both heads' values: 2*N*(H + 2H) flops a pair of tokens, not 2*N*(H + H), nor
 * twice the scores. */
static void test_differences(void **state)
{
    struct arena *a = arena_open();
    const struct model m = families_read(a, &SUBJECTS[1]);
    (void)state;
    assert_true(flops_of(a, &m, "attention", 0, 1, 100, 0) == 2.0 * 100 * 32 * (64 + 2 * 64));
    arena_close(a);
}

static void test_refused(void **state)
{
    static const struct refused CASES[] = {
        {"{\"model_type\":\"doge\",\"hidden_size\":1024,\"intermediate_size\":2048,\"num_hidden_layers\":2,"
         "\"num_attention_heads\":8,\"vocab_size\":32768,\"is_moe\":true,\"num_experts\":16384}",
         "16384 experts, but the doge family is dense"},
        {"{\"model_type\":\"diffllama\",\"hidden_size\":64,\"intermediate_size\":64,\"num_hidden_layers\":2,"
         "\"num_attention_heads\":6,\"num_key_value_heads\":3,\"head_dim\":8,\"vocab_size\":32}",
         "3 KV heads are no pairs"},
        {"{\"model_type\":\"phi4flash\",\"hidden_size\":64,\"intermediate_size\":64,\"num_hidden_layers\":8,"
         "\"num_attention_heads\":8,\"num_key_value_heads\":4,\"vocab_size\":32,\"mb_per_layer\":3}",
         "every second one Mamba"},
        {"{\"model_type\":\"phi4flash\",\"hidden_size\":64,\"intermediate_size\":64,\"num_hidden_layers\":8,"
         "\"num_attention_heads\":8,\"num_key_value_heads\":4,\"vocab_size\":32,\"sliding_window\":[null,5,null,7]}",
         "one window for all layers"},
        {"{\"model_type\":\"grove_moe\",\"hidden_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
         "\"intermediate_size\":37,\"moe_intermediate_size\":16,\"num_experts\":15,\"num_experts_per_tok\":6,"
         "\"vocab_size\":101}",
         "15 experts are no whole number of groups of 2"},
        {"{\"model_type\":\"longt5\",\"vocab_size\":99,\"encoder_attention_type\":\"transient-global\"," T5(
             768, 12, 2048, 12) "}",
         "encoder_attention_type is not \"local\""},
        {"{\"model_type\":\"t5gemma\",\"is_encoder_decoder\":true,\"encoder\":" GEMMA_HALF
         ",\"decoder\":{\"hidden_size\":1152,\"num_hidden_layers\":2,\"num_attention_heads\":8,"
         "\"intermediate_size\":64,\"vocab_size\":256000}}",
         "halves of two widths are not described"},
        {"{\"model_type\":\"led\"}", "an encoder and decoder of a kind that ridge does not describe"},
        {"{\"model_type\":\"zaya\"}", "a decoder of attention in a convolved space"},
        {"{\"model_type\":\"blt\"}", "patches of bytes"},
    };
    (void)state;
    families_refused(CASES, sizeof CASES / sizeof CASES[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_caches),
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_rounded),
        cmocka_unit_test(test_windows_on_either_side),
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_stem),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
