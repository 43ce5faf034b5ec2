#include "probe/worker/cuda/group.h"

#include <stdbool.h>

static struct group *group_of(struct place *p) { return (struct group *)p; }

static bool open_device(struct group *g, unsigned i)
{
    if (g->stream[i]) return true;
    if (cudaStreamCreateWithFlags(&g->stream[i], cudaStreamNonBlocking) != cudaSuccess) return false;
    g->streams[i] = g->stream[i];
    return cudaEventCreate(&g->start[i]) == cudaSuccess && cudaEventCreate(&g->end[i]) == cudaSuccess;
}

static void *take(struct place *p, unsigned device, size_t bytes)
{
    struct group *const g = group_of(p);
    void *memory = NULL;
    const bool good = device < g->cards && cudaSetDevice((int)device) == cudaSuccess && open_device(g, device) &&
                      cudaMalloc(&memory, bytes) == cudaSuccess;
    (void)cudaSetDevice(0);
    return good ? memory : (cudaGetLastError(), NULL);
}

static void give(struct place *p, void *memory)
{
    (void)p;
    (void)cudaFree(memory);
}

/* Addresses say on which device they are. */
static void copy(struct place *p, void *to, const void *from, size_t bytes)
{
    (void)p;
    (void)cudaMemcpy(to, from, bytes, cudaMemcpyDefault);
}

static void set(struct place *p, void *at, int byte, size_t bytes)
{
    struct cudaPointerAttributes where;
    struct group *const g = group_of(p);
    if (cudaPointerGetAttributes(&where, at) != cudaSuccess || where.device < 0 || (unsigned)where.device >= g->cards)
        return;
    if (cudaSetDevice(where.device) == cudaSuccess &&
        cudaMemsetAsync(at, byte, bytes, g->stream[where.device]) == cudaSuccess)
        (void)cudaStreamSynchronize(g->stream[where.device]);
    (void)cudaSetDevice(0);
}

/* Errors that leave nothing usable stay: the next call would tell of them again. */
static const char *wait(struct place *p)
{
    struct group *const g = group_of(p);
    cudaError_t error = cudaSuccess;
    const char *const said = nccl_failed(&g->nccl, g->text, sizeof g->text);
    for (unsigned i = 0; i < g->cards; i++) {
        if (!g->stream[i]) continue;
        const cudaError_t done = cudaStreamSynchronize(g->stream[i]);
        if (error == cudaSuccess) error = done;
        p->broken = p->broken || done != cudaSuccess;
    }
    const cudaError_t last = cudaGetLastError();
    if (error == cudaSuccess) error = last;
    return said ? said : error == cudaSuccess ? NULL : cudaGetErrorString(error);
}

static const struct place_code CODE = {take, give, copy, set, wait, group_time, NULL};

void group_open(struct group *g, struct card *first, unsigned cards)
{
    *g = (struct group){.place = {.code = &CODE}, .first = first};
    g->cards = cards < KERN_DEVICES_MAX ? cards : KERN_DEVICES_MAX;
    nccl_open(&g->nccl, NULL, g->streams);
}

void group_close(struct group *g)
{
    nccl_close(&g->nccl);
    for (unsigned i = 0; i < g->cards; i++) {
        if (g->start[i]) (void)cudaEventDestroy(g->start[i]);
        if (g->end[i]) (void)cudaEventDestroy(g->end[i]);
        if (g->stream[i]) (void)cudaStreamDestroy(g->stream[i]);
    }
    *g = (struct group){.place = {.code = &CODE}};
}
