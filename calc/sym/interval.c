#include "calc/sym/interval.h"

#include <float.h>
#include <math.h>

enum { POWER_MAX = 1024 }; /* not a unit */

static const struct interval NONE = {(double)NAN, (double)NAN};
static const double TINY = 1e-290; /* not a unit */ /* products below it may have lost digits that fma cannot show */

static double below(double x) { return nextafter(x, -(double)INFINITY); }
static double above(double x) { return nextafter(x, (double)INFINITY); }

/* x with error e: the bounds; an e that is no number widens both */
static struct interval around(double x, double e)
{
    if (x != x) return NONE;
    return (struct interval){e >= 0.0 ? x : below(x), e <= 0.0 ? x : above(x)};
}

static struct interval hull(struct interval x, struct interval y)
{
    if (!interval_defined(x) || !interval_defined(y)) return NONE;
    return (struct interval){fmin(x.lo, y.lo), fmax(x.hi, y.hi)};
}

/* ---- arithmetic ---- */

static struct interval sum_of(double a, double b)
{
    const double s = a + b, t = s - a, u = s - t;
    const double da = a - u, db = b - t;
    return around(s, da + db);
}

static struct interval product_of(double a, double b)
{
    if (a == 0.0 || b == 0.0) return (struct interval){0.0, 0.0}; /* an infinite bound stands for a finite number */
    const double p = a * b;
    return around(p, fabs(p) < TINY ? (double)NAN : fma(a, b, -p));
}

static struct interval quotient_of(double a, double b)
{
    if (a == 0.0) return (struct interval){0.0, 0.0};
    const double q = a / b, rest = fma(-q, b, a);
    return around(q, rest == 0.0 && fabs(q) >= TINY ? 0.0 : (double)NAN);
}

static struct interval add(struct interval x, struct interval y)
{
    const struct interval lo = sum_of(x.lo, y.lo), hi = sum_of(x.hi, y.hi);
    return interval_defined(lo) && interval_defined(hi) ? (struct interval){lo.lo, hi.hi} : NONE;
}

typedef struct interval corner(double a, double b);

static struct interval corners(corner *f, struct interval x, struct interval y)
{
    const struct interval first = f(x.lo, y.lo);
    if (x.lo == x.hi && y.lo == y.hi) return first;
    return hull(hull(first, f(x.lo, y.hi)), hull(f(x.hi, y.lo), f(x.hi, y.hi)));
}

static struct interval divide(struct interval x, struct interval y)
{
    return y.lo > 0.0 || y.hi < 0.0 ? corners(quotient_of, x, y) : NONE;
}

/* ---- powers, logarithms ---- */

/* the library's result, a few units in the last place wider */
static struct interval nearly(double x)
{
    const double slack = 4.0 * DBL_EPSILON * fabs(x) + DBL_MIN;
    if (x != x) return NONE;
    if (isinf(x)) return (struct interval){below(x), x};
    return (struct interval){x - slack, x + slack};
}

static struct interval power_of(double a, double b)
{
    if (b != 0.5) return nearly(pow(a, b));
    const double r = sqrt(a), e = fma(r, r, -a);
    return around(r, e == 0.0 && a >= TINY ? 0.0 : (double)NAN);
}

static struct interval whole_power(struct interval x, double n)
{
    struct interval r = {1.0, 1.0};
    for (unsigned k = (unsigned)fabs(n); k; k >>= 1) {
        if (k & 1) r = corners(product_of, r, x);
        if (k > 1) x = corners(product_of, x, x);
    }
    return n < 0.0 ? divide((struct interval){1.0, 1.0}, r) : r;
}

static struct interval raise(struct interval x, struct interval y)
{
    if (y.lo == y.hi && y.lo == floor(y.lo) && fabs(y.lo) <= (double)POWER_MAX) return whole_power(x, y.lo);
    if (x.lo == 0.0 && x.hi == 0.0 && y.lo > 0.0) return x;
    if (!(x.lo > 0.0)) return NONE;
    const struct interval r = corners(power_of, x, y);
    return (struct interval){fmax(0.0, r.lo), r.hi};
}

/* ---- nodes ---- */

static bool is_exact(int64_t n) { return rat_magnitude(n) <= UINT64_C(1) << DBL_MANT_DIG; }

struct interval interval_rational(int64_t num, int64_t den)
{
    const struct interval n = around((double)num, is_exact(num) ? 0.0 : (double)NAN);
    const struct interval d = around((double)den, is_exact(den) ? 0.0 : (double)NAN);
    return den == 1 ? n : divide(n, d);
}

static struct interval constant(const struct sym *e)
{
    if (!e->opaque) return interval_rational(e->num, e->den);
    return isfinite(e->value) ? (struct interval){e->value, e->value} : NONE;
}

static struct interval of_node(const struct sym *e, struct interval x, struct interval y)
{
    if (sym_left(e) && (!interval_defined(x) || !interval_defined(y))) return NONE;
    switch (sym_op(e)) {
    case SYM_CONST: return constant(e);
    case SYM_VAR: break; /* given */
    case SYM_ADD: return add(x, y);
    case SYM_MUL: return corners(product_of, x, y);
    case SYM_DIV: return divide(x, y);
    case SYM_POW: return raise(x, y);
    case SYM_MIN: return (struct interval){fmin(x.lo, y.lo), fmin(x.hi, y.hi)};
    case SYM_MAX: return (struct interval){fmax(x.lo, y.lo), fmax(x.hi, y.hi)};
    case SYM_CEIL: return (struct interval){ceil(x.lo), ceil(x.hi)};
    case SYM_FLOOR: return (struct interval){floor(x.lo), floor(x.hi)};
    case SYM_LOG:
        if (!(x.lo > 0.0)) return NONE;
        return (struct interval){nearly(log(x.lo)).lo, nearly(log(x.hi)).hi};
    case SYM_EXP: return (struct interval){fmax(0.0, nearly(exp(x.lo)).lo), nearly(exp(x.hi)).hi};
    }
    return NONE;
}

void interval_eval(const struct sym_order *o, struct interval *value)
{
    for (size_t i = 0; i < o->n; i++) {
        const struct sym *e = o->node[i], *a = sym_left(e), *b = sym_right(e);
        if (e->op == SYM_VAR) continue;
        const struct interval x = a ? value[o->pos[a->index] - 1] : NONE;
        value[i] = of_node(e, x, b ? value[o->pos[b->index] - 1] : x);
    }
}
