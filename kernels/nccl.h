/* nccl -- collectives by NVIDIA's library, which is loaded while running where it and two cards are. One process calls
 * for all cards, between ncclGroupStart and ncclGroupEnd. It is declared here, since no build may need a toolkit: NCCL
 * 2, API reference, "Communicator Creation and Management Functions", "Collective Communication Functions", "Group
 * Calls" (docs.nvidia.com/deeplearning/nccl), whose numbers have not changed since 2.10 brought bf16. */
#ifndef RIDGE_KERNELS_NCCL_H
#define RIDGE_KERNELS_NCCL_H

#include "kernels/kernel.h"

struct nccl {
    void *library;  /* NULL: why says why not */
    void **streams; /* [cards] of these, which the place of the cards makes before anything runs */
    void *comms[KERN_DEVICES_MAX + 1][KERN_DEVICES_MAX]; /* by how many cards take part; made for the first call */
    char name[64], why[200];                             /* "NCCL 2.27.7", "" */
    char failed[200];                                    /* what a call said; "" nothing */
    int (*version)(int *version);
    int (*comms_make)(void **comms, int cards, const int *which);
    int (*comm_destroy)(void *comm);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*all_reduce)(const void *in, void *out, size_t n, int type, int op, void *comm, void *stream);
    int (*all_gather)(const void *in, void *out, size_t n_in, int type, void *comm, void *stream);
    const char *(*error_text)(int code);
};

/* nccl_open -- load library, NULL: that of $RIDGE_NCCL, else libnccl.so.2; kern_machine.nccl points at out, with a
 * library or without. nccl_close -- ends communicators and unloads it. */
void nccl_open(struct nccl *out, const char *library, void **streams);
void nccl_close(struct nccl *n);

/* nccl_failed -- what a call said since the last time, NULL nothing; text[cap]. */
const char *nccl_failed(struct nccl *n, char *text, size_t cap);

/* nccl_variants -- what it has of a kernel. nccl_points -- shapes for so many cards: two of them, and all. */
const struct kern_variant *nccl_variants(const struct kern *k, size_t *n);
enum { NCCL_POINTS_MAX = 16 };
size_t nccl_points(unsigned cards, struct kern_point out[NCCL_POINTS_MAX]);

#endif
