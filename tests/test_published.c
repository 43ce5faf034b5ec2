/* Parameter counts of published models, as quoted and not read here from their files, each beside a config.json cut
 * down to the keys that decide sizes. A count that ends in the same unit is evidence for both; one that does not proves
 * neither. And what classes take a key that is absent for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "calc/cost/cost.h"

static const struct {
    const char *model;
    int64_t total_params;
    const char *json;
} PUBLISHED[] = {
    {"apertus-8b", 8053338176,
     "{\"model_type\":\"apertus\",\"hidden_size\":4096,\"num_hidden_layers\":32,\"num_atte"
     "ntion_heads\":32,\"num_key_value_heads\":8,\"intermediate_size\":21504,\"vocab_size"
     "\":131072,\"hidden_act\":\"xielu\",\"tie_word_embeddings\":false,\"qk_norm\":true,\""
     "post_norm\":false,\"attention_bias\":false,\"mlp_bias\":false}"},
    {"granite-4.0-micro", 3402836480, /* safetensors total of the Hub */
     "{\"model_type\":\"granitemoehybrid\",\"hidden_size\":2560,\"num_hidden_layers\":40,"
     "\"num_attention_heads\":40,\"num_key_value_heads\":8,\"intermediate_size\":8192,\"sh"
     "ared_intermediate_size\":8192,\"num_local_experts\":0,\"num_experts_per_tok\":0,\"vo"
     "cab_size\":100352,\"tie_word_embeddings\":true,\"mamba_n_heads\":128,\"mamba_d_head"
     "\":64,\"mamba_d_state\":256,\"mamba_expand\":2,\"layer_types\":[\"attention\",\"atte"
     "ntion\",\"attention\",\"attention\",\"attention\",\"attention\",\"attention\",\"atte"
     "ntion\",\"attention\",\"attention\",\"attention\",\"attention\",\"attention\",\"atte"
     "ntion\",\"attention\",\"attention\",\"attention\",\"attention\",\"attention\",\"atte"
     "ntion\",\"attention\",\"attention\",\"attention\",\"attention\",\"attention\",\"atte"
     "ntion\",\"attention\",\"attention\",\"attention\",\"attention\",\"attention\",\"atte"
     "ntion\",\"attention\",\"attention\",\"attention\",\"attention\",\"attention\",\"atte"
     "ntion\",\"attention\",\"attention\"],\"position_embedding_type\":\"rope\"}"},
    {"granite-4.0-h-tiny", 6939037248,
     "{\"model_type\":\"granitemoehybrid\",\"hidden_size\":1536,\"num_hidden_layers\":40,"
     "\"num_attention_heads\":12,\"num_key_value_heads\":4,\"intermediate_size\":512,\"sha"
     "red_intermediate_size\":1024,\"num_local_experts\":64,\"num_experts_per_tok\":6,\"vo"
     "cab_size\":100352,\"tie_word_embeddings\":true,\"mamba_n_heads\":48,\"mamba_d_head\""
     ":64,\"mamba_d_state\":128,\"mamba_d_conv\":4,\"mamba_n_groups\":1,\"mamba_expand\":2"
     ",\"mamba_chunk_size\":256,\"layer_types\":[\"mamba\",\"mamba\",\"mamba\",\"mamba\","
     "\"mamba\",\"attention\",\"mamba\",\"mamba\",\"mamba\",\"mamba\",\"mamba\",\"mamba\","
     "\"mamba\",\"mamba\",\"mamba\",\"attention\",\"mamba\",\"mamba\",\"mamba\",\"mamba\","
     "\"mamba\",\"mamba\",\"mamba\",\"mamba\",\"mamba\",\"attention\",\"mamba\",\"mamba\","
     "\"mamba\",\"mamba\",\"mamba\",\"mamba\",\"mamba\",\"mamba\",\"mamba\",\"attention\","
     "\"mamba\",\"mamba\",\"mamba\",\"mamba\"],\"position_embedding_type\":\"nope\"}"},
    {"bitnet-2b-4t", 2412820480,
     "{\"model_type\":\"bitnet\",\"hidden_size\":2560,\"num_hidden_layers\":30,\"num_atten"
     "tion_heads\":20,\"num_key_value_heads\":5,\"intermediate_size\":6912,\"vocab_size\":"
     "128256,\"tie_word_embeddings\":true,\"hidden_act\":\"relu2\"}"},
    {"ernie-4.5-21b-a3b", 21825437888,
     "{\"model_type\":\"ernie4_5_moe\",\"hidden_size\":2560,\"num_hidden_layers\":28,\"num"
     "_attention_heads\":20,\"num_key_value_heads\":4,\"intermediate_size\":12288,\"moe_in"
     "termediate_size\":1536,\"moe_num_experts\":64,\"moe_k\":6,\"moe_num_shared_experts\""
     ":2,\"moe_layer_start_index\":1,\"moe_layer_end_index\":27,\"moe_layer_interval\":1,"
     "\"vocab_size\":103424,\"tie_word_embeddings\":true,\"use_bias\":false}"},
    {"exaone-4.0-32b", 32003216384,
     "{\"model_type\":\"exaone4\",\"hidden_size\":5120,\"num_hidden_layers\":64,\"num_atte"
     "ntion_heads\":40,\"num_key_value_heads\":8,\"head_dim\":128,\"intermediate_size\":27"
     "392,\"vocab_size\":102400,\"tie_word_embeddings\":false,\"sliding_window\":4096,\"sl"
     "iding_window_pattern\":\"LLLG\"}"},
    {"command-a", 111057580032,
     "{\"model_type\":\"cohere2\",\"hidden_size\":12288,\"num_hidden_layers\":64,\"num_att"
     "ention_heads\":96,\"num_key_value_heads\":8,\"head_dim\":128,\"intermediate_size\":3"
     "6864,\"vocab_size\":256000,\"tie_word_embeddings\":true,\"sliding_window\":4096,\"sl"
     "iding_window_pattern\":4}"},
    {"falcon-h1-0.5b", 521411104,
     "{\"model_type\":\"falcon_h1\",\"hidden_size\":1024,\"num_hidden_layers\":36,\"num_at"
     "tention_heads\":8,\"num_key_value_heads\":2,\"head_dim\":64,\"intermediate_size\":20"
     "48,\"vocab_size\":32784,\"mamba_d_ssm\":1536,\"mamba_n_heads\":24,\"mamba_d_head\":6"
     "4,\"mamba_n_groups\":1,\"mamba_d_state\":128,\"mamba_d_conv\":4,\"mamba_chunk_size\""
     ":128,\"mamba_rms_norm\":false,\"tie_word_embeddings\":false}"},
    {"granite-3.1-8b", 8170848256,
     "{\"model_type\":\"granite\",\"hidden_size\":4096,\"num_hidden_layers\":40,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"intermediate_size\":12800,"
     "\"vocab_size\":49155,\"tie_word_embeddings\":true}"},
    {"glm-4-9b-hf", 9399951360,
     "{\"model_type\":\"glm\",\"hidden_size\":4096,\"num_hidden_layers\":40,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":2,\"intermediate_size\":13696,"
     "\"vocab_size\":151552,\"head_dim\":128,\"attention_bias\":true}"},
    {"glm-4-9b-0414", 9400279040,
     "{\"model_type\":\"glm4\",\"hidden_size\":4096,\"num_hidden_layers\":40,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":2,\"intermediate_size\":13696,"
     "\"vocab_size\":151552,\"head_dim\":128,\"attention_bias\":true}"},
    {"seed-oss-36b", 36151104512,
     "{\"model_type\":\"seed_oss\",\"hidden_size\":5120,\"num_hidden_layers\":64,"
     "\"num_attention_heads\":80,\"num_key_value_heads\":8,\"intermediate_size\":27648,"
     "\"vocab_size\":155136,\"head_dim\":128,\"attention_bias\":true,\"attention_out_bias\":false}"},
    {"helium-1-preview", 2172643840,
     "{\"model_type\":\"helium\",\"hidden_size\":2560,\"num_hidden_layers\":24,"
     "\"num_attention_heads\":20,\"num_key_value_heads\":20,\"intermediate_size\":7040,"
     "\"vocab_size\":48000,\"head_dim\":128}"},
    {"afm-4.5b", 4619184640,
     "{\"model_type\":\"arcee\",\"hidden_size\":2560,\"num_hidden_layers\":36,"
     "\"num_attention_heads\":20,\"num_key_value_heads\":4,\"intermediate_size\":18432,"
     "\"vocab_size\":128004,\"head_dim\":128}"},
    {"exaone-3.5-7.8b", 7818448896,
     "{\"model_type\":\"exaone\",\"num_layers\":32,\"hidden_size\":4096,\"num_attention_heads\":32,"
     "\"num_key_value_heads\":8,\"intermediate_size\":14336,\"vocab_size\":102400,"
     "\"tie_word_embeddings\":false}"},
    {"exaone-3.5-2.4b", 2405327360,
     "{\"model_type\":\"exaone\",\"num_layers\":30,\"hidden_size\":2560,\"num_attention_heads\":32,"
     "\"num_key_value_heads\":8,\"intermediate_size\":7168,\"vocab_size\":102400,"
     "\"tie_word_embeddings\":true}"},
    {"hunyuan-7b", 7504568320,
     "{\"model_type\":\"hunyuan_v1_dense\",\"hidden_size\":4096,\"num_hidden_layers\":32,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"intermediate_size\":14336,"
     "\"vocab_size\":128167,\"head_dim\":128,\"use_qk_norm\":true,\"tie_word_embeddings\":true}"},
    {"dots.llm1", 142774381696,
     "{\"model_type\":\"dots1\",\"hidden_size\":4096,\"num_hidden_layers\":62,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":32,\"intermediate_size\":10944,"
     "\"vocab_size\":152064,\"moe_intermediate_size\":1408,\"n_routed_experts\":128,"
     "\"n_shared_experts\":2,\"num_experts_per_tok\":6,\"first_k_dense_replace\":1,"
     "\"sliding_window\":null,\"max_window_layers\":62}"},
    {"ling-lite", 16801974272,
     "{\"model_type\":\"bailing_moe\",\"hidden_size\":2048,\"num_hidden_layers\":28,"
     "\"num_attention_heads\":16,\"num_key_value_heads\":4,\"intermediate_size\":1408,"
     "\"vocab_size\":126464,\"moe_intermediate_size\":1408,\"num_experts\":64,"
     "\"num_shared_experts\":2,\"num_experts_per_tok\":6,\"first_k_dense_replace\":0,"
     "\"use_bias\":false,\"use_qkv_bias\":false}"},
    {"ling-mini-2.0", 16255643392,
     "{\"model_type\":\"bailing_moe\",\"hidden_size\":2048,\"num_hidden_layers\":20,"
     "\"num_attention_heads\":16,\"num_key_value_heads\":4,\"intermediate_size\":5120,"
     "\"vocab_size\":157184,\"head_dim\":128,\"moe_intermediate_size\":512,"
     "\"moe_shared_expert_intermediate_size\":512,\"num_experts\":256,\"num_shared_experts\":1,"
     "\"num_experts_per_tok\":8,\"first_k_dense_replace\":1,\"use_bias\":false,"
     "\"use_qkv_bias\":false,\"use_qk_norm\":true,\"moe_router_enable_expert_bias\":true,"
     "\"architectures\":[\"BailingMoeV2ForCausalLM\"],\"num_nextn_predict_layers\":0}"},
    {"ernie-4.5-0.3b", 360748032,
     "{\"model_type\":\"ernie4_5\",\"hidden_size\":1024,\"num_hidden_layers\":18,"
     "\"num_attention_heads\":16,\"num_key_value_heads\":2,\"intermediate_size\":3072,"
     "\"vocab_size\":103424,\"head_dim\":128,\"tie_word_embeddings\":true}"},
    {"exaone-4.0-1.2b", 1279391488,
     "{\"model_type\":\"exaone4\",\"hidden_size\":2048,\"num_hidden_layers\":30,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"intermediate_size\":4096,"
     "\"vocab_size\":102400,\"head_dim\":64,\"tie_word_embeddings\":true,\"sliding_window\":null,"
     "\"layer_types\":null}"},
    {"mistral-nemo", 12247782400,
     "{\"model_type\":\"mistral\",\"hidden_size\":5120,\"num_hidden_layers\":40,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"intermediate_size\":14336,"
     "\"vocab_size\":131072,\"head_dim\":128,\"sliding_window\":null}"},
    {"mistral-small-24b", 23572403200,
     "{\"model_type\":\"mistral\",\"hidden_size\":5120,\"num_hidden_layers\":40,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"intermediate_size\":32768,"
     "\"vocab_size\":131072,\"head_dim\":128,\"sliding_window\":null}"},
    {"qwen2.5-0.5b", 494032768,
     "{\"model_type\":\"qwen2\",\"hidden_size\":896,\"num_hidden_layers\":24,"
     "\"num_attention_heads\":14,\"num_key_value_heads\":2,\"intermediate_size\":4864,"
     "\"vocab_size\":151936,\"tie_word_embeddings\":true}"},
    {"qwen3-235b", 235093634560,
     "{\"model_type\":\"qwen3_moe\",\"hidden_size\":4096,\"num_hidden_layers\":94,"
     "\"num_attention_heads\":64,\"num_key_value_heads\":4,\"intermediate_size\":12288,"
     "\"vocab_size\":151936,\"head_dim\":128,\"moe_intermediate_size\":1536,\"num_experts\":128,"
     "\"num_experts_per_tok\":8,\"decoder_sparse_step\":1,\"mlp_only_layers\":[]}"},
    {"yi-1.5-9b", 8829407232,
     "{\"model_type\":\"llama\",\"hidden_size\":4096,\"num_hidden_layers\":48,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":4,\"intermediate_size\":11008,"
     "\"vocab_size\":64000}"},
    {"gemma-7b", 8537680896,
     "{\"model_type\":\"gemma\",\"hidden_size\":3072,\"num_hidden_layers\":28,"
     "\"num_attention_heads\":16,\"num_key_value_heads\":16,\"intermediate_size\":24576,"
     "\"vocab_size\":256000,\"head_dim\":256}"},
    {"gemma-2-9b", 9241705984,
     "{\"model_type\":\"gemma2\",\"hidden_size\":3584,\"num_hidden_layers\":42,"
     "\"num_attention_heads\":16,\"num_key_value_heads\":8,\"intermediate_size\":14336,"
     "\"vocab_size\":256000,\"head_dim\":256,\"sliding_window\":4096}"},
    {"gemma-3-1b", 999885952,
     "{\"model_type\":\"gemma3_text\",\"hidden_size\":1152,\"num_hidden_layers\":26,"
     "\"num_attention_heads\":4,\"num_key_value_heads\":1,\"intermediate_size\":6912,"
     "\"vocab_size\":262144,\"head_dim\":256,\"sliding_window\":512}"},
    {"phi-4", 14659507200,
     "{\"model_type\":\"phi3\",\"hidden_size\":5120,\"num_hidden_layers\":40,"
     "\"num_attention_heads\":40,\"num_key_value_heads\":10,\"intermediate_size\":17920,"
     "\"vocab_size\":100352}"},
    {"phi-4-mini", 3836021760,
     "{\"model_type\":\"phi3\",\"hidden_size\":3072,\"num_hidden_layers\":32,"
     "\"num_attention_heads\":24,\"num_key_value_heads\":8,\"intermediate_size\":8192,"
     "\"vocab_size\":200064,\"tie_word_embeddings\":true}"},
    {"phi-2", 2779683840,
     "{\"model_type\":\"phi\",\"hidden_size\":2560,\"num_hidden_layers\":32,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":32,\"intermediate_size\":10240,"
     "\"vocab_size\":51200}"},
    {"phi-3.5-moe", 41873153344,
     "{\"model_type\":\"phimoe\",\"hidden_size\":4096,\"num_hidden_layers\":32,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"intermediate_size\":6400,"
     "\"vocab_size\":32064,\"num_local_experts\":16,\"num_experts_per_tok\":2,"
     "\"attention_bias\":true,\"lm_head_bias\":true}"},
    {"olmo-2-7b", 7298617344,
     "{\"model_type\":\"olmo2\",\"hidden_size\":4096,\"num_hidden_layers\":32,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":32,\"intermediate_size\":11008,"
     "\"vocab_size\":100352}"},
    {"olmoe-1b-7b", 6919161856,
     "{\"model_type\":\"olmoe\",\"hidden_size\":2048,\"num_hidden_layers\":16,"
     "\"num_attention_heads\":16,\"num_key_value_heads\":16,\"intermediate_size\":1024,"
     "\"vocab_size\":50304,\"num_experts\":64,\"num_experts_per_tok\":8}"},
    {"starcoder2-15b", 15957889024,
     "{\"model_type\":\"starcoder2\",\"hidden_size\":6144,\"num_hidden_layers\":40,"
     "\"num_attention_heads\":48,\"num_key_value_heads\":4,\"intermediate_size\":24576,"
     "\"vocab_size\":49152,\"use_bias\":true,\"tie_word_embeddings\":false}"},
    {"falcon-7b", 7217189760,
     "{\"model_type\":\"falcon\",\"hidden_size\":4544,\"num_hidden_layers\":32,"
     "\"num_attention_heads\":71,\"num_kv_heads\":71,\"vocab_size\":65024,\"multi_query\":true,"
     "\"parallel_attn\":true,\"bias\":false,\"new_decoder_architecture\":false,\"alibi\":false}"},
    {"falcon3-7b", 7455550464,
     "{\"model_type\":\"llama\",\"hidden_size\":3072,\"num_hidden_layers\":28,"
     "\"num_attention_heads\":12,\"num_key_value_heads\":4,\"intermediate_size\":23040,"
     "\"vocab_size\":131072,\"head_dim\":256}"},
    {"smollm3-3b", 3075098624,
     "{\"model_type\":\"smollm3\",\"hidden_size\":2048,\"num_hidden_layers\":36,"
     "\"num_attention_heads\":16,\"num_key_value_heads\":4,\"intermediate_size\":11008,"
     "\"vocab_size\":128256,\"tie_word_embeddings\":true}"},
    {"deepseek-v2-lite", 15706484224,
     "{\"model_type\":\"deepseek_v2\",\"hidden_size\":2048,\"num_hidden_layers\":27,"
     "\"num_attention_heads\":16,\"num_key_value_heads\":16,\"intermediate_size\":10944,"
     "\"vocab_size\":102400,\"moe_intermediate_size\":1408,\"n_routed_experts\":64,"
     "\"n_shared_experts\":2,\"num_experts_per_tok\":6,\"first_k_dense_replace\":1,"
     "\"moe_layer_freq\":1,\"kv_lora_rank\":512,\"q_lora_rank\":null,\"qk_nope_head_dim\":128,"
     "\"qk_rope_head_dim\":64,\"v_head_dim\":128}"},
    {"command-r", 34980831232,
     "{\"model_type\":\"cohere\",\"hidden_size\":8192,\"num_hidden_layers\":40,"
     "\"num_attention_heads\":64,\"num_key_value_heads\":64,\"intermediate_size\":22528,"
     "\"vocab_size\":256000}"},
    {"stablelm-3b-4e1t", 2795443200,
     "{\"model_type\":\"stablelm\",\"hidden_size\":2560,\"num_hidden_layers\":32,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":32,\"intermediate_size\":6912,"
     "\"vocab_size\":50304}"},
    {"stablelm-2-12b", 12143185920,
     "{\"model_type\":\"stablelm\",\"hidden_size\":5120,\"num_hidden_layers\":40,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"intermediate_size\":13824,"
     "\"vocab_size\":100352,\"qk_layernorm\":true,\"use_parallel_residual\":true}"},
    {"gpt-neox-20b", 20554567680,
     "{\"model_type\":\"gpt_neox\",\"hidden_size\":6144,\"num_hidden_layers\":44,"
     "\"num_attention_heads\":64,\"num_key_value_heads\":64,\"intermediate_size\":24576,"
     "\"vocab_size\":50432}"},
    {"bloom-560m", 559214592,
     "{\"model_type\":\"bloom\",\"hidden_size\":1024,\"n_layer\":24,\"n_head\":16,"
     "\"vocab_size\":250880}"},
    {"opt-125m", 125239296,
     "{\"model_type\":\"opt\",\"hidden_size\":768,\"num_hidden_layers\":12,"
     "\"num_attention_heads\":12,\"ffn_dim\":3072,\"vocab_size\":50272,"
     "\"max_position_embeddings\":2048,\"word_embed_proj_dim\":768,"
     "\"do_layer_norm_before\":true}"},
    {"gpt-j-6b", 6050882784,
     "{\"model_type\":\"gptj\",\"n_embd\":4096,\"n_layer\":28,\"n_head\":16,\"vocab_size\":50400,"
     "\"n_positions\":2048}"},
    {"gpt2", 124439808,
     "{\"model_type\":\"gpt2\",\"n_embd\":768,\"n_layer\":12,\"n_head\":12,\"vocab_size\":50257,"
     "\"n_positions\":1024}"},
    {"baichuan2-7b", 7505973248,
     "{\"model_type\":\"baichuan\",\"hidden_size\":4096,\"num_hidden_layers\":32,"
     "\"num_attention_heads\":32,\"intermediate_size\":11008,\"vocab_size\":125696,"
     "\"max_position_embeddings\":4096}"},
    {"internlm2-7b", 7737708544,
     "{\"model_type\":\"internlm2\",\"hidden_size\":4096,\"num_hidden_layers\":32,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"intermediate_size\":14336,"
     "\"vocab_size\":92544,\"bias\":false}"},
    {"chatglm3-6b", 6243584000,
     "{\"model_type\":\"chatglm\",\"hidden_size\":4096,\"num_layers\":28,\"num_attention_heads\":32,"
     "\"multi_query_group_num\":2,\"multi_query_attention\":true,\"kv_channels\":128,"
     "\"ffn_hidden_size\":13696,\"padded_vocab_size\":65024,\"add_qkv_bias\":true,"
     "\"add_bias_linear\":false,\"rmsnorm\":true,\"seq_length\":8192}"},
    {"qwen-7b", 7721324544,
     "{\"model_type\":\"qwen\",\"hidden_size\":4096,\"num_hidden_layers\":32,"
     "\"num_attention_heads\":32,\"intermediate_size\":22016,\"vocab_size\":151936,"
     "\"kv_channels\":128}"},
    {"minicpm-2b", 2724880896,
     "{\"model_type\":\"minicpm\",\"hidden_size\":2304,\"num_hidden_layers\":40,"
     "\"num_attention_heads\":36,\"num_key_value_heads\":36,\"intermediate_size\":5760,"
     "\"vocab_size\":122753}"},
    {"mamba-130m", 129135360,
     "{\"model_type\":\"mamba\",\"hidden_size\":768,\"num_hidden_layers\":24,\"state_size\":16,"
     "\"conv_kernel\":4,\"expand\":2,\"time_step_rank\":48,\"vocab_size\":50280,"
     "\"intermediate_size\":1536}"},
    {"jamba-v0.1", 51570323328,
     "{\"model_type\":\"jamba\",\"hidden_size\":4096,\"num_hidden_layers\":32,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"intermediate_size\":14336,"
     "\"vocab_size\":65536,\"attn_layer_period\":8,\"attn_layer_offset\":4,"
     "\"expert_layer_period\":2,\"expert_layer_offset\":1,\"num_experts\":16,"
     "\"num_experts_per_tok\":2,\"mamba_d_state\":16,\"mamba_d_conv\":4,\"mamba_expand\":2,"
     "\"mamba_dt_rank\":256}"},
    {"lfm2-1.2b", 1170340608,
     "{\"model_type\":\"lfm2\",\"hidden_size\":2048,\"num_hidden_layers\":16,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"intermediate_size\":12288,"
     "\"vocab_size\":65536,\"conv_L_cache\":3,\"block_auto_adjust_ff_dim\":true,"
     "\"block_ffn_dim_multiplier\":1.0,\"block_multiple_of\":256,\"block_ff_dim\":12288,"
     "\"full_attn_idxs\":[2,5,8,10,12,14]}"},
    {"dbrx", 131596523520,
     "{\"model_type\":\"dbrx\",\"d_model\":6144,\"n_heads\":48,\"n_layers\":40,\"vocab_size\":100352,"
     "\"max_seq_len\":32768,\"attn_config\":{\"kv_n_heads\":8},"
     "\"ffn_config\":{\"ffn_hidden_size\":10752,\"moe_num_experts\":16,\"moe_top_k\":4}}"},
    {"llama-3.2-3b", 3212749824,
     "{\"model_type\":\"llama\",\"hidden_size\":3072,\"num_hidden_layers\":28,"
     "\"num_attention_heads\":24,\"num_key_value_heads\":8,\"intermediate_size\":8192,"
     "\"vocab_size\":128256,\"head_dim\":128,\"tie_word_embeddings\":true}"},
    {"olmo-1b", 1176764416,
     "{\"model_type\":\"olmo\",\"hidden_size\":2048,\"num_hidden_layers\":16,\"num_attention_heads\":16,"
     "\"intermediate_size\":8192,\"vocab_size\":50304,\"tie_word_embeddings\":true,\"clip_qkv\":null}"},
    {"olmo-7b", 6888095744,
     "{\"model_type\":\"olmo\",\"hidden_size\":4096,\"num_hidden_layers\":32,\"num_attention_heads\":32,"
     "\"intermediate_size\":11008,\"vocab_size\":50304,\"tie_word_embeddings\":false}"},
    {"xglm-564m", 564463616,
     "{\"model_type\":\"xglm\",\"d_model\":1024,\"num_layers\":24,\"attention_heads\":16,\"ffn_dim\":4096,"
     "\"vocab_size\":256008,\"max_position_embeddings\":2048}"},
    {"gpt-neo-125m", 125198592,
     "{\"model_type\":\"gpt_neo\",\"hidden_size\":768,\"num_layers\":12,\"num_heads\":12,\"vocab_size\":50257,"
     "\"max_position_embeddings\":2048,\"intermediate_size\":null,\"attention_types\":[[[\"global\",\"local\"],6]]}"},
    {"gpt-neo-1.3b", 1315575808,
     "{\"model_type\":\"gpt_neo\",\"hidden_size\":2048,\"num_layers\":24,\"num_heads\":16,\"vocab_size\":50257,"
     "\"max_position_embeddings\":2048,\"intermediate_size\":null,\"attention_types\":[[[\"global\",\"local\"],12]]}"},
    {"biogpt", 346763264,
     "{\"model_type\":\"biogpt\",\"hidden_size\":1024,\"num_hidden_layers\":24,\"num_attention_heads\":16,"
     "\"intermediate_size\":4096,\"vocab_size\":42384,\"max_position_embeddings\":1024}"},
    {"hyperclovax-seed-think-14b", 14748112896,
     "{\"model_type\":\"hyperclovax\",\"hidden_size\":6144,\"num_hidden_layers\":38,\"num_attention_heads\":48,"
     "\"num_key_value_heads\":8,\"intermediate_size\":14336,\"vocab_size\":110592,\"use_post_norm\":true,"
     "\"tie_word_embeddings\":false}"},
    {"rwkv-4-169m", 169342464,
     "{\"model_type\":\"rwkv\",\"hidden_size\":768,\"num_hidden_layers\":12,\"vocab_size\":50277}"},
    {"rwkv-4-430m", 430397440,
     "{\"model_type\":\"rwkv\",\"hidden_size\":1024,\"num_hidden_layers\":24,\"vocab_size\":50277,"
     "\"intermediate_size\":4096}"},
    {"glm-4.5-air", 106852251264,
     "{\"model_type\":\"glm4_moe\",\"hidden_size\":4096,\"num_hidden_layers\":46,"
     "\"num_attention_heads\":96,\"num_key_value_heads\":8,\"intermediate_size\":10944,"
     "\"vocab_size\":151552,\"head_dim\":128,\"moe_intermediate_size\":1408,"
     "\"n_routed_experts\":128,\"n_shared_experts\":1,\"num_experts_per_tok\":8,"
     "\"first_k_dense_replace\":1,\"attention_bias\":true,\"use_qk_norm\":false}"},
};

static enum err_code read_model(struct arena *a, const char *json, struct model *m, struct err *e)
{
    struct json j;
    TRY(json_parse(a, "config.json", json, strlen(json), &j, e));
    return model_parse(a, &j, m, e);
}

static void test_totals(void **state)
{
    static const struct cost_conventions PLAIN = {0};
    (void)state;
    for (size_t i = 0; i < sizeof PUBLISHED / sizeof PUBLISHED[0]; i++) {
        struct arena *a = arena_open();
        struct model m;
        struct cost_parameters p;
        struct err e = {.code = ERR_OK};
        if (read_model(a, PUBLISHED[i].json, &m, &e) != ERR_OK || cost_parameters(a, &m, &PLAIN, &p, &e) != ERR_OK)
            fail_msg("%s: %s", PUBLISHED[i].model, e.text);
        if (p.total != (double)PUBLISHED[i].total_params)
            fail_msg("%s: %.0f parameters, published %lld", PUBLISHED[i].model, p.total,
                     (long long)PUBLISHED[i].total_params);
        arena_close(a);
    }
}

#define SIZES                                                                                                          \
    "\"hidden_size\":480,\"num_hidden_layers\":3,\"num_attention_heads\":160,\"intermediate_size\":7,\"vocab_size\":"  \
    "11"

/* Heads of keys and values, and their width, where the file says neither: of each class, not of all. */
static void test_absent_heads(void **state)
{
    static const struct {
        const char *json;
        int64_t kv_heads, head_dim;
    } CASES[] = {
        {"{\"model_type\":\"llama\"," SIZES "}", 160, 3},
        {"{\"model_type\":\"granite\"," SIZES "}", 160, 3},
        {"{\"model_type\":\"mistral\"," SIZES "}", 8, 3},
        {"{\"model_type\":\"stablelm\"," SIZES "}", 32, 3},
        {"{\"model_type\":\"orion\"," SIZES "}", 40, 3},
        {"{\"model_type\":\"mimo\"," SIZES "}", 32, 3},
        {"{\"model_type\":\"ernie4_5\"," SIZES "}", 2, 128},
        {"{\"model_type\":\"glm4\"," SIZES "}", 2, 128},
        {"{\"model_type\":\"seed_oss\"," SIZES "}", 8, 128},
        {"{\"model_type\":\"helium\"," SIZES "}", 20, 128},
        {"{\"model_type\":\"mistral\",\"num_key_value_heads\":null," SIZES "}", 160, 3}, /* null: as many as N */
        {"{\"model_type\":\"ernie4_5\",\"num_key_value_heads\":null,\"head_dim\":null," SIZES "}", 160, 3},
        {"{\"model_type\":\"lfm2\",\"full_attn_idxs\":[0,1,2],\"block_auto_adjust_ff_dim\":false," SIZES "}", 8, 3},
        {"{\"model_type\":\"dbrx\",\"d_model\":480,\"n_layers\":3,\"n_heads\":160,\"vocab_size\":11,\"attn_config\":{},"
         "\"ffn_config\":{\"ffn_hidden_size\":7}}",
         1, 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct arena *a = arena_open();
        struct model m;
        struct err e = {.code = ERR_OK};
        if (read_model(a, CASES[i].json, &m, &e) != ERR_OK) fail_msg("%s: %s", CASES[i].json, e.text);
        const struct mixer *x = &m.kinds[0].mixer;
        if (x->kv_heads != CASES[i].kv_heads || x->head_dim != CASES[i].head_dim)
            fail_msg("%s: K %lld of width %lld", CASES[i].json, (long long)x->kv_heads, (long long)x->head_dim);
        arena_close(a);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *json, *sentence;
    } CASES[] = {
        {"{\"model_type\":\"bailing_moe\",\"num_key_value_heads\":4,\"num_experts\":4,\"num_experts_per_tok\":2,"
         "\"moe_intermediate_size\":5," SIZES "}",
         "use_bias is missing, which means true"},
        {"{\"model_type\":\"bailing_moe\",\"num_key_value_heads\":4,\"num_experts\":4,\"num_experts_per_tok\":2,"
         "\"use_bias\":false,\"moe_intermediate_size\":5,\"num_shared_experts\":1,"
         "\"moe_shared_expert_intermediate_size\":6," SIZES "}",
         "found 6, wanted the width of a routed expert"},
        {"{\"model_type\":\"dots1\",\"n_routed_experts\":4,\"num_experts_per_tok\":2,\"moe_intermediate_size\":5,"
         "\"sliding_window\":64,\"max_window_layers\":2," SIZES "}",
         "make layers slide"},
        {"{\"model_type\":\"granite\",\"architectures\":[\"Glm4ForCausalLM\"]," SIZES "}", "of the glm4 family"},
        {"{\"model_type\":\"glm4\",\"num_local_experts\":8," SIZES "}", "the glm4 family is dense"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct arena *a = arena_open();
        struct model m;
        struct err e = {.code = ERR_OK};
        assert_int_equal(read_model(a, CASES[i].json, &m, &e), ERR_INPUT);
        if (!strstr(e.text, CASES[i].sentence)) fail_msg("%s: %s", CASES[i].json, e.text);
        arena_close(a);
    }
}

/* A text part is saved as what differs from its class: LLaVA 1.5 7B names a vocabulary, and 7,063,427,072 parameters in
 * all. In a file of its own such sizes are missing. */
static void test_text_parts(void **state)
{
#define TEXT_PART "\"model_type\":\"llama\",\"max_position_embeddings\":4096,\"vocab_size\":32064"
    static const char LLAVA[] =
        "{\"model_type\":\"llava\",\"text_config\":{" TEXT_PART "},\"vision_config\":{\"hidden_size\":1024,"
        "\"image_size\":336,\"intermediate_size\":4096,\"model_type\":\"clip_vision_model\",\"num_attention_heads\":16,"
        "\"num_hidden_layers\":24,\"patch_size\":14,\"projection_dim\":768,\"vocab_size\":32000}}";
    static const struct cost_conventions PLAIN = {0};
    struct arena *a = arena_open();
    struct model m;
    struct cost_parameters p;
    struct err e = {.code = ERR_OK};
    (void)state;
    assert_int_equal(read_model(a, LLAVA, &m, &e), ERR_OK);
    assert_int_equal(cost_parameters(a, &m, &PLAIN, &p, &e), ERR_OK);
    assert_true(p.total + m.tower.params == 7063427072.0);
    assert_non_null(strstr(m.notes, "those of the class of llama"));
    assert_int_equal(read_model(a, "{" TEXT_PART "}", &m, &e), ERR_INPUT);
    assert_non_null(strstr(e.text, "is missing, and the llama family has no default for it"));
    arena_close(a);
#undef TEXT_PART
}

/* Keys of the output's and the MLP's bias are read where the class has them. */
static void test_biases(void **state)
{
    struct arena *a = arena_open();
    struct model m;
    struct err e = {.code = ERR_OK};
    (void)state;
    assert_int_equal(read_model(a, "{\"model_type\":\"seed_oss\"," SIZES "}", &m, &e), ERR_OK);
    assert_true(m.kinds[0].mixer.qkv_bias && !m.kinds[0].mixer.o_bias && !m.kinds[0].ffn.up_bias);
    assert_int_equal(read_model(a,
                                "{\"model_type\":\"seed_oss\",\"attention_bias\":false,\"attention_out_bias\":true,"
                                "\"mlp_bias\":true," SIZES "}",
                                &m, &e),
                     ERR_OK);
    assert_true(!m.kinds[0].mixer.qkv_bias && m.kinds[0].mixer.o_bias);
    assert_true(m.kinds[0].ffn.up_bias && m.kinds[0].ffn.down_bias);
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_totals), cmocka_unit_test(test_absent_heads),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_text_parts),
                                       cmocka_unit_test(test_biases)};
    return cmocka_run_group_tests_name("published", tests, NULL, NULL);
}
