/* report_plan -- figures of the winner with how they come about, memory, command lines, runners-up, failures,
 * pictures. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/report.h"

enum { TEXT = UNITS_TEXT_MAX };

static void put_figure(struct report *r, const char *what, const char *value, const char *how, const char *numbers)
{
    report_row(r->o, 4, (const char *[]){what, value, how, numbers}, 2);
}

/* -- figures -- */

static void latencies(struct report *r)
{
    const struct planner_request *q = &r->c->request;
    const struct planner_plan *x = r->best;
    const struct planner_point *p = &x->point;
    const double copies = (double)x->layout.replicas;
    char s[TEXT], t[TEXT];
    if (q->aim == PLANNER_SERVE) {
        put_figure(r, arena_printf(r->arena, "TTFT %s, on paper", plan_part(&q->ttft)), units_format_time(s, p->ttft_s),
                   "waiting for steps and for prompts in front, then the prompt's own pieces (MODEL.md, Steady state)",
                   arena_printf(r->arena, "mean %s; a prompt alone takes %s at least",
                                units_format_time(t, p->ttft_mean_s),
                                units_format_time((char[TEXT]){0}, x->floor_ttft_s)));
        put_figure(r, arena_printf(r->arena, "TPOT %s, on paper", plan_part(&q->tpot)), units_format_time(s, p->tpot_s),
                   "mean over an answer of its steps, pieces of prompts in them; slower when more decode together",
                   arena_printf(r->arena, "mean %s; a step alone takes %s at least",
                                units_format_time(t, p->tpot_mean_s),
                                units_format_time((char[TEXT]){0}, x->floor_tpot_s)));
    }
    put_figure(
        r, "a decode step, a floor", units_format_time(s, fmax(p->compute_s, fmax(p->memory_s, p->link_s))),
        "the largest demand of the mean batch at the mean context: nothing is faster",
        arena_printf(r->arena, "compute %s, memory %s, link %s", units_format_time((char[TEXT]){0}, p->compute_s),
                     units_format_time((char[TEXT]){0}, p->memory_s), units_format_time((char[TEXT]){0}, p->link_s)));
    /* two pools: of the copies that decode */
    const double each_per_s = x->rate_per_s * copies / (copies - (double)x->prefill);
    const double later_s = (q->traffic.output_tokens - 1) * p->tpot_mean_s;
    if (!isnan(p->batch)) /* saturated on paper */
        put_figure(
            r, x->prefill > 0 ? "sequences in flight, a copy that decodes" : "sequences in flight, a copy",
            arena_printf(r->arena, "%.4g", p->batch),
            "Little: rate of a copy * time in its steps: those of the first token, without the wait for a place, and "
            "those of the others",
            arena_printf(r->arena, "%.4g/s * (%s + (%.4g - 1) * %s)", each_per_s,
                         units_format_time((char[TEXT]){0}, fmax(0, p->batch / each_per_s - later_s)),
                         q->traffic.output_tokens, units_format_time(t, p->tpot_mean_s)));
    put_figure(
        r, "load", arena_printf(r->arena, "%.1f %%", 100 * x->rate_per_s / p->saturation_per_s),
        "rate / (copies * saturation of one)",
        arena_printf(r->arena, "%.4g / (%.0f * %.4g) requests/s", q->traffic.rate_per_s, copies, p->saturation_per_s));
    if (!isnan(p->busy_frac))
        put_figure(r, "in steps", arena_printf(r->arena, "%.1f %% of the time", 100 * p->busy_frac),
                   "busy = prefill + decode, by what each takes alone",
                   arena_printf(r->arena, "%.1f %% + %.1f %%", 100 * p->prefill_frac, 100 * p->decode_frac));
}

static void money(struct report *r)
{
    const struct planner_plan *x = r->best;
    const struct planner_traffic *t = &r->c->request.traffic;
    const struct planner_point *p = &x->point;
    const double share = p->prefill_frac / (p->prefill_frac + p->decode_frac),
                 tokens = t->rate_per_s * t->output_tokens;
    char s[TEXT], price[TEXT];
    put_figure(r, "dollars an hour", plan_money(s, x->cost.usd_per_h), "GPUs * price of one",
               arena_printf(r->arena, "%lld * %s", (long long)x->gpus,
                            plan_money(price, r->c->device[x->device].price.usd_per_h)));
    if (r->c->request.aim == PLANNER_JOB) {
        put_figure(
            r, "time of the job", units_format_time(s, p->makespan_s),
            "requests at the saturation rate until the queue is empty, then the longest of the last answers",
            arena_printf(r->arena, "of it %s for the last answers", units_format_time((char[TEXT]){0}, p->tail_s)));
        return;
    }
    if (!isnan(x->cost.usd_per_mtok_in))
        put_figure(r, "per million tokens in", plan_money(s, x->cost.usd_per_mtok_in),
                   "$/h * s / (R * P * 3600) * 1e6, s the prefill's share of the busy time",
                   arena_printf(r->arena, "%s * %.3f / (%.4g * %.4g * 3600) * 1e6",
                                plan_money(price, x->cost.usd_per_h), share, t->rate_per_s, t->asked_tokens));
    if (!isnan(x->cost.usd_per_mtok_out))
        put_figure(r, "per million tokens out", plan_money(s, x->cost.usd_per_mtok_out),
                   "$/h * (1 - s) / (R * O * 3600) * 1e6",
                   arena_printf(r->arena, "%s * %.3f / (%.4g * %.4g * 3600) * 1e6",
                                plan_money(price, x->cost.usd_per_h), 1 - share, t->rate_per_s, t->output_tokens));
    put_figure(r, "tokens out a second", arena_printf(r->arena, "%.5g", tokens), "R * O",
               arena_printf(r->arena, "%.4g * %.4g; %.4g of a GPU", t->rate_per_s, t->output_tokens,
                            tokens / (double)x->gpus));
    if (!isnan(x->cost.joule_per_tok))
        put_figure(r, "energy", arena_printf(r->arena, "%.3g J a token out", x->cost.joule_per_tok),
                   "power / (R * O); power assumed: full in prefill, 0.6 in decode, 0.15 idle",
                   arena_printf(r->arena, "%s / %.5g", units_format(s, UNITS_WATTS, x->cost.watts), tokens));
}

static void memory(struct report *r)
{
    char tokens[TEXT_COUNT_MAX], seqs[TEXT_COUNT_MAX];
    static const char *const HEAD[] = {"memory", "value", "how", "with numbers"};
    const struct planner_plan *x = r->best;
    const struct planner_traffic *t = &r->c->request.traffic;
    const struct hw *hw = r->c->device[x->device].hw;
    const double fit = floor(x->pool_bytes / x->sequence_bytes);
    const char *names[3], *const WHAT[] = {"weights", "cache", "engine"};
    const double parts[] = {x->weight_bytes + x->tower_bytes, x->pool_bytes, x->reserve_bytes};
    char s[TEXT], u[TEXT];
    report_section(r->o, "memory", "Memory of a GPU");
    for (size_t i = 0; i < 3; i++) names[i] = arena_printf(r->arena, "%s %s", WHAT[i], units_format_bytes(s, parts[i]));
    report_bar(r->o, "c-memory", "Memory of the fullest GPU", 3, names, parts);
    report_table(r->o, "Bytes of the fullest GPU", 4, HEAD, 2);
    put_figure(r, "usable", units_format_bytes(s, parts[0] + x->pool_bytes + x->reserve_bytes),
               "weights + cache + what the engine leaves or works in", arena_printf(r->arena, "of a %s", hw->name));
    put_figure(r, "weights", units_format_bytes(s, parts[0]), "stored bytes of the parts that this GPU holds",
               x->tower_bytes > 0 ? arena_printf(r->arena, "%s of them towers", units_format_bytes(u, x->tower_bytes))
                                  : NULL);
    put_figure(r, "left to the engine", units_format_bytes(s, x->reserve_bytes),
               "the part that it does not take, activations of its largest step, and what is outside its allocator",
               arena_printf(r->arena, "steps of %s and %s", text_count(tokens, x->step_tokens, "token"),
                            text_count(seqs, x->seqs, "sequence")));
    put_figure(r, "cache", units_format_bytes(s, x->pool_bytes), "usable - weights - left to the engine", NULL);
    put_figure(r, "a sequence", units_format_bytes(s, x->sequence_bytes),
               "bytes of a token * mean context and half a block; states",
               arena_printf(r->arena, "at %.4g tokens", t->context_tokens));
    put_figure(r, "sequences that fit in a copy", arena_printf(r->arena, "%.0f", fit * (double)x->layout.dp),
               "floor(cache / a sequence) * attention groups",
               arena_printf(r->arena, "%s / %s * %lld", units_format_bytes(s, x->pool_bytes),
                            units_format_bytes(u, x->sequence_bytes), (long long)x->layout.dp));
    report_table_end(r->o);
}

static enum err_code commands(struct report *r, struct err *e)
{
    report_section(r->o, "command", "Starting it");
    for (int i = 0; i < EMIT_ENGINES; i++) {
        const char *command = NULL;
        struct err why = {0};
        if (r->c->has_emit && (int)r->c->emit != i) continue;
        const enum err_code code = plan_command(r->arena, r->c, r->best, (enum emit_engine)i, &command, &why);
        if (code == ERR_NOMEM) return err_nomem(e);
        out_printf(r->o, "<h3>%s</h3>\n", emit_name((enum emit_engine)i));
        if (code == ERR_OK && r->c->server && (int)r->c->runs != i) {
            out_str(r->o, "<p>");
            report_put(r->o, "Latencies on this page are of steps as %s's server takes them; as its own: --server %s.",
                       r->c->request.server->name, emit_name((enum emit_engine)i));
            out_str(r->o, "</p>\n");
        }
        out_str(r->o, code == ERR_OK ? "<pre class=\"short\">" : "<p>Not in this layout: ");
        report_text(r->o, code == ERR_OK ? command : why.text);
        out_str(r->o, code == ERR_OK ? "</pre>\n" : ".</p>\n");
    }
    return ERR_OK;
}

enum err_code report_winner(struct report *r, struct err *e)
{
    static const char *const HEAD[] = {"figure", "value", "how", "with numbers"};
    report_section(r->o, "figures", "Its figures, and how they come about");
    if (r->best) {
        report_table(r->o, "R requests a second, P tokens in and O out on average; times as the method section says", 4,
                     HEAD, 2);
        latencies(r);
        money(r);
        report_table_end(r->o);
        TRY(commands(r, e));
        memory(r);
        return ERR_OK;
    }
    out_str(r->o, "<p>No plan keeps every promise, so there are none.</p>\n");
    report_section(r->o, "command", "Starting it");
    out_str(r->o, "<p>There is nothing to start.</p>\n");
    report_section(r->o, "memory", "Memory of a GPU");
    out_str(r->o, "<p>See why others fail.</p>\n");
    return ERR_OK;
}

/* -- the others -- */

static enum err_code runners(struct report *r, struct err *e)
{
    static const char *const HEAD[] = {"device", "GPUs",    "layout",        "weights",       "cache", "$/h",
                                       "$/M in", "$/M out", "TTFT on paper", "TPOT on paper", "load"};
    const unsigned numbers = 0x7e2; /* all but names */
    const struct plan_case *c = r->c;
    size_t n = c->result.best_n;
    if (c->top > 0 && (size_t)c->top < n) n = (size_t)c->top;
    report_table(r->o, "The best of each device and precision, cheapest first; the first is the answer", 11, HEAD,
                 numbers);
    for (size_t i = 0; i < n; i++) {
        const struct planner_plan *x = &c->result.best[i];
        const struct planner_format *f = &c->format[x->format];
        const bool serve = c->request.aim == PLANNER_SERVE;
        char s[5][TEXT], gpus[TEXT], load[TEXT];
        const char *layout = plan_layout_words(r->arena, &x->layout);
        if (!layout) return err_nomem(e);
        (void)snprintf(gpus, sizeof gpus, "%lld", (long long)x->gpus);
        (void)snprintf(load, sizeof load, "%.1f %%", 100 * x->rate_per_s / x->point.saturation_per_s);
        report_row(r->o, 11,
                   (const char *[]){c->device[x->device].hw->key, gpus, layout, f->weights ? f->weights : "stored",
                                    f->kv ? f->kv : "stored", plan_money(s[0], x->cost.usd_per_h),
                                    plan_money(s[1], x->cost.usd_per_mtok_in),
                                    plan_money(s[2], x->cost.usd_per_mtok_out),
                                    serve ? units_format_time(s[3], x->point.ttft_s) : NULL,
                                    serve ? units_format_time(s[4], x->point.tpot_s) : NULL, load},
                   numbers);
    }
    report_table_end(r->o);
    return ERR_OK;
}

enum err_code report_others(struct report *r, struct err *e)
{
    static const char *const HEAD[] = {"device", "verdict", "candidates", "the nearest", "why"};
    const struct plan_case *c = r->c;
    report_section(r->o, "others", "Runners-up");
    if (r->best)
        TRY(runners(r, e));
    else
        out_str(r->o, "<p>There are none.</p>\n");
    report_section(r->o, "fail", "Why others fail");
    report_table(r->o, "How many candidates fail for which reason, and the one that came nearest", 5, HEAD, 4);
    for (size_t d = 0; d < c->request.devices_n; d++)
        for (int k = PLANNER_DEARER; k < PLANNER_VERDICTS; k++) {
            const struct planner_tally *t = &c->result.tally[d][k];
            if (t->n == 0) continue;
            const struct planner_format *f = &c->format[t->nearest.format];
            char n[TEXT];
            (void)snprintf(n, sizeof n, "%zu", t->n);
            const char *layout = plan_layout_words(r->arena, &t->nearest.layout);
            const char *near = layout
                                   ? arena_printf(r->arena, "%s%s%s%s%s", layout, f->weights ? " weights " : "",
                                                  f->weights ? f->weights : "", f->kv ? " KV " : "", f->kv ? f->kv : "")
                                   : NULL;
            if (!near) return err_nomem(e);
            report_row(r->o, 5,
                       (const char *[]){c->device[d].hw->key, planner_verdict_name((enum planner_verdict)k), n, near,
                                        plan_reason(r->arena, c, &t->nearest)},
                       4);
        }
    report_table_end(r->o);
    return ERR_OK;
}

/* -- pictures -- */

static enum err_code frontier(struct report *r, struct err *e)
{
    static const char *const HEAD[] = {"layout, one copy", "requests/s within promises", "tokens/s out of a GPU",
                                       "saturates at"};
    struct chart chart[2];
    report_section(r->o, "frontier", "Latency against throughput");
    if (r->curves.n == 0) {
        out_str(r->o, "<p>Left out: there is no plan with a steady state and latencies.</p>\n");
        return ERR_OK;
    }
    TRY(plan_frontier_charts(r->arena, r->c, &r->curves, chart, e));
    out_str(r->o,
            "<p>One copy of each layout, at rates that rise to its saturation. What is promised is shaded; a line is "
            "solid where both promises are kept, and the highest point there is what a GPU is worth.</p>\n");
    if (r->curves.misses)
        out_str(r->o, "<p class=\"warn\">None keeps every promise at the rate asked: these are the nearest.</p>\n");
    chart[0].about = "output tokens a second of a GPU against time per output token, a line a layout";
    chart[1].about = "output tokens a second of a GPU against time to first token, a line a layout";
    report_chart(r->o, "c-tpot", &chart[0]);
    report_chart(r->o, "c-ttft", &chart[1]);
    report_table(r->o, "The same in numbers", 4, HEAD, 14);
    for (size_t i = 0; i < r->curves.n; i++) {
        const struct plan_curve *v = &r->curves.curve[i];
        char most[TEXT], tokens[TEXT], end[TEXT];
        (void)snprintf(most, sizeof most, "%.4g", v->most_per_s);
        (void)snprintf(tokens, sizeof tokens, "%.4g",
                       v->most_per_s * r->c->request.traffic.output_tokens / v->copy_gpus);
        (void)snprintf(end, sizeof end, "%.4g requests/s", v->plan->point.saturation_per_s);
        report_row(r->o, 4, (const char *[]){v->name, most, tokens, end}, 14);
    }
    report_table_end(r->o);
    return ERR_OK;
}

static enum err_code cost(struct report *r, struct err *e)
{
    static const double TIMES[] = {.25, .5, 1, 2, 3};
    enum { RATES = sizeof TIMES / sizeof *TIMES };
    const char *head[RATES + 1] = {"layout"}, *cell[RATES + 1];
    struct chart chart;
    const unsigned numbers = 0x3e;
    report_section(r->o, "cost", "Cost against rate");
    if (r->curves.n == 0) {
        out_str(r->o, "<p>Left out: a job has no rate, or no plan has a steady state.</p>\n");
        return ERR_OK;
    }
    TRY(plan_cost_chart(r->arena, r->c, &r->curves, &chart, e));
    out_str(r->o, "<p>Each layout with as many copies as the rate takes: copies * GPUs of one * price, copies = rate / "
                  "(what one copy takes within every promise), rounded up. At another rate another layout may be "
                  "cheaper.</p>\n");
    chart.about = "dollars an hour against requests a second, a line a layout, a step for each copy more";
    report_chart(r->o, "c-cost", &chart);
    for (size_t k = 0; k < RATES; k++) {
        head[k + 1] = arena_printf(r->arena, "%.4g/s", TIMES[k] * r->c->request.traffic.rate_per_s);
        if (!head[k + 1]) return err_nomem(e);
    }
    report_table(r->o, "Dollars an hour and GPUs at rates around the one asked", RATES + 1, head, numbers);
    for (size_t i = 0; i < r->curves.n; i++) {
        const struct plan_curve *v = &r->curves.curve[i];
        cell[0] = v->name;
        for (size_t k = 0; k < RATES; k++) {
            const int64_t copies = plan_copies_at(r->c, v, TIMES[k] * r->c->request.traffic.rate_per_s);
            const double gpus = (double)copies * v->copy_gpus;
            char s[TEXT];
            cell[k + 1] = copies ? arena_printf(r->arena, "%s, %.0f GPU%s",
                                                plan_money(s, gpus * r->c->device[v->plan->device].price.usd_per_h),
                                                gpus, gpus > 1 ? "s" : "")
                                 : "-";
            if (!cell[k + 1]) return err_nomem(e);
        }
        report_row(r->o, RATES + 1, cell, numbers);
    }
    report_table_end(r->o);
    return ERR_OK;
}

static enum err_code spreads(struct report *r, struct err *e)
{
    static const char *const HEAD[] = {"time", "mean", "P50", "P90", "P95", "P99", "most"}, *const NAME[] = {
                                                                                                "queue", "TTFT", "TPOT",
                                                                                                "end to end"};
    static double (*const VALUE[])(const struct simulate_record *) = {simulate_wait_s, simulate_ttft_s, simulate_tpot_s,
                                                                      simulate_latency_s};
    report_table(r->o,
                 r->c->request.judged.end > 0
                     ? "Times of all simulated requests, those while it fills and empties too, by which no plan is "
                       "judged; percentiles are exact: the smallest time that so many do not exceed"
                     : "Times of the simulated requests; percentiles are exact: the smallest time that so many do not "
                       "exceed",
                 7, HEAD, 0x7e);
    for (size_t i = 0; i < 4; i++) {
        struct simulate_spread x;
        char s[6][TEXT];
        TRY(simulate_spread_of(&r->run.result, VALUE[i], &x, e));
        report_row(r->o, 7,
                   (const char *[]){NAME[i], units_format_time(s[0], x.mean), units_format_time(s[1], x.p50),
                                    units_format_time(s[2], x.p90), units_format_time(s[3], x.p95),
                                    units_format_time(s[4], x.p99), units_format_time(s[5], x.most)},
                   0x7e);
    }
    report_table_end(r->o);
    return ERR_OK;
}

static enum err_code simulation(struct report *r, struct err *e)
{
    static const char *const IDS[] = {"c-batch", "c-queue", "c-blocks"};
    const struct planner_request *q = &r->c->request;
    struct simulate_bins *bins = arena_alloc(r->arena, sizeof *bins);
    struct chart time[3], part[2];
    report_section(r->o, "simulation", "Request by request");
    if (!bins) return err_nomem(e);
    if (!r->best || r->unsimulated || r->run.steps_n == 0) {
        out_str(r->o, "<p>");
        report_put(r->o, "Left out: %s.", r->unsimulated ? r->unsimulated : "there is no plan to simulate");
        out_str(r->o, "</p>\n");
        return ERR_OK;
    }
    const double limit_s[] = {q->ttft.s, q->tpot.s}, frac[] = {q->ttft.frac, q->tpot.frac};
    char n[4][TEXT_COUNT_MAX];
    out_str(r->o, "<p>");
    report_put(r->o,
               "%s through a scheduler with chunked prefill on %s, the least loaded first; %s, busy %.1f %% of the "
               "time, %s.",
               text_count(n[0], (int64_t)r->run.result.finished, "request"),
               text_count(n[1], r->best->layout.replicas, "copy"), text_count(n[2], r->run.result.steps, "step"),
               100 * r->run.result.busy_s / r->run.result.span_s / (double)r->best->layout.replicas,
               text_count(n[3], r->run.result.preemptions, "preemption"));
    out_str(r->o, "</p>\n");
    TRY(spreads(r, e));
    TRY(simulate_part_charts(r->arena, &r->run.result, limit_s, frac, part, e));
    part[0].about = "the part of requests that had their first token within a time";
    part[1].about = "the part of requests whose tokens took at most a time each";
    report_chart(r->o, "c-first", &part[0]);
    report_chart(r->o, "c-token", &part[1]);
    simulate_bins_of(r->run.step, r->run.steps_n, &r->run.result,
                     (double)r->run.blocks * (double)r->best->layout.replicas, bins);
    TRY(simulate_time_charts(r->arena, bins, time, e));
    for (size_t k = 0; k < 3; k++) report_chart(r->o, IDS[k], &time[k]);
    return ERR_OK;
}

enum err_code report_pictures(struct report *r, struct err *e)
{
    TRY(frontier(r, e));
    TRY(cost(r, e));
    return simulation(r, e);
}
