/* launch -- what a kernel costs that does nothing: n of them, one after the other, each writing its number.
 *
 * Counted: four bytes a launch. What the host needs to start one is in the conditions of a result (launch_s). */
#include "kernels/device.h"

enum { LAUNCHES_MAX = 512, THREADS = 32 };

struct launch_args {
    int *out;
    int number;
};

KERN_GLOBAL(launch_write, struct launch_args, s, THREADS)
{
    if (threadIdx.x == 0) s.out[s.number] = s.number;
}

static void launch_run(const struct kern_call *c)
{
    for (int i = 0; i < (int)c->shape->v[0]; i++) {
        const struct launch_args args = {(int *)c->buffer[0], i};
        KERN_LAUNCH(launch_write, 1, 1, 1, THREADS, 0, c->stream, args);
    }
}

static size_t launch_buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    const struct kern_buffer buffer = {"out", KERN_OUTPUT, KERN_TYPE_I32, (size_t)s->v[0], 0, 1};
    out[0] = buffer;
    return 1;
}

static void launch_reference(const struct kern_call *c, size_t b, size_t block, double *out)
{
    (void)c, (void)b;
    *out = (double)block;
}

static double launch_cost(const struct kern_shape *s, size_t b)
{
    (void)s, (void)b;
    return 1;
}

static void launch_counts(const struct kern_shape *s, struct kern_counts *out)
{
    const struct kern_counts counts = {0, 0, 0, 4 * (double)s->v[0]};
    *out = counts;
}

static double launch_tolerance(const struct kern_shape *s)
{
    (void)s;
    return 1e-12;
}

static const struct kern_arg ARGS[] = {{"n", 1, LAUNCHES_MAX, "kernels, one after the other"}};
static const struct kern_variant VARIANTS[] = {
    {"cuda", KERN_UNIT_FP32, KERN_HAS(KERN_FP32), NULL, NULL, NULL, launch_run, 0, false, NULL},
};
static const struct kern_point POINTS[] = {{{{1}, KERN_FP32}, true}, {{{256}, KERN_FP32}, true}};

static const struct kern LAUNCH = {"launch",
                                   "empty kernels one after the other: what a launch costs",
                                   "",
                                   KERN_CEILING_NONE,
                                   ARGS,
                                   1,
                                   KERN_HAS(KERN_FP32),
                                   POINTS,
                                   2,
                                   NULL,
                                   launch_buffers,
                                   NULL,
                                   launch_reference,
                                   launch_cost,
                                   launch_counts,
                                   launch_tolerance,
                                   VARIANTS,
                                   1};

const struct kern_cuda kern_cuda_launch = {&LAUNCH, VARIANTS, 1, NULL, 0};
