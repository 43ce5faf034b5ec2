/* attend -- what decode attention and its latent form share: query heads against chunks of a cache's rows.
 *
 * The heads that read the same keys are taken together, four at a time, so that the cache goes by once. Chunks of
 * tokens: scores, their running maximum and sum (Milakov and Gimelshein, arXiv:1805.02867), weighted values. A chunk is
 * pieces, each within a page of the cache, so that small pages cost no more.
 * Rows are read in the order in which they lie. One head in bf16 reads faster than anything is fetched for it: the
 * processor sees the order and fetches ahead by itself; prefetches, and reading four rows side by side, cost a quarter
 * of the bandwidth. It does not follow longer rows, four heads leave gaps, and pages lie in no order: there the piece
 * that comes ATTEND_AHEAD later is fetched. probe/METHOD.md has what that reaches. */
#ifndef RIDGE_KERNELS_ATTEND_H
#define RIDGE_KERNELS_ATTEND_H

#include "kernels/kernel.h"

enum {
    ATTEND_LANES = 4, /* heads taken together; tokens whose scores are summed together */
    ATTEND_PIECES = 64,
    ATTEND_PIECE = 16,      /* tokens at most of a piece, where the next ones are fetched */
    ATTEND_AHEAD = 3,       /* pieces ahead that are */
    ATTEND_CHUNK_FEW = 256, /* tokens of a chunk of up to ATTEND_FEW heads */
    ATTEND_CHUNK_MANY = 64, /* of more, whose weights are to stay in the first cache */
    ATTEND_FEW = 8,
    ATTEND_ROW = 256 /* bytes of rows whose order the processor follows by itself; not a unit */
};

/* n tokens whose keys and values follow one another, a->step bytes apart. */
struct attend_piece {
    const char *k, *v;
    size_t n;
    size_t at; /* place of the first in the chunk, a multiple of ATTEND_LANES */
};

struct attend_rows {
    struct attend_piece piece[ATTEND_PIECES];
    size_t pieces;
    size_t n; /* places that are taken, a multiple of ATTEND_LANES up to a->chunk; some stand empty */
};

struct attend {
    bool bf16;
    size_t heads, dim, value_dim; /* query heads that share the keys */
    size_t step;                  /* bytes from a key to the next, from a value to the next */
    bool pages;                   /* of few tokens, in no order */
    float scale;
    size_t chunk;      /* tokens at most */
    size_t room;       /* heads, where they are several a multiple of ATTEND_LANES: empty ones have queries of 0 */
    void *queries;     /* [room][attend_wide(dim)] in fp32, or in bf16 as they are; zeros behind dim */
    float *weights;    /* [room / lanes][chunk][lanes], lanes ATTEND_LANES or, of one head, 1 */
    uint16_t *halves;  /* the same in bf16, [room / lanes][chunk / 2][lanes][2] */
    float *shrink;     /* [room] factor of what was summed before this chunk */
    float *most, *sum; /* [room]: of the scores so far; of their exponentials */
    float *out;        /* [room][attend_wide(value_dim)] not yet divided by the sum */
};

static inline size_t attend_wide(size_t dim) { return (dim + 31) / 32 * 32; }

static inline size_t attend_room(size_t heads)
{
    return heads == 1 ? 1 : (heads + ATTEND_LANES - 1) / ATTEND_LANES * ATTEND_LANES;
}

/* Floats of scratch that attend_open takes. */
static inline size_t attend_scratch(size_t heads, size_t dim, size_t value_dim)
{
    const size_t chunk = heads > ATTEND_FEW ? ATTEND_CHUNK_MANY : ATTEND_CHUNK_FEW;
    return attend_room(heads) * (attend_wide(dim) + 2 * chunk + 3 + attend_wide(value_dim));
}

/* Hand out the scratch; bf16, heads, dim, value_dim are set before. */
static inline void attend_open(struct attend *a, float *scratch)
{
    a->room = attend_room(a->heads);
    a->chunk = a->heads > ATTEND_FEW ? ATTEND_CHUNK_MANY : ATTEND_CHUNK_FEW;
    a->queries = scratch;
    a->out = scratch + a->room * attend_wide(a->dim);
    a->weights = a->out + a->room * attend_wide(a->value_dim);
    a->halves = (uint16_t *)(void *)(a->weights + a->room * a->chunk);
    a->shrink = a->weights + 2 * a->room * a->chunk;
    a->most = a->shrink + a->room;
    a->sum = a->most + a->room;
}

/* Nothing is fetched: the processor does by itself. */
static inline bool attend_leaves(const struct attend *a) { return a->room == 1 && !a->pages && a->step <= ATTEND_ROW; }

/* Adds as many of left tokens that follow one another as a piece and the chunk have room for; how many. */
static inline size_t attend_add(const struct attend *a, struct attend_rows *r, const char *k, const char *v,
                                size_t left)
{
    const size_t room = a->chunk - r->n;
    size_t n = attend_leaves(a) ? a->chunk : ATTEND_PIECE;
    n = n < left ? n : left;
    n = n < room ? n : room;
    r->piece[r->pieces++] = (struct attend_piece){k, v, n, r->n};
    r->n += (n + ATTEND_LANES - 1) / ATTEND_LANES * ATTEND_LANES;
    return n;
}

/* Keys or values that are read later; none where that is left to the processor. */
struct attend_later {
    const char *from;
    size_t bytes;
};

/* What comes ATTEND_AHEAD pieces after piece i of a chunk: its keys, then its values, then the keys of the next. */
static inline struct attend_later attend_after(const struct attend *a, const struct attend_rows *r,
                                               const struct attend_rows *next, size_t i)
{
    i += ATTEND_AHEAD;
    const size_t over = i < 2 * r->pieces ? 0 : i - 2 * r->pieces;
    const struct attend_piece *p = i < r->pieces       ? &r->piece[i]
                                   : i < 2 * r->pieces ? &r->piece[i - r->pieces]
                                                       : &next->piece[over < next->pieces ? over : 0];
    const bool values = i >= r->pieces && i < 2 * r->pieces;
    return (struct attend_later){values ? p->v : p->k, attend_leaves(a) ? 0 : p->n * a->step};
}

/* Queries of other heads, nothing summed. */
typedef void attend_start(const struct attend *a, const void *q);

/* One chunk; next: the chunk that comes after it, or itself, whose first keys are fetched. */
typedef void attend_chunk(const struct attend *a, const struct attend_rows *r, const struct attend_rows *next);

/* Writes [heads][value_dim]. */
typedef void attend_finish(const struct attend *a, void *out);

/* The code of one instruction set. */
struct attend_code {
    attend_start *start;
    attend_chunk *chunk;
    attend_finish *finish;
};

extern const struct attend_code attend_portable;
#if defined(__x86_64__)
extern const struct attend_code attend_avx2, attend_avx512, attend_dot;
#endif

#endif
