/* moe -- routed experts of a layer: each token's topk of num_experts, weighted by the softmax of their logits, through
 * gated MLPs of their own; y = sum over them of weight * (silu(x Wg^T) * (x Wu^T)) Wd^T.
 *
 * Logits are given: the router's product is a gemm. How many experts get a token decides the work, so that it is a
 * parameter: logits are chosen such that tokens go round `active` of them. Tokens of an expert are gathered, and the
 * products are those of kernels/gemm.c, one group after the other.
 * Counted: 6 * num_tokens * topk * hidden * inter_full flops; besides, of a token topk walks over the logits and 4 for
 * each weight (difference, exponential, sum, quotient), 5 for each hidden element's gate, 2 for each result that is
 * added; x, logits, the weights of active experts and y once. */
#include <math.h>
#include <string.h>

#include "kernels/table.h"
#include "kernels/vector.h"

#define LANES_BODY "kernels/mlp_body.h"
#include "kernels/lanes_all.h"

enum { TOKENS, HIDDEN, INTER, TOPK, EXPERTS, ACTIVE };
enum { X, LOGITS, WG, WU, WD, Y, ROWS, GATE, UP, STRIPS, SUMS, CHOSEN, WEIGHTS, TOTAL };

static const struct kern_arg ARGS[] = {
    [TOKENS] = {"num_tokens", 1, 1 << 20, "tokens of the pass"},
    [HIDDEN] = {"hidden", 1, 1 << 16, "width of the model"},
    [INTER] = {"inter_full", 1, 1 << 16, "width of an expert between its products"},
    [TOPK] = {"topk", 1, 1 << 8, "experts of a token"},
    [EXPERTS] = {"num_experts", 1, 1 << 12, "experts of the layer"},
    [ACTIVE] = {"active", 1, 1 << 12, "experts that get a token"},
};

static size_t at(const struct kern_shape *s, size_t i) { return (size_t)s->v[i]; }
static bool in_bf16(const struct kern_shape *s) { return s->dtype == KERN_BF16; }
static enum kern_type type_of(const struct kern_shape *s) { return in_bf16(s) ? KERN_TYPE_BF16 : KERN_TYPE_F32; }

static const char *refuses(const struct kern_shape *s)
{
    const double t = (double)s->v[TOKENS], d = (double)s->v[HIDDEN], f = (double)s->v[INTER];
    if (s->v[ACTIVE] > s->v[EXPERTS]) return "active is above num_experts";
    if (s->v[ACTIVE] < s->v[TOPK]) return "active is below topk: a token's experts differ";
    if (s->v[ACTIVE] > s->v[TOKENS] * s->v[TOPK]) return "active is above num_tokens * topk";
    return 3 * (double)s->v[EXPERTS] * d * f + 2 * t * (2 * d + f) + t * (double)(s->v[EXPERTS] + s->v[TOPK]) > 0x1p35
               ? "the experts are beyond memory"
               : NULL;
}

/* The shape of an expert's product: rows x width -> out. */
static struct kern_shape product(const struct kern_shape *s, size_t rows, size_t out, size_t in)
{
    return (struct kern_shape){{(int64_t)rows, s->v[out], s->v[in]}, s->dtype};
}

enum { GEMM_A, GEMM_W, GEMM_C, GEMM_STRIPS, GEMM_SUMS }; /* buffers of kern_gemm, in its order */

static size_t buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    const size_t t = at(s, TOKENS), d = at(s, HIDDEN), f = at(s, INTER), weights = at(s, EXPERTS) * d * f;
    const struct kern_shape up = product(s, t, INTER, HIDDEN), down = product(s, t, HIDDEN, INTER);
    const enum kern_type type = type_of(s);
    struct kern_buffer wide[KERN_BUFFERS_MAX], narrow[KERN_BUFFERS_MAX];
    (void)kern_gemm.buffers(&up, wide);
    (void)kern_gemm.buffers(&down, narrow);
    out[X] = (struct kern_buffer){"x", KERN_INPUT, type, t * d, 1, 0};
    out[LOGITS] = (struct kern_buffer){"logits", KERN_INPUT, KERN_TYPE_F32, t * at(s, EXPERTS), 0, 0};
    out[WG] = (struct kern_buffer){"gate", KERN_INPUT, type, weights, 0.05, 0};
    out[WU] = (struct kern_buffer){"up", KERN_INPUT, type, weights, 0.05, 0};
    out[WD] = (struct kern_buffer){"down", KERN_INPUT, type, weights, 0.05, 0};
    out[Y] = (struct kern_buffer){"y", KERN_OUTPUT, type, t * d, 0, d};
    out[ROWS] = (struct kern_buffer){"rows", KERN_SCRATCH, type, t * d, 0, 0}; /* an expert's, in and out */
    out[GATE] = (struct kern_buffer){"gated", KERN_SCRATCH, type, t * f, 0, 0};
    out[UP] = (struct kern_buffer){"upped", KERN_SCRATCH, type, t * f, 0, 0};
    for (size_t i = 0; i < 2; i++) { /* scratch of the larger product */
        const size_t from = GEMM_STRIPS + i;
        out[STRIPS + i] = wide[from].elements > narrow[from].elements ? wide[from] : narrow[from];
    }
    /* [token][topk]: experts, their weights; y before it is rounded */
    out[CHOSEN] = (struct kern_buffer){"chosen", KERN_SCRATCH, KERN_TYPE_I32, t * at(s, TOPK), 0, 0};
    out[WEIGHTS] = (struct kern_buffer){"weights", KERN_SCRATCH, KERN_TYPE_F32, t * at(s, TOPK), 0, 0};
    out[TOTAL] = (struct kern_buffer){"total", KERN_SCRATCH, KERN_TYPE_F32, t * d, 0, 0};
    return 14;
}

/* Normals, those of the experts whose turn it is far above the others. */
static void fill(const struct kern_call *c, size_t b, uint64_t seed, void *data)
{
    const size_t n = at(c->shape, EXPERTS), topk = at(c->shape, TOPK), active = at(c->shape, ACTIVE);
    float *logits = data;
    (void)b;
    for (size_t i = 0; i < at(c->shape, TOKENS) * n; i++) logits[i] = (float)kern_normal(seed, i);
    for (size_t i = 0; i < at(c->shape, TOKENS) * topk; i++) logits[i / topk * n + i % active * n / active] += 16;
}

/* A block is a token: an expert is among its topk when fewer than topk have more. Its hidden elements some at a time,
 * as in kernels/mlp.c. */
static void reference(const struct kern_call *c, size_t b, size_t block, double *out)
{
    enum { SOME = 64 };
    const struct kern_shape *s = c->shape;
    const size_t d = at(s, HIDDEN), f = at(s, INTER), n = at(s, EXPERTS);
    const enum kern_type type = type_of(s);
    const float *logits = (const float *)c->buffer[LOGITS] + block * n;
    double sum = 0;
    (void)b;
    for (size_t i = 0; i < d; i++) out[i] = 0;
    for (size_t e = 0; e < n; e++) {
        size_t above = 0;
        for (size_t i = 0; i < n; i++) above += logits[i] > logits[e] || (i < e && !(logits[i] < logits[e]));
        if (above >= at(s, TOPK)) continue;
        sum += exp((double)logits[e]);
        for (size_t from = 0; from < f; from += SOME) {
            const size_t some = f - from < SOME ? f - from : SOME;
            double hidden[SOME];
            for (size_t j = 0; j < some; j++) {
                const size_t row = e * f + from + j;
                double gate = 0, up = 0;
                for (size_t i = 0; i < d; i++) {
                    const double x = kern_read(c->buffer[X], type, block * d + i);
                    gate += x * kern_read(c->buffer[WG], type, row * d + i);
                    up += x * kern_read(c->buffer[WU], type, row * d + i);
                }
                hidden[j] = exp((double)logits[e]) * gate / (1 + exp(-gate)) * up;
            }
            for (size_t i = 0; i < d; i++)
                for (size_t j = 0; j < some; j++)
                    out[i] += hidden[j] * kern_read(c->buffer[WD], type, (e * d + i) * f + from + j);
        }
    }
    for (size_t i = 0; i < d; i++) out[i] /= sum;
}

static double reference_cost(const struct kern_shape *s, size_t b)
{
    (void)b;
    return 3 * (double)s->v[TOPK] * (double)s->v[HIDDEN] * (double)s->v[INTER] + pow((double)s->v[EXPERTS], 2);
}

static void counts(const struct kern_shape *s, struct kern_counts *out)
{
    const double t = (double)s->v[TOKENS], d = (double)s->v[HIDDEN], f = (double)s->v[INTER],
                 bytes = in_bf16(s) ? 2 : 4;
    const double n = (double)s->v[EXPERTS], rows = t * (double)s->v[TOPK];
    *out = (struct kern_counts){.flops = 6 * rows * d * f,
                                .vector_flops = rows * (n + 4 + 5 * f + 2 * d),
                                .read_bytes = bytes * (t * d + 3 * (double)s->v[ACTIVE] * d * f) + 4 * t * n,
                                .written_bytes = bytes * t * d};
}

/* bf16: gate, branch, their product and the results of experts are rounded between the kernels, sums once more. */
static double tolerance(const struct kern_shape *s) { return in_bf16(s) ? 1e-2 : 1e-5; }

/* -- the router -- */

/* Experts of a token, the most likely first, and their weights. */
static void route(const float *logits, size_t n, size_t topk, int32_t *chosen, float *weight)
{
    float sum = 0;
    for (size_t j = 0; j < topk; j++) {
        size_t best = SIZE_MAX;
        for (size_t e = 0; e < n; e++) {
            bool taken = best != SIZE_MAX && !(logits[e] > logits[best]);
            for (size_t i = 0; !taken && i < j; i++) taken = chosen[i] == (int32_t)e;
            if (!taken) best = e;
        }
        chosen[j] = (int32_t)best;
        weight[j] = expf(logits[best] - logits[chosen[0]]);
        sum += weight[j];
    }
    for (size_t j = 0; j < topk; j++) weight[j] /= sum;
}

/* -- the experts -- */

/* The three products of an expert for so many rows, as calls of the gemm. */
static void calls_of(const struct kern_call *c, const struct kern_variant *v, size_t expert, struct kern_shape *up,
                     struct kern_shape *down, struct kern_call out[3])
{
    static const size_t FROM[3] = {ROWS, ROWS, GATE}, WEIGHT[3] = {WG, WU, WD}, TO[3] = {GATE, UP, ROWS};
    const size_t room[2] = {kern_pack_room(v, up), kern_pack_room(v, down)},
                 one = at(c->shape, HIDDEN) * at(c->shape, INTER);
    char *packed = (char *)c->packed + expert * (2 * room[0] + room[1]);
    for (size_t i = 0; i < 3; i++) {
        out[i] = (struct kern_call){.shape = i < 2 ? up : down, .machine = c->machine, .packed = packed + i * room[0]};
        out[i].buffer[GEMM_A] = c->buffer[FROM[i]];
        out[i].buffer[GEMM_W] = (char *)c->buffer[WEIGHT[i]] + expert * one * (in_bf16(c->shape) ? 2 : 4);
        out[i].buffer[GEMM_C] = c->buffer[TO[i]];
        out[i].buffer[GEMM_STRIPS] = c->buffer[STRIPS];
        out[i].buffer[GEMM_SUMS] = c->buffer[SUMS];
    }
}

static size_t pack_bytes_of(const struct kern_shape *s, const char *name)
{
    const struct kern_shape up = product(s, 1, INTER, HIDDEN), down = product(s, 1, HIDDEN, INTER);
    return at(s, EXPERTS) * (2 * kern_pack_room(kern_variant_find(&kern_gemm, name), &up) +
                             kern_pack_room(kern_variant_find(&kern_gemm, name), &down));
}

static void pack_of(const struct kern_call *c, const char *name)
{
    struct kern_shape up = product(c->shape, 1, INTER, HIDDEN), down = product(c->shape, 1, HIDDEN, INTER);
    const struct kern_variant *v = kern_variant_find(&kern_gemm, name);
    for (size_t e = 0; e < at(c->shape, EXPERTS); e++) {
        struct kern_call calls[3];
        calls_of(c, v, e, &up, &down, calls);
        for (size_t i = 0; i < 3; i++) v->pack(&calls[i]);
    }
}

/* Rows of the tokens that chose an expert; returns how many. */
static size_t gather(const struct kern_call *c, size_t expert)
{
    const size_t topk = at(c->shape, TOPK), bytes = at(c->shape, HIDDEN) * (in_bf16(c->shape) ? 2 : 4);
    const int32_t *chosen = c->buffer[CHOSEN];
    size_t rows = 0;
    for (size_t i = 0; i < at(c->shape, TOKENS) * topk; i++)
        if (chosen[i] == (int32_t)expert)
            memcpy((char *)c->buffer[ROWS] + rows++ * bytes, (const char *)c->buffer[X] + i / topk * bytes, bytes);
    return rows;
}

static void scatter(const struct kern_call *c, size_t expert)
{
    const size_t topk = at(c->shape, TOPK), d = at(c->shape, HIDDEN);
    const int32_t *chosen = c->buffer[CHOSEN];
    for (size_t i = 0, row = 0; i < at(c->shape, TOKENS) * topk; i++) {
        if (chosen[i] != (int32_t)expert) continue;
        const float weight = ((const float *)c->buffer[WEIGHTS])[i];
        float *total = (float *)c->buffer[TOTAL] + i / topk * d;
        for (size_t j = 0; j < d; j++)
            total[j] += weight * (in_bf16(c->shape) ? kern_bf16_to(((const uint16_t *)c->buffer[ROWS])[row * d + j])
                                                    : ((const float *)c->buffer[ROWS])[row * d + j]);
        row++;
    }
}

static void run_of(const struct kern_call *c, const char *name,
                   void (*gate)(void *gate, const void *up, bool bf16, size_t n))
{
    const struct kern_shape *s = c->shape;
    const size_t t = at(s, TOKENS), all = t * at(s, HIDDEN), n = at(s, EXPERTS), topk = at(s, TOPK);
    const struct kern_variant *v = kern_variant_find(&kern_gemm, name);
    float *total = c->buffer[TOTAL];
    for (size_t i = 0; i < t; i++)
        route((const float *)c->buffer[LOGITS] + i * n, n, topk, (int32_t *)c->buffer[CHOSEN] + i * topk,
              (float *)c->buffer[WEIGHTS] + i * topk);
    memset(total, 0, all * sizeof *total);
    for (size_t e = 0; e < n; e++) {
        const size_t rows = gather(c, e);
        if (rows == 0) continue;
        struct kern_shape up = product(s, rows, INTER, HIDDEN), down = product(s, rows, HIDDEN, INTER);
        struct kern_call calls[3];
        calls_of(c, v, e, &up, &down, calls);
        v->run(&calls[0]);
        v->run(&calls[1]);
        gate(c->buffer[GATE], c->buffer[UP], in_bf16(s), rows * at(s, INTER));
        v->run(&calls[2]);
        scatter(c, e);
    }
    for (size_t i = 0; i < all; i++)
        if (in_bf16(s))
            ((uint16_t *)c->buffer[Y])[i] = kern_bf16_from(total[i]);
        else
            ((float *)c->buffer[Y])[i] = total[i];
}

#define VARIANT(id, gemm, gate)                                                                                        \
    static size_t pack_bytes_##id(const struct kern_shape *s) { return pack_bytes_of(s, gemm); }                       \
    static void pack_##id(const struct kern_call *c) { pack_of(c, gemm); }                                             \
    static void run_##id(const struct kern_call *c) { run_of(c, gemm, gate); }

VARIANT(portable, "portable", gate_portable)
#if KERN_X86
VARIANT(avx2, "avx2", gate_avx2)
VARIANT(avx512, "avx512", gate_avx512)
VARIANT(dot, "avx512-bf16", gate_dot)
#elif KERN_ARM
VARIANT(neon, "neon", gate_neon)
VARIANT(bfdot, "neon-bf16", gate_bfdot)
#endif

#define BOTH (KERN_HAS(KERN_FP32) | KERN_HAS(KERN_BF16))
#define OWN(id)                                                                                                        \
    .pack_bytes = pack_bytes_##id, .pack = pack_##id, .run = run_##id, .packed_inputs = 1u << WG | 1u << WU | 1u << WD

static const struct kern_variant VARIANTS[] = {KERN_ROWS_BF16(KERN_UNIT_BF16_DOT, OWN) KERN_ROWS(BOTH, OWN)
                                                   KERN_ROW_PORTABLE(BOTH, OWN)};

/* Narrow experts, many of them; the share of one of eight cards in a layer with eight wide ones. */
static const struct kern_point POINTS[] = {
    {{{16, 2048, 768, 8, 32, 31}, KERN_BF16}, true},
    {{{1, 2048, 768, 8, 32, 8}, KERN_BF16}, false},
    {{{64, 4096, 1792, 2, 8, 8}, KERN_BF16}, false},
};

const struct kern kern_moe = {
    .name = "moe",
    .summary = "routed experts of a layer: top-k, gather, gated MLPs, sum",
    .row_kind = "moe",
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
