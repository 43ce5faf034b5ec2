/* steady_turns -- static batches where others always wait; of steady_batches.h. */
#include <math.h>

#include "calc/serve/steady_batches.h"

enum { P = STEADY_TURN_PROMPTS, O = STEADY_TURN_ANSWERS };

/* Parts of the distribution of the longest of a batch: the last ones long and rare. */
static const double PROMPT_PART[P] = {.2, .2, .2, .15, .12, .08, .04, .01},
                    ANSWER_PART[O] = {.08, .08, .08, .08, .08,  .08,  .08,  .08,
                                      .08, .08, .08, .06, .035, .019, .005, .001};

/* Lengths in so many parts: of each what it stands for, and the chance that one is no longer. */
struct levels {
    int n;
    double tokens[O], at_most[O];
};

static struct levels levels_of(const struct steady_batches *c, const double at[STEADY_QUANTILES], double most,
                               const double *part, int parts)
{
    struct levels x = {.n = parts};
    double sum = 0;
    steady_batches_longest(at, c->log_below, most, part, parts, x.tokens);
    if (!(x.tokens[parts - 1] > x.tokens[0])) x.n = 1;
    for (int i = 0; i < x.n; i++) {
        sum += part[i];
        x.at_most[i] = i + 1 < x.n ? pow(sum, 1 / most) : 1;
    }
    return x;
}

/* Batches that begin with a request of each part of both lengths, and what begins the next ones. */
struct law {
    struct levels prompt, answer;
    double blocks[P][O];               /* of a sequence of these */
    double one[P][O], first[P][O];     /* of any request; of a batch's first */
    double weight[P][O], number[P][O]; /* of batches, by their longest; and times the requests in them */
    double rate[P][O];                 /* of those that begin the next */
    double prompt_one[P], answer_one[O];
};

/* Batches of n whose longest are i and k end for a request that is in any part. */
static void end(struct law *x, int i, int k, double n, double weight)
{
    x->weight[i][k] += weight;
    x->number[i][k] += weight * n;
}

static void begin_any(struct law *x, double weight)
{
    for (int i = 0; i < x->prompt.n; i++)
        for (int k = 0; k < x->answer.n; k++) x->rate[i][k] += weight * x->one[i][k];
}

/* And for one whose prompt or whose answer is too long for one more, fit[] the longest answer beside each prompt: -1
 * none. Both at a time are rare. */
static void begin_long(struct law *x, int i, int k, const int *fit, double weight)
{
    double prompts = 0, answers = 0;
    for (int a = i + 1; a < x->prompt.n; a++) prompts += fit[a] < k ? x->prompt_one[a] : 0;
    for (int b = fit[i] + 1; b < x->answer.n; b++) answers += x->answer_one[b];
    if (!(prompts + answers > 0)) {
        begin_any(x, weight);
        return;
    }
    weight /= prompts + answers;
    for (int a = i + 1; a < x->prompt.n && prompts > 0; a++)
        for (int b = 0; b < x->answer.n && fit[a] < k; b++)
            x->rate[a][b] += weight * x->prompt_one[a] * x->answer_one[b];
    for (int b = fit[i] + 1; b < x->answer.n; b++)
        for (int a = 0; a < x->prompt.n; a++) x->rate[a][b] += weight * x->prompt_one[a] * x->answer_one[b];
}

/* From n to n + more requests: those whose longest have no room for so many end, the others' longest become longer. */
static void grow(struct law *x, double now[P][O], double n, double more, double blocks)
{
    double prompt[P], answer[O], next[P][O] = {{0}};
    int fit[P];
    for (int i = 0; i < x->prompt.n; i++) prompt[i] = pow(x->prompt.at_most[i], more);
    for (int k = 0; k < x->answer.n; k++) answer[k] = pow(x->answer.at_most[k], more);
    for (int i = 0; i < x->prompt.n; i++)
        for (fit[i] = -1; fit[i] + 1 < x->answer.n && (n + more) * x->blocks[i][fit[i] + 1] <= blocks;) fit[i]++;
    for (int i = 0; i < x->prompt.n; i++)
        for (int k = 0; k < x->answer.n; k++) {
            const double w = now[i][k];
            double goes_on = 0;
            if (!(w > 0)) continue;
            if (fit[i] < k) {
                end(x, i, k, fmin(fmax(floor(blocks / x->blocks[i][k]), n), n + more - 1), w);
                begin_any(x, w);
                continue;
            }
            for (int a = i; a < x->prompt.n && fit[a] >= k; a++) {
                const double of_a = prompt[a] - (a > i ? prompt[a - 1] : 0);
                for (int b = k; b <= fit[a]; b++) next[a][b] += w * of_a * (answer[b] - (b > k ? answer[b - 1] : 0));
                goes_on += of_a * answer[fit[a]];
            }
            if (!(goes_on < 1)) continue;
            end(x, i, k, n + (more - 1) / 2, w * (1 - goes_on));
            begin_long(x, i, k, fit, w * (1 - goes_on));
        }
    for (int i = 0; i < x->prompt.n; i++)
        for (int k = 0; k < x->answer.n; k++) now[i][k] = next[i][k];
}

/* All batches that begin as `first` says. */
static double fill(struct law *x, double seqs, double blocks)
{
    enum { SINGLY = 32 }; /* then by a part of what there is */
    double now[P][O], left = 1, number = 0;
    for (int i = 0; i < P; i++)
        for (int k = 0; k < O; k++) {
            now[i][k] = x->first[i][k];
            x->weight[i][k] = x->number[i][k] = x->rate[i][k] = 0;
        }
    for (double n = 1; left > 1e-6;) { /* not a unit */
        if (n >= seqs) {
            for (int i = 0; i < x->prompt.n; i++)
                for (int k = 0; k < x->answer.n; k++) end(x, i, k, n, now[i][k]);
            begin_any(x, left);
            break;
        }
        const double all = floor(blocks / x->blocks[x->prompt.n - 1][x->answer.n - 1]); /* nobody ends before */
        double more = fmax(floor(n / SINGLY), 1);
        if (all > n + more) more = all - n;
        more = fmin(more, seqs - n);
        grow(x, now, n, more, blocks);
        n += more;
        left = 0;
        for (int i = 0; i < x->prompt.n; i++)
            for (int k = 0; k < x->answer.n; k++) left += now[i][k];
    }
    for (int i = 0; i < x->prompt.n; i++)
        for (int k = 0; k < x->answer.n; k++) number += x->number[i][k];
    return number;
}

static void open_law(struct law *x, const struct steady_batches *c, double most)
{
    const struct steady_lengths *l = c->s->lengths;
    const double b = (double)c->s->block_tokens;
    x->prompt = levels_of(c, l->prompt_at, most, PROMPT_PART, P);
    x->answer = levels_of(c, l->output_at, most, ANSWER_PART, O);
    for (int i = 0; i < x->prompt.n; i++)
        x->prompt_one[i] = x->prompt.at_most[i] - (i > 0 ? x->prompt.at_most[i - 1] : 0);
    for (int k = 0; k < x->answer.n; k++)
        x->answer_one[k] = x->answer.at_most[k] - (k > 0 ? x->answer.at_most[k - 1] : 0);
    for (int i = 0; i < x->prompt.n; i++)
        for (int k = 0; k < x->answer.n; k++) {
            x->blocks[i][k] = ceil((x->prompt.tokens[i] + x->answer.tokens[k]) / b);
            x->first[i][k] = x->one[i][k] = x->prompt_one[i] * x->answer_one[k];
        }
}

void steady_turns_of(struct steady_batches *c, double most, double seqs, struct steady_turns *x)
{
    enum { ROUNDS = 6 };
    struct law law = {0};
    double before = 0;
    open_law(&law, c, most);
    for (int round = 0; round < ROUNDS; round++) {
        const double number = fill(&law, seqs, (double)c->s->blocks);
        if (fabs(number - before) < 3e-3 * number) break;
        before = number;
        double all = 0;
        for (int i = 0; i < law.prompt.n; i++)
            for (int k = 0; k < law.answer.n; k++) all += law.rate[i][k];
        for (int i = 0; i < law.prompt.n; i++)
            for (int k = 0; k < law.answer.n; k++) law.first[i][k] = law.rate[i][k] / all;
    }
    *x = (struct steady_turns){0};
    for (int i = 0; i < law.prompt.n; i++)
        for (int k = 0; k < law.answer.n; k++) {
            const double w = law.weight[i][k];
            if (!(w > 1e-4)) continue;
            struct steady_turn *t = &x->turn[x->n++];
            *t = (struct steady_turn){.weight = w,
                                      .number = fmax(law.number[i][k] / w, 1),
                                      .prompt_tokens = law.prompt.tokens[i],
                                      .output_tokens = law.answer.tokens[k]};
            mix_clear(&c->x);
            mix_prefill(&c->x, t->number, t->prompt_tokens, 0);
            t->all_s = steady_batches_step_s(c);
            if (t->output_tokens > 1) {
                mix_clear(&c->x);
                mix_decode(&c->x, t->number, t->prompt_tokens + .5 + t->output_tokens / 2);
                t->step_s = steady_batches_step_s(c);
                t->all_s += (t->output_tokens - 1) * t->step_s;
            }
            x->number += w * t->number;
            x->seconds += w * t->all_s;
        }
}

/* ---- what clients see ---- */

enum { FIRSTS = 16 }; /* not a unit */

/* First tokens of a batch of n, by the longest prompt. */
static void find_firsts(struct steady_batches *c, double n, double first_s[FIRSTS])
{
    double part[FIRSTS], prompt[FIRSTS];
    for (int i = 0; i < FIRSTS; i++) part[i] = 1. / FIRSTS;
    steady_batches_longest(c->s->lengths->prompt_at, c->log_below, n, part, FIRSTS, prompt);
    for (int i = 0; i < FIRSTS; i++) {
        mix_clear(&c->x);
        mix_prefill(&c->x, n, prompt[i], 0);
        first_s[i] = steady_batches_step_s(c);
    }
}

void steady_turns_add_first(struct steady_batches *c, struct steady_histogram *h, double n, double before_s)
{
    double first_s[FIRSTS];
    find_firsts(c, n, first_s);
    for (int i = 0; i < FIRSTS; i++) steady_histogram_add(h, before_s + first_s[i], 1. / FIRSTS);
}

/* When a batch ends its N ask again, behind the n - N that have waited: those whose place is within what the next one
 * takes are in it, the others wait for that one, which is longer where it takes fewer, and for more. */
void steady_turns_first(struct steady_batches *c, double n, const struct steady_turns *x, struct steady_histogram *h)
{
    enum { PLACES = 16 };
    double first_s[FIRSTS], all = 0;
    find_firsts(c, c->batch[1].n, first_s);
    for (size_t i = 0; i < x->n; i++) all += x->turn[i].weight * x->turn[i].number;
    for (size_t k = 0; k < x->n; k++) {
        const struct steady_turn *next = &x->turn[k];
        double turn[STEADY_TURNS_MAX] = {0};
        for (size_t i = 0; i < x->n; i++)
            for (int q = 0; q < PLACES; q++) {
                const struct steady_turn *own = &x->turn[i];
                const double place = n - own->number * (1 - (q + .5) / PLACES);
                const double turns = place <= next->number ? 0 : 1 + floor((place - next->number) / x->number);
                turn[(size_t)fmin(turns, STEADY_TURNS_MAX - 1)] += own->weight * own->number / PLACES;
            }
        for (size_t i = 0; i < STEADY_TURNS_MAX; i++)
            for (int q = 0; q < FIRSTS && turn[i] > 0; q++)
                steady_histogram_add(h, (i > 0 ? next->all_s + (double)(i - 1) * x->seconds : 0) + first_s[q],
                                     turn[i] / all * next->weight / FIRSTS);
    }
}

/* Of the longest answer and of others no longer than it. */
double steady_turns_tokens(const struct steady_batches *c, const struct steady_turns *x, struct steady_histogram *h)
{
    const double *at = c->s->lengths->output_at, less = steady_batches_inverse_more(c->s->lengths);
    double more_s = 0, all = 0;
    steady_histogram_clear(h);
    for (size_t i = 0; i < x->n; i++) {
        const struct steady_turn *t = &x->turn[i];
        const double weight = t->weight * t->number;
        double several = 0, part;
        for (size_t q = 0; q < STEADY_QUANTILES; q++) {
            (void)steady_quantile(q, &part);
            if (at[q] > 1 && at[q] <= t->output_tokens) several += part;
        }
        if (!(several > 0)) continue;
        all += weight;
        more_s += weight * less * t->step_s * (t->output_tokens - 1);
        steady_histogram_add(h, t->step_s, t->weight); /* the longest itself */
        for (size_t q = 0; q < STEADY_QUANTILES; q++) {
            (void)steady_quantile(q, &part);
            if (at[q] > 1 && at[q] <= t->output_tokens)
                steady_histogram_add(h, t->step_s * (t->output_tokens - 1) / (at[q] - 1),
                                     t->weight * (t->number - 1) * part / several);
        }
    }
    return all > 0 ? more_s / all : 0;
}
