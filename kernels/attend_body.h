/* attend_body -- attention of one token over a part of a cache; compiled per instruction set, see kernels/lanes.h.
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
/* a pair in every lane; of two rows the pairs of elements in the lower and upper half of each quarter */
LANES_OP __m512i LANES(one_pair)(int32_t pair) { return _mm512_set1_epi32(pair); }
LANES_OP __m512i LANES(low)(__m512i x, __m512i y) { return _mm512_unpacklo_epi16(x, y); }
LANES_OP __m512i LANES(high)(__m512i x, __m512i y) { return _mm512_unpackhi_epi16(x, y); }
#elif LANES_SET == LANES_BFDOT
enum { STEP_BFDOT = 32 };
#define STEP STEP_BFDOT
LANES_OP V LANES(pairs)(const void *row, size_t d, size_t dim)
{
    const uint16_t *at = (const uint16_t *)row + d;
    uint16_t whole[32] = {0};
    if (dim - d < 32) at = memcpy(whole, at, (dim - d) * sizeof *at);
    return (V){vreinterpretq_f32_u16(vld1q_u16(at)), vreinterpretq_f32_u16(vld1q_u16(at + 8)),
               vreinterpretq_f32_u16(vld1q_u16(at + 16)), vreinterpretq_f32_u16(vld1q_u16(at + 24))};
}
#define ITEM V
#define LOAD_ITEM(row, d, dim, bf16) LANES(pairs)(row, d, dim)
#define QUERY(a, h, d, wide) LANES(pairs)((const uint16_t *)(a)->queries + (h) * (wide), d, (d) + 32)
#define MULTIPLY_ADD(x, y, sum) LANES(dot)(x, y, sum)
LANES_OP V LANES(one_pair)(int32_t pair)
{
    const float32x4_t v = vreinterpretq_f32_s32(vdupq_n_s32(pair));
    return (V){v, v, v, v};
}
LANES_OP float32x4_t LANES(low_4)(float32x4_t x, float32x4_t y)
{
    return vreinterpretq_f32_u16(vzip1q_u16(vreinterpretq_u16_f32(x), vreinterpretq_u16_f32(y)));
}
LANES_OP float32x4_t LANES(high_4)(float32x4_t x, float32x4_t y)
{
    return vreinterpretq_f32_u16(vzip2q_u16(vreinterpretq_u16_f32(x), vreinterpretq_u16_f32(y)));
}
LANES_OP V LANES(low)(V x, V y)
{
    return (V){LANES(low_4)(x.a, y.a), LANES(low_4)(x.b, y.b), LANES(low_4)(x.c, y.c), LANES(low_4)(x.d, y.d)};
}
LANES_OP V LANES(high)(V x, V y)
{
    return (V){LANES(high_4)(x.a, y.a), LANES(high_4)(x.b, y.b), LANES(high_4)(x.c, y.c), LANES(high_4)(x.d, y.d)};
}
#else
#define STEP 16
#define ITEM V
#define LOAD_ITEM(row, d, dim, bf16) LANES(get)(row, bf16, d, (dim) - (d) < 16 ? (dim) - (d) : 16)
#define QUERY(a, h, d, wide) LANES(load)((const float *)(a)->queries + (h) * (wide) + (d))
#define MULTIPLY_ADD(x, y, sum) LANES(fma)(x, y, sum)
#endif
#define HELD (LANES_ARM ? 4 : 16) /* registers */

/* Item x is read before what comes after it in the code: the order of the lines, which a compiler does not keep. */
#if LANES_SET == LANES_DOT
#define IN_ORDER(x) __asm__ volatile("" : "+v"(x) : : "memory")
#define IN_REGISTER(x) __asm__("" : "+v"(x))
#elif LANES_SET == LANES_AVX512
#define IN_ORDER(x) __asm__ volatile("" : "+v"((x).v) : : "memory")
#define IN_REGISTER(x) __asm__("" : "+v"((x).v))
#elif LANES_SET == LANES_AVX2
#define IN_ORDER(x) __asm__ volatile("" : "+x"((x).a), "+x"((x).b) : : "memory")
#define IN_REGISTER(x) (void)(x)
#elif LANES_ARM
#define IN_ORDER(x) __asm__ volatile("" : "+w"((x).a), "+w"((x).b), "+w"((x).c), "+w"((x).d) : : "memory")
#define IN_REGISTER(x) (void)(x)
#else
#define IN_ORDER(x) (void)(x)
#define IN_REGISTER(x) (void)(x)
#endif

/* Where element d of the query of a head stands: of many heads eights of four stand together, or ones of sixteen. */
LANES_OP size_t LANES(query_at)(const struct attend *a, size_t h, size_t d, size_t wide)
{
    const size_t each = a->many == 4 ? 8 : 1;
    return a->many ? (h / a->many * wide + d / each * each) * a->many + h % a->many * each + d % each : h * wide + d;
}

LANES_TARGET static void LANES(start)(const struct attend *a, const void *q)
{
    const size_t wide = attend_wide(a->dim), value_wide = attend_wide(a->value_dim);
    for (size_t h = 0; h < a->room; h++) {
        const size_t dim = h < a->heads ? a->dim : 0;
        for (size_t d = 0; d < wide; d++) {
            const size_t at = LANES(query_at)(a, h, d, wide);
#if LANES_PAIRS
            ((uint16_t *)a->queries)[at] = d < dim ? ((const uint16_t *)q)[h * dim + d] : 0;
#else
            ((float *)a->queries)[at] = d >= dim  ? 0
                                        : a->bf16 ? kern_bf16_to(((const uint16_t *)q)[h * dim + d])
                                                  : ((const float *)q)[h * dim + d];
#endif
        }
        a->most[h] = -3e38F;
        for (size_t i = 0; i < 16 && h % ATTEND_LANES == 0; i++) a->sum[h / ATTEND_LANES * 16 + i] = 0;
        for (size_t d = 0; d < value_wide; d++) a->out[h * value_wide + d] = 0;
    }
}

/* `bytes` from `from` on. */
LANES_OP void LANES(fetch)(const char *from, size_t bytes)
{
    KERN_UNROLL
    for (size_t b = 0; b < bytes; b += 64) LANES(prefetch)(from + b);
}

/* -- scores -- */

/* Sums of hn heads and the key at k, not yet over the lanes. */
LANES_OP void LANES(score_row)(const struct attend *a, const ITEM *q, const char *k, size_t head, size_t hn, size_t dim,
                               bool bf16, V *sum)
{
    const size_t wide = attend_wide(dim), steps = (dim + STEP - 1) / STEP;
    (void)bf16;
    KERN_UNROLL
    for (size_t i = 0; i < hn; i++) sum[i] = LANES(set)(0);
    KERN_UNROLL_KNOWN
    for (size_t d = 0; d < dim; d += STEP) {
        const ITEM item = LOAD_ITEM(k, d, dim, bf16);
        KERN_UNROLL
        for (size_t i = 0; i < hn; i++)
            sum[i] = MULTIPLY_ADD(q ? q[i * steps + d / STEP] : QUERY(a, head + i, d, wide), item, sum[i]);
    }
}

/* Four keys side by side, where they come from a cache: sum[4 * key + head]. */
LANES_OP void LANES(score_four)(const struct attend *a, const char *const *k, size_t head, size_t dim, bool bf16,
                                V *sum)
{
    const size_t wide = attend_wide(dim);
    (void)bf16;
    KERN_UNROLL
    for (size_t i = 0; i < 16; i++) sum[i] = LANES(set)(0);
    for (size_t d = 0; d < dim; d += STEP) {
        ITEM item[4];
        KERN_UNROLL
        for (size_t j = 0; j < 4; j++) item[j] = LOAD_ITEM(k[j], d, dim, bf16);
        KERN_UNROLL
        for (size_t i = 0; i < 4; i++) {
            const ITEM x = QUERY(a, head + i, d, wide);
            KERN_UNROLL
            for (size_t j = 0; j < 4; j++) sum[j * 4 + i] = MULTIPLY_ADD(x, item[j], sum[j * 4 + i]);
        }
    }
}

/* Queries that stay in registers. */
LANES_OP bool LANES(holds)(size_t hn, size_t dim) { return hn * ((dim + STEP - 1) / STEP) <= HELD; }
LANES_OP void LANES(hold)(const struct attend *a, size_t head, size_t hn, size_t dim, ITEM *q)
{
    const size_t steps = (dim + STEP - 1) / STEP;
    KERN_UNROLL
    for (size_t i = 0; i < HELD; i++)
        if (i < hn * steps) q[i] = QUERY(a, head + i / steps, i % steps * STEP, attend_wide(dim));
}

/* n tokens, keys from k on, against hn heads; what stands empty behind them has no weight. Sums are summed up at once:
 * whole registers stored beside rows that come from memory take a quarter of its bandwidth. */
LANES_OP void LANES(score_turn)(const struct attend *a, const char *k, const char *later, size_t n, size_t head,
                                size_t hn, size_t dim, bool bf16, bool known)
{
    const size_t step = dim * (bf16 ? 2 : 4);
    const bool held = known && LANES(holds)(hn, dim);
    const bool many = LANES_WIDE == 16 && hn == 4 && !known && a->room > ATTEND_FEW;
    float *out = a->scores + head * ATTEND_TURN;
    V all = LANES(set)(-3e38F);
    ITEM q[HELD];
    if (held) LANES(hold)(a, head, hn, dim, q);
    if (many) {
        for (size_t j = 0; j < n; j += 4) {
            const char *row[4];
            V sum[16], part[4];
            for (size_t b = 0; later && b < 4 * step; b += 64) LANES(prefetch)(later + j * step + b);
            KERN_UNROLL
            for (size_t i = 0; i < 4; i++) row[i] = k + (j + i < n ? j + i : n - 1) * step;
            LANES(score_four)(a, row, head, dim, bf16, sum);
            KERN_UNROLL
            for (size_t i = 0; i < 4; i++) part[i] = LANES(sums_4)(sum + 4 * i);
            LANES(store)(out + 4 * j, LANES(mul)(LANES(join_4)(part), LANES(set)(a->scale)));
        }
    } else {
        for (size_t j = 0, end = kern_count(n); j < end; j++) {
            V sum[4];
            for (size_t b = 0; later && b < step; b += 64) LANES(prefetch)(later + j * step + b);
            LANES(score_row)(a, held ? q : NULL, k + j * step, head, hn, dim, bf16, sum);
            if (hn == 1)
                all = LANES(with)(all, j, LANES(sum)(sum[0]) * a->scale);
            else
                LANES(store_sums_4)(out + 4 * j, sum, a->scale);
        }
    }
    if (hn == 1)
        LANES(store)(out, all);
    else
        for (size_t i = n * hn; i < ATTEND_TURN * hn; i++) out[i] = -3e38F;
}

/* -- scores to weights -- */

/* Scores are far above those so far: the new maximum of hn heads, and what it makes of what they have summed. */
LANES_OP void LANES(raise)(const struct attend *a, size_t head, size_t hn, bool many, V most)
{
    const size_t wide = attend_wide(a->value_dim), apart = many ? 1 : hn, first = many ? 4 : 1; /* lanes of a head */
    float lane[16], *sum = a->sum + head / hn * 16;
    LANES(store)(lane, most);
    for (size_t i = 0; i < hn; i++) {
        float found = a->most[head + i], *out = a->out + (head + i) * wide;
        for (size_t j = 0; j < 16 / hn; j++)
            found = lane[i * first + j * apart] > found ? lane[i * first + j * apart] : found;
        const float shrink = expf(a->most[head + i] - found);
        a->most[head + i] = found;
        for (size_t j = 0; j < 16 / hn; j++) sum[i * first + j * apart] *= shrink;
        for (size_t d = 0; d < wide; d += 16)
            LANES(store)(out + d, LANES(mul)(LANES(load)(out + d), LANES(set)(shrink)));
    }
}

/* Weights of `places` tokens. A maximum that is ATTEND_SLACK too small does no harm: weights are up to e^ATTEND_SLACK
 * then. */
LANES_OP void LANES(soften)(const struct attend *a, size_t head, size_t places, size_t hn)
{
    const size_t n = places * hn;
    const float *s = a->scores + head * ATTEND_TURN, *most = a->most + head;
    float *sums = a->sum + head / hn * 16;
    V found = LANES(load)(s), least = hn == 1 ? LANES(set)(*most) : LANES(load_4)(most);
    for (size_t t = 16; t < n; t += 16) found = LANES(max)(found, LANES(load)(s + t));
    if (LANES(above)(found, LANES(add)(least, LANES(set)(ATTEND_SLACK)))) {
        LANES(raise)(a, head, hn, false, found);
        least = hn == 1 ? LANES(set)(*most) : LANES(load_4)(most);
    }
    V sum = LANES(load)(sums);
    for (size_t t = 0; t < n; t += 16) {
        const V x = LANES(sub)(LANES(load)(s + t), least);
        const V p = LANES_PAIRS ? LANES(exp_coarse)(x) : LANES(exp)(x);
        sum = LANES(add)(sum, p);
#if LANES_PAIRS /* two tokens of a head side by side */
        LANES(store_halves)(a->halves + head * ATTEND_TURN + t, p, hn != 1);
#else
        LANES(store)(a->weights + head * ATTEND_TURN + t, p);
#endif
    }
    LANES(store)(sums, sum);
}

/* -- weighted values: hn heads times dn times sixteen elements -- */

/* Sums of hn heads and what stands at element d of a row of values; for the dot unit of two rows. */
enum { LANES(rows) = LANES_PAIRS ? 2 : 1 };
LANES_OP void LANES(value_rows)(const char *row, const char *other, const void *weights, size_t d, size_t hn, size_t dn,
                                size_t dim, bool bf16, V *sum)
{
#if LANES_PAIRS
    const uint16_t *weight = weights;
    (void)bf16;
    ITEM x[4], y[4], v[8];
    KERN_UNROLL
    for (size_t j = 0; j < dn / 2; j++) {
        x[j] = LANES(pairs)(row, d + j * 32, dim);
        IN_ORDER(x[j]);
    }
    KERN_UNROLL
    for (size_t j = 0; j < dn / 2; j++) {
        y[j] = LANES(pairs)(other, d + j * 32, dim);
        IN_ORDER(y[j]);
    }
    KERN_UNROLL
    for (size_t j = 0; j < dn / 2; j++) {
        v[2 * j] = LANES(low)(x[j], y[j]);
        v[2 * j + 1] = LANES(high)(x[j], y[j]);
    }
    KERN_UNROLL
    for (size_t i = 0; i < hn; i++) {
        int32_t pair;
        memcpy(&pair, weight + 2 * i, sizeof pair);
        const ITEM w = LANES(one_pair)(pair);
        KERN_UNROLL
        for (size_t j = 0; j < dn; j++) sum[i * dn + j] = MULTIPLY_ADD(w, v[j], sum[i * dn + j]);
    }
#else
    const float *weight = weights;
    V v[8];
    (void)other;
    KERN_UNROLL
    for (size_t j = 0; j < dn; j++) {
        v[j] = LOAD_ITEM(row, d + j * 16, dim, bf16);
        IN_ORDER(v[j]);
    }
    KERN_UNROLL
    for (size_t i = 0; i < hn; i++) {
        const V w = LANES(set)(weight[i]);
        KERN_UNROLL
        for (size_t j = 0; j < dn; j++) sum[i * dn + j] = MULTIPLY_ADD(w, v[j], sum[i * dn + j]);
    }
#endif
}

/* The weights of a place, of heads from `head` on, `lanes` of which stand together. */
LANES_OP const void *LANES(weight_at)(const struct attend *a, size_t head, size_t lanes, size_t place)
{
    const size_t at = head / lanes * lanes * ATTEND_TURN + place * lanes;
    return LANES_PAIRS ? (const void *)(a->halves + at + 2 * (head % lanes))
                       : (const void *)(a->weights + at + head % lanes);
}

/* What hn heads have summed, [hn][dn]: into registers, and back. */
LANES_OP void LANES(take)(const struct attend *a, size_t head, size_t d, size_t hn, size_t dn, size_t wide, V *sum)
{
    KERN_UNROLL
    for (size_t i = 0; i < hn * dn; i++) sum[i] = LANES(load)(a->out + (head + i / dn) * wide + d + i % dn * 16);
}
LANES_OP void LANES(leave)(const struct attend *a, size_t head, size_t d, size_t hn, size_t dn, size_t wide,
                           const V *sum)
{
    KERN_UNROLL
    for (size_t i = 0; i < hn * dn; i++) LANES(store)(a->out + (head + i / dn) * wide + d + i % dn * 16, sum[i]);
}

/* n tokens, values from `row` on. Pairs of them are interleaved for the dot unit, which leaves elements of 32 as 0-3
 * 8-11 16-19 24-27, 4-7 12-15 ..., until the end; of an odd number the last is paired with itself, without weight.
 * `rest` bytes of each row behind the tile are fetched, so that it is read to its end. The weights are of `lanes` heads
 * together, head % lanes of which come before. */
LANES_OP void LANES(value_tile)(const struct attend *a, const char *row, const char *later, size_t fetched, size_t step,
                                size_t n, size_t place, size_t head, size_t lanes, size_t d, size_t hn, size_t dn,
                                size_t dim, bool bf16)
{
    const size_t wide = attend_wide(dim), rows = LANES(rows), element = bf16 ? 2 : 4;
    const size_t size = LANES_PAIRS ? 2 : 4; /* of a weight */
    const char *weight = LANES(weight_at)(a, head, lanes, place);
    V sum[16];
    LANES(take)(a, head, d, hn, dn, wide, sum);
    const size_t whole = n / rows * rows; /* of them no address waits for anything: loads stay in order */
    for (size_t t = 0; t < whole; t += rows, row += rows * step) {
        for (size_t b = rows * d * element; later && b < rows * (d + fetched) * element; b += 64)
            LANES(prefetch)(later + t * step + b);
        LANES(value_rows)(row, row + step, weight + t * lanes * size, d, hn, dn, dim, bf16, sum);
    }
    if (whole < n) LANES(value_rows)(row, row, weight + whole * lanes * size, d, hn, dn, dim, bf16, sum);
    LANES(leave)(a, head, d, hn, dn, wide, sum);
}

LANES_OP void LANES(value_turn)(const struct attend *a, const char *v, const char *later, size_t step, size_t n,
                                size_t place, size_t head, size_t hn, size_t dim, bool bf16, bool known)
{
    const size_t most = LANES_WIDE != 16 ? (hn == 1 ? 4 : 1) : hn == 1 ? 8 : 4, least = LANES_PAIRS ? 2 : 1;
    size_t d = 0;
    later = head == 0 ? later : NULL;
    if (LANES_WIDE == 16 && hn == 4 && known) { /* two heads at a time: to the end of each row */
        LANES(value_tile)(a, v, later, dim / 2, step, n, place, head, hn, 0, 2, 8, dim, bf16);
        LANES(value_tile)
        (a, v, later ? later + LANES(rows) * step / 2 : NULL, dim / 2, step, n, place, head + 2, hn, 0, 2, 8, dim,
         bf16);
        return;
    }
    if (LANES_SET == LANES_BFDOT && hn == 4) { /* two at a time, as many sums as registers hold */
        for (; d < dim; d += 32) {
            LANES(value_tile)(a, v, later, 32, step, n, place, head, hn, d, 2, 2, dim, bf16);
            LANES(value_tile)(a, v, NULL, 0, step, n, place, head + 2, hn, d, 2, 2, dim, bf16);
        }
        return;
    }
    for (; d + most * 16 <= dim; d += most * 16)
        LANES(value_tile)(a, v, later, most * 16, step, n, place, head, hn, d, hn, most, dim, bf16);
    for (; d < dim; d += least * 16)
        LANES(value_tile)(a, v, later, least * 16, step, n, place, head, hn, d, hn, least, dim, bf16);
}

/* -- one head, whose query, weighted values and sum stay in registers -- */

#if LANES_WIDE == 16
struct LANES(one) {
    V out[8], sum, most;
};

/* The weights of scores s, where `weights_of` finds them. */
LANES_OP void LANES(soften_one)(const struct attend *a, V s, struct LANES(one) * o)
{
    if (LANES(above)(s, LANES(add)(o->most, LANES(set)(ATTEND_SLACK)))) {
        const V most = LANES(max)(LANES(set)(LANES(most)(s)), o->most), shrink = LANES(exp)(LANES(sub)(o->most, most));
        o->most = most;
        o->sum = LANES(mul)(o->sum, shrink);
        KERN_UNROLL
        for (size_t i = 0; i < 8; i++) o->out[i] = LANES(mul)(o->out[i], shrink);
    }
    const V x = LANES(sub)(s, o->most);
#if LANES_SET == LANES_DOT
    const V p = LANES(exp_coarse)(x);
    _mm256_storeu_si256((__m256i *)(void *)a->halves, (__m256i)_mm512_cvtneps_pbh(p.v));
#else
    const V p = LANES(exp)(x);
    LANES(store)(a->weights, p);
#endif
    o->sum = LANES(add)(o->sum, p);
}

/* Of a long row all lines are asked for before the first is waited for: the processor does not follow it to its end. */
LANES_OP void LANES(run_of_one)(const struct attend *from, const struct attend_run *r, size_t dim, bool bf16)
{
    const struct attend own = *from, *a = &own;
    const size_t step = dim * (bf16 ? 2 : 4), size = LANES_SET == LANES_DOT ? 2 : 4;
    const char *k = r->k, *v = r->v;
    ITEM q[HELD];
    struct LANES(one) o = {.sum = LANES(load)(a->sum), .most = LANES(set)(*a->most)};
    LANES(hold)(a, 0, 1, dim, q);
    LANES(take)(a, 0, 0, 1, 8, attend_wide(dim), o.out);
    for (size_t left = r->n, n; left > 0; left -= n) {
        V all = LANES(set)(-3e38F), sum;
        n = left < ATTEND_TURN ? left : ATTEND_TURN;
        for (size_t j = 0; j < n; j++, k += step) {
            if (step > ATTEND_FOLLOWED) LANES(fetch)(k, step);
            LANES(score_row)(a, q, k, 0, 1, dim, bf16, &sum);
            all = LANES(with)(all, j, LANES(sum)(sum) * a->scale);
        }
        LANES(soften_one)(a, all, &o);
        const char *weight = LANES(weight_at)(a, 0, 1, 0);
        for (size_t j = LANES(rows); j <= n; j += LANES(rows), v += LANES(rows) * step, weight += LANES(rows) * size) {
            if (step > ATTEND_FOLLOWED) LANES(fetch)(v, LANES(rows) * step);
            LANES(value_rows)(v, v + step, weight, 0, 1, 8, dim, bf16, o.out);
        }
        if (n % LANES(rows) != 0) {
            LANES(value_rows)(v, v, weight, 0, 1, 8, dim, bf16, o.out);
            v += step;
        }
    }
    LANES(leave)(a, 0, 0, 1, 8, attend_wide(dim), o.out);
    LANES(store)(a->sum, o.sum);
    *a->most = _mm512_cvtss_f32(o.most.v);
}
#endif

#if LANES_WIDE == 16
#include "kernels/attend_aside.h"
#endif

#if LANES_WIDE == 16
/* Lines that are asked for one after the other, up to the last. */
struct LANES(queue) {
    const char *at, *end;
};
LANES_OP struct LANES(queue) LANES(queue_of)(const char *at, size_t bytes)
{
    return (struct LANES(queue)){at, at ? at + bytes : NULL};
}
LANES_OP void LANES(ask)(struct LANES(queue) * f, size_t lines)
{
    enum { LINE = 64 };
    KERN_UNROLL
    for (size_t i = 0; i < lines; i++) {
        LANES(prefetch)(f->at);
        if (f->at < f->end) f->at += LINE;
    }
}
#endif

#if LANES_SET == LANES_DOT
#include "kernels/attend_many.h"
#elif LANES_SET == LANES_AVX512
#include "kernels/attend_across.h"
#endif

/* -- turn after turn -- */

/* A turn: its scores, its weights, its values. */
LANES_OP void LANES(turn_of)(const struct attend *a, const char *k, const char *v, const char *later_k,
                             const char *later_v, size_t n, size_t hn, size_t dim, size_t value_dim, bool bf16,
                             bool known)
{
    const size_t step = dim * (bf16 ? 2 : 4);
    for (size_t h = 0; h < a->room; h += hn)
        LANES(score_turn)(a, k, h == 0 ? later_k : NULL, n, h, hn, dim, bf16, known);
    for (size_t h = 0; h < a->room; h += hn) LANES(soften)(a, h, ATTEND_TURN, hn);
    for (size_t h = 0; h < a->room; h += hn)
        LANES(value_turn)(a, v, later_v, step, n, 0, h, hn, value_dim, bf16, known);
}

LANES_OP void LANES(run_of)(const struct attend *from, const struct attend_run *r, size_t hn, size_t dim,
                            size_t value_dim, bool bf16, bool known, bool fetches)
{
    const struct attend own = *from, *a = &own; /* in registers: no store may be to it */
    const char *k = r->k, *v = r->v, *next = r->next_k;
    const size_t step = dim * (bf16 ? 2 : 4), n = r->n, ahead = r->ahead;
    const bool apart = k != v; /* values that are a part of the keys have been fetched as such */
    for (size_t t = 0; t < n; t += ATTEND_TURN) {
        const char *later_k = NULL, *later_v = NULL;
        if (fetches && t + ahead < n) {
            later_k = k + (t + ahead) * step;
            later_v = apart ? v + (t + ahead) * step : NULL;
        } else if (fetches && next) {
            later_k = next + (t + ahead - n) * step;
            later_v = apart ? r->next_v + (t + ahead - n) * step : NULL;
        }
        LANES(turn_of)
        (a, k + t * step, v + t * step, later_k, later_v, n - t < ATTEND_TURN ? n - t : ATTEND_TURN, hn, dim, value_dim,
         bf16, known);
    }
}

LANES_TARGET static void LANES(run)(const struct attend *a, const struct attend_run *r)
{
    const bool usual = LANES_SET != LANES_PORTABLE && a->dim == ATTEND_USUAL && a->value_dim == ATTEND_USUAL;
    const bool bf16 = LANES_PAIRS || a->bf16, one = a->room == 1, fetches = r->ahead > 0;
#if LANES_WIDE == 16
    if (a->many) {
        LANES(run_many)(a, r);
        return;
    }
#endif
#if LANES_WIDE == 16
    if (usual && one && !fetches) {
        if (bf16)
            LANES(run_of_one)(a, r, ATTEND_USUAL, true);
        else
            LANES(run_of_one)(a, r, ATTEND_USUAL, false);
        return;
    }
#endif
    if (usual && bf16 && !one && !fetches)
        LANES(run_of)(a, r, ATTEND_LANES, ATTEND_USUAL, ATTEND_USUAL, true, true, false);
    else if (usual && bf16 && !one)
        LANES(run_of)(a, r, ATTEND_LANES, ATTEND_USUAL, ATTEND_USUAL, true, true, true);
    else if (usual && !one)
        LANES(run_of)(a, r, ATTEND_LANES, ATTEND_USUAL, ATTEND_USUAL, false, true, fetches);
    else if (one)
        LANES(run_of)(a, r, 1, a->dim, a->value_dim, bf16, false, true);
    else
        LANES(run_of)(a, r, ATTEND_LANES, a->dim, a->value_dim, bf16, false, true);
}

#if LANES_WIDE == 16
LANES_TARGET static void LANES(pages)(const struct attend *a, const struct attend_pages *p)
{
    const bool bf16 = LANES_SET == LANES_DOT || a->bf16;
    if (a->room == 1 && bf16 && a->asked)
        LANES(pages_of_one)(a, p, ATTEND_USUAL, true, false);
    else if (a->room == 1 && bf16)
        LANES(pages_of_one)(a, p, ATTEND_USUAL, true, true);
    else if (a->room == 1)
        LANES(pages_of_one)(a, p, ATTEND_USUAL, false, false);
    else if (bf16)
        LANES(pages_of)(a, p, ATTEND_USUAL, true);
    else
        LANES(pages_of)(a, p, ATTEND_USUAL, false);
}
#endif

#undef STEP
#undef ITEM
#undef LOAD_ITEM
#undef QUERY
#undef MULTIPLY_ADD
#undef IN_ORDER
#undef IN_REGISTER
#undef HELD

LANES_TARGET static void LANES(finish)(const struct attend *a, void *out)
{
    const size_t wide = attend_wide(a->value_dim), lanes = a->many ? a->many : a->room == 1 ? 1 : ATTEND_LANES;
    for (size_t h = 0; h < a->heads; h++) {
        float sum = 0;
        for (size_t i = 0; i < 16 / lanes; i++)
            sum += a->sum[h / lanes * 16 + (a->many ? h % lanes * (16 / lanes) + i : h % lanes + i * lanes)];
        for (size_t d = 0; d < a->value_dim; d += 32) {
            float whole[32], order[32];
            for (size_t j = 0; j < 32; j += 16)
                LANES(store)(whole + j, LANES(div)(LANES(load)(a->out + h * wide + d + j), LANES(set)(sum)));
            for (size_t i = 0; i < 32; i++) order[i] = whole[LANES_PAIRS ? i % 8 / 4 * 16 + i / 8 * 4 + i % 4 : i];
            const size_t left = a->value_dim - d;
            LANES(put)(out, a->bf16, h * a->value_dim + d, LANES(load)(order), left < 16 ? left : 16);
            if (left > 16) LANES(put)
            (out, a->bf16, h * a->value_dim + d + 16, LANES(load)(order + 16), left < 32 ? left - 16 : 16);
        }
    }
}

#if LANES_SET == LANES_PORTABLE
const struct attend_code attend_portable = {start_portable, run_portable, NULL, finish_portable, 0, 0, NULL, NULL};
#elif LANES_SET == LANES_AVX2
const struct attend_code attend_avx2 = {start_avx2, run_avx2, NULL, finish_avx2, 0, 0, NULL, NULL};
#elif LANES_SET == LANES_AVX512
const struct attend_code attend_avx512 = {start_avx512, run_avx512,        pages_avx512, finish_avx512,
                                          16,           aside_rows_avx512, NULL,         NULL};
#elif LANES_SET == LANES_NEON
const struct attend_code attend_neon = {start_neon, run_neon, NULL, finish_neon, 0, 0, NULL, NULL};
#elif LANES_SET == LANES_BFDOT
const struct attend_code attend_bfdot = {start_bfdot, run_bfdot, NULL, finish_bfdot, 0, 0, NULL, NULL};
#else
const struct attend_code attend_dot = {start_dot, run_dot, pages_dot, finish_dot, 4, aside_rows_dot, NULL, NULL};
#endif
