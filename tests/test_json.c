#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calc/base/json.h"
#include "tests/scratch.h"

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

static struct json parse(struct arena *a, const char *text)
{
    struct json j;
    struct err e = {.code = ERR_OK};
    if (json_parse(a, "x.json", text, strlen(text), &j, &e) != ERR_OK) fail_msg("%s: %s", text, e.text);
    return j;
}

static struct json member(const struct json *j, const char *key)
{
    struct json m;
    if (!json_get(j, key, &m)) fail_msg("no member %s", key);
    return m;
}

static void refuses(struct arena *a, const char *text, size_t len, const char *sentence)
{
    struct json j;
    struct err e = {.code = ERR_OK};
    assert_int_equal(json_parse(a, "x.json", text, len, &j, &e), ERR_INPUT);
    if (!strstr(e.text, sentence)) fail_msg("\"%s\" does not say \"%s\"", e.text, sentence);
}

static void test_paths_and_values(void **state)
{
    const struct json j = parse(*state, "{\"text_config\":{\"layers\":31,\"heads\":[7,{\"x\":13.5}],\"a.b\":17},"
                                        "\"on\":true,\"name\":\"caf\\u00e9\",\"none\":null}");
    struct err e = {.code = ERR_OK};
    int64_t n = 0;
    struct json m = member(&j, "text_config.layers"), out;
    assert_int_equal(json_int(&m, 1, 1000, &n, &e), ERR_OK);
    assert_int_equal(n, 31);
    assert_string_equal(m.path, "text_config.layers");

    m = member(&j, "text_config.a.b");
    assert_int_equal(json_int(&m, 0, 100, &n, &e), ERR_OK);
    assert_int_equal(n, 17);

    m = member(&j, "text_config.heads");
    assert_int_equal(json_len(&m), 2);
    const char *key = "";
    assert_true(json_at(&m, 1, &key, &out));
    assert_null(key);
    m = member(&out, "x");
    assert_string_equal(m.path, "text_config.heads[1].x");
    double x = 0;
    assert_int_equal(json_num(&m, &x, &e), ERR_OK);
    assert_true(x == 13.5);
    assert_int_equal(json_int(&m, 0, 100, &n, &e), ERR_INPUT);
    assert_string_equal(e.text, "x.json: text_config.heads[1].x: found 13.5, wanted a whole number of 64 bits");

    m = member(&j, "on");
    bool on = false;
    assert_int_equal(json_bool(&m, &on, &e), ERR_OK);
    assert_true(on);
    m = member(&j, "name");
    const char *name = NULL;
    assert_int_equal(json_str(&m, &name, &e), ERR_OK);
    assert_string_equal(name, "caf\xC3\xA9");
    assert_int_equal(json_bool(&m, &on, &e), ERR_INPUT);

    assert_false(json_get(&j, "none", &out));
    assert_false(json_get(&j, "absent", &out));
    assert_false(json_get(&j, "on.x", &out));
    assert_false(json_get(&j, "text_config.absent.x", &out));
    assert_int_equal(json_len(&j), 4);
    assert_true(json_at(&j, 2, &key, &out));
    assert_string_equal(key, "name");
    assert_true(json_at(&j, 3, &key, &out));
    assert_null(out.obj);
    assert_false(json_at(&j, 4, &key, &out));
}

static void test_message_form(void **state)
{
    const struct json j =
        parse(*state, "{\"text_config\":{\"num_hidden_layers\":\"32\"},\"l\":[1,2,3],\"o\":{\"k\":5}}");
    struct err e = {.code = ERR_OK};
    int64_t n = 1009;
    struct json m = member(&j, "text_config.num_hidden_layers");
    assert_int_equal(json_int(&m, 1, 100, &n, &e), ERR_INPUT);
    assert_string_equal(e.text, "x.json: text_config.num_hidden_layers: found \"32\", wanted an integer");
    assert_int_equal(n, 1009);
    m = member(&j, "l");
    assert_int_equal(json_want(&m, "a name", &e), ERR_INPUT);
    assert_string_equal(e.text, "x.json: l: found a list of 3 elements, wanted a name");
    m = member(&j, "o");
    (void)json_want(&m, "a name", &e);
    assert_string_equal(e.text, "x.json: o: found an object of 1 member, wanted a name");
    m = member(&j, "o.k");
    assert_int_equal(json_int(&m, 7, INT64_MAX, &n, &e), ERR_INPUT);
    assert_string_equal(e.text, "x.json: o.k: found 5, wanted an integer of at least 7");
    assert_int_equal(json_int(&m, 7, 11, &n, &e), ERR_INPUT);
    assert_string_equal(e.text, "x.json: o.k: found 5, wanted an integer from 7 to 11");
}

static void test_numbers(void **state)
{
    static const struct {
        const char *text;
        bool whole, real;
        int64_t n;
        double x;
    } cases[] = {
        {"7", true, true, 7, 7},
        {"7.0", true, true, 7, 7},
        {"-1.3e1", true, true, -13, -13},
        {"9223372036854775807", true, true, INT64_MAX, 0x1p63},
        {"9223372036854775808", false, true, 0, 0x1p63},
        {"18446744073709551614", false, true, 0, 18446744073709551614.0},
        {"99999999999999999999999", false, false, 0, 0},
        {"-9223372036854775807", true, true, -INT64_MAX, -0x1p63},
        {"-9223372036854775809", false, false, 0, 0},
        {"1e19", false, true, 0, 1e19},
        {"1e999", false, false, 0, 0},
        {"-1e999", false, false, 0, 0},
        {"Infinity", false, true, 0, (double)INFINITY},
        {"-Infinity", false, true, 0, -(double)INFINITY},
        {"0.1", false, true, 0, 0.1},
        {"true", false, false, 0, 0},
        {"\"7\"", false, false, 0, 0},
        {"null", false, false, 0, 0},
        {"[7]", false, false, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct json j = parse(*state, cases[i].text);
        struct err e = {.code = ERR_OK};
        int64_t n = 0;
        double x = 0;
        const enum err_code whole = json_int(&j, INT64_MIN, INT64_MAX, &n, &e), real = json_num(&j, &x, &e);
        if (whole != (cases[i].whole ? ERR_OK : ERR_INPUT) || real != (cases[i].real ? ERR_OK : ERR_INPUT))
            fail_msg("%s: integer %d, number %d: %s", cases[i].text, (int)whole, (int)real, e.text);
        if (cases[i].whole) assert_int_equal(n, cases[i].n);
        if (cases[i].real) assert_true(x == cases[i].x);
    }
    const struct json j = parse(*state, "NaN");
    struct err e = {.code = ERR_OK};
    double x = 0;
    assert_int_equal(json_num(&j, &x, &e), ERR_OK);
    assert_true(isnan(x));
}

static void test_hostile_text_is_cleaned(void **state)
{
    const struct json j = parse(*state, "{\"a\\u001b[31m\":\"\\u001b]0;owned\\u0007 " /* escape sequences */
                                        "0123456789012345678901234567890123456789012345678901234567890123456789\"}");
    struct json m;
    assert_true(json_at(&j, 0, NULL, &m));
    struct err e = {.code = ERR_OK};
    int64_t n;
    assert_int_equal(json_int(&m, 0, 9, &n, &e), ERR_INPUT);
    assert_null(strpbrk(e.text, "\x1b\x07\n\r"));
    assert_non_null(strstr(e.text, "x.json: a?[31m: found \"?]0;owned? 0123"));
    assert_true(strlen(e.text) < 110);

    const struct json nul = parse(*state, "\"a\\u0000b\"");
    const char *s;
    assert_int_equal(json_str(&nul, &s, &e), ERR_INPUT);
}

static void test_accepts_what_is_published(void **state)
{
    struct json j = parse(*state, "\xEF\xBB\xBF{\"a\": Infinity}\n");
    assert_true(json_is_object(&j));
    j = parse(*state, "{\"a\":3}\n\xFF\x01 rest of the file");
    assert_true(json_is_object(&j));
    j = parse(*state, "41");
    assert_true(json_is_number(&j));
}

static void test_refuses(void **state)
{
    struct arena *a = *state;
    refuses(a, "", 0, "x.json: line 1: the file is empty");
    refuses(a, " \n\n", 3, "line 3: ends before");
    refuses(a, "{\n\"a\": 1,\n\"b\": ", 15, "line 3: ends before");
    refuses(a, "{\"a\"\n\n:1 \"b\":2}", 15, "line 3: ");
    refuses(a, "version https://x", 17, "line 1: unexpected character, found \"version");
    refuses(a, "{\"a\":\n\"x\0y\"}", 12, "line 2: found a NUL byte");
    refuses(a, "\0\0\0\0", 4, "line 1: found a NUL byte");
    refuses(a,
            "\x7F"
            "ELF\x02\x01\x01",
            7, "line 1: ");
    refuses(a, "{\"a\":\n\"caf\xE9\"}", 13, "line 2: found byte 0xE9, wanted UTF-8");
    char deep[400];
    memset(deep, '[', sizeof deep);
    refuses(a, deep, sizeof deep, "nested deeper than 64 levels");
    const size_t many = 3u << 20;
    char *bomb = malloc(many);
    assert_non_null(bomb);
    for (size_t i = 0; i < many; i++) bomb[i] = "[],"[(i + 2) % 3 * (i > 0)];
    refuses(a, bomb, many, "x.json: more than 131072 values");
    for (size_t i = 0; i < many; i++) bomb[i] = "0,"[i % 2];
    bomb[0] = '[';
    bomb[many - 1] = ']';
    refuses(a, bomb, many, "more than 131072 values");
    memset(bomb, ',', many); /* in texts they are none */
    memcpy(bomb, "[\"\\\"", 4);
    memcpy(bomb + many - 2, "\"]", 2);
    struct json j;
    struct err e = {.code = ERR_OK};
    assert_int_equal(json_parse(a, "x.json", bomb, many, &j, &e), ERR_OK);
    assert_int_equal(json_len(&j), 1);
    free(bomb);
}

static void test_files(void **state)
{
    struct json j;
    struct err e = {.code = ERR_OK};
    assert_int_equal(json_load(*state, "/", &j, &e), ERR_IO);
    assert_non_null(strstr(e.text, "is a directory"));
    assert_int_equal(json_load(*state, "/nonexistent/config.json", &j, &e), ERR_IO);
    assert_string_equal(e.text, "/nonexistent/config.json: cannot open: No such file or directory");
    assert_int_equal(json_load(*state, "/dev/zero", &j, &e), ERR_INPUT);
    assert_non_null(strstr(e.text, "larger than 4 MiB"));
    assert_int_equal(json_load(*state, "/dev/null", &j, &e), ERR_INPUT);

    char path[SCRATCH_MAX];
    const int fd = scratch_file(path);
    static const char text[] = "{\"n\": 8191}";
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    assert_int_equal(json_load(*state, path, &j, &e), ERR_OK);
    const struct json m = member(&j, "n");
    int64_t n = 0;
    assert_int_equal(json_int(&m, 0, 10000, &n, &e), ERR_OK);
    assert_int_equal(n, 8191);
    assert_int_equal(ftruncate(fd, (4 << 20) + 1), 0);
    assert_int_equal(json_load(*state, path, &j, &e), ERR_INPUT);
    assert_non_null(strstr(e.text, "larger than 4 MiB"));
    (void)close(fd);
}

static void test_long_object_is_walked_in_linear_time(void **state)
{
    enum { N = 60013 };
    char *text = malloc(N * 16);
    assert_non_null(text);
    size_t w = 0;
    for (int i = 0; i < N; i++) w += (size_t)snprintf(text + w, 16, "%s\"k%d\":%d", i ? "," : "{", i, i % 9);
    text[w++] = '}';
    struct json j, m;
    struct err e = {.code = ERR_OK};
    assert_int_equal(json_parse(*state, "x.json", text, w, &j, &e), ERR_OK);
    free(text);
    size_t n = 0;
    for (const char *key; json_at(&j, n, &key, &m); n++) assert_int_equal(key[0], 'k');
    assert_int_equal(n, N);
}

/* A setting is one whole value, a count with Ki or Mi, or a word; a number is not read up to its first odd character.
 */
static void test_override(void **state)
{
    static const struct {
        const char *text;
        int64_t is;
    } COUNTS[] = {{"7", 7},
                  {"-13", -13},
                  {"4Ki", 4096},
                  {"3Mi", 3145728},
                  {"1.5Ki", 1536},
                  {" 11 ", 11},
                  {"9007199254740993", 9007199254740993}};
    static const char *const WORDS[] = {"bfloat16", "llama", "int4", "meta/x-7", "nan", "_a", "\xC3\xA9"};
    static const char *const WRONG[] = {"",           "1_000",     "6_4",
                                        "10x",        "5e",        "5-3",
                                        "5}",         "007",       "1e4x",
                                        "truex",      "True",      "nullx",
                                        "0x10",       "'a'",       "\"a\"x",
                                        "{\"a\":1}x", "[1,2",      "[1,]",
                                        "1.5",        "4K",        "4Kix",
                                        "0.3Ki",      "{a:1}",     "+5",
                                        ".5",         "5.",        "1 2",
                                        "a\"b",       "a[1]",      "//x",
                                        "\xFF",       "7 /* c */", "99999999999999999Ki"};
    struct arena *a = *state;
    struct json j = parse(a, "{\"x\": 1}"), x;
    struct err e = {.code = ERR_OK};
    for (size_t i = 0; i < sizeof COUNTS / sizeof COUNTS[0]; i++) {
        int64_t v = 0;
        assert_int_equal(json_override(&j, "x", COUNTS[i].text, &e), ERR_OK);
        x = member(&j, "x");
        assert_int_equal(json_int(&x, INT64_MIN, INT64_MAX, &v, &e), ERR_OK);
        if (v != COUNTS[i].is) fail_msg("%s is %lld", COUNTS[i].text, (long long)v);
    }
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
        const char *s = "";
        assert_int_equal(json_override(&j, "x", WORDS[i], &e), ERR_OK);
        x = member(&j, "x");
        assert_int_equal(json_str(&x, &s, &e), ERR_OK);
        assert_string_equal(s, WORDS[i]);
    }
    assert_int_equal(json_override(&j, "x", "17", &e), ERR_OK);
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        int64_t v = 0;
        const enum err_code code = json_override(&j, "x", WRONG[i], &e);
        if (strcmp(WRONG[i], "1.5") == 0) { /* a number, though no whole one */
            assert_int_equal(code, ERR_OK);
            assert_int_equal(json_override(&j, "x", "17", &e), ERR_OK);
            continue;
        }
        if (code != ERR_USAGE) fail_msg("'%s' is taken", WRONG[i]);
        assert_non_null(strstr(e.text, "no whole JSON value"));
        x = member(&j, "x");
        assert_int_equal(json_int(&x, 17, 17, &v, &e), ERR_OK); /* as it was */
    }
    assert_int_equal(json_override(&j, "x", "null", &e), ERR_OK);
    assert_true(json_has(&j, "x") && !json_get(&j, "x", &x));
    assert_int_equal(json_override(&j, "x", "{\"a\": [2, {\"b\": true}]}", &e), ERR_OK);
    x = member(&j, "x");
    assert_true(json_is_object(&x));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_paths_and_values, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(test_message_form, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(test_numbers, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(test_hostile_text_is_cleaned, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(test_accepts_what_is_published, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(test_override, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(test_refuses, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(test_files, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(test_long_object_is_walked_in_linear_time, open_arena, close_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
