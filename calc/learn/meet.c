#include "calc/learn/meet.h"

#include <math.h>
#include <string.h>

#include "calc/learn/meet_reason.h"
#include "calc/learn/tidy.h"

/* Powers of ten: where numbers are looked for, and where when there are none. */
enum { LEAST = -6, MOST = 18, FAR_LEAST = -30, FAR_MOST = 30 };

struct equation {
    struct arena *a;
    struct sym_ctx *c;
    const struct sym *left, *right, *var;
    double low, high; /* of answers */
};

/* ---- closed forms ---- */

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

/* Whether a side divides by zero where var is the root. */
static bool undefined_at(const struct equation *q, const struct sym *root)
{
    const struct sym *const side[] = {q->left, q->right}, *normal;
    const struct sym_binding at = {q->var, root};
    for (size_t i = 0; i < 2; i++) {
        struct err why = {.code = ERR_OK};
        if (sym_normal(q->c, sym_bind(q->c, side[i], &at, 1), &normal, &why) == ERR_RANGE &&
            strstr(why.text, "divides by zero"))
            return true;
    }
    return false;
}

/* The sign of q*sqrt(d)/den, which is the difference of two roots, where it is real: that of q/den. Known when den's is
 * and it is the same at every one of some points; UNKNOWN otherwise. */
static enum err_code sign_of_gap(const struct equation *q, const struct sym *gap, enum sym_sign *out, struct err *e)
{
    enum { SYMBOLS = 32, POINTS = 24 };
    static const int64_t PRIMES[] = {2, 131, 7, 1999, 29, 3, 8009, 61, 13, 521, 5};
    const struct sym *num, *den;
    struct sym_point point;
    struct err none = {.code = ERR_OK};
    struct sym_binding env[SYMBOLS];
    enum sym_sign below;
    size_t plus = 0, minus = 0;
    *out = SYM_SIGN_UNKNOWN;
    TRY(sym_fraction(q->c, gap, &num, &den, e));
    TRY(sym_sign(q->c, den, &below, e));
    if (below == SYM_SIGN_UNKNOWN || sym_counterexample(q->c, gap, sym_int(q->c, 0), &point, &none) != ERR_OK ||
        point.n > SYMBOLS)
        return ERR_OK;
    for (size_t k = 0; k < POINTS; k++) {
        double v = (double)NAN;
        for (size_t i = 0; i < point.n; i++)
            env[i] = (struct sym_binding){point.at[i].var,
                                          sym_int(q->c, PRIMES[(k + i * (k + 1)) % (sizeof PRIMES / sizeof *PRIMES)])};
        (void)sym_constant(sym_bind(q->c, gap, env, point.n), &v);
        plus += v > 0;
        minus += v < 0;
    }
    if (plus && !minus) *out = SYM_SIGN_PLUS;
    if (minus && !plus) *out = SYM_SIGN_MINUS;
    return ERR_OK;
}

/* Which of two roots p + q*sqrt(d), p - q*sqrt(d) in symbols are positive, by their sum and product (Vieta). Of root i:
 * never, or where is[i] is; NULL: always. known: so much could be seen. */
struct pair {
    bool known, never[2];
    const struct sym *is[2];
};

static enum err_code read_pair(const struct equation *q, const struct sym_solution *x, struct pair *out, struct err *e)
{
    struct sym_ctx *c = q->c;
    enum sym_sign sum, gap, product;
    const struct sym *real, *rest;
    *out = (struct pair){.known = false};
    if (x->kind != SYM_SOLVED_ROOTS || x->n != 2 || sym_constant(x->root[0], NULL)) return ERR_OK;
    const struct sym *difference = sym_sub(c, x->root[0], x->root[1]), *times = sym_mul(c, x->root[0], x->root[1]);
    TRY(sym_sign(c, sym_add(c, x->root[0], x->root[1]), &sum, e));
    TRY(sym_sign(c, times, &product, e));
    TRY(sign_of_gap(q, difference, &gap, e));
    if (sum == SYM_SIGN_UNKNOWN || gap == SYM_SIGN_UNKNOWN) return ERR_OK;
    const size_t larger = gap == SYM_SIGN_MINUS, smaller = !larger;
    if (product == SYM_SIGN_MINUS) { /* of opposite signs, and real */
        out->known = out->never[smaller] = true;
        return ERR_OK;
    }
    if (sum != SYM_SIGN_PLUS) { /* the larger one is positive where the product is negative */
        out->known = out->never[smaller] = true;
        out->never[larger] = product != SYM_SIGN_UNKNOWN;
        return sym_normal(c, sym_mul(c, sym_int(c, -1), times), &out->is[larger], e);
    }
    if (product != SYM_SIGN_PLUS) return ERR_OK;
    out->known = true; /* both where they are real */
    TRY(sym_fraction(c, sym_mul(c, difference, difference), &real, &rest, e));
    out->is[0] = out->is[1] = real;
    return ERR_OK;
}

/* *lost: a root is a number that doubles cannot hold, or complex. */
static enum err_code closed_roots(const struct equation *q, const struct sym_solution *x, struct meet *m, bool *lost,
                                  struct err *e)
{
    struct sym_ctx *c = q->c;
    struct pair pair;
    m->always = x->kind == SYM_SOLVED_ALWAYS;
    TRY(read_pair(q, x, &pair, e));
    for (size_t i = 0; x->kind == SYM_SOLVED_ROOTS && i < x->n; i++) {
        struct meet_root r = {.closed = x->root[i], .value = (double)NAN, .until = (double)NAN};
        const bool number = sym_constant(x->root[i], &r.value);
        if (number && !isfinite(r.value)) *lost = true;
        if (number && (!(r.value > 0) || !isfinite(r.value) || r.value < q->low || r.value > q->high)) continue;
        if (pair.known && pair.never[i]) continue;
        if (undefined_at(q, x->root[i])) {
            m->hole = x->root[i];
            continue;
        }
        enum sym_sign sign = SYM_SIGN_PLUS;
        if (!number) TRY(tidy(c, x->root[i], &r.closed, e));
        if (!number && !pair.known) TRY(sym_sign(c, x->root[i], &sign, e));
        if (sign == SYM_SIGN_MINUS || sign == SYM_SIGN_ZERO) continue;
        if (sign == SYM_SIGN_UNKNOWN) TRY(condition_of(c, x->root[i], &r.condition, e));
        if (pair.known) r.condition = pair.is[i];
        m->root[m->n++] = r;
    }
    return ERR_OK;
}

/* ---- numbers ---- */

/* In the usual range, then in the far one. */
static enum err_code look(const struct equation *q, struct sym_found *f, double *low, double *high, struct err *e)
{
    static const int RANGES[2][2] = {{LEAST, MOST}, {FAR_LEAST, FAR_MOST}};
    *f = (struct sym_found){.closest_at = (double)NAN};
    for (size_t i = 0; i < 2 && f->n == 0 && !f->always; i++) {
        *low = fmax(q->low, pow(10, RANGES[i][0]));
        *high = fmin(q->high, pow(10, RANGES[i][1]));
        if (!(*low < *high)) return err_set(e, ERR_RANGE, "no number lies within the limits");
        TRY(sym_find(q->c, q->left, q->right, q->var, *low, *high, f, e));
    }
    return ERR_OK;
}

static void take_roots(const struct equation *q, const struct sym_found *f, double low, double high, struct meet *m)
{
    m->by_numbers = true;
    m->always = f->always;
    m->more = f->more;
    const bool far = high > pow(10, MOST) || low < pow(10, LEAST);
    for (size_t i = 0; i < f->n; i++) {
        const struct sym_root *x = &f->root[i];
        struct meet_root r = {.value = x->value, .until = x->flat ? x->high : (double)NAN, .jump = x->jump};
        const bool from_low = x->from_lo, to_high = x->to_hi;
        r.after = x->open_low;
        r.before = x->open_high;
        if (far && (from_low || to_high)) continue; /* the sides only come nearer than doubles tell apart */
        if (from_low && !(q->low >= low)) r.value = 0;
        if (to_high) r.until = q->high <= high ? q->high : (double)INFINITY;
        m->root[m->n++] = r;
    }
}

enum err_code meet_solve(struct arena *a, struct sym_ctx *c, const struct sym *left, const struct sym *right,
                         const struct sym *var, const struct meet_limits *limits, struct meet *out, struct err *e)
{
    struct equation q = {a, c, left, right, var, 0, (double)INFINITY};
    struct meet m = {.n = 0};
    struct sym_solution x;
    struct sym_found f = {.closest_at = (double)NAN};
    struct err closed = {.code = ERR_OK}, numbers = {.code = ERR_OK};
    double low = (double)NAN, high = (double)NAN;
    bool lost = false;
    if (limits && limits->low > 0) q.low = limits->low;
    if (limits && limits->high > 0) q.high = limits->high;
    const enum err_code code = sym_solve(c, left, right, var, &x, &closed);
    if (code != ERR_OK && code != ERR_RANGE) return err_set(e, code, "%s", closed.text);
    if (code == ERR_OK) TRY(closed_roots(&q, &x, &m, &lost, e));
    bool looked = false;
    if (m.n == 0 && !m.always) {
        const enum err_code found = look(&q, &f, &low, &high, &numbers);
        looked = found == ERR_OK;
        if (found == ERR_NOMEM) return err_nomem(e);
        if (!looked && code != ERR_OK)
            return err_set(e, ERR_RANGE, "%s, and no numbers: %s", closed.text, numbers.text);
        if (looked && (code != ERR_OK || lost)) take_roots(&q, &f, low, high, &m);
    }
    m.left = left;
    m.right = right;
    if (code == ERR_OK &&
        (sym_normal(c, left, &m.left, NULL) != ERR_OK || sym_normal(c, right, &m.right, NULL) != ERR_OK))
        m.left = m.right = NULL;
    if (m.n == 0 && !m.always && m.hole)
        m.reason = meet_hole(a, var, m.hole);
    else if (m.n == 0 && !m.always)
        m.reason = meet_reason(a, c, left, right, var, looked ? &f : NULL, low, high);
    if (m.n == 0 && !m.always && !m.reason) return err_nomem(e);
    m.low = low;
    m.high = high;
    *out = m;
    return sym_check(c, e);
}
