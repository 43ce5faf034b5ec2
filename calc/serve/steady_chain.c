/* steady_chain -- prompt tokens that wait at the beginning of each step, where they are computed in pieces beside those
 * that decode, and requests come at a rate; of steady_chain.h. */
#include <math.h>
#include <string.h>

#include "calc/serve/steady_chain.h"

/* ---- steps ---- */

/* Places of the grid around so many tokens, and the part of the upper one, so that the mean stays. */
static int place_of(const struct steady_chain *c, double tokens, double *part)
{
    int i = 0;
    if (tokens >= c->room) {
        const double above = (tokens - c->room) / c->gap;
        i = c->full + (above < STEADY_CHAIN_PLACES ? (int)above : STEADY_CHAIN_PLACES);
        if (i > c->n - 2) i = c->n - 2;
    } else {
        for (int high = c->full; i + 1 < high;) {
            const int middle = (i + high) / 2;
            if (c->tokens[middle] <= tokens)
                i = middle;
            else
                high = middle;
        }
    }
    const double low = c->tokens[i], above = (tokens - low) / (c->tokens[i + 1] - low);
    *part = above > 0 ? above < 1 ? above : 1 : 0;
    return i;
}

/* Prompts of one length are at points of the grid: between them the largest of several groups would have more than
 * one, and a step be between two jumps. */
static void place_prompts(struct steady_chain *c)
{
    const double prompt = c->one_tokens[0];
    for (int i = 1, k = 1; i < c->full && k * prompt < c->room; i++) {
        const double next = i + 1 < c->full ? c->tokens[i + 1] : c->room;
        if (fabs(c->tokens[i] - k * prompt) > fabs(next - k * prompt) && i + 1 < c->full) continue;
        c->tokens[i] = k * prompt;
        while (k * prompt < (i + 1 < c->full ? .5 * (c->tokens[i] + c->tokens[i + 1]) : c->room)) k++;
    }
}

/* Even beyond a room's tokens, so that what a step leaves over is a place too, and fine where few wait. As far as the
 * tail of the work of an M/G/1 queue goes (Kingman); more is taken as that. */
static void open_grid(struct steady_chain *c, double longest, bool coarse)
{
    enum { LEAST = 6, MOST = 20 };
    const int room = coarse ? 32 : STEADY_CHAIN_PLACES - MOST - 1, far = coarse ? 4 : 6;
    const double spread = c->prompt_square / c->prompt_tokens,
                 rho = fmin(c->rate * c->full_s * c->prompt_tokens / c->room, .97);
    const double tail = (spread + fmax(c->arrival_cv2 - 1, 0) * c->prompt_tokens) / (2 * (1 - rho));
    const double most = fmax(fmax(longest, far * tail) + tail, c->room * 1.5) - c->room;
    const double fine = fmin(floor(room * c->room / most), coarse ? 3 : 6);
    const double low = fmin(c->one_tokens[0] / 2, c->room / 3), ratio = coarse ? 1.6 : 1.35;
    c->fine = fine >= 1 ? (int)fine : 1;
    c->gap = fine >= 1 ? c->room / fine : most > 2 * room * c->room ? 2 * c->room : c->room;
    const int below = (int)fmin(fmax(ceil(log(c->room / low) / log(ratio)) + 1, LEAST), MOST);
    const double step = pow(c->room / low, 1. / (below - 1));
    c->full = below;
    c->tokens[0] = 0;
    c->tokens[below] = c->room;
    for (int i = below - 1; i > 0; i--) c->tokens[i] = c->tokens[i + 1] / step;
    if (c->ones == 1 && (c->times->parts > 1 || c->times->rows_s)) place_prompts(c);
    const int above = (int)fmin(ceil(most / c->gap), room);
    for (int i = 1; i <= above; i++) c->tokens[below + i] = c->room + i * c->gap;
    c->n = below + above + 1;
}

void steady_chain_add(const struct steady_chain *c, double *row, double tokens, double weight)
{
    double part;
    const int i = place_of(c, tokens, &part);
    row[i] += weight * (1 - part);
    row[i + 1] += weight * part;
}

/* From a place, with what is left of it, to the others: a row of none, one and several prompts each, to which the
 * phases that follow on each other are put. */
static void open_phases(struct steady_chain *c, int i, double left)
{
    double rows[3][STEADY_CHAIN_PLACES] = {{0}};
    const int n = c->phases;
    const double step_s = c->step_s[i * n];
    const bool idle = i == 0 && !(c->decoding > 0); /* until somebody comes, who is the next of this phase */
    const struct steady_chain_ticks x = steady_chain_tick(n, idle ? 0 : n * c->rate * step_s);
    if (!idle) steady_chain_add(c, rows[0], left, 1);
    for (int k = 0; k < c->ones; k++) steady_chain_add(c, rows[1], left + c->one_tokens[k], c->one_part[k]);
    for (int j = 0; j < n; j++) {
        double *to = c->to + (size_t)(i * n + j) * (size_t)c->states, several = 0;
        if (idle) {
            c->step_s[j] = (n - j) / (n * c->rate);
            for (int k = 0; k < c->n; k++) to[k * n] = rows[1][k];
            continue;
        }
        for (int q = 0; q < n; q++) several += x.of[2][j][q];
        if (several > 1e-9) {
            struct steady_chain_sum s;
            memset(rows[2], 0, sizeof rows[2]);
            steady_chain_several(c, x.mean[j], x.square[j], &s);
            for (int k = 0; k < s.n; k++) steady_chain_add(c, rows[2], left + s.tokens[k], s.weight[k]);
        }
        for (int some = 0; some < 3; some++)
            for (int k = 0; k < c->n; k++)
                for (int q = 0; q < n && rows[some][k] > 0; q++) to[k * n + q] += rows[some][k] * x.of[some][j][q];
    }
}

/* Nobody decodes, and there is no prompt here: until somebody comes, to whichever of the groups; or a step of others.
 */
static void open_idle(struct steady_chain *c, double *row)
{
    const double groups = c->times->parts, none = groups > 1 ? c->others.part[0] : 1;
    const double gap_s = none / (groups * c->rate), busy_s = c->step_s[0];
    steady_chain_add(c, row, 0, none * (1 - 1 / groups));
    for (int k = 0; k < c->ones; k++) steady_chain_add(c, row, c->one_tokens[k], none / groups * c->one_part[k]);
    if (none < 1) {
        const struct steady_chain_sum s = steady_chain_come(c, c->rate * busy_s / (1 - none));
        for (int k = 0; k < s.n; k++) steady_chain_add(c, row, s.tokens[k], (1 - none) * s.weight[k]);
    }
    c->step_s[0] = gap_s + busy_s;
    c->idle_frac = gap_s / c->step_s[0];
}

static void open_rows(struct steady_chain *c)
{
    struct steady_chain_sum full = {.n = 0};
    const bool idle = !(c->decoding > 0); /* until somebody comes */
    memset(c->to, 0, (size_t)c->states * (size_t)c->states * sizeof *c->to);
    for (int i = 0; i < c->n; i++) {
        const int n = c->phases;
        const double left = fmax(c->tokens[i] - c->room, 0);
        const bool one = c->ones == 1; /* at points of the grid */
        const double step_s = i == 0 ? steady_times_step_s(c->times, c->still, 0)
                              : i < c->full
                                  ? steady_times_near_s(c->times, c->beside, c->tokens[i], c->tokens[one ? i : i - 1],
                                                        c->tokens[one ? i : i + 1])
                                  : c->full_s;
        for (int j = 0; j < n; j++) c->step_s[i * n + j] = step_s;
        if (n > 1) {
            open_phases(c, i, left);
            continue;
        }
        if (i == 0 && idle) {
            open_idle(c, c->to);
            continue;
        }
        struct steady_chain_sum s = i <= c->full ? steady_chain_come(c, c->rate * c->step_s[i]) : full;
        if (i == c->full) full = s;
        for (int k = 0; k < s.n; k++)
            steady_chain_add(c, c->to + (size_t)i * (size_t)c->states, left + s.tokens[k], s.weight[k]);
    }
    steady_chain_bounds(c);
}

void steady_chain_bounds(struct steady_chain *c)
{
    for (int i = 0; i < c->states; i++) {
        const double *to = c->to + (size_t)i * (size_t)c->states;
        c->least[i] = 0;
        c->last[i] = c->states - 1;
        while (c->least[i] < c->last[i] && !(to[c->least[i]] > 0)) c->least[i]++;
        while (c->last[i] > c->least[i] && !(to[c->last[i]] > 0)) c->last[i]--;
    }
}

/* Grassmann, Taksar and Heyman: stationary parts without differences. A step takes a room's tokens at most, so that
 * none goes down further than that. */
void steady_chain_find_parts(struct steady_chain *c)
{
    const int states = c->states, n = c->phases;
    const size_t row = (size_t)states;
    double *p = c->folded, sum = 1;
    memcpy(p, c->to, row * row * sizeof *p);
    for (int k = states - 1; k > 0; k--) {
        const int place = k / n, least = place - c->fine > c->full ? (place - c->fine) * n : 0;
        const double *from = p + (size_t)k * row;
        double out = 0;
        for (int i = least; i < k; i++) out += from[i];
        for (int i = 0; i < k; i++) {
            double *to = p + (size_t)i * row;
            if (!(to[k] > 0)) continue;
            to[k] = out > 0 ? to[k] / out : 0;
            for (int j = least; j < k; j++) to[j] += to[k] * from[j];
        }
    }
    c->part[0] = 1;
    for (int k = 1; k < states; k++) {
        c->part[k] = 0;
        for (int i = 0; i < k; i++) c->part[k] += c->part[i] * p[(size_t)i * row + (size_t)k];
        sum += c->part[k];
    }
    c->mean_s = 0;
    for (int k = 0; k < states; k++) c->mean_s += (c->part[k] /= sum) * c->step_s[k];
}

/* Of all phases of a place. */
static double of_place(const struct steady_chain *c, const double *part, int place)
{
    double sum = 0;
    for (int j = 0; j < c->phases; j++) sum += part[place * c->phases + j];
    return sum;
}

/* Ends of prompts within the last `tokens` of what waits, its own end not counted, but for a factor: of exponential
 * ones they are anywhere, of one length whole prompts behind. */
static double inside(const struct steady_chain *c, double tokens)
{
    double beyond = 0;
    for (int i = 0; i < c->ones && c->one_tokens[i] < tokens; i++)
        beyond += c->one_part[i] * (tokens - c->one_tokens[i]);
    return (c->even * beyond + (1 - c->even) * tokens) / c->prompt_tokens;
}

/* What waits as a request begins to decode. As many prompts are done as come, rate * mean_s in a step: one where a step
 * leaves nothing over, the last that waited, and others in the ratio of the places that are inside. */
static void find_entry(struct steady_chain *c)
{
    double ends = 0, places = 0, tokens = 0, total = 0, within[STEADY_CHAIN_PLACES];
    for (int i = 1; i < c->n; i++) {
        const double part = of_place(c, c->part, i);
        ends += i <= c->full ? part : 0;
        tokens += part * fmin(c->tokens[i], c->room);
        within[i] = inside(c, c->tokens[i]) - (c->tokens[i] > c->room ? inside(c, c->tokens[i] - c->room) : 0);
        places += part * within[i];
    }
    const double others = places > 0 ? fmax(tokens / c->prompt_tokens - ends, 0) / places : 0;
    memset(c->entry, 0, (size_t)c->states * sizeof *c->entry);
    c->done[0] = c->with = 0;
    for (int i = 1; i < c->n; i++) {
        const double left = fmax(c->tokens[i] - c->room, 0), end = left > 0 ? 0 : 1;
        const double x = others * within[i], done = end + x, part = of_place(c, c->part, i);
        c->done[i] = done;
        if (!(done > 0)) continue;
        total += part * done;
        c->with += part * (c->even * fmax(done * (done - 1), 0) + (1 - c->even) * (x * x + 2 * end * x));
        for (int s = i * c->phases; s < (i + 1) * c->phases; s++) {
            const double *to = c->to + (size_t)s * (size_t)c->states, w = c->part[s] * done;
            for (int k = c->least[s]; k <= c->last[s]; k++) c->entry[k] += w * to[k];
        }
    }
    for (int i = 0; i < c->states; i++) c->entry[i] /= total;
    c->with /= total;
    c->begin = total;
}

/* Means of the steps that follow on a beginning, and how many more begin in each than in any step. */
static void find_sums(struct steady_chain *c, const struct steady_lengths *l, double within)
{
    double now[STEADY_CHAIN_STATES], next[STEADY_CHAIN_STATES], sum_s = 0, still = l->steps, any = l->steps;
    double left[STEADY_CHAIN_STEPS] = {0};
    const size_t row = (size_t)c->states, all = row * sizeof *now;
    const double clear = of_place(c, c->part, 0);
    memcpy(now, c->entry, all);
    for (size_t i = 0; i < STEADY_QUANTILES; i++) { /* the part of answers with more steps than that */
        double part;
        (void)steady_quantile(i, &part);
        left[(int)fmin(l->output_at[i] - 1, STEADY_CHAIN_STEPS - 1)] += part;
    }
    for (int k = STEADY_CHAIN_STEPS - 2; k >= 0; k--) left[k] += left[k + 1];
    c->sum_s[0] = c->clear_s[0] = c->clear_s2[0] = c->behind_s[0] = c->behind_s2[0] = 0;
    for (int m = 1; m < STEADY_CHAIN_STEPS; m++) {
        double mean_s = 0, begin = 0;
        for (int i = 0; i < c->states; i++) mean_s += now[i] * c->step_s[i];
        for (int i = 0; i < c->n; i++) begin += of_place(c, now, i) * c->done[i];
        still += (of_place(c, now, 0) / clear - 1) * left[m];
        any += (mean_s / c->mean_s - 1) * left[m];
        c->sum_s[m] = sum_s += mean_s;
        c->more[m] = begin - c->begin;
        c->known = m;
        if (m > 1 && fabs(mean_s - c->mean_s) < within * c->mean_s && fabs(begin - c->begin) < 4 * within * c->begin)
            break;
        memset(next, 0, all);
        for (int i = 0; i < c->states; i++) {
            const double *to = c->to + (size_t)i * row;
            const double w = now[i];
            const int last = c->last[i];
            if (!(w > 1e-6)) continue;
            for (int j = c->least[i]; j <= last; j++) next[j] += w * to[j];
        }
        memcpy(now, next, all);
    }
    c->still_frac = fmin(fmax(still / any, 0), 1);
}

/* One of several attention groups, and nobody decodes: what the others have in a step is what this one has,
 * independently of it. From nothing, to where both are the same. */
static void settle_idle(struct steady_chain *c, double within)
{
    enum { ROUNDS = 12 };
    struct steady_times *t = c->times;
    struct steady_law law = {.n = c->full + 1};
    steady_others_none(&c->others);
    c->mean_s = 0;
    for (int k = 0; k < ROUNDS; k++) {
        const double before_s = c->mean_s;
        t->others = &c->others;
        c->full_s = steady_times_step_s(t, c->beside, c->room);
        open_rows(c);
        steady_chain_find_parts(c);
        for (int i = 0; i < c->n; i++) {
            const int at = i < c->full ? i : c->full;
            law.tokens[at] = c->tokens[at];
            law.part[at] = (i > c->full ? law.part[at] : 0) + of_place(c, c->part, i);
        }
        if (fabs(c->mean_s - before_s) < within * c->mean_s) break;
        steady_others_of(&law, t->parts, &c->others);
    }
    for (int i = 0; i < c->n; i++)
        c->square_s2[i] = i <= c->full ? steady_times_square_s2(t, i > 0 ? c->beside : c->still, c->tokens[i])
                                       : c->square_s2[c->full];
    t->others = NULL;
}

void steady_chain_open(struct steady_replica *r, double rate_per_s, double decoding, double still, bool coarse,
                       struct steady_chain *c)
{
    const struct steady_lengths *l = r->s->lengths;
    struct steady_times *t = r->times;
    c->times = t;
    c->rate = rate_per_s;
    c->phases = steady_chain_phases(r->s);
    /* bursts are split among copies; what turns take off is in phases */
    c->arrival_cv2 = c->phases > 1 ? 1 + (r->s->arrival_cv2 - 1) / (double)r->s->replicas : r->arrival_cv2;
    c->decoding = decoding;
    c->still = still;
    const bool beside = t->beside;
    c->room = fmax(beside ? t->budget_tokens - t->rows * decoding : steady_flow_fit(t) * l->prompt_tokens, 1);
    c->beside = beside || t->parts > 1 ? decoding : 0; /* other groups decode, and are waited for */
    c->prompt_tokens = l->prompt_tokens;
    c->prompt_square = l->prompt_square;
    c->full_s = steady_times_step_s(t, c->beside, c->room);
    c->plain_s = steady_times_decode_s(t, still);
    c->idle_frac = 1;
    c->copies = (int)fmax((double)r->s->replicas, 1);
    c->in_turn = steady_in_turn(r->s);
    c->every = !(t->parts > 1) || r->s->load != STEADY_OPEN || r->s->route == SIMULATE_PREFIX ? 1
               : c->in_turn ? (int)t->parts * c->copies
                            : 2;
    if (c->in_turn) c->arrival_cv2 = 1 + (c->arrival_cv2 - 1) / c->every;
    c->even = fmin(fmax(2 - l->prompt_square / (l->prompt_tokens * l->prompt_tokens), 0), 1);
    c->ones = steady_chain_prompts(l, coarse ? 1. / 6 : 1. / 12, STEADY_CHAIN_ONES, c->one_tokens, c->one_part);
    open_grid(c, t->group[t->groups - 1].tokens, coarse);
    c->states = c->n * c->phases;
    if (t->parts > 1 && decoding > 0) {
        steady_chain_settle(c, coarse ? .01 : .003);
    } else if (t->parts > 1) {
        settle_idle(c, coarse ? .01 : .003);
    } else {
        open_rows(c);
        steady_chain_find_parts(c);
    }
    find_entry(c);
    find_sums(c, l, coarse ? .02 : .005);
}

/* ---- tokens ---- */

static double at_steps(const double *of, int known, double m, double slope)
{
    if (!(m > 0)) return 0;
    if (m >= known) return of[known] + (m - known) * slope;
    const int i = (int)m;
    return of[i] + (m - i) * (of[i + 1] - of[i]);
}

double steady_chain_sum_s(const struct steady_chain *c, double m) { return at_steps(c->sum_s, c->known, m, c->mean_s); }

void steady_chain_parts(const struct steady_chain *c, double m, struct steady_chain_part part[2])
{
    const int k = c->known;
    const double clear = of_place(c, c->entry, 0);
    part[0].weight = clear;
    part[0].mean_s = at_steps(c->clear_s, k, m, c->mean_s);
    part[0].variance_s2 = at_steps(c->clear_s2, k, m, c->clear_s2[k] - c->clear_s2[k - 1]);
    part[1].weight = 1 - clear;
    part[1].mean_s = at_steps(c->behind_s, k, m, c->mean_s);
    part[1].variance_s2 = at_steps(c->behind_s2, k, m, c->behind_s2[k] - c->behind_s2[k - 1]);
}

double steady_chain_clear(const struct steady_chain *c, double steps)
{
    const double ticks = c->phases * c->rate * c->plain_s * steps, groups = c->times->parts;
    const double others = groups > 1 ? c->others_clear * exp(-c->rate * (groups - 1) * c->plain_s * steps) : 1;
    double sum = 0, below = 0, p = exp(-ticks);
    for (int j = c->phases - 1; j >= 0; j--) { /* fewer ticks than are left to it */
        below += p;
        p *= ticks / (c->phases - j);
        sum += c->entry[j] * below;
    }
    return others * sum / fmax(of_place(c, c->entry, 0), 1e-300); /* not a unit */
}

double steady_chain_mates(const struct steady_chain *c, double steps)
{
    double sum = c->with + (c->times->parts - 1) * c->begin; /* those of other groups begin in the same step */
    for (int i = 1; i <= c->known && i < steps; i++) sum += 2 * c->more[i] * (1 - i / steps);
    return fmax(sum, 0);
}

double steady_chain_answer_s(const struct steady_chain *c, const struct steady_lengths *l)
{
    double sum = 0;
    for (size_t i = 0; i < l->n; i++) sum += l->node[i].weight * steady_chain_sum_s(c, l->node[i].output_tokens - 1);
    return sum;
}

/* From a beginning until the first step that decodes, and as many of those as states without prompts. */
void steady_chain_between(struct steady_replica *r, double rate_per_s, double n, struct steady_flow *f)
{
    enum { STEPS = 200, MANY = 8 };
    struct steady_chain *c = r->times->chain;
    double now[STEADY_CHAIN_STATES], next[STEADY_CHAIN_STATES], until_s = 0, left = 1;
    const double fit = steady_flow_fit(r->times);
    if (fit < MANY && !(r->times->parts > 1)) return; /* other groups are looked at by the lengths of steps alone */
    if (!(rate_per_s * steady_times_step_s(r->times, 0, fit * r->s->lengths->prompt_tokens) < .98 * fit)) return;
    steady_chain_open(r, rate_per_s, n, n, true, c);
    const size_t row = (size_t)c->states;
    memcpy(now, c->entry, row * sizeof *now);
    for (int m = 0; m < STEPS && left > 1e-4; m++) {
        memset(next, 0, row * sizeof *next);
        for (int i = c->phases; i < c->states; i++) {
            const double *to = c->to + (size_t)i * row;
            until_s += now[i] * c->step_s[i];
            for (int j = c->least[i]; j <= c->last[i] && now[i] > 1e-7; j++) next[j] += now[i] * to[j];
        }
        left = 0;
        for (int i = c->phases; i < c->states; i++) left += now[i] = next[i];
    }
    const double clear = of_place(c, c->part, 0);
    f->chained = true;
    f->busy_frac = 1 - clear * c->step_s[0] / c->mean_s;
    f->token_s = c->mean_s / clear;
    f->extra_s = until_s - (f->token_s - f->decode_s);
}
