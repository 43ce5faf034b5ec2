/* fusion -- elementwise work that is done in the kernel beside it, by name.
 *
 * An operator alone reads its inputs and writes its output; done in the kernel that makes its input, or uses its
 * output, that array stays on chip. Bytes of activations that are left, of n elements of the output: activation  none,
 * and the product before it writes n elements instead of 2n (a gate's branches) residual    n    the stream is read;
 * the sum is written in place of the product it ends norm        n    its output; what it reads was just made rope none
 *   head-norm   none
 *   kv-write    none (the cache is written all the same)
 * Flops stay. Derivation: MODEL.md "Fusion". */
#ifndef RIDGE_COST_FUSION_H
#define RIDGE_COST_FUSION_H

#include "calc/cost/cost.h"

enum {
    FUSION_ACTIVATION = 1,
    FUSION_RESIDUAL = 2,
    FUSION_NORM = 4,
    FUSION_ROPE = 8,
    FUSION_HEAD_NORM = 16,
    FUSION_KV_WRITE = 32,
    FUSION_ALL = 63,
    FUSIONS_N = 6
};

/* fusion_name -- of the i-th, 1 << i; i < FUSIONS_N. */
const char *fusion_name(size_t i);

/* fusion_parse -- "all", "none" or names: "activation,residual". Errors: ERR_USAGE. */
enum err_code fusion_parse(const char *text, unsigned *out, struct err *e);

/* fusion_apply -- to operators in execution order, before they are bound. */
void fusion_apply(struct sym_ctx *c, unsigned fused, struct cost_ops *ops);

#endif
