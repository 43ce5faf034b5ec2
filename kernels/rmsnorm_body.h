/* rmsnorm_body -- a row over its root mean square; compiled per instruction set, see kernels/lanes.h. */

/* Elements [i, i + 32) of x as two pieces, in the order in which LANES(write) takes them. */
LANES_OP void LANES(read)(const void *x, bool bf16, size_t i, V *v)
{
    if (bf16) {
        LANES(load_bf16_32)((const uint16_t *)x + i, v, v + 1);
        return;
    }
    v[0] = LANES(load)((const float *)x + i);
    v[1] = LANES(load)((const float *)x + i + 16);
}
LANES_OP void LANES(write)(void *y, bool bf16, size_t i, const V *v, bool past)
{
#if LANES_SET >= LANES_AVX512
    if (past) { /* whole lines, from a buffer that all sets of instructions write alike */
        uint16_t half[32];
        if (bf16) {
            LANES(store_bf16_32)(half, v[0], v[1]);
            _mm512_stream_si512((void *)((uint16_t *)y + i), _mm512_loadu_si512(half));
        } else {
            _mm512_stream_ps((float *)y + i, v[0].v);
            _mm512_stream_ps((float *)y + i + 16, v[1].v);
        }
        return;
    }
#endif
    (void)past;
    if (bf16) {
        LANES(store_bf16_32)((uint16_t *)y + i, v[0], v[1]);
        return;
    }
    LANES(store)((float *)y + i, v[0]);
    LANES(store)((float *)y + i + 16, v[1]);
}

LANES_OP void LANES(row_of)(const void *x, const void *weight, void *y, bool bf16, size_t row, size_t n, bool past)
{
    V sum[4], v[4], w[2];
    size_t i = 0;
    KERN_UNROLL
    for (size_t j = 0; j < 4; j++) sum[j] = LANES(set)(0);
    for (; i + 64 <= n; i += 64) {
        LANES(read)(x, bf16, row * n + i, v);
        LANES(read)(x, bf16, row * n + i + 32, v + 2);
        KERN_UNROLL
        for (size_t j = 0; j < 4; j++) sum[j] = LANES(fma)(v[j], v[j], sum[j]);
    }
    for (; i < n; i += 16) {
        v[0] = LANES(get)(x, bf16, row * n + i, n - i < 16 ? n - i : 16);
        sum[0] = LANES(fma)(v[0], v[0], sum[0]);
    }
    const float squares = LANES(sum)(LANES(add)(LANES(add)(sum[0], sum[1]), LANES(add)(sum[2], sum[3])));
    const V scale = LANES(set)(1 / sqrtf(squares / (float)n + EPSILON));
    /* the next row comes while this one is written, or reading and writing take turns */
    const char *next = (const char *)x + (row + 1) * n * (bf16 ? 2 : 4);
    for (i = 0; i + 32 <= n; i += 32, next += bf16 ? 64 : 128) {
        if (past) LANES(prefetch)(next);
        if (past && !bf16) LANES(prefetch)(next + 64);
        LANES(read)(x, bf16, row * n + i, v);
        LANES(read)(weight, bf16, i, w);
        KERN_UNROLL
        for (size_t j = 0; j < 2; j++) v[j] = LANES(mul)(LANES(mul)(v[j], scale), w[j]);
        LANES(write)(y, bf16, row * n + i, v, past);
    }
    for (; i < n; i += 16) {
        const size_t take = n - i < 16 ? n - i : 16;
        v[0] = LANES(mul)(LANES(get)(x, bf16, row * n + i, take), scale);
        LANES(put)(y, bf16, row * n + i, LANES(mul)(v[0], LANES(get)(weight, bf16, i, take)), take);
    }
}

/* past: rows are whole lines, written past the caches. */
LANES_TARGET static void LANES(rows)(const void *x, const void *weight, void *y, bool bf16, size_t rows, size_t n,
                                     bool past)
{
    for (size_t row = 0; row < rows; row++)
        if (bf16)
            LANES(row_of)(x, weight, y, true, row, n, past);
        else
            LANES(row_of)(x, weight, y, false, row, n, past);
#if LANES_SET >= LANES_AVX512
    if (past) _mm_sfence();
#endif
}
