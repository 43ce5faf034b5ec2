/* hyper -- hyper-connections: A residual streams, mixed by weights of the token (DeepSeek-V4; arXiv 2409.19606).
 * Derivation: MODEL.md "Hyper-connections". */
#include "calc/cost/build.h"

#define Y (b->y)
#define INT(n) sym_int(b->c, (n))
#define PROD(...) SYM_PROD(b->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(b->c, __VA_ARGS__)

/* Elementwise flops: of a norm without a weight; of a sigmoid, with scale and base before it and a number added; of a
 * round, for each of A*A numbers, a sum and a quotient by rows and by columns. */
enum { PLAIN_NORM_FLOPS = 3, SIGMOID_FLOPS = 7, ROUND_FLOPS = 4 };

/* Of a number of the low rank a quotient and SiLU; of an element a sigmoid, its product and the sum; of a weight to
 * write by a quotient, a sigmoid and a product. */
enum { NARROW_FLOPS = 5, READ_FLOPS = 6, WRITE_FLOPS = 6 };

static struct cost_op *elementwise(struct build *b, const char *name, const char *shape, const struct sym *flops,
                                   const struct sym *moved)
{
    struct cost_op *op = build_op(b, OP_STREAMS, name, shape);
    op->vector_flops = PROD(b->rows, flops);
    op->activation_bytes = PROD(b->rows, moved, Y->b_act);
    return op;
}

/* n numbers of a token of its A*D ones: a norm, a product that stays a float, a sigmoid with n bases and `scales`. */
static void build_mix(struct build *b, const char *norm, const char *proj, const char *weights, const struct sym *n,
                      int64_t scales, const struct sym *further)
{
    const struct sym *all = PROD(Y->A, Y->D);
    build_head_norm(b, norm, "[B*T, A*D]", PLAIN_NORM_FLOPS, all, NULL);
    build_linear(b, proj, "[B*T, A*D] x [A*D, n]", WEIGHT_ROUTER, b->rows, all, n, false);
    struct cost_op *op =
        elementwise(b, weights, "[B*T, n]", SUM(PROD(INT(SIGMOID_FLOPS), n), further), PROD(INT(2), n));
    build_vector(b, op, SUM(n, INT(scales)), false);
    op->weight_bytes = op->tensor[0].bytes;
}

/* What a block reads: each stream normed, times weights of its own of low rank, and their mean. Which: of a block, and
 * then weights to write by are made too, or of the end. */
static void build_low_rank(struct build *b, const char *which, bool writes)
{
    static const char *const PARTS[] = {"norm", "down", "act", "up", "read", "inject", "weights"};
    const struct sym *all = PROD(Y->A, Y->D), *rank = INT(b->m->hyper_rank);
    const char *name[7];
    for (size_t i = 0; i < 7; i++)
        if (!(name[i] = arena_printf(b->arena, "%s_%s", which, PARTS[i]))) name[i] = PARTS[i];
    build_head_norm(b, name[0], "[B*T, A, D]", build_norm_flops(b->m->norm), all, all);
    build_linear(b, name[1], "[B*T, A*D] x [A*D, rank]", WEIGHT_ROUTER, b->rows, all, rank, false);
    elementwise(b, name[2], "[B*T, rank]", PROD(INT(NARROW_FLOPS), rank), PROD(INT(2), rank));
    build_linear(b, name[3], "[B*T, rank] x [rank, A*D]", WEIGHT_ROUTER, b->rows, rank, all, false);
    elementwise(b, name[4], "[B*T, A, D] -> [B*T, D]", SUM(PROD(INT(READ_FLOPS), all), Y->D),
                SUM(PROD(INT(2), all), Y->D));
    if (!writes) return;
    build_linear(b, name[5], "[B*T, A*D] x [A*D, A]", WEIGHT_ROUTER, b->rows, all, Y->A, false);
    elementwise(b, name[6], "[B*T, A]", PROD(INT(WRITE_FLOPS), Y->A), PROD(INT(2), Y->A));
}

bool build_hyper_join(struct build *b)
{
    if (b->m->hyper_streams == 0 || b->m->draft.joined != 2) return false;
    build_norms(b, "join_norm", 1);
    build_head_norm(b, "join_streams_norm", "[B*T, A, D]", build_norm_flops(b->m->norm), PROD(Y->A, Y->D), Y->D);
    build_linear(b, "join_proj", "[B*T, D] x [D, D]", WEIGHT_HEAD, b->rows, Y->D, Y->D, b->m->draft.joined_bias);
    build_linear(b, "join_streams_proj", "[B*T, A, D] x [D, D]", WEIGHT_HEAD, PROD(b->rows, Y->A), Y->D, Y->D, false);
    elementwise(b, "streams_join", "[B*T, D] + [B*T, A, D]", PROD(Y->A, Y->D),
                PROD(SUM(PROD(INT(2), Y->A), INT(1)), Y->D));
    return true;
}

void build_hyper_open(struct build *b)
{
    if (b->m->hyper_streams == 0 || b->m->draft.joined == 2) return;
    elementwise(b, "streams_open", "[B*T, D] -> [B*T, A, D]", INT(0), PROD(SUM(Y->A, INT(1)), Y->D));
}

/* Weights to read, to write and to mix by, and the block's input. */
void build_hyper_read(struct build *b, bool mixer)
{
    if (b->m->hyper_streams == 0) return;
    if (b->m->hyper_rank > 0) {
        build_low_rank(b, mixer ? "mixer_streams" : "mlp_streams", true);
        return;
    }
    const struct sym *rounds = PROD(INT(ROUND_FLOPS * b->m->hyper_rounds), Y->A, Y->A), *all = PROD(Y->A, Y->D);
    const bool same = b->m->hyper_identity;
    build_mix(b, mixer ? "mixer_streams_norm" : "mlp_streams_norm", mixer ? "mixer_streams_proj" : "mlp_streams_proj",
              mixer ? "mixer_streams_weights" : "mlp_streams_weights",
              same ? PROD(INT(2), Y->A) : PROD(SUM(Y->A, INT(2)), Y->A), same ? 2 : 3, same ? INT(0) : rounds);
    elementwise(b, mixer ? "mixer_streams_read" : "mlp_streams_read", "[B*T, A, D] -> [B*T, D]", PROD(INT(2), all),
                SUM(all, Y->A, Y->D));
}

/* Streams mixed, or left as they are, and the block's output added to each. */
void build_hyper_write(struct build *b, bool mixer)
{
    const struct sym *all = PROD(Y->A, Y->D), *mixed = b->m->hyper_identity ? INT(1) : SUM(Y->A, INT(1));
    elementwise(b, mixer ? "mixer_streams_write" : "mlp_streams_write", "[B*T, D] -> [B*T, A, D]",
                PROD(INT(2), mixed, all), SUM(PROD(INT(2), all), Y->D, PROD(mixed, Y->A)));
}

void build_hyper_close(struct build *b)
{
    if (b->m->hyper_streams == 0) return;
    const struct sym *all = PROD(Y->A, Y->D);
    if (b->m->hyper_rank > 0) {
        build_low_rank(b, "streams_close", false);
        return;
    }
    if (b->m->hyper_mean) {
        elementwise(b, "streams_close", "[B*T, A, D] -> [B*T, D]", all, SUM(all, Y->D));
        return;
    }
    if (!b->m->hyper_handed)
        build_mix(b, "streams_close_norm", "streams_close_proj", "streams_close_weights", Y->A, 1, INT(0));
    elementwise(b, "streams_close", "[B*T, A, D] -> [B*T, D]", PROD(INT(2), all), SUM(all, Y->A, Y->D));
}
