/* naive_walk -- what the counters of tests/naive.c and tests/naive_scan.c share: arrays whose elements are charged when
 * first touched, and the operators that both have. */
#ifndef RIDGE_TESTS_NAIVE_WALK_H
#define RIDGE_TESTS_NAIVE_WALK_H

#include "tests/naive.h"

/* Bytes of an array that are charged once each, when first touched. */
struct cells {
    unsigned char *seen;
    double element_bytes;
    double *into; /* NULL: touched for free */
};

/* What one walk knows. */
struct walk {
    const struct naive_model *m;
    const struct naive_pass *p;
    struct naive_ops *ops;
    int layer;
    int tokens;        /* B*T */
    int heads, groups; /* of this rank: query heads, and KV heads that they need */
    int group_of[64];  /* of a local head, among the local KV heads */
};

struct cells cells_open(int n, double element_bytes, double *into);
void touch(struct cells *c, int i);

struct naive_op *op_open(struct walk *w, const char *name);
/* store -- a matrix is kept; vector -- a vector, and read when used; elementwise -- n elements of n_in and n_out
 * arrays; product -- of n matrices with one input; linear -- of one. */
void store(struct naive_op *op, int rows, int cols, const struct naive_format *f);
void vector(struct walk *w, struct naive_op *op, int n, bool read);
struct cells activations(struct walk *w, struct naive_op *op, int n);
void elementwise(struct walk *w, struct naive_op *op, int n, int n_in, int n_out, int flops);
struct naive_op *product(struct walk *w, const char *name, int rows, int in, int n, const int *out,
                         const struct naive_format *f, bool bias);
struct naive_op *linear(struct walk *w, const char *name, int rows, int in, int out, const struct naive_format *f,
                        bool bias);
void all_reduce_of(struct walk *w, const char *name, int n);

/* naive_token_shift -- n mixtures with the token before. naive_recurrent -- all operators of a mixer with a state. */
void naive_token_shift(struct walk *w, const char *name, int n);
/* naive_conv -- a short convolution of so many channels, with flops an element after it and arrays read. naive_state --
 * one element of a sequence's state, found and left. */
void naive_conv(struct walk *w, const struct naive_layer *l, int channels, int flops, int inputs);
void naive_state(const struct walk *w, struct naive_op *op, double element_bytes);
/* naive_finch, naive_goose, naive_diagonal, naive_filter -- mixers of naive_mixers.c. */
void naive_finch(struct walk *w, const struct naive_layer *l);
void naive_goose(struct walk *w, const struct naive_layer *l);
void naive_diagonal(struct walk *w, const struct naive_layer *l);
void naive_filter(struct walk *w, const struct naive_layer *l);
void naive_recurrent(struct walk *w, const struct naive_layer *l);

/* naive_pairs.c -- naive_key_mask: numbers of all keys, of their values; naive_difference: pairs of heads become one,
 * and a norm; naive_groups: the further experts of the groups that a token chose any expert of; naive_head_dense:
 * before the output head; naive_memory: a gate times an earlier scan's output. naive_activation -- a nonlinearity over
 * n elements.
 */
void naive_key_mask(struct walk *w, const struct naive_layer *l);
void naive_difference(struct walk *w, const struct naive_layer *l);
void naive_groups(struct walk *w, const struct naive_layer *l);
void naive_head_dense(struct walk *w, int rows);
void naive_memory(struct walk *w, const struct naive_layer *l);
void naive_activation(struct walk *w, const char *name, int n, bool gated);

#endif
