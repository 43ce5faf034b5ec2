/* stream-gather -- how fast one core reads pieces of memory that lie in no order, as pages of a cache do.
 *
 * An array of n elements of fp32 in pieces, and a random order of them; each is read once, whole. The processor fetches
 * ahead within a piece and begins anew in each, so that short ones come slower than an array: what is read in pages has
 * this for its ceiling. Counted: the array once, and the order. The variants are access patterns, of which the ceiling
 * is the best: so many pieces side by side, a row of 256 bytes of each in turn; with every line asked for some bytes
 * before; with one line of each row more, of what is read 4 KiB later, so that its address is translated by then; and
 * with a pause after each row, see kernels/stream.c. */
#include <string.h>

#include "kernels/table.h"
#include "kernels/vector.h"

enum { LANES = 16, ROW = 64 }; /* elements of a cache line, of a row */
enum { N, PIECE };
enum { A, ORDER, OUT };

static const struct kern_arg ARGS[] = {
    [N] = {"n", 1, (int64_t)1 << 31, "elements of the array"},
    [PIECE] = {"piece", ROW, (int64_t)1 << 28, "elements of a piece, which is read in order"},
};

static size_t at(const struct kern_shape *s, size_t i) { return (size_t)s->v[i]; }
static size_t pieces_of(const struct kern_shape *s) { return at(s, N) / at(s, PIECE); }

static const char *refuses(const struct kern_shape *s)
{
    if (s->v[PIECE] % ROW != 0) return "piece is no multiple of 64";
    return s->v[N] % s->v[PIECE] != 0 ? "n is no multiple of piece" : NULL;
}

static size_t buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    out[A] = (struct kern_buffer){"a", KERN_INPUT, KERN_TYPE_F32, at(s, N), 1, 0};
    out[ORDER] = (struct kern_buffer){"order", KERN_INPUT, KERN_TYPE_I32, pieces_of(s), 0, 0};
    out[OUT] = (struct kern_buffer){"out", KERN_OUTPUT, KERN_TYPE_I32, LANES, 0, 1};
    return 3;
}

static void fill(const struct kern_call *c, size_t b, uint64_t seed, void *data)
{
    (void)b;
    kern_fill_order(data, pieces_of(c->shape), seed);
}

/* The exclusive or of the bits of all elements i with i % 16 == lane, in whatever order. */
static void reference(const struct kern_call *c, size_t b, size_t lane, double *out)
{
    const char *a = c->buffer[A];
    int32_t sum = 0, bits;
    (void)b;
    for (size_t i = lane; i < at(c->shape, N); i += LANES) {
        memcpy(&bits, a + 4 * i, sizeof bits);
        sum ^= bits;
    }
    *out = (double)sum;
}

static double reference_cost(const struct kern_shape *s, size_t b)
{
    (void)b;
    return (double)s->v[N] / LANES;
}

static void counts(const struct kern_shape *s, struct kern_counts *out)
{
    *out = (struct kern_counts){.read_bytes = 4 * (double)s->v[N] + 4 * (double)pieces_of(s),
                                .written_bytes = 4.0 * LANES};
}

static double tolerance(const struct kern_shape *s)
{
    (void)s;
    return 1e-12;
}

static void run_portable(const struct kern_call *c)
{
    const char *a = c->buffer[A];
    const int32_t *order = c->buffer[ORDER];
    const size_t bytes = 4 * at(c->shape, PIECE);
    int32_t sum[LANES] = {0}, bits[LANES];
    for (size_t p = 0; p < pieces_of(c->shape); p++)
        for (size_t i = 0; i < bytes; i += sizeof bits) {
            memcpy(bits, a + (size_t)order[p] * bytes + i, sizeof bits);
            for (size_t j = 0; j < LANES; j++) sum[j] ^= bits[j];
        }
    memcpy(c->buffer[OUT], sum, sizeof sum);
}

#if KERN_X86
/* Pieces [from, from + streams) side by side; what is asked for `ahead` bytes before lies, behind their end, in those
 * `streams` later. pause: an even number of instructions, each of which undoes the one before. */
KERN_AVX512 KERN_INLINE __m512i gather_some(const struct kern_call *c, size_t from, size_t streams, size_t ahead,
                                            bool touch, size_t pause, __m512i sum)
{
    enum { LINE = 64, ROW_BYTES = 4 * ROW, TRANSLATED = 4096 };
    const int32_t *order = c->buffer[ORDER];
    const size_t bytes = 4 * at(c->shape, PIECE), last = pieces_of(c->shape) - 1;
    const char *a = c->buffer[A];
    for (size_t b = 0; b < bytes; b += ROW_BYTES)
        for (size_t s = 0, n = kern_count(streams); s < n; s++) {
            const char *row = a + (size_t)order[from + s] * bytes + b;
            if (ahead) {
                const size_t later = from + s + streams < last ? from + s + streams : last;
                const char *next =
                    b + ahead < bytes ? row + ahead : a + (size_t)order[later] * bytes + (b + ahead - bytes) % bytes;
                KERN_UNROLL
                for (size_t i = 0; i < ROW_BYTES; i += LINE) _mm_prefetch(next + i, _MM_HINT_T1);
            }
            if (touch && b + TRANSLATED < bytes) _mm_prefetch(row + TRANSLATED, _MM_HINT_T1);
            KERN_UNROLL
            for (size_t i = 0; i < ROW_BYTES; i += LINE) sum = _mm512_xor_si512(sum, _mm512_loadu_si512(row + i));
            KERN_UNROLL
            for (size_t p = 0; p < pause; p++) {
                sum = _mm512_xor_si512(sum, _mm512_set1_epi32(1));
                __asm__ volatile("" : "+v"(sum));
            }
        }
    return sum;
}

KERN_AVX512 KERN_INLINE void gather_avx512(const struct kern_call *c, size_t streams, size_t ahead, bool touch,
                                           size_t pause)
{
    const size_t pieces = pieces_of(c->shape), whole = pieces / streams * streams;
    __m512i sum = _mm512_setzero_si512();
    for (size_t p = 0; p < whole; p += streams) sum = gather_some(c, p, streams, ahead, touch, pause, sum);
    for (size_t p = whole; p < pieces; p++) sum = gather_some(c, p, 1, 0, false, 0, sum);
    _mm512_storeu_si512(c->buffer[OUT], sum);
}

/* The same of AVX2 without a pause: of what fetches ahead by itself. */
KERN_AVX2 static void gather_avx2(const struct kern_call *c)
{
    enum { LINE = 64, HALF = 32 };
    const int32_t *order = c->buffer[ORDER];
    const size_t bytes = 4 * at(c->shape, PIECE), pieces = pieces_of(c->shape), streams = 4;
    const char *a = c->buffer[A];
    __m256i low = _mm256_setzero_si256(), high = low;
    for (size_t p = 0; p < pieces; p += streams)
        for (size_t b = 0; b < bytes; b += LINE)
            for (size_t s = p; s < p + streams && s < pieces; s++) {
                const char *line = a + (size_t)order[s] * bytes + b;
                low = _mm256_xor_si256(low, _mm256_loadu_si256((const __m256i *)(const void *)line));
                high = _mm256_xor_si256(high, _mm256_loadu_si256((const __m256i *)(const void *)(line + HALF)));
            }
    _mm256_storeu_si256((__m256i *)c->buffer[OUT], low);
    _mm256_storeu_si256((__m256i *)(void *)((char *)c->buffer[OUT] + HALF), high);
}

#define GATHER(streams, ahead, pause)                                                                                  \
    KERN_AVX512 static void gather_##streams##_##ahead##_##pause(const struct kern_call *c)                            \
    {                                                                                                                  \
        gather_avx512(c, streams, ahead, false, pause);                                                                \
    }
GATHER(1, 0, 0)
GATHER(4, 0, 0)
GATHER(4, 1024, 16) /* not a unit */
GATHER(8, 0, 0)
GATHER(8, 1024, 0)  /* not a unit */
GATHER(8, 1024, 16) /* not a unit */
GATHER(8, 2048, 16) /* not a unit */
KERN_AVX512 static void gather_touch(const struct kern_call *c)
{
    gather_avx512(c, 8, 1024, true, 16);
} /* not a unit */
#endif

#define FP32 .unit = KERN_UNIT_FP32, .dtypes = KERN_HAS(KERN_FP32)

static const struct kern_variant VARIANTS[] = {
#if KERN_X86
    {.name = "avx512-8-touch-paced", FP32, .lacks = kern_lacks_avx512, .run = gather_touch},
    {.name = "avx512-8-far-paced", FP32, .lacks = kern_lacks_avx512, .run = gather_8_2048_16},
    {.name = "avx512-8-fetch-paced", FP32, .lacks = kern_lacks_avx512, .run = gather_8_1024_16}, /* not a unit */
    {.name = "avx512-8-fetch", FP32, .lacks = kern_lacks_avx512, .run = gather_8_1024_0},        /* not a unit */
    {.name = "avx512-8", FP32, .lacks = kern_lacks_avx512, .run = gather_8_0_0},
    {.name = "avx512-4-fetch-paced", FP32, .lacks = kern_lacks_avx512, .run = gather_4_1024_16}, /* not a unit */
    {.name = "avx512-4", FP32, .lacks = kern_lacks_avx512, .run = gather_4_0_0},
    {.name = "avx512-1", FP32, .lacks = kern_lacks_avx512, .run = gather_1_0_0},
    {.name = "avx2-4", FP32, .lacks = kern_lacks_avx2, .run = gather_avx2},
#endif
    {.name = "portable", FP32, .run = run_portable},
};

/* Pieces of 32 KiB, a page of 16 tokens of 8 heads of 128 in bf16; of 4 KiB. */
static const struct kern_point POINTS[] = {
    {{{(int64_t)1 << 22, 8192}, KERN_FP32}, true}, {{{(int64_t)1 << 22, 1024}, KERN_FP32}, false}, /* not a unit */
};

const struct kern kern_stream_gather = {
    .name = "stream-gather",
    .summary = "read an array in pieces that lie in no order",
    .row_kind = "",
    .ceiling = KERN_CEILING_GATHER,
    .args = ARGS,
    .args_n = sizeof ARGS / sizeof ARGS[0],
    .dtypes = KERN_HAS(KERN_FP32),
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
