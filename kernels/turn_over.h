/* turn_over -- sixteen vectors of sixteen numbers of four bytes, rows made columns. */
#ifndef RIDGE_KERNELS_TURN_OVER_H
#define RIDGE_KERNELS_TURN_OVER_H

#include "kernels/vector.h"

#if KERN_X86

/* x[i] lane j becomes x[j] lane i: by fours within and then across the quarters of a vector. */
KERN_AVX512 KERN_INLINE void kern_turn_over(__m512i *x)
{
    enum { EVEN = 0x88, ODD = 0xdd };
    __m512i two[16], four[16];
    KERN_UNROLL
    for (size_t j = 0; j < 16; j += 2) {
        two[j] = _mm512_unpacklo_epi32(x[j], x[j + 1]);
        two[j + 1] = _mm512_unpackhi_epi32(x[j], x[j + 1]);
    }
    KERN_UNROLL
    for (size_t j = 0; j < 16; j += 4) { /* of four rows the elements 0, 1, 2 and 3 of each quarter */
        four[j] = _mm512_unpacklo_epi64(two[j], two[j + 2]);
        four[j + 1] = _mm512_unpackhi_epi64(two[j], two[j + 2]);
        four[j + 2] = _mm512_unpacklo_epi64(two[j + 1], two[j + 3]);
        four[j + 3] = _mm512_unpackhi_epi64(two[j + 1], two[j + 3]);
    }
    KERN_UNROLL
    for (size_t j = 0; j < 4; j++) {
        const __m512i a = _mm512_shuffle_i32x4(four[j], four[j + 4], EVEN);
        const __m512i b = _mm512_shuffle_i32x4(four[j + 8], four[j + 12], EVEN);
        const __m512i e = _mm512_shuffle_i32x4(four[j], four[j + 4], ODD);
        const __m512i f = _mm512_shuffle_i32x4(four[j + 8], four[j + 12], ODD);
        x[j] = _mm512_shuffle_i32x4(a, b, EVEN);
        x[j + 4] = _mm512_shuffle_i32x4(e, f, EVEN);
        x[j + 8] = _mm512_shuffle_i32x4(a, b, ODD);
        x[j + 12] = _mm512_shuffle_i32x4(e, f, ODD);
    }
}

#endif
#endif
