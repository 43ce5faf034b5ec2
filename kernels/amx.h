/* amx -- tile registers of AMX by number, as no operand may be a variable; included by code for KERN_AMX_BF16 alone. */
#ifndef RIDGE_KERNELS_AMX_H
#define RIDGE_KERNELS_AMX_H

#include "kernels/vector.h"

#if KERN_X86

enum {
    AMX_ROWS = 16,                  /* of a tile */
    AMX_LINE = 64,                  /* bytes of a row */
    AMX_TILE = AMX_ROWS * AMX_LINE, /* bytes */
    AMX_DEPTH = AMX_LINE / 2,       /* elements of bf16 of a row */
    AMX_TILES = 8                   /* registers */
};

/* Rows and bytes of a row of each tile register: palette 1 of the instruction set's reference. */
struct amx_form {
    uint8_t palette, start, none[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

#define AMX_SET_FORM(form) __asm__ volatile("ldtilecfg %0" : : "m"(form) : "memory")
#define AMX_RELEASE() __asm__ volatile("tilerelease")

/* 2^x as exp2_coarse of kernels/lanes.h: of x so small that the whole part is an exponent. */
KERN_AMX_BF16 KERN_INLINE __m512 amx_exp2(__m512 x)
{
    const __m512 r = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    __m512 p = _mm512_fmadd_ps(r, _mm512_set1_ps(0.07802452F), _mm512_set1_ps(0.22606716F));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.69583354F));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.99992522F));
    return _mm512_scalef_ps(p, x);
}

/* Rows `step` bytes apart. */
#define TILE_LOAD(t, at, step)                                                                                         \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t : : "r"(at), "r"((size_t)(step)) : "memory")
/* The same past the first cache, for what is read once. */
#define TILE_LOAD_ONCE(t, at, step)                                                                                    \
    __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm" #t : : "r"(at), "r"((size_t)(step)) : "memory")
#define TILE_STORE(t, at, step)                                                                                        \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" : : "r"(at), "r"((size_t)(step)) : "memory")
#define TILE_ZERO(t) __asm__ volatile("tilezero %%tmm" #t : : :)

/* sum[i][j] += sum over l, e of rows[i][2l + e] * columns[l][2j + e]: bf16, sums in fp32. */
#define TILE_PRODUCT(sum, rows, columns)                                                                               \
    __asm__ volatile("tdpbf16ps %%tmm" #columns ", %%tmm" #rows ", %%tmm" #sum : : :)

#endif
#endif
