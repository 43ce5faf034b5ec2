/* simulate -- requests through the scheduler of an inference engine, step by step: when each gets its first token and
 * its last.
 *
 * A replica has a queue, a batch and a cache. It goes from step to step; what a step holds is decided when it begins:
 *   static       a batch of whoever waits, padded to the longest prompt, until its longest answer is done
 *   fcfs         prompts first: those that wait and fit are prefilled in a step of their own, else all decode
 *                (vLLM V0, Orca with paging)
 *   chunked      a budget of tokens a step: those that decode take one each, pieces of prompts what is left (vLLM V1,
 *                Sarathi-Serve)
 * When the cache is full the request that came last loses its blocks: it is computed anew later (preemption by
 * recompute), or its blocks go to the host over PCIe and come back (by swap, where the host has room). Replicas may be
 * of two pools, one that prefills and one that decodes, with a link between them. Steps are timed by calc/time/mix.h
 * from the step's real shapes, by calibrated_mix_eval, or as those of a server (engine.h). Attention groups have a
 * queue, a batch and a cache each, to which requests are routed as to replicas, and step together: a step is as long as
 * the group that has most to do takes (simulate_parted). In static batches and two pools sequences are spread over them
 * evenly, a prompt's piece is of one, and the busiest is the step (mix_share).
 *
 * A replica of several stages (the plan's layout) has as many batches under way, each sequence in one of them: when
 * the oldest ends, the next is made up of who is in none, and begins. A stage works on a batch when the stage before
 * has handed it on and it is done with the batch before; the draft's passes are the last one's.
 *
 * A run of steps in which nothing but lengths changes is priced at once: floors are sums of maxima of linear functions
 * of the contexts, so convex along the run, and a convex function that is linear at three points is linear between
 * them. Derivations: MODEL.md "Simulation". Source: Orca, OSDI 2022; PagedAttention, arXiv 2309.06180; Sarathi-Serve,
 * arXiv 2403.02310; vLLM v1/core/sched/scheduler.py. */
#ifndef RIDGE_SERVE_SIMULATE_H
#define RIDGE_SERVE_SIMULATE_H

#include "calc/fit/calibrated.h"
#include "calc/serve/engine.h"
#include "calc/serve/workload.h"
#include "calc/time/speculate.h"

enum simulate_policy { SIMULATE_STATIC, SIMULATE_FCFS, SIMULATE_CHUNKED };
enum simulate_route { SIMULATE_ROUND_ROBIN, SIMULATE_LEAST_LOADED, SIMULATE_PREFIX };

/* Paged; or, the old way, a contiguous region a sequence, reserved when it enters: of max_len_tokens, of the prompt and
 * the next power of two of the answer, or of just what it will need. */
enum simulate_memory { SIMULATE_PAGED, SIMULATE_REGION_MAX, SIMULATE_REGION_POW2, SIMULATE_REGION_EXACT };

enum simulate_preemption { SIMULATE_RECOMPUTE, SIMULATE_SWAP };

/* Where blocks go that a sequence loses. Bytes are of a GPU, as are those of a block: all ranks copy their own at once.
 * Blocks are copied before the step that follows, out and in one after another (vLLM V0's swap_out, swap_in). */
struct simulate_swap {
    double bytes_per_s; /* > 0, one direction; NAN unknown: what swapping would take is not told */
    double host_bytes;  /* room there; >= 0 */
    double block_bytes; /* > 0 */
};

/* A second tier of the prefix cache, at the host of each replica: what gets a name on the device is copied there at
 * once, beside the steps (write through), and kept while it is among the `blocks` most recently used. A prompt takes
 * from the device what that has, and what follows from the host: its blocks are loaded, one prompt after the other, and
 * it is computed from the step that begins when they are there; with prompts first (fcfs) the step waits for them.
 * Bytes are of a GPU. */
struct simulate_tier {
    int64_t blocks;                  /* 0: none */
    double bytes_per_s, block_bytes; /* > 0; to the device, one direction */
};

/* Replicas that only prefill, and the way of caches from them to those that decode. A prompt's cache waits where it was
 * computed until the other side has room for it and the link of its replica, one transfer after another, is free; then
 * room is taken on the other side, and given back on this when all is there. Its sequence decodes from the next step
 * on. A cache that is lost there is computed anew there.
 *   whole      the transfer begins when the prompt is computed
 *   by layer   each layer's cache is sent when it is computed, so that of a transfer of t seconds what remains to be
 *              waited for is t/layers at least, if the other side had room when the prompt was done */
struct simulate_pools {
    int64_t prefill;         /* the first so many of the replicas; 0: all do both */
    double link_bytes_per_s; /* out of a rank, whose part of the cache is what mix_eval says; > 0; may be infinite */
    double link_latency_s;   /* of a transfer; >= 0 */
    int64_t layers;          /* by layer: how many; 0: whole */
};

/* Drafts: in every step each sequence that decodes has gamma tokens drafted and judges them, gamma + 1 tokens in the
 * plan's pass with the bonus, gamma without (speculate.h); of a tree its nodes. It goes on by those that are kept up to
 * the first refusal, of a tree down one path, and one more; drawn for each by itself from the seed, the request and the
 * token, whatever else is in the step. Blocks are taken for all of them before it is known which stay. */
struct simulate_draft {
    const struct speculate_setup *of; /* the draft's steps, acceptance, bonus; NULL: no draft */
    int64_t gamma;                    /* >= 1; of a tree its depth */
    bool prompts;                     /* it has a cache of its own, and computes prompts too, all of a step together */
    double kv_bytes_per_token;        /* of that, of a GPU, which crosses too between two pools; >= 0 */
    uint64_t seed;
};

enum { SIMULATE_REPLICAS_MAX = 1024 /* not a unit */ };

/* A step, or a run of equal ones. */
struct simulate_step {
    int64_t replica, steps;
    double start_s, end_s;
    int64_t decoding, prefilling, prefill_tokens; /* sequences and tokens of each step */
    int64_t running, waiting;                     /* sequences in the batch, requests in the queue */
    int64_t blocks, stored_tokens;                /* in use at the end; tokens that several sequences share once */
};

struct simulate_setup {
    const struct workload *work;
    struct mix_plan *plan;
    struct calibrated *calibrated; /* NULL: floors */
    struct engine_case *server;    /* steps as its engine takes them, plan being its bound; NULL none */
    bool overlapped;               /* its host works beside the device */
    bool fronted;      /* a server's clients, who ask again when they have what simulate_front makes later */
    int64_t groups;    /* attention groups of a replica, in step with each other; 0: one */
    double overhead_s; /* of an engine, added to every step; >= 0 */
    double slower;     /* a step takes so many times what is predicted, >= 1; 0: once */
    enum simulate_policy policy;
    int64_t budget_tokens; /* most tokens of a step, all groups together (static: unread) */
    int64_t max_seqs;      /* most sequences of a step, likewise */
    enum simulate_memory memory;
    int64_t blocks, block_tokens; /* of a replica */
    int64_t max_len_tokens;       /* of a sequence; longer requests are refused */
    double watermark_frac;        /* of the blocks, kept idle when a request enters (vLLM V0: .01; V1: 0) */
    bool prefix_cache;
    struct simulate_tier tier;
    int64_t replicas; /* of both pools, where there are two */
    enum simulate_route route;
    struct simulate_pools pools;
    enum simulate_preemption preemption;
    struct simulate_swap swap;
    struct simulate_draft draft;
    bool (*progress)(void *closure, size_t finished, size_t all); /* false: stop here; NULL */
    const struct simulate_record **look; /* where the records are while it runs; NULL: nobody looks */
    void (*step)(void *closure, const struct simulate_step *s); /* NULL */
    void *closure;
};

/* A request; NAN: not reached. */
struct simulate_record {
    double arrival_s, start_s, first_s, finish_s; /* start: of the step that computes it first */
    double moved_s;                               /* two pools: when its cache is where it decodes */
    int32_t prompt_tokens, output_tokens;
    int32_t cached_tokens, loaded_tokens;   /* when it entered first: of its prompt; of those, from the host's tier */
    uint16_t preemptions, replica, decoder; /* decoder: two pools, the replica that decodes it */
};

/* Replicas of one pool; without two, all. */
struct simulate_pool {
    int64_t replicas, steps, most_running, preemptions;
    double busy_s, mean_running, block_frac; /* as in the result */
};

/* What it took in all. */
struct simulate_result {
    struct simulate_record *record; /* in the order of the workload */
    size_t n, finished, refused;    /* refused: longer than the cache or max_len_tokens */
    bool partial;                   /* stopped by progress */
    double span_s;                  /* from the first arrival to the last answer */
    double busy_s;                  /* of all replicas, in steps */
    int64_t steps, preemptions, copies, evictions, most_running, most_blocks;
    int64_t held_blocks; /* at the end, of paged caches; of one pool 0 unless it was stopped */
    /* of the answered requests; computed: of all prompts, recomputes included; cached and loaded: when they entered
     * first, not again after a preemption */
    double prompt_tokens, computed_tokens, cached_tokens, output_tokens;
    double mean_running; /* over busy time of a replica */
    double useful_frac;  /* stored tokens, shared ones once, over tokens in blocks or regions in use, over busy time */
    double block_frac;   /* blocks in use over all, over busy time */
    bool growing;        /* arrivals outran the service: no steady state, and times are of this span alone */
    size_t waiting_half, waiting_last; /* in queues when half of the arrivals, and all of them, had come */
    struct simulate_pool pool[2];      /* prefill and decode; the second empty where there is one */
    int64_t transfers;
    double transfer_bytes, link_busy_s;              /* of a rank; seconds that links were in use, of all */
    int64_t swaps, swapped_back;                     /* preemptions by swap, and those that came back */
    double swapped_bytes, copied_s;                  /* of a GPU, both ways; seconds that steps waited for them */
    double loaded_tokens, loaded_bytes, load_wait_s; /* from the host's tier: of cached_tokens; of a GPU, and seconds
                                                        that prompts waited, of all loads, those again included */
    double hosted_bytes;                             /* copied there, of a GPU */
    int64_t loads, tier_evictions;                   /* prompts that took some; blocks that were overwritten there */
    double judged, kept_tokens, judged_tokens; /* drafts: steps of a sequence, drafted tokens they keep, tokens they
                                                  make, those beyond an answer's end too */
    double draft_s;                            /* of busy time, in the draft */
    double bubble_frac; /* stages: part of their time in which they wait while any batch is under way; NAN of one */
    double swap_would_s, recompute_would_s; /* all preemptions by the one, both ways, and by the other, each in a step
                                               of its own; NAN: no rate is known */
};

/* simulate_parted -- whether the attention groups of a setup have queues of their own: there are several, batches are
 * not static, and there is one pool. */
static inline bool simulate_parted(const struct simulate_setup *s)
{
    return s->groups > 1 && s->policy != SIMULATE_STATIC && s->pools.prefill == 0;
}

/* simulate_check -- whether a setup can be run. Errors: as simulate_run. */
enum err_code simulate_check(const struct simulate_setup *s, struct err *e);

/* simulate_run -- the workload from its first arrival to the last answer. Errors: ERR_RANGE a setting outside its
 * domain, ERR_NOMEM. Cost: some microseconds for each run of steps; about 120 bytes for each request. */
enum err_code simulate_run(struct arena *a, const struct simulate_setup *s, struct simulate_result *out, struct err *e);

/* simulate_front -- the times of a server's clients: every first token, and all after it, comes engine_first_s of its
 * request's prompt later than the engine has it; between tokens nothing changes. Once for a result, of a setup that is
 * `fronted` where requests follow on answers: else clients ask again before they have theirs, and Little's law is
 * broken. simulate_front_s -- of one record. */
void simulate_front(struct simulate_result *r);
double simulate_front_s(const struct simulate_record *r);

/* simulate_ttft_s, simulate_tpot_s (NAN of a single token), simulate_latency_s, simulate_wait_s, simulate_move_s (from
 * the first token until its cache is where it decodes; NAN with one pool) -- of a record. */
double simulate_ttft_s(const struct simulate_record *r);
double simulate_tpot_s(const struct simulate_record *r);
double simulate_latency_s(const struct simulate_record *r);
double simulate_wait_s(const struct simulate_record *r);
double simulate_move_s(const struct simulate_record *r);

/* Exact percentiles of what the finished requests have (NAN left out): the smallest value that at least p of them do
 * not exceed. */
struct simulate_spread {
    size_t n;
    double mean, p50, p90, p95, p99, most;
};

/* simulate_spread_of -- Errors: ERR_NOMEM. Cost: O(n log n). */
enum err_code simulate_spread_of(const struct simulate_result *r, double (*value)(const struct simulate_record *),
                                 struct simulate_spread *out, struct err *e);

#endif
