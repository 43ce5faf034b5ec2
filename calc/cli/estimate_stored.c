/* estimate_stored -- what the config explains against what the checkpoint holds. */
#include <math.h>
#include <stdio.h>

#include "calc/base/units.h"
#include "calc/cli/estimate.h"

/* Bytes of the whole model's weights as its formats have them. */
static enum err_code explained_bytes(struct arena *a, const struct model *m, double *out, struct err *e)
{
    static const struct cost_conventions PLAIN = {0};
    struct sym_ctx *c = sym_open(a);
    struct cost_ops ops;
    if (!c) return err_nomem(e);
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_pass pass = {.name = "decode", .B = y.B, .T = sym_int(c, 1), .S = y.S, .absorbed = true};
    TRY(cost_build(a, c, &y, m, &PLAIN, &pass, 1, &ops, e));
    TRY(cost_bind(c, &y, m, 1, &ops, e));
    const struct sym *bytes = cost_weight_bytes(c, &ops, &PLAIN);
    TRY(sym_check(c, e));
    return sym_constant(bytes, out) ? ERR_OK : err_set(e, ERR_RANGE, "the bytes of the weights are no number");
}

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

enum err_code estimate_note_stored(struct arena *a, const struct estimate_request *q, struct model *m, struct err *e)
{
    static const struct cost_conventions PLAIN = {0};
    struct cost_parameters p;
    double bytes;
    if (m->stored_plain && !isnan(m->stored_elems)) {
        TRY(cost_parameters(a, m, &PLAIN, &p, e));
        TRY(add_note(a, m, "parameters", m->stored_elems, p.total, e));
    }
    if (q->weights || m->weights_unknown || isnan(m->stored_bytes)) return ERR_OK; /* other formats than the stored */
    TRY(explained_bytes(a, m, &bytes, e));
    return add_note(a, m, "bytes", m->stored_bytes, bytes, e);
}
