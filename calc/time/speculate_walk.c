/* speculate_walk -- what a step judges and makes of one sequence, chain or tree; of speculate.h. */
#include "calc/time/speculate.h"

int64_t speculate_judged(const struct speculate_setup *s, int64_t gamma)
{
    return s->shape ? s->shape->query_tokens : gamma + s->bonus;
}

int64_t speculate_drafted(const struct speculate_setup *s, int64_t gamma)
{
    return s->shape ? s->shape->drafted : gamma;
}

double speculate_mean(const struct speculate_setup *s, int64_t gamma)
{
    return s->shape ? s->shape->tokens : speculate_tokens(&s->accept, gamma, s->bonus);
}

double speculate_square(const struct speculate_setup *s, int64_t gamma)
{
    return s->shape ? s->shape->tokens_square : speculate_tokens_square(&s->accept, gamma, s->bonus);
}

/* Which child of a node at depth - 1 is kept, from 0; -1: none of them. */
static int64_t drawn(const struct speculate_accept *p, int64_t depth, int64_t children, double u)
{
    double sum = 0;
    for (int64_t r = 0; r < children; r++) {
        sum += speculate_accept_child(p, depth, r + 1);
        if (u < sum) return r;
    }
    return -1;
}

int64_t speculate_keep(const struct speculate_setup *s, int64_t gamma, const double u[SPECULATE_DEPTH_MAX],
                       int64_t *made)
{
    const struct speculate_shape *x = s->shape;
    const int64_t depth = x ? x->depth : gamma;
    int64_t kept = 0;
    int32_t at = 0;
    for (; kept < depth; kept++) {
        const int64_t children = x ? x->node[at].children : 1;
        const int64_t r = drawn(&s->accept, kept + 1, children, u[kept]);
        if (r < 0) break;
        if (x) at = x->child[x->node[at].first + r];
    }
    const bool last = x ? x->node[at].children == 0 : kept == gamma; /* nothing was refused */
    *made = kept + (s->bonus || !last);
    return kept;
}
