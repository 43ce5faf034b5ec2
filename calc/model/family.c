#include "calc/model/family.h"

#include <string.h>
#include <strings.h>

struct spelling {
    const char *symbol;
    const char *keys[8];
};

static const struct spelling SPELLINGS[DIM_N] = {
    [DIM_LAYERS] = {"L", {"num_hidden_layers", "n_layer", "n_layers", "num_layers"}},
    [DIM_HIDDEN] = {"D", {"hidden_size", "n_embd", "n_embed", "d_model"}},
    [DIM_FFN] = {"F", {"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"}},
    [DIM_HEADS] = {"N", {"num_attention_heads", "n_head", "n_heads", "num_heads"}},
    [DIM_KV_HEADS] = {"K", {"num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num"}},
    [DIM_HEAD_DIM] = {"H", {"head_dim", "kv_channels", "attention_head_dim"}},
    [DIM_VOCAB] = {"V", {"vocab_size", "padded_vocab_size"}},
    [DIM_POSITIONS] = {NULL, {"max_position_embeddings", "n_positions", "n_ctx", "seq_length", "max_seq_len"}},
    [DIM_WINDOW] = {"W", {"sliding_window", "sliding_window_size"}},
    [DIM_EXPERTS] = {"E", {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"}},
    [DIM_EXPERTS_PER_TOKEN] = {"k",
                               {"num_experts_per_tok", "experts_per_token", "num_experts_per_token", "moe_topk",
                                "moe_k", "top_k_experts"}},
    [DIM_EXPERT_WIDTH] = {NULL, {"moe_intermediate_size", "expert_hidden_size"}},
    [DIM_SHARED_EXPERTS] = {NULL, {"n_shared_experts", "num_shared_experts"}},
    [DIM_SHARED_WIDTH] = {NULL, {"shared_expert_intermediate_size"}},
    [DIM_DENSE_PREFIX] = {NULL, {"first_k_dense_replace"}},
    [DIM_SPARSE_STEP] = {NULL, {"decoder_sparse_step", "moe_layer_freq"}},
    [DIM_Q_RANK] = {NULL, {"q_lora_rank"}},
    [DIM_KV_RANK] = {"C", {"kv_lora_rank"}},
    [DIM_NOPE_DIM] = {NULL, {"qk_nope_head_dim"}},
    [DIM_ROPE_DIM] = {"R", {"qk_rope_head_dim"}},
    [DIM_V_HEAD_DIM] = {NULL, {"v_head_dim"}},
};

const char *const *dim_spellings(enum dim d) { return SPELLINGS[d].keys; }
const char *dim_symbol(enum dim d) { return SPELLINGS[d].symbol; }

/* Class defaults and tensor lists follow Hugging Face transformers, configuration_*.py and modeling_*.py of each
 * family; "exact" names the published count that a test holds the row to. */
static const struct family FAMILIES[] = {
    {.name = "llama",
     .types = {"llama"},
     .architectures = {"LlamaForCausalLM"},
     .norms = 2,
     .bias = BIAS_KEY,
     .blocks = "attention, gated MLP",
     .exact = "total and KV against Hub safetensors totals (Llama 1-3.3, CodeLlama, SmolLM2)"},
    {.name = "mistral",
     .types = {"mistral"},
     .architectures = {"MistralForCausalLM"},
     .norms = 2,
     .window = WINDOW_EVERY,
     .defaults = {{DIM_KV_HEADS, 8}, {DIM_WINDOW, 4096}},
     .blocks = "attention (windowed in v0.1), gated MLP",
     .exact = "total and KV against Hub safetensors totals"},
    {.name = "mixtral",
     .types = {"mixtral"},
     .architectures = {"MixtralForCausalLM"},
     .norms = 2,
     .window = WINDOW_EVERY,
     .moe = MOE_EVERY,
     .defaults = {{DIM_KV_HEADS, 8}, {DIM_EXPERTS, 8}, {DIM_EXPERTS_PER_TOKEN, 2}},
     .blocks = "attention, experts",
     .exact = "total, active and KV against Hub safetensors totals"},
    {.name = "qwen2",
     .types = {"qwen2"},
     .architectures = {"Qwen2ForCausalLM"},
     .norms = 2,
     .bias = BIAS_QKV,
     .window = WINDOW_OPT_IN,
     .defaults = {{DIM_KV_HEADS, 32}},
     .blocks = "attention with q, k, v bias, gated MLP",
     .exact = "total and KV against Hub safetensors totals (Qwen1.5, 2, 2.5)"},
    {.name = "qwen2_moe",
     .types = {"qwen2_moe"},
     .architectures = {"Qwen2MoeForCausalLM"},
     .norms = 2,
     .bias = BIAS_QKV,
     .window = WINDOW_OPT_IN,
     .defaults = {{DIM_KV_HEADS, 16}},
     .moe = MOE_QWEN,
     .shared_gate = true,
     .blocks = "attention with q, k, v bias, experts with a gated shared expert",
     .exact = "total, active and KV against Hub safetensors totals"},
    {.name = "qwen3",
     .types = {"qwen3"},
     .architectures = {"Qwen3ForCausalLM"},
     .norms = 2,
     .qk_norm = true,
     .bias = BIAS_KEY,
     .window = WINDOW_OPT_IN,
     .defaults = {{DIM_HEAD_DIM, 128}, {DIM_KV_HEADS, 32}},
     .blocks = "attention with q and k norms, gated MLP",
     .exact = "total and KV against Hub safetensors totals"},
    {.name = "qwen3_moe",
     .types = {"qwen3_moe"},
     .architectures = {"Qwen3MoeForCausalLM"},
     .norms = 2,
     .qk_norm = true,
     .bias = BIAS_KEY,
     .window = WINDOW_OPT_IN,
     .moe = MOE_QWEN,
     .defaults = {{DIM_HEAD_DIM, 128}, {DIM_KV_HEADS, 4}},
     .blocks = "attention with q and k norms, experts",
     .exact = "total, active and KV against Hub safetensors totals"},
    {.name = "gemma",
     .types = {"gemma"},
     .architectures = {"GemmaForCausalLM"},
     .norms = 2,
     .tied = true,
     .bias = BIAS_KEY,
     .defaults = {{DIM_HEAD_DIM, 256}, {DIM_KV_HEADS, 16}},
     .blocks = "attention, gated MLP",
     .exact = "total and KV against Hub safetensors totals"},
    {.name = "gemma2",
     .types = {"gemma2"},
     .architectures = {"Gemma2ForCausalLM"},
     .norms = 4,
     .tied = true,
     .bias = BIAS_KEY,
     .window = WINDOW_ALTERNATE,
     .defaults = {{DIM_HEAD_DIM, 256}, {DIM_KV_HEADS, 4}, {DIM_WINDOW, 4096}},
     .blocks = "sliding and full attention by turns, gated MLP",
     .exact = "total and KV against Hub safetensors totals"},
    {.name = "gemma3",
     .types = {"gemma3_text", "gemma3"},
     .norms = 4,
     .tied = true,
     .qk_norm = true,
     .architectures = {"Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"},
     .bias = BIAS_KEY,
     .window = WINDOW_PERIOD,
     .window_period = 6,
     .defaults = {{DIM_HEAD_DIM, 256},
                  {DIM_HEADS, 8},
                  {DIM_KV_HEADS, 4},
                  {DIM_VOCAB, 262208},
                  {DIM_WINDOW, 4096},
                  {DIM_POSITIONS, 131072}},
     .blocks = "five sliding layers and a full one, q and k norms, gated MLP",
     .exact = "text total and KV against Hub safetensors totals less the vision tower"},
    {.name = "phi3",
     .types = {"phi3"},
     .architectures = {"Phi3ForCausalLM"},
     .norms = 2,
     .window = WINDOW_EVERY,
     .blocks = "attention (windowed where the file says so), gated MLP",
     .exact = "total and KV against Hub safetensors totals (Phi-3, Phi-4)"},
    {.name = "gpt2",
     .types = {"gpt2"},
     .architectures = {"GPT2LMHeadModel"},
     .norm = NORM_LAYER_BIAS,
     .norms = 2,
     .tied = true,
     .ungated = true,
     .positions = true,
     .bias = BIAS_ALL,
     .blocks = "attention with biases, two-matrix MLP, learned positions",
     .exact = "total against the published files"},
    {.name = "deepseek",
     .types = {"deepseek"},
     .architectures = {"DeepseekForCausalLM"},
     .norms = 2,
     .bias = BIAS_KEY,
     .moe = MOE_DEEPSEEK,
     .blocks = "attention, dense prefix, experts with shared experts",
     .exact = "total, active and KV against Hub safetensors totals"},
    {.name = "deepseek_v2",
     .types = {"deepseek_v2"},
     .architectures = {"DeepseekV2ForCausalLM"},
     .norms = 2,
     .latent = true,
     .moe = MOE_DEEPSEEK,
     .defaults = {{DIM_Q_RANK, 1536}},
     .blocks = "latent attention (MLA), dense prefix, experts with shared experts",
     .exact = "total, active and KV against Hub safetensors totals"},
    {.name = "deepseek_v3",
     .types = {"deepseek_v3", "kimi_k2"},
     .architectures = {"DeepseekV3ForCausalLM"},
     .norms = 2,
     .latent = true,
     .router_correction = true,
     .moe = MOE_DEEPSEEK,
     .defaults = {{DIM_DENSE_PREFIX, 3}, {DIM_Q_RANK, 1536}, {DIM_SHARED_EXPERTS, 1}},
     .blocks = "latent attention (MLA), dense prefix, experts with shared experts and routing bias",
     .exact = "main model against Hub totals less the MTP layer; KV"},
    {.name = "gpt_oss",
     .types = {"gpt_oss"},
     .architectures = {"GptOssForCausalLM"},
     .norms = 2,
     .sinks = true,
     .bias_default = true,
     .expert_bias = true,
     .router_bias = true,
     .bias = BIAS_KEY,
     .window = WINDOW_ALTERNATE,
     .moe = MOE_EVERY,
     .defaults = {{DIM_HEAD_DIM, 64}, {DIM_KV_HEADS, 8}, {DIM_WINDOW, 128}},
     .blocks = "sliding and full attention with sinks and biases, experts with biases",
     .exact = "total, active and KV against the published counts"},
};

const struct family *family_table(size_t *n)
{
    *n = sizeof FAMILIES / sizeof FAMILIES[0];
    return FAMILIES;
}

const struct family *family_find(const char *model_type)
{
    size_t n;
    const struct family *f = family_table(&n);
    for (size_t i = 0; i < n; i++)
        for (size_t t = 0; t < sizeof f->types / sizeof f->types[0] && f[i].types[t]; t++)
            if (strcmp(model_type, f[i].types[t]) == 0) return &f[i];
    return NULL;
}

const struct family *family_find_architecture(const char *name)
{
    size_t n;
    const struct family *f = family_table(&n);
    for (size_t i = 0; i < n; i++)
        for (size_t t = 0; t < sizeof f->architectures / sizeof f->architectures[0] && f[i].architectures[t]; t++)
            if (strcasecmp(name, f[i].architectures[t]) == 0) return &f[i];
    return NULL;
}
