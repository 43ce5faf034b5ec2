/* compare -- variants side by side: what each needs, how many sequences fit, and what a step then takes; private to the
 * command. */
#ifndef RIDGE_CLI_COMPARE_H
#define RIDGE_CLI_COMPARE_H

#include "calc/cli/estimate.h"

/* What is the same for all rows. */
struct compare_request {
    struct estimate_request estimate; /* one batch, one context; models and what_if are those of a row */
    const char *gpu;
    double tpot_s, ttft_s; /* promised; NAN: any time */
};

/* One row to be. */
struct compare_variant {
    const char *label;            /* for people */
    const char *under;            /* the same below a row of its model */
    const char *model, *what_if;  /* what_if NULL: the model as it is */
    const char *says, *source;    /* of the accuracy; NULL nothing */
    size_t typed;                 /* which --what-if of the command line, from 1; 0 none: with several models left out
                                   * where a model cannot be changed so and another can */
    bool optional;                /* of a preset: left out, with a note, where the model cannot be changed so */
    const char *left_out_because; /* NULL: it has a row */
};

/* A row. Strings are borrowed from the case. Weights and memory are per GPU, the cache is the whole model's. Times are
 * of the largest batch that fits, at the full context; NAN in a row that does not fit at the batch asked for. */
struct compare_row {
    const char *variant, *under, *model, *what_if, *hardware, *fidelity, *conventions, *weights, *kv, *attention;
    const char *max_batch_by, *bound_by, *model_hash, *hardware_hash, *says, *source, *notes;
    int64_t gpus, tp, replicas, layers, context, batch, max_batch;
    double total_params, active_params;
    double kv_bytes_per_token, kv_bytes_per_token_full, kv_bytes_per_token_windowed, kv_bytes_per_token_index,
        kv_bytes_per_sequence;
    double state_bytes_per_sequence;
    double weight_bytes, memory_bytes, capacity_bytes;
    bool fits;
    double decode_step_s, user_tok_per_s, throughput_tok_per_s;
    double batch_step_s, batch_throughput_tok_per_s;
    double params_ratio, weights_ratio, kv_ratio, max_batch_ratio, throughput_ratio; /* to the first row */
};

const struct column *compare_columns(size_t *n);

/* compare_open -- the case of a variant. Errors: as estimate_case_open. */
enum err_code compare_open(struct arena *a, const struct compare_request *q, const struct compare_variant *v,
                           struct estimate_case *out, struct err *e);

/* compare_fill -- its row, without ratios. Errors: ERR_NOMEM; ERR_INPUT latencies promised on a device without a known
 * peak rate. */
enum err_code compare_fill(struct arena *a, const struct compare_request *q, const struct compare_variant *v,
                           const struct estimate_case *c, struct compare_row *out, struct err *e);

/* compare_unsplit -- the row of a case that cannot be split so: the whole model's numbers, and no others. Errors:
 * ERR_NOMEM. */
enum err_code compare_unsplit(struct arena *a, const struct compare_request *q, const struct compare_variant *v,
                              const struct estimate_case *c, struct compare_row *out, struct err *e);

/* compare_ratios -- of every row to the first; NAN where either is unknown or the first is 0. */
void compare_ratios(struct compare_row *rows, size_t n);

#endif
