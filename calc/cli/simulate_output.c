/* simulate_output -- what `ridge simulate` writes. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/plot.h"
#include "calc/cli/simulate.h"
#include "calc/cli/simulate_charts.h"

/* ---- rows ---- */

struct summary {
    const char *model, *hardware, *fidelity, *server, *policy, *route, *memory, *pool, *trace, *arrivals, *marked,
        *notes;
    double bubble_frac;
    int64_t gpus, tp, pp, attention_dp, ep, dcp, replicas, requests, finished, refused, seed, samples;
    int64_t max_num_seqs, max_num_batched_tokens, pool_blocks, pool_tokens, block_tokens;
    double offered_per_s, served_per_s, span_s, overhead_s;
    double output_tok_per_s, prompt_tok_per_s, total_tok_per_s;
    double wait_s_mean, wait_s_p50, wait_s_p90, wait_s_p95, wait_s_p99, wait_s_max;
    double ttft_s_mean, ttft_s_p50, ttft_s_p90, ttft_s_p95, ttft_s_p99, ttft_s_max;
    double tpot_s_mean, tpot_s_p50, tpot_s_p90, tpot_s_p95, tpot_s_p99, tpot_s_max;
    double latency_s_mean, latency_s_p50, latency_s_p90, latency_s_p95, latency_s_p99, latency_s_max;
    double steps, busy_frac, batch_mean, batch_max, blocks_frac, blocks_max_frac, useful_frac;
    double move_s_mean, move_s_p50, move_s_p90, move_s_p95, move_s_p99, move_s_max;
    int64_t prefill_replicas;
    double kv_link_bytes_per_s, moved_bytes, link_busy_frac, prefill_busy_frac, prefill_batch_mean, prefill_blocks_frac;
    double decode_busy_frac, decode_batch_mean, decode_blocks_frac;
    const char *kv_transfer, *preemption, *draft, *accept, *band;
    double band_factor, offloaded_bytes;
    double host_blocks, host_loads, host_loaded_tokens, host_loaded_bytes, host_wait_s, host_stored_bytes,
        host_evicted_blocks;
    int64_t gamma, verify_tokens;
    double tokens_per_step, tokens_per_step_expected, kept_frac, draft_busy_frac;
    double swaps, swapped_bytes, swap_wait_s, preempted_swap_s, preempted_recompute_s;
    double preemptions, computed_tokens, cached_tokens, cached_frac, copied_blocks, evicted_blocks;
    double waiting_half, waiting_last;
    bool growing, partial;
};

#define SUM(field, kind, unit, help)                                                                                   \
    COLUMN_AT(struct summary, field, COLUMN_##kind, UNITS_##unit, COLUMN_SHOWN, #field, help)
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
    SUM(band, STRING, NONE, "calibrated: p50, or p90, which nine of ten services do not exceed"),
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

struct request_row {
    int64_t request, replica, decoder, prompt_tokens, output_tokens, cached_tokens, preemptions;
    double move_s, arrival_s, wait_s, ttft_s, tpot_s, latency_s, finish_s;
    const char *marked;
};

#define REQ(field, kind, unit, heading, help)                                                                          \
    COLUMN_AT(struct request_row, field, COLUMN_##kind, UNITS_##unit, COLUMN_SHOWN, heading, help)

static const struct column REQUESTS[] = {
    REQ(request, INT, COUNT, "request", "in the order of the workload"),
    REQ(replica, INT, COUNT, "replica", "that served it"),
    REQ(arrival_s, REAL, SECONDS, "arrival", "from the first"),
    REQ(prompt_tokens, INT, COUNT, "in", "tokens of the prompt"),
    REQ(output_tokens, INT, COUNT, "out", "tokens of the answer"),
    REQ(cached_tokens, INT, COUNT, "cached", "of the prompt, found in the prefix cache"),
    REQ(preemptions, INT, COUNT, "lost", "times that it lost its cache"),
    REQ(wait_s, REAL, SECONDS, "wait", "from arrival to the first step"),
    REQ(ttft_s, REAL, SECONDS, "TTFT", "to the first token"),
    REQ(tpot_s, REAL, SECONDS, "TPOT", "per token after the first"),
    REQ(latency_s, REAL, SECONDS, "latency", "to the last token"),
    COLUMN_AT(struct request_row, decoder, COLUMN_INT, UNITS_COUNT, 0, "decoder",
              "two pools: the replica that decoded it"),
    COLUMN_AT(struct request_row, move_s, COLUMN_REAL, UNITS_SECONDS, 0, "moved",
              "two pools: from the first token until its cache was there"),
    COLUMN_AT(struct request_row, finish_s, COLUMN_REAL, UNITS_SECONDS, 0, "finish", "time of the last token"),
    COLUMN_AT(struct request_row, marked, COLUMN_STRING, UNITS_NONE, 0, "marked", "partial, refused, or growing queue"),
};

#define STEP(field, kind, unit, heading, help)                                                                         \
    COLUMN_AT(struct simulate_step, field, COLUMN_##kind, UNITS_##unit, COLUMN_SHOWN, heading, help)

static const struct column STEPS[] = {
    STEP(replica, INT, COUNT, "replica", "where"),
    STEP(start_s, REAL, SECONDS, "start", "from the first arrival"),
    STEP(end_s, REAL, SECONDS, "end", "of the last of them"),
    STEP(steps, INT, COUNT, "steps", "in which nothing but lengths changed"),
    STEP(decoding, INT, COUNT, "decoding", "sequences that make a token in each"),
    STEP(prefilling, INT, COUNT, "prefilling", "pieces of prompts"),
    STEP(prefill_tokens, INT, COUNT, "prompt", "tokens of those"),
    STEP(running, INT, COUNT, "batch", "sequences in the batch"),
    STEP(waiting, INT, COUNT, "queue", "requests that wait"),
    STEP(blocks, INT, COUNT, "blocks", "in use at the end"),
    STEP(stored_tokens, INT, COUNT, "stored", "tokens in the cache at the end, those that several share once"),
};

const struct column *simulate_columns(enum simulate_rows which, size_t *n)
{
    if (which == SIMULATE_STEADY) return simulate_steady_columns(n);
    static const struct column *const ALL[] = {SUMMARY, REQUESTS, STEPS};
    static const size_t N[] = {sizeof SUMMARY / sizeof SUMMARY[0], sizeof REQUESTS / sizeof REQUESTS[0],
                               sizeof STEPS / sizeof STEPS[0]};
    *n = N[which];
    return ALL[which];
}

static const char *marked(const struct simulate_case *c)
{
    const struct simulate_result *r = &c->result;
    if (r->partial) return "partial";
    return r->growing ? "no steady state" : NULL;
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

static void summarize_pools(const struct simulate_case *c, struct summary *out)
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
static void summarize_draft(const struct simulate_case *c, struct summary *out)
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

static enum err_code summarize(struct arena *a, const struct simulate_case *c, struct summary *out, struct err *e)
{
    const struct simulate_result *r = &c->result;
    const struct simulate_setup *s = &c->setup;
    const double unknown = (double)NAN;
    *out = (struct summary){
        .model = c->of.model.name,
        .hardware = c->of.hw.key,
        .fidelity = c->server_text ? "calibrated" : estimate_fidelity_name(&c->request),
        .server = c->server_text,
        .offloaded_bytes = step_offloaded_bytes(c->of.step),
        .band = c->server_text || c->request.calibrated ? (c->p90 ? "p90" : "p50") : NULL,
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
        .marked = marked(c),
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
    summarize_pools(c, out);
    summarize_draft(c, out);
    TRY(spread(r, simulate_move_s, &out->move_s_mean, e));
    TRY(spread(r, simulate_wait_s, &out->wait_s_mean, e));
    TRY(spread(r, simulate_ttft_s, &out->ttft_s_mean, e));
    TRY(spread(r, simulate_tpot_s, &out->tpot_s_mean, e));
    return spread(r, simulate_latency_s, &out->latency_s_mean, e);
}

/* ---- text ---- */

void simulate_put_line(struct out *o, const char *fmt, ...)
{
    char line[640];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    out_str(o, "  ");
    option_wrap(o, line, 2, 4);
}

enum { OFFERED_TEXT = 40 };

/* Of a single request, or of all at once, there is no rate. */
static const char *offered_text(char out[static OFFERED_TEXT], const struct summary *s)
{
    out[0] = 0;
    if (isfinite(s->offered_per_s)) (void)snprintf(out, OFFERED_TEXT, ", %.4g a second", s->offered_per_s);
    return out;
}

/* Whether a trace says how much of a prompt was seen before, and not which blocks. */
static bool counts_cached(const struct workload *w)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->request[i].hash_n == 0 && w->request[i].cached_tokens > 0) return true;
    return false;
}

static void write_heading(struct out *o, const struct simulate_case *c, const struct summary *s)
{
    char model[96], device[96], b[UNITS_TEXT_MAX], trace[120], overhead[UNITS_TEXT_MAX], host[UNITS_TEXT_MAX],
        terms[ENGINE_TEXT], offered[OFFERED_TEXT];
    const struct estimate_case *of = &c->of;
    const struct layout w = layout_whole(&of->layout);
    char spread[96] = "", shared[32] = "";
    if (w.dcp > 1) (void)snprintf(shared, sizeof shared, "DCP %lld, ", (long long)w.dcp);
    if (w.pp > 1) (void)snprintf(spread, sizeof spread, "PP %lld, ", (long long)w.pp);
    if (w.dp > 1 || w.ep > 1) {
        char groups[48] = "";
        if (w.dp > 1) (void)snprintf(groups, sizeof groups, "attention-DP %lld, ", (long long)w.dp);
        (void)snprintf(spread, sizeof spread, "%sEP %lld, ", groups, (long long)w.ep);
    }
    char line[320], count[TEXT_COUNT_MAX], more[TEXT_COUNT_MAX];
    (void)snprintf(line, sizeof line, "%s on %lld x %s, TP %lld, %s%s%s",
                   text_clean(model, sizeof model, of->model.name, strlen(of->model.name)), (long long)of->gpus,
                   text_clean(device, sizeof device, of->hw.name, strlen(of->hw.name)), (long long)of->tp, shared,
                   spread, text_count(count, s->replicas, "replica"));
    option_wrap(o, line, 0, 2);
    simulate_put_line(o, "%s%s: %s of cache a GPU, %s a replica in blocks of %lld%s", c->memory,
                      c->request.engine ? ", pool by the engine's rule" : ", all that weights and activations leave",
                      units_format_bytes(b, c->pool_bytes), text_count(count, s->pool_tokens, "token"),
                      (long long)s->block_tokens, c->setup.prefix_cache ? ", prefixes cached" : "");
    if (c->setup.policy == SIMULATE_STATIC)
        simulate_put_line(o, "static batches of at most %lld", (long long)s->max_num_seqs);
    else
        simulate_put_line(o, "%s: steps of at most %s and %s%s%s%s",
                          c->setup.policy == SIMULATE_FCFS ? "fcfs, prompts first" : "chunked prefill",
                          text_count(count, s->max_num_batched_tokens, "token"),
                          text_count(more, s->max_num_seqs, "sequence"),
                          c->setup.groups > 1 ? ", all attention groups together" : "",
                          s->replicas > 1 ? "; route " : "", s->replicas > 1 ? c->route : "");
    if (c->of.offload.bytes > 0)
        simulate_put_line(o, "%s of each GPU's weights at the host, read by every step that needs them at %s",
                          units_format_bytes(b, step_offloaded_bytes(c->of.step)),
                          units_format(host, UNITS_BYTES_PER_S, c->of.offload.host_bytes_per_s));
    if (c->of.offload.bytes > 0 && step_offloaded_frac(c->of.step) >= 1 &&
        step_offloaded_bytes(c->of.step) < c->of.offload.bytes)
        simulate_put_line(o, "note: %s were asked for: its layers have no more",
                          units_format_bytes(b, c->of.offload.bytes));
    simulate_moves_heading(o, c);
    if (c->server_text)
        simulate_put_line(o,
                          "steps of %s's server: %s; a first token takes about %s and %s a token of its prompt more, "
                          "which TTFT and end-to-end times have",
                          c->engine.name, engine_terms_text(&c->engine, c->setup.overlapped, terms),
                          units_format_time(host, engine_first_s(0)), units_format_time(overhead, ENGINE_TOKEN_S));
    if (c->moved) simulate_put_line(o, "note: %s", c->moved);
    if (c->setup.server && c->setup.server->source->transfer[0] != SOURCE_OWN)
        simulate_put_line(o, "note: kernels of %s, transferred from %s (%s)",
                          text_clean(trace, sizeof trace, c->of.hw.key, strlen(c->of.hw.key)),
                          c->setup.server->source->file[0].device,
                          source_transfers[c->setup.server->source->transfer[0]]);
    simulate_put_line(o, "fidelity %s%s%s%s", s->fidelity,
                      c->request.calibrated || c->server_text ? "" : " (a floor: servers are 2-4x slower)",
                      s->overhead_s > 0 ? ", and of every step " : "",
                      s->overhead_s > 0 ? units_format_time(overhead, s->overhead_s) : "");
    if (c->transfer) simulate_put_line(o, "note: %s", c->transfer);
    const bool of_floors = c->server_text && !c->setup.server;
    if (of_floors)
        simulate_put_line(o,
                          "stages: batches take their floors times %.4g, which is what the same ranks in one stage "
                          "take of theirs%s",
                          c->setup.slower, c->p90 ? ", at P90 of the band" : "");
    if (c->p90 && !of_floors)
        simulate_put_line(o, "at P90 of the band: every step takes %.4g times its median", c->setup.slower);
    if (c->trace)
        simulate_put_line(o, "%s of %s%s", text_count(count, s->requests, "request"),
                          text_clean(trace, sizeof trace, c->trace, strlen(c->trace)), offered_text(offered, s));
    else if (c->spec.concurrency > 0)
        simulate_put_line(o, "%s of %s, each with one at a time, seed %lld", text_count(count, s->requests, "request"),
                          text_count(more, c->spec.concurrency, "client"), (long long)s->seed);
    else if (c->spec.rate_per_s > 0)
        simulate_put_line(o, "%s%s, %s, %.4g %sa second, seed %lld", text_count(count, s->requests, "request"),
                          c->spec.turns > 1 ? " of conversations" : "", c->arrivals, c->spec.rate_per_s,
                          c->spec.turns > 1 ? "conversations " : "", (long long)s->seed);
    else
        simulate_put_line(o, "%s at once, seed %lld", text_count(count, s->requests, "request"), (long long)s->seed);
    if (c->work.samples > 1) simulate_put_line(o, "%lld answers to each prompt", (long long)c->work.samples);
    if (c->work.note) simulate_put_line(o, "note: %s", c->work.note);
    if (c->setup.prefix_cache && counts_cached(&c->work))
        simulate_put_line(o,
                          "note: cached_prefix_tokens_infinite_cache is what a cache without end would have: an upper "
                          "bound, taken as it is, of which nothing is evicted here%s",
                          c->setup.tier.blocks > 0 ? "; nothing of it is left to be loaded from the host" : "");
}

/* A line for each time, a column for each percentile, every value with its own unit. */
static void write_spreads(struct out *o, const struct summary *s)
{
    static const char *const HEAD[] = {"mean", "p50", "p90", "p95", "p99", "max"};
    static const char *const NAME[] = {"queue", "TTFT", "TPOT", "end to end"};
    const double *const value[] = {&s->wait_s_mean, &s->ttft_s_mean, &s->tpot_s_mean, &s->latency_s_mean};
    char t[UNITS_TEXT_MAX];
    out_printf(o, "\n%-10s", "");
    for (size_t k = 0; k < 6; k++) out_printf(o, "  %9s", HEAD[k]);
    out_str(o, "\n----------");
    for (size_t k = 0; k < 6; k++) out_str(o, "  ---------");
    out_char(o, '\n');
    for (size_t i = 0; i < 4; i++) {
        out_printf(o, "%-10s", NAME[i]);
        for (size_t k = 0; k < 6; k++) out_printf(o, "  %9s", units_format_time(t, value[i][k]));
        out_char(o, '\n');
    }
    out_char(o, '\n');
}

static void write_verdict(struct out *o, const struct simulate_case *c, const struct summary *s)
{
    char count[TEXT_COUNT_MAX];
    if (s->refused > 0)
        simulate_put_line(o, "%s refused: longer than the cache or than %lld tokens",
                          text_count(count, s->refused, "request"), (long long)c->setup.max_len_tokens);
    if (s->partial)
        simulate_put_line(o, "PARTIAL: interrupted after %lld of %s; times are of those alone", (long long)s->finished,
                          text_count(count, s->requests, "request"));
    if (s->growing)
        simulate_put_line(
            o,
            "NO STEADY STATE: %.4g requests a second come, %.4g are served; %.0f waited when the last came, %.0f "
            "at half. Queue, TTFT and end to end only say how long this run was",
            s->offered_per_s, s->served_per_s, s->waiting_last, s->waiting_half);
}

static enum err_code write_text(struct out *o, const struct simulate_case *c, const struct summary *s, struct err *e)
{
    char t[UNITS_TEXT_MAX], n[TEXT_COUNT_MAX];
    write_heading(o, c, s);
    if (s->finished == 0) {
        simulate_put_line(o, "no request was answered, so nothing has a time");
        write_verdict(o, c, s);
        return ERR_OK;
    }
    write_spreads(o, s);
    simulate_put_line(o, "%lld answered in %s: %.4g requests a second, %.5g tokens out and %.5g in",
                      (long long)s->finished, units_format_time(t, s->span_s), s->served_per_s, s->output_tok_per_s,
                      s->prompt_tok_per_s);
    simulate_put_line(o, "batch %.1f on average while busy, %.0f at most; busy %.1f %% of the time, in %s",
                      s->batch_mean, s->batch_max, 100 * s->busy_frac, text_count(n, (int64_t)s->steps, "step"));
    simulate_put_line(
        o,
        c->setup.prefix_cache || c->work.samples > 1
            ? "cache %.1f %% in use, %.1f %% at most; sequences hold %.1f %% of that in use, shared blocks counted for "
              "each; %s"
            : "cache %.1f %% in use, %.1f %% at most; of that in use %.1f %% holds tokens; %s",
        100 * s->blocks_frac, 100 * s->blocks_max_frac, 100 * s->useful_frac,
        text_count(n, (int64_t)s->preemptions, "preemption"));
    if (c->setup.prefix_cache)
        simulate_put_line(o, "prefix cache: %.1f %% of the prompts' tokens were there; %s evicted",
                          100 * s->cached_frac, text_count(n, (int64_t)s->evicted_blocks, "block"));
    if (s->samples > 1) simulate_put_line(o, "%s copied on write", text_count(n, (int64_t)s->copied_blocks, "block"));
    TRY(simulate_moves_text(o, c, e));
    write_verdict(o, c, s);
    return ERR_OK;
}

/* ---- the answer ---- */

/* Of a run that was stopped, those that had come. */
static enum err_code request_rows(struct arena *a, const struct simulate_case *c, struct request_row **out, size_t *n,
                                  struct err *e)
{
    const struct simulate_result *r = &c->result;
    struct request_row *rows = arena_array(a, r->n + 1, sizeof *rows);
    if (!rows) return err_nomem(e);
    *n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct simulate_record *x = &r->record[i];
        if (r->partial && isnan(x->arrival_s)) continue;
        const bool refused = x->arrival_s >= 0 && isnan(x->start_s) && !r->partial;
        rows[(*n)++] = (struct request_row){.request = (int64_t)i,
                                            .replica = isnan(x->arrival_s) || refused ? TABLE_INT_UNKNOWN : x->replica,
                                            .decoder = isnan(x->moved_s) ? TABLE_INT_UNKNOWN : x->decoder,
                                            .move_s = simulate_move_s(x),
                                            .prompt_tokens = x->prompt_tokens,
                                            .output_tokens = x->output_tokens,
                                            .cached_tokens = x->cached_tokens,
                                            .preemptions = x->preemptions,
                                            .arrival_s = x->arrival_s,
                                            .wait_s = simulate_wait_s(x),
                                            .ttft_s = simulate_ttft_s(x),
                                            .tpot_s = simulate_tpot_s(x),
                                            .latency_s = simulate_latency_s(x),
                                            .finish_s = x->finish_s,
                                            .marked = refused ? "refused" : marked(c)};
    }
    *out = rows;
    return ERR_OK;
}

enum err_code simulate_write(struct arena *a, const struct simulate_case *c, enum simulate_rows which,
                             enum table_format format, const char *keys, struct out *o, struct err *e)
{
    static const char *const SCHEMA[] = {"ridge.simulation.1", "ridge.simulation.requests.1",
                                         "ridge.simulation.steps.1", "ridge.simulation.steady.1"};
    struct summary s;
    struct request_row *rows = NULL;
    struct table t = {
        .tool = commands_tool(), .schema = SCHEMA[which], .scenario_json = option_scenario_json(a, c->options)};
    t.columns = simulate_columns(which, &t.n_columns);
    TRY(summarize(a, c, &s, e));
    if (which == SIMULATE_SUMMARY && format == TABLE_TEXT && !keys) {
        TRY(write_text(o, c, &s, e));
        return out_check(o, e);
    }
    if (which == SIMULATE_REQUESTS) {
        TRY(request_rows(a, c, &rows, &t.n_rows, e));
        t.rows = rows;
        t.stride_bytes = sizeof *rows;
    } else if (which == SIMULATE_STEPS) {
        t.rows = c->steps;
        t.n_rows = c->steps_n;
        t.stride_bytes = sizeof *c->steps;
    } else if (which == SIMULATE_STEADY) {
        TRY(simulate_steady_rows(a, c, &t, e));
    } else {
        t.rows = &s;
        t.n_rows = 1;
        t.stride_bytes = sizeof s;
    }
    if (keys && table_select(a, &t, keys, &t, e) != ERR_OK) return commands_no_column(e);
    if (which == SIMULATE_SUMMARY && format == TABLE_TEXT) return table_write_sheet(&t, o, e);
    return table_write(&t, format, o, e);
}

/* ---- pictures ---- */

static enum err_code plot_parts(struct arena *a, const struct simulate_case *c, const char *subtitle,
                                const char *output, struct err *e)
{
    const double none[] = {(double)NAN, (double)NAN};
    struct chart chart[2];
    const char *title = arena_printf(a, "%s: times to first and per output token", c->of.model.name);
    TRY(simulate_part_charts(a, &c->result, none, none, chart, e));
    return title ? chart_render(a, chart, 2, title, subtitle, output, e) : err_nomem(e);
}

enum err_code simulate_plot(struct arena *a, const struct simulate_case *c, enum simulate_rows which,
                            const char *output, struct err *e)
{
    struct simulate_bins *b = arena_alloc(a, sizeof *b);
    struct out *csv;
    char n[TEXT_COUNT_MAX];
    if (!b) return err_nomem(e);
    const char *subtitle =
        arena_printf(a, "%s, %s, %s%s", c->of.hw.key, text_count(n, (int64_t)c->result.n, "request"), c->policy,
                     c->result.partial   ? ", PARTIAL"
                     : c->result.growing ? ", NO STEADY STATE"
                                         : "");
    if (!subtitle) return err_nomem(e);
    if (which == SIMULATE_REQUESTS) return plot_parts(a, c, subtitle, output, e);
    if (c->steps_n == 0) return err_set(e, ERR_NO, "no step was made: nothing to draw");
    simulate_bins_of(c->steps, c->steps_n, &c->result, (double)c->setup.blocks * (double)c->setup.replicas, b);
    TRY(out_memory(a, &csv, e));
    out_str(csv, "time_s,batch,wait_s,blocks_percent\n");
    for (size_t i = 0; i < SIMULATE_BINS; i++)
        out_printf(csv, "%.9g,%.9g,%.9g,%.9g\n", b->time_s[i], b->batch[i], b->wait_s[i], b->blocks_percent[i]);
    const char *title = arena_printf(a, "%s: batch, wait and cache over time", c->of.model.name);
    const struct plot_request r = {
        .kind = "timeline", .csv = out_text(csv, NULL), .title = title, .subtitle = subtitle, .output = output};
    if (!r.csv || !title) return err_nomem(e);
    return plot_render(a, &r, e);
}
