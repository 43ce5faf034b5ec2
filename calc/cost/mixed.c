/* mixed -- two passes over the same tokens become one: the operators that both share once, the others of each. */
#include "calc/cost/mixed.h"

#include <string.h>

enum { SUMS_OUTSIDE = 8, SUMS_OF_LAYER = 16 };

static const char *const PARTS[MIXED_PARTS] = {[MIXED_DECODE] = "decode", [MIXED_PREFILL] = "prefill"};

static enum err_code open_part(struct arena *a, struct sym_ctx *c, const struct cost_symbols *y, const struct model *m,
                               enum mixed_part part, int64_t decode_tokens, struct cost_sums *out, struct err *e)
{
    const struct sym *const first[] = {sym_int(c, 1), part == MIXED_DECODE ? sym_int(c, decode_tokens) : y->T, y->S};
    const size_t cap = SUMS_OUTSIDE + SUMS_OF_LAYER * m->kinds_n;
    *out = (struct cost_sums){.name = PARTS[part], .at = arena_array(a, cap, sizeof *out->at), .cap = cap};
    if (!out->at) return err_nomem(e);
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) { /* sequences, tokens, contexts */
        const char *name = arena_printf(a, "%s_%zu", out->name, i);
        if (!name) return err_nomem(e);
        out->at[out->n++] = (struct cost_sum){.var = sym_var(c, name), .each = first[i], .kind_index = -1};
    }
    return ERR_OK;
}

/* Tokens of one sequence of a model with an encoder, whose prompts are a source of X tokens and, behind it, those that
 * its decoder has before it generates: of the source, new and cached, and of the decoder likewise. */
struct halves {
    const struct sym *source_new, *source_held, *T, *S;
};

static struct halves halves_of(struct sym_ctx *c, const struct cost_symbols *y, enum mixed_part part,
                               const struct sym *T)
{
    const struct sym *zero = sym_int(c, 0), *X = y->X;
    struct halves h = {zero, X, T, sym_sub(c, y->S, X)};
    if (part == MIXED_DECODE) return h;
    h.source_held = sym_min(c, y->S, X);
    h.source_new = sym_sub(c, h.source_held, sym_min(c, sym_sub(c, y->S, T), X));
    h.T = sym_sub(c, T, h.source_new);
    h.S = sym_max(c, zero, h.S);
    return h;
}

/* The sum over a part's sequences of an expression in T and S of one, outside the layers. */
static const struct sym *sum_of(struct arena *a, struct sym_ctx *c, struct cost_sums *s, const struct sym *each)
{
    const char *name = arena_printf(a, "%s_%zu", s->name, s->n);
    if (!name || s->n == s->cap) return sym_int(c, 0);
    s->at[s->n] = (struct cost_sum){.var = sym_var(c, name), .each = each, .kind_index = -1};
    return s->at[s->n++].var;
}

/* The operator of a part alone: named after it, and its weights are read where the part has any sequence. What no
 * fusion avoids reading is counted once, in the part that decodes, or the one that reads sources. */
static enum err_code take_apart(struct arena *a, struct sym_ctx *c, const struct cost_sums *s, enum mixed_part part,
                                struct cost_op *op, struct err *e)
{
    const struct sym *any = sym_min(c, sym_int(c, 1), s->at[0].var);
    op->name = arena_printf(a, "%s_%s", s->name, op->name);
    if (!op->name) return err_nomem(e);
    op->part = (int)part;
    if (op->encodes)
        op->weight_needed_bytes = sym_mul(c, op->weight_needed_bytes, any);
    else if (part == MIXED_PREFILL)
        op->weight_needed_bytes = sym_int(c, 0);
    op->weight_bytes = sym_mul(c, op->weight_bytes, any);
    for (size_t i = 0; i < op->tensors_n; i++) op->tensor[i].shared = op->tensor[i].shared || part == MIXED_PREFILL;
    return ERR_OK;
}

/* Both lists in execution order, side by side: a part's own operators stand between the same shared ones. */
static enum err_code join(struct arena *a, struct sym_ctx *c, struct cost_mixed *x, const struct cost_ops list[],
                          struct err *e)
{
    size_t at[MIXED_PARTS] = {0};
    x->ops.op = arena_array(a, list[MIXED_DECODE].n + list[MIXED_PREFILL].n, sizeof *x->ops.op);
    if (!x->ops.op) return err_nomem(e);
    x->ops.n = 0;
    for (;;) {
        for (enum mixed_part p = 0; p < MIXED_PARTS; p++)
            for (; at[p] < list[p].n && list[p].op[at[p]].apart; at[p]++) {
                struct cost_op *op = &x->ops.op[x->ops.n++];
                *op = list[p].op[at[p]];
                TRY(take_apart(a, c, &x->part[p], p, op, e));
            }
        if (at[MIXED_DECODE] == list[MIXED_DECODE].n) return ERR_OK;
        const struct cost_op *one = &list[MIXED_DECODE].op[at[MIXED_DECODE]++],
                             *other = &list[MIXED_PREFILL].op[at[MIXED_PREFILL]++];
        struct cost_op *op = &x->ops.op[x->ops.n++];
        *op = *one;
        op->held_bytes = sym_add(c, one->held_bytes, other->held_bytes);
    }
}

enum err_code cost_build_mixed(struct arena *a, struct sym_ctx *c, const struct cost_symbols *y, const struct model *m,
                               const struct cost_conventions *v, const struct cost_layout *l, int64_t decode_tokens,
                               struct cost_mixed *out, struct err *e)
{
    struct cost_ops list[MIXED_PARTS];
    const struct layout w = layout_whole(&l->layout);
    if (l->free) return err_set(e, ERR_USAGE, "mixed steps are described for one layout");
    if (m->diffusion || m->bidirectional)
        return err_set(e, ERR_USAGE, "%s settles blocks of tokens, which are not mixed with prompts", m->name);
    if (m->draft.joined > 0 || m->draft.no_embedding || m->draft.heads > 0)
        return err_set(e, ERR_USAGE, "%s is a draft head: its passes follow its target's", m->name);
    for (size_t i = 0; i < m->kinds_n; i++)
        if (m->kinds[i].mixer.recurrence.filter_width > 0)
            return err_set(e, ERR_USAGE, "%s convolves whole sequences, and how pieces of them mix is not described",
                           m->name);
    for (enum mixed_part p = 0; p < MIXED_PARTS; p++) TRY(open_part(a, c, y, m, p, decode_tokens, &out->part[p], e));
    const struct cost_sum *decode = out->part[MIXED_DECODE].at, *prefill = out->part[MIXED_PREFILL].at;
    const bool encodes = m->encoder.layers > 0;
    struct halves half[MIXED_PARTS];
    half[MIXED_DECODE] = halves_of(c, y, MIXED_DECODE, sym_int(c, decode_tokens));
    half[MIXED_PREFILL] = halves_of(c, y, MIXED_PREFILL, y->T);
    const struct sym *pieces =
        encodes ? sum_of(a, c, &out->part[MIXED_PREFILL], half[MIXED_PREFILL].T) : prefill[1].var;
    const struct sym *rows = sym_add(c, decode[1].var, pieces);
    const struct sym *sequences = sym_add(c, decode[decode_tokens > 1].var, prefill[0].var); /* rows of the head */
    out->others = w.dp > 1 ? sym_var(c, "other_groups") : NULL;
    for (enum mixed_part p = 0; p < MIXED_PARTS; p++) {
        const struct cost_pass pass = {.name = PARTS[p],
                                       .B = sym_int(c, 1),
                                       .T = encodes             ? half[p].T
                                            : p == MIXED_DECODE ? sym_int(c, decode_tokens)
                                                                : y->T,
                                       .S = encodes ? half[p].S : y->S,
                                       .encodes = encodes && p == MIXED_PREFILL,
                                       .source_new = half[p].source_new,
                                       .source_held = half[p].source_held,
                                       .absorbed = p == MIXED_DECODE,
                                       .sums = &out->part[p],
                                       .rows = p == MIXED_DECODE ? decode[1].var : pieces,
                                       .step_rows = rows,
                                       .step_sequences = sequences,
                                       .step_routed = out->others ? sym_add(c, rows, out->others) : NULL};
        TRY(cost_build_layout(a, c, y, m, v, &pass, l, &list[p], e));
    }
    out->rows = sym_add(c, decode[1].var, prefill[1].var); /* of a source and its decoder */
    TRY(join(a, c, out, list, e));
    return sym_check(c, e);
}

/* A sum is bound like the operators of its layer kind. */
static enum err_code bind_sums(struct arena *a, struct sym_ctx *c, const struct cost_symbols *y, const struct model *m,
                               const struct cost_layout *l, struct cost_sums *s, struct err *e)
{
    const struct sym *zero = sym_int(c, 0);
    struct cost_ops ops = {.op = arena_array(a, s->n, sizeof *ops.op), .n = s->n};
    if (!ops.op) return err_nomem(e);
    for (size_t i = 0; i < s->n; i++)
        ops.op[i] = (struct cost_op){.kind_index = s->at[i].kind_index,
                                     .flops = s->at[i].each,
                                     .half_flops = zero,
                                     .vector_flops = zero,
                                     .weight_bytes = zero,
                                     .weight_needed_bytes = zero,
                                     .kv_bytes = zero,
                                     .kv_needed_bytes = zero,
                                     .held_bytes = zero,
                                     .state_bytes = zero,
                                     .state_needed_bytes = zero,
                                     .activation_bytes = zero,
                                     .wire_bytes = zero,
                                     .fabric_bytes = zero,
                                     .rows = zero,
                                     .in = zero,
                                     .out = zero};
    TRY(cost_bind_layout(c, y, m, l, &ops, e));
    for (size_t i = 0; i < s->n; i++) s->at[i].each = ops.op[i].flops;
    return ERR_OK;
}

enum err_code cost_bind_mixed(struct arena *a, struct sym_ctx *c, const struct cost_symbols *y, const struct model *m,
                              const struct cost_layout *l, struct cost_mixed *mixed, struct err *e)
{
    TRY(cost_bind_layout(c, y, m, l, &mixed->ops, e));
    for (enum mixed_part p = 0; p < MIXED_PARTS; p++) TRY(bind_sums(a, c, y, m, l, &mixed->part[p], e));
    return ERR_OK;
}
