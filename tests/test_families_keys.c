/* Families by their keys: which names are read, what is refused and why, and sizes that the class has where the file
 * says none. */
#include "tests/families.h"

#include <string.h>

/* Files of other names that a class reads as one of these: sizes as that family's. */
static void test_names(void **state)
{
#define SIZES                                                                                                          \
    "\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":6,\"num_key_value_heads\":2,\"head_dim\":8,"   \
    "\"intermediate_size\":29,\"vocab_size\":101"
#define MOE ",\"moe_intermediate_size\":13,\"num_experts\":5,\"num_experts_per_tok\":2"
    static const struct {
        const char *json, *family;
        int64_t windowed; /* layers */
    } CASES[] = {
        {"{\"model_type\":\"aquila\"," SIZES "}", "llama", 0},
        {"{\"model_type\":\"xverse\"," SIZES "}", "llama", 0},
        {"{\"model_type\":\"Yi\"," SIZES "}", "llama", 0},
        {"{\"model_type\":\"iquestcoder\"," SIZES "}", "llama", 0},
        {"{\"model_type\":\"code_llama\"," SIZES "}", "llama", 0},
        {"{\"model_type\":\"phi4mm\",\"sliding_window\":null,\"embd_layer\":{},\"vision_lora\":{}," SIZES "}", "phi3",
         0},
        {"{\"model_type\":\"phi3_v\",\"img_processor\":{}," SIZES "}", "phi3", 0},
        {"{\"model_type\":\"dots_ocr\",\"vision_config\":{}," SIZES "}", "qwen2", 0},
        {"{\"model_type\":\"gpt-sw3\",\"n_positions\":32," SIZES "}", "gpt2", 0},
        {"{\"model_type\":\"paddleocr_vl\",\"text_config\":{\"model_type\":\"paddleocr_vl_text\"," SIZES "}}",
         "ernie4_5", 0},
        {"{\"model_type\":\"granite4_vision\",\"text_config\":{\"model_type\":\"granite4_vision_text\"," SIZES "}}",
         "granite", 0},
        {"{\"model_type\":\"hunyuan_vl\",\"text_config\":{\"model_type\":\"hunyuan_vl_text\"," SIZES "}}",
         "hunyuan_v1_dense", 0},
        {"{\"model_type\":\"gemma4_unified\",\"text_config\":{\"model_type\":\"gemma4_unified_text\","
         "\"sliding_window\":16,\"layer_types\":[\"sliding_attention\",\"full_attention\"]," SIZES "}}",
         "gemma4_unified", 1},
        {"{\"model_type\":\"telechat3\"," SIZES "}", "llama", 0},
        {"{\"model_type\":\"ministral\",\"sliding_window\":16,\"layer_types\":[\"sliding_attention\","
         "\"full_attention\"]," SIZES "}",
         "mistral", 1},
        {"{\"model_type\":\"glm4v\",\"text_config\":{\"model_type\":\"glm4v_text\"," SIZES "}}", "glm4", 0},
        {"{\"model_type\":\"glm4v_moe\",\"text_config\":{\"model_type\":\"glm4v_moe_text\"," SIZES MOE
         ",\"n_routed_experts\":5}}",
         "glm4_moe", 0},
        {"{\"model_type\":\"qwen3_omni_moe\",\"thinker_config\":{\"model_type\":\"qwen3_omni_moe_thinker\","
         "\"text_config\":{\"model_type\":\"qwen3_omni_moe_text\"," SIZES MOE "}}}",
         "qwen3_moe", 0},
        {"{\"model_type\":\"rwkv5\",\"architectures\":[\"RwkvForCausalLM\"],\"hidden_size\":64,"
         "\"num_hidden_layers\":2,\"vocab_size\":11}",
         "rwkv5", 0}, /* a class name that version 4 has too */
        {"{\"architectures\":[\"RwkvForCausalLM\"],\"hidden_size\":64,\"num_hidden_layers\":2,\"vocab_size\":11}",
         "rwkv", 0},
        {"{\"model_type\":\"minicpmv\",\"architectures\":[\"MiniCPMV\"],\"version\":2.6," SIZES "}", "qwen2", 0},
        {"{\"model_type\":\"minicpmv\",\"version\":\"4.5\"," SIZES "}", "qwen3", 0},
        {"{\"model_type\":\"minicpmv\",\"version\":2.5," SIZES "}", "llama", 0},
        {"{\"model_type\":\"minicpmo\",\"version\":\"2.6\"," SIZES "}", "qwen2", 0},
        {"{\"model_type\":\"step3_vl\",\"text_config\":{\"model_type\":\"step3_text\"," SIZES
         ",\"moe_intermediate_size\":13,\"moe_num_experts\":5,\"moe_top_k\":2,\"share_expert_dim\":7,\"moe_layers_"
         "enum\":\"1\"}}",
         "step3_text", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct arena *a = arena_open();
        const struct subject s = {.model = CASES[i].json, .json = CASES[i].json};
        const struct model m = families_read(a, &s);
        int64_t windowed = 0;
        for (size_t k = 0; k < m.kinds_n; k++)
            if (m.kinds[k].mixer.window_tokens) windowed += m.kinds[k].count;
        assert_string_equal(m.family, CASES[i].family);
        assert_true(!m.notes || !strstr(m.notes, "does not know"));
        assert_int_equal(windowed, CASES[i].windowed);
        arena_close(a);
    }
#undef SIZES
#undef MOE
}

static void test_refused(void **state)
{
#define LONGCAT                                                                                                        \
    "{\"model_type\":\"longcat_flash\",\"hidden_size\":48,\"num_layers\":2,\"num_attention_heads\":4,"                 \
    "\"ffn_hidden_size\":9,\"expert_ffn_hidden_size\":5,\"n_routed_experts\":8,\"q_lora_rank\":7,\"kv_lora_rank\":6,"  \
    "\"qk_nope_head_dim\":3,\"qk_rope_head_dim\":2,\"v_head_dim\":3,\"vocab_size\":13,"
#define NEO                                                                                                            \
    "{\"model_type\":\"gpt_neo\",\"hidden_size\":48,\"num_layers\":4,\"num_heads\":4,\"max_position_embeddings\":32,"  \
    "\"vocab_size\":13"
#define H1                                                                                                             \
    "{\"model_type\":\"falcon_h1\",\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":4,"              \
    "\"num_key_value_heads\":2,\"intermediate_size\":9,\"vocab_size\":13"
    static const struct refused CASES[] = {
        {LONGCAT "\"moe_topk\":4,\"zero_expert_num\":5}", "no whole number is of the others on average"},
        {LONGCAT "\"moe_topk\":4,\"zero_expert_num\":8,\"zero_expert_type\":\"copy\"}", "wanted \"identity\""},
        {NEO "}", "attention_types is missing"},
        {NEO ",\"attention_types\":[[[\"global\",\"local\"],3]]}", "as many words as there are layers"},
        {NEO ",\"attention_types\":[[[\"global\",\"near\"],2]]}", "\"global\" or \"local\""},
        {H1 "}", "mamba_d_ssm is missing"},
        {H1 ",\"mamba_d_ssm\":96,\"mamba_n_heads\":6,\"projectors_bias\":true}", "projectors_bias and mamba_proj_bias"},
        {"{\"model_type\":\"minimax_m2\",\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
         "\"intermediate_size\":9,\"num_local_experts\":4,\"num_experts_per_tok\":2,\"vocab_size\":13,"
         "\"sparse_attention_config\":{\"topk\":2}}",
         "means sparse attention"},
        {"{\"model_type\":\"arctic\",\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
         "\"intermediate_size\":9,\"num_local_experts\":4,\"num_experts_per_tok\":2,\"vocab_size\":13,"
         "\"use_residual\":true,\"parallel_attn_mlp_res\":false}",
         "contradict each other about an MLP beside the experts"},
#define K_EXAONE                                                                                                       \
    "{\"model_type\":\"exaone_moe\",\"hidden_size\":48,\"num_hidden_layers\":3,\"num_attention_heads\":4,\"num_key_"   \
    "value_heads\":4,"                                                                                                 \
    "\"intermediate_size\":9,\"moe_intermediate_size\":5,\"num_experts\":4,\"num_experts_per_tok\":2,\"vocab_size\":"  \
    "13"
        {K_EXAONE ",\"is_moe_layer\":[false,true]}", "is_moe_layer has 2 entries for 3 layers"},
        {K_EXAONE ",\"is_moe_layer\":[false,true,true],\"mlp_layer_types\":[\"dense\",\"sparse\",\"dense\"]}",
         "mlp_layer_types and is_moe_layer contradict each other about layer 2"},
        {K_EXAONE ",\"is_moe_layer\":[0,1,1]}", "true or false"},
#define STEP35                                                                                                         \
    "{\"model_type\":\"step3p5\",\"hidden_size\":48,\"num_hidden_layers\":3,\"num_attention_heads\":8,"                \
    "\"intermediate_size\":9,\"moe_intermediate_size\":5,\"moe_num_experts\":4,\"moe_top_k\":2,\"vocab_size\":13"
        {STEP35 ",\"share_expert_dim\":7}", "moe_layers_enum is missing, and the step3p5 family has no default"},
        {STEP35 ",\"moe_layers_enum\":\"1,2\"}", "shared_expert_intermediate_size is missing, and the step3p5 family"},
        {STEP35 ",\"moe_layers_enum\":[1,3],\"share_expert_dim\":7}", "names layer 3, and there are 3"},
        {STEP35 ",\"moe_layers_enum\":[1],\"share_expert_dim\":7,\"sliding_window\":8}",
         "layer_types is missing, and the step3p5 family"},
        {"{\"model_type\":\"gpt_neox\",\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
         "\"vocab_size\":13}",
         "intermediate_size is missing, and the gpt_neox family has no default for it"},
        {"{\"model_type\":\"nanochat\",\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
         "\"intermediate_size\":null,\"vocab_size\":13}",
         "intermediate_size is missing, and the nanochat family has no default for it"},
        {"{\"model_type\":\"laguna\",\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
         "\"num_key_value_heads\":4,\"num_attention_heads_per_layer\":[4,6],\"intermediate_size\":9,"
         "\"moe_intermediate_size\":5,\"num_experts\":4,\"num_experts_per_tok\":2,\"vocab_size\":13}",
         "6 query heads are not a multiple of 4 KV heads"},
        {"{\"model_type\":\"bailing_hybrid\",\"hidden_size\":48,\"num_hidden_layers\":4,\"layer_group_size\":2,"
         "\"num_attention_heads\":4,\"q_lora_rank\":7,\"kv_lora_rank\":6,\"qk_nope_head_dim\":3,\"qk_rope_head_dim\":2,"
         "\"v_head_dim\":3,\"intermediate_size\":9,\"moe_intermediate_size\":5,\"num_experts\":4,"
         "\"num_experts_per_tok\":2,\"vocab_size\":13,\"short_conv_kernel_size\":4}",
         "means a delta rule"},
        {"{\"model_type\":\"bailing_moe_linear\",\"hidden_size\":48,\"num_hidden_layers\":4,\"layer_group_size\":3,"
         "\"num_attention_heads\":4,\"intermediate_size\":9,\"vocab_size\":13}",
         "a divisor of the number of layers"},
        {"{\"model_type\":\"jais\",\"n_embd\":48,\"n_layer\":2,\"n_head\":4,\"vocab_size\":13,\"n_inner\":7}",
         "position_embedding_type is missing"},
        {"{\"model_type\":\"zamba\",\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
         "\"intermediate_size\":9,\"vocab_size\":13}",
         "layers_block_type is missing"},
        {"{\"model_type\":\"step3_text\",\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
         "\"intermediate_size\":9,\"moe_intermediate_size\":5,\"moe_num_experts\":4,\"moe_top_k\":2,"
         "\"moe_layers_enum\":\"one\",\"vocab_size\":13}",
         "numbers of layers, separated by commas"},
#define STEP3                                                                                                          \
    "{\"model_type\":\"step3_text\",\"hidden_size\":48,\"num_hidden_layers\":3,\"num_attention_heads\":4,"             \
    "\"intermediate_size\":9,\"moe_intermediate_size\":5,\"moe_num_experts\":4,\"moe_top_k\":2,\"vocab_size\":13"
#define M3                                                                                                             \
    "{\"model_type\":\"minimax_m3\",\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":4,"             \
    "\"num_key_value_heads\":2,\"intermediate_size\":9,\"vocab_size\":13"
#define M3_INDEX "\"sparse_num_index_heads\":2,\"sparse_index_dim\":5,\"sparse_block_size\":4,\"sparse_topk_blocks\":3"
        {M3 ",\"sparse_attention_config\":{\"sparse_attention_freq\":[0,1],\"sparse_num_index_heads\":2}}",
         "sparse_attention_config.sparse_index_dim is missing"},
        {M3 ",\"sparse_attention_config\":{\"sparse_attention_freq\":[0]," M3_INDEX "}}", "one number per layer"},
        {M3
         ",\"sparse_attention_config\":{\"sparse_attention_freq\":[0,1],\"sparse_disable_index_value\":[0,0]," M3_INDEX
         "}}",
         "layer 1 has values of the indexer"},
        {M3 ",\"layer_types\":[\"full_attention\",\"full_attention\"],\"sparse_attention_config\":{"
            "\"sparse_attention_freq\":[0,1]," M3_INDEX "}}",
         "layer_types and sparse_attention_config.sparse_attention_freq contradict each other about layer 1"},
        {M3 ",\"layer_types\":[\"full_attention\",\"minimax_m3_sparse\"],\"index_n_heads\":4,"
            "\"index_head_dim\":5,\"index_block_size\":4,\"index_topk_blocks\":3}",
         "4 heads of the indexer for 2 KV heads"},
        {STEP3 "}", "moe_layers_enum is missing, and the step3_text family has no default"},
        {STEP3 ",\"moe_layers_enum\":\"1,2,3\"}", "names layer 3, and there are 3"},
        {STEP3 ",\"moe_layers_enum\":\"1,2,1\"}", "names layer 1 twice"},
        {"{\"model_type\":\"afmoe\",\"hidden_size\":48,\"num_hidden_layers\":4,\"num_attention_heads\":4,"
         "\"intermediate_size\":9,\"moe_intermediate_size\":5,\"num_experts\":4,\"num_experts_per_tok\":2,"
         "\"num_dense_layers\":5,\"vocab_size\":13}",
         "num_dense_layers is 5 of 4 layers"},
        {"{\"model_type\":\"bailing_moe_linear\",\"hidden_size\":48,\"num_hidden_layers\":4,\"layer_group_size\":2,"
         "\"num_attention_heads\":4,\"intermediate_size\":9,\"moe_intermediate_size\":5,\"num_experts\":4,"
         "\"num_experts_per_tok\":2,\"vocab_size\":13,\"group_norm_size\":3}",
         "a divisor of the number of heads"},
/* Experts that a file tells of without their number, in families that are dense without one. */
#define GEMMA4                                                                                                         \
    "{\"model_type\":\"gemma4_text\",\"hidden_size\":48,\"num_hidden_layers\":5,\"num_attention_heads\":4,"            \
    "\"intermediate_size\":9,\"vocab_size\":13"
#define MINICPM                                                                                                        \
    "{\"model_type\":\"minicpm\",\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":4,"                \
    "\"intermediate_size\":9,\"vocab_size\":13"
        {GEMMA4 ",\"per_layer_config\":{\"05\":{\"head_dim\":6}}}", "per_layer_config.05 is not one of 5 layers"},
        {GEMMA4 ",\"per_layer_config\":{\"04\":{\"head_dim\":6},\"4\":{\"head_dim\":6}}}", "says layer 4 twice"},
        {GEMMA4 ",\"per_layer_config\":{\"04\":{\"intermediate_size\":6}}}",
         "per_layer_config.04.intermediate_size is another in one layer"},
        {MINICPM ",\"n_expert\":8}", "n_expert means experts, which the minicpm family does not describe"},
        {MINICPM ",\"per_layer_config\":{\"1\":{\"num_key_value_heads\":2}}}",
         "per_layer_config means per-layer shapes, which the minicpm family does not describe"},
        {GEMMA4 ",\"enable_moe_block\":true}", "num_experts is missing, but enable_moe_block says that there are"},
        {GEMMA4 ",\"top_k_experts\":3}", "num_experts is missing, but top_k_experts says that there are experts"},
        {GEMMA4 ",\"num_experts\":null,\"moe_intermediate_size\":7}", "missing, but moe_intermediate_size says"},
        {MINICPM ",\"num_experts_per_tok\":2}", "state it with --set num_experts=..."},
        {"{\"model_type\":\"granitemoeshared\",\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
         "\"intermediate_size\":9,\"vocab_size\":13,\"num_local_experts\":null,\"num_experts_per_tok\":2}",
         "num_local_experts is missing, but num_experts_per_tok says that there are experts"},
        {"{\"model_type\":\"minicpmv\"}", "version \"\" of the minicpmv family is not known (2.0, 2.5,"},
        {"{\"model_type\":\"minicpmo\",\"version\":9.9}",
         "version \"9.9\" of the minicpmo family is not known (2.6, 4.5)"},
        /* the key that the family's own files have comes first */
        {"{\"model_type\":\"deepseek\",\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
         "\"intermediate_size\":9,\"vocab_size\":13}",
         "n_routed_experts is missing, and the deepseek family has no default for it (or num_experts, num_local"},
    };
    (void)state;
    families_refused(CASES, sizeof CASES / sizeof CASES[0]);
}

/* A missing key is the class's number, not one that other families have. */
static void test_class_sizes(void **state)
{
    static const struct {
        const char *without, *with;
    } CASES[] = {
#define FLASH                                                                                                          \
    "{\"model_type\":\"longcat_flash\",\"hidden_size\":48,\"num_layers\":2,\"num_attention_heads\":4,"                 \
    "\"ffn_hidden_size\":9,\"expert_ffn_hidden_size\":5,\"n_routed_experts\":512,\"q_lora_rank\":7,"                   \
    "\"kv_lora_rank\":6,\"qk_nope_head_dim\":3,\"qk_rope_head_dim\":2,\"v_head_dim\":3,\"vocab_size\":13,"             \
    "\"moe_topk\":12"
#define APERTUS                                                                                                        \
    "{\"model_type\":\"apertus\",\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":4,\"vocab_size\":" \
    "13"
        {APERTUS "}", APERTUS ",\"intermediate_size\":14336}"},
        {FLASH "}", FLASH ",\"zero_expert_num\":256}"},
        {NEO ",\"attention_types\":[[[\"global\"],4]]}",
         NEO ",\"attention_types\":[[[\"global\"],4]],\"intermediate_size\":192}"},
        {"{\"model_type\":\"jais\",\"n_embd\":48,\"n_layer\":2,\"n_head\":4,\"vocab_size\":13,"
         "\"position_embedding_type\":\"alibi\",\"activation_function\":\"swiglu\",\"n_inner\":null}",
         "{\"model_type\":\"jais\",\"n_embd\":48,\"n_layer\":2,\"n_head\":4,\"vocab_size\":13,"
         "\"position_embedding_type\":\"alibi\",\"activation_function\":\"swiglu\",\"n_inner\":192}"},
#define LAGUNA                                                                                                         \
    "{\"model_type\":\"laguna\",\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":8,"                 \
    "\"intermediate_size\":9,\"vocab_size\":13"
        {LAGUNA "}", LAGUNA ",\"num_experts\":256,\"num_experts_per_tok\":8,\"moe_intermediate_size\":512,"
                            "\"shared_expert_intermediate_size\":512}"},
#define LONG_PLAIN                                                                                                     \
    "{\"model_type\":\"longcat_flash\",\"hidden_size\":48,\"num_layers\":2,\"num_attention_heads\":4,"                 \
    "\"ffn_hidden_size\":9,\"q_lora_rank\":7,\"kv_lora_rank\":6,\"qk_nope_head_dim\":3,\"qk_rope_head_dim\":2,"        \
    "\"v_head_dim\":3,\"vocab_size\":13"
        {LONG_PLAIN "}", LONG_PLAIN ",\"n_routed_experts\":512,\"moe_topk\":12,\"expert_ffn_hidden_size\":2048}"},
        {LONG_PLAIN ",\"moe_topk\":6}", LONG_PLAIN ",\"n_routed_experts\":512,\"moe_topk\":6}"},
#define PLAIN(type)                                                                                                    \
    "{\"model_type\":\"" type "\",\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":4,"               \
    "\"intermediate_size\":9,\"vocab_size\":13"
        {PLAIN("cohere2_moe") ",\"num_experts_per_tok\":3}",
         PLAIN("cohere2_moe") ",\"num_experts\":8,\"num_experts_per_tok\":3}"},
        {PLAIN("dbrx") ",\"ffn_config\":{\"moe_top_k\":4}}",
         PLAIN("dbrx") ",\"ffn_config\":{\"moe_num_experts\":4,\"moe_top_k\":4}}"},
        {PLAIN("granitemoe") "}", PLAIN("granitemoe") ",\"num_local_experts\":8,\"num_experts_per_tok\":2}"},
        {PLAIN("granitemoeshared") "}",
         PLAIN("granitemoeshared") ",\"num_local_experts\":8,\"num_experts_per_tok\":2}"},
#define HYBRID                                                                                                         \
    PLAIN("granitemoehybrid") ",\"layer_types\":[\"attention\",\"attention\"],\"shared_intermediate_size\":11"
        {HYBRID "}", HYBRID ",\"num_local_experts\":8,\"num_experts_per_tok\":2}"},
        {HYBRID ",\"num_experts_per_tok\":5}", HYBRID ",\"num_local_experts\":8,\"num_experts_per_tok\":5}"},
        {GEMMA4 ",\"enable_moe_block\":false,\"top_k_experts\":null,\"num_experts\":null}", GEMMA4 "}"},
        {GEMMA4 ",\"enable_moe_block\":false,\"num_experts\":4,\"top_k_experts\":2}", GEMMA4 "}"},
#define FULL_AT_END                                                                                                    \
    ",\"layer_types\":[\"sliding_attention\",\"sliding_attention\",\"full_attention\","                                \
    "\"sliding_attention\",\"full_attention\"]"
        {GEMMA4 FULL_AT_END "}", GEMMA4 FULL_AT_END ",\"global_head_dim\":512}"},
        {GEMMA4 FULL_AT_END ",\"attention_k_eq_v\":true,\"per_layer_config\":{\"02\":{\"head_dim\":6,"
                            "\"num_key_value_heads\":2},\"4\":{\"num_key_value_heads\":2,\"head_dim\":6}}}",
         GEMMA4 FULL_AT_END ",\"attention_k_eq_v\":true,\"global_head_dim\":6,\"num_global_key_value_heads\":2}"},
        {GEMMA4 FULL_AT_END ",\"global_head_dim\":7,\"per_layer_config\":{}}",
         GEMMA4 FULL_AT_END ",\"global_head_dim\":256}"},
        {MINICPM ",\"num_experts_per_tok\":0}", MINICPM "}"},
        /* a head of 128, whatever the width and the number of heads */
        {PLAIN("minimax_m2") ",\"num_key_value_heads\":4,\"num_local_experts\":4,\"num_experts_per_tok\":2}",
         PLAIN("minimax_m2") ",\"num_key_value_heads\":4,\"num_local_experts\":4,\"num_experts_per_tok\":2,\"head_"
                             "dim\":128}"},
#define NANO                                                                                                           \
    "{\"model_type\":\"nemotron_h\",\"hidden_size\":48,\"num_hidden_layers\":1,\"num_attention_heads\":8,"             \
    "\"hybrid_override_pattern\":\"*\",\"vocab_size\":13"
        {NANO "}", NANO ",\"head_dim\":128}"},
#define FLASH_V2                                                                                                       \
    PLAIN("mimo_v2_flash")                                                                                             \
    ",\"n_routed_experts\":4,\"num_experts_per_tok\":2,\"moe_intermediate_size\":5,\"v_head_dim\":128,"                \
    "\"layer_types\":[\"full_attention\",\"full_attention\"]"
        {FLASH_V2 "}", FLASH_V2 ",\"head_dim\":192}"},
#define FLASH_SLIDING                                                                                                  \
    PLAIN("mimo_v2_flash")                                                                                             \
    ",\"n_routed_experts\":4,\"num_experts_per_tok\":2,\"moe_intermediate_size\":5,\"num_key_value_heads\":2,"         \
    "\"sliding_window\":7,\"layer_types\":[\"full_attention\",\"sliding_attention\"]"
        {FLASH_SLIDING "}", FLASH_SLIDING ",\"swa_num_key_value_heads\":4,\"v_head_dim\":128,"
                                          "\"add_swa_attention_sink_bias\":true,\"attention_chunk_size\":7}"},
        {PLAIN("minimax_m2") ",\"num_key_value_heads\":4,\"num_local_experts\":4,\"num_experts_per_tok\":2}",
         PLAIN("minimax_m2") ",\"num_key_value_heads\":4,\"num_local_experts\":4,\"num_experts_per_tok\":2,\"use_qk_"
                             "norm\":true}"},
        /* classes that transformers' mapping names for two families */
        {PLAIN("exaone") ",\"num_key_value_heads\":4,\"architectures\":[\"LlamaForCausalLM\"]}",
         PLAIN("exaone") ",\"num_key_value_heads\":4}"},
        {PLAIN("internlm3") ",\"num_key_value_heads\":4,\"architectures\":[\"LlamaForCausalLM\"]}",
         PLAIN("internlm3") ",\"num_key_value_heads\":4}"},
        /* the width over the heads, where dense Qwen3 has 128 */
        {PLAIN("qwen3_moe") ",\"num_experts\":4,\"num_experts_per_tok\":2,\"moe_intermediate_size\":5}",
         PLAIN(
             "qwen3_moe") ",\"num_experts\":4,\"num_experts_per_tok\":2,\"moe_intermediate_size\":5,\"head_dim\":12}"},
        {PLAIN("qwen3") ",\"num_key_value_heads\":4}", PLAIN("qwen3") ",\"num_key_value_heads\":4,\"head_dim\":128}"},
        {STEP3 ",\"moe_layers_enum\":\"1\"}",
         STEP3 ",\"moe_layers_enum\":\"1\",\"share_expert_dim\":5120,\"share_q_dim\":2048}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct arena *a = arena_open();
        const struct subject s = {.model = CASES[i].without, .json = CASES[i].without};
        const struct subject t = {.model = CASES[i].with, .json = CASES[i].with};
        const struct model m = families_read(a, &s), n = families_read(a, &t);
        assert_int_equal(m.kinds_n, n.kinds_n);
        for (size_t k = 0; k < m.kinds_n; k++) {
            assert_int_equal(m.kinds[k].ffn.width, n.kinds[k].ffn.width);
            assert_int_equal(m.kinds[k].ffn.shared_width, n.kinds[k].ffn.shared_width);
            assert_int_equal(m.kinds[k].ffn.idle_experts, n.kinds[k].ffn.idle_experts);
            assert_int_equal(m.kinds[k].mixer.q_rank, n.kinds[k].mixer.q_rank);
            assert_int_equal(m.kinds[k].mixer.head_dim, n.kinds[k].mixer.head_dim);
            assert_int_equal(m.kinds[k].mixer.kv_heads, n.kinds[k].mixer.kv_heads);
            assert_int_equal(m.kinds[k].mixer.v_head_dim, n.kinds[k].mixer.v_head_dim);
            assert_int_equal(m.kinds[k].mixer.sinks, n.kinds[k].mixer.sinks);
            assert_int_equal(m.kinds[k].mixer.v_is_k, n.kinds[k].mixer.v_is_k);
            assert_int_equal(m.kinds[k].mixer.qk_norm, n.kinds[k].mixer.qk_norm);
            assert_int_equal(m.kinds[k].ffn.kind, n.kinds[k].ffn.kind);
            assert_int_equal(m.kinds[k].ffn.experts, n.kinds[k].ffn.experts);
            assert_int_equal(m.kinds[k].ffn.experts_per_token, n.kinds[k].ffn.experts_per_token);
        }
        arena_close(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_class_sizes),
    };
    return cmocka_run_group_tests_name("families_keys", tests, NULL, NULL);
}
