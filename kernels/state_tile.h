/* state_tile -- rows of a recurrent state on a card, one token on: what Mamba-2's step and linear attention's share.
 *
 * The state is read once and written once and little is done with it, so that all is about having enough of it on its
 * way: a warp has four rows at a time in its registers, lane i of it elements 4 i .. 4 i + 3 of each 128; sums over a
 * row go through shuffles, four rows in the steps of two. A block is four warps on at most 32 rows of one head, so that
 * a few heads fill the card. Key, query and decays of the head lie in shared memory as fp32, zero beyond the width. */
#ifndef RIDGE_KERNELS_STATE_TILE_H
#define RIDGE_KERNELS_STATE_TILE_H

#include "kernels/device.h"

enum { STATE_WARPS = 4, STATE_THREADS = 128, STATE_PART = 32 /* rows of a block */, STATE_ROWS = 4, STATE_LANE = 4 };
enum { STATE_PIECE = KERN_WARP * STATE_LANE, STATE_PIECES_MAX = 4 };

/* A head's rows of one block. */
struct state_head {
    void *state;         /* [rows][width], fp32 or bf16 */
    const void *value;   /* [rows], in the format of y */
    void *y;             /* [rows] */
    int rows, width;     /* of the head */
    int from, to;        /* rows of the block */
    float factor, again; /* what is added is factor * value; y has again * value besides */
    int delta;           /* it is factor * (value - what the decayed state answers to the key) instead */
};

KERN_FN float state_number(const void *data, int bf16, size_t i)
{
    return bf16 ? kern_low_bf16(((const uint16_t *)data)[i]) : ((const float *)data)[i];
}

KERN_FN void state_store(void *data, int bf16, size_t i, float v)
{
    if (bf16)
        ((uint16_t *)data)[i] = kern_one_bf16(v);
    else
        ((float *)data)[i] = v;
}

/* Elements i .. i + 3 of a row, zeros beyond the width. */
KERN_FN void state_get(float v[STATE_LANE], const struct state_head *h, int row, int i, int narrow)
{
    const size_t at = (size_t)row * (size_t)h->width + (size_t)i;
    v[0] = v[1] = v[2] = v[3] = 0;
    if (i >= h->width) return;
    if (h->width % STATE_LANE == 0) {
        if (narrow) {
            const uint2 x = *(const uint2 *)((const uint16_t *)h->state + at);
            v[0] = kern_low_bf16(x.x), v[1] = kern_high_bf16(x.x);
            v[2] = kern_low_bf16(x.y), v[3] = kern_high_bf16(x.y);
        } else {
            const float4 x = *(const float4 *)((const float *)h->state + at);
            v[0] = x.x, v[1] = x.y, v[2] = x.z, v[3] = x.w;
        }
        return;
    }
    KERN_UNROLL_LOOP
    for (int j = 0; j < STATE_LANE; j++)
        if (i + j < h->width) v[j] = state_number(h->state, narrow, at + (size_t)j);
}

KERN_FN void state_put(const float v[STATE_LANE], const struct state_head *h, int row, int i, int narrow)
{
    const size_t at = (size_t)row * (size_t)h->width + (size_t)i;
    if (i >= h->width) return;
    if (h->width % STATE_LANE == 0) {
        if (narrow) {
            uint2 x;
            x.x = kern_pair_bf16(v[0], v[1]), x.y = kern_pair_bf16(v[2], v[3]);
            *(uint2 *)((uint16_t *)h->state + at) = x;
        } else {
            float4 x;
            x.x = v[0], x.y = v[1], x.z = v[2], x.w = v[3];
            *(float4 *)((float *)h->state + at) = x;
        }
        return;
    }
    KERN_UNROLL_LOOP
    for (int j = 0; j < STATE_LANE; j++)
        if (i + j < h->width) state_store(h->state, narrow, at + (size_t)j, v[j]);
}

/* The sums over the warp of four numbers of each lane: lane i gets that of number i / 8. */
KERN_FN float state_sums(const float v[STATE_ROWS])
{
    const int lane = (int)threadIdx.x % KERN_WARP, high = lane & 16, next = lane & 8;
    float x = high ? v[2] : v[0], y = high ? v[3] : v[1];
    x += __shfl_xor_sync(KERN_ALL, high ? v[0] : v[2], 16);
    y += __shfl_xor_sync(KERN_ALL, high ? v[1] : v[3], 16);
    float sum = next ? y : x;
    sum += __shfl_xor_sync(KERN_ALL, next ? x : y, 8);
    sum += __shfl_xor_sync(KERN_ALL, sum, 4);
    sum += __shfl_xor_sync(KERN_ALL, sum, 2);
    return sum + __shfl_xor_sync(KERN_ALL, sum, 1);
}

/* Four rows from `row` on, those below h->to; vectors: key, query, decay of [pieces * STATE_PIECE] each. */
KERN_FN void state_rows(const struct state_head *h, const float *vectors, int row, int pieces, int narrow, int bf16)
{
    const int lane = (int)threadIdx.x % KERN_WARP, own = row + lane / 8; /* whose sums this lane gets */
    const float *const key = vectors, *const query = key + pieces * STATE_PIECE;
    const float *const decay = query + pieces * STATE_PIECE;
    float s[STATE_ROWS][STATE_PIECES_MAX * STATE_LANE], sum[STATE_ROWS];
    KERN_UNROLL_LOOP
    for (int r = 0; r < STATE_ROWS; r++) {
        KERN_UNROLL_LOOP
        for (int p = 0; p < pieces; p++) {
            float *const v = s[r] + p * STATE_LANE;
            v[0] = v[1] = v[2] = v[3] = 0;
            if (row + r < h->to) state_get(v, h, row + r, p * STATE_PIECE + lane * STATE_LANE, narrow);
        }
    }
    const float value = own < h->to ? state_number(h->value, bf16, (size_t)own) : 0;
    KERN_UNROLL_LOOP
    for (int r = 0; r < STATE_ROWS; r++) {
        sum[r] = 0;
        KERN_UNROLL_LOOP
        for (int i = 0; i < pieces * STATE_LANE; i++) {
            const int at = i / STATE_LANE * STATE_PIECE + lane * STATE_LANE + i % STATE_LANE;
            s[r][i] *= decay[at];
            sum[r] += s[r][i] * key[at];
        }
    }
    const float add = h->factor * (h->delta ? value - state_sums(sum) : value);
    KERN_UNROLL_LOOP
    for (int r = 0; r < STATE_ROWS; r++) {
        const float input = __shfl_sync(KERN_ALL, add, r * 8 + 7); /* the last of eight */
        sum[r] = 0;
        KERN_UNROLL_LOOP
        for (int p = 0; p < pieces; p++) {
            float *const v = s[r] + p * STATE_LANE;
            KERN_UNROLL_LOOP
            for (int i = 0; i < STATE_LANE; i++) {
                const int at = p * STATE_PIECE + lane * STATE_LANE + i;
                v[i] += input * key[at];
                sum[r] += v[i] * query[at];
            }
            if (row + r < h->to) state_put(v, h, row + r, p * STATE_PIECE + lane * STATE_LANE, narrow);
        }
    }
    const float y = state_sums(sum) + h->again * value;
    if (lane % 8 == 0 && own < h->to) state_store(h->y, bf16, (size_t)own, y);
}

/* All rows of a block. */
KERN_FN void state_block(const struct state_head *h, const float *vectors, int pieces, int narrow, int bf16)
{
    const int warp = (int)threadIdx.x / KERN_WARP;
    for (int row = h->from + warp * STATE_ROWS; row < h->to; row += STATE_WARPS * STATE_ROWS)
        state_rows(h, vectors, row, pieces, narrow, bf16);
}

KERN_BOTH int state_parts(int rows) { return (rows + STATE_PART - 1) / STATE_PART; }
KERN_BOTH int state_pieces(int width)
{
    return width <= STATE_PIECE ? 1 : width <= 2 * STATE_PIECE ? 2 : STATE_PIECES_MAX;
}
KERN_BOTH size_t state_shared(int width) { return sizeof(float) * 3 * STATE_PIECE * (size_t)state_pieces(width); }

/* The kernels of a step, by how wide its states are and in what: body(&args, shared, pieces, narrow). */
#define STATE_KERNEL(name, type, body, pieces, narrow)                                                                 \
    KERN_GLOBAL(name, type, args, STATE_THREADS)                                                                       \
    {                                                                                                                  \
        KERN_SHARED_MEMORY(shared);                                                                                    \
        body(&args, (float *)(void *)shared, pieces, narrow);                                                          \
    }
#define STATE_KERNELS(name, type, body)                                                                                \
    STATE_KERNEL(name##_1, type, body, 1, 0)                                                                           \
    STATE_KERNEL(name##_2, type, body, 2, 0)                                                                           \
    STATE_KERNEL(name##_4, type, body, 4, 0)                                                                           \
    STATE_KERNEL(name##_1_bf16, type, body, 1, 1)                                                                      \
    STATE_KERNEL(name##_2_bf16, type, body, 2, 1)                                                                      \
    STATE_KERNEL(name##_4_bf16, type, body, 4, 1)

#define STATE_START(name, blocks, width, stream, args)                                                                 \
    KERN_LAUNCH(name, blocks, 1, 1, STATE_THREADS, state_shared(width), stream, args)
#define STATE_LAUNCH(name, blocks, width, narrow, stream, args)                                                        \
    do {                                                                                                               \
        const int pieces = state_pieces(width);                                                                        \
        if (narrow && pieces == 1)                                                                                     \
            STATE_START(name##_1_bf16, blocks, width, stream, args);                                                   \
        else if (narrow && pieces == 2)                                                                                \
            STATE_START(name##_2_bf16, blocks, width, stream, args);                                                   \
        else if (narrow)                                                                                               \
            STATE_START(name##_4_bf16, blocks, width, stream, args);                                                   \
        else if (pieces == 1)                                                                                          \
            STATE_START(name##_1, blocks, width, stream, args);                                                        \
        else if (pieces == 2)                                                                                          \
            STATE_START(name##_2, blocks, width, stream, args);                                                        \
        else                                                                                                           \
            STATE_START(name##_4, blocks, width, stream, args);                                                        \
    } while (0)

/* NULL: it can. */
static inline const char *state_lacks(const struct kern_machine *m, double heads, double rows, double width)
{
    if (m->capability < 80) return "no conversions to bf16: compute capability 8.0 or higher";
    if (width > STATE_PIECE * STATE_PIECES_MAX) return "a row of the state is wider than 512";
    return heads * ((rows + STATE_PART - 1) / STATE_PART) >= 2147483648.0 ? "too many blocks" : NULL;
}

#endif
