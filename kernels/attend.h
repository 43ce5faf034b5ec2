/* attend -- what decode attention and its latent form share: query heads against chunks of a cache's rows.
 *
 * The heads that read the same keys are taken together, so that the cache goes by once. Chunks of ATTEND_CHUNK tokens:
 * scores, their running maximum and sum (Milakov and Gimelshein, arXiv:1805.02867), weighted values. The cache is cut
 * into ATTEND_SPLITS parts, each with a state of its own, as where several cores share a sequence; at the end states
 * are joined by their maxima. On one core the parts go one after another: walked side by side they were a tenth slower.
 * While one chunk is worked on, the rows of the next are fetched, wherever their page lies. */
#ifndef RIDGE_KERNELS_ATTEND_H
#define RIDGE_KERNELS_ATTEND_H

#include "kernels/kernel.h"

enum { ATTEND_CHUNK = 64, ATTEND_STRIP = 16, ATTEND_SPLITS = 4 };

/* n tokens whose keys and values follow one another, a->step bytes apart. */
struct attend_rows {
    const char *k, *v;
    size_t n; /* 1..ATTEND_CHUNK */
};

struct attend_state {
    float *most, *sum; /* [heads]: of the scores so far; of their exponentials */
    float *out;        /* [heads][attend_wide(value_dim)] not yet divided by the sum */
};

struct attend {
    bool bf16;
    size_t heads, dim, value_dim; /* query heads that share the keys */
    size_t step;                  /* bytes from a key to the next, from a value to the next */
    float scale;
    const void *q;    /* [heads][dim] */
    float *queries;   /* [heads][attend_wide(dim)] in fp32, zeros behind dim */
    float *weights;   /* [heads][ATTEND_CHUNK] */
    uint16_t *halves; /* the same in bf16 */
    float *shrink;    /* [heads] factor of what was summed before this chunk */
    struct attend_state state[ATTEND_SPLITS];
};

static inline size_t attend_wide(size_t dim) { return (dim + 31) / 32 * 32; }

/* Floats of scratch that attend_open takes. */
static inline size_t attend_scratch(size_t heads, size_t dim, size_t value_dim)
{
    return heads * (attend_wide(dim) + 2 * ATTEND_CHUNK + 1 + ATTEND_SPLITS * (attend_wide(value_dim) + 2));
}

/* Hand out the scratch; bf16, heads, dim, value_dim are set before. */
static inline void attend_open(struct attend *a, float *scratch)
{
    a->queries = scratch;
    a->weights = a->queries + a->heads * attend_wide(a->dim);
    a->halves = (uint16_t *)(void *)(a->weights + a->heads * ATTEND_CHUNK);
    a->shrink = a->weights + 2 * a->heads * ATTEND_CHUNK;
    float *at = a->shrink + a->heads;
    for (size_t i = 0; i < ATTEND_SPLITS; i++) {
        a->state[i] = (struct attend_state){at, at + a->heads, at + 2 * a->heads};
        at += a->heads * (attend_wide(a->value_dim) + 2);
    }
}

/* Queries of other heads: states are empty. */
static inline void attend_start(struct attend *a, const void *q)
{
    const size_t wide = attend_wide(a->dim);
    a->q = q;
    for (size_t h = 0; h < a->heads; h++)
        for (size_t d = 0; d < wide; d++)
            a->queries[h * wide + d] = d >= a->dim ? 0
                                       : a->bf16   ? kern_bf16_to(((const uint16_t *)q)[h * a->dim + d])
                                                   : ((const float *)q)[h * a->dim + d];
    for (size_t s = 0; s < ATTEND_SPLITS; s++)
        for (size_t h = 0; h < a->heads; h++) {
            a->state[s].most[h] = -3e38F;
            a->state[s].sum[h] = 0;
            for (size_t d = 0; d < attend_wide(a->value_dim); d++)
                a->state[s].out[h * attend_wide(a->value_dim) + d] = 0;
        }
}

/* One chunk into the state of a split; next: rows that come after it, which are fetched. */
typedef void attend_chunk(const struct attend *a, size_t split, const struct attend_rows *r,
                          const struct attend_rows *next);

/* Joins the states and writes [heads][value_dim]. */
typedef void attend_finish(const struct attend *a, void *out);

/* The code of one instruction set. */
struct attend_code {
    attend_chunk *chunk;
    attend_finish *finish;
};

extern const struct attend_code attend_portable;
#if defined(__x86_64__)
extern const struct attend_code attend_avx2, attend_avx512, attend_dot;
#endif

#endif
