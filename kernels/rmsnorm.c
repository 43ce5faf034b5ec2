/* rmsnorm -- y = x / sqrt(mean(x^2) + 1e-5) * weight, row by row (Zhang and Sennrich, arXiv:1910.07467).
 *
 * Counted: 4 flops an element (square, sum, scale, weight) and 4 a row (mean, epsilon, root, quotient), none of them
 * of products; x, the weights and y once. A row is read twice, the second time from the cache. */
#include <math.h>
#include <string.h>

#include "kernels/table.h"
#include "kernels/vector.h"

static const float EPSILON = 1e-5F;

#define LANES_BODY "kernels/rmsnorm_body.h"
#include "kernels/lanes_all.h"

enum { TOKENS, HIDDEN };
enum { X, WEIGHT, Y };

static const struct kern_arg ARGS[] = {
    [TOKENS] = {"num_tokens", 1, 1 << 24, "tokens of the pass"},
    [HIDDEN] = {"hidden", 1, 1 << 20, "width of the model"},
};

static size_t at(const struct kern_shape *s, size_t i) { return (size_t)s->v[i]; }
static bool in_bf16(const struct kern_shape *s) { return s->dtype == KERN_BF16; }
static enum kern_type type_of(const struct kern_shape *s) { return in_bf16(s) ? KERN_TYPE_BF16 : KERN_TYPE_F32; }

static const char *refuses(const struct kern_shape *s)
{
    return (double)s->v[TOKENS] * (double)s->v[HIDDEN] > 0x1p34 ? "num_tokens and hidden together are beyond memory"
                                                                : NULL;
}

static size_t buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    const size_t all = at(s, TOKENS) * at(s, HIDDEN);
    out[X] = (struct kern_buffer){"x", KERN_INPUT, type_of(s), all, 1.7, 0};
    out[WEIGHT] = (struct kern_buffer){"weight", KERN_INPUT, type_of(s), at(s, HIDDEN), 1, 0};
    out[Y] = (struct kern_buffer){"y", KERN_OUTPUT, type_of(s), all, 0, at(s, HIDDEN)};
    return 3;
}

/* A block is a token. */
static void reference(const struct kern_call *c, size_t b, size_t block, double *out)
{
    const size_t n = at(c->shape, HIDDEN);
    const enum kern_type type = type_of(c->shape);
    double squares = 0;
    (void)b;
    for (size_t i = 0; i < n; i++) squares += pow(kern_read(c->buffer[X], type, block * n + i), 2);
    for (size_t i = 0; i < n; i++)
        out[i] = kern_read(c->buffer[X], type, block * n + i) / sqrt(squares / (double)n + 1e-5) *
                 kern_read(c->buffer[WEIGHT], type, i);
}

static double reference_cost(const struct kern_shape *s, size_t b)
{
    (void)b;
    return 3 * (double)s->v[HIDDEN];
}

static void counts(const struct kern_shape *s, struct kern_counts *out)
{
    const double t = (double)s->v[TOKENS], d = (double)s->v[HIDDEN], bytes = in_bf16(s) ? 2 : 4;
    *out = (struct kern_counts){
        .vector_flops = t * (4 * d + 4), .read_bytes = bytes * (t * d + d), .written_bytes = bytes * t * d};
}

/* bf16: results are rounded to 8 bits. */
static double tolerance(const struct kern_shape *s) { return in_bf16(s) ? 1e-2 : 1e-5; }

/* Results go past the caches where they are whole lines and more than the second cache holds. */
static bool is_past(const struct kern_call *c)
{
    const double bytes = in_bf16(c->shape) ? 2 : 4;
    return at(c->shape, HIDDEN) % 32 == 0 &&
           kern_past(c->machine, bytes * (double)c->shape->v[TOKENS] * (double)c->shape->v[HIDDEN]);
}

#define RUN(set)                                                                                                       \
    static void run_##set(const struct kern_call *c)                                                                   \
    {                                                                                                                  \
        rows_##set(c->buffer[X], c->buffer[WEIGHT], c->buffer[Y], in_bf16(c->shape), at(c->shape, TOKENS),             \
                   at(c->shape, HIDDEN), is_past(c));                                                                  \
    }

RUN(portable)
KERN_SETS(RUN)
KERN_SETS_BF16(RUN)

#define BOTH (KERN_HAS(KERN_FP32) | KERN_HAS(KERN_BF16))

static const struct kern_variant VARIANTS[] = {KERN_ROWS_BF16(KERN_UNIT_FP32, KERN_RUN) KERN_ROWS(BOTH, KERN_RUN)
                                                   KERN_ROW_PORTABLE(BOTH, KERN_RUN)};

static const struct kern_point POINTS[] = {
    {{{64, 4096}, KERN_BF16}, true},
    {{{2048, 4096}, KERN_BF16}, false},
    {{{1024, 8192}, KERN_FP32}, false},
};

const struct kern kern_rmsnorm = {
    .name = "rmsnorm",
    .summary = "rows over their root mean square, times weights",
    .row_kind = "elementwise",
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
