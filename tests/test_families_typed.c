/* Model types that share a row: each takes what its own class has where a file, saved as what differs from that class,
 * says nothing; and parts that classes have and siblings have not: no inputs of a layer's own, biases of shared
 * experts, a gate without a bias, a head of fewer tokens than the embedding. Tensors as in transformers 5.24,
 * modeling_*.py of gemma4_unified, afmoe, aria, apertus1p5 and granite_docling. */
#include "tests/families.h"

#include <string.h>

static const struct subject SUBJECTS[] = {
    {"gemma-4 unified, sizes of its class", /* as gemma4_text would read it: 2,066,419,456 parameters more */
     "{\"model_type\":\"gemma4_unified_text\",\"hidden_size\":2304,\"num_hidden_layers\":30,\"num_attention_heads\":8,"
     "\"intermediate_size\":9216,\"vocab_size\":262144}",
     {ENDS(262144, 2304), QKVO(8 * 256, 4 * 256, 2304, 25), QKVO(8 * 512, 4 * 512, 2304, 5),
      EACH("q_norm, k_norm", 2, 256, 25), EACH("q_norm, k_norm", 2, 512, 5), GATED(2304, 9216, 30), NORMS(4, 2304, 30),
      EACH("layer_scalar", 1, 1, 30)},
     5 * 2 * 4 * 512,
     25 * 2 * 4 * 256,
     0,
     0},
    {"apertus-1.5, a head of text alone",
     "{\"model_type\":\"apertus1p5_text\",\"hidden_size\":4096,\"intermediate_size\":14336,\"num_hidden_layers\":32,"
     "\"num_attention_heads\":32,\"vocab_size\":266752,\"output_vocab_size\":131072}",
     {ENDS(266752, 4096), HEAD(131072, 4096), QKVO(4096, 4096, 4096, 32), EACH("q_norm, k_norm", 2, 128, 32),
      EACH("up_proj, down_proj", 2 * 14336, 4096, 32), EACH("alpha_p, alpha_n", 2, 1, 32), NORMS(2, 4096, 32)},
     32 * 2 * 4096,
     0,
     0,
     0},
    {"granite docling, saved as nothing",
     "{\"model_type\":\"granite_docling\",\"text_config\":{\"model_type\":\"granite_docling_text\"}}",
     {ENDS(133800, 1024), QKVO(1024, 4 * 64, 1024, 28), GATED(1024, 2048, 28), NORMS(2, 1024, 28)},
     28 * 2 * 4 * 64,
     0,
     0,
     0},
    {"afmoe with biases", /* of q, k, v and o, and none of the gate */
     "{\"model_type\":\"afmoe\",\"hidden_size\":48,\"num_hidden_layers\":4,\"num_attention_heads\":6,"
     "\"num_key_value_heads\":2,\"head_dim\":8,\"intermediate_size\":29,\"moe_intermediate_size\":13,"
     "\"num_experts\":5,\"num_experts_per_tok\":2,\"num_shared_experts\":1,\"num_dense_layers\":1,"
     "\"sliding_window\":16,\"vocab_size\":101,\"attention_bias\":true}",
     {ENDS(101, 48), HEAD(101, 48), QKVO(48, 16, 48, 4), EACH("biases", 1, 48 + 16 + 16 + 48, 4),
      EACH("gate_proj", 48, 48, 4), EACH("q_norm, k_norm", 2, 8, 4), GATED(48, 29, 1), EXPERTS(48, 13, 3, 5, 2),
      GATED(48, 13, 3), EACH("router", 5, 48, 3), EACH("expert_bias", 1, 5, 3), NORMS(4, 48, 4)},
     1 * 2 * 16,
     3 * 2 * 16,
     0,
     0},
    {"aria with biases of its MLPs", /* of the shared experts, which are one MLP; none of the routed ones */
     "{\"model_type\":\"aria_text\",\"hidden_size\":48,\"num_hidden_layers\":3,\"num_attention_heads\":6,"
     "\"intermediate_size\":13,\"moe_num_experts\":5,\"moe_topk\":2,\"moe_num_shared_experts\":2,\"vocab_size\":101,"
     "\"mlp_bias\":true}",
     {ENDS(101, 48), HEAD(101, 48), QKVO(48, 48, 48, 3), EXPERTS(48, 13, 3, 5, 2), GATED(48, 26, 3),
      EACH("biases", 1, 26 + 26 + 48, 3), EACH("router", 5, 48, 3), NORMS(2, 48, 3)},
     3 * 2 * 48,
     0,
     0,
     0},
};

enum { SUBJECTS_N = sizeof SUBJECTS / sizeof SUBJECTS[0] };

static void test_tensors(void **state)
{
    (void)state;
    families_tensors(SUBJECTS, SUBJECTS_N);
}

static void test_caches(void **state)
{
    (void)state;
    families_caches(SUBJECTS, SUBJECTS_N);
}

struct counts {
    double params, token_bytes, state_bytes;
};

static struct counts count(struct arena *a, const char *json)
{
    static const struct cost_conventions PLAIN = {0};
    const struct subject s = {.model = json, .json = json};
    const struct model m = families_read(a, &s);
    struct cost_parameters p;
    struct err e = {.code = ERR_OK};
    struct counts c = {0, 0, 0};
    assert_int_equal(cost_parameters(a, &m, &PLAIN, &p, &e), ERR_OK);
    c.params = p.total;
    for (size_t i = 0; i < m.kinds_n; i++) {
        struct cost_kind_cache one;
        assert_int_equal(cost_kind_cache(a, &m, &m.kinds[i], 1, &one, &e), ERR_OK);
        c.token_bytes += (double)m.kinds[i].count * one.token_bytes;
        c.state_bytes += (double)m.kinds[i].count * one.state_bytes;
    }
    return c;
}

/* `of` keys that the class has a value for, absent and stated; `other` is the value that a sibling of the row takes. */
static void test_absent(void **state)
{
#define SIZES                                                                                                          \
    "\"hidden_size\":64,\"num_hidden_layers\":4,\"num_attention_heads\":16,\"intermediate_size\":9,\"vocab_size\":101"
#define FILE_OF(type, more) "{\"model_type\":\"" type "\"," SIZES more
#define KIMI                                                                                                           \
    FILE_OF("kimi_linear", ",\"kv_lora_rank\":6,\"qk_nope_head_dim\":4,\"qk_rope_head_dim\":2,\"v_head_dim\":5,"       \
                           "\"num_experts\":4,\"num_experts_per_token\":2,\"moe_intermediate_size\":5,"                \
                           "\"linear_attn_config\":{\"full_attn_layers\":[4],\"kda_layers\":[1,2,3],\"head_dim\":4,"   \
                           "\"num_heads\":16,\"short_conv_kernel_size\":4}")
#define MIMO                                                                                                           \
    FILE_OF("mimo_v2_flash", ",\"num_key_value_heads\":4,\"head_dim\":8,\"v_head_dim\":4,\"sliding_window\":16,"       \
                             "\"hybrid_layer_pattern\":[0,1,1,0],\"n_routed_experts\":4,\"num_experts_per_tok\":2,"    \
                             "\"moe_intermediate_size\":5")
#define NEMO                                                                                                           \
    FILE_OF("nemotron_h", ",\"hybrid_override_pattern\":\"M*M-\",\"mamba_num_heads\":6,\"ssm_state_size\":8,"          \
                          "\"n_groups\":2,\"expand\":6")
    static const struct {
        const char *without, *with, *other;
    } CASES[] = {
        {FILE_OF("iquestcoder", "}"), FILE_OF("iquestcoder", ",\"num_key_value_heads\":8}"), FILE_OF("llama", "}")},
        {FILE_OF("phi4_multimodal", "}"), FILE_OF("phi4_multimodal", ",\"num_key_value_heads\":8}"),
         FILE_OF("phi4mm", "}")},
        {KIMI "}", KIMI ",\"first_k_dense_replace\":1,\"num_shared_experts\":1}",
         KIMI ",\"first_k_dense_replace\":0,\"num_shared_experts\":0}"},
        {MIMO "}", MIMO ",\"mlp_layer_types\":[\"dense\",\"sparse\",\"sparse\",\"sparse\"]}",
         MIMO ",\"mlp_layer_types\":[\"sparse\",\"sparse\",\"sparse\",\"sparse\"]}"},
        {NEMO "}", NEMO ",\"mamba_head_dim\":64}", NEMO ",\"mamba_head_dim\":32}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct arena *a = arena_open();
        const struct counts m = count(a, CASES[i].without), n = count(a, CASES[i].with), o = count(a, CASES[i].other);
        if (memcmp(&m, &n, sizeof m) != 0)
            fail_msg("case %zu: %.0f parameters, %.0f bytes, %.0f of state; stated %.0f, %.0f, %.0f", i, m.params,
                     m.token_bytes, m.state_bytes, n.params, n.token_bytes, n.state_bytes);
        if (memcmp(&m, &o, sizeof m) == 0) fail_msg("case %zu is what it is not", i);
        arena_close(a);
    }
}

static void test_refused(void **state)
{
    static const struct refused CASES[] = {
        {FILE_OF("gemma4_unified_text", ",\"hidden_size_per_layer_input\":256}"), "hidden_size_per_layer_input"},
        {FILE_OF("apertus1p5_text", ",\"output_vocab_size\":50,\"tie_word_embeddings\":true}"),
         "a head cannot know 50 of 101 tokens"},
        {FILE_OF("apertus1p5_text", ",\"output_vocab_size\":102}"), "output_vocab_size"},
    };
    (void)state;
    families_refused(CASES, sizeof CASES / sizeof CASES[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_caches),
        cmocka_unit_test(test_absent),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests_name("families_typed", tests, NULL, NULL);
}
