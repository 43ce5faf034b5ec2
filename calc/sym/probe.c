#include "calc/sym/probe.h"

#include <float.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_min.h>
#include <gsl/gsl_roots.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/sym/node.h"

enum { TERMS_MAX = 512, OUTPUTS = 4, STEPS_MAX = 200 };

static const double OPPOSITE = 1e4; /* not a unit */ /* above every logarithm of a ratio of doubles */

/* ---- evaluation ---- */

static enum err_code only_var(struct arena *a, const struct sym *lhs, const struct sym *rhs, const struct sym *var,
                              struct err *err)
{
    const struct sym *const both[] = {lhs, rhs};
    const char *first = NULL;
    struct sym_order o;
    if (!sym_order_make(a, 2, both, &o)) return err_nomem(err);
    for (size_t i = 0; i < o.n; i++) {
        const char *name = sym_name(o.node[i]);
        if (name && o.node[i] != var && (!first || strcmp(name, first) < 0)) first = name;
    }
    if (!first) return ERR_OK;
    return err_set(err, ERR_RANGE, "%.40s has no value; only %.40s may be without one", first, sym_name(var));
}

static const struct sym *magnitude(struct sym_ctx *c, const struct sym *e)
{
    return sym_max(c, e, sym_mul(c, sym_int(c, -1), e));
}

/* The terms of a sum, each as a magnitude; the whole as one when there are too many. */
static const struct sym *scale_of(struct sym_ctx *c, const struct sym *e)
{
    const struct sym *stack[TERMS_MAX], *term[TERMS_MAX];
    size_t depth = 0, n = 0;
    stack[depth++] = e;
    while (depth) {
        const struct sym *x = stack[--depth];
        if (x->op != SYM_ADD || x->closed) {
            if (n == TERMS_MAX) return magnitude(c, e);
            term[n++] = magnitude(c, x);
            continue;
        }
        if (depth + 2 > TERMS_MAX) return magnitude(c, e);
        stack[depth++] = x->b;
        stack[depth++] = x->a;
    }
    return sym_sum(c, n, term);
}

enum err_code probe_open(struct arena *a, struct sym_ctx *c, const struct sym *lhs, const struct sym *rhs,
                         const struct sym *var, struct probe *out, struct err *err)
{
    const struct sym *gap = sym_sub(c, lhs, rhs), *scale = scale_of(c, gap);
    const struct sym *const exprs[OUTPUTS] = {lhs, rhs, gap, scale};
    struct probe p = {.side_is_zero = sym_is_int(lhs, 0) || sym_is_int(rhs, 0)};
    TRY(sym_check(c, err));
    TRY(only_var(a, lhs, rhs, var, err));
    TRY(sym_tape_compile(a, OUTPUTS, exprs, 1, &var, &p.tape, err));
    p.length = sym_tape_length(p.tape);
    *out = p;
    return ERR_OK;
}

void probe_column(struct probe *p, size_t n, struct probe_point *point, double *scratch)
{
    const double *in = scratch;
    double *out[OUTPUTS];
    for (size_t j = 0; j < OUTPUTS; j++) out[j] = scratch + (j + 1) * n;
    for (size_t i = 0; i < n; i++) scratch[i] = point[i].x;
    sym_tape_eval(p->tape, n, &in, out);
    for (size_t i = 0; i < n; i++) {
        const bool defined = out[0][i] - out[1][i] == out[0][i] - out[1][i]; /* not two infinities of one sign */
        point[i] = (struct probe_point){point[i].x, out[0][i], out[1][i], defined ? out[2][i] : (double)NAN, out[3][i]};
    }
}

struct probe_point probe_at(struct probe *p, double x)
{
    struct probe_point y = {.x = x};
    double scratch[1 + OUTPUTS];
    if (p->evaluations) p->evaluations--;
    probe_column(p, 1, &y, scratch);
    return y;
}

static int sign_of(double x) { return (x > 0.0) - (x < 0.0); }

int probe_sign(const struct probe_point *y)
{
    if (fabs(y->gap) <= 16.0 * DBL_EPSILON * y->scale && isfinite(y->scale)) return 0;
    return sign_of(y->gap);
}

double probe_closeness(const struct probe *p, const struct probe_point *y)
{
    const double gap = fabs(y->lhs - y->rhs), less = fmin(fabs(y->lhs), fabs(y->rhs));
    if (p->side_is_zero || gap == 0.0) return gap;
    if (!(y->lhs > 0.0 && y->rhs > 0.0) && !(y->lhs < 0.0 && y->rhs < 0.0)) return OPPOSITE + log(gap);
    if (isfinite(gap / less)) return log1p(gap / less);
    return fabs(log(fabs(y->lhs)) - log(fabs(y->rhs)));
}

double probe_gap(const struct probe *p, const struct probe_point *y)
{
    (void)p;
    return fabs(y->gap);
}

/* ---- a change of sign ---- */

/* What GSL evaluates: always finite; where the sides are no numbers it notes the place. */
struct watched {
    struct probe *p;
    probe_key *key; /* NULL: the gap itself */
    int side;       /* sign of the gap where the search began */
    bool undefined, changed;
    double undefined_at;
    struct probe_point changed_at;
};

static double watch(double x, void *user)
{
    struct watched *w = user;
    const struct probe_point y = probe_at(w->p, x);
    if (!probe_defined(&y)) {
        w->undefined = true;
        w->undefined_at = x;
        return w->key ? DBL_MAX / 4 : 0.0;
    }
    if (w->side && sign_of(y.gap) != w->side && !w->changed) {
        w->changed = true;
        w->changed_at = y;
    }
    const double v = w->key ? w->key(w->p, &y) : y.gap;
    return fmax(-DBL_MAX / 4, fmin(DBL_MAX / 4, v));
}

/* Narrows a..b, of opposite signs, to 1e-12 or as far as Brent's method gets. */
static void brent(struct watched *w, double *low, double *high)
{
    gsl_function f = {.function = watch, .params = w};
    gsl_root_fsolver *s = gsl_root_fsolver_alloc(gsl_root_fsolver_brent);
    if (s && gsl_root_fsolver_set(s, &f, *low, *high) == GSL_SUCCESS)
        for (int i = 0; i < STEPS_MAX && !w->undefined; i++) {
            if (gsl_root_fsolver_iterate(s) != GSL_SUCCESS || w->undefined) break;
            *low = gsl_root_fsolver_x_lower(s);
            *high = gsl_root_fsolver_x_upper(s);
            if (gsl_root_test_interval(*low, *high, 0.0, 1e-12) == GSL_SUCCESS) break;
        }
    if (s) gsl_root_fsolver_free(s);
}

/* The gap grows without bound towards y: from a distance of 1e-8 to that of a unit in the last place the slowest pole
 * here (a cube root's) grows 400 times; a step does not. */
static bool grows_to(struct probe *p, struct probe_point y, double away)
{
    if (isinf(y.gap)) return true;
    const struct probe_point off = probe_at(p, y.x * (1.0 + away));
    return probe_defined(&off) && fabs(y.gap) > 30.0 * fabs(off.gap);
}

static int trailing_zeros(double x)
{
    int exponent;
    return __builtin_ctzll((unsigned long long)ldexp(frexp(x, &exponent), DBL_MANT_DIG) | (1ULL << 63));
}

static double rounder(double x, double y) { return trailing_zeros(x) > trailing_zeros(y) ? x : y; }

/* a and b: where the grid saw the change; low and high: neighbouring doubles that it lies between. */
static bool classify(struct probe *p, const struct probe_point *a, const struct probe_point *b, struct probe_point low,
                     struct probe_point high, struct sym_root *out)
{
    const double step = fabs(high.gap - low.gap), wide_a = isinf(a->gap) ? 0.0 : fabs(a->gap),
                 wide_b = isinf(b->gap) ? 0.0 : fabs(b->gap);
    const double noise = 1e-12 * (isfinite(low.scale + high.scale) ? fmax(low.scale, high.scale) : 0.0);
    struct sym_root r = {.low = low.x, .high = high.x};
    r.below = (int8_t)sign_of(low.gap);
    r.above = (int8_t)sign_of(high.gap);
    r.jump = step > 1e-6 * fmax(wide_a, wide_b) && step > noise;
    if (r.jump && (grows_to(p, low, -1e-8) || grows_to(p, high, 1e-8))) return false;
    r.value = r.jump || fabs(low.gap) == fabs(high.gap) ? rounder(low.x, high.x)
              : fabs(low.gap) < fabs(high.gap)          ? low.x
                                                        : high.x;
    *out = r;
    return true;
}

/* Undefined at x, between a and b: the change of sign may be left or right of the gap in the domain. */
static bool around_undefined(struct probe *p, struct probe_point a, double x, struct probe_point b,
                             struct sym_root *out)
{
    const struct probe_point left = probe_edge(p, a, x), right = probe_edge(p, b, x);
    if (left.x > a.x && sign_of(left.gap) != sign_of(a.gap)) {
        if (left.gap != 0.0) return probe_crossing(p, a, left, out);
        probe_zero(p, &a, left, NULL, out);
        return true;
    }
    if (right.x < b.x && sign_of(right.gap) != sign_of(b.gap)) {
        if (right.gap != 0.0) return probe_crossing(p, right, b, out);
        probe_zero(p, NULL, right, &b, out);
        return true;
    }
    return false;
}

bool probe_crossing(struct probe *p, struct probe_point a, struct probe_point b, struct sym_root *out)
{
    struct watched w = {.p = p};
    double lower = a.x, upper = b.x;
    brent(&w, &lower, &upper);
    struct probe_point low = lower > a.x ? probe_at(p, lower) : a, high = upper < b.x ? probe_at(p, upper) : b;
    if (sign_of(low.gap) == sign_of(high.gap)) { /* rounding error near the root */
        low = a;
        high = b;
    }
    while (!w.undefined) {
        if (low.gap == 0.0 || high.gap == 0.0) {
            probe_zero(p, &a, low.gap == 0.0 ? low : high, &b, out);
            return true;
        }
        const double mid = low.x + (high.x - low.x) / 2.0;
        if (!(mid > low.x && mid < high.x)) break;
        const struct probe_point y = probe_at(p, mid);
        if (!probe_defined(&y)) {
            w.undefined = true;
            w.undefined_at = mid;
        } else if (y.gap != 0.0 && sign_of(y.gap) == sign_of(a.gap)) {
            low = y;
        } else {
            high = y;
        }
    }
    return w.undefined ? around_undefined(p, a, w.undefined_at, b, out) : classify(p, &a, &b, low, high, out);
}

/* ---- zeros and ends of the domain ---- */

typedef bool belongs(const struct probe_point *y);
static bool is_defined(const struct probe_point *y) { return probe_defined(y); }
static bool is_zero(const struct probe_point *y) { return probe_defined(y) && probe_sign(y) == 0; }
static bool is_exact_zero(const struct probe_point *y) { return y->gap == 0.0; }

/* The last point that belongs, from z, which does, towards x, which does not. */
static struct probe_point last_of(struct probe *p, belongs *in, struct probe_point z, double x)
{
    for (;;) {
        const double mid = z.x + (x - z.x) / 2.0;
        if (mid == z.x || mid == x) return z;
        const struct probe_point y = probe_at(p, mid);
        if (in(&y))
            z = y;
        else
            x = mid;
    }
}

struct probe_point probe_edge(struct probe *p, struct probe_point a, double b) { return last_of(p, is_defined, a, b); }

static bool all_inside(struct probe *p, belongs *in, double low, double high)
{
    enum { PARTS = 17 };
    for (int i = 1; i < PARTS; i++) {
        const struct probe_point y = probe_at(p, low + (high - low) * i / PARTS);
        if (!in(&y)) return false;
    }
    return true;
}

/* Rounding error makes a root of high order as wide as a short stretch: those must be exact. */
static bool is_stretch(struct probe *p, belongs *in, struct probe_point low, struct probe_point high)
{
    return high.x - low.x > (in == is_zero ? 1e-2 : 1e-9) * high.x && all_inside(p, in, low.x, high.x);
}

/* The end of a stretch, last inside, as the rounder number that is as good: 48 for 48.000000000000007, not in it where
 * the sides make a step there; 100 for what rounding makes of it. */
static struct probe_point round_end(struct probe *p, belongs *in, struct probe_point end, int outwards, bool *open)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.12g", end.x);
    const double x = strtod(text, NULL);
    *open = false;
    if (x == end.x || fabs(x - end.x) > 1e-12 * end.x) return end;
    struct probe_point y = probe_at(p, x);
    if (in(&y)) return y;
    *open = (x > end.x) == (outwards > 0);
    return *open ? y : end;
}

void probe_zero(struct probe *p, const struct probe_point *a, struct probe_point z, const struct probe_point *b,
                struct sym_root *out)
{
    probe_zeros(p, a, z, z, z, b, out);
}

void probe_zeros(struct probe *p, const struct probe_point *a, struct probe_point first, struct probe_point z,
                 struct probe_point last, const struct probe_point *b, struct sym_root *out)
{
    static belongs *const KINDS[] = {is_zero, is_exact_zero};
    struct sym_root r = {.value = z.x, .low = z.x, .high = z.x};
    r.below = (int8_t)(a ? sign_of(a->gap) : 0);
    r.above = (int8_t)(b ? sign_of(b->gap) : 0);
    r.touch = r.below && r.below == r.above;
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0] && !r.flat; i++) {
        belongs *in = KINDS[i];
        if (!in(&z)) continue;
        if (!in(&first)) first = z;
        if (!in(&last)) last = z;
        struct probe_point low = a ? last_of(p, in, first, a->x) : first;
        struct probe_point high = b ? last_of(p, in, last, b->x) : last;
        if (!is_stretch(p, in, low, high)) continue;
        if (a) low = round_end(p, in, low, -1, &r.open_low);
        if (b) high = round_end(p, in, high, 1, &r.open_high);
        r.flat = true;
        r.value = r.low = low.x;
        r.high = high.x;
    }
    *out = r;
}

/* ---- a minimum ---- */

struct probe_point probe_minimum(struct probe *p, probe_key *key, struct probe_point a, struct probe_point m,
                                 struct probe_point b)
{
    struct watched w = {.p = p, .key = key, .side = sign_of(m.gap)};
    gsl_function f = {.function = watch, .params = &w};
    gsl_min_fminimizer *s = gsl_min_fminimizer_alloc(gsl_min_fminimizer_goldensection);
    const double fa = fmin(DBL_MAX / 4, key(p, &a)), fm = key(p, &m), fb = fmin(DBL_MAX / 4, key(p, &b));
    double best = m.x;
    /* Golden section and not Brent's method, which never steps less than 1e-8 of x: too coarse for a corner. */
    if (s && fm < fa && fm < fb && gsl_min_fminimizer_set_with_values(s, &f, m.x, fm, a.x, fa, b.x, fb) == GSL_SUCCESS)
        for (int i = 0; i < STEPS_MAX && !w.changed; i++) {
            if (gsl_min_fminimizer_iterate(s) != GSL_SUCCESS) break;
            best = gsl_min_fminimizer_x_minimum(s);
            if (gsl_min_test_interval(gsl_min_fminimizer_x_lower(s), gsl_min_fminimizer_x_upper(s), 0.0,
                                      4.0 * DBL_EPSILON) == GSL_SUCCESS)
                break;
        }
    if (s) gsl_min_fminimizer_free(s);
    return w.changed ? w.changed_at : best != m.x ? probe_at(p, best) : m;
}
