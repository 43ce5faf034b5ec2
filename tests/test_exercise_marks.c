/* Exercises: the marks of a class. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/exercises.h"

static struct marks marked_with(struct arena *a, const char *json, int64_t class_seed, bool wins, enum err_code want,
                                const char *why)
{
    struct json j;
    struct marks m = {.rows_n = 0};
    struct err e = {0};
    assert_int_equal(json_parse(a, "class.json", json, strlen(json), &j, &e), ERR_OK);
    const enum err_code code = marks_grade(a, &j, class_seed, wins, &m, &e);
    if (code != want || (why && !strstr(e.text, why))) fail_msg("%s: %s", json, e.text);
    return m;
}

static struct marks marked(struct arena *a, const char *json, enum err_code want)
{
    return marked_with(a, json, 1, false, want, NULL);
}

/* The right answer to an exercise, as text. */
static const char *right_answer(struct arena *a, const char *name, uint64_t seed)
{
    struct fixture f = begin();
    char text[TEXT_MAX];
    const struct exercise_question q = ask(&f, name, seed);
    if (q.kind == EXERCISE_NUMBER)
        (void)snprintf(text, sizeof text, "%.17g", q.value);
    else
        (void)sym_print(q.answer, text, sizeof text);
    end(&f);
    return arena_strndup(a, text, strlen(text));
}

static void test_marks(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const char *at7 = right_answer(a, "ridge-cpu", 7), *at3 = right_answer(a, "ridge-cpu", 3),
               *at1 = right_answer(a, "ridge-cpu", 1);
    const char *own = right_answer(a, "ridge-cpu", (uint64_t)exercise_student_seed(1, "eve"));
    const struct marks m =
        marked(a,
               arena_printf(
                   a,
                   "{\"seed\": 7, \"answers\": ["
                   "{\"student\": \"ada\", \"exercise\": \"ridge-cpu\", \"answer\": \"%s\"},"
                   "{\"student\": \"bob\", \"exercise\": \"ridge-cpu\", \"answer\": %s, \"seed\": 3},"
                   "{\"student\": \"ada\", \"exercise\": 7, \"answer\": \"-1\"},"
                   "{\"student\": \"eve\", \"exercise\": \"ridge-cpu\", \"answer\": \"%s\", \"seed\": \"by-student\"},"
                   "{\"student\": \"eve\", \"exercise\": \"ridge-cpus\", \"answer\": \"1\"},"
                   "{\"student\": \"eve\", \"exercise\": \"ridge-cpu\", \"answer\": \"1\", \"seed\": -4},"
                   "{\"student\": \"eve\", \"exercise\": \"ridge-cpu\", \"answer\": [1]},"
                   "{\"student\": null, \"exercise\": \"ridge-cpu\", \"answer\": 1}, {}, null, 17]}",
                   at7, at3, own),
               ERR_OK);
    assert_int_equal(m.rows_n, 11);
    static const bool RIGHT[11] = {true, true, false, true};
    for (size_t i = 0; i < 11; i++) {
        assert_true(m.rows[i].right == RIGHT[i]);
        assert_true(RIGHT[i] == !m.rows[i].hint);
    }
    assert_int_equal(m.rows[1].seed, 3);
    assert_string_equal(m.rows[2].exercise, "bound");
    assert_non_null(strstr(m.rows[4].hint, "did you mean ridge-cpu"));
    assert_non_null(strstr(m.rows[5].hint, "answers[5].seed"));
    assert_non_null(strstr(m.rows[6].hint, "answers[6].answer"));
    assert_int_equal(m.students_n, 3);
    assert_string_equal(m.students[0].student, "ada");
    assert_true(m.students[0].right == 1 && m.students[0].of == 2);
    assert_true(m.students[1].right == 1 && m.students[1].of == 1);
    assert_true(m.students[2].right == 1 && m.students[2].of == 4);

    (void)marked(a, "{\"ada\": {\"bound\": 3}, \"answers\": {\"x\": 1}}", ERR_INPUT); /* ada is no member beside it */
    const struct marks bare =
        marked(a, arena_printf(a, "{\"ada\": {\"ridge-cpu\": \"%s\", \"bound\": 3}, \"bob\": 4}", at1), ERR_OK);
    assert_int_equal(bare.rows_n, 3);
    assert_true(bare.rows[0].right && !bare.rows[1].right && !bare.rows[2].right);
    assert_int_equal(bare.students_n, 2);
    const struct marks by = marked(
        a, arena_printf(a, "{\"seed\": \"by-student\", \"answers\": {\"eve\": {\"ridge-cpu\": \"%s\"}}}", own), ERR_OK);
    assert_true(by.rows[0].right);
    static const char *const WRONG[] = {"[]",
                                        "3",
                                        "{}",
                                        "{\"answers\": 3}",
                                        "{\"answers\": null}",
                                        "{\"seed\": -1, \"answers\": []}",
                                        "{\"seed\": \"mine\", \"answers\": []}",
                                        "{\"awnsers\": [1]}",
                                        "{\"answers\": []}",
                                        "{\"answers\": {}}",
                                        "\"x\"",
                                        "null"};
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) (void)marked(a, WRONG[i], ERR_INPUT);
    arena_close(a);
}

/* What was asked is what sums are out of; nothing counts twice, and nothing is lost without a word. */
static void test_marks_of_what_was_asked(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const char *right = right_answer(a, "ridge-cpu", 7);
    struct marks m =
        marked(a,
               arena_printf(a,
                            "{\"seed\": 7, \"exercises\": [\"ridge-cpu\", 7, \"mlp-flops\"], \"answers\": "
                            "{\"ada\": {\"6\": \"%s\", \"ridge-cpu\": \"%s\", \"1\": \"x\"}, \"bob\": {}}}",
                            right, right),
               ERR_OK);
    assert_int_equal(m.students_n, 2);
    assert_string_equal(m.students[1].student, "bob");
    assert_true(m.students[0].right == 1 && m.students[0].of == 3 && m.students[1].right == 0 && m.students[1].of == 3);
    /* three that were given, then two and three that were not */
    assert_int_equal(m.rows_n, 8);
    assert_true(m.rows[0].right && !m.rows[1].right && !m.rows[2].right);
    assert_non_null(strstr(m.rows[1].hint, "a second answer"));
    assert_non_null(strstr(m.rows[2].hint, "not among"));
    for (size_t i = 3; i < 8; i++) {
        assert_string_equal(m.rows[i].hint, "no answer");
        assert_string_equal(m.rows[i].student, i < 5 ? "ada" : "bob");
        assert_int_equal(m.rows[i].seed, 7);
        assert_null(m.rows[i].answer);
    }
    assert_string_equal(m.rows[3].exercise, "bound");
    assert_string_equal(m.rows[5].exercise, "ridge-cpu");

    /* without a list out of what was handed in, once each, "1" and its name being one */
    m = marked(a, "{\"ada\": {\"1\": \"x\", \"matmul-intensity\": \"y\", \"2\": \"z\"}, \"bob\": {}}", ERR_OK);
    assert_true(m.students[0].of == 2 && m.students[0].right == 0 && m.students[1].of == 0 && m.rows_n == 3);
    /* a second right answer adds nothing, in a list of entries either, whatever the seed */
    m = marked(a,
               arena_printf(a,
                            "{\"seed\": 7, \"answers\": ["
                            "{\"student\": \"ada\", \"exercise\": 6, \"answer\": \"%s\"},"
                            "{\"student\": \"bob\", \"exercise\": 6, \"answer\": \"%s\"},"
                            "{\"student\": \"ada\", \"exercise\": \"ridge-cpu\", \"answer\": \"%s\"}]}",
                            right, right, right),
               ERR_OK);
    assert_true(m.rows[0].right && m.rows[1].right && !m.rows[2].right);
    assert_true(m.students[0].of == 1 && m.students[0].right == 1 && m.students[1].of == 1);

    /* a seed typed on the command line wins over the file's, not over an answer's own */
    const char *file = arena_printf(a,
                                    "{\"seed\": 3, \"answers\": ["
                                    "{\"student\": \"ada\", \"exercise\": 6, \"answer\": \"%s\"},"
                                    "{\"student\": \"bob\", \"exercise\": 6, \"answer\": \"%s\", \"seed\": 3}]}",
                                    right, right);
    m = marked_with(a, file, 7, true, ERR_OK, NULL);
    assert_true(m.rows[0].right && m.rows[0].seed == 7 && m.rows[1].seed == 3);
    m = marked_with(a, file, 7, false, ERR_OK, NULL);
    assert_true(!m.rows[0].right && m.rows[0].seed == 3);

    static const struct {
        const char *json, *why;
    } WRONG[] = {
        {"{\"Seed\": 3, \"answers\": {\"ada\": {}}}", "unknown member \"Seed\"; did you mean seed"},
        {"{\"Seed\": 3, \"ada\": {}}", "found a member \"Seed\""},
        {"{\"exercises\": [1], \"ada\": {}}", "found a member \"exercises\""},
        {"{\"exercises\": [\"ridge-cpus\"], \"answers\": {\"ada\": {}}}", "exercises[0]: no exercise 'ridge-cpus'"},
        {"{\"exercises\": [\"ridge-cpu\", 6], \"answers\": {\"ada\": {}}}", "exercises[1]: ridge-cpu is there twice"},
        {"{\"exercises\": [], \"answers\": {\"ada\": {}}}", "a list of exercises"},
        {"{\"exercises\": null, \"answers\": {\"ada\": {}}}", "a list of exercises"},
        {"{\"answers\": []}", "at least one answer"},
        {"{\"answers\": {}}", "students with their answers"},
    };
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++)
        (void)marked_with(a, WRONG[i].json, 1, false, ERR_INPUT, WRONG[i].why);
    m = marked(a, "{\"answers\": [{\"student\": \"ada\", \"exercise\": 6, \"anwser\": 1, \"answer\": 2}]}", ERR_OK);
    assert_non_null(strstr(m.rows[0].hint, "unknown member \"anwser\"; did you mean answer"));
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_marks_of_what_was_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
