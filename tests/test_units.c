#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/units.h"

static int open_arena(void **state)
{
    *state = arena_open();
    return *state == NULL;
}

static int close_arena(void **state)
{
    arena_close(*state);
    return 0;
}

static void test_counts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t v;
    } good[] = {{"4099", 4099},
                {" 17 ", 17},
                {"2e9", 2000000000},
                {"1.5e3", 1500},
                {"13.0", 13},
                {"1300e-2", 13},
                {"128Ki", 131072},
                {"1.5Ki", 1536},
                {"0.125 Mi", 131072},
                {"3Gi", 3221225472},
                {"9223372036854775807", INT64_MAX},
                {"-7", -7},
                {"0e99999999999", 0}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        int64_t v = 0;
        struct err e = {.code = ERR_OK};
        if (units_parse_count(good[i].text, INT64_MIN, INT64_MAX, &v, &e) != ERR_OK) fail_msg("%s", e.text);
        assert_int_equal(v, good[i].v);
    }
    static const struct {
        const char *text;
        enum err_code code;
        const char *says;
    } bad[] = {{"", ERR_USAGE, "empty"},
               {"x", ERR_USAGE, "\"x\": wanted a whole number"},
               {"1_000", ERR_USAGE, "\"1_000\": wanted a whole number"},
               {"12 34", ERR_USAGE, "wanted a whole number"},
               {"1.5", ERR_USAGE, "\"1.5\": not a whole number"},
               {"0.1Ki", ERR_USAGE, "not a whole number"},
               {"1e-3", ERR_USAGE, "not a whole number"},
               {"8K", ERR_USAGE, "\"8K\": 1000s or 1024s?"},
               {"8G", ERR_USAGE, "1000s or 1024s?"},
               {"8k", ERR_USAGE, "1000s or 1024s?"},
               {"8GB", ERR_USAGE, "wanted a whole number"},
               {"0x10", ERR_USAGE, "wanted a whole number"},
               {"nan", ERR_USAGE, "wanted a whole number"},
               {"inf", ERR_USAGE, "wanted a whole number"},
               {"+5", ERR_USAGE, "wanted a whole number"},
               {"-3", ERR_USAGE, "\"-3\": wanted 0 to 100000000"},
               {"100000001", ERR_USAGE, "wanted 0 to 100000000"},
               {"9223372036854775808", ERR_RANGE, "beyond 64 bits"},
               {"1e99999999999999999999", ERR_RANGE, "beyond 64 bits"},
               {"9999999999Gi", ERR_RANGE, "beyond 64 bits"},
               {"\x1b[31m", ERR_USAGE, "\"?[31m\""}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t v = 1009;
        struct err e = {.code = ERR_OK};
        assert_int_equal(units_parse_count(bad[i].text, 0, 100000000, &v, &e), bad[i].code);
        if (!strstr(e.text, bad[i].says)) fail_msg("\"%s\" does not say \"%s\"", e.text, bad[i].says);
        assert_int_equal(v, 1009);
    }
}

enum what { BYTES, RATE, FLOP_RATE, TIME };

static enum err_code parse(enum what what, const char *s, double *v, struct err *e)
{
    switch (what) {
    case BYTES: return units_parse_bytes(s, v, e);
    case RATE: return units_parse_rate(s, UNITS_BYTES_PER_S, v, e);
    case FLOP_RATE: return units_parse_rate(s, UNITS_FLOPS_PER_S, v, e);
    case TIME: break;
    }
    return units_parse_time(s, v, e);
}

static void test_quantities(void **state)
{
    (void)state;
    static const struct {
        enum what what;
        const char *text;
        double v;
    } good[] = {
        {BYTES, "80GB", 80e9},
        {BYTES, "80GiB", 85899345920.0},
        {BYTES, " 16 GiB ", 17179869184.0},
        {BYTES, "512MB", 512e6},
        {BYTES, "123B", 123},
        {BYTES, "7kB", 7000},
        {BYTES, "7KB", 7000},
        {BYTES, "7KiB", 7168},
        {BYTES, "79.65GiB", 85523536282.0}, /* 79.65 * 2^30 = 85523536281.6 */
        {BYTES, "1.5TB", 1.5e12},
        {RATE, "3.35 TB/s", 3.35e12},
        {RATE, "900GB/s", 900e9},
        {RATE, "400Gb/s", 50e9},
        {RATE, "400 Gbit/s", 50e9},
        {RATE, "400Gbps", 50e9},
        {RATE, "1.5TiB/s", 1649267441664.0},
        {RATE, "3.35e12 B/s", 3.35e12},
        {FLOP_RATE, "989 TFLOP/s", 989e12},
        {FLOP_RATE, "989TFLOPS", 989e12},
        {FLOP_RATE, "1.979 PFLOP/s", 1.979e15},
        {FLOP_RATE, "67 GFLOPs/s", 67e9},
        {TIME, "50ms", 0.05},
        {TIME, "1s", 1},
        {TIME, "7900 us", 0.0079},
        {TIME, "7900 \xC2\xB5s", 0.0079},
        {TIME, "13ns", 13e-9},
        {TIME, "90min", 5400},
        {TIME, "1.75d", 151200},
        {TIME, "1.5h", 5400},
        {TIME, "0s", 0},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        double v = 0;
        struct err e = {.code = ERR_OK};
        if (parse(good[i].what, good[i].text, &v, &e) != ERR_OK) fail_msg("%s", e.text);
        if (fabs(v - good[i].v) > 1e-15 * good[i].v) fail_msg("%s: %.17g", good[i].text, v);
    }
    static const struct {
        enum what what;
        const char *text, *says;
    } bad[] = {
        {BYTES, "80", "\"80\": needs its unit: B, GB (1e9) or GiB (2^30)"},
        {BYTES, "80G", "\"80G\": which unit? GB is 1e9 bytes, GiB is 2^30 bytes"},
        {BYTES, "80Gi", "which unit?"},
        {BYTES, "80Gb", "b is bits"},
        {BYTES, "80 GBs", "wanted bytes such as"},
        {BYTES, "-1GB", "at least 0"},
        {BYTES, "1e300 TB", "too large"},
        {BYTES, "1e400GB", "wanted bytes"},
        {BYTES, "GB", "wanted bytes"},
        {BYTES, "", "wanted bytes"},
        {RATE, "3.35TB", "wanted bytes per second"},
        {RATE, "989 TFLOP/s", "wanted bytes per second"},
        {RATE, "0 B/s", "above 0"},
        {RATE, "1e300 TB/s", "too large"},
        {RATE, "3.35e12", "wanted bytes per second"},
        {FLOP_RATE, "3.35 TB/s", "wanted flops per second"},
        {FLOP_RATE, "989T", "wanted flops per second"},
        {TIME, "50", "\"50\": a time needs its unit"},
        {TIME, "-1s", "at least 0"},
        {TIME, "5 days", "wanted a time in"},
        {TIME, "nan s", "wanted a time"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        double v = 1009;
        struct err e = {.code = ERR_OK};
        assert_int_equal(parse(bad[i].what, bad[i].text, &v, &e), ERR_USAGE);
        if (!strstr(e.text, bad[i].says)) fail_msg("\"%s\" does not say \"%s\"", e.text, bad[i].says);
        assert_true(v == 1009);
    }
}

static void test_ranges(void **state)
{
    static const struct {
        const char *text;
        size_t n;
        int64_t v[12];
    } good[] = {
        {"13", 1, {13}},
        {"1,8,64", 3, {1, 8, 64}},
        {"1..512*2", 10, {1, 2, 4, 8, 16, 32, 64, 128, 256, 512}},
        {"3..500*7", 3, {3, 21, 147}},
        {"1..10+3", 4, {1, 4, 7, 10}},
        {"1..11+3", 4, {1, 4, 7, 10}},
        {"2..5", 4, {2, 3, 4, 5}},
        {"5..5", 1, {5}},
        {"1Ki..128Ki*4", 4, {1024, 4096, 16384, 65536}},
        {"7, 1 .. 3 , 7 .. 50 * 3", 6, {7, 1, 2, 3, 7, 21}},
        {"1e1..1e+2+45", 3, {10, 55, 100}},
        {"9223372036854775806..9223372036854775807", 2, {INT64_MAX - 1, INT64_MAX}},
        {"4611686018427387905..9223372036854775807*2", 1, {4611686018427387905}},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        const int64_t *v = NULL;
        size_t n = 0;
        struct err e = {.code = ERR_OK};
        if (units_parse_range(*state, good[i].text, 1, INT64_MAX, &v, &n, &e) != ERR_OK) fail_msg("%s", e.text);
        if (n != good[i].n) fail_msg("%s: %zu values", good[i].text, n);
        for (size_t k = 0; k < n; k++) assert_int_equal(v[k], good[i].v[k]);
    }
    static const struct {
        const char *text;
        enum err_code code;
        const char *says;
    } bad[] = {{"", ERR_USAGE, "empty"},
               {"1,,2", ERR_USAGE, "\"1,,2\": an empty piece"},
               {"1,2,", ERR_USAGE, "an empty piece"},
               {"1..", ERR_USAGE, "\"1..\": a range needs both ends"},
               {"..5", ERR_USAGE, "both ends"},
               {"3,9..5", ERR_USAGE, "\"9..5\": a range counts upwards"},
               {"1..5*", ERR_USAGE, "a step is missing"},
               {"1..5*1", ERR_USAGE, "\"1..5*1\": a*f counts"},
               {"1..5+0", ERR_USAGE, "at least 1"},
               {"1..5*-2", ERR_USAGE, "a*f counts"},
               {"1..5..9", ERR_USAGE, "\"5..9\": wanted a whole number"},
               {"1...5", ERR_USAGE, "\".5\": not a whole number"},
               {"0..5", ERR_USAGE, "\"0\": wanted 1 to 2000000000"},
               {"1..3e9", ERR_USAGE, "\"3e9\": wanted 1 to 2000000000"},
               {"4,x", ERR_USAGE, "\"x\""},
               {"1..10000001", ERR_RANGE, "\"1..10000001\": more than 10000000 values"},
               {"1..9000000,1..1000001", ERR_RANGE, "more than 10000000 values"},
               {"1..1e30", ERR_RANGE, "beyond 64 bits"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const int64_t *v = NULL;
        size_t n = 0;
        struct err e = {.code = ERR_OK};
        assert_int_equal(units_parse_range(*state, bad[i].text, 1, 2000000000, &v, &n, &e), bad[i].code);
        if (!strstr(e.text, bad[i].says)) fail_msg("\"%s\" does not say \"%s\"", e.text, bad[i].says);
        assert_null(v);
    }
    const int64_t *v = NULL;
    size_t n = 0;
    struct err e = {.code = ERR_OK};
    assert_int_equal(
        units_parse_range(*state, "-9223372036854775807..9223372036854775807+1e18", INT64_MIN, INT64_MAX, &v, &n, &e),
        ERR_OK);
    assert_int_equal(n, 19);
    assert_int_equal(v[18], 8776627963145224193); /* -(2^63 - 1) + 18e18 */
}

static void test_formats(void **state)
{
    (void)state;
    char b[UNITS_TEXT_MAX];
    assert_string_equal(units_format_bytes(b, 26869137408.0), "26.87 GB");
    assert_string_equal(units_format_bytes_iec(b, 26869137408.0), "25.02 GiB");
    assert_string_equal(units_format_bytes(b, 80e9), "80 GB");
    assert_string_equal(units_format_bytes(b, 999960), "1 MB");
    assert_string_equal(units_format_bytes(b, 999940), "999.9 kB");
    assert_string_equal(units_format_bytes(b, 509), "509 B");
    assert_string_equal(units_format_bytes(b, -26869137408.0), "-26.87 GB");
    assert_string_equal(units_format_bytes(b, (double)NAN), "-");
    assert_string_equal(units_format_bytes(b, (double)INFINITY), "inf");
    assert_string_equal(units_format_time(b, 0.00802), "8.02 ms");
    assert_string_equal(units_format_time(b, 0.0000790012), "79 us");
    assert_string_equal(units_format_time(b, 31.4159), "31.42 s");
    assert_string_equal(units_format_time(b, 0), "0 s");
    assert_string_equal(units_format(b, UNITS_BYTES_PER_S, 3.35e12), "3.35 TB/s");
    assert_string_equal(units_format(b, UNITS_FLOPS_PER_S, 989.4e12), "989.4 TFLOP/s");
    assert_string_equal(units_format(b, UNITS_TOK_PER_S, 15960.4), "15960 tok/s");
    assert_string_equal(units_format(b, UNITS_FLOPS_PER_BYTE, 295.2239), "295.2 flop/byte");
    assert_string_equal(units_format(b, UNITS_RATIO, 0.731353), "0.7314");
    assert_string_equal(units_format_flops(b, 26.0309e9), "26.03 GFLOP");
    assert_string_equal(units_format_count(b, 13015449600.0), "13.02B");
    assert_string_equal(units_format_count(b, 641), "641");
    assert_string_equal(units_format_digits(b, 13015449600.0), "13,015,449,600");
    assert_string_equal(units_format_digits(b, -1234567), "-1,234,567");
    assert_string_equal(units_format_digits(b, 641), "641");
    assert_string_equal(units_format_digits(b, (double)NAN), "-");
    assert_string_equal(units_format_plain(b, 1.23456e-7), "1.235e-07");
    assert_string_equal(units_format_plain(b, 12345.4), "12345");

    struct units_scale s = units_scale_for(UNITS_BYTES, 3e9, 700e9);
    assert_string_equal(s.label, "GB");
    s = units_scale_for(UNITS_SECONDS, 0.0071, 3.1);
    assert_string_equal(s.label, "ms");
    s = units_scale_for(UNITS_BYTES, (double)NAN, (double)NAN);
    assert_string_equal(s.label, "B");
    assert_true(s.divisor == 1);
}

static void test_parse_reads_what_format_writes(void **state)
{
    (void)state;
    char b[UNITS_TEXT_MAX];
    struct err e = {.code = ERR_OK};
    for (double v = 1.2347; v < 1e18; v *= 13.71) {
        double back = 0;
        assert_int_equal(units_parse_bytes(units_format_bytes(b, v), &back, &e), ERR_OK);
        assert_true(fabs(back - v) <= (v < 1e3 ? 0.5 : 5.1e-4 * v));
        assert_int_equal(units_parse_bytes(units_format_bytes_iec(b, v), &back, &e), ERR_OK);
        assert_true(fabs(back - v) <= (v < 2e3 ? 1.1 : 5.1e-4 * v));
        if (v < 1e14) {
            assert_int_equal(units_parse_time(units_format_time(b, v * 1e-9), &back, &e), ERR_OK);
            assert_true(fabs(back - v * 1e-9) <= 5.1e-4 * v * 1e-9);
        }
        assert_int_equal(units_parse_rate(units_format(b, UNITS_FLOPS_PER_S, v), UNITS_FLOPS_PER_S, &back, &e), ERR_OK);
        assert_true(fabs(back - v) <= 5.1e-4 * v);
    }
}

static const struct {
    const char *text;
    enum units_kind wanted, kind;
    double factor;
} WORDS[] = {
    {"B", UNITS_BYTES, UNITS_BYTES, 1},
    {"B", UNITS_COUNT, UNITS_COUNT, 1e9},
    {"billion parameters", UNITS_COUNT, UNITS_COUNT, 1e9},
    {"Ki", UNITS_COUNT, UNITS_COUNT, 0x1p10},
    {"Params", UNITS_COUNT, UNITS_COUNT, 1},
    {"G", UNITS_COUNT, UNITS_COUNT, 1e9},
    {"Mparams", UNITS_COUNT, UNITS_COUNT, 1e6},
    {"Bparam", UNITS_COUNT, UNITS_COUNT, 1e9},
    {"giga parameters", UNITS_COUNT, UNITS_COUNT, 1e9},
    {"GiB", UNITS_COUNT, UNITS_BYTES, 0x1p30},
    {"d", UNITS_SECONDS, UNITS_SECONDS, 86400},
    {"weeks", UNITS_SECONDS, UNITS_SECONDS, 604800},
    {"years", UNITS_SECONDS, UNITS_SECONDS, 31557600},
    {"ms/step", UNITS_SECONDS, UNITS_SECONDS, 1e-3},
    {"ms per token", UNITS_SECONDS, UNITS_SECONDS, 1e-3},
    {"1/s", UNITS_TOK_PER_S, UNITS_TOK_PER_S, 1},
    {"/s", UNITS_TOK_PER_S, UNITS_TOK_PER_S, 1},
    {"1 / min", UNITS_TOK_PER_S, UNITS_TOK_PER_S, 1.0 / 60},
    {"t/s", UNITS_TOK_PER_S, UNITS_TOK_PER_S, 1},
    {"tokens a minute", UNITS_TOK_PER_S, UNITS_TOK_PER_S, 1.0 / 60},
    {"params/s", UNITS_COUNT_PER_S, UNITS_COUNT_PER_S, 1},
    {"parameters per minute", UNITS_COUNT_PER_S, UNITS_COUNT_PER_S, 1.0 / 60},
    {"param an hour", UNITS_COUNT_PER_S, UNITS_COUNT_PER_S, 1.0 / 3600},
    {"params", UNITS_COUNT_PER_S, UNITS_COUNT_PER_S, 1},
    {"1/s", UNITS_COUNT_PER_S, UNITS_COUNT_PER_S, 1},
    {"tok/s", UNITS_COUNT_PER_S, UNITS_TOK_PER_S, 1},
    {"GB per pass", UNITS_BYTES, UNITS_BYTES, 1e9},
    {"per cent", UNITS_FRAC, UNITS_FRAC, 0.01},
    {"% of the layer", UNITS_FRAC, UNITS_FRAC, 0.01},
    {"pct", UNITS_RATIO, UNITS_RATIO, 0.01},
    {"times smaller", UNITS_RATIO, UNITS_RATIO, 1},
    {"x", UNITS_RATIO, UNITS_RATIO, 1},
    {"-fold", UNITS_RATIO, UNITS_RATIO, 1},
    {"$/M", UNITS_USD_PER_MTOK, UNITS_USD_PER_MTOK, 1},
    {"$ per million", UNITS_USD_PER_MTOK, UNITS_USD_PER_MTOK, 1},
    {"GB", UNITS_COUNT, UNITS_BYTES, 1e9},
    {"h", UNITS_COUNT, UNITS_SECONDS, 3600},
    {"MiB", UNITS_SECONDS, UNITS_BYTES, 0x1p20},
    {"gigabytes", UNITS_BYTES, UNITS_BYTES, 1e9},
    {"Gibibytes", UNITS_BYTES, UNITS_BYTES, 0x1p30},
    {"Mbit", UNITS_BYTES, UNITS_BYTES, 125000},
    {" ms ", UNITS_SECONDS, UNITS_SECONDS, 1e-3},
    {"\xC2\xB5s", UNITS_SECONDS, UNITS_SECONDS, 1e-6},
    {"Minutes", UNITS_SECONDS, UNITS_SECONDS, 60},
    {"days", UNITS_SECONDS, UNITS_SECONDS, 86400},
    {"Gb/s", UNITS_BYTES_PER_S, UNITS_BYTES_PER_S, 1.25e8},
    {"GBps", UNITS_BYTES_PER_S, UNITS_BYTES_PER_S, 1e9},
    {"TB per second", UNITS_BYTES_PER_S, UNITS_BYTES_PER_S, 1e12},
    {"TFLOPS", UNITS_FLOPS_PER_S, UNITS_FLOPS_PER_S, 1e12},
    {"TFLOPS", UNITS_FLOPS, UNITS_FLOPS, 1e12},
    {"gflop", UNITS_FLOPS, UNITS_FLOPS, 1e9},
    {"TOP/s", UNITS_FLOPS_PER_S, UNITS_FLOPS_PER_S, 1e12},
    {"tps", UNITS_TOK_PER_S, UNITS_TOK_PER_S, 1},
    {"ktok/s", UNITS_TOK_PER_S, UNITS_TOK_PER_S, 1e3},
    {"flops per byte", UNITS_FLOPS_PER_BYTE, UNITS_FLOPS_PER_BYTE, 1},
    {"kB", UNITS_BYTES_PER_TOKEN, UNITS_BYTES_PER_TOKEN, 1e3},
    {"KiB/token", UNITS_BYTES_PER_TOKEN, UNITS_BYTES_PER_TOKEN, 0x1p10},
    {"B/seq", UNITS_BYTES_PER_TOKEN, UNITS_BYTES_PER_SEQUENCE, 1},
    {"%", UNITS_FRAC, UNITS_FRAC, 0.01},
    {"x", UNITS_RATIO, UNITS_RATIO, 1},
    {"cents", UNITS_USD, UNITS_USD, 0.01},
    {"$/1M tokens", UNITS_USD_PER_MTOK, UNITS_USD_PER_MTOK, 1},
    {"USD per million tokens", UNITS_USD_PER_MTOK, UNITS_USD_PER_MTOK, 1},
    {"$/ktok", UNITS_USD_PER_MTOK, UNITS_USD_PER_MTOK, 1e3},
    {"kW", UNITS_WATTS, UNITS_WATTS, 1e3},
};

static void test_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
        enum units_kind kind = UNITS_NONE;
        double factor = 0;
        if (!units_read_word(WORDS[i].text, strlen(WORDS[i].text), WORDS[i].wanted, "parameter,param", &kind, &factor))
            fail_msg("'%s' is not read", WORDS[i].text);
        if (kind != WORDS[i].kind || fabs(factor / WORDS[i].factor - 1) > 1e-15)
            fail_msg("'%s' is kind %d, factor %g", WORDS[i].text, (int)kind, factor);
    }
    static const char *const NONE[] = {"",   " ",   "G",   "MS", "GGB",           "kmB",    "s/s/s",  "/s",
                                       "s/", "1/s", "t/s", "t",  "times smaller", "parsec", "tok/GB", "sB"};
    for (size_t i = 0; i < sizeof NONE / sizeof NONE[0]; i++) {
        enum units_kind kind;
        double factor;
        if (units_read_word(NONE[i], strlen(NONE[i]), UNITS_SECONDS, NULL, &kind, &factor))
            fail_msg("'%s' is read", NONE[i]);
    }
    /* behind a count only what is counted */
    static const char *const OTHER[] = {"potatoes", "GPUs",      "tokens",           "sequences",       "parameterss",
                                        "para",     "Gpotatoes", "billion potatoes", "params potatoes", "of 80 GB"};
    for (size_t i = 0; i < sizeof OTHER / sizeof OTHER[0]; i++) {
        enum units_kind kind;
        double factor;
        if (units_read_word(OTHER[i], strlen(OTHER[i]), UNITS_COUNT, "parameter,param", &kind, &factor))
            fail_msg("'%s' is read", OTHER[i]);
        assert_false(units_read_word(OTHER[i], strlen(OTHER[i]), UNITS_COUNT, NULL, &kind, &factor));
    }
    static const char LONG[] = "tokens tokens tokens tokens tokens tokens tokens tokens tokens tokens tokens tokens";
    enum units_kind kind;
    double factor;
    assert_false(units_read_word(LONG, sizeof LONG - 1, UNITS_COUNT, "token", &kind, &factor));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_quantities),
        cmocka_unit_test_setup_teardown(test_ranges, open_arena, close_arena),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_parse_reads_what_format_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
