/* bank_scale -- makers of the fifth set, one prototype each: drafts and trees (bank_speculate.c, bank_draft.c), passes
 * of many tokens (bank_batch.c), ranks that share a model (bank_ranks.c), training at scale (bank_train.c). All as
 * `make` of struct exercise. */
#ifndef RIDGE_LEARN_BANK_SCALE_H
#define RIDGE_LEARN_BANK_SCALE_H

#include "calc/learn/bank_arch.h"

BANK_MAKER(bank_draft_acceptance);
BANK_MAKER(bank_draft_residual);
BANK_MAKER(bank_draft_tokens);
BANK_MAKER(bank_draft_tree);

BANK_MAKER(bank_draft_speedup);
BANK_MAKER(bank_draft_worth);
BANK_MAKER(bank_draft_ridge);
BANK_MAKER(bank_draft_experts);

BANK_MAKER(bank_batch_waves);
BANK_MAKER(bank_batch_chunks);
BANK_MAKER(bank_batch_first_token);
BANK_MAKER(bank_batch_diffusion);

BANK_MAKER(bank_ranks_sums);
BANK_MAKER(bank_ranks_cache);
BANK_MAKER(bank_ranks_latents);
BANK_MAKER(bank_ranks_bubble);
BANK_MAKER(bank_ranks_dispatch);

BANK_MAKER(bank_train_mfu);
BANK_MAKER(bank_train_zero);

#endif
