/* Forms in which more is seen to be equal than in those that are shown: see prove_extreme and prove_power. */
#include <string.h>

#include "calc/sym/factor.h"

enum { OPERANDS = 64 };

/* ---- the part of a difference ---- */

/* d = outside * inside, outside positive or 0, inside a product of distinct factors of unknown sign */
struct split {
    const struct sym *outside;
    struct poly *inside; /* NULL: 1 */
    bool minus;
};

static enum err_code take_factors(struct algebra *al, const struct poly *p, int64_t side, const int8_t *sign,
                                  struct factored *f, struct split *s)
{
    struct sym_ctx *c = al->c;
    TRY(factor_poly(al, p, sign, f));
    s->minus = s->minus != f->minus;
    s->outside = sym_mul(c, s->outside, sym_pow(c, algebra_write_number(al, al->z[1]), sym_int(c, side)));
    for (size_t i = 0; i < f->n; i++) {
        const struct factor *x = &f->at[i];
        const bool odd = x->exponent % 2 != 0, plus = x->sign == 1;
        /* of an odd power of unknown sign one factor stays inside; of a denominator, 1/x = x/x^2 */
        const int64_t out = plus || !odd ? side * x->exponent : side * x->exponent - 1;
        s->outside = sym_mul(c, s->outside, sym_pow(c, poly_write(al, x->p), sym_int(c, out)));
        if (plus || !odd) continue;
        struct poly *next;
        if (!s->inside)
            TRY(poly_copy(al, x->p, &next));
        else
            TRY(poly_mul(al, s->inside, x->p, &next));
        s->inside = next;
    }
    return ERR_OK;
}

static enum err_code part_in(struct algebra *al, const struct sym *d, const struct sym **out)
{
    struct sym_ctx *c = al->c;
    struct ratfun v;
    struct split s = {.outside = c->one};
    int8_t sign[ALGEBRA_GENERATORS] = {0};
    struct factored *f = arena_alloc(al->scratch, sizeof *f);
    if (!f) return err_nomem(al->err);
    TRY(rules_generator_signs(al, sign));
    for (size_t j = 0; j < al->n_gen; j++)
        if (algebra_is_part(al->gen[j])) sign[j] = 1; /* or 0: max(0*d, 0) is 0*max(d, 0) */
    TRY(algebra_value(al, d, &v));
    *out = c->zero;
    if (poly_is_zero(v.num)) return ERR_OK;
    TRY(take_factors(al, v.num, 1, sign, f, &s));
    if (v.den) TRY(take_factors(al, v.den, -1, sign, f, &s));
    if (!s.inside) {
        if (!s.minus) *out = s.outside;
        return ERR_OK;
    }
    if (al->f.z_sgn(&s.inside->p->coeffs[0]) < 0) {
        al->f.neg(s.inside->p, s.inside->p, al->ring);
        s.minus = !s.minus;
    }
    const struct sym *inside = poly_write(al, s.inside), *part = sym_max(c, inside, c->zero);
    *out = sym_mul(c, s.outside, s.minus ? sym_sub(c, part, inside) : part);
    return sym_check(c, al->err);
}

/* max(d, 0) */
static enum err_code part_of(const struct rules *r, const struct sym *d, const struct sym **out)
{
    struct algebra al;
    TRY(rules_expand(r, d, &d));
    TRY(algebra_open(&al, r->c, 1, &d, r->err));
    const enum err_code code = part_in(&al, d, out);
    algebra_close(&al);
    TRY(code);
    return rules_expand(r, *out, out);
}

/* ---- of several ---- */

/* whether p has the term k*exp */
static bool has_term(struct algebra *al, const struct poly *p, const fmpz *k, const ulong *exp)
{
    ulong own[ALGEBRA_GENERATORS] = {0};
    for (slong i = 0; i < p->p->length; i++) {
        al->f.term_exp(own, p->p, i, al->ring);
        if (al->f.z_equal(&p->p->coeffs[i], k) && memcmp(own, exp, al->n_gen * sizeof *own) == 0) return true;
    }
    return false;
}

/* the terms that all have, out: p[i] is left without them */
static enum err_code take_common_terms(struct algebra *al, struct poly **p, size_t n, struct poly **out)
{
    ulong exp[ALGEBRA_GENERATORS] = {0};
    struct poly *common = poly_new(al);
    if (!common) return err_nomem(al->err);
    for (slong i = 0; i < p[0]->p->length; i++) {
        bool all = true;
        al->f.term_exp(exp, p[0]->p, i, al->ring);
        for (size_t j = 1; j < n; j++) all = all && has_term(al, p[j], &p[0]->p->coeffs[i], exp);
        if (all) al->f.push_term(common->p, &p[0]->p->coeffs[i], exp, al->ring);
    }
    TRY(poly_sealed(al, common));
    for (size_t j = 0; j < n; j++) al->f.sub(p[j]->p, p[j]->p, common->p, al->ring);
    *out = common;
    return ERR_OK;
}

/* max(x...) = outside*(common + max(y...)): outside holds the denominator and what divides all operands and is
 * positive; z is a new variable in sum = x[0] + x[1]*z + x[2]*z^2 + ... */
static enum err_code common_in(struct algebra *al, const struct sym *sum, const struct sym *z, size_t n,
                               const struct sym **y, const struct sym **outside, const struct sym **common)
{
    struct sym_ctx *c = al->c;
    struct ratfun v;
    struct split s = {.outside = c->one};
    int8_t sign[ALGEBRA_GENERATORS] = {0};
    struct poly *part[OPERANDS], *shared = NULL;
    size_t gen = 0;
    struct factored *f = arena_alloc(al->scratch, sizeof *f);
    if (!f) return err_nomem(al->err);
    TRY(rules_generator_signs(al, sign));
    TRY(algebra_value(al, sum, &v));
    while (al->gen[gen] != z) gen++;
    TRY(factor_poly(al, v.num, sign, f));
    struct poly *content, *next, *rest = poly_new(al);
    if (!rest) return err_nomem(al->err);
    TRY(poly_int(al, 1, &content));
    for (size_t i = 0; i < f->n; i++) {
        if (f->at[i].sign != 1 || poly_degree(al, f->at[i].p, gen) > 0) continue;
        TRY(poly_pow(al, f->at[i].p, (uint64_t)f->at[i].exponent, &next));
        TRY(poly_mul(al, content, next, &content));
    }
    struct poly *number = poly_new(al);
    ulong none[ALGEBRA_GENERATORS] = {0};
    if (!number) return err_nomem(al->err);
    al->f.term_content(number->p, v.num->p, al->ring);
    flint_z_clear(&al->f, al->z[1]);
    al->f.z_abs(al->z[1], &number->p->coeffs[0]);
    struct poly *whole = poly_new(al);
    if (!whole) return err_nomem(al->err);
    al->f.push_term(whole->p, al->z[1], none, al->ring);
    TRY(poly_mul(al, content, whole, &content));
    if (!al->f.divides(rest->p, v.num->p, content->p, al->ring))
        return err_set(al->err, ERR_RANGE, "an extreme could not be simplified");
    TRY(poly_coefficients(al, rest, gen, n - 1, part));
    s.outside = poly_write(al, content);
    if (v.den) {
        if (poly_sign(al, v.den, sign) != 1) { /* of unknown sign: it stays inside */
            for (size_t i = 0; i < n; i++) y[i] = sym_div(c, poly_write(al, part[i]), poly_write(al, v.den));
            *outside = s.outside;
            *common = c->zero;
            return ERR_OK;
        }
        s.outside = sym_div(c, s.outside, poly_write(al, v.den));
    }
    TRY(take_common_terms(al, part, n, &shared));
    for (size_t i = 0; i < n; i++) y[i] = poly_write(al, part[i]);
    *outside = s.outside;
    *common = poly_write(al, shared);
    return sym_check(c, al->err);
}

static void sort(const struct sym **x, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t j = i; j > 0 && x[j]->index < x[j - 1]->index; j--) {
            const struct sym *swap = x[j];
            x[j] = x[j - 1];
            x[j - 1] = swap;
        }
}

/* the maximum of several, as an atom */
static enum err_code maximum(const struct rules *r, size_t n, const struct sym *const *x, const struct sym **out)
{
    struct sym_ctx *c = r->c;
    const struct sym *z = sym_var(c, "\x01which"), *sum = c->zero, *y[OPERANDS], *outside = c->one, *common = c->zero;
    struct algebra al;
    for (size_t i = 0; i < n; i++) sum = sym_add(c, sum, sym_mul(c, x[i], sym_pow(c, z, sym_int(c, (int64_t)i))));
    TRY(algebra_open(&al, c, 1, &sum, r->err));
    const enum err_code code = common_in(&al, sum, z, n, y, &outside, &common);
    algebra_close(&al);
    TRY(code);
    sort(y, n);
    const struct sym *top = y[0];
    for (size_t i = 1; i < n; i++) top = sym_max(c, top, y[i]);
    *out = sym_mul(c, outside, sym_add(c, common, top));
    return sym_check(c, r->err);
}

enum err_code prove_extreme(const struct rules *r, enum sym_op op, size_t n, const struct sym *const *x,
                            const struct sym **out)
{
    struct sym_ctx *c = r->c;
    const struct sym *part, *y[OPERANDS];
    if (n == 2) {
        TRY(part_of(r, sym_sub(c, x[0], x[1]), &part));
        *out = op == SYM_MAX ? sym_add(c, x[1], part) : sym_sub(c, x[0], part);
        return sym_check(c, r->err);
    }
    for (size_t i = 0; i < n; i++) y[i] = op == SYM_MAX ? x[i] : sym_mul(c, c->minus_one, x[i]);
    TRY(maximum(r, n, y, out));
    if (op == SYM_MIN) *out = sym_mul(c, c->minus_one, *out);
    return ERR_OK;
}

/* ---- powers ---- */

enum err_code prove_power(const struct rules *r, const struct sym *base, const struct sym *exponent,
                          const struct sym **out)
{
    struct sym_ctx *c = r->c;
    struct err refused = {.code = ERR_OK};
    struct rules quiet = *r;
    const struct sym *e;
    quiet.err = &refused;
    enum err_code code = rules_log(&quiet, base, &e);
    if (code == ERR_OK) code = rules_expand(&quiet, sym_mul(c, exponent, e), &e);
    if (code == ERR_OK) code = rules_exp(&quiet, e, &e);
    *out = code == ERR_OK ? e : sym_pow(c, base, exponent);
    if (code == ERR_OK || code == ERR_RANGE) return sym_check(c, r->err);
    if (r->err) *r->err = refused;
    return code;
}
