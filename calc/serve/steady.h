/* steady -- a service at equilibrium, without simulating it: batch, step time, utilisation, latencies and the rate at
 * which it saturates, from the scheduler of simulate.h, the times of mix.h and the distributions of requests.
 *
 * By Little's law the requests that decode are the rate times the steps each takes times the time of a step, and the
 * time of a step is a function of how many decode, of their contexts and of the prompts computed in it or between:
 *
 *     n = rate * (E[output] - 1) * T(n),   T(n) = 1 / (steps a second), steps and prefill sharing the replica's time
 *
 * The number that decodes fluctuates as in a queue whose servers are shared and whose rate depends on how many there
 * are (insensitive to the lengths' distribution); prompts wait as in a queue of bulk service by the budget of a step.
 * Beyond the saturation rate there is no steady state, and none is given. Derivations: MODEL.md "Steady state".
 * Source: Little, Operations Research 9(3), 1961; Cohen, The multiple phase service network with generalized processor
 * sharing, 1979; Kraemer and Langenbach-Belz, 1976; Pollaczek-Khinchine; Orca, OSDI 2022; Sarathi-Serve, arXiv
 * 2403.02310; DistServe, arXiv 2401.09670. */
#ifndef RIDGE_SERVE_STEADY_H
#define RIDGE_SERVE_STEADY_H

#include "calc/serve/simulate.h"

/* ---- lengths ---- */

/* Requests that are alike. */
struct steady_node {
    double prompt_tokens; /* to compute: what a prefix cache has is not in it; >= 1 */
    double cached_tokens; /* in front of them, found in the cache */
    double output_tokens; /* >= 1; drafted: one and the steps of the others */
    double weight;        /* their part of all; the sum of all is 1 */
    double stride;        /* drafted: tokens that a step of theirs makes; 0: one */
};

/* Quantiles of a distribution, each of a part of it: equal ones, and smaller and smaller ones of the first and the last
 * sixteenth. */
enum { STEADY_QUANTILES = 104 };

/* The distribution of lengths as nodes, by prompt, shortest first; and its moments. */
struct steady_lengths {
    const struct steady_node *node;
    size_t n;
    double prompt_tokens, prompt_square; /* E of those to compute, and of their square */
    double cached_tokens;
    double output_tokens;
    double steps, steps_square; /* E[output - 1], and of its square */
    double single_frac;         /* of requests with one token of output: they have no TPOT */
    double inverse;             /* E[1 / (output - 1)] of the others */
    double prompt_at[STEADY_QUANTILES], output_at[STEADY_QUANTILES]; /* prompts with what is cached */
    struct {
        double answer_tokens; /* E[tokens of an answer] */
        double inverse;       /* E[1 / stride] of requests with several */
        double step_cv2;      /* of the tokens of a step: variance over square of the mean */
    } drafted;                /* 0: not */
    double longest_tokens;    /* most of prompt, cached and output of a request, where known from requests; else of
                                 a node */
};

/* steady_lengths_of -- of independent prompts and outputs as a workload draws them; hit_frac of each prompt, in [0, 1),
 * is found in a prefix cache. Errors: ERR_RANGE, ERR_NOMEM. Cost: some 10^4 quantiles. */
enum err_code steady_lengths_of(struct arena *a, const struct workload_length *prompt,
                                const struct workload_length *output, double hit_frac, struct steady_lengths *out,
                                struct err *e);

/* steady_lengths_of_work -- of the requests of a workload (a trace, or a made one), conversations' turns each by
 * itself; samples of a prompt are not known here. Errors: ERR_RANGE, ERR_NOMEM. Cost: O(n log n). */
enum err_code steady_lengths_of_work(struct arena *a, const struct workload *w, double hit_frac,
                                     struct steady_lengths *out, struct err *e);

/* steady_lengths_judged -- as steps that judge drafted tokens make them. A step makes Y tokens, of mean k
 * (speculate_mean) and mean square q (speculate_square), so that the m tokens behind the first take
 *     E[steps] = (m + (q/k - 1)/2) / k, at least one
 * by renewal: what the last step makes beyond m is (q/k - 1)/2 on average (Feller, vol. II, XI.4; the lattice's half
 * token out of it). Errors: ERR_RANGE no such numbers, as where the acceptance says nothing about them; ERR_NOMEM. */
enum err_code steady_lengths_judged(struct arena *a, const struct steady_lengths *l, double k, double square,
                                    struct steady_lengths *out, struct err *e);

/* steady_quantile -- the place of the i-th quantile, in (0, 1), and the part it stands for. */
double steady_quantile(size_t i, double *part);

/* ---- question ---- */

enum steady_load { STEADY_OPEN, STEADY_CLOSED, STEADY_OFFLINE };

/* What steady_solve keeps between questions: step times already asked for. */
struct steady_times;

/* Replicas that only decode: caches come over a link from those that prefill. */
struct steady_decode {
    struct mix_plan *plan;
    struct calibrated *calibrated; /* NULL: floors */
    struct engine_case *server;    /* steps as its engine takes them, plan being its bound; NULL none */
    bool overlapped;               /* its host works beside the device */
    double overhead_s;
    int64_t max_seqs, blocks, block_tokens;
    int64_t replicas;
    double kv_bytes_per_token;  /* that cross, of all ranks */
    double link_bytes_per_s;    /* of a prefill replica; infinite: none to wait for */
    double link_latency_s;      /* of a transfer */
    struct steady_times *times; /* of those that decode (steady_pools_times_open); NULL: none are kept */
};

struct steady_setup {
    struct mix_plan *plan;
    struct calibrated *calibrated; /* NULL: floors */
    struct engine_case *server;    /* steps as its engine takes them, plan being its bound; NULL none */
    bool overlapped;               /* its host works beside the device */
    double overhead_s;
    double slower; /* a step takes so many times what is predicted, >= 1; 0: once. Overheads, links, thinking and the
                      rate are as they are */
    enum simulate_policy policy;
    int64_t budget_tokens, max_seqs;
    int64_t blocks, block_tokens;
    int64_t groups; /* attention groups that step together, limits being those of all of them: each has a queue, a
                       batch and a cache of its own (static batches, two pools: spread over them); 0, 1: one */
    bool slowest;   /* of a plan in stages: a step takes what its slowest stage takes, as that of one of as many batches
                       as there are stages; else all of them, one after another */
    double watermark_frac;
    int64_t replicas;          /* the rate, or the clients, are split evenly */
    enum simulate_route route; /* open, of several: what each of them has of the arrivals; by prefixes: by chance */
    const struct steady_lengths *lengths;
    enum steady_load load;
    double rate_per_s;  /* open: > 0, of all replicas */
    double arrival_cv2; /* open: squared coefficient of variation of the gaps; Poisson 1 */
    double concurrency; /* closed: clients, > 0, of all replicas */
    double think_s;     /* closed: from an answer to the next request */
    double front_s;     /* closed, of a server: so long a client waits beside the engine (engine_first_s); 0 none */
    double requests;    /* offline: all at once, of all replicas; closed: of a run, 0: not said */
    double ttft_limit_s, tpot_limit_s; /* goodput counts requests within both; NAN: any */
    struct simulate_draft draft;       /* judged in passes of plan; lengths: of steady_lengths_judged */
    const struct steady_decode
        *decode;                /* disaggregated: the other members are of the prefill replicas; NULL: together */
    struct steady_times *times; /* NULL: none are kept */
};

/* steady_times_piece -- the largest piece of a prompt in a step; infinite: prompts are computed whole. */
double steady_times_piece(const struct steady_setup *s);

/* steady_times_open -- for questions of the same plan, calibrated, server, overhead (over slower), policy, groups,
 * slowest, budget, lengths, load and, of several, replicas and route; s->times, of another budget and of
 * all else the same (NULL: none), have what they know in common. steady_pools_times_open -- of two pools, s->times and
 * s->decode->times likewise, for questions of the same of both and of the same max_seqs. Errors: ERR_NOMEM. */
enum err_code steady_times_open(struct arena *a, const struct steady_setup *s, struct steady_times **out,
                                struct err *e);
enum err_code steady_pools_times_open(struct arena *a, const struct steady_setup *s, struct steady_times **prefill,
                                      struct steady_times **decode, struct err *e);

/* ---- answer ---- */

enum steady_limit {
    STEADY_COMPUTE,  /* steps: a full one is not fast enough */
    STEADY_SEQS,     /* max_seqs */
    STEADY_BLOCKS,   /* the cache */
    STEADY_TRANSFER, /* the link between prefill and decode */
};

struct steady_spread {
    double mean, p50, p90, p95, p99;
};

/* NAN: there is none, as the service is saturated (saturated, by, saturation_rate_per_s and the memory limit are always
 * set). */
struct steady_result {
    bool saturated;               /* open: the rate is at or above saturation; closed, offline: a queue for places */
    enum steady_limit by;         /* what limits the saturation rate */
    double saturation_rate_per_s; /* of all replicas; closed, offline: of requests that begin together */
    double rate_per_s;            /* requests answered a second */
    double batch;                 /* sequences of a replica in its steps, over busy time */
    double decoding;              /* of a replica, over all time */
    double waiting;               /* of a replica, on average */
    double utilisation;           /* part of time that a replica is in a step */
    double blocks_frac;           /* of the cache in use, over busy time */
    double step_s;                /* a token of a sequence that decodes takes so long; drafted: a step of it */
    double prefill_frac;          /* of steps that compute prompts */
    double input_tok_per_s, output_tok_per_s; /* of all replicas; input: prompts, cached or not */
    struct steady_spread ttft_s, tpot_s, latency_s;
    double move_s; /* disaggregated: from the first token until the cache is where it decodes (simulate_move_s): the
                          rest of the step there that runs, in which it is not asked for, the link, the way */
    double goodput_per_s;                    /* requests within both limits */
    double good_frac;                        /* of requests */
    double span_s;                           /* offline: from the first step to the last answer */
    double decode_batch, decode_utilisation; /* disaggregated: of a replica that decodes */
};

/* steady_solve -- Errors: ERR_RANGE a member outside its domain, a request longer than the cache; ERR_INPUT no peak
 * rate of the device is known; ERR_NOMEM. Cost: some 50 to 150 step times and .1 to .5 ms
 * the first time, .1 to .25 ms with times kept, nothing where it is saturated; static 1.5 ms; of
 * attention groups .5 to 1 ms. */
enum err_code steady_solve(struct arena *a, const struct steady_setup *s, struct steady_result *out, struct err *e);

/* steady_front -- the times of a server's clients, as simulate_front has them of one run: TTFT and end-to-end times
 * rise by engine_first_s of the mean prompt. */
void steady_front(double prompt_tokens, struct steady_result *r);

/* steady_again_of -- prompt tokens that preempted sequences compute anew, of those of the requests, where a cache is
 * full and requests always wait: exp(-kept * spread) * E[output - 1] / E[prompt], `kept` the answers that are expected
 * to end before blocks that are kept for those that decode are used, >= 0. MODEL.md "Steady state". */
double steady_again_of(const struct steady_lengths *l, double kept);

/* steady_vain_of -- prompt tokens that first pieces compute in vain, of those of the requests, where a cache is full:
 * a prompt longer than a step's room enters with a piece, and leaves again where its rest has no place, every other
 * step until one of n answers ends: (1/2) E[max(P - room, 0)]/E[P] * (room/E[P]) / (exp(2 n/E[output - 1]) - 1).
 * MODEL.md "Steady state". */
double steady_vain_of(const struct steady_lengths *l, double room_tokens, double n);

/* steady_rest_of -- and those that a prompt's first piece computes in vain behind one that a step has room for, in what
 * that one leaves of it, x = room - P of the next one's P': E[x (1 - x/P')^2; 0 < x < P']/E[P], where answers of n do
 * not end in bunches and what takes their places does not fill the steps. MODEL.md "Steady state". */
double steady_rest_of(const struct steady_lengths *l, double room_tokens, double n);

/* steady_limit_name -- "compute", "max_seqs", "cache", "transfer". */
const char *steady_limit_name(enum steady_limit by);

#endif
