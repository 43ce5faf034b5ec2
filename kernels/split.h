/* split -- the independent parts of one call of a kernel, for threads that run it together.
 *
 * A part is a call of the same code: of fewer elements, chains or pairs of a sequence with a head, or, where a result
 * has strides that a smaller call has not (columns of weights), the same call with a number of its own, which the code
 * heeds (kern_call.part). What the parts write does not overlap. */
#ifndef RIDGE_KERNELS_SPLIT_H
#define RIDGE_KERNELS_SPLIT_H

#include "kernels/kernel.h"

/* Part `i` of a call. */
struct kern_part {
    struct kern_shape shape;
    struct kern_call call;
    bool idle; /* there is nothing left for it */
};

struct kern_split {
    const struct kern *kernel;
    unsigned shared; /* bit b: scratch b of the kernel, which the parts have together; of others each its own */
    /* Bytes that `n` parts need besides, undefined before; NULL: none. */
    size_t (*room)(const struct kern_shape *s, unsigned n);
    /* Make what the parts read of it, once and untimed; NULL: nothing. */
    void (*prepare)(const struct kern_call *c, void *room);
    /* Part i of n of a call: out->call is a copy of it, whose shape is out->shape, a copy likewise. */
    void (*part)(unsigned i, unsigned n, void *room, struct kern_part *out);
    /* After all parts, by one thread: from what they left in the room into the results of c; NULL: nothing. */
    void (*finish)(const struct kern_call *c, const void *room, unsigned n);
};

/* kern_split_find -- how a kernel is split; NULL: it is not. */
const struct kern_split *kern_split_find(const struct kern *k);

/* kern_split_from -- the first of `all` pieces that part i of n has; part n would begin at `all`. */
static inline size_t kern_split_from(size_t all, unsigned i, unsigned n) { return all / n * i + all % n * i / n; }

#endif
