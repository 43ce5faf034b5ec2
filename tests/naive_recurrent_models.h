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

static const struct subject PLAMO2 = { /* layer 1 of every two attends; the rank is 64 however narrow the model */
    "{\"model_type\":\"plamo2\",\"hidden_size\":12,\"num_hidden_layers\":3,\"num_attention_heads\":6,"
    "\"num_key_value_heads\":2,\"hidden_size_per_head\":3,\"mamba_d_state\":7,\"mamba_d_conv\":4,"
    "\"mamba_num_heads\":6,\"mamba_step\":2,\"mamba_chunk_size\":5,\"intermediate_size\":11,\"vocab_size\":15}",
    "010",
    {.vocab = 15, .hidden = 12, RMS, .tied = true},
    {{.heads = 6, .kv_heads = 1, .key_dim = 7, .value_dim = 3, .norms = 4, .width = 11,
      .state = {.block = NAIVE_SSD, .taps = 4, .chunk = 5, .rank = 64, .decay = NAIVE_DECAY_HEAD}},
     {.heads = 6, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 4, .width = 11, .qk_norm = true,
      .qk_each = true}}};

static const struct subject XLSTM = { /* keys half as wide as the model; 2.667 times 12, up to a multiple of 5 */
    "{\"model_type\":\"xlstm\",\"hidden_size\":12,\"num_hidden_layers\":2,\"num_heads\":3,\"chunk_size\":5,"
    "\"ffn_round_up_to_multiple_of\":5,\"vocab_size\":15}",
    "00",
    {.vocab = 15, .hidden = 12, RMS},
    {{.heads = 3, .kv_heads = 3, .key_dim = 2, .value_dim = 4, .norms = 2, .width = 35,
      .state = {.block = NAIVE_LINEAR, .chunk = 5, .decay = NAIVE_DECAY_HEAD, .memory = true, .gate = true,
                .each_norm = true}}}};

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
      .latent = 3, .correction = true, .mlp_bias = true},
     {.heads = 4, .kv_heads = 2, .key_dim = 5, .value_dim = 5, .norms = 1, .no_mlp = true, .unrotated = true},
     {.no_mixer = true, .norms = 1, .ungated = true, .width = 9, .mlp_bias = true}}};

static const struct subject GRANITE_HYBRID = { /* a shared MLP beside the experts of every layer */
    "{\"model_type\":\"granitemoehybrid\",\"tie_word_embeddings\":true,\"hidden_size\":12,\"num_hidden_layers\":3,"
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

#define KDA_FULL .state = {.block = NAIVE_LINEAR, .taps = 4, .chunk = 64, .rank = 5, .delta = true, \
    .idle_rates = 1, .decay = NAIVE_DECAY_CHANNEL, .decay_weights = true, .gate = true, .head_norm = true}

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

static const struct subject KIMI_K3 = { /* experts in a latent space, gates of full rank */
    "{\"model_type\":\"kimi_linear\",\"hidden_size\":9,\"num_hidden_layers\":2,\"linear_attn_config\":"
    "{\"full_attn_layers\":[2],\"kda_layers\":[1],\"num_heads\":4,\"head_dim\":5,\"use_full_rank_gate\":true,"
    "\"short_conv_kernel_size\":4},\"num_attention_heads\":4,\"q_lora_rank\":7,\"kv_lora_rank\":6,"
    "\"qk_nope_head_dim\":3,\"qk_rope_head_dim\":2,\"v_head_dim\":3,\"intermediate_size\":8,\"num_experts\":5,"
    "\"num_experts_per_token\":2,\"moe_intermediate_size\":4,\"num_shared_experts\":2,\"first_k_dense_replace\":1,"
    "\"routed_expert_hidden_size\":6,\"latent_moe_use_norm\":true,\"mla_use_output_gate\":true,\"vocab_size\":11}",
    "01",
    {.vocab = 11, .hidden = 9, RMS},
    {{.heads = 4, .kv_heads = 4, .key_dim = 5, .value_dim = 5, .norms = 2, .width = 8, KDA_FULL},
     {.heads = 4, .key_dim = 3, .value_dim = 3, .q_rank = 7, .kv_rank = 6, .rope_dim = 2, .norms = 2, .unrotated = true,
      .output_gate = true, .experts = 5, .chosen = 2, .expert_width = 4, .shared_width = 8, .latent = 6,
      .latent_norm = true, .correction = true}}};

static const struct subject MINIMAX = { /* linear layers share no heads, full ones do */
    "{\"model_type\":\"minimax_m1\",\"hidden_size\":9,\"num_hidden_layers\":3,\"attn_type_list\":[0,0,1],"
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":3,\"intermediate_size\":5,"
    "\"num_local_experts\":6,\"num_experts_per_tok\":2,\"shared_intermediate_size\":0,\"vocab_size\":16,"
    "\"tie_word_embeddings\":false}",
    "001",
    {.vocab = 16, .hidden = 9, RMS, .router = {.element_bytes = 4}},
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

static const struct subject LFM2_MOE = { /* a dense layer, then experts with a correction of their routing */
    "{\"model_type\":\"lfm2_moe\",\"hidden_size\":8,\"num_hidden_layers\":3,"
    "\"layer_types\":[\"conv\",\"full_attention\",\"conv\"],\"conv_L_cache\":5,\"conv_bias\":false,"
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"intermediate_size\":21,\"num_dense_layers\":1,"
    "\"num_experts\":6,\"num_experts_per_tok\":2,\"moe_intermediate_size\":7,\"vocab_size\":13}",
    "012",
    {.vocab = 13, .hidden = 8, RMS, .tied = true},
    {{.heads = 8, .kv_heads = 8, .value_dim = 1, .norms = 2, .width = 21,
      .state = {.block = NAIVE_CONV, .taps = 5}},
     {.heads = 4, .kv_heads = 2, .key_dim = 2, .value_dim = 2, .norms = 2, .qk_norm = true, .experts = 6, .chosen = 2,
      .expert_width = 7, .correction = true},
     {.heads = 8, .kv_heads = 8, .value_dim = 1, .norms = 2, .experts = 6, .chosen = 2, .expert_width = 7,
      .correction = true, .state = {.block = NAIVE_CONV, .taps = 5}}}};

static const struct subject BAMBA = { /* attention by a list of layers; an MLP in each */
    "{\"model_type\":\"bamba\",\"hidden_size\":12,\"num_hidden_layers\":3,\"attn_layer_indices\":[1],"
    "\"mamba_n_heads\":8,\"mamba_d_head\":\"auto\",\"mamba_expand\":2,\"mamba_n_groups\":2,\"mamba_d_state\":5,"
    "\"mamba_d_conv\":4,\"mamba_chunk_size\":4,\"num_attention_heads\":4,\"num_key_value_heads\":2,"
    "\"intermediate_size\":17,\"vocab_size\":13}",
    "010",
    {.vocab = 13, .hidden = 12, RMS},
    {{.heads = 8, .kv_heads = 2, .key_dim = 5, .value_dim = 3, .norms = 2, .width = 17,
      .state = {.block = NAIVE_SSD, .taps = 4, .chunk = 4, .conv_bias = true, .decay = NAIVE_DECAY_HEAD,
                .wide_norm = true}},
     {.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 17}}};

static const struct subject RECURRENT_GEMMA = { /* two of three layers recur; half of intermediate_size */
    "{\"model_type\":\"recurrent_gemma\",\"num_key_value_heads\":1,\"hidden_size\":10,\"num_hidden_layers\":4,\"lru_width\":6,"
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

static const struct subject RWKV6 = { /* keys half as wide as values; 7/2 of 20 up to a multiple of 32 */
    "{\"model_type\":\"rwkv6\",\"hidden_size\":20,\"num_hidden_layers\":3,\"num_heads\":5,\"expand_k\":0.5,"
    "\"expand_v\":1.0,\"proj_low_rank_dim\":3,\"gate_low_rank_dim\":7,\"hidden_ratio\":3.5,\"norm_first\":false,"
    "\"intermediate_size\":null,\"vocab_size\":10,\"attn\":{\"layers\":[1],\"num_heads\":4,\"num_kv_heads\":2,"
    "\"qkv_bias\":true,\"window_size\":5}}",
    "010",
    {.vocab = 10, .hidden = 20, .norm_flops = 7, .norm_vectors = 2},
    {{.heads = 5, .kv_heads = 5, .key_dim = 2, .value_dim = 4, .norms = 2, .width = 96, .ungated = true,
      .channel_mix = true, .state = {.block = NAIVE_FINCH, .rank = 7, .mix_rank = 3}},
     {.heads = 4, .kv_heads = 2, .key_dim = 5, .value_dim = 5, .norms = 2, .width = 96, .ungated = true,
      .channel_mix = true, .qkv_bias = true, .window = 5}}};

static const struct subject RWKV7 = { /* the first layer has values of its own alone; head_dim, not num_heads */
    "{\"model_type\":\"rwkv7\",\"hidden_size\":12,\"num_hidden_layers\":3,\"num_heads\":32,\"head_dim\":4,"
    "\"decay_low_rank_dim\":5,\"a_low_rank_dim\":3,\"v_low_rank_dim\":2,\"gate_low_rank_dim\":7,"
    "\"value_dim\":[18,18,18],\"norm_bias\":false,\"hidden_ratio\":4.0,\"vocab_size\":11}",
    "011",
    {.vocab = 11, .hidden = 12, .norm_flops = 6, .norm_vectors = 1, .embed_norm = true},
    {{.heads = 3, .kv_heads = 3, .key_dim = 4, .value_dim = 6, .norms = 2, .width = 64, .ungated = true,
      .channel_mix = true, .channel_bare = true,
      .state = {.block = NAIVE_GOOSE, .rank = 5, .rate_rank = 3, .gate_rank = 7}},
     {.heads = 3, .kv_heads = 3, .key_dim = 4, .value_dim = 6, .norms = 2, .width = 64, .ungated = true,
      .channel_mix = true, .channel_bare = true,
      .state = {.block = NAIVE_GOOSE, .rank = 5, .rate_rank = 3, .value_rank = 2, .gate_rank = 7}}}};

static const struct subject SAMBA = { /* intermediate_size is that of the mixers */
    "{\"model_type\":\"samba\",\"hidden_size\":15,\"num_hidden_layers\":3,\"state_size\":5,\"expand\":2,"
    "\"conv_kernel\":4,\"time_step_rank\":2,\"intermediate_size\":30,\"hidden_ratio\":4,\"vocab_size\":13,"
    "\"attn\":{\"layers\":[1],\"num_heads\":3,\"num_kv_heads\":1,\"window_size\":6}}",
    "010",
    {.vocab = 13, .hidden = 15, RMS},
    {{.heads = 30, .kv_heads = 1, .key_dim = 5, .value_dim = 1, .norms = 2, .width = 256,
      .state = {.block = NAIVE_SELECTIVE, .taps = 4, .rank = 2, .conv_bias = true}},
     {.heads = 3, .kv_heads = 1, .key_dim = 5, .value_dim = 5, .norms = 2, .width = 256, .window = 6}}};

static const struct subject GLA_MIXED = { /* a layer of attention without a window */
    "{\"model_type\":\"gla\",\"hidden_size\":12,\"num_hidden_layers\":3,\"num_heads\":3,\"expand_k\":0.5,"
    "\"expand_v\":1,\"intermediate_size\":7,\"vocab_size\":10,\"attn\":{\"layers\":[2],\"num_heads\":2}}",
    "001",
    {.vocab = 10, .hidden = 12, RMS},
    {{.heads = 3, .kv_heads = 3, .key_dim = 2, .value_dim = 4, .norms = 2, .width = 7,
      .state = {.block = NAIVE_LINEAR, .chunk = 64, .rank = 16, .decay = NAIVE_DECAY_CHANNEL,
                .decay_bias = true, .gate = true, .head_norm = true}},
     {.heads = 2, .kv_heads = 2, .key_dim = 6, .value_dim = 6, .norms = 2, .width = 7}}};

static const struct subject BASED = { /* 17 up to 24 tokens; half of the window and the token; an MLP of 128 */
    "{\"model_type\":\"gpt2\",\"n_embd\":6,\"n_layer\":4,\"n_head\":2,\"n_inner\":5,\"vocab_size\":17,"
    "\"pad_vocab_size_multiple\":8,\"n_positions\":0,\"rms_norm\":true,\"activation_function\":\"swiglu\","
    "\"mlp_fc1_bias\":false,\"mlp_fc2_bias\":false,\"qkv_proj_bias\":false,\"out_proj_bias\":true,"
    "\"rotary_emb_fraction\":1,\"alt_mixer_layers\":[1],\"alt_mixer_2_layers\":[2],"
    "\"mixer\":{\"_target_\":\"based.models.mixers.convolution.BaseConv\",\"expand_proj\":4,\"kernel_sizes\":9},"
    "\"alt_mixer\":{\"_target_\":\"based.models.mixers.linear_attention.LinearAttention\",\"feature_dim\":2,"
    "\"num_heads\":3,\"feature_map\":{\"_target_\":\"based.models.mixers.linear_attention.TaylorExp\"}},"
    "\"alt_mixer_2\":{\"_target_\":\"based.models.mixers.slide_attention.SlidingAttention\",\"window_size\":6}}",
    "0120",
    {.vocab = 24, .hidden = 6, RMS, .tied = true},
    {{.heads = 12, .kv_heads = 12, .value_dim = 1, .norms = 2, .width = 128,
      .state = {.block = NAIVE_CONV, .taps = 3, .proj_bias = true, .activated = true}},
     {.heads = 3, .kv_heads = 3, .key_dim = 7, .value_dim = 2, .norms = 2, .width = 128,
      .state = {.block = NAIVE_LINEAR, .chunk = 64, .feature_dim = 2}},
     {.heads = 2, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 128, .o_bias = true,
      .window = 4}}};

static const struct subject H3 = { /* heads of two elements: four channels each */
    "{\"d_model\":6,\"n_layer\":3,\"d_inner\":11,\"vocab_size\":13,\"pad_vocab_size_multiple\":8,"
    "\"ssm_cfg\":{\"mode\":\"diag\",\"measure\":\"diag-lin\",\"d_state\":10,\"head_dim\":2},"
    "\"attn_layer_idx\":[1],\"attn_cfg\":{\"num_heads\":2,\"rotary_emb_dim\":2}}",
    "010",
    {.vocab = 16, .hidden = 6, .norm_flops = 7, .norm_vectors = 2, .tied = true},
    {{.heads = 3, .kv_heads = 3, .key_dim = 5, .value_dim = 2, .norms = 2, .width = 11, .ungated = true,
      .mlp_bias = true, .state = {.block = NAIVE_DIAGONAL, .taps = 10}},
     {.heads = 2, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 11, .ungated = true,
      .mlp_bias = true, .qkv_bias = true, .o_bias = true}}};

static const struct subject S4D = {
    "{\"model_type\":\"s4d\",\"d_model\":7,\"n_layers\":2,\"d_state\":6,\"vocab_size\":11}",
    "00",
    {.vocab = 11, .hidden = 7, .norm_flops = 7, .norm_vectors = 2},
    {{.heads = 7, .kv_heads = 7, .key_dim = 3, .value_dim = 1, .norms = 1, .no_mlp = true,
      .state = {.block = NAIVE_DIAGONAL}}}};

static const struct subject MAMBA_SSM = { /* no model_type: Mamba-1 where ssm_cfg names no layer */
    "{\"d_model\":18,\"n_layer\":2,\"vocab_size\":21,\"ssm_cfg\":{\"d_state\":5},\"rms_norm\":false,"
    "\"pad_vocab_size_multiple\":8}",
    "00",
    {.vocab = 24, .hidden = 18, .norm_flops = 7, .norm_vectors = 2, .tied = true},
    {{.heads = 36, .kv_heads = 1, .key_dim = 5, .value_dim = 1, .norms = 1, .no_mlp = true,
      .state = {.block = NAIVE_SELECTIVE, .taps = 4, .rank = 2, .conv_bias = true}}}};

static const struct subject MAMBA2_ATTN = { /* attention past a convolution of its own; an MLP of 128 in all layers */
    "{\"d_model\":6,\"n_layer\":3,\"d_intermediate\":9,\"vocab_size\":16,\"ssm_cfg\":{\"layer\":\"Mamba2\","
    "\"headdim\":3,\"d_state\":5,\"ngroups\":2,\"chunk_size\":4},\"attn_layer_idx\":[1],\"tie_embeddings\":false,"
    "\"attn_cfg\":{\"num_heads\":4,\"num_heads_kv\":2,\"head_dim\":3,\"d_conv\":4,\"qkv_proj_bias\":false,"
    "\"out_proj_bias\":false}}",
    "010",
    {.vocab = 16, .hidden = 6, RMS},
    {{.heads = 4, .kv_heads = 2, .key_dim = 5, .value_dim = 3, .norms = 2, .width = 128,
      .state = {.block = NAIVE_SSD, .taps = 4, .chunk = 4, .conv_bias = true, .decay = NAIVE_DECAY_HEAD,
                .wide_norm = true}},
     {.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 128, .unrotated = true,
      .state = {.taps = 4, .conv_bias = true}}}};

static const struct subject STRIPED_HYENA = { /* convolutions by poles around a layer that attends */
    "{\"model_type\":\"stripedhyena\",\"hidden_size\":8,\"num_layers\":3,\"num_attention_heads\":4,"
    "\"proj_groups\":2,\"inner_mlp_size\":13,\"state_size\":3,\"short_filter_length\":3,\"hyena_filter_groups\":1,"
    "\"attn_layer_idxs\":[1],\"hyena_layer_idxs\":[0,2],\"qkv_proj_bias\":false,\"mha_out_proj_bias\":true,"
    "\"tie_embeddings\":true,\"vocab_size\":17}",
    "010",
    {.vocab = 17, .hidden = 8, RMS, .tied = true},
    {{.heads = 8, .kv_heads = 8, .key_dim = 3, .value_dim = 1, .norms = 2, .width = 13,
      .state = {.block = NAIVE_FILTER, .taps = 3, .conv_bias = true}},
     {.heads = 4, .kv_heads = 2, .key_dim = 2, .value_dim = 2, .norms = 2, .width = 13, .o_bias = true}}};

static const struct subject HYENA_DNA = {
    "{\"model_type\":\"hyenadna\",\"d_model\":6,\"n_layer\":2,\"d_inner\":11,\"vocab_size\":12,"
    "\"filter_order\":5,\"emb_dim\":3,\"num_inner_mlps\":2,\"max_seq_len\":29}",
    "00",
    {.vocab = 16, .hidden = 6, .norm_flops = 7, .norm_vectors = 2},
    {{.heads = 6, .kv_heads = 6, .value_dim = 1, .norms = 2, .width = 11, .ungated = true, .mlp_bias = true,
      .state = {.block = NAIVE_FILTER, .taps = 3, .conv_bias = true, .filter_width = 5, .filter_inputs = 3,
                .filter_layers = 2, .filter_tokens = 29, .filter_sines = true}}}};

static const struct subject ZAMBA2_ADAPTED = { /* q, k and v have low-rank products of each layer's own */
    "{\"model_type\":\"zamba2\",\"hidden_size\":10,\"num_hidden_layers\":3,\"num_mem_blocks\":1,"
    "\"layers_block_type\":[\"hybrid\",\"hybrid\",\"mamba\"],\"num_attention_heads\":4,"
    "\"num_key_value_heads\":4,\"intermediate_size\":8,\"adapter_rank\":3,\"mamba_expand\":2,"
    "\"n_mamba_heads\":4,\"mamba_ngroups\":1,\"mamba_d_state\":3,\"vocab_size\":17,\"use_mem_rope\":false,"
    "\"use_shared_attention_adapter\":true}",
    "01211",
    {.vocab = 17, .hidden = 10, RMS, .tied = true},
    {{.heads = 4, .kv_heads = 4, .key_dim = 5, .value_dim = 5, .norms = 3, .doubled_input = true, .unrotated = true,
      .width = 8, .adapter_rank = 3, .qkv_rank = 3, .out_proj = true, .one_residual = true},
     {.heads = 4, .kv_heads = 1, .key_dim = 3, .value_dim = 5, .norms = 1, .no_mlp = true,
      .state = {.block = NAIVE_SSD, .taps = 4, .chunk = 256, .conv_bias = true, .decay = NAIVE_DECAY_HEAD,
                .wide_norm = true}},
     {.heads = 4, .kv_heads = 4, .key_dim = 5, .value_dim = 5, .norms = 3, .doubled_input = true, .unrotated = true,
      .width = 8, .adapter_rank = 3, .qkv_rank = 3, .out_proj = true, .one_residual = true, .borrowed = true}}};

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
    "{\"model_type\":\"recurrent_gemma\",\"num_key_value_heads\":1,\"hidden_size\":10,\"num_hidden_layers\":2,\"lru_width\":12,"
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

static const struct subject SPLIT_RWKV6 = { /* ranks by RWKV's own rule */
    "{\"model_type\":\"rwkv6\",\"hidden_size\":20,\"num_hidden_layers\":2,\"head_size\":5,"
    "\"intermediate_size\":28,\"vocab_size\":10}",
    "00",
    {.vocab = 10, .hidden = 20, .norm_flops = 7, .norm_vectors = 2, .embed_norm = true},
    {{.heads = 4, .kv_heads = 4, .key_dim = 5, .value_dim = 5, .norms = 2, .width = 28, .ungated = true,
      .channel_mix = true, .state = {.block = NAIVE_FINCH, .rank = 64, .mix_rank = 32}}}};

static const struct subject SPLIT_RWKV7 = {
    "{\"model_type\":\"rwkv7\",\"hidden_size\":12,\"num_hidden_layers\":2,\"head_dim\":3,"
    "\"decay_low_rank_dim\":5,\"a_low_rank_dim\":3,\"v_low_rank_dim\":2,\"gate_low_rank_dim\":7,"
    "\"intermediate_size\":20,\"vocab_size\":11}",
    "01",
    {.vocab = 11, .hidden = 12, .norm_flops = 7, .norm_vectors = 2, .embed_norm = true},
    {{.heads = 4, .kv_heads = 4, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 20, .ungated = true,
      .channel_mix = true, .channel_bare = true,
      .state = {.block = NAIVE_GOOSE, .rank = 5, .rate_rank = 3, .gate_rank = 7}},
     {.heads = 4, .kv_heads = 4, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 20, .ungated = true,
      .channel_mix = true, .channel_bare = true,
      .state = {.block = NAIVE_GOOSE, .rank = 5, .rate_rank = 3, .value_rank = 2, .gate_rank = 7}}}};

static const struct subject SPLIT_H3 = {
    "{\"d_model\":8,\"n_layer\":2,\"d_inner\":12,\"vocab_size\":13,"
    "\"ssm_cfg\":{\"mode\":\"diag\",\"d_state\":6},\"attn_layer_idx\":[1],\"attn_cfg\":{\"num_heads\":4}}",
    "01",
    {.vocab = 13, .hidden = 8, .norm_flops = 7, .norm_vectors = 2, .tied = true},
    {{.heads = 8, .kv_heads = 8, .key_dim = 3, .value_dim = 1, .norms = 2, .width = 12, .ungated = true,
      .mlp_bias = true, .state = {.block = NAIVE_DIAGONAL, .taps = 6}},
     {.heads = 4, .kv_heads = 4, .key_dim = 2, .value_dim = 2, .norms = 2, .width = 12, .ungated = true,
      .mlp_bias = true, .qkv_bias = true, .o_bias = true, .unrotated = true}}};

static const struct subject SPLIT_HYENA = {
    "{\"model_type\":\"stripedhyena\",\"hidden_size\":8,\"num_layers\":2,\"num_attention_heads\":4,"
    "\"proj_groups\":1,\"inner_mlp_size\":12,\"state_size\":3,\"short_filter_length\":3,\"hyena_filter_groups\":1,"
    "\"attn_layer_idxs\":[1],\"hyena_layer_idxs\":[0],\"qkv_proj_bias\":false,\"mha_out_proj_bias\":false,"
    "\"vocab_size\":17}",
    "01",
    {.vocab = 17, .hidden = 8, RMS},
    {{.heads = 8, .kv_heads = 8, .key_dim = 3, .value_dim = 1, .norms = 2, .width = 12,
      .state = {.block = NAIVE_FILTER, .taps = 3, .conv_bias = true}},
     {.heads = 4, .kv_heads = 4, .key_dim = 2, .value_dim = 2, .norms = 2, .width = 12}}};

/* clang-format on */
#undef KDA_STATE
#undef ZAMBA_BLOCK
#undef RMS

#endif
