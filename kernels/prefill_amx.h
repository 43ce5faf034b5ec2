/* prefill_amx -- causal attention in bf16 by tiles (AMX-BF16): of a call of kernels/prefill_attention.c. */
#ifndef RIDGE_KERNELS_PREFILL_AMX_H
#define RIDGE_KERNELS_PREFILL_AMX_H

#include "kernels/kernel.h"

/* One key head and the query heads that read it, of one prompt. */
struct prefill_amx {
    size_t tokens, dim, window, heads; /* window 0: all keys before; query heads */
    float scale;
    const uint16_t *q, *k, *v; /* of the first token; query heads lie dim apart */
    uint16_t *out;             /* as q */
    size_t q_step, k_step;     /* elements from token to token: of q and out, of k and v */
    void *scratch;             /* prefill_amx_bytes, undefined before; aligned to 64 */
};

/* prefill_amx_bytes -- of the scratch. prefill_amx_run -- all of it. */
size_t prefill_amx_bytes(size_t tokens, size_t dim);
void prefill_amx_run(const struct prefill_amx *p);

#endif
