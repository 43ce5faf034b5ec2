/* vector -- what the tuned code of all kernels needs: intrinsics by function, unrolled loops, the usual reasons. */
#ifndef RIDGE_KERNELS_VECTOR_H
#define RIDGE_KERNELS_VECTOR_H

#include "kernels/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define KERN_X86 1
/* Code for an instruction set, whatever the flags of the build; called only where kern_machine says that it is there.
 */
#define KERN_AVX2 __attribute__((target("avx2,fma")))
#define KERN_AVX512 __attribute__((target("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq")))
#define KERN_AVX512_BF16 __attribute__((target("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#else
#define KERN_X86 0
#endif

/* In front of a loop whose count is known when compiling: every round written out, so that arrays become registers.
 * KERN_UNROLL_KNOWN: the count is known in some of the places that the loop is inlined in. */
#if defined(__clang__)
#define KERN_UNROLL _Pragma("clang loop unroll(full)")
#define KERN_UNROLL_KNOWN
#else
#define KERN_UNROLL _Pragma("GCC unroll 64")
#define KERN_UNROLL_KNOWN _Pragma("GCC unroll 8")
#endif

#define KERN_INLINE static inline __attribute__((always_inline))

static inline const char *kern_lacks_avx2(const struct kern_machine *m, const struct kern_shape *s)
{
    (void)s;
    return m->avx2_fma ? NULL : "no AVX2 with FMA";
}

static inline const char *kern_lacks_avx512(const struct kern_machine *m, const struct kern_shape *s)
{
    (void)s;
    return m->avx512 ? NULL : "no AVX-512";
}

static inline const char *kern_lacks_avx512_bf16(const struct kern_machine *m, const struct kern_shape *s)
{
    (void)s;
    return m->avx512_bf16 ? NULL : "no AVX512-BF16";
}

#endif
