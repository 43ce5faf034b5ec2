/* mutant -- reads which mutant is on before main starts. */
#include "tools/mutate/mutant.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int mutant_on;
unsigned char *mutant_seen;

__attribute__((constructor)) static void mutant_read(void)
{
    const char *on = getenv("RIDGE_MUTANT"), *seen = getenv("RIDGE_MUTANT_SEEN");
    if (on) mutant_on = (int)strtol(on, NULL, 10);
    if (!seen) return;
    const int fd = open(seen, O_RDWR);
    struct stat s;
    if (fd < 0 || fstat(fd, &s) != 0) return;
    void *map = mmap(NULL, (size_t)s.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) mutant_seen = map;
    (void)close(fd);
}

/* One test function of a program: the RIDGE_MUTANT_TEST-th of all its groups. A program that has no such ends with
 * status MUTANT_NO_TEST. The linker puts this before cmocka's own. */
static int tests_seen, tests_run;

int __real__cmocka_run_group_tests(const char *, const struct CMUnitTest *, size_t, CMFixtureFunction,
                                   CMFixtureFunction) __attribute__((weak)); /* the program has none */
int __wrap__cmocka_run_group_tests(const char *, const struct CMUnitTest *, size_t, CMFixtureFunction,
                                   CMFixtureFunction);

int __wrap__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t n, CMFixtureFunction setup,
                                   CMFixtureFunction teardown)
{
    const char *only = getenv("RIDGE_MUTANT_TEST");
    if (!only) return __real__cmocka_run_group_tests(name, tests, n, setup, teardown);
    const long at = strtol(only, NULL, 10) - tests_seen;
    tests_seen += (int)n;
    if (at < 0 || at >= (long)n) return 0;
    tests_run++;
    return __real__cmocka_run_group_tests(name, tests + at, 1, setup, teardown);
}

__attribute__((destructor)) static void mutant_end(void)
{
    if (getenv("RIDGE_MUTANT_TEST") && tests_seen > 0 && tests_run == 0) _exit(MUTANT_NO_TEST);
}
