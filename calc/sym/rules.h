/* rules -- atoms: their operands brought to canonical form, and those decided that can be. Private to this room. */
#ifndef RIDGE_SYM_RULES_H
#define RIDGE_SYM_RULES_H

#include "calc/sym/algebra.h"
#include "calc/sym/normal.h"

struct rules {
    struct sym_ctx *c;
    const struct sym_known *known; /* low <= high */
    size_t n_known;
    const struct sym *const *group; /* variables that go to infinity together: what holds in the end, holds */
    size_t n_group;
    struct err *err;
    bool prove; /* forms that show more to be equal and are no sight: what sym_equal tries last */
};

/* rules_rewrite -- e with every atom normalised or decided, but itself not expanded. A maximum of two is written as
 * a + b - min(a, b), so that the two are one generator. */
enum err_code rules_rewrite(const struct rules *r, const struct sym *e, const struct sym **out);

/* rules_expand -- the canonical form of what rules_rewrite gave; max still written with min. */
enum err_code rules_expand(const struct rules *r, const struct sym *e, const struct sym **out);

/* rules_shorten -- with max where that has fewer terms: the form that people see. */
enum err_code rules_shorten(const struct rules *r, const struct sym *e, const struct sym **out);

/* rules_normal -- the three in turn */
enum err_code rules_normal(const struct rules *r, const struct sym *e, const struct sym **out);

/* rules_sign -- of an expanded expression under the rules. With known pairs, a group, or prove, PLUS means not negative
 * (in the end), MINUS not positive. */
enum err_code rules_sign(const struct rules *r, const struct sym *e, enum sym_sign *out);

/* rules_root -- base^(p/q) with perfect powers taken out; base expanded. With prove each factor that is positive has a
 * root of its own. */
enum err_code rules_root(const struct rules *r, const struct sym *base, int64_t p, int64_t q, const struct sym **out);

/* rules_whole_part -- of an expanded x, what is whole whatever the symbols are, and the rest, expanded.
 * rules_round_number -- *out = the ceil (up) or floor of an expanded number, however long; left as it is where that is
 * not rational. */
enum err_code rules_whole_part(const struct rules *r, const struct sym *x, const struct sym **whole,
                               const struct sym **rest);
enum err_code rules_round_number(const struct rules *r, const struct sym *e, bool up, const struct sym **out);

/* rules_log, rules_exp -- of an expanded x, as sums and products of atoms: log(2*x^2/y) is log(2) + 2*log(x) - log(y),
 * exp(x + 2*y) is exp(x)*exp(y)^2, exp(y*log(x)) is x^y. log: in logarithms of primes, of variables and other
 * generators that are positive, and of irreducible polynomials; those whose sign is not known stay together in one
 * logarithm. */
enum err_code rules_log(const struct rules *r, const struct sym *x, const struct sym **out);
enum err_code rules_exp(const struct rules *r, const struct sym *x, const struct sym **out);

/* prove_extreme -- with prove, the min or max (op) of n expanded operands. Of two it is written with the part
 * max(d, 0) of their difference d: max(x, y) = y + max(x - y, 0), min(x, y) = x - max(x - y, 0), and
 * max(u*d, 0) = u*max(d, 0) for positive u, max(-d, 0) = max(d, 0) - d; so d is a product of distinct irreducible
 * polynomials of unknown sign. What several have in common, as factor or term, comes out.
 * prove_power -- with prove, base^exponent, both expanded: B^(D + 1) is B*B^D, 4^B is (2^B)^2, (2*B)^D is 2^D*B^D. */
enum err_code prove_extreme(const struct rules *r, enum sym_op op, size_t n, const struct sym *const *x,
                            const struct sym **out);
enum err_code prove_power(const struct rules *r, const struct sym *base, const struct sym *exponent,
                          const struct sym **out);

/* rules_generator_signs -- sign[generator]: 1, -1, or 0 where it is not known; ALGEBRA_GENERATORS places. */
enum err_code rules_generator_signs(struct algebra *al, int8_t *sign);

/* rules_leading -- the terms of p with the highest power of the group's variables; that power. */
enum err_code rules_leading(const struct rules *r, struct algebra *al, const struct poly *p, struct poly **out,
                            int64_t *degree);

/* rules_depends -- whether e has one of n variables in it, at whatever depth. */
enum err_code rules_depends(const struct rules *r, const struct sym *e, size_t n, const struct sym *const *var,
                            bool *yes);

#endif
