/* Checkpoints as models: GGUF files of every architecture that attends, written tensor by tensor, must be explained to
 * the last parameter and byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/checkpoint_writer.h"

static void test_dense(void **state)
{
    struct writer *w = *state;
    static const struct {
        const char *arch, *family;
        bool tied;
        unsigned attention;
        int norms;
    } ROWS[] = {
        {"llama", "llama", false, 0, 2},      {"llama", "llama", true, BIAS | O_BIAS, 2},
        {"mistral3", "mistral", false, 0, 2}, {"qwen2", "qwen2", false, BIAS, 2},
        {"qwen3", "qwen3", true, QK_NORM, 2}, {"gemma", "gemma", true, 0, 2},
        {"gemma2", "gemma2", true, 0, 4},     {"gemma3", "gemma3", true, QK_NORM, 4},
        {"phi3", "phi3", false, FUSED, 2},
    };
    for (size_t r = 0; r < sizeof ROWS / sizeof ROWS[0]; r++) {
        begin(w, ROWS[r].arch);
        put_shape(w);
        pair(w, "feed_forward_length", F);
        put_outside(w, ROWS[r].tied);
        for (int i = 0; i < L; i++) {
            put_attention(w, i, ROWS[r].attention);
            put_norms(w, i, ROWS[r].norms);
            put_mlp(w, i, ROWS[r].attention & FUSED);
        }
        const struct model m = explained(w, ROWS[r].family);
        assert_int_equal(m.vocab, V);
        assert_int_equal(m.max_context_tokens, 4099);
        assert_int_equal(m.tied, ROWS[r].tied);
        assert_int_equal(m.kinds[0].mixer.head_dim, H);
        assert_string_equal(m.weights[WEIGHT_MIXER].name, "Q4_0+Q8_0");
        assert_string_equal(m.weights[WEIGHT_EMBED].name, "Q8_0");
        assert_true(m.weights[WEIGHT_EMBED].bits == 8.5);
        if (!m.tied) assert_string_equal(m.weights[WEIGHT_HEAD].name, "fp16");
        if (strcmp(ROWS[r].arch, "mistral3") == 0) assert_int_equal(m.kinds[0].mixer.window_tokens, 0);
    }
}

static void test_windows(void **state)
{
    struct writer *w = *state;
    begin(w, "gemma3");
    put_shape(w);
    pair(w, "feed_forward_length", F);
    pair(w, "attention.sliding_window", 523);
    checkpoint_put_text(&w->pairs, "gemma3.attention.sliding_window_pattern");
    checkpoint_put(&w->pairs, 4, 9);
    checkpoint_put(&w->pairs, 4, 7);
    checkpoint_put(&w->pairs, 8, L);
    checkpoint_put(&w->pairs, L, 0x010001); /* sliding, full, sliding */
    w->pairs_n++;
    put_outside(w, true);
    for (int i = 0; i < L; i++) {
        put_attention(w, i, QK_NORM);
        put_norms(w, i, 4);
        put_mlp(w, i, false);
    }
    const struct model m = explained(w, "gemma3");
    assert_int_equal(m.kinds_n, 2);
    assert_int_equal(m.kinds[0].mixer.window_tokens, 523);
    assert_int_equal(m.kinds[0].count, 2);
    assert_int_equal(m.kinds[1].mixer.window_tokens, 0);
}

static void test_experts(void **state)
{
    struct writer *w = *state;
    static const struct {
        const char *arch, *family;
        unsigned attention;
        bool own_width;
    } ROWS[] = {
        {"llama", "mixtral", 0, false},
        {"qwen3moe", "qwen3_moe", QK_NORM, true},
        {"qwen2moe", "qwen2_moe", BIAS, true},
        {"gpt-oss", "gpt_oss", BIAS | O_BIAS | SINKS, true},
    };
    for (size_t r = 0; r < sizeof ROWS / sizeof ROWS[0]; r++) {
        const bool oss = strcmp(ROWS[r].arch, "gpt-oss") == 0, shared = strcmp(ROWS[r].arch, "qwen2moe") == 0;
        const uint64_t width = ROWS[r].own_width ? FE : F;
        begin(w, ROWS[r].arch);
        put_shape(w);
        pair(w, "feed_forward_length", F);
        pair(w, "expert_count", E);
        pair(w, "expert_used_count", TOP);
        if (ROWS[r].own_width) pair(w, "expert_feed_forward_length", FE);
        if (shared) pair(w, "expert_shared_feed_forward_length", F);
        put_outside(w, false);
        for (int i = 0; i < L; i++) {
            put_attention(w, i, ROWS[r].attention);
            put_norms(w, i, 2);
            put_experts(w, i, width);
            if (oss) {
                layer(w, F32, 0, 0, E, "blk.%d.ffn_gate_inp.bias", i);
                layer(w, F32, 0, E, width, "blk.%d.ffn_gate_exps.bias", i);
                layer(w, F32, 0, E, width, "blk.%d.ffn_up_exps.bias", i);
                layer(w, F32, 0, E, D, "blk.%d.ffn_down_exps.bias", i);
            }
            if (shared) {
                layer(w, F32, 0, 0, D, "blk.%d.ffn_gate_inp_shexp.weight", i);
                layer(w, Q4_0, 0, F, D, "blk.%d.ffn_gate_shexp.weight", i);
                layer(w, Q4_0, 0, F, D, "blk.%d.ffn_up_shexp.weight", i);
                layer(w, Q4_0, 0, D, F, "blk.%d.ffn_down_shexp.weight", i);
            }
        }
        const struct model m = explained(w, ROWS[r].family);
        assert_int_equal(m.kinds[0].ffn.experts_per_token, TOP);
        assert_int_equal(m.kinds[0].ffn.width, width);
    }
}

/* Latent attention; with the latent widths among the keys, as newer files have them, and without. */
static void test_latent(void **state)
{
    struct writer *w = *state;
    enum { C = 128, R = 32, NOPE = 64, VALUE = 96, Q = 160, PREFIX = 1 };
    enum { CHOSEN = 37, NI = 5, HI = 64 };
    static const char *const ARCH[] = {"deepseek2", "deepseek2", "deepseek2", "deepseek32", "glm-dsa", "mistral4"};
    static const char *const FAMILY[] = {"deepseek_v2",  "deepseek_v2", "deepseek_v3",
                                         "deepseek_v32", "glm_moe_dsa", "mistral4"};
    for (int form = 0; form < 6; form++) {
        const bool latents = form > 0, compressed = form != 1, chooses = form == 3 || form == 4;
        const bool corrected = form == 2 || chooses;
        begin(w, ARCH[form]);
        if (chooses) pair(w, "attention.indexer.top_k", CHOSEN);
        if (chooses) pair(w, "attention.indexer.head_count", NI);
        if (chooses) pair(w, "attention.indexer.key_length", HI);
        pair(w, "block_count", L);
        pair(w, "embedding_length", D);
        pair(w, "attention.head_count", N);
        pair(w, "attention.head_count_kv", latents ? 1 : N);
        pair(w, "attention.key_length", latents ? C + R : NOPE + R);
        pair(w, "attention.value_length", latents ? C : VALUE);
        if (latents) pair(w, "attention.key_length_mla", NOPE + R);
        if (latents) pair(w, "attention.value_length_mla", VALUE);
        pair(w, "attention.kv_lora_rank", C);
        if (compressed) pair(w, "attention.q_lora_rank", Q);
        pair(w, "rope.dimension_count", R);
        pair(w, "feed_forward_length", F);
        pair(w, "expert_feed_forward_length", FE);
        pair(w, "expert_count", E);
        pair(w, "expert_used_count", TOP);
        pair(w, "expert_shared_count", 2);
        pair(w, "leading_dense_block_count", PREFIX);
        put_outside(w, false);
        for (int i = 0; i < L; i++) {
            if (compressed) {
                layer(w, Q4_0, 0, Q, D, "blk.%d.attn_q_a.weight", i);
                layer(w, F32, 0, 0, Q, "blk.%d.attn_q_a_norm.weight", i);
                layer(w, Q4_0, 0, N * (NOPE + R), Q, "blk.%d.attn_q_b.weight", i);
            } else {
                layer(w, Q4_0, 0, N * (NOPE + R), D, "blk.%d.attn_q.weight", i);
            }
            layer(w, Q8_0, 0, C + R, D, "blk.%d.attn_kv_a_mqa.weight", i);
            layer(w, F32, 0, 0, C, "blk.%d.attn_kv_a_norm.weight", i);
            if (latents) {
                layer(w, Q8_0, N, C, NOPE, "blk.%d.attn_k_b.weight", i);
                layer(w, Q8_0, N, VALUE, C, "blk.%d.attn_v_b.weight", i);
            } else {
                layer(w, Q8_0, 0, N * (NOPE + VALUE), C, "blk.%d.attn_kv_b.weight", i);
            }
            layer(w, Q4_0, 0, D, N * VALUE, "blk.%d.attn_output.weight", i);
            if (chooses) {
                layer(w, Q4_0, 0, NI * HI, Q, "blk.%d.indexer.attn_q_b.weight", i);
                layer(w, Q4_0, 0, HI, D, "blk.%d.indexer.attn_k.weight", i);
                put_vectors(w, i, "indexer.k_norm", HI, true);
                layer(w, F32, 0, NI, D, "blk.%d.indexer.proj.weight", i);
            }
            put_norms(w, i, 2);
            if (i < PREFIX) {
                put_mlp(w, i, false);
                continue;
            }
            put_experts(w, i, FE);
            if (corrected) layer(w, F32, 0, 0, E, "blk.%d.exp_probs_b.bias", i);
            layer(w, Q4_0, 0, 2 * FE, D, "blk.%d.ffn_gate_shexp.weight", i);
            layer(w, Q4_0, 0, 2 * FE, D, "blk.%d.ffn_up_shexp.weight", i);
            layer(w, Q4_0, 0, D, 2 * FE, "blk.%d.ffn_down_shexp.weight", i);
        }
        const struct model m = explained(w, FAMILY[form]);
        assert_int_equal(m.kinds[0].mixer.top_keys, chooses ? CHOSEN : 0);
        assert_int_equal(m.kinds[0].mixer.index_heads, chooses ? NI : 0);
        assert_int_equal(m.kinds[0].mixer.rope_dim, R);
        assert_int_equal(m.kinds[0].mixer.head_dim, NOPE);
        assert_int_equal(m.kinds[0].mixer.v_head_dim, VALUE);
    }
}

#define RUN(test) cmocka_unit_test_setup_teardown(test, open_writer, close_writer)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(test_dense),
        RUN(test_windows),
        RUN(test_experts),
        RUN(test_latent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
