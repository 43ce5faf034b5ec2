/* mamba2_step_body -- rows of a head's state, one token on; compiled per instruction set, see kernels/lanes.h. */

/* Rows [p, p + rows) of a head, elements [i, i + take) of each: rows share the pieces of b and c. */
LANES_OP void LANES(piece)(const struct head *h, size_t p, size_t rows, size_t i, size_t take, bool bf16, bool narrow,
                           V *sum)
{
    const V b = LANES(get)(h->b, bf16, i, take), c = LANES(get)(h->c, bf16, i, take);
    KERN_UNROLL
    for (size_t r = 0; r < rows; r++) {
        const size_t at_state = (p + r) * h->width + i;
        V v = LANES(mul)(LANES(get)(h->state, narrow, at_state, take), LANES(set)(h->decay));
        v = LANES(fma)(b, LANES(set)(h->input[p + r]), v);
        LANES(put)(h->state, narrow, at_state, v, take);
        sum[r] = LANES(fma)(v, c, sum[r]);
    }
}

/* The same of 32 elements, all of it in bf16. */
LANES_OP void LANES(wide_piece)(const struct head *h, size_t p, size_t rows, size_t i, V *sum)
{
    V b[2], c[2], v[2];
    LANES(load_bf16_32)((const uint16_t *)h->b + i, b, b + 1);
    LANES(load_bf16_32)((const uint16_t *)h->c + i, c, c + 1);
    KERN_UNROLL
    for (size_t r = 0; r < rows; r++) {
        uint16_t *at = (uint16_t *)h->state + (p + r) * h->width + i;
        LANES(load_bf16_32)(at, v, v + 1);
        KERN_UNROLL
        for (size_t j = 0; j < 2; j++) {
            v[j] = LANES(fma)(b[j], LANES(set)(h->input[p + r]), LANES(mul)(v[j], LANES(set)(h->decay)));
            sum[r] = LANES(fma)(v[j], c[j], sum[r]);
        }
        LANES(store_bf16_32)(at, v[0], v[1]);
    }
}

/* Lines [line, line + rows) of the state that comes AHEAD bytes later: rows side by side are in no order that the
 * processor would follow by itself. */
LANES_OP void LANES(fetch)(const struct head *h, size_t p, size_t rows, size_t line, bool narrow)
{
    const char *at = (const char *)h->state + p * h->width * (narrow ? 2 : 4) + AHEAD + line * 64;
    KERN_UNROLL
    for (size_t r = 0; r < rows; r++) LANES(prefetch)(at + r * 64);
}

LANES_OP void LANES(some)(const struct head *h, size_t p, size_t rows, bool bf16, bool narrow)
{
    V sum[4];
    size_t i = 0;
    KERN_UNROLL
    for (size_t r = 0; r < rows; r++) sum[r] = LANES(set)(0);
    for (; bf16 && narrow && i + 32 <= h->width; i += 32) {
        LANES(fetch)(h, p, rows, i / 32 * rows, narrow);
        LANES(wide_piece)(h, p, rows, i, sum);
    }
    for (; i + 16 <= h->width; i += 16) {
        if (!narrow) LANES(fetch)(h, p, rows, i / 16 * rows, narrow);
        LANES(piece)(h, p, rows, i, 16, bf16, narrow, sum);
    }
    if (i < h->width) LANES(piece)(h, p, rows, i, h->width - i, bf16, narrow, sum);
    if (rows == 4) {
        LANES(store_sums_4)(h->output + p, sum, 1);
        return;
    }
    KERN_UNROLL
    for (size_t r = 0; r < rows; r++) h->output[p + r] = LANES(sum)(sum[r]);
}

LANES_OP void LANES(all_rows)(const struct head *h, bool bf16, bool narrow)
{
    const size_t rows = h->rows;
    size_t p = 0;
    for (size_t i = 0; i < rows; i += 16) {
        const size_t take = rows - i < 16 ? rows - i : 16;
        LANES(store_n)(h->input + i, LANES(mul)(LANES(get)(h->x, bf16, i, take), LANES(set)(h->dt)), take);
    }
    for (; p + 4 <= rows; p += 4) LANES(some)(h, p, 4, bf16, narrow);
    for (; p < rows; p++) LANES(some)(h, p, 1, bf16, narrow);
    for (size_t i = 0; i < rows; i += 16) {
        const size_t take = rows - i < 16 ? rows - i : 16;
        const V x = LANES(get)(h->x, bf16, i, take), sum = LANES(load_n)(h->output + i, take);
        LANES(put)(h->y, bf16, i, LANES(fma)(x, LANES(set)(h->d), sum), take);
    }
}

LANES_TARGET static void LANES(step)(const struct head *h, bool bf16, bool narrow)
{
    if (bf16 && narrow)
        LANES(all_rows)(h, true, true);
    else if (bf16)
        LANES(all_rows)(h, true, false);
#if !LANES_PAIRS /* which is for bf16 */
    else if (narrow)
        LANES(all_rows)(h, false, true);
    else
        LANES(all_rows)(h, false, false);
#endif
}
