/* linear-step -- one token through a layer of linear attention with a state: gated linear attention (Yang et al.,
 * arXiv:2312.06635), and with delta=1 the gated delta rule (Yang, Kautz, Hatamizadeh, arXiv:2412.06464).
 *
 * Of each value head, its state s [head_v_dim][head_k_dim]: s *= exp(g), g <= 0 one number of the head or, with
 * channel_decay=1, one of each channel of the key; u = v, or by the delta rule, which takes away what the state answers
 * to the key already, u[p] = beta * (v[p] - sum over i of s[p][i] k[i]); s[p][i] += u[p] k[i]; y[p] = sum over i of
 * s[p][i] q[i]. Value heads of a group share k and q, which has its scale in it. q, k, v and y are of one format, the
 * state of its own, fp32 or bf16 as state_bytes says; decays and rates are fp32, and so are the sums.
 * Counted: of each element of the state two multiply-adds, three by the delta rule, and a product besides, its decay;
 * an exponential for each decay, by the delta rule 2 more flops of a row (difference, rate); the state once read and
 * once written, all else once. Convolution, normalised keys, the gate and norm of the output are not part of it. */
#include <math.h>
#include <string.h>

#include "kernels/table.h"
#include "kernels/vector.h"

/* One value head of one sequence. */
struct linear_head {
    size_t rows, width;               /* head_v_dim, head_k_dim */
    void *state;                      /* [rows][width] */
    const float *key, *query, *decay; /* [width] */
    float rate, *input, *output;      /* beta; [rows]: v, then what is added; the results */
};

enum { AHEAD = 8192 }; /* bytes of state that are fetched ahead; not a unit */

#define LANES_BODY "kernels/linear_step_body.h"
#include "kernels/lanes_all.h"

enum { BATCH, K_HEADS, K_DIM, V_HEADS, V_DIM, DELTA, STATE_BYTES, CHANNELS };
enum { Q, K, VALUE, DECAY, BETA, STATE, Y, ROWS };

static const struct kern_arg ARGS[] = {
    [BATCH] = {"batch", 1, 1 << 16, "sequences"},
    [K_HEADS] = {"n_k_heads", 1, 1 << 10, "heads of keys and queries"},
    [K_DIM] = {"head_k_dim", 1, 1 << 12, "width of a key"},
    [V_HEADS] = {"n_v_heads", 1, 1 << 10, "heads of values, each with a state"},
    [V_DIM] = {"head_v_dim", 1, 1 << 12, "width of a value"},
    [DELTA] = {"delta", 0, 1, "1: by the delta rule"},
    [STATE_BYTES] = {"state_bytes", 2, 4, "of an element of the state: 2 or 4"},
    [CHANNELS] = {"channel_decay", 0, 1, "1: a decay for each channel of the key, 0: one for a head"},
};

static size_t at(const struct kern_shape *s, size_t i) { return (size_t)s->v[i]; }
static bool in_bf16(const struct kern_shape *s) { return s->dtype == KERN_BF16; }
static bool is_narrow(const struct kern_shape *s) { return s->v[STATE_BYTES] == 2; }
static enum kern_type state_type(const struct kern_shape *s) { return is_narrow(s) ? KERN_TYPE_BF16 : KERN_TYPE_F32; }
static enum kern_type type_of(const struct kern_shape *s) { return in_bf16(s) ? KERN_TYPE_BF16 : KERN_TYPE_F32; }
static size_t decays_of(const struct kern_shape *s) { return s->v[CHANNELS] ? at(s, K_DIM) : 1; }

static const char *refuses(const struct kern_shape *s)
{
    if (s->v[V_HEADS] % s->v[K_HEADS] != 0) return "n_v_heads is no multiple of n_k_heads";
    if (s->v[STATE_BYTES] == 3) return "state_bytes is 2 or 4";
    return (double)s->v[BATCH] * (double)s->v[V_HEADS] * (double)s->v[V_DIM] * (double)s->v[K_DIM] > 0x1p34
               ? "the state is beyond memory"
               : NULL;
}

static size_t buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    const size_t heads = at(s, BATCH) * at(s, V_HEADS), keys = at(s, BATCH) * at(s, K_HEADS) * at(s, K_DIM);
    const size_t values = heads * at(s, V_DIM), scratch = 3 * at(s, K_DIM) + 2 * at(s, V_DIM);
    const double unit = 1 / sqrt((double)s->v[K_DIM]); /* keys of length 1: the delta rule then shrinks states */
    const enum kern_type type = type_of(s);
    out[Q] = (struct kern_buffer){"q", KERN_INPUT, type, keys, 1, 0};
    out[K] = (struct kern_buffer){"k", KERN_INPUT, type, keys, unit, 0};
    out[VALUE] = (struct kern_buffer){"v", KERN_INPUT, type, values, 1, 0};
    out[DECAY] = (struct kern_buffer){"decay", KERN_INPUT, KERN_TYPE_F32, heads * decays_of(s), 0, 0};
    out[BETA] = (struct kern_buffer){"beta", KERN_INPUT, KERN_TYPE_F32, s->v[DELTA] ? heads : 1, 0, 0};
    out[STATE] = (struct kern_buffer){"state", KERN_STATE, state_type(s), values * at(s, K_DIM), 1, at(s, K_DIM)};
    out[Y] = (struct kern_buffer){"y", KERN_OUTPUT, type, values, 0, 1};
    out[ROWS] = (struct kern_buffer){"rows", KERN_SCRATCH, KERN_TYPE_F32, scratch, 0, 0};
    return 8;
}

/* Logarithms of decays in -1..0, rates in 0..1. */
static void fill(const struct kern_call *c, size_t b, uint64_t seed, void *data)
{
    const size_t heads = at(c->shape, BATCH) * at(c->shape, V_HEADS);
    const size_t n = b == DECAY ? heads * decays_of(c->shape) : c->shape->v[DELTA] ? heads : 1;
    for (size_t i = 0; i < n; i++) {
        const float part = (1 + (float)(kern_hash(seed, i) % 997)) / 1000; /* not a unit */
        ((float *)data)[i] = b == DECAY ? -part : part;
    }
}

/* Of a value head of a sequence, the head of its key. */
static size_t key_of(const struct kern_shape *s, size_t one)
{
    const size_t group = at(s, V_HEADS) / at(s, K_HEADS);
    return one / at(s, V_HEADS) * at(s, K_HEADS) + one % at(s, V_HEADS) / group;
}

static double fp32_at(const struct kern_call *c, size_t b, size_t i)
{
    return (double)((const float *)c->buffer[b])[i];
}

/* A block is a row of a state, and its one element of y. */
static void reference(const struct kern_call *c, size_t b, size_t block, double *out)
{
    const struct kern_shape *s = c->shape;
    const size_t n = at(s, K_DIM), one = block / at(s, V_DIM), key = key_of(s, one) * n;
    const enum kern_type type = type_of(s), kept = state_type(s);
    double input = kern_read(c->buffer[VALUE], type, block), y = 0, answer = 0;
    for (int pass = s->v[DELTA] ? 0 : 1; pass < 2; pass++) {
        if (pass == 1 && s->v[DELTA]) input = fp32_at(c, BETA, one) * (input - answer);
        for (size_t i = 0; i < n; i++) {
            const double g = fp32_at(c, DECAY, s->v[CHANNELS] ? one * n + i : one);
            const double old = exp(g) * kern_read(c->buffer[STATE], kept, block * n + i);
            const double k = kern_read(c->buffer[K], type, key + i), state = old + input * k;
            if (pass == 0) {
                answer += old * k;
                continue;
            }
            y += state * kern_read(c->buffer[Q], type, key + i);
            if (b == STATE) out[i] = state;
        }
    }
    if (b == Y) *out = y;
}

static double reference_cost(const struct kern_shape *s, size_t b)
{
    (void)b;
    return 16 * (double)s->v[K_DIM]; /* exponentials */
}

static void counts(const struct kern_shape *s, struct kern_counts *out)
{
    const double heads = (double)s->v[BATCH] * (double)s->v[V_HEADS], rows = heads * (double)s->v[V_DIM];
    const double state = rows * (double)s->v[K_DIM], kept = state * (double)s->v[STATE_BYTES];
    const double keys = 2 * (double)s->v[BATCH] * (double)s->v[K_HEADS] * (double)s->v[K_DIM];
    const double decays = heads * (double)decays_of(s), bytes = in_bf16(s) ? 2 : 4;
    const bool delta = s->v[DELTA] == 1;
    *out = (struct kern_counts){.flops = (delta ? 6 : 4) * state,
                                .vector_flops = state + decays + (delta ? 2 * rows : 0),
                                .read_bytes = kept + bytes * (rows + keys) + 4 * (decays + (delta ? heads : 0)),
                                .written_bytes = kept + bytes * rows};
}

/* bf16: the state or y are rounded to 8 bits. */
static double tolerance(const struct kern_shape *s) { return in_bf16(s) || is_narrow(s) ? 1e-2 : 1e-5; }

/* -- tuned -- */

static void step_all(const struct kern_call *c, void (*step)(const struct linear_head *h, bool narrow, bool delta))
{
    const struct kern_shape *s = c->shape;
    const bool bf16 = in_bf16(s), delta = s->v[DELTA] == 1;
    const size_t dim = at(s, V_DIM), n = at(s, K_DIM), decays = decays_of(s);
    float *const room = c->buffer[ROWS], *const decay = room + 2 * n;
    size_t known = SIZE_MAX; /* key head that the room has */
    struct linear_head h = {.rows = dim, .width = n, .key = room, .query = room + n, .decay = decay};
    h.input = room + 3 * n;
    h.output = h.input + dim;
    for (size_t one = 0; one < at(s, BATCH) * at(s, V_HEADS); one++) {
        const size_t key = key_of(s, one);
        for (size_t i = 0; key != known && i < n; i++) {
            room[i] = kern_float(c->buffer[K], bf16, key * n + i);
            room[n + i] = kern_float(c->buffer[Q], bf16, key * n + i);
        }
        known = key;
        for (size_t i = 0; i < n; i++)
            decay[i] = i < decays ? expf(((const float *)c->buffer[DECAY])[one * decays + i]) : decay[0];
        for (size_t p = 0; p < dim; p++) h.input[p] = kern_float(c->buffer[VALUE], bf16, one * dim + p);
        h.rate = delta ? ((const float *)c->buffer[BETA])[one] : 1;
        h.state = (char *)c->buffer[STATE] + one * dim * n * at(s, STATE_BYTES);
        step(&h, is_narrow(s), delta);
        for (size_t p = 0; p < dim; p++)
            if (bf16)
                ((uint16_t *)c->buffer[Y])[one * dim + p] = kern_bf16_from(h.output[p]);
            else
                ((float *)c->buffer[Y])[one * dim + p] = h.output[p];
    }
}

#define RUN(set)                                                                                                       \
    static void run_##set(const struct kern_call *c) { step_all(c, step_##set); }
RUN(portable)
KERN_SETS(RUN)

#define BOTH (KERN_HAS(KERN_FP32) | KERN_HAS(KERN_BF16))

static const struct kern_variant VARIANTS[] = {KERN_ROWS(BOTH, KERN_RUN) KERN_ROW_PORTABLE(BOTH, KERN_RUN)};

/* Layers of hybrid models of 80 billion parameters (delta rule, two value heads a key) and of 450 (one decay a head).
 */
static const struct kern_point POINTS[] = {
    {{{8, 16, 128, 32, 128, 1, 4, 0}, KERN_BF16}, true},
    {{{4, 64, 128, 64, 128, 0, 4, 0}, KERN_BF16}, true},
    {{{8, 32, 128, 32, 128, 1, 4, 1}, KERN_BF16}, false},
    {{{8, 16, 128, 32, 128, 1, 4, 0}, KERN_FP32}, false},
};

const struct kern kern_linear_step = {
    .name = "linear-step",
    .summary = "one token through gated linear attention or the gated delta rule, its state read and written",
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
