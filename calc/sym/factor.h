/* factor -- polynomials taken apart, as far as that is quick. Private to this room. */
#ifndef RIDGE_SYM_FACTOR_H
#define RIDGE_SYM_FACTOR_H

#include "calc/sym/rules.h"

enum { FACTORS_MAX = 320 }; /* every generator, and some polynomials */

struct factor {
    struct poly *p; /* leading coefficient positive */
    int64_t exponent;
    int64_t gen; /* p is this generator; -1: no generator */
    int sign;    /* where all symbols are positive: 1, -1, or 2 unknown */
};

/* number (in z[1], positive) times factors, minus: negated */
struct factored {
    bool minus;
    size_t n;
    struct factor at[FACTORS_MAX];
};

/* factor_soon -- whether FLINT factors p in an instant: at most 60 terms of degree 12 in 6 generators. */
bool factor_soon(struct algebra *al, const struct poly *p);

/* factor_poly -- p, not zero: its number, the generators that divide every term, and what is left, in irreducible
 * factors where factor_soon, else in one. sign: of the generators. Uses z[0]. */
enum err_code factor_poly(struct algebra *al, const struct poly *p, const int8_t *sign, struct factored *out);

#endif
