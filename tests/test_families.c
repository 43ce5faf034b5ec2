/* Families against their tensors: a published model's config.json, cut down to the keys that decide sizes, beside the
 * list of tensors that the modelling code of its class makes of it, written down here by shape. The list is counted by
 * adding; the cache by what a token leaves in each layer. */
#include "tests/families.h"

#include <string.h>

static const struct subject SUBJECTS[] = {
#define M3_FREQ                                                                                                        \
    "[0,0,0,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"  \
    "1,1,"                                                                                                             \
    "1,1,1]"
    {"olmo-7b",
     "{\"model_type\":\"olmo\",\"hidden_size\":4096,\"num_hidden_layers\":32,\"num_attention_heads\":32,"
     "\"intermediate_size\":11008,\"vocab_size\":50304,\"clip_qkv\":8.0}",
     {EACH("embed_tokens", 50304, 4096, 1), HEAD(50304, 4096), QKVO(4096, 4096, 4096, 32), GATED(4096, 11008, 32)},
     32 * 2 * 4096,
     0,
     0,
     0},
    {"internlm3-8b",
     "{\"model_type\":\"internlm3\",\"hidden_size\":4096,\"num_hidden_layers\":48,\"num_attention_heads\":32,"
     "\"num_key_value_heads\":2,\"head_dim\":128,\"intermediate_size\":10240,\"vocab_size\":128512,"
     "\"qkv_bias\":false,\"bias\":false}",
     {ENDS(128512, 4096), HEAD(128512, 4096), QKVO(4096, 256, 4096, 48), GATED(4096, 10240, 48), NORMS(2, 4096, 48)},
     48 * 2 * 256,
     0,
     0,
     0},
    {"internlm3 with biases", /* of q, k and v by one key, of the rest by another */
     "{\"model_type\":\"internlm3\",\"hidden_size\":12,\"num_hidden_layers\":3,\"num_attention_heads\":6,"
     "\"num_key_value_heads\":2,\"head_dim\":5,\"intermediate_size\":7,\"vocab_size\":19,\"qkv_bias\":true,"
     "\"bias\":true,\"tie_word_embeddings\":true}",
     {ENDS(19, 12), QKVO(30, 10, 12, 3), EACH("q, k, v bias", 1, 50, 3), EACH("o_proj.bias", 1, 12, 3), GATED(12, 7, 3),
      EACH("gate and up bias", 2, 7, 3), EACH("down_proj.bias", 1, 12, 3), NORMS(2, 12, 3)},
     3 * 20,
     0,
     0,
     0},
    {"apertus-8b",
     "{\"model_type\":\"apertus\",\"hidden_size\":4096,\"num_hidden_layers\":32,\"num_attention_heads\":32,"
     "\"num_key_value_heads\":8,\"intermediate_size\":21504,\"vocab_size\":131072,\"qk_norm\":true}",
     {ENDS(131072, 4096), HEAD(131072, 4096), QKVO(4096, 1024, 4096, 32), EACH("q_norm, k_norm", 2, 128, 32),
      EACH("up_proj", 21504, 4096, 32), EACH("down_proj", 4096, 21504, 32), EACH("act_fn.alpha_p, _n", 2, 1, 32),
      NORMS(2, 4096, 32)},
     32 * 2 * 1024,
     0,
     0,
     0},
    {"persimmon-8b",
     "{\"model_type\":\"persimmon\",\"hidden_size\":4096,\"num_hidden_layers\":36,\"num_attention_heads\":64,"
     "\"intermediate_size\":16384,\"vocab_size\":262144,\"qk_layernorm\":true}",
     {EACH("embed_tokens", 262144, 4096, 1), EACH("final_layernorm", 2, 4096, 1), HEAD(262144, 4096),
      EACH("query_key_value", 3 * 4096, 4096, 36), EACH("query_key_value.bias", 3, 4096, 36),
      EACH("dense", 4096, 4096, 36), EACH("dense.bias", 1, 4096, 36), EACH("q_layernorm, k_layernorm", 4, 64, 36),
      EACH("dense_h_to_4h", 16384, 4096, 36), EACH("dense_h_to_4h.bias", 1, 16384, 36),
      EACH("dense_4h_to_h", 4096, 16384, 36), EACH("dense_4h_to_h.bias", 1, 4096, 36), NORMS(4, 4096, 36)},
     36 * 2 * 4096,
     0,
     0,
     0},
    {"jais-13b",
     "{\"model_type\":\"jais\",\"n_embd\":5120,\"n_layer\":40,\"n_head\":40,\"n_inner\":13653,\"n_positions\":2048,"
     "\"vocab_size\":84992,\"activation_function\":\"swiglu\",\"position_embedding_type\":\"alibi\"}",
     {EACH("wte", 84992, 5120, 1), EACH("ln_f", 2, 5120, 1), EACH("c_attn", 3 * 5120, 5120, 40),
      EACH("c_attn.bias", 3, 5120, 40), EACH("attn.c_proj", 5120, 5120, 40), EACH("attn.c_proj.bias", 1, 5120, 40),
      EACH("c_fc, c_fc2", 2 * 13653, 5120, 40), EACH("c_fc, c_fc2 bias", 2, 13653, 40),
      EACH("mlp.c_proj", 5120, 13653, 40), EACH("mlp.c_proj.bias", 1, 5120, 40), NORMS(4, 5120, 40)},
     40 * 2 * 5120,
     0,
     0,
     0},
    {"gpt-neo-2.7b", /* every second layer sees 256 tokens */
     "{\"model_type\":\"gpt_neo\",\"hidden_size\":2560,\"num_layers\":32,\"num_heads\":20,\"intermediate_size\":null,"
     "\"max_position_embeddings\":2048,\"vocab_size\":50257,\"window_size\":256,"
     "\"attention_types\":[[[\"global\",\"local\"],16]]}",
     {EACH("wte", 50257, 2560, 1), EACH("wpe", 2048, 2560, 1), EACH("ln_f", 2, 2560, 1), QKVO(2560, 2560, 2560, 32),
      EACH("out_proj.bias", 1, 2560, 32), EACH("c_fc", 10240, 2560, 32), EACH("c_fc.bias", 1, 10240, 32),
      EACH("c_proj", 2560, 10240, 32), EACH("c_proj.bias", 1, 2560, 32), NORMS(4, 2560, 32)},
     16 * 2 * 2560,
     16 * 2 * 2560,
     0,
     0},
    {"vaultgemma-1b",
     "{\"model_type\":\"vaultgemma\",\"hidden_size\":1152,\"num_hidden_layers\":26,\"num_attention_heads\":4,"
     "\"num_key_value_heads\":4,\"head_dim\":256,\"intermediate_size\":6912,\"vocab_size\":256000,"
     "\"sliding_window\":512}",
     {ENDS(256000, 1152), QKVO(1024, 1024, 1152, 26), GATED(1152, 6912, 26), NORMS(2, 1152, 26)},
     13 * 2048,
     13 * 2048,
     0,
     0},
    {"cwm", /* the first layer of four is the full one */
     "{\"model_type\":\"cwm\",\"hidden_size\":6144,\"num_hidden_layers\":64,\"num_attention_heads\":48,"
     "\"num_key_value_heads\":8,\"head_dim\":128,\"intermediate_size\":21504,\"vocab_size\":128256,"
     "\"sliding_window\":8192}",
     {ENDS(128256, 6144), HEAD(128256, 6144), QKVO(6144, 1024, 6144, 64), GATED(6144, 21504, 64), NORMS(2, 6144, 64)},
     16 * 2048,
     48 * 2048,
     0,
     0},
    {"nanochat-d32",
     "{\"model_type\":\"nanochat\",\"hidden_size\":2048,\"num_hidden_layers\":32,\"num_attention_heads\":16,"
     "\"num_key_value_heads\":16,\"intermediate_size\":8192,\"vocab_size\":65536}",
     {EACH("embed_tokens", 65536, 2048, 1), HEAD(65536, 2048), QKVO(2048, 2048, 2048, 32), EACH("fc1", 8192, 2048, 32),
      EACH("fc2", 2048, 8192, 32)},
     32 * 2 * 2048,
     0,
     0,
     0},
    {"bitnet-b1.58-2b",
     "{\"model_type\":\"bitnet\",\"hidden_size\":2560,\"num_hidden_layers\":30,\"num_attention_heads\":20,"
     "\"num_key_value_heads\":5,\"intermediate_size\":6912,\"vocab_size\":128256,\"tie_word_embeddings\":true}",
     {ENDS(128256, 2560), QKVO(2560, 640, 2560, 30), EACH("attn_sub_norm", 1, 2560, 30), GATED(2560, 6912, 30),
      EACH("ffn_sub_norm", 1, 6912, 30), NORMS(2, 2560, 30)},
     30 * 2 * 640,
     0,
     0,
     0},
    {"youtu-2b",
     "{\"model_type\":\"youtu\",\"hidden_size\":2048,\"num_hidden_layers\":32,\"num_attention_heads\":16,"
     "\"num_key_value_heads\":16,\"intermediate_size\":6144,\"vocab_size\":128256,\"q_lora_rank\":1536,"
     "\"kv_lora_rank\":512,\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,\"v_head_dim\":128}",
     {ENDS(128256, 2048), LATENT(2048, 16, 1536, 512, 128, 64, 128, 32), GATED(2048, 6144, 32), NORMS(2, 2048, 32)},
     32 * 576,
     0,
     0,
     0},
    {"glm-4.7-flash",
     "{\"model_type\":\"glm4_moe_lite\",\"hidden_size\":2048,\"num_hidden_layers\":47,\"num_attention_heads\":20,"
     "\"num_key_value_heads\":20,\"intermediate_size\":10240,\"vocab_size\":154880,\"q_lora_rank\":768,"
     "\"kv_lora_rank\":512,\"qk_nope_head_dim\":192,\"qk_rope_head_dim\":64,\"v_head_dim\":256,"
     "\"moe_intermediate_size\":1536,\"n_routed_experts\":64,\"n_shared_experts\":1,\"num_experts_per_tok\":4}",
     {ENDS(154880, 2048), HEAD(154880, 2048), LATENT(2048, 20, 768, 512, 192, 64, 256, 47), NORMS(2, 2048, 47),
      GATED(2048, 10240, 1), EXPERTS(2048, 1536, 46, 64, 4), GATED(2048, 1536, 46), EACH("gate", 64, 2048, 46),
      EACH("e_score_correction_bias", 1, 64, 46)},
     47 * 576,
     0,
     0,
     0},
    {"solar-open-100b",
     "{\"model_type\":\"solar_open\",\"hidden_size\":4096,\"num_hidden_layers\":48,\"num_attention_heads\":64,"
     "\"num_key_value_heads\":8,\"head_dim\":128,\"vocab_size\":196608,\"moe_intermediate_size\":1280,"
     "\"n_routed_experts\":128,\"n_shared_experts\":1,\"num_experts_per_tok\":8}",
     {ENDS(196608, 4096), HEAD(196608, 4096), QKVO(8192, 1024, 4096, 48), NORMS(2, 4096, 48),
      EXPERTS(4096, 1280, 48, 128, 8), GATED(4096, 1280, 48), EACH("gate", 128, 4096, 48),
      EACH("e_score_correction_bias", 1, 128, 48)},
     48 * 2048,
     0,
     0,
     0},
    {"mistral4", /* sizes of no published model */
     "{\"model_type\":\"mistral4\",\"hidden_size\":48,\"num_hidden_layers\":5,\"num_attention_heads\":6,"
     "\"num_key_value_heads\":6,\"intermediate_size\":29,\"vocab_size\":101,\"q_lora_rank\":23,\"kv_lora_rank\":17,"
     "\"qk_nope_head_dim\":7,\"qk_rope_head_dim\":4,\"v_head_dim\":9,\"moe_intermediate_size\":13,"
     "\"n_routed_experts\":11,\"n_shared_experts\":1,\"num_experts_per_tok\":3,\"first_k_dense_replace\":2}",
     {ENDS(101, 48), HEAD(101, 48), LATENT(48, 6, 23, 17, 7, 4, 9, 5), NORMS(2, 48, 5), GATED(48, 29, 2),
      EXPERTS(48, 13, 3, 11, 3), GATED(48, 13, 3), EACH("gate", 11, 48, 3)},
     5 * 21,
     0,
     0,
     0},
    {"trinity-mini", /* three layers of four slide; queries and their gate are two products */
     "{\"model_type\":\"afmoe\",\"hidden_size\":2048,\"num_hidden_layers\":32,\"num_attention_heads\":32,"
     "\"num_key_value_heads\":4,\"head_dim\":128,\"intermediate_size\":6144,\"vocab_size\":200192,"
     "\"moe_intermediate_size\":1024,\"num_dense_layers\":2,\"num_experts\":128,\"num_experts_per_tok\":8,"
     "\"num_shared_experts\":1,\"sliding_window\":2048,\"global_attn_every_n_layers\":4}",
     {ENDS(200192, 2048), HEAD(200192, 2048), QKVO(4096, 512, 2048, 32), EACH("gate_proj of q", 4096, 2048, 32),
      EACH("q_norm, k_norm", 2, 128, 32), NORMS(4, 2048, 32), GATED(2048, 6144, 2), EXPERTS(2048, 1024, 30, 128, 8),
      GATED(2048, 1024, 30), EACH("router.gate", 128, 2048, 30), EACH("expert_bias", 1, 128, 30)},
     8 * 1024,
     24 * 1024,
     0,
     0},
    {"k-exaone-236b",
     "{\"model_type\":\"exaone_moe\",\"hidden_size\":6144,\"num_hidden_layers\":48,\"num_attention_heads\":64,"
     "\"num_key_value_heads\":8,\"head_dim\":128,\"intermediate_size\":18432,\"vocab_size\":153600,"
     "\"moe_intermediate_size\":2048,\"num_experts\":128,\"num_experts_per_tok\":8,\"num_shared_experts\":1,"
     "\"first_k_dense_replace\":1,\"sliding_window\":128,\"sliding_window_pattern\":\"LLLG\"}",
     {ENDS(153600, 6144), HEAD(153600, 6144), QKVO(8192, 1024, 6144, 48), EACH("q_norm, k_norm", 2, 128, 48),
      NORMS(2, 6144, 48), GATED(6144, 18432, 1), EXPERTS(6144, 2048, 47, 128, 8), GATED(6144, 2048, 47),
      EACH("gate", 128, 6144, 47), EACH("e_score_correction_bias", 1, 128, 47)},
     12 * 2048,
     36 * 2048,
     0,
     0},
    {"granitemoeshared", /* sizes of no published model */
     "{\"model_type\":\"granitemoeshared\",\"hidden_size\":36,\"num_hidden_layers\":3,\"num_attention_heads\":6,"
     "\"num_key_value_heads\":2,\"intermediate_size\":11,\"shared_intermediate_size\":17,\"vocab_size\":43,"
     "\"num_local_experts\":7,\"num_experts_per_tok\":3,\"tie_word_embeddings\":true}",
     {ENDS(43, 36), QKVO(36, 12, 36, 3), EXPERTS(36, 11, 3, 7, 3), GATED(36, 17, 3), EACH("router", 7, 36, 3),
      NORMS(2, 36, 3)},
     3 * 24,
     0,
     0,
     0},
    {"flexolmo-7x7b",
     "{\"model_type\":\"flex_olmo\",\"hidden_size\":4096,\"num_hidden_layers\":32,\"num_attention_heads\":32,"
     "\"num_key_value_heads\":32,\"intermediate_size\":11008,\"vocab_size\":100352,\"num_experts\":7,"
     "\"num_experts_per_tok\":5}",
     {ENDS(100352, 4096), HEAD(100352, 4096), QKVO(4096, 4096, 4096, 32), EACH("q_norm, k_norm", 2, 4096, 32),
      EXPERTS(4096, 11008, 32, 7, 5), EACH("gate", 7, 4096, 32), NORMS(2, 4096, 32)},
     32 * 8192,
     0,
     0,
     0},
    {"grok-1",
     "{\"model_type\":\"grok-1\",\"hidden_size\":6144,\"num_hidden_layers\":64,\"num_attention_heads\":48,"
     "\"num_key_value_heads\":8,\"intermediate_size\":32768,\"vocab_size\":131072,\"num_experts\":8,"
     "\"num_experts_per_tok\":2,\"tie_word_embeddings\":true}",
     {ENDS(131072, 6144), QKVO(6144, 1024, 6144, 64), EXPERTS(6144, 32768, 64, 8, 2), EACH("gate", 8, 6144, 64),
      NORMS(4, 6144, 64)},
     64 * 2048,
     0,
     0,
     0},
    {"longcat-flash", /* two latent attentions and two MLPs a layer; of 12 choices among 768 a third are of no expert */
     "{\"model_type\":\"longcat_flash\",\"hidden_size\":6144,\"num_layers\":28,\"num_hidden_layers\":56,"
     "\"num_attention_heads\":64,\"ffn_hidden_size\":12288,\"expert_ffn_hidden_size\":2048,\"n_routed_experts\":512,"
     "\"zero_expert_num\":256,\"zero_expert_type\":\"identity\",\"moe_topk\":12,\"q_lora_rank\":1536,"
     "\"kv_lora_rank\":512,\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,\"v_head_dim\":128,\"vocab_size\":131072}",
     {ENDS(131072, 6144), HEAD(131072, 6144), LATENT(6144, 64, 1536, 512, 128, 64, 128, 2 * 28),
      GATED(6144, 12288, 2 * 28), EXPERTS(6144, 2048, 28, 512, 8), EACH("router.classifier", 768, 6144, 28),
      EACH("e_score_correction_bias", 1, 768, 28), NORMS(2, 6144, 2 * 28)},
     2 * 28 * 576,
     0,
     0,
     0},
    {"step3",
     "{\"model_type\":\"step3_text\",\"hidden_size\":7168,\"num_hidden_layers\":61,\"num_attention_heads\":64,"
     "\"num_attention_groups\":1,\"head_dim\":256,\"share_q_dim\":2048,\"intermediate_size\":18432,"
     "\"moe_intermediate_size\":5120,\"share_expert_dim\":5120,\"moe_num_experts\":48,\"moe_top_k\":3,"
     "\"moe_layers_enum\":\"4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,"
     "36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59\",\"vocab_size\":128815}",
     {ENDS(128815, 7168), HEAD(128815, 7168), EACH("q_proj", 2048, 7168, 61), EACH("inter_norm", 1, 2048, 61),
      EACH("wq", 64 * 256, 2048, 61), EACH("k_proj, v_proj", 2 * 256, 7168, 61), EACH("o_proj", 7168, 64 * 256, 61),
      GATED(7168, 18432, 5), EXPERTS(7168, 5120, 56, 48, 3), GATED(7168, 5120, 56), EACH("moe.gate", 48, 7168, 56),
      NORMS(2, 7168, 61)},
     61 * 512,
     0,
     0,
     0},
    {"step-3.5-flash", /* a full layer of 64 heads and three sliding ones of 96 */
     "{\"model_type\":\"step3p5\",\"hidden_size\":4096,\"num_hidden_layers\":12,\"num_attention_heads\":64,"
     "\"num_attention_groups\":8,\"head_dim\":128,\"intermediate_size\":11264,\"moe_intermediate_size\":1280,"
     "\"share_expert_dim\":1280,\"moe_num_experts\":288,\"moe_top_k\":8,\"use_moe_router_bias\":true,"
     "\"use_head_wise_attn_gate\":true,\"sliding_window\":512,\"num_nextn_predict_layers\":1,\"layer_types\":["
     "\"full_attention\",\"sliding_attention\",\"sliding_attention\",\"sliding_attention\",\"full_attention\","
     "\"sliding_attention\",\"sliding_attention\",\"sliding_attention\",\"full_attention\",\"sliding_attention\","
     "\"sliding_attention\",\"sliding_attention\",\"full_attention\"],\"attention_other_setting\":{\"attention_type\":"
     "\"sliding_attention\",\"num_attention_heads\":96,\"num_attention_groups\":8,\"head_dim\":128},"
     "\"moe_layers_enum\":\"3, 4,5,6,7,8,9,10,11,12\",\"vocab_size\":128896}",
     {ENDS(128896, 4096), HEAD(128896, 4096), QKVO(8192, 1024, 4096, 3), EACH("g_proj", 64, 4096, 3),
      QKVO(12288, 1024, 4096, 9), EACH("g_proj", 96, 4096, 9), EACH("q_norm, k_norm", 2, 128, 12),
      GATED(4096, 11264, 3), EXPERTS(4096, 1280, 9, 288, 8), GATED(4096, 1280, 9), EACH("moe.gate", 288, 4096, 9),
      EACH("moe.router_bias", 1, 288, 9), NORMS(2, 4096, 12)},
     3 * 2048,
     9 * 2048,
     0,
     0},
    {"hyperclovax-seed-think-14b",
     "{\"model_type\":\"hyperclovax\",\"hidden_size\":6144,\"num_hidden_layers\":38,\"num_attention_heads\":48,"
     "\"num_key_value_heads\":8,\"head_dim\":128,\"intermediate_size\":14336,\"vocab_size\":110592,"
     "\"use_post_norm\":true}",
     {ENDS(110592, 6144), HEAD(110592, 6144), QKVO(6144, 1024, 6144, 38), GATED(6144, 14336, 38), NORMS(4, 6144, 38)},
     38 * 2048,
     0,
     0,
     0},
    {"jais-2-8b",
     "{\"model_type\":\"jais2\",\"hidden_size\":3328,\"num_hidden_layers\":32,\"num_attention_heads\":26,"
     "\"num_key_value_heads\":26,\"intermediate_size\":26624,\"vocab_size\":150272}",
     {EACH("embed_tokens", 150272, 3328, 1), EACH("norm", 2, 3328, 1), HEAD(150272, 3328), QKVO(3328, 3328, 3328, 32),
      EACH("q, k, v, o bias", 4, 3328, 32), EACH("up_proj", 26624, 3328, 32), EACH("up_proj.bias", 1, 26624, 32),
      EACH("down_proj", 3328, 26624, 32), EACH("down_proj.bias", 1, 3328, 32), NORMS(4, 3328, 32)},
     32 * 2 * 3328,
     0,
     0,
     0},
    {"telechat", /* sizes of no published model */
     "{\"model_type\":\"telechat\",\"hidden_size\":48,\"n_layer\":3,\"n_head\":6,\"ffn_hidden_size\":29,"
     "\"vocab_size\":101}",
     {ENDS(101, 48), HEAD(101, 48), QKVO(48, 48, 48, 3), EACH("dense.bias", 1, 48, 3), GATED(48, 29, 3),
      EACH("down_proj.bias", 1, 48, 3), NORMS(2, 48, 3)},
     3 * 96,
     0,
     0,
     0},
    {"granite-swa", /* sizes of the class; the third layer does not rotate */
     "{\"model_type\":\"granite_swa\",\"hidden_size\":2560,\"num_hidden_layers\":6,\"num_attention_heads\":20,"
     "\"intermediate_size\":8192,\"vocab_size\":100352,\"layer_rope_theta\":[1e4,1e4,0,1e4,1e4,1e4]}",
     {ENDS(100352, 2560), QKVO(2560, 512, 2560, 6), EACH("sinks", 1, 20, 6), GATED(2560, 8192, 6), NORMS(2, 2560, 6)},
     2 * 1024,
     4 * 1024,
     0,
     0},
    {"hy3",
     "{\"model_type\":\"hy_v3\",\"hidden_size\":4096,\"num_hidden_layers\":80,\"num_attention_heads\":64,"
     "\"num_key_value_heads\":8,\"head_dim\":128,\"intermediate_size\":13312,\"vocab_size\":120832,"
     "\"moe_intermediate_size\":1536,\"num_experts\":192,\"num_experts_per_tok\":8,\"num_shared_experts\":1}",
     {ENDS(120832, 4096), HEAD(120832, 4096), QKVO(8192, 1024, 4096, 80), EACH("q_norm, k_norm", 2, 128, 80),
      NORMS(2, 4096, 80), GATED(4096, 13312, 1), EXPERTS(4096, 1536, 79, 192, 8), GATED(4096, 1536, 79),
      EACH("gate", 192, 4096, 79), EACH("e_score_correction_bias", 1, 192, 79)},
     80 * 2048,
     0,
     0,
     0},
    {"a.x-k1", /* a norm more in layers with experts */
     "{\"model_type\":\"axk1\",\"hidden_size\":7168,\"num_hidden_layers\":61,\"num_attention_heads\":64,"
     "\"num_key_value_heads\":64,\"intermediate_size\":18432,\"vocab_size\":163840,\"q_lora_rank\":1536,"
     "\"kv_lora_rank\":512,\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,\"v_head_dim\":128,"
     "\"moe_intermediate_size\":2048,\"n_routed_experts\":192,\"n_shared_experts\":1,\"num_experts_per_tok\":8,"
     "\"first_k_dense_replace\":1}",
     {ENDS(163840, 7168), HEAD(163840, 7168), LATENT(7168, 64, 1536, 512, 128, 64, 128, 61), NORMS(2, 7168, 61),
      EACH("post_mlp_layernorm", 1, 7168, 60), GATED(7168, 18432, 1), EXPERTS(7168, 2048, 60, 192, 8),
      GATED(7168, 2048, 60), EACH("gate", 192, 7168, 60), EACH("e_score_correction_bias", 1, 192, 60)},
     61 * 576,
     0,
     0,
     0},
    {"mellum", /* sizes of the class; without layer_types no layer would slide */
     "{\"model_type\":\"mellum\",\"hidden_size\":2304,\"num_hidden_layers\":3,\"num_attention_heads\":32,"
     "\"num_key_value_heads\":4,\"head_dim\":128,\"intermediate_size\":7168,\"vocab_size\":98304,"
     "\"moe_intermediate_size\":896,\"num_experts\":64,\"num_experts_per_tok\":8,\"layer_types\":["
     "\"sliding_attention\",\"sliding_attention\",\"full_attention\"],\"mlp_layer_types\":[\"sparse\",\"sparse\","
     "\"dense\"]}",
     {ENDS(98304, 2304), HEAD(98304, 2304), QKVO(4096, 512, 2304, 3), EACH("q_norm, k_norm", 2, 128, 3),
      NORMS(2, 2304, 3), EXPERTS(2304, 896, 2, 64, 8), EACH("gate", 64, 2304, 2), GATED(2304, 7168, 1)},
     1024,
     2 * 1024,
     0,
     0},
    {"laguna", /* sizes of the class; heads by layer */
     "{\"model_type\":\"laguna\",\"hidden_size\":2048,\"num_hidden_layers\":3,\"num_attention_heads\":48,"
     "\"num_attention_heads_per_layer\":[48,64,64],\"num_key_value_heads\":8,\"head_dim\":128,"
     "\"intermediate_size\":8192,\"vocab_size\":100352,\"moe_intermediate_size\":512,"
     "\"shared_expert_intermediate_size\":512,\"num_experts\":256,\"num_experts_per_tok\":8,\"layer_types\":["
     "\"full_attention\",\"sliding_attention\",\"sliding_attention\"]}",
     {ENDS(100352, 2048), HEAD(100352, 2048), QKVO(6144, 1024, 2048, 1), EACH("g_proj", 48, 2048, 1),
      QKVO(8192, 1024, 2048, 2), EACH("g_proj", 64, 2048, 2), EACH("q_norm, k_norm", 2, 128, 3), NORMS(2, 2048, 3),
      GATED(2048, 8192, 1), EXPERTS(2048, 512, 2, 256, 8), GATED(2048, 512, 2), EACH("gate", 256, 2048, 2),
      EACH("e_score_correction_bias", 1, 256, 2)},
     2048,
     2 * 2048,
     0,
     0},
    {"arctic-480b", /* an MLP as wide as the model beside the experts, with a norm of its own */
     "{\"model_type\":\"arctic\",\"hidden_size\":7168,\"num_hidden_layers\":35,\"num_attention_heads\":56,"
     "\"num_key_value_heads\":8,\"intermediate_size\":4864,\"vocab_size\":32000,\"num_local_experts\":128,"
     "\"num_experts_per_tok\":2,\"moe_layer_frequency\":1,\"use_residual\":true}",
     {ENDS(32000, 7168), HEAD(32000, 7168), QKVO(7168, 1024, 7168, 35), EXPERTS(7168, 4864, 35, 128, 2),
      EACH("gate", 128, 7168, 35), GATED(7168, 7168, 35), NORMS(3, 7168, 35)},
     35 * 2048,
     0,
     0,
     0},
    {"arctic by turns", /* every second layer has experts, by the class's default, and nothing beside them */
     "{\"model_type\":\"arctic\",\"hidden_size\":36,\"num_hidden_layers\":5,\"num_attention_heads\":6,"
     "\"num_key_value_heads\":2,\"intermediate_size\":11,\"vocab_size\":43,\"num_local_experts\":7,"
     "\"num_experts_per_tok\":3}",
     {ENDS(43, 36), HEAD(43, 36), QKVO(36, 12, 36, 5), EXPERTS(36, 11, 2, 7, 3), EACH("gate", 7, 36, 2),
      GATED(36, 11, 3), NORMS(2, 36, 5)},
     5 * 24,
     0,
     0,
     0},
    {"arctic by turns with a residual",
     "{\"model_type\":\"arctic\",\"hidden_size\":36,\"num_hidden_layers\":5,\"num_attention_heads\":6,"
     "\"num_key_value_heads\":2,\"intermediate_size\":11,\"vocab_size\":43,\"num_local_experts\":7,"
     "\"num_experts_per_tok\":3,\"moe_layer_frequency\":3,\"parallel_attn_mlp_res\":true}",
     {ENDS(43, 36), HEAD(43, 36), QKVO(36, 12, 36, 5), EXPERTS(36, 11, 1, 7, 3), EACH("gate", 7, 36, 1),
      GATED(36, 36, 1), GATED(36, 11, 4), NORMS(2, 36, 5), EACH("residual_layernorm", 1, 36, 1)},
     5 * 24,
     0,
     0,
     0},
    {"apertus with biases and another nonlinearity", /* as vLLM reads mlp_bias */
     "{\"model_type\":\"apertus\",\"hidden_size\":36,\"num_hidden_layers\":3,\"num_attention_heads\":6,"
     "\"num_key_value_heads\":2,\"intermediate_size\":11,\"vocab_size\":43,\"mlp_bias\":true,\"hidden_act\":\"silu\"}",
     {ENDS(43, 36), HEAD(43, 36), QKVO(36, 12, 36, 3), EACH("q_norm, k_norm", 2, 6, 3), EACH("up_proj", 11, 36, 3),
      EACH("down_proj", 36, 11, 3), EACH("up_proj.bias, down_proj.bias", 1, 47, 3), NORMS(2, 36, 3)},
     3 * 24,
     0,
     0,
     0},
    {"exaone_moe by flags", /* the list decides, whatever the prefix is by default */
     "{\"model_type\":\"exaone_moe\",\"hidden_size\":36,\"num_hidden_layers\":5,\"num_attention_heads\":6,"
     "\"num_key_value_heads\":2,\"head_dim\":7,\"intermediate_size\":11,\"vocab_size\":43,"
     "\"moe_intermediate_size\":13,\"num_experts\":5,\"num_experts_per_tok\":2,\"num_shared_experts\":3,"
     "\"is_moe_layer\":[true,false,false,true,false],\"sliding_window\":16}",
     {ENDS(43, 36), HEAD(43, 36), QKVO(42, 14, 36, 5), EACH("q_norm, k_norm", 2, 7, 5), GATED(36, 11, 3),
      EXPERTS(36, 13, 2, 5, 2), GATED(36, 39, 2), EACH("gate", 5, 36, 2), EACH("e_score_correction_bias", 1, 5, 2),
      NORMS(2, 36, 5)},
     1 * 28,
     4 * 28,
     0,
     0},
    {"step3p5 as transformers saves it", /* heads and experts by layer, and a gate a head without a key */
     "{\"model_type\":\"step3p5\",\"hidden_size\":36,\"num_hidden_layers\":3,\"num_attention_heads\":4,"
     "\"num_key_value_heads\":2,\"head_dim\":7,\"intermediate_size\":11,\"vocab_size\":43,"
     "\"moe_intermediate_size\":13,\"n_routed_experts\":5,\"num_experts_per_tok\":2,\"share_expert_dim\":17,"
     "\"mlp_layer_types\":[\"dense\",\"sparse\",\"sparse\"],\"sliding_window\":16,"
     "\"layer_types\":[\"full_attention\",\"sliding_attention\",\"full_attention\"],"
     "\"num_attention_heads_per_layer\":[4,6,4],\"use_moe_router_bias\":true}",
     {ENDS(43, 36), HEAD(43, 36), QKVO(28, 14, 36, 2), QKVO(42, 14, 36, 1), EACH("g_proj", 4, 36, 2),
      EACH("g_proj", 6, 36, 1), EACH("q_norm, k_norm", 2, 7, 3), GATED(36, 11, 1), EXPERTS(36, 13, 2, 5, 2),
      GATED(36, 17, 2), EACH("gate", 5, 36, 2), EACH("router_bias", 1, 5, 2), NORMS(2, 36, 3)},
     2 * 28,
     1 * 28,
     0,
     0},
    {"step3p7 as transformers saves it", /* heads of sliding layers by a key; gates and biases without one */
     "{\"model_type\":\"step3p7\",\"text_config\":{\"model_type\":\"step3p5\",\"hidden_size\":36,"
     "\"num_hidden_layers\":3,\"num_attention_heads\":4,\"num_sliding_attention_heads\":6,"
     "\"num_key_value_heads\":2,\"head_dim\":7,\"intermediate_size\":11,\"vocab_size\":43,"
     "\"moe_intermediate_size\":13,\"n_routed_experts\":5,\"num_experts_per_tok\":2,\"share_expert_dim\":17,"
     "\"mlp_layer_types\":[\"dense\",\"sparse\",\"sparse\"],\"sliding_window\":16,"
     "\"layer_types\":[\"full_attention\",\"sliding_attention\",\"full_attention\"]}}",
     {ENDS(43, 36), HEAD(43, 36), QKVO(28, 14, 36, 2), QKVO(42, 14, 36, 1), EACH("g_proj", 4, 36, 2),
      EACH("g_proj", 6, 36, 1), EACH("q_norm, k_norm", 2, 7, 3), GATED(36, 11, 1), EXPERTS(36, 13, 2, 5, 2),
      GATED(36, 17, 2), EACH("gate", 5, 36, 2), EACH("router_bias", 1, 5, 2), NORMS(2, 36, 3)},
     2 * 28,
     1 * 28,
     0,
     0},
    {"cohere2_moe", /* a dense layer that is full, then three sliding ones and a full one; one norm a layer */
     "{\"model_type\":\"cohere2_moe\",\"hidden_size\":36,\"num_hidden_layers\":6,\"num_attention_heads\":6,"
     "\"num_key_value_heads\":2,\"head_dim\":7,\"intermediate_size\":11,\"vocab_size\":43,\"num_experts\":5,"
     "\"num_experts_per_tok\":2,\"num_shared_experts\":2,\"first_k_dense_replace\":1,"
     "\"prefix_dense_intermediate_size\":23,\"sliding_window\":16,\"sliding_window_pattern\":4}",
     {ENDS(43, 36), QKVO(42, 14, 36, 6), GATED(36, 23, 1), EXPERTS(36, 11, 5, 5, 2), GATED(36, 22, 5),
      EACH("gate", 5, 36, 5), NORMS(1, 36, 6)},
     2 * 28,
     4 * 28,
     0,
     0},
    {"cohere2_moe with lists",
     "{\"model_type\":\"cohere2_moe\",\"hidden_size\":36,\"num_hidden_layers\":3,\"num_attention_heads\":6,"
     "\"num_key_value_heads\":2,\"intermediate_size\":11,\"vocab_size\":43,\"rms_norm_eps\":1e-5,"
     "\"layer_types\":[\"full_attention\",\"sliding_attention\",\"sliding_attention\"],"
     "\"mlp_layer_types\":[\"dense\",\"sparse\",\"sparse\"]}",
     {ENDS(43, 36), QKVO(768, 256, 36, 3), GATED(36, 11, 1), EXPERTS(36, 11, 2, 8, 2), EACH("gate", 8, 36, 2),
      NORMS(1, 36, 3)},
     1 * 512,
     2 * 512,
     0,
     0},
    {"minimax-m3", /* three full dense layers, then experts and blocks of chosen keys; the text part as published */
     "{\"model_type\":\"minimax_m3_vl\",\"architectures\":[\"MiniMaxM3SparseForConditionalGeneration\"],"
     "\"text_config\":{\"model_type\":\"minimax_m2\",\"hidden_size\":6144,\"num_hidden_layers\":60,"
     "\"num_attention_heads\":64,\"num_key_value_heads\":4,\"head_dim\":128,\"intermediate_size\":3072,"
     "\"dense_intermediate_size\":12288,\"shared_intermediate_size\":3072,\"n_shared_experts\":1,\"vocab_size\":200064,"
     "\"num_local_experts\":128,\"num_experts_per_tok\":4,\"use_routing_bias\":true,\"qk_norm_type\":\"per_head\","
     "\"moe_layer_freq\":" M3_FREQ ",\"sparse_attention_config\":{\"use_sparse_attention\":true,"
     "\"sparse_index_dim\":128,\"sparse_num_index_heads\":4,\"sparse_topk_blocks\":16,\"sparse_block_size\":128,"
     "\"sparse_init_block\":0,\"sparse_local_block\":1,\"sparse_disable_index_value\":" M3_FREQ
     ",\"sparse_attention_freq\":" M3_FREQ "}}}",
     {ENDS(200064, 6144), HEAD(200064, 6144), QKVO(8192, 512, 6144, 60), EACH("q_norm, k_norm", 2, 128, 60),
      EACH("index_q_proj", 512, 6144, 57), EACH("index_k_proj", 128, 6144, 57),
      EACH("index_q_norm, index_k_norm", 2, 128, 57), GATED(6144, 12288, 3), EXPERTS(6144, 3072, 57, 128, 4),
      GATED(6144, 3072, 57), EACH("gate", 128, 6144, 57), EACH("e_score_correction_bias", 1, 128, 57),
      NORMS(2, 6144, 60)},
     60 * 1024 + 57 * 128,
     0,
     0,
     0},
    {"deepseek-v4-flash", /* two layers of a window, then entries of 4 and of 128 tokens by turns; published: 284B, 13B
                           */
     "{\"model_type\":\"deepseek_v4\",\"architectures\":[\"DeepseekV4ForCausalLM\"],\"hidden_size\":4096,"
     "\"num_hidden_layers\":43,\"num_attention_heads\":64,\"num_key_value_heads\":1,\"head_dim\":512,"
     "\"qk_rope_head_dim\":64,\"q_lora_rank\":1024,\"o_groups\":8,\"o_lora_rank\":1024,\"sliding_window\":128,"
     "\"vocab_size\":129280,\"n_routed_experts\":256,\"num_experts_per_tok\":6,\"n_shared_experts\":1,"
     "\"moe_intermediate_size\":2048,\"num_hash_layers\":3,\"index_n_heads\":64,\"index_head_dim\":128,"
     "\"index_topk\":512,\"hc_mult\":4,\"hc_sinkhorn_iters\":20,\"compress_ratios\":[0,0,4,128,4,128,4,128,4,128,4,128,"
     "4,"
     "128,4,128,4,128,4,128,4,128,4,128,4,128,4,128,4,128,4,128,4,128,4,128,4,128,4,128,4,128,4,0]}",
     {ENDS(129280, 4096),
      HEAD(129280, 4096),
      EACH("q_a_proj", 1024, 4096, 43),
      EACH("q_a_norm", 1, 1024, 43),
      EACH("q_b_proj", 32768, 1024, 43),
      EACH("kv_proj", 512, 4096, 43),
      EACH("kv_norm", 1, 512, 43),
      EACH("o_a_proj", 8 * 1024, 32768 / 8, 43),
      EACH("o_b_proj", 4096, 8 * 1024, 43),
      EACH("sinks", 1, 64, 43),
      EACH("compressor.kv_proj, gate_proj (4)", 2 * 1024, 4096, 21),
      EACH("compressor.position_bias (4)", 4, 1024, 21),
      EACH("compressor.kv_proj, gate_proj (128)", 2 * 512, 4096, 20),
      EACH("compressor.position_bias (128)", 128, 512, 20),
      EACH("compressor.kv_norm", 1, 512, 41),
      EACH("indexer.kv_proj, gate_proj", 2 * 256, 4096, 21),
      EACH("indexer.position_bias", 4, 256, 21),
      EACH("indexer.kv_norm", 1, 128, 21),
      EACH("indexer.q_b_proj", 8192, 1024, 21),
      EACH("indexer.weights_proj", 64, 4096, 21),
      NORMS(2, 4096, 43),
      EACH("hc fn", 2 * 24, 4 * 4096, 43),
      EACH("hc base and scale", 2, 24 + 3, 43),
      EACH("hc_head fn", 4, 4 * 4096, 1),
      EACH("hc_head base, scale", 1, 5, 1),
      EXPERTS(4096, 2048, 43, 256, 6),
      GATED(4096, 2048, 43),
      EACH("gate", 256, 4096, 43),
      EACH("e_score_correction_bias", 1, 256, 40)},
     21 * (512 + 128) / 4 + 20 * 512 / 128,
     2 * 512,
     41 * 128 * 512,
     21 * 2 * 8 * 2 * (512 + 128) + 20 * 2 * 128 * 512},
    {"granitemoe_swa", /* the first of four is full; sinks in all */
     "{\"model_type\":\"granitemoe_swa\",\"hidden_size\":36,\"num_hidden_layers\":5,\"num_attention_heads\":6,"
     "\"num_key_value_heads\":2,\"intermediate_size\":11,\"shared_intermediate_size\":0,\"vocab_size\":43,"
     "\"num_local_experts\":7,\"num_experts_per_tok\":3,\"tie_word_embeddings\":true}",
     {ENDS(43, 36), QKVO(36, 12, 36, 5), EACH("sinks", 1, 6, 5), EXPERTS(36, 11, 5, 7, 3), EACH("router", 7, 36, 5),
      NORMS(2, 36, 5)},
     2 * 24,
     3 * 24,
     0,
     0},
    {"glm-ocr", /* a text part that states what differs from its class: nothing but its heads' width */
     "{\"model_type\":\"glm_ocr\",\"text_config\":{\"model_type\":\"glm_ocr_text\",\"head_dim\":128,"
     "\"attention_bias\":true},\"vision_config\":{\"model_type\":\"glm_ocr_vision\"}}",
     {ENDS(59392, 1024), HEAD(59392, 1024), QKVO(2048, 1024, 1024, 16), GATED(1024, 4096, 16), NORMS(4, 1024, 16)},
     16 * 2048,
     0,
     0,
     0},
    {"grok-2", /* another model_type; the key says which class reads it */
     "{\"model_type\":\"git\",\"architectures\":[\"Grok1ForCausalLM\"],\"hidden_size\":8192,"
     "\"num_hidden_layers\":64,\"num_attention_heads\":64,\"num_key_value_heads\":8,\"head_dim\":128,"
     "\"intermediate_size\":32768,\"moe_intermediate_size\":16384,\"residual_moe\":true,\"vocab_size\":131072,"
     "\"num_local_experts\":8,\"num_experts_per_tok\":2,\"sliding_window_size\":-1}",
     {ENDS(131072, 8192), HEAD(131072, 8192), QKVO(8192, 1024, 8192, 64), EXPERTS(8192, 16384, 64, 8, 2),
      GATED(8192, 32768, 64), EACH("gate", 8, 8192, 64), NORMS(4, 8192, 64)},
     64 * 2048,
     0,
     0,
     0},
    {"ernie-4.5-vl-28b-a3b", /* 64 experts of text and 64 narrower ones of images, which no token of text meets */
     "{\"model_type\":\"ernie4_5_moe_vl\",\"hidden_size\":2560,\"num_hidden_layers\":28,\"num_attention_heads\":20,"
     "\"num_key_value_heads\":4,\"intermediate_size\":12288,\"vocab_size\":103424,\"moe_num_experts\":[64,64],"
     "\"moe_intermediate_size\":[1536,512],\"moe_num_shared_experts\":2,\"moe_k\":6,\"moe_layer_interval\":1,"
     "\"moe_layer_start_index\":[1,1],\"moe_layer_end_index\":[29,28],\"use_bias\":false,"
     "\"tie_word_embeddings\":true}",
     {ENDS(103424, 2560), QKVO(2560, 512, 2560, 28), NORMS(2, 2560, 28), GATED(2560, 12288, 1),
      EXPERTS(2560, 1536, 27, 64, 6), GATED(2560, 2 * 1536, 27), EACH("gate", 64, 2560, 27),
      EACH("moe_statics", 1, 64, 27), HELD("image experts", 3 * 512, 2560, 27 * 64), HELD("gate_1", 64, 2560, 27),
      HELD("moe_statics of images", 1, 64, 27)},
     28 * 1024,
     0,
     0,
     0},
    {"sdar-30b-a3b",
     "{\"model_type\":\"sdar_moe\",\"hidden_size\":2048,\"num_hidden_layers\":48,\"num_attention_heads\":32,"
     "\"num_key_value_heads\":4,\"head_dim\":128,\"intermediate_size\":6144,\"moe_intermediate_size\":768,"
     "\"num_experts\":128,\"num_experts_per_tok\":8,\"vocab_size\":151936}",
     {ENDS(151936, 2048), HEAD(151936, 2048), QKVO(4096, 512, 2048, 48), EACH("q_norm, k_norm", 2, 128, 48),
      NORMS(2, 2048, 48), EXPERTS(2048, 768, 48, 128, 8), EACH("gate", 128, 2048, 48)},
     48 * 1024,
     0,
     0,
     0},
    {"llada2-mini",
     "{\"model_type\":\"llada2_moe\",\"hidden_size\":2048,\"num_hidden_layers\":20,\"num_attention_heads\":16,"
     "\"num_key_value_heads\":4,\"head_dim\":128,\"intermediate_size\":5120,\"moe_intermediate_size\":512,"
     "\"num_experts\":256,\"num_shared_experts\":1,\"num_experts_per_tok\":8,\"first_k_dense_replace\":1,"
     "\"use_bias\":false,\"use_qkv_bias\":false,\"moe_router_enable_expert_bias\":true,\"vocab_size\":157184}",
     {ENDS(157184, 2048), HEAD(157184, 2048), QKVO(2048, 512, 2048, 20), EACH("q, k layernorm", 2, 128, 20),
      NORMS(2, 2048, 20), GATED(2048, 5120, 1), EXPERTS(2048, 512, 19, 256, 8), GATED(2048, 512, 19),
      EACH("gate", 256, 2048, 19), EACH("expert_bias", 1, 256, 19)},
     20 * 1024,
     0,
     0,
     0},
    {"mimo-v2", /* sizes of no published model: two shared experts, values narrower than keys */
     "{\"model_type\":\"mimo_v2\",\"hidden_size\":48,\"num_hidden_layers\":3,\"num_attention_heads\":6,"
     "\"num_key_value_heads\":2,\"head_dim\":10,\"v_head_dim\":7,\"swa_num_key_value_heads\":3,"
     "\"add_swa_attention_sink_bias\":false,\"attention_chunk_size\":16,"
     "\"sliding_window_size\":16,\"hybrid_layer_pattern\":[0,1,1],\"moe_layer_freq\":[0,1,1],"
     "\"intermediate_size\":29,\"moe_intermediate_size\":13,\"n_routed_experts\":11,\"n_shared_experts\":2,"
     "\"num_experts_per_tok\":3,\"vocab_size\":101}",
     {ENDS(101, 48), HEAD(101, 48), EACH("q_proj", 60, 48, 3), EACH("o_proj", 48, 42, 3), EACH("k_proj", 20, 48, 1),
      EACH("v_proj", 14, 48, 1), EACH("swa k_proj", 30, 48, 2), EACH("swa v_proj", 21, 48, 2), GATED(48, 29, 1),
      EXPERTS(48, 13, 2, 11, 3), GATED(48, 26, 2), EACH("gate", 11, 48, 2), EACH("correction", 1, 11, 2),
      NORMS(2, 48, 3)},
     34,
     2 * 51,
     0,
     0},
    {"rwkv-4-1b5",
     "{\"model_type\":\"rwkv\",\"hidden_size\":2048,\"num_hidden_layers\":24,\"attention_hidden_size\":2048,"
     "\"intermediate_size\":8192,\"vocab_size\":50277,\"context_length\":1024}",
     {EACH("embeddings", 50277, 2048, 1), HEAD(50277, 2048), EACH("pre_ln", 2, 2048, 1), EACH("ln_out", 2, 2048, 1),
      NORMS(4, 2048, 24), EACH("time_decay, time_first", 2, 2048, 24),
      EACH("time_mix_key, _value, _receptance", 3, 2048, 24),
      EACH("key, value, receptance, output", 4 * 2048, 2048, 24), EACH("ffn.time_mix_key, _receptance", 2, 2048, 24),
      EACH("ffn.key", 8192, 2048, 24), EACH("ffn.value", 2048, 8192, 24), EACH("ffn.receptance", 2048, 2048, 24)},
     0,
     0,
     24 * 2 * 2048,
     24 * 3 * 2048},
    {"ring-mini-linear-2.0", /* four layers of five have states */
     "{\"model_type\":\"bailing_moe_linear\",\"hidden_size\":2048,\"num_hidden_layers\":20,\"layer_group_size\":5,"
     "\"group_norm_size\":4,\"num_attention_heads\":16,\"num_key_value_heads\":4,\"head_dim\":128,"
     "\"intermediate_size\":5120,\"vocab_size\":157184,\"moe_intermediate_size\":512,"
     "\"moe_shared_expert_intermediate_size\":512,\"num_experts\":256,\"num_shared_experts\":1,"
     "\"num_experts_per_tok\":8,\"first_k_dense_replace\":1,\"use_qk_norm\":true,\"linear_silu\":false,"
     "\"moe_router_enable_expert_bias\":true,\"num_nextn_predict_layers\":0}",
     {ENDS(157184, 2048), HEAD(157184, 2048), EACH("query_key_value", 16 * 3 * 128, 2048, 16),
      EACH("g_proj", 2048, 2048, 16), EACH("g_norm", 1, 2048, 16), EACH("dense", 2048, 2048, 16),
      QKVO(2048, 512, 2048, 4), EACH("query_layernorm, key_layernorm", 2, 128, 20), NORMS(2, 2048, 20),
      GATED(2048, 5120, 1), EXPERTS(2048, 512, 19, 256, 8), GATED(2048, 512, 19), EACH("gate", 256, 2048, 19),
      EACH("gate.expert_bias", 1, 256, 19)},
     4 * 1024,
     0,
     0,
     16 * 16 * 128 * 128},
    {"ling-2.5", /* sizes of no published model: a latent in the last layer of three */
     "{\"model_type\":\"bailing_hybrid\",\"hidden_size\":48,\"num_hidden_layers\":3,\"layer_group_size\":3,"
     "\"num_attention_heads\":6,\"head_dim\":7,\"q_lora_rank\":23,\"kv_lora_rank\":17,\"qk_nope_head_dim\":7,"
     "\"qk_rope_head_dim\":4,\"v_head_dim\":9,\"intermediate_size\":29,\"vocab_size\":101,"
     "\"moe_intermediate_size\":13,\"moe_shared_expert_intermediate_size\":11,\"num_experts\":5,"
     "\"num_shared_experts\":2,\"num_experts_per_tok\":2,\"first_k_dense_replace\":1,\"use_qk_norm\":true}",
     {ENDS(101, 48), HEAD(101, 48), EACH("query_key_value", 3 * 42, 48, 2), EACH("g_proj", 42, 48, 2),
      EACH("g_norm", 1, 42, 2), EACH("dense", 48, 42, 2), EACH("query, key layernorm", 2, 7, 2),
      LATENT(48, 6, 23, 17, 7, 4, 9, 1), NORMS(2, 48, 3), GATED(48, 29, 1), EXPERTS(48, 13, 2, 5, 2), GATED(48, 22, 2),
      EACH("gate", 5, 48, 2)},
     21,
     0,
     0,
     2 * 6 * 49},
    {"falcon-h1", /* mamba-2 and attention beside each other, from one norm; no norm of the mixer's output */
     "{\"model_type\":\"falcon_h1\",\"hidden_size\":1280,\"num_hidden_layers\":66,\"num_attention_heads\":6,"
     "\"num_key_value_heads\":2,\"head_dim\":128,\"intermediate_size\":3072,\"vocab_size\":65537,\"mamba_d_ssm\":1536,"
     "\"mamba_n_heads\":24,\"mamba_d_head\":64,\"mamba_n_groups\":1,\"mamba_d_state\":256,\"mamba_d_conv\":4,"
     "\"mamba_expand\":2,\"mamba_conv_bias\":true,\"mamba_rms_norm\":false}",
     {ENDS(65537, 1280), HEAD(65537, 1280), QKVO(768, 256, 1280, 66), EACH("mamba.in_proj", 1536 + 2048 + 24, 1280, 66),
      EACH("mamba.conv1d", 2048, 4, 66), EACH("mamba.conv1d.bias", 1, 2048, 66), EACH("A_log, dt_bias, D", 3, 24, 66),
      EACH("mamba.out_proj", 1280, 1536, 66), GATED(1280, 3072, 66), NORMS(2, 1280, 66)},
     66 * 512,
     0,
     66 * 3 * 2048,
     66 * 24 * 64 * 256},
    {"falcon-h1 with a norm", /* in 34B's form: two groups, a norm of the mixer's output */
     "{\"model_type\":\"falcon_h1\",\"hidden_size\":60,\"num_hidden_layers\":3,\"num_attention_heads\":4,"
     "\"num_key_value_heads\":2,\"head_dim\":14,\"intermediate_size\":33,\"vocab_size\":71,\"mamba_d_ssm\":null,"
     "\"mamba_n_heads\":10,\"mamba_d_head\":\"auto\",\"mamba_n_groups\":2,\"mamba_d_state\":7,\"mamba_expand\":2,"
     "\"mamba_rms_norm\":true,\"tie_word_embeddings\":true}",
     {ENDS(71, 60), QKVO(56, 28, 60, 3), EACH("mamba.in_proj", 120 + 148 + 10, 60, 3), EACH("mamba.conv1d", 148, 5, 3),
      EACH("A_log, dt_bias, D", 3, 10, 3), EACH("mamba.norm", 1, 120, 3), EACH("mamba.out_proj", 60, 120, 3),
      GATED(60, 33, 3), NORMS(2, 60, 3)},
     3 * 56,
     0,
     3 * 3 * 148,
     3 * 120 * 7},
    {"zamba-7b", /* one shared block, used before 13 layers, with a product of each of them */
     "{\"model_type\":\"zamba\",\"hidden_size\":3712,\"num_hidden_layers\":76,\"num_attention_heads\":16,"
     "\"num_key_value_heads\":16,\"intermediate_size\":14848,\"vocab_size\":32000,\"n_mamba_heads\":2,"
     "\"mamba_d_state\":16,\"mamba_d_conv\":4,\"mamba_expand\":2,\"mamba_dt_rank\":232,\"attn_layer_period\":6,"
     "\"attn_layer_offset\":4}",
     {ENDS(32000, 3712), QKVO(7424, 7424, 2 * 3712, 1), EACH("o_proj of half the width", -3712, 7424, 1),
      EACH("input_layernorm", 1, 7424, 1), EACH("pre_ff_layernorm", 1, 3712, 1), GATED(3712, 14848, 1),
      EACH("linear", 3712, 3712, 13), EACH("in_proj", 2 * 7424, 3712, 76), EACH("conv1d", 7424, 5, 76),
      EACH("x_proj_weight", 2 * (232 + 32), 3712, 76), EACH("dt_proj_weight", 2 * 3712, 232, 76),
      EACH("dt_proj_bias", 2, 3712, 76), EACH("A_log", 7424, 16, 76), EACH("D", 1, 7424, 76),
      EACH("out_proj", 3712, 7424, 76), NORMS(1, 3712, 76)},
     13 * 2 * 7424,
     0,
     76 * 3 * 7424,
     76 * 7424 * 16},
    {"olmo-hybrid-7b",
     "{\"model_type\":\"olmo_hybrid\",\"hidden_size\":3840,\"num_hidden_layers\":8,\"num_attention_heads\":30,"
     "\"intermediate_size\":11008,\"vocab_size\":100352,\"rope_parameters\":{\"rope_theta\":null},\"layer_types\":["
     "\"linear_attention\",\"linear_attention\",\"linear_attention\",\"full_attention\",\"linear_attention\","
     "\"linear_attention\",\"linear_attention\",\"full_attention\"]}",
     {ENDS(100352, 3840), HEAD(100352, 3840), QKVO(3840, 3840, 3840, 2), EACH("q_norm, k_norm", 2, 3840, 2),
      EACH("q_proj, k_proj", 2 * 30 * 96, 3840, 6), EACH("v_proj, g_proj", 2 * 30 * 192, 3840, 6),
      EACH("a_proj, b_proj", 2 * 30, 3840, 6), EACH("conv1d", 2 * 2880 + 5760, 4, 6), EACH("A_log, dt_bias", 2, 30, 6),
      EACH("o_norm", 1, 192, 6), EACH("o_proj", 3840, 5760, 6), GATED(3840, 11008, 8), NORMS(2, 3840, 8)},
     2 * 7680,
     0,
     6 * 3 * 11520,
     6 * 30 * 96 * 192},
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_caches),
    };
    return cmocka_run_group_tests_name("families", tests, NULL, NULL);
}
