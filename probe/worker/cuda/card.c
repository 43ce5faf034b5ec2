#define _DEFAULT_SOURCE /* RTLD_NOLOAD */
#include "probe/worker/cuda/card.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "probe/worker/cupti.h"

static struct card *card_of(struct place *p) { return (struct card *)p; }

/* -- memory -- */

static void *take(struct place *p, unsigned device, size_t bytes)
{
    void *memory = NULL;
    (void)p, (void)device; /* there is one */
    return cudaMalloc(&memory, bytes) == cudaSuccess ? memory : (cudaGetLastError(), NULL);
}

static void give(struct place *p, void *memory)
{
    (void)p;
    (void)cudaFree(memory);
}

static void copy(struct place *p, void *to, const void *from, size_t bytes)
{
    struct card *const c = card_of(p);
    if (cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, c->stream) == cudaSuccess)
        (void)cudaStreamSynchronize(c->stream);
}

static void set(struct place *p, void *at, int byte, size_t bytes)
{
    (void)cudaMemsetAsync(at, byte, bytes, card_of(p)->stream);
}

/* Errors that leave nothing usable stay: the next call would tell of them again. */
static const char *wait(struct place *p)
{
    const cudaError_t done = cudaStreamSynchronize(card_of(p)->stream), last = cudaGetLastError();
    const cudaError_t error = done != cudaSuccess ? done : last;
    if (error == cudaSuccess) return NULL;
    p->broken = p->broken || cudaStreamSynchronize(card_of(p)->stream) != cudaSuccess;
    return cudaGetErrorString(error);
}

/* -- counters -- */

/* The runtime's context, which only the driver's own library tells of: the runtime has loaded it. */
static void *context_now(void)
{
    int (*current)(void **context) = NULL;
    void *context = NULL, *const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *const p = driver ? dlsym(driver, "cuCtxGetCurrent") : NULL;
    if (p) memcpy(&current, &p, sizeof p);
    if (!current || current(&context) != 0) context = NULL;
    if (driver) (void)dlclose(driver);
    return context;
}

static const char *count(struct place *p, const char *(*run)(void *closure), void *closure, double bytes[2], char *text,
                         size_t cap)
{
    struct cupti_job job = {.context = context_now(), .run = run, .closure = closure};
    struct cupti_bytes counted;
    (void)p;
    if (cudaGetDevice(&job.device) != cudaSuccess) return "there is no CUDA device";
    const char *why = cupti_count(&job, &counted, text, cap);
    bytes[0] = counted.read;
    bytes[1] = counted.written;
    return why;
}

/* -- the card -- */

static const struct place_code CODE = {take, give, copy, set, wait, card_time, count};

const char *card_open(struct card *c, const char *bus)
{
    *c = (struct card){.place = {.code = &CODE}};
    cudaError_t error = cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking);
    if (error == cudaSuccess) error = cudaEventCreate(&c->start);
    if (error == cudaSuccess) error = cudaEventCreate(&c->end);
    if (error == cudaSuccess)
        error = cudaHostAlloc((void **)&c->flags, CARD_FLAGS_N * sizeof *c->flags,
                              cudaHostAllocMapped | cudaHostAllocPortable);
    if (error == cudaSuccess) error = cudaHostGetDevicePointer((void **)&c->device_flags, c->flags, 0);
    if (error != cudaSuccess) {
        card_close(c);
        return cudaGetErrorString(error);
    }
    c->flags[CARD_OPENED] = c->flags[CARD_LATE] = 0;
    c->place.stream = c->stream;
    (void)nvml_open(&c->nvml, bus);
    return NULL;
}

void card_close(struct card *c)
{
    if (c->flags) (void)cudaFreeHost(c->flags);
    if (c->end) (void)cudaEventDestroy(c->end);
    if (c->start) (void)cudaEventDestroy(c->start);
    if (c->stream) (void)cudaStreamDestroy(c->stream);
    nvml_close(&c->nvml);
    *c = (struct card){.place = {.code = &CODE}};
}
