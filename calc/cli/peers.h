/* peers -- how other calculators count, as settings of the switches that are here; private to the commands. */
#ifndef RIDGE_CLI_PEERS_H
#define RIDGE_CLI_PEERS_H

#include <stddef.h>

/* A tool, at the version that was read. NULL: the default. What is not a switch stays as it is here. */
struct peer {
    const char *name, *fidelity, *causal, *embedding, *lm_head, *routing;
    const char *meaning; /* one sentence: what is set, and what it does otherwise all the same */
};

/* peers_list -- all of them. peers_find -- by name; NULL none. */
const struct peer *peers_list(size_t *n);
const struct peer *peers_find(const char *name);

#endif
