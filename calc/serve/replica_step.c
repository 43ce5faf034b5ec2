/* replica_step -- what a step takes, and what it leaves; of replica.h. */
#include <math.h>
#include <stdlib.h>

#include "calc/serve/replica_parts.h"

/* ---- times ---- */

static double predicted_s(struct replica *r, const struct mix *x)
{
    if (r->setup->groups > 1) {
        mix_copy(&r->share, x);
        mix_share(&r->share, (double)r->setup->groups);
        x = &r->share;
    }
    return engine_any_s(r->setup->server, r->setup->overlapped, r->setup->calibrated, x);
}

double replica_price_s(struct replica *r, const struct mix *x)
{
    return predicted_s(r, x) * (r->setup->slower > 0 ? r->setup->slower : 1) + r->setup->overhead_s;
}

/* Seconds of the first j of steps that begin with first_s and grow by slope_s. */
static double sum_s(double first_s, double slope_s, double j) { return j * first_s + slope_s * j * (j - 1) / 2; }

double replica_price_all_s(struct replica *r, int64_t n)
{
    double all = 0, most_s = 0;
    if (n == 1) return replica_price_s(r, r->now);
    for (int64_t i = 0; i < n; i++) all += r[i].now ? mix_tokens(r[i].now) : 0;
    for (int64_t i = 0; i < n; i++) {
        bool within = !r[i].now; /* another has all that this one has: it is no longer */
        for (int64_t k = 0; k < n && !within; k++)
            within = k != i && r[k].now && mix_within(r[i].now, r[k].now) && (k < i || !mix_within(r[k].now, r[i].now));
        if (within) continue;
        mix_copy(&r[i].share, r[i].now);
        mix_others(&r[i].share, all - mix_tokens(r[i].now));
        most_s = fmax(most_s, replica_price_s(&r[i], &r[i].share));
    }
    return most_s;
}

/* Those that decode, so many tokens further, of n groups. */
static void rewind_all(struct replica *r, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (!r[i].now) continue;
        mix_copy(&r[i].scratch, &r[i].decode);
        r[i].now = &r[i].scratch;
    }
}

static void advance_all(struct replica *r, int64_t n, int64_t steps)
{
    for (int64_t i = 0; i < n; i++)
        if (r[i].now) mix_advance(&r[i].scratch, (double)r[i].decoding_n * (double)steps);
}

/* How far a run of at most k steps may go before until_s, its steps growing evenly: its first step and slope. */
static int64_t straight(struct replica *r, int64_t n, int64_t k, double until_s, double *first_s, double *slope_s)
{
    enum { CALIBRATED_MOST = 8 };
    const bool calibrated = r->setup->calibrated || r->setup->server;
    if (calibrated && k > CALIBRATED_MOST) k = CALIBRATED_MOST; /* three points prove nothing of those */
    const double within = calibrated ? 1e-3 : 1e-9, left_s = until_s - r->clock_s;
    for (int64_t i = 0; i < n; i++) r[i].now = r[i].decoding_n > 0 ? &r[i].decode : NULL;
    *first_s = replica_price_all_s(r, n);
    *slope_s = 0;
    if (left_s / *first_s < (double)k) k = (int64_t)fmax(left_s / *first_s, 0) + 1; /* steps only get longer */
    while (k >= 4) {
        const int64_t mid = (k - 1) / 2;
        rewind_all(r, n);
        advance_all(r, n, mid);
        const double mid_s = replica_price_all_s(r, n);
        advance_all(r, n, k - 1 - mid);
        const double slope = (replica_price_all_s(r, n) - *first_s) / (double)(k - 1);
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

int64_t replica_blocks_used(const struct replica *r)
{
    if (r->setup->memory == SIMULATE_PAGED) return r->pool.blocks - r->pool.idle;
    return replica_blocks(r, r->regions.used);
}

void replica_account(struct replica *r, struct simulate_step *x)
{
    x->stored_tokens -= r->pool.again_tokens; /* what several sequences share is there once */
    replica_count(r, x);
}

void replica_count(struct replica *r, const struct simulate_step *x)
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

enum err_code replica_fork(struct replica *r, struct replica_seq *q, struct err *e)
{
    for (int64_t i = 1; i < r->setup->work->samples; i++) {
        struct replica_seq *f = calloc(1, sizeof *f);
        if (!f) return err_nomem(e);
        *f = *q;
        f->kv = (struct paged_list){0};
        f->region = (struct region){0, 0};
        f->first = false;
        f->sample = (int32_t)i;
        if (r->setup->memory == SIMULATE_PAGED) {
            if (paged_fork(&r->pool, &q->kv, &f->kv) != ERR_OK ||
                !replica_push(&r->running, &r->running_n, &r->room, f)) {
                replica_free_seq(r, f);
                return err_nomem(e);
            }
        } else {
            f->stored = 0;
            free(f);
            return err_set(e, ERR_RANGE, "samples of one prompt share blocks: regions have none");
        }
        r->stored_tokens += f->stored;
        replica_start_decoding(r, f);
    }
    return ERR_OK;
}

enum err_code replica_end_prompt(struct replica *r, struct replica_seq *q, bool *stays, struct err *e)
{
    struct simulate_record *x = &r->record[q->request];
    *stays = false;
    q->generated++;
    if (isnan(x->first_s)) x->first_s = r->clock_s;
    if (q->generated >= q->wanted) {
        r->unfinished[q->request] =
            (uint16_t)(r->unfinished[q->request] - (q->generated == 1 ? r->setup->work->samples - 1 : 0));
        return replica_answer(r, q, e);
    }
    if (r->prefills) return replica_leave(r, q, e);
    *stays = true;
    replica_start_decoding(r, q);
    return q->generated == 1 && q->first ? replica_fork(r, q, e) : ERR_OK;
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
            replica_store(r, q, q->piece);
            q->piece = 0;
        }
        if (!piece || q->done < q->target) {
            r->running[kept++] = q;
            continue;
        }
        bool stays;
        TRY(replica_end_prompt(r, q, &stays, e));
        if (stays) r->running[kept++] = q;
    }
    for (int64_t i = n; i < r->running_n; i++) r->running[kept++] = r->running[i];
    r->running_n = kept;
    return ERR_OK;
}

/* Those that decoded are k tokens further. */
static enum err_code end_decoding(struct replica *r, int64_t k, struct err *e)
{
    const double settled = mix_settled_tokens(r->setup->plan);
    const bool whole = k % mix_period(r->setup->plan) == 0;
    int64_t kept = 0, even = 0;
    for (int64_t i = 0; i < r->running_n; i++) {
        struct replica_seq *q = r->running[i];
        r->running[kept++] = q;
        if (!q->decoding) continue;
        const int64_t gain = r->setup->draft.of ? q->gain : k;
        const bool ends = q->generated + gain >= q->wanted,
                   moves = gain == k && whole && (double)q->stored + 1 >= settled && !ends;
        if (moves)
            even++;
        else
            mix_decode(&r->decode, -1, replica_context(r, q));
        replica_store(r, q, (int32_t)gain);
        q->generated += (int32_t)gain;
        if (!moves && !ends) mix_decode(&r->decode, 1, replica_context(r, q));
        if (!ends) continue;
        kept--;
        r->decoding_n--;
        TRY(replica_answer(r, q, e));
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
    if (r->setup->draft.of) return 1; /* sequences go on by different numbers of tokens */
    for (int64_t i = 0; i < r->running_n; i++) {
        const struct replica_seq *q = r->running[i];
        if (q->wanted - q->generated < k) k = q->wanted - q->generated;
        if ((double)q->stored + 1 < settled) k = 1;
    }
    if (r->setup->memory != SIMULATE_PAGED || k <= 1 || replica_need(r, k) <= r->pool.idle) return k;
    int64_t low = 1;
    while (low + 1 < k) { /* replica_need(low) fits, replica_need(k) does not */
        const int64_t at = low + (k - low) / 2;
        if (replica_need(r, at) <= r->pool.idle)
            low = at;
        else
            k = at;
    }
    return low;
}

/* Of the draft in a step. */
static double draft_s(struct replica *r, const struct simulate_step *x)
{
    double stored = 0;
    for (int64_t i = 0; r->setup->draft.of && i < r->running_n; i++)
        if (r->running[i]->decoding) stored += (double)r->running[i]->stored;
    return replica_draft_s(r, r->decoding_n, stored, x->prefilling, x->prefill_tokens);
}

/* What the next step holds: x without its times. */
static enum err_code begin(struct replica *r, struct simulate_step *x, struct err *e)
{
    r->answered_n = r->handed_n = 0;
    r->asleep = false;
    r->now = NULL;
    TRY(replica_plan(r, e));
    *x = (struct simulate_step){.replica = r->index,
                                .steps = 1,
                                .start_s = r->clock_s,
                                .decoding = r->decoding_n,
                                .running = r->running_n,
                                .waiting = r->waiting_n + r->preempted_n + r->pending_n};
    for (int64_t i = 0; i < r->running_n; i++) {
        x->prefilling += r->running[i]->piece > 0;
        x->prefill_tokens += r->running[i]->piece;
    }
    return ERR_OK;
}

/* Room for x->steps steps of it, all decoding where there are several, and r->now its mix. */
static enum err_code fill(struct replica *r, struct simulate_step *x, struct err *e)
{
    const bool prompts = x->prefilling > 0, together = !prompts || r->setup->policy == SIMULATE_CHUNKED;
    if (!together) x->decoding = 0;
    if (prompts && together) mix_copy(&r->scratch, &r->decode);
    if (prompts && !together) mix_clear(&r->scratch);
    for (int64_t i = 0; i < r->running_n; i++) {
        struct replica_seq *q = r->running[i];
        if (q->piece > 0) mix_prefill(&r->scratch, 1, q->piece, q->done);
        if (q->decoding && together && !replica_grow(r, q, replica_more(r, q, x->steps))) return err_nomem(e);
    }
    const bool draws = x->decoding > 0 && r->setup->draft.of;
    const int64_t made = draws ? replica_draw(r) : x->decoding * x->steps;
    x->blocks = replica_blocks_used(r);
    x->stored_tokens = r->stored_tokens + made + x->prefill_tokens;
    r->now = prompts ? &r->scratch : x->decoding > 0 ? &r->decode : NULL;
    return ERR_OK;
}

/* What it leaves, at r->clock_s. */
static enum err_code end(struct replica *r, const struct simulate_step *x, struct err *e)
{
    if (x->prefilling == 0) return x->decoding > 0 ? end_decoding(r, x->steps, e) : ERR_OK;
    if (r->setup->policy == SIMULATE_CHUNKED && r->decoding_n > 0) TRY(end_decoding(r, 1, e));
    return end_pieces(r, e);
}

static void copied(struct replica *r, double took_s)
{
    r->clock_s += took_s;
    r->sums.copied_s += took_s;
    r->copy_s = 0;
}

static enum err_code decode_run(struct replica *r, double until_s, struct simulate_step *x, struct err *e)
{
    double first_s, slope_s;
    copied(r, r->copy_s);
    const int64_t most = straight(r, 1, run_length(r), until_s, &first_s, &slope_s);
    const int64_t period = mix_period(r->setup->plan);
    x->steps = most > period ? most - most % period : most;
    TRY(fill(r, x, e));
    r->clock_s += sum_s(first_s, slope_s, (double)x->steps) + draft_s(r, x);
    x->end_s = r->clock_s;
    replica_account(r, x);
    return end(r, x, e);
}

static enum err_code prefill_step(struct replica *r, struct simulate_step *x, struct err *e)
{
    TRY(fill(r, x, e));
    const double took_s = r->copy_s + replica_price_s(r, r->now);
    r->sums.copied_s += r->copy_s;
    r->copy_s = 0;
    r->clock_s += took_s;
    if (r->setup->draft.of) r->clock_s += draft_s(r, x);
    x->end_s = r->clock_s;
    replica_account(r, x);
    return end(r, x, e);
}

enum err_code replica_step(struct replica *r, double until_s, struct err *e)
{
    struct simulate_step x;
    if (r->flight) {
        r->answered_n = r->handed_n = 0;
        r->asleep = false;
        return replica_pipe_step(r, e);
    }
    TRY(begin(r, &x, e));
    if (x.prefilling > 0) return prefill_step(r, &x, e);
    if (r->decoding_n == 0) {
        if (r->coming_n + r->leaving_n == 0 && !(replica_next_move_s(r) < (double)INFINITY))
            return err_set(e, ERR_RANGE, "a step with nothing in it: a request cannot be served");
        r->asleep = true;
        r->clock_s = replica_next_move_s(r);
        return ERR_OK;
    }
    return decode_run(r, fmin(until_s, replica_next_move_s(r)), &x, e);
}

/* ---- attention groups ---- */

/* Nobody has anything in a step: until a prefix from the host is there. */
static enum err_code sleep_all(struct replica *r, int64_t n, struct err *e)
{
    double next_s = (double)INFINITY;
    for (int64_t i = 0; i < n; i++) next_s = fmin(next_s, replica_next_move_s(&r[i]));
    if (!(next_s < (double)INFINITY))
        return err_set(e, ERR_RANGE, "a step with nothing in it: a request cannot be served");
    for (int64_t i = 0; i < n; i++) {
        r[i].asleep = true;
        r[i].clock_s = next_s;
    }
    return ERR_OK;
}

enum err_code replica_step_all(struct replica *r, int64_t n, struct simulate_step *x, double until_s, struct err *e)
{
    struct simulate_step all = {.replica = r->index, .steps = 1, .start_s = r->clock_s};
    double took_s = 0, copy_s = 0, drafts_s = 0, slope_s = 0;
    bool prompts = false, any = false;
    for (int64_t i = 0; i < n; i++) {
        TRY(begin(&r[i], &x[i], e));
        prompts = prompts || x[i].prefilling > 0;
        any = any || x[i].prefilling > 0 || x[i].decoding > 0;
    }
    if (!any) return sleep_all(r, n, e);
    for (int64_t i = 0; i < n; i++) {
        copy_s = fmax(copy_s, r[i].copy_s); /* all groups copy their own at once */
        r[i].copy_s = 0;
        until_s = fmin(until_s, replica_next_move_s(&r[i]));
    }
    if (!prompts) {
        const int64_t period = mix_period(r->setup->plan);
        int64_t most = INT32_MAX;
        for (int64_t i = 0; i < n; i++) {
            const int64_t own = r[i].decoding_n > 0 ? run_length(&r[i]) : most;
            most = own < most ? own : most;
        }
        most = straight(r, n, most, until_s - copy_s, &took_s, &slope_s);
        all.steps = most > period ? most - most % period : most;
        took_s = sum_s(took_s, slope_s, (double)all.steps);
    }
    for (int64_t i = 0; i < n; i++) {
        x[i].steps = all.steps;
        TRY(fill(&r[i], &x[i], e));
        drafts_s = fmax(drafts_s, draft_s(&r[i], &x[i]));
    }
    if (prompts) took_s = replica_price_all_s(r, n);
    r->sums.copied_s += copy_s;
    all.end_s = r->clock_s + copy_s + took_s + drafts_s;
    for (int64_t i = 0; i < n; i++) {
        all.decoding += x[i].decoding;
        all.prefilling += x[i].prefilling;
        all.prefill_tokens += x[i].prefill_tokens;
        all.running += x[i].running;
        all.waiting += x[i].waiting;
        all.blocks += x[i].blocks;
        all.stored_tokens += x[i].stored_tokens - r[i].pool.again_tokens;
        r[i].clock_s = all.end_s;
    }
    replica_count(r, &all);
    for (int64_t i = 0; i < n; i++) TRY(end(&r[i], &x[i], e));
    return ERR_OK;
}
