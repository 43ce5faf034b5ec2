/* heads -- what some families do to scores and answers of heads: masks made of values, differences of pairs.
 * Derivations: MODEL.md "Differences of attentions", "Masks of values". */
#include "calc/cost/build.h"

#define Y (b->y)
#define INT(n) sym_int(b->c, (n))
#define PROD(...) SYM_PROD(b->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(b->c, __VA_ARGS__)

enum { HEAD_NORM_FLOPS = 4, PLAIN_NORM_FLOPS = 3 };

/* A number of each key and KV head of its token's values, which the class makes of all cached ones in every pass. */
void build_value_mask(struct build *b, const struct mixer *x)
{
    enum { MASK_FLOPS = 5 }; /* softplus (exp, +, log), times the head's rate, exp */
    if (!x->value_mask) return;
    const struct attended at = build_attended(b, x->window_tokens ? Y->W : NULL, x->chunked);
    const struct sym *values = PROD(Y->K, Y->Hv), *keys = PROD(b->many, at.keys);
    struct cost_op *op = build_op(b, OP_LINEAR, "key_mask", "[B*S, K*Hv] x [K*Hv, K]");
    op->says = "a number of each key and KV head, of all its values, which is added to its scores";
    op->compute_class = WEIGHT_MIXER;
    build_apart(b);
    op->flops = PROD(INT(2), keys, values, Y->K);
    op->vector_flops = PROD(INT(MASK_FLOPS + (x->qkv_bias ? 1 : 0)), keys, Y->K);
    op->activation_bytes = PROD(keys, Y->K, Y->b_act);
    if (b->pass->uncached)
        op->activation_bytes = SUM(op->activation_bytes, PROD(keys, values, Y->b_act));
    else
        op->kv_bytes = PROD(keys, values, Y->b_kv);
    build_tensor(b, op, WEIGHT_MIXER, INT(1), Y->K, values);
    build_vector(b, op, x->qkv_bias ? PROD(INT(2), Y->K) : Y->K, false);
    op->weight_bytes = SUM(op->tensor[0].bytes, op->tensor[1].bytes);
}

/* The second answer of each pair of heads, times the layer's share, from the first; a norm over both heads' width. */
void build_difference(struct build *b, const struct mixer *x)
{
    enum { DIFFERENCE_FLOPS = 2, SCALE_FLOPS = 1 };
    if (!x->differential) return;
    const struct sym *elems = PROD(b->rows, Y->N, Y->Hv);
    const int64_t norm = x->difference_weight ? HEAD_NORM_FLOPS : PLAIN_NORM_FLOPS;
    struct cost_op *op = build_op(b, OP_HEAD_NORM, "difference", "[B*T, N, 2Hv] -> [B*T, N/2, 2Hv]");
    op->says = "of each pair of heads the first answer less a share of the second, and a norm of that";
    op->vector_flops = PROD(INT(DIFFERENCE_FLOPS + norm + SCALE_FLOPS), elems);
    op->activation_bytes = PROD(INT(3), elems, Y->b_act);
    build_vector(b, op, PROD(INT(4), Y->H), false); /* two vectors for either exponent of the share */
    op->weight_bytes = op->tensor[0].bytes;
    if (!x->difference_weight) return;
    build_vector(b, op, PROD(INT(2), Y->Hv), true);
    if (!b->v->norms_uncounted) op->weight_bytes = SUM(op->weight_bytes, op->tensor[1].bytes);
}
