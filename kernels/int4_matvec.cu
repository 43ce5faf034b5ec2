/* int4-matvec on a card: weights of 4 bits straight into the tensor cores.
 *
 * The bits of bf16 128 + h are 0x4300 | h, so that a mask and an or make two factors out of two halves of a word: those
 * of elements e and e + 4 of its eight. The order of k within a product is free as long as both factors have the same:
 * the activations are paired in the same way. What 128 + h is too much, 136 of each activation, is taken off by the
 * sums of the activations of a group, which a product with ones gives in the registers where they are needed. A warp
 * has 16 columns of c; the four lanes that share one read 64 bytes of its row, which is a group of 128, four groups
 * ahead of their use; the eight warps of a block take every eighth group each. Rows of a beyond 16 are further blocks,
 * whose reads the second cache serves. */
#include "kernels/device.h"

enum { M, N, K };
enum { WARPS = 8, THREADS = 256, TILES = 2, AHEAD = 4, GROUP = 128, LANE = 32 /* weights of a lane */, WORD = 8 };
enum { ROWS = 16, COLUMNS = 8 * TILES };

struct int4_args {
    const uint16_t *a, *scales;
    const uint8_t *w;
    uint16_t *c;
    int m, n, k, groups;
};

/* The 32 weights from k on of row j; zeros, which stand for -8, beyond the end: activations are zero there. */
KERN_FN uint4 int4_weights(const struct int4_args *s, int j, int k)
{
    const size_t row = ((size_t)s->k + 1) / 2;
    uint4 v = {0, 0, 0, 0};
    if (j >= s->n || k >= s->k) return v;
    const uint8_t *const from = s->w + (size_t)j * row + (size_t)k / 2;
    if (s->k % LANE == 0) return kern_load_once(from);
    const int left = (int)row - k / 2;
    uint32_t word[4] = {0, 0, 0, 0};
    KERN_UNROLL_LOOP
    for (int i = 0; i < 16; i++)
        if (i < left) word[i / 4] |= (uint32_t)from[i] << i % 4 * 8;
    v.x = word[0], v.y = word[1], v.z = word[2], v.w = word[3];
    return v;
}

/* Eight activations of row i from k on as pairs of elements e and e + 4. */
KERN_FN void int4_activations(const struct int4_args *s, int i, int k, uint32_t pair[4])
{
    uint32_t x[4] = {0, 0, 0, 0}; /* pairs of neighbours */
    if (i < s->m && k < s->k) {
        const uint16_t *const from = s->a + (size_t)i * (size_t)s->k + k;
        if (s->k % WORD == 0) {
            const uint4 v = *(const uint4 *)(const void *)from;
            x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
        } else {
            KERN_UNROLL_LOOP
            for (int e = 0; e < WORD; e++)
                if (k + e < s->k) x[e / 2] |= (uint32_t)from[e] << e % 2 * 16;
        }
    }
    KERN_UNROLL_LOOP
    for (int e = 0; e < 2; e++) {
        pair[2 * e] = (x[e] & 0xffffu) | x[e + 2] << 16;
        pair[2 * e + 1] = x[e] >> 16 | (x[e + 2] & 0xffff0000u);
    }
}

KERN_FN float int4_scale(const struct int4_args *s, int j, int group)
{
    return j < s->n ? kern_low_bf16(s->scales[(size_t)j * (size_t)s->groups + (size_t)group]) : 0;
}

/* One group: products of the halves, less 136 of each activation, times the scale of each column. */
KERN_FN void int4_group(const struct int4_args *s, float sum[TILES][4], const uint4 w[TILES], int group, int row,
                        int column)
{
    const int lane = (int)threadIdx.x % KERN_WARP, k = group * GROUP + lane % 4 * LANE;
    const uint32_t ones[2] = {0x3f803f80u, 0x3f803f80u};
    float part[TILES][4], all[4] = {0, 0, 0, 0};
    KERN_UNROLL_LOOP
    for (int t = 0; t < TILES; t++) part[t][0] = part[t][1] = part[t][2] = part[t][3] = 0;
    KERN_UNROLL_LOOP
    for (int i = 0; i < 4; i++) {
        uint32_t low[4], high[4]; /* of rows lane / 4 and 8 more */
        int4_activations(s, row + lane / 4, k + i * WORD, low);
        int4_activations(s, row + lane / 4 + 8, k + i * WORD, high);
        KERN_UNROLL_LOOP
        for (int e = 0; e < 2; e++) {
            const uint32_t x[4] = {low[2 * e], high[2 * e], low[2 * e + 1], high[2 * e + 1]};
            kern_mma_bf16(all, x, ones);
            KERN_UNROLL_LOOP
            for (int t = 0; t < TILES; t++) {
                const uint32_t word = i == 0 ? w[t].x : i == 1 ? w[t].y : i == 2 ? w[t].z : w[t].w;
                const uint32_t y[2] = {(word >> 8 * e & 0x000f000fu) | 0x43004300u,
                                       (word >> (8 * e + 4) & 0x000f000fu) | 0x43004300u};
                kern_mma_bf16(part[t], x, y);
            }
        }
    }
    KERN_UNROLL_LOOP
    for (int t = 0; t < TILES; t++) {
        const int j = column + t * 8 + lane % 4 * 2;
        const float scale[2] = {int4_scale(s, j, group), int4_scale(s, j + 1, group)};
        KERN_UNROLL_LOOP
        for (int r = 0; r < 4; r++) sum[t][r] += scale[r % 2] * (part[t][r] - 136 * all[r]);
    }
}

KERN_GLOBAL(int4_product, struct int4_args, s, THREADS)
{
    KERN_SHARED_MEMORY(shared);
    float *const parts = (float *)(void *)shared; /* [warp][tile][register][lane] */
    const int warp = (int)threadIdx.x / KERN_WARP, lane = (int)threadIdx.x % KERN_WARP;
    const int column = (int)blockIdx.x * COLUMNS, row = (int)blockIdx.y * ROWS;
    float sum[TILES][4];
    KERN_UNROLL_LOOP
    for (int t = 0; t < TILES; t++) sum[t][0] = sum[t][1] = sum[t][2] = sum[t][3] = 0;
    for (int first = warp; first < s.groups; first += WARPS * AHEAD) {
        uint4 w[AHEAD][TILES];
        KERN_UNROLL_LOOP
        for (int i = 0; i < AHEAD; i++) {
            KERN_UNROLL_LOOP
            for (int t = 0; t < TILES; t++)
                w[i][t] = int4_weights(&s, column + t * 8 + lane / 4, (first + i * WARPS) * GROUP + lane % 4 * LANE);
        }
        KERN_UNROLL_LOOP
        for (int i = 0; i < AHEAD; i++)
            if (first + i * WARPS < s.groups) int4_group(&s, sum, w[i], first + i * WARPS, row, column);
    }
    KERN_UNROLL_LOOP
    for (int t = 0; t < TILES; t++) {
        KERN_UNROLL_LOOP
        for (int r = 0; r < 4; r++) parts[((warp * TILES + t) * 4 + r) * KERN_WARP + lane] = sum[t][r];
    }
    __syncthreads();
    const int t = (int)threadIdx.x / (4 * KERN_WARP), r = warp % 4; /* a thread one result */
    const int i = row + lane / 4 + r / 2 * 8, j = column + t * 8 + lane % 4 * 2 + r % 2;
    float whole = 0;
    KERN_UNROLL_LOOP
    for (int from = 0; from < WARPS; from++) whole += parts[((from * TILES + t) * 4 + r) * KERN_WARP + lane];
    if (i < s.m && j < s.n) s.c[(size_t)i * (size_t)s.n + (size_t)j] = kern_one_bf16(whole);
}

static const char *int4_lacks(const struct kern_machine *m, const struct kern_shape *s)
{
    (void)s;
    return m->capability < 80 ? "no bf16 tensor cores: compute capability 8.0 or higher" : NULL;
}

static void int4_run(const struct kern_call *c)
{
    const int m = (int)c->shape->v[M], n = (int)c->shape->v[N], k = (int)c->shape->v[K];
    const struct int4_args args = {(const uint16_t *)c->buffer[0],
                                   (const uint16_t *)c->buffer[2],
                                   (const uint8_t *)c->buffer[1],
                                   (uint16_t *)c->buffer[3],
                                   m,
                                   n,
                                   k,
                                   (k + GROUP - 1) / GROUP};
    KERN_LAUNCH(int4_product, (n + COLUMNS - 1) / COLUMNS, (m + ROWS - 1) / ROWS, 1, THREADS,
                sizeof(float) * WARPS * TILES * 4 * KERN_WARP, c->stream, args);
}

static const struct kern_variant VARIANTS[] = {
    {"cuda-mma", KERN_UNIT_TENSOR, KERN_HAS(KERN_INT4_G128), int4_lacks, NULL, NULL, int4_run, 0, false, NULL},
};

/* Layers of models of 8 and 70 billion parameters. */
static const struct kern_point POINTS[] = {
    {{{1, 14336, 4096}, KERN_INT4_G128}, true},
    {{{1, 28672, 8192}, KERN_INT4_G128}, true},
    {{{8, 8192, 28672}, KERN_INT4_G128}, false},
    {{{16, 28672, 8192}, KERN_INT4_G128}, false},
};

const struct kern_cuda kern_cuda_int4_matvec = {&kern_int4_matvec, VARIANTS, 1, POINTS,
                                                sizeof POINTS / sizeof POINTS[0]};
