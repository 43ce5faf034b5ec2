/* cuda -- the kernels that have CUDA code, one line each; a new one is its file x.cu and its line. */
#ifndef RIDGE_KERNELS_CUDA_H
#define RIDGE_KERNELS_CUDA_H

#include "kernels/table.h"

#define KERN_CUDA_TABLE(X)                                                                                             \
    X(kern_cuda_fma)                                                                                                   \
    X(kern_cuda_launch)                                                                                                \
    X(kern_cuda_stream_read)                                                                                           \
    X(kern_cuda_stream_copy)                                                                                           \
    X(kern_cuda_stream_triad)                                                                                          \
    X(kern_cuda_stream_update)                                                                                         \
    X(kern_cuda_gemm)                                                                                                  \
    X(kern_cuda_decode_attention)                                                                                      \
    X(kern_cuda_prefill_attention)                                                                                     \
    X(kern_cuda_mamba2_step)                                                                                           \
    X(kern_cuda_linear_step)                                                                                           \
    X(kern_cuda_spec_verify)                                                                                           \
    X(kern_cuda_mla_decode)                                                                                            \
    X(kern_cuda_int4_matvec)                                                                                           \
    X(kern_cuda_mlp)                                                                                                   \
    X(kern_cuda_moe)                                                                                                   \
    X(kern_cuda_rmsnorm)                                                                                               \
    X(kern_cuda_kv_write)                                                                                              \
    X(kern_cuda_rope)                                                                                                  \
    X(kern_cuda_sample)

/* Further variants of a kernel. Their buffers are on the device, and run only starts the work, on call.stream. They get
 * no scratch of the kernel's own, which is the CPU's, but what their scratch_bytes asks for. */
struct kern_cuda {
    const struct kern *kern;
    const struct kern_variant *variants;
    size_t variants_n;
    const struct kern_point *points; /* shapes that are measured on a card; NULL: those of the kernel */
    size_t points_n;
};

/* kern_cuda_table -- all of them, in the order they are listed; kern_cuda_find -- those of a kernel, NULL: it has none.
 */
const struct kern_cuda *const *kern_cuda_table(size_t *n);
const struct kern_cuda *kern_cuda_find(const struct kern *kern);

/* kern_cuda_mlp_run, _lacks, _scratch -- the gated MLP through a variant of gemm: the library's too. */
void kern_cuda_mlp_run(const struct kern_call *c, const struct kern_variant *gemm);
const char *kern_cuda_mlp_lacks(const struct kern_machine *m, const struct kern_shape *s,
                                const struct kern_variant *gemm);
size_t kern_cuda_mlp_scratch(const struct kern_shape *s, const struct kern_machine *m, const struct kern_variant *gemm);

#define X(name) extern const struct kern_cuda name;
KERN_CUDA_TABLE(X)
#undef X

#endif
