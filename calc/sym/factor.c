#include "calc/sym/factor.h"

/* Beyond these, in a polynomial that is not positive term by term, factoring may take long. */
enum { FACTOR_TERMS = 60, FACTOR_DEGREE = 12, FACTOR_SYMBOLS = 6, FACTOR_BITS = 128 };

bool factor_soon(struct algebra *al, const struct poly *p)
{
    slong degree[ALGEBRA_GENERATORS] = {0};
    int used = 0;
    const slong bits = al->f.max_bits(p->p);
    if (p->p->length > FACTOR_TERMS || bits > FACTOR_BITS || bits < -FACTOR_BITS) return false;
    al->f.degrees_si(degree, p->p, al->ring);
    for (size_t j = 0; j < al->n_gen; j++) {
        if (degree[j] > FACTOR_DEGREE) return false;
        used += degree[j] > 0;
    }
    return used <= FACTOR_SYMBOLS;
}

static enum err_code add(struct algebra *al, struct factored *f, struct poly *p, int64_t exponent, int64_t gen,
                         const int8_t *sign)
{
    if (f->n == FACTORS_MAX) return err_set(al->err, ERR_RANGE, "a polynomial has more than %d factors", FACTORS_MAX);
    if (al->f.z_sgn(&p->p->coeffs[0]) < 0) {
        al->f.neg(p->p, p->p, al->ring);
        f->minus = f->minus != (exponent % 2 != 0);
    }
    f->at[f->n++] = (struct factor){p, exponent, gen, poly_sign(al, p, sign)};
    return ERR_OK;
}

/* the number and the generators that divide every term; what is left */
static enum err_code take_content(struct algebra *al, const struct poly *p, const int8_t *sign, struct factored *f,
                                  struct poly **rest)
{
    ulong exp[ALGEBRA_GENERATORS] = {0};
    struct poly *content = poly_new(al), *left = poly_new(al);
    if (!content || !left) return err_nomem(al->err);
    al->f.term_content(content->p, p->p, al->ring);
    al->f.term_exp(exp, content->p, 0, al->ring);
    for (size_t j = 0; j < al->n_gen; j++) {
        if (exp[j] == 0) continue;
        struct poly *g = poly_new(al);
        if (!g) return err_nomem(al->err);
        al->f.gen(g->p, (slong)j, al->ring);
        TRY(add(al, f, g, (int64_t)exp[j], (int64_t)j, sign));
    }
    if (!al->f.divides(left->p, p->p, content->p, al->ring))
        return err_set(al->err, ERR_RANGE, "a polynomial could not be simplified");
    al->f.z_abs(al->z[1], &content->p->coeffs[0]);
    poly_free(al, content);
    *rest = left;
    return poly_sealed(al, left);
}

static enum err_code add_irreducible(struct algebra *al, struct poly *p, const int8_t *sign, struct factored *f)
{
    fmpz_mpoly_factor_t x = {{.constant = {1}, .constant_den = {1}}};
    if (!al->f.factor(x, p->p, al->ring)) {
        al->f.factor_clear(x, al->ring);
        return add(al, f, p, 1, -1, sign);
    }
    enum err_code code = ERR_OK;
    if (al->f.z_sgn(x->constant) < 0) f->minus = !f->minus;
    for (slong i = 0; i < x->num && code == ERR_OK; i++) {
        struct poly *q = poly_new(al);
        code = q ? ERR_OK : err_nomem(al->err);
        if (!q) break;
        al->f.set(q->p, &x->poly[i], al->ring);
        code = poly_sealed(al, q);
        if (code == ERR_OK) code = add(al, f, q, al->f.z_get_si(&x->exp[i]), -1, sign);
    }
    al->f.factor_clear(x, al->ring);
    return code;
}

enum err_code factor_poly(struct algebra *al, const struct poly *p, const int8_t *sign, struct factored *out)
{
    struct poly *rest;
    out->minus = false;
    out->n = 0;
    TRY(take_content(al, p, sign, out, &rest));
    if (al->f.is_fmpz(rest->p, al->ring)) {
        if (al->f.z_sgn(&rest->p->coeffs[0]) < 0) out->minus = !out->minus;
        return ERR_OK;
    }
    if (factor_soon(al, rest)) return add_irreducible(al, rest, sign, out);
    return add(al, out, rest, 1, -1, sign);
}
