/* probe_measure -- `ridge probe run`. */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/clock.h"
#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/model_shapes.h"
#include "calc/cli/plot.h"
#include "calc/cli/probe_budget.h"
#include "calc/cli/probe_refused.h"
#include "calc/cli/probe_rows.h"
#include "calc/cli/probe_turns.h"
#include "calc/cli/probe_work.h"

enum { COLUMNS_MAX = 64 };

static enum err_code say_ceilings(struct work *w, struct err *e)
{
    const struct run_ceilings *c = &w->run.ceilings;
    char peak[UNITS_TEXT_MAX], rate[UNITS_TEXT_MAX], ridge[UNITS_TEXT_MAX];
    for (size_t i = 0; i < c->peaks_n; i++) {
        if (isnan(c->peak[i].per_s)) continue;
        (void)units_format(peak, UNITS_FLOPS_PER_S, c->peak[i].per_s);
        const char *unit = c->peak[i].unit, *name = work_who(w);
        const char *line = isnan(c->read.per_s)
                               ? arena_printf(w->a, "%s: %s peak %s.", name, unit, peak)
                               : arena_printf(w->a, "%s: %s peak %s, memory %s, ridge %s flops/byte.", name, unit, peak,
                                              units_format(rate, UNITS_BYTES_PER_S, c->read.per_s),
                                              units_format_plain(ridge, c->peak[i].per_s / c->read.per_s));
        TRY(work_note(w, line, e));
    }
    if (isnan(c->read.per_s) && !w->run.set.hot)
        return work_note(w,
                         arena_printf(w->a, "the bandwidth of memory, and so the ridge, could not be measured: %s.",
                                      c->read.why                      ? c->read.why
                                      : w->run.stopped && !w->run.late ? "a signal stopped it"
                                      : w->run.late                    ? "no time was left for it"
                                                                       : "no kernel measures it"),
                         e);
    return ERR_OK;
}

/* A note that is said once, however many rows it is of. */
static enum err_code note_once(struct work *w, const char *text, struct err *e)
{
    for (size_t i = 0; text && i < w->notes_n; i++)
        if (strcmp(w->notes[i], text) == 0) return ERR_OK;
    return work_note(w, text, e);
}

/* Which ceiling a measured row lacks. */
static enum err_code say_unpredicted(struct work *w, const struct result *r, const struct probe_row *row, struct err *e)
{
    const bool peak = r->flops > 0 && isnan(row->peak_flops_per_s);
    const bool paged = !peak && r->piece_bytes > 0 && !isnan(row->read_bytes_per_s);
    if (!peak && !paged && !isnan(row->read_bytes_per_s) && isnan(row->moved_bytes_per_s) && r->cold)
        return note_once(w,
                         "rows without a prediction: they write, and the rate of reading and writing memory was not "
                         "measured: a longer --budget.",
                         e);
    return note_once(w,
                     arena_printf(w->a, "rows without a prediction: the %s%s could not be measured around them.",
                                  peak    ? "peak of "
                                  : paged ? "rate of reading pages in no order"
                                          : "bandwidth",
                                  peak ? r->unit : ""),
                     e);
}

/* Beside the bytes that a kernel must move those that memory moved, or once why they are not known. */
static enum err_code say_dram(struct work *w, const struct result *r, const struct probe_row *row, struct err *e)
{
    char read[UNITS_TEXT_MAX], written[UNITS_TEXT_MAX], counted[UNITS_TEXT_MAX];
    if (!isnan(row->dram_read_bytes))
        return work_note(w,
                         arena_printf(w->a, "%s %s %s %s %s: memory read %s and wrote %s, %.3f of the %s counted.",
                                      row->kernel, row->variant, row->dtype, row->shape, row->state,
                                      units_format(read, UNITS_BYTES, row->dram_read_bytes),
                                      units_format(written, UNITS_BYTES, row->dram_write_bytes), row->dram_ratio,
                                      units_format(counted, UNITS_BYTES, r->read_bytes + r->written_bytes)),
                         e);
    if (!r->dram_reason || !*r->dram_reason) return ERR_OK;
    const char *text = arena_printf(w->a, "bytes of memory are not known: %s.", r->dram_reason);
    return note_once(w, text, e);
}

/* Fills a row, which the progress says; later: a noisy one is said at the end. */
static enum err_code keep_row(struct work *w, const struct result *r, struct probe_row *row, bool later, struct err *e)
{
    char measured[UNITS_TEXT_MAX];
    TRY(probe_row_fill(w->a, r, row, e));
    TRY(say_dram(w, r, row, e));
    const char *call =
        arena_printf(w->a, "%s %s %s %s %s", row->kernel, row->variant, row->dtype, row->shape, row->state);
    if (!call) return err_nomem(e);
    const char *part = isnan(row->roofline_frac)
                           ? ""
                           : arena_printf(w->a, " (%.1f %% of the roofline%s)", 100 * row->roofline_frac,
                                          row->over ? ", faster than its ceilings" : "");
    const char *line = isnan(row->measured_s)
                           ? arena_printf(w->a, "%s: %s: %s", call, row->outcome, r->reason)
                           : arena_printf(w->a, "%s: %s%s", call, units_format_time(measured, row->measured_s), part);
    if (!part || !line) return err_nomem(e);
    progress_line(&w->bar, line);
    if (r->outcome == RESULT_NOISY && later) return ERR_OK;
    if (r->outcome != RESULT_MEASURED) return work_note(w, arena_printf(w->a, "%s.", line), e);
    if (row->over)
        return work_note(
            w,
            arena_printf(w->a,
                         "%s: %.1f %% of the roofline: faster than the ceilings around it, by no more than "
                         "the 3 %% that they are known to.",
                         call, 100 * row->roofline_frac),
            e);
    return isnan(row->predicted_s) ? say_unpredicted(w, r, row, e) : ERR_OK;
}

/* Two rows a job, cold and hot, in the order of the plan before it was spread; a row without a kernel is none. */
static size_t close_ranks(struct probe_row *rows, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (rows[i].kernel) rows[kept++] = rows[i];
    return kept;
}

/* The outcome is shown, whatever there is room for, where it is not the same for all. */
static void show_outcomes(struct column *columns, size_t columns_n, const struct probe_row *rows, size_t n)
{
    bool all = true;
    for (size_t i = 0; i < n; i++) all = all && strcmp(rows[i].outcome, result_outcome_name(RESULT_MEASURED)) == 0;
    for (size_t i = 0; i < columns_n && !all; i++)
        if (strcmp(columns[i].key, "outcome") == 0) columns[i].flags &= ~(unsigned)COLUMN_SPARE;
}

/* The run of a plan. */
struct course {
    struct work *w;
    const struct plan *plan;
    const struct budget *b;
    struct probe_row *rows;
    struct turns turns;
    bool ends, hot; /* it has a budget; hot results too */
};

/* Seconds that the samples of a result took. */
static double sampling_s(const struct result *r)
{
    const double n = (double)(r->summary.n + r->discards_n);
    return n > 0 ? n * (double)r->calls * r->summary.median_s : 0;
}

/* Whether the operands of a job may stay in the caches, as its cold result says. */
static enum err_code may_be_hot(struct course *c, const struct plan_job *job, const struct result *r, bool *out,
                                struct err *e)
{
    const char *why = NULL;
    *out = (r->outcome == RESULT_MEASURED || r->outcome == RESULT_NOISY) &&
           r->footprint_bytes <= c->w->run.device.cache_bytes[RUN_LEVELS - 1];
    if (r->outcome != RESULT_REFUSED || !probe_wants_memory(r->reason)) return ERR_OK;
    TRY(run_refuses(&c->w->run, job, false, &why, e)); /* the cold copies may be too many, one is not */
    *out = !why;
    return ERR_OK;
}

/* One result of job i; a second one takes the place of a noisy one where it has a number. */
static enum err_code run_turn(struct course *c, size_t i, int pass, struct err *e)
{
    struct work *w = c->w;
    const struct plan_job *job = &c->plan->jobs[i];
    struct turn *t = &c->turns.of[i];
    const bool again = pass == TURNS_AGAIN, cold = again ? t->cold_again : pass == TURNS_COLD;
    struct result r = {.outcome = RESULT_REFUSED};
    struct probe_row row = {.kernel = NULL};
    progress_show(&w->bar, w->done, w->total);
    w->run.set.until_s = budget_until_s(c->b, w->done == 0);
    budget_share(w, c->b, turns_due(&c->turns, pass), turns_aside_s(&c->turns, i, cold));
    t->due[pass] = false;
    const double began_s = clock_now_s();
    TRY(run_job(&w->run, job, cold, &r, e));
    if (w->run.stopped) return ERR_OK;
    turns_learn(&c->turns, i, cold, clock_now_s() - began_s - sampling_s(&r));
    TRY(keep_row(w, &r, &row, c->ends, e));
    if (!again || !isnan(row.measured_s)) c->rows[2 * job->nth + !cold] = row;
    w->done += !t->begun;
    t->begun = true;
    if (c->ends && !again && r.outcome == RESULT_NOISY && !t->due[TURNS_AGAIN]) {
        t->due[TURNS_AGAIN] = true;
        t->cold_again = cold;
    }
    return cold && c->hot && !again ? may_be_hot(c, job, &r, &t->due[TURNS_HOT], e) : ERR_OK;
}

/* What calls of the jobs move, so far as that is said in a hundredth of the time. */
static void ask_bytes(struct course *c)
{
    const double until_s = clock_now_s() + 0.01 * budget_left_s(c->b);
    for (size_t i = 0; i < c->plan->n && !c->w->run.stopped && clock_now_s() < until_s && c->w->run.session; i++)
        c->turns.of[i].bytes = run_counts(&c->w->run, &c->plan->jobs[i]).bytes;
}

/* Jobs as long as there is time, the first in any case; a hot result where the cold one says that its operands fit the
 * last cache. With a budget all are cold before any is hot, and what was noisy is measured once more behind them. */
static enum err_code run_jobs(struct work *w, const struct plan *plan, const struct budget *b, struct probe_row *rows,
                              struct err *e)
{
    const char *state = option_get(w->v, "state");
    struct course c = {w, plan, b, rows, .ends = !isinf(b->total_s), .hot = strcmp(state, "cold") != 0};
    TRY(turns_open(w->a, plan->n, w->run.device.cache_bytes[RUN_LEVELS - 1], &c.turns, e));
    for (size_t i = 0; i < plan->n; i++) {
        const bool never_cold = strcmp(plan->jobs[i].kernel->ceiling, "launch") == 0; /* without operands */
        const bool cold = strcmp(state, "hot") != 0 && !(c.hot && never_cold);
        c.turns.of[i].due[cold ? TURNS_COLD : TURNS_HOT] = true;
    }
    if (c.ends && budget_left_s(b) > 0) ask_bytes(&c);
    w->done = 0;
    for (size_t i = 0; i < plan->n && !c.ends && !w->run.stopped; i++)
        for (int pass = TURNS_COLD; pass <= TURNS_HOT && !w->run.stopped; pass++)
            if (c.turns.of[i].due[pass]) TRY(run_turn(&c, i, pass, e));
    while (c.ends && !w->run.stopped) {
        const double left_s = w->done ? budget_left_s(b) : (double)INFINITY;
        int pass;
        const size_t i = turns_pick(&c.turns, left_s, b->total_s, BUDGET_LEAST_S, &pass);
        if (i == plan->n) break;
        TRY(run_turn(&c, i, pass, e));
    }
    return ERR_OK;
}

/* A note on every row that stayed noisy: with a budget it is known at the end alone. */
static enum err_code say_noisy(struct work *w, const struct probe_row *rows, size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].outcome, result_outcome_name(RESULT_NOISY)) == 0)
            TRY(work_note(w,
                          arena_printf(w->a, "%s %s %s %s %s: noisy: %s.", rows[i].kernel, rows[i].variant,
                                       rows[i].dtype, rows[i].shape, rows[i].state, rows[i].reason),
                          e));
    return ERR_OK;
}

static enum err_code run_within(struct work *w, const char *command, struct err *e)
{
    struct plan plan;
    struct budget budget;
    struct column columns[COLUMNS_MAX];
    const size_t columns_n = probe_row_columns_n < COLUMNS_MAX ? probe_row_columns_n : COLUMNS_MAX;
    struct plan_request q = {.kernels = option_get(w->v, "kernel"),
                             .variants = option_get(w->v, "variant"),
                             .dtypes = option_get(w->v, "dtype"),
                             .shape = option_get(w->v, "shape"),
                             .quick = option_given(w->v, "quick"),
                             .measures = option_given(w->v, "all")};
    const char *state = option_get(w->v, "state"), *plot = option_get(w->v, "plot");
    size_t measured = 0;
    bool noisy = false;
    if (strcmp(state, "cold") != 0 && strcmp(state, "hot") != 0 && strcmp(state, "both") != 0)
        return err_set(e, ERR_USAGE, "--state: wanted cold, hot or both");
    if (plot && strcmp(state, "hot") == 0)
        return err_set(e, ERR_USAGE, "--plot: a roofline wants the bandwidth of memory, which --state hot leaves out");
    q.all = q.variants && strcmp(q.variants, "all") == 0;
    if (q.all) q.variants = NULL;
    for (size_t i = 0; i < columns_n; i++) {
        columns[i] = probe_row_columns[i];
        if (strcmp(columns[i].key, "id") == 0) columns[i].flags |= COLUMN_SPARE; /* history shows it */
    }
    TRY(work_check_output(w, columns, columns_n, e));
    TRY(budget_read_run(w, &budget, e));
    w->run.set.hot = strcmp(state, "hot") == 0;
    w->run.set.cold = strcmp(state, "cold") == 0;
    w->run.set.dram_bytes = option_given(w->v, "dram-bytes");
    if (w->run.set.dram_bytes && !option_get(w->v, "worker") && strcmp(option_get(w->v, "device"), "cpu") == 0)
        return err_set(e, ERR_USAGE,
                       "--dram-bytes: a CPU has no counters of memory that the worker reads: --device cuda");
    w->run.set.until_s = budget_until_s(&budget, false);
    TRY(work_begin(w, command, e));
    budget.deadline_s = w->run.set.deadline_s;
    budget_end_ceilings(w, &budget, 0.5);
    if (option_get(w->v, "model")) {
        const char **left_out;
        size_t left_out_n;
        TRY(model_shapes_points(w->a, w->v, &w->run.device, &q, &left_out, &left_out_n, e));
        for (size_t i = 0; i < left_out_n; i++) TRY(work_note(w, left_out[i], e));
    }
    TRY(plan_make(w->a, &w->run.device, &q, &plan, e));
    for (size_t i = 0; i < plan.left_out_n; i++) TRY(work_note(w, arena_printf(w->a, "%s.", plan.left_out[i]), e));
    TRY(probe_check_refused(w, &plan, strcmp(state, "hot") != 0, e));
    if (plot) TRY(probe_check_plotted(w, &plan, e));
    TRY(work_open_store(w, budget_left_s(&budget), e));
    struct probe_row *rows = arena_array(w->a, 2 * plan.n, sizeof *rows);
    if (!rows) return err_nomem(e);
    if (!isinf(budget.total_s)) plan_spread(&plan);
    w->total = plan.n;
    progress_start(&w->bar, "measurements");
    w->bar.most_s = isinf(budget.total_s) ? 0 : budget.total_s;
    w->bar.each_s = budget_shape_s(w, state);
    progress_line(&w->bar, "measuring the ceilings of this machine");
    const double began_s = clock_now_s();
    enum err_code code = run_measure_ceilings(&w->run, e);
    const double ceilings_s = clock_now_s() - began_s;
    w->bar.idle_s = ceilings_s;
    if (code == ERR_OK) code = run_jobs(w, &plan, &budget, rows, e);
    const size_t n = close_ranks(rows, 2 * plan.n);
    progress_end(&w->bar);
    run_close(&w->run);
    TRY(code);
    TRY(say_ceilings(w, e));
    if (!isinf(budget.total_s)) TRY(say_noisy(w, rows, n, e));
    TRY(work_say_failed(w, e));
    TRY(budget_say_untried(w, e));
    TRY(budget_say_left_out(w, &plan, ceilings_s, e));
    TRY(work_say_stored(w, e));
    for (size_t i = 0; i < n; i++) {
        measured += isnan(rows[i].measured_s) ? 0 : 1;
        noisy = noisy || strcmp(rows[i].outcome, result_outcome_name(RESULT_NOISY)) == 0;
    }
    if (noisy)
        TRY(work_note(w,
                      arena_printf(w->a, "noisy results: a longer --deadline helps%s.",
                                   sched_getscheduler(0) == SCHED_OTHER
                                       ? ", and priority where it is allowed: chrt -f 1 ridge probe run"
                                       : ""),
                      e));
    struct err unplotted = {.code = ERR_OK};
    if (plot && measured) (void)probe_draw(w->a, &w->run, rows, n, plot, &unplotted);
    if (probe_rows_over(rows, n)) probe_show_over(columns, columns_n);
    show_outcomes(columns, columns_n, rows, n);
    if (n || !w->run.late) TRY(work_write_table(w, "ridge.probe.1", columns, columns_n, rows, n, sizeof *rows, e));
    TRY(work_all_stored(w, e));
    if (measured && unplotted.code != ERR_OK)
        return err_set(e, unplotted.code == ERR_NOMEM || unplotted.code == ERR_NO ? unplotted.code : ERR_IO,
                       "no picture: %s", unplotted.text);
    if (measured || (w->run.stopped && !w->run.late)) return ERR_OK;
    if (!(n && rows[0].reason) && w->run.crash) return err_set(e, ERR_NO, "no number: %s", w->run.crash);
    return err_set(e, probe_no_number(rows, n, option_get(w->v, "shape")), "no number: %s",
                   n && rows[0].reason ? rows[0].reason
                   : w->run.late ? (w->another ? "no shape was done when the time was over: another ridge probe is "
                                                 "measuring"
                                               : "no shape was done when the time was over: a longer --budget")
                                 : "nothing was measured");
}

enum err_code probe_run(struct arena *a, const struct option_values *v, const char *command, struct err *e)
{
    (void)a;
    return work_held(v, command, run_within, e);
}
