/* stream on a card: read, copy, triad and update, 16 bytes a thread and step, as many blocks as fit several times over. */
#include "kernels/device.h"

enum { THREADS = 256, BLOCKS_A_PROCESSOR = 8 };

struct stream_args {
    const void *a, *b;
    void *out;
    uint64_t n; /* elements of 4 bytes */
};

KERN_FN uint64_t stream_first(void) { return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; }
KERN_FN uint64_t stream_step(void) { return (uint64_t)gridDim.x * blockDim.x; }

/* out[i % 16] ^= a[i]: four elements are a quarter of a line, so that a thread keeps its own four of the 16 sums when
 * the step is a multiple of four quarters; then over the block by shared memory, over blocks by atomics. */
KERN_GLOBAL(stream_read, struct stream_args, s, THREADS)
{
    KERN_SHARED_MEMORY(shared);
    uint32_t *const sums = (uint32_t *)shared;
    const uint4 *const a = (const uint4 *)s.a;
    const uint64_t quads = s.n / 4, first = stream_first();
    uint4 v = {0, 0, 0, 0};
    if (threadIdx.x < 16) sums[threadIdx.x] = 0;
    __syncthreads();
    KERN_UNROLL_LOOP
    for (uint64_t i = first; i < quads; i += stream_step()) {
        const uint4 x = kern_load_once(a + i);
        v.x ^= x.x, v.y ^= x.y, v.z ^= x.z, v.w ^= x.w;
    }
    const unsigned lane = (unsigned)(first % 4 * 4);
    atomicXor(sums + lane, v.x);
    atomicXor(sums + lane + 1, v.y);
    atomicXor(sums + lane + 2, v.z);
    atomicXor(sums + lane + 3, v.w);
    if (first < s.n % 4) atomicXor(sums + (quads * 4 + first) % 16, ((const uint32_t *)s.a)[quads * 4 + first]);
    __syncthreads();
    if (threadIdx.x < 16) atomicXor((uint32_t *)s.out + threadIdx.x, sums[threadIdx.x]);
}

KERN_GLOBAL(stream_clear, struct stream_args, s, THREADS)
{
    if (threadIdx.x < 16) ((uint32_t *)s.out)[threadIdx.x] = 0;
}

KERN_GLOBAL(stream_copy, struct stream_args, s, THREADS)
{
    const uint64_t quads = s.n / 4, first = stream_first();
    KERN_UNROLL_LOOP
    for (uint64_t i = first; i < quads; i += stream_step())
        ((uint4 *)s.out)[i] = kern_load_once((const uint4 *)s.a + i);
    if (first < s.n % 4) ((float *)s.out)[quads * 4 + first] = ((const float *)s.a)[quads * 4 + first];
}

KERN_GLOBAL(stream_triad, struct stream_args, s, THREADS)
{
    const uint64_t quads = s.n / 4, first = stream_first();
    KERN_UNROLL_LOOP
    for (uint64_t i = first; i < quads; i += stream_step()) {
        const float4 a = ((const float4 *)s.a)[i], b = ((const float4 *)s.b)[i];
        const float4 c = {a.x + 3 * b.x, a.y + 3 * b.y, a.z + 3 * b.z, a.w + 3 * b.w};
        ((float4 *)s.out)[i] = c;
    }
    if (first < s.n % 4) {
        const uint64_t i = quads * 4 + first;
        ((float *)s.out)[i] = ((const float *)s.a)[i] + 3 * ((const float *)s.b)[i];
    }
}

/* a[i] = -a[i] in place: a thread alone reads and writes its elements. */
KERN_GLOBAL(stream_update, struct stream_args, s, THREADS)
{
    const uint64_t quads = s.n / 4, first = stream_first();
    KERN_UNROLL_LOOP
    for (uint64_t i = first; i < quads; i += stream_step()) {
        const float4 a = ((const float4 *)s.out)[i];
        const float4 negated = {-a.x, -a.y, -a.z, -a.w};
        ((float4 *)s.out)[i] = negated;
    }
    if (first < s.n % 4) ((float *)s.out)[quads * 4 + first] = -((const float *)s.out)[quads * 4 + first];
}

/* Blocks of a grid that walks: never more than there is work for. */
static unsigned stream_blocks(const struct kern_call *c)
{
    const uint64_t needed = ((uint64_t)c->shape->v[0] / 4 + THREADS) / THREADS;
    const uint64_t most = (uint64_t)c->machine->processors * BLOCKS_A_PROCESSOR;
    return (unsigned)(needed < most ? needed : most);
}

static void run_read(const struct kern_call *c)
{
    const struct stream_args args = {c->buffer[0], NULL, c->buffer[1], (uint64_t)c->shape->v[0]};
    KERN_LAUNCH(stream_clear, 1, 1, 1, THREADS, 0, c->stream, args);
    KERN_LAUNCH(stream_read, stream_blocks(c), 1, 1, THREADS, 16 * sizeof(uint32_t), c->stream, args);
}

static void run_copy(const struct kern_call *c)
{
    const struct stream_args args = {c->buffer[0], NULL, c->buffer[1], (uint64_t)c->shape->v[0]};
    KERN_LAUNCH(stream_copy, stream_blocks(c), 1, 1, THREADS, 0, c->stream, args);
}

static void run_triad(const struct kern_call *c)
{
    const struct stream_args args = {c->buffer[0], c->buffer[1], c->buffer[2], (uint64_t)c->shape->v[0]};
    KERN_LAUNCH(stream_triad, stream_blocks(c), 1, 1, THREADS, 0, c->stream, args);
}

static void run_update(const struct kern_call *c)
{
    const struct stream_args args = {NULL, NULL, c->buffer[0], (uint64_t)c->shape->v[0]};
    KERN_LAUNCH(stream_update, stream_blocks(c), 1, 1, THREADS, 0, c->stream, args);
}

#define VARIANT(run)                                                                                                   \
    {                                                                                                                  \
        "cuda", KERN_UNIT_FP32, KERN_HAS(KERN_FP32), NULL, NULL, NULL, run, 0, false, NULL                             \
    }
static const struct kern_variant READ[] = {VARIANT(run_read)};
static const struct kern_variant COPY[] = {VARIANT(run_copy)};
static const struct kern_variant TRIAD[] = {VARIANT(run_triad)};
static const struct kern_variant UPDATE[] = {VARIANT(run_update)};

const struct kern_cuda kern_cuda_stream_read = {&kern_stream_read, READ, 1, NULL, 0};
const struct kern_cuda kern_cuda_stream_copy = {&kern_stream_copy, COPY, 1, NULL, 0};
const struct kern_cuda kern_cuda_stream_triad = {&kern_stream_triad, TRIAD, 1, NULL, 0};
const struct kern_cuda kern_cuda_stream_update = {&kern_stream_update, UPDATE, 1, NULL, 0};
