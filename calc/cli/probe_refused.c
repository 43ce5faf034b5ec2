#include "calc/cli/probe_refused.h"

#include <math.h>
#include <string.h>

bool probe_wants_memory(const char *why)
{
    return strcmp(why, "no memory") == 0 || strstr(why, " MB, of which ") != NULL;
}

enum err_code probe_check_refused(struct work *w, const struct plan *plan, bool cold, struct err *e)
{
    const char *why = NULL, *first = NULL;
    const bool both = strcmp(option_get(w->v, "state"), "both") == 0;
    if (!option_get(w->v, "shape")) return ERR_OK;
    for (size_t i = 0; i < plan->n; i++) {
        TRY(run_refuses(&w->run, &plan->jobs[i], cold, &why, e));
        if (why && both && probe_wants_memory(why)) TRY(run_refuses(&w->run, &plan->jobs[i], false, &why, e));
        if (!why) return ERR_OK;
        if (!first) first = why;
    }
    return err_set(e, ERR_RANGE, "--shape: %s", first ? first : "nothing to measure");
}

enum err_code probe_check_plotted(struct work *w, const struct plan *plan, struct err *e)
{
    for (size_t i = 0; i < plan->n; i++) {
        const double flops = run_counts(&w->run, &plan->jobs[i]).flops;
        if (isnan(flops) || flops > 0) return ERR_OK;
    }
    return err_set(e, ERR_USAGE, "--plot: a roofline has points of kernels with flops, which %s not have",
                   plan->n == 1 ? "this one does" : "these do");
}

enum err_code probe_no_number(const struct probe_row *rows, size_t n, bool shaped)
{
    bool garbage = n > 0, refused = n > 0, memory = n > 0;
    for (size_t i = 0; i < n; i++) {
        garbage = garbage && strcmp(rows[i].outcome, result_outcome_name(RESULT_GARBAGE)) == 0;
        refused = refused && strcmp(rows[i].outcome, result_outcome_name(RESULT_REFUSED)) == 0;
        memory = memory && refused && rows[i].reason && probe_wants_memory(rows[i].reason);
    }
    if (garbage) return ERR_DEVICE;
    if (memory) return ERR_NOMEM;
    return shaped && refused ? ERR_RANGE : ERR_NO;
}
