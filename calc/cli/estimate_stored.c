/* estimate_stored -- what the config explains against what the checkpoint holds. */
#include <math.h>
#include <stdio.h>

#include "calc/base/units.h"
#include "calc/cli/estimate.h"

static enum err_code add_note(struct arena *a, struct model *m, const char *what, double holds, double explains,
                              struct err *e)
{
    char h[UNITS_TEXT_MAX], x[UNITS_TEXT_MAX], d[UNITS_TEXT_MAX];
    if (fabs(holds - explains) < 0.5) return ERR_OK;
    m->notes =
        arena_printf(a, "%s%sthe checkpoint holds %s %s, the config explains %s (%s %s)", m->notes ? m->notes : "",
                     m->notes ? "; " : "", units_format_digits(h, holds), what, units_format_digits(x, explains),
                     units_format_digits(d, fabs(holds - explains)), holds > explains ? "more" : "fewer");
    return m->notes ? ERR_OK : err_nomem(e);
}

/* What a checkpoint may hold: the model, with or without its tower and its multi-token modules. The sum that comes
 * nearest to `holds`; *modules: whether they are in it. */
static double nearest(double holds, double model, double tower, double mtp, bool *modules)
{
    const double beside[] = {tower, 0};
    double best = model + mtp + tower;
    *modules = mtp > 0;
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 2; k++) {
            const double sum = model + beside[i] + (k ? 0 : mtp);
            if (!(fabs(holds - sum) < fabs(holds - best))) continue;
            best = sum;
            *modules = k == 0 && mtp > 0;
        }
    return best;
}

/* Formats that the file leaves open, when nothing else was named. */
static enum err_code note_formats(struct arena *a, const struct estimate_request *q, struct model *m, struct err *e)
{
    const bool fp32 = m->weights[WEIGHT_OTHER].bits > 16;
    if (!m->formats_assumed || q->weights || (fp32 && q->kv)) return ERR_OK;
    m->notes = arena_printf(a, "%s%s%s", m->notes ? m->notes : "", m->notes ? "; " : "", m->formats_assumed);
    return m->notes ? ERR_OK : err_nomem(e);
}

enum err_code estimate_note_stored(struct arena *a, const struct estimate_request *q, struct estimate_case *c,
                                   struct err *e)
{
    static const struct cost_conventions PLAIN = {0};
    struct model *m = &c->model;
    struct cost_parameters p;
    double bytes;
    bool modules = true;
    const double tower =
        (isnan(m->tower.params) ? 0 : m->tower.params) + (isnan(m->audio.params) ? 0 : m->audio.params);
    struct model all = *m;
    all.towerless = false;
    const struct model_beside beside = model_beside(&all);
    const double tower_bytes = model_beside_bytes(&beside, 1);
    if (m->stored_plain && !isnan(m->stored_elems)) {
        TRY(cost_parameters(a, m, &PLAIN, &p, e));
        const double explains = nearest(m->stored_elems, p.total, tower, c->beside.mtp_params, &modules);
        TRY(add_note(a, m, "parameters", m->stored_elems, explains, e));
    }
    if (!q->weights && !m->weights_unknown && !isnan(m->stored_bytes)) { /* in the formats that are stored */
        TRY(estimate_weight_bytes(a, m, &bytes, e));
        const double explains = nearest(m->stored_bytes, bytes, tower_bytes, c->beside.mtp_bytes, &modules);
        TRY(add_note(a, m, "bytes", m->stored_bytes, explains, e));
    }
    TRY(note_formats(a, q, m, e));
    if (modules || !(c->beside.mtp_params > 0)) return ERR_OK;
    c->beside.mtp_params = c->beside.mtp_bytes = 0;
    m->notes = arena_printf(a, "%s%sthe checkpoint does not hold the multi-token modules that the config names",
                            m->notes ? m->notes : "", m->notes ? "; " : "");
    return m->notes ? ERR_OK : err_nomem(e);
}
