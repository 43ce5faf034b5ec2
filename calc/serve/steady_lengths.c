/* steady_lengths -- distributions of lengths as a few nodes; of steady.h. */
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>

#include "calc/serve/steady.h"

/* Bins of prompts and of outputs by their quantiles: narrow where tails are. */
static const double PROMPT_EDGE[] = {0, .12, .3, .5, .68, .82, .91, .97, .995, 1};
static const double OUTPUT_EDGE[] = {0, .3, .6, .83, .95, 1};
enum {
    PROMPT_BINS = sizeof PROMPT_EDGE / sizeof PROMPT_EDGE[0] - 1,
    OUTPUT_BINS = sizeof OUTPUT_EDGE / sizeof OUTPUT_EDGE[0] - 1,
    INSIDE = 512, /* quantiles looked at in a bin; not a unit */
};

double steady_quantile(size_t i, double *part)
{
    enum { TAIL = 24, EQUAL = STEADY_QUANTILES - 2 * TAIL, PER_OCTAVE = 3 };
    const double rest = 1. / 16;
    if (i >= TAIL && i < TAIL + EQUAL) {
        *part = (1 - 2 * rest) / EQUAL;
        return rest + ((double)(i - TAIL) + .5) * *part;
    }
    const size_t out = i < TAIL ? TAIL - 1 - i : i - TAIL - EQUAL; /* from the equal ones outwards */
    static const double THIRD[PER_OCTAVE] = {1, .79370052598409973738, .62996052494743658238}; /* 2^(-i/3) */
    const double from = rest * THIRD[out % PER_OCTAVE] / (double)(1 << out / PER_OCTAVE),
                 to = out + 1 < TAIL ? rest * THIRD[(out + 1) % PER_OCTAVE] / (double)(1 << (out + 1) / PER_OCTAVE) : 0;
    *part = from - to;
    const double place = from - *part / 2;
    return i < TAIL ? place : 1 - place;
}

/* ---- of a distribution ---- */

static int by_value(const void *x, const void *y)
{
    const double p = *(const double *)x, q = *(const double *)y;
    return (p > q) - (p < q);
}

/* The u-quantile, as drawn: rounded up and cut. sorted: of an empirical list. */
static double quantile(const struct workload_length *l, const double *sorted, double u)
{
    double v = l->mean;
    switch (l->kind) {
    case WORKLOAD_FIXED: break;
    case WORKLOAD_UNIFORM: v = floor(l->low + u * (l->high + 1 - l->low)); break;
    case WORKLOAD_EXPONENTIAL: v = -l->mean * log1p(-u); break;
    case WORKLOAD_LOGNORMAL: {
        const double s2 = log1p(l->cv * l->cv);
        v = exp(log(l->mean) - s2 / 2 + sqrt(s2) * gsl_cdf_ugaussian_Pinv(u));
        break;
    }
    case WORKLOAD_GAMMA_LENGTH: v = gsl_cdf_gamma_Pinv(u, 1 / (l->cv * l->cv), l->mean * l->cv * l->cv); break;
    case WORKLOAD_PARETO: v = l->mean * (l->alpha - 1) / l->alpha * pow(1 - u, -1 / l->alpha); break;
    case WORKLOAD_EMPIRICAL: v = sorted[(size_t)(u * (double)l->list_n)]; break;
    }
    return fmin(fmax(ceil(v), 1), (double)l->most);
}

/* A bin of a distribution: its part, mean and mean square, of the values and of the values less one, and the part of
 * ones and E[1 / (v - 1)] of the others, times their part. */
struct bin {
    double weight, mean, square, less_square, ones, inverse;
};

static void bin_add(struct bin *b, double v, double weight)
{
    b->weight += weight;
    b->mean += weight * v;
    b->square += weight * v * v;
    b->less_square += weight * (v - 1) * (v - 1);
    if (v > 1)
        b->inverse += weight / (v - 1);
    else
        b->ones += weight;
}

static void bin_end(struct bin *b)
{
    b->mean /= b->weight;
    b->square /= b->weight;
    b->less_square /= b->weight;
}

static enum err_code bins_of(struct arena *a, const struct workload_length *l, const double *edge, size_t n,
                             struct bin *out, double values[STEADY_QUANTILES], struct err *e)
{
    double *sorted = NULL;
    if (l->kind == WORKLOAD_EMPIRICAL) {
        sorted = arena_array(a, l->list_n, sizeof *sorted);
        if (!sorted) return err_nomem(e);
        for (size_t i = 0; i < l->list_n; i++) sorted[i] = l->list[i];
        qsort(sorted, l->list_n, sizeof *sorted, by_value);
    }
    for (size_t i = 0; i < STEADY_QUANTILES; i++) {
        double part;
        values[i] = quantile(l, sorted, steady_quantile(i, &part));
    }
    for (size_t k = 0; k < n; k++) {
        out[k] = (struct bin){0};
        for (int i = 0; i < INSIDE; i++) { /* the last bin by halves of what is left, so that a tail is seen */
            const double at = ((double)i + .5) / INSIDE, tail = at * at * at;
            const double u = k + 1 < n ? edge[k] + at * (edge[k + 1] - edge[k]) : 1 - (1 - edge[k]) * tail;
            const double part = k + 1 < n ? 1 : 3 * at * at;
            bin_add(&out[k], quantile(l, sorted, u), part);
        }
        const double scale = (edge[k + 1] - edge[k]) / out[k].weight;
        bin_end(&out[k]);
        out[k].weight *= scale;
        out[k].ones *= scale;
        out[k].inverse *= scale;
    }
    return ERR_OK;
}

/* ---- nodes ---- */

static bool one_value(const struct workload_length *l) { return l->kind == WORKLOAD_FIXED; }

static enum err_code check_hits(double hit_frac, struct err *e)
{
    if (!(hit_frac >= 0 && hit_frac < 1)) return err_set(e, ERR_RANGE, "prefixes found in the cache are in [0, 1)");
    return ERR_OK;
}

enum err_code steady_lengths_of(struct arena *a, const struct workload_length *prompt,
                                const struct workload_length *output, double hit_frac, struct steady_lengths *out,
                                struct err *e)
{
    static const double WHOLE[] = {0, 1};
    struct bin p[PROMPT_BINS], o[OUTPUT_BINS];
    struct steady_lengths l = {.n = 0};
    const size_t pn = one_value(prompt) ? 1 : PROMPT_BINS, on = one_value(output) ? 1 : OUTPUT_BINS;
    TRY(check_hits(hit_frac, e));
    TRY(bins_of(a, prompt, pn == 1 ? WHOLE : PROMPT_EDGE, pn, p, l.prompt_at, e));
    TRY(bins_of(a, output, on == 1 ? WHOLE : OUTPUT_EDGE, on, o, l.output_at, e));
    struct steady_node *node = arena_array(a, pn * on, sizeof *node);
    if (!node) return err_nomem(e);
    l.node = node;
    l.n = pn * on;
    const double computed = 1 - hit_frac;
    for (size_t i = 0; i < pn; i++) {
        const double own = fmax(p[i].mean * computed, 1);
        for (size_t j = 0; j < on; j++)
            node[i * on + j] = (struct steady_node){own, p[i].mean - own, o[j].mean, p[i].weight * o[j].weight, 0};
        l.prompt_tokens += p[i].weight * own;
        l.cached_tokens += p[i].weight * (p[i].mean - own);
        l.prompt_square += p[i].weight * fmax(p[i].square * computed * computed, 1);
    }
    for (size_t j = 0; j < on; j++) {
        l.output_tokens += o[j].weight * o[j].mean;
        l.steps += o[j].weight * (o[j].mean - 1);
        l.steps_square += o[j].weight * o[j].less_square;
        l.single_frac += o[j].ones;
        l.inverse += o[j].inverse;
    }
    l.inverse = l.single_frac < 1 ? l.inverse / (1 - l.single_frac) : (double)NAN;
    l.longest_tokens = p[pn - 1].mean + o[on - 1].mean;
    *out = l;
    return ERR_OK;
}

/* ---- of requests ---- */

struct pair {
    double prompt, cached, output;
};

static int by_prompt(const void *x, const void *y)
{
    const struct pair *p = x, *q = y;
    return (p->prompt > q->prompt) - (p->prompt < q->prompt);
}

static int by_output(const void *x, const void *y)
{
    const struct pair *p = x, *q = y;
    return (p->output > q->output) - (p->output < q->output);
}

static void add_moments(struct steady_lengths *l, const struct pair *v, size_t n)
{
    double several = 0;
    for (size_t i = 0; i < n; i++) {
        const double part = 1 / (double)n, steps = v[i].output - 1;
        l->prompt_tokens += part * v[i].prompt;
        l->prompt_square += part * v[i].prompt * v[i].prompt;
        l->cached_tokens += part * v[i].cached;
        l->output_tokens += part * v[i].output;
        l->steps += part * steps;
        l->steps_square += part * steps * steps;
        l->longest_tokens = fmax(l->longest_tokens, v[i].prompt + v[i].cached + v[i].output);
        if (steps > 0) {
            l->inverse += part / steps;
            several += part;
        }
    }
    l->single_frac = 1 - several;
    l->inverse = several > 0 ? l->inverse / several : (double)NAN;
}

/* Sorted by prompt: each bin's prompts are one, its outputs some. Nodes; their number is returned. */
static size_t make_nodes(struct steady_node *node, struct pair *v, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < PROMPT_BINS; i++) {
        const size_t from = (size_t)(PROMPT_EDGE[i] * (double)n), to = (size_t)(PROMPT_EDGE[i + 1] * (double)n);
        double prompt = 0;
        if (from == to) continue;
        qsort(v + from, to - from, sizeof *v, by_output);
        for (size_t q = from; q < to; q++) prompt += v[q].prompt / (double)(to - from);
        for (size_t j = 0; j < OUTPUT_BINS; j++) {
            const size_t low = from + (size_t)(OUTPUT_EDGE[j] * (double)(to - from)),
                         high = from + (size_t)(OUTPUT_EDGE[j + 1] * (double)(to - from));
            if (low == high) continue;
            struct steady_node x = {prompt, 0, 0, (double)(high - low) / (double)n, 0};
            for (size_t q = low; q < high; q++) {
                x.cached_tokens += v[q].cached / (double)(high - low);
                x.output_tokens += v[q].output / (double)(high - low);
            }
            node[k++] = x;
        }
    }
    return k;
}

/* Quantiles of prompts or of outputs; scratch: n numbers. */
static void find_quantiles(double *scratch, size_t n, double at[STEADY_QUANTILES])
{
    qsort(scratch, n, sizeof *scratch, by_value);
    for (size_t i = 0; i < STEADY_QUANTILES; i++) {
        double part;
        at[i] = scratch[(size_t)(steady_quantile(i, &part) * (double)n)];
    }
}

enum err_code steady_lengths_of_work(struct arena *a, const struct workload *w, double hit_frac,
                                     struct steady_lengths *out, struct err *e)
{
    TRY(check_hits(hit_frac, e));
    if (w->n == 0) return err_set(e, ERR_RANGE, "a workload of no request");
    if (w->samples > 1)
        return err_set(e, ERR_RANGE, "a steady state is described of one answer to a prompt, not of several samples");
    struct steady_node *node = arena_array(a, PROMPT_BINS * OUTPUT_BINS, sizeof *node);
    struct pair *v = malloc(w->n * sizeof *v);
    double *all = malloc(w->n * sizeof *all);
    if (!node || !v || !all) {
        free(v);
        free(all);
        return err_nomem(e);
    }
    for (size_t i = 0; i < w->n; i++) {
        const double prompt = w->request[i].prompt_tokens, own = fmax(prompt * (1 - hit_frac), 1);
        v[i] = (struct pair){own, prompt - own, w->request[i].output_tokens};
    }
    struct steady_lengths l = {.node = node};
    add_moments(&l, v, w->n);
    for (size_t i = 0; i < w->n; i++) all[i] = v[i].prompt + v[i].cached;
    find_quantiles(all, w->n, l.prompt_at);
    for (size_t i = 0; i < w->n; i++) all[i] = v[i].output;
    find_quantiles(all, w->n, l.output_at);
    free(all);
    qsort(v, w->n, sizeof *v, by_prompt);
    l.n = make_nodes(node, v, w->n);
    free(v);
    *out = l;
    return ERR_OK;
}
