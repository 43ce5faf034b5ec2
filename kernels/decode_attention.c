/* decode-attention -- one query token per sequence against its cache: o = softmax(q K^T / sqrt(head_dim)) V.
 *
 * Query head h reads key head h / (n_heads / n_kv_heads); a window keeps the last `window` tokens, the new one
 * included. The cache is pages [page][n_kv_heads][page_tokens][head_dim] and a table [batch][pages of a sequence] of
 * page numbers in no order; page_tokens 0: one page per sequence. Queries, cache and results are of one format, sums
 * are fp32; fp8: a cache of e4m3, queries and results of bf16. Engines have a scale for all keys and one for all
 * values, which go into that of the softmax and of the result: nothing to measure, and here they are 1. Counted: 4 *
 * batch * n_heads * head_dim * keys flops, 5 more per score for its softmax (scale, maximum, difference, exponential,
 * sum); queries and results once, keys and values that a window leaves once. The table is not counted: it is four bytes
 * where a page is thousands. The loops: kernels/attend.h. */
#include <math.h>
#include <string.h>

#include "kernels/attend.h"
#include "kernels/table.h"
#include "kernels/vector.h"

enum { BATCH, LEN, HEADS, KV_HEADS, DIM, WINDOW, PAGE };
enum { Q, K, V, TABLE, OUT, SCRATCH };
static const struct kern_arg ARGS[] = {
    [BATCH] = {"batch", 1, 1 << 16, "sequences"},
    [LEN] = {"kv_len", 1, 1 << 24, "tokens attended to, the new one included"},
    [HEADS] = {"n_heads", 1, 1 << 12, "query heads"},
    [KV_HEADS] = {"n_kv_heads", 1, 1 << 12, "key and value heads"},
    [DIM] = {"head_dim", 1, 1 << 12, "width of a head"},
    [WINDOW] = {"window", 0, 1 << 24, "tokens that a query sees; 0: all"},
    [PAGE] = {"page_tokens", 0, 1 << 16, "tokens of a page of the cache; 0: one piece"},
};

static size_t at(const struct kern_shape *s, size_t i) { return (size_t)s->v[i]; }
static bool in_bf16(const struct kern_shape *s) { return s->dtype == KERN_BF16; }
static enum kern_type type_of(const struct kern_shape *s)
{
    return s->dtype == KERN_FP32 ? KERN_TYPE_F32 : KERN_TYPE_BF16;
}
static enum kern_type cache_type(const struct kern_shape *s)
{
    return s->dtype == KERN_FP8 ? KERN_TYPE_F8 : type_of(s);
}
static size_t page_of(const struct kern_shape *s) { return s->v[PAGE] ? at(s, PAGE) : at(s, LEN); }
static size_t pages_of(const struct kern_shape *s) { return (at(s, LEN) + page_of(s) - 1) / page_of(s); }

/* First token that is seen. */
static size_t first_of(const struct kern_shape *s)
{
    return s->v[WINDOW] && s->v[WINDOW] < s->v[LEN] ? at(s, LEN) - at(s, WINDOW) : 0;
}

static const char *refuses(const struct kern_shape *s)
{
    if (s->v[HEADS] % s->v[KV_HEADS] != 0) return "n_heads is no multiple of n_kv_heads";
    const double tokens = (double)s->v[BATCH] * (double)pages_of(s) * (double)page_of(s);
    return tokens * (double)s->v[KV_HEADS] * (double)s->v[DIM] > 0x1p34 ||
                   (double)s->v[BATCH] * (double)s->v[HEADS] * (double)s->v[DIM] > 0x1p34
               ? "the cache is beyond memory"
               : NULL;
}

static size_t buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    const size_t wide = at(s, BATCH) * at(s, HEADS) * at(s, DIM), pages = at(s, BATCH) * pages_of(s);
    const size_t cache = pages * page_of(s) * at(s, KV_HEADS) * at(s, DIM);
    const enum kern_type type = type_of(s);
    out[Q] = (struct kern_buffer){"q", KERN_INPUT, type, wide, 1, 0};
    out[K] = (struct kern_buffer){"k", KERN_INPUT, cache_type(s), cache, 1, 0};
    out[V] = (struct kern_buffer){"v", KERN_INPUT, cache_type(s), cache, 1, 0};
    out[TABLE] = (struct kern_buffer){"table", KERN_INPUT, KERN_TYPE_I32, pages, 0, 0};
    out[OUT] = (struct kern_buffer){"out", KERN_OUTPUT, type, wide, 0, at(s, DIM)};
    const size_t scratch = at(s, KV_HEADS) * attend_scratch(at(s, HEADS) / at(s, KV_HEADS), at(s, DIM), at(s, DIM)) +
                           attend_aside(at(s, DIM));
    out[SCRATCH] = (struct kern_buffer){"scratch", KERN_SCRATCH, KERN_TYPE_F32, scratch, 0, 0};
    return 6;
}

/* The pages in random order. */
static void fill(const struct kern_call *c, size_t b, uint64_t seed, void *data)
{
    (void)b;
    kern_fill_order(data, at(c->shape, BATCH) * pages_of(c->shape), seed);
}

/* Element of the cache at which head `head` of token `token` of a sequence begins. */
static size_t row_of(const struct kern_call *c, size_t sequence, size_t head, size_t token)
{
    const size_t page = page_of(c->shape);
    const int32_t *table = c->buffer[TABLE];
    const size_t number = (size_t)table[sequence * pages_of(c->shape) + token / page];
    return ((number * at(c->shape, KV_HEADS) + head) * page + token % page) * at(c->shape, DIM);
}

/* A block is one head of one sequence. */
static void reference(const struct kern_call *c, size_t b, size_t block, double *out)
{
    const struct kern_shape *s = c->shape;
    const size_t dim = at(s, DIM), sequence = block / at(s, HEADS);
    const size_t head = block % at(s, HEADS) / (at(s, HEADS) / at(s, KV_HEADS));
    const enum kern_type type = type_of(s), cached = cache_type(s);
    double most = -HUGE_VAL, sum = 0;
    (void)b;
    for (size_t d = 0; d < dim; d++) out[d] = 0;
    for (int pass = 0; pass < 2; pass++) /* the maximum first */
        for (size_t t = first_of(s); t < at(s, LEN); t++) {
            const size_t row = row_of(c, sequence, head, t);
            double score = 0;
            for (size_t d = 0; d < dim; d++)
                score += kern_read(c->buffer[Q], type, block * dim + d) * kern_read(c->buffer[K], cached, row + d);
            score /= sqrt((double)dim);
            if (pass == 0) {
                most = fmax(most, score);
                continue;
            }
            sum += exp(score - most);
            for (size_t d = 0; d < dim; d++) out[d] += exp(score - most) * kern_read(c->buffer[V], cached, row + d);
        }
    for (size_t d = 0; d < dim; d++) out[d] /= sum;
}

static double reference_cost(const struct kern_shape *s, size_t b)
{
    (void)b;
    return 3 * (double)(at(s, LEN) - first_of(s)) * (double)s->v[DIM];
}

static void counts(const struct kern_shape *s, struct kern_counts *out)
{
    const double keys = (double)(at(s, LEN) - first_of(s)), batch = (double)s->v[BATCH];
    const double bytes = s->dtype == KERN_FP32 ? 4 : 2, cached = s->dtype == KERN_FP8 ? 1 : bytes;
    const double wide = batch * (double)s->v[HEADS] * (double)s->v[DIM];
    *out = (struct kern_counts){.flops = 4 * wide * keys,
                                .vector_flops = 5 * batch * (double)s->v[HEADS] * keys,
                                .read_bytes = bytes * wide +
                                              cached * 2 * batch * keys * (double)s->v[KV_HEADS] * (double)s->v[DIM],
                                .written_bytes = bytes * wide};
}

/* Keys, or values, of a page's heads follow one another. */
static double piece_bytes(const struct kern_shape *s)
{
    const double element = s->dtype == KERN_FP32 ? 4 : s->dtype == KERN_FP8 ? 1 : 2;
    if (page_of(s) >= at(s, LEN)) return 0;
    return element * (double)page_of(s) * (double)s->v[KV_HEADS] * (double)s->v[DIM];
}

/* bf16: results are rounded to 8 bits; the sums and weights of the softmax are fp32, or weights bf16, whose errors
 * average out. */
static double tolerance(const struct kern_shape *s) { return s->dtype == KERN_FP32 ? 1e-5 : 1e-2; }

/* -- the walk -- */

/* Blocks of tokens: of several small pages, which are read side by side, or of one. Of each all key heads, whose rows
 * follow one another in a page. */
struct walk {
    const struct kern_call *c;
    const struct attend_code *code;
    struct attend shape;
    size_t step;  /* bytes from a row to the next */
    size_t pages; /* of a block */
    size_t ahead; /* tokens, of attend_run */
    bool cut;     /* what is one piece is read as so many pages */
};

/* A block: tokens [from, to) of a sequence, and where its pages begin, bytes. */
struct block {
    size_t sequence, from, to, base[ATTEND_TURNS];
};

/* The block from a token on; false behind the last one. */
static bool block_at(const struct walk *w, size_t sequence, size_t from, struct block *out)
{
    const size_t page = page_of(w->c->shape), bytes = w->step / w->shape.dim, len = at(w->c->shape, LEN);
    if (from == len) {
        from = first_of(w->c->shape);
        sequence++;
    }
    if (sequence == at(w->c->shape, BATCH)) return false;
    out->sequence = sequence;
    out->from = from;
    out->to = from / page * page;
    for (size_t i = 0; i < w->pages && out->to < len; i++, out->to += page)
        out->base[i] = row_of(w->c, sequence, 0, out->to) * bytes;
    if (out->to > len) out->to = len;
    return true;
}

/* A head of a block whose pages are whole, side by side. next: the block that comes then, NULL: none. */
static void read_pages(const struct walk *w, const struct attend *a, const struct block *b, size_t head,
                       const struct block *next)
{
    const size_t page = page_of(w->c->shape), bytes = page * w->step;
    struct attend_pages p = {.k = w->c->buffer[K], .v = w->c->buffer[V], .n = page};
    for (size_t i = 0; i < ATTEND_TURNS; i++) {
        p.row[i] = p.later[i] = b->base[i] + head * bytes;
        if (head + 1 < at(w->c->shape, KV_HEADS))
            p.later[i] += bytes;
        else if (next && next->to - next->from == ATTEND_TURNS * page)
            p.later[i] = next->base[i];
    }
    w->code->pages(a, &p);
}

/* A head of a block that is one piece, cut into parts that are read side by side like pages; what is left behind them
 * is the caller's. Tokens read. */
static size_t read_cut(const struct walk *w, const struct attend *a, const struct block *b, size_t head,
                       const struct block *next)
{
    const size_t page = page_of(w->c->shape), n = (b->to - b->from) / ATTEND_TURN * (ATTEND_TURN / ATTEND_TURNS);
    struct attend_pages p = {.k = w->c->buffer[K], .v = w->c->buffer[V], .n = n};
    if (n == 0) return 0;
    for (size_t i = 0; i < ATTEND_TURNS; i++) {
        p.row[i] = p.later[i] = b->base[0] + (head * page + b->from + i * n) * w->step;
        if (head + 1 < at(w->c->shape, KV_HEADS))
            p.later[i] += page * w->step;
        else if (next)
            p.later[i] = next->base[0] + (next->from + i * n) * w->step;
    }
    w->code->pages(a, &p);
    return ATTEND_TURNS * n;
}

/* A head of a block, page by page. */
static void read_runs(const struct walk *w, const struct attend *a, const struct block *b, size_t head, size_t from,
                      const struct block *next)
{
    const size_t page = page_of(w->c->shape), heads = at(w->c->shape, KV_HEADS);
    const char *k = w->c->buffer[K], *v = w->c->buffer[V];
    for (size_t t = from, i = 0, n; t < b->to; t += n, i++) {
        n = page - t % page < b->to - t ? page - t % page : b->to - t;
        const size_t row = b->base[i] + (head * page + t % page) * w->step;
        size_t then = row;
        if (t + n < b->to)
            then = b->base[i + 1] + head * page * w->step;
        else if (head + 1 < heads)
            then = b->base[0] + ((head + 1) * page + b->from % page) * w->step;
        else if (next)
            then = next->base[0] + next->from % page * w->step;
        const bool last = then == row;
        w->code->run(a, &(struct attend_run){.k = k + row,
                                             .v = v + row,
                                             .next_k = last ? NULL : k + then,
                                             .next_v = last ? NULL : v + then,
                                             .n = n,
                                             .ahead = w->ahead});
    }
}

static void read_block(const struct walk *w, const struct block *b, const struct block *next)
{
    const struct kern_shape *s = w->c->shape;
    const bool whole = w->pages == ATTEND_TURNS && b->to - b->from == ATTEND_TURNS * page_of(s);
    for (size_t head = 0; head < at(s, KV_HEADS); head++) {
        struct attend a = w->shape;
        const size_t q = (b->sequence * at(s, KV_HEADS) + head) * a.heads * w->step;
        const size_t each = attend_scratch(a.heads, a.dim, a.dim);
        float *const scratch = w->c->buffer[SCRATCH];
        attend_open(&a, scratch + head * each, scratch + at(s, KV_HEADS) * each);
        if (b->from == first_of(s)) w->code->start(&a, (const char *)w->c->buffer[Q] + q);
        if (whole)
            read_pages(w, &a, b, head, next);
        else
            read_runs(w, &a, b, head, b->from + (w->cut ? read_cut(w, &a, b, head, next) : 0), next);
        if (b->to == at(s, LEN)) w->code->finish(&a, (char *)w->c->buffer[OUT] + q);
    }
}

/* Tokens ahead that are fetched. Rows in one piece are left to a processor that need not be asked, but for long ones
 * that several heads read and that are not read to their end in one go, as wide sets do those of the usual width; of
 * pages, which lie in no order, it fetches only the rest of what it has begun to read. */
static size_t ahead_of(const struct kern_shape *s, size_t row, size_t heads, bool wide, bool asked)
{
    const size_t page = page_of(s);
    if (page < at(s, LEN)) return page < 2 * ATTEND_TURN ? page : 2 * ATTEND_TURN;
    if (asked) return at(s, LEN) < 2 * ATTEND_TURN ? at(s, LEN) : 2 * ATTEND_TURN;
    if (wide && at(s, DIM) == ATTEND_USUAL) return 0;
    return row > ATTEND_FOLLOWED && heads > 1 ? ATTEND_TURN : 0;
}

static void attend_all(const struct kern_call *c, const struct attend_code *code)
{
    const struct kern_shape *s = c->shape;
    const size_t page = page_of(s), row = at(s, DIM) * (in_bf16(s) ? 2 : 4), heads = at(s, HEADS) / at(s, KV_HEADS);
    const bool paged = page < at(s, LEN) && code->pages && page % code->grain == 0;
    const bool aside = paged && (code->enter || at(s, DIM) == ATTEND_USUAL);
    struct walk w = {.c = c,
                     .code = code,
                     .shape = {.bf16 = in_bf16(s),
                               .asked = c->machine->asked,
                               .tiles = code->enter != NULL,
                               .heads = heads,
                               .dim = at(s, DIM),
                               .value_dim = at(s, DIM),
                               .scale = 1 / sqrtf((float)s->v[DIM])},
                     .step = row,
                     .pages = aside ? ATTEND_TURNS : 1,
                     .ahead = ahead_of(s, row, heads, code->pages != NULL, c->machine->asked)};
    w.shape.many = page >= at(s, LEN) ? attend_takes_many(code, &w.shape) : 0;
    w.cut = !code->enter && w.shape.asked && page >= at(s, LEN) && !w.shape.many && code->pages &&
            at(s, DIM) == ATTEND_USUAL;
    struct attend a = w.shape;
    attend_open(&a, c->buffer[SCRATCH], NULL);
    if (code->enter) code->enter(&a);
    struct block b[2];
    bool more = block_at(&w, 0, first_of(s), &b[0]);
    for (size_t i = 0; more; i++) {
        const struct block *now = &b[i % 2];
        more = block_at(&w, now->sequence, now->to, &b[(i + 1) % 2]);
        read_block(&w, now, more ? &b[(i + 1) % 2] : NULL);
    }
    if (code->leave) code->leave();
}

#define RUN(set)                                                                                                       \
    static void run_##set(const struct kern_call *c) { attend_all(c, &attend_##set); }
RUN(portable)
KERN_SETS(RUN)
KERN_SETS_BF16(RUN)

#if KERN_X86
static void run_amx(const struct kern_call *c)
{
    const struct kern_shape *s = c->shape;
    attend_all(c,
               attend_takes_tiles(at(s, HEADS) / at(s, KV_HEADS), at(s, DIM), at(s, DIM)) ? &attend_amx : &attend_dot);
}
#define TILES KERN_ROW("amx-bf16", KERN_UNIT_BF16_TILE, KERN_HAS(KERN_BF16), kern_lacks_amx_bf16, KERN_RUN(amx)),
#else
#define TILES
#endif

#define BOTH (KERN_HAS(KERN_FP32) | KERN_HAS(KERN_BF16))

static const struct kern_variant VARIANTS[] = {TILES KERN_ROWS_BF16(KERN_UNIT_BF16_DOT, KERN_RUN)
                                                   KERN_ROWS(BOTH, KERN_RUN) KERN_ROW_PORTABLE(BOTH, KERN_RUN)};

/* Layers of models of 8 (4 queries a key head) and 13 billion parameters, MQA, a window, pages of 16 tokens. */
static const struct kern_point POINTS[] = {
    {{{1, 8192, 32, 8, 128, 0, 0}, KERN_BF16}, true},     {{{8, 4096, 32, 8, 128, 0, 16}, KERN_BF16}, true},
    {{{1, 8192, 32, 32, 128, 0, 0}, KERN_FP32}, true},    {{{1, 32768, 32, 8, 128, 0, 16}, KERN_BF16}, false},
    {{{1, 16384, 40, 40, 128, 0, 0}, KERN_BF16}, false},  {{{16, 8192, 8, 1, 64, 0, 0}, KERN_BF16}, false},
    {{{8, 8192, 32, 8, 128, 4096, 0}, KERN_BF16}, false}, {{{4, 4096, 32, 8, 128, 0, 0}, KERN_FP32}, false},
    {{{16, 1024, 32, 8, 128, 0, 16}, KERN_BF16}, false},
};

const struct kern kern_decode_attention = {
    .name = "decode-attention",
    .summary = "one query token per sequence against its cache",
    .row_kind = "decode",
    .args = ARGS,
    .args_n = sizeof ARGS / sizeof ARGS[0],
    .dtypes = BOTH | KERN_HAS(KERN_FP8),
    .points = POINTS,
    .points_n = sizeof POINTS / sizeof POINTS[0],
    .refuses = refuses,
    .buffers = buffers,
    .fill = fill,
    .reference = reference,
    .reference_cost = reference_cost,
    .counts = counts,
    .piece_bytes = piece_bytes,
    .tolerance = tolerance,
    .variants = VARIANTS,
    .variants_n = sizeof VARIANTS / sizeof VARIANTS[0],
};
