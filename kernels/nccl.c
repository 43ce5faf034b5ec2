#define _DEFAULT_SOURCE
#include "kernels/nccl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/collective.h"

/* Numbers of nccl.h: ncclSuccess, ncclSum, and of ncclDataType_t. */
enum { SUCCESS = 0, SUM = 0, FLOAT16 = 6, FLOAT32 = 7, BFLOAT16 = 9 };

/* -- the library -- */

static bool find(struct nccl *n, const char *name, void *slot)
{
    void *const p = dlsym(n->library, name);
    if (p) memcpy(slot, &p, sizeof p);
    if (!p && !*n->why) (void)snprintf(n->why, sizeof n->why, "this NCCL has no %s", name);
    return p != NULL;
}

static void find_functions(struct nccl *n)
{
    bool all = find(n, "ncclCommInitAll", &n->comms_make);
    all = find(n, "ncclCommDestroy", &n->comm_destroy) && all;
    all = find(n, "ncclGroupStart", &n->group_start) && all;
    all = find(n, "ncclGroupEnd", &n->group_end) && all;
    all = find(n, "ncclAllReduce", &n->all_reduce) && all;
    all = find(n, "ncclAllGather", &n->all_gather) && all;
    all = find(n, "ncclGetErrorString", &n->error_text) && all;
    all = find(n, "ncclGetVersion", &n->version) && all;
    if (all) return;
    (void)dlclose(n->library);
    n->library = NULL;
}

void nccl_open(struct nccl *out, const char *library, void **streams)
{
    const char *const given = library ? library : getenv("RIDGE_NCCL");
    const char *const name = given && *given ? given : "libnccl.so.2";
    int v = 0;
    *out = (struct nccl){.library = dlopen(name, RTLD_NOW | RTLD_LOCAL), .streams = streams};
    if (!out->library) {
        const char *why = given ? dlerror() : NULL;
        (void)snprintf(out->why, sizeof out->why, "%s%.150s",
                       why ? "NCCL cannot be loaded: " : "no NCCL is installed (libnccl.so.2)", why ? why : "");
        return;
    }
    find_functions(out);
    if (!out->library || out->version(&v) != SUCCESS) return;
    /* 2.9 and later: major * 10000 + minor * 100 + patch; before it major * 1000 */
    const int major = v >= 10000 ? v / 10000 : v / 1000;         /* not a unit */
    const int minor = (v >= 10000 ? v % 10000 : v % 1000) / 100; /* not a unit */
    (void)snprintf(out->name, sizeof out->name, "NCCL %d.%d.%d", major, minor, v % 100);
}

void nccl_close(struct nccl *n)
{
    for (size_t ranks = 0; n->library && ranks <= KERN_DEVICES_MAX; ranks++)
        for (size_t r = 0; r < ranks; r++)
            if (n->comms[ranks][r]) (void)n->comm_destroy(n->comms[ranks][r]);
    if (n->library) (void)dlclose(n->library);
    *n = (struct nccl){.library = NULL};
}

const char *nccl_failed(struct nccl *n, char *text, size_t cap)
{
    if (!*n->failed) return NULL;
    (void)snprintf(text, cap, "%s", n->failed);
    n->failed[0] = '\0';
    return text;
}

/* -- calls -- */

/* The first that fails is kept; the outputs then hold their poison. */
static bool good(struct nccl *n, const char *what, int code)
{
    if (code == SUCCESS) return true;
    const char *text = n->error_text(code);
    if (!*n->failed) (void)snprintf(n->failed, sizeof n->failed, "%s: %.120s", what, text ? text : "unknown error");
    return false;
}

/* Communicators of the first cards, so many. */
static void **comms_of(struct nccl *n, size_t ranks)
{
    int which[KERN_DEVICES_MAX] = {0};
    void **const comms = n->comms[ranks];
    if (comms[0]) return comms;
    for (size_t r = 0; r < ranks; r++) which[r] = (int)r;
    if (good(n, "ncclCommInitAll", n->comms_make(comms, (int)ranks, which))) return comms;
    for (size_t r = 0; r < ranks; r++) comms[r] = NULL;
    return NULL;
}

static void run(const struct kern_call *c, bool gathers)
{
    struct nccl *const n = c->machine->nccl;
    const struct kern_shape *s = c->shape;
    const size_t ranks = (size_t)s->v[COLLECTIVE_CARDS];
    const int type = s->dtype == KERN_BF16 ? BFLOAT16 : s->dtype == KERN_FP16 ? FLOAT16 : FLOAT32;
    void **const comms = comms_of(n, ranks);
    size_t in, out;
    collective_elements(s, gathers, &in, &out);
    if (!comms || !good(n, "ncclGroupStart", n->group_start())) return;
    for (size_t r = 0; r < ranks; r++) {
        const void *const from = c->buffer[2 * r];
        void *const to = c->buffer[2 * r + 1];
        if (gathers)
            (void)good(n, "ncclAllGather", n->all_gather(from, to, in, type, comms[r], n->streams[r]));
        else
            (void)good(n, "ncclAllReduce", n->all_reduce(from, to, in, type, SUM, comms[r], n->streams[r]));
    }
    (void)good(n, "ncclGroupEnd", n->group_end());
}

static void run_reduce(const struct kern_call *c) { run(c, false); }
static void run_gather(const struct kern_call *c) { run(c, true); }

static const char *lacks(const struct kern_machine *m, const struct kern_shape *s)
{
    const struct nccl *const n = m->nccl;
    if (m->cards < 2) return "two cards are wanted, and here is one";
    if (!n || !n->library) return n && *n->why ? n->why : "no NCCL is installed (libnccl.so.2)";
    return s->v[COLLECTIVE_CARDS] > (int64_t)m->cards ? "there are fewer cards here" : NULL;
}

#define ALL (KERN_HAS(KERN_FP32) | KERN_HAS(KERN_BF16) | KERN_HAS(KERN_FP16))

static const struct kern_variant REDUCE[] = {
    {.name = "nccl", .unit = KERN_UNIT_FP32, .dtypes = ALL, .lacks = lacks, .run = run_reduce, .library = true}};
static const struct kern_variant GATHER[] = {
    {.name = "nccl", .unit = KERN_UNIT_FP32, .dtypes = ALL, .lacks = lacks, .run = run_gather, .library = true}};

const struct kern_variant *nccl_variants(const struct kern *k, size_t *n)
{
    *n = k == &kern_all_reduce || k == &kern_all_gather ? 1 : 0;
    return k == &kern_all_gather ? GATHER : REDUCE;
}

/* From what a decode step sends to what a long prompt does. */
size_t nccl_points(unsigned cards, struct kern_point out[NCCL_POINTS_MAX])
{
    static const int64_t BYTES[] = {1 << 14, 1 << 18, 1 << 22, 1 << 26, 1 << 28};
    static const bool QUICK[] = {true, false, true, false, true};
    size_t n = 0;
    for (int64_t ranks = 2; n + 5 <= NCCL_POINTS_MAX; ranks = cards) {
        for (size_t i = 0; i < 5; i++)
            out[n++] = (struct kern_point){{{ranks, BYTES[i] / ranks * ranks / 16 * 16}, KERN_BF16}, QUICK[i]};
        if (ranks >= cards || cards <= 2 || cards > KERN_DEVICES_MAX) break;
    }
    return n;
}
