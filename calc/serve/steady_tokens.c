/* steady_tokens -- what tokens and whole answers take, of answers of about as many steps; of steady_parts.h. */
#include <math.h>

#include "calc/serve/steady_parts.h"

void steady_tokens_begin(struct steady_tokens *x, size_t first, size_t last)
{
    const double *at = x->lengths->output_at;
    x->first = first;
    x->last = last;
    x->one = !(at[last] > at[first]) || !(at[last] > 2);
    x->weight = x->sum = x->square = 0;
}

void steady_tokens_add(struct steady_tokens *x, double token_s, double weight)
{
    steady_histogram_add(x->tpot, token_s, weight);
    if (!x->answers) return;
    if (x->one) {
        steady_histogram_add(x->answers, token_s * x->stride * (x->lengths->output_at[x->last] - 1), weight);
        return;
    }
    x->weight += weight;
    x->sum += weight * token_s;
    x->square += weight * token_s * token_s;
}

void steady_tokens_end(struct steady_tokens *x)
{
    enum { POINTS = 3 };
    static const double PART[POINTS] = {1. / 6, 2. / 3, 1. / 6}; /* of a normal distribution, five moments */
    if (!x->answers || x->one || !(x->weight > 0)) return;
    const double mean_s = x->sum / x->weight,
                 away_s = sqrt(3 * fmax(x->square / x->weight - mean_s * mean_s, 0)) * x->stride;
    for (size_t i = x->first; i <= x->last; i++) {
        double part;
        const double steps = x->lengths->output_at[i] - 1;
        (void)steady_quantile(i, &part);
        for (int k = 0; k < POINTS && steps > 0; k++)
            steady_histogram_add(x->answers, steps * fmax(mean_s * x->stride + (k - 1) * away_s, 0), part * PART[k]);
    }
}
