/* replica_moves -- caches that leave a replica: for the host and back, and for a replica that decodes; of replica.h. */
#include <math.h>
#include <stdlib.h>

#include "calc/serve/replica_parts.h"

/* ---- the host ---- */

/* Seconds in which all groups together copy so many bytes. */
static double copy_s(const struct replica *r, double bytes)
{
    const int64_t groups = r->setup->groups > 1 ? r->setup->groups : 1;
    return bytes / (r->setup->swap.bytes_per_s * (double)groups);
}

static double host_bytes(const struct replica *r, int64_t tokens)
{
    return (double)replica_blocks(r, tokens) * r->setup->swap.block_bytes;
}

void replica_lose(struct replica *r, struct replica_seq *q)
{
    const struct simulate_swap *s = &r->setup->swap;
    if (r->setup->memory != SIMULATE_PAGED || q->stored == 0) return;
    const double bytes = host_bytes(r, q->stored);
    mix_clear(&r->scratch);
    mix_prefill(&r->scratch, 1, q->stored, 0);
    r->sums.recompute_would_s += replica_price_s(r, &r->scratch);
    r->sums.swap_would_s += 2 * copy_s(r, bytes);
    if (r->setup->preemption != SIMULATE_SWAP || !(r->host_bytes + bytes <= s->host_bytes)) return;
    r->host_bytes += bytes;
    r->copy_s += copy_s(r, bytes);
    r->sums.swaps++;
    r->sums.swapped_bytes += bytes;
    q->swapped = q->stored;
    q->resumes = q->decoding;
}

bool replica_comes_back(struct replica *r, struct replica_seq *q, int64_t most, int64_t spare)
{
    const int64_t left = q->target - q->swapped, piece = q->resumes ? 0 : left < most ? left : most;
    const int64_t mark =
        spare + (r->running_n > 0 ? (int64_t)(r->setup->watermark_frac * (double)r->setup->blocks) : 0);
    if (paged_need(&r->pool, &q->kv, q->swapped + (q->resumes ? r->judged : piece)) + mark > r->pool.idle ||
        !replica_grow(r, q, q->swapped + piece))
        return false;
    const double bytes = host_bytes(r, q->swapped);
    r->host_bytes -= bytes;
    r->copy_s += copy_s(r, bytes);
    r->sums.swapped_bytes += bytes;
    r->sums.swapped_back++;
    q->done = q->swapped;
    q->piece = (int32_t)piece;
    replica_store(r, q, q->swapped);
    q->swapped = 0;
    if (q->resumes) replica_start_decoding(r, q);
    return true;
}

/* ---- the host's tier of the prefix cache ---- */

/* Most recently used: taken and given back. */
static void touch(struct replica *r, uint64_t hash)
{
    if (paged_attach(&r->tier, &r->tier_one, hash) == ERR_OK) paged_drop(&r->tier, &r->tier_one);
}

void replica_remember(struct replica *r, uint64_t hash)
{
    if (r->tier.blocks == 0 || hash == 0) return;
    if (paged_has(&r->tier, hash)) {
        touch(r, hash);
        return;
    }
    if (paged_grow(&r->tier, &r->tier_one, r->setup->block_tokens) != ERR_OK) return;
    paged_name(&r->tier, &r->tier_one, 0, hash);
    paged_drop(&r->tier, &r->tier_one);
    r->sums.hosted_bytes += r->setup->tier.block_bytes;
}

int32_t replica_recall(const struct replica *r, const struct workload_request *w, int64_t n, int64_t most)
{
    const int64_t b = r->setup->block_tokens;
    int64_t m = n;
    if (r->tier.blocks == 0) return 0;
    while (m < most && paged_has(&r->tier, workload_block_hash(r->setup->work, w, b, m))) m++;
    return (int32_t)((m - n) * b);
}

void replica_load_tier(struct replica *r, struct replica_seq *q, bool wait)
{
    const struct simulate_tier *t = &r->setup->tier;
    const struct workload_request *w = &r->setup->work->request[q->request];
    const int64_t b = r->setup->block_tokens, groups = r->setup->groups > 1 ? r->setup->groups : 1;
    const double bytes = (double)(q->load / b) * t->block_bytes, took_s = bytes / (t->bytes_per_s * (double)groups);
    for (int64_t i = q->done / b; i < (q->done + q->load) / b; i++)
        touch(r, workload_block_hash(r->setup->work, w, b, i));
    if (wait) {
        r->copy_s += took_s;
        r->sums.load_wait_s += took_s;
    } else {
        q->ready_s = r->tier_free_s = fmax(r->clock_s, r->tier_free_s) + took_s;
        r->sums.load_wait_s += q->ready_s - r->clock_s;
    }
    r->sums.loads++;
    r->sums.loaded_bytes += bytes;
    q->done += q->load;
    q->stored += q->load;
    r->stored_tokens += q->load;
    q->load = 0;
}

/* ---- the other pool ---- */

enum err_code replica_leave(struct replica *r, struct replica_seq *q, struct err *e)
{
    q->ready_s = (double)INFINITY;
    if (!replica_push(&r->leaving, &r->leaving_n, &r->leaving_room, q)) {
        replica_free_seq(r, q);
        return err_nomem(e);
    }
    return replica_push(&r->handed, &r->handed_n, &r->handed_room, q) ? ERR_OK : err_nomem(e);
}

enum err_code replica_hand(struct replica *r, struct replica *from, struct replica_seq *q, double now_s, struct err *e)
{
    struct replica_seq *f = calloc(1, sizeof *f);
    if (!f) return err_nomem(e);
    *f = (struct replica_seq){.request = q->request,
                              .first = q->first,
                              .target = q->target,
                              .done = q->done,
                              .generated = q->generated,
                              .wanted = q->wanted,
                              .ready_s = (double)INFINITY,
                              .twin = q,
                              .home = from};
    if ((replica_idle(r) && r->clock_s < now_s) || ((r->asleep || replica_idle(r)) && r->clock_s > now_s)) {
        r->clock_s = now_s;
        r->answered_n = 0;
    }
    if (r->pending_n++ == 0)
        r->pending_head = f;
    else
        r->pending_tail->next = f;
    r->pending_tail = f;
    r->record[f->request].decoder = (uint16_t)r->index;
    return ERR_OK;
}

/* When the cache of q will be here, if it may come from now on. */
static double arrive_s(struct replica *r, const struct replica_seq *q)
{
    const struct simulate_pools *p = &r->setup->pools;
    const struct simulate_record *x = &r->record[q->request];
    double v[MIX_VALUES_N], begin_s = r->clock_s, last_s = 0;
    mix_clear(&r->scratch);
    mix_prefill(&r->scratch, 1, q->target, 0);
    mix_eval(&r->scratch, v);
    const double drafts = r->setup->draft.of ? r->setup->draft.kv_bytes_per_token * q->target : 0;
    const double bytes = v[MIX_kv_bytes] + v[MIX_state_bytes] + drafts,
                 took_s = bytes / p->link_bytes_per_s + p->link_latency_s;
    if (p->layers > 0 && !q->twin->resumes) { /* never refused: the other side had room all the time */
        begin_s = x->start_s + (x->first_s - x->start_s) / (double)p->layers;
        last_s = x->first_s + (took_s - p->link_latency_s) / (double)p->layers + p->link_latency_s;
    }
    const double end_s = fmax(fmax(begin_s, q->home->link_free_s) + took_s, last_s);
    q->home->link_free_s = end_s;
    r->sums.transfers++;
    r->sums.transfer_bytes += bytes;
    r->sums.link_busy_s += took_s;
    return end_s;
}

enum err_code replica_receive(struct replica *r, int64_t spare, struct err *e)
{
    const struct simulate_setup *s = r->setup;
    while (r->pending_n > 0 && r->preempted_n == 0) {
        struct replica_seq *q = r->pending_head;
        const int64_t seqs = r->running_n + r->coming_n;
        int64_t more = 0; /* samples that those under way will fork */
        for (int64_t i = 0; s->work->samples > 1 && i < r->coming_n; i++) more += s->work->samples - 1;
        if (seqs + more + s->work->samples > s->max_seqs ||
            paged_need(&r->pool, &q->kv, q->target) + spare > r->pool.idle) {
            for (; q; q = q->next) q->twin->resumes = true; /* had to wait */
            break;
        }
        if (!replica_push(&r->coming, &r->coming_n, &r->coming_room, q)) return err_nomem(e);
        r->pending_head = q->next;
        r->pending_n--;
        if (paged_grow(&r->pool, &q->kv, q->target) != ERR_OK) return err_nomem(e);
        q->ready_s = q->twin->ready_s = arrive_s(r, q);
        r->record[q->request].moved_s = q->ready_s;
        if (q->home->asleep && q->home->clock_s > q->ready_s) q->home->clock_s = q->ready_s;
    }
    return ERR_OK;
}

static enum err_code begin(struct replica *r, struct replica_seq *q, struct err *e)
{
    if (!replica_push(&r->running, &r->running_n, &r->room, q)) {
        replica_free_seq(r, q);
        return err_nomem(e);
    }
    q->twin = NULL;
    q->home = NULL;
    q->next = NULL;
    replica_store(r, q, q->target);
    replica_start_decoding(r, q);
    return replica_fork(r, q, e);
}

enum err_code replica_moved(struct replica *r, struct err *e)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < r->leaving_n; i++) {
        struct replica_seq *q = r->leaving[i];
        if (q->ready_s <= r->clock_s) {
            r->stored_tokens -= q->stored;
            replica_free_seq(r, q);
        } else {
            r->leaving[kept++] = q;
        }
    }
    r->leaving_n = kept;
    enum err_code code = ERR_OK;
    kept = 0;
    for (int64_t i = 0; i < r->coming_n; i++) {
        struct replica_seq *q = r->coming[i];
        if (code == ERR_OK && q->ready_s <= r->clock_s)
            code = begin(r, q, e);
        else
            r->coming[kept++] = q;
    }
    r->coming_n = kept;
    return code;
}

double replica_next_move_s(const struct replica *r)
{
    double first_s = (double)INFINITY;
    for (int64_t i = 0; i < r->coming_n; i++) first_s = fmin(first_s, r->coming[i]->ready_s);
    for (int64_t i = 0; r->tier.blocks > 0 && i < r->running_n; i++)
        if (r->running[i]->ready_s > r->clock_s) first_s = fmin(first_s, r->running[i]->ready_s);
    /* room that is given back matters to a replica that has nothing else to do */
    for (int64_t i = 0; r->asleep && i < r->leaving_n; i++) first_s = fmin(first_s, r->leaving[i]->ready_s);
    return first_s;
}
