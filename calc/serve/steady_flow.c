/* steady_flow -- prompts between or beside sequences that decode; of steady_parts.h. */
#include <math.h>

#include "calc/serve/steady_parts.h"

/* Steps that a batch of `tokens` takes whose largest prompt has `own`, and prompt tokens of the last. Whole prompts
 * leave part of a step empty, as the next one does not fit. */
static double steps_of(const struct steady_times *t, double tokens, double own, double room, double waste, double *last)
{
    if (t->pieces) {
        const double steps = fmax(ceil(tokens / room - 1e-9), 1);
        *last = tokens - (steps - 1) * room;
        return steps;
    }
    if (tokens <= room || tokens <= own) {
        *last = tokens;
        return 1;
    }
    const double whole = own >= room ? 1 : 0, left = tokens - whole * own;
    const double steps = fmax(ceil(left / fmax(room - waste, own < room ? own : 1)), 1);
    *last = left / steps;
    return whole + steps;
}

/* Steps and seconds of a batch of so many requests. */
static void look_at_batch(struct steady_times *t, struct steady_flow *f, double prompt, double waste, double *none)
{
    const double others = (f->requests - 1) * prompt;
    f->steps = f->last_s = *none = 0;
    double seconds = 0;
    for (size_t i = 0; i < t->groups; i++) {
        const struct steady_group *g = &t->group[i];
        double last;
        const double steps = steps_of(t, g->tokens + others, g->tokens, f->room_tokens, waste, &last);
        const double last_s = steady_times_step_s(t, f->n, last);
        f->steps += g->weight * steps;
        f->last_s += g->weight * last_s;
        *none += g->weight * exp(-f->rate_per_s * last_s);
        if (t->pieces)
            seconds += g->weight * ((steps - 1) * f->full_s + last_s);
        else if (g->tokens >= f->room_tokens && steps > 1)
            seconds += g->weight * (steady_times_step_s(t, f->n, g->tokens) + (steps - 1) * last_s);
        else
            seconds += g->weight * steps * last_s;
    }
    f->busy_frac = seconds; /* of a batch, for now */
}

/* Who begins to decode finds more prompts waiting than whoever decodes does at the end of a step: all that came during
 * the long step that computed its own. In m steps it sees m*token_s and, once, the difference. */
static double extra_of(const struct steady_times *t, const struct steady_flow *f, double batch_s)
{
    const double mixed = f->batches_per_s * f->steps, plain = (1 - f->busy_frac) / f->decode_s;
    const double each_s = (batch_s - (t->beside ? f->steps * f->decode_s : 0)) / f->requests;
    const double behind = .5 * (f->requests - 1) * fmin(1, (f->steps - 1) / f->requests);
    const double first = each_s * (f->rate_per_s * f->last_s + behind);
    double last = each_s * f->rate_per_s * f->decode_s;
    if (t->beside)
        last = each_s * f->rate_per_s / (mixed + plain) +
               f->batches_per_s / (mixed + plain) * (f->full_s - f->decode_s) * f->steps * (f->steps - 1) / 2;
    return (first - last) / fmax(1 - f->rate_per_s * each_s, .01);
}

void steady_flow_solve(struct steady_times *t, double rate_per_s, double n, struct steady_flow *f)
{
    enum { ROUNDS = 40 };
    double prompt = 0, square = 0, none = 1;
    for (size_t i = 0; i < t->groups; i++) {
        prompt += t->group[i].weight * t->group[i].tokens;
        square += t->group[i].weight * t->group[i].tokens * t->group[i].tokens;
    }
    *f = (struct steady_flow){.rate_per_s = rate_per_s, .n = n, .requests = 1, .stable = true};
    f->room_tokens = fmax(t->beside ? t->budget_tokens - n : t->budget_tokens, 1);
    f->decode_s = steady_times_step_s(t, n, 0);
    f->full_s = steady_times_step_s(t, n, f->room_tokens);
    const double starts = n > 0 ? -expm1(-rate_per_s * f->decode_s) / f->decode_s : rate_per_s;
    double batch_s = 0;
    for (int k = 0; k < ROUNDS; k++) {
        look_at_batch(t, f, prompt, fmin(square / prompt / 2, f->room_tokens / 2), &none);
        batch_s = f->busy_frac;
        f->batches_per_s = starts / (none + starts * batch_s);
        const double requests = fmax(rate_per_s / f->batches_per_s, 1), before = f->requests;
        f->requests = k < 4 ? requests : before + .5 * (requests - before);
        if (fabs(f->requests - before) < 1e-3 * before) break;
        if (k + 1 == ROUNDS || f->requests > 1e6) f->stable = false; /* not a unit */
    }
    f->busy_frac = fmin(f->batches_per_s * batch_s, 1);
    f->token_s = (double)INFINITY;
    if (!(n > 0)) return;
    const double decode_steps = (1 - f->busy_frac) / f->decode_s;
    f->token_s = 1 / (decode_steps + (t->beside ? f->batches_per_s * f->steps : 0));
    if (!isfinite(f->token_s)) f->stable = false;
    if (f->stable) f->extra_s = extra_of(t, f, batch_s);
}
