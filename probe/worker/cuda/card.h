/* card -- a CUDA device as a place where kernels run and are timed. */
#ifndef RIDGE_PROBE_WORKER_CUDA_CARD_H
#define RIDGE_PROBE_WORKER_CUDA_CARD_H

#include <cuda_runtime_api.h>

#include "probe/worker/cuda/nvml.h"
#include "probe/worker/place.h"

struct card {
    struct place place; /* first */
    cudaStream_t stream;
    cudaEvent_t start, end;
    unsigned *flags, *device_flags; /* [CARD_OPENED] [CARD_LATE], in memory of the host that the card sees */
    unsigned turn;                  /* of the gate */
    struct nvml nvml;
};
enum { CARD_OPENED, CARD_LATE, CARD_FLAGS_N };

/* card_open -- stream, events, gate of the current device. Returns NULL, or what failed. card_close -- gives all back.
 */
const char *card_open(struct card *c, const char *bus);
void card_close(struct card *c);

/* card_gate -- gate.cu: a kernel on the stream that waits until flags[CARD_OPENED] is turn, two seconds at most, after
 * which it sets flags[CARD_LATE] to it. What is enqueued behind it is then started by the card alone, without a gap for
 * the host. */
int card_gate(unsigned *device_flags, unsigned turn, cudaStream_t stream);

/* card_time -- of place_code. */
void card_time(struct place *p, struct work *w, const struct sample_rule *rule, struct work_times *out);

#endif
