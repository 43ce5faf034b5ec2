/* steady_chain_deal -- attention groups to which prompts are dealt in turn: what one and the others have in a step; of
 * steady_chain.h. */
#include <math.h>
#include <stdlib.h>

#include "calc/serve/steady_chain.h"

enum { ROOM = STEADY_CHAIN_ROOM };

/* Of what groups have with so many prompts each: parts up to a place, and tokens in these. */
struct law {
    double part[ROOM], below[ROOM], tokens[ROOM];
};

/* As what is beyond a room's tokens is as much as that. */
static void add(const struct steady_chain *c, struct law *x, double tokens, double weight)
{
    if (tokens >= c->room)
        x->part[c->full] += weight;
    else
        steady_chain_add(c, x->part, tokens, weight);
}

/* `number` prompts behind what is left over. */
static void law_of(const struct steady_chain *c, const double *left, double number, struct law *x)
{
    struct steady_chain_sum s = {.n = 1, .tokens = {0}, .weight = {1}};
    double all = 0, below = 0, tokens = 0;
    *x = (struct law){.part = {0}};
    if (number > 1) {
        const double prompt = c->prompt_tokens, square = number * number + number * fmax(c->arrival_cv2 - 1, 0);
        steady_chain_sum_of(number * prompt, number * (c->prompt_square - prompt * prompt) + square * prompt * prompt,
                            &s);
    } else if (number > 0) {
        s.n = c->ones;
        for (int i = 0; i < c->ones; i++) {
            s.tokens[i] = c->one_tokens[i];
            s.weight[i] = c->one_part[i];
        }
    }
    for (int k = 0; k < c->n; k++) all += left[k];
    for (int k = 0; k < c->n; k++) {
        const double w = all > 0 ? left[k] / all : k == 0;
        if (!(w > 1e-6)) continue;
        for (int i = 0; i < s.n; i++) add(c, x, c->tokens[k] + s.tokens[i], w * s.weight[i]);
    }
    for (int i = 0; i <= c->full; i++) {
        below += x->part[i];
        tokens += x->part[i] * c->tokens[i];
        x->below[i] = fmin(below, 1);
        x->tokens[i] = tokens;
    }
}

/* Of n prompts to all groups r have q + 1 and the others q, weight by weight (chances of n = q groups + r). Others are
 * independent of each other then. */
static void put(const struct steady_chain *c, const struct law *low, const struct law *high, int q,
                const double *chance, struct steady_deal *out)
{
    const int groups = (int)c->times->parts, less = q < 2 ? q : 2, more = q < 1 ? q + 1 : 2;
    double low_of = 0, high_of = 0;
    for (int r = 0; r < groups; r++) {
        low_of += chance[r] * (groups - r) / groups;
        high_of += chance[r] * r / groups;
    }
    out->of[less] += low_of;
    out->of[more] += high_of;
    for (int i = 0; i <= c->full; i++) {
        const double a = low->below[i], b = high->below[i];
        out->own[less][i] += low_of * low->part[i];
        out->own[more][i] += high_of * high->part[i];
        if (!(a > 0)) continue;
        /* all but one of the lesser below; each of the greater in place of one */
        double all_below = i < c->full ? pow(a, groups - 1) : 1;
        const double ratio = i < c->full ? fmin(b / a, 1) : 1, low_mean = low->tokens[i] / a,
                     high_mean = b > 0 ? high->tokens[i] / b : 0;
        double with_less = all_below; /* r greater of the others */
        for (int r = 0; r < groups; r++) {
            const double own_low = chance[r] * (groups - r) / groups * with_less;
            out->most[less][i] += own_low;
            out->all[less][i] += own_low * ((groups - 1 - r) * low_mean + r * high_mean);
            if (r + 1 < groups) { /* it is one of r + 1 greater ones */
                const double own_high = chance[r + 1] * (r + 1) / groups * with_less;
                out->most[more][i] += own_high;
                out->all[more][i] += own_high * ((groups - 1 - r) * low_mean + r * high_mean);
            }
            with_less *= ratio;
        }
    }
}

void steady_chain_deal(const struct steady_chain *c, double count, const double *left, struct steady_deal *out)
{
    enum { AWAY = 5 };
    const int groups = (int)c->times->parts, copies = c->copies;
    const double ticks = (double)groups * copies * count, away = AWAY * sqrt(ticks) + AWAY;
    const double from = fmax(floor((ticks - away) / (copies * groups)), 0);
    struct law low, high;
    double all = 0;
    *out = (struct steady_deal){.of = {0}};
    law_of(c, left, from, &low);
    for (double q = from; q * groups * copies <= ticks + away; q++) {
        double chance[STEADY_DEAL_GROUPS] = {0};
        for (int r = 0; r < groups; r++) {
            const double n = q * groups + r; /* of the copy: from ticks of n copies on, each phase as likely */
            for (int i = 1 - copies; i < copies; i++) {
                const double at = n * copies + i;
                if (at < 0) continue;
                chance[r] +=
                    (1 - (double)abs(i) / copies) * exp(at * log(fmax(ticks, 1e-300)) - ticks - lgamma(at + 1));
            }
            all += chance[r];
        }
        law_of(c, left, q + 1, &high);
        put(c, &low, &high, (int)fmin(q, 2), chance, out);
        low = high;
    }
    for (int k = 0; k < STEADY_DEALS; k++) {
        for (int i = c->full; i >= 0; i--) {
            out->most[k][i] =
                out->of[k] > 0 ? fmax(out->most[k][i] - (i > 0 ? out->most[k][i - 1] : 0), 0) / out->of[k] : 0;
            out->all[k][i] =
                out->of[k] > 0 ? fmax(out->all[k][i] - (i > 0 ? out->all[k][i - 1] : 0), 0) / out->of[k] : 0;
        }
        out->of[k] /= all > 0 ? all : 1;
        for (int i = 0; i <= c->full; i++) out->own[k][i] /= all > 0 ? all : 1;
    }
}

/* Who decodes and who has a prompt to compute has a place. */
double steady_chain_places_per_s(struct steady_replica *r, double places, double again, double *in_prefill)
{
    enum { ROUNDS = 20 };
    struct steady_times *t = r->times;
    struct steady_chain *c = t->chain;
    const struct steady_lengths *l = r->s->lengths;
    double low = 0, high = (double)INFINITY, rate = 0, n = places;
    *in_prefill = 0;
    for (int k = 0; k < ROUNDS; k++) {
        const double room = fmax(t->budget_tokens - n, 1), full_s = steady_times_step_s(t, n, room);
        const double most = .99 * room / (full_s * l->prompt_tokens * (1 + again));
        if (k == 0) rate = fmin(n / (l->steps * full_s), most);
        rate = fmin(rate, most);
        steady_chain_open(r, rate * (1 + again), n, n, true, c);
        double over = 0;
        for (int i = c->full + 1; i < c->n; i++) over += c->part[i];
        *in_prefill = fmin(c->begin + over, .5 * places);
        n = fmax(places - *in_prefill, .5 * places);
        const double found = n / steady_chain_answer_s(c, l); /* as long as answers take at that rate */
        if (fabs(found - rate) < 2e-3 * rate || (rate >= most && found >= rate)) break;
        if (found > rate)
            low = fmax(low, rate);
        else
            high = fmin(high, rate);
        const double next = .5 * (found + rate);
        rate = next > low && next < high ? next : isfinite(high) ? .5 * (low + high) : next;
    }
    return rate;
}
