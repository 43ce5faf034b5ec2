/* steady_groups -- what the other attention groups of a copy have in a step; of steady_parts.h. */
#include <math.h>

#include "calc/serve/steady_chain.h"

bool steady_in_turn(const struct steady_setup *s)
{
    if (steady_parts_of(s) < 2 || s->load != STEADY_OPEN || s->route == SIMULATE_PREFIX) return false;
    if (steady_parts_of(s) > STEADY_DEAL_GROUPS) return false;
    return s->route == SIMULATE_ROUND_ROBIN || steady_one_length(s->lengths);
}

void steady_others_none(struct steady_others *out) { *out = (struct steady_others){.n = 1, .part = {1}}; }

/* Of k = groups - 1 the largest is the i-th of the law with the chance F(i)^k - F(i-1)^k, and then all have
 * k (A(i) F(i)^(k-1) - A(i-1) F(i-1)^(k-1)) over that, A(i) the sum of what is not above it. */
void steady_others_of(const struct steady_law *law, double groups, struct steady_others *out)
{
    const double others = groups - 1, each = 1. / (STEADY_OTHERS - 2);
    double below = 0, tokens = 0, power = 0, sum = 0, part = 0, part_most = 0, part_sum = 0;
    *out = (struct steady_others){.n = 0};
    for (int i = 0; i < law->n; i++) {
        below = fmin(below + law->part[i], 1);
        tokens += law->part[i] * law->tokens[i];
        const double now = i + 1 < law->n ? pow(below, others) : 1, one = now - power;
        const double all = others * tokens * (below > 0 ? now / below : 0);
        part += one;
        part_most += one * law->tokens[i];
        part_sum += all - sum;
        power = now;
        sum = all;
        const bool last = i + 1 == law->n;
        if (!(part > 1e-9) || (i > 0 && i + 2 < law->n && part < each)) continue;
        if (out->n == STEADY_OTHERS) { /* what is left is with the last */
            const int k = out->n - 1;
            const double both = out->part[k] + part;
            out->most[k] = (out->most[k] * out->part[k] + part_most) / both;
            out->sum[k] = (out->sum[k] * out->part[k] + part_sum) / both;
            out->part[k] = both;
        } else {
            out->most[out->n] = part_most / part;
            out->sum[out->n] = part_sum / part;
            out->part[out->n++] = part;
        }
        if (!last) part = part_most = part_sum = 0;
    }
}

void steady_steps_add(struct steady_steps *x, double tokens, double weight)
{
    const int octave = steady_exponent(fmax(tokens, 1)) - 1, half = tokens > 1.41 * steady_power_below(fmax(tokens, 1));
    const int at = 2 * octave + half, i = at < STEADY_LAWS - 2 ? at : STEADY_LAWS - 2;
    x->weight[i] += weight;
    x->tokens[i] += weight * tokens;
}

void steady_steps_law(const struct steady_steps *x, double frac, struct steady_law *out)
{
    double all = 0;
    for (int i = 0; i < STEADY_LAWS - 1; i++) all += x->weight[i];
    *out = (struct steady_law){.n = 1, .part = {all > 0 ? 1 - frac : 1}};
    for (int i = 0; i < STEADY_LAWS - 1; i++) {
        if (!(x->weight[i] > 0)) continue;
        out->tokens[out->n] = x->tokens[i] / x->weight[i];
        out->part[out->n++] = frac * x->weight[i] / all;
    }
}

double steady_largest_of(double number)
{
    enum { POINTS = 64 };
    const double far = 6, step = 2 * far / POINTS;
    double sum = 0;
    if (!(number > 1)) return 0;
    for (int i = 0; i < POINTS; i++) { /* the integral of 1 - F^n above 0, less that of F^n below */
        const double z = -far + (i + .5) * step, below = pow(.5 * erfc(-z / sqrt(2)), number);
        sum += step * (z > 0 ? 1 - below : -below);
    }
    return sum;
}

/* The middle of a piece is anywhere in its prompt, that of a prompt of one piece in its middle: S(z) of the tokens of
 * all prompts are in pieces farther than z, and the farthest of k pieces is at the integral of 1 - (1 - S)^k. Where a
 * group has several prompts in a step their mean varies by as much less. */
double steady_deeper(const struct steady_times *t, double x, double number)
{
    enum { POINTS = 48 };
    const double longest = t->group[t->groups - 1].tokens, piece = fmin(x, t->piece_tokens), step = longest / POINTS;
    double all = 0, mean = 0, most = 0;
    if (!(number > 1)) return 0;
    size_t within = t->groups; /* whole prompts: those that such a step can have */
    while (!t->pieces && within > 1 && t->group[within - 1].tokens > x) within--;
    for (size_t i = 0; i < within; i++) all += t->group[i].weight * t->group[i].tokens;
    for (int k = 0; k < POINTS; k++) {
        const double z = (k + .5) * step;
        double beyond = 0;
        for (size_t i = 0; i < within; i++) {
            const double own = t->group[i].tokens, low = fmin(piece, own) / 2, high = own - low;
            const double part = high > low ? fmin(fmax((high - z) / (high - low), 0), 1) : z < low;
            beyond += t->group[i].weight * own / all * part;
        }
        beyond = fmin(beyond, 1);
        mean += step * beyond;
        most += step * (1 - pow(1 - beyond, number));
    }
    return (most - mean) / sqrt(fmax(x / t->long_tokens, 1));
}

enum err_code steady_times_whole(struct steady_times *t, const struct steady_times *like, struct err *e)
{
    t->whole_s = like ? like->whole_s : NULL;
    if (t->whole_s) return ERR_OK;
    t->whole_s = arena_array(t->arena, 2, sizeof *t->whole_s);
    if (!t->whole_s) return err_nomem(e);
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < STEADY_SHARES; k++)
            for (size_t q = 0; q < STEADY_X_KNOTS; q++) t->whole_s[i][k][q] = (double)NAN;
    return ERR_OK;
}

/* One prompt of so many tokens, or STEADY_WHOLES of a part of them each. */
static double whole_at(struct steady_times *t, bool several, size_t share, size_t knot, double cached)
{
    double *const at_s = &t->whole_s[several][share][knot];
    const double x = fmax(t->x_knot[knot], 1), n = several ? fmin(STEADY_WHOLES, x) : 1;
    if (!isnan(*at_s)) return *at_s;
    mix_clear(&t->scratch);
    mix_prefill(&t->scratch, n, x / n, cached);
    mix_others(&t->scratch, STEADY_SHARE[share] * (t->parts - 1) * x);
    *at_s = t->overhead_s + engine_any_s(t->server, t->overlapped, t->calibrated, &t->scratch);
    if (t->rows_s) *at_s -= steady_times_alone_s(t, 0, x * (1 - 1e-9)); /* rounding; jumps are not on a line */
    return *at_s;
}

double steady_times_whole_s(struct steady_times *t, double x, double square, double share)
{
    double cached = 0, at_s[STEADY_SHARES];
    for (size_t i = 0; i < t->groups; i++) cached += t->group[i].weight * t->group[i].cached;
    const double one = 1. / STEADY_WHOLES, alone = (fmin(square / (x * x), 1) - one) / (1 - one);
    const size_t k = steady_times_knot(t, x), shares = t->parts > 1 ? STEADY_SHARES : 1;
    const double low = t->x_knot[k], part = fmax(x - low, 0) / (t->x_knot[k + 1] - low);
    for (size_t q = 0; q < shares; q++) {
        double ends_s[2];
        for (size_t i = 0; i < 2; i++) {
            const double several_s = whole_at(t, true, q, k + i, cached);
            ends_s[i] = several_s + alone * (whole_at(t, false, q, k + i, cached) - several_s);
        }
        at_s[q] = ends_s[0] + part * (ends_s[1] - ends_s[0]);
    }
    if (shares > 1) return steady_times_share_s(at_s, share);
    return at_s[0] + (t->rows_s ? steady_times_rows_s(t, x) : 0);
}
