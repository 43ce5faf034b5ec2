/* prefill-attention -- causal attention of whole prompts: o = softmax(mask(q K^T / sqrt(head_dim))) V.
 *
 * Query t sees keys 0..t, with a window the last `window` of them. q, k, v and o are [batch][token][head][head_dim] of
 * one format, as the projections leave them; sums are fp32.
 * Counted: pairs of a query with a key that it sees, q_len (q_len + 1) / 2 without a window: 4 * head_dim flops a pair
 * and head, 5 more for its softmax; all four operands once.
 * Blocks of queries against chunks of keys with a running maximum (Dao et al., arXiv:2205.14135); chunks that no query
 * of a block sees are passed over, those that some see are computed whole. Keys and values are laid out once per key
 * head, for all query heads that read them, and of some key heads together. */
#include <math.h>
#include <string.h>

#include "kernels/prefill_amx.h"
#include "kernels/split.h"
#include "kernels/table.h"
#include "kernels/turn_over.h"
#include "kernels/vector.h"

enum { BATCH, LEN, HEADS, KV_HEADS, DIM, WINDOW };
enum { IN_Q, IN_K, IN_V, OUT, SCRATCH };
enum { PREFILL_CHUNK = 128, PREFILL_ROWS = 24, LAY_OUT_AHEAD = 16 /* tokens that are fetched ahead */ };

struct prefill {
    bool bf16;
    size_t tokens, dim, window;
    float scale;
    float *keys, *values;       /* [chunks][wide][PREFILL_CHUNK], [chunks][PREFILL_CHUNK][wide] */
    float *queries, *sums;      /* [PREFILL_ROWS][wide] */
    float *scores;              /* [PREFILL_ROWS][PREFILL_CHUNK] */
    float *most, *sum, *shrink; /* [PREFILL_ROWS]; shrink and a vector behind */
};

static inline size_t prefill_wide(size_t dim) { return (dim + 15) / 16 * 16; }

/* Elements of the keys of a head, and of its values, as they are laid out. */
static inline size_t prefill_room(size_t tokens, size_t dim)
{
    return (tokens + PREFILL_CHUNK - 1) / PREFILL_CHUNK * PREFILL_CHUNK * prefill_wide(dim);
}

/* Key heads that are laid out together: those of a token lie in few pages of memory, each head's part of them far from
 * the next token's, so that a page is to be found once for all of them. As many as leave room in a second cache. */
static inline size_t prefill_together(size_t tokens, size_t dim, size_t heads)
{
    enum { ROOM_BYTES = 1 << 20 };
    const size_t most = ROOM_BYTES / (2 * sizeof(float) * prefill_room(tokens, dim));
    return most < 1 ? 1 : most < heads ? most : heads;
}

#define LANES_BODY "kernels/prefill_body.h"
#include "kernels/lanes_all.h"

static const struct kern_arg ARGS[] = {
    [BATCH] = {"batch", 1, 1 << 16, "sequences"},
    [LEN] = {"q_len", 1, 1 << 20, "tokens of a prompt"},
    [HEADS] = {"n_heads", 1, 1 << 12, "query heads"},
    [KV_HEADS] = {"n_kv_heads", 1, 1 << 12, "key and value heads"},
    [DIM] = {"head_dim", 1, 1 << 12, "width of a head"},
    [WINDOW] = {"window", 0, 1 << 24, "tokens that a query sees; 0: all before it"},
};

static size_t at(const struct kern_shape *s, size_t i) { return (size_t)s->v[i]; }
static bool in_bf16(const struct kern_shape *s) { return s->dtype == KERN_BF16; }
static enum kern_type type_of(const struct kern_shape *s) { return in_bf16(s) ? KERN_TYPE_BF16 : KERN_TYPE_F32; }

static const char *refuses(const struct kern_shape *s)
{
    if (s->v[HEADS] % s->v[KV_HEADS] != 0) return "n_heads is no multiple of n_kv_heads";
    return (double)s->v[BATCH] * (double)s->v[LEN] * (double)s->v[HEADS] * (double)s->v[DIM] > 0x1p34
               ? "the prompts are beyond memory"
               : NULL;
}

static size_t buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    const size_t tokens = at(s, BATCH) * at(s, LEN), dim = at(s, DIM), wide = prefill_wide(dim);
    const size_t laid_out = 2 * prefill_together(at(s, LEN), dim, at(s, KV_HEADS)) * prefill_room(at(s, LEN), dim);
    const enum kern_type type = type_of(s);
    out[IN_Q] = (struct kern_buffer){"q", KERN_INPUT, type, tokens * at(s, HEADS) * dim, 1, 0};
    out[IN_K] = (struct kern_buffer){"k", KERN_INPUT, type, tokens * at(s, KV_HEADS) * dim, 1, 0};
    out[IN_V] = (struct kern_buffer){"v", KERN_INPUT, type, tokens * at(s, KV_HEADS) * dim, 1, 0};
    out[OUT] = (struct kern_buffer){"out", KERN_OUTPUT, type, tokens * at(s, HEADS) * dim, 0, dim};
    size_t scratch = laid_out + PREFILL_ROWS * (2 * wide + PREFILL_CHUNK + 2) + PREFILL_ROWS + 15;
#if KERN_X86
    const size_t tiles = prefill_amx_bytes(at(s, LEN), dim) / sizeof(float);
    if (in_bf16(s) && tiles > scratch) scratch = tiles;
#endif
    out[SCRATCH] = (struct kern_buffer){"scratch", KERN_SCRATCH, KERN_TYPE_F32, scratch, 0, 0};
    return 5;
}

/* A block is one head of one token. */
static void reference(const struct kern_call *c, size_t b, size_t block, double *out)
{
    const struct kern_shape *s = c->shape;
    const size_t dim = at(s, DIM), heads = at(s, HEADS), kv = at(s, KV_HEADS), t = block / heads % at(s, LEN);
    const size_t start = block / heads - t, head = block % heads / (heads / kv);
    const size_t first = s->v[WINDOW] && t + 1 > at(s, WINDOW) ? t + 1 - at(s, WINDOW) : 0;
    const enum kern_type type = type_of(s);
    double most = -HUGE_VAL, sum = 0;
    (void)b;
    for (size_t d = 0; d < dim; d++) out[d] = 0;
    for (int pass = 0; pass < 2; pass++) /* the maximum first */
        for (size_t i = first; i <= t; i++) {
            const size_t row = ((start + i) * kv + head) * dim;
            double score = 0;
            for (size_t d = 0; d < dim; d++)
                score += kern_read(c->buffer[IN_Q], type, block * dim + d) * kern_read(c->buffer[IN_K], type, row + d);
            score /= sqrt((double)dim);
            if (pass == 0) {
                most = fmax(most, score);
                continue;
            }
            sum += exp(score - most);
            for (size_t d = 0; d < dim; d++) out[d] += exp(score - most) * kern_read(c->buffer[IN_V], type, row + d);
        }
    for (size_t d = 0; d < dim; d++) out[d] /= sum;
}

static double reference_cost(const struct kern_shape *s, size_t b)
{
    (void)b;
    return 3 * (double)s->v[LEN] * (double)s->v[DIM];
}

/* Pairs that are seen: all but those of queries beyond the window with the keys before it. */
static double pairs_of(const struct kern_shape *s)
{
    const double t = (double)s->v[LEN], hidden = s->v[WINDOW] ? fmax(0, t - (double)s->v[WINDOW]) : 0;
    return t * (t + 1) / 2 - hidden * (hidden + 1) / 2;
}

static void counts(const struct kern_shape *s, struct kern_counts *out)
{
    const double heads = (double)s->v[BATCH] * (double)s->v[HEADS], dim = (double)s->v[DIM], pairs = pairs_of(s);
    const double tokens = (double)s->v[BATCH] * (double)s->v[LEN], bytes = in_bf16(s) ? 2 : 4;
    *out = (struct kern_counts){.flops = 4 * heads * dim * pairs,
                                .vector_flops = 5 * heads * pairs,
                                .read_bytes = bytes * tokens * dim * ((double)s->v[HEADS] + 2 * (double)s->v[KV_HEADS]),
                                .written_bytes = bytes * tokens * dim * (double)s->v[HEADS]};
}

/* bf16: results are rounded to 8 bits, and so are the weights of the softmax where pairs are multiplied. */
static double tolerance(const struct kern_shape *s) { return in_bf16(s) ? 1e-2 : 1e-5; }

struct code {
    void (*lay_out)(const struct prefill *p, const void *k, const void *v, size_t step, size_t chunk);
    void (*block)(const struct prefill *p, const void *q, size_t token, size_t rows, size_t step, void *out);
};

static void attend_all(const struct kern_call *c, const struct code *code)
{
    const struct kern_shape *s = c->shape;
    const size_t dim = at(s, DIM), wide = prefill_wide(dim), bytes = in_bf16(s) ? 2 : 4, kv = at(s, KV_HEADS);
    const size_t len = at(s, LEN), room = prefill_room(len, dim), heads = at(s, HEADS), group = heads / kv;
    const size_t most = prefill_together(len, dim, kv);
    struct prefill p = {
        .bf16 = in_bf16(s), .tokens = len, .dim = dim, .window = at(s, WINDOW), .scale = 1 / sqrtf((float)dim)};
    float *const laid_out = c->buffer[SCRATCH];
    p.queries = laid_out + 2 * most * room;
    p.sums = p.queries + PREFILL_ROWS * wide;
    p.scores = p.sums + PREFILL_ROWS * wide;
    p.most = p.scores + PREFILL_ROWS * PREFILL_CHUNK;
    p.sum = p.most + PREFILL_ROWS;
    p.shrink = p.sum + PREFILL_ROWS;
    const unsigned parts = c->parts > 1 ? c->parts : 1;
    const size_t end = kern_split_from(at(s, BATCH) * kv, c->part + 1, parts);
    for (size_t i = kern_split_from(at(s, BATCH) * kv, c->part, parts), n; i < end; i += n) {
        const size_t token = i / kv * len, of_sequence = kv - i % kv, left = end - i;
        n = left < of_sequence ? left : of_sequence;
        if (n > most) n = most;
        for (size_t chunk = 0; chunk * PREFILL_CHUNK < len; chunk++)
            for (size_t h = 0; h < n; h++) {
                const size_t from = (token * kv + i % kv + h) * dim * bytes;
                p.keys = laid_out + 2 * h * room;
                p.values = p.keys + room;
                code->lay_out(&p, (const char *)c->buffer[IN_K] + from, (const char *)c->buffer[IN_V] + from, kv * dim,
                              chunk);
            }
        for (size_t t = 0; t < len; t += PREFILL_ROWS)
            for (size_t h = 0; h < n * group; h++) {
                const size_t rows = len - t < PREFILL_ROWS ? len - t : PREFILL_ROWS;
                const size_t q = ((token + t) * heads + i % kv * group + h) * dim * bytes;
                p.keys = laid_out + 2 * (h / group) * room;
                p.values = p.keys + room;
                code->block(&p, (const char *)c->buffer[IN_Q] + q, t, rows, heads * dim, (char *)c->buffer[OUT] + q);
            }
    }
}

#define RUN(set)                                                                                                       \
    static void run_##set(const struct kern_call *c)                                                                   \
    {                                                                                                                  \
        static const struct code CODE = {lay_out_##set, block_##set};                                                  \
        attend_all(c, &CODE);                                                                                          \
    }
RUN(portable)
KERN_SETS(RUN)
KERN_SETS_BF16(RUN)

#if KERN_X86
static void run_tiles(const struct kern_call *c)
{
    const struct kern_shape *s = c->shape;
    const size_t dim = at(s, DIM), kv = at(s, KV_HEADS), heads = at(s, HEADS), group = heads / kv;
    const size_t tokens = at(s, BATCH) * at(s, LEN);
    const unsigned parts = c->parts > 1 ? c->parts : 1;
    const size_t end = kern_split_from(at(s, BATCH) * kv, c->part + 1, parts);
    for (size_t i = kern_split_from(at(s, BATCH) * kv, c->part, parts); i < end; i++) {
        const size_t token = i / kv * at(s, LEN), head = i % kv;
        const size_t q = (token * heads + head * group) * dim, k = (token * kv + head) * dim;
        const struct prefill_amx p = {.tokens = at(s, LEN),
                                      .dim = dim,
                                      .window = at(s, WINDOW),
                                      .heads = group,
                                      .past =
                                          dim % 32 == 0 && kern_past(c->machine, 2.0 * (double)(tokens * heads * dim)),
                                      .scale = 1 / sqrtf((float)dim),
                                      .q = (const uint16_t *)c->buffer[IN_Q] + q,
                                      .k = (const uint16_t *)c->buffer[IN_K] + k,
                                      .v = (const uint16_t *)c->buffer[IN_V] + k,
                                      .out = (uint16_t *)c->buffer[OUT] + q,
                                      .q_step = heads * dim,
                                      .k_step = kv * dim,
                                      .scratch = c->buffer[SCRATCH]};
        prefill_amx_run(&p);
    }
}
#endif

#define BOTH (KERN_HAS(KERN_FP32) | KERN_HAS(KERN_BF16))

static const struct kern_variant VARIANTS[] = {KERN_ROWS_TILES(KERN_RUN) KERN_ROWS_BF16(KERN_UNIT_BF16_DOT, KERN_RUN)
                                                   KERN_ROWS(BOTH, KERN_RUN) KERN_ROW_PORTABLE(BOTH, KERN_RUN)};

/* A layer of a model of 8 billion parameters, a short and a long prompt; narrow heads; a window. */
static const struct kern_point POINTS[] = {
    {{{1, 512, 32, 8, 128, 0}, KERN_BF16}, true},     {{{1, 2048, 8, 2, 128, 0}, KERN_FP32}, true},
    {{{1, 2048, 32, 8, 128, 0}, KERN_BF16}, false},   {{{4, 512, 16, 16, 64, 0}, KERN_FP32}, false},
    {{{1, 4096, 8, 2, 128, 1024}, KERN_BF16}, false}, /* not a unit */
};

const struct kern kern_prefill_attention = {
    .name = "prefill-attention",
    .summary = "causal attention of whole prompts",
    .row_kind = "prefill",
    .args = ARGS,
    .args_n = sizeof ARGS / sizeof ARGS[0],
    .dtypes = BOTH,
    .points = POINTS,
    .points_n = sizeof POINTS / sizeof POINTS[0],
    .refuses = refuses,
    .buffers = buffers,
    .reference = reference,
    .reference_cost = reference_cost,
    .counts = counts,
    .tolerance = tolerance,
    .variants = VARIANTS,
    .variants_n = sizeof VARIANTS / sizeof VARIANTS[0],
};
