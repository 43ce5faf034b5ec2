/* lanes -- sixteen fp32 numbers and what is done with them, for one instruction set at a time.
 *
 * No include guard: a kernel's body (kernels/x_body.h) is written once in these names and compiled once per set by
 * kernels/lanes_all.h, LANES_SET being LANES_PORTABLE, LANES_AVX2, LANES_AVX512 or LANES_DOT (AVX-512 with products of
 * bf16 pairs); on aarch64 LANES_PORTABLE, LANES_NEON or LANES_BFDOT (with the same of the BF16 extension). LANES_PAIRS:
 * the set has those products. Every name gets the set as suffix, so that all of them live in one file: LANES(x) is
 * x_avx512. V is sixteen lanes; LANES_OP stands before an inlined operation, LANES_TARGET before a function. Reads and
 * writes of n < 16 elements touch no memory beyond them. */
#define LANES_PORTABLE 0
#define LANES_NEON 1
#define LANES_BFDOT 2
#define LANES_AVX2 3
#define LANES_AVX512 4
#define LANES_DOT 5

#undef LANES
#undef LANES_ARM
#undef LANES_PAIRS
#undef LANES_TARGET
#undef LANES_WIDE
#undef LANES_OP
#undef V
#if LANES_SET == LANES_PORTABLE
#define LANES(x) x##_portable
#define LANES_TARGET
#define LANES_WIDE 4 /* accumulators that registers hold with room for operands, a square or twice one */
#elif LANES_SET == LANES_NEON
#define LANES(x) x##_neon
#define LANES_TARGET
#define LANES_WIDE 4
#elif LANES_SET == LANES_BFDOT
#define LANES(x) x##_bfdot
#define LANES_TARGET KERN_NEON_BF16
#define LANES_WIDE 4
#elif LANES_SET == LANES_AVX2
#define LANES(x) x##_avx2
#define LANES_TARGET KERN_AVX2
#define LANES_WIDE 4
#elif LANES_SET == LANES_AVX512
#define LANES(x) x##_avx512
#define LANES_TARGET KERN_AVX512
#define LANES_WIDE 16
#else
#define LANES(x) x##_dot
#define LANES_TARGET KERN_AVX512_BF16
#define LANES_WIDE 16
#endif

#define LANES_ARM (LANES_SET == LANES_NEON || LANES_SET == LANES_BFDOT)
#define LANES_PAIRS (LANES_SET == LANES_DOT || LANES_SET == LANES_BFDOT)
#define LANES_OP LANES_TARGET KERN_INLINE
#define V struct LANES(lanes)

#if LANES_SET >= LANES_AVX512

struct LANES(lanes) {
    __m512 v;
};
/* clang-format off */
LANES_OP __mmask16 LANES(mask)(size_t n) { return (__mmask16)((1u << n) - 1u); }
LANES_OP V LANES(set)(float x) { return (V){_mm512_set1_ps(x)}; }
LANES_OP V LANES(load)(const float *p) { return (V){_mm512_loadu_ps(p)}; }
LANES_OP void LANES(store)(float *p, V a) { _mm512_storeu_ps(p, a.v); }
LANES_OP V LANES(load_n)(const float *p, size_t n) { return (V){_mm512_maskz_loadu_ps(LANES(mask)(n), p)}; }
LANES_OP void LANES(store_n)(float *p, V a, size_t n)
{
    if (n == 16)
        _mm512_storeu_ps(p, a.v);
    else
        _mm512_mask_storeu_ps(p, LANES(mask)(n), a.v);
}
LANES_OP V LANES(add)(V a, V b) { return (V){_mm512_add_ps(a.v, b.v)}; }
LANES_OP V LANES(sub)(V a, V b) { return (V){_mm512_sub_ps(a.v, b.v)}; }
LANES_OP V LANES(mul)(V a, V b) { return (V){_mm512_mul_ps(a.v, b.v)}; }
LANES_OP V LANES(div)(V a, V b) { return (V){_mm512_div_ps(a.v, b.v)}; }
LANES_OP V LANES(max)(V a, V b) { return (V){_mm512_max_ps(a.v, b.v)}; }
LANES_OP V LANES(min)(V a, V b) { return (V){_mm512_min_ps(a.v, b.v)}; }
LANES_OP V LANES(fma)(V a, V b, V c) { return (V){_mm512_fmadd_ps(a.v, b.v, c.v)}; }
LANES_OP V LANES(load_4)(const float *p) { return (V){_mm512_broadcast_f32x4(_mm_loadu_ps(p))}; } /* again and again */
LANES_OP bool LANES(above)(V a, V b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ) != 0; } /* in any lane */
LANES_OP V LANES(with)(V a, size_t i, float x) { return (V){_mm512_mask_mov_ps(a.v, (__mmask16)(1u << i), _mm512_set1_ps(x))}; } /* x in lane i */
LANES_OP float LANES(sum)(V a) { return _mm512_reduce_add_ps(a.v); }
LANES_OP float LANES(most)(V a) { return _mm512_reduce_max_ps(a.v); }
LANES_OP V LANES(widen)(__m256i h) { return (V){_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16))}; }
LANES_OP V LANES(load_bf16)(const uint16_t *p) { return LANES(widen)(_mm256_loadu_si256((const __m256i *)(const void *)p)); }
LANES_OP V LANES(load_bf16_n)(const uint16_t *p, size_t n) { return LANES(widen)(_mm256_maskz_loadu_epi16(LANES(mask)(n), p)); }
LANES_OP V LANES(load_i8)(const int8_t *p) { return (V){_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)))}; }
LANES_OP V LANES(round)(V a) { return (V){_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
LANES_OP V LANES(scale)(V a, V n) { return (V){_mm512_scalef_ps(a.v, n.v)}; }
/* into the second cache: misses of the first are few at a time */
LANES_OP void LANES(prefetch)(const void *p) { _mm_prefetch(p, _MM_HINT_T1); }
LANES_OP void LANES(touch)(const void *p) { _mm_prefetch(p, _MM_HINT_T0); }
/* clang-format on */
/* Of the bits of fp32 the upper half becomes the nearest bf16, of two the even one. */
LANES_OP __m512i LANES(nearest)(__m512i bits)
{
    const __m512i last = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    return _mm512_add_epi32(bits, _mm512_add_epi32(_mm512_set1_epi32(0x7fff), last));
}
LANES_OP __m256i LANES(narrow)(V a)
{
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(LANES(nearest)(_mm512_castps_si512(a.v)), 16));
}
LANES_OP void LANES(store_bf16_n)(uint16_t *p, V a, size_t n)
{
    if (n == 16) /* stores of a part are slow, also of all parts */
        _mm256_storeu_si256((__m256i *)(void *)p, LANES(narrow)(a));
    else
        _mm256_mask_storeu_epi16(p, LANES(mask)(n), LANES(narrow)(a));
}
/* Four sums at a time, in two steps of a tree of transpositions: lane 4g + i of sums_4 is a part of the sum of a[i];
 * lane 4i + j of join_4 is the sum of the lanes 4g + j of a[i]. */
LANES_OP V LANES(sums_4)(const V *a)
{
    const __m512 x = _mm512_add_ps(_mm512_unpacklo_ps(a[0].v, a[1].v), _mm512_unpackhi_ps(a[0].v, a[1].v));
    const __m512 y = _mm512_add_ps(_mm512_unpacklo_ps(a[2].v, a[3].v), _mm512_unpackhi_ps(a[2].v, a[3].v));
    const __m512d u = _mm512_castps_pd(x), w = _mm512_castps_pd(y);
    return (V){_mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(u, w)), _mm512_castpd_ps(_mm512_unpackhi_pd(u, w)))};
}
LANES_OP V LANES(join_4)(const V *a)
{
    enum { EVEN = 0x88, ODD = 0xdd };
    const __m512 x =
        _mm512_add_ps(_mm512_shuffle_f32x4(a[0].v, a[1].v, EVEN), _mm512_shuffle_f32x4(a[0].v, a[1].v, ODD));
    const __m512 y =
        _mm512_add_ps(_mm512_shuffle_f32x4(a[2].v, a[3].v, EVEN), _mm512_shuffle_f32x4(a[2].v, a[3].v, ODD));
    return (V){_mm512_add_ps(_mm512_shuffle_f32x4(x, y, EVEN), _mm512_shuffle_f32x4(x, y, ODD))};
}

/* out[i] becomes the sum of the lanes of a[i] times scale. */
LANES_OP void LANES(store_sums_4)(float *out, const V *a, float scale)
{
    const __m512 s = LANES(sums_4)(a).v;
    const __m256 h = _mm256_add_ps(_mm512_castps512_ps256(s), _mm512_extractf32x8_ps(s, 1));
    const __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    _mm_storeu_ps(out, _mm_mul_ps(q, _mm_set1_ps(scale)));
}

#elif LANES_SET == LANES_AVX2

struct LANES(lanes) {
    __m256 a, b;
};
/* clang-format off */
LANES_OP V LANES(set)(float x) { return (V){_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
LANES_OP V LANES(load)(const float *p) { return (V){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
LANES_OP void LANES(store)(float *p, V x) { _mm256_storeu_ps(p, x.a); _mm256_storeu_ps(p + 8, x.b); }
LANES_OP V LANES(add)(V x, V y) { return (V){_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
LANES_OP V LANES(sub)(V x, V y) { return (V){_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
LANES_OP V LANES(mul)(V x, V y) { return (V){_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
LANES_OP V LANES(div)(V x, V y) { return (V){_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
LANES_OP V LANES(max)(V x, V y) { return (V){_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
LANES_OP V LANES(min)(V x, V y) { return (V){_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
LANES_OP V LANES(fma)(V x, V y, V z) { return (V){_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
LANES_OP V LANES(load_4)(const float *p) { const __m256 x = _mm256_broadcast_ps((const __m128 *)(const void *)p); return (V){x, x}; }
LANES_OP bool LANES(above)(V x, V y) { return _mm256_movemask_ps(_mm256_or_ps(_mm256_cmp_ps(x.a, y.a, _CMP_GT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_GT_OQ))) != 0; }
LANES_OP __m256 LANES(widen)(__m128i h) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16)); }
/* into the second cache: misses of the first are few at a time */
LANES_OP void LANES(prefetch)(const void *p) { _mm_prefetch(p, _MM_HINT_T1); }
LANES_OP void LANES(touch)(const void *p) { _mm_prefetch(p, _MM_HINT_T0); }
/* clang-format on */
LANES_OP float LANES(sum)(V x)
{
    const __m256 s = _mm256_add_ps(x.a, x.b);
    __m128 h = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    h = _mm_add_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_add_ss(h, _mm_shuffle_ps(h, h, 1)));
}
LANES_OP V LANES(with)(V a, size_t i, float x)
{
    const __m256i at = _mm256_sub_epi32(_mm256_set1_epi32((int32_t)i), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    const __m256i low = _mm256_cmpeq_epi32(at, _mm256_setzero_si256()),
                  high = _mm256_cmpeq_epi32(at, _mm256_set1_epi32(8));
    const __m256 wide = _mm256_set1_ps(x);
    return (V){_mm256_blendv_ps(a.a, wide, _mm256_castsi256_ps(low)),
               _mm256_blendv_ps(a.b, wide, _mm256_castsi256_ps(high))};
}
LANES_OP V LANES(sums_4)(const V *a)
{
    const __m256 x = _mm256_hadd_ps(_mm256_add_ps(a[0].a, a[0].b), _mm256_add_ps(a[1].a, a[1].b));
    const __m256 y = _mm256_hadd_ps(_mm256_add_ps(a[2].a, a[2].b), _mm256_add_ps(a[3].a, a[3].b));
    return (V){_mm256_hadd_ps(x, y), _mm256_setzero_ps()};
}
LANES_OP V LANES(join_4)(const V *a)
{
    __m256 s[4];
    for (size_t i = 0; i < 4; i++) s[i] = _mm256_add_ps(a[i].a, a[i].b);
    return (V){_mm256_add_ps(_mm256_permute2f128_ps(s[0], s[1], 0x20), _mm256_permute2f128_ps(s[0], s[1], 0x31)),
               _mm256_add_ps(_mm256_permute2f128_ps(s[2], s[3], 0x20), _mm256_permute2f128_ps(s[2], s[3], 0x31))};
}
LANES_OP float LANES(most)(V x)
{
    const __m256 s = _mm256_max_ps(x.a, x.b);
    __m128 h = _mm_max_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    h = _mm_max_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_max_ss(h, _mm_shuffle_ps(h, h, 1)));
}
LANES_OP V LANES(load_bf16)(const uint16_t *p)
{
    return (V){LANES(widen)(_mm_loadu_si128((const __m128i *)(const void *)p)),
               LANES(widen)(_mm_loadu_si128((const __m128i *)(const void *)(p + 8)))};
}
LANES_OP V LANES(load_i8)(const int8_t *p)
{
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    return (V){_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
               _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
}
LANES_OP V LANES(round)(V x)
{
    return (V){_mm256_round_ps(x.a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
               _mm256_round_ps(x.b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
LANES_OP __m256i LANES(nearest)(__m256 x)
{
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i last = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    return _mm256_add_epi32(bits, _mm256_add_epi32(_mm256_set1_epi32(0x7fff), last));
}
LANES_OP __m256i LANES(pairs_of)(__m256 even, __m256 odd)
{
    return _mm256_blend_epi16(_mm256_srli_epi32(LANES(nearest)(even), 16), LANES(nearest)(odd), 0xaa);
}
/* x * 2^n for whole n of normal results */
LANES_OP V LANES(scale)(V x, V n)
{
    const __m256i bias = _mm256_set1_epi32(127);
    const __m256i a = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n.a), bias), 23);
    const __m256i b = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n.b), bias), 23);
    return (V){_mm256_mul_ps(x.a, _mm256_castsi256_ps(a)), _mm256_mul_ps(x.b, _mm256_castsi256_ps(b))};
}

#elif LANES_ARM

struct LANES(lanes) {
    float32x4_t a, b, c, d;
};
#define LANES_EACH(f, x, y)                                                                                            \
    (V) { f((x).a, (y).a), f((x).b, (y).b), f((x).c, (y).c), f((x).d, (y).d) }
/* clang-format off */
LANES_OP V LANES(set)(float x) { const float32x4_t v = vdupq_n_f32(x); return (V){v, v, v, v}; }
LANES_OP V LANES(load)(const float *p) { return (V){vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}; }
LANES_OP void LANES(store)(float *p, V x) { vst1q_f32(p, x.a); vst1q_f32(p + 4, x.b); vst1q_f32(p + 8, x.c); vst1q_f32(p + 12, x.d); }
LANES_OP V LANES(add)(V x, V y) { return LANES_EACH(vaddq_f32, x, y); }
LANES_OP V LANES(sub)(V x, V y) { return LANES_EACH(vsubq_f32, x, y); }
LANES_OP V LANES(mul)(V x, V y) { return LANES_EACH(vmulq_f32, x, y); }
LANES_OP V LANES(div)(V x, V y) { return LANES_EACH(vdivq_f32, x, y); }
LANES_OP V LANES(max)(V x, V y) { return LANES_EACH(vmaxq_f32, x, y); }
LANES_OP V LANES(min)(V x, V y) { return LANES_EACH(vminq_f32, x, y); }
LANES_OP V LANES(fma)(V x, V y, V z) { return (V){vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c), vfmaq_f32(z.d, x.d, y.d)}; }
LANES_OP V LANES(load_4)(const float *p) { const float32x4_t v = vld1q_f32(p); return (V){v, v, v, v}; }
LANES_OP V LANES(round)(V x) { return (V){vrndnq_f32(x.a), vrndnq_f32(x.b), vrndnq_f32(x.c), vrndnq_f32(x.d)}; }
LANES_OP float32x4_t LANES(total)(V x) { return vaddq_f32(vaddq_f32(x.a, x.b), vaddq_f32(x.c, x.d)); }
LANES_OP float LANES(sum)(V x) { return vaddvq_f32(LANES(total)(x)); }
LANES_OP float LANES(most)(V x) { return vmaxvq_f32(vmaxq_f32(vmaxq_f32(x.a, x.b), vmaxq_f32(x.c, x.d))); }
/* zeros below each: the lower half of fp32 */
LANES_OP float32x4_t LANES(widen)(uint16x8_t h) { return vreinterpretq_f32_u16(vzip1q_u16(vdupq_n_u16(0), h)); }
LANES_OP float32x4_t LANES(widen_high)(uint16x8_t h) { return vreinterpretq_f32_u16(vzip2q_u16(vdupq_n_u16(0), h)); }
/* into the second cache: misses of the first are few at a time */
LANES_OP void LANES(prefetch)(const void *p) { __builtin_prefetch(p, 0, 2); }
LANES_OP void LANES(touch)(const void *p) { __builtin_prefetch(p, 0, 3); }
/* clang-format on */
LANES_OP bool LANES(above)(V x, V y)
{
    const uint32x4_t low = vorrq_u32(vcgtq_f32(x.a, y.a), vcgtq_f32(x.b, y.b));
    const uint32x4_t high = vorrq_u32(vcgtq_f32(x.c, y.c), vcgtq_f32(x.d, y.d));
    return vmaxvq_u32(vorrq_u32(low, high)) != 0;
}
LANES_OP float32x4_t LANES(with_4)(float32x4_t v, size_t i, float x)
{
    static const uint32_t COUNT[4] = {0, 1, 2, 3};
    return vbslq_f32(vceqq_u32(vld1q_u32(COUNT), vdupq_n_u32((uint32_t)i)), vdupq_n_f32(x), v);
}
LANES_OP V LANES(with)(V v, size_t i, float x)
{
    return (V){LANES(with_4)(v.a, i, x), LANES(with_4)(v.b, i - 4, x), LANES(with_4)(v.c, i - 8, x),
               LANES(with_4)(v.d, i - 12, x)};
}
LANES_OP V LANES(load_bf16)(const uint16_t *p)
{
    const uint16x8_t x = vld1q_u16(p), y = vld1q_u16(p + 8);
    return (V){LANES(widen)(x), LANES(widen_high)(x), LANES(widen)(y), LANES(widen_high)(y)};
}
LANES_OP V LANES(load_i8)(const int8_t *p)
{
    const int8x16_t bytes = vld1q_s8(p);
    const int16x8_t x = vmovl_s8(vget_low_s8(bytes)), y = vmovl_high_s8(bytes);
    return (V){vcvtq_f32_s32(vmovl_s16(vget_low_s16(x))), vcvtq_f32_s32(vmovl_high_s16(x)),
               vcvtq_f32_s32(vmovl_s16(vget_low_s16(y))), vcvtq_f32_s32(vmovl_high_s16(y))};
}
/* x * 2^n for whole n of normal results */
LANES_OP float32x4_t LANES(scale_4)(float32x4_t x, float32x4_t n)
{
    const int32x4_t power = vshlq_n_s32(vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127)), 23);
    return vmulq_f32(x, vreinterpretq_f32_s32(power));
}
LANES_OP V LANES(scale)(V x, V n) { return LANES_EACH(LANES(scale_4), x, n); }
#undef LANES_EACH
/* Of the bits of fp32 the upper half becomes the nearest bf16, of two the even one. */
LANES_OP uint32x4_t LANES(nearest)(float32x4_t x)
{
    const uint32x4_t bits = vreinterpretq_u32_f32(x);
    const uint32x4_t last = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    return vaddq_u32(bits, vaddq_u32(vdupq_n_u32(0x7fff), last));
}
LANES_OP uint16x8_t LANES(narrow)(float32x4_t x, float32x4_t y)
{
#if LANES_PAIRS
    return vcombine_u16(kern_neon_narrow(x), kern_neon_narrow(y));
#else
    return vuzp2q_u16(vreinterpretq_u16_u32(LANES(nearest)(x)), vreinterpretq_u16_u32(LANES(nearest)(y)));
#endif
}
/* One behind the other, even and odd places. */
LANES_OP uint16x8_t LANES(pairs_of)(float32x4_t even, float32x4_t odd)
{
#if LANES_PAIRS
    const uint16x4_t x = kern_neon_narrow(even), y = kern_neon_narrow(odd);
    return vcombine_u16(vzip1_u16(x, y), vzip2_u16(x, y));
#else
    return vreinterpretq_u16_u32(vsriq_n_u32(LANES(nearest)(odd), LANES(nearest)(even), 16));
#endif
}
LANES_OP float32x4_t LANES(sums)(const V *a)
{
    const float32x4_t low = vpaddq_f32(LANES(total)(a[0]), LANES(total)(a[1]));
    return vpaddq_f32(low, vpaddq_f32(LANES(total)(a[2]), LANES(total)(a[3])));
}
LANES_OP V LANES(sums_4)(const V *a)
{
    const float32x4_t none = vdupq_n_f32(0);
    return (V){LANES(sums)(a), none, none, none};
}
LANES_OP V LANES(join_4)(const V *a)
{
    return (V){LANES(total)(a[0]), LANES(total)(a[1]), LANES(total)(a[2]), LANES(total)(a[3])};
}
LANES_OP void LANES(store_sums_4)(float *out, const V *a, float scale)
{
    vst1q_f32(out, vmulq_n_f32(LANES(sums)(a), scale));
}

#else

struct LANES(lanes) {
    float v[16];
};
#define LANES_EACH(expression)                                                                                         \
    V r;                                                                                                               \
    for (size_t i = 0; i < 16; i++) r.v[i] = (expression);                                                             \
    return r
/* clang-format off */
LANES_OP V LANES(set)(float x) { LANES_EACH(x); }
LANES_OP V LANES(with)(V a, size_t i, float x) { a.v[i] = x; return a; }
LANES_OP V LANES(load)(const float *p) { LANES_EACH(p[i]); }
LANES_OP void LANES(store)(float *p, V a) { memcpy(p, a.v, sizeof a.v); }
LANES_OP V LANES(add)(V a, V b) { LANES_EACH(a.v[i] + b.v[i]); }
LANES_OP V LANES(sub)(V a, V b) { LANES_EACH(a.v[i] - b.v[i]); }
LANES_OP V LANES(mul)(V a, V b) { LANES_EACH(a.v[i] * b.v[i]); }
LANES_OP V LANES(div)(V a, V b) { LANES_EACH(a.v[i] / b.v[i]); }
LANES_OP V LANES(max)(V a, V b) { LANES_EACH(a.v[i] > b.v[i] ? a.v[i] : b.v[i]); }
LANES_OP V LANES(min)(V a, V b) { LANES_EACH(a.v[i] < b.v[i] ? a.v[i] : b.v[i]); }
LANES_OP V LANES(fma)(V a, V b, V c) { LANES_EACH(a.v[i] * b.v[i] + c.v[i]); }
LANES_OP V LANES(load_4)(const float *p) { LANES_EACH(p[i % 4]); }
LANES_OP V LANES(load_bf16)(const uint16_t *p) { LANES_EACH(kern_bf16_to(p[i])); }
LANES_OP V LANES(load_i8)(const int8_t *p) { LANES_EACH((float)p[i]); }
LANES_OP V LANES(round)(V a) { LANES_EACH(rintf(a.v[i])); }
LANES_OP V LANES(scale)(V a, V n) { LANES_EACH(ldexpf(a.v[i], (int)n.v[i])); }
LANES_OP void LANES(prefetch)(const void *p) { (void)p; }
LANES_OP void LANES(touch)(const void *p) { (void)p; }
/* clang-format on */
LANES_OP float LANES(sum)(V a)
{
    float s = 0;
    for (size_t i = 0; i < 16; i++) s += a.v[i];
    return s;
}
LANES_OP bool LANES(above)(V a, V b)
{
    bool any = false;
    for (size_t i = 0; i < 16; i++) any = any || a.v[i] > b.v[i];
    return any;
}
LANES_OP V LANES(sums_4)(const V *a) { LANES_EACH(i < 4 ? LANES(sum)(a[i]) : 0); }
LANES_OP V LANES(join_4)(const V *a)
{
    LANES_EACH(a[i / 4].v[i % 4] + a[i / 4].v[i % 4 + 4] + a[i / 4].v[i % 4 + 8] + a[i / 4].v[i % 4 + 12]);
}
LANES_OP float LANES(most)(V a)
{
    float s = a.v[0];
    for (size_t i = 1; i < 16; i++) s = a.v[i] > s ? a.v[i] : s;
    return s;
}
#undef LANES_EACH

#endif

#if LANES_SET < LANES_AVX512
LANES_OP V LANES(load_n)(const float *p, size_t n)
{
    float whole[16] = {0};
    if (n == 16) return LANES(load)(p);
    memcpy(whole, p, n * sizeof *p);
    return LANES(load)(whole);
}
LANES_OP void LANES(store_n)(float *p, V a, size_t n)
{
    float whole[16];
    LANES(store)(whole, a);
    memcpy(p, whole, n * sizeof *p);
}
LANES_OP V LANES(load_bf16_n)(const uint16_t *p, size_t n)
{
    uint16_t whole[16] = {0};
    if (n == 16) return LANES(load_bf16)(p);
    memcpy(whole, p, n * sizeof *p);
    return LANES(load_bf16)(whole);
}
#if LANES_ARM
LANES_OP void LANES(store_bf16_n)(uint16_t *p, V a, size_t n)
{
    uint16_t whole[16], *to = n == 16 ? p : whole;
    vst1q_u16(to, LANES(narrow)(a.a, a.b));
    vst1q_u16(to + 8, LANES(narrow)(a.c, a.d));
    if (n < 16) memcpy(p, whole, n * sizeof *p);
}
#else
LANES_OP void LANES(store_bf16_n)(uint16_t *p, V a, size_t n)
{
    float whole[16];
    LANES(store)(whole, a);
    for (size_t i = 0; i < n; i++) p[i] = kern_bf16_from(whole[i]);
}
LANES_OP void LANES(store_sums_4)(float *out, const V *a, float scale)
{
    for (size_t i = 0; i < 4; i++) out[i] = LANES(sum)(a[i]) * scale;
}
#endif
#endif

LANES_OP V LANES(load_i8_n)(const int8_t *p, size_t n)
{
    int8_t whole[16] = {0};
    if (n == 16) return LANES(load_i8)(p);
    memcpy(whole, p, n);
    return LANES(load_i8)(whole);
}

/* n <= 16 elements of an fp32 or bf16 array from element i. */
LANES_OP V LANES(get)(const void *data, bool bf16, size_t i, size_t n)
{
    if (bf16) return LANES(load_bf16_n)((const uint16_t *)data + i, n);
    return LANES(load_n)((const float *)data + i, n);
}
LANES_OP void LANES(put)(void *data, bool bf16, size_t i, V a, size_t n)
{
    if (bf16)
        LANES(store_bf16_n)((uint16_t *)data + i, a, n);
    else
        LANES(store_n)((float *)data + i, a, n);
}

/* 32 bf16 from p on: those of even places, and those of odd ones, which takes fewer shifts than two halves; and back.
 */
LANES_OP void LANES(load_bf16_32)(const uint16_t *p, V *even, V *odd)
{
#if LANES_SET >= LANES_AVX512
    const __m512i x = _mm512_loadu_si512(p);
    even->v = _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
    odd->v = _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32((int32_t)0xffff0000u)));
#elif LANES_SET == LANES_AVX2
    const __m256i mask = _mm256_set1_epi32((int32_t)0xffff0000u);
    const __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)p);
    const __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(p + 16));
    *even = (V){_mm256_castsi256_ps(_mm256_slli_epi32(a, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(b, 16))};
    *odd = (V){_mm256_castsi256_ps(_mm256_and_si256(a, mask)), _mm256_castsi256_ps(_mm256_and_si256(b, mask))};
#elif LANES_ARM
    const uint32x4_t mask = vdupq_n_u32(0xffff0000u);
    uint32x4_t x[4];
    KERN_UNROLL
    for (size_t i = 0; i < 4; i++) x[i] = vreinterpretq_u32_u16(vld1q_u16(p + 8 * i));
    *even = (V){vreinterpretq_f32_u32(vshlq_n_u32(x[0], 16)), vreinterpretq_f32_u32(vshlq_n_u32(x[1], 16)),
                vreinterpretq_f32_u32(vshlq_n_u32(x[2], 16)), vreinterpretq_f32_u32(vshlq_n_u32(x[3], 16))};
    *odd = (V){vreinterpretq_f32_u32(vandq_u32(x[0], mask)), vreinterpretq_f32_u32(vandq_u32(x[1], mask)),
               vreinterpretq_f32_u32(vandq_u32(x[2], mask)), vreinterpretq_f32_u32(vandq_u32(x[3], mask))};
#else
    for (size_t i = 0; i < 16; i++) {
        even->v[i] = kern_bf16_to(p[2 * i]);
        odd->v[i] = kern_bf16_to(p[2 * i + 1]);
    }
#endif
}

LANES_OP void LANES(store_bf16_32)(uint16_t *p, V even, V odd)
{
#if LANES_SET == LANES_DOT /* rounds by itself; what is below 2^-126 becomes 0 */
    const __m512i all = (__m512i)_mm512_cvtne2ps_pbh(odd.v, even.v);
    const __m512i low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(all));
    const __m512i high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(all, 1));
    _mm512_storeu_si512(p, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
#elif LANES_SET >= LANES_AVX512
    const __m512i low = _mm512_srli_epi32(LANES(nearest)(_mm512_castps_si512(even.v)), 16);
    const __m512i high = LANES(nearest)(_mm512_castps_si512(odd.v));
    _mm512_storeu_si512(p, _mm512_mask_mov_epi16(low, 0xaaaaaaaau, high));
#elif LANES_SET == LANES_AVX2
    const __m256i a = LANES(pairs_of)(even.a, odd.a), b = LANES(pairs_of)(even.b, odd.b);
    _mm256_storeu_si256((__m256i *)(void *)p, a);
    _mm256_storeu_si256((__m256i *)(void *)(p + 16), b);
#elif LANES_ARM
    vst1q_u16(p, LANES(pairs_of)(even.a, odd.a));
    vst1q_u16(p + 8, LANES(pairs_of)(even.b, odd.b));
    vst1q_u16(p + 16, LANES(pairs_of)(even.c, odd.c));
    vst1q_u16(p + 24, LANES(pairs_of)(even.d, odd.d));
#else
    for (size_t i = 0; i < 16; i++) {
        p[2 * i] = kern_bf16_from(even.v[i]);
        p[2 * i + 1] = kern_bf16_from(odd.v[i]);
    }
#endif
}

#if LANES_PAIRS
/* Lanes as pairs of bf16. sum plus the product of two pairs in each; sixteen rounded, as they are or, of four heads
 * that alternate, with two of a head side by side. */
LANES_OP V LANES(dot)(V x, V y, V sum)
{
#if LANES_ARM
    return (V){kern_neon_dot(sum.a, vreinterpretq_u16_f32(x.a), vreinterpretq_u16_f32(y.a)),
               kern_neon_dot(sum.b, vreinterpretq_u16_f32(x.b), vreinterpretq_u16_f32(y.b)),
               kern_neon_dot(sum.c, vreinterpretq_u16_f32(x.c), vreinterpretq_u16_f32(y.c)),
               kern_neon_dot(sum.d, vreinterpretq_u16_f32(x.d), vreinterpretq_u16_f32(y.d))};
#else
    return (V){_mm512_dpbf16_ps(sum.v, (__m512bh)x.v, (__m512bh)y.v)};
#endif
}
LANES_OP void LANES(store_halves)(uint16_t *p, V x, bool alternate)
{
#if LANES_ARM
    vst1q_u16(p, alternate ? LANES(pairs_of)(x.a, x.b) : LANES(narrow)(x.a, x.b));
    vst1q_u16(p + 8, alternate ? LANES(pairs_of)(x.c, x.d) : LANES(narrow)(x.c, x.d));
#else
    const __m512i pairs = _mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
    const __m512 order = alternate ? _mm512_permutexvar_ps(pairs, x.v) : x.v;
    _mm256_storeu_si256((__m256i *)(void *)p, (__m256i)_mm512_cvtneps_pbh(order));
#endif
}
#endif

/* e^x to 2e-7: 2^n * e^r with |r| <= ln(2)/2, ln(2) in two parts (Cody and Waite, 1980), Taylor to r^7/7!, whose next
 * term is 5e-9. Below -87 it is e^-87, about 1e-38; above 88 e^88. */
LANES_OP V LANES(exp)(V x)
{
    x = LANES(max)(LANES(min)(x, LANES(set)(88)), LANES(set)(-87));
    const V n = LANES(round)(LANES(mul)(x, LANES(set)(1.44269504F)));
    V r = LANES(fma)(n, LANES(set)(-0.693359375F), x);
    r = LANES(fma)(n, LANES(set)(2.12194440e-4F), r);
    V p = LANES(set)(1.0F / 5040);
    p = LANES(fma)(p, r, LANES(set)(1.0F / 720));
    p = LANES(fma)(p, r, LANES(set)(1.0F / 120));
    p = LANES(fma)(p, r, LANES(set)(1.0F / 24));
    p = LANES(fma)(p, r, LANES(set)(1.0F / 6));
    p = LANES(fma)(p, r, LANES(set)(0.5F));
    p = LANES(fma)(p, r, LANES(set)(1));
    p = LANES(fma)(p, r, LANES(set)(1));
    return LANES(scale)(p, n);
}

/* e^x of x <= 0 for what is kept in bf16, to 6e-5: Taylor to r^4/4!, whose next term is 4e-5; below -87 as above. */
LANES_OP V LANES(exp_coarse)(V x)
{
    x = LANES(max)(x, LANES(set)(-87));
    const V n = LANES(round)(LANES(mul)(x, LANES(set)(1.44269504F)));
    const V r = LANES(fma)(n, LANES(set)(-0.693147181F), x);
    V p = LANES(fma)(r, LANES(set)(1.0F / 24), LANES(set)(1.0F / 6));
    p = LANES(fma)(p, r, LANES(set)(0.5F));
    p = LANES(fma)(p, r, LANES(set)(1));
    p = LANES(fma)(p, r, LANES(set)(1));
    return LANES(scale)(p, n);
}

/* 2^x of x <= 0, to 2e-7: the polynomial of fifth degree of least relative error on [0, 1), the whole part by the
 * scale; 0, or e^-87, where x is far below. */
LANES_OP V LANES(exp2)(V x)
{
#if LANES_SET >= LANES_AVX512
    const V r = {_mm512_reduce_ps(x.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)};
    V p = LANES(fma)(r, LANES(set)(0.00187757669F), LANES(set)(0.00898933969F));
    p = LANES(fma)(p, r, LANES(set)(0.0558263175F));
    p = LANES(fma)(p, r, LANES(set)(0.240153611F));
    p = LANES(fma)(p, r, LANES(set)(0.693153083F));
    p = LANES(fma)(p, r, LANES(set)(0.99999994F));
    return LANES(scale)(p, x);
#else
    return LANES(exp)(LANES(mul)(x, LANES(set)(0.693147181F)));
#endif
}

/* 2^x of x <= 0 for what is kept in bf16, to 7.5e-5: the cubic of least relative error on [0, 1), the whole part by the
 * scale; 0 or next to it where x is far below. */
LANES_OP V LANES(exp2_coarse)(V x)
{
#if LANES_SET >= LANES_AVX512
    const V r = {_mm512_reduce_ps(x.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)};
    V p = LANES(fma)(r, LANES(set)(0.07802452F), LANES(set)(0.22606716F));
    p = LANES(fma)(p, r, LANES(set)(0.69583354F));
    p = LANES(fma)(p, r, LANES(set)(0.99992522F));
    return LANES(scale)(p, x);
#else
    return LANES(exp_coarse)(LANES(mul)(x, LANES(set)(0.693147181F)));
#endif
}
