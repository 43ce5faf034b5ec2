/* naive_draft_models -- small draft heads, multi-token modules, diffusion models and layers for images. */
#ifndef RIDGE_TESTS_NAIVE_DRAFT_MODELS_H
#define RIDGE_TESTS_NAIVE_DRAFT_MODELS_H

#include "tests/naive_recurrent_models.h"

/* clang-format off */
#define RMS .norm_flops = 4, .norm_vectors = 1
static const struct subject EAGLE1 = { /* known by its architecture; the first layer takes the joined vector bare */
    "{\"model_type\":\"llama\",\"architectures\":[\"LlamaForCausalLMEagle\"],\"hidden_size\":14,"
    "\"num_hidden_layers\":2,\"num_attention_heads\":6,\"num_key_value_heads\":3,\"head_dim\":5,"
    "\"intermediate_size\":11,\"vocab_size\":23}",
    "01",
    {.vocab = 23, .hidden = 14, RMS, .joined = 2, .joined_bias = true, .embed_borrowed = true, .head_borrowed = true,
     .no_final_norm = true},
    {{.heads = 6, .kv_heads = 3, .key_dim = 5, .value_dim = 5, .norms = 1, .width = 11},
     {.heads = 6, .kv_heads = 3, .key_dim = 5, .value_dim = 5, .norms = 2, .width = 11}}};

static const struct subject EAGLE3 = { /* known by its draft vocabulary */
    "{\"model_type\":\"llama\",\"architectures\":[\"LlamaForCausalLM\"],\"hidden_size\":10,"
    "\"num_hidden_layers\":1,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":7,"
    "\"intermediate_size\":13,\"vocab_size\":29,\"draft_vocab_size\":17}",
    "0",
    {.vocab = 29, .hidden = 10, RMS, .joined = 3, .embed_borrowed = true, .head_rows = 17},
    {{.heads = 4, .kv_heads = 2, .key_dim = 7, .value_dim = 7, .norms = 3, .width = 13, .doubled_input = true}}};

static const struct subject DFLASH = {
    "{\"model_type\":\"qwen3\",\"hidden_size\":12,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":5,\"intermediate_size\":8,\"vocab_size\":19,\"block_size\":4,"
    "\"dflash_config\":{\"target_layer_ids\":[1,4,7]}}",
    "00",
    {.vocab = 19, .hidden = 12, RMS, .joined = 3, .norms_after = 1, .embed_borrowed = true, .head_borrowed = true},
    {{.heads = 4, .kv_heads = 2, .key_dim = 5, .value_dim = 5, .norms = 2, .width = 8, .qk_norm = true,
      .both_ways = true, .features_kv = true}}};

static const struct subject MEDUSA = { /* three heads of two units */
    "{\"medusa_num_heads\":3,\"medusa_num_layers\":2,\"hidden_size\":11,\"vocab_size\":13}",
    "000000",
    {.vocab = 13, .hidden = 11, RMS, .no_embedding = true, .no_final_norm = true, .heads = 3},
    {{.no_mixer = true, .residual_unit = true, .mlp_bias = true}}};

static const struct subject MLLAMA = {
    "{\"model_type\":\"mllama\",\"text_config\":{\"model_type\":\"mllama_text_model\",\"hidden_size\":12,"
    "\"num_hidden_layers\":3,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"intermediate_size\":7,"
    "\"vocab_size\":23,\"cross_attention_layers\":[1]}}",
    "010",
    {.vocab = 23, .hidden = 12, RMS, .embed_extra = 8},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 7},
     {.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 7, .qk_norm = true,
      .unrotated = true, .images = true}}};

static const struct subject LLADA = {
    "{\"model_type\":\"llada\",\"d_model\":12,\"n_layers\":2,\"n_heads\":4,\"n_kv_heads\":4,"
    "\"mlp_hidden_size\":10,\"vocab_size\":21,\"embedding_size\":21,\"weight_tying\":false,"
    "\"include_bias\":false,\"include_qkv_bias\":false,\"block_type\":\"llama\",\"layer_norm_type\":\"rms\","
    "\"attention_layer_norm\":false,\"rope\":true,\"max_sequence_length\":64}",
    "00",
    {.vocab = 21, .hidden = 12, RMS},
    {{.heads = 4, .kv_heads = 4, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 10, .both_ways = true}}};

static const struct subject DREAM = {
    "{\"model_type\":\"Dream\",\"hidden_size\":14,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
    "\"num_key_value_heads\":1,\"intermediate_size\":9,\"vocab_size\":17,\"use_sliding_window\":false}",
    "00",
    {.vocab = 17, .hidden = 14, RMS},
    {{.heads = 2, .kv_heads = 1, .key_dim = 7, .value_dim = 7, .norms = 2, .width = 9, .qkv_bias = true,
      .both_ways = true}}};

static const struct subject SDAR = { /* blocks of four */
    "{\"model_type\":\"sdar\",\"hidden_size\":10,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":7,\"intermediate_size\":5,\"vocab_size\":21}",
    "00",
    {.vocab = 21, .hidden = 10, RMS},
    {{.heads = 4, .kv_heads = 2, .key_dim = 7, .value_dim = 7, .norms = 2, .width = 5, .qk_norm = true,
      .both_ways = true, .block = 4}}};

/* Modules of multi-token prediction: what the model beside them is does not matter here. */
static const struct subject MTP_COPIED = {
    "{\"model_type\":\"glm4_moe\",\"hidden_size\":10,\"num_hidden_layers\":3,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":3,\"intermediate_size\":13,\"moe_intermediate_size\":5,"
    "\"n_routed_experts\":6,\"num_experts_per_tok\":2,\"vocab_size\":17,\"num_nextn_predict_layers\":1}",
    "0",
    {.vocab = 17, .hidden = 10, RMS, .joined = 2, .norms_before = 2},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .experts = 6, .chosen = 2,
      .expert_width = 5, .shared_width = 5, .correction = true}}};

static const struct subject MTP_STACKED = { /* two layers in one module; the head is the embedding */
    "{\"model_type\":\"qwen3_5\",\"hidden_size\":10,\"num_hidden_layers\":4,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":3,\"intermediate_size\":7,\"vocab_size\":19,"
    "\"linear_num_key_heads\":2,\"linear_num_value_heads\":4,\"linear_key_head_dim\":3,"
    "\"linear_value_head_dim\":5,\"linear_conv_kernel_dim\":4,\"mtp_num_hidden_layers\":2,"
    "\"tie_word_embeddings\":true}",
    "00",
    {.vocab = 19, .hidden = 10, RMS, .joined = 2, .norms_before = 2, .embed_borrowed = true, .head_borrowed = true,
     .tied = true},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 7, .qk_norm = true,
      .output_gate = true}}};

static const struct subject MTP_LETTERED = { /* a pattern of its own: a layer of attention, one of experts */
    "{\"model_type\":\"nemotron_h\",\"hidden_size\":10,\"num_hidden_layers\":6,"
    "\"hybrid_override_pattern\":\"MEM*-E\",\"mamba_num_heads\":6,\"mamba_head_dim\":3,\"n_groups\":3,"
    "\"ssm_state_size\":4,\"conv_kernel\":4,\"chunk_size\":6,\"expand\":2,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":5,\"intermediate_size\":9,\"n_routed_experts\":7,"
    "\"num_experts_per_tok\":3,\"moe_intermediate_size\":5,\"moe_shared_expert_intermediate_size\":8,"
    "\"n_shared_experts\":1,\"moe_latent_size\":3,\"vocab_size\":19,\"num_nextn_predict_layers\":1,"
    "\"mtp_hybrid_override_pattern\":\"*E\"}",
    "01",
    {.vocab = 19, .hidden = 10, RMS, .joined = 2, .norms_before = 2, .embed_borrowed = true, .head_borrowed = true},
    {{.heads = 4, .kv_heads = 2, .key_dim = 5, .value_dim = 5, .norms = 1, .unrotated = true, .no_mlp = true},
     {.no_mixer = true, .norms = 1, .ungated = true, .experts = 7, .chosen = 3, .expert_width = 5, .shared_width = 8,
      .latent = 3, .correction = true}}};

/* Heads and widths that divide over two and four ranks. */
static const struct subject SPLIT_EAGLE3 = {
    "{\"model_type\":\"llama\",\"hidden_size\":10,\"num_hidden_layers\":1,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":3,\"intermediate_size\":8,\"vocab_size\":29,\"draft_vocab_size\":18}",
    "0",
    {.vocab = 29, .hidden = 10, RMS, .joined = 3, .embed_borrowed = true, .head_rows = 18},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 3, .width = 8, .doubled_input = true}}};
/* clang-format on */
#undef RMS

#endif
