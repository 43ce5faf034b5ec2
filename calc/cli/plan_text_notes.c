/* plan_text_notes -- behind the answer of `ridge plan`: why others fail, and what all of it assumes, each note once. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/plan_parts.h"

static const char IN[] = "  ", DEEPER[] = "    ";

static const char *formats_text(struct arena *a, const struct planner_format *f)
{
    return arena_printf(a, "%s%s%s%s", f->weights ? " weights " : "", f->weights ? f->weights : "", f->kv ? " KV " : "",
                        f->kv ? f->kv : "");
}

/* What kept every promise on paper and not when it was simulated, where nothing did. */
static void write_refuted(struct arena *a, struct out *o, const struct plan_case *c)
{
    const struct planner_confirmed *k = &c->confirmed;
    char s[UNITS_TEXT_MAX];
    if (c->result.best_n > 0 || k->near_n == 0) return;
    out_str(o, "\nrefuted when simulated: the nearest\n");
    for (size_t i = 0; i < k->near_n; i++) {
        const struct planner_plan *x = &k->near[i].plan;
        const char *why = plan_refuted_text(a, c, &k->near[i]), *layout = plan_layout_words(a, &x->layout),
                   *formats = formats_text(a, &c->format[x->format]);
        plan_say(o, IN, "%lld x %s, %s%s, %s/h: %s", (long long)x->gpus, c->device[x->device].hw->key,
                 layout ? layout : "", formats ? formats : "", plan_money(s, x->cost.usd_per_h), why ? why : "");
    }
}

static const struct {
    enum planner_verdict verdict;
    const char *what;
} REASONS[] = {{PLANNER_SHORT, "too little memory"},
               {PLANNER_SLOW_TPOT, "too slow for one request alone (TPOT)"},
               {PLANNER_SLOW_TTFT, "too slow for one request alone (TTFT)"},
               {PLANNER_SATURATED, "too few requests served: queues would grow for ever"},
               {PLANNER_LATE_TPOT, "TPOT too long at this rate"},
               {PLANNER_LATE_TTFT, "TTFT too long at this rate"},
               {PLANNER_LATE_JOB, "done after the deadline"},
               {PLANNER_ILLEGAL, "no possible layout"}};

/* The nearest of a kind on a device, with its reason; NULL: no memory. */
static const char *nearest_text(struct arena *a, const struct plan_case *c, const struct planner_plan *x)
{
    const char *why = plan_reason(a, c, x), *layout = plan_layout_words(a, &x->layout),
               *formats = formats_text(a, &c->format[x->format]);
    char clean[320], ahead[48] = "";
    if (x->prefill > 0) (void)snprintf(ahead, sizeof ahead, " in two pools");
    if (x->gamma > 0) (void)snprintf(ahead, sizeof ahead, " %lld drafted", (long long)plan_drafted(c, x));
    return layout && formats ? arena_printf(a, "%s%s%s: %s", layout, formats, ahead,
                                            why ? text_clean(clean, sizeof clean, why, strlen(why)) : "")
                             : NULL;
}

/* Of one kind, a line for each device; devices of which the same is to be said are in one. */
static enum err_code write_reason(struct arena *a, struct out *o, const struct plan_case *c, size_t kind, struct err *e)
{
    const size_t n = c->request.devices_n;
    const char **text = arena_array(a, n, sizeof *text);
    bool said = false;
    if (!text) return err_nomem(e);
    for (size_t d = 0; d < n; d++) {
        const struct planner_tally *t = &c->result.tally[d][REASONS[kind].verdict];
        text[d] = t->n ? nearest_text(a, c, &t->nearest) : NULL;
        if (t->n && !text[d]) return err_nomem(e);
    }
    for (size_t d = 0; d < n; d++) {
        const char *all = "", *of = text[d];
        for (size_t k = d; of && k < n && all; k++) {
            if (!text[k] || strcmp(text[k], of) != 0) continue;
            all = arena_printf(a, "%s%s%s: %zu", all, *all ? ", " : "", c->device[k].hw->key,
                               c->result.tally[k][REASONS[kind].verdict].n);
            text[k] = NULL;
        }
        if (!of) continue;
        if (!all) return err_nomem(e);
        if (!said) plan_say(o, IN, "%s", REASONS[kind].what);
        said = true;
        plan_say(o, DEEPER, "%s; %s", all, of);
    }
    return ERR_OK;
}

static enum err_code write_reasons(struct arena *a, struct out *o, const struct plan_case *c, struct err *e)
{
    const char *dearer = "";
    out_printf(o, "\n%s: how many, and the nearest of each\n",
               c->result.best_n > 0 ? "why others fail" : "why nothing keeps the promises");
    for (size_t k = 0; k < sizeof REASONS / sizeof *REASONS; k++) TRY(write_reason(a, o, c, k, e));
    for (size_t d = 0; d < c->request.devices_n && dearer; d++)
        if (c->result.tally[d][PLANNER_DEARER].n)
            dearer = arena_printf(a, "%s%s%s: %zu", dearer, *dearer ? ", " : "", c->device[d].hw->key,
                                  c->result.tally[d][PLANNER_DEARER].n);
    if (!dearer) return err_nomem(e);
    if (*dearer)
        plan_say(o, IN, "dearer than a plan that keeps every promise%s",
                 c->result.best_n > 0 ? "" : " on paper, and not looked at");
    if (*dearer) plan_say(o, DEEPER, "%s", dearer);
    return ERR_OK;
}

static void write_prices(struct out *o, const struct plan_case *c)
{
    bool listed = false, own = false;
    for (size_t d = 0; d < c->request.devices_n; d++) {
        const struct price *p = &c->device[d].price;
        own = own || p->own;
        listed = listed || (!p->own && !isnan(p->usd_per_h));
        if (isnan(p->usd_per_h))
            plan_say(o, IN, "note: no price of %s is known (--price FILE): its plans are ranked behind, by GPUs",
                     c->device[d].hw->key);
    }
    if (listed || own)
        plan_say(o, IN, "prices: %s%s%s", own ? "your file" : "", own && listed ? ", else " : "",
                 !listed ? ""
                 : own   ? "list prices of one hour on demand (configs/hardware)"
                         : "list prices of one hour on demand (configs/hardware; --price FILE)");
}

enum err_code plan_text_notes(struct arena *a, struct out *o, const struct plan_case *c, struct err *e)
{
    const struct planner_request *q = &c->request;
    const bool found = c->result.best_n > 0;
    char n[TEXT_COUNT_MAX];
    const char *devices = "";
    write_refuted(a, o, c);
    TRY(write_reasons(a, o, c, e));
    out_str(o, "\nassumptions and notes\n");
    for (size_t d = 0; d < q->devices_n && devices; d++)
        devices = arena_printf(a, "%s%s%s", devices, d ? ", " : "", c->device[d].hw->key);
    if (!devices) return err_nomem(e);
    plan_say(o, IN, "%s looked at on %s", text_count(n, (int64_t)c->result.candidates, "candidate"), devices);
    if (!found) plan_times_doubts(o, IN, c);
    plan_times_say(o, IN, c);
    TRY(plan_devices_doubts(a, o, IN, c, -1, found ? (int)c->result.best[0].device : -1, e));
    write_prices(o, c);
    if (found && !isnan(c->result.best[0].cost.joule_per_tok) && q->aim != PLANNER_JOB)
        plan_say(o, IN, "energy: full power assumed in prefill, 0.6 of it in decode, 0.15 idle; GPUs alone, no host");
    if (!found)
        plan_say(o, IN, "%s",
                 plan_layout_legend(layout_routed(c->format[0].model) != NULL, option_given(c->options, "dcp")));
    return ERR_OK;
}
