/* steady_parted_run -- what the files of steady_parted.h share. */
#ifndef RIDGE_SERVE_STEADY_PARTED_RUN_H
#define RIDGE_SERVE_STEADY_PARTED_RUN_H

#include "calc/serve/steady_members.h"
#include "calc/serve/steady_parted.h"

struct steady_parted_request {
    double arrival_s, first_s;
    int32_t prompt, steps; /* of an answer, behind its first token */
    int32_t made;          /* tokens before it lost its cache */
    int32_t next;          /* behind it in a queue; -1: none */
};

/* One of the groups. */
struct steady_parted_queue {
    struct steady_members members; /* that decode */
    int64_t decoded;               /* steps */
    int32_t first, last;           /* that waits; -1: none */
    int32_t waiting, taken, from;  /* requests; of this step, the first of them */
    double held, tokens, square;   /* in its cache; prompts of this step, and their squares */
    int64_t load;                  /* as a router sees it */
};

struct steady_parted_run {
    struct steady_replica *r;
    const struct steady_setup *s;
    struct steady_parted_request *request;
    struct steady_parted_queue *queue;
    int32_t *places;                                          /* [requests] of members (steady_members.h) */
    double *scratch;                                          /* [2 * requests] */
    bool waits;                                               /* others always do */
    int64_t groups, requests, there, from, next, ended, turn; /* there: as it begins, the first of the requests */
    double rate_per_s;                                        /* of all groups */
    double cache_tokens, half_block;
    double clock_s;
    struct steady_histogram *ttft, *tpot, *latency; /* NULL: rates alone */
    struct {                                        /* of the part that is looked at */
        double since_s, answers_s, steps, waited_s, waits;
        double decoding_s, square_s, idle_s, own_s, own_steps, decode_s, decode_steps;
    } seen;
};

/* steady_parted_stream -- arrivals and lengths of the requests, and those that are there as the run begins, anywhere in
 * their answers: x->next is the first behind them. */
void steady_parted_stream(struct steady_parted_run *x);

#endif
