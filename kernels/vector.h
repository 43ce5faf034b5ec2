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
#define KERN_AVX512_VNNI __attribute__((target("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#else
#define KERN_X86 0
#endif

/* In front of a loop whose count is known when compiling: every round written out, so that arrays become registers.
 * KERN_UNROLL_KNOWN: the count is known in some of the places that the loop is inlined in. Under gcc's sanitizers,
 * where it takes minutes and speed is nothing, loops stay as they are. */
#if defined(__SANITIZE_ADDRESS__)
#define KERN_UNROLL
#define KERN_UNROLL_KNOWN
#elif defined(__clang__)
#define KERN_UNROLL _Pragma("clang loop unroll(full)")
#define KERN_UNROLL_KNOWN
#else
#define KERN_UNROLL _Pragma("GCC unroll 64")
#define KERN_UNROLL_KNOWN _Pragma("GCC unroll 8")
#endif

#define KERN_INLINE static inline __attribute__((always_inline))

/* kern_count -- n as a number that the compiler does not know, for a loop that is not to be written out. */
KERN_INLINE size_t kern_count(size_t n)
{
    __asm__("" : "+r"(n));
    return n;
}

/* kern_here -- p as an address that the compiler does not know: what lies there is read with offsets from it. */
KERN_INLINE void *kern_here(void *p)
{
    __asm__("" : "+r"(p));
    return p;
}

/* kern_past -- whether stores of so many bytes go past the caches: more than the second holds has left it before
 * somebody reads it, and a line that is written whole then need not be read first. */
static inline bool kern_past(const struct kern_machine *m, double bytes)
{
    return m->cache_bytes[1] > 0 && bytes > m->cache_bytes[1];
}

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

static inline const char *kern_lacks_avx512_vnni(const struct kern_machine *m, const struct kern_shape *s)
{
    (void)s;
    return m->avx512_vnni ? NULL : "no AVX512-VNNI";
}

/* Rows of a kernel that has the usual four: fp32 and bf16 by fp32 arithmetic on each set, bf16 by the dot unit. */
#define KERN_VARIANT_FP32(set, need, code)                                                                             \
    {                                                                                                                  \
        .name = set, .unit = KERN_UNIT_FP32, .dtypes = KERN_HAS(KERN_FP32) | KERN_HAS(KERN_BF16), .lacks = need,       \
        .run = code                                                                                                    \
    }
#if KERN_X86
#define KERN_VARIANTS_FP32_BF16(portable, avx2, avx512, dot)                                                           \
    {.name = "avx512-bf16",                                                                                            \
     .unit = KERN_UNIT_BF16_DOT,                                                                                       \
     .dtypes = KERN_HAS(KERN_BF16),                                                                                    \
     .lacks = kern_lacks_avx512_bf16,                                                                                  \
     .run = dot},                                                                                                      \
        KERN_VARIANT_FP32("avx512", kern_lacks_avx512, avx512), KERN_VARIANT_FP32("avx2", kern_lacks_avx2, avx2),      \
        KERN_VARIANT_FP32("portable", NULL, portable)
#else
#define KERN_VARIANTS_FP32_BF16(portable, avx2, avx512, dot) KERN_VARIANT_FP32("portable", NULL, portable)
#endif

#endif
