/* prefill-attention on a card: bf16, by the tensor cores, after FlashAttention-2 (Dao, arXiv:2307.08691).
 *
 * A block has four warps and 32 rows of queries for each, 16 where heads are wide; it walks the keys that they see in
 * chunks, which come by asynchronous copies into two stages, one filled while the other is worked on. Scores stay in
 * registers: as they lie after the first product they are the first factor of the second. The running maximum and sum
 * of a row are with the four lanes that hold it. Chunks that all rows of a warp see whole are not masked, those that
 * none sees are passed over. Blocks with most keys start first, so that short ones fill the end.
 * Heads are padded with zeros to 64, 128 or 256 elements in shared memory, nothing is read for it. */
#include "kernels/attend_tile.h"

enum { BATCH, LEN, HEADS, KV_HEADS, DIM, WINDOW };
enum { WARPS = 4, THREADS = 128, TILES_MAX = 2, KEYS_MAX = 64 / 8, WIDE_MAX = 256 / 8 };

struct prefill_args {
    const uint16_t *q, *k, *v;
    uint16_t *out;
    int len, heads, kv_heads, dim, window, sequences; /* window: of every query, len without one */
    float scale;                                      /* of powers of two */
};

/* Rows of a warp in tiles of 16; keys of a chunk. */
KERN_BOTH int prefill_tiles(int room) { return room == 256 ? 1 : 2; }
KERN_BOTH int prefill_rows(int room) { return WARPS * 16 * prefill_tiles(room); }
KERN_BOTH int prefill_chunk(int room) { return room > 64 ? 32 : 64; }
KERN_BOTH int prefill_stage(int room) { return 2 * prefill_chunk(room) * room * 2; }
KERN_BOTH int prefill_shared(int room) { return prefill_rows(room) * room * 2 + 2 * prefill_stage(room); }

/* Rows lane / 4 and 8 more of each tile. */
struct prefill_state {
    float most[TILES_MAX][2], sum[TILES_MAX][2]; /* most: before scaling; sum: of this lane's columns */
    float out[TILES_MAX][WIDE_MAX][4];
};

/* Starts the copy of `rows` rows, `step` elements apart, from token `first` on. */
KERN_FN void prefill_fetch(const struct prefill_args *a, unsigned char *tile, const uint16_t *from, size_t at, int step,
                           int first, int rows, int room)
{
    const int pieces = room / TILE_PIECE;
    KERN_UNROLL_BY(unroll 2)
    for (int i = (int)threadIdx.x; i < rows * pieces; i += THREADS) {
        const int row = i / pieces, piece = i % pieces;
        tile_fetch(tile_at(tile, row, piece, room), from, at + (size_t)(first + row) * (size_t)step, piece, a->dim,
                   first + row < a->len);
    }
}

/* Scores of the rows of a warp with a chunk of keys. */
KERN_FN void prefill_score(float s[TILES_MAX][KEYS_MAX][4], unsigned char *queries, unsigned char *keys, int row,
                           int room)
{
    const int lane = (int)threadIdx.x % KERN_WARP, tiles = prefill_tiles(room), chunk = prefill_chunk(room);
    KERN_UNROLL_LOOP
    for (int t = 0; t < tiles; t++) {
        KERN_UNROLL_LOOP
        for (int j = 0; j < chunk / 8; j++) s[t][j][0] = s[t][j][1] = s[t][j][2] = s[t][j][3] = 0;
    }
    KERN_UNROLL_LOOP
    for (int i = 0; i < room / 16; i++) {
        uint32_t x[TILES_MAX][4];
        KERN_UNROLL_LOOP
        for (int t = 0; t < tiles; t++)
            kern_ldmatrix(x[t], tile_at(queries, row + t * 16 + lane % 16, i * 2 + lane / 16, room));
        KERN_UNROLL_LOOP
        for (int j = 0; j < chunk / 16; j++) {
            uint32_t y[4];
            kern_ldmatrix(y, tile_at(keys, j * 16 + lane / 16 * 8 + lane % 8, i * 2 + lane / 8 % 2, room));
            KERN_UNROLL_LOOP
            for (int t = 0; t < tiles; t++) {
                kern_mma_bf16(s[t][j * 2], x[t], y);
                kern_mma_bf16(s[t][j * 2 + 1], x[t], y + 2);
            }
        }
    }
}

/* Scores into weights; masked: those of keys that a row does not see are none. query: of the warp's first row; key: of
 * the chunk's first. */
KERN_FN void prefill_soften(struct prefill_state *st, float s[TILES_MAX][KEYS_MAX][4], const struct prefill_args *a,
                            int query, int key, bool masked, int room)
{
    const int lane = (int)threadIdx.x % KERN_WARP, chunk = prefill_chunk(room);
    KERN_UNROLL_LOOP
    for (int t = 0; t < prefill_tiles(room); t++) {
        KERN_UNROLL_LOOP
        for (int h = 0; h < 2; h++) {
            const int last = query + t * 16 + h * 8 + lane / 4 - key, first = last - a->window;
            float most = st->most[t][h];
            KERN_UNROLL_LOOP
            for (int j = 0; j < chunk / 4; j++) {
                float *const v = &s[t][j / 2][h * 2 + j % 2];
                const int column = j / 2 * 8 + lane % 4 * 2 + j % 2;
                if (masked && (column > last || column <= first))
                    *v = __uint_as_float(0xff800000u); /* less than any that is */
                most = fmaxf(most, *v);
            }
            most = tile_most(most);
            const float shrink = kern_exp2((st->most[t][h] - most) * a->scale), base = most * a->scale;
            st->most[t][h] = most;
            st->sum[t][h] *= shrink;
            KERN_UNROLL_LOOP
            for (int j = 0; j < chunk / 4; j++) {
                float *const v = &s[t][j / 2][h * 2 + j % 2];
                *v = kern_exp2(fmaf(*v, a->scale, -base));
                st->sum[t][h] += *v;
            }
            KERN_UNROLL_LOOP
            for (int j = 0; j < room / 8; j++) st->out[t][j][h * 2] *= shrink, st->out[t][j][h * 2 + 1] *= shrink;
        }
    }
}

/* The weighted values of a chunk. */
KERN_FN void prefill_weigh(struct prefill_state *st, float s[TILES_MAX][KEYS_MAX][4], unsigned char *values, int room)
{
    const int lane = (int)threadIdx.x % KERN_WARP, tiles = prefill_tiles(room);
    KERN_UNROLL_LOOP
    for (int i = 0; i < prefill_chunk(room) / 16; i++) {
        uint32_t p[TILES_MAX][4];
        KERN_UNROLL_LOOP
        for (int t = 0; t < tiles; t++) {
            KERN_UNROLL_LOOP
            for (int r = 0; r < 4; r++)
                p[t][r] = kern_pair_bf16(s[t][i * 2 + r / 2][r % 2 * 2], s[t][i * 2 + r / 2][r % 2 * 2 + 1]);
        }
        KERN_UNROLL_LOOP
        for (int j = 0; j < room / 16; j++) {
            uint32_t y[4];
            kern_ldmatrix_transposed(y, tile_at(values, i * 16 + lane % 16, j * 2 + lane / 16, room));
            KERN_UNROLL_LOOP
            for (int t = 0; t < tiles; t++) {
                kern_mma_bf16(st->out[t][j * 2], p[t], y);
                kern_mma_bf16(st->out[t][j * 2 + 1], p[t], y + 2);
            }
        }
    }
}

KERN_FN void prefill_put(const struct prefill_args *a, const struct prefill_state *st, size_t at, int query, int room)
{
    const int lane = (int)threadIdx.x % KERN_WARP;
    KERN_UNROLL_LOOP
    for (int t = 0; t < prefill_tiles(room); t++) {
        KERN_UNROLL_LOOP
        for (int h = 0; h < 2; h++) {
            const float sum = tile_total(st->sum[t][h]);
            const int token = query + t * 16 + h * 8 + lane / 4;
            uint16_t *const to = a->out + at + (size_t)token * (size_t)(a->heads * a->dim);
            KERN_UNROLL_LOOP
            for (int j = 0; j < room / 8; j++) {
                const int d = j * 8 + lane % 4 * 2;
                const float first = st->out[t][j][h * 2] / sum, second = st->out[t][j][h * 2 + 1] / sum;
                if (token >= a->len || d >= a->dim) continue;
                if (a->dim % 2 == 0) {
                    *(uint32_t *)(to + d) = kern_pair_bf16(first, second);
                } else {
                    to[d] = kern_one_bf16(first);
                    if (d + 1 < a->dim) to[d + 1] = kern_one_bf16(second);
                }
            }
        }
    }
}

/* room: 64, 128 or 256, a constant. */
KERN_FN void prefill_block(const struct prefill_args *a, unsigned char *shared, int room)
{
    const int rows = prefill_rows(room), chunk = prefill_chunk(room), warp_rows = 16 * prefill_tiles(room);
    unsigned char *const queries = shared, *const ring = shared + rows * room * 2;
    const int blocks = tile_parts(a->len, rows), heads = a->heads * a->sequences;
    const int q0 = (blocks - 1 - (int)blockIdx.x / heads) * rows, sequence = (int)blockIdx.x % heads / a->heads;
    const int head = (int)blockIdx.x % a->heads, kv_head = head / (a->heads / a->kv_heads);
    const size_t token = (size_t)sequence * (size_t)a->len;
    const size_t query_at = (token * (size_t)a->heads + (size_t)head) * (size_t)a->dim;
    const size_t key_at = (token * (size_t)a->kv_heads + (size_t)kv_head) * (size_t)a->dim;
    const int step = a->kv_heads * a->dim, row = (int)threadIdx.x / KERN_WARP * warp_rows, query = q0 + row;
    const int end = tile_parts(tile_min(a->len, q0 + rows), chunk), start = tile_max(0, q0 + 1 - a->window) / chunk;
    struct prefill_state st;
    KERN_UNROLL_LOOP
    for (int t = 0; t < prefill_tiles(room); t++) {
        st.most[t][0] = st.most[t][1] = -1e30f;
        st.sum[t][0] = st.sum[t][1] = 0;
        KERN_UNROLL_LOOP
        for (int j = 0; j < room / 8; j++) st.out[t][j][0] = st.out[t][j][1] = st.out[t][j][2] = st.out[t][j][3] = 0;
    }
    prefill_fetch(a, queries, a->q, query_at, a->heads * a->dim, q0, rows, room);
    prefill_fetch(a, ring, a->k, key_at, step, start * chunk, chunk, room);
    prefill_fetch(a, ring + prefill_stage(room) / 2, a->v, key_at, step, start * chunk, chunk, room);
    kern_copy_commit();
    for (int c = start; c < end; c++) {
        unsigned char *const stage = ring + (c - start) % 2 * prefill_stage(room);
        unsigned char *const other = ring + (c - start + 1) % 2 * prefill_stage(room);
        const int key = c * chunk;
        kern_copy_wait(0);
        __syncthreads(); /* chunk c is there for all, and all are done with the other stage */
        if (c + 1 < end) {
            prefill_fetch(a, other, a->k, key_at, step, key + chunk, chunk, room);
            prefill_fetch(a, other + prefill_stage(room) / 2, a->v, key_at, step, key + chunk, chunk, room);
        }
        kern_copy_commit();
        /* the warp's last row is before the chunk, or its first row's window behind it */
        if (key > query + warp_rows - 1 || key + chunk - 1 <= query - a->window) continue;
        const bool masked = key + chunk - 1 > query || key <= query + warp_rows - 1 - a->window;
        float s[TILES_MAX][KEYS_MAX][4];
        prefill_score(s, queries, stage, row, room);
        prefill_soften(&st, s, a, query, key, masked, room);
        prefill_weigh(&st, s, stage + prefill_stage(room) / 2, room);
    }
    prefill_put(a, &st, query_at, query, room);
}

KERN_GLOBAL(prefill_64, struct prefill_args, a, THREADS)
{
    KERN_SHARED_MEMORY(shared);
    prefill_block(&a, shared, 64);
}
KERN_GLOBAL(prefill_128, struct prefill_args, a, THREADS)
{
    KERN_SHARED_MEMORY(shared);
    prefill_block(&a, shared, 128);
}
KERN_GLOBAL(prefill_256, struct prefill_args, a, THREADS)
{
    KERN_SHARED_MEMORY(shared);
    prefill_block(&a, shared, 256);
}

/* -- the launch -- */

static int prefill_room(const struct kern_shape *s) { return s->v[DIM] <= 64 ? 64 : s->v[DIM] <= 128 ? 128 : 256; }

static double prefill_blocks(const struct kern_shape *s)
{
    return (double)s->v[BATCH] * (double)s->v[HEADS] * tile_parts((int)s->v[LEN], prefill_rows(prefill_room(s)));
}

static const char *prefill_lacks(const struct kern_machine *m, const struct kern_shape *s)
{
    if (m->capability < 80) return "no bf16 tensor cores: compute capability 8.0 or higher";
    if (s->v[DIM] > 256) return "heads are wider than 256";
    if (m->shared_bytes < prefill_shared(prefill_room(s))) return "too little shared memory for so wide heads";
    if (prefill_blocks(s) >= 2147483648.0) return "too many blocks";
    return NULL;
}

static void prefill_run(const struct kern_call *c)
{
    const struct kern_shape *const s = c->shape;
    const int room = prefill_room(s), len = (int)s->v[LEN];
    const struct prefill_args a = {(const uint16_t *)c->buffer[0],
                                   (const uint16_t *)c->buffer[1],
                                   (const uint16_t *)c->buffer[2],
                                   (uint16_t *)c->buffer[3],
                                   len,
                                   (int)s->v[HEADS],
                                   (int)s->v[KV_HEADS],
                                   (int)s->v[DIM],
                                   s->v[WINDOW] && s->v[WINDOW] < len ? (int)s->v[WINDOW] : len,
                                   (int)s->v[BATCH],
                                   1.44269504f / sqrtf((float)s->v[DIM])};
    const unsigned blocks = (unsigned)prefill_blocks(s);
    if (room == 64)
        KERN_LAUNCH(prefill_64, blocks, 1, 1, THREADS, (size_t)prefill_shared(64), c->stream, a);
    else if (room == 128)
        KERN_LAUNCH(prefill_128, blocks, 1, 1, THREADS, (size_t)prefill_shared(128), c->stream, a);
    else
        KERN_LAUNCH(prefill_256, blocks, 1, 1, THREADS, (size_t)prefill_shared(256), c->stream, a);
}

static const struct kern_variant VARIANTS[] = {
    {"cuda-mma", KERN_UNIT_TENSOR, KERN_HAS(KERN_BF16), prefill_lacks, NULL, NULL, prefill_run, 0, false, NULL},
};

/* Layers of models of 8 and 70 billion parameters, narrow and wide heads, a window. */
static const struct kern_point POINTS[] = {
    {{{1, 2048, 32, 8, 128, 0}, KERN_BF16}, true},      {{{1, 8192, 32, 8, 128, 0}, KERN_BF16}, true},
    {{{1, 32768, 32, 8, 128, 0}, KERN_BF16}, false},    {{{8, 2048, 64, 8, 128, 0}, KERN_BF16}, false},
    {{{1, 16384, 32, 8, 128, 4096}, KERN_BF16}, false}, {{{1, 8192, 32, 8, 64, 0}, KERN_BF16}, false},
    {{{1, 8192, 16, 8, 256, 0}, KERN_BF16}, false},
};

const struct kern_cuda kern_cuda_prefill_attention = {&kern_prefill_attention, VARIANTS, 1, POINTS,
                                                      sizeof POINTS / sizeof POINTS[0]};
