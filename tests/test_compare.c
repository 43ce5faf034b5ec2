/* Unit tests of sym_compare: identities that hold for positive symbols are proved, what differs gets a point where it
 * does, and what is neither is said to be so. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "calc/sym/node.h"
#include "calc/sym/normal.h"
#include "calc/sym/parse.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

enum { N_NAMES = 9 };

static const char *const NAMES[N_NAMES] = {"B", "S", "T", "D", "F", "W", "L", "E", "k"};

struct fixture {
    struct arena *a;
    struct sym_ctx *c;
    struct err err;
    struct parse_symbol symbols[N_NAMES];
    struct parse_names names;
};

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f) return -1;
    f->a = arena_open();
    f->c = sym_open(f->a);
    for (size_t i = 0; i < N_NAMES; i++) f->symbols[i] = (struct parse_symbol){NAMES[i], sym_var(f->c, NAMES[i])};
    f->names = (struct parse_names){.symbols = f->symbols, .n_symbols = N_NAMES};
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

struct pair {
    const char *a, *b;
};

static enum sym_verdict compare(struct fixture *f, struct pair p, struct sym_point *x)
{
    enum sym_verdict v = SYM_VERDICT_UNKNOWN;
    const enum err_code code = sym_compare(f->c, parse(f, p.a), parse(f, p.b), &v, x, &f->err);
    if (code != ERR_OK) fail_msg("%s against %s: %s", p.a, p.b, f->err.text);
    return v;
}

/* ---- points ---- */

static void test_differ(void **state)
{
    static const struct pair PAIRS[] = {
        {"B", "D"},
        {"max(B, 1)", "B"},
        {"ceil(B)", "B"},
        {"min(B, 5000000)", "B"},
        {"log(B*D)", "log(B)*log(D)"},
        {"log(B) + 1/10^13", "log(B)"},
        {"97^61*B", "97^61*B + 1"},
        {"B*97^300/97^299", "98*B"},
        {"sqrt((B - D)^2)", "B - D"},
        {"sqrt(B^2 + D^2)", "B + D"},
        {"2^B*D", "2^(B*D)"},
        {"floor(B) + 1", "ceil(B)"},
        {"ceil(B/2)", "ceil(B)/2"},
        {"(B + S + D + F + L)^40", "(B + S + D + F + L)^40 + B"},
        {"(B + S + D + F + L)^40", "(B + S + D + F + 2L)^40"},
        {"min(B, S)*max(B, D)", "B*S"},
        {"(1 - 1/E)^B", "1 - B/E"},
        {"exp(B)", "exp(D)"},
        {"10^300*B*10^300/10^590", "10^300*D*10^300/10^590"},
        {"sqrt(2) + sqrt(3)", "3.1462643699419723"},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < COUNT(PAIRS); i++) {
        struct sym_point x = {.n = 0};
        const struct sym *a = parse(f, PAIRS[i].a), *b = parse(f, PAIRS[i].b), *gap;
        if (compare(f, PAIRS[i], &x) != SYM_VERDICT_DIFFER) fail_msg("%s against %s", PAIRS[i].a, PAIRS[i].b);
        double v[2] = {0.0, 0.0};
        assert_true(sym_constant(x.value[0], &v[0]) && sym_constant(x.value[1], &v[1]));
        assert_true(x.value[0] != x.value[1] && isfinite(v[0]) && isfinite(v[1]));
        for (size_t j = 0; j < x.n; j++) assert_true(x.at[j].value->above);
        a = sym_bind(f->c, a, x.at, x.n);
        b = sym_bind(f->c, b, x.at, x.n);
        if (sym_normal(f->c, sym_sub(f->c, a, b), &gap, NULL) == ERR_OK) assert_false(sym_is_int(gap, 0));
        struct sym_point again;
        assert_int_equal(compare(f, PAIRS[i], &again), SYM_VERDICT_DIFFER);
        for (size_t j = 0; j < x.n; j++) assert_ptr_equal(x.at[j].value, again.at[j].value);
    }
}

static void test_unknown(void **state)
{
    static const struct pair PAIRS[] = {
        {"exp(B/(B + D))*exp(D/(B + D))", "exp(1)"},
        {"ceil(ceil(B/2)/3)", "ceil(B/6)"},
        {"(B + S + D + F + L)^40", "((B + S + D + F + L)^20)^2"},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < COUNT(PAIRS); i++)
        if (compare(f, PAIRS[i], NULL) != SYM_VERDICT_UNKNOWN) fail_msg("%s against %s", PAIRS[i].a, PAIRS[i].b);
}

static void test_refused(void **state)
{
    static const struct pair PAIRS[] = {
        {"1/((B + 1)*(B - 1) - B^2 + 1)", "D"},
        {"sqrt(-B)", "2*sqrt(-B)"},
        {"log(-B - D)", "log(-B)"},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < COUNT(PAIRS); i++) {
        enum sym_verdict v = SYM_VERDICT_EQUAL;
        f->err.text[0] = '\0';
        assert_int_equal(sym_compare(f->c, parse(f, PAIRS[i].a), parse(f, PAIRS[i].b), &v, NULL, &f->err), ERR_RANGE);
        assert_true(f->err.text[0] != '\0' && v == SYM_VERDICT_EQUAL);
    }
}

/* Where nothing is proved, and where much would have to be expanded. */
static void test_bounded(void **state)
{
    static const struct pair PAIRS[] = {
        {"(B + S + D + F + L)^40", "(B + S + D + F + L)^41/(B + S + D + F + L)"},
        {"(B + S + D + F + L)^40*max(B, 1)", "B*(B + S + D + F + L)^40"},
        {"sqrt(B + S + D + F + L)^81", "(B + S + D + F + L)^41"},
        {"(B + 1/3)^1000*(D + 1/7)^1000", "(D + 1/7)^999*(B + 1/3)^1000*(D + 1/7 + 10^-300)"},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < COUNT(PAIRS); i++) {
        enum sym_verdict v;
        const clock_t start = clock();
        (void)sym_compare(f->c, parse(f, PAIRS[i].a), parse(f, PAIRS[i].b), &v, NULL, &f->err);
        const double took_s = (double)(clock() - start) / CLOCKS_PER_SEC;
        if (took_s > 10.0) fail_msg("%s: %g s", PAIRS[i].a, took_s);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {TEST(test_differ), TEST(test_unknown), TEST(test_refused), TEST(test_bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
