/* Families as the classes of transformers 5.24 read a file: what they take where it says nothing, which of two
 * statements counts, which layers a step or a period picks. Source: configuration_*.py of each. */
#include "tests/families.h"

#include <string.h>

static double parameters(struct arena *a, const struct model *m)
{
    static const struct cost_conventions PLAIN = {0};
    struct cost_parameters p;
    struct err e = {.code = ERR_OK};
    assert_int_equal(cost_parameters(a, m, &PLAIN, &p, &e), ERR_OK);
    return p.total;
}

static struct model read_json(struct arena *a, const char *json)
{
    const struct subject s = {.model = json, .json = json};
    return families_read(a, &s);
}

/* Bytes that a sequence holds at a context: each window's, and all of the others'. */
static double held(struct arena *a, const struct model *m, int64_t context)
{
    double bytes = 0;
    for (size_t i = 0; i < m->kinds_n; i++) {
        struct cost_kind_cache one;
        struct err e = {.code = ERR_OK};
        const int64_t window = m->kinds[i].mixer.window_tokens;
        assert_int_equal(cost_kind_cache(a, m, &m->kinds[i], 1, &one, &e), ERR_OK);
        bytes +=
            (double)m->kinds[i].count * one.token_bytes * (double)(window > 0 && window < context ? window : context);
    }
    return bytes;
}

/* i % 3 == 0 is full: 0, 3, .. 21 of 22; every third layer from the third on would be 7. */
static void test_first_of_a_period(void **state)
{
    struct arena *a = arena_open();
    const struct model m =
        read_json(a, "{\"model_type\":\"modernbert-decoder\",\"hidden_size\":768,\"intermediate_size\":1152,"
                     "\"num_hidden_layers\":22,\"num_attention_heads\":12,\"vocab_size\":50368,\"local_attention\":128,"
                     "\"global_attn_every_n_layers\":3,\"torch_dtype\":\"bfloat16\"}");
    (void)state;
    assert_true(held(a, &m, 4096) == 103415808);
    arena_close(a);
}

/* Outer and inner statement: 1 true, 0 false, -1 none. */
static void test_which_of_two_statements(void **state)
{
    static const struct {
        const char *outer, *text;
        struct {
            int outer, inner;
            bool tied, noted;
        } of[6];
    } CASES[] = {
#define DENSE                                                                                                          \
    "\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":2,"                  \
    "\"intermediate_size\":9,\"vocab_size\":101"
#define ROUTED DENSE ",\"moe_intermediate_size\":5,\"num_experts\":4,\"num_experts_per_tok\":2"
#define DELTA                                                                                                          \
    ",\"linear_num_key_heads\":2,\"linear_num_value_heads\":4,\"linear_key_head_dim\":8,\"linear_value_head_dim\":8,"  \
    "\"linear_conv_kernel_dim\":4,\"layer_types\":[\"full_attention\",\"full_attention\"]"
#define OUTER_ALONE(none)                                                                                              \
    {{1, 0, true, true},    {0, 1, false, true},       {1, -1, true, false},                                           \
     {0, -1, false, false}, {-1, !(none), none, true}, {-1, none, none, false}}
#define EITHER                                                                                                         \
    {                                                                                                                  \
        {1, 0, true, true}, {0, 1, true, true}, {1, -1, true, false}, {0, -1, false, false}, {-1, 1, true, false},     \
        {                                                                                                              \
            -1, -1, false, false                                                                                       \
        }                                                                                                              \
    }
#define INNER_ALONE                                                                                                    \
    {                                                                                                                  \
        {1, 0, false, true}, {0, 1, true, true}, {1, -1, false, true}, {0, -1, false, false}, {-1, 1, true, false},    \
        {                                                                                                              \
            -1, -1, false, false                                                                                       \
        }                                                                                                              \
    }
#define NEVER                                                                                                          \
    {                                                                                                                  \
        {1, 0, false, true}, {0, 1, false, true}, {1, -1, false, true}, {0, -1, false, false}, {-1, 1, false, true},   \
        {                                                                                                              \
            -1, -1, false, false                                                                                       \
        }                                                                                                              \
    }
#define OUTER_FIRST                                                                                                    \
    {                                                                                                                  \
        {1, 0, true, true}, {0, 1, false, true}, {1, -1, true, false}, {0, -1, false, false}, {-1, 1, true, false},    \
        {                                                                                                              \
            -1, -1, false, false                                                                                       \
        }                                                                                                              \
    }
        {"qwen3_vl", "\"model_type\":\"qwen3_vl_text\",\"head_dim\":12," DENSE, OUTER_ALONE(false)},
        {"qwen3_vl_moe", "\"model_type\":\"qwen3_vl_moe_text\",\"head_dim\":12," ROUTED, OUTER_ALONE(false)},
        {"gemma3", "\"model_type\":\"gemma3_text\"," DENSE, OUTER_ALONE(true)},
        {"qwen3_5", "\"model_type\":\"qwen3_5_text\"," DENSE DELTA, OUTER_ALONE(false)},
        {"voxtral_realtime", "\"model_type\":\"voxtral_realtime_text\"," DENSE, OUTER_ALONE(true)},
        {"vibevoice", "\"model_type\":\"qwen2\"," DENSE, INNER_ALONE},
        {"voxtral", "\"model_type\":\"llama\"," DENSE, NEVER},
        {"qwen2_audio", "\"model_type\":\"qwen2\"," DENSE, NEVER},
        {"audioflamingo3", "\"model_type\":\"qwen2\"," DENSE, NEVER},
        {"mllama", "\"model_type\":\"mllama_text_model\",\"cross_attention_layers\":[1]," DENSE, NEVER},
        {"qwen2_vl", "\"model_type\":\"qwen2_vl_text\"," DENSE, EITHER},
        {"glm_ocr", "\"model_type\":\"glm_ocr_text\"," DENSE, EITHER},
        {"llava", "\"model_type\":\"llama\"," DENSE, EITHER},
        {"mistral3", "\"model_type\":\"mistral\"," DENSE, OUTER_FIRST},
    };
    static const char *const WORD[] = {"", "\"tie_word_embeddings\":false,", "\"tie_word_embeddings\":true,"};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        for (size_t k = 0; k < 6; k++) {
            struct arena *a = arena_open();
            const int outer = CASES[i].of[k].outer, inner = CASES[i].of[k].inner;
            const struct model m =
                read_json(a, arena_printf(a, "{\"model_type\":\"%s\",%s\"text_config\":{%s%s}}", CASES[i].outer,
                                          WORD[outer + 1], WORD[inner + 1], CASES[i].text));
            const bool noted = m.notes && strstr(m.notes, "tie_word_embeddings");
            if (m.tied != CASES[i].of[k].tied || noted != CASES[i].of[k].noted)
                fail_msg("%s, %d and %d: %s, %s", CASES[i].outer, outer, inner, m.tied ? "tied" : "apart",
                         noted ? m.notes : "no note");
            arena_close(a);
        }
}

/* Qwen3-VL-30B-A3B as transformers 5 saves it: the text part's own default is true, the class does not read it. */
static void test_saved_again(void **state)
{
    struct arena *a = arena_open();
    const struct model m = read_json(
        a, "{\"model_type\":\"qwen3_vl_moe\",\"tie_word_embeddings\":false,\"text_config\":{\"model_type\":"
           "\"qwen3_vl_moe_text\",\"tie_word_embeddings\":true,\"hidden_size\":2048,\"num_hidden_layers\":48,"
           "\"num_attention_heads\":32,\"num_key_value_heads\":4,\"head_dim\":128,\"intermediate_size\":6144,"
           "\"moe_intermediate_size\":768,\"num_experts\":128,\"num_experts_per_tok\":8,\"vocab_size\":151936}}");
    (void)state;
    assert_true(parameters(a, &m) == 30532122624.0); /* the text part's, with a head of its own, as Qwen3-30B-A3B */
    arena_close(a);
}

/* A file without a key is one with the class's number in it. Some take a key of null as none. */
static void test_what_the_class_takes(void **state)
{
#define HEADS8 "\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":8,\"vocab_size\":101"
#define SMALL HEADS8 ",\"intermediate_size\":9"
#define MIXED                                                                                                          \
    "{\"model_type\":\"granitemoehybrid\",\"layer_types\":[\"attention\",\"attention\"],\"num_local_experts\":4,"      \
    "\"num_experts_per_tok\":2," SMALL
#define LATENT4                                                                                                        \
    "{\"model_type\":\"mistral4\",\"kv_lora_rank\":6,\"qk_nope_head_dim\":4,\"qk_rope_head_dim\":2,\"v_head_dim\":5,"  \
    "\"n_routed_experts\":4,\"num_experts_per_tok\":2,\"moe_intermediate_size\":5," SMALL
#define G4                                                                                                             \
    "{\"model_type\":\"gemma4_text\",\"hidden_size\":48,\"num_hidden_layers\":8,\"num_attention_heads\":4,"            \
    "\"intermediate_size\":9,\"vocab_size\":101"
#define SL "\"sliding_attention\","
#define GRIFFIN                                                                                                        \
    "{\"model_type\":\"recurrent_gemma\",\"lru_width\":48,\"block_types\":[\"recurrent\",\"recurrent\",\"attention\"]" \
    ","                                                                                                                \
    "\"hidden_size\":48,\"num_hidden_layers\":3,\"num_attention_heads\":8,\"intermediate_size\":18,\"vocab_size\":101"
#define NEMO                                                                                                           \
    "{\"model_type\":\"nemotron_h\",\"hybrid_override_pattern\":\"*E\",\"n_routed_experts\":4,"                        \
    "\"num_experts_per_tok\":2,\"moe_intermediate_size\":5," SMALL
    static const struct {
        const char *without, *with, *other; /* other: what it is not; NULL not asked */
    } CASES[] = {
        {"{\"model_type\":\"exaone\"," SMALL "}", "{\"model_type\":\"exaone\",\"num_key_value_heads\":8," SMALL "}",
         NULL},
        {"{\"model_type\":\"exaone\",\"num_key_value_heads\":null," SMALL "}",
         "{\"model_type\":\"exaone\",\"num_key_value_heads\":8," SMALL "}", NULL},
        {"{\"model_type\":\"internlm3\"," SMALL "}",
         "{\"model_type\":\"internlm3\",\"num_key_value_heads\":2," SMALL "}",
         "{\"model_type\":\"internlm3\",\"num_key_value_heads\":8," SMALL "}"},
        {MIXED "}", MIXED ",\"shared_intermediate_size\":1024,\"tie_word_embeddings\":false}",
         MIXED ",\"tie_word_embeddings\":true}"},
        {MIXED "}", MIXED ",\"shared_intermediate_size\":1024}", MIXED ",\"shared_intermediate_size\":0}"},
        {LATENT4 "}", LATENT4 ",\"q_lora_rank\":1024,\"n_shared_experts\":1}", LATENT4 ",\"q_lora_rank\":null}"},
        {LATENT4 "}", LATENT4 ",\"n_shared_experts\":1}", LATENT4 ",\"n_shared_experts\":0}"},
        {"{\"model_type\":\"hyperclovax\"," SMALL "}",
         "{\"model_type\":\"hyperclovax\",\"use_post_norm\":true," SMALL "}",
         "{\"model_type\":\"hyperclovax\",\"use_post_norm\":false," SMALL "}"},
        {G4 "}",
         G4 ",\"hidden_size_per_layer_input\":256,\"layer_types\":[" SL SL SL SL SL "\"full_attention\"," SL
            "\"full_attention\"]}",
         G4 ",\"hidden_size_per_layer_input\":null}"},
        {G4 ",\"layer_types\":[" SL SL SL SL SL SL SL "\"sliding_attention\"]}",
         G4 ",\"layer_types\":[" SL SL SL SL SL SL SL "\"full_attention\"]}", G4 "}"},
        {GRIFFIN "}", GRIFFIN ",\"num_key_value_heads\":8}", GRIFFIN ",\"num_key_value_heads\":1}"},
        {NEMO "}", NEMO ",\"moe_shared_expert_intermediate_size\":7688}",
         NEMO ",\"moe_shared_expert_intermediate_size\":0}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct arena *a = arena_open();
        const struct model m = read_json(a, CASES[i].without), n = read_json(a, CASES[i].with);
        if (parameters(a, &m) != parameters(a, &n) || held(a, &m, 4096) != held(a, &n, 4096))
            fail_msg("case %zu: %.0f parameters, %.0f bytes; stated %.0f, %.0f", i, parameters(a, &m),
                     held(a, &m, 4096), parameters(a, &n), held(a, &n, 4096));
        if (CASES[i].other) {
            const struct model o = read_json(a, CASES[i].other);
            if (parameters(a, &m) == parameters(a, &o) && held(a, &m, 4096) == held(a, &o, 4096))
                fail_msg("case %zu is what it is not", i);
        }
        arena_close(a);
    }
}

/* Layers of either half that have experts. */
static void test_sparse_layers(void **state)
{
#define SWITCH                                                                                                         \
    "{\"model_type\":\"switch_transformers\",\"d_model\":48,\"num_layers\":6,\"num_heads\":4,\"d_kv\":12,\"d_ff\":9,"  \
    "\"vocab_size\":101,\"num_experts\":4"
#define HALVES_OF(enc, dec) ",\"num_sparse_encoder_layers\":" #enc ",\"num_sparse_decoder_layers\":" #dec
    static const struct {
        const char *json;
        int64_t encoder, decoder;
    } CASES[] = {
        {SWITCH HALVES_OF(3, 2) "}", 3, 2},
        {SWITCH "}", 3, 3},
        {SWITCH HALVES_OF(6, 6) "}", 6, 6},
        {SWITCH HALVES_OF(0, 0) "}", 1, 1}, /* layer 1: a step of all layers */
        {SWITCH ",\"encoder_sparse_step\":1,\"decoder_sparse_step\":6}", 6, 1},
        {SWITCH HALVES_OF(3, 3) ",\"encoder_sparse_step\":0,\"decoder_sparse_step\":3}", 0, 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct arena *a = arena_open();
        const struct model m = read_json(a, CASES[i].json);
        int64_t encoder = 0, decoder = 0;
        for (size_t k = 0; k < m.kinds_n; k++)
            if (m.kinds[k].ffn.kind == FFN_MOE) *(m.kinds[k].encodes ? &encoder : &decoder) += m.kinds[k].count;
        if (encoder != CASES[i].encoder || decoder != CASES[i].decoder)
            fail_msg("case %zu: %lld and %lld layers", i, (long long)encoder, (long long)decoder);
        arena_close(a);
    }
}

/* An MLP without a gate is what LongT5's class takes, and a head that is the embedding. */
static void test_encoder_of_windows(void **state)
{
#define LONG                                                                                                           \
    "{\"model_type\":\"longt5\",\"d_model\":48,\"num_layers\":2,\"num_heads\":4,\"d_kv\":12,\"d_ff\":9,"               \
    "\"vocab_size\":101"
    struct arena *a = arena_open();
    const struct model plain = read_json(a, LONG "}"), relu = read_json(a, LONG ",\"feed_forward_proj\":\"relu\"}"),
                       gated = read_json(a, LONG ",\"feed_forward_proj\":\"gated-gelu\"}"),
                       apart = read_json(a, LONG ",\"tie_word_embeddings\":false}");
    (void)state;
    assert_true(parameters(a, &plain) == parameters(a, &relu));
    assert_true(parameters(a, &gated) - parameters(a, &plain) == 4 * 48 * 9);
    assert_true(parameters(a, &apart) - parameters(a, &plain) == 101 * 48);
    arena_close(a);
}

static void test_format_of_a_state(void **state)
{
#define XLSTM "{\"model_type\":\"xlstm\",\"hidden_size\":64,\"num_blocks\":2,\"num_heads\":4,\"vocab_size\":101"
    static const struct refused WORD[] = {
        {XLSTM ",\"inference_state_dtype\":\"int8\"}", "inference_state_dtype: found \"int8\", wanted float32"}};
    struct arena *a = arena_open();
    const struct model usual = read_json(a, XLSTM "}"),
                       half = read_json(a, XLSTM ",\"inference_state_dtype\":\"bfloat16\"}");
    (void)state;
    assert_string_equal(usual.state.name, "fp32");
    assert_string_equal(half.state.name, "bf16");
    assert_true(usual.state_assumed && !half.state_assumed);
    families_refused(WORD, 1);
    arena_close(a);
}

static void test_no_quantiser(void **state)
{
    static const struct refused CASES[] = {
        {"{\"model_type\":\"chameleon\",\"hidden_size\":48,\"intermediate_size\":9,\"num_hidden_layers\":2,"
         "\"num_attention_heads\":4,\"vocab_size\":101,\"vq_config\":\"x\"}",
         "vq_config"}};
    (void)state;
    families_refused(CASES, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_of_a_period), cmocka_unit_test(test_which_of_two_statements),
        cmocka_unit_test(test_saved_again),       cmocka_unit_test(test_what_the_class_takes),
        cmocka_unit_test(test_sparse_layers),     cmocka_unit_test(test_encoder_of_windows),
        cmocka_unit_test(test_format_of_a_state), cmocka_unit_test(test_no_quantiser),
    };
    return cmocka_run_group_tests_name("families_classes", tests, NULL, NULL);
}
