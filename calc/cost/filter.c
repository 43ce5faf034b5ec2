/* filter -- diagonal state-space models (S4D, H3) and long convolutions (Hyena). Derivations: MODEL.md "Poles and
 * filters". */
#include "calc/cost/build.h"

#define Y (b->y)
#define INT(n) sym_int(b->c, (n))
#define PROD(...) SYM_PROD(b->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(b->c, __VA_ARGS__)
#define NEG(x) sym_mul(b->c, INT(-1), (x))

/* Elementwise flops: of a nonlinearity; of a gate with it. A complex number times one that is real, twice its sum. */
enum { ACT_FLOPS = 4, GATE_FLOPS = ACT_FLOPS + 1, SKIP_FLOPS = 2 };
/* One pole: the state times it (complex: 4 products, 2 sums); what it answers: a real part, summed (2, 1, 1). */
enum { POLE_FLOPS = 6, ANSWER_FLOPS = 4 };
/* It takes up a real input as it is, or times a complex number of its own. */
enum { TAKE_FLOPS = 1, WEIGHTED_TAKE_FLOPS = 4 };
/* A shift: the column times its weight, added; times another, summed. */
enum { SHIFT_FLOPS = 4 };

/* Complex poles of each channel; with a shift keys and values of width Hv make a channel of each pair of elements. The
 * state is that of conjugate pairs, so answers are doubled. */
void build_diagonal_scan(struct build *b, const struct recurrence *p)
{
    const bool gated = p->conv_taps > 0;
    const struct sym *values = PROD(Y->N, Y->Hv), *channels = gated ? PROD(values, Y->Hv) : values;
    const struct sym *poles = PROD(INT(POLE_FLOPS + WEIGHTED_TAKE_FLOPS + ANSWER_FLOPS), Y->H);
    struct cost_op *op = build_op(b, OP_SCAN, "scan", "[B, T, channels] with states [B, channels, 2H]");
    const struct sym *flops = PROD(channels, SUM(poles, INT(1 + SKIP_FLOPS)));
    if (gated) flops = SUM(flops, PROD(INT(3), channels), NEG(values)); /* k*v; times q, summed over key elements */
    op->vector_flops = PROD(b->rows, flops);
    op->activation_bytes = PROD(INT(gated ? 4 : 2), b->rows, values, Y->b_act);
    /* of each head: poles, outputs and, where they are stored, inputs, all complex; a step and a skip */
    build_vector(b, op, PROD(gated ? Y->N : values, SUM(PROD(INT(gated ? 6 : 4), Y->H), INT(2))), false);
    build_read(b, op);
    build_state(b, op, PROD(INT(2), channels, Y->H), Y->b_state);
}

/* H3's shift SSM over the keys: a column of J elements a channel, an input and an output weight for each. */
static void build_shift(struct build *b)
{
    const struct sym *keys = PROD(Y->N, Y->Hv);
    struct cost_op *op = build_op(b, OP_SCAN, "shift", "[B, T, N*Hv] with states [B, N*Hv, J]");
    op->vector_flops = PROD(b->rows, keys, SUM(PROD(INT(SHIFT_FLOPS), Y->J), INT(SKIP_FLOPS)));
    op->activation_bytes = PROD(INT(2), b->rows, keys, Y->b_act);
    build_vector(b, op, PROD(keys, SUM(PROD(INT(2), Y->J), INT(1))), false);
    build_read(b, op);
    build_state(b, op, PROD(keys, Y->J), Y->b_state);
}

void build_diagonal(struct build *b, const struct mixer *x)
{
    const struct recurrence *p = &x->recurrence;
    const struct sym *width = PROD(Y->N, Y->Hv), *two = INT(2);
    const struct sym *const in[] = {width, width, width};
    if (p->conv_taps > 0) {
        build_stacked(b, "in_proj", "[B*T, D] x [D, 3N*Hv]", WEIGHT_MIXER, b->rows, Y->D, 3, in, p->proj_bias);
        build_shift(b);
    }
    build_scan(b, x);
    if (p->conv_taps == 0)
        build_elementwise(b, OP_ACTIVATION, "scan_act", "[B*T, N*Hv]", PROD(b->rows, width), ACT_FLOPS, 2);
    build_linear(b, "out_proj", p->gated_unit ? "[B*T, N*Hv] x [N*Hv, 2D]" : "[B*T, N*Hv] x [N*Hv, D]", WEIGHT_MIXER,
                 b->rows, width, p->gated_unit ? PROD(two, Y->D) : Y->D, p->proj_bias);
    if (p->gated_unit)
        build_elementwise(b, OP_ACTIVATION, "gated_unit", "[B*T, 2D] -> [B*T, D]", PROD(b->rows, Y->D), GATE_FLOPS, 3);
}

/* ---- Hyena ---- */

/* With poles: gate, every pole of the channel, skip, gate. */
static void build_modal(struct build *b)
{
    const struct sym *poles = PROD(INT(POLE_FLOPS + TAKE_FLOPS + ANSWER_FLOPS), Y->H);
    struct cost_op *op = build_op(b, OP_SCAN, "scan", "[B, T, N] with states [B, N, 2H]");
    op->vector_flops = PROD(b->rows, Y->N, SUM(poles, INT(1 + SKIP_FLOPS + 1)));
    op->activation_bytes = PROD(INT(4), b->rows, Y->N, Y->b_act);
    build_vector(b, op, PROD(Y->N, SUM(PROD(INT(4), Y->H), INT(1))), false);
    build_read(b, op);
    build_state(b, op, PROD(INT(2), Y->N, Y->H), Y->b_state);
}

/* Flops of a real Fourier transform over n points: half of 5*n*log2(n). */
static const struct sym *transform(struct build *b, const struct sym *n)
{
    const struct sym *log2 = sym_div(b->c, sym_log(b->c, n), sym_log(b->c, INT(2)));
    return PROD(sym_rat(b->c, 5, 2), n, log2);
}

/* By transforms over S+T points: the last T of a circular convolution are then free of what comes round. Of the inputs,
 * and back, of each sequence; of the filter once; between them a complex product. */
static const struct sym *transformed(struct build *b)
{
    const struct sym *n = SUM(b->pass->S, b->pass->T), *t = transform(b, n);
    const struct sym *half = SUM(sym_div(b->c, n, INT(2)), INT(1));
    return PROD(Y->N, SUM(PROD(b->pass->B, SUM(PROD(INT(2), t), PROD(INT(6), half))), t));
}

/* Without: all inputs so far are kept. A whole prompt is convolved by transforms; a step multiplies its output with all
 * inputs before it; other passes do what is less. The filter itself is made once and then read. */
static void build_explicit(struct build *b, const struct recurrence *p)
{
    const struct sym *B = b->pass->B, *N = Y->N, *two = INT(2);
    const struct attended at = build_attended(b, NULL, false);
    build_elementwise(b, OP_ACTIVATION, "input_gate", "[B*T, N]", PROD(b->rows, N), 1, 3);
    build_cache_write(b, "history_write", N, Y->b_kv, NULL);
    struct cost_op *op = build_op(b, OP_LONG_CONV, "long_conv", "[B, T, N] on [B, S, N] with filters [S, N]");
    const struct sym *direct = PROD(two, B, N, at.pairs);
    double one;
    if (b->pass->M || (sym_constant(b->pass->T, &one) && one == 1))
        op->vector_flops = direct;
    else
        op->vector_flops = b->pass->S == b->pass->T ? transformed(b) : sym_min(b->c, direct, transformed(b));
    op->vector_flops = SUM(op->vector_flops, PROD(INT(SKIP_FLOPS + 1), b->rows, N));
    op->activation_bytes = PROD(two, b->rows, N, Y->b_act);
    if (b->pass->uncached) {
        op->activation_bytes = SUM(op->activation_bytes, PROD(B, at.keys, N, Y->b_act));
    } else {
        op->kv_bytes = PROD(B, at.keys, N, Y->b_kv);
        op->kv_needed_bytes = PROD(B, at.needed, N, Y->b_kv);
    }
    build_vector(b, op, N, false);
    const struct sym *inner = PROD(INT(p->filter_layers), Y->Fw, SUM(Y->Fw, INT(1)));
    build_vector(b, op, SUM(PROD(Y->Fw, SUM(Y->Fe, INT(1))), inner, PROD(Y->Fw, N)), false);
    build_vector(b, op, SUM(PROD(Y->Ft, SUM(Y->Fe, INT(1))), N),
                 false); /* times, their features; rates of the window */
    if (p->filter_sines) build_vector(b, op, Y->Fw, false);
    op->weight_bytes = SUM(op->tensor[0].bytes, PROD(at.keys, N, Y->b_other));
}

void build_filter_scan(struct build *b, const struct recurrence *p)
{
    if (p->filter_width > 0)
        build_explicit(b, p);
    else
        build_modal(b);
}

/* Two gates and a value, each past a short convolution; one gate before the long one, one after. */
void build_filter(struct build *b, const struct mixer *x)
{
    const struct recurrence *p = &x->recurrence;
    const struct sym *const in[] = {Y->N, Y->N, Y->N};
    build_stacked(b, "in_proj", "[B*T, D] x [D, 3N]", WEIGHT_MIXER, b->rows, Y->D, 3, in, p->proj_bias);
    build_conv(b, x, PROD(INT(3), Y->N), 0, 1);
    build_scan(b, x);
    build_linear(b, "out_proj", "[B*T, N] x [N, D]", WEIGHT_MIXER, b->rows, Y->N, Y->D, p->proj_bias);
}
