/* sym -- exact symbolic expressions: build, bind, print, and compile to a tape that evaluates columns of points.
 *
 * Nodes are immutable, hash-consed (equal expressions are one pointer) and live in the context's arena. Constants are
 * rationals of int64; folding that would overflow is left undone, so it costs speed, never exactness. Building applies
 * only cheap identities: x+0, x*1, x*0, x-x, x/x, x^0, x^1, min(x,x), ceil of an integer, log(exp(x)), exp(log(x))
 * where x is plainly positive when every variable is; constants folded, those of nested products too (2*(3*x) is 6*x,
 * x/3 is (1/3)*x); commutative operands in one order; like terms of a sum collected (c1*x + c2*x). Nothing is
 * distributed except a minus sign over a sum inside a sum. A failed allocation makes the context sticky-failed:
 * builders then return a placeholder and sym_check reports it once. */
#ifndef RIDGE_SYM_SYM_H
#define RIDGE_SYM_SYM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"

struct sym_ctx;
struct sym; /* one expression */

/* a - b is kept as a + (-1)*b */
enum sym_op {
    SYM_CONST,
    SYM_VAR,
    SYM_ADD,
    SYM_MUL,
    SYM_DIV,
    SYM_POW,
    SYM_MIN,
    SYM_MAX,
    SYM_CEIL,
    SYM_FLOOR,
    SYM_LOG, /* natural */
    SYM_EXP,
};

struct sym_ctx *sym_open(struct arena *a); /* NULL when memory is exhausted; dies with the arena */
enum err_code sym_check(const struct sym_ctx *c, struct err *e); /* ERR_NOMEM if any builder failed */

const struct sym *sym_int(struct sym_ctx *c, int64_t n);
const struct sym *sym_rat(struct sym_ctx *c, int64_t num, int64_t den); /* den != 0; reduced */
/* sym_num -- the exact rational of x when it fits int64/int64, else an opaque constant */
const struct sym *sym_num(struct sym_ctx *c, double x);
const struct sym *sym_var(struct sym_ctx *c, const char *name);
const struct sym *sym_add(struct sym_ctx *c, const struct sym *a, const struct sym *b);
const struct sym *sym_sub(struct sym_ctx *c, const struct sym *a, const struct sym *b);
const struct sym *sym_mul(struct sym_ctx *c, const struct sym *a, const struct sym *b);
const struct sym *sym_div(struct sym_ctx *c, const struct sym *a, const struct sym *b);
const struct sym *sym_pow(struct sym_ctx *c, const struct sym *a, const struct sym *b);
const struct sym *sym_min(struct sym_ctx *c, const struct sym *a, const struct sym *b);
const struct sym *sym_max(struct sym_ctx *c, const struct sym *a, const struct sym *b);
const struct sym *sym_ceil(struct sym_ctx *c, const struct sym *a);
const struct sym *sym_floor(struct sym_ctx *c, const struct sym *a);
/* sym_log, sym_exp -- of numbers only log(1) and exp(0) are folded; their doubles are libm's. */
const struct sym *sym_log(struct sym_ctx *c, const struct sym *a);
const struct sym *sym_exp(struct sym_ctx *c, const struct sym *a);
/* sym_sum, sym_prod -- n-ary forms: SYM_SUM(c, a, b, ...). sym_sum flattens nested sums (of up to 64 terms each),
 * collects like terms and builds a shallow tree whatever n is. Cost: n log n. Empty: 0 and 1. */
const struct sym *sym_sum(struct sym_ctx *c, size_t n, const struct sym *const *terms);
const struct sym *sym_prod(struct sym_ctx *c, size_t n, const struct sym *const *factors);
#define SYM_SUM(c, ...)                                                                                                \
    sym_sum((c), sizeof((const struct sym *[]){__VA_ARGS__}) / sizeof(const struct sym *),                             \
            (const struct sym *[]){__VA_ARGS__})
#define SYM_PROD(c, ...)                                                                                               \
    sym_prod((c), sizeof((const struct sym *[]){__VA_ARGS__}) / sizeof(const struct sym *),                            \
             (const struct sym *[]){__VA_ARGS__})

enum sym_op sym_op(const struct sym *e);
const char *sym_name(const struct sym *e);             /* of a SYM_VAR, else NULL */
bool sym_constant(const struct sym *e, double *value); /* true when e has no variable; value may be NULL */

/* sym_bind -- e with each variable of the environment replaced by its value (an expression of the same context).
 * The first binding of a variable counts, and values are not bound again. Long sums are flattened and their like terms
 * collected, so binding the dimensions of a model leaves few terms. Memoised per call over the shared graph: cost is
 * linear in distinct nodes, not in the tree. */
struct sym_binding {
    const struct sym *var, *value;
};
const struct sym *sym_bind(struct sym_ctx *c, const struct sym *e, const struct sym_binding *env, size_t n);
/* sym_bind_all -- the same for several expressions at once, sharing the memo. out may alias in. */
void sym_bind_all(struct sym_ctx *c, size_t n_exprs, const struct sym *const *in, const struct sym **out,
                  const struct sym_binding *env, size_t n);

/* sym_print -- plain text, as a person writes it: "6*B*T*D*F", "(S + T)/2", "min(S, W)". Returns the length that the
 * whole text needs (as snprintf does; 0 when memory is exhausted); at most cap-1 characters and a NUL are stored. Cost:
 * linear in distinct nodes plus the characters stored, even where sharing makes the whole text astronomically long. */
size_t sym_print(const struct sym *e, char *buf, size_t cap);

/* A tape evaluates n_out expressions of n_in variables over a column of points: no allocation, no dependence on the
 * context after compilation. Arithmetic is IEEE double, each operation rounded on its own, in the order of the
 * expression as kept: sums and products from the left in sorted order, sums of over 16 terms in blocks of 16 under a
 * balanced tree. So integers are exact to 2^53. Three rules of its own: a factor p/q with q no power of two gives
 * (x*p)/q, so that a whole result is whole (ceil(x/49) is safe); x^n with whole n in 2..16 is products by squaring, any
 * other power is libm's pow, as log and exp are libm's; and min and max are NAN when either operand is. A constant
 * without a double (int64 beyond 2^53) is its nearest double. */
struct sym_tape;

/* sym_tape_compile -- common subexpressions are evaluated once; registers are reused. Errors: ERR_RANGE an expression
 * has a variable that is not among inputs (named), ERR_NOMEM. */
enum err_code sym_tape_compile(struct arena *a, size_t n_out, const struct sym *const *exprs, size_t n_in,
                               const struct sym *const *inputs, struct sym_tape **out, struct err *e);

/* sym_tape_eval -- points 0..n-1; in[i] and out[j] are columns of n doubles (out[j] may be NULL: not wanted). Works in
 * chunks that stay in the first-level cache, vectorised, with a scratch block that belongs to the tape (one thread a
 * tape). An output column must not overlap an input or another output; in[i] may be NULL when no expression uses that
 * variable. */
void sym_tape_eval(struct sym_tape *t, size_t n, const double *const *in, double *const *out);

size_t sym_tape_length(const struct sym_tape *t); /* instructions: what a point costs */

#endif
