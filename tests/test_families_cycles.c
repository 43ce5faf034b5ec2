/* Families whose layers come in a cycle, or read what the whole pass has in common: Lara Mini, Voxtral Realtime; and
 * the cache of latents of which keys are chosen, as engines lay it out. Tensor lists: as in tests/families.h, of the
 * classes of transformers 5.24. */
#include "tests/families.h"

#include <math.h>
#include <string.h>

#include "calc/model/family.h"
#include "calc/model/stored.h"

#define QK_NORMS(each, layers) EACH("q_norm, k_norm", 2, each, layers)
#define DELTA(width, keys, values, heads, each, taps, layers)                                                          \
    EACH("in_proj_qkv", 2 * (keys) + (values), width, layers), EACH("in_proj_z", values, width, layers),               \
        EACH("in_proj_b, in_proj_a", 2 * (heads), width, layers), EACH("conv1d", 2 * (keys) + (values), taps, layers), \
        EACH("A_log, dt_bias", 2, heads, layers), EACH("norm", 1, each, layers),                                       \
        EACH("out_proj", width, values, layers)

static const struct subject SUBJECTS[] = {
    {"lara-4-mini", /* without layer_types: recurs, slides, recurs, full, slides, and again */
     "{\"model_type\":\"lara_mini\",\"hidden_size\":1024,\"num_hidden_layers\":34,\"num_attention_heads\":16,"
     "\"vocab_size\":151936}",
     {ENDS(151936, 1024), NORMS(2, 1024, 34), DELTA(1024, 1024, 2048, 16, 128, 4, 14), QKVO(2048, 512, 1024, 20),
      QK_NORMS(128, 20), EXPERTS(1024, 512, 34, 128, 4), EACH("gate", 128, 1024, 34), GATED(1024, 512, 34)},
     7 * 2 * 512,
     13 * 2 * 512,
     14 * 4096 * 3,
     14 * 16 * 128 * 128},
    {"lara mini with biases, untied, layer by layer",
     "{\"model_type\":\"lara_mini\",\"hidden_size\":96,\"num_hidden_layers\":3,\"num_attention_heads\":6,"
     "\"num_key_value_heads\":2,\"head_dim\":20,\"vocab_size\":101,\"num_experts\":9,\"num_experts_per_tok\":2,"
     "\"moe_intermediate_size\":24,\"shared_expert_intermediate_size\":40,\"linear_num_key_heads\":2,"
     "\"linear_num_value_heads\":4,\"linear_key_head_dim\":12,\"linear_value_head_dim\":10,"
     "\"linear_conv_kernel_dim\":3,\"attention_bias\":true,\"tie_word_embeddings\":false,\"sliding_window\":8,"
     "\"layer_types\":[\"sliding_attention\",\"full_attention\",\"linear_attention\"]}",
     {ENDS(101, 96), HEAD(101, 96), NORMS(2, 96, 3), DELTA(96, 24, 40, 4, 10, 3, 1), QKVO(120, 40, 96, 2),
      EACH("q, k, v, o biases", 1, 120 + 2 * 40 + 96, 2), QK_NORMS(20, 2), EXPERTS(96, 24, 3, 9, 2),
      EACH("gate", 9, 96, 3), GATED(96, 40, 3)},
     2 * 40,
     2 * 40,
     88 * 2,
     4 * 12 * 10},
    {"voxtral-mini-4b-realtime",
     "{\"model_type\":\"voxtral_realtime\",\"text_config\":{\"model_type\":\"voxtral_realtime_text\","
     "\"vocab_size\":131072,\"hidden_size\":3072,\"intermediate_size\":9216,\"num_hidden_layers\":26,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"head_dim\":128,\"sliding_window\":8192},"
     "\"audio_config\":{\"model_type\":\"voxtral_realtime_encoder\"}}",
     {ENDS(131072, 3072), NORMS(2, 3072, 26), QKVO(4096, 1024, 3072, 26), GATED(3072, 9216, 26),
      EACH("ada_rms_norm.linear1", 32, 3072, 26), EACH("ada_rms_norm.linear2", 3072, 32, 26)},
     0,
     26 * 2 * 1024,
     0,
     0},
    {"ling 3.0 as transformers saves it", /* one form of decay, gates and routing, without the keys that say so */
     "{\"model_type\":\"bailing_hybrid\",\"architectures\":[\"BailingHybridForCausalLM\"],\"hidden_size\":96,"
     "\"num_hidden_layers\":4,\"layer_group_size\":2,\"num_attention_heads\":4,\"head_dim\":24,"
     "\"linear_num_heads\":3,\"linear_head_dim\":20,\"linear_conv_kernel_dim\":4,\"kda_lower_bound\":-5.0,"
     "\"kv_lora_rank\":17,\"q_lora_rank\":null,\"qk_nope_head_dim\":10,\"qk_rope_head_dim\":6,"
     "\"v_head_dim\":9,\"intermediate_size\":56,\"vocab_size\":101,\"first_k_dense_replace\":1,"
     "\"num_experts\":9,\"num_experts_per_token\":2,\"num_shared_experts\":1,\"moe_intermediate_size\":24}",
     {ENDS(101, 96),
      HEAD(101, 96),
      NORMS(2, 96, 4),
      EACH("q_proj, k_proj, v_proj", 180, 96, 2),
      EACH("conv1d", 180, 4, 2),
      EACH("A_log", 1, 3, 2),
      EACH("dt_bias", 1, 60, 2),
      EACH("f_proj, g_proj", 120, 96, 2),
      EACH("b_proj", 3, 96, 2),
      EACH("o_norm", 1, 20, 2),
      EACH("o_proj", 96, 60, 2),
      EACH("q_proj", 64, 96, 2),
      EACH("kv_a_proj_with_mqa", 23, 96, 2),
      EACH("kv_a_layernorm", 1, 17, 2),
      EACH("kv_b_proj", 4 * 19, 17, 2),
      EACH("o_proj", 96, 36, 2),
      EACH("g_proj", 4, 96, 2),
      GATED(96, 56, 1),
      EXPERTS(96, 24, 3, 9, 2),
      EACH("gate", 9, 96, 3),
      EACH("e_score_correction_bias", 1, 9, 3),
      GATED(96, 24, 3)},
     2 * 23,
     0,
     2 * 180 * 3,
     2 * 3 * 20 * 20},
};

/* Bytes that caches of latents take in the layout of engines that choose keys: 512 + 4*4 + 2*64 of V3.2, 448 + 8 + 2*64
 * of V4, of which every fourth or 128th token has one and a window 128; keys of the indexer are 128 + 4 whatever the
 * format. Plain fp8 would be 576 and 512. */
static void test_latent_layout(void **state)
{
    static const struct subject V3 = {
        .model = "deepseek-v3.2",
        .json = "{\"model_type\":\"deepseek_v32\",\"hidden_size\":96,\"num_hidden_layers\":5,\"num_attention_heads\":4,"
                "\"q_lora_rank\":24,\"kv_lora_rank\":512,\"qk_nope_head_dim\":16,\"qk_rope_head_dim\":64,"
                "\"v_head_dim\":16,\"intermediate_size\":48,\"vocab_size\":101,\"first_k_dense_replace\":5,"
                "\"n_routed_experts\":4,\"num_experts_per_tok\":2,\"moe_intermediate_size\":8,\"index_topk\":2048,"
                "\"index_n_heads\":2,\"index_head_dim\":128}"};
    static const struct subject V4 = {
        .model = "deepseek-v4",
        .json = "{\"model_type\":\"deepseek_v4\",\"hidden_size\":96,\"num_hidden_layers\":4,\"num_attention_heads\":4,"
                "\"head_dim\":512,\"qk_rope_head_dim\":64,\"q_lora_rank\":24,\"o_groups\":2,\"o_lora_rank\":8,"
                "\"sliding_window\":128,\"vocab_size\":101,\"compress_ratios\":[0,4,128,4],\"index_n_heads\":2,"
                "\"index_head_dim\":128,\"index_topk\":512,\"hc_mult\":2,\"hc_sinkhorn_iters\":3,"
                "\"n_routed_experts\":4,\"num_experts_per_tok\":2,\"moe_intermediate_size\":8,\"n_shared_experts\":1,"
                "\"num_hash_layers\":0}"};
    static const struct {
        const struct subject *of;
        const char *format;
        double full, windowed;
    } CASES[] = {{&V3, "bf16", 5 * (1152 + 132), 0},
                 {&V3, "fp8", 5 * (576 + 132), 0},
                 {&V3, "fp8-ds-mla", 5 * (656 + 132), 0},
                 {&V4, "bf16", 2 * (1024 + 132) / 4.0 + 1024 / 128.0, 1024},
                 {&V4, "fp8", 2 * (512 + 132) / 4.0 + 512 / 128.0, 512},
                 {&V4, "fp8-ds-mla", 2 * (584 + 132) / 4.0 + 584 / 128.0, 584}};
    (void)state;
    double state_bytes[2] = {0};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct arena *a = arena_open();
        struct sym_ctx *c = sym_open(a);
        struct model m = families_read(a, CASES[i].of);
        struct err e = {.code = ERR_OK};
        struct cost_cache cache;
        const struct cost_symbols y = cost_symbols_make(c);
        assert_int_equal(stored_set_cache(&m, CASES[i].format, &e), ERR_OK);
        assert_true((stored_cache_note(&m) != NULL) == (strcmp(CASES[i].format, "fp8") == 0));
        assert_int_equal(cost_cache(c, &y, &m, 1, &cache, &e), ERR_OK);
        if (fabs(cache.bytes_per_token_full + cache.bytes_per_token_index - CASES[i].full) > 1e-9 ||
            fabs(cache.bytes_per_token_windowed - CASES[i].windowed) > 1e-9)
            fail_msg("%zu, %s: %g and %g bytes a token", i, CASES[i].format, cache.bytes_per_token_full,
                     cache.bytes_per_token_windowed);
        if (CASES[i].of == &V4 && i > 3) state_bytes[i - 4] = cache.state_bytes_per_sequence;
        arena_close(a);
    }
    assert_true(state_bytes[1] - state_bytes[0] == 3 * 128 * (584 - 512)); /* of windows beside entries */
    /* no layout of keys and values, nor of latents that are all seen */
    struct arena *a = arena_open();
    struct model m = families_read(a, &V3);
    struct err e = {.code = ERR_OK};
    assert_string_equal(stored_cache_fp8(&m), "fp8-ds-mla");
    m = families_read(a, &V4);
    assert_string_equal(stored_cache_fp8(&m), "fp8-ds-mla");
    m = families_read(a, &SUBJECTS[2]);
    assert_string_equal(stored_cache_fp8(&m), "fp8");
    assert_int_equal(stored_set_cache(&m, "fp8", &e), ERR_OK);
    assert_null(stored_cache_note(&m)); /* latents that are all seen: one scale in every engine */
    assert_int_equal(stored_set_cache(&m, "fp8-ds-mla", &e), ERR_USAGE);
    assert_non_null(strstr(e.text, "latents of which keys are chosen"));
    arena_close(a);
}

static void test_tensors(void **state)
{
    (void)state;
    families_tensors(SUBJECTS, sizeof SUBJECTS / sizeof SUBJECTS[0]);
}

static void test_caches(void **state)
{
    (void)state;
    families_caches(SUBJECTS, sizeof SUBJECTS / sizeof SUBJECTS[0]);
}

/* Only layers that slide know positions. */
static void test_positions(void **state)
{
    struct arena *a = arena_open();
    (void)state;
    for (size_t s = 0; s < 2; s++) {
        const struct model m = families_read(a, &SUBJECTS[s]);
        for (size_t i = 0; i < m.kinds_n; i++) {
            const struct mixer *x = &m.kinds[i].mixer;
            if (x->kind == MIXER_ATTENTION)
                assert_int_equal(x->position, x->window_tokens > 0 ? POSITION_ROPE : POSITION_NONE);
        }
    }
    arena_close(a);
}

/* What the encoder of a stream of sound holds is said not to be counted. */
static void test_notes(void **state)
{
    struct arena *a = arena_open();
    (void)state;
    const struct model m = families_read(a, &SUBJECTS[2]);
    assert_non_null(strstr(m.notes, "the encoder of sound keeps a cache of its own"));
    assert_int_equal(m.kinds[0].ffn_condition_rank, 32);
    arena_close(a);
}

/* Known, and not described: what of them is not. */
static void test_refused(void **state)
{
    static const struct refused CASES_REFUSED[] = {
        {"{\"model_type\":\"dory\",\"hidden_size\":8}", "a middle section of layers that run again"},
        {"{\"model_type\":\"hrm_text\",\"hidden_size\":8}", "two stacks in turns"},
        {"{\"model_type\":\"canary\"}", "an encoder and decoder of a kind"},
        {"{\"model_type\":\"xmod\"}", "an encoder, and ridge describes decoders"},
        {"{\"model_type\":\"mvp\",\"use_prompt\":true,\"d_model\":8}", "use_prompt means stored prompts"},
        /* a head that would be read as a whole model of its text part's family */
        {"{\"model_type\":\"gemma4_unified_assistant\",\"text_config\":{\"model_type\":\"gemma4_unified_text\","
         "\"hidden_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":4,\"intermediate_size\":96,"
         "\"vocab_size\":31}}",
         "a draft head that attends to its target's cache"},
    };
    (void)state;
    families_refused(CASES_REFUSED, sizeof CASES_REFUSED / sizeof CASES_REFUSED[0]);
    assert_ptr_equal(family_find("plbart"), family_named("bart"));
    assert_ptr_equal(family_find("mvp"), family_named("bart"));
}

/* Qwen1.5-MoE's class has biases of q, k and v unless qkv_bias says otherwise. */
static void test_bias_key(void **state)
{
    static const char *const KEYS[] = {"", ",\"qkv_bias\":true", ",\"qkv_bias\":false"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct arena *a = arena_open();
        const struct subject s = {
            .model = "qwen2_moe",
            .json = arena_printf(a,
                                 "{\"model_type\":\"qwen2_moe\",\"hidden_size\":48,\"num_hidden_layers\":2,"
                                 "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"intermediate_size\":96,"
                                 "\"vocab_size\":31,\"moe_intermediate_size\":8,\"num_experts\":4,"
                                 "\"num_experts_per_tok\":2,\"shared_expert_intermediate_size\":16%s}",
                                 KEYS[i])};
        const struct model m = families_read(a, &s);
        assert_int_equal(m.kinds[0].mixer.qkv_bias, i < 2);
        arena_close(a);
    }
}

/* Files that transformers 5 saves again are the same models: the head of a T5 that was untied, and a module of
 * multi-token prediction whose layers are words. */
static void test_saved_again(void **state)
{
#define T5                                                                                                             \
    "{\"model_type\":\"t5\",\"is_encoder_decoder\":true,\"d_model\":48,\"num_layers\":2,\"num_heads\":4,\"d_kv\":8,"   \
    "\"d_ff\":96,\"vocab_size\":31,\"feed_forward_proj\":\"gated-gelu\",\"tie_word_embeddings\":"
#define NEMOTRON                                                                                                       \
    "{\"model_type\":\"nemotron_h\",\"hidden_size\":48,\"vocab_size\":31,\"num_attention_heads\":4,\"head_dim\":12,"   \
    "\"num_key_value_heads\":2,\"num_hidden_layers\":3,\"hybrid_override_pattern\":\"M*E\",\"mamba_num_heads\":4,"     \
    "\"mamba_head_dim\":8,\"ssm_state_size\":16,\"n_groups\":2,\"conv_kernel\":4,\"n_routed_experts\":4,"              \
    "\"num_experts_per_tok\":2,\"moe_intermediate_size\":24,\"intermediate_size\":24,"                                 \
    "\"moe_shared_expert_intermediate_size\":16,\"num_nextn_predict_layers\":1,"
    static const struct subject BOTH[][2] = {
        {{.model = "flan-t5", .json = T5 "false}"},
         {.model = "flan-t5 again", .json = T5 "true,\"scale_decoder_outputs\":false}"}},
        {{.model = "nemotron", .json = NEMOTRON "\"mtp_hybrid_override_pattern\":\"*E\"}"},
         {.model = "nemotron again", .json = NEMOTRON "\"mtp_layers_block_type\":[\"full_attention\",\"moe\"]}"}},
    };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct arena *a = arena_open();
        const struct model was = families_read(a, &BOTH[i][0]), is = families_read(a, &BOTH[i][1]);
        assert_true(model_same(&was, &is));
        assert_false(is.tied);
        assert_int_equal(is.mtp.layers, i == 1 ? 2 : 0);
        arena_close(a);
    }
    struct arena *a = arena_open(); /* T5 itself is tied, and says so */
    const struct subject first = {.model = "t5", .json = T5 "true,\"scale_decoder_outputs\":true}"};
    assert_true(families_read(a, &first).tied);
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tensors),       cmocka_unit_test(test_caches),
                                       cmocka_unit_test(test_positions),     cmocka_unit_test(test_notes),
                                       cmocka_unit_test(test_latent_layout), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_bias_key),      cmocka_unit_test(test_saved_again)};
    return cmocka_run_group_tests_name("families_cycles", tests, NULL, NULL);
}
