/* checkpoint_writer -- GGUF files of models for tests, written piece by piece, and what must come of reading them. */
#ifndef RIDGE_TESTS_CHECKPOINT_WRITER_H
#define RIDGE_TESTS_CHECKPOINT_WRITER_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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

static inline int open_writer(void **state)
{
    struct arena *a = arena_open();
    struct writer *w = a ? arena_alloc(a, sizeof *w) : NULL;
    if (!w) return 1;
    (void)scratch_dir(w->dir);
    w->arena = a;
    *state = w;
    return 0;
}

static inline int close_writer(void **state)
{
    struct writer *w = *state;
    scratch_remove(w->dir);
    arena_close(w->arena);
    return 0;
}

static inline void begin(struct writer *w, const char *arch)
{
    w->pairs.n = w->table.n = 0;
    w->pairs_n = 1;
    w->tensors_n = w->offset = w->elems = 0;
    w->bytes = 0;
    (void)snprintf(w->arch, sizeof w->arch, "%s", arch);
    checkpoint_pair_text(&w->pairs, "general.architecture", arch);
}

static inline void pair(struct writer *w, const char *key, uint32_t v)
{
    char full[96];
    (void)snprintf(full, sizeof full, "%s.%s", w->arch, key);
    checkpoint_pair_u32(&w->pairs, full, v);
    w->pairs_n++;
}

enum { META_U32 = 4, META_I32 = 5, META_LIST = 9 };

/* A list of n numbers of 4 bytes, mostly one a layer. */
static inline void pair_list(struct writer *w, const char *key, uint32_t type, size_t n, const uint32_t *v)
{
    char full[96];
    (void)snprintf(full, sizeof full, "%s.%s", w->arch, key);
    checkpoint_put_text(&w->pairs, full);
    checkpoint_put(&w->pairs, 4, META_LIST);
    checkpoint_put(&w->pairs, 4, type);
    checkpoint_put(&w->pairs, 8, n);
    for (size_t i = 0; i < n; i++) checkpoint_put(&w->pairs, 4, v[i]);
    w->pairs_n++;
}

/* A tensor of rows x cols (x copies), slowest side first as a model describes it; 0 leaves a side out. */
static inline void tensor(struct writer *w, const char *name, uint32_t type, uint64_t copies, uint64_t rows,
                          uint64_t cols)
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

static inline void finish(struct writer *w)
{
    checkpoint_gguf_begin(&w->all, 3, w->tensors_n, w->pairs_n);
    for (size_t i = 0; i < w->pairs.n; i++) checkpoint_put(&w->all, 1, w->pairs.bytes[i]);
    for (size_t i = 0; i < w->table.n; i++) checkpoint_put(&w->all, 1, w->table.bytes[i]);
    checkpoint_gguf_write(&w->all, w->dir, "m.gguf", (int64_t)w->offset);
}

static inline const char *at(const struct writer *w, const char *name)
{
    return arena_printf(w->arena, "%s/%s", w->dir, name);
}

static inline struct model loaded(const struct writer *w, const char *name)
{
    struct model m;
    struct err e = {0};
    if (model_load(w->arena, at(w, name), NULL, 0, &m, &e) != ERR_OK) fail_msg("%s %s: %s", w->arch, name, e.text);
    return m;
}

static inline double weight_bytes(struct arena *a, const struct model *m)
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
static inline struct model explained(struct writer *w, const char *family)
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

enum { L = 3, D = 192, F = 352, N = 6, K = 2, H = 64, V = 1009, E = 7, TOP = 2, FE = 96 };

static inline void put_shape(struct writer *w)
{
    pair(w, "block_count", L);
    pair(w, "embedding_length", D);
    pair(w, "attention.head_count", N);
    if (!w->own_kv) pair(w, "attention.head_count_kv", K);
    pair(w, "attention.key_length", H);
    pair(w, "attention.value_length", H);
    pair(w, "context_length", 4099);
}

static inline void put_outside(struct writer *w, bool tied)
{
    tensor(w, "token_embd.weight", Q8_0, 0, V, D);
    if (!tied) tensor(w, "output.weight", F16, 0, V, D);
    tensor(w, "output_norm.weight", F32, 0, 0, D);
}

enum { BIAS = 1, O_BIAS = 2, QK_NORM = 4, SINKS = 8, FUSED = 16 };

static inline void put_attention(struct writer *w, int i, unsigned flags)
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

static inline void put_norms(struct writer *w, int i, int n)
{
    static const char *const NAMES[] = {"attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm"};
    for (int k = 0; k < n; k++) layer(w, F32, 0, 0, D, "blk.%d.%s.weight", i, NAMES[k]);
}

static inline void put_mlp(struct writer *w, int i, bool fused)
{
    if (!fused) layer(w, Q4_0, 0, F, D, "blk.%d.ffn_gate.weight", i);
    layer(w, Q4_0, 0, fused ? 2 * F : F, D, "blk.%d.ffn_up.weight", i);
    layer(w, Q8_0, 0, D, F, "blk.%d.ffn_down.weight", i);
}

static inline void put_experts(struct writer *w, int i, uint64_t width)
{
    layer(w, F32, 0, E, D, "blk.%d.ffn_gate_inp.weight", i);
    layer(w, Q4_0, E, width, D, "blk.%d.ffn_gate_exps.weight", i);
    layer(w, Q4_0, E, width, D, "blk.%d.ffn_up_exps.weight", i);
    layer(w, Q8_0, E, D, width, "blk.%d.ffn_down_exps.weight", i);
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

static inline void put_vectors(struct writer *w, int i, const char *stem, uint64_t n, bool biased)
{
    layer(w, F32, 0, 0, n, "blk.%d.%s.weight", i, stem);
    if (biased) layer(w, F32, 0, 0, n, "blk.%d.%s.bias", i, stem);
}

enum { BLOCKS = 4, INNER = 2 * D, STATE = 32, RANK = 12, TAPS = 4, SCANS = 12, GROUPS = 2 };

static inline void put_hybrid(struct writer *w, const char *arch, const uint32_t kv[BLOCKS])
{
    begin(w, arch);
    pair(w, "block_count", BLOCKS);
    pair(w, "embedding_length", D);
    pair(w, "context_length", 4099);
    pair(w, "attention.head_count", kv ? N : 0);
    if (!kv) return;
    pair_list(w, "attention.head_count_kv", META_I32, BLOCKS, kv);
    pair(w, "attention.key_length", H);
    pair(w, "attention.value_length", H);
}

static inline void put_ssm(struct writer *w, uint32_t rank, bool groups)
{
    pair(w, "ssm.conv_kernel", TAPS);
    pair(w, "ssm.inner_size", INNER);
    pair(w, "ssm.state_size", STATE);
    pair(w, "ssm.time_step_rank", rank);
    if (groups) pair(w, "ssm.group_count", GROUPS);
}

static inline void put_mamba(struct writer *w, int i, bool normed)
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

#endif
