/* Checkpoints as models: GGUF files of every architecture, written tensor by tensor, must be explained to the last
 * parameter and byte; safetensors beside a config.json are summed and never stand in its way. */
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
#include "tests/checkpoint.h"
#include "tests/scratch.h"

enum { F32 = 0, F16 = 1, Q4_0 = 2, Q8_0 = 8, BF16 = 30 };

/* A GGUF file that grows: pairs and the tensor table apart, counts when it is written. */
struct writer {
    struct checkpoint_gguf pairs, table, all;
    uint64_t pairs_n, tensors_n, offset, elems;
    double bytes;
    char dir[SCRATCH_MAX], arch[16];
    bool own_kv; /* the number of KV heads is told apart */
    struct arena *arena;
};

static int open_writer(void **state)
{
    struct arena *a = arena_open();
    struct writer *w = a ? arena_alloc(a, sizeof *w) : NULL;
    if (!w) return 1;
    (void)scratch_dir(w->dir);
    w->arena = a;
    *state = w;
    return 0;
}

static int close_writer(void **state)
{
    struct writer *w = *state;
    scratch_remove(w->dir);
    arena_close(w->arena);
    return 0;
}

static void begin(struct writer *w, const char *arch)
{
    w->pairs.n = w->table.n = 0;
    w->pairs_n = 1;
    w->tensors_n = w->offset = w->elems = 0;
    w->bytes = 0;
    (void)snprintf(w->arch, sizeof w->arch, "%s", arch);
    checkpoint_pair_text(&w->pairs, "general.architecture", arch);
}

static void pair(struct writer *w, const char *key, uint32_t v)
{
    char full[96];
    (void)snprintf(full, sizeof full, "%s.%s", w->arch, key);
    checkpoint_pair_u32(&w->pairs, full, v);
    w->pairs_n++;
}

/* A tensor of rows x cols (x copies), slowest side first as a model describes it; 0 leaves a side out. */
static void tensor(struct writer *w, const char *name, uint32_t type, uint64_t copies, uint64_t rows, uint64_t cols)
{
    const uint64_t block = type == Q4_0 || type == Q8_0 ? 32 : 1;
    const uint64_t each = type == F32 ? 4 : type == Q4_0 ? 18 : type == Q8_0 ? 34 : 2;
    const uint64_t elems = (copies ? copies : 1) * (rows ? rows : 1) * cols, bytes = elems / block * each;
    assert_int_equal(cols % block, 0);
    checkpoint_tensor(&w->table, name, type, copies ? 3 : rows ? 2 : 1, cols, rows, copies, w->offset);
    w->tensors_n++;
    w->elems += elems;
    w->bytes += (double)bytes;
    w->offset += (bytes + 31) / 32 * 32;
}

__attribute__((format(printf, 6, 7))) static void layer(struct writer *w, uint32_t type, uint64_t copies, uint64_t rows,
                                                        uint64_t cols, const char *fmt, ...)
{
    char name[96];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    tensor(w, name, type, copies, rows, cols);
}

static void finish(struct writer *w)
{
    checkpoint_gguf_begin(&w->all, 3, w->tensors_n, w->pairs_n);
    for (size_t i = 0; i < w->pairs.n; i++) checkpoint_put(&w->all, 1, w->pairs.bytes[i]);
    for (size_t i = 0; i < w->table.n; i++) checkpoint_put(&w->all, 1, w->table.bytes[i]);
    checkpoint_gguf_write(&w->all, w->dir, "m.gguf", (int64_t)w->offset);
}

static const char *at(const struct writer *w, const char *name)
{
    return arena_printf(w->arena, "%s/%s", w->dir, name);
}

static struct model loaded(const struct writer *w, const char *name)
{
    struct model m;
    struct err e = {0};
    if (model_load(w->arena, at(w, name), NULL, 0, &m, &e) != ERR_OK) fail_msg("%s %s: %s", w->arch, name, e.text);
    return m;
}

static double weight_bytes(struct arena *a, const struct model *m)
{
    static const struct cost_conventions PLAIN = {0};
    struct sym_ctx *c = sym_open(a);
    struct cost_ops ops;
    struct err e = {0};
    double bytes = -1;
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_pass pass = {.name = "decode", .B = y.B, .T = sym_int(c, 1), .S = y.S, .absorbed = true};
    assert_int_equal(cost_build(a, c, &y, m, &PLAIN, &pass, 1, &ops, &e), ERR_OK);
    assert_int_equal(cost_bind(c, &y, m, 1, &ops, &e), ERR_OK);
    assert_true(sym_constant(cost_weight_bytes(c, &ops, &PLAIN), &bytes));
    return bytes;
}

/* The file as a model of that family, explained to the last parameter and byte. */
static struct model explained(struct writer *w, const char *family)
{
    static const struct cost_conventions PLAIN = {0};
    struct cost_parameters p;
    struct err e = {0};
    finish(w);
    const struct model m = loaded(w, "m.gguf");
    assert_string_equal(m.family, family);
    assert_string_equal(m.name, "m");
    if (m.notes && strstr(m.notes, "tensor ")) fail_msg("%s: %s", w->arch, m.notes);
    assert_true(m.stored_elems == (double)w->elems);
    assert_true(m.stored_bytes == w->bytes);
    assert_true(m.stored_plain);
    if (cost_parameters(w->arena, &m, &PLAIN, &p, &e) != ERR_OK) fail_msg("%s: %s", w->arch, e.text);
    if (p.total != (double)w->elems) fail_msg("%s: %.0f parameters of %.0f", w->arch, p.total, (double)w->elems);
    const double bytes = weight_bytes(w->arena, &m);
    if (!(fabs(bytes - w->bytes) < 1e-3)) fail_msg("%s: %.3f bytes of %.0f", w->arch, bytes, w->bytes);
    return m;
}

/* ---- pieces ---- */

enum { L = 3, D = 192, F = 352, N = 6, K = 2, H = 64, V = 1009, E = 7, TOP = 2, FE = 96 };

static void put_shape(struct writer *w)
{
    pair(w, "block_count", L);
    pair(w, "embedding_length", D);
    pair(w, "attention.head_count", N);
    if (!w->own_kv) pair(w, "attention.head_count_kv", K);
    pair(w, "attention.key_length", H);
    pair(w, "attention.value_length", H);
    pair(w, "context_length", 4099);
}

static void put_outside(struct writer *w, bool tied)
{
    tensor(w, "token_embd.weight", Q8_0, 0, V, D);
    if (!tied) tensor(w, "output.weight", F16, 0, V, D);
    tensor(w, "output_norm.weight", F32, 0, 0, D);
}

enum { BIAS = 1, O_BIAS = 2, QK_NORM = 4, SINKS = 8, FUSED = 16 };

static void put_attention(struct writer *w, int i, unsigned flags)
{
    const uint32_t type = i == 1 ? Q8_0 : Q4_0; /* formats that change from layer to layer */
    if (flags & FUSED) {
        layer(w, type, 0, (N + 2 * K) * H, D, "blk.%d.attn_qkv.weight", i);
    } else {
        layer(w, type, 0, N * H, D, "blk.%d.attn_q.weight", i);
        layer(w, type, 0, K * H, D, "blk.%d.attn_k.weight", i);
        layer(w, type, 0, K * H, D, "blk.%d.attn_v.weight", i);
    }
    layer(w, type, 0, D, N * H, "blk.%d.attn_output.weight", i);
    if (flags & BIAS) {
        layer(w, F32, 0, 0, N * H, "blk.%d.attn_q.bias", i);
        layer(w, F32, 0, 0, K * H, "blk.%d.attn_k.bias", i);
        layer(w, F32, 0, 0, K * H, "blk.%d.attn_v.bias", i);
    }
    if (flags & O_BIAS) layer(w, F32, 0, 0, D, "blk.%d.attn_output.bias", i);
    if (flags & SINKS) layer(w, F32, 0, 0, N, "blk.%d.attn_sinks.weight", i);
    if (flags & QK_NORM) {
        layer(w, F32, 0, 0, H, "blk.%d.attn_q_norm.weight", i);
        layer(w, F32, 0, 0, H, "blk.%d.attn_k_norm.weight", i);
    }
}

static void put_norms(struct writer *w, int i, int n)
{
    static const char *const NAMES[] = {"attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm"};
    for (int k = 0; k < n; k++) layer(w, F32, 0, 0, D, "blk.%d.%s.weight", i, NAMES[k]);
}

static void put_mlp(struct writer *w, int i, bool fused)
{
    if (!fused) layer(w, Q4_0, 0, F, D, "blk.%d.ffn_gate.weight", i);
    layer(w, Q4_0, 0, fused ? 2 * F : F, D, "blk.%d.ffn_up.weight", i);
    layer(w, Q8_0, 0, D, F, "blk.%d.ffn_down.weight", i);
}

static void put_experts(struct writer *w, int i, uint64_t width)
{
    layer(w, F32, 0, E, D, "blk.%d.ffn_gate_inp.weight", i);
    layer(w, Q4_0, E, width, D, "blk.%d.ffn_gate_exps.weight", i);
    layer(w, Q4_0, E, width, D, "blk.%d.ffn_up_exps.weight", i);
    layer(w, Q8_0, E, D, width, "blk.%d.ffn_down_exps.weight", i);
}

/* ---- architectures ---- */

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

/* What the layers of an architecture have, tensor by tensor (llama.cpp, src/models). */
enum {
    NORM_BIAS = 1,   /* norms with biases */
    QKV_FUSED = 2,   /* q, k and v in one matrix */
    ALL_BIASES = 4,  /* q, k, v, o and the MLP */
    QKV_BIASES = 8,  /* q, k and v */
    NO_GATE = 16,    /* up and down */
    UP_FUSED = 32,   /* gate and up in one matrix */
    HEAD_NORMS = 64, /* of queries and keys, H wide */
    WIDE_NORMS = 128,
    TIED = 256,
    ONE_KV = 512,      /* one KV head */
    ALL_KV = 1024,     /* as many as heads; not a unit */
    PLACES = 2048,     /* learned positions */
    FIRST_NORM = 4096, /* of the embedding */
    HEAD_BIAS = 8192,
    NORMLESS = 16384,    /* norms store nothing */
    SUB_NORMS = 32768,   /* before the last product of either block */
    HALF_MLP = 65536,    /* the file says twice the width */
    MLP_BIASES = 131072, /* of the MLP alone */
    GATES = 262144,      /* of attention, as wide as queries; not a unit */
    NO_MLP = 524288,     /* not a unit */
    NORM_2 = 1 << 20,    /* the second norm is called after the first */
};

static void put_vectors(struct writer *w, int i, const char *stem, uint64_t n, bool biased)
{
    layer(w, F32, 0, 0, n, "blk.%d.%s.weight", i, stem);
    if (biased) layer(w, F32, 0, 0, n, "blk.%d.%s.bias", i, stem);
}

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

static void put_llama(struct writer *w)
{
    begin(w, "llama");
    put_shape(w);
    pair(w, "feed_forward_length", F);
    put_outside(w, false);
    for (int i = 0; i < L; i++) {
        put_attention(w, i, 0);
        put_norms(w, i, 2);
        put_mlp(w, i, false);
    }
}

static void refused(const struct writer *w, const char *name, enum err_code code, const char *sentence)
{
    struct model m;
    struct err e = {0};
    const enum err_code got = model_load(w->arena, at(w, name), NULL, 0, &m, &e);
    if (got != code || !strstr(e.text, sentence))
        fail_msg("%s: %d \"%s\", wanted %d \"%s\"", name, (int)got, e.text, (int)code, sentence);
}

/* ---- recurrent mixers ---- */

enum { BLOCKS = 4, INNER = 2 * D, STATE = 32, RANK = 12, TAPS = 4, SCANS = 12, GROUPS = 2 };

/* One number a block. */
static void pairs_of(struct writer *w, const char *key, const uint32_t v[BLOCKS])
{
    char full[96];
    (void)snprintf(full, sizeof full, "%s.%s", w->arch, key);
    checkpoint_put_text(&w->pairs, full);
    checkpoint_put(&w->pairs, 4, 9);
    checkpoint_put(&w->pairs, 4, 5);
    checkpoint_put(&w->pairs, 8, BLOCKS);
    for (int i = 0; i < BLOCKS; i++) checkpoint_put(&w->pairs, 4, v[i]);
    w->pairs_n++;
}

static void put_hybrid(struct writer *w, const char *arch, const uint32_t kv[BLOCKS])
{
    begin(w, arch);
    pair(w, "block_count", BLOCKS);
    pair(w, "embedding_length", D);
    pair(w, "context_length", 4099);
    pair(w, "attention.head_count", kv ? N : 0);
    if (!kv) return;
    pairs_of(w, "attention.head_count_kv", kv);
    pair(w, "attention.key_length", H);
    pair(w, "attention.value_length", H);
}

static void put_ssm(struct writer *w, uint32_t rank, bool groups)
{
    pair(w, "ssm.conv_kernel", TAPS);
    pair(w, "ssm.inner_size", INNER);
    pair(w, "ssm.state_size", STATE);
    pair(w, "ssm.time_step_rank", rank);
    if (groups) pair(w, "ssm.group_count", GROUPS);
}

static void put_mamba(struct writer *w, int i, bool normed)
{
    layer(w, i == 1 ? Q8_0 : Q4_0, 0, 2 * INNER, D, "blk.%d.ssm_in.weight", i);
    layer(w, F32, 0, INNER, TAPS, "blk.%d.ssm_conv1d.weight", i);
    layer(w, F32, 0, 0, INNER, "blk.%d.ssm_conv1d.bias", i);
    layer(w, Q8_0, 0, RANK + 2 * STATE, INNER, "blk.%d.ssm_x.weight", i);
    layer(w, F32, 0, INNER, RANK, "blk.%d.ssm_dt.weight", i);
    layer(w, F32, 0, 0, INNER, "blk.%d.ssm_dt.bias", i);
    layer(w, F32, 0, INNER, STATE, "blk.%d.ssm_a", i);
    layer(w, F32, 0, 0, INNER, "blk.%d.ssm_d", i);
    layer(w, Q4_0, 0, D, INNER, "blk.%d.ssm_out.weight", i);
    if (!normed) return;
    layer(w, F32, 0, 0, RANK, "blk.%d.ssm_dt_norm.weight", i);
    layer(w, F32, 0, 0, STATE, "blk.%d.ssm_b_norm.weight", i);
    layer(w, F32, 0, 0, STATE, "blk.%d.ssm_c_norm.weight", i);
}

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
    pairs_of(w, "feed_forward_length", FF);
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

/* A config.json beside GGUF: its structure, stored as the tensors are; of another architecture only their bytes. */
static void test_gguf_beside_a_config(void **state)
{
    struct writer *w = *state;
    static const char CONFIG[] =
        "{\"model_type\":\"mamba\",\"hidden_size\":192,\"num_hidden_layers\":4,\"vocab_size\":1009,\"state_size\":32,"
        "\"time_step_rank\":12,\"conv_kernel\":4,\"expand\":2,\"torch_dtype\":\"bfloat16\"}";
    put_hybrid(w, "mamba", NULL);
    put_ssm(w, RANK, false);
    put_outside(w, true);
    for (int i = 0; i < BLOCKS; i++) {
        put_norms(w, i, 1);
        put_mamba(w, i, false);
    }
    finish(w);
    checkpoint_file(w->dir, "config.json", CONFIG, strlen(CONFIG), 0);
    struct model m = loaded(w, "config.json");
    const double bytes = weight_bytes(w->arena, &m);
    if (!(fabs(bytes - w->bytes) < 1e-3)) fail_msg("%.3f bytes of %.0f", bytes, w->bytes);
    assert_true(m.stored_bytes == w->bytes);
    assert_non_null(strstr(m.notes, "of GGUF, where the config says bf16: counted as stored"));
    begin(w, "rwkv7");
    put_outside(w, true);
    finish(w);
    m = loaded(w, "config.json");
    assert_non_null(strstr(m.notes, "is counted by its bytes alone"));
    assert_true(m.stored_bytes == w->bytes);
    assert_true(m.weights[WEIGHT_MIXER].bits > 15);
}

static void test_what_a_gguf_must_say(void **state)
{
    struct writer *w = *state;
    begin(w, "rwkv7");
    finish(w);
    refused(w, "m.gguf", ERR_INPUT, "general.architecture \"rwkv7\" is one whose metadata ridge does not read");
    refused(w, "m.gguf", ERR_INPUT, "with the model's config.json beside it");
    begin(w, "llama");
    finish(w);
    refused(w, "m.gguf", ERR_INPUT, "no matrix token_embd.weight");
    put_outside(w, false);
    finish(w);
    refused(w, "m.gguf", ERR_INPUT, "llama.block_count is missing");
    pair(w, "block_count", L);
    finish(w);
    refused(w, "m.gguf", ERR_INPUT, "hidden_size is missing");
    begin(w, "llama");
    put_outside(w, false);
    put_shape(w);
    checkpoint_put_text(&w->pairs, "llama.feed_forward_length");
    checkpoint_put(&w->pairs, 4, 9);
    checkpoint_put(&w->pairs, 4, 5);
    checkpoint_put(&w->pairs, 8, 2);
    checkpoint_put(&w->pairs, 8, (uint64_t)F << 32 | FE);
    w->pairs_n++;
    finish(w);
    refused(w, "m.gguf", ERR_INPUT, "llama.feed_forward_length is 96 in one layer and 352 in another");
    begin(w, "llama"); /* fewer blocks than it says, one beyond them, another width */
    put_outside(w, false);
    put_shape(w);
    layer(w, F32, 0, 3, 7, "blk.%d.attn_q.weight", 0);
    finish(w);
    refused(w, "m.gguf", ERR_INPUT, "and 1 blocks have tensors");
    layer(w, F32, 0, 3, 7, "blk.%d.attn_q.weight", L);
    finish(w);
    refused(w, "m.gguf", ERR_INPUT, arena_printf(w->arena, "block_count is %d, and block %d has tensors", L, L));
    begin(w, "llama");
    tensor(w, "token_embd.weight", F32, 0, 101, 53);
    put_shape(w);
    finish(w);
    refused(w, "m.gguf", ERR_INPUT, "but rows of token_embd.weight have 53");
    checkpoint_pair_u32(&w->pairs, "general.architecture", 7);
    w->pairs_n++;
    finish(w);
    refused(w, "m.gguf", ERR_INPUT, "is there twice");
    refused(w, "none.gguf", ERR_IO, "cannot open");
}

static void test_settings_change_a_gguf(void **state)
{
    struct writer *w = *state;
    put_llama(w);
    const struct model plain = explained(w, "llama");
    const struct model_setting set = {"L", "2"};
    struct model m;
    struct err e = {0};
    assert_int_equal(model_load(w->arena, at(w, "m.gguf"), &set, 1, &m, &e), ERR_OK);
    assert_int_equal(m.layers, 2);
    assert_true(isnan(m.stored_bytes));
    assert_true(m.weights[WEIGHT_FFN].bits == plain.weights[WEIGHT_FFN].bits);
    assert_string_not_equal(m.hash, plain.hash);
    const struct model folder = loaded(w, "");
    assert_string_equal(folder.hash, plain.hash);
    assert_true(folder.stored_bytes == plain.stored_bytes);
}

static const char CONFIG[] = "{\"model_type\":\"llama\",\"hidden_size\":7,\"num_hidden_layers\":1,\"vocab_size\":11,"
                             "\"num_attention_heads\":1,\"intermediate_size\":13,\"tie_word_embeddings\":true}";

static void test_safetensors_beside_a_config(void **state)
{
    struct writer *w = *state;
    checkpoint_file(w->dir, "config.json", CONFIG, sizeof CONFIG - 1, 0);
    struct model m = loaded(w, "");
    assert_true(isnan(m.stored_bytes) && isnan(m.stored_elems));
    assert_null(m.notes);
    checkpoint_safetensors(w->dir, "model.safetensors",
                           "{\"x\":{\"dtype\":\"BF16\",\"shape\":[17,19],\"data_offsets\":[0,646]}}", 646);
    for (int i = 0; i < 2; i++) {
        m = loaded(w, i ? "config.json" : "");
        assert_true(m.stored_bytes == 646);
        assert_true(m.stored_elems == 323);
        assert_true(m.stored_plain);
        assert_string_equal(m.notes, "the checkpoint's one tensor is no matrix that the config describes");
    }
    const struct model_setting set = {"L", "2"};
    struct err e = {0};
    assert_int_equal(model_load(w->arena, w->dir, &set, 1, &m, &e), ERR_OK);
    assert_true(isnan(m.stored_bytes));
    /* packed */
    checkpoint_safetensors(w->dir, "model.safetensors",
                           "{\"x\":{\"dtype\":\"U8\",\"shape\":[17,19],\"data_offsets\":[0,323]}}", 323);
    m = loaded(w, "");
    assert_true(m.stored_bytes == 323);
    assert_false(m.stored_plain);
    /* one that lies is refused, and named */
    checkpoint_safetensors(w->dir, "model.safetensors",
                           "{\"x\":{\"dtype\":\"U8\",\"shape\":[17,19],\"data_offsets\":[0,323]}}", 322);
    assert_int_equal(model_load(w->arena, w->dir, NULL, 0, &m, &e), ERR_INPUT);
    assert_non_null(strstr(e.text, "model.safetensors: ends 1 bytes before"));
    checkpoint_safetensors(w->dir, "model.safetensors",
                           "{\"x\":{\"dtype\":\"U8\",\"shape\":[17,19],\"data_offsets\":[0,323]}}", 323);
    /* an index alone */
    static const char INDEX[] = "{\"metadata\":{\"total_size\":647.0},\"weight_map\":{\"x\":\"s.safetensors\"}}";
    checkpoint_file(w->dir, "model.safetensors.index.json", INDEX, sizeof INDEX - 1, 0);
    m = loaded(w, "");
    assert_true(m.stored_bytes == 647);
    assert_true(isnan(m.stored_elems));
    assert_non_null(strstr(m.notes, "only an index was read"));
}

/* The same number of elements under other names, in other layers, or of other sides. */
static void test_tensors_of_another_model(void **state)
{
    struct writer *w = *state;
    static const char LLAMA[] = "{\"model_type\":\"llama\",\"hidden_size\":7,\"num_hidden_layers\":2,\"vocab_size\":11,"
                                "\"num_attention_heads\":1,\"intermediate_size\":13,\"tie_word_embeddings\":true}",
                      LFM2[] = "{\"model_type\":\"lfm2\",\"hidden_size\":7,\"num_hidden_layers\":2,\"vocab_size\":11,"
                               "\"num_attention_heads\":1,\"num_key_value_heads\":1,\"intermediate_size\":13,"
                               "\"block_auto_adjust_ff_dim\":false,\"layer_types\":[\"conv\",\"full_attention\"]}",
                      MAMBA[] = "{\"model_type\":\"mamba\",\"hidden_size\":7,\"num_hidden_layers\":2,\"vocab_size\":11,"
                                "\"state_size\":3,\"time_step_rank\":2,\"expand\":2}";
    static const struct {
        const char *config, *name;
        int rows, columns;
        const char *note; /* NULL: none of these */
    } CASES[] = {
        {LLAMA, "model.layers.1.self_attn.q_proj.weight", 7, 7, NULL},
        {LLAMA, "model.layers.7.self_attn.q_proj.weight", 7, 7, "behind the last one of the config (1)"},
        {LLAMA, "base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight", 7, 7, "one tensor is no matrix"},
        {LLAMA, "model.embed_tokens.weight", 12, 7,
         "tensor model.embed_tokens.weight is 12 x 7, the config explains 11"},
        {LFM2, "model.layers.1.self_attn.out_proj.weight", 7, 7, NULL},
        {LFM2, "model.layers.0.self_attn.out_proj.weight", 7, 7,
         "1 stand in layers where the config has none of that name, such as model.layers.0.self_attn.out_proj.weight"},
        {LFM2, "model.layers.0.conv.in_proj.weight", 22, 7, "is 22 x 7, the config explains 21 x 7"},
        {MAMBA, "backbone.layers.0.mixer.in_proj.weight", 28, 7, NULL},
        {MAMBA, "backbone.layers.0.mixer.x_proj.weight", 9, 14, "is 9 x 14, the config explains 8 x 14"},
        {MAMBA, "backbone.layers.0.mixer.A_log", 14, 5, "is 14 x 5, the config explains 14 x 3"},
        {MAMBA, "model.layers.0.self_attn.q_proj.weight", 7, 7, "one tensor is no matrix"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const int bytes = 2 * CASES[i].rows * CASES[i].columns;
        const char *header =
            arena_printf(w->arena, "{\"%s\":{\"dtype\":\"BF16\",\"shape\":[%d,%d],\"data_offsets\":[0,%d]}}",
                         CASES[i].name, CASES[i].rows, CASES[i].columns, bytes);
        checkpoint_file(w->dir, "config.json", CASES[i].config, strlen(CASES[i].config), 0);
        checkpoint_safetensors(w->dir, "model.safetensors", header, bytes);
        const struct model m = loaded(w, "");
        if (CASES[i].note ? !m.notes || !strstr(m.notes, CASES[i].note) : m.notes != NULL)
            fail_msg("%s: %s", CASES[i].name, m.notes ? m.notes : "no note");
    }
    checkpoint_safetensors(w->dir, "model.safetensors", "{}", 0);
    const struct model m = loaded(w, "");
    assert_non_null(strstr(m.notes, "the checkpoint holds no tensors"));
}

/* A llama whose metadata says one size other than its tensors have, as GGUF; the note that must come of it. */
static void disagrees(struct writer *w, const char *key, uint32_t says, const char *arch, const char *note)
{
    static const struct {
        const char *key;
        uint32_t v;
    } PAIRS[] = {{"block_count", L},          {"embedding_length", D},
                 {"attention.head_count", N}, {"attention.head_count_kv", K},
                 {"attention.key_length", H}, {"attention.value_length", H},
                 {"feed_forward_length", F},  {"expert_count", E},
                 {"expert_used_count", TOP},  {"expert_feed_forward_length", FE}};
    const bool experts = strcmp(arch, "qwen3moe") == 0;
    const bool heads = strcmp(key, "attention.key_length") == 0; /* keys and values have one width */
    begin(w, arch);
    for (size_t i = 0; i < (experts ? 10 : 7); i++) {
        const bool also = heads && strcmp(PAIRS[i].key, "attention.value_length") == 0;
        pair(w, PAIRS[i].key, also || strcmp(PAIRS[i].key, key) == 0 ? says : PAIRS[i].v);
    }
    put_outside(w, false);
    for (int i = 0; i < L; i++) {
        put_attention(w, i, experts ? QK_NORM : 0);
        put_norms(w, i, 2);
        if (experts)
            put_experts(w, i, FE);
        else
            put_mlp(w, i, false);
    }
    finish(w);
    const struct model m = loaded(w, "m.gguf");
    if (!note) {
        if (m.notes) fail_msg("%s %s: %s", arch, key, m.notes);
        return;
    }
    if (!m.notes || !strstr(m.notes, note))
        fail_msg("%s %u: \"%s\", wanted \"%s\"", key, says, m.notes ? m.notes : "", note);
}

static void test_widths_of_a_gguf(void **state)
{
    struct writer *w = *state;
    disagrees(w, "", 0, "llama", NULL);
    disagrees(w, "", 0, "qwen3moe", NULL);
    disagrees(w, "feed_forward_length", 384, "llama",
              "tensor blk.0.ffn_gate.weight is 352 x 192, the config explains 384 x 192, and 8 more");
    disagrees(w, "attention.head_count_kv", 3, "llama",
              "tensor blk.0.attn_k.weight is 128 x 192, the config explains 192 x 192, and 5 more");
    disagrees(w, "attention.head_count", 8, "llama",
              "tensor blk.0.attn_q.weight is 384 x 192, the config explains 512 x 192, and 5 more");
    disagrees(w, "attention.key_length", 32, "llama",
              "tensor blk.0.attn_q.weight is 384 x 192, the config explains 192 x 192, and 11 more");
    disagrees(w, "expert_feed_forward_length", 64, "qwen3moe",
              "tensor blk.0.ffn_gate_exps.weight is 7 x 96 x 192, the config explains 7 x 64 x 192, and 8 more");
    disagrees(w, "expert_count", 5, "qwen3moe",
              "tensor blk.0.ffn_gate_exps.weight is 7 x 96 x 192, the config explains 5 x 96 x 192, and 8 more");
}

/* The same of safetensors; what is packed, of no layer or beyond the last one is not held against the config. */
static void test_widths_of_safetensors(void **state)
{
    struct writer *w = *state;
    static const struct {
        const char *name, *type, *shape;
        int bytes;
        const char *note;
    } FILES[] = {
        {"model.layers.0.mlp.up_proj.weight", "BF16", "13,7", 182, NULL},
        {"model.layers.0.mlp.up_proj.weight", "BF16", "12,7", 168,
         "tensor model.layers.0.mlp.up_proj.weight is 12 x 7, the config explains 13 x 7"},
        {"model.layers.0.mlp.down_proj.weight", "F8_E4M3", "7,11", 77,
         "tensor model.layers.0.mlp.down_proj.weight is 7 x 11, the config explains 7 x 13"},
        {"model.layers.0.self_attn.o_proj.weight", "BF16", "7,5", 70,
         "tensor model.layers.0.self_attn.o_proj.weight is 7 x 5, the config explains 7 x 7"},
        {"model.layers.1.mlp.up_proj.weight", "BF16", "12,7", 168, NULL},
        {"mtp.layers.0.mlp.up_proj.weight", "BF16", "12,7", 168, NULL},
        {"model.layers.0.mlp.up_proj.weight", "U8", "12,7", 84, NULL},
    };
    checkpoint_file(w->dir, "config.json", CONFIG, sizeof CONFIG - 1, 0);
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++) {
        const char *header =
            arena_printf(w->arena, "{\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[0,%d]}}", FILES[i].name,
                         FILES[i].type, FILES[i].shape, FILES[i].bytes);
        checkpoint_safetensors(w->dir, "model.safetensors", header, FILES[i].bytes);
        const struct model m = loaded(w, "");
        const bool said = m.notes && strstr(m.notes, "the config explains");
        if (FILES[i].note ? !said || !strstr(m.notes, FILES[i].note) : said)
            fail_msg("%zu: %s", i, m.notes ? m.notes : "nothing");
    }
}

/* A config of no known family beside one layer's tensors: the family of such tensors is named, and no other. */
static void test_family_of_safetensors(void **state)
{
    struct writer *w = *state;
    static const char OTHER[] =
        "{\"model_type\":\"qzz\",\"hidden_size\":8,\"num_hidden_layers\":1,\"vocab_size\":11,\"num_attention_heads\":2,"
        "\"num_key_value_heads\":1,\"head_dim\":4,\"intermediate_size\":13,\"tie_word_embeddings\":true}";
    enum { LAYER = 1 << 0, Q_NORMS = 1 << 1, BIASES = 1 << 2, ODD = 1 << 3, BEHIND = 1 << 4 };
    static const struct {
        const char *name, *shape;
        int elems;
        unsigned in;
    } TENSORS[] = {
        {"model.embed_tokens.weight", "11,8", 88, LAYER},
        {"model.norm.weight", "8", 8, LAYER},
        {"model.layers.0.input_layernorm.weight", "8", 8, LAYER},
        {"model.layers.0.post_attention_layernorm.weight", "8", 8, LAYER},
        {"model.layers.0.self_attn.q_proj.weight", "8,8", 64, LAYER},
        {"model.layers.0.self_attn.k_proj.weight", "4,8", 32, LAYER},
        {"model.layers.0.self_attn.v_proj.weight", "4,8", 32, LAYER},
        {"model.layers.0.self_attn.o_proj.weight", "8,8", 64, LAYER},
        {"model.layers.0.mlp.gate_proj.weight", "13,8", 104, LAYER},
        {"model.layers.0.mlp.up_proj.weight", "13,8", 104, LAYER},
        {"model.layers.0.mlp.down_proj.weight", "8,13", 104, LAYER},
        {"model.layers.0.self_attn.q_norm.weight", "4", 4, Q_NORMS},
        {"model.layers.0.self_attn.k_norm.weight", "4", 4, Q_NORMS},
        {"model.layers.0.self_attn.q_proj.bias", "8", 8, BIASES},
        {"model.layers.0.self_attn.k_proj.bias", "4", 4, BIASES},
        {"model.layers.0.self_attn.v_proj.bias", "4", 4, BIASES},
        {"model.layers.0.mlp.odd.weight", "3", 3, ODD},
        {"model.layers.1.input_layernorm.weight", "8", 8, BEHIND},
    };
    static const struct {
        unsigned has;
        const char *family; /* NULL: none is like them */
    } CASES[] = {
        {LAYER, "llama"},    {LAYER | Q_NORMS, "qwen3"}, {LAYER | BIASES, "qwen2"},
        {LAYER | ODD, NULL}, {LAYER | BEHIND, "llama"}, /* of a layer behind the last */
    };
    checkpoint_file(w->dir, "config.json", OTHER, sizeof OTHER - 1, 0);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct err e = {0};
        struct model m;
        const char *header = "";
        int at = 0;
        for (size_t t = 0; t < sizeof TENSORS / sizeof TENSORS[0]; t++) {
            if (!(CASES[i].has & TENSORS[t].in)) continue;
            header = arena_printf(w->arena, "%s%s\"%s\":{\"dtype\":\"BF16\",\"shape\":[%s],\"data_offsets\":[%d,%d]}",
                                  header, *header ? "," : "", TENSORS[t].name, TENSORS[t].shape, at,
                                  at + 2 * TENSORS[t].elems);
            at += 2 * TENSORS[t].elems;
        }
        checkpoint_safetensors(w->dir, "model.safetensors", arena_printf(w->arena, "{%s}", header), at);
        assert_int_equal(model_load(w->arena, w->dir, NULL, 0, &m, &e), ERR_INPUT);
        const char *said = strstr(e.text, "the tensors beside it are those of the ");
        if (!CASES[i].family) {
            if (said) fail_msg("%zu: %s", i, e.text);
            continue;
        }
        const char *want =
            arena_printf(w->arena, "those of the %s family: --set model_type=%s", CASES[i].family, CASES[i].family);
        if (!said || !strstr(said, want)) fail_msg("%zu: %s", i, e.text);
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
        RUN(test_further_dense),
        RUN(test_further_experts),
        RUN(test_gguf_of_scans),
        RUN(test_gguf_of_hybrids),
        RUN(test_gguf_of_hybrids_with_experts),
        RUN(test_gguf_of_delta_and_minimax),
        RUN(test_gguf_beside_a_config),
        RUN(test_what_a_gguf_must_say),
        RUN(test_settings_change_a_gguf),
        RUN(test_tensors_of_another_model),
        RUN(test_safetensors_beside_a_config),
        RUN(test_widths_of_a_gguf),
        RUN(test_widths_of_safetensors),
        RUN(test_family_of_safetensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
