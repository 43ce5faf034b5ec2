/* naive_pair_models -- small models of families whose attention, sums, experts or head have parts of their own. */
#ifndef RIDGE_TESTS_NAIVE_PAIR_MODELS_H
#define RIDGE_TESTS_NAIVE_PAIR_MODELS_H

#include "tests/naive_further_models.h"

/* clang-format off */
#define RMS .norm_flops = 4, .norm_vectors = 1
#define LAYER_NORM .norm_flops = 7, .norm_vectors = 2

static const struct subject DIFFLLAMA = { /* differences without a weight; rope */
    "{\"model_type\":\"diffllama\",\"hidden_size\":11,\"num_hidden_layers\":2,\"num_attention_heads\":8,"
    "\"num_key_value_heads\":4,\"head_dim\":3,\"intermediate_size\":8,\"vocab_size\":15,\"attention_bias\":true}",
    "00",
    {.vocab = 15, .hidden = 11, RMS},
    {{.heads = 8, .kv_heads = 4, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 8, .qkv_bias = true,
      .o_bias = true, .pairs = true}}};

static const struct subject PHI4FLASH = { /* scan, window, scan, full; then gates of that scan and that cache */
    "{\"model_type\":\"phi4flash\",\"hidden_size\":16,\"num_hidden_layers\":8,\"num_attention_heads\":8,"
    "\"num_key_value_heads\":4,\"intermediate_size\":12,\"vocab_size\":21,\"mamba_d_state\":3,\"mamba_d_conv\":4,"
    "\"mamba_dt_rank\":5,\"sliding_window\":4,\"mlp_bias\":true}",
    "01010234",
    {.vocab = 21, .hidden = 16, LAYER_NORM, .tied = true},
    {{.heads = 32, .kv_heads = 1, .key_dim = 3, .value_dim = 1, .norms = 2, .width = 12, .mlp_bias = true,
      .state = {.block = NAIVE_SELECTIVE, .taps = 4, .rank = 5, .conv_bias = true}},
     {.heads = 8, .kv_heads = 4, .key_dim = 2, .value_dim = 2, .norms = 2, .width = 12, .mlp_bias = true,
      .qkv_bias = true, .o_bias = true, .unrotated = true, .pairs = true, .pair_weight = true, .window = 4},
     {.heads = 8, .kv_heads = 4, .key_dim = 2, .value_dim = 2, .norms = 2, .width = 12, .mlp_bias = true,
      .qkv_bias = true, .o_bias = true, .unrotated = true, .pairs = true, .pair_weight = true},
     {.heads = 32, .kv_heads = 1, .key_dim = 1, .value_dim = 1, .norms = 2, .width = 12, .mlp_bias = true,
      .state = {.block = NAIVE_MEMORY}},
     {.heads = 8, .kv_heads = 4, .key_dim = 2, .value_dim = 2, .norms = 2, .width = 12, .mlp_bias = true,
      .qkv_bias = true, .o_bias = true, .unrotated = true, .pairs = true, .pair_weight = true, .shares_kv = true}}};

static const struct subject DOGE = { /* a mask of each key, factors of the stream */
    "{\"model_type\":\"doge\",\"hidden_size\":12,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"intermediate_size\":7,\"vocab_size\":19,\"is_moe\":false,\"num_experts\":16384}",
    "00",
    {.vocab = 19, .hidden = 12, RMS},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 7, .qk_norm = true,
      .value_mask = true, .residual_weights = true}}};

static const struct subject GROVE = { /* two experts of a group share a further one; of 6 chosen of 16 five groups */
    "{\"model_type\":\"grove_moe\",\"hidden_size\":10,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":3,\"intermediate_size\":9,\"moe_intermediate_size\":8,"
    "\"parallel_expert_intermediate_size\":4,\"num_experts\":16,\"num_experts_per_tok\":6,\"decoder_sparse_step\":1,"
    "\"vocab_size\":15}",
    "00",
    {.vocab = 15, .hidden = 10, RMS},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .qk_norm = true, .experts = 16,
      .chosen = 6, .expert_width = 8, .correction = true, .group = 2, .group_width = 4}}};

static const struct subject MODERNBERT = { /* no norm before the first attention; a product before the head */
    "{\"model_type\":\"modernbert-decoder\",\"hidden_size\":12,\"num_hidden_layers\":4,\"num_attention_heads\":4,"
    "\"intermediate_size\":8,\"vocab_size\":19,\"local_attention\":8,\"global_attn_every_n_layers\":2,"
    "\"classifier_bias\":true}",
    "0121",
    {.vocab = 19, .hidden = 12, .norm_flops = 6, .norm_vectors = 1, .tied = true, .embed_norm = true,
     .head_bias = true, .head_dense = true, .head_dense_bias = true},
    {{.heads = 4, .kv_heads = 4, .key_dim = 3, .value_dim = 3, .norms = 1, .width = 8},
     {.heads = 4, .kv_heads = 4, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 8, .window = 4},
     {.heads = 4, .kv_heads = 4, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 8}}};

static const struct subject NEOX_JAPANESE = { /* a bias behind the last attention */
    "{\"model_type\":\"gpt_neox_japanese\",\"hidden_size\":12,\"num_hidden_layers\":3,\"num_attention_heads\":4,"
    "\"intermediate_multiple_size\":2,\"vocab_size\":19}",
    "001",
    {.vocab = 19, .hidden = 12, LAYER_NORM, .tied = true},
    {{.heads = 4, .kv_heads = 4, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 24, .ungated = true},
     {.heads = 4, .kv_heads = 4, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 24, .ungated = true,
      .o_bias = true}}};

static const struct subject CHAMELEON = { /* layer norms of all heads, with biases, in a model of RMS norms */
    "{\"model_type\":\"chameleon\",\"hidden_size\":12,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"intermediate_size\":8,\"vocab_size\":19}",
    "00",
    {.vocab = 19, .hidden = 12, RMS},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 8, .qk_norm = true,
      .qk_each = true, .qk_flops = 7, .qk_vectors = 2}}};
/* clang-format on */
#undef RMS
#undef LAYER_NORM

#endif
