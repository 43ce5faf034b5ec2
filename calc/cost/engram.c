/* engram -- n-grams of a sequence looked up in a table, and added to the streams by gates (DeepSeek-V4.1, Qwen4).
 * Derivation: MODEL.md "Engram". */
#include "calc/cost/build.h"

#define Y (b->y)
#define INT(n) sym_int(b->c, (n))
#define PROD(...) SYM_PROD(b->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(b->c, __VA_ARGS__)

/* Of an element of a stream: squares of it and of its key summed 4, their product by a weight summed 3, the gate times
 * the value and the sum with the stream 2. With norms and a convolution (Qwen4): norms of it, of its key and of what is
 * added 12, the product summed 2, the gate times the value 1; SiLU behind the taps 4; sums 2. */
enum { GATE_FLOPS = 9, NORMED_FLOPS = 15, ACT_FLOPS = 4 };

static struct cost_op *build_gate(struct build *b, const char *name, const struct sym *flops, const struct sym *moved)
{
    struct cost_op *op = build_op(b, OP_STREAMS, name, "[B*T, (A+1)*D] -> [B*T, A, D]");
    op->vector_flops = PROD(b->rows, flops);
    op->activation_bytes = PROD(b->rows, moved, Y->b_act);
    return op;
}

/* What is added is itself and a convolution of its norm, over tokens some places apart: all between are kept. */
static void build_normed(struct build *b, const struct sym *all, const struct sym *out)
{
    const int64_t taps = b->m->engram_taps, columns = (taps - 1) * b->m->engram_spacing;
    struct cost_op *op = build_gate(b, "engram_gate", PROD(INT(NORMED_FLOPS), all), SUM(PROD(INT(3), all), out));
    build_vector(b, op, PROD(INT(3), all), true);
    if (!b->v->norms_uncounted) op->weight_bytes = op->tensor[0].bytes;
    op = build_op(b, OP_CONV, "engram_conv", "[B*T, A*D] with taps some tokens apart");
    op->vector_flops = PROD(b->part_rows, INT(2 * taps + ACT_FLOPS), all);
    op->activation_bytes = PROD(INT(2), b->part_rows, all, Y->b_act);
    build_vector(b, op, PROD(INT(taps), all), false);
    build_read(b, op);
    if (columns > 0) build_state(b, op, PROD(INT(columns), all), Y->b_act);
    build_gate(b, "engram_add", PROD(INT(2), all), PROD(INT(4), all));
}

void build_engram(struct build *b, int64_t rows)
{
    if (rows == 0) return;
    const struct sym *width = INT(b->m->engram_columns * b->m->engram_width);
    const struct sym *all = PROD(Y->A, Y->D), *out = SUM(all, Y->D);
    struct cost_op *op = build_op(b, OP_EMBED, "engram_rows", "[B*T, columns] rows of [rows, width]");
    op->says = "rows of a table of n-grams, by hashes of the last tokens";
    build_tensor(b, op, WEIGHT_FFN, INT(1), sym_ceil(b->c, sym_div(b->c, INT(rows), Y->t)), INT(b->m->engram_width));
    op->tensor[0].idle = true; /* but for the rows of the token */
    op->weight_bytes = sym_div(b->c, PROD(b->rows, width, Y->b_ffn), Y->t);
    op->activation_bytes = sym_div(b->c, PROD(b->rows, width, Y->b_act), Y->t);
    if (b->split) build_sum_over_ranks(b, "engram_all_reduce", "[B*T, columns*width] over t ranks", width);
    build_linear(b, "engram_proj", "[B*T, columns*width] x [columns*width, (A+1)*D]", WEIGHT_FFN, b->rows, width, out,
                 false);
    if (b->m->engram_taps > 0) {
        build_normed(b, all, out);
        return;
    }
    op = build_gate(b, "engram_add", PROD(INT(GATE_FLOPS), all), SUM(PROD(INT(2), all), out));
    build_vector(b, op, PROD(INT(2), all), false);
    op->weight_bytes = op->tensor[0].bytes;
}
