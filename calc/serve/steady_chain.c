/* steady_chain -- prompt tokens that wait at the beginning of each step, where they are computed in pieces beside those
 * that decode, and requests come at a rate; of steady_chain.h. */
#include <math.h>
#include <string.h>

#include "calc/serve/steady_chain.h"

/* Points of a normal distribution with its first nine moments (Gauss and Hermite). */
static const double NORMAL[] = {-2.856970, -1.355626, 0, 1.355626, 2.856970};
static const double NORMAL_PART[] = {.01125741, .2220759, 8. / 15, .2220759, .01125741};
enum { NORMALS = sizeof NORMAL / sizeof NORMAL[0] };

/* ---- what comes in a time ---- */

struct steady_chain_sum steady_chain_come(const struct steady_chain *c, double count)
{
    struct steady_chain_sum s = {.n = 1, .tokens = {0}, .weight = {exp(-count)}};
    const double one = count * s.weight[0], more = 1 - s.weight[0] - one;
    const bool several = more > 1e-5;
    const double ones = several ? one : 1 - s.weight[0];
    if (!(ones > 0) && !several) return s;
    for (int i = 0; i < c->ones; i++) {
        s.tokens[s.n] = c->one_tokens[i];
        s.weight[s.n++] = ones * c->one_part[i];
    }
    if (!several) return s;
    const double prompt = c->prompt_tokens, all = count * prompt;
    const double at = (all - one * prompt) / more;
    const double square =
        count * c->prompt_square + (c->arrival_cv2 - 1) * all * prompt + all * all - one * c->prompt_square;
    const double sd = sqrt(log1p(fmax(square / more / (at * at) - 1, 0)));
    double mean = 0;
    for (int i = 0; i < NORMALS; i++) mean += NORMAL_PART[i] * (s.tokens[s.n + i] = exp(sd * NORMAL[i]));
    for (int i = 0; i < NORMALS; i++, s.n++) {
        s.tokens[s.n] *= at / mean;
        s.weight[s.n] = more * NORMAL_PART[i];
    }
    return s;
}

/* ---- steps ---- */

/* Places of the grid around so many tokens, and the part of the upper one, so that the mean stays. */
static int place_of(const struct steady_chain *c, double tokens, double *part)
{
    int i = 0;
    if (tokens >= c->room) {
        i = c->full + (int)fmin((tokens - c->room) / c->gap, STEADY_CHAIN_STATES);
        if (i > c->n - 2) i = c->n - 2;
    } else {
        while (i + 1 < c->full && c->tokens[i + 1] <= tokens) i++;
    }
    const double low = c->tokens[i];
    *part = fmin(fmax((tokens - low) / (c->tokens[i + 1] - low), 0), 1);
    return i;
}

/* Even beyond a room's tokens, so that what a step leaves over is a place too, and fine where few wait. As far as the
 * tail of the work of an M/G/1 queue goes (Kingman); more is taken as that. */
static void open_grid(struct steady_chain *c, double longest, bool coarse)
{
    enum { LEAST = 6, MOST = 20 };
    const int room = coarse ? 32 : STEADY_CHAIN_STATES - MOST - 1, far = coarse ? 4 : 6;
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
    const int above = (int)fmin(ceil(most / c->gap), room);
    for (int i = 1; i <= above; i++) c->tokens[below + i] = c->room + i * c->gap;
    c->n = below + above + 1;
}

static void add(struct steady_chain *c, int from, double tokens, double weight)
{
    double part;
    const int i = place_of(c, tokens, &part);
    c->to[from][i] += weight * (1 - part);
    c->to[from][i + 1] += weight * part;
}

static void open_rows(struct steady_chain *c)
{
    struct steady_chain_sum full = {.n = 0};
    const bool idle = !(c->decoding > 0); /* until somebody comes */
    for (int i = 0; i < c->n; i++) {
        memset(c->to[i], 0, (size_t)c->n * sizeof c->to[i][0]);
        c->step_s[i] = i == 0        ? steady_times_step_s(c->times, c->still, 0)
                       : i < c->full ? steady_times_step_s(c->times, c->beside, c->tokens[i])
                                     : c->full_s;
        struct steady_chain_sum s = i <= c->full ? steady_chain_come(c, c->rate * c->step_s[i]) : full;
        if (i == c->full) full = s;
        if (i == 0 && idle) {
            c->step_s[i] = 1 / c->rate;
            s = (struct steady_chain_sum){.n = c->ones};
            for (int k = 0; k < c->ones; k++) s.tokens[k] = c->one_tokens[k];
            for (int k = 0; k < c->ones; k++) s.weight[k] = c->one_part[k];
        }
        for (int k = 0; k < s.n; k++) add(c, i, fmax(c->tokens[i] - c->room, 0) + s.tokens[k], s.weight[k]);
        c->least[i] = 0;
        c->last[i] = c->n - 1;
        while (!(c->to[i][c->least[i]] > 0)) c->least[i]++;
        while (!(c->to[i][c->last[i]] > 0)) c->last[i]--;
    }
}

/* Grassmann, Taksar and Heyman: stationary parts without differences. A step takes a room's tokens at most, so that
 * none goes down further than that. */
static void find_parts(struct steady_chain *c)
{
    double p[STEADY_CHAIN_STATES][STEADY_CHAIN_STATES], sum = 1;
    for (int i = 0; i < c->n; i++) memcpy(p[i], c->to[i], (size_t)c->n * sizeof p[i][0]);
    for (int k = c->n - 1; k > 0; k--) {
        const int least = k - c->fine > c->full ? k - c->fine : 0;
        double out = 0;
        for (int i = least; i < k; i++) out += p[k][i];
        for (int i = 0; i < k; i++) {
            if (!(p[i][k] > 0)) continue;
            p[i][k] = out > 0 ? p[i][k] / out : 0;
            for (int j = least; j < k; j++) p[i][j] += p[i][k] * p[k][j];
        }
    }
    c->part[0] = 1;
    for (int k = 1; k < c->n; k++) {
        c->part[k] = 0;
        for (int i = 0; i < k; i++) c->part[k] += c->part[i] * p[i][k];
        sum += c->part[k];
    }
    c->mean_s = 0;
    for (int k = 0; k < c->n; k++) c->mean_s += (c->part[k] /= sum) * c->step_s[k];
}

/* Ends of prompts within the last `tokens` of what waits, its own end not counted, but for a factor: of exponential
 * ones they are anywhere, of one length whole prompts behind. */
static double inside(const struct steady_chain *c, double tokens)
{
    double beyond = 0;
    for (int i = 0; i < c->ones; i++) beyond += c->one_part[i] * fmax(tokens - c->one_tokens[i], 0);
    return (c->even * beyond + (1 - c->even) * tokens) / c->prompt_tokens;
}

/* What waits as a request begins to decode. As many prompts are done as come, rate * mean_s in a step: one where a step
 * leaves nothing over, the last that waited, and others in the ratio of the places that are inside. */
static void find_entry(struct steady_chain *c)
{
    double ends = 0, places = 0, tokens = 0, total = 0, within[STEADY_CHAIN_STATES];
    for (int i = 1; i < c->n; i++) {
        ends += i <= c->full ? c->part[i] : 0;
        tokens += c->part[i] * fmin(c->tokens[i], c->room);
        within[i] = inside(c, c->tokens[i]) - inside(c, fmax(c->tokens[i] - c->room, 0));
        places += c->part[i] * within[i];
    }
    const double others = places > 0 ? fmax(tokens / c->prompt_tokens - ends, 0) / places : 0;
    memset(c->entry, 0, sizeof c->entry);
    c->done[0] = c->with = 0;
    for (int i = 1; i < c->n; i++) {
        const double left = fmax(c->tokens[i] - c->room, 0), end = left > 0 ? 0 : 1;
        const double x = others * within[i], done = end + x;
        c->done[i] = done;
        if (!(done > 0)) continue;
        total += c->part[i] * done;
        c->with += c->part[i] * (c->even * fmax(done * (done - 1), 0) + (1 - c->even) * (x * x + 2 * end * x));
        for (int k = c->least[i]; k <= c->last[i]; k++) c->entry[k] += c->part[i] * done * c->to[i][k];
    }
    for (int i = 0; i < c->n; i++) c->entry[i] /= total;
    c->with /= total;
    c->begin = total;
}

/* Means of the steps that follow on a beginning, and how many more begin in each than in any step. */
static void find_sums(struct steady_chain *c, const struct steady_lengths *l, double within)
{
    double now[STEADY_CHAIN_STATES], sum_s = 0, still = l->steps, any = l->steps, left[STEADY_CHAIN_STEPS] = {0};
    memcpy(now, c->entry, sizeof now);
    for (size_t i = 0; i < STEADY_QUANTILES; i++) { /* the part of answers with more steps than that */
        double part;
        (void)steady_quantile(i, &part);
        left[(int)fmin(l->output_at[i] - 1, STEADY_CHAIN_STEPS - 1)] += part;
    }
    for (int k = STEADY_CHAIN_STEPS - 2; k >= 0; k--) left[k] += left[k + 1];
    c->sum_s[0] = c->clear_s[0] = c->clear_s2[0] = c->behind_s[0] = c->behind_s2[0] = 0;
    for (int m = 1; m < STEADY_CHAIN_STEPS; m++) {
        double mean_s = 0, begin = 0, next[STEADY_CHAIN_STATES] = {0};
        for (int i = 0; i < c->n; i++) {
            mean_s += now[i] * c->step_s[i];
            begin += now[i] * c->done[i];
        }
        still += (now[0] / c->part[0] - 1) * left[m];
        any += (mean_s / c->mean_s - 1) * left[m];
        c->sum_s[m] = sum_s += mean_s;
        c->more[m] = begin - c->begin;
        c->known = m;
        if (m > 1 && fabs(mean_s - c->mean_s) < within * c->mean_s && fabs(begin - c->begin) < 4 * within * c->begin)
            break;
        for (int i = 0; i < c->n; i++)
            for (int j = c->least[i]; j <= c->last[i] && now[i] > 1e-6; j++) next[j] += now[i] * c->to[i][j];
        memcpy(now, next, sizeof now);
    }
    c->still_frac = fmin(fmax(still / any, 0), 1);
}

int steady_chain_prompts(const struct steady_lengths *l, double most, int room, double *tokens, double *part)
{
    const double computed = l->prompt_tokens / (l->prompt_tokens + l->cached_tokens);
    double sum = 0, weight = 0, below = 0;
    int n = 0;
    for (size_t i = 0; i < STEADY_QUANTILES; i++) {
        double one;
        (void)steady_quantile(i, &one);
        const double value = fmax(l->prompt_at[i] * computed, 1);
        sum += one * value;
        weight += one;
        below += one;
        if (weight < fmin(most, (1 - below) * 1.3) * (1 - 1e-9) && i + 1 < STEADY_QUANTILES) continue;
        if (n > 0 && (n == room || !(sum / weight > tokens[n - 1] * (1 + 1e-9)))) {
            tokens[n - 1] = (tokens[n - 1] * part[n - 1] + sum) / (part[n - 1] + weight);
            part[n - 1] += weight;
        } else {
            tokens[n] = sum / weight;
            part[n++] = weight;
        }
        sum = weight = 0;
    }
    return n;
}

void steady_chain_open(struct steady_replica *r, double rate_per_s, double decoding, double still, bool coarse,
                       struct steady_chain *c)
{
    const struct steady_lengths *l = r->s->lengths;
    struct steady_times *t = r->times;
    c->times = t;
    c->rate = rate_per_s;
    c->arrival_cv2 = r->arrival_cv2;
    c->decoding = decoding;
    c->still = still;
    const bool beside = t->beside;
    c->room = fmax(beside ? t->budget_tokens - t->rows * decoding : steady_flow_fit(t) * l->prompt_tokens, 1);
    c->beside = beside ? decoding : 0;
    c->prompt_tokens = l->prompt_tokens;
    c->prompt_square = l->prompt_square;
    c->full_s = steady_times_step_s(t, c->beside, c->room);
    c->even = fmin(fmax(2 - l->prompt_square / (l->prompt_tokens * l->prompt_tokens), 0), 1);
    c->ones = steady_chain_prompts(l, coarse ? 1. / 6 : 1. / 12, STEADY_CHAIN_ONES, c->one_tokens, c->one_part);
    open_grid(c, t->group[t->groups - 1].tokens, coarse);
    open_rows(c);
    find_parts(c);
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
    part[0].weight = c->entry[0];
    part[0].mean_s = at_steps(c->clear_s, k, m, c->mean_s);
    part[0].variance_s2 = at_steps(c->clear_s2, k, m, c->clear_s2[k] - c->clear_s2[k - 1]);
    part[1].weight = 1 - c->entry[0];
    part[1].mean_s = at_steps(c->behind_s, k, m, c->mean_s);
    part[1].variance_s2 = at_steps(c->behind_s2, k, m, c->behind_s2[k] - c->behind_s2[k - 1]);
}

double steady_chain_mates(const struct steady_chain *c, double steps)
{
    double sum = c->with;
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
    double now[STEADY_CHAIN_STATES], until_s = 0, left = 1;
    const double fit = steady_flow_fit(r->times);
    if (fit < MANY) return;
    if (!(rate_per_s * steady_times_step_s(r->times, 0, fit * r->s->lengths->prompt_tokens) < .98 * fit)) return;
    steady_chain_open(r, rate_per_s, n, n, true, c);
    memcpy(now, c->entry, sizeof now);
    for (int m = 0; m < STEPS && left > 1e-4; m++) {
        double next[STEADY_CHAIN_STATES] = {0};
        for (int i = 1; i < c->n; i++) {
            until_s += now[i] * c->step_s[i];
            for (int j = c->least[i]; j <= c->last[i] && now[i] > 1e-7; j++) next[j] += now[i] * c->to[i][j];
        }
        left = 0;
        for (int i = 1; i < c->n; i++) left += now[i] = next[i];
    }
    f->busy_frac = 1 - c->part[0] * c->step_s[0] / c->mean_s;
    f->token_s = c->mean_s / c->part[0];
    f->extra_s = until_s - (f->token_s - f->decode_s);
}
