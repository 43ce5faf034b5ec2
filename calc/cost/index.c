/* index -- the indexer of sparse attention. Derivation: MODEL.md "Sparse attention". */
#include "calc/cost/build.h"

#define Y (b->y)
#define INT(n) sym_int(b->c, (n))
#define PROD(...) SYM_PROD(b->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(b->c, __VA_ARGS__)

/* Elementwise flops: of a pair and head ReLU, times the head's weight, sum; of a pair one comparison for the choice;
 * of an element of a layer norm with bias 7. Of blocks: of a pair and head a maximum.
 * Of a number that enters a pool: + of its place, softmax max, -, exp, +, /, times, sum. */
enum { SCORE_FLOPS = 3, CHOICE_FLOPS = 1, NORM_FLOPS = 7, MAXIMUM_FLOPS = 1, POOL_FLOPS = 8 };

/* Of blocks, a head for each KV head: both sides read the stream, and a block has the largest of its scores. */
static void build_block_index(struct build *b, const struct mixer *x)
{
    const struct sym *wide = PROD(Y->Ni, Y->Hi), *both = PROD(SUM(Y->Ni, INT(1)), Y->Hi);
    build_linear(b, "index_q_proj", "[B*T, D] x [D, Ni*Hi]", WEIGHT_MIXER, b->rows, Y->D, wide, false);
    build_linear(b, "index_k_proj", "[B*T, D] x [D, Hi]", WEIGHT_MIXER, b->rows, Y->D, Y->Hi, false);
    build_head_norm(b, "index_norm", "[B*T, (Ni+1)*Hi]", build_norm_flops(NORM_RMS), both, PROD(INT(2), Y->Hi));
    if (x->position == POSITION_ROPE) build_rope(b, "index_rope", "[B*T, (Ni+1)*Hi]", both);
}

void build_query_scales(struct build *b, const char *name, const struct sym *heads, const struct sym *each)
{
    struct cost_op *op = build_op(b, OP_SCALE, name, "[B*T, heads, width]");
    op->says = "queries times a*log(place) + b, two stored numbers a head";
    op->vector_flops = PROD(b->rows, heads, SUM(INT(2), each));
    op->activation_bytes = PROD(INT(2), b->rows, heads, each, Y->b_act);
    build_vector(b, op, PROD(INT(2), heads), false);
    op->weight_bytes = op->tensor[0].bytes;
}

/* Keys one by one: queries of the query latent, or of a layer norm of the stream, scores of all heads by weights of the
 * token. */
static void build_key_index(struct build *b, const struct mixer *x)
{
    const struct sym *wide = PROD(Y->Ni, Y->Hi);
    const bool rotates = x->rope_dim > 0;
    if (x->index_stream) {
        build_head_norm(b, "index_q_norm", "[B*T, D]", NORM_FLOPS, Y->D, PROD(INT(2), Y->D));
        build_linear(b, "index_q_proj", "[B*T, D] x [D, Ni*Hi]", WEIGHT_MIXER, b->rows, Y->D, wide, false);
        if (x->query_scales) build_query_scales(b, "index_q_scale", Y->Ni, Y->Hi);
    } else {
        build_linear(b, "index_q_proj", "[B*T, Q] x [Q, Ni*Hi]", WEIGHT_MIXER, b->rows, Y->Q, wide, false);
    }
    build_linear(b, "index_k_proj", "[B*T, D] x [D, Hi]", WEIGHT_MIXER, b->rows, Y->D, Y->Hi, false);
    build_head_norm(b, "index_k_norm", "[B*T, Hi]", NORM_FLOPS, Y->Hi, PROD(INT(2), Y->Hi));
    if (rotates) build_rope(b, "index_rope", "[B*T, (Ni+1)*R]", PROD(SUM(Y->Ni, INT(1)), Y->R));
}

/* What a token leaves for its pool, `each` bytes, stays until the pool is full: written once, and read for it. */
static void build_open_pool(struct build *b, struct cost_op *op, const struct sym *pool, const struct sym *each)
{
    if (b->pass->uncached) return;
    op->held_bytes = PROD(b->many, build_each(b, INT(1)), pool, each);
    op->state_bytes = PROD(INT(2), b->part_rows, each);
    op->state_needed_bytes = PROD(b->many, build_each(b, sym_min(b->c, b->pass->T, pool)), each);
}

/* Keys of several tokens made one: their sum, channel by channel, by a softmax of gates of the stream and of places in
 * the pool, which are stored as floats. Keys and gates of the pool that is open stay until it is full. */
static void build_key_pool(struct build *b, const struct mixer *x)
{
    const struct sym *pool = INT(x->index_pool_tokens), *both = PROD(INT(2), Y->Hi, Y->b_state);
    build_linear(b, "index_pool_gate", "[B*T, D] x [D, Hi]", WEIGHT_ROUTER, b->rows, Y->D, Y->Hi, false);
    struct cost_op *op = build_op(b, OP_HEAD_NORM, "index_pool", "[B*T, 2Hi] -> [B*T/pool, Hi]");
    build_apart(b);
    op->says = "keys of the indexer pooled: their sum, weighted channel by channel by a softmax of gates";
    op->vector_flops = PROD(INT(POOL_FLOPS), b->part_rows, Y->Hi);
    op->activation_bytes = PROD(b->part_rows, SUM(PROD(INT(2), Y->Hi), sym_div(b->c, Y->Hi, pool)), Y->b_act);
    build_vector(b, op, PROD(pool, Y->Hi), false);
    op->weight_bytes = op->tensor[0].bytes;
    build_open_pool(b, op, pool, both);
}

/* Keys that are means of so many tokens, each with a norm; the keys of the mean that is open stay until it is full. */
static void build_mean_index(struct build *b, const struct mixer *x)
{
    const struct sym *pool = INT(x->index_pool_tokens), *wide = PROD(Y->Ni, Y->Hi), *const both[] = {wide, Y->Hi};
    const struct sym *each = sym_div(b->c, Y->Hi, pool), *one = PROD(Y->Hi, Y->b_act);
    const int64_t norm = build_norm_flops(NORM_RMS);
    build_stacked(b, "index_qk_proj", "[B*T, D] x [D, (Ni+1)*Hi]", WEIGHT_MIXER, b->rows, Y->D, 2, both, false);
    build_head_norm(b, "index_q_norm", "[B*T, Ni*Hi]", norm, wide, Y->Hi);
    struct cost_op *op = build_op(b, OP_HEAD_NORM, "index_pool", "[B*T, Hi] -> [B*T/pool, Hi]");
    build_apart(b);
    op->says = "keys of the indexer pooled: their mean, and its norm";
    op->vector_flops = PROD(b->part_rows, SUM(Y->Hi, PROD(INT(norm + 1), each)));
    op->activation_bytes = PROD(b->part_rows, SUM(Y->Hi, each), Y->b_act);
    build_vector(b, op, Y->Hi, true);
    if (!b->v->norms_uncounted) op->weight_bytes = op->tensor[0].bytes;
    build_open_pool(b, op, pool, one);
    if (x->position == POSITION_ROPE) build_rope(b, "index_rope", "[B*T, (Ni+1/pool)*Hi]", SUM(wide, each));
}

void build_index_op(struct build *b, const struct attended *at, enum index_scores how)
{
    const bool blocks = how == INDEX_BLOCKS;
    const struct sym *pairs = PROD(b->many, at->pairs), *keys = PROD(b->many, at->keys, Y->Hi);
    const struct sym *wide = PROD(Y->Ni, Y->Hi), *weights = how == INDEX_WEIGHED ? Y->Ni : INT(0);
    struct cost_op *op = build_op(b, OP_INDEX, "index", "[B, T, Ni, Hi] on [B, S, Hi]");
    build_apart(b);
    op->flops = PROD(INT(2), pairs, wide);
    op->vector_flops = blocks ? PROD(INT(MAXIMUM_FLOPS), pairs, Y->Ni)
                              : PROD(pairs, SUM(PROD(INT(how == INDEX_SUMMED ? SCORE_FLOPS - 1 : SCORE_FLOPS), Y->Ni),
                                                INT(CHOICE_FLOPS)));
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
    else if (x->index_mean)
        build_mean_index(b, x);
    else
        build_key_index(b, x);
    const int64_t pool = x->index_pool_tokens > 0 ? x->index_pool_tokens : 1;
    if (x->index_pool_tokens > 0 && !x->index_mean) build_key_pool(b, x);
    build_cache_write(b, "index_write", pool > 1 ? sym_div(b->c, Y->Hi, INT(pool)) : Y->Hi, Y->b_index, NULL);
    if (!blocks && !x->index_mean)
        build_linear(b, "index_weights", "[B*T, D] x [D, Ni]", WEIGHT_ROUTER, b->rows, Y->D, Y->Ni, false);
    struct attended at = build_attended(b, NULL, false);
    if (pool > 1)
        at = (struct attended){sym_div(b->c, at.pairs, INT(pool)), sym_div(b->c, at.keys, INT(pool)),
                               sym_div(b->c, at.needed, INT(pool))};
    build_index_op(b, &at, blocks ? INDEX_BLOCKS : x->index_mean ? INDEX_SUMMED : INDEX_WEIGHED);
}
