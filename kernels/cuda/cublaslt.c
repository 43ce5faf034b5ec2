#define _DEFAULT_SOURCE
#include "kernels/cuda/cublaslt.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cuda.h"

enum { WORKSPACE_BYTES = 64 << 20, ALIGNMENT = 16 };

/* -- the library -- */

static bool find(void *library, const char *name, void *slot)
{
    void *const p = dlsym(library, name);
    if (p) memcpy(slot, &p, sizeof p);
    return p != NULL;
}

void cublaslt_open(struct cublaslt *out)
{
    char name[64];
    size_t (*version)(void) = NULL;
    (void)snprintf(name, sizeof name, "libcublasLt.so.%d", CUBLAS_VER_MAJOR);
    *out = (struct cublaslt){.library = dlopen(name, RTLD_NOW | RTLD_LOCAL)};
    void *const l = out->library;
    if (!l) return;
    const bool whole = find(l, "cublasLtCreate", &out->create) && find(l, "cublasLtDestroy", &out->destroy) &&
                       find(l, "cublasLtMatmul", &out->matmul) &&
                       find(l, "cublasLtMatmulDescCreate", &out->product_create) &&
                       find(l, "cublasLtMatmulDescDestroy", &out->product_destroy) &&
                       find(l, "cublasLtMatmulDescSetAttribute", &out->product_set) &&
                       find(l, "cublasLtMatrixLayoutCreate", &out->matrix_create) &&
                       find(l, "cublasLtMatrixLayoutDestroy", &out->matrix_destroy) &&
                       find(l, "cublasLtMatmulPreferenceCreate", &out->wish_create) &&
                       find(l, "cublasLtMatmulPreferenceDestroy", &out->wish_destroy) &&
                       find(l, "cublasLtMatmulPreferenceSetAttribute", &out->wish_set) &&
                       find(l, "cublasLtMatmulAlgoGetHeuristic", &out->choose);
    if (!whole || out->create(&out->handle) != CUBLAS_STATUS_SUCCESS) {
        cublaslt_close(out);
        return;
    }
    const size_t v = find(l, "cublasLtGetVersion", &version) ? version() : 0;
    (void)snprintf(out->name, sizeof out->name, "cuBLASLt %zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
}

void cublaslt_close(struct cublaslt *c)
{
    if (c->handle) (void)c->destroy(c->handle);
    if (c->library) (void)dlclose(c->library);
    *c = (struct cublaslt){.library = NULL};
}

/* -- gemm: c[m,n] = a[m,k] * w[n,k]^T. The library counts by columns: c^T[n,m] = (w as [k,n])^T * (a as [k,m]). -- */

struct formats {
    cudaDataType_t in, out, scale;
    cublasComputeType_t sum;
};

static struct formats formats_of(enum kern_dtype dtype)
{
    switch (dtype) {
    case KERN_FP16: return (struct formats){CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case KERN_FP8: return (struct formats){CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case KERN_INT8: return (struct formats){CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I};
    case KERN_FP32: return (struct formats){CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case KERN_BF16:
    case KERN_INT4_G128:
    case KERN_DTYPES_N: break;
    }
    return (struct formats){CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
}

/* What describes a product; all of it is made and freed by each call, on the host's time, which is not measured. */
struct product {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t w, a, c;
    cublasLtMatmulPreference_t wish;
};

static bool describe(const struct cublaslt *l, const struct kern_shape *s, struct product *p)
{
    const struct formats f = formats_of(s->dtype);
    const uint64_t m = (uint64_t)s->v[0], n = (uint64_t)s->v[1], k = (uint64_t)s->v[2], room = WORKSPACE_BYTES;
    const cublasOperation_t turned = CUBLAS_OP_T;
    return l->product_create(&p->desc, f.sum, f.scale) == CUBLAS_STATUS_SUCCESS &&
           l->product_set(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned) == CUBLAS_STATUS_SUCCESS &&
           l->matrix_create(&p->w, f.in, k, n, (int64_t)k) == CUBLAS_STATUS_SUCCESS &&
           l->matrix_create(&p->a, f.in, k, m, (int64_t)k) == CUBLAS_STATUS_SUCCESS &&
           l->matrix_create(&p->c, f.out, n, m, (int64_t)n) == CUBLAS_STATUS_SUCCESS &&
           l->wish_create(&p->wish) == CUBLAS_STATUS_SUCCESS &&
           l->wish_set(p->wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room) == CUBLAS_STATUS_SUCCESS;
}

static void release(const struct cublaslt *l, const struct product *p)
{
    if (p->wish) (void)l->wish_destroy(p->wish);
    if (p->c) (void)l->matrix_destroy(p->c);
    if (p->a) (void)l->matrix_destroy(p->a);
    if (p->w) (void)l->matrix_destroy(p->w);
    if (p->desc) (void)l->product_destroy(p->desc);
}

static bool choose(const struct cublaslt *l, const struct product *p, cublasLtMatmulHeuristicResult_t *out)
{
    int found = 0;
    return l->choose(l->handle, p->desc, p->w, p->a, p->c, p->c, p->wish, 1, out, &found) == CUBLAS_STATUS_SUCCESS &&
           found > 0 && out->state == CUBLAS_STATUS_SUCCESS;
}

/* A failure leaves the poison of the outputs, which the check finds. */
static void run(const struct kern_call *c)
{
    static const float ONE = 1, ZERO = 0;
    static const int32_t ONE_INT = 1, ZERO_INT = 0;
    const struct cublaslt *const l = c->machine->blas;
    const bool whole = c->shape->dtype == KERN_INT8;
    const void *const one = whole ? (const void *)&ONE_INT : &ONE, *const zero =
                                                                       whole ? (const void *)&ZERO_INT : &ZERO;
    cublasLtMatmulHeuristicResult_t with;
    struct product p = {.desc = NULL};
    if (describe(l, c->shape, &p) && choose(l, &p, &with))
        (void)l->matmul(l->handle, p.desc, one, c->buffer[1], p.w, c->buffer[0], p.a, zero, c->buffer[2], p.c,
                        c->buffer[2], p.c, &with.algo, c->scratch, WORKSPACE_BYTES, (cudaStream_t)c->stream);
    release(l, &p);
}

static size_t scratch(const struct kern_shape *s, const struct kern_machine *m)
{
    (void)s, (void)m;
    return WORKSPACE_BYTES;
}

static const char *lacks(const struct kern_machine *m, const struct kern_shape *s)
{
    cublasLtMatmulHeuristicResult_t with;
    struct product p = {.desc = NULL};
    const struct cublaslt *const l = m->blas;
    const int64_t n = s->v[1], k = s->v[2];
    if (!l) return "no cuBLAS is installed";
    if (s->dtype == KERN_BF16 && m->capability < 80) return "no bf16 tensor cores: compute capability 8.0 or higher";
    if (s->dtype == KERN_FP8 && m->capability < 89) return "no fp8 tensor cores: compute capability 8.9 or higher";
    if ((s->dtype == KERN_FP8 || s->dtype == KERN_INT8) && (n % ALIGNMENT || k % ALIGNMENT))
        return "n and k are to be multiples of 16";
    const bool can = describe(l, s, &p) && choose(l, &p, &with);
    release(l, &p);
    return can ? NULL : "the library has no code for it";
}

#define LIBRARY(name, unit, dtypes)                                                                                    \
    {                                                                                                                  \
        name, unit, dtypes, lacks, NULL, NULL, run, 0, true, scratch                                                   \
    }
static const struct kern_variant VARIANTS[] = {
    LIBRARY("cublaslt", KERN_UNIT_TENSOR, KERN_HAS(KERN_BF16) | KERN_HAS(KERN_FP16)),
    LIBRARY("cublaslt-fp8", KERN_UNIT_TENSOR_FP8, KERN_HAS(KERN_FP8)),
    LIBRARY("cublaslt-int8", KERN_UNIT_TENSOR_INT8, KERN_HAS(KERN_INT8)),
    LIBRARY("cublaslt-fp32", KERN_UNIT_FP32, KERN_HAS(KERN_FP32)),
};

static const char *mlp_lacks(const struct kern_machine *m, const struct kern_shape *s)
{
    return kern_cuda_mlp_lacks(m, s, VARIANTS);
}
static size_t mlp_scratch(const struct kern_shape *s, const struct kern_machine *m)
{
    return kern_cuda_mlp_scratch(s, m, VARIANTS);
}
static void mlp_run(const struct kern_call *c) { kern_cuda_mlp_run(c, VARIANTS); }

static const struct kern_variant MLP[] = {
    {"cublaslt", KERN_UNIT_TENSOR, KERN_HAS(KERN_BF16), mlp_lacks, NULL, NULL, mlp_run, 0, true, mlp_scratch},
};

const struct kern_variant *cublaslt_variants(const struct kern *k, size_t *n)
{
    *n = k == &kern_gemm ? sizeof VARIANTS / sizeof VARIANTS[0] : k == &kern_mlp ? sizeof MLP / sizeof MLP[0] : 0;
    return k == &kern_mlp ? MLP : VARIANTS;
}

static const struct kern_point PEAKS[] = {
    {{{8192, 8192, 8192}, KERN_BF16}, true},
    {{{8192, 8192, 8192}, KERN_FP16}, true},
    {{{8192, 8192, 8192}, KERN_FP8}, true},
    {{{8192, 8192, 8192}, KERN_INT8}, true},
};

const struct kern_point *cublaslt_peaks(size_t *n)
{
    *n = sizeof PEAKS / sizeof PEAKS[0];
    return PEAKS;
}
