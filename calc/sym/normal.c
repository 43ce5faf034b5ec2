#include "calc/sym/normal.h"

#include "calc/sym/rules.h"

static const uint64_t PROVE_WORK = 4000000; /* not a unit */ /* of sym_equal's second try: tenths of a second */

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
    for (size_t j = 0; j < al->n_gen; j++)
        roots = roots || algebra_root_index(al->gen[j]) || algebra_is_part(al->gen[j]);
    *equal = ratfun_equal(al, v[0], v[1]);
    if (*equal || !roots) return ERR_OK;
    TRY(poly_int(al, -1, &minus_one.num));
    TRY(ratfun_mul(al, v[1], minus_one, &minus));
    TRY(ratfun_add(al, v[0], minus, &difference));
    TRY(algebra_reduce(al, &difference));
    *equal = poly_is_zero(difference.num);
    return ERR_OK;
}

static enum err_code equal_by(const struct rules *r, const struct sym *a, const struct sym *b, bool *equal)
{
    const struct sym *side[2];
    struct algebra al;
    TRY(rules_rewrite(r, a, &side[0]));
    TRY(rules_rewrite(r, b, &side[1]));
    TRY(algebra_open(&al, r->c, 2, side, r->err));
    const enum err_code code = equal_in(&al, side, equal);
    algebra_close(&al);
    return code;
}

/* anything but sums, products, quotients and whole powers */
static enum err_code have_atoms(struct sym_ctx *c, const struct sym *const *side, bool *yes, struct err *err)
{
    struct sym_order o;
    struct arena *scratch = arena_open();
    const bool made = scratch && sym_order_make(scratch, 2, side, &o);
    for (size_t i = 0; made && i < o.n; i++) {
        const struct sym *e = o.node[i];
        const bool whole_power = e->op == SYM_POW && sym_is_rational(e->b) && e->b->den == 1;
        *yes = *yes || (e->op >= SYM_POW && !whole_power);
    }
    arena_close(scratch);
    return made ? sym_check(c, err) : err_nomem(err);
}

/* In the forms that show more; what they cannot take is left unproved. */
static enum err_code prove(const struct rules *plain, const struct sym *a, const struct sym *b, bool *equal)
{
    struct sym_ctx *c = plain->c;
    struct err refused = {.code = ERR_OK};
    struct rules r = *plain;
    uint64_t work = PROVE_WORK, *const before = c->work;
    bool answer = false;
    r.prove = true;
    r.err = &refused;
    if (!before || *before > work) c->work = &work;
    const enum err_code code = equal_by(&r, a, b, &answer);
    c->work = before;
    *equal = code == ERR_OK && answer;
    if (code == ERR_OK || code == ERR_RANGE) return sym_check(c, plain->err);
    if (plain->err) *plain->err = refused;
    return code;
}

enum err_code sym_equal_given(struct sym_ctx *c, const struct sym *a, const struct sym *b, size_t n,
                              const struct sym_known *known, bool *equal, struct err *err)
{
    const struct rules r = {.c = c, .known = known, .n_known = n, .err = err};
    const struct sym *const side[2] = {a, b};
    bool answer = false, atoms = false;
    TRY(equal_by(&r, a, b, &answer));
    if (!answer) TRY(have_atoms(c, side, &atoms, err));
    if (atoms) TRY(prove(&r, a, b, &answer));
    *equal = answer;
    return ERR_OK;
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
