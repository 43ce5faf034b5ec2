/* attend_body -- one chunk of attention over a cache; compiled per instruction set, see kernels/lanes.h.
 *
 * Inlined with constant sizes for the usual width of a head, so that the loops over a row are written out. */

#if LANES_SET == LANES_DOT
/* 32 elements of a key, a pair in each lane */
enum { STEP_DOT = 32 };
#define STEP STEP_DOT
LANES_OP __m512i LANES(pairs)(const void *row, size_t d, size_t dim)
{
    const uint16_t *at = (const uint16_t *)row + d;
    return dim - d >= 32 ? _mm512_loadu_si512(at) : _mm512_maskz_loadu_epi16((1u << (dim - d)) - 1u, at);
}
#define ITEM __m512i
#define LOAD_ITEM(row, d, dim, bf16) LANES(pairs)(row, d, dim)
#define QUERY(a, h, d, wide) _mm512_loadu_si512((const uint16_t *)(a)->queries + (h) * (wide) + (d))
#define MULTIPLY_ADD(x, y, sum) ((V){_mm512_dpbf16_ps((sum).v, (__m512bh)(x), (__m512bh)(y))})
#else
#define STEP 16
#define ITEM V
#define LOAD_ITEM(row, d, dim, bf16) LANES(get)(row, bf16, d, (dim) - (d) < 16 ? (dim) - (d) : 16)
#define QUERY(a, h, d, wide) LANES(load)((const float *)(a)->queries + (h) * (wide) + (d))
#define MULTIPLY_ADD(x, y, sum) LANES(fma)(x, y, sum)
#endif

LANES_TARGET static void LANES(start)(const struct attend *a, const void *q)
{
    const size_t wide = attend_wide(a->dim), value_wide = attend_wide(a->value_dim);
    for (size_t h = 0; h < a->room; h++) {
        const size_t dim = h < a->heads ? a->dim : 0;
        for (size_t d = 0; d < wide; d++) {
#if LANES_SET == LANES_DOT
            ((uint16_t *)a->queries)[h * wide + d] = d < dim ? ((const uint16_t *)q)[h * dim + d] : 0;
#else
            ((float *)a->queries)[h * wide + d] = d >= dim  ? 0
                                                  : a->bf16 ? kern_bf16_to(((const uint16_t *)q)[h * dim + d])
                                                            : ((const float *)q)[h * dim + d];
#endif
        }
        a->most[h] = -3e38F;
        a->sum[h] = 0;
        for (size_t d = 0; d < value_wide; d++) a->out[h * value_wide + d] = 0;
    }
}

/* -- scores: hn heads times tn tokens; four sums become one piece of a row of scores -- */

/* by_row: each key to its end before the next. */
LANES_OP void LANES(score_tile)(const struct attend *a, const ITEM *q, const char *k, size_t head, size_t at, size_t hn,
                                size_t tn, size_t dim, bool bf16, bool by_row)
{
    (void)bf16;
    const size_t step = a->step, wide = attend_wide(dim), steps = (dim + STEP - 1) / STEP;
    V sum[16];
    KERN_UNROLL
    for (size_t i = 0; i < hn * tn; i++) sum[i] = LANES(set)(0);
    if (by_row) {
        KERN_UNROLL
        for (size_t j = 0; j < tn; j++) {
            KERN_UNROLL_KNOWN
            for (size_t d = 0; d < dim; d += STEP) {
                const ITEM item = LOAD_ITEM(k + j * step, d, dim, bf16);
                KERN_UNROLL
                for (size_t i = 0; i < hn; i++)
                    sum[j * hn + i] =
                        MULTIPLY_ADD(q ? q[i * steps + d / STEP] : QUERY(a, head + i, d, wide), item, sum[j * hn + i]);
            }
        }
    } else {
        for (size_t d = 0; d < dim; d += STEP) {
            ITEM item[4];
            KERN_UNROLL
            for (size_t j = 0; j < tn; j++) item[j] = LOAD_ITEM(k + j * step, d, dim, bf16);
            KERN_UNROLL
            for (size_t i = 0; i < hn; i++) {
                const ITEM x = QUERY(a, head + i, d, wide);
                KERN_UNROLL
                for (size_t j = 0; j < tn; j++) sum[j * hn + i] = MULTIPLY_ADD(x, item[j], sum[j * hn + i]);
            }
        }
    }
    float *out = a->weights + head * a->chunk + at * hn;
    if (hn * tn % 4 == 0) {
        KERN_UNROLL
        for (size_t i = 0; i < hn * tn; i += 4) LANES(store_sums_4)(out + i, sum + i, a->scale);
    } else {
        *out = LANES(sum)(sum[0]) * a->scale;
    }
}

/* Bytes [at, at + n) of what comes later, into the second cache. */
LANES_OP void LANES(fetch)(const struct attend_later *later, size_t at, size_t n)
{
    if (at + n > later->bytes) return;
    KERN_UNROLL_KNOWN
    for (size_t b = 0; b < n; b += 64) LANES(prefetch)(later->from + at + b);
}

/* A piece against hn heads. */
LANES_OP void LANES(score_piece)(const struct attend *a, const struct attend_piece *p, const struct attend_later *later,
                                 size_t head, size_t hn, size_t dim, bool bf16, bool known)
{
    enum { HELD = 16 };
    const size_t step = a->step, steps = (dim + STEP - 1) / STEP, bytes = dim * (bf16 ? 2 : 4);
    const bool held = known && hn * steps <= HELD, many = LANES_WIDE == 16 && !known && a->room > ATTEND_FEW;
    const size_t at_once = hn == 1 || many ? 4 : 1;
    ITEM q[HELD];
    size_t t = 0;
    if (held) {
        KERN_UNROLL
        for (size_t i = 0; i < HELD; i++)
            if (i < hn * steps) q[i] = QUERY(a, head + i / steps, i % steps * STEP, attend_wide(dim));
    }
    for (; t + at_once <= p->n; t += at_once) {
        if (head == 0) {
            KERN_UNROLL
            for (size_t j = 0; j < at_once; j++) LANES(fetch)(later, (t + j) * step, bytes);
        }
        if (hn == 1)
            LANES(score_tile)(a, held ? q : NULL, p->k + t * step, head, p->at + t, 1, 4, dim, bf16, true);
        else if (many)
            LANES(score_tile)(a, NULL, p->k + t * step, head, p->at + t, hn, 4, dim, bf16, false);
        else
            LANES(score_tile)(a, held ? q : NULL, p->k + t * step, head, p->at + t, hn, 1, dim, bf16, true);
    }
    for (; t < p->n && at_once > 1; t++)
        LANES(score_tile)(a, held ? q : NULL, p->k + t * step, head, p->at + t, hn, 1, dim, bf16, true);
    for (t *= hn; t % (4 * hn); t++) a->weights[head * a->chunk + p->at * hn + t] = -3e38F;
}

/* -- scores to weights -- */

LANES_OP void LANES(soften)(const struct attend *a, size_t head, size_t n, size_t hn)
{
    float *w = a->weights + head * a->chunk, lane[16], now[16];
    for (; n % 16; n++) w[n] = -3e38F;
    V most = LANES(load)(w);
    for (size_t t = 16; t < n; t += 16) most = LANES(max)(most, LANES(load)(w + t));
    LANES(store)(lane, most);
    if (hn == 1) lane[0] = LANES(most)(most);
    for (size_t i = 0; i < hn; i++) {
        const float old = a->most[head + i];
        float found = old;
        for (size_t j = i; j < (hn == 1 ? 1 : 16); j += 4) found = lane[j] > found ? lane[j] : found;
        for (size_t j = i; j < 16; j += hn) now[j] = found;
        a->shrink[head + i] = old == found ? 1 : expf(old - found);
        a->most[head + i] = found;
    }
    const V least = LANES(load)(now);
    V sum = LANES(set)(0);
    for (size_t t = 0; t < n; t += 16) {
        const V x = LANES(sub)(LANES(load)(w + t), least);
        const V p = LANES_SET == LANES_DOT ? LANES(exp_coarse)(x) : LANES(exp)(x);
        sum = LANES(add)(sum, p);
#if LANES_SET == LANES_DOT
        /* two tokens of a head side by side */
        const __m512i pairs = _mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
        const __m512 order = hn == 1 ? p.v : _mm512_permutexvar_ps(pairs, p.v);
        _mm256_storeu_si256((__m256i *)(void *)(a->halves + head * a->chunk + t), (__m256i)_mm512_cvtneps_pbh(order));
#else
        LANES(store)(w + t, p);
#endif
    }
    LANES(store)(lane, sum);
    for (size_t i = 0; i < hn; i++) {
        float whole = 0;
        for (size_t j = i; j < 16; j += hn) whole += lane[j];
        a->sum[head + i] = a->sum[head + i] * a->shrink[head + i] + whole;
    }
}

/* -- weighted values: hn heads times dn times sixteen elements -- */

/* Pairs of tokens are interleaved for the dot unit, which leaves elements of 32 as 0-3 8-11 16-19 24-27, 4-7 12-15 ...,
 * until the end. `bytes` of what comes later are fetched for each token, from byte `at` on. */
LANES_OP void LANES(value_tile)(const struct attend *a, const struct attend_piece *p, const struct attend_later *later,
                                size_t at, size_t bytes, size_t head, size_t d, size_t hn, size_t dn, size_t dim,
                                bool bf16)
{
    const size_t end = p->n, wide = attend_wide(dim), step = a->step;
    float *out = a->out + head * wide + d;
    const char *row = p->v;
    V sum[16];
    KERN_UNROLL
    for (size_t i = 0; i < hn * dn; i++) {
        sum[i] = LANES(load)(out + i / dn * wide + i % dn * 16);
        if (p->at == 0) sum[i] = LANES(mul)(sum[i], LANES(set)(a->shrink[head + i / dn]));
    }
#if LANES_SET == LANES_DOT
    const uint16_t *weight = a->halves + head * a->chunk + p->at * hn;
    (void)bf16;
    for (size_t t = 0; t < end; t += 2, row += 2 * step) {
        const bool two = t + 1 < end;
        __m512i x[4], y[4], v[8];
        LANES(fetch)(later, at + t * bytes, 2 * bytes);
        KERN_UNROLL
        for (size_t j = 0; j < dn / 2; j++) x[j] = LANES(pairs)(row, d + j * 32, dim);
        /* a token behind the last has no weight, but what lies there may be no number */
        KERN_UNROLL
        for (size_t j = 0; j < dn / 2; j++)
            y[j] = two ? LANES(pairs)(row + step, d + j * 32, dim) : _mm512_setzero_si512();
        KERN_UNROLL
        for (size_t j = 0; j < dn / 2; j++) {
            v[2 * j] = _mm512_unpacklo_epi16(x[j], y[j]);
            v[2 * j + 1] = _mm512_unpackhi_epi16(x[j], y[j]);
        }
        KERN_UNROLL
        for (size_t i = 0; i < hn; i++) {
            int32_t pair;
            memcpy(&pair, weight + t * hn + 2 * i, sizeof pair);
            const __m512i w = _mm512_set1_epi32(pair);
            KERN_UNROLL
            for (size_t j = 0; j < dn; j++) sum[i * dn + j] = MULTIPLY_ADD(w, v[j], sum[i * dn + j]);
        }
    }
#else
    const float *weight = a->weights + head * a->chunk + p->at * hn;
    for (size_t t = 0; t < end; t++, row += step) {
        V v[8];
        LANES(fetch)(later, at + t * bytes, bytes);
        KERN_UNROLL
        for (size_t j = 0; j < dn; j++) v[j] = LOAD_ITEM(row, d + j * 16, dim, bf16);
        KERN_UNROLL
        for (size_t i = 0; i < hn; i++) {
            const V w = LANES(set)(weight[t * hn + i]);
            KERN_UNROLL
            for (size_t j = 0; j < dn; j++) sum[i * dn + j] = MULTIPLY_ADD(w, v[j], sum[i * dn + j]);
        }
    }
#endif
    KERN_UNROLL
    for (size_t i = 0; i < hn * dn; i++) LANES(store)(out + i / dn * wide + i % dn * 16, sum[i]);
}

LANES_OP void LANES(value_piece)(const struct attend *a, const struct attend_piece *p, const struct attend_later *later,
                                 size_t head, size_t hn, size_t dim, bool bf16)
{
    const size_t most = LANES_WIDE != 16 ? (hn == 1 ? 4 : 1) : hn == 1 ? 8 : 4, least = LANES_SET == LANES_DOT ? 2 : 1;
    const size_t walks = (dim + most * 16 - 1) / (most * 16);
    const size_t bytes = head == 0 ? dim * (bf16 ? 2 : 4) / walks : 0;
    size_t d = 0, at = 0;
    for (; d + most * 16 <= dim; d += most * 16, at += p->n * bytes)
        LANES(value_tile)(a, p, later, at, bytes, head, d, hn, most, dim, bf16);
    for (; d < dim; d += least * 16, at += p->n * bytes)
        LANES(value_tile)(a, p, later, at, bytes, head, d, hn, least, dim, bf16);
}

LANES_OP void LANES(chunk_of)(const struct attend *a, const struct attend_rows *r, const struct attend_rows *next,
                              size_t hn, size_t dim, size_t value_dim, bool bf16, bool known)
{
    for (size_t i = 0; i < r->pieces; i++) {
        const struct attend_later later = attend_after(a, r, next, i);
        for (size_t h = 0; h < a->room; h += hn) LANES(score_piece)(a, &r->piece[i], &later, h, hn, dim, bf16, known);
    }
    for (size_t h = 0; h < a->room; h += hn) LANES(soften)(a, h, r->n * hn, hn);
    for (size_t i = 0; i < r->pieces; i++) {
        const struct attend_later later = attend_after(a, r, next, r->pieces + i);
        for (size_t h = 0; h < a->room; h += hn) LANES(value_piece)(a, &r->piece[i], &later, h, hn, value_dim, bf16);
    }
}

LANES_TARGET static void LANES(chunk)(const struct attend *a, const struct attend_rows *r,
                                      const struct attend_rows *next)
{
    enum { USUAL = 128 };
    const bool usual = LANES_SET != LANES_PORTABLE && a->dim == USUAL && a->value_dim == USUAL;
    const bool bf16 = LANES_SET == LANES_DOT || a->bf16;
    if (usual && a->room == 1 && bf16)
        LANES(chunk_of)(a, r, next, 1, USUAL, USUAL, true, true);
    else if (usual && bf16)
        LANES(chunk_of)(a, r, next, ATTEND_LANES, USUAL, USUAL, true, true);
    else if (usual && a->room == 1)
        LANES(chunk_of)(a, r, next, 1, USUAL, USUAL, false, true);
    else if (usual)
        LANES(chunk_of)(a, r, next, ATTEND_LANES, USUAL, USUAL, false, true);
    else if (a->room == 1)
        LANES(chunk_of)(a, r, next, 1, a->dim, a->value_dim, bf16, false);
    else
        LANES(chunk_of)(a, r, next, ATTEND_LANES, a->dim, a->value_dim, bf16, false);
}

#undef STEP
#undef ITEM
#undef LOAD_ITEM
#undef QUERY
#undef MULTIPLY_ADD

LANES_TARGET static void LANES(finish)(const struct attend *a, void *out)
{
    const size_t wide = attend_wide(a->value_dim);
    for (size_t h = 0; h < a->heads; h++)
        for (size_t d = 0; d < a->value_dim; d += 32) {
            float whole[32], order[32];
            for (size_t j = 0; j < 32; j += 16)
                LANES(store)(whole + j, LANES(div)(LANES(load)(a->out + h * wide + d + j), LANES(set)(a->sum[h])));
            for (size_t i = 0; i < 32; i++)
                order[i] = whole[LANES_SET == LANES_DOT ? i % 8 / 4 * 16 + i / 8 * 4 + i % 4 : i];
            const size_t left = a->value_dim - d;
            LANES(put)(out, a->bf16, h * a->value_dim + d, LANES(load)(order), left < 16 ? left : 16);
            if (left > 16) LANES(put)
            (out, a->bf16, h * a->value_dim + d + 16, LANES(load)(order + 16), left < 32 ? left - 16 : 16);
        }
}

#if LANES_SET == LANES_PORTABLE
const struct attend_code attend_portable = {start_portable, chunk_portable, finish_portable};
#elif LANES_SET == LANES_AVX2
const struct attend_code attend_avx2 = {start_avx2, chunk_avx2, finish_avx2};
#elif LANES_SET == LANES_AVX512
const struct attend_code attend_avx512 = {start_avx512, chunk_avx512, finish_avx512};
#else
const struct attend_code attend_dot = {start_dot, chunk_dot, finish_dot};
#endif
