/* steady_saturation -- how many decode on one replica at most, and the rate at which they do; of steady_parts.h. */
#include <math.h>

#include "calc/serve/steady_chain.h"

/* Prompts in their steps at a rate, on average. */
static double prefilling(const struct steady_replica *r, const struct steady_flow *f)
{
    if (r->times->beside) return f->rate_per_s * f->steps * f->token_s / fmax(f->requests, 1);
    return f->busy_frac * f->requests / fmax(f->steps, 1);
}

/* How many may decode beside those that are in prefill. */
static void find_most(struct steady_replica *r, double in_prefill)
{
    const struct steady_setup *s = r->s;
    const struct steady_lengths *l = s->lengths;
    const double b = (double)s->block_tokens, half = .5 * (b - 1) / b;
    const double blocks = (double)s->blocks * (1 - s->watermark_frac);
    const double of_prompt = (l->prompt_tokens + l->cached_tokens) / b + half;
    const double seqs = fmax((double)s->max_seqs - in_prefill, .01),
                 cache = fmax((blocks - in_prefill * of_prompt) / (r->times->context_tokens / b + half), .01);
    r->most = fmin(seqs, cache);
    r->by = seqs <= cache ? STEADY_SEQS : STEADY_BLOCKS;
    r->places = r->by == STEADY_SEQS ? (double)s->max_seqs : r->most + in_prefill;
    r->again_frac = steady_again_frac(r, seqs, cache);
}

/* The rate at which n decode: rate * steps * token_s(rate) = n. */
static double rate_of(struct steady_replica *r, double n, struct steady_flow *f)
{
    const double steps = r->s->lengths->steps;
    double low = 0, high = n / (steps * steady_times_step_s(r->times, n, 0));
    double rate = fmin(n / (steps * steady_flow_replaced_s(r->times, n, n / steps * (r->prompts_frac + r->again_frac),
                                                           1, r->s->lengths->single_frac)),
                       high);
    for (int k = 0; k < 12; k++) {
        steady_flow_solve(r->times, rate * (r->prompts_frac + r->again_frac), r->arrival_cv2, n, f);
        const double token_s = steady_token_s(r, f), found = rate * steps * token_s;
        if (fabs(found - n) < 4e-3 * n) return rate;
        if (found > n)
            high = rate;
        else
            low = rate;
        const double next = isfinite(found) ? n / (steps * token_s) : 0; /* of the time of a token as it was */
        rate = next > low && next < high ? .5 * (next + rate) : .5 * (low + high);
        if (!(rate > low && rate < high)) rate = .5 * (low + high);
    }
    return rate;
}

/* Prompts alone, each with one token of output: as many as full steps take. */
static double prompts_alone(struct steady_replica *r)
{
    struct steady_flow f;
    double low = 0, high = 1 / steady_times_step_s(r->times, 0, r->s->lengths->prompt_tokens);
    for (steady_flow_solve(r->times, high, 1, 0, &f); f.stable && f.busy_frac < 1;
         steady_flow_solve(r->times, high, 1, 0, &f)) {
        low = high;
        high *= 2;
    }
    for (int k = 0; k < 20; k++) {
        const double rate = .5 * (low + high);
        steady_flow_solve(r->times, rate, 1, 0, &f);
        if (f.stable && f.busy_frac < 1)
            low = rate;
        else
            high = rate;
    }
    return low;
}

static double find_saturation(struct steady_replica *r)
{
    enum { ROUNDS = 3 };
    const struct steady_lengths *l = r->s->lengths;
    struct steady_flow f;
    const double rows = r->times->rows;
    double rate = 0;
    find_most(r, 0);
    if (!(l->steps > 0)) {
        r->by = STEADY_COMPUTE;
        return prompts_alone(r);
    }
    if (!r->times->beside && r->prompts_frac > 0) {
        const double n = fmax(r->most, 1), spread = l->prompt_square / (l->prompt_tokens * l->prompt_tokens);
        /* a long prompt waits for room until others fit behind it: of exponential ones every other answer lets two in
         */
        const double bunch = r->by == STEADY_BLOCKS ? spread : 1;
        return n / (l->steps *
                    steady_flow_replaced_s(r->times, n, n / l->steps * (1 + r->again_frac), bunch, l->single_frac));
    }
    /* All steps full: n decode and budget - n tokens of prompts, in the ratio of what requests have of both. Without
     * prompts to compute none is. */
    const bool beside = r->times->beside && r->prompts_frac > 0;
    const double full =
        beside ? r->times->budget_tokens * l->steps / (l->prompt_tokens + rows * l->steps) : (double)INFINITY;
    for (int k = 0; k < ROUNDS; k++) {
        if (full <= r->most) {
            r->by = STEADY_COMPUTE;
            return full /
                   (l->steps * steady_times_step_s(r->times, fmax(full, 1), r->times->budget_tokens - rows * full));
        }
        const double before = rate;
        if (beside && !(rows > 1)) { /* who decodes and who has a prompt to compute are as many as have a place */
            double in_prefill;
            rate = steady_in_turn(r->s) ? steady_chain_places_per_s(r, fmax(r->places, 1), r->again_frac, &in_prefill)
                                        : steady_pieces_rate(r, fmax(r->places, 1), r->again_frac, &in_prefill);
            find_most(r, in_prefill);
            if (fabs(rate - before) < 5e-3 * rate) break;
            continue;
        }
        rate = rate_of(r, fmax(r->most, 1), &f);
        if (r->again_frac > 0 && isfinite(full)) /* no more is computed anew than full steps have room for */
            rate = fmax(rate, r->most / (l->steps * steady_times_step_s(r->times, fmax(r->most, 1),
                                                                        r->times->budget_tokens - r->most)));
        find_most(r, prefilling(r, &f));
        if (fabs(rate - before) < 5e-3 * rate) break;
    }
    return rate;
}

double steady_saturation_of(struct steady_replica *r)
{
    const struct steady_setup *s = r->s;
    struct steady_times *t = r->times;
    if (t->saturation.rate_per_s > 0 && t->saturation.max_seqs == s->max_seqs && t->saturation.blocks == s->blocks &&
        t->saturation.block_tokens == s->block_tokens && t->saturation.together == (s->load != STEADY_OPEN) &&
        !(t->saturation.watermark_frac < s->watermark_frac) && !(t->saturation.watermark_frac > s->watermark_frac)) {
        r->most = t->saturation.most;
        r->places = t->saturation.places;
        r->again_frac = t->saturation.again_frac;
        r->by = t->saturation.by;
        return r->most_per_s = t->saturation.rate_per_s;
    }
    t->saturation.rate_per_s = find_saturation(r);
    t->saturation.about_per_s = 0;
    t->saturation.together = s->load != STEADY_OPEN;
    if (t->saturation.together && (t->beside ? r->by == STEADY_SEQS : r->by != STEADY_COMPUTE) && r->prompts_frac > 0 &&
        steady_one_length(s->lengths)) {
        const double places = fmax(r->places, 1), decode_s = s->lengths->steps * steady_times_step_s(t, places, 0);
        const double cycle_s = steady_cohort_s(r, places); /* who begins together ends together */
        if (cycle_s > 0) t->saturation.rate_per_s = places / (cycle_s + r->again_frac * fmax(cycle_s - decode_s, 0));
    }
    t->saturation.max_seqs = s->max_seqs;
    t->saturation.blocks = s->blocks;
    t->saturation.block_tokens = s->block_tokens;
    t->saturation.watermark_frac = s->watermark_frac;
    t->saturation.most = r->most;
    t->saturation.places = r->places;
    t->saturation.again_frac = r->again_frac;
    t->saturation.by = r->by;
    return r->most_per_s = t->saturation.rate_per_s;
}
