/* steady_members -- who decodes in a batch, by the order in which they entered and by that in which they end.
 *
 * A batch ends one of some hundred members at a time, so the first to end is the top of a heap; who leaves before the
 * end is the last that entered, of a stack. Either leaves its place in the other one, which is told by a count of the
 * places that a request has left, [requests] of the caller's, 0 at first. */
#ifndef RIDGE_SERVE_STEADY_MEMBERS_H
#define RIDGE_SERVE_STEADY_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

struct steady_member {
    int64_t until; /* of the batch's landings the one with which it ends */
    int32_t request, place;
};

struct steady_members {
    struct steady_member *entered, *ending; /* a stack; a heap, the first to end first */
    int64_t n, entered_n, ending_n;         /* n: that are there; places of those that left are in the other two */
};

/* steady_members_open -- for as many as `most`, >= 1; false: no memory, and steady_members_close has still to be
 * called. steady_members_clear -- nobody is there. */
bool steady_members_open(struct steady_members *m, int64_t most);
void steady_members_close(struct steady_members *m);
void steady_members_clear(struct steady_members *m);

/* steady_members_add -- of fewer than `most` that are there. Cost: O(log n), amortised. */
void steady_members_add(struct steady_members *m, const int32_t *places, int64_t request, int64_t until);

/* steady_members_end -- one that ends with this landing or did before, and is no member any more; -1: nobody.
 * steady_members_next -- when the first ends or would have, had it not left; INT64_MAX: nobody.
 * steady_members_last -- the last that entered, which leaves; of n > 0. */
int64_t steady_members_end(struct steady_members *m, int32_t *places, int64_t landed);
int64_t steady_members_next(const struct steady_members *m);
struct steady_member steady_members_last(struct steady_members *m, int32_t *places);

#endif
