/* naive_recurrent_models -- small models with recurrent mixers: a config.json, and the architecture that it means. */
#ifndef RIDGE_TESTS_NAIVE_RECURRENT_MODELS_H
#define RIDGE_TESTS_NAIVE_RECURRENT_MODELS_H

#include "tests/naive_models.h"

/* clang-format off */
#define RMS .norm_flops = 4, .norm_vectors = 1

static const struct subject MAMBA = { /* time step rank of "auto": ceil(31/16) */
    "{\"model_type\":\"mamba\",\"hidden_size\":31,\"num_hidden_layers\":3,\"state_size\":5,\"expand\":2,"
    "\"conv_kernel\":4,\"time_step_rank\":\"auto\",\"vocab_size\":13}",
    "000",
    {.vocab = 13, .hidden = 31, RMS, .tied = true},
    {{.heads = 62, .kv_heads = 1, .key_dim = 5, .value_dim = 1, .norms = 1, .no_mlp = true,
      .state = {.block = NAIVE_SELECTIVE, .taps = 4, .rank = 2, .conv_bias = true}}}};

static const struct subject FALCON_MAMBA = { /* intermediate_size wins over expand */
    "{\"model_type\":\"falcon_mamba\",\"hidden_size\":11,\"num_hidden_layers\":2,\"state_size\":3,\"expand\":16,"
    "\"intermediate_size\":14,\"conv_kernel\":3,\"time_step_rank\":2,\"vocab_size\":17,\"use_bias\":true,"
    "\"use_conv_bias\":false,\"tie_word_embeddings\":false}",
    "00",
    {.vocab = 17, .hidden = 11, RMS},
    {{.heads = 14, .kv_heads = 1, .key_dim = 3, .value_dim = 1, .norms = 1, .no_mlp = true,
      .state = {.block = NAIVE_SELECTIVE, .taps = 3, .rank = 2, .proj_bias = true, .inner_norms = true}}}};

static const struct subject MAMBA2 = { /* heads by division, two groups of three heads; chunks of 5 */
    "{\"model_type\":\"mamba2\",\"hidden_size\":9,\"num_hidden_layers\":2,\"state_size\":7,\"expand\":2,"
    "\"head_dim\":3,\"n_groups\":2,\"conv_kernel\":4,\"chunk_size\":5,\"vocab_size\":15,"
    "\"mamba_ssm_dtype\":\"bfloat16\"}",
    "00",
    {.vocab = 15, .hidden = 9, RMS, .state_bytes = 2},
    {{.heads = 6, .kv_heads = 2, .key_dim = 7, .value_dim = 3, .norms = 1, .no_mlp = true,
      .state = {.block = NAIVE_SSD, .taps = 4, .chunk = 5, .conv_bias = true, .decay = NAIVE_DECAY_HEAD,
                .wide_norm = true}}}};

static const struct subject JAMBA = { /* attention at 1, experts at odd layers */
    "{\"model_type\":\"jamba\",\"hidden_size\":12,\"num_hidden_layers\":4,\"attn_layer_period\":4,"
    "\"attn_layer_offset\":1,\"expert_layer_period\":2,\"expert_layer_offset\":1,\"num_experts\":5,"
    "\"num_experts_per_tok\":2,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"intermediate_size\":7,"
    "\"mamba_d_state\":3,\"mamba_d_conv\":4,\"mamba_expand\":2,\"mamba_dt_rank\":5,\"vocab_size\":11}",
    "0102",
    {.vocab = 11, .hidden = 12, RMS},
    {{.heads = 24, .kv_heads = 1, .key_dim = 3, .value_dim = 1, .norms = 2, .width = 7,
      .state = {.block = NAIVE_SELECTIVE, .taps = 4, .rank = 5, .conv_bias = true, .inner_norms = true,
                .inner_weights = true}},
     {.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .unrotated = true, .experts = 5, .chosen = 2,
      .expert_width = 7},
     {.heads = 24, .kv_heads = 1, .key_dim = 3, .value_dim = 1, .norms = 2, .experts = 5, .chosen = 2,
      .expert_width = 7,
      .state = {.block = NAIVE_SELECTIVE, .taps = 4, .rank = 5, .conv_bias = true, .inner_norms = true,
                .inner_weights = true}}}};

#define ZAMBA_BLOCK .heads = 2, .kv_heads = 2, .key_dim = 10, .value_dim = 10, .norms = 3, .doubled_input = true, \
    .width = 7, .adapter_rank = 3, .out_proj = true, .one_residual = true

static const struct subject ZAMBA2 = { /* two shared blocks, the third use borrows */
    "{\"model_type\":\"zamba2\",\"hidden_size\":10,\"num_hidden_layers\":5,\"num_mem_blocks\":2,"
    "\"layers_block_type\":[\"mamba\",\"hybrid\",\"mamba\",\"hybrid\",\"hybrid\"],\"num_attention_heads\":2,"
    "\"num_key_value_heads\":2,\"kv_channels\":5,\"ffn_hidden_size\":7,\"lora_rank\":3,\"state_size\":3,"
    "\"conv_dimension\":3,\"expansion_factor\":2,\"mamba_headdim\":5,\"mamba_ngroups\":2,\"chunk_size\":3,"
    "\"vocab_size\":17,\"use_mem_rope\":true}",
    "01001020",
    {.vocab = 17, .hidden = 10, RMS, .tied = true},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 5, .norms = 1, .no_mlp = true,
      .state = {.block = NAIVE_SSD, .taps = 3, .chunk = 3, .conv_bias = true, .decay = NAIVE_DECAY_HEAD,
                .wide_norm = true}},
     {ZAMBA_BLOCK},
     {ZAMBA_BLOCK, .borrowed = true}}};

static const struct subject NEMOTRON_H = { /* one block a layer; experts in a latent space */
    "{\"model_type\":\"nemotron_h\",\"hidden_size\":10,\"num_hidden_layers\":6,"
    "\"hybrid_override_pattern\":\"MEM*-E\",\"mamba_num_heads\":6,\"mamba_head_dim\":3,\"n_groups\":3,"
    "\"ssm_state_size\":4,\"conv_kernel\":4,\"chunk_size\":6,\"expand\":2,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":5,\"intermediate_size\":9,\"n_routed_experts\":7,"
    "\"num_experts_per_tok\":3,\"moe_intermediate_size\":5,\"moe_shared_expert_intermediate_size\":8,"
    "\"n_shared_experts\":1,\"moe_latent_size\":3,\"vocab_size\":19,\"mlp_bias\":true}",
    "010231",
    {.vocab = 19, .hidden = 10, RMS},
    {{.heads = 6, .kv_heads = 3, .key_dim = 4, .value_dim = 3, .norms = 1, .no_mlp = true,
      .state = {.block = NAIVE_SSD, .taps = 4, .chunk = 6, .conv_bias = true, .decay = NAIVE_DECAY_HEAD,
                .wide_norm = true}},
     {.no_mixer = true, .norms = 1, .ungated = true, .experts = 7, .chosen = 3, .expert_width = 5, .shared_width = 8,
      .latent = 3, .correction = true},
     {.heads = 4, .kv_heads = 2, .key_dim = 5, .value_dim = 5, .norms = 1, .no_mlp = true, .unrotated = true},
     {.no_mixer = true, .norms = 1, .ungated = true, .width = 9, .mlp_bias = true}}};

static const struct subject GRANITE_HYBRID = { /* a shared MLP beside the experts of every layer */
    "{\"model_type\":\"granitemoehybrid\",\"hidden_size\":12,\"num_hidden_layers\":3,"
    "\"layer_types\":[\"mamba\",\"attention\",\"mamba\"],\"mamba_n_heads\":8,\"mamba_d_head\":\"auto\","
    "\"mamba_expand\":2,\"mamba_n_groups\":1,\"mamba_d_state\":5,\"mamba_d_conv\":4,\"mamba_chunk_size\":4,"
    "\"num_attention_heads\":4,\"num_key_value_heads\":1,\"intermediate_size\":6,\"num_local_experts\":5,"
    "\"num_experts_per_tok\":2,\"shared_intermediate_size\":9,\"vocab_size\":13}",
    "010",
    {.vocab = 13, .hidden = 12, RMS, .tied = true},
    {{.heads = 8, .kv_heads = 1, .key_dim = 5, .value_dim = 3, .norms = 2, .experts = 5, .chosen = 2,
      .expert_width = 6, .shared_width = 9,
      .state = {.block = NAIVE_SSD, .taps = 4, .chunk = 4, .conv_bias = true, .decay = NAIVE_DECAY_HEAD,
                .wide_norm = true}},
     {.heads = 4, .kv_heads = 1, .key_dim = 3, .value_dim = 3, .norms = 2, .unrotated = true, .experts = 5, .chosen = 2,
      .expert_width = 6, .shared_width = 9}}};

static const struct subject QWEN3_NEXT = { /* two value heads a key head; every second layer attends */
    "{\"model_type\":\"qwen3_next\",\"hidden_size\":11,\"num_hidden_layers\":4,\"full_attention_interval\":2,"
    "\"linear_num_key_heads\":2,\"linear_num_value_heads\":4,\"linear_key_head_dim\":3,"
    "\"linear_value_head_dim\":5,\"linear_conv_kernel_dim\":4,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":3,\"num_experts\":6,\"num_experts_per_tok\":2,"
    "\"moe_intermediate_size\":5,\"shared_expert_intermediate_size\":7,\"vocab_size\":14}",
    "0101",
    {.vocab = 14, .hidden = 11, RMS},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 5, .norms = 2, .experts = 6, .chosen = 2,
      .expert_width = 5, .shared_width = 7, .shared_gate = true,
      .state = {.block = NAIVE_LINEAR, .taps = 4, .chunk = 64, .delta = true, .decay = NAIVE_DECAY_HEAD,
                .decay_weights = true, .gate = true, .head_norm = true}},
     {.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .qk_norm = true, .output_gate = true,
      .experts = 6, .chosen = 2, .expert_width = 5, .shared_width = 7, .shared_gate = true}}};

static const struct subject QWEN3_5 = { /* dense, words for layers, a text part */
    "{\"model_type\":\"qwen3_5\",\"tie_word_embeddings\":true,\"text_config\":{\"model_type\":\"qwen3_5_text\","
    "\"hidden_size\":7,\"num_hidden_layers\":3,\"layer_types\":[\"full_attention\",\"linear_attention\","
    "\"linear_attention\"],\"linear_num_key_heads\":3,\"linear_num_value_heads\":3,\"linear_key_head_dim\":2,"
    "\"linear_value_head_dim\":3,\"linear_conv_kernel_dim\":3,\"num_attention_heads\":2,"
    "\"num_key_value_heads\":1,\"head_dim\":5,\"intermediate_size\":8,\"vocab_size\":12,"
    "\"mamba_ssm_dtype\":\"float16\"}}",
    "011",
    {.vocab = 12, .hidden = 7, RMS, .tied = true, .state_bytes = 2},
    {{.heads = 2, .kv_heads = 1, .key_dim = 5, .value_dim = 5, .norms = 2, .qk_norm = true, .output_gate = true,
      .width = 8},
     {.heads = 3, .kv_heads = 3, .key_dim = 2, .value_dim = 3, .norms = 2, .width = 8,
      .state = {.block = NAIVE_LINEAR, .taps = 3, .chunk = 64, .delta = true, .decay = NAIVE_DECAY_HEAD,
                .decay_weights = true, .gate = true, .head_norm = true}}}};

#define KDA_STATE .state = {.block = NAIVE_LINEAR, .taps = 4, .chunk = 64, .rank = 5, .delta = true, \
    .decay = NAIVE_DECAY_CHANNEL, .decay_weights = true, .gate = true, .gate_low_rank = true, .head_norm = true}

static const struct subject KIMI_LINEAR = { /* layers counted from 1; a dense layer first */
    "{\"model_type\":\"kimi_linear\",\"hidden_size\":9,\"num_hidden_layers\":3,\"linear_attn_config\":"
    "{\"full_attn_layers\":[3],\"kda_layers\":[1,2],\"num_heads\":3,\"head_dim\":5,"
    "\"short_conv_kernel_size\":4},\"num_attention_heads\":4,\"num_key_value_heads\":4,\"q_lora_rank\":null,"
    "\"kv_lora_rank\":6,\"qk_nope_head_dim\":3,\"qk_rope_head_dim\":2,\"v_head_dim\":3,\"intermediate_size\":7,"
    "\"num_experts\":5,\"num_experts_per_token\":2,\"moe_intermediate_size\":4,\"num_shared_experts\":1,"
    "\"first_k_dense_replace\":1,\"moe_layer_freq\":1,\"vocab_size\":11,\"tie_word_embeddings\":false}",
    "012",
    {.vocab = 11, .hidden = 9, RMS},
    {{.heads = 3, .kv_heads = 3, .key_dim = 5, .value_dim = 5, .norms = 2, .width = 7, KDA_STATE},
     {.heads = 3, .kv_heads = 3, .key_dim = 5, .value_dim = 5, .norms = 2, .experts = 5, .chosen = 2,
      .expert_width = 4, .shared_width = 4, .correction = true, KDA_STATE},
     {.heads = 4, .key_dim = 3, .value_dim = 3, .kv_rank = 6, .rope_dim = 2, .norms = 2, .unrotated = true, .experts = 5,
      .chosen = 2, .expert_width = 4, .shared_width = 4, .correction = true}}};

static const struct subject MINIMAX = { /* linear layers share no heads, full ones do */
    "{\"model_type\":\"minimax_m1\",\"hidden_size\":9,\"num_hidden_layers\":3,\"attn_type_list\":[0,0,1],"
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":3,\"intermediate_size\":5,"
    "\"num_local_experts\":6,\"num_experts_per_tok\":2,\"shared_intermediate_size\":0,\"vocab_size\":16,"
    "\"tie_word_embeddings\":false}",
    "001",
    {.vocab = 16, .hidden = 9, RMS},
    {{.heads = 4, .kv_heads = 4, .key_dim = 3, .value_dim = 3, .norms = 2, .experts = 6, .chosen = 2,
      .expert_width = 5,
      .state = {.block = NAIVE_LINEAR, .chunk = 256, .decay = NAIVE_DECAY_FIXED, .gate = true, .wide_norm = true,
                .activated = true}},
     {.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .experts = 6, .chosen = 2,
      .expert_width = 5}}};

static const struct subject LFM2 = { /* 2/3 of 27 rounded up to a multiple of 4 */
    "{\"model_type\":\"lfm2\",\"hidden_size\":8,\"num_hidden_layers\":3,\"full_attn_idxs\":[1],"
    "\"conv_L_cache\":3,\"conv_bias\":true,\"num_attention_heads\":4,\"num_heads\":4,\"num_key_value_heads\":2,"
    "\"block_ff_dim\":27,\"block_multiple_of\":4,\"block_auto_adjust_ff_dim\":true,\"vocab_size\":13}",
    "010",
    {.vocab = 13, .hidden = 8, RMS, .tied = true},
    {{.heads = 8, .kv_heads = 8, .value_dim = 1, .norms = 2, .width = 20,
      .state = {.block = NAIVE_CONV, .taps = 3, .conv_bias = true, .proj_bias = true}},
     {.heads = 4, .kv_heads = 2, .key_dim = 2, .value_dim = 2, .norms = 2, .width = 20, .qk_norm = true}}};

static const struct subject RECURRENT_GEMMA = { /* two of three layers recur; half of intermediate_size */
    "{\"model_type\":\"recurrent_gemma\",\"hidden_size\":10,\"num_hidden_layers\":4,\"lru_width\":6,"
    "\"block_types\":[\"recurrent\",\"attention\",\"recurrent\"],\"conv1d_width\":4,"
    "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":7,\"intermediate_size\":18,"
    "\"attention_window_size\":5,\"vocab_size\":15}",
    "0100",
    {.vocab = 15, .hidden = 10, RMS, .tied = true},
    {{.heads = 2, .kv_heads = 2, .value_dim = 3, .norms = 2, .width = 9, .mlp_bias = true,
      .state = {.block = NAIVE_LRU, .taps = 4, .conv_bias = true, .proj_bias = true}},
     {.heads = 2, .kv_heads = 1, .key_dim = 7, .value_dim = 7, .norms = 2, .width = 9, .mlp_bias = true,
      .o_bias = true, .window = 5}}};

static const struct subject GATED_DELTANET = { /* values three times as wide as keys, no convolution */
    "{\"model_type\":\"gated_deltanet\",\"hidden_size\":10,\"num_hidden_layers\":2,\"num_heads\":3,"
    "\"head_dim\":2,\"expand_v\":3,\"use_short_conv\":false,\"use_gate\":false,\"hidden_ratio\":4,"
    "\"intermediate_size\":null,\"vocab_size\":9}",
    "00",
    {.vocab = 9, .hidden = 10, RMS},
    {{.heads = 3, .kv_heads = 3, .key_dim = 2, .value_dim = 6, .norms = 2, .width = 256,
      .state = {.block = NAIVE_LINEAR, .chunk = 64, .delta = true, .decay = NAIVE_DECAY_HEAD, .decay_weights = true,
                .head_norm = true}}}};

static const struct subject DELTA_NET = { /* no decay, no gate */
    "{\"model_type\":\"delta_net\",\"hidden_size\":10,\"num_hidden_layers\":2,\"num_heads\":2,\"expand_k\":0.6,"
    "\"conv_size\":4,\"hidden_ratio\":4,\"intermediate_size\":13,\"vocab_size\":9}",
    "00",
    {.vocab = 9, .hidden = 10, RMS},
    {{.heads = 2, .kv_heads = 2, .key_dim = 3, .value_dim = 5, .norms = 2, .width = 13,
      .state = {.block = NAIVE_LINEAR, .taps = 4, .chunk = 64, .delta = true, .head_norm = true}}}};

static const struct subject GLA = { /* a decay a channel of rank 16 with a bias */
    "{\"model_type\":\"gla\",\"hidden_size\":12,\"num_hidden_layers\":2,\"num_heads\":3,\"expand_k\":0.5,"
    "\"expand_v\":1,\"use_short_conv\":true,\"conv_size\":4,\"intermediate_size\":7,\"vocab_size\":10}",
    "00",
    {.vocab = 10, .hidden = 12, RMS},
    {{.heads = 3, .kv_heads = 3, .key_dim = 2, .value_dim = 4, .norms = 2, .width = 7,
      .state = {.block = NAIVE_LINEAR, .taps = 4, .chunk = 64, .rank = 16, .decay = NAIVE_DECAY_CHANNEL,
                .decay_bias = true, .gate = true, .head_norm = true}}}};

static const struct subject RETNET = {
    "{\"model_type\":\"retnet\",\"hidden_size\":8,\"num_hidden_layers\":2,\"num_heads\":2,\"expand_k\":1,"
    "\"expand_v\":2,\"intermediate_size\":11,\"vocab_size\":10}",
    "00",
    {.vocab = 10, .hidden = 8, RMS},
    {{.heads = 2, .kv_heads = 2, .key_dim = 4, .value_dim = 8, .norms = 2, .width = 11,
      .state = {.block = NAIVE_LINEAR, .chunk = 64, .decay = NAIVE_DECAY_FIXED, .gate = true, .head_norm = true,
                .rope = true}}}};

static const struct subject RWKV5 = { /* 7/2 of 20, down to a multiple of 32; a norm after the embedding */
    "{\"model_type\":\"rwkv5\",\"hidden_size\":20,\"num_hidden_layers\":2,\"attention_hidden_size\":12,"
    "\"head_size\":4,\"intermediate_size\":null,\"vocab_size\":10}",
    "00",
    {.vocab = 10, .hidden = 20, .norm_flops = 7, .norm_vectors = 2, .embed_norm = true},
    {{.heads = 3, .kv_heads = 3, .key_dim = 4, .value_dim = 4, .norms = 2, .width = 64, .ungated = true,
      .channel_mix = true, .state = {.block = NAIVE_TIME_MIX}}}};

/* ---- for tensor parallelism: all that is split divides by four, groups and KV heads do not ---- */

static const struct subject SPLIT_JAMBA = {
    "{\"model_type\":\"jamba\",\"hidden_size\":12,\"num_hidden_layers\":2,\"attn_layer_period\":2,"
    "\"attn_layer_offset\":1,\"expert_layer_period\":2,\"expert_layer_offset\":1,\"num_experts\":3,"
    "\"num_experts_per_tok\":2,\"num_attention_heads\":4,\"num_key_value_heads\":1,\"intermediate_size\":8,"
    "\"mamba_d_state\":3,\"mamba_dt_rank\":5,\"mamba_proj_bias\":true,\"vocab_size\":11}",
    "01",
    {.vocab = 11, .hidden = 12, RMS},
    {{.heads = 24, .kv_heads = 1, .key_dim = 3, .value_dim = 1, .norms = 2, .width = 8,
      .state = {.block = NAIVE_SELECTIVE, .taps = 4, .rank = 5, .conv_bias = true, .proj_bias = true,
                .inner_norms = true, .inner_weights = true}},
     {.heads = 4, .kv_heads = 1, .key_dim = 3, .value_dim = 3, .norms = 2, .unrotated = true, .experts = 3, .chosen = 2,
      .expert_width = 8}}};

static const struct subject SPLIT_NEMOTRON_H = {
    "{\"model_type\":\"nemotron_h\",\"hidden_size\":10,\"layers_block_type\":[\"mamba\",\"moe\",\"attention\"],"
    "\"mamba_num_heads\":8,\"mamba_head_dim\":3,\"n_groups\":2,\"ssm_state_size\":5,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":5,\"n_routed_experts\":5,\"num_experts_per_tok\":2,"
    "\"moe_intermediate_size\":4,\"moe_shared_expert_intermediate_size\":8,\"moe_latent_size\":3,"
    "\"vocab_size\":19}",
    "012",
    {.vocab = 19, .hidden = 10, RMS},
    {{.heads = 8, .kv_heads = 2, .key_dim = 5, .value_dim = 3, .norms = 1, .no_mlp = true,
      .state = {.block = NAIVE_SSD, .taps = 4, .chunk = 256, .conv_bias = true, .decay = NAIVE_DECAY_HEAD,
                .wide_norm = true}},
     {.no_mixer = true, .norms = 1, .ungated = true, .experts = 5, .chosen = 2, .expert_width = 4, .shared_width = 8,
      .latent = 3, .correction = true},
     {.heads = 4, .kv_heads = 2, .key_dim = 5, .value_dim = 5, .norms = 1, .no_mlp = true, .unrotated = true}}};

static const struct subject SPLIT_QWEN3_5 = {
    "{\"model_type\":\"qwen3_5_text\",\"hidden_size\":7,\"num_hidden_layers\":2,\"full_attention_interval\":2,"
    "\"linear_num_key_heads\":2,\"linear_num_value_heads\":8,\"linear_key_head_dim\":3,"
    "\"linear_value_head_dim\":5,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":5,"
    "\"intermediate_size\":12,\"vocab_size\":12}",
    "01",
    {.vocab = 12, .hidden = 7, RMS},
    {{.heads = 8, .kv_heads = 2, .key_dim = 3, .value_dim = 5, .norms = 2, .width = 12,
      .state = {.block = NAIVE_LINEAR, .taps = 4, .chunk = 64, .delta = true, .decay = NAIVE_DECAY_HEAD,
                .decay_weights = true, .gate = true, .head_norm = true}},
     {.heads = 4, .kv_heads = 2, .key_dim = 5, .value_dim = 5, .norms = 2, .qk_norm = true, .output_gate = true,
      .width = 12}}};

static const struct subject SPLIT_KIMI = {
    "{\"model_type\":\"kimi_linear\",\"hidden_size\":9,\"num_hidden_layers\":2,\"linear_attn_config\":"
    "{\"full_attn_layers\":[1],\"kda_layers\":[2],\"num_heads\":4,\"head_dim\":5,"
    "\"short_conv_kernel_size\":4},\"num_attention_heads\":4,\"kv_lora_rank\":6,\"qk_nope_head_dim\":3,"
    "\"qk_rope_head_dim\":2,\"v_head_dim\":3,\"intermediate_size\":8,\"num_experts\":3,"
    "\"num_experts_per_token\":2,\"moe_intermediate_size\":4,\"num_shared_experts\":1,"
    "\"first_k_dense_replace\":1,\"vocab_size\":11}",
    "01",
    {.vocab = 11, .hidden = 9, RMS},
    {{.heads = 4, .key_dim = 3, .value_dim = 3, .kv_rank = 6, .rope_dim = 2, .norms = 2, .unrotated = true, .width = 8},
     {.heads = 4, .kv_heads = 4, .key_dim = 5, .value_dim = 5, .norms = 2, .experts = 3, .chosen = 2,
      .expert_width = 4, .shared_width = 4, .correction = true, KDA_STATE}}};

static const struct subject SPLIT_GRIFFIN = {
    "{\"model_type\":\"recurrent_gemma\",\"hidden_size\":10,\"num_hidden_layers\":2,\"lru_width\":12,"
    "\"_block_types\":[\"attention\",\"recurrent\"],\"num_attention_heads\":4,\"head_dim\":7,"
    "\"intermediate_size\":16,\"attention_window_size\":5,\"vocab_size\":15}",
    "01",
    {.vocab = 15, .hidden = 10, RMS, .tied = true},
    {{.heads = 4, .kv_heads = 1, .key_dim = 7, .value_dim = 7, .norms = 2, .width = 8, .mlp_bias = true,
      .o_bias = true, .window = 5},
     {.heads = 4, .kv_heads = 4, .value_dim = 3, .norms = 2, .width = 8, .mlp_bias = true,
      .state = {.block = NAIVE_LRU, .taps = 4, .conv_bias = true, .proj_bias = true}}}};

static const struct subject SPLIT_ZAMBA2 = {
    "{\"model_type\":\"zamba2\",\"hidden_size\":10,\"num_hidden_layers\":3,\"num_mem_blocks\":1,"
    "\"layers_block_type\":[\"hybrid\",\"hybrid\",\"mamba\"],\"num_attention_heads\":4,"
    "\"num_key_value_heads\":4,\"intermediate_size\":8,\"adapter_rank\":3,\"mamba_expand\":2,"
    "\"n_mamba_heads\":4,\"mamba_ngroups\":1,\"mamba_d_state\":3,\"vocab_size\":17,\"use_mem_rope\":false}",
    "01211",
    {.vocab = 17, .hidden = 10, RMS, .tied = true},
    {{.heads = 4, .kv_heads = 4, .key_dim = 5, .value_dim = 5, .norms = 3, .doubled_input = true, .unrotated = true,
      .width = 8, .adapter_rank = 3, .out_proj = true, .one_residual = true},
     {.heads = 4, .kv_heads = 1, .key_dim = 3, .value_dim = 5, .norms = 1, .no_mlp = true,
      .state = {.block = NAIVE_SSD, .taps = 4, .chunk = 256, .conv_bias = true, .decay = NAIVE_DECAY_HEAD,
                .wide_norm = true}},
     {.heads = 4, .kv_heads = 4, .key_dim = 5, .value_dim = 5, .norms = 3, .doubled_input = true, .unrotated = true,
      .width = 8, .adapter_rank = 3, .out_proj = true, .one_residual = true, .borrowed = true}}};

static const struct subject SPLIT_RWKV5 = {
    "{\"model_type\":\"rwkv5\",\"hidden_size\":20,\"num_hidden_layers\":2,\"head_size\":5,"
    "\"intermediate_size\":28,\"vocab_size\":10}",
    "00",
    {.vocab = 10, .hidden = 20, .norm_flops = 7, .norm_vectors = 2, .embed_norm = true},
    {{.heads = 4, .kv_heads = 4, .key_dim = 5, .value_dim = 5, .norms = 2, .width = 28, .ungated = true,
      .channel_mix = true, .state = {.block = NAIVE_TIME_MIX}}}};

/* clang-format on */
#undef KDA_STATE
#undef ZAMBA_BLOCK
#undef RMS

#endif
