#include "calc/sym/gradient.h"

#include <math.h>

#include "calc/sym/node.h"

static const double KINK = 1e-12; /* not a unit */

struct sweep {
    struct sym_order order;
    double *value, *adjoint; /* [position] */
    bool *given;             /* [position] a variable of the point */
    bool *varies;            /* [position] has one in it */
    bool kink;
};

static size_t position(const struct sweep *s, const struct sym *e) { return s->order.pos[e->index] - 1; }
static double value_of(const struct sweep *s, const struct sym *e) { return s->value[position(s, e)]; }

/* ---- forwards ---- */

static double node_value(const struct sweep *s, const struct sym *e)
{
    const double x = value_of(s, e->a), y = e->b ? value_of(s, e->b) : 0.0;
    switch (sym_op(e)) {
    case SYM_ADD: return x + y;
    case SYM_MUL: {
        if (!e->a->closed) return x * y;
        const struct sym_scale k = sym_scale_of(e->a);
        return y * k.mul / k.div;
    }
    case SYM_DIV: return x / y;
    case SYM_POW: return sym_pow_of(x, y);
    case SYM_MIN: return sym_min_of(x, y);
    case SYM_MAX: return sym_max_of(x, y);
    case SYM_CEIL: return ceil(x);
    case SYM_FLOOR: return floor(x);
    case SYM_LOG: return log(x);
    case SYM_EXP: return exp(x);
    case SYM_CONST:
    case SYM_VAR: break;
    }
    return (double)NAN;
}

static enum err_code forwards(struct sweep *s, size_t n, const struct sym_at *point, struct err *err)
{
    size_t p;
    for (size_t i = n; i-- > 0;) {
        if (!sym_order_find(&s->order, point[i].var, &p)) continue;
        s->value[p] = point[i].value;
        s->given[p] = s->varies[p] = true;
    }
    for (size_t i = 0; i < s->order.n; i++) {
        const struct sym *e = s->order.node[i], *a = sym_left(e), *b = sym_right(e);
        if (s->given[i]) continue;
        if (e->op == SYM_VAR) return err_set(err, ERR_RANGE, "variable '%s' has no value at the point", e->name);
        s->value[i] = e->closed ? sym_value(e) : node_value(s, e);
        s->varies[i] = (a && s->varies[position(s, a)]) || (b && s->varies[position(s, b)]);
    }
    return ERR_OK;
}

/* ---- backwards ---- */

static void give(struct sweep *s, const struct sym *e, double amount)
{
    const size_t p = position(s, e);
    if (s->varies[p]) s->adjoint[p] += amount;
}

static void give_power(struct sweep *s, const struct sym *e, double z, double adjoint)
{
    const double x = value_of(s, e->a), y = value_of(s, e->b);
    if (s->varies[position(s, e->a)] && y != 0.0) give(s, e->a, adjoint * y * sym_pow_of(x, y - 1.0));
    if (s->varies[position(s, e->b)] && (x != 0.0 || !(y > 0.0))) give(s, e->b, adjoint * z * log(x)); /* 0^y is flat */
}

static void give_extreme(struct sweep *s, const struct sym *e, double adjoint)
{
    const double x = value_of(s, e->a), y = value_of(s, e->b);
    if (fabs(x - y) <= KINK * fmax(fabs(x), fabs(y))) s->kink = true;
    give(s, (e->op == SYM_MIN) == (x <= y) ? e->a : e->b, adjoint);
}

static void give_operands(struct sweep *s, const struct sym *e, double z, double adjoint)
{
    switch (sym_op(e)) {
    case SYM_ADD:
        give(s, e->a, adjoint);
        give(s, e->b, adjoint);
        break;
    case SYM_MUL: {
        const struct sym_scale k = sym_scale_of(e->a);
        const double y = value_of(s, e->b);
        if (!e->a->closed) give(s, e->a, adjoint * y);
        give(s, e->b, e->a->closed ? adjoint * k.mul / k.div : adjoint * value_of(s, e->a));
        break;
    }
    case SYM_DIV: {
        const double y = value_of(s, e->b);
        give(s, e->a, adjoint / y);
        give(s, e->b, -adjoint * z / y);
        break;
    }
    case SYM_POW: give_power(s, e, z, adjoint); break;
    case SYM_MIN:
    case SYM_MAX: give_extreme(s, e, adjoint); break;
    case SYM_LOG: give(s, e->a, adjoint / value_of(s, e->a)); break;
    case SYM_EXP: give(s, e->a, adjoint * z); break;
    case SYM_CEIL:
    case SYM_FLOOR:
    case SYM_CONST:
    case SYM_VAR: break;
    }
}

/* A node without adjoint gives nothing, whatever its slope: the operand that lost a min may have an infinite one. */
static void backwards(struct sweep *s)
{
    s->adjoint[s->order.n - 1] = 1.0;
    for (size_t i = s->order.n; i-- > 0;)
        if (s->varies[i] && s->adjoint[i] != 0.0) give_operands(s, s->order.node[i], s->value[i], s->adjoint[i]);
}

/* What is asked of one point. */
struct question {
    const struct sym *e;
    size_t n;
    const struct sym_at *point;
    bool relative; /* elasticities */
    double *value, *derivative;
    bool *kink;
    struct err *err;
};

static enum err_code answer(struct sweep *s, const struct question *q)
{
    const double z = s->value[s->order.n - 1];
    size_t p;
    for (size_t i = 0; i < q->n; i++) {
        const struct sym_at at = q->point[i];
        if (!sym_order_find(&s->order, at.var, &p) || !s->given[p]) continue;
        if (q->relative) s->adjoint[p] *= at.value / z;
        s->given[p] = false;
        if (!isfinite(s->adjoint[p]))
            return err_set(q->err, ERR_RANGE, "the derivative with respect to '%s' is not finite at the point",
                           sym_name(at.var));
    }
    for (size_t i = 0; q->derivative && i < q->n; i++) {
        q->derivative[i] = 0.0;
        if (!sym_order_find(&s->order, q->point[i].var, &p)) continue;
        q->derivative[i] = s->adjoint[p];
        s->adjoint[p] = 0.0;
    }
    if (q->value) *q->value = z;
    if (q->kink) *q->kink = s->kink;
    return ERR_OK;
}

static enum err_code sweep(struct arena *scratch, const struct question *q)
{
    struct sweep s = {.kink = false};
    if (!sym_order_make(scratch, 1, &q->e, &s.order)) return err_nomem(q->err);
    s.value = arena_array(scratch, s.order.n, sizeof *s.value);
    s.adjoint = arena_array(scratch, s.order.n, sizeof *s.adjoint);
    s.given = arena_array(scratch, s.order.n, sizeof *s.given);
    s.varies = arena_array(scratch, s.order.n, sizeof *s.varies);
    if (!s.value || !s.adjoint || !s.given || !s.varies) return err_nomem(q->err);
    TRY(forwards(&s, q->n, q->point, q->err));
    const double z = s.value[s.order.n - 1];
    if (!isfinite(z)) return err_set(q->err, ERR_RANGE, "the expression has no finite value at the point");
    if (q->relative && z == 0.0)
        return err_set(q->err, ERR_RANGE, "the expression is 0 at the point: it has no elasticity there");
    backwards(&s);
    return answer(&s, q);
}

static enum err_code ask(struct arena *scratch, const struct question *q)
{
    struct arena *own = scratch ? NULL : arena_open(), *use = scratch ? scratch : own;
    const enum err_code code = use ? sweep(use, q) : err_nomem(q->err);
    arena_close(own);
    return code;
}

enum err_code sym_gradient(struct arena *scratch, const struct sym *e, size_t n, const struct sym_at *point,
                           double *value, double *gradient, bool *kink, struct err *err)
{
    return ask(scratch, &(struct question){e, n, point, false, value, gradient, kink, err});
}

enum err_code sym_elasticity(struct arena *scratch, const struct sym *e, size_t n, const struct sym_at *point,
                             double *value, double *elasticity, bool *kink, struct err *err)
{
    return ask(scratch, &(struct question){e, n, point, true, value, elasticity, kink, err});
}
