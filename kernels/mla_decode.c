/* mla-decode -- one query token per sequence against a latent cache, projections absorbed: what the heads read is one
 * row of kv_lora_rank + rope_dim elements a token, the first kv_lora_rank of which are the value as well.
 *
 * q is [batch][n_heads_local][kv_lora_rank + rope_dim], its first part already times the keys' up-projection
 * (DeepSeek-V2, arXiv:2405.04434, 2.1.3); out [batch][n_heads_local][kv_lora_rank], before the values' up-projection.
 * The cache is pages [page][page_tokens][kv_lora_rank + rope_dim] and a table [batch][pages of a sequence] of page
 * numbers in no order; page_tokens 0: one page per sequence. The scale is that of the width of a row; a model has its
 * own, which costs the same. One format, sums in fp32.
 * Counted: 2 * (2 * kv_lora_rank + rope_dim) flops for each head and token, 5 more for its softmax, as in
 * kernels/decode_attention.c; the cache once, not once for keys and once for values, queries and results once; the
 * table, four bytes a page, is not. All heads share the cache, so that with many the products bind and not the memory.
 * The loops: kernels/attend.h. */
#include <math.h>
#include <string.h>

#include "kernels/attend.h"
#include "kernels/mla_amx.h"
#include "kernels/table.h"
#include "kernels/vector.h"

enum { BATCH, LEN, HEADS, RANK, ROPE, PAGE };
enum { Q, CACHE, TABLE, OUT, SCRATCH };
enum {
    AHEAD = 3 * ATTEND_TURN
}; /* tokens ahead whose rows are fetched: the processor does not follow such long ones */

static const struct kern_arg ARGS[] = {
    [BATCH] = {"batch", 1, 1 << 16, "sequences"},
    [LEN] = {"kv_len", 1, 1 << 24, "tokens attended to, the new one included"},
    [HEADS] = {"n_heads_local", 1, 1 << 10, "query heads"},
    [RANK] = {"kv_lora_rank", 1, 1 << 12, "width of the latent, which is key and value"},
    [ROPE] = {"rope_dim", 1, 1 << 12, "width of the part of the key that has the position"},
    [PAGE] = {"page_tokens", 0, 1 << 16, "tokens of a page of the cache; 0: one piece"},
};

static size_t at(const struct kern_shape *s, size_t i) { return (size_t)s->v[i]; }
static bool in_bf16(const struct kern_shape *s) { return s->dtype == KERN_BF16; }
static enum kern_type type_of(const struct kern_shape *s) { return in_bf16(s) ? KERN_TYPE_BF16 : KERN_TYPE_F32; }
static size_t row_of(const struct kern_shape *s) { return at(s, RANK) + at(s, ROPE); }
static size_t page_of(const struct kern_shape *s) { return s->v[PAGE] ? at(s, PAGE) : at(s, LEN); }
static size_t pages_of(const struct kern_shape *s) { return (at(s, LEN) + page_of(s) - 1) / page_of(s); }

static const char *refuses(const struct kern_shape *s)
{
    const double batch = (double)s->v[BATCH], row = (double)row_of(s);
    return batch * (double)pages_of(s) * (double)page_of(s) * row > 0x1p34 || batch * (double)s->v[HEADS] * row > 0x1p34
               ? "the cache is beyond memory"
               : NULL;
}

/* Floats: of whichever code takes more. */
static size_t scratch_of(size_t heads, size_t row, size_t rank)
{
    const size_t rows = attend_scratch(heads, row, rank) + attend_aside(row);
    const size_t tiles = mla_amx_bytes(heads, row, rank) / sizeof(float);
    return rows > tiles ? rows : tiles;
}

static size_t buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    const size_t batch = at(s, BATCH), heads = at(s, HEADS), row = row_of(s), rank = at(s, RANK);
    const size_t pages = batch * pages_of(s), scratch = scratch_of(heads, row, rank);
    const enum kern_type type = type_of(s);
    out[Q] = (struct kern_buffer){"q", KERN_INPUT, type, batch * heads * row, 1, 0};
    out[CACHE] = (struct kern_buffer){"cache", KERN_INPUT, type, pages * page_of(s) * row, 1, 0};
    out[TABLE] = (struct kern_buffer){"table", KERN_INPUT, KERN_TYPE_I32, pages, 0, 0};
    out[OUT] = (struct kern_buffer){"out", KERN_OUTPUT, type, batch * heads * rank, 0, rank};
    out[SCRATCH] = (struct kern_buffer){"scratch", KERN_SCRATCH, KERN_TYPE_F32, scratch, 0, 0};
    return 5;
}

/* The pages in random order. */
static void fill(const struct kern_call *c, size_t b, uint64_t seed, void *data)
{
    (void)b;
    kern_fill_order(data, at(c->shape, BATCH) * pages_of(c->shape), seed);
}

/* Row of the cache that a token of a sequence has. */
static size_t token_row(const struct kern_call *c, size_t sequence, size_t token)
{
    const size_t page = page_of(c->shape);
    const int32_t *table = c->buffer[TABLE];
    return (size_t)table[sequence * pages_of(c->shape) + token / page] * page + token % page;
}

/* A block is one head of one sequence. */
static void reference(const struct kern_call *c, size_t b, size_t block, double *out)
{
    const struct kern_shape *s = c->shape;
    const size_t row = row_of(s), rank = at(s, RANK), sequence = block / at(s, HEADS);
    const enum kern_type type = type_of(s);
    double most = -HUGE_VAL, sum = 0;
    (void)b;
    for (size_t d = 0; d < rank; d++) out[d] = 0;
    for (int pass = 0; pass < 2; pass++) /* the maximum first */
        for (size_t t = 0; t < at(s, LEN); t++) {
            const size_t key = token_row(c, sequence, t) * row;
            double score = 0;
            for (size_t d = 0; d < row; d++)
                score += kern_read(c->buffer[Q], type, block * row + d) * kern_read(c->buffer[CACHE], type, key + d);
            score /= sqrt((double)row);
            if (pass == 0) {
                most = fmax(most, score);
                continue;
            }
            sum += exp(score - most);
            for (size_t d = 0; d < rank; d++) out[d] += exp(score - most) * kern_read(c->buffer[CACHE], type, key + d);
        }
    for (size_t d = 0; d < rank; d++) out[d] /= sum;
}

static double reference_cost(const struct kern_shape *s, size_t b)
{
    (void)b;
    return 3 * (double)s->v[LEN] * (double)row_of(s);
}

static void counts(const struct kern_shape *s, struct kern_counts *out)
{
    const double batch = (double)s->v[BATCH], len = (double)s->v[LEN], row = (double)row_of(s);
    const double heads = batch * (double)s->v[HEADS], rank = (double)s->v[RANK], bytes = in_bf16(s) ? 2 : 4;
    *out = (struct kern_counts){.flops = 2 * heads * len * (row + rank),
                                .vector_flops = 5 * heads * len,
                                .read_bytes = bytes * (heads * row + batch * len * row),
                                .written_bytes = bytes * heads * rank};
}

static double piece_bytes(const struct kern_shape *s)
{
    return page_of(s) < at(s, LEN) ? (in_bf16(s) ? 2.0 : 4.0) * (double)(page_of(s) * row_of(s)) : 0;
}

/* bf16: results are rounded to 8 bits; the weights of the softmax are fp32, or bf16, whose errors average out. */
static double tolerance(const struct kern_shape *s) { return in_bf16(s) ? 1e-2 : 1e-5; }

/* The tokens of a page from `token` on; the token behind them. */
static size_t run_at(const struct kern_call *c, size_t sequence, size_t token, struct attend_run *r)
{
    const size_t len = at(c->shape, LEN), page = page_of(c->shape), end = (token / page + 1) * page;
    const size_t step = row_of(c->shape) * (in_bf16(c->shape) ? 2 : 4), last = end < len ? end : len;
    r->k = r->v = (const char *)c->buffer[CACHE] + token_row(c, sequence, token) * step;
    r->next_k = r->next_v = last < len ? (const char *)c->buffer[CACHE] + token_row(c, sequence, last) * step : NULL;
    r->n = last - token;
    r->ahead = AHEAD;
    return last;
}

static void attend_all(const struct kern_call *c, const struct attend_code *code)
{
    const struct kern_shape *s = c->shape;
    const size_t element = in_bf16(s) ? 2 : 4, len = at(s, LEN);
    struct attend a = {.bf16 = in_bf16(s),
                       .tiles = code->enter != NULL,
                       .heads = at(s, HEADS),
                       .dim = row_of(s),
                       .value_dim = at(s, RANK),
                       .scale = 1 / sqrtf((float)row_of(s))};
    struct attend_run r;
    a.many = attend_takes_many(code, &a);
    float *const scratch = c->buffer[SCRATCH];
    attend_open(&a, scratch, scratch + attend_scratch(a.heads, a.dim, a.value_dim));
    if (code->enter) code->enter(&a);
    for (size_t b = 0; b < at(s, BATCH); b++) {
        code->start(&a, (const char *)c->buffer[Q] + b * a.heads * a.dim * element);
        for (size_t token = 0; token < len;) {
            token = run_at(c, b, token, &r);
            code->run(&a, &r);
        }
        code->finish(&a, (char *)c->buffer[OUT] + b * a.heads * a.value_dim * element);
    }
    if (code->leave) code->leave();
}

#define RUN(set)                                                                                                       \
    static void run_##set(const struct kern_call *c) { attend_all(c, &attend_##set); }
RUN(portable)
KERN_SETS(RUN)
KERN_SETS_BF16(RUN)

#if KERN_X86
static void attend_chunks(const struct kern_call *c)
{
    const struct kern_shape *s = c->shape;
    const size_t heads = at(s, HEADS), rank = at(s, RANK);
    struct mla_amx p = {.heads = heads,
                        .dim = row_of(s),
                        .value_dim = rank,
                        .tokens = at(s, LEN),
                        .page = page_of(s),
                        .scale = 1 / sqrtf((float)row_of(s)),
                        .cache = c->buffer[CACHE],
                        .scratch = c->buffer[SCRATCH]};
    mla_amx_open();
    for (size_t b = 0; b < at(s, BATCH); b++) {
        p.table = (const int32_t *)c->buffer[TABLE] + b * pages_of(s);
        p.later_table = b + 1 < at(s, BATCH) ? p.table + pages_of(s) : NULL;
        p.q = (const uint16_t *)c->buffer[Q] + b * heads * p.dim;
        p.out = (uint16_t *)c->buffer[OUT] + b * heads * rank;
        mla_amx_run(&p, b == 0);
    }
    mla_amx_close();
}

static void run_amx(const struct kern_call *c)
{
    const struct kern_shape *s = c->shape;
    const bool tiles = attend_takes_tiles(at(s, HEADS), row_of(s), at(s, RANK));
    const bool groups = page_of(s) >= at(s, LEN) || page_of(s) % MLA_AMX_GRAIN == 0;
    if (tiles && groups && at(s, HEADS) >= MLA_AMX_LEAST)
        attend_chunks(c);
    else
        attend_all(c, tiles ? &attend_amx : &attend_dot);
}
#define TILES KERN_ROW("amx-bf16", KERN_UNIT_BF16_TILE, KERN_HAS(KERN_BF16), kern_lacks_amx_bf16, KERN_RUN(amx)),
#else
#define TILES
#endif

#define BOTH (KERN_HAS(KERN_FP32) | KERN_HAS(KERN_BF16))

static const struct kern_variant VARIANTS[] = {TILES KERN_ROWS_BF16(KERN_UNIT_BF16_DOT, KERN_RUN)
                                                   KERN_ROWS(BOTH, KERN_RUN) KERN_ROW_PORTABLE(BOTH, KERN_RUN)};

/* 16 heads, and 128 as a whole layer of a larger model has them, in pages. */
static const struct kern_point POINTS[] = {
    {{{1, 8192, 16, 512, 64}, KERN_BF16}, true},
    {{{4, 4096, 128, 512, 64, 64}, KERN_BF16}, false},
    {{{4, 4096, 16, 512, 64}, KERN_FP32}, false},
};

const struct kern kern_mla_decode = {
    .name = "mla-decode",
    .summary = "one query token per sequence against a latent cache, absorbed",
    .row_kind = "mla_decode",
    .args = ARGS,
    .args_n = sizeof ARGS / sizeof ARGS[0],
    .dtypes = BOTH,
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
