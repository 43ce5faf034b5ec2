/* attend_aside -- the part of kernels/attend_body.h that reads the turns of a chunk side by side, for sixteen lanes in
 * a register; no include guard, since it is compiled once per instruction set like the rest.
 *
 * Pages lie in no order, so that the processor, which fetches ahead within a page, starts anew in each. Several pages
 * at once, and each line of what comes a chunk later fetched once, evenly over the arithmetic: bursts wait for one
 * another, and without them nothing arrives. */

/* Two keys side by side: sum[4 * key + head]. */
LANES_OP void LANES(score_two)(const struct attend *a, const char *k, size_t head, size_t dim, bool bf16, V *sum)
{
    const size_t wide = attend_wide(dim), step = dim * (bf16 ? 2 : 4), element = LANES_SET == LANES_DOT ? 2 : 4;
    const struct attend near = {.queries = kern_here((char *)a->queries + head * wide * element)};
    KERN_UNROLL
    for (size_t i = 0; i < 8; i++) sum[i] = LANES(set)(0);
    KERN_UNROLL
    for (size_t d = 0; d < dim; d += STEP) {
        const ITEM x = LOAD_ITEM(k, d, dim, bf16), y = LOAD_ITEM(k + step, d, dim, bf16);
        KERN_UNROLL
        for (size_t i = 0; i < 4; i++) {
            ITEM q = QUERY(&near, i, d, wide);
            IN_REGISTER(q);
            sum[i] = MULTIPLY_ADD(q, x, sum[i]);
            sum[4 + i] = MULTIPLY_ADD(q, y, sum[4 + i]);
        }
    }
}

/* Values of two tokens that are in a cache, of two heads. */
LANES_OP void LANES(value_two)(const struct attend *a, const char *row, size_t place, size_t head, size_t dim,
                               bool bf16, V *sum)
{
    const size_t step = dim * (bf16 ? 2 : 4);
#if LANES_SET == LANES_DOT
    const char *weight = LANES(weight_at)(a, head, 4, place);
    ITEM w[2];
    KERN_UNROLL
    for (size_t i = 0; i < 2; i++) {
        int32_t pair;
        memcpy(&pair, weight + 4 * i, sizeof pair);
        w[i] = _mm512_set1_epi32(pair);
    }
    KERN_UNROLL
    for (size_t j = 0; j < 8; j += 2) {
        const ITEM x = LANES(pairs)(row, j * 16, dim), y = LANES(pairs)(row + step, j * 16, dim);
        const ITEM low = _mm512_unpacklo_epi16(x, y), high = _mm512_unpackhi_epi16(x, y);
        KERN_UNROLL
        for (size_t i = 0; i < 2; i++) {
            sum[i * 8 + j] = MULTIPLY_ADD(w[i], low, sum[i * 8 + j]);
            sum[i * 8 + j + 1] = MULTIPLY_ADD(w[i], high, sum[i * 8 + j + 1]);
        }
    }
#else
    for (size_t t = 0; t < 2; t++) {
        const float *weight = LANES(weight_at)(a, head, 4, place + t);
        const V w[2] = {LANES(set)(weight[0]), LANES(set)(weight[1])};
        KERN_UNROLL
        for (size_t j = 0; j < 8; j++) {
            const V x = LOAD_ITEM(row + t * step, j * 16, dim, bf16);
            KERN_UNROLL
            for (size_t i = 0; i < 2; i++) sum[i * 8 + j] = MULTIPLY_ADD(w[i], x, sum[i * 8 + j]);
        }
    }
#endif
}

/* The scores of four heads and the pages of a chunk side by side: two keys of each in turn. What comes later is
 * fetched evenly. */
LANES_OP void LANES(scores_aside)(const struct attend *a, const struct attend_pages *r, size_t head, size_t hn,
                                  size_t dim, bool bf16)
{
    const size_t n = r->n, step = dim * (bf16 ? 2 : 4);
    float *out = a->scores + head * ATTEND_CHUNK;
    for (size_t j = 0; j < n; j += 2) {
        KERN_UNROLL
        for (size_t p = 0; p < ATTEND_TURNS; p++) {
            const size_t place = p * ATTEND_TURN + j;
            const char *key = r->k + r->row[p] + j * step;
            V s[8];
            if (head == 0) LANES(fetch)(r->k + r->later[p] + j * step, 2 * step);
            if (hn == 1) {
                LANES(score_row)(a, NULL, key, 0, 1, dim, bf16, s);
                LANES(score_row)(a, NULL, key + step, 0, 1, dim, bf16, s + 1);
                out[place] = LANES(sum)(s[0]) * a->scale;
                out[place + 1] = LANES(sum)(s[1]) * a->scale;
            } else {
                LANES(score_two)(a, key, head, dim, bf16, s);
                LANES(store_sums_4)(out + 4 * place, s, a->scale);
                LANES(store_sums_4)(out + 4 * place + 4, s + 4, a->scale);
            }
        }
    }
    for (size_t p = 0; p < ATTEND_TURNS; p++)
        for (size_t i = n * hn; i < ATTEND_TURN * hn; i++) out[p * ATTEND_TURN * hn + i] = -3e38F;
}

/* The values, of one head or of two of four. */
LANES_OP void LANES(values_aside)(const struct attend *a, const struct attend_pages *r, size_t head, size_t hn,
                                  size_t dim, bool bf16)
{
    const size_t n = r->n, step = dim * (bf16 ? 2 : 4), wide = attend_wide(dim);
    V sum[16];
    LANES(take)(a, head, 0, hn, 8, wide, sum);
    for (size_t j = 0; j < n; j += 2) {
        KERN_UNROLL
        for (size_t p = 0; p < ATTEND_TURNS; p++) {
            const size_t place = p * ATTEND_TURN + j;
            const char *value = r->v + r->row[p] + j * step;
            if (head == 0) LANES(fetch)(r->v + r->later[p] + j * step, 2 * step);
            if (hn == 2)
                LANES(value_two)(a, value, place, head, dim, bf16, sum);
            else
                for (size_t t = 0; t < 2; t += LANES(rows)) LANES(value_rows)
            (value + t * step, value + step, LANES(weight_at)(a, 0, 1, place + t), 0, 1, 8, dim, bf16, sum);
        }
    }
    LANES(leave)(a, head, 0, hn, 8, wide, sum);
}

LANES_OP void LANES(pages_of)(const struct attend *from, const struct attend_pages *pages, size_t hn, size_t dim,
                              bool bf16)
{
    const struct attend own = *from, *a = &own;
    const struct attend_pages local = *pages, *r = &local;
    for (size_t h = 0; h < a->room; h += hn) LANES(scores_aside)(a, r, h, hn, dim, bf16);
    for (size_t h = 0; h < a->room; h += hn) LANES(soften)(a, h, ATTEND_CHUNK, hn);
    const size_t each = hn == 1 ? 1 : 2;
    for (size_t h = 0; h < a->room; h += each) LANES(values_aside)(a, r, h, each, dim, bf16);
}
