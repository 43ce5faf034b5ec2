/* attend_many -- the part of kernels/attend_body.h for more than four heads of bf16 and rows in one piece, products of
 * pairs in sixteen lanes; such heads compute as long as memory takes, or longer.
 *
 * Scores are a small matrix product: 16 bytes of a key go to all quarters of a register and are multiplied by
 * registers that have as many elements of four heads, a quarter each. Such a piece serves eight heads, and of four
 * tokens' sums over a quarter one transposition makes a register of scores, [head][token], so that the weights of two
 * tokens of a head lie side by side, as the dot unit wants them. Of a row of values 64 bytes at a time are read for
 * eight heads, and interleaved once for them.
 *
 * Rows are then not read in their order, so the processor does not fetch ahead: what a turn reads is asked for during
 * the turn before, keys during its keys and values during its values, a line or two a step. */

/* Sums of `groups` times four heads, whose queries are at q, and of `rows` keys: sum[MANY_ROWS * group + row]. */
enum { MANY_ROWS = 8, MANY_QUARTER = 16, MANY_LINE = 64 };
LANES_OP void LANES(scores_of)(const char *q, size_t group, const char *k, size_t rows, size_t groups, size_t step,
                               size_t lines, struct LANES(queue) * f, V *sum)
{
    KERN_UNROLL
    for (size_t g = 0; g < groups; g++) {
        KERN_UNROLL
        for (size_t j = 0; j < rows; j++) sum[g * MANY_ROWS + j] = LANES(set)(0);
    }
    for (size_t s = 0; s < step; s += MANY_QUARTER, q += MANY_LINE) {
        /* two addresses: with one a row the compiler runs out of registers */
        const char *const half[2] = {kern_here((void *)(uintptr_t)(k + s)),
                                     kern_here((void *)(uintptr_t)(k + s + (rows > 4 ? 4 * step : 0)))};
        __m512i x[2];
        LANES(ask)(f, lines);
        KERN_UNROLL
        for (size_t g = 0; g < groups; g++) x[g] = _mm512_loadu_si512(q + g * group);
        KERN_UNROLL
        for (size_t j = 0; j < rows; j++) {
            const char *const at = half[j / 4] + j % 4 * step;
            const __m512i y = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)at));
            KERN_UNROLL
            for (size_t g = 0; g < groups; g++) sum[g * MANY_ROWS + j] = MULTIPLY_ADD(x[g], y, sum[g * MANY_ROWS + j]);
        }
    }
}

/* Products of n tokens with `groups` times four heads from `head` on, not yet scaled. */
LANES_OP void LANES(scores_many)(const struct attend *a, const char *k, size_t n, size_t head, size_t groups,
                                 size_t dim, size_t lines, struct LANES(queue) * f)
{
    const size_t step = 2 * dim, group = 8 * attend_wide(dim);
    const char *const q = (const char *)a->queries + head / 4 * group;
    float *out = a->scores + head * ATTEND_MANY;
    for (size_t t = 0; t < n; t += MANY_ROWS) {
        V sum[2 * MANY_ROWS];
        if (t + MANY_ROWS <= n) {
            LANES(scores_of)(q, group, k + t * step, MANY_ROWS, groups, step, lines, f, sum);
        } else {
            for (size_t i = 0; i < groups * MANY_ROWS; i++) sum[i] = LANES(set)(0);
            for (size_t j = t; j < n; j++)
                LANES(scores_of)(q, group, k + j * step, 1, groups, step, lines, f, sum + (j - t));
        }
        KERN_UNROLL
        for (size_t g = 0; g < groups; g++) {
            KERN_UNROLL
            for (size_t j = 0; j < MANY_ROWS; j += 4)
                LANES(store)(out + 4 * (g * ATTEND_MANY + t + j), LANES(sums_4)(sum + g * MANY_ROWS + j));
        }
    }
    for (size_t t = n; t % 4 != 0; t++) /* tokens that are not there */
        for (size_t i = 0; i < 4 * groups; i++) out[4 * (i / 4 * ATTEND_MANY + t / 4 * 4 + i % 4) + t % 4] = -3e38F;
}

/* One number of four heads in all lanes of each. */
LANES_OP V LANES(spread_4)(const float *p)
{
    const __m512i each = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    return (V){_mm512_permutexvar_ps(each, LANES(load_4)(p).v)};
}

/* Four heads and n tokens: products to weights, as `soften` does. */
LANES_OP void LANES(soften_many)(const struct attend *a, size_t head, size_t n)
{
    const float *s = a->scores + head * ATTEND_MANY, log2_e = 1.44269504F;
    float *sums = a->sum + head / 4 * 16;
    const V scale = LANES(set)(a->scale * log2_e);
    V found = LANES(load)(s), least = LANES(spread_4)(a->most + head);
    for (size_t t = 4; t < n; t += 4) found = LANES(max)(found, LANES(load)(s + 4 * t));
    found = LANES(mul)(found, LANES(set)(a->scale));
    if (LANES(above)(found, LANES(add)(least, LANES(set)(ATTEND_SLACK)))) {
        LANES(raise)(a, head, 4, true, found);
        least = LANES(spread_4)(a->most + head);
    }
    V sum = LANES(load)(sums);
    least = LANES(mul)(least, LANES(set)(-log2_e));
    for (size_t t = 0; t < n; t += 4) {
        const V p = LANES(exp2_coarse)(LANES(fma)(LANES(load)(s + 4 * t), scale, least));
        _mm256_storeu_si256((__m256i *)(void *)(a->halves + head * ATTEND_MANY + 4 * t),
                            (__m256i)_mm512_cvtneps_pbh(p.v));
        sum = LANES(add)(sum, p);
    }
    LANES(store)(sums, sum);
}

/* 64 bytes of the rows of four tokens, times their weights, of `groups` times four heads: sum[head][low, high], times
 * `parts` where there is room for more of a row. */
LANES_OP void LANES(values_4)(const char *const *row, const uint16_t *weight, size_t groups, size_t parts, V *sum)
{
    KERN_UNROLL
    for (size_t t = 0; t < 4; t += 2) {
        __m512i v[4];
        KERN_UNROLL
        for (size_t j = 0; j < parts; j++) {
            const __m512i x = _mm512_loadu_si512(row[t] + j * MANY_LINE);
            const __m512i y = _mm512_loadu_si512(row[t + 1] + j * MANY_LINE);
            v[2 * j] = LANES(low)(x, y);
            v[2 * j + 1] = LANES(high)(x, y);
        }
        KERN_UNROLL
        for (size_t i = 0; i < 4 * groups; i++) {
            int32_t pair;
            memcpy(&pair, weight + 4 * (i / 4 * ATTEND_MANY + i % 4) + t, sizeof pair);
            const __m512i w = LANES(one_pair)(pair);
            KERN_UNROLL
            for (size_t j = 0; j < 2 * parts; j++)
                sum[i * 2 * parts + j] = MULTIPLY_ADD(w, v[j], sum[i * 2 * parts + j]);
        }
    }
}

LANES_OP void LANES(values_many)(const struct attend *a, const char *v, size_t n, size_t head, size_t groups,
                                 size_t step, size_t dim, size_t lines, struct LANES(queue) * f)
{
    const size_t parts = 2 / groups, wide = attend_wide(dim);
    for (size_t d = 0; d < dim; d += 32 * parts) {
        const uint16_t *weight = a->halves + head * ATTEND_MANY;
        const char *at = v + 2 * d;
        size_t t = 0;
        V sum[16];
        LANES(take)(a, head, d, 4 * groups, 2 * parts, wide, sum);
        for (; t + 4 <= n; t += 4, at += 4 * step, weight += 16) {
            const char *const row[4] = {at, at + step, at + 2 * step, at + 3 * step};
            LANES(ask)(f, lines);
            LANES(values_4)(row, weight, groups, parts, sum);
        }
        if (t < n) { /* tokens that are not there have no weight */
            const char *row[4];
            for (size_t i = 0; i < 4; i++) row[i] = at + (t + i < n ? i : n - 1 - t) * step;
            LANES(values_4)(row, weight, groups, parts, sum);
        }
        LANES(leave)(a, head, d, 4 * groups, 2 * parts, wide, sum);
    }
}

LANES_OP void LANES(run_of_many)(const struct attend *from, const struct attend_run *r, size_t groups, size_t dim,
                                 size_t value_dim, size_t turn, size_t lines)
{
    const struct attend own = *from, *a = &own;
    const char *k = r->k, *v = r->v;
    const size_t step = 2 * dim;
    const bool apart = k != v; /* values that are a part of the keys come with them */
    for (size_t left = r->n, n; left > 0; left -= n, k += n * step, v += n * step) {
        n = left < turn ? left : turn;
        const size_t then = left > n && left - n < turn ? left - n : turn;
        struct LANES(queue) f = LANES(queue_of)(left > n ? k + n * step : r->next_k, then * step);
        for (size_t h = 0; h < a->room; h += 4 * groups) LANES(scores_many)(a, k, n, h, groups, dim, lines, &f);
        if (apart) f = LANES(queue_of)(left > n ? v + n * step : r->next_v, then * step);
        for (size_t h = 0; h < a->room; h += 4) LANES(soften_many)(a, h, n);
        for (size_t h = 0; h < a->room; h += 4 * groups)
            LANES(values_many)(a, v, n, h, groups, step, value_dim, 2 * lines, &f);
    }
}

/* Long rows in shorter turns: what a turn reads several times is to stay in the second cache. */
LANES_OP void LANES(run_many)(const struct attend *a, const struct attend_run *r)
{
    const size_t usual = ATTEND_USUAL, turn = a->dim > 2 * usual ? ATTEND_MANY / 2 : ATTEND_MANY;
    if (a->dim == usual && a->value_dim == usual && a->room == 8)
        LANES(run_of_many)(a, r, 2, usual, usual, ATTEND_MANY, 2);
    else if (a->room % 8 == 0)
        LANES(run_of_many)(a, r, 2, a->dim, a->value_dim, turn, 1);
    else
        LANES(run_of_many)(a, r, 1, a->dim, a->value_dim, turn, 1);
}
