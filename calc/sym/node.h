/* node -- the inside of struct sym, for the files of this room only.
 *
 * Canonical shapes that every builder keeps:
 *   product  K * m: K closed (no variable) and not 1, always the left operand; m = ((f1*f2)*f3)... sorted by index;
 *   sum      terms K*m sorted by the index of m, no m twice, nested to the left; a closed term is the right operand of
 * the root; sums of more than SYM_BLOCK terms are blocks of SYM_BLOCK under a balanced tree; a - b    is a + (-1)*b. */
#ifndef RIDGE_SYM_NODE_H
#define RIDGE_SYM_NODE_H

#include <math.h>

#include "calc/sym/rat.h"
#include "calc/sym/sym.h"

enum { SYM_BLOCK = 16, SYM_POW_MAX = 16 };

struct sym {
    uint32_t index; /* order of creation: operands come before their users; 0 is the placeholder of a failed context */
    uint32_t hash;
    uint32_t n_flat;  /* terms of a sum, factors of a product, as flattening sees them; 1 for all else */
    uint8_t op;       /* enum sym_op */
    uint8_t need;     /* registers that evaluation needs (Sethi-Ullman), saturating */
    bool closed : 1;  /* has no variable; value is valid */
    bool opaque : 1;  /* SYM_CONST that is a double, not num/den */
    bool whole : 1;   /* known to be an integer */
    bool minus : 1;   /* its text begins with a minus sign */
    bool above : 1;   /* plainly positive, where every variable is */
    int32_t exponent; /* the value is value*2^exponent: 0 unless that is beyond the normal doubles */
    double value;     /* NAN unless closed */
    union {
        struct {
            const struct sym *a, *b; /* b is NULL for the functions of one operand */
        };
        struct {
            int64_t num, den; /* reduced, den > 0 */
        };
        const char *name;
    };
};

/* sym_value -- of a closed e, as a double: infinite or 0 where it is beyond them */
static inline double sym_value(const struct sym *e) { return e->exponent ? ldexp(e->value, e->exponent) : e->value; }

static inline bool sym_is_rational(const struct sym *e) { return e->op == SYM_CONST && !e->opaque; }
static inline bool sym_is_int(const struct sym *e, int64_t n)
{
    return sym_is_rational(e) && e->num == n && e->den == 1;
}
static inline const struct sym *sym_left(const struct sym *e)
{
    return e->op == SYM_CONST || e->op == SYM_VAR ? NULL : e->a;
}
static inline const struct sym *sym_right(const struct sym *e)
{
    return e->op == SYM_CONST || e->op == SYM_VAR ? NULL : e->b;
}

static inline struct rat sym_rat_of(const struct sym *e) { return (struct rat){e->num, e->den}; }
static inline size_t sym_n_terms(const struct sym *e) { return e->op == SYM_ADD && !e->closed ? e->n_flat : 1; }
static inline size_t sym_n_factors(const struct sym *e) { return e->op == SYM_MUL ? e->n_flat : 1; }

struct sym_term {
    const struct sym *k, *m; /* k*m, k closed; m NULL: the constant term */
    size_t seq;
};

struct sym_ctx {
    struct arena *arena;
    const struct sym **table; /* open addressing, a power of two, at most half full */
    size_t n_table, n_nodes;
    struct sym *slab;
    size_t n_slab;          /* free nodes left in it */
    struct sym_term *terms; /* of the sum being collected */
    size_t n_terms, cap_terms;
    const struct sym *zero, *one, *minus_one;
    struct sym failed_node;
    const struct flint *flint; /* looked up when exact algebra was first asked for */
    uint64_t *work; /* of exact algebra, left for several calculations together; NULL: each has its own limit only */
    bool failed;
};

/* sym_fail -- makes the context sticky-failed; returns the placeholder. */
const struct sym *sym_fail(struct sym_ctx *c);

/* sym_node, sym_rational -- interned as they stand, no identity applied. */
const struct sym *sym_node(struct sym_ctx *c, enum sym_op op, const struct sym *a, const struct sym *b);
const struct sym *sym_rational(struct sym_ctx *c, struct rat r);

/* sym_rebuild -- e, which has operands, with x and y (NULL where it has one) for them, through its builder. */
const struct sym *sym_rebuild(struct sym_ctx *c, const struct sym *e, const struct sym *x, const struct sym *y);

/* sym_factors -- the factors of a product without its constant, sorted; out holds SYM_BLOCK. Any other e is its own
 * factor. */
size_t sym_factors(const struct sym *e, const struct sym **out);

/* sym_push_operand, sym_collect -- add the terms of e to the list, through nested sums unless e is so long that
 * repeated use would cost its square; make the canonical sum of the list and empty it. */
void sym_push_operand(struct sym_ctx *c, const struct sym *e);
const struct sym *sym_collect(struct sym_ctx *c);

/* sym_scale_of -- how the closed k multiplies x: (x*mul)/div. A fraction with a denominator that is no power of two is
 * not a double; dividing last keeps whole results whole (49*(1/49) is 0.9999999999999999). */
struct sym_scale {
    double mul, div;
};
struct sym_scale sym_scale_of(const struct sym *k);

/* sym_closed_value -- of op on closed a and b (NULL where it has one): the tape's arithmetic, and beyond what doubles
 * hold a mantissa with an exponent of its own, so that 3^700/4^700 has its value. */
double sym_closed_value(enum sym_op op, const struct sym *a, const struct sym *b, int32_t *exponent);

/* sym_min_of, sym_max_of -- NAN if either is: unknown stays unknown. */
static inline double sym_min_of(double x, double y) { return x < y || x != x ? x : y; }
static inline double sym_max_of(double x, double y) { return x > y || x != x ? x : y; }

/* sym_pow_of -- x^y; whole y in 2..SYM_POW_MAX by squaring from the low bit up, otherwise libm. */
double sym_pow_of(double x, double y);

/* sym_order -- the distinct nodes under some roots, operands before users, the operand that needs more registers first.
 */
struct sym_order {
    const struct sym **node;
    uint32_t *pos; /* [index] position + 1, 0 when not reached */
    size_t n, n_index;
};
bool sym_order_make(struct arena *scratch, size_t n, const struct sym *const *roots, struct sym_order *o);
static inline bool sym_order_find(const struct sym_order *o, const struct sym *e, size_t *at)
{
    if (e->index >= o->n_index || !o->pos[e->index]) return false;
    *at = o->pos[e->index] - 1;
    return o->node[*at] == e;
}

#endif
