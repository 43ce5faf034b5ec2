/* int4_body -- rows of weights of 4 bits times activations in two bytes, for aarch64; compiled with SDOT and without
 * it: INT4(x) is a name with the suffix of one, INT4_TARGET stands before its functions, INT4_DOT(sum, x, y) adds
 * products of bytes to four sums, whichever. No include guard. */

/* 32 weights and what they are multiplied by: even ones, odd ones. */
INT4_TARGET KERN_INLINE int32x4_t INT4(both)(int32x4_t sum, uint8x16_t h, const int8_t *x)
{
    const int8x16_t even = vreinterpretq_s8_u8(vandq_u8(h, vdupq_n_u8(15)));
    const int8x16_t odd = vreinterpretq_s8_u8(vshrq_n_u8(h, 4));
    return INT4_DOT(INT4_DOT(sum, even, vld1q_s8(x)), odd, vld1q_s8(x + HALF));
}

/* Rows [j, j + rows) of w times one row of a: a walk through memory each. What lies `ahead` rows on is fetched
 * meanwhile, line after line. */
INT4_TARGET KERN_INLINE void INT4(rows)(const struct kern_call *c, size_t i, size_t j, size_t rows, size_t ahead)
{
    enum { PART = 16 };
    const size_t n = at(c->shape, N), groups = groups_of(c->shape), bytes = row_bytes(c->shape);
    const uint8_t *w = (const uint8_t *)c->buffer[W] + j * bytes;
    const uint16_t *scale = (const uint16_t *)c->buffer[SCALES] + j * groups;
    const int8_t *x = (const int8_t *)c->buffer[BYTES] + 2 * i * groups * GROUP;
    const float *factor = (const float *)c->buffer[FACTORS] + 2 * i * groups;
    float32x4_t sum[4];
    float less[4] = {0, 0, 0, 0};
    KERN_UNROLL
    for (size_t r = 0; r < rows; r++) sum[r] = vdupq_n_f32(0);
    for (size_t g = 0; g < groups; g++, x += 2 * GROUP) {
        const size_t left = bytes - g * HALF;
        __builtin_prefetch(scale + ahead * groups + g * rows, 0, 2);
        KERN_UNROLL
        for (size_t r = 0; r < rows; r++) {
            const uint8_t *from = w + r * bytes + g * HALF;
            uint8_t part[HALF];
            int32x4_t high = vdupq_n_s32(0);
            __builtin_prefetch(w + ahead * bytes + (g * rows + r) * HALF, 0, 2);
            if (left < HALF) {
                memset(part, 0, sizeof part);
                memcpy(part, from, left);
                from = part;
            }
            KERN_UNROLL
            for (size_t p = 0; p < HALF; p += PART) high = INT4(both)(high, vld1q_u8(from + p), x + p);
            int32x4_t whole = vshlq_n_s32(high, LOW_BITS);
            KERN_UNROLL
            for (size_t p = 0; p < HALF; p += PART) whole = INT4(both)(whole, vld1q_u8(from + p), x + GROUP + p);
            const float f = scale_of(scale[r * groups + g]) * factor[g];
            sum[r] = vfmaq_n_f32(sum[r], vcvtq_f32_s32(whole), f);
            less[r] += f * factor[groups + g];
        }
    }
    KERN_UNROLL
    for (size_t r = 0; r < rows; r++)
        ((uint16_t *)c->buffer[C])[i * n + j + r] = kern_bf16_from(vaddvq_f32(sum[r]) - less[r]);
}

INT4_TARGET static void INT4(run)(const struct kern_call *c)
{
    enum { ROWS = 4, AHEAD_BYTES = 1 << 13 };
    const size_t m = at(c->shape, M), n = at(c->shape, N), k = at(c->shape, K), groups = groups_of(c->shape);
    for (size_t i = 0; i < m; i++)
        quantise((const uint16_t *)c->buffer[A] + i * k, k, groups, (int8_t *)c->buffer[BYTES] + 2 * i * groups * GROUP,
                 (float *)c->buffer[FACTORS] + 2 * i * groups);
    const size_t block = ROWS * row_bytes(c->shape), ahead = (AHEAD_BYTES + block - 1) / block * ROWS;
    size_t j = 0;
    for (; j + ROWS <= n; j += ROWS)
        for (size_t i = 0; i < m; i++) INT4(rows)(c, i, j, ROWS, ahead);
    for (; j < n; j++)
        for (size_t i = 0; i < m; i++) INT4(rows)(c, i, j, 1, ahead);
}
