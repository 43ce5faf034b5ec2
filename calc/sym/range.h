/* range -- sums over a range of whole numbers, in closed form. */
#ifndef RIDGE_SYM_RANGE_H
#define RIDGE_SYM_RANGE_H

#include "calc/sym/sym.h"

enum { RANGE_DEGREE_MAX = 30, RANGE_TERMS_MAX = 10000, RANGE_FEW = 64, RANGE_SPLITS_MAX = 8, RANGE_WORK = 500000 };

/* sym_sum_range -- the sum of body for var = low, low + 1, ..., high. var is a SYM_VAR and bound in body only: low and
 * high may hold a variable of that name, which is another. Bounds are whole and high >= low - 1 (there the sum is 0):
 * numbers are checked, of symbols it is taken to be so. Three ways, the first that will do:
 *   - body a polynomial in var of degree <= RANGE_DEGREE_MAX, its coefficients any expressions without var: by
 *     Faulhaber's formula at high and low - 1, with exact rationals,
 *         sum over i = 1..n of i^k = 1/(k+1) * sum over j = 0..k of C(k+1, j) * B_j * n^(k+1-j), B_1 = 1/2;
 *     being a polynomial it holds for negative bounds, too;
 *   - body besides with min(u, v) or max(u, v) where u - v = s*var + t and the sign of s is plain (up to
 *     RANGE_SPLITS_MAX of them): two sums that meet at p = -t/s, clamped to low - 1 .. high. Symbols in -t/s stand for
 *     whole numbers; where it is not whole even so, it is rounded down;
 *   - low and high numbers, at most RANGE_TERMS_MAX terms: one by one, whatever body is; before the second way where
 *     there are at most RANGE_FEW.
 * The result is not in canonical form. FLINT is not needed.
 * Errors: ERR_RANGE a sum of another kind (said), a bound that is no whole number, high < low - 1, more than RANGE_WORK
 * steps; ERR_NOMEM. Cost: a step, some 0.1 to 1 us, is one product or sum of coefficients, or one node of body for one
 * term. Source: Knuth, Johann Faulhaber and sums of powers, Math. Comp. 61 (1993). */
enum err_code sym_sum_range(struct sym_ctx *c, const struct sym *body, const struct sym *var, const struct sym *low,
                            const struct sym *high, const struct sym **out, struct err *err);

/* sym_sum_range_within -- the same with a number of steps of the caller's, which is lowered by those taken, also on
 * failure: one bound for several sums. */
enum err_code sym_sum_range_within(struct sym_ctx *c, const struct sym *body, const struct sym *var,
                                   const struct sym *low, const struct sym *high, uint64_t *steps,
                                   const struct sym **out, struct err *err);

#endif
