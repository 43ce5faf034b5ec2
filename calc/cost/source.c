/* source -- encoder-decoders: what is around the encoder's layers, and attention of the decoder to its output.
 * Derivation: MODEL.md "Encoder-decoders". */
#include "calc/cost/build.h"

#define Y (b->y)
#define INT(n) sym_int(b->c, (n))
#define PROD(...) SYM_PROD(b->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(b->c, __VA_ARGS__)

/* Of the sequences of a part of a mixed pass the sum, one for all layers. */
static const struct sym *sum_of(struct build *b, const struct sym *each)
{
    const int layer = b->kind_index;
    b->kind_index = -1;
    each = build_each(b, each);
    b->kind_index = layer;
    return each;
}

/* Sources that are read in the pass; of a mixed one so many by their tokens, parts of one included. */
static const struct sym *sources(struct build *b)
{
    const struct cost_pass *p = b->pass;
    return p->sums ? sym_div(b->c, sum_of(b, p->source_new), Y->X) : p->B;
}

void build_source_enter(struct build *b, struct build_source *s)
{
    const struct sym *n = sources(b);
    s->was = *b;
    s->from = b->ops->n;
    s->pass = *b->pass;
    s->pass.B = n;
    s->pass.T = s->pass.S = Y->X;
    s->pass.M = NULL;
    s->pass.uncached = true;
    s->pass.sums = NULL;
    b->pass = &s->pass;
    b->both_ways = true;
    b->many = n;
    b->tokens = Y->X;
    b->rows = b->part_rows = b->norm_rows = b->routed = PROD(n, Y->X);
}

/* What runs where a source is read alone: of a mixed pass in the part that has it. */
static void set_encodes(struct build *b, size_t from)
{
    if (!b->pass->encodes) build_hold(b, from);
    for (size_t i = from; i < b->ops->n; i++) {
        b->ops->op[i].encodes = true;
        b->ops->op[i].apart = b->ops->op[i].apart || b->pass->sums;
    }
}

void build_source_leave(struct build *b, const struct build_source *s)
{
    b->pass = s->was.pass;
    set_encodes(b, s->from);
    b->many = s->was.many;
    b->both_ways = s->was.both_ways;
    b->tokens = s->was.tokens;
    b->rows = s->was.rows;
    b->part_rows = s->was.part_rows;
    b->norm_rows = s->was.norm_rows;
    b->routed = s->was.routed;
}

/* Of a convolution's output all channels and places of a sequence together. */
static void build_stem_norm(struct build *b, const struct sym *rows, const struct sym *width)
{
    struct cost_op *op = build_op(b, OP_NORM, "stem_norm", "[B*frames, channels]");
    op->vector_flops = PROD(INT(build_norm_flops(NORM_LAYER_BIAS)), rows, width);
    op->activation_bytes = PROD(INT(2), rows, width, Y->b_act);
    build_vector(b, op, PROD(INT(2), width), true);
    if (!b->v->norms_uncounted) op->weight_bytes = op->tensor[0].bytes;
}

static const struct sym *channels(const struct build *b, int64_t n) { return n == b->m->hidden ? Y->D : INT(n); }

/* Convolutions of a stem, each over the places that the strides behind it leave, and a nonlinearity. Inputs are read
 * once, whatever taps they meet. */
static void build_stem(struct build *b)
{
    static const char *const NAMES[STEM_MAX][3] = {
        {"stem_conv", "stem_act", "[B*frames, taps*in] x [taps*in, out]"},
        {"stem_conv_strided", "stem_act_strided", "[B*frames, taps*in] x [taps*in, out], every stride-th place"},
        {"stem_conv_last", "stem_act_last", "[B*X, taps*in] x [taps*in, D]"}};
    const struct model_encoder *x = &b->m->encoder;
    int64_t places = 1; /* of a convolution's output, to a token */
    for (size_t i = 0; i < x->stem_n; i++) places *= x->stem[i].stride;
    for (size_t i = 0; i < x->stem_n; i++) {
        const struct model_conv *k = &x->stem[i];
        const struct sym *read = PROD(INT(places), b->rows, channels(b, k->in));
        places /= k->stride;
        const struct sym *rows = PROD(INT(places), b->rows), *out = channels(b, k->out);
        const struct sym *in = PROD(INT(k->taps), channels(b, k->in));
        build_linear(b, NAMES[i][0], NAMES[i][2], WEIGHT_OTHER, rows, in, out, k->bias);
        struct cost_op *op = &b->ops->op[b->ops->n - 1];
        op->says = "convolution over time, as one product with all its taps";
        op->activation_bytes = PROD(SUM(read, PROD(rows, out)), Y->b_act);
        build_activation(b, NAMES[i][1], rows, out, false);
        if (k->norm) build_stem_norm(b, rows, out);
    }
}

void build_source_open(struct build *b)
{
    const struct model_encoder *x = &b->m->encoder;
    struct build_source s;
    if (x->layers == 0) return;
    build_source_enter(b, &s);
    if (x->stem_n > 0) {
        build_stem(b);
    } else {
        struct cost_op *op = build_op(b, OP_EMBED, "source_embed", "[B*X] rows of [V, D]");
        op->says = "gather one row of the decoder's embedding per token of the source";
        build_tensor(b, op, WEIGHT_EMBED, INT(1), Y->V, Y->D);
        op->tensor[0].shared = !x->own_embedding;
        op->weight_bytes = b->v->embed_full_table ? op->tensor[0].bytes : PROD(b->rows, Y->D, Y->b_embed);
        op->activation_bytes = PROD(b->rows, Y->D, Y->b_act);
        build_all_reduce(b, "source_all_reduce");
    }
    if (x->position_rows > 0) build_positions(b, "source_positions", "[B*X] stored rows of D", INT(x->position_rows));
    if (x->embed_norm) build_norms(b, "source_embed_norm", 1);
    build_source_leave(b, &s);
}

void build_source_close(struct build *b)
{
    struct build_source s;
    if (!b->m->encoder.final_norm) return;
    build_source_enter(b, &s);
    build_norms(b, "source_norm", 1);
    build_source_leave(b, &s);
}

/* Keys and values of the encoder's output, into the cache once. */
static void build_source_keys(struct build *b, const struct mixer *x, const struct sym *kv)
{
    const struct sym *const both[] = {PROD(Y->K, Y->H), PROD(Y->K, Y->Hv)}, *rows = PROD(sources(b), Y->X);
    const size_t from = b->ops->n;
    build_stacked(b, "source_kv_proj", "[B*X, D] x [D, K*(H+Hv)]", WEIGHT_MIXER, rows, Y->D, 2, both,
                  x->qkv_bias && !x->k_unbiased);
    b->ops->op[from].says = "keys and values of the encoder's output, once a request";
    if (x->qkv_bias && x->k_unbiased) build_bias(b, both[1]);
    struct cost_op *op = build_op(b, OP_KV_WRITE, "source_kv_write", "[B*X, cached width]");
    op->says = "keys and values of the encoder's output into the cache, once a request";
    op->kv_bytes = PROD(rows, kv, Y->b_kv);
    op->activation_bytes = PROD(rows, kv, Y->b_act);
    set_encodes(b, from);
    op->held_bytes = PROD(b->pass->sums ? build_each(b, b->pass->source_held) : rows, kv, Y->b_kv);
}

void build_source_attention(struct build *b, const struct mixer *x)
{
    const struct sym *kv = PROD(Y->K, SUM(Y->H, Y->Hv));
    const struct sym *any = b->pass->sums ? sym_min(b->c, INT(1), b->pass->T) : INT(1); /* a piece may have none */
    const struct sym *keys = build_each(b, PROD(any, Y->X));
    const struct attended at = {.pairs = build_each(b, PROD(b->pass->T, Y->X)), .keys = keys, .needed = keys};
    build_linear(b, "q_proj", "[B*T, D] x [D, N*H]", WEIGHT_MIXER, b->rows, Y->D, PROD(Y->N, Y->H), x->qkv_bias);
    build_source_keys(b, x, kv);
    build_attends(b, x, "[B, T, N, H] on [B, X, K, H+Hv]", &at, kv, true);
    build_linear(b, "o_proj", "[B*T, N*Hv] x [N*Hv, D]", WEIGHT_MIXER, b->rows, PROD(Y->N, Y->Hv), Y->D, x->o_bias);
}
