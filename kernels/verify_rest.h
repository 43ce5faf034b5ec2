/* verify_rest -- for spec_verify.c: what is left of the target's probabilities after refusals, and sums of it. */
#ifndef RIDGE_KERNELS_VERIFY_REST_H
#define RIDGE_KERNELS_VERIFY_REST_H

#include "kernels/vector.h"

enum { REST_MOST = 16 }; /* refusals of a node */

/* q, then for each refusal max(0, what there was * factor - p), factor being one over its sum. */
struct rest {
    const float *q, *p;
    double factor[REST_MOST];
    size_t refused;
};

/* The sum of n elements from `first` on. */
typedef double sum_rest(const struct rest *r, size_t first, size_t n);

static double rest_at(const struct rest *r, size_t i)
{
    double v = (double)r->q[i];
    for (size_t j = 0; j < r->refused; j++) {
        v = v * r->factor[j] - (double)r->p[i];
        if (!(v > 0)) v = 0;
    }
    return v;
}

static double rest_portable(const struct rest *r, size_t first, size_t n)
{
    double sum[4] = {0, 0, 0, 0};
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (size_t j = 0; j < 4; j++) sum[j] += rest_at(r, first + i + j);
    for (; i < n; i++) sum[0] += rest_at(r, first + i);
    return sum[0] + sum[1] + (sum[2] + sum[3]);
}

#if KERN_X86
/* refused: 0 and 1 are constants where this is inlined */
KERN_AVX512 KERN_INLINE __m512d rest_lanes_avx512(const struct rest *r, size_t i, size_t refused)
{
    __m512d v = _mm512_cvtps_pd(_mm256_loadu_ps(r->q + i));
    if (refused == 0) return v;
    const __m512d p = _mm512_cvtps_pd(_mm256_loadu_ps(r->p + i));
    for (size_t j = 0; j < refused; j++)
        v = _mm512_max_pd(_mm512_sub_pd(_mm512_mul_pd(v, _mm512_set1_pd(r->factor[j])), p), _mm512_setzero_pd());
    return v;
}

KERN_AVX512 KERN_INLINE double rest_walk_avx512(const struct rest *r, size_t first, size_t n, size_t refused)
{
    __m512d sum[4];
    double rest = 0;
    size_t i = first;
    const size_t end = first + n;
    KERN_UNROLL
    for (size_t j = 0; j < 4; j++) sum[j] = _mm512_setzero_pd();
    for (; i + 32 <= end; i += 32) {
        KERN_UNROLL
        for (size_t j = 0; j < 4; j++) sum[j] = _mm512_add_pd(sum[j], rest_lanes_avx512(r, i + 8 * j, refused));
    }
    for (; i < end; i++) rest += rest_at(r, i);
    return _mm512_reduce_add_pd(_mm512_add_pd(_mm512_add_pd(sum[0], sum[1]), _mm512_add_pd(sum[2], sum[3]))) + rest;
}

KERN_AVX512 static double rest_avx512(const struct rest *r, size_t first, size_t n)
{
    if (r->refused == 0) return rest_walk_avx512(r, first, n, 0);
    return r->refused == 1 ? rest_walk_avx512(r, first, n, 1) : rest_walk_avx512(r, first, n, r->refused);
}

KERN_AVX2 KERN_INLINE __m256d rest_lanes_avx2(const struct rest *r, size_t i, size_t refused)
{
    __m256d v = _mm256_cvtps_pd(_mm_loadu_ps(r->q + i));
    if (refused == 0) return v;
    const __m256d p = _mm256_cvtps_pd(_mm_loadu_ps(r->p + i));
    for (size_t j = 0; j < refused; j++)
        v = _mm256_max_pd(_mm256_sub_pd(_mm256_mul_pd(v, _mm256_set1_pd(r->factor[j])), p), _mm256_setzero_pd());
    return v;
}

KERN_AVX2 KERN_INLINE double rest_walk_avx2(const struct rest *r, size_t first, size_t n, size_t refused)
{
    __m256d sum[4];
    double rest = 0, lane[4];
    size_t i = first;
    const size_t end = first + n;
    KERN_UNROLL
    for (size_t j = 0; j < 4; j++) sum[j] = _mm256_setzero_pd();
    for (; i + 16 <= end; i += 16) {
        KERN_UNROLL
        for (size_t j = 0; j < 4; j++) sum[j] = _mm256_add_pd(sum[j], rest_lanes_avx2(r, i + 4 * j, refused));
    }
    for (; i < end; i++) rest += rest_at(r, i);
    _mm256_storeu_pd(lane, _mm256_add_pd(_mm256_add_pd(sum[0], sum[1]), _mm256_add_pd(sum[2], sum[3])));
    return lane[0] + lane[1] + (lane[2] + lane[3]) + rest;
}

KERN_AVX2 static double rest_avx2(const struct rest *r, size_t first, size_t n)
{
    if (r->refused == 0) return rest_walk_avx2(r, first, n, 0);
    return r->refused == 1 ? rest_walk_avx2(r, first, n, 1) : rest_walk_avx2(r, first, n, r->refused);
}
#elif KERN_ARM
KERN_INLINE float64x2_t rest_lanes_neon(const struct rest *r, size_t i, size_t refused)
{
    float64x2_t v = vcvt_f64_f32(vld1_f32(r->q + i));
    if (refused == 0) return v;
    const float64x2_t p = vcvt_f64_f32(vld1_f32(r->p + i));
    for (size_t j = 0; j < refused; j++) v = vmaxnmq_f64(vsubq_f64(vmulq_n_f64(v, r->factor[j]), p), vdupq_n_f64(0));
    return v;
}

KERN_INLINE double rest_walk_neon(const struct rest *r, size_t first, size_t n, size_t refused)
{
    float64x2_t sum[8];
    double rest = 0;
    size_t i = first;
    const size_t end = first + n;
    KERN_UNROLL
    for (size_t j = 0; j < 8; j++) sum[j] = vdupq_n_f64(0);
    for (; i + 16 <= end; i += 16) {
        KERN_UNROLL
        for (size_t j = 0; j < 8; j++) sum[j] = vaddq_f64(sum[j], rest_lanes_neon(r, i + 2 * j, refused));
    }
    for (; i < end; i++) rest += rest_at(r, i);
    KERN_UNROLL
    for (size_t j = 0; j < 4; j++) sum[j] = vaddq_f64(sum[j], sum[j + 4]);
    return vaddvq_f64(vaddq_f64(vaddq_f64(sum[0], sum[1]), vaddq_f64(sum[2], sum[3]))) + rest;
}

static double rest_neon(const struct rest *r, size_t first, size_t n)
{
    if (r->refused == 0) return rest_walk_neon(r, first, n, 0);
    return r->refused == 1 ? rest_walk_neon(r, first, n, 1) : rest_walk_neon(r, first, n, r->refused);
}
#endif

#endif
