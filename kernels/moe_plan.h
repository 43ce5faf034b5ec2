/* moe_plan -- for moe.cu: which rows of which experts the tokens are. */
#ifndef RIDGE_KERNELS_MOE_PLAN_H
#define RIDGE_KERNELS_MOE_PLAN_H

#include "kernels/attend_tile.h"

enum { PLAN_THREADS = 512, PLAN_WARPS = 16 };

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

#endif
