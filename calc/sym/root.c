/* Roots as generators: g = b^(1/q) obeys g^q = b, b a polynomial. */
#include "calc/sym/factor.h"

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

/* p with powers of the root below q; of a part (q = 2): g^k is g*b^(k - 1) */
static enum err_code lower_powers(struct algebra *al, struct poly **p, size_t gen, size_t q, bool *changed)
{
    const bool is_part = algebra_is_part(al->gen[gen]);
    const size_t degree = (size_t)poly_degree(al, *p, gen);
    struct poly *part[ALGEBRA_EXPONENT + 1], *low, *g, *r;
    if (degree < q) return ERR_OK;
    TRY(poly_coefficients(al, *p, gen, degree, part));
    TRY(generator(al, gen, &g));
    TRY(poly_int(al, 0, &r));
    for (size_t k = 0; k <= degree; k++) {
        TRY(poly_int(al, 0, &low));
        const size_t stays = is_part && k ? 1 : k % q;
        TRY(add_product(al, &low, part[k], g, stays));
        TRY(add_product(al, &r, low, al->radicand[gen].num, is_part ? k - stays : k / q));
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

static bool has_sign(struct algebra *al, const struct poly *p, const int8_t *sign)
{
    const int s = poly_sign(al, p, sign);
    return s == 1 || s == -1;
}

/* n/(u + v*g) = n*(u + v*b - v*g)/(u*(u + v*b)) for a part: g^2 = b*g. Where u or u + v*b may be zero, as u with
 * another part may be over a whole region, this would divide zero by zero. */
static enum err_code clear_part(struct algebra *al, struct ratfun *r, size_t gen, bool *changed)
{
    struct poly *part[2], *g, *minus, *sum, *conjugate, *num, *den;
    int8_t sign[ALGEBRA_GENERATORS] = {0};
    if (!r->den || poly_degree(al, r->den, gen) != 1) return ERR_OK;
    TRY(poly_coefficients(al, r->den, gen, 1, part));
    TRY(poly_copy(al, part[0], &sum));
    TRY(add_product(al, &sum, part[1], al->radicand[gen].num, 1));
    TRY(rules_generator_signs(al, sign));
    if (!has_sign(al, part[0], sign) || !has_sign(al, sum, sign)) return ERR_OK;
    TRY(generator(al, gen, &g));
    TRY(poly_copy(al, part[1], &minus));
    al->f.neg(minus->p, minus->p, al->ring);
    TRY(poly_copy(al, sum, &conjugate));
    TRY(add_product(al, &conjugate, minus, g, 1));
    TRY(poly_mul(al, r->num, conjugate, &num));
    TRY(poly_mul(al, part[0], sum, &den));
    ratfun_free(al, r);
    *r = (struct ratfun){num, den};
    *changed = true;
    return ERR_OK;
}

/* n/(g^k*d) = n*g^(q - k)/(b*d) for g^q = b, g^k what divides all of the denominator */
static enum err_code clear_factor(struct algebra *al, struct ratfun *r, size_t gen, size_t q, bool *changed)
{
    ulong exp[ALGEBRA_GENERATORS] = {0}, k = (ulong)q;
    struct poly *rest, *g, *num, *power;
    for (slong i = 0; r->den && i < r->den->p->length && k; i++) {
        al->f.term_exp(exp, r->den->p, i, al->ring);
        if (exp[gen] < k) k = exp[gen];
    }
    if (!r->den || k == 0 || k == q) return ERR_OK;
    TRY(generator(al, gen, &g));
    TRY(poly_pow(al, g, k, &power));
    if (!(rest = poly_new(al))) return err_nomem(al->err);
    if (!al->f.divides(rest->p, r->den->p, power->p, al->ring)) return ERR_OK; /* it does */
    TRY(poly_copy(al, r->num, &num));
    struct ratfun out = {0};
    TRY(poly_int(al, 0, &out.num));
    TRY(add_product(al, &out.num, num, g, q - k));
    TRY(poly_mul(al, rest, al->radicand[gen].num, &out.den));
    ratfun_free(al, r);
    *r = out;
    *changed = true;
    return ERR_OK;
}

static enum err_code pass(struct algebra *al, struct ratfun *r, bool *changed)
{
    for (size_t j = 0; j < al->n_gen; j++) {
        const bool is_part = algebra_is_part(al->gen[j]);
        const int64_t q = is_part ? 2 : algebra_root_index(al->gen[j]);
        if (q == 0 || q > ALGEBRA_EXPONENT || al->radicand[j].den) continue;
        TRY(lower_powers(al, &r->num, j, (size_t)q, changed));
        if (!r->den) continue;
        TRY(lower_powers(al, &r->den, j, (size_t)q, changed));
        if (!is_part) TRY(clear_factor(al, r, j, (size_t)q, changed));
        if (q == 2) TRY(is_part ? clear_part(al, r, j, changed) : clear_denominator(al, r, j, changed));
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

static bool is_plus(const struct factor *f) { return f->sign == 1; }

/* the n-th power of a factor's q-th root; of a generator that is a root itself in one step */
static const struct sym *factor_root(struct algebra *al, const struct factor *f, int64_t n, int64_t q)
{
    struct sym_ctx *c = al->c;
    const struct sym *e = poly_write(al, f->p);
    const int64_t own = f->gen >= 0 ? algebra_root_index(al->gen[f->gen]) : 0;
    struct rat r;
    int64_t index;
    if (own && !__builtin_mul_overflow(own, q, &index)) {
        e = e->a;
        q = index;
    }
    if (!rat_make(n, q, &r)) return sym_fail(c);
    const struct sym *root = r.den == 1 ? e : sym_pow(c, e, sym_rat(c, 1, r.den));
    return sym_pow(c, root, sym_int(c, r.num));
}

/* The n-th power of the q-th root of the number in z[1], each small prime for itself. Uses z[2]. */
static const struct sym *number_root(struct algebra *al, int64_t n, int64_t q)
{
    struct sym_ctx *c = al->c;
    const struct flint *f = &al->f;
    const struct sym *r = c->one;
    for (int64_t d = 2; d <= PRIME_LIMIT && *al->z[1] != 1; d++) {
        int64_t times = 0;
        const bool last = d == PRIME_LIMIT; /* all that is left */
        for (; !last && f->z_divisible_si(al->z[1], d); times++) f->z_divexact_ui(al->z[1], al->z[1], (ulong)d);
        struct rat x;
        if ((times == 0 && !last) || !rat_make((last ? 1 : times) * n, q, &x)) continue;
        const struct sym *e = last ? algebra_write_number(al, al->z[1]) : sym_int(c, d);
        const int64_t whole = x.num / x.den - (x.num % x.den < 0), rest = x.num - whole * x.den;
        r = sym_mul(c, r, sym_pow(c, e, sym_int(c, whole)));
        if (rest) r = sym_mul(c, r, sym_pow(c, sym_pow(c, e, sym_rat(c, 1, x.den)), sym_int(c, rest)));
    }
    return r;
}

/* prove: (number * factors)^(n/q), a root of each that is positive; the others stay together */
static enum err_code split_root(struct algebra *al, const struct factored *x, int64_t n, int64_t q,
                                const struct sym **out)
{
    struct sym_ctx *c = al->c;
    const struct sym *r = number_root(al, n, q), *inside = x->minus ? c->minus_one : c->one;
    for (size_t i = 0; i < x->n; i++) {
        const struct factor *f = &x->at[i];
        const int64_t e = f->exponent;
        const int64_t whole = is_plus(f) ? e / q : e / (2 * q) * 2, rest = e - whole * q;
        const struct sym *g = poly_write(al, f->p);
        r = sym_mul(c, r, sym_pow(c, g, sym_int(c, whole * n)));
        if (rest == 0) continue;
        if (is_plus(f))
            r = sym_mul(c, r, factor_root(al, f, rest * n, q));
        else
            inside = sym_mul(c, inside, sym_pow(c, g, sym_int(c, rest)));
    }
    if (!sym_is_int(inside, 1)) {
        const struct rules plain = {.c = c, .err = al->err, .prove = true};
        TRY(rules_expand(&plain, inside, &inside));
        r = sym_mul(c, r, sym_pow(c, sym_pow(c, inside, sym_rat(c, 1, q)), sym_int(c, n)));
    }
    *out = r;
    return ERR_OK;
}

/* To be seen: whole powers of what is positive outside, one root of the rest. Uses z[2], z[3]. */
static enum err_code join_root(struct algebra *al, const struct poly *x, const struct factored *f, int64_t q,
                               const struct sym **outside, const struct sym **inside)
{
    struct sym_ctx *c = al->c;
    struct poly *out, *rest = poly_new(al), *power;
    ulong none[ALGEBRA_GENERATORS] = {0};
    size_t left = 0, at = 0;
    take_whole_root(al, al->z[1], (uint64_t)q, al->z[2], al->z[3]);
    if (!rest || !(out = poly_new(al))) return err_nomem(al->err);
    al->f.push_term(out->p, al->z[2], none, al->ring);
    for (size_t i = 0; i < f->n; i++) {
        const int64_t e = f->at[i].exponent, whole = is_plus(&f->at[i]) ? e / q : e / (2 * q) * 2;
        struct poly *next;
        if (e > whole * q) {
            left++;
            at = i;
        }
        if (whole == 0) continue;
        TRY(poly_pow(al, f->at[i].p, (uint64_t)whole, &power));
        TRY(poly_mul(al, out, power, &next));
        poly_free(al, out);
        out = next;
    }
    TRY(poly_pow(al, out, (uint64_t)q, &power));
    if (!al->f.divides(rest->p, x->p, power->p, al->ring))
        return err_set(al->err, ERR_RANGE, "a root could not be simplified");
    *outside = poly_write(al, out);
    *inside = c->one;
    if (poly_is_one(al, rest)) return ERR_OK;
    const struct factor *one = &f->at[at];
    if (left == 1 && !f->minus && *al->z[1] == 1 && is_plus(one) && one->gen >= 0 &&
        algebra_root_index(al->gen[one->gen])) {
        *inside = factor_root(al, one, one->exponent % q, q);
        return ERR_OK;
    }
    *inside = sym_pow(c, poly_write(al, rest), sym_rat(c, 1, q));
    return ERR_OK;
}

/* (n/d)^(1/q) = x^(1/q)/den, den positive where n/d is: x = n*d^(q - 1) over d when n or d is known to be positive (or
 * -n is), else n*d^(2*q - 1) over d^2. v->den becomes den. */
static enum err_code clear_fraction(struct algebra *al, struct ratfun *v, int64_t q, const int8_t *sign,
                                    struct poly **x)
{
    struct poly *power, *square;
    const int num = poly_sign(al, v->num, sign), den = poly_sign(al, v->den, sign);
    const bool known = num == 1 || num == -1 || den == 1 || den == -1;
    if (num == -1 || den == -1) {
        al->f.neg(v->num->p, v->num->p, al->ring);
        al->f.neg(v->den->p, v->den->p, al->ring);
    }
    TRY(poly_pow(al, v->den, (uint64_t)(known ? q - 1 : 2 * q - 1), &power));
    TRY(poly_mul(al, v->num, power, x));
    if (known) return ERR_OK;
    TRY(poly_mul(al, v->den, v->den, &square));
    v->den = square;
    return ERR_OK;
}

static enum err_code root_in(const struct rules *r, struct algebra *al, const struct sym *base, int64_t p, int64_t q,
                             const struct sym **out)
{
    struct sym_ctx *c = al->c;
    struct ratfun v;
    int8_t sign[ALGEBRA_GENERATORS] = {0};
    TRY(algebra_value(al, base, &v));
    if (poly_is_zero(v.num) && p > 0) {
        *out = c->zero;
        return ERR_OK;
    }
    if (poly_is_zero(v.num)) return err_set(al->err, ERR_RANGE, "the expression divides by zero");
    struct poly *x = v.num;
    TRY(rules_generator_signs(al, sign));
    if (v.den) TRY(clear_fraction(al, &v, q, sign, &x));
    if (al->f.is_fmpz(x->p, al->ring) && al->f.z_sgn(&x->p->coeffs[0]) < 0 && q % 2 == 0)
        return err_set(al->err, ERR_RANGE, "the expression has an even root of a negative number");
    struct factored *f = arena_alloc(al->scratch, sizeof *f);
    if (!f) return err_nomem(al->err);
    TRY(factor_poly(al, x, sign, f));
    const struct sym *times = sym_int(c, p), *den = v.den ? poly_write(al, v.den) : c->one, *outside = c->one,
                     *inside = c->one;
    if (r->prove) {
        TRY(split_root(al, f, p, q, out));
        *out = sym_div(c, *out, sym_pow(c, den, times));
        return ERR_OK;
    }
    TRY(join_root(al, x, f, q, &outside, &inside));
    if (v.den) outside = sym_div(c, outside, den);
    *out = sym_mul(c, sym_pow(c, outside, times), sym_pow(c, inside, times));
    return ERR_OK;
}

enum err_code rules_root(const struct rules *r, const struct sym *base, int64_t p, int64_t q, const struct sym **out)
{
    struct algebra al;
    TRY(algebra_open(&al, r->c, 1, &base, r->err));
    const enum err_code code = root_in(r, &al, base, p, q, out);
    algebra_close(&al);
    return code;
}
