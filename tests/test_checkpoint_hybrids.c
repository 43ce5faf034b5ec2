/* Checkpoints as models: GGUF files of recurrent mixers and of hybrids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/checkpoint_writer.h"

static void put_mamba2(struct writer *w, int i)
{
    const uint64_t mixed = INNER + 2 * GROUPS * STATE;
    layer(w, Q4_0, 0, INNER + mixed + SCANS, D, "blk.%d.ssm_in.weight", i);
    layer(w, F32, 0, mixed, TAPS, "blk.%d.ssm_conv1d.weight", i);
    layer(w, F32, 0, 0, mixed, "blk.%d.ssm_conv1d.bias", i);
    layer(w, F32, 0, 0, SCANS, "blk.%d.ssm_dt.bias", i);
    layer(w, F32, 0, 0, SCANS, "blk.%d.ssm_a", i);
    layer(w, F32, 0, 0, SCANS, "blk.%d.ssm_d", i);
    layer(w, F32, 0, 0, INNER, "blk.%d.ssm_norm.weight", i);
    layer(w, Q8_0, 0, D, INNER, "blk.%d.ssm_out.weight", i);
}

static void put_delta(struct writer *w, int i, bool apart)
{
    const uint64_t keys = GROUPS * STATE; /* values: SCANS heads */
    layer(w, Q4_0, 0, 2 * keys + INNER, D, "blk.%d.attn_qkv.weight", i);
    layer(w, Q8_0, 0, INNER, D, "blk.%d.attn_gate.weight", i);
    if (!apart) layer(w, Q8_0, 0, 2 * SCANS, D, "blk.%d.ssm_ba.weight", i);
    if (apart) layer(w, Q8_0, 0, SCANS, D, "blk.%d.ssm_alpha.weight", i);
    if (apart) layer(w, Q8_0, 0, SCANS, D, "blk.%d.ssm_beta.weight", i);
    layer(w, F32, 0, 2 * keys + INNER, TAPS, "blk.%d.ssm_conv1d.weight", i);
    layer(w, F32, 0, 0, SCANS, "blk.%d.ssm_dt.bias", i);
    layer(w, F32, 0, 0, SCANS, "blk.%d.ssm_a", i);
    layer(w, F32, 0, 0, INNER / SCANS, "blk.%d.ssm_norm.weight", i);
    layer(w, Q8_0, 0, D, INNER, "blk.%d.ssm_out.weight", i);
}

static void put_short(struct writer *w, int i)
{
    layer(w, Q4_0, 0, 3 * D, D, "blk.%d.shortconv.in_proj.weight", i);
    layer(w, F32, 0, D, 3, "blk.%d.shortconv.conv.weight", i);
    layer(w, Q8_0, 0, D, D, "blk.%d.shortconv.out_proj.weight", i);
}

static void put_shared(struct writer *w, int i, uint64_t width)
{
    layer(w, Q4_0, 0, width, D, "blk.%d.ffn_gate_shexp.weight", i);
    layer(w, Q4_0, 0, width, D, "blk.%d.ffn_up_shexp.weight", i);
    layer(w, Q8_0, 0, D, width, "blk.%d.ffn_down_shexp.weight", i);
}

static void test_gguf_of_scans(void **state)
{
    struct writer *w = *state;
    put_hybrid(w, "mamba", NULL);
    put_ssm(w, RANK, false);
    pair(w, "feed_forward_length", 0);
    put_outside(w, true);
    for (int i = 0; i < BLOCKS; i++) {
        put_norms(w, i, 1);
        put_mamba(w, i, false);
    }
    struct model m = explained(w, "mamba");
    assert_int_equal(m.kinds_n, 1);
    assert_int_equal(m.kinds[0].mixer.head_dim, STATE);
    checkpoint_put_text(&w->pairs, "mamba.ssm.dt_b_c_rms");
    checkpoint_put(&w->pairs, 4, 7);
    checkpoint_put(&w->pairs, 1, 1);
    w->pairs_n++;
    (void)explained(w, "falcon_mamba");
    put_hybrid(w, "mamba2", NULL);
    put_ssm(w, SCANS, true);
    pair(w, "feed_forward_length", 0);
    put_outside(w, false);
    for (int i = 0; i < BLOCKS; i++) {
        put_norms(w, i, 1);
        put_mamba2(w, i);
    }
    m = explained(w, "mamba2");
    assert_int_equal(m.kinds[0].mixer.kv_heads, GROUPS);
    assert_int_equal(m.kinds[0].mixer.v_head_dim, INNER / SCANS);
}

/* Which block is what follows from its tensors; metadata that list KV heads have 0 for those that do not attend. */
static void test_gguf_of_hybrids(void **state)
{
    struct writer *w = *state;
    static const uint32_t KV[BLOCKS] = {0, K, 0, 0}, FF[BLOCKS] = {0, 0, F, 0};
    put_hybrid(w, "jamba", KV);
    put_ssm(w, RANK, false);
    pair(w, "feed_forward_length", F);
    pair(w, "expert_count", E);
    pair(w, "expert_used_count", TOP);
    put_outside(w, false);
    for (int i = 0; i < BLOCKS; i++) {
        put_norms(w, i, 2);
        if (KV[i])
            put_attention(w, i, 0);
        else
            put_mamba(w, i, true);
        if (i % 2)
            put_experts(w, i, F);
        else
            put_mlp(w, i, false);
    }
    struct model m = explained(w, "jamba");
    assert_int_equal(m.kinds_n, 3);

    put_hybrid(w, "nemotron_h", KV);
    put_ssm(w, SCANS, true);
    pair_list(w, "feed_forward_length", META_I32, BLOCKS, FF);
    put_outside(w, false);
    for (int i = 0; i < BLOCKS; i++) {
        put_norms(w, i, 1);
        if (KV[i]) {
            put_attention(w, i, 0);
        } else if (FF[i]) {
            layer(w, Q4_0, 0, F, D, "blk.%d.ffn_up.weight", i);
            layer(w, Q8_0, 0, D, F, "blk.%d.ffn_down.weight", i);
        } else {
            put_mamba2(w, i);
        }
    }
    m = explained(w, "nemotron_h");
    assert_int_equal(m.kinds_n, 3);

    put_hybrid(w, "granitehybrid", KV);
    put_ssm(w, SCANS, true);
    pair(w, "feed_forward_length", FE);
    pair(w, "expert_count", E);
    pair(w, "expert_used_count", TOP);
    pair(w, "expert_shared_feed_forward_length", F);
    put_outside(w, true);
    for (int i = 0; i < BLOCKS; i++) {
        put_norms(w, i, 2);
        if (KV[i])
            put_attention(w, i, 0);
        else
            put_mamba2(w, i);
        put_experts(w, i, FE);
        put_shared(w, i, F);
    }
    (void)explained(w, "granitemoehybrid");

    put_hybrid(w, "lfm2", KV);
    pair(w, "shortconv.l_cache", 3);
    pair(w, "feed_forward_length", F);
    put_outside(w, true);
    for (int i = 0; i < BLOCKS; i++) {
        put_norms(w, i, 2);
        if (KV[i]) {
            put_attention(w, i, QK_NORM);
        } else {
            put_short(w, i);
        }
        put_mlp(w, i, false);
    }
    m = explained(w, "lfm2");
    assert_int_equal(m.kinds_n, 2);
}

/* The same with experts. */
static void test_gguf_of_hybrids_with_experts(void **state)
{
    struct writer *w = *state;
    static const uint32_t KV[BLOCKS] = {0, K, 0, 0};
    put_hybrid(w, "lfm2moe", KV);
    pair(w, "shortconv.l_cache", 3);
    pair(w, "feed_forward_length", F);
    pair(w, "leading_dense_block_count", 1);
    pair(w, "expert_count", E);
    pair(w, "expert_used_count", TOP);
    pair(w, "expert_feed_forward_length", FE);
    put_outside(w, true);
    for (int i = 0; i < BLOCKS; i++) {
        put_norms(w, i, 2);
        if (KV[i])
            put_attention(w, i, QK_NORM);
        else
            put_short(w, i);
        if (i == 0) {
            put_mlp(w, i, false);
            continue;
        }
        put_experts(w, i, FE);
        layer(w, F32, 0, 0, E, "blk.%d.exp_probs_b.bias", i);
    }
    const struct model m = explained(w, "lfm2_moe");
    assert_int_equal(m.kinds_n, 3);

    put_hybrid(w, "nemotron_h_moe", KV);
    put_ssm(w, SCANS, true);
    pair(w, "expert_count", E);
    pair(w, "expert_used_count", TOP);
    pair(w, "expert_feed_forward_length", FE);
    pair(w, "expert_shared_feed_forward_length", F);
    put_outside(w, false);
    for (int i = 0; i < BLOCKS; i++) {
        put_norms(w, i, 1);
        if (KV[i]) {
            put_attention(w, i, 0);
        } else if (i == 2) {
            layer(w, F32, 0, E, D, "blk.%d.ffn_gate_inp.weight", i);
            layer(w, F32, 0, 0, E, "blk.%d.exp_probs_b.bias", i);
            layer(w, Q4_0, E, FE, D, "blk.%d.ffn_up_exps.weight", i);
            layer(w, Q8_0, E, D, FE, "blk.%d.ffn_down_exps.weight", i);
            layer(w, Q4_0, 0, F, D, "blk.%d.ffn_up_shexp.weight", i);
            layer(w, Q8_0, 0, D, F, "blk.%d.ffn_down_shexp.weight", i);
        } else {
            put_mamba2(w, i);
        }
    }
    (void)explained(w, "nemotron_h");
}

static void test_gguf_of_delta_and_minimax(void **state)
{
    struct writer *w = *state;
    static const uint32_t KV[BLOCKS] = {K, K, K, K};
    for (int form = 0; form < 3; form++) {
        static const char *const NAMES[] = {"qwen3next", "qwen35moe", "qwen35"};
        static const char *const FAMILIES[] = {"qwen3_next", "qwen3_5_moe", "qwen3_5"};
        put_hybrid(w, NAMES[form], KV);
        put_ssm(w, SCANS, true);
        pair(w, "feed_forward_length", F);
        if (form < 2) {
            pair(w, "expert_count", E);
            pair(w, "expert_used_count", TOP);
            pair(w, "expert_feed_forward_length", FE);
            pair(w, "expert_shared_feed_forward_length", F);
        }
        put_outside(w, false);
        for (int i = 0; i < BLOCKS; i++) {
            put_norms(w, i, 2);
            if (i == 3) {
                layer(w, Q4_0, 0, 2 * N * H, D, "blk.%d.attn_q.weight", i);
                layer(w, Q4_0, 0, K * H, D, "blk.%d.attn_k.weight", i);
                layer(w, Q4_0, 0, K * H, D, "blk.%d.attn_v.weight", i);
                layer(w, Q4_0, 0, D, N * H, "blk.%d.attn_output.weight", i);
                layer(w, F32, 0, 0, H, "blk.%d.attn_q_norm.weight", i);
                layer(w, F32, 0, 0, H, "blk.%d.attn_k_norm.weight", i);
            } else {
                put_delta(w, i, form > 0);
            }
            if (form == 2) {
                put_mlp(w, i, false);
                continue;
            }
            put_experts(w, i, FE);
            put_shared(w, i, F);
            layer(w, F32, 0, 0, D, "blk.%d.ffn_gate_inp_shexp.weight", i);
        }
        (void)explained(w, FAMILIES[form]);
    }

    begin(w, "minimax-m2");
    put_shape(w);
    pair(w, "expert_count", E);
    pair(w, "expert_used_count", TOP);
    pair(w, "expert_feed_forward_length", FE);
    pair(w, "feed_forward_length", FE);
    put_outside(w, false);
    for (int i = 0; i < L; i++) {
        put_norms(w, i, 2);
        put_attention(w, i, 0);
        layer(w, F32, 0, 0, N * H, "blk.%d.attn_q_norm.weight", i);
        layer(w, F32, 0, 0, K * H, "blk.%d.attn_k_norm.weight", i);
        put_experts(w, i, FE);
        layer(w, F32, 0, 0, E, "blk.%d.exp_probs_b.bias", i);
    }
    (void)explained(w, "minimax_m2");
}

#define RUN(test) cmocka_unit_test_setup_teardown(test, open_writer, close_writer)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(test_gguf_of_scans),
        RUN(test_gguf_of_hybrids),
        RUN(test_gguf_of_hybrids_with_experts),
        RUN(test_gguf_of_delta_and_minimax),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
