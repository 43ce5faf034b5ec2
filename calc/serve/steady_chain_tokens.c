/* steady_chain_tokens -- the steps of answers of a chain; of steady_chain.h. */
#include <math.h>
#include <string.h>

#include "calc/serve/steady_chain.h"

/* Means and variances of m steps from there on, of who begins with nothing behind it and of who does not. */
void steady_chain_squares(struct steady_chain *c)
{
    double v[STEADY_CHAIN_STATES] = {0}, s[STEADY_CHAIN_STATES] = {0};
    double nv[STEADY_CHAIN_STATES], ns[STEADY_CHAIN_STATES], none = 0;
    const size_t row = (size_t)c->states;
    for (int i = 0; i < c->phases; i++) none += c->entry[i];
    const double some = fmax(1 - none, 1e-12), clear = fmax(none, 1e-300); /* not a unit */
    for (int m = 1; m <= c->known; m++) {
        double mean[2] = {0}, square[2] = {0};
        for (int i = 0; i < c->states; i++) {
            const double *to = c->to + (size_t)i * row;
            const int last = c->last[i];
            double pv = 0, ps = 0;
            for (int j = c->least[i]; j <= last; j++) {
                pv += to[j] * v[j];
                ps += to[j] * s[j];
            }
            const int behind = i >= c->phases;
            const double w = c->phases > 1 || behind ? c->entry[i] / (behind ? some : clear) : 1;
            nv[i] = c->step_s[i] + pv;
            ns[i] = (c->times->parts > 1 ? c->square_s2[i / c->phases] : c->step_s[i] * c->step_s[i]) +
                    2 * c->step_s[i] * pv + ps;
            mean[behind] += w * nv[i];
            square[behind] += w * ns[i];
        }
        memcpy(v, nv, row * sizeof *v);
        memcpy(s, ns, row * sizeof *s);
        c->clear_s[m] = mean[0];
        c->clear_s2[m] = fmax(square[0] - mean[0] * mean[0], 0);
        c->behind_s[m] = mean[1];
        c->behind_s2[m] = fmax(square[1] - mean[1] * mean[1], 0);
    }
}

/* So much of a distribution, of that mean and variance: none of it below `least`, where `none` of it is, or above
 * `most`. Lognormal beyond that, at points of a normal distribution, fine where it is high, each with its part of it;
 * scaled to the mean. */
static void put_tokens(struct steady_tokens *to, const double *least, double weight, double none, double mean,
                       double variance, double most)
{
    enum { POINTS = 12 };
    static const double POINT[POINTS] = {-2.2, -1.5, -1.05, -.67, -.32, 0, .32, .67, 1.05, 1.5, 1.95, 2.6};
    static const double PART[POINTS] = {.036, .08, .108, .13, .128, .12, .118, .108, .08, .052, .025, .015};
    const double some = fmax(1 - none, 1e-9), at = fmax(mean - least[1], 0) / some;
    const double s2 = log1p(fmax((variance + at * at * some * some) / some / fmax(at * at, 1e-30) - 1, 0)),
                 sd = sqrt(s2);
    double point[POINTS], sum = 0;
    for (int q = 0; q < POINTS; q++)
        sum += PART[q] * (point[q] = fmin(at * exp(sd * POINT[q] - s2 / 2), fmax(most - least[1], at)));
    static const double SIDE[3] = {1. / 6, 2. / 3, 1. / 6};
    for (int k = 0; k < 3; k++) {
        if (none > 1e-3) steady_tokens_add(to, least[k], weight * none * SIDE[k]);
        for (int q = 0; q < POINTS; q++)
            steady_tokens_add(to, least[k] + (sum > 0 ? point[q] * at / sum : 0), weight * some * SIDE[k] * PART[q]);
    }
}

void steady_chain_tokens(struct steady_replica *r, struct steady_histogram *h)
{
    const struct steady_lengths *l = r->s->lengths;
    const struct steady_chain *c = r->chain;
    const double number = fmax(r->square - r->decoding * r->decoding, 0) * r->slope_s * r->slope_s;
    const double life = l->steps_square / (2 * l->steps); /* steps of others yet to come */
    const double stride = l->drafted.inverse > 0 ? 1 / l->drafted.inverse : 1, LEAST = .03;
    struct steady_tokens to = {.tpot = h, .answers = r->answers, .lengths = l, .stride = stride};
    size_t first = 0;
    steady_histogram_clear(h);
    double sum = 0, part = 0;
    for (size_t i = 0; i < STEADY_QUANTILES; i++) {
        double one;
        (void)steady_quantile(i, &one);
        if (l->output_at[i] > 1) {
            if (!(part > 0)) first = i;
            sum += one * (l->output_at[i] - 1);
            part += one;
        }
        if (!(part > 0) || (part < LEAST && i + 1 < STEADY_QUANTILES)) continue;
        const double steps = sum / part, y = steps / life;
        const double smooth = y > 1e-3 ? 2 * (y - 1 + exp(-y)) / (y * y) : 1;
        struct steady_chain_part x[2];
        steady_chain_parts(c, steps, x);
        steady_tokens_begin(&to, first, i);
        for (int k = 0; k < 2; k++) {
            const double mean = r->scale * x[k].mean_s / steps, base_s = fmin(c->plain_s, mean);
            const double kept = l->drafted.step_cv2 * mean * mean / steps, away = sqrt(3 * (number * smooth + kept));
            const double none = k > 0 ? 0 : steady_chain_clear(c, steps - 1);
            const double from = base_s + r->later_s / steps,
                         least[] = {(from - away) / stride, from / stride, (from + away) / stride};
            put_tokens(&to, least, part * x[k].weight, none, (mean + r->later_s / steps) / stride,
                       r->scale * r->scale * x[k].variance_s2 / (steps * steps) / (stride * stride),
                       (c->full_s + r->later_s / steps) / stride);
        }
        steady_tokens_end(&to);
        sum = part = 0;
    }
}
