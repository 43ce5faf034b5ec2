/* steady_pools -- replicas that prefill and others that decode, and the caches that go from one to the other; of
 * steady_parts.h. Source: DistServe, arXiv 2401.09670; Splitwise, arXiv 2311.18677. */
#include <math.h>

#include "calc/serve/steady_chain.h"

/* The link of a prefill replica, one transfer after another: Pollaczek-Khinchine. */
struct link {
    double mean_s, square_s2, wait_s, most_per_s;
};

static struct link link_of(const struct steady_setup *s, double rate_per_s)
{
    const struct steady_decode *d = s->decode;
    const double *at = s->lengths->prompt_at;
    struct link x = {0};
    for (size_t i = 0; i < STEADY_QUANTILES; i++) {
        double part;
        (void)steady_quantile(i, &part);
        const double took_s = at[i] * d->kv_bytes_per_token / d->link_bytes_per_s + d->link_latency_s;
        x.mean_s += part * took_s;
        x.square_s2 += part * took_s * took_s;
    }
    x.most_per_s = x.mean_s > 0 ? 1 / x.mean_s : (double)INFINITY;
    x.wait_s = rate_per_s < x.most_per_s ? rate_per_s * x.square_s2 / (2 * (1 - rate_per_s * x.mean_s)) : (double)NAN;
    return x;
}

static enum err_code check(const struct steady_setup *s, struct err *e)
{
    const struct steady_decode *d = s->decode;
    if (s->load != STEADY_OPEN)
        return err_set(e, ERR_RANGE,
                       "disaggregated replicas are described at a rate of requests, not for clients or a batch");
    if (s->policy == SIMULATE_STATIC) return err_set(e, ERR_RANGE, "replicas that only prefill have no static batches");
    if (d->replicas < 1 || d->max_seqs < 1 || d->blocks < 1 || d->block_tokens < 1 || !(d->overhead_s >= 0))
        return err_set(e, ERR_RANGE, "decoding takes at least one replica, one sequence and one block");
    if (!(d->kv_bytes_per_token >= 0) || !(d->link_bytes_per_s > 0) || !(d->link_latency_s >= 0))
        return err_set(e, ERR_RANGE, "a link has a rate above 0 and a latency not below it");
    if (s->lengths->longest_tokens > (double)d->blocks * (double)d->block_tokens + .5)
        return err_set(e, ERR_RANGE, "a request of %.0f tokens is longer than the cache of a replica that decodes",
                       s->lengths->longest_tokens);
    if (!mix_timed(d->plan))
        return err_set(e, ERR_INPUT, "no peak rate of the device is known, so steps have no times");
    return ERR_OK;
}

/* From a first token until its cache is where it decodes, and until a step there has it. The other side asks for it
 * between two steps, so the one that runs ends first, half of it on average; where the way ends within a step, the next
 * one has it. While nothing runs nobody waits. */
struct crossing {
    double moved_s, begins_s;
};

static struct crossing crossing_of(const struct steady_replica *decode, const struct link *x)
{
    const double busy = 1 - decode->idle_frac * (1 - decode->alone.busy_frac), step_s = decode->token_s,
                 way_s = x->wait_s + x->mean_s;
    const double moved_s = decode->wait_s + busy * step_s / 2 + way_s;
    return (struct crossing){moved_s, moved_s + busy * (step_s > 0 ? ceil(way_s / step_s) * step_s - way_s : 0)};
}

static void put_together(struct steady_replica *first, struct steady_replica *second, const struct link *x,
                         struct steady_result *o)
{
    const struct steady_lengths *l = second->s->lengths;
    struct steady_result decode = *o;
    const struct crossing way = crossing_of(second, x);
    steady_tell(first, o);
    second->later_s = way.begins_s;
    steady_tell(second, &decode);
    struct steady_histogram ttft, tpot;
    steady_ttft(first, &ttft);
    steady_tpot(second, &tpot);
    o->move_s = way.moved_s;
    o->decode_batch = decode.batch;
    o->decode_utilisation = decode.utilisation;
    o->decoding = second->decoding;
    o->waiting = first->rate_per_s * first->wait_s + second->rate_per_s * second->wait_s;
    o->step_s = second->token_s;
    o->output_tok_per_s = o->rate_per_s * steady_answer_tokens(l);
    o->tpot_s = decode.tpot_s;
    const double token = l->drafted.inverse > 0 ? l->drafted.inverse : 1; /* steps for a token */
    if (tpot.total > 0) o->tpot_s.mean = token * (second->token_s + second->later_s * l->inverse);
    /* After the first token: the transfer, and a step for each of the others. */
    const double after_s = second->later_s * (1 - l->single_frac);
    const double more_s =
        o->ttft_s.mean + after_s + (l->steps > 0 ? l->steps * second->token_s : 0) - decode.latency_s.mean;
    o->latency_s = decode.latency_s;
    o->latency_s.mean += more_s;
    o->latency_s.p50 += more_s;
    o->latency_s.p90 += more_s;
    o->latency_s.p95 += more_s;
    o->latency_s.p99 += more_s;
    o->good_frac = isnan(second->s->ttft_limit_s) ? 1 : steady_histogram_below(&ttft, second->s->ttft_limit_s);
    if (!isnan(second->s->tpot_limit_s) && tpot.total > 0)
        o->good_frac *= l->single_frac + (1 - l->single_frac) * steady_histogram_below(&tpot, second->s->tpot_limit_s);
    o->goodput_per_s = o->good_frac * o->rate_per_s;
}

/* A prefill replica answers with one token; a decode replica has no prompts to compute. */
struct halves {
    struct steady_lengths prompts;
    struct steady_setup of_prompts, of_tokens;
};

static void halve(const struct steady_setup *s, struct halves *h)
{
    const struct steady_decode *d = s->decode;
    h->prompts = *s->lengths;
    h->of_prompts = h->of_tokens = *s;
    h->prompts.steps = h->prompts.steps_square = 0;
    h->prompts.output_tokens = h->prompts.single_frac = 1;
    h->prompts.drafted.answer_tokens = h->prompts.drafted.inverse = h->prompts.drafted.step_cv2 = 0;
    h->of_prompts.lengths = &h->prompts;
    struct steady_setup *t = &h->of_tokens;
    t->plan = d->plan;
    t->calibrated = d->calibrated;
    t->server = d->server;
    t->overlapped = d->overlapped;
    t->overhead_s = d->overhead_s;
    t->policy = SIMULATE_CHUNKED;
    t->max_seqs = d->max_seqs;
    const int64_t rows = d->max_seqs * (s->draft.of ? speculate_judged(s->draft.of, s->draft.gamma) : 1);
    t->budget_tokens = rows > s->budget_tokens ? rows : s->budget_tokens; /* what is computed anew is beside */
    t->blocks = d->blocks;
    t->block_tokens = d->block_tokens;
    t->watermark_frac = 0;
    t->replicas = d->replicas;
}

enum err_code steady_pools_times_open(struct arena *a, const struct steady_setup *s, struct steady_times **prefill,
                                      struct steady_times **decode, struct err *e)
{
    struct halves h;
    halve(s, &h);
    h.of_tokens.times = s->decode->times;
    TRY(steady_times_open(a, &h.of_prompts, prefill, e));
    return steady_times_open(a, &h.of_tokens, decode, e);
}

enum err_code steady_pools_solve(struct arena *a, const struct steady_setup *s, struct steady_result *o, struct err *e)
{
    const struct steady_decode *d = s->decode;
    TRY(check(s, e));
    struct halves h;
    halve(s, &h);
    struct steady_replica first = {
        .s = &h.of_prompts, .times = s->times, .arrival_cv2 = 1, .others_frac = 1, .prompts_frac = 1};
    struct steady_replica second = {.s = &h.of_tokens, .times = d->times, .arrival_cv2 = 1, .others_frac = 1};
    if (!first.times) TRY(steady_times_open(a, &h.of_prompts, &first.times, e));
    if (!second.times) TRY(steady_times_open(a, &h.of_tokens, &second.times, e));
    TRY(steady_chain_room(first.times, steady_chain_phases(&h.of_prompts), e));
    TRY(steady_chain_room(second.times, steady_chain_phases(&h.of_tokens), e));
    const double n = (double)s->replicas, m = (double)d->replicas;
    struct link x = link_of(s, s->rate_per_s / n);
    const double prefill_per_s = steady_saturation_of(&first) * n, link_per_s = x.most_per_s * n;
    const double decode_per_s = s->lengths->steps > 0 ? steady_saturation_of(&second) * m : (double)INFINITY;
    o->saturation_rate_per_s = fmin(fmin(prefill_per_s, decode_per_s), link_per_s);
    o->by = link_per_s <= o->saturation_rate_per_s ? STEADY_TRANSFER
            : decode_per_s <= prefill_per_s        ? second.by
                                                   : STEADY_COMPUTE;
    o->saturated = s->rate_per_s >= o->saturation_rate_per_s;
    if (o->saturated) return ERR_OK;
    first.rate_per_s = s->rate_per_s / n;
    second.rate_per_s = s->rate_per_s / m;
    first.arrival_cv2 = steady_routed(s) > 1 ? s->arrival_cv2 / n : 1 + (s->arrival_cv2 - 1) / n;
    steady_open_solve(&first);
    steady_open_solve(&second);
    put_together(&first, &second, &x, o);
    return ERR_OK;
}
