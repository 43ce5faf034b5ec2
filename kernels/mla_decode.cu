/* mla-decode on a card: bf16, by the tensor cores, what is key and value read once for all heads of a block.
 *
 * The query heads of a sequence are the rows of the products, 16, 32 or 64 of them a block, padded with zeros; the row
 * of a token, latent and rope part, meets all of them while it is in shared memory, first as the key, then its latent
 * as the value. A sequence is cut into splits, as many as fill the card; a block walks its split in chunks of 32 tokens
 * that come by asynchronous copies into two stages; rows of a chunk are looked up in the page table a chunk ahead of
 * its copies. Of a chunk its eight warps first take scores, 32 heads (16 where
 * there are no more) x 16 tokens over a part of the row each; then each head's lanes add the parts up and soften them,
 * with its running maximum and sum in registers; then every warp adds the weighted values of its columns to sums in
 * registers, 512 columns at most. Of splits a second kernel joins the sums.
 * Weights lie in place of the first part of the scores: a weight depends, by the maximum, on all scores of its row. */
#include "kernels/attend_tile.h"

enum { BATCH, LEN, HEADS, RANK, ROPE, PAGE };
enum { CHUNK = 32, WARPS = 8, THREADS = 256, LINE = 64 /* elements of 128 bytes */, RANK_MAX = 512 };
enum { SIDE = LINE / TILE_PIECE }; /* threads that copy a row: those of a block a chunk's */
enum { TILES_MAX = 2, COLUMNS_MAX = 16, SCORES_MAX = 8 };
enum { SPLITS_MAX = 128, SPLIT_LEAST = 2 /* chunks */ };

struct mla_args {
    const uint16_t *q, *cache;
    const int32_t *table;
    uint16_t *out;
    float *parts;                           /* [batch][heads][splits][rank + 2]: weighted values, maximum, sum */
    int len, heads, tiles, row, rank, room; /* room: of a row in shared memory */
    int page, pages, splits, chunks;        /* pages of a sequence, chunks of a split */
    float scale;                            /* of powers of two */
};

/* Of `rows` heads: tiles of 16 that a warp has; warps one below the other; parts of a score. */
KERN_BOTH int mla_tiles(int rows) { return rows == 16 ? 1 : 2; }
KERN_BOTH int mla_stacks(int rows) { return rows / 16 / mla_tiles(rows); }
KERN_BOTH int mla_depths(int rows) { return WARPS / (CHUNK / 16) / mla_stacks(rows); }

/* Shared memory: two stages, queries, parts of scores, and of each row the factor of what was before, maximum, sum. */
KERN_BOTH int mla_scores(int rows) { return rows * CHUNK * 4; }
KERN_BOTH int mla_shared(int rows, int room)
{
    return (2 * CHUNK + rows) * room * 2 + mla_depths(rows) * mla_scores(rows) + rows * 3 * 4;
}

/* Row of the cache that a token has; 0 beyond the end, which is not read. */
KERN_FN uint32_t mla_row(const struct mla_args *a, int sequence, int token, int to)
{
    if (token >= to) return 0;
    const uint32_t page = (uint32_t)a->table[(size_t)sequence * (size_t)a->pages + (size_t)(token / a->page)];
    return page * (uint32_t)a->page + (uint32_t)(token % a->page);
}

/* Starts this thread's share, one of eight, of the copy of a row. */
KERN_FN void mla_fetch(const struct mla_args *a, unsigned char *tile, int r, const uint16_t *from, size_t row,
                       bool there)
{
    for (int piece = (int)threadIdx.x % SIDE; piece < a->room / TILE_PIECE; piece += SIDE)
        tile_fetch(tile_at(tile, r, piece, a->room), from, row * (size_t)a->row, piece, a->row, there);
}

/* Where two neighbours of a part of scores lie: eight rows in different banks. */
KERN_FN float2 *mla_score_at(unsigned char *scores, int row, int column)
{
    return (float2 *)(void *)(scores + row * CHUNK * 4 + (((column / 4) ^ (row & 7)) << 4) + column % 4 * 4);
}

/* A warp's part of the scores of a chunk. */
KERN_FN void mla_score(unsigned char *queries, unsigned char *stage, unsigned char *scores, int steps, int room,
                       int rows)
{
    const int lane = (int)threadIdx.x % KERN_WARP, warp = (int)threadIdx.x / KERN_WARP;
    const int tiles = mla_tiles(rows), depths = mla_depths(rows), depth = warp % depths;
    const int token = warp / depths % 2 * 16, row = warp / depths / 2 * 16 * tiles;
    float s[TILES_MAX][2][4];
    KERN_UNROLL_LOOP
    for (int t = 0; t < tiles; t++) {
        KERN_UNROLL_LOOP
        for (int j = 0; j < 2; j++) s[t][j][0] = s[t][j][1] = s[t][j][2] = s[t][j][3] = 0;
    }
    KERN_UNROLL_BY(unroll 3)
    for (int i = steps * depth / depths; i < steps * (depth + 1) / depths; i++) {
        uint32_t x[TILES_MAX][4], y[4];
        KERN_UNROLL_LOOP
        for (int t = 0; t < tiles; t++)
            kern_ldmatrix(x[t], tile_at(queries, row + t * 16 + lane % 16, i * 2 + lane / 16, room));
        kern_ldmatrix(y, tile_at(stage, token + lane / 16 * 8 + lane % 8, i * 2 + lane / 8 % 2, room));
        KERN_UNROLL_LOOP
        for (int t = 0; t < tiles; t++) {
            kern_mma_bf16(s[t][0], x[t], y);
            kern_mma_bf16(s[t][1], x[t], y + 2);
        }
    }
    KERN_UNROLL_LOOP
    for (int t = 0; t < tiles; t++) {
        KERN_UNROLL_LOOP
        for (int j = 0; j < 4; j++) { /* half of the rows, half of the tokens */
            const float2 two = {s[t][j % 2][j / 2 * 2], s[t][j % 2][j / 2 * 2 + 1]};
            *mla_score_at(scores + depth * mla_scores(rows), row + t * 16 + j / 2 * 8 + lane / 4,
                          token + j % 2 * 8 + lane % 4 * 2) = two;
        }
    }
}

/* A row's softmax so far; sum: of this lane's tokens. */
struct mla_state {
    float most, sum;
};

/* Scores into weights; of the chunk's tokens `tokens` are there, at least one. */
KERN_FN void mla_soften(struct mla_state *st, unsigned char *scores, float *shrinks, int tokens, float scale, int rows)
{
    const int lanes = THREADS / rows, n = CHUNK / lanes, row = (int)threadIdx.x / lanes;
    const int first = (int)threadIdx.x % lanes * n;
    float v[SCORES_MAX], most = st->most;
    KERN_UNROLL_LOOP
    for (int j = 0; j < n; j += 2) {
        float2 s = *mla_score_at(scores, row, first + j);
        KERN_UNROLL_LOOP
        for (int d = 1; d < mla_depths(rows); d++) {
            const float2 more = *mla_score_at(scores + d * mla_scores(rows), row, first + j);
            s.x += more.x;
            s.y += more.y;
        }
        v[j] = first + j < tokens ? s.x * scale : -1e30f;
        v[j + 1] = first + j + 1 < tokens ? s.y * scale : -1e30f;
        most = fmaxf(most, fmaxf(v[j], v[j + 1]));
    }
    KERN_UNROLL_LOOP
    for (int by = 1; by < lanes; by *= 2) most = fmaxf(most, __shfl_xor_sync(KERN_ALL, most, by));
    const float shrink = kern_exp2(st->most - most);
    st->most = most;
    st->sum *= shrink;
    if (first == 0) shrinks[row] = shrink;
    KERN_UNROLL_LOOP
    for (int j = 0; j < n; j += 2) {
        v[j] = kern_exp2(v[j] - most);
        v[j + 1] = kern_exp2(v[j + 1] - most);
        st->sum += v[j] + v[j + 1];
        unsigned char *const at = tile_at(scores, row, (first + j) / TILE_PIECE, LINE) + (first + j) % TILE_PIECE * 2;
        *(uint32_t *)(void *)at = kern_pair_bf16(v[j], v[j + 1]);
    }
}

/* A warp's columns are every mla_groups-th 16, so that a narrow latent is shared out too. */
KERN_BOTH int mla_groups(int rows) { return WARPS / mla_stacks(rows); }
KERN_BOTH int mla_columns(int rows) { return RANK_MAX / 16 / mla_groups(rows); }

/* The weighted values of a chunk in a warp's columns. */
KERN_FN void mla_weigh(float out[TILES_MAX][COLUMNS_MAX][4], unsigned char *weights, unsigned char *stage,
                       const float *shrinks, int rank, int room, int rows)
{
    const int lane = (int)threadIdx.x % KERN_WARP, warp = (int)threadIdx.x / KERN_WARP;
    const int tiles = mla_tiles(rows), groups = mla_groups(rows), row = warp / groups * 16 * tiles;
    KERN_UNROLL_LOOP
    for (int t = 0; t < tiles; t++) {
        const float above = shrinks[row + t * 16 + lane / 4], below = shrinks[row + t * 16 + lane / 4 + 8];
        KERN_UNROLL_LOOP
        for (int j = 0; j < mla_columns(rows) * 2; j++) {
            out[t][j][0] *= above, out[t][j][1] *= above;
            out[t][j][2] *= below, out[t][j][3] *= below;
        }
    }
    KERN_UNROLL_LOOP
    for (int i = 0; i < CHUNK / 16; i++) {
        uint32_t p[TILES_MAX][4];
        KERN_UNROLL_LOOP
        for (int t = 0; t < tiles; t++)
            kern_ldmatrix(p[t], tile_at(weights, row + t * 16 + lane % 16, i * 2 + lane / 16, LINE));
        KERN_UNROLL_LOOP
        for (int j = 0; j < mla_columns(rows); j++) {
            const int column = j * groups + warp % groups;
            uint32_t y[4];
            if (column * 16 >= rank) continue;
            kern_ldmatrix_transposed(y, tile_at(stage, i * 16 + lane % 16, column * 2 + lane / 16, room));
            KERN_UNROLL_LOOP
            for (int t = 0; t < tiles; t++) {
                kern_mma_bf16(out[t][j * 2], p[t], y);
                kern_mma_bf16(out[t][j * 2 + 1], p[t], y + 2);
            }
        }
    }
}

/* Two neighbours of a row into the result, or into the split's part. */
KERN_FN void mla_put_pair(const struct mla_args *a, size_t row, int split, int d, float first, float second, float sum)
{
    if (d >= a->rank) return;
    if (a->splits > 1) {
        float *const part = a->parts + (row * (size_t)a->splits + (size_t)split) * (size_t)(a->rank + 2);
        part[d] = first;
        if (d + 1 < a->rank) part[d + 1] = second;
    } else if (a->rank % 2 == 0) {
        *(uint32_t *)(a->out + row * (size_t)a->rank + d) = kern_pair_bf16(first / sum, second / sum);
    } else {
        a->out[row * (size_t)a->rank + (size_t)d] = kern_one_bf16(first / sum);
        if (d + 1 < a->rank) a->out[row * (size_t)a->rank + (size_t)d + 1] = kern_one_bf16(second / sum);
    }
}

/* stats: of each row maximum and sum. */
KERN_FN void mla_put(const struct mla_args *a, float out[TILES_MAX][COLUMNS_MAX][4], const struct mla_state *st,
                     float *stats, size_t query, int heads, int split, int rows)
{
    const int lane = (int)threadIdx.x % KERN_WARP, warp = (int)threadIdx.x / KERN_WARP, lanes = THREADS / rows;
    const int tiles = mla_tiles(rows), groups = mla_groups(rows), first = warp / groups * 16 * tiles;
    float sum = st->sum;
    KERN_UNROLL_LOOP
    for (int by = 1; by < lanes; by *= 2) sum += __shfl_xor_sync(KERN_ALL, sum, by);
    if ((int)threadIdx.x % lanes == 0) {
        stats[(int)threadIdx.x / lanes * 2] = st->most;
        stats[(int)threadIdx.x / lanes * 2 + 1] = sum;
    }
    __syncthreads();
    if (a->splits > 1 && (int)threadIdx.x < heads) {
        const size_t row = query + threadIdx.x;
        float *const part = a->parts + (row * (size_t)a->splits + (size_t)split) * (size_t)(a->rank + 2);
        part[a->rank] = stats[threadIdx.x * 2];
        part[a->rank + 1] = stats[threadIdx.x * 2 + 1];
    }
    KERN_UNROLL_LOOP
    for (int t = 0; t < tiles; t++) {
        KERN_UNROLL_LOOP
        for (int h = 0; h < 2; h++) {
            const int row = first + t * 16 + h * 8 + lane / 4;
            const float all = stats[row * 2 + 1];
            if (row >= heads) continue;
            KERN_UNROLL_LOOP
            for (int j = 0; j < mla_columns(rows) * 2; j++)
                mla_put_pair(a, query + (size_t)row, split,
                             (j / 2 * groups + warp % groups) * 16 + j % 2 * 8 + lane % 4 * 2, out[t][j][h * 2],
                             out[t][j][h * 2 + 1], all);
        }
    }
}

/* rows: 16, 32 or 64, a constant. */
KERN_FN void mla_block(const struct mla_args *a, unsigned char *shared, int rows)
{
    const int stage_bytes = CHUNK * a->room * 2, steps = tile_parts(a->row, 16);
    unsigned char *const queries = shared + 2 * stage_bytes, *const scores = queries + rows * a->room * 2;
    float *const shrinks = (float *)(void *)(scores + mla_depths(rows) * mla_scores(rows));
    const int split = (int)blockIdx.x % a->splits, tile = (int)blockIdx.x / a->splits % a->tiles;
    const int sequence = (int)blockIdx.x / a->splits / a->tiles, own = (int)threadIdx.x / SIDE;
    const int from = split * a->chunks * CHUNK, to = tile_min(a->len, from + a->chunks * CHUNK);
    const int chunks = tile_parts(to - from, CHUNK), heads = tile_min(a->heads - tile * rows, rows);
    const size_t query = (size_t)sequence * (size_t)a->heads + (size_t)(tile * rows);
    uint32_t ahead = mla_row(a, sequence, from + own, to); /* of this thread's token in the chunk fetched next */
    struct mla_state st = {-1e30f, 0};
    float out[TILES_MAX][COLUMNS_MAX][4];
    KERN_UNROLL_LOOP
    for (int t = 0; t < mla_tiles(rows); t++) {
        KERN_UNROLL_LOOP
        for (int j = 0; j < mla_columns(rows) * 2; j++) out[t][j][0] = out[t][j][1] = out[t][j][2] = out[t][j][3] = 0;
    }
    KERN_UNROLL_LOOP
    for (int r = own; r < rows; r += CHUNK) mla_fetch(a, queries, r, a->q, query + (size_t)r, r < heads);
    mla_fetch(a, shared, own, a->cache, ahead, from + own < to);
    ahead = mla_row(a, sequence, from + CHUNK + own, to);
    kern_copy_commit();
    for (int c = 0; c < chunks; c++) {
        unsigned char *const stage = shared + c % 2 * stage_bytes;
        const int left = to - from - (c + 1) * CHUNK;
        kern_copy_wait(0);
        __syncthreads(); /* chunk c is there for all, and all are done with the other stage and the weights */
        if (left > 0) mla_fetch(a, shared + (c + 1) % 2 * stage_bytes, own, a->cache, ahead, own < left);
        kern_copy_commit();
        ahead = mla_row(a, sequence, from + (c + 2) * CHUNK + own, to);
        mla_score(queries, stage, scores, steps, a->room, rows);
        __syncthreads();
        mla_soften(&st, scores, shrinks, left + CHUNK, a->scale, rows);
        __syncthreads();
        mla_weigh(out, scores, stage, shrinks, a->rank, a->room, rows);
    }
    mla_put(a, out, &st, shrinks + rows, query, heads, split, rows);
}

KERN_GLOBAL(mla_16, struct mla_args, a, THREADS)
{
    KERN_SHARED_MEMORY(shared);
    mla_block(&a, shared, 16);
}
KERN_GLOBAL(mla_32, struct mla_args, a, THREADS)
{
    KERN_SHARED_MEMORY(shared);
    mla_block(&a, shared, 32);
}
KERN_GLOBAL(mla_64, struct mla_args, a, THREADS)
{
    KERN_SHARED_MEMORY(shared);
    mla_block(&a, shared, 64);
}

/* One head of one sequence: its splits joined. */
KERN_GLOBAL(mla_join, struct mla_args, a, THREADS)
{
    const size_t row = blockIdx.x;
    tile_join(a.parts + row * (size_t)a.splits * (size_t)(a.rank + 2), a.splits, a.rank, a.out + row * (size_t)a.rank);
}

/* -- the launch -- */

static int mla_rows(const struct kern_shape *s) { return s->v[HEADS] <= 16 ? 16 : s->v[HEADS] <= 32 ? 32 : 64; }
static int mla_room(const struct kern_shape *s) { return tile_parts((int)(s->v[RANK] + s->v[ROPE]), LINE) * LINE; }

static void mla_plan(const struct kern_shape *s, const struct kern_machine *m, struct mla_args *a)
{
    const int rows = mla_rows(s), chunks = tile_parts((int)s->v[LEN], CHUNK);
    const int beside = (int)(m->shared_bytes / (mla_shared(rows, mla_room(s)) + 1024)); /* not a unit: of the system */
    a->tiles = tile_parts((int)s->v[HEADS], rows);
    a->chunks = tile_split(chunks, tile_min(SPLITS_MAX, chunks / SPLIT_LEAST), (double)s->v[BATCH] * a->tiles,
                           (double)m->processors * tile_max(beside, 1));
    a->splits = tile_parts(chunks, a->chunks);
}

static size_t mla_scratch(const struct kern_shape *s, const struct kern_machine *m)
{
    struct mla_args a;
    mla_plan(s, m, &a);
    return a.splits == 1 ? 0
                         : (size_t)s->v[BATCH] * (size_t)s->v[HEADS] * (size_t)a.splits * (size_t)(s->v[RANK] + 2) * 4;
}

static const char *mla_lacks(const struct kern_machine *m, const struct kern_shape *s)
{
    const double page = (double)(s->v[PAGE] ? s->v[PAGE] : s->v[LEN]);
    if (m->capability < 80) return "no bf16 tensor cores: compute capability 8.0 or higher";
    if (s->v[RANK] > RANK_MAX) return "the latent is wider than 512";
    if (m->shared_bytes < mla_shared(mla_rows(s), mla_room(s))) return "too little shared memory for so wide rows";
    if ((double)s->v[BATCH] * ceil((double)s->v[LEN] / page) * page >= 4294967296.0)
        return "the cache has more than 2^32 rows";
    if ((double)s->v[BATCH] * (double)s->v[HEADS] * SPLITS_MAX >= 2147483648.0) return "too many blocks";
    return NULL;
}

static void mla_run(const struct kern_call *c)
{
    const struct kern_shape *const s = c->shape;
    const int rows = mla_rows(s);
    struct mla_args a;
    mla_plan(s, c->machine, &a);
    a.q = (const uint16_t *)c->buffer[0];
    a.cache = (const uint16_t *)c->buffer[1];
    a.table = (const int32_t *)c->buffer[2];
    a.out = (uint16_t *)c->buffer[3];
    a.parts = (float *)c->scratch;
    a.len = (int)s->v[LEN];
    a.heads = (int)s->v[HEADS];
    a.row = (int)(s->v[RANK] + s->v[ROPE]);
    a.rank = (int)s->v[RANK];
    a.room = mla_room(s);
    a.page = (int)(s->v[PAGE] ? s->v[PAGE] : s->v[LEN]);
    a.pages = tile_parts(a.len, a.page);
    a.scale = 1.44269504f / sqrtf((float)a.row); /* exponentials by powers of two */
    const unsigned blocks = (unsigned)s->v[BATCH] * (unsigned)(a.tiles * a.splits);
    if (rows == 16)
        KERN_LAUNCH(mla_16, blocks, 1, 1, THREADS, (size_t)mla_shared(16, a.room), c->stream, a);
    else if (rows == 32)
        KERN_LAUNCH(mla_32, blocks, 1, 1, THREADS, (size_t)mla_shared(32, a.room), c->stream, a);
    else
        KERN_LAUNCH(mla_64, blocks, 1, 1, THREADS, (size_t)mla_shared(64, a.room), c->stream, a);
    if (a.splits > 1) KERN_LAUNCH(mla_join, (unsigned)s->v[BATCH] * (unsigned)a.heads, 1, 1, THREADS, 0, c->stream, a);
}

static const struct kern_variant VARIANTS[] = {
    {"cuda-mma", KERN_UNIT_TENSOR, KERN_HAS(KERN_BF16), mla_lacks, NULL, NULL, mla_run, 0, false, mla_scratch},
};

/* From 64 MB of cache on: 16 heads, as the share of one of eight cards; 64 and 128, a whole layer; a narrow latent. */
static const struct kern_point POINTS[] = {
    {{{16, 8192, 16, 512, 64, 64}, KERN_BF16}, true},    {{{1, 65536, 16, 512, 64, 64}, KERN_BF16}, true},
    {{{16, 8192, 128, 512, 64, 64}, KERN_BF16}, true},   {{{64, 4096, 128, 512, 64, 64}, KERN_BF16}, false},
    {{{1, 131072, 128, 512, 64, 64}, KERN_BF16}, false}, {{{64, 4096, 32, 512, 64, 0}, KERN_BF16}, false},
    {{{32, 8192, 64, 512, 64, 64}, KERN_BF16}, false},   {{{64, 4096, 40, 256, 32, 16}, KERN_BF16}, false},
};

const struct kern_cuda kern_cuda_mla_decode = {&kern_mla_decode, VARIANTS, 1, POINTS, sizeof POINTS / sizeof POINTS[0]};
