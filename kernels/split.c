#include "kernels/split.h"

#include <string.h>

#include "kernels/table.h"

enum { LINE_BYTES = 64, LANES = LINE_BYTES / 4 };

static void move(struct kern_call *c, size_t b, size_t bytes) { c->buffer[b] = (char *)c->buffer[b] + bytes; }

/* -- streams: whole lines, the last part what is left -- */

static void part_stream(unsigned i, unsigned n, size_t arrays, struct kern_part *out)
{
    const size_t all = (size_t)out->shape.v[0], from = kern_split_from(all / LANES, i, n) * LANES;
    const size_t to = i + 1 == n ? all : kern_split_from(all / LANES, i + 1, n) * LANES;
    for (size_t b = 0; b < arrays; b++) move(&out->call, b, 4 * from);
    out->shape.v[0] = (int64_t)(to - from);
    out->idle = to == from;
}

/* Reading: each part has sums of its own, a line. */
static size_t room_read(const struct kern_shape *s, unsigned n)
{
    (void)s;
    return (size_t)n * LINE_BYTES;
}

static void part_read(unsigned i, unsigned n, void *room, struct kern_part *out)
{
    part_stream(i, n, 1, out);
    out->call.buffer[1] = (char *)room + (size_t)i * LINE_BYTES;
    if (out->idle) memset(out->call.buffer[1], 0, LINE_BYTES);
}

static void finish_read(const struct kern_call *c, const void *room, unsigned n)
{
    int32_t sum[LANES] = {0}, part[LANES];
    for (unsigned i = 0; i < n; i++) {
        memcpy(part, (const char *)room + (size_t)i * LINE_BYTES, sizeof part);
        for (size_t j = 0; j < LANES; j++) sum[j] ^= part[j];
    }
    memcpy(c->buffer[1], sum, sizeof sum);
}

static void part_copy(unsigned i, unsigned n, void *room, struct kern_part *out)
{
    (void)room;
    part_stream(i, n, 2, out);
}

static void part_triad(unsigned i, unsigned n, void *room, struct kern_part *out)
{
    (void)room;
    part_stream(i, n, 3, out);
}

static void part_update(unsigned i, unsigned n, void *room, struct kern_part *out)
{
    (void)room;
    part_stream(i, n, 1, out);
}

/* -- multiply-adds: groups of chains that fill the registers -- */

static void part_fma(unsigned i, unsigned n, void *room, struct kern_part *out)
{
    enum { GROUP = 192, START = 2, END = 3 }; /* of kernels/fma.c */
    const size_t groups = (size_t)out->shape.v[0] / GROUP, from = kern_split_from(groups, i, n) * GROUP;
    const size_t to = kern_split_from(groups, i + 1, n) * GROUP;
    (void)room;
    move(&out->call, START, 4 * from);
    move(&out->call, END, 4 * from);
    out->shape.v[0] = (int64_t)(to - from);
    out->idle = to == from;
}

/* -- code that heeds its number; none is idle, since all meet -- */

static void part_number(unsigned i, unsigned n, void *room, struct kern_part *out)
{
    (void)room;
    out->call.part = i;
    out->call.parts = n;
}

/* -- decode attention: pairs of a sequence with a key head, each a sequence of one key head -- */

/* Parameters and buffers of kernels/decode_attention.c. */
enum { BATCH, LEN, HEADS, KV_HEADS, DIM, WINDOW, PAGE };
enum { Q, K, V, TABLE, OUT };

static size_t pages_of(const struct kern_shape *s)
{
    const size_t len = (size_t)s->v[LEN], page = s->v[PAGE] ? (size_t)s->v[PAGE] : len;
    return (len + page - 1) / page;
}

static size_t room_decode(const struct kern_shape *s, unsigned n)
{
    (void)n;
    return (size_t)s->v[BATCH] * (size_t)s->v[KV_HEADS] * pages_of(s) * sizeof(int32_t);
}

/* A page [n_kv_heads][page_tokens][head_dim] is as many pages of one head, which follow one another. */
static void prepare_decode(const struct kern_call *c, void *room)
{
    const size_t pages = pages_of(c->shape), heads = (size_t)c->shape->v[KV_HEADS];
    const int32_t *table = c->buffer[TABLE];
    int32_t *out = room;
    for (size_t s = 0; s < (size_t)c->shape->v[BATCH]; s++)
        for (size_t h = 0; h < heads; h++)
            for (size_t p = 0; p < pages; p++) *out++ = table[s * pages + p] * (int32_t)heads + (int32_t)h;
}

static void part_decode(unsigned i, unsigned n, void *room, struct kern_part *out)
{
    struct kern_shape *s = &out->shape;
    const size_t pairs = (size_t)s->v[BATCH] * (size_t)s->v[KV_HEADS], group = (size_t)(s->v[HEADS] / s->v[KV_HEADS]);
    const size_t from = kern_split_from(pairs, i, n), to = kern_split_from(pairs, i + 1, n);
    const size_t bytes = from * group * (size_t)s->v[DIM] * (s->dtype == KERN_FP32 ? 4 : 2);
    out->call.buffer[TABLE] = (int32_t *)room + from * pages_of(s);
    move(&out->call, Q, bytes);
    move(&out->call, OUT, bytes);
    s->v[BATCH] = (int64_t)(to - from);
    s->v[HEADS] = (int64_t)group;
    s->v[KV_HEADS] = 1;
    out->idle = to == from;
}

/* -- the table; shared: strips and sums of products, and what lies between those of an MLP -- */

static const struct kern_split SPLITS[] = {
    {.kernel = &kern_stream_read, .room = room_read, .part = part_read, .finish = finish_read},
    {.kernel = &kern_stream_copy, .part = part_copy},
    {.kernel = &kern_stream_triad, .part = part_triad},
    {.kernel = &kern_stream_update, .part = part_update},
    {.kernel = &kern_fma, .part = part_fma},
    {.kernel = &kern_gemm, .shared = 1u << 3 | 1u << 4, .part = part_number},
    {.kernel = &kern_mlp, .shared = 1u << 5 | 1u << 6 | 1u << 7 | 1u << 8, .part = part_number},
    {.kernel = &kern_prefill_attention, .part = part_number},
    {.kernel = &kern_decode_attention, .room = room_decode, .prepare = prepare_decode, .part = part_decode},
};

const struct kern_split *kern_split_find(const struct kern *k)
{
    for (size_t i = 0; i < sizeof SPLITS / sizeof SPLITS[0]; i++)
        if (SPLITS[i].kernel == k) return &SPLITS[i];
    return NULL;
}
