/* ffn -- dense MLPs and experts. Derivations: MODEL.md "MLP", "Experts". */
#include <string.h>

#include "calc/cost/build.h"

#define Y (b->y)
#define INT(n) sym_int(b->c, (n))
#define PROD(...) SYM_PROD(b->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(b->c, __VA_ARGS__)

/* Elementwise flops of the nonlinearity: SiLU x/(1+exp(-x)) is neg, exp, +, /; the gate multiplies once more. */
enum { ACT_FLOPS = 4, GATE_FLOPS = 1, INNER_NORM_FLOPS = 4 };

void build_activation(struct build *b, const char *name, const struct sym *rows, const struct sym *width, bool gated)
{
    struct cost_op *op = build_op(b, OP_ACTIVATION, name, gated ? "[rows, 2F] -> [rows, F]" : "[rows, F]");
    op->vector_flops = PROD(INT(gated ? ACT_FLOPS + GATE_FLOPS : ACT_FLOPS), rows, width);
    op->activation_bytes = PROD(INT(gated ? 3 : 2), rows, width, Y->b_act);
}

/* The course's kernel: X read, gate, up and down read, gate and up outputs written once and not charged as read again
 * by the third product, Y written. */
static void build_fused(struct build *b, const struct ffn *f, const struct sym *width)
{
    const int64_t matrices = f->gated ? 3 : 2;
    struct cost_op *op = build_op(b, OP_MLP, "mlp", "[B*T, D] x [D, 2F], [B*T, F] x [F, D]");
    op->compute_class = WEIGHT_FFN;
    op->flops = PROD(INT(2 * matrices), b->rows, Y->D, width);
    op->vector_flops = PROD(INT(f->gated ? ACT_FLOPS + GATE_FLOPS : ACT_FLOPS), b->rows, width);
    op->activation_bytes =
        SUM(PROD(INT(2), b->rows, Y->D, Y->b_act), PROD(INT(matrices - 1), b->rows, width, Y->b_act));
    const struct sym *const wide[] = {width, width};
    const size_t all = (size_t)matrices;
    const struct build_stack up = {.all = all, .n = all - 1, .copies = INT(1), .out = wide, .in = Y->D};
    const struct build_stack down = {.first = all - 1, .all = all, .n = 1, .copies = INT(1), .out = &Y->D, .in = width};
    build_matrices(b, op, WEIGHT_FFN, &up);
    build_matrices(b, op, WEIGHT_FFN, &down);
    if (f->up_bias) {
        build_vector(b, op, PROD(INT(matrices - 1), width), false);
        op->vector_flops = SUM(op->vector_flops, PROD(INT(matrices - 1), b->rows, width));
    }
    if (f->down_bias) {
        build_vector(b, op, Y->D, false);
        op->vector_flops = SUM(op->vector_flops, PROD(b->rows, Y->D));
    }
    for (size_t i = 0; i < op->tensors_n; i++) op->weight_bytes = SUM(op->weight_bytes, op->tensor[i].bytes);
    build_outliers(b, op, WEIGHT_FFN, &up, b->rows, INT(1));
    build_outliers(b, op, WEIGHT_FFN, &down, b->rows, INT(1));
    build_adapted(b, "up_proj", b->rows, Y->D, all - 1, wide);
    build_adapted(b, "down_proj", b->rows, width, 1, &Y->D);
}

/* A low-rank product of the layer's own beside gate and up, whose weights other layers share. */
static void build_adapter(struct build *b, const struct sym *out)
{
    const bool borrowed = b->borrowed;
    b->borrowed = false;
    build_linear(b, "adapter_down", "[B*T, D] x [D, Ra]", WEIGHT_FFN, b->rows, Y->D, Y->Ra, false);
    build_linear(b, "adapter_up", "[B*T, Ra] x [Ra, 2F]", WEIGHT_FFN, b->rows, Y->Ra, out, false);
    b->borrowed = borrowed;
    struct cost_op *op = build_op(b, OP_RESIDUAL, "adapter_add", "[B*T, 2F]");
    op->vector_flops = PROD(b->rows, out);
    op->activation_bytes = PROD(INT(3), b->rows, out, Y->b_act);
}

static void build_dense(struct build *b, const char *up, const char *act, const char *down, const struct ffn *f,
                        const struct sym *width)
{
    const struct sym *const out[] = {width, width};
    build_stacked(b, up, f->gated ? "[B*T, D] x [D, 2F]" : "[B*T, D] x [D, F]", WEIGHT_FFN, b->rows, Y->D,
                  f->gated ? 2 : 1, out, f->up_bias);
    if (f->adapter_rank > 0) build_adapter(b, PROD(INT(f->gated ? 2 : 1), width));
    build_activation(b, act, b->rows, width, f->gated);
    if (f->act_params > 0) {
        struct cost_op *op = &b->ops->op[b->ops->n - 1];
        build_vector(b, op, INT(f->act_params), false);
        op->weight_bytes = op->tensor[0].bytes;
    }
    if (f->inner_norm) build_head_norm(b, "mlp_inner_norm", "[B*T, F]", INNER_NORM_FLOPS, width, width);
    build_linear(b, down, "[B*T, F] x [F, D]", WEIGHT_FFN, b->rows, width, Y->D, f->down_bias);
}

/* RWKV's channel mix: mixtures with the token before; squared ReLU between two products; unless it is bare a gate of
 * the second mixture, whose product every rank has whole. */
static void build_channel_mix(struct build *b, bool bare)
{
    build_token_shift(b, "channel_shift", bare ? 1 : 2);
    build_linear(b, "up_proj", "[B*T, D] x [D, F]", WEIGHT_FFN, b->rows, Y->D, Y->F, false);
    build_activation(b, "mlp_act", b->rows, Y->F, false);
    build_linear(b, "down_proj", "[B*T, F] x [F, D]", WEIGHT_FFN, b->rows, Y->F, Y->D, false);
    if (bare) return;
    build_linear(b, "receptance", "[B*T, D] x [D, D]", WEIGHT_FFN, b->rows, Y->D, Y->D, false);
    build_elementwise(b, OP_ACTIVATION, "channel_gate", "[B*T, D]", PROD(b->rows, Y->D), ACT_FLOPS + GATE_FLOPS, 3);
}

/* Medusa: a product of the stream's own width, which every rank has whole, through a nonlinearity. */
static void build_residual_unit(struct build *b, const struct ffn *f)
{
    build_linear(b, "unit_proj", "[B*T, D] x [D, D]", WEIGHT_FFN, b->rows, Y->D, Y->D, f->up_bias);
    build_activation(b, "unit_act", b->rows, Y->D, false);
}

/* Of experts drawn with probabilities of their own: 1 - mean of (1-p)^n. */
static const struct sym *share_skewed(struct build *b, const struct sym *n)
{
    const struct ffn *f = &b->m->kinds[b->kind_index].ffn;
    double *p = arena_array(b->arena, (size_t)f->experts, sizeof *p);
    const struct sym **missed = arena_array(b->arena, (size_t)f->experts, sizeof *missed);
    if (!p || !missed) return NULL;
    routing_popularity(&b->v->routing, f->experts, f->experts_per_token, p);
    const int64_t each = b->by_group ? f->group_experts : 1, all = f->experts / each;
    for (int64_t i = 0; i < all; i++) { /* a group is missed where all of its experts are */
        double rest = 1;
        for (int64_t j = 0; j < each; j++) rest *= p[i * each + j] < 1 ? 1 - p[i * each + j] : 0;
        missed[i] = rest > 0 ? sym_pow(b->c, sym_num(b->c, rest), n) : INT(0);
    }
    return sym_sub(b->c, INT(1), sym_div(b->c, sym_sum(b->c, (size_t)all, missed), INT(all)));
}

/* The same by other rules than the default (routing.h). */
static const struct sym *share_by_rule(struct build *b, const struct sym *n)
{
    const struct sym *one = INT(1);
    switch (b->v->routing.rule) {
    case ROUTING_ZIPF:
    case ROUTING_LOADS: return share_skewed(b, n);
    case ROUTING_REPLACEMENT:
        return sym_sub(b->c, one, sym_pow(b->c, sym_sub(b->c, one, sym_div(b->c, one, Y->E)), PROD(n, Y->k)));
    case ROUTING_UPPER: return sym_min(b->c, one, sym_div(b->c, PROD(n, Y->k), Y->E));
    case ROUTING_ACTIVE: return sym_div(b->c, Y->k, Y->E);
    case ROUTING_ALL:
    case ROUTING_UNIFORM: break;
    }
    return one;
}

/* Expected share of the experts that n tokens touch, each drawing k of E without replacement: 1-(1-k/E)^n; k/E exactly
 * at n = 1. A part that draws skew times as much: the same of skew*k. */
static const struct sym *share_of_all(struct build *b, const struct sym *n, const struct sym *skew)
{
    if (b->v->routing.rule != ROUTING_UNIFORM) return share_by_rule(b, n);
    const struct sym *one = INT(1), *drawn = PROD(skew, Y->k);
    return sym_sub(b->c, one, sym_pow(b->c, sym_sub(b->c, one, sym_div(b->c, drawn, Y->E)), n));
}

/* Of distinct experts so many lie in the part that has most (layout_busiest, straight between its knots); NULL where
 * the layout's numbers are of other experts. */
static const struct sym *busiest_part(struct build *b, const struct sym *distinct)
{
    const struct ffn *f = &b->m->kinds[b->kind_index].ffn, *of = layout_routed(b->m);
    if (b->by_group || f->experts != of->experts || f->experts_per_token != of->experts_per_token) return NULL;
    const struct layout_symbols *y = &b->ly;
    const struct sym *const rise[LAYOUT_KNOTS - 1] = {y->rise0, y->rise1, y->rise2, y->rise3, y->rise4, y->rise5,
                                                      y->rise6, y->rise7, y->rise8, y->rise9, y->rise10};
    double knot[LAYOUT_KNOTS];
    layout_knots(f->experts, f->experts_per_token, knot);
    const struct sym *sum = PROD(rise[0], distinct);
    for (int i = 1; i < LAYOUT_KNOTS - 1; i++)
        if (knot[i + 1] > knot[i])
            sum = SUM(sum, PROD(rise[i], sym_max(b->c, INT(0), sym_sub(b->c, distinct, sym_num(b->c, knot[i])))));
    return sum;
}

/* Experts that the busiest part reads: at least skew times the mean's. */
static const struct sym *part_touches(struct build *b)
{
    const struct sym *n = b->routed, *held = sym_div(b->c, Y->E, b->parts);
    const struct sym *mean = PROD(held, share_of_all(b, n, b->skew));
    if (b->parts == INT(1)) return mean;
    const struct sym *busiest = busiest_part(b, PROD(Y->E, share_of_all(b, n, INT(1))));
    return busiest ? sym_min(b->c, held, sym_max(b->c, mean, busiest)) : mean;
}

/* (token, expert) pairs that the busiest part computes: each token has k; an expert that is touched has one. */
static const struct sym *routed_work(struct build *b)
{
    const struct sym *mean = sym_div(b->c, PROD(b->routed, Y->k, b->skew), b->parts);
    return b->parts == INT(1) ? mean : sym_max(b->c, mean, part_touches(b));
}

/* Tokens of one sequence, the mean of a mixed pass, in an adapter of its own. */
static void build_adapted_grouped(struct build *b, const char *name, const struct sym *pairs, const struct sym *held,
                                  const struct sym *in, size_t n, const struct sym *const *out)
{
    if (b->m->adapters.slots == 0) return;
    const struct sym *one = INT(1), *sequences = b->pass->sums ? b->pass->step_sequences : b->pass->B;
    const struct sym *tokens = b->pass->sums ? sym_div(b->c, b->rows, sym_max(b->c, one, sequences)) : b->pass->T;
    const struct adapted_experts x = {.pairs = pairs, .touched = share_of_all(b, tokens, one), .held = held};
    build_adapted_experts(b, name, &x, in, n, out);
}

static void build_grouped(struct build *b, const char *name, const char *shape, const struct sym *in,
                          const struct sym *width, int64_t matrices, bool bias)
{
    const struct sym *n = routed_work(b), *out = PROD(INT(matrices), width);
    const struct sym *held = sym_div(b->c, Y->E, b->parts);
    const struct sym *share =
        b->parts == INT(1) ? share_of_all(b, b->routed, b->skew) : sym_div(b->c, part_touches(b), held);
    struct cost_op *op = build_op(b, OP_EXPERTS, name, shape);
    op->compute_class = WEIGHT_EXPERT;
    op->rows = b->routed;
    op->in = in;
    op->out = out;
    op->flops = PROD(INT(2), n, in, out);
    op->activation_bytes = PROD(n, SUM(in, out), Y->b_act);
    const struct sym *const wide[] = {width, width};
    const size_t all = (size_t)matrices;
    const struct build_stack stack = {.all = all, .n = all, .copies = held, .out = wide, .in = in};
    build_matrices(b, op, WEIGHT_EXPERT, &stack);
    if (bias) {
        const struct sym *elems = PROD(held, out);
        op->tensor[op->tensors_n++] = (struct cost_tensor){
            .class = WEIGHT_EXPERT, .elems = elems, .bytes = PROD(elems, Y->b_other), .shared = b->borrowed};
        op->vector_flops = PROD(n, out);
    }
    for (size_t i = 0; i < op->tensors_n; i++)
        op->weight_bytes = SUM(op->weight_bytes, PROD(share, op->tensor[i].bytes));
    build_outliers(b, op, WEIGHT_EXPERT, &stack, n, share);
    build_adapted_grouped(b, name, n, held, in, all, wide);
}

/* Weighted sum of experts' outputs: of a part's own where all its ranks have all tokens; of all k, each rank for its
 * part of the tokens, where they were dispatched. */
static void build_combine(struct build *b, const struct sym *width)
{
    struct cost_op *op = build_op(b, OP_COMBINE, "combine", "[B*T, k, D] -> [B*T, D]");
    const struct sym *one = INT(1);
    const struct sym *rows = b->rows, *n = routed_work(b);
    if (b->spread) {
        const struct sym *apart = b->is_spread, *here = sym_sub(b->c, one, apart);
        const struct sym *own = sym_ceil(b->c, sym_div(b->c, rows, Y->t));
        n = SUM(PROD(apart, own, Y->k), PROD(here, n));
        rows = SUM(PROD(apart, own), PROD(here, rows));
    }
    op->vector_flops = PROD(INT(2), n, width);
    op->activation_bytes = n == PROD(rows, Y->k) ? PROD(rows, SUM(PROD(Y->k, width), width), Y->b_act)
                                                 : PROD(SUM(n, rows), width, Y->b_act);
}

/* The vector added to a sum of experts. */
static void build_sum_bias(struct build *b, const char *name)
{
    struct cost_op *op = build_op(b, OP_RESIDUAL, name, "[B*T, D]");
    op->vector_flops = PROD(b->rows, Y->D);
    op->activation_bytes = PROD(INT(2), b->rows, Y->D, Y->b_act);
    build_vector(b, op, Y->D, false);
    op->weight_bytes = op->tensor[0].bytes;
}

/* Bytes that an element of a dispatched token takes: where experts multiply in 8 bits it is quantised before, with a
 * scale of 4 bytes for 128 elements (DeepEP). */
static const struct sym *dispatched_bytes(struct build *b)
{
    enum { SCALE_GROUP = 128 };
    const bool bits8 = strcmp(b->m->weights[WEIGHT_EXPERT].compute, "fp8") == 0;
    return bits8 ? sym_rat(b->c, SCALE_GROUP + COST_FP32_BYTES, SCALE_GROUP) : Y->b_act;
}

/* A further expert of each group: a token passes those of the groups that it chose any expert of, once, with the sum of
 * their weights. A group of g is missed by a choice of k among E with (E-k)/E * ... * (E-k-g+1)/(E-g+1). */
static void build_group_experts(struct build *b, const struct ffn *f, const struct sym *in)
{
    if (f->group_experts == 0) return;
    const struct cost_symbols *outer = b->y;
    struct cost_symbols own = *outer;
    const struct sym *missed = INT(1), *width = PROD(outer->F, sym_rat(b->c, f->group_width, f->width));
    for (int64_t i = 0; i < f->group_experts; i++)
        missed = PROD(missed, sym_div(b->c, SUM(outer->E, INT(-i), PROD(INT(-1), outer->k)), SUM(outer->E, INT(-i))));
    own.E = sym_div(b->c, outer->E, INT(f->group_experts));
    own.k = PROD(own.E, sym_sub(b->c, INT(1), missed));
    const size_t from = b->ops->n;
    b->y = &own;
    b->by_group = true;
    build_grouped(b, "groups_up", f->gated ? "[B*T*k', D] x [E/g, D, 2Fg]" : "[B*T*k', D] x [E/g, D, Fg]", in, width,
                  f->gated ? 2 : 1, false);
    build_activation(b, "groups_act", routed_work(b), width, f->gated);
    build_grouped(b, "groups_down", "[B*T*k', Fg] x [E/g, Fg, D]", width, in, 1, false);
    build_combine(b, in);
    b->ops->op[b->ops->n - 1].name = "groups_combine";
    b->by_group = false;
    b->y = outer;
    for (size_t i = from; i < b->ops->n; i++) b->ops->op[i].by_group = true;
    build_residual(b, "groups_add");
}

/* Each of the t ranks of a group sends its part of the tokens to the ranks of their experts, or gets it back. What
 * arrives at the busiest part binds. */
static void build_all_to_all(struct build *b, const char *name, const struct sym *width, const struct sym *bytes)
{
    if (!b->spread) return;
    struct cost_op *op = build_op(b, OP_ALL_TO_ALL, name, "[B*T/t, D] to and from the ranks of k experts");
    const struct sym *own = sym_ceil(b->c, sym_div(b->c, b->rows, Y->t)), *once = PROD(own, width, bytes);
    op->wire_bytes = PROD(b->ly.near, once);
    op->fabric_bytes = PROD(b->ly.far, once);
    op->activation_bytes = PROD(b->is_spread, SUM(INT(1), b->ly.near, b->ly.far), once);
}

/* Experts of images beside those of text, each modality with a router: their weights are held, nothing of them runs. */
static void build_image_experts(struct build *b, const struct ffn *f)
{
    if (f->image_experts == 0) return;
    struct cost_op *op = build_op(b, OP_SCALE, "image_experts", "[E, D, 2F], [E, F, D] of images");
    op->says = "experts of tokens of images: held, and unread by tokens of text";
    const struct sym *held = PROD(sym_div(b->c, Y->E, b->parts), sym_rat(b->c, f->image_experts, f->experts));
    const struct sym *width = PROD(Y->F, sym_rat(b->c, f->image_width, f->width)), *known = INT(f->image_experts);
    build_tensor(b, op, WEIGHT_EXPERT, PROD(INT(f->gated ? 2 : 1), held), width, Y->D);
    build_tensor(b, op, WEIGHT_EXPERT, held, Y->D, width);
    build_tensor(b, op, WEIGHT_ROUTER, INT(1), known, Y->D);
    if (f->router_correction)
        op->tensor[op->tensors_n++] =
            (struct cost_tensor){.class = WEIGHT_OTHER, .elems = known, .bytes = PROD(INT(COST_FP32_BYTES), known)};
    for (size_t i = 0; i < op->tensors_n; i++) op->tensor[i].idle = true;
}

/* Norms of what each chosen expert gives, by one weight for all of them: of whole vectors, so behind their sum over
 * the ranks that split an expert. */
static void build_each_norm(struct build *b, const struct sym *width)
{
    const struct sym *elems = PROD(routed_work(b), width);
    struct cost_op *op = build_op(b, OP_HEAD_NORM, "experts_norm", "[B*T*k, Z]");
    op->vector_flops = PROD(INT(INNER_NORM_FLOPS), elems);
    op->activation_bytes = PROD(INT(2), elems, Y->b_act);
    build_vector(b, op, width, true);
    if (!b->v->norms_uncounted) op->weight_bytes = op->tensor[0].bytes;
}

static void build_experts(struct build *b, const struct ffn *f)
{
    const struct sym *n = PROD(b->rows, Y->k);
    const struct sym *known = f->idle_experts ? SUM(Y->E, INT(f->idle_experts)) : Y->E; /* to the router */
    build_norms(b, "branch_norm", f->branch_norms);
    build_norms(b, "router_norm", f->router_norm ? 1 : 0);
    build_linear(b, "router", "[B*T, D] x [D, E]", WEIGHT_ROUTER, b->rows, Y->D, known, f->router_bias);
    struct cost_op *op = build_op(b, OP_ROUTE, "route", "[B*T, E] -> [B*T, k]");
    op->vector_flops = PROD(INT(5), b->rows, known);
    op->activation_bytes = PROD(b->rows, SUM(known, Y->k), Y->b_act);
    if (f->router_correction) /* stored in fp32 whatever the file's format */
        op->tensor[op->tensors_n++] =
            (struct cost_tensor){.class = WEIGHT_OTHER, .elems = known, .bytes = PROD(INT(COST_FP32_BYTES), known)};
    if (f->expert_scale) {
        op->vector_flops = SUM(op->vector_flops, n);
        build_vector(b, op, Y->E, false);
    }
    for (size_t i = 0; i < op->tensors_n; i++) op->weight_bytes = SUM(op->weight_bytes, op->tensor[i].bytes);
    if (f->image_correction)
        op->tensor[op->tensors_n++] = (struct cost_tensor){
            .class = WEIGHT_OTHER, .elems = known, .bytes = PROD(INT(COST_FP32_BYTES), known), .idle = true};
    const bool latent = f->latent_width > 0;
    const struct sym *width = latent ? Y->Z : Y->D;
    if (latent) build_linear(b, "latent_down", "[B*T, D] x [D, Z]", WEIGHT_FFN, b->rows, Y->D, Y->Z, f->latent_bias);
    if (f->latent_in_norm) build_head_norm(b, "latent_in_norm", "[B*T, Z]", INNER_NORM_FLOPS, width, width);
    build_all_to_all(b, "dispatch", width, dispatched_bytes(b));
    build_grouped(b, "experts_up", f->gated ? "[B*T*k, D] x [E, D, 2F]" : "[B*T*k, D] x [E, D, F]", width, Y->F,
                  f->gated ? 2 : 1, f->up_bias);
    build_activation(b, "experts_act", routed_work(b), Y->F, f->gated);
    build_grouped(b, "experts_down", "[B*T*k, F] x [E, F, D]", Y->F, width, 1, f->down_bias);
    if (f->latent_each_norm) build_each_norm(b, width);
    build_all_to_all(b, "return", width, Y->b_act);
    build_combine(b, width);
    build_group_experts(b, f, width);
    if (f->sum_bias) build_sum_bias(b, "experts_bias");
    if (f->latent_norm) build_sum_over_ranks(b, "latent_all_reduce", "[B*T, Z] over t ranks", width);
    if (f->latent_norm) build_head_norm(b, "latent_norm", "[B*T, Z]", INNER_NORM_FLOPS, width, width);
    if (latent) build_linear(b, "latent_up", "[B*T, Z] x [Z, D]", WEIGHT_FFN, b->rows, Y->Z, Y->D, f->latent_bias);
    build_image_experts(b, f);
    if (f->shared_width == 0) return;
    const struct ffn shared = {
        .kind = FFN_DENSE, .gated = f->gated, .up_bias = f->shared_bias, .down_bias = f->shared_bias};
    build_dense(b, "shared_up", "shared_act", "shared_down", &shared, Y->Fs);
    if (f->shared_gate)
        build_linear(b, "shared_gate", "[B*T, D] x [D, 1]", WEIGHT_ROUTER, b->rows, Y->D, INT(1), false);
    op = build_op(b, OP_RESIDUAL, "shared_add", "[B*T, D]");
    op->vector_flops = PROD(INT(f->shared_gate ? 2 : 1), b->rows, Y->D); /* gated: times the gate, then the sum */
    op->activation_bytes = PROD(INT(3), b->rows, Y->D, Y->b_act);
    if (f->shared_gate) op->activation_bytes = SUM(op->activation_bytes, PROD(b->rows, Y->b_act));
}

void build_ffn(struct build *b, const struct ffn *f)
{
    switch (f->kind) {
    case FFN_NONE: return;
    case FFN_DENSE:
        if (f->residual_unit) {
            build_residual_unit(b, f);
            return;
        }
        if (f->channel_mix)
            build_channel_mix(b, f->channel_bare);
        else if (b->v->mlp_fused && f->adapter_rank == 0 && f->act_params == 0 && !f->inner_norm)
            build_fused(b, f, Y->F);
        else
            build_dense(b, "up_proj", "mlp_act", "down_proj", f, Y->F);
        break;
    case FFN_MOE: build_experts(b, f); break;
    }
    if (!b->parallel) build_all_reduce(b, "mlp_all_reduce");
    if (f->out_proj) {
        b->borrowed = false;
        build_linear(b, "block_proj", "[B*T, D] x [D, D]", WEIGHT_FFN, b->rows, Y->D, Y->D, false);
    }
}

void build_mixer_route(struct build *b)
{
    build_linear(b, "q_router", "[B*T, D] x [D, E]", WEIGHT_ROUTER, b->rows, Y->D, Y->E, false);
    struct cost_op *op = build_op(b, OP_ROUTE, "q_route", "[B*T, E] -> [B*T, k]");
    op->vector_flops = PROD(INT(5), b->rows, Y->E);
    op->activation_bytes = PROD(b->rows, SUM(Y->E, Y->k), Y->b_act);
}

void build_mixer_experts(struct build *b, const char *name, const char *shape, const struct sym *in,
                         const struct sym *out)
{
    build_grouped(b, name, shape, in, out, 1, false);
}

void build_mixer_combine(struct build *b)
{
    struct cost_op *op = build_op(b, OP_COMBINE, "o_combine", "[B*T, k, D] -> [B*T, D]");
    op->vector_flops = PROD(INT(2), b->rows, Y->k, Y->D);
    op->activation_bytes = PROD(b->rows, SUM(PROD(Y->k, Y->D), Y->D), Y->b_act);
    build_sum_bias(b, "o_bias");
}
