/* replica -- queue, cache and batch, and what the next step holds. */
#include "calc/serve/replica_parts.h"

#include <stdlib.h>

static const struct workload_request *request_of(const struct replica *r, const struct replica_seq *q)
{
    return &r->setup->work->request[q->request];
}

bool replica_push(struct replica_seq ***list, int64_t *n, int64_t *room, struct replica_seq *q)
{
    if (*n == *room) {
        const int64_t more = *room ? *room * 2 : 64; /* not a unit */
        struct replica_seq **at = realloc(*list, (size_t)more * sizeof(struct replica_seq *));
        if (!at) return false;
        *list = at;
        *room = more;
    }
    (*list)[(*n)++] = q;
    return true;
}

enum err_code replica_open(struct arena *a, const struct simulate_setup *s, int64_t index, struct replica *out,
                           struct err *e)
{
    struct replica r = {.setup = s,
                        .index = index,
                        .prefills = index < s->pools.prefill,
                        .judged = s->draft.of ? speculate_judged(s->draft.of, s->draft.gamma) : 1,
                        .waiting_head = WORKLOAD_NO_NEXT,
                        .waiting_tail = WORKLOAD_NO_NEXT,
                        .regions = {.size = s->blocks * s->block_tokens}};
    TRY(mix_open(a, s->plan, &r.decode, e));
    TRY(mix_open(a, s->plan, &r.scratch, e));
    TRY(mix_open(a, s->plan, &r.share, e));
    TRY(paged_open(a, s->memory == SIMULATE_PAGED ? s->blocks : 1, s->block_tokens, s->prefix_cache, &r.pool, e));
    if (s->tier.blocks > 0) {
        TRY(paged_open(a, s->tier.blocks, s->block_tokens, true, &r.tier, e));
        if (paged_grow(&r.tier, &r.tier_one, 1) != ERR_OK) return err_nomem(e); /* room for one, kept */
        paged_drop(&r.tier, &r.tier_one);
    }
    TRY(replica_pipe_open(a, &r, e));
    *out = r;
    return ERR_OK;
}

void replica_free_seq(struct replica *r, struct replica_seq *q)
{
    paged_release(&r->pool, &q->kv);
    free(q);
}

void replica_close(struct replica *r)
{
    for (int64_t i = 0; i < r->running_n; i++) replica_free_seq(r, r->running[i]);
    for (int64_t i = 0; i < r->preempted_n; i++) replica_free_seq(r, r->preempted[i]);
    for (int64_t i = 0; i < r->leaving_n; i++) replica_free_seq(r, r->leaving[i]);
    for (int64_t i = 0; i < r->coming_n; i++) replica_free_seq(r, r->coming[i]);
    for (struct replica_seq *q = r->pending_head, *next; q; q = next) {
        next = q->next;
        replica_free_seq(r, q);
    }
    paged_release(&r->tier, &r->tier_one);
    replica_pipe_close(r);
    free(r->handed);
    free(r->leaving);
    free(r->coming);
    free(r->running);
    free(r->preempted);
    free(r->answered);
    regions_close(&r->regions);
}

/* ---- queue ---- */

int64_t replica_blocks(const struct replica *r, int64_t tokens)
{
    return (tokens + r->setup->block_tokens - 1) / r->setup->block_tokens;
}

/* Tokens of the region that a sequence reserves. */
static int64_t reserve(const struct simulate_setup *s, int64_t prompt, int64_t output)
{
    const int64_t power = regions_size(output);
    if (s->memory == SIMULATE_REGION_EXACT) return prompt + output;
    if (s->memory == SIMULATE_REGION_MAX || prompt + power > s->max_len_tokens) return s->max_len_tokens;
    return prompt + power;
}

bool replica_fits(const struct replica *r, const struct workload_request *q)
{
    const struct simulate_setup *s = r->setup;
    const int64_t tokens = (int64_t)q->prompt_tokens + q->output_tokens, samples = s->work->samples;
    if (tokens > s->max_len_tokens || samples > s->max_seqs) return false;
    if (s->memory != SIMULATE_PAGED)
        return samples * regions_size(reserve(s, q->prompt_tokens, q->output_tokens)) <= s->blocks * s->block_tokens;
    return replica_blocks(r, tokens + r->judged - 1) <= s->blocks;
}

void replica_enqueue(struct replica *r, uint32_t request)
{
    r->link[request] = WORKLOAD_NO_NEXT;
    if (r->waiting_n++ == 0)
        r->waiting_head = request;
    else
        r->link[r->waiting_tail] = request;
    r->waiting_tail = request;
}

int64_t replica_match(const struct replica *r, const struct workload_request *q)
{
    const int64_t b = r->setup->block_tokens;
    int64_t i = 0;
    while ((i + 1) * b < q->prompt_tokens && paged_has(&r->pool, workload_block_hash(r->setup->work, q, b, i))) i++;
    return i * b + replica_recall(r, q, i, (q->prompt_tokens - 1) / b);
}

/* ---- cache ---- */

static void let_go(struct replica *r, struct replica_seq *q)
{
    r->stored_tokens -= q->stored;
    q->stored = 0;
    q->done = 0;
    q->named = 0;
    paged_drop(&r->pool, &q->kv);
    regions_give(&r->regions, &q->region);
}

/* Room for `more` tokens behind those of q. */
bool replica_grow(struct replica *r, struct replica_seq *q, int64_t more)
{
    return r->setup->memory != SIMULATE_PAGED || paged_grow(&r->pool, &q->kv, more) == ERR_OK;
}

void replica_store(struct replica *r, struct replica_seq *q, int32_t more)
{
    q->stored += more;
    r->stored_tokens += more;
    if (!r->setup->prefix_cache || !(q->first || q->stored <= request_of(r, q)->prompt_tokens)) return;
    for (const int64_t b = r->setup->block_tokens; (q->named + 1) * b <= q->stored; q->named++) {
        const uint64_t name = workload_block_hash(r->setup->work, request_of(r, q), b, q->named);
        paged_name(&r->pool, &q->kv, q->named, name);
        replica_remember(r, name);
    }
}

/* What the prefix cache has of q: it need not be computed, but for one token at least. */
static void attach(struct replica *r, struct replica_seq *q)
{
    const struct workload_request *w = request_of(r, q);
    const int64_t b = r->setup->block_tokens, most = (q->target - 1) / b;
    int64_t n = 0;
    q->load = 0;
    if (w->hash_n == 0 && w->cached_tokens > 0) { /* a trace's own count, blocks not shared */
        n = w->cached_tokens / b < most ? w->cached_tokens / b : most;
        if (!replica_grow(r, q, n * b)) n = 0;
    } else {
        while (n < most && paged_attach(&r->pool, &q->kv, workload_block_hash(r->setup->work, w, b, n)) == ERR_OK) n++;
        q->load = replica_recall(r, w, n, most);
    }
    q->done = (int32_t)(n * b);
    q->named = n;
    q->stored = q->done;
    r->stored_tokens += q->stored;
}

/* ---- batch ---- */

/* The last that entered leaves: its blocks are free, and it will be computed anew or come back from the host. In a
 * batch under way nobody does; *any false: of those from `from` on nobody else is there. */
static enum err_code preempt(struct replica *r, int64_t from, bool *any, struct err *e)
{
    int64_t last = r->running_n - 1;
    while (last >= from && r->running[last]->flying > 0) last--;
    *any = last >= from;
    if (!*any) return ERR_OK;
    struct replica_seq *q = r->running[last];
    for (int64_t i = last + 1; i < r->running_n; i++) r->running[i - 1] = r->running[i];
    r->running_n--;
    if (q->decoding) {
        if (!r->flight) mix_decode(&r->decode, -1, replica_context(r, q));
        r->decoding_n--;
    }
    replica_lose(r, q);
    let_go(r, q);
    q->decoding = false;
    q->piece = 0;
    q->ready_s = 0;
    if (q->swapped == 0) q->target = request_of(r, q)->prompt_tokens + q->generated;
    r->record[q->request].preemptions++;
    r->sums.preemptions++;
    return replica_push(&r->preempted, &r->preempted_n, &r->preempted_room, q) ? ERR_OK : err_nomem(e);
}

void replica_start_decoding(struct replica *r, struct replica_seq *q)
{
    q->decoding = true;
    if (!r->flight) mix_decode(&r->decode, 1, replica_context(r, q)); /* batches of stages are put together anew */
    r->decoding_n++;
}

enum err_code replica_answer(struct replica *r, struct replica_seq *q, struct err *e)
{
    let_go(r, q);
    if (--r->unfinished[q->request] == 0) {
        r->record[q->request].finish_s = r->clock_s;
        if (r->answered_n == r->answered_room) {
            const int64_t room = r->answered_room ? r->answered_room * 2 : 64; /* not a unit */
            uint32_t *more = realloc(r->answered, (size_t)room * sizeof *more);
            if (!more) return err_nomem(e);
            r->answered = more;
            r->answered_room = room;
        }
        r->answered[r->answered_n++] = q->request;
    }
    replica_free_seq(r, q);
    return ERR_OK;
}

/* The next request or preempted sequence in line; NULL: memory is exhausted. It stays in line until taken. */
static struct replica_seq *front(struct replica *r)
{
    if (r->preempted_n > 0) return r->preempted[r->preempted_n - 1];
    struct replica_seq *q = calloc(1, sizeof *q);
    if (!q) return NULL;
    const struct workload_request *w = &r->setup->work->request[r->waiting_head];
    q->request = r->waiting_head;
    q->first = true;
    q->target = w->prompt_tokens;
    q->wanted = w->output_tokens;
    return q;
}

static void put_back(struct replica *r, struct replica_seq *q)
{
    if (r->preempted_n == 0 || r->preempted[r->preempted_n - 1] != q) replica_free_seq(r, q);
}

static enum err_code enter(struct replica *r, struct replica_seq *q, struct err *e)
{
    struct simulate_record *x = &r->record[q->request];
    if (r->preempted_n > 0) {
        r->preempted_n--;
    } else {
        r->waiting_head = r->link[q->request];
        r->waiting_n--;
        r->unfinished[q->request] = (uint16_t)r->setup->work->samples;
        x->start_s = r->clock_s;
        x->cached_tokens = q->done;
    }
    return replica_push(&r->running, &r->running_n, &r->room, q) ? ERR_OK : err_nomem(e);
}

/* Sequences that a request or preempted sequence at the front will have in the batch. */
static int64_t front_seqs(const struct replica *r) { return r->preempted_n > 0 ? 1 : r->setup->work->samples; }

/* One from the front with at most `most` tokens of its prompt, leaving `spare` blocks; *entered false: it has to wait.
 * whole: all of its prompt must be within `most`, or it is the only one. */
static enum err_code admit(struct replica *r, int64_t most, int64_t spare, bool whole, bool only, bool *entered,
                           struct err *e)
{
    const struct simulate_setup *s = r->setup;
    *entered = false;
    if (r->preempted_n + r->waiting_n == 0) return ERR_OK;
    int64_t coming = 0; /* samples that those in prefill will fork */
    for (int64_t i = 0; s->work->samples > 1 && i < r->running_n; i++)
        if (r->running[i]->first && r->running[i]->generated == 0) coming += s->work->samples - 1;
    if (r->running_n + r->coming_n + coming + front_seqs(r) > s->max_seqs) return ERR_OK;
    struct replica_seq *q = front(r);
    if (!q) return err_nomem(e);
    if (q->swapped > 0) {
        *entered = replica_comes_back(r, q, most, spare);
        return *entered ? enter(r, q, e) : ERR_OK;
    }
    if (s->memory == SIMULATE_PAGED) {
        if (s->prefix_cache) attach(r, q);
    } else if (!regions_take(&r->regions, reserve(s, request_of(r, q)->prompt_tokens, q->wanted), &q->region)) {
        put_back(r, q);
        return ERR_OK;
    }
    const bool loads = q->load > 0 && !whole; /* it is computed when that is there */
    const int64_t left = q->target - q->done - q->load, piece = loads ? 0 : whole || left < most ? left : most;
    const int64_t mark = spare + (r->running_n > 0 ? (int64_t)(s->watermark_frac * (double)s->blocks) : 0);
    /* a cache that leaves, or is loaded, holds its blocks: no prompt is begun that they might not let end */
    const int64_t wanted = r->prefills || loads ? left : piece;
    const bool room =
        s->memory != SIMULATE_PAGED || paged_need(&r->pool, &q->kv, q->load + wanted) + mark <= r->pool.idle;
    if ((whole && left > most && !only) || !room || !replica_grow(r, q, q->load + piece)) {
        let_go(r, q);
        put_back(r, q);
        return ERR_OK;
    }
    q->piece = (int32_t)piece;
    if (q->load > 0 && r->preempted_n == 0) r->record[q->request].loaded_tokens = q->load;
    if (q->load > 0) replica_load_tier(r, q, !loads);
    *entered = true;
    return enter(r, q, e);
}

/* Blocks that decoding k tokens further takes. */
int64_t replica_need(const struct replica *r, int64_t k)
{
    int64_t n = 0;
    for (int64_t i = 0; i < r->running_n; i++)
        if (replica_ready(r->running[i]))
            n += paged_need(&r->pool, &r->running[i]->kv, replica_more(r, r->running[i], k));
    return n;
}

/* ---- what a step holds ---- */

static enum err_code make_room(struct replica *r, struct err *e)
{
    bool any = true;
    if (r->setup->memory != SIMULATE_PAGED) return ERR_OK;
    while (any && replica_need(r, 1) > r->pool.idle) TRY(preempt(r, 0, &any, e));
    return ERR_OK;
}

static int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }

/* Tokens of its prompt that are not in this step or before it. */
static int64_t rest_of(const struct replica_seq *q) { return q->target - q->done - q->piece; }

/* Whether a piece of q fits beside what those that decode will take; those behind it may leave for it. */
static bool piece_fits(const struct replica *r, const struct replica_seq *q, int64_t piece)
{
    return r->setup->memory != SIMULATE_PAGED ||
           paged_need(&r->pool, &q->kv, piece) + replica_need(r, 1) <= r->pool.idle;
}

/* Whether the rest of its prompt is kept free for q: where a cache leaves, and behind a load, which holds blocks while
 * nothing is computed in them, so that loads could take all of them and none go on. */
static bool reserves(const struct replica *r, const struct replica_seq *q)
{
    return !q->decoding && (r->prefills || q->ready_s > 0);
}

static enum err_code plan_chunked(struct replica *r, struct err *e)
{
    /* a piece is of one group, and no longer than its part of the step */
    const int64_t one = r->setup->budget_tokens / (r->setup->groups > 1 ? r->setup->groups : 1);
    const int64_t before = r->sums.preemptions;
    bool entered = true;
    TRY(make_room(r, e));
    int64_t left = r->setup->budget_tokens - (r->decoding_n - r->flying_n) * r->judged;
    for (int64_t i = 0; i < r->running_n; i++) { /* prompts that are in part computed */
        struct replica_seq *q = r->running[i];
        if (q->decoding || left <= 0 || q->ready_s > r->clock_s) continue;
        const int64_t piece = least(q->target - q->done, least(left, one));
        bool any = true;
        if (piece <= 0) continue; /* its last one is under way */
        while (any && r->running_n > i && r->running[i] == q && !piece_fits(r, q, piece)) TRY(preempt(r, i, &any, e));
        if (r->running_n <= i || r->running[i] != q) break;
        if (!any && !piece_fits(r, q, piece)) continue;
        if (!replica_grow(r, q, piece)) return err_nomem(e);
        q->piece = (int32_t)piece;
        left -= piece;
    }
    int64_t spare = r->setup->memory == SIMULATE_PAGED ? replica_need(r, 1) : 0;
    for (int64_t i = 0; i < r->running_n; i++)
        if (reserves(r, r->running[i])) spare += paged_need(&r->pool, &r->running[i]->kv, rest_of(r->running[i]));
    while (entered && left > 0 && r->sums.preemptions == before) {
        TRY(admit(r, least(left, one), spare, false, false, &entered, e));
        if (!entered) break;
        const struct replica_seq *q = r->running[r->running_n - 1];
        left -= q->decoding ? r->judged : q->piece;
        if (q->decoding || reserves(r, q))
            spare += paged_need(&r->pool, &q->kv, q->decoding ? replica_more(r, q, 1) : rest_of(q));
    }
    return r->sums.preemptions == before ? replica_receive(r, spare, e) : ERR_OK;
}

/* Those that the host has, as long as there is room; then all decode. */
static enum err_code plan_return(struct replica *r, struct err *e)
{
    const int64_t before = r->sums.preemptions;
    bool entered = true;
    TRY(make_room(r, e));
    while (entered && r->sums.preemptions == before && r->preempted_n > 0 &&
           r->preempted[r->preempted_n - 1]->swapped > 0)
        TRY(admit(r, r->setup->budget_tokens, replica_need(r, 1), true, false, &entered, e));
    return ERR_OK;
}

static enum err_code plan_fcfs(struct replica *r, struct err *e)
{
    int64_t left = r->setup->budget_tokens;
    bool entered = true, any = false;
    if (r->preempted_n > 0 && r->preempted[r->preempted_n - 1]->swapped > 0) return plan_return(r, e);
    while (entered && left > 0) {
        TRY(admit(r, left, 0, true, !any, &entered, e));
        if (!entered) break;
        any = true;
        left -= r->running[r->running_n - 1]->piece;
    }
    return any ? ERR_OK : make_room(r, e);
}

/* A batch of whoever waits, as many as fit when all are as long as the longest. */
static enum err_code plan_static(struct replica *r, struct err *e)
{
    const struct simulate_setup *s = r->setup;
    int64_t prompt = 0, output = 0;
    if (r->running_n > 0) return ERR_OK;
    while (r->running_n < s->max_seqs && r->waiting_n > 0) {
        const struct workload_request *w = &s->work->request[r->waiting_head];
        const int64_t p = w->prompt_tokens > prompt ? w->prompt_tokens : prompt,
                      o = w->output_tokens > output ? w->output_tokens : output;
        if ((r->running_n + 1) * replica_blocks(r, p + o) > s->blocks) break;
        struct replica_seq *q = front(r);
        if (!q) return err_nomem(e);
        prompt = p;
        output = o;
        TRY(enter(r, q, e));
    }
    for (int64_t i = 0; i < r->running_n; i++) {
        struct replica_seq *q = r->running[i];
        q->target = q->piece = (int32_t)prompt;
        q->wanted = (int32_t)output;
        if (!replica_grow(r, q, prompt)) return err_nomem(e);
    }
    return ERR_OK;
}

enum err_code replica_plan(struct replica *r, struct err *e)
{
    TRY(replica_moved(r, e));
    switch (r->setup->policy) {
    case SIMULATE_STATIC: return plan_static(r, e);
    case SIMULATE_FCFS: return plan_fcfs(r, e);
    case SIMULATE_CHUNKED: break;
    }
    return plan_chunked(r, e);
}
