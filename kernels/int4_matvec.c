/* int4-matvec -- c[m,n] = a[m,k] * w[n,k]^T with weights of 4 bits and a scale for every 128 of a row.
 *
 * w is [n][ceil(k/2)] bytes, the even element of a pair in the low half; an element is (half - 8) * scale, scales are
 * bf16 [n][ceil(k/128)]. a and c are bf16, sums fp32. Counted: 2*m*n*k flops; half a byte per weight, its scales, a and
 * c once.
 * The dot unit takes bytes. One byte for an activation, as llama.cpp multiplies Q4_0 by Q8_0, is off by 0.6 % and more
 * where results are few; so that variant cuts the activations of a group in two bytes, with a scale of the group: x =
 * (128 high + low) * step. With halves h and group sums X: sum (h - 8) x = sum h x - 8 X. Sums of a group are whole
 * numbers below 2^24, so that high and low are put together before they become fp32. */
#include <math.h>
#include <string.h>

#include "kernels/table.h"
#include "kernels/vector.h"

enum { M, N, K };
enum { A, W, SCALES, C, BYTES, FACTORS };
enum { GROUP = 128, HALF = GROUP / 2, ZERO = 8, LOW_BITS = 7, LOW = 1 << LOW_BITS, LINE = 16 };

static const struct kern_arg ARGS[] = {
    [M] = {"m", 1, 1 << 12, "rows of a: tokens of the pass"},
    [N] = {"n", 1, 1 << 20, "columns of c: outputs of the layer"},
    [K] = {"k", 1, 1 << 20, "inner size: inputs of the layer"},
};

static size_t at(const struct kern_shape *s, size_t i) { return (size_t)s->v[i]; }
static size_t groups_of(const struct kern_shape *s) { return (at(s, K) + GROUP - 1) / GROUP; }
static size_t row_bytes(const struct kern_shape *s) { return (at(s, K) + 1) / 2; }

static const char *refuses(const struct kern_shape *s)
{
    return (double)s->v[N] * (double)s->v[K] > 0x1p36 ? "n and k together are beyond memory" : NULL;
}

static size_t buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    const size_t m = at(s, M), n = at(s, N), groups = groups_of(s);
    out[A] = (struct kern_buffer){"a", KERN_INPUT, KERN_TYPE_BF16, m * at(s, K), 1, 0};
    out[W] = (struct kern_buffer){"w", KERN_INPUT, KERN_TYPE_U8, n * row_bytes(s), 0, 0};
    out[SCALES] = (struct kern_buffer){"scales", KERN_INPUT, KERN_TYPE_BF16, n * groups, 0, 0};
    out[C] = (struct kern_buffer){"c", KERN_OUTPUT, KERN_TYPE_BF16, m * n, 0, 1};
    /* of each group the high bytes of even, of odd activations, the low ones; of all their steps, then 8 sums in steps
     */
    out[BYTES] = (struct kern_buffer){"bytes", KERN_SCRATCH, KERN_TYPE_I8, 2 * m * groups * GROUP, 0, 0};
    out[FACTORS] = (struct kern_buffer){"factors", KERN_SCRATCH, KERN_TYPE_F32, 2 * m * groups, 0, 0};
    return 6;
}

static void fill(const struct kern_call *c, size_t b, uint64_t seed, void *data)
{
    const size_t n = at(c->shape, N);
    if (b == W)
        for (size_t i = 0; i < n * row_bytes(c->shape); i++) ((uint8_t *)data)[i] = (uint8_t)kern_hash(seed, i);
    else
        for (size_t i = 0; i < n * groups_of(c->shape); i++)
            ((uint16_t *)data)[i] = kern_bf16_from(0.01F * (1 + (float)(kern_hash(seed, i) % 97) / 97));
}

static int half_of(const uint8_t *row, size_t k) { return (int)(row[k / 2] >> (k % 2 ? 4 : 0) & 15) - ZERO; }

static void reference(const struct kern_call *c, size_t b, size_t block, double *out)
{
    const size_t n = at(c->shape, N), k = at(c->shape, K), i = block / n, j = block % n;
    const uint8_t *row = (const uint8_t *)c->buffer[W] + j * row_bytes(c->shape);
    double sum = 0;
    (void)b;
    for (size_t l = 0; l < k; l++)
        sum += kern_read(c->buffer[A], KERN_TYPE_BF16, i * k + l) * half_of(row, l) *
               kern_read(c->buffer[SCALES], KERN_TYPE_BF16, j * groups_of(c->shape) + l / GROUP);
    *out = sum;
}

static double reference_cost(const struct kern_shape *s, size_t b)
{
    (void)b;
    return 2 * (double)s->v[K];
}

static void counts(const struct kern_shape *s, struct kern_counts *out)
{
    const double m = (double)s->v[M], n = (double)s->v[N], k = (double)s->v[K];
    *out = (struct kern_counts){.flops = 2 * m * n * k,
                                .read_bytes = 2 * m * k + n * (double)row_bytes(s) + 2 * n * (double)groups_of(s),
                                .written_bytes = 2 * m * n};
}

/* Results are rounded to 8 bits, 2^-9 at most. */
static double tolerance(const struct kern_shape *s)
{
    (void)s;
    return 1e-2;
}

static void run_portable(const struct kern_call *c)
{
    const size_t m = at(c->shape, M), n = at(c->shape, N), k = at(c->shape, K), groups = groups_of(c->shape);
    for (size_t j = 0; j < n; j++) {
        const uint8_t *row = (const uint8_t *)c->buffer[W] + j * row_bytes(c->shape);
        const uint16_t *scale = (const uint16_t *)c->buffer[SCALES] + j * groups;
        for (size_t i = 0; i < m; i++) {
            const uint16_t *a = (const uint16_t *)c->buffer[A] + i * k;
            float sum = 0;
            for (size_t g = 0; g < groups; g++) {
                const size_t end = k - g * GROUP < GROUP ? k : (g + 1) * GROUP;
                float part = 0;
                for (size_t l = g * GROUP; l < end; l++) part += kern_bf16_to(a[l]) * (float)half_of(row, l);
                sum += part * kern_bf16_to(scale[g]);
            }
            ((uint16_t *)c->buffer[C])[i * n + j] = kern_bf16_from(sum);
        }
    }
}

#if KERN_X86
/* Activations of a row in two bytes each, group by group: 16 pairs of an even and an odd one at a time. */
KERN_AVX512_VNNI static void quantise(const uint16_t *a, size_t k, size_t groups, int8_t *bytes, float *factor)
{
    enum { PAIRS = 16, STEPS = HALF / PAIRS };
    const __m512i odd_bits = _mm512_set1_epi32((int)0xffff0000u);
    for (size_t g = 0; g < groups; g++, bytes += 2 * GROUP) {
        __m512 value[2 * STEPS], most = _mm512_setzero_ps();
        __m512i sum = _mm512_setzero_si512();
        KERN_UNROLL
        for (size_t s = 0; s < STEPS; s++) {
            const size_t from = g * GROUP + s * 2 * PAIRS, left = from < k ? k - from : 0;
            const __mmask32 there = left >= 2 * PAIRS ? ~(__mmask32)0 : ((__mmask32)1 << left) - 1;
            const __m512i pairs = _mm512_maskz_loadu_epi16(there, a + from);
            value[2 * s] = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
            value[2 * s + 1] = _mm512_castsi512_ps(_mm512_and_si512(pairs, odd_bits));
            most = _mm512_max_ps(most, _mm512_abs_ps(value[2 * s]));
            most = _mm512_max_ps(most, _mm512_abs_ps(value[2 * s + 1]));
        }
        const float largest = _mm512_reduce_max_ps(most);
        const __m512 inverse = _mm512_set1_ps(largest > 0 ? 127 / largest : 0);
        KERN_UNROLL
        for (size_t i = 0; i < 2 * STEPS; i++) {
            const __m512 v = _mm512_mul_ps(value[i], inverse);
            const __m512i high = _mm512_cvtps_epi32(v);
            const __m512 rest = _mm512_mul_ps(_mm512_sub_ps(v, _mm512_cvtepi32_ps(high)), _mm512_set1_ps(LOW));
            const __m512i low = _mm512_cvtps_epi32(rest);
            int8_t *out = bytes + i % 2 * HALF + i / 2 * PAIRS;
            _mm_storeu_si128((__m128i *)(void *)out, _mm512_cvtepi32_epi8(high));
            _mm_storeu_si128((__m128i *)(void *)(out + GROUP), _mm512_cvtepi32_epi8(low));
            sum = _mm512_add_epi32(sum, _mm512_add_epi32(_mm512_slli_epi32(high, LOW_BITS), low));
        }
        factor[g] = largest / 127 / LOW;
        factor[groups + g] = (float)_mm512_reduce_add_epi32(sum) * ZERO;
    }
}

/* Rows [j, j + rows) of w times one row of a: a walk through memory each. Scales times steps are made for LINE groups
 * at a time. What lies `ahead` rows on is fetched meanwhile, line after line. */
KERN_AVX512_VNNI KERN_INLINE void rows_vnni(const struct kern_call *c, size_t i, size_t j, size_t rows, size_t ahead)
{
    const size_t n = at(c->shape, N), groups = groups_of(c->shape), bytes = row_bytes(c->shape);
    const uint8_t *w = (const uint8_t *)c->buffer[W] + j * bytes;
    const uint16_t *scale = (const uint16_t *)c->buffer[SCALES] + j * groups;
    const int8_t *x = (const int8_t *)c->buffer[BYTES] + 2 * i * groups * GROUP;
    const float *factor = (const float *)c->buffer[FACTORS] + 2 * i * groups;
    const __m512i low = _mm512_set1_epi8(15), zero = _mm512_setzero_si512();
    float product[4 * LINE];
    __m512 sum[4];
    KERN_UNROLL
    for (size_t r = 0; r < rows; r++) sum[r] = _mm512_setzero_ps();
    for (size_t first = 0; first < groups; first += LINE) {
        const size_t take = groups - first < LINE ? groups - first : LINE;
        const __mmask16 there = (__mmask16)((1u << take) - 1);
        const __m512 step = _mm512_maskz_loadu_ps(there, factor + first);
        const __m512 less = _mm512_maskz_loadu_ps(there, factor + groups + first);
        KERN_UNROLL
        for (size_t r = 0; r < rows; r++) {
            const __m256i bits = _mm256_maskz_loadu_epi16(there, scale + r * groups + first);
            const __m512i wide = _mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16);
            const __m512 f = _mm512_mul_ps(_mm512_castsi512_ps(wide), step);
            sum[r] = _mm512_fnmadd_ps(f, less, sum[r]);
            _mm512_storeu_ps(product + r * LINE, f);
        }
        for (size_t g = first; g < first + take; g++) {
            const size_t left = bytes - g * HALF;
            const __mmask64 mask = left >= HALF ? ~(__mmask64)0 : ((__mmask64)1 << left) - 1;
            const int8_t *at_x = x + 2 * g * GROUP;
            const __m512i even = _mm512_loadu_si512(at_x), odd = _mm512_loadu_si512(at_x + HALF);
            const __m512i even_low = _mm512_loadu_si512(at_x + GROUP);
            const __m512i odd_low = _mm512_loadu_si512(at_x + GROUP + HALF);
            _mm_prefetch(scale + ahead * groups + g * rows, _MM_HINT_T1);
            KERN_UNROLL
            for (size_t r = 0; r < rows; r++) {
                const __m512i h = _mm512_maskz_loadu_epi8(mask, w + r * bytes + g * HALF);
                _mm_prefetch(w + ahead * bytes + (g * rows + r) * HALF, _MM_HINT_T1);
                const __m512i h0 = _mm512_and_si512(h, low), h1 = _mm512_and_si512(_mm512_srli_epi16(h, 4), low);
                const __m512i dot = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(zero, h0, even), h1, odd);
                const __m512i rest = _mm512_dpbusd_epi32(_mm512_slli_epi32(dot, LOW_BITS), h0, even_low);
                const __m512i whole = _mm512_dpbusd_epi32(rest, h1, odd_low);
                sum[r] =
                    _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole), _mm512_set1_ps(product[r * LINE + g - first]), sum[r]);
            }
        }
    }
    KERN_UNROLL
    for (size_t r = 0; r < rows; r++)
        ((uint16_t *)c->buffer[C])[i * n + j + r] = kern_bf16_from(_mm512_reduce_add_ps(sum[r]));
}

KERN_AVX512_VNNI static void run_vnni(const struct kern_call *c)
{
    enum { ROWS = 4, AHEAD_BYTES = 1 << 15 };
    const size_t m = at(c->shape, M), n = at(c->shape, N), k = at(c->shape, K), groups = groups_of(c->shape);
    for (size_t i = 0; i < m; i++)
        quantise((const uint16_t *)c->buffer[A] + i * k, k, groups, (int8_t *)c->buffer[BYTES] + 2 * i * groups * GROUP,
                 (float *)c->buffer[FACTORS] + 2 * i * groups);
    /* short rows are over before what is fetched for the next ones has come, so the distance is one of bytes */
    const size_t block = ROWS * row_bytes(c->shape), ahead = (AHEAD_BYTES + block - 1) / block * ROWS;
    size_t j = 0;
    for (; j + ROWS <= n; j += ROWS)
        for (size_t i = 0; i < m; i++) rows_vnni(c, i, j, ROWS, ahead);
    for (; j < n; j++)
        for (size_t i = 0; i < m; i++) rows_vnni(c, i, j, 1, ahead);
}
#elif KERN_ARM
/* Activations of a row in two bytes each, as above: of each group HALF even ones and HALF odd ones, high, then low. */
static void quantise(const uint16_t *a, size_t k, size_t groups, int8_t *bytes, float *factor)
{
    enum { EIGHTS = GROUP / 8 };
    for (size_t g = 0; g < groups; g++, bytes += 2 * GROUP) {
        float32x4_t even[EIGHTS], odd[EIGHTS], most = vdupq_n_f32(0);
        int32x4_t sum = vdupq_n_s32(0);
        for (size_t s = 0; s < EIGHTS; s++) {
            const size_t from = g * GROUP + s * 8, left = from < k ? k - from : 0;
            uint16_t part[8] = {0};
            if (left < 8) memcpy(part, a + (left ? from : 0), left * sizeof *part);
            const uint32x4_t pairs = vreinterpretq_u32_u16(vld1q_u16(left < 8 ? part : a + from));
            even[s] = vreinterpretq_f32_u32(vshlq_n_u32(pairs, 16));
            odd[s] = vreinterpretq_f32_u32(vandq_u32(pairs, vdupq_n_u32(0xffff0000u)));
            most = vmaxq_f32(most, vmaxq_f32(vabsq_f32(even[s]), vabsq_f32(odd[s])));
        }
        const float largest = vmaxvq_f32(most), inverse = largest > 0 ? 127 / largest : 0;
        for (size_t s = 0; s < 2 * EIGHTS; s += 2) {
            int8_t *out = bytes + s / EIGHTS * HALF + s % EIGHTS * 4;
            const float32x4_t *from = (s < EIGHTS ? even : odd) + s % EIGHTS;
            int32x4_t high[2], low[2];
            KERN_UNROLL
            for (size_t i = 0; i < 2; i++) {
                const float32x4_t v = vmulq_n_f32(from[i], inverse);
                high[i] = vcvtnq_s32_f32(v);
                low[i] = vcvtnq_s32_f32(vmulq_n_f32(vsubq_f32(v, vcvtq_f32_s32(high[i])), LOW));
                sum = vaddq_s32(sum, vaddq_s32(vshlq_n_s32(high[i], LOW_BITS), low[i]));
            }
            vst1_s8(out, vmovn_s16(vmovn_high_s32(vmovn_s32(high[0]), high[1])));
            vst1_s8(out + GROUP, vmovn_s16(vmovn_high_s32(vmovn_s32(low[0]), low[1])));
        }
        factor[g] = largest / 127 / LOW;
        factor[groups + g] = (float)vaddvq_s32(sum) * ZERO;
    }
}

/* kern_bf16_to, without a call */
KERN_INLINE float scale_of(uint16_t bits)
{
    return vgetq_lane_f32(vreinterpretq_f32_u32(vdupq_n_u32((uint32_t)bits << 16)), 0);
}

/* Without dot products: products of sixteen bytes, of two neighbours added up, then of two of those. */
KERN_INLINE int32x4_t dot_neon(int32x4_t sum, int8x16_t x, int8x16_t y)
{
    return vpadalq_s16(vpadalq_s16(sum, vmull_s8(vget_low_s8(x), vget_low_s8(y))), vmull_high_s8(x, y));
}

#define INT4(x) x##_neon
#define INT4_TARGET
#define INT4_DOT dot_neon
#include "kernels/int4_body.h"
#undef INT4
#undef INT4_TARGET
#undef INT4_DOT

#define INT4(x) x##_dot
#define INT4_TARGET KERN_NEON_DOT
#define INT4_DOT kern_neon_bytes
#include "kernels/int4_body.h"
#endif

static const struct kern_variant VARIANTS[] = {
#if KERN_X86
    {.name = "avx512-vnni",
     .unit = KERN_UNIT_INT8_DOT,
     .dtypes = KERN_HAS(KERN_INT4_G128),
     .lacks = kern_lacks_avx512_vnni,
     .run = run_vnni},
#elif KERN_ARM
    {.name = "neon-dot",
     .unit = KERN_UNIT_INT8_DOT,
     .dtypes = KERN_HAS(KERN_INT4_G128),
     .lacks = kern_lacks_neon_dot,
     .run = run_dot},
    {.name = "neon", .unit = KERN_UNIT_FP32, .dtypes = KERN_HAS(KERN_INT4_G128), .run = run_neon},
#endif
    {.name = "portable", .unit = KERN_UNIT_FP32, .dtypes = KERN_HAS(KERN_INT4_G128), .run = run_portable},
};

static const struct kern_point POINTS[] = {
    {{{1, 14336, 4096}, KERN_INT4_G128}, true},
    {{{1, 28672, 4096}, KERN_INT4_G128}, false},
    {{{4, 14336, 4096}, KERN_INT4_G128}, false},
};

const struct kern kern_int4_matvec = {
    .name = "int4-matvec",
    .summary = "c[m,n] = a[m,k] * w[n,k]^T, weights of 4 bits in groups of 128",
    .row_kind = "gemm",
    .args = ARGS,
    .args_n = sizeof ARGS / sizeof ARGS[0],
    .dtypes = KERN_HAS(KERN_INT4_G128),
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
