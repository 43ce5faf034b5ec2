/* probe_turns -- which result of a plan is measured next within a budget: all shapes cold, then hot, then noisy ones
 * once more. Private to the command. */
#ifndef RIDGE_CLI_PROBE_TURNS_H
#define RIDGE_CLI_PROBE_TURNS_H

#include "calc/base/err.h"
#include "probe/plan.h"

enum { TURNS_COLD, TURNS_HOT, TURNS_AGAIN, TURNS_N };

/* A result to come. */
struct turn {
    bool due[TURNS_N]; /* again: of the state that follows */
    bool begun;        /* it has a result, or had its turn */
    bool cold_again;   /* the noisy result is the cold one */
    double bytes;      /* that a call reads and writes, NAN: not known */
};

/* What results of one state took beside their sampling (making operands, their check, ceilings), for each byte of a
 * call and of the last cache, multiples of which are filled with copies. */
struct turns_seen {
    size_t n;
    double *s_per_byte; /* [2 * plan.n], of each so far, in order of size */
};

struct turns {
    struct turn *of; /* [n], in the order of the plan */
    size_t n;
    double cache_bytes;
    struct turns_seen seen[2]; /* cold, hot */
};

/* turns_open -- n jobs of which nothing is due, on a device with so large a last cache (0: not known). Errors:
 * ERR_NOMEM.
 */
enum err_code turns_open(struct arena *a, size_t n, double cache_bytes, struct turns *out, struct err *e);

/* turns_learn -- a result took so many seconds beside its sampling. Cost: O(n). */
void turns_learn(struct turns *t, size_t i, bool cold, double aside_s);

/* turns_aside_s -- what that of job i will take: its bytes, and those of the cache, at the median rate of the results
 * so far, which no single disturbed one moves; 0 nothing is known. Cost: O(1). */
double turns_aside_s(const struct turns *t, size_t i, bool cold);

/* turns_due -- results that are due in a pass. */
size_t turns_due(const struct turns *t, int pass);

/* turns_next -- the next job of a pass with left_s of the budget, each sampled for sample_s at least: the first in
 * order that takes no more than twice its part of what is left; where all take more the one that takes least. One that
 * what is left does not hold is none, but where no other is due. t->n: none. Cost: O(n). */
size_t turns_next(const struct turns *t, int pass, double left_s, double sample_s);

/* turns_pick -- the next job of all passes, and which: all cold, then hot, then noisy ones once more, which come before
 * further shapes when less than a quarter of the budget of total_s is left. t->n: none. Cost: O(n). */
size_t turns_pick(const struct turns *t, double left_s, double total_s, double sample_s, int *pass);

#endif
