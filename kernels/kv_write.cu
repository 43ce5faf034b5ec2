/* kv-write on a card: 16 bytes a thread in, 16 or 8 out.
 *
 * A row of a head is 32 lanes' or fewer, the next power of two from its pieces, so that a warp has several heads; the
 * largest of a row goes round these lanes by shuffles. Wider rows are walked twice, the second time from the cache.
 * Rows that begin between pieces are read and written element by element. */
#include "kernels/device.h"

enum { TOKENS, HEADS, DIM };
enum { K, V, SLOTS, K_CACHE, V_CACHE, K_SCALES, V_SCALES };
enum { THREADS = 256, PIECE = 8 /* elements */ };
enum write_as { AS_BF16, AS_INT8, AS_FP8 };

struct write_args {
    const uint16_t *from[2]; /* keys, values */
    void *to[2];
    float *scales[2];
    const int32_t *slots;
    int rows, heads, dim, lanes; /* rows of keys, as many of values; lanes of a row */
};

/* Elements of a piece of a row as they are stored, zeros behind its end. */
KERN_FN void write_load(const uint16_t *row, int piece, int dim, uint32_t pair[4])
{
    const int left = dim - piece * PIECE;
    pair[0] = pair[1] = pair[2] = pair[3] = 0;
    if (left <= 0) return;
    if (dim % PIECE == 0) {
        const uint4 v = kern_load_once((const uint4 *)(const void *)row + piece);
        pair[0] = v.x, pair[1] = v.y, pair[2] = v.z, pair[3] = v.w;
        return;
    }
    KERN_UNROLL_LOOP
    for (int i = 0; i < PIECE; i++)
        if (i < left) pair[i / 2] |= (uint32_t)row[piece * PIECE + i] << i % 2 * 16;
}

KERN_FN void write_bf16(uint16_t *row, int piece, int dim, const uint32_t pair[4])
{
    const int left = dim - piece * PIECE;
    if (dim % PIECE == 0) {
        const uint4 v = {pair[0], pair[1], pair[2], pair[3]};
        *((uint4 *)(void *)row + piece) = v;
        return;
    }
    KERN_UNROLL_LOOP
    for (int i = 0; i < PIECE; i++)
        if (i < left) row[piece * PIECE + i] = (uint16_t)(pair[i / 2] >> i % 2 * 16);
}

/* A pair as two bytes. */
KERN_FN uint32_t write_pair(uint32_t pair, float inverse, enum write_as as)
{
    const float low = kern_low_bf16(pair) * inverse, high = kern_high_bf16(pair) * inverse;
    if (as == AS_FP8) return kern_pair_e4m3(low, high);
    return ((uint32_t)(int)rintf(low) & 0xffu) | ((uint32_t)(int)rintf(high) & 0xffu) << 8;
}

KERN_FN void write_bytes(uint8_t *row, int piece, int dim, const uint32_t pair[4], float inverse, enum write_as as)
{
    const int left = dim - piece * PIECE;
    const uint2 v = {write_pair(pair[0], inverse, as) | write_pair(pair[1], inverse, as) << 16,
                     write_pair(pair[2], inverse, as) | write_pair(pair[3], inverse, as) << 16};
    if (dim % PIECE == 0) {
        *((uint2 *)(void *)row + piece) = v;
        return;
    }
    KERN_UNROLL_LOOP
    for (int i = 0; i < PIECE; i++)
        if (i < left) row[piece * PIECE + i] = (uint8_t)((i < 4 ? v.x : v.y) >> i % 4 * 8);
}

KERN_FN float write_most(const uint32_t pair[4])
{
    float most = 0;
    KERN_UNROLL_LOOP
    for (int i = 0; i < 4; i++) most = fmaxf(most, fmaxf(fabsf(kern_low_bf16(pair[i])), fabsf(kern_high_bf16(pair[i]))));
    return most;
}

KERN_FN void write_rows(const struct write_args *a, enum write_as as)
{
    const int lane = (int)threadIdx.x % a->lanes, pieces = (a->dim + PIECE - 1) / PIECE;
    const int64_t all = (int64_t)blockIdx.x * (THREADS / a->lanes) + (int)threadIdx.x / a->lanes;
    const bool there = all < 2 * (int64_t)a->rows; /* lanes that have no row go with the others to the shuffles */
    const int which = all >= a->rows, row = there ? (int)(all - which * (int64_t)a->rows) : 0;
    const size_t slot = (size_t)a->slots[row / a->heads] * (size_t)a->heads + (size_t)(row % a->heads);
    const uint16_t *const from = a->from[which] + (size_t)row * (size_t)a->dim;
    uint32_t pair[4];
    float most = 0;
    if (as == AS_BF16) {
        for (int i = lane; there && i < pieces; i += a->lanes) {
            write_load(from, i, a->dim, pair);
            write_bf16((uint16_t *)a->to[which] + slot * (size_t)a->dim, i, a->dim, pair);
        }
        return;
    }
    for (int i = lane + a->lanes; i < pieces; i += a->lanes) {
        write_load(from, i, a->dim, pair);
        most = fmaxf(most, write_most(pair));
    }
    write_load(from, lane, a->dim, pair); /* stays in registers */
    most = fmaxf(most, write_most(pair));
    for (int by = a->lanes / 2; by > 0; by /= 2) most = fmaxf(most, __shfl_xor_sync(KERN_ALL, most, by));
    const float steps = as == AS_FP8 ? 448 : 127, inverse = most > 0 ? steps / most : 0;
    uint8_t *const to = (uint8_t *)a->to[which] + slot * (size_t)a->dim;
    if (!there) return;
    if (lane == 0) a->scales[which][slot] = most / steps;
    if (lane < pieces) write_bytes(to, lane, a->dim, pair, inverse, as);
    for (int i = lane + a->lanes; i < pieces; i += a->lanes) {
        write_load(from, i, a->dim, pair);
        write_bytes(to, i, a->dim, pair, inverse, as);
    }
}

KERN_GLOBAL(kv_write_bf16, struct write_args, a, THREADS) { write_rows(&a, AS_BF16); }
KERN_GLOBAL(kv_write_int8, struct write_args, a, THREADS) { write_rows(&a, AS_INT8); }
KERN_GLOBAL(kv_write_fp8, struct write_args, a, THREADS) { write_rows(&a, AS_FP8); }

static const char *write_lacks(const struct kern_machine *m, const struct kern_shape *s)
{
    (void)m;
    return (double)s->v[TOKENS] * (double)s->v[HEADS] >= 1073741824.0 ? "more than 2^30 rows" : NULL;
}

static void kv_write_run(const struct kern_call *c)
{
    struct write_args a;
    for (int i = 0; i < 2; i++) {
        a.from[i] = (const uint16_t *)c->buffer[K + i];
        a.to[i] = c->buffer[K_CACHE + i];
        a.scales[i] = c->shape->dtype == KERN_BF16 ? NULL : (float *)c->buffer[K_SCALES + i];
    }
    a.slots = (const int32_t *)c->buffer[SLOTS];
    a.heads = (int)c->shape->v[HEADS];
    a.rows = (int)c->shape->v[TOKENS] * a.heads;
    a.dim = (int)c->shape->v[DIM];
    for (a.lanes = 1; a.lanes < KERN_WARP && a.lanes * PIECE < a.dim;) a.lanes *= 2;
    const int64_t rows_a_block = THREADS / a.lanes;
    const unsigned blocks = (unsigned)((2 * (int64_t)a.rows + rows_a_block - 1) / rows_a_block);
    if (c->shape->dtype == KERN_BF16)
        KERN_LAUNCH(kv_write_bf16, blocks, 1, 1, THREADS, 0, c->stream, a);
    else if (c->shape->dtype == KERN_INT8)
        KERN_LAUNCH(kv_write_int8, blocks, 1, 1, THREADS, 0, c->stream, a);
    else
        KERN_LAUNCH(kv_write_fp8, blocks, 1, 1, THREADS, 0, c->stream, a);
}

#define FORMATS (KERN_HAS(KERN_BF16) | KERN_HAS(KERN_INT8) | KERN_HAS(KERN_FP8))

static const struct kern_variant VARIANTS[] = {
    {"cuda", KERN_UNIT_FP32, FORMATS, write_lacks, NULL, NULL, kv_write_run, 0, false, NULL},
};

/* A batch that decodes, and prompts. */
static const struct kern_point POINTS[] = {
    {{{64, 8, 128}, KERN_BF16}, true},
    {{{8192, 8, 128}, KERN_BF16}, true},
    {{{8192, 8, 128}, KERN_FP8}, true},
    {{{8192, 8, 128}, KERN_INT8}, false},
};

const struct kern_cuda kern_cuda_kv_write = {&kern_kv_write, VARIANTS, 1, POINTS, sizeof POINTS / sizeof POINTS[0]};
