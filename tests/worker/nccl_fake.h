/* nccl_fake -- what libnccl_fake.so is told, and what it tells; found in it as the symbol nccl_fake. */
#ifndef RIDGE_TESTS_WORKER_NCCL_FAKE_H
#define RIDGE_TESTS_WORKER_NCCL_FAKE_H

#include <stdbool.h>
#include <stddef.h>

struct nccl_fake {
    /* told */
    const char *fails; /* the function that returns 3; NULL none */
    bool forgets;      /* the last card's part of a sum */
    bool swaps;        /* parts of a gather */
    /* tells */
    int made, destroyed;           /* communicators */
    int groups, reduced, gathered; /* group calls that ended; what they did for each card */
    bool confused;                 /* called with what a library would refuse, or hang at */
    void *stream[16];              /* of each card, as last given */
};

#endif
