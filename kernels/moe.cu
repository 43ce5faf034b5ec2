/* moe on a card: bf16, experts' products by the tensor cores (mma.sync), sums in fp32, only weights of experts that a
 * token chose read.
 *
 * A warp chooses the experts of a token and counts them: what the count was before is the token's rank with that
 * expert. Sums over the counts give where rows and tiles of an expert begin; then each choice says where its row comes
 * from, and the first of a tile says whose tile it is. That is one block for few tokens, four kernels for many. The
 * products then go over all tiles there can be, and blocks beyond those that there are end at once. Rows of the first
 * are read where the token has them; gate and branch are taken by the same block, whose warps hold both of a column, so
 * that only their product is stored. Results of experts are weighed and summed by token. Tiles are as in gemm.cu:
 * copies into a ring of stages 64 elements of k deep; 16 rows where experts have few, whose four warps take a quarter
 * of k each, else 64 or 128. */
#include "kernels/moe_tile.h"

enum { TOKENS, HIDDEN, INTER, TOPK, EXPERTS, ACTIVE };
enum { X, LOGITS, GATE, UP, DOWN, Y };
enum { PLAN_TOKENS = 64, ALIGNED = 256 };

/* -- who goes where -- */

KERN_GLOBAL(moe_plan, struct moe_args, a, PLAN_THREADS)
{
    KERN_SHARED_MEMORY(shared);
    for (int e = (int)threadIdx.x; e < a.experts; e += PLAN_THREADS) a.count[e] = 0;
    __syncthreads();
    for (int t = (int)threadIdx.x / KERN_WARP; t < a.tokens; t += PLAN_WARPS) moe_route(&a, t);
    __syncthreads();
    moe_scan(&a, (int *)(void *)shared);
    for (int i = (int)threadIdx.x; i < a.tokens * a.topk; i += PLAN_THREADS) moe_place(&a, i);
}

KERN_GLOBAL(moe_plan_clear, struct moe_args, a, PLAN_THREADS)
{
    const int e = (int)(blockIdx.x * PLAN_THREADS + threadIdx.x);
    if (e < a.experts) a.count[e] = 0;
}
KERN_GLOBAL(moe_plan_route, struct moe_args, a, PLAN_THREADS)
{
    const int token = (int)(blockIdx.x * PLAN_WARPS + threadIdx.x / KERN_WARP);
    if (token < a.tokens) moe_route(&a, token);
}
KERN_GLOBAL(moe_plan_scan, struct moe_args, a, PLAN_THREADS)
{
    KERN_SHARED_MEMORY(shared);
    moe_scan(&a, (int *)(void *)shared);
}
KERN_GLOBAL(moe_plan_place, struct moe_args, a, PLAN_THREADS)
{
    const int64_t i = (int64_t)blockIdx.x * PLAN_THREADS + threadIdx.x;
    if (i < (int64_t)a.tokens * a.topk) moe_place(&a, (int)i);
}

/* -- products -- */

#define PRODUCT(name, threads, call)                                                                                   \
    KERN_GLOBAL(name, struct moe_args, a, threads)                                                                     \
    {                                                                                                                  \
        KERN_SHARED_MEMORY(shared);                                                                                    \
        call;                                                                                                          \
    }
PRODUCT(moe_up_16, FEW_THREADS, moe_few(&a, shared, false))
PRODUCT(moe_down_16, FEW_THREADS, moe_few(&a, shared, true))
PRODUCT(moe_up_64, THREADS, moe_many(&a, shared, 64, false))
PRODUCT(moe_down_64, THREADS, moe_many(&a, shared, 64, true))
PRODUCT(moe_up_128, THREADS, moe_many(&a, shared, 128, false))
PRODUCT(moe_down_128, THREADS, moe_many(&a, shared, 128, true))

/* -- the sum of a token's experts -- */

KERN_FN void moe_add_pair(float v[2], float weight, uint32_t pair)
{
    v[0] += weight * kern_low_bf16(pair);
    v[1] += weight * kern_high_bf16(pair);
}

KERN_GLOBAL(moe_sum, struct moe_args, a, THREADS)
{
    const int parts = tile_parts(a.hidden, THREADS * TILE_PIECE);
    const size_t token = blockIdx.x / (unsigned)parts, hidden = (size_t)a.hidden;
    const int d = ((int)(blockIdx.x % (unsigned)parts) * THREADS + (int)threadIdx.x) * TILE_PIECE;
    const int n = tile_min(a.hidden - d, TILE_PIECE);
    float sum = 0, v[4][2] = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
    if (n <= 0) return;
    for (int j = 0; j < a.topk; j++) {
        const size_t i = token * (size_t)a.topk + (size_t)j;
        const float weight = a.weight[i];
        const uint16_t *const from = a.result + (size_t)a.row[i] * hidden + d;
        uint4 piece = {0, 0, 0, 0};
        if (a.hidden % TILE_PIECE == 0) {
            piece = kern_load_once(from);
        } else {
            uint16_t one[TILE_PIECE] = {0, 0, 0, 0, 0, 0, 0, 0};
            KERN_UNROLL_LOOP
            for (int k = 0; k < TILE_PIECE; k++)
                if (k < n) one[k] = from[k];
            piece.x = one[0] | (uint32_t)one[1] << 16, piece.y = one[2] | (uint32_t)one[3] << 16;
            piece.z = one[4] | (uint32_t)one[5] << 16, piece.w = one[6] | (uint32_t)one[7] << 16;
        }
        sum += weight;
        moe_add_pair(v[0], weight, piece.x);
        moe_add_pair(v[1], weight, piece.y);
        moe_add_pair(v[2], weight, piece.z);
        moe_add_pair(v[3], weight, piece.w);
    }
    uint16_t *const to = a.y + token * hidden + d;
    if (a.hidden % TILE_PIECE == 0) {
        const uint4 piece = {kern_pair_bf16(v[0][0] / sum, v[0][1] / sum), kern_pair_bf16(v[1][0] / sum, v[1][1] / sum),
                             kern_pair_bf16(v[2][0] / sum, v[2][1] / sum),
                             kern_pair_bf16(v[3][0] / sum, v[3][1] / sum)};
        *(uint4 *)(void *)to = piece;
    } else {
        KERN_UNROLL_LOOP
        for (int k = 0; k < TILE_PIECE; k++)
            if (k < n) to[k] = kern_one_bf16(v[k / 2][k % 2] / sum);
    }
}

/* -- the launch -- */

/* Rows of a tile, by how many an expert has in the mean. */
static int moe_tile_rows(const struct kern_shape *s)
{
    const double mean = (double)s->v[TOKENS] * (double)s->v[TOPK] / (double)s->v[ACTIVE];
    return mean <= FEW_ROWS ? (int)FEW_ROWS : mean <= 96 ? 64 : 128;
}

/* Tiles that there can be: full ones, and of each expert that has a row one that is not. */
static double moe_tiles_most(const struct kern_shape *s)
{
    const double rows = (double)s->v[TOKENS] * (double)s->v[TOPK], experts = (double)s->v[EXPERTS];
    return floor(rows / moe_tile_rows(s)) + (rows < experts ? rows : experts);
}

static double moe_blocks(const struct kern_shape *s, bool down)
{
    const int columns = moe_tile_rows(s) == FEW_ROWS ? (int)FEW_COLUMNS : (int)COLUMNS;
    return moe_tiles_most(s) * tile_parts((int)s->v[down ? HIDDEN : INTER], down ? columns : columns / 2);
}

/* Lays the scratch out; returns its bytes. */
static size_t moe_lay_out(const struct kern_shape *s, unsigned char *scratch, struct moe_args *a)
{
    enum { COUNT, START, TILE_START, TILES_N, TILE, CHOSEN, ROW, TOKEN, WEIGHT, GATED, RESULT, N };
    const size_t experts = (size_t)s->v[EXPERTS], rows = (size_t)s->v[TOKENS] * (size_t)s->v[TOPK];
    const size_t bytes[N] = {experts * 4,
                             experts * 4,
                             experts * 4,
                             4,
                             (size_t)moe_tiles_most(s) * sizeof(struct moe_tile),
                             rows * 4,
                             rows * 4,
                             rows * 4,
                             rows * 4,
                             rows * (size_t)s->v[INTER] * 2,
                             rows * (size_t)s->v[HIDDEN] * 2};
    size_t at[N], all = 0;
    for (int i = 0; i < N; i++) {
        at[i] = all;
        all += (bytes[i] + ALIGNED - 1) / ALIGNED * ALIGNED;
    }
    if (!scratch) return all;
    a->count = (int *)(void *)(scratch + at[COUNT]);
    a->start = (int *)(void *)(scratch + at[START]);
    a->tile_start = (int *)(void *)(scratch + at[TILE_START]);
    a->tiles_n = (int *)(void *)(scratch + at[TILES_N]);
    a->tile = (struct moe_tile *)(void *)(scratch + at[TILE]);
    a->chosen = (int *)(void *)(scratch + at[CHOSEN]);
    a->row = (int *)(void *)(scratch + at[ROW]);
    a->token = (int *)(void *)(scratch + at[TOKEN]);
    a->weight = (float *)(void *)(scratch + at[WEIGHT]);
    a->gated = (uint16_t *)(void *)(scratch + at[GATED]);
    a->result = (uint16_t *)(void *)(scratch + at[RESULT]);
    return all;
}

static size_t moe_scratch(const struct kern_shape *s, const struct kern_machine *m)
{
    (void)m;
    return moe_lay_out(s, NULL, NULL);
}

static const char *moe_lacks(const struct kern_machine *m, const struct kern_shape *s)
{
    const double most = 2147483648.0;
    if (m->capability < 80) return "no bf16 tensor cores: compute capability 8.0 or higher";
    if (m->shared_bytes < moe_shared(moe_tile_rows(s))) return "too little shared memory";
    if ((double)s->v[TOKENS] * (double)s->v[TOPK] >= most) return "too many rows";
    if (moe_blocks(s, false) >= most || moe_blocks(s, true) >= most ||
        (double)s->v[TOKENS] * tile_parts((int)s->v[HIDDEN], THREADS * TILE_PIECE) >= most)
        return "too many blocks";
    return NULL;
}

static void moe_start(const struct kern_call *c, const struct moe_args *args)
{
    const struct moe_args a = *args;
    const size_t sums = 2 * PLAN_WARPS * sizeof(int);
    if (a.tokens <= PLAN_TOKENS) {
        KERN_LAUNCH(moe_plan, 1, 1, 1, PLAN_THREADS, sums, c->stream, a);
        return;
    }
    const int64_t choices = (int64_t)a.tokens * a.topk;
    KERN_LAUNCH(moe_plan_clear, tile_parts(a.experts, PLAN_THREADS), 1, 1, PLAN_THREADS, 0, c->stream, a);
    KERN_LAUNCH(moe_plan_route, tile_parts(a.tokens, PLAN_WARPS), 1, 1, PLAN_THREADS, 0, c->stream, a);
    KERN_LAUNCH(moe_plan_scan, 1, 1, 1, PLAN_THREADS, sums, c->stream, a);
    KERN_LAUNCH(moe_plan_place, (choices + PLAN_THREADS - 1) / PLAN_THREADS, 1, 1, PLAN_THREADS, 0, c->stream, a);
}

static void moe_run(const struct kern_call *c)
{
    const struct kern_shape *const s = c->shape;
    struct moe_args a;
    (void)moe_lay_out(s, (unsigned char *)c->scratch, &a);
    a.x = (const uint16_t *)c->buffer[X];
    a.gate = (const uint16_t *)c->buffer[GATE];
    a.up = (const uint16_t *)c->buffer[UP];
    a.down = (const uint16_t *)c->buffer[DOWN];
    a.logits = (const float *)c->buffer[LOGITS];
    a.y = (uint16_t *)c->buffer[Y];
    a.tokens = (int)s->v[TOKENS];
    a.hidden = (int)s->v[HIDDEN];
    a.inter = (int)s->v[INTER];
    a.topk = (int)s->v[TOPK];
    a.experts = (int)s->v[EXPERTS];
    a.tile_rows = moe_tile_rows(s);
    moe_start(c, &a);
    const unsigned up = (unsigned)moe_blocks(s, false), down = (unsigned)moe_blocks(s, true);
    if (a.tile_rows == FEW_ROWS) {
        KERN_LAUNCH(moe_up_16, up, 1, 1, FEW_THREADS, (size_t)moe_few_shared(), c->stream, a);
        KERN_LAUNCH(moe_down_16, down, 1, 1, FEW_THREADS, (size_t)moe_few_shared(), c->stream, a);
    } else if (a.tile_rows == 64) {
        KERN_LAUNCH(moe_up_64, up, 1, 1, THREADS, (size_t)moe_shared(64), c->stream, a);
        KERN_LAUNCH(moe_down_64, down, 1, 1, THREADS, (size_t)moe_shared(64), c->stream, a);
    } else {
        KERN_LAUNCH(moe_up_128, up, 1, 1, THREADS, (size_t)moe_shared(128), c->stream, a);
        KERN_LAUNCH(moe_down_128, down, 1, 1, THREADS, (size_t)moe_shared(128), c->stream, a);
    }
    KERN_LAUNCH(moe_sum, (int64_t)a.tokens * tile_parts(a.hidden, THREADS * TILE_PIECE), 1, 1, THREADS, 0, c->stream,
                a);
}

static const struct kern_variant VARIANTS[] = {
    {"cuda-mma", KERN_UNIT_TENSOR, KERN_HAS(KERN_BF16), moe_lacks, NULL, NULL, moe_run, 0, false, moe_scratch},
};

/* Many narrow experts, decoded (as many as 16 and 64 tokens touch in the mean) and prefilled; eight wide ones; the
 * share of one of eight cards in a wide layer of 256. */
static const struct kern_point POINTS[] = {
    {{{1, 2048, 768, 8, 128, 8}, KERN_BF16}, true},    {{{16, 2048, 768, 8, 128, 82}, KERN_BF16}, true},
    {{{64, 2048, 768, 8, 128, 126}, KERN_BF16}, true}, {{{2048, 2048, 768, 8, 128, 128}, KERN_BF16}, true},
    {{{16, 4096, 14336, 2, 8, 8}, KERN_BF16}, false},  {{{2048, 4096, 14336, 2, 8, 8}, KERN_BF16}, false},
    {{{64, 7168, 2048, 1, 32, 28}, KERN_BF16}, false}, {{{8192, 7168, 2048, 1, 32, 32}, KERN_BF16}, false},
};

const struct kern_cuda kern_cuda_moe = {&kern_moe, VARIANTS, 1, POINTS, sizeof POINTS / sizeof POINTS[0]};
