/* kv_write_body -- a head's row in bytes with a scale; compiled per instruction set, see kernels/lanes.h. */

#if LANES_SET < LANES_DOT /* which has nothing that this needs */
LANES_OP void LANES(store_i8_n)(uint8_t *p, V v, size_t n)
{
#if LANES_SET == LANES_AVX512
    _mm512_mask_cvtsepi32_storeu_epi8(p, LANES(mask)(n), _mm512_cvtps_epi32(v.v));
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
    _mm512_mask_cvtepi32_storeu_epi8(p, LANES(mask)(n), _mm512_or_si512(code, sign));
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

LANES_TARGET static float LANES(quantise)(const uint16_t *from, uint8_t *to, size_t n, bool f8)
{
    const float steps = f8 ? F8_MOST : STEPS;
    V most = LANES(set)(0);
    for (size_t i = 0; i < n; i += 16) {
        const V v = LANES(get)(from, true, i, n - i < 16 ? n - i : 16);
        most = LANES(max)(most, LANES(max)(v, LANES(sub)(LANES(set)(0), v)));
    }
    const float largest = LANES(most)(most);
    const V inverse = LANES(set)(largest > 0 ? steps / largest : 0);
    for (size_t i = 0; i < n; i += 16) {
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
