#include "calc/learn/sensitivity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/sym/gradient.h"

#define X(field, text, meaning) +1
enum { SYMBOLS_MAX = 0 COST_SYMBOLS(X) + RATES_N, ROUND = 2000 };
#undef X

struct variable {
    struct sym_at at;
    const char *meaning; /* NULL: a layout and no size, so no row */
};

/* The point: B, S, T as numbers, sizes and widths as 1 (times their numbers), rates as the device's. */
static size_t list_point(const struct quantity_scope *s, const struct quantity_scope *numbers,
                         enum quantity_phase phase, int64_t batch, int64_t context, struct variable *out)
{
    const struct cost_symbols *y = &s->y;
    const struct {
        const struct sym *var;
        const char *meaning;
    } all[] = {
#define X(field, text, meaning_) {y->field, meaning_},
        COST_SYMBOLS(X)
#undef X
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        double value = 1;
        if (all[i].var == y->B) value = (double)batch;
        if (all[i].var == y->S) value = (double)context;
        if (all[i].var == y->T) value = phase == QUANTITY_DECODE ? 1 : (double)context;
        const bool layout = all[i].var == y->t || all[i].var == y->r;
        out[n++] = (struct variable){{all[i].var, value}, layout ? NULL : all[i].meaning};
    }
    for (size_t i = 0; i < RATES_N; i++) {
        const char *meaning;
        double value;
        const struct sym *var = rates_list(&s->rates, i, &meaning);
        if (sym_constant(rates_list(&numbers->rates, i, &meaning), &value))
            out[n++] = (struct variable){{var, value}, meaning};
    }
    return n;
}

static enum err_code find_quantity(const struct quantity_scope *s, enum quantity_phase phase, const char *name,
                                   const struct sym **out, enum units_kind *unit, struct err *e)
{
    struct quantity_named named[QUANTITY_NAMED_MAX];
    struct quantity_topic topic;
    size_t n;
    TRY(quantity_named_all(s, named, &n, e));
    for (size_t i = 0; i < n; i++)
        if (strcmp(named[i].name, name) == 0) {
            *out = named[i].value;
            *unit = named[i].unit;
            return ERR_OK;
        }
    TRY(quantity_topic(s, name, phase, &topic, e));
    if (!topic.time_known)
        return err_set(e, ERR_INPUT, "%s: no peak rate is known, so no time can be given", s->hw->file);
    *out = topic.total.time_s;
    *unit = UNITS_SECONDS;
    return ERR_OK;
}

static int by_magnitude(const void *x, const void *y)
{
    const struct sensitivity_row *a = x, *b = y;
    const double p = fabs(a->elasticity), q = fabs(b->elasticity);
    if (p > q || p < q) return p > q ? -1 : 1;
    return strcmp(a->symbol, b->symbol);
}

static bool occurs(const struct quantity_scope *s, const struct sym *e, const struct sym *var)
{
    const struct sym_binding one = {var, sym_int(s->c, 1)};
    return sym_bind(s->c, e, &one, 1) != e;
}

enum err_code sensitivity_of(const struct quantity_scope *scope, enum quantity_phase phase, const char *quantity,
                             int64_t batch, int64_t context, struct sensitivity *out, struct err *e)
{
    struct quantity_scope s = *scope;
    struct variable var[SYMBOLS_MAX];
    struct sym_at at[SYMBOLS_MAX];
    double elasticity[SYMBOLS_MAX];
    const struct sym *expr = NULL;
    struct sensitivity r = {.quantity = quantity};
    if (!s.model) return err_set(e, ERR_USAGE, "a sensitivity is at a point: name a model (-m)");
    s.sizes = QUANTITY_RELATIVE;
    s.rates = rates_make(s.c);
    TRY(find_quantity(&s, phase, quantity, &expr, &r.unit, e));
    if (!s.hw && (r.unit == UNITS_SECONDS || r.unit == UNITS_TOK_PER_S || r.unit == UNITS_FLOPS_PER_BYTE))
        return err_set(e, ERR_USAGE, "%s depends on a device: name one (-g)", quantity);
    const size_t n = list_point(&s, scope, phase, batch, context, var);
    for (size_t i = 0; i < n; i++) at[i] = var[i].at;
    TRY(sym_elasticity(NULL, expr, n, at, &r.value, elasticity, &r.kink, e));
    r.of_batch = occurs(&s, expr, s.y.B);
    r.of_context = occurs(&s, expr, s.y.S) || occurs(&s, expr, s.y.T);
    r.rows = arena_array(s.arena, n, sizeof *r.rows);
    if (!r.rows) return err_nomem(e);
    for (size_t i = 0; i < n; i++)
        if (var[i].meaning && fabs(elasticity[i]) * ROUND >= 1)
            r.rows[r.n++] = (struct sensitivity_row){sym_name(at[i].var), var[i].meaning, elasticity[i]};
    if (r.n) qsort(r.rows, r.n, sizeof *r.rows, by_magnitude);
    *out = r;
    return ERR_OK;
}
