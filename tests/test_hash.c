#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calc/base/hash.h"
#include "tests/scratch.h"

static const char *hash_of(const char *s)
{
    static _Thread_local char out[HASH_TEXT_MAX];
    return hash_text(out, hash_more(hash_start(), s, strlen(s)));
}

/* The vectors of the FNV draft's appendix. */
static void test_vectors(void **state)
{
    (void)state;
    assert_string_equal(hash_of(""), "cbf29ce484222325");
    assert_string_equal(hash_of("a"), "af63dc4c8601ec8c");
    assert_string_equal(hash_of("foobar"), "85944171f73967e8");
    char out[HASH_TEXT_MAX];
    assert_string_equal(hash_text(out, hash_more(hash_more(hash_start(), "foo", 3), "bar", 3)), "85944171f73967e8");
}

static void test_file(void **state)
{
    (void)state;
    char path[SCRATCH_MAX], out[HASH_TEXT_MAX] = "";
    struct err e = {.code = ERR_OK};
    assert_int_equal(hash_file(scratch_text(path, "foobar"), out, &e), ERR_OK);
    assert_string_equal(out, "85944171f73967e8");
    (void)unlink(path);
    assert_int_equal(hash_file(path, out, &e), ERR_IO);
    assert_int_equal(hash_file("/tmp", out, &e), ERR_IO);
    assert_int_equal(hash_file("/dev/zero", out, &e), ERR_IO);
    assert_string_equal(e.text, "/dev/zero: is not a regular file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors), cmocka_unit_test(test_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
