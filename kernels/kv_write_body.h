/* kv_write_body -- a head's row in bytes with a scale; compiled per instruction set, see kernels/lanes.h. */

#if !LANES_PAIRS /* which has nothing that this needs */
#if LANES_SET == LANES_AVX512
/* Stores of a part, and those that narrow, are slow. */
LANES_OP void LANES(store_codes)(uint8_t *p, __m128i codes, size_t n)
{
    if (n == 16)
        _mm_storeu_si128((__m128i *)(void *)p, codes);
    else
        _mm_mask_storeu_epi8(p, LANES(mask)(n), codes);
}
#elif LANES_SET == LANES_NEON
LANES_OP void LANES(store_codes)(uint8_t *p, uint8x16_t codes, size_t n)
{
    uint8_t whole[16];
    vst1q_u8(n == 16 ? p : whole, codes);
    if (n < 16) memcpy(p, whole, n);
}

/* e4m3 codes as below, one in each lane */
LANES_OP uint32x4_t LANES(f8_of)(float32x4_t v)
{
    const uint32x4_t bits = vreinterpretq_u32_f32(v), size = vbicq_u32(bits, vdupq_n_u32(0x80000000u));
    const uint32x4_t last = vandq_u32(vshrq_n_u32(size, 20), vdupq_n_u32(1));
    const uint32x4_t up = vaddq_u32(size, vaddq_u32(vdupq_n_u32(0x7ffff), last));
    const uint32x4_t normal = vsubq_u32(vshrq_n_u32(up, 20), vdupq_n_u32(120 << 3));
    const float32x4_t sum = vaddq_f32(vreinterpretq_f32_u32(size), vdupq_n_f32(16384)); /* not a unit */
    const uint32x4_t small = vandq_u32(vreinterpretq_u32_f32(sum), vdupq_n_u32(15));
    const uint32x4_t code = vbslq_u32(vcltq_u32(size, vdupq_n_u32(0x3c800000)), small, normal);
    return vorrq_u32(code, vandq_u32(vshrq_n_u32(bits, 24), vdupq_n_u32(0x80)));
}
#endif

LANES_OP void LANES(store_i8_n)(uint8_t *p, V v, size_t n)
{
#if LANES_SET == LANES_AVX512
    LANES(store_codes)(p, _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(v.v)), n);
#elif LANES_SET == LANES_NEON
    const int16x8_t low = vqmovn_high_s32(vqmovn_s32(vcvtnq_s32_f32(v.a)), vcvtnq_s32_f32(v.b));
    const int16x8_t high = vqmovn_high_s32(vqmovn_s32(vcvtnq_s32_f32(v.c)), vcvtnq_s32_f32(v.d));
    LANES(store_codes)(p, vreinterpretq_u8_s8(vqmovn_high_s16(vqmovn_s16(low), high)), n);
#else
    float whole[16];
    LANES(store)(whole, v);
    for (size_t i = 0; i < n; i++) p[i] = (uint8_t)(int8_t)whole[i];
#endif
}

/* e4m3 of |v| <= 448: the fraction is cut to 3 bits, to nearest even; below 2^-6 by a sum whose last bit is 2^-9. */
LANES_OP void LANES(store_f8_n)(uint8_t *p, V v, size_t n)
{
#if LANES_SET == LANES_AVX512
    const __m512i bits = _mm512_castps_si512(v.v), size = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
    const __m512i last = _mm512_and_si512(_mm512_srli_epi32(size, 20), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(size, _mm512_add_epi32(_mm512_set1_epi32(0x7ffff), last));
    const __m512i normal = _mm512_sub_epi32(_mm512_srli_epi32(up, 20), _mm512_set1_epi32(120 << 3));
    const __m512 sum = _mm512_add_ps(_mm512_castsi512_ps(size), _mm512_set1_ps(16384)); /* not a unit */
    const __mmask16 small = _mm512_cmplt_epi32_mask(size, _mm512_set1_epi32(0x3c800000));
    const __m512i code = _mm512_mask_and_epi32(normal, small, _mm512_castps_si512(sum), _mm512_set1_epi32(15));
    const __m512i sign = _mm512_and_si512(_mm512_srli_epi32(bits, 24), _mm512_set1_epi32(0x80));
    LANES(store_codes)(p, _mm512_cvtepi32_epi8(_mm512_or_si512(code, sign)), n);
#elif LANES_SET == LANES_NEON
    const uint16x8_t low = vmovn_high_u32(vmovn_u32(LANES(f8_of)(v.a)), LANES(f8_of)(v.b));
    const uint16x8_t high = vmovn_high_u32(vmovn_u32(LANES(f8_of)(v.c)), LANES(f8_of)(v.d));
    LANES(store_codes)(p, vmovn_high_u16(vmovn_u16(low), high), n);
#else
    float whole[16];
    uint8_t code[16];
    LANES(store)(whole, v);
    for (size_t i = 0; i < 16; i++) {
        uint32_t bits, size, sum;
        memcpy(&bits, &whole[i], sizeof bits);
        size = bits & 0x7fffffffu;
        const float small = (whole[i] < 0 ? -whole[i] : whole[i]) + 16384; /* not a unit */
        memcpy(&sum, &small, sizeof sum);
        const uint32_t normal = ((size + 0x7ffffu + (size >> 20 & 1u)) >> 20) - (120u << 3);
        code[i] = (uint8_t)((bits >> 24 & 0x80u) | (size < 0x3c800000u ? sum & 15u : normal));
    }
    memcpy(p, code, n);
#endif
}

/* 64 at once: pairs of places are packed and put in order once. */
LANES_OP void LANES(store_i8_64)(uint8_t *p, const uint16_t *from, V inverse, bool past)
{
#if LANES_SET == LANES_AVX512
    __m512i code[4];
    KERN_UNROLL
    for (size_t j = 0; j < 2; j++) {
        V even, odd;
        LANES(load_bf16_32)(from + 32 * j, &even, &odd);
        code[2 * j] = _mm512_cvtps_epi32(_mm512_mul_ps(even.v, inverse.v));
        code[2 * j + 1] = _mm512_cvtps_epi32(_mm512_mul_ps(odd.v, inverse.v));
    }
    KERN_UNROLL
    for (size_t j = 0; j < 4; j += 2) /* places of even and odd in the halves of one */
        code[j] = _mm512_mask_mov_epi16(code[j], 0xaaaaaaaau, _mm512_slli_epi32(code[j + 1], 16));
    const __m512i bytes = _mm512_packs_epi16(code[0], code[2]), order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    const __m512i all = _mm512_permutexvar_epi64(order, bytes);
    if (past)
        _mm512_stream_si512((void *)p, all);
    else
        _mm512_storeu_si512(p, all);
#else
    (void)past;
    for (size_t i = 0; i < 64; i += 16)
        LANES(store_i8_n)(p + i, LANES(round)(LANES(mul)(LANES(get)(from, true, i, 16), inverse)), 16);
#endif
}

/* The largest magnitude, found among bits: as whole numbers they are in the same order. */
LANES_OP float LANES(largest)(const uint16_t *from, size_t n)
{
    uint16_t all[32] = {0}, most = 0;
    size_t i = 0;
#if LANES_SET == LANES_AVX512
    __m512i wide = _mm512_setzero_si512();
    for (; i < n; i += 32) {
        const __mmask32 there = n - i < 32 ? (1u << (n - i)) - 1u : 0xffffffffu;
        const __m512i x = _mm512_maskz_loadu_epi16(there, from + i);
        wide = _mm512_max_epu16(wide, _mm512_and_si512(x, _mm512_set1_epi16(0x7fff)));
    }
    const __m256i half = _mm256_max_epu16(_mm512_castsi512_si256(wide), _mm512_extracti64x4_epi64(wide, 1));
    const __m128i part = _mm_max_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    /* the least of eight is one instruction: of what is left to the largest number */
    const __m128i left = _mm_minpos_epu16(_mm_xor_si128(part, _mm_set1_epi16(-1)));
    (void)all;
    most = (uint16_t) ~(unsigned)_mm_extract_epi16(left, 0);
#elif LANES_SET == LANES_NEON
    uint16x8_t wide[2] = {vdupq_n_u16(0), vdupq_n_u16(0)};
    for (; i + 16 <= n; i += 16) {
        KERN_UNROLL
        for (size_t j = 0; j < 2; j++)
            wide[j] = vmaxq_u16(wide[j], vbicq_u16(vld1q_u16(from + i + 8 * j), vdupq_n_u16(0x8000)));
    }
    (void)all;
    most = vmaxvq_u16(vmaxq_u16(wide[0], wide[1]));
    for (; i < n; i++) most = (from[i] & 0x7fffu) > most ? (uint16_t)(from[i] & 0x7fffu) : most;
#else
    for (; i < n; i++) {
        const uint16_t size = from[i] & 0x7fffu;
        all[i % 32] = size > all[i % 32] ? size : all[i % 32];
    }
    for (i = 0; i < 32; i++) most = all[i] > most ? all[i] : most;
#endif
    return kern_bf16_to(most);
}

LANES_TARGET static float LANES(quantise)(const uint16_t *from, uint8_t *to, size_t n, bool f8, bool past)
{
    const float steps = f8 ? F8_MOST : STEPS;
    const float largest = LANES(largest)(from, n);
    const V inverse = LANES(set)(largest > 0 ? steps / largest : 0);
    size_t i = 0;
    for (; !f8 && i + 64 <= n; i += 64) LANES(store_i8_64)(to + i, from + i, inverse, past);
    for (; i < n; i += 16) {
        const size_t take = n - i < 16 ? n - i : 16;
        const V v = LANES(mul)(LANES(get)(from, true, i, take), inverse);
        if (f8)
            LANES(store_f8_n)(to + i, v, take);
        else
            LANES(store_i8_n)(to + i, LANES(round)(v), take);
    }
    return largest / steps;
}
#endif
