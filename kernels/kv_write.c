/* kv-write -- keys and values of new tokens into their slots of a cache, as they are or in a byte each.
 *
 * k and v are bf16 [num_tokens][n_kv_heads][head_dim], a cache [slot][n_kv_heads][head_dim]; slots are in no order, as
 * pages of many sequences leave them, and as many as tokens. In bytes: an element is x / scale to the nearest int8 or
 * fp8 (e4m3), scale the largest |x| of its row of head_dim over the largest of these, 127 or 448, fp32
 * [slot][n_kv_heads].
 * Counted: k, v and the slots once, caches and scales once; in bytes also 4 flops an element (absolute, maximum,
 * product, rounding) and 2 a row (the quotients). */
#include <math.h>
#include <string.h>

#include "kernels/table.h"
#include "kernels/vector.h"

static const float STEPS = 127, F8_MOST = 448;

#define LANES_BODY "kernels/kv_write_body.h"
#include "kernels/lanes_all.h"

enum { TOKENS, HEADS, DIM };
enum { K, V, SLOTS, K_CACHE, V_CACHE, K_SCALES, V_SCALES };

static const struct kern_arg ARGS[] = {
    [TOKENS] = {"num_tokens", 1, 1 << 24, "tokens of the pass"},
    [HEADS] = {"n_kv_heads", 1, 1 << 12, "key and value heads"},
    [DIM] = {"head_dim", 1, 1 << 12, "width of a head"},
};

static size_t at(const struct kern_shape *s, size_t i) { return (size_t)s->v[i]; }
static bool in_bytes(const struct kern_shape *s) { return s->dtype != KERN_BF16; }
static double most_of(const struct kern_shape *s) { return s->dtype == KERN_INT8 ? 127 : 448; }

static const char *refuses(const struct kern_shape *s)
{
    return (double)s->v[TOKENS] * (double)s->v[HEADS] * (double)s->v[DIM] > 0x1p33 ? "the cache is beyond memory"
                                                                                   : NULL;
}

static size_t buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    const size_t rows = at(s, TOKENS) * at(s, HEADS), all = rows * at(s, DIM);
    const enum kern_type type = s->dtype == KERN_INT8  ? KERN_TYPE_I8
                                : s->dtype == KERN_FP8 ? KERN_TYPE_F8
                                                       : KERN_TYPE_BF16;
    out[K] = (struct kern_buffer){"k", KERN_INPUT, KERN_TYPE_BF16, all, 1.3, 0};
    out[V] = (struct kern_buffer){"v", KERN_INPUT, KERN_TYPE_BF16, all, 0.7, 0};
    out[SLOTS] = (struct kern_buffer){"slots", KERN_INPUT, KERN_TYPE_I32, at(s, TOKENS), 0, 0};
    out[K_CACHE] = (struct kern_buffer){"k cache", KERN_OUTPUT, type, all, 0, at(s, DIM)};
    out[V_CACHE] = (struct kern_buffer){"v cache", KERN_OUTPUT, type, all, 0, at(s, DIM)};
    if (!in_bytes(s)) return 5;
    out[K_SCALES] = (struct kern_buffer){"k scales", KERN_OUTPUT, KERN_TYPE_F32, rows, 0, 1};
    out[V_SCALES] = (struct kern_buffer){"v scales", KERN_OUTPUT, KERN_TYPE_F32, rows, 0, 1};
    return 7;
}

/* Slots in random order. */
static void fill(const struct kern_call *c, size_t b, uint64_t seed, void *data)
{
    (void)b;
    kern_fill_order(data, at(c->shape, TOKENS), seed);
}

/* The multiple of the last bit of e4m3 at v, |v| <= 448, that is nearest: 3 bits behind the first, 2^-9 at least. */
static double nearest_f8(double v)
{
    int exponent;
    (void)frexp(v, &exponent);
    const double unit = ldexp(1, exponent - 4 < -9 ? -9 : exponent - 4);
    return nearbyint(v / unit) * unit;
}

/* A block is a row of a slot, or its scale. */
static void reference(const struct kern_call *c, size_t b, size_t block, double *out)
{
    const size_t n = at(c->shape, DIM), heads = at(c->shape, HEADS);
    const void *from = c->buffer[b == K_CACHE || b == K_SCALES ? K : V];
    size_t token = 0;
    double most = 0;
    while (((const int32_t *)c->buffer[SLOTS])[token] != (int32_t)(block / heads)) token++;
    const size_t row = (token * heads + block % heads) * n;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(kern_read(from, KERN_TYPE_BF16, row + i)));
    if (b == K_SCALES || b == V_SCALES) {
        *out = most / most_of(c->shape);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        out[i] = kern_read(from, KERN_TYPE_BF16, row + i);
        if (!in_bytes(c->shape)) continue;
        out[i] = most > 0 ? out[i] * most_of(c->shape) / most : 0;
        out[i] = c->shape->dtype == KERN_INT8 ? nearbyint(out[i]) : nearest_f8(out[i]);
    }
}

static double reference_cost(const struct kern_shape *s, size_t b)
{
    (void)b;
    return (double)s->v[TOKENS] + (double)s->v[DIM];
}

static void counts(const struct kern_shape *s, struct kern_counts *out)
{
    const double tokens = (double)s->v[TOKENS], rows = 2 * tokens * (double)s->v[HEADS], all = rows * (double)s->v[DIM];
    *out = (struct kern_counts){.vector_flops = in_bytes(s) ? 4 * all + 2 * rows : 0,
                                .read_bytes = 2 * all + 4 * tokens,
                                .written_bytes = in_bytes(s) ? all + 4 * rows : 2 * all};
}

/* bf16 is copied; in bytes a half may go to its other neighbour, one of 127 steps, or a sixteenth of itself. */
static double tolerance(const struct kern_shape *s) { return in_bytes(s) ? 1e-2 : 0; }

/* Whether rows of so many bytes are written past the caches: they are whole lines, and many. */
static bool is_past(const struct kern_call *c, size_t row_bytes)
{
    const size_t line = 64, rows = 2 * at(c->shape, TOKENS) * at(c->shape, HEADS);
    return row_bytes % line == 0 && kern_past(c->machine, (double)rows * (double)row_bytes);
}

static void write_bytes(const struct kern_call *c,
                        float (*quantise)(const uint16_t *from, uint8_t *to, size_t n, bool f8, bool past))
{
    const size_t heads = at(c->shape, HEADS), n = at(c->shape, DIM);
    const bool past = is_past(c, n);
    for (size_t row = 0; row < at(c->shape, TOKENS) * heads; row++) {
        const size_t to = (size_t)((const int32_t *)c->buffer[SLOTS])[row / heads] * heads + row % heads;
        for (size_t b = K; b <= V; b++)
            ((float *)c->buffer[K_SCALES + b])[to] =
                quantise((const uint16_t *)c->buffer[b] + row * n, (uint8_t *)c->buffer[K_CACHE + b] + to * n, n,
                         c->shape->dtype == KERN_FP8, past);
    }
}

static void run_portable(const struct kern_call *c)
{
    const size_t bytes = 2 * at(c->shape, HEADS) * at(c->shape, DIM);
    if (in_bytes(c->shape)) {
        write_bytes(c, quantise_portable);
        return;
    }
    for (size_t i = 0; i < at(c->shape, TOKENS); i++)
        for (size_t b = K; b <= V; b++)
            memcpy((char *)c->buffer[K_CACHE + b] + (size_t)((const int32_t *)c->buffer[SLOTS])[i] * bytes,
                   (const char *)c->buffer[b] + i * bytes, bytes);
}

#if KERN_X86
static void run_avx2(const struct kern_call *c) { write_bytes(c, quantise_avx2); }
KERN_AVX512 static void run_avx512(const struct kern_call *c)
{
    write_bytes(c, quantise_avx512);
    _mm_sfence();
}

/* Rows of bf16 as they are. */
KERN_AVX512 static void copy_avx512(const struct kern_call *c)
{
    const size_t bytes = 2 * at(c->shape, HEADS) * at(c->shape, DIM), line = 64;
    if (!is_past(c, 2 * at(c->shape, DIM))) {
        run_portable(c);
        return;
    }
    for (size_t i = 0; i < at(c->shape, TOKENS); i++)
        for (size_t b = K; b <= V; b++) {
            char *to = (char *)c->buffer[K_CACHE + b] + (size_t)((const int32_t *)c->buffer[SLOTS])[i] * bytes;
            const char *from = (const char *)c->buffer[b] + i * bytes;
            for (size_t j = 0; j < bytes; j += line)
                _mm512_stream_si512((void *)(to + j), _mm512_loadu_si512(from + j));
        }
    _mm_sfence();
}
#elif KERN_ARM
static void run_neon(const struct kern_call *c) { write_bytes(c, quantise_neon); }
#endif

#define BYTES (KERN_HAS(KERN_INT8) | KERN_HAS(KERN_FP8))

static const struct kern_variant VARIANTS[] = {
#if KERN_X86
    KERN_ROW("avx512-past", KERN_UNIT_FP32, KERN_HAS(KERN_BF16), kern_lacks_avx512, .run = copy_avx512),
#endif
    KERN_ROWS(BYTES, KERN_RUN) KERN_ROW_PORTABLE(BYTES | KERN_HAS(KERN_BF16), KERN_RUN)};

static const struct kern_point POINTS[] = {
    {{{4096, 8, 128}, KERN_BF16}, true},
    {{{4096, 8, 128}, KERN_INT8}, true},
    {{{64, 8, 128}, KERN_INT8}, false},
    {{{4096, 8, 128}, KERN_FP8}, false},
};

const struct kern kern_kv_write = {
    .name = "kv-write",
    .summary = "keys and values of new tokens into a cache, as bf16 or quantised to int8 or fp8",
    .row_kind = "elementwise",
    .args = ARGS,
    .args_n = sizeof ARGS / sizeof ARGS[0],
    .dtypes = BYTES | KERN_HAS(KERN_BF16),
    .points = POINTS,
    .points_n = sizeof POINTS / sizeof POINTS[0],
    .refuses = refuses,
    .buffers = buffers,
    .fill = fill,
    .reference = reference,
    .reference_cost = reference_cost,
    .counts = counts,
    .tolerance = tolerance,
    .variants = VARIANTS,
    .variants_n = sizeof VARIANTS / sizeof VARIANTS[0],
};
