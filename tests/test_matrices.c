/* Bytes of caches in formats with scales, and of stored matrices when every module of a layer has a format of its own:
 * each matrix by hand, with its own width and its own bits once a matrix. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "calc/cost/cost.h"

enum { SIDE_BY_SIDE_MAX = 4 };

/* The matrices that an operator stacks: modules and rows; of `in` columns, so many copies. once: bits of a matrix are
 * counted here (both halves of an absorbed product are rows of one). */
struct stack {
    enum module module[SIDE_BY_SIDE_MAX];
    int64_t rows[SIDE_BY_SIDE_MAX], in, copies;
    size_t n;
    bool halved;
};

static struct stack one(enum module module, int64_t rows, int64_t in)
{
    return (struct stack){.module = {module}, .rows = {rows}, .in = in, .copies = 1, .n = 1};
}

static struct stack two(enum module gate, enum module up, int64_t rows, int64_t in, bool gated)
{
    struct stack s = one(up, rows, in);
    if (!gated) return s;
    s.module[0] = gate;
    s.module[1] = up;
    s.rows[1] = rows;
    s.n = 2;
    return s;
}

static bool mixer_stack(const struct model *m, const struct mixer *x, const char *name, struct stack *s)
{
    const int64_t D = m->hidden, q = x->heads * x->head_dim, k = x->kv_heads * x->head_dim;
    const int64_t v = x->kv_heads * x->v_head_dim, y = x->heads * x->v_head_dim;
    const bool recurrent = x->kind == MIXER_RECURRENT, latent = x->kind == MIXER_LATENT;
    if (strcmp(name, "o_proj") == 0) {
        *s = one(MODULE_O, D, y);
    } else if (strcmp(name, "qkv_proj") == 0 && !recurrent) {
        *s = one(MODULE_Q, x->output_gate ? 2 * q : q, x->doubled_input ? 2 * D : D);
        s->n = 3;
        s->module[1] = MODULE_K;
        s->module[2] = MODULE_V;
        s->rows[1] = k;
        s->rows[2] = v;
    } else if (strcmp(name, "qkv_proj") == 0) { /* queries, keys and values are rows of one matrix */
        *s = one(MODULE_STATE_IN, 2 * k + y, D);
        if (x->recurrence.gate == GATE_FULL) {
            s->n = 2;
            s->module[1] = MODULE_STATE_GATE;
            s->rows[1] = y;
        }
    } else if (strcmp(name, "rates_proj") == 0) {
        *s = two(MODULE_STATE_RATES, MODULE_STATE_RATES, x->heads, D,
                 x->recurrence.delta && x->recurrence.decay == DECAY_HEAD);
    } else if (strcmp(name, "out_proj") == 0) {
        *s = one(MODULE_STATE_OUT, D, x->recurrence.block == RECURRENT_SELECTIVE ? x->heads : y);
    } else if (strcmp(name, "in_proj") == 0 && x->recurrence.block == RECURRENT_SELECTIVE) {
        *s = one(MODULE_STATE_IN, 2 * x->heads, D);
    } else if (strcmp(name, "in_proj") == 0 && x->recurrence.block == RECURRENT_SSD) {
        *s = one(MODULE_STATE_IN, 2 * y + 2 * k + x->heads, D);
    } else if (strcmp(name, "x_proj") == 0) {
        *s = one(MODULE_STATE_STEP_DOWN, x->recurrence.rank + 2 * x->head_dim, x->heads);
    } else if (strcmp(name, "dt_proj") == 0) {
        *s = one(MODULE_STATE_STEP_UP, x->heads, x->recurrence.rank);
    } else if (strcmp(name, "q_a_proj") == 0) {
        *s = one(MODULE_Q_A, x->q_rank, D);
    } else if (strcmp(name, "q_b_proj") == 0) {
        *s = one(MODULE_Q_B, x->heads * (x->head_dim + x->rope_dim), x->q_rank);
    } else if (strcmp(name, "q_proj") == 0 && latent) {
        *s = one(MODULE_Q, x->heads * (x->head_dim + x->rope_dim), D);
    } else if (strcmp(name, "kv_a_proj") == 0) {
        *s = one(MODULE_KV_A, x->kv_rank + x->rope_dim, D);
    } else if (strcmp(name, "kv_b_proj") == 0) {
        *s = one(MODULE_KV_B, q + y, x->kv_rank);
    } else if (strcmp(name, "q_absorb") == 0) {
        *s = one(MODULE_KV_B, q, x->kv_rank);
    } else if (strcmp(name, "v_absorb") == 0) {
        *s = one(MODULE_KV_B, y, x->kv_rank);
        s->halved = true;
    } else if (strcmp(name, "index_q_proj") == 0) {
        *s = one(MODULE_INDEX_Q, x->index_heads * x->index_dim, x->index_block_tokens ? D : x->q_rank);
    } else if (strcmp(name, "index_k_proj") == 0) {
        *s = one(MODULE_INDEX_K, x->index_dim, D);
    } else if (strcmp(name, "index_weights") == 0) {
        *s = one(MODULE_INDEX_WEIGHTS, x->index_heads, D);
    } else {
        return false;
    }
    return true;
}

static bool ffn_stack(const struct model *m, const struct ffn *f, const char *name, struct stack *s)
{
    const int64_t D = m->hidden, wide = f->latent_width > 0 ? f->latent_width : D;
    if (strcmp(name, "up_proj") == 0 || strcmp(name, "mlp") == 0) {
        *s = two(MODULE_GATE, MODULE_UP, f->width, D, f->gated);
    } else if (strcmp(name, "down_proj") == 0) {
        *s = one(MODULE_DOWN, D, f->width);
    } else if (strcmp(name, "experts_up") == 0) {
        *s = two(MODULE_EXPERT_GATE, MODULE_EXPERT_UP, f->width, wide, f->gated);
        s->copies = f->experts;
    } else if (strcmp(name, "experts_down") == 0) {
        *s = one(MODULE_EXPERT_DOWN, wide, f->width);
        s->copies = f->experts;
    } else if (strcmp(name, "shared_up") == 0) {
        *s = two(MODULE_SHARED_GATE, MODULE_SHARED_UP, f->shared_width, D, f->gated);
    } else if (strcmp(name, "shared_down") == 0) {
        *s = one(MODULE_SHARED_DOWN, D, f->shared_width);
    } else if (strcmp(name, "shared_gate") == 0) {
        *s = one(MODULE_SHARED_SWITCH, 1, D);
    } else if (strcmp(name, "router") == 0) {
        *s = one(MODULE_ROUTER, f->experts, D);
    } else if (strcmp(name, "latent_down") == 0) {
        *s = one(MODULE_LATENT_DOWN, f->latent_width, D);
    } else if (strcmp(name, "latent_up") == 0) {
        *s = one(MODULE_LATENT_UP, D, f->latent_width);
    } else {
        return false;
    }
    return true;
}

static double bytes_of(const struct stack *s, const struct dtype *d)
{
    double bytes = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct dtype *own = &d[s->module[i]];
        bytes += (double)s->rows[i] * (double)s->in * own->bits / 8 + (s->halved ? 0 : own->matrix_bits / 8);
    }
    return (double)s->copies * bytes;
}

static size_t check_op(const struct model *m, const struct cost_op *op, const struct dtype *d)
{
    const struct layer_kind *k = &m->kinds[op->kind_index];
    struct stack s;
    double found = 0;
    if (!mixer_stack(m, &k->mixer, op->name, &s) && !ffn_stack(m, &k->ffn, op->name, &s)) return 0;
    assert_true(sym_constant(op->tensor[0].bytes, &found));
    const double wanted = bytes_of(&s, d);
    if (!(fabs(found - wanted) <= 1e-12 * wanted))
        fail_msg("%s, %s: found %.17g bytes, wanted %.17g", m->name, op->name, found, wanted);
    double widest = 0;
    for (size_t i = 0; i < s.n; i++) widest = fmax(widest, d[s.module[i]].bits);
    if (strcmp(op->name, "mlp") == 0) {
        const struct stack down = one(MODULE_DOWN, m->hidden, k->ffn.width);
        assert_true(sym_constant(op->tensor[1].bytes, &found));
        assert_true(fabs(found - bytes_of(&down, d)) <= 1e-12 * found);
        widest = fmax(widest, d[MODULE_DOWN].bits);
    }
    assert_non_null(op->format); /* the widest decides the unit */
    assert_true(op->format->bits == widest);
    return 1;
}

/* Formats from narrow to wide, and from wide to narrow. */
static void check_model(const char *name, bool course, bool falling, size_t least)
{
    struct arena *a = arena_open();
    struct err e = {0};
    struct model m;
    struct dtype d[MODULES];
    const struct dtype *formats[MODULES];
    if (model_load(a, name, NULL, 0, &m, &e) != ERR_OK) fail_msg("%s", e.text);
    for (int i = 0; i < MODULES; i++) {
        const double step = falling ? MODULES - i : i;
        d[i] = (struct dtype){
            .name = "made", .bits = 3 + 2 * step, .matrix_bits = 8 * (101 + 7 * step), .compute = "bf16"};
        formats[i] = &d[i];
    }
    for (size_t i = 0; i < m.kinds_n; i++) m.kinds[i].formats = formats;
    struct sym_ctx *c = sym_open(a);
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_conventions v = cost_conventions_of(course);
    size_t seen = 0;
    for (int absorbed = 0; absorbed < 2; absorbed++) {
        const struct cost_pass pass = {.name = "pass",
                                       .B = y.B,
                                       .T = absorbed ? sym_int(c, 1) : y.T,
                                       .S = absorbed ? y.S : y.T,
                                       .absorbed = absorbed > 0};
        struct cost_ops ops;
        assert_int_equal(cost_build(a, c, &y, &m, &v, &pass, 1, &ops, &e), ERR_OK);
        assert_int_equal(cost_bind(c, &y, &m, 1, &ops, &e), ERR_OK);
        for (size_t i = 0; i < ops.n; i++)
            if (ops.op[i].kind_index >= 0 && ops.op[i].tensors_n > 0) seen += check_op(&m, &ops.op[i], d);
    }
    if (seen < least) fail_msg("%s: only %zu operators were seen", name, seen);
    arena_close(a);
}

static void test_formats_of_modules(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool course;
        size_t least;
    } MODELS[] = {{"llama-3.1-8b", false, 8},
                  {"llama-3.1-8b", true, 6},
                  {"phi-2", false, 8},
                  {"phi-2", true, 6},
                  {"qwen1.5-moe-a2.7b", false, 16},
                  {"deepseek-v3.2", false, 40},
                  {"deepseek-v2-lite", false, 20},
                  {"qwen3-coder-next", false, 30},
                  {"jamba-1.5-mini", false, 20},
                  {"granite-4.0-h-small", false, 14},
                  {"minimax-m1-80k", false, 12},
                  {"zamba2-7b", false, 4}};
    for (size_t i = 0; i < sizeof MODELS / sizeof MODELS[0]; i++)
        for (int falling = 0; falling < 2; falling++)
            check_model(MODELS[i].name, MODELS[i].course, falling > 0, MODELS[i].least);
}

/* ---- caches ---- */

/* Bytes of `n` elements that are cached together, or with each of so many heads. */
static double cached(const struct dtype *d, double n, double heads)
{
    if (d->group_in == GROUP_HEAD) return n * d->bits / 8 + heads * d->scale_bits / 8;
    if (d->scale_bits == 0) return n * d->bits / 8;
    const double groups = ceil(n / (double)d->group_in);
    const double above = d->super_groups ? groups / (double)d->super_groups * d->super_bits / 8 : 0;
    return n * d->bits / 8 + groups * d->scale_bits / 8 + above;
}

static const struct cost_op *op_of(const struct cost_ops *ops, const char *name)
{
    for (size_t i = 0; i < ops->n; i++)
        if (strcmp(ops->op[i].name, name) == 0) return &ops->op[i];
    return NULL;
}

static double bytes_at(struct sym_ctx *c, const struct cost_symbols *y, const struct sym *x, double B, double S)
{
    const struct sym_binding at[] = {{y->B, sym_num(c, B)}, {y->S, sym_num(c, S)}};
    double v = 0;
    assert_true(sym_constant(sym_bind(c, x, at, 2), &v));
    return v;
}

/* Keys and values of the KV heads that a rank has; a latent and the keys of an indexer on every rank. */
static void check_cache(const char *name, const struct dtype *d, int64_t tp)
{
    struct arena *a = arena_open();
    struct err e = {0};
    struct model m;
    struct cost_cache cache;
    struct cost_ops ops;
    if (model_load(a, name, NULL, 0, &m, &e) != ERR_OK) fail_msg("%s", e.text);
    m.kv = *d;
    struct sym_ctx *c = sym_open(a);
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_conventions v = {.causal_full = false};
    const struct cost_pass pass = {.name = "decode", .B = y.B, .T = sym_int(c, 1), .S = y.S, .absorbed = true};
    assert_int_equal(cost_cache(c, &y, &m, tp, &cache, &e), ERR_OK);
    assert_int_equal(cost_build(a, c, &y, &m, &v, &pass, tp, &ops, &e), ERR_OK);
    assert_int_equal(cost_bind(c, &y, &m, tp, &ops, &e), ERR_OK);
    double of_token = 0, index = 0, written = 0;
    for (size_t i = 0; i < m.kinds_n; i++) {
        const struct mixer *x = &m.kinds[i].mixer;
        const double n = (double)m.kinds[i].count, kv = x->kv_heads < tp ? 1 : (double)(x->kv_heads / tp);
        const bool latent = x->kind == MIXER_LATENT;
        const double elems = latent ? (double)(x->kv_rank + x->rope_dim) : kv * (double)(x->head_dim + x->v_head_dim);
        written = cached(d, elems, latent ? 1 : 2 * kv);
        of_token += n * written;
        const double keys = (double)x->index_dim; /* of an indexer: fp8, and a scale of 4 bytes for 128 */
        index += x->index_heads ? n * (keys + 4 * ceil(keys / 128)) : 0;
    }
    assert_true(fabs(cache.bytes_per_token_full - of_token) <= 1e-12 * of_token);
    assert_true(fabs(cache.bytes_per_token_index - index) <= 1e-12 * index);
    assert_true(fabs(bytes_at(c, &y, cache.bytes_per_sequence, 1, 997) - 997 * (of_token + index)) <= 1e-9 * of_token);
    const struct cost_op *write = op_of(&ops, "kv_write"), *of_index = op_of(&ops, "index_write");
    assert_non_null(write);
    assert_true(fabs(bytes_at(c, &y, write->kv_bytes, 13, 997) - 13 * written) <= 1e-12 * 13 * written);
    assert_true(!of_index == (index == 0));
    const double width = (double)m.kinds[m.kinds_n - 1].mixer.index_dim, one = width + 4 * ceil(width / 128);
    if (of_index) assert_true(fabs(bytes_at(c, &y, of_index->kv_bytes, 13, 997) - 13 * one) <= 1e-12 * 13 * one);
    arena_close(a);
}

static void test_caches_by_hand(void **state)
{
    (void)state;
    static const struct dtype FORMATS[] = {
        {.name = "plain", .bits = 11},
        {.name = "groups", .bits = 5, .group_in = 48, .block_out = 1, .scale_bits = 12},
        {.name = "a group of one", .bits = 5, .group_in = 1, .block_out = 1, .scale_bits = 0.5},
        {.name = "groups of groups",
         .bits = 5,
         .group_in = 48,
         .block_out = 1,
         .scale_bits = 12,
         .super_groups = 7,
         .super_bits = 24},
        {.name = "single groups of groups",
         .bits = 5,
         .group_in = 48,
         .block_out = 1,
         .scale_bits = 12,
         .super_groups = 1,
         .super_bits = 24},
        {.name = "heads", .bits = 7, .group_in = GROUP_HEAD, .scale_bits = 29},
    };
    for (size_t i = 0; i < sizeof FORMATS / sizeof FORMATS[0]; i++)
        for (int64_t tp = 1; tp <= 16; tp *= 2) {
            check_cache("llama-3.1-8b", &FORMATS[i], tp);
            check_cache("deepseek-v3.2", &FORMATS[i], tp);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats_of_modules),
        cmocka_unit_test(test_caches_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
