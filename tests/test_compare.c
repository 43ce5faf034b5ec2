/* Unit tests of sym_compare: identities that hold for positive symbols are proved, what differs gets a point where it
 * does, and what is neither is said to be so. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calc/sym/interval.h"
#include "calc/sym/parse.h"
#include "calc/sym/rules.h"

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
        {"sqrt(2) + sqrt(3)", "3.14626436994"},
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

static void test_proved(void **state)
{
    static const struct pair PAIRS[] = {
        {"sqrt(B)*sqrt(D)", "sqrt(B*D)"},
        {"sqrt(B/D)", "sqrt(B)/sqrt(D)"},
        {"(2*B*D^2/S)^(1/3)", "2^(1/3)*B^(1/3)*D^(2/3)/S^(1/3)"},
        {"1/B^(1/3)", "B^(2/3)/B"},
        {"sqrt(2)*sqrt(3)", "sqrt(6)"},
        {"sqrt(2)*sqrt(3)*B + sqrt(10)/sqrt(2)", "sqrt(6)*B + sqrt(5)"},
        {"sqrt(sqrt(B))", "B^0.25"},
        {"sqrt(B)*B^(1/3)", "B^(5/6)"},
        {"(sqrt(B)*D)^(1/3)", "B^(1/6)*D^(1/3)"},
        {"sqrt(B^2 + 2*B*D + D^2)", "B + D"},
        {"sqrt(S*(B^2 + 2*B*D + D^2))", "(B + D)*sqrt(S)"},
        {"sqrt((B - D)^4)", "(B - D)^2"},
        {"sqrt((B + D)*(B + S))", "sqrt(B + D)*sqrt(B + S)"},
        {"sqrt(max(B, D))^2", "max(D, B)"},
        {"2^B*2^D", "2^(B + D)"},
        {"B^(D + 1)", "B*B^D"},
        {"B^(D - 2)*B^2", "B^D"},
        {"4^B", "2^(2*B)"},
        {"6^B", "2^B*3^B"},
        {"B^S*B^T", "B^(S + T)"},
        {"(2*B)^D", "2^D*B^D"},
        {"(B^D)^S", "B^(D*S)"},
        {"(1 - 1/E)^B*E^B", "(E - 1)^B"},
        {"sqrt(2^B)", "2^(B/2)"},
        {"sqrt(4^B)", "2^B"},
        {"max(2*B, 2*D)", "2*max(B, D)"},
        {"max(B + T, S + T)", "max(B, S) + T"},
        {"max(B, D)*min(B, D)", "B*D"},
        {"S - min(S, W)", "max(S - W, 0)"},
        {"min(S, W)/W", "min(S/W, 1)"},
        {"max(B, min(B, D))", "B"},
        {"min(B, max(D, B))", "B"},
        {"max(S, max(B, min(B, D)))", "max(B, S)"},
        {"min(B, S)", "B*S/max(B, S)"},
        {"1/min(B, S)", "max(1/B, 1/S)"},
        {"max(B, D)^2", "max(B^2, D^2)"},
        {"max(3*B*S, 6*B*D, 9*B*T)", "3*B*max(S, 2*D, 3*T)"},
        {"max(B + W, S + W, T + W)", "W + max(T, S, B)"},
        {"min(-B, -S, -T)", "-max(B, S, T)"},
        {"max(B/W, S/W, T/W)", "max(B, S, T)/W"},
        {"min(B, S) + max(B, S)", "B + S"},
        {"ceil(B + 1)", "ceil(B) + 1"},
        {"ceil((B + 32)/16)", "ceil(B/16) + 2"},
        {"ceil(B - 3) + ceil(D)", "ceil(B + ceil(D)) - 3"},
        {"floor(-B)", "-ceil(B)"},
        {"ceil((B - 1)/16)", "ceil((B + 15)/16) - 1"},
        {"floor(B + 7/2)", "floor(B + 1/2) + 3"},
        {"16*ceil(S*B/(16*B))", "16*ceil(S/16)"},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < COUNT(PAIRS); i++) {
        enum sym_verdict v = SYM_VERDICT_UNKNOWN;
        const enum err_code code = sym_compare(f->c, parse(f, PAIRS[i].a), parse(f, PAIRS[i].b), &v, NULL, &f->err);
        if (code != ERR_OK || v != SYM_VERDICT_EQUAL)
            fail_msg("%s against %s: %s", PAIRS[i].a, PAIRS[i].b, code == ERR_OK ? "not proved" : f->err.text);
    }
}

/* What is shown, too. */
static void test_shown(void **state)
{
    static const struct pair PAIRS[] = {
        {"max(B, min(B, D))", "B"},
        {"ceil(B + 1)", "ceil(B) + 1"},
        {"floor(B - 5/2)", "floor((2*B - 1)/2) - 2"},
        {"sqrt(B^2 + 2*B*D + D^2)", "B + D"},
        {"sqrt(12*S^2*T)", "2*S*sqrt(3*T)"},
        {"sqrt(sqrt(B))", "B^(1/4)"},
        {"(1 - k/E)^B", "((E - k)/E)^B"}, /* (E - k)^B/E^B would overflow where this does not */
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < COUNT(PAIRS); i++) {
        const struct sym *n = NULL, *want = parse(f, PAIRS[i].b);
        assert_int_equal(sym_normal(f->c, parse(f, PAIRS[i].a), &n, &f->err), ERR_OK);
        if (n != want) fail_msg("%s", PAIRS[i].a);
        assert_int_equal(sym_normal(f->c, want, &n, &f->err), ERR_OK);
        assert_ptr_equal(n, want);
    }
}

/* ---- random expressions: the forms of proofs have the same values ---- */

enum { RANDOM_SYMBOLS = 3, ROUNDS = 4000, POINTS = 7 };

static uint64_t draw(uint64_t *seed, uint64_t n)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*seed >> 33) % n;
}

static const struct sym *random_expression(struct fixture *f, uint64_t *seed, int depth)
{
    struct sym_ctx *c = f->c;
    const uint64_t what = depth == 0 ? draw(seed, 4) : draw(seed, 16);
    if (what < 3) return f->symbols[what].e;
    if (what == 3) return sym_rat(c, 1 + (int64_t)draw(seed, 6), 1 + (int64_t)draw(seed, 3));
    const struct sym *x = random_expression(f, seed, depth - 1);
    if (what == 4) return sym_pow(c, x, sym_rat(c, 1 + (int64_t)draw(seed, 3), 2 + (int64_t)draw(seed, 2)));
    if (what == 5) return sym_ceil(c, x);
    if (what == 6) return sym_floor(c, x);
    const struct sym *y = random_expression(f, seed, depth - 1);
    switch (what) {
    case 7:
    case 8: return sym_min(c, x, y);
    case 9:
    case 10: return sym_max(c, x, y);
    case 11: return sym_add(c, x, y);
    case 12: return sym_sub(c, x, y);
    case 13: return sym_mul(c, x, y);
    case 14: return sym_is_int(y, 0) ? x : sym_div(c, x, y);
    default: return sym_pow(c, x, y);
    }
}

static void test_forms_keep_values(void **state)
{
    struct fixture *f = *state;
    uint64_t seed = 97;
    size_t forms = 0, values = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const struct rules r = {.c = f->c, .err = &f->err, .prove = round % 2 == 0};
        const struct sym *e = random_expression(f, &seed, 4), *form[2] = {e, e};
        if (rules_rewrite(&r, e, &form[1]) != ERR_OK || rules_expand(&r, form[1], &form[1]) != ERR_OK) continue;
        forms++;
        struct arena *scratch = arena_open();
        struct sym_order o;
        struct interval *v = NULL;
        if (scratch && sym_order_make(scratch, 2, form, &o)) v = arena_array(scratch, o.n, sizeof *v);
        assert_non_null(v);
        for (size_t j = 0; j < POINTS; j++) {
            for (size_t i = 0; i < o.n; i++)
                if (o.node[i]->op == SYM_VAR) v[i] = interval_rational(1 + (int64_t)draw(&seed, 97), 13);
            interval_eval(&o, v);
            const struct interval x = v[o.pos[form[0]->index] - 1], y = v[o.pos[form[1]->index] - 1];
            if (!interval_defined(x) || !interval_defined(y)) continue;
            values += x.hi - x.lo <= 1e-9 * fabs(x.hi) && y.hi - y.lo <= 1e-9 * fabs(y.hi);
            if (!interval_apart(x, y)) continue;
            char text[2][512];
            for (int k = 0; k < 2; k++) (void)sym_print(form[k], text[k], sizeof text[k]);
            fail_msg("%s\nbecame %s:\n%g against %g", text[0], text[1], x.lo, y.lo);
        }
        arena_close(scratch);
    }
    assert_true(forms > ROUNDS / 2 && values > ROUNDS);
}

static void test_unknown(void **state)
{
    static const struct pair PAIRS[] = {
        {"exp(B/(B + D))*exp(D/(B + D))", "exp(1)"},
        {"ceil(ceil(B/2)/3)", "ceil(B/6)"},
        {"max(min(B, S), min(B, T))", "min(B, max(S, T))"},
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
        (void)sym_compare(f->c, parse(f, PAIRS[i].a), parse(f, PAIRS[i].b), &v, NULL, &f->err);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        TEST(test_differ),  TEST(test_proved),  TEST(test_shown),  TEST(test_forms_keep_values),
        TEST(test_unknown), TEST(test_refused), TEST(test_bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
