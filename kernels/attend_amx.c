/* attend_amx -- several query heads against a cache in bf16 by products of tiles (AMX-BF16), for the walks of
 * kernels/attend.h.
 *
 * A turn is ATTEND_TILES groups of 16 tokens. Scores of a group and up to 16 heads are one tile: 16 rows of keys, read
 * where they lie, times the queries, two elements of which stand side by side as the instruction wants them. Their
 * exponentials go into a tile of 16 heads times 32 tokens; the values of two tokens are interleaved once for all heads,
 * into a room of the second cache at most, and multiplied with it. A product takes 16 cycles for 16 rows of 32 elements
 * times 16 columns, twelve times what the dot unit does, so that memory binds up to about 30 heads, and memory is what
 * the code goes by: lines are asked for a turn before, evenly over everything that a turn computes. What lies behind
 * the last token is copied into rows of zeros. */
#include <string.h>

#include "kernels/amx.h"
#include "kernels/attend.h"
#include "kernels/vector.h"

#if KERN_X86

enum {
    GROUP = AMX_ROWS,
    TURN = 4 * GROUP, /* tokens */
    PAIRS = AMX_DEPTH,
    LINE = AMX_LINE,
    TILE = AMX_TILE,
    ROW = TURN * 2,             /* bytes of the weights of a head and a turn */
    SEGMENTS = 2 * TURN / GROUP /* what is asked for: keys and values of each group */
};
#define OP KERN_AMX_BF16 KERN_INLINE

/* Registers 0 and 1 are scores, 2 queries, 3 and 4 keys or values, 5 and 6 weighted values, 7 weights: one form for all
 * of a call, since to change it waits for what is under way. */
OP void set_form(size_t heads)
{
    enum { QUERIES_END = 3, VALUES_END = 5 };
    struct amx_form f = {.palette = 1};
    for (size_t i = 0; i < AMX_TILES; i++) {
        f.rows[i] = (uint8_t)(i < VALUES_END ? GROUP : heads);
        f.row_bytes[i] = (uint16_t)(i < QUERIES_END ? 4 * heads : LINE);
    }
    AMX_SET_FORM(f);
}

enum { GROUPS = 4 }; /* groups of a turn */

/* -- a turn -- */

struct turn {
    const char *k[GROUPS], *v[GROUPS];             /* rows of each group */
    const char *later_k[GROUPS], *later_v[GROUPS]; /* those of the next turn, NULL: none */
    size_t n;                                      /* tokens; behind them are rows of zeros */
};

/* Lines that are asked for, some of each segment in turn, so many of them for each cycle of what is computed meanwhile.
 */
struct queue {
    const char *begin[SEGMENTS];
    size_t next, n, at, bytes, rate, credit; /* lines / ONE for a cycle; not yet asked for */
};
enum { ONE = 1 << 12, FEW = 4 }; /* not a unit */

/* FEW of them at a time. */
OP void ask_all(struct queue *f, size_t times)
{
    for (; times > 0 && f->at < f->bytes; times--) {
        const char *const from = f->begin[f->next] + f->at;
        KERN_UNROLL
        for (size_t i = 0; i < FEW; i++) _mm_prefetch(from + i * LINE, _MM_HINT_T1);
        if (++f->next < f->n) continue;
        f->next = 0;
        f->at += FEW * LINE;
    }
}

OP void ask(struct queue *f, size_t cycles)
{
    f->credit += cycles * f->rate;
    if (f->credit < FEW * ONE) return;
    ask_all(f, f->credit / (FEW * ONE));
    f->credit %= FEW * ONE;
}

/* Cycles of the steps of each part, about: a tile of scores, two registers of weights, eight rows of a line of values,
 * a product with them. */
enum { OF_SCORES = 60, OF_WEIGHTS = 20, OF_LINES = 18, OF_VALUES = 70 };

OP void queue_open(struct queue *f, const struct attend *a, const struct turn *t, bool apart)
{
    const size_t groups = (a->room + GROUP - 1) / GROUP, lines = a->value_dim / PAIRS;
    const size_t cycles = groups * (GROUPS * a->dim / PAIRS * OF_SCORES + 2 * lines * OF_VALUES) +
                          TURN * a->room / PAIRS * OF_WEIGHTS + TURN / 8 * lines * OF_LINES;
    *f = (struct queue){.bytes = GROUP * 2 * a->dim};
    for (size_t i = 0; i < GROUPS; i++) {
        if (t->later_k[i]) f->begin[f->n++] = t->later_k[i];
        if (t->later_v[i] && apart) f->begin[f->n++] = t->later_v[i];
    }
    if (f->n == 0) f->bytes = 0;
    f->rate = f->n * f->bytes / LINE * ONE / cycles + 1;
}

/* Heads whose tile is one: as many as a lane's part of a register holds. */
static size_t heads_of(const struct attend *a) { return a->room < GROUP ? a->room : GROUP; }

/* Scores of the heads from `head` on, [TURN][heads], not yet scaled. */
OP void scores(const struct attend *a, const struct turn *t, size_t head, struct queue *f)
{
    const size_t heads = heads_of(a), step = 2 * a->dim, row = 4 * heads;
    char *out = (char *)(a->scores + head * TURN);
    for (size_t g = 0; g < GROUPS; g += 2, out += 2 * GROUP * row) {
        const char *q = (const char *)a->queries + head * attend_wide(a->dim) * 2;
        TILE_ZERO(0);
        TILE_ZERO(1);
        for (size_t s = 0; s < step; s += LINE, q += GROUP * row) {
            TILE_LOAD(2, q, row);
            TILE_LOAD(3, t->k[g] + s, step);
            TILE_PRODUCT(0, 3, 2);
            ask(f, OF_SCORES);
            TILE_LOAD(4, t->k[g + 1] + s, step);
            TILE_PRODUCT(1, 4, 2);
            ask(f, OF_SCORES);
        }
        TILE_STORE(0, out, row);
        TILE_STORE(1, out + GROUP * row, row);
    }
}

/* The largest of what stands in the lanes of each head, in all of them: lane i is of head i % heads. */
OP __m512 most_of(__m512 x, size_t heads)
{
    if (heads <= 8) x = _mm512_max_ps(x, _mm512_shuffle_f32x4(x, x, 0x4e));
    if (heads <= 4) x = _mm512_max_ps(x, _mm512_shuffle_f32x4(x, x, 0xb1));
    return x;
}

/* Scores are far above those so far: the new maximum, and what it makes of what has been summed. */
OP void raise(const struct attend *a, size_t head, size_t heads, __m512 found)
{
    const size_t wide = attend_wide(a->value_dim);
    float *most = a->most + head * GROUP / heads, *sum = a->sum + head * GROUP / heads, shrink[GROUP];
    const __m512 old = _mm512_loadu_ps(most), new = _mm512_max_ps(old, found);
    const __m512 less = amx_exp2(_mm512_mul_ps(_mm512_sub_ps(old, new), _mm512_set1_ps(1.44269504F)));
    _mm512_storeu_ps(shrink, less);
    _mm512_storeu_ps(most, new);
    _mm512_storeu_ps(sum, _mm512_mul_ps(_mm512_loadu_ps(sum), less));
    for (size_t h = 0; h < heads; h++)
        for (size_t d = 0; d < wide; d += GROUP) {
            float *const out = a->out + (head + h) * wide + d;
            _mm512_storeu_ps(out, _mm512_mul_ps(_mm512_loadu_ps(out), _mm512_set1_ps(shrink[h])));
        }
}

/* Weights of 8 tokens, [8][heads] in bf16, x[heads / 4]: into rows of heads, 16 bytes each. order: of the elements of a
 * register, so that those of a head stand side by side. */
OP void turn_over(char *to, const __m512i *x, size_t heads, __m512i order)
{
    __m512i y[4], z[4];
    KERN_UNROLL
    for (size_t i = 0; i < heads / 4; i++) y[i] = z[i] = _mm512_permutexvar_epi16(order, x[i]);
    if (heads == 8) {
        z[0] = _mm512_unpacklo_epi64(y[0], y[1]);
        z[1] = _mm512_unpackhi_epi64(y[0], y[1]);
    }
    if (heads == 16) {
        const __m512i low[2] = {_mm512_unpacklo_epi32(y[0], y[1]), _mm512_unpacklo_epi32(y[2], y[3])};
        const __m512i high[2] = {_mm512_unpackhi_epi32(y[0], y[1]), _mm512_unpackhi_epi32(y[2], y[3])};
        z[0] = _mm512_unpacklo_epi64(low[0], low[1]);
        z[1] = _mm512_unpackhi_epi64(low[0], low[1]);
        z[2] = _mm512_unpacklo_epi64(high[0], high[1]);
        z[3] = _mm512_unpackhi_epi64(high[0], high[1]);
    }
    KERN_UNROLL
    for (size_t i = 0; i < heads / 4; i++) { /* quarter j is of head j * heads / 4 + i */
        char *const row = to + i * ROW;
        const size_t quarter = heads / 4 * ROW;
        _mm_storeu_si128((__m128i *)(void *)row, _mm512_castsi512_si128(z[i]));
        _mm_storeu_si128((__m128i *)(void *)(row + quarter), _mm512_extracti32x4_epi32(z[i], 1));
        _mm_storeu_si128((__m128i *)(void *)(row + 2 * quarter), _mm512_extracti32x4_epi32(z[i], 2));
        _mm_storeu_si128((__m128i *)(void *)(row + 3 * quarter), _mm512_extracti32x4_epi32(z[i], 3));
    }
}

/* Scores to weights, [heads][TURN] in bf16. */
OP void soften(const struct attend *a, const struct turn *t, size_t head, size_t heads, struct queue *f)
{
    const float log2_e = 1.44269504F;
    float *const s = a->scores + head * TURN, *const most = a->most + head * GROUP / heads;
    float *const sums = a->sum + head * GROUP / heads;
    char *const to = (char *)a->halves + head * ROW;
    uint16_t word[PAIRS];
    for (size_t i = t->n * heads; i < TURN * heads; i++) s[i] = -3e38F;
    __m512 found = _mm512_loadu_ps(s), least = _mm512_loadu_ps(most), sum = _mm512_loadu_ps(sums);
    for (size_t i = GROUP; i < TURN * heads; i += GROUP) found = _mm512_max_ps(found, _mm512_loadu_ps(s + i));
    found = most_of(_mm512_mul_ps(found, _mm512_set1_ps(a->scale)), heads);
    if (_mm512_cmp_ps_mask(found, _mm512_add_ps(least, _mm512_set1_ps(ATTEND_SLACK)), _CMP_GT_OQ)) {
        raise(a, head, heads, found);
        least = _mm512_loadu_ps(most);
        sum = _mm512_loadu_ps(sums);
    }
    for (size_t i = 0, tokens = PAIRS / heads; i < PAIRS; i++) word[i] = (uint16_t)(i % tokens * heads + i / tokens);
    const __m512i order = _mm512_loadu_si512(word);
    const __m512 scale = _mm512_set1_ps(a->scale * log2_e);
    least = _mm512_mul_ps(least, _mm512_set1_ps(-log2_e));
    for (size_t i = 0; i < TURN; i += 8) {
        const float *const from = s + i * heads;
        __m512i halves[4];
        KERN_UNROLL
        for (size_t j = 0; j < heads / 4; j++) {
            const __m512 x = amx_exp2(_mm512_fmadd_ps(_mm512_loadu_ps(from + PAIRS * j), scale, least));
            const __m512 y = amx_exp2(_mm512_fmadd_ps(_mm512_loadu_ps(from + PAIRS * j + GROUP), scale, least));
            sum = _mm512_add_ps(sum, _mm512_add_ps(x, y));
            halves[j] = (__m512i)_mm512_cvtne2ps_pbh(y, x);
        }
        turn_over(to + 2 * i, halves, heads, order);
        ask(f, heads / 4 * OF_WEIGHTS);
    }
    _mm512_storeu_ps(sums, sum);
}

/* A line of the values of all tokens, those of two side by side: tiles [half of the turn][low, high]. */
OP void interleave(const struct attend *a, const struct turn *t, size_t d, char *to, struct queue *f)
{
    const size_t step = 2 * a->dim;
    for (size_t g = 0; g < GROUPS; g++) {
        const char *x = t->v[g] + 2 * d;
        char *const tile = to + g / 2 * 2 * TILE + g % 2 * (TILE / 2);
        for (size_t r = 0; r < GROUP / 2; r += 4, x += 8 * step) {
            KERN_UNROLL
            for (size_t i = 0; i < 4; i++) {
                const __m512i p = _mm512_loadu_si512(x + 2 * i * step), q = _mm512_loadu_si512(x + (2 * i + 1) * step);
                _mm512_store_si512(tile + (r + i) * LINE, _mm512_unpacklo_epi16(p, q));
                _mm512_store_si512(tile + (r + i) * LINE + TILE, _mm512_unpackhi_epi16(p, q));
            }
            ask(f, OF_LINES);
        }
    }
}

/* Its products with the weights of the heads from `head` on. */
OP void values(const struct attend *a, size_t head, size_t d, const char *at, struct queue *f)
{
    const size_t wide = attend_wide(a->value_dim), row = 4 * wide;
    const char *const weight = (const char *)a->halves + head * ROW;
    char *const out = (char *)(a->out + head * wide + d);
    TILE_LOAD(5, out, row);
    TILE_LOAD(6, out + LINE, row);
    TILE_LOAD(7, weight, ROW);
    TILE_LOAD(3, at, LINE);
    TILE_PRODUCT(5, 7, 3);
    TILE_LOAD(4, at + TILE, LINE);
    TILE_PRODUCT(6, 7, 4);
    ask(f, OF_VALUES);
    TILE_LOAD(7, weight + LINE, ROW);
    TILE_LOAD(3, at + 2 * TILE, LINE);
    TILE_PRODUCT(5, 7, 3);
    TILE_LOAD(4, at + 3 * TILE, LINE);
    TILE_PRODUCT(6, 7, 4);
    ask(f, OF_VALUES);
    TILE_STORE(5, out, row);
    TILE_STORE(6, out + LINE, row);
}

/* A line of values is interleaved while another is multiplied, and the first while weights wait for their maximum. */
OP void read_turn(const struct attend *a, const struct turn *t, bool apart)
{
    const size_t heads = heads_of(a);
    struct queue f;
    queue_open(&f, a, t, apart);
    for (size_t h = 0; h < a->room; h += heads) scores(a, t, h, &f);
    interleave(a, t, 0, a->aside, &f);
    if (heads == 4)
        soften(a, t, 0, 4, &f);
    else if (heads == 8)
        soften(a, t, 0, 8, &f);
    else
        for (size_t h = 0; h < a->room; h += GROUP) soften(a, t, h, GROUP, &f);
    for (size_t d = 0, i = 0; d < a->value_dim; d += PAIRS, i ^= 1) {
        if (d + PAIRS < a->value_dim) interleave(a, t, d + PAIRS, a->aside + (i ^ 1) * 4 * TILE, &f);
        for (size_t h = 0; h < a->room; h += heads) values(a, h, d, a->aside + i * 4 * TILE, &f);
    }
    ask_all(&f, SIZE_MAX);
}

/* -- walks -- */

/* Fewer tokens than a turn has: their rows into the room behind the tiles of values, zeros behind them. */
OP void read_rest(const struct attend *a, const char *k, const char *v, size_t n)
{
    const size_t step = 2 * a->dim;
    char *const room = a->aside + 2 * 4 * TILE;
    struct turn t = {.n = n};
    memset(room, 0, 2 * TURN * step);
    memcpy(room, k, n * step);
    memcpy(room + TURN * step, v, n * step);
    for (size_t g = 0; g < GROUPS; g++) {
        t.k[g] = room + g * GROUP * step;
        t.v[g] = t.k[g] + (k == v ? 0 : TURN * step);
    }
    read_turn(a, &t, true);
}

KERN_AMX_BF16 static void run(const struct attend *a, const struct attend_run *r)
{
    const size_t step = 2 * a->dim;
    const char *k = r->k, *v = r->v;
    for (size_t left = r->n; left > 0;) {
        const size_t n = left < TURN ? left : TURN;
        struct turn t = {.n = n};
        left -= n;
        if (n < TURN) {
            read_rest(a, k, v, n);
            break;
        }
        for (size_t g = 0; g < GROUPS; g++) {
            t.k[g] = k + g * GROUP * step;
            t.v[g] = v + g * GROUP * step;
            if (left >= (g + 1) * GROUP) {
                t.later_k[g] = t.k[g] + TURN * step;
                t.later_v[g] = t.v[g] + TURN * step;
            } else if (left == 0 && r->next_k) {
                t.later_k[g] = r->next_k + g * GROUP * step;
                t.later_v[g] = r->next_v + g * GROUP * step;
            }
        }
        read_turn(a, &t, r->k != r->v);
        k += n * step;
        v += n * step;
    }
}

KERN_AMX_BF16 static void pages(const struct attend *a, const struct attend_pages *p)
{
    const size_t step = 2 * a->dim;
    for (size_t r = 0; r < p->n; r += GROUP) {
        struct turn t = {.n = TURN};
        for (size_t g = 0; g < GROUPS; g++) {
            const bool here = r + GROUP < p->n;
            const size_t then = here ? p->row[g] + (r + GROUP) * step : p->later[g];
            t.k[g] = p->k + p->row[g] + r * step;
            t.v[g] = p->v + p->row[g] + r * step;
            t.later_k[g] = here || p->later[g] != p->row[g] ? p->k + then : NULL;
            t.later_v[g] = here || p->later[g] != p->row[g] ? p->v + then : NULL;
        }
        read_turn(a, &t, true);
    }
}

/* -- ends -- */

KERN_AMX_BF16 static void enter(const struct attend *a) { set_form(heads_of(a)); }
KERN_AMX_BF16 static void leave(void) { AMX_RELEASE(); }

/* Queries of up to 16 heads: [dim / 2][heads][2]. */
KERN_AMX_BF16 static void start(const struct attend *a, const void *q)
{
    const size_t heads = heads_of(a), wide = attend_wide(a->value_dim);
    const uint16_t *const from = q;
    uint16_t *to = a->queries;
    for (size_t h = 0; h < a->room; h += heads)
        for (size_t d = 0; d < a->dim; d += 2)
            for (size_t i = h; i < h + heads; i++)
                for (size_t j = 0; j < 2; j++) *to++ = i < a->heads ? from[i * a->dim + d + j] : 0;
    for (size_t i = 0; i < a->room * wide; i++) a->out[i] = 0;
    for (size_t i = 0; i < (a->room + GROUP - 1) / GROUP * GROUP; i++) {
        a->most[i] = -3e38F;
        a->sum[i] = 0;
    }
}

/* Elements of 32 stand as 0-3 8-11 16-19 24-27, 4-7 12-15 .... */
KERN_AMX_BF16 static void finish(const struct attend *a, void *out)
{
    const size_t heads = heads_of(a), wide = attend_wide(a->value_dim);
    const __m512i fours = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    uint16_t *to = out;
    for (size_t h = 0; h < a->heads; h++) {
        const float *const sums = a->sum + h / heads * GROUP, *from = a->out + h * wide;
        float sum = 0;
        for (size_t i = h % heads; i < GROUP; i += heads) sum += sums[i];
        const __m512 all = _mm512_set1_ps(sum);
        for (size_t d = 0; d < a->value_dim; d += PAIRS, from += PAIRS, to += PAIRS) {
            const __m512 x = _mm512_div_ps(_mm512_loadu_ps(from), all);
            const __m512 y = _mm512_div_ps(_mm512_loadu_ps(from + GROUP), all);
            _mm512_storeu_si512(to, _mm512_permutexvar_epi64(fours, (__m512i)_mm512_cvtne2ps_pbh(y, x)));
        }
    }
}

const struct attend_code attend_amx = {start, run, pages, finish, 0, GROUP, enter, leave};
#endif
