/* mixed -- the operators of a step that decodes some sequences and prefills pieces of the prompts of others.
 *
 * Selective batching: what works on tokens (products, norms, experts, head) takes the tokens of all sequences together,
 * as one operator; what works on a sequence by itself (attention, its index, absorption and expansion of latents,
 * scans) is one operator for the sequences that decode and one for the pieces. Their work is linear in a few sums over
 * the sequences, each of an expression in T and S of one: pairs, keys, contexts, chunks of a scan. So a step costs what
 * its layer kinds cost, whatever the number of sequences. Derivation: MODEL.md "Mixed steps". Source: Orca, OSDI 2022,
 * section 3.2; Sarathi-Serve, arXiv 2403.02310. */
#ifndef RIDGE_COST_MIXED_H
#define RIDGE_COST_MIXED_H

#include "calc/cost/cost.h"

/* Sequences that decode a token, or judge drafted ones (T of each the same, latent attention absorbed); pieces of
 * prompts (T tokens that end at context S, the S-T before them cached; latent attention expanded). */
enum mixed_part { MIXED_DECODE, MIXED_PREFILL, MIXED_PARTS };

struct cost_mixed {
    struct cost_ops ops; /* in the sums' symbols; names of what a part does by itself begin with the part's */
    struct cost_sums part[MIXED_PARTS];
    const struct sym *rows;   /* tokens of the step */
    const struct sym *others; /* a symbol: tokens of the other attention groups; NULL: there are none */
};

/* cost_build_mixed -- the operators of a mixed step of one attention group of a layout, of all its stages, symbolic as
 * those of cost_build_layout. The output head makes a row for each sequence, pieces that are not the last of their
 * prompt included, as engines do; sequences that decode `decode_tokens` >= 1 tokens in a step have a row for each (they
 * judge drafts), at contexts that end at S. Experts have the tokens of this group and of the others. Of an
 * encoder-decoder T and S of a sequence have its source in front, X tokens that the model states; a piece of it is that
 * share of the encoder's work. Errors: ERR_USAGE
 * a model that settles blocks of tokens, a draft head, or a free layout; as cost_build_layout; ERR_NOMEM. Cost: O(layer
 * kinds).
 */
enum err_code cost_build_mixed(struct arena *a, struct sym_ctx *c, const struct cost_symbols *y, const struct model *m,
                               const struct cost_conventions *v, const struct cost_layout *l, int64_t decode_tokens,
                               struct cost_mixed *out, struct err *e);

/* cost_bind_mixed -- numbers of the model and of one rank of the layout into operators and sums; T, S and r stay.
 * Errors: as cost_bind_layout. */
enum err_code cost_bind_mixed(struct arena *a, struct sym_ctx *c, const struct cost_symbols *y, const struct model *m,
                              const struct cost_layout *l, struct cost_mixed *mixed, struct err *e);

#endif
