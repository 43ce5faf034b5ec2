#include "calc/learn/bank_scale.h"

#define SET "5 scale"
#define SEE_DRAFT "ridge estimate -m llama-3.1-70b --draft llama-3.2-1b --accept 0.8 -g h100-sxm:4 --batch 1..128*2"
#define SEE_TREE "ridge estimate -m llama-3.1-8b --draft llama-3.2-1b --accept 0.7 --tree 4x2x1 -g h100-sxm"
#define SEE_PLAN "ridge plan --layouts -m deepseek-v3 -g h200-sxm:16 --nodes 2"
#define SEE_TRAIN "ridge estimate -m llama-3.1-8b -g h200-sxm:8 --train 1e12 --zero 1"
#define SEE_MIX "ridge estimate -m llama-3.1-8b -g h100-sxm --mix decode=32@1500,prefill=512@1024"
#define SEE_DIFFUSION "ridge estimate -m llada-8b -g h200-sxm -b 1..64*2"
#define SEE_VERIFY "ridge explain experts"

static const struct exercise ROWS[] = {
    {"draft-acceptance", SET, "how often a drafted token is kept", SEE_DRAFT, bank_draft_acceptance},
    {"draft-residual", SET, "what takes the place of a refused token", SEE_DRAFT, bank_draft_residual},
    {"draft-tokens", SET, "tokens that a step of drafts yields", SEE_DRAFT, bank_draft_tokens},
    {"draft-speedup", SET, "how much faster drafts decode", SEE_DRAFT, bank_draft_speedup},
    {"draft-worth", SET, "the acceptance behind a measured speed-up", SEE_DRAFT, bank_draft_worth},
    {"draft-tree", SET, "tokens that a tree of drafts yields", SEE_TREE, bank_draft_tree},
    {"verify-ridge", SET, "the batch up to which judging drafts is free", SEE_DRAFT, bank_draft_ridge},
    {"verify-experts", SET, "how many more experts a pass of drafts reads", SEE_VERIFY, bank_draft_experts},
    {"tile-waves", SET, "the part of the peak that waves of tiles leave", NULL, bank_batch_waves},
    {"chunk-cache", SET, "what a prompt in pieces reads of its own cache", "ridge explain attention",
     bank_batch_chunks},
    {"chunk-first-token", SET, "the first token of a prompt beside sequences that decode", SEE_MIX,
     bank_batch_first_token},
    {"diffusion-batch", SET, "what settling several tokens gains in a batch", SEE_DIFFUSION, bank_batch_diffusion},
    {"rank-sums", SET, "bytes that tensor-parallel GPUs send",
     "ridge explain mlp_all_reduce -m llama-3.1-70b -g h100-sxm:8 -b 64", bank_ranks_sums},
    {"rank-cache", SET, "the cache of a GPU when heads are split", "ridge explain kv_write", bank_ranks_cache},
    {"rank-latents", SET, "latents of a GPU, with heads or sequences split", SEE_PLAN, bank_ranks_latents},
    {"stage-bubble", SET, "how long pipeline stages idle", SEE_PLAN, bank_ranks_bubble},
    {"expert-dispatch", SET, "bytes that tokens take to their experts and back", SEE_PLAN, bank_ranks_dispatch},
    {"training-mfu", SET, "the part of the peak that training uses", SEE_TRAIN, bank_train_mfu},
    {"training-zero", SET, "what a device holds when copies share their state", SEE_TRAIN, bank_train_zero},
};

const struct exercise *bank_scale(size_t *n)
{
    *n = sizeof ROWS / sizeof ROWS[0];
    return ROWS;
}
