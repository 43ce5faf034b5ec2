/* gemm -- c[m,n] = a[m,k] * w[n,k]^T: the products of a model, weights stored as checkpoints have them (out x in).
 *
 * Counted: 2*m*n*k flops; every element of a, w and c moved once. fp32 all through, or bf16 storage of all three with
 * sums in fp32. Libraries lay the weights out anew in every call, which below some sixty rows costs more than the
 * product; the own code does it once, ahead of the timing, as a server does when it loads a model.
 *
 * Layout of the packed weights: panels of 16 columns of c, each panel `depth` steps of k deep; an element of a step is
 * one weight (fp32, bf16) or a pair of neighbours in k (bf16 for the dot unit). Columns and steps beyond n and k are
 * zeros. For AVX-512, whose tiles take two panels, these lie side by side, a step of each in turn, so that
 * all weights are one walk through memory however short k is; a last one without another lies alone.
 * Order of the loops: blocks of k (KC steps) so that a strip of a stays in the first cache, blocks of rows (MC) in the
 * second, then panels, then strips (the order of Goto and van de Geijn, ACM TOMS 34(3), 2008, turned: here w is the
 * side that vectors run along, because it is the large one). With few rows there is one strip and k is not cut: the
 * weights go by once. */
#include <string.h>

#include "kernels/gemm_amx.h"
#include "kernels/gemm_tiles.h"
#include "kernels/split.h"
#include "kernels/table.h"

enum { M, N, K };
enum { A, W, C, STRIPS, SUMS };
enum { KC = 384, MC = 144, SLACK = 64 };

/* Rows from which arithmetic takes about as long as the weights take to come, so that the processor, which fetches what
 * a loop reads next, does not look far enough ahead; and how far that is. */
enum { FAR_ROWS = 6, FAR_BYTES = 32 << 10 };

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

/* -- packing -- */

static size_t panels_of(const struct kern_shape *s) { return ((size_t)s->v[N] + GEMM_PANEL - 1) / GEMM_PANEL; }

/* Elements from the first one to those of step l of a panel, `side` panels side by side. */
static size_t packed_at(const struct kern_shape *s, size_t side, size_t steps, size_t panel, size_t l)
{
    const size_t first = panel / side * side, beside = first + side <= panels_of(s) ? side : 1;
    return (first * steps + l * beside + panel % side) * GEMM_PANEL;
}

static size_t pack_bytes_fp32(const struct kern_shape *s) { return panels_of(s) * GEMM_PANEL * (size_t)s->v[K] * 4; }

static void pack_fp32(const struct kern_call *c, size_t side)
{
    const size_t n = (size_t)c->shape->v[N], k = (size_t)c->shape->v[K];
    const float *w = c->buffer[W];
    float *out = c->packed;
    for (size_t p = 0; p < panels_of(c->shape); p++)
        for (size_t j = 0; j < GEMM_PANEL; j++)
            for (size_t l = 0; l < k; l++) {
                const size_t column = p * GEMM_PANEL + j;
                out[packed_at(c->shape, side, k, p, l) + j] = column < n ? w[column * k + l] : 0;
            }
}

static size_t pack_bytes_bf16(const struct kern_shape *s) { return panels_of(s) * GEMM_PANEL * (size_t)s->v[K] * 2; }

static void pack_bf16(const struct kern_call *c, size_t side)
{
    const size_t n = (size_t)c->shape->v[N], k = (size_t)c->shape->v[K];
    const uint16_t *w = c->buffer[W];
    uint16_t *out = c->packed;
    for (size_t p = 0; p < panels_of(c->shape); p++)
        for (size_t j = 0; j < GEMM_PANEL; j++)
            for (size_t l = 0; l < k; l++) {
                const size_t column = p * GEMM_PANEL + j;
                out[packed_at(c->shape, side, k, p, l) + j] = column < n ? w[column * k + l] : 0;
            }
}

#if KERN_X86
static size_t pack_bytes_pairs(const struct kern_shape *s)
{
    return panels_of(s) * GEMM_PANEL * round_up((size_t)s->v[K], 2) * 2;
}

static void pack_pairs(const struct kern_call *c)
{
    const size_t n = (size_t)c->shape->v[N], k = (size_t)c->shape->v[K], steps = (k + 1) / 2;
    const uint16_t *w = c->buffer[W];
    uint16_t *out = c->packed;
    for (size_t p = 0; p < panels_of(c->shape); p++)
        for (size_t j = 0; j < GEMM_PANEL; j++)
            for (size_t l = 0; l < 2 * steps; l++) {
                const size_t column = p * GEMM_PANEL + j;
                out[(packed_at(c->shape, 2, steps, p, l / 2) + j) * 2 + l % 2] =
                    column < n && l < k ? w[column * k + l] : 0;
            }
}
#elif KERN_ARM
static size_t pack_bytes_squares(const struct kern_shape *s)
{
    return panels_of(s) * GEMM_PANEL * round_up((size_t)s->v[K], 4) * 2;
}

static void pack_squares(const struct kern_call *c)
{
    const size_t n = (size_t)c->shape->v[N], k = (size_t)c->shape->v[K], steps = (k + 3) / 4;
    const uint16_t *w = c->buffer[W];
    uint16_t *out = c->packed;
    for (size_t p = 0; p < panels_of(c->shape); p++)
        for (size_t j = 0; j < GEMM_PANEL; j++)
            for (size_t l = 0; l < 4 * steps; l++) {
                const size_t column = p * GEMM_PANEL + j;
                out[((p * steps + l / 4) * GEMM_PANEL + j) * 4 + l % 4] = column < n && l < k ? w[column * k + l] : 0;
            }
}
#endif

/* -- the product -- */

/* Rows [row, row + rows) of a as a strip of squares: [step][pairs of rows][2][4], zeros behind k and, of an odd number,
 * a last row of them. */
static void make_squares(const struct kern_call *c, size_t row, size_t rows, float *out)
{
    const size_t k = (size_t)c->shape->v[K], steps = (k + 3) / 4, pairs = (rows + 1) / 2;
    for (size_t r = 0; r < 2 * pairs; r++)
        for (size_t l = 0; l < steps; l++) {
            const uint16_t *a = (const uint16_t *)c->buffer[A] + (row + r) * k + 4 * l;
            uint16_t four[4] = {0};
            if (r < rows) memcpy(four, a, (k - 4 * l < 4 ? k - 4 * l : 4) * sizeof *four);
            memcpy(out + (l * pairs + r / 2) * 4 + r % 2 * 2, four, sizeof four);
        }
}

/* Rows [row, row + rows) of a as a strip, steps in order: [step][rows]. */
static void make_strip(const struct kern_call *c, enum gemm_form form, size_t row, size_t rows, float *out)
{
    if (form == GEMM_SQUARES) {
        make_squares(c, row, rows, out);
        return;
    }
    const size_t k = (size_t)c->shape->v[K], steps = form == GEMM_PAIRS ? (k + 1) / 2 : k;
    for (size_t r = 0; r < rows; r++) {
        if (form == GEMM_FP32) {
            const float *a = (const float *)c->buffer[A] + (row + r) * k;
            for (size_t l = 0; l < k; l++) out[l * rows + r] = a[l];
            continue;
        }
        const uint16_t *a = (const uint16_t *)c->buffer[A] + (row + r) * k;
        for (size_t l = 0; form == GEMM_BF16 && l < k; l++) out[l * rows + r] = kern_bf16_to(a[l]);
        for (size_t l = 0; form == GEMM_PAIRS && l < steps; l++) {
            const uint16_t pair[2] = {a[2 * l], 2 * l + 1 < k ? a[2 * l + 1] : 0};
            memcpy(&out[l * rows + r], pair, sizeof pair);
        }
    }
}

struct job {
    const struct gemm_tiles *tiles;
    enum gemm_form form;
    size_t m, n, steps, panels, strips_n;
    const float *strips;
    const char *w;
    float *sums;
    size_t end; /* of the panels that are this part's */
};

/* First row of strip i: strips differ by one row at most, of squares by one pair of them. */
static size_t strip_row(const struct job *j, size_t i)
{
    if (j->form != GEMM_SQUARES) return i * j->m / j->strips_n;
    const size_t row = i * ((j->m + 1) / 2) / j->strips_n * 2;
    return row < j->m ? row : j->m;
}

/* Where step `from` of a strip of rows [row, row + rows) lies among the strips. */
static size_t strip_at(const struct job *j, size_t row, size_t rows, size_t from)
{
    if (j->form == GEMM_SQUARES) return 2 * (row * j->steps + from * round_up(rows, 2));
    return row * j->steps + from * rows;
}

/* How many panels lie side by side with one, itself included. */
static size_t beside(const struct job *j, size_t panel)
{
    const size_t side = j->tiles->side;
    return panel / side * side + side <= j->panels ? side : 1;
}

/* Where step `from` of a panel lies. */
static const char *panel_at(const struct job *j, size_t panel, size_t from)
{
    const size_t side = j->tiles->side, first = panel / side * side;
    return j->w + (first * j->steps + from * beside(j, panel) + panel % side) * gemm_step_bytes(j->form);
}

/* Panels [panel, panel + wide) times strips [first, end), steps [from, from + depth). */
static void run_panels(const struct job *j, size_t panel, size_t wide, size_t first, size_t end, size_t from,
                       size_t depth)
{
    const size_t left = j->n - panel * GEMM_PANEL;
    for (size_t i = first; i < end; i++) {
        const size_t row = strip_row(j, i), rows = strip_row(j, i + 1) - row;
        /* the first strips each fetch one of the panels that come next, so that no strip waits for all of them */
        const size_t later = panel + wide + (i - first);
        const bool fetch = j->strips_n > 1 && i - first < wide && later < j->end;
        const struct gemm_tile t = {.a = j->strips + strip_at(j, row, rows, from),
                                    .w = panel_at(j, panel, from),
                                    .panel = j->steps * gemm_step_bytes(j->form),
                                    .step = beside(j, panel) * gemm_step_bytes(j->form),
                                    .far = j->strips_n == 1 && j->m >= FAR_ROWS ? FAR_BYTES : 0,
                                    .depth = depth,
                                    .sums = j->sums + row * j->n + panel * GEMM_PANEL,
                                    .stride = j->n,
                                    .columns = left < wide * GEMM_PANEL ? left : wide * GEMM_PANEL,
                                    .more = from > 0,
                                    .next = fetch ? panel_at(j, later, from) : NULL};
        const struct gemm_tiles *s = j->tiles;
        (wide == 1 ? s->one[rows] : j->strips_n == 1 ? s->wide[rows] : s->many[rows]).run(&t);
    }
}

/* The columns of a part, row by row. */
static void round_part(const struct job *j, uint16_t *out, size_t panels_from)
{
    const size_t from = panels_from * GEMM_PANEL, end = j->end * GEMM_PANEL < j->n ? j->end * GEMM_PANEL : j->n;
    for (size_t r = 0; r < j->m && from < end; r++)
        j->tiles->round(j->sums + r * j->n + from, out + r * j->n + from, end - from);
}

static void multiply(const struct kern_call *c, const struct gemm_tiles *tiles, enum gemm_form form)
{
    enum { BLOCK = MC / GEMM_ROWS_MAX }; /* strips that stay in the second cache */
    const size_t k = (size_t)c->shape->v[K], m = (size_t)c->shape->v[M];
    const unsigned parts = c->parts > 1 ? c->parts : 1;
    struct job j = {.tiles = tiles,
                    .form = form,
                    .m = m,
                    .n = (size_t)c->shape->v[N],
                    .steps = form == GEMM_PAIRS     ? (k + 1) / 2
                             : form == GEMM_SQUARES ? (k + 3) / 4
                                                    : k,
                    .panels = panels_of(c->shape),
                    .strips_n = (m + tiles->rows_max - 1) / tiles->rows_max,
                    .strips = c->buffer[STRIPS],
                    .w = c->packed,
                    .sums = form == GEMM_FP32 ? c->buffer[C] : c->buffer[SUMS]};
    const size_t depth_max = j.strips_n == 1 ? j.steps : KC, block = (size_t)BLOCK * GEMM_ROWS_MAX / tiles->rows_max;
    const size_t wide = j.strips_n == 1 ? tiles->wide[m].wide : tiles->many[tiles->rows_max].wide;
    const size_t pairs = (j.panels + 1) / 2, panels_from = 2 * kern_split_from(pairs, c->part, parts);
    j.end = 2 * kern_split_from(pairs, c->part + 1, parts);
    if (j.end > j.panels) j.end = j.panels;
    for (size_t i = kern_split_from(j.strips_n, c->part, parts); i < kern_split_from(j.strips_n, c->part + 1, parts);
         i++) {
        const size_t row = strip_row(&j, i);
        make_strip(c, form, row, strip_row(&j, i + 1) - row, (float *)c->buffer[STRIPS] + strip_at(&j, row, 0, 0));
    }
    kern_meet(c);
    for (size_t from = 0; from < j.steps; from += depth_max)
        for (size_t first = 0; first < j.strips_n; first += block) {
            const size_t end = j.strips_n - first < block ? j.strips_n : first + block;
            const size_t depth = j.steps - from < depth_max ? j.steps - from : depth_max;
            for (size_t panel = panels_from, take; panel < j.end; panel += take) {
                take = j.end - panel >= wide ? wide : 1;
                run_panels(&j, panel, take, first, end, from, depth);
            }
        }
    if (form == GEMM_FP32) return;
    if (parts == 1)
        tiles->round(j.sums, c->buffer[C], j.m * j.n);
    else
        round_part(&j, c->buffer[C], panels_from);
}

static void run_portable(const struct kern_call *c)
{
    if (in_bf16(c->shape))
        multiply(c, &gemm_portable_bf16, GEMM_BF16);
    else
        multiply(c, &gemm_portable_fp32, GEMM_FP32);
}

static size_t pack_bytes_plain(const struct kern_shape *s)
{
    return in_bf16(s) ? pack_bytes_bf16(s) : pack_bytes_fp32(s);
}

static void pack_side(const struct kern_call *c, size_t side)
{
    if (in_bf16(c->shape))
        pack_bf16(c, side);
    else
        pack_fp32(c, side);
}

static void pack_plain(const struct kern_call *c) { pack_side(c, 1); }

#if KERN_X86
static void pack_two(const struct kern_call *c) { pack_side(c, 2); }

static void run_avx512(const struct kern_call *c)
{
    if (in_bf16(c->shape))
        multiply(c, &gemm_avx512_bf16, GEMM_BF16);
    else
        multiply(c, &gemm_avx512_fp32, GEMM_FP32);
}

static void run_avx2(const struct kern_call *c)
{
    if (in_bf16(c->shape))
        multiply(c, &gemm_avx2_bf16, GEMM_BF16);
    else
        multiply(c, &gemm_avx2_fp32, GEMM_FP32);
}

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
static void run_neon(const struct kern_call *c)
{
    if (in_bf16(c->shape))
        multiply(c, &gemm_neon_bf16, GEMM_BF16);
    else
        multiply(c, &gemm_neon_fp32, GEMM_FP32);
}

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
