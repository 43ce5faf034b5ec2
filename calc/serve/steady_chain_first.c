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
enum { LASTS = 32, OWNS = 48 };
static const double LIGHT = 3e-6; /* weights that are left out */

static double last_s(const double *at_s, double rooms)
{
    const double x = rooms * LASTS;
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
        steady_histogram_add(h, from_s + last_s(at_s, own), none * weight);
        if (!(some > LIGHT)) continue;
        steady_histogram_add(h, from_s + last_s(at_s, own + .5 * rooms), some / 2);
        steady_histogram_add(h, from_s + last_s(at_s, own + 1.5 * rooms), some / 2);
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

/* What a last step takes, by 1/LASTS of a room's tokens: of several attention groups behind a step of a length. */
static void find_lasts(const struct steady_chain *c, int level, double at_s[LASTS + 1])
{
    const bool parts = c->times->parts > 1 && c->decoding > 0;
    for (int i = 0, k = 0; i <= LASTS; i++) {
        const double tokens = fmax(c->room * i / LASTS, 1e-3 * c->room);
        if (!parts) {
            at_s[i] = steady_times_step_s(c->times, c->decoding, tokens);
            continue;
        }
        while (k + 1 < c->full && c->tokens[k + 1] <= tokens) k++;
        const double *of_s = c->behind_step_s[level], low = c->tokens[k];
        at_s[i] = of_s[k] + (of_s[k + 1] - of_s[k]) * (tokens - low) / (c->tokens[k + 1] - low);
    }
}

/* Own prompts and what first tokens are put to. */
struct firsts {
    const struct steady_chain *c;
    struct steady_histogram *h;
    int owns;
    double own_tokens[OWNS], own_part[OWNS], fine, wait_s;
    struct until ahead, all;
};

/* Those who find a step of step_s in progress, of whose places from .. to - 1 each has its part of all; `one`: they
 * leave nothing over; idle: there is no step. */
static void find_step(struct firsts *x, int from, int to, bool one, double step_s, double weight, bool idle,
                      const double at_s[LASTS + 1])
{
    enum { TIMES = 4 };
    const struct steady_chain *c = x->c;
    const int n = c->phases;
    double phase[STEADY_CHAIN_PHASES];
    for (int u = 0; u < (idle ? 1 : TIMES); u++) {
        const double past = (u + .5) / TIMES, w = idle ? 1 : 1. / TIMES;
        const double count = idle ? 0 : c->rate * step_s * past;
        struct steady_chain_sum s = {.n = 1, .tokens = {0}, .weight = {1}};
        const struct steady_chain_number number = steady_chain_number_before(c->every, count);
        if (n == 1) s = steady_chain_come_number(c, &number);
        clear(&x->ahead);
        for (int i = one ? to - 1 : from; i < to; i++) {
            const double found = find_phases(c, one ? from : i, one ? to : i + 1, weight * w, phase);
            if (!(found > LIGHT)) continue;
            if (n > 1 && idle) s.weight[0] = weight * of_visits(c);
            if (n > 1 && !idle) s = came_before(c, phase, count);
            for (int q = 0; q < s.n; q++)
                put(&x->ahead, ((one ? 0 : fmax(c->tokens[i] - c->room, 0)) + s.tokens[q]) / c->room, x->fine,
                    (n > 1 ? 1 : found) * s.weight[q]);
        }
        add_own(x->own_tokens, x->own_part, x->owns, x->fine, &x->ahead, &x->all);
        add_first(c, &x->all, at_s, idle ? 0 : step_s * (1 - past), x->wait_s, x->h);
    }
}

/* Of several attention groups that step together: a step of a length, and what is in the next as it is behind that. */
static void find_levels(struct firsts *x, double weight)
{
    const struct steady_chain *c = x->c;
    double at_s[LASTS + 1], phase[STEADY_CHAIN_PHASES], all = 0;
    for (int l = 0; l < STEADY_CHAIN_LEVELS; l++) all += c->clear[l] * c->level_s[l];
    const double clear = find_phases(c, 0, c->full + 1, c->mean_s, phase);
    for (int l = 0; l < STEADY_CHAIN_LEVELS; l++) {
        const double part = c->clear[l] * c->level_s[l] / all;
        if (!(part * clear / c->mean_s * weight > 1e-6)) continue;
        find_lasts(c, l, at_s);
        find_step(x, 0, c->full + 1, true, c->level_s[l], part * weight, false, at_s);
    }
    if (clear < c->mean_s * (1 - 1e-6)) {
        find_lasts(c, STEADY_CHAIN_LEVELS - 1, at_s);
        find_step(x, c->full + 1, c->n, false, c->full_s, weight, false, at_s);
    }
}

/* Who comes finds a step in progress with the chance of its part of the time, and is somewhere in it: behind what it
 * leaves over, and what came before in it. */
void steady_chain_first(const struct steady_chain *c, const struct steady_lengths *l, double wait_s, double weight,
                        struct steady_histogram *h)
{
    enum { KINDS = 4 };
    double at_s[LASTS + 1], phase[STEADY_CHAIN_PHASES], partly = 0;
    struct firsts x = {.c = c, .h = h, .wait_s = wait_s};
    if (!(weight > 1e-6)) return;
    x.owns = steady_chain_prompts(l, 1. / 32, OWNS, x.own_tokens, x.own_part);
    x.fine = fmin(fmax(8 * c->room / c->prompt_tokens, PER_ROOM), FINEST);
    for (int i = 0; i < x.owns; i++) x.own_tokens[i] /= c->room;
    if (c->times->parts > 1 && c->decoding > 0) {
        find_levels(&x, weight);
        return;
    }
    c->times->others = c->times->parts > 1 ? &c->others : NULL;
    find_lasts(c, 0, at_s);
    partly = find_phases(c, 1, c->full, c->mean_s, phase);
    for (int from = 0, to; from < c->n; from = to) { /* steps without prompts, with room left, full */
        const double idle_frac = from == 0 && !(c->decoding > 0) ? c->idle_frac : 0;
        double part = 0, step_s = 0;
        for (to = from; to < c->n; to++) {
            const double at = find_phases(c, to, to + 1, c->mean_s, phase);
            part += at;
            step_s += at * c->step_s[to * c->phases]; /* as found: the longer, the more often */
            if (to == 0 || to == c->full - 1 || (to < c->full && part > partly / KINDS)) break;
        }
        if (to < c->n) to++;
        if (!(part > 0)) continue;
        step_s /= part;
        if (!(part * weight / c->mean_s > 1e-6)) continue;
        const bool one = from < c->full;
        if (idle_frac > 0) find_step(&x, from, to, one, step_s, idle_frac * weight, true, at_s);
        if (idle_frac < 1 && c->square_s2[0] > 0 && from == 0 && idle_frac > 0) /* a step of others */
            step_s = c->square_s2[0] / (c->step_s[0] * (1 - idle_frac));
        if (idle_frac < 1) find_step(&x, from, to, one, step_s, (1 - idle_frac) * weight, false, at_s);
    }
    c->times->others = NULL;
}
