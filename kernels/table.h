/* table -- the kernels that there are, one line each; a new one is its file and its line. */
#ifndef RIDGE_KERNELS_TABLE_H
#define RIDGE_KERNELS_TABLE_H

#include "kernels/kernel.h"

#define KERN_TABLE(X)                                                                                                  \
    X(kern_launch)                                                                                                     \
    X(kern_fma)                                                                                                        \
    X(kern_stream_read)                                                                                                \
    X(kern_stream_copy)                                                                                                \
    X(kern_stream_triad)                                                                                               \
    X(kern_stream_update)                                                                                              \
    X(kern_stream_gather)                                                                                              \
    X(kern_gemm)                                                                                                       \
    X(kern_decode_attention)                                                                                           \
    X(kern_prefill_attention)                                                                                          \
    X(kern_int4_matvec)                                                                                                \
    X(kern_mlp)                                                                                                        \
    X(kern_spec_verify)                                                                                                \
    X(kern_rmsnorm)                                                                                                    \
    X(kern_mamba2_step)                                                                                                \
    X(kern_linear_step)                                                                                                \
    X(kern_mla_decode)                                                                                                 \
    X(kern_moe)                                                                                                        \
    X(kern_kv_write)                                                                                                   \
    X(kern_rope)                                                                                                       \
    X(kern_sample)

#define X(name) extern const struct kern name;
KERN_TABLE(X)
#undef X

#endif
