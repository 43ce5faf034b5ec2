/* attend -- what decode attention and its latent form share: query heads against chunks of a cache's rows.
 *
 * The heads that read the same keys are taken together, four at a time, so that the cache goes by once. Chunks of
 * tokens: scores, their running maximum and sum (Milakov and Gimelshein, arXiv:1805.02867), weighted values. The keys
 * of a chunk are read together with the values of the chunk before it, ATTEND_TURN tokens of the one and of the other
 * in turn, so that memory is read while a softmax waits for its sums. Within a turn rows are read to their end in the
 * order in which they lie, by a loop of a few loads whose addresses are counted up: the processor then fetches ahead by
 * itself. It stops doing so where the loop over rows is written out, since each of its loads has a stride of its own,
 * and where addresses come from a table, since loads then start in another order. probe/METHOD.md has what that
 * reaches. */
#ifndef RIDGE_KERNELS_ATTEND_H
#define RIDGE_KERNELS_ATTEND_H

#include "kernels/kernel.h"

enum {
    ATTEND_LANES = 4,      /* heads taken together */
    ATTEND_TURN = 16,      /* tokens at most whose keys, and then values, are read in one go */
    ATTEND_TURNS = 4,      /* pages that are read side by side */
    ATTEND_AHEAD = 2048,   /* bytes of each of them that are fetched before they are read; not a unit */
    ATTEND_USUAL = 128,    /* width of a head for which loops are written out */
    ATTEND_FOLLOWED = 256, /* bytes of rows whose lines the processor fetches by itself; not a unit */
    ATTEND_MANY = 64,      /* tokens of a turn where many heads are taken together */
    ATTEND_FEW = 8         /* heads up to which keys are read row by row: they come from memory, not from a cache */
};

#define ATTEND_SLACK 8 /* how far above the maximum a score may be */

/* n tokens that follow one another, whose keys and values begin at k and v. Rows `ahead` tokens later are fetched
 * meanwhile, behind the last those of the run that comes then, from next_k and next_v on (NULL: none); ahead 0: that is
 * left to the processor. */
struct attend_run {
    const char *k, *v, *next_k, *next_v;
    size_t n, ahead;
};

/* Pages in no order, of n tokens each, a multiple of ATTEND_TURN / ATTEND_TURNS: keys at k + row[i], values at
 * v + row[i]. What is read behind them begins later[i] bytes behind k and v; its first ATTEND_AHEAD bytes are fetched
 * meanwhile. */
struct attend_pages {
    const char *k, *v;
    size_t n, row[ATTEND_TURNS], later[ATTEND_TURNS];
};

/* Some query heads that share keys, and what they have summed. */
struct attend {
    bool bf16;
    bool asked;  /* every line is asked for, see kern_machine */
    bool tiles;  /* in the way of kernels/attend_amx.c */
    size_t many; /* heads taken together: 4 as in kernels/attend_many.h, 16 as in kernels/attend_across.h, what
                    attend_takes_many says; 0: neither */
    size_t heads, dim, value_dim;
    float scale;
    size_t room;      /* heads, where they are several a multiple of ATTEND_LANES: empty ones have queries of 0 */
    void *queries;    /* [room][attend_wide(dim)] in fp32, or in bf16 as they are; zeros behind dim */
    float *scores;    /* [room / lanes][chunk][lanes], lanes ATTEND_LANES or, of one head, 1 */
    float *weights;   /* the same */
    uint16_t *halves; /* the same in bf16, [room / lanes][chunk / 2][lanes][2] */
    float *most;      /* [room]: the largest score so far, or a little less */
    float *sum;       /* [room / lanes][16] of their exponentials, parts of a sum each: [16 / lanes][lanes], of many
                         [lanes][16 / lanes], lanes as many as are taken together */
    float *out;       /* [room][attend_wide(value_dim)] not yet divided by the sum */
    char *aside;      /* attend_aside of it, that all heads of keys use in turn */
};

static inline size_t attend_wide(size_t dim) { return (dim + 31) / 32 * 32; }

static inline size_t attend_room(size_t heads)
{
    return heads == 1 ? 1 : (heads + ATTEND_LANES - 1) / ATTEND_LANES * ATTEND_LANES;
}

/* The same of tiles: 4, 8 or a multiple of 16. */
static inline size_t attend_room_tiles(size_t heads)
{
    return heads <= 4 ? 4 : heads <= 8 ? 8 : (heads + 15) / 16 * 16;
}

/* Floats of scratch that attend_open takes, whole cache lines. */
static inline size_t attend_scratch(size_t heads, size_t dim, size_t value_dim)
{
    const size_t room = attend_room_tiles(heads); /* no less than that of others */
    return room * (attend_wide(dim) + 2 * (size_t)ATTEND_MANY + attend_wide(value_dim)) + (room + 15) / 16 * 16 +
           (room + ATTEND_LANES - 1) / ATTEND_LANES * 16;
}

/* Floats of two lines of the values of ATTEND_MANY tokens, interleaved, and of the rows of the last tokens. */
static inline size_t attend_aside(size_t dim)
{
    return (2 * (size_t)ATTEND_MANY * 64 + 2 * (size_t)ATTEND_MANY * attend_wide(dim) * 2) / sizeof(float);
}

/* Hand out the scratch; heads, dim, value_dim, tiles are set before. aside: of attend_aside, its own. */
static inline void attend_open(struct attend *a, float *scratch, float *aside)
{
    a->room = a->tiles || a->many == 16 ? attend_room_tiles(a->heads) : attend_room(a->heads);
    a->aside = (char *)aside;
    a->queries = scratch;
    a->out = scratch + a->room * attend_wide(a->dim);
    a->scores = a->out + a->room * attend_wide(a->value_dim);
    a->weights = a->scores + a->room * ATTEND_MANY;
    a->halves = (uint16_t *)(void *)a->weights;
    a->sum = a->weights + a->room * ATTEND_MANY;
    a->most = a->sum + (a->room + ATTEND_LANES - 1) / ATTEND_LANES * 16;
}

/* Queries of other heads, nothing summed. */
typedef void attend_start(const struct attend *a, const void *q);

/* The scores of these tokens and their weighted values. attend_pages_read wants what kernels/attend_aside.h says of
 * shapes. */
typedef void attend_run_read(const struct attend *a, const struct attend_run *r);
typedef void attend_pages_read(const struct attend *a, const struct attend_pages *p);

/* Writes [heads][value_dim]. */
typedef void attend_finish(const struct attend *a, void *out);

/* The code of one instruction set. */
struct attend_code {
    attend_start *start;
    attend_run_read *run;
    attend_pages_read *pages; /* NULL: this set reads them one by one */
    attend_finish *finish;
    size_t many;  /* heads that it takes together where there are many; 0: as where there are few */
    size_t grain; /* tokens that are read in one go of each of the pages side by side, which are a multiple of them */
    /* NULL, or of kernels/attend_amx.c, for several heads whose widths are multiples of 32: before the first of a call,
     * for its heads, and behind the last */
    void (*enter)(const struct attend *a);
    void (*leave)(void);
};

/* attend_takes_tiles -- whether kernels/attend_amx.c has so many heads of these widths; else pairs do. */
static inline bool attend_takes_tiles(size_t heads, size_t dim, size_t value_dim)
{
    return heads > 1 && dim % 32 == 0 && value_dim % 32 == 0;
}

/* attend_takes_many -- how many heads a set's code takes together of these heads and sizes, for keys that follow one
 * another in long runs: four of bf16 by pairs, where there are more than four; sixteen of fp32, where there are more
 * than eight; 0: as where there are few. */
static inline size_t attend_takes_many(const struct attend_code *code, const struct attend *a)
{
    if (a->value_dim % 64 != 0) return 0;
    if (code->many == 4) return a->heads > ATTEND_LANES && a->dim % 8 == 0 ? 4 : 0;
    return code->many == 16 && a->heads > ATTEND_FEW && !a->bf16 ? 16 : 0;
}

extern const struct attend_code attend_portable;
#if defined(__x86_64__)
extern const struct attend_code attend_avx2, attend_avx512, attend_dot, attend_amx;
#elif defined(__aarch64__)
extern const struct attend_code attend_neon, attend_bfdot;
#endif

#endif
