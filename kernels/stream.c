/* stream -- how fast one core moves memory: read, copy, triad and update over arrays of fp32.
 *
 * Counted bytes are those of the arrays: n*4 for each. What a store to a line not in the cache reads first (write
 * allocate) is not counted; stores that go past the cache avoid it, so copy and triad come with and without them.
 * A read walks its array at several places at once, since one walk leaves the memory system idle: the variants are the
 * access patterns, and the ceiling is the best of them. After McCalpin's STREAM (1995), which has no read.
 * An update writes the lines that it read, as recurrent states are: each is fetched and written back, and no store
 * reads or goes past anything, so that it moves more than what writes elsewhere.
 *
 * Paced walks do something between lines: loads that are asked for as fast as they can be wait in queues that the
 * processor's own fetching ahead then finds full. Of one core of the Zen 4 generation that is 5 % of its bandwidth. */
#include <string.h>

#include "kernels/table.h"
#include "kernels/vector.h"

enum { LANES = 16 }; /* elements of a cache line */
enum { N };

static const struct kern_arg ARGS[] = {{"n", 1, (int64_t)1 << 32, "elements of each array"}};

static double tolerance_exact(const struct kern_shape *s)
{
    (void)s;
    return 1e-12;
}

static double tolerance_fp32(const struct kern_shape *s)
{
    (void)s;
    return 1e-6; /* one product and one sum, each rounded once */
}

static double one(const struct kern_shape *s, size_t b)
{
    (void)s, (void)b;
    return 1;
}

/* -- read: out[lane] is the exclusive or of the bits of all elements i with i % 16 == lane -- */

static size_t read_buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    out[0] = (struct kern_buffer){"a", KERN_INPUT, KERN_TYPE_F32, (size_t)s->v[N], 1, 0};
    out[1] = (struct kern_buffer){"out", KERN_OUTPUT, KERN_TYPE_I32, LANES, 0, 1};
    return 2;
}

static void read_reference(const struct kern_call *c, size_t b, size_t lane, double *out)
{
    (void)b;
    const char *a = c->buffer[0];
    int32_t sum = 0, bits;
    for (size_t i = lane; i < (size_t)c->shape->v[N]; i += LANES) {
        memcpy(&bits, a + 4 * i, sizeof bits);
        sum ^= bits;
    }
    *out = (double)sum;
}

static double read_cost(const struct kern_shape *s, size_t b)
{
    (void)b;
    return (double)s->v[N] / LANES;
}

static void read_counts(const struct kern_shape *s, struct kern_counts *out)
{
    *out = (struct kern_counts){.read_bytes = 4 * (double)s->v[N], .written_bytes = 4.0 * LANES};
}

/* The elements from i on, one by one, into the sums of the lanes. */
static void read_rest(const struct kern_call *c, size_t i, int32_t sum[LANES])
{
    const char *a = c->buffer[0];
    int32_t bits;
    for (; i < (size_t)c->shape->v[N]; i++) {
        memcpy(&bits, a + 4 * i, sizeof bits);
        sum[i % LANES] ^= bits;
    }
    memcpy(c->buffer[1], sum, LANES * sizeof *sum);
}

static void read_portable(const struct kern_call *c)
{
    const char *a = c->buffer[0];
    const size_t lines = (size_t)c->shape->v[N] / LANES;
    int32_t sum[LANES] = {0}, bits[LANES];
    for (size_t i = 0; i < lines; i++) {
        memcpy(bits, a + i * sizeof bits, sizeof bits);
        for (size_t j = 0; j < LANES; j++) sum[j] ^= bits[j];
    }
    read_rest(c, lines * LANES, sum);
}

#if KERN_X86
/* `streams` walks side by side, `ahead` bytes fetched before they are needed (0: what the hardware does by itself).
 * pause: instructions after every fourth line of a walk, an even number, since each undoes the one before. */
KERN_AVX512 KERN_INLINE void read_avx512(const struct kern_call *c, size_t streams, size_t ahead, size_t pause)
{
    enum { LINE = 64, DEEP = 4 };
    const size_t lines = (size_t)c->shape->v[N] / LANES;
    const size_t each = lines / streams / DEEP * DEEP;
    const char *a = c->buffer[0];
    __m512i sum[16];
    int32_t lane[LANES];
    KERN_UNROLL
    for (size_t s = 0; s < streams; s++) sum[s] = _mm512_setzero_si512();
    for (size_t i = 0; i < each; i += DEEP) {
        KERN_UNROLL
        for (size_t s = 0; s < streams; s++) {
            const char *at = a + (s * each + i) * LINE;
            KERN_UNROLL
            for (size_t d = 0; d < DEEP; d++) {
                if (ahead) _mm_prefetch(at + d * LINE + ahead, _MM_HINT_T0);
                sum[s] = _mm512_xor_si512(sum[s], _mm512_loadu_si512(at + d * LINE));
            }
            KERN_UNROLL
            for (size_t p = 0; p < pause; p++) {
                sum[s] = _mm512_xor_si512(sum[s], _mm512_set1_epi32(1));
                __asm__ volatile("" : "+v"(sum[s]));
            }
        }
    }
    KERN_UNROLL
    for (size_t s = 1; s < streams; s++) sum[0] = _mm512_xor_si512(sum[0], sum[s]);
    _mm512_storeu_si512(lane, sum[0]);
    read_rest(c, streams * each * LANES, lane);
}

/* The same; a pause after every line. */
KERN_AVX2 KERN_INLINE void read_avx2(const struct kern_call *c, size_t streams, size_t ahead, size_t pause)
{
    enum { LINE = 64, HALF = 32 };
    const size_t lines = (size_t)c->shape->v[N] / LANES;
    const size_t each = lines / streams;
    const char *a = c->buffer[0];
    __m256i low[8], high[8];
    int32_t lane[LANES];
    KERN_UNROLL
    for (size_t s = 0; s < streams; s++) low[s] = high[s] = _mm256_setzero_si256();
    for (size_t i = 0; i < each; i++) {
        KERN_UNROLL
        for (size_t s = 0; s < streams; s++) {
            const char *at = a + (s * each + i) * LINE;
            if (ahead) _mm_prefetch(at + ahead, _MM_HINT_T0);
            low[s] = _mm256_xor_si256(low[s], _mm256_loadu_si256((const __m256i *)(const void *)at));
            high[s] = _mm256_xor_si256(high[s], _mm256_loadu_si256((const __m256i *)(const void *)(at + HALF)));
            KERN_UNROLL
            for (size_t p = 0; p < pause; p++) {
                low[s] = _mm256_xor_si256(low[s], _mm256_set1_epi32(1));
                __asm__ volatile("" : "+x"(low[s]));
            }
        }
    }
    KERN_UNROLL
    for (size_t s = 1; s < streams; s++) {
        low[0] = _mm256_xor_si256(low[0], low[s]);
        high[0] = _mm256_xor_si256(high[0], high[s]);
    }
    _mm256_storeu_si256((__m256i *)(void *)lane, low[0]);
    _mm256_storeu_si256((__m256i *)(void *)(lane + LANES / 2), high[0]);
    read_rest(c, streams * each * LANES, lane);
}

#define READ(isa, ISA, streams, ahead, pause)                                                                          \
    ISA static void read_##isa##_##streams##_##ahead##_##pause(const struct kern_call *c)                              \
    {                                                                                                                  \
        read_##isa(c, streams, ahead, pause);                                                                          \
    }
READ(avx512, KERN_AVX512, 1, 0, 0)
READ(avx512, KERN_AVX512, 4, 0, 0)
READ(avx512, KERN_AVX512, 8, 0, 0)
READ(avx512, KERN_AVX512, 16, 0, 0)
READ(avx512, KERN_AVX512, 1, 1024, 0) /* not a unit */
READ(avx512, KERN_AVX512, 4, 512, 0)
READ(avx512, KERN_AVX512, 8, 512, 0)
READ(avx512, KERN_AVX512, 1, 0, 12)
READ(avx512, KERN_AVX512, 2, 0, 8)
READ(avx2, KERN_AVX2, 1, 0, 0)
READ(avx2, KERN_AVX2, 4, 0, 0)
READ(avx2, KERN_AVX2, 4, 512, 0)
READ(avx2, KERN_AVX2, 1, 0, 4)
READ(avx2, KERN_AVX2, 2, 0, 4)
#elif KERN_ARM
/* The same without pauses. Walks share sums: a line is four registers. */
KERN_INLINE void read_neon(const struct kern_call *c, size_t streams, size_t ahead)
{
    enum { LINE = 64, PART = 16, DEEP = 4 };
    const size_t lines = (size_t)c->shape->v[N] / LANES;
    const size_t each = lines / streams / DEEP * DEEP;
    const uint8_t *a = c->buffer[0];
    uint8x16_t sum[16];
    int32_t lane[LANES];
    KERN_UNROLL
    for (size_t i = 0; i < 16; i++) sum[i] = vdupq_n_u8(0);
    for (size_t i = 0; i < each; i += DEEP) {
        KERN_UNROLL
        for (size_t s = 0; s < streams; s++) {
            const uint8_t *at = a + (s * each + i) * LINE;
            KERN_UNROLL
            for (size_t d = 0; d < DEEP; d++) {
                if (ahead) __builtin_prefetch(at + d * LINE + ahead, 0, 3);
                KERN_UNROLL
                for (size_t p = 0; p < 4; p++)
                    sum[4 * d + p] = veorq_u8(sum[4 * d + p], vld1q_u8(at + d * LINE + p * PART));
            }
        }
    }
    KERN_UNROLL
    for (size_t p = 0; p < 4; p++)
        vst1q_u8((uint8_t *)lane + p * PART, veorq_u8(veorq_u8(sum[p], sum[p + 4]), veorq_u8(sum[p + 8], sum[p + 12])));
    read_rest(c, streams * each * LANES, lane);
}

#define READ(streams, ahead)                                                                                           \
    static void read_neon_##streams##_##ahead(const struct kern_call *c) { read_neon(c, streams, ahead); }
READ(1, 0)
READ(2, 0)
READ(4, 0)
READ(8, 0)
READ(1, 1024) /* not a unit */
READ(4, 512)
READ(8, 512)
#endif

#define FP32 .unit = KERN_UNIT_FP32, .dtypes = KERN_HAS(KERN_FP32)

static const struct kern_variant READ_VARIANTS[] = {
#if KERN_X86
    {.name = "avx512-4", FP32, .lacks = kern_lacks_avx512, .run = read_avx512_4_0_0},
    {.name = "avx512-4-fetch", FP32, .lacks = kern_lacks_avx512, .run = read_avx512_4_512_0},
    {.name = "avx512-8", FP32, .lacks = kern_lacks_avx512, .run = read_avx512_8_0_0},
    {.name = "avx512-8-fetch", FP32, .lacks = kern_lacks_avx512, .run = read_avx512_8_512_0},
    {.name = "avx512-16", FP32, .lacks = kern_lacks_avx512, .run = read_avx512_16_0_0},
    {.name = "avx512-1", FP32, .lacks = kern_lacks_avx512, .run = read_avx512_1_0_0},
    {.name = "avx512-1-fetch", FP32, .lacks = kern_lacks_avx512, .run = read_avx512_1_1024_0}, /* not a unit */
    {.name = "avx512-1-paced", FP32, .lacks = kern_lacks_avx512, .run = read_avx512_1_0_12},
    {.name = "avx512-2-paced", FP32, .lacks = kern_lacks_avx512, .run = read_avx512_2_0_8},
    {.name = "avx2-4", FP32, .lacks = kern_lacks_avx2, .run = read_avx2_4_0_0},
    {.name = "avx2-4-fetch", FP32, .lacks = kern_lacks_avx2, .run = read_avx2_4_512_0},
    {.name = "avx2-1", FP32, .lacks = kern_lacks_avx2, .run = read_avx2_1_0_0},
    {.name = "avx2-1-paced", FP32, .lacks = kern_lacks_avx2, .run = read_avx2_1_0_4},
    {.name = "avx2-2-paced", FP32, .lacks = kern_lacks_avx2, .run = read_avx2_2_0_4},
#elif KERN_ARM
    {.name = "neon-4", FP32, .run = read_neon_4_0},          {.name = "neon-4-fetch", FP32, .run = read_neon_4_512},
    {.name = "neon-8", FP32, .run = read_neon_8_0},          {.name = "neon-8-fetch", FP32, .run = read_neon_8_512},
    {.name = "neon-2", FP32, .run = read_neon_2_0},          {.name = "neon-1", FP32, .run = read_neon_1_0},
    {.name = "neon-1-fetch", FP32, .run = read_neon_1_1024}, /* not a unit */
#endif
    {.name = "portable", FP32, .run = read_portable},
};

/* -- copy: b = a -- */

static size_t copy_buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    out[0] = (struct kern_buffer){"a", KERN_INPUT, KERN_TYPE_F32, (size_t)s->v[N], 1, 0};
    out[1] = (struct kern_buffer){"b", KERN_OUTPUT, KERN_TYPE_F32, (size_t)s->v[N], 0, 1};
    return 2;
}

static void copy_reference(const struct kern_call *c, size_t b, size_t i, double *out)
{
    (void)b;
    *out = kern_read(c->buffer[0], KERN_TYPE_F32, i);
}

static void copy_counts(const struct kern_shape *s, struct kern_counts *out)
{
    *out = (struct kern_counts){.read_bytes = 4 * (double)s->v[N], .written_bytes = 4 * (double)s->v[N]};
}

static void copy_portable(const struct kern_call *c) { memcpy(c->buffer[1], c->buffer[0], (size_t)c->shape->v[N] * 4); }

#if KERN_X86
KERN_AVX512 static void copy_past(const struct kern_call *c)
{
    const size_t n = (size_t)c->shape->v[N], lines = n / LANES;
    const float *a = c->buffer[0];
    float *b = c->buffer[1];
    for (size_t i = 0; i < lines; i++) _mm512_stream_ps(b + i * LANES, _mm512_loadu_ps(a + i * LANES));
    _mm_sfence();
    memcpy(b + lines * LANES, a + lines * LANES, (n - lines * LANES) * 4);
}

KERN_AVX2 static void copy_past_avx2(const struct kern_call *c)
{
    enum { WIDE = 8 };
    const size_t n = (size_t)c->shape->v[N], parts = n / WIDE;
    const float *a = c->buffer[0];
    float *b = c->buffer[1];
    for (size_t i = 0; i < parts; i++) _mm256_stream_ps(b + i * WIDE, _mm256_loadu_ps(a + i * WIDE));
    _mm_sfence();
    memcpy(b + parts * WIDE, a + parts * WIDE, (n - parts * WIDE) * 4);
}
#elif KERN_ARM
/* A pair of registers that is not to stay in caches. */
KERN_INLINE void store_past(float *p, float32x4_t x, float32x4_t y)
{
    __asm__ volatile("stnp %q0, %q1, [%2]" : : "w"(x), "w"(y), "r"(p) : "memory");
}

static void copy_past(const struct kern_call *c)
{
    const size_t n = (size_t)c->shape->v[N], lines = n / LANES;
    const float *a = c->buffer[0];
    float *b = c->buffer[1];
    for (size_t i = 0; i < lines * LANES; i += LANES) {
        const float32x4_t x = vld1q_f32(a + i), y = vld1q_f32(a + i + 4);
        const float32x4_t z = vld1q_f32(a + i + 8), w = vld1q_f32(a + i + 12);
        store_past(b + i, x, y);
        store_past(b + i + 8, z, w);
    }
    memcpy(b + lines * LANES, a + lines * LANES, (n - lines * LANES) * 4);
}
#endif

static const struct kern_variant COPY_VARIANTS[] = {
#if KERN_X86
    {.name = "avx512-past", FP32, .lacks = kern_lacks_avx512, .run = copy_past},
    {.name = "avx2-past", FP32, .lacks = kern_lacks_avx2, .run = copy_past_avx2},
#elif KERN_ARM
    {.name = "neon-past", FP32, .run = copy_past},
#endif
    {.name = "memcpy", FP32, .run = copy_portable},
};

/* -- triad: c = a + s*b, s = 3 as in STREAM -- */

static size_t triad_buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    out[0] = (struct kern_buffer){"a", KERN_INPUT, KERN_TYPE_F32, (size_t)s->v[N], 1, 0};
    out[1] = (struct kern_buffer){"b", KERN_INPUT, KERN_TYPE_F32, (size_t)s->v[N], 1, 0};
    out[2] = (struct kern_buffer){"c", KERN_OUTPUT, KERN_TYPE_F32, (size_t)s->v[N], 0, 1};
    return 3;
}

static void triad_reference(const struct kern_call *c, size_t b, size_t i, double *out)
{
    (void)b;
    *out = kern_read(c->buffer[0], KERN_TYPE_F32, i) + 3 * kern_read(c->buffer[1], KERN_TYPE_F32, i);
}

static void triad_counts(const struct kern_shape *s, struct kern_counts *out)
{
    const double n = (double)s->v[N];
    *out = (struct kern_counts){.vector_flops = 2 * n, .read_bytes = 8 * n, .written_bytes = 4 * n};
}

static void triad_rest(const struct kern_call *c, size_t i)
{
    const float *a = c->buffer[0], *b = c->buffer[1];
    float *out = c->buffer[2];
    for (; i < (size_t)c->shape->v[N]; i++) out[i] = a[i] + 3 * b[i];
}

static void triad_portable(const struct kern_call *c) { triad_rest(c, 0); }

#if KERN_X86
KERN_AVX512 KERN_INLINE void triad_avx512(const struct kern_call *c, bool past)
{
    const size_t lines = (size_t)c->shape->v[N] / LANES;
    const float *a = c->buffer[0], *b = c->buffer[1];
    float *out = c->buffer[2];
    const __m512 s = _mm512_set1_ps(3);
    for (size_t i = 0; i < lines * LANES; i += LANES) {
        const __m512 v = _mm512_fmadd_ps(s, _mm512_loadu_ps(b + i), _mm512_loadu_ps(a + i));
        if (past)
            _mm512_stream_ps(out + i, v);
        else
            _mm512_storeu_ps(out + i, v);
    }
    if (past) _mm_sfence();
    triad_rest(c, lines * LANES);
}
KERN_AVX512 static void triad_past(const struct kern_call *c) { triad_avx512(c, true); }
KERN_AVX512 static void triad_through(const struct kern_call *c) { triad_avx512(c, false); }

KERN_AVX2 static void triad_past_avx2(const struct kern_call *c)
{
    enum { WIDE = 8 };
    const size_t parts = (size_t)c->shape->v[N] / WIDE;
    const float *a = c->buffer[0], *b = c->buffer[1];
    float *out = c->buffer[2];
    const __m256 s = _mm256_set1_ps(3);
    for (size_t i = 0; i < parts * WIDE; i += WIDE)
        _mm256_stream_ps(out + i, _mm256_fmadd_ps(s, _mm256_loadu_ps(b + i), _mm256_loadu_ps(a + i)));
    _mm_sfence();
    triad_rest(c, parts * WIDE);
}
#elif KERN_ARM
KERN_INLINE void triad_neon(const struct kern_call *c, bool past)
{
    const size_t lines = (size_t)c->shape->v[N] / LANES;
    const float *a = c->buffer[0], *b = c->buffer[1];
    float *out = c->buffer[2];
    for (size_t i = 0; i < lines * LANES; i += LANES) {
        float32x4_t v[4];
        KERN_UNROLL
        for (size_t j = 0; j < 4; j++) v[j] = vfmaq_n_f32(vld1q_f32(a + i + 4 * j), vld1q_f32(b + i + 4 * j), 3);
        KERN_UNROLL
        for (size_t j = 0; j < 4; j += 2) {
            if (past) {
                store_past(out + i + 4 * j, v[j], v[j + 1]);
            } else {
                vst1q_f32(out + i + 4 * j, v[j]);
                vst1q_f32(out + i + 4 * j + 4, v[j + 1]);
            }
        }
    }
    triad_rest(c, lines * LANES);
}
static void triad_past(const struct kern_call *c) { triad_neon(c, true); }
static void triad_through(const struct kern_call *c) { triad_neon(c, false); }
#endif

static const struct kern_variant TRIAD_VARIANTS[] = {
#if KERN_X86
    {.name = "avx512-past", FP32, .lacks = kern_lacks_avx512, .run = triad_past},
    {.name = "avx512", FP32, .lacks = kern_lacks_avx512, .run = triad_through},
    {.name = "avx2-past", FP32, .lacks = kern_lacks_avx2, .run = triad_past_avx2},
#elif KERN_ARM
    {.name = "neon-past", FP32, .run = triad_past},
    {.name = "neon", FP32, .run = triad_through},
#endif
    {.name = "portable", FP32, .run = triad_portable},
};

/* -- update: a = -a in place, exact, and as large after any number of calls -- */

static size_t update_buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    out[0] = (struct kern_buffer){"a", KERN_STATE, KERN_TYPE_F32, (size_t)s->v[N], 1, 1};
    return 1;
}

static void update_reference(const struct kern_call *c, size_t b, size_t i, double *out)
{
    (void)b;
    *out = -kern_read(c->buffer[0], KERN_TYPE_F32, i);
}

static void update_counts(const struct kern_shape *s, struct kern_counts *out)
{
    const double n = (double)s->v[N];
    *out = (struct kern_counts){.vector_flops = n, .read_bytes = 4 * n, .written_bytes = 4 * n};
}

static void update_rest(const struct kern_call *c, size_t i)
{
    float *a = c->buffer[0];
    for (; i < (size_t)c->shape->v[N]; i++) a[i] = -a[i];
}

static void update_portable(const struct kern_call *c) { update_rest(c, 0); }

#if KERN_X86
/* One walk, `ahead` bytes fetched before they are needed, `far` into the second cache (0: what the hardware does by
 * itself). */
KERN_AVX512 KERN_INLINE void update_avx512(const struct kern_call *c, size_t ahead, size_t far)
{
    const size_t lines = (size_t)c->shape->v[N] / LANES;
    float *a = c->buffer[0];
    const __m512 s = _mm512_set1_ps(-1);
    for (size_t i = 0; i < lines * LANES; i += LANES) {
        if (ahead) _mm_prefetch((const char *)(a + i) + ahead, _MM_HINT_T0);
        if (far) _mm_prefetch((const char *)(a + i) + far, _MM_HINT_T1);
        _mm512_storeu_ps(a + i, _mm512_mul_ps(s, _mm512_loadu_ps(a + i)));
    }
    update_rest(c, lines * LANES);
}
KERN_AVX512 static void update_plain(const struct kern_call *c) { update_avx512(c, 0, 0); }
KERN_AVX512 static void update_fetched(const struct kern_call *c) { update_avx512(c, 1024, 0); /* not a unit */ }
KERN_AVX512 static void update_far(const struct kern_call *c) { update_avx512(c, 0, 4096); /* not a unit */ }

KERN_AVX2 static void update_avx2(const struct kern_call *c)
{
    enum { WIDE = 8 };
    const size_t parts = (size_t)c->shape->v[N] / WIDE;
    float *a = c->buffer[0];
    const __m256 s = _mm256_set1_ps(-1);
    for (size_t i = 0; i < parts * WIDE; i += WIDE) _mm256_storeu_ps(a + i, _mm256_mul_ps(s, _mm256_loadu_ps(a + i)));
    update_rest(c, parts * WIDE);
}
#elif KERN_ARM
static void update_neon(const struct kern_call *c)
{
    const size_t lines = (size_t)c->shape->v[N] / LANES;
    float *a = c->buffer[0];
    for (size_t i = 0; i < lines * LANES; i += LANES) {
        KERN_UNROLL
        for (size_t j = 0; j < LANES; j += 4) vst1q_f32(a + i + j, vnegq_f32(vld1q_f32(a + i + j)));
    }
    update_rest(c, lines * LANES);
}
#endif

static const struct kern_variant UPDATE_VARIANTS[] = {
#if KERN_X86
    {.name = "avx512-far", FP32, .lacks = kern_lacks_avx512, .run = update_far},
    {.name = "avx512-fetch", FP32, .lacks = kern_lacks_avx512, .run = update_fetched},
    {.name = "avx512", FP32, .lacks = kern_lacks_avx512, .run = update_plain},
    {.name = "avx2", FP32, .lacks = kern_lacks_avx2, .run = update_avx2},
#elif KERN_ARM
    {.name = "neon", FP32, .run = update_neon},
#endif
    {.name = "portable", FP32, .run = update_portable},
};

/* 64 Mi elements are 256 MiB: beyond any last-level cache but the largest; 3 MB are within most. */
static const struct kern_point POINTS[] = {
    {{{(int64_t)1 << 26}, KERN_FP32}, true},
    {{{750000}, KERN_FP32}, false},
};

#define STREAM(NAME, CEILING, SUMMARY, BUFFERS, REFERENCE, COST, COUNTS, TOLERANCE, VARIANTS)                          \
    {                                                                                                                  \
        .name = (NAME), .summary = (SUMMARY), .row_kind = "", .ceiling = (CEILING), .args = ARGS, .args_n = 1,         \
        .dtypes = KERN_HAS(KERN_FP32), .points = POINTS, .points_n = sizeof POINTS / sizeof POINTS[0],                 \
        .buffers = (BUFFERS), .reference = (REFERENCE), .reference_cost = (COST), .counts = (COUNTS),                  \
        .tolerance = (TOLERANCE), .variants = (VARIANTS), .variants_n = sizeof(VARIANTS) / sizeof(VARIANTS)[0]         \
    }

const struct kern kern_stream_read =
    STREAM("stream-read", KERN_CEILING_READ, "read an array, at several places at once", read_buffers, read_reference,
           read_cost, read_counts, tolerance_exact, READ_VARIANTS);
const struct kern kern_stream_copy = STREAM("stream-copy", KERN_CEILING_BANDWIDTH, "b = a", copy_buffers,
                                            copy_reference, one, copy_counts, tolerance_exact, COPY_VARIANTS);
const struct kern kern_stream_triad = STREAM("stream-triad", KERN_CEILING_BANDWIDTH, "c = a + 3*b", triad_buffers,
                                             triad_reference, one, triad_counts, tolerance_fp32, TRIAD_VARIANTS);
const struct kern kern_stream_update =
    STREAM("stream-update", KERN_CEILING_BANDWIDTH, "a = -a, in place", update_buffers, update_reference, one,
           update_counts, tolerance_exact, UPDATE_VARIANTS);
