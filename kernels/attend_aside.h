/* attend_aside -- the part of kernels/attend_body.h that reads pages side by side, for sixteen lanes in a register; no
 * include guard, since it is compiled once per instruction set like the rest.
 *
 * Pages lie in no order. The processor, which fetches ahead in what is read in order, starts anew in each: of one page
 * at a time little is under way. So ATTEND_TURNS pages are read at once, a row of each in turn, and a turn is a few
 * rows of keys of all of them, then the same rows of values: eight places that go on as memory does, since the heads of
 * a page follow one another. Lines are also asked for ATTEND_AHEAD bytes before they are read, evenly over all of the
 * arithmetic: what comes in bursts waits for one another, and while none is asked for nothing arrives. */

/* Where the rows of a turn lie: those of page p begin at `row`[p] + at; what is fetched meanwhile, at `later`[p] + far.
 */
struct LANES(aside) {
    const char *row[ATTEND_TURNS], *later[ATTEND_TURNS];
};

enum { LANES(aside_rows) = ATTEND_TURN / ATTEND_TURNS }; /* of each page in a turn */

LANES_OP struct LANES(aside)
    LANES(aside_at)(const char *data, const size_t *row, const size_t *later, size_t at, size_t far)
{
    struct LANES(aside) out;
    KERN_UNROLL
    for (size_t p = 0; p < ATTEND_TURNS; p++) {
        out.row[p] = data + row[p] + at;
        out.later[p] = data + later[p] + far;
    }
    return out;
}

/* Part i of n of a row that is read later. */
LANES_OP void LANES(fetch_part)(const char *row, size_t step, size_t i, size_t n)
{
    enum { LINE = 64 };
    for (size_t b = step * i / n / LINE * LINE, end = step * (i + 1) / n; b + LINE <= end; b += LINE)
        LANES(prefetch)(row + b);
}

/* A row of one head, every line or every second. */
LANES_OP void LANES(fetch_one)(const char *row, size_t step, bool pairs)
{
    enum { LINE = 64 };
    KERN_UNROLL
    for (size_t b = 0; b < step; b += pairs ? 2 * LINE : LINE) LANES(prefetch)(row + b);
}

/* The scores of a turn and hn heads. */
LANES_OP void LANES(scores_aside)(const struct attend *a, const struct LANES(aside) * r, const ITEM *q, size_t head,
                                  size_t hn, size_t dim, bool bf16)
{
    const size_t step = dim * (bf16 ? 2 : 4);
    float *out = a->scores + head * ATTEND_TURN;
    for (size_t j = 0, end = kern_count(LANES(aside_rows)); j < end; j++) {
        KERN_UNROLL
        for (size_t p = 0; p < ATTEND_TURNS; p++) {
            V sum[4];
            LANES(fetch_part)(r->later[p] + j * step, step, head / hn, a->room / hn);
            LANES(score_row)(a, q, r->row[p] + j * step, head, hn, dim, bf16, sum);
            LANES(store_sums_4)(out + 4 * (j * ATTEND_TURNS + p), sum, a->scale);
        }
    }
}

/* The weighted values of a turn, of hn heads of `lanes`. */
LANES_OP void LANES(values_aside)(const struct attend *a, const struct LANES(aside) * r, size_t head, size_t lanes,
                                  size_t hn, size_t dim, bool bf16, bool pairs, V *sum)
{
    const size_t step = dim * (bf16 ? 2 : 4), size = LANES_SET == LANES_DOT ? 2 : 4;
    const char *weight = LANES(weight_at)(a, head, lanes, 0);
    for (size_t j = 0, end = kern_count(LANES(aside_rows)); j < end; j++) {
        KERN_UNROLL
        for (size_t p = 0; p < ATTEND_TURNS; p += LANES(rows)) {
            KERN_UNROLL
            for (size_t i = p; i < p + LANES(rows); i++)
                if (lanes == 1)
                    LANES(fetch_one)(r->later[i] + j * step, step, pairs);
                else
                    LANES(fetch_part)(r->later[i] + j * step, step, head / hn, a->room / hn);
            LANES(value_rows)
            (r->row[p] + j * step, r->row[p + LANES(rows) - 1] + j * step, weight, 0, hn, 8, dim, bf16, sum);
            weight += LANES(rows) * lanes * size;
        }
    }
}

/* Rows of a page of n that so many bytes ahead are. */
LANES_OP size_t LANES(ahead)(size_t bytes, size_t step, size_t n)
{
    const size_t rows = bytes / step / LANES(aside_rows) * LANES(aside_rows);
    return rows < n ? rows : n;
}

/* One head: its query, weighted values and sum stay in registers. pairs: the processor brings lines of rows in pairs.
 */
LANES_OP void LANES(pages_of_one)(const struct attend *from, const struct attend_pages *pages, size_t dim, bool bf16,
                                  bool pairs)
{
    const struct attend own = *from, *a = &own;
    const struct attend_pages local = *pages, *r = &local;
    const size_t step = dim * (bf16 ? 2 : 4),
                 ahead = LANES(ahead)(step > ATTEND_FOLLOWED ? ATTEND_AHEAD : ATTEND_AHEAD / 2, step, r->n);
    ITEM q[HELD];
    struct LANES(one) o = {.sum = LANES(load)(a->sum), .most = LANES(set)(*a->most)};
    LANES(hold)(a, 0, 1, dim, q);
    LANES(take)(a, 0, 0, 1, 8, attend_wide(dim), o.out);
    for (size_t t = 0; t < r->n; t += LANES(aside_rows)) {
        const bool here = t + ahead < r->n;
        const size_t far = (here ? t + ahead : t + ahead - r->n) * step, *later = here ? r->row : r->later;
        const struct LANES(aside) k = LANES(aside_at)(r->k, r->row, later, t * step, far);
        const struct LANES(aside) v = LANES(aside_at)(r->v, r->row, later, t * step, far);
        V all = LANES(set)(-3e38F), sum;
        for (size_t j = 0, end = kern_count(LANES(aside_rows)); j < end; j++) {
            KERN_UNROLL
            for (size_t p = 0; p < ATTEND_TURNS; p++) {
                LANES(fetch_one)(k.later[p] + j * step, step, pairs);
                LANES(score_row)(a, q, k.row[p] + j * step, 0, 1, dim, bf16, &sum);
                all = LANES(with)(all, j * ATTEND_TURNS + p, LANES(sum)(sum) * a->scale);
            }
        }
        LANES(soften_one)(a, all, &o);
        LANES(values_aside)(a, &v, 0, 1, 1, dim, bf16, pairs, o.out);
    }
    LANES(leave)(a, 0, 0, 1, 8, attend_wide(dim), o.out);
    LANES(store)(a->sum, o.sum);
    *a->most = _mm512_cvtss_f32(o.most.v);
}

LANES_OP void LANES(pages_of)(const struct attend *from, const struct attend_pages *pages, size_t dim, bool bf16)
{
    enum { HN = ATTEND_LANES };
    const struct attend own = *from, *a = &own;
    const struct attend_pages local = *pages, *r = &local;
    const size_t step = dim * (bf16 ? 2 : 4), ahead = LANES(ahead)(ATTEND_AHEAD, step, r->n);
    for (size_t t = 0; t < r->n; t += LANES(aside_rows)) {
        const bool here = t + ahead < r->n;
        const size_t far = (here ? t + ahead : t + ahead - r->n) * step, *later = here ? r->row : r->later;
        const struct LANES(aside) k = LANES(aside_at)(r->k, r->row, later, t * step, far);
        const struct LANES(aside) v = LANES(aside_at)(r->v, r->row, later, t * step, far);
        for (size_t h = 0; h < a->room; h += HN) {
            ITEM q[HELD];
            if (LANES(holds)(HN, dim)) LANES(hold)(a, h, HN, dim, q);
            LANES(scores_aside)(a, &k, LANES(holds)(HN, dim) ? q : NULL, h, HN, dim, bf16);
        }
        for (size_t h = 0; h < a->room; h += HN) LANES(soften)(a, h, ATTEND_TURN, HN);
        for (size_t h = 0; h < a->room; h += 2) {
            V sum[16];
            LANES(take)(a, h, 0, 2, 8, attend_wide(dim), sum);
            LANES(values_aside)(a, &v, h, HN, 2, dim, bf16, false, sum);
            LANES(leave)(a, h, 0, 2, 8, attend_wide(dim), sum);
        }
    }
}
