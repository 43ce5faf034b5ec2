/* planner_traffic -- moments and order statistics of requests. */
#include <math.h>
#include <stdlib.h>

#include "calc/serve/planner.h"

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double planner_quantile(const double *sorted, size_t n, double p)
{
    const double rank = ceil(p * (double)n);
    const size_t i = rank < 1 ? 0 : (size_t)rank - 1;
    return sorted[i < n ? i : n - 1];
}

enum err_code planner_traffic_of(struct arena *a, const struct workload *w, double rate_per_s,
                                 struct planner_traffic *out, struct err *e)
{
    double *prompts = arena_array(a, w->n, sizeof *prompts), *outputs = arena_array(a, w->n, sizeof *outputs);
    double in = 0, in_square = 0, answer = 0, attended = 0, left = 0;
    if (!prompts || !outputs) return err_nomem(e);
    if (w->n == 0) return err_set(e, ERR_USAGE, "no requests to plan for");
    if (isnan(rate_per_s) && !(w->span_s > 0))
        return err_set(e, ERR_USAGE, "the requests have no times of their own, so a plan needs a rate");
    *out = (struct planner_traffic){.n = w->n, .prompts = prompts, .outputs = outputs};
    for (size_t i = 0; i < w->n; i++) {
        const double p = (double)w->request[i].prompt_tokens, g = (double)w->request[i].output_tokens;
        const int64_t all = (int64_t)w->request[i].prompt_tokens + w->request[i].output_tokens;
        prompts[i] = p;
        outputs[i] = g;
        in += p;
        in_square += p * p;
        answer += g;
        attended += g * (p + (g + 1) / 2);
        left += g * (g + 1) / 2;
        if (all > out->longest_tokens) out->longest_tokens = all;
    }
    const double n = (double)w->n;
    qsort(prompts, w->n, sizeof *prompts, by_value);
    qsort(outputs, w->n, sizeof *outputs, by_value);
    out->rate_per_s = isnan(rate_per_s) ? workload_came_per_s(w) : rate_per_s;
    out->prompt_tokens = in / n;
    out->asked_tokens = out->prompt_tokens;
    out->output_tokens = answer / n;
    out->prompt_cv2 = fmax(0, in_square / n / (in / n * in / n) - 1);
    out->context_tokens = attended / answer;
    out->residual_tokens = left / answer;
    out->arrival_cv2 = workload_arrival_cv2(w);
    return steady_lengths_of_work(a, w, 0, &out->lengths, e);
}
