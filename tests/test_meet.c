/* Where two sides meet: closed forms, conditions in symbols, several places, steps, and the reasons why nowhere. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calc/learn/meet.h"
#include "calc/sym/parse.h"
#include "tests/learn.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct fixture {
    struct arena *a;
    struct sym_ctx *c;
    const struct sym *x;
    struct parse_symbol symbols[4];
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
    f->symbols[3] = (struct parse_symbol){"N", sym_var(f->c, "N")};
    f->names = (struct parse_names){.symbols = f->symbols, .n_symbols = COUNT(f->symbols)};
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

static const struct sym *parsed(struct fixture *f, const char *text)
{
    const struct sym *e = NULL;
    if (sym_parse(f->c, text, strlen(text), &f->names, &e, NULL, &f->err) != ERR_OK) fail_msg("%s", f->err.text);
    return e;
}

static struct meet meet(struct fixture *f, const char *text)
{
    const struct sym *l = NULL, *r = NULL;
    struct meet m = {.n = 0};
    if (sym_parse_equation(f->c, text, strlen(text), &f->names, &l, &r, NULL, &f->err) != ERR_OK ||
        meet_solve(f->a, f->c, l, r, f->x, NULL, &m, &f->err) != ERR_OK)
        fail_msg("%s: %s", text, f->err.text);
    return m;
}

static void test_closed_forms(void **state)
{
    static const struct {
        const char *text;
        size_t n;
        double value[2];
    } ROWS[] = {
        {"3*x = 51", 1, {17, 0}},
        {"x^2 + 91 = 20*x", 2, {13, 7}}, /* both positive, the larger first */
        {"x^2 + 6*x = 91", 1, {7, 0}},   /* -13 is dropped */
        {"x^2 = 2", 1, {1.4142135623730951, 0}},
        {"1/x = 3/(x + 22)", 1, {11, 0}},
        {"x*x = 5*x", 1, {5, 0}}, /* 0 is dropped */
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        const struct meet m = meet(f, ROWS[i].text);
        if (m.n != ROWS[i].n) fail_msg("%s: %zu roots", ROWS[i].text, m.n);
        assert_false(m.by_numbers || m.always);
        assert_null(m.reason);
        for (size_t k = 0; k < m.n; k++) {
            assert_non_null(m.root[k].closed);
            assert_null(m.root[k].condition);
            assert_true(fabs(m.root[k].value - ROWS[i].value[k]) <= 1e-15 * ROWS[i].value[k]);
        }
    }
    assert_true(meet(f, "(x + K)^2 = x^2 + 2*x*K + K^2").always);
}

/* Where a root is positive only for some values of the other symbols, the condition is of them and says exactly that.
 */
static void test_conditions(void **state)
{
    static const struct {
        const char *text, *root, *condition; /* condition NULL: positive whatever they are */
    } ROWS[] = {
        {"K*x = A", "A/K", NULL},
        {"x + K = A", "A - K", "A - K"},
        {"x*N/(N + x*K) = A", "A*N/(N - A*K)", "N - A*K"},
        {"x*K - x*A = N", "N/(K - A)", "K - A"},
        {"A - x*N = x*K", "A/(K + N)", NULL},
    };
    struct fixture *f = *state;
    bool equal;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        const struct meet m = meet(f, ROWS[i].text);
        assert_int_equal(m.n, 1);
        assert_true(isnan(m.root[0].value));
        assert_int_equal(sym_equal(f->c, m.root[0].closed, parsed(f, ROWS[i].root), &equal, &f->err), ERR_OK);
        assert_true(equal);
        if (!ROWS[i].condition) {
            assert_null(m.root[0].condition);
            continue;
        }
        assert_non_null(m.root[0].condition);
        assert_int_equal(sym_equal(f->c, m.root[0].condition, parsed(f, ROWS[i].condition), &equal, &f->err), ERR_OK);
        if (!equal) fail_msg("%s: the condition", ROWS[i].text);
    }
    /* -A/K is negative for all positive A and K */
    const struct meet none = meet(f, "K*x + A = 0");
    assert_int_equal(none.n, 0);
    assert_non_null(none.reason);
}

static void test_reasons(void **state)
{
    static const struct {
        const char *text, *reason;
    } ROWS[] = {
        {"8*x/(x + 3) = 295.3", "the left side grows with x, but only towards 8; the right is 295.3"},
        {"7 = 3", "the left is 7; the right is 3"},
        {"x + 5 = 2", "the left side grows with x without bound, from 5; the right is 2"},
        {"4 + 1/x = 3", "the left side falls with x, but only towards 4; the right is 3"},
        {"1/x = 0", "the left side falls with x, but only towards 0; the right is 0"},
        {"2 = 11 + 3*x^2", "the left is 2; the right side grows with x without bound, from 11"},
        {"-3*x = 2", "the left side falls with x without bound, from 0; the right is 2"},
        {"x*N/(x + K) = 2*N", "the left side grows with x, but only towards N; the right is 2*N"},
        {"x = x + 3", "the left side grows with x without bound, from 0; the right side grows with x without bound, "
                      "from 3"},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        const struct meet m = meet(f, ROWS[i].text);
        assert_int_equal(m.n, 0);
        assert_false(m.always);
        if (!m.reason || strcmp(m.reason, ROWS[i].reason) != 0) fail_msg("%s: %s", ROWS[i].text, m.reason);
    }
}

/* No real root: where the sides come closest, between them. x^2 + 13 = 4x is nearest, by the ratio of the sides, where
 * the derivative of 4x/(x^2 + 13) is 0: x = sqrt(13). 100 + x^2 = 3x: x = 10; 3x - x^2 - 200 never is positive. */
static void test_complex_roots_are_none(void **state)
{
    struct fixture *f = *state;
    struct meet m = meet(f, "x^2 + 13 = 4*x");
    assert_int_equal(m.n, 0);
    if (!m.reason || !strstr(m.reason, "; closest at x = 3.6055")) fail_msg("%s", m.reason);
    m = meet(f, "x^2 + 100 = 3*x");
    if (!m.reason || !strstr(m.reason, "closest at x = 10, where the left is 200 and the right 30"))
        fail_msg("%s", m.reason);
    m = meet(f, "3*x - x^2 = 200");
    if (!m.reason ||
        !strstr(m.reason, "the left side falls with x without bound, from 0; the right is 200; closest at x = 1.5,"))
        fail_msg("%s", m.reason);
}

static void test_by_numbers(void **state)
{
    struct fixture *f = *state;
    struct meet m = meet(f, "max(3*x, 77) = x + 101"); /* 3x = x + 101 */
    assert_int_equal(m.n, 1);
    assert_true(m.by_numbers && !m.root[0].closed && !m.root[0].jump);
    assert_true(fabs(m.root[0].value - 50.5) < 1e-9);
    assert_true(m.left && m.right);

    m = meet(f, "x^3 + 11*x = 6*x^2 + 6"); /* (x-1)(x-2)(x-3) */
    assert_int_equal(m.n, 3);
    for (size_t i = 0; i < 3; i++) assert_true(fabs(m.root[i].value - (double)(i + 1)) < 1e-9);

    m = meet(f, "17*ceil(x/17) = 1000"); /* 986 up to 986, then 1003 */
    assert_int_equal(m.n, 1);
    assert_true(m.root[0].jump);
    assert_true(fabs(m.root[0].value - 986) < 1e-9);

    m = meet(f, "min(x, 53) = 71");
    assert_int_equal(m.n, 0);
    if (!m.reason ||
        !strstr(m.reason, "the left side stays at 53 from x = 53 on, and comes there from 0; the right is 71"))
        fail_msg("%s", m.reason);

    assert_true(meet(f, "max(x, 3) + min(x, 3) = x + 3").always);
}

/* Beyond the usual range, and where even the far one has nothing. */
static void test_far_away(void **state)
{
    struct fixture *f = *state;
    struct meet m = meet(f, "x^3 = 1e60");
    assert_true(m.n == 1 && m.by_numbers && fabs(m.root[0].value / 1e20 - 1) < 1e-12);
    m = meet(f, "x^3 = 8e-75");
    assert_true(m.n == 1 && fabs(m.root[0].value / 2e-25 - 1) < 1e-12);
    m = meet(f, "x^4 = 1e300");
    assert_true(m.n == 0 && m.low <= 1.001e-30 && m.high >= 0.999e30);
    assert_string_equal(m.reason, "the left side grows with x without bound, from 0; the right is 1e+300");
    m = meet(f, "x^(1/2) = -3");
    assert_int_equal(m.n, 0);
    assert_string_equal(m.reason, "the left side is the larger one throughout");
    m = meet(f, "x^3 + x + 7 = x^3 + x + 7 + 1/(x + 1)^3"); /* the same to rounding, far out, and equal nowhere */
    assert_int_equal(m.n, 0);
}

/* A value where a side divides by zero is none, in numbers and in symbols; others beside it are. */
static void test_holes(void **state)
{
    struct fixture *f = *state;
    struct meet m = meet(f, "(x^2 - 4)/(x - 2) = 4");
    assert_int_equal(m.n, 0);
    assert_string_equal(m.reason, "they would meet at x = 2, where a side divides by zero");
    m = meet(f, "(x^2 - K^2)/(x - K) = 2*K");
    assert_int_equal(m.n, 0);
    assert_string_equal(m.reason, "they would meet at x = K, where a side divides by zero");
    m = meet(f, "x*(x - 3)/(x - 3)*(x - 5) = 5*x - 21 + x - x"); /* x^2 - 10x + 21: 3 is a hole, 7 is not */
    assert_true(m.n == 1 && fabs(m.root[0].value - 7) < 1e-12);
}

/* Which of two roots is positive: by their sum and product. */
static void test_pairs(void **state)
{
    static const struct {
        const char *text;
        size_t n;
        const char *condition; /* NULL: none */
    } ROWS[] = {
        {"x^2 + K^2 = 100", 1, "100 - K^2"}, {"x^2 + K^2 + A*x = 100", 1, "100 - K^2"},
        {"K*x^2 + A*x = N", 1, NULL},        {"x^2 + K^2 = A*x", 2, "A^2 - 4*K^2"},
        {"x^2 + A*x + K = 0", 0, NULL},      {"x^2 = A", 1, NULL},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        const struct meet m = meet(f, ROWS[i].text);
        bool equal;
        if (m.n != ROWS[i].n) fail_msg("%s: %zu roots", ROWS[i].text, m.n);
        for (size_t k = 0; k < m.n; k++) {
            assert_true((m.root[k].condition == NULL) == (ROWS[i].condition == NULL));
            if (!ROWS[i].condition) continue;
            const struct sym *want = parsed(f, ROWS[i].condition);
            assert_int_equal(sym_equal(f->c, m.root[k].condition, want, &equal, &f->err), ERR_OK);
            if (!equal) fail_msg("%s: the condition", ROWS[i].text);
        }
    }
    const struct meet larger = meet(f, "x^2 + 6*A*x = K"); /* 1 is a root where K = 1 + 6A; the other is negative */
    const struct sym_binding env[] = {{f->symbols[2].e, sym_int(f->c, 5)}, {f->symbols[1].e, sym_int(f->c, 31)}};
    double v = 0;
    assert_int_equal(larger.n, 1);
    assert_true(sym_constant(sym_bind(f->c, larger.root[0].closed, env, 2), &v) && fabs(v - 1) < 1e-9);
}

/* Answers lie within limits, closed or by numbers. */
static void test_limits(void **state)
{
    struct fixture *f = *state;
    struct meet m;
    const struct meet_limits eight = {.low = (double)NAN, .high = 8}, three = {.low = 3, .high = (double)NAN};
    const struct sym *cubic = parsed(f, "x^3 + 11*x"), *rest = parsed(f, "6*x^2 + 6"); /* 1, 2, 3 */
    assert_int_equal(meet_solve(f->a, f->c, parsed(f, "2*x"), parsed(f, "17"), f->x, &eight, &m, &f->err), ERR_OK);
    assert_true(m.n == 0 && !m.by_numbers && m.reason);
    assert_int_equal(meet_solve(f->a, f->c, parsed(f, "2*x"), parsed(f, "16"), f->x, &eight, &m, &f->err), ERR_OK);
    assert_true(m.n == 1);
    assert_int_equal(meet_solve(f->a, f->c, parsed(f, "x^2 + 91"), parsed(f, "20*x"), f->x, &eight, &m, &f->err),
                     ERR_OK);
    assert_true(m.n == 1 && fabs(m.root[0].value - 7) < 1e-12);
    const struct meet_limits some = {.low = 1.5, .high = 2.5};
    assert_int_equal(meet_solve(f->a, f->c, cubic, rest, f->x, &some, &m, &f->err), ERR_OK);
    assert_true(m.n == 1 && m.by_numbers && fabs(m.root[0].value - 2) < 1e-9);
    assert_int_equal(meet_solve(f->a, f->c, parsed(f, "2*x"), parsed(f, "5"), f->x, &three, &m, &f->err), ERR_OK);
    assert_int_equal(m.n, 0);
}

static void test_neither_closed_nor_numbers(void **state)
{
    struct fixture *f = *state;
    struct meet m;
    assert_int_equal(meet_solve(f->a, f->c, parsed(f, "max(K*x, A)"), parsed(f, "x + 3"), f->x, NULL, &m, &f->err),
                     ERR_RANGE);
    assert_non_null(strstr(f->err.text, "no numbers"));
}

/* The closed form of the whole model's equation is where the two sides are equal. */
static void test_a_model_meets(void **state)
{
    (void)state;
    struct learn f;
    struct err e = {0};
    struct meet m;
    if (learn_open(&f, "llama-3.1-8b", "h100-sxm", 1, false, &e) != ERR_OK) fail_msg("%s", e.text);
    const struct quantity_scope *s = &f.scope;
    const struct sym_binding batch = {s->y.B, sym_int(s->c, 29)};
    const struct sym *kv = sym_bind(s->c, learn_named(s, "kv_bytes", &e), &batch, 1);
    assert_int_equal(meet_solve(f.a, s->c, kv, learn_named(s, "weight_bytes", &e), s->y.S, NULL, &m, &e), ERR_OK);
    assert_int_equal(m.n, 1);
    assert_true(fabs(m.root[0].value - learn_at(s, learn_named(s, "weight_bytes", &e), 1, 1) / (29 * 131072.0)) < 1e-9);

    const struct sym_binding context = {s->y.S, sym_int(s->c, 8191)};
    const struct sym *step = sym_bind(s->c, learn_named(s, "decode_step", &e), &context, 1);
    assert_int_equal(meet_solve(f.a, s->c, step, sym_rat(s->c, 23, 1000), s->y.B, NULL, &m, &e), ERR_OK);
    assert_true(m.n == 1 && m.by_numbers);
    const struct sym_binding found = {s->y.B, sym_num(s->c, m.root[0].value)};
    double seconds = 0;
    assert_true(sym_constant(sym_bind(s->c, step, &found, 1), &seconds));
    assert_true(fabs(seconds - 0.023) < 1e-12);
    arena_close(f.a);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        TEST(test_closed_forms),
        TEST(test_conditions),
        TEST(test_reasons),
        TEST(test_complex_roots_are_none),
        TEST(test_by_numbers),
        TEST(test_far_away),
        TEST(test_holes),
        TEST(test_pairs),
        TEST(test_limits),
        TEST(test_neither_closed_nor_numbers),
        cmocka_unit_test(test_a_model_meets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
