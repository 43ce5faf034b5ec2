/* rmsnorm_body -- a row over its root mean square; compiled per instruction set, see kernels/lanes.h. */

LANES_OP void LANES(row_of)(const void *x, const void *weight, void *y, bool bf16, size_t row, size_t n)
{
    V sum[4];
    size_t i = 0;
    KERN_UNROLL
    for (size_t j = 0; j < 4; j++) sum[j] = LANES(set)(0);
    for (; i + 64 <= n; i += 64) {
        KERN_UNROLL
        for (size_t j = 0; j < 4; j++) {
            const V v = LANES(get)(x, bf16, row * n + i + 16 * j, 16);
            sum[j] = LANES(fma)(v, v, sum[j]);
        }
    }
    for (; i < n; i += 16) {
        const V v = LANES(get)(x, bf16, row * n + i, n - i < 16 ? n - i : 16);
        sum[0] = LANES(fma)(v, v, sum[0]);
    }
    const float squares = LANES(sum)(LANES(add)(LANES(add)(sum[0], sum[1]), LANES(add)(sum[2], sum[3])));
    const V scale = LANES(set)(1 / sqrtf(squares / (float)n + EPSILON));
    for (i = 0; i + 16 <= n; i += 16) {
        const V v = LANES(mul)(LANES(get)(x, bf16, row * n + i, 16), scale);
        LANES(put)(y, bf16, row * n + i, LANES(mul)(v, LANES(get)(weight, bf16, i, 16)), 16);
    }
    if (i == n) return;
    const V v = LANES(mul)(LANES(get)(x, bf16, row * n + i, n - i), scale);
    LANES(put)(y, bf16, row * n + i, LANES(mul)(v, LANES(get)(weight, bf16, i, n - i)), n - i);
}

#if LANES_SET < LANES_DOT /* which has nothing that this needs */
LANES_TARGET static void LANES(rows)(const void *x, const void *weight, void *y, bool bf16, size_t rows, size_t n)
{
    for (size_t row = 0; row < rows; row++)
        if (bf16)
            LANES(row_of)(x, weight, y, true, row, n);
        else
            LANES(row_of)(x, weight, y, false, row, n);
}
#endif
