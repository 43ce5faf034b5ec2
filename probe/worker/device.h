/* device -- what a CPU worker says of its machine and of its kernels. */
#ifndef RIDGE_PROBE_WORKER_DEVICE_H
#define RIDGE_PROBE_WORKER_DEVICE_H

#include "kernels/kernel.h"
#include "probe/wire.h"

/* device_describe -- processor, caches, memory, system, libraries; all kernels with their points and variants, and why
 * a variant cannot run. Errors: ERR_NOMEM. */
enum err_code device_describe(struct arena *a, const struct kern_machine *m, struct wire_device *out, struct err *e);

/* device_memory_bytes -- what buffers may take: half of what the system has free. */
double device_memory_bytes(void);

/* device_shape -- a shape by names as the kernel's own. Returns NULL, or what does not fit, in text. */
const char *device_shape(const struct kern *k, const struct wire_shape *s, const char *dtype, struct kern_shape *out,
                         char *text, size_t cap);

#endif
