/* pooled -- attention to a window of tokens and to entries that each stand for several (DeepSeek-V4). Derivation:
 * MODEL.md "Compressed attention". */
#include "calc/cost/build.h"

#define Y (b->y)
#define INT(n) sym_int(b->c, (n))
#define PROD(...) SYM_PROD(b->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(b->c, __VA_ARGS__)
#define OVER(x) sym_div(b->c, (x), Y->Tp)

/* Elementwise flops: of a number that enters an entry: + of its place, softmax max, -, exp, +, /, times, sum; of one of
 * the entry its norm. Of a softmax per score. Of a norm without a weight. */
enum { POOL_FLOPS = 8, NORM_FLOPS = 4, SOFTMAX_FLOPS = 5, PLAIN_NORM_FLOPS = 3 };

/* Products and gates of the tokens that the next entry is made of stay until it is closed: each is written once, and
 * read once for every entry that it is part of. */
static void build_open_entries(struct build *b, struct cost_op *op, const struct mixer *x, const struct sym *both)
{
    if (b->pass->uncached) return;
    const struct sym *spans = INT(x->pool_spans), *open = PROD(spans, Y->Tp), *one = PROD(both, Y->b_state);
    op->held_bytes = PROD(b->many, build_each(b, INT(1)), open, one);
    op->state_bytes = PROD(b->part_rows, SUM(spans, INT(1)), one);
    op->state_needed_bytes = PROD(b->many, build_each(b, sym_min(b->c, b->pass->T, open)), one);
}

/* Entries of `width` numbers: a weighted sum of products, channel by channel, by a softmax of gates. Its weights are
 * kept as floats. */
static void build_entries(struct build *b, const struct mixer *x, const char *const name[4], const struct sym *width,
                          const struct sym *bytes)
{
    const struct sym *wide = PROD(INT(x->pool_spans), width), *const both[] = {wide, wide};
    if (x->pool_tokens == 1) { /* a token's own product */
        build_linear(b, name[0], "[B*T, D] x [D, H]", WEIGHT_MIXER, b->rows, Y->D, width, false);
        build_head_norm(b, name[1], "[B*T, H]", NORM_FLOPS, width, width);
        build_rope(b, name[2], "[B*T, R]", Y->R);
        build_cache_write(b, name[3], width, bytes, NULL);
        return;
    }
    build_stacked(b, name[0], "[B*T, D] x [D, 2*spans*H]", WEIGHT_ROUTER, b->rows, Y->D, 2, both, false);
    struct cost_op *op = build_op(b, OP_HEAD_NORM, name[1], "[B*T, 2*spans*H] -> [B*T/Tp, H]");
    build_apart(b);
    op->says = "tokens pooled into entries: their sum, weighted channel by channel by a softmax of gates, and a norm";
    const int64_t each = x->pool_lean ? POOL_FLOPS - 1 : POOL_FLOPS;
    op->vector_flops = PROD(b->part_rows, SUM(PROD(INT(each), wide), PROD(INT(NORM_FLOPS), OVER(width))));
    op->activation_bytes = PROD(b->part_rows, SUM(wide, wide, OVER(width)), Y->b_act);
    if (!x->pool_lean) build_vector(b, op, PROD(Y->Tp, wide), false);
    build_vector(b, op, width, true);
    for (size_t i = 0; i < op->tensors_n; i++)
        if (!op->tensor[i].norm || !b->v->norms_uncounted)
            op->weight_bytes = SUM(op->weight_bytes, op->tensor[i].bytes);
    build_open_entries(b, op, x, SUM(wide, wide));
    build_rope(b, name[2], "[B*T/Tp, R]", OVER(Y->R));
    build_cache_write(b, name[3], OVER(width), bytes, NULL);
}

/* Beside entries the window's vectors are part of a state, with what the next entry is made of: they are kept whole. */
static void build_beside_window(struct build *b, const struct mixer *x, const char *const name[4])
{
    struct cost_op *write = b->pass->uncached ? NULL : &b->ops->op[b->ops->n - 1];
    const size_t pool = b->ops->n + 1; /* behind its product */
    if (write) write->held_bytes = INT(0);
    build_entries(b, x, name, Y->H, Y->b_kv);
    if (!write) return;
    struct cost_op *op = &b->ops->op[pool];
    op->held_bytes = SUM(op->held_bytes, PROD(b->many, build_each(b, INT(1)), Y->W, Y->H, Y->b_kv));
}

/* Keys of the indexer as products of the entries, where the layer makes those. */
static void build_entry_keys(struct build *b, const struct mixer *x, const char *const name[4])
{
    if (x->pool_borrowed) return;
    build_linear(b, "index_k_proj", "[B*T/Tp, H] x [H, Hi]", WEIGHT_MIXER, OVER(b->rows), Y->H, Y->Hi, false);
    build_head_norm(b, "index_k_norm", "[B*T/Tp, Hi]", NORM_FLOPS, OVER(Y->Hi), Y->Hi);
    build_rope(b, name[2], "[B*T/Tp, R]", OVER(Y->R));
    build_cache_write(b, name[3], OVER(Y->Hi), Y->b_index, NULL);
}

/* The indexer: entries of its own, scored as in sparse attention. */
static void build_entry_index(struct build *b, const struct mixer *x)
{
    static const char *const NAME[4] = {"index_pool_proj", "index_pool", "index_pool_rope", "index_write"};
    const struct attended all =
        x->index_candidates ? build_selected(b, PROD(INT(x->index_candidates), Y->Tp)) : build_attended(b, NULL, false);
    const struct attended at = {OVER(all.pairs), OVER(all.keys), OVER(all.needed)};
    if (x->pool_lean)
        build_entry_keys(b, x, NAME);
    else
        build_entries(b, x, NAME, Y->Hi, Y->b_index);
    build_linear(b, "index_q_proj", "[B*T, Q] x [Q, Ni*Hi]", WEIGHT_MIXER, b->rows, Y->Q, PROD(Y->Ni, Y->Hi), false);
    build_rope(b, "index_rope", "[B*T, Ni*R]", PROD(Y->Ni, Y->R));
    build_linear(b, "index_weights", "[B*T, D] x [D, Ni]", WEIGHT_ROUTER, b->rows, Y->D, Y->Ni, false);
    build_index_op(b, &at, INDEX_WEIGHED);
    if (!b->layout->free && build_index_parts(x, layout_whole(&b->layout->layout).tp) == 1) return;
    build_sum_of_bytes(b, "index_all_reduce", "[B, T, S/Tp] over t ranks",
                       PROD(b->many, at.pairs, INT(COST_FP32_BYTES)));
    if (b->split) build_apart(b);
}

/* Keys of the window, and entries: those of all tokens, or of the U that a query chose. */
static struct attended seen(struct build *b, const struct mixer *x)
{
    const struct attended near = build_attended(b, Y->W, false);
    if (x->pool_tokens == 0) return near;
    const struct attended far = x->top_keys ? build_selected(b, Y->U) : build_attended(b, NULL, false);
    return (struct attended){SUM(near.pairs, OVER(far.pairs)), SUM(near.keys, OVER(far.keys)),
                             SUM(near.needed, OVER(far.needed))};
}

static void build_seen(struct build *b, const struct mixer *x)
{
    const struct attended at = seen(b, x);
    const struct sym *twice = PROD(INT(2), Y->H);
    struct cost_op *op = build_op(b, OP_ATTENTION, "attention", "[B, T, N, H] on W tokens and S/Tp entries");
    build_apart(b);
    op->flops = PROD(INT(2), b->many, Y->N, twice, at.pairs);
    op->vector_flops = PROD(INT(SOFTMAX_FLOPS), b->many, Y->N, at.pairs);
    op->activation_bytes = PROD(b->part_rows, Y->N, twice, Y->b_act);
    if (b->pass->uncached) {
        op->activation_bytes = SUM(op->activation_bytes, PROD(b->many, at.keys, Y->H, Y->b_act));
    } else {
        op->kv_bytes = PROD(b->many, at.keys, Y->H, Y->b_kv);
        op->kv_needed_bytes = PROD(b->many, at.needed, Y->H, Y->b_kv);
    }
    build_vector(b, op, Y->N, false); /* sinks */
    op->weight_bytes = op->tensor[0].bytes;
}

/* Each group of heads has a product of its own, and one takes all of them. */
static void build_output(struct build *b)
{
    const struct sym *heads = PROD(Y->N, Y->H), *narrow = PROD(Y->Go, Y->Ro);
    struct cost_op *op = build_op(b, OP_LINEAR, "o_a_proj", "[B*T, N*H/Go] x [N*H/Go, Ro], Go times");
    op->compute_class = WEIGHT_MIXER;
    op->flops = PROD(INT(2), b->rows, heads, Y->Ro);
    op->activation_bytes = PROD(b->rows, SUM(heads, narrow), Y->b_act);
    build_tensor(b, op, WEIGHT_MIXER, INT(1), narrow, sym_div(b->c, heads, Y->Go));
    op->weight_bytes = op->tensor[0].bytes;
    build_linear(b, "o_b_proj", "[B*T, Go*Ro] x [Go*Ro, D]", WEIGHT_MIXER, b->rows, narrow, Y->D, false);
}

void build_pooled(struct build *b, const struct mixer *x)
{
    static const char *const NAME[4] = {"pool_proj", "pool", "pool_rope", "pool_write"};
    const struct sym *heads = PROD(Y->N, Y->H);
    build_linear(b, "q_a_proj", "[B*T, D] x [D, Q]", WEIGHT_MIXER, b->rows, Y->D, Y->Q, false);
    build_head_norm(b, "q_a_norm", "[B*T, latent]", NORM_FLOPS, Y->Q, Y->Q);
    build_linear(b, "q_b_proj", "[B*T, Q] x [Q, N*H]", WEIGHT_MIXER, b->rows, Y->Q, heads, false);
    if (!x->pool_lean) build_head_norm(b, "q_norm", "[B*T, N*H]", PLAIN_NORM_FLOPS, heads, NULL);
    build_linear(b, "kv_proj", "[B*T, D] x [D, H]", WEIGHT_MIXER, b->rows, Y->D, Y->H, false);
    build_head_norm(b, "kv_norm", "[B*T, H]", NORM_FLOPS, Y->H, Y->H);
    build_rope(b, "rope", "[B*T, (N+1)*R]", PROD(SUM(Y->N, INT(1)), Y->R));
    build_cache_write(b, "kv_write", Y->H, Y->b_kv, Y->W);
    if (x->pool_tokens > 0 && !x->pool_borrowed) build_beside_window(b, x, NAME);
    if (x->index_heads > 0) build_entry_index(b, x);
    build_seen(b, x);
    build_rope(b, "unrope", "[B*T, N*R]", PROD(Y->N, Y->R)); /* values were rotated as keys */
    build_output(b);
}
