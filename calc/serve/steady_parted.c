#include "calc/serve/steady_parted.h"

#include <math.h>
#include <stdlib.h>

#include "calc/serve/steady_parted_run.h"

enum {
    REQUESTS_MAX = 1 << 13, /* of a run, but where more fill the groups */
    SEEN = 1536,            /* requests looked at, at least; not a unit */
    SEEN_ALONE = 4096,      /* of one group, not a unit */
    SEEN_FULL = 384,        /* where others always wait: rates alone, which are known sooner */
    WARM = 256,             /* and before them; not a unit */
    FILLINGS = 2,           /* of all groups, looked at */
    STEPS_MAX = 1 << 20,    /* of a run; not a unit */
};

bool steady_parted_of(const struct steady_setup *s)
{
    const bool alone = s->groups <= 1 && (s->server || s->calibrated) && !s->slowest;
    return (alone || steady_parts_of(s) > 1) && s->policy == SIMULATE_FCFS && s->load == STEADY_OPEN && !s->draft.of &&
           !s->decode && s->lengths->steps > 0 && steady_routed(s) < 2;
}

/* ---- a step ---- */

static void push(struct steady_parted_run *x, struct steady_parted_queue *q, int32_t i)
{
    x->request[i].next = -1;
    if (q->last < 0)
        q->first = i;
    else
        x->request[q->last].next = i;
    q->last = i;
    q->waiting++;
}

static double needs(const struct steady_parted_run *x, int32_t i)
{
    return x->request[i].prompt + x->request[i].made + x->half_block;
}

/* Whole prompts in the order in which they came, the first one whatever the budget, as long as there are places. */
static void take(struct steady_parted_run *x, struct steady_parted_queue *q)
{
    const double cached = x->s->lengths->cached_tokens;
    q->taken = 0;
    q->tokens = q->square = 0;
    if (x->waits && q->waiting < 1 && x->next < x->requests) push(x, q, (int32_t)x->next++);
    q->from = q->first;
    while (q->first >= 0) {
        const int32_t i = q->first;
        const struct steady_parted_request *w = &x->request[i];
        const double own = w->prompt + w->made;
        const bool full = q->members.n + q->taken >= x->s->max_seqs || q->held + needs(x, i) + cached > x->cache_tokens;
        if (full && q->members.n + q->taken > 0) break;
        if (q->taken > 0 && q->tokens + own > (double)x->s->budget_tokens) break;
        q->held += needs(x, i) + cached;
        q->tokens += own;
        q->square += own * own;
        q->taken++;
        if (x->waits && q->waiting == 1 && x->next < x->requests) push(x, q, (int32_t)x->next++);
        q->first = w->next;
        if (q->first < 0) q->last = -1;
        q->waiting--;
    }
}

/* The last that entered leave where what they will take is not there, and wait before all others. */
static void make_room(struct steady_parted_run *x, struct steady_parted_queue *q)
{
    while (q->members.n > 1 && q->held + (double)q->members.n > x->cache_tokens) {
        const struct steady_member last = steady_members_last(&q->members, x->places);
        struct steady_parted_request *w = &x->request[last.request];
        const int64_t made = w->steps - (last.until - q->decoded);
        w->made = (int32_t)made;
        q->held -= needs(x, last.request) + x->s->lengths->cached_tokens;
        w->next = q->first;
        q->first = last.request;
        if (q->last < 0) q->last = last.request;
        q->waiting++;
    }
}

static void answer(struct steady_parted_run *x, struct steady_parted_queue *q, int32_t i)
{
    const struct steady_parted_request *w = &x->request[i];
    q->held -= w->prompt + w->steps + x->half_block + x->s->lengths->cached_tokens;
    x->ended++;
    if (!x->ttft || !(x->seen.since_s > 0)) return;
    steady_histogram_add(x->ttft, w->first_s - w->arrival_s, 1);
    steady_histogram_add(x->latency, x->clock_s - w->arrival_s, 1);
    if (w->steps == 0) return;
    x->seen.answers_s += x->clock_s - w->first_s;
    x->seen.steps += w->steps;
    steady_histogram_add(x->tpot, (x->clock_s - w->first_s) / w->steps, 1);
}

/* Prompts that were in the step. */
static void end_prompts(struct steady_parted_run *x, struct steady_parted_queue *q, double took_s)
{
    int32_t i = q->from;
    for (int32_t k = 0; k < q->taken; k++) {
        struct steady_parted_request *w = &x->request[i];
        const int32_t next = w->next, left = w->steps - w->made;
        if (w->made == 0) {
            w->first_s = x->clock_s;
            x->seen.waited_s += x->clock_s - took_s - w->arrival_s;
            x->seen.waits++;
        }
        if (left > 0)
            steady_members_add(&q->members, x->places, i, q->decoded + left);
        else
            answer(x, q, i);
        i = next;
    }
}

static void end_decoding(struct steady_parted_run *x, struct steady_parted_queue *q, int64_t steps)
{
    q->held += (double)(q->members.n * steps);
    q->decoded += steps;
    for (int64_t i; q->members.n > 0 && (i = steady_members_end(&q->members, x->places, q->decoded)) >= 0;)
        answer(x, q, (int32_t)i);
}

/* To the group of the fewest, ties in turn; what the step in progress ends is still there. */
static void come(struct steady_parted_run *x)
{
    while (x->next < x->requests && x->request[x->next].arrival_s <= x->clock_s) {
        int64_t best = x->turn % x->groups;
        for (int64_t k = 1; x->s->route != SIMULATE_ROUND_ROBIN && k < x->groups; k++) {
            const int64_t i = (x->turn + k) % x->groups;
            if (x->queue[i].load < x->queue[best].load) best = i;
        }
        x->turn = best + 1;
        x->queue[best].load++;
        push(x, &x->queue[best], (int32_t)x->next++);
    }
}

/* Steps without prompts that are as one: until the first answer ends, or somebody comes. */
static int64_t straight(const struct steady_parted_run *x, double step_s)
{
    int64_t k = INT32_MAX;
    for (int64_t j = 0; j < x->groups; j++) {
        const struct steady_parted_queue *q = &x->queue[j];
        if (q->members.n == 0) continue;
        const int64_t own = steady_members_next(&q->members) - q->decoded;
        k = own < k ? own : k;
        const double free = x->cache_tokens - q->held;
        if ((double)(k * q->members.n) > free) k = (int64_t)fmax(free / (double)q->members.n, 1);
    }
    if (k < 1) return 1;
    if (x->waits || x->next == x->requests) return k;
    const double until = ceil((x->request[x->next].arrival_s - x->clock_s) / step_s);
    return until < 1 ? 1 : until < (double)k ? (int64_t)until : k;
}

static void see(struct steady_parted_run *x, double decoding, double took_s, int64_t steps, double own, bool prompts)
{
    const double each = decoding / (double)x->groups, all_s = took_s * (double)steps;
    x->seen.decoding_s += each * all_s;
    x->seen.square_s += each * each * all_s;
    x->seen.own_steps += own;
    x->seen.own_s += own * took_s;
    if (prompts) return;
    x->seen.decode_s += all_s;
    x->seen.decode_steps += (double)steps;
}

/* One step of all groups, or several without prompts. False: it is over. */
static bool step(struct steady_parted_run *x)
{
    struct steady_times *t = x->r->times;
    double most = 0, square = 0, sum = 0, decodes = 0, computing = 0, there = 0;
    for (int64_t j = 0; j < x->groups; j++) {
        struct steady_parted_queue *q = &x->queue[j];
        take(x, q);
        if (q->taken == 0) make_room(x, q);
        if (q->tokens > most) square = q->square;
        most = fmax(most, q->tokens);
        sum += q->tokens;
        computing += q->taken > 0;
        decodes += q->taken > 0 ? 0 : (double)q->members.n;
        there += (double)q->members.n;
        q->load = q->waiting + q->taken + q->members.n;
    }
    if (!(most > 0) && !(decodes > 0)) { /* until somebody comes */
        if (x->next == x->requests) return false;
        const double at_s = x->request[x->next].arrival_s;
        if (x->seen.since_s > 0) x->seen.idle_s += at_s - x->clock_s;
        x->clock_s = at_s;
        come(x);
        return true;
    }
    const double each = decodes / (double)x->groups, others = fmax((double)(x->groups - 1), 1);
    double took_s = steady_times_decode_s(t, each);
    int64_t steps = 1;
    if (most > 0)
        took_s = fmax(took_s, steady_times_whole_s(t, most, square, (sum - most) / (others * most)));
    else
        steps = straight(x, took_s);
    if (x->seen.since_s > 0) see(x, there, took_s, steps, computing / (double)x->groups, most > 0);
    x->clock_s += took_s * (double)steps;
    if (!x->waits) come(x);
    for (int64_t j = 0; j < x->groups; j++) {
        struct steady_parted_queue *q = &x->queue[j];
        if (q->taken > 0)
            end_prompts(x, q, took_s);
        else if (q->members.n > 0)
            end_decoding(x, q, steps);
    }
    return true;
}

/* ---- a run ---- */

static void run_close(struct steady_parted_run *x)
{
    for (int64_t j = 0; x->queue && j < x->groups; j++) steady_members_close(&x->queue[j].members);
    free(x->queue);
    free(x->request);
    free(x->places);
    free(x->scratch);
}

/* As many as fill all groups, which have `filling` as they are in the long run, several times; `there` as it begins. */
static enum err_code run_open(struct steady_parted_run *x, struct steady_replica *r, double rate_per_s, double filling,
                              double there, struct err *e)
{
    const struct steady_setup *s = r->s;
    const bool waits = !isfinite(rate_per_s);
    const double begun = floor(there), warm = waits ? filling / 4 : WARM + filling,
                 seen =
                     waits ? SEEN_FULL + filling / 4 : (r->times->parts > 1 ? SEEN : SEEN_ALONE) + FILLINGS * filling,
                 most = fmax(REQUESTS_MAX, 2.5 * filling), all = fmin(warm + seen, most);
    *x = (struct steady_parted_run){.r = r,
                                    .s = s,
                                    .groups = (int64_t)r->times->parts,
                                    .waits = waits,
                                    .rate_per_s = rate_per_s,
                                    .requests = (int64_t)(begun + all),
                                    .there = (int64_t)begun,
                                    .from = (int64_t)(begun + all * warm / (warm + seen)),
                                    .cache_tokens =
                                        (double)s->blocks * (double)s->block_tokens * (1 - s->watermark_frac),
                                    .half_block = ((double)s->block_tokens - 1) / 2};
    const size_t n = (size_t)x->requests;
    x->queue = calloc((size_t)x->groups, sizeof *x->queue);
    x->request = malloc(n * sizeof *x->request);
    x->places = calloc(n, sizeof *x->places);
    x->scratch = malloc(2 * n * sizeof *x->scratch);
    bool good = x->queue && x->request && x->places && x->scratch;
    for (int64_t j = 0; good && j < x->groups; j++) {
        x->queue[j].first = x->queue[j].last = -1;
        good = steady_members_open(&x->queue[j].members, s->max_seqs < x->requests ? s->max_seqs + 1 : x->requests);
    }
    if (!good) {
        run_close(x);
        return err_nomem(e);
    }
    steady_parted_stream(x);
    return ERR_OK;
}

/* Until those that come last have come: what is behind them is not as it is for ever. */
static void run_through(struct steady_parted_run *x)
{
    for (int64_t k = 0; k < STEPS_MAX && x->next < x->requests; k++) {
        if (!(x->seen.since_s > 0) && x->ended >= x->from) x->seen.since_s = x->clock_s;
        if (!step(x)) break;
    }
}

double steady_parted_about(const struct steady_setup *s, double *most)
{
    const struct steady_setup one = steady_part_of(s);
    struct steady_replica r = {.s = &one, .times = s->times, .arrival_cv2 = 1, .others_frac = 1, .prompts_frac = 1};
    (void)steady_saturation_of(&r);
    *most = r.most;
    return r.times->saturation.about_per_s > 0 ? r.times->saturation.about_per_s : r.most_per_s;
}

/* Where others always wait and places go from one to the next: from full groups, whose answers are anywhere. */
enum err_code steady_parted_saturate(struct steady_replica *r, struct err *e)
{
    struct steady_parted_run x;
    struct steady_times *t = r->times;
    double since_s = 0, ended = 0;
    if (t->saturation.about_per_s > 0) return ERR_OK;
    const double there = r->most * t->parts;
    TRY(run_open(&x, r, (double)INFINITY, there / 2, there, e));
    while (x.next < x.requests && step(&x)) {
        if (since_s > 0 || x.ended < x.from - x.there) continue;
        since_s = x.clock_s;
        ended = (double)x.ended;
    }
    r->most_per_s = ((double)x.ended - ended) / (x.clock_s - since_s) / t->parts;
    t->saturation.about_per_s = t->saturation.rate_per_s;
    t->saturation.rate_per_s = r->most_per_s;
    run_close(&x);
    return ERR_OK;
}

enum err_code steady_parted_solve(struct steady_replica *r, struct steady_histogram *ttft,
                                  struct steady_histogram *tpot, struct steady_histogram *latency, struct err *e)
{
    struct steady_parted_run x;
    struct steady_times *t = r->times;
    const struct steady_lengths *l = r->s->lengths;
    const double parts = t->parts, rho = fmin(r->rate_per_s / r->most_per_s, .99);
    const double each = fmin(r->rate_per_s * l->steps * steady_times_decode_s(t, r->most * rho) / (1 - rho), r->most);
    TRY(run_open(&x, r, r->rate_per_s * parts, each * parts, 0, e));
    steady_histogram_clear(ttft);
    steady_histogram_clear(tpot);
    steady_histogram_clear(latency);
    x.ttft = ttft;
    x.tpot = tpot;
    x.latency = latency;
    run_through(&x);
    const double all_s = x.clock_s - x.seen.since_s;
    r->decoding = x.seen.decoding_s / all_s;
    r->square = x.seen.square_s / all_s;
    r->token_s = x.seen.steps > 0 ? x.seen.answers_s / x.seen.steps : (double)NAN;
    r->idle_frac = x.seen.idle_s / all_s;
    r->wait_s = x.seen.waits > 0 ? x.seen.waited_s / x.seen.waits : 0;
    r->alone.busy_frac = 0;
    r->flow = (struct steady_flow){.rate_per_s = r->rate_per_s,
                                   .n = r->decoding,
                                   .decode_s = x.seen.decode_s / fmax(x.seen.decode_steps, 1),
                                   .batches_per_s = x.seen.own_steps / all_s,
                                   .steps = 1,
                                   .busy_frac = x.seen.own_s / all_s,
                                   .stable = true};
    run_close(&x);
    return ERR_OK;
}
