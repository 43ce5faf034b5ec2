/* kv_write_body -- a head's row in bytes with a scale; compiled per instruction set, see kernels/lanes.h. */

#if LANES_SET < LANES_DOT /* which has nothing that this needs */
LANES_OP void LANES(store_i8_n)(int8_t *p, V v, size_t n)
{
#if LANES_SET == LANES_AVX512
    _mm512_mask_cvtsepi32_storeu_epi8(p, LANES(mask)(n), _mm512_cvtps_epi32(v.v));
#else
    float whole[16];
    LANES(store)(whole, v);
    for (size_t i = 0; i < n; i++) p[i] = (int8_t)whole[i];
#endif
}

LANES_TARGET static float LANES(quantise)(const uint16_t *from, int8_t *to, size_t n)
{
    V most = LANES(set)(0);
    for (size_t i = 0; i < n; i += 16) {
        const V v = LANES(get)(from, true, i, n - i < 16 ? n - i : 16);
        most = LANES(max)(most, LANES(max)(v, LANES(sub)(LANES(set)(0), v)));
    }
    const float largest = LANES(most)(most);
    const V inverse = LANES(set)(largest > 0 ? STEPS / largest : 0);
    for (size_t i = 0; i < n; i += 16) {
        const size_t take = n - i < 16 ? n - i : 16;
        LANES(store_i8_n)(to + i, LANES(round)(LANES(mul)(LANES(get)(from, true, i, take), inverse)), take);
    }
    return largest / STEPS;
}
#endif
