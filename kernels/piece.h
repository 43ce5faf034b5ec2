/* piece -- 16 bytes of a row of bf16 or fp32 as a thread of a card loads, computes and stores them. bf16 is a constant
 * where these are called. Rows whose elements are a multiple of a piece begin at one; of others elements go one by one.
 */
#ifndef RIDGE_KERNELS_PIECE_H
#define RIDGE_KERNELS_PIECE_H

#include "kernels/device.h"

enum { PIECE_MAX = 8 };

/* Elements of a piece: 8 bf16 or 4 fp32. */
KERN_BOTH int piece_elements(bool bf16) { return bf16 ? 8 : 4; }

/* Piece `piece` of the n elements at x, zeros behind them. */
KERN_FN uint4 piece_load(const void *x, int piece, int n, bool bf16)
{
    const int first = piece * piece_elements(bf16), left = n - first;
    uint32_t word[4] = {0, 0, 0, 0};
    uint4 v = {0, 0, 0, 0};
    if (left <= 0) return v;
    if (n % piece_elements(bf16) == 0) return *((const uint4 *)x + piece);
    KERN_UNROLL_LOOP
    for (int i = 0; i < piece_elements(bf16); i++) {
        if (i >= left) continue;
        if (bf16)
            word[i / 2] |= (uint32_t)((const uint16_t *)x)[first + i] << i % 2 * 16;
        else
            word[i] = ((const uint32_t *)x)[first + i];
    }
    v.x = word[0], v.y = word[1], v.z = word[2], v.w = word[3];
    return v;
}

/* The part of v that is within the n elements at y. */
KERN_FN void piece_store(void *y, int piece, int n, uint4 v, bool bf16)
{
    const int first = piece * piece_elements(bf16), left = n - first;
    const uint32_t word[4] = {v.x, v.y, v.z, v.w};
    if (left <= 0) return;
    if (n % piece_elements(bf16) == 0) {
        *((uint4 *)y + piece) = v;
        return;
    }
    KERN_UNROLL_LOOP
    for (int i = 0; i < piece_elements(bf16); i++) {
        if (i >= left) continue;
        if (bf16)
            ((uint16_t *)y)[first + i] = (uint16_t)(word[i / 2] >> i % 2 * 16);
        else
            ((uint32_t *)y)[first + i] = word[i];
    }
}

/* The elements of a piece. */
KERN_FN void piece_open(uint4 v, float e[PIECE_MAX], bool bf16)
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

/* A piece of these elements, bf16 to nearest even. */
KERN_FN uint4 piece_close(const float e[PIECE_MAX], bool bf16)
{
    uint32_t word[4];
    KERN_UNROLL_LOOP
    for (int i = 0; i < 4; i++) word[i] = bf16 ? kern_pair_bf16(e[2 * i], e[2 * i + 1]) : __float_as_uint(e[i]);
    const uint4 v = {word[0], word[1], word[2], word[3]};
    return v;
}

#endif
