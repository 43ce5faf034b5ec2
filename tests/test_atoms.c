/* Unit tests of the logarithm and the exponential, of sums over a range, and of gradients. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "calc/sym/gradient.h"
#include "calc/sym/node.h"
#include "calc/sym/normal.h"
#include "calc/sym/parse.h"
#include "calc/sym/print.h"
#include "calc/sym/range.h"

enum { N_NAMES = 7 };

static const char *const NAMES[N_NAMES] = {"x", "y", "z", "S", "T", "W", "i"};

struct fixture {
    struct arena *a;
    struct sym_ctx *c;
    struct err err;
    struct parse_symbol symbols[N_NAMES];
    struct parse_names names;
    const struct sym *x, *y, *z, *S, *T, *W, *i;
};

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f) return -1;
    f->a = arena_open();
    f->c = sym_open(f->a);
    for (size_t k = 0; k < N_NAMES; k++) f->symbols[k] = (struct parse_symbol){NAMES[k], sym_var(f->c, NAMES[k])};
    f->names = (struct parse_names){.symbols = f->symbols, .n_symbols = N_NAMES};
    const struct sym **const out[] = {&f->x, &f->y, &f->z, &f->S, &f->T, &f->W, &f->i};
    for (size_t k = 0; k < sizeof out / sizeof out[0]; k++) *out[k] = f->symbols[k].e;
    *state = f;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    const enum err_code code = sym_check(f->c, NULL);
    arena_close(f->a);
    free(f);
    return code == ERR_OK ? 0 : -1;
}

static const struct sym *parse(struct fixture *f, const char *text)
{
    const struct sym *e = NULL;
    if (sym_parse(f->c, text, strlen(text), &f->names, &e, NULL, &f->err) != ERR_OK)
        fail_msg("'%s' refused: %s", text, f->err.text);
    return e;
}

static const struct sym *num(struct fixture *f, int64_t n) { return sym_int(f->c, n); }

static bool equal(struct fixture *f, const struct sym *a, const struct sym *b)
{
    bool yes = false;
    if (sym_equal(f->c, a, b, &yes, &f->err) != ERR_OK) fail_msg("%s", f->err.text);
    return yes;
}

static void assert_equal(struct fixture *f, const char *a, const char *b)
{
    if (!equal(f, parse(f, a), parse(f, b))) fail_msg("%s is not found equal to %s", a, b);
    const struct sym *x = NULL, *y = NULL;
    assert_int_equal(sym_normal(f->c, parse(f, a), &x, &f->err), ERR_OK);
    assert_int_equal(sym_normal(f->c, parse(f, b), &y, &f->err), ERR_OK);
    if (x != y) fail_msg("%s and %s have two canonical forms", a, b);
    assert_int_equal(sym_normal(f->c, x, &y, &f->err), ERR_OK);
    if (x != y) fail_msg("the canonical form of %s is none", a);
}

static void assert_different(struct fixture *f, const char *a, const char *b)
{
    if (equal(f, parse(f, a), parse(f, b))) fail_msg("%s is found equal to %s", a, b);
}

static void assert_near(double got, double want, double relative)
{
    if (!(fabs(got - want) <= relative * fmax(fabs(want), 1e-300))) fail_msg("%.17g, not %.17g", got, want);
}

static double value_at(struct fixture *f, const struct sym *e, const double *v)
{
    const struct sym *const in[] = {f->x, f->y, f->z};
    struct sym_tape *t = NULL;
    double r = 0.0;
    if (sym_tape_compile(f->a, 1, &e, 3, in, &t, &f->err) != ERR_OK) fail_msg("%s", f->err.text);
    sym_tape_eval(t, 1, (const double *[]){&v[0], &v[1], &v[2]}, (double *[]){&r});
    return r;
}

static uint64_t draw(uint64_t *s, uint64_t n)
{
    *s = *s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*s >> 33) % n;
}

/* ---- building, printing, evaluating ---- */

static void test_builders(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *difference = sym_sub(c, f->x, f->y);
    double v = 0.0;
    assert_ptr_equal(sym_log(c, num(f, 1)), num(f, 0));
    assert_ptr_equal(sym_exp(c, num(f, 0)), num(f, 1));
    assert_ptr_equal(sym_log(c, sym_exp(c, difference)), difference);
    assert_ptr_equal(sym_exp(c, sym_log(c, f->x)), f->x);
    assert_ptr_equal(sym_exp(c, sym_log(c, sym_max(c, difference, f->z))), sym_max(c, difference, f->z));
    assert_int_equal(sym_op(sym_exp(c, sym_log(c, difference))), SYM_EXP); /* not where x < y */
    assert_int_equal(sym_op(sym_exp(c, sym_log(c, num(f, -3)))), SYM_EXP);
    assert_int_equal(sym_op(sym_exp(c, sym_log(c, sym_floor(c, f->x)))), SYM_EXP);
    assert_ptr_equal(sym_add(c, sym_log(c, f->x), sym_log(c, f->x)), sym_mul(c, num(f, 2), sym_log(c, f->x)));
    assert_true(sym_constant(sym_log(c, num(f, 97)), &v));
    assert_near(v, log(97), 0.0);
    assert_true(sym_constant(sym_exp(c, sym_rat(c, -7, 3)), &v));
    assert_near(v, exp(-7.0 / 3.0), 0.0);
    assert_false(sym_constant(sym_log(c, f->x), &v));
    const struct sym *e = sym_exp(c, sym_div(c, sym_log(c, sym_add(c, f->x, f->y)), f->z));
    const struct sym_binding env[] = {{f->x, num(f, 5)}, {f->y, num(f, 6)}, {f->z, num(f, 3)}};
    assert_true(sym_constant(sym_bind(c, e, env, 3), &v));
    assert_near(v, cbrt(11), 1e-15);
    assert_ptr_equal(sym_bind(c, sym_log(c, f->x), &(struct sym_binding){f->x, sym_exp(c, f->y)}, 1), f->y);
    assert_ptr_equal(sym_ceil(c, sym_exp(c, num(f, 2)))->a, sym_exp(c, num(f, 2))); /* no whole number */
}

static void assert_printed(const struct sym *e, enum sym_style style, const char *want)
{
    char text[256];
    assert_int_equal(sym_print_as(e, style, text, sizeof text), strlen(want));
    assert_string_equal(text, want);
}

static void test_print(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *log = sym_log(c, sym_add(c, f->x, num(f, 3))), *exp = sym_exp(c, sym_mul(c, num(f, -1), f->y));
    const struct sym *e = sym_sub(c, sym_mul(c, num(f, 2), log), sym_pow(c, exp, num(f, 2)));
    assert_printed(e, SYM_TEXT, "2*log(x + 3) - exp(-y)^2");
    assert_printed(e, SYM_LATEX, "2 \\log\\left(x + 3\\right) - \\left(\\exp\\left(-y\\right)\\right)^{2}");
    assert_printed(e, SYM_C, "2.0*log(x + 3.0) - pow(exp(-y), 2.0)");
    assert_printed(e, SYM_GNUPLOT, "2.0*log(x + 3.0) - exp(-y)**2.0");
    assert_printed(sym_mul(c, sym_log(c, num(f, 2)), f->x), SYM_TEXT, "log(2)*x");
    char text[256];
    for (int style = SYM_TEXT; style <= SYM_LATEX; style++) {
        (void)sym_print_as(e, (enum sym_style)style, text, sizeof text);
        assert_ptr_equal(parse(f, text), e);
    }
}

static void test_tape(void **state)
{
    struct fixture *f = *state;
    enum { POINTS = 157 };
    const struct sym *e[] = {parse(f, "log(x)*y + exp(x/7 - y)"), parse(f, "log(2)*x - exp(log(3)*y)")};
    const struct sym *const in[] = {f->x, f->y};
    double x[POINTS], y[POINTS], out[2][POINTS];
    struct sym_tape *t = NULL;
    for (int p = 0; p < POINTS; p++) {
        x[p] = 0.37 + p;
        y[p] = 3.0 - p / 16.0;
    }
    assert_int_equal(sym_tape_compile(f->a, 2, e, 2, in, &t, &f->err), ERR_OK);
    sym_tape_eval(t, POINTS, (const double *[]){x, y}, (double *[]){out[0], out[1]});
    for (int p = 0; p < POINTS; p++) {
        assert_near(out[0][p], log(x[p]) * y[p] + exp(x[p] / 7 - y[p]), 1e-14);
        assert_near(out[1][p], log(2) * x[p] - exp(log(3) * y[p]), 1e-13);
    }
    x[0] = -1.0;
    sym_tape_eval(t, 1, (const double *[]){x, y}, (double *[]){out[0], NULL});
    assert_true(isnan(out[0][0]));
}

/* ---- exact algebra ---- */

static void test_equality(void **state)
{
    struct fixture *f = *state;
    static const char *const SAME[][2] = {
        {"log(x + x)", "log(2*x)"},
        {"log(2*x^2/y)", "log(2) + 2*log(x) - log(y)"},
        {"log(x^(3/7)*sqrt(y))", "3/7*log(x) + log(y)/2"},
        {"log(360)", "3*log(2) + 2*log(3) + log(5)"},
        {"log(0.85)", "log(17) - log(20)"},
        {"log(4611686014132420609)", "2*log(2147483647)"}, /* the square of a prime, found beyond 1000 */
        {"log(S^T)", "T*log(S)"},
        {"log((x + y)^2*z)", "2*log(x + y) + log(z)"},
        {"log((x + y)*(x + z))", "log(x + y) + log(x*S + z*S) - log(S)"},
        {"log((x*x - y*y)/(x + y))", "log(x - y)"},
        {"log((x - y)^3)", "3*log(x - y)"},
        {"log((x - y)^4)", "2*log((y - x)^2)"},
        {"log((x - y)/(z - S))", "-log((S - z)/(y - x))"},
        {"log(1/(x - y))", "-log(x - y)"},
        {"log(max(x, y)^2)", "2*log(max(x, y))"},
        {"log(exp(x - y)*z)", "x - y + log(z)"},
        {"log(sqrt(x - y))", "log(x - y)/2"},
        {"log(min(-x, -y)/min(-S, -T))", "log(-min(-x, -y)) - log(-min(-S, -T))"},
        {"exp(x + y)/exp(y)", "exp(x)"},
        {"exp(2*x)*exp(-3*x)*exp(x)", "1"},
        {"exp(x/2)^2", "exp(x)"},
        {"sqrt(exp(2*x)*y)", "exp(x)*sqrt(y)"},
        {"exp(-x/y)*exp(x/y)", "1"},
        {"exp(100*x)*exp(-100*x)", "1"},
        {"exp((x + y)/(x*y))", "exp(1/x)*exp(1/y)"},
        {"exp((2*x + z)/(2*x + 2*y))", "exp(x/(x + y))*sqrt(exp(z/(x + y)))"},
        {"exp(1)^3", "exp(3)"},
        {"exp(log(x) + log(y))", "x*y"},
        {"exp(log(x - y) - 2*log(z))", "(x - y)/z^2"},
        {"exp(log(x)/3)", "x^(1/3)"},
        {"exp(y*log(x))", "x^y"},
        {"exp(log(2)*x)", "2^x"},
        {"exp(x/(x + y) + y/(x + y))", "exp(1)"},
        {"ln{x}*\\exp\\left(2\\right)", "log(x)*exp(1)^2"},
    };
    for (size_t k = 0; k < sizeof SAME / sizeof SAME[0]; k++) assert_equal(f, SAME[k][0], SAME[k][1]);
    static const char *const OTHER[][2] = {
        {"log(x + y)", "log(x) + log(y)"},
        {"log(2*x)", "2*log(x)"},
        {"log(x*y)", "log(x)*log(y)"},
        {"log((x - y)^2)", "2*log(x - y)"}, /* not where x < y */
        {"log((x - y)/(z - S))", "log(x - y) - log(z - S)"},
        {"log(x)^2", "log(x^2)"},
        {"exp(x*y)", "exp(x)*exp(y)"},
        {"exp(x)", "exp(y)"},
        {"exp(x/2)", "exp(x)/2"},
        {"log(6)", "log(7)"},
    };
    for (size_t k = 0; k < sizeof OTHER / sizeof OTHER[0]; k++) assert_different(f, OTHER[k][0], OTHER[k][1]);
    const struct sym *out = NULL;
    assert_int_equal(sym_normal(f->c, parse(f, "log(2*x^2/y)"), &out, &f->err), ERR_OK);
    assert_true(equal(f, out, parse(f, "log(2) + 2*log(x) - log(y)")));
    const char *const never[] = {"log(x*(y + z) - x*y - x*z)", "log(-x*y)", "log((x - y)*(x - y)/(-z))",
                                 "log(-(x - y)^2)", "log(z*min(-x, -y))"};
    for (size_t k = 0; k < sizeof never / sizeof never[0]; k++) {
        const struct sym *e = parse(f, never[k]);
        assert_int_equal(sym_normal(f->c, e, &out, &f->err), ERR_RANGE);
        assert_non_null(strstr(f->err.text, "not positive"));
    }
}

/* log of a random monomial against the sum that it is, and against one that it is not */
static void test_random_monomials(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    static const int64_t FACTOR[] = {2, 3, 7, 31, 97, 997, 65537}; /* not a unit */
    const struct sym *var[] = {f->x, f->y, f->z, f->S, f->T};
    uint64_t s = 20260131;
    for (int round = 0; round < 300; round++) {
        const struct sym *product = num(f, 1), *sum = num(f, 0);
        const int64_t root =
            (const int64_t[]){2, 3, 5}[draw(&s, 3)]; /* one: relations of different ones are not known */
        for (int k = 0; k < 6; k++) {
            const bool number = draw(&s, 3) == 0;
            const struct sym *base = number ? num(f, FACTOR[draw(&s, 7)]) : var[draw(&s, 5)];
            const int64_t q = number || draw(&s, 2) ? 1 : root;
            const struct sym *exponent = sym_rat(c, (int64_t)draw(&s, 9) - 4, q);
            product = draw(&s, 2) ? sym_mul(c, product, sym_pow(c, base, exponent))
                                  : sym_div(c, product, sym_pow(c, base, sym_mul(c, num(f, -1), exponent)));
            sum = sym_add(c, sum, sym_mul(c, exponent, sym_log(c, base)));
        }
        assert_true(equal(f, sym_log(c, product), sum));
        assert_false(equal(f, sym_log(c, sym_mul(c, product, num(f, 11))), sum));
        assert_true(equal(f, sym_exp(c, sum), product));
    }
}

/* a random expression whose value is positive and neither huge nor tiny at points of the order of 1 */
static const struct sym *random_smooth(struct fixture *f, const struct sym **pool, size_t n, uint64_t *s)
{
    struct sym_ctx *c = f->c;
    const struct sym *a = pool[draw(s, n)], *b = pool[draw(s, n)], *one = num(f, 1);
    switch (draw(s, 9)) {
    case 0: return sym_add(c, a, b);
    case 1: return sym_mul(c, sym_rat(c, 1 + (int64_t)draw(s, 7), 5), sym_mul(c, a, b));
    case 2: return sym_div(c, a, sym_add(c, one, b));
    case 3: return sym_log(c, sym_add(c, num(f, 2), a));
    case 4: return sym_exp(c, sym_mul(c, sym_rat(c, -1, 3), a));
    case 5: return sym_pow(c, a, sym_rat(c, 1 + (int64_t)draw(s, 4), 3));
    case 6: return sym_pow(c, sym_add(c, one, a), sym_div(c, b, sym_add(c, b, num(f, 3))));
    case 7: return sym_log(c, sym_add(c, one, sym_exp(c, a)));
    default: return sym_div(c, sym_mul(c, a, num(f, 3)), b);
    }
}

static const struct sym *random_small(struct fixture *f, uint64_t *s)
{
    enum { POOL = 8 };
    const struct sym *pool[POOL] = {f->x, f->y, f->z};
    for (size_t k = 3; k < POOL; k++) pool[k] = random_smooth(f, pool, k, s);
    return sym_add(f->c, pool[POOL - 1], pool[POOL - 2]);
}

static void test_normal_keeps_values(void **state)
{
    struct fixture *f = *state;
    uint64_t s = 7919;
    int done = 0;
    for (int round = 0; round < 200; round++) {
        const struct sym *e = random_small(f, &s), *normal = NULL;
        const enum err_code code = sym_normal(f->c, e, &normal, &f->err);
        if (code == ERR_RANGE) continue; /* too large to expand */
        assert_int_equal(code, ERR_OK);
        const double v[] = {0.7 + (double)draw(&s, 100) / 64, 1.3 + (double)draw(&s, 100) / 64,
                            0.9 + (double)draw(&s, 100) / 64};
        const double want = value_at(f, e, v);
        if (!isfinite(want) || want > 1e6) continue; /* not a unit */
        assert_near(value_at(f, normal, v), want, 1e-7);
        done++;
    }
    assert_true(done > 120);
}

static void test_derivatives(void **state)
{
    struct fixture *f = *state;
    const struct sym *out = NULL;
    static const char *const CASES[][2] = {
        {"log(x*y + z)", "y/(x*y + z)"},        {"exp(-x/y)", "-exp(-x/y)/y"}, {"x*log(x) - x", "log(x)"},
        {"log(1 + exp(x))", "1/(1 + exp(-x))"}, {"x^x", "x^x*(log(x) + 1)"},   {"y^(x*z)", "z*y^(x*z)*log(y)"},
        {"log(log(x))", "1/(x*log(x))"},
    };
    for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
        assert_int_equal(sym_diff(f->c, parse(f, CASES[k][0]), f->x, &out, &f->err), ERR_OK);
        if (!equal(f, out, parse(f, CASES[k][1]))) fail_msg("the derivative of %s", CASES[k][0]);
    }
    assert_int_equal(sym_diff(f->c, parse(f, "log(min(x, y))"), f->x, &out, &f->err), ERR_RANGE);
    int64_t order = 0;
    assert_int_equal(sym_limit(f->c, parse(f, "log(x)/x"), 1, &f->x, &out, &order, &f->err), ERR_RANGE);
    assert_non_null(strstr(f->err.text, "log(x)"));
    assert_int_equal(sym_limit(f->c, parse(f, "x*log(y)/(x + z)"), 1, &f->x, &out, &order, &f->err), ERR_OK);
    assert_ptr_equal(out, sym_log(f->c, f->y));
    struct sym_solution solved;
    assert_int_equal(sym_solve(f->c, parse(f, "x*log(y)"), parse(f, "exp(z)"), f->x, &solved, &f->err), ERR_OK);
    assert_int_equal(solved.n, 1);
    assert_true(equal(f, solved.root[0], parse(f, "exp(z)/log(y)")));
    assert_int_equal(sym_solve(f->c, parse(f, "log(x)"), f->y, f->x, &solved, &f->err), ERR_RANGE);
}

static enum sym_sign sign_of(struct fixture *f, const char *text)
{
    enum sym_sign s = SYM_SIGN_UNKNOWN;
    assert_int_equal(sym_sign(f->c, parse(f, text), &s, &f->err), ERR_OK);
    return s;
}

static void test_signs(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(sign_of(f, "exp(x - y)"), SYM_SIGN_PLUS);
    assert_int_equal(sign_of(f, "-exp(-x)*y"), SYM_SIGN_MINUS);
    assert_int_equal(sign_of(f, "log(7)*x"), SYM_SIGN_PLUS);
    assert_int_equal(sign_of(f, "log(1/7)"), SYM_SIGN_MINUS);
    assert_int_equal(sign_of(f, "log(x)"), SYM_SIGN_UNKNOWN);
    assert_int_equal(sign_of(f, "log(x*y) - log(y*x)"), SYM_SIGN_ZERO);
    enum sym_sign s = SYM_SIGN_UNKNOWN;
    assert_int_equal(sym_monotone(f->c, parse(f, "1/(1 + exp(-x))"), f->x, &s, &f->err), ERR_OK);
    assert_int_equal(s, SYM_SIGN_PLUS);
    assert_int_equal(sym_monotone(f->c, parse(f, "log(x) - 1/x"), f->x, &s, &f->err), ERR_OK);
    assert_int_equal(s, SYM_SIGN_PLUS);
    struct sym_point p;
    assert_int_equal(sym_counterexample(f->c, parse(f, "log(x + y)"), parse(f, "log(x) + log(y)"), &p, &f->err),
                     ERR_OK);
}

/* ---- sums over a range ---- */

static const struct sym *sum_range(struct fixture *f, const struct sym *body, const struct sym *low,
                                   const struct sym *high)
{
    const struct sym *out = NULL;
    if (sym_sum_range(f->c, body, f->i, low, high, &out, &f->err) != ERR_OK) fail_msg("%s", f->err.text);
    return out;
}

/* the sum added up one by one */
static const struct sym *brute(struct fixture *f, const struct sym *body, int64_t low, int64_t high)
{
    const struct sym *sum = num(f, 0);
    for (int64_t n = low; n <= high; n++)
        sum = sym_add(f->c, sum, sym_bind(f->c, body, &(struct sym_binding){f->i, num(f, n)}, 1));
    return sum;
}

static void test_power_sums(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    static const int64_t RANGE[][2] = {{1, 17}, {0, 0}, {5, 4}, {-7, 11}, {-13, -14}, {-9, -3}, {29, 41}};
    for (int64_t k = 0; k <= RANGE_DEGREE_MAX; k++) {
        const struct sym *body = sym_pow(c, f->i, num(f, k)), *closed = sum_range(f, body, f->S, f->T);
        for (size_t r = 0; r < sizeof RANGE / sizeof RANGE[0]; r++) {
            const struct sym_binding env[] = {{f->S, num(f, RANGE[r][0])}, {f->T, num(f, RANGE[r][1])}};
            if (!equal(f, sym_bind(c, closed, env, 2), brute(f, body, RANGE[r][0], RANGE[r][1])))
                fail_msg("the sum of powers %d over range %zu", (int)k, r);
        }
    }
    assert_true(equal(f, sum_range(f, f->i, num(f, 1), f->T), parse(f, "T*(T + 1)/2")));
    assert_true(equal(f, sum_range(f, parse(f, "i^3"), num(f, 1), f->T), parse(f, "(T*(T + 1)/2)^2")));
    assert_ptr_equal(sum_range(f, f->x, f->S, sym_sub(c, f->S, num(f, 1))), num(f, 0));
    assert_true(equal(f, sum_range(f, f->x, f->S, f->T), parse(f, "x*(T - S + 1)")));
    assert_true(
        equal(f, sum_range(f, num(f, 1), num(f, -1000000000000), num(f, 1000000000000)), num(f, 2000000000001)));
    assert_true(equal(f, sum_range(f, f->i, num(f, INT64_MIN), num(f, INT64_MAX)), num(f, INT64_MIN)));
}

static void test_polynomial_sums(void **state)
{
    struct fixture *f = *state;
    static const char *const BODY[] = {
        "(i + x)^3*(y - i)/z",
        "x*i^2*exp(y) + log(z)*i - min(x, y)",
        "(2*i - 1)^2*(i + i*x)",
        "i*(i + 1)*(i + 2)/6",
    };
    for (size_t k = 0; k < sizeof BODY / sizeof BODY[0]; k++) {
        const struct sym *body = parse(f, BODY[k]), *closed = sum_range(f, body, f->S, sym_add(f->c, f->S, f->T));
        const struct sym_binding env[] = {{f->S, num(f, -3)}, {f->T, num(f, 13)}};
        if (!equal(f, sym_bind(f->c, closed, env, 2), brute(f, body, -3, 10))) fail_msg("the sum of %s", BODY[k]);
    }
    /* bounds are outside: the i of the bound is another */
    assert_true(equal(f, sum_range(f, f->i, num(f, 1), f->i), parse(f, "i*(i + 1)/2")));
    /* pairs of a causal mask: queries at S-T+1 .. S see as many keys */
    assert_true(equal(f, sum_range(f, f->i, parse(f, "S - T + 1"), f->S), parse(f, "S*T - T*(T - 1)/2")));
}

static void test_clamped_sums(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    static const char *const BODY[] = {
        "min(i, W)",       "max(i + 3, W)*i",   "min(W, x - i)",     "i^2*max(W - 2*i, 0) + i",
        "min(3*i, W)/2",   "min(i + 5, i + W)", "min(max(i, W), x)", "min(i, W)*max(i, x) + min(x, i + 1)",
        "x*min(W*i, 7*x)", "max(i, W/2)",       "min(i, W)^3",
    };
    uint64_t s = 65537; /* not a unit */
    for (size_t k = 0; k < sizeof BODY / sizeof BODY[0]; k++) {
        const struct sym *body = parse(f, BODY[k]), *closed = sum_range(f, body, f->S, f->T);
        for (int round = 0; round < 25; round++) {
            const int64_t low = (int64_t)draw(&s, 21) - 8, high = low - 1 + (int64_t)draw(&s, 25);
            const struct sym_binding env[] = {{f->W, num(f, 1 + (int64_t)draw(&s, 23))},
                                              {f->x, num(f, 1 + (int64_t)draw(&s, 19))},
                                              {f->S, num(f, low)},
                                              {f->T, num(f, high)}};
            const struct sym *want = brute(f, sym_bind(c, body, env, 2), low, high);
            if (!equal(f, sym_bind(c, closed, env, 4), want))
                fail_msg("the sum of %s from %d to %d", BODY[k], (int)low, (int)high);
        }
    }
    /* triangle up to p = min(max(W, S - T), S), then W each: by hand */
    const struct sym *window = sum_range(f, parse(f, "min(i, W)"), parse(f, "S - T + 1"), f->S);
    assert_true(equal(f, window,
                      parse(f, "(min(max(W, S - T), S)*(min(max(W, S - T), S) + 1) - (S - T)*(S - T + 1))/2 "
                               "+ (S - min(max(W, S - T), S))*W")));
}

static void test_sums_of_terms(void **state)
{
    struct fixture *f = *state;
    static const char *const BODY[] = {"ceil(i/16)*x", "x^i",           "1/(i + x)",           "log(i)",
                                       "exp(-i)*y",    "min(i^2, W*i)", "floor(i/3)*min(i, W)"};
    for (size_t k = 0; k < sizeof BODY / sizeof BODY[0]; k++) {
        const struct sym *body = parse(f, BODY[k]), *out = f->x;
        assert_true(equal(f, sum_range(f, body, num(f, 3), num(f, 14)), brute(f, body, 3, 14)));
        assert_ptr_equal(sum_range(f, body, num(f, 3), num(f, 2)), num(f, 0));
        assert_int_equal(sym_sum_range(f->c, body, f->i, num(f, 1), f->T, &out, &f->err), ERR_RANGE);
        assert_non_null(strstr(f->err.text, "no closed form"));
        assert_ptr_equal(out, f->x);
    }
    assert_ptr_equal(sum_range(f, parse(f, "ceil(i/16)"), num(f, 1), num(f, 10000)),
                     num(f, 16 * 625 * 626 / 2)); /* 625 blocks of 16 */
    assert_true(equal(f, sum_range(f, parse(f, "i^40"), num(f, 1), num(f, 2)), parse(f, "1 + 2^40")));
}

static void assert_sum_refused(struct fixture *f, const char *body, const struct sym *low, const struct sym *high,
                               const char *sentence)
{
    const struct sym *out = NULL;
    assert_int_equal(sym_sum_range(f->c, parse(f, body), f->i, low, high, &out, &f->err), ERR_RANGE);
    if (!strstr(f->err.text, sentence)) fail_msg("%s", f->err.text);
    assert_null(out);
}

static double seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec; /* not a unit */
}

static void test_sum_refusals(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *one = num(f, 1), *out = NULL;
    assert_sum_refused(f, "i^31", one, f->T, "power above 30");
    assert_sum_refused(f, "(i + 1)^20*i^11", one, f->T, "power above 30");
    assert_sum_refused(f, "x/i", one, f->T, "denominator");
    assert_sum_refused(f, "i^-1", one, f->T, "denominator");
    assert_sum_refused(f, "sqrt(i)", one, f->T, "no whole number");
    assert_sum_refused(f, "2^i", one, f->T, "exponent");
    assert_sum_refused(f, "exp(i)", one, f->T, "exponent");
    assert_sum_refused(f, "log(i)", one, f->T, "logarithm");
    assert_sum_refused(f, "ceil(i/7)", one, num(f, 10001), "ceil or floor");
    assert_sum_refused(f, "min(i^2, W)", one, f->T, "powers of it");
    assert_sum_refused(f, "min(i*(x - y), W)", one, f->T, "unknown sign");
    assert_sum_refused(f, "i", sym_rat(c, 1, 2), f->T, "no whole number");
    assert_sum_refused(f, "i", one, sym_num(c, (double)NAN), "no whole number");
    assert_sum_refused(f, "i", one, sym_log(c, num(f, 7)), "no whole number");
    assert_sum_refused(f, "i", num(f, 5), num(f, 3), "below the lower");
    assert_int_equal(sym_sum_range(c, f->i, sym_log(c, f->i), one, f->T, &out, &f->err), ERR_RANGE);
    /* steps are bounded, and the bound is soon reached */
    const struct sym *wide = num(f, 0);
    for (int64_t k = 0; k < 400; k++)
        wide = sym_add(c, wide, sym_min(c, sym_add(c, f->i, num(f, k)), sym_mul(c, num(f, k + 7), f->W)));
    const double start = seconds();
    assert_int_equal(sym_sum_range(c, wide, f->i, one, num(f, 10000), &out, &f->err), ERR_RANGE);
    assert_non_null(strstr(f->err.text, "too long"));
    assert_int_equal(sym_sum_range(c, wide, f->i, one, f->T, &out, &f->err), ERR_RANGE);
    assert_true(seconds() - start < 10.0);
    uint64_t steps = 40;
    assert_int_equal(sym_sum_range_within(c, f->i, f->i, one, f->T, &steps, &out, &f->err), ERR_OK);
    assert_true(steps < 40);
    assert_int_equal(sym_sum_range_within(c, parse(f, "i^9"), f->i, one, f->T, &steps, &out, &f->err), ERR_RANGE);
    assert_int_equal(steps, 0);
}

/* ---- the parser ---- */

static void assert_refused(struct fixture *f, const char *text, enum err_code code, const char *sentence)
{
    const struct sym *e = NULL;
    const enum err_code got = sym_parse(f->c, text, strlen(text), &f->names, &e, NULL, &f->err);
    if (got != code || !strstr(f->err.text, sentence)) fail_msg("'%s': code %d: %s", text, (int)got, f->err.text);
    assert_null(e);
}

static void test_parse_functions(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *log = sym_log(c, f->x), *half = sym_rat(c, 1, 2);
    assert_ptr_equal(parse(f, "log(x)"), log);
    assert_ptr_equal(parse(f, "ln (x)"), log);
    assert_ptr_equal(parse(f, "\\ln{x}"), log);
    assert_ptr_equal(parse(f, "\\log\\left(x\\right)"), log);
    assert_ptr_equal(parse(f, "yexp(x)"), sym_mul(c, f->y, sym_exp(c, f->x)));
    assert_ptr_equal(parse(f, "2\\exp{x}"), sym_mul(c, num(f, 2), sym_exp(c, f->x)));
    assert_ptr_equal(parse(f, "sqrt(x)"), sym_pow(c, f->x, half));
    assert_ptr_equal(parse(f, "\\frac{1}{\\sqrt{x y}}"),
                     sym_div(c, num(f, 1), sym_pow(c, sym_mul(c, f->x, f->y), half)));
    assert_ptr_equal(parse(f, "log(x)^2"), sym_pow(c, log, num(f, 2)));
    assert_ptr_equal(parse(f, "log x"), log);
    assert_refused(f, "log", ERR_USAGE, "the function log without brackets");
    assert_refused(f, "log(x, y)", ERR_USAGE, "log of 2 arguments, wanted one");
    assert_refused(f, "log{x)", ERR_USAGE, "')' is not expected");
    assert_refused(f, "min{x}", ERR_USAGE, "min without brackets");
    assert_refused(f, "x + log(0)", ERR_RANGE, "not positive at column 5");
    assert_refused(f, "log(1 - 2)", ERR_RANGE, "not positive");
    assert_refused(f, "exp(1001)", ERR_RANGE, "exponent beyond 1000");
    assert_refused(f, "expp(x)", ERR_USAGE, "did you mean exp?");
}

static void test_parse_sums(void **state)
{
    struct fixture *f = *state;
    assert_equal(f, "sum(n^2, n, 1, T)", "T*(T + 1)*(2*T + 1)/6"); /* a name of nobody */
    assert_equal(f, "2sum(x n y, n, S, T) + 1", "x*y*(T*(T + 1) - S*(S - 1)) + 1");
    assert_equal(f, "\\sum_{n=1}^{T} n^2", "T*(T + 1)*(2*T + 1)/6");
    assert_equal(f, "x \\sum\\limits_{n = 0}^T 3 n \\cdot y - 1", "3*x*y*T*(T + 1)/2 - 1");
    assert_equal(f, "\\sum_{\\ell=1}^{10} \\frac{\\ell}{5}", "11");
    assert_equal(f, "\\sum_{n_{kv}=1}^{4} n_{\\mathrm{kv}}", "10");
    assert_equal(f, "sum(sum(a*b, b, 1, a), a, 1, T)", "sum(a^2*(a + 1)/2, a, 1, T)");
    assert_equal(f, "sum(sum(i, i, 1, i), i, 1, T)", "T*(T + 1)*(T + 2)/6"); /* each i its own */
    assert_equal(f, "i*sum(i, i, 1, 3)", "6*i");                             /* the caller's outside */
    assert_equal(f, "sum(3E, E, 1, 4) + 2E3", "2030");                       /* no exponent where E is a name */
    assert_refused(f, "sum(2E3, E, 1, 2)", ERR_USAGE, "a number behind an operand");
    assert_equal(f, "sum(xn, n, 1, 2) + sum(n(x + 1), n, 1, 2)", "3*x + 3*(x + 1)");
    assert_equal(f, "sum(log(n), n, 1, 5)", "log(120)");
    assert_equal(f, "sum(min(n, W), n, 1, T)", "min(T, W)*(min(T, W) + 1)/2 + (T - min(T, W))*W");
    assert_equal(f, "sum(max(n, W, 2), n, 7, 7)", "max(W, 7)");
    const struct sym *l = NULL, *r = NULL;
    const char text[] = "\\sum_{n=1}^{T} n = sum(n, n, 1, T)";
    assert_int_equal(sym_parse_equation(f->c, text, strlen(text), &f->names, &l, &r, NULL, &f->err), ERR_OK);
    assert_ptr_equal(l, r);
    assert_refused(f, "sum(n, n, 1)", ERR_USAGE, "sum(expression, name, low, high)");
    assert_refused(f, "sum(n)", ERR_USAGE, "sum(expression, name, low, high)");
    assert_refused(f, "sum(n, n, 1, 2, 3)", ERR_USAGE, "a comma outside");
    assert_refused(f, "sum(n, 1, 1, 2)", ERR_USAGE, "a number where");
    assert_refused(f, "sum(n, n+1, 1, 2)", ERR_USAGE, "at column 9");
    assert_refused(f, "sum(n, n, n, 2)", ERR_USAGE, "unknown name 'n' at column 11");
    assert_refused(f, "sum(n, n, 1, 2) + n", ERR_USAGE, "unknown name 'n' at column 19");
    assert_refused(f, "1 + sum(ceil(n/2), n, 1, T)", ERR_RANGE, "ceil or floor");
    assert_refused(f, "1 + sum(ceil(n/2), n, 1, T)", ERR_RANGE, "at column 5");
    assert_refused(f, "sum(n, n, 5, 1)", ERR_RANGE, "below the lower one at column 1");
    assert_refused(f, "\\sum n", ERR_USAGE, "without _{name=low}");
    assert_refused(f, "\\sum_n n", ERR_USAGE, "without _{name=low}");
    assert_refused(f, "\\sum_{n}^{T} n", ERR_USAGE, "without _{name=low}");
    assert_refused(f, "\\sum_{n=1} n", ERR_USAGE, "without ^{high}");
    assert_refused(f, "\\sum_{n=1}^{T} n + n", ERR_USAGE, "unknown name 'n'");
    assert_refused(f, "\\sum_{n=1}^{T}", ERR_USAGE, "the text ends");
}

/* PARSE_BYTES_MAX of hostile text: refused, or read, in a moment */
static void test_parse_hostile(void **state)
{
    struct fixture *f = *state;
    static const char *const PIECE[] = {
        "sum((n+x)^30, n, 1, T)+",
        "sum(ceil(n/3), n, 1, 10000)+",
        "sum(sum(ceil(a*b/7), a, 1, 99), b, 1, 99)+",
        "sum(sum(",
        "sum(min(n, W)*max(n, x)+min(2n, y)+min(n, z), n, S, T)*",
        "\\sum_{n=1}^{T} n ",
        "log(exp(",
    };
    char *text = malloc(PARSE_BYTES_MAX + 1);
    assert_non_null(text);
    for (size_t k = 0; k < sizeof PIECE / sizeof PIECE[0]; k++) {
        size_t n = 0;
        for (; n + strlen(PIECE[k]) < PARSE_BYTES_MAX; n += strlen(PIECE[k]))
            memcpy(text + n, PIECE[k], strlen(PIECE[k]) + 1);
        text[n++] = '1';
        const struct sym *e = NULL;
        const double start = seconds();
        const enum err_code code = sym_parse(f->c, text, n, &f->names, &e, NULL, &f->err);
        assert_true(code == ERR_OK || code == ERR_RANGE || code == ERR_USAGE);
        if (seconds() - start > 10.0) fail_msg("%s... took %g s", PIECE[k], seconds() - start);
    }
    free(text);
}

/* ---- gradients ---- */

static void test_gradient_of_smooth(void **state)
{
    struct fixture *f = *state;
    const struct sym *const var[] = {f->x, f->y, f->z};
    uint64_t s = 104729;
    int done = 0;
    for (int round = 0; round < 150; round++) {
        const struct sym *e = random_small(f, &s), *d[3];
        const double v[] = {0.7 + (double)draw(&s, 100) / 64, 1.3 + (double)draw(&s, 100) / 64,
                            0.9 + (double)draw(&s, 100) / 64};
        const struct sym_at at[] = {{f->x, v[0]}, {f->y, v[1]}, {f->z, v[2]}};
        double value = 0.0, gradient[3], elasticity[3];
        bool kink = true, smooth = true;
        const double want = value_at(f, e, v);
        if (!isfinite(want) || want > 1e6) continue; /* not a unit */
        for (int k = 0; k < 3; k++) smooth = smooth && sym_diff(f->c, e, var[k], &d[k], &f->err) == ERR_OK;
        if (!smooth) continue;
        assert_int_equal(sym_gradient(NULL, e, 3, at, &value, gradient, &kink, &f->err), ERR_OK);
        assert_int_equal(sym_elasticity(f->a, e, 3, at, NULL, elasticity, NULL, &f->err), ERR_OK);
        assert_near(value, want, 0.0);
        assert_false(kink);
        for (int k = 0; k < 3; k++) {
            const double slope = value_at(f, d[k], v);
            if (fabs(gradient[k] - slope) > 1e-7 * (fabs(slope) + fabs(want)))
                fail_msg("%g, not %g", gradient[k], slope);
            assert_near(elasticity[k], gradient[k] * v[k] / want, 1e-13);
        }
        done++;
    }
    assert_true(done > 80);
}

/* (e(v + h) - e(v - h))/2h in one variable */
static double central(struct fixture *f, const struct sym *e, const double *v, int k)
{
    const double h = 1e-5; /* not a unit */
    double up[3], down[3];
    memcpy(up, v, sizeof up);
    memcpy(down, v, sizeof down);
    up[k] += h;
    down[k] -= h;
    return (value_at(f, e, up) - value_at(f, e, down)) / (2 * h);
}

static void test_gradient_at_kinks(void **state)
{
    struct fixture *f = *state;
    static const char *const CASES[] = {
        "min(x*y, 6)*z",    "max(x*y, 2*z)^2 + x",       "max(min(x, y), z/3)",
        "log(max(x, y))*z", "ceil(x/16)*y + floor(z)*x", "exp(-max(x - y, 0))",
    };
    const double side[][3] = {{2.1, 3.1, 4.3}, {1.9, 2.9, 4.3}, {5.3, 0.7, 2.9}, {0.7, 5.3, 1.1}};
    bool kink = true;
    double g[3], value = 0.0;
    for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++)
        for (size_t p = 0; p < sizeof side / sizeof side[0]; p++) {
            const double *v = side[p];
            const struct sym_at at[] = {{f->x, v[0]}, {f->y, v[1]}, {f->z, v[2]}};
            const struct sym *e = parse(f, CASES[k]);
            assert_int_equal(sym_gradient(NULL, e, 3, at, &value, g, &kink, &f->err), ERR_OK);
            assert_false(kink);
            for (int j = 0; j < 3; j++)
                if (fabs(g[j] - central(f, e, v, j)) > 1e-6) fail_msg("%s: %g", CASES[k], g[j]);
        }
    const struct sym_at tie[] = {{f->x, 2.0}, {f->y, 3.0}, {f->z, 7.0}};
    assert_int_equal(sym_gradient(NULL, parse(f, "min(x*y, 6)*z"), 3, tie, &value, g, &kink, &f->err), ERR_OK);
    assert_true(kink);
    assert_near(value, 42.0, 0.0);
    assert_true(g[0] == 21.0 || g[0] == 0.0);
    assert_near(g[2], 6.0, 0.0);
    assert_int_equal(sym_gradient(NULL, parse(f, "max(x*(1/3), 2/3)"), 1, tie, &value, g, &kink, &f->err), ERR_OK);
    assert_true(kink); /* to rounding */
    assert_int_equal(sym_gradient(NULL, parse(f, "min(z, min(x*y, 6))"), 3, tie, NULL, g, &kink, &f->err), ERR_OK);
    assert_true(kink);
    assert_int_equal(sym_gradient(NULL, parse(f, "min(x, max(x*y, 6))"), 3, tie, NULL, g, &kink, &f->err), ERR_OK);
    assert_false(kink); /* the tie does not count: x wins */
    assert_true(g[0] == 1.0 && g[1] == 0.0);
    assert_int_equal(sym_gradient(NULL, parse(f, "ceil(x)*y"), 3, tie, NULL, g, NULL, &f->err), ERR_OK);
    assert_true(g[0] == 0.0 && g[1] == 2.0);
}

static void test_euler(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *text;
        double degree;
    } CASES[] = {
        {"x*y/(x + y)", 1.0},
        {"7*x^2*y^3/z", 4.0},
        {"min(x*y, z^2)*log(1 + x/y)", 2.0},
        {"sqrt(x^2 + y*z)*exp(-z/x)", 1.0},
        {"x^(y/(y + z))*z^(z/(y + z))", 1.0},
        {"max(x, y, z)^3/(2*x + y)", 2.0},
        {"(x + y)/(x - 5*z)", 0.0},
    };
    const struct sym_at at[] = {{f->x, 3.7}, {f->y, 0.83}, {f->z, 1.9}};
    double value = 0.0, e[3];
    for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
        assert_int_equal(sym_elasticity(NULL, parse(f, CASES[k].text), 3, at, &value, e, NULL, &f->err), ERR_OK);
        assert_true(fabs(e[0] + e[1] + e[2] - CASES[k].degree) < 1e-12);
    }
    assert_int_equal(sym_elasticity(NULL, parse(f, "7*x^2*y^3/z"), 3, at, NULL, e, NULL, &f->err), ERR_OK);
    assert_true(fabs(e[0] - 2.0) + fabs(e[1] - 3.0) + fabs(e[2] + 1.0) < 1e-12); /* the exponents */
}

/* 2^60 paths from the top to x, and some 180 nodes: f = log(1 + f) + f/3 again and again */
static void test_gradient_of_shared_graph(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *e = f->x;
    double v = 0.9, slope = 1.0, value = 0.0, g[2] = {0.0, 0.0};
    for (int k = 0; k < 60; k++) {
        e = sym_add(c, sym_log(c, sym_add(c, e, num(f, 1))), sym_mul(c, sym_rat(c, 1, 3), e));
        slope *= 1 / (1 + v) + 1.0 / 3.0;
        v = log(1 + v) + v / 3;
    }
    const double start = seconds();
    assert_int_equal(
        sym_gradient(NULL, e, 2, (const struct sym_at[]){{f->x, 0.9}, {f->y, 1.0}}, &value, g, NULL, &f->err), ERR_OK);
    assert_true(seconds() - start < 1.0);
    assert_near(value, v, 1e-12);
    assert_near(g[0], slope, 1e-12);
    assert_true(g[1] == 0.0);
}

static void test_gradient_refusals(void **state)
{
    struct fixture *f = *state;
    const struct sym_at at[] = {{f->x, 0.0}, {f->y, 2.0}, {f->x, 5.0}};
    double value = 7.0, g[3] = {7.0, 7.0, 7.0};
    bool kink = true;
    assert_int_equal(sym_gradient(NULL, parse(f, "x + z"), 2, at, &value, g, &kink, &f->err), ERR_RANGE);
    assert_non_null(strstr(f->err.text, "'z'"));
    assert_int_equal(sym_gradient(NULL, parse(f, "y/x"), 2, at, &value, g, &kink, &f->err), ERR_RANGE);
    assert_non_null(strstr(f->err.text, "no finite value"));
    assert_int_equal(sym_gradient(NULL, parse(f, "sqrt(x) + y"), 2, at, &value, g, &kink, &f->err), ERR_RANGE);
    assert_non_null(strstr(f->err.text, "'x' is not finite"));
    assert_int_equal(sym_elasticity(NULL, parse(f, "x*y"), 2, at, &value, g, &kink, &f->err), ERR_RANGE);
    assert_non_null(strstr(f->err.text, "is 0 at the point"));
    assert_true(value == 7.0 && g[0] == 7.0 && g[1] == 7.0 && kink);
    /* an infinite slope that does not count, a power that is flat, and the first of two values */
    assert_int_equal(sym_gradient(NULL, parse(f, "max(sqrt(x), y)"), 2, at, &value, g, &kink, &f->err), ERR_OK);
    assert_true(value == 2.0 && g[0] == 0.0 && g[1] == 1.0 && !kink);
    assert_int_equal(sym_gradient(NULL, parse(f, "x^y"), 2, at, &value, g, &kink, &f->err), ERR_OK);
    assert_true(value == 0.0 && g[0] == 0.0 && g[1] == 0.0);
    assert_int_equal(sym_gradient(NULL, parse(f, "3x + y"), 3, at, &value, g, NULL, &f->err), ERR_OK);
    assert_true(value == 2.0 && g[0] == 3.0 && g[1] == 1.0 && g[2] == 0.0);
    assert_int_equal(sym_gradient(NULL, num(f, 5), 0, NULL, &value, NULL, NULL, &f->err), ERR_OK);
    assert_true(value == 5.0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        TEST(test_builders),
        TEST(test_print),
        TEST(test_tape),
        TEST(test_equality),
        TEST(test_random_monomials),
        TEST(test_normal_keeps_values),
        TEST(test_derivatives),
        TEST(test_signs),
        TEST(test_power_sums),
        TEST(test_polynomial_sums),
        TEST(test_clamped_sums),
        TEST(test_sums_of_terms),
        TEST(test_sum_refusals),
        TEST(test_parse_functions),
        TEST(test_parse_sums),
        TEST(test_parse_hostile),
        TEST(test_gradient_of_smooth),
        TEST(test_gradient_at_kinks),
        TEST(test_euler),
        TEST(test_gradient_of_shared_graph),
        TEST(test_gradient_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
