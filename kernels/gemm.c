/* gemm -- c[m,n] = a[m,k] * w[n,k]^T: the products of a model, weights stored as checkpoints have them (out x in).
 *
 * Counted: 2*m*n*k flops; every element of a, w and c moved once. fp32 all through, or bf16 storage of all three with
 * sums in fp32. Libraries lay the weights out anew in every call, which below some sixty rows costs more than the
 * product; the own code does it once, ahead of the timing, as a server does when it loads a model.
 *
 * Layout of the packed weights, one for all: panels of 16 columns of c, each panel `depth` steps of k deep; an element
 * of a step is one weight (fp32, bf16) or a pair of neighbours in k (bf16 for the dot unit). Columns and steps beyond
 * n and k are zeros.
 * Order of the loops: blocks of k (KC steps) so that a strip of a stays in the first cache, blocks of rows (MC) in the
 * second, then panels, then strips (the order of Goto and van de Geijn, ACM TOMS 34(3), 2008, turned: here w is the
 * side that vectors run along, because it is the large one). With few rows there is one strip and k is not cut: the
 * weights go by once, several panels side by side, because one walk does not fill the memory system. */
#include <string.h>

#include "kernels/table.h"
#include "kernels/vector.h"

enum { M, N, K };
enum { A, W, C, STRIPS, SUMS };
enum { PANEL = 16, ROWS_MAX = 12, KC = 384, MC = 144, SLACK = 64 };

static const struct kern_arg ARGS[] = {
    [M] = {"m", 1, 1 << 20, "rows of a: tokens of the pass"},
    [N] = {"n", 1, 1 << 20, "columns of c: outputs of the layer"},
    [K] = {"k", 1, 1 << 20, "inner size: inputs of the layer"},
};

static size_t round_up(size_t v, size_t to) { return (v + to - 1) / to * to; }
static bool in_bf16(const struct kern_shape *s) { return s->dtype == KERN_BF16; }

static const char *refuses(const struct kern_shape *s)
{
    const double cells = (double)s->v[M] * (double)s->v[N] + (double)s->v[K] * (double)(s->v[M] + s->v[N]);
    return cells > 0x1p36 ? "m, n and k together are beyond memory" : NULL;
}

static size_t buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    const size_t m = (size_t)s->v[M], n = (size_t)s->v[N], k = (size_t)s->v[K];
    const enum kern_type type = in_bf16(s) ? KERN_TYPE_BF16 : KERN_TYPE_F32;
    out[A] = (struct kern_buffer){"a", KERN_INPUT, type, m * k, 1, 0};
    out[W] = (struct kern_buffer){"w", KERN_INPUT, type, n * k, 0.05, 0};
    out[C] = (struct kern_buffer){"c", KERN_OUTPUT, type, m * n, 0, 1};
    /* a in strips of rows, and sums in fp32 where c holds less */
    out[STRIPS] =
        (struct kern_buffer){"strips", KERN_SCRATCH, KERN_TYPE_F32, round_up(m, ROWS_MAX) * (k + 1) + SLACK, 0, 0};
    out[SUMS] = (struct kern_buffer){"sums", KERN_SCRATCH, KERN_TYPE_F32, in_bf16(s) ? m * n : 1, 0, 0};
    return 5;
}

static void reference(const struct kern_call *c, size_t b, size_t block, double *out)
{
    const size_t n = (size_t)c->shape->v[N], k = (size_t)c->shape->v[K], i = block / n, j = block % n;
    const enum kern_type type = in_bf16(c->shape) ? KERN_TYPE_BF16 : KERN_TYPE_F32;
    double sum = 0;
    (void)b;
    for (size_t l = 0; l < k; l++)
        sum += kern_read(c->buffer[A], type, i * k + l) * kern_read(c->buffer[W], type, j * k + l);
    *out = sum;
}

static double reference_cost(const struct kern_shape *s, size_t b)
{
    (void)b;
    return (double)s->v[K];
}

static void counts(const struct kern_shape *s, struct kern_counts *out)
{
    const double m = (double)s->v[M], n = (double)s->v[N], k = (double)s->v[K], bytes = in_bf16(s) ? 2 : 4;
    *out = (struct kern_counts){
        .flops = 2 * m * n * k, .read_bytes = bytes * (m * k + n * k), .written_bytes = bytes * m * n};
}

/* bf16: each result is rounded to 8 bits, 2^-9 at most; fp32: the error of a sum of k products in any order. */
static double tolerance(const struct kern_shape *s) { return in_bf16(s) ? 1e-2 : 1e-5; }

/* -- packing -- */

static size_t panels_of(const struct kern_shape *s) { return ((size_t)s->v[N] + PANEL - 1) / PANEL; }

static size_t pack_bytes_fp32(const struct kern_shape *s) { return panels_of(s) * PANEL * (size_t)s->v[K] * 4; }

static void pack_fp32(const struct kern_call *c)
{
    const size_t n = (size_t)c->shape->v[N], k = (size_t)c->shape->v[K];
    const float *w = c->buffer[W];
    float *out = c->packed;
    for (size_t p = 0; p < panels_of(c->shape); p++)
        for (size_t j = 0; j < PANEL; j++)
            for (size_t l = 0; l < k; l++) {
                const size_t column = p * PANEL + j;
                out[(p * k + l) * PANEL + j] = column < n ? w[column * k + l] : 0;
            }
}

static size_t pack_bytes_bf16(const struct kern_shape *s) { return panels_of(s) * PANEL * (size_t)s->v[K] * 2; }

static void pack_bf16(const struct kern_call *c)
{
    const size_t n = (size_t)c->shape->v[N], k = (size_t)c->shape->v[K];
    const uint16_t *w = c->buffer[W];
    uint16_t *out = c->packed;
    for (size_t p = 0; p < panels_of(c->shape); p++)
        for (size_t j = 0; j < PANEL; j++)
            for (size_t l = 0; l < k; l++) {
                const size_t column = p * PANEL + j;
                out[(p * k + l) * PANEL + j] = column < n ? w[column * k + l] : 0;
            }
}

static size_t pack_bytes_pairs(const struct kern_shape *s)
{
    return panels_of(s) * PANEL * round_up((size_t)s->v[K], 2) * 2;
}

static void pack_pairs(const struct kern_call *c)
{
    const size_t n = (size_t)c->shape->v[N], k = (size_t)c->shape->v[K], steps = (k + 1) / 2;
    const uint16_t *w = c->buffer[W];
    uint16_t *out = c->packed;
    for (size_t p = 0; p < panels_of(c->shape); p++)
        for (size_t j = 0; j < PANEL; j++)
            for (size_t l = 0; l < 2 * steps; l++) {
                const size_t column = p * PANEL + j;
                out[((p * steps + l / 2) * PANEL + j) * 2 + l % 2] = column < n && l < k ? w[column * k + l] : 0;
            }
}

/* -- one tile: `rows` rows of a strip times `wide` panels, steps [0, depth) -- */

/* How the element of a step is held. */
enum form { FP32, BF16, PAIRS };

struct tile {
    const float *a; /* strip: [step][rows], an fp32 or a pair of bf16 each */
    const char *w;  /* first panel at its first step */
    size_t panel;   /* bytes from panel to panel */
    size_t depth;   /* steps */
    float *sums;    /* first row and column */
    size_t stride;  /* elements from row to row */
    size_t columns; /* of the tile that exist, up to wide*PANEL */
    bool more;      /* add to the sums, else set them */
};

typedef void tile_run(const struct tile *t);

/* Copies a tile that was computed whole to the columns that there are. */
static void put_part(const struct tile *t, const float *whole, size_t rows, size_t width)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t j = 0; j < t->columns; j++) {
            float *at = t->sums + r * t->stride + j;
            *at = t->more ? *at + whole[r * width + j] : whole[r * width + j];
        }
}

static size_t step_bytes(enum form form) { return form == BF16 ? 2 * PANEL : 4 * PANEL; }

KERN_INLINE void tile_portable(const struct tile *t, size_t rows, enum form form)
{
    float sum[ROWS_MAX * PANEL] = {0}, w[PANEL];
    for (size_t l = 0; l < t->depth; l++) {
        const char *at = t->w + l * step_bytes(form);
        if (form == FP32)
            memcpy(w, at, sizeof w);
        else
            for (size_t j = 0; j < PANEL; j++) {
                uint16_t bits;
                memcpy(&bits, at + 2 * j, sizeof bits);
                w[j] = kern_bf16_to(bits);
            }
        for (size_t r = 0; r < rows; r++)
            for (size_t j = 0; j < PANEL; j++) sum[r * PANEL + j] += t->a[l * rows + r] * w[j];
    }
    put_part(t, sum, rows, PANEL);
}

#if KERN_X86
KERN_AVX512 KERN_INLINE __m512 load_bf16_avx512(const char *at)
{
    const __m256i half = _mm256_loadu_si256((const __m256i *)(const void *)at);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

KERN_AVX512 KERN_INLINE void store_avx512(const struct tile *t, const __m512 *sum, size_t rows, size_t wide)
{
    float whole[ROWS_MAX * 8 * PANEL];
    if (t->columns == wide * PANEL) {
        KERN_UNROLL
        for (size_t r = 0; r < rows; r++) {
            KERN_UNROLL
            for (size_t p = 0; p < wide; p++) {
                float *at = t->sums + r * t->stride + p * PANEL;
                __m512 v = sum[r * wide + p];
                if (t->more) v = _mm512_add_ps(v, _mm512_loadu_ps(at));
                _mm512_storeu_ps(at, v);
            }
        }
        return;
    }
    KERN_UNROLL
    for (size_t r = 0; r < rows; r++) {
        KERN_UNROLL
        for (size_t p = 0; p < wide; p++) _mm512_storeu_ps(whole + (r * wide + p) * PANEL, sum[r * wide + p]);
    }
    put_part(t, whole, rows, wide * PANEL);
}

KERN_AVX512 KERN_INLINE void tile_avx512(const struct tile *t, size_t rows, size_t wide, enum form form, size_t ahead)
{
    __m512 sum[32];
    const float *a = t->a;
    const char *w = t->w;
    KERN_UNROLL
    for (size_t i = 0; i < rows * wide; i++) sum[i] = _mm512_setzero_ps();
    for (size_t l = 0; l < t->depth; l++) {
        __m512 v[8];
        KERN_UNROLL
        for (size_t p = 0; p < wide; p++) {
            const char *at = w + p * t->panel;
            v[p] = form == BF16 ? load_bf16_avx512(at) : _mm512_loadu_ps((const float *)(const void *)at);
            if (ahead) _mm_prefetch(at + ahead, _MM_HINT_T0);
        }
        KERN_UNROLL
        for (size_t r = 0; r < rows; r++) {
            const __m512 x = _mm512_set1_ps(a[r]);
            KERN_UNROLL
            for (size_t p = 0; p < wide; p++) sum[r * wide + p] = _mm512_fmadd_ps(x, v[p], sum[r * wide + p]);
        }
        a += rows;
        w += step_bytes(form);
    }
    store_avx512(t, sum, rows, wide);
}

KERN_AVX512_BF16 KERN_INLINE void tile_pairs(const struct tile *t, size_t rows, size_t wide, size_t ahead)
{
    __m512 sum[32];
    const float *a = t->a;
    const char *w = t->w;
    KERN_UNROLL
    for (size_t i = 0; i < rows * wide; i++) sum[i] = _mm512_setzero_ps();
    for (size_t l = 0; l < t->depth; l++) {
        __m512i v[8];
        KERN_UNROLL
        for (size_t p = 0; p < wide; p++) {
            v[p] = _mm512_loadu_si512(w + p * t->panel);
            if (ahead) _mm_prefetch(w + p * t->panel + ahead, _MM_HINT_T0);
        }
        KERN_UNROLL
        for (size_t r = 0; r < rows; r++) {
            const __m512i x = _mm512_castps_si512(_mm512_set1_ps(a[r]));
            KERN_UNROLL
            for (size_t p = 0; p < wide; p++)
                sum[r * wide + p] = _mm512_dpbf16_ps(sum[r * wide + p], (__m512bh)x, (__m512bh)v[p]);
        }
        a += rows;
        w += step_bytes(PAIRS);
    }
    store_avx512(t, sum, rows, wide);
}

KERN_AVX2 KERN_INLINE void tile_avx2(const struct tile *t, size_t rows, size_t wide, enum form form, size_t ahead)
{
    enum { HALF = 8 };
    __m256 sum[16];
    const float *a = t->a;
    const char *w = t->w;
    KERN_UNROLL
    for (size_t i = 0; i < rows * wide * 2; i++) sum[i] = _mm256_setzero_ps();
    for (size_t l = 0; l < t->depth; l++) {
        __m256 v[8];
        KERN_UNROLL
        for (size_t p = 0; p < 2 * wide; p++) {
            const char *at = w + p / 2 * t->panel + p % 2 * (step_bytes(form) / 2);
            if (form == BF16) {
                const __m128i half = _mm_loadu_si128((const __m128i *)(const void *)at);
                v[p] = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
            } else {
                v[p] = _mm256_loadu_ps((const float *)(const void *)at);
            }
            if (ahead && p % 2 == 0) _mm_prefetch(at + ahead, _MM_HINT_T0);
        }
        KERN_UNROLL
        for (size_t r = 0; r < rows; r++) {
            const __m256 x = _mm256_set1_ps(a[r]);
            KERN_UNROLL
            for (size_t p = 0; p < 2 * wide; p++)
                sum[r * 2 * wide + p] = _mm256_fmadd_ps(x, v[p], sum[r * 2 * wide + p]);
        }
        a += rows;
        w += step_bytes(form);
    }
    float whole[6 * 4 * PANEL];
    KERN_UNROLL
    for (size_t i = 0; i < rows * wide * 2; i++) _mm256_storeu_ps(whole + i * HALF, sum[i]);
    put_part(t, whole, rows, wide * PANEL);
}
#endif

/* -- sums to bf16 -- */

static void round_portable(const float *from, uint16_t *to, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] = kern_bf16_from(from[i]);
}

#if KERN_X86
/* Nearest even as in kern_bf16_from: half an ulp less one, and the last bit that stays; NANs keep a bit. */
KERN_AVX512 static void round_avx512(const float *from, uint16_t *to, size_t n)
{
    const __m512i half = _mm512_set1_epi32(0x7fff), one = _mm512_set1_epi32(1);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m512 v = _mm512_loadu_ps(from + i);
        const __m512i bits = _mm512_castps_si512(v);
        const __m512i last = _mm512_and_si512(_mm512_srli_epi32(bits, 16), one);
        const __m512i up = _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(half, last)), 16);
        const __m512i nan = _mm512_or_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(0x40));
        const __mmask16 is_nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
        _mm256_storeu_si256((__m256i *)(void *)(to + i),
                            _mm512_cvtepi32_epi16(_mm512_mask_blend_epi32(is_nan, up, nan)));
    }
    round_portable(from + i, to + i, n - i);
}

KERN_AVX2 static void round_avx2(const float *from, uint16_t *to, size_t n)
{
    const __m256i half = _mm256_set1_epi32(0x7fff), one = _mm256_set1_epi32(1);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 v = _mm256_loadu_ps(from + i);
        const __m256i bits = _mm256_castps_si256(v);
        const __m256i last = _mm256_and_si256(_mm256_srli_epi32(bits, 16), one);
        const __m256i up = _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(half, last)), 16);
        const __m256i nan = _mm256_or_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(0x40));
        const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
        const __m256i whole = _mm256_blendv_epi8(up, nan, is_nan);
        const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
        _mm_storeu_si128((__m128i *)(void *)(to + i), packed);
    }
    round_portable(from + i, to + i, n - i);
}
#endif

/* -- tables of tiles -- */

/* By rows. One strip alone takes the most panels side by side that the registers hold; strips that share panels all
 * take the same number; what is left at the edge goes panel by panel. */

struct tiles {
    size_t rows_max;
    void (*round)(const float *from, uint16_t *to, size_t n);
    struct {
        tile_run *run;
        size_t wide;
    } wide[ROWS_MAX + 1], many[ROWS_MAX + 1], one[ROWS_MAX + 1]; /* by rows: of one strip, of several, of one panel */
};

/* Bytes fetched ahead of every walk: more for the few rows that wait for memory. */
#define TILE(isa, ISA, form, FORM, rows, panels)                                                                       \
    ISA static void isa##_##form##_##rows##_##panels(const struct tile *t)                                             \
    {                                                                                                                  \
        tile_##isa(t, rows, panels, FORM, AHEAD(rows));                                                                \
    }
#define PAIR_TILE(rows, panels)                                                                                        \
    KERN_AVX512_BF16 static void pairs_##rows##_##panels(const struct tile *t)                                         \
    {                                                                                                                  \
        tile_pairs(t, rows, panels, AHEAD(rows));                                                                      \
    }
#define AHEAD(rows) ((rows) <= 4 ? 512 : 256)
#define PORTABLE(form, FORM, rows)                                                                                     \
    static void portable_##form##_##rows(const struct tile *t) { tile_portable(t, rows, FORM); }

#define ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)

#if KERN_X86
/* Panels side by side of one strip: rows*panels sums, panels weights and a factor in 32 registers. */
#define WIDE_512(X) X(1, 8) X(2, 8) X(3, 6) X(4, 4) X(5, 4) X(6, 3) X(7, 3)
#define TWO_512(X) X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2) X(7, 2) X(8, 2) X(9, 2) X(10, 2) X(11, 2) X(12, 2)
#define LAST_512(X) X(8, 2) X(9, 2) X(10, 2) X(11, 2) X(12, 2)
#define ONE_512(X) X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1) X(9, 1) X(10, 1) X(11, 1) X(12, 1)
#define X(rows, panels)                                                                                                \
    TILE(avx512, KERN_AVX512, fp32, FP32, rows, panels)                                                                \
    TILE(avx512, KERN_AVX512, bf16, BF16, rows, panels) PAIR_TILE(rows, panels)
WIDE_512(X)
TWO_512(X)
ONE_512(X)
#undef X
/* rows*panels*2 sums, 2*panels weights and a factor in 16. */
#define WIDE_2(X) X(1, 4) X(2, 2) X(3, 2)
#define LAST_2(X) X(4, 1) X(5, 1) X(6, 1)
#define ONE_2(X) X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1)
#define X(rows, panels) TILE(avx2, KERN_AVX2, fp32, FP32, rows, panels) TILE(avx2, KERN_AVX2, bf16, BF16, rows, panels)
WIDE_2(X)
ONE_2(X)
#undef X

#define X(rows, panels) [rows] = {avx512_fp32_##rows##_##panels, panels},
static const struct tiles AVX512_FP32 = {12, round_avx512, {WIDE_512(X) LAST_512(X)}, {TWO_512(X)}, {ONE_512(X)}};
#undef X
#define X(rows, panels) [rows] = {avx512_bf16_##rows##_##panels, panels},
static const struct tiles AVX512_BF16 = {12, round_avx512, {WIDE_512(X) LAST_512(X)}, {TWO_512(X)}, {ONE_512(X)}};
#undef X
#define X(rows, panels) [rows] = {pairs_##rows##_##panels, panels},
static const struct tiles AVX512_PAIRS = {12, round_avx512, {WIDE_512(X) LAST_512(X)}, {TWO_512(X)}, {ONE_512(X)}};
#undef X
#define X(rows, panels) [rows] = {avx2_fp32_##rows##_##panels, panels},
static const struct tiles AVX2_FP32 = {6, round_avx2, {WIDE_2(X) LAST_2(X)}, {ONE_2(X)}, {ONE_2(X)}};
#undef X
#define X(rows, panels) [rows] = {avx2_bf16_##rows##_##panels, panels},
static const struct tiles AVX2_BF16 = {6, round_avx2, {WIDE_2(X) LAST_2(X)}, {ONE_2(X)}, {ONE_2(X)}};
#undef X
#endif

#define X(rows) PORTABLE(fp32, FP32, rows) PORTABLE(bf16, BF16, rows)
ROWS(X)
#undef X
#define X(rows) [rows] = {portable_fp32_##rows, 1},
static const struct tiles PORTABLE_FP32 = {12, round_portable, {ROWS(X)}, {ROWS(X)}, {ROWS(X)}};
#undef X
#define X(rows) [rows] = {portable_bf16_##rows, 1},
static const struct tiles PORTABLE_BF16 = {12, round_portable, {ROWS(X)}, {ROWS(X)}, {ROWS(X)}};
#undef X

/* -- the product -- */

/* Rows [row, row + rows) of a as a strip, steps in order: [step][rows]. */
static void make_strip(const struct kern_call *c, enum form form, size_t row, size_t rows, float *out)
{
    const size_t k = (size_t)c->shape->v[K], steps = form == PAIRS ? (k + 1) / 2 : k;
    for (size_t r = 0; r < rows; r++) {
        if (form == FP32) {
            const float *a = (const float *)c->buffer[A] + (row + r) * k;
            for (size_t l = 0; l < k; l++) out[l * rows + r] = a[l];
            continue;
        }
        const uint16_t *a = (const uint16_t *)c->buffer[A] + (row + r) * k;
        for (size_t l = 0; form == BF16 && l < k; l++) out[l * rows + r] = kern_bf16_to(a[l]);
        for (size_t l = 0; form == PAIRS && l < steps; l++) {
            const uint16_t pair[2] = {a[2 * l], 2 * l + 1 < k ? a[2 * l + 1] : 0};
            memcpy(&out[l * rows + r], pair, sizeof pair);
        }
    }
}

struct job {
    const struct tiles *tiles;
    enum form form;
    size_t m, n, steps, panels, strips_n;
    const float *strips;
    const char *w;
    float *sums;
};

/* First row of strip i: strips differ by one row at most. */
static size_t strip_row(const struct job *j, size_t i) { return i * j->m / j->strips_n; }

/* Panels [panel, panel + wide) times strips [first, end), steps [from, from + depth). */
static void run_panels(const struct job *j, size_t panel, size_t wide, size_t first, size_t end, size_t from,
                       size_t depth)
{
    const size_t left = j->n - panel * PANEL;
    for (size_t i = first; i < end; i++) {
        const size_t row = strip_row(j, i), rows = strip_row(j, i + 1) - row;
        const struct tile t = {.a = j->strips + row * j->steps + from * rows,
                               .w = j->w + (panel * j->steps + from) * step_bytes(j->form),
                               .panel = j->steps * step_bytes(j->form),
                               .depth = depth,
                               .sums = j->sums + row * j->n + panel * PANEL,
                               .stride = j->n,
                               .columns = left < wide * PANEL ? left : wide * PANEL,
                               .more = from > 0};
        const struct tiles *s = j->tiles;
        (wide == 1 ? s->one[rows] : j->strips_n == 1 ? s->wide[rows] : s->many[rows]).run(&t);
    }
}

static void multiply(const struct kern_call *c, const struct tiles *tiles, enum form form)
{
    enum { BLOCK = MC / ROWS_MAX }; /* strips that stay in the second cache */
    const size_t k = (size_t)c->shape->v[K], m = (size_t)c->shape->v[M];
    const struct job j = {.tiles = tiles,
                          .form = form,
                          .m = m,
                          .n = (size_t)c->shape->v[N],
                          .steps = form == PAIRS ? (k + 1) / 2 : k,
                          .panels = panels_of(c->shape),
                          .strips_n = (m + tiles->rows_max - 1) / tiles->rows_max,
                          .strips = c->buffer[STRIPS],
                          .w = c->packed,
                          .sums = form == FP32 ? c->buffer[C] : c->buffer[SUMS]};
    const size_t depth_max = j.strips_n == 1 ? j.steps : KC, block = (size_t)BLOCK * ROWS_MAX / tiles->rows_max;
    const size_t wide = j.strips_n == 1 ? tiles->wide[m].wide : tiles->many[tiles->rows_max].wide;
    for (size_t i = 0; i < j.strips_n; i++) {
        const size_t row = strip_row(&j, i);
        make_strip(c, form, row, strip_row(&j, i + 1) - row, (float *)c->buffer[STRIPS] + row * j.steps);
    }
    for (size_t from = 0; from < j.steps; from += depth_max)
        for (size_t first = 0; first < j.strips_n; first += block) {
            const size_t end = j.strips_n - first < block ? j.strips_n : first + block;
            const size_t depth = j.steps - from < depth_max ? j.steps - from : depth_max;
            for (size_t panel = 0, take; panel < j.panels; panel += take) {
                take = j.panels - panel >= wide ? wide : 1;
                run_panels(&j, panel, take, first, end, from, depth);
            }
        }
    if (form != FP32) tiles->round(j.sums, c->buffer[C], j.m * j.n);
}

static void run_portable(const struct kern_call *c)
{
    if (in_bf16(c->shape))
        multiply(c, &PORTABLE_BF16, BF16);
    else
        multiply(c, &PORTABLE_FP32, FP32);
}

static size_t pack_bytes_plain(const struct kern_shape *s)
{
    return in_bf16(s) ? pack_bytes_bf16(s) : pack_bytes_fp32(s);
}

static void pack_plain(const struct kern_call *c)
{
    if (in_bf16(c->shape))
        pack_bf16(c);
    else
        pack_fp32(c);
}

#if KERN_X86
static void run_avx512(const struct kern_call *c)
{
    if (in_bf16(c->shape))
        multiply(c, &AVX512_BF16, BF16);
    else
        multiply(c, &AVX512_FP32, FP32);
}

static void run_avx2(const struct kern_call *c)
{
    if (in_bf16(c->shape))
        multiply(c, &AVX2_BF16, BF16);
    else
        multiply(c, &AVX2_FP32, FP32);
}

static void run_pairs(const struct kern_call *c) { multiply(c, &AVX512_PAIRS, PAIRS); }
#endif

/* -- the library's -- */

static const char *lacks_blas(const struct kern_machine *m, const struct kern_shape *s)
{
    (void)s;
    return m->sgemm ? NULL : "no OpenBLAS or BLIS is installed";
}

static void run_blas(const struct kern_call *c)
{
    enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 }; /* of CBLAS */
    const int m = (int)c->shape->v[M], n = (int)c->shape->v[N], k = (int)c->shape->v[K];
    c->machine->sgemm(ROW_MAJOR, PLAIN, TRANSPOSED, m, n, k, 1, c->buffer[A], k, c->buffer[W], k, 0, c->buffer[C], n);
}

#define BOTH (KERN_HAS(KERN_FP32) | KERN_HAS(KERN_BF16))

static const struct kern_variant VARIANTS[] = {
#if KERN_X86
    {.name = "avx512-bf16",
     .unit = KERN_UNIT_BF16_DOT,
     .dtypes = KERN_HAS(KERN_BF16),
     .lacks = kern_lacks_avx512_bf16,
     .pack_bytes = pack_bytes_pairs,
     .pack = pack_pairs,
     .run = run_pairs,
     .packed_inputs = 1u << W},
    {.name = "avx512",
     .unit = KERN_UNIT_FP32,
     .dtypes = BOTH,
     .lacks = kern_lacks_avx512,
     .pack_bytes = pack_bytes_plain,
     .pack = pack_plain,
     .run = run_avx512,
     .packed_inputs = 1u << W},
    {.name = "avx2",
     .unit = KERN_UNIT_FP32,
     .dtypes = BOTH,
     .lacks = kern_lacks_avx2,
     .pack_bytes = pack_bytes_plain,
     .pack = pack_plain,
     .run = run_avx2,
     .packed_inputs = 1u << W},
#endif
    {.name = "blas",
     .unit = KERN_UNIT_FP32,
     .dtypes = KERN_HAS(KERN_FP32),
     .lacks = lacks_blas,
     .run = run_blas,
     .library = true},
    {.name = "portable",
     .unit = KERN_UNIT_FP32,
     .dtypes = BOTH,
     .pack_bytes = pack_bytes_plain,
     .pack = pack_plain,
     .run = run_portable,
     .packed_inputs = 1u << W},
};

/* Weights of 64 MiB in fp32 (4096 x 4096), and the wide and narrow ones of a layer of 4096: beyond the caches of most.
 */
static const struct kern_point POINTS[] = {
    {{{1, 4096, 4096}, KERN_FP32}, true},     {{{8, 4096, 4096}, KERN_FP32}, true},
    {{{64, 4096, 4096}, KERN_FP32}, true},    {{{1024, 2048, 2048}, KERN_FP32}, true},
    {{{1, 14336, 4096}, KERN_BF16}, true},    {{{4, 14336, 4096}, KERN_BF16}, true},
    {{{16, 14336, 4096}, KERN_BF16}, true},   {{{512, 4096, 4096}, KERN_BF16}, true},
    {{{2, 4096, 14336}, KERN_BF16}, false},   {{{32, 6144, 4096}, KERN_BF16}, false},
    {{{128, 4096, 4096}, KERN_FP32}, false},  {{{1, 28672, 4096}, KERN_BF16}, false},
    {{{128, 4096, 4096}, KERN_BF16}, false},  {{{3, 6144, 4096}, KERN_FP32}, false},
    {{{2048, 2048, 2048}, KERN_BF16}, false},
};

const struct kern kern_gemm = {
    .name = "gemm",
    .summary = "c[m,n] = a[m,k] * w[n,k]^T: the products of a model",
    .row_kind = "gemm",
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
