/* The numbers of a derivation at a point. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/learn/derive_page.h"

static void put_text(struct derive_page *p, const char *label, const char *text)
{
    derive_page_put(p, (struct derive_line){.label = label, .text = text});
}

/* ---- amounts and the ridge ---- */

/* The unit that most flops are of: the device's matrix unit of the operator with most of them; vector without any. */
static enum err_code main_unit(struct derive_page *p, const struct quantity_topic *with, enum hw_dtype *out)
{
    double most = 0, flops;
    *out = HW_FP32_VECTOR;
    for (size_t i = 0; i < with->pass.ops.n; i++) {
        const struct cost_op *op = &with->pass.ops.op[i];
        TRY(derive_page_value(p, op->flops, &flops));
        flops *= (double)op->count;
        if (!(flops > most) || !hw_dtype_find(with->pass.timed[i].unit, out)) continue;
        most = flops;
    }
    return ERR_OK;
}

static enum err_code put_amounts(struct derive_page *p, const struct quantity_topic *with)
{
    char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], c[UNITS_TEXT_MAX];
    double flops, vector, bytes;
    enum hw_dtype unit;
    TRY(derive_page_value(p, with->total.flops, &flops));
    TRY(derive_page_value(p, with->total.vector_flops, &vector));
    TRY(derive_page_value(p, with->bytes, &bytes));
    const double work = flops > 0 ? flops : vector, intensity = work / bytes;
    if (!(bytes > 0)) return ERR_OK;
    if (!(work > 0)) {
        put_text(p, "amounts", derive_page_text(p, "%s, no FLOPs", units_format_bytes(b, bytes)));
        return ERR_OK;
    }
    put_text(p, "amounts",
             derive_page_text(p, "%s%s, %s: %s", units_format_flops(a, work), flops > 0 ? "" : " elementwise",
                              units_format_bytes(b, bytes), units_format(c, UNITS_FLOPS_PER_BYTE, intensity)));
    const struct hw *hw = p->q->numbers->hw;
    if (!hw || !with->time_known) return ERR_OK;
    TRY(main_unit(p, with, &unit));
    const double ridge = hw_ridge(hw, unit);
    if (isnan(ridge)) return ERR_OK;
    const bool memory = intensity < ridge;
    put_text(p, "ridge",
             derive_page_text(p, "%s, %s: %.1f flops/byte, so %s-bound (factor %.3g)", derive_page_clean(p, hw->name),
                              hw_dtype_name(unit), ridge, memory ? "memory" : "compute",
                              memory ? ridge / intensity : intensity / ridge));
    return ERR_OK;
}

/* ---- seconds ---- */

struct share {
    const struct cost_op *op;
    const char *by; /* the resource that binds */
    double one_s, share_frac;
};

static enum err_code binding_resource(struct derive_page *p, const struct timed *t, const char **out)
{
    static const char *const NAMES[] = {"compute", "vector", "memory", "link"};
    const struct sym *const part[] = {t->compute_s, t->vector_s, t->memory_s, t->link_s};
    double most = -1, v;
    *out = "";
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
        TRY(derive_page_value(p, part[i], &v));
        if (!(v > most)) continue;
        most = v;
        *out = NAMES[i];
    }
    return ERR_OK;
}

static int by_share(const void *x, const void *y)
{
    const struct share *a = x, *b = y;
    if (a->share_frac > b->share_frac || a->share_frac < b->share_frac) return a->share_frac > b->share_frac ? -1 : 1;
    return a->op < b->op ? -1 : a->op > b->op; /* as they are run */
}

/* Operators by their share of the time, largest first; those below half a per cent together. */
static enum err_code put_shares(struct derive_page *p, const struct quantity_topic *with, double whole_s)
{
    char text[UNITS_TEXT_MAX];
    const size_t n = with->pass.ops.n;
    const struct model *m = with->pass.model;
    struct share *list = arena_array(p->a, n, sizeof *list);
    if (!list) return err_nomem(p->e);
    for (size_t i = 0; i < n; i++) {
        list[i].op = &with->pass.ops.op[i];
        TRY(derive_page_value(p, with->pass.timed[i].time_s, &list[i].one_s));
        list[i].share_frac = list[i].one_s * (double)list[i].op->count / whole_s;
        TRY(binding_resource(p, &with->pass.timed[i], &list[i].by));
    }
    qsort(list, n, sizeof *list, by_share);
    double rest = 0;
    size_t small = 0;
    for (size_t i = 0; i < n; i++) {
        const struct cost_op *op = list[i].op;
        if (list[i].share_frac < 0.005) {
            rest += list[i].share_frac;
            small++;
            continue;
        }
        const bool several = with->whole && m->kinds_n > 1 && op->kind_index >= 0;
        const char *kind = several ? derive_page_text(p, "  layer kind %d", op->kind_index + 1) : "";
        put_text(p, derive_page_text(p, "%9.1f %%", 100 * list[i].share_frac),
                 derive_page_text(p, "%-18s %3lld x %-9s  %s%s", op->name, (long long)op->count,
                                  units_format_time(text, list[i].one_s), list[i].by, kind));
    }
    if (small)
        put_text(p, derive_page_text(p, "%9.1f %%", 100 * rest), derive_page_text(p, "%zu others together", small));
    return ERR_OK;
}

static enum err_code put_times(struct derive_page *p, const struct quantity_topic *with)
{
    char text[UNITS_TEXT_MAX];
    const char *by = "";
    double whole, part[3];
    TRY(derive_page_value(p, with->total.time_s, &whole));
    units_format_time(text, whole);
    if (with->pass.ops.n == 1) {
        TRY(binding_resource(p, &with->pass.timed[0], &by));
        put_text(p, "time", derive_page_text(p, "%s, bound by %s", text, by));
        return ERR_OK;
    }
    if (!with->whole || p->q->numbers->fidelity == STEP_ROOFLINE) {
        put_text(p, "time", derive_page_text(p, "%s: the sum of its operators", text));
        return whole > 0 ? put_shares(p, with, whole) : ERR_OK;
    }
    const struct sym *const of[] = {with->total.compute_s, with->total.memory_s, with->total.link_s};
    for (size_t i = 0; i < 3; i++) TRY(derive_page_value(p, of[i], &part[i]));
    by = part[2] > part[0] && part[2] > part[1] ? "link" : part[0] > part[1] ? "compute" : "memory";
    put_text(p, "time", derive_page_text(p, "%s, bound by %s", text, by));
    return ERR_OK;
}

enum err_code derive_point(struct derive_page *p, const struct quantity_topic *with)
{
    const struct derive_request *q = p->q;
    const char *extent = with->whole ? "the whole model" : "one layer";
    double v;
    TRY(derive_page_value(p, with->bytes, &v));
    if (isnan(v)) return ERR_OK; /* symbols are left */
    if (with->pass.ops.n && with->pass.ops.op[0].kind_index < 0 && !with->whole) extent = "once in a pass";
    if (with->prompt) extent = "one prompt through the whole model";
    if (q->numbers->tp > 1) extent = derive_page_text(p, "%s, one of %lld ranks", extent, (long long)q->numbers->tp);
    const char *batch = with->prompt ? "" : derive_page_text(p, "B = %lld, ", (long long)q->batch);
    const struct model_encoder *x = q->numbers->model ? &q->numbers->model->encoder : NULL;
    const bool encodes = with->prompt && x && x->layers > 0;
    const char *at =
        encodes ? derive_page_text(p, "X = %lld, T = %lld", (long long)x->source_tokens, (long long)x->start_tokens)
                : derive_page_text(p, "S = %lld, T = %.0f", (long long)q->context, derive_page_tokens(p));
    derive_page_begin(p, derive_page_text(p, "at %s%s, %s", batch, at, extent), NULL);
    TRY(put_amounts(p, with));
    return q->numbers->hw && with->time_known ? put_times(p, with) : ERR_OK;
}
