/* libnccl_fake -- an NCCL of the tests, in the memory of the host: calls between the two ends of a group are done at
 * its end, when all ranks of a communicator have called the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/worker/nccl_fake.h"

extern struct nccl_fake nccl_fake;
struct nccl_fake nccl_fake;

enum { RANKS_MAX = 8, GOOD = 0, INTERNAL = 3, FLOAT16 = 6, FLOAT32 = 7, BFLOAT16 = 9 };

struct comm {
    int rank, ranks;
    struct comm **all;
};

struct queued {
    bool gather;
    const void *in;
    void *out;
    size_t n;
    int type;
    struct comm *comm;
};

static struct queued queue[RANKS_MAX];
static int queued_n, depth;

int ncclGetVersion(int *version);
int ncclCommInitAll(void **comms, int n, const int *which);
int ncclCommDestroy(void *comm);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclAllReduce(const void *in, void *out, size_t n, int type, int op, void *comm, void *stream);
int ncclAllGather(const void *in, void *out, size_t n, int type, void *comm, void *stream);
const char *ncclGetErrorString(int code);

static bool fails(const char *name) { return nccl_fake.fails && strcmp(nccl_fake.fails, name) == 0; }

const char *ncclGetErrorString(int code) { return code == INTERNAL ? "internal error" : "no error"; }

int ncclGetVersion(int *version)
{
    *version = 22707; /* not a unit: 2.27.7 */
    return GOOD;
}

int ncclCommInitAll(void **comms, int n, const int *which)
{
    if (fails("ncclCommInitAll") || n < 2 || n > RANKS_MAX) return INTERNAL;
    struct comm **all = calloc((size_t)n, sizeof *all);
    for (int i = 0; all && i < n; i++) {
        all[i] = calloc(1, sizeof *all[i]);
        if (which[i] != i || !all[i]) return INTERNAL;
        *all[i] = (struct comm){i, n, all};
        comms[i] = all[i];
        nccl_fake.made++;
    }
    return all ? GOOD : INTERNAL;
}

int ncclCommDestroy(void *comm)
{
    struct comm *const c = comm;
    nccl_fake.destroyed++;
    c->all[c->rank] = NULL;
    bool last = true;
    for (int i = 0; i < c->ranks; i++) last = last && !c->all[i];
    if (last) free(c->all);
    free(c);
    return GOOD;
}

int ncclGroupStart(void)
{
    if (fails("ncclGroupStart")) return INTERNAL;
    depth++;
    return GOOD;
}

static int enqueue(const struct queued *q, void *stream)
{
    nccl_fake.confused = nccl_fake.confused || depth != 1 || queued_n == RANKS_MAX || !stream;
    if (nccl_fake.confused) return INTERNAL;
    queue[queued_n++] = *q;
    nccl_fake.stream[q->comm->rank] = stream;
    return GOOD;
}

int ncclAllReduce(const void *in, void *out, size_t n, int type, int op, void *comm, void *stream)
{
    if (fails("ncclAllReduce") || op != 0) return INTERNAL;
    return enqueue(&(struct queued){false, in, out, n, type, comm}, stream);
}

int ncclAllGather(const void *in, void *out, size_t n, int type, void *comm, void *stream)
{
    if (fails("ncclAllGather")) return INTERNAL;
    return enqueue(&(struct queued){true, in, out, n, type, comm}, stream);
}

static float get(const void *data, int type, size_t i)
{
    uint32_t bits = (uint32_t)(type == BFLOAT16 ? ((const uint16_t *)data)[i] : 0) << 16;
    float v;
    if (type == FLOAT32) return ((const float *)data)[i];
    memcpy(&v, &bits, sizeof v);
    return v;
}

static void put(void *data, int type, size_t i, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    bits += 0x7fffu + (bits >> 16 & 1u);
    if (type == FLOAT32)
        ((float *)data)[i] = v;
    else
        ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
}

/* Rank after rank, rounded to the format each time. */
static void reduce(const struct queued *q, int ranks)
{
    for (size_t i = 0; i < q->n; i++) {
        put(q->out, q->type, i, get(queue[0].in, q->type, i));
        for (int r = 1; r < ranks - nccl_fake.forgets; r++)
            put(q->out, q->type, i, get(q->out, q->type, i) + get(queue[r].in, q->type, i));
    }
    nccl_fake.reduced++;
}

static void gather(const struct queued *q, int ranks)
{
    const size_t bytes = q->n * (q->type == FLOAT32 ? 4 : 2);
    for (int r = 0; r < ranks; r++) {
        const int from = nccl_fake.swaps ? (r + 1) % ranks : r;
        memcpy((char *)q->out + (size_t)r * bytes, queue[from].in, bytes);
    }
    nccl_fake.gathered++;
}

int ncclGroupEnd(void)
{
    depth--;
    const int n = queued_n;
    queued_n = 0;
    if (fails("ncclGroupEnd")) return INTERNAL;
    for (int i = 0; i < n; i++) {
        const struct queued *q = &queue[i];
        const bool same = q->comm->ranks == n && q->comm->rank == i && q->comm->all == queue[0].comm->all &&
                          q->n == queue[0].n && q->type == queue[0].type && q->gather == queue[0].gather;
        nccl_fake.confused = nccl_fake.confused || !same; /* it would wait for ever */
        if (!same) return INTERNAL;
    }
    for (int i = 0; i < n; i++) {
        if (queue[i].gather)
            gather(&queue[i], n);
        else
            reduce(&queue[i], n);
    }
    nccl_fake.groups++;
    return GOOD;
}
