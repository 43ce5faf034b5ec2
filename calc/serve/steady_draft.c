/* steady_draft -- drafts in a steady state: what they take of a step, and what a step makes of an answer; of
 * steady_parts.h. */
#include <math.h>

#include "calc/serve/steady_parts.h"

double steady_draft_s(const struct steady_times *t, double n, double x)
{
    double took_s = 0;
    if (!t->draft) return 0;
    const struct simulate_draft *d = t->draft;
    if (n > 0) took_s = speculate_draft_s(d->of, d->gamma, n, floor(t->context_tokens - t->rows + 1));
    if (x > 0 && d->prompts) { /* pieces together, each as long as the mean prompt or all there is */
        double prompt = 0;
        for (size_t i = 0; i < t->groups; i++) prompt += t->group[i].weight * t->group[i].tokens;
        const double B = fmax(1, x / prompt), T = fmax(1, ceil(x / B)), one = 1;
        double prefill_s = 0, *column[STEP_VALUES_N] = {0};
        column[STEP_prefill_s] = &prefill_s;
        step_eval(d->of->draft, 1, &B, &T, &T, &one, column);
        took_s += prefill_s;
    }
    return took_s;
}

/* Of nodes with several tokens, as their means have it. */
static double mean_inverse(const struct steady_lengths *l, double several)
{
    double sum = 0;
    for (size_t i = 0; i < l->n; i++)
        if (l->node[i].output_tokens > 1) sum += l->node[i].weight / (l->node[i].output_tokens - 1);
    return sum / several;
}

enum err_code steady_lengths_judged(struct arena *a, const struct steady_lengths *l, double k, double square,
                                    struct steady_lengths *out, struct err *e)
{
    struct steady_node *node = arena_array(a, l->n, sizeof *node);
    if (!node) return err_nomem(e);
    if (!(k >= 1) || !(square >= k * k * (1 - 1e-9)))
        return err_set(e, ERR_RANGE, "a step makes no %g tokens on average, of mean square %g", k, square);
    const double over = (square / k - 1) / 2; /* tokens that the last step makes too many */
    double several = 0, inverse = 0, stride = 0;
    *out = *l;
    out->node = node;
    out->steps = out->output_tokens = 0;
    for (size_t i = 0; i < l->n; i++) {
        const double m = l->node[i].output_tokens - 1, w = l->node[i].weight;
        node[i] = l->node[i];
        out->output_tokens += w;
        if (!(m > 0)) continue;
        const double steps = fmax((m + over) / k, fmin(m, 1));
        node[i].output_tokens = 1 + steps;
        node[i].stride = m / steps;
        out->output_tokens += w * steps;
        out->steps += w * steps;
        several += w;
        inverse += w / steps;
        stride += w * steps / m;
    }
    out->drafted.answer_tokens = l->output_tokens;
    out->drafted.step_cv2 = square / (k * k) - 1;
    if (!(several > 0)) return ERR_OK;
    /* within nodes answers vary as before; and the steps of each, of variance step_cv2 * steps */
    const double scale = out->steps / l->steps;
    out->steps_square = l->steps_square * scale * scale + out->drafted.step_cv2 * out->steps;
    out->inverse = l->inverse * (inverse / several) / mean_inverse(l, several);
    out->drafted.inverse = stride / several;
    return ERR_OK;
}
