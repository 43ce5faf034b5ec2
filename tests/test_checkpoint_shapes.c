/* Checkpoints as models: GGUF files of architectures whose layers differ in shape. Tensors: llama.cpp, src/models. */
#include "tests/checkpoint_writer.h"

#include <stdlib.h>

static void matrix(struct writer *w, int i, const char *stem, uint64_t rows, uint64_t cols)
{
    layer(w, F16, 0, rows, cols, "blk.%d.%s.weight", i, stem);
}

static void vector(struct writer *w, int i, const char *stem, uint64_t n)
{
    layer(w, F32, 0, 0, n, "blk.%d.%s.weight", i, stem);
}

static void gated(struct writer *w, int i, uint64_t width)
{
    matrix(w, i, "ffn_gate", width, D);
    matrix(w, i, "ffn_up", width, D);
    matrix(w, i, "ffn_down", D, width);
}

static void four_norms(struct writer *w, int i)
{
    static const char *const NAMES[] = {"attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"};
    for (int k = 0; k < 4; k++) vector(w, i, NAMES[k], D);
}

enum { DL = 32, A = 3, LA = 16 };

static void own_input(struct writer *w, int i)
{
    matrix(w, i, "inp_gate", DL, D);
    matrix(w, i, "proj", D, DL);
    vector(w, i, "post_norm", D);
}

static void test_gemma3n(void **state)
{
    struct writer *w = *state;
    begin(w, "gemma3n");
    put_shape(w);
    pair(w, "feed_forward_length", F);
    pair(w, "attention.sliding_window", 523);
    pair(w, "attention.shared_kv_layers", 1);
    pair(w, "embedding_length_per_layer_input", DL);
    pair(w, "altup.num_inputs", A);
    pair_list(w, "attention.sliding_window_pattern", META_U32, L, (const uint32_t[]){1, 0, 1});
    put_outside(w, true);
    tensor(w, "per_layer_token_embd.weight", Q8_0, 0, V + 7, L * DL);
    tensor(w, "per_layer_model_proj.weight", F16, 0, L * DL, D);
    tensor(w, "per_layer_proj_norm.weight", F32, 0, 0, DL);
    tensor(w, "altup_proj.weight", F16, A - 1, D, D);
    tensor(w, "altup_unembd_proj.weight", F16, A - 1, D, D);
    for (int i = 0; i < L; i++) {
        four_norms(w, i);
        put_attention(w, i, QK_NORM);
        gated(w, i, F);
        own_input(w, i);
        layer(w, F32, 0, A, A, "blk.%d.altup_correct_coef.weight", i);
        vector(w, i, "altup_correct_scale", D);
        layer(w, F32, 0, A * A, A, "blk.%d.altup_predict_coef.weight", i);
        layer(w, F32, 0, A, D, "blk.%d.altup_router.weight", i);
        vector(w, i, "altup_router_norm", D);
        matrix(w, i, "laurel_l", LA, D);
        matrix(w, i, "laurel_r", D, LA);
        vector(w, i, "laurel_post_norm", D);
    }
    const struct model m = explained(w, "gemma3n");
    assert_int_equal(m.laurel_rank, LA);
    assert_int_equal(m.per_layer_vocab, V + 7);
    assert_int_equal(m.streams, A);
    assert_true(m.kinds[m.kinds_n - 1].mixer.shares_kv);
}

/* Sliding layers of 6 x 64 with 2 KV heads, full ones of 6 x 96 with one and no values; the last two share caches, and
 * have twice the width. */
static void test_gemma4(void **state)
{
    enum { LAYERS = 5, WIDE = 96 };
    static const uint32_t SLIDES[LAYERS] = {1, 1, 0, 1, 0}, KV[LAYERS] = {2, 2, 1, 2, 1},
                          FF[LAYERS] = {F, F, F, 2 * F, 2 * F};
    struct writer *w = *state;
    begin(w, "gemma4");
    pair(w, "block_count", LAYERS);
    pair(w, "embedding_length", D);
    pair(w, "attention.head_count", N);
    pair(w, "context_length", 4099);
    pair(w, "attention.key_length", WIDE);
    pair(w, "attention.value_length", WIDE);
    pair(w, "attention.key_length_swa", H);
    pair(w, "attention.value_length_swa", H);
    pair(w, "attention.sliding_window", 523);
    pair(w, "attention.shared_kv_layers", 2);
    pair(w, "embedding_length_per_layer_input", DL);
    pair_list(w, "attention.sliding_window_pattern", META_U32, LAYERS, SLIDES);
    pair_list(w, "attention.head_count_kv", META_U32, LAYERS, KV);
    pair_list(w, "feed_forward_length", META_U32, LAYERS, FF);
    put_outside(w, true);
    tensor(w, "per_layer_token_embd.weight", Q8_0, 0, V, LAYERS * DL);
    tensor(w, "per_layer_model_proj.weight", F16, 0, LAYERS * DL, D);
    tensor(w, "per_layer_proj_norm.weight", F32, 0, 0, DL);
    for (int i = 0; i < LAYERS; i++) {
        const uint64_t wide = SLIDES[i] ? H : WIDE;
        four_norms(w, i);
        matrix(w, i, "attn_q", N * wide, D);
        vector(w, i, "attn_q_norm", wide);
        if (i < 3) matrix(w, i, "attn_k", KV[i] * wide, D);
        if (i < 3) vector(w, i, "attn_k_norm", wide);
        if (i < 2) matrix(w, i, "attn_v", KV[i] * wide, D);
        matrix(w, i, "attn_output", D, N * wide);
        gated(w, i, FF[i]);
        own_input(w, i);
        vector(w, i, "layer_output_scale", 1);
    }
    const struct model m = explained(w, "gemma4");
    double full = 0, windowed = 0;
    for (size_t k = 0; k < m.kinds_n; k++) {
        struct cost_kind_cache one;
        struct err e = {.code = ERR_OK};
        assert_int_equal(cost_kind_cache(w->arena, &m, &m.kinds[k], 1, &one, &e), ERR_OK);
        *(m.kinds[k].mixer.window_tokens ? &windowed : &full) += (double)m.kinds[k].count * one.token_bytes;
    }
    assert_true(full == 2.0 * 2 * WIDE && windowed == 2.0 * 2 * 2 * 2 * H); /* fp16 keys and values */
}

/* Experts beside an MLP, no sharing, one width of heads. */
static void test_gemma4_experts(void **state)
{
    static const uint32_t SLIDES[L] = {1, 1, 0};
    struct writer *w = *state;
    begin(w, "gemma4");
    put_shape(w);
    pair(w, "attention.key_length_swa", H);
    pair(w, "feed_forward_length", F);
    pair(w, "expert_count", E);
    pair(w, "expert_used_count", TOP);
    pair(w, "expert_feed_forward_length", FE);
    pair(w, "attention.sliding_window", 523);
    pair_list(w, "attention.sliding_window_pattern", META_U32, L, SLIDES);
    put_outside(w, true);
    for (int i = 0; i < L; i++) {
        four_norms(w, i);
        put_attention(w, i, QK_NORM);
        gated(w, i, F);
        put_experts(w, i, FE);
        layer(w, F32, 0, 0, D, "blk.%d.ffn_gate_inp.scale", i);
        layer(w, F32, 0, 0, E, "blk.%d.ffn_down_exps.scale", i);
        vector(w, i, "pre_ffw_norm_2", D);
        vector(w, i, "post_ffw_norm_1", D);
        vector(w, i, "post_ffw_norm_2", D);
        vector(w, i, "layer_output_scale", 1);
    }
    const struct model m = explained(w, "gemma4");
    assert_int_equal(m.kinds[0].ffn.experts, E);
}

/* A layer without attention, one without an MLP, and widths of their own. */
static void test_deci(void **state)
{
    static const uint32_t HEADS[L] = {N, 0, N}, KV[L] = {K, 0, 1}, FF[L] = {F, 2 * F, 0};
    struct writer *w = *state;
    begin(w, "deci");
    pair(w, "block_count", L);
    pair(w, "embedding_length", D);
    pair(w, "context_length", 4099);
    pair(w, "attention.key_length", D / N);
    pair_list(w, "attention.head_count", META_U32, L, HEADS);
    pair_list(w, "attention.head_count_kv", META_U32, L, KV);
    pair_list(w, "feed_forward_length", META_U32, L, FF);
    put_outside(w, false);
    for (int i = 0; i < L; i++) {
        if (HEADS[i]) {
            vector(w, i, "attn_norm", D);
            matrix(w, i, "attn_q", D, D);
            matrix(w, i, "attn_k", KV[i] * (D / N), D);
            matrix(w, i, "attn_v", KV[i] * (D / N), D);
            matrix(w, i, "attn_output", D, D);
        }
        if (!FF[i]) continue;
        vector(w, i, "ffn_norm", D);
        gated(w, i, FF[i]);
    }
    (void)explained(w, "nemotron-nas");
}

static void test_kimi_linear(void **state)
{
    enum { KDA = 32, C = 96, R = 32, NOPE = 64, VALUE = 64 };
    static const uint32_t KV[L] = {0, 0, 1};
    struct writer *w = *state;
    begin(w, "kimi-linear");
    pair(w, "block_count", L);
    pair(w, "embedding_length", D);
    pair(w, "context_length", 4099);
    pair(w, "attention.head_count", N);
    pair_list(w, "attention.head_count_kv", META_U32, L, KV);
    pair(w, "attention.kv_lora_rank", C);
    pair(w, "attention.key_length", C + R);
    pair(w, "attention.value_length", C);
    pair(w, "attention.key_length_mla", NOPE + R);
    pair(w, "attention.value_length_mla", VALUE);
    pair(w, "rope.dimension_count", R);
    pair(w, "kda.head_dim", KDA);
    pair(w, "ssm.conv_kernel", 4);
    pair(w, "feed_forward_length", F);
    pair(w, "expert_count", E);
    pair(w, "expert_used_count", TOP);
    pair(w, "expert_feed_forward_length", FE);
    pair(w, "expert_shared_count", 1);
    pair(w, "leading_dense_block_count", 1);
    put_outside(w, false);
    for (int i = 0; i < L; i++) {
        put_norms(w, i, 2);
        if (KV[i]) {
            matrix(w, i, "attn_q", N * (NOPE + R), D);
            matrix(w, i, "attn_kv_a_mqa", C + R, D);
            vector(w, i, "attn_kv_a_norm", C);
            layer(w, F16, N, C, NOPE, "blk.%d.attn_k_b.weight", i);
            layer(w, F16, N, VALUE, C, "blk.%d.attn_v_b.weight", i);
            matrix(w, i, "attn_output", D, N * VALUE);
        } else {
            static const char *const PARTS[] = {"q", "k", "v"};
            for (int k = 0; k < 3; k++) {
                layer(w, F16, 0, N * KDA, D, "blk.%d.attn_%s.weight", i, PARTS[k]);
                layer(w, F32, 0, N * KDA, 4, "blk.%d.ssm_conv1d_%s.weight", i, PARTS[k]);
            }
            matrix(w, i, "ssm_f_a", KDA, D);
            matrix(w, i, "ssm_f_b", N * KDA, KDA);
            matrix(w, i, "ssm_g_a", KDA, D);
            matrix(w, i, "ssm_g_b", N * KDA, KDA);
            matrix(w, i, "ssm_beta", N, D);
            layer(w, F32, 0, 0, N, "blk.%d.ssm_a", i);
            layer(w, F32, 0, 0, N * KDA, "blk.%d.ssm_dt.bias", i);
            vector(w, i, "ssm_norm", KDA);
            matrix(w, i, "attn_output", D, N * KDA);
        }
        if (i == 0) {
            gated(w, i, F);
            continue;
        }
        put_experts(w, i, FE);
        layer(w, F32, 0, 0, E, "blk.%d.exp_probs_b.bias", i);
        matrix(w, i, "ffn_gate_shexp", FE, D);
        matrix(w, i, "ffn_up_shexp", FE, D);
        matrix(w, i, "ffn_down_shexp", D, FE);
    }
    const struct model m = explained(w, "kimi_linear");
    assert_int_equal(m.kinds[0].mixer.kind, MIXER_RECURRENT);
    assert_int_equal(m.kinds[m.kinds_n - 1].mixer.kind, MIXER_LATENT);
}

/* Latent attention whose values are as wide as the model allows. */
static void test_minicpm3(void **state)
{
    enum { Q = 96, C = 64, R = 32, NOPE = 64, VALUE = D / N };
    struct writer *w = *state;
    begin(w, "minicpm3");
    pair(w, "block_count", L);
    pair(w, "embedding_length", D);
    pair(w, "context_length", 4099);
    pair(w, "attention.head_count", N);
    pair(w, "attention.head_count_kv", N);
    pair(w, "attention.q_lora_rank", Q);
    pair(w, "attention.kv_lora_rank", C);
    pair(w, "attention.key_length", NOPE + R);
    pair(w, "rope.dimension_count", R);
    pair(w, "feed_forward_length", F);
    put_outside(w, true);
    for (int i = 0; i < L; i++) {
        put_norms(w, i, 2);
        matrix(w, i, "attn_q_a", Q, D);
        vector(w, i, "attn_q_a_norm", Q);
        matrix(w, i, "attn_q_b", N * (NOPE + R), Q);
        matrix(w, i, "attn_kv_a_mqa", C + R, D);
        vector(w, i, "attn_kv_a_norm", C);
        matrix(w, i, "attn_kv_b", N * (NOPE + VALUE), C);
        matrix(w, i, "attn_output", D, N * VALUE);
        gated(w, i, F);
    }
    (void)explained(w, "minicpm3");
}

static void test_llada(void **state)
{
    struct writer *w = *state;
    begin(w, "llada");
    put_shape(w);
    pair(w, "feed_forward_length", F);
    put_outside(w, false);
    for (int i = 0; i < L; i++) {
        put_norms(w, i, 2);
        put_attention(w, i, 0);
        gated(w, i, F);
    }
    assert_true(explained(w, "llada").diffusion);
}

/* The two numbers of each nonlinearity are metadata, no tensors. */
static void test_apertus(void **state)
{
    static const struct cost_conventions PLAIN = {0};
    struct cost_parameters p;
    struct err e = {.code = ERR_OK};
    struct writer *w = *state;
    begin(w, "apertus");
    put_shape(w);
    pair(w, "feed_forward_length", F);
    put_outside(w, false);
    for (int i = 0; i < L; i++) {
        put_norms(w, i, 2);
        put_attention(w, i, QK_NORM);
        matrix(w, i, "ffn_up", F, D);
        matrix(w, i, "ffn_down", D, F);
    }
    finish(w);
    const struct model m = loaded(w, "m.gguf");
    assert_string_equal(m.family, "apertus");
    assert_int_equal(cost_parameters(w->arena, &m, &PLAIN, &p, &e), ERR_OK);
    assert_true(p.total == (double)w->elems + 2 * L);
}

static void test_falcon_h1(void **state)
{
    enum { INNER_ = 96, STATE_ = 32, SCANS_ = 3, TAPS_ = 4 };
    const uint64_t mixed = INNER_ + 2 * STATE_;
    struct writer *w = *state;
    begin(w, "falcon-h1");
    put_shape(w);
    pair(w, "feed_forward_length", F);
    pair(w, "ssm.inner_size", INNER_);
    pair(w, "ssm.state_size", STATE_);
    pair(w, "ssm.conv_kernel", TAPS_);
    pair(w, "ssm.time_step_rank", SCANS_);
    pair(w, "ssm.group_count", 1);
    put_outside(w, false);
    for (int i = 0; i < L; i++) {
        put_norms(w, i, 2);
        put_attention(w, i, 0);
        matrix(w, i, "ssm_in", INNER_ + mixed + SCANS_, D);
        layer(w, F32, 0, mixed, TAPS_, "blk.%d.ssm_conv1d.weight", i);
        layer(w, F32, 0, 0, mixed, "blk.%d.ssm_conv1d.bias", i);
        layer(w, F32, 0, 0, SCANS_, "blk.%d.ssm_dt.bias", i);
        layer(w, F32, 0, 0, SCANS_, "blk.%d.ssm_a", i);
        layer(w, F32, 0, 0, SCANS_, "blk.%d.ssm_d", i);
        matrix(w, i, "ssm_out", D, INNER_);
        gated(w, i, F);
    }
    (void)explained(w, "falcon_h1");
}

/* DeepSeek-V4: a window alone, entries of 4 tokens with an indexer, and of 128; the first layer's experts are looked
 * up. Metadata count a module of multi-token prediction that the file has not. */
static void test_deepseek4(void **state)
{
    enum { Q = 96, H4 = 64, R = 32, PARTS_ = 2, LOW = 32, NI = 2, HI = 32, STREAMS = 4, MIX = (2 + STREAMS) * STREAMS };
    static const uint32_t RATIOS[L + 1] = {0, 4, 128, 0};
    struct writer *w = *state;
    begin(w, "deepseek4");
    pair(w, "block_count", L);
    pair(w, "embedding_length", D);
    pair(w, "context_length", 4099);
    pair(w, "nextn_predict_layers", 1);
    pair(w, "attention.head_count", N);
    pair(w, "attention.head_count_kv", 1);
    pair(w, "attention.q_lora_rank", Q);
    pair(w, "attention.key_length", H4);
    pair(w, "rope.dimension_count", R);
    pair(w, "attention.sliding_window", 128);
    pair(w, "attention.output_group_count", PARTS_);
    pair(w, "attention.output_lora_rank", LOW);
    pair(w, "attention.indexer.head_count", NI);
    pair(w, "attention.indexer.key_length", HI);
    pair(w, "attention.indexer.top_k", 7);
    pair(w, "hyper_connection.count", STREAMS);
    pair(w, "hyper_connection.sinkhorn_iterations", 5);
    pair(w, "hash_layer_count", 1);
    pair_list(w, "attention.compress_ratios", META_U32, L + 1, RATIOS);
    pair(w, "expert_count", E);
    pair(w, "expert_used_count", TOP);
    pair(w, "expert_feed_forward_length", FE);
    pair(w, "expert_shared_count", 1);
    put_outside(w, false);
    tensor(w, "output_hc_fn.weight", F32, 0, STREAMS, STREAMS * D);
    tensor(w, "output_hc_base.weight", F32, 0, 0, STREAMS);
    tensor(w, "output_hc_scale.weight", F32, 0, 0, 1);
    for (int i = 0; i < L; i++) {
        static const char *const BLOCK[] = {"attn", "ffn"};
        const uint64_t wide = RATIOS[i] == 4 ? 2 * H4 : H4;
        put_norms(w, i, 2);
        vector(w, i, "attn_sinks", N);
        matrix(w, i, "attn_q_a", Q, D);
        vector(w, i, "attn_q_a_norm", Q);
        matrix(w, i, "attn_q_b", N * H4, Q);
        matrix(w, i, "attn_kv", H4, D);
        vector(w, i, "attn_kv_a_norm", H4);
        matrix(w, i, "attn_output_a", PARTS_ * LOW, N * H4 / PARTS_);
        matrix(w, i, "attn_output_b", D, PARTS_ * LOW);
        for (int k = 0; k < 2; k++) {
            layer(w, F32, 0, MIX, STREAMS * D, "blk.%d.hc_%s_fn.weight", i, BLOCK[k]);
            layer(w, F32, 0, 0, MIX, "blk.%d.hc_%s_base.weight", i, BLOCK[k]);
            layer(w, F32, 0, 0, 3, "blk.%d.hc_%s_scale.weight", i, BLOCK[k]);
        }
        if (RATIOS[i] > 0) {
            layer(w, F32, 0, wide, D, "blk.%d.attn_compressor_kv.weight", i);
            layer(w, F32, 0, wide, D, "blk.%d.attn_compressor_gate.weight", i);
            layer(w, F32, 0, RATIOS[i], wide, "blk.%d.attn_compressor_ape.weight", i);
            vector(w, i, "attn_compressor_norm", H4);
        }
        if (RATIOS[i] == 4) {
            layer(w, F32, 0, NI, D, "blk.%d.indexer.proj.weight", i);
            matrix(w, i, "indexer.attn_q_b", NI * HI, Q);
            layer(w, F32, 0, 2 * HI, D, "blk.%d.indexer_compressor_kv.weight", i);
            layer(w, F32, 0, 2 * HI, D, "blk.%d.indexer_compressor_gate.weight", i);
            layer(w, F32, 0, 4, 2 * HI, "blk.%d.indexer_compressor_ape.weight", i);
            vector(w, i, "indexer_compressor_norm", HI);
        }
        put_experts(w, i, FE);
        if (i > 0) layer(w, F32, 0, 0, E, "blk.%d.exp_probs_b.bias", i);
        matrix(w, i, "ffn_gate_shexp", FE, D);
        matrix(w, i, "ffn_up_shexp", FE, D);
        matrix(w, i, "ffn_down_shexp", D, FE);
    }
    const struct model m = explained(w, "deepseek_v4");
    assert_int_equal(m.kinds_n, 3);
    assert_int_equal(m.kinds[1].mixer.top_keys, 7 * 4);
    assert_int_equal(m.kinds[2].mixer.pool_tokens, 128);
}

#define RUN(test) cmocka_unit_test_setup_teardown(test, open_writer, close_writer)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(test_gemma3n),     RUN(test_gemma4),   RUN(test_gemma4_experts), RUN(test_deci),      RUN(test_llada),
        RUN(test_kimi_linear), RUN(test_minicpm3), RUN(test_apertus),        RUN(test_falcon_h1), RUN(test_deepseek4)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
