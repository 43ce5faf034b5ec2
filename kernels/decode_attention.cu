/* decode-attention on a card: bf16, the cache also fp8, read once, by the tensor cores.
 *
 * The query heads that share a key head are the 16 rows of an mma, so that a key and a value meet all of them while
 * they are in registers; more than 16 are further blocks, whose reads the second cache serves. The cache of a sequence
 * is cut into splits, as many as fill the card; a block walks its split in chunks of 64 tokens that come by
 * asynchronous copies into a ring, 16 tokens a warp, each warp with a softmax of its own (running maximum and sum),
 * joined at the end. Of splits a second kernel joins the sums. Addresses of a chunk's rows are looked up in the page
 * table a chunk ahead of its copies. Heads are padded with zeros to 64, 128 or 256 elements in shared memory, nothing
 * is read for it.
 * fp8 becomes bf16 in registers. What ldmatrix takes for pairs of 16 bits are then four neighbours of a key, which are
 * rows 2t, 2t + 1, 2t + 8, 2t + 9 of the second factor when queries lie in that order; and of a value's pairs the even
 * and the odd elements are the columns of two products. */
#include "kernels/attend_tile.h"

enum { BATCH, LEN, HEADS, KV_HEADS, DIM, WINDOW, PAGE };
enum { ROWS = 16, CHUNK = 64, WARPS = 4, THREADS = 128, TILES_MAX = 256 / 8 };
enum { SPLITS_MAX = 128, SPLIT_LEAST = 2 /* chunks */ };

struct decode_args {
    const uint16_t *q;
    const void *k, *v;
    const int32_t *table;
    uint16_t *out;
    float *parts; /* [batch][heads][splits][dim + 2]: weighted values, maximum, sum */
    int len, first, heads, kv_heads, tiles, dim, page, pages, splits, chunks; /* chunks of a split */
    float scale;                                                              /* of powers of two */
};

/* Elements of 16 bits that a row of the cache takes in shared memory; narrow: in fp8. */
KERN_BOTH int decode_line(int room, bool narrow) { return narrow ? room / 2 : room; }
KERN_BOTH int decode_stages(int room, bool narrow) { return decode_line(room, narrow) == 256 ? 2 : 3; }
KERN_BOTH int decode_half(int room, bool narrow) { return CHUNK * decode_line(room, narrow) * 2; } /* keys of a stage */

/* Shared memory: ring of stages, each keys and values of a chunk; queries; rows; maximum and sum of each warp's rows.
 */
KERN_BOTH int decode_ring(int room, bool narrow) { return decode_stages(room, narrow) * 2 * decode_half(room, narrow); }
KERN_BOTH int decode_queries(int room) { return ROWS * room * 2; }
KERN_BOTH int decode_rows(int room, bool narrow) { return (decode_stages(room, narrow) + 1) * CHUNK * 4; }
KERN_BOTH int decode_shared(int room, bool narrow)
{
    return decode_ring(room, narrow) + decode_queries(room) + decode_rows(room, narrow) + WARPS * ROWS * 2 * 4;
}

/* Row of the cache at which a token's head begins; 0 beyond the end, which is not read. */
KERN_FN uint32_t decode_row(const struct decode_args *a, int sequence, int head, int token, int to)
{
    if (token >= to) return 0;
    const uint32_t page = (uint32_t)a->table[(size_t)sequence * (size_t)a->pages + (size_t)(token / a->page)];
    return (page * (uint32_t)a->kv_heads + (uint32_t)head) * (uint32_t)a->page + (uint32_t)(token % a->page);
}

/* Starts the copy of a piece of the dim elements at from[at], 8 of bf16 or 16 of fp8. */
KERN_FN void decode_fetch_piece(unsigned char *to, const void *from, size_t at, int piece, int dim, bool there,
                                bool narrow)
{
    enum { PIECE = 16 };
    const uint8_t *const bytes = (const uint8_t *)from + at + piece * PIECE;
    const int left = there ? tile_min(dim - piece * PIECE, PIECE) : 0;
    if (!narrow) {
        tile_fetch(to, (const uint16_t *)from, at, piece, dim, there);
    } else if (dim % PIECE == 0) {
        kern_copy_16(to, left > 0 ? bytes : (const uint8_t *)from, left > 0 ? left : 0);
    } else {
        for (int j = 0; j < PIECE; j++) to[j] = j < left ? bytes[j] : (uint8_t)0;
    }
}

KERN_FN void decode_fetch(const struct decode_args *a, unsigned char *stage, const uint32_t *rows, int tokens, int room,
                          bool narrow)
{
    const int line = decode_line(room, narrow), pieces = line / TILE_PIECE;
    KERN_UNROLL_LOOP
    for (int i = (int)threadIdx.x; i < CHUNK * pieces; i += THREADS) {
        const int row = i / pieces, piece = i % pieces;
        unsigned char *const to = tile_at(stage, row, piece, line);
        decode_fetch_piece(to, a->k, rows[row] * (size_t)a->dim, piece, a->dim, row < tokens, narrow);
        decode_fetch_piece(to + decode_half(room, narrow), a->v, rows[row] * (size_t)a->dim, piece, a->dim,
                           row < tokens, narrow);
    }
}

/* The queries of `heads` heads; for fp8 by fours: two elements, the two 8 further on in 16, and so on. */
KERN_FN void decode_fetch_queries(const struct decode_args *a, unsigned char *queries, size_t query, int heads,
                                  int room, bool narrow)
{
    for (int i = (int)threadIdx.x; i < ROWS * room / TILE_PIECE; i += THREADS) {
        const int row = i / (room / TILE_PIECE), piece = i % (room / TILE_PIECE);
        unsigned char *const to = tile_at(queries, row, piece, room);
        const size_t at = (query + (size_t)row) * (size_t)a->dim;
        if (!narrow) {
            tile_fetch(to, a->q, at, piece, a->dim, row < heads);
            continue;
        }
        KERN_UNROLL_LOOP
        for (int j = 0; j < TILE_PIECE; j++) {
            const int d = piece / 2 * 16 + j / 2 * 4 + piece % 2 * 2 + j % 2;
            ((uint16_t *)(void *)to)[j] = row < heads && d < a->dim ? a->q[at + (size_t)d] : (uint16_t)0;
        }
    }
}

/* A warp's state: rows lane / 4 and 8 more of 16. */
struct decode_state {
    float most[2], sum[2], out[TILES_MAX][4]; /* sum: of this lane's columns */
};

/* Scores of 16 tokens from `row` of a stage on. */
KERN_FN void decode_score(float s[2][4], unsigned char *queries, unsigned char *stage, int row, int room, bool narrow)
{
    const int lane = (int)threadIdx.x % KERN_WARP, line = decode_line(room, narrow);
    KERN_UNROLL_LOOP
    for (int i = 0; i < line / 16; i++) {
        uint32_t x[4], y[4];
        kern_ldmatrix(y, tile_at(stage, row + lane / 16 * 8 + lane % 8, i * 2 + lane / 8 % 2, line));
        if (!narrow) {
            kern_ldmatrix(x, tile_at(queries, lane % 16, i * 2 + lane / 16, room));
            kern_mma_bf16(s[0], x, y);
            kern_mma_bf16(s[1], x, y + 2);
            continue;
        }
        KERN_UNROLL_LOOP
        for (int half = 0; half < 2; half++) { /* 16 elements of 32 */
            kern_ldmatrix(x, tile_at(queries, lane % 16, i * 4 + half * 2 + lane / 16, room));
            KERN_UNROLL_LOOP
            for (int j = 0; j < 2; j++) {
                const uint32_t four = y[j * 2 + half];
                const uint32_t key[2] = {kern_pair_of_e4m3((four << 8 & 0xff00u) | (four & 0xff00u) << 16),
                                         kern_pair_of_e4m3((four >> 8 & 0xff00u) | (four & 0xff000000u))};
                kern_mma_bf16(s[j], x, key);
            }
        }
    }
}

/* Their weighted values. */
KERN_FN void decode_weigh(struct decode_state *st, const uint32_t p[4], unsigned char *values, int row, int room,
                          bool narrow)
{
    const int lane = (int)threadIdx.x % KERN_WARP, line = decode_line(room, narrow);
    KERN_UNROLL_LOOP
    for (int j = 0; j < line / 16; j++) {
        uint32_t y[4];
        kern_ldmatrix_transposed(y, tile_at(values, row + lane % 16, j * 2 + lane / 16, line));
        if (!narrow) {
            kern_mma_bf16(st->out[j * 2], p, y);
            kern_mma_bf16(st->out[j * 2 + 1], p, y + 2);
            continue;
        }
        KERN_UNROLL_LOOP
        for (int half = 0; half < 2; half++) {
            const uint32_t even[2] = {kern_pair_of_e4m3(y[half * 2] << 8), kern_pair_of_e4m3(y[half * 2 + 1] << 8)};
            const uint32_t odd[2] = {kern_pair_of_e4m3(y[half * 2]), kern_pair_of_e4m3(y[half * 2 + 1])};
            kern_mma_bf16(st->out[(j * 2 + half) * 2], p, even);
            kern_mma_bf16(st->out[(j * 2 + half) * 2 + 1], p, odd);
        }
    }
}

/* Element of a head that column e of this lane's two is, of result j. */
KERN_FN int decode_column(int j, int e, bool narrow)
{
    const int t = (int)threadIdx.x % 4;
    return narrow ? j / 2 * 16 + t * 4 + e * 2 + j % 2 : j * 8 + t * 2 + e;
}

/* 16 tokens from `row` of a stage on, of which `tokens` are there, at least one. */
KERN_FN void decode_step(struct decode_state *st, unsigned char *queries, unsigned char *stage, int row, int tokens,
                         float scale, int room, bool narrow)
{
    const int column = (int)threadIdx.x % 4 * 2;
    float s[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    uint32_t p[4];
    decode_score(s, queries, stage, row, room, narrow);
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
    decode_weigh(st, p, stage + decode_half(room, narrow), row, room, narrow);
}

/* The states of the warps into the result, or into the split's part. */
KERN_FN void decode_end(const struct decode_args *a, const struct decode_state *st, float *parts, float *stats,
                        size_t query, int rows, int split, int room, bool narrow)
{
    const int warp = (int)threadIdx.x / KERN_WARP, lane = (int)threadIdx.x % KERN_WARP;
    KERN_UNROLL_LOOP
    for (int h = 0; h < 2; h++) {
        const int row = warp * ROWS + lane / 4 + h * 8;
        const float sum = tile_total(st->sum[h]);
        if (lane % 4 == 0) stats[row * 2] = st->most[h], stats[row * 2 + 1] = sum;
        KERN_UNROLL_LOOP
        for (int j = 0; j < room / 8; j++) {
            parts[row * room + decode_column(j, 0, narrow)] = st->out[j][h * 2];
            parts[row * room + decode_column(j, 1, narrow)] = st->out[j][h * 2 + 1];
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

/* room: 64, 128 or 256, of fp8 not 64; constants. */
KERN_FN void decode_split(const struct decode_args *a, unsigned char *shared, int room, bool narrow)
{
    const int stages = decode_stages(room, narrow), stage_bytes = 2 * decode_half(room, narrow);
    const int group = a->heads / a->kv_heads;
    unsigned char *const queries = shared + decode_ring(room, narrow);
    uint32_t *const rows = (uint32_t *)(void *)(queries + decode_queries(room));
    float *const stats = (float *)(void *)(queries + decode_queries(room) + decode_rows(room, narrow));
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
    decode_fetch_queries(a, queries, query, heads, room, narrow);
    for (int i = (int)threadIdx.x; i < stages * CHUNK; i += THREADS)
        rows[i] = decode_row(a, sequence, head, from + i, to);
    __syncthreads();
    KERN_UNROLL_LOOP
    for (int c = 0; c < stages - 1; c++) {
        if (c < chunks)
            decode_fetch(a, shared + c * stage_bytes, rows + c * CHUNK, to - from - c * CHUNK, room, narrow);
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
                         to - from - next * CHUNK, room, narrow);
        kern_copy_commit();
        if (threadIdx.x < CHUNK)
            rows[(next + 1) % (stages + 1) * CHUNK + (int)threadIdx.x] =
                decode_row(a, sequence, head, from + (next + 1) * CHUNK + (int)threadIdx.x, to);
        if (token < to)
            decode_step(&st, queries, shared + c % stages * stage_bytes, warp * 16, to - token, a->scale, room, narrow);
    }
    kern_copy_wait(0);
    __syncthreads();
    decode_end(a, &st, (float *)(void *)shared, stats, query, heads, split, room, narrow);
}

#define SPLIT(name, room, narrow)                                                                                      \
    KERN_GLOBAL(name, struct decode_args, a, THREADS)                                                                  \
    {                                                                                                                  \
        KERN_SHARED_MEMORY(shared);                                                                                    \
        decode_split(&a, shared, room, narrow);                                                                        \
    }
SPLIT(decode_64, 64, false)
SPLIT(decode_128, 128, false)
SPLIT(decode_256, 256, false)
SPLIT(decode_128_fp8, 128, true)
SPLIT(decode_256_fp8, 256, true)

/* One head of one sequence: its splits joined. */
KERN_GLOBAL(decode_join, struct decode_args, a, THREADS)
{
    const size_t row = blockIdx.x;
    tile_join(a.parts + row * (size_t)a.splits * (size_t)(a.dim + 2), a.splits, a.dim, a.out + row * (size_t)a.dim);
}

/* -- the launch -- */

static bool decode_narrow(const struct kern_shape *s) { return s->dtype == KERN_FP8; }
static int decode_room(const struct kern_shape *s)
{
    return s->v[DIM] <= 64 && !decode_narrow(s) ? 64 : s->v[DIM] <= 128 ? 128 : 256;
}
static int decode_shared_of(const struct kern_shape *s) { return decode_shared(decode_room(s), decode_narrow(s)); }

static void decode_plan(const struct kern_shape *s, const struct kern_machine *m, struct decode_args *a)
{
    const int64_t seen = s->v[WINDOW] && s->v[WINDOW] < s->v[LEN] ? s->v[WINDOW] : s->v[LEN];
    const int chunks = (int)((seen + CHUNK - 1) / CHUNK), most = tile_min(SPLITS_MAX, chunks / SPLIT_LEAST);
    const int tiles = tile_parts((int)(s->v[HEADS] / s->v[KV_HEADS]), ROWS);
    const double blocks = (double)s->v[BATCH] * (double)s->v[KV_HEADS] * tiles;
    const int beside = (int)(m->shared_bytes / (decode_shared_of(s) + 1024)); /* not a unit: of the system */
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
    if (m->shared_bytes < decode_shared_of(s)) return "too little shared memory for so wide heads";
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
    a.k = c->buffer[1];
    a.v = c->buffer[2];
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
    const size_t shared = (size_t)decode_shared_of(s);
    if (decode_narrow(s) && room == 128)
        KERN_LAUNCH(decode_128_fp8, blocks, 1, 1, THREADS, shared, c->stream, a);
    else if (decode_narrow(s))
        KERN_LAUNCH(decode_256_fp8, blocks, 1, 1, THREADS, shared, c->stream, a);
    else if (room == 64)
        KERN_LAUNCH(decode_64, blocks, 1, 1, THREADS, shared, c->stream, a);
    else if (room == 128)
        KERN_LAUNCH(decode_128, blocks, 1, 1, THREADS, shared, c->stream, a);
    else
        KERN_LAUNCH(decode_256, blocks, 1, 1, THREADS, shared, c->stream, a);
    if (a.splits > 1)
        KERN_LAUNCH(decode_join, (unsigned)s->v[BATCH] * (unsigned)a.heads, 1, 1, THREADS, 0, c->stream, a);
}

static const struct kern_variant VARIANTS[] = {
    {"cuda-mma", KERN_UNIT_TENSOR, KERN_HAS(KERN_BF16) | KERN_HAS(KERN_FP8), decode_lacks, NULL, NULL, decode_run, 0,
     false, decode_scratch},
};

/* From 64 MB of cache on: models of 8, 13 and 70 billion parameters (that cut over eight cards), MQA, a window. */
static const struct kern_point POINTS[] = {
    {{{1, 32768, 32, 8, 128, 0, 0}, KERN_BF16}, true},      {{{16, 8192, 32, 8, 128, 0, 16}, KERN_BF16}, true},
    {{{64, 4096, 32, 8, 128, 0, 16}, KERN_BF16}, true},     {{{1, 131072, 32, 8, 128, 0, 64}, KERN_BF16}, false},
    {{{8, 8192, 40, 40, 128, 0, 0}, KERN_BF16}, false},     {{{64, 8192, 8, 1, 128, 0, 16}, KERN_BF16}, false},
    {{{64, 8192, 32, 8, 128, 4096, 16}, KERN_BF16}, false}, {{{32, 8192, 16, 8, 256, 0, 0}, KERN_BF16}, false},
    {{{8, 1024, 32, 8, 128, 0, 16}, KERN_BF16}, false},     {{{16, 8192, 32, 8, 128, 0, 16}, KERN_FP8}, true},
    {{{64, 8192, 32, 8, 128, 0, 16}, KERN_FP8}, false},
};

const struct kern_cuda kern_cuda_decode_attention = {&kern_decode_attention, VARIANTS, 1, POINTS,
                                                     sizeof POINTS / sizeof POINTS[0]};
