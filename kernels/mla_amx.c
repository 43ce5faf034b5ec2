/* mla_amx -- a latent cache in bf16 by products of tiles (AMX-BF16), for kernels/mla_decode.c.
 *
 * A chunk is up to 256 tokens, whose rows stay in the second cache while all heads read them and those of the next
 * chunk are asked for, evenly over all that is computed. First scores, 32 heads at a time: 16 rows, where they lie,
 * times the queries of 16 heads, whose pairs of elements stand side by side; the exponentials of 32 heads are made
 * between the products of the next 32. Then values, 32 elements at a time: those of two tokens are interleaved once for
 * all heads and multiplied with the weights of the whole chunk, so that sums are taken from their cache and put back
 * once a chunk. A product takes 16 cycles and its result 52, so that four stand side by side: two by two, or, of the
 * last 16 heads of an odd number, of four groups of tokens, and of the values of every other 32 tokens in sums of their
 * own. */
#include <string.h>

#include "kernels/amx.h"
#include "kernels/mla_amx.h"
#include "kernels/vector.h"

enum {
    GROUP = AMX_ROWS,
    GROUPS = 16, /* of a chunk at most, a multiple of PACE */
    PACE = 4,    /* groups that are multiplied together */
    PAIRS = AMX_DEPTH,
    TILE = AMX_TILE,
    LINE = AMX_LINE,
    BLOCK = 2, /* tiles of heads */
    ITEM = 8   /* tokens whose scores become weights in one go */
};

/* queries [tile of heads][dim / 32], scores [2][BLOCK][group], weights [tile of heads][group / 2], values
 * [2][group / 2][2], sums [tile of heads, and one more][value_dim / 16]: tiles; a group of rows; of each head the
 * maximum and the sum. */
static size_t tiles_of(size_t heads) { return (heads + GROUP - 1) / GROUP; }
size_t mla_amx_bytes(size_t heads, size_t dim, size_t value_dim)
{
    const size_t tiles = tiles_of(heads), queries = tiles * dim / PAIRS, sums = (tiles + 1) * value_dim / GROUP;
    return (queries + 2 * BLOCK * GROUPS + tiles * GROUPS / 2 + 2 * GROUPS + sums) * TILE + GROUP * 2 * dim +
           2 * tiles * LINE;
}

#if KERN_X86
#define OP KERN_AMX_BF16 KERN_INLINE

static const float FAR_BELOW = -1e30F, HIDDEN = -1e38F, SLACK = 11; /* scores times scale times log2 e; scores */

struct job {
    const struct mla_amx *of;
    size_t tiles, steps, lines, step; /* of heads; of a row, of a value in 32 elements; bytes of a row */
    char *queries, *scores[2], *weights, *values, *sums, *rest;
    float *most, *sum; /* [tile of heads][GROUP] */
    float log2_scale;
    __m512i order; /* of the elements of two registers of scores, those of a head side by side */
};

struct chunk {
    const char *k[GROUPS];
    size_t n, groups; /* tokens; groups, a multiple of PACE: those behind the last token have no weight */
};

/* -- what comes next is asked for -- */

enum { ONE = 1 << 12, FEW = 4 }; /* not a unit */

struct queue {
    const char *from[GROUPS];
    size_t n, next, at, bytes, rate, credit; /* lines / ONE for a cycle; not yet asked for */
};

/* Some lines of each group in turn: several streams are fetched faster than one. */
OP void ask_all(struct queue *f, size_t times)
{
    for (; times > 0 && f->at < f->bytes; times--) {
        const char *const from = f->from[f->next] + f->at;
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

/* Cycles, about: four products of scores, of values, an item of the softmax, eight rows of a line of values. */
enum { OF_SCORES = 70, OF_VALUES = 70, OF_ITEM = 80, OF_LINES = 20 };

/* -- scores to weights -- */

/* Items of the softmax that are to be done: those of a block of heads. */
struct work {
    const char *scores; /* [tile][group] */
    char *weights;      /* [tile][group / 2] */
    size_t next, n, each;
    __m512 scale, less[BLOCK], sum[BLOCK];
    __m512i order;
};

/* Weights of ITEM tokens, [token][head] in pairs of registers: into rows of heads, LINE bytes apart. */
OP void turn_over(char *to, const __m512i *y)
{
    const __m512i low[2] = {_mm512_unpacklo_epi32(y[0], y[1]), _mm512_unpacklo_epi32(y[2], y[3])};
    const __m512i high[2] = {_mm512_unpackhi_epi32(y[0], y[1]), _mm512_unpackhi_epi32(y[2], y[3])};
    const __m512i z[4] = {_mm512_unpacklo_epi64(low[0], low[1]), _mm512_unpackhi_epi64(low[0], low[1]),
                          _mm512_unpacklo_epi64(high[0], high[1]), _mm512_unpackhi_epi64(high[0], high[1])};
    KERN_UNROLL
    for (size_t i = 0; i < 4; i++) { /* quarter j is of head 4 * j + i */
        char *const row = to + i * LINE;
        const size_t quarter = 4 * LINE;
        _mm_store_si128((__m128i *)(void *)row, _mm512_castsi512_si128(z[i]));
        _mm_store_si128((__m128i *)(void *)(row + quarter), _mm512_extracti32x4_epi32(z[i], 1));
        _mm_store_si128((__m128i *)(void *)(row + 2 * quarter), _mm512_extracti32x4_epi32(z[i], 2));
        _mm_store_si128((__m128i *)(void *)(row + 3 * quarter), _mm512_extracti32x4_epi32(z[i], 3));
    }
}

OP void soften(struct work *w, size_t tile, size_t item)
{
    const char *const s = w->scores + tile * GROUPS * TILE + item * ITEM * LINE;
    char *const to = w->weights + tile * (GROUPS / 2) * TILE + item / 4 * TILE + item % 4 * (2 * ITEM);
    __m512i half[4];
    KERN_UNROLL
    for (size_t i = 0; i < 4; i++) {
        const __m512 x = amx_exp2(_mm512_fmadd_ps(_mm512_load_ps(s + 2 * i * LINE), w->scale, w->less[tile]));
        const __m512 y = amx_exp2(_mm512_fmadd_ps(_mm512_load_ps(s + (2 * i + 1) * LINE), w->scale, w->less[tile]));
        w->sum[tile] = _mm512_add_ps(w->sum[tile], _mm512_add_ps(x, y));
        half[i] = _mm512_permutexvar_epi16(w->order, (__m512i)_mm512_cvtne2ps_pbh(y, x));
    }
    turn_over(to, half);
}

OP void do_some(struct work *w)
{
    if (w->next >= w->n) return;
    if (w->next < w->each)
        soften(w, 0, w->next);
    else
        soften(w, 1, w->next - w->each);
    w->next++;
}

/* Scores of a tile of heads are far above those so far: the new maximum, and what it makes of what has been summed. */
OP void raise(const struct job *j, size_t tile, __m512 found)
{
    float shrink[GROUP], *const most = j->most + tile * GROUP, *const sum = j->sum + tile * GROUP;
    const __m512 old = _mm512_loadu_ps(most), new = _mm512_max_ps(old, found);
    const __m512 less = amx_exp2(_mm512_sub_ps(old, new));
    _mm512_storeu_ps(shrink, less);
    _mm512_storeu_ps(most, new);
    _mm512_storeu_ps(sum, _mm512_mul_ps(_mm512_loadu_ps(sum), less));
    const bool apart = j->tiles % BLOCK && tile + 1 == j->tiles; /* it has two tiles of sums */
    for (size_t d = 0; d < (apart ? 4 * j->lines : 2 * j->lines); d++)
        for (size_t h = 0; h < GROUP; h++) {
            char *const at = j->sums + (tile * 2 * j->lines + d) * TILE + h * LINE;
            _mm512_store_ps(at, _mm512_mul_ps(_mm512_load_ps(at), _mm512_set1_ps(shrink[h])));
        }
}

/* The scores of a block of heads are there: its work. */
OP void work_open(const struct job *j, const struct chunk *c, size_t tile, size_t tiles, char *scores, struct work *w)
{
    *w = (struct work){.scores = scores,
                       .weights = j->weights + tile * (GROUPS / 2) * TILE,
                       .n = tiles * c->groups * (GROUP / ITEM),
                       .each = c->groups * (GROUP / ITEM),
                       .scale = _mm512_set1_ps(j->log2_scale),
                       .order = j->order};
    for (size_t i = 0; i < tiles; i++) {
        char *const s = scores + i * GROUPS * TILE;
        __m512 x = _mm512_set1_ps(HIDDEN), y = x;
        for (size_t t = c->n; t < c->groups * GROUP; t++) _mm512_store_ps(s + t * LINE, x);
        for (size_t t = 0; t < c->groups * GROUP; t += 2) {
            x = _mm512_max_ps(x, _mm512_load_ps(s + t * LINE));
            y = _mm512_max_ps(y, _mm512_load_ps(s + (t + 1) * LINE));
        }
        const __m512 found = _mm512_mul_ps(_mm512_max_ps(x, y), w->scale);
        const __m512 most = _mm512_loadu_ps(j->most + (tile + i) * GROUP);
        if (_mm512_cmp_ps_mask(found, _mm512_add_ps(most, _mm512_set1_ps(SLACK)), _CMP_GT_OQ))
            raise(j, tile + i, found);
        w->less[i] = _mm512_sub_ps(_mm512_setzero_ps(), _mm512_loadu_ps(j->most + (tile + i) * GROUP));
        w->sum[i] = _mm512_setzero_ps();
    }
}

OP void work_close(const struct job *j, size_t tile, size_t tiles, struct work *w, struct queue *f)
{
    for (; w->next < w->n; ask(f, OF_ITEM)) do_some(w);
    for (size_t i = 0; i < tiles; i++) {
        float *const sum = j->sum + (tile + i) * GROUP;
        _mm512_storeu_ps(sum, _mm512_add_ps(_mm512_loadu_ps(sum), w->sum[i]));
    }
}

/* -- products -- */

#define ZERO_ALL()                                                                                                     \
    do {                                                                                                               \
        TILE_ZERO(0);                                                                                                  \
        TILE_ZERO(1);                                                                                                  \
        TILE_ZERO(2);                                                                                                  \
        TILE_ZERO(3);                                                                                                  \
    } while (0)

/* Scores of two tiles of heads, while those of others become weights. */
OP void scores_two(const struct job *j, const struct chunk *c, size_t tile, char *to, struct work *w, struct queue *f)
{
    const char *const q = j->queries + tile * j->steps * TILE, *const r = q + j->steps * TILE;
    for (size_t g = 0; g < c->groups; g += 2, to += 2 * TILE) {
        const char *const a = c->k[g], *const b = c->k[g + 1];
        ZERO_ALL();
        for (size_t s = 0; s < j->steps; s++) {
            TILE_LOAD_ONCE(4, a + s * LINE, j->step);
            TILE_LOAD(6, q + s * TILE, LINE);
            TILE_PRODUCT(0, 4, 6);
            TILE_LOAD(7, r + s * TILE, LINE);
            TILE_PRODUCT(1, 4, 7);
            TILE_LOAD_ONCE(5, b + s * LINE, j->step);
            TILE_PRODUCT(2, 5, 6);
            TILE_PRODUCT(3, 5, 7);
            ask(f, OF_SCORES);
            if (s % 2) do_some(w);
        }
        TILE_STORE(0, to, LINE);
        TILE_STORE(1, to + GROUPS * TILE, LINE);
        TILE_STORE(2, to + TILE, LINE);
        TILE_STORE(3, to + (GROUPS + 1) * TILE, LINE);
    }
}

/* Of one, four groups of tokens at a time. */
OP void scores_one(const struct job *j, const struct chunk *c, size_t tile, char *to, struct work *w, struct queue *f)
{
    const char *const q = j->queries + tile * j->steps * TILE;
    for (size_t g = 0; g < c->groups; g += PACE, to += PACE * TILE) {
        const char *const *k = c->k + g;
        ZERO_ALL();
        for (size_t s = 0; s < j->steps; s++) {
            TILE_LOAD(4, q + s * TILE, LINE);
            TILE_LOAD_ONCE(5, k[0] + s * LINE, j->step);
            TILE_PRODUCT(0, 5, 4);
            TILE_LOAD_ONCE(6, k[1] + s * LINE, j->step);
            TILE_PRODUCT(1, 6, 4);
            ask(f, OF_SCORES / 2);
            TILE_LOAD_ONCE(7, k[2] + s * LINE, j->step);
            TILE_PRODUCT(2, 7, 4);
            TILE_LOAD_ONCE(5, k[3] + s * LINE, j->step);
            TILE_PRODUCT(3, 5, 4);
            ask(f, OF_SCORES / 2);
            do_some(w);
        }
        TILE_STORE(0, to, LINE);
        TILE_STORE(1, to + TILE, LINE);
        TILE_STORE(2, to + 2 * TILE, LINE);
        TILE_STORE(3, to + 3 * TILE, LINE);
    }
}

/* Line d of the values of all tokens, those of two side by side: tiles [group / 2][low, high]. */
OP void interleave(const struct job *j, const struct chunk *c, size_t d, char *to, struct queue *f)
{
    const size_t step = j->step;
    for (size_t g = 0; g < c->groups; g++) {
        const char *x = c->k[g] + d * LINE;
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

/* Line d of two tiles of heads, or of the last one twice: its sums of every other 32 tokens are apart, where those of a
 * further tile would be. */
OP void values(const struct job *j, const struct chunk *c, size_t tile, size_t d, const char *v, bool one,
               struct queue *f)
{
    char *const low = j->sums + (tile * j->lines + d) * 2 * TILE, *const high = low + j->lines * 2 * TILE;
    const char *w = j->weights + tile * (GROUPS / 2) * TILE;
    const char *u = one ? w + TILE : w + GROUPS / 2 * TILE;
    TILE_LOAD(0, low, LINE);
    TILE_LOAD(1, low + TILE, LINE);
    TILE_LOAD(2, high, LINE);
    TILE_LOAD(3, high + TILE, LINE);
    for (size_t g = 0; g < c->groups; g += one ? 4 : 2) {
        TILE_LOAD(6, v, LINE);
        TILE_LOAD_ONCE(4, w, LINE);
        TILE_PRODUCT(0, 4, 6);
        TILE_LOAD(7, v + TILE, LINE);
        TILE_PRODUCT(1, 4, 7);
        TILE_LOAD_ONCE(5, u, LINE);
        if (one) TILE_LOAD(6, v + 2 * TILE, LINE);
        TILE_PRODUCT(2, 5, 6);
        if (one) TILE_LOAD(7, v + 3 * TILE, LINE);
        TILE_PRODUCT(3, 5, 7);
        w += one ? 2 * TILE : TILE;
        u += one ? 2 * TILE : TILE;
        v += one ? 4 * TILE : 2 * TILE;
        ask(f, OF_VALUES);
    }
    TILE_STORE(0, low, LINE);
    TILE_STORE(1, low + TILE, LINE);
    TILE_STORE(2, high, LINE);
    TILE_STORE(3, high + TILE, LINE);
}

/* -- a chunk -- */

OP void read_chunk(const struct job *j, const struct chunk *c, struct queue *f)
{
    const size_t whole = j->tiles / BLOCK * BLOCK;
    struct work w = {.n = 0};
    size_t slot = 0;
    for (size_t tile = 0; tile < j->tiles; tile += BLOCK, slot ^= 1) {
        const size_t tiles = tile < whole ? BLOCK : 1;
        if (tiles == BLOCK)
            scores_two(j, c, tile, j->scores[slot], &w, f);
        else
            scores_one(j, c, tile, j->scores[slot], &w, f);
        if (tile > 0) work_close(j, tile - BLOCK, BLOCK, &w, f);
        work_open(j, c, tile, tiles, j->scores[slot], &w);
    }
    interleave(j, c, 0, j->values, f);
    work_close(j, whole < j->tiles ? whole : whole - BLOCK, whole < j->tiles ? 1 : BLOCK, &w, f);
    for (size_t d = 0; d < j->lines; d++) {
        const char *const v = j->values + d % 2 * GROUPS * TILE;
        if (d + 1 < j->lines) interleave(j, c, d + 1, j->values + (d + 1) % 2 * GROUPS * TILE, f);
        for (size_t tile = 0; tile < whole; tile += BLOCK) values(j, c, tile, d, v, false, f);
        if (whole < j->tiles) values(j, c, whole, d, v, true, f);
    }
    ask_all(f, SIZE_MAX);
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static const char *row_at(const struct mla_amx *p, const int32_t *table, size_t token)
{
    return p->cache + ((size_t)table[token / p->page] * p->page + token % p->page) * 2 * p->dim;
}

/* Tokens [from, from + n). The last, fewer than a group, are copied into rows of zeros. */
OP void chunk_at(const struct job *j, size_t from, size_t n, struct chunk *c)
{
    const struct mla_amx *p = j->of;
    c->n = n;
    c->groups = (n + PACE * GROUP - 1) / (PACE * GROUP) * PACE;
    for (size_t g = 0; g < c->groups; g++) {
        const size_t at = g * GROUP < n ? g * GROUP : 0;
        c->k[g] = row_at(p, p->table, from + at);
        if (n - at >= GROUP) continue;
        memset(j->rest, 0, GROUP * j->step);
        memcpy(j->rest, c->k[g], (n - at) * j->step);
        c->k[g] = j->rest;
    }
}

/* The whole groups of n tokens of a sequence from `from` on are to be asked for while `now` is computed. */
OP void queue_open(const struct job *j, const struct chunk *now, const int32_t *table, size_t from, size_t n,
                   struct queue *f)
{
    const size_t fours = (j->tiles + 1) / 2 * now->groups / 2, lines = now->groups * 2 * j->lines;
    const size_t cycles = fours * (j->steps * OF_SCORES + j->lines * OF_VALUES) + lines * OF_LINES +
                          least(j->tiles, BLOCK) * now->groups * 2 * OF_ITEM;
    *f = (struct queue){.n = table ? n / GROUP : 0, .bytes = GROUP * j->step};
    for (size_t g = 0; g < f->n; g++) f->from[g] = row_at(j->of, table, from + g * GROUP);
    if (f->n == 0) f->bytes = 0;
    f->rate = f->n * f->bytes / LINE * ONE / cycles + 1;
}

/* -- ends -- */

OP void start(struct job *j)
{
    const struct mla_amx *p = j->of;
    uint16_t *to = (uint16_t *)(void *)j->queries;
    for (size_t h = 0; h < j->tiles * GROUP; h += GROUP)
        for (size_t d = 0; d < p->dim; d += 2)
            for (size_t i = h; i < h + GROUP; i++)
                for (size_t e = 0; e < 2; e++) *to++ = i < p->heads ? p->q[i * p->dim + d + e] : 0;
    memset(j->sums, 0, (j->tiles + 1) * 2 * j->lines * TILE);
    for (size_t i = 0; i < j->tiles * GROUP; i++) {
        j->most[i] = FAR_BELOW;
        j->sum[i] = 0;
    }
}

/* Elements of 32 stand as 0-3 8-11 16-19 24-27, 4-7 12-15 .... */
OP void finish(const struct job *j)
{
    const struct mla_amx *p = j->of;
    const __m512i fours = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    const size_t whole = j->tiles / BLOCK * BLOCK * GROUP;
    uint16_t *to = p->out;
    for (size_t h = 0; h < p->heads; h++) {
        const __m512 all = _mm512_set1_ps(j->sum[h]);
        for (size_t d = 0; d < j->lines; d++, to += PAIRS) {
            const char *const at = j->sums + (h / GROUP * j->lines + d) * 2 * TILE + h % GROUP * LINE;
            __m512 x = _mm512_load_ps(at), y = _mm512_load_ps(at + TILE);
            if (h >= whole) {
                x = _mm512_add_ps(x, _mm512_load_ps(at + j->lines * 2 * TILE));
                y = _mm512_add_ps(y, _mm512_load_ps(at + j->lines * 2 * TILE + TILE));
            }
            x = _mm512_div_ps(x, all);
            y = _mm512_div_ps(y, all);
            _mm512_storeu_si512(to, _mm512_permutexvar_epi64(fours, (__m512i)_mm512_cvtne2ps_pbh(y, x)));
        }
    }
}

static void job_open(const struct mla_amx *p, struct job *j)
{
    *j = (struct job){.of = p,
                      .tiles = tiles_of(p->heads),
                      .steps = p->dim / PAIRS,
                      .lines = p->value_dim / PAIRS,
                      .step = 2 * p->dim,
                      .queries = p->scratch,
                      .log2_scale = p->scale * 1.44269504F};
    j->scores[0] = j->queries + j->tiles * j->steps * TILE;
    j->scores[1] = j->scores[0] + BLOCK * GROUPS * TILE;
    j->weights = j->scores[1] + BLOCK * GROUPS * TILE;
    j->values = j->weights + j->tiles * (GROUPS / 2) * TILE;
    j->sums = j->values + 2 * GROUPS * TILE;
    j->rest = j->sums + (j->tiles + 1) * 2 * j->lines * TILE;
    j->most = (float *)(void *)(j->rest + GROUP * j->step);
    j->sum = j->most + j->tiles * GROUP;
}

KERN_AMX_BF16 void mla_amx_open(void)
{
    struct amx_form f = {.palette = 1};
    for (size_t i = 0; i < AMX_TILES; i++) {
        f.rows[i] = AMX_ROWS;
        f.row_bytes[i] = AMX_LINE;
    }
    AMX_SET_FORM(f);
}

KERN_AMX_BF16 void mla_amx_close(void) { AMX_RELEASE(); }

/* The first chunk, for which nothing has asked, is a quarter, and the next one a half. */
KERN_AMX_BF16 void mla_amx_run(const struct mla_amx *p, bool first)
{
    uint16_t word[PAIRS];
    struct job j;
    job_open(p, &j);
    for (size_t i = 0; i < PAIRS; i++) word[i] = (uint16_t)(i % 2 * GROUP + i / 2);
    j.order = _mm512_loadu_si512(word);
    start(&j);
    size_t most = first ? GROUPS * GROUP / 4 : GROUPS * GROUP;
    for (size_t from = 0, n; from < p->tokens; from += n) {
        struct chunk c;
        struct queue f;
        n = least(most, p->tokens - from);
        most = least(2 * most, GROUPS * GROUP);
        chunk_at(&j, from, n, &c);
        if (from + n < p->tokens)
            queue_open(&j, &c, p->table, from + n, least(most, p->tokens - from - n), &f);
        else
            queue_open(&j, &c, p->later_table, 0, least(most, p->tokens), &f);
        read_chunk(&j, &c, &f);
    }
    finish(&j);
}
#endif
