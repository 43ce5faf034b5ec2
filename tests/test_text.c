#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"

static void test_utf8(void **state)
{
    (void)state;
    uint32_t c = 0;
    assert_int_equal(text_utf8_len("A", 1, &c), 1);
    assert_int_equal(text_utf8_len("\xC3\xA9", 2, &c), 2);
    assert_int_equal(c, 0xE9);
    assert_int_equal(text_utf8_len("\xE6\x97\xA5", 3, &c), 3);
    assert_int_equal(c, 0x65E5);
    assert_int_equal(text_utf8_len("\xF0\x9F\x98\x80", 4, &c), 4);
    assert_int_equal(c, 0x1F600);
    static const char *const bad[] = {"\x80",         "\xC3",     "\xC0\x80",         "\xE0\x80\x80",
                                      "\xED\xA0\x80", "\xE6\x97", "\xF0\x80\x80\x80", "\xF4\x90\x80\x80",
                                      "\xFF",         "\xC3(",    "\xF5\x80\x80\x80"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(text_utf8_len(bad[i], strlen(bad[i]), NULL), 0);
    assert_int_equal(text_utf8_len("\xC3\xA9", 1, NULL), 0);
    assert_int_equal(text_utf8_len("", 0, NULL), 0);
}

static void assert_clean(size_t cap, const char *s, const char *want)
{
    char out[64];
    memset(out, '#', sizeof out);
    assert_string_equal(text_clean(out, cap, s, strlen(s)), want);
    assert_int_equal(out[cap], '#');
}

static void test_clean(void **state)
{
    (void)state;
    assert_clean(20, "plain", "plain");
    assert_clean(20, "\x1b[31mred\x07\x7f\n", "?[31mred???");
    assert_clean(20, "caf\xC3\xA9 \xE6\x97\xA5", "caf\xC3\xA9 \xE6\x97\xA5");
    assert_clean(20,
                 "a\xC2\x9B"
                 "b\xE2\x80\xAE"
                 "c\xFF",
                 "a?b?c?"); /* C1 CSI, right-to-left override, no UTF-8 */
    assert_clean(6, "12345", "12345");
    assert_clean(6, "123456", "12...");
    assert_clean(8, "1234567\xC3\xA9", "1234...");
    assert_clean(8, "\xE6\x97\xA5\xE6\x97\xA5\xE6\x97\xA5", "\xE6\x97\xA5...");
    assert_clean(4, "12345", "...");
    assert_int_equal(text_width("caf\xC3\xA9", 5), 4);
    assert_int_equal(text_width("\xE6\x97\xA5x", 4), 3);
    assert_int_equal(text_width("e\xCC\x81", 3), 1);
}

static void test_suggest(void **state)
{
    (void)state;
    static const char *const names[] = {"weight_bytes", "kv_bytes",       "decode_step_s", NULL,
                                        "prefill_s",    "throughput_tok", "fits",          "kv_bytes_per_token"};
    char out[160];
    const size_t n = sizeof names / sizeof names[0];
    assert_string_equal(text_suggest(out, sizeof out, "weigth_bytes", names, sizeof names[0], n),
                        "; did you mean weight_bytes?");
    assert_string_equal(text_suggest(out, sizeof out, "kv_byte", names, sizeof names[0], n),
                        "; did you mean kv_bytes or kv_bytes_per_token?");
    assert_string_equal(text_suggest(out, sizeof out, "throughput", names, sizeof names[0], n),
                        "; did you mean throughput_tok?");
    assert_string_equal(text_suggest(out, sizeof out, "FITS", names, sizeof names[0], n), "; did you mean fits?");
    assert_string_equal(text_suggest(out, sizeof out, "qqq", names, sizeof names[0], n), "");
    assert_string_equal(text_suggest(out, sizeof out, "", names, sizeof names[0], n), "");
    char small[12];
    assert_true(strlen(text_suggest(small, sizeof small, "kv_byte", names, sizeof names[0], n)) < sizeof small);
    static const char *const many[] = {"abcd4", "abcd1", "abcd", "abcd2", "abcd3"};
    assert_string_equal(text_suggest(out, sizeof out, "abcd", many, sizeof many[0], 5),
                        "; did you mean abcd, abcd4 or abcd1?");
}

static void test_json_characters(void **state)
{
    (void)state;
    static const struct {
        const char *s, *want;
    } cases[] = {{"a", "a"},
                 {"\"", "\\\""},
                 {"\\", "\\\\"},
                 {"\n", "\\n"},
                 {"\t", "\\t"},
                 {"\x1b", "\\u001b"},
                 {"\x7f", "\\u007f"},
                 {"n", "n"},
                 {"\xC3\xA9", "\xC3\xA9"},
                 {"\xFF", "\xEF\xBF\xBD"},
                 {"\xE2\x80\xA8", "\\u2028"},
                 {"/", "/"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[TEXT_JSON_MAX];
        size_t used = 0;
        const size_t n = text_json_char(out, cases[i].s, strlen(cases[i].s), &used);
        assert_int_equal(used, strlen(cases[i].s));
        assert_int_equal(n, strlen(cases[i].want));
        assert_memory_equal(out, cases[i].want, n);
    }
    char out[TEXT_JSON_MAX];
    size_t used = 0;
    assert_int_equal(text_json_char(out, "\0", 1, &used), 6);
    assert_memory_equal(out, "\\u0000", 6);
}

static const char *real(double v)
{
    static _Thread_local char out[TEXT_NUMBER_MAX + 1];
    out[text_real(out, v)] = '\0';
    return out;
}

static void test_numbers(void **state)
{
    (void)state;
    char out[TEXT_NUMBER_MAX + 1];
    static const int64_t whole[] = {0, 7, 10, 99, 100, -1, 1234567, -98765432109, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        out[text_int(out, whole[i])] = '\0';
        char want[32];
        (void)snprintf(want, sizeof want, "%lld", (long long)whole[i]);
        assert_string_equal(out, want);
    }
    assert_string_equal(real(0.1), "0.1");
    assert_string_equal(real(-0.3), "-0.3");
    assert_string_equal(real(0.1 + 0.2), "0.30000000000000004");
    assert_string_equal(real(13015449600.0), "13015449600");
    assert_string_equal(real(-0.0), "0");
    assert_string_equal(real(1e18), "1000000000000000000");
    assert_string_equal(real(0.00802), "0.00802");
    assert_string_equal(real(7.9e-7), "7.9e-07");
    assert_string_equal(real(123456.789), "123456.789");
    assert_string_equal(real(5e-324), "4.94065645841247e-324");
    assert_string_equal(real(1e300), "1e+300");
}

static void assert_reads_back(double v)
{
    if (!isfinite(v)) return;
    const char *s = real(v);
    if (strtod(s, NULL) != v) fail_msg("%a is written %s", v, s);
    if (strlen(s) > 25) fail_msg("%s is long", s);
    if (fabs(v) < 0x1p63 && v == floor(v)) return;
    for (int digits = 15; digits < 17; digits++) { /* the fewest digits, where printf finds fewer than 17 */
        char fewer[40];
        (void)snprintf(fewer, sizeof fewer, "%.*g", digits, v);
        if (strtod(fewer, NULL) == v && strlen(s) > strlen(fewer) + 1) fail_msg("%s could be %s", s, fewer);
    }
}

static void test_reals_read_back(void **state)
{
    (void)state;
    uint64_t x = 88172645463325252u; /* xorshift64, Marsaglia 2003 */
    for (int i = 0; i < 200003; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        double any;
        memcpy(&any, &x, sizeof any);
        if (i % 8 == 0) assert_reads_back(any);
        const double scaled = ldexp((double)(x >> 11) + 1, -53 + (int)(x % 180) - 60);
        assert_reads_back(scaled);
        if (i % 4 == 0) assert_reads_back((double)(x >> 40) / 1000);
        if (i % 4 == 1) assert_reads_back(strtod(real((double)(x % 100000) / 1e7), NULL));
    }
    for (int e = -1074; e < 1024; e++) {
        assert_reads_back(ldexp(1, e));
        assert_reads_back(nextafter(ldexp(1, e), 0));
        assert_reads_back(nextafter(ldexp(1, e), (double)INFINITY));
    }
    for (int e = -320; e < 309; e++) {
        char s[16];
        (void)snprintf(s, sizeof s, "1e%d", e);
        const double v = strtod(s, NULL);
        assert_reads_back(v);
        assert_reads_back(nextafter(v, 0));
        assert_reads_back(nextafter(v, (double)INFINITY));
        assert_reads_back(-v);
    }
}

static void test_pointers(void **state)
{
    static const char POINTER[] = "version https://git-lfs.github.com/spec/v1\noid sha256:0123\n";
    (void)state;
    assert_true(text_is_pointer(POINTER, sizeof POINTER - 1));
    assert_true(text_is_pointer(POINTER, 40));
    assert_false(text_is_pointer(POINTER, 39)); /* too short to say so */
    assert_false(text_is_pointer(POINTER + 1, sizeof POINTER - 2));
    assert_false(text_is_pointer("{\"version\": \"https://git-lfs.github.com/spec/v1\"}", 49));
    assert_false(text_is_pointer("", 0));
}

static void test_counts(void **state)
{
    char s[TEXT_COUNT_MAX];
    (void)state;
    assert_string_equal(text_count(s, 1, "request"), "1 request");
    assert_string_equal(text_count(s, 0, "request"), "0 requests");
    assert_string_equal(text_count(s, 2, "copy"), "2 copies");
    assert_string_equal(text_count(s, 1, "copy"), "1 copy");
    assert_string_equal(text_count(s, 3, "day"), "3 days");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pointers), cmocka_unit_test(test_counts),          cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_clean),    cmocka_unit_test(test_suggest),         cmocka_unit_test(test_json_characters),
        cmocka_unit_test(test_numbers),  cmocka_unit_test(test_reals_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
