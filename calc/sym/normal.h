/* normal -- exact algebra on expressions: canonical forms, equality decided and not sampled, derivatives, limits,
 * roots, signs.
 *
 * An expression is a rational function over the integers in its generators: variables, and atoms, which are min, max,
 * ceil, floor, log, exp and powers that are no whole constant power. The operands of an atom are brought to canonical
 * form first, so equal atoms are one generator. Known of atoms: min(a,b) + max(a,b) = a + b; min and max are
 * associative, and decided where the sign of a - b is; ceil and floor of numbers; g = b^(p/q) obeys g^q = b^p, with
 * factors that are perfect powers taken out; log(a*b) = log(a) + log(b) of what is positive, log(a^n) = n*log(a),
 * log(exp(a)) = a, with numbers taken into primes (below 2^63, after those below 1000) and small polynomials into
 * irreducible ones; exp(a + b) = exp(a)*exp(b) term by term of an exponent's numerator (up to 64 terms), exp(n*a) =
 * exp(a)^n for |n| and its denominator up to 64, exp(a*log(b)) = b^a; max(a, min(a,b)) = a; whole numbers out of ceil
 * and floor; of roots, factors that are positive and perfect powers, in polynomials of up to 60 terms. sym_equal and
 * sym_compare know more: roots and powers of products, quotients and sums, so sqrt(a*b) = sqrt(a)*sqrt(b), a^(b + 1) =
 * a*a^b, 4^a = (2^a)^2; common factors and terms out of min and max, min(a,b)*max(a,b) = a*b, floor(a) = -ceil(-a).
 * Nothing else, so exp(x/(x + y))*exp(y/(x + y)) is not known to be exp(1), nor max(min(x, y), min(x, z)) to be
 * min(x, max(y, z)). Variables stand for positive numbers. Logarithms and powers that are not whole are those of
 * positive numbers, and the log of what never is one is refused.
 *
 * Everything here is exact, or refused with ERR_RANGE and a sentence: where expanding would take more than 200,000
 * terms, an exponent above 1000, a coefficient above 100,000 bits, more than 256 generators, more than 64 operands of
 * one min or max; where finding a common factor or expanding would take too long (the work is weighed beforehand: about
 * a second, once for each atom); and where the expression divides by zero. Errors of all: ERR_RANGE, ERR_NOMEM, ERR_IO
 * when FLINT is not on this system; it is loaded by the first call, in some milliseconds. No state is kept.
 * Cost: tens of microseconds for the expressions of a lecture, a few milliseconds for 60 terms of 12 variables. */
#ifndef RIDGE_SYM_NORMAL_H
#define RIDGE_SYM_NORMAL_H

#include "calc/sym/sym.h"

/* sym_normal -- the canonical form: num/den, both expanded, without common factor, the leading coefficient of den
 * positive. Two expressions have one canonical form (one pointer) when they are equal as rational functions of their
 * generators and of at most one square root. What only sym_equal proves (above) is not brought to one form: those
 * that show it are long, and lose digits or overflow as doubles. Where a minimum's complement is shorter the form has
 * max(a,b) for a + b - min(a,b). */
enum err_code sym_normal(struct sym_ctx *c, const struct sym *e, const struct sym **out, struct err *err);

/* sym_fraction -- numerator and denominator of the canonical form; the denominator of a polynomial is 1. */
enum err_code sym_fraction(struct sym_ctx *c, const struct sym *e, const struct sym **num, const struct sym **den,
                           struct err *err);

/* sym_equal -- whether a and b are equal as rational functions of their generators. true is a proof; false means that
 * they differ somewhere, unless only a relation between atoms that is not known (above) makes them equal. */
enum err_code sym_equal(struct sym_ctx *c, const struct sym *a, const struct sym *b, bool *equal, struct err *err);

/* sym_normal_given, sym_equal_given -- the same when low <= high is known of some pairs, such as W <= S: decides min
 * and max where high = low + (something not negative) makes the sign plain. high: best a variable. */
struct sym_known {
    const struct sym *low, *high;
};
enum err_code sym_normal_given(struct sym_ctx *c, const struct sym *e, size_t n, const struct sym_known *known,
                               const struct sym **out, struct err *err);
enum err_code sym_equal_given(struct sym_ctx *c, const struct sym *a, const struct sym *b, size_t n,
                              const struct sym_known *known, bool *equal, struct err *err);

/* sym_compare -- three answers instead of sym_equal's two. EQUAL is proved by algebra. DIFFER is proved by a point,
 * always the same one: the first of some hundreds of points of small positive whole numbers, then of fractions, then of
 * numbers from 2^-10 to 2^40, where bounds on the two values, rounded outwards, do not overlap; failing that, where
 * exact evaluation shows them different. UNKNOWN: equal, as far as can be told, at every point tried where both have a
 * value, but not proved so: only a relation between atoms that is not known (above) can make them equal. point may be
 * NULL and is set when they differ: value[0] and value[1] are a and b there, exact constants as a rule, closed
 * expressions or opaque doubles where that takes too long (sym_constant gives the double of each). All in the context's
 * arena. Errors: those of sym_equal when no point tells either, but ERR_RANGE for what is too large or takes too long
 * is UNKNOWN; ERR_RANGE when there is no point where both have a value. Cost: sym_equal's; where it proves nothing,
 * some milliseconds more for a lecture's expressions, about a second at most. */
struct sym_point {
    size_t n;
    struct sym_binding *at; /* the variables of both, by name */
    const struct sym *value[2];
};
enum sym_verdict { SYM_VERDICT_EQUAL, SYM_VERDICT_DIFFER, SYM_VERDICT_UNKNOWN };
enum err_code sym_compare(struct sym_ctx *c, const struct sym *a, const struct sym *b, enum sym_verdict *verdict,
                          struct sym_point *point, struct err *err);

/* sym_counterexample -- such a point alone; nothing is proved first. Errors besides: ERR_NO none found. */
enum err_code sym_counterexample(struct sym_ctx *c, const struct sym *a, const struct sym *b, struct sym_point *out,
                                 struct err *err);

/* sym_diff -- d e / d var, in canonical form. Errors besides: ERR_RANGE var is inside a min, max, ceil or floor
 * (named). */
enum err_code sym_diff(struct sym_ctx *c, const struct sym *e, const struct sym *var, const struct sym **out,
                       struct err *err);

/* sym_limit -- the leading behaviour of e as n variables grow together, each c_i*L with L to infinity. *order is the
 * power of L: 0, and *out is the limit; above 0, and *out is the leading term of what grows without bound; below 0, and
 * *out is 0. Where the group's variables remain in a limit, their ratios count: D/(D + F). A min or max is resolved
 * first when one side wins in the end. Example: B*D*F/(B*D + B*F + D*F) with D, F growing is B. Errors besides:
 * ERR_RANGE a variable of the group is inside an atom that stays (named). */
enum err_code sym_limit(struct sym_ctx *c, const struct sym *e, size_t n, const struct sym *const *group,
                        const struct sym **out, int64_t *order, struct err *err);

/* sym_solve -- all values of var with lhs = rhs, in closed form, as long as the equation's numerator has degree 2 at
 * most: n roots in root[0..n-1], canonical, the one with + before the square root first. var is not taken to be
 * positive here, nor the radicand checked. Errors besides: ERR_RANGE a higher degree (said), var inside an atom
 * (named). */
enum sym_solved {
    SYM_SOLVED_NEVER,  /* no value of var will do */
    SYM_SOLVED_ALWAYS, /* every value will: an identity */
    SYM_SOLVED_ROOTS,
};
struct sym_solution {
    enum sym_solved kind;
    size_t n;
    const struct sym *root[2];
};
enum err_code sym_solve(struct sym_ctx *c, const struct sym *lhs, const struct sym *rhs, const struct sym *var,
                        struct sym_solution *out, struct err *err);

/* sym_sign -- of e where all variables are positive: when the coefficients of numerator and denominator agree in sign.
 * UNKNOWN says nothing: the sign may vary, or be hard to see. */
enum sym_sign { SYM_SIGN_ZERO, SYM_SIGN_PLUS, SYM_SIGN_MINUS, SYM_SIGN_UNKNOWN };
enum err_code sym_sign(struct sym_ctx *c, const struct sym *e, enum sym_sign *out, struct err *err);

/* sym_monotone -- the sign of d e / d var: PLUS, e grows with var. Errors: as sym_diff. */
enum err_code sym_monotone(struct sym_ctx *c, const struct sym *e, const struct sym *var, enum sym_sign *out,
                           struct err *err);

#endif
