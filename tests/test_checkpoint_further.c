/* Checkpoints as models: GGUF files of further architectures that attend, by what their blocks have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/checkpoint_writer.h"

static void put_matrix(struct writer *w, int i, const char *stem, uint64_t rows, uint64_t cols, bool biased)
{
    layer(w, F16, 0, rows, cols, "blk.%d.%s.weight", i, stem);
    if (biased) layer(w, F32, 0, 0, rows, "blk.%d.%s.bias", i, stem);
}

static void put_block(struct writer *w, int i, unsigned has, int norms)
{
    static const char *const NORMS[] = {"attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm"};
    const uint64_t kv = (has & ONE_KV) ? H : (has & ALL_KV) ? N * H : K * H, f = (has & HALF_MLP) ? F / 2 : F;
    const bool all = has & ALL_BIASES, qkv = all || (has & QKV_BIASES), mlp = all || (has & MLP_BIASES);
    for (int k = 0; k < norms && !(has & NORMLESS); k++)
        put_vectors(w, i, k == 1 && (has & NORM_2) ? "attn_norm_2" : NORMS[k], D, has & NORM_BIAS);
    if (has & GATES) put_matrix(w, i, "attn_gate", N * H, D, false);
    if (has & QKV_FUSED) {
        put_matrix(w, i, "attn_qkv", N * H + 2 * kv, D, qkv);
    } else {
        put_matrix(w, i, "attn_q", N * H, D, qkv);
        put_matrix(w, i, "attn_k", kv, D, qkv);
        put_matrix(w, i, "attn_v", kv, D, qkv);
    }
    put_matrix(w, i, "attn_output", D, N * H, all);
    if (has & (HEAD_NORMS | WIDE_NORMS)) {
        layer(w, F32, 0, 0, (has & WIDE_NORMS) ? N * H : H, "blk.%d.attn_q_norm.weight", i);
        layer(w, F32, 0, 0, (has & WIDE_NORMS) ? kv : H, "blk.%d.attn_k_norm.weight", i);
    }
    if (has & SUB_NORMS) {
        layer(w, F32, 0, 0, D, "blk.%d.attn_sub_norm.weight", i);
        layer(w, F32, 0, 0, F, "blk.%d.ffn_sub_norm.weight", i);
    }
    if (has & NO_MLP) return;
    if (!(has & (NO_GATE | UP_FUSED))) put_matrix(w, i, "ffn_gate", f, D, mlp);
    put_matrix(w, i, "ffn_up", (has & UP_FUSED) ? 2 * f : f, D, mlp);
    put_matrix(w, i, "ffn_down", D, f, mlp);
}

static void test_further_dense(void **state)
{
    struct writer *w = *state;
    static const struct {
        const char *arch, *family;
        unsigned has;
        int norms;
        int window;
    } ROWS[] = {
        {"xverse", "llama", 0, 2, 0},
        {"qwen", "qwen", QKV_FUSED | QKV_BIASES | HALF_MLP | ALL_KV, 2, 0},
        {"qwen2vl", "qwen2_vl", QKV_BIASES, 2, 0},
        {"qwen3vl", "qwen3_vl", HEAD_NORMS, 2, 0},
        {"dream", "dream", QKV_BIASES, 2, 0},
        {"baichuan", "baichuan", ALL_KV, 2, 0},
        {"internlm2", "internlm2", 0, 2, 0},
        {"minicpm", "minicpm", TIED, 2, 0},
        {"chatglm", "chatglm", QKV_FUSED | QKV_BIASES | UP_FUSED, 2, 0},
        {"glm4", "glm4", UP_FUSED, 4, 0},
        {"glm4", "glm4", UP_FUSED | QKV_BIASES, 4, 0},
        {"granite", "granite", TIED, 2, 0},
        {"olmo2", "olmo2", WIDE_NORMS | ALL_KV, 2, 0},
        {"olmo2", "olmo3", WIDE_NORMS, 2, 523},
        {"exaone", "exaone", 0, 2, 0},
        {"exaone4", "exaone4", HEAD_NORMS, 2, 0},
        {"exaone4", "exaone4", HEAD_NORMS, 2, 523},
        {"smollm3", "smollm3", TIED, 2, 0},
        {"seed_oss", "seed_oss", QKV_BIASES, 2, 0},
        {"ernie4_5", "ernie4_5", TIED, 2, 0},
        {"paddleocr", "ernie4_5", 0, 2, 0},
        {"hunyuan-dense", "hunyuan_v1_dense", HEAD_NORMS, 2, 0},
        {"arcee", "arcee", NO_GATE, 2, 0},
        {"bitnet", "bitnet", SUB_NORMS | TIED, 2, 0},
        {"olmo", "olmo", NORMLESS | ALL_KV, 2, 0},
        {"command-r", "cohere", TIED, 1, 0},
        {"cohere2", "cohere2", TIED, 1, 523},
        {"orion", "orion", NORM_BIAS, 2, 0},
        {"nemotron", "nemotron", NORM_BIAS | NO_GATE, 2, 0},
        {"starcoder", "gpt_bigcode", NORM_BIAS | QKV_FUSED | ALL_BIASES | NO_GATE | ONE_KV | PLACES, 2, 0},
        {"starcoder2", "starcoder2", NORM_BIAS | ALL_BIASES | NO_GATE, 2, 0},
        {"stablelm", "stablelm", NORM_BIAS | QKV_BIASES, 2, 0},
        {"phi2", "phi", NORM_BIAS | QKV_FUSED | ALL_BIASES | NO_GATE | HEAD_BIAS, 1, 0},
        {"gptneox", "gpt_neox", NORM_BIAS | QKV_FUSED | ALL_BIASES | NO_GATE | ALL_KV, 2, 0},
        {"gptj", "gptj", NORM_BIAS | MLP_BIASES | NO_GATE | ALL_KV | HEAD_BIAS, 1, 0},
        {"bloom", "bloom", NORM_BIAS | QKV_FUSED | ALL_BIASES | NO_GATE | ALL_KV | FIRST_NORM | TIED, 2, 0},
        {"falcon", "falcon", NORM_BIAS | QKV_FUSED | NO_GATE | ONE_KV, 1, 0},
        {"falcon", "falcon", NORM_BIAS | QKV_FUSED | NO_GATE | NORM_2, 2, 0},
        {"jais", "jais", NORM_BIAS | QKV_FUSED | ALL_BIASES | ALL_KV | TIED, 2, 0},
        {"jais2", "jais2", NORM_BIAS | ALL_BIASES | NO_GATE, 2, 0},
    };
    for (size_t r = 0; r < sizeof ROWS / sizeof ROWS[0]; r++) {
        const unsigned has = ROWS[r].has;
        begin(w, ROWS[r].arch);
        w->own_kv = true;
        put_shape(w);
        w->own_kv = false;
        pair(w, "attention.head_count_kv", (has & ONE_KV) ? 1 : (has & ALL_KV) ? N : K);
        pair(w, "feed_forward_length", F);
        if (ROWS[r].window) pair(w, "attention.sliding_window", (uint32_t)ROWS[r].window);
        tensor(w, "token_embd.weight", Q8_0, 0, V, D);
        if (has & PLACES) tensor(w, "position_embd.weight", F32, 0, 4099, D);
        if (has & FIRST_NORM) tensor(w, "token_embd_norm.weight", F32, 0, 0, D);
        if (has & FIRST_NORM) tensor(w, "token_embd_norm.bias", F32, 0, 0, D);
        if (!(has & TIED)) tensor(w, "output.weight", Q8_0, 0, V, D);
        if (has & HEAD_BIAS) tensor(w, "output.bias", F32, 0, 0, V);
        if (!(has & NORMLESS)) tensor(w, "output_norm.weight", F32, 0, 0, D);
        if (has & NORM_BIAS) tensor(w, "output_norm.bias", F32, 0, 0, D);
        for (int i = 0; i < L; i++) put_block(w, i, has, ROWS[r].norms);
        const struct model m = explained(w, ROWS[r].family);
        const struct mixer *x = &m.kinds[0].mixer;
        assert_int_equal(x->kv_heads, (has & ONE_KV) ? 1 : (has & ALL_KV) ? N : K);
        assert_int_equal(x->head_dim, H);
        assert_int_equal(x->window_tokens, ROWS[r].window);
        assert_int_equal(m.tied, (has & TIED) != 0);
    }
}

static void test_further_experts(void **state)
{
    struct writer *w = *state;
    enum { SAME_WIDTH = 1, CORRECTED = 2, ROUTER_BIAS = 4, BESIDE = 8, WIDE_SHARED = 16 };
    static const struct {
        const char *arch, *family;
        unsigned has;
        int norms, dense, shared; /* layers in front; experts of a token, all of them */
        unsigned experts;
        int window;
    } ROWS[] = {
        {"olmoe", "olmoe", WIDE_NORMS, 2, 0, 0, SAME_WIDTH, 0},
        {"granitemoe", "granitemoeshared", TIED, 2, 0, 0, SAME_WIDTH, 0},
        {"granitemoe", "granitemoeshared", TIED, 2, 0, 0, SAME_WIDTH | WIDE_SHARED, 0},
        {"qwen3vlmoe", "qwen3_vl_moe", HEAD_NORMS, 2, 0, 0, 0, 0},
        {"glm4moe", "glm4_moe", QKV_BIASES, 2, 1, 1, CORRECTED, 0},
        {"glm4moe", "glm4_moe", QKV_BIASES | HEAD_NORMS, 2, 2, 1, CORRECTED, 0},
        {"dots1", "dots1", HEAD_NORMS, 2, 1, 2, CORRECTED, 0},
        {"bailingmoe", "bailing_moe", 0, 2, 0, 2, 0, 0},
        {"bailingmoe2", "bailing_moe", HEAD_NORMS, 2, 1, 1, CORRECTED, 0},
        {"ernie4_5-moe", "ernie4_5_moe", TIED, 2, 1, 2, CORRECTED, 0},
        {"hunyuan-moe", "hunyuan", HEAD_NORMS, 2, 0, 1, SAME_WIDTH, 0},
        {"phimoe", "phimoe", NORM_BIAS | QKV_BIASES | ALL_BIASES | HEAD_BIAS | NO_MLP, 2, 0, 0, SAME_WIDTH, 0},
        {"dbrx", "dbrx", QKV_FUSED, 2, 0, 0, SAME_WIDTH, 0},
        {"afmoe", "afmoe", HEAD_NORMS | GATES, 4, 1, 2, CORRECTED, 523},
        {"exaone-moe", "exaone_moe", HEAD_NORMS, 2, 1, 1, CORRECTED, 523},
        {"hy_v3", "hy_v3", HEAD_NORMS, 2, 1, 1, CORRECTED, 0},
        {"mellum", "mellum", HEAD_NORMS, 2, 0, 0, 0, 0},
        {"arctic", "arctic", 0, 3, 0, 0, SAME_WIDTH | BESIDE, 0},
        {"llama4", "llama4", 0, 2, 0, 1, 0, 0},
    };
    for (size_t r = 0; r < sizeof ROWS / sizeof ROWS[0]; r++) {
        const unsigned has = ROWS[r].has, experts = ROWS[r].experts;
        const uint64_t width = (experts & SAME_WIDTH) ? F : FE;
        begin(w, ROWS[r].arch);
        put_shape(w);
        pair(w, "feed_forward_length", F);
        pair(w, "expert_count", E);
        pair(w, "expert_used_count", TOP);
        if (!(experts & SAME_WIDTH)) pair(w, "expert_feed_forward_length", FE);
        if (ROWS[r].shared && !(experts & SAME_WIDTH)) pair(w, "expert_shared_count", (uint32_t)ROWS[r].shared);
        if (experts & WIDE_SHARED) pair(w, "expert_shared_feed_forward_length", FE);
        if (ROWS[r].dense) pair(w, "leading_dense_block_count", (uint32_t)ROWS[r].dense);
        if (ROWS[r].window) pair(w, "attention.sliding_window", (uint32_t)ROWS[r].window);
        put_outside(w, has & TIED);
        if (has & NORM_BIAS) tensor(w, "output_norm.bias", F32, 0, 0, D);
        if (has & HEAD_BIAS) tensor(w, "output.bias", F32, 0, 0, V);
        for (int i = 0; i < L; i++) {
            const bool dense = i < ROWS[r].dense;
            const uint64_t beside = (experts & WIDE_SHARED) ? FE : (uint64_t)ROWS[r].shared * width;
            put_block(w, i, dense ? has : has | NO_MLP, ROWS[r].norms);
            if (dense) continue;
            put_experts(w, i, width);
            if (experts & CORRECTED) layer(w, F32, 0, 0, E, "blk.%d.exp_probs_b.bias", i);
            if (beside) {
                put_matrix(w, i, "ffn_gate_shexp", beside, D, false);
                put_matrix(w, i, "ffn_up_shexp", beside, D, false);
                put_matrix(w, i, "ffn_down_shexp", D, beside, false);
            }
            if (experts & BESIDE) {
                put_matrix(w, i, "ffn_gate", D, D, false);
                put_matrix(w, i, "ffn_up", D, D, false);
                put_matrix(w, i, "ffn_down", D, D, false);
            }
        }
        const struct model m = explained(w, ROWS[r].family);
        assert_int_equal(m.kinds[m.kinds_n - 1].ffn.experts_per_token, TOP);
        assert_int_equal(m.kinds[0].mixer.kv_heads, K);
        if (ROWS[r].window) assert_int_equal(m.kinds[0].mixer.window_tokens, ROWS[r].window);
    }
}

#define RUN(test) cmocka_unit_test_setup_teardown(test, open_writer, close_writer)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(test_further_dense),
        RUN(test_further_experts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
