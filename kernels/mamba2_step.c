/* mamba2-step -- one token through the recurrent layer of Mamba-2 (Dao and Gu, arXiv:2405.21060), the state read and
 * written.
 *
 * Of each head: dt = log(1 + exp(dt + bias)), h[p][n] = exp(dt a) h[p][n] + dt x[p] b[n], y[p] = sum over n of
 * h[p][n] c[n] + d x[p]; heads of a group share b and c; a < 0. x, b, c and y are of one format, the state of its own,
 * fp32 or bf16 as state_bytes says; what there is one of for a head is fp32, and so are the sums.
 * Counted: of each element of the state two multiply-adds, its input and its output, and a product besides, its decay;
 * 3 more flops of a row (dt x, and d x added), 6 of a head (bias, softplus of three, exponent and exponential); the
 * state once read and once written, all else once. The convolution, the gate and the norm are not part of it. */
#include <math.h>
#include <string.h>

#include "kernels/table.h"
#include "kernels/vector.h"

enum { AHEAD = 8192 }; /* bytes of state that are fetched ahead; not a unit */

/* One head of one sequence. */
struct head {
    size_t rows, width; /* head_dim, d_state */
    void *state;        /* [rows][width] */
    const void *b, *c;  /* [width] */
    const void *x;      /* [rows], of the format of b and c */
    void *y;            /* [rows] of the same */
    float decay, dt, d;
    float *input, *output; /* [rows]: dt x; the sums */
};

#define LANES_BODY "kernels/mamba2_step_body.h"
#include "kernels/lanes_all.h"

enum { BATCH, HEADS, DIM, STATE_DIM, GROUPS, STATE_BYTES };
enum { X, DT, B, C, A, BIAS, D, STATE, Y, ROWS };

static const struct kern_arg ARGS[] = {
    [BATCH] = {"batch", 1, 1 << 16, "sequences"},
    [HEADS] = {"n_heads", 1, 1 << 12, "heads"},
    [DIM] = {"head_dim", 1, 1 << 12, "width of a head"},
    [STATE_DIM] = {"d_state", 1, 1 << 12, "elements of the state for each of them"},
    [GROUPS] = {"n_groups", 1, 1 << 12, "groups of heads that share b and c"},
    [STATE_BYTES] = {"state_bytes", 2, 4, "of an element of the state: 2 or 4"},
};

static size_t at(const struct kern_shape *s, size_t i) { return (size_t)s->v[i]; }
static bool in_bf16(const struct kern_shape *s) { return s->dtype == KERN_BF16; }
static bool is_narrow(const struct kern_shape *s) { return s->v[STATE_BYTES] == 2; }
static enum kern_type state_type(const struct kern_shape *s) { return is_narrow(s) ? KERN_TYPE_BF16 : KERN_TYPE_F32; }
static enum kern_type type_of(const struct kern_shape *s) { return in_bf16(s) ? KERN_TYPE_BF16 : KERN_TYPE_F32; }

static const char *refuses(const struct kern_shape *s)
{
    if (s->v[HEADS] % s->v[GROUPS] != 0) return "n_heads is no multiple of n_groups";
    if (s->v[STATE_BYTES] == 3) return "state_bytes is 2 or 4";
    return (double)s->v[BATCH] * (double)s->v[HEADS] * (double)s->v[DIM] * (double)s->v[STATE_DIM] > 0x1p34
               ? "the state is beyond memory"
               : NULL;
}

static size_t buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    const size_t batch = at(s, BATCH), heads = at(s, HEADS), wide = batch * heads * at(s, DIM);
    const size_t shared = batch * at(s, GROUPS) * at(s, STATE_DIM);
    const enum kern_type type = type_of(s);
    out[X] = (struct kern_buffer){"x", KERN_INPUT, type, wide, 1, 0};
    out[DT] = (struct kern_buffer){"dt", KERN_INPUT, KERN_TYPE_F32, batch * heads, 1, 0};
    out[B] = (struct kern_buffer){"b", KERN_INPUT, type, shared, 1, 0};
    out[C] = (struct kern_buffer){"c", KERN_INPUT, type, shared, 1, 0};
    out[A] = (struct kern_buffer){"a", KERN_INPUT, KERN_TYPE_F32, heads, 0, 0};
    out[BIAS] = (struct kern_buffer){"bias", KERN_INPUT, KERN_TYPE_F32, heads, 1, 0};
    out[D] = (struct kern_buffer){"d", KERN_INPUT, KERN_TYPE_F32, heads, 1, 0};
    out[STATE] = (struct kern_buffer){"state", KERN_STATE, state_type(s), wide * at(s, STATE_DIM), 1, at(s, STATE_DIM)};
    out[Y] = (struct kern_buffer){"y", KERN_OUTPUT, type, wide, 0, 1};
    out[ROWS] = (struct kern_buffer){"rows", KERN_SCRATCH, KERN_TYPE_F32, 2 * at(s, DIM), 0, 0};
    return 10;
}

/* a in -1..0, so that states neither grow nor vanish at once. */
static void fill(const struct kern_call *c, size_t b, uint64_t seed, void *data)
{
    (void)b;
    for (size_t i = 0; i < at(c->shape, HEADS); i++)
        ((float *)data)[i] = -(1 + (float)(kern_hash(seed, i) % 997)) / 1000; /* not a unit */
}

static double head_value(const struct kern_call *c, size_t b, size_t i)
{
    return (double)((const float *)c->buffer[b])[i];
}

/* A block is a row of a state, and its one element of y. */
static void reference(const struct kern_call *c, size_t b, size_t block, double *out)
{
    const struct kern_shape *s = c->shape;
    const size_t n = at(s, STATE_DIM), one = block / at(s, DIM), head = one % at(s, HEADS);
    const size_t group = one / at(s, HEADS) * at(s, GROUPS) + head / (at(s, HEADS) / at(s, GROUPS));
    const enum kern_type type = type_of(s);
    const double dt = log1p(exp(head_value(c, DT, one) + head_value(c, BIAS, head)));
    const double x = kern_read(c->buffer[X], type, block);
    double y = head_value(c, D, head) * x;
    for (size_t i = 0; i < n; i++) {
        const double h = exp(dt * head_value(c, A, head)) * kern_read(c->buffer[STATE], state_type(s), block * n + i) +
                         dt * x * kern_read(c->buffer[B], type, group * n + i);
        y += h * kern_read(c->buffer[C], type, group * n + i);
        if (b == STATE) out[i] = h;
    }
    if (b == Y) *out = y;
}

static double reference_cost(const struct kern_shape *s, size_t b)
{
    (void)b;
    return 8 * (double)s->v[STATE_DIM]; /* an exponential each */
}

static void counts(const struct kern_shape *s, struct kern_counts *out)
{
    const double heads = (double)s->v[BATCH] * (double)s->v[HEADS], rows = heads * (double)s->v[DIM];
    const double state = rows * (double)s->v[STATE_DIM], bytes = in_bf16(s) ? 2 : 4;
    const double kept = state * (double)s->v[STATE_BYTES];
    const double shared = 2 * (double)s->v[BATCH] * (double)s->v[GROUPS] * (double)s->v[STATE_DIM];
    *out = (struct kern_counts){.flops = 4 * state,
                                .vector_flops = state + 3 * rows + 6 * heads,
                                .read_bytes = kept + bytes * (rows + shared) + 4 * (heads + 3 * (double)s->v[HEADS]),
                                .written_bytes = kept + bytes * rows};
}

/* bf16: the state or y are rounded to 8 bits. */
static double tolerance(const struct kern_shape *s) { return in_bf16(s) || is_narrow(s) ? 1e-2 : 1e-5; }

/* -- tuned -- */

static void step_all(const struct kern_call *c, void (*step)(const struct head *h, bool bf16, bool narrow))
{
    const struct kern_shape *s = c->shape;
    const bool bf16 = in_bf16(s), narrow = is_narrow(s);
    const size_t dim = at(s, DIM), n = at(s, STATE_DIM), bytes = bf16 ? 2 : 4;
    struct head h = {.rows = dim, .width = n, .input = c->buffer[ROWS], .output = (float *)c->buffer[ROWS] + dim};
    for (size_t one = 0; one < at(s, BATCH) * at(s, HEADS); one++) {
        const size_t head = one % at(s, HEADS);
        const size_t group = one / at(s, HEADS) * at(s, GROUPS) + head / (at(s, HEADS) / at(s, GROUPS));
        const float v = ((const float *)c->buffer[DT])[one] + ((const float *)c->buffer[BIAS])[head];
        const float dt = v > 20 ? v : log1pf(expf(v)), d = ((const float *)c->buffer[D])[head]; /* equal in fp32 */
        h.decay = expf(dt * ((const float *)c->buffer[A])[head]);
        h.state = (char *)c->buffer[STATE] + one * dim * n * at(s, STATE_BYTES);
        h.b = (const char *)c->buffer[B] + group * n * bytes;
        h.c = (const char *)c->buffer[C] + group * n * bytes;
        h.x = (const char *)c->buffer[X] + one * dim * bytes;
        h.y = (char *)c->buffer[Y] + one * dim * bytes;
        h.dt = dt;
        h.d = d;
        step(&h, bf16, narrow);
    }
}

#define RUN(set)                                                                                                       \
    static void run_##set(const struct kern_call *c) { step_all(c, step_##set); }
RUN(portable)
KERN_SETS(RUN)
KERN_SETS_BF16(RUN)

#define BOTH (KERN_HAS(KERN_FP32) | KERN_HAS(KERN_BF16))

static const struct kern_variant VARIANTS[] = {KERN_ROWS_BF16(KERN_UNIT_FP32, KERN_RUN) KERN_ROWS(BOTH, KERN_RUN)
                                                   KERN_ROW_PORTABLE(BOTH, KERN_RUN)};

/* Layers of models of 2.7 and 8 billion parameters. */
static const struct kern_point POINTS[] = {
    {{{8, 80, 64, 128, 1, 4}, KERN_FP32}, true},
    {{{16, 128, 64, 128, 8, 4}, KERN_BF16}, true},
    {{{32, 128, 64, 128, 8, 2}, KERN_BF16}, false},
};

const struct kern kern_mamba2_step = {
    .name = "mamba2-step",
    .summary = "one token through a Mamba-2 layer, its state read and written",
    .row_kind = "scan",
    .args = ARGS,
    .args_n = sizeof ARGS / sizeof ARGS[0],
    .dtypes = BOTH,
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
