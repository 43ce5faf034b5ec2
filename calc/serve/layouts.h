/* layouts -- every way to lay a model out over so many GPUs: what each needs and takes, and why others cannot be.
 *
 * TP x PP x attention-DP x copies are the factors of the number of GPUs; experts are dealt in every number of parts
 * that divides the ranks of a stage. One step, compiled with any_layout, prices them all. MODEL.md "Layouts". */
#ifndef RIDGE_SERVE_LAYOUTS_H
#define RIDGE_SERVE_LAYOUTS_H

#include "calc/time/step.h"

struct layouts_request {
    struct step *step; /* any_layout */
    const struct model *model;
    const struct hw *hw;
    double capacity_bytes; /* of one GPU */
    int64_t gpus, per_node;
    int64_t batch;                   /* sequences in flight on all GPUs together */
    double prompt, context, average; /* T, S and M of step_eval */
    struct layout like; /* sp, dispatch and microbatches of all, skew as far as parts can have it; other numbers that
                           are not 0 are kept; dcp 0: 1 */
    bool any_context;   /* dcp: every number of ranks that can share a context (the step with any_context) */
};

enum layouts_verdict {
    LAYOUTS_FITS,
    LAYOUTS_SHORT,   /* memory */
    LAYOUTS_ILLEGAL, /* does not divide, or a link that it needs is not known */
};

struct layouts_item {
    struct layout layout;
    enum layouts_verdict verdict;
    const char *why; /* of an illegal one, a sentence */
    int64_t batch;   /* sequences of the fullest copy */
    double value[STEP_VALUES_N];
    double left_bytes;           /* capacity - memory; negative: so much is missing */
    double throughput_tok_per_s; /* batch of the request / decode step */
};

/* layouts_each -- call `each` for every layout in order: copies, PP, attention-DP, EP, ranks that share a context.
 * Returns how many; each NULL: counts alone. */
size_t layouts_each(const struct layouts_request *q, void (*each)(void *closure, const struct layout *l),
                    void *closure);

/* layouts_price -- one layout; item->why lives in a. Errors: ERR_NOMEM. Cost: some microseconds. */
enum err_code layouts_price(struct arena *a, const struct layouts_request *q, const struct layout *l,
                            struct layouts_item *out, struct err *e);

/* layouts_list -- all of them, priced: those that fit by falling throughput, then those too large by rising shortfall,
 * then illegal ones in order. Errors: ERR_NOMEM. */
enum err_code layouts_list(struct arena *a, const struct layouts_request *q, struct layouts_item **out, size_t *n,
                           struct err *e);

#endif
