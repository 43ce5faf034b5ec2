#include "calc/learn/grade_values.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 400, EXPRESSIONS_MAX = EXERCISE_SLIPS_MAX + 2 };

static const double SAME_FRAC = 1e-9; /* not a unit */

/* ---- the points ---- */

static const int PRIMES[GRADE_SYMBOLS_MAX] = {5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61};

/* Whole numbers that repeat from run to run: 1 to 9, then 10 to some hundreds. */
static void fill_points(struct grade_values *v)
{
    uint32_t x = 1;
    for (size_t p = 0; p < GRADE_SMALL_N + GRADE_LARGE_N; p++)
        for (size_t i = 0; i < GRADE_SYMBOLS_MAX; i++) {
            x = x * UINT32_C(1664525) + UINT32_C(1013904223); /* Numerical Recipes, 2nd edition, 7.1 */
            v->at[i][p] = p < GRADE_SMALL_N ? 1 + (x >> 24) % 9 : 10 + (x >> 20) % 900;
        }
    for (size_t k = 0; k <= GRADE_SYMBOLS_MAX; k++)
        for (size_t i = 0; i < GRADE_SYMBOLS_MAX; i++)
            v->at[i][GRADE_SMALL_N + GRADE_LARGE_N + k] = PRIMES[i] * (k == i + 1 ? 2 : 1);
}

static bool depends(const struct grade *g, const struct sym *e, size_t symbol)
{
    const struct sym_binding one = {g->q->symbols[symbol], sym_int(g->c, 1)};
    return sym_bind(g->c, e, &one, 1) != e;
}

enum err_code grade_values_make(const struct grade *g, const struct sym *given, struct grade_values *out, struct err *e)
{
    const struct exercise_question *q = g->q;
    const struct sym *expressions[EXPRESSIONS_MAX] = {given, q->answer};
    double *columns[EXPRESSIONS_MAX] = {out->given, out->right};
    const double *in[GRADE_SYMBOLS_MAX];
    struct sym_tape *tape;
    memset(out, 0, sizeof *out);
    out->g = g;
    fill_points(out);
    for (size_t i = 0; i < q->slips_n; i++) {
        expressions[i + 2] = q->slips[i].formula;
        columns[i + 2] = out->slip[i];
    }
    for (size_t i = 0; i < q->symbols_n; i++) {
        const bool right = depends(g, q->answer, i), left = depends(g, given, i);
        out->right_depends_n += right;
        out->given_depends_n += left;
        out->varies[i] = right || left;
        in[i] = out->at[i];
    }
    TRY(sym_check(g->c, e));
    TRY(sym_tape_compile(g->arena, q->slips_n + 2, expressions, q->symbols_n, q->symbols, &tape, e));
    sym_tape_eval(tape, GRADE_POINTS_N, in, columns);
    return ERR_OK;
}

static bool same(double a, double b) { return fabs(a - b) <= SAME_FRAC * fmax(fabs(a), fabs(b)); }

bool grade_values_agree(const double *a, const double *b)
{
    size_t met = 0;
    for (size_t p = 0; p < GRADE_POINTS_N; p++) {
        if (!isfinite(a[p]) || !isfinite(b[p])) continue;
        if (!same(a[p], b[p])) return false;
        met++;
    }
    return met > GRADE_POINTS_N / 2;
}

/* ---- what it is off by ---- */

static double ratio(const struct grade_values *v, size_t p) { return v->given[p] / v->right[p]; }

/* given = coefficient * product of symbols to whole powers * right */
static bool read_monomial(const struct grade_values *v, double power[GRADE_SYMBOLS_MAX], double *coefficient)
{
    const size_t base = GRADE_SMALL_N + GRADE_LARGE_N;
    for (size_t i = 0; i < v->g->q->symbols_n; i++) {
        const double x = log2(ratio(v, base + 1 + i) / ratio(v, base));
        power[i] = round(x);
        if (!isfinite(x) || fabs(x - power[i]) > 1e-7) return false;
    }
    for (size_t p = 0; p < GRADE_POINTS_N; p++) {
        double rest = ratio(v, p);
        for (size_t i = 0; i < v->g->q->symbols_n; i++) rest /= pow(v->at[i][p], power[i]);
        if (p == 0) *coefficient = rest;
        if (!isfinite(rest) || fabs(rest - *coefficient) > 1e-7 * fabs(*coefficient)) return false;
    }
    return *coefficient != 0;
}

static enum err_code say_constant(const struct grade_values *v, double x, struct exercise_verdict *out, struct err *e)
{
    if (fabs(x + 1) < SAME_FRAC) return grade_wrong(v->g, out, e, "off by the sign");
    return grade_wrong(v->g, out, e, "%s by a constant factor%s", fabs(x) > 1 ? "too large" : "too small",
                       x < 0 ? ", and of the wrong sign" : "");
}

/* Symbols to powers, those above the stroke (sign 1) or below it (-1) first. */
static const char *monomial_text(const struct grade_values *v, const double *power, double sign)
{
    struct sym_ctx *c = v->g->c;
    const struct sym *up = sym_int(c, 1), *down = up;
    char *text = arena_alloc(v->g->arena, TEXT_MAX);
    for (size_t i = 0; i < v->g->q->symbols_n; i++) {
        const int64_t n = (int64_t)(sign * power[i]);
        const struct sym *x = sym_pow(c, v->g->q->symbols[i], sym_int(c, n < 0 ? -n : n));
        if (n > 0) up = sym_mul(c, up, x);
        if (n < 0) down = sym_mul(c, down, x);
    }
    if (text) (void)sym_print(sym_div(c, up, down), text, TEXT_MAX);
    return text;
}

/* Off by a product of symbols: said when it has fewer of them than the answer, which it would give away otherwise. */
static enum err_code say_monomial(const struct grade_values *v, bool *said, struct exercise_verdict *out, struct err *e)
{
    double power[GRADE_SYMBOLS_MAX], coefficient = 0;
    size_t up = 0, down = 0;
    *said = false;
    if (!read_monomial(v, power, &coefficient)) return ERR_OK;
    for (size_t i = 0; i < v->g->q->symbols_n; i++) {
        up += power[i] > 0;
        down += power[i] < 0;
    }
    *said = up + down <= 2 && up + down < v->right_depends_n;
    if (!*said) return ERR_OK;
    if (up + down == 0) return say_constant(v, coefficient, out, e);
    const char *text = monomial_text(v, power, up ? 1 : -1);
    if (!text) return err_nomem(e);
    const bool constant = fabs(fabs(coefficient) - 1) > SAME_FRAC;
    return grade_wrong(v->g, out, e, "%s a factor of %s%s%s",
                       down == 0 ? "too large by"
                       : up == 0 ? "too small by"
                                 : "off by",
                       text, constant ? ", and off by a constant" : "",
                       coefficient < 0 ? ", and of the wrong sign" : "");
}

/* ---- a point ---- */

static enum err_code say_point(const struct grade_values *v, size_t p, struct exercise_verdict *out, struct err *e)
{
    char at[TEXT_MAX] = "";
    for (size_t i = 0; i < v->g->q->symbols_n; i++) {
        const size_t n = strlen(at);
        if (v->varies[i])
            (void)snprintf(at + n, sizeof at - n, "%s%s = %g", n ? ", " : "", sym_name(v->g->q->symbols[i]),
                           v->at[i][p]);
    }
    if (!isfinite(v->given[p]))
        return grade_wrong(v->g, out, e, "at %s this has no value, and it should be %.6g", at, v->right[p]);
    return grade_wrong(v->g, out, e, "at %s this gives %.6g, and it should be %.6g", at, v->given[p], v->right[p]);
}

enum err_code grade_values_say(const struct grade_values *v, struct exercise_verdict *out, struct err *e)
{
    const struct exercise_question *q = v->g->q;
    for (size_t i = 0; i < q->slips_n; i++)
        if (grade_values_agree(v->given, v->slip[i])) return grade_wrong(v->g, out, e, "%s", q->slips[i].hint);
    if (v->given_depends_n == 0 && v->right_depends_n > 0)
        return grade_wrong(v->g, out, e, "a number; what is asked depends on the symbols: %s", q->form);
    bool said;
    TRY(say_monomial(v, &said, out, e));
    if (said) return ERR_OK;
    size_t none = GRADE_POINTS_N;
    for (size_t p = 0; p < GRADE_POINTS_N; p++) {
        if (!isfinite(v->right[p])) continue;
        if (!isfinite(v->given[p]) && none == GRADE_POINTS_N) none = p;
        /* not by what rounding alone may do */
        if (isfinite(v->given[p]) &&
            fabs(v->given[p] - v->right[p]) > 1e-6 * fmax(fabs(v->given[p]), fabs(v->right[p])))
            return say_point(v, p, out, e);
    }
    if (none < GRADE_POINTS_N) return say_point(v, none, out, e);
    return grade_wrong(v->g, out, e, "not equal, though the values are near each other");
}
