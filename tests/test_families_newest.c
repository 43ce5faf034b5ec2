/* Families of 2026: dots3-note, LFM3, Flint, Kolibri, Beam, Molmo 2, Cosmos 3 Edge, Muse, Mistral Large 4; and keys of
 * Laguna, Nemotron-H and Qwen2.5-Omni that their classes read in ways of their own. Tensor lists: as in
 * tests/families.h, of the classes of transformers 5.24. A text part without sizes has those of its class. */
#include "tests/families.h"

#include <math.h>
#include <string.h>

#define SMALL                                                                                                          \
    ",\"hidden_size\":96,\"num_attention_heads\":6,\"num_key_value_heads\":2,\"head_dim\":20,"                         \
    "\"intermediate_size\":88,\"vocab_size\":101"
#define SMALL_EXPERTS SMALL ",\"moe_intermediate_size\":24,\"num_experts_per_tok\":2,\"num_hidden_layers\":7"
#define QKVO_BIASES(layers) EACH("q, k, v, o biases", 1, 120 + 2 * 40 + 96, layers)
#define QK_NORMS(each, layers) EACH("q_norm, k_norm", 2, each, layers)
#define DSA_INDEX(width, q, heads, each, layers)                                                                       \
    EACH("indexer.wq_b", (heads) * (each), q, layers), EACH("indexer.wk", each, width, layers),                        \
        EACH("indexer.k_norm", 2, each, layers), EACH("indexer.weights_proj", heads, width, layers)
#define NINE ",\"num_experts\":9"
#define MISTRAL(heads, kv, rope, nope, value, width, layers)                                                           \
    EACH("q_proj", (heads) * ((nope) + (rope)), width, layers), EACH("kv_a_layernorm", 1, kv, layers),                 \
        EACH("o_proj", width, (heads) * (value), layers), EACH("softmax_scaling", 2, heads, layers)
#define MISTRAL_INDEX(heads, each, width, layers)                                                                      \
    EACH("indexer.wq_b", (heads) * (each), width, layers), EACH("indexer.wk", each, width, layers),                    \
        EACH("indexer.k_norm", 2, each, layers), EACH("indexer.weights_proj", heads, width, layers),                   \
        EACH("indexer.q_input_norm", 2, width, layers), EACH("indexer.softmax_scaling", 2, heads, layers)

static const struct subject SUBJECTS[] = {
    {"lfm3-1.7b", /* without layer_types: layers 2, 6, ... full, 4, 8, ... sliding */
     "{\"model_type\":\"lfm3\",\"hidden_size\":2048,\"num_hidden_layers\":24,\"num_attention_heads\":16,"
     "\"intermediate_size\":7680,\"vocab_size\":128000}",
     {ENDS(128000, 2048), NORMS(4, 2048, 24), EACH("conv.conv", 2048, 7, 13), EACH("conv.in_proj", 6144, 2048, 13),
      EACH("conv.out_proj", 2048, 2048, 13), QKVO(2048, 512, 2048, 11), QK_NORMS(128, 11), EACH("g_proj", 16, 2048, 11),
      GATED(2048, 7680, 24)},
     6 * 2 * 512,
     5 * 2 * 512,
     13 * 2048 * 6,
     0},
    {"lfm3 with biases, without gates and norms behind",
     "{\"model_type\":\"lfm3\"" SMALL ",\"num_hidden_layers\":4,\"conv_L_cache\":3,\"conv_bias\":true,"
     "\"attention_bias\":true,\"use_attention_gate\":false,\"use_sandwich_norm\":false,\"tie_word_embeddings\":false,"
     "\"layer_types\":[\"sliding_attention\",\"conv\",\"full_attention\",\"sliding_attention\"]}",
     {ENDS(101, 96), HEAD(101, 96), NORMS(2, 96, 4), EACH("conv.conv", 96, 3, 1), EACH("conv.in_proj", 288, 96, 1),
      EACH("conv.out_proj", 96, 96, 1), EACH("conv biases", 5, 96, 1), QKVO(120, 40, 96, 3), QKVO_BIASES(3),
      QK_NORMS(20, 3), GATED(96, 88, 4)},
     2 * 40,
     2 * 2 * 40,
     96 * 2,
     0},
    {"flint", /* full: 0, 1, 5, 9, ..., 45 and the last */
     "{\"model_type\":\"flint\",\"hidden_size\":2048,\"num_hidden_layers\":49,\"num_attention_heads\":32,"
     "\"intermediate_size\":6144,\"vocab_size\":150144}",
     {ENDS(150144, 2048), HEAD(150144, 2048), NORMS(2, 2048, 49), QKVO(4096, 512, 2048, 49), EACH("sinks", 1, 32, 49),
      QK_NORMS(128, 49), GATED(2048, 6144, 2), EXPERTS(2048, 512, 47, 256, 6), EACH("gate", 256, 2048, 47),
      GATED(2048, 1024, 47)},
     14 * 2 * 512,
     35 * 2 * 512,
     0,
     0},
    {"flint tied, with biases and another dense layer",
     "{\"model_type\":\"flint\"" SMALL_EXPERTS NINE ",\"shared_expert_intermediate_size\":40,\"attention_bias\":true,"
     "\"mlp_only_layers\":[3],\"tie_word_embeddings\":true}",
     {ENDS(101, 96), NORMS(2, 96, 7), QKVO(120, 40, 96, 7), QKVO_BIASES(7), EACH("sinks", 1, 6, 7), QK_NORMS(20, 7),
      GATED(96, 88, 1), EXPERTS(96, 24, 6, 9, 2), EACH("gate", 9, 96, 6), GATED(96, 40, 6)},
     4 * 2 * 40,
     3 * 2 * 40,
     0,
     0},
    {"kolibri-1",
     "{\"model_type\":\"kolibri1\",\"hidden_size\":2560,\"num_hidden_layers\":50,\"num_attention_heads\":48,"
     "\"vocab_size\":128000}",
     {ENDS(128000, 2560), HEAD(128000, 2560), NORMS(4, 2560, 50), QKVO(6144, 512, 2560, 50), QK_NORMS(128, 50),
      EXPERTS(2560, 512, 50, 384, 6), EACH("gate", 384, 2560, 50), GATED(2560, 512, 50),
      EACH("e_score_correction_bias", 1, 384, 50)},
     10 * 2 * 512,
     40 * 2 * 512,
     0,
     0},
    {"beam-1.0-501b-a23b",
     "{\"model_type\":\"beam\",\"hidden_size\":5120,\"num_hidden_layers\":52,\"num_attention_heads\":48,"
     "\"intermediate_size\":20480,\"vocab_size\":151936}",
     {ENDS(151936, 5120), HEAD(151936, 5120), NORMS(4, 5120, 52), QKVO(6144, 1024, 5120, 52), QK_NORMS(128, 52),
      EACH("self_attn.gate_proj", 6144, 5120, 52), EACH("self_attn.gate_bias", 1, 48, 52), GATED(5120, 20480, 3),
      EXPERTS(5120, 2560, 49, 256, 8), EACH("gate", 256, 5120, 49), EACH("e_score_correction_bias", 1, 256, 49)},
     9 * 2 * 1024,
     43 * 2 * 1024,
     0,
     0},
    {"beam tied, with biases", /* of queries, keys, values and output; the gate has its own */
     "{\"model_type\":\"beam\"" SMALL_EXPERTS NINE ",\"attention_bias\":true,\"tie_word_embeddings\":true}",
     {ENDS(101, 96), NORMS(4, 96, 7), QKVO(120, 40, 96, 7), QKVO_BIASES(7), QK_NORMS(20, 7),
      EACH("self_attn.gate_proj", 120, 96, 7), EACH("self_attn.gate_bias", 1, 6, 7), GATED(96, 88, 3),
      EXPERTS(96, 24, 4, 9, 2), EACH("gate", 9, 96, 4), EACH("e_score_correction_bias", 1, 9, 4)},
     2 * 2 * 40,
     5 * 2 * 40,
     0,
     0},
    {"molmo2-8b", /* 128 rows to read beyond those to answer; what is tied outside is not */
     "{\"model_type\":\"molmo2\",\"tie_word_embeddings\":true,\"text_config\":{\"model_type\":\"molmo2_text\"}}",
     {ENDS(152064, 4096), HEAD(151936, 4096), NORMS(2, 4096, 36), QKVO(4096, 1024, 4096, 36), QK_NORMS(128, 36),
      GATED(4096, 12288, 36)},
     36 * 2 * 1024,
     0,
     0,
     0},
    {"molmo2 as OLMo has it", /* norms of all heads, biases of queries, keys and values */
     "{\"model_type\":\"molmo2\",\"text_config\":{\"model_type\":\"molmo2_text\",\"qk_norm_type\":\"olmo\","
     "\"attention_bias\":true,\"additional_vocab_size\":7,\"num_hidden_layers\":3" SMALL "}}",
     {ENDS(108, 96), HEAD(101, 96), NORMS(2, 96, 3), QKVO(120, 40, 96, 3), EACH("q_norm, k_norm", 1, 160, 3),
      EACH("q, k, v biases", 1, 200, 3), GATED(96, 88, 3)},
     3 * 2 * 40,
     0,
     0,
     0},
    {"cosmos3-edge",
     "{\"model_type\":\"cosmos3_edge\",\"text_config\":{\"model_type\":\"cosmos3_edge_text\"}}",
     {ENDS(131072, 2048), HEAD(131072, 2048), NORMS(2, 2048, 28), QKVO(2048, 1024, 2048, 28),
      EACH("fc1", 9216, 2048, 28), EACH("fc2", 2048, 9216, 28)},
     28 * 2 * 1024,
     0,
     0,
     0},
    {"cosmos3-edge with biases", /* and with a word that the class does not read */
     "{\"model_type\":\"cosmos3_edge\",\"tie_word_embeddings\":true,\"text_config\":{\"model_type\":"
     "\"cosmos3_edge_text\",\"attention_bias\":true,\"mlp_bias\":true,\"num_hidden_layers\":3" SMALL "}}",
     {ENDS(101, 96), HEAD(101, 96), NORMS(2, 96, 3), QKVO(120, 40, 96, 3), QKVO_BIASES(3), EACH("fc1", 88, 96, 3),
      EACH("fc2", 96, 88, 3), EACH("fc biases", 1, 88 + 96, 3)},
     3 * 2 * 40,
     0,
     0,
     0},
    {"muse-glimmer-30b", /* every fourth layer full, counted from the last */
     "{\"model_type\":\"muse_glimmer\",\"text_config\":{\"model_type\":\"muse_glimmer_text\"}}",
     {ENDS(202048, 6656), HEAD(202048, 6656), NORMS(4, 6656, 52), QKVO(4096, 256, 6656, 52),
      EACH("self_attn.gate_proj", 4096, 6656, 52), GATED(6656, 19968, 52)},
     13 * 2 * 256,
     39 * 2 * 256,
     0,
     0},
    {"muse-glimmer tied, with biases", /* full: layers 1 and 5 */
     "{\"model_type\":\"muse_glimmer\",\"tie_word_embeddings\":true,\"text_config\":{\"model_type\":"
     "\"muse_glimmer_text\",\"tie_word_embeddings\":false,\"attention_bias\":true,\"num_hidden_layers\":6" SMALL "}}",
     {ENDS(101, 96), NORMS(4, 96, 6), QKVO(120, 40, 96, 6), QKVO_BIASES(6), EACH("self_attn.gate_proj", 120, 96, 6),
      GATED(96, 88, 6)},
     2 * 2 * 40,
     4 * 2 * 40,
     0,
     0},
    {"muse-spark-open-816b-a42b", /* as published, without the embedding */
     "{\"model_type\":\"muse_spark\",\"text_config\":{\"model_type\":\"muse_spark_text\"}}",
     {ENDS(202048, 8192), HEAD(202048, 8192), NORMS(3, 8192, 62), EACH("residual gates", 2, 8192, 62),
      QKVO(8192, 1024, 8192, 62), EACH("self_attn.gate_proj", 8192, 8192, 62), EXPERTS(4096, 4096, 62, 256, 8),
      EACH("gate", 256, 8192, 62), EACH("pre_expert_proj, post_expert_proj", 2 * 4096, 8192, 62),
      EACH("pre_expert_norm, post_expert_norm", 2, 4096, 62), EACH("e_score_correction_bias", 1, 256, 62)},
     16 * 2 * 1024,
     46 * 2 * 1024,
     0,
     0},
    {"muse-spark with dense layers and biases", /* full: layers 0 and 4; never tied */
     "{\"model_type\":\"muse_spark\",\"tie_word_embeddings\":true,\"text_config\":{\"model_type\":\"muse_spark_text\","
     "\"attention_bias\":true,\"moe_hidden_size\":40,\"num_local_experts\":9,\"num_experts_per_tok\":2,"
     "\"moe_intermediate_size\":24,\"num_hidden_layers\":5,"
     "\"mlp_layer_types\":[\"dense\",\"sparse\",\"sparse\",\"dense\",\"sparse\"]" SMALL "}}",
     {ENDS(101, 96), HEAD(101, 96), NORMS(3, 96, 5), EACH("residual gates", 2, 96, 5), QKVO(120, 40, 96, 5),
      QKVO_BIASES(5), EACH("self_attn.gate_proj", 120, 96, 5), GATED(96, 88, 2), EXPERTS(40, 24, 3, 9, 2),
      EACH("gate", 9, 96, 3), EACH("pre_expert_proj, post_expert_proj", 2 * 40, 96, 3),
      EACH("pre_expert_norm, post_expert_norm", 2, 40, 3), EACH("e_score_correction_bias", 1, 9, 3)},
     2 * 2 * 40,
     3 * 2 * 40,
     0,
     0},
    {"mistral-large-4-1t-a52b", /* layers 3, 7, ... know no positions: as wide a key, of the latent alone */
     "{\"model_type\":\"mistral_large4\",\"text_config\":{\"model_type\":\"mistral_large4_text\"}}",
     {ENDS(204800, 6144), HEAD(204800, 6144), EACH("rotary_emb.alpha", 1, 32, 1), NORMS(2, 6144, 72),
      MISTRAL(64, 512, 64, 64, 128, 6144, 72), EACH("kv_a_proj_with_mqa", 576, 6144, 54),
      EACH("kv_a_proj_with_mqa", 512, 6144, 18), EACH("kv_b_proj", 64 * (64 + 128), 512, 54),
      EACH("kv_b_proj", 64 * (128 + 128), 512, 18), MISTRAL_INDEX(32, 128, 6144, 72), GATED(6144, 24576, 1),
      EXPERTS(6144, 6144, 71, 128, 4), EACH("gate", 128, 6144, 71), GATED(6144, 6144, 71)},
     54 * 576 + 18 * 512 + 72 * 128,
     0,
     0,
     0},
    {"mistral large 4 tied, with shared choices", /* indexers in layers 0, 2, 4; positions but in layers 0 and 3 */
     "{\"model_type\":\"mistral_large4\",\"tie_word_embeddings\":true,\"text_config\":{\"model_type\":"
     "\"mistral_large4_text\",\"hidden_size\":96,\"num_hidden_layers\":5,\"num_attention_heads\":6,"
     "\"kv_lora_rank\":19,\"qk_rope_head_dim\":4,\"qk_nope_head_dim\":7,\"v_head_dim\":5,\"intermediate_size\":88,"
     "\"vocab_size\":101,\"moe_intermediate_size\":24,\"n_routed_experts\":9,\"num_experts_per_tok\":2,"
     "\"n_shared_experts\":2,\"index_head_dim\":12,\"index_n_heads\":3,\"index_topk\":8,\"kv_source_layers\":"
     "[0,1,2,3,4],\"no_rope_layers\":[0,1,1,0,1],\"first_k_dense_replace\":2,"
     "\"indexer_types\":[\"full\",\"shared\",\"full\",\"shared\",\"full\"]}}",
     {ENDS(101, 96), EACH("rotary_emb.alpha", 1, 2, 1), NORMS(2, 96, 5), MISTRAL(6, 19, 4, 7, 5, 96, 5),
      EACH("kv_a_proj_with_mqa", 23, 96, 3), EACH("kv_a_proj_with_mqa", 19, 96, 2),
      EACH("kv_b_proj", 6 * (7 + 5), 19, 3), EACH("kv_b_proj", 6 * (11 + 5), 19, 2), MISTRAL_INDEX(3, 12, 96, 3),
      GATED(96, 88, 2), EXPERTS(96, 24, 3, 9, 2), EACH("gate", 9, 96, 3), GATED(96, 48, 3)},
     3 * 23 + 2 * 19 + 3 * 12,
     0,
     0,
     0},
    {"dots3-note", /* full: 0, 1, 5, ..., 45; the others slide, with latents twice as wide and half as many heads */
     "{\"model_type\":\"dots3_note\",\"text_config\":{\"model_type\":\"dots3_note_text\"}}",
     {ENDS(152064, 5120), HEAD(152064, 5120), NORMS(2, 5120, 46), LATENT(5120, 128, 1024, 512, 128, 64, 128, 13),
      LATENT(5120, 64, 1024, 1024, 192, 64, 128, 33), EACH("k_rope_only_layernorm", 1, 64, 46),
      EACH("g_proj", 128, 5120, 13), EACH("g_proj", 64, 5120, 33), DSA_INDEX(5120, 1024, 64, 128, 13),
      GATED(5120, 13824, 1), EXPERTS(5120, 1536, 45, 256, 8), GATED(5120, 1536, 45), EACH("gate", 256, 5120, 45),
      EACH("e_score_correction_bias", 1, 256, 45)},
     13 * (576 + 128),
     33 * 1088,
     0,
     0},
    {"dots3-note as published", /* sizes at the top, by other names; no choice of keys */
     "{\"model_type\":\"dots3_note\",\"hidden_size\":96,\"num_hidden_layers\":4,\"num_attention_heads\":6,"
     "\"kv_lora_rank\":19,\"q_lora_rank\":17,\"qk_rope_head_dim\":4,\"qk_nope_head_dim\":7,\"v_head_dim\":5,"
     "\"intermediate_size\":88,\"vocab_size\":101,\"moe_intermediate_size\":24,\"n_routed_experts\":9,"
     "\"num_experts_per_tok\":2,\"n_shared_experts\":2,\"moe_shared_expert_intermediate_size\":20,\"use_dsa\":false,"
     "\"first_k_dense_replace\":2,\"swa_num_attention_heads\":3,\"swa_q_lora_rank\":13,\"swa_kv_lora_rank\":29,"
     "\"swa_head_dim\":15,\"swa_qk_nope_head_dim\":9,\"swa_v_head_dim\":8,\"sliding_window_size\":64,"
     "\"tie_word_embeddings\":true}",
     {ENDS(101, 96), NORMS(2, 96, 4), LATENT(96, 6, 17, 19, 7, 4, 5, 2), LATENT(96, 3, 13, 29, 9, 6, 8, 2),
      EACH("k_rope_only_layernorm", 1, 4, 2), EACH("k_rope_only_layernorm", 1, 6, 2), EACH("g_proj", 6, 96, 2),
      EACH("g_proj", 3, 96, 2), GATED(96, 88, 2), EXPERTS(96, 24, 2, 9, 2), GATED(96, 40, 2), EACH("gate", 9, 96, 2),
      EACH("e_score_correction_bias", 1, 9, 2)},
     2 * 23,
     2 * 35,
     0,
     0},
    {"dots3-note layer by layer", /* what a layer does not say is as in the others; words decide */
     "{\"model_type\":\"dots3_note_text\",\"hidden_size\":96,\"num_hidden_layers\":3,\"num_attention_heads\":6,"
     "\"kv_lora_rank\":19,\"q_lora_rank\":17,\"qk_rope_head_dim\":4,\"qk_nope_head_dim\":7,\"v_head_dim\":5,"
     "\"intermediate_size\":88,\"vocab_size\":101,\"moe_intermediate_size\":24,\"first_k_dense_replace\":3,"
     "\"index_n_heads\":3,\"index_head_dim\":12,\"per_layer_config\":{\"02\":{\"kv_lora_rank\":29,"
     "\"num_attention_heads\":3,\"num_key_value_heads\":3}},\"layer_types\":[\"full_attention\","
     "\"indexed_attention\",\"sliding_attention\"]}",
     {ENDS(101, 96), HEAD(101, 96), NORMS(2, 96, 3), LATENT(96, 6, 17, 19, 7, 4, 5, 2),
      LATENT(96, 3, 17, 29, 7, 4, 5, 1), EACH("k_rope_only_layernorm", 1, 4, 3), EACH("g_proj", 6, 96, 2),
      EACH("g_proj", 3, 96, 1), DSA_INDEX(96, 17, 3, 12, 1), GATED(96, 88, 3)},
     2 * 23 + 12,
     33,
     0,
     0},
    {"laguna with a gate an element", /* gating says other than true or "per-head" */
     "{\"model_type\":\"laguna\",\"gating\":false,\"num_experts\":9,\"shared_expert_intermediate_size\":40,"
     "\"moe_layers_enum\":\"1\"" SMALL
     ",\"moe_intermediate_size\":24,\"num_experts_per_tok\":2,\"num_hidden_layers\":2}",
     {ENDS(101, 96), HEAD(101, 96), NORMS(2, 96, 2), QKVO(120, 40, 96, 2), EACH("g_proj", 120, 96, 2), QK_NORMS(20, 2),
      GATED(96, 88, 1), EXPERTS(96, 24, 1, 9, 2), GATED(96, 40, 1), EACH("gate", 9, 96, 1),
      EACH("e_score_correction_bias", 1, 9, 1)},
     2 * 2 * 40,
     0,
     0,
     0},
    {"nemotron-h with biases", /* of MLPs, shared experts and the ways into the experts' space; never of attention */
     "{\"model_type\":\"nemotron_h\",\"architectures\":[\"NemotronHForCausalLM\"],\"hybrid_override_pattern\":\"*-E\","
     "\"tie_word_embeddings\":true,\"attention_bias\":true,\"mlp_bias\":true,\"n_routed_experts\":9,"
     "\"moe_latent_size\":40,\"moe_shared_expert_intermediate_size\":56" SMALL ",\"moe_intermediate_size\":24,"
     "\"num_experts_per_tok\":2,\"num_hidden_layers\":3}",
     {ENDS(101, 96),
      HEAD(101, 96),
      NORMS(1, 96, 3),
      QKVO(120, 40, 96, 1),
      EACH("up_proj, down_proj", 2 * 88, 96, 1),
      EACH("up, down biases", 1, 88 + 96, 1),
      {"experts.up_proj, down_proj", 2 * 24, 40, 9, 2},
      EACH("gate", 9, 96, 1),
      EACH("e_score_correction_bias", 1, 9, 1),
      EACH("fc1_latent_proj, fc2_latent_proj", 2 * 40, 96, 1),
      EACH("fc1, fc2 latent biases", 1, 40 + 96, 1),
      EACH("shared_experts.up_proj, down_proj", 2 * 56, 96, 1),
      EACH("shared_experts biases", 1, 56 + 96, 1)},
     2 * 40,
     0,
     0,
     0},
    {"qwen2.5-omni's thinker", /* the outer word alone counts, and is no where it is missing */
     "{\"model_type\":\"qwen2_5_omni_thinker\",\"text_config\":{\"model_type\":\"qwen2_5_omni_text\","
     "\"tie_word_embeddings\":true,\"hidden_size\":96,\"num_attention_heads\":6,\"num_key_value_heads\":2,"
     "\"intermediate_size\":88,\"vocab_size\":101,\"num_hidden_layers\":2}}",
     {ENDS(101, 96), HEAD(101, 96), NORMS(2, 96, 2), QKVO(96, 32, 96, 2), EACH("q, k, v biases", 1, 160, 2),
      GATED(96, 88, 2)},
     2 * 2 * 32,
     0,
     0,
     0},
    {"glm-5.3-flash in the words of its class",
     "{\"model_type\":\"glm5_next\",\"hidden_size\":36,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
     "\"kv_lora_rank\":17,\"q_lora_rank\":11,\"qk_nope_head_dim\":7,\"qk_rope_head_dim\":0,\"v_head_dim\":9,"
     "\"intermediate_size\":29,\"moe_intermediate_size\":13,\"vocab_size\":101,\"index_topk\":12,\"index_kpool\":4,"
     "\"index_n_heads\":2,\"index_head_dim\":8,\"linear_num_heads\":3,\"linear_head_dim\":5,"
     "\"linear_conv_kernel_dim\":4,\"first_k_dense_replace\":2,"
     "\"layer_types\":[\"linear_attention\",\"indexed_attention\"]}",
     {ENDS(101, 36),
      HEAD(101, 36),
      NORMS(2, 36, 2),
      LATENT(36, 4, 11, 17, 7, 0, 9, 1),
      EACH("q_proj, k_proj, v_proj", 45, 36, 1),
      EACH("o_proj", 36, 15, 1),
      EACH("b_proj", 3, 36, 1),
      EACH("f_a_proj, g_a_proj", 10, 36, 1),
      EACH("f_b_proj, g_b_proj", 2 * 15, 5, 1),
      EACH("conv1d", 45, 4, 1),
      EACH("A_log", 1, 3, 1),
      EACH("dt_bias", 1, 15, 1),
      EACH("o_norm", 1, 5, 1),
      EACH("indexer.wq_b", 16, 11, 1),
      EACH("indexer.wk", 8, 36, 1),
      EACH("indexer.k_norm", 2, 8, 1),
      EACH("indexer.weights_proj", 2, 36, 1),
      EACH("index_kpool_compress_gate", 8, 36, 1),
      EACH("index_kpool_compress_ape", 4, 8, 1),
      EACH("hc fn", 2 * 24, 4 * 36, 2),
      EACH("hc base, scale", 2, 24 + 3, 2),
      GATED(36, 29, 2)},
     17 + 8 / 4,
     0,
     3 * 3 * 15,
     3 * 25 + 2 * 4 * 8},
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

static void test_refused(void **state)
{
#define LARGE "{\"model_type\":\"mistral_large4\",\"text_config\":{\"model_type\":\"mistral_large4_text\","
    static const struct refused CASES[] = {
        {LARGE "\"num_hidden_layers\":2,\"kv_source_layers\":[0,0]}}", "shared latents are not described"},
        {LARGE "\"q_lora_rank\":1536}}", "queries of the mistral_large4 family have no latent"},
        {LARGE "\"index_topk_freq\":4}}", "index_topk_freq without indexer_types is not read"},
        /* a window is no detail of a family whose recurrent layers stand beside full ones */
        {"{\"model_type\":\"lfm2\"" SMALL ",\"num_hidden_layers\":2,\"block_auto_adjust_ff_dim\":false,"
         "\"layer_types\":[\"conv\",\"sliding_attention\"]}",
         "wanted a kind of layer that the family describes"},
        {"{\"model_type\":\"molmo2_text\",\"num_hidden_layers\":2,\"qk_norm_type\":\"llama\"" SMALL "}",
         "wanted \"qwen3\" or \"olmo\""},
        {"{\"model_type\":\"muse_glimmer_text\",\"num_hidden_layers\":2,\"layer_rope_theta\":[1]" SMALL "}",
         "a list of one number per layer"},
        {"{\"model_type\":\"dots3_note\",\"text_config\":{\"model_type\":\"dots3_note_text\",\"swa_head_dim\":192}}",
         "none is left that does"},
        {"{\"model_type\":\"dots3_note\",\"text_config\":{\"model_type\":\"dots3_note_text\",\"num_hidden_layers\":1,"
         "\"layer_types\":[\"linear_attention\"]}}",
         "\"indexed_attention\" or \"sliding_attention\""},
        /* known, and not described: the reason, not the nearest name */
        {"{\"model_type\":\"inkling_mm_model\",\"text_config\":{\"model_type\":\"inkling_text\"}}",
         "convolutions of keys, values and both blocks"},
        {"{\"model_type\":\"unlimited_ocr\",\"text_config\":{\"model_type\":\"unlimited_ocr_text\"}}",
         "attention to the whole prompt and a window of what follows"},
        /* a space for experts that other families know nothing of */
        {"{\"model_type\":\"qwen3_moe\"" SMALL_EXPERTS NINE ",\"moe_hidden_size\":40}", "moe_hidden_size means"},
    };
    (void)state;
    families_refused(CASES, sizeof CASES / sizeof CASES[0]);
}

/* Of one operator in a pass, all layers that have it together: elementwise flops, bytes of activations, of weights. */
struct work {
    const char *name;
    double flops, activations, weights;
};

static void check_work(const char *name, const struct work *want, size_t n)
{
    static const struct cost_conventions PLAIN = {0};
    const struct subject *s = SUBJECTS;
    while (strcmp(s->model, name) != 0) s++;
    struct arena *a = arena_open();
    struct sym_ctx *c = sym_open(a);
    struct cost_ops ops;
    struct err e = {.code = ERR_OK};
    const struct model m = families_read(a, s);
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_pass pass = {
        .name = "decode", .B = sym_int(c, 7), .T = sym_int(c, 1), .S = sym_int(c, 19), .absorbed = true};
    assert_int_equal(cost_build(a, c, &y, &m, &PLAIN, &pass, 1, &ops, &e), ERR_OK);
    assert_int_equal(cost_bind(c, &y, &m, 1, &ops, &e), ERR_OK);
    for (size_t k = 0; k < n; k++) {
        double flops = 0, activations = 0, weights = 0, v;
        for (size_t i = 0; i < ops.n; i++) {
            const struct cost_op *op = &ops.op[i];
            if (strcmp(op->name, want[k].name) != 0) continue;
            assert_true(sym_constant(op->vector_flops, &v));
            flops += (double)op->count * v;
            assert_true(sym_constant(op->activation_bytes, &v));
            activations += (double)op->count * v;
            assert_true(sym_constant(op->weight_bytes, &v));
            weights += (double)op->count * v;
        }
        if (fabs(flops - want[k].flops) > 1e-6 || fabs(activations - want[k].activations) > 1e-6 ||
            fabs(weights - want[k].weights) > 1e-6)
            fail_msg("%s of %s: %g flops, %g and %g bytes", want[k].name, name, flops, activations, weights);
    }
    arena_close(a);
}

/* By hand, 7 sequences of one token each in 2 bytes. Muse: the embedding's norm has 3 flops an element and no weight,
 * that behind attention too; a sum with the stream is two products and a sum; a norm of 4 flops of what enters the
 * experts' space and of what each of two gives. Beam: a gate of an element has one sum more. Mistral: a head's factor
 * is a product and a sum; the layer norm of the stream 7 flops. */
static void test_work(void **state)
{
    static const struct work SPARK[] = {
        {"embed_norm", 7 * 96 * 3, 7 * 96 * 4, 0},
        {"mixer_plain_norm", 5 * 7 * 96 * 3, 5 * 7 * 96 * 4, 0},
        {"mixer_residual", 5 * 7 * 96 * 3, 5 * 7 * 96 * 6, 5 * 96 * 2},
        {"mlp_residual", 5 * 7 * 96 * 3, 5 * 7 * 96 * 6, 5 * 96 * 2},
        {"latent_in_norm", 3 * 7 * 40 * 4, 3 * 7 * 40 * 4, 3 * 40 * 2},
        {"experts_norm", 3 * 7 * 2 * 40 * 4, 3 * 7 * 2 * 40 * 4, 3 * 40 * 2},
    };
    static const struct work BEAM[] = {{"output_gate", 7 * 7 * 120 * 6, 7 * 7 * 120 * 6, 7 * 6 * 2}};
    static const struct work GLIMMER[] = {{"output_gate", 6 * 7 * 120 * 5, 6 * 7 * 120 * 6, 0}};
    static const struct work MISTRAL[] = {
        {"rope_scales", 2 * 2, 0, 2 * 2},
        {"q_scale", 5 * 7 * 6 * (2 + 11), 5 * 7 * 6 * 11 * 4, 5 * 6 * 2 * 2},
        {"index_q_norm", 3 * 7 * 96 * 7, 3 * 7 * 96 * 4, 3 * 96 * 2 * 2},
        {"index_q_scale", 3 * 7 * 3 * (2 + 12), 3 * 7 * 3 * 12 * 4, 3 * 3 * 2 * 2},
    };
    (void)state;
    check_work("muse-spark with dense layers and biases", SPARK, sizeof SPARK / sizeof SPARK[0]);
    static const struct work DOTS[] = {{"k_rope_norm", 3 * 7 * 4 * 4, 3 * 7 * 4 * 4, 3 * 4 * 2}};
    check_work("dots3-note layer by layer", DOTS, 1);
    check_work("beam tied, with biases", BEAM, 1);
    check_work("muse-glimmer tied, with biases", GLIMMER, 1);
    check_work("mistral large 4 tied, with shared choices", MISTRAL, sizeof MISTRAL / sizeof MISTRAL[0]);
}

/* What each expert gives is normed as a whole: ranks have whole experts, or it is not known how they do that. */
static void test_ranks(void **state)
{
    static const struct {
        struct layout layout;
        enum err_code code;
    } CASES[] = {
        {{.tp = 1}, ERR_OK}, {{.tp = 2}, ERR_USAGE}, {{.tp = 2, .ep = 2}, ERR_OK}, {{.tp = 4, .ep = 2}, ERR_USAGE}};
    struct arena *a = arena_open();
    (void)state;
    for (size_t i = 0; i < sizeof SUBJECTS / sizeof SUBJECTS[0]; i++) {
        const bool large = strcmp(SUBJECTS[i].model, "muse-spark-open-816b-a42b") == 0;
        if (!large && strcmp(SUBJECTS[i].model, "beam-1.0-501b-a23b") != 0) continue;
        const struct model m = families_read(a, &SUBJECTS[i]);
        for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
            struct err e = {.code = ERR_OK};
            assert_int_equal(layout_check(&m, &CASES[k].layout, &e), large ? CASES[k].code : ERR_OK);
            if (large && CASES[k].code != ERR_OK) assert_non_null(strstr(e.text, "ranks that split an expert"));
        }
    }
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tensors), cmocka_unit_test(test_caches),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_work),
                                       cmocka_unit_test(test_ranks)};
    return cmocka_run_group_tests_name("families_newest", tests, NULL, NULL);
}
