/* interval -- bounds on expressions at a point, by doubles rounded outwards: where the bounds of two do not overlap,
 * the two differ, whatever was lost to rounding. Private to this room. */
#ifndef RIDGE_SYM_INTERVAL_H
#define RIDGE_SYM_INTERVAL_H

#include "calc/sym/node.h"

/* The true value is in lo..hi. An infinite bound: beyond what a double holds. NAN: no value, or none that can be
 * bounded. */
struct interval {
    double lo, hi;
};

static inline bool interval_defined(struct interval x) { return x.lo <= x.hi; }
static inline bool interval_apart(struct interval x, struct interval y) { return x.hi < y.lo || y.hi < x.lo; }

/* interval_rational -- num/den, den > 0 */
struct interval interval_rational(int64_t num, int64_t den);

/* interval_eval -- value[position] of every node of o; that of variables is given. Exact results of sums, products,
 * quotients and square roots stay points, so ceil and floor jump where they should. pow, log and exp of the C library
 * are taken to be right within 4 units in the last place. */
void interval_eval(const struct sym_order *o, struct interval *value);

#endif
