/* train -- what training keeps in memory: parameters, gradients, the optimizer's state, and activations for the
 * backward pass. Derivations: MODEL.md "Training". */
#ifndef RIDGE_COST_TRAIN_H
#define RIDGE_COST_TRAIN_H

#include "calc/cost/cost.h"

/* Bytes per parameter. A recipe is a precision and an optimizer. */
struct train_recipe {
    const char *name, *meaning, *source;
    double param_bytes, grad_bytes;
    double state_bytes; /* moments, and a master copy of the parameters where they are narrower */
};

/* train_recipes -- all of them. train_recipe_find -- by name; NULL none. */
const struct train_recipe *train_recipes(size_t *n);
const struct train_recipe *train_recipe_find(const char *name);

/* train_model -- a model as a recipe trains it, whatever its file stores: every weight is read with param_bytes and
 * multiplied in the format of activations. Errors: ERR_USAGE activations of fewer than 16 bits. */
enum err_code train_model(const struct train_recipe *r, struct model *m, struct err *e);

/* train_memory -- bytes on each of `copies` data-parallel ranks that hold `params` parameters together. zero: 0 each
 * holds all; 1 the optimizer's state is split over them, 2 gradients too, 3 parameters too. Source: ZeRO, arXiv
 * 1910.02054, section 5: (2 + 2 + K)*params with K = 12 for Adam. */
struct train_memory {
    double param_bytes, grad_bytes, state_bytes;
};
struct train_memory train_memory(const struct train_recipe *r, double params, int64_t copies, int zero);

/* What the backward pass computes anew instead of keeping it. */
enum train_recompute {
    TRAIN_RECOMPUTE_ATTENTION, /* scores and their softmax, as attention kernels do (default) */
    TRAIN_RECOMPUTE_NONE,      /* nothing: the softmax of all pairs is kept */
    TRAIN_RECOMPUTE_LAYERS,    /* layers: their inputs are kept, and all of one layer at a time */
};

/* train_saved_bytes -- activations kept for the backward pass, of bound operators of a pass over whole sequences
 * without a cache (T = S): what each reads, once; of attention also a statistic of 4 bytes a head and row; of the loss
 * its logits in fp32. On one of tp ranks. Errors: ERR_NOMEM. */
enum err_code train_saved_bytes(struct arena *a, struct sym_ctx *c, const struct model *m, const struct cost_ops *ops,
                                const struct cost_pass *pass, int64_t tp, enum train_recompute how,
                                const struct sym **out, struct err *e);

#endif
