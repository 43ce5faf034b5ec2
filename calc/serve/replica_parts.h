/* replica_parts -- what replica.c and replica_step.c share. */
#ifndef RIDGE_SERVE_REPLICA_PARTS_H
#define RIDGE_SERVE_REPLICA_PARTS_H

#include "calc/serve/replica.h"

/* replica_push -- at the end of a list of sequences; false: memory is exhausted. replica_free_seq -- with its blocks.
 */
bool replica_push(struct replica_seq ***list, int64_t *n, int64_t *room, struct replica_seq *q);
void replica_free_seq(struct replica *r, struct replica_seq *q);

int64_t replica_blocks(const struct replica *r, int64_t tokens); /* that so many tokens take */

/* replica_need -- blocks that decoding k tokens further takes. replica_grow -- room for `more` tokens behind those of
 * q; false: there is none. replica_store -- tokens are in it; full blocks get names where prefixes are cached. */
int64_t replica_need(const struct replica *r, int64_t k);
bool replica_grow(struct replica *r, struct replica_seq *q, int64_t more);
void replica_store(struct replica *r, struct replica_seq *q, int32_t more);

/* replica_more -- tokens of room that q, which decodes, has to get for k steps; judged ones and those that were not
 * kept leave room behind them. */
int64_t replica_more(const struct replica *r, const struct replica_seq *q, int64_t k);

/* replica_context -- of the last token of q in the next pass, while it decodes. */
static inline double replica_context(const struct replica *r, const struct replica_seq *q)
{
    return (double)(q->stored + r->judged);
}

/* replica_draw -- what each sequence that decodes makes in this step (gain): a token, or what is kept of drafts; all of
 * them. replica_draw_one -- of one. replica_draft_s -- seconds of the draft in a step of `decoding` sequences with
 * `stored` tokens in all, and with these pieces of prompts. */
int64_t replica_draw(struct replica *r);
int64_t replica_draw_one(struct replica *r, struct replica_seq *q);
double replica_draft_s(struct replica *r, int64_t decoding, double stored, int64_t pieces, int64_t tokens);

/* replica_price_s -- seconds of a step. replica_price_all_s -- of n groups that take one together, each with its `now`:
 * those of the group that takes longest, the tokens of the others beside its own at the experts. Times grow with each
 * sum of a mix, so groups of which another has all are not looked at. */
double replica_price_s(struct replica *r, const struct mix *x);
double replica_price_all_s(struct replica *r, int64_t n);

/* replica_lose -- a sequence will lose its cache: whether the host takes it, and what either way takes; before it does.
 * replica_comes_back -- one that the host has, with the tokens of a step, at most `most` of its prompt, leaving `spare`
 * blocks; false: there is no room. */
void replica_lose(struct replica *r, struct replica_seq *q);
bool replica_comes_back(struct replica *r, struct replica_seq *q, int64_t most, int64_t spare);

/* replica_remember -- a block that got its name here is copied to the host's tier. replica_recall -- tokens of the
 * blocks n .. most - 1 of a prompt that the tier has in a row. replica_load_tier -- q, which enters, has its load on
 * the way, or (wait) the next step waits for it. */
void replica_remember(struct replica *r, uint64_t hash);
int32_t replica_recall(const struct replica *r, const struct workload_request *w, int64_t n, int64_t most);
void replica_load_tier(struct replica *r, struct replica_seq *q, bool wait);

/* replica_leave -- a prompt is computed and its sequence goes on elsewhere. replica_moved -- caches that have moved:
 * room is given back, sequences decode. replica_receive -- room for caches from the other pool, leaving `spare` blocks.
 * replica_next_move_s -- when a cache will have moved; infinite: none is under way. Errors: ERR_NOMEM. */
enum err_code replica_leave(struct replica *r, struct replica_seq *q, struct err *e);
enum err_code replica_moved(struct replica *r, struct err *e);
enum err_code replica_receive(struct replica *r, int64_t spare, struct err *e);
double replica_next_move_s(const struct replica *r);

/* replica_end_prompt -- the prompt of q is computed: its first token; *stays: in the batch. replica_pipe_open --
 * stages; replica_pipe_close. replica_pipe_step -- batches begin until as many are under way as there are stages, or
 * nobody is left for one; then the first of them ends. Errors: ERR_NOMEM. */
enum err_code replica_end_prompt(struct replica *r, struct replica_seq *q, bool *stays, struct err *e);
enum err_code replica_pipe_open(struct arena *a, struct replica *r, struct err *e);
void replica_pipe_close(struct replica *r);
enum err_code replica_pipe_step(struct replica *r, struct err *e);

/* replica_ready -- whether q decodes and is in no batch under way. */
static inline bool replica_ready(const struct replica_seq *q) { return q->decoding && q->flying == 0; }

/* replica_blocks_used -- replica_account -- a step or batch in the sums, and to whoever watches; replica_count -- of
 * stored tokens that are counted once already. */
int64_t replica_blocks_used(const struct replica *r);
void replica_account(struct replica *r, struct simulate_step *x);
void replica_count(struct replica *r, const struct simulate_step *x);

/* replica_fork -- the samples of a request whose prompt is computed. Errors: ERR_NOMEM. */
enum err_code replica_fork(struct replica *r, struct replica_seq *q, struct err *e);

/* replica_plan -- who is in the next step: pieces of prompts are set, and a token's room is there for each that
 * decodes. replica_start_decoding -- from the next step on. replica_answer -- a sample is done and leaves; the last of
 * its request ends that. Errors: ERR_NOMEM. */
enum err_code replica_plan(struct replica *r, struct err *e);
void replica_start_decoding(struct replica *r, struct replica_seq *q);
enum err_code replica_answer(struct replica *r, struct replica_seq *q, struct err *e);

#endif
