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
LANES_OP void LANES(write)(void *y, bool bf16, size_t i, const V *v)
{
    if (bf16) {
        LANES(store_bf16_32)((uint16_t *)y + i, v[0], v[1]);
        return;
    }
    LANES(store)((float *)y + i, v[0]);
    LANES(store)((float *)y + i + 16, v[1]);
}

LANES_OP void LANES(row_of)(const void *x, const void *weight, void *y, bool bf16, size_t row, size_t n)
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
    for (i = 0; i + 32 <= n; i += 32) {
        LANES(read)(x, bf16, row * n + i, v);
        LANES(read)(weight, bf16, i, w);
        KERN_UNROLL
        for (size_t j = 0; j < 2; j++) v[j] = LANES(mul)(LANES(mul)(v[j], scale), w[j]);
        LANES(write)(y, bf16, row * n + i, v);
    }
    for (; i < n; i += 16) {
        const size_t take = n - i < 16 ? n - i : 16;
        v[0] = LANES(mul)(LANES(get)(x, bf16, row * n + i, take), scale);
        LANES(put)(y, bf16, row * n + i, LANES(mul)(v[0], LANES(get)(weight, bf16, i, take)), take);
    }
}

LANES_TARGET static void LANES(rows)(const void *x, const void *weight, void *y, bool bf16, size_t rows, size_t n)
{
    for (size_t row = 0; row < rows; row++)
        if (bf16)
            LANES(row_of)(x, weight, y, true, row, n);
        else
            LANES(row_of)(x, weight, y, false, row, n);
}
