/* group -- the CUDA devices of a machine as one place, for kernels that run on several of them at once. */
#ifndef RIDGE_PROBE_WORKER_CUDA_GROUP_H
#define RIDGE_PROBE_WORKER_CUDA_GROUP_H

#include "kernels/nccl.h"
#include "probe/worker/cuda/card.h"

struct group {
    struct place place; /* first */
    struct card *first; /* device 0: its gate's word, its clocks */
    unsigned cards;     /* that can take part */
    cudaStream_t stream[KERN_DEVICES_MAX];
    void *streams[KERN_DEVICES_MAX]; /* the same, for the library */
    cudaEvent_t start[KERN_DEVICES_MAX], end[KERN_DEVICES_MAX];
    struct nccl nccl;
    char text[256];
};

/* group_open -- of so many devices; a device is only touched when memory is taken on it. group_close -- gives all back.
 */
void group_open(struct group *g, struct card *first, unsigned cards);
void group_close(struct group *g);

/* group_time -- of place_code. */
void group_time(struct place *p, struct work *w, const struct sample_rule *rule, struct work_times *out);

#endif
