/* device -- what a worker says of its machine and of its kernels. */
#ifndef RIDGE_PROBE_WORKER_DEVICE_H
#define RIDGE_PROBE_WORKER_DEVICE_H

#include "kernels/kernel.h"
#include "probe/wire.h"
#include "probe/worker/place.h"
#include "probe/worker/team.h"

struct device {
    struct kern_machine machine;
    const struct kern *const *kernels; /* with the variants that are of this device */
    size_t kernels_n;
    struct place *place;   /* NULL: kernels run here */
    struct place *group;   /* of kernels that run on several cards; NULL there are not */
    void *own;             /* of what opened it */
    int64_t threads;       /* that make a call together */
    int64_t processors;    /* that they may run on */
    struct team *team;     /* of more than one */
    double cache_bytes[3]; /* that they have between them */
};

/* One of them is in a worker, device_cpu.c or cuda/device_cuda.c.
 *
 * device_program -- "ridge-worker-cpu".
 * device_open -- find the device; without one no kernel can run, and device_missing says why. False: no memory.
 * device_missing -- why nothing can run, as a piece of a sentence; NULL: there is a device.
 * device_close -- gives all back.
 * device_memory_bytes -- what buffers may take.
 * device_use_threads -- so many do from now on. Returns
 * NULL, or why not, in text; then as before.
 * device_identity -- name, and a JSON object of what tells machines and software apart; what is missing here, sentences
 * or "". Errors: ERR_NOMEM. */
const char *device_program(void);
bool device_open(struct device *out);
const char *device_missing(const struct device *d);
void device_close(struct device *d);
double device_memory_bytes(const struct device *d);
const char *device_use_threads(struct device *d, int64_t threads, char *text, size_t cap);
enum err_code device_identity(struct arena *a, const struct device *d, const char **name, const char **identity,
                              const char **left_out, struct err *e);

/* device_describe -- all of that; all kernels with their points and variants, and why a variant cannot run. Errors:
 * ERR_NOMEM. */
enum err_code device_describe(struct arena *a, const struct device *d, struct wire_device *out, struct err *e);

/* device_shape -- a shape by names as the kernel's own. Returns NULL, or what does not fit, in text. */
const char *device_shape(const struct kern *k, const struct wire_shape *s, const char *dtype, struct kern_shape *out,
                         char *text, size_t cap);

/* device_count -- the work of a call of any kernel that there is, whether this device can run it or not. */
void device_count(const struct device *d, const struct wire_job *j, struct wire_work *out, char *text, size_t cap);

/* device_put -- ,"key":"value" of an identity. */
void device_put(struct out *o, const char *key, const char *value);

#endif
