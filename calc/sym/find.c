#include "calc/sym/find.h"

#include <float.h>
#include <gsl/gsl_errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "calc/sym/probe.h"

enum { PER_DECADE = 512, PER_DECADE_LEAST = 32, POINTS_LEAST = 257, EVALUATIONS_MAX = 1000000 };

static const double INSTRUCTIONS_MAX = 1e9; /* not a unit */ /* on the grid, and again to polish: tenths of a second */

struct finder {
    struct probe p;
    struct probe_point *at; /* the grid */
    size_t n;
    struct sym_found *out;
    bool poles;
};

/* ---- the grid ---- */

static enum err_code open_grid(struct finder *f, struct arena *scratch, double lo, double hi, struct err *err)
{
    const double span = log(hi) - log(lo), decades = span / log(10.0);
    const double affordable = INSTRUCTIONS_MAX / ((double)(f->p.length + 1) * (decades + 1.0));
    if (affordable < PER_DECADE_LEAST)
        return err_set(err, ERR_RANGE, "an expression of %zu steps is too long to search over %.0f decades",
                       f->p.length, decades);
    const double points = fmin(affordable, PER_DECADE) * decades;
    f->n = points < POINTS_LEAST ? POINTS_LEAST : (size_t)points + 1;
    f->at = arena_array(scratch, f->n, sizeof *f->at);
    double *columns = arena_array(scratch, f->n, 5 * sizeof *columns);
    if (!f->at || !columns) return err_nomem(err);
    for (size_t i = 1; i + 1 < f->n; i++)
        f->at[i].x = fmin(hi, fmax(lo, exp(log(lo) + span * (double)i / (double)(f->n - 1))));
    f->at[0].x = lo;
    f->at[f->n - 1].x = hi;
    probe_column(&f->p, f->n, f->at, columns);
    const double allowed = INSTRUCTIONS_MAX / (8.0 * (double)(f->p.length + 1)); /* a tape computes 8 points at once */
    f->p.evaluations = allowed < EVALUATIONS_MAX ? (size_t)allowed : EVALUATIONS_MAX;
    return ERR_OK;
}

/* ---- roots ---- */

static void add(struct finder *f, struct sym_root r)
{
    struct sym_found *o = f->out;
    if (o->n && r.low <= o->root[o->n - 1].high) return; /* two ways to the same root */
    if (o->n == FIND_ROOTS_MAX)
        o->more = true;
    else
        o->root[o->n++] = r;
}

static void cross(struct finder *f, struct probe_point a, struct probe_point b)
{
    struct sym_root r;
    if (probe_crossing(&f->p, a, b, &r))
        add(f, r);
    else
        f->poles = true;
}

/* a has a sign, b is undefined, or the other way round: a root may lie between the grid point and the domain's end. */
static void look_at_edge(struct finder *f, const struct probe_point *in, double outside)
{
    struct sym_root r;
    const struct probe_point edge = probe_edge(&f->p, *in, outside);
    const bool right = outside > in->x;
    const int sign = probe_sign(&edge);
    if (edge.x == in->x || sign == probe_sign(in)) return;
    if (sign) {
        cross(f, right ? *in : edge, right ? edge : *in);
        return;
    }
    probe_zero(&f->p, right ? in : NULL, edge, right ? NULL : in, &r);
    add(f, r);
}

static double larger_side(const struct probe_point *y) { return fmax(fabs(y->lhs), fabs(y->rhs)); }

/* A number of fewer digits as near as rounding error, when it is the better minimum: 48 for 47.999999999999993. */
static struct probe_point rounded(struct finder *f, struct probe_point m)
{
    int exponent;
    const double digits = ldexp(frexp(m.x, &exponent), DBL_MANT_DIG);
    for (double unit = 2.0; unit <= 64.0; unit *= 2.0) {
        const struct probe_point y = probe_at(&f->p, ldexp(nearbyint(digits / unit) * unit, exponent - DBL_MANT_DIG));
        if (fabs(y.gap) < fabs(m.gap)) m = y;
    }
    return m;
}

/* Less than both neighbours, all of one sign. */
static void look_at_minimum(struct finder *f, size_t i)
{
    const struct probe_point *a = &f->at[i - 1], *b = &f->at[i + 1];
    struct probe_point m = probe_minimum(&f->p, probe_gap, *a, f->at[i], *b);
    const double sides = 1e-9 * fmax(larger_side(a), larger_side(b)); /* of m itself both may vanish */
    if (m.gap != 0.0 && (m.gap > 0.0) != (a->gap > 0.0)) {
        cross(f, *a, m);
        cross(f, m, *b);
    } else if (probe_sign(&m) == 0 || (fabs(m.gap) <= sides && isfinite(sides))) {
        struct sym_root r;
        m = rounded(f, m);
        probe_zero(&f->p, a, m, b, &r);
        add(f, r);
    }
}

/* x: well outside a stretch of zeros that reaches an end of the range. Still next to nothing there: no stretch, but a
 * difference that rounding swallows. */
static bool dies_away(struct finder *f, double x)
{
    const struct probe_point y = probe_at(&f->p, x);
    return probe_defined(&y) && (fabs(y.gap) <= 1e-12 * y.scale || fabs(y.gap) < 1e-100);
}

/* Grid points first..last are zero within rounding, their neighbours not. */
static void take_zeros(struct finder *f, size_t first, size_t last)
{
    const struct probe_point *a = first ? &f->at[first - 1] : NULL, *b = last + 1 < f->n ? &f->at[last + 1] : NULL;
    struct sym_root r;
    size_t least = first;
    for (size_t i = first; i <= last; i++)
        if (fabs(f->at[i].gap) < fabs(f->at[least].gap)) least = i;
    probe_zeros(&f->p, a, f->at[first], f->at[least], f->at[last], b, &r);
    r.from_lo = r.flat && !a;
    r.to_hi = r.flat && !b;
    if (r.flat && !a != !b && dies_away(f, a ? r.low / 2.0 : 2.0 * r.high)) return;
    if (!r.flat && r.below * r.above < 0 && f->at[least].gap != 0.0)
        cross(f, *a, *b);
    else
        add(f, r);
}

static bool is_minimum(const struct finder *f, size_t i)
{
    if (i == 0 || i + 1 >= f->n) return false;
    const struct probe_point *a = &f->at[i - 1], *m = &f->at[i], *b = &f->at[i + 1];
    return probe_sign(a) == probe_sign(m) && probe_sign(b) == probe_sign(m) && fabs(m->gap) < fabs(a->gap) &&
           fabs(m->gap) < fabs(b->gap);
}

static enum err_code walk(struct finder *f, struct err *err)
{
    const size_t allowed = f->p.evaluations;
    for (size_t i = 0; i < f->n && !f->out->more; i++) {
        const struct probe_point *y = &f->at[i], *before = i ? y - 1 : NULL;
        const bool defined = probe_defined(y), was_defined = before && probe_defined(before);
        const int sign = probe_sign(y), was = was_defined ? probe_sign(before) : 0;
        if (f->p.evaluations == 0)
            return err_set(err, ERR_RANGE, "the two sides pass each other too often to follow, above %.6g", y->x);
        if (!defined) {
            if (was) look_at_edge(f, before, y->x);
        } else if (sign == 0) {
            const size_t first = i;
            while (i + 1 < f->n && probe_defined(&f->at[i + 1]) && probe_sign(&f->at[i + 1]) == 0) i++;
            f->out->always = first == 0 && i + 1 == f->n;
            if (!f->out->always) take_zeros(f, first, i);
        } else {
            if (before && !was_defined) look_at_edge(f, y, before->x);
            if (was == -sign) cross(f, *before, *y);
            if (is_minimum(f, i) && f->p.evaluations > allowed / 2) look_at_minimum(f, i);
        }
    }
    return ERR_OK;
}

/* ---- why there is none ---- */

static void nearer(const struct finder *f, struct probe_point *best, struct probe_point y)
{
    if (probe_defined(&y) && probe_closeness(&f->p, &y) < probe_closeness(&f->p, best)) *best = y;
}

static bool has_sides(const struct probe_point *y, const struct probe_point *best)
{
    return y->lhs == best->lhs && y->rhs == best->rhs;
}

/* the last x towards `outside` where both sides are those of best, which are those of inside */
static double reach(struct finder *f, const struct probe_point *best, double inside, double outside)
{
    for (;;) {
        const double mid = inside + (outside - inside) / 2.0;
        if (mid == inside || mid == outside) return inside;
        const struct probe_point y = probe_at(&f->p, mid);
        if (has_sides(&y, best))
            inside = mid;
        else
            outside = mid;
    }
}

/* The first of the grid points where the sides are closest is at; both may stay as they are for a while. */
static void extend_closest(struct finder *f, size_t at, struct probe_point *best)
{
    size_t last = at;
    while (last + 1 < f->n && has_sides(&f->at[last + 1], best)) last++;
    if (last < at + 2) return;
    f->out->closest_until = last + 1 < f->n ? reach(f, best, f->at[last].x, f->at[last + 1].x) : f->at[last].x;
    if (at == 0) return;
    char text[32];
    double x = reach(f, best, f->at[at].x, f->at[at - 1].x);
    (void)snprintf(text, sizeof text, "%.12g", x);
    const struct probe_point y = probe_at(&f->p, strtod(text, NULL));
    best->x = fabs(y.x - x) <= 1e-12 * x && has_sides(&y, best) ? y.x : x;
}

static void look_at_closest(struct finder *f)
{
    size_t at = f->n;
    for (size_t i = 0; i < f->n; i++)
        if (probe_defined(&f->at[i]) &&
            (at == f->n || probe_closeness(&f->p, &f->at[i]) < probe_closeness(&f->p, &f->at[at])))
            at = i;
    if (at == f->n) return;
    struct probe_point best = f->at[at];
    const struct probe_point *a = at ? &f->at[at - 1] : NULL, *b = at + 1 < f->n ? &f->at[at + 1] : NULL;
    if (a && b && probe_defined(a) && probe_defined(b))
        nearer(f, &best, probe_minimum(&f->p, probe_closeness, *a, best, *b));
    if (a && !probe_defined(a)) nearer(f, &best, probe_edge(&f->p, f->at[at], a->x));
    if (b && !probe_defined(b)) nearer(f, &best, probe_edge(&f->p, f->at[at], b->x));
    if (best.x == f->at[at].x) extend_closest(f, at, &best);
    f->out->closest_at = best.x;
    f->out->closest_lhs = best.lhs;
    f->out->closest_rhs = best.rhs;
    f->out->closest_frac = f->p.side_is_zero ? 1.0 : fabs(best.lhs - best.rhs) / fmax(fabs(best.lhs), fabs(best.rhs));
}

static void look_at_signs(struct finder *f)
{
    size_t defined = 0;
    bool plus = false, minus = false;
    for (size_t i = 0; i < f->n; i++) {
        const int sign = probe_sign(&f->at[i]);
        defined += probe_defined(&f->at[i]);
        plus = plus || sign > 0;
        minus = minus || sign < 0;
    }
    f->out->defined_frac = (double)defined / (double)f->n;
    f->out->sign = f->out->n || plus == minus ? 0 : plus ? 1 : -1;
}

static enum err_code find(struct arena *scratch, struct sym_ctx *c, const struct sym *lhs, const struct sym *rhs,
                          const struct sym *var, double lo, double hi, struct sym_found *out, struct err *err)
{
    const double unknown = (double)NAN;
    struct sym_found r = {.closest_at = unknown,
                          .closest_lhs = unknown,
                          .closest_rhs = unknown,
                          .closest_frac = unknown,
                          .closest_until = unknown};
    struct finder f = {.out = &r};
    if (!(lo > 0.0 && lo < hi && isfinite(hi)))
        return err_set(err, ERR_RANGE, "%.6g to %.6g is no range of positive numbers", lo, hi);
    TRY(probe_open(scratch, c, lhs, rhs, var, &f.p, err));
    TRY(open_grid(&f, scratch, lo, hi, err));
    TRY(walk(&f, err));
    look_at_signs(&f);
    if (r.n == 0 && !r.always) look_at_closest(&f);
    *out = r;
    return ERR_OK;
}

enum err_code sym_find(struct sym_ctx *c, const struct sym *lhs, const struct sym *rhs, const struct sym *var,
                       double lo, double hi, struct sym_found *out, struct err *err)
{
    struct arena *scratch = arena_open();
    if (!scratch) return err_nomem(err);
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    const enum err_code code = find(scratch, c, lhs, rhs, var, lo, hi, out, err);
    (void)gsl_set_error_handler(before);
    arena_close(scratch);
    return code;
}
