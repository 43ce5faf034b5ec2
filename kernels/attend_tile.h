/* attend_tile -- for the .cu files of attention and of experts: rows in shared memory, the softmax of the four lanes
 * that hold a row of an mma's result, a cache cut into splits and their sums joined. */
#ifndef RIDGE_KERNELS_ATTEND_TILE_H
#define RIDGE_KERNELS_ATTEND_TILE_H

#include "kernels/device.h"

enum { TILE_PIECE = 8 }; /* elements of 16 bytes */

KERN_BOTH int tile_min(int a, int b) { return a < b ? a : b; }
KERN_BOTH int tile_max(int a, int b) { return a > b ? a : b; }
KERN_BOTH int tile_parts(int v, int of) { return (v + of - 1) / of; }

/* Where piece `piece` of row `row` lies in a tile whose rows are `room` elements: eight rows of one piece in different
 * banks. */
KERN_FN unsigned char *tile_at(unsigned char *tile, int row, int piece, int room)
{
    return tile + row * room * 2 + ((piece ^ (row & 7)) << 4);
}

/* Starts the copy of a piece of the dim elements at from[at]; zeros behind them, or where they are not there. */
KERN_FN void tile_fetch(unsigned char *to, const uint16_t *from, size_t at, int piece, int dim, bool there)
{
    const int left = there ? tile_min(dim - piece * TILE_PIECE, TILE_PIECE) : 0;
    const uint16_t *const source = from + at + piece * TILE_PIECE;
    if (dim % TILE_PIECE == 0) {
        kern_copy_16(to, left > 0 ? source : from, left > 0 ? left * 2 : 0);
    } else {
        for (int j = 0; j < TILE_PIECE; j++) ((uint16_t *)to)[j] = j < left ? source[j] : (uint16_t)0;
    }
}

/* Largest, or sum, of a row over the four lanes that hold it. */
KERN_FN float tile_most(float v)
{
    v = fmaxf(v, __shfl_xor_sync(KERN_ALL, v, 1));
    return fmaxf(v, __shfl_xor_sync(KERN_ALL, v, 2));
}
KERN_FN float tile_total(float v)
{
    v += __shfl_xor_sync(KERN_ALL, v, 1);
    return v + __shfl_xor_sync(KERN_ALL, v, 2);
}

/* Chunks of a split, of at most `most` splits: the fewest splits with which the last wave of blocks is as full as with
 * any, within a twentieth. blocks: that there are of one split; slots: blocks that run at once. */
KERN_BOTH int tile_split(int chunks, int most, double blocks, double slots)
{
    double best = 0;
    for (int pass = 0; pass < 2; pass++) /* the best share first */
        for (int n = 1; n <= tile_max(most, 1); n++) {
            const int each = tile_parts(chunks, n);
            const double of = blocks * tile_parts(chunks, each) / slots, share = of / ceil(of);
            if (pass == 0 && share > best) best = share;
            if (pass == 1 && share >= 0.95 * best) return each;
        }
    return chunks;
}

/* One row of results, whose splits are at parts: each its weighted values [dim], maximum and sum. */
KERN_FN void tile_join(const float *parts, int splits, int dim, uint16_t *out)
{
    const size_t step = (size_t)(dim + 2);
    for (int d = (int)threadIdx.x; d < dim; d += (int)blockDim.x) {
        float most = -1e30f, sum = 0, v = 0;
        for (int s = 0; s < splits; s++) most = fmaxf(most, parts[(size_t)s * step + (size_t)dim]);
        for (int s = 0; s < splits; s++) {
            const float *const part = parts + (size_t)s * step;
            const float weight = kern_exp2(part[dim] - most);
            sum += weight * part[dim + 1];
            v += weight * part[d];
        }
        out[d] = kern_one_bf16(v / sum);
    }
}

#endif
