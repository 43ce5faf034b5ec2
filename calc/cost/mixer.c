/* mixer -- attention and latent attention. Derivations: MODEL.md "Attention", "Latent attention". */
#include "calc/cost/build.h"

#define Y (b->y)
#define INT(n) sym_int(b->c, (n))
#define PROD(...) SYM_PROD(b->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(b->c, __VA_ARGS__)
#define NEG(x) sym_mul(b->c, INT(-1), (x))
#define MIN(x, y) sym_min(b->c, (x), (y))

/* Elementwise flops of a softmax per score: max, -, exp, +, /. Of ALiBi: slope times distance, added. Of a sigmoid
 * gate: neg, exp, +, /, times. Of a norm without a weight: x*x, +, *rstd. Of a stored bias: added. */
enum {
    SOFTMAX_FLOPS = 5,
    GATE_FLOPS = 5,
    ALIBI_FLOPS = 2,
    RELATIVE_FLOPS = 1,
    ROPE_FLOPS = 3,
    HEAD_NORM_FLOPS = 4,
    PLAIN_NORM_FLOPS = 3
};

void build_cache_write(struct build *b, const char *name, const struct sym *width, const struct sym *bytes,
                       const struct sym *W)
{
    if (b->pass->uncached) return;
    struct cost_op *op = build_op(b, OP_KV_WRITE, name, "[B*T, cached width]");
    const struct sym *rows = b->rows;
    if (b->context) rows = build_share(b, rows);
    op->kv_bytes = PROD(rows, width, bytes);
    op->held_bytes = PROD(b->many, build_each(b, W ? MIN(b->pass->S, W) : build_share(b, b->pass->S)), width, bytes);
    op->activation_bytes = PROD(rows, width, Y->b_act);
}

void build_rope(struct build *b, const char *name, const char *shape, const struct sym *width)
{
    struct cost_op *op = build_op(b, OP_ROPE, name, shape);
    op->vector_flops = PROD(INT(ROPE_FLOPS), b->rows, width);
    op->activation_bytes = PROD(INT(2), b->rows, width, Y->b_act);
}

void build_head_norm(struct build *b, const char *name, const char *shape, int64_t flops, const struct sym *width,
                     const struct sym *n)
{
    struct cost_op *op = build_op(b, OP_HEAD_NORM, name, shape);
    op->vector_flops = PROD(INT(flops), b->rows, width);
    op->activation_bytes = PROD(INT(2), b->rows, width, Y->b_act);
    if (!n) return;
    build_vector(b, op, n, true);
    if (!b->v->norms_uncounted) op->weight_bytes = op->tensor[0].bytes;
}

/* What N queries of width qk do with the pairs and keys of `at`, whatever made them. */
static void build_pairs(struct build *b, const struct mixer *x, const char *shape, const struct attended *at,
                        const struct sym *qk, const struct sym *v, const struct sym *cached, bool from_cache)
{
    const bool shared = b->context && from_cache;
    const int64_t per_pair = SOFTMAX_FLOPS + (x->position == POSITION_ALIBI ? ALIBI_FLOPS : 0) +
                             (x->position == POSITION_RELATIVE || x->value_mask ? RELATIVE_FLOPS : 0);
    const struct sym *batch = b->many, *own = shared ? PROD(Y->N, b->context) : Y->N, *heads = own;
    if (x->kind == MIXER_LATENT && v == Y->C && b->v->head_multiple > 0) /* absorbed: blocks of heads */
        heads = PROD(INT(b->v->head_multiple), sym_ceil(b->c, sym_div(b->c, own, INT(b->v->head_multiple))));
    struct cost_op *op = build_op(b, OP_ATTENTION, "attention", shape);
    build_apart(b);
    op->flops = PROD(INT(2), batch, heads, SUM(qk, v), at->pairs);
    op->vector_flops = PROD(INT(per_pair), batch, heads, at->pairs);
    op->activation_bytes = PROD(b->part_rows, own, SUM(qk, v), Y->b_act);
    if (from_cache) {
        op->kv_bytes = PROD(batch, at->keys, cached, Y->b_kv);
        op->kv_needed_bytes = PROD(batch, at->needed, cached, Y->b_kv);
    } else {
        op->activation_bytes = SUM(op->activation_bytes, PROD(batch, at->keys, cached, Y->b_act));
    }
    if (x->sinks) {
        build_vector(b, op, Y->N, false);
        op->weight_bytes = op->tensor[0].bytes;
    }
    if (x->bias_rows > 0) {
        build_vector(b, op, PROD(INT(x->bias_rows), Y->N), false);
        struct cost_tensor *table = &op->tensor[op->tensors_n - 1];
        table->shared = table->shared || x->bias_shared;
        op->weight_bytes = SUM(op->weight_bytes, table->bytes);
    }
}

void build_attends(struct build *b, const struct mixer *x, const char *shape, const struct attended *at,
                   const struct sym *cached, bool from_cache)
{
    build_pairs(b, x, shape, at, Y->H, Y->Hv, cached, from_cache);
}

/* Attention of N queries of width qk against keys and values held as `cached` elements per token. */
static void build_core(struct build *b, const struct mixer *x, const char *shape, const struct sym *qk,
                       const struct sym *v, const struct sym *cached, bool from_cache)
{
    const struct attended at = b->context && from_cache ? build_shared(b, true)
                               : x->stripe_every        ? build_striped(b, x)
                               : x->top_keys            ? build_selected(b, Y->U)
                                                        : build_attended(b, x->window_tokens ? Y->W : NULL, x->chunked);
    build_pairs(b, x, shape, &at, qk, v, cached, from_cache);
}

/* Norms of query and key heads, `width` elements together, before they rotate. */
static void build_qk_norm(struct build *b, const struct mixer *x, const struct sym *width)
{
    const enum qk_norm kind = x->qk_norm;
    if (kind == QK_NORM_NONE) return;
    const enum norm_kind of = kind == QK_NORM_EACH_LAYER                       ? NORM_LAYER_BIAS
                              : kind == QK_NORM_HEAD || b->m->norm == NORM_RMS ? b->m->norm
                                                                               : NORM_LAYER;
    const int64_t sides = x->shares_kv ? 1 : 2;
    const struct sym *shared = PROD(INT(build_norm_vectors(of) * sides), Y->H);
    const bool plain = kind == QK_NORM_PLAIN;
    if (kind == QK_NORM_WIDE) /* a rank has the squares of its own heads; sums in fp32 */
        build_sum_of_bytes(b, "qk_norm_all_reduce", "[B*T, 2] over t ranks",
                           PROD(b->rows, INT(sides * COST_FP32_BYTES)));
    build_head_norm(b, "qk_norm", "[B*T, (N+K)*H]", plain ? PLAIN_NORM_FLOPS : build_norm_flops(of), width,
                    plain                        ? NULL
                    : kind == QK_NORM_HEAD       ? shared
                    : kind == QK_NORM_EACH_LAYER ? PROD(INT(2), width)
                                                 : width);
    if (x->idle_kv && kind == QK_NORM_HEAD) build_vector(b, &b->ops->op[b->ops->n - 1], Y->H, true);
}

/* Low-rank products of the layer's own beside q, k and v, whose weights other layers share (Zamba2). */
static void build_adapters(struct build *b, const struct sym *in, const struct sym *const *out)
{
    const bool borrowed = b->borrowed;
    const struct sym *wide = SUM(out[0], out[1], out[2]);
    b->borrowed = false;
    build_linear(b, "qkv_adapter_down", "[B*T, 2D] x [2D, 3Ra]", WEIGHT_MIXER, b->rows, in, PROD(INT(3), Y->Ra), false);
    struct cost_op *op = build_op(b, OP_LINEAR, "qkv_adapter_up", "[B*T, Ra] x [Ra, N*H], twice [Ra, K*H]");
    op->compute_class = WEIGHT_MIXER;
    op->flops = PROD(INT(2), b->rows, Y->Ra, wide);
    op->activation_bytes = PROD(b->rows, SUM(PROD(INT(3), Y->Ra), wide), Y->b_act);
    build_tensor(b, op, WEIGHT_MIXER, INT(1), wide, Y->Ra);
    op->weight_bytes = op->tensor[0].bytes;
    b->borrowed = borrowed;
    build_elementwise(b, OP_RESIDUAL, "qkv_adapter_add", "[B*T, N*H + K*(H+Hv)]", PROD(b->rows, wide), 1, 3);
}

/* Queries made of a normed product that is narrower; keys and values come with that product. */
static void build_narrow(struct build *b, const struct mixer *x, const struct sym *const *all)
{
    const struct sym *const narrow[] = {Y->Q, all[1], all[2]};
    build_stacked(b, "qkv_a_proj", "[B*T, D] x [D, Q + K*(H+Hv)]", WEIGHT_MIXER, b->rows, Y->D, 3, narrow, x->qkv_bias);
    build_head_norm(b, "q_a_norm", "[B*T, latent]", HEAD_NORM_FLOPS, Y->Q, Y->Q);
    build_linear(b, "q_b_proj", "[B*T, Q] x [Q, N*H]", WEIGHT_MIXER, b->rows, Y->Q, all[0], false);
}

/* Queries, and keys and values of the layer's own. */
static void build_qkv(struct build *b, const struct mixer *x)
{
    const struct sym *q = PROD(Y->N, Y->H), *k = PROD(Y->K, Y->H), *v = PROD(Y->K, Y->Hv);
    const struct sym *const all[] = {x->output_gate ? PROD(INT(2), q) : q, k, v};
    const struct sym *in = x->doubled_input ? PROD(INT(2), Y->D) : Y->D;
    if (x->shares_kv) {
        build_linear(b, "q_proj", "[B*T, D] x [D, N*H]", WEIGHT_MIXER, b->rows, Y->D, q, x->qkv_bias);
        struct cost_op *op = &b->ops->op[b->ops->n - 1];
        for (size_t i = 1; x->idle_kv && i < 3; i++) build_tensor(b, op, WEIGHT_MIXER, INT(1), all[i], Y->D);
    } else if (x->q_rank > 0) {
        build_narrow(b, x, all);
    } else if (x->v_is_k) {
        build_stacked(b, "qk_proj", "[B*T, D] x [D, (N+K)*H]", WEIGHT_MIXER, b->rows, Y->D, 2, all, x->qkv_bias);
    } else {
        build_stacked(b, "qkv_proj",
                      x->output_gate ? "[B*T, D] x [D, 2*N*H + K*(H+Hv)]" : "[B*T, D] x [D, N*H + K*(H+Hv)]",
                      WEIGHT_MIXER, b->rows, in, 3, all, x->qkv_bias && !x->k_unbiased && !x->gate_apart);
        if (x->qkv_bias && x->k_unbiased) build_bias(b, SUM(q, v));
        if (x->qkv_bias && x->gate_apart) build_bias(b, SUM(q, k, v));
    }
    if (x->adapter_rank > 0) build_adapters(b, in, all);
    if (x->recurrence.conv_taps > 0) build_conv(b, x, build_conv_channels(b, x), 0, 1);
    const struct sym *turned = x->shares_kv ? q : SUM(q, k);
    build_qk_norm(b, x, turned);
    if (x->v_norm && !x->shares_kv) build_head_norm(b, "v_norm", "[B*T, K*Hv]", PLAIN_NORM_FLOPS, v, NULL);
    if (x->position == POSITION_ROPE) build_rope(b, "rope", x->shares_kv ? "[B*T, N*H]" : "[B*T, (N+K)*H]", turned);
}

/* A target's features as keys and values, by the weights that the block's own tokens have passed. */
static void build_features(struct build *b, const struct mixer *x, const struct sym *kv)
{
    const struct sym *k = PROD(Y->K, Y->H);
    build_linear(b, "feature_kv", "[B*T, D] x [D, K*(H+Hv)]", WEIGHT_MIXER, b->rows, Y->D, kv, x->qkv_bias);
    struct cost_op *op = &b->ops->op[b->ops->n - 1];
    for (size_t i = 0; i < op->tensors_n; i++) op->tensor[i].shared = true;
    if (x->qk_norm == QK_NORM_HEAD) {
        build_head_norm(b, "feature_k_norm", "[B*T, K*H]", build_norm_flops(b->m->norm), k,
                        PROD(INT(build_norm_vectors(b->m->norm)), Y->H));
        b->ops->op[b->ops->n - 1].tensor[0].shared = true;
    }
    if (x->position == POSITION_ROPE) build_rope(b, "feature_rope", "[B*T, K*H]", k);
}

/* Attention over old tokens, those of the rank for all heads of the ranks that share them, and over new ones, for its
 * own heads. */
static void build_shared_core(struct build *b, const struct mixer *x, const struct sym *kv)
{
    const struct sym *d = b->context, *wide = SUM(Y->H, Y->Hv), *old, *pairs;
    (void)build_context_gather(b, "query_all_gather", "[B*T, N, H] of each of d ranks",
                               PROD(b->rows, Y->N, Y->H, Y->b_act));
    const struct attended at = build_shared(b, false);
    struct cost_op *op = build_op(b, OP_ATTENTION, "attention", "[B, T, d*N, H] on [B, (S-T)/d, K, H+Hv]");
    build_apart(b);
    old = PROD(d, at.pairs);
    pairs = SUM(old, build_new_pairs(b));
    op->flops = PROD(INT(2), b->many, Y->N, wide, pairs);
    op->vector_flops = PROD(INT(SOFTMAX_FLOPS), b->many, Y->N, pairs);
    op->kv_bytes = PROD(b->many, at.keys, kv, Y->b_kv);
    op->kv_needed_bytes = x->shares_kv ? INT(0) : PROD(b->many, at.needed, kv, Y->b_kv);
    op->activation_bytes = PROD(b->part_rows, SUM(PROD(SUM(d, INT(1)), Y->N, wide), kv), Y->b_act);
    build_context_outputs(b, b->rows, Y->Hv, false);
    build_context_merge(b);
}

/* One number a head, whose sigmoid multiplies the head's output. */
static void build_head_gate(struct build *b, const struct mixer *x)
{
    if (!x->head_gate) return;
    build_linear(b, "head_gate_proj", "[B*T, D] x [D, N]", WEIGHT_MIXER, b->rows, Y->D, Y->N, false);
    struct cost_op *op = build_op(b, OP_ACTIVATION, "head_gate", "[B*T, N, Hv]");
    op->vector_flops = PROD(b->rows, SUM(PROD(INT(GATE_FLOPS - 1), Y->N), PROD(Y->N, Y->Hv)));
    op->activation_bytes = PROD(b->rows, SUM(Y->N, PROD(INT(2), Y->N, Y->Hv)), Y->b_act);
}

/* Queries and output by experts, each of K heads: chosen ones attend to the same keys and values (JetMoE). */
static void build_routed(struct build *b, const struct mixer *x)
{
    const struct sym *wide = PROD(Y->K, Y->H), *const both[] = {wide, PROD(Y->K, Y->Hv)};
    const struct sym *kv = SUM(both[0], both[1]);
    build_mixer_route(b);
    build_mixer_experts(b, "q_experts", "[B*T*k, D] x [E, D, K*H]", Y->D, wide);
    build_stacked(b, "kv_proj", "[B*T, D] x [D, K*(H+Hv)]", WEIGHT_MIXER, b->rows, Y->D, 2, both, false);
    if (x->position == POSITION_ROPE) build_rope(b, "rope", "[B*T, (N+K)*H]", PROD(SUM(Y->N, Y->K), Y->H));
    build_cache_write(b, "kv_write", kv, Y->b_kv, NULL);
    build_core(b, x, "[B, T, N, H] on [B, S, K, H+Hv]", Y->H, Y->Hv, kv, !b->pass->uncached);
    build_mixer_experts(b, "o_experts", "[B*T*k, K*Hv] x [E, K*Hv, D]", both[1], Y->D);
    build_mixer_combine(b);
}

/* The cache of a layer's first time, by the same queries; gates of the heads, the layer's own, weigh both answers. */
static void build_first_too(struct build *b, const struct mixer *x, const struct sym *kv)
{
    enum { PRODUCT_FLOPS = 2, SIGMOID_FLOPS = 4, MIX_FLOPS = 3 }; /* g*a + (1-g)*b as b + g*(a-b) */
    struct mixer first = *x;
    const bool borrowed = b->borrowed;
    first.window_tokens = 0;
    build_core(b, &first, "[B, T, N, H] on [B, S, K, H+Hv]", Y->H, Y->Hv, kv, !b->pass->uncached);
    struct cost_op *op = &b->ops->op[b->ops->n - 1];
    op->name = "attention_first";
    op->kv_needed_bytes = INT(0); /* the layer's first time has them */
    op = build_op(b, OP_ACTIVATION, "loop_gate", "[B*T, N, H] and twice [B*T, N, Hv]");
    op->vector_flops =
        PROD(b->rows, Y->N, SUM(PROD(INT(PRODUCT_FLOPS), Y->H), INT(SIGMOID_FLOPS), PROD(INT(MIX_FLOPS), Y->Hv)));
    op->activation_bytes = PROD(b->rows, Y->N, SUM(Y->H, PROD(INT(3), Y->Hv)), Y->b_act);
    b->borrowed = false;
    build_vector(b, op, PROD(Y->N, SUM(Y->H, INT(1))), false);
    b->borrowed = borrowed;
    op->weight_bytes = op->tensor[0].bytes;
}

static void build_gqa(struct build *b, const struct mixer *x)
{
    const struct sym *kv = PROD(Y->K, SUM(Y->H, Y->Hv));
    if (x->routed_queries) {
        build_routed(b, x);
        return;
    }
    if (x->of_source) {
        build_source_attention(b, x);
        return;
    }
    build_qkv(b, x);
    if (x->features_kv) build_features(b, x, kv);
    if (!x->shares_kv) build_cache_write(b, "kv_write", kv, Y->b_kv, x->window_tokens ? Y->W : NULL);
    build_index(b, x);
    build_value_mask(b, x);
    if (b->context)
        build_shared_core(b, x, kv);
    else
        build_core(b, x, "[B, T, N, H] on [B, S, K, H+Hv]", Y->H, x->differential ? PROD(INT(2), Y->Hv) : Y->Hv, kv,
                   !b->pass->uncached);
    if (x->first_too) build_first_too(b, x, kv);
    if (x->shares_kv && !b->context)
        b->ops->op[b->ops->n - 1].kv_needed_bytes = INT(0); /* the layer that made them has them */
    build_difference(b, x);
    if (x->output_gate)
        build_elementwise(b, OP_ACTIVATION, "output_gate", "[B*T, N*Hv]", PROD(b->rows, Y->N, Y->Hv),
                          x->gate_bias ? GATE_FLOPS + 1 : GATE_FLOPS, 3);
    if (x->gate_bias) {
        struct cost_op *op = &b->ops->op[b->ops->n - 1];
        build_vector(b, op, Y->N, false);
        op->weight_bytes = op->tensor[0].bytes;
    }
    build_head_gate(b, x);
    build_linear(b, "o_proj", "[B*T, N*Hv] x [N*Hv, D]", WEIGHT_MIXER, b->rows, PROD(Y->N, Y->Hv), Y->D, x->o_bias);
}

/* One product per head with its own slice of the latent's expansion. */
static void build_absorb(struct build *b, const char *name, const char *shape, const struct sym *in,
                         const struct sym *out, const struct sym *w_out, const struct sym *w_in)
{
    struct cost_op *op = build_op(b, OP_ABSORB, name, shape);
    build_apart(b);
    op->compute_class = WEIGHT_MIXER;
    op->rows = b->part_rows;
    op->in = in;
    op->out = out;
    op->flops = PROD(INT(2), b->part_rows, Y->N, in, out);
    op->activation_bytes = PROD(b->part_rows, Y->N, SUM(in, out), Y->b_act);
    build_tensor(b, op, WEIGHT_MIXER, INT(1), w_out, w_in);
    op->weight_bytes = op->tensor[0].bytes;
}

/* Latents of old tokens, of which each rank has its part, on all of them; false: there are none. */
static bool build_latents_gather(struct build *b, const struct sym *old, const struct sym *cached)
{
    if (old == INT(0)) return false;
    const struct sym *part = PROD(b->many, build_each(b, build_share(b, SUM(b->pass->S, NEG(b->pass->T)))), cached);
    (void)build_context_gather(b, "latent_all_gather", "[B*(S-T)/d, C+R] of each of d ranks", PROD(part, Y->b_act));
    build_apart(b);
    return true;
}

static void build_latent(struct build *b, const struct mixer *x)
{
    if (x->one_vector) {
        build_pooled(b, x);
        return;
    }
    const struct sym *key = SUM(Y->H, Y->R), *cached = SUM(Y->C, Y->R), *q = PROD(Y->N, key);
    if (x->q_rank > 0) {
        build_linear(b, "q_a_proj", "[B*T, D] x [D, Q]", WEIGHT_MIXER, b->rows, Y->D, Y->Q, false);
        build_head_norm(b, "q_a_norm", "[B*T, latent]", HEAD_NORM_FLOPS, Y->Q, Y->Q);
        if (x->gate_of_latent)
            build_linear(b, "q_gate_proj", "[B*T, 2Q] x [2Q, N*(H+R+Hv)]", WEIGHT_MIXER, b->rows, PROD(INT(2), Y->Q),
                         SUM(q, PROD(Y->N, Y->Hv)), false);
        else
            build_linear(b, "q_b_proj", "[B*T, Q] x [Q, N*(H+R)]", WEIGHT_MIXER, b->rows, Y->Q, q, false);
    } else {
        build_linear(b, "q_proj", "[B*T, D] x [D, N*(H+R)]", WEIGHT_MIXER, b->rows, Y->D, q, false);
    }
    build_linear(b, "kv_a_proj", "[B*T, D] x [D, C+R]", WEIGHT_MIXER, b->rows, Y->D, cached, false);
    const struct sym *const stacked[] = {cached, Y->Q}; /* engines make both latents by one product */
    build_adapted(b, "latents", b->rows, Y->D, x->q_rank > 0 ? 2 : 1, stacked);
    build_head_norm(b, "kv_a_norm", "[B*T, latent]", HEAD_NORM_FLOPS, Y->C, Y->C);
    if (x->rope_norm) build_head_norm(b, "k_rope_norm", "[B*T, R]", HEAD_NORM_FLOPS, Y->R, Y->R);
    if (x->position == POSITION_ROPE) build_rope(b, "rope", "[B*T, (N+1)*R]", PROD(SUM(Y->N, INT(1)), Y->R));
    if (x->query_scales) build_query_scales(b, "q_scale", Y->N, key);
    build_cache_write(b, "kv_write", cached, Y->b_kv, x->window_tokens ? Y->W : NULL);
    build_index(b, x);
    const struct sym *expanded = PROD(Y->N, SUM(Y->H, Y->Hv));
    const bool absorbed = b->v->latent == LATENT_BY_PASS ? b->pass->absorbed : b->v->latent == LATENT_ABSORBED;
    if (absorbed || x->top_keys > 0) { /* chosen keys are gathered as latents, in prefill too */
        build_absorb(b, "q_absorb", "[B*T, N, H] x [N, H, C]", Y->H, Y->C, PROD(Y->N, Y->H), Y->C);
        if (b->context) {
            (void)build_context_gather(b, "query_all_gather", "[B*T, N, C+R] of each of d ranks",
                                       PROD(b->part_rows, Y->N, cached, Y->b_act));
            build_apart(b);
        }
        build_core(b, x, b->context ? "[B, T, d*N, C+R] on [B, S/d, C+R]" : "[B, T, N, C+R] on [B, S, C+R]", cached,
                   Y->C, cached, !b->pass->uncached);
        if (b->context) build_context_outputs(b, b->part_rows, Y->C, true);
        build_absorb(b, "v_absorb", "[B*T, N, C] x [N, C, Hv]", Y->C, Y->Hv, PROD(Y->N, Y->Hv), Y->C);
        build_adapted(b, "kv_b", INT(0), Y->C, 1, &expanded); /* idle: its weights alone are absorbed */
    } else {
        /* The latents of all tokens that the window leaves are expanded; those before the pass come from the cache,
         * latent and rope part. */
        const struct sym *context = build_attended(b, x->window_tokens ? Y->W : NULL, false).keys;
        const struct sym *tokens = sym_mul(b->c, b->many, context);
        const struct sym *old = sym_mul(b->c, b->many, SUM(context, NEG(b->tokens)));
        const struct sym *wide = expanded;
        const bool gathered = b->context && build_latents_gather(b, old, cached);
        build_linear(b, "kv_b_proj", "[B*S, C] x [C, N*(H+Hv)]", WEIGHT_MIXER, tokens, Y->C, wide, false);
        build_apart(b);
        struct cost_op *op = &b->ops->op[b->ops->n - 1];
        if (!b->pass->uncached) {
            const struct sym *S = b->pass->S, *read = old, *needed = tokens;
            if (b->context) { /* its own part, before the gather */
                read = PROD(b->many, build_each(b, build_share(b, SUM(S, NEG(b->pass->T)))));
                needed = PROD(b->many, build_each(b, build_share(b, S)));
            }
            op->kv_bytes = PROD(read, cached, Y->b_kv);
            op->kv_needed_bytes = PROD(needed, cached, Y->b_kv);
            op->activation_bytes =
                PROD(SUM(PROD(gathered ? tokens : b->part_rows, Y->C), PROD(tokens, wide)), Y->b_act);
        }
        build_adapted(b, "kv_b", tokens, Y->C, 1, &expanded);
        build_core(b, x, "[B, T, N, H+R] on [B, S, N, H+R+Hv]", key, Y->Hv, wide, false);
        /* the rope part of the keys: that of old tokens was read with their latents */
        op = &b->ops->op[b->ops->n - 1];
        op->activation_bytes = SUM(op->activation_bytes, PROD(gathered ? tokens : b->part_rows, Y->R, Y->b_act));
    }
    build_head_gate(b, x);
    if (x->output_gate) {
        const struct sym *wide = PROD(Y->N, Y->Hv);
        if (!x->gate_of_latent)
            build_linear(b, "output_gate_proj", "[B*T, D] x [D, N*Hv]", WEIGHT_MIXER, b->rows, Y->D, wide, false);
        build_elementwise(b, OP_ACTIVATION, "output_gate", "[B*T, N*Hv]", PROD(b->rows, wide), GATE_FLOPS, 3);
    }
    build_linear(b, "o_proj", "[B*T, N*Hv] x [N*Hv, D]", WEIGHT_MIXER, b->rows, PROD(Y->N, Y->Hv), Y->D, x->o_bias);
}

void build_mixer(struct build *b, const struct mixer *x)
{
    const bool shared = layout_whole(&b->layout->layout).dcp > 1 && !b->pass->uncached;
    b->context = shared && layout_shares_context(x) ? b->ly.context : NULL;
    switch (x->kind) {
    case MIXER_NONE: return;
    case MIXER_ATTENTION: build_gqa(b, x); break;
    case MIXER_LATENT: build_latent(b, x); break;
    case MIXER_RECURRENT: build_recurrent(b, x); break;
    }
    b->context = NULL;
    if (!b->parallel) build_all_reduce(b, "mixer_all_reduce");
}
