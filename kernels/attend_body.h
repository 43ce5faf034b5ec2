/* attend_body -- one chunk of attention over a cache; compiled per instruction set, see kernels/lanes.h. */

/* -- scores: hn heads times tn tokens -- */

LANES_OP void LANES(put_scores)(const struct attend *a, const V *sum, size_t head, size_t t, size_t hn, size_t tn)
{
    float whole[16];
    if (hn * tn == 16) {
        LANES(store)(whole, LANES(mul)(LANES(sums_16)(sum), LANES(set)(a->scale)));
    } else {
        KERN_UNROLL
        for (size_t i = 0; i < hn * tn; i++) whole[i] = LANES(sum)(sum[i]) * a->scale;
    }
    KERN_UNROLL
    for (size_t i = 0; i < hn; i++) memcpy(a->weights + (head + i) * ATTEND_CHUNK + t, whole + i * tn, tn * 4);
}

/* The rows that follow, as far as those at work go. */
LANES_OP void LANES(fetch_rows)(const char *const *next, size_t t, size_t tn, size_t bytes)
{
    for (size_t j = 0; j < tn; j++)
        for (size_t i = 0; i < bytes; i += ATTEND_LINE) LANES(prefetch)(next[t + j] + i);
}

#if LANES_SET == LANES_DOT
LANES_OP __m512i LANES(pairs)(const char *row, size_t d, size_t dim)
{
    const uint16_t *at = (const uint16_t *)(const void *)row + d;
    return dim - d >= 32 ? _mm512_loadu_si512(at) : _mm512_maskz_loadu_epi16((1u << (dim - d)) - 1u, at);
}

LANES_OP void LANES(score_tile)(const struct attend *a, const struct attend_rows *r, size_t head, size_t t, size_t hn,
                                size_t tn, bool bf16)
{
    V sum[16];
    (void)bf16;
    KERN_UNROLL
    for (size_t i = 0; i < hn * tn; i++) sum[i] = LANES(set)(0);
    for (size_t d = 0; d < a->dim; d += 32) {
        __m512i k[16];
        KERN_UNROLL
        for (size_t j = 0; j < tn; j++) k[j] = LANES(pairs)(r->k[t + j], d, a->dim);
        KERN_UNROLL
        for (size_t i = 0; i < hn; i++) {
            const __m512i q = LANES(pairs)((const char *)a->q + 2 * (head + i) * a->dim, d, a->dim);
            KERN_UNROLL
            for (size_t j = 0; j < tn; j++)
                sum[i * tn + j].v = _mm512_dpbf16_ps(sum[i * tn + j].v, (__m512bh)q, (__m512bh)k[j]);
        }
    }
    LANES(put_scores)(a, sum, head, t, hn, tn);
}
#else
LANES_OP void LANES(score_tile)(const struct attend *a, const struct attend_rows *r, size_t head, size_t t, size_t hn,
                                size_t tn, bool bf16)
{
    const size_t wide = attend_wide(a->dim);
    V sum[16];
    KERN_UNROLL
    for (size_t i = 0; i < hn * tn; i++) sum[i] = LANES(set)(0);
    for (size_t d = 0; d < a->dim; d += 16) {
        const size_t n = a->dim - d < 16 ? a->dim - d : 16;
        V k[16];
        KERN_UNROLL
        for (size_t j = 0; j < tn; j++) k[j] = LANES(get)(r->k[t + j], bf16, d, n);
        KERN_UNROLL
        for (size_t i = 0; i < hn; i++) {
            const V q = LANES(load)(a->queries + (head + i) * wide + d);
            KERN_UNROLL
            for (size_t j = 0; j < tn; j++) sum[i * tn + j] = LANES(fma)(q, k[j], sum[i * tn + j]);
        }
    }
    LANES(put_scores)(a, sum, head, t, hn, tn);
}
#endif

LANES_OP void LANES(scores)(const struct attend *a, const struct attend_rows *r, const struct attend_rows *next,
                            bool bf16)
{
    const size_t bytes = a->dim * (bf16 ? 2 : 4);
    for (size_t t = 0; t < r->n; t += 16) {
        size_t h = 0;
        if (next) LANES(fetch_rows)(next->k, t, 16, bytes);
#if LANES_WIDE == 16
        for (; h + 4 <= a->heads; h += 4)
            for (size_t j = 0; j < 16; j += 4) LANES(score_tile)(a, r, h, t + j, 4, 4, bf16);
        for (; h + 2 <= a->heads; h += 2)
            for (size_t j = 0; j < 16; j += 8) LANES(score_tile)(a, r, h, t + j, 2, 8, bf16);
        for (; h < a->heads; h++) LANES(score_tile)(a, r, h, t, 1, 16, bf16);
#else
        for (; h + 2 <= a->heads; h += 2)
            for (size_t j = 0; j < 16; j += 2) LANES(score_tile)(a, r, h, t + j, 2, 2, bf16);
        for (; h < a->heads; h++)
            for (size_t j = 0; j < 16; j += 4) LANES(score_tile)(a, r, h, t + j, 1, 4, bf16);
#endif
    }
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

#if LANES_SET == LANES_DOT
/* Pairs of tokens; the interleaving leaves elements of 32 as 0-3 8-11 16-19 24-27, 4-7 12-15 ..., until the end. */
LANES_OP void LANES(value_tile)(const struct attend *a, size_t split, const struct attend_rows *r, size_t head,
                                size_t d, size_t hn, size_t dn, bool bf16)
{
    const size_t wide = attend_wide(a->value_dim);
    float *out = a->state[split].out + head * wide + d;
    V sum[16];
    (void)bf16;
    KERN_UNROLL
    for (size_t i = 0; i < hn * dn; i++)
        sum[i] = LANES(mul)(LANES(load)(out + i / dn * wide + i % dn * 16), LANES(set)(a->shrink[head + i / dn]));
    for (size_t t = 0; t < r->n; t += 2) {
        __m512i v[8];
        KERN_UNROLL
        for (size_t j = 0; j < dn; j += 2) {
            const __m512i x = LANES(pairs)(r->v[t], d + j * 16, a->value_dim);
            /* a token behind the last has no weight, but what it holds may be no number */
            const __m512i y =
                t + 1 < r->n ? LANES(pairs)(r->v[t + 1], d + j * 16, a->value_dim) : _mm512_setzero_si512();
            v[j] = _mm512_unpacklo_epi16(x, y);
            v[j + 1] = _mm512_unpackhi_epi16(x, y);
        }
        KERN_UNROLL
        for (size_t i = 0; i < hn; i++) {
            int32_t pair;
            memcpy(&pair, a->halves + (head + i) * ATTEND_CHUNK + t, sizeof pair);
            const __m512i p = _mm512_set1_epi32(pair);
            KERN_UNROLL
            for (size_t j = 0; j < dn; j++)
                sum[i * dn + j].v = _mm512_dpbf16_ps(sum[i * dn + j].v, (__m512bh)p, (__m512bh)v[j]);
        }
    }
    KERN_UNROLL
    for (size_t i = 0; i < hn * dn; i++) LANES(store)(out + i / dn * wide + i % dn * 16, sum[i]);
}
#else
LANES_OP void LANES(value_tile)(const struct attend *a, size_t split, const struct attend_rows *r, size_t head,
                                size_t d, size_t hn, size_t dn, bool bf16)
{
    const size_t wide = attend_wide(a->value_dim);
    float *out = a->state[split].out + head * wide + d;
    V sum[16];
    KERN_UNROLL
    for (size_t i = 0; i < hn * dn; i++)
        sum[i] = LANES(mul)(LANES(load)(out + i / dn * wide + i % dn * 16), LANES(set)(a->shrink[head + i / dn]));
    const size_t last = d + dn * 16 <= a->value_dim ? 16 : a->value_dim - (d + (dn - 1) * 16);
    for (size_t t = 0; t < r->n; t++) {
        V v[8];
        KERN_UNROLL
        for (size_t j = 0; j < dn; j++) v[j] = LANES(get)(r->v[t], bf16, d + j * 16, j + 1 < dn ? 16 : last);
        KERN_UNROLL
        for (size_t i = 0; i < hn; i++) {
            const V p = LANES(set)(a->weights[(head + i) * ATTEND_CHUNK + t]);
            KERN_UNROLL
            for (size_t j = 0; j < dn; j++) sum[i * dn + j] = LANES(fma)(p, v[j], sum[i * dn + j]);
        }
    }
    KERN_UNROLL
    for (size_t i = 0; i < hn * dn; i++) LANES(store)(out + i / dn * wide + i % dn * 16, sum[i]);
}
#endif

/* dn times sixteen elements of all heads. */
LANES_OP void LANES(value_column)(const struct attend *a, size_t split, const struct attend_rows *r, size_t d,
                                  size_t dn, bool bf16)
{
    size_t h = 0;
#if LANES_WIDE == 16
    for (; h + 4 <= a->heads; h += 4) LANES(value_tile)(a, split, r, h, d, 4, dn, bf16);
#endif
    for (; h + 2 <= a->heads; h += 2) LANES(value_tile)(a, split, r, h, d, 2, dn, bf16);
    for (; h < a->heads; h++) LANES(value_tile)(a, split, r, h, d, 1, dn, bf16);
}

LANES_OP void LANES(values)(const struct attend *a, size_t split, const struct attend_rows *r,
                            const struct attend_rows *next, bool bf16)
{
    enum { WIDE = LANES_WIDE == 16 ? 4 : 2, LEAST = LANES_SET == LANES_DOT ? 2 : 1 };
    const size_t bytes = a->value_dim * (bf16 ? 2 : 4);
    size_t d = 0, fetched = 0;
    while (d < a->value_dim) {
        const size_t left = a->value_dim - d, dn = left >= WIDE * 16 ? WIDE : LEAST;
        const size_t until = left <= dn * 16 ? ATTEND_CHUNK : (d + dn * 16) * ATTEND_CHUNK / a->value_dim;
        if (next && next->v != next->k) LANES(fetch_rows)(next->v, fetched, until - fetched, bytes);
        fetched = until;
        if (dn == WIDE)
            LANES(value_column)(a, split, r, d, WIDE, bf16);
        else
            LANES(value_column)(a, split, r, d, LEAST, bf16);
        d += dn * 16;
    }
}

LANES_TARGET static void LANES(chunk)(const struct attend *a, size_t split, const struct attend_rows *r,
                                      const struct attend_rows *next)
{
    if (a->bf16) {
        LANES(scores)(a, r, next, true);
        LANES(soften)(a, split, r->n);
        LANES(values)(a, split, r, next, true);
        return;
    }
#if LANES_SET != LANES_DOT
    LANES(scores)(a, r, next, false);
    LANES(soften)(a, split, r->n);
    LANES(values)(a, split, r, next, false);
#endif
}

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
            if (left > 16)
                LANES(put)
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
