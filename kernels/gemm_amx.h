/* gemm_amx -- products in bf16 by tiles (AMX-BF16): of a call of kernels/gemm.c. */
#ifndef RIDGE_KERNELS_GEMM_AMX_H
#define RIDGE_KERNELS_GEMM_AMX_H

#include "kernels/kernel.h"

struct gemm_amx {
    size_t m, n, k;
    const uint16_t *a, *w; /* [m][k], [n][k]; w is read by the packing alone */
    uint16_t *c;           /* [m][n] */
    void *packed;          /* gemm_amx_pack_bytes */
    void *strips, *sums;   /* undefined before, shared by the parts of a call; aligned to 64 */
};

/* gemm_amx_pack_bytes -- of the packed weights. gemm_amx_strip_bytes, gemm_amx_sum_bytes -- of strips and sums. */
size_t gemm_amx_pack_bytes(size_t n, size_t k);
size_t gemm_amx_strip_bytes(size_t m, size_t k);
size_t gemm_amx_sum_bytes(size_t m, size_t n);

/* gemm_amx_pack -- w into packed. gemm_amx_run -- the part of the call that call->part is. */
void gemm_amx_pack(const struct gemm_amx *g);
void gemm_amx_run(const struct gemm_amx *g, const struct kern_call *call);

#endif
