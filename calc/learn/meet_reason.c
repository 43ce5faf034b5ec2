#include "calc/learn/meet_reason.h"

#include <math.h>
#include <stdio.h>

#include "calc/sym/normal.h"

enum { FORMULA_LONG = 200 };

struct asked {
    struct arena *a;
    struct sym_ctx *c;
    const struct sym *var;
    double low, high;
};

/* "295.3", "8", or the formula where symbols are left; NULL: too long, or no number that doubles can hold. */
static const char *value_text(const struct asked *q, const struct sym *e)
{
    double v;
    if (sym_constant(e, &v)) return isfinite(v) ? arena_printf(q->a, "%.6g", v) : NULL;
    const size_t need = sym_print(e, NULL, 0) + 1;
    char *text = need > FORMULA_LONG ? NULL : arena_alloc(q->a, need);
    if (text) (void)sym_print(e, text, need);
    return text;
}

static const struct sym *at_zero(const struct asked *q, const struct sym *e)
{
    const struct sym_binding zero = {q->var, sym_int(q->c, 0)};
    return sym_bind(q->c, e, &zero, 1);
}

/* From where on a side has the value that it tends to; NAN: nowhere. */
static double reached_at(const struct asked *q, const struct sym *e, const struct sym *limit)
{
    struct sym_found f;
    struct err why = {.code = ERR_OK};
    if (!sym_constant(limit, NULL) || sym_find(q->c, e, limit, q->var, q->low, q->high, &f, &why) != ERR_OK || f.n == 0)
        return (double)NAN;
    const struct sym_root *last = &f.root[f.n - 1];
    return last->flat && last->high >= q->high * 0.999 ? last->value : (double)NAN;
}

/* ", from 3": the value at 0, where there is one; "" otherwise. */
static const char *from_text(const struct asked *q, const struct sym *e)
{
    struct err why = {.code = ERR_OK};
    const struct sym *rest;
    const char *from = sym_normal(q->c, at_zero(q, e), &rest, &why) == ERR_OK ? value_text(q, rest) : NULL;
    return from ? arena_printf(q->a, ", from %s", from) : "";
}

static const char *without_bound(const struct asked *q, const char *side, const struct sym *e,
                                 const struct sym *leading)
{
    struct err why = {.code = ERR_OK};
    enum sym_sign end = SYM_SIGN_UNKNOWN;
    const char *name = sym_name(q->var), *from = from_text(q, e);
    (void)sym_sign(q->c, leading, &end, &why);
    const char *how = end == SYM_SIGN_MINUS ? "falls" : end == SYM_SIGN_PLUS ? "grows" : "varies";
    return from ? arena_printf(q->a, "the %s side %s with %s without bound%s", side, how, name, from) : NULL;
}

/* What a side does as var grows from 0 without bound; NULL: algebra cannot say. */
static const char *describe(const struct asked *q, const char *side, const struct sym *e)
{
    struct err why = {.code = ERR_OK};
    const struct sym *limit;
    int64_t order = 0;
    enum sym_sign slope = SYM_SIGN_UNKNOWN;
    const char *name = sym_name(q->var);
    if (sym_normal(q->c, e, &e, &why) != ERR_OK) return NULL;
    if (at_zero(q, e) == e) {
        const char *is = value_text(q, e);
        return is ? arena_printf(q->a, "the %s is %s", side, is) : NULL;
    }
    (void)sym_monotone(q->c, e, q->var, &slope, &why);
    if (sym_limit(q->c, e, 1, &q->var, &limit, &order, &why) != ERR_OK) return NULL;
    if (order > 0) return without_bound(q, side, e, limit);
    const char *to = order < 0 ? "0" : value_text(q, limit);
    if (!to) return NULL;
    if (slope == SYM_SIGN_PLUS)
        return arena_printf(q->a, "the %s side grows with %s, but only towards %s", side, name, to);
    if (slope == SYM_SIGN_MINUS)
        return arena_printf(q->a, "the %s side falls with %s, but only towards %s", side, name, to);
    const double from = order < 0 ? (double)NAN : reached_at(q, e, limit);
    const char *start = from_text(q, e);
    if (!start) return NULL;
    if (!isnan(from))
        return arena_printf(q->a, "the %s side stays at %s from %s = %.6g on%s%s", side, to, name, from,
                            *start ? ", and comes there" : "", *start ? start + 1 : "");
    return arena_printf(q->a, "the %s side tends to %s as %s grows%s", side, to, name, start);
}

/* |left - right| by the larger of them, at a value of the variable; 1 where they are no numbers. */
static double apart(const struct asked *q, const struct sym *left, const struct sym *right, double at)
{
    const struct sym_binding here = {q->var, sym_num(q->c, at)};
    double l, r;
    if (!sym_constant(sym_bind(q->c, left, &here, 1), &l) || !sym_constant(sym_bind(q->c, right, &here, 1), &r))
        return 1;
    const double d = fabs(l - r) / fmax(fabs(l), fabs(r));
    return isfinite(d) ? d : 1;
}

/* Where neither side gains on the other all the way: the place between at which they differ least, as a ratio, and less
 * than at both ends. At an end, when nothing else is known of the sides, what they are there. */
static const char *closest(const struct asked *q, const struct sym *left, const struct sym *right,
                           const struct sym_found *f, bool described)
{
    const char *name = sym_name(q->var);
    const double at = f->closest_at, l = f->closest_lhs, r = f->closest_rhs;
    if (isnan(at) || !isfinite(l) || !isfinite(r)) return NULL;
    const double end = fmin(apart(q, left, right, q->low), apart(q, left, right, q->high));
    const double until = f->closest_until;
    if (!described && until >= q->high && at > q->low * 10 && f->closest_frac < 1)
        return arena_printf(q->a, "closest from %s = %.6g on, where the left is %.6g and the right %.6g", name, at, l,
                            r);
    if (at > q->low * 10 && at < q->high / 10 && f->closest_frac < 1 && f->closest_frac < 0.999 * end)
        return arena_printf(q->a, "closest at %s = %.6g, where the left is %.6g and the right %.6g", name, at, l, r);
    if (described) return NULL;
    if (f->closest_frac < 1)
        return arena_printf(q->a, "at %s = %.6g the left is %.6g and the right %.6g, and they come no closer", name, at,
                            l, r);
    return f->sign ? arena_printf(q->a, "the left side is the %s one throughout", f->sign > 0 ? "larger" : "smaller")
                   : NULL;
}

const char *meet_hole(struct arena *a, const struct sym *var, const struct sym *value)
{
    const struct asked q = {.a = a};
    const char *text = value_text(&q, value);
    return arena_printf(a, "they would meet at %s = %s, where a side divides by zero", sym_name(var),
                        text ? text : "a value");
}

const char *meet_reason(struct arena *a, struct sym_ctx *c, const struct sym *left, const struct sym *right,
                        const struct sym *var, const struct sym_found *found, double low, double high)
{
    const struct asked q = {a, c, var, low, high};
    struct err why = {.code = ERR_OK};
    enum sym_sign gains = SYM_SIGN_UNKNOWN;
    const char *l = describe(&q, "left", left), *r = describe(&q, "right", right), *text = NULL;
    if (l && r) text = arena_printf(a, "%s; %s", l, r);
    (void)sym_monotone(c, sym_sub(c, left, right), var, &gains, &why);
    const char *near = NULL;
    if (found && (!text || gains == SYM_SIGN_UNKNOWN)) near = closest(&q, left, right, found, text != NULL);
    if (!text && !near) return arena_printf(a, "the %s side has no simple form", l ? "right" : "left");
    if (!text || !near) return text ? text : near;
    return arena_printf(a, "%s; %s", text, near);
}
