/* The scan of JSON text: values, places of what is wrong, and strings at every alignment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calc/base/json_scan.h"

struct scanned {
    struct json_scan s;
    struct err e;
};

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

static void start(struct scanned *k, struct arena *a, const char *text)
{
    k->e = (struct err){.code = ERR_OK};
    k->s = json_scan_open(a, "x.json", text, strlen(text), &k->e);
}

static void test_a_document(void **state)
{
    struct scanned k;
    struct json_text key, text;
    int64_t n;
    double x;
    bool more;
    start(&k, *state,
          "\xEF\xBB\xBF { \"a\" : [ 17 , -9223372036854775808,9223372036854775807 ],\n\"b\\u0041\":-2.5e-1,"
          "\"skip\":{\"x\":[[],{},[1,{\"y\":null}],true,false,\"s\\\"\"]},\"c\":\"\\ud83d\\ude00\\n\\/\" } tail");
    assert_int_equal(json_scan_object(&k.s), ERR_OK);
    assert_int_equal(json_scan_member(&k.s, &key, &more), ERR_OK);
    assert_true(more && json_text_is(key, "a"));
    assert_int_equal(json_scan_array(&k.s), ERR_OK);
    static const int64_t WANT[] = {17, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(json_scan_element(&k.s, &more), ERR_OK);
        assert_true(more);
        assert_int_equal(json_scan_int(&k.s, INT64_MIN, INT64_MAX, &n), ERR_OK);
        assert_true(n == WANT[i]);
    }
    assert_int_equal(json_scan_element(&k.s, &more), ERR_OK);
    assert_false(more);
    assert_int_equal(json_scan_member(&k.s, &key, &more), ERR_OK);
    assert_true(json_text_is(key, "bA"));
    assert_int_equal(json_scan_number(&k.s, &x), ERR_OK);
    assert_true(x == -0.25);
    assert_int_equal(json_scan_member(&k.s, &key, &more), ERR_OK);
    assert_int_equal(json_scan_skip(&k.s), ERR_OK);
    assert_int_equal(json_scan_member(&k.s, &key, &more), ERR_OK);
    assert_int_equal(json_scan_text(&k.s, &text), ERR_OK);
    assert_true(json_text_is(text, "\xF0\x9F\x98\x80\n/"));
    assert_int_equal(json_scan_member(&k.s, &key, &more), ERR_OK);
    assert_false(more);
    assert_int_equal(json_scan_peek(&k.s), 't');
}

/* Runs of plain bytes are taken eight at a time: whatever ends one must be seen at each place. */
static void test_strings_at_every_place(void **state)
{
    static const struct {
        const char *piece, *meaning; /* NULL: refused */
    } PIECES[] = {
        {"", ""},          {"\\\\", "\\"}, {"\\\"", "\""},          {"\xC3\xA9", "\xC3\xA9"}, {"\x7F", "\x7F"},
        {"!", "!"},        {"[", "["},     {"\x1F", NULL},          {"\x80", NULL},           {"\xFF", NULL},
        {"\xC3(", NULL},   {"\\q", NULL},  {"\\u12g4", NULL},       {"\\uDC00", NULL},        {"\\uD800x", NULL},
        {"\\u0000", NULL}, {"\n", NULL},   {"\\ud800\\u0041", NULL}};
    static const char PAD[] = "abcdefghijklmnopqrst";
    for (size_t p = 0; p < sizeof PIECES / sizeof PIECES[0]; p++)
        for (size_t before = 0; before < 20; before++)
            for (size_t after = 0; after < 20; after++) {
                struct scanned k;
                struct json_text text;
                char in[80], want[80];
                (void)snprintf(in, sizeof in, "\"%.*s%s%.*s\"", (int)before, PAD, PIECES[p].piece, (int)after, PAD);
                (void)snprintf(want, sizeof want, "%.*s%s%.*s", (int)before, PAD,
                               PIECES[p].meaning ? PIECES[p].meaning : "", (int)after, PAD);
                start(&k, *state, in);
                const enum err_code code = json_scan_text(&k.s, &text);
                if (!PIECES[p].meaning)
                    assert_int_equal(code, ERR_INPUT);
                else if (code != ERR_OK || !json_text_is(text, want))
                    fail_msg("%s: %s", in, k.e.text);
                for (size_t cut = 0; after == 7 && before % 5 == 0 && cut < strlen(in); cut++) { /* cut short */
                    char *exact = malloc(cut ? cut : 1);
                    assert_non_null(exact);
                    memcpy(exact, in, cut);
                    k.s = json_scan_open(*state, "x.json", exact, cut, &k.e);
                    assert_int_equal(json_scan_text(&k.s, &text), ERR_INPUT);
                    free(exact);
                }
            }
}

static void test_what_is_refused(void **state)
{
    static const char *const WRONG[] = {"",      "{",   "[1,]", "[,1]",  "[1 2]", "{\"a\"}", "{\"a\":1,}", "{a:1}",
                                        "[01]",  "[-]", "[1.]", "[.5]",  "[1e]",  "[+1]",    "[NaN]",      "[tru]",
                                        "[\"a]", "[}",  "{]",   "[1e+]", "nul",   "'a'",     "[1]]x",      "[\"\\\"]"};
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        struct scanned k;
        start(&k, *state, WRONG[i]);
        const bool whole = strcmp(WRONG[i], "[1]]x") == 0; /* what stands behind a value is the caller's matter */
        if ((json_scan_skip(&k.s) == ERR_OK) != whole) fail_msg("%s", WRONG[i]);
        if (!whole) assert_non_null(strstr(k.e.text, "x.json: byte "));
    }
    static const char *const INTS[] = {
        "9223372036854775808",       "-9223372036854775809", "1.0", "1e2", "01", "-", "x", "-0x",
        "99999999999999999999999999"};
    for (size_t i = 0; i < sizeof INTS / sizeof INTS[0]; i++) {
        struct scanned k;
        int64_t n = 7;
        start(&k, *state, INTS[i]);
        const enum err_code code = json_scan_int(&k.s, INT64_MIN, INT64_MAX, &n);
        if ((code == ERR_OK) != (strcmp(INTS[i], "-0x") == 0)) fail_msg("%s", INTS[i]);
        if (code != ERR_OK) assert_int_equal(n, 7);
    }
    struct scanned k;
    int64_t n;
    double x;
    start(&k, *state, " 31");
    assert_int_equal(json_scan_int(&k.s, 0, 30, &n), ERR_INPUT);
    assert_string_equal(k.e.text, "x.json: byte 1: found \"31\", wanted an integer within its bounds");
    assert_int_equal(json_scan_int(&k.s, 0, 31, &n), ERR_OK);
    start(&k, *state, "1e999");
    assert_int_equal(json_scan_number(&k.s, &x), ERR_INPUT);
    char deep[200];
    for (int depth = 64; depth <= 65; depth++) {
        memset(deep, '[', (size_t)depth);
        memset(deep + depth, ']', (size_t)depth);
        k.s = json_scan_open(*state, "x.json", deep, 2 * (size_t)depth, &k.e);
        assert_int_equal(json_scan_skip(&k.s), depth == 64 ? ERR_OK : ERR_INPUT);
    }
}

#define RUN(test) cmocka_unit_test_setup_teardown(test, open_arena, close_arena)

/* The whole of a text: strict JSON, each name once in its object, nothing behind. */
static void test_a_whole_text(void **state)
{
    static const char *const RIGHT[] = {"{}",
                                        " [] ",
                                        "3",
                                        "{\"a\": {\"a\": 1}, \"b\": [{\"a\": 1}, {\"a\": 2}]}\n",
                                        "{\"\": 1, \"a\": 2, \"A\": 3, \"aa\": 4}",
                                        "[[[1], 2], {\"x\": []}, {}]",
                                        "\xEF\xBB\xBF{\"a\": null}"};
    static const struct {
        const char *text, *what;
    } WRONG[] = {
        {"", "found the end"},
        {"{} {}", "wanted the end of the file"},
        {"[1]x", "wanted the end of the file"},
        {"{\"a\": 1, \"b\": 2, \"a\": 3}", "two members \"a\""},
        {"{\"x\": [1, {\"k\": 1, \"\\u006b\": 2}]}", "two members \"k\""},
        {"{'a': 1}", "wanted a member's name"},
        {"{\"a\": 1} // why", "wanted the end of the file"},
        {"{\"a\": /* why */ 1}", "wanted a value"},
        {"{\"a\": NaN}", "wanted a value"},
        {"{\"a\\u0000b\": 1}", "not all zero"},
        {"{\"a\": 1,}", "member's name"},
        {"[1, [2, 3]", "found the end"},
    };
    struct scanned k;
    for (size_t i = 0; i < sizeof RIGHT / sizeof RIGHT[0]; i++) {
        start(&k, *state, RIGHT[i]);
        if (json_scan_all(&k.s) != ERR_OK) fail_msg("%s: %s", RIGHT[i], k.e.text);
    }
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        start(&k, *state, WRONG[i].text);
        assert_int_equal(json_scan_all(&k.s), ERR_INPUT);
        if (!strstr(k.e.text, WRONG[i].what)) fail_msg("%s: %s", WRONG[i].text, k.e.text);
    }
    static const char NUL[] = "{}\0{}";
    k.s = json_scan_open(*state, "x.json", NUL, sizeof NUL - 1, &k.e);
    assert_int_equal(json_scan_all(&k.s), ERR_INPUT);
    char deep[300] = "";
    for (int levels = 64; levels <= 65; levels++) {
        memset(deep, '[', (size_t)levels);
        memset(deep + levels, ']', (size_t)levels);
        deep[2 * levels] = '\0';
        start(&k, *state, deep);
        assert_int_equal(json_scan_all(&k.s), levels == 64 ? ERR_OK : ERR_INPUT);
    }
}

static void test_lists_of_integers(void **state)
{
    static const struct {
        const char *text, *error;
        size_t n;
    } CASES[] = {
        {"[]", NULL, 0},
        {" [ 17 , 0,\n-31 ] ", NULL, 3},
        {"[9223372036854775807,-9223372036854775808]", NULL, 2},
        {"[1,2,3,4]", "no fourth", 0},
        {"[1 2]", "a comma or the end of the list", 0},
        {"[1,]", "an integer", 0},
        {"[,1]", "an integer", 0},
        {"[01]", "an integer", 0},
        {"[1.0]", "an integer", 0},
        {"[9223372036854775808]", "within its bounds", 0},
        {"[1", "the end", 0},
        {"{}", "a list", 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct scanned k;
        int64_t v[3] = {0};
        size_t n = 0;
        start(&k, *state, CASES[i].text);
        const enum err_code code = json_scan_ints(&k.s, INT64_MIN, INT64_MAX, v, 3, &n, "no fourth");
        if ((code == ERR_OK) != (CASES[i].error == NULL)) fail_msg("%s", CASES[i].text);
        if (code != ERR_OK && !strstr(k.e.text, CASES[i].error)) fail_msg("%s: %s", CASES[i].text, k.e.text);
        if (code == ERR_OK) assert_int_equal(n, CASES[i].n);
        if (code == ERR_OK && n == 3) assert_int_equal(v[2], -31);
        if (code == ERR_OK && n == 2) assert_true(v[0] == INT64_MAX && v[1] == INT64_MIN);
    }
}

/* A key that is foretold is read where it is, and nothing is where it is not. */
static void test_a_member_that_is_known(void **state)
{
    static const struct {
        const char *text, *known;
        bool hit;
    } CASES[] = {
        {"{\"layers.7\":5}", "layers.7", true},   {"{ \"layers.7\" : 5}", "layers.7", true},
        {"{\"layers.77\":5}", "layers.7", false}, {"{\"layers\":5}", "layers.7", false},
        {"{\"layers.7\"}", "layers.7", false},    {"{\"layers.7", "layers.7", false},
        {"{\"layers.7\"", "layers.7", false},     {"{}", "layers.7", false},
        {"{layers.7:5}", "layers.7", false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct scanned k;
        int64_t v;
        start(&k, *state, CASES[i].text);
        assert_int_equal(json_scan_object(&k.s), ERR_OK);
        const size_t at = k.s.at;
        const struct json_text known = {CASES[i].known, strlen(CASES[i].known)};
        if (json_scan_member_known(&k.s, known) != CASES[i].hit) fail_msg("%s", CASES[i].text);
        if (!CASES[i].hit) assert_int_equal(k.s.at, at);
        if (CASES[i].hit) assert_int_equal(json_scan_int(&k.s, 5, 5, &v), ERR_OK);
    }
    struct scanned k;
    const struct json_text b = {"b", 1};
    int64_t v;
    start(&k, *state, "{\"a\":1 \"b\":2}");
    assert_int_equal(json_scan_object(&k.s), ERR_OK);
    assert_true(json_scan_member_known(&k.s, (struct json_text){"a", 1}));
    assert_int_equal(json_scan_int(&k.s, 1, 1, &v), ERR_OK);
    assert_false(json_scan_member_known(&k.s, b)); /* without its comma */
    start(&k, *state, "{\"a\":1 , \"b\":2}");
    assert_int_equal(json_scan_object(&k.s), ERR_OK);
    assert_true(json_scan_member_known(&k.s, (struct json_text){"a", 1}));
    assert_int_equal(json_scan_int(&k.s, 1, 1, &v), ERR_OK);
    assert_true(json_scan_member_known(&k.s, b));
    assert_true(json_scan_literal(&k.s, "2}"));
    assert_int_equal(k.s.at, k.s.len);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(test_a_document),        RUN(test_strings_at_every_place), RUN(test_what_is_refused),
        RUN(test_lists_of_integers), RUN(test_a_member_that_is_known), RUN(test_a_whole_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
