/* engram -- n-grams of a sequence looked up in a table, and added to the streams by gates (DeepSeek-V4.1). Derivation:
 * MODEL.md "Engram". */
#include "calc/cost/build.h"

#define Y (b->y)
#define INT(n) sym_int(b->c, (n))
#define PROD(...) SYM_PROD(b->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(b->c, __VA_ARGS__)

/* Of an element of a stream: squares of it and of its key summed 4, their product by a weight summed 3, the gate times
 * the value and the sum with the stream 2. */
enum { GATE_FLOPS = 9 };

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
    op = build_op(b, OP_STREAMS, "engram_add", "[B*T, (A+1)*D] -> [B*T, A, D]");
    op->vector_flops = PROD(INT(GATE_FLOPS), b->rows, all);
    op->activation_bytes = PROD(b->rows, SUM(PROD(INT(2), all), out), Y->b_act);
    build_vector(b, op, PROD(INT(2), all), false);
    op->weight_bytes = op->tensor[0].bytes;
}
