#include <float.h>
#include <math.h>

#include "calc/sym/node.h"
#include "calc/sym/probe.h"

enum { POINTS_MAX = 64 };

struct search {
    struct probe p;
    const char *name;
    struct err *err;
};

static enum err_code defined(const struct search *s, const struct probe_point *y)
{
    if (probe_defined(y)) return ERR_OK;
    return err_set(s->err, ERR_RANGE, "at %.40s = %.0f the two sides are %g and %g", s->name, y->x, y->lhs, y->rhs);
}

static bool holds(const struct probe_point *y) { return y->lhs <= y->rhs; }

/* What separates the sides must not shrink, but for rounding, as the variable grows from a to b. */
static enum err_code grows(const struct search *s, const struct probe_point *a, const struct probe_point *b)
{
    const double noise = 8.0 * DBL_EPSILON * fmax(a->scale, b->scale);
    if (b->gap >= a->gap - (isfinite(noise) ? noise : 0.0) && (holds(a) || !holds(b))) return ERR_OK;
    return err_set(s->err, ERR_RANGE,
                   "the left side less the right one falls from %.6g at %.40s = %.0f to %.6g at %.0f, so more is not "
                   "always worse: there is no largest to look for",
                   a->gap, s->name, a->x, b->gap, b->x);
}

static enum err_code halve(struct search *s, struct probe_point low, struct probe_point high, struct probe_point *out)
{
    while (high.x - low.x > 1.0) {
        const struct probe_point y = probe_at(&s->p, floor(low.x + (high.x - low.x) / 2.0));
        TRY(defined(s, &y));
        TRY(grows(s, &low, &y));
        TRY(grows(s, &y, &high));
        *(holds(&y) ? &low : &high) = y;
    }
    *out = low;
    return ERR_OK;
}

static enum err_code search(struct search *s, double lo, double hi, struct probe_point *out)
{
    struct probe_point at[POINTS_MAX] = {{.x = lo}};
    double scratch[5 * POINTS_MAX];
    size_t n = 1, last = 0;
    for (double step = 1.0; lo + step < hi; step *= 2.0) at[n++].x = lo + step;
    if (hi > lo) at[n++].x = hi;
    probe_column(&s->p, n, at, scratch);
    for (size_t i = 0; i < n; i++) {
        TRY(defined(s, &at[i]));
        if (i) TRY(grows(s, &at[i - 1], &at[i]));
        if (holds(&at[i])) last = i;
    }
    if (!holds(&at[0]))
        return err_set(s->err, ERR_NO, "even at %.40s = %.0f: %.6g against %.6g", s->name, lo, at[0].lhs, at[0].rhs);
    *out = at[last];
    return last + 1 < n ? halve(s, at[last], at[last + 1], out) : ERR_OK;
}

enum err_code sym_largest_whole(struct sym_ctx *c, const struct sym *lhs, const struct sym *rhs, const struct sym *var,
                                int64_t lo, int64_t hi, struct sym_whole *out, struct err *err)
{
    struct search s = {.name = sym_name(var), .err = err};
    struct probe_point y = {.x = 0.0};
    if (!(lo >= 0 && lo <= hi && hi <= INT64_C(1) << 53))
        return err_set(err, ERR_RANGE, "%lld to %lld is no range of whole numbers from 0 to 2^53", (long long)lo,
                       (long long)hi);
    struct arena *scratch = arena_open();
    if (!scratch) return err_nomem(err);
    enum err_code code = probe_open(scratch, c, lhs, rhs, var, &s.p, err);
    if (code == ERR_OK) code = search(&s, (double)lo, (double)hi, &y);
    arena_close(scratch);
    if (code == ERR_OK)
        *out = (struct sym_whole){.value = (int64_t)y.x, .at_hi = y.x == (double)hi, .lhs = y.lhs, .rhs = y.rhs};
    return code;
}
