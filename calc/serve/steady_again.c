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

/* A prompt longer than a step enters with its first piece, and where the rest has no room it leaves again, every other
 * step until an answer ends: what it computes in vain, of all prompts. Half of those too long fit at that end. */
static double vain_frac(const struct steady_replica *r, double n)
{
    const struct steady_times *t = r->times;
    const double prompt = r->s->lengths->prompt_tokens, room = fmax(t->budget_tokens - t->rows * n, 1);
    double over = 0;
    for (size_t i = 0; i < t->groups; i++)
        for (int k = 0; k < 4; k++)
            over += t->group[i].weight / 4 * fmax(steady_group_at(t, i, (k + .5) / 4) - room, 0);
    return .5 * over / prompt / expm1(2 * n / r->s->lengths->steps) * room / prompt;
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
    if (r->times->beside && r->prompts_frac > 0) again += vain_frac(r, fmin(seqs, cache));
    return full_frac(r, seqs, cache) * again;
}
