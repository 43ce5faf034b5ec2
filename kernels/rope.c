/* rope -- queries and keys turned by their positions (Su et al., "RoFormer", arXiv:2104.09864), in place.
 *
 * q is [num_tokens][n_heads][head_dim], k [num_tokens][n_kv_heads][head_dim]; of each head the first rotary_dim
 * elements turn, in pairs, pair i of a token at position p by the angle p * theta^(-2i / rotary_dim): x' = x cos - y
 * sin,  y' = y cos + x sin A pair is elements i and i + rotary_dim / 2 (GPT-NeoX, Llama), or with interleaved elements
 * 2i and 2i + 1 (GPT-J). Angles are counted in turns, as a fraction of 64 bits a position (made of theta once): a
 * product of whole numbers drops the whole turns, so that position 10^6 is as exact as position 1; in fp32 radians it
 * would be off by 0.06. Counted: 3 flops an element that turns, and of each pair of a token 3 for its angle, cosine and
 * sine; the elements that turn read and written, positions and fractions read. */
#include <math.h>
#include <string.h>

#include "kernels/table.h"
#include "kernels/vector.h"

enum { TOKENS, HEADS, KV_HEADS, DIM, ROTARY, INTERLEAVED, THETA };
enum { POSITIONS, TURNS, Q, K };
enum { DIM_MAX = 1024, PAIRS_MAX = DIM_MAX / 2 }; /* not a unit */

static const double TURN = 6.283185307179586;

static const struct kern_arg ARGS[] = {
    [TOKENS] = {"num_tokens", 1, 1 << 24, "tokens of the pass"},
    [HEADS] = {"n_heads", 1, 1 << 12, "query heads"},
    [KV_HEADS] = {"n_kv_heads", 1, 1 << 12, "key heads"},
    [DIM] = {"head_dim", 2, DIM_MAX, "width of a head"},
    [ROTARY] = {"rotary_dim", 2, DIM_MAX, "elements of it that turn, even"},
    [INTERLEAVED] = {"interleaved", 0, 1, "1: pairs are neighbours; 0: halves"},
    [THETA] = {"theta", 1, INT64_C(1) << 40, "base of the angles"},
};

static size_t at(const struct kern_shape *s, size_t i) { return (size_t)s->v[i]; }
static bool in_bf16(const struct kern_shape *s) { return s->dtype == KERN_BF16; }
static enum kern_type type_of(const struct kern_shape *s) { return in_bf16(s) ? KERN_TYPE_BF16 : KERN_TYPE_F32; }

/* What a token turns by: cosine and sine of each pair, or of each element where pairs are neighbours. */
struct turn {
    bool interleaved;
    float cosine[DIM_MAX], sine[DIM_MAX];
};

/* sin(2 pi y) = y (SINE[0] + SINE[1] y^2 + ...): (-1)^i (2 pi)^(2i+1) / (2i+1)! */
static const float SINE[] = {6.28318530718F,  -41.3417022404F, 81.6052492761F,
                             -76.7058597531F, 42.0586939449F,  -15.0946425768F};

#define LANES_BODY "kernels/rope_body.h"
#include "kernels/lanes_all.h"

static const char *refuses(const struct kern_shape *s)
{
    if (s->v[ROTARY] % 2) return "rotary_dim is odd";
    if (s->v[ROTARY] > s->v[DIM]) return "rotary_dim is above head_dim";
    return (double)s->v[TOKENS] * (double)(s->v[HEADS] + s->v[KV_HEADS]) * (double)s->v[DIM] > 0x1p33
               ? "queries and keys are beyond memory"
               : NULL;
}

static size_t buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    const size_t row = at(s, TOKENS) * at(s, DIM);
    out[POSITIONS] = (struct kern_buffer){"positions", KERN_INPUT, KERN_TYPE_I32, at(s, TOKENS), 0, 0};
    out[TURNS] = (struct kern_buffer){"turns", KERN_INPUT, KERN_TYPE_I32, at(s, ROTARY), 0, 0}; /* 64 bits a pair */
    out[Q] = (struct kern_buffer){"q", KERN_STATE, type_of(s), row * at(s, HEADS), 1.3, at(s, DIM)};
    out[K] = (struct kern_buffer){"k", KERN_STATE, type_of(s), row * at(s, KV_HEADS), 0.7, at(s, DIM)};
    return 4;
}

/* Positions within a context of 128 Ki. */
static void fill(const struct kern_call *c, size_t b, uint64_t seed, void *data)
{
    const struct kern_shape *s = c->shape;
    for (size_t i = 0; b == POSITIONS && i < at(s, TOKENS); i++)
        ((int32_t *)data)[i] = (int32_t)(kern_hash(seed, i) % (1 << 17));
    for (size_t i = 0; b == TURNS && i < at(s, ROTARY) / 2; i++)
        ((uint64_t *)data)[i] =
            (uint64_t)(pow((double)s->v[THETA], -2 * (double)i / (double)s->v[ROTARY]) / TURN * 0x1p64);
}

/* A block is a head of a token. */
static void reference(const struct kern_call *c, size_t b, size_t block, double *out)
{
    const struct kern_shape *s = c->shape;
    const size_t n = at(s, DIM), rotary = at(s, ROTARY), heads = at(s, b == Q ? HEADS : KV_HEADS);
    const double position = kern_read(c->buffer[POSITIONS], KERN_TYPE_I32, block / heads);
    for (size_t i = 0; i < n; i++) out[i] = kern_read(c->buffer[b], type_of(s), block * n + i);
    for (size_t i = 0; i < rotary / 2; i++) {
        const double angle = position * pow((double)s->v[THETA], -2 * (double)i / (double)rotary);
        double *x = out + (s->v[INTERLEAVED] ? 2 * i : i), *y = s->v[INTERLEAVED] ? x + 1 : x + rotary / 2;
        const double turned = *x * cos(angle) - *y * sin(angle);
        *y = *y * cos(angle) + *x * sin(angle);
        *x = turned;
    }
}

static double reference_cost(const struct kern_shape *s, size_t b)
{
    (void)b;
    return 30 * (double)s->v[ROTARY];
}

static void counts(const struct kern_shape *s, struct kern_counts *out)
{
    const double tokens = (double)s->v[TOKENS], rotary = (double)s->v[ROTARY], bytes = in_bf16(s) ? 2 : 4;
    const double elements = tokens * (double)(s->v[HEADS] + s->v[KV_HEADS]) * rotary;
    *out = (struct kern_counts){.vector_flops = 3 * elements + 3 * tokens * rotary / 2,
                                .read_bytes = bytes * elements + 4 * tokens + 8 * rotary / 2,
                                .written_bytes = bytes * elements};
}

/* bf16: results are rounded to 8 bits. */
static double tolerance(const struct kern_shape *s) { return in_bf16(s) ? 1e-2 : 1e-5; }

#define BOTH (KERN_HAS(KERN_FP32) | KERN_HAS(KERN_BF16))

static const struct kern_variant VARIANTS[] = {KERN_ROWS(BOTH, KERN_RUN) KERN_ROW_PORTABLE(BOTH, KERN_RUN)};

/* A model of 8 billion parameters; neighbours as pairs, a quarter of a head. */
static const struct kern_point POINTS[] = {
    {{{512, 32, 8, 128, 128, 0, 500000}, KERN_BF16}, true},
    {{{512, 16, 16, 256, 64, 1, 10000}, KERN_BF16}, false},
};

const struct kern kern_rope = {
    .name = "rope",
    .summary = "queries and keys turned by their positions, in halves or in neighbours",
    .row_kind = "elementwise",
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
