/* simulate_check -- whether a setup says what can be simulated. */
#include <math.h>

#include "calc/serve/simulate.h"

static enum err_code check_moves(const struct simulate_setup *s, struct err *e)
{
    const struct simulate_pools *p = &s->pools;
    const struct simulate_swap *w = &s->swap;
    if (p->prefill < 0 || p->prefill >= s->replicas)
        return err_set(e, ERR_RANGE, "%lld of %lld replicas that only prefill: at least one has to decode",
                       (long long)p->prefill, (long long)s->replicas);
    if (p->prefill > 0 && (s->policy != SIMULATE_CHUNKED || s->memory != SIMULATE_PAGED))
        return err_set(e, ERR_RANGE, "replicas of two pools compute prompts in pieces and have paged caches");
    if (p->prefill > 0 && (!(p->link_bytes_per_s > 0) || !(p->link_latency_s >= 0) || p->layers < 0))
        return err_set(e, ERR_RANGE, "a link has a rate above 0 and a latency not below it");
    if (s->preemption != SIMULATE_SWAP) return ERR_OK;
    if (s->policy == SIMULATE_STATIC || s->memory != SIMULATE_PAGED)
        return err_set(e, ERR_RANGE, "blocks are swapped of a paged cache, and a static batch loses none");
    if (!(w->bytes_per_s > 0) || !(w->host_bytes >= 0) || !(w->block_bytes > 0))
        return err_set(e, ERR_RANGE, "swapping needs a rate and a block of bytes above 0, and room not below it");
    return ERR_OK;
}

static enum err_code check_draft(const struct simulate_setup *s, struct err *e)
{
    const struct simulate_draft *d = &s->draft;
    if (!d->of) return ERR_OK;
    if (d->gamma < 1 || d->gamma > speculate_depth_max(&d->of->accept))
        return err_set(e, ERR_RANGE, "a draft makes a row of 1 to %lld tokens", (long long)SPECULATE_DEPTH_MAX);
    if (d->of->shape && d->gamma != d->of->shape->depth)
        return err_set(e, ERR_RANGE, "a tree %lld deep drafts %lld in a row", (long long)d->of->shape->depth,
                       (long long)d->of->shape->depth);
    const int64_t judged = speculate_judged(d->of, d->gamma), passed = mix_pass_of(s->plan).setup->pass_tokens;
    if (judged != (passed > 1 ? passed : 1))
        return err_set(e, ERR_RANGE, "%lld tokens of a sequence are judged in passes of %lld", (long long)judged,
                       (long long)passed);
    if (s->policy == SIMULATE_STATIC || s->memory != SIMULATE_PAGED)
        return err_set(e, ERR_RANGE, "drafts take blocks of a paged cache, and no static batch");
    if (s->server && !d->of->clock.seconds)
        return err_set(e, ERR_RANGE, "in a server's steps the passes of a draft take a server's seconds");
    if (s->policy == SIMULATE_CHUNKED && s->budget_tokens / judged < s->max_seqs)
        return err_set(e, ERR_RANGE, "a step of %lld tokens is too small for %lld sequences that judge %lld each",
                       (long long)s->budget_tokens, (long long)s->max_seqs, (long long)judged);
    return ERR_OK;
}

enum err_code simulate_check(const struct simulate_setup *s, struct err *e)
{
    if (s->max_seqs < 1 || s->block_tokens < 1 || s->blocks < 1 || s->max_len_tokens < 1)
        return err_set(e, ERR_RANGE, "a simulation takes at least one sequence, one block and one token");
    if (s->groups < 0 || s->groups > s->max_seqs)
        return err_set(e, ERR_RANGE, "%lld attention groups cannot share %lld sequences", (long long)s->groups,
                       (long long)s->max_seqs);
    if (simulate_parted(s) && (s->blocks < s->groups || (s->tier.blocks > 0 && s->tier.blocks < s->groups)))
        return err_set(e, ERR_RANGE, "%lld attention groups, and not a block of the cache for each",
                       (long long)s->groups);
    if (simulate_parted(s) && s->budget_tokens < s->groups)
        return err_set(e, ERR_RANGE, "%lld attention groups, and not a token of a step for each", (long long)s->groups);
    if (s->policy != SIMULATE_STATIC && s->budget_tokens < 1) return err_set(e, ERR_RANGE, "a step of no tokens");
    if (s->policy == SIMULATE_CHUNKED && s->budget_tokens < s->max_seqs)
        return err_set(e, ERR_RANGE, "a step of %lld tokens is too small for %lld sequences that decode",
                       (long long)s->budget_tokens, (long long)s->max_seqs);
    if (s->replicas < 1 || s->replicas > SIMULATE_REPLICAS_MAX)
        return err_set(e, ERR_RANGE, "from 1 to %d replicas", SIMULATE_REPLICAS_MAX);
    if (!(s->watermark_frac >= 0) || s->watermark_frac >= 1 || !(s->overhead_s >= 0) || !isfinite(s->overhead_s))
        return err_set(e, ERR_RANGE, "a watermark is in [0, 1), an overhead not below 0");
    if (s->work->samples > 1 && (s->policy == SIMULATE_STATIC || s->memory != SIMULATE_PAGED))
        return err_set(e, ERR_RANGE, "samples of one prompt share blocks: they need a paged cache and no static batch");
    if (s->prefix_cache && (s->policy == SIMULATE_STATIC || s->memory != SIMULATE_PAGED))
        return err_set(e, ERR_RANGE, "a prefix cache needs a paged cache and no static batch");
    if (s->policy == SIMULATE_STATIC && s->memory != SIMULATE_PAGED)
        return err_set(e, ERR_RANGE, "a static batch reserves what its longest needs already");
    if (s->tier.blocks != 0 &&
        (s->tier.blocks < 0 || !s->prefix_cache || !(s->tier.bytes_per_s > 0) || !(s->tier.block_bytes > 0)))
        return err_set(e, ERR_RANGE,
                       "a tier at the host is of a prefix cache, with blocks, their bytes and a rate above 0");
    if (mix_stages(s->plan) > 1 &&
        (s->policy == SIMULATE_STATIC || s->memory != SIMULATE_PAGED || s->pools.prefill > 0 || s->groups > 1 ||
         s->server || s->calibrated || mix_period(s->plan) > 1))
        return err_set(e, ERR_RANGE,
                       "stages: of paged caches, no static batches, one pool, one attention group, times of floors");
    TRY(check_moves(s, e));
    TRY(check_draft(s, e));
    if (s->work->samples > UINT16_MAX) return err_set(e, ERR_RANGE, "more than %d samples", UINT16_MAX);
    if (!mix_timed(s->plan))
        return err_set(e, ERR_INPUT, "no peak rate of the device is known, so steps have no times");
    return ERR_OK;
}
