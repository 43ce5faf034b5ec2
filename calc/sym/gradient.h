/* gradient -- value and all partial derivatives of an expression at one point, in double precision. */
#ifndef RIDGE_SYM_GRADIENT_H
#define RIDGE_SYM_GRADIENT_H

#include "calc/sym/sym.h"

struct sym_at {
    const struct sym *var;
    double value;
};

/* sym_gradient -- *value is e at the point, gradient[i] its partial derivative by point[i].var (0 for a variable that
 * is not in e; of two entries of one variable the first counts, the other's is 0 too), by one reverse sweep: adjoint(x)
 * = sum over the users y of x of adjoint(y) * dy/dx. Values are a tape's. Derivatives: of min and max that of the
 * operand that wins at the point; of ceil and floor 0; d x^y = y*x^(y-1) dx + x^y*log(x) dy. *kink is true when the
 * operands of a min or max that counts at the point are equal to 1e-12 of the larger one: then the derivative is one
 * side's (that of one of the two operands), and that of the other may differ. value, gradient and kink may be NULL. The
 * working memory, some 40 bytes for each node and 4 for each older expression of e's context, is scratch's, NULL for
 * memory of the call's own.
 * Errors: ERR_RANGE a variable of e is not among the point's (named), value or a derivative is not finite (named),
 * ERR_NOMEM. Cost: linear in the distinct nodes of e and in n, some 10 ns each. */
enum err_code sym_gradient(struct arena *scratch, const struct sym *e, size_t n, const struct sym_at *point,
                           double *value, double *gradient, bool *kink, struct err *err);

/* sym_elasticity -- the same with d ln|e| / d ln|x| = x/e * de/dx instead: per cent of e for one per cent of x. Of a
 * product of powers they are the exponents; those of an e that is homogeneous of degree d add up to d.
 * Errors besides: ERR_RANGE e is 0 at the point. */
enum err_code sym_elasticity(struct arena *scratch, const struct sym *e, size_t n, const struct sym_at *point,
                             double *value, double *elasticity, bool *kink, struct err *err);

#endif
