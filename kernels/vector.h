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
#define KERN_AMX_BF16                                                                                                  \
    __attribute__((target("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16")))
#define KERN_AVX512_VNNI __attribute__((target("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#else
#define KERN_X86 0
#endif

#if defined(__aarch64__) && defined(__ARM_NEON) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#include <arm_neon.h>
#define KERN_ARM 1
#ifdef __clang__
#define KERN_NEON_BF16 __attribute__((target("bf16")))
#define KERN_NEON_DOT __attribute__((target("dotprod")))
#else
#define KERN_NEON_BF16 __attribute__((target("arch=armv8.2-a+bf16")))
#define KERN_NEON_DOT __attribute__((target("arch=armv8.2-a+dotprod")))
#endif
#else
#define KERN_ARM 0
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

static inline const char *kern_lacks_amx_bf16(const struct kern_machine *m, const struct kern_shape *s)
{
    (void)s;
    return m->amx_bf16 ? NULL : "no AMX-BF16";
}

static inline const char *kern_lacks_avx512_vnni(const struct kern_machine *m, const struct kern_shape *s)
{
    (void)s;
    return m->avx512_vnni ? NULL : "no AVX512-VNNI";
}

static inline const char *kern_lacks_neon_bf16(const struct kern_machine *m, const struct kern_shape *s)
{
    (void)s;
    return m->neon_bf16 ? NULL : "no BF16 extension";
}

static inline const char *kern_lacks_neon_dot(const struct kern_machine *m, const struct kern_shape *s)
{
    (void)s;
    return m->neon_dot ? NULL : "no dot products of bytes";
}

/* The sets of kernels/lanes.h but the portable one, X(suffix) for each: those of fp32 arithmetic, and those that have
 * instructions for bf16 besides. Rows of them in a table of variants, each with a comma behind it, the best first:
 * own(suffix) is what a row has of its own, KERN_RUN or more. */
#define KERN_ROW(label, of, formats, need, ...)                                                                        \
    {                                                                                                                  \
        .name = label, .unit = of, .dtypes = formats, .lacks = need, __VA_ARGS__                                       \
    }
#define KERN_RUN(set) .run = run_##set
#if KERN_X86
#define KERN_SETS(X) X(avx2) X(avx512)
#define KERN_SETS_BF16(X) X(dot)
#define KERN_ROWS(formats, own)                                                                                        \
    KERN_ROW("avx512", KERN_UNIT_FP32, formats, kern_lacks_avx512, own(avx512)),                                       \
        KERN_ROW("avx2", KERN_UNIT_FP32, formats, kern_lacks_avx2, own(avx2)),
#define KERN_ROWS_BF16(of, own) KERN_ROW("avx512-bf16", of, KERN_HAS(KERN_BF16), kern_lacks_avx512_bf16, own(dot)),
#define KERN_ROWS_TILES(own)                                                                                           \
    KERN_ROW("amx-bf16", KERN_UNIT_BF16_TILE, KERN_HAS(KERN_BF16), kern_lacks_amx_bf16, own(tiles)),
#elif KERN_ARM
#define KERN_SETS(X) X(neon)
#define KERN_SETS_BF16(X) X(bfdot)
#define KERN_ROWS(formats, own) KERN_ROW("neon", KERN_UNIT_FP32, formats, NULL, own(neon)),
#define KERN_ROWS_TILES(own)
#define KERN_ROWS_BF16(of, own) KERN_ROW("neon-bf16", of, KERN_HAS(KERN_BF16), kern_lacks_neon_bf16, own(bfdot)),
#else
#define KERN_SETS(X)
#define KERN_SETS_BF16(X)
#define KERN_ROWS(formats, own)
#define KERN_ROWS_BF16(of, own)
#define KERN_ROWS_TILES(own)
#endif
#define KERN_ROW_PORTABLE(formats, own) KERN_ROW("portable", KERN_UNIT_FP32, formats, NULL, own(portable))

#if KERN_ARM
/* What the extensions add, as instructions: intrinsics of them are there in some compilers only with flags for all of
 * the code. bf16 goes as the bits that it is.
 *
 * kern_neon_dot -- sum[i] + x[2i] y[2i] + x[2i + 1] y[2i + 1] (BFDOT). kern_neon_square -- sum[2r + c] plus the product
 * of row r of x and row c of y, each of two rows of four (BFMMLA). kern_neon_narrow -- to the nearest bf16 (BFCVTN).
 * kern_neon_bytes -- sum[i] plus four products of signed bytes (SDOT). */
KERN_NEON_BF16 KERN_INLINE float32x4_t kern_neon_dot(float32x4_t sum, uint16x8_t x, uint16x8_t y)
{
    __asm__("bfdot %0.4s, %1.8h, %2.8h" : "+w"(sum) : "w"(x), "w"(y));
    return sum;
}

KERN_NEON_BF16 KERN_INLINE float32x4_t kern_neon_square(float32x4_t sum, uint16x8_t x, uint16x8_t y)
{
    __asm__("bfmmla %0.4s, %1.8h, %2.8h" : "+w"(sum) : "w"(x), "w"(y));
    return sum;
}

KERN_NEON_BF16 KERN_INLINE uint16x4_t kern_neon_narrow(float32x4_t x)
{
    uint16x4_t r;
    __asm__("bfcvtn %0.4h, %1.4s" : "=w"(r) : "w"(x));
    return r;
}

KERN_NEON_DOT KERN_INLINE int32x4_t kern_neon_bytes(int32x4_t sum, int8x16_t x, int8x16_t y)
{
    __asm__("sdot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(x), "w"(y));
    return sum;
}
#endif

#endif
