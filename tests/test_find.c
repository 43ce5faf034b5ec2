/* Unit tests of calc/sym/find.h: roots of known polynomials and of what has no closed form, why there is none, poles,
 * touches, steps and stretches, undefined regions, hostile sizes. */
#include <gsl/gsl_errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calc/sym/find.h"
#include "calc/sym/parse.h"

struct fixture {
    struct arena *a;
    struct sym_ctx *c;
    const struct sym *x;
    struct parse_symbol symbols[3];
    struct parse_names names;
    struct err err;
};

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f) return -1;
    f->a = arena_open();
    f->c = sym_open(f->a);
    f->x = sym_var(f->c, "x");
    f->symbols[0] = (struct parse_symbol){"x", f->x};
    f->symbols[1] = (struct parse_symbol){"K", sym_var(f->c, "K")};
    f->symbols[2] = (struct parse_symbol){"A", sym_var(f->c, "A")};
    f->names = (struct parse_names){.symbols = f->symbols, .n_symbols = 3};
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

static void read_equation(struct fixture *f, const char *text, const struct sym **l, const struct sym **r)
{
    if (sym_parse_equation(f->c, text, strlen(text), &f->names, l, r, NULL, &f->err) == ERR_OK) return;
    print_message("%s: %s\n", text, f->err.text);
    fail();
}

static struct sym_found find_in(struct fixture *f, const char *text, double lo, double hi)
{
    const struct sym *l = NULL, *r = NULL;
    struct sym_found out = {.n = 0};
    read_equation(f, text, &l, &r);
    const enum err_code code = sym_find(f->c, l, r, f->x, lo, hi, &out, &f->err);
    if (code != ERR_OK) print_message("%s: %s\n", text, f->err.text);
    assert_int_equal(code, ERR_OK);
    for (size_t i = 0; i < out.n; i++) {
        assert_true(lo <= out.root[i].low && out.root[i].low <= out.root[i].high && out.root[i].high <= hi);
        assert_true(out.root[i].low <= out.root[i].value && out.root[i].value <= out.root[i].high);
        assert_true(i == 0 || out.root[i - 1].high < out.root[i].low);
    }
    return out;
}

static struct sym_found find(struct fixture *f, const char *text) { return find_in(f, text, 1e-3, 1e9); }

static void assert_near(double value, double want, double within_frac)
{
    if (!(fabs(value - want) <= within_frac * fabs(want))) print_message("%.17g, wanted %.17g\n", value, want);
    assert_true(fabs(value - want) <= within_frac * fabs(want));
}

/* exactly these crossings, no step or touch among them, each to 1e-12 */
static void expect_crossings(struct fixture *f, const char *text, size_t n, const double *want)
{
    const struct sym_found r = find(f, text);
    if (r.n != n) print_message("%s: %zu roots\n", text, r.n);
    assert_int_equal(r.n, n);
    for (size_t i = 0; i < n; i++) {
        assert_near(r.root[i].value, want[i], 1e-12);
        assert_false(r.root[i].jump || r.root[i].touch || r.root[i].flat);
        assert_int_equal(r.root[i].below, -r.root[i].above);
        assert_true(r.root[i].below != 0);
        assert_true(r.root[i].high - r.root[i].low <= 1e-12 * r.root[i].high);
    }
    assert_false(r.more || r.always);
    assert_true(n == 0 || r.closest_frac != r.closest_frac);
}

#define CROSSINGS(text, ...)                                                                                           \
    expect_crossings(f, text, sizeof((const double[]){__VA_ARGS__}) / sizeof(double), (const double[]){__VA_ARGS__})

static void test_polynomials(void **state)
{
    struct fixture *f = *state;
    CROSSINGS("3x = 17", 17.0 / 3.0);
    CROSSINGS("x^2 = 7", sqrt(7.0));
    CROSSINGS("(x - 2)(x - 3)(x - 5) = 0", 2.0, 3.0, 5.0);
    CROSSINGS("x^3 - 10x^2 + 31x = 30", 2.0, 3.0, 5.0);
    CROSSINGS("x^3 + x = 1", 0.68232780382801932737); /* the real root of x^3 + x - 1 */
    CROSSINGS("x^5 = x + 1", 1.16730397826141868426); /* x^5 - x - 1, which has no radicals */
    CROSSINGS("(x - 0.07)(x - 7)(x - 7919)(x - 104729)(x - 15485863) = 0", 0.07, 7, 7919, 104729, 15485863);
    CROSSINGS("(x - 3)(x - 3.0001) = 0", 3.0, 3.0001); /* closer than the grid: their minimum shows */
    CROSSINGS("1e300*x = 7e300", 7.0);
    CROSSINGS("x*1e-300 = 7e-300", 7.0);
    CROSSINGS("x^40 = 13^40", 13.0);
    CROSSINGS("x^97/13^97 = 1", 13.0);
    const struct sym_found r = find(f, "(x - 5)^3 = 0");
    assert_int_equal(r.n, 1);
    assert_true(r.root[0].value == 5.0);
    assert_int_equal(r.root[0].below, -1);
    assert_int_equal(r.root[0].above, 1);
}

/* whose sign is on which side */
static void test_sides(void **state)
{
    struct fixture *f = *state;
    struct sym_found r = find(f, "100 = x + 11");
    assert_int_equal(r.root[0].below, 1);
    assert_int_equal(r.root[0].above, -1);
    r = find(f, "x^2 = 5x - 6");
    assert_int_equal(r.n, 2);
    assert_true(r.root[0].below == 1 && r.root[0].above == -1 && r.root[1].below == -1 && r.root[1].above == 1);
}

static void test_without_closed_form(void **state)
{
    struct fixture *f = *state;
    CROSSINGS("max(x, 7) = 11", 11.0);
    CROSSINGS("max(3x, 41) + x/2 = 53", 106.0 / 7.0);
    CROSSINGS("min(x, 100) + x/1000 = 90", 90000.0 / 1001.0);
    CROSSINGS("pow(2, x) = 1000", log(1000.0) / log(2.0));
    CROSSINGS("pow(x, x) = 100", 3.59728502354041750549);
    CROSSINGS("log(x) = 3", exp(3.0));
    CROSSINGS("x*log(x) = 100", 29.53659905432934);
    CROSSINGS("exp(-x/1000) = 7/11", 1000.0 * log(11.0 / 7.0));
    CROSSINGS("x^(1/2) + x^(1/3) = 10", 42.41386831963472);
    CROSSINGS("1 - pow(1 - 1/8, x) = 0.9", log(0.1) / log(0.875));
    CROSSINGS("ceil(x/16) + x/1000 = 7.1", 100.0); /* between two steps */
    CROSSINGS("x*x*x/(x + 1) = 295", 17.655279191240602);
}

static void test_steps(void **state)
{
    struct fixture *f = *state;
    struct sym_found r = find(f, "ceil(x/16) = 3.5");
    assert_int_equal(r.n, 1);
    assert_true(r.root[0].jump && !r.root[0].touch && !r.root[0].flat);
    assert_true(r.root[0].value == 48.0 && r.root[0].low == 48.0 && r.root[0].high == nextafter(48.0, 49.0));
    assert_int_equal(r.root[0].below, -1);
    assert_int_equal(r.root[0].above, 1);
    r = find(f, "floor(x/16) = 3.5");
    assert_int_equal(r.n, 1);
    assert_true(r.root[0].jump && r.root[0].value == 64.0 && r.root[0].high == 64.0);
    r = find(f, "16*ceil(x/16) - 1e-4*x = 999"); /* 992 up to 992, 1008 behind */
    assert_int_equal(r.n, 1);
    assert_true(r.root[0].jump && r.root[0].value == 992.0);
    r = find(f, "ceil(x/16) - floor(x/100)*1000 = 3.5"); /* up at 48, down at 100 */
    assert_int_equal(r.n, 2);
    assert_true(r.root[0].jump && r.root[0].value == 48.0 && r.root[1].jump && r.root[1].value == 100.0);
    assert_int_equal(r.root[1].above, -1);
    r = find(f, "floor(x) + ceil(x) = 14"); /* equal at one point of a step */
    assert_int_equal(r.n, 1);
    assert_true(r.root[0].value == 7.0);
    r = find(f, "ceil(x/7) = 5"); /* over a whole stretch */
    assert_int_equal(r.n, 1);
    assert_true(r.root[0].flat && r.root[0].high == 35.0);
    assert_near(r.root[0].low, 28.0, 1e-15);
    r = find(f, "ceil(x/7) = 1000003"); /* narrower than the grid */
    assert_int_equal(r.n, 1);
    assert_true(r.root[0].flat && r.root[0].high == 7000021.0);
    assert_near(r.root[0].low, 7000014.0, 1e-15);
    r = find(f, "16*ceil(x/16) = x"); /* at every multiple of 16 */
    assert_true(r.n == FIND_ROOTS_MAX && r.more);
    for (int i = 0; i < FIND_ROOTS_MAX; i++) assert_true(r.root[i].touch && r.root[i].value == 16.0 * (i + 1));
    r = find(f, "max(x, 100) = 100");
    assert_int_equal(r.n, 1);
    assert_true(r.root[0].flat && r.root[0].low == 1e-3);
    assert_near(r.root[0].high, 100.0, 1e-13);
}

static void test_poles(void **state)
{
    struct fixture *f = *state;
    struct sym_found r = find(f, "1/(x - 3) = 0");
    assert_int_equal(r.n, 0);
    assert_int_equal(r.sign, 0);
    assert_true(r.closest_at == 1e9);
    CROSSINGS("1/(x - 3) = 1/7", 10.0);
    CROSSINGS("x/(x - 3) = x - 5", (9.0 - sqrt(21.0)) / 2.0, (9.0 + sqrt(21.0)) / 2.0); /* the pole lies between */
}

static void test_touches(void **state)
{
    struct fixture *f = *state;
    static const char *const PARABOLAS[] = {"(x - 3)^2 = 0", "x^2 + 9 = 6x", "x^2 - 6x + 9 = 0",
                                            "x^2 - 6x = -9", "6x = x^2 + 9", "max(x - 3, 3 - x) = 0"};
    for (size_t i = 0; i < sizeof PARABOLAS / sizeof PARABOLAS[0]; i++) {
        const struct sym_found r = find(f, PARABOLAS[i]);
        if (r.n != 1) print_message("%s: %zu\n", PARABOLAS[i], r.n);
        assert_int_equal(r.n, 1);
        assert_true(r.root[0].touch && !r.root[0].jump && !r.root[0].flat);
        assert_near(r.root[0].value, 3.0, 1e-7);
        assert_int_equal(r.root[0].below, i == 4 ? -1 : 1);
    }
    struct sym_found r = find(f, "(x - 3)^2 + 1/1000 = 0"); /* near, but none */
    assert_int_equal(r.n, 0);
    assert_int_equal(r.sign, 1);
    r = find(f, "x^2 + 9.001 = 6x");
    assert_int_equal(r.n, 0);
    assert_int_equal(r.sign, 1);
    assert_near(r.closest_at, 3.0, 1e-3);
    assert_near(r.closest_frac, 0.001 / 18.0, 1e-3);
}

static void test_none(void **state)
{
    struct fixture *f = *state;
    struct sym_found r = find(f, "x/(x + 1) = 295");
    assert_int_equal(r.n, 0);
    assert_int_equal(r.sign, -1);
    assert_true(r.closest_at == 1e9 && r.closest_rhs == 295.0);
    assert_near(r.closest_lhs, 1.0, 1e-8);
    assert_near(r.closest_frac, 294.0 / 295.0, 1e-8);
    assert_near(r.defined_frac, 1.0, 0.0);
    r = find(f, "x + 7 = 3");
    assert_int_equal(r.sign, 1);
    assert_true(r.closest_at == 1e-3);
    r = find(f, "x^2 = -13");
    assert_int_equal(r.n + (r.sign != 1), 0);
    r = find(f, "5 = 7");
    assert_int_equal(r.n, 0);
    assert_int_equal(r.sign, -1);
    assert_near(r.closest_frac, 2.0 / 7.0, 1e-15);
    /* identities, the second one with rounding errors of both signs */
    r = find(f, "x*x + x = x*(x + 1)");
    assert_true(r.always && r.n == 0);
    r = find(f, "(x + 1/3)^2 = x^2 + 2x/3 + 1/9");
    assert_true(r.always && r.n == 0);
    r = find(f, "(x + 1/3)^2 - x^2 - 2x/3 = 1/9");
    assert_true(r.always && r.n == 0);
}

static void test_undefined(void **state)
{
    struct fixture *f = *state;
    CROSSINGS("(x - 3)^(1/2) = 7", 52.0);
    struct sym_found r = find(f, "(x - 3)^(1/2) = 0.0001"); /* between the end of the domain and the grid */
    assert_int_equal(r.n, 1);
    assert_near(r.root[0].value, 3.00000001, 1e-12);
    r = find(f, "(3 - x)^(1/2) = 0.0001");
    assert_int_equal(r.n, 1);
    assert_near(r.root[0].value, 2.99999999, 1e-12);
    r = find(f, "(x - 3)^(1/2) = 0"); /* at the end itself */
    assert_int_equal(r.n, 1);
    assert_true(r.root[0].value == 3.0 && r.root[0].below == 0 && r.root[0].above == 1);
    r = find(f, "(x - 3)^(1/2) = -2");
    assert_int_equal(r.n, 0);
    assert_int_equal(r.sign, 1);
    assert_true(r.defined_frac > 0.6 && r.defined_frac < 0.8);
    r = find(f, "log(x - 3) = -20"); /* at the edge, where it falls to minus infinity */
    assert_int_equal(r.n, 1);
    assert_near(r.root[0].value, 3.0 + exp(-20.0), 1e-12);
    r = find(f, "(0 - x)^(1/2) = 1");
    assert_int_equal(r.n, 0);
    assert_int_equal(r.sign, 0);
    assert_true(r.defined_frac == 0.0 && r.closest_at != r.closest_at);
    r = find(f, "((x - 4)*(x - 5))^(1/2) = ((x - 4)*(x - 5))^(1/2)*3 - 1"); /* 4.5 lies between, undefined */
    assert_int_equal(r.n, 2);
    assert_near(r.root[0].value, (9.0 - sqrt(2.0)) / 2.0, 1e-12);
    assert_near(r.root[1].value, (9.0 + sqrt(2.0)) / 2.0, 1e-12);
    r = find_in(f, "pow(10, x) = pow(10, 2x)/7", 1e-3, 1e300); /* infinity less infinity above 308 */
    assert_int_equal(r.n, 1);
    assert_near(r.root[0].value, log10(7.0), 1e-12);
}

static void test_ranges(void **state)
{
    struct fixture *f = *state;
    struct sym_found r = find_in(f, "x = 13", 13.0, 14.0); /* the ends belong to the range */
    assert_int_equal(r.n, 1);
    assert_true(r.root[0].value == 13.0 && r.root[0].below == 0 && r.root[0].above == 1);
    r = find_in(f, "x = 13", 12.0, 13.0);
    assert_int_equal(r.n, 1);
    assert_true(r.root[0].value == 13.0 && r.root[0].below == -1 && r.root[0].above == 0);
    assert_int_equal(find_in(f, "x = 13", 14.0, 15.0).n, 0);
    r = find_in(f, "x^2 = 2", 1e-300, 1e300);
    assert_int_equal(r.n, 1);
    assert_near(r.root[0].value, sqrt(2.0), 1e-12);
    assert_true(find_in(f, "x = 1", 1.0, nextafter(1.0, 2.0)).always); /* within rounding */
    const struct sym *l = NULL, *rhs = NULL;
    static const double BAD[][2] = {{0, 1}, {-1, 1}, {2, 1}, {1, 1}, {1, (double)INFINITY}, {(double)NAN, 1}};
    read_equation(f, "x = 13", &l, &rhs);
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        r.n = 97;
        assert_int_equal(sym_find(f->c, l, rhs, f->x, BAD[i][0], BAD[i][1], &r, &f->err), ERR_RANGE);
        assert_int_equal(r.n, 97);
    }
    read_equation(f, "x*K = A", &l, &rhs);
    assert_int_equal(sym_find(f->c, l, rhs, f->x, 1.0, 2.0, &r, &f->err), ERR_RANGE);
    assert_non_null(strstr(f->err.text, "A has no value"));
}

/* stretches: their true ends, in them or not, and the ends of the range */
static void test_stretches(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *text;
        double low, high;
        bool open_low, open_high, from_lo, to_hi;
    } ROWS[] = {
        {"min(x, 100) = 100", 100, 1e9, false, false, false, true},
        {"max(x, 137) = 137", 1e-3, 137, false, false, true, false},
        {"ceil(x/16) = 4", 48, 64, true, false, false, false},
        {"floor(x/16) = 4", 64, 80, false, true, false, false},
        {"ceil(x/13) = 7", 78, 91, true, false, false, false},
        {"4194304*min(x, 4096) = 17179869184", 4096, 1e9, false, false, false, true},
        {"min(max(x, 7), 91)*3 = 21", 1e-3, 7, false, false, true, false},
        {"max(x, 7) + max(17 - x, 0) = 17", 7, 17, false, false, false, false},
        {"ceil(x) = 1", 1e-3, 1, false, false, true, false},
        {"floor(x/1000) = 0", 1e-3, 1000, false, true, true, false},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        const struct sym_found r = find(f, ROWS[i].text);
        if (r.n != 1 || !r.root[0].flat) fail_msg("%s: %zu roots", ROWS[i].text, r.n);
        const struct sym_root *x = &r.root[0];
        if (x->low != ROWS[i].low || x->high != ROWS[i].high)
            fail_msg("%s: from %.17g to %.17g", ROWS[i].text, x->low, x->high);
        if (x->open_low != ROWS[i].open_low || x->open_high != ROWS[i].open_high || x->from_lo != ROWS[i].from_lo ||
            x->to_hi != ROWS[i].to_hi)
            fail_msg("%s: %d %d %d %d", ROWS[i].text, x->open_low, x->open_high, x->from_lo, x->to_hi);
    }
    /* what only dies away is no stretch */
    static const char *const NEARER[] = {"(x/(x + 1))^(1/2) = 1", "exp(-x) = 0", "(3/4)^x = 0", "1 + 1/x^2 = 1",
                                         "(1 + x)^(1/2) = 1"};
    for (size_t i = 0; i < sizeof NEARER / sizeof NEARER[0]; i++) {
        const struct sym_found r = find_in(f, NEARER[i], 1e-30, 1e30);
        if (r.n || r.always) fail_msg("%s: %zu roots, from %g to %g", NEARER[i], r.n, r.root[0].low, r.root[0].high);
    }
}

static void test_closest(void **state)
{
    struct fixture *f = *state;
    struct sym_found r = find(f, "x^4 = 1e300"); /* all ratios round to nothing */
    assert_true(r.n == 0 && r.closest_at == 1e9);
    r = find(f, "x^(1/2) = -3"); /* opposite signs: by what is between */
    assert_true(r.n == 0 && r.closest_at == 1e-3);
    r = find(f, "5*min(x, 4096) = 30000");
    assert_true(r.n == 0 && r.closest_at == 4096.0 && r.closest_until == 1e9 && r.closest_lhs == 20480.0);
    r = find(f, "max(x, 7)/3 = 2");
    assert_true(r.n == 0 && r.closest_at == 1e-3);
    assert_near(r.closest_until, 7.0, 1e-12);
    r = find(f, "x + 13/x = 7");
    assert_true(r.n == 0 && r.closest_until != r.closest_until);
    assert_near(r.closest_at, sqrt(13.0), 1e-6);
}

static void handler(const char *reason, const char *file, int line, int code)
{
    (void)reason;
    (void)file;
    (void)line;
    (void)code;
}

static void test_leaves_gsl_alone(void **state)
{
    struct fixture *f = *state;
    gsl_error_handler_t *before = gsl_set_error_handler(handler);
    (void)find(f, "x^3 + x = 1");
    assert_true(gsl_set_error_handler(before) == handler);
}

static void test_hostile(void **state)
{
    struct fixture *f = *state;
    /* a saw that passes zero hundreds of millions of times: the first sixteen of those that the grid shows */
    struct sym_found r = find(f, "x - floor(x) = 1/2");
    assert_int_equal(r.n, FIND_ROOTS_MAX);
    assert_true(r.more);
    assert_near(r.root[0].value, 0.5, 1e-12);
    /* poles without end */
    const struct sym *l = NULL, *rhs = NULL;
    read_equation(f, "1/(x - 2*floor(x/2) - 1) = 0", &l, &rhs);
    (void)sym_find(f->c, l, rhs, f->x, 1e-3, 1e300, &r, &f->err); /* any answer, in bounded time */
    /* a long expression: coarser, then refused */
    const struct sym *sum = sym_int(f->c, 0);
    for (int i = 1; i < 20000; i++)
        sum = sym_add(f->c, sum, sym_div(f->c, sym_int(f->c, 1), sym_add(f->c, f->x, sym_int(f->c, i))));
    assert_int_equal(sym_find(f->c, sum, sym_int(f->c, 2), f->x, 1e-3, 1e9, &r, &f->err), ERR_OK);
    assert_int_equal(r.n, 1);
    assert_int_equal(sym_find(f->c, sum, sym_int(f->c, 2), f->x, 1e-300, 1e300, &r, &f->err), ERR_RANGE);
    assert_non_null(strstr(f->err.text, "too long"));
    /* on both sides nothing, then infinity: nowhere in the range is the root, 10^30.8 */
    r = find(f, "x^1000 = 10^308*x^990");
    assert_true(r.defined_frac < 0.5);
    assert_true(r.n == 1 && r.root[0].flat && r.root[0].high < 1.0);
    /* steps that come near to what they never reach */
    r = find(f, "x - floor(x) = 2");
    assert_int_equal(r.n, 0);
    assert_int_equal(r.sign, -1);
    assert_near(r.closest_frac, 0.5, 1e-6);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        TEST(test_polynomials), TEST(test_sides),     TEST(test_without_closed_form),
        TEST(test_steps),       TEST(test_poles),     TEST(test_touches),
        TEST(test_none),        TEST(test_undefined), TEST(test_ranges),
        TEST(test_stretches),   TEST(test_closest),   TEST(test_leaves_gsl_alone),
        TEST(test_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
