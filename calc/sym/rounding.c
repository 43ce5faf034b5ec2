/* What ceil and floor are of: numbers, and whole parts. */
#include "calc/sym/rules.h"

enum err_code rules_round_number(const struct rules *r, const struct sym *e, bool up, const struct sym **out)
{
    struct algebra al;
    struct ratfun v;
    TRY(algebra_open(&al, r->c, 1, &e, r->err));
    const enum err_code code = algebra_value(&al, e, &v);
    if (code == ERR_OK && ratfun_constant(&al, v, al.z[1], al.z[2])) {
        if (up)
            al.f.z_cdiv_q(al.z[1], al.z[1], al.z[2]);
        else
            al.f.z_fdiv_q(al.z[1], al.z[1], al.z[2]);
        *out = algebra_write_number(&al, al.z[1]);
    }
    algebra_close(&al);
    return code;
}

/* What of x = num/number is whole whatever the symbols are: its constant term, and terms of ceil and floor with a whole
 * coefficient. prove: the constant's rest is between 0 and 1; else its sign stays, so (S - 1)/16 does. */
static enum err_code whole_part(const struct rules *r, struct algebra *al, const struct sym *x, const struct sym **out)
{
    struct ratfun v;
    ulong exp[ALGEBRA_GENERATORS] = {0}, none[ALGEBRA_GENERATORS] = {0};
    *out = al->c->zero;
    TRY(algebra_value(al, x, &v));
    if (v.den && !al->f.is_fmpz(v.den->p, al->ring)) return ERR_OK;
    struct poly *whole = poly_new(al);
    if (!whole) return err_nomem(al->err);
    flint_z_clear(&al->f, al->z[2]);
    *al->z[2] = 1;
    if (v.den) al->f.z_set(al->z[2], &v.den->p->coeffs[0]);
    for (slong i = 0; i < v.num->p->length; i++) {
        const fmpz *k = &v.num->p->coeffs[i];
        bool takes = true, constant = true;
        al->f.term_exp(exp, v.num->p, i, al->ring);
        for (size_t j = 0; j < al->n_gen; j++) {
            takes = takes && (exp[j] == 0 || al->gen[j]->whole);
            constant = constant && exp[j] == 0;
        }
        if (!takes) continue;
        if (al->f.z_sgn(k) < 0 && !r->prove)
            al->f.z_cdiv_q(al->z[1], k, al->z[2]);
        else
            al->f.z_fdiv_q(al->z[1], k, al->z[2]);
        al->f.z_mul(al->z[3], al->z[1], al->z[2]);
        if (!constant && !al->f.z_equal(al->z[3], k)) continue;
        if (al->f.z_sgn(al->z[1])) al->f.push_term(whole->p, al->z[1], constant ? none : exp, al->ring);
    }
    TRY(poly_sealed(al, whole));
    *out = poly_write(al, whole);
    return sym_check(al->c, al->err);
}

enum err_code rules_whole_part(const struct rules *r, const struct sym *x, const struct sym **whole,
                               const struct sym **rest)
{
    struct algebra al;
    *rest = x;
    TRY(algebra_open(&al, r->c, 1, &x, r->err));
    const enum err_code code = whole_part(r, &al, x, whole);
    algebra_close(&al);
    TRY(code);
    return sym_is_int(*whole, 0) ? ERR_OK : rules_expand(r, sym_sub(r->c, x, *whole), rest);
}
