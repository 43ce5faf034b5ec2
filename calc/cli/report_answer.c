/* report_answer -- what is asked and answered in words; inputs, conventions, method. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/report.h"
#include "calc/cli/scope.h"

enum { TEXT = UNITS_TEXT_MAX };

static void paragraph(struct out *o, const char *look, const char *text)
{
    out_printf(o, *look ? "<p class=\"%s\">" : "<p>", look);
    report_text(o, text ? text : "");
    out_str(o, "</p>\n");
}

/* -- the answer -- */

static const char *question(struct report *r)
{
    const struct plan_case *c = r->c;
    const struct planner_traffic *t = &c->request.traffic;
    const char *promises = plan_promises_text(r->arena, c);
    char n[TEXT];
    if (!promises) return NULL;
    if (c->request.aim == PLANNER_JOB)
        return arena_printf(r->arena, "Asked: %s requests of %s, %.0f tokens in%s and %.0f out%s on average; %s.",
                            units_format_digits(n, c->request.requests), c->model, t->asked_tokens,
                            plan_usual(c, "prompt"), t->output_tokens, plan_usual(c, "generate"), promises);
    return arena_printf(
        r->arena, "Asked: %.4g requests a second of %s, %.0f tokens in%s and %.0f out%s on average; %s.", t->rate_per_s,
        c->model, t->asked_tokens, plan_usual(c, "prompt"), t->output_tokens, plan_usual(c, "generate"), promises);
}

static void answer_money(struct report *r)
{
    const struct planner_plan *x = r->best;
    char s[TEXT], t[TEXT], u[TEXT];
    if (r->c->request.aim == PLANNER_JOB)
        paragraph(r->o, "",
                  arena_printf(r->arena, "The job is done in %s, and costs %s in all (%s an hour).",
                               units_format_time(s, x->point.makespan_s),
                               plan_money(t, x->cost.usd_per_h * x->point.makespan_s / 3600), /* not a unit */
                               plan_money(u, x->cost.usd_per_h)));
    else
        paragraph(r->o, "",
                  arena_printf(r->arena, "It costs %s an hour: %s per million tokens in and %s per million out.",
                               plan_money(s, x->cost.usd_per_h), plan_money(t, x->cost.usd_per_mtok_in),
                               plan_money(u, x->cost.usd_per_mtok_out)));
}

static void answer_headroom(struct report *r)
{
    const struct plan_case *c = r->c;
    const struct planner_headroom *h = &c->headroom;
    if (c->request.aim == PLANNER_JOB) return;
    const char *how = plan_headroom_how(r->arena, c);
    paragraph(r->o, "",
              arena_printf(r->arena,
                           "Headroom%s: up to %.4g requests a second, %.0f %% more than asked, every promise is kept. "
                           "What breaks first is %s, and what binds there is %s. To go further: %s.",
                           how ? how : "", h->rate_per_s, 100 * (h->rate_per_s / c->request.traffic.rate_per_s - 1),
                           plan_breaks(h->breaks), h->binds, plan_advice(h)));
}

static void answer_simulation(struct report *r)
{
    const struct planner_verified *v = &r->verified;
    char s[TEXT], t[TEXT], n[TEXT_COUNT_MAX];
    if (r->unsimulated)
        paragraph(r->o, "", arena_printf(r->arena, "Not simulated request by request: %s.", r->unsimulated));
    else
        paragraph(r->o, v->keeps && !r->c->partly ? "" : "warn",
                  arena_printf(r->arena,
                               "Simulated request by request, %zu of them: TTFT %s and TPOT %s at the parts promised: "
                               "%s.",
                               v->n, units_format_time(s, v->ttft_s), units_format_time(t, v->tpot_s),
                               v->keeps ? plan_kept(r->arena, r->c) : "it does NOT keep its promises"));
    const char *near = r->best && v->keeps ? plan_near_text(r->arena, r->c, r->best) : NULL;
    if (near && *near) paragraph(r->o, "", arena_printf(r->arena, "%s.", near));
    const char *few = r->unsimulated ? NULL : plan_few_text(r->arena, &r->c->request, v);
    if (few) paragraph(r->o, "warn", arena_printf(r->arena, "Few requests: %s.", few));
    if (r->c->refuted)
        paragraph(r->o, "",
                  arena_printf(r->arena, "%s that cost no more kept every promise on paper and not when simulated.",
                               text_count(n, r->c->refuted, "plan")));
    if (r->c->confirmed.cut)
        paragraph(r->o, "warn",
                  arena_printf(r->arena,
                               "The search was cut: behind %s only the best plan of each cost was "
                               "simulated, so a cheaper one may be missed.",
                               text_count(n, r->c->simulations, "simulation")));
    for (enum planner_skip why = 0; why < PLANNER_SKIPS; why++) {
        const char *text = plan_skipped_text(r->arena, r->c, why);
        if (text) paragraph(r->o, "", arena_printf(r->arena, "%s.", text));
    }
}

/* What the figures must not be taken for. */
static void warnings(struct report *r)
{
    const struct planner_request *q = &r->c->request;
    if (q->fidelity != PLANNER_CALIBRATED)
        paragraph(
            r->o, "warn",
            "NOT A PROMISE: all times on this page are floors, of perfect kernels without launches, links' latency "
            "or a scheduler. Servers are 2 to 4 times slower.");
    if (r->c->work.note) paragraph(r->o, "", arena_printf(r->arena, "The trace: %s.", r->c->work.note));
    if (r->best && r->best->estimated)
        paragraph(r->o, "warn",
                  "Not a promise: nobody measured such a layout; its times are estimated by the ratio of floors.");
    for (size_t d = 0; d < q->devices_n; d++)
        if (isnan(r->c->device[d].price.usd_per_h))
            paragraph(r->o, "warn",
                      arena_printf(r->arena,
                                   "No price of %s is known: its plans are ranked behind the others, by GPUs.",
                                   r->c->device[d].hw->key));
    if (!r->best) return;
    const struct planner_format *f = &r->c->format[r->best->format];
    if (f->weights || f->kv)
        paragraph(r->o, "warn",
                  arena_printf(r->arena, "%s%s%s narrower than stored: what that costs in quality is not planned.",
                               f->weights ? "Weights" : "", f->weights && f->kv ? " and cache are" : "",
                               f->weights && f->kv ? ""
                               : f->weights        ? " are"
                                                   : "The cache is"));
}

enum err_code report_answer(struct report *r, struct err *e)
{
    const struct planner_plan *x = r->best;
    report_section(r->o, "answer", "The answer");
    const char *asked = question(r);
    if (!asked) return err_nomem(e);
    paragraph(r->o, "", asked);
    if (!x) {
        struct err why = {0};
        (void)plan_none(r->c, &why);
        paragraph(r->o, "key warn", why.text);
        warnings(r);
        return ERR_OK;
    }
    const struct planner_format *f = &r->c->format[x->format];
    const int64_t copies = x->layout.replicas;
    char n[4][TEXT_COUNT_MAX];
    const char *layout = plan_layout_words(r->arena, &x->layout);
    paragraph(r->o, "key",
              arena_printf(r->arena,
                           "%lld x %s (%s): %s of %s; weights %s, cache %s; at most %s and %s a step in a copy.",
                           (long long)x->gpus, r->c->device[x->device].hw->key, layout ? layout : "",
                           text_count(n[0], copies, "copy"), text_count(n[1], x->gpus / copies, "GPU"),
                           f->weights ? f->weights : "as stored", f->kv ? f->kv : "as stored",
                           text_count(n[2], x->seqs, "sequence"), text_count(n[3], x->step_tokens, "token")));
    const char *legend = plan_layout_legend(layout_routed(f->model) != NULL, x->layout.dcp > 1);
    paragraph(r->o, "soft", arena_printf(r->arena, "L%s.", legend + 1));
    answer_money(r);
    answer_headroom(r);
    answer_simulation(r);
    warnings(r);
    return ERR_OK;
}

/* -- inputs -- */

static enum err_code input_options(struct report *r, struct err *e)
{
    static const char *const HEAD[] = {"option", "value", "given"};
    const struct option_values *v = r->c->options;
    report_table(r->o, "Options, with those that stand for themselves", 3, HEAD, 0);
    for (size_t i = 0; i < v->command->options_n; i++) {
        const struct option *p = &v->command->options[i];
        if (!v->text[i] || p->typed_only || strcmp(p->name, "scenario") == 0) continue;
        const char *name = arena_printf(r->arena, "--%s", p->name);
        if (!name) return err_nomem(e);
        report_row(r->o, 3, (const char *[]){name, v->text[i], v->given[i] ? "yes" : "default"}, 0);
    }
    report_table_end(r->o);
    const char *scenario = option_scenario_json(r->arena, v);
    if (!scenario) return err_nomem(e);
    char hash[HASH_TEXT_MAX];
    (void)hash_text(hash, hash_more(hash_start(), scenario, strlen(scenario)));
    paragraph(r->o, "soft", "As a scenario, which asks all of this again (ridge report --scenario FILE):");
    out_str(r->o, "<pre>");
    report_text(r->o, scenario);
    out_str(r->o, "</pre>\n");
    paragraph(r->o, "soft", arena_printf(r->arena, "Hash of the scenario: %s.", hash));
    return ERR_OK;
}

static enum err_code input_files(struct report *r, struct err *e)
{
    static const char *const HEAD[] = {"input", "what", "source", "hash"};
    static const char *const FILES[] = {"trace", "price"};
    const struct plan_case *c = r->c;
    const struct model *m = c->format[0].model;
    report_table(r->o, "Model, devices and files; hashes are FNV-1a, of what was read", 4, HEAD, 0);
    report_row(r->o, 4, (const char *[]){"model", m->name, m->source, m->hash}, 0);
    for (size_t d = 0; d < c->request.devices_n; d++) {
        const struct planner_device *x = &c->device[d];
        char hash[HASH_TEXT_MAX], s[TEXT];
        const char *price = arena_printf(r->arena, "%s, at most %lld; %s an hour each", x->hw->key, (long long)x->most,
                                         plan_money(s, x->price.usd_per_h));
        const char *source = arena_printf(r->arena, "price: %s%s%s", x->price.source ? x->price.source : "not known",
                                          x->price.date ? ", " : "", x->price.date ? x->price.date : "");
        if (!price || !source) return err_nomem(e);
        report_row(r->o, 4, (const char *[]){"device", price, source, scope_gpu_hash(x->hw, hash)}, 0);
    }
    for (size_t i = 0; i < 2; i++) {
        const char *path = option_get(c->options, FILES[i]);
        char hash[HASH_TEXT_MAX];
        if (!path) continue;
        struct err none = {0};
        const bool known = hash_file(path, hash, &none) == ERR_OK; /* a pipe has none */
        report_row(r->o, 4, (const char *[]){FILES[i], path, "a file", known ? hash : NULL}, 0);
    }
    report_table_end(r->o);
    return ERR_OK;
}

enum err_code report_inputs(struct report *r, struct err *e)
{
    static const char *const HEAD[] = {"traffic", "value"};
    const struct planner_traffic *t = &r->c->request.traffic;
    report_section(r->o, "inputs", "Inputs");
    TRY(input_options(r, e));
    TRY(input_files(r, e));
    const struct {
        const char *name;
        double value;
    } rows[] = {{"requests a second, all copies", t->rate_per_s},
                {"tokens of a prompt, mean", t->asked_tokens},
                {"tokens of an answer, mean", t->output_tokens},
                {"variance over squared mean of prompts", t->prompt_cv2},
                {"the same of the gaps between arrivals (Poisson: 1)", t->arrival_cv2},
                {"tokens that a decode step attends to, mean over steps", t->context_tokens},
                {"longest request, prompt and answer", (double)t->longest_tokens},
                {"requests that these are taken of", (double)t->n}};
    report_table(r->o, "Traffic as it was read or drawn", 2, HEAD, 2);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char s[TEXT];
        (void)snprintf(s, sizeof s, "%.5g", rows[i].value);
        report_row(r->o, 2, (const char *[]){rows[i].name, s}, 2);
    }
    report_table_end(r->o);
    return ERR_OK;
}

/* -- conventions, method -- */

enum err_code report_conventions(struct report *r, struct err *e)
{
    static const char *const HEAD[] = {"convention", "default", "what it means"}, *const OWN[] = {"convention", "here",
                                                                                                  "what it means"};
    const struct planner_request *q = &r->c->request;
    const char *x[3], *fidelity = q->fidelity == PLANNER_CALIBRATED ? q->p90 ? "calibrated, P90" : "calibrated, median"
                                  : q->fidelity == PLANNER_ROOFLINE ? "roofline, a floor"
                                                                    : "bound, a floor";
    const char *const plan[][3] = {
        {"fidelity", fidelity, "of every time on this page, unless it is said to be a floor"},
        {"context", "mean over steps",
         "a decode step attends to what an answer's steps do on average, long answers more"},
        {"prompt", "in pieces",
         "chunked prefill: pieces of prompts beside sequences that decode, in steps of a budget"},
        {"TPOT", "behind the first", "(last token - first token) / (tokens - 1); answers of one token have none"},
        {"TTFT", "from arrival",
         q->server ? "to the first token, with all waiting and what a server's first token takes beside its steps"
                   : "to the first token, with all waiting; tokenizer and network are not in it"},
        {"percentile", "exact", "the smallest value that so many requests do not exceed; nothing is interpolated"},
        {"arrivals", "open", "requests come whether others are answered or not"},
        {"link latency", "NCCL's", "of a message, where ranks share a copy"}};
    (void)e;
    report_section(r->o, "conventions", "Conventions");
    report_table(r->o, "How this plan counts", 3, OWN, 0);
    for (size_t i = 0; i < sizeof plan / sizeof *plan; i++) report_row(r->o, 3, plan[i], 0);
    report_table_end(r->o);
    report_table(r->o, "All else: what calculators differ in, unsaid; plans use the defaults", 3, HEAD, 0);
    for (size_t i = 0; commands_convention(i, x); i++) {
        bool own = false;
        for (size_t k = 0; k < sizeof plan / sizeof *plan; k++) own |= strcmp(plan[k][0], x[0]) == 0;
        if (!own) report_row(r->o, 3, x, 0);
    }
    report_table_end(r->o);
    return ERR_OK;
}

#define LAST                                                                                                           \
    "Energy is assumed, not measured: full power in prefill, 0.6 of it in decode, 0.15 idle, GPUs alone. Why a "       \
    "server differs, and how to find out: docs/why-does-my-server-differ.md."

/* Whose times these are, and of which devices they are taken over, in the words of ridge plan. */
static enum err_code method_times(struct report *r, struct err *e)
{
    struct out *o;
    size_t n;
    TRY(out_memory(r->arena, &o, e));
    plan_times_say(o, "", r->c);
    TRY(plan_devices_doubts(r->arena, o, "", r->c, -1, -1, e));
    const char *text = out_text(o, &n);
    if (!text) return err_nomem(e);
    if (n == 0) return ERR_OK;
    out_str(r->o, "<pre>");
    report_text(r->o, text);
    out_str(r->o, "</pre>\n");
    return ERR_OK;
}

enum err_code report_method(struct report *r, struct err *e)
{
    const struct planner_request *q = &r->c->request;
    report_section(r->o, "method", "Method and errors");
    paragraph(r->o, "",
              arena_printf(r->arena,
                           "%zu candidate%s judged (device, precision, layout, copies, limits of a step), %zu of them "
                           "solved; the others by bounds that no engine beats: memory, one decode step and one prompt "
                           "alone, flops and bytes of all requests.",
                           r->c->result.candidates, r->c->result.candidates == 1 ? " was" : "s were",
                           r->c->result.solved));
    if (q->fidelity != PLANNER_CALIBRATED)
        paragraph(r->o, "warn", "Times are floors: there is no band, and no promise follows from them.");
    else
        paragraph(r->o, "",
                  q->p90
                      ? "Times are calibrated, at P90 of their band: nine services in ten are faster. The band is that "
                        "of whole steps as engines were measured, and wider where nobody measured."
                      : "Times are calibrated, at the median of their band: every other service is slower.");
    if (r->run.band > 1)
        paragraph(
            r->o, "",
            arena_printf(r->arena,
                         r->run.of_floors
                             ? "Nobody measured such stages: steps of the simulation take %.3g times their floors, as "
                               "ranks of one stage do, and P90 of a transfer."
                             : "Here P90 is %.3g times the median; arrivals of the simulation and times of its "
                               "steps are stretched by that factor.",
                         r->run.band));
    if (r->c->result.note) paragraph(r->o, "", arena_printf(r->arena, "Note: %s.", r->c->result.note));
    paragraph(
        r->o, "",
        "Latencies at rest come from the steady state: Little's law, the time of a step as a function of who is in "
        "it, and queues in front of it. Beside the simulator they are within some per cent at the median and up to a "
        "quarter at tails near saturation. Stages, and ranks of one over several nodes, are estimated by "
        "the ratio of floors, and their band is that of a transfer to another device.");
    TRY(method_times(r, e));
    paragraph(r->o, "",
              q->server ? "Left out: prefix caches, drafts, swapping, prefill and decode on different GPUs. " LAST
                        : "Left out: tokenizer and network in front of the engine, prefix caches, drafts, swapping, "
                          "prefill and decode "
                          "on different GPUs. " LAST);
    return out_check(r->o, e);
}
