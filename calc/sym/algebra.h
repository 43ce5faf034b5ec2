/* algebra -- polynomials and rational functions over FLINT, and the way to them from expressions and back. Private to
 * this room.
 *
 * An algebra is one calculation: a ring of integer polynomials in the generators of some expressions, and every
 * polynomial made in it. algebra_close frees them all, so code that fails just returns. FLINT aborts where it runs out
 * of memory and has no time limit: every operation is weighed before it is begun, and refused with ERR_RANGE. */
#ifndef RIDGE_SYM_ALGEBRA_H
#define RIDGE_SYM_ALGEBRA_H

#include "calc/sym/flint.h"
#include "calc/sym/node.h"

enum {
    ALGEBRA_TERMS = 200000,   /* of one polynomial */
    ALGEBRA_EXPONENT = 1000,  /* of one generator */
    ALGEBRA_GENERATORS = 256, /* of one calculation */
    ALGEBRA_BITS = 100000,    /* of one coefficient */
};

struct poly {
    fmpz_mpoly_t p;
    size_t size_bytes; /* as accounted */
    struct poly *next, *previous;
};

/* num/den in lowest terms; the leading coefficient of den is positive; den is NULL for 1. */
struct ratfun {
    struct poly *num, *den;
};

struct algebra {
    struct flint f;
    struct sym_ctx *c;
    struct arena *scratch;
    struct err *err;
    fmpz_mpoly_ctx_t ring;
    struct sym_order order;  /* of all nodes of the expressions */
    const struct sym **gen;  /* variables by name, then atoms in an order that does not depend on the expression */
    struct ratfun *radicand; /* [generator] of a root POW(b, 1/q): b; of a part MAX(b, 0): b; num NULL for others */
    size_t n_gen;
    uint32_t *uses;           /* [position in order] users that have not taken the value yet; 0: not needed */
    struct ratfun *value;     /* [position in order] */
    struct poly *live, *idle; /* lists; idle ones are cleared */
    fmpz_t z[4];              /* scratch numbers: z[0] free for any function, the rest as each function says */
    uint64_t work, live_bytes;
    bool ring_made;
};

/* algebra_open -- the ring of the generators of the expressions, and the value of every node in it. Generators are
 * variables, min, max, ceil, floor, and powers whose exponent is no whole constant; those of a root's base and of a
 * part's operand too. Several roots of one base are powers of one generator: B^(1/2) and B^(1/3) of B^(1/6). Nothing
 * else inside an atom is looked at. On failure there is nothing to close. Errors: ERR_RANGE more than
 * ALGEBRA_GENERATORS, a limit passed, division by zero, a constant that is no number; ERR_IO no FLINT; ERR_NOMEM. */
enum err_code algebra_open(struct algebra *al, struct sym_ctx *c, size_t n, const struct sym *const *exprs,
                           struct err *e);
void algebra_close(struct algebra *al);

/* algebra_value -- a copy of the value of one of the expressions that algebra_open got. */
enum err_code algebra_value(struct algebra *al, const struct sym *e, struct ratfun *out);

/* algebra_reduce -- *r with each root g = b^(1/q) brought to powers below q (g^q = b), each part g = max(b, 0) to
 * powers below 2 (g^2 = b*g), square roots, factors that are roots, and parts out of the denominator, lowest terms
 * again. Canonical up to relations between different roots. */
enum err_code algebra_reduce(struct algebra *al, struct ratfun *r);

/* poly_write, ratfun_write -- as an expression: sum of coefficient times powers of generators. */
const struct sym *poly_write(struct algebra *al, const struct poly *p);
const struct sym *ratfun_write(struct algebra *al, struct ratfun r);
const struct sym *algebra_write_number(struct algebra *al, const fmpz_t z);

/* algebra_root_index -- q when e is POW(b, 1/q), q > 1, else 0. */
int64_t algebra_root_index(const struct sym *e);

/* algebra_is_part -- e is MAX(b, 0) */
static inline bool algebra_is_part(const struct sym *e) { return e->op == SYM_MAX && sym_is_int(e->b, 0); }

/* poly_new -- zero; NULL when memory is exhausted. poly_free may get NULL. poly_sealed accounts p after FLINT wrote it
 * and refuses it when it passed a limit. */
struct poly *poly_new(struct algebra *al);
void poly_free(struct algebra *al, struct poly *p);
enum err_code poly_sealed(struct algebra *al, struct poly *p);
enum err_code poly_copy(struct algebra *al, const struct poly *a, struct poly **out);
enum err_code poly_int(struct algebra *al, int64_t n, struct poly **out);
enum err_code poly_add(struct algebra *al, const struct poly *a, const struct poly *b, struct poly **out);
enum err_code poly_mul(struct algebra *al, const struct poly *a, const struct poly *b, struct poly **out);
enum err_code poly_pow(struct algebra *al, const struct poly *a, uint64_t n, struct poly **out);

/* poly_gcd -- *g with positive leading coefficient, a = *g * *a1, b = *g * *b1; a and b not zero. *g is NULL, and the
 * others too, when it is 1. */
enum err_code poly_gcd(struct algebra *al, const struct poly *a, const struct poly *b, struct poly **g,
                       struct poly **a1, struct poly **b1);

static inline bool poly_is_one(const struct algebra *al, const struct poly *p)
{
    return al->f.equal_ui(p->p, 1, al->ring) != 0;
}
static inline bool poly_is_zero(const struct poly *p) { return p->p->length == 0; }

/* poly_coefficients -- p as a polynomial in one generator: out[k] is the coefficient of its k-th power, k <= degree.
 * out holds degree + 1. */
int64_t poly_degree(struct algebra *al, const struct poly *p, size_t gen);
enum err_code poly_coefficients(struct algebra *al, const struct poly *p, size_t gen, size_t degree, struct poly **out);

/* poly_sign -- of p where every generator is sign[generator] (1, -1, 0 unknown): 1 or -1 when all terms agree, 0 when p
 * is zero, else 2. */
int poly_sign(struct algebra *al, const struct poly *p, const int8_t *sign);

void ratfun_free(struct algebra *al, struct ratfun *r);
enum err_code ratfun_lowest(struct algebra *al, struct ratfun *r); /* takes any num, den; division by zero refused */
enum err_code ratfun_add(struct algebra *al, struct ratfun a, struct ratfun b, struct ratfun *out);
enum err_code ratfun_mul(struct algebra *al, struct ratfun a, struct ratfun b, struct ratfun *out);
enum err_code ratfun_inverse(struct algebra *al, struct ratfun a, struct ratfun *out);
enum err_code ratfun_pow(struct algebra *al, struct ratfun a, int64_t n, struct ratfun *out);
bool ratfun_equal(const struct algebra *al, struct ratfun a, struct ratfun b);

/* ratfun_constant -- true when a is a number; num and den (positive) get it. */
bool ratfun_constant(struct algebra *al, struct ratfun a, fmpz_t num, fmpz_t den);

#endif
