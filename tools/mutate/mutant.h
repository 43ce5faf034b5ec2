/* mutant -- what rewritten sources call: mutant i is on when RIDGE_MUTANT=i was set as the program started. With
 * RIDGE_MUTANT_SEEN=FILE, a file of one byte a mutant, the bytes of those that are reached become 1. */
#ifndef RIDGE_TOOLS_MUTATE_MUTANT_H
#define RIDGE_TOOLS_MUTATE_MUTANT_H

#include "calc/sym/sym.h"

enum { MUTANT_NO_TEST = 98 };

extern int mutant_on;
extern unsigned char *mutant_seen;

static inline int mutant_is(int i)
{
    if (mutant_seen) mutant_seen[i] = 1;
    return mutant_on == i;
}

static inline const struct sym *mutant_divided(int i, struct sym_ctx *c, const struct sym *x)
{
    return mutant_is(i) ? sym_div(c, sym_int(c, 1), x) : x;
}

static inline const struct sym *mutant_subtracted(int i, struct sym_ctx *c, const struct sym *x)
{
    return mutant_is(i) ? sym_mul(c, sym_int(c, -1), x) : x;
}

static inline const struct sym *mutant_more(int i, struct sym_ctx *c, const struct sym *x)
{
    return mutant_is(i) ? sym_add(c, x, sym_int(c, 1)) : x;
}

#endif
