/* gemm_tiles -- the innermost loops of kernels/gemm.c: a strip of rows times some panels of packed weights. */
#ifndef RIDGE_KERNELS_GEMM_TILES_H
#define RIDGE_KERNELS_GEMM_TILES_H

#include "kernels/vector.h"

enum { GEMM_PANEL = 16, GEMM_ROWS_MAX = 12 };

/* How the element of a step is held: a weight, a pair of neighbours in k, or four of them in each of two columns, which
 * are multiplied by the same of two rows. */
enum gemm_form { GEMM_FP32, GEMM_BF16, GEMM_PAIRS, GEMM_SQUARES };

struct gemm_tile {
    const float *a;   /* strip: [step][rows], an fp32 or a pair of bf16 each; squares: [step][pairs of rows][2][4] */
    const char *w;    /* first panel at its first step */
    size_t panel;     /* bytes from panel to panel, where they do not lie side by side */
    size_t step;      /* bytes from step to step of a panel */
    size_t far;       /* bytes ahead of each walk that are fetched into the second cache; 0: none are */
    bool far_alone;   /* and none into the first */
    size_t depth;     /* steps */
    float *sums;      /* first row and column */
    size_t stride;    /* elements from row to row */
    size_t columns;   /* of the tile that exist, up to wide*GEMM_PANEL */
    bool more;        /* add to the sums, else set them */
    const char *next; /* a part of later panels, which is fetched meanwhile, next_step bytes a step; NULL: nothing is */
    size_t next_step;
};

typedef void gemm_tile_run(const struct gemm_tile *t);

/* gemm_step_bytes -- of a panel. */
static inline size_t gemm_step_bytes(enum gemm_form form)
{
    return form == GEMM_BF16 ? 2 * GEMM_PANEL : form == GEMM_SQUARES ? 8 * GEMM_PANEL : 4 * GEMM_PANEL;
}

/* The tiles of an instruction set, by rows. One strip alone takes the most panels side by side that the registers hold;
 * strips that share panels all take the same number; what is left at the edge goes panel by panel. side: how many
 * panels lie side by side, a step of each in turn. round makes bf16 of sums, to nearest even. */
struct gemm_tiles {
    size_t rows_max, side;
    void (*round)(const float *from, uint16_t *to, size_t n);
    struct {
        gemm_tile_run *run;
        size_t wide;
    } wide[GEMM_ROWS_MAX + 1], many[GEMM_ROWS_MAX + 1],
        one[GEMM_ROWS_MAX + 1]; /* by rows: of one strip, of several, of one panel */
};

extern const struct gemm_tiles gemm_portable_fp32, gemm_portable_bf16;
#if KERN_X86
extern const struct gemm_tiles gemm_avx2_fp32, gemm_avx2_bf16, gemm_avx512_fp32, gemm_avx512_bf16, gemm_avx512_pairs;
#elif KERN_ARM
extern const struct gemm_tiles gemm_neon_fp32, gemm_neon_bf16, gemm_neon_squares;
#endif

#endif
