/* sym_mpq -- an expression at a point of the rational numbers, exactly: equal expressions have equal values, unequal
 * ones differ almost everywhere. Knows nothing of FLINT or of the normaliser. */
#ifndef RIDGE_TESTS_SYM_MPQ_H
#define RIDGE_TESTS_SYM_MPQ_H

#include <gmp.h>
#include <stdbool.h>
#include <stdlib.h>

#include "calc/sym/node.h"

/* a^n; false for 0 to a power below 0, and beyond what is sensible in a test */
static inline bool mpq_power(mpq_t out, const mpq_t a, const mpq_t n)
{
    const long k = mpz_get_si(mpq_numref(n));
    if (mpz_cmp_ui(mpq_denref(n), 1) != 0 || mpz_cmpabs_ui(mpq_numref(n), 4096) > 0) return false;
    if (k < 0 && mpq_sgn(a) == 0) return false;
    mpz_pow_ui(mpq_numref(out), mpq_numref(a), (unsigned long)labs(k)); /* coprime still */
    mpz_pow_ui(mpq_denref(out), mpq_denref(a), (unsigned long)labs(k));
    if (k < 0) mpq_inv(out, out);
    return true;
}

/* e from its operands' values; false where it has no rational value */
static inline bool mpq_node(mpq_t out, const struct sym *e, const mpq_t a, const mpq_t b)
{
    switch (sym_op(e)) {
    case SYM_CONST:
        if (e->opaque) {
            if (e->value - e->value != 0.0) return false; /* NAN, infinite */
            mpq_set_d(out, e->value);
            return true;
        }
        mpq_set_si(out, e->num, (unsigned long)e->den);
        return true;
    case SYM_LOG:
    case SYM_EXP: return false; /* no rational value */
    case SYM_VAR: return false; /* bound before */
    case SYM_ADD: mpq_add(out, a, b); return true;
    case SYM_MUL: mpq_mul(out, a, b); return true;
    case SYM_DIV:
        if (mpq_sgn(b) == 0) return false;
        mpq_div(out, a, b);
        return true;
    case SYM_POW: return mpq_power(out, a, b);
    case SYM_MIN: mpq_set(out, mpq_cmp(a, b) < 0 ? a : b); return true;
    case SYM_MAX: mpq_set(out, mpq_cmp(a, b) > 0 ? a : b); return true;
    case SYM_CEIL:
    case SYM_FLOOR:
        (e->op == SYM_CEIL ? mpz_cdiv_q : mpz_fdiv_q)(mpq_numref(out), mpq_numref(a), mpq_denref(a));
        mpz_set_ui(mpq_denref(out), 1);
        return true;
    }
    return false;
}

/* The value of each of n_exprs expressions where var[i] is at[i]; out[] is initialised. false: one has no rational
 * value there (a division by zero, a root, a variable not given), or memory is exhausted. */
static inline bool sym_mpq(size_t n_exprs, const struct sym *const *e, size_t n_vars, const struct sym *const *var,
                           mpq_t *at, mpq_t *out)
{
    struct arena *scratch = arena_open();
    struct sym_order o;
    mpq_t *v = NULL;
    size_t p, n = 0;
    bool ok = scratch && sym_order_make(scratch, n_exprs, e, &o);
    if (ok) v = arena_array(scratch, o.n, sizeof *v);
    ok = ok && v;
    for (; ok && n < o.n; n++) {
        const struct sym *x = o.node[n], *l = sym_left(x), *r = sym_right(x);
        bool given = false;
        mpq_init(v[n]);
        for (size_t i = 0; i < n_vars && x->op == SYM_VAR && !given; i++)
            if ((given = var[i] == x)) mpq_set(v[n], at[i]);
        ok = given || mpq_node(v[n], x, v[l ? o.pos[l->index] - 1 : n], v[r ? o.pos[r->index] - 1 : n]);
    }
    for (size_t i = 0; ok && i < n_exprs; i++)
        if ((ok = sym_order_find(&o, e[i], &p))) mpq_set(out[i], v[p]);
    for (size_t i = 0; i < n; i++) mpq_clear(v[i]);
    arena_close(scratch);
    return ok;
}

#endif
