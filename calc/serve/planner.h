/* planner -- which GPUs, how many, laid out how, at which precision, batch and chunk, to serve traffic within promised
 * latencies at the lowest cost; and why everything else fails.
 *
 * A candidate is a device, formats of weights and cache, a layout (TP, PP, attention-DP, EP, copies), the most tokens
 * of a step and the most sequences of a copy. Every candidate gets a verdict with a number, most by closed forms that
 * no engine can beat: memory      weights + what an engine reserves + one longest sequence, against the part of the
 * device it may take TPOT, TTFT  one decode step alone, and one prompt alone, at the bound (calc/time/step.h), against
 * the promise rate        copies * bound on the requests a second that one serves, against the traffic The rest is
 * solved in the steady state (planner_point.h) in the order of cost, so that what would cost more than a plan that
 * keeps every promise is not solved at all. Nothing is kept but counts, the nearest miss of each kind, and the best
 * plan of each device and precision. Derivation: MODEL.md "Planner". */
#ifndef RIDGE_SERVE_PLANNER_H
#define RIDGE_SERVE_PLANNER_H

#include "calc/fit/calibrated.h"
#include "calc/serve/price.h"
#include "calc/serve/steady.h"

enum planner_fidelity { PLANNER_BOUND, PLANNER_ROOFLINE, PLANNER_CALIBRATED };

/* What is asked of the plan: latencies at a rate; tokens a day, whatever the latency; a number of requests by a
 * deadline. */
enum planner_aim { PLANNER_SERVE, PLANNER_DAILY, PLANNER_JOB };

/* ---- traffic ---- */

/* Requests as the planner sees them: moments and order statistics of a workload. */
struct planner_traffic {
    double rate_per_s;                   /* of requests; > 0 */
    double prompt_tokens, output_tokens; /* means */
    double prompt_cv2;                   /* variance over mean squared */
    double context_tokens;  /* that a decode step attends to, averaged over steps: E[out*(in + (out+1)/2)]/E[out] */
    double residual_tokens; /* left of an answer at a random step: E[out*(out+1)]/(2*E[out]) */
    double arrival_cv2;     /* of gaps; 1 Poisson */
    int64_t longest_tokens; /* prompt and answer of the longest */
    const double *prompts, *outputs; /* sorted, n of each */
    size_t n;
    struct steady_lengths lengths;
    double asked_tokens; /* of a prompt, what a cache has of it included; else prompt_tokens */
    double found_frac;   /* of the prompts' tokens, that an endless prefix cache finds; 0 */
};

/* planner_traffic_of -- of the requests of a workload. rate NAN: that of its arrivals. Errors: ERR_USAGE it has no
 * times and no rate was given; ERR_NOMEM. Cost: O(n log n). */
enum err_code planner_traffic_of(struct arena *a, const struct workload *w, double rate_per_s,
                                 struct planner_traffic *out, struct err *e);

/* planner_traffic_cached -- the same where prefixes are cached, in blocks of so many tokens: prompts are what an
 * endless cache, of which all copies are one, leaves to compute, which no cache undercuts, so that bounds stay bounds;
 * contexts and the longest are whole. Errors: as planner_traffic_of. Cost: O(blocks of all requests). */
enum err_code planner_traffic_cached(struct arena *a, const struct workload *w, double rate_per_s, int64_t block_tokens,
                                     struct planner_traffic *out, struct err *e);

/* planner_quantile -- the smallest of n sorted values that at least p of them do not exceed. */
double planner_quantile(const double *sorted, size_t n, double p);

/* ---- question ---- */

/* A promise: the value that a part `frac` of requests keep; NAN: none. */
struct planner_promise {
    double s, frac;
};

struct planner_device {
    const struct hw *hw;
    struct price price;
    int64_t most;     /* GPUs of it to be had, >= 1 */
    int64_t per_node; /* of them in a node, >= 1 */
    struct timed_latency latency;
    struct offload offload;  /* weights of the model at the host */
    double host_bytes_per_s; /* between a GPU and its host, one direction; NAN unknown */
    const char *efficiency; /* calibrated: parameters of kernels that come first, a name or path; NULL: built-in ones */
};

/* A precision: the model stored so. */
struct planner_format {
    const struct model *model;
    const char *weights, *kv; /* names; NULL: as stored */
};

/* A draft that may stand beside the model: candidates with it and without. */
struct planner_drafting {
    const struct model *model;
    struct speculate_accept accept;
    bool bonus, one_pass; /* speculate.h */
    bool prompts;         /* it has a cache of its own, and computes prompts too */
    const int64_t *gamma; /* drafted in a row, each >= 1 and known to the acceptance; of a tree its depth alone */
    size_t gamma_n;
    const struct speculate_shape *shape; /* a tree, judged whole; NULL: chains */
};

/* How many requests come in each of n equal stretches of time, at a mean rate; n 0: at one rate. */
struct planner_flow {
    const double *requests;
    size_t n;
    double bin_s, rate_per_s;
};

/* planner_flow_of -- of made requests whose rate changes in time (workload_period_s): of a sine what a whole period
 * brings, whatever was drawn, of bursts those that were; n 0 where it does not change. Errors: ERR_NOMEM. Cost:
 * O(requests). */
enum err_code planner_flow_of(struct arena *a, const struct workload_spec *spec, const struct workload *w,
                              struct planner_flow *out, struct err *e);

/* Of simulated requests, in the order of their arrivals, those that percentiles are of: not those that come while the
 * copies fill, nor the last, behind which they empty. end 0: all. */
struct planner_window {
    size_t first, end;
};

struct planner_request {
    struct planner_flow flow;
    struct planner_window judged;
    const struct planner_drafting *drafting; /* NULL: none */
    bool pools;                              /* also copies that prefill and others that decode */
    bool prefix_cache;                       /* of each copy, when it is simulated; traffic of planner_traffic_cached */
    double tier_bytes;                       /* of it, at the host of a copy, all its ranks together; 0 none */
    const struct planner_device *device;
    size_t devices_n;
    const struct planner_format *format;
    size_t formats_n;
    struct planner_traffic traffic;
    enum planner_aim aim;
    struct planner_promise ttft, tpot;
    double requests, deadline_s; /* of a job */
    struct layout like;          /* numbers that are not 0 are kept; dispatch and skew of all; dcp 0: 1 */
    bool any_context;            /* dcp: every number of ranks that can share a context */
    const int64_t *step_tokens;  /* most tokens of a step, each >= 1 */
    size_t step_tokens_n;
    const int64_t *seqs; /* most sequences of an attention group of a copy, each >= 1, rising */
    size_t seqs_n;
    bool held_seqs; /* and between them what the cache of a layout holds (planner_held) */
    enum planner_fidelity fidelity;
    bool p90;                    /* calibrated: times are the P90 of the band, not its median */
    const char *framework;       /* calibrated; NULL: of the device */
    const struct engine *server; /* calibrated: steps as its engine takes them, and the band of what it serves; NULL:
                                    of kernels */
    bool overlapped;             /* its host works beside the device */
    double utilization_frac;     /* of the device's memory that an engine takes; NAN: the engine's default */
    const char *(*refuse)(void *closure, const struct layout *l); /* why an engine does not run it; NULL: it does */
    void *closure;
    bool (*progress)(void *closure, size_t done, size_t all); /* of a search, now and then; false: stop; NULL */
    void *watching;
    double near; /* what is late on paper by no more than so much of its margin (planner_margin_of) meets; 0: none */
    bool exhaustive; /* solve every candidate that is legal: what pruning must agree with */
};

/* ---- answer ---- */

enum planner_verdict {
    PLANNER_MEETS,
    PLANNER_DEARER,    /* its cost alone is above that of a plan of the same device and precision that meets all */
    PLANNER_LATE_TTFT, /* beyond the promise in the steady state */
    PLANNER_LATE_TPOT,
    PLANNER_LATE_JOB,  /* after the deadline */
    PLANNER_SATURATED, /* more comes in than it serves: no steady state */
    PLANNER_SLOW_TTFT, /* one prompt alone takes longer than the promise: no batch or copy changes that */
    PLANNER_SLOW_TPOT, /* one decode step alone does */
    PLANNER_SHORT,     /* of memory */
    PLANNER_ILLEGAL,   /* does not divide, or no link is known */
    PLANNER_VERDICTS
};

/* What one copy does in the steady state. NAN: none, or not asked. */
struct planner_point {
    double saturation_per_s; /* requests a second beyond which queues grow */
    double batch;            /* sequences in flight, mean over all time: rate times what each is there (Little) */
    double step_s;           /* decode step at it, nothing prefilled beside */
    double ttft_s, tpot_s;   /* at the parts promised (0.95 without) */
    double ttft_mean_s, tpot_mean_s;
    double busy_frac;                           /* of the time, in steps */
    double prefill_frac, decode_frac;           /* of the time: the busy part, by what prompts and answers take alone */
    double compute_s, memory_s, link_s, host_s; /* floors of a decode step by resource; host: weights from there */
    double move_s;     /* two pools: from the first token until the cache is where it decodes (steady.h); 0 */
    double makespan_s; /* of a job, on all copies */
    double tail_s;     /* of it, after the last request was taken up */
};

struct planner_plan {
    size_t device, format; /* of the request */
    struct layout layout;  /* whole */
    int64_t gpus, step_tokens, seqs;
    int64_t gamma;   /* tokens drafted in a row; 0: no draft */
    int64_t prefill; /* of the copies, those that prefill alone, the others decode; 0: all do both */
    enum planner_verdict verdict;
    enum planner_verdict paper; /* of a solved one the verdict without margins, whatever a simulation said */
    const char *why;            /* of an illegal one */
    double miss; /* of a failing one: bytes that are missing, or value over promise, or rate over saturation */
    double floor_tpot_s, floor_ttft_s;         /* of a step, and of a prompt, alone: nothing is faster */
    const char *floor_tpot_by, *floor_ttft_by; /* "memory bandwidth", "compute" or "link" */
    double value_s;                            /* late or slow: the time that is over the promise */
    double weight_bytes, tower_bytes, reserve_bytes, pool_bytes,
        sequence_bytes; /* per GPU; of a sequence at the mean context */
    double batch_most;  /* sequences of a copy that memory and seqs allow */
    bool memory_binds;  /* memory, not seqs */
    bool estimated;     /* calibrated, but the layout by the ratio of another one's floors */
    double slower;      /* times what is predicted every step takes at the band; estimated: its floors; 0: not solved */
    double rate_per_s;  /* of one copy */
    struct planner_point point;
    struct price_cost cost;
};

/* Of one device: how many candidates ended so, and the nearest miss. */
struct planner_tally {
    size_t n;
    bool known; /* nearest */
    struct planner_plan nearest;
};

struct planner_result {
    size_t candidates, solved; /* all; those that no bound answered */
    struct planner_plan
        *best; /* of each device and precision, with a draft, in two pools, with both, and without, cheapest first */
    size_t best_n;
    struct planner_tally (*tally)[PLANNER_VERDICTS]; /* [devices_n] */
    const char *note;                                /* of calibrated times, a sentence; NULL */
};

/* planner_search -- Errors: ERR_STOPPED progress said to stop; ERR_RANGE a number outside its domain; ERR_USAGE,
 * ERR_INPUT a device without a peak rate or of a kind that nothing measured is of; ERR_NOMEM. Cost: some microseconds
 * for each legal layout, some ten to a hundred for each solved candidate. */
enum err_code planner_search(struct arena *a, const struct planner_request *q, struct planner_result *out,
                             struct err *e);

/* What a percentile on paper may be above its promise, and the rate above saturation, as times of it, while the
 * simulator may keep it. */
struct planner_margin {
    double ttft, tpot, rate;
};

/* planner_margin_of -- of a plan, whatever it promises: by the scheduler's policy, and by whether there are copies
 * behind a router, of which paper knows that it evens numbers out but not all that follows; of saturation none where a
 * run would not tell (planner_tells). {1, 1, 1} of what is not simulated, and of two pools, of which paper is too good
 * already. */
struct planner_margin planner_margin_of(const struct planner_request *q, const struct planner_plan *plan);

/* planner_near_part -- of a solved plan, how much of its margin the promise takes that it misses by most: 0 none is
 * missed, above 1 beyond it, infinite where no margin helps (a job, not simulated, saturated where a run would not
 * tell). */
double planner_near_part(const struct planner_request *q, const struct planner_plan *plan);

/* planner_near_cheapest -- the cheapest plan that misses on paper by no more than such a part of its margin, (0, 1],
 * and costs less than so many dollars an hour (NAN: any); floors forbid as ever. Errors: as
 * planner_search. Cost: a search over the GPUs that cost less. */
enum err_code planner_near_cheapest(struct arena *a, const struct planner_request *q, double part_of_margin,
                                    double below_usd_per_h, struct planner_plan *out, bool *found, struct err *e);

/* planner_floods -- whether a solved plan that takes the mean of a flow breaks the promise of TTFT at its heights: what
 * comes beyond saturation waits, behind as many as a copy may hold, until less comes. A tenth more than the steady
 * state's saturation is served, and no prompt takes time, so what floods here floods when it is simulated. False of two
 * pools, and without a flow or a promise of TTFT. Cost: O(flow.n). Derivation: MODEL.md "Planner". */
bool planner_floods(const struct planner_request *q, const struct planner_plan *plan);

/* planner_order -- which of two plans is better: cheaper (a job: in all; fewer GPUs where a price is not known), with
 * `near` nearer to what is promised on paper, fewer GPUs, more that it can take, shorter TPOT, fewer copies, smaller
 * batch and step; < 0: a. A total order of different plans. */
int planner_order(const struct planner_request *q, const struct planner_plan *a, const struct planner_plan *b);

/* planner_verdict_name -- "meets", "dearer", "late-ttft", ... */
const char *planner_verdict_name(enum planner_verdict v);

/* How far the traffic of a plan may rise. */
struct planner_headroom {
    double rate_per_s;           /* of all copies, that still meets every promise */
    enum planner_verdict breaks; /* what does not at the next one */
    const char *binds;           /* "compute", "memory bandwidth", "link", "host link", "memory", "batch cap" */
    bool larger_cap;             /* the batch cap binds, and a larger one of the candidates takes more */
    size_t simulations;          /* that found it; 0: the steady state did */
    double within_frac;          /* simulated: it breaks at a rate so much higher at most; infinite: none was found */
};

/* planner_headroom -- bisection over solves (planner_headroom_simulated: over simulations). Errors: as planner_search.
 */
enum err_code planner_headroom(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                               struct planner_headroom *out, struct err *e);

/* What a draft does for a plan. */
struct planner_paying {
    int64_t gamma;            /* of the plan; of one without: the number that makes its TPOT shortest */
    double with_s, without_s; /* mean TPOT at the plan's rate; NAN: saturated */
    double most_with_per_s, most_without_per_s; /* saturation of all copies */
    double until_per_s; /* of all copies: up to here TPOT is shorter with it; 0: never; infinite: as long as the plan
                           without it serves at all */
};

/* planner_made -- tokens that a step of a sequence makes on average, with gamma drafted in a row, or the tree; 1 with
 * gamma 0. */
double planner_made(const struct planner_request *q, int64_t gamma);

/* planner_judged -- tokens of a sequence in a step: gamma, and one with the bonus, or those of the tree; 1 without a
 * draft. */
int64_t planner_judged(const struct planner_request *q, int64_t gamma);

/* Of a GPU, between pools on so many GPUs: what joins them all, or the fabric. rate NAN: not known. */
struct planner_link {
    double bytes_per_s, latency_s;
};
struct planner_link planner_link_of(const struct planner_request *q, size_t device, int64_t gpus);

/* planner_pays -- a plan with its draft and without, whatever the promises. Errors: as planner_search; ERR_RANGE no
 * draft is known. Cost: some 20 solves. */
enum err_code planner_pays(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                           struct planner_paying *out, struct err *e);

/* planner_at -- one plan (device, format, layout, step_tokens, seqs, gamma, prefill) solved at the request's traffic:
 * all of its numbers and its verdict. Errors: as planner_search. */
enum err_code planner_at(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                         struct planner_plan *out, struct err *e);

/* planner_sweep -- the same plan solved at n rates of one copy: out[i] is what planner_at answers at rate_per_s[i] > 0
 * of requests a second of each copy; at and beyond saturation its verdict is PLANNER_SATURATED. Errors: as
 * planner_search. */
enum err_code planner_sweep(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                            const double *rate_per_s, size_t n, struct planner_plan *out, struct err *e);

#endif
