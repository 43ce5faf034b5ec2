/* meet_reason -- why two sides meet nowhere; private to meet.c. */
#ifndef RIDGE_LEARN_MEET_REASON_H
#define RIDGE_LEARN_MEET_REASON_H

#include "calc/sym/find.h"

/* meet_reason -- what each side does as var grows ("the left side grows with S, but only towards 8; the right is
 * 295.3"), and where neither gains on the other all the way, where they come closest. found: of sym_find in [low, high]
 * without a root; NULL: symbols are left. Sides that have no closed form are said by their numbers. NULL when memory is
 * exhausted. */
const char *meet_reason(struct arena *a, struct sym_ctx *c, const struct sym *left, const struct sym *right,
                        const struct sym *var, const struct sym_found *found, double low, double high);

/* meet_hole -- the reason where the only value that would do is one where a side divides by zero. */
const char *meet_hole(struct arena *a, const struct sym *var, const struct sym *value);

#endif
