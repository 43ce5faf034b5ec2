/* Diffusion models: what a pass of one takes. */
#include "calc/model/model.h"

bool model_passes_whole(const struct model *m) { return m->diffusion && m->block_tokens == 0; }

enum err_code model_set_blocks(struct model *m, int64_t tokens, int64_t passes, struct err *e)
{
    const int64_t block = tokens > 0 ? tokens : m->block_tokens, each = passes > 0 ? passes : m->block_steps;
    if (tokens <= 0 && passes <= 0) return ERR_OK;
    if (!m->diffusion)
        return err_set(e, ERR_USAGE, "%s makes one token a pass: --steps and --block are for diffusion models",
                       m->name);
    if (block == 0)
        return err_set(e, ERR_USAGE, "--steps: %s settles the whole sequence: state the --block that they settle",
                       m->name);
    if (each > block)
        return err_set(e, ERR_USAGE, "--steps %lld are more than the %lld tokens of a block", (long long)each,
                       (long long)block);
    m->block_tokens = block;
    m->block_steps = each;
    return ERR_OK;
}
