/* Roots as generators: g = b^(1/q) obeys g^q = b, b a polynomial. */
#include "calc/sym/rules.h"

enum { PASSES = 8 };

/* *r += a*b^n */
static enum err_code add_product(struct algebra *al, struct poly **r, const struct poly *a, const struct poly *b,
                                 uint64_t n)
{
    struct poly *power, *term, *sum;
    if (poly_is_zero(a)) return ERR_OK;
    TRY(poly_pow(al, b, n, &power));
    TRY(poly_mul(al, a, power, &term));
    TRY(poly_add(al, *r, term, &sum));
    poly_free(al, power);
    poly_free(al, term);
    poly_free(al, *r);
    *r = sum;
    return ERR_OK;
}

static enum err_code generator(struct algebra *al, size_t gen, struct poly **out)
{
    if (!(*out = poly_new(al))) return err_nomem(al->err);
    al->f.gen((*out)->p, (slong)gen, al->ring);
    return ERR_OK;
}

/* p with powers of the root below q */
static enum err_code lower_powers(struct algebra *al, struct poly **p, size_t gen, size_t q, bool *changed)
{
    const size_t degree = (size_t)poly_degree(al, *p, gen);
    struct poly *part[ALGEBRA_EXPONENT + 1], *low, *g, *r;
    if (degree < q) return ERR_OK;
    TRY(poly_coefficients(al, *p, gen, degree, part));
    TRY(generator(al, gen, &g));
    TRY(poly_int(al, 0, &r));
    for (size_t k = 0; k <= degree; k++) {
        TRY(poly_int(al, 0, &low));
        TRY(add_product(al, &low, part[k], g, k % q));
        TRY(add_product(al, &r, low, al->radicand[gen].num, k / q));
        poly_free(al, low);
        poly_free(al, part[k]);
    }
    poly_free(al, g);
    poly_free(al, *p);
    *p = r;
    *changed = true;
    return ERR_OK;
}

/* n/(u + v*g) = n*(u - v*g)/(u^2 - v^2*b) for g^2 = b */
static enum err_code clear_denominator(struct algebra *al, struct ratfun *r, size_t gen, bool *changed)
{
    struct poly *part[2], *g, *minus, *conjugate, *num, *den;
    if (!r->den || poly_degree(al, r->den, gen) != 1) return ERR_OK;
    TRY(poly_coefficients(al, r->den, gen, 1, part));
    TRY(generator(al, gen, &g));
    TRY(poly_copy(al, part[1], &minus));
    al->f.neg(minus->p, minus->p, al->ring);
    TRY(poly_copy(al, part[0], &conjugate));
    TRY(add_product(al, &conjugate, minus, g, 1));
    TRY(poly_mul(al, r->num, conjugate, &num));
    TRY(poly_mul(al, part[0], part[0], &den));
    TRY(poly_mul(al, part[1], minus, &part[0]));
    TRY(add_product(al, &den, part[0], al->radicand[gen].num, 1));
    ratfun_free(al, r);
    *r = (struct ratfun){num, den};
    *changed = true;
    return ERR_OK;
}

static enum err_code pass(struct algebra *al, struct ratfun *r, bool *changed)
{
    for (size_t j = 0; j < al->n_gen; j++) {
        const int64_t q = algebra_root_index(al->gen[j]);
        if (q == 0 || q > ALGEBRA_EXPONENT || al->radicand[j].den) continue;
        TRY(lower_powers(al, &r->num, j, (size_t)q, changed));
        if (!r->den) continue;
        TRY(lower_powers(al, &r->den, j, (size_t)q, changed));
        if (q == 2) TRY(clear_denominator(al, r, j, changed));
    }
    return ERR_OK;
}

enum err_code algebra_reduce(struct algebra *al, struct ratfun *r)
{
    for (int i = 0; i < PASSES; i++) {
        bool changed = false;
        TRY(pass(al, r, &changed));
        if (!changed) return ERR_OK;
        TRY(ratfun_lowest(al, r));
    }
    return err_set(al->err, ERR_RANGE, "the roots of the expression are nested too deeply");
}

/* ---- making a root ---- */

struct root {
    struct poly *outside; /* base^(1/q) = outside/den * inside^(1/q) */
    struct poly *inside;
    struct poly *den;
};

enum { PRIME_LIMIT = 1000 };

/* r: the largest with r^q dividing z > 0, as far as divisors below PRIME_LIMIT and a perfect power of the rest show;
 * z becomes z/r^q. Uses z[0]. */
static void take_whole_root(const struct algebra *al, fmpz_t z, uint64_t q, fmpz_t r, fmpz_t rest)
{
    const struct flint *f = &al->f;
    flint_z_clear(f, r);
    *r = 1;
    f->z_set(rest, z);
    for (int64_t d = 2; d < PRIME_LIMIT && !(COEFF_IS_MPZ(*rest) == 0 && *rest == 1); d++) {
        uint64_t times = 0;
        for (; f->z_divisible_si(rest, d); times++) f->z_divexact_ui(rest, rest, (ulong)d);
        for (uint64_t i = 0; i < times / q; i++) {
            f->z_mul_ui(r, r, (ulong)d);
            for (uint64_t j = 0; j < q; j++) f->z_divexact_ui(z, z, (ulong)d);
        }
    }
    fmpz_t root = {0}, power = {0};
    if (*rest != 1 && f->z_root(root, rest, (slong)q)) { /* true when exact */
        f->z_mul(r, r, root);
        f->z_pow_ui(power, root, (ulong)q);
        f->z_divexact(z, z, power);
    }
    flint_z_clear(f, root);
    flint_z_clear(f, power);
}

/* outside and inside of the q-th root of x, a polynomial that is not zero: the number and the variables that divide
 * every term. Variables and exponentials are positive; other atoms need not be, and stay. */
static enum err_code split_root(struct algebra *al, struct poly *x, uint64_t q, struct root *out)
{
    ulong exp[ALGEBRA_GENERATORS] = {0};
    struct poly *content = poly_new(al), *outside = poly_new(al), *power;
    struct poly *inside = poly_new(al);
    if (!content || !outside || !inside) return err_nomem(al->err);
    al->f.term_content(content->p, x->p, al->ring);
    al->f.term_exp(exp, content->p, 0, al->ring);
    for (size_t j = 0; j < al->n_gen; j++)
        exp[j] = al->gen[j]->op == SYM_VAR || al->gen[j]->op == SYM_EXP ? exp[j] / q : 0;
    al->f.z_abs(al->z[0], &content->p->coeffs[0]);
    take_whole_root(al, al->z[0], q, al->z[1], al->z[2]);
    al->f.push_term(outside->p, al->z[1], exp, al->ring);
    TRY(poly_sealed(al, outside));
    TRY(poly_pow(al, outside, q, &power));
    if (!al->f.divides(inside->p, x->p, power->p, al->ring))
        return err_set(al->err, ERR_RANGE, "a root could not be simplified");
    *out = (struct root){.outside = outside, .inside = inside};
    return poly_sealed(al, inside);
}

static const struct sym *write_root(struct algebra *al, const struct root *root, int64_t p, int64_t q)
{
    struct sym_ctx *c = al->c;
    const struct sym *times = sym_int(c, p), *outside = poly_write(al, root->outside), *inside = c->one;
    if (root->den) outside = sym_div(c, outside, poly_write(al, root->den));
    if (!al->f.equal_ui(root->inside->p, 1, al->ring))
        inside = sym_pow(c, sym_pow(c, poly_write(al, root->inside), sym_rat(c, 1, q)), times);
    return sym_mul(c, sym_pow(c, outside, times), inside);
}

static enum err_code root_in(struct algebra *al, const struct sym *base, int64_t p, int64_t q, const struct sym **out)
{
    struct ratfun v;
    struct root root = {0};
    TRY(algebra_value(al, base, &v));
    if (poly_is_zero(v.num) && p > 0) {
        *out = al->c->zero;
        return ERR_OK;
    }
    if (poly_is_zero(v.num)) return err_set(al->err, ERR_RANGE, "the expression divides by zero");
    struct poly *x = v.num, *power;
    if (v.den) { /* n/d = n*d^(q-1)/d^q */
        TRY(poly_pow(al, v.den, (uint64_t)q - 1, &power));
        TRY(poly_mul(al, v.num, power, &x));
    }
    if (al->f.is_fmpz(x->p, al->ring) && al->f.z_sgn(&x->p->coeffs[0]) < 0 && q % 2 == 0)
        return err_set(al->err, ERR_RANGE, "the expression has an even root of a negative number");
    TRY(split_root(al, x, (uint64_t)q, &root));
    root.den = v.den;
    *out = write_root(al, &root, p, q);
    return ERR_OK;
}

enum err_code rules_root(const struct rules *r, const struct sym *base, int64_t p, int64_t q, const struct sym **out)
{
    struct algebra al;
    TRY(algebra_open(&al, r->c, 1, &base, r->err));
    const enum err_code code = root_in(&al, base, p, q, out);
    algebra_close(&al);
    return code;
}
