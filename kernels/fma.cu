/* fma on a card: one chain a thread; with 2048 threads on a processor 16 warps share each of its four schedulers, which
 * hides the four cycles that a multiply-add takes. */
#include "kernels/device.h"

enum { THREADS = 256, LANES = 16, AT_ONCE = 16 };

struct fma_args {
    const float *a, *b, *start;
    float *end;
    unsigned chains, steps;
};

KERN_GLOBAL(fma_chains, struct fma_args, s, THREADS)
{
    const unsigned i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= s.chains) return;
    const float a = s.a[i % LANES], b = s.b[i % LANES];
    float x = s.start[i];
    unsigned t = 0;
    for (; t + AT_ONCE <= s.steps; t += AT_ONCE) {
        KERN_UNROLL_LOOP
        for (int j = 0; j < AT_ONCE; j++) x = fmaf(a, x, b);
    }
    for (; t < s.steps; t++) x = fmaf(a, x, b);
    s.end[i] = x;
}

static void fma_run(const struct kern_call *c)
{
    const struct fma_args args = {(const float *)c->buffer[0], (const float *)c->buffer[1], (const float *)c->buffer[2],
                                  (float *)c->buffer[3],       (unsigned)c->shape->v[0],    (unsigned)c->shape->v[1]};
    KERN_LAUNCH(fma_chains, (args.chains + THREADS - 1) / THREADS, 1, 1, THREADS, 0, c->stream, args);
}

static const struct kern_variant VARIANTS[] = {
    {"cuda", KERN_UNIT_FP32, KERN_HAS(KERN_FP32), NULL, NULL, NULL, fma_run, 0, false, NULL},
};

/* Chains for 2048 threads on each of 132 processors, ten times over. */
static const struct kern_point POINTS[] = {{{{2703360, 16384}, KERN_FP32}, true}};

const struct kern_cuda kern_cuda_fma = {&kern_fma, VARIANTS, 1, POINTS, 1};
