/* steady_again -- what preempted sequences compute anew; of steady_parts.h. */
#include <math.h>

#include "calc/serve/steady_parts.h"

/* Of a wave of answers that end together, what is lost until those that took their places end: the characteristic
 * function of their steps at one period an answer. 0: all are of one length. */
static double spread_frac(const struct steady_lengths *l)
{
    const double pi = acos(-1), cv2 = fmax(l->steps_square / (l->steps * l->steps) - 1, 0);
    return -expm1(-2 * pi * pi * cv2);
}

/* The chance that so many sequences, at places of their answers that are independent, hold more than the cache. */
static double full_frac(const struct steady_replica *r, double seqs, double cache)
{
    const struct steady_lengths *l = r->s->lengths;
    const double context = r->times->context_tokens;
    double square = 0, steps = 0;
    for (size_t i = 0; i < l->n; i++) {
        const double own = l->node[i].output_tokens - 1;
        const double from = l->node[i].prompt_tokens + l->node[i].cached_tokens, to = from + own;
        square += l->node[i].weight * own * (from * from + from * to + to * to) / 3;
        steps += l->node[i].weight * own;
    }
    const double away = sqrt(fmax(square / steps - context * context, 0) * seqs) / context; /* in sequences */
    return away > 0 ? .5 * erfc((cache - seqs) / away / sqrt(2)) : seqs > cache;
}

double steady_again_of(const struct steady_lengths *l, double kept)
{
    return l->steps > 0 ? exp(-spread_frac(l) * kept) * (steady_answer_tokens(l) - 1) / l->prompt_tokens : 0;
}

double steady_vain_of(const struct steady_lengths *l, double room_tokens, double n)
{
    const double prompt = l->prompt_tokens, computed = prompt / (prompt + l->cached_tokens);
    double over = 0;
    for (size_t i = 0; i < STEADY_QUANTILES; i++) {
        double part;
        (void)steady_quantile(i, &part);
        over += part * fmax(l->prompt_at[i] * computed - room_tokens, 0);
    }
    return l->steps > 0 ? .5 * over / prompt * (room_tokens / prompt) / expm1(2 * n / l->steps) : 0;
}

double steady_rest_of(const struct steady_lengths *l, double room_tokens, double n)
{
    enum { EACH = 8, PARTS = STEADY_QUANTILES / EACH }; /* quantiles taken together */
    const double prompt = l->prompt_tokens, computed = prompt / (prompt + l->cached_tokens);
    double tokens[PARTS] = {0}, weight[PARTS] = {0}, vain = 0;
    for (size_t i = 0; i < STEADY_QUANTILES; i++) {
        double part;
        (void)steady_quantile(i, &part);
        tokens[i / EACH] += part * l->prompt_at[i] * computed;
        weight[i / EACH] += part;
    }
    for (size_t i = 0; i < PARTS; i++) tokens[i] /= weight[i];
    for (size_t i = 0; i < PARTS; i++)
        for (size_t k = 0; k < PARTS; k++) {
            const double piece = room_tokens - tokens[i], left = tokens[k] - piece;
            if (piece > 0 && left > 0) vain += weight[i] * weight[k] * piece * pow(left / tokens[k], 2);
        }
    const double filled = l->steps > 0 ? fmin(n / l->steps * prompt / room_tokens, 1) : 1;
    return vain / prompt * spread_frac(l) * (1 - filled * filled);
}

double steady_again_frac(const struct steady_replica *r, double seqs, double cache)
{
    const struct steady_setup *s = r->s;
    const struct steady_lengths *l = s->lengths;
    if (!(l->steps > 0)) return 0;
    const double reserve_tokens = s->watermark_frac * (double)s->blocks * (double)s->block_tokens;
    const double ends = fmin(seqs, cache) / l->steps; /* answers, a step */
    const double kept = reserve_tokens / l->steps + (r->times->beside ? ends : 0);
    double again = steady_again_of(l, kept);
    /* Caches that come from others come one after another: those that are lost are halfway on average, not in bunches.
     */
    if (!(r->prompts_frac > 0)) again = fmin(again, .5 * steady_again_of(l, 0));
    /* of one length: who is computed anew ends before its bunch, so that this one grows by half as much */
    if (!r->times->beside && steady_one_length(l)) again *= .5;
    const double n = fmin(seqs, cache);
    if (r->times->beside && r->prompts_frac > 0) {
        const double room = fmax(r->times->budget_tokens - r->times->rows * n, 1);
        /* in steps full of prompts answers end as evenly as those are let in: nothing is lost there */
        again *= 1 - fmin(ends * l->prompt_tokens / room, 1);
        again += steady_vain_of(l, room, n) + steady_rest_of(l, room, n);
    }
    return full_frac(r, seqs, cache) * again;
}
