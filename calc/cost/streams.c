/* streams -- per-layer inputs, AltUp and LAuReL of Gemma 3n and 4. Derivations: MODEL.md "Streams". */
#include "calc/cost/build.h"

#define Y (b->y)
#define INT(n) sym_int(b->c, (n))
#define PROD(...) SYM_PROD(b->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(b->c, __VA_ARGS__)

enum { RMS_FLOPS = 4 };

/* An elementwise kernel: reads and writes `moved` elements a token with `flops` of work. */
static struct cost_op *elementwise(struct build *b, enum cost_op_kind kind, const char *name, const char *shape,
                                   const struct sym *flops, const struct sym *moved)
{
    struct cost_op *op = build_op(b, kind, name, shape);
    op->vector_flops = PROD(b->rows, flops);
    op->activation_bytes = PROD(b->rows, moved, Y->b_act);
    return op;
}

void build_layer_inputs(struct build *b)
{
    if (b->m->per_layer_dim == 0) return;
    const struct sym *wide = PROD(Y->L, Y->Dl);
    struct cost_op *op = build_op(b, OP_EMBED, "layer_embed", "[B*T] rows of [Vl, L*Dl]");
    build_tensor(b, op, WEIGHT_EMBED, INT(1), Y->Vl, wide);
    op->weight_bytes = b->v->embed_full_table ? op->tensor[0].bytes : PROD(b->rows, wide, Y->b_embed);
    op->activation_bytes = PROD(b->rows, wide, Y->b_act);
    build_sum_over_ranks(b, "layer_embed_all_reduce", "[B*T, L*Dl] over t ranks", wide);
    build_linear(b, "layer_input_proj", "[B*T, D] x [D, L*Dl]", WEIGHT_FFN, b->rows, Y->D, wide, false);
    build_head_norm(b, "layer_input_norm", "[B*T, L, Dl]", RMS_FLOPS, wide, Y->Dl);
    elementwise(b, OP_RESIDUAL, "layer_input_add", "[B*T, L*Dl]", wide, PROD(INT(3), wide));
}

/* A-1 matrices of the model width, one for each further stream. */
static void build_projections(struct build *b, const char *name)
{
    const struct sym *further = SUM(Y->A, INT(-1));
    struct cost_op *op = build_op(b, OP_LINEAR, name, "[B*T, D] x [D, D], A-1 times");
    op->compute_class = WEIGHT_FFN;
    op->flops = PROD(INT(2), further, b->rows, Y->D, Y->D);
    build_tensor(b, op, WEIGHT_FFN, further, Y->D, Y->D);
    op->weight_bytes = op->tensor[0].bytes;
}

/* Each further stream is scaled to the size of the first: square and sum of both, product. */
void build_streams_open(struct build *b)
{
    if (b->m->streams == 0) return;
    const struct sym *further = PROD(SUM(Y->A, INT(-1)), Y->D);
    build_projections(b, "streams_open");
    b->ops->op[b->ops->n - 1].activation_bytes = PROD(b->rows, Y->A, Y->D, Y->b_act);
    elementwise(b, OP_STREAMS, "streams_level", "[B*T, A, D]", SUM(PROD(INT(3), further), PROD(INT(2), Y->D)),
                SUM(Y->D, PROD(INT(2), further)));
}

void build_streams_close(struct build *b)
{
    if (b->m->streams == 0) return;
    const struct sym *further = PROD(SUM(Y->A, INT(-1)), Y->D);
    build_projections(b, "streams_close");
    b->ops->op[b->ops->n - 1].activation_bytes = PROD(INT(2), b->rows, further, Y->b_act);
    elementwise(b, OP_STREAMS, "streams_relevel", "[B*T, A, D]", SUM(PROD(INT(3), further), PROD(INT(2), Y->D)),
                SUM(Y->D, PROD(INT(2), further)));
    elementwise(b, OP_STREAMS, "streams_mean", "[B*T, A, D] -> [B*T, D]", PROD(Y->A, Y->D),
                PROD(SUM(Y->A, INT(1)), Y->D));
}

/* Norm and router of the active stream: A numbers a token, through a hyperbolic tangent (4 flops, as a nonlinearity).
 * Their weights are stored once and used twice in a layer. */
static void build_modalities(struct build *b, const char *norm, const char *router, const char *tanh, bool again)
{
    build_norms(b, norm, 1);
    b->ops->op[b->ops->n - 1].tensor[0].shared = again;
    build_linear(b, router, "[B*T, D] x [D, A]", WEIGHT_ROUTER, b->rows, Y->D, Y->A, false);
    b->ops->op[b->ops->n - 1].tensor[0].shared = again;
    build_activation(b, tanh, b->rows, Y->A, false);
}

void build_predict(struct build *b)
{
    if (b->m->streams == 0) return;
    const struct sym *all = PROD(Y->A, Y->D), *mixed = PROD(Y->A, Y->A);
    build_modalities(b, "predict_norm", "predict_router", "predict_tanh", false);
    build_linear(b, "predict_coefs", "[B*T, A] x [A, A*A]", WEIGHT_ROUTER, b->rows, Y->A, mixed, false);
    struct cost_op *op = elementwise(b, OP_STREAMS, "predict", "[B*T, A, D] x [B*T, A, A]", all,
                                     SUM(PROD(INT(2), all), mixed)); /* a sum with the stream itself */
    op->flops = PROD(INT(2), b->rows, mixed, Y->D);
}

void build_laurel(struct build *b)
{
    if (b->m->laurel_rank == 0) return;
    build_linear(b, "laurel_left", "[B*T, D] x [D, La]", WEIGHT_FFN, b->rows, Y->D, Y->La, false);
    build_linear(b, "laurel_right", "[B*T, La] x [La, D]", WEIGHT_FFN, b->rows, Y->La, Y->D, false);
    build_norms(b, "laurel_norm", 1);
    build_residual(b, "laurel_residual");
}

/* Difference of the layer's output and its prediction, times a coefficient of each stream, added to its prediction. */
static void build_correction(struct build *b)
{
    const struct sym *all = PROD(Y->A, Y->D);
    build_modalities(b, "correct_norm", "correct_router", "correct_tanh", true);
    build_linear(b, "correct_coefs", "[B*T, A] x [A, A]", WEIGHT_ROUTER, b->rows, Y->A, Y->A, false);
    elementwise(b, OP_STREAMS, "correct", "[B*T, A, D]", SUM(Y->D, PROD(INT(2), all)),
                SUM(Y->D, PROD(INT(2), all), Y->A));
    struct cost_op *op = elementwise(b, OP_SCALE, "correct_scale", "[B*T, D]", Y->D, PROD(INT(2), Y->D));
    build_vector(b, op, Y->D, false);
    op->weight_bytes = op->tensor[0].bytes;
}

void build_correct(struct build *b)
{
    if (b->m->streams > 0) build_correction(b);
    if (b->m->per_layer_dim > 0) {
        build_linear(b, "layer_gate", "[B*T, D] x [D, Dl]", WEIGHT_FFN, b->rows, Y->D, Y->Dl, false);
        build_activation(b, "layer_gate_act", b->rows, Y->Dl, true);
        build_linear(b, "layer_proj", "[B*T, Dl] x [Dl, D]", WEIGHT_FFN, b->rows, Y->Dl, Y->D, false);
        build_norms(b, "layer_norm", 1);
        const struct sym *others = PROD(SUM(Y->A, INT(-1)), Y->D);
        if (b->m->streams > 0) /* all streams but the active one */
            elementwise(b, OP_RESIDUAL, "layer_input_residual", "[B*T, A-1, D]", others,
                        SUM(Y->D, PROD(INT(2), others)));
        else
            build_residual(b, "layer_input_residual");
    }
    if (!b->m->layer_scale) return;
    struct cost_op *op = elementwise(b, OP_SCALE, "layer_scale", "[B*T, D]", Y->D, PROD(INT(2), Y->D));
    build_vector(b, op, INT(1), false);
    op->weight_bytes = op->tensor[0].bytes;
}
