/* mix -- a step that decodes some sequences and prefills pieces of other prompts, from running sums over its sequences.
 *
 * A sequence is added to a mix (or taken out) in O(layer kinds), and a step is priced in O(operators of all layer
 * kinds), however many sequences it has: the sums are of pairs, keys, contexts and chunks of scans (cost/mixed.h),
 * exact below 2^53. Sequences that only decode grow by a token a step; those beyond every window grow together
 * (mix_advance). Fidelities and memory are those of step.h. A prompt in pieces is the sum of its pieces' steps.
 * Derivation: MODEL.md "Mixed steps". */
#ifndef RIDGE_TIME_MIX_H
#define RIDGE_TIME_MIX_H

#include "calc/cost/mixed.h"
#include "calc/time/step.h"

/* What a step yields. Bytes are per GPU; memory is that of the sequences in the step alone. */
#define MIX_VALUES(X)                                                                                                  \
    X(step_s)                                                                                                          \
    X(flops)                                                                                                           \
    X(bytes)                                                                                                           \
    X(compute_s) /* demand on the matrix unit alone */                                                                 \
    X(memory_s)                                                                                                        \
    X(link_s)                                                                                                          \
    X(host_s)           /* reading weights from the host alone */                                                      \
    X(kv_bytes)         /* cache of its sequences after the step */                                                    \
    X(state_bytes)      /* of recurrent layers */                                                                      \
    X(activation_bytes) /* largest operator's inputs and outputs beside the residual stream */                         \
    X(memory_bytes)     /* weights + towers + the three */

enum mix_value {
#define X(name) MIX_##name,
    MIX_VALUES(X)
#undef X
        MIX_VALUES_N
};

struct mix_plan; /* compiled; lives in the arena; evaluates one mix at a time */

/* mix_compile -- for the model, device, ranks, fidelity, conventions and pass_tokens of a setup; its other members
 * count nothing. Errors: as step_compile and cost_build_mixed. */
enum err_code mix_compile(struct arena *a, const struct step_setup *setup, struct mix_plan **out, struct err *e);

bool mix_timed(const struct mix_plan *p); /* false: the device has no known peak rate, times mean nothing */

/* A step: sums over its sequences. Copied by mix_copy; two mixes of one plan may exist side by side. */
struct mix {
    struct mix_plan *plan;
    double *sum[MIXED_PARTS];
    double *others_tokens; /* of the other attention groups */
};

/* mix_open -- an empty step. mix_clear -- empty it. mix_copy -- of the same plan. Errors: ERR_NOMEM. */
enum err_code mix_open(struct arena *a, struct mix_plan *p, struct mix *out, struct err *e);
void mix_clear(struct mix *x);
void mix_copy(struct mix *to, const struct mix *from);

/* mix_decode -- add n sequences that decode a token, their contexts, it included, `context` tokens; of a plan with
 * pass_tokens so many tokens each, the last of them at `context`, a row of logits for every one (a verify pass).
 * mix_prefill -- add n pieces of `tokens` tokens behind `prefix` cached ones. n < 0 takes them out again. Cost: O(layer
 * kinds). */
void mix_decode(struct mix *x, double n, double context);
void mix_prefill(struct mix *x, double n, double tokens, double prefix);

/* mix_others -- tokens that the other attention groups have in the step, which go to the experts with this one's; a
 * step takes what its busiest group takes, so that is the one to add. 0 where there is one group. mix_scale -- `factor`
 * times the sequences of a part. Cost: O(1), O(layer kinds). */
void mix_others(struct mix *x, double tokens);
void mix_scale(struct mix *x, enum mixed_part part, double factor);

/* mix_share -- a step of the sequences of all attention groups becomes that of the busiest of so many: ceil(n/groups)
 * of the n that decode, and of the n pieces, alike; the rest is of the others. Cost: O(layer kinds). */
void mix_share(struct mix *x, double groups);

/* mix_settled_tokens -- the context from which on all that a decoding sequence adds grows evenly: the largest window (2
 * without one); infinite where keys are in blocks. mix_period -- by so many tokens: 1; ranks that share a context, of
 * which one has each new token. mix_advance -- n decoding sequences at such contexts are a token further; exact where
 * each goes on by whole periods. Others are taken out and added. Cost: O(layer kinds), whatever n. */
double mix_settled_tokens(const struct mix_plan *p);
int64_t mix_period(const struct mix_plan *p);
void mix_advance(struct mix *x, double n);

/* mix_add -- the sequences of another mix of the plan, `times` over; a fraction is so much of each sum. Cost: O(layer
 * kinds). */
void mix_add(struct mix *to, const struct mix *from, double times);

/* mix_within -- whether no sum of x is above that of y, of the same plan: a step of x is no longer. Cost: O(layer
 * kinds). */
bool mix_within(const struct mix *x, const struct mix *y);

double mix_tokens(const struct mix *x);    /* of the step, those of other groups not included */
double mix_sequences(const struct mix *x); /* in it */

/* mix_mean -- sequences of a part, and the tokens and contexts that each has on average (NAN of none). */
struct mix_mean {
    double sequences, tokens, context;
};
struct mix_mean mix_mean(const struct mix *x, enum mixed_part part);

/* mix_eval -- the values of a step. Cost: O(operators of all layer kinds). */
void mix_eval(const struct mix *x, double out[MIX_VALUES_N]);

/* mix_prompt -- a prompt of `tokens` tokens in pieces of `chunk`, each a step of its own: sums of times, flops and
 * bytes over its steps, memory of the largest. scratch: any mix of the plan, emptied. Cost: tokens/chunk steps. */
void mix_prompt(struct mix *scratch, double tokens, double chunk, double out[MIX_VALUES_N]);

/* mix_pass_of -- the operators of a plan, for whoever prices each anew; borrowed. mix_sums -- where the values of its
 * symbols are, in_n of them; until the mix changes. */
struct step_pass mix_pass_of(const struct mix_plan *p);
const double *const *mix_sums(const struct mix *x);

/* mix_stages -- of the layout of a plan. mix_eval_stages -- seconds that each of them takes for the step's sequences,
 * one batch, what it hands to the next included: out of mix_stages. Of mix_eval step_s is their sum, the way of the
 * batch through all; work and seconds by resource are those of the stage that has most, memory is the fullest's. Cost:
 * mix_eval for each different stage. */
int64_t mix_stages(const struct mix_plan *p);
void mix_eval_stages(const struct mix *x, double *out);

/* mix_ops -- the operators of a step. Errors: ERR_NOMEM. */
enum err_code mix_ops(struct arena *a, const struct mix *x, struct step_op **out, size_t *out_n, struct err *e);

#endif
