/* sample -- what a token weighs and in which order tokens come, the same on every machine, for a CPU and for a card.
 *
 * Weights are whole numbers, made by operations of fp32 in a fixed order, so that sums of them do not depend on the
 * order of their terms: whoever adds them, on one core or by atomics, keeps the same tokens and draws the same one. */
#ifndef RIDGE_KERNELS_SAMPLE_H
#define RIDGE_KERNELS_SAMPLE_H

#ifdef __CUDACC__
#define SAMPLE_FN static __device__ __forceinline__
#define SAMPLE_MUL(x, y) __fmul_rn(x, y) /* never joined with a sum */
#define SAMPLE_ADD(x, y) __fadd_rn(x, y)
#define SAMPLE_BITS(x) __float_as_uint(x)
#define SAMPLE_FLOAT(x) __uint_as_float(x)
#else
#include <math.h>
#include <stdint.h>
#include <string.h>

#define SAMPLE_FN static inline __attribute__((unused))
#define SAMPLE_MUL(x, y) ((x) * (y))
#define SAMPLE_ADD(x, y) ((x) + (y))
#define SAMPLE_BITS(x) sample_bits(x)
#define SAMPLE_FLOAT(x) sample_float(x)
SAMPLE_FN uint32_t sample_bits(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}
SAMPLE_FN float sample_float(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}
#endif

/* 2^r = 1 + r (SAMPLE_EXP2_1 + r (SAMPLE_EXP2_2 + ...)): (ln 2)^i / i!; |r| <= 1/2, the next term is 5e-9. */
#define SAMPLE_EXP2_1 0.6931471806f
#define SAMPLE_EXP2_2 0.2402265070f
#define SAMPLE_EXP2_3 0.05550410866f
#define SAMPLE_EXP2_4 0.009618129108f
#define SAMPLE_EXP2_5 0.001333355815f
#define SAMPLE_EXP2_6 0.0001540353039f
#define SAMPLE_EXP2_7 0.00001525273380f

/* Powers of two: 2^39 is the weight of the most likely token; below 2^-40 of it a token weighs nothing. */
enum { SAMPLE_ONE = 39, SAMPLE_LEAST = -40, SAMPLE_SHIFT = SAMPLE_ONE - 23 };

/* Greater of greater logits; the same for zeros of both signs; 0 of -inf, which is never kept. No NAN. */
SAMPLE_FN uint32_t sample_key(float z)
{
    const uint32_t bits = SAMPLE_BITS(SAMPLE_ADD(z, 0.0f));
    return bits == 0xff800000u ? 0 : bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* The logit of a key other than 0. */
SAMPLE_FN float sample_value(uint32_t key) { return SAMPLE_FLOAT(key & 0x80000000u ? key ^ 0x80000000u : ~key); }

/* 2^(39 + (z - most) * scale), cut to a whole number; scale is log2(e) over the temperature, z <= most. */
SAMPLE_FN uint64_t sample_weight(float z, float most, float scale)
{
    const float x = SAMPLE_MUL(SAMPLE_ADD(z, -most), scale);
    if (!(x > (float)SAMPLE_LEAST)) return 0;
    const float n = rintf(x), r = SAMPLE_ADD(x, -n);
    float p = SAMPLE_EXP2_7;
    p = SAMPLE_ADD(SAMPLE_MUL(p, r), SAMPLE_EXP2_6);
    p = SAMPLE_ADD(SAMPLE_MUL(p, r), SAMPLE_EXP2_5);
    p = SAMPLE_ADD(SAMPLE_MUL(p, r), SAMPLE_EXP2_4);
    p = SAMPLE_ADD(SAMPLE_MUL(p, r), SAMPLE_EXP2_3);
    p = SAMPLE_ADD(SAMPLE_MUL(p, r), SAMPLE_EXP2_2);
    p = SAMPLE_ADD(SAMPLE_MUL(p, r), SAMPLE_EXP2_1);
    p = SAMPLE_ADD(SAMPLE_MUL(p, r), 1.0f);
    const uint32_t bits = SAMPLE_BITS(p);
    const int shift = (int)(bits >> 23) - 127 + (int)n + SAMPLE_SHIFT;
    const uint64_t fraction = (bits & 0x7fffffu) | 0x800000u;
    return shift >= 0 ? fraction << shift : fraction >> -shift;
}

/* Tokens are kept while those before them weigh less than this: p / 1000 of all, rounded up. */
SAMPLE_FN uint64_t sample_share(uint64_t all, int p)
{
    const uint64_t of = 1000, q = (uint64_t)p; /* not a unit */
    return all / of * q + (all % of * q + of - 1) / of;
}

/* The first token, by index, with which the kept ones weigh more than this is drawn: all * uniform / 2^32, cut. */
SAMPLE_FN uint64_t sample_point(uint64_t all, uint32_t uniform)
{
    return (all >> 32) * uniform + ((all & 0xffffffffu) * uniform >> 32);
}

#endif
