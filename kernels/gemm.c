/* gemm -- c[m,n] = a[m,k] * w[n,k]^T: the products of a model, weights stored as checkpoints have them (out x in).
 *
 * Counted: 2*m*n*k flops; every element of a, w and c moved once. fp32 all through, or bf16 storage of all three with
 * sums in fp32. Libraries lay the weights out anew in every call, which below some sixty rows costs more than the
 * product; the own code does it once, ahead of the timing, as a server does when it loads a model.
 * kernels/gemm_loops.h has the loops and the layout. */
#include "kernels/gemm_amx.h"
#include "kernels/gemm_loops.h"
#include "kernels/table.h"

enum { M, N, K };
enum { A, W, C, STRIPS, SUMS };
enum { SLACK = 64 };

static const struct kern_arg ARGS[] = {
    [M] = {"m", 1, 1 << 20, "rows of a: tokens of the pass"},
    [N] = {"n", 1, 1 << 20, "columns of c: outputs of the layer"},
    [K] = {"k", 1, 1 << 20, "inner size: inputs of the layer"},
};

static size_t round_up(size_t v, size_t to) { return (v + to - 1) / to * to; }
static bool in_bf16(const struct kern_shape *s) { return s->dtype == KERN_BF16; }

/* Of a and w, and of c. */
static enum kern_type type_in(const struct kern_shape *s)
{
    static const enum kern_type TYPES[KERN_DTYPES_N] = {[KERN_FP32] = KERN_TYPE_F32,
                                                        [KERN_BF16] = KERN_TYPE_BF16,
                                                        [KERN_FP16] = KERN_TYPE_FP16,
                                                        [KERN_FP8] = KERN_TYPE_F8,
                                                        [KERN_INT8] = KERN_TYPE_I8};
    return TYPES[s->dtype];
}

static enum kern_type type_out(const struct kern_shape *s)
{
    return s->dtype == KERN_FP8 ? KERN_TYPE_BF16 : s->dtype == KERN_INT8 ? KERN_TYPE_I32 : type_in(s);
}

static const char *refuses(const struct kern_shape *s)
{
    const double cells = (double)s->v[M] * (double)s->v[N] + (double)s->v[K] * (double)(s->v[M] + s->v[N]);
    return cells > 0x1p36 ? "m, n and k together are beyond memory" : NULL;
}

static size_t buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    const size_t m = (size_t)s->v[M], n = (size_t)s->v[N], k = (size_t)s->v[K];
    const bool whole = s->dtype == KERN_INT8; /* a third of the range is a standard deviation */
    out[A] = (struct kern_buffer){"a", KERN_INPUT, type_in(s), m * k, whole ? 40 : 1, 0};
    out[W] = (struct kern_buffer){"w", KERN_INPUT, type_in(s), n * k, whole ? 40 : 0.05, 0};
    out[C] = (struct kern_buffer){"c", KERN_OUTPUT, type_out(s), m * n, 0, 1};
    /* a in strips of rows, and sums in fp32 where c holds less */
    size_t strips = round_up(m, GEMM_ROWS_MAX) * (k + 1) + SLACK, sums = in_bf16(s) ? m * n : 1;
#if KERN_X86
    if (in_bf16(s)) {
        const size_t tiles = gemm_amx_strip_bytes(m, k) / 4, of_tiles = gemm_amx_sum_bytes(m, n) / 4;
        strips = strips > tiles ? strips : tiles;
        sums = sums > of_tiles ? sums : of_tiles;
    }
#endif
    out[STRIPS] = (struct kern_buffer){"strips", KERN_SCRATCH, KERN_TYPE_F32, strips, 0, 0};
    out[SUMS] = (struct kern_buffer){"sums", KERN_SCRATCH, KERN_TYPE_F32, sums, 0, 0};
    return 5;
}

static void reference(const struct kern_call *c, size_t b, size_t block, double *out)
{
    const size_t n = (size_t)c->shape->v[N], k = (size_t)c->shape->v[K], i = block / n, j = block % n;
    const enum kern_type type = type_in(c->shape);
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
    const double m = (double)s->v[M], n = (double)s->v[N], k = (double)s->v[K];
    const double in_bytes = (double)kern_type_bytes(type_in(s)), out_bytes = (double)kern_type_bytes(type_out(s));
    *out = (struct kern_counts){
        .flops = 2 * m * n * k, .read_bytes = in_bytes * (m * k + n * k), .written_bytes = out_bytes * m * n};
}

/* bf16: each result is rounded to 8 bits, 2^-9 at most, and tensor cores add up eight-bit products to 14 bits; fp32:
 * the error of a sum of k products in any order; whole numbers have none. */
static double tolerance(const struct kern_shape *s)
{
    return s->dtype == KERN_FP32 ? 1e-5 : s->dtype == KERN_INT8 ? 1e-12 : 1e-2;
}

/* -- the own code -- */

static struct gemm_loops loops_of(const struct kern_call *c)
{
    return (struct gemm_loops){.m = (size_t)c->shape->v[M],
                               .n = (size_t)c->shape->v[N],
                               .k = (size_t)c->shape->v[K],
                               .a = c->buffer[A],
                               .w = c->buffer[W],
                               .c = c->buffer[C],
                               .packed = c->packed,
                               .strips = c->buffer[STRIPS],
                               .sums = c->buffer[SUMS]};
}

static enum gemm_form plain_form(const struct kern_shape *s) { return in_bf16(s) ? GEMM_BF16 : GEMM_FP32; }

static size_t pack_bytes_plain(const struct kern_shape *s)
{
    return gemm_pack_bytes((size_t)s->v[N], (size_t)s->v[K], plain_form(s));
}

static void pack_side(const struct kern_call *c, enum gemm_form form, size_t side)
{
    const struct gemm_loops g = loops_of(c);
    gemm_pack(&g, form, side);
}

static void pack_plain(const struct kern_call *c) { pack_side(c, plain_form(c->shape), 1); }

static void multiply(const struct kern_call *c, const struct gemm_tiles *tiles, enum gemm_form form)
{
    const struct gemm_loops g = loops_of(c);
    gemm_multiply(&g, tiles, form, c);
}

/* Of a format by the tiles for it. */
static void multiply_plain(const struct kern_call *c, const struct gemm_tiles *bf16, const struct gemm_tiles *fp32)
{
    multiply(c, in_bf16(c->shape) ? bf16 : fp32, plain_form(c->shape));
}

static void run_portable(const struct kern_call *c) { multiply_plain(c, &gemm_portable_bf16, &gemm_portable_fp32); }

#if KERN_X86
static size_t pack_bytes_pairs(const struct kern_shape *s)
{
    return gemm_pack_bytes((size_t)s->v[N], (size_t)s->v[K], GEMM_PAIRS);
}

static void pack_pairs(const struct kern_call *c) { pack_side(c, GEMM_PAIRS, 2); }
static void pack_two(const struct kern_call *c) { pack_side(c, plain_form(c->shape), 2); }
static void run_avx512(const struct kern_call *c) { multiply_plain(c, &gemm_avx512_bf16, &gemm_avx512_fp32); }
static void run_avx2(const struct kern_call *c) { multiply_plain(c, &gemm_avx2_bf16, &gemm_avx2_fp32); }
static void run_pairs(const struct kern_call *c) { multiply(c, &gemm_avx512_pairs, GEMM_PAIRS); }

static size_t pack_bytes_tiles(const struct kern_shape *s)
{
    return gemm_amx_pack_bytes((size_t)s->v[N], (size_t)s->v[K]);
}

static struct gemm_amx tiles_of(const struct kern_call *c)
{
    return (struct gemm_amx){.m = (size_t)c->shape->v[M],
                             .n = (size_t)c->shape->v[N],
                             .k = (size_t)c->shape->v[K],
                             .a = c->buffer[A],
                             .w = c->buffer[W],
                             .c = c->buffer[C],
                             .packed = c->packed,
                             .strips = c->buffer[STRIPS],
                             .sums = c->buffer[SUMS]};
}

static void pack_tiles(const struct kern_call *c)
{
    const struct gemm_amx g = tiles_of(c);
    gemm_amx_pack(&g);
}

static void run_tiles(const struct kern_call *c)
{
    const struct gemm_amx g = tiles_of(c);
    gemm_amx_run(&g, c);
}
#elif KERN_ARM
static size_t pack_bytes_squares(const struct kern_shape *s)
{
    return gemm_pack_bytes((size_t)s->v[N], (size_t)s->v[K], GEMM_SQUARES);
}

static void pack_squares(const struct kern_call *c) { pack_side(c, GEMM_SQUARES, 1); }
static void run_neon(const struct kern_call *c) { multiply_plain(c, &gemm_neon_bf16, &gemm_neon_fp32); }
static void run_squares(const struct kern_call *c) { multiply(c, &gemm_neon_squares, GEMM_SQUARES); }
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
    {.name = "amx-bf16",
     .unit = KERN_UNIT_BF16_TILE,
     .dtypes = KERN_HAS(KERN_BF16),
     .lacks = kern_lacks_amx_bf16,
     .pack_bytes = pack_bytes_tiles,
     .pack = pack_tiles,
     .run = run_tiles,
     .packed_inputs = 1u << W},
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
     .pack = pack_two,
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
#elif KERN_ARM
    {.name = "neon-bf16",
     .unit = KERN_UNIT_BF16_DOT,
     .dtypes = KERN_HAS(KERN_BF16),
     .lacks = kern_lacks_neon_bf16,
     .pack_bytes = pack_bytes_squares,
     .pack = pack_squares,
     .run = run_squares,
     .packed_inputs = 1u << W},
    {.name = "neon",
     .unit = KERN_UNIT_FP32,
     .dtypes = BOTH,
     .pack_bytes = pack_bytes_plain,
     .pack = pack_plain,
     .run = run_neon,
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
    .dtypes = BOTH | KERN_HAS(KERN_FP16) | KERN_HAS(KERN_FP8) | KERN_HAS(KERN_INT8),
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
