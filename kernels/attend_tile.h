/* attend_tile -- for decode_attention.cu and prefill_attention.cu: rows of heads in shared memory, and the softmax of
 * the four lanes that hold a row of an mma's result. */
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

#endif
