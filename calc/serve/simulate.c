#include "calc/serve/simulate.h"

#include <math.h>
#include <stdlib.h>

#include "calc/serve/replica.h"

/* A request that follows an answer; or a sequence that goes on in the other pool. */
struct follower {
    double at_s;
    uint32_t request;
    struct replica_seq *seq; /* NULL: a request */
    int64_t from;            /* replica of the sequence */
};

struct simulation {
    const struct simulate_setup *s;
    struct simulate_setup of_group; /* limits of one */
    int64_t groups;                 /* of a replica that have queues of their own; 1 */
    int64_t engines;                /* queues: groups of all replicas */
    struct replica *replica;        /* [engines], the groups of a replica side by side */
    struct simulate_step *step;     /* [groups] scratch */
    struct simulate_result *out;
    struct follower *heap; /* the earliest first */
    size_t heap_n, heap_room;
    size_t next;               /* of the requests that arrive by themselves */
    size_t ended;              /* answered or refused */
    int64_t turn, turn_decode; /* of round robin */
    bool follows;              /* arrivals may depend on answers */
    int64_t *load;             /* scratch: requests in each engine, in the order of doors */
};

/* ---- followers ---- */

static bool earlier(const struct follower *x, const struct follower *y)
{
    if (x->at_s < y->at_s || x->at_s > y->at_s) return x->at_s < y->at_s;
    return x->request < y->request;
}

static enum err_code heap_add(struct simulation *m, struct follower f, struct err *e)
{
    if (m->heap_n == m->heap_room) {
        const size_t room = m->heap_room ? m->heap_room * 2 : 256; /* not a unit */
        struct follower *more = realloc(m->heap, room * sizeof *more);
        if (!more) return err_nomem(e);
        m->heap = more;
        m->heap_room = room;
    }
    size_t i = m->heap_n++;
    for (; i > 0 && earlier(&f, &m->heap[(i - 1) / 2]); i = (i - 1) / 2) m->heap[i] = m->heap[(i - 1) / 2];
    m->heap[i] = f;
    return ERR_OK;
}

static struct follower heap_take(struct simulation *m)
{
    const struct follower first = m->heap[0], last = m->heap[--m->heap_n];
    size_t i = 0;
    for (;;) {
        size_t k = 2 * i + 1;
        if (k >= m->heap_n) break;
        if (k + 1 < m->heap_n && earlier(&m->heap[k + 1], &m->heap[k])) k++;
        if (!earlier(&m->heap[k], &last)) break;
        m->heap[i] = m->heap[k];
        i = k;
    }
    m->heap[i] = last;
    return first;
}

/* ---- routing ---- */

/* Requests in a replica at a time: what its step in progress ends is still there. */
static int64_t load_at(const struct replica *r, double now_s)
{
    return replica_load(r) + (r->clock_s > now_s ? r->answered_n : 0);
}

/* Replicas that requests come to: the first so many. */
static int64_t entered(const struct simulation *m)
{
    return m->s->pools.prefill > 0 ? m->s->pools.prefill : m->s->replicas;
}

/* Queues of those, the first group of every replica before the second of any: who comes next is elsewhere. */
static int64_t doors(const struct simulation *m) { return entered(m) * m->groups; }

static int64_t behind(const struct simulation *m, int64_t door)
{
    return door % entered(m) * m->groups + door / entered(m);
}

/* Of n replicas from `base` on that of the least requests; of several the first behind the last one used, so that an
 * idle service takes turns. */
static int64_t least_loaded(const struct simulation *m, int64_t base, int64_t n, int64_t turn)
{
    int64_t best = base + turn % n;
    for (int64_t k = 1; k < n; k++) {
        const int64_t i = base + (turn + k) % n;
        if (m->load[i] < m->load[best]) best = i;
    }
    return best;
}

/* The longest cached prefix, among replicas with at most half as many requests again as the least loaded, and 8. */
static int64_t longest_prefix(struct simulation *m, const struct workload_request *q)
{
    enum { SLACK = 8 };
    int64_t best = least_loaded(m, 0, doors(m), m->turn), matched = replica_match(&m->replica[behind(m, best)], q);
    const int64_t most = m->load[best] + m->load[best] / 2 + SLACK;
    for (int64_t i = 0; i < doors(m); i++) {
        const int64_t n = m->load[i] <= most ? replica_match(&m->replica[behind(m, i)], q) : 0;
        if (n <= matched) continue;
        matched = n;
        best = i;
    }
    return best;
}

static int64_t route(struct simulation *m, const struct workload_request *q, double now_s)
{
    const int64_t n = doors(m);
    int64_t to = m->turn % n;
    if (m->s->route != SIMULATE_ROUND_ROBIN && n > 1) {
        for (int64_t i = 0; i < n; i++) m->load[i] = load_at(&m->replica[behind(m, i)], now_s);
        to = m->s->route == SIMULATE_PREFIX ? longest_prefix(m, q) : least_loaded(m, 0, n, m->turn);
    }
    m->turn = to + 1;
    return behind(m, to);
}

/* Of those that decode, for a sequence whose prompt is computed: in turn, or the least loaded. */
static int64_t route_decode(struct simulation *m, double now_s)
{
    const int64_t base = m->s->pools.prefill, n = m->s->replicas - base;
    int64_t to = base + m->turn_decode % n;
    if (m->s->route != SIMULATE_ROUND_ROBIN && n > 1) {
        for (int64_t i = base; i < m->s->replicas; i++) m->load[i] = load_at(&m->replica[i], now_s);
        to = least_loaded(m, base, n, m->turn_decode);
    }
    m->turn_decode = to - base + 1;
    return to;
}

/* ---- events ---- */

static enum err_code follow(struct simulation *m, uint32_t request, double at_s, bool answered, struct err *e)
{
    const struct workload *w = m->s->work;
    const struct workload_request *q = &w->request[request];
    m->ended++;
    if (q->next == WORKLOAD_NO_NEXT) return ERR_OK;
    const double later_s = m->s->fronted && answered ? engine_first_s(q->prompt_tokens) : 0;
    return heap_add(m, (struct follower){.at_s = at_s + later_s + w->think_s, .request = q->next}, e);
}

static size_t waiting(const struct simulation *m)
{
    size_t n = 0;
    for (int64_t i = 0; i < m->engines; i++) {
        const struct replica *r = &m->replica[i];
        n += (size_t)(r->waiting_n + r->preempted_n + r->pending_n);
    }
    return n;
}

/* Of a replica, all of its groups. */
static bool idle(const struct simulation *m, int64_t i)
{
    for (int64_t g = i * m->groups; g < (i + 1) * m->groups; g++)
        if (!replica_idle(&m->replica[g])) return false;
    return true;
}

static enum err_code arrive(struct simulation *m, uint32_t request, double now_s, struct err *e)
{
    const struct workload_request *q = &m->s->work->request[request];
    struct simulate_record *x = &m->out->record[request];
    x->arrival_s = now_s;
    if (!replica_fits(&m->replica[0], q)) {
        m->out->refused++;
        return follow(m, request, now_s, false, e);
    }
    const int64_t to = route(m, q, now_s), home = to / m->groups;
    struct replica *r = &m->replica[to];
    x->replica = (uint16_t)home;
    if ((r->clock_s < now_s && idle(m, home)) || (r->asleep && r->tier.blocks > 0 && r->clock_s > now_s))
        for (int64_t g = home * m->groups; g < (home + 1) * m->groups; g++) {
            m->replica[g].clock_s = now_s;
            m->replica[g].answered_n = 0;
        }
    replica_enqueue(r, request);
    return ERR_OK;
}

/* The replica whose next step begins first; -1: none has anything to do. *second_s: when the one after it does. */
static int64_t first_busy(const struct simulation *m, double *second_s)
{
    int64_t best = -1;
    double best_s = (double)INFINITY;
    *second_s = (double)INFINITY;
    for (int64_t i = 0; i < m->s->replicas; i++) {
        const double clock_s = m->replica[i * m->groups].clock_s;
        if (!(clock_s < (double)INFINITY) || idle(m, i)) continue;
        if (best < 0 || clock_s < best_s) {
            *second_s = best_s;
            best = i;
            best_s = clock_s;
        } else if (clock_s < *second_s) {
            *second_s = clock_s;
        }
    }
    return best;
}

/* The next arrival of either kind; infinite: none is known. */
static double next_arrival_s(const struct simulation *m, bool *followed)
{
    const struct workload *w = m->s->work;
    const double own_s = m->next < w->first_n ? w->request[m->next].arrival_s : (double)INFINITY;
    *followed = m->heap_n > 0 && m->heap[0].at_s < own_s;
    return *followed ? m->heap[0].at_s : own_s;
}

static enum err_code take_arrival(struct simulation *m, bool followed, struct err *e)
{
    if (followed) {
        const struct follower f = heap_take(m);
        if (f.seq) return replica_hand(&m->replica[route_decode(m, f.at_s)], &m->replica[f.from], f.seq, f.at_s, e);
        return arrive(m, f.request, f.at_s, e);
    }
    const uint32_t i = (uint32_t)m->next++;
    /* before it: who comes, or is refused as it comes, has not waited */
    if (m->next == (m->s->work->first_n + 1) / 2) m->out->waiting_half = waiting(m);
    if (m->next == m->s->work->first_n) m->out->waiting_last = waiting(m);
    return arrive(m, i, m->s->work->request[i].arrival_s, e);
}

static enum err_code run_events(struct simulation *m, struct err *e)
{
    enum { OFTEN = 1 << 10 };
    const struct workload *w = m->s->work;
    for (size_t events = 1; m->ended < w->n; events++) {
        bool followed;
        double second_s;
        const double arrival_s = next_arrival_s(m, &followed);
        const int64_t i = first_busy(m, &second_s);
        if (i < 0 && !(arrival_s < (double)INFINITY)) return err_set(e, ERR_RANGE, "requests that never come");
        if (m->s->progress && events % OFTEN == 0 && !m->s->progress(m->s->closure, m->ended, w->n)) {
            m->out->partial = true;
            return ERR_OK;
        }
        struct replica *r = &m->replica[i < 0 ? 0 : i * m->groups];
        if (i < 0 || arrival_s <= r->clock_s) {
            TRY(take_arrival(m, followed, e));
            continue;
        }
        const double until_s = m->follows ? fmin(arrival_s, second_s) : arrival_s;
        TRY(m->groups > 1 ? replica_step_all(r, m->groups, m->step, until_s, e) : replica_step(r, until_s, e));
        for (int64_t g = 0; g < m->groups; g++)
            for (int64_t k = 0; k < r[g].answered_n; k++) {
                m->out->finished++;
                TRY(follow(m, r[g].answered[k], r->clock_s, true, e));
            }
        for (int64_t k = 0; k < r->handed_n; k++)
            TRY(heap_add(m, (struct follower){r->clock_s, r->handed[k]->request, r->handed[k], r->index}, e));
        if (!r->asleep && r->clock_s > m->out->span_s) m->out->span_s = r->clock_s;
    }
    return ERR_OK;
}

/* ---- the whole ---- */

static void add_pools(struct simulation *m)
{
    for (int64_t i = 0; i < m->engines; i++) {
        const struct replica *r = &m->replica[i];
        struct simulate_pool *p = &m->out->pool[i / m->groups >= entered(m)];
        p->replicas += i % m->groups == 0;
        p->steps += r->sums.steps;
        p->preemptions += r->sums.preemptions;
        p->busy_s += r->sums.busy_s;
        p->mean_running += r->sums.running_s; /* divided below */
        p->block_frac += r->sums.blocks_s;
        if (r->sums.most_running > p->most_running) p->most_running = r->sums.most_running;
    }
    for (int k = 0; k < 2; k++) {
        m->out->pool[k].mean_running /= m->out->pool[k].busy_s;
        m->out->pool[k].block_frac /= m->out->pool[k].busy_s * (double)m->s->blocks;
    }
}

static void add_up(struct simulation *m)
{
    struct simulate_result *o = m->out;
    const struct workload *w = m->s->work;
    const double stages = (double)mix_stages(m->s->plan);
    double running = 0, stored = 0, held = 0, blocks = 0, stages_busy = 0;
    add_pools(m);
    for (int64_t i = 0; i < m->engines; i++) {
        const struct replica *r = &m->replica[i];
        o->transfers += r->sums.transfers;
        o->transfer_bytes += r->sums.transfer_bytes;
        o->link_busy_s += r->sums.link_busy_s;
        o->swaps += r->sums.swaps;
        o->loads += r->sums.loads;
        o->loaded_bytes += r->sums.loaded_bytes;
        o->load_wait_s += r->sums.load_wait_s;
        o->hosted_bytes += r->sums.hosted_bytes;
        o->tier_evictions += r->tier.evictions;
        o->judged += r->sums.judged;
        o->kept_tokens += r->sums.kept_tokens;
        o->judged_tokens += r->sums.judged_tokens;
        o->draft_s += r->sums.draft_s;
        stages_busy += r->sums.stages_busy_s;
        o->swapped_back += r->sums.swapped_back;
        o->swapped_bytes += r->sums.swapped_bytes;
        o->copied_s += r->sums.copied_s;
        o->swap_would_s += r->sums.swap_would_s;
        o->recompute_would_s += r->sums.recompute_would_s;
        o->busy_s += r->sums.busy_s;
        o->steps += r->sums.steps;
        o->preemptions += r->sums.preemptions;
        o->copies += r->pool.copies;
        o->evictions += r->pool.evictions;
        o->held_blocks += r->pool.blocks - r->pool.idle;
        o->computed_tokens += r->sums.computed_tokens;
        if (r->sums.most_running > o->most_running) o->most_running = r->sums.most_running;
        if (r->sums.most_blocks > o->most_blocks) o->most_blocks = r->sums.most_blocks;
        running += r->sums.running_s;
        stored += r->sums.stored_s;
        held += r->sums.held_s;
        blocks += r->sums.blocks_s;
    }
    o->mean_running = running / o->busy_s;
    o->bubble_frac = stages > 1 ? 1 - stages_busy / (stages * o->busy_s) : (double)NAN;
    o->useful_frac = stored / held;
    o->block_frac = blocks / o->busy_s / (double)m->s->blocks;
    for (size_t i = 0; i < w->n; i++) {
        if (!(o->record[i].finish_s >= 0)) continue;
        o->prompt_tokens += w->request[i].prompt_tokens;
        o->cached_tokens += o->record[i].cached_tokens;
        o->loaded_tokens += o->record[i].loaded_tokens;
        o->output_tokens += (double)w->request[i].output_tokens * (double)w->samples;
    }
    /* A queue that holds a twentieth of all that came, and more than one that a step keeps waiting, and grew by half in
     * the second half of the arrivals. */
    o->growing = w->open && w->timed && w->span_s > 0 && o->waiting_last > 1 && o->waiting_last > w->first_n / 20 &&
                 2 * o->waiting_last > 3 * o->waiting_half;
}

static enum err_code open_all(struct arena *a, struct simulation *m, struct err *e)
{
    const struct simulate_setup *s = m->s;
    const struct workload *w = s->work;
    const double unknown = (double)NAN;
    uint16_t *unfinished = arena_array(a, w->n, sizeof *unfinished);
    uint32_t *link = arena_array(a, w->n, sizeof *link);
    m->load = arena_array(a, (size_t)m->engines, sizeof *m->load);
    m->step = arena_array(a, (size_t)m->groups, sizeof *m->step);
    m->out->record = arena_array(a, w->n, sizeof *m->out->record);
    if (!unfinished || !link || !m->load || !m->step || !m->out->record) return err_nomem(e);
    m->out->n = w->n;
    if (s->look) *s->look = m->out->record;
    for (size_t i = 0; i < w->n; i++)
        m->out->record[i] = (struct simulate_record){.arrival_s = unknown,
                                                     .start_s = unknown,
                                                     .first_s = unknown,
                                                     .finish_s = unknown,
                                                     .moved_s = unknown,
                                                     .prompt_tokens = w->request[i].prompt_tokens,
                                                     .output_tokens = w->request[i].output_tokens};
    m->follows = s->pools.prefill > 0;
    for (size_t i = 0; i < w->n; i++) m->follows |= w->request[i].next != WORKLOAD_NO_NEXT;
    for (int64_t i = 0; i < m->engines; i++) {
        TRY(replica_open(a, m->groups > 1 ? &m->of_group : s, i / m->groups, &m->replica[i], e));
        m->replica[i].record = m->out->record;
        m->replica[i].unfinished = unfinished;
        m->replica[i].link = link;
    }
    return ERR_OK;
}

/* Groups with queues of their own: what is of all of them is of each in equal parts. */
static void part_groups(struct simulation *m)
{
    const struct simulate_setup *s = m->s;
    m->groups = simulate_parted(s) ? s->groups : 1;
    m->engines = m->groups * s->replicas;
    if (m->groups == 1) return;
    m->of_group = *s;
    m->of_group.groups = 0;
    m->of_group.budget_tokens /= s->groups;
    m->of_group.max_seqs /= s->groups;
    m->of_group.blocks /= s->groups;
    m->of_group.tier.blocks /= s->groups;
    m->of_group.swap.host_bytes /= (double)s->groups;
}

enum err_code simulate_run(struct arena *a, const struct simulate_setup *s, struct simulate_result *out, struct err *e)
{
    TRY(simulate_check(s, e));
    struct simulate_result result = {.n = 0};
    struct simulation m = {.s = s, .out = &result};
    part_groups(&m);
    m.replica = arena_array(a, (size_t)m.engines, sizeof *m.replica);
    if (!m.replica) return err_nomem(e);
    enum err_code code = open_all(a, &m, e);
    if (code == ERR_OK) code = run_events(&m, e);
    if (code == ERR_OK) add_up(&m);
    for (int64_t i = 0; i < m.engines; i++) replica_close(&m.replica[i]);
    free(m.heap);
    if (code == ERR_OK) *out = result;
    return code;
}
