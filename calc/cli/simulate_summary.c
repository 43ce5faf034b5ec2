/* simulate_summary -- a run in one row. */
#include "calc/cli/simulate_summary.h"

#include <math.h>
#include <string.h>

#define SUM(field, kind, unit, help)                                                                                   \
    COLUMN_AT(struct simulate_summary, field, COLUMN_##kind, UNITS_##unit, COLUMN_SHOWN, #field, help)
#define SPREAD(name, what)                                                                                             \
    SUM(name##_s_mean, REAL, SECONDS, what ", mean"), SUM(name##_s_p50, REAL, SECONDS, what ", median"),               \
        SUM(name##_s_p90, REAL, SECONDS, what ", a tenth took longer"),                                                \
        SUM(name##_s_p95, REAL, SECONDS, what ", a twentieth took longer"),                                            \
        SUM(name##_s_p99, REAL, SECONDS, what ", a hundredth took longer"),                                            \
        SUM(name##_s_max, REAL, SECONDS, what ", the longest")

static const struct column SUMMARY[] = {
    SUM(model, STRING, NONE, "the model"),
    SUM(hardware, STRING, NONE, "the device"),
    SUM(gpus, INT, COUNT, "devices in all"),
    SUM(tp, INT, COUNT, "tensor-parallel ranks of a replica"),
    SUM(pp, INT, COUNT, "stages of a replica"),
    SUM(bubble_frac, REAL, FRAC, "stages: of the time that any batch is under way, that a stage waits, on average"),
    SUM(attention_dp, INT, COUNT, "attention groups of a replica"),
    SUM(ep, INT, COUNT, "parts in which its experts are dealt"),
    SUM(dcp, INT, COUNT, "ranks that share the cache of a sequence by tokens"),
    SUM(replicas, INT, COUNT, "copies of the model, each with a queue, a batch and a cache"),
    SUM(fidelity, STRING, NONE, "of step times: bound or roofline, floors; calibrated, medians"),
    SUM(band, STRING, NONE, "calibrated: p50, or p90, which nine of ten services do not exceed, or times the median"),
    SUM(band_factor, REAL, NONE, "a step takes so many times its median"),
    SUM(server, STRING, NONE, "whose host and kernels the steps are of; empty: kernels or floors alone"),
    SUM(overhead_s, REAL, SECONDS, "added to every step"),
    SUM(policy, STRING, NONE, "what a step holds"),
    SUM(route, STRING, NONE, "which replica a request goes to"),
    SUM(memory, STRING, NONE, "paged, or a contiguous region a sequence"),
    SUM(pool, STRING, NONE, "engine: by the engine's rule; ideal: all that weights and activations leave"),
    SUM(offloaded_bytes, REAL, BYTES, "weights of one GPU that are at the host"),
    SUM(pool_blocks, INT, COUNT, "of a replica"),
    SUM(pool_tokens, INT, COUNT, "of a replica"),
    SUM(block_tokens, INT, COUNT, "tokens of a block"),
    SUM(max_num_seqs, INT, COUNT, "most sequences of a step"),
    SUM(max_num_batched_tokens, INT, COUNT, "most tokens of a step"),
    SUM(trace, STRING, NONE, "file that requests were read from"),
    SUM(arrivals, STRING, NONE, "how they came: open (a rate), closed (clients) or at once"),
    SUM(seed, INT, NONE, "of what was drawn"),
    SUM(samples, INT, COUNT, "answers to each prompt"),
    SUM(requests, INT, COUNT, "in all"),
    SUM(finished, INT, COUNT, "answered"),
    SUM(refused, INT, COUNT, "longer than the cache or the longest sequence"),
    SUM(offered_per_s, REAL, NONE, "requests that came in a second, to the last arrival"),
    SUM(served_per_s, REAL, NONE, "requests answered in a second, to the last answer"),
    SUM(span_s, REAL, SECONDS, "from the first arrival to the last answer"),
    SUM(output_tok_per_s, REAL, TOK_PER_S, "tokens of answers"),
    SUM(prompt_tok_per_s, REAL, TOK_PER_S, "tokens of prompts, cached ones too"),
    SUM(total_tok_per_s, REAL, TOK_PER_S, "both"),
    SPREAD(wait, "from arrival to the first step"),
    SPREAD(ttft, "time to first token"),
    SPREAD(tpot, "time per output token after the first"),
    SPREAD(latency, "from arrival to the last token"),
    SUM(steps, COUNT, COUNT, "of all replicas"),
    SUM(busy_frac, REAL, FRAC, "of the time that replicas are in a step"),
    SUM(batch_mean, REAL, COUNT, "sequences of a replica, over its busy time"),
    SUM(batch_max, COUNT, COUNT, "most of them"),
    SUM(blocks_frac, REAL, FRAC, "of the cache in use, over busy time"),
    SUM(blocks_max_frac, REAL, FRAC, "most of it"),
    SUM(useful_frac, REAL, FRAC, "tokens stored over room in use, over busy time; shared ones count once"),
    SUM(preemptions, COUNT, COUNT, "sequences that lost their cache and were computed anew"),
    SUM(preemption, STRING, NONE, "what they lost: computed anew, or swapped where the host has room"),
    SUM(swaps, COUNT, COUNT, "of them, by swap"),
    SUM(swapped_bytes, REAL, BYTES, "of a GPU, out and back"),
    SUM(swap_wait_s, REAL, SECONDS, "that steps waited for those"),
    SUM(preempted_swap_s, REAL, SECONDS, "all of them swapped out and back"),
    SUM(preempted_recompute_s, REAL, SECONDS, "all of them computed anew, each in a step of its own"),
    SUM(draft, STRING, NONE, "what drafts tokens"),
    SUM(gamma, INT, COUNT, "tokens drafted in a row; of a tree its depth"),
    SUM(verify_tokens, INT, COUNT, "drafts: tokens of a sequence that a step judges"),
    SUM(accept, STRING, NONE, "part of them that is kept when those before them were"),
    SUM(tokens_per_step, REAL, COUNT, "drafts: of a sequence, those beyond an answer's end too"),
    SUM(tokens_per_step_expected, REAL, COUNT, "drafts: by the formula"),
    SUM(kept_frac, REAL, FRAC, "drafts: of drafted tokens"),
    SUM(draft_busy_frac, REAL, FRAC, "drafts: of busy time, in the draft"),
    SUM(prefill_replicas, INT, COUNT, "two pools: of the replicas, those that prefill; the others decode"),
    SUM(prefill_busy_frac, REAL, FRAC, "two pools: of the time that those are in a step"),
    SUM(prefill_batch_mean, REAL, COUNT, "two pools: sequences of one, over its busy time"),
    SUM(prefill_blocks_frac, REAL, FRAC, "two pools: of their cache in use, over busy time"),
    SUM(decode_busy_frac, REAL, FRAC, "two pools: of the time that the others are in a step"),
    SUM(decode_batch_mean, REAL, COUNT, "two pools: sequences of one, over its busy time"),
    SUM(decode_blocks_frac, REAL, FRAC, "two pools: of their cache in use, over busy time"),
    SUM(kv_transfer, STRING, NONE, "two pools: whole, when a prompt is computed; layers, each when it is"),
    SUM(kv_link_bytes_per_s, REAL, BYTES_PER_S, "two pools: of a GPU"),
    SUM(moved_bytes, REAL, BYTES, "two pools: of each GPU's caches"),
    SUM(link_busy_frac, REAL, FRAC, "two pools: of the time that links are in use"),
    SPREAD(move, "two pools, from the first token until the cache is where it decodes"),
    SUM(computed_tokens, COUNT, COUNT, "prefilled, recomputed ones too"),
    SUM(cached_tokens, COUNT, COUNT, "of prompts, found in the prefix cache"),
    SUM(cached_frac, REAL, FRAC, "of the prompts' tokens"),
    SUM(host_blocks, COUNT, COUNT, "a replica's blocks of prefixes at the host"),
    SUM(host_loads, COUNT, COUNT, "prompts that took some from there"),
    SUM(host_loaded_tokens, COUNT, COUNT, "of cached_tokens, those from there"),
    SUM(host_loaded_bytes, REAL, BYTES, "of a GPU, from there"),
    SUM(host_wait_s, REAL, SECONDS, "that such a prompt waited for them, on average"),
    SUM(host_stored_bytes, REAL, BYTES, "of a GPU, copied there"),
    SUM(host_evicted_blocks, COUNT, COUNT, "overwritten there"),
    SUM(copied_blocks, COUNT, COUNT, "copied on write"),
    SUM(evicted_blocks, COUNT, COUNT, "cached blocks that were overwritten"),
    SUM(waiting_half, COUNT, COUNT, "in queues when half of the requests had come"),
    SUM(waiting_last, COUNT, COUNT, "in queues when the last came"),
    SUM(growing, BOOL, NONE, "arrivals outran the service: no steady state"),
    SUM(partial, BOOL, NONE, "interrupted"),
    SUM(marked, STRING, NONE, "what the times must not be taken for"),
    SUM(notes, STRING, NONE, "what of the files is not counted, assumed or left out"),
};

const struct column *simulate_summary_columns(size_t *n)
{
    *n = sizeof SUMMARY / sizeof *SUMMARY;
    return SUMMARY;
}

const char *simulate_marked(const struct simulate_case *c)
{
    const struct simulate_result *r = &c->result;
    if (r->partial) return "partial";
    return r->growing ? "no steady state" : NULL;
}

struct simulate_result simulate_judged(const struct simulate_case *c)
{
    struct simulate_result x = c->result;
    if (c->judged.end == 0 || c->judged.end > x.n) return x;
    x.record = c->result.record + c->judged.first;
    x.n = c->judged.end - c->judged.first;
    return x;
}

static enum err_code spread(const struct simulate_result *r, double (*value)(const struct simulate_record *),
                            double *first, struct err *e)
{
    struct simulate_spread s;
    TRY(simulate_spread_of(r, value, &s, e));
    const double all[] = {s.mean, s.p50, s.p90, s.p95, s.p99, s.most};
    memcpy(first, all, sizeof all);
    return ERR_OK;
}

static void summarize_pools(const struct simulate_case *c, struct simulate_summary *out)
{
    const struct simulate_result *r = &c->result;
    const struct simulate_pools *p = &c->setup.pools;
    const bool two = p->prefill > 0;
    const double unknown = (double)NAN, span_s = two ? r->span_s : unknown;
    out->prefill_replicas = two ? p->prefill : TABLE_INT_UNKNOWN;
    out->kv_transfer = !two ? NULL : p->layers > 0 ? "layers" : "whole";
    out->kv_link_bytes_per_s = two ? p->link_bytes_per_s : unknown;
    out->moved_bytes = two ? r->transfer_bytes : unknown;
    out->link_busy_frac = r->link_busy_s / span_s / (double)p->prefill;
    out->prefill_busy_frac = r->pool[0].busy_s / span_s / (double)r->pool[0].replicas;
    out->prefill_batch_mean = two ? r->pool[0].mean_running : unknown;
    out->prefill_blocks_frac = two ? r->pool[0].block_frac : unknown;
    out->decode_busy_frac = r->pool[1].busy_s / span_s / (double)r->pool[1].replicas;
    out->decode_batch_mean = r->pool[1].mean_running;
    out->decode_blocks_frac = r->pool[1].block_frac;
}

/* Drafts, and the tier at the host. */
static void summarize_draft(const struct simulate_case *c, struct simulate_summary *out)
{
    const struct simulate_result *r = &c->result;
    const struct simulate_draft *d = &c->setup.draft;
    const double unknown = (double)NAN;
    const bool tier = c->setup.tier.blocks > 0;
    out->host_blocks = tier ? (double)c->setup.tier.blocks : unknown;
    out->host_loads = tier ? (double)r->loads : unknown;
    out->host_loaded_tokens = tier ? r->loaded_tokens : unknown;
    out->host_loaded_bytes = tier ? r->loaded_bytes : unknown;
    out->host_wait_s = tier && r->loads > 0 ? r->load_wait_s / (double)r->loads : unknown;
    out->host_stored_bytes = tier ? r->hosted_bytes : unknown;
    out->host_evicted_blocks = tier ? (double)r->tier_evictions : unknown;
    out->draft = d->of ? c->of.draft.name : NULL;
    out->accept = d->of ? c->request.drafting.accept_text : NULL;
    out->gamma = d->of ? d->gamma : TABLE_INT_UNKNOWN;
    out->tokens_per_step = r->judged_tokens / r->judged;
    out->verify_tokens = d->of ? speculate_judged(d->of, d->gamma) : TABLE_INT_UNKNOWN;
    out->tokens_per_step_expected = d->of ? speculate_mean(d->of, d->gamma) : unknown;
    out->kept_frac = d->of ? r->kept_tokens / r->judged / (double)speculate_drafted(d->of, d->gamma) : unknown;
    out->draft_busy_frac = d->of ? r->draft_s / r->busy_s : unknown;
}

/* Requests that come of one that arrives by itself. */
static double turns_of(const struct simulate_case *c)
{
    return c->trace || c->spec.turns < 1 ? 1 : (double)c->spec.turns;
}

enum err_code simulate_summary_of(struct arena *a, const struct simulate_case *c, struct simulate_summary *out,
                                  struct err *e)
{
    const struct simulate_result *r = &c->result;
    const struct simulate_setup *s = &c->setup;
    const double unknown = (double)NAN;
    *out = (struct simulate_summary){
        .model = c->of.model.name,
        .hardware = c->of.hw.key,
        .fidelity = c->server_text ? "calibrated" : estimate_fidelity_name(&c->request),
        .server = c->server_text,
        .offloaded_bytes = step_offloaded_bytes(c->of.step),
        .band = c->server_text || c->request.calibrated ? (c->factor ? c->factor
                                                           : c->p90  ? "p90"
                                                                     : "p50")
                                                        : NULL,
        .band_factor = s->slower > 0                             ? s->slower
                       : c->server_text || c->request.calibrated ? 1
                                                                 : unknown,
        .policy = c->policy,
        .route = s->replicas > 1 ? c->route : NULL,
        .memory = c->memory,
        .pool = c->pool,
        .trace = c->trace,
        .arrivals = c->trace                  ? "trace"
                    : c->spec.rate_per_s > 0  ? c->arrivals
                    : c->spec.concurrency > 0 ? "closed"
                                              : "at once",
        .marked = simulate_marked(c),
        .notes = c->work.note && c->of.model.notes ? arena_printf(a, "%s; %s", c->work.note, c->of.model.notes)
                 : c->work.note                    ? c->work.note
                                                   : c->of.model.notes,
        .gpus = c->of.gpus,
        .tp = c->of.tp,
        .pp = layout_whole(&c->of.layout).pp,
        .bubble_frac = r->bubble_frac,
        .attention_dp = layout_whole(&c->of.layout).dp,
        .ep = layout_whole(&c->of.layout).ep,
        .dcp = layout_whole(&c->of.layout).dcp,
        .replicas = s->replicas,
        .requests = (int64_t)r->n,
        .finished = (int64_t)r->finished,
        .refused = (int64_t)r->refused,
        .seed = c->trace ? TABLE_INT_UNKNOWN : (int64_t)c->spec.seed,
        .samples = c->work.samples,
        .max_num_seqs = s->max_seqs,
        .max_num_batched_tokens = s->policy == SIMULATE_STATIC ? TABLE_INT_UNKNOWN : s->budget_tokens,
        .pool_blocks = s->blocks,
        .pool_tokens = s->blocks * s->block_tokens,
        .block_tokens = s->block_tokens,
        .offered_per_s = c->work.span_s > 0 ? (double)(c->work.first_n - 1) / c->work.span_s * turns_of(c) : unknown,
        .served_per_s = (double)r->finished / r->span_s,
        .span_s = r->span_s,
        .overhead_s = s->overhead_s,
        .output_tok_per_s = r->output_tokens / r->span_s,
        .prompt_tok_per_s = r->prompt_tokens / r->span_s,
        .total_tok_per_s = (r->output_tokens + r->prompt_tokens) / r->span_s,
        .steps = (double)r->steps,
        .busy_frac = r->busy_s / r->span_s / (double)s->replicas,
        .batch_mean = r->mean_running,
        .batch_max = (double)r->most_running,
        .blocks_frac = r->block_frac,
        .blocks_max_frac = (double)r->most_blocks / (double)s->blocks,
        .useful_frac = r->useful_frac,
        .preemptions = (double)r->preemptions,
        .preemption = s->preemption == SIMULATE_SWAP ? "swap" : "recompute",
        .swaps = (double)r->swaps,
        .swapped_bytes = r->swapped_bytes,
        .swap_wait_s = r->copied_s,
        .preempted_swap_s = r->swap_would_s,
        .preempted_recompute_s = r->recompute_would_s,
        .computed_tokens = r->computed_tokens,
        .cached_tokens = r->cached_tokens,
        .cached_frac = r->cached_tokens / r->prompt_tokens,
        .copied_blocks = (double)r->copies,
        .evicted_blocks = (double)r->evictions,
        .waiting_half = (double)r->waiting_half,
        .waiting_last = (double)r->waiting_last,
        .growing = r->growing,
        .partial = r->partial};
    const struct simulate_result judged = simulate_judged(c);
    summarize_pools(c, out);
    summarize_draft(c, out);
    TRY(spread(&judged, simulate_move_s, &out->move_s_mean, e));
    TRY(spread(&judged, simulate_wait_s, &out->wait_s_mean, e));
    TRY(spread(&judged, simulate_ttft_s, &out->ttft_s_mean, e));
    TRY(spread(&judged, simulate_tpot_s, &out->tpot_s_mean, e));
    return spread(&judged, simulate_latency_s, &out->latency_s_mean, e);
}
