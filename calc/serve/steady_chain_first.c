/* steady_chain_first -- first tokens of a chain; of steady_chain.h. */
#include <math.h>
#include <string.h>

#include "calc/serve/steady_chain.h"

/* Tokens until a first one, its own the last: fine parts of a room, coarser ones, then rooms, of each the weight and
 * the tokens. */
enum { FINEST = 96, PER_ROOM = 16, ROOMS = 4, CELLS = FINEST + PER_ROOM * ROOMS + 2 * STEADY_CHAIN_PLACES };
struct until {
    struct cell {
        double weight, rooms;
    } cell[CELLS];
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
    x->cell[i].weight += weight;
    x->cell[i].rooms += weight * rooms;
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
    double before = -1, from_s = 0, none = 1, rooms = 0;
    for (int i = 0; i <= x->most; i++) {
        const double weight = x->cell[i].weight;
        if (!(weight > LIGHT)) continue;
        const double all = x->cell[i].rooms / weight;
        const int64_t whole = (int64_t)(all - 1e-9);
        const double full = whole > 0 ? (double)whole : 0;
        if (full > before) { /* places rise, and with them what is before */
            const double before_s = rest_s + full * c->full_s, behind = c->rate * before_s;
            before = full;
            from_s = wait_s + before_s;
            none = exp(-behind);
            rooms = behind / (1 - none) * c->prompt_tokens / c->room;
        }
        const double own = all - full, some = (1 - none) * weight;
        steady_histogram_add(h, from_s + last_s(c, at_s, own), none * weight);
        if (!(some > LIGHT)) continue;
        steady_histogram_add(h, from_s + last_s(c, at_s, own + .5 * rooms), some / 2);
        steady_histogram_add(h, from_s + last_s(c, at_s, own + 1.5 * rooms), some / 2);
    }
}

static void clear(struct until *x)
{
    memset(x->cell, 0, (size_t)(x->most + 1) * sizeof *x->cell);
    x->most = 0;
}

/* Own prompts, shortest first, behind those. */
static void add_own(const double *rooms, const double *part, int n, double fine, const struct until *ahead,
                    struct until *all)
{
    clear(all);
    for (int i = 0; i <= ahead->most; i++) {
        const double weight = ahead->cell[i].weight;
        if (!(weight > LIGHT)) continue;
        const double from = ahead->cell[i].rooms / weight;
        int p = 0, last = 0;
        for (; p < n; p++) { /* as put() does, the fine parts first */
            const double at = from + rooms[p], place = at - 1e-9, w = weight * part[p];
            if (!(place < 1) || !(place > 0)) break;
            struct cell *x = &all->cell[last = (int)(place * fine)];
            x->weight += w;
            x->rooms += w * at;
        }
        for (; p < n; p++) {
            const double at = from + rooms[p], place = at - 1e-9, w = weight * part[p];
            if (!(place < ROOMS) || !(place >= 1)) break;
            struct cell *x = &all->cell[last = FINEST + (int)(place * PER_ROOM)];
            x->weight += w;
            x->rooms += w * at;
        }
        if (last > all->most) all->most = last;
        for (; p < n; p++) put(all, from + rooms[p], fine, weight * part[p]);
    }
}

/* Requests that find nobody, of all: one for each time that a replica is left so. */
static double of_visits(const struct steady_chain *c)
{
    double visits = 0;
    for (int j = 0; j < c->phases; j++) visits += c->part[j];
    return visits / (c->rate * c->mean_s);
}

/* What came in a step before a request that is `count` into it on average: as many as a Poisson number; or, of every so
 * many of a stream, as there are where the next is its own, from each phase by its part of those found. */
static struct steady_chain_sum came_before(const struct steady_chain *c, const double *phase, double count)
{
    struct steady_chain_sum s = {.n = 1, .tokens = {0}, .weight = {0}};
    const int n = c->phases;
    double several = 0, mean = 0, square = 0, one = 0;
    const struct steady_chain_ticks x = steady_chain_tick(n, n * count);
    for (int j = 0; j < n; j++) { /* in the last phase, in which it is 1/n of all time */
        const double w = n * phase[j], more = w * x.of[2][j][n - 1];
        s.weight[0] += w * x.of[0][j][n - 1];
        one += w * x.of[1][j][n - 1];
        several += more;
        mean += more * x.mean[j];
        square += more * x.square[j];
    }
    for (int i = 0; i < c->ones; i++) {
        s.tokens[s.n] = c->one_tokens[i];
        s.weight[s.n++] = one * c->one_part[i];
    }
    if (!(several > LIGHT)) return s;
    struct steady_chain_sum more;
    steady_chain_several(c, mean / several, square / several, &more);
    for (int i = 0; i < more.n; i++) {
        s.tokens[s.n] = more.tokens[i];
        s.weight[s.n++] = several * more.weight[i];
    }
    return s;
}

/* Parts of time in the phases of places, `weight` of all. */
static double find_phases(const struct steady_chain *c, int from, int to, double weight,
                          double phase[STEADY_CHAIN_PHASES])
{
    double all = 0;
    for (int j = 0; j < c->phases; j++) {
        phase[j] = 0;
        for (int i = from; i < to; i++) phase[j] += c->part[i * c->phases + j] * c->step_s[i * c->phases + j];
        all += phase[j] *= weight / c->mean_s;
    }
    return all;
}

/* Who comes finds a step in progress with the chance of its part of the time, and is somewhere in it: behind what it
 * leaves over, and what came before in it. */
void steady_chain_first(const struct steady_chain *c, const struct steady_lengths *l, double wait_s, double weight,
                        struct steady_histogram *h)
{
    enum { TIMES = 4, OWNS = 48, KINDS = 4 };
    double own_tokens[OWNS], own_part[OWNS], at_s[LASTS + 1], phase[STEADY_CHAIN_PHASES], partly = 0;
    struct until ahead = {.most = 0}, all = {.most = 0};
    if (!(weight > 1e-6)) return;
    const int owns = steady_chain_prompts(l, 1. / 32, OWNS, own_tokens, own_part), n = c->phases;
    const double fine = fmin(fmax(8 * c->room / c->prompt_tokens, PER_ROOM), FINEST);
    for (int i = 0; i < owns; i++) own_tokens[i] /= c->room;
    for (int i = 0; i <= LASTS; i++)
        at_s[i] = steady_times_step_s(c->times, c->decoding, fmax(c->room * i / LASTS, 1e-3 * c->room));
    partly = find_phases(c, 1, c->full, c->mean_s, phase);
    for (int from = 0, to; from < c->n; from = to) { /* steps without prompts, with room left, full */
        const bool idle = from == 0 && !(c->decoding > 0);
        double part = 0, step_s = 0;
        for (to = from; to < c->n; to++) {
            const double at = find_phases(c, to, to + 1, c->mean_s, phase);
            part += at;
            step_s += at * c->step_s[to * n]; /* as found: the longer, the more often */
            if (to == 0 || to == c->full - 1 || (to < c->full && part > partly / KINDS)) break;
        }
        if (to < c->n) to++;
        if (!(part > 0)) continue;
        step_s /= part;
        if (!(part * weight / c->mean_s > 1e-6)) continue;
        for (int u = 0; u < (idle ? 1 : TIMES); u++) {
            const double past = (u + .5) / TIMES, w = idle ? 1 : 1. / TIMES;
            const double count = idle ? 0 : c->rate * step_s * past;
            struct steady_chain_sum s = {.n = 1, .tokens = {0}, .weight = {1}};
            if (n == 1) s = steady_chain_come(c, count);
            clear(&ahead);
            for (int i = from < c->full ? to - 1 : from; i < to; i++) {
                const double found =
                    find_phases(c, from < c->full ? from : i, from < c->full ? to : i + 1, weight * w, phase);
                if (!(found > LIGHT)) continue;
                if (n > 1 && idle) s.weight[0] = weight * of_visits(c);
                if (n > 1 && !idle) s = came_before(c, phase, count);
                for (int q = 0; q < s.n; q++)
                    put(&ahead, (fmax(c->tokens[i] - c->room, 0) + s.tokens[q]) / c->room, fine,
                        (n > 1 ? 1 : found) * s.weight[q]);
            }
            add_own(own_tokens, own_part, owns, fine, &ahead, &all);
            add_first(c, &all, at_s, idle ? 0 : step_s * (1 - past), wait_s, h);
        }
    }
}
