/* steady_offline -- all requests at once; of steady_parts.h. */
#include <math.h>

#include "calc/serve/steady_parts.h"

/* The answers of n that begin together, without others: a step for all that are not done. */
static double drain_s(struct steady_replica *r, double n)
{
    const double *at = r->s->lengths->output_at;
    double sum_s = 0, done = 1, place = 0;
    for (size_t i = 0; i < STEADY_QUANTILES && place < 1 - .5 / n; i++) {
        double part;
        (void)steady_quantile(i, &part);
        const double left = fmax(n * (1 - place - part / 2), 1);
        if (at[i] > done) sum_s += (at[i] - done) * steady_times_step_s(r->times, left, 0);
        done = fmax(done, at[i]);
        place += part;
    }
    return sum_s;
}

void steady_offline_solve(struct steady_replica *r, double requests, double most_per_s, struct steady_result *o)
{
    enum { PARTS = 64 }; /* not a unit */
    const struct steady_lengths *l = r->s->lengths;
    const double replicas = (double)r->s->replicas, most = l->steps > 0 ? fmin(requests, r->most) : requests;
    const double room = fmax(r->times->budget_tokens - (r->times->beside ? most / 2 : 0), 1);
    const double fill_s =
        most * l->prompt_tokens / room * steady_times_step_s(r->times, r->times->beside ? most / 2 : 0, room);
    const double later_s = requests > most ? (requests - most) / most_per_s : 0;
    const double last_s = l->steps > 0 ? drain_s(r, most) : 0;
    struct steady_histogram ttft, tpot, latency;
    steady_histogram_clear(&ttft);
    steady_histogram_clear(&tpot);
    steady_histogram_clear(&latency);
    r->rate_per_s = requests / (fill_s + later_s + last_s);
    r->token_s = l->steps > 0 ? (requests > most ? r->most / (most_per_s * l->steps)
                                                 : last_s / (l->output_at[STEADY_QUANTILES - 1] - 1))
                              : (double)NAN;
    for (int i = 0; i < PARTS; i++) {
        const double at = (i + .5) / PARTS * requests;
        const double first_s = at < most ? fill_s * at / most : fill_s + later_s * (at - most) / (requests - most);
        steady_histogram_add(&ttft, first_s, 1. / PARTS);
        for (size_t k = 0; k < l->n; k++) {
            const double steps = l->node[k].output_tokens - 1;
            steady_histogram_add(&latency, first_s + (steps > 0 ? steps * r->token_s : 0), l->node[k].weight / PARTS);
        }
    }
    if (l->steps > 0) steady_histogram_add(&tpot, r->token_s, 1);
    o->saturated = requests > most;
    o->span_s = fill_s + later_s + last_s;
    o->rate_per_s = r->rate_per_s * replicas;
    o->utilisation = 1;
    o->decoding = l->steps > 0 ? fmin(r->rate_per_s * l->steps * r->token_s, most) : 0;
    o->batch = fmin(o->decoding + r->rate_per_s * fill_s / fmax(most, 1), most);
    o->waiting = (requests - most) / 2;
    o->step_s = r->token_s;
    o->input_tok_per_s = o->rate_per_s * (l->prompt_tokens + l->cached_tokens);
    o->output_tok_per_s = o->rate_per_s * l->output_tokens;
    o->ttft_s = steady_histogram_spread(&ttft);
    o->tpot_s = steady_histogram_spread(&tpot);
    o->latency_s = steady_histogram_spread(&latency);
    o->good_frac = isnan(r->s->ttft_limit_s) ? 1 : steady_histogram_below(&ttft, r->s->ttft_limit_s);
    if (!isnan(r->s->tpot_limit_s) && l->steps > 0 && r->token_s > r->s->tpot_limit_s) o->good_frac *= l->single_frac;
    o->goodput_per_s = o->good_frac * o->rate_per_s;
}
