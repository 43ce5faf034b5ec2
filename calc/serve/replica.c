#include "calc/serve/replica.h"

#include <math.h>
#include <stdlib.h>

static const struct workload_request *request_of(const struct replica *r, const struct replica_seq *q)
{
    return &r->setup->work->request[q->request];
}

static bool push(struct replica_seq ***list, int64_t *n, int64_t *room, struct replica_seq *q)
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
                        .waiting_head = WORKLOAD_NO_NEXT,
                        .waiting_tail = WORKLOAD_NO_NEXT,
                        .regions = {.size = s->blocks * s->block_tokens}};
    TRY(mix_open(a, s->plan, &r.decode, e));
    TRY(mix_open(a, s->plan, &r.scratch, e));
    TRY(paged_open(a, s->memory == SIMULATE_PAGED ? s->blocks : 1, s->block_tokens, s->prefix_cache, &r.pool, e));
    *out = r;
    return ERR_OK;
}

static void free_seq(struct replica *r, struct replica_seq *q)
{
    paged_release(&r->pool, &q->kv);
    free(q);
}

void replica_close(struct replica *r)
{
    for (int64_t i = 0; i < r->running_n; i++) free_seq(r, r->running[i]);
    for (int64_t i = 0; i < r->preempted_n; i++) free_seq(r, r->preempted[i]);
    free(r->running);
    free(r->preempted);
    free(r->answered);
    regions_close(&r->regions);
}

/* ---- queue ---- */

static int64_t blocks_of(const struct replica *r, int64_t tokens)
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
    return blocks_of(r, tokens) <= s->blocks;
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
    return i * b;
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
static bool grow(struct replica *r, struct replica_seq *q, int64_t more)
{
    return r->setup->memory != SIMULATE_PAGED || paged_grow(&r->pool, &q->kv, more) == ERR_OK;
}

static void store(struct replica *r, struct replica_seq *q, int32_t more)
{
    q->stored += more;
    r->stored_tokens += more;
    if (!r->setup->prefix_cache || !(q->first || q->stored <= request_of(r, q)->prompt_tokens)) return;
    for (const int64_t b = r->setup->block_tokens; (q->named + 1) * b <= q->stored; q->named++)
        paged_name(&r->pool, &q->kv, q->named, workload_block_hash(r->setup->work, request_of(r, q), b, q->named));
}

/* What the prefix cache has of q: it need not be computed, but for one token at least. */
static void attach(struct replica *r, struct replica_seq *q)
{
    const struct workload_request *w = request_of(r, q);
    const int64_t b = r->setup->block_tokens, most = (q->target - 1) / b;
    int64_t n = 0;
    if (w->hash_n == 0 && w->cached_tokens > 0) { /* a trace's own count, blocks not shared */
        n = w->cached_tokens / b < most ? w->cached_tokens / b : most;
        if (!grow(r, q, n * b)) n = 0;
    } else {
        while (n < most && paged_attach(&r->pool, &q->kv, workload_block_hash(r->setup->work, w, b, n)) == ERR_OK) n++;
    }
    q->done = (int32_t)(n * b);
    q->named = n;
    q->stored = q->done;
    r->stored_tokens += q->stored;
}

/* ---- batch ---- */

/* The last that entered leaves: its blocks are free, and it will be computed anew. */
static enum err_code preempt(struct replica *r, struct err *e)
{
    struct replica_seq *q = r->running[--r->running_n];
    if (q->decoding) {
        mix_decode(&r->decode, -1, q->stored + 1);
        r->decoding_n--;
    }
    let_go(r, q);
    q->decoding = false;
    q->piece = 0;
    q->target = request_of(r, q)->prompt_tokens + q->generated;
    r->record[q->request].preemptions++;
    r->sums.preemptions++;
    return push(&r->preempted, &r->preempted_n, &r->preempted_room, q) ? ERR_OK : err_nomem(e);
}

static void start_decoding(struct replica *r, struct replica_seq *q)
{
    q->decoding = true;
    mix_decode(&r->decode, 1, q->stored + 1);
    r->decoding_n++;
}

static enum err_code answer(struct replica *r, struct replica_seq *q, struct err *e)
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
    free_seq(r, q);
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
    if (r->preempted_n == 0 || r->preempted[r->preempted_n - 1] != q) free_seq(r, q);
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
        r->sums.cached_tokens += q->done;
    }
    return push(&r->running, &r->running_n, &r->room, q) ? ERR_OK : err_nomem(e);
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
    if (r->running_n + coming + front_seqs(r) > s->max_seqs) return ERR_OK;
    struct replica_seq *q = front(r);
    if (!q) return err_nomem(e);
    if (s->memory == SIMULATE_PAGED) {
        if (s->prefix_cache) attach(r, q);
    } else if (!regions_take(&r->regions, reserve(s, request_of(r, q)->prompt_tokens, q->wanted), &q->region)) {
        put_back(r, q);
        return ERR_OK;
    }
    const int64_t left = q->target - q->done, piece = whole || left < most ? left : most;
    const int64_t mark = spare + (r->running_n > 0 ? (int64_t)(s->watermark_frac * (double)s->blocks) : 0);
    const bool room = s->memory != SIMULATE_PAGED || paged_need(&r->pool, &q->kv, piece) + mark <= r->pool.idle;
    if ((whole && left > most && !only) || !room || !grow(r, q, piece)) {
        let_go(r, q);
        put_back(r, q);
        return ERR_OK;
    }
    q->piece = (int32_t)piece;
    *entered = true;
    return enter(r, q, e);
}

/* Blocks that decoding k tokens further takes. */
static int64_t need(const struct replica *r, int64_t k)
{
    int64_t n = 0;
    for (int64_t i = 0; i < r->running_n; i++)
        if (r->running[i]->decoding) n += paged_need(&r->pool, &r->running[i]->kv, k);
    return n;
}

/* ---- what a step holds ---- */

static enum err_code make_room(struct replica *r, struct err *e)
{
    if (r->setup->memory != SIMULATE_PAGED) return ERR_OK;
    while (need(r, 1) > r->pool.idle) TRY(preempt(r, e));
    return ERR_OK;
}

static enum err_code plan_chunked(struct replica *r, struct err *e)
{
    const int64_t before = r->sums.preemptions;
    bool entered = true;
    TRY(make_room(r, e));
    int64_t left = r->setup->budget_tokens - r->decoding_n;
    const int64_t idle = r->pool.idle - need(r, 1); /* which those that decode will not take */
    int64_t taken = 0;
    for (int64_t i = 0; i < r->running_n; i++) { /* prompts that are in part computed */
        struct replica_seq *q = r->running[i];
        if (q->decoding || left <= 0) continue;
        const int64_t piece = q->target - q->done < left ? q->target - q->done : left;
        const int64_t blocks = r->setup->memory == SIMULATE_PAGED ? paged_need(&r->pool, &q->kv, piece) : 0;
        if (taken + blocks > idle && r->setup->memory == SIMULATE_PAGED) {
            while (r->running_n > i) TRY(preempt(r, e));
            break;
        }
        if (!grow(r, q, piece)) return err_nomem(e);
        taken += blocks;
        q->piece = (int32_t)piece;
        left -= piece;
    }
    const int64_t spare = r->setup->memory == SIMULATE_PAGED ? need(r, 1) : 0;
    while (entered && left > 0 && r->sums.preemptions == before) {
        TRY(admit(r, left, spare, false, false, &entered, e));
        if (entered) left -= r->running[r->running_n - 1]->piece;
    }
    return ERR_OK;
}

static enum err_code plan_fcfs(struct replica *r, struct err *e)
{
    int64_t left = r->setup->budget_tokens;
    bool entered = true, any = false;
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
        if ((r->running_n + 1) * blocks_of(r, p + o) > s->blocks) break;
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
        if (!grow(r, q, prompt)) return err_nomem(e);
    }
    return ERR_OK;
}

/* ---- times ---- */

static double price(struct replica *r, const struct mix *x)
{
    double v[MIX_VALUES_N];
    struct calibrated_time t;
    mix_eval(x, v);
    if (!r->setup->calibrated) return v[MIX_step_s] + r->setup->overhead_s;
    calibrated_mix_eval(r->setup->calibrated, x, v[MIX_step_s], &t);
    return t.s + r->setup->overhead_s;
}

/* Seconds of the first j of steps that begin with first_s and grow by slope_s. */
static double sum_s(double first_s, double slope_s, double j) { return j * first_s + slope_s * j * (j - 1) / 2; }

/* How far a run of at most k steps may go before until_s, its steps growing evenly: its first step and slope. */
static int64_t straight(struct replica *r, int64_t k, double until_s, double *first_s, double *slope_s)
{
    enum { CALIBRATED_MOST = 8 };
    if (r->setup->calibrated && k > CALIBRATED_MOST) k = CALIBRATED_MOST; /* three points prove nothing of those */
    const double within = r->setup->calibrated ? 1e-3 : 1e-9, left_s = until_s - r->clock_s;
    *first_s = price(r, &r->decode);
    *slope_s = 0;
    if (left_s / *first_s < (double)k) k = (int64_t)fmax(left_s / *first_s, 0) + 1; /* steps only get longer */
    while (k >= 4) {
        const int64_t mid = (k - 1) / 2;
        mix_copy(&r->scratch, &r->decode);
        mix_advance(&r->scratch, (double)r->decoding_n * (double)mid);
        const double mid_s = price(r, &r->scratch);
        mix_advance(&r->scratch, (double)r->decoding_n * (double)(k - 1 - mid));
        const double slope = (price(r, &r->scratch) - *first_s) / (double)(k - 1);
        if (fabs(*first_s + slope * (double)mid - mid_s) <= within * mid_s) {
            *slope_s = slope;
            break;
        }
        k = mid + 1;
    }
    if (k < 4) return 1;
    while (k > 1 && sum_s(*first_s, *slope_s, (double)(k - 1)) >= left_s) {
        int64_t low = 1, high = k - 1; /* the last step begins too late */
        while (low < high) {
            const int64_t at = low + (high - low + 1) / 2;
            if (sum_s(*first_s, *slope_s, (double)(at - 1)) < left_s)
                low = at;
            else
                high = at - 1;
        }
        k = low;
    }
    return k;
}

/* ---- a step ---- */

static int64_t blocks_used(const struct replica *r)
{
    if (r->setup->memory == SIMULATE_PAGED) return r->pool.blocks - r->pool.idle;
    return blocks_of(r, r->regions.used);
}

static void account(struct replica *r, struct simulate_step *x)
{
    struct replica_sums *s = &r->sums;
    const double took_s = x->end_s - x->start_s;
    const double held =
        (double)(r->setup->memory == SIMULATE_PAGED ? x->blocks * r->setup->block_tokens : r->regions.used);
    s->steps += x->steps;
    s->busy_s += took_s;
    s->running_s += took_s * (double)x->running;
    s->stored_s += took_s * (double)x->stored_tokens;
    s->held_s += took_s * held;
    s->blocks_s += took_s * (double)x->blocks;
    s->computed_tokens += (double)x->prefill_tokens;
    if (x->running > s->most_running) s->most_running = x->running;
    if (x->blocks > s->most_blocks) s->most_blocks = x->blocks;
    if (r->setup->step) r->setup->step(r->setup->closure, x);
}

/* The samples of a request whose prompt is computed. */
static enum err_code fork(struct replica *r, struct replica_seq *q, struct err *e)
{
    for (int64_t i = 1; i < r->setup->work->samples; i++) {
        struct replica_seq *f = calloc(1, sizeof *f);
        if (!f) return err_nomem(e);
        *f = *q;
        f->kv = (struct paged_list){0};
        f->region = (struct region){0, 0};
        f->first = false;
        if (r->setup->memory == SIMULATE_PAGED) {
            if (paged_fork(&r->pool, &q->kv, &f->kv) != ERR_OK || !push(&r->running, &r->running_n, &r->room, f)) {
                free_seq(r, f);
                return err_nomem(e);
            }
        } else {
            f->stored = 0;
            free(f);
            return err_set(e, ERR_RANGE, "samples of one prompt share blocks: regions have none");
        }
        r->stored_tokens += f->stored;
        start_decoding(r, f);
    }
    return ERR_OK;
}

/* Pieces are computed; prompts that are complete have their first token, and decode. */
static enum err_code end_pieces(struct replica *r, struct err *e)
{
    int64_t kept = 0;
    const int64_t n = r->running_n;
    for (int64_t i = 0; i < n; i++) {
        struct replica_seq *q = r->running[i];
        const bool piece = q->piece > 0;
        if (piece) {
            q->done += q->piece;
            store(r, q, q->piece);
            q->piece = 0;
        }
        if (!piece || q->done < q->target) {
            r->running[kept++] = q;
            continue;
        }
        struct simulate_record *x = &r->record[q->request];
        q->generated++;
        if (isnan(x->first_s)) x->first_s = r->clock_s;
        if (q->generated >= q->wanted) {
            r->unfinished[q->request] =
                (uint16_t)(r->unfinished[q->request] - (q->generated == 1 ? r->setup->work->samples - 1 : 0));
            TRY(answer(r, q, e));
            continue;
        }
        start_decoding(r, q);
        if (q->generated == 1 && q->first) TRY(fork(r, q, e));
        r->running[kept++] = q;
    }
    for (int64_t i = n; i < r->running_n; i++) r->running[kept++] = r->running[i];
    r->running_n = kept;
    return ERR_OK;
}

/* Those that decoded are k tokens further. */
static enum err_code end_decoding(struct replica *r, int64_t k, struct err *e)
{
    const double settled = mix_settled_tokens(r->setup->plan);
    int64_t kept = 0, even = 0;
    for (int64_t i = 0; i < r->running_n; i++) {
        struct replica_seq *q = r->running[i];
        r->running[kept++] = q;
        if (!q->decoding) continue;
        const bool ends = q->generated + k >= q->wanted, moves = (double)q->stored + 1 >= settled && !ends;
        if (moves)
            even++;
        else
            mix_decode(&r->decode, -1, q->stored + 1);
        store(r, q, (int32_t)k);
        q->generated += (int32_t)k;
        if (!moves && !ends) mix_decode(&r->decode, 1, q->stored + 1);
        if (!ends) continue;
        kept--;
        r->decoding_n--;
        TRY(answer(r, q, e));
    }
    mix_advance(&r->decode, (double)even * (double)k);
    r->running_n = kept;
    if (r->decoding_n == 0) mix_clear(&r->decode);
    return ERR_OK;
}

/* How many steps may be one run: until an answer ends, blocks run out, or lengths do not grow evenly. */
static int64_t run_length(const struct replica *r)
{
    const double settled = mix_settled_tokens(r->setup->plan);
    int64_t k = INT32_MAX;
    for (int64_t i = 0; i < r->running_n; i++) {
        const struct replica_seq *q = r->running[i];
        if (q->wanted - q->generated < k) k = q->wanted - q->generated;
        if ((double)q->stored + 1 < settled) k = 1;
    }
    if (r->setup->memory != SIMULATE_PAGED || k <= 1 || need(r, k) <= r->pool.idle) return k;
    int64_t low = 1;
    while (low + 1 < k) { /* need(low) fits, need(k) does not */
        const int64_t at = low + (k - low) / 2;
        if (need(r, at) <= r->pool.idle)
            low = at;
        else
            k = at;
    }
    return low;
}

static enum err_code decode_run(struct replica *r, double until_s, struct simulate_step *x, struct err *e)
{
    double first_s, slope_s;
    const int64_t k = straight(r, run_length(r), until_s, &first_s, &slope_s);
    for (int64_t i = 0; i < r->running_n; i++)
        if (!grow(r, r->running[i], k)) return err_nomem(e);
    x->steps = k;
    x->blocks = blocks_used(r);
    x->stored_tokens = r->stored_tokens + k * r->decoding_n;
    r->clock_s += sum_s(first_s, slope_s, (double)k);
    x->end_s = r->clock_s;
    account(r, x);
    return end_decoding(r, k, e);
}

static enum err_code prefill_step(struct replica *r, struct simulate_step *x, struct err *e)
{
    const bool together = r->setup->policy == SIMULATE_CHUNKED;
    if (together)
        mix_copy(&r->scratch, &r->decode);
    else
        mix_clear(&r->scratch);
    for (int64_t i = 0; i < r->running_n; i++) {
        struct replica_seq *q = r->running[i];
        if (q->piece > 0) mix_prefill(&r->scratch, 1, q->piece, q->done);
        if (q->decoding && together && !grow(r, q, 1)) return err_nomem(e);
    }
    if (!together) x->decoding = 0;
    x->blocks = blocks_used(r);
    x->stored_tokens = r->stored_tokens + x->decoding + x->prefill_tokens;
    r->clock_s += price(r, &r->scratch);
    x->end_s = r->clock_s;
    account(r, x);
    if (together && r->decoding_n > 0) TRY(end_decoding(r, 1, e));
    return end_pieces(r, e);
}

enum err_code replica_step(struct replica *r, double until_s, struct err *e)
{
    r->answered_n = 0;
    switch (r->setup->policy) {
    case SIMULATE_STATIC: TRY(plan_static(r, e)); break;
    case SIMULATE_FCFS: TRY(plan_fcfs(r, e)); break;
    case SIMULATE_CHUNKED: TRY(plan_chunked(r, e)); break;
    }
    struct simulate_step x = {.replica = r->index,
                              .steps = 1,
                              .start_s = r->clock_s,
                              .decoding = r->decoding_n,
                              .running = r->running_n,
                              .waiting = r->waiting_n + r->preempted_n};
    for (int64_t i = 0; i < r->running_n; i++) {
        x.prefilling += r->running[i]->piece > 0;
        x.prefill_tokens += r->running[i]->piece;
    }
    if (x.prefilling > 0) return prefill_step(r, &x, e);
    if (r->decoding_n == 0) return err_set(e, ERR_RANGE, "a step with nothing in it: a request cannot be served");
    return decode_run(r, until_s, &x, e);
}
