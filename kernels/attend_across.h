/* attend_across -- the part of kernels/attend_body.h for more than eight heads of fp32 and rows in one piece: sixteen
 * heads are the lanes of a register.
 *
 * Of each element of a key one number goes to all lanes and is multiplied by that element of sixteen queries, which
 * stand side by side, so that no sum has to be made over lanes, a softmax is the same few operations for all heads, and
 * an element costs one load for sixteen products: sixteen keys at a time share the load of the queries, or eight those
 * of two sixteens of heads. Weighted values are four heads times 64 elements, weights going to all lanes; the piece of
 * a turn's rows that is read for them stays in the first cache for all heads.
 *
 * Rows are then not read in their order: those of the next turn are asked for meanwhile, evenly, as in
 * kernels/attend_many.h. */

enum { ACROSS = 16, ACROSS_LINE = 64, ACROSS_WIDE = 4 * ACROSS /* elements of values taken together */ };

/* Sums of `groups` times sixteen heads, whose queries are at q, `group` floats apart, and of `rows` keys. A line is
 * asked for each second element. */
LANES_OP void LANES(across_scores_of)(const float *q, size_t group, const char *k, size_t rows, size_t groups,
                                      size_t dim, size_t lines, struct LANES(queue) * f, float *out)
{
    enum { DEEP = 4 };
    const size_t step = 4 * dim;
    V sum[ACROSS];
    KERN_UNROLL
    for (size_t i = 0; i < groups * rows; i++) sum[i] = LANES(set)(0);
    for (size_t d = 0; d < dim; d += DEEP, q += DEEP * ACROSS, k += DEEP * sizeof *q) {
        const size_t deep = dim - d < DEEP ? dim - d : DEEP;
        const float *quarter[4]; /* rows: with an address each the compiler runs out of registers */
        KERN_UNROLL
        for (size_t j = 0; j < 4; j++)
            quarter[j] = kern_here((void *)(uintptr_t)(k + (4 * j < rows ? 4 * j : 0) * step));
        LANES(ask)(f, lines);
        for (size_t i = 0; i < deep; i++) {
            V x[2];
            KERN_UNROLL
            for (size_t g = 0; g < groups; g++) x[g] = LANES(load)(q + g * group + i * ACROSS);
            KERN_UNROLL
            for (size_t j = 0; j < rows; j++) {
                const V y = LANES(set)(quarter[j / 4][j % 4 * dim + i]);
                KERN_UNROLL
                for (size_t g = 0; g < groups; g++) sum[g * rows + j] = LANES(fma)(x[g], y, sum[g * rows + j]);
            }
        }
    }
    KERN_UNROLL
    for (size_t g = 0; g < groups; g++) {
        KERN_UNROLL
        for (size_t j = 0; j < rows; j++) LANES(store)(out + (g * ATTEND_MANY + j) * ACROSS, sum[g * rows + j]);
    }
}

/* Products of n tokens with `groups` times sixteen heads from `head` on, not yet scaled: [group][token][head]. */
LANES_OP void LANES(across_scores)(const struct attend *a, const char *k, size_t n, size_t head, size_t groups,
                                   size_t lines, struct LANES(queue) * f)
{
    const size_t dim = a->dim, group = ACROSS * attend_wide(dim), most = ACROSS / groups;
    const float *const q = (const float *)a->queries + head * attend_wide(dim);
    float *const out = a->scores + head * ATTEND_MANY;
    for (size_t t = 0, take; t < n; t += take) {
        const char *const from = k + t * 4 * dim;
        take = n - t >= most ? most : n - t >= 4 ? 4 : 1;
        if (take == most)
            LANES(across_scores_of)(q, group, from, most, groups, dim, lines, f, out + t * ACROSS);
        else if (take == 4)
            LANES(across_scores_of)(q, group, from, 4, groups, dim, 0, f, out + t * ACROSS);
        else
            LANES(across_scores_of)(q, group, from, 1, groups, dim, 0, f, out + t * ACROSS);
    }
}

/* Sixteen heads and n tokens: products to weights, [token][head], as `soften` does. */
LANES_OP void LANES(across_soften)(const struct attend *a, size_t head, size_t n)
{
    const float *const s = a->scores + head * ATTEND_MANY, log2_e = 1.44269504F;
    float *const weights = a->weights + head * ATTEND_MANY, shrink[ACROSS];
    const size_t wide = attend_wide(a->value_dim);
    V found = LANES(load)(s), least = LANES(load)(a->most + head), sum = LANES(load)(a->sum + head);
    for (size_t t = 1; t < n; t++) found = LANES(max)(found, LANES(load)(s + t * ACROSS));
    found = LANES(mul)(found, LANES(set)(a->scale));
    if (LANES(above)(found, LANES(add)(least, LANES(set)(ATTEND_SLACK)))) {
        const V more = LANES(max)(found, least), less = LANES(exp)(LANES(sub)(least, more));
        LANES(store)(shrink, less);
        for (size_t h = 0; h < ACROSS; h++)
            for (size_t d = 0; d < wide; d += ACROSS) {
                float *const out = a->out + (head + h) * wide + d;
                LANES(store)(out, LANES(mul)(LANES(load)(out), LANES(set)(shrink[h])));
            }
        sum = LANES(mul)(sum, less);
        least = more;
        LANES(store)(a->most + head, more);
    }
    const V scale = LANES(set)(a->scale * log2_e), below = LANES(mul)(least, LANES(set)(-log2_e));
    for (size_t t = 0; t < n; t++) {
        const V p = LANES(exp2)(LANES(fma)(LANES(load)(s + t * ACROSS), scale, below));
        LANES(store)(weights + t * ACROSS, p);
        sum = LANES(add)(sum, p);
    }
    LANES(store)(a->sum + head, sum);
}

/* Elements [d, d + ACROSS_WIDE) of n rows, times the weights of all heads. A line is asked for each second row. */
LANES_OP void LANES(across_values)(const struct attend *a, const char *v, size_t n, size_t d, size_t lines,
                                   struct LANES(queue) * f)
{
    enum { HEADS = 4, PARTS = 4 };
    const size_t wide = attend_wide(a->value_dim), step = 4 * a->dim;
    for (size_t h = 0; h < a->room; h += HEADS) {
        const float *weight = a->weights + h / ACROSS * ACROSS * ATTEND_MANY + h % ACROSS;
        const char *row = v + 4 * d;
        V sum[HEADS * PARTS];
        LANES(take)(a, h, d, HEADS, PARTS, wide, sum);
        for (size_t t = 0; t < n; t++, row += step, weight += ACROSS) {
            V x[PARTS];
            if (t % 2 == 0) LANES(ask)(f, lines);
            KERN_UNROLL
            for (size_t j = 0; j < PARTS; j++) x[j] = LANES(load)((const float *)(const void *)row + j * ACROSS);
            KERN_UNROLL
            for (size_t i = 0; i < HEADS; i++) {
                const V w = LANES(set)(weight[i]);
                KERN_UNROLL
                for (size_t j = 0; j < PARTS; j++) sum[i * PARTS + j] = LANES(fma)(w, x[j], sum[i * PARTS + j]);
            }
        }
        LANES(leave)(a, h, d, HEADS, PARTS, wide, sum);
    }
}

LANES_OP void LANES(run_many)(const struct attend *from, const struct attend_run *r)
{
    const struct attend own = *from, *a = &own;
    const char *k = r->k, *v = r->v;
    const size_t step = 4 * a->dim;
    const bool apart = k != v; /* values that are a part of the keys come with them */
    for (size_t left = r->n, n; left > 0; left -= n, k += n * step, v += n * step) {
        n = left < ATTEND_MANY ? left : ATTEND_MANY;
        const size_t then = left > n && left - n < ATTEND_MANY ? left - n : ATTEND_MANY;
        struct LANES(queue) f = LANES(queue_of)(left > n ? k + n * step : r->next_k, then * step);
        for (size_t h = 0; h < a->room; h += ACROSS) LANES(across_scores)(a, k, n, h, 1, apart ? 4 : 2, &f);
        if (apart) f = LANES(queue_of)(left > n ? v + n * step : r->next_v, then * step);
        for (size_t h = 0; h < a->room; h += ACROSS) LANES(across_soften)(a, h, n);
        for (size_t d = 0; d < a->value_dim; d += ACROSS_WIDE) LANES(across_values)(a, v, n, d, 1, &f);
    }
}
