/* plan_text -- the answer of `ridge plan` for people: what was asked, the winner, the best of each device and
 * precision; plan_text_notes has the rest. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/plan_parts.h"
#include "calc/model/stored.h"

static const char IN[] = "  ";

const char *plan_usual(const struct plan_case *c, const char *option)
{
    return option_given(c->options, option) || option_get(c->options, "trace") ? "" : " (default)";
}

static void write_question(struct arena *arena, struct out *o, const struct plan_case *c)
{
    const struct planner_request *q = &c->request;
    const struct planner_traffic *t = &q->traffic;
    char name[96], a[UNITS_TEXT_MAX];
    out_printf(o, "%s", text_clean(name, sizeof name, c->model, strlen(c->model)));
    if (q->aim == PLANNER_JOB)
        out_printf(o, ": %s requests", units_format_digits(a, q->requests));
    else
        out_printf(o, ": %.4g requests/s", t->rate_per_s);
    out_printf(o, ", %.0f tokens in%s, %.0f out%s%s\n", t->asked_tokens, plan_usual(c, "prompt"), t->output_tokens,
               plan_usual(c, "generate"),
               t->prompts[0] < t->prompts[t->n - 1] || t->outputs[0] < t->outputs[t->n - 1] ? " on average" : "");
    const char *promises = plan_promises_text(arena, c);
    plan_say(o, IN, "%s", promises ? promises : "");
    if (c->replaced) plan_say(o, IN, "note: %s", c->replaced);
    if (c->work.note) plan_say(o, IN, "note: %s", c->work.note);
}

/* -- the winner -- */

/* Two pools: what each is for. */
static void write_pools(struct out *o, const struct planner_plan *x)
{
    char s[UNITS_TEXT_MAX];
    if (x->prefill > 0)
        plan_say(
            o, IN,
            "in two pools (disaggregated): %lld for prompts and their first tokens, %lld for all further tokens; a "
            "cache takes %s from one to the other, on average",
            (long long)x->prefill, (long long)(x->layout.replicas - x->prefill), units_format_time(s, x->point.move_s));
}

/* Whether a draft pays, and up to which load. */
static void write_draft(struct out *o, const struct plan_case *c)
{
    const struct planner_paying *p = &c->paying;
    const struct planner_plan *x = &c->result.best[0];
    char with[UNITS_TEXT_MAX], without[UNITS_TEXT_MAX], name[64], n[TEXT_COUNT_MAX];
    if (!c->draft) return;
    (void)text_clean(name, sizeof name, c->draft, strlen(c->draft));
    if (x->gamma > 0 && c->drafting.shape)
        plan_say(o, IN, "draft %s, a tree of %s, %lld deep: %.3g tokens a step expected (accepted: %s)", name,
                 text_count(n, c->shape.drafted, "token"), (long long)x->gamma, planner_made(&c->request, x->gamma),
                 c->accept);
    else if (x->gamma > 0)
        plan_say(o, IN, "draft %s, %s in a row: %.3g tokens a step expected (accepted: %s)", name,
                 text_count(n, x->gamma, "token"), planner_made(&c->request, x->gamma), c->accept);
    if (x->prefill > 0) {
        plan_say(o, IN,
                 x->gamma > 0 ? "draft %s in two pools: until which load it pays is not computed"
                              : "draft %s: not beside this plan",
                 name);
        return;
    }
    if (c->request.aim == PLANNER_JOB) return;
    if (c->unpaid) {
        plan_say(o, IN, "draft %s beside this plan: %s", name, c->unpaid);
        return;
    }
    if (isnan(p->with_s) && isnan(p->most_with_per_s)) {
        plan_say(o, IN, "draft %s: not beside this plan", name);
        return;
    }
    plan_say(o, IN, "mean TPOT %s with %lld drafted, %s without; saturates at %.4g requests/s with, %.4g without",
             isnan(p->with_s) ? "saturated" : units_format_time(with, p->with_s),
             (long long)(c->drafting.shape ? c->shape.drafted : p->gamma),
             isnan(p->without_s) ? "saturated" : units_format_time(without, p->without_s), p->most_with_per_s,
             p->most_without_per_s);
    if (isinf(p->until_per_s))
        plan_say(o, IN, "on these GPUs the draft pays at every load that they serve without it");
    else if (p->until_per_s > 0)
        plan_say(o, IN, "on these GPUs the draft stops paying at %.4g requests/s", p->until_per_s);
    else
        plan_say(o, IN, "on these GPUs the draft pays at no load");
}

/* A time at its part, simulated where it was, against what is promised. */
static void write_time(struct out *o, const struct plan_case *c, const char *what, const char *name,
                       const struct planner_promise *p, double paper_s, double simulated_s)
{
    const bool ran = c->verified.n > 0, solved = c->result.best[0].paper != PLANNER_SATURATED && !isnan(paper_s);
    char s[UNITS_TEXT_MAX], t[UNITS_TEXT_MAX], u[UNITS_TEXT_MAX], beside[96] = "", may[64] = "";
    if (ran ? isnan(simulated_s) : !solved) return;
    if (ran && solved)
        (void)snprintf(beside, sizeof beside, " simulated (%s on paper%s)", units_format_time(t, paper_s),
                       c->uneven ? ", for arrivals without bursts" : "");
    if (!isnan(p->s)) (void)snprintf(may, sizeof may, ", promised %s", units_format_time(u, p->s));
    plan_say(o, IN, "%s (%s %s): %s%s%s", what, name, plan_part(p), units_format_time(s, ran ? simulated_s : paper_s),
             ran && !solved ? " simulated" : beside, may);
}

static void write_times(struct arena *a, struct out *o, const struct plan_case *c)
{
    const struct planner_request *q = &c->request;
    const struct planner_plan *x = &c->result.best[0];
    const struct planner_point *p = &x->point;
    char s[UNITS_TEXT_MAX], t[UNITS_TEXT_MAX], u[UNITS_TEXT_MAX], count[TEXT_COUNT_MAX];
    const int64_t n = (int64_t)c->verified.n;
    if (q->aim == PLANNER_SERVE) {
        write_time(o, c, "time to first token", "TTFT", &q->ttft, p->ttft_s, c->verified.ttft_s);
        write_time(o, c, "time per further token", "TPOT", &q->tpot, p->tpot_s, c->verified.tpot_s);
        if (n) plan_say(o, IN, "simulated, %s: %s", text_count(count, n, "request"), plan_kept(a, c));
    }
    if (q->aim == PLANNER_JOB) {
        plan_say(o, IN, "done in %s, of it %s for the last answers; %s for all", units_format_time(s, p->makespan_s),
                 units_format_time(t, p->tail_s), plan_money(u, x->cost.usd_per_h * p->makespan_s / 3600));
        if (n)
            plan_say(o, IN, "simulated, %s of one copy: done in %s, within the deadline",
                     text_count(count, n, "request"), units_format_time(s, c->verified.makespan_s));
    }
    if (q->aim == PLANNER_DAILY && n)
        plan_say(o, IN, "simulated, %s of one copy: served as they come, the queue does not grow",
                 text_count(count, n, "request"));
    const char *near = plan_near_text(a, c, x);
    if (near && *near) plan_say(o, IN, "%s", near);
}

/* Whatever says how far the figures above may be trusted. */
static enum err_code write_doubts(struct arena *a, struct out *o, const struct plan_case *c, struct err *e)
{
    const struct planner_plan *x = &c->result.best[0];
    const struct planner_format *f = &c->format[x->format];
    plan_times_doubts(o, IN, c);
    TRY(plan_devices_doubts(a, o, IN, c, (int)x->device, -1, e));
    plan_doubts(a, o, c, IN);
    if (f->weights || f->kv)
        plan_say(o, IN,
                 "note: %s%s%s narrower than stored; what that costs in quality is not planned (ridge compare "
                 "--preset quant)",
                 f->weights ? "weights" : "", f->weights && f->kv ? " and " : "", f->kv ? "cache" : "");
    return ERR_OK;
}

static void write_caches(struct out *o, const struct plan_case *c)
{
    char hosted[64] = "", s[UNITS_TEXT_MAX], t[UNITS_TEXT_MAX];
    if (c->request.tier_bytes > 0)
        (void)snprintf(hosted, sizeof hosted, ", of these %.1f points at the host", 100 * c->verified.loaded_frac);
    if (c->request.prefix_cache && c->verified.n)
        plan_say(o, IN,
                 "%sof the prompts' tokens %.1f %% were found in caches%s; on paper it is %.1f %%, what an endless "
                 "cache finds",
                 option_given(c->options, "prefix-cache") ? "" : "--kv-offloading-size caches prefixes: ",
                 100 * c->verified.cached_frac, hosted, 100 * c->request.traffic.found_frac);
    if (c->tierless.n)
        plan_say(o, IN, "without the cache at the host %.1f %%: TTFT %s, TPOT %s%s", 100 * c->tierless.cached_frac,
                 units_format_time(s, c->tierless.ttft_s), units_format_time(t, c->tierless.tpot_s),
                 c->tierless.keeps ? "" : ", which breaks a promise");
}

/* What gives way first, and what to do then; one copy more has a price. */
static void write_headroom(struct arena *a, struct out *o, const struct plan_case *c)
{
    const struct planner_headroom *h = &c->headroom;
    const struct planner_plan *x = &c->result.best[0];
    const double more = 100 * (h->rate_per_s / c->request.traffic.rate_per_s - 1), least = 100 * plan_known_within(c);
    const char *how = plan_headroom_how(a, c);
    const int64_t copy = x->layout.replicas > 0 ? x->gpus / x->layout.replicas : x->gpus;
    char money[UNITS_TEXT_MAX], one[128] = "";
    const bool hardly = more < .01; /* not a unit */
    plan_say(o, IN, "breaks first%s: %s, from %.*g requests/s on (%s%.*f %% more than now%s); %s binds", how ? how : "",
             plan_breaks(h->breaks), more < 1 ? 6 : 4, h->rate_per_s, hardly ? "less than " : "",
             more < 1    ? 2
             : more < 10 ? 1
                         : 0,
             fmax(more, .01), more < least ? ", no more than it may be off by" : "", h->binds);
    if (x->prefill == 0 && !isnan(x->cost.usd_per_h))
        (void)snprintf(one, sizeof one, "; one copy more is %lld x %s, %s/h", (long long)copy,
                       c->device[x->device].hw->key,
                       plan_money(money, x->cost.usd_per_h / (double)x->gpus * (double)copy));
    plan_say(o, IN, "to go further: %s%s", plan_advice(h), one);
}

/* What of the price and the energy of a token is known. */
static void write_tokens(struct out *o, const struct planner_plan *x)
{
    char s[UNITS_TEXT_MAX], t[UNITS_TEXT_MAX], price[160] = "", power[96] = "";
    const bool priced = !isnan(x->cost.usd_per_mtok_in), out = !isnan(x->cost.usd_per_mtok_out);
    const bool powered = !isnan(x->cost.joule_per_tok);
    if (priced)
        (void)snprintf(price, sizeof price, "per million tokens: %s in%s%s%s%s", plan_money(s, x->cost.usd_per_mtok_in),
                       out ? ", " : "", out ? plan_money(t, x->cost.usd_per_mtok_out) : "",
                       out ? " out, split by the time they take" : "", powered ? "; " : "");
    if (powered)
        (void)snprintf(power, sizeof power, "%.3g J a token out (%s)", x->cost.joule_per_tok,
                       units_format(s, UNITS_WATTS, x->cost.watts));
    if (priced || powered) plan_say(o, IN, "%s%s", price, power);
}

static void write_memory(struct out *o, const struct plan_case *c)
{
    const struct planner_plan *x = &c->result.best[0];
    char s[UNITS_TEXT_MAX], t[UNITS_TEXT_MAX], u[UNITS_TEXT_MAX], v[UNITS_TEXT_MAX], cache[128] = "";
    const bool none = !(x->sequence_bytes > 0);
    if (!none)
        (void)snprintf(cache, sizeof cache, "; %s a sequence, %.0f of a copy fit, on average",
                       units_format_bytes(v, x->sequence_bytes),
                       floor(x->pool_bytes / x->sequence_bytes) * (double)x->layout.dp);
    plan_say(o, IN, "memory of a GPU: %s weights, %s %s, %s left to the engine%s",
             units_format_bytes(s, x->weight_bytes), units_format_bytes(t, x->pool_bytes),
             none                                           ? "free"
             : stored_has_cache(c->format[x->format].model) ? "cache"
                                                            : "for states",
             units_format_bytes(u, x->reserve_bytes), cache);
    if (x->tower_bytes > 0)
        plan_say(o, IN, "and %s of towers beside the weights (--no-towers serves text alone); no image is encoded here",
                 units_format_bytes(s, x->tower_bytes));
    plan_hosted(o, c, IN);
}

/* Which engines have a line for it. */
static void write_start(struct arena *a, struct out *o, const struct plan_case *c)
{
    const char *names = "";
    for (int i = 0; i < EMIT_ENGINES && names; i++) {
        struct err why = {0};
        const char *line;
        if (plan_command(a, c, &c->result.best[0], (enum emit_engine)i, &line, &why) != ERR_OK) continue;
        names = arena_printf(a, "%s%s%s", names, *names ? ", " : "", emit_name((enum emit_engine)i));
    }
    if (names && *names)
        plan_say(o, IN, "to start it: --emit ENGINE beside these options prints the engine's command line (%s)", names);
    else if (names)
        plan_say(o, IN, "to start it: no engine is known to have a command line for this layout (--emit)");
}

static enum err_code write_winner(struct arena *a, struct out *o, const struct plan_case *c, struct err *e)
{
    const struct planner_request *q = &c->request;
    const struct planner_plan *x = &c->result.best[0];
    const struct planner_format *f = &c->format[x->format];
    char s[UNITS_TEXT_MAX], count[TEXT_COUNT_MAX], tokens[TEXT_COUNT_MAX];
    const char *layout = plan_layout_words(a, &x->layout), *sentence = plan_layout_sentence(a, &x->layout);
    const bool cache = stored_has_cache(f->model);
    if (!layout || !sentence) return err_nomem(e);
    out_printf(o, "\n%lld x %s, %s: %s/h\n", (long long)x->gpus, c->device[x->device].hw->key, layout,
               plan_money(s, x->cost.usd_per_h));
    plan_say(o, IN, "%s", sentence);
    write_pools(o, x);
    plan_say(o, IN, "weights %s, %s%s; %sat most %s at once and %s a step", f->weights ? f->weights : "as stored",
             cache ? "KV cache " : "no KV cache",
             !cache  ? ""
             : f->kv ? f->kv
                     : "as stored",
             x->layout.dp > 1         ? "in each attention group "
             : x->layout.replicas > 1 ? "in each copy "
                                      : "",
             text_count(count, x->seqs, "sequence"), text_count(tokens, x->step_tokens, "token"));
    write_times(a, o, c);
    TRY(write_doubts(a, o, c, e));
    write_draft(o, c);
    write_caches(o, c);
    if (q->aim == PLANNER_SERVE && x->paper != PLANNER_SATURATED)
        plan_say(
            o, IN,
            "%sload %.0f %% of the rate at which queues grow for ever; %.3g sequences in flight a copy%s on average",
            c->uneven       ? "on paper, for arrivals without bursts: "
            : c->verified.n ? "on paper: "
                            : "",
            100 * x->rate_per_s / x->point.saturation_per_s, x->point.batch, x->prefill > 0 ? " that decodes" : "");
    if (q->aim != PLANNER_JOB) {
        write_headroom(a, o, c);
        write_tokens(o, x);
    }
    write_memory(o, c);
    write_start(a, o, c);
    const char *line, *why;
    TRY(plan_again(a, c, &line, &why, e));
    if (*line) out_printf(o, "  to simulate it again, with the same result:\n%s", line);
    if (why) plan_say(o, IN, "to simulate it again: no line of ridge simulate has %s", why);
    return ERR_OK;
}

enum err_code plan_text(struct arena *a, struct out *o, const struct plan_case *c, const struct table *t, struct err *e)
{
    write_question(a, o, c);
    if (c->result.best_n > 0) {
        TRY(write_winner(a, o, c, e));
        out_printf(o, "\nthe best of each device and precision%s\n",
                   c->uneven ? ", on paper: arrivals without bursts" : "");
        TRY(table_write(t, TABLE_TEXT, o, e));
        plan_say(o, IN, "%s",
                 plan_layout_legend(layout_routed(c->format[0].model) != NULL, option_given(c->options, "dcp")));
        const bool pools = c->request.pools, drafts = pools && c->draft;
        if (c->request.aim == PLANNER_SERVE && !option_get(c->options, "columns"))
            plan_say(o, IN, "%s%s%s%s", drafts ? "" : "in, out: dollars a million tokens of prompts, of answers",
                     drafts ? "" : "; ",
                     pools
                         ? "prefill: of the copies, those that compute prompts for the others (0: every copy does both)"
                         : "load: of the rate at which queues grow",
                     drafts ? "; load: of the rate at which queues grow" : "");
    }
    return plan_text_notes(a, o, c, e);
}
