/* replica -- one engine of a simulation: queue, batch, cache, and how its next step is made up; of simulate.h. */
#ifndef RIDGE_SERVE_REPLICA_H
#define RIDGE_SERVE_REPLICA_H

#include "calc/serve/paged.h"
#include "calc/serve/regions.h"
#include "calc/serve/simulate.h"

/* A sample of a request, in the batch or computed anew later. */
struct replica_seq {
    uint32_t request;
    bool decoding, first;      /* first: of the samples, whose answer a conversation goes on with */
    int32_t target, done;      /* tokens to prefill; of them computed */
    int32_t generated, wanted; /* tokens of the answer */
    int32_t stored;            /* tokens in the cache */
    int32_t sample;            /* of its request */
    int32_t gain;              /* tokens that this step makes, while it decodes */
    int32_t piece;             /* tokens of it in this step's prefill */
    int64_t named;             /* blocks that have names */
    int32_t swapped;           /* tokens whose cache the host has */
    int32_t load;              /* tokens that its prefix will be given by the host's tier */
    bool resumes;              /* swapped while it decoded */
    int32_t flying;            /* of stages: batches under way that it is in */
    uint64_t flight;           /* of them the one that ends its prompt, or makes its token; 0 none */
    double ready_s;            /* when its cache has moved, from the other pool or the host; infinite: not known */
    struct replica_seq *next;  /* in a queue of those that come from the other pool */
    struct replica_seq *twin;  /* that holds the cache where it was computed */
    struct replica *home;      /* where that is */
    struct paged_list kv;
    struct region region;
};

/* A batch on its way through the stages. */
struct replica_flight {
    double end_s;             /* when its last stage is done */
    uint64_t number;          /* from 1 on */
    struct replica_seq **seq; /* in it */
    int64_t seqs_n, room;
    struct simulate_step step;
};

struct replica {
    const struct simulate_setup *setup;
    struct simulate_record *record;
    uint16_t *unfinished; /* samples of each request that are in a batch or will be again */
    uint32_t *link;       /* of each request: the next in its queue */
    int64_t index;
    double clock_s;
    struct mix decode, scratch, share; /* share: of the busiest group */
    const struct mix *now;             /* what its next step holds; NULL: nothing */
    struct paged pool;
    struct regions regions;
    struct replica_seq **running;
    int64_t running_n, decoding_n, room;
    int64_t flying_n;              /* of those that decode, in a batch under way */
    struct replica_flight *flight; /* [stages], a ring; NULL: one stage */
    int64_t stages, flights_n, flight_first;
    uint64_t launched;
    double *stage_free_s, *stage_s; /* [stages]: when each is idle again; of one batch */
    double host_free_s;             /* when the engine has begun the last batch */
    struct replica_seq **preempted; /* the last one enters first */
    int64_t preempted_n, preempted_room;
    uint32_t waiting_head, waiting_tail;
    int64_t waiting_n;
    int64_t judged;              /* tokens of a sequence that decodes in the pass of a step; 1 without drafts */
    bool prefills;               /* only: sequences go on elsewhere */
    bool asleep;                 /* nothing can be done before clock_s, but for what comes */
    struct replica_seq **handed; /* prompts that the last step completed, to go on elsewhere; among those leaving */
    int64_t handed_n, handed_room;
    struct replica_seq **leaving; /* whose cache is still here */
    int64_t leaving_n, leaving_room;
    struct replica_seq **coming; /* for whose cache there is room, and that is under way */
    int64_t coming_n, coming_room;
    struct replica_seq *pending_head, *pending_tail; /* for whose cache there is none yet */
    int64_t pending_n;
    double link_free_s; /* of its link, when what was sent is through */
    struct paged tier;  /* of the host; no blocks: none */
    struct paged_list tier_one;
    double tier_free_s; /* when the link from there is free */
    double host_bytes;  /* in use there */
    double copy_s;      /* that the next step waits for blocks to be copied */
    uint32_t *answered; /* requests that the last step finished */
    int64_t answered_n, answered_room;
    int64_t stored_tokens; /* in the cache */
    struct replica_sums {
        int64_t steps, preemptions, most_running, most_blocks;
        double stages_busy_s;                                 /* of all stages, each in its part of a batch */
        double busy_s, running_s, stored_s, held_s, blocks_s; /* times what was so, over busy time */
        double computed_tokens;
        int64_t transfers, swaps, swapped_back;
        double judged, kept_tokens, judged_tokens, draft_s;
        int64_t loads;
        double loaded_bytes, load_wait_s, hosted_bytes;
        double transfer_bytes, link_busy_s, swapped_bytes, copied_s, swap_would_s, recompute_would_s;
    } sums;
};

/* replica_open -- Errors: ERR_NOMEM, ERR_RANGE. replica_close -- what it took beside the arena. */
enum err_code replica_open(struct arena *a, const struct simulate_setup *s, int64_t index, struct replica *out,
                           struct err *e);
void replica_close(struct replica *r);

/* replica_fits -- whether a request can ever be served. replica_enqueue -- at the end of the queue. */
bool replica_fits(const struct replica *r, const struct workload_request *q);
void replica_enqueue(struct replica *r, uint32_t request);

/* replica_load -- sequences and requests that it has to do with. */
static inline int64_t replica_load(const struct replica *r)
{
    return r->running_n + r->waiting_n + r->preempted_n + r->coming_n + r->pending_n;
}
static inline bool replica_idle(const struct replica *r) { return replica_load(r) == 0; }

/* replica_hand -- a sequence that `from` has handed on goes on in r from now on, which is not before. Errors:
 * ERR_NOMEM. */
enum err_code replica_hand(struct replica *r, struct replica *from, struct replica_seq *q, double now_s, struct err *e);

/* replica_match -- tokens of a prompt that its cache has. */
int64_t replica_match(const struct replica *r, const struct workload_request *q);

/* replica_step -- one step, or several that begin before until_s and differ in lengths alone; r->answered are those
 * that it finished, r->handed those that go on elsewhere, all at r->clock_s, its end. Where nothing can be done there
 * is no step, and clock_s is when there will be (infinite: not known). Errors: ERR_NOMEM. */
enum err_code replica_step(struct replica *r, double until_s, struct err *e);

/* replica_step_all -- the same of n attention groups of a replica, r[0 .. n-1], each with a queue, a batch and a cache
 * of its own and all at one clock_s: a step is as long as the group that has most to do takes, and those that have
 * nothing wait for it. Steps are counted in r[0]'s sums, once for all. x: room for n. Errors: ERR_NOMEM. */
enum err_code replica_step_all(struct replica *r, int64_t n, struct simulate_step *x, double until_s, struct err *e);

#endif
