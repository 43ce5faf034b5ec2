/* naive_further_models -- small models of forms that came later: a config.json, and the architecture that it means. */
#ifndef RIDGE_TESTS_NAIVE_FURTHER_MODELS_H
#define RIDGE_TESTS_NAIVE_FURTHER_MODELS_H

#include "tests/naive_draft_models.h"

/* clang-format off */
#define RMS .norm_flops = 4, .norm_vectors = 1

static const struct subject OLMO1 = { /* layer norms store nothing: mean, difference, square, sum, times the root */
    "{\"model_type\":\"olmo\",\"hidden_size\":12,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"intermediate_size\":7,\"vocab_size\":16,\"clip_qkv\":8.0}",
    "00",
    {.vocab = 16, .hidden = 12, .norm_flops = 5, .bare_norms = true},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 7}}};

static const struct subject NANOCHAT = { /* RMS norms store nothing, nor do those of heads; the embedding has one */
    "{\"model_type\":\"nanochat\",\"hidden_size\":12,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"intermediate_size\":7,\"vocab_size\":16}",
    "00",
    {.vocab = 16, .hidden = 12, .norm_flops = 3, .bare_norms = true, .embed_norm = true},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 7, .ungated = true,
      .qk_norm = true, .qk_bare = true, .qk_flops = 3}}};

static const struct subject APERTUS = { /* two learned numbers of the nonlinearity */
    "{\"model_type\":\"apertus\",\"hidden_size\":12,\"num_hidden_layers\":3,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"intermediate_size\":7,\"vocab_size\":16,\"qk_norm\":true}",
    "000",
    {.vocab = 16, .hidden = 12, RMS},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 7, .ungated = true,
      .qk_norm = true, .act_stored = 2}}};

static const struct subject BITNET = { /* a norm before each last product */
    "{\"model_type\":\"bitnet\",\"hidden_size\":12,\"tie_word_embeddings\":true,\"num_hidden_layers\":2,"
    "\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"intermediate_size\":7,\"vocab_size\":16}",
    "00",
    {.vocab = 16, .hidden = 12, RMS, .tied = true},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 3, .width = 7, .inner_norm = true}}};

static const struct subject LONGCAT = { /* of 6 choices among 9 experts 4 are of the six that compute */
    "{\"model_type\":\"longcat_flash\",\"hidden_size\":12,\"num_layers\":2,\"num_attention_heads\":4,"
    "\"ffn_hidden_size\":9,\"expert_ffn_hidden_size\":5,\"n_routed_experts\":6,\"zero_expert_num\":3,\"moe_topk\":6,"
    "\"q_lora_rank\":7,\"kv_lora_rank\":6,\"qk_nope_head_dim\":3,\"qk_rope_head_dim\":2,\"v_head_dim\":5,"
    "\"vocab_size\":13}",
    "0101",
    {.vocab = 13, .hidden = 12, RMS},
    {{.heads = 4, .key_dim = 3, .value_dim = 5, .q_rank = 7, .kv_rank = 6, .rope_dim = 2, .norms = 2, .experts = 6,
      .chosen = 4, .idle = 3, .expert_width = 5, .shared_width = 9, .correction = true},
     {.heads = 4, .key_dim = 3, .value_dim = 5, .q_rank = 7, .kv_rank = 6, .rope_dim = 2, .norms = 2, .width = 9}}};

static const struct subject STEP3 = { /* queries of a narrow product; the last layer is dense */
    "{\"model_type\":\"step3_text\",\"hidden_size\":13,\"num_hidden_layers\":3,\"num_attention_heads\":4,"
    "\"num_attention_groups\":1,\"head_dim\":5,\"share_q_dim\":7,\"intermediate_size\":11,\"moe_intermediate_size\":6,"
    "\"share_expert_dim\":8,\"moe_num_experts\":5,\"moe_top_k\":2,\"moe_layers_enum\":\"0,1\",\"vocab_size\":17}",
    "001",
    {.vocab = 17, .hidden = 13, RMS},
    {{.heads = 4, .kv_heads = 1, .key_dim = 5, .value_dim = 5, .q_rank = 7, .norms = 2, .experts = 5, .chosen = 2,
      .expert_width = 6, .shared_width = 8},
     {.heads = 4, .kv_heads = 1, .key_dim = 5, .value_dim = 5, .q_rank = 7, .norms = 2, .width = 11}}};

static const struct subject STEP3P5 = { /* sliding layers have more heads; a gate a head */
    "{\"model_type\":\"step3p5\",\"hidden_size\":11,\"num_hidden_layers\":3,\"num_attention_heads\":4,"
    "\"num_attention_groups\":2,\"head_dim\":3,\"intermediate_size\":9,\"moe_intermediate_size\":6,"
    "\"share_expert_dim\":5,\"moe_num_experts\":4,\"moe_top_k\":2,\"moe_layers_enum\":\"2\","
    "\"use_moe_router_bias\":true,\"use_head_wise_attn_gate\":true,\"sliding_window\":4,\"layer_types\":["
    "\"full_attention\",\"sliding_attention\",\"sliding_attention\"],\"attention_other_setting\":{\"attention_type\":"
    "\"sliding_attention\",\"num_attention_heads\":6,\"num_attention_groups\":2,\"head_dim\":5},\"vocab_size\":15}",
    "012",
    {.vocab = 15, .hidden = 11, RMS, .router = NAIVE_TILED(4, 0, 0, 0)},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 9, .qk_norm = true,
      .head_gate = true},
     {.heads = 6, .kv_heads = 2, .key_dim = 5, .value_dim = 5, .norms = 2, .width = 9, .qk_norm = true,
      .head_gate = true, .window = 4},
     {.heads = 6, .kv_heads = 2, .key_dim = 5, .value_dim = 5, .norms = 2, .qk_norm = true, .head_gate = true,
      .window = 4, .experts = 4, .chosen = 2, .expert_width = 6, .shared_width = 5, .correction = true}}};

static const struct subject FALCON_H1 = { /* one norm, attention and mamba-2 of it, each added; no norm of the output */
    "{\"model_type\":\"falcon_h1\",\"hidden_size\":10,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":3,\"intermediate_size\":7,\"vocab_size\":17,\"mamba_d_ssm\":15,"
    "\"mamba_n_heads\":3,\"mamba_d_head\":5,\"mamba_n_groups\":1,\"mamba_d_state\":4,\"mamba_d_conv\":4,"
    "\"mamba_chunk_size\":3}",
    "0101",
    {.vocab = 17, .hidden = 10, RMS},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 1, .no_mlp = true},
     {.heads = 3, .kv_heads = 1, .key_dim = 4, .value_dim = 5, .norms = 1, .width = 7,
      .state = {.block = NAIVE_SSD, .taps = 4, .chunk = 3, .conv_bias = true, .decay = NAIVE_DECAY_HEAD}}}};

static const struct subject RWKV4 = { /* four times as wide when the file does not say; fewer channels than the width */
    "{\"model_type\":\"rwkv\",\"hidden_size\":10,\"num_hidden_layers\":2,\"attention_hidden_size\":7,"
    "\"vocab_size\":13}",
    "00",
    {.vocab = 13, .hidden = 10, .norm_flops = 7, .norm_vectors = 2, .embed_norm = true},
    {{.heads = 7, .kv_heads = 7, .key_dim = 1, .value_dim = 1, .norms = 2, .width = 40, .ungated = true,
      .channel_mix = true, .state = {.block = NAIVE_WKV}}}};

static const struct subject AXK1 = { /* a norm more where there are experts */
    "{\"model_type\":\"axk1\",\"hidden_size\":12,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"q_lora_rank\":7,\"kv_lora_rank\":6,\"qk_nope_head_dim\":3,\"qk_rope_head_dim\":2,\"v_head_dim\":5,"
    "\"intermediate_size\":9,\"vocab_size\":13,\"n_routed_experts\":5,\"num_experts_per_tok\":2,"
    "\"moe_intermediate_size\":4}",
    "01",
    {.vocab = 13, .hidden = 12, RMS},
    {{.heads = 4, .key_dim = 3, .value_dim = 5, .q_rank = 7, .kv_rank = 6, .rope_dim = 2, .norms = 2, .width = 9},
     {.heads = 4, .key_dim = 3, .value_dim = 5, .q_rank = 7, .kv_rank = 6, .rope_dim = 2, .norms = 3, .experts = 5,
      .chosen = 2, .expert_width = 4, .shared_width = 4, .correction = true}}};

static const struct subject AXK2 = { /* chosen keys, queries and a gate of one product, gates behind norms */
    "{\"model_type\":\"axk2\",\"hidden_size\":12,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"q_lora_rank\":7,\"kv_lora_rank\":6,\"qk_nope_head_dim\":3,\"qk_rope_head_dim\":2,\"v_head_dim\":5,"
    "\"intermediate_size\":8,\"vocab_size\":13,\"n_routed_experts\":5,\"num_experts_per_tok\":2,"
    "\"moe_intermediate_size\":4,\"index_topk\":3,\"index_n_heads\":3,\"index_head_dim\":4,\"gated_norm_rank\":2}",
    "01",
    {.vocab = 13, .hidden = 12, RMS},
    {{.heads = 4, .key_dim = 3, .value_dim = 5, .q_rank = 7, .kv_rank = 6, .rope_dim = 2, .norms = 2, .width = 8,
      .output_gate = true, .gate_of_latent = true, .mixer_gate = 2, .top_keys = 3, .index_heads = 3, .index_dim = 4},
     {.heads = 4, .key_dim = 3, .value_dim = 5, .q_rank = 7, .kv_rank = 6, .rope_dim = 2, .norms = 2, .experts = 5,
      .chosen = 2, .expert_width = 4, .shared_width = 4, .correction = true, .output_gate = true,
      .gate_of_latent = true, .mixer_gate = 2, .mlp_gate = 2, .top_keys = 3, .index_heads = 3, .index_dim = 4}}};

static const struct subject VOXTRAL = { /* a factor of what the MLP reads, by one vector of the pass */
    "{\"model_type\":\"voxtral_realtime_text\",\"hidden_size\":8,\"num_hidden_layers\":2,"
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":3,\"intermediate_size\":9,"
    "\"vocab_size\":13,\"sliding_window\":5}",
    "00",
    {.vocab = 13, .hidden = 8, RMS, .tied = true},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .window = 5, .norms = 2, .width = 9,
      .condition = 32}}};

static const struct subject LING_LINEAR = { /* two layers of linear attention, normed and turned, and a full one */
    "{\"model_type\":\"bailing_moe_linear\",\"hidden_size\":10,\"num_hidden_layers\":3,\"layer_group_size\":3,"
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":3,\"intermediate_size\":9,\"vocab_size\":13,"
    "\"moe_intermediate_size\":5,\"moe_shared_expert_intermediate_size\":7,\"num_experts\":6,\"num_shared_experts\":1,"
    "\"num_experts_per_tok\":2,\"first_k_dense_replace\":1,\"use_qk_norm\":true,"
    "\"moe_router_enable_expert_bias\":true}",
    "012",
    {.vocab = 13, .hidden = 10, RMS},
    {{.heads = 4, .kv_heads = 4, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 9,
      .state = {.block = NAIVE_LINEAR, .chunk = 256, .decay = NAIVE_DECAY_FIXED, .gate = true, .wide_norm = true,
                .rope = true, .key_norms = true}},
     {.heads = 4, .kv_heads = 4, .key_dim = 3, .value_dim = 3, .norms = 2, .experts = 6, .chosen = 2, .expert_width = 5,
      .shared_width = 7, .correction = true,
      .state = {.block = NAIVE_LINEAR, .chunk = 256, .decay = NAIVE_DECAY_FIXED, .gate = true, .wide_norm = true,
                .rope = true, .key_norms = true}},
     {.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .qk_norm = true, .experts = 6, .chosen = 2,
      .expert_width = 5, .shared_width = 7, .correction = true}}};

#define ZAMBA1_BLOCK .heads = 2, .kv_heads = 2, .key_dim = 10, .value_dim = 10, .norms = 3, .doubled_input = true, \
    .unrotated = true, .width = 7, .out_proj = true, .one_residual = true

static const struct subject ZAMBA1 = { /* before the third layer and the fifth; two groups of channels */
    "{\"model_type\":\"zamba\",\"hidden_size\":10,\"num_hidden_layers\":5,\"num_attention_heads\":2,"
    "\"num_key_value_heads\":2,\"intermediate_size\":7,\"vocab_size\":17,\"n_mamba_heads\":2,\"mamba_d_state\":3,"
    "\"mamba_d_conv\":3,\"mamba_expand\":2,\"mamba_dt_rank\":4,\"attn_layer_period\":2,\"attn_layer_offset\":1}",
    "0010020",
    {.vocab = 17, .hidden = 10, RMS, .tied = true},
    {{.heads = 20, .kv_heads = 2, .key_dim = 3, .value_dim = 1, .norms = 1, .no_mlp = true,
      .state = {.block = NAIVE_SELECTIVE, .taps = 3, .rank = 4, .conv_bias = true}},
     {ZAMBA1_BLOCK},
     {ZAMBA1_BLOCK, .borrowed = true}}};

static const struct subject OLMO_HYBRID = { /* heads of attention, 3/4 of the width in keys, twice that in values */
    "{\"model_type\":\"olmo_hybrid\",\"hidden_size\":16,\"num_hidden_layers\":3,\"num_attention_heads\":4,"
    "\"intermediate_size\":7,\"vocab_size\":16,\"layer_types\":[\"linear_attention\",\"linear_attention\","
    "\"full_attention\"]}",
    "001",
    {.vocab = 16, .hidden = 16, RMS},
    {{.heads = 4, .kv_heads = 4, .key_dim = 3, .value_dim = 6, .norms = 2, .width = 7,
      .state = {.block = NAIVE_LINEAR, .taps = 4, .chunk = 64, .delta = true, .decay = NAIVE_DECAY_HEAD,
                .decay_weights = true, .gate = true, .head_norm = true}},
     {.heads = 4, .kv_heads = 4, .key_dim = 4, .value_dim = 4, .norms = 2, .width = 7, .qk_norm = true,
      .qk_each = true, .unrotated = true}}};
/* ---- sizes that two and four ranks share out ---- */

static const struct subject SPLIT_STEP3 = {
    "{\"model_type\":\"step3_text\",\"hidden_size\":13,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"num_attention_groups\":1,\"head_dim\":5,\"share_q_dim\":7,\"intermediate_size\":12,\"moe_intermediate_size\":8,"
    "\"share_expert_dim\":4,\"moe_num_experts\":5,\"moe_top_k\":2,\"moe_layers_enum\":\"1\",\"vocab_size\":17}",
    "01",
    {.vocab = 17, .hidden = 13, RMS},
    {{.heads = 4, .kv_heads = 1, .key_dim = 5, .value_dim = 5, .q_rank = 7, .norms = 2, .width = 12},
     {.heads = 4, .kv_heads = 1, .key_dim = 5, .value_dim = 5, .q_rank = 7, .norms = 2, .experts = 5, .chosen = 2,
      .expert_width = 8, .shared_width = 4}}};

static const struct subject SPLIT_LAGUNA = { /* the second layer has more heads and slides */
    "{\"model_type\":\"laguna\",\"hidden_size\":11,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"num_attention_heads_per_layer\":[4,8],\"num_key_value_heads\":2,\"head_dim\":3,\"intermediate_size\":8,"
    "\"moe_intermediate_size\":4,\"shared_expert_intermediate_size\":12,\"num_experts\":4,\"num_experts_per_tok\":2,"
    "\"sliding_window\":4,\"layer_types\":[\"full_attention\",\"sliding_attention\"],\"vocab_size\":15}",
    "01",
    {.vocab = 15, .hidden = 11, RMS},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 8, .qk_norm = true,
      .head_gate = true},
     {.heads = 8, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .qk_norm = true, .head_gate = true,
      .window = 4, .experts = 4, .chosen = 2, .expert_width = 4, .shared_width = 12, .correction = true}}};

static const struct subject MINIMAX_M3 = { /* a full dense layer, then two that choose 3 blocks of one key */
    "{\"model_type\":\"minimax_m3_vl_text\",\"hidden_size\":11,\"num_hidden_layers\":3,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":3,\"intermediate_size\":4,\"dense_intermediate_size\":8,"
    "\"shared_intermediate_size\":12,\"num_local_experts\":4,\"num_experts_per_tok\":2,\"vocab_size\":15,"
    "\"moe_layer_freq\":[0,1,1],\"sparse_attention_config\":{\"sparse_attention_freq\":[0,1,1],"
    "\"sparse_num_index_heads\":2,\"sparse_index_dim\":5,\"sparse_block_size\":1,\"sparse_topk_blocks\":3}}",
    "011",
    {.vocab = 15, .hidden = 11, RMS},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 8, .qk_norm = true},
     {.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .qk_norm = true, .top_keys = 3,
      .index_heads = 2, .index_dim = 5, .index_blocks = true, .experts = 4, .chosen = 2, .expert_width = 4,
      .shared_width = 12, .correction = true}}};

static const struct subject SPLIT_FALCON_H1 = { /* with a norm of the output */
    "{\"model_type\":\"falcon_h1\",\"hidden_size\":10,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":3,\"intermediate_size\":8,\"vocab_size\":17,\"mamba_d_ssm\":20,"
    "\"mamba_n_heads\":4,\"mamba_d_head\":5,\"mamba_n_groups\":1,\"mamba_d_state\":4,\"mamba_d_conv\":4,"
    "\"mamba_chunk_size\":3,\"mamba_rms_norm\":true}",
    "0101",
    {.vocab = 17, .hidden = 10, RMS},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 1, .no_mlp = true},
     {.heads = 4, .kv_heads = 1, .key_dim = 4, .value_dim = 5, .norms = 1, .width = 8,
      .state = {.block = NAIVE_SSD, .taps = 4, .chunk = 3, .conv_bias = true, .decay = NAIVE_DECAY_HEAD,
                .wide_norm = true}}}};

static const struct subject SPLIT_RWKV4 = {
    "{\"model_type\":\"rwkv\",\"hidden_size\":10,\"num_hidden_layers\":2,\"attention_hidden_size\":12,"
    "\"intermediate_size\":16,\"vocab_size\":13}",
    "00",
    {.vocab = 13, .hidden = 10, .norm_flops = 7, .norm_vectors = 2, .embed_norm = true},
    {{.heads = 12, .kv_heads = 12, .key_dim = 1, .value_dim = 1, .norms = 2, .width = 16, .ungated = true,
      .channel_mix = true, .state = {.block = NAIVE_WKV}}}};
/* clang-format on */
#undef RMS

#endif
