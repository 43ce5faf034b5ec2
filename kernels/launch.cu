/* launch on a card: n kernels that do nothing, one after the other. What the host needs to start one is in the conditions
 * of a result (launch_s). */
#include "kernels/device.h"

enum { THREADS = 32 };

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

static const struct kern_variant VARIANTS[] = {
    {"cuda", KERN_UNIT_FP32, KERN_HAS(KERN_FP32), NULL, NULL, NULL, launch_run, 0, false, NULL},
};

const struct kern_cuda kern_cuda_launch = {&kern_launch, VARIANTS, 1, NULL, 0};
