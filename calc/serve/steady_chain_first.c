/* steady_chain_first -- first tokens of a chain; of steady_chain.h. */
#include <math.h>
#include <string.h>

#include "calc/serve/steady_chain.h"

/* Tokens until a first one, its own the last: fine parts of a room, coarser ones, then rooms, of each the weight and
 * the tokens. */
enum { FINEST = 96, PER_ROOM = 16, ROOMS = 4, CELLS = FINEST + PER_ROOM * ROOMS + 2 * STEADY_CHAIN_STATES };
struct until {
    double weight[CELLS], rooms[CELLS];
    int most;
};

static int cell_of(double rooms, double fine)
{
    if (rooms < 1) return rooms > 0 ? (int)(rooms * fine) : 0;
    if (rooms < ROOMS) return FINEST + (int)(rooms * PER_ROOM);
    const int i = FINEST + PER_ROOM * ROOMS + (int)(rooms - ROOMS);
    return i < CELLS ? i : CELLS - 1;
}

static void put(struct until *x, double rooms, double fine, double weight)
{
    const int i = cell_of(rooms - 1e-9, fine);
    x->weight[i] += weight;
    x->rooms[i] += weight * rooms;
    if (i > x->most) x->most = i;
}

/* What a last step takes, by its tokens. */
enum { LASTS = 32 };
static const double LIGHT = 3e-6; /* weights that are left out */

static double last_s(const struct steady_chain *c, const double *at_s, double rooms)
{
    const double x = rooms * LASTS;
    /* of groups a prompt is little of the room, and takes what several take together */
    if (c->times->shared > 1) return steady_times_step_s(c->times, c->decoding, fmin(rooms, 1) * c->room);
    if (x >= LASTS) return at_s[LASTS];
    const int i = (int)x;
    return at_s[i] + (at_s[i + 1] - at_s[i]) * (x - i);
}

/* First tokens: full steps, and a last one with what came behind it there, as far as there is room: nothing, or little
 * or much. Its step in progress ends in rest_s. */
static void add_first(const struct steady_chain *c, const struct until *x, const double *at_s, double rest_s,
                      double wait_s, struct steady_histogram *h)
{
    for (int i = 0; i <= x->most; i++) {
        if (!(x->weight[i] > LIGHT)) continue;
        const double all = x->rooms[i] / x->weight[i], full = floor(all - 1e-9), before = full > 0 ? full : 0;
        const double own = all - before, before_s = rest_s + before * c->full_s;
        const double behind = c->rate * before_s, none = exp(-behind), some = (1 - none) * x->weight[i];
        const double from_s = wait_s + before_s;
        steady_histogram_add(h, from_s + last_s(c, at_s, own), none * x->weight[i]);
        if (!(some > LIGHT)) continue;
        const double rooms = behind / (1 - none) * c->prompt_tokens / c->room;
        steady_histogram_add(h, from_s + last_s(c, at_s, own + .5 * rooms), some / 2);
        steady_histogram_add(h, from_s + last_s(c, at_s, own + 1.5 * rooms), some / 2);
    }
}

/* Own prompts behind those. */
static void add_own(const double *rooms, const double *part, int n, double fine, const struct until *ahead,
                    struct until *all)
{
    memset(all, 0, sizeof *all);
    for (int i = 0; i <= ahead->most; i++) {
        if (!(ahead->weight[i] > LIGHT)) continue;
        const double from = ahead->rooms[i] / ahead->weight[i];
        for (int p = 0; p < n; p++) put(all, from + rooms[p], fine, ahead->weight[i] * part[p]);
    }
}

/* Who comes finds a step in progress with the chance of its part of the time, and is somewhere in it: behind what it
 * leaves over, and what came before in it. */
void steady_chain_first(const struct steady_chain *c, const struct steady_lengths *l, double wait_s, double weight,
                        struct steady_histogram *h)
{
    enum { TIMES = 4, OWNS = 48, KINDS = 4 };
    double own_tokens[OWNS], own_part[OWNS], at_s[LASTS + 1], partly = 0;
    struct until ahead, all;
    if (!(weight > 1e-6)) return;
    const int owns = steady_chain_prompts(l, 1. / 32, OWNS, own_tokens, own_part);
    const double fine = fmin(fmax(8 * c->room / c->prompt_tokens, PER_ROOM), FINEST);
    for (int i = 0; i < owns; i++) own_tokens[i] /= c->room;
    for (int i = 0; i <= LASTS; i++)
        at_s[i] = steady_times_step_s(c->times, c->decoding, fmax(c->room * i / LASTS, 1e-3 * c->room));
    for (int i = 1; i < c->full; i++) partly += c->part[i] * c->step_s[i];
    for (int from = 0, to; from < c->n; from = to) { /* steps without prompts, with room left, full */
        const bool idle = from == 0 && !(c->decoding > 0);
        double part = 0, step_s = 0;
        for (to = from; to < c->n; to++) {
            const double at = c->part[to] * c->step_s[to];
            part += at;
            step_s += at * c->step_s[to]; /* as found: the longer, the more often */
            if (to == 0 || to == c->full - 1 || (to < c->full && part > partly / KINDS)) break;
        }
        if (to < c->n) to++;
        if (!(part > 0)) continue;
        step_s /= part;
        part *= weight / c->mean_s;
        if (!(part > 1e-6)) continue;
        for (int u = 0; u < (idle ? 1 : TIMES); u++) {
            const double past = (u + .5) / TIMES, w = idle ? 1 : 1. / TIMES;
            const struct steady_chain_sum s = steady_chain_come(c, idle ? 0 : c->rate * step_s * past);
            memset(&ahead, 0, sizeof ahead);
            for (int i = from < c->full ? to - 1 : from; i < to; i++) {
                const double found = from < c->full ? part * w : weight * c->part[i] * c->step_s[i] / c->mean_s * w;
                if (!(found > LIGHT)) continue;
                for (int q = 0; q < s.n; q++)
                    put(&ahead, (fmax(c->tokens[i] - c->room, 0) + s.tokens[q]) / c->room, fine, found * s.weight[q]);
            }
            add_own(own_tokens, own_part, owns, fine, &ahead, &all);
            add_first(c, &all, at_s, idle ? 0 : step_s * (1 - past), wait_s, h);
        }
    }
}
