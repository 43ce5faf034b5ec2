/* context -- attention where ranks share the cache of a sequence by tokens. Derivation: MODEL.md "Shared contexts". */
#include "calc/cost/build.h"

#define Y (b->y)
#define INT(n) sym_int(b->c, (n))
#define PROD(...) SYM_PROD(b->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(b->c, __VA_ARGS__)
#define NEG(x) sym_mul(b->c, INT(-1), (x))
#define HALF(x) sym_div(b->c, (x), INT(2))

/* Elementwise flops of a partial output's element: times its factor; of two that are
 * joined: two factors, one sum. Of a log-sum-exp among n: max, -, exp, +. */
enum { SCALE_FLOPS = 1, MERGE_FLOPS = 3, LSE_FLOPS = 4 };

const struct sym *build_share(struct build *b, const struct sym *tokens)
{
    return b->context ? sym_ceil(b->c, sym_div(b->c, tokens, b->context)) : tokens;
}

/* Sum of ceil(j/d) for j = 1 .. n: d of each whole number, and what is left of the last. */
static const struct sym *sum_of_shares(struct build *b, const struct sym *n)
{
    const struct sym *last = build_share(b, n), *before = SUM(last, INT(-1));
    return SUM(HALF(PROD(b->context, before, last)), PROD(SUM(n, NEG(PROD(b->context, before))), last));
}

struct attended build_shared(struct build *b, bool with_new)
{
    const struct sym *S = b->pass->S, *T = b->pass->T, *M = b->pass->M;
    const struct sym *until = with_new ? S : SUM(S, NEG(T)), *needed = build_share(b, S), *keys, *pairs;
    if (M) { /* one token a step, contexts S-M+1 .. S */
        const struct sym *from = SUM(until, NEG(M));
        keys = sym_div(b->c, SUM(sum_of_shares(b, until), NEG(sum_of_shares(b, from))), M);
        needed = sym_div(b->c, SUM(sum_of_shares(b, S), NEG(sum_of_shares(b, SUM(S, NEG(M))))), M);
        return (struct attended){keys, keys, needed};
    }
    double one;
    const bool single = sym_constant(T, &one) && one == 1;
    keys = build_share(b, until);
    if (!with_new || single || b->v->causal_full)
        pairs = PROD(T, keys);
    else
        pairs = SUM(sum_of_shares(b, S), NEG(sum_of_shares(b, SUM(S, NEG(T)))));
    return (struct attended){build_each(b, pairs), build_each(b, keys), build_each(b, needed)};
}

const struct sym *build_new_pairs(struct build *b)
{
    const struct sym *T = b->pass->T;
    return build_each(b, b->v->causal_full ? PROD(T, T) : HALF(PROD(T, SUM(T, INT(1)))));
}

/* Whether ranks that share a context are, or may be, on several nodes. */
static bool crosses_nodes(const struct build *b)
{
    const struct layout w = layout_whole(&b->layout->layout);
    return b->layout->free || layout_nodes(&w, w.dcp) > 1;
}

/* What a rank sends when each of d ranks has `part` bytes for each of the others. */
static void send(struct build *b, struct cost_op *op, const struct sym *part)
{
    const bool far = crosses_nodes(b);
    const struct sym *others = SUM(b->context, INT(-1));
    op->context = true;
    op->wire_bytes = PROD(far ? SUM(others, NEG(b->ly.context_far)) : others, part);
    if (far) op->fabric_bytes = PROD(b->ly.context_far, part);
}

struct cost_op *build_context_gather(struct build *b, const char *name, const char *shape, const struct sym *part)
{
    struct cost_op *op = build_op(b, OP_ALL_GATHER, name, shape);
    op->says = "parts of the ranks that share a context, on each of them";
    send(b, op, part);
    op->activation_bytes = PROD(SUM(b->context, INT(1)), part);
    return op;
}

/* Each rank's outputs for the heads of every other, with their log-sum-exps; then its own heads are joined. */
static void build_direct_outputs(struct build *b, const struct sym *rows, const struct sym *v, bool apart)
{
    const struct sym *one = INT(1), *heads = PROD(rows, Y->N), *nodes = SUM(b->ly.context_far, one);
    const struct sym *part = SUM(PROD(heads, v, Y->b_act), PROD(heads, INT(COST_FP32_BYTES)));
    const bool far = crosses_nodes(b);
    const struct sym *here = far ? sym_div(b->c, b->context, nodes) : b->context; /* ranks of its node */
    struct cost_op *op = build_op(b, OP_ALL_TO_ALL, "context_all_to_all", "[B*T, d*N, Hv+1] -> [d, B*T, N, Hv+1]");
    op->says = "partial outputs and log-sum-exps to the ranks of their heads";
    op->apart = apart;
    op->context = true;
    op->wire_bytes = PROD(SUM(here, NEG(one)), part);
    if (far) op->fabric_bytes = PROD(SUM(b->context, NEG(here)), part);
    op->activation_bytes = PROD(INT(2), b->context, part);
    op = build_op(b, OP_SCALE, "context_sum", "[d, B*T, N, Hv] -> [B*T, N, Hv]");
    op->says = "sum of partial outputs, each times its part of the whole softmax";
    op->apart = apart;
    op->vector_flops = PROD(heads, b->context, SUM(PROD(INT(2 * SCALE_FLOPS), v), INT(LSE_FLOPS)));
    op->activation_bytes = SUM(PROD(b->context, part), PROD(heads, v, Y->b_act));
}

void build_context_outputs(struct build *b, const struct sym *rows, const struct sym *v, bool apart)
{
    if (b->layout->layout.context_direct) {
        build_direct_outputs(b, rows, v, apart);
        return;
    }
    const struct sym *heads = PROD(Y->N, b->context), *own = PROD(rows, Y->N, v, Y->b_act);
    struct cost_op *op = build_context_gather(b, "lse_all_gather", "[B*T, d*N] of each of d ranks",
                                              PROD(rows, heads, INT(COST_FP32_BYTES)));
    op->apart = apart;
    op = build_op(b, OP_SCALE, "context_scale", "[B*T, d*N, Hv]");
    op->says = "partial outputs, each times its part of the whole softmax";
    op->apart = apart;
    op->vector_flops = SUM(PROD(INT(SCALE_FLOPS), rows, heads, v), PROD(INT(LSE_FLOPS), rows, heads, b->context));
    op->activation_bytes =
        SUM(PROD(INT(2), b->context, own), PROD(rows, heads, SUM(b->context, INT(1)), INT(COST_FP32_BYTES)));
    op = build_op(b, OP_ALL_REDUCE, "context_reduce_scatter", "[B*T, d*N, Hv] -> [B*T, N, Hv]");
    op->says = "sum of the ranks that share a context, each its own heads";
    op->apart = apart;
    send(b, op, own);
    op->activation_bytes = PROD(SUM(b->context, INT(1)), own);
}

void build_context_merge(struct build *b)
{
    const struct sym *heads = PROD(b->rows, Y->N);
    struct cost_op *op = build_op(b, OP_SCALE, "context_merge", "[B*T, N, Hv]");
    op->says = "outputs over old and over new tokens, joined by their log-sum-exp";
    op->vector_flops = SUM(PROD(INT(MERGE_FLOPS), heads, Y->Hv), PROD(INT(2 * LSE_FLOPS), heads));
    op->activation_bytes = SUM(PROD(INT(3), heads, Y->Hv, Y->b_act), PROD(INT(2 * COST_FP32_BYTES), heads));
}
