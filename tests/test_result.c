/* result: spells of one call, the rate that bounds it; progress: what is left of work with preparations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "calc/cli/progress.h"
#include "probe/result.h"

#define assert_near(x, y, most) assert_true(fabs((x) - (y)) <= (most))

static double first_s[] = {7e-6, 7.01e-6, 7.02e-6, 7.01e-6, 7e-6, 7.03e-6, 7.01e-6, 7.02e-6, 7.01e-6, 7e-6, 7.01e-6};
static double second_s[] = {7.3e-6, 7.3e-6, 7.3e-6, 7.3e-6, 7.3e-6, 7.3e-6, 7.3e-6, 7.3e-6, 7.3e-6, 7.3e-6};
static double discard_s[] = {9e-6, 8e-6};

static struct result result_of(double *times_s, size_t n)
{
    double room[64];
    return (struct result){.outcome = RESULT_MEASURED,
                           .reason = "",
                           .times_s = times_s,
                           .times_n = n,
                           .discards_s = discard_s,
                           .discards_n = 2,
                           .read_bytes = 7e5,
                           .flops = 1e5,
                           .summary = sample_summarise(times_s, n, room)};
}

static void spells_are_one_result(void **state)
{
    struct arena *a = *state;
    struct result_spell of[3] = {{result_of(first_s, 11), true}, {result_of(second_s, 10), true}};
    struct result r;
    for (size_t i = 0; i < 3; i++) {
        const double nan = (double)NAN, x = (double)i;
        of[i].of = i == 1 ? result_of(second_s, 10) : result_of(first_s, 11);
        of[i].counts = true;
        of[i].of.before = (struct result_ceilings){1e9 + 1e7 * x, i ? 2e9 + 1e7 * x : nan, nan, nan};
        of[i].of.after = (struct result_ceilings){3e9 - 1e7 * x, 4e9, nan, 5e9};
    }
    assert_int_equal(result_join(a, of, 2, &r, NULL), ERR_OK);
    assert_int_equal(r.outcome, RESULT_MEASURED); /* 4 % apart */
    assert_int_equal(r.times_n, 21);
    assert_int_equal(r.discards_n, 4);
    assert_true(r.times_s[0] == 7e-6 && r.times_s[11] == 7.3e-6 && r.discards_s[2] == 9e-6);
    assert_near(r.summary.median_s, 7.03e-6, 1e-15); /* the 11th of 21 */
    assert_near(r.before.peak_flops_per_s, 1.005e9, 1);
    assert_near(r.before.read_bytes_per_s, 2.01e9, 1); /* the only one */
    assert_near(r.after.peak_flops_per_s, 2.995e9, 1);
    assert_true(isnan(r.before.moved_bytes_per_s) && r.after.gather_bytes_per_s == 5e9);
    of[1].counts = false; /* its samples are discards, its ceilings no one's */
    assert_int_equal(result_join(a, of, 3, &r, NULL), ERR_OK);
    assert_int_equal(r.times_n, 22);
    assert_int_equal(r.discards_n, 6 + 10);
    assert_true(r.discards_s[4] == 7.3e-6 && r.times_s[11] == 7e-6);
    assert_near(r.before.peak_flops_per_s, 1.01e9, 1);
    for (size_t i = 0; i < 10; i++) second_s[i] = 7.5e-6; /* slowed throughout, and quiet in itself */
    of[1].of = result_of(second_s, 10);
    of[1].counts = true;
    assert_int_equal(result_join(a, of, 2, &r, NULL), ERR_OK);
    assert_int_equal(r.outcome, RESULT_NOISY); /* 7 % apart */
    assert_non_null(strstr(r.reason, "(21 kept, 4 disturbed)"));
    assert_true(isnan(result_time_s(&r)));
}

/* Of many samples the first are kept, as many as the store takes. */
static void spells_of_many_samples(void **state)
{
    enum { EACH = 3000 };
    static double times_s[EACH];
    struct arena *a = *state;
    struct result_spell of[4];
    struct result r;
    for (size_t i = 0; i < EACH; i++) times_s[i] = 7e-6 + 1e-9 * (double)(i % 7);
    for (size_t i = 0; i < 4; i++) {
        of[i].of = result_of(first_s, 11);
        of[i].of.times_s = times_s;
        of[i].of.times_n = EACH;
        of[i].counts = i % 2;
    }
    assert_int_equal(result_join(a, of, 4, &r, NULL), ERR_OK);
    assert_int_equal(r.outcome, RESULT_MEASURED);
    assert_int_equal(r.times_n, SAMPLE_MAX);
    assert_int_equal(r.discards_n, SAMPLE_MAX);
    assert_true(r.times_s[SAMPLE_MAX - 1] == times_s[SAMPLE_MAX - 1 - EACH]);
}

/* What is read in pieces has the rate of pieces, where that is the lower one. */
static void rates_of_pieces_bound(void **state)
{
    struct result r = result_of(first_s, 11);
    (void)state;
    r.before.read_bytes_per_s = 2.9e10;
    r.after.read_bytes_per_s = 3.1e10;
    assert_true(isnan(result_gather(&r)));
    assert_near(result_bound_s(&r, 0, 7e5, 0), 7e5 / 3.1e10, 1e-15);
    r.before.gather_bytes_per_s = (double)NAN;
    r.after.gather_bytes_per_s = 2.3e10;
    assert_true(result_gather(&r) == 2.3e10);
    assert_near(result_bound_s(&r, 0, 7e5, 0), 7e5 / 2.3e10, 1e-15);
    r.before.gather_bytes_per_s = 2.4e10;
    assert_true(result_gather(&r) == 2.4e10);
    r.after.gather_bytes_per_s = 3.2e10; /* pieces are no faster than an array */
    assert_true(isnan(result_gather(&r)));
    assert_near(result_bound_s(&r, 0, 7e5, 0), 7e5 / 3.1e10, 1e-15);
}

/* Bytes that no known rate bounds leave no bound, however much is computed: also where nobody counted what of them is
 * read. */
static void unknown_rates_bound_nothing(void **state)
{
    const double nan = (double)NAN;
    struct result r = {.cold = true, .before = {1e9, nan, nan, nan}, .after = {nan, nan, nan, nan}};
    (void)state;
    assert_true(result_bound_s(&r, 7e9, 0, 0) == 7);
    assert_true(isnan(result_bound_s(&r, 7e9, 13, 13)));
    assert_true(isnan(result_bound_s(&r, 7e9, nan, 13)));
    assert_true(isnan(result_bound_s(&r, 7e9, 0, 13)));
    r.before.moved_bytes_per_s = 1e-1;
    assert_true(result_bound_s(&r, 7e9, nan, 13) == 130);
    assert_true(result_bound_s(&r, 7e9, 0, 13) == 130);
    assert_true(isnan(result_bound_s(&r, 7e9, 1, 13)));
}

/* A move rate that was not measured is no read rate: what writes much has no prediction, what reads or computes has. */
static void unknown_move_rate(void **state)
{
    const double nan = (double)NAN;
    struct result r = {.cold = true, .before = {1e9, 10, nan, nan}, .after = {nan, nan, nan, nan}};
    (void)state;
    assert_true(result_lacks_move(&r, 0, 500, 1000));
    assert_false(result_lacks_move(&r, 0, 1000, 1029));
    assert_true(result_lacks_move(&r, 0, 1000, 1031));
    assert_false(result_lacks_move(&r, 99e9, 500, 1000)); /* 99 s, and 100 at most */
    assert_true(result_lacks_move(&r, 90e9, 500, 1000));
    r.before.moved_bytes_per_s = 12;
    assert_false(result_lacks_move(&r, 0, 500, 1000));
    r.before.moved_bytes_per_s = nan;
    r.cold = false; /* hot results are held to reading alone */
    assert_false(result_lacks_move(&r, 0, 500, 1000));
}

static void rates_of_caches_bound(void **state)
{
    struct result r = result_of(first_s, 11); /* 7e5 bytes in 7.01 us: 99.9 GB/s */
    (void)state;
    r.before.read_bytes_per_s = 9.8e10;
    r.after.read_bytes_per_s = 9.7e10;
    result_floor(&r, 1.1e11); /* within 3 % */
    assert_true(r.before.read_bytes_per_s == 9.8e10 && r.after.read_bytes_per_s == 9.7e10);
    r.before.read_bytes_per_s = 9.6e10;
    r.after.read_bytes_per_s = 9.5e10;
    result_floor(&r, 1.1e11); /* the kernel kept more of its operands in the cache than that array did */
    assert_true(r.before.read_bytes_per_s == 1.1e11 && r.after.read_bytes_per_s == 1.1e11);
    r.before.read_bytes_per_s = r.after.read_bytes_per_s = (double)NAN;
    result_floor(&r, 1.1e11); /* what could not be measured stays unknown */
    assert_true(isnan(r.before.read_bytes_per_s) && isnan(r.after.read_bytes_per_s));
}

/* Of ceilings that changed those matter which have a part in the bound: 7e5 bytes at 1e11 take 7 us. */
static void changed_ceilings(void **state)
{
    static const struct {
        double flops, peak_after, read_after;
        enum result_outcome outcome;
    } CASES[] = {
        {1e5, 0.5e12, 1e11, RESULT_MEASURED},                                         /* 0.2 us at the worst */
        {1.7e6, 0.5e12, 1e11, RESULT_MEASURED},  {1.8e6, 0.5e12, 1e11, RESULT_NOISY}, /* 3.6 us of 7 */
        {6.9e6, 0.95e12, 1e11, RESULT_MEASURED}, {6.9e6, 0.5e12, 1e11, RESULT_NOISY},
        {1e5, 1e12, 0.8e11, RESULT_NOISY}, /* what binds */
    };
    struct arena *a = *state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct result r = result_of(first_s, 11);
        const double nan = (double)NAN;
        r.cold = true;
        r.written_bytes = 0;
        r.flops = CASES[i].flops;
        r.before = (struct result_ceilings){1e12, 1e11, nan, nan};
        r.after = (struct result_ceilings){CASES[i].peak_after, CASES[i].read_after, nan, nan};
        assert_int_equal(result_judge(a, &r, NULL), ERR_OK);
        assert_int_equal(r.outcome, CASES[i].outcome);
    }
}

static void preparations_are_no_part(void **state)
{
    struct progress p = {.start_s = 100, .each_s = 1.5};
    (void)state;
    assert_near(progress_left_s(&p, 0, 40, 107), 60, 1e-12); /* nothing is done: as it is thought to be */
    p.idle_s = 13;
    assert_near(progress_left_s(&p, 4, 40, 123), 90, 1e-12); /* 10 s for 4, not 23 */
    p.most_s = 60;
    assert_near(progress_left_s(&p, 4, 40, 123), 37, 1e-12); /* the budget ends it */
    assert_near(progress_left_s(&p, 4, 40, 163), 0, 0);
    p = (struct progress){.start_s = 100};
    assert_near(progress_left_s(&p, 2, 5, 108), 12, 1e-12);
}

static int begin(void **state)
{
    *state = arena_open();
    return *state ? 0 : -1;
}

static int end(void **state)
{
    arena_close(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(spells_are_one_result, begin, end),
        cmocka_unit_test_setup_teardown(spells_of_many_samples, begin, end),
        cmocka_unit_test_setup_teardown(changed_ceilings, begin, end),
        cmocka_unit_test(unknown_rates_bound_nothing),
        cmocka_unit_test(unknown_move_rate),
        cmocka_unit_test(rates_of_caches_bound),
        cmocka_unit_test(rates_of_pieces_bound),
        cmocka_unit_test(preparations_are_no_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
