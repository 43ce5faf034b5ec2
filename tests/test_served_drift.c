/* Drift of servers' errors: what pools families' slopes and Holm's p against counts by hand, sets of rows, and by
 * drawn tables how often a table without drift is said to have one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

#include "calc/serve/served.h"

static void near(double got, double want) { assert_true(fabs(got - want) <= 1e-9 * fmax(1, fabs(want))); }

/* Two groups of two families, all variances 1: weighted squares 2 + 8 of 2 degrees, so that the spread is
 * (10 - 2)/2 = 4, weights 1/5, squares again (2 + 8)/5 = 2, and the factor 1. */
static void test_pool_by_hand(void **state)
{
    (void)state;
    const struct served_slope two[] = {{0, -1, 1}, {0, 1, 1}, {2, 4, 1}, {2, 8, 1}};
    double mean[3], se[3], degrees;
    served_pool(two, 4, 3, mean, se, &degrees);
    near(mean[0], 0);
    near(mean[2], 6);
    near(se[0], sqrt(2.5));
    near(se[2], sqrt(2.5));
    near(degrees, 2);
    assert_true(isnan(mean[1]) && isnan(se[1]));
    /* Variances 1 and 2: mean 1, squares 1 + 0.5*4 = 3; spread (3 - 1)/(1.5 - 1.25/1.5) = 3; weights 1/4 and 1/5; mean
     * 0.6/0.45, squares 16/36 + 20/36 = 1. */
    const struct served_slope uneven[] = {{0, 0, 1}, {0, 3, 2}};
    served_pool(uneven, 2, 1, mean, se, &degrees);
    near(mean[0], 4.0 / 3);
    near(se[0], 1 / sqrt(0.45));
    near(degrees, 1);
    assert_true(fabs(mean[0] - 1.5) > 0.1); /* not the mean of the two */
    /* Families nearer to each other than their variances: no spread, and no interval below what rows drawn make. */
    const struct served_slope alike[] = {{0, -0.1, 1}, {0, 0.1, 1}, {1, 7, 1}};
    served_pool(alike, 3, 2, mean, se, &degrees);
    near(se[0], sqrt(0.5));
    near(se[1], 1); /* one family has the spread of the others */
    near(mean[1], 7);
    served_pool(alike + 2, 1, 2, mean, se, &degrees);
    assert_true(isnan(mean[0]) && isnan(se[1]) && !(degrees > 0));
    near(mean[1], 7);
}

static void test_holm_by_hand(void **state)
{
    (void)state;
    const double p[] = {0.01, 0.04, (double)NAN, 0.03, 0.005, 0.9};
    double out[6];
    served_holm(p, 6, out);
    near(out[4], 5 * 0.005);
    near(out[0], 4 * 0.01);
    near(out[3], 3 * 0.03);
    near(out[1], 3 * 0.03); /* not below one that is smaller */
    near(out[5], 0.9);
    assert_true(isnan(out[2]));
}

/* One family, two sets: ln errors 0, 2, 4 % at 1, 2, 4 clients and 0, 12 % at 8, 16 with other prompts. Sums of
 * squares 2 and 0.5, of products 4 and 6 %: 10/2.5 = 4 %, where the mean of the sets' slopes is 7. A row that repeats
 * one counts with it as one. */
static void test_sets_by_hand(void **state)
{
    (void)state;
    static const struct {
        double clients, prompt, percent;
        size_t family;
    } AT[] = {{1, 100, 0, 0},   {2, 100, 2, 0},   {4, 100, 4, 0}, {8, 700, 0, 0},
              {16, 700, 13, 0}, {16, 700, 11, 0}, {1, 100, 0, 1}, {2, 100, 4, 1}};
    enum { N = sizeof AT / sizeof *AT };
    struct served_row row[N];
    struct served s = {.row = row, .n = N, .families_n = 2};
    struct arena *a = arena_open();
    struct served_group g[] = {{.engine = "mine", .kind = "dense"}, {.engine = "mine", .kind = "all"}};
    struct err e;
    for (size_t i = 0; i < N; i++)
        row[i] = (struct served_row){.engine = "mine",
                                     .kind = "dense",
                                     .version = "",
                                     .model = "m",
                                     .device = "d",
                                     .weights = "w",
                                     .tp = 2,
                                     .attention_dp = 3,
                                     .ep = 1,
                                     .family = AT[i].family,
                                     .prompt_tokens = AT[i].prompt,
                                     .output_tokens = 9,
                                     .clients = AT[i].clients,
                                     .tpot_s = 0.02,
                                     .predicted_s = 0.02 * exp(AT[i].percent / 100)};
    near(served_ranks(&row[0]), 6);
    assert_int_equal(served_drifts(a, &s, g, 2, &e), ERR_OK);
    assert_int_equal(g[0].drift_clients.sets, 3);
    assert_int_equal(g[0].drift_clients.models, 2);
    near(g[0].drift_clients.mean, 0.04); /* both families' */
    near(g[0].drift_clients.median, 0.04);
    /* of the first family 8 + 72 - 10*10/2.5 = 40 %^2 about its line and 3 - 1 degrees, the second has none of either
     */
    const double v = 40e-4 / 2, weight = 2.5 / v + 0.5 / v;
    near(g[0].drift_clients.half, gsl_cdf_tdist_Pinv(0.975, 1) / sqrt(weight));
    assert_true(isnan(g[1].drift_clients.mean) && g[1].drift_clients.sets == 3); /* counted once in the spread */
    assert_true(g[0].drift_tp.sets == 0 && isnan(g[0].drift_tp.mean) && isnan(g[0].drift_tp.p));
    arena_close(a);
}

/* Tables like the published one: six groups over clients, five over ranks, some of one family. */
static const struct {
    size_t axis, group;
    double information, row_error; /* squared doublings about the means of sets; of a row */
} FAMILY[] = {{0, 0, 43, 0.028},  {0, 1, 26, 0.038},  {0, 1, 11, 0.038}, {0, 1, 5.5, 0.038}, {0, 2, 175, 0.061},
              {0, 2, 149, 0.061}, {0, 2, 52, 0.061},  {0, 3, 47, 0.055}, {0, 3, 95, 0.055},  {0, 3, 69, 0.055},
              {0, 4, 77, 0.037},  {0, 4, 100, 0.037}, {0, 5, 85, 0.16},  {0, 5, 82, 0.16},   {0, 5, 22, 0.16},
              {1, 0, 20, 0.021},  {1, 2, 78, 0.06},   {1, 2, 66, 0.06},  {1, 2, 20, 0.06},   {1, 3, 4, 0.047},
              {1, 3, 15, 0.047},  {1, 4, 17, 0.032},  {1, 4, 45, 0.032}, {1, 5, 24, 0.02}};
enum { FAMILIES = sizeof FAMILY / sizeof *FAMILY, GROUPS = 6 };

/* Whether some slope is called a drift, by Holm's p; rows: by intervals as if rows were drawn, not families; one: that
 * of group 1 over clients, which has a drift. */
static void draw_table(gsl_rng *r, double spread, double drift, bool *some, bool *rows, bool *one)
{
    double p[2 * GROUPS], holm[2 * GROUPS];
    *rows = false;
    for (size_t axis = 0; axis < 2; axis++) {
        struct served_slope slope[FAMILIES];
        double mean[GROUPS], se[GROUPS], degrees, weight[GROUPS] = {0}, sum[GROUPS] = {0};
        size_t n = 0;
        for (size_t i = 0; i < FAMILIES; i++) {
            const double variance = FAMILY[i].row_error * FAMILY[i].row_error / FAMILY[i].information;
            const double b =
                (FAMILY[i].group == 1 ? drift : 0) + gsl_ran_gaussian(r, spread) + gsl_ran_gaussian(r, sqrt(variance));
            if (FAMILY[i].axis != axis) continue;
            slope[n++] = (struct served_slope){FAMILY[i].group, b, variance};
            weight[FAMILY[i].group] += 1 / variance;
            sum[FAMILY[i].group] += b / variance;
        }
        served_pool(slope, n, GROUPS, mean, se, &degrees);
        for (size_t k = 0; k < GROUPS; k++) {
            p[axis * GROUPS + k] = 2 * gsl_cdf_tdist_Q(fabs(mean[k] / se[k]), degrees);
            *rows = *rows || fabs(sum[k]) > 1.96 * sqrt(weight[k]);
        }
    }
    served_holm(p, 2 * GROUPS, holm);
    *some = false;
    for (size_t k = 0; k < 2 * GROUPS; k++) *some = *some || holm[k] < 0.05;
    *one = holm[1] < 0.05;
}

/* Of tables without drift about one in twenty is said to have one, whatever families differ by; were rows what is
 * drawn it would be most. A drift of 6 % a doubling is found. */
static void test_size(void **state)
{
    (void)state;
    static const double SPREAD[] = {0, 0.005, 0.01, 0.015, 0.03};
    enum { TABLES = 2000 };
    gsl_rng *r = gsl_rng_alloc(gsl_rng_mt19937);
    assert_non_null(r);
    for (size_t i = 0; i < sizeof SPREAD / sizeof *SPREAD; i++) {
        size_t some_n = 0, rows_n = 0, one_n = 0;
        for (size_t k = 0; k < TABLES; k++) {
            bool some, rows, one;
            draw_table(r, SPREAD[i], 0, &some, &rows, &one);
            some_n += some;
            rows_n += rows;
            draw_table(r, SPREAD[i], -0.06, &some, &rows, &one);
            one_n += one;
        }
        print_message(
            "  families differ by %.1f %%: a drift where none is in %.1f %% of tables (rows drawn: %.0f), 6 %% "
            "found in %.0f\n",
            100 * SPREAD[i], 100.0 * (double)some_n / TABLES, 100.0 * (double)rows_n / TABLES,
            100.0 * (double)one_n / TABLES);
        assert_true(some_n < TABLES * 9 / 100);
        assert_true(i < 2 || rows_n > TABLES * 8 / 10);
        assert_true(i > 3 || one_n > TABLES * 7 / 10);
    }
    gsl_rng_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pool_by_hand), cmocka_unit_test(test_holm_by_hand),
                                       cmocka_unit_test(test_sets_by_hand), cmocka_unit_test(test_size)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
