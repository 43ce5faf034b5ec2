/* mla_amx -- one query token's heads against a latent cache in bf16 by tiles, for kernels/mla_decode.c. */
#ifndef RIDGE_KERNELS_MLA_AMX_H
#define RIDGE_KERNELS_MLA_AMX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MLA_AMX_GRAIN = 16, /* tokens that follow one another: a page is a multiple of them, or the only one */
    MLA_AMX_LEAST = 64  /* heads from which on it is faster than kernels/attend_amx.c */
};

/* A sequence. Rows of the cache are dim elements, the first value_dim of which are the value; both are multiples of 32.
 */
struct mla_amx {
    size_t heads, dim, value_dim;
    size_t tokens, page;        /* tokens of a page */
    float scale;                /* of scores */
    const char *cache;          /* [page][page_tokens][dim] */
    const int32_t *table;       /* pages of this sequence */
    const int32_t *later_table; /* of the one that is read behind it, as long; NULL: none */
    const uint16_t *q;          /* [heads][dim] */
    uint16_t *out;              /* [heads][value_dim] */
    void *scratch;              /* of mla_amx_bytes, at a line of a cache */
};

/* Bytes of scratch, whole lines. */
size_t mla_amx_bytes(size_t heads, size_t dim, size_t value_dim);

/* mla_amx_open and mla_amx_close before the first sequence of a call and behind the last; first: nothing has asked for
 * its rows. */
void mla_amx_open(void);
void mla_amx_run(const struct mla_amx *p, bool first);
void mla_amx_close(void);

#endif
