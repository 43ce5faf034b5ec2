/* steady -- the question checked, its replicas solved, the answer put together. */
#include "calc/serve/steady.h"

#include <math.h>

#include "calc/serve/steady_chain.h"
#include "calc/serve/steady_parted.h"

const char *steady_limit_name(enum steady_limit by)
{
    switch (by) {
    case STEADY_COMPUTE: return "compute";
    case STEADY_SEQS: return "max_seqs";
    case STEADY_BLOCKS: return "cache";
    case STEADY_TRANSFER: break;
    }
    return "transfer";
}

/* ---- the question ---- */

static enum err_code check_load(const struct steady_setup *s, struct err *e)
{
    switch (s->load) {
    case STEADY_OPEN:
        if (!(s->rate_per_s > 0) || !isfinite(s->rate_per_s) || !(s->arrival_cv2 >= 0) || !isfinite(s->arrival_cv2))
            return err_set(e, ERR_RANGE, "a rate is above 0, the variation of arrivals not below it");
        break;
    case STEADY_CLOSED:
        if (!(s->concurrency >= 1) || !isfinite(s->concurrency) || !(s->think_s >= 0) || !isfinite(s->think_s) ||
            !(s->front_s >= 0) || !isfinite(s->front_s))
            return err_set(e, ERR_RANGE, "a closed loop has one client or more, who think 0 s or longer");
        break;
    case STEADY_OFFLINE:
        if (!(s->requests >= 1) || !isfinite(s->requests)) return err_set(e, ERR_RANGE, "a batch of no request");
        break;
    }
    return ERR_OK;
}

static enum err_code check(const struct steady_setup *s, struct err *e)
{
    if (s->max_seqs < 1 || s->blocks < 1 || s->block_tokens < 1 || s->replicas < 1)
        return err_set(e, ERR_RANGE, "a steady state takes at least one sequence, one block and one replica");
    if (s->policy != SIMULATE_STATIC && s->budget_tokens < 1) return err_set(e, ERR_RANGE, "a step of no tokens");
    const int64_t rows = s->draft.of ? speculate_judged(s->draft.of, s->draft.gamma) : 1;
    if (s->policy == SIMULATE_CHUNKED && s->budget_tokens / rows < s->max_seqs)
        return err_set(e, ERR_RANGE, "a step of %lld tokens is too small for %lld sequences that decode",
                       (long long)s->budget_tokens, (long long)s->max_seqs);
    if (s->draft.of && (s->policy == SIMULATE_STATIC || s->load != STEADY_OPEN || s->draft.gamma < 1 || !s->lengths ||
                        !(s->lengths->drafted.answer_tokens > 0)))
        return err_set(e, ERR_RANGE, "drafts: at a rate, no static batches, lengths drafted too");
    if (!(s->watermark_frac >= 0) || s->watermark_frac >= 1 || !(s->overhead_s >= 0) || !isfinite(s->overhead_s))
        return err_set(e, ERR_RANGE, "a watermark is in [0, 1), an overhead not below 0");
    if (!(s->slower >= 0) || !isfinite(s->slower) || (s->slower > 0 && s->slower < 1))
        return err_set(e, ERR_RANGE, "steps are not %g times slower than they are predicted", s->slower);
    if (!s->lengths || s->lengths->n == 0 || !(s->lengths->prompt_tokens >= 1) || !(s->lengths->output_tokens >= 1))
        return err_set(e, ERR_RANGE, "requests have a token of prompt and of output at least");
    const int64_t parts = steady_parts_of(s), cache_tokens = s->blocks / parts * s->block_tokens;
    if (s->blocks < parts || s->max_seqs < parts || (s->policy != SIMULATE_STATIC && s->budget_tokens < parts))
        return err_set(e, ERR_RANGE, "each attention group has a sequence, a block and a token of a step at least");
    if (s->lengths->longest_tokens > (double)cache_tokens + .5)
        return err_set(e, ERR_RANGE, "a request of %.0f tokens is longer than the cache of %lld%s",
                       s->lengths->longest_tokens, (long long)cache_tokens,
                       parts > 1 ? " that an attention group has" : "");
    if (!mix_timed(s->plan))
        return err_set(e, ERR_INPUT, "no peak rate of the device is known, so steps have no times");
    return check_load(s, e);
}

/* ---- the answer ---- */

static struct steady_spread unknown_spread(void)
{
    const double unknown = (double)NAN;
    return (struct steady_spread){unknown, unknown, unknown, unknown, unknown};
}

static struct steady_result unknown_result(void)
{
    const double x = (double)NAN;
    const struct steady_spread none = unknown_spread();
    return (struct steady_result){.saturation_rate_per_s = x,
                                  .rate_per_s = x,
                                  .batch = x,
                                  .decoding = x,
                                  .waiting = x,
                                  .utilisation = x,
                                  .blocks_frac = x,
                                  .step_s = x,
                                  .prefill_frac = x,
                                  .input_tok_per_s = x,
                                  .output_tok_per_s = x,
                                  .ttft_s = none,
                                  .tpot_s = none,
                                  .latency_s = none,
                                  .move_s = x,
                                  .goodput_per_s = x,
                                  .good_frac = x,
                                  .span_s = x,
                                  .decode_batch = x,
                                  .decode_utilisation = x};
}

/* After a first token of so many seconds. */
static void add_latency(const struct steady_replica *r, double first_s, double weight, struct steady_histogram *sum)
{
    const struct steady_lengths *l = r->s->lengths;
    const struct steady_histogram *x = r->answers;
    for (size_t i = 0; x && i < STEADY_BINS; i++)
        if (x->weight[i] > 0)
            steady_histogram_add(sum, first_s + x->sums[i] / x->weight[i], weight * x->weight[i] / x->total);
    for (size_t k = 0; !x && k < l->n; k++)
        steady_histogram_add(sum, first_s + (l->node[k].output_tokens - 1) * (l->steps > 0 ? r->token_s : 0),
                             weight * l->node[k].weight);
}

/* Latency: first token and those after it, independent of each other; the last of first tokens in smaller parts. */
static struct steady_spread latency_of(const struct steady_replica *r, const struct steady_histogram *ttft,
                                       struct steady_histogram *sum)
{
    enum { PARTS = 16, TAIL = 4 };
    if (r->latency) return steady_histogram_spread(r->latency);
    const struct steady_lengths *l = r->s->lengths;
    double weight = 0, value = 0, seen = 0;
    steady_histogram_clear(sum);
    for (size_t i = 0; i < STEADY_BINS; i++) { /* a few parts of the first token's distribution */
        const double w = ttft->weight[i];
        if (!(w > 0)) continue;
        weight += w;
        value += ttft->sums[i];
        seen += w;
        const double rest = ttft->total - seen;
        if (weight < fmin(ttft->total / PARTS, (rest + weight) / TAIL) && rest > 1e-9 * ttft->total) continue;
        add_latency(r, value / weight, weight, sum);
        weight = value = 0;
    }
    struct steady_spread x = steady_histogram_spread(sum);
    x.mean = ttft->sum / ttft->total + (l->steps > 0 ? l->steps * r->token_s : 0);
    return x;
}

static double good_frac(const struct steady_setup *s, const struct steady_histogram *ttft,
                        const struct steady_histogram *tpot)
{
    double good = 1;
    const double single = s->lengths->single_frac;
    if (!isnan(s->ttft_limit_s)) good *= steady_histogram_below(ttft, s->ttft_limit_s);
    if (!isnan(s->tpot_limit_s) && tpot->total > 0)
        good *= single + (1 - single) * steady_histogram_below(tpot, s->tpot_limit_s);
    return good;
}

void steady_tell_of(struct steady_replica *r, const struct steady_histogram *ttft, const struct steady_histogram *tpot,
                    struct steady_result *o)
{
    const struct steady_setup *s = r->s;
    const struct steady_lengths *l = s->lengths;
    const double replicas = (double)s->replicas, b = (double)s->block_tokens, half = .5 * (b - 1) / b;
    struct steady_histogram sum;
    o->ttft_s = steady_histogram_spread(ttft);
    o->tpot_s = steady_histogram_spread(tpot);
    const double token = l->drafted.inverse > 0 ? l->drafted.inverse : 1;
    if (r->chain && tpot->total > 0) {
        double all_s = 0, several = 0, inverse = 0, part;
        for (size_t i = 0; i < STEADY_QUANTILES; i++) {
            const double m = l->output_at[i] - 1;
            (void)steady_quantile(i, &part);
            if (!(m > 0)) continue;
            several += part;
            inverse += part / m;
            all_s += part * steady_chain_sum_s(r->chain, m) / m;
        }
        all_s += (l->inverse * several - inverse) * (steady_chain_sum_s(r->chain, 1) - r->chain->mean_s);
        o->tpot_s.mean = token * r->scale * all_s / several;
    } else if (tpot->total > 0 && !r->met)
        o->tpot_s.mean = token * (r->token_s + r->flow.extra_s * (l->inverse - (1 - l->single_frac) / l->steps) +
                                  r->fewer_s / l->steps - r->fewer_each_s);
    o->latency_s = latency_of(r, ttft, &sum);
    o->rate_per_s = r->rate_per_s * replicas;
    o->decoding = r->decoding;
    o->waiting = r->rate_per_s * r->wait_s;
    o->utilisation = 1 - r->idle_frac * (1 - r->alone.busy_frac);
    const double prefilling = r->rate_per_s * fmax(o->ttft_s.mean - r->wait_s, 0);
    /* no more than all clients are there at a time, so that a replica is busy for their mean over their number at least
     */
    if (s->load == STEADY_CLOSED)
        o->utilisation = fmax(o->utilisation, (r->decoding + prefilling) / fmax(s->concurrency / replicas, 1));
    o->batch = (r->decoding + prefilling) / o->utilisation;
    o->blocks_frac = (r->decoding * (r->times->context_tokens / b + half) +
                      prefilling * ((l->prompt_tokens + l->cached_tokens) / b + half)) /
                     o->utilisation / (double)s->blocks;
    o->step_s = r->token_s;
    const struct steady_flow *f = &r->flow;
    const double mixed = f->batches_per_s * f->steps, plain = f->decode_s > 0 ? (1 - f->busy_frac) / f->decode_s : 0;
    o->prefill_frac = mixed / (mixed + plain);
    o->input_tok_per_s = o->rate_per_s * (l->prompt_tokens + l->cached_tokens);
    o->output_tok_per_s = o->rate_per_s * steady_answer_tokens(l);
    o->good_frac = good_frac(s, ttft, tpot);
    o->goodput_per_s = o->good_frac * o->rate_per_s;
}

void steady_tell(struct steady_replica *r, struct steady_result *o)
{
    struct steady_histogram ttft, tpot, answers;
    const double single = r->s->lengths->single_frac;
    steady_ttft(r, &ttft);
    steady_histogram_clear(&answers);
    r->answers = &answers;
    steady_tpot(r, &tpot);
    if (single > 0) steady_histogram_add(&answers, 0, answers.total > 0 ? answers.total * single / (1 - single) : 1);
    steady_tell_of(r, &ttft, &tpot, o);
    r->answers = NULL;
}

/* Of several attention groups, each with a queue, a batch and a cache of its own, one of them. */
struct steady_setup steady_part_of(const struct steady_setup *s)
{
    const int64_t parts = steady_parts_of(s);
    struct steady_setup one = *s;
    one.budget_tokens /= parts;
    one.max_seqs /= parts;
    one.blocks /= parts;
    one.rate_per_s /= (double)parts;
    one.concurrency /= (double)parts;
    one.requests /= (double)parts;
    return one;
}

/* And all of them. */
static void whole_of(double parts, struct steady_result *o)
{
    double *const x[] = {&o->saturation_rate_per_s, &o->rate_per_s,       &o->batch,        &o->decoding, &o->waiting,
                         &o->input_tok_per_s,       &o->output_tok_per_s, &o->goodput_per_s};
    for (size_t i = 0; i < sizeof x / sizeof x[0]; i++) *x[i] *= parts;
}

static enum err_code solve_together(struct arena *a, const struct steady_setup *all, struct steady_result *o,
                                    struct err *e)
{
    const struct steady_setup one = steady_part_of(all), *const s = &one;
    struct steady_replica r = {.s = s, .times = s->times, .arrival_cv2 = 1, .others_frac = 1, .prompts_frac = 1};
    const double replicas = (double)s->replicas, parts = (double)steady_parts_of(all);
    if (!r.times) TRY(steady_times_open(a, all, &r.times, e));
    TRY(steady_chain_room(r.times, steady_chain_phases(s), e));
    const bool parted = steady_parted_of(all);
    (void)steady_saturation_of(&r);
    if (parted && parts > 1) TRY(steady_parted_saturate(&r, e));
    const double most_per_s = r.most_per_s;
    o->saturation_rate_per_s = most_per_s * replicas;
    o->by = r.by;
    r.rate_per_s = most_per_s;
    if (s->load == STEADY_OPEN) {
        r.rate_per_s = s->rate_per_s / replicas;
        r.arrival_cv2 =
            steady_routed(s) > 1 ? s->arrival_cv2 / replicas : 1 + (s->arrival_cv2 - 1) / (replicas * parts);
        o->saturated = r.rate_per_s >= most_per_s;
        if (!o->saturated && !parted) steady_open_solve(&r);
    } else if (s->load == STEADY_OFFLINE) {
        steady_offline_solve(&r, s->requests / replicas, most_per_s, o);
    } else if (!(s->think_s > 0) && s->lengths->steps > 0) {
        steady_clients_solve(&r, fmax(s->concurrency / replicas, 1), o);
    } else {
        r.at_ends = !(s->think_s > 0);
        steady_closed_solve(&r, fmax(s->concurrency / replicas, 1), s->think_s);
        o->saturated = r.wait_s > 0;
        steady_tell(&r, o);
    }
    if (parted && !o->saturated) {
        struct steady_histogram ttft, tpot, latency;
        TRY(steady_parted_solve(&r, &ttft, &tpot, &latency, e));
        r.met = true;
        r.latency = &latency;
        steady_tell_of(&r, &ttft, &tpot, o);
    } else if (s->load == STEADY_OPEN && !o->saturated) {
        steady_tell(&r, o);
    }
    whole_of(parts, o);
    return ERR_OK;
}

static enum err_code solve(struct arena *a, const struct steady_setup *s, struct steady_result *out, struct err *e)
{
    struct steady_setup away = *s; /* where nobody stays together it is as time to think */
    if (s->decode) return steady_pools_solve(a, s, out, e);
    if (s->policy == SIMULATE_STATIC || s->think_s > 0 || !(s->lengths->steps > 0)) {
        away.think_s += s->front_s;
        away.front_s = 0;
    }
    if (s->policy == SIMULATE_STATIC) return steady_static_solve(a, &away, out, e);
    return solve_together(a, &away, out, e);
}

/* All times of a service that is slower by b are those of one that is not at rates and links that are b times faster,
 * and waits and overheads over b, times b. */
enum err_code steady_solve(struct arena *a, const struct steady_setup *s, struct steady_result *out, struct err *e)
{
    const double b = s->slower > 0 ? s->slower : 1;
    TRY(check(s, e));
    *out = unknown_result();
    if (!(b > 1)) return solve(a, s, out, e);
    struct steady_setup fast = *s;
    struct steady_decode decode;
    fast.slower = 0;
    fast.rate_per_s *= b;
    fast.think_s /= b;
    fast.front_s /= b;
    fast.overhead_s /= b;
    fast.ttft_limit_s /= b;
    fast.tpot_limit_s /= b;
    if (s->decode) {
        decode = *s->decode;
        decode.overhead_s /= b;
        decode.link_bytes_per_s *= b;
        decode.link_latency_s /= b;
        fast.decode = &decode;
    }
    TRY(solve(a, &fast, out, e));
    steady_slow(out, b);
    return ERR_OK;
}
