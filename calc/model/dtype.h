/* dtype -- how numbers are stored, and what that costs.
 *
 * A format stores `bits` per element, and beside them one scale (or scale and zero) of `scale_bits` per group of
 * `group_in` consecutive elements of a row (0: none), or per block_out x block_in tile. The bytes of a matrix with
 * `out` rows of `in` elements are then
 *
 *     out*in*bits/8 + ceil(out/block_out)*ceil(in/group_in)*scale_bits/8
 *
 * with block_out = 1 for groups along a row. Source: calc/MODEL.md "Stored precision". */
#ifndef RIDGE_MODEL_DTYPE_H
#define RIDGE_MODEL_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calc/base/err.h"

struct dtype {
    const char *name;
    double bits;         /* per element, scales excluded */
    int64_t group_in;    /* elements of a row under one scale; 0 without scales, -1 the whole row */
    int64_t block_out;   /* rows under one scale; 1 for groups along a row */
    double scale_bits;   /* scale and zero point of one group */
    const char *compute; /* the matrix unit that multiplies it: a name of enum hw dtypes ("bf16", "fp8", ...) */
    const char *note;
};

/* dtype_table -- all known formats, n of them. */
const struct dtype *dtype_table(size_t *n);

/* dtype_find -- by name, case-insensitively; "int4-g128", "int8-g64", ... are composed for any group of 16..4096 that
 * is a power of two. out is filled by value. Errors: ERR_USAGE naming the nearest formats. */
enum err_code dtype_find(const char *name, struct dtype *out, struct err *e);

#endif
