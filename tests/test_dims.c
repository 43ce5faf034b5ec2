/* What expressions are measured in: drawn ones whose dimensions are known by how they are made. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "calc/sym/dims.h"
#include "calc/sym/parse.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
    const char *name;
    enum units_kind kind;
} LEAVES[] = {
    {"bytes_of", UNITS_BYTES},        {"flops_of", UNITS_FLOPS},   {"time_of", UNITS_SECONDS},
    {"bandwidth", UNITS_BYTES_PER_S}, {"peak", UNITS_FLOPS_PER_S}, {"ridge", UNITS_FLOPS_PER_BYTE},
    {"rate", UNITS_TOK_PER_S},        {"part", UNITS_FRAC},        {"B", UNITS_NONE},
};

struct fixture {
    struct arena *a;
    struct sym_ctx *c;
    struct parse_symbol symbols[COUNT(LEAVES)];
    struct parse_names names;
};

static void begin(struct fixture *f)
{
    f->a = arena_open();
    f->c = sym_open(f->a);
    for (size_t i = 0; i < COUNT(LEAVES); i++)
        f->symbols[i] = (struct parse_symbol){LEAVES[i].name, sym_dims_leaf(f->c, LEAVES[i].name, LEAVES[i].kind)};
    f->names = (struct parse_names){.symbols = f->symbols, .n_symbols = COUNT(LEAVES), .units = true, .dims = true};
}

/* 1 agree, 0 sides differ, -1 terms do. */
static int verdict(struct fixture *f, const char *text, char said[2][SYM_DIMS_TEXT])
{
    const struct sym *side[2];
    struct sym_dims d[2], one, other;
    struct err e = {.code = ERR_OK};
    if (sym_parse_equation(f->c, text, strlen(text), &f->names, &side[0], &side[1], NULL, &e) != ERR_OK)
        fail_msg("%s: %s", text, e.text);
    for (int i = 0; i < 2; i++)
        if (!sym_dims_of(side[i], &d[i], &one, &other)) {
            (void)sym_dims_text(&one, said[0]);
            (void)sym_dims_text(&other, said[1]);
            return -1;
        }
    for (int i = 0; i < 2; i++) (void)sym_dims_text(&d[i], said[i]);
    return sym_dims_agree(&d[0], &d[1]);
}

static void test_sides(void **state)
{
    static const struct {
        const char *text;
        int verdict;
    } CASES[] = {
        {"bytes_of = 80GB", 1},
        {"bytes_of = 80ms", 0},
        {"flops_of = 3GB", 0},
        {"bytes_of/bandwidth = 20ms", 1},
        {"bytes_of*bandwidth = 20ms", 0},
        {"flops_of/peak + bytes_of/bandwidth = time_of", 1},
        {"max(flops_of/peak, bytes_of/peak) = time_of", -1},
        {"min(bytes_of, 3GB) = time_of*bandwidth", 1},
        {"bytes_of + 80ms = 3GB", -1},
        {"bytes_of - bytes_of + time_of = 3ms", 1},
        {"ridge = peak/bandwidth", 1},
        {"ridge = 295", 1},
        {"ridge = 5TB/s", 0},
        {"bytes_of = 20kB/token*4096 tokens", 1},
        {"bytes_of = 4096 tokens", 0},
        {"part = 25%", 1},
        {"part = 3 ms", 0},
        {"bytes_of/bytes_of = 3ms*rate", 1},
        {"rate*time_of = 4096", 1},
        {"ceil(time_of/3us)*20 kB/token = bytes_of", 1},
        {"sqrt(bytes_of^2) = 3MB", 1},
        {"sqrt(bytes_of) = 3MB", 0},
        {"log(bytes_of) = 5", 1},
        {"2^B = 3MB", 1},
        /* sizes and plain numbers may be anything: a rate, bytes of an element */
        {"flops_of = 6*B", 1},
        {"bytes_of = 2*B*B", 1},
        {"bytes_of/3.35e12 = 20ms", 1},
        {"bytes_of*3e-13 = 20ms", 1},
        {"bytes_of = 4096", 1},
        {"2*bytes_of = 20ms", 0},
        {"time_of + 5 = 20ms", 1},
        {"bytes_of + B = 20ms", 0},
    };
    struct fixture f;
    char said[2][SYM_DIMS_TEXT];
    (void)state;
    begin(&f);
    for (size_t i = 0; i < COUNT(CASES); i++)
        if (verdict(&f, CASES[i].text, said) != CASES[i].verdict)
            fail_msg("%s: %d, %s beside %s", CASES[i].text, verdict(&f, CASES[i].text, said), said[0], said[1]);
    arena_close(f.a);
}

static void test_texts(void **state)
{
    static const char *const TEXTS[][2] = {
        {"bytes_of = 1ms", "bytes"},
        {"bytes_of*bytes_of = 1ms", "bytes^2"},
        {"bandwidth = 1ms", "bytes/s"},
        {"ridge = 1ms", "flops/byte"},
        {"rate = 1ms", "1/s"},
        {"time_of*peak = 1ms", "flops"},
        {"peak*bandwidth = 1ms", "flops*bytes/s^2"},
        {"flops_of/(bytes_of*time_of) = 1MB", "flops/byte*s"},
        {"part = 1ms", "a number"},
    };
    struct fixture f;
    char said[2][SYM_DIMS_TEXT];
    (void)state;
    begin(&f);
    for (size_t i = 0; i < COUNT(TEXTS); i++) {
        assert_int_equal(verdict(&f, TEXTS[i][0], said), 0);
        assert_string_equal(said[0], TEXTS[i][1]);
    }
    arena_close(f.a);
}

/* Closed forms of sums within sums share their parts: a tree of 3^60 nodes is not walked to its end. */
static void test_shared(void **state)
{
    struct fixture f;
    struct sym_dims d, one, other;
    (void)state;
    begin(&f);
    const struct sym *e = f.symbols[0].e, *x = sym_var(f.c, "x");
    for (int i = 0; i < 60; i++) e = sym_add(f.c, sym_mul(f.c, e, sym_add(f.c, e, x)), sym_pow(f.c, e, x));
    assert_true(sym_dims_of(e, &d, &one, &other));
    assert_true(d.open);
    arena_close(f.a);
}

/* Products of drawn powers: their exponents added by hand are those that are found, in whatever order. */
static void test_drawn(void **state)
{
    static const double POWERS[COUNT(LEAVES)][3] = {{1, 0, 0},  {0, 1, 0},  {0, 0, 1}, {1, 0, -1}, {0, 1, -1},
                                                    {-1, 1, 0}, {0, 0, -1}, {0, 0, 0}, {0, 0, 0}};
    struct fixture f;
    uint64_t at = 5;
    (void)state;
    begin(&f);
    for (int n = 0; n < 2000; n++) {
        const struct sym *e = sym_int(f.c, 3);
        double sum[3] = {0, 0, 0};
        struct sym_dims d, one, other;
        for (int i = 0; i < 6; i++) {
            at = at * 6364136223846793005u + 1442695040888963407u; /* Knuth, MMIX */
            const size_t k = (size_t)(at >> 33) % COUNT(LEAVES);
            const int power = (int)((at >> 50) % 5) - 2;
            e = sym_mul(f.c, e, sym_pow(f.c, f.symbols[k].e, sym_int(f.c, power)));
            for (int j = 0; j < 3; j++) sum[j] += power * POWERS[k][j];
        }
        assert_true(sym_dims_of(e, &d, &one, &other));
        const bool bare = !d.said; /* all has cancelled */
        assert_false(d.open);
        if (fabs(d.bytes - sum[0]) > 1e-9 || fabs(d.flops - sum[1]) > 1e-9 || fabs(d.seconds - sum[2]) > 1e-9)
            fail_msg("draw %d: %g %g %g, by hand %g %g %g", n, d.bytes, d.flops, d.seconds, sum[0], sum[1], sum[2]);
        if (bare) assert_true(sum[0] == 0 && sum[1] == 0 && sum[2] == 0);
    }
    arena_close(f.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sides), cmocka_unit_test(test_texts),
                                       cmocka_unit_test(test_shared), cmocka_unit_test(test_drawn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
