/* planner_held -- limits of sequences that are what the cache holds. MODEL.md "Planner", *Limits*. */
#include <math.h>

#include "calc/serve/planner_parts.h"

/* The most sequences of so many bytes each that the cache holds beside them: the engine reserves more as they are more,
 * so that what `most` leaves is too little, what that many leave is too much, and one more turn is enough. */
static enum err_code held(struct planner *p, const struct planner_unit *u, int64_t step_tokens, double bytes,
                          int64_t most, int64_t *out, struct err *e)
{
    struct planner_plan x;
    double n = (double)most;
    *out = most;
    for (int turn = 0; turn < 3; turn++) {
        TRY(planner_memory(p, u, step_tokens, (int64_t)n, &x, e));
        const double fit = fmax(floor(x.pool_bytes / bytes), 1);
        if (turn == 0 && fit >= n) return ERR_OK;
        n = turn < 2 ? fmin(fit, (double)most) : fmin(n, fit);
    }
    *out = (int64_t)n;
    return ERR_OK;
}

enum err_code planner_held(struct planner *p, const struct planner_unit *u, int64_t step_tokens,
                           struct planner_held *out, struct err *e)
{
    const struct planner_request *q = p->q;
    const double bytes[PLANNER_HELD_MAX] = {u->ended_bytes, u->sequence_bytes};
    const int64_t judged = planner_judged(q, u->gamma);
    int64_t least = INT64_MAX, most = 0;
    out->n = 0;
    for (size_t i = 0; i < q->seqs_n; i++) {
        if (q->seqs[i] > step_tokens / judged) continue;
        least = q->seqs[i] < least ? q->seqs[i] : least;
        most = q->seqs[i] > most ? q->seqs[i] : most;
    }
    if (!q->held_seqs || most == 0) return ERR_OK;
    for (size_t k = 0; k < PLANNER_HELD_MAX; k++) {
        int64_t n;
        if (!(bytes[k] > 0)) continue;
        TRY(held(p, u, step_tokens, bytes[k], most, &n, e));
        bool is = n <= least || n >= most || (out->n > 0 && out->seqs[out->n - 1] == n);
        for (size_t i = 0; i < q->seqs_n && !is; i++) is = q->seqs[i] == n;
        if (!is) out->seqs[out->n++] = n;
    }
    return ERR_OK;
}
