/* mlp on a card: the products of gemm, whatever their variant, and the gate between them in place. */
#include "kernels/device.h"

enum { TOKENS, HIDDEN, FFN };
enum { X, GATE, UP, DOWN, Y };
enum { THREADS = 256, PIECE = 8 /* elements */, ALIGNED = 256 };

struct gate_args {
    uint16_t *gate; /* silu(gate) * up, in its place */
    const uint16_t *up;
    uint64_t n;
};

KERN_FN float mlp_gate_one(float gate, float up) { return gate / (1 + kern_exp2(-1.44269504f * gate)) * up; }

KERN_FN uint32_t mlp_gate_pair(uint32_t gate, uint32_t up)
{
    return kern_pair_bf16(mlp_gate_one(kern_low_bf16(gate), kern_low_bf16(up)),
                          mlp_gate_one(kern_high_bf16(gate), kern_high_bf16(up)));
}

KERN_GLOBAL(mlp_gate, struct gate_args, s, THREADS)
{
    const uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x, pieces = s.n / PIECE;
    if (i < pieces) {
        uint4 *const at = (uint4 *)(void *)s.gate + i;
        const uint4 gate = *at, up = kern_load_once((const uint4 *)(const void *)s.up + i);
        const uint4 v = {mlp_gate_pair(gate.x, up.x), mlp_gate_pair(gate.y, up.y), mlp_gate_pair(gate.z, up.z),
                         mlp_gate_pair(gate.w, up.w)};
        *at = v;
    } else if (i < pieces + s.n % PIECE) {
        uint16_t *const at = s.gate + pieces * PIECE + (i - pieces);
        *at = kern_one_bf16(mlp_gate_one(kern_low_bf16(*at), kern_low_bf16(s.up[at - s.gate])));
    }
}

/* Bytes of the width between the products, rounded up. */
static size_t mlp_wide(const struct kern_shape *s)
{
    return ((size_t)s->v[TOKENS] * (size_t)s->v[FFN] * 2 + ALIGNED - 1) / ALIGNED * ALIGNED;
}

static struct kern_shape mlp_product(const struct kern_shape *s, int out, int in)
{
    struct kern_shape p = *s;
    p.v[0] = s->v[TOKENS];
    p.v[1] = s->v[out];
    p.v[2] = s->v[in];
    return p;
}

size_t kern_cuda_mlp_scratch(const struct kern_shape *s, const struct kern_machine *m, const struct kern_variant *gemm)
{
    const struct kern_shape up = mlp_product(s, FFN, HIDDEN), down = mlp_product(s, HIDDEN, FFN);
    size_t more = 0;
    if (gemm->scratch_bytes) {
        const size_t one = gemm->scratch_bytes(&up, m), other = gemm->scratch_bytes(&down, m);
        more = one > other ? one : other;
    }
    return 2 * mlp_wide(s) + more;
}

const char *kern_cuda_mlp_lacks(const struct kern_machine *m, const struct kern_shape *s,
                                const struct kern_variant *gemm)
{
    const struct kern_shape up = mlp_product(s, FFN, HIDDEN), down = mlp_product(s, HIDDEN, FFN);
    const char *why = gemm->lacks ? gemm->lacks(m, &up) : NULL;
    return why || !gemm->lacks ? why : gemm->lacks(m, &down);
}

void kern_cuda_mlp_run(const struct kern_call *c, const struct kern_variant *gemm)
{
    const struct kern_shape up = mlp_product(c->shape, FFN, HIDDEN), down = mlp_product(c->shape, HIDDEN, FFN);
    unsigned char *const gated = (unsigned char *)c->scratch, *const upped = gated + mlp_wide(c->shape);
    struct kern_call g = *c;
    g.shape = &up;
    g.scratch = upped + mlp_wide(c->shape);
    g.buffer[0] = c->buffer[X];
    g.buffer[1] = c->buffer[GATE];
    g.buffer[2] = gated;
    gemm->run(&g);
    g.buffer[1] = c->buffer[UP];
    g.buffer[2] = upped;
    gemm->run(&g);
    const struct gate_args args = {(uint16_t *)(void *)gated, (const uint16_t *)(const void *)upped,
                                   (uint64_t)c->shape->v[TOKENS] * (uint64_t)c->shape->v[FFN]};
    KERN_LAUNCH(mlp_gate, (args.n / PIECE + PIECE + THREADS - 1) / THREADS, 1, 1, THREADS, 0, c->stream, args);
    g.shape = &down;
    g.buffer[0] = gated;
    g.buffer[1] = c->buffer[DOWN];
    g.buffer[2] = c->buffer[Y];
    gemm->run(&g);
}

static const char *mlp_lacks(const struct kern_machine *m, const struct kern_shape *s)
{
    return kern_cuda_mlp_lacks(m, s, kern_cuda_gemm.variants);
}
static size_t mlp_scratch(const struct kern_shape *s, const struct kern_machine *m)
{
    return kern_cuda_mlp_scratch(s, m, kern_cuda_gemm.variants);
}
static void mlp_run(const struct kern_call *c) { kern_cuda_mlp_run(c, kern_cuda_gemm.variants); }

static const struct kern_variant VARIANTS[] = {
    {"cuda-mma", KERN_UNIT_TENSOR, KERN_HAS(KERN_BF16), mlp_lacks, NULL, NULL, mlp_run, 0, false, mlp_scratch},
};

/* Layers of models of 8 and 70 billion parameters. */
static const struct kern_point POINTS[] = {
    {{{1, 4096, 14336}, KERN_BF16}, true},
    {{{64, 4096, 14336}, KERN_BF16}, true},
    {{{2048, 4096, 14336}, KERN_BF16}, true},
    {{{16, 8192, 28672}, KERN_BF16}, false},
};

const struct kern_cuda kern_cuda_mlp = {&kern_mlp, VARIANTS, 1, POINTS, sizeof POINTS / sizeof POINTS[0]};
