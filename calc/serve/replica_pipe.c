/* replica_pipe -- a replica in stages: several batches are under way, each sequence in one of them; of replica.h. */
#include <math.h>
#include <stdlib.h>

#include "calc/serve/replica_parts.h"

enum err_code replica_pipe_open(struct arena *a, struct replica *r, struct err *e)
{
    r->stages = mix_stages(r->setup->plan);
    if (r->stages == 1) return ERR_OK;
    const size_t n = (size_t)r->stages;
    r->flight = arena_array(a, n, sizeof *r->flight);
    r->stage_free_s = arena_array(a, n, sizeof *r->stage_free_s);
    r->stage_s = arena_array(a, n, sizeof *r->stage_s);
    if (!r->flight || !r->stage_free_s || !r->stage_s) return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        r->flight[i] = (struct replica_flight){.seq = NULL};
        r->stage_free_s[i] = 0;
    }
    return ERR_OK;
}

void replica_pipe_close(struct replica *r)
{
    for (int64_t i = 0; r->flight && i < r->stages; i++) free(r->flight[i].seq);
}

/* ---- a batch begins ---- */

/* One more in a batch: a piece of its prompt, or a token. What is computed of a prompt is so for all batches behind
 * this one, which every stage has after it. */
static enum err_code board(struct replica *r, struct replica_flight *f, struct replica_seq *q, struct err *e)
{
    if (!replica_push(&f->seq, &f->seqs_n, &f->room, q)) return err_nomem(e);
    q->flying++;
    if (q->decoding) {
        if (!replica_grow(r, q, replica_more(r, q, 1))) return err_nomem(e);
        mix_decode(&r->scratch, 1, replica_context(r, q));
        f->step.stored_tokens += r->setup->draft.of ? replica_draw_one(r, q) : 1;
        f->step.decoding++;
        q->flight = f->number;
        r->flying_n++;
        return ERR_OK;
    }
    mix_prefill(&r->scratch, 1, q->piece, q->done);
    f->step.prefilling++;
    f->step.prefill_tokens += q->piece;
    q->done += q->piece;
    replica_store(r, q, q->piece);
    q->piece = 0;
    if (q->done >= q->target) q->flight = f->number;
    return ERR_OK;
}

/* Through all stages, each behind what it does already: begin_i = max(end_(i-1), free_i). The last one drafts. */
static void fly(struct replica *r, struct replica_flight *f, double draft_s)
{
    const struct simulate_setup *s = r->setup;
    double at_s = fmax(r->clock_s, r->host_free_s) + s->overhead_s;
    r->host_free_s = at_s;
    at_s += r->copy_s;
    r->sums.copied_s += r->copy_s;
    r->copy_s = 0;
    mix_eval_stages(&r->scratch, r->stage_s);
    for (int64_t i = 0; i < r->stages; i++) {
        const double took_s = r->stage_s[i] * (s->slower > 0 ? s->slower : 1) + (i == r->stages - 1 ? draft_s : 0);
        at_s = r->stage_free_s[i] = fmax(at_s, r->stage_free_s[i]) + took_s;
        r->sums.stages_busy_s += took_s;
    }
    f->end_s = at_s;
}

static enum err_code launch(struct replica *r, bool *any, struct err *e)
{
    struct replica_flight *f = &r->flight[(r->flight_first + r->flights_n) % r->stages];
    bool pieces = false;
    double stored = 0;
    f->seqs_n = 0;
    f->number = r->launched + 1;
    f->step = (struct simulate_step){.replica = r->index, .steps = 1};
    TRY(replica_plan(r, e));
    for (int64_t i = 0; i < r->running_n; i++) pieces |= r->running[i]->piece > 0;
    const bool together = r->setup->policy == SIMULATE_CHUNKED || !pieces;
    mix_clear(&r->scratch);
    for (int64_t i = 0; i < r->running_n; i++) {
        struct replica_seq *q = r->running[i];
        const bool decodes = together && replica_ready(q);
        if (decodes) stored += (double)q->stored;
        if (decodes || q->piece > 0) TRY(board(r, f, q, e));
    }
    *any = f->seqs_n > 0;
    if (!*any) return ERR_OK;
    r->launched++;
    r->flights_n++;
    fly(r, f, replica_draft_s(r, f->step.decoding, stored, f->step.prefilling, f->step.prefill_tokens));
    return ERR_OK;
}

/* ---- and ends ---- */

static void account(struct replica *r, struct replica_flight *f, double since_s)
{
    struct simulate_step *x = &f->step;
    x->start_s = since_s;
    x->end_s = f->end_s;
    x->running = r->running_n;
    x->waiting = r->waiting_n + r->preempted_n + r->pending_n;
    x->blocks = replica_blocks_used(r);
    x->stored_tokens += r->stored_tokens;
    replica_account(r, x);
}

/* A token, or those that are kept of drafts. */
static enum err_code land_token(struct replica *r, struct replica_seq *q, bool *stays, struct err *e)
{
    const int32_t gain = r->setup->draft.of ? q->gain : 1;
    r->flying_n--;
    replica_store(r, q, gain);
    q->generated += gain;
    *stays = q->generated < q->wanted;
    if (*stays) return ERR_OK;
    r->decoding_n--;
    return replica_answer(r, q, e);
}

static enum err_code land(struct replica *r, struct err *e)
{
    struct replica_flight *f = &r->flight[r->flight_first];
    const double since_s = r->clock_s;
    const int64_t n = r->running_n;
    int64_t kept = 0;
    r->flight_first = (r->flight_first + 1) % r->stages;
    r->flights_n--;
    account(r, f, since_s);
    r->clock_s = f->end_s;
    for (int64_t i = 0; i < f->seqs_n; i++) f->seq[i]->flying--;
    for (int64_t i = 0; i < n; i++) {
        struct replica_seq *q = r->running[i];
        bool stays = true;
        if (q->flight == f->number) {
            q->flight = 0;
            TRY(q->decoding ? land_token(r, q, &stays, e) : replica_end_prompt(r, q, &stays, e));
        }
        if (stays) r->running[kept++] = q;
    }
    for (int64_t i = n; i < r->running_n; i++) r->running[kept++] = r->running[i]; /* samples of a prompt */
    r->running_n = kept;
    return ERR_OK;
}

enum err_code replica_pipe_step(struct replica *r, struct err *e)
{
    bool any = true;
    while (any && r->flights_n < r->stages) TRY(launch(r, &any, e));
    if (r->flights_n > 0) return land(r, e);
    if (!(replica_next_move_s(r) < (double)INFINITY))
        return err_set(e, ERR_RANGE, "a step with nothing in it: a request cannot be served");
    r->asleep = true;
    r->clock_s = replica_next_move_s(r);
    return ERR_OK;
}
