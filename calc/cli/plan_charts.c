#include "calc/cli/plan_charts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *curve_name(struct arena *a, const struct plan_case *c, const struct planner_plan *x)
{
    const struct planner_format *f = &c->format[x->format];
    struct layout one = x->layout;
    one.replicas = 1;
    char kind[64] = "";
    if (x->gamma > 0) (void)snprintf(kind, sizeof kind, ", %lld drafted", (long long)plan_drafted(c, x));
    if (x->prefill > 0)
        (void)snprintf(kind, sizeof kind, ", %lld prefill %lld decode", (long long)x->prefill,
                       (long long)(x->layout.replicas - x->prefill));
    const char *layout = plan_layout_words(a, &one);
    return layout ? arena_printf(a, "%s %s%s%s%s%s%s", c->device[x->device].hw->key, layout,
                                 f->weights ? ", weights " : "", f->weights ? f->weights : "", f->kv ? ", KV " : "",
                                 f->kv ? f->kv : "", kind)
                  : NULL;
}

/* Rates from a fiftieth of saturation to just below it, closer together there. */
static double part_of(size_t i)
{
    const double u = (double)(i + 1) / PLAN_CURVE_POINTS;
    return .995 * (1 - (1 - u) * (1 - u) * (1 - .02) - .02 * (1 - u));
}

static enum err_code add(struct arena *a, const struct plan_case *c, const struct planner_plan *x,
                         struct plan_curves *out, struct err *e)
{
    struct plan_curve *v = &out->curve[out->n];
    struct planner_headroom most;
    double rate[PLAN_CURVE_POINTS];
    if (out->n == PLAN_CURVES_MAX || !(x->point.saturation_per_s > 0)) return ERR_OK;
    v->plan = x;
    v->name = curve_name(a, c, x);
    if (!v->name) return err_nomem(e);
    v->copy_gpus = (double)x->gpus / (double)x->layout.replicas;
    for (size_t i = 0; i < PLAN_CURVE_POINTS; i++) rate[i] = part_of(i) * x->point.saturation_per_s;
    TRY(planner_sweep(a, &c->request, x, rate, PLAN_CURVE_POINTS, v->at, e));
    v->most_per_s = 0;
    if (x->verdict == PLANNER_MEETS) {
        TRY(planner_headroom(a, &c->request, x, &most, e));
        v->most_per_s = most.rate_per_s / (double)x->layout.replicas;
    } else {
        for (size_t i = 0; i < PLAN_CURVE_POINTS; i++)
            if (v->at[i].verdict == PLANNER_MEETS) v->most_per_s = rate[i];
    }
    out->n++;
    return ERR_OK;
}

enum err_code plan_curves_of(struct arena *a, const struct plan_case *c, struct plan_curves *out, struct err *e)
{
    static const enum planner_verdict LATE[] = {PLANNER_LATE_TPOT, PLANNER_LATE_TTFT};
    out->n = 0;
    out->misses = c->result.best_n == 0;
    if (c->request.aim == PLANNER_JOB) return ERR_OK;
    for (size_t i = 0; i < c->result.best_n; i++) TRY(add(a, c, &c->result.best[i], out, e));
    for (size_t k = 0; k < 2 && out->misses; k++)
        for (size_t d = 0; d < c->request.devices_n; d++)
            if (c->result.tally[d][LATE[k]].n) TRY(add(a, c, &c->result.tally[d][LATE[k]].nearest, out, e));
    return ERR_OK;
}

/* -- charts -- */

/* What is far beyond a promise is of no use, and would take the room of what is near it. */
static double shown(double value_s, double promised_s)
{
    const double far = 2.5;
    return value_s > far * promised_s ? (double)NAN : value_s;
}

enum err_code plan_frontier_charts(struct arena *a, const struct plan_case *c, const struct plan_curves *of,
                                   struct chart out[2], struct err *e)
{
    const struct planner_request *q = &c->request;
    const double none = (double)NAN, ms = 1e3; /* not a unit */
    if (of->n == 0) return err_set(e, ERR_NO, "nothing to draw: no plan has a steady state");
    for (size_t k = 0; k < 2; k++)
        out[k] = (struct chart){.title = k ? "time to first token" : "time per output token",
                                .y_title = "tokens/s out of a GPU",
                                .log_x = true,
                                .n = of->n,
                                .x_limit = (k ? q->ttft.s : q->tpot.s) * ms,
                                .x_mark = none,
                                .y_mark = none,
                                .y_most = none};
    out[0].x_title = arena_printf(a, "TPOT %s, ms", plan_part(&q->tpot));
    out[1].x_title = arena_printf(a, "TTFT %s, ms", plan_part(&q->ttft));
    for (size_t i = 0; i < of->n; i++) {
        const struct plan_curve *v = &of->curve[i];
        double *x = arena_array(a, 3 * PLAN_CURVE_POINTS, sizeof *x);
        bool *kept = arena_array(a, PLAN_CURVE_POINTS, sizeof *kept);
        if (!x || !kept || !out[0].x_title || !out[1].x_title) return err_nomem(e);
        double *ttft = x + PLAN_CURVE_POINTS, *y = x + 2 * PLAN_CURVE_POINTS;
        for (size_t p = 0; p < PLAN_CURVE_POINTS; p++) {
            const struct planner_plan *at = &v->at[p];
            const bool steady = at->verdict != PLANNER_SATURATED && at->point.tpot_s > 0;
            x[p] = steady ? shown(at->point.tpot_s, q->tpot.s) * ms : none;
            ttft[p] = steady ? shown(at->point.ttft_s, q->ttft.s) * ms : none;
            y[p] = steady ? at->rate_per_s * q->traffic.output_tokens / v->copy_gpus : none;
            kept[p] = at->verdict == PLANNER_MEETS;
        }
        out[0].series[i] = (struct chart_series){v->name, x, y, kept, PLAN_CURVE_POINTS};
        out[1].series[i] = (struct chart_series){v->name, ttft, y, kept, PLAN_CURVE_POINTS};
    }
    return ERR_OK;
}

int64_t plan_copies_at(const struct plan_case *c, const struct plan_curve *of, double rate_per_s)
{
    if (!(of->most_per_s > 0)) return 0;
    const double copies = ceil(rate_per_s / of->most_per_s * (1 - 1e-9));
    return copies * of->copy_gpus > (double)c->device[of->plan->device].most ? 0 : (int64_t)fmax(copies, 1);
}

enum err_code plan_cost_chart(struct arena *a, const struct plan_case *c, const struct plan_curves *of,
                              struct chart *out, struct err *e)
{
    enum { COPIES_MOST = 64 };
    const double none = (double)NAN, asked = c->request.traffic.rate_per_s, most = 3 * asked;
    bool priced = true;
    if (of->n == 0) return err_set(e, ERR_NO, "nothing to draw: no plan has a steady state");
    for (size_t i = 0; i < of->n; i++)
        if (isnan(c->device[of->curve[i].plan->device].price.usd_per_h)) priced = false;
    *out = (struct chart){.title = priced ? "dollars an hour" : "GPUs (not every price is known)",
                          .x_title = "requests a second",
                          .y_title = priced ? "$/h" : "GPUs",
                          .n = of->n,
                          .x_limit = none,
                          .x_mark = asked,
                          .x_mark_name = "asked",
                          .y_mark = none,
                          .y_most = none};
    for (size_t i = 0; i < of->n; i++) {
        const struct plan_curve *v = &of->curve[i];
        double *x = arena_array(a, 4 * COPIES_MOST, sizeof *x), *y = x ? x + 2 * COPIES_MOST : NULL;
        bool *corners = arena_array(a, 2 * COPIES_MOST, sizeof *corners); /* without markers: all false */
        const double each = v->copy_gpus * (priced ? c->device[v->plan->device].price.usd_per_h : 1);
        size_t n = 0;
        if (!x || !corners) return err_nomem(e);
        for (double k = 1; k <= COPIES_MOST && v->most_per_s > 0; k++) {
            const double from = (k - 1) * v->most_per_s, to = k * v->most_per_s;
            if (from >= most || k * v->copy_gpus > (double)c->device[v->plan->device].most) break;
            x[n] = from;
            y[n++] = k * each;
            x[n] = fmin(to, most);
            y[n++] = k * each;
        }
        out->series[i] = (struct chart_series){v->name, x, y, corners, n};
    }
    return ERR_OK;
}

enum err_code plan_plot(struct arena *a, const struct plan_case *c, bool cost, const char *output, struct err *e)
{
    struct plan_curves *of = arena_alloc(a, sizeof *of);
    struct chart chart[2];
    if (!of) return err_nomem(e);
    if (c->request.aim == PLANNER_JOB)
        return err_set(e, ERR_USAGE, "--plot shows latency and cost against a rate: not of a --job");
    TRY(plan_curves_of(a, c, of, e));
    TRY(cost ? plan_cost_chart(a, c, of, chart, e) : plan_frontier_charts(a, c, of, chart, e));
    const char *title = arena_printf(a, cost ? "%s: cost against rate" : "%s: latency against throughput", c->model);
    const char *times =
        c->request.server
            ? arena_printf(a, "steps of %s's server%s", c->request.server->name,
                           c->request.p90 ? ", at P90 of what was published" : "")
            : arena_printf(a, "times %s%s",
                           c->request.fidelity == PLANNER_CALIBRATED ? "calibrated" : "floors, not a promise",
                           c->request.p90 ? ", P90 of their band" : "");
    if (!times) return err_nomem(e);
    const char *subtitle = arena_printf(a, "%.4g requests/s asked; %s; %s", c->request.traffic.rate_per_s, times,
                                        cost ? "a step is a copy more" : "markers: every promise is kept");
    if (!title || !subtitle) return err_nomem(e);
    return chart_render(a, chart, cost ? 1 : 2, title, subtitle, output, e);
}
