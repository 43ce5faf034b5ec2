/* rmsnorm on a card: a row is read once, in pieces of 16 bytes that stay in registers between the sum and the product.
 *
 * Rows of up to 32 pieces, as those of heads are, have a warp each, wider ones a block. What a thread cannot hold of a
 * row it reads again, from the second cache. Rows that begin between pieces are read element by element. */
#include "kernels/piece.h"

enum { TOKENS, HIDDEN };
enum { X, WEIGHT, Y };
enum { THREADS = 256, WARPS = THREADS / KERN_WARP, HELD = 4 /* pieces of a thread */ };

struct norm_args {
    const void *x, *weight;
    void *y;
    int rows, n;
};

KERN_FN float norm_squares(uint4 v, bool bf16)
{
    float e[PIECE_MAX], sum = 0;
    piece_open(v, e, bf16);
    KERN_UNROLL_LOOP
    for (int i = 0; i < piece_elements(bf16); i++) sum += e[i] * e[i];
    return sum;
}

KERN_FN void norm_scale(const struct norm_args *a, void *y, uint4 v, int piece, float scale, bool bf16)
{
    float e[PIECE_MAX], w[PIECE_MAX];
    piece_open(v, e, bf16);
    piece_open(piece_load(a->weight, piece, a->n, bf16), w, bf16);
    KERN_UNROLL_LOOP
    for (int i = 0; i < piece_elements(bf16); i++) e[i] = e[i] * scale * w[i];
    piece_store(y, piece, a->n, piece_close(e, bf16), bf16);
}

KERN_FN float norm_of_warp(float v)
{
    KERN_UNROLL_LOOP
    for (int by = KERN_WARP / 2; by > 0; by /= 2) v += __shfl_xor_sync(KERN_ALL, v, by);
    return v;
}

/* The sum over the block, for every thread; sums[WARPS]. */
KERN_FN float norm_of_block(float v, float *sums)
{
    float sum = 0;
    v = norm_of_warp(v);
    if (threadIdx.x % KERN_WARP == 0) sums[threadIdx.x / KERN_WARP] = v;
    __syncthreads();
    KERN_UNROLL_LOOP
    for (int w = 0; w < WARPS; w++) sum += sums[w];
    return sum;
}

/* One row by `threads` threads, of which this is number `t`: a warp, or the block. A thread holds `most` pieces. */
KERN_FN void norm_row(const struct norm_args *a, float *sums, int row, int t, int threads, int most, bool bf16)
{
    const size_t at = (size_t)row * (size_t)a->n * (bf16 ? 2 : 4);
    const void *const x = (const unsigned char *)a->x + at;
    void *const y = (unsigned char *)a->y + at;
    const int pieces = (a->n + piece_elements(bf16) - 1) / piece_elements(bf16);
    uint4 held[HELD];
    float sum = 0;
    KERN_UNROLL_LOOP
    for (int i = 0; i < most; i++) held[i] = piece_load(x, t + i * threads, a->n, bf16);
    KERN_UNROLL_LOOP
    for (int i = 0; i < most; i++) sum += norm_squares(held[i], bf16);
    for (int i = t + most * threads; i < pieces; i += threads) sum += norm_squares(piece_load(x, i, a->n, bf16), bf16);
    sum = threads == KERN_WARP ? norm_of_warp(sum) : norm_of_block(sum, sums);
    const float scale = rsqrtf(sum / (float)a->n + 1e-5f);
    KERN_UNROLL_LOOP
    for (int i = 0; i < most; i++)
        if (t + i * threads < pieces) norm_scale(a, y, held[i], t + i * threads, scale, bf16);
    for (int i = t + most * threads; i < pieces; i += threads)
        norm_scale(a, y, piece_load(x, i, a->n, bf16), i, scale, bf16);
}

KERN_FN void norm_narrow(const struct norm_args *a, bool bf16)
{
    const int row = (int)blockIdx.x * WARPS + (int)threadIdx.x / KERN_WARP;
    if (row < a->rows) norm_row(a, NULL, row, (int)threadIdx.x % KERN_WARP, KERN_WARP, 1, bf16);
}

KERN_FN void norm_wide(const struct norm_args *a, unsigned char *shared, bool bf16)
{
    norm_row(a, (float *)(void *)shared, (int)blockIdx.x, (int)threadIdx.x, THREADS, HELD, bf16);
}

KERN_GLOBAL(rmsnorm_narrow_bf16, struct norm_args, a, THREADS) { norm_narrow(&a, true); }
KERN_GLOBAL(rmsnorm_narrow_fp32, struct norm_args, a, THREADS) { norm_narrow(&a, false); }
KERN_GLOBAL(rmsnorm_wide_bf16, struct norm_args, a, THREADS)
{
    KERN_SHARED_MEMORY(shared);
    norm_wide(&a, shared, true);
}
KERN_GLOBAL(rmsnorm_wide_fp32, struct norm_args, a, THREADS)
{
    KERN_SHARED_MEMORY(shared);
    norm_wide(&a, shared, false);
}

static void rmsnorm_run(const struct kern_call *c)
{
    const bool bf16 = c->shape->dtype == KERN_BF16;
    const struct norm_args a = {c->buffer[X], c->buffer[WEIGHT], c->buffer[Y], (int)c->shape->v[TOKENS],
                                (int)c->shape->v[HIDDEN]};
    const unsigned narrow = (unsigned)(a.rows + WARPS - 1) / WARPS, wide = (unsigned)a.rows;
    const size_t sums = sizeof(float) * WARPS;
    if (a.n <= KERN_WARP * piece_elements(bf16)) {
        if (bf16)
            KERN_LAUNCH(rmsnorm_narrow_bf16, narrow, 1, 1, THREADS, 0, c->stream, a);
        else
            KERN_LAUNCH(rmsnorm_narrow_fp32, narrow, 1, 1, THREADS, 0, c->stream, a);
    } else if (bf16)
        KERN_LAUNCH(rmsnorm_wide_bf16, wide, 1, 1, THREADS, sums, c->stream, a);
    else
        KERN_LAUNCH(rmsnorm_wide_fp32, wide, 1, 1, THREADS, sums, c->stream, a);
}

static const struct kern_variant VARIANTS[] = {
    {"cuda", KERN_UNIT_FP32, KERN_HAS(KERN_BF16) | KERN_HAS(KERN_FP32), NULL, NULL, NULL, rmsnorm_run, 0, false, NULL},
};

/* Layers of models of 8 and 70 billion parameters, decoding and in a prompt; heads. */
static const struct kern_point POINTS[] = {
    {{{64, 4096}, KERN_BF16}, true},     {{{8192, 4096}, KERN_BF16}, true},     {{{8192, 8192}, KERN_BF16}, false},
    {{{4096, 8192}, KERN_FP32}, false}, {{{262144, 128}, KERN_BF16}, false},
};

const struct kern_cuda kern_cuda_rmsnorm = {&kern_rmsnorm, VARIANTS, 1, POINTS, sizeof POINTS / sizeof POINTS[0]};
