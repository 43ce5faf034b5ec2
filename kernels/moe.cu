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
#include "kernels/attend_tile.h"

enum { TOKENS, HIDDEN, INTER, TOPK, EXPERTS, ACTIVE };
enum { X, LOGITS, GATE, UP, DOWN, Y };
enum { DEPTH = 64, PIECES = 8, ROW_BYTES = 128 };
enum { FEW_ROWS = 16, FEW_COLUMNS = 32, FEW_STAGES = 8, FEW_THREADS = 128, FEW_WARPS = 4 };
enum { COLUMNS = 128, STAGES = 3, THREADS = 256, ROW_TILES_MAX = 4 };
enum { PLAN_THREADS = 512, PLAN_WARPS = 16, PLAN_TOKENS = 64, ALIGNED = 256 };

struct moe_tile {
    int expert, first; /* of the expert's rows */
};

/* rows: one for each token and expert of it, an expert's one behind the other. */
struct moe_args {
    const uint16_t *x, *gate, *up, *down;
    const float *logits;
    uint16_t *y;
    int *count, *start, *tile_start; /* [experts]: rows, first row, first tile */
    int *tiles_n;
    struct moe_tile *tile;
    int *chosen, *row, *token; /* [tokens][topk] experts, their rows; [rows] tokens */
    float *weight;             /* [tokens][topk] not yet divided by their sum */
    uint16_t *gated, *result;  /* [rows][inter], [rows][hidden] */
    int tokens, hidden, inter, topk, experts, tile_rows;
};

/* -- who goes where -- */

/* Experts of a token by a warp: the next is the most likely after the last, of equals the first. */
KERN_FN void moe_route(const struct moe_args *a, int token)
{
    const int lane = (int)threadIdx.x % KERN_WARP;
    const float *const logits = a->logits + (size_t)token * (size_t)a->experts;
    float last = 0, first = 0;
    for (int j = 0, last_at = -1; j < a->topk; j++) {
        float best = 0;
        int at = a->experts; /* none */
        for (int e = lane; e < a->experts; e += KERN_WARP) {
            const float v = logits[e];
            const bool after = j == 0 || v < last || (!(v > last) && e > last_at);
            if (after && (at == a->experts || v > best)) best = v, at = e;
        }
        KERN_UNROLL_LOOP
        for (int by = KERN_WARP / 2; by > 0; by /= 2) {
            const float other = __shfl_xor_sync(KERN_ALL, best, by);
            const int other_at = __shfl_xor_sync(KERN_ALL, at, by);
            if (other_at < a->experts && (at == a->experts || other > best || (!(other < best) && other_at < at)))
                best = other, at = other_at;
        }
        if (at == a->experts) at = 0; /* logits that are no numbers must not lead beyond the experts */
        if (j == 0) first = best;
        last = best, last_at = at;
        if (lane == 0) {
            const size_t i = (size_t)token * (size_t)a->topk + (size_t)j;
            a->chosen[i] = at;
            a->weight[i] = kern_exp2(1.44269504f * (best - first));
            a->row[i] = atomicAdd(a->count + at, 1);
        }
    }
}

/* Where rows and tiles of experts begin, by a block; sums: shared, two for each warp. Ends with a barrier. */
KERN_FN void moe_scan(const struct moe_args *a, int *sums)
{
    const int lane = (int)threadIdx.x % KERN_WARP, warp = (int)threadIdx.x / KERN_WARP;
    int rows = 0, tiles = 0; /* of experts before this round */
    for (int base = 0; base < a->experts; base += PLAN_THREADS) {
        const int e = base + (int)threadIdx.x, count = e < a->experts ? a->count[e] : 0;
        const int own = tile_parts(count, a->tile_rows);
        int row = count, tile = own;
        KERN_UNROLL_LOOP
        for (int by = 1; by < KERN_WARP; by *= 2) {
            const int more_rows = __shfl_up_sync(KERN_ALL, row, by), more_tiles = __shfl_up_sync(KERN_ALL, tile, by);
            if (lane >= by) row += more_rows, tile += more_tiles;
        }
        if (lane == KERN_WARP - 1) sums[warp] = row, sums[PLAN_WARPS + warp] = tile;
        __syncthreads();
        row += rows - count;
        tile += tiles - own;
        for (int w = 0; w < PLAN_WARPS; w++) {
            if (w < warp) row += sums[w], tile += sums[PLAN_WARPS + w];
            rows += sums[w], tiles += sums[PLAN_WARPS + w];
        }
        if (e < a->experts) a->start[e] = row, a->tile_start[e] = tile;
        __syncthreads();
    }
    if (threadIdx.x == 0) *a->tiles_n = tiles;
}

/* The row of choice i. */
KERN_FN void moe_place(const struct moe_args *a, int i)
{
    const int e = a->chosen[i], rank = a->row[i], row = a->start[e] + rank;
    a->token[row] = i / a->topk;
    a->row[i] = row;
    if (rank % a->tile_rows == 0) {
        const struct moe_tile tile = {e, rank};
        a->tile[a->tile_start[e] + rank / a->tile_rows] = tile;
    }
}

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

/* A block's share of a product: the first, of tokens with gate and up, or down, of what is between them. */
struct moe_share {
    const uint16_t *rows; /* of what `from` counts */
    const int *from;      /* shared, [rows of a tile]; -1: none */
    size_t weights;       /* first element of the expert's in each of its matrices */
    int k, width, first;  /* of weights: elements of a row, rows, first row of this block */
};

/* Starts the copies of a stage: `rows` rows, then `columns` rows of weights, of which those of the first product are 16
 * of gate and the same 16 of up by turns. */
KERN_FN void moe_fetch(const struct moe_args *a, const struct moe_share *s, unsigned char *stage, int depth, int rows,
                       int columns, int threads, bool down)
{
    KERN_UNROLL_LOOP
    for (int i = (int)threadIdx.x; i < rows * PIECES; i += threads) {
        const int row = i / PIECES, piece = i % PIECES, from = s->from[row];
        tile_fetch(tile_at(stage, row, piece, DEPTH), s->rows, (size_t)tile_max(from, 0) * (size_t)s->k,
                   depth * PIECES + piece, s->k, from >= 0);
    }
    KERN_UNROLL_LOOP
    for (int i = (int)threadIdx.x; i < columns * PIECES; i += threads) {
        const int row = i / PIECES, piece = i % PIECES;
        const int column = s->first + (down ? row : row / 32 * 16 + row % 16);
        const uint16_t *const from = down ? a->down : row % 32 < 16 ? a->gate : a->up;
        tile_fetch(tile_at(stage + rows * ROW_BYTES, row, piece, DEPTH), from,
                   s->weights + (size_t)column * (size_t)s->k, depth * PIECES + piece, s->k, column < s->width);
    }
}

/* The tile of this block, false: there is none. first_row: of the results; from: of s, to fill, seen after the next
 * barrier. */
KERN_FN bool moe_begin(const struct moe_args *a, struct moe_share *s, int *from, int *first_row, int *rows_n, int rows,
                       int columns, bool down)
{
    const int width = down ? a->hidden : a->inter, blocks = tile_parts(width, columns);
    const int number = (int)blockIdx.x / blocks;
    if (number >= *a->tiles_n) return false;
    const struct moe_tile tile = a->tile[number];
    const int start = a->start[tile.expert] + tile.first;
    *first_row = start;
    *rows_n = tile_min(a->count[tile.expert] - tile.first, rows);
    s->rows = down ? a->gated : a->x;
    s->from = from;
    s->weights = (size_t)tile.expert * (size_t)a->hidden * (size_t)a->inter;
    s->k = down ? a->inter : a->hidden;
    s->width = width;
    s->first = (int)blockIdx.x % blocks * columns;
    if ((int)threadIdx.x < rows)
        from[threadIdx.x] = (int)threadIdx.x >= *rows_n ? -1
                            : down                      ? start + (int)threadIdx.x
                                                        : a->token[start + (int)threadIdx.x];
    return true;
}

/* Two neighbours of a row of results. */
KERN_FN void moe_put(uint16_t *to, int width, int row, int rows_n, int first_row, int column, float first, float second)
{
    if (row >= rows_n || column >= width) return;
    uint16_t *const at = to + (size_t)(first_row + row) * (size_t)width + column;
    if (width % 2 == 0) {
        *(uint32_t *)at = kern_pair_bf16(first, second);
    } else {
        at[0] = kern_one_bf16(first);
        if (column + 1 < width) at[1] = kern_one_bf16(second);
    }
}

KERN_FN float moe_gate(float gate, float up) { return gate / (1 + kern_exp2(-1.44269504f * gate)) * up; }

/* Registers of 16 rows x 16 of k, as the first factor of an mma; of 16 columns, as two second factors. */
KERN_FN void moe_load_rows(uint32_t r[4], unsigned char *tile, int row, int step)
{
    const int lane = (int)threadIdx.x % KERN_WARP;
    kern_ldmatrix(r, tile_at(tile, row + lane % 16, step * 2 + lane / 16, DEPTH));
}
KERN_FN void moe_load_columns(uint32_t r[4], unsigned char *tile, int row, int step)
{
    const int lane = (int)threadIdx.x % KERN_WARP;
    kern_ldmatrix(r, tile_at(tile, row + lane / 16 * 8 + lane % 8, step * 2 + lane / 8 % 2, DEPTH));
}

/* Blocks of `rows` x 128, of the first product 64 of each half; eight warps of half the rows x 32. */
KERN_BOTH int moe_stage(int rows, int columns) { return (rows + columns) * ROW_BYTES; }
KERN_BOTH int moe_shared(int rows) { return STAGES * moe_stage(rows, COLUMNS) + rows * 4; }

KERN_FN void moe_many(const struct moe_args *a, unsigned char *shared, int rows, bool down)
{
    const int stage = moe_stage(rows, COLUMNS), tall = rows / 32;
    const int warp = (int)threadIdx.x / KERN_WARP, lane = (int)threadIdx.x % KERN_WARP;
    const int row = warp / 4 * rows / 2, column = warp % 4 * 32;
    int first_row, rows_n;
    struct moe_share s;
    if (!moe_begin(a, &s, (int *)(void *)(shared + STAGES * stage), &first_row, &rows_n, rows,
                   down ? COLUMNS : COLUMNS / 2, down))
        return;
    const int depths = tile_parts(s.k, DEPTH);
    float sum[ROW_TILES_MAX][4][4];
    KERN_UNROLL_LOOP
    for (int i = 0; i < tall; i++) {
        KERN_UNROLL_LOOP
        for (int j = 0; j < 4; j++) sum[i][j][0] = sum[i][j][1] = sum[i][j][2] = sum[i][j][3] = 0;
    }
    __syncthreads();
    KERN_UNROLL_LOOP
    for (int t = 0; t < STAGES - 1; t++) {
        if (t < depths) moe_fetch(a, &s, shared + t * stage, t, rows, COLUMNS, THREADS, down);
        kern_copy_commit();
    }
    for (int t = 0; t < depths; t++) {
        const int next = t + STAGES - 1;
        unsigned char *const x = shared + t % STAGES * stage, *const w = x + rows * ROW_BYTES;
        kern_copy_wait(STAGES - 2);
        __syncthreads(); /* depth t is there for all, and all are done with the stage that is filled next */
        if (next < depths) moe_fetch(a, &s, shared + next % STAGES * stage, next, rows, COLUMNS, THREADS, down);
        kern_copy_commit();
        KERN_UNROLL_LOOP
        for (int step = 0; step < DEPTH / 16; step++) {
            uint32_t p[ROW_TILES_MAX][4], q[2][4];
            KERN_UNROLL_LOOP
            for (int i = 0; i < tall; i++) moe_load_rows(p[i], x, row + i * 16, step);
            moe_load_columns(q[0], w, column, step);
            moe_load_columns(q[1], w, column + 16, step);
            KERN_UNROLL_LOOP
            for (int i = 0; i < tall; i++) {
                KERN_UNROLL_LOOP
                for (int j = 0; j < 4; j++) kern_mma_bf16(sum[i][j], p[i], q[j / 2] + j % 2 * 2);
            }
        }
    }
    KERN_UNROLL_LOOP
    for (int i = 0; i < tall; i++) {
        KERN_UNROLL_LOOP
        for (int h = 0; h < 4; h++) { /* half of the rows; of columns, two eights of down, or one of gate and up */
            const int r = row + i * 16 + h / 2 * 8 + lane / 4, of = h / 2 * 2, j = h % 2;
            const int c = s.first + lane % 4 * 2 + j * 8;
            if (down) {
                moe_put(a->result, s.width, r, rows_n, first_row, c + column, sum[i][j][of], sum[i][j][of + 1]);
                moe_put(a->result, s.width, r, rows_n, first_row, c + column + 16, sum[i][j + 2][of],
                        sum[i][j + 2][of + 1]);
            } else {
                moe_put(a->gated, s.width, r, rows_n, first_row, c + column / 2,
                        moe_gate(sum[i][j][of], sum[i][j + 2][of]), moe_gate(sum[i][j][of + 1], sum[i][j + 2][of + 1]));
            }
        }
    }
}

/* Blocks of 16 x 32, of the first product 16 of each half; four warps, a quarter of k each. */
KERN_BOTH int moe_few_shared(void) { return FEW_STAGES * moe_stage(FEW_ROWS, FEW_COLUMNS) + FEW_ROWS * 4; }

KERN_FN void moe_few(const struct moe_args *a, unsigned char *shared, bool down)
{
    const int stage = moe_stage(FEW_ROWS, FEW_COLUMNS);
    const int warp = (int)threadIdx.x / KERN_WARP, lane = (int)threadIdx.x % KERN_WARP;
    int first_row, rows_n;
    struct moe_share s;
    if (!moe_begin(a, &s, (int *)(void *)(shared + FEW_STAGES * stage), &first_row, &rows_n, FEW_ROWS,
                   down ? FEW_COLUMNS : FEW_COLUMNS / 2, down))
        return;
    const int depths = tile_parts(s.k, DEPTH);
    float sum[4][4];
    KERN_UNROLL_LOOP
    for (int j = 0; j < 4; j++) sum[j][0] = sum[j][1] = sum[j][2] = sum[j][3] = 0;
    __syncthreads();
    KERN_UNROLL_LOOP
    for (int t = 0; t < FEW_STAGES - 1; t++) {
        if (t < depths) moe_fetch(a, &s, shared + t * stage, t, FEW_ROWS, FEW_COLUMNS, FEW_THREADS, down);
        kern_copy_commit();
    }
    for (int t = 0; t < depths; t++) {
        const int next = t + FEW_STAGES - 1;
        unsigned char *const x = shared + t % FEW_STAGES * stage, *const w = x + FEW_ROWS * ROW_BYTES;
        uint32_t p[4], q[2][4];
        kern_copy_wait(FEW_STAGES - 2);
        __syncthreads();
        if (next < depths)
            moe_fetch(a, &s, shared + next % FEW_STAGES * stage, next, FEW_ROWS, FEW_COLUMNS, FEW_THREADS, down);
        kern_copy_commit();
        moe_load_rows(p, x, 0, warp);
        moe_load_columns(q[0], w, 0, warp);
        moe_load_columns(q[1], w, 16, warp);
        KERN_UNROLL_LOOP
        for (int j = 0; j < 4; j++) kern_mma_bf16(sum[j], p, q[j / 2] + j % 2 * 2);
    }
    __syncthreads();
    /* The four sums over k of each result meet in shared memory: [warp][column tile][register][lane]. */
    float *const parts = (float *)(void *)shared;
    KERN_UNROLL_LOOP
    for (int j = 0; j < 4; j++) {
        KERN_UNROLL_LOOP
        for (int r = 0; r < 4; r++) parts[((warp * 4 + j) * 4 + r) * KERN_WARP + lane] = sum[j][r];
    }
    __syncthreads();
    /* warp j takes column tile j, of the first product warp j < 2 with its other half, j + 2 */
    float whole[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    if (!down && warp >= 2) return;
    KERN_UNROLL_LOOP
    for (int from = 0; from < FEW_WARPS; from++) {
        KERN_UNROLL_LOOP
        for (int r = 0; r < 4; r++) {
            whole[0][r] += parts[((from * 4 + warp) * 4 + r) * KERN_WARP + lane];
            if (!down) whole[1][r] += parts[((from * 4 + warp + 2) * 4 + r) * KERN_WARP + lane];
        }
    }
    KERN_UNROLL_LOOP
    for (int r = 0; r < 4 && !down; r++) whole[0][r] = moe_gate(whole[0][r], whole[1][r]);
    uint16_t *const to = down ? a->result : a->gated;
    const int c = s.first + warp * 8 + lane % 4 * 2;
    moe_put(to, s.width, lane / 4, rows_n, first_row, c, whole[0][0], whole[0][1]);
    moe_put(to, s.width, lane / 4 + 8, rows_n, first_row, c, whole[0][2], whole[0][3]);
}

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
