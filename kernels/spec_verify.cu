/* spec-verify on a card: the walk through a tree of drafts, a block a sequence, prefix sums over the vocabulary.
 *
 * All threads of a block take the same decisions from the same numbers. Where a candidate is refused, the sum of what is
 * left is needed, and where a token is drawn, prefix sums of it: a warp takes chunks of the row in turn, four elements a
 * lane; the chunks' sums lie in shared memory and are scanned by the whole block; the chunk that the drawn number falls
 * into is scanned by a warp, and its lane walks through its own elements. What is left after several refusals is made
 * anew from p and q each time, which the second cache holds by then, so that nothing is written but tokens. Sums are in
 * double and uniform numbers those of kern_hash: tokens are the reference's. Few sequences leave most of a card idle. */
#include "kernels/device.h"

enum { BATCH, GAMMA, VOCAB, ACCEPTED, BRANCHES };
enum { THREADS = 256, WARPS = 8, LANE = 4, CHUNK = KERN_WARP * LANE, CHUNKS_MOST = 4096, REFUSED_MOST = 16 };

struct verify_args {
    const int32_t *seeds, *drafts;
    const float *p, *q;
    int32_t *out;
    int gamma, vocab, branches, nodes, parents; /* of a tree: its nodes, and those that have children */
    int chunk, chunks;                          /* elements of a chunk, chunks of a row */
};

/* What is left of q after refusals; sums: prefix sums of chunks, then sums of warps, then factors, all in shared. */
struct verify_rest {
    const float *q, *p;
    double *chunk, *warp, *factor;
    int *found; /* of each warp */
    int refused;
};

/* Bits of kern_hash and of speculate_uniform. */
KERN_FN double verify_uniform(int32_t seed, uint64_t taken)
{
    uint64_t z = (uint64_t)seed + (taken + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * (1.0 / 9007199254740992.0);
}

KERN_FN double verify_left(const struct verify_rest *r, float q, float p)
{
    double v = (double)q;
    for (int j = 0; j < r->refused; j++) {
        v = v * r->factor[j] - (double)p;
        if (!(v > 0)) v = 0;
    }
    return v;
}

KERN_FN double verify_at(const struct verify_rest *r, int i)
{
    return verify_left(r, r->q[i], r->refused ? r->p[i] : 0);
}

/* Of the lane `delta` below, 0 where there is none. */
KERN_FN double verify_up(double v, int delta)
{
    union {
        double v;
        uint32_t half[2];
    } x;
    x.v = v;
    KERN_UNROLL_LOOP
    for (int i = 0; i < 2; i++) x.half[i] = __shfl_up_sync(KERN_ALL, x.half[i], delta);
    return (int)threadIdx.x % KERN_WARP >= delta ? x.v : 0;
}

/* Sums of this lane's number and those of the lanes below. */
KERN_FN double verify_scan(double v)
{
    KERN_UNROLL_LOOP
    for (int delta = 1; delta < KERN_WARP; delta *= 2) v += verify_up(v, delta);
    return v;
}

/* A lane's part of elements first .. first + n - 1. */
KERN_FN double verify_part(const struct verify_rest *r, int vocab, int first, int n)
{
    const int lane = (int)threadIdx.x % KERN_WARP, end = first + n < vocab ? first + n : vocab;
    double sum = 0;
    for (int i = first + lane * LANE; i < end; i += CHUNK) {
        if (vocab % LANE == 0) {
            const float4 q = *(const float4 *)(const void *)(r->q + i);
            float4 p = {0, 0, 0, 0};
            if (r->refused) p = *(const float4 *)(const void *)(r->p + i);
            sum += verify_left(r, q.x, p.x) + verify_left(r, q.y, p.y) +
                   (verify_left(r, q.z, p.z) + verify_left(r, q.w, p.w));
        } else {
            for (int j = i; j < i + LANE && j < end; j++) sum += verify_at(r, j);
        }
    }
    return sum;
}

/* Inclusive prefix sums of the chunks, those of a thread its own until the next barrier; all get the sum of the row. */
KERN_FN double verify_sums(const struct verify_args *a, const struct verify_rest *r)
{
    const int t = (int)threadIdx.x, lane = t % KERN_WARP, warp = t / KERN_WARP;
    const int each = (a->chunks + THREADS - 1) / THREADS;
    __syncthreads(); /* all are done with the sums before, and see the factors */
    for (int c = warp; c < a->chunks; c += WARPS) {
        const double all = verify_scan(verify_part(r, a->vocab, c * a->chunk, a->chunk));
        if (lane == KERN_WARP - 1) r->chunk[c] = all;
    }
    __syncthreads();
    double sum = 0;
    for (int c = t * each; c < (t + 1) * each && c < a->chunks; c++) r->chunk[c] = sum += r->chunk[c];
    const double scan = verify_scan(sum);
    if (lane == KERN_WARP - 1) r->warp[warp] = scan;
    __syncthreads();
    double before = scan - sum, all = 0;
    KERN_UNROLL_LOOP
    for (int w = 0; w < WARPS; w++) {
        if (w < warp) before += r->warp[w];
        all += r->warp[w];
    }
    for (int c = t * each; c < (t + 1) * each && c < a->chunks; c++) r->chunk[c] += before; /* a barrier to come */
    return all;
}

/* Sum of a chunk. */
KERN_FN double verify_chunk(const struct verify_rest *r, int c) { return r->chunk[c] - (c ? r->chunk[c - 1] : 0); }

/* The first of the block's threads' numbers that is not `none`, all get it; once a block. */
KERN_FN int verify_first(const struct verify_rest *r, int found, int none)
{
    const int warp = (int)threadIdx.x / KERN_WARP;
    const unsigned there = __ballot_sync(KERN_ALL, found != none);
    const int mine = __shfl_sync(KERN_ALL, found, there ? __ffs((int)there) - 1 : 0);
    if (threadIdx.x % KERN_WARP == 0) r->found[warp] = mine;
    __syncthreads();
    int first = none;
    KERN_UNROLL_LOOP
    for (int w = WARPS - 1; w >= 0; w--)
        if (r->found[w] != none) first = r->found[w];
    return first;
}

/* The chunk that `at` falls into: the first whose prefix is above it; rounding may leave a rest behind the last, -1. */
KERN_FN int verify_find(const struct verify_args *a, const struct verify_rest *r, double at)
{
    const int t = (int)threadIdx.x, each = (a->chunks + THREADS - 1) / THREADS;
    int found = -1;
    for (int c = t * each; c < (t + 1) * each && c < a->chunks && found < 0; c++)
        if (r->chunk[c] > at) found = c;
    return verify_first(r, found, -1);
}

/* The element of a chunk that `left` falls into: of warp 0; the last with weight where rounding leaves a rest. */
KERN_FN int verify_inside(const struct verify_args *a, const struct verify_rest *r, int c, double left)
{
    const int lane = (int)threadIdx.x % KERN_WARP, each = a->chunk / KERN_WARP;
    const int first = c * a->chunk + lane * each;
    const int end = first + each < a->vocab ? first + each : a->vocab;
    double sum = 0;
    int last = -1, found = -1;
    for (int i = first; i < end; i++) {
        const double v = verify_at(r, i);
        if (v > 0) last = i;
        sum += v;
    }
    const double below = verify_scan(sum) - sum;
    double rest = left - below;
    for (int i = first; i < end && found < 0; i++) {
        const double v = verify_at(r, i);
        rest -= v;
        if (v > 0 && rest < 0) found = i;
    }
    const unsigned there = __ballot_sync(KERN_ALL, found >= 0), some = __ballot_sync(KERN_ALL, last >= 0);
    const int from = there ? __ffs((int)there) - 1 : some ? 31 - __clz((int)some) : 0;
    return __shfl_sync(KERN_ALL, there ? found : last, from);
}

/* A token by what is left. */
KERN_FN int verify_draw(const struct verify_args *a, struct verify_rest *r, double u)
{
    double all = verify_sums(a, r);
    if (!(all > 0) && r->refused) { /* p equals q but for rounding */
        r->refused = 0;
        r->q = r->p;
        all = verify_sums(a, r);
    }
    int c = verify_find(a, r, u * all);
    if (c < 0) { /* the last that has any */
        int last = -1;
        for (int i = 0; i < a->chunks; i++)
            if (verify_chunk(r, i) > 0) last = i;
        c = last < 0 ? 0 : last;
    }
    return verify_inside(a, r, c, u * all - (c ? r->chunk[c - 1] : 0));
}

KERN_GLOBAL(verify_tree, struct verify_args, a, THREADS)
{
    KERN_SHARED_MEMORY(shared);
    const size_t b = blockIdx.x, vocab = (size_t)a.vocab;
    const int32_t *const drafts = a.drafts + b * (size_t)(a.nodes - 1);
    const int32_t seed = a.seeds[b];
    int32_t *const out = a.out + b * (size_t)(a.gamma + 1);
    uint64_t taken = 0;
    int node = 0, level = 0;
    struct verify_rest r;
    r.chunk = (double *)(void *)shared;
    r.warp = r.chunk + a.chunks;
    r.factor = r.warp + WARPS;
    r.found = (int *)(void *)(r.factor + REFUSED_MOST);
    for (;; level++) {
        int child = 0;
        double all = 1; /* rows sum to 1 as far as fp32 goes, so that no row is read for a first token that stays */
        r.q = a.q + (b * (size_t)a.nodes + (size_t)node) * vocab;
        r.p = a.p + (b * (size_t)a.parents + (size_t)node) * vocab;
        r.refused = 0;
        for (int i = 0; level < a.gamma && i < a.branches && !child; i++) {
            const int at = a.branches * node + 1 + i, x = drafts[at - 1];
            if (verify_uniform(seed, taken++) * (double)r.p[x] * all < verify_at(&r, x)) {
                child = at;
                continue;
            }
            if (r.refused == 0) all = verify_sums(&a, &r);
            if (threadIdx.x == 0) r.factor[r.refused] = 1 / all;
            r.refused++;
            if (i + 1 == a.branches) continue; /* the draw sums them */
            all = verify_sums(&a, &r);
            if (all > 0) continue;
            r.q = r.p; /* they are equal but for rounding */
            r.refused = 0;
            all = 1;
        }
        if (!child) break;
        if (threadIdx.x == 0) out[level] = drafts[child - 1];
        node = child;
    }
    const int token = verify_draw(&a, &r, verify_uniform(seed, taken));
    if (threadIdx.x != 0) return;
    out[level] = token;
    while (++level <= a.gamma) out[level] = -1;
}

/* -- the launch -- */

/* Elements of a chunk: a warp's, so many of them that shared memory holds the sums. */
static int verify_chunk_of(const struct kern_shape *s)
{
    const int64_t least = (s->v[VOCAB] + CHUNKS_MOST - 1) / CHUNKS_MOST;
    const int64_t own = least > 2 * CHUNK ? least : 2 * CHUNK;
    return (int)((own + CHUNK - 1) / CHUNK * CHUNK);
}

static void verify_run(const struct kern_call *c)
{
    const struct kern_shape *const s = c->shape;
    struct verify_args a;
    a.seeds = (const int32_t *)c->buffer[0];
    a.p = (const float *)c->buffer[1];
    a.q = (const float *)c->buffer[2];
    a.drafts = (const int32_t *)c->buffer[3];
    a.out = (int32_t *)c->buffer[4];
    a.gamma = (int)s->v[GAMMA];
    a.vocab = (int)s->v[VOCAB];
    a.branches = (int)s->v[BRANCHES];
    a.nodes = 1;
    a.parents = 1;
    for (int i = 0; i < a.gamma; i++) {
        a.parents = a.nodes;
        a.nodes = a.nodes * a.branches + 1;
    }
    a.chunk = verify_chunk_of(s);
    a.chunks = (a.vocab + a.chunk - 1) / a.chunk;
    KERN_LAUNCH(verify_tree, (unsigned)s->v[BATCH], 1, 1, THREADS,
                sizeof(double) * ((size_t)a.chunks + WARPS + REFUSED_MOST) + sizeof(int) * WARPS, c->stream, a);
}

static const struct kern_variant VARIANTS[] = {
    {"cuda", KERN_UNIT_FP32, KERN_HAS(KERN_FP32), NULL, NULL, NULL, verify_run, 0, false, NULL},
};

/* Vocabularies of 128 and 152 thousand, as many sequences as a card has processors and more; a tree. */
static const struct kern_point POINTS[] = {
    {{{128, 4, 128256, 2, 1}, KERN_FP32}, true},
    {{{128, 4, 128256, 4, 1}, KERN_FP32}, false},
    {{{256, 3, 151936, 0, 1}, KERN_FP32}, false},
    {{{32, 2, 32000, 1, 4}, KERN_FP32}, false},
};

const struct kern_cuda kern_cuda_spec_verify = {&kern_spec_verify, VARIANTS, 1, POINTS,
                                                sizeof POINTS / sizeof POINTS[0]};
