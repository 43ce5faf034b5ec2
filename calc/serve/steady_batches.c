/* steady_batches -- what a batch of so many takes, and how many fit; of steady_batches.h. */
#include "calc/serve/steady_batches.h"

#include <math.h>

const double STEADY_BATCH_ANSWER_PART[STEADY_BATCH_ANSWERS] = {.25, .25, .2, .15, .1, .04, .008, .002},
             STEADY_BATCH_PROMPT_PART[STEADY_BATCH_PROMPTS] = {.5, .4, .1};

double steady_batches_step_s(struct steady_batches *c)
{
    return engine_any_s(c->s->server, c->s->overlapped, c->s->calibrated, &c->x) + c->s->overhead_s;
}

void steady_batches_longest(const double at[STEADY_QUANTILES], const double log_below[STEADY_QUANTILES], double n,
                            const double *part, int parts, double *mean)
{
    double before = 0, edge = part[0], weight = 0, sum = 0;
    int k = 0;
    for (size_t q = 0; q < STEADY_QUANTILES; q++) {
        const double all = q + 1 < STEADY_QUANTILES ? exp(n * log_below[q]) : 1;
        while (k + 1 < parts && all > edge) {
            sum += (edge - before) * at[q];
            weight += edge - before;
            mean[k] = sum / weight;
            before = edge;
            weight = sum = 0;
            edge += part[++k];
        }
        sum += (all - before) * at[q];
        weight += all - before;
        before = all;
    }
    mean[k] = weight > 0 ? sum / weight : at[STEADY_QUANTILES - 1];
}

struct steady_batch steady_batches_of(struct steady_batches *c, double n)
{
    const struct steady_lengths *l = c->s->lengths;
    double prompt[STEADY_BATCH_PROMPTS], steps[STEADY_BATCH_ANSWERS], prompts = 0, mean = 0, square = 0;
    struct steady_batch b = {.n = n};
    steady_batches_longest(l->prompt_at, c->log_below, n, STEADY_BATCH_PROMPT_PART, STEADY_BATCH_PROMPTS, prompt);
    steady_batches_longest(l->output_at, c->log_below, n, STEADY_BATCH_ANSWER_PART, STEADY_BATCH_ANSWERS, steps);
    for (int i = 0; i < STEADY_BATCH_PROMPTS; i++) prompts += STEADY_BATCH_PROMPT_PART[i] * prompt[i];
    for (int i = 0; i < STEADY_BATCH_ANSWERS; i++) {
        steps[i]--;
        mean += STEADY_BATCH_ANSWER_PART[i] * steps[i];
        square += STEADY_BATCH_ANSWER_PART[i] * steps[i] * steps[i];
    }
    if (mean > 0) {
        mix_clear(&c->x);
        mix_decode(&c->x, n, prompts + .5 + square / mean / 2);
        b.step_s = steady_batches_step_s(c);
    }
    for (int i = 0; i < STEADY_BATCH_PROMPTS; i++) {
        mix_clear(&c->x);
        mix_prefill(&c->x, n, prompt[i], 0);
        const double took_s = steady_batches_step_s(c);
        b.first_s[i] = took_s;
        b.prefill_s += STEADY_BATCH_PROMPT_PART[i] * took_s;
        for (int k = 0; k < STEADY_BATCH_ANSWERS; k++)
            b.spread_s[i * STEADY_BATCH_ANSWERS + k] = took_s + steps[k] * b.step_s;
    }
    b.decode_s = mean * b.step_s;
    b.all_s = b.prefill_s + b.decode_s;
    return b;
}

/* Of the longest prompt and the longest answer of n: as many fit as the cache has of these tokens, so that their mean
 * number is of 1/tokens. Independent of each other. */
static double tokens_of(const struct steady_batches *c, double n)
{
    const struct steady_lengths *l = c->s->lengths;
    double prompt[STEADY_BATCH_PROMPTS], output[STEADY_BATCH_ANSWERS], inverse = 0;
    steady_batches_longest(l->prompt_at, c->log_below, n, STEADY_BATCH_PROMPT_PART, STEADY_BATCH_PROMPTS, prompt);
    steady_batches_longest(l->output_at, c->log_below, n, STEADY_BATCH_ANSWER_PART, STEADY_BATCH_ANSWERS, output);
    for (int i = 0; i < STEADY_BATCH_PROMPTS; i++)
        for (int k = 0; k < STEADY_BATCH_ANSWERS; k++)
            inverse += STEADY_BATCH_PROMPT_PART[i] * STEADY_BATCH_ANSWER_PART[k] / (prompt[i] + output[k]);
    return 1 / inverse;
}

double steady_batches_most(const struct steady_batches *c, enum steady_limit *by)
{
    const struct steady_setup *s = c->s;
    double low = 1, high = (double)s->max_seqs;
    const double b = (double)s->block_tokens;
    *by = STEADY_SEQS;
    for (int i = 0; i < 30 && low + .5 < high; i++) {
        const double n = i == 0 ? high : ceil((low + high) / 2);
        const double tokens = tokens_of(c, n);
        if (n * ceil(tokens / b) <= (double)s->blocks) {
            low = n;
            if (i == 0) return n;
        } else {
            *by = STEADY_BLOCKS;
            high = n - 1;
        }
    }
    return low;
}

double steady_batches_inverse_more(const struct steady_lengths *l)
{
    double sum = 0, all = 0;
    for (size_t q = 0; q < STEADY_QUANTILES; q++) {
        double part;
        (void)steady_quantile(q, &part);
        if (!(l->output_at[q] > 1)) continue;
        sum += part / (l->output_at[q] - 1);
        all += part;
    }
    return all > 0 ? l->inverse - sum / all : 0;
}
