/* Values of expressions without variables. */
#include <float.h>

#include "calc/sym/node.h"

/* m*2^e, m in [0.5, 1) or in (-1, -0.5]; e is 0 where m is 0 or no finite number */
struct wide {
    double m;
    int64_t e;
};

enum { EXPONENT_MAX = 1 << 30, WHOLE_POWER_MAX = 1 << 20, APART = 2 * DBL_MANT_DIG };

static struct wide wide_of(double x, int64_t e)
{
    int own;
    if (x == 0.0 || !isfinite(x)) return (struct wide){x, 0};
    const double m = frexp(x, &own);
    e += own;
    if (e > EXPONENT_MAX) return (struct wide){copysign((double)INFINITY, x), 0};
    if (e < -EXPONENT_MAX) return (struct wide){copysign(0.0, x), 0};
    return (struct wide){m, e};
}

static double narrow(struct wide x) /* infinite or 0 beyond the doubles */
{
    const int64_t e = x.e > INT16_MAX ? INT16_MAX : x.e < INT16_MIN ? INT16_MIN : x.e;
    return ldexp(x.m, (int)e);
}

static struct wide multiply(struct wide x, struct wide y) { return wide_of(x.m * y.m, x.e + y.e); }
static struct wide divide(struct wide x, struct wide y) { return wide_of(x.m / y.m, x.e - y.e); }

static struct wide add(struct wide x, struct wide y)
{
    if (x.m == 0.0 || !isfinite(y.m)) return wide_of(x.m + y.m, y.e); /* x is lost where y is infinite */
    if (y.m == 0.0 || !isfinite(x.m)) return x;
    if (x.e < y.e) {
        const struct wide swap = x;
        x = y;
        y = swap;
    }
    return x.e - y.e > APART ? x : wide_of(x.m + ldexp(y.m, (int)(y.e - x.e)), x.e);
}

/* x^y. Of whole y by squaring: a logarithm would lose the digits that its own whole part takes. */
static struct wide power(struct wide x, double y)
{
    if (x.m == 0.0 || !isfinite(x.m) || !isfinite(y)) return wide_of(pow(narrow(x), y), 0);
    if (y == floor(y) && fabs(y) <= (double)WHOLE_POWER_MAX) {
        struct wide r = wide_of(1.0, 0);
        for (uint32_t n = (uint32_t)fabs(y); n; n >>= 1, x = multiply(x, x))
            if (n & 1) r = multiply(r, x);
        return y < 0.0 ? divide(wide_of(1.0, 0), r) : r;
    }
    const double two_to = y * (log2(x.m) + (double)x.e); /* NAN for x < 0 */
    if (!(fabs(two_to) < (double)EXPONENT_MAX)) return wide_of(pow(narrow(x), y), 0);
    return wide_of(exp2(two_to - floor(two_to)), (int64_t)floor(two_to));
}

static struct wide exponential(double x)
{
    const double two_to = x / log(2.0);
    if (!(fabs(two_to) < (double)EXPONENT_MAX)) return wide_of(exp(x), 0);
    return wide_of(exp2(two_to - floor(two_to)), (int64_t)floor(two_to));
}

static struct wide extreme(enum sym_op op, struct wide x, struct wide y)
{
    if (x.m != x.m || y.m != y.m) return wide_of((double)NAN, 0);
    if (x.m == y.m && x.e == y.e) return x;
    return (add(x, (struct wide){-y.m, y.e}).m < 0.0) == (op == SYM_MIN) ? x : y;
}

static struct wide wide_value(enum sym_op op, struct wide x, struct wide y)
{
    switch (op) {
    case SYM_ADD: return add(x, y);
    case SYM_MUL: return multiply(x, y);
    case SYM_DIV: return divide(x, y);
    case SYM_POW: return power(x, narrow(y));
    case SYM_MIN:
    case SYM_MAX: return extreme(op, x, y);
    case SYM_CEIL: return x.e > DBL_MANT_DIG ? x : wide_of(x.m > 0.0 && x.e < 1 ? 1.0 : ceil(narrow(x)), 0);
    case SYM_FLOOR: return x.e > DBL_MANT_DIG ? x : wide_of(x.m < 0.0 && x.e < 1 ? -1.0 : floor(narrow(x)), 0);
    case SYM_LOG: return wide_of(log(x.m) + (double)x.e * log(2.0), 0);
    case SYM_EXP: return exponential(narrow(x));
    case SYM_CONST:
    case SYM_VAR: break;
    }
    return wide_of((double)NAN, 0);
}

/* the tape's */
static double plain_value(enum sym_op op, const struct sym *a, const struct sym *b)
{
    switch (op) {
    case SYM_ADD: return a->value + b->value;
    case SYM_MUL: {
        const struct sym_scale s = sym_scale_of(a);
        return b->value * s.mul / s.div;
    }
    case SYM_DIV: return a->value / b->value;
    case SYM_POW: return sym_pow_of(a->value, b->value);
    case SYM_MIN: return sym_min_of(a->value, b->value);
    case SYM_MAX: return sym_max_of(a->value, b->value);
    case SYM_CEIL: return ceil(a->value);
    case SYM_FLOOR: return floor(a->value);
    case SYM_LOG: return log(a->value);
    case SYM_EXP: return exp(a->value);
    case SYM_CONST:
    case SYM_VAR: break;
    }
    return (double)NAN;
}

double sym_closed_value(enum sym_op op, const struct sym *a, const struct sym *b, int32_t *exponent)
{
    *exponent = 0;
    if (!a->exponent && (!b || !b->exponent)) {
        const double x = plain_value(op, a, b);
        if (isnormal(x)) return x;
    }
    const struct wide x = wide_of(a->value, a->exponent);
    const struct wide r = wide_value(op, x, b ? wide_of(b->value, b->exponent) : x);
    const double value = narrow(r);
    if (r.m == 0.0 || isnormal(value) || !isfinite(r.m)) return value;
    *exponent = (int32_t)r.e;
    return r.m;
}
