#define _DEFAULT_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "kernels/collective.h"
#include "kernels/cuda.h"
#include "kernels/cuda/cublaslt.h"
#include "probe/worker/cuda/card.h"
#include "probe/worker/cuda/group.h"
#include "probe/worker/device.h"

#ifndef RIDGE_VERSION
#define RIDGE_VERSION "unknown"
#endif

enum { KERNELS_MAX = 64, VARIANTS_MAX = 8 };

/* Kernels of the CPU's table with the variants and points of the card. */
struct own {
    struct card card;
    struct group group; /* of all cards, where there are several */
    struct kern_point shared[NCCL_POINTS_MAX];
    struct cublaslt blas;
    const char *why; /* there is no device */
    struct kern kernel[KERNELS_MAX];
    struct kern_variant variants[KERNELS_MAX][VARIANTS_MAX];
    const struct kern *table[KERNELS_MAX];
    char bus[64], reason[160];
    struct cudaDeviceProp prop;
};

const char *device_program(void) { return "ridge-worker-cuda"; }

/* -- kernels -- */

static void add_kernel(struct device *d, const struct kern *from, const struct kern_cuda *cuda)
{
    struct own *const o = d->own;
    const size_t i = d->kernels_n;
    size_t n = 0;
    if (i == KERNELS_MAX) return;
    for (size_t v = 0; cuda && v < cuda->variants_n && n < VARIANTS_MAX; v++) o->variants[i][n++] = cuda->variants[v];
    size_t library_n;
    const struct kern_variant *library = cublaslt_variants(from, &library_n);
    for (size_t v = 0; v < library_n && n < VARIANTS_MAX; v++) o->variants[i][n++] = library[v];
    if (!n) return;
    o->kernel[i] = *from;
    o->kernel[i].variants = o->variants[i];
    o->kernel[i].variants_n = n;
    if (cuda && cuda->points_n) {
        o->kernel[i].points = cuda->points;
        o->kernel[i].points_n = cuda->points_n;
    }
    o->table[i] = &o->kernel[i];
    d->kernels_n++;
}

/* The peak of the tensor cores is what the library's product of large matrices reaches. */
static void add_peak(struct device *d)
{
    struct own *const o = d->own;
    const size_t i = d->kernels_n;
    size_t n;
    const struct kern_variant *library = cublaslt_variants(&kern_gemm, &n);
    if (i == KERNELS_MAX) return;
    for (size_t v = 0; v < n && v < VARIANTS_MAX; v++) o->variants[i][v] = library[v];
    o->kernel[i] = kern_gemm;
    o->kernel[i].name = "gemm-peak";
    o->kernel[i].summary = "large products by the library: the peak of the tensor cores";
    o->kernel[i].row_kind = "";
    o->kernel[i].ceiling = KERN_CEILING_COMPUTE;
    o->kernel[i].variants = o->variants[i];
    o->kernel[i].variants_n = n;
    o->kernel[i].points = cublaslt_peaks(&o->kernel[i].points_n);
    o->table[i] = &o->kernel[i];
    d->kernels_n++;
}

/* What cards do together; with one card, so that it is told what is missing. */
static void add_collectives(struct device *d)
{
    static const struct kern *const COLLECTIVES[] = {&kern_all_reduce, &kern_all_gather};
    struct own *const o = d->own;
    const size_t points_n = nccl_points(d->machine.cards < 2 ? 2 : d->machine.cards, o->shared);
    for (size_t k = 0; k < 2 && d->kernels_n < KERNELS_MAX; k++) {
        const size_t i = d->kernels_n++;
        o->kernel[i] = *COLLECTIVES[k];
        o->kernel[i].variants = nccl_variants(COLLECTIVES[k], &o->kernel[i].variants_n);
        o->kernel[i].points = o->shared;
        o->kernel[i].points_n = points_n;
        o->table[i] = &o->kernel[i];
    }
}

static void add_kernels(struct device *d)
{
    struct own *const o = d->own;
    size_t n;
    const struct kern_cuda *const *table = kern_cuda_table(&n);
    for (size_t i = 0; i < n; i++) add_kernel(d, table[i]->kern, table[i]);
    add_collectives(d);
    add_peak(d);
    d->kernels = o->table;
}

/* -- the card -- */

static unsigned attribute(enum cudaDeviceAttr which)
{
    int v = 0;
    return cudaDeviceGetAttribute(&v, which, 0) == cudaSuccess && v > 0 ? (unsigned)v : 0;
}

static const char *open_card(struct device *d)
{
    struct own *const o = d->own;
    int n = 0;
    cudaError_t error = cudaGetDeviceCount(&n);
    if (error == cudaSuccess && n < 1) error = cudaErrorNoDevice;
    if (error == cudaSuccess) error = cudaSetDevice(0);
    if (error == cudaSuccess) error = cudaGetDeviceProperties(&o->prop, 0);
    if (error == cudaSuccess) error = cudaDeviceGetPCIBusId(o->bus, (int)sizeof o->bus, 0);
    if (error != cudaSuccess) {
        (void)snprintf(o->reason, sizeof o->reason, "no CUDA device: %s", cudaGetErrorString(error));
        return o->reason;
    }
    const char *why = card_open(&o->card, o->bus);
    if (why) {
        (void)snprintf(o->reason, sizeof o->reason, "the CUDA device cannot be used: %s", why);
        return o->reason;
    }
    d->machine = (struct kern_machine){
        .blas_name = "",
        .cache_bytes = {0, 0, attribute(cudaDevAttrL2CacheSize)},
        .processors = attribute(cudaDevAttrMultiProcessorCount),
        .capability = attribute(cudaDevAttrComputeCapabilityMajor) * 10 + attribute(cudaDevAttrComputeCapabilityMinor),
        .shared_bytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin),
        .cards = (unsigned)n,
    };
    if (n > 1) {
        group_open(&o->group, &o->card, (unsigned)n);
        d->machine.nccl = &o->group.nccl;
        d->group = &o->group.place;
    }
    cublaslt_open(&o->blas);
    d->machine.blas = o->blas.handle ? &o->blas : NULL;
    d->machine.blas_name = o->blas.name;
    d->place = &o->card.place;
    add_kernels(d);
    return NULL;
}

bool device_open(struct device *out)
{
    struct own *const o = calloc(1, sizeof *o);
    *out = (struct device){.own = o, .threads = 1, .processors = 1};
    if (!o) return false;
    out->machine.blas_name = "";
    o->why = open_card(out);
    if (o->why) add_kernels(out);
    return true;
}

const char *device_missing(const struct device *d)
{
    const struct own *const o = d->own;
    return o->why;
}

void device_close(struct device *d)
{
    struct own *const o = d->own;
    if (d->group) group_close(&o->group);
    if (d->place) {
        cublaslt_close(&o->blas);
        card_close(&o->card);
    }
    free(o);
    *d = (struct device){.own = NULL};
}

const char *device_use_threads(struct device *d, int64_t threads, char *text, size_t cap)
{
    (void)d;
    if (threads == 1) return NULL;
    (void)snprintf(text, cap, "of a card one thread makes the calls");
    return text;
}

double device_memory_bytes(const struct device *d)
{
    size_t left = 0, all = 0;
    if (!d->place || cudaMemGetInfo(&left, &all) != cudaSuccess) return 0;
    return (double)left * 0.8;
}

/* -- identity -- */

static void put_number(struct out *o, const char *key, double value) { out_printf(o, ",\"%s\":%.0f", key, value); }

static const char *identity(struct arena *a, const struct device *d, struct err *e)
{
    const struct own *const w = d->own;
    struct out *o;
    struct utsname u;
    char text[256];
    int runtime = 0, driver = 0;
    if (out_memory(a, &o, e) != ERR_OK) return NULL;
    out_str(o, "{\"name\":");
    wire_write_text(o, w->prop.name);
    (void)snprintf(text, sizeof text, "%u.%u", d->machine.capability / 10, d->machine.capability % 10);
    device_put(o, "capability", text);
    put_number(o, "processors", d->machine.processors);
    put_number(o, "memory_bytes", (double)w->prop.totalGlobalMem);
    put_number(o, "cache_bytes", d->machine.cache_bytes[2]);
    put_number(o, "shared_bytes", d->machine.shared_bytes);
    put_number(o, "most_clock_hz", attribute(cudaDevAttrClockRate) * 1e3);              /* not a unit: from kHz */
    put_number(o, "most_memory_clock_hz", attribute(cudaDevAttrMemoryClockRate) * 1e3); /* not a unit: from kHz */
    put_number(o, "memory_bus_bits", attribute(cudaDevAttrGlobalMemoryBusWidth));
    device_put(o, "ecc", attribute(cudaDevAttrEccEnabled) ? "on" : "off");
    device_put(o, "driver", w->card.nvml.driver);
    if (cudaRuntimeGetVersion(&runtime) == cudaSuccess && cudaDriverGetVersion(&driver) == cudaSuccess) {
        (void)snprintf(text, sizeof text, "%d.%d on a driver for %d.%d", runtime / 1000, runtime % 1000 / 10,
                       driver / 1000, driver % 1000 / 10);
        device_put(o, "cuda", text);
    }
    if (uname(&u) == 0) {
        (void)snprintf(text, sizeof text, "%.60s %.120s %.60s", u.sysname, u.release, u.machine);
        device_put(o, "system", text);
    }
    device_put(o, "blas", d->machine.blas_name);
    put_number(o, "cards", d->machine.cards);
    if (d->group) device_put(o, "nccl", w->group.nccl.name);
    device_put(o, "compiler", __VERSION__);
    device_put(o, "worker", RIDGE_VERSION);
    out_char(o, '}');
    return out_text(o, NULL);
}

enum err_code device_identity(struct arena *a, const struct device *d, const char **name, const char **text,
                              const char **left_out, struct err *e)
{
    const struct own *const o = d->own;
    *left_out = o->why;
    *name = "none";
    *text = "{}";
    if (o->why) return ERR_OK;
    *left_out =
        d->machine.blas ? "" : "no cuBLAS is installed: libraries and the peak of the tensor cores are left out";
    *name = arena_strndup(a, o->prop.name, strlen(o->prop.name));
    *text = identity(a, d, e);
    return *name && *text ? ERR_OK : err_nomem(e);
}
