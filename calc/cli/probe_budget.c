#include "calc/cli/probe_budget.h"

#include <math.h>
#include <string.h>

#include "calc/base/clock.h"
#include "calc/base/units.h"

double budget_left_s(const struct budget *b) { return b->total_s - (clock_now_s() - b->began_s); }

enum err_code budget_read(const struct work *w, double usual_s, struct budget *out, struct err *e)
{
    *out = (struct budget){.total_s = usual_s, .began_s = clock_now_s()};
    return work_read_time(w->v, "budget", 1, 1e6, &out->total_s, e);
}

enum err_code budget_read_run(const struct work *w, struct budget *out, struct err *e)
{
    static const char *const PICKS[] = {"all", "kernel", "shape", "model"};
    bool picked = false;
    for (size_t i = 0; i < sizeof PICKS / sizeof PICKS[0]; i++) picked = picked || option_given(w->v, PICKS[i]);
    if (option_given(w->v, "all") && option_given(w->v, "quick"))
        return err_set(e, ERR_USAGE, "--all: --quick says few");
    return budget_read(w, picked ? (double)INFINITY : option_given(w->v, "quick") ? 60 : 120, out, e);
}

void budget_end_ceilings(struct work *w, const struct budget *b, double part)
{
    if (!isinf(b->total_s)) w->run.set.ceilings_until_s = b->began_s + part * b->total_s;
}

double budget_until_s(const struct budget *b, bool first)
{
    static const double FIRST_S = 10;
    if (isinf(b->total_s)) return 0;
    return b->began_s + b->total_s + (first ? fmin(FIRST_S, b->total_s) : 0);
}

void budget_share(struct work *w, const struct budget *b, size_t results_n, double aside_s)
{
    const double part_s = budget_left_s(b) / (double)results_n, free_s = aside_s > 0 ? part_s - aside_s : 0.5 * part_s;
    w->run.set.deadline_s = fmin(b->deadline_s, fmax(free_s, BUDGET_LEAST_S));
}

double budget_shape_s(const struct work *w, const char *state)
{
    const double around_s = 4 * fmin(w->run.set.deadline_s, w->run.set.ceiling_s);
    return (strcmp(state, "both") == 0 ? 2 : 1) * (w->run.set.deadline_s + around_s);
}

enum err_code budget_say_untried(struct work *w, struct err *e)
{
    const size_t n = w->run.untried;
    if (!n) return ERR_OK;
    return work_note(
        w,
        arena_printf(w->a,
                     "%zu code%s that measure%s ceilings %s left out for time, so that ceilings may be too "
                     "low: a longer --budget.",
                     n, n == 1 ? "" : "s", n == 1 ? "s" : "", n == 1 ? "was" : "were"),
        e);
}

enum err_code budget_say_left_out(struct work *w, const struct plan *plan, double ceilings_s, struct err *e)
{
    char took[UNITS_TEXT_MAX];
    const size_t n = plan->n - w->done;
    if (w->run.stopped && !w->run.late)
        return work_note(
            w,
            arena_printf(w->a, "stopped by a signal: %zu of %zu measurements (a shape by a code) were not measured.", n,
                         plan->n),
            e);
    if (!n) return ERR_OK;
    return work_note(w,
                     arena_printf(w->a,
                                  "%zu of %zu measurements (a shape by a code) were left out for time: --budget 10min "
                                  "measures more, --all all of "
                                  "them, --kernel NAME those of one kernel; the ceilings alone took %s.",
                                  n, plan->n, units_format_time(took, ceilings_s)),
                     e);
}
