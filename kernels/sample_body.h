/* sample_body -- walks over a row of logits; compiled per instruction set, see kernels/lanes.h. */

#if !LANES_PAIRS /* which has nothing that this needs */
/* Bit i: lane i of a is greater than that of b. */
LANES_OP uint32_t LANES(above_mask)(V a, V b)
{
#if LANES_SET == LANES_AVX512
    return _mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ);
#elif LANES_SET == LANES_AVX2
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(a.a, b.a, _CMP_GT_OQ)) |
           (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(a.b, b.b, _CMP_GT_OQ)) << 8;
#elif LANES_SET == LANES_NEON
    static const uint16_t BITS[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    const uint16x8_t bits = vld1q_u16(BITS);
    const uint16x8_t low = vcombine_u16(vmovn_u32(vcgtq_f32(a.a, b.a)), vmovn_u32(vcgtq_f32(a.b, b.b)));
    const uint16x8_t high = vcombine_u16(vmovn_u32(vcgtq_f32(a.c, b.c)), vmovn_u32(vcgtq_f32(a.d, b.d)));
    return vaddvq_u16(vaddq_u16(vandq_u16(low, bits), vshlq_n_u16(vandq_u16(high, bits), 8)));
#else
    uint32_t bits = 0;
    for (uint32_t i = 0; i < 16; i++) bits |= (uint32_t)(a.v[i] > b.v[i]) << i;
    return bits;
#endif
}

/* The largest of a row; NAN where it has one, or +inf. */
LANES_OP float LANES(most_of)(const struct row *row)
{
    V most[2] = {LANES(set)(-(float)INFINITY), LANES(set)(-(float)INFINITY)};
    size_t i = 0, good = 0;
    for (; i + 32 <= row->n; i += 32) {
        uint32_t all = 0xffffu;
        KERN_UNROLL
        for (size_t j = 0; j < 2; j++) {
            const V v = LANES(get)(row->logits, row->bf16, i + 16 * j, 16);
            most[j] = LANES(max)(most[j], v);
            all &= LANES(above_mask)(LANES(set)((float)INFINITY), v);
        }
        good += all == 0xffffu; /* a NAN is not below either */
    }
    float rest = LANES(most)(LANES(max)(most[0], most[1]));
    bool bad = good != i / 32;
    for (; i < row->n; i++) {
        const float z = logit(row, i);
        bad = bad || !(z < (float)INFINITY);
        rest = z > rest ? z : rest;
    }
    return bad ? (float)NAN : rest;
}

/* The sum of the weights of 16 tokens: sample_weight, lane by lane. */
LANES_OP uint64_t LANES(weigh)(V z, const struct row *row)
{
#if LANES_SET == LANES_PORTABLE
    uint64_t sum = 0;
    for (size_t i = 0; i < 16; i++) sum += sample_weight(z.v[i], row->most, row->scale);
    return sum;
#else
    const V x = LANES(mul)(LANES(sub)(z, LANES(set)(row->most)), LANES(set)(row->scale));
    const V n = LANES(round)(x), r = LANES(sub)(x, n);
    V p = LANES(set)(SAMPLE_EXP2_7);
    p = LANES(add)(LANES(mul)(p, r), LANES(set)(SAMPLE_EXP2_6));
    p = LANES(add)(LANES(mul)(p, r), LANES(set)(SAMPLE_EXP2_5));
    p = LANES(add)(LANES(mul)(p, r), LANES(set)(SAMPLE_EXP2_4));
    p = LANES(add)(LANES(mul)(p, r), LANES(set)(SAMPLE_EXP2_3));
    p = LANES(add)(LANES(mul)(p, r), LANES(set)(SAMPLE_EXP2_2));
    p = LANES(add)(LANES(mul)(p, r), LANES(set)(SAMPLE_EXP2_1));
    p = LANES(add)(LANES(mul)(p, r), LANES(set)(1));
#if LANES_SET == LANES_AVX512
    const __mmask16 some = _mm512_cmp_ps_mask(x.v, _mm512_set1_ps(SAMPLE_LEAST), _CMP_GT_OQ);
    const __m512 w = _mm512_maskz_scalef_ps(some, p.v, _mm512_add_ps(n.v, _mm512_set1_ps(SAMPLE_ONE)));
    return (uint64_t)_mm512_reduce_add_epi64(_mm512_add_epi64(_mm512_cvttps_epu64(_mm512_castps512_ps256(w)),
                                                              _mm512_cvttps_epu64(_mm512_extractf32x8_ps(w, 1))));
#elif LANES_SET == LANES_NEON
    const float32x4_t part[4][3] = {{x.a, n.a, p.a}, {x.b, n.b, p.b}, {x.c, n.c, p.c}, {x.d, n.d, p.d}};
    uint64x2_t sum = vdupq_n_u64(0);
    KERN_UNROLL
    for (int h = 0; h < 4; h++) {
        const uint32x4_t some = vcgtq_f32(part[h][0], vdupq_n_f32(SAMPLE_LEAST));
        const uint32x4_t bits = vreinterpretq_u32_f32(part[h][2]);
        const int32x4_t power = vreinterpretq_s32_u32(vshrq_n_u32(bits, 23));
        const int32x4_t shift = /* whatever it is where there is nothing to shift */
            vaddq_s32(vaddq_s32(power, vdupq_n_s32(SAMPLE_SHIFT - 127)), vcvtnq_s32_f32(part[h][1]));
        const uint32x4_t fraction =
            vandq_u32(some, vorrq_u32(vandq_u32(bits, vdupq_n_u32(0x7fffff)), vdupq_n_u32(0x800000)));
        /* a shift by a negative number is one to the right */
        sum = vaddq_u64(sum, vshlq_u64(vmovl_u32(vget_low_u32(fraction)), vmovl_s32(vget_low_s32(shift))));
        sum = vaddq_u64(sum, vshlq_u64(vmovl_high_u32(fraction), vmovl_high_s32(shift)));
    }
    return vaddvq_u64(sum);
#else
    const __m256 half[2][3] = {{x.a, n.a, p.a}, {x.b, n.b, p.b}};
    __m256i sum = _mm256_setzero_si256();
    uint64_t lane[4];
    for (int h = 0; h < 2; h++) {
        const __m256i some = _mm256_castps_si256(_mm256_cmp_ps(half[h][0], _mm256_set1_ps(SAMPLE_LEAST), _CMP_GT_OQ));
        const __m256i bits = _mm256_castps_si256(half[h][2]);
        const __m256i shift =
            _mm256_add_epi32(_mm256_add_epi32(_mm256_srli_epi32(bits, 23), _mm256_set1_epi32(SAMPLE_SHIFT - 127)),
                             _mm256_cvtps_epi32(half[h][1]));
        const __m256i fraction = _mm256_and_si256(
            some, _mm256_or_si256(_mm256_and_si256(bits, _mm256_set1_epi32(0x7fffff)), _mm256_set1_epi32(0x800000)));
        for (int q = 0; q < 2; q++) { /* a shift by a negative number gives 0, one by 0 the same both ways */
            const __m256i f =
                _mm256_cvtepu32_epi64(q ? _mm256_extracti128_si256(fraction, 1) : _mm256_castsi256_si128(fraction));
            const __m256i s =
                _mm256_cvtepi32_epi64(q ? _mm256_extracti128_si256(shift, 1) : _mm256_castsi256_si128(shift));
            const __m256i right = _mm256_srlv_epi64(f, _mm256_sub_epi64(_mm256_setzero_si256(), s));
            sum = _mm256_add_epi64(sum, _mm256_or_si256(_mm256_sllv_epi64(f, s), right));
        }
    }
    _mm256_storeu_si256((__m256i *)(void *)lane, sum);
    return lane[0] + lane[1] + lane[2] + lane[3];
#endif
#endif
}

/* What tokens [from, to) weigh. */
LANES_OP uint64_t LANES(sum_of)(const struct row *row, size_t from, size_t to)
{
    uint64_t sum = 0;
    size_t i = from;
    for (; i + 16 <= to; i += 16) sum += LANES(weigh)(LANES(get)(row->logits, row->bf16, i, 16), row);
    for (; i < to; i++) sum += sample_weight(logit(row, i), row->most, row->scale);
    return sum;
}

/* Puts tokens from *from on whose logits are above bound into the list, until all are seen or less than 16 more fit. */
LANES_OP void LANES(gather_of)(const struct row *row, size_t *from, float bound, struct item *list, size_t *n,
                               size_t room)
{
    const V least = LANES(set)(bound);
    size_t i = *from;
    for (; i + 16 <= row->n && *n + 16 <= room; i += 16)
        for (uint32_t bits = LANES(above_mask)(LANES(get)(row->logits, row->bf16, i, 16), least); bits;
             bits &= bits - 1) {
            const size_t token = i + (size_t)__builtin_ctz(bits);
            list[(*n)++] = item_of(logit(row, token), token);
        }
    for (; i + 16 > row->n && i < row->n && *n < room; i++)
        if (logit(row, i) > bound) list[(*n)++] = item_of(logit(row, i), i);
    *from = i;
}

LANES_TARGET static float LANES(row_most)(const struct row *row) { return LANES(most_of)(row); }
LANES_TARGET static uint64_t LANES(row_sum)(const struct row *row, size_t from, size_t to)
{
    return LANES(sum_of)(row, from, to);
}
LANES_TARGET static void LANES(row_gather)(const struct row *row, size_t *from, float bound, struct item *list,
                                           size_t *n, size_t room)
{
    LANES(gather_of)(row, from, bound, list, n, room);
}
static const struct walks LANES(WALKS) = {LANES(row_most), LANES(row_sum), LANES(row_gather)};
#endif
