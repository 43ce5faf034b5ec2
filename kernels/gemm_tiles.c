#include "kernels/gemm_tiles.h"

#include <string.h>

/* -- one tile: `rows` rows of a strip times `wide` panels, steps [0, depth) -- */

/* Copies a tile that was computed whole to the columns that there are. */
static void put_part(const struct gemm_tile *t, const float *whole, size_t rows, size_t width)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t j = 0; j < t->columns; j++) {
            float *at = t->sums + r * t->stride + j;
            *at = t->more ? *at + whole[r * width + j] : whole[r * width + j];
        }
}

KERN_INLINE void tile_portable(const struct gemm_tile *t, size_t rows, enum gemm_form form)
{
    float sum[GEMM_ROWS_MAX * GEMM_PANEL] = {0}, w[GEMM_PANEL];
    for (size_t l = 0; l < t->depth; l++) {
        const char *at = t->w + l * gemm_step_bytes(form);
        if (form == GEMM_FP32)
            memcpy(w, at, sizeof w);
        else
            for (size_t j = 0; j < GEMM_PANEL; j++) {
                uint16_t bits;
                memcpy(&bits, at + 2 * j, sizeof bits);
                w[j] = kern_bf16_to(bits);
            }
        for (size_t r = 0; r < rows; r++)
            for (size_t j = 0; j < GEMM_PANEL; j++) sum[r * GEMM_PANEL + j] += t->a[l * rows + r] * w[j];
    }
    put_part(t, sum, rows, GEMM_PANEL);
}

#if KERN_X86
/* Where the products go behind the loop, asked for before it: a column of rows has a stride that no fetching by itself
 * follows, and a store that misses waits for its line as a load does. */
KERN_INLINE void fetch_sums(const struct gemm_tile *t, size_t rows, size_t wide)
{
    if (t->columns != wide * GEMM_PANEL) return;
    KERN_UNROLL
    for (size_t r = 0; r < rows; r++) {
        KERN_UNROLL
        for (size_t p = 0; p < wide; p++)
            _mm_prefetch((const char *)(t->sums + r * t->stride + p * GEMM_PANEL), _MM_HINT_T0);
    }
}

KERN_AVX512 KERN_INLINE __m512 load_bf16_avx512(const char *at)
{
    const __m256i half = _mm256_loadu_si256((const __m256i *)(const void *)at);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

KERN_AVX512 KERN_INLINE void store_avx512(const struct gemm_tile *t, const __m512 *sum, size_t rows, size_t wide)
{
    float whole[GEMM_ROWS_MAX * 8 * GEMM_PANEL];
    if (t->columns == wide * GEMM_PANEL) {
        KERN_UNROLL
        for (size_t r = 0; r < rows; r++) {
            KERN_UNROLL
            for (size_t p = 0; p < wide; p++) {
                float *at = t->sums + r * t->stride + p * GEMM_PANEL;
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
        for (size_t p = 0; p < wide; p++) _mm512_storeu_ps(whole + (r * wide + p) * GEMM_PANEL, sum[r * wide + p]);
    }
    put_part(t, whole, rows, wide * GEMM_PANEL);
}

KERN_AVX512 KERN_INLINE void tile_avx512(const struct gemm_tile *t, size_t rows, size_t wide, enum gemm_form form,
                                         size_t ahead)
{
    __m512 sum[32];
    const float *a = t->a;
    const char *w = t->w;
    fetch_sums(t, rows, wide);
    KERN_UNROLL
    for (size_t i = 0; i < rows * wide; i++) sum[i] = _mm512_setzero_ps();
    for (size_t l = 0; l < t->depth; l++) {
        __m512 v[8];
        if (t->next) _mm_prefetch(t->next + l * t->next_step, _MM_HINT_T1);
        KERN_UNROLL
        for (size_t p = 0; p < wide; p++) {
            const char *at = w + p * gemm_step_bytes(form);
            v[p] = form == GEMM_BF16 ? load_bf16_avx512(at) : _mm512_loadu_ps((const float *)(const void *)at);
            if (ahead && !t->far_alone) _mm_prefetch(at + ahead, _MM_HINT_T0);
            if (t->far) _mm_prefetch(at + t->far, _MM_HINT_T1);
        }
        KERN_UNROLL
        for (size_t r = 0; r < rows; r++) {
            const __m512 x = _mm512_set1_ps(a[r]);
            KERN_UNROLL
            for (size_t p = 0; p < wide; p++) sum[r * wide + p] = _mm512_fmadd_ps(x, v[p], sum[r * wide + p]);
        }
        a += rows;
        w += t->step;
    }
    store_avx512(t, sum, rows, wide);
}

KERN_AVX512_BF16 KERN_INLINE void tile_pairs(const struct gemm_tile *t, size_t rows, size_t wide, size_t ahead)
{
    __m512 sum[32];
    const float *a = t->a;
    const char *w = t->w;
    fetch_sums(t, rows, wide);
    KERN_UNROLL
    for (size_t i = 0; i < rows * wide; i++) sum[i] = _mm512_setzero_ps();
    for (size_t l = 0; l < t->depth; l++) {
        __m512i v[8];
        if (t->next) _mm_prefetch(t->next + l * t->next_step, _MM_HINT_T1);
        KERN_UNROLL
        for (size_t p = 0; p < wide; p++) {
            const char *at = w + p * gemm_step_bytes(GEMM_PAIRS);
            v[p] = _mm512_loadu_si512(at);
            if (ahead && !t->far_alone) _mm_prefetch(at + ahead, _MM_HINT_T0);
            if (t->far) _mm_prefetch(at + t->far, _MM_HINT_T1);
        }
        KERN_UNROLL
        for (size_t r = 0; r < rows; r++) {
            const __m512i x = _mm512_castps_si512(_mm512_set1_ps(a[r]));
            KERN_UNROLL
            for (size_t p = 0; p < wide; p++)
                sum[r * wide + p] = _mm512_dpbf16_ps(sum[r * wide + p], (__m512bh)x, (__m512bh)v[p]);
        }
        a += rows;
        w += t->step;
    }
    store_avx512(t, sum, rows, wide);
}

KERN_AVX2 KERN_INLINE void tile_avx2(const struct gemm_tile *t, size_t rows, size_t wide, enum gemm_form form,
                                     size_t ahead)
{
    enum { HALF = 8 };
    __m256 sum[16];
    const float *a = t->a;
    const char *w = t->w;
    KERN_UNROLL
    for (size_t i = 0; i < rows * wide * 2; i++) sum[i] = _mm256_setzero_ps();
    for (size_t l = 0; l < t->depth; l++) {
        __m256 v[8];
        if (t->next) _mm_prefetch(t->next + l * t->next_step, _MM_HINT_T1);
        KERN_UNROLL
        for (size_t p = 0; p < 2 * wide; p++) {
            const char *at = w + p / 2 * t->panel + p % 2 * (gemm_step_bytes(form) / 2);
            if (form == GEMM_BF16) {
                const __m128i half = _mm_loadu_si128((const __m128i *)(const void *)at);
                v[p] = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
            } else {
                v[p] = _mm256_loadu_ps((const float *)(const void *)at);
            }
            if (ahead && !t->far_alone && p % 2 == 0) _mm_prefetch(at + ahead, _MM_HINT_T0);
            if (t->far_alone && p % 2 == 0) _mm_prefetch(at + t->far, _MM_HINT_T1);
        }
        KERN_UNROLL
        for (size_t r = 0; r < rows; r++) {
            const __m256 x = _mm256_set1_ps(a[r]);
            KERN_UNROLL
            for (size_t p = 0; p < 2 * wide; p++)
                sum[r * 2 * wide + p] = _mm256_fmadd_ps(x, v[p], sum[r * 2 * wide + p]);
        }
        a += rows;
        w += gemm_step_bytes(form);
    }
    float whole[6 * 4 * GEMM_PANEL];
    KERN_UNROLL
    for (size_t i = 0; i < rows * wide * 2; i++) _mm256_storeu_ps(whole + i * HALF, sum[i]);
    put_part(t, whole, rows, wide * GEMM_PANEL);
}
#endif

#if KERN_ARM
/* Sums are [rows][wide][QUARTERS]. */
enum { QUARTERS = GEMM_PANEL / 4 };

KERN_INLINE void store_neon(const struct gemm_tile *t, const float32x4_t *sum, size_t rows, size_t wide)
{
    float whole[6 * GEMM_PANEL];
    const size_t n = wide * QUARTERS;
    if (t->columns == wide * GEMM_PANEL) {
        KERN_UNROLL
        for (size_t r = 0; r < rows; r++) {
            KERN_UNROLL
            for (size_t j = 0; j < n; j++) {
                float *at = t->sums + r * t->stride + 4 * j;
                vst1q_f32(at, t->more ? vaddq_f32(sum[r * n + j], vld1q_f32(at)) : sum[r * n + j]);
            }
        }
        return;
    }
    KERN_UNROLL
    for (size_t i = 0; i < rows * n; i++) vst1q_f32(whole + 4 * i, sum[i]);
    put_part(t, whole, rows, wide * GEMM_PANEL);
}

/* A panel's weights of a step. */
KERN_INLINE void load_neon(const char *at, enum gemm_form form, float32x4_t *v)
{
    const uint16x8_t none = vdupq_n_u16(0);
    KERN_UNROLL
    for (size_t j = 0; j < QUARTERS; j += 2) {
        if (form == GEMM_BF16) {
            const uint16x8_t bits = vld1q_u16((const uint16_t *)(const void *)(at + 8 * j));
            v[j] = vreinterpretq_f32_u16(vzip1q_u16(none, bits));
            v[j + 1] = vreinterpretq_f32_u16(vzip2q_u16(none, bits));
        } else {
            v[j] = vld1q_f32((const float *)(const void *)(at + 16 * j));
            v[j + 1] = vld1q_f32((const float *)(const void *)(at + 16 * j + 16));
        }
    }
}

/* n <= 4 factors, more as 4. */
KERN_INLINE float32x4_t load_factors(const float *a, size_t n)
{
    if (n >= 4) return vld1q_f32(a);
    if (n == 1) return vld1q_dup_f32(a);
    return vcombine_f32(vld1_f32(a), n == 3 ? vld1_dup_f32(a + 2) : vld1_f32(a));
}

/* Factors in registers by fours: each in one of its own, with the sums they would be more than there are. */
KERN_INLINE void tile_neon(const struct gemm_tile *t, size_t rows, size_t wide, enum gemm_form form, size_t ahead)
{
    float32x4_t sum[6 * QUARTERS];
    const float *a = t->a;
    const char *w = t->w;
    KERN_UNROLL
    for (size_t i = 0; i < rows * wide * QUARTERS; i++) sum[i] = vdupq_n_f32(0);
    for (size_t l = 0; l < t->depth; l++) {
        const float32x4_t x[2] = {load_factors(a, rows),
                                  load_factors(rows > 4 ? a + 4 : a, rows > 4 ? rows - 4 : rows)};
        if (t->next) __builtin_prefetch(t->next + l * t->next_step, 0, 2);
        KERN_UNROLL
        for (size_t p = 0; p < wide; p++) {
            const char *at = w + p * t->panel;
            float32x4_t v[QUARTERS];
            load_neon(at, form, v);
            if (ahead) __builtin_prefetch(at + ahead, 0, 3);
            KERN_UNROLL
            for (size_t r = 0; r < rows; r++) {
                float32x4_t *s = sum + (r * wide + p) * QUARTERS;
                KERN_UNROLL
                for (size_t j = 0; j < QUARTERS; j++) s[j] = vfmaq_n_f32(s[j], v[j], x[r / 4][r % 4]);
            }
        }
        a += rows;
        w += gemm_step_bytes(form);
    }
    store_neon(t, sum, rows, wide);
}

/* Products of two rows and two columns at a time, four steps of k deep. */
KERN_NEON_BF16 KERN_INLINE void tile_squares(const struct gemm_tile *t, size_t rows, size_t wide, size_t ahead)
{
    enum { TWOS = GEMM_PANEL / 2 };
    const size_t pairs = (rows + 1) / 2;
    float32x4_t sum[3 * TWOS], row[6 * QUARTERS];
    const uint16_t *a = (const uint16_t *)(const void *)t->a;
    const char *w = t->w;
    KERN_UNROLL
    for (size_t i = 0; i < pairs * wide * TWOS; i++) sum[i] = vdupq_n_f32(0);
    for (size_t l = 0; l < t->depth; l++) {
        uint16x8_t x[3];
        KERN_UNROLL
        for (size_t i = 0; i < pairs; i++) x[i] = vld1q_u16(a + 8 * i);
        if (t->next) __builtin_prefetch(t->next + l * t->next_step, 0, 2);
        if (t->next) __builtin_prefetch(t->next + l * t->next_step + t->next_step / 2, 0, 2);
        KERN_UNROLL
        for (size_t p = 0; p < wide; p++) {
            const uint16_t *at = (const uint16_t *)(const void *)(w + p * t->panel);
            if (ahead) __builtin_prefetch((const char *)at + ahead, 0, 3);
            if (ahead) __builtin_prefetch((const char *)at + ahead + 64, 0, 3);
            KERN_UNROLL
            for (size_t j = 0; j < TWOS; j++) {
                const uint16x8_t v = vld1q_u16(at + 8 * j);
                KERN_UNROLL
                for (size_t i = 0; i < pairs; i++) {
                    float32x4_t *s = sum + (i * wide + p) * TWOS + j;
                    *s = kern_neon_square(*s, x[i], v);
                }
            }
        }
        a += 8 * pairs;
        w += gemm_step_bytes(GEMM_SQUARES);
    }
    const size_t n = wide * QUARTERS;
    KERN_UNROLL
    for (size_t i = 0; i < pairs * n; i++) {
        const float64x2_t x = vreinterpretq_f64_f32(sum[2 * i]), y = vreinterpretq_f64_f32(sum[2 * i + 1]);
        row[i / n * 2 * n + i % n] = vreinterpretq_f32_f64(vzip1q_f64(x, y));
        row[(i / n * 2 + 1) * n + i % n] = vreinterpretq_f32_f64(vzip2q_f64(x, y));
    }
    store_neon(t, row, rows, wide);
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

#if KERN_ARM
static void round_neon(const float *from, uint16_t *to, size_t n)
{
    const uint32x4_t half = vdupq_n_u32(0x7fff), one = vdupq_n_u32(1);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const float32x4_t v = vld1q_f32(from + i);
        const uint32x4_t bits = vreinterpretq_u32_f32(v), last = vandq_u32(vshrq_n_u32(bits, 16), one);
        const uint32x4_t up = vaddq_u32(bits, vaddq_u32(half, last)), nan = vorrq_u32(bits, vdupq_n_u32(0x400000));
        vst1_u16(to + i, vshrn_n_u32(vbslq_u32(vceqq_f32(v, v), up, nan), 16));
    }
    round_portable(from + i, to + i, n - i);
}

KERN_NEON_BF16 static void round_squares(const float *from, uint16_t *to, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4) vst1_u16(to + i, kern_neon_narrow(vld1q_f32(from + i)));
    round_portable(from + i, to + i, n - i);
}
#endif

/* -- tables of tiles -- */

/* By rows. One strip alone takes the most panels side by side that the registers hold; strips that share panels all
 * take the same number; what is left at the edge goes panel by panel. */

/* Bytes fetched ahead of every walk: more for the few rows that wait for memory. */
#define TILE(isa, ISA, form, FORM, rows, panels, ahead)                                                                \
    ISA static void isa##_##form##_##rows##_##panels(const struct gemm_tile *t)                                        \
    {                                                                                                                  \
        tile_##isa(t, rows, panels, FORM, ahead);                                                                      \
    }
#define PAIR_TILE(rows, panels)                                                                                        \
    KERN_AVX512_BF16 static void pairs_##rows##_##panels(const struct gemm_tile *t)                                    \
    {                                                                                                                  \
        tile_pairs(t, rows, panels, AHEAD_512);                                                                        \
    }
#define AHEAD(rows) ((rows) <= 4 ? 512 : 256)
#define AHEAD_512 512 /* of panels side by side, which are one walk */
#define PORTABLE(form, FORM, rows)                                                                                     \
    static void portable_##form##_##rows(const struct gemm_tile *t) { tile_portable(t, rows, FORM); }

#define ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)

#if KERN_X86
/* Panels side by side: rows*panels sums, panels weights and a factor in 32 registers. Two, for few rows also: four are
 * two walks through memory, whole panels apart. */
#define TWO_512(X) X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2) X(7, 2) X(8, 2) X(9, 2) X(10, 2) X(11, 2) X(12, 2)
#define ONE_512(X) X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1) X(9, 1) X(10, 1) X(11, 1) X(12, 1)
#define X(rows, panels)                                                                                                \
    TILE(avx512, KERN_AVX512, fp32, GEMM_FP32, rows, panels, AHEAD_512)                                                \
    TILE(avx512, KERN_AVX512, bf16, GEMM_BF16, rows, panels, AHEAD_512) PAIR_TILE(rows, panels)
TWO_512(X)
ONE_512(X)
#undef X
/* rows*panels*2 sums, 2*panels weights and a factor in 16 registers: two panels only for few rows. */
#define WIDE_2(X) X(1, 2) X(2, 2) X(3, 2)
#define LAST_2(X) X(4, 1) X(5, 1) X(6, 1)
#define ONE_2(X) X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1)
#define X(rows, panels)                                                                                                \
    TILE(avx2, KERN_AVX2, fp32, GEMM_FP32, rows, panels, AHEAD(rows))                                                  \
    TILE(avx2, KERN_AVX2, bf16, GEMM_BF16, rows, panels, AHEAD(rows))
WIDE_2(X)
ONE_2(X)
#undef X

#define X(rows, panels) [rows] = {avx512_fp32_##rows##_##panels, panels},
const struct gemm_tiles gemm_avx512_fp32 = {12, 2, round_avx512, {TWO_512(X)}, {TWO_512(X)}, {ONE_512(X)}};
#undef X
#define X(rows, panels) [rows] = {avx512_bf16_##rows##_##panels, panels},
const struct gemm_tiles gemm_avx512_bf16 = {12, 2, round_avx512, {TWO_512(X)}, {TWO_512(X)}, {ONE_512(X)}};
#undef X
#define X(rows, panels) [rows] = {pairs_##rows##_##panels, panels},
const struct gemm_tiles gemm_avx512_pairs = {12, 2, round_avx512, {TWO_512(X)}, {TWO_512(X)}, {ONE_512(X)}};
#undef X
#define X(rows, panels) [rows] = {avx2_fp32_##rows##_##panels, panels},
const struct gemm_tiles gemm_avx2_fp32 = {6, 1, round_avx2, {WIDE_2(X) LAST_2(X)}, {ONE_2(X)}, {ONE_2(X)}};
#undef X
#define X(rows, panels) [rows] = {avx2_bf16_##rows##_##panels, panels},
const struct gemm_tiles gemm_avx2_bf16 = {6, 1, round_avx2, {WIDE_2(X) LAST_2(X)}, {ONE_2(X)}, {ONE_2(X)}};
#undef X
#endif

#if KERN_ARM
/* rows*panels*4 sums, 4 weights and factors in 32 registers; of squares the same number of sums, of two rows each. Few
 * rows take panels side by side, so that sums do not wait for each other. */
#define ALONE(X) X(1, 2) X(2, 2) X(3, 1) X(4, 1) X(5, 1) X(6, 1)
#define ONE(X) X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1)
#define NEON_TILES(rows, panels)                                                                                       \
    TILE(neon, , fp32, GEMM_FP32, rows, panels, AHEAD(rows)) TILE(neon, , bf16, GEMM_BF16, rows, panels, AHEAD(rows))
#define SQUARE_TILE(rows, panels)                                                                                      \
    KERN_NEON_BF16 static void squares_##rows##_##panels(const struct gemm_tile *t)                                    \
    {                                                                                                                  \
        tile_squares(t, rows, panels, AHEAD(rows));                                                                    \
    }
#define ALL(X) X(1, 2) X(2, 2) ONE(X)
ALL(NEON_TILES)
ALL(SQUARE_TILE)
#define X(rows, panels) [rows] = {neon_fp32_##rows##_##panels, panels},
const struct gemm_tiles gemm_neon_fp32 = {6, 1, round_neon, {ALONE(X)}, {ONE(X)}, {ONE(X)}};
#undef X
#define X(rows, panels) [rows] = {neon_bf16_##rows##_##panels, panels},
const struct gemm_tiles gemm_neon_bf16 = {6, 1, round_neon, {ALONE(X)}, {ONE(X)}, {ONE(X)}};
#undef X
#define X(rows, panels) [rows] = {squares_##rows##_##panels, panels},
const struct gemm_tiles gemm_neon_squares = {6, 1, round_squares, {ALONE(X)}, {ONE(X)}, {ONE(X)}};
#undef X
#endif

#define X(rows) PORTABLE(fp32, GEMM_FP32, rows) PORTABLE(bf16, GEMM_BF16, rows)
ROWS(X)
#undef X
#define X(rows) [rows] = {portable_fp32_##rows, 1},
const struct gemm_tiles gemm_portable_fp32 = {12, 1, round_portable, {ROWS(X)}, {ROWS(X)}, {ROWS(X)}};
#undef X
#define X(rows) [rows] = {portable_bf16_##rows, 1},
const struct gemm_tiles gemm_portable_bf16 = {12, 1, round_portable, {ROWS(X)}, {ROWS(X)}, {ROWS(X)}};
#undef X
