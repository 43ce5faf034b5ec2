/* fma -- the peak of the arithmetic: multiply-adds whose operands stay in registers, in enough independent chains.
 *
 * fp32: x <- a*x + b, `steps` times in each of `chains` chains; 2 flops a step. |a| < 1, so errors die out.
 * bf16: x <- x + a0*b0 + a1*b1, the dot product of pairs with fp32 sums (AVX512-BF16); 4 flops a step. The inputs are
 * halves and starts whole, so sums are exact. int8: x <- x + a0*b0 + .. + a3*b3, of unsigned and signed bytes with
 * sums of 32 bits (AVX512-VNNI); 8 flops a step. a and b are those of the chain modulo 16, to stay in registers.
 * On aarch64 a multiply-add overwrites what is added, so that a*x + b costs a copy of b besides. Without one is z <- z
 * + (a - 1)*z of z = x - b/(1 - a), the distance from the fixed point, which dies out; both are measured. BFMMLA makes
 * 2 x 2 products of rows and columns of four, sixteen multiply-adds and thus two steps of four chains: each sum of
 * pairs d = a0*b0 + a1*b1, exact in bf16, stands in a row beside that of its neighbour, and columns of ones and zeros
 * take it twice. A product of AMX-BF16 is sixteen steps of 256 chains: columns of such sums, sixteen times each, and
 * rows of ones. Memory: the starts and the ends, and two inputs of 16 lanes: nothing against the steps. */
#include <string.h>

#include "kernels/amx.h"
#include "kernels/table.h"
#include "kernels/vector.h"

enum { GROUP = 192, LANES = 16 }; /* chains in registers at once: 12 of 16 lanes, or two halves of 12 of 8 */
enum { CHAINS, STEPS };
enum { A, B, START, END };

static const struct kern_arg ARGS[] = {
    [CHAINS] = {"chains", GROUP, GROUP << 16, "independent chains, a multiple of 192"},
    [STEPS] = {"steps", 1, 1000000, "multiply-adds in each"},
};

static const char *refuses(const struct kern_shape *s)
{
    return s->v[CHAINS] % GROUP ? "chains is no multiple of 192" : NULL;
}

/* Formats of a, b and x; multiply-adds of a step. */
struct form {
    enum kern_type a, b, x;
    size_t wide;
};

static struct form form_of(const struct kern_shape *s)
{
    if (s->dtype == KERN_BF16) return (struct form){KERN_TYPE_BF16, KERN_TYPE_BF16, KERN_TYPE_F32, 2};
    if (s->dtype == KERN_INT8) return (struct form){KERN_TYPE_U8, KERN_TYPE_I8, KERN_TYPE_I32, 4};
    return (struct form){KERN_TYPE_F32, KERN_TYPE_F32, KERN_TYPE_F32, 1};
}

static size_t buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    const size_t n = (size_t)s->v[CHAINS];
    const struct form f = form_of(s);
    out[A] = (struct kern_buffer){"a", KERN_INPUT, f.a, f.wide * LANES, 0, 0};
    out[B] = (struct kern_buffer){"b", KERN_INPUT, f.b, f.wide * LANES, 0, 0};
    out[START] = (struct kern_buffer){"start", KERN_INPUT, f.x, n, 0, 0};
    out[END] = (struct kern_buffer){"end", KERN_OUTPUT, f.x, n, 0, 1};
    return 4;
}

static void fill(const struct kern_call *c, size_t b, uint64_t seed, void *data)
{
    const bool bf16 = c->shape->dtype == KERN_BF16, bytes = c->shape->dtype == KERN_INT8;
    const size_t n = b == START ? (size_t)c->shape->v[CHAINS] : form_of(c->shape).wide * LANES;
    for (size_t i = 0; i < n; i++) {
        const uint64_t bits = kern_hash(seed, i);
        const float u = (float)(bits >> 40) * 0x1p-24f;
        if (bytes && b == START)
            ((int32_t *)data)[i] = (int32_t)(bits % 17);
        else if (bytes) /* up to 3 times 2, four of them, a million steps: 31 bits hold that */
            ((uint8_t *)data)[i] = (uint8_t)(b == A ? bits % 4 : bits % 5 - 2);
        else if (bf16 && b != START)
            ((uint16_t *)data)[i] = kern_bf16_from((float)(1 + bits % 3) / 2);
        else
            ((float *)data)[i] = bf16 ? (float)(bits % 17) : b == A ? 0.25f + u / 2 : 0.5f + u;
    }
}

static void reference(const struct kern_call *c, size_t b, size_t i, double *out)
{
    (void)b;
    const int64_t steps = c->shape->v[STEPS];
    const struct form f = form_of(c->shape);
    const size_t lane = i % LANES;
    double x = kern_read(c->buffer[START], f.x, i);
    for (int64_t t = 0; t < steps && f.wide == 1; t++)
        x = kern_read(c->buffer[A], f.a, lane) * x + kern_read(c->buffer[B], f.b, lane);
    for (size_t j = f.wide * lane; j < f.wide * (lane + 1) && f.wide > 1; j++)
        x += (double)steps * kern_read(c->buffer[A], f.a, j) * kern_read(c->buffer[B], f.b, j);
    *out = x;
}

static double reference_cost(const struct kern_shape *s, size_t b)
{
    (void)b;
    return s->dtype == KERN_FP32 ? (double)s->v[STEPS] : (double)form_of(s).wide;
}

static void counts(const struct kern_shape *s, struct kern_counts *out)
{
    const double n = (double)s->v[CHAINS], step_flops = 2 * (double)form_of(s).wide;
    *out = (struct kern_counts){
        .flops = n * (double)s->v[STEPS] * step_flops, .read_bytes = n * 4 + 2.0 * LANES * 4, .written_bytes = n * 4};
}

static double tolerance(const struct kern_shape *s)
{
    (void)s;
    return 1e-5;
}

static void run_portable(const struct kern_call *c)
{
    const size_t n = (size_t)c->shape->v[CHAINS];
    const float *start = c->buffer[START];
    float *end = c->buffer[END], a[LANES], b[LANES];
    memcpy(a, c->buffer[A], sizeof a);
    memcpy(b, c->buffer[B], sizeof b);
    for (size_t i = 0; i < n; i += 4 * (size_t)LANES) {
        float x[4 * LANES];
        memcpy(x, start + i, sizeof x);
        for (int64_t t = 0; t < c->shape->v[STEPS]; t++)
            for (size_t j = 0; j < 4 * (size_t)LANES; j++) x[j] = a[j % LANES] * x[j] + b[j % LANES];
        memcpy(end + i, x, sizeof x);
    }
}

#if KERN_X86
KERN_AVX2 static void run_avx2(const struct kern_call *c)
{
    enum { R = 12, WIDE = 8 };
    const size_t n = (size_t)c->shape->v[CHAINS];
    const float *start = c->buffer[START], *a = c->buffer[A], *b = c->buffer[B];
    float *end = c->buffer[END];
    const __m256 a0 = _mm256_loadu_ps(a), a1 = _mm256_loadu_ps(a + WIDE);
    const __m256 b0 = _mm256_loadu_ps(b), b1 = _mm256_loadu_ps(b + WIDE);
    for (size_t i = 0; i < n; i += (size_t)R * WIDE) {
        __m256 x[R];
        KERN_UNROLL
        for (size_t r = 0; r < R; r++) x[r] = _mm256_loadu_ps(start + i + r * WIDE);
        for (int64_t t = 0; t < c->shape->v[STEPS]; t++) {
            KERN_UNROLL
            for (size_t r = 0; r < R; r++) x[r] = _mm256_fmadd_ps(r % 2 ? a1 : a0, x[r], r % 2 ? b1 : b0);
        }
        KERN_UNROLL
        for (size_t r = 0; r < R; r++) _mm256_storeu_ps(end + i + r * WIDE, x[r]);
    }
}

KERN_AVX512 static void run_avx512(const struct kern_call *c)
{
    enum { R = 12 };
    const size_t n = (size_t)c->shape->v[CHAINS];
    const float *start = c->buffer[START];
    float *end = c->buffer[END];
    const __m512 a = _mm512_loadu_ps(c->buffer[A]), b = _mm512_loadu_ps(c->buffer[B]);
    for (size_t i = 0; i < n; i += (size_t)R * LANES) {
        __m512 x[R];
        KERN_UNROLL
        for (size_t r = 0; r < R; r++) x[r] = _mm512_loadu_ps(start + i + r * LANES);
        for (int64_t t = 0; t < c->shape->v[STEPS]; t++) {
            KERN_UNROLL
            for (size_t r = 0; r < R; r++) x[r] = _mm512_fmadd_ps(a, x[r], b);
        }
        KERN_UNROLL
        for (size_t r = 0; r < R; r++) _mm512_storeu_ps(end + i + r * LANES, x[r]);
    }
}

KERN_AVX512_BF16 static void run_bf16(const struct kern_call *c)
{
    enum { R = 12 };
    const size_t n = (size_t)c->shape->v[CHAINS];
    const float *start = c->buffer[START];
    float *end = c->buffer[END];
    __m512bh a, b;
    memcpy(&a, c->buffer[A], sizeof a);
    memcpy(&b, c->buffer[B], sizeof b);
    for (size_t i = 0; i < n; i += (size_t)R * LANES) {
        __m512 x[R];
        KERN_UNROLL
        for (size_t r = 0; r < R; r++) x[r] = _mm512_loadu_ps(start + i + r * LANES);
        for (int64_t t = 0; t < c->shape->v[STEPS]; t++) {
            KERN_UNROLL
            for (size_t r = 0; r < R; r++) x[r] = _mm512_dpbf16_ps(x[r], a, b);
        }
        KERN_UNROLL
        for (size_t r = 0; r < R; r++) _mm512_storeu_ps(end + i + r * LANES, x[r]);
    }
}

KERN_AVX512_VNNI static void run_int8(const struct kern_call *c)
{
    enum { R = 12 };
    const size_t n = (size_t)c->shape->v[CHAINS];
    const int32_t *start = c->buffer[START];
    int32_t *end = c->buffer[END];
    const __m512i a = _mm512_loadu_si512(c->buffer[A]), b = _mm512_loadu_si512(c->buffer[B]);
    for (size_t i = 0; i < n; i += (size_t)R * LANES) {
        __m512i x[R];
        KERN_UNROLL
        for (size_t r = 0; r < R; r++) x[r] = _mm512_loadu_si512(start + i + r * LANES);
        for (int64_t t = 0; t < c->shape->v[STEPS]; t++) {
            KERN_UNROLL
            for (size_t r = 0; r < R; r++) x[r] = _mm512_dpbusd_epi32(x[r], a, b);
        }
        KERN_UNROLL
        for (size_t r = 0; r < R; r++) _mm512_storeu_si512(end + i + r * LANES, x[r]);
    }
}
/* Products of tiles: six of sixteen rows of chains at once, then one of twelve. Of the steps of a product that are too
 * many the ones are zeros. */
struct tiles {
    uint16_t ones[2][LANES][2 * LANES], sums[LANES][2 * LANES]; /* of a whole product, of the last one; a*b */
};

/* Rows of the registers but the last, which has all. */
KERN_AMX_BF16 static void set_rows(uint8_t rows)
{
    struct amx_form form = {.palette = 1};
    for (size_t t = 0; t < AMX_TILES; t++) {
        form.rows[t] = t + 1 < AMX_TILES ? rows : AMX_ROWS;
        form.row_bytes[t] = AMX_LINE;
    }
    AMX_SET_FORM(form);
}

KERN_AMX_BF16 KERN_INLINE void step_tiles(const struct tiles *t, int64_t steps, bool six)
{
    TILE_LOAD(6, t->ones[0], AMX_LINE);
    TILE_LOAD(7, t->sums, AMX_LINE);
    for (int64_t i = 0; i <= steps / LANES; i++) {
        if (i == steps / LANES) TILE_LOAD(6, t->ones[1], AMX_LINE);
        TILE_PRODUCT(0, 6, 7);
        if (!six) continue;
        TILE_PRODUCT(1, 6, 7);
        TILE_PRODUCT(2, 6, 7);
        TILE_PRODUCT(3, 6, 7);
        TILE_PRODUCT(4, 6, 7);
        TILE_PRODUCT(5, 6, 7);
    }
}

KERN_AMX_BF16 static void run_tiles(const struct kern_call *c)
{
    enum { TILE = AMX_TILE, SIX = 6 * LANES, LEFT = GROUP / LANES, ONE_BF16 = 0x3f80 };
    const int64_t steps = c->shape->v[STEPS];
    const size_t rows = (size_t)c->shape->v[CHAINS] / LANES;
    const char *start = c->buffer[START];
    char *end = c->buffer[END];
    struct tiles t;
    size_t r = 0;
    for (size_t i = 0; i < LANES; i++)
        for (size_t j = 0; j < 2 * (size_t)LANES; j++) {
            t.sums[i][j] = kern_bf16_from(kern_float(c->buffer[A], true, j) * kern_float(c->buffer[B], true, j));
            t.ones[0][i][j] = ONE_BF16;
            t.ones[1][i][j] = (int64_t)j / 2 < steps % LANES ? ONE_BF16 : 0;
        }
    set_rows(LANES);
    for (; r + SIX <= rows; r += SIX, start += 6 * TILE, end += 6 * TILE) {
        TILE_LOAD(0, start, AMX_LINE);
        TILE_LOAD(1, start + TILE, AMX_LINE);
        TILE_LOAD(2, start + 2 * TILE, AMX_LINE);
        TILE_LOAD(3, start + 3 * TILE, AMX_LINE);
        TILE_LOAD(4, start + 4 * TILE, AMX_LINE);
        TILE_LOAD(5, start + 5 * TILE, AMX_LINE);
        step_tiles(&t, steps, true);
        TILE_STORE(0, end, AMX_LINE);
        TILE_STORE(1, end + TILE, AMX_LINE);
        TILE_STORE(2, end + 2 * TILE, AMX_LINE);
        TILE_STORE(3, end + 3 * TILE, AMX_LINE);
        TILE_STORE(4, end + 4 * TILE, AMX_LINE);
        TILE_STORE(5, end + 5 * TILE, AMX_LINE);
    }
    set_rows(LEFT);
    for (; r < rows; r += LEFT, start += (size_t)LEFT * AMX_LINE, end += (size_t)LEFT * AMX_LINE) {
        TILE_LOAD(0, start, AMX_LINE);
        step_tiles(&t, steps, false);
        TILE_STORE(0, end, AMX_LINE);
    }
    AMX_RELEASE();
}
#elif KERN_ARM
/* Half of a group and two inputs are 32 registers; a third of one where sums are copied. */
enum { HELD = 24, COPIED = 16, WIDE = 4 };

/* a * x + b with one copy, where a compiler takes two */
KERN_INLINE float32x4_t step_neon(float32x4_t a, float32x4_t x, float32x4_t b)
{
    float32x4_t r;
    __asm__("mov %0.16b, %1.16b\n\tfmla %0.4s, %2.4s, %3.4s" : "=&w"(r) : "w"(b), "w"(a), "w"(x));
    return r;
}

static void run_neon(const struct kern_call *c)
{
    const int64_t steps = c->shape->v[STEPS];
    float32x4_t a[4], b[4];
    for (size_t i = 0; i < 4; i++) a[i] = vld1q_f32((const float *)c->buffer[A] + WIDE * i);
    for (size_t i = 0; i < 4; i++) b[i] = vld1q_f32((const float *)c->buffer[B] + WIDE * i);
    for (size_t i = 0; i < (size_t)c->shape->v[CHAINS]; i += (size_t)COPIED * WIDE) {
        const float *start = (const float *)c->buffer[START] + i;
        float *end = (float *)c->buffer[END] + i;
        float32x4_t x[COPIED];
        KERN_UNROLL
        for (size_t r = 0; r < COPIED; r++) x[r] = vld1q_f32(start + r * WIDE);
        for (int64_t t = 0; t < steps / 2; t++) { /* there and back, so that registers need not change */
            KERN_UNROLL
            for (size_t r = 0; r < COPIED; r++)
                x[r] = step_neon(a[r % 4], step_neon(a[r % 4], x[r], b[r % 4]), b[r % 4]);
        }
        KERN_UNROLL
        for (size_t r = 0; r < COPIED; r++)
            vst1q_f32(end + r * WIDE, steps % 2 ? step_neon(a[r % 4], x[r], b[r % 4]) : x[r]);
    }
}

/* x += a * x */
KERN_INLINE void run_chains(const struct kern_call *c, const float32x4_t *a, float *chains)
{
    float32x4_t x[HELD];
    KERN_UNROLL
    for (size_t r = 0; r < HELD; r++) x[r] = vld1q_f32(chains + r * WIDE);
    for (int64_t t = 0; t < c->shape->v[STEPS]; t++) {
        KERN_UNROLL
        for (size_t r = 0; r < HELD; r++) x[r] = vfmaq_f32(x[r], a[r % 4], x[r]);
    }
    KERN_UNROLL
    for (size_t r = 0; r < HELD; r++) vst1q_f32(chains + r * WIDE, x[r]);
}

static void run_apart(const struct kern_call *c)
{
    enum { N = HELD * WIDE };
    const float *start = c->buffer[START];
    float *end = c->buffer[END], fixed[LANES], z[N];
    float32x4_t a[4];
    for (size_t i = 0; i < LANES; i++)
        fixed[i] = ((const float *)c->buffer[B])[i] / (1 - ((const float *)c->buffer[A])[i]);
    for (size_t i = 0; i < 4; i++) a[i] = vsubq_f32(vld1q_f32((const float *)c->buffer[A] + WIDE * i), vdupq_n_f32(1));
    for (size_t i = 0; i < (size_t)c->shape->v[CHAINS]; i += N) {
        for (size_t j = 0; j < N; j++) z[j] = start[i + j] - fixed[j % LANES];
        run_chains(c, a, z);
        for (size_t j = 0; j < N; j++) end[i + j] = z[j] + fixed[j % LANES];
    }
}

KERN_NEON_BF16 static void run_bf16(const struct kern_call *c)
{
    const size_t n = (size_t)c->shape->v[CHAINS];
    const float *start = c->buffer[START];
    float *end = c->buffer[END];
    uint16x8_t a[4], b[4];
    for (size_t i = 0; i < 4; i++) a[i] = vld1q_u16((const uint16_t *)c->buffer[A] + 2 * WIDE * i);
    for (size_t i = 0; i < 4; i++) b[i] = vld1q_u16((const uint16_t *)c->buffer[B] + 2 * WIDE * i);
    for (size_t i = 0; i < n; i += (size_t)HELD * WIDE) {
        float32x4_t x[HELD];
        KERN_UNROLL
        for (size_t r = 0; r < HELD; r++) x[r] = vld1q_f32(start + i + r * WIDE);
        for (int64_t t = 0; t < c->shape->v[STEPS]; t++) {
            KERN_UNROLL
            for (size_t r = 0; r < HELD; r++) x[r] = kern_neon_dot(x[r], a[r % 4], b[r % 4]);
        }
        KERN_UNROLL
        for (size_t r = 0; r < HELD; r++) vst1q_f32(end + i + r * WIDE, x[r]);
    }
}

KERN_NEON_BF16 static void run_squares(const struct kern_call *c)
{
    enum { ONE_BF16 = 0x3f80 };
    static const uint16_t COLUMNS[2][8] = {{ONE_BF16, 0, ONE_BF16, 0, 0, ONE_BF16, 0, ONE_BF16},
                                           {ONE_BF16, 0, 0, 0, 0, ONE_BF16, 0, 0}};
    const size_t n = (size_t)c->shape->v[CHAINS];
    const int64_t steps = c->shape->v[STEPS];
    const uint16x8_t twice = vld1q_u16(COLUMNS[0]), once = vld1q_u16(COLUMNS[1]);
    const float *start = c->buffer[START];
    float *end = c->buffer[END];
    uint16x8_t d[4];
    for (size_t i = 0; i < 4; i++) {
        const float32x4_t sum = kern_neon_dot(vdupq_n_f32(0), vld1q_u16((const uint16_t *)c->buffer[A] + 2 * WIDE * i),
                                              vld1q_u16((const uint16_t *)c->buffer[B] + 2 * WIDE * i));
        const uint32x2_t rows = vreinterpret_u32_u16(kern_neon_narrow(sum));
        d[i] = vreinterpretq_u16_u32(vcombine_u32(vdup_lane_u32(rows, 0), vdup_lane_u32(rows, 1)));
    }
    for (size_t i = 0; i < n; i += (size_t)HELD * WIDE) {
        float32x4_t x[HELD];
        KERN_UNROLL
        for (size_t r = 0; r < HELD; r++) x[r] = vld1q_f32(start + i + r * WIDE);
        for (int64_t t = 0; t < steps / 2; t++) {
            KERN_UNROLL
            for (size_t r = 0; r < HELD; r++) x[r] = kern_neon_square(x[r], d[r % 4], twice);
        }
        KERN_UNROLL
        for (size_t r = 0; r < HELD; r++)
            vst1q_f32(end + i + r * WIDE, steps % 2 ? kern_neon_square(x[r], d[r % 4], once) : x[r]);
    }
}

KERN_NEON_DOT static void run_int8(const struct kern_call *c)
{
    const size_t n = (size_t)c->shape->v[CHAINS];
    const int32_t *start = c->buffer[START];
    int32_t *end = c->buffer[END];
    int8x16_t a[4], b[4];
    for (size_t i = 0; i < 4; i++) a[i] = vld1q_s8((const int8_t *)c->buffer[A] + 4 * WIDE * i);
    for (size_t i = 0; i < 4; i++) b[i] = vld1q_s8((const int8_t *)c->buffer[B] + 4 * WIDE * i);
    for (size_t i = 0; i < n; i += (size_t)HELD * WIDE) {
        int32x4_t x[HELD];
        KERN_UNROLL
        for (size_t r = 0; r < HELD; r++) x[r] = vld1q_s32(start + i + r * WIDE);
        for (int64_t t = 0; t < c->shape->v[STEPS]; t++) {
            KERN_UNROLL
            for (size_t r = 0; r < HELD; r++) x[r] = kern_neon_bytes(x[r], a[r % 4], b[r % 4]);
        }
        KERN_UNROLL
        for (size_t r = 0; r < HELD; r++) vst1q_s32(end + i + r * WIDE, x[r]);
    }
}
#endif

static const struct kern_variant VARIANTS[] = {
#if KERN_X86
    {.name = "avx512",
     .unit = KERN_UNIT_FP32,
     .dtypes = KERN_HAS(KERN_FP32),
     .lacks = kern_lacks_avx512,
     .run = run_avx512},
    {.name = "avx2", .unit = KERN_UNIT_FP32, .dtypes = KERN_HAS(KERN_FP32), .lacks = kern_lacks_avx2, .run = run_avx2},
    {.name = "avx512-bf16",
     .unit = KERN_UNIT_BF16_DOT,
     .dtypes = KERN_HAS(KERN_BF16),
     .lacks = kern_lacks_avx512_bf16,
     .run = run_bf16},
    {.name = "amx-bf16",
     .unit = KERN_UNIT_BF16_TILE,
     .dtypes = KERN_HAS(KERN_BF16),
     .lacks = kern_lacks_amx_bf16,
     .run = run_tiles},
    {.name = "avx512-vnni",
     .unit = KERN_UNIT_INT8_DOT,
     .dtypes = KERN_HAS(KERN_INT8),
     .lacks = kern_lacks_avx512_vnni,
     .run = run_int8},
#elif KERN_ARM
    {.name = "neon", .unit = KERN_UNIT_FP32, .dtypes = KERN_HAS(KERN_FP32), .run = run_neon},
    {.name = "neon-apart", .unit = KERN_UNIT_FP32, .dtypes = KERN_HAS(KERN_FP32), .run = run_apart},
    {.name = "neon-bf16",
     .unit = KERN_UNIT_BF16_DOT,
     .dtypes = KERN_HAS(KERN_BF16),
     .lacks = kern_lacks_neon_bf16,
     .run = run_squares},
    {.name = "neon-bf16-dot",
     .unit = KERN_UNIT_BF16_DOT,
     .dtypes = KERN_HAS(KERN_BF16),
     .lacks = kern_lacks_neon_bf16,
     .run = run_bf16},
    {.name = "neon-dot",
     .unit = KERN_UNIT_INT8_DOT,
     .dtypes = KERN_HAS(KERN_INT8),
     .lacks = kern_lacks_neon_dot,
     .run = run_int8},
#endif
    {.name = "portable", .unit = KERN_UNIT_FP32, .dtypes = KERN_HAS(KERN_FP32), .run = run_portable},
};

static const struct kern_point POINTS[] = {
    {{{960, 20000}, KERN_FP32}, true},
    {{{1536, 20000}, KERN_BF16}, true}, /* six tiles of 256 */
    {{{960, 20000}, KERN_INT8}, true},
};

const struct kern kern_fma = {
    .name = "fma",
    .summary = "multiply-adds in registers: the peak of the arithmetic",
    .row_kind = "",
    .ceiling = KERN_CEILING_COMPUTE,
    .args = ARGS,
    .args_n = sizeof ARGS / sizeof ARGS[0],
    .dtypes = KERN_HAS(KERN_FP32) | KERN_HAS(KERN_BF16) | KERN_HAS(KERN_INT8),
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
