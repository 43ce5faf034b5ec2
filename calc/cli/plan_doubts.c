/* plan_doubts -- whose measurements a plan rests on, and what nobody has checked of it. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/plan.h"
#include "calc/model/stored.h"

void plan_say(struct out *o, const char *prefix, const char *fmt, ...)
{
    enum { MOST = 79 };
    char text[1024]; /* not a unit */
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    size_t at = strlen(prefix);
    bool first = true;
    out_str(o, prefix);
    for (const char *w = text; *w;) {
        const size_t n = strcspn(w, " ");
        if (!first && at + 1 + n > MOST) {
            out_printf(o, "\n%s  ", prefix);
            at = strlen(prefix) + 2;
            first = true;
        }
        out_printf(o, "%s%.*s", first ? "" : " ", (int)n, w);
        at += n + !first;
        first = false;
        w += n;
        w += strspn(w, " ");
    }
    out_char(o, '\n');
}

const char *plan_few_text(struct arena *a, const struct planner_request *q, const struct planner_verified *v)
{
    enum { FEW = 5 };
    const double frac = fmax(isnan(q->ttft.s) ? 0 : q->ttft.frac, isnan(q->tpot.s) ? 0 : q->tpot.frac);
    const size_t n = q->judged.end > 0 && q->judged.end <= v->n ? q->judged.end - q->judged.first : v->n;
    const double beyond = floor((double)n * (1 - frac) * (1 + 1e-12));
    char count[TEXT_COUNT_MAX];
    if (n == 0 || q->aim != PLANNER_SERVE || beyond >= FEW) return NULL;
    return beyond == 0 ? arena_printf(a, "p%.4g of %s is the slowest of them: more of them would say more", 100 * frac,
                                      text_count(count, (int64_t)n, "request"))
                       : arena_printf(a, "only %.0f of %s lie%s beyond p%.4g: more of them would say more", beyond,
                                      text_count(count, (int64_t)n, "request"), beyond == 1 ? "s" : "", 100 * frac);
}

/* What the scheduler does that the steady state does not have. */
static void say_gap(struct out *o, const char *prefix, const struct plan_case *c)
{
    const struct planner_verified *v = &c->verified;
    const double paper_s = c->result.best[0].point.ttft_s;
    const double far = 3; /* times */
    char is[UNITS_TEXT_MAX], paper[UNITS_TEXT_MAX];
    if (v->n == 0 || c->request.aim != PLANNER_SERVE) return;
    const bool apart = !c->uneven && v->ttft_s > far * paper_s; /* bursts wait, which is said */
    const bool grows = 100 * v->waiting_last > v->n && 2 * v->waiting_last > 3 * v->waiting_half;
    if (apart)
        plan_say(o, prefix,
                 "warning: simulated TTFT is %s, %.2g times the %s of the steady state: %zu requests may end before "
                 "their queue has",
                 units_format_time(is, v->ttft_s), v->ttft_s / paper_s, units_format_time(paper, paper_s), v->n);
    if (grows)
        plan_say(
            o, prefix,
            "warning: the queue still grew: %zu waited when half of the requests had come, %zu with the last; more "
            "of them would wait longer",
            v->waiting_half, v->waiting_last);
}

const char *plan_kept(struct arena *a, const struct plan_case *c)
{
    char s[UNITS_TEXT_MAX];
    const char *text = "keeps its promises";
    const struct planner_verified *v = &c->verified;
    const bool ttft = !isnan(c->request.ttft.s) && !isnan(v->ttft_error_frac),
               tpot = !isnan(c->request.tpot.s) && !isnan(v->tpot_error_frac);
    if (!c->partly && ttft && tpot)
        text = arena_printf(a, "keeps its promises, TTFT within %.2g %% and TPOT within %.2g %%",
                            100 * v->ttft_error_frac, 100 * v->tpot_error_frac);
    else if (!c->partly && (ttft || tpot))
        text = arena_printf(a, "keeps its promises, within %.2g %%",
                            100 * (ttft ? v->ttft_error_frac : v->tpot_error_frac));
    if (!c->partly) return text ? text : "";
    text = arena_printf(a, "no promise is broken in the %.2g periods of %s that were looked at", c->periods,
                        units_format_time(s, c->period_s));
    return text ? text : "";
}

const char *plan_refuted_text(struct arena *a, const struct plan_case *c, const struct planner_refuted *x)
{
    const struct planner_request *q = &c->request;
    const struct planner_verified *v = &x->verified;
    const bool tpot = v->breaks == PLANNER_LATE_TPOT;
    const struct planner_promise *p = tpot ? &q->tpot : &q->ttft;
    char is[UNITS_TEXT_MAX], may[UNITS_TEXT_MAX], paper[UNITS_TEXT_MAX];
    if (v->breaks == PLANNER_SATURATED)
        return arena_printf(a,
                            "simulated its queue grows: %zu waited when half of the requests had come, %zu at the end",
                            v->waiting_half, v->waiting_last);
    plan_times_apart(tpot ? v->tpot_s : v->ttft_s, p->s, is, may);
    const char *when = v->stopped ? " when so many were late that it was stopped" : "";
    if (x->plan.paper == PLANNER_SATURATED)
        return arena_printf(a, "simulated %s %s %s > %s%s, on paper it %s", tpot ? "TPOT" : "TTFT", plan_part(p), is,
                            may, when, plan_saturates(a, &x->plan));
    return arena_printf(a, "simulated %s %s %s > %s%s, on paper %s", tpot ? "TPOT" : "TTFT", plan_part(p), is, may,
                        when, units_format_time(paper, tpot ? x->plan.point.tpot_s : x->plan.point.ttft_s));
}

const char *plan_skipped_text(struct arena *a, const struct plan_case *c, enum planner_skip why)
{
    const struct planner_skipped *s = &c->confirmed.skipped[why];
    const struct planner_plan *x = &s->best;
    char money[UNITS_TEXT_MAX], n[TEXT_COUNT_MAX];
    if (s->n == 0) return NULL;
    const char *layout = plan_layout_words(a, &x->layout), *cost = c->confirmed.found ? " that cost no more" : "";
    return arena_printf(a,
                        "%s%s keep%s every promise on paper and %s not simulated (%s): the best is %lld x %s, %s: %s/h",
                        text_count(n, (int64_t)s->n, "plan"), s->n == 1 && *cost ? " that costs no more" : cost,
                        s->n == 1 ? "s" : "", s->n == 1 ? "is" : "are", planner_skip_name(why), (long long)x->gpus,
                        c->device[x->device].hw->key, layout ? layout : "", plan_money(money, x->cost.usd_per_h));
}

/* By how much a figure on paper is below its promise; 1: there is none. */
static double below(double is_s, const struct planner_promise *p)
{
    return isnan(p->s) || isnan(is_s) ? 1 : 1 - is_s / p->s;
}

/* A promise that is kept by less than another run may differ; and runs too short for what is in flight. */
static void say_chance(struct out *o, const char *prefix, const struct plan_case *c)
{
    const struct planner_verified *v = &c->verified;
    const struct planner_promise *p[] = {&c->request.ttft, &c->request.tpot};
    const double is_s[] = {v->ttft_s, v->tpot_s}, error[] = {v->ttft_error_frac, v->tpot_error_frac};
    static const char *const NAME[] = {"TTFT", "TPOT"};
    char n[TEXT_COUNT_MAX];
    for (int k = 0; k < 2 && v->n; k++)
        if (below(is_s[k], p[k]) >= 0 && below(is_s[k], p[k]) < error[k]) /* NAN: never */
            plan_say(o, prefix,
                     "warning: %s %s is %.2g %% below its promise, and another run of as many requests may differ by "
                     "%.2g %%: whether it is kept is chance",
                     NAME[k], plan_part(p[k]), 100 * below(is_s[k], p[k]), 100 * error[k]);
    if (v->n && c->few > 0)
        plan_say(
            o, prefix,
            "warning: %s, the most that are simulated at one rate, fill the copies %.2g times, of 20 that percentiles "
            "should be of",
            text_count(n, (int64_t)c->work.n, "request"), c->few);
}

/* What part of a percentile paper may be too low by: 19 of 20 settings at .5 to .92 of what saturates them are nearer,
 * whatever is known of their simulation. Of drafts, pools, stages, groups and what is not simulated nobody has looked:
 * 0. MODEL.md "Steady state", Jumps. */
struct low {
    double tpot, ttft;
};

static struct low too_low(const struct planner_request *q, const struct planner_plan *x)
{
    static const struct low LOW[2][2] = {{{.08, .25}, {.08, .27}}, {{.08, .11}, {.08, .35}}}; /* [first][copies] */
    if (!q->server || x->prefill > 0 || x->gamma > 0 || x->layout.dp > 1 || x->layout.pp > 1 || planner_verifies(x))
        return (struct low){0, 0};
    return LOW[!q->server->mixed][x->layout.replicas > 1];
}

static void say_paper(struct out *o, const char *prefix, const struct plan_case *c)
{
    const struct planner_request *q = &c->request;
    const struct planner_point *x = &c->result.best[0].point;
    const char *then = c->unverified ? "this plan is not simulated" : "--verify simulates them";
    if (q->aim != PLANNER_SERVE) {
        plan_say(o, prefix, "note: on paper, not simulated: %s", then);
        return;
    }
    const struct planner_plan *best = &c->result.best[0];
    const struct planner_margin m = planner_margin_of(q, best);
    if (q->server && !q->server->mixed && best->layout.replicas > 1 && m.tpot > 1)
        plan_say(
            o, prefix,
            "note: prompts first, on copies behind a router: on paper TPOT is up to %.0f %% and TTFT up to %.0f %% "
            "too long, most where answers are short",
            100 * (m.tpot - 1), 100 * (m.ttft - 1));
    const double unseen = .25; /* said within it */
    const double ttft = below(x->ttft_s, &q->ttft), tpot = below(x->tpot_s, &q->tpot);
    const struct low low = too_low(q, best);
    const bool known = low.tpot > 0;
    const bool first = ttft / (known ? low.ttft : 1) < tpot / (known ? low.tpot : 1); /* of what it may be off by */
    const double least = first ? ttft : tpot, off = !known ? unseen : first ? low.ttft : low.tpot;
    const char *promise = plan_part(first ? &q->ttft : &q->tpot), *name = first ? "TTFT" : "TPOT";
    if (least < 0 || least >= off)
        plan_say(o, prefix, "note: percentiles are on paper, not simulated, and may be low near saturation: %s", then);
    else if (!known)
        plan_say(
            o, prefix,
            "warning: percentiles are on paper, not simulated, and by how much they are too low for such a plan is "
            "not known; %s %s is %.2g %% below its promise: %s",
            name, promise, 100 * least, then);
    else
        plan_say(
            o, prefix,
            "warning: percentiles are on paper, not simulated: TPOT may be %.0f %% too low, TTFT %.0f %%; %s %s is "
            "%.2g %% below its promise: %s",
            100 * low.tpot, 100 * low.ttft, name, promise, 100 * least, then);
}

void plan_doubts(struct arena *a, struct out *o, const struct plan_case *c, const char *prefix)
{
    const struct planner_plan *x = &c->result.best[0];
    const struct planner_confirmed *k = &c->confirmed;
    char money[UNITS_TEXT_MAX], n[TEXT_COUNT_MAX];
    bool skipped = false;
    say_gap(o, prefix, c);
    const char *few = plan_few_text(a, &c->request, &c->verified);
    if (few) plan_say(o, prefix, "warning: few requests: %s", few);
    say_chance(o, prefix, c);
    if (c->drawn) plan_say(o, prefix, "note: the trace has no times: Poisson arrivals at --rate");
    if (c->partly && c->verified.n)
        plan_say(
            o, prefix,
            "warning: %s, the most that are simulated, are %.2g periods of %s: whether promises are kept beyond them "
            "is not known",
            text_count(n, (int64_t)c->work.n, "request"), c->periods, units_format_time(money, c->period_s));
    if (k->flooded)
        plan_say(o, prefix, "%s that %s no more keep%s every promise at the mean rate and not at its heights",
                 text_count(n, (int64_t)k->flooded, "plan"), k->flooded == 1 ? "costs" : "cost",
                 k->flooded == 1 ? "s" : "");
    if (c->refuted)
        plan_say(o, prefix, "%s that cost no more kept every promise on paper and not when simulated",
                 text_count(n, c->refuted, "plan"));
    if (k->near_refuted)
        plan_say(o, prefix, "%s that cost no more missed on paper by less than it may be off, and when simulated",
                 text_count(n, (int64_t)k->near_refuted, "plan"));
    if (k->near_cut)
        plan_say(o, prefix, "of plans that miss on paper behind %s only the nearest of each cost was simulated",
                 text_count(n, c->simulations / 3, "simulation"));
    if (k->cut)
        plan_say(o, prefix,
                 "the search was cut: behind %s only the best plan of each cost was simulated, so a cheaper one may be "
                 "missed",
                 text_count(n, c->simulations, "simulation"));
    for (enum planner_skip s = 0; s < PLANNER_SKIPS; s++) {
        const char *text = plan_skipped_text(a, c, s);
        if (text) plan_say(o, prefix, "%s", text);
        skipped = skipped || text;
    }
    if (c->verified.n == 0) say_paper(o, prefix, c);
    plan_near(a, o, c, prefix);
    if (c->unverified && !skipped) plan_say(o, prefix, "not simulated: %s", c->unverified);
    plan_shares(o, c, prefix);
    if (c->source > 0)
        plan_say(
            o, prefix,
            "note: in front of every prompt %s of a source, which the encoder reads once, whole, in the step of the "
            "prompt; of tokens in they are counted",
            text_count(n, c->source, "token"));
    const char *cache = stored_cache_note(c->format[x->format].model);
    if (cache && !(c->server && c->runs == EMIT_TRTLLM)) plan_say(o, prefix, "note: %s", cache);
    if (x->estimated) plan_say(o, prefix, "note: nobody measured such a layout; its times are estimates");
    if (c->adapters.served.slots > 0)
        plan_say(o, prefix,
                 "note: weights hold %s for adapters of rank %lld, which %lld alike share; their kernels are "
                 "not measured",
                 text_count(n, c->adapters.served.slots, "slot"), (long long)c->adapters.served.rank,
                 (long long)c->adapters.served.among);
    if (!x->estimated && x->layout.dcp > 1 && c->request.fidelity == PLANNER_CALIBRATED)
        plan_say(o, prefix,
                 "note: no server whose ranks share a context was measured: its kernels and collectives are, one by "
                 "one");
}
