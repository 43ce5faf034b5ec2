/* pairs -- (query, key) pairs of a pass, and the key positions that are read for them. Derivation: MODEL.md "Pairs and
 * keys". */
#include "calc/cost/build.h"

#define INT(n) sym_int(b->c, (n))
#define PROD(...) SYM_PROD(b->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(b->c, __VA_ARGS__)
#define NEG(x) sym_mul(b->c, INT(-1), (x))
#define HALF(x) sym_div(b->c, (x), INT(2))
#define MIN(x, y) sym_min(b->c, (x), (y))
#define MAX(x, y) sym_max(b->c, (x), (y))

const struct sym *build_sum_between(struct build *b, const struct sym *from, const struct sym *until)
{
    return HALF(SUM(PROD(until, SUM(until, INT(1))), NEG(PROD(from, SUM(from, INT(1))))));
}

/* Sum of min(s, W) for s = S-n+1 .. S, with p = clamp(W, S-n, S): triangle up to p, then W each. */
static const struct sym *sum_min(struct build *b, const struct sym *S, const struct sym *n, const struct sym *W)
{
    const struct sym *from = SUM(S, NEG(n));
    const struct sym *p = W ? MIN(MAX(W, from), S) : S;
    const struct sym *triangle = build_sum_between(b, from, p);
    return W ? SUM(triangle, PROD(SUM(S, NEG(p)), W)) : triangle;
}

/* Position of s within its block of W, 1 to W; sum of those of 1 .. s. */
static const struct sym *within(struct build *b, const struct sym *s, const struct sym *W, const struct sym **sum)
{
    const struct sym *whole = SUM(sym_ceil(b->c, sym_div(b->c, s, W)), INT(-1)); /* blocks complete before s */
    const struct sym *rest = SUM(s, NEG(PROD(whole, W)));
    *sum = HALF(SUM(PROD(whole, W, SUM(W, INT(1))), PROD(rest, SUM(rest, INT(1)))));
    return rest;
}

/* Keys in blocks of W: a query sees those of its own block up to itself. */
static struct attended attended_chunked(struct build *b, const struct sym *W)
{
    const struct sym *S = b->pass->S, *T = b->pass->T, *M = b->pass->M;
    const struct sym *until, *before, *from = SUM(S, NEG(M ? M : T)), *none;
    const struct sym *last = within(b, S, W, &until);
    (void)within(b, from, W, &before);
    if (M) {
        const struct sym *mean = sym_div(b->c, SUM(until, NEG(before)), M);
        return (struct attended){mean, mean, mean};
    }
    /* the first query, at S-T+1, reaches back to the beginning of its block */
    const struct sym *first = within(b, SUM(from, INT(1)), W, &none);
    const struct sym *old = SUM(first, INT(-1));
    struct attended r = {.pairs = SUM(until, NEG(before)), .keys = SUM(old, T), .needed = SUM(old, MIN(T, last))};
    /* full: queries of the block that S is in have its `last` keys, those of blocks before it W */
    const struct sym *ends = MIN(T, last);
    if (b->v->causal_full) r.pairs = SUM(PROD(ends, last), PROD(SUM(T, NEG(ends)), W));
    return r;
}

/* Queries at 1 .. n, in blocks of J tokens, each of which sees its block to the end or to S: their pairs. */
static const struct sym *pairs_of_blocks(struct build *b, const struct sym *n, const struct sym *J)
{
    const struct sym *whole = SUM(sym_ceil(b->c, sym_div(b->c, n, J)), INT(-1)), *next = SUM(whole, INT(1));
    const struct sym *rest = SUM(n, NEG(PROD(whole, J)));
    return SUM(HALF(PROD(J, J, whole, next)), PROD(rest, MIN(b->pass->S, PROD(next, J))));
}

/* Tokens that see each other: all of the context, or block by block. With a window (of an encoder, T = S) each sees W-1
 * before it and W-1 behind it: those up to it and those from it on, itself once. */
static struct attended attended_both(struct build *b, const struct sym *W)
{
    const struct sym *S = b->pass->S, *T = b->pass->T, *M = b->pass->M;
    if (W) return (struct attended){SUM(PROD(INT(2), sum_min(b, S, T, W)), NEG(T)), S, S};
    const struct sym *mean = M ? SUM(S, HALF(SUM(T, NEG(M)))) : S;
    struct attended r = {PROD(T, mean), mean, mean};
    if (!b->m->block_causal || b->v->causal_full || M) return r;
    const struct sym *J = INT(b->m->block_tokens);
    r.pairs = SUM(pairs_of_blocks(b, S, J), NEG(pairs_of_blocks(b, SUM(S, NEG(T)), J)));
    return r;
}

static struct attended attended_of(struct build *b, const struct sym *W, bool chunked)
{
    const struct sym *S = b->pass->S, *T = b->pass->T, *M = b->pass->M;
    if (b->both_ways) return attended_both(b, W);
    if (chunked) return attended_chunked(b, W);
    if (M) { /* decode steps with contexts S-M+1 .. S */
        const struct sym *mean = W ? sym_div(b->c, sum_min(b, S, M, W), M) : SUM(S, HALF(SUM(INT(1), NEG(M))));
        return (struct attended){mean, mean, mean};
    }
    double one;
    const bool single = sym_constant(T, &one) && one == 1;
    struct attended r;
    if (single)
        r.pairs = W ? MIN(S, W) : S;
    else if (b->v->causal_full)
        r.pairs = PROD(T, W ? MIN(S, W) : S);
    else
        r.pairs = W ? sum_min(b, S, T, W) : SUM(PROD(S, T), HALF(PROD(T, SUM(INT(1), NEG(T)))));
    r.keys = W ? MIN(S, SUM(W, T, INT(-1))) : S;
    r.needed = W ? SUM(MIN(SUM(S, NEG(T)), SUM(W, INT(-1))), MIN(T, W)) : S;
    return r;
}

static struct attended each_of(struct build *b, struct attended r)
{
    return (struct attended){build_each(b, r.pairs), build_each(b, r.keys), build_each(b, r.needed)};
}

struct attended build_attended(struct build *b, const struct sym *W, bool chunked)
{
    return each_of(b, attended_of(b, W, chunked));
}

struct attended build_selected(struct build *b, const struct sym *U)
{
    const struct sym *S = b->pass->S, *T = b->pass->T;
    struct attended r = attended_of(b, U, false);
    double one;
    if (b->pass->M || (sym_constant(T, &one) && one == 1)) return each_of(b, r);
    r.keys = MIN(S, PROD(T, U));
    r.needed = SUM(MIN(SUM(S, NEG(T)), SUM(U, INT(-1))), T);
    return each_of(b, r);
}
