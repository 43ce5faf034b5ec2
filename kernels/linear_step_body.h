/* linear_step_body -- rows of a head's state, one token on; compiled per instruction set, see kernels/lanes.h. */

/* Rows [p, p + rows) of a head, elements [i, i + take) of each: what the decayed state answers to the key. */
LANES_OP void LANES(answer)(const struct linear_head *h, size_t p, size_t rows, size_t i, size_t take, bool narrow,
                            V *sum)
{
    const V k = LANES(mul)(LANES(load_n)(h->key + i, take), LANES(load_n)(h->decay + i, take));
    KERN_UNROLL
    for (size_t r = 0; r < rows; r++)
        sum[r] = LANES(fma)(LANES(get)(h->state, narrow, (p + r) * h->width + i, take), k, sum[r]);
}

/* The state decayed and with key times input added, and its product with the query. */
LANES_OP void LANES(update)(const struct linear_head *h, size_t p, size_t rows, size_t i, size_t take, bool narrow,
                            V *sum)
{
    const V k = LANES(load_n)(h->key + i, take), q = LANES(load_n)(h->query + i, take);
    const V decay = LANES(load_n)(h->decay + i, take);
    KERN_UNROLL
    for (size_t r = 0; r < rows; r++) {
        const size_t at_state = (p + r) * h->width + i;
        V v = LANES(mul)(LANES(get)(h->state, narrow, at_state, take), decay);
        v = LANES(fma)(k, LANES(set)(h->input[p + r]), v);
        LANES(put)(h->state, narrow, at_state, v, take);
        sum[r] = LANES(fma)(v, q, sum[r]);
    }
}

LANES_OP void LANES(linear_rows)(const struct linear_head *h, size_t p, size_t rows, bool narrow, bool delta)
{
    V sum[4];
    size_t i = 0;
    const size_t bytes = h->width * (narrow ? 2 : 4);
    /* rows side by side are in no order that the processor would follow by itself */
    for (size_t b = 0; b < rows * bytes; b += 64) LANES(prefetch)((const char *)h->state + p * bytes + AHEAD + b);
    KERN_UNROLL
    for (size_t r = 0; r < rows; r++) sum[r] = LANES(set)(0);
    if (delta) {
        for (; i + 16 <= h->width; i += 16) LANES(answer)(h, p, rows, i, 16, narrow, sum);
        if (i < h->width) LANES(answer)(h, p, rows, i, h->width - i, narrow, sum);
        KERN_UNROLL
        for (size_t r = 0; r < rows; r++) {
            h->input[p + r] = h->rate * (h->input[p + r] - LANES(sum)(sum[r]));
            sum[r] = LANES(set)(0);
        }
    }
    for (i = 0; i + 16 <= h->width; i += 16) LANES(update)(h, p, rows, i, 16, narrow, sum);
    if (i < h->width) LANES(update)(h, p, rows, i, h->width - i, narrow, sum);
    KERN_UNROLL
    for (size_t r = 0; r < rows; r++) h->output[p + r] = LANES(sum)(sum[r]);
}

LANES_OP void LANES(linear_head)(const struct linear_head *h, bool narrow, bool delta)
{
    size_t p = 0;
    for (; p + 4 <= h->rows; p += 4) LANES(linear_rows)(h, p, 4, narrow, delta);
    for (; p < h->rows; p++) LANES(linear_rows)(h, p, 1, narrow, delta);
}

#if !LANES_PAIRS /* which has nothing that this needs */
LANES_TARGET static void LANES(step)(const struct linear_head *h, bool narrow, bool delta)
{
    if (narrow && delta)
        LANES(linear_head)(h, true, true);
    else if (narrow)
        LANES(linear_head)(h, true, false);
    else if (delta)
        LANES(linear_head)(h, false, true);
    else
        LANES(linear_head)(h, false, false);
}
#endif
