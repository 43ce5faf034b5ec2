/* cuda -- the kernels that have CUDA code, in the order they are listed. */
#include "kernels/device.h"

static const struct kern_cuda *const TABLE[] = {
#define X(name) &name,
    KERN_CUDA_TABLE(X)
#undef X
};

const struct kern_cuda *const *kern_cuda_table(size_t *n)
{
    *n = sizeof TABLE / sizeof TABLE[0];
    return TABLE;
}

const struct kern_cuda *kern_cuda_find(const struct kern *kern)
{
    for (size_t i = 0; i < sizeof TABLE / sizeof TABLE[0]; i++)
        if (TABLE[i]->kern == kern) return TABLE[i];
    return NULL;
}
