/* Members of a batch against a list that is gone through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "calc/serve/steady_members.h"

enum { MOST = 37, REQUESTS = 90, TIMES = 200000 };

struct listed {
    int64_t request, until;
};

static uint64_t roll(uint64_t *state, uint64_t n) /* Knuth, MMIX */
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % n;
}

/* Requests enter, end and leave again and again, some of them early, so that places of those that left are on top of
 * both the stack and the heap. */
static void test_list(void **state)
{
    struct steady_members m;
    struct listed list[MOST];
    int32_t places[REQUESTS] = {0};
    bool there[REQUESTS] = {false};
    int64_t n = 0, landed = 0;
    uint64_t at = 5;
    assert_true(steady_members_open(&m, MOST));
    assert_true(steady_members_next(&m) == INT64_MAX);
    for (int i = 0; i < TIMES; i++) {
        const uint64_t what = roll(&at, 8), request = roll(&at, REQUESTS);
        if (what < 4 && n < MOST && !there[request]) {
            list[n] = (struct listed){(int64_t)request, landed + 1 + (int64_t)roll(&at, what < 2 ? 9 : 400)};
            steady_members_add(&m, places, list[n].request, list[n].until);
            n++;
            there[request] = true;
        } else if (what == 4 && n > 0) {
            const struct steady_member last = steady_members_last(&m, places);
            n--;
            assert_true(last.request == list[n].request && last.until == list[n].until);
            there[last.request] = false;
        } else if (what > 5) {
            int64_t ended = 0, due = 0;
            landed += (int64_t)roll(&at, 5);
            for (int64_t x; (x = steady_members_end(&m, places, landed)) >= 0; ended++) {
                assert_true(there[x]);
                there[x] = false;
            }
            for (int64_t k = 0, kept = 0, all = n; k < all; k++) {
                due += list[k].until <= landed;
                assert_int_equal(there[list[k].request], list[k].until > landed);
                if (list[k].until <= landed)
                    n--;
                else
                    list[kept++] = list[k];
            }
            assert_int_equal(ended, due);
            assert_true(steady_members_next(&m) > landed);
        }
        assert_int_equal(m.n, n);
    }
    steady_members_close(&m);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_list)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
