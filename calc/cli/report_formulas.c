/* report_formulas -- what a step and a prompt of the winner cost, derived from the operators that its times are of. */
#include <math.h>

#include "calc/cli/explain_page.h"
#include "calc/cli/report.h"
#include "calc/learn/derive.h"

/* "llama-3.1-70b" on one rank of a copy: symbols beside numbers. */
static enum err_code derive(struct report *r, const struct planner_plan *x, const char *topic,
                            enum quantity_phase phase, int64_t batch, int64_t context, struct derivation *out,
                            struct err *e)
{
    struct quantity_scope numbers, symbols;
    TRY(quantity_open(r->arena, NULL, false, &numbers, e));
    numbers.model = r->c->format[x->format].model;
    numbers.tp = x->layout.tp;
    numbers.fidelity = r->c->request.fidelity == PLANNER_BOUND ? STEP_BOUND : STEP_ROOFLINE;
    TRY(quantity_device(&numbers, r->c->device[x->device].hw, e));
    symbols = numbers;
    symbols.sizes = QUANTITY_SYMBOLS;
    symbols.rates = rates_make(symbols.c);
    const struct derive_request q = {
        .symbols = &symbols, .numbers = &numbers, .phase = phase, .batch = batch, .context = context};
    return derive_topic(&q, topic, out, e);
}

static enum err_code write_page(struct report *r, const char *heading, const struct planner_plan *x, const char *topic,
                                enum quantity_phase phase, int64_t batch, int64_t context, struct err *e)
{
    struct derivation d;
    struct out *page;
    struct err why = {0};
    out_printf(r->o, "<h3>%s</h3>\n", heading);
    const enum err_code code = derive(r, x, topic, phase, batch, context, &d, &why);
    if (code == ERR_NOMEM) return err_nomem(e);
    if (code != ERR_OK) { /* no algebra library, a model without such a pass */
        out_str(r->o, "<p>");
        report_put(r->o, "Left out: %s.", why.text);
        out_str(r->o, "</p>\n");
        return ERR_OK;
    }
    TRY(out_memory(r->arena, &page, e));
    TRY(explain_page_text(r->arena, page, &d, e));
    const char *text = out_text(page, NULL);
    if (!text) return err_nomem(e);
    out_str(r->o, "<pre>");
    report_text(r->o, text);
    out_str(r->o, "</pre>\n");
    return ERR_OK;
}

enum err_code report_formulas(struct report *r, struct err *e)
{
    const struct planner_plan *x = r->best ? r->best : r->curves.n ? r->curves.curve[0].plan : NULL;
    const struct planner_traffic *t = &r->c->request.traffic;
    report_section(r->o, "formulas", "Formulas");
    if (!x) {
        out_str(r->o, "<p>Left out: no layout came near enough to have a step.</p>\n");
        return ERR_OK;
    }
    out_str(r->o,
            "<p>Generated from the operators that every floor is summed over, as <code>ridge explain</code> prints "
            "them; a calibrated time prices the same operators by measured kernels. Symbols first, then the model's "
            "numbers.</p>\n");
    if (x->layout.dp > 1 || x->layout.ep > 1 || x->layout.pp > 1)
        out_str(r->o,
                "<p>Of the tensor-parallel ranks alone: what stages, attention groups and experts in parts change is "
                "derived by <code>ridge explain layouts</code>.</p>\n");
    if (x->layout.dcp > 1)
        out_str(r->o,
                "<p>Of ranks that have all of a context: what sharing it by tokens changes is derived by <code>ridge "
                "explain layouts</code>.</p>\n");
    const double groups = (double)x->layout.dp, batch = x->point.batch > 0 ? x->point.batch / groups : 1;
    TRY(write_page(r, "A decode step, at the mean batch and context", x, "decode_step", QUANTITY_DECODE,
                   (int64_t)fmax(1, round(batch)), (int64_t)fmax(1, round(t->context_tokens)), e));
    return write_page(r, "The prefill of a mean prompt, alone", x, "prefill", QUANTITY_PREFILL, 1,
                      (int64_t)fmax(1, round(t->prompt_tokens)), e);
}
