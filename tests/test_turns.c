/* Which result of a plan is measured next within a budget. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "calc/cli/probe_turns.h"

enum { N = 4 };

static const double MB = 1e6, CACHE_BYTES = 1e6;

static void begin(struct arena *a, struct turns *t)
{
    assert_int_equal(turns_open(a, N, CACHE_BYTES, t, NULL), ERR_OK);
    for (size_t i = 0; i < N; i++) t->of[i] = (struct turn){.due = {true}, .bytes = (double)(i + 1) * MB};
}

/* The median of seconds a byte, of a call and of the cache: one result that was disturbed changes nothing. */
static void costs_are_learnt(void **state)
{
    struct arena *a = arena_open();
    struct turns t;
    (void)state;
    begin(a, &t);
    assert_true(turns_aside_s(&t, 0, true) == 0); /* nothing is known */
    turns_learn(&t, 0, true, 2);                  /* 1 s a MB */
    assert_true(turns_aside_s(&t, 2, true) == 4);
    turns_learn(&t, 1, true, 300);
    turns_learn(&t, 1, true, 3);
    assert_true(turns_aside_s(&t, 2, true) == 4);
    assert_true(turns_aside_s(&t, 2, false) == 0);
    turns_learn(&t, 2, false, -1); /* no time at all: nothing is learnt */
    assert_true(turns_aside_s(&t, 2, false) == 0);
    arena_close(a);
}

/* In order, but what takes more than twice its part of what is left waits, and what that does not hold is not begun. */
static void what_does_not_fit_waits(void **state)
{
    struct arena *a = arena_open();
    struct turns t;
    (void)state;
    begin(a, &t);
    assert_int_equal(turns_next(&t, TURNS_COLD, 10, 1), 0);
    turns_learn(&t, 0, true, 2); /* the four take 2, 3, 4 and 5 s beside their sampling */
    t.of[0].due[TURNS_COLD] = false;
    assert_int_equal(turns_next(&t, TURNS_COLD, 60, 1), 1);
    t.of[1].bytes = 100 * MB;
    assert_int_equal(turns_next(&t, TURNS_COLD, 60, 1), 2); /* 102 s are more than twice 20 */
    t.of[2].due[TURNS_COLD] = t.of[3].due[TURNS_COLD] = false;
    assert_int_equal(turns_next(&t, TURNS_COLD, 60, 1), 1); /* the only one is begun all the same */
    t.of[2].due[TURNS_COLD] = t.of[3].due[TURNS_COLD] = true;
    assert_int_equal(turns_next(&t, TURNS_COLD, 5.5, 1), 2); /* none has its part, the least fits */
    assert_int_equal(turns_next(&t, TURNS_COLD, 4.5, 1), N); /* not even the least */
    assert_int_equal(turns_next(&t, TURNS_COLD, 0, 1), N);
    t.of[2].due[TURNS_AGAIN] = true;
    t.of[2].cold_again = true;
    assert_int_equal(turns_next(&t, TURNS_AGAIN, 6, 1), 2);
    assert_int_equal(turns_next(&t, TURNS_AGAIN, 4, 1), N); /* it has a result already */
    arena_close(a);
}

/* Cold, hot, noisy once more; in the last quarter noisy ones first, then the others again. */
static void passes_follow(void **state)
{
    struct arena *a = arena_open();
    struct turns t;
    int pass;
    (void)state;
    begin(a, &t);
    t.of[0].due[TURNS_COLD] = false;
    t.of[0].due[TURNS_AGAIN] = t.of[3].due[TURNS_HOT] = true;
    assert_int_equal(turns_pick(&t, 30, 100, 1, &pass), 1);
    assert_int_equal(pass, TURNS_COLD);
    assert_int_equal(turns_pick(&t, 20, 100, 1, &pass), 0);
    assert_int_equal(pass, TURNS_AGAIN);
    t.of[0].due[TURNS_AGAIN] = false;
    assert_int_equal(turns_pick(&t, 20, 100, 1, &pass), 1);
    assert_int_equal(pass, TURNS_COLD);
    for (size_t i = 0; i < N; i++) t.of[i].due[TURNS_COLD] = false;
    assert_int_equal(turns_pick(&t, 30, 100, 1, &pass), 3);
    assert_int_equal(pass, TURNS_HOT);
    t.of[3].due[TURNS_HOT] = false;
    assert_int_equal(turns_pick(&t, 30, 100, 1, &pass), N);
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_are_learnt),
        cmocka_unit_test(what_does_not_fit_waits),
        cmocka_unit_test(passes_follow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
