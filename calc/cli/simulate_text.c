/* simulate_text -- a run in words. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/simulate_summary.h"

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
static const char *offered_text(char out[static OFFERED_TEXT], const struct simulate_summary *s)
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

static void write_heading(struct out *o, const struct simulate_case *c, const struct simulate_summary *s)
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
    if (c->factor && !of_floors) simulate_put_line(o, "every step takes %.4g times its median", c->setup.slower);
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
    if (c->lengths) simulate_put_line(o, "%s", c->lengths);
    if (c->judged.end > 0)
        simulate_put_line(o, "times below are of the %zuth to the %zuth that came", c->judged.first + 1, c->judged.end);
    if (c->work.samples > 1) simulate_put_line(o, "%lld answers to each prompt", (long long)c->work.samples);
    if (c->work.note) simulate_put_line(o, "note: %s", c->work.note);
    if (c->setup.prefix_cache && counts_cached(&c->work))
        simulate_put_line(o,
                          "note: cached_prefix_tokens_infinite_cache is what a cache without end would have: an upper "
                          "bound, taken as it is, of which nothing is evicted here%s",
                          c->setup.tier.blocks > 0 ? "; nothing of it is left to be loaded from the host" : "");
}

/* A line for each time, a column for each percentile, every value with its own unit. */
static void write_spreads(struct out *o, const struct simulate_summary *s)
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

static void write_verdict(struct out *o, const struct simulate_case *c, const struct simulate_summary *s)
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

enum err_code simulate_summary_text(struct out *o, const struct simulate_case *c, const struct simulate_summary *s,
                                    struct err *e)
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
