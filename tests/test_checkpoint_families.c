/* Checkpoints as models: GGUF files of further families. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/checkpoint_writer.h"

/* Grok: four norms, experts; with an MLP beside them it is Grok 2. */
static void put_grok(struct writer *w, bool beside)
{
    begin(w, "grok");
    put_shape(w);
    pair(w, "expert_count", E);
    pair(w, "expert_used_count", TOP);
    pair(w, "feed_forward_length", beside ? F : FE);
    if (beside) pair(w, "expert_feed_forward_length", FE);
    put_outside(w, !beside);
    for (int i = 0; i < L; i++) {
        put_norms(w, i, 4);
        put_attention(w, i, 0);
        put_experts(w, i, FE);
        if (beside) put_mlp(w, i, false);
    }
}

static void test_grok(void **state)
{
    struct writer *w = *state;
    put_grok(w, false);
    struct model m = explained(w, "grok-1");
    assert_int_equal(m.kinds[0].ffn.width, FE);
    put_grok(w, true);
    m = explained(w, "grok-2");
    assert_int_equal(m.kinds[0].ffn.width, FE);
    assert_int_equal(m.kinds[0].ffn.shared_width, F);
}

/* A dense layer, then experts; one norm of a layer; a list of the layers that slide. */
static void test_cohere(void **state)
{
    struct writer *w = *state;
    static const uint32_t SLIDES[L] = {0, 1, 1};
    begin(w, "cohere2moe");
    put_shape(w);
    pair(w, "expert_count", E);
    pair(w, "expert_used_count", TOP);
    pair(w, "feed_forward_length", F);
    pair(w, "expert_feed_forward_length", FE);
    pair(w, "leading_dense_block_count", 1);
    pair(w, "attention.sliding_window", 7);
    pair_list(w, "attention.sliding_window_pattern", META_I32, L, SLIDES);
    put_outside(w, true);
    for (int i = 0; i < L; i++) {
        put_norms(w, i, 1);
        put_attention(w, i, 0);
        if (i == 0)
            put_mlp(w, i, false);
        else
            put_experts(w, i, FE);
    }
    const struct model m = explained(w, "cohere2_moe");
    assert_int_equal(m.kinds[m.order[0].kind].ffn.width, F);
    assert_int_equal(m.kinds[m.order[0].kind].mixer.window_tokens, 0);
    assert_int_equal(m.kinds[m.order[1].kind].mixer.window_tokens, 7);
    assert_int_equal(m.kinds[m.order[1].kind].ffn.width, FE);
}

/* Biases of attention are told by the tensors; four norms and norms of heads; one norm for two blocks side by side. */
static void test_dense(void **state)
{
    struct writer *w = *state;
    begin(w, "pangu-embedded");
    put_shape(w);
    pair(w, "feed_forward_length", F);
    put_outside(w, false);
    for (int i = 0; i < L; i++) {
        put_norms(w, i, 2);
        put_attention(w, i, BIAS | O_BIAS);
        put_mlp(w, i, false);
    }
    (void)explained(w, "pangu_embedded");
    begin(w, "plamo3");
    put_shape(w);
    pair(w, "feed_forward_length", F);
    pair(w, "attention.sliding_window", 7);
    pair(w, "attention.sliding_window_pattern", 3);
    put_outside(w, true);
    for (int i = 0; i < L; i++) {
        put_norms(w, i, 4);
        put_attention(w, i, QK_NORM);
        put_mlp(w, i, false);
    }
    const struct model m = explained(w, "plamo3");
    assert_int_equal(m.kinds[m.order[1].kind].mixer.window_tokens, 7);
    assert_int_equal(m.kinds[m.order[2].kind].mixer.window_tokens, 0);
}

/* PLaMo-2: the middle one of every two layers attends, the others have a scan of a latent of 64. */
static void test_plamo2(void **state)
{
    enum { LATENT = 64, HEADS = 3, WIDE = 64 };
    struct writer *w = *state;
    static const uint32_t HEAD_COUNT[L] = {0, N, 0}, KV[L] = {0, K, 0};
    begin(w, "plamo2");
    pair(w, "block_count", L);
    pair(w, "embedding_length", D);
    pair_list(w, "attention.head_count", META_I32, L, HEAD_COUNT);
    pair_list(w, "attention.head_count_kv", META_I32, L, KV);
    pair(w, "attention.key_length", H);
    pair(w, "attention.value_length", H);
    pair(w, "feed_forward_length", F);
    pair(w, "ssm.conv_kernel", 4);
    pair(w, "ssm.inner_size", HEADS * WIDE);
    pair(w, "ssm.state_size", 16);
    pair(w, "ssm.time_step_rank", HEADS);
    pair(w, "ssm.group_count", 0);
    put_outside(w, true);
    for (int i = 0; i < L; i++) {
        put_norms(w, i, 4);
        put_mlp(w, i, true);
        if (KV[i]) {
            put_attention(w, i, FUSED);
            layer(w, F32, 0, N, H, "blk.%d.attn_q_norm.weight", i);
            layer(w, F32, 0, K, H, "blk.%d.attn_k_norm.weight", i);
            continue;
        }
        layer(w, Q4_0, 0, 2 * HEADS * WIDE, D, "blk.%d.ssm_in.weight", i);
        layer(w, F32, 0, HEADS * WIDE, 4, "blk.%d.ssm_conv1d.weight", i);
        layer(w, Q4_0, 0, LATENT + 2 * 16, HEADS * WIDE, "blk.%d.ssm_x.weight", i);
        layer(w, Q4_0, 0, HEADS, LATENT, "blk.%d.ssm_dt.weight", i);
        layer(w, F32, 0, 0, HEADS, "blk.%d.ssm_dt.bias", i);
        layer(w, F32, 0, 0, HEADS, "blk.%d.ssm_a", i);
        layer(w, F32, 0, 0, HEADS, "blk.%d.ssm_d", i);
        layer(w, F32, 0, 0, LATENT, "blk.%d.ssm_dt_norm.weight", i);
        layer(w, F32, 0, 0, 16, "blk.%d.ssm_b_norm.weight", i);
        layer(w, F32, 0, 0, 16, "blk.%d.ssm_c_norm.weight", i);
        layer(w, Q8_0, 0, D, HEADS * WIDE, "blk.%d.ssm_out.weight", i);
    }
    const struct model m = explained(w, "plamo2");
    assert_int_equal(m.kinds[m.order[1].kind].mixer.kv_heads, K);
    assert_int_equal(m.kinds[m.order[0].kind].mixer.v_head_dim, WIDE);
}

/* RWKV: sizes of metadata; time mixing has matrices of no names that other layers have. */
static void test_rwkv(void **state)
{
    static const struct cost_conventions PLAIN = {0};
    struct writer *w = *state;
    for (int v = 6; v <= 7; v++) {
        struct cost_parameters p;
        struct err e = {0};
        begin(w, v == 6 ? "rwkv6" : "rwkv7");
        pair(w, "block_count", L);
        pair(w, "embedding_length", D);
        pair(w, "attention.head_count", 0);
        pair(w, "feed_forward_length", F);
        pair(w, "wkv.head_size", 32);
        pair(w, v == 6 ? "time_mix_extra_dim" : "attention.iclr_lora_rank", 11);
        pair(w, v == 6 ? "time_decay_extra_dim" : "attention.decay_lora_rank", 13);
        pair(w, "attention.value_residual_mix_lora_rank", 17);
        pair(w, "attention.gate_lora_rank", 19);
        put_outside(w, false);
        for (int i = 0; i < L; i++) put_norms(w, i, 2);
        finish(w);
        const struct model m = loaded(w, "m.gguf");
        const struct mixer *x = &m.kinds[0].mixer;
        assert_string_equal(m.family, v == 6 ? "rwkv6" : "rwkv7");
        assert_int_equal(x->heads, D / 32);
        assert_int_equal(x->head_dim, 32);
        assert_int_equal(x->v_head_dim, 32);
        assert_int_equal(x->recurrence.rank, 13);
        assert_int_equal(v == 6 ? x->recurrence.mix_rank : x->recurrence.rate_rank, 11);
        assert_int_equal(m.kinds[0].ffn.width, F);
        assert_int_equal(cost_parameters(w->arena, &m, &PLAIN, &p, &e), ERR_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_grok), cmocka_unit_test(test_cohere),
                                       cmocka_unit_test(test_dense), cmocka_unit_test(test_plamo2),
                                       cmocka_unit_test(test_rwkv)};
    return cmocka_run_group_tests_name("checkpoint_families", tests, open_writer, close_writer);
}
