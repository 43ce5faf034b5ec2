/* find -- where two expressions in one variable meet, by numbers: for equations that sym_solve has no closed form for
 * (degree 3 and more, min, max, ceil, powers). */
#ifndef RIDGE_SYM_FIND_H
#define RIDGE_SYM_FIND_H

#include "calc/sym/sym.h"

enum { FIND_ROOTS_MAX = 16 };

/* One place where lhs - rhs passes or touches zero. The true place lies in [low, high]: one and the same number, or
 * neighbouring doubles, except for a stretch. */
struct sym_root {
    double value;
    double low, high;
    int8_t below, above; /* sign of lhs - rhs to the left and to the right; 0: undefined there, or outside the range */
    bool jump;           /* the sides pass each other in a step and are equal nowhere near */
    bool touch;          /* the same sign on both sides */
    bool flat;           /* the sides are equal all over low..high; value is low */
    bool open_low, open_high; /* of a stretch: its end is not in it, the sides make a step there: 48 < x <= 64 */
    bool from_lo, to_hi;      /* of a stretch: it begins, ends with the range, and may go on beyond */
};

struct sym_found {
    size_t n;
    struct sym_root root[FIND_ROOTS_MAX]; /* ascending */
    bool more;                            /* the search ended at the last of them */
    bool always;                          /* equal, but for rounding, all over the range; n is 0 */
    int sign;            /* of lhs - rhs all over the range; 0: not the same everywhere, or defined nowhere */
    double defined_frac; /* of the grid, the share where both sides are numbers */
    /* Where the ratio of the sides is nearest to 1, when n is 0, both sides there, and |lhs - rhs|/max(|lhs|, |rhs|).
     * Where nowhere both have one sign, or one is 0 throughout: where |lhs - rhs| is least. closest_until: the sides
     * keep these values from closest_at to here (hi: to the end of the range); NAN: at closest_at alone. NAN all when
     * the sides are defined nowhere or there are roots. */
    double closest_at, closest_lhs, closest_rhs, closest_frac, closest_until;
};

/* sym_find -- the values of var in [lo, hi], 0 < lo < hi, at which lhs = rhs: changes of sign on a logarithmic grid of
 * 512 points a decade, each brought to neighbouring doubles (Brent's method, then halving); minima of |lhs - rhs|
 * between them, which are a root when less than 1e-9 of the larger side is left (of the larger one at the grid points
 * around); and the ends of regions where the sides are no numbers. A pole is no root and is dropped. Numbers within 16
 * units in the last place of the largest term count as equal at grid points, so that an identity is not full of roots.
 * Where the difference only dies away towards an end of the range, below rounding, as 1 - x/(x + 1) does, that is no
 * root. Two changes of sign between neighbouring grid points are seen only when a minimum shows between them. A long
 * expression gets a coarser grid. Errors: ERR_RANGE another variable is not bound (the first is named), lo and hi are
 * not such a range, the expression is too long, or it changes sign too often to follow; ERR_NOMEM. GSL's error handler
 * is off during the call and put back: one thread at a time. Cost: milliseconds for the expressions of a model over
 * twelve decades; a second at most. */
enum err_code sym_find(struct sym_ctx *c, const struct sym *lhs, const struct sym *rhs, const struct sym *var,
                       double lo, double hi, struct sym_found *out, struct err *err);

#endif
