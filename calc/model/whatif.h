/* whatif -- "what if this model had 8 KV heads, a latent cache, half the layers": changes of a description that is
 * already read, for models that nobody trained. Sizes that follow from the changed ones are derived again by calc/cost,
 * as for any model. What each does to parameters and cache, and from which paper: calc/MODEL.md "What-ifs".
 *
 * A what-if is "NAME" or "NAME=VALUE"; several are stacked, in their order, as "gqa=8,kv=fp8" or "gqa=8+kv=fp8" (a '+'
 * separates only before a letter: "mla=512+64" is one). */
#ifndef RIDGE_MODEL_WHATIF_H
#define RIDGE_MODEL_WHATIF_H

#include "calc/model/model.h"

struct change;

struct whatif {
    const char *name;  /* "gqa" */
    const char *value; /* its grammar, for people: "N"; NULL: it takes none */
    const char *help;  /* one sentence */
    /* What it leaves alone: nothing; all but formats of weights; all but those of cache and activations. */
    enum whatif_extent { WHATIF_LAYERS, WHATIF_WEIGHTS, WHATIF_CACHE } extent;
    enum err_code (*apply)(struct change *c);
    enum err_code (*check)(struct change *c); /* the value alone, without a model */
};

/* whatif_table -- all of them, n rows. */
const struct whatif *whatif_table(size_t *n);

/* whatif_apply -- change m by one what-if: kinds, labels and form of attention, the name ("llama-2-13b gqa=8"), the
 * hash; what is known of a checkpoint's tensors is forgotten when the weights change. One that restates what m has adds
 * a note that says so. m keeps what it had on failure.
 * Errors: ERR_USAGE unknown name (nearest offered), a value that is none, a model that cannot be changed so (the
 * sentence says why); ERR_NOMEM. Cost: O(layers * kinds). */
enum err_code whatif_apply(struct arena *a, struct model *m, const char *text, struct err *e);

/* whatif_apply_all -- a stack of them, first to last. Errors: as whatif_apply; ERR_USAGE an empty one. */
enum err_code whatif_apply_all(struct arena *a, struct model *m, const char *stack, struct err *e);

/* whatif_check -- whether a stack could be one of any model: names and values alone. Errors: ERR_USAGE. */
enum err_code whatif_check(struct arena *a, const char *stack, struct err *e);

/* whatif_given -- the value that a stack gives the what-if of that name, the last of several; NULL none. */
const char *whatif_given(struct arena *a, const char *stack, const char *name);

#endif
