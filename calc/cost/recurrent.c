/* recurrent -- mixers with a state, operator by operator. Derivations: MODEL.md "Recurrent mixers". */
#include "calc/cost/build.h"

#define Y (b->y)
#define INT(n) sym_int(b->c, (n))
#define PROD(...) SYM_PROD(b->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(b->c, __VA_ARGS__)

/* Elementwise flops: of SiLU or a sigmoid, and of an RMS norm. */
enum { ACT_FLOPS = 4, NORM_FLOPS = 4, LAYER_NORM_FLOPS = 6, ROPE_FLOPS = 3 };

/* Norm of the output, if any, and its gate, if any, in one kernel. */
static void build_output(struct build *b, const struct recurrence *p, bool gated)
{
    const struct sym *elems = PROD(b->rows, Y->N, Y->Hv);
    const bool normed = p->norm != OUTPUT_PLAIN;
    if (!normed && !gated) return;
    struct cost_op *op = build_op(b, OP_GATED_NORM, normed ? "output_norm" : "output_gate", "[B*T, N*Hv]");
    const int64_t norm = p->norm == OUTPUT_EACH_NORM ? LAYER_NORM_FLOPS : normed ? NORM_FLOPS : 0;
    op->vector_flops = PROD(INT(norm + (gated ? ACT_FLOPS + 1 : 0)), elems);
    op->activation_bytes = PROD(INT(gated ? 3 : 2), elems, Y->b_act);
    if (!normed) return;
    build_vector(b, op, p->norm == OUTPUT_HEAD_NORM ? Y->Hv : PROD(Y->N, Y->Hv), true);
    if (!b->v->norms_uncounted) op->weight_bytes = op->tensor[0].bytes;
}

/* Products whose inputs are split over the ranks give parts of a sum. */
static void sum_parts(struct build *b, const char *name, const struct sym *width)
{
    build_sum_over_ranks(b, name, "[B*T, Ra+2H] over t ranks", width);
}

/* A product of its own for each group of channels: as many elements as channels times `wide`; `moved` elements a token
 * in and out. */
static void build_by_group(struct build *b, const char *name, const char *shape, const struct sym *channels,
                           const struct sym *wide, const struct sym *moved)
{
    struct cost_op *op = build_op(b, OP_LINEAR, name, shape);
    op->compute_class = WEIGHT_MIXER;
    op->flops = PROD(INT(2), b->rows, channels, wide);
    op->activation_bytes = PROD(b->rows, moved, Y->b_act);
    build_tensor(b, op, WEIGHT_MIXER, INT(1), channels, wide);
    op->weight_bytes = op->tensor[0].bytes;
}

/* Norms of time step, B and C, in one kernel. */
static void build_inner_norms(struct build *b, const struct recurrence *p, const struct sym *low)
{
    if (!p->inner_norms) return;
    struct cost_op *op = build_op(b, OP_HEAD_NORM, "inner_norm", "[B*T, Ra+2H]");
    op->vector_flops = PROD(INT(NORM_FLOPS), b->rows, low);
    op->activation_bytes = PROD(INT(2), b->rows, low, Y->b_act);
    if (!p->inner_norm_weights) return;
    build_vector(b, op, low, true);
    if (!b->v->norms_uncounted) op->weight_bytes = op->tensor[0].bytes;
}

static void build_selective(struct build *b, const struct mixer *x)
{
    const struct recurrence *p = &x->recurrence;
    const struct sym *each = SUM(Y->Ra, PROD(INT(2), Y->H)), *low = x->kv_heads > 1 ? PROD(Y->K, each) : each;
    build_linear(b, "in_proj", "[B*T, D] x [D, 2N]", WEIGHT_MIXER, b->rows, Y->D, PROD(INT(2), Y->N), p->proj_bias);
    build_conv(b, x, Y->N, ACT_FLOPS, 1);
    if (x->kv_heads > 1)
        build_by_group(b, "x_proj", "[B*T, K, N/K] x [K, N/K, Ra+2H]", Y->N, each, SUM(Y->N, low));
    else
        build_linear(b, "x_proj", "[B*T, N] x [N, Ra+2H]", WEIGHT_MIXER, b->rows, Y->N, low, false);
    sum_parts(b, "x_all_reduce", low);
    build_inner_norms(b, p, low);
    if (x->kv_heads > 1) {
        build_by_group(b, "dt_proj", "[B*T, K, Ra] x [K, Ra, N/K]", Y->N, Y->Ra, SUM(PROD(Y->K, Y->Ra), Y->N));
        struct cost_op *op = &b->ops->op[b->ops->n - 1];
        build_vector(b, op, Y->N, false);
        op->vector_flops = PROD(b->rows, Y->N);
        op->weight_bytes = SUM(op->weight_bytes, op->tensor[1].bytes);
    } else {
        build_linear(b, "dt_proj", "[B*T, Ra] x [Ra, N]", WEIGHT_MIXER, b->rows, Y->Ra, Y->N, true);
    }
    build_scan(b, x);
    build_linear(b, "out_proj", "[B*T, N] x [N, D]", WEIGHT_MIXER, b->rows, Y->N, Y->D, p->proj_bias);
}

/* PLaMo-2: a scan of Mamba-2 whose B, C and time steps are made as Mamba-1 makes them. */
static void build_ranked_ssd(struct build *b, const struct mixer *x)
{
    const struct recurrence *p = &x->recurrence;
    const struct sym *values = PROD(Y->N, Y->Hv), *low = SUM(Y->Ra, PROD(INT(2), Y->H));
    build_linear(b, "in_proj", "[B*T, D] x [D, 2N*Hv]", WEIGHT_MIXER, b->rows, Y->D, PROD(INT(2), values),
                 p->proj_bias);
    build_conv(b, x, values, ACT_FLOPS, 1);
    build_linear(b, "x_proj", "[B*T, N*Hv] x [N*Hv, Ra+2H]", WEIGHT_MIXER, b->rows, values, low, false);
    sum_parts(b, "x_all_reduce", low);
    build_inner_norms(b, p, low);
    build_linear(b, "dt_proj", "[B*T, Ra] x [Ra, N]", WEIGHT_MIXER, b->rows, Y->Ra, Y->N, false);
    build_scan(b, x);
    build_output(b, p, true);
    build_linear(b, "out_proj", "[B*T, N*Hv] x [N*Hv, D]", WEIGHT_MIXER, b->rows, values, Y->D, p->proj_bias);
}

static void build_ssd(struct build *b, const struct mixer *x)
{
    const struct recurrence *p = &x->recurrence;
    if (p->rank > 0) {
        build_ranked_ssd(b, x);
        return;
    }
    const struct sym *values = PROD(Y->N, Y->Hv), *mixed = SUM(values, PROD(INT(2), Y->K, Y->H));
    build_linear(b, "in_proj", "[B*T, D] x [D, 2N*Hv + 2K*H + N]", WEIGHT_MIXER, b->rows, Y->D,
                 SUM(values, mixed, Y->N), p->proj_bias);
    build_conv(b, x, mixed, ACT_FLOPS, 1);
    build_scan(b, x);
    build_output(b, p, true);
    build_linear(b, "out_proj", "[B*T, N*Hv] x [N*Hv, D]", WEIGHT_MIXER, b->rows, values, Y->D, p->proj_bias);
}

/* Rates of the delta rule and raw decays, from the stream. */
static void build_rates(struct build *b, const struct recurrence *p)
{
    const struct sym *const heads[] = {Y->N, Y->N};
    const size_t n = (size_t)(p->delta || p->memory ? 1 : 0) + (p->decay == DECAY_HEAD ? 1 : 0);
    if (n > 0)
        build_stacked(b, "rates_proj", n == 2 ? "[B*T, D] x [D, 2N]" : "[B*T, D] x [D, N]", WEIGHT_MIXER, b->rows, Y->D,
                      n, heads, p->memory);
    if (p->decay != DECAY_CHANNEL) return;
    const struct sym *out = PROD(Y->N, Y->H);
    if (p->rank > 0) build_linear(b, "decay_down", "[B*T, D] x [D, Ra]", WEIGHT_MIXER, b->rows, Y->D, Y->Ra, false);
    build_linear(b, "decay_up", p->rank > 0 ? "[B*T, Ra] x [Ra, N*H]" : "[B*T, D] x [D, N*H]", WEIGHT_MIXER, b->rows,
                 p->rank > 0 ? Y->Ra : Y->D, out, p->decay_bias);
}

void build_elementwise(struct build *b, enum cost_op_kind kind, const char *name, const char *shape,
                       const struct sym *n, int64_t flops, int64_t arrays)
{
    struct cost_op *op = build_op(b, kind, name, shape);
    op->vector_flops = PROD(INT(flops), n);
    op->activation_bytes = PROD(INT(arrays), n, Y->b_act);
}

static void build_linear_attention(struct build *b, const struct mixer *x)
{
    const struct recurrence *p = &x->recurrence;
    const struct sym *keys = PROD(Y->K, p->feature_dim > 0 ? Y->Hf : Y->H), *values = PROD(Y->N, Y->Hv);
    const struct sym *turned = PROD(INT(2), keys);
    const struct sym *const in[] = {keys, keys, values, values};
    const bool full = p->gate == GATE_FULL;
    build_stacked(b, "qkv_proj", full ? "[B*T, D] x [D, 2K*H + 2N*Hv]" : "[B*T, D] x [D, 2K*H + N*Hv]", WEIGHT_MIXER,
                  b->rows, Y->D, full ? 4 : 3, in, p->proj_bias);
    build_rates(b, p);
    if (p->gate == GATE_LOW_RANK) {
        build_linear(b, "gate_down", "[B*T, D] x [D, Ra]", WEIGHT_MIXER, b->rows, Y->D, Y->Ra, false);
        build_linear(b, "gate_up", "[B*T, Ra] x [Ra, N*Hv]", WEIGHT_MIXER, b->rows, Y->Ra, values, p->gate_bias);
    }
    if (p->conv_taps > 0)
        build_conv(b, x, SUM(turned, values), ACT_FLOPS, 1);
    else if (p->activated)
        build_elementwise(b, OP_ACTIVATION, "qkv_act", "[B*T, 2K*H + N*Hv]", PROD(b->rows, SUM(turned, values)),
                          ACT_FLOPS, 2);
    if (p->key_norms) build_head_norm(b, "qk_norm", "[B*T, 2K*H]", NORM_FLOPS, turned, PROD(INT(2), Y->H));
    if (p->rope) build_elementwise(b, OP_ROPE, "rope", "[B*T, 2K*H]", PROD(b->rows, turned), ROPE_FLOPS, 2);
    build_scan(b, x);
    build_output(b, p, p->gate != GATE_NONE);
    build_linear(b, "out_proj", "[B*T, N*Hv] x [N*Hv, D]", WEIGHT_MIXER, b->rows, values, Y->D, p->proj_bias);
}

/* Griffin's recurrent block: a gated branch beside a convolution, block-diagonal gates and the recurrence. */
static void build_lru(struct build *b, const struct mixer *x)
{
    const struct recurrence *p = &x->recurrence;
    const struct sym *width = PROD(Y->N, Y->Hv), *elems = PROD(b->rows, width), *two = INT(2);
    const struct sym *const in[] = {width, width};
    build_stacked(b, "in_proj", "[B*T, D] x [D, 2N*Hv]", WEIGHT_MIXER, b->rows, Y->D, 2, in, p->proj_bias);
    build_elementwise(b, OP_ACTIVATION, "branch_act", "[B*T, N*Hv]", elems, ACT_FLOPS, 2);
    build_conv(b, x, width, 0, 1);
    struct cost_op *op = build_op(b, OP_LINEAR, "gates", "[B*T, N, Hv] x [N, Hv, 2Hv]");
    op->compute_class = WEIGHT_MIXER;
    op->flops = PROD(INT(4), elems, Y->Hv);
    op->vector_flops = PROD(two, elems);
    op->activation_bytes = PROD(INT(3), elems, Y->b_act);
    build_tensor(b, op, WEIGHT_MIXER, PROD(two, Y->N), Y->Hv, Y->Hv);
    build_vector(b, op, PROD(two, width), false);
    op->weight_bytes = SUM(op->tensor[0].bytes, op->tensor[1].bytes);
    build_scan(b, x);
    build_elementwise(b, OP_ACTIVATION, "branch_gate", "[B*T, N*Hv]", elems, 1, 3);
    build_linear(b, "out_proj", "[B*T, N*Hv] x [N*Hv, D]", WEIGHT_MIXER, b->rows, width, Y->D, p->proj_bias);
}

/* A convolution between two gates, or with SiLU before one, all made of the stream. */
static void build_gated_conv(struct build *b, const struct mixer *x)
{
    const struct recurrence *p = &x->recurrence;
    const int64_t parts = p->activated ? 2 : 3;
    build_linear(b, "in_proj", p->activated ? "[B*T, D] x [D, 2N]" : "[B*T, D] x [D, 3N]", WEIGHT_MIXER, b->rows, Y->D,
                 PROD(INT(parts), Y->N), p->proj_bias);
    build_conv(b, x, Y->N, p->activated ? ACT_FLOPS + 1 : 2, parts);
    build_linear(b, "out_proj", "[B*T, N] x [N, D]", WEIGHT_MIXER, b->rows, Y->N, Y->D, p->proj_bias);
}

/* SambaY: channels of an earlier scan's output of the same tokens, gated by the stream. */
static void build_memory_unit(struct build *b, const struct recurrence *p)
{
    build_linear(b, "in_proj", "[B*T, D] x [D, N]", WEIGHT_MIXER, b->rows, Y->D, Y->N, p->proj_bias);
    build_elementwise(b, OP_ACTIVATION, "memory_gate", "[B*T, N]", PROD(b->rows, Y->N), ACT_FLOPS + 1, 3);
    b->ops->op[b->ops->n - 1].says = "SiLU of the gate times an earlier layer's scan output of the same token";
    build_linear(b, "out_proj", "[B*T, N] x [N, D]", WEIGHT_MIXER, b->rows, Y->N, Y->D, p->proj_bias);
}

void build_recurrent(struct build *b, const struct mixer *x)
{
    switch (x->recurrence.block) {
    case RECURRENT_SELECTIVE: build_selective(b, x); break;
    case RECURRENT_SSD: build_ssd(b, x); break;
    case RECURRENT_LINEAR: build_linear_attention(b, x); break;
    case RECURRENT_LRU: build_lru(b, x); break;
    case RECURRENT_CONV: build_gated_conv(b, x); break;
    case RECURRENT_MEMORY: build_memory_unit(b, &x->recurrence); break;
    case RECURRENT_WKV: build_wkv(b); break;
    case RECURRENT_TIME_MIX:
    case RECURRENT_FINCH:
    case RECURRENT_GOOSE: build_time_mix(b, x); break;
    case RECURRENT_DIAGONAL: build_diagonal(b, x); break;
    case RECURRENT_FILTER: build_filter(b, x); break;
    }
}
