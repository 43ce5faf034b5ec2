/* Rules that other calculators get wrong, each named after the mistake; the expected number of experts against all
 * draws; and the identities and numbers of a course (Stanford CS336, spring 2025, lecture 10) that the conventions must
 * reproduce. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calc/cost/cost.h"
#include "calc/model/model.h"
#include "calc/model/stored.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

struct fixture {
    struct arena *a;
    struct sym_ctx *c;
    struct cost_symbols y;
};

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f) return -1;
    f->a = arena_open();
    f->c = sym_open(f->a);
    f->y = cost_symbols_make(f->c);
    *state = f;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    arena_close(f->a);
    free(f);
    return 0;
}

/* ---- asking the model ---- */

static struct model builtin(struct fixture *f, const char *name)
{
    struct model m;
    struct err e = {0};
    if (model_load(f->a, name, NULL, 0, &m, &e) != ERR_OK) fail_msg("%s", e.text);
    return m;
}

static struct model parsed(struct fixture *f, const char *text)
{
    struct json j;
    struct model m = {0};
    struct err e = {0};
    if (json_parse(f->a, "config.json", text, strlen(text), &j, &e) != ERR_OK ||
        model_parse(f->a, &j, &m, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return m;
}

enum phase { PREFILL, CHUNK, DECODE };

static struct cost_ops build(struct fixture *f, const struct model *m, enum phase phase, struct cost_conventions v)
{
    struct cost_ops ops;
    struct err e = {0};
    const struct sym *T = phase == PREFILL ? f->y.S : phase == CHUNK ? f->y.T : sym_int(f->c, 1);
    const struct cost_pass pass = {.name = "test", .B = f->y.B, .S = f->y.S, .T = T, .absorbed = phase == DECODE};
    if (cost_build(f->a, f->c, &f->y, m, &v, &pass, 1, &ops, &e) != ERR_OK) fail_msg("%s", e.text);
    return ops;
}

static struct cost_ops bound(struct fixture *f, const struct model *m, enum phase phase, struct cost_conventions v)
{
    struct cost_ops ops = build(f, m, phase, v);
    struct err e = {0};
    if (cost_bind(f->c, &f->y, m, 1, &ops, &e) != ERR_OK) fail_msg("%s", e.text);
    return ops;
}

static const struct cost_conventions PLAIN = {0};
static const struct cost_conventions COURSE = {.causal_full = true,
                                               .embed_full_table = true,
                                               .mlp_fused = true,
                                               .norms_uncounted = true,
                                               .activations_uncounted = true};

static const struct cost_op *op_named(const struct cost_ops *ops, const char *name)
{
    for (size_t i = 0; i < ops->n; i++)
        if (strcmp(ops->op[i].name, name) == 0) return &ops->op[i];
    fail_msg("no operator %s", name);
    return NULL;
}

/* The number that x is with B, S and T bound; exact where x is rational. */
static double at(struct fixture *f, const struct sym *x, int64_t B, int64_t T, int64_t S)
{
    const struct sym_binding env[] = {
        {f->y.B, sym_int(f->c, B)}, {f->y.T, sym_int(f->c, T)}, {f->y.S, sym_int(f->c, S)}};
    double v;
    assert_true(sym_constant(sym_bind(f->c, x, env, COUNT(env)), &v));
    return v;
}

static double sum(struct fixture *f, const struct cost_ops *ops, size_t field, int64_t B, int64_t T, int64_t S)
{
    double total = 0;
    for (size_t i = 0; i < ops->n; i++) {
        const struct cost_op *o = &ops->op[i];
        const struct sym *const of[] = {o->flops, o->weight_bytes, o->kv_bytes, o->kv_needed_bytes};
        total += (double)o->count * at(f, of[field], B, T, S);
    }
    return total;
}

enum { FLOPS, WEIGHT_BYTES, KV_BYTES, KV_NEEDED_BYTES };

/* Cached bytes per token of all layers. */
static double kv_per_token(struct fixture *f, const struct model *m)
{
    struct cost_cache cache;
    struct err e = {0};
    assert_int_equal(cost_cache(f->c, &f->y, m, 1, &cache, &e), ERR_OK);
    return cache.bytes_per_token_full + cache.bytes_per_token_windowed;
}

/* ---- experts ---- */

static struct cost_ops moe(struct fixture *f, int E, int k)
{
    const char *text = arena_printf(f->a,
                                    "{\"model_type\":\"mixtral\",\"hidden_size\":2,\"num_hidden_layers\":1,"
                                    "\"num_attention_heads\":1,\"num_key_value_heads\":1,\"intermediate_size\":3,"
                                    "\"vocab_size\":5,\"num_local_experts\":%d,\"num_experts_per_tok\":%d}",
                                    E, k);
    const struct model m = parsed(f, text);
    return bound(f, &m, DECODE, PLAIN);
}

/* Experts whose weights B tokens read: down is 2 x 3 in bf16. */
static double experts_read(struct fixture *f, const struct cost_ops *ops, int64_t B)
{
    return at(f, op_named(ops, "experts_down")->weight_bytes, B, 1, 1) / (2 * 3 * 2);
}

/* Not E(1-(1-1/E)^k): 1.875 of 2, 3.8 of 4, 7.8 of 8. */
static void test_one_token_reads_k_experts(void **state)
{
    struct fixture *f = *state;
    static const int CASES[][2] = {{8, 2}, {32, 4}, {128, 4}, {128, 8}, {256, 8}, {7, 3}, {5, 5}, {3, 1}, {61, 7}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const struct cost_ops ops = moe(f, CASES[i][0], CASES[i][1]);
        assert_true(experts_read(f, &ops, 1) == CASES[i][1]);
    }
}

static int bits(unsigned x)
{
    int n = 0;
    for (; x; x &= x - 1) n++;
    return n;
}

/* Distinct experts summed over all ways in which n tokens choose k of E each; *ways counts them. */
static double all_draws(unsigned E, int k, int n, unsigned chosen, double *ways)
{
    double total = 0;
    if (n == 0) {
        ++*ways;
        return bits(chosen);
    }
    for (unsigned draw = 0; draw < 1u << E; draw++)
        if (bits(draw) == k) total += all_draws(E, k, n - 1, chosen | draw, ways);
    return total;
}

static void test_experts_of_few_tokens_by_all_draws(void **state)
{
    struct fixture *f = *state;
    for (unsigned E = 2; E <= 6; E++)
        for (int k = 1; k <= (int)E; k++) {
            const struct cost_ops ops = moe(f, (int)E, k);
            for (int n = 1; n <= 3; n++) {
                double ways = 0;
                const double total = all_draws(E, k, n, 0, &ways), got = experts_read(f, &ops, n);
                if (fabs(got - total / ways) > 1e-15 * got)
                    fail_msg("E=%u k=%d n=%d: %.17g experts, all draws give %.17g", E, k, n, got, total / ways);
            }
        }
}

/* Reading k experts whatever the batch makes a step of 64 three times too fast. Mixtral 8x7B: 46.7e9 weights, of which
 * the input embedding is not read whole. */
static void test_a_batch_reads_nearly_all_experts(void **state)
{
    struct fixture *f = *state;
    const struct model m = builtin(f, "mixtral-8x7b");
    const struct cost_ops ops = bound(f, &m, DECODE, PLAIN);
    assert_true(sum(f, &ops, WEIGHT_BYTES, 64, 1, 1024) > 27.79e-3 * 3.35e12);
    assert_true(sum(f, &ops, WEIGHT_BYTES, 1, 1, 1024) < 2.0 * 12.9e9);
}

/* Flops of all products but attention: 2 a token and active weight, the input embedding and norms apart. */
static void test_products_are_two_flops_per_active_weight(void **state)
{
    struct fixture *f = *state;
    static const char *const NAMES[] = {"llama-2-13b", "mixtral-8x7b", "mistral-nemo-12b"};
    for (size_t i = 0; i < COUNT(NAMES); i++) {
        const struct model m = builtin(f, NAMES[i]);
        struct cost_ops ops = bound(f, &m, DECODE, PLAIN);
        struct cost_parameters count;
        struct err e = {0};
        assert_int_equal(cost_parameters(f->a, &m, &COURSE, &count, &e), ERR_OK);
        double attention = 0;
        for (size_t k = 0; k < ops.n; k++)
            if (ops.op[k].kind == OP_ATTENTION) attention += (double)ops.op[k].count * at(f, ops.op[k].flops, 3, 1, 7);
        assert_true(sum(f, &ops, FLOPS, 3, 1, 7) - attention == 3 * 2 * (count.active - count.embedding));
    }
}

/* ---- attention and its cache ---- */

/* The mean over queries of min(context, W), not min(mean, W): 3072 (and a quarter, a token sees itself), not 4096. */
static void test_windowed_prefill_is_mean_of_min(void **state)
{
    struct fixture *f = *state;
    const struct model m = builtin(f, "mistral-7b-v0.1");
    const struct cost_ops ops = bound(f, &m, PREFILL, PLAIN);
    const double pairs = at(f, op_named(&ops, "attention")->flops, 1, 8192, 8192) / (4.0 * 32 * 128);
    assert_true(pairs / 8192 == 3072.25);
    assert_true(pairs == 4096.0 * 8192 - 4096.0 * 4095 / 2);
}

/* A window bounds its own layers only, and below it nothing is saved. */
static void test_window_does_not_cut_full_layers(void **state)
{
    struct fixture *f = *state;
    const struct model m = builtin(f, "gemma-2-2b"); /* 13 of 26 layers slide over 4096; 4 KV heads of 256 */
    struct cost_cache cache;
    struct err e = {0};
    assert_int_equal(cost_cache(f->c, &f->y, &m, 1, &cache, &e), ERR_OK);
    const double layer = 2 * 4 * 256 * 2;
    assert_true(at(f, cache.bytes_per_sequence, 1, 1, 8192) == 13 * layer * (4096 + 8192));
    assert_true(at(f, cache.bytes_per_sequence, 1, 1, 4096) == 26 * layer * 4096);
    assert_true(at(f, cache.bytes_per_sequence, 1, 1, 4095) == 26 * layer * 4095);
    assert_true(cache.bytes_per_token_full == 13 * layer && cache.bytes_per_token_windowed == 13 * layer);
}

/* 7B: S 4096 is 2 GiB of cache, not 1. */
static void test_cache_holds_keys_and_values(void **state)
{
    struct fixture *f = *state;
    const struct model m = builtin(f, "llama-2-7b");
    assert_true(kv_per_token(f, &m) * 4096 == 2147483648.0);
}

/* Llama 2 70B, B 64, S 1024: 21.47 GB with 8 KV heads; 171.8 GB would be with 64. Read once: no flash, latency or block
 * factor makes it more. */
static void test_cache_is_read_once_and_by_kv_heads(void **state)
{
    struct fixture *f = *state;
    const struct model m = builtin(f, "llama-2-70b");
    const struct cost_ops ops = bound(f, &m, DECODE, PLAIN);
    double reads = 0;
    for (size_t i = 0; i < ops.n; i++)
        if (ops.op[i].kind != OP_KV_WRITE) reads += (double)ops.op[i].count * at(f, ops.op[i].kv_bytes, 64, 1, 1024);
    assert_true(reads == 21474836480.0);
    assert_true(sum(f, &ops, KV_BYTES, 64, 1, 1024) == reads + 64 * 2.0 * 80 * 8 * 128 * 2);
    assert_true(sum(f, &ops, KV_NEEDED_BYTES, 64, 1, 1024) == reads);
    const double scores = at(f, op_named(&ops, "attention")->flops, 64, 1, 1024);
    assert_true(scores == 4.0 * 64 * 64 * 128 * 1024); /* all 64 query heads compute */
}

/* What a chunk needs of the cache: old tokens read and new ones written. An old latent is not charged again as an
 * activation. */
static void test_expanded_latents_are_read_once(void **state)
{
    struct fixture *f = *state;
    const struct model m = builtin(f, "deepseek-v3");
    const struct cost_ops ops = bound(f, &m, CHUNK, PLAIN);
    const struct cost_op *expand = op_named(&ops, "kv_b_proj"), *core = op_named(&ops, "attention");
    const double T = 100, S = 1000, wide = 128 * 256;
    assert_true(at(f, expand->kv_bytes, 1, 100, 1000) == (S - T) * 576 * 2);
    assert_true(at(f, expand->activation_bytes, 1, 100, 1000) == 2 * (T * 512 + S * wide));
    assert_true(at(f, core->kv_bytes, 1, 100, 1000) == 0);
    assert_true(at(f, core->activation_bytes, 1, 100, 1000) == 2 * (T * 128 * 320 + S * wide + T * 64));
    assert_true(sum(f, &ops, KV_NEEDED_BYTES, 1, 100, 1000) == S * 70272);
}

/* 512 + 64 values a token and layer, not 128 heads of them, and not 512 alone. */
static void test_latent_cache_has_no_heads(void **state)
{
    struct fixture *f = *state;
    struct model m = builtin(f, "deepseek-v3");
    assert_true(kv_per_token(f, &m) == 70272);
    m = builtin(f, "deepseek-v2-lite");
    assert_true(kv_per_token(f, &m) == 31104);
}

/* Per pair: 2*128*(576+512) absorbed, 2*128*(192+128) expanded; expanding costs 2*512*128*256 a key. */
static void test_latent_attention_flops(void **state)
{
    struct fixture *f = *state;
    const struct model m = builtin(f, "deepseek-v3");
    const struct cost_ops decode = bound(f, &m, DECODE, PLAIN), chunk = bound(f, &m, CHUNK, PLAIN);
    assert_true(at(f, op_named(&decode, "attention")->flops, 3, 1, 1009) == 3 * 1009 * 278528.0);
    assert_true(at(f, op_named(&decode, "q_absorb")->flops, 3, 1, 1009) == 3 * 2.0 * 128 * 128 * 512);
    assert_true(at(f, op_named(&decode, "v_absorb")->flops, 3, 1, 1009) == 3 * 2.0 * 128 * 128 * 512);
    assert_true(at(f, op_named(&chunk, "attention")->flops, 3, 1, 1009) == 3 * 1009 * 81920.0);
    assert_true(at(f, op_named(&chunk, "kv_b_proj")->flops, 3, 1, 1009) == 3 * 1009 * 33554432.0);
}

/* Head width from the file: Mistral Nemo has 128, hidden/heads is 160. */
static void test_head_width_is_not_hidden_over_heads(void **state)
{
    struct fixture *f = *state;
    const struct model m = builtin(f, "mistral-nemo-12b");
    const struct cost_ops ops = bound(f, &m, DECODE, PLAIN);
    assert_true(kv_per_token(f, &m) == 163840);
    assert_true(at(f, op_named(&ops, "o_proj")->flops, 1, 1, 1) == 2.0 * 32 * 128 * 5120);
}

/* ---- products and their storage ---- */

static void test_lm_head_is_two_flops_per_weight(void **state)
{
    struct fixture *f = *state;
    const struct model m = builtin(f, "llama-2-7b");
    struct cost_ops ops = bound(f, &m, DECODE, PLAIN);
    assert_true(at(f, op_named(&ops, "lm_head")->flops, 3, 1, 5) == 3 * 2.0 * 4096 * 32000);
    assert_true(at(f, op_named(&ops, "lm_head")->weight_bytes, 3, 1, 5) == 4096.0 * 32000 * 2);
    ops = bound(f, &m, PREFILL, PLAIN); /* of the last position alone, unless asked for all */
    assert_true(at(f, op_named(&ops, "lm_head")->flops, 3, 5, 5) == 3 * 2.0 * 4096 * 32000);
    ops = bound(f, &m, PREFILL, (struct cost_conventions){.head_all = true});
    assert_true(at(f, op_named(&ops, "lm_head")->flops, 3, 5, 5) == 15 * 2.0 * 4096 * 32000);
}

static double all_stored(struct fixture *f, const struct cost_ops *ops)
{
    double v;
    assert_true(sym_constant(cost_weight_bytes(f->c, ops, &PLAIN), &v));
    return v;
}

/* 4 bits and 20 of scale and zero in 128: 4.15625; mxfp4 4.25, nvfp4 4.5. */
static void test_four_bits_include_their_scales(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *name;
        double bits_of_weight, bytes_of_matrix; /* of 7 matrices a layer */
    } CASES[] = {{"int4-g128", 4.15625, 0},
                 {"int4-g64", 4.3125, 0},
                 {"int3-g128", 3.1484375, 0},
                 {"mxfp4", 4.25, 0},
                 {"nvfp4", 4.5, 4},
                 {"nf4", 4.5, 64},
                 {"nf4-double", 4.126953125, 1088},
                 {"mxfp8", 8.25, 0},
                 {"fp8", 8, 0},
                 {"fp8-block128", 8.001953125, 0}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct model m = builtin(f, "llama-2-7b");
        struct err e = {0};
        assert_int_equal(stored_set_all(&m, CASES[i].name, &e), ERR_OK);
        const struct cost_ops ops = bound(f, &m, DECODE, PLAIN);
        const double rest = 2.0 * (2.0 * 32000 * 4096 + 65 * 4096),
                     linear = 32.0 * (4 * 4096.0 * 4096 + 3 * 4096.0 * 11008);
        assert_true(all_stored(f, &ops) ==
                    rest + linear * CASES[i].bits_of_weight / 8 + 32 * 7 * CASES[i].bytes_of_matrix);
    }
}

/* Memory is what is stored, however the kernels are cut. */
static void test_fusion_does_not_change_memory(void **state)
{
    struct fixture *f = *state;
    static const char *const FORMATS[] = {"int8", "fp8-row", "int4-g128", "fp8-block128", "nvfp4"};
    for (size_t i = 0; i < COUNT(FORMATS); i++) {
        struct model m = builtin(f, "qwen2-0.5b"); /* widths 896 and 4864 */
        struct err e = {0};
        assert_int_equal(stored_set_all(&m, FORMATS[i], &e), ERR_OK);
        const struct cost_ops cut = bound(f, &m, DECODE, PLAIN);
        const struct cost_ops fused = bound(f, &m, DECODE, (struct cost_conventions){.mlp_fused = true});
        assert_true(all_stored(f, &cut) == all_stored(f, &fused));
    }
}

/* One matrix makes queries, keys and values of a linear-attention layer, another their gate: blocks of 128 rows run
 * through the first, a query, a key and 3 values of 88 make 440 rows in 4 blocks,
 * not 1 + 1 + 3. */
static void test_blocks_run_through_a_joined_matrix(void **state)
{
    struct fixture *f = *state;
    struct model m = builtin(f, "qwen3-coder-next");
    struct err e = {0};
    assert_int_equal(stored_set_all(&m, "fp8-block128", &e), ERR_OK);
    struct layer_kind kind[8];
    assert_true(m.kinds_n <= COUNT(kind) && m.hidden == 2048);
    size_t at_kind = 0;
    for (size_t i = 0; i < m.kinds_n; i++) {
        kind[i] = m.kinds[i];
        if (kind[i].mixer.kind != MIXER_RECURRENT) continue;
        kind[i].mixer.kv_heads = 1;
        kind[i].mixer.heads = 3;
        kind[i].mixer.head_dim = kind[i].mixer.v_head_dim = 88;
        kind[i].mixer.recurrence.norm = OUTPUT_PLAIN;
        at_kind = i;
    }
    m.kinds = kind;
    const struct cost_ops ops = bound(f, &m, DECODE, PLAIN);
    for (size_t i = 0; i < ops.n; i++) {
        const struct cost_op *op = &ops.op[i];
        if (op->kind_index != (int)at_kind || strcmp(op->name, "qkv_proj") != 0) continue;
        assert_true(at(f, op->tensor[0].bytes, 1, 1, 1) == 2048.0 * (440 + 264) + 4 * 16 * (4 + 3));
        /* of an output that is gated alone: a sigmoid of 4 flops, and the product */
        assert_true(at(f, op_named(&ops, "output_gate")->vector_flops, 7, 1, 97) == 7 * 5 * 264);
        return;
    }
    fail_msg("no matrix of queries, keys and values");
}

/* The published checkpoint of DeepSeek-V3 has 684531386000 elements, of which 41540496 are scales (the same checkpoint
 * is listed as 684489845504 without them): those of 61 layers and of the multi-token layer, which has experts. */
static void test_scales_of_a_published_checkpoint(void **state)
{
    struct fixture *f = *state;
    const struct model m = builtin(f, "deepseek-v3");
    const struct cost_ops ops = bound(f, &m, DECODE, PLAIN);
    double scales = 0;
    for (size_t i = 0; i < ops.n; i++)
        for (size_t k = 0; k < ops.op[i].tensors_n; k++) {
            const struct cost_tensor *x = &ops.op[i].tensor[k];
            const bool with_experts = ops.op[i].kind_index == 1;
            if (m.weights[x->class].bits != 8) continue;
            const double of_layer = (at(f, x->bytes, 1, 1, 1) - at(f, x->elems, 1, 1, 1)) / 4;
            scales += of_layer * (double)(ops.op[i].count + (with_experts ? 1 : 0));
        }
    assert_true(scales == 684531386000.0 - 684489845504.0);
}

/* ---- sizes, and one of them free ---- */

/* The size of the first letter in a kind of layer; -1: there is none. */
static double size_of(struct fixture *f, const struct model *m, int kind, int64_t ranks, const struct sym *var)
{
    struct err e = {0};
    const struct sym *out;
    double v = -1;
    assert_int_equal(cost_size(f->c, &f->y, m, kind, ranks, var, &out, &e), ERR_OK);
    assert_true(!out || sym_constant(out, &v));
    return v;
}

static void test_sizes_of_a_part(void **state)
{
    struct fixture *f = *state;
    const struct cost_symbols *y = &f->y;
    const struct model dense = builtin(f, "llama-3.1-8b"), latent = builtin(f, "deepseek-v3"),
                       hybrid = builtin(f, "nemotron-nano-9b-v2");
    assert_true(size_of(f, &dense, 0, 1, y->N) == 32 && size_of(f, &dense, 0, 4, y->N) == 8);
    assert_true(size_of(f, &dense, 0, 1, y->K) == 8 && size_of(f, &dense, 0, 16, y->K) == 1);
    assert_true(size_of(f, &dense, 0, 1, y->F) == 14336 && size_of(f, &dense, 0, 1, y->b_kv) == 2);
    assert_true(size_of(f, &latent, 0, 1, y->F) == 18432 && size_of(f, &latent, 1, 1, y->F) == 2048);
    assert_true(size_of(f, &latent, 1, 1, y->Fs) == 2048 && size_of(f, &latent, 1, 8, y->Fs) == 256);
    assert_true(size_of(f, &latent, 0, 1, y->N) == 128 && size_of(f, &latent, 1, 1, y->E) == 256);
    const struct sym *const none[] = {y->Fs, y->E, y->C, y->b_index, y->Ra, y->B, y->S, y->r};
    for (size_t i = 0; i < COUNT(none); i++) assert_true(size_of(f, &dense, 0, 1, none[i]) < 0);
    assert_true(size_of(f, &latent, 0, 1, y->K) < 0 && size_of(f, &latent, 0, 1, y->Fs) < 0);
    assert_true(size_of(f, &latent, -1, 1, y->N) < 0 && size_of(f, &latent, -1, 1, y->b_kv) < 0);
    bool bare = false; /* layers of an MLP alone */
    for (size_t i = 0; i < hybrid.kinds_n; i++) {
        if (hybrid.kinds[i].mixer.kind != MIXER_NONE) continue;
        bare = true;
        assert_true(size_of(f, &hybrid, (int)i, 1, y->N) < 0 && size_of(f, &hybrid, (int)i, 1, y->K) < 0);
    }
    assert_true(bare);
    /* adapters of the MLP, else of attention */
    struct model adapted = dense;
    struct layer_kind kind = dense.kinds[0];
    adapted.kinds = &kind;
    kind.mixer.adapter_rank = 48;
    assert_true(size_of(f, &adapted, 0, 1, y->Ra) == 48);
    kind.mixer.v_head_dim = 96;
    const struct cost_ops ops = bound(f, &adapted, DECODE, PLAIN);
    const double sides = 4096 + 8 * (128 + 96); /* queries; keys and values of 8 heads */
    assert_true(at(f, op_named(&ops, "qkv_adapter_up")->flops, 7, 1, 97) == 2 * 7 * 48 * sides);
    assert_true(at(f, op_named(&ops, "qkv_adapter_up")->weight_bytes, 7, 1, 97) == 2 * 48 * sides);
    assert_true(at(f, op_named(&ops, "qkv_adapter_add")->activation_bytes, 7, 1, 97) == 3 * 2 * 7 * sides);
    kind.ffn.adapter_rank = 80;
    assert_true(size_of(f, &adapted, 0, 1, y->Ra) == 80);
}

/* Sums over the operators of the layers of one kind (-1: all) with a symbol bound. */
static double with_size(struct fixture *f, const struct cost_ops *ops, int kind, const struct sym *var, int64_t value,
                        size_t field)
{
    const struct sym_binding env[] = {{f->y.B, sym_int(f->c, 7)},
                                      {f->y.S, sym_int(f->c, 1009)},
                                      {f->y.r, sym_int(f->c, 2)},
                                      {var, sym_int(f->c, value)}};
    double total = 0, v;
    for (size_t i = 0; i < ops->n; i++) {
        const struct cost_op *o = &ops->op[i];
        const struct sym *const of[] = {o->flops, o->weight_bytes, o->kv_bytes, o->activation_bytes};
        if (kind >= 0 && o->kind_index != kind) continue;
        assert_true(sym_constant(sym_bind(f->c, of[field], env, COUNT(env)), &v));
        total += (double)o->count * v;
    }
    return total;
}

static struct cost_ops freed(struct fixture *f, const struct model *m, int64_t ranks, const struct sym *var, int kind)
{
    struct cost_ops ops;
    struct err e = {0};
    const struct cost_pass pass = {.name = "test", .B = f->y.B, .S = f->y.S, .T = sym_int(f->c, 1), .absorbed = true};
    const struct cost_binding how = {.free = var, .free_kind = kind};
    if (cost_build(f->a, f->c, &f->y, m, &PLAIN, &pass, ranks, &ops, &e) != ERR_OK) fail_msg("%s", e.text);
    if (cost_bind_as(f->c, &f->y, m, ranks, &how, &ops, &e) != ERR_OK) fail_msg("%s", e.text);
    return ops;
}

static void same_numbers(struct fixture *f, const struct cost_ops *x, const struct cost_ops *y, int kind,
                         const struct sym *var, int64_t value)
{
    for (size_t field = 0; field < 4; field++) {
        const double a = with_size(f, x, kind, var, value, field), b = with_size(f, y, kind, var, value, field);
        if (!(fabs(a - b) <= 1e-13 * b)) fail_msg("sum %zu: %.17g, want %.17g", field, a, b);
    }
}

/* A free size at the model's own number is the model; at another, a model that has it. */
static void test_a_free_size_is_of_the_whole_model(void **state)
{
    struct fixture *f = *state;
    const struct cost_symbols *y = &f->y;
    const struct {
        const char *model;
        int64_t ranks;
        const struct sym *var;
        int64_t own;
    } CASES[] = {{"llama-3.1-8b", 1, y->K, 8},     {"llama-3.1-8b", 2, y->K, 8},   {"llama-3.1-8b", 16, y->K, 8},
                 {"llama-3.1-8b", 4, y->F, 14336}, {"llama-3.1-8b", 4, y->N, 32},  {"llama-3.1-8b", 2, y->D, 4096},
                 {"llama-3.1-8b", 2, y->C, 0},     {"llama-3.1-8b", 2, y->H, 128}, {"deepseek-v3", 4, y->C, 512},
                 {"deepseek-v3", 8, y->N, 128},    {"deepseek-v3", 2, y->E, 256},  {"llama-3.1-8b", 1, y->E, 0},
                 {"llama-3.1-8b", 4, y->V, 128256}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const struct model m = builtin(f, CASES[i].model);
        const struct cost_ops free = freed(f, &m, CASES[i].ranks, CASES[i].var, -1),
                              own = freed(f, &m, CASES[i].ranks, NULL, -1);
        same_numbers(f, &free, &own, -1, CASES[i].var, CASES[i].own);
    }
    const struct model dense = builtin(f, "llama-3.1-8b"), latent = builtin(f, "deepseek-v3");
    struct model other = dense;
    struct layer_kind kind = dense.kinds[0];
    other.kinds = &kind;
    struct cost_ops free = freed(f, &dense, 2, y->K, -1), want;
    kind.mixer.kv_heads = 4;
    want = freed(f, &other, 2, NULL, -1);
    same_numbers(f, &free, &want, -1, y->K, 4);
    /* of a model on one rank, K is K, though no model has none */
    free = freed(f, &dense, 1, y->K, -1);
    assert_true(with_size(f, &free, -1, y->K, 0, 2) == 0);
    free = freed(f, &dense, 2, y->K, -1);
    assert_true(with_size(f, &free, -1, y->K, 0, 2) == with_size(f, &free, -1, y->K, 2, 2));
    /* values as wide as keys follow them, others do not */
    kind = dense.kinds[0];
    kind.mixer.head_dim = kind.mixer.v_head_dim = 64;
    free = freed(f, &dense, 1, y->H, -1);
    want = freed(f, &other, 1, NULL, -1);
    same_numbers(f, &free, &want, -1, y->H, 64);
    kind.mixer.head_dim = 128;
    free = freed(f, &other, 1, y->H, -1);
    kind.mixer.head_dim = 96;
    want = freed(f, &other, 1, NULL, -1);
    same_numbers(f, &free, &want, -1, y->H, 96);
    /* in one kind alone */
    free = freed(f, &latent, 2, y->N, 0);
    want = freed(f, &latent, 2, NULL, -1);
    same_numbers(f, &free, &want, 1, y->N, 64);
    assert_true(with_size(f, &free, 0, y->N, 64, 0) < with_size(f, &want, 0, y->N, 64, 0));
    free = freed(f, &latent, 2, y->N, 1);
    same_numbers(f, &free, &want, 0, y->N, 64);
    assert_true(with_size(f, &free, 1, y->N, 64, 0) < with_size(f, &want, 1, y->N, 64, 0));
}

/* ---- the course ---- */

static uint64_t next(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return *s >> 33;
}

/* x and y agree at 100 random points of all symbols but b_ffn, b_kv and b_act, which are 2, where K = N, Hv = H, D =
 * N*H. */
static void assert_same(struct fixture *f, const struct sym *x, const struct sym *y)
{
    const struct sym *var[] = {f->y.B, f->y.S,  f->y.T, f->y.F,     f->y.N,    f->y.H,
                               f->y.K, f->y.Hv, f->y.D, f->y.b_ffn, f->y.b_kv, f->y.b_act};
    const struct sym *const of[] = {x, y};
    double v[COUNT(var)], got[2];
    const double *in[COUNT(var)];
    double *const out[] = {&got[0], &got[1]};
    struct sym_tape *t;
    struct err e = {0};
    uint64_t seed = 336;
    if (sym_tape_compile(f->a, 2, of, COUNT(var), var, &t, &e) != ERR_OK) fail_msg("%s", e.text);
    for (size_t i = 0; i < COUNT(var); i++) in[i] = &v[i];
    for (int i = 0; i < 100; i++) {
        for (size_t k = 0; k < 6; k++) v[k] = (double)(1 + next(&seed) % 97);
        v[6] = v[4];
        v[7] = v[5];
        v[8] = v[4] * v[5];
        v[9] = v[10] = v[11] = 2;
        sym_tape_eval(t, 1, in, out);
        if (got[0] != got[1]) fail_msg("%.17g is not %.17g", got[0], got[1]);
    }
}

#define INT(n) sym_int(f->c, (n))
#define PROD(...) SYM_PROD(f->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(f->c, __VA_ARGS__)

static void test_course_mlp(void **state)
{
    struct fixture *f = *state;
    const struct cost_symbols *y = &f->y;
    const struct model m = builtin(f, "llama-2-13b");
    const struct cost_ops ops = build(f, &m, CHUNK, COURSE);
    const struct cost_op *op = op_named(&ops, "mlp");
    assert_same(f, op->flops, PROD(INT(6), y->B, y->T, y->D, y->F));
    assert_same(f, SUM(op->weight_bytes, op->kv_bytes, op->activation_bytes),
                SUM(PROD(INT(4), y->B, y->T, y->D), PROD(INT(4), y->B, y->T, y->F), PROD(INT(6), y->D, y->F)));
}

static void test_course_attention(void **state)
{
    struct fixture *f = *state;
    const struct cost_symbols *y = &f->y;
    const struct model m = builtin(f, "llama-2-13b");
    const struct cost_ops ops = build(f, &m, CHUNK, COURSE);
    const struct cost_op *op = op_named(&ops, "attention");
    assert_same(f, op->flops, PROD(INT(4), y->B, y->S, y->T, y->D));
    assert_same(f, SUM(op->weight_bytes, op->kv_bytes, op->activation_bytes),
                SUM(PROD(INT(4), y->B, y->S, y->D), PROD(INT(4), y->B, y->T, y->D)));
}

/* By default only the causal pairs: S(S+1)/2 of S*S. */
static void test_causal_half_is_the_default(void **state)
{
    struct fixture *f = *state;
    const struct cost_symbols *y = &f->y;
    const struct model m = builtin(f, "llama-2-13b");
    const struct cost_ops ops = build(f, &m, PREFILL, PLAIN);
    assert_same(f, op_named(&ops, "attention")->flops, PROD(INT(2), y->B, y->D, y->S, SUM(y->S, INT(1))));
}

/* Forward is 2 flops a token and parameter; 6 is with the backward pass of training. */
static void test_course_product_and_mlp_intensity_reach_the_ridge(void **state)
{
    struct fixture *f = *state;
    const double ridge = 989e12 / 3.35e12;
    const struct model m = parsed(f, "{\"model_type\":\"llama\",\"hidden_size\":5120,\"num_hidden_layers\":1,"
                                     "\"num_attention_heads\":40,\"intermediate_size\":13824,\"vocab_size\":13824}");
    const struct cost_ops ops = bound(f, &m, DECODE, COURSE);
    static const struct {
        const char *op;
        int64_t below; /* batch just under the ridge: 320.55 and 311.64 */
    } CASES[] = {{"lm_head", 320}, {"mlp", 311}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const struct cost_op *op = op_named(&ops, CASES[i].op); /* lm_head: one product D x F, with V = F */
        for (int64_t B = CASES[i].below; B <= CASES[i].below + 1; B++) {
            const double bytes = at(f, op->weight_bytes, B, 1, 1) + at(f, op->activation_bytes, B, 1, 1);
            const double intensity = at(f, op->flops, B, 1, 1) / bytes;
            assert_true((intensity < ridge) == (B == CASES[i].below));
        }
    }
}

/* Llama 2 13B as the lecture runs it, S 1024: weights and cache read by one decode step, bytes. */
static void test_course_step_bytes(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *kv_heads;
        int64_t B;
        double parameters, bytes;
    } CASES[] = {{"40", 1, 13015449600.0, 26869760000.0},
                 {"40", 64, 13015449600.0, 79717990400.0},
                 {"40", 256, 13015449600.0, 240779264000.0},
                 {"8", 64, 11337728000.0, 33412874240.0},
                 {"8", 256, 11337728000.0, 65625128960.0}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const struct model_setting set = {"K", CASES[i].kv_heads};
        struct model m;
        struct err e = {0};
        struct cost_parameters count;
        struct cost_cache cache;
        if (model_load(f->a, "llama-2-13b", &set, 1, &m, &e) != ERR_OK) fail_msg("%s", e.text);
        assert_int_equal(cost_parameters(f->a, &m, &COURSE, &count, &e), ERR_OK);
        assert_int_equal(cost_cache(f->c, &f->y, &m, 1, &cache, &e), ERR_OK);
        assert_true(count.total == CASES[i].parameters);
        const double held = (double)CASES[i].B * at(f, cache.bytes_per_sequence, 1, 1, 1024);
        assert_true(2 * count.total + held == CASES[i].bytes);
        const struct cost_ops ops = bound(f, &m, DECODE, COURSE);
        assert_true(sum(f, &ops, WEIGHT_BYTES, CASES[i].B, 1, 1024) +
                        sum(f, &ops, KV_NEEDED_BYTES, CASES[i].B, 1, 1024) ==
                    CASES[i].bytes);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        TEST(test_one_token_reads_k_experts),
        TEST(test_experts_of_few_tokens_by_all_draws),
        TEST(test_a_batch_reads_nearly_all_experts),
        TEST(test_products_are_two_flops_per_active_weight),
        TEST(test_windowed_prefill_is_mean_of_min),
        TEST(test_window_does_not_cut_full_layers),
        TEST(test_cache_holds_keys_and_values),
        TEST(test_cache_is_read_once_and_by_kv_heads),
        TEST(test_expanded_latents_are_read_once),
        TEST(test_latent_cache_has_no_heads),
        TEST(test_latent_attention_flops),
        TEST(test_head_width_is_not_hidden_over_heads),
        TEST(test_lm_head_is_two_flops_per_weight),
        TEST(test_four_bits_include_their_scales),
        TEST(test_fusion_does_not_change_memory),
        TEST(test_blocks_run_through_a_joined_matrix),
        TEST(test_scales_of_a_published_checkpoint),
        TEST(test_sizes_of_a_part),
        TEST(test_a_free_size_is_of_the_whole_model),
        TEST(test_course_mlp),
        TEST(test_course_attention),
        TEST(test_causal_half_is_the_default),
        TEST(test_course_product_and_mlp_intensity_reach_the_ridge),
        TEST(test_course_step_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
