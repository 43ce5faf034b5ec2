/* matrix -- stored matrices: which format each has, its bytes, and what a format with outliers computes twice.
 * Derivation: MODEL.md "Stored precision". */
#include <math.h>
#include <string.h>

#include "calc/cost/build.h"

#define Y (b->y)
#define INT(n) sym_int(b->c, (n))
#define PROD(...) SYM_PROD(b->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(b->c, __VA_ARGS__)

/* The matrices of an operator, in the order in which it stacks them. One of two alone is the second. Of two rows with a
 * name the first that lists as many as the operator has. */
static const struct {
    const char *op;
    enum module of[4]; /* MODULE_STATE_IN more than once: stored as one matrix */
    bool recurrent;
} STACKS[] = {
    {"qkv_proj", {MODULE_Q, MODULE_K, MODULE_V, MODULES}, false},
    {"qk_proj", {MODULE_Q, MODULE_K, MODULES, MODULES}, false},
    {"q_proj", {MODULE_Q, MODULE_K, MODULE_V, MODULES}, false},
    {"o_proj", {MODULE_O, MODULES, MODULES, MODULES}, false},
    {"kv_proj", {MODULE_KV_A, MODULES, MODULES, MODULES}, false},
    {"kv_proj", {MODULE_K, MODULE_V, MODULES, MODULES}, false},
    {"source_kv_proj", {MODULE_K, MODULE_V, MODULES, MODULES}, false},
    {"o_a_proj", {MODULE_O, MODULES, MODULES, MODULES}, false},
    {"o_b_proj", {MODULE_O, MODULES, MODULES, MODULES}, false},
    {"qkv_a_proj", {MODULE_Q_A, MODULE_K, MODULE_V, MODULES}, false},
    {"q_a_proj", {MODULE_Q_A, MODULES, MODULES, MODULES}, false},
    {"q_b_proj", {MODULE_Q_B, MODULES, MODULES, MODULES}, false},
    {"kv_a_proj", {MODULE_KV_A, MODULES, MODULES, MODULES}, false},
    {"kv_b_proj", {MODULE_KV_B, MODULES, MODULES, MODULES}, false},
    {"q_absorb", {MODULE_KV_B, MODULES, MODULES, MODULES}, false},
    {"v_absorb", {MODULE_KV_B, MODULES, MODULES, MODULES}, false},
    {"index_q_proj", {MODULE_INDEX_Q, MODULES, MODULES, MODULES}, false},
    {"index_k_proj", {MODULE_INDEX_K, MODULES, MODULES, MODULES}, false},
    {"index_weights", {MODULE_INDEX_WEIGHTS, MODULES, MODULES, MODULES}, false},
    {"up_proj", {MODULE_GATE, MODULE_UP, MODULES, MODULES}, false},
    {"down_proj", {MODULE_DOWN, MODULES, MODULES, MODULES}, false},
    {"mlp", {MODULE_GATE, MODULE_UP, MODULE_DOWN, MODULES}, false},
    {"shared_up", {MODULE_SHARED_GATE, MODULE_SHARED_UP, MODULES, MODULES}, false},
    {"shared_down", {MODULE_SHARED_DOWN, MODULES, MODULES, MODULES}, false},
    {"experts_up", {MODULE_EXPERT_GATE, MODULE_EXPERT_UP, MODULES, MODULES}, false},
    {"experts_down", {MODULE_EXPERT_DOWN, MODULES, MODULES, MODULES}, false},
    {"router", {MODULE_ROUTER, MODULES, MODULES, MODULES}, false},
    {"latent_down", {MODULE_LATENT_DOWN, MODULES, MODULES, MODULES}, false},
    {"latent_up", {MODULE_LATENT_UP, MODULES, MODULES, MODULES}, false},
    {"in_proj", {MODULE_STATE_IN, MODULE_STATE_IN, MODULES, MODULES}, true},
    {"qkv_proj", {MODULE_STATE_IN, MODULE_STATE_IN, MODULE_STATE_IN, MODULE_STATE_GATE}, true},
    {"rates_proj", {MODULE_STATE_RATES, MODULE_STATE_RATES, MODULES, MODULES}, true},
    {"x_proj", {MODULE_STATE_STEP_DOWN, MODULES, MODULES, MODULES}, true},
    {"dt_proj", {MODULE_STATE_STEP_UP, MODULES, MODULES, MODULES}, true},
    {"gates", {MODULE_STATE_BLOCKS, MODULES, MODULES, MODULES}, true},
    {"r_proj", {MODULE_STATE_IN, MODULES, MODULES, MODULES}, true},
    {"k_proj", {MODULE_STATE_IN, MODULES, MODULES, MODULES}, true},
    {"v_proj", {MODULE_STATE_IN, MODULES, MODULES, MODULES}, true},
    {"receptance", {MODULE_CHANNEL_GATE, MODULES, MODULES, MODULES}, false},
    {"decay_down", {MODULE_DECAY_DOWN, MODULES, MODULES, MODULES}, true},
    {"decay_up", {MODULE_DECAY_UP, MODULES, MODULES, MODULES}, true},
    {"gate_down", {MODULE_GATE_DOWN, MODULES, MODULES, MODULES}, true},
    {"gate_up", {MODULE_GATE_UP, MODULES, MODULES, MODULES}, true},
    {"output_gate_proj", {MODULE_OUT_GATE, MODULES, MODULES, MODULES}, false},
    {"qkv_adapter_down", {MODULE_MIXER_ADAPTER, MODULES, MODULES, MODULES}, false},
    {"qkv_adapter_up", {MODULE_MIXER_ADAPTER, MODULES, MODULES, MODULES}, false},
    {"adapter_down", {MODULE_FFN_ADAPTER, MODULES, MODULES, MODULES}, false},
    {"adapter_up", {MODULE_FFN_ADAPTER, MODULES, MODULES, MODULES}, false},
    {"block_proj", {MODULE_BLOCK_OUT, MODULES, MODULES, MODULES}, false},
    {"out_proj", {MODULE_STATE_OUT, MODULES, MODULES, MODULES}, true},
    {"shared_gate", {MODULE_SHARED_SWITCH, MODULES, MODULES, MODULES}, false},
};

/* Matrix i of the n that an operator has. */
static enum module module_of(const char *op, bool recurrent, size_t i, size_t n)
{
    enum { ROWS = sizeof STACKS / sizeof STACKS[0] };
    size_t row = ROWS;
    for (size_t k = 0; k < ROWS; k++) {
        if (strcmp(STACKS[k].op, op) != 0) continue;
        if (recurrent != STACKS[k].recurrent && strcmp(op, "qkv_proj") == 0) continue;
        if (row == ROWS) row = k;
        if (n > 1 && STACKS[k].of[1] == MODULES) continue;
        row = k;
        break;
    }
    if (row == ROWS) return MODULES;
    const enum module first = STACKS[row].of[0];
    const bool gated = first == MODULE_GATE || first == MODULE_SHARED_GATE || first == MODULE_EXPERT_GATE;
    const size_t all = STACKS[row].of[2] != MODULES ? 3 : 2;
    const size_t at = gated && n < all ? i + all - n : i;
    return at < 4 ? STACKS[row].of[at] : MODULES;
}

static enum module module_in(const struct build *b, const char *op, size_t i, size_t n)
{
    if (b->kind_index < 0) return MODULES;
    return module_of(op, b->m->kinds[b->kind_index].mixer.kind == MIXER_RECURRENT, i, n);
}

static const struct dtype *format_of(const struct build *b, const char *op, size_t i, size_t n, enum weight_class class)
{
    const struct dtype *const *own = b->kind_index < 0 ? NULL : b->m->kinds[b->kind_index].formats;
    const enum module module = own ? module_in(b, op, i, n) : MODULES;
    return module != MODULES && own[module] ? own[module] : &b->m->weights[class];
}

/* Bytes of the scales of one matrix, or 0. */
static const struct sym *scale_bytes(struct build *b, const struct dtype *d, const struct sym *out,
                                     const struct sym *in, bool counted_before)
{
    const struct sym *bytes = INT(0);
    if (d->scale_bits > 0 && d->group_in != 0) {
        const struct sym *groups;
        if (d->flat) {
            groups = sym_ceil(b->c, sym_div(b->c, PROD(out, in), INT(d->group_in)));
        } else {
            const struct sym *down = d->block_out == 1 ? out : sym_ceil(b->c, sym_div(b->c, out, INT(d->block_out)));
            const struct sym *across = d->group_in < 0 ? INT(1) : sym_ceil(b->c, sym_div(b->c, in, INT(d->group_in)));
            groups = PROD(down, across);
        }
        bytes = PROD(sym_num(b->c, d->scale_bits / 8), groups);
        if (d->super_groups > 0) {
            const struct sym *above = sym_ceil(b->c, sym_div(b->c, groups, INT(d->super_groups)));
            bytes = SUM(bytes, PROD(sym_num(b->c, d->super_bits / 8), above));
        }
    }
    if (counted_before) return bytes;
    if (d->column_bits > 0) bytes = SUM(bytes, PROD(sym_num(b->c, d->column_bits / 8), in));
    return d->matrix_bits > 0 ? SUM(bytes, sym_num(b->c, d->matrix_bits / 8)) : bytes;
}

/* Both halves of an absorbed product are rows of one stored matrix: what it has once counts with the first. */
static bool second_half(const char *op) { return strcmp(op, "v_absorb") == 0; }

void build_matrices(struct build *b, struct cost_op *op, enum weight_class class, const struct build_stack *s)
{
    const struct dtype *usual = &b->m->weights[class], *widest = NULL;
    const struct sym *width = sym_sum(b->c, s->n, s->out), *elems = PROD(s->copies, s->in, width), *scales = INT(0);
    const struct sym *bytes = INT(0), *joined = INT(0);
    bool own = false;
    for (size_t i = 0; i < s->n; i++) {
        const struct dtype *d = format_of(b, op->name, s->first + i, s->all, class);
        const struct sym *one = d == usual ? build_width(b, class) : sym_num(b->c, d->bits / 8);
        own = own || d != usual;
        if (!widest || d->bits > widest->bits) widest = d;
        bytes = SUM(bytes, PROD(s->copies, s->in, s->out[i], one));
        joined = SUM(joined, s->out[i]);
        if (i + 1 < s->n && module_in(b, op->name, s->first + i, s->all) == MODULE_STATE_IN &&
            module_in(b, op->name, s->first + i + 1, s->all) == MODULE_STATE_IN)
            continue;
        scales = SUM(scales, PROD(s->copies, scale_bytes(b, d, joined, s->in, second_half(op->name))));
        joined = INT(0);
    }
    if (!own) bytes = PROD(elems, build_width(b, class));
    op->tensor[op->tensors_n++] =
        (struct cost_tensor){.class = class, .elems = elems, .bytes = SUM(bytes, scales), .shared = b->borrowed};
    /* one kernel multiplies them all, at the rate of the widest */
    if (own && (!op->format || widest->bits > op->format->bits)) op->format = widest;
}

void build_tensor(struct build *b, struct cost_op *op, enum weight_class class, const struct sym *copies,
                  const struct sym *out, const struct sym *in)
{
    const struct build_stack s = {
        .first = op->tensors_n, .all = op->tensors_n + 1, .n = 1, .copies = copies, .out = &out, .in = in};
    build_matrices(b, op, class, &s);
}

void build_outliers(struct build *b, struct cost_op *op, enum weight_class class, const struct build_stack *s,
                    const struct sym *rows, const struct sym *share)
{
    enum { PARTS = 1000000 };
    for (size_t i = 0; i < s->n; i++) {
        const struct dtype *d = format_of(b, op->name, s->first + i, s->all, class);
        if (!(d->outlier_frac > 0)) continue;
        const struct sym *columns = PROD(sym_rat(b->c, llround(d->outlier_frac * PARTS), PARTS), s->in);
        const struct sym *flops = PROD(INT(2), rows, columns, s->out[i]);
        op->flops = SUM(op->flops, flops);
        op->half_flops = SUM(op->half_flops, flops);
        op->weight_bytes = SUM(op->weight_bytes, PROD(s->copies, share, columns, s->out[i], Y->b_act));
        op->activation_bytes = SUM(op->activation_bytes, PROD(rows, SUM(columns, s->out[i], s->out[i]), Y->b_act));
    }
}
