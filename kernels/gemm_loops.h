/* gemm_loops -- products by the tiles of kernels/gemm_tiles.h: of a call of kernels/gemm.c.
 *
 * Layout of the packed weights: panels of 16 columns of c, each panel `depth` steps of k deep; an element of a step is
 * one weight (fp32, bf16) or a pair of neighbours in k (bf16 for the dot unit). Columns and steps beyond n and k are
 * zeros. For AVX-512, whose tiles take two panels, these lie side by side, a step of each in turn, so that
 * all weights are one walk through memory however short k is; a last one without another lies alone.
 * Order of the loops: blocks of k (KC steps) so that a strip of a stays in the first cache, blocks of rows (MC) in the
 * second, then panels, then strips (the order of Goto and van de Geijn, ACM TOMS 34(3), 2008, turned: here w is the
 * side that vectors run along, because it is the large one). With few rows there is one strip and k is not cut: the
 * weights go by once. */
#ifndef RIDGE_KERNELS_GEMM_LOOPS_H
#define RIDGE_KERNELS_GEMM_LOOPS_H

#include "kernels/gemm_tiles.h"

struct gemm_loops {
    size_t m, n, k;
    const void *a, *w;    /* [m][k], [n][k], fp32 or, of other forms, bf16; w is read by the packing alone */
    void *c;              /* [m][n] of the same */
    void *packed;         /* gemm_pack_bytes */
    float *strips, *sums; /* [m][round_up(k, 4)]; [m][n], where c is bf16; shared by the parts of a call */
};

/* gemm_pack_bytes -- of the packed weights. gemm_pack -- w into packed, `side` panels side by side. */
size_t gemm_pack_bytes(size_t n, size_t k, enum gemm_form form);
void gemm_pack(const struct gemm_loops *g, enum gemm_form form, size_t side);

/* gemm_multiply -- the part of the call that call->part is; packed for tiles->side. */
void gemm_multiply(const struct gemm_loops *g, const struct gemm_tiles *tiles, enum gemm_form form,
                   const struct kern_call *call);

#endif
