#include "calc/sym/algebra.h"

void ratfun_free(struct algebra *al, struct ratfun *r)
{
    poly_free(al, r->num);
    poly_free(al, r->den);
    *r = (struct ratfun){0};
}

/* den 1 becomes NULL, its leading coefficient positive; no gcd */
static enum err_code settle(struct algebra *al, struct ratfun *r)
{
    if (!r->den) return ERR_OK;
    if (poly_is_zero(r->den)) return err_set(al->err, ERR_RANGE, "the expression divides by zero");
    if (al->f.z_sgn(&r->den->p->coeffs[0]) < 0) {
        al->f.neg(r->num->p, r->num->p, al->ring);
        al->f.neg(r->den->p, r->den->p, al->ring);
    }
    if (poly_is_one(al, r->den) || poly_is_zero(r->num)) {
        poly_free(al, r->den);
        r->den = NULL;
    }
    return ERR_OK;
}

enum err_code ratfun_lowest(struct algebra *al, struct ratfun *r)
{
    TRY(settle(al, r));
    if (!r->den) return ERR_OK;
    struct poly *g, *x, *y;
    TRY(poly_gcd(al, r->num, r->den, &g, &x, &y));
    if (!g) return ERR_OK;
    poly_free(al, g);
    ratfun_free(al, r);
    *r = (struct ratfun){x, y};
    return settle(al, r);
}

/* n1*d2 + n2*d1, d NULL for 1 */
static enum err_code cross(struct algebra *al, const struct ratfun a, const struct ratfun b, const struct poly *a_den,
                           const struct poly *b_den, struct poly **out)
{
    struct poly *x = NULL, *y = NULL;
    if (b_den) TRY(poly_mul(al, a.num, b_den, &x));
    if (a_den) TRY(poly_mul(al, b.num, a_den, &y));
    TRY(poly_add(al, x ? x : a.num, y ? y : b.num, out));
    poly_free(al, x);
    poly_free(al, y);
    return ERR_OK;
}

/* Two fractions: with g = gcd of the denominators, only factors of g can cancel (Henrici). */
static enum err_code add_fractions(struct algebra *al, struct ratfun a, struct ratfun b, struct ratfun *out)
{
    struct poly *g, *x, *y, *h, *rest, *n = NULL, *d;
    struct ratfun r = {0};
    TRY(poly_gcd(al, a.den, b.den, &g, &x, &y));
    if (!g) {
        TRY(cross(al, a, b, a.den, b.den, &r.num));
        TRY(poly_mul(al, a.den, b.den, &r.den));
        *out = r;
        return settle(al, out);
    }
    TRY(cross(al, a, b, poly_is_one(al, x) ? NULL : x, poly_is_one(al, y) ? NULL : y, &r.num));
    if (!poly_is_zero(r.num)) {
        TRY(poly_gcd(al, r.num, g, &h, &n, &rest));
        if (h) {
            poly_free(al, h);
            poly_free(al, g);
            poly_free(al, r.num);
            g = rest;
            r.num = n;
        }
        TRY(poly_mul(al, x, y, &d));
        TRY(poly_mul(al, d, g, &r.den));
        poly_free(al, d);
    }
    poly_free(al, g);
    poly_free(al, x);
    poly_free(al, y);
    *out = r;
    return settle(al, out);
}

enum err_code ratfun_add(struct algebra *al, struct ratfun a, struct ratfun b, struct ratfun *out)
{
    if (a.den && b.den) return add_fractions(al, a, b, out);
    struct ratfun r = {0};
    TRY(cross(al, a, b, a.den, b.den, &r.num));
    const struct poly *den = a.den ? a.den : b.den;
    if (den) TRY(poly_copy(al, den, &r.den));
    *out = r;
    return settle(al, out);
}

/* a product of polynomials, either NULL for 1; NULL when both are */
static enum err_code product(struct algebra *al, const struct poly *a, const struct poly *b, struct poly **out)
{
    *out = NULL;
    if (a && b) return poly_mul(al, a, b, out);
    return a || b ? poly_copy(al, a ? a : b, out) : ERR_OK;
}

enum err_code ratfun_mul(struct algebra *al, struct ratfun a, struct ratfun b, struct ratfun *out)
{
    struct poly *g, *an = NULL, *bd = NULL, *bn = NULL, *ad = NULL;
    struct ratfun r = {0};
    *out = r;
    if (poly_is_zero(a.num) || poly_is_zero(b.num)) return poly_int(al, 0, &out->num);
    if (b.den) {
        TRY(poly_gcd(al, a.num, b.den, &g, &an, &bd));
        poly_free(al, g);
    }
    if (a.den) {
        TRY(poly_gcd(al, b.num, a.den, &g, &bn, &ad));
        poly_free(al, g);
    }
    TRY(poly_mul(al, an ? an : a.num, bn ? bn : b.num, &r.num));
    TRY(product(al, ad ? ad : a.den, bd ? bd : b.den, &r.den));
    poly_free(al, an);
    poly_free(al, bd);
    poly_free(al, bn);
    poly_free(al, ad);
    *out = r;
    return settle(al, out);
}

enum err_code ratfun_inverse(struct algebra *al, struct ratfun a, struct ratfun *out)
{
    struct ratfun r = {0};
    if (a.den)
        TRY(poly_copy(al, a.den, &r.num));
    else
        TRY(poly_int(al, 1, &r.num));
    TRY(poly_copy(al, a.num, &r.den));
    *out = r;
    return settle(al, out);
}

enum err_code ratfun_pow(struct algebra *al, struct ratfun a, int64_t n, struct ratfun *out)
{
    struct ratfun r = {0};
    const uint64_t k = rat_magnitude(n);
    TRY(poly_pow(al, a.num, k, n < 0 ? &r.den : &r.num));
    if (a.den)
        TRY(poly_pow(al, a.den, k, n < 0 ? &r.num : &r.den));
    else if (n < 0)
        TRY(poly_int(al, 1, &r.num));
    *out = r;
    return settle(al, out);
}

bool ratfun_equal(const struct algebra *al, struct ratfun a, struct ratfun b)
{
    if (!a.den != !b.den) return false;
    return al->f.equal(a.num->p, b.num->p, al->ring) && (!a.den || al->f.equal(a.den->p, b.den->p, al->ring));
}

bool ratfun_constant(struct algebra *al, struct ratfun a, fmpz_t num, fmpz_t den)
{
    if (!al->f.is_fmpz(a.num->p, al->ring) || (a.den && !al->f.is_fmpz(a.den->p, al->ring))) return false;
    if (poly_is_zero(a.num)) {
        flint_z_clear(&al->f, num);
    } else {
        al->f.z_set(num, &a.num->p->coeffs[0]);
    }
    if (a.den) {
        al->f.z_set(den, &a.den->p->coeffs[0]);
    } else {
        flint_z_clear(&al->f, den);
        *den = 1;
    }
    return true;
}
