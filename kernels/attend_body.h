/* attend_body -- one chunk of attention over a cache; compiled per instruction set, see kernels/lanes.h.
 *
 * Inlined with constant sizes for the usual widths of a head, so that the loops over a row are written out. */

/* -- scores: hn heads times tn tokens; four sums become one piece of a row of scores -- */

/* Sixteen elements of a key (a pair each, where pairs are multiplied). */
#if LANES_SET == LANES_DOT
enum { STEP_DOT = 32 };
#define STEP STEP_DOT
LANES_OP __m512i LANES(pairs)(const void *row, size_t d, size_t dim)
{
    const uint16_t *at = (const uint16_t *)row + d;
    return dim - d >= 32 ? _mm512_loadu_si512(at) : _mm512_maskz_loadu_epi16((1u << (dim - d)) - 1u, at);
}
#define ITEM __m512i
#define LOAD_ITEM(row, d, dim, bf16) LANES(pairs)(row, d, dim)
#define QUERY(a, h, d, dim) LANES(pairs)((const char *)(a)->q + 2 * (h) * (dim), d, dim)
#define MULTIPLY_ADD(x, y, sum) ((V){_mm512_dpbf16_ps((sum).v, (__m512bh)(x), (__m512bh)(y))})
#else
#define STEP 16
#define ITEM V
#define LOAD_ITEM(row, d, dim, bf16) LANES(get)(row, bf16, d, (dim) - (d) < 16 ? (dim) - (d) : 16)
#define QUERY(a, h, d, dim) LANES(load)((a)->queries + (h)*attend_wide(dim) + (d))
#define MULTIPLY_ADD(x, y, sum) LANES(fma)(x, y, sum)
#endif

LANES_OP void LANES(score_tile)(const struct attend *a, const char *k, const char *next, size_t head, size_t t,
                                size_t hn, size_t tn, size_t dim, bool bf16)
{
    const size_t step = a->step;
    const size_t item_bytes = STEP == 32 || !bf16 ? 64 : 32;
    V sum[16];
    k += t * step;
    next += t * step;
    KERN_UNROLL
    for (size_t i = 0; i < hn * tn; i++) sum[i] = LANES(set)(0);
    KERN_UNROLL_KNOWN
    for (size_t d = 0; d < dim; d += STEP) {
        ITEM item[4];
        KERN_UNROLL
        for (size_t j = 0; j < tn; j++) {
            item[j] = LOAD_ITEM(k + j * step, d, dim, bf16);
            if (head == 0) LANES(prefetch)(next + (d / STEP * tn + j) * item_bytes);
        }
        KERN_UNROLL
        for (size_t i = 0; i < hn; i++) {
            const ITEM q = QUERY(a, head + i, d, dim);
            KERN_UNROLL
            for (size_t j = 0; j < tn; j++) sum[i * tn + j] = MULTIPLY_ADD(q, item[j], sum[i * tn + j]);
        }
    }
    KERN_UNROLL
    for (size_t i = 0; i < hn; i++) {
        float *out = a->weights + (head + i) * ATTEND_CHUNK + t;
        if (tn == 4) {
            LANES(store_sums_4)(out, sum + i * 4, a->scale);
        } else {
            KERN_UNROLL
            for (size_t j = 0; j < tn; j++) out[j] = LANES(sum)(sum[i * tn + j]) * a->scale;
        }
    }
}

/* All heads, tn tokens from t on. */
LANES_OP void LANES(score_row)(const struct attend *a, const struct attend_rows *r, const char *next, size_t t,
                               size_t tn, size_t dim, bool bf16)
{
    size_t h = 0;
#if LANES_WIDE == 16
    for (; h + 4 <= a->heads; h += 4) LANES(score_tile)(a, r->k, next, h, t, 4, tn, dim, bf16);
    for (; h + 2 <= a->heads; h += 2) LANES(score_tile)(a, r->k, next, h, t, 2, tn, dim, bf16);
#endif
    for (; h < a->heads; h++) LANES(score_tile)(a, r->k, next, h, t, 1, tn, dim, bf16);
}

LANES_OP void LANES(scores)(const struct attend *a, const struct attend_rows *r, const struct attend_rows *next,
                            size_t dim, bool bf16)
{
    size_t t = 0;
    for (; t + 4 <= r->n; t += 4) LANES(score_row)(a, r, next->k, t, 4, dim, bf16);
    for (; t < r->n; t++) LANES(score_row)(a, r, next->k, t, 1, dim, bf16);
}

/* -- scores to weights -- */

LANES_OP void LANES(soften)(const struct attend *a, size_t split, size_t n)
{
    const struct attend_state *s = &a->state[split];
    for (size_t h = 0; h < a->heads; h++) {
        float *w = a->weights + h * ATTEND_CHUNK;
        for (size_t t = n; t % 16; t++) w[t] = -3e38F;
        V most = LANES(load)(w);
        for (size_t t = 16; t < n; t += 16) most = LANES(max)(most, LANES(load)(w + t));
        const float old = s->most[h], found = LANES(most)(most), now = found > old ? found : old;
        V sum = LANES(set)(0);
        for (size_t t = 0; t < n; t += 16) {
            const V p = LANES(exp)(LANES(sub)(LANES(load)(w + t), LANES(set)(now)));
            sum = LANES(add)(sum, p);
#if LANES_SET == LANES_DOT
            LANES(store_bf16_n)(a->halves + h * ATTEND_CHUNK + t, p, 16);
#else
            LANES(store)(w + t, p);
#endif
        }
        a->shrink[h] = old == now ? 1 : expf(old - now);
        s->most[h] = now;
        s->sum[h] = s->sum[h] * a->shrink[h] + LANES(sum)(sum);
    }
}

/* -- weighted values: hn heads times dn times sixteen elements -- */

/* Tokens [first, first + ATTEND_STRIP) of the chunk, as far as there are. Pairs of tokens are interleaved, which leaves
 * elements of 32 as 0-3 8-11 16-19 24-27, 4-7 12-15 ..., until the end. */
LANES_OP void LANES(value_tile)(const struct attend *a, size_t split, const struct attend_rows *r, const char *next,
                                size_t first, size_t head, size_t d, size_t hn, size_t dn, size_t dim, bool bf16)
{
    const size_t end = r->n - first < ATTEND_STRIP ? r->n : first + ATTEND_STRIP, wide = attend_wide(dim);
    float *out = a->state[split].out + head * wide + d;
    const size_t step = a->step;
    const char *row = r->v + first * step;
    V sum[16];
    KERN_UNROLL
    for (size_t i = 0; i < hn * dn; i++) {
        sum[i] = LANES(load)(out + i / dn * wide + i % dn * 16);
        if (first == 0) sum[i] = LANES(mul)(sum[i], LANES(set)(a->shrink[head + i / dn]));
    }
    next += first * step + d * (bf16 ? 2 : 4) * ATTEND_STRIP;
#if LANES_SET == LANES_DOT
    const uint16_t *weight = a->halves + head * ATTEND_CHUNK;
    (void)bf16;
    for (size_t t = first; t < end; t += 2, row += 2 * step, next += dn * 64) {
        __m512i v[4];
        KERN_UNROLL
        for (size_t j = 0; j < dn; j += 2) {
            const __m512i x = LANES(pairs)(row, d + j * 16, dim);
            /* a token behind the last has no weight, but what lies there may be no number */
            const __m512i y = t + 1 < end ? LANES(pairs)(row + step, d + j * 16, dim) : _mm512_setzero_si512();
            if (head == 0) {
                LANES(prefetch)(next + j * 64);
                LANES(prefetch)(next + j * 64 + 64);
            }
            v[j] = _mm512_unpacklo_epi16(x, y);
            v[j + 1] = _mm512_unpackhi_epi16(x, y);
        }
        KERN_UNROLL
        for (size_t i = 0; i < hn; i++) {
            int32_t pair;
            memcpy(&pair, weight + i * ATTEND_CHUNK + t, sizeof pair);
            const __m512i p = _mm512_set1_epi32(pair);
            KERN_UNROLL
            for (size_t j = 0; j < dn; j++) sum[i * dn + j] = MULTIPLY_ADD(p, v[j], sum[i * dn + j]);
        }
    }
#else
    const float *weight = a->weights + head * ATTEND_CHUNK;
    const size_t item_bytes = bf16 ? 32 : 64;
    for (size_t t = first; t < end; t++, row += step, next += dn * item_bytes) {
        V v[4];
        KERN_UNROLL
        for (size_t j = 0; j < dn; j++) {
            v[j] = LOAD_ITEM(row, d + j * 16, dim, bf16);
            if (head == 0) LANES(prefetch)(next + j * item_bytes);
        }
        KERN_UNROLL
        for (size_t i = 0; i < hn; i++) {
            const V p = LANES(set)(weight[i * ATTEND_CHUNK + t]);
            KERN_UNROLL
            for (size_t j = 0; j < dn; j++) sum[i * dn + j] = MULTIPLY_ADD(p, v[j], sum[i * dn + j]);
        }
    }
#endif
    KERN_UNROLL
    for (size_t i = 0; i < hn * dn; i++) LANES(store)(out + i / dn * wide + i % dn * 16, sum[i]);
}

/* dn times sixteen elements of all heads. */
LANES_OP void LANES(value_column)(const struct attend *a, size_t split, const struct attend_rows *r, const char *next,
                                  size_t first, size_t d, size_t dn, size_t dim, bool bf16)
{
    size_t h = 0;
#if LANES_WIDE == 16
    for (; h + 4 <= a->heads; h += 4) LANES(value_tile)(a, split, r, next, first, h, d, 4, dn, dim, bf16);
#endif
    for (; h + 2 <= a->heads; h += 2) LANES(value_tile)(a, split, r, next, first, h, d, 2, dn, dim, bf16);
    for (; h < a->heads; h++) LANES(value_tile)(a, split, r, next, first, h, d, 1, dn, dim, bf16);
}

LANES_OP void LANES(values)(const struct attend *a, size_t split, const struct attend_rows *r,
                            const struct attend_rows *next, size_t dim, bool bf16)
{
    const size_t wide = LANES_WIDE == 16 ? 4 : 2, least = LANES_SET == LANES_DOT ? 2 : 1;
    for (size_t first = 0; first < r->n; first += ATTEND_STRIP) {
        size_t d = 0;
        for (; d + wide * 16 <= dim; d += wide * 16)
            LANES(value_column)(a, split, r, next->v, first, d, wide, dim, bf16);
        for (; d < dim; d += least * 16) LANES(value_column)(a, split, r, next->v, first, d, least, dim, bf16);
    }
}

LANES_OP void LANES(chunk_of)(const struct attend *a, size_t split, const struct attend_rows *r,
                              const struct attend_rows *next, size_t dim, size_t value_dim, bool bf16)
{
    LANES(scores)(a, r, next, dim, bf16);
    LANES(soften)(a, split, r->n);
    LANES(values)(a, split, r, next, value_dim, bf16);
}

LANES_TARGET static void LANES(chunk)(const struct attend *a, size_t split, const struct attend_rows *r,
                                      const struct attend_rows *next)
{
    enum { USUAL = 128 };
    const bool usual = LANES_SET != LANES_PORTABLE && a->dim == USUAL && a->value_dim == USUAL;
    if (a->bf16 && usual)
        LANES(chunk_of)(a, split, r, next, USUAL, USUAL, true);
    else if (a->bf16)
        LANES(chunk_of)(a, split, r, next, a->dim, a->value_dim, true);
#if LANES_SET != LANES_DOT
    else if (usual)
        LANES(chunk_of)(a, split, r, next, USUAL, USUAL, false);
    else
        LANES(chunk_of)(a, split, r, next, a->dim, a->value_dim, false);
#endif
}

#undef STEP
#undef ITEM
#undef LOAD_ITEM
#undef QUERY
#undef MULTIPLY_ADD

LANES_TARGET static void LANES(finish)(const struct attend *a, void *out)
{
    const size_t wide = attend_wide(a->value_dim);
    for (size_t h = 0; h < a->heads; h++) {
        float most = a->state[0].most[h], sum = 0, part[ATTEND_SPLITS];
        for (size_t s = 1; s < ATTEND_SPLITS; s++)
            if (a->state[s].most[h] > most) most = a->state[s].most[h];
        for (size_t s = 0; s < ATTEND_SPLITS; s++) {
            part[s] = expf(a->state[s].most[h] - most);
            sum += part[s] * a->state[s].sum[h];
        }
        for (size_t d = 0; d < a->value_dim; d += 32) {
            float whole[32], order[32];
            for (size_t j = 0; j < 32; j += 16) {
                V v = LANES(set)(0);
                for (size_t s = 0; s < ATTEND_SPLITS; s++)
                    v = LANES(fma)(LANES(set)(part[s] / sum), LANES(load)(a->state[s].out + h * wide + d + j), v);
                LANES(store)(whole + j, v);
            }
            for (size_t i = 0; i < 32; i++)
                order[i] = whole[LANES_SET == LANES_DOT ? i % 8 / 4 * 16 + i / 8 * 4 + i % 4 : i];
            const size_t left = a->value_dim - d;
            LANES(put)(out, a->bf16, h * a->value_dim + d, LANES(load)(order), left < 16 ? left : 16);
            if (left > 16) LANES(put)
            (out, a->bf16, h * a->value_dim + d + 16, LANES(load)(order + 16), left < 32 ? left - 16 : 16);
        }
    }
}

#if LANES_SET == LANES_PORTABLE
const struct attend_code attend_portable = {chunk_portable, finish_portable};
#elif LANES_SET == LANES_AVX2
const struct attend_code attend_avx2 = {chunk_avx2, finish_avx2};
#elif LANES_SET == LANES_AVX512
const struct attend_code attend_avx512 = {chunk_avx512, finish_avx512};
#else
const struct attend_code attend_dot = {chunk_dot, finish_dot};
#endif
