/* sample on a card: a block a row, nothing is sorted. Kept are tokens above a key and the first of those at it; the key
 * is found digit by digit, 11 bits at a time: for top_k by how many tokens have each digit, for top_p by what they weigh.
 * Weights are whole numbers (kernels/sample.h), summed by atomics of two halves with a carry, so that no order of the
 * threads changes a token. For the draw each warp has a part of the row, in order: sums of the parts say in which the
 * token is, and its warp walks through it. After the first walk a row comes from the second cache. Rows that begin
 * between pieces share their first and last with their neighbours, and read of them element by element. */
#include "kernels/piece.h"
#include "kernels/sample.h"

enum { BATCH, VOCAB, TOP_K, TOP_P, TEMPERATURE };
enum { LOGITS, UNIFORMS, TOKENS };
enum { THREADS = 512, WARPS = THREADS / KERN_WARP, DIGIT = 11, BINS = 1 << DIGIT, BINS_EACH = BINS / THREADS };
enum { WHOLE = 1000 /* not a unit: top_p that keeps all */, REFUSED = -1, TOKENS_BITS = 20 };
#define SAMPLE_NONE 0xffffffffu

struct sample_args {
    const void *logits;
    const uint32_t *uniforms;
    int32_t *out;
    int vocab, k, p;
    float scale;
};

struct sample_shared {
    uint32_t low[BINS], high[BINS]; /* of a digit: how many, or halves of what they weigh */
    float most[WARPS];
    uint32_t ties[WARPS], digit;
    uint64_t sums[WARPS], rest;
};

/* A row as one block sees it. */
struct sample_row {
    const unsigned char *pieces; /* the first begins `skew` elements before the row */
    int skew, n, vocab;
    float most, scale;
};

/* Kept are keys above, and the first `ties` of those at it. */
struct sample_cut {
    uint32_t key, ties;
};

KERN_FN uint64_t sample_join(uint32_t low, uint32_t high) { return (uint64_t)high << 32 | low; }

/* -- what lanes and warps do together -- */

KERN_FN uint64_t sample_up(uint64_t v, int by)
{
    const uint32_t low = __shfl_up_sync(KERN_ALL, (uint32_t)v, by);
    const uint32_t high = __shfl_up_sync(KERN_ALL, (uint32_t)(v >> 32), by);
    return sample_join(low, high);
}

KERN_FN uint64_t sample_of_lane(uint64_t v, int lane)
{
    const uint32_t low = __shfl_sync(KERN_ALL, (uint32_t)v, lane);
    const uint32_t high = __shfl_sync(KERN_ALL, (uint32_t)(v >> 32), lane);
    return sample_join(low, high);
}

/* The sum over the lanes up to this one. */
KERN_FN uint64_t sample_up_to(uint64_t v)
{
    const int lane = (int)threadIdx.x % KERN_WARP;
    KERN_UNROLL_LOOP
    for (int by = 1; by < KERN_WARP; by *= 2) {
        const uint64_t before = sample_up(v, by);
        if (lane >= by) v += before;
    }
    return v;
}

/* -- elements -- */

/* A key as sample_key's; those of bf16 have 16 bits. */
KERN_FN uint32_t sample_key_of(float z, bool bf16) { return sample_key(z) & (bf16 ? 0xffff0000u : 0xffffffffu); }

KERN_FN uint64_t sample_weight_at(const struct sample_row *r, uint32_t key, bool bf16)
{
    const float z = sample_value(key);
    return sample_weight(bf16 ? __uint_as_float(__float_as_uint(z) & 0xffff0000u) : z, r->most, r->scale);
}

/* Piece i of a row; -inf outside of it. Returns the token of its first element, which may be before the row. */
KERN_FN int sample_piece(const struct sample_row *r, int i, float z[PIECE_MAX], bool bf16)
{
    const int n = piece_elements(bf16), first = i * n - r->skew;
    const unsigned char *const from = r->pieces + (size_t)i * 16;
    if (first >= 0 && first + n <= r->vocab) {
        piece_open(*(const uint4 *)(const void *)from, z, bf16);
        return first;
    }
    KERN_UNROLL_LOOP
    for (int e = 0; e < n; e++) {
        z[e] = -INFINITY;
        if (first + e >= 0 && first + e < r->vocab)
            z[e] = bf16 ? kern_low_bf16(((const uint16_t *)(const void *)from)[e]) : ((const float *)(const void *)from)[e];
    }
    return first;
}

/* The largest logit in every thread; INFINITY where there is one, or a NAN. */
KERN_FN float sample_most(const struct sample_row *r, struct sample_shared *s, bool bf16)
{
    float most = -INFINITY;
    for (int i = (int)threadIdx.x; i < r->n; i += THREADS) {
        float z[PIECE_MAX];
        (void)sample_piece(r, i, z, bf16);
        KERN_UNROLL_LOOP
        for (int e = 0; e < piece_elements(bf16); e++) most = z[e] <= most ? most : z[e] < INFINITY ? z[e] : INFINITY;
    }
    KERN_UNROLL_LOOP
    for (int by = KERN_WARP / 2; by > 0; by /= 2) most = fmaxf(most, __shfl_xor_sync(KERN_ALL, most, by));
    if (threadIdx.x % KERN_WARP == 0) s->most[threadIdx.x / KERN_WARP] = most;
    __syncthreads();
    KERN_UNROLL_LOOP
    for (int w = 0; w < WARPS; w++) most = fmaxf(most, s->most[w]);
    return most;
}

/* -- the key -- */

KERN_FN void sample_add(struct sample_shared *s, uint32_t digit, uint64_t v)
{
    const uint32_t low = (uint32_t)v, before = atomicAdd(&s->low[digit], low);
    const uint32_t high = (uint32_t)(v >> 32) + (before + low < before);
    if (high) atomicAdd(&s->high[digit], high);
}

/* Adds what has the bits of `known` but for the last `unknown`: how many, or what the kept ones weigh. */
KERN_FN void sample_histogram(const struct sample_row *r, struct sample_shared *s, struct sample_cut kept, bool weighs,
                              uint32_t known, int unknown, int shift, bool bf16)
{
    for (int i = (int)threadIdx.x; i < r->n; i += THREADS) {
        float z[PIECE_MAX];
        (void)sample_piece(r, i, z, bf16);
        KERN_UNROLL_LOOP
        for (int e = 0; e < piece_elements(bf16); e++) {
            const uint32_t key = sample_key_of(z[e], bf16);
            if (key <= kept.key || (uint64_t)(key ^ known) >> unknown) continue;
            sample_add(s, key >> shift & (BINS - 1), weighs ? sample_weight(z[e], r->most, r->scale) : 1);
        }
    }
    if (threadIdx.x == 0 && kept.ties && (uint64_t)(kept.key ^ known) >> unknown == 0)
        sample_add(s, kept.key >> shift & (BINS - 1), kept.ties * sample_weight_at(r, kept.key, bf16));
}

/* The digit, from the greatest on, with which the sum is above s->rest, or of a share of p; s->rest becomes what is left of
 * that before it. SAMPLE_NONE: all are not above it. */
KERN_FN uint32_t sample_digit(struct sample_shared *s, int p)
{
    const int lane = (int)threadIdx.x % KERN_WARP, warp = (int)threadIdx.x / KERN_WARP;
    const int top = BINS - 1 - (int)threadIdx.x * BINS_EACH;
    uint64_t own[BINS_EACH], sum = 0, before = 0, all = 0;
    if (threadIdx.x == 0) s->digit = SAMPLE_NONE;
    KERN_UNROLL_LOOP
    for (int i = 0; i < BINS_EACH; i++) sum += own[i] = sample_join(s->low[top - i], s->high[top - i]);
    const uint64_t up_to = sample_up_to(sum);
    if (lane == KERN_WARP - 1) s->sums[warp] = up_to;
    __syncthreads();
    KERN_UNROLL_LOOP
    for (int w = 0; w < WARPS; w++) {
        if (w < warp) before += s->sums[w];
        all += s->sums[w];
    }
    const uint64_t target = p ? sample_share(all, p) - 1 : s->rest;
    before += up_to - sum;
    __syncthreads(); /* all have read rest */
    if (before <= target && target < before + sum) { /* one thread */
        uint64_t rest = target - before;
        int i = 0;
        KERN_UNROLL_LOOP
        for (int j = 0; j < BINS_EACH - 1; j++)
            if (i == j && rest >= own[j]) rest -= own[j], i++;
        s->digit = (uint32_t)(top - i);
        s->rest = rest;
    }
    __syncthreads();
    return s->digit;
}

/* a / b, less than 2^TOKENS_BITS: bit by bit, since a division of 64 bits is a call, which takes registers. */
KERN_FN uint32_t sample_quotient(uint64_t a, uint64_t b)
{
    uint32_t quotient = 0;
    for (int bit = TOKENS_BITS - 1; bit >= 0; bit--) {
        if (a < b << bit) continue;
        a -= b << bit;
        quotient |= 1u << bit;
    }
    return quotient;
}

/* The cut behind the first k of what is kept, or behind a share p of what it weighs. */
KERN_FN struct sample_cut sample_cut_to(const struct sample_row *r, struct sample_shared *s, struct sample_cut kept, int k,
                                        int p, bool bf16)
{
    struct sample_cut cut = {0, 0};
    for (int unknown = 32; unknown > (bf16 ? 16 : 0); unknown -= DIGIT) {
        const int shift = unknown > DIGIT ? unknown - DIGIT : 0;
        for (int i = (int)threadIdx.x; i < BINS; i += THREADS) s->low[i] = s->high[i] = 0;
        if (threadIdx.x == 0 && unknown == 32 && k) s->rest = (uint64_t)(k - 1);
        __syncthreads();
        sample_histogram(r, s, kept, p > 0, cut.key, unknown, shift, bf16);
        __syncthreads();
        const uint32_t digit = sample_digit(s, unknown == 32 ? p : 0);
        if (digit == SAMPLE_NONE) return kept; /* there are no k */
        cut.key |= digit << shift;
    }
    cut.ties = (p ? sample_quotient(s->rest, sample_weight_at(r, cut.key, bf16)) : (uint32_t)s->rest) + 1;
    return cut;
}

/* -- the draw -- */

/* What the tokens of piece i above the cut weigh, and how many are at it. */
KERN_FN void sample_weigh(const struct sample_row *r, int i, struct sample_cut cut, uint64_t *above, uint64_t *ties,
                          bool bf16)
{
    float z[PIECE_MAX];
    (void)sample_piece(r, i, z, bf16);
    KERN_UNROLL_LOOP
    for (int e = 0; e < piece_elements(bf16); e++) {
        const uint32_t key = sample_key_of(z[e], bf16);
        if (key > cut.key) *above += sample_weight(z[e], r->most, r->scale);
        *ties += key == cut.key;
    }
}

KERN_FN uint64_t sample_least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* The token of piece i with which what is kept weighs more than `left`; `ties` of those at the cut may be. */
KERN_FN int sample_token(const struct sample_row *r, int i, struct sample_cut cut, uint64_t left, uint64_t ties,
                         uint64_t each, bool bf16)
{
    float z[PIECE_MAX];
    const int first = sample_piece(r, i, z, bf16);
    int token = REFUSED;
    KERN_UNROLL_LOOP
    for (int e = 0; e < piece_elements(bf16); e++) {
        const uint32_t key = sample_key_of(z[e], bf16);
        uint64_t weight = key > cut.key ? sample_weight(z[e], r->most, r->scale) : 0;
        if (key == cut.key && ties) weight = each, ties--;
        if (token < 0 && left < weight) token = first + e;
        left -= sample_least(left, weight);
    }
    return token;
}

/* A warp walks through pieces [from, to) to the token; `seen` of those at the cut were before. */
KERN_FN void sample_walk(const struct sample_row *r, int from, int to, struct sample_cut cut, uint64_t left, uint64_t seen,
                         uint64_t each, int32_t *out, bool bf16)
{
    const int lane = (int)threadIdx.x % KERN_WARP;
    for (int base = from; base < to; base += KERN_WARP) {
        uint64_t above = 0, ties = 0;
        if (base + lane < to) sample_weigh(r, base + lane, cut, &above, &ties, bf16);
        const uint64_t ties_to = sample_up_to(ties), before = sample_least(seen + ties_to - ties, cut.ties);
        const uint64_t own = above + sample_least(ties, cut.ties - before) * each, to_here = sample_up_to(own);
        const uint32_t hit = __ballot_sync(KERN_ALL, left < to_here);
        if (hit) {
            if (lane == __ffs((int)hit) - 1)
                *out = sample_token(r, base + lane, cut, left - (to_here - own), cut.ties - before, each, bf16);
            return;
        }
        left -= sample_of_lane(to_here, KERN_WARP - 1);
        seen = sample_least(seen + sample_of_lane(ties_to, KERN_WARP - 1), cut.ties);
    }
}

KERN_FN void sample_draw(const struct sample_row *r, struct sample_shared *s, struct sample_cut cut, uint32_t uniform,
                         int32_t *out, bool bf16)
{
    const int lane = (int)threadIdx.x % KERN_WARP, warp = (int)threadIdx.x / KERN_WARP;
    const int part = (r->n + WARPS - 1) / WARPS, from = warp * part, to = from + part < r->n ? from + part : r->n;
    const uint64_t each = cut.ties ? sample_weight_at(r, cut.key, bf16) : 0;
    uint64_t above = 0, ties = 0, all = 0, seen = 0;
    for (int i = from + lane; i < to; i += KERN_WARP) sample_weigh(r, i, cut, &above, &ties, bf16);
    above = sample_up_to(above);
    ties = sample_up_to(ties);
    if (lane == KERN_WARP - 1) s->sums[warp] = above, s->ties[warp] = (uint32_t)ties;
    __syncthreads();
    for (int w = 0; w < WARPS; w++) {
        all += s->sums[w];
        seen += s->ties[w];
    }
    uint64_t left = sample_point(all + sample_least(seen, cut.ties) * each, uniform);
    seen = 0;
    for (int w = 0; w < WARPS; w++) {
        const uint64_t more = sample_least(s->ties[w], cut.ties - seen), weight = s->sums[w] + more * each;
        if (left < weight) {
            if (w == warp) sample_walk(r, from, to, cut, left, seen, each, out, bf16);
            return;
        }
        left -= weight;
        seen += more;
    }
}

KERN_FN void sample_row_of(const struct sample_args *a, unsigned char *shared, bool bf16)
{
    struct sample_shared *const s = (struct sample_shared *)(void *)shared;
    const size_t start = (size_t)blockIdx.x * (size_t)a->vocab, n = (size_t)piece_elements(bf16), skew = start % n;
    struct sample_row r;
    struct sample_cut cut = {0, 0};
    r.pieces = (const unsigned char *)a->logits + (start - skew) / n * 16;
    r.skew = (int)skew;
    r.n = (a->vocab + r.skew + (int)n - 1) / (int)n;
    r.vocab = a->vocab;
    r.scale = a->scale;
    r.most = sample_most(&r, s, bf16);
    if (!(fabsf(r.most) < INFINITY)) {
        if (threadIdx.x == 0) a->out[blockIdx.x] = REFUSED;
        return;
    }
    if (a->k > 0 && a->k < a->vocab) cut = sample_cut_to(&r, s, cut, a->k, 0, bf16);
    if (a->p < WHOLE) cut = sample_cut_to(&r, s, cut, 0, a->p, bf16);
    sample_draw(&r, s, cut, a->uniforms[blockIdx.x], a->out + blockIdx.x, bf16);
}

KERN_GLOBAL_ALONE(sample_bf16, struct sample_args, a, THREADS)
{
    KERN_SHARED_MEMORY(shared);
    sample_row_of(&a, shared, true);
}
KERN_GLOBAL_ALONE(sample_fp32, struct sample_args, a, THREADS)
{
    KERN_SHARED_MEMORY(shared);
    sample_row_of(&a, shared, false);
}

static void sample_run(const struct kern_call *c)
{
    const struct kern_shape *const s = c->shape;
    const struct sample_args a = {c->buffer[LOGITS],
                                  (const uint32_t *)c->buffer[UNIFORMS],
                                  (int32_t *)c->buffer[TOKENS],
                                  (int)s->v[VOCAB],
                                  (int)s->v[TOP_K],
                                  (int)s->v[TOP_P],
                                  (float)(1.4426950408889634 * WHOLE / (double)s->v[TEMPERATURE])};
    if (s->dtype == KERN_BF16)
        KERN_LAUNCH(sample_bf16, s->v[BATCH], 1, 1, THREADS, sizeof(struct sample_shared), c->stream, a);
    else
        KERN_LAUNCH(sample_fp32, s->v[BATCH], 1, 1, THREADS, sizeof(struct sample_shared), c->stream, a);
}

static const struct kern_variant VARIANTS[] = {
    {"cuda", KERN_UNIT_FP32, KERN_HAS(KERN_BF16) | KERN_HAS(KERN_FP32), NULL, NULL, NULL, sample_run, 0, false, NULL},
};

/* Vocabularies of 128 and 152 thousand; the top k and p, p alone, and the whole. */
static const struct kern_point POINTS[] = {
    {{{64, 128256, 50, 900, 700}, KERN_FP32}, true},
    {{{32, 151936, 0, 950, 1000}, KERN_BF16}, false}, /* not a unit */
    {{{8, 128256, 0, 1000, 1000}, KERN_FP32}, false}, /* not a unit */
};

const struct kern_cuda kern_cuda_sample = {&kern_sample, VARIANTS, 1, POINTS, sizeof POINTS / sizeof POINTS[0]};
