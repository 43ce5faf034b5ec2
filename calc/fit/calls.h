/* calls -- an operator of a step as the call of a kernel; private to calc/fit. */
#ifndef RIDGE_FIT_CALLS_H
#define RIDGE_FIT_CALLS_H

#include "calc/fit/source.h"
#include "calc/time/step.h"

enum call_how {
    CALL_MEASURED, /* a kernel with a measured class */
    CALL_FUSED,    /* its bytes move in the kernel next to it: no start-up of its own */
    CALL_INSIDE,   /* part of another call, whose measurement holds it */
    CALL_NOTHING,  /* no work at all: held back, or moved by no kernel */
    CALL_ROOFLINE, /* no class: its own roofline over CALL_DEFAULT_FRAC, and a start-up */
};

/* What an operator without a measured class reaches of its roofline, its P10 and P90 of time over that median (0.85 and
 * 0.3 of the roofline), and its start-up: that of the smallest elementwise kernel. */
#define CALL_DEFAULT_FRAC 0.6
#define CALL_DEFAULT_P10 (CALL_DEFAULT_FRAC / 0.85)
#define CALL_DEFAULT_P90 (CALL_DEFAULT_FRAC / 0.3)
#define CALL_START_S 2e-6

struct call {
    enum call_how how;
    struct kernel kernel; /* all but what a point sets */
    struct source_class of;
    double p[KERNEL_PARAMS_MAX]; /* of the class, as this call takes them */
    double count, launches;      /* launches: kernels of one call */
    bool by_context;             /* its work changes with the context in a decode step */
    bool packed, both_ways;      /* query tokens as further heads; each token sees all (call_at) */
    double context_ranks;        /* decode attention: ranks that share the context, each with its part; 1 */
    bool shared;                 /* experts: one more, that all tokens have */
    int part;                    /* of a mixed pass, as cost_op */
    size_t op;                   /* of the pass */
};

/* What a point asks of a phase: sequences of the pass, new tokens of each, context (the mean over the steps). */
struct call_point {
    double batch, tokens, context;
};

/* What of a pass a call is made for: one token of each sequence against its cache, several of them to be judged, whole
 * prompts or pieces of them. */
enum call_pass { CALL_DECODE, CALL_VERIFY, CALL_PREFILL };

/* call_make -- how operator i of a pass is called; of a mixed pass by the part that it is of. */
struct call call_make(const struct step_pass *pass, enum call_pass which, size_t i, const struct source *s, bool eager);

/* What the operator of a call does at a point: rows of a product, or bytes. Of experts also those that the busiest
 * part reads and the (token, expert) pairs that it computes, as the operator's bytes and flops count them (routing,
 * skew, parts); NAN: alike everywhere, as many as expected. */
struct call_value {
    double rows, bytes, touched, pairs;
};

/* call_at -- the kernel of a call at a point. Where a shared expert is in the kernel, it has all rows. */
struct kernel call_at(const struct call *c, const struct call_point *at, const struct call_value *v);

#endif
