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
    int32_t piece;             /* tokens of it in this step's prefill */
    int64_t named;             /* blocks that have names */
    struct paged_list kv;
    struct region region;
};

struct replica {
    const struct simulate_setup *setup;
    struct simulate_record *record;
    uint16_t *unfinished; /* samples of each request that are in a batch or will be again */
    uint32_t *link;       /* of each request: the next in its queue */
    int64_t index;
    double clock_s;
    struct mix decode, scratch, share; /* share: of the busiest group */
    struct paged pool;
    struct regions regions;
    struct replica_seq **running;
    int64_t running_n, decoding_n, room;
    struct replica_seq **preempted; /* the last one enters first */
    int64_t preempted_n, preempted_room;
    uint32_t waiting_head, waiting_tail;
    int64_t waiting_n;
    uint32_t *answered; /* requests that the last step finished */
    int64_t answered_n, answered_room;
    int64_t stored_tokens, held_tokens; /* in the cache; in blocks or regions in use */
    struct replica_sums {
        int64_t steps, preemptions, most_running, most_blocks;
        double busy_s, running_s, stored_s, held_s, blocks_s; /* times what was so, over busy time */
        double computed_tokens, cached_tokens;
    } sums;
};

/* replica_open -- Errors: ERR_NOMEM, ERR_RANGE. replica_close -- what it took beside the arena. */
enum err_code replica_open(struct arena *a, const struct simulate_setup *s, int64_t index, struct replica *out,
                           struct err *e);
void replica_close(struct replica *r);

/* replica_fits -- whether a request can ever be served. replica_enqueue -- at the end of the queue. */
bool replica_fits(const struct replica *r, const struct workload_request *q);
void replica_enqueue(struct replica *r, uint32_t request);

static inline bool replica_idle(const struct replica *r) { return r->running_n + r->waiting_n + r->preempted_n == 0; }

/* replica_match -- tokens of a prompt that its cache has. */
int64_t replica_match(const struct replica *r, const struct workload_request *q);

/* replica_step -- one step, or several that begin before until_s and differ in lengths alone; r->answered are those
 * that it finished, all at r->clock_s, its end. Errors: ERR_NOMEM. */
enum err_code replica_step(struct replica *r, double until_s, struct err *e);

#endif
