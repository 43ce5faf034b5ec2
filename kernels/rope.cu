/* rope on a card: a block a token. Its threads make the cosines and sines of the token's pairs once, for all heads, in
 * shared memory; then each turns the pairs of 16 bytes at a time: two pieces half a rotary width apart, or one whose
 * neighbours are pairs. Heads that do not come out even are turned pair by pair. */
#include "kernels/piece.h"

enum { TOKENS, HEADS, KV_HEADS, DIM, ROTARY, INTERLEAVED };
enum { POSITIONS, TURNS, Q, K };
enum { THREADS = 128 };

struct rope_args {
    const int32_t *positions;
    const uint2 *turns; /* 64 bits of a fraction, the low ones first */
    void *q, *k;
    int heads, kv_heads, dim, rotary, interleaved;
};

/* cos(2 pi t), t the fraction of a turn in 32 bits with a sign: sin(2 pi y), y = 1/4 - |t|, by its Taylor series. */
KERN_FN float rope_cosine(uint32_t turns)
{
    const float y = 0.25f - fabsf((float)(int)turns * (1.0f / 4294967296.0f)), z = y * y;
    float p = -15.0946425768f;
    p = p * z + 42.0586939449f;
    p = p * z - 76.7058597531f;
    p = p * z + 81.6052492761f;
    p = p * z - 41.3417022404f;
    p = p * z + 6.28318530718f;
    return p * y;
}

KERN_FN void rope_pair(float *x, float *y, float cosine, float sine)
{
    const float turned = *x * cosine - *y * sine;
    *y = *y * cosine + *x * sine;
    *x = turned;
}

/* Pieces of the head at x whose pairs are half a rotary width apart, from pair `first` on. */
KERN_FN void rope_halves(void *x, int first, int half, const float *cosine, const float *sine, bool bf16)
{
    const int n = piece_elements(bf16);
    uint4 *const low = (uint4 *)x + first / n, *const high = low + half / n;
    float u[PIECE_MAX], v[PIECE_MAX];
    piece_open(*low, u, bf16);
    piece_open(*high, v, bf16);
    KERN_UNROLL_LOOP
    for (int i = 0; i < n; i++) rope_pair(&u[i], &v[i], cosine[first + i], sine[first + i]);
    *low = piece_close(u, bf16);
    *high = piece_close(v, bf16);
}

/* A piece of neighbours, from pair `first` on. */
KERN_FN void rope_neighbours(void *x, int first, const float *cosine, const float *sine, bool bf16)
{
    const int n = piece_elements(bf16);
    uint4 *const at = (uint4 *)x + 2 * first / n;
    float u[PIECE_MAX];
    piece_open(*at, u, bf16);
    KERN_UNROLL_LOOP
    for (int i = 0; i < n / 2; i++) rope_pair(&u[2 * i], &u[2 * i + 1], cosine[first + i], sine[first + i]);
    *at = piece_close(u, bf16);
}

/* One pair. */
KERN_FN void rope_single(void *x, int from, int to, float cosine, float sine, bool bf16)
{
    if (bf16) {
        uint16_t *const u = (uint16_t *)x + from, *const v = (uint16_t *)x + to;
        float p = kern_low_bf16(*u), q = kern_low_bf16(*v);
        rope_pair(&p, &q, cosine, sine);
        *u = kern_one_bf16(p), *v = kern_one_bf16(q);
    } else {
        rope_pair((float *)x + from, (float *)x + to, cosine, sine);
    }
}

KERN_FN void rope_token(const struct rope_args *a, unsigned char *shared, bool bf16)
{
    const int half = a->rotary / 2, n = piece_elements(bf16), heads = a->heads + a->kv_heads;
    float *const cosine = (float *)(void *)shared, *const sine = cosine + half;
    const uint64_t position = (uint64_t)a->positions[blockIdx.x];
    const bool whole = a->dim % n == 0 && (a->interleaved ? a->rotary : half) % n == 0;
    const int step = !whole ? 1 : a->interleaved ? n / 2 : n, units = half / step; /* pairs at a time */
    for (int i = (int)threadIdx.x; i < half; i += THREADS) {
        const uint2 fraction = a->turns[i];
        const uint32_t turns = (uint32_t)(position * ((uint64_t)fraction.y << 32 | fraction.x) >> 32);
        cosine[i] = rope_cosine(turns);
        sine[i] = rope_cosine(turns - 0x40000000u); /* a quarter before */
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < heads * units; i += THREADS) {
        const int head = i / units, first = i % units * step;
        const size_t row = head < a->heads ? (size_t)blockIdx.x * (size_t)a->heads + (size_t)head
                                           : (size_t)blockIdx.x * (size_t)a->kv_heads + (size_t)(head - a->heads);
        void *const x = (unsigned char *)(head < a->heads ? a->q : a->k) + row * (size_t)a->dim * (bf16 ? 2 : 4);
        if (whole && a->interleaved)
            rope_neighbours(x, first, cosine, sine, bf16);
        else if (whole)
            rope_halves(x, first, half, cosine, sine, bf16);
        else
            rope_single(x, a->interleaved ? 2 * first : first, a->interleaved ? 2 * first + 1 : first + half,
                        cosine[first], sine[first], bf16);
    }
}

KERN_GLOBAL(rope_bf16, struct rope_args, a, THREADS)
{
    KERN_SHARED_MEMORY(shared);
    rope_token(&a, shared, true);
}
KERN_GLOBAL(rope_fp32, struct rope_args, a, THREADS)
{
    KERN_SHARED_MEMORY(shared);
    rope_token(&a, shared, false);
}

static void rope_run(const struct kern_call *c)
{
    const struct kern_shape *const s = c->shape;
    const struct rope_args a = {(const int32_t *)c->buffer[POSITIONS],
                                (const uint2 *)c->buffer[TURNS],
                                c->buffer[Q],
                                c->buffer[K],
                                (int)s->v[HEADS],
                                (int)s->v[KV_HEADS],
                                (int)s->v[DIM],
                                (int)s->v[ROTARY],
                                (int)s->v[INTERLEAVED]};
    const size_t shared = sizeof(float) * (size_t)a.rotary;
    if (s->dtype == KERN_BF16)
        KERN_LAUNCH(rope_bf16, s->v[TOKENS], 1, 1, THREADS, shared, c->stream, a);
    else
        KERN_LAUNCH(rope_fp32, s->v[TOKENS], 1, 1, THREADS, shared, c->stream, a);
}

static const struct kern_variant VARIANTS[] = {
    {"cuda", KERN_UNIT_FP32, KERN_HAS(KERN_BF16) | KERN_HAS(KERN_FP32), NULL, NULL, NULL, rope_run, 0, false, NULL},
};

/* A model of 8 billion parameters, decoding and in a prompt; neighbours as pairs of a quarter of a head. */
static const struct kern_point POINTS[] = {
    {{{64, 32, 8, 128, 128, 0, 500000}, KERN_BF16}, true},
    {{{8192, 32, 8, 128, 128, 0, 500000}, KERN_BF16}, true},
    {{{8192, 16, 16, 256, 64, 1, 10000}, KERN_BF16}, false},
};

const struct kern_cuda kern_cuda_rope = {&kern_rope, VARIANTS, 1, POINTS, sizeof POINTS / sizeof POINTS[0]};
