/* moe_tile -- for moe.cu: products of the tiles of experts' rows, their copies and what becomes of their results. */
#ifndef RIDGE_KERNELS_MOE_TILE_H
#define RIDGE_KERNELS_MOE_TILE_H

#include "kernels/moe_plan.h"

enum { DEPTH = 64, PIECES = 8, ROW_BYTES = 128 };
enum { FEW_ROWS = 16, FEW_COLUMNS = 32, FEW_STAGES = 8, FEW_THREADS = 128, FEW_WARPS = 4 };
enum { COLUMNS = 128, STAGES = 3, THREADS = 256, ROW_TILES_MAX = 4 };

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

#endif
