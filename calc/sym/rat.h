/* rat -- rationals of int64, overflow-checked. Private to this room. */
#ifndef RIDGE_SYM_RAT_H
#define RIDGE_SYM_RAT_H

#include <stdbool.h>
#include <stdint.h>

struct rat {
    int64_t num, den; /* reduced, den > 0 */
};

static inline uint64_t rat_magnitude(int64_t n) { return n < 0 ? 0 - (uint64_t)n : (uint64_t)n; }

/* Each is false, and leaves *out alone, when the result (or, for rat_add and rat_pow, a step on the way) does not fit.
 */
bool rat_make(int64_t num, int64_t den, struct rat *out); /* num/den reduced; false for den = 0 */
bool rat_mul(struct rat a, struct rat b, struct rat *out);
bool rat_add(struct rat a, struct rat b, struct rat *out);
bool rat_pow(struct rat a, int64_t n, struct rat *out); /* n >= 0; 0^0 = 1 */

#endif
