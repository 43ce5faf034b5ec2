/* dtype -- how numbers are stored, and what that costs.
 *
 * A format stores `bits` per element and beside them scales. Groups under one scale are `group_in` consecutive elements
 * of a row, or tiles of block_out rows by group_in columns, or, where they are flat, run through a matrix regardless of
 * its rows. The bytes of a matrix with `out` rows of `in` elements are
 *
 *     out*in*bits/8 + groups*scale_bits/8 + ceil(groups/super_groups)*super_bits/8 + in*column_bits/8 + matrix_bits/8
 *     groups = ceil(out/block_out)*ceil(in/group_in), flat: ceil(out*in/group_in)
 *
 * Source: calc/MODEL.md "Stored precision". */
#ifndef RIDGE_MODEL_DTYPE_H
#define RIDGE_MODEL_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calc/base/err.h"

/* Groups that a format alone gives no size: a whole row; of a cache, what one token and head keeps of keys or of
 * values; of a cache of latents, so many elements as engines that choose keys put under one (of weights: a row). */
enum { GROUP_ROW = -1, GROUP_HEAD = -2, GROUP_LATENT = -3 };

struct dtype {
    const char *name;
    double bits;          /* per element, scales excluded */
    int64_t group_in;     /* elements of a row under one scale; 0 without scales, or GROUP_* */
    int64_t block_out;    /* rows under one scale; 1 for groups along a row */
    double scale_bits;    /* scale and zero point of one group */
    bool flat;            /* groups do not end with a row */
    int64_t super_groups; /* groups whose scales share a scale of super_bits (double quantisation); 0 none */
    double super_bits;
    double column_bits;  /* per element of a row, once for all rows */
    double matrix_bits;  /* per matrix, whatever its shape */
    bool weights_only;   /* no engine keeps a cache in it */
    double outlier_frac; /* of the columns that are multiplied in 16 bits as well, by a second product */
    const char *compute; /* the matrix unit that multiplies it: a name of enum hw dtypes ("bf16", "fp8", ...) */
    const char *note;
    const char *source;
};

/* dtype_table -- all known formats, n of them. */
const struct dtype *dtype_table(size_t *n);

/* dtype_find -- by name, case-insensitively. Composed are "int4-g64", "gptq4-g64", "mlx4-g64" (bits 2 to 8,
 * groups of 8 to 4096, or "-row" in their place), and "llm-int8:0.005" (a share of outlier columns below 1). out is
 * filled by value; the name of a composed format is the caller's string. Errors: ERR_USAGE naming the nearest formats.
 */
enum err_code dtype_find(const char *name, struct dtype *out, struct err *e);

/* dtype_bits_per_weight -- bits of an element of a large matrix with rows of `in` elements, scales included:
 * bits + (scale_bits + super_bits/super_groups)/(group_in*block_out). Rows and matrices whose side is not a multiple of
 * a group's store more. */
double dtype_bits_per_weight(const struct dtype *d, int64_t in);

/* dtype_same -- whether two formats cost the same, whatever their names. */
bool dtype_same(const struct dtype *a, const struct dtype *b);

#endif
