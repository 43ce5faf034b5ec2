/* steady_batches -- static batches: what a batch of so many takes, and batches where others always wait; of
 * steady_parts.h. */
#ifndef RIDGE_SERVE_STEADY_BATCHES_H
#define RIDGE_SERVE_STEADY_BATCHES_H

#include "calc/serve/steady_parts.h"

enum {
    STEADY_BATCH_KNOTS = 48,  /* of requests that wait: 0 .. 8, then by roots of two */
    STEADY_BATCH_ANSWERS = 8, /* parts of the distribution of the longest answer of a batch */
    STEADY_BATCH_PROMPTS = 3, /* and of the longest prompt */
    STEADY_BATCH_SPREADS = STEADY_BATCH_ANSWERS * STEADY_BATCH_PROMPTS,
    STEADY_TURN_PROMPTS = 8,  /* the same, where others always wait */
    STEADY_TURN_ANSWERS = 16, /* not a unit */
    STEADY_TURN_CELLS = STEADY_TURN_PROMPTS * STEADY_TURN_ANSWERS,
    STEADY_TURNS_MAX = 64, /* batches that a client waits for; not a unit */
};

extern const double STEADY_BATCH_ANSWER_PART[STEADY_BATCH_ANSWERS], STEADY_BATCH_PROMPT_PART[STEADY_BATCH_PROMPTS];

/* A batch of so many. */
struct steady_batch {
    double n, prefill_s, decode_s; /* of all its decode steps */
    double all_s;                  /* both */
    double step_s;
    double first_s[STEADY_BATCH_PROMPTS];  /* its prefill, by the longest prompt */
    double spread_s[STEADY_BATCH_SPREADS]; /* both, by the longest answer and prompt */
};

/* Batches of a replica, and the chain of how many wait when one ends. */
struct steady_batches {
    const struct steady_setup *s;
    struct mix x;
    double rate_per_s, most;
    size_t knots;
    double waits[STEADY_BATCH_KNOTS]; /* when a batch ends */
    struct steady_batch batch[STEADY_BATCH_KNOTS];
    double part[STEADY_BATCH_KNOTS]; /* of batch ends */
    double log_below[STEADY_QUANTILES];
};

/* steady_batches_step_s -- of c->x. */
double steady_batches_step_s(struct steady_batches *c);

/* steady_batches_longest -- the longest of n, its mean within each of so many parts of its distribution: below a
 * quantile are all of n with the n-th power of the chance that one is. */
void steady_batches_longest(const double at[STEADY_QUANTILES], const double log_below[STEADY_QUANTILES], double n,
                            const double *part, int parts, double *mean);

/* steady_batches_of -- prompts padded to the longest, then a step for each token of the longest answer but its first.
 */
struct steady_batch steady_batches_of(struct steady_batches *c, double n);

/* steady_batches_most -- the most that fit, on average. */
double steady_batches_most(const struct steady_batches *c, enum steady_limit *by);

/* steady_batches_inverse_more -- E[1 / (output - 1)] as it is, less that of the quantiles: of the shortest answers, of
 * few tokens each. */
double steady_batches_inverse_more(const struct steady_lengths *l);

/* ---- where others always wait ---- */

/* Batches by their longest prompt and answer: N of them in S seconds. */
struct steady_turns {
    double number, seconds; /* E[N], E[S] */
    size_t n;
    struct steady_turn {
        double weight; /* of all batches */
        double number, prompt_tokens, output_tokens, step_s, all_s;
    } turn[STEADY_TURN_CELLS];
};

/* steady_turns_of -- the batches that the cache has room for, `seqs` at most: requests enter one by one until all, as
 * long as the longest, would not fit, and the one that did not is the first of the next, so that it is longer than
 * others are. `most`: about their number. MODEL.md "Steady state". */
void steady_turns_of(struct steady_batches *c, double most, double seqs, struct steady_turns *x);

/* steady_turns_first -- first tokens of n clients, more than a batch has. steady_turns_tokens -- and their tokens:
 * returns what the mean is above that of the histogram. */
void steady_turns_first(struct steady_batches *c, double n, const struct steady_turns *x, struct steady_histogram *h);
double steady_turns_tokens(const struct steady_batches *c, const struct steady_turns *x, struct steady_histogram *h);

/* steady_turns_add_first -- first tokens of a batch of n, by the longest prompt in parts fine enough for a median: at
 * so many seconds before its own. */
void steady_turns_add_first(struct steady_batches *c, struct steady_histogram *h, double n, double before_s);

#endif
