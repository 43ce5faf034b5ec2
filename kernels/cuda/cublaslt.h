/* cublaslt -- gemm by NVIDIA's library, loaded while running where it is installed. */
#ifndef RIDGE_KERNELS_CUDA_CUBLASLT_H
#define RIDGE_KERNELS_CUDA_CUBLASLT_H

#include <cublasLt.h>

#include "kernels/table.h"

struct cublaslt {
    void *library;
    cublasLtHandle_t handle; /* NULL: not installed */
    char name[64];           /* "cuBLASLt 13.0.0", "" */
    __typeof__(cublasLtCreate) *create;
    __typeof__(cublasLtDestroy) *destroy;
    __typeof__(cublasLtMatmul) *matmul;
    __typeof__(cublasLtMatmulDescCreate) *product_create;
    __typeof__(cublasLtMatmulDescDestroy) *product_destroy;
    __typeof__(cublasLtMatmulDescSetAttribute) *product_set;
    __typeof__(cublasLtMatrixLayoutCreate) *matrix_create;
    __typeof__(cublasLtMatrixLayoutDestroy) *matrix_destroy;
    __typeof__(cublasLtMatmulPreferenceCreate) *wish_create;
    __typeof__(cublasLtMatmulPreferenceDestroy) *wish_destroy;
    __typeof__(cublasLtMatmulPreferenceSetAttribute) *wish_set;
    __typeof__(cublasLtMatmulAlgoGetHeuristic) *choose;
};

/* cublaslt_open -- load it; kern_machine.blas of a card points at out when there is a handle. cublaslt_close -- unloads
 * it. */
void cublaslt_open(struct cublaslt *out);
void cublaslt_close(struct cublaslt *c);

/* cublaslt_variants -- what it has of a kernel: gemm, and mlp through it. cublaslt_peaks -- large products, one a
 * format. */
const struct kern_variant *cublaslt_variants(const struct kern *k, size_t *n);
const struct kern_point *cublaslt_peaks(size_t *n);

#endif
