/* gemm on a card: bf16 through the tensor cores (mma.sync), sums in fp32.
 *
 * Tiles of a and w come by asynchronous copies into a ring of stages, 64 elements of k deep: rows of 128 bytes, whose
 * eight pieces of 16 are stored at piece ^ (row % 8), so that the eight rows that one ldmatrix reads lie in different
 * banks. Two kernels: wide, 128 x 128 results a block, eight warps of 64 x 32; skinny for at most 16 rows, 16 x 32
 * results a block, whose four warps take a quarter of k each, so that a decode step still fills the card.
 * Where k is no multiple of 8, rows are not aligned to 16 bytes: elements are then loaded one by one. */
#include "kernels/device.h"

enum { DEPTH = 64, PIECES = 8, PIECE = 8 /* elements */, ROW_BYTES = 128 };
enum { WIDE_M = 128, WIDE_N = 128, WIDE_STAGES = 3, WIDE_THREADS = 256, WIDE_GROUP = 8 };
enum { SKINNY_M = 16, SKINNY_N = 32, SKINNY_STAGES = 8, SKINNY_THREADS = 128, SKINNY_WARPS = 4 };

struct gemm_args {
    const uint16_t *a, *w;
    uint16_t *c;
    int m, n, k;
};

KERN_BOTH int gemm_min(int a, int b) { return a < b ? a : b; }
KERN_BOTH int gemm_parts(int v, int of) { return (v + of - 1) / of; }

/* Where piece `piece` of row `row` of a tile lies. */
KERN_FN unsigned char *gemm_at(unsigned char *tile, int row, int piece)
{
    return tile + row * ROW_BYTES + ((piece ^ (row & 7)) << 4);
}

/* Starts the copy of rows [first, first + rows) x [depth, depth + 64) of a matrix of `height` rows of k: `rows` and
 * `threads` are constants. */
KERN_FN void gemm_fetch(unsigned char *tile, const uint16_t *from, int first, int rows, int height, int depth, int k,
                        int threads)
{
    KERN_UNROLL_LOOP
    for (int i = (int)threadIdx.x; i < rows * PIECES; i += threads) {
        const int row = i / PIECES, piece = i % PIECES, at = depth + piece * PIECE;
        const int left = first + row < height ? gemm_min(k - at, PIECE) : 0;
        unsigned char *const to = gemm_at(tile, row, piece);
        const uint16_t *const source = from + (size_t)(first + row) * (size_t)k + at;
        if (k % PIECE == 0) {
            kern_copy_16(to, left > 0 ? source : from, left > 0 ? left * 2 : 0);
        } else {
            for (int j = 0; j < PIECE; j++) ((uint16_t *)to)[j] = j < left ? source[j] : (uint16_t)0;
        }
    }
}

/* Registers of 16 rows x 16 of k from row `row` and step `step` of a tile, as the first factor of an mma. */
KERN_FN void gemm_load_a(uint32_t r[4], unsigned char *tile, int row, int step)
{
    const int lane = (int)threadIdx.x % KERN_WARP;
    kern_ldmatrix(r, gemm_at(tile, row + lane % 16, step * 2 + lane / 16));
}

/* Of 16 columns, rows of w, as two second factors: r[0..1] and r[2..3]. */
KERN_FN void gemm_load_b(uint32_t r[4], unsigned char *tile, int row, int step)
{
    const int lane = (int)threadIdx.x % KERN_WARP;
    kern_ldmatrix(r, gemm_at(tile, row + lane / 16 * 8 + lane % 8, step * 2 + lane / 8 % 2));
}

/* Two neighbours of a row of c. */
KERN_FN void gemm_put(const struct gemm_args *g, int row, int column, float first, float second)
{
    if (row >= g->m || column >= g->n) return;
    uint16_t *const at = g->c + (size_t)row * (size_t)g->n + column;
    if (g->n % 2 == 0) {
        *(uint32_t *)at = kern_pair_bf16(first, second);
    } else {
        at[0] = kern_one_bf16(first);
        if (column + 1 < g->n) at[1] = kern_one_bf16(second);
    }
}

KERN_GLOBAL(gemm_wide, struct gemm_args, g, WIDE_THREADS)
{
    enum { STAGE = (WIDE_M + WIDE_N) * ROW_BYTES, ROWS = 4, COLUMNS = 4 };
    KERN_SHARED_MEMORY(shared);
    /* Blocks go through groups of 8 rows of tiles, column by column, so that those that run together share both. */
    const int rows = gemm_parts(g.m, WIDE_M), columns = gemm_parts(g.n, WIDE_N);
    const int group = (int)blockIdx.x / (WIDE_GROUP * columns), in_group = (int)blockIdx.x % (WIDE_GROUP * columns);
    const int height = gemm_min(rows - group * WIDE_GROUP, WIDE_GROUP);
    const int m0 = (group * WIDE_GROUP + in_group % height) * WIDE_M, n0 = in_group / height * WIDE_N;
    const int warp = (int)threadIdx.x / KERN_WARP, lane = (int)threadIdx.x % KERN_WARP;
    const int row = warp / 4 * 64, column = warp % 4 * 32, tiles = gemm_parts(g.k, DEPTH);
    float sum[ROWS][COLUMNS][4];
    KERN_UNROLL_LOOP
    for (int i = 0; i < ROWS; i++) {
        KERN_UNROLL_LOOP
        for (int j = 0; j < COLUMNS; j++) sum[i][j][0] = sum[i][j][1] = sum[i][j][2] = sum[i][j][3] = 0;
    }
    KERN_UNROLL_LOOP
    for (int t = 0; t < WIDE_STAGES - 1; t++) {
        if (t < tiles) {
            gemm_fetch(shared + t * STAGE, g.a, m0, WIDE_M, g.m, t * DEPTH, g.k, WIDE_THREADS);
            gemm_fetch(shared + t * STAGE + WIDE_M * ROW_BYTES, g.w, n0, WIDE_N, g.n, t * DEPTH, g.k, WIDE_THREADS);
        }
        kern_copy_commit();
    }
    for (int t = 0; t < tiles; t++) {
        const int next = t + WIDE_STAGES - 1;
        unsigned char *const a = shared + t % WIDE_STAGES * STAGE, *const w = a + WIDE_M * ROW_BYTES;
        kern_copy_wait(WIDE_STAGES - 2);
        __syncthreads(); /* tile t is there for all, and all are done with the stage that is filled next */
        if (next < tiles) {
            unsigned char *const to = shared + next % WIDE_STAGES * STAGE;
            gemm_fetch(to, g.a, m0, WIDE_M, g.m, next * DEPTH, g.k, WIDE_THREADS);
            gemm_fetch(to + WIDE_M * ROW_BYTES, g.w, n0, WIDE_N, g.n, next * DEPTH, g.k, WIDE_THREADS);
        }
        kern_copy_commit();
        KERN_UNROLL_LOOP
        for (int step = 0; step < DEPTH / 16; step++) {
            uint32_t x[ROWS][4], y[COLUMNS / 2][4];
            KERN_UNROLL_LOOP
            for (int i = 0; i < ROWS; i++) gemm_load_a(x[i], a, row + i * 16, step);
            KERN_UNROLL_LOOP
            for (int j = 0; j < COLUMNS / 2; j++) gemm_load_b(y[j], w, column + j * 16, step);
            KERN_UNROLL_LOOP
            for (int i = 0; i < ROWS; i++) {
                KERN_UNROLL_LOOP
                for (int j = 0; j < COLUMNS; j++) kern_mma_bf16(sum[i][j], x[i], y[j / 2] + j % 2 * 2);
            }
        }
    }
    kern_copy_wait(0);
    KERN_UNROLL_LOOP
    for (int i = 0; i < ROWS; i++) {
        KERN_UNROLL_LOOP
        for (int j = 0; j < COLUMNS; j++) {
            const int r = m0 + row + i * 16 + lane / 4, c = n0 + column + j * 8 + lane % 4 * 2;
            gemm_put(&g, r, c, sum[i][j][0], sum[i][j][1]);
            gemm_put(&g, r + 8, c, sum[i][j][2], sum[i][j][3]);
        }
    }
}

KERN_GLOBAL(gemm_skinny, struct gemm_args, g, SKINNY_THREADS)
{
    enum { STAGE = (SKINNY_M + SKINNY_N) * ROW_BYTES, COLUMNS = 4 };
    KERN_SHARED_MEMORY(shared);
    const int n0 = (int)blockIdx.x * SKINNY_N, tiles = gemm_parts(g.k, DEPTH);
    const int warp = (int)threadIdx.x / KERN_WARP, lane = (int)threadIdx.x % KERN_WARP;
    float sum[COLUMNS][4];
    KERN_UNROLL_LOOP
    for (int j = 0; j < COLUMNS; j++) sum[j][0] = sum[j][1] = sum[j][2] = sum[j][3] = 0;
    KERN_UNROLL_LOOP
    for (int t = 0; t < SKINNY_STAGES - 1; t++) {
        if (t < tiles) {
            gemm_fetch(shared + t * STAGE, g.a, 0, SKINNY_M, g.m, t * DEPTH, g.k, SKINNY_THREADS);
            gemm_fetch(shared + t * STAGE + SKINNY_M * ROW_BYTES, g.w, n0, SKINNY_N, g.n, t * DEPTH, g.k,
                       SKINNY_THREADS);
        }
        kern_copy_commit();
    }
    for (int t = 0; t < tiles; t++) {
        const int next = t + SKINNY_STAGES - 1;
        unsigned char *const a = shared + t % SKINNY_STAGES * STAGE, *const w = a + SKINNY_M * ROW_BYTES;
        uint32_t x[4], y[2][4];
        kern_copy_wait(SKINNY_STAGES - 2);
        __syncthreads();
        if (next < tiles) {
            unsigned char *const to = shared + next % SKINNY_STAGES * STAGE;
            gemm_fetch(to, g.a, 0, SKINNY_M, g.m, next * DEPTH, g.k, SKINNY_THREADS);
            gemm_fetch(to + SKINNY_M * ROW_BYTES, g.w, n0, SKINNY_N, g.n, next * DEPTH, g.k, SKINNY_THREADS);
        }
        kern_copy_commit();
        gemm_load_a(x, a, 0, warp);
        gemm_load_b(y[0], w, 0, warp);
        gemm_load_b(y[1], w, 16, warp);
        KERN_UNROLL_LOOP
        for (int j = 0; j < COLUMNS; j++) kern_mma_bf16(sum[j], x, y[j / 2] + j % 2 * 2);
    }
    kern_copy_wait(0);
    __syncthreads();
    /* The four sums over k of each result meet in shared memory: [warp][column tile][register][lane]. */
    float *const parts = (float *)shared;
    KERN_UNROLL_LOOP
    for (int j = 0; j < COLUMNS; j++) {
        KERN_UNROLL_LOOP
        for (int r = 0; r < 4; r++) parts[((warp * COLUMNS + j) * 4 + r) * KERN_WARP + lane] = sum[j][r];
    }
    __syncthreads();
    float whole[4] = {0, 0, 0, 0}; /* warp j takes column tile j */
    KERN_UNROLL_LOOP
    for (int from = 0; from < SKINNY_WARPS; from++) {
        KERN_UNROLL_LOOP
        for (int r = 0; r < 4; r++) whole[r] += parts[((from * COLUMNS + warp) * 4 + r) * KERN_WARP + lane];
    }
    const int c = n0 + warp * 8 + lane % 4 * 2;
    gemm_put(&g, lane / 4, c, whole[0], whole[1]);
    gemm_put(&g, lane / 4 + 8, c, whole[2], whole[3]);
}

static const char *gemm_lacks(const struct kern_machine *machine, const struct kern_shape *s)
{
    (void)s;
    return machine->capability < 80 ? "no bf16 tensor cores: compute capability 8.0 or higher" : NULL;
}

static void gemm_run(const struct kern_call *c)
{
    const int m = (int)c->shape->v[0], n = (int)c->shape->v[1], k = (int)c->shape->v[2];
    const struct gemm_args args = {
        (const uint16_t *)c->buffer[0], (const uint16_t *)c->buffer[1], (uint16_t *)c->buffer[2], m, n, k};
    if (m <= SKINNY_M)
        KERN_LAUNCH(gemm_skinny, gemm_parts(n, SKINNY_N), 1, 1, SKINNY_THREADS,
                    SKINNY_STAGES * (SKINNY_M + SKINNY_N) * ROW_BYTES, c->stream, args);
    else
        KERN_LAUNCH(gemm_wide, gemm_parts(m, WIDE_M) * gemm_parts(n, WIDE_N), 1, 1, WIDE_THREADS,
                    WIDE_STAGES * (WIDE_M + WIDE_N) * ROW_BYTES, c->stream, args);
}

static const struct kern_variant VARIANTS[] = {
    {"cuda-mma", KERN_UNIT_TENSOR, KERN_HAS(KERN_BF16), gemm_lacks, NULL, NULL, gemm_run, 0, false, NULL},
};

/* Layers of models of 8 and 70 billion parameters, decoded and prefilled; formats that only the library has. */
static const struct kern_point POINTS[] = {
    {{{1, 4096, 4096}, KERN_BF16}, true},      {{{16, 14336, 4096}, KERN_BF16}, true},
    {{{64, 28672, 8192}, KERN_BF16}, false},   {{{256, 4096, 14336}, KERN_BF16}, true},
    {{{2048, 14336, 4096}, KERN_BF16}, true},  {{{8192, 8192, 8192}, KERN_BF16}, false},
    {{{4096, 4096, 14336}, KERN_FP16}, false}, {{{16, 14336, 4096}, KERN_FP8}, true},
    {{{4096, 14336, 4096}, KERN_FP8}, false},  {{{16, 14336, 4096}, KERN_INT8}, false},
    {{{4096, 14336, 4096}, KERN_INT8}, false},
};

const struct kern_cuda kern_cuda_gemm = {&kern_gemm, VARIANTS, 1, POINTS, sizeof POINTS / sizeof POINTS[0]};
