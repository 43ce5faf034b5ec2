/* gradient -- value and all partial derivatives of an expression at one point, in double precision. */
#ifndef RIDGE_SYM_GRADIENT_H
#define RIDGE_SYM_GRADIENT_H

#include "calc/sym/sym.h"

struct sym_at {
    const struct sym *var;
    double value;
};

/* sym_gradient -- *value is e at the point, as a tape gives it; gradient[i] is the partial derivative of e by
 * point[i].var, by one reverse sweep: adjoint(x) = sum over the users y of x of adjoint(y) * dy/dx. It is 0 for a
 * variable that is not in e; of two entries for one variable the first counts, and the other gets 0. Derivatives: of
 * min and max those of the operand that wins at the point; of ceil and floor 0; d x^y = y*x^(y-1) dx + x^y*log(x) dy.
 * *kink is true when the operands of a min or max that counts are equal to 1e-12 of the larger one: then the derivative
 * is that of either, and the other's may differ. value, gradient and kink may be NULL.
 * scratch holds the working memory, some 40 bytes for each node of e and 4 for each expression older than e in its
 * context; NULL: the call's own.
 * Errors: ERR_RANGE a variable of e is not among the point's (named), the value or a derivative (named) is not finite;
 * ERR_NOMEM. Cost: linear in the distinct nodes of e and in n, some tens of ns each.
 * Source: Griewank and Walther, Evaluating Derivatives (2008), chapter 3. */
enum err_code sym_gradient(struct arena *scratch, const struct sym *e, size_t n, const struct sym_at *point,
                           double *value, double *gradient, bool *kink, struct err *err);

/* sym_elasticity -- the same with d ln|e| / d ln|x| = x/e * de/dx instead: per cent of e for one per cent of x. Of a
 * product of powers they are the exponents; those of an e that is homogeneous of degree d add up to d.
 * Errors besides: ERR_RANGE e is 0 at the point. */
enum err_code sym_elasticity(struct arena *scratch, const struct sym *e, size_t n, const struct sym_at *point,
                             double *value, double *elasticity, bool *kink, struct err *err);

#endif
