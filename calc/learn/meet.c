#include "calc/learn/meet.h"

#include <math.h>

#include "calc/learn/tidy.h"

/* ---- reasons ---- */

/* "295.3", "8", or the formula where symbols are left. */
static const char *value_text(struct arena *a, const struct sym *e)
{
    double v;
    if (sym_constant(e, &v)) return arena_printf(a, "%.6g", v);
    const size_t need = sym_print(e, NULL, 0) + 1;
    char *text = arena_alloc(a, need);
    if (text) (void)sym_print(e, text, need);
    return text;
}

/* What a side does as var grows from 0 without bound. */
static const char *describe(struct arena *a, struct sym_ctx *c, const char *side, const struct sym *e,
                            const struct sym *var)
{
    struct err why = {.code = ERR_OK};
    const struct sym *limit, *rest;
    int64_t order = 0;
    enum sym_sign slope = SYM_SIGN_UNKNOWN, end = SYM_SIGN_UNKNOWN;
    const struct sym_binding zero = {var, sym_int(c, 0)};
    if (sym_normal(c, e, &e, &why) != ERR_OK) return arena_printf(a, "the %s side has no closed form", side);
    if (sym_bind(c, e, &zero, 1) == e) return arena_printf(a, "the %s is %s", side, value_text(a, e));
    (void)sym_monotone(c, e, var, &slope, &why);
    const char *name = sym_name(var);
    if (sym_limit(c, e, 1, &var, &limit, &order, &why) != ERR_OK)
        return arena_printf(a, "the %s side varies with %s", side, name);
    if (order > 0) {
        const char *from = sym_normal(c, sym_bind(c, e, &zero, 1), &rest, &why) == ERR_OK ? value_text(a, rest) : NULL;
        (void)sym_sign(c, limit, &end, &why);
        const char *how = end == SYM_SIGN_MINUS ? "falls" : end == SYM_SIGN_PLUS ? "grows" : "varies";
        return from ? arena_printf(a, "the %s side %s with %s without bound, from %s", side, how, name, from)
                    : arena_printf(a, "the %s side %s with %s without bound", side, how, name);
    }
    const char *to = order < 0 ? "0" : value_text(a, limit);
    if (slope == SYM_SIGN_PLUS)
        return arena_printf(a, "the %s side grows with %s, but only towards %s", side, name, to);
    if (slope == SYM_SIGN_MINUS)
        return arena_printf(a, "the %s side falls with %s, but only towards %s", side, name, to);
    return arena_printf(a, "the %s side tends to %s as %s grows", side, to, name);
}

enum { AT_LEAST_EXPONENT = -6, AT_MOST_EXPONENT = 18 }; /* of ten: where numbers are looked for */

static const char *closest_text(struct arena *a, const struct sym_found *f, const struct sym *var)
{
    return arena_printf(a, "closest at %s = %.6g, where the left is %.6g and the right %.6g", sym_name(var),
                        f->closest_at, f->closest_lhs, f->closest_rhs);
}

static enum err_code look(struct sym_ctx *c, const struct sym *left, const struct sym *right, const struct sym *var,
                          struct sym_found *f, struct err *e)
{
    return sym_find(c, left, right, var, pow(10, AT_LEAST_EXPONENT), pow(10, AT_MOST_EXPONENT), f, e);
}

/* What each side does; where neither gains on the other all the way, also where they come closest, inside the range. */
static enum err_code give_reason(struct arena *a, struct sym_ctx *c, const struct sym *left, const struct sym *right,
                                 const struct sym *var, struct meet *m, struct err *e)
{
    struct err why = {.code = ERR_OK};
    struct sym_found f = {.closest_at = (double)NAN};
    const char *l = describe(a, c, "left", left, var), *r = describe(a, c, "right", right, var);
    m->reason = l && r ? arena_printf(a, "%s; %s", l, r) : NULL;
    if (!m->reason) return err_nomem(e);
    enum sym_sign gains = SYM_SIGN_UNKNOWN;
    (void)sym_monotone(c, sym_sub(c, left, right), var, &gains, &why);
    if (gains != SYM_SIGN_UNKNOWN || look(c, left, right, var, &f, &why) != ERR_OK) return sym_check(c, e);
    const double exponent = log10(f.closest_at);
    if (exponent > AT_LEAST_EXPONENT + 1 && exponent < AT_MOST_EXPONENT - 1) {
        const char *at = closest_text(a, &f, var);
        m->reason = at ? arena_printf(a, "%s; %s", m->reason, at) : NULL;
    }
    return m->reason ? sym_check(c, e) : err_nomem(e);
}

/* ---- roots ---- */

/* Where a root's sign is not plain: of num/den with the sign of one known, the other. */
static enum err_code condition_of(struct sym_ctx *c, const struct sym *root, const struct sym **out, struct err *e)
{
    const struct sym *num, *den;
    enum sym_sign sign;
    *out = root;
    TRY(sym_fraction(c, root, &num, &den, e));
    TRY(sym_sign(c, num, &sign, e));
    if (sign == SYM_SIGN_PLUS) *out = den;
    if (sign == SYM_SIGN_MINUS) *out = sym_mul(c, sym_int(c, -1), den);
    return sym_normal(c, *out, out, e);
}

static enum err_code closed_roots(struct sym_ctx *c, const struct sym_solution *x, struct meet *m, struct err *e)
{
    m->always = x->kind == SYM_SOLVED_ALWAYS;
    for (size_t i = 0; x->kind == SYM_SOLVED_ROOTS && i < x->n; i++) {
        struct meet_root r = {.closed = x->root[i], .value = (double)NAN, .until = (double)NAN};
        if (sym_constant(x->root[i], &r.value)) {
            if (!(r.value > 0)) continue; /* also a complex one */
            m->root[m->n++] = r;
            continue;
        }
        enum sym_sign sign = SYM_SIGN_UNKNOWN;
        TRY(tidy(c, x->root[i], &r.closed, e));
        TRY(sym_sign(c, x->root[i], &sign, e));
        if (sign == SYM_SIGN_MINUS || sign == SYM_SIGN_ZERO) continue;
        if (sign == SYM_SIGN_UNKNOWN) TRY(condition_of(c, x->root[i], &r.condition, e));
        m->root[m->n++] = r;
    }
    return ERR_OK;
}

static enum err_code numeric_roots(struct arena *a, struct sym_ctx *c, const struct sym *left, const struct sym *right,
                                   const struct sym *var, struct meet *m, struct err *e)
{
    struct sym_found f;
    TRY(look(c, left, right, var, &f, e));
    m->by_numbers = true;
    m->always = f.always;
    for (size_t i = 0; i < f.n; i++)
        m->root[m->n++] = (struct meet_root){
            .value = f.root[i].value, .until = f.root[i].flat ? f.root[i].high : (double)NAN, .jump = f.root[i].jump};
    m->more = f.more;
    if (m->n || m->always || isnan(f.closest_at)) return ERR_OK;
    m->reason = closest_text(a, &f, var);
    return m->reason ? ERR_OK : err_nomem(e);
}

enum err_code meet_solve(struct arena *a, struct sym_ctx *c, const struct sym *left, const struct sym *right,
                         const struct sym *var, struct meet *out, struct err *e)
{
    struct meet m = {.n = 0};
    struct sym_solution x;
    struct err closed = {.code = ERR_OK};
    const enum err_code code = sym_solve(c, left, right, var, &x, &closed);
    if (code == ERR_OK) {
        TRY(closed_roots(c, &x, &m, e));
        if (sym_normal(c, left, &m.left, NULL) != ERR_OK || sym_normal(c, right, &m.right, NULL) != ERR_OK)
            m.left = m.right = NULL;
    } else if (code == ERR_RANGE) {
        if (numeric_roots(a, c, left, right, var, &m, e) != ERR_OK)
            return e->code == ERR_RANGE ? err_prepend(e, "%s, and no numbers: ", closed.text) : e->code;
        m.left = left;
        m.right = right;
    } else {
        return err_set(e, code, "%s", closed.text);
    }
    if (m.n == 0 && !m.always && !m.reason) TRY(give_reason(a, c, left, right, var, &m, e));
    *out = m;
    return ERR_OK;
}
