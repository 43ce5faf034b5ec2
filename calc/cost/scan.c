/* scan -- short convolutions and recurrences over the tokens. Derivations: MODEL.md "Scans". */
#include "calc/cost/build.h"

#define Y (b->y)
#define INT(n) sym_int(b->c, (n))
#define PROD(...) SYM_PROD(b->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(b->c, __VA_ARGS__)
#define NEG(x) sym_mul(b->c, INT(-1), (x))
#define OVER(x, n) sym_div(b->c, (x), INT(n))

/* Elementwise flops. A decay is made of its input by a sum, a softplus (exp, +, log) and a product. */
enum { DECAY_FLOPS = 5, SOFTPLUS_FLOPS = 3, SIGMOID_FLOPS = 4, UNIT_FLOPS = 3, SILU_GATE_FLOPS = 5 };

/* Of the gates of an mLSTM's token and head: two soft caps (over, tanh, times), log-sigmoid (exp, +, log), the exponent
 * kept (+, max) and two factors by it (-, exp, -, exp), and the least divisor (neg, exp, abs, max). */
enum { CAP_FLOPS = 3, MEMORY_FLOPS = 2 * CAP_FLOPS + 3 + 2 + 4 + 4 };

/* Width of a query or key before a feature map. */
static const struct sym *key_width(const struct cost_symbols *y, const struct recurrence *p)
{
    return p->feature_dim > 0 ? y->Hf : y->H;
}

/* Channels that pass the short convolution. */
static const struct sym *conv_channels(struct sym_ctx *c, const struct cost_symbols *y, const struct mixer *x)
{
    const struct recurrence *p = &x->recurrence;
    const struct sym *values = sym_mul(c, y->N, y->Hv);
    if (x->kind == MIXER_ATTENTION)
        return sym_add(c, sym_mul(c, y->N, y->H), sym_mul(c, y->K, sym_add(c, y->H, y->Hv)));
    if (p->block == RECURRENT_FILTER) return sym_mul(c, sym_int(c, 3), values);
    const bool keys = (p->block == RECURRENT_SSD && p->rank == 0) || p->block == RECURRENT_LINEAR;
    return keys ? sym_add(c, values, SYM_PROD(c, sym_int(c, 2), y->K, key_width(y, p))) : values;
}

/* Elements of the recurrence itself. */
static const struct sym *state_elems(struct sym_ctx *c, const struct cost_symbols *y, const struct recurrence *p)
{
    const struct sym *two = sym_int(c, 2), *matrices = SYM_PROD(c, y->N, y->H, y->Hv);
    switch (p->block) {
    case RECURRENT_LINEAR: /* the sum of the weights beside the values; the largest exponent */
        if (p->memory) return SYM_SUM(c, matrices, sym_mul(c, y->N, y->H), y->N);
        return p->feature_dim > 0 ? sym_add(c, matrices, sym_mul(c, y->N, y->H)) : matrices;
    case RECURRENT_WKV: return sym_mul(c, sym_int(c, 3), matrices);
    case RECURRENT_SELECTIVE:
    case RECURRENT_SSD:
    case RECURRENT_TIME_MIX:
    case RECURRENT_FINCH:
    case RECURRENT_GOOSE: return matrices;
    case RECURRENT_LRU: return sym_mul(c, y->N, y->Hv);
    case RECURRENT_DIAGONAL: /* complex poles of each pair of a key and a value element; columns of the shift */
        matrices = SYM_PROD(c, two, y->N, y->Hv, y->Hv, y->H);
        return p->conv_taps > 0 ? sym_add(c, matrices, SYM_PROD(c, y->N, y->Hv, y->J)) : matrices;
    case RECURRENT_FILTER: return p->filter_width > 0 ? sym_int(c, 0) : sym_mul(c, two, matrices);
    case RECURRENT_CONV:
    case RECURRENT_MEMORY: break;
    }
    return sym_int(c, 0);
}

struct scan_state scan_state(struct sym_ctx *c, const struct cost_symbols *y, const struct layer_kind *k)
{
    const struct mixer *x = &k->mixer;
    const struct recurrence *p = &x->recurrence;
    struct scan_state s = {sym_int(c, 0), sym_int(c, 0)};
    const bool recurs = x->kind == MIXER_RECURRENT;
    const enum recurrent_block block = p->block;
    if (recurs) s.recurrent = state_elems(c, y, p);
    const bool convolves = recurs ? block != RECURRENT_DIAGONAL : x->kind == MIXER_ATTENTION;
    if (p->conv_taps > 0 && convolves) s.conv = sym_mul(c, sym_sub(c, y->J, sym_int(c, 1)), conv_channels(c, y, x));
    if (recurs &&
        (block == RECURRENT_WKV || block == RECURRENT_TIME_MIX || block == RECURRENT_FINCH || block == RECURRENT_GOOSE))
        s.conv = y->D;
    if (k->ffn.channel_mix) s.conv = sym_add(c, s.conv, y->D);
    return s;
}

/* A pass that begins with its sequences finds no state, and one without a cache leaves none. */
static bool continues(const struct build *b) { return !b->pass->uncached && b->pass->S != b->pass->T; }

/* Of a sequence in a mixed pass: what it leaves, and what it found where it had begun before. */
static const struct sym *found(struct build *b, const struct sym *leaves, const struct sym *finds)
{
    const struct sym *begun = sym_min(b->c, INT(1), SUM(b->pass->S, NEG(b->pass->T)));
    return build_each(b, SUM(leaves, PROD(finds, begun)));
}

void build_state(struct build *b, struct cost_op *op, const struct sym *elems, const struct sym *element_bytes)
{
    build_apart(b);
    if (b->pass->uncached) return;
    const struct sym *bytes = PROD(b->many, build_each(b, INT(1)), elems, element_bytes);
    op->held_bytes = bytes;
    op->state_bytes = op->state_needed_bytes = b->pass->sums  ? PROD(found(b, INT(1), INT(1)), elems, element_bytes)
                                               : continues(b) ? PROD(INT(2), bytes)
                                                              : bytes;
}

/* All tensors are read whole. */
void build_read(struct build *b, struct cost_op *op)
{
    for (size_t i = 0; i < op->tensors_n; i++) op->weight_bytes = SUM(op->weight_bytes, op->tensor[i].bytes);
}

const struct sym *build_conv_channels(struct build *b, const struct mixer *x) { return conv_channels(b->c, Y, x); }

void build_conv(struct build *b, const struct mixer *x, const struct sym *channels, int64_t flops, int64_t inputs)
{
    struct cost_op *op = build_op(b, OP_CONV, "conv", "[B*T, channels] with J taps each");
    const bool bias = x->recurrence.conv_bias;
    const struct sym *elems = PROD(b->part_rows, channels), *old = SUM(Y->J, INT(-1));
    op->vector_flops = PROD(SUM(PROD(INT(2), Y->J), INT(flops + bias)), elems);
    op->activation_bytes = PROD(INT(inputs + 1), elems, Y->b_act);
    build_vector(b, op, PROD(channels, Y->J), false);
    if (bias) build_vector(b, op, channels, false);
    build_read(b, op);
    build_state(b, op, PROD(old, channels), Y->b_act);
    if (b->pass->uncached) return;
    /* a ring of columns needs only the new ones written */
    const struct sym *columns = sym_min(b->c, b->pass->T, old);
    if (b->pass->sums)
        columns = found(b, columns, old);
    else if (continues(b))
        columns = SUM(columns, old);
    op->state_needed_bytes = PROD(b->many, columns, channels, Y->b_act);
}

/* x*mix + before*(1 - mix), n times: 3 flops an element. */
void build_token_shift(struct build *b, const char *name, int64_t n)
{
    const struct sym *elems = PROD(b->part_rows, Y->D);
    build_elementwise(b, OP_CONV, name, "[B*T, D] with the token before", elems, 3 * n, 1 + n);
    struct cost_op *op = &b->ops->op[b->ops->n - 1];
    build_vector(b, op, PROD(INT(n), Y->D), false);
    build_read(b, op);
    build_state(b, op, Y->D, Y->b_act);
}

/* What the T tokens of one sequence are as chunks of U: pairs of a query with a key of its own chunk, those with an
 * earlier key, multiply-adds that invert a unit triangle by substitution, and how many chunks. */
struct chunks {
    const struct sym *pairs, *earlier, *solve, *count;
};

static struct chunks cut(struct build *b)
{
    const struct sym *T = b->pass->T, *U = Y->Tc, *one = INT(1), *two = INT(2);
    struct chunks r;
    r.count = sym_ceil(b->c, sym_div(b->c, T, U));
    const struct sym *full = SUM(r.count, INT(-1)), *rest = SUM(T, NEG(PROD(full, U)));
    if (b->v->causal_full) {
        r.pairs = r.earlier = SUM(PROD(full, U, U), PROD(rest, rest));
    } else {
        r.pairs = OVER(SUM(PROD(full, U, SUM(U, one)), PROD(rest, SUM(rest, one))), 2);
        r.earlier = SUM(r.pairs, NEG(T));
    }
    const struct sym *whole = PROD(full, U, sym_sub(b->c, U, one), sym_sub(b->c, U, two));
    r.solve = OVER(SUM(whole, PROD(rest, sym_sub(b->c, rest, one), sym_sub(b->c, rest, two))), 6);
    return (struct chunks){build_each(b, r.pairs), build_each(b, r.earlier), build_each(b, r.solve),
                           build_each(b, r.count)};
}

/* Decays that the scan reads per token, all heads. */
static const struct sym *decays(struct build *b, enum decay_kind kind)
{
    return kind == DECAY_HEAD ? Y->N : kind == DECAY_CHANNEL ? PROD(Y->N, Y->H) : INT(0);
}

/* One token after the other: the state decays, takes up k v' and answers q; the delta rule first subtracts from v what
 * the state answers to k. All elementwise. */
/* A Taylor map: scaled elements, their products, which are scaled too. Of a weight that is a polynomial of a score in
 * the narrow width: s*(s*c + c) + 1. */
enum { MAP_FLOPS_ELEMENT = 1, MAP_FLOPS_PRODUCT = 2, POLYNOMIAL_FLOPS = 4 };

static const struct sym *map_flops(struct build *b)
{
    const struct sym *one = SUM(PROD(INT(MAP_FLOPS_ELEMENT), Y->Hf), PROD(INT(MAP_FLOPS_PRODUCT), Y->Hf, Y->Hf));
    return PROD(INT(2), Y->K, one); /* queries and keys, of one token */
}

static const struct sym *step_flops(struct build *b, const struct recurrence *p, enum decay_kind decay)
{
    const struct sym *state = PROD(Y->N, Y->H, Y->Hv), *values = PROD(Y->N, Y->Hv);
    const struct sym *n = PROD(INT(decay == DECAY_NONE ? 4 : 5), state);
    n = SUM(n, PROD(INT(p->memory ? MEMORY_FLOPS : DECAY_FLOPS + 1), decays(b, decay)));
    if (p->memory) /* the key by its gate; the sum of keys decays, takes it up and answers the query, which divides */
        n = SUM(n, PROD(INT(1 + 2 + 2), Y->N, Y->H), values);
    if (p->delta)
        n = SUM(n, PROD(INT(2), state), PROD(INT(2), values), PROD(INT(SIGMOID_FLOPS), Y->N),
                PROD(INT(2 * UNIT_FLOPS), Y->K, Y->H));
    if (p->feature_dim > 0) /* the sum of the keys takes one up, answers the query, and divides */
        n = SUM(n, map_flops(b), PROD(INT(3), Y->N, Y->H), values, Y->N);
    return PROD(b->part_rows, n);
}

/* Chunks: scores and weighted values within, one state between. Products on the matrix unit. */
static const struct sym *chunk_products(struct build *b, const struct recurrence *p, const struct chunks *at)
{
    const struct sym *state = PROD(Y->N, Y->H, Y->Hv), *two = INT(2);
    const struct sym *scored = p->delta ? Y->N : Y->K; /* heads of a group share scores, unless each turns its keys */
    const struct sym *n =
        SUM(PROD(SUM(PROD(scored, key_width(Y, p)), PROD(Y->N, Y->Hv)), at->pairs), PROD(two, state, b->tokens));
    if (p->delta) {
        const struct sym *head = SUM(PROD(Y->H, at->earlier), PROD(SUM(Y->H, Y->Hv), at->pairs), at->solve);
        n = SUM(n, PROD(Y->N, head), PROD(state, b->tokens));
    }
    return PROD(two, b->many, n);
}

static const struct sym *chunk_elementwise(struct build *b, const struct recurrence *p, enum decay_kind decay,
                                           const struct chunks *at)
{
    const struct sym *N = Y->N, *H = Y->H, *Hv = Y->Hv, *T = b->tokens;
    const struct sym *token = Hv, *pair = INT(0),
                     *earlier = INT(0); /* per head; within and before the chunk are added */
    switch (decay) {
    case DECAY_NONE: break;
    case DECAY_FIXED:
        pair = INT(1);
        token = PROD(INT(3), Hv);
        break;
    case DECAY_HEAD:
        pair = earlier = INT(3);
        token = SUM(PROD(INT(3), Hv), INT(DECAY_FLOPS + 4));
        break;
    case DECAY_CHANNEL: token = SUM(Hv, PROD(INT(DECAY_FLOPS + 9), H)); break;
    }
    const struct sym *n = PROD(N, H, Hv, at->count, INT(decay == DECAY_NONE ? 1 : 2));
    if (p->delta) {
        const bool decayed = decay == DECAY_HEAD || decay == DECAY_CHANNEL;
        token = SUM(token, INT(SIGMOID_FLOPS), PROD(INT(decayed ? 2 : 1), H), PROD(INT(2), Hv));
        n = SUM(n, PROD(INT(2 * UNIT_FLOPS), Y->K, H, T), PROD(N, SUM(earlier, INT(1)), at->earlier));
    }
    if (p->feature_dim > 0) { /* a polynomial of each score, summed; sums of keys between chunks; a division */
        pair = SUM(pair, INT(POLYNOMIAL_FLOPS + 1));
        token = SUM(token, PROD(INT(3), H), Hv, INT(2));
        n = SUM(n, PROD(map_flops(b), T), PROD(N, H, at->count));
    }
    if (p->memory) { /* the largest exponent, weights by it, their sum; the sum of keys as the state; a division. Gates
                      * in place of a decay's making */
        pair = SUM(pair, INT(3));
        token = SUM(token, PROD(INT(3), H), Hv, INT(2 + MEMORY_FLOPS - DECAY_FLOPS));
        n = SUM(n, PROD(INT(2), N, H, at->count));
    }
    n = SUM(n, PROD(N, pair, at->pairs), PROD(N, token, T));
    return PROD(b->many, n);
}

static void build_linear_scan(struct build *b, const struct mixer *x)
{
    const struct recurrence *p = &x->recurrence;
    const bool ssd = p->block == RECURRENT_SSD;
    const enum decay_kind decay = ssd ? DECAY_HEAD : p->decay;
    const struct sym *values = PROD(Y->N, Y->Hv), *inputs = decays(b, decay);
    struct cost_op *op = build_op(b, OP_SCAN, "scan", "[B, T, N, Hv] with states [B, N, H, Hv]");
    double one;
    if (sym_constant(b->pass->T, &one) && one == 1) {
        op->vector_flops = step_flops(b, p, decay);
    } else {
        const struct chunks at = cut(b);
        op->flops = chunk_products(b, p, &at);
        op->vector_flops = chunk_elementwise(b, p, decay, &at);
    }
    if (ssd) { /* the step scales its input, and D passes it on */
        op->vector_flops = SUM(op->vector_flops, PROD(INT(3), b->part_rows, values));
        build_vector(b, op, PROD(INT(3), Y->N), false);
    } else if (p->decay_weights) {
        build_vector(b, op, SUM(Y->N, INT(p->idle_rates), inputs), false);
    }
    if (p->delta || p->memory) inputs = SUM(inputs, Y->N);
    build_read(b, op);
    op->activation_bytes =
        PROD(b->part_rows, SUM(PROD(INT(2), Y->K, key_width(Y, p)), PROD(INT(2), values), inputs), Y->b_act);
    build_state(b, op, state_elems(b->c, Y, &x->recurrence), Y->b_state);
}

/* Mamba-1: exp(step*A) and step*B*x of each state element, its update and its part of the output; per channel softplus
 * of the step, step*x, D and the gate. */
static void build_selective_scan(struct build *b, const struct mixer *x)
{
    struct cost_op *op = build_op(b, OP_SCAN, "scan", "[B, T, N] with states [B, N, H]");
    op->vector_flops = PROD(b->part_rows, Y->N, SUM(PROD(INT(7), Y->H), INT(SOFTPLUS_FLOPS + 1 + 2 + SILU_GATE_FLOPS)));
    const struct sym *inputs = x->kv_heads > 1 ? PROD(INT(2), Y->K, Y->H) : PROD(INT(2), Y->H); /* B and C */
    op->activation_bytes = PROD(b->part_rows, SUM(PROD(INT(4), Y->N), inputs), Y->b_act);
    build_vector(b, op, PROD(Y->N, SUM(Y->H, INT(1))), false);
    build_read(b, op);
    build_state(b, op, state_elems(b->c, Y, &x->recurrence), Y->b_state);
}

/* RG-LRU: two sigmoids, log decay, exp, 1 - square, root, two products with the input, update. */
enum { LRU_FLOPS = 2 * SIGMOID_FLOPS + 9 };

static void build_lru_scan(struct build *b, const struct mixer *x)
{
    const struct sym *width = PROD(Y->N, Y->Hv), *elems = PROD(b->part_rows, width);
    struct cost_op *op = build_op(b, OP_SCAN, "scan", "[B, T, N*Hv] with states [B, N*Hv]");
    op->vector_flops = PROD(INT(LRU_FLOPS), elems);
    op->activation_bytes = PROD(INT(4), elems, Y->b_act); /* input, two gates; output */
    build_vector(b, op, width, false);
    build_read(b, op);
    build_state(b, op, state_elems(b->c, Y, &x->recurrence), Y->b_state);
}

void build_scan(struct build *b, const struct mixer *x)
{
    const struct recurrence *p = &x->recurrence;
    switch (p->block) {
    case RECURRENT_SELECTIVE: build_selective_scan(b, x); break;
    case RECURRENT_SSD:
    case RECURRENT_LINEAR: build_linear_scan(b, x); break;
    case RECURRENT_LRU: build_lru_scan(b, x); break;
    case RECURRENT_WKV: build_wkv_scan(b); break;
    case RECURRENT_TIME_MIX:
    case RECURRENT_FINCH:
    case RECURRENT_GOOSE: build_time_mix_scan(b, p); break;
    case RECURRENT_DIAGONAL: build_diagonal_scan(b, p); break;
    case RECURRENT_FILTER: build_filter_scan(b, p); break;
    case RECURRENT_CONV:
    case RECURRENT_MEMORY: break;
    }
}
