/* naive_models -- small models of every family's form for tests: a config.json, and the architecture that it means. */
#ifndef RIDGE_TESTS_NAIVE_MODELS_H
#define RIDGE_TESTS_NAIVE_MODELS_H

#include "tests/naive.h"

/* Layer i is of form[pattern[i] - '0']. */
struct subject {
    const char *json, *pattern;
    struct naive_model base; /* without layers; formats that are not given are bf16 */
    struct naive_layer form[5];
};

/* clang-format off */
#define RMS .norm_flops = 4, .norm_vectors = 1
#define FP32 NAIVE_TILED(4, 0, 0, 0)

static const struct subject LLAMA = { /* head_dim is not D/N */
    "{\"model_type\":\"llama\",\"hidden_size\":11,\"num_hidden_layers\":3,\"num_attention_heads\":6,"
    "\"num_key_value_heads\":3,\"head_dim\":5,\"intermediate_size\":13,\"vocab_size\":23,\"torch_dtype\":\"float32\"}",
    "000",
    {.vocab = 23, .hidden = 11, RMS, .embed = FP32, .head = FP32, .mixer = FP32, .ffn = FP32, .other = FP32},
    {{.heads = 6, .kv_heads = 3, .key_dim = 5, .value_dim = 5, .norms = 2, .width = 13}}};

static const struct subject LLAMA_BIASED = {
    "{\"model_type\":\"llama\",\"hidden_size\":11,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"head_dim\":3,\"num_key_value_heads\":1,\"intermediate_size\":7,\"vocab_size\":19,\"attention_bias\":true,"
    "\"mlp_bias\":true,\"tie_word_embeddings\":true}",
    "00",
    {.vocab = 19, .hidden = 11, RMS, .tied = true},
    {{.heads = 4, .kv_heads = 1, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 7, .qkv_bias = true,
      .o_bias = true, .mlp_bias = true}}};

static const struct subject GPT2 = { /* four times as wide as the model when the file does not say */
    "{\"model_type\":\"gpt2\",\"n_embd\":15,\"n_layer\":2,\"n_head\":3,\"n_positions\":29,\"vocab_size\":31,"
    "\"n_inner\":null}",
    "00",
    {.vocab = 31, .hidden = 15, .positions = 29, .norm_flops = 7, .norm_vectors = 2, .tied = true},
    {{.heads = 3, .kv_heads = 3, .key_dim = 5, .value_dim = 5, .norms = 2, .width = 60, .ungated = true,
      .qkv_bias = true, .o_bias = true, .mlp_bias = true}}};

static const struct subject QWEN2 = { /* the window starts at layer 1 */
    "{\"model_type\":\"qwen2\",\"hidden_size\":14,\"num_hidden_layers\":3,\"num_attention_heads\":2,"
    "\"num_key_value_heads\":1,\"intermediate_size\":9,\"vocab_size\":17,\"use_sliding_window\":true,"
    "\"sliding_window\":6,\"max_window_layers\":1}",
    "011",
    {.vocab = 17, .hidden = 14, RMS},
    {{.heads = 2, .kv_heads = 1, .key_dim = 7, .value_dim = 7, .norms = 2, .width = 9, .qkv_bias = true},
     {.heads = 2, .kv_heads = 1, .key_dim = 7, .value_dim = 7, .norms = 2, .width = 9, .qkv_bias = true, .window = 6}}};

static const struct subject QWEN3 = {
    "{\"model_type\":\"qwen3\",\"hidden_size\":10,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":7,\"intermediate_size\":5,\"vocab_size\":21,\"sliding_window\":3,"
    "\"use_sliding_window\":false}",
    "00",
    {.vocab = 21, .hidden = 10, RMS},
    {{.heads = 4, .kv_heads = 2, .key_dim = 7, .value_dim = 7, .norms = 2, .width = 5, .qk_norm = true}}};

static const struct subject GEMMA2 = {
    "{\"model_type\":\"gemma2\",\"hidden_size\":9,\"num_hidden_layers\":5,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":3,\"intermediate_size\":8,\"vocab_size\":26,\"sliding_window\":5}",
    "01010",
    {.vocab = 26, .hidden = 9, RMS, .tied = true},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 4, .width = 8, .window = 5},
     {.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 4, .width = 8}}};

static const struct subject GEMMA3 = { /* a window longer than any context here, every third layer full */
    "{\"model_type\":\"gemma3_text\",\"hidden_size\":9,\"num_hidden_layers\":4,\"num_attention_heads\":3,"
    "\"num_key_value_heads\":1,\"head_dim\":4,\"intermediate_size\":7,\"vocab_size\":22,\"sliding_window\":101,"
    "\"sliding_window_pattern\":3}",
    "0010",
    {.vocab = 22, .hidden = 9, RMS, .tied = true},
    {{.heads = 3, .kv_heads = 1, .key_dim = 4, .value_dim = 4, .norms = 4, .width = 7, .qk_norm = true, .window = 101},
     {.heads = 3, .kv_heads = 1, .key_dim = 4, .value_dim = 4, .norms = 4, .width = 7, .qk_norm = true}}};

static const struct subject MISTRAL = { /* a window shorter than every chunk but one */
    "{\"model_type\":\"mistral\",\"hidden_size\":10,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
    "\"num_key_value_heads\":2,\"intermediate_size\":6,\"vocab_size\":12,\"sliding_window\":3}",
    "00",
    {.vocab = 12, .hidden = 10, RMS},
    {{.heads = 2, .kv_heads = 2, .key_dim = 5, .value_dim = 5, .norms = 2, .width = 6, .window = 3}}};

static const struct subject MIXTRAL = {
    "{\"model_type\":\"mixtral\",\"hidden_size\":10,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":3,\"intermediate_size\":6,\"vocab_size\":25,\"num_local_experts\":7,"
    "\"num_experts_per_tok\":3,\"sliding_window\":null}",
    "00",
    {.vocab = 25, .hidden = 10, RMS},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .experts = 7, .chosen = 3,
      .expert_width = 6}}};

static const struct subject QWEN2_MOE = { /* every second layer has experts, the last one said to be dense */
    "{\"model_type\":\"qwen2_moe\",\"hidden_size\":12,\"num_hidden_layers\":6,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":4,\"intermediate_size\":11,\"vocab_size\":15,\"num_experts\":5,\"num_experts_per_tok\":2,"
    "\"moe_intermediate_size\":6,\"shared_expert_intermediate_size\":9,\"decoder_sparse_step\":2,"
    "\"mlp_only_layers\":[5]}",
    "010100",
    {.vocab = 15, .hidden = 12, RMS},
    {{.heads = 4, .kv_heads = 4, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 11, .qkv_bias = true},
     {.heads = 4, .kv_heads = 4, .key_dim = 3, .value_dim = 3, .norms = 2, .qkv_bias = true, .experts = 5, .chosen = 2,
      .expert_width = 6, .shared_width = 9, .shared_gate = true}}};

static const struct subject QWEN3_MOE = {
    "{\"model_type\":\"qwen3_moe\",\"hidden_size\":8,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":5,\"intermediate_size\":11,\"vocab_size\":15,\"num_experts\":6,"
    "\"num_experts_per_tok\":6,\"moe_intermediate_size\":7}",
    "00",
    {.vocab = 15, .hidden = 8, RMS},
    {{.heads = 4, .kv_heads = 2, .key_dim = 5, .value_dim = 5, .norms = 2, .qk_norm = true, .experts = 6,
      .chosen = 6, .expert_width = 7}}};

static const struct subject DEEPSEEK_V2 = { /* one query matrix, a dense prefix, two shared experts */
    "{\"model_type\":\"deepseek_v2\",\"hidden_size\":13,\"num_hidden_layers\":3,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":4,\"q_lora_rank\":null,\"kv_lora_rank\":9,\"qk_nope_head_dim\":5,\"qk_rope_head_dim\":2,"
    "\"v_head_dim\":3,\"intermediate_size\":11,\"vocab_size\":18,\"n_routed_experts\":5,\"num_experts_per_tok\":2,"
    "\"moe_intermediate_size\":4,\"n_shared_experts\":2,\"first_k_dense_replace\":1,\"topk_method\":\"greedy\"}",
    "011",
    {.vocab = 18, .hidden = 13, RMS},
    {{.heads = 4, .key_dim = 5, .value_dim = 3, .kv_rank = 9, .rope_dim = 2, .norms = 2, .width = 11},
     {.heads = 4, .key_dim = 5, .value_dim = 3, .kv_rank = 9, .rope_dim = 2, .norms = 2, .experts = 5, .chosen = 2,
      .expert_width = 4, .shared_width = 8}}};

static const struct subject DEEPSEEK_V3 = { /* a query latent and a routing bias */
    "{\"model_type\":\"deepseek_v3\",\"hidden_size\":12,\"num_hidden_layers\":3,\"num_attention_heads\":4,"
    "\"q_lora_rank\":7,\"kv_lora_rank\":10,\"qk_nope_head_dim\":3,\"qk_rope_head_dim\":4,\"v_head_dim\":5,"
    "\"intermediate_size\":16,\"vocab_size\":18,\"n_routed_experts\":6,\"num_experts_per_tok\":2,"
    "\"moe_intermediate_size\":8,\"n_shared_experts\":1,\"first_k_dense_replace\":2,\"topk_method\":\"noaux_tc\","
    "\"num_nextn_predict_layers\":1}",
    "001",
    {.vocab = 18, .hidden = 12, RMS},
    {{.heads = 4, .key_dim = 3, .value_dim = 5, .q_rank = 7, .kv_rank = 10, .rope_dim = 4, .norms = 2, .width = 16},
     {.heads = 4, .key_dim = 3, .value_dim = 5, .q_rank = 7, .kv_rank = 10, .rope_dim = 4, .norms = 2, .experts = 6,
      .chosen = 2, .expert_width = 8, .shared_width = 8, .correction = true}}};

static const struct subject GPT_OSS = { /* sinks, biases everywhere, 4-bit experts in groups of 32 */
    "{\"model_type\":\"gpt_oss\",\"hidden_size\":35,\"num_hidden_layers\":3,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":3,\"intermediate_size\":6,\"vocab_size\":14,\"num_local_experts\":4,"
    "\"num_experts_per_tok\":2,\"experts_per_token\":2,\"sliding_window\":4,\"attention_bias\":true,"
    "\"quantization_config\":{\"quant_method\":\"mxfp4\"}}",
    "010",
    {.vocab = 14, .hidden = 35, RMS, .expert = NAIVE_TILED(.5, 1, 32, 1)},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .window = 4, .qkv_bias = true,
      .o_bias = true, .sinks = true, .experts = 4, .chosen = 2, .expert_width = 6, .expert_bias = true,
      .router_bias = true},
     {.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .qkv_bias = true, .o_bias = true,
      .sinks = true, .experts = 4, .chosen = 2, .expert_width = 6, .expert_bias = true, .router_bias = true}}};

/* Wider than one group of 128, and no multiple of it. */
static const struct subject WIDE = {
    "{\"model_type\":\"llama\",\"hidden_size\":131,\"num_hidden_layers\":1,\"num_attention_heads\":6,"
    "\"num_key_value_heads\":2,\"head_dim\":47,\"intermediate_size\":139,\"vocab_size\":7}",
    "0",
    {.vocab = 7, .hidden = 131, RMS},
    {{.heads = 6, .kv_heads = 2, .key_dim = 47, .value_dim = 47, .norms = 2, .width = 139}}};

/* For tensor parallelism. Two KV heads: copied when there are four ranks. */
static const struct subject SPLIT = {
    "{\"model_type\":\"llama\",\"hidden_size\":11,\"num_hidden_layers\":2,\"num_attention_heads\":12,"
    "\"num_key_value_heads\":2,\"head_dim\":5,\"intermediate_size\":28,\"vocab_size\":27,\"attention_bias\":true,"
    "\"mlp_bias\":true}",
    "00",
    {.vocab = 27, .hidden = 11, RMS},
    {{.heads = 12, .kv_heads = 2, .key_dim = 5, .value_dim = 5, .norms = 2, .width = 28, .qkv_bias = true,
      .o_bias = true, .mlp_bias = true}}};

static const struct subject SPLIT_MOE = {
    "{\"model_type\":\"qwen2_moe\",\"hidden_size\":12,\"num_hidden_layers\":3,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":1,\"intermediate_size\":12,\"vocab_size\":16,\"num_experts\":5,"
    "\"num_experts_per_tok\":2,\"moe_intermediate_size\":8,\"shared_expert_intermediate_size\":20,"
    "\"decoder_sparse_step\":2}",
    "010",
    {.vocab = 16, .hidden = 12, RMS},
    {{.heads = 4, .kv_heads = 1, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 12, .qkv_bias = true},
     {.heads = 4, .kv_heads = 1, .key_dim = 3, .value_dim = 3, .norms = 2, .qkv_bias = true, .experts = 5,
      .chosen = 2, .expert_width = 8, .shared_width = 20, .shared_gate = true}}};

static const struct subject SPLIT_OSS = {
    "{\"model_type\":\"gpt_oss\",\"hidden_size\":35,\"num_hidden_layers\":2,\"num_attention_heads\":8,"
    "\"num_key_value_heads\":4,\"head_dim\":3,\"intermediate_size\":8,\"vocab_size\":14,\"num_local_experts\":3,"
    "\"num_experts_per_tok\":2,\"sliding_window\":4,\"attention_bias\":true}",
    "01",
    {.vocab = 14, .hidden = 35, RMS},
    {{.heads = 8, .kv_heads = 4, .key_dim = 3, .value_dim = 3, .norms = 2, .window = 4, .qkv_bias = true,
      .o_bias = true, .sinks = true, .experts = 3, .chosen = 2, .expert_width = 8, .expert_bias = true,
      .router_bias = true},
     {.heads = 8, .kv_heads = 4, .key_dim = 3, .value_dim = 3, .norms = 2, .qkv_bias = true, .o_bias = true,
      .sinks = true, .experts = 3, .chosen = 2, .expert_width = 8, .expert_bias = true, .router_bias = true}}};
#define LAYER_NORM .norm_flops = 7, .norm_vectors = 2
#define WEIGHT_NORM .norm_flops = 6, .norm_vectors = 1

static const struct subject FALCON = { /* one KV head, one norm, both blocks side by side, a biasless layer norm */
    "{\"model_type\":\"falcon\",\"hidden_size\":15,\"num_hidden_layers\":2,\"num_attention_heads\":5,"
    "\"multi_query\":true,\"parallel_attn\":true,\"bias\":false,\"vocab_size\":19,\"alibi\":true}",
    "00",
    {.vocab = 19, .hidden = 15, LAYER_NORM},
    {{.heads = 5, .kv_heads = 1, .key_dim = 3, .value_dim = 3, .norms = 1, .width = 60, .ungated = true,
      .parallel = true, .alibi = true}}};

static const struct subject FALCON_NEW = { /* a norm for each branch, biases everywhere */
    "{\"model_type\":\"falcon\",\"hidden_size\":12,\"num_hidden_layers\":2,\"num_attention_heads\":6,"
    "\"num_kv_heads\":3,\"multi_query\":true,\"new_decoder_architecture\":true,\"bias\":true,\"vocab_size\":13,"
    "\"ffn_hidden_size\":28}",
    "00",
    {.vocab = 13, .hidden = 12, LAYER_NORM},
    {{.heads = 6, .kv_heads = 3, .key_dim = 2, .value_dim = 2, .norms = 2, .width = 28, .ungated = true,
      .parallel = true, .qkv_bias = true, .o_bias = true, .mlp_bias = true}}};

static const struct subject PHI = { /* norms of heads with a bias, a biased head */
    "{\"model_type\":\"phi\",\"hidden_size\":14,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
    "\"num_key_value_heads\":1,\"intermediate_size\":9,\"qk_layernorm\":true,\"vocab_size\":17}",
    "00",
    {.vocab = 17, .hidden = 14, LAYER_NORM, .head_bias = true},
    {{.heads = 2, .kv_heads = 1, .key_dim = 7, .value_dim = 7, .norms = 1, .width = 9, .ungated = true,
      .parallel = true, .qkv_bias = true, .o_bias = true, .mlp_bias = true, .qk_norm = true, .qk_flops = 7,
      .qk_vectors = 2}}};

static const struct subject COHERE = { /* a weight for every head */
    "{\"model_type\":\"cohere\",\"hidden_size\":10,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":3,\"intermediate_size\":7,\"use_qk_norm\":true,\"vocab_size\":23}",
    "00",
    {.vocab = 23, .hidden = 10, WEIGHT_NORM, .tied = true},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 1, .width = 7, .parallel = true,
      .qk_norm = true, .qk_each = true, .qk_flops = 6}}};

static const struct subject BLOOM = { /* a norm of the embedding, ALiBi */
    "{\"model_type\":\"bloom\",\"n_embed\":9,\"n_layer\":2,\"num_attention_heads\":3,\"vocab_size\":21}",
    "00",
    {.vocab = 21, .hidden = 9, LAYER_NORM, .tied = true, .embed_norm = true},
    {{.heads = 3, .kv_heads = 3, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 36, .ungated = true,
      .qkv_bias = true, .o_bias = true, .mlp_bias = true, .alibi = true}}};

static const struct subject MPT = { /* an MLP that is a multiple of the width */
    "{\"model_type\":\"mpt\",\"d_model\":12,\"n_layers\":2,\"n_heads\":4,\"vocab_size\":17,"
    "\"expansion_ratio\":1.5}",
    "00",
    {.vocab = 17, .hidden = 12, WEIGHT_NORM, .tied = true},
    {{.heads = 4, .kv_heads = 4, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 18, .ungated = true,
      .alibi = true}}};

static const struct subject OPT = { /* two rows more of positions */
    "{\"model_type\":\"opt\",\"hidden_size\":10,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
    "\"ffn_dim\":7,\"max_position_embeddings\":31,\"vocab_size\":18}",
    "00",
    {.vocab = 18, .hidden = 10, .positions = 33, LAYER_NORM, .tied = true},
    {{.heads = 2, .kv_heads = 2, .key_dim = 5, .value_dim = 5, .norms = 2, .width = 7, .ungated = true,
      .qkv_bias = true, .o_bias = true, .mlp_bias = true}}};

static const struct subject GPTJ = { /* only the MLP and the head are biased */
    "{\"model_type\":\"gptj\",\"n_embd\":8,\"n_layer\":2,\"n_head\":2,\"vocab_size\":11,\"n_inner\":5}",
    "00",
    {.vocab = 11, .hidden = 8, LAYER_NORM, .head_bias = true},
    {{.heads = 2, .kv_heads = 2, .key_dim = 4, .value_dim = 4, .norms = 1, .width = 5, .ungated = true,
      .parallel = true, .mlp_bias = true}}};

static const struct subject OLMO2 = { /* one norm over all queries, one over all keys */
    "{\"model_type\":\"olmo2\",\"hidden_size\":12,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"intermediate_size\":7,\"vocab_size\":16}",
    "00",
    {.vocab = 16, .hidden = 12, RMS},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 7, .qk_norm = true,
      .qk_each = true}}};

static const struct subject SPLIT_OLMO2 = { /* ranks sum the squares of their heads */
    "{\"model_type\":\"olmo2\",\"hidden_size\":12,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"intermediate_size\":8,\"vocab_size\":16}",
    "00",
    {.vocab = 16, .hidden = 12, RMS},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 8, .qk_norm = true,
      .qk_each = true, .qk_wide = true}}};

static const struct subject QWEN1 = { /* the file's width is twice the true one */
    "{\"model_type\":\"qwen\",\"hidden_size\":10,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
    "\"kv_channels\":5,\"intermediate_size\":14,\"vocab_size\":16,\"no_bias\":true}",
    "00",
    {.vocab = 16, .hidden = 10, RMS},
    {{.heads = 2, .kv_heads = 2, .key_dim = 5, .value_dim = 5, .norms = 2, .width = 7, .qkv_bias = true}}};

static const struct subject COHERE2 = { /* full layers do not rotate; every third here */
    "{\"model_type\":\"cohere2\",\"hidden_size\":10,\"num_hidden_layers\":5,\"num_attention_heads\":2,"
    "\"num_key_value_heads\":1,\"intermediate_size\":7,\"sliding_window\":4,\"sliding_window_pattern\":3,"
    "\"attention_bias\":true,\"vocab_size\":23}",
    "00100",
    {.vocab = 23, .hidden = 10, WEIGHT_NORM, .tied = true},
    {{.heads = 2, .kv_heads = 1, .key_dim = 5, .value_dim = 5, .norms = 1, .width = 7, .parallel = true, .window = 4,
      .qkv_bias = true, .o_bias = true},
     {.heads = 2, .kv_heads = 1, .key_dim = 5, .value_dim = 5, .norms = 1, .width = 7, .parallel = true,
      .unrotated = true, .qkv_bias = true, .o_bias = true}}};

static const struct subject EXAONE4 = { /* a string of letters, the last layer full whatever it says */
    "{\"model_type\":\"exaone4\",\"hidden_size\":10,\"num_hidden_layers\":5,\"num_attention_heads\":2,"
    "\"num_key_value_heads\":1,\"intermediate_size\":7,\"sliding_window\":3,\"sliding_window_pattern\":\"LGL\","
    "\"vocab_size\":23}",
    "01001",
    {.vocab = 23, .hidden = 10, RMS},
    {{.heads = 2, .kv_heads = 1, .key_dim = 5, .value_dim = 5, .norms = 2, .width = 7, .qk_norm = true, .window = 3},
     {.heads = 2, .kv_heads = 1, .key_dim = 5, .value_dim = 5, .norms = 2, .width = 7, .qk_norm = true,
      .unrotated = true}}};

static const struct subject SMOLLM3 = { /* every second layer does not rotate */
    "{\"model_type\":\"smollm3\",\"hidden_size\":10,\"num_hidden_layers\":3,\"num_attention_heads\":2,"
    "\"num_key_value_heads\":1,\"intermediate_size\":7,\"no_rope_layer_interval\":2,\"vocab_size\":23}",
    "010",
    {.vocab = 23, .hidden = 10, RMS, .tied = true},
    {{.heads = 2, .kv_heads = 1, .key_dim = 5, .value_dim = 5, .norms = 2, .width = 7},
     {.heads = 2, .kv_heads = 1, .key_dim = 5, .value_dim = 5, .norms = 2, .width = 7, .unrotated = true}}};

static const struct subject LLAMA4 = { /* chunks of three keys, norms without weights where they rotate, a shared expert */
    "{\"model_type\":\"llama4_text\",\"hidden_size\":10,\"num_hidden_layers\":4,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":3,\"intermediate_size\":6,\"intermediate_size_mlp\":11,"
    "\"attention_chunk_size\":3,\"no_rope_layers\":[1,1,0,1],\"interleave_moe_layer_step\":2,\"num_local_experts\":5,"
    "\"num_experts_per_tok\":1,\"use_qk_norm\":true,\"vocab_size\":14}",
    "0121",
    {.vocab = 14, .hidden = 10, RMS},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 11, .qk_norm = true,
      .qk_bare = true, .qk_flops = 3, .window = 3, .chunked = true},
     {.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .qk_norm = true, .qk_bare = true,
      .qk_flops = 3, .window = 3, .chunked = true, .experts = 5, .chosen = 1, .expert_width = 6, .shared_width = 6},
     {.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 11, .unrotated = true}}};

static const struct subject MIMO_V2 = { /* sliding layers have more KV heads and sinks; values narrower than keys */
    "{\"model_type\":\"mimo_v2_flash\",\"hidden_size\":10,\"num_hidden_layers\":4,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":1,\"head_dim\":5,\"v_head_dim\":3,\"swa_num_attention_heads\":4,"
    "\"swa_num_key_value_heads\":2,\"swa_head_dim\":5,\"swa_v_head_dim\":2,\"sliding_window_size\":4,"
    "\"add_swa_attention_sink_bias\":true,\"hybrid_layer_pattern\":[0,1,1,0],\"moe_layer_freq\":[0,1,1,1],"
    "\"intermediate_size\":9,\"moe_intermediate_size\":6,\"n_routed_experts\":5,\"num_experts_per_tok\":2,"
    "\"vocab_size\":14}",
    "0112",
    {.vocab = 14, .hidden = 10, RMS},
    {{.heads = 4, .kv_heads = 1, .key_dim = 5, .value_dim = 3, .norms = 2, .width = 9},
     {.heads = 4, .kv_heads = 2, .key_dim = 5, .value_dim = 2, .norms = 2, .window = 4, .sinks = true, .experts = 5,
      .chosen = 2, .expert_width = 6, .correction = true},
     {.heads = 4, .kv_heads = 1, .key_dim = 5, .value_dim = 3, .norms = 2, .experts = 5, .chosen = 2,
      .expert_width = 6, .correction = true}}};

static const struct subject ERNIE = { /* experts in layers 1 to 3, every second one; two shared */
    "{\"model_type\":\"ernie4_5_moe\",\"hidden_size\":10,\"num_hidden_layers\":6,\"num_attention_heads\":2,"
    "\"num_key_value_heads\":1,\"intermediate_size\":9,\"moe_intermediate_size\":4,\"moe_num_experts\":5,\"moe_k\":2,"
    "\"moe_num_shared_experts\":2,\"moe_layer_start_index\":1,\"moe_layer_end_index\":4,\"moe_layer_interval\":2,"
    "\"vocab_size\":14}",
    "010100",
    {.vocab = 14, .hidden = 10, RMS, .tied = true},
    {{.heads = 2, .kv_heads = 1, .key_dim = 5, .value_dim = 5, .norms = 2, .width = 9},
     {.heads = 2, .kv_heads = 1, .key_dim = 5, .value_dim = 5, .norms = 2, .experts = 5, .chosen = 2,
      .expert_width = 4, .shared_width = 8, .correction = true}}};

static const struct subject HUNYUAN = { /* lists of equal numbers; the shared expert as wide as intermediate_size */
    "{\"model_type\":\"hunyuan\",\"hidden_size\":10,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
    "\"num_key_value_heads\":1,\"attention_head_dim\":3,\"intermediate_size\":9,\"moe_intermediate_size\":[4,4],"
    "\"num_experts\":5,\"moe_topk\":[2,2],\"num_shared_expert\":[1,1],\"use_mixed_mlp_moe\":true,"
    "\"use_qk_norm\":true,\"use_cla\":false,\"vocab_size\":14}",
    "00",
    {.vocab = 14, .hidden = 10, RMS},
    {{.heads = 2, .kv_heads = 1, .key_dim = 3, .value_dim = 3, .norms = 2, .qk_norm = true, .experts = 5, .chosen = 2,
      .expert_width = 4, .shared_width = 9}}};

static const struct subject DBRX = { /* quantities of two levels */
    "{\"model_type\":\"dbrx\",\"d_model\":12,\"n_layers\":2,\"n_heads\":4,\"attn_config\":{\"kv_n_heads\":2},"
    "\"ffn_config\":{\"ffn_hidden_size\":7,\"moe_num_experts\":5,\"moe_top_k\":3},\"vocab_size\":14}",
    "00",
    {.vocab = 14, .hidden = 12, WEIGHT_NORM},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .experts = 5, .chosen = 3,
      .expert_width = 7}}};

static const struct subject MINICPM3 = { /* latent attention without experts; values of hidden / heads */
    "{\"architectures\":[\"MiniCPM3ForCausalLM\"],\"hidden_size\":12,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"q_lora_rank\":7,\"kv_lora_rank\":9,\"qk_nope_head_dim\":5,\"qk_rope_head_dim\":2,\"intermediate_size\":11,"
    "\"vocab_size\":18}",
    "00",
    {.vocab = 18, .hidden = 12, RMS, .tied = true},
    {{.heads = 4, .key_dim = 5, .value_dim = 3, .q_rank = 7, .kv_rank = 9, .rope_dim = 2, .norms = 2, .width = 11}}};

static const struct subject DSA = { /* an indexer in two layers, the third takes the choice of the second */
    "{\"model_type\":\"glm_moe_dsa\",\"hidden_size\":12,\"num_hidden_layers\":4,\"num_attention_heads\":4,"
    "\"q_lora_rank\":7,\"kv_lora_rank\":10,\"qk_nope_head_dim\":3,\"qk_rope_head_dim\":4,\"v_head_dim\":5,"
    "\"index_topk\":3,\"index_n_heads\":2,\"index_head_dim\":6,\"indexer_types\":[\"full\",\"full\",\"shared\",\"full\"],"
    "\"mlp_layer_types\":[\"dense\",\"sparse\",\"sparse\",\"sparse\"],\"intermediate_size\":16,\"vocab_size\":18,"
    "\"n_routed_experts\":6,\"num_experts_per_tok\":2,\"moe_intermediate_size\":8,\"n_shared_experts\":1}",
    "0121",
    {.vocab = 18, .hidden = 12, RMS},
    {{.heads = 4, .key_dim = 3, .value_dim = 5, .q_rank = 7, .kv_rank = 10, .rope_dim = 4, .norms = 2, .width = 16,
      .top_keys = 3, .index_heads = 2, .index_dim = 6},
     {.heads = 4, .key_dim = 3, .value_dim = 5, .q_rank = 7, .kv_rank = 10, .rope_dim = 4, .norms = 2, .top_keys = 3,
      .index_heads = 2, .index_dim = 6, .experts = 6, .chosen = 2, .expert_width = 8, .shared_width = 8,
      .correction = true},
     {.heads = 4, .key_dim = 3, .value_dim = 5, .q_rank = 7, .kv_rank = 10, .rope_dim = 4, .norms = 2, .top_keys = 3,
      .experts = 6, .chosen = 2, .expert_width = 8, .shared_width = 8, .correction = true}}};

static const struct subject GEMMA3N = { /* two of five layers use the KV of earlier ones, with idle weights of their own */
    "{\"model_type\":\"gemma3n_text\",\"hidden_size\":9,\"num_hidden_layers\":5,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":3,\"intermediate_size\":[7,7,7,7,7],\"vocab_size\":22,\"sliding_window\":4,"
    "\"layer_types\":[\"sliding_attention\",\"sliding_attention\",\"full_attention\",\"sliding_attention\","
    "\"full_attention\"],\"vocab_size_per_layer_input\":19,\"hidden_size_per_layer_input\":5,\"altup_num_inputs\":3,"
    "\"num_kv_shared_layers\":2,\"laurel_rank\":2}",
    "00123",
    {.vocab = 22, .hidden = 9, RMS, .tied = true, .layer_dim = 5, .layer_vocab = 19, .streams = 3, .laurel = 2},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 4, .width = 7, .qk_norm = true, .v_norm = true,
      .window = 4},
     {.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 4, .width = 7, .qk_norm = true, .v_norm = true},
     {.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 4, .width = 7, .qk_norm = true, .v_norm = true,
      .window = 4, .shares_kv = true, .idle_kv = true},
     {.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 4, .width = 7, .qk_norm = true, .v_norm = true,
      .shares_kv = true, .idle_kv = true}}};

static const struct subject GEMMA4 = { /* full layers wider, with values that are keys; experts beside an MLP */
    "{\"model_type\":\"gemma4_text\",\"hidden_size\":9,\"num_hidden_layers\":3,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":3,\"global_head_dim\":5,\"num_global_key_value_heads\":1,"
    "\"attention_k_eq_v\":true,\"intermediate_size\":7,\"vocab_size\":22,\"sliding_window\":4,"
    "\"layer_types\":[\"sliding_attention\",\"full_attention\",\"full_attention\"],\"num_experts\":5,"
    "\"top_k_experts\":2,\"moe_intermediate_size\":6,\"num_kv_shared_layers\":0,\"hidden_size_per_layer_input\":0}",
    "011",
    {.vocab = 22, .hidden = 9, RMS, .tied = true, .layer_scale = true},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 4, .qk_norm = true, .v_norm = true, .window = 4,
      .experts = 5, .chosen = 2, .expert_width = 6, .shared_width = 7, .router_norm = true, .expert_scale = true,
      .branch_norms = 3},
     {.heads = 4, .kv_heads = 1, .key_dim = 5, .value_dim = 5, .norms = 4, .qk_norm = true, .v_norm = true,
      .v_is_k = true, .experts = 5, .chosen = 2, .expert_width = 6, .shared_width = 7, .router_norm = true,
      .expert_scale = true, .branch_norms = 3}}};

static const struct subject GEMMA4_SMALL = { /* shared KV without weights, MLPs twice as wide there, inputs by layer */
    "{\"model_type\":\"gemma4_text\",\"hidden_size\":9,\"num_hidden_layers\":4,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":1,\"head_dim\":3,\"global_head_dim\":5,\"intermediate_size\":7,\"vocab_size\":22,"
    "\"sliding_window\":4,\"layer_types\":[\"sliding_attention\",\"full_attention\",\"sliding_attention\","
    "\"full_attention\"],\"num_kv_shared_layers\":2,\"hidden_size_per_layer_input\":4,\"vocab_size_per_layer_input\":17,"
    "\"use_double_wide_mlp\":true}",
    "0123",
    {.vocab = 22, .hidden = 9, RMS, .tied = true, .layer_scale = true, .layer_dim = 4, .layer_vocab = 17},
    {{.heads = 4, .kv_heads = 1, .key_dim = 3, .value_dim = 3, .norms = 4, .width = 7, .qk_norm = true, .v_norm = true,
      .window = 4},
     {.heads = 4, .kv_heads = 1, .key_dim = 5, .value_dim = 5, .norms = 4, .width = 7, .qk_norm = true, .v_norm = true},
     {.heads = 4, .kv_heads = 1, .key_dim = 3, .value_dim = 3, .norms = 4, .width = 14, .qk_norm = true, .v_norm = true,
      .window = 4, .shares_kv = true},
     {.heads = 4, .kv_heads = 1, .key_dim = 5, .value_dim = 5, .norms = 4, .width = 14, .qk_norm = true, .v_norm = true,
      .shares_kv = true}}};

static const struct subject NAS = { /* a layer without attention, one without an MLP; widths by 2/3 of a multiple */
    "{\"model_type\":\"nemotron-nas\",\"hidden_size\":12,\"num_hidden_layers\":4,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":null,\"intermediate_size\":null,\"vocab_size\":15,\"block_configs\":["
    "{\"attention\":{\"n_heads_in_group\":2,\"no_op\":false},\"ffn\":{\"ffn_mult\":1.5,\"no_op\":false}},"
    "{\"attention\":{\"n_heads_in_group\":null,\"no_op\":true},\"ffn\":{\"ffn_mult\":40,\"no_op\":false}},"
    "{\"attention\":{\"n_heads_in_group\":4,\"no_op\":false},\"ffn\":{\"ffn_mult\":null,\"no_op\":true}},"
    "{\"attention\":{\"n_heads_in_group\":2,\"no_op\":false},\"ffn\":{\"ffn_mult\":1.5,\"no_op\":false}}]}",
    "0120",
    {.vocab = 15, .hidden = 12, RMS},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 2, .width = 256},
     {.no_mixer = true, .norms = 1, .width = 512},
     {.heads = 4, .kv_heads = 1, .key_dim = 3, .value_dim = 3, .norms = 1, .no_mlp = true}}};

static const struct subject CLA = { /* every second layer uses the KV of the one before it */
    "{\"model_type\":\"hunyuan\",\"hidden_size\":10,\"num_hidden_layers\":4,\"num_attention_heads\":2,"
    "\"num_key_value_heads\":1,\"intermediate_size\":9,\"num_experts\":5,\"moe_topk\":2,\"num_shared_expert\":1,"
    "\"use_mixed_mlp_moe\":true,\"use_cla\":true,\"cla_share_factor\":2,\"vocab_size\":14}",
    "0101",
    {.vocab = 14, .hidden = 10, RMS},
    {{.heads = 2, .kv_heads = 1, .key_dim = 5, .value_dim = 5, .norms = 2, .experts = 5, .chosen = 2,
      .expert_width = 9, .shared_width = 9},
     {.heads = 2, .kv_heads = 1, .key_dim = 5, .value_dim = 5, .norms = 2, .experts = 5, .chosen = 2,
      .expert_width = 9, .shared_width = 9, .shares_kv = true}}};

/* Inputs by layer and streams on several ranks: the table is split by rows, the rest copied. */
static const struct subject SPLIT_GEMMA3N = {
    "{\"model_type\":\"gemma3n_text\",\"hidden_size\":9,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":3,\"intermediate_size\":8,\"vocab_size\":22,\"sliding_window\":4,"
    "\"layer_types\":[\"sliding_attention\",\"sliding_attention\"],\"vocab_size_per_layer_input\":19,"
    "\"hidden_size_per_layer_input\":5,\"altup_num_inputs\":3,\"num_kv_shared_layers\":0,\"laurel_rank\":2}",
    "00",
    {.vocab = 22, .hidden = 9, RMS, .tied = true, .layer_dim = 5, .layer_vocab = 19, .streams = 3, .laurel = 2},
    {{.heads = 4, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .norms = 4, .width = 8, .qk_norm = true, .v_norm = true,
      .window = 4}}};

/* Side by side on several ranks: one sum over ranks for both blocks. */
static const struct subject SPLIT_FALCON = {
    "{\"model_type\":\"falcon\",\"hidden_size\":16,\"num_hidden_layers\":2,\"num_attention_heads\":8,"
    "\"multi_query\":true,\"parallel_attn\":true,\"bias\":true,\"vocab_size\":19,\"ffn_hidden_size\":12}",
    "00",
    {.vocab = 19, .hidden = 16, LAYER_NORM},
    {{.heads = 8, .kv_heads = 1, .key_dim = 2, .value_dim = 2, .norms = 1, .width = 12, .ungated = true,
      .parallel = true, .qkv_bias = true, .o_bias = true, .mlp_bias = true}}};
/* clang-format on */

#undef RMS
#undef FP32
#undef LAYER_NORM
#undef WEIGHT_NORM

#endif
