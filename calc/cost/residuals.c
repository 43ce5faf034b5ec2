/* residuals -- attention residuals: blocks read a mixture of what groups of layers added to the stream, by one score a
 * source (Kimi K3; arXiv 2607.24653). Derivation: MODEL.md "Attention residuals". */
#include "calc/cost/build.h"

#define Y (b->y)
#define INT(n) sym_int(b->c, (n))
#define PROD(...) SYM_PROD(b->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(b->c, __VA_ARGS__)

/* Elementwise flops of an element of a source: norm 4, times the score's weight and sum 2, times its share and sum 2;
 * of a score those of a softmax: max, -, exp, +, /. */
enum { SOURCE_FLOPS = 8, SCORE_FLOPS = 5 };

static int64_t groups_before(int64_t layers, int64_t group) { return (layers + group - 1) / group; }

/* Sources of all layers: of a mixer the groups begun before its layer, of an MLP those begun with it; and the sum of
 * the group at hand. */
static int64_t sources_of_all(const struct model *m, bool mixer)
{
    int64_t sum = 0;
    for (int64_t l = 0; l < m->layers; l++) sum += groups_before(mixer ? l : l + 1, m->residual_group) + 1;
    return sum;
}

/* One score and one share a source: a norm and a row of weights are stored for them. */
static void build_sources(struct build *b, const char *name, const struct sym *sources)
{
    struct cost_op *op = build_op(b, OP_STREAMS, name, "[B*T, n, D] -> [B*T, D]");
    op->vector_flops = PROD(b->rows, sources, SUM(PROD(INT(SOURCE_FLOPS), Y->D), INT(SCORE_FLOPS)));
    op->activation_bytes = PROD(b->rows, SUM(sources, INT(1)), Y->D, Y->b_act);
    build_vector(b, op, Y->D, true);
    build_vector(b, op, Y->D, false);
    op->weight_bytes = b->v->norms_uncounted ? op->tensor[1].bytes : SUM(op->tensor[0].bytes, op->tensor[1].bytes);
}

void build_residuals_read(struct build *b, bool mixer)
{
    if (b->m->residual_group == 0) return;
    build_sources(b, mixer ? "mixer_residuals" : "mlp_residuals",
                  sym_rat(b->c, sources_of_all(b->m, mixer), b->m->layers));
}

void build_residuals_close(struct build *b)
{
    if (b->m->residual_group == 0) return;
    build_sources(b, "residuals_close", INT(groups_before(b->m->layers, b->m->residual_group) + 1));
}

const struct sym *build_residuals_sent(struct build *b, int64_t stages)
{
    const int64_t group = b->m->residual_group;
    int64_t sum = 0, from = 0;
    if (group == 0) return INT(1);
    for (int64_t i = 1; i < stages; i++) {
        from += layout_stage_layers(b->m->layers, stages, i - 1);
        sum += groups_before(from, group) + 1;
    }
    return stages > 1 ? sym_rat(b->c, sum, stages - 1) : INT(groups_before(b->m->layers, group) + 1);
}
