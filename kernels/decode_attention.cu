/* decode-attention on a card: bf16, the cache read once, by the tensor cores.
 *
 * The query heads that share a key head are the 16 rows of an mma, so that a key and a value meet all of them while
 * they are in registers; more than 16 are further blocks, whose reads the second cache serves. The cache of a sequence
 * is cut into splits, as many as fill the card; a block walks its split in chunks of 64 tokens that come by
 * asynchronous copies into a ring, 16 tokens a warp, each warp with a softmax of its own (running maximum and sum),
 * joined at the end. Of splits a second kernel joins the sums. Addresses of a chunk's rows are looked up in the page
 * table a chunk ahead of its copies. Heads are padded with zeros to 64, 128 or 256 elements in shared memory, nothing
 * is read for it. */
#include "kernels/attend_tile.h"

enum { BATCH, LEN, HEADS, KV_HEADS, DIM, WINDOW, PAGE };
enum { ROWS = 16, CHUNK = 64, WARPS = 4, THREADS = 128, TILES_MAX = 256 / 8 };
enum { SPLITS_MAX = 128, SPLIT_LEAST = 2 /* chunks */ };

struct decode_args {
    const uint16_t *q, *k, *v;
    const int32_t *table;
    uint16_t *out;
    float *parts; /* [batch][heads][splits][dim + 2]: weighted values, maximum, sum */
    int len, first, heads, kv_heads, tiles, dim, page, pages, splits, chunks; /* chunks of a split */
    float scale;                                                              /* of powers of two */
};

KERN_BOTH int decode_stages(int room) { return room == 256 ? 2 : 3; }

/* Shared memory: ring of stages, each keys and values of a chunk; queries; rows; maximum and sum of each warp's rows.
 */
KERN_BOTH int decode_ring(int room) { return decode_stages(room) * 2 * CHUNK * room * 2; }
KERN_BOTH int decode_queries(int room) { return ROWS * room * 2; }
KERN_BOTH int decode_rows(int room) { return (decode_stages(room) + 1) * CHUNK * 4; }
KERN_BOTH int decode_shared(int room)
{
    return decode_ring(room) + decode_queries(room) + decode_rows(room) + WARPS * ROWS * 2 * 4;
}

/* Row of the cache at which a token's head begins; 0 beyond the end, which is not read. */
KERN_FN uint32_t decode_row(const struct decode_args *a, int sequence, int head, int token, int to)
{
    if (token >= to) return 0;
    const uint32_t page = (uint32_t)a->table[(size_t)sequence * (size_t)a->pages + (size_t)(token / a->page)];
    return (page * (uint32_t)a->kv_heads + (uint32_t)head) * (uint32_t)a->page + (uint32_t)(token % a->page);
}

KERN_FN void decode_fetch(const struct decode_args *a, unsigned char *stage, const uint32_t *rows, int tokens, int room)
{
    const int pieces = room / TILE_PIECE;
    KERN_UNROLL_LOOP
    for (int i = (int)threadIdx.x; i < CHUNK * pieces; i += THREADS) {
        const int row = i / pieces, piece = i % pieces;
        tile_fetch(tile_at(stage, row, piece, room), a->k, rows[row] * (size_t)a->dim, piece, a->dim, row < tokens);
        tile_fetch(tile_at(stage + CHUNK * room * 2, row, piece, room), a->v, rows[row] * (size_t)a->dim, piece, a->dim,
                   row < tokens);
    }
}

/* A warp's state: rows lane / 4 and 8 more of 16. */
struct decode_state {
    float most[2], sum[2], out[TILES_MAX][4]; /* sum: of this lane's columns */
};

/* 16 tokens from `row` of a stage on, of which `tokens` are there, at least one. */
KERN_FN void decode_step(struct decode_state *st, unsigned char *queries, unsigned char *stage, int row, int tokens,
                         float scale, int room)
{
    const int lane = (int)threadIdx.x % KERN_WARP, column = lane % 4 * 2;
    unsigned char *const values = stage + CHUNK * room * 2;
    float s[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    uint32_t p[4];
    KERN_UNROLL_LOOP
    for (int i = 0; i < room / 16; i++) {
        uint32_t x[4], y[4];
        kern_ldmatrix(x, tile_at(queries, lane % 16, i * 2 + lane / 16, room));
        kern_ldmatrix(y, tile_at(stage, row + lane / 16 * 8 + lane % 8, i * 2 + lane / 8 % 2, room));
        kern_mma_bf16(s[0], x, y);
        kern_mma_bf16(s[1], x, y + 2);
    }
    KERN_UNROLL_LOOP
    for (int h = 0; h < 2; h++) {
        float most = st->most[h];
        KERN_UNROLL_LOOP
        for (int j = 0; j < 4; j++) {
            float *const v = &s[j / 2][h * 2 + j % 2];
            *v = j / 2 * 8 + column + j % 2 < tokens ? *v * scale : -1e30f;
            most = fmaxf(most, *v);
        }
        most = tile_most(most);
        const float shrink = kern_exp2(st->most[h] - most);
        st->most[h] = most;
        st->sum[h] *= shrink;
        KERN_UNROLL_LOOP
        for (int j = 0; j < 4; j++) {
            float *const v = &s[j / 2][h * 2 + j % 2];
            *v = kern_exp2(*v - most);
            st->sum[h] += *v;
        }
        KERN_UNROLL_LOOP
        for (int j = 0; j < room / 8; j++) st->out[j][h * 2] *= shrink, st->out[j][h * 2 + 1] *= shrink;
        p[h] = kern_pair_bf16(s[0][h * 2], s[0][h * 2 + 1]);
        p[h + 2] = kern_pair_bf16(s[1][h * 2], s[1][h * 2 + 1]);
    }
    KERN_UNROLL_LOOP
    for (int j = 0; j < room / 16; j++) {
        uint32_t y[4];
        kern_ldmatrix_transposed(y, tile_at(values, row + lane % 16, j * 2 + lane / 16, room));
        kern_mma_bf16(st->out[j * 2], p, y);
        kern_mma_bf16(st->out[j * 2 + 1], p, y + 2);
    }
}

/* The states of the warps into the result, or into the split's part. */
KERN_FN void decode_end(const struct decode_args *a, const struct decode_state *st, float *parts, float *stats,
                        size_t query, int rows, int split, int room)
{
    const int warp = (int)threadIdx.x / KERN_WARP, lane = (int)threadIdx.x % KERN_WARP;
    KERN_UNROLL_LOOP
    for (int h = 0; h < 2; h++) {
        const int row = warp * ROWS + lane / 4 + h * 8;
        const float sum = tile_total(st->sum[h]);
        if (lane % 4 == 0) stats[row * 2] = st->most[h], stats[row * 2 + 1] = sum;
        KERN_UNROLL_LOOP
        for (int j = 0; j < room / 8; j++) {
            parts[row * room + j * 8 + lane % 4 * 2] = st->out[j][h * 2];
            parts[row * room + j * 8 + lane % 4 * 2 + 1] = st->out[j][h * 2 + 1];
        }
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < rows * a->dim; i += THREADS) {
        const int row = i / a->dim, d = i % a->dim;
        float most = stats[row * 2], sum = 0, v = 0;
        KERN_UNROLL_LOOP
        for (int w = 1; w < WARPS; w++) most = fmaxf(most, stats[(w * ROWS + row) * 2]);
        KERN_UNROLL_LOOP
        for (int w = 0; w < WARPS; w++) {
            const float weight = kern_exp2(stats[(w * ROWS + row) * 2] - most);
            sum += weight * stats[(w * ROWS + row) * 2 + 1];
            v += weight * parts[(w * ROWS + row) * room + d];
        }
        if (a->splits == 1) {
            a->out[(query + (size_t)row) * (size_t)a->dim + (size_t)d] = kern_one_bf16(v / sum);
        } else {
            float *const part =
                a->parts + ((query + (size_t)row) * (size_t)a->splits + (size_t)split) * (size_t)(a->dim + 2);
            part[d] = v;
            if (d == 0) part[a->dim] = most, part[a->dim + 1] = sum;
        }
    }
}

/* room: 64, 128 or 256, a constant. */
KERN_FN void decode_split(const struct decode_args *a, unsigned char *shared, int room)
{
    const int stages = decode_stages(room), stage_bytes = 2 * CHUNK * room * 2, group = a->heads / a->kv_heads;
    unsigned char *const queries = shared + decode_ring(room);
    uint32_t *const rows = (uint32_t *)(void *)(queries + decode_queries(room));
    float *const stats = (float *)(void *)(queries + decode_queries(room) + decode_rows(room));
    const int split = (int)blockIdx.x % a->splits, tile = (int)blockIdx.x / a->splits % a->tiles;
    const int head = (int)blockIdx.x / a->splits / a->tiles % a->kv_heads;
    const int sequence = (int)blockIdx.x / a->splits / a->tiles / a->kv_heads;
    const int from = a->first + split * a->chunks * CHUNK, to = tile_min(a->len, from + a->chunks * CHUNK);
    const int chunks = tile_parts(to - from, CHUNK), warp = (int)threadIdx.x / KERN_WARP;
    const int heads = tile_min(group - tile * ROWS, ROWS);
    const size_t query = (size_t)sequence * (size_t)a->heads + (size_t)(head * group + tile * ROWS);
    struct decode_state st;
    st.most[0] = st.most[1] = -1e30f;
    st.sum[0] = st.sum[1] = 0;
    KERN_UNROLL_LOOP
    for (int j = 0; j < room / 8; j++) st.out[j][0] = st.out[j][1] = st.out[j][2] = st.out[j][3] = 0;
    for (int i = (int)threadIdx.x; i < ROWS * room / TILE_PIECE; i += THREADS) {
        const int row = i / (room / TILE_PIECE), piece = i % (room / TILE_PIECE);
        tile_fetch(tile_at(queries, row, piece, room), a->q, (query + (size_t)row) * (size_t)a->dim, piece, a->dim,
                   row < heads);
    }
    for (int i = (int)threadIdx.x; i < stages * CHUNK; i += THREADS)
        rows[i] = decode_row(a, sequence, head, from + i, to);
    __syncthreads();
    KERN_UNROLL_LOOP
    for (int c = 0; c < stages - 1; c++) {
        if (c < chunks) decode_fetch(a, shared + c * stage_bytes, rows + c * CHUNK, to - from - c * CHUNK, room);
        kern_copy_commit(); /* the first has the queries too */
    }
    for (int c = 0; c < chunks; c++) {
        const int next = c + stages - 1, token = from + c * CHUNK + warp * 16;
        if (stages == 2)
            kern_copy_wait(0);
        else
            kern_copy_wait(1);
        __syncthreads(); /* chunk c and the rows of `next` are there for all; all are done with the stage filled next */
        if (next < chunks)
            decode_fetch(a, shared + next % stages * stage_bytes, rows + next % (stages + 1) * CHUNK,
                         to - from - next * CHUNK, room);
        kern_copy_commit();
        if (threadIdx.x < CHUNK)
            rows[(next + 1) % (stages + 1) * CHUNK + (int)threadIdx.x] =
                decode_row(a, sequence, head, from + (next + 1) * CHUNK + (int)threadIdx.x, to);
        if (token < to)
            decode_step(&st, queries, shared + c % stages * stage_bytes, warp * 16, to - token, a->scale, room);
    }
    kern_copy_wait(0);
    __syncthreads();
    decode_end(a, &st, (float *)(void *)shared, stats, query, heads, split, room);
}

KERN_GLOBAL(decode_64, struct decode_args, a, THREADS)
{
    KERN_SHARED_MEMORY(shared);
    decode_split(&a, shared, 64);
}
KERN_GLOBAL(decode_128, struct decode_args, a, THREADS)
{
    KERN_SHARED_MEMORY(shared);
    decode_split(&a, shared, 128);
}
KERN_GLOBAL(decode_256, struct decode_args, a, THREADS)
{
    KERN_SHARED_MEMORY(shared);
    decode_split(&a, shared, 256);
}

/* One head of one sequence: its splits joined. */
KERN_GLOBAL(decode_join, struct decode_args, a, THREADS)
{
    const size_t row = blockIdx.x;
    tile_join(a.parts + row * (size_t)a.splits * (size_t)(a.dim + 2), a.splits, a.dim, a.out + row * (size_t)a.dim);
}

/* -- the launch -- */

static int decode_room(const struct kern_shape *s) { return s->v[DIM] <= 64 ? 64 : s->v[DIM] <= 128 ? 128 : 256; }

static void decode_plan(const struct kern_shape *s, const struct kern_machine *m, struct decode_args *a)
{
    const int64_t seen = s->v[WINDOW] && s->v[WINDOW] < s->v[LEN] ? s->v[WINDOW] : s->v[LEN];
    const int chunks = (int)((seen + CHUNK - 1) / CHUNK), most = tile_min(SPLITS_MAX, chunks / SPLIT_LEAST);
    const int tiles = tile_parts((int)(s->v[HEADS] / s->v[KV_HEADS]), ROWS);
    const double blocks = (double)s->v[BATCH] * (double)s->v[KV_HEADS] * tiles;
    const int beside = (int)(m->shared_bytes / (decode_shared(decode_room(s)) + 1024)); /* not a unit: of the system */
    a->tiles = tiles;
    a->chunks = tile_split(chunks, most, blocks, (double)m->processors * (beside > 0 ? beside : 1));
    a->splits = tile_parts(chunks, a->chunks);
}

static size_t decode_scratch(const struct kern_shape *s, const struct kern_machine *m)
{
    struct decode_args a;
    decode_plan(s, m, &a);
    return a.splits == 1 ? 0
                         : (size_t)s->v[BATCH] * (size_t)s->v[HEADS] * (size_t)a.splits * (size_t)(s->v[DIM] + 2) * 4;
}

static const char *decode_lacks(const struct kern_machine *m, const struct kern_shape *s)
{
    const double page = (double)(s->v[PAGE] ? s->v[PAGE] : s->v[LEN]);
    const double rows = (double)s->v[BATCH] * ceil((double)s->v[LEN] / page) * page * (double)s->v[KV_HEADS];
    if (m->capability < 80) return "no bf16 tensor cores: compute capability 8.0 or higher";
    if (s->v[DIM] > 256) return "heads are wider than 256";
    if (m->shared_bytes < decode_shared(decode_room(s))) return "too little shared memory for so wide heads";
    if (rows >= 4294967296.0) return "the cache has more than 2^32 rows";
    if ((double)s->v[BATCH] * (double)s->v[HEADS] * SPLITS_MAX >= 2147483648.0) return "too many blocks";
    return NULL;
}

static void decode_run(const struct kern_call *c)
{
    const struct kern_shape *const s = c->shape;
    const int room = decode_room(s);
    struct decode_args a;
    decode_plan(s, c->machine, &a);
    a.q = (const uint16_t *)c->buffer[0];
    a.k = (const uint16_t *)c->buffer[1];
    a.v = (const uint16_t *)c->buffer[2];
    a.table = (const int32_t *)c->buffer[3];
    a.out = (uint16_t *)c->buffer[4];
    a.parts = (float *)c->scratch;
    a.len = (int)s->v[LEN];
    a.first = s->v[WINDOW] && s->v[WINDOW] < s->v[LEN] ? (int)(s->v[LEN] - s->v[WINDOW]) : 0;
    a.heads = (int)s->v[HEADS];
    a.kv_heads = (int)s->v[KV_HEADS];
    a.dim = (int)s->v[DIM];
    a.page = (int)(s->v[PAGE] ? s->v[PAGE] : s->v[LEN]);
    a.pages = tile_parts(a.len, a.page);
    a.scale = 1.44269504f / sqrtf((float)a.dim); /* exponentials by powers of two */
    const unsigned blocks = (unsigned)s->v[BATCH] * (unsigned)(a.kv_heads * a.tiles * a.splits);
    if (room == 64)
        KERN_LAUNCH(decode_64, blocks, 1, 1, THREADS, (size_t)decode_shared(64), c->stream, a);
    else if (room == 128)
        KERN_LAUNCH(decode_128, blocks, 1, 1, THREADS, (size_t)decode_shared(128), c->stream, a);
    else
        KERN_LAUNCH(decode_256, blocks, 1, 1, THREADS, (size_t)decode_shared(256), c->stream, a);
    if (a.splits > 1)
        KERN_LAUNCH(decode_join, (unsigned)s->v[BATCH] * (unsigned)a.heads, 1, 1, THREADS, 0, c->stream, a);
}

static const struct kern_variant VARIANTS[] = {
    {"cuda-mma", KERN_UNIT_TENSOR, KERN_HAS(KERN_BF16), decode_lacks, NULL, NULL, decode_run, 0, false, decode_scratch},
};

/* From 64 MB of cache on: models of 8, 13 and 70 billion parameters (that cut over eight cards), MQA, a window. */
static const struct kern_point POINTS[] = {
    {{{1, 32768, 32, 8, 128, 0, 0}, KERN_BF16}, true},      {{{16, 8192, 32, 8, 128, 0, 16}, KERN_BF16}, true},
    {{{64, 4096, 32, 8, 128, 0, 16}, KERN_BF16}, true},     {{{1, 131072, 32, 8, 128, 0, 64}, KERN_BF16}, false},
    {{{8, 8192, 40, 40, 128, 0, 0}, KERN_BF16}, false},     {{{64, 8192, 8, 1, 128, 0, 16}, KERN_BF16}, false},
    {{{64, 8192, 32, 8, 128, 4096, 16}, KERN_BF16}, false}, {{{32, 8192, 16, 8, 256, 0, 0}, KERN_BF16}, false},
    {{{8, 1024, 32, 8, 128, 0, 16}, KERN_BF16}, false},
};

const struct kern_cuda kern_cuda_decode_attention = {&kern_decode_attention, VARIANTS, 1, POINTS,
                                                     sizeof POINTS / sizeof POINTS[0]};
