/* The table is this file's own, so the look-ups are tested apart from what the build embeds (test_hw compares that). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "calc/base/embed.h"

static const unsigned char bytes[] = {7, 11, 0, 13, 0};

/* Sorted by byte value: '-' < '.' < '/' < letters. */
const struct embed_file embed_files[] = {
    {"a-b/x.json", bytes, 4},      {"a/m.json", bytes, 3},  {"a/n-2.json", bytes, 2}, {"a/n.json", bytes + 1, 3},
    {"a/n/deep/x.json", bytes, 1}, {"ab/z.json", bytes, 4}, {"b.json", bytes + 3, 1},
};
const size_t embed_files_n = sizeof embed_files / sizeof *embed_files;

static void test_find_gives_every_file_and_no_other(void **state)
{
    (void)state;
    for (size_t i = 0; i < embed_files_n; i++) assert_ptr_equal(embed_find(embed_files[i].path), &embed_files[i]);
    static const char *const absent[] = {"",          "a",        "a/",      "a/n", "a/n.jso",
                                         "a/n.json2", "A/n.json", "b.json/", "zz",  " "};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) assert_null(embed_find(absent[i]));
    assert_int_equal(embed_find("a/n.json")->bytes[0], 11);
    assert_int_equal(embed_find("a/n.json")->size, 3);
}

static void test_under_gives_neighbours(void **state)
{
    (void)state;
    size_t n = 99;
    const struct embed_file *f = embed_under("a/", &n);
    assert_int_equal(n, 4);
    assert_ptr_equal(f, &embed_files[1]);
    f = embed_under("a/n", &n);
    assert_int_equal(n, 3);
    assert_string_equal(f->path, "a/n-2.json");
    f = embed_under("", &n);
    assert_int_equal(n, embed_files_n);
    assert_ptr_equal(f, embed_files);
    assert_null(embed_under("a/o", &n));
    assert_int_equal(n, 0);
    assert_null(embed_under("z", &n));
    assert_int_equal(n, 0);
    f = embed_under("b.json", &n);
    assert_int_equal(n, 1);
    assert_ptr_equal(f, &embed_files[6]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find_gives_every_file_and_no_other),
        cmocka_unit_test(test_under_gives_neighbours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
