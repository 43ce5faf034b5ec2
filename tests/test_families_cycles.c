/* Families whose layers come in a cycle, or read what the whole pass has in common: Lara Mini, Voxtral Realtime. Tensor
 * lists: as in tests/families.h, of the classes of transformers 5.24. */
#include "tests/families.h"

#include <string.h>

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
};

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tensors), cmocka_unit_test(test_caches),
                                       cmocka_unit_test(test_positions), cmocka_unit_test(test_notes)};
    return cmocka_run_group_tests_name("families_cycles", tests, NULL, NULL);
}
