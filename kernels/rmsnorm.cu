/* rmsnorm on a card: a row is read once, in pieces of 16 bytes that stay in registers between the sum and the product.
 *
 * Rows of up to 32 pieces, as those of heads are, have a warp each, wider ones a block. What a thread cannot hold of a
 * row it reads again, from the second cache. Rows that begin between pieces are read element by element. */
#include "kernels/device.h"

enum { TOKENS, HIDDEN };
enum { X, WEIGHT, Y };
enum { THREADS = 256, WARPS = THREADS / KERN_WARP, HELD = 4 /* pieces of a thread */, PIECE_MAX = 8 };

struct norm_args {
    const void *x, *weight;
    void *y;
    int rows, n;
};

/* Elements of a piece: 8 bf16 or 4 fp32. */
KERN_BOTH int norm_piece(bool bf16) { return bf16 ? 8 : 4; }

/* Piece `piece` of the n elements at x, zeros behind them. */
KERN_FN uint4 norm_load(const void *x, int piece, int n, bool bf16)
{
    const int first = piece * norm_piece(bf16), left = n - first;
    uint32_t word[4] = {0, 0, 0, 0};
    uint4 v = {0, 0, 0, 0};
    if (left <= 0) return v;
    if (n % norm_piece(bf16) == 0) return *((const uint4 *)x + piece);
    KERN_UNROLL_LOOP
    for (int i = 0; i < norm_piece(bf16); i++) {
        if (i >= left) continue;
        if (bf16)
            word[i / 2] |= (uint32_t)((const uint16_t *)x)[first + i] << i % 2 * 16;
        else
            word[i] = ((const uint32_t *)x)[first + i];
    }
    v.x = word[0], v.y = word[1], v.z = word[2], v.w = word[3];
    return v;
}

KERN_FN void norm_store(void *y, int piece, int n, uint4 v, bool bf16)
{
    const int first = piece * norm_piece(bf16), left = n - first;
    const uint32_t word[4] = {v.x, v.y, v.z, v.w};
    if (left <= 0) return;
    if (n % norm_piece(bf16) == 0) {
        *((uint4 *)y + piece) = v;
        return;
    }
    KERN_UNROLL_LOOP
    for (int i = 0; i < norm_piece(bf16); i++) {
        if (i >= left) continue;
        if (bf16)
            ((uint16_t *)y)[first + i] = (uint16_t)(word[i / 2] >> i % 2 * 16);
        else
            ((uint32_t *)y)[first + i] = word[i];
    }
}

/* The elements of a piece. */
KERN_FN void norm_open(uint4 v, float e[PIECE_MAX], bool bf16)
{
    const uint32_t word[4] = {v.x, v.y, v.z, v.w};
    KERN_UNROLL_LOOP
    for (int i = 0; i < 4; i++) {
        if (bf16)
            e[2 * i] = kern_low_bf16(word[i]), e[2 * i + 1] = kern_high_bf16(word[i]);
        else
            e[i] = __uint_as_float(word[i]);
    }
}

KERN_FN uint4 norm_close(const float e[PIECE_MAX], bool bf16)
{
    uint32_t word[4];
    KERN_UNROLL_LOOP
    for (int i = 0; i < 4; i++) word[i] = bf16 ? kern_pair_bf16(e[2 * i], e[2 * i + 1]) : __float_as_uint(e[i]);
    const uint4 v = {word[0], word[1], word[2], word[3]};
    return v;
}

KERN_FN float norm_squares(uint4 v, bool bf16)
{
    float e[PIECE_MAX], sum = 0;
    norm_open(v, e, bf16);
    KERN_UNROLL_LOOP
    for (int i = 0; i < norm_piece(bf16); i++) sum += e[i] * e[i];
    return sum;
}

KERN_FN void norm_scale(const struct norm_args *a, void *y, uint4 v, int piece, float scale, bool bf16)
{
    float e[PIECE_MAX], w[PIECE_MAX];
    norm_open(v, e, bf16);
    norm_open(norm_load(a->weight, piece, a->n, bf16), w, bf16);
    KERN_UNROLL_LOOP
    for (int i = 0; i < norm_piece(bf16); i++) e[i] = e[i] * scale * w[i];
    norm_store(y, piece, a->n, norm_close(e, bf16), bf16);
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

/* One row by `threads` threads, of which this is number `t`: a warp, or the block. */
KERN_FN void norm_row(const struct norm_args *a, float *sums, int row, int t, int threads, bool bf16)
{
    const size_t at = (size_t)row * (size_t)a->n * (bf16 ? 2 : 4);
    const void *const x = (const unsigned char *)a->x + at;
    void *const y = (unsigned char *)a->y + at;
    const int pieces = (a->n + norm_piece(bf16) - 1) / norm_piece(bf16);
    uint4 held[HELD];
    float sum = 0;
    KERN_UNROLL_LOOP
    for (int i = 0; i < HELD; i++) held[i] = norm_load(x, t + i * threads, a->n, bf16);
    KERN_UNROLL_LOOP
    for (int i = 0; i < HELD; i++) sum += norm_squares(held[i], bf16);
    for (int i = t + HELD * threads; i < pieces; i += threads) sum += norm_squares(norm_load(x, i, a->n, bf16), bf16);
    sum = threads == KERN_WARP ? norm_of_warp(sum) : norm_of_block(sum, sums);
    const float scale = rsqrtf(sum / (float)a->n + 1e-5f);
    KERN_UNROLL_LOOP
    for (int i = 0; i < HELD; i++)
        if (t + i * threads < pieces) norm_scale(a, y, held[i], t + i * threads, scale, bf16);
    for (int i = t + HELD * threads; i < pieces; i += threads)
        norm_scale(a, y, norm_load(x, i, a->n, bf16), i, scale, bf16);
}

KERN_FN void norm_narrow(const struct norm_args *a, bool bf16)
{
    const int row = (int)blockIdx.x * WARPS + (int)threadIdx.x / KERN_WARP;
    if (row < a->rows) norm_row(a, NULL, row, (int)threadIdx.x % KERN_WARP, KERN_WARP, bf16);
}

KERN_FN void norm_wide(const struct norm_args *a, unsigned char *shared, bool bf16)
{
    norm_row(a, (float *)(void *)shared, (int)blockIdx.x, (int)threadIdx.x, THREADS, bf16);
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
    if (a.n <= KERN_WARP * norm_piece(bf16)) {
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
