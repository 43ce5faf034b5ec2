/* stripes -- attention to the last blocks of keys and to stripes of those before. Derivation: MODEL.md "Stripes of
 * keys". */
#include "calc/cost/build.h"

#define INT(n) sym_int(b->c, (n))
#define PROD(...) SYM_PROD(b->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(b->c, __VA_ARGS__)
#define NEG(x) sym_mul(b->c, INT(-1), (x))
#define HALF(x) sym_div(b->c, (x), INT(2))

/* Blocks before the near ones of a query at s, s counted from 1. */
static const struct sym *far_blocks(struct build *b, const struct mixer *x, const struct sym *s)
{
    const struct sym *at = sym_ceil(b->c, sym_div(b->c, s, INT(x->stripe_tokens)));
    return sym_max(b->c, INT(0), SUM(at, INT(-x->stripe_near)));
}

/* Their sum over queries 1 .. n: ceil(j/J) for j = 1 .. n - J*near. */
static const struct sym *sum_of_far(struct build *b, const struct mixer *x, const struct sym *n)
{
    const struct sym *J = INT(x->stripe_tokens), *near = INT(x->stripe_tokens * x->stripe_near);
    const struct sym *rest = sym_max(b->c, INT(0), SUM(n, NEG(near)));
    const struct sym *last = sym_ceil(b->c, sym_div(b->c, rest, J)), *before = SUM(last, INT(-1));
    return SUM(HALF(PROD(J, before, last)), PROD(SUM(rest, NEG(PROD(J, before))), last));
}

/* Of a far block the tokens that are not seen, where so many of every stripe_every blocks are. */
static const struct sym *unseen(struct build *b, const struct mixer *x, const struct sym *seen)
{
    const struct sym *every = INT(x->stripe_every);
    return PROD(INT(x->stripe_tokens), sym_div(b->c, SUM(every, NEG(seen)), every));
}

struct attended build_striped(struct build *b, const struct mixer *x)
{
    const struct sym *S = b->pass->S, *T = b->pass->T, *M = b->pass->M, *one = INT(1), *from = SUM(S, NEG(M ? M : T));
    /* stripes of the queries of a KV head differ, until they are all blocks */
    const struct sym *group = sym_min(b->c, sym_div(b->c, b->y->N, b->y->K), INT(x->stripe_every));
    const struct sym *by_head = unseen(b, x, one), *by_group = unseen(b, x, group);
    const struct sym *far = SUM(sum_of_far(b, x, S), NEG(sum_of_far(b, x, from))), *all = build_sum_between(b, from, S);
    struct attended r = {.pairs = SUM(all, NEG(PROD(by_head, far)))};
    if (M) { /* one token a step, contexts S-M+1 .. S */
        r.pairs = sym_div(b->c, r.pairs, M);
        r.keys = r.needed = sym_div(b->c, SUM(all, NEG(PROD(by_group, far))), M);
        return (struct attended){build_each(b, r.pairs), build_each(b, r.keys), build_each(b, r.needed)};
    }
    double single;
    if (b->v->causal_full || (sym_constant(T, &single) && single == 1))
        r.pairs = PROD(T, SUM(S, NEG(PROD(by_head, far_blocks(b, x, S)))));
    /* what is far from the first query is far from all */
    r.keys = r.needed = SUM(S, NEG(PROD(by_group, far_blocks(b, x, SUM(from, one)))));
    return (struct attended){build_each(b, r.pairs), build_each(b, r.keys), build_each(b, r.needed)};
}
