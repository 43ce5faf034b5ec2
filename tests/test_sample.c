/* sample: medians, spreads and stopping on series whose answers are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "kernels/kernel.h"
#include "probe/sample.h"

static void assert_near(double got, double wanted, double off) { assert_true(fabs(got - wanted) <= off); }

static void ranks_by_hand(void **state)
{
    (void)state;
    /* sorted: 2 3 5 7 11 13 17: median 7, quartiles between: at 1.5 and 4.5 of 0..6: 4 and 12; deviations from 7 are
     * 5 4 2 0 4 6 10, sorted 0 2 4 4 5 6 10: median 4; halves of three: 13 2 7 -> 7, 17 11 5 -> 11 */
    const double t[] = {13, 2, 7, 3, 17, 11, 5};
    double room[7];
    const struct sample_summary s = sample_summarise(t, 7, room);
    assert_int_equal(s.n, 7);
    assert_near(s.median_s, 7, 1e-12);
    assert_near(s.q1_s, 4, 1e-12);
    assert_near(s.q3_s, 12, 1e-12);
    assert_near(s.least_s, 2, 0);
    assert_near(s.most_s, 17, 0);
    assert_near(s.spread_frac, 1.4826 * 4 / 7, 1e-12);
    /* signs about 7: + - 0 - + + -, six that count; products of lags 0 and 1 sum to 6 - 2, of lags 2 and 3 to -1 - 1:
     * 2 * 4/6 - 1 is less than one, so each counts. Parts 1/2 -+ 1/sqrt(7) are at 0.73 and 5.27 of 0..6 */
    const double off = 6 / sqrt(7.0);
    assert_near(s.like, 1, 0);
    assert_near(s.error_frac, (13 + 4 * (off - 2) - 7) / (2 * 7), 1e-12);
    assert_near(s.drift_frac, 4.0 / 7, 1e-12);
    const double even[] = {3, 1, 4, 2};
    assert_near(sample_summarise(even, 4, room).median_s, 2.5, 1e-12);
    assert_true(isnan(sample_summarise(t, 0, room).median_s));
    assert_true(isnan(sample_summarise(t, 1, room).drift_frac));
}

/* The factor of the spread makes it the standard deviation of normals, and the error that of their median. */
static void spread_of_normals(void **state)
{
    enum { N = 4001, TRIALS = 400, EACH = 101 };
    static double t[N], room[N], median[TRIALS];
    (void)state;
    for (size_t i = 0; i < N; i++) t[i] = 1 + 0.03 * kern_normal(11, i);
    const struct sample_summary s = sample_summarise(t, N, room);
    assert_near(s.spread_frac, 0.03, 0.0012);
    assert_near(s.median_s, 1, 0.0025);
    double square = 0, claimed = 0;
    size_t held = 0;
    for (size_t k = 0; k < TRIALS; k++) {
        for (size_t i = 0; i < EACH; i++) t[i] = 1 + 0.03 * kern_normal(13 + k, i);
        const struct sample_summary one = sample_summarise(t, EACH, room);
        median[k] = one.median_s;
        held += fabs(one.median_s - 1) < 2 * one.error_frac * one.median_s;
        claimed += one.error_frac / TRIALS;
        square += (median[k] - 1) * (median[k] - 1) / TRIALS;
    }
    /* the farther end of the interval is a third beyond its half: the standard error, and no more than that */
    assert_in_range((long)(100 * sqrt(square) / claimed), 70, 100);
    assert_in_range(100 * held / TRIALS, 94, 100);
}

/* How often two errors of a median hold the true one, in hundredths, of series that make() gives; the same for errors
 * of samples that are taken as independent, 1.2533 * spread / sqrt(n), and the mean of what counts as one sample. */
struct held {
    size_t dependent, independent;
    double like;
};

static struct held hold(void (*make)(double *t, size_t n, uint64_t seed), size_t n, double truth)
{
    enum { TRIALS = 400 };
    static double t[SAMPLE_MAX], room[SAMPLE_MAX];
    struct held h = {0, 0, 0};
    for (uint64_t k = 0; k < TRIALS; k++) {
        make(t, n, 1000 + k);
        const struct sample_summary s = sample_summarise(t, n, room);
        const double off = fabs(s.median_s - truth) / s.median_s;
        h.dependent += off < 2 * s.error_frac;
        h.independent += off < 2 * 1.2533 * s.spread_frac / sqrt((double)n);
        h.like += s.like / TRIALS;
    }
    h.dependent = 100 * h.dependent / TRIALS;
    h.independent = 100 * h.independent / TRIALS;
    return h;
}

/* Each sample keeps 0.8 of what disturbed the one before. */
static void make_following(double *t, size_t n, uint64_t seed)
{
    double x = kern_normal(seed, n);
    for (size_t i = 0; i < n; i++) {
        x = 0.8 * x + 0.6 * kern_normal(seed, i);
        t[i] = 1 + 0.03 * x;
    }
}

/* Two speeds a fifth apart, each for twenty samples on average. */
static void make_two_speeds(double *t, size_t n, uint64_t seed)
{
    bool slow = kern_hash(seed, n) & 1;
    for (size_t i = 0; i < n; i++) {
        slow ^= kern_hash(seed + 77, i) % 20 == 0;
        t[i] = 1 + (slow ? 0.1 : -0.1) + 0.01 * kern_normal(seed, i);
    }
}

static void samples_that_follow_one_another(void **state)
{
    (void)state;
    /* signs of normals of correlation r agree by 2/pi * asin(r) */
    double like = 1;
    for (int lag = 1; lag < 60; lag++) like += 2 * 2 / 3.14159265358979 * asin(pow(0.8, lag));
    struct held h = hold(make_following, 400, 1);
    assert_near(h.like / like, 1, 0.15);
    assert_in_range(h.dependent, 92, 99);
    assert_in_range(h.independent, 40, 75);
    h = hold(make_following, 60, 1);
    assert_in_range(h.dependent, 86, 99);
    h = hold(make_two_speeds, 400, 1);
    assert_in_range(h.dependent, 75, 100);
    assert_in_range(h.independent, 0, 30);
    /* all of a series of one speed and then another say no more than a few samples */
    double t[100], room[100];
    for (size_t i = 0; i < 100; i++) t[i] = i < 50 ? 1 : 1.03;
    const struct sample_summary s = sample_summarise(t, 100, room);
    assert_true(s.like > 20 && s.error_frac > 0.007);
    assert_non_null(sample_doubt(&(struct sample_summary){.n = 100, .error_frac = 0.0201, .drift_frac = 0}));
}

static void outliers_do_not_move_it(void **state)
{
    enum { N = 101 };
    double t[N], room[N];
    (void)state;
    for (size_t i = 0; i < N; i++) t[i] = 1e-3 * (1 + 0.001 * kern_normal(17, i));
    for (size_t i = 0; i < N; i += 9) t[i] *= 50;
    const struct sample_summary s = sample_summarise(t, N, room);
    assert_near(s.median_s / 1e-3, 1, 0.001);
    assert_true(s.spread_frac < 0.002);
    assert_null(sample_doubt(&s));
}

static void stopping(void **state)
{
    enum { N = SAMPLE_MAX };
    static double t[N], room[N];
    const struct sample_rule rule = {10, 0.005, 2};
    (void)state;
    for (size_t i = 0; i < N; i++) t[i] = 1e-3 * (1 + 0.0005 * kern_normal(19, i));
    assert_int_equal(sample_decide(&rule, t, 9, 0.1, room), SAMPLE_GOING);
    assert_int_equal(sample_decide(&rule, t, 10, 0.1, room), SAMPLE_QUIET);
    assert_int_equal(sample_decide(&rule, t, 3, 2.1, room), SAMPLE_DEADLINE);
    /* a spread of 4 % never becomes quiet: enough when the median is known to half a percent, n = (1.2533*4/0.5)^2 =
     * 101 or some more, since the interval's farther end counts, and the spread has settled */
    for (size_t i = 0; i < N; i++) t[i] = 1e-3 * (1 + 0.04 * kern_normal(23, i));
    assert_int_equal(sample_decide(&rule, t, 40, 0.1, room), SAMPLE_GOING);
    size_t n = 40;
    while (n < N && sample_decide(&rule, t, n, 0.1, room) == SAMPLE_GOING) n++;
    assert_int_equal(sample_decide(&rule, t, n, 0.1, room), SAMPLE_PLATEAU);
    assert_in_range(n, 70, 300);
    /* nor does a median that slow moments of forty samples move count as known, as it would of independent samples */
    for (size_t i = 0; i < N; i++) t[i] = 1e-3 * (1 + 0.01 * kern_normal(23, i) + (i / 40 % 3 == 0 ? 0.05 : 0));
    for (n = 120; n < 400; n += 40) {
        const struct sample_summary s = sample_summarise(t, n, room);
        assert_true(1.2533 * s.spread_frac / sqrt((double)n) < 0.005 && s.error_frac > 0.005);
        assert_int_equal(sample_decide(&rule, t, n, 0.1, room), SAMPLE_GOING);
    }
    /* a spread that keeps growing is no plateau */
    for (size_t i = 0; i < N; i++) t[i] = 1e-3 * (1 + 1e-4 * (double)i * (double)(i % 2));
    for (n = 64; n < 400; n++) assert_int_not_equal(sample_decide(&rule, t, n, 0.1, room), SAMPLE_PLATEAU);
    for (size_t i = 0; i < N; i++) t[i] = 1e-3 * (1 + 0.9 * (double)(i % 2));
    assert_int_equal(sample_decide(&rule, t, N, 0.1, room), SAMPLE_FULL);
}

static void doubts(void **state)
{
    enum { N = 60 };
    double t[N], room[N];
    (void)state;
    for (size_t i = 0; i < N; i++) t[i] = 1e-3;
    struct sample_summary s = sample_summarise(t, 9, room);
    assert_non_null(sample_doubt(&s));
    s = sample_summarise(t, 10, room);
    assert_null(sample_doubt(&s));
    for (size_t i = 0; i < N; i++) t[i] = i < N / 2 ? 1e-3 : 1.07e-3; /* the clock fell */
    s = sample_summarise(t, N, room);
    assert_non_null(sample_doubt(&s));
    for (size_t i = 0; i < N; i++) t[i] = 1e-3 * (1 + 0.8 * (double)(i * 7 % 11) / 11); /* spread over 40 % */
    s = sample_summarise(t, N, room);
    assert_non_null(sample_doubt(&s));
    s = sample_summarise(t, 0, room);
    assert_non_null(sample_doubt(&s));
}

static void names(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLE_STOPS_N; i++) {
        enum sample_stop back = SAMPLE_STOPS_N;
        assert_true(sample_stop_find(sample_stop_name((enum sample_stop)i), &back));
        assert_int_equal(back, i);
    }
    enum sample_stop none;
    assert_false(sample_stop_find("calm", &none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_by_hand),
        cmocka_unit_test(spread_of_normals),
        cmocka_unit_test(samples_that_follow_one_another),
        cmocka_unit_test(outliers_do_not_move_it),
        cmocka_unit_test(stopping),
        cmocka_unit_test(doubts),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
