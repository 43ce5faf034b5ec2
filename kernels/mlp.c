/* mlp -- the gated MLP of a layer: y = (silu(x Wg^T) * (x Wu^T)) Wd^T, weights stored as checkpoints have them.
 *
 * Counted: 6 * num_tokens * hidden * ffn_full flops, 5 more per hidden element for the gate; x, the weights and y once.
 * What lies between the products is the kernel's own affair. The products are those of kernels/gemm.c, by the same
 * names of variants, each with its packed weights. */
#include <math.h>

#include "kernels/split.h"
#include "kernels/table.h"
#include "kernels/vector.h"

#define LANES_BODY "kernels/mlp_body.h"
#include "kernels/lanes_all.h"

enum { TOKENS, HIDDEN, FFN };
enum { X, WG, WU, WD, Y, GATE, UP, STRIPS, SUMS };

static const struct kern_arg ARGS[] = {
    [TOKENS] = {"num_tokens", 1, 1 << 20, "tokens of the pass"},
    [HIDDEN] = {"hidden", 1, 1 << 20, "width of the model"},
    [FFN] = {"ffn_full", 1, 1 << 20, "width between the products"},
};

static size_t at(const struct kern_shape *s, size_t i) { return (size_t)s->v[i]; }
static bool in_bf16(const struct kern_shape *s) { return s->dtype == KERN_BF16; }
static enum kern_type type_of(const struct kern_shape *s) { return in_bf16(s) ? KERN_TYPE_BF16 : KERN_TYPE_F32; }

static const char *refuses(const struct kern_shape *s)
{
    const double t = (double)s->v[TOKENS], d = (double)s->v[HIDDEN], f = (double)s->v[FFN];
    return 3 * d * f + 2 * t * (d + f) > 0x1p35 ? "num_tokens, hidden and ffn_full together are beyond memory" : NULL;
}

/* The shape of a product: tokens x width -> out. */
static struct kern_shape product(const struct kern_shape *s, size_t out, size_t in)
{
    return (struct kern_shape){{s->v[TOKENS], s->v[out], s->v[in]}, s->dtype};
}

enum { GEMM_A, GEMM_W, GEMM_C, GEMM_STRIPS, GEMM_SUMS }; /* buffers of kern_gemm, in its order */

static size_t buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    const size_t t = at(s, TOKENS), d = at(s, HIDDEN), f = at(s, FFN);
    const struct kern_shape up = product(s, FFN, HIDDEN), down = product(s, HIDDEN, FFN);
    const enum kern_type type = type_of(s);
    struct kern_buffer wide[KERN_BUFFERS_MAX], narrow[KERN_BUFFERS_MAX];
    (void)kern_gemm.buffers(&up, wide);
    (void)kern_gemm.buffers(&down, narrow);
    out[X] = (struct kern_buffer){"x", KERN_INPUT, type, t * d, 1, 0};
    out[WG] = (struct kern_buffer){"gate", KERN_INPUT, type, f * d, 0.05, 0};
    out[WU] = (struct kern_buffer){"up", KERN_INPUT, type, f * d, 0.05, 0};
    out[WD] = (struct kern_buffer){"down", KERN_INPUT, type, d * f, 0.05, 0};
    out[Y] = (struct kern_buffer){"y", KERN_OUTPUT, type, t * d, 0, d};
    out[GATE] = (struct kern_buffer){"gated", KERN_SCRATCH, type, t * f, 0, 0};
    out[UP] = (struct kern_buffer){"upped", KERN_SCRATCH, type, t * f, 0, 0};
    for (size_t i = 0; i < 2; i++) { /* scratch of the larger product */
        const size_t from = GEMM_STRIPS + i;
        out[STRIPS + i] = wide[from].elements > narrow[from].elements ? wide[from] : narrow[from];
    }
    return 9;
}

/* A block is a token. Hidden elements some at a time, so that rows of the last product are read as they lie: one at a
 * time is a column of it, a line of memory for each element (1.8 s instead of 0.8 for a token of 4096 x 14336). */
static void reference(const struct kern_call *c, size_t b, size_t block, double *out)
{
    enum { SOME = 64 };
    const struct kern_shape *s = c->shape;
    const size_t d = at(s, HIDDEN), f = at(s, FFN);
    const enum kern_type type = type_of(s);
    (void)b;
    for (size_t i = 0; i < d; i++) out[i] = 0;
    for (size_t from = 0; from < f; from += SOME) {
        const size_t n = f - from < SOME ? f - from : SOME;
        double hidden[SOME];
        for (size_t j = 0; j < n; j++) {
            double gate = 0, up = 0;
            for (size_t i = 0; i < d; i++) {
                const double x = kern_read(c->buffer[X], type, block * d + i);
                gate += x * kern_read(c->buffer[WG], type, (from + j) * d + i);
                up += x * kern_read(c->buffer[WU], type, (from + j) * d + i);
            }
            hidden[j] = gate / (1 + exp(-gate)) * up;
        }
        for (size_t i = 0; i < d; i++)
            for (size_t j = 0; j < n; j++) out[i] += hidden[j] * kern_read(c->buffer[WD], type, i * f + from + j);
    }
}

static double reference_cost(const struct kern_shape *s, size_t b)
{
    (void)b;
    return 3 * (double)s->v[HIDDEN] * (double)s->v[FFN];
}

static void counts(const struct kern_shape *s, struct kern_counts *out)
{
    const double t = (double)s->v[TOKENS], d = (double)s->v[HIDDEN], f = (double)s->v[FFN], bytes = in_bf16(s) ? 2 : 4;
    *out = (struct kern_counts){.flops = 6 * t * d * f,
                                .vector_flops = 5 * t * f,
                                .read_bytes = bytes * (t * d + 3 * d * f),
                                .written_bytes = bytes * t * d};
}

/* bf16: gate, branch and their product are rounded between the kernels, results once more. */
static double tolerance(const struct kern_shape *s) { return in_bf16(s) ? 1e-2 : 1e-5; }

/* -- the products -- */

/* A product as a call of the gemm: from, weights, to; where its packed weights lie in c->packed. */
static struct kern_call gemm_call(const struct kern_call *c, const struct kern_shape *shape, size_t a, size_t w,
                                  size_t to, size_t offset)
{
    struct kern_call g = {.shape = shape, .machine = c->machine, .packed = (char *)c->packed + offset};
    g.buffer[GEMM_A] = c->buffer[a];
    g.buffer[GEMM_W] = c->buffer[w];
    g.buffer[GEMM_C] = c->buffer[to];
    g.buffer[GEMM_STRIPS] = c->buffer[STRIPS];
    g.buffer[GEMM_SUMS] = c->buffer[SUMS];
    g.part = c->part;
    g.parts = c->parts;
    g.meet = c->meet;
    g.team = c->team;
    return g;
}

static size_t pack_bytes_of(const struct kern_shape *s, const char *name)
{
    const struct kern_shape up = product(s, FFN, HIDDEN), down = product(s, HIDDEN, FFN);
    return 2 * kern_pack_room(kern_variant_find(&kern_gemm, name), &up) +
           kern_pack_room(kern_variant_find(&kern_gemm, name), &down);
}

static void pack_of(const struct kern_call *c, const char *name)
{
    const struct kern_variant *v = kern_variant_find(&kern_gemm, name);
    const struct kern_shape up = product(c->shape, FFN, HIDDEN), down = product(c->shape, HIDDEN, FFN);
    const size_t room = kern_pack_room(v, &up);
    const struct kern_call calls[] = {gemm_call(c, &up, X, WG, GATE, 0), gemm_call(c, &up, X, WU, UP, room),
                                      gemm_call(c, &down, GATE, WD, Y, 2 * room)};
    for (size_t i = 0; i < 3; i++) v->pack(&calls[i]);
}

/* The gate on the columns that the products of a part have written. */
static void gate_part(const struct kern_call *c, void (*gate)(void *gate, const void *up, bool bf16, size_t n))
{
    enum { PAIR = 32 }; /* columns that threads of kernels/gemm.c have at least, but for the last */
    const size_t f = at(c->shape, FFN), tokens = at(c->shape, TOKENS), bytes = in_bf16(c->shape) ? 2 : 4;
    if (c->parts <= 1) {
        gate(c->buffer[GATE], c->buffer[UP], in_bf16(c->shape), tokens * f);
        return;
    }
    const size_t pairs = (f + PAIR - 1) / PAIR, from = kern_split_from(pairs, c->part, c->parts) * PAIR;
    size_t end = kern_split_from(pairs, c->part + 1, c->parts) * PAIR;
    end = end < f ? end : f;
    for (size_t t = 0; t < tokens && from < end; t++) {
        const size_t before = (t * f + from) * bytes;
        gate((char *)c->buffer[GATE] + before, (const char *)c->buffer[UP] + before, in_bf16(c->shape), end - from);
    }
}

static void run_of(const struct kern_call *c, const char *name,
                   void (*gate)(void *gate, const void *up, bool bf16, size_t n))
{
    const struct kern_variant *v = kern_variant_find(&kern_gemm, name);
    const struct kern_shape up = product(c->shape, FFN, HIDDEN), down = product(c->shape, HIDDEN, FFN);
    const size_t room = kern_pack_room(v, &up);
    const struct kern_call first = gemm_call(c, &up, X, WG, GATE, 0), second = gemm_call(c, &up, X, WU, UP, room);
    const struct kern_call third = gemm_call(c, &down, GATE, WD, Y, 2 * room);
    v->run(&first);
    kern_meet(c); /* all have read the strips that the second makes again */
    v->run(&second);
    gate_part(c, gate);
    kern_meet(c);
    v->run(&third);
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
VARIANT(tiles, "amx-bf16", gate_dot)
#elif KERN_ARM
VARIANT(neon, "neon", gate_neon)
VARIANT(bfdot, "neon-bf16", gate_bfdot)
#endif

#define BOTH (KERN_HAS(KERN_FP32) | KERN_HAS(KERN_BF16))
#define OWN(id)                                                                                                        \
    .pack_bytes = pack_bytes_##id, .pack = pack_##id, .run = run_##id, .packed_inputs = 1u << WG | 1u << WU | 1u << WD

static const struct kern_variant VARIANTS[] = {KERN_ROWS_TILES(OWN) KERN_ROWS_BF16(KERN_UNIT_BF16_DOT, OWN)
                                                   KERN_ROWS(BOTH, OWN) KERN_ROW_PORTABLE(BOTH, OWN)};

/* A layer of a model of 8 billion parameters, and a smaller one in fp32. */
static const struct kern_point POINTS[] = {
    {{{1, 2048, 5632}, KERN_BF16}, true},   {{{16, 2048, 5632}, KERN_BF16}, true},
    {{{1, 4096, 14336}, KERN_BF16}, false}, {{{16, 4096, 14336}, KERN_BF16}, false},
    {{{1, 2048, 5632}, KERN_FP32}, false},  {{{64, 2048, 5632}, KERN_FP32}, false},
};

const struct kern kern_mlp = {
    .name = "mlp",
    .summary = "gated MLP of a layer: gate, up, silu, down",
    .row_kind = "mlp",
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
