/* steady_chain_parts -- a chain of one of several attention groups that step together; of steady_chain.h. */
#include <math.h>
#include <string.h>

#include "calc/serve/steady_chain.h"

enum { LEVELS = STEADY_CHAIN_LEVELS, ROOM = STEADY_CHAIN_ROOM, SHARES = STEADY_SHARES };

/* What a round needs of a chain. */
struct round {
    struct steady_chain *c;
    double shares_s[ROOM][SHARES]; /* a step by its largest group and what others have of it */
    struct steady_chain_number number[LEVELS];
    double come[LEVELS][STEADY_CHAIN_PLACES]; /* prompts of a step of that length */
    double most[LEVELS][ROOM],
        sum[LEVELS][ROOM]; /* others behind such a step: the place of the largest; tokens of all */
    bool dealt;            /* in turn */
    struct steady_deal deal[LEVELS];
    double left[LEVELS][STEADY_CHAIN_PLACES]; /* by steps of that length, parts of steps */
    double go[ROOM][LEVELS][LEVELS];          /* a step of so many tokens behind one of a length: lengths that it has */
};

/* Between the lengths around, so that the mean stays. */
static int level_of(const struct steady_chain *c, double step_s, double *part)
{
    int i = 0;
    while (i + 2 < LEVELS && c->level_s[i + 1] <= step_s) i++;
    const double low = c->level_s[i], above = (step_s - low) / (c->level_s[i + 1] - low);
    *part = fmin(fmax(above, 0), 1);
    return i;
}

static void open_round(struct round *x, double still)
{
    struct steady_chain *c = x->c;
    struct steady_times *t = c->times;
    for (int i = 0; i <= c->full; i++)
        steady_times_shares_s(t, i > 0 ? c->beside : still, c->tokens[i], x->shares_s[i]);
    const double least_s = x->shares_s[0][0], most_s = fmax(x->shares_s[c->full][SHARES - 1], least_s * 1.001);
    const double ratio = pow(most_s / least_s, 1. / (LEVELS - 1));
    c->level_s[0] = least_s;
    for (int l = 1; l < LEVELS; l++) c->level_s[l] = c->level_s[l - 1] * ratio;
    for (int l = 0; l < LEVELS; l++) {
        x->number[l] = steady_chain_number_of(c->every, c->rate * c->level_s[l]);
        const struct steady_chain_sum s = steady_chain_come_number(c, &x->number[l]);
        memset(x->come[l], 0, sizeof x->come[l]);
        for (int k = 0; k < s.n; k++) steady_chain_add(c, x->come[l], s.tokens[k], s.weight[k]);
    }
}

/* Behind a step of a length groups are alike and independent, so that the most of the others has F^(groups - 1). */
static void see_others(struct round *x)
{
    const struct steady_chain *c = x->c;
    const double others = c->times->parts - 1;
    for (int l = 0; l < LEVELS; l++) {
        double all = 0, below = 0, tokens = 0, power = 0, sum = 0;
        for (int i = 0; i < c->n; i++) all += c->behind[i][l];
        const bool none = !(all > 1e-12);
        for (int i = 0; i <= c->full; i++) {
            double part = none ? x->come[l][i] : c->behind[i][l] / all;
            for (int k = c->full + 1; i == c->full && k < c->n; k++)
                part += none ? x->come[l][k] : c->behind[k][l] / all;
            below = fmin(below + part, 1);
            tokens += part * c->tokens[i];
            const double now = i < c->full ? pow(below, others) : 1;
            const double of_all = others * tokens * (below > 0 ? now / below : 0), one = now - power;
            x->most[l][i] = one;
            x->sum[l][i] = one > 1e-12 ? (of_all - sum) / one : 0;
            power = now;
            sum = of_all;
        }
    }
}

/* Where prompts are dealt in turn they are not independent. */
static void see_dealt(struct round *x)
{
    const struct steady_chain *c = x->c;
    for (int l = 0; l < LEVELS; l++) {
        steady_chain_deal(c, c->rate * c->level_s[l], x->left[l], &x->deal[l]);
        for (int i = 0; i <= c->full; i++) {
            double all = 0;
            x->most[l][i] = 0;
            for (int k = 0; k < STEADY_DEALS; k++) {
                x->most[l][i] += x->deal[l].of[k] * x->deal[l].most[k][i];
                all += x->deal[l].of[k] * x->deal[l].all[k][i];
            }
            x->sum[l][i] = x->most[l][i] > 1e-12 ? all / x->most[l][i] : 0;
        }
    }
}

/* The others as the one at a place finds them. */
static void dealt_at(const struct round *x, int l, int place, double *most, double *sum)
{
    const struct steady_deal *d = &x->deal[l];
    double own = 0;
    for (int k = 0; k < STEADY_DEALS; k++) own += d->own[k][place];
    for (int i = 0; i <= x->c->full; i++) {
        double part = 0, all = 0;
        for (int k = 0; k < STEADY_DEALS && own > 1e-12; k++) {
            part += d->own[k][place] / own * d->most[k][i];
            all += d->own[k][place] / own * d->all[k][i];
        }
        most[i] = own > 1e-12 ? part : x->most[l][i];
        sum[i] = !(own > 1e-12) ? x->sum[l][i] : part > 1e-12 ? all / part : 0;
    }
}

/* Steps of each place behind each length: means, and the lengths around them. */
static void see_steps(struct round *x)
{
    struct steady_chain *c = x->c;
    const double others = c->times->parts - 1;
    memset(x->go, 0, sizeof x->go);
    for (int i = 0; i <= c->full; i++)
        for (int l = 0; l < LEVELS; l++) {
            double mean_s = 0, square_s2 = 0, dealt_most[ROOM], dealt_sum[ROOM];
            const double *const most = x->dealt ? dealt_most : x->most[l], *const sum =
                                                                               x->dealt ? dealt_sum : x->sum[l];
            if (x->dealt) dealt_at(x, l, i, dealt_most, dealt_sum);
            for (int j = 0; j <= c->full; j++) {
                const double w = most[j];
                if (!(w > 1e-7)) continue;
                const int largest = i > j ? i : j;
                const double beside = sum[j] - (j > i ? c->tokens[j] - c->tokens[i] : 0);
                const double share = largest > 0 ? fmin(fmax(beside / (others * c->tokens[largest]), 0), 1) : 0;
                const double step_s = steady_times_share_s(x->shares_s[largest], share);
                double part;
                const int k = level_of(c, step_s, &part);
                x->go[i][l][k] += w * (1 - part);
                x->go[i][l][k + 1] += w * part;
                mean_s += w * step_s;
                square_s2 += w * step_s * step_s;
            }
            c->behind_step_s[l][i] = mean_s;
            c->behind_square_s2[l][i] = square_s2;
        }
}

/* Of a place the steps, by the lengths of those before. */
static void see_places(struct round *x)
{
    struct steady_chain *c = x->c;
    for (int i = 0; i < c->n; i++) {
        const int at = i < c->full ? i : c->full;
        double all = 0, step_s = 0, square_s2 = 0;
        for (int l = 0; l < LEVELS; l++) all += c->behind[i][l];
        memset(c->length[i], 0, sizeof c->length[i]);
        for (int l = 0; l < LEVELS; l++) {
            const double w = all > 0 ? c->behind[i][l] / all : 1. / LEVELS;
            if (!(w > 1e-9)) continue;
            step_s += w * c->behind_step_s[l][at];
            square_s2 += w * c->behind_square_s2[l][at];
            for (int k = 0; k < LEVELS; k++) c->length[i][k] += w * x->go[at][l][k];
        }
        c->step_s[i] = step_s;
        c->square_s2[i] = square_s2;
    }
}

/* Where the chain of lengths alone goes: groups that leave nothing over. */
static void begin(struct round *x)
{
    enum { SWEEPS = 12 };
    struct steady_chain *c = x->c;
    double part[LEVELS] = {1};
    memset(c->behind, 0, sizeof c->behind);
    for (int l = 0; l < LEVELS; l++) x->left[l][0] = 1;
    if (x->dealt)
        see_dealt(x);
    else
        see_others(x);
    see_steps(x);
    for (int k = 0; k < SWEEPS; k++) {
        double next[LEVELS] = {0};
        for (int l = 0; l < LEVELS; l++)
            for (int i = 0; i < c->n && part[l] > 1e-9; i++) {
                const int at = i < c->full ? i : c->full;
                for (int q = 0; q < LEVELS; q++) next[q] += part[l] * x->come[l][i] * x->go[at][l][q];
            }
        memcpy(part, next, sizeof part);
    }
    for (int i = 0; i < c->n; i++)
        for (int l = 0; l < LEVELS; l++) c->behind[i][l] = part[l] * x->come[l][i];
}

/* Rows: prompts of steps of several lengths. */
static void open_rows(struct round *x)
{
    struct steady_chain *c = x->c;
    memset(c->to, 0, (size_t)c->states * (size_t)c->states * sizeof *c->to);
    for (int i = 0; i < c->n; i++) {
        double *row = c->to + (size_t)i * (size_t)c->states;
        const double left = fmax(c->tokens[i] - c->room, 0);
        if (!(left > 0)) {
            for (int l = 0; l < LEVELS; l++)
                for (int k = 0; k < c->n && c->length[i][l] > 0; k++) row[k] += c->length[i][l] * x->come[l][k];
            continue;
        }
        struct steady_chain_number all = {0};
        for (int l = 0; l < LEVELS; l++) {
            const double w = c->length[i][l];
            all.none += w * x->number[l].none;
            all.one += w * x->number[l].one;
            all.mean += w * x->number[l].mean;
            all.square += w * x->number[l].square;
        }
        const struct steady_chain_sum s = steady_chain_come_number(c, &all);
        for (int k = 0; k < s.n; k++) steady_chain_add(c, row, left + s.tokens[k], s.weight[k]);
    }
    steady_chain_bounds(c);
}

/* The lengths before each place: of steps that leave nothing over what came in them, of others as they are. */
static void look_behind(struct round *x)
{
    struct steady_chain *c = x->c;
    double clear[LEVELS] = {0};
    for (int i = 0; i <= c->full; i++)
        for (int l = 0; l < LEVELS; l++) clear[l] += c->part[i] * c->length[i][l];
    for (int k = 0; k < c->n; k++)
        for (int l = 0; l < LEVELS; l++) c->behind[k][l] = clear[l] * x->come[l][k];
    memset(x->left, 0, sizeof x->left);
    for (int l = 0; l < LEVELS; l++) x->left[l][0] = clear[l];
    for (int i = c->full + 1; i < c->n; i++) {
        if (!(c->part[i] > 1e-7)) continue;
        for (int l = 0; l < LEVELS && x->dealt; l++)
            steady_chain_add(c, x->left[l], c->tokens[i] - c->room, c->part[i] * c->length[i][l]);
        const double *to = c->to + (size_t)i * (size_t)c->states;
        for (int k = c->least[i]; k <= c->last[i]; k++)
            for (int l = 0; l < LEVELS; l++) c->behind[k][l] += c->part[i] * to[k] * c->length[i][l];
    }
    memcpy(c->clear, clear, sizeof clear);
}

void steady_chain_settle(struct steady_chain *c, double within)
{
    enum { ROUNDS = 16 };
    struct round x = {.c = c, .dealt = c->in_turn};
    open_round(&x, c->still);
    begin(&x);
    c->mean_s = 0;
    for (int k = 0; k < ROUNDS; k++) {
        const double before_s = c->mean_s;
        if (x.dealt)
            see_dealt(&x);
        else
            see_others(&x);
        see_steps(&x);
        see_places(&x);
        c->full_s = c->step_s[c->full];
        open_rows(&x);
        steady_chain_find_parts(c);
        look_behind(&x);
        if (fabs(c->mean_s - before_s) < within * c->mean_s) break;
    }
    double busy = 0, clear = 0; /* by the lengths of steps that compute this group's */
    for (int l = 0; l < LEVELS; l++) {
        double own = 0;
        for (int i = 1; i < c->n; i++) own += c->part[i] * c->length[i][l];
        busy += own;
        clear += own * x.most[l][0];
    }
    c->others_clear = busy > 0 ? clear / busy : 1;
}
