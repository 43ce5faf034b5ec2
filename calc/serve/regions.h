/* regions -- contiguous pieces of one memory by buddies: how caches were reserved before paging.
 *
 * A piece is the next power of two of what is wanted and stands at a multiple of its size, at the first such place that
 * is free. Source: the PagedAttention paper, arXiv 2309.06180, section 6.1, takes Orca's allocator to be one of
 * buddies.
 */
#ifndef RIDGE_SERVE_REGIONS_H
#define RIDGE_SERVE_REGIONS_H

#include <stdbool.h>
#include <stdint.h>

struct region {
    int64_t at, size; /* size 0: none */
};

struct regions {
    int64_t size, used;
    struct region *in_use; /* by place */
    int64_t n, room;
};

/* regions_size -- of the piece for so many. regions_take -- one. false: no place is free (where used + its size <=
 * size, that is external fragmentation), or memory is exhausted. Cost: O(regions). regions_give -- back. regions_close
 * -- frees the list. */
int64_t regions_size(int64_t want);
bool regions_take(struct regions *r, int64_t want, struct region *out);
void regions_give(struct regions *r, struct region *x);
void regions_close(struct regions *r);

#endif
