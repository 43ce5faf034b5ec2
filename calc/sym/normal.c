#include "calc/sym/normal.h"

#include "calc/sym/rules.h"

/* ---- canonical form, equality ---- */

enum err_code sym_normal_given(struct sym_ctx *c, const struct sym *e, size_t n, const struct sym_known *known,
                               const struct sym **out, struct err *err)
{
    const struct rules r = {.c = c, .known = known, .n_known = n, .err = err};
    return rules_normal(&r, e, out);
}

enum err_code sym_normal(struct sym_ctx *c, const struct sym *e, const struct sym **out, struct err *err)
{
    return sym_normal_given(c, e, 0, NULL, out, err);
}

/* Canonical forms of both, so that the equal parts of two long sums need not have a common denominator; where roots
 * have relations, the difference decides. */
static enum err_code equal_in(struct algebra *al, const struct sym *const *side, bool *equal)
{
    struct ratfun v[2], minus_one = {0}, minus = {0}, difference = {0};
    bool roots = false;
    for (size_t i = 0; i < 2; i++) TRY(algebra_value(al, side[i], &v[i]));
    for (size_t j = 0; j < al->n_gen; j++) roots = roots || algebra_root_index(al->gen[j]);
    *equal = ratfun_equal(al, v[0], v[1]);
    if (*equal || !roots) return ERR_OK;
    TRY(poly_int(al, -1, &minus_one.num));
    TRY(ratfun_mul(al, v[1], minus_one, &minus));
    TRY(ratfun_add(al, v[0], minus, &difference));
    TRY(algebra_reduce(al, &difference));
    *equal = poly_is_zero(difference.num);
    return ERR_OK;
}

enum err_code sym_equal_given(struct sym_ctx *c, const struct sym *a, const struct sym *b, size_t n,
                              const struct sym_known *known, bool *equal, struct err *err)
{
    const struct rules r = {.c = c, .known = known, .n_known = n, .err = err};
    const struct sym *side[2];
    struct algebra al;
    bool answer = false;
    TRY(rules_rewrite(&r, a, &side[0]));
    TRY(rules_rewrite(&r, b, &side[1]));
    TRY(algebra_open(&al, c, 2, side, err));
    const enum err_code code = equal_in(&al, side, &answer);
    algebra_close(&al);
    if (code == ERR_OK) *equal = answer;
    return code;
}

enum err_code sym_equal(struct sym_ctx *c, const struct sym *a, const struct sym *b, bool *equal, struct err *err)
{
    return sym_equal_given(c, a, b, 0, NULL, equal, err);
}

enum err_code sym_fraction(struct sym_ctx *c, const struct sym *e, const struct sym **num, const struct sym **den,
                           struct err *err)
{
    const struct sym *n;
    TRY(sym_normal(c, e, &n, err));
    *num = n->op == SYM_DIV ? n->a : n;
    *den = n->op == SYM_DIV ? n->b : c->one;
    return ERR_OK;
}
