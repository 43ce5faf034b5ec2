#include "calc/sym/normal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- counterexample ---- */

enum { POINTS = 256, GROW_EVERY = 8 };

/* a digest of point and variable: small numbers at first */
static int64_t coordinate(uint64_t point, uint64_t variable)
{
    uint64_t h = point * UINT64_C(0x9E3779B97F4A7C15) + (variable + 1) * UINT64_C(0xD1B54A32D192ED03);
    h = (h ^ h >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    h = (h ^ h >> 27) * UINT64_C(0x94D049BB133111EB);
    return (int64_t)(1 + (h ^ h >> 31) % (3 + point / GROW_EVERY));
}

static int by_name(const void *x, const void *y)
{
    const struct sym_binding *a = x, *b = y;
    return strcmp(sym_name(a->var), sym_name(b->var));
}

static enum err_code find_variables(struct sym_ctx *c, const struct sym *const *side, struct sym_point *p,
                                    struct err *err)
{
    struct sym_order order;
    struct arena *scratch = arena_open();
    const bool made = scratch && sym_order_make(scratch, 2, side, &order);
    p->at = made ? arena_array(c->arena, order.n + 1, sizeof *p->at) : NULL;
    for (size_t i = 0; p->at && i < order.n; i++)
        if (order.node[i]->op == SYM_VAR) p->at[p->n++].var = order.node[i];
    if (p->n) qsort(p->at, p->n, sizeof *p->at, by_name);
    arena_close(scratch);
    return p->at ? ERR_OK : err_nomem(err);
}

static bool differ(const struct sym *a, const struct sym *b)
{
    double x = 0.0, y = 0.0;
    if (a == b || !sym_constant(a, &x) || !sym_constant(b, &y)) return false;
    if (sym_is_rational(a) && sym_is_rational(b)) return true;
    return fabs(x - y) > 1e-9 * (fabs(x) + fabs(y)); /* not a unit */
}

enum err_code sym_counterexample(struct sym_ctx *c, const struct sym *a, const struct sym *b, struct sym_point *out,
                                 struct err *err)
{
    const struct sym *const side[2] = {a, b};
    struct sym_point p = {0};
    TRY(sym_check(c, err));
    TRY(find_variables(c, side, &p, err));
    for (uint64_t k = 0; k < POINTS; k++) {
        enum err_code code = ERR_OK;
        for (size_t i = 0; i < p.n; i++) p.at[i].value = sym_int(c, coordinate(k, i));
        for (size_t i = 0; i < 2 && code == ERR_OK; i++)
            code = sym_normal(c, sym_bind(c, side[i], p.at, p.n), &p.value[i], NULL);
        if (code == ERR_RANGE) continue; /* no value there: a pole */
        if (code != ERR_OK) return sym_normal(c, a, &p.value[0], err);
        if (!differ(p.value[0], p.value[1])) continue;
        *out = p;
        return ERR_OK;
    }
    return err_set(err, ERR_NO, "no point among %d where the two differ", POINTS);
}
