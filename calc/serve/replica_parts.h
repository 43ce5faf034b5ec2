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

/* replica_plan -- who is in the next step: pieces of prompts are set, and a token's room is there for each that
 * decodes. replica_start_decoding -- from the next step on. replica_answer -- a sample is done and leaves; the last of
 * its request ends that. Errors: ERR_NOMEM. */
enum err_code replica_plan(struct replica *r, struct err *e);
void replica_start_decoding(struct replica *r, struct replica_seq *q);
enum err_code replica_answer(struct replica *r, struct replica_seq *q, struct err *e);

#endif
