/* index -- the indexer of sparse attention. Derivation: MODEL.md "Sparse attention". */
#include "calc/cost/build.h"

#define Y (b->y)
#define INT(n) sym_int(b->c, (n))
#define PROD(...) SYM_PROD(b->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(b->c, __VA_ARGS__)

/* Elementwise flops: of a pair and head ReLU, times the head's weight, sum; of a pair one comparison for the choice;
 * of an element of a layer norm with bias 7. Of blocks: of a pair and head a maximum. */
enum { SCORE_FLOPS = 3, CHOICE_FLOPS = 1, NORM_FLOPS = 7, MAXIMUM_FLOPS = 1 };

/* Of blocks, a head for each KV head: both sides read the stream, and a block has the largest of its scores. */
static void build_block_index(struct build *b, const struct mixer *x)
{
    const struct sym *wide = PROD(Y->Ni, Y->Hi), *both = PROD(SUM(Y->Ni, INT(1)), Y->Hi);
    build_linear(b, "index_q_proj", "[B*T, D] x [D, Ni*Hi]", WEIGHT_MIXER, b->rows, Y->D, wide, false);
    build_linear(b, "index_k_proj", "[B*T, D] x [D, Hi]", WEIGHT_MIXER, b->rows, Y->D, Y->Hi, false);
    build_head_norm(b, "index_norm", "[B*T, (Ni+1)*Hi]", build_norm_flops(NORM_RMS), both, PROD(INT(2), Y->Hi));
    if (x->position == POSITION_ROPE) build_rope(b, "index_rope", "[B*T, (Ni+1)*Hi]", both);
}

/* Keys one by one: queries of the query latent, scores of all heads by weights of the token. */
static void build_key_index(struct build *b)
{
    const struct sym *wide = PROD(Y->Ni, Y->Hi);
    build_linear(b, "index_q_proj", "[B*T, Q] x [Q, Ni*Hi]", WEIGHT_MIXER, b->rows, Y->Q, wide, false);
    build_linear(b, "index_k_proj", "[B*T, D] x [D, Hi]", WEIGHT_MIXER, b->rows, Y->D, Y->Hi, false);
    build_head_norm(b, "index_k_norm", "[B*T, Hi]", NORM_FLOPS, Y->Hi, PROD(INT(2), Y->Hi));
    build_rope(b, "index_rope", "[B*T, (Ni+1)*R]", PROD(SUM(Y->Ni, INT(1)), Y->R));
}

void build_index_op(struct build *b, const struct attended *at, bool blocks)
{
    const struct sym *pairs = PROD(b->many, at->pairs), *keys = PROD(b->many, at->keys, Y->Hi);
    const struct sym *wide = PROD(Y->Ni, Y->Hi), *weights = blocks ? INT(0) : Y->Ni;
    struct cost_op *op = build_op(b, OP_INDEX, "index", "[B, T, Ni, Hi] on [B, S, Hi]");
    build_apart(b);
    op->flops = PROD(INT(2), pairs, wide);
    op->vector_flops = blocks ? PROD(INT(MAXIMUM_FLOPS), pairs, Y->Ni)
                              : PROD(pairs, SUM(PROD(INT(SCORE_FLOPS), Y->Ni), INT(CHOICE_FLOPS)));
    op->activation_bytes = PROD(b->part_rows, SUM(wide, weights), Y->b_act);
    if (b->pass->uncached) {
        op->activation_bytes = SUM(op->activation_bytes, PROD(keys, Y->b_act));
        return;
    }
    op->kv_bytes = PROD(keys, Y->b_index);
    op->kv_needed_bytes = PROD(b->many, at->needed, Y->Hi, Y->b_index);
}

void build_index(struct build *b, const struct mixer *x)
{
    if (x->index_heads == 0) return;
    const bool blocks = x->index_block_tokens > 0;
    if (blocks)
        build_block_index(b, x);
    else
        build_key_index(b);
    build_cache_write(b, "index_write", Y->Hi, Y->b_index, NULL);
    if (!blocks) build_linear(b, "index_weights", "[B*T, D] x [D, Ni]", WEIGHT_ROUTER, b->rows, Y->D, Y->Ni, false);
    const struct attended at = build_attended(b, NULL, false);
    build_index_op(b, &at, blocks);
}
