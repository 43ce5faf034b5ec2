/* plan_times -- how steps are timed, and on which devices those times are less sure. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/cli/plan_parts.h"
#include "calc/cli/transfers.h"

const char *plan_kernels(const struct plan_case *c)
{
    const struct planner_request *q = &c->request;
    for (size_t d = 0; d < q->devices_n; d++)
        if (q->device[d].efficiency && !q->framework) return "what their files name";
    bool own = q->devices_n > 0; /* each fitted to its own kernels, of no engine */
    for (size_t d = 0; d < q->devices_n && own; d++) own = c->device[d].hw->fitted != NULL;
    if (own && !q->framework && !q->server) return "ridge (its own fit: ridge fit --from store)";
    return q->server ? q->server->name : q->framework ? q->framework : "vllm";
}

/* What the band of a device's steps was, of its best plan, else of a nearest one; 0: none was solved in one node. */
static double slower_on(const struct plan_case *c, size_t device)
{
    for (size_t i = 0; i < c->result.best_n; i++) {
        const struct planner_plan *x = &c->result.best[i];
        if (x->device == device && x->slower > 0 && !x->estimated) return x->slower;
    }
    for (size_t k = 0; k < PLANNER_VERDICTS; k++) {
        const struct planner_tally *t = &c->result.tally[device][k];
        if (t->known && t->nearest.slower > 0 && !t->nearest.estimated) return t->nearest.slower;
    }
    return 0;
}

/* Whether a note is about a device. */
static bool about(const struct plan_case *c, size_t d, int only, int except)
{
    return d < c->request.devices_n && (only < 0 || (size_t)only == d) && (except < 0 || (size_t)except != d);
}

/* The names of those that are marked; NULL: no memory. */
static const char *names_of(struct arena *a, const struct plan_case *c, const bool *marked)
{
    const char *all = "";
    for (size_t d = 0; d < c->request.devices_n && all; d++)
        if (marked[d]) all = arena_printf(a, "%s%s%s", all, *all ? ", " : "", c->device[d].hw->key);
    return all;
}

static enum err_code say_hosts(struct arena *a, struct out *o, const char *prefix, const struct plan_case *c,
                               const bool *of, struct err *e)
{
    const struct planner_request *q = &c->request;
    bool *marked = arena_array(a, q->devices_n, sizeof *marked), any = false;
    if (!marked) return err_nomem(e);
    if (!q->server) return ERR_OK;
    for (size_t d = 0; d < q->devices_n; d++) {
        marked[d] = of[d] && !engine_measured_on(q->server, c->device[d].hw);
        any = any || marked[d];
    }
    if (!any) return ERR_OK;
    const char *names = names_of(a, c, marked), *note = names ? engine_devices_note(a, q->server, names) : NULL;
    if (!note) return err_nomem(e);
    plan_say(o, prefix, "note: %s", note);
    return ERR_OK;
}

/* Devices whose kernels nobody measured, those together for which the same stand. */
static enum err_code say_transfers(struct arena *a, struct out *o, const char *prefix, const struct plan_case *c,
                                   const bool *of, struct err *e)
{
    const struct planner_request *q = &c->request;
    struct transfer *t = arena_array(a, q->devices_n, sizeof *t);
    bool *marked = arena_array(a, q->devices_n, sizeof *marked), *said = arena_array(a, q->devices_n, sizeof *said);
    if (!t || !marked || !said) return err_nomem(e);
    for (size_t d = 0; d < q->devices_n; d++) {
        said[d] = !of[d];
        if (!of[d]) continue;
        TRY(transfer_of(a, c->device[d].hw, c->device[d].efficiency, q->server ? q->server->name : q->framework, &t[d],
                        e));
        if (c->device[d].efficiency)
            plan_say(o, prefix, "times of %s first by %s", c->device[d].hw->key, c->device[d].efficiency);
        said[d] = t[d].kind == SOURCE_OWN;
    }
    for (size_t d = 0; d < q->devices_n; d++) {
        if (said[d]) continue;
        for (size_t k = 0; k < q->devices_n; k++) {
            marked[k] = !said[k] && t[k].kind == t[d].kind && strcmp(t[k].device, t[d].device) == 0 &&
                        !(fabs(t[k].low - t[d].low) > 0) && !(fabs(t[k].high - t[d].high) > 0);
            said[k] = said[k] || marked[k];
        }
        const char *names = names_of(a, c, marked), *text = names ? transfer_words(a, &t[d], names) : NULL;
        if (!text) return err_nomem(e);
        plan_say(o, prefix, "note: %s", text);
    }
    return ERR_OK;
}

/* Devices whose steps are taken otherwise than those of the server are. */
static void say_bands(struct out *o, const char *prefix, const struct plan_case *c, const bool *of)
{
    enum { SHOWN = 3 }; /* digits */
    const struct planner_request *q = &c->request;
    char said[32], own[32];
    if (!q->p90) return;
    (void)snprintf(said, sizeof said, "%.*g", SHOWN,
                   q->server ? fmax(1, q->server->slow_p90[engine_has_experts(q->format[0].model)]) : 0);
    for (size_t d = 0; d < q->devices_n; d++) {
        const double slower = of[d] ? slower_on(c, d) : 0;
        (void)snprintf(own, sizeof own, "%.*g", SHOWN, slower);
        if (!(slower > 0) || strcmp(said, own) == 0) continue;
        plan_say(o, prefix, "note: on %s steps take %s times what is predicted%s", c->device[d].hw->key, own,
                 q->server && !engine_measured_on(q->server, c->device[d].hw)
                     ? ": no server was measured there, so the band is that of its kernels"
                     : "");
    }
}

enum err_code plan_devices_doubts(struct arena *a, struct out *o, const char *prefix, const struct plan_case *c,
                                  int only, int except, struct err *e)
{
    bool *of = arena_array(a, c->request.devices_n, sizeof *of);
    if (!of) return err_nomem(e);
    if (c->request.fidelity != PLANNER_CALIBRATED) return ERR_OK;
    for (size_t d = 0; d < c->request.devices_n; d++) of[d] = about(c, d, only, except);
    TRY(say_hosts(a, o, prefix, c, of, e));
    TRY(say_transfers(a, o, prefix, c, of, e));
    say_bands(o, prefix, c, of);
    return ERR_OK;
}

void plan_times_doubts(struct out *o, const char *prefix, const struct plan_case *c)
{
    const struct planner_request *q = &c->request;
    if (q->fidelity != PLANNER_CALIBRATED)
        plan_say(o, prefix, "warning: times are floors (%s): not a promise, servers are 2-4x slower",
                 q->fidelity == PLANNER_ROOFLINE ? "roofline" : "bound");
    else if (!q->p90)
        plan_say(o, prefix, "warning: steps as predicted (--band p50): half of %s take longer",
                 q->server ? "its services" : "them");
}

void plan_times_say(struct out *o, const char *prefix, const struct plan_case *c)
{
    char first[UNITS_TEXT_MAX], terms[ENGINE_TEXT];
    const struct planner_request *q = &c->request;
    bool nodes = false;
    for (size_t d = 0; d < q->devices_n; d++) nodes = nodes || c->device[d].most > c->device[d].per_node;
    if (q->fidelity != PLANNER_CALIBRATED) return;
    if (q->server) {
        plan_say(o, prefix, "steps of %s's server: %s", q->server->name,
                 engine_terms_text(q->server, q->overlapped, terms));
        if (q->p90)
            plan_say(o, prefix, "taken %.3g times as long: nine in ten of its published TPOT are within that",
                     fmax(1, q->server->slow_p90[engine_has_experts(q->format[0].model)]));
        if (q->aim == PLANNER_SERVE)
            plan_say(o, prefix, "TTFT has the %s that a first token takes beside its steps",
                     units_format_time(first, engine_first_s(q->traffic.asked_tokens)));
    } else {
        plan_say(o, prefix, "times calibrated, %s of their band, kernels and steps of %s",
                 q->p90 ? "at P90" : "the median", plan_kernels(c));
    }
    if (nodes) plan_say(o, prefix, "PP and TP over several nodes: estimated, by the ratio of floors");
}
