/* prefill_body -- blocks of queries against chunks of keys; compiled per instruction set, see kernels/lanes.h.
 *
 * Both products are c[rows][CHUNK or PIECE] = a[rows][depth] * b[depth][...]: scores with the keys laid out by depth,
 * values as they are. Elements of a and b are four bytes: one fp32, or a pair of bf16 that neighbours in depth make. */

/* of NEON a piece is four registers, and a factor takes one where it is no pair */
enum {
    LANES(rows_max) = LANES_WIDE == 16 || LANES_SET == LANES_BFDOT ? 6
                      : LANES_ARM                                  ? 4
                                                                   : 3,
    LANES(piece) = LANES_WIDE == 16 ? 4
                   : LANES_ARM      ? 1
                                    : 2
};

LANES_OP void LANES(product)(const float *a, size_t a_step, const float *b, size_t b_step, size_t depth, float *c,
                             size_t c_step, const float *shrink, size_t rows, size_t wide)
{
    V sum[24];
    KERN_UNROLL
    for (size_t r = 0; r < rows; r++) {
        KERN_UNROLL
        for (size_t j = 0; j < wide; j++)
            sum[r * wide + j] =
                shrink ? LANES(mul)(LANES(load)(c + r * c_step + j * 16), LANES(set)(shrink[r])) : LANES(set)(0);
    }
    for (size_t l = 0; l < depth; l++) {
        V v[4];
        KERN_UNROLL
        for (size_t j = 0; j < wide; j++) v[j] = LANES(load)(b + l * b_step + j * 16);
        KERN_UNROLL
        for (size_t r = 0; r < rows; r++) {
            const V x = LANES(set)(a[r * a_step + l]);
            KERN_UNROLL
            for (size_t j = 0; j < wide; j++)
#if LANES_PAIRS
                sum[r * wide + j] = LANES(dot)(x, v[j], sum[r * wide + j]);
#else
                sum[r * wide + j] = LANES(fma)(x, v[j], sum[r * wide + j]);
#endif
        }
    }
    KERN_UNROLL
    for (size_t r = 0; r < rows; r++) {
        KERN_UNROLL
        for (size_t j = 0; j < wide; j++) LANES(store)(c + r * c_step + j * 16, sum[r * wide + j]);
    }
}

/* columns: a multiple of 16. */
LANES_OP void LANES(products)(const float *a, size_t a_step, const float *b, size_t b_step, size_t depth, float *c,
                              size_t c_step, const float *shrink, size_t rows, size_t columns)
{
    const size_t most = LANES(rows_max), piece = LANES(piece);
    size_t j = 0;
    for (size_t wide = piece; j < columns; j += wide * 16) {
        while (wide > 1 && columns - j < wide * 16) wide /= 2;
        for (size_t r = 0, take; r < rows; r += take) {
            const float *s = shrink ? shrink + r : NULL, *from = a + r * a_step;
            float *to = c + r * c_step + j;
            take = rows - r >= most ? most : 1;
            if (take == most && wide == 4)
                LANES(product)(from, a_step, b + j, b_step, depth, to, c_step, s, most, 4);
            else if (take == most && wide == 2)
                LANES(product)(from, a_step, b + j, b_step, depth, to, c_step, s, most, 2);
            else if (take == most)
                LANES(product)(from, a_step, b + j, b_step, depth, to, c_step, s, most, 1);
            else if (wide == piece)
                LANES(product)(from, a_step, b + j, b_step, depth, to, c_step, s, 1, piece);
            else
                for (size_t i = 0; i < wide * 16; i += 16)
                    LANES(product)(from, a_step, b + j + i, b_step, depth, to + i, c_step, s, 1, 1);
        }
    }
}

/* Columns [*from, *to) of n are keys that query t sees, of keys from `first` on. */
LANES_OP void LANES(seen)(const struct prefill *p, size_t t, size_t first, size_t n, size_t *from, size_t *to)
{
    *to = t + 1 > first ? (t + 1 - first < n ? t + 1 - first : n) : 0;
    *from = p->window && t + 1 > first + p->window ? t + 1 - p->window - first : 0;
}

/* Scores of queries [row, end), query 0 at token `token`, on keys [first, first + n), n a multiple of 16: weights in
 * place, masked. What a row does not see is e^-87 of what it sees, or nothing. */
LANES_OP void LANES(soften)(const struct prefill *p, size_t token, size_t row, size_t end, size_t first, size_t n)
{
    const float log2_e = 1.44269504F;
    const V scale = LANES(set)(p->scale * log2_e);
    size_t from, to;
    for (size_t r = row; r < end; r++) {
        float *w = p->scores + r * PREFILL_CHUNK;
        LANES(seen)(p, token + r, first, n, &from, &to);
        p->shrink[r] = 0;
        if (from >= to) continue;
        for (size_t i = 0; i < from; i++) w[i] = -2e38F;
        for (size_t i = to; i < n; i++) w[i] = -2e38F;
        V most = LANES(load)(w);
        for (size_t i = 16; i < n; i += 16) most = LANES(max)(most, LANES(load)(w + i));
        const float found = LANES(most)(most) * p->scale, old = p->most[r];
        p->most[r] = found > old ? found : old;
        p->shrink[r] = old - p->most[r];
    }
    for (size_t r = row; r < end; r += 16) LANES(store)(p->shrink + r, LANES(exp)(LANES(load)(p->shrink + r)));
    for (size_t r = row; r < end; r++) {
        float *w = p->scores + r * PREFILL_CHUNK;
        const V least = LANES(set)(-p->most[r] * log2_e);
        V sum = LANES(set)(0);
        LANES(seen)(p, token + r, first, n, &from, &to);
        if (from >= to) {
            memset(w, 0, n * sizeof *w);
            continue;
        }
        for (size_t i = 0; i < n; i += 16) {
            const V s = LANES(load)(w + i);
            const V x = LANES(fma)(s, scale, least);
#if LANES_PAIRS /* behind what is still read */
            const V v = LANES(exp2_coarse)(x);
            LANES(store_halves)((uint16_t *)(void *)w + i, v, false);
#else
            const V v = LANES(exp2)(x);
            LANES(store)(w + i, v);
#endif
            sum = LANES(add)(sum, v);
        }
        p->sum[r] = p->sum[r] * p->shrink[r] + LANES(sum)(sum);
    }
}

/* Queries [row, end) against the first n keys of a chunk. */
LANES_OP void LANES(rows_against)(const struct prefill *p, size_t token, size_t row, size_t end, size_t chunk, size_t n)
{
    enum { PAIR = LANES_PAIRS ? 2 : 1 };
    const size_t wide = prefill_wide(p->dim), at = chunk * PREFILL_CHUNK * wide;
    float *scores = p->scores + row * PREFILL_CHUNK;
    LANES(products)
    (p->queries + row * wide, wide, p->keys + at, PREFILL_CHUNK, wide / PAIR, scores, PREFILL_CHUNK, NULL, end - row,
     n);
    LANES(soften)(p, token, row, end, chunk * PREFILL_CHUNK, n);
    LANES(products)
    (scores, PREFILL_CHUNK, p->values + at, wide, n / PAIR, p->sums + row * wide, wide, p->shrink + row, end - row,
     wide);
}

/* Queries [token, token + rows) against a chunk, of the last one tile by tile only the pieces that some query of the
 * tile sees. */
LANES_TARGET static void LANES(against)(const struct prefill *p, size_t token, size_t rows, size_t chunk)
{
    const size_t first = chunk * PREFILL_CHUNK, tile = LANES(rows_max);
    if (first + PREFILL_CHUNK <= token + 1) {
        LANES(rows_against)(p, token, 0, rows, chunk, PREFILL_CHUNK);
        return;
    }
    for (size_t r = 0; r < rows; r += tile) {
        const size_t end = r + tile < rows ? r + tile : rows;
        const size_t seen = token + end > first ? (token + end - first + 15) / 16 * 16 : 0;
        if (seen == 0) continue;
        LANES(rows_against)(p, token, r, end, chunk, seen < PREFILL_CHUNK ? seen : PREFILL_CHUNK);
    }
}

#if LANES_SET == LANES_AVX512 || LANES_SET == LANES_DOT
/* Sixteen keys that are there, rows of `bytes`, a multiple of 64, `step` apart: sixteen elements of four bytes of each
 * at a time. */
LANES_OP void LANES(lay_out_keys)(const char *k, size_t step, size_t bytes, uint32_t *keys)
{
    for (size_t d = 0; d < bytes; d += 64) {
        __m512i row[16];
        KERN_UNROLL
        for (size_t j = 0; j < 16; j++) row[j] = _mm512_loadu_si512(k + j * step + d);
        kern_turn_over(row);
        KERN_UNROLL
        for (size_t j = 0; j < 16; j++) _mm512_storeu_si512(keys + (d / 4 + j) * PREFILL_CHUNK, row[j]);
    }
}
#endif

#if LANES_SET == LANES_DOT
/* Elements [d, d + 16) of a row that is there, zeros behind dim. */
LANES_OP __m256i LANES(part)(const uint16_t *row, bool there, size_t d, size_t dim)
{
    const size_t n = !there || d >= dim ? 0 : dim - d < 16 ? dim - d : 16;
    return _mm256_maskz_loadu_epi16(LANES(mask)(n), row + (n ? d : 0));
}
#elif LANES_SET == LANES_BFDOT
LANES_OP uint16x8x2_t LANES(part)(const uint16_t *row, bool there, size_t d, size_t dim)
{
    const size_t n = !there || d >= dim ? 0 : dim - d < 16 ? dim - d : 16;
    uint16_t whole[16] = {0};
    const uint16_t *at = n == 16 ? row + d : whole;
    if (n < 16) memcpy(whole, row + (n ? d : 0), n * sizeof *row);
    return (uint16x8x2_t){{vld1q_u16(at), vld1q_u16(at + 8)}};
}
#endif

#if LANES_PAIRS
/* Tokens i and i + 1 of a chunk; keys NULL: values alone. */
LANES_OP void LANES(lay_out_two)(const struct prefill *p, const uint16_t *k, const uint16_t *v, size_t step, size_t t,
                                 size_t i, uint32_t *keys, uint16_t *values)
{
    const size_t dim = p->dim, wide = prefill_wide(dim);
    for (size_t j = 0; j < 2; j++) {
        const bool there = t + j < p->tokens;
        const size_t later = t + j + LAY_OUT_AHEAD < p->tokens ? (t + j + LAY_OUT_AHEAD) * step : 0;
        for (size_t d = 0; later && d < dim; d += 32) {
            LANES(prefetch)(k + later + d);
            LANES(prefetch)(v + later + d);
        }
        const uint16_t *key = k + (there ? t + j : 0) * step;
        size_t d = keys ? 0 : wide;
        for (; there && d + 2 <= dim; d += 2) memcpy(&keys[d / 2 * PREFILL_CHUNK + i + j], key + d, sizeof *keys);
        for (; d < wide; d += 2) keys[d / 2 * PREFILL_CHUNK + i + j] = there && d < dim ? key[d] : 0;
    }
    const bool first = t < p->tokens, second = t + 1 < p->tokens;
    const uint16_t *x = v + (first ? t : 0) * step, *y = v + (second ? t + 1 : 0) * step;
    for (size_t d = 0; d < wide; d += 16) {
        uint16_t *to = values + (i / 2 * wide + d) * 2;
#if LANES_ARM
        const uint16x8x2_t low = LANES(part)(x, first, d, dim), high = LANES(part)(y, second, d, dim);
        vst2q_u16(to, ((uint16x8x2_t){{low.val[0], high.val[0]}}));
        vst2q_u16(to + 16, ((uint16x8x2_t){{low.val[1], high.val[1]}}));
#else
        const __m512i low = _mm512_cvtepu16_epi32(LANES(part)(x, first, d, dim));
        const __m512i high = _mm512_cvtepu16_epi32(LANES(part)(y, second, d, dim));
        _mm512_storeu_si512(to, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
#endif
    }
}
#endif

/* A chunk's keys by depth, values by token, of one key head; pairs for the dot unit, else fp32. */
LANES_TARGET static void LANES(lay_out)(const struct prefill *p, const void *k, const void *v, size_t step, size_t c)
{
    const size_t dim = p->dim, wide = prefill_wide(dim);
    float *keys = p->keys + c * PREFILL_CHUNK * wide, *values = p->values + c * PREFILL_CHUNK * wide;
#if LANES_PAIRS
    for (size_t i = 0; i < PREFILL_CHUNK; i += 2) {
        const size_t t = c * PREFILL_CHUNK + i, first = t - i % 16;
        const bool whole = LANES_SET == LANES_DOT && first + 16 <= p->tokens && dim % 32 == 0;
#if LANES_SET == LANES_DOT
        if (whole && t == first) LANES(lay_out_keys)
        ((const char *)k + 2 * t * step, 2 * step, 2 * dim, (uint32_t *)(void *)keys + i);
#endif
        LANES(lay_out_two)
        (p, k, v, step, t, i, whole ? NULL : (uint32_t *)(void *)keys, (uint16_t *)(void *)values);
    }
#else
    const size_t bytes = dim * (p->bf16 ? 2 : 4), apart = step * (p->bf16 ? 2 : 4);
    for (size_t i = 0; i < PREFILL_CHUNK; i++) {
        const size_t t = c * PREFILL_CHUNK + i, row = t * step;
        const bool there = t < p->tokens;
        bool laid = false; /* with fifteen others */
        for (size_t b = 0; t + LAY_OUT_AHEAD < p->tokens && b < bytes; b += 64) {
            LANES(prefetch)((const char *)k + (t + LAY_OUT_AHEAD) * apart + b);
            LANES(prefetch)((const char *)v + (t + LAY_OUT_AHEAD) * apart + b);
        }
#if LANES_SET == LANES_AVX512
        laid = !p->bf16 && dim % 16 == 0 && t - i % 16 + 16 <= p->tokens;
        if (laid && i % 16 == 0)
            LANES(lay_out_keys)((const char *)k + t * apart, apart, bytes, (uint32_t *)(void *)keys + i);
#endif
        for (size_t d = 0; d < wide; d += 16) {
            const size_t n = !there || d >= dim ? 0 : dim - d < 16 ? dim - d : 16;
            float key[16] = {0};
            LANES(store)(values + i * wide + d, n ? LANES(get)(v, p->bf16, row + d, n) : LANES(set)(0));
            if (laid) continue;
            if (n) LANES(store)(key, LANES(get)(k, p->bf16, row + d, n));
            for (size_t j = 0; j < 16; j++) keys[(d + j) * PREFILL_CHUNK + i] = key[j];
        }
    }
#endif
}

/* Queries [token, token + rows) of one head against its keys, into out[rows][..], rows `step` elements apart. */
LANES_TARGET static void LANES(block)(const struct prefill *p, const void *q, size_t token, size_t rows, size_t step,
                                      void *out)
{
    const size_t wide = prefill_wide(p->dim), last = token + rows;
    const size_t from = p->window && token + 1 > p->window ? token + 1 - p->window : 0;
    const size_t bytes = p->dim * (p->bf16 ? 2 : 4);
    for (size_t r = 0; r < 2 * rows && token + r < p->tokens; r++) { /* results, and queries of the next block */
        const char *at = (const char *)(r < rows ? out : q) + r * step * (p->bf16 ? 2 : 4);
        for (size_t i = 0; i < bytes; i += 64) LANES(prefetch)(at + i);
    }
    for (size_t r = 0; r < rows; r++) {
        p->most[r] = -3e38F;
        p->sum[r] = 0;
        for (size_t d = 0; d < wide; d += 16) {
            LANES(store)(p->sums + r * wide + d, LANES(set)(0));
            const size_t n = d >= p->dim ? 0 : p->dim - d < 16 ? p->dim - d : 16;
#if LANES_PAIRS
            uint16_t *to = (uint16_t *)(void *)(p->queries + r * wide) + d;
            memset(to, 0, 32);
            memcpy(to, (const uint16_t *)q + r * step + d, n * 2);
#else
            LANES(store)(p->queries + r * wide + d, n ? LANES(get)(q, p->bf16, r * step + d, n) : LANES(set)(0));
#endif
        }
    }
    for (size_t c = from / PREFILL_CHUNK; c * PREFILL_CHUNK < last; c++) LANES(against)(p, token, rows, c);
    for (size_t r = 0; r < rows; r++) {
        const V part = LANES(set)(1 / p->sum[r]);
        for (size_t d = 0; d < p->dim; d += 16) LANES(put)
        (out, p->bf16, r * step + d, LANES(mul)(LANES(load)(p->sums + r * wide + d), part),
         p->dim - d < 16 ? p->dim - d : 16);
    }
}
