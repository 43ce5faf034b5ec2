/* Distributions that stand for a trace: those that it was drawn from, and what the public ones are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "calc/serve/describe.h"
#include "tests/csv.h"

static struct describe drawn(struct arena *a, const char *prompt, const char *output, const char *arrivals, double rate,
                             int64_t n)
{
    struct workload w;
    struct describe d = {.n = 0};
    struct err e = {0};
    struct workload_spec s = {.rate_per_s = rate, .requests = n, .turns = 1, .samples = 1, .seed = 41};
    if (workload_length_parse(a, prompt, &s.prompt, &e) != ERR_OK ||
        workload_length_parse(a, output, &s.output, &e) != ERR_OK ||
        workload_arrival_parse(arrivals, &s, &e) != ERR_OK || workload_make(a, &s, &w, &e) != ERR_OK ||
        describe_work(a, &w, &d, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return d;
}

static const struct describe_fit *chosen(const struct describe_lengths *l)
{
    const struct describe_fit *f = NULL;
    for (size_t i = 0; i < DESCRIBE_FITS; i++) {
        if (!l->fit[i].chosen) continue;
        assert_null(f);
        f = &l->fit[i];
    }
    assert_non_null(f);
    return f;
}

static void near_to(double found, double wanted, double within, const char *what)
{
    if (!(fabs(found - wanted) <= within * fabs(wanted))) fail_msg("%s: %.6g, wanted %.6g", what, found, wanted);
}

/* What was drawn is found: its family, its parameters, and a distance that a sample of its size has (1.63/sqrt(n) in
 * one of a hundred, and less where parameters are fitted). Others are further off. */
static void test_drawn(void **state)
{
    (void)state;
    enum { N = 20011 };
    static const struct {
        const char *text, *name;
        double mean, cv, alpha;
    } CASES[] = {{"lognormal:1153,1.37", "lognormal", 1153, 1.37, 0},
                 {"gamma:811,0.61", "gamma", 811, .61, 0},
                 {"exponential:409", "exponential", 409, 1, 0},
                 {"pareto:701,2.7", "pareto", 701, 0, 2.7}};
    struct arena *a = arena_open();
    for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; c++) {
        const struct describe d = drawn(a, "200", CASES[c].text, "poisson", 7, N);
        const struct describe_fit *f = chosen(&d.output);
        struct workload_length again;
        struct err e = {0};
        assert_string_equal(f->name, CASES[c].name);
        near_to(f->mean, CASES[c].mean, .03, CASES[c].name);
        if (CASES[c].alpha > 0)
            near_to(f->alpha, CASES[c].alpha, .03, "alpha");
        else
            near_to(f->cv, CASES[c].cv, .04, "cv");
        assert_true(f->distance < 1.63 / sqrt(N));
        for (size_t i = 0; i < DESCRIBE_FITS; i++)
            if (&d.output.fit[i] != f && strcmp(CASES[c].name, "exponential") != 0)
                assert_true(isnan(d.output.fit[i].distance) || d.output.fit[i].distance > 2 * f->distance);
        assert_int_equal(workload_length_parse(a, f->text, &again, &e), ERR_OK);
        near_to(workload_length_mean(&again), f->mean, 1e-4, "read again");
        assert_int_equal(again.most, d.output.most);
        assert_string_equal(chosen(&d.prompt)->text, "200");
        assert_string_equal(d.arrivals.text, "poisson");
        near_to(d.arrivals.rate_per_s, 7, .03, "rate");
        assert_true(d.arrivals.poisson_distance < 1.63 / sqrt(N));
    }
    arena_close(a);
}

/* Gaps: a gamma distribution's CV; the dispersion of a renewal process is its squared CV in long windows (Cox), of a
 * Poisson one 1; of bursts it grows with the window; a day's swing. */
static void test_arrivals(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct describe g = drawn(a, "200", "50", "gamma:2.3", 11, 40009);
    near_to(g.arrivals.gamma_cv, 2.3, .03, "gamma");
    near_to(g.arrivals.cv, 2.3, .06, "moments");
    near_to(g.arrivals.dispersion[1], 2.3 * 2.3, .2, "dispersion");
    assert_true(g.arrivals.distance < 1.63 / sqrt(40008) && g.arrivals.poisson_distance > 10 * g.arrivals.distance);
    assert_true(strncmp(g.arrivals.text, "gamma:2.", 8) == 0 && isnan(g.arrivals.swing_frac));
    const struct describe p = drawn(a, "200", "50", "poisson", 11, 40009);
    near_to(p.arrivals.dispersion[0], 1, .1, "Poisson");
    const struct describe b = drawn(a, "200", "50", "bursty:7,30", 11, 40009);
    assert_true(b.arrivals.dispersion[2] > 2 * b.arrivals.dispersion[1] && b.arrivals.dispersion[0] > 1.5);
    const struct describe s = drawn(a, "200", "50", "diurnal:0.6,86400", .2, 60013);
    near_to(s.arrivals.swing_frac, .6, .05, "swing");
    assert_true(strncmp(s.arrivals.text, "diurnal:0.", 10) == 0);
    arena_close(a);
}

/* By hand: lengths 1, 2, 2, 4 of an exponential distribution of mean 7/4. */
static void test_by_hand(void **state)
{
    (void)state;
    static const char TRACE[] = "arrival_s,prompt_tokens,output_tokens\n0,1,3\n1,2,3\n1,2,3\n5,4,3\n";
    struct arena *a = arena_open();
    struct workload w;
    struct describe d;
    struct err e = {0};
    assert_int_equal(workload_read_text(a, "t", TRACE, sizeof TRACE - 1, &w, &e), ERR_OK);
    assert_int_equal(describe_work(a, &w, &d, &e), ERR_OK);
    const struct describe_fit *f = &d.prompt.fit[2];
    assert_string_equal(f->name, "exponential");
    near_to(f->mean, 1.75, 1e-12, "mean");
    const double q = exp(-1 / 1.75), F1 = 1 - q, F2 = 1 - q * q, F3 = 1 - q * q * q, F4 = 1 - q * q * q * q;
    near_to(f->log_likelihood, (log(F1) + 2 * log(F2 - F1) + log(F4 - F3)) / 4, 1e-12, "likelihood");
    near_to(f->distance, fmax(fmax(fabs(F1 - .25), fabs(F2 - .75)), fmax(fabs(F3 - .75), fabs(1 - F4))), 1e-12, "KS");
    near_to(d.prompt.mean, 2.25, 1e-12, "plain mean");
    assert_true(d.arrivals.ties);
    near_to(d.arrivals.rate_per_s, 3. / 5, 1e-12, "rate"); /* gaps 1, 0, 4: variance 26/9 */
    near_to(d.arrivals.cv, sqrt(26. / 9) / (5. / 3), 1e-12, "cv");
    near_to(d.arrivals.gamma_cv, d.arrivals.cv, 1e-12, "by moments");
    arena_close(a);
}

static void test_public(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct workload w;
    struct describe d;
    struct err e = {0};
    if (workload_read(a, csv_shared(a, "serving/traces/azure2023_conv.csv"), &w, &e) != ERR_OK) {
        arena_close(a);
        skip();
    }
    assert_int_equal(describe_work(a, &w, &d, &e), ERR_OK);
    assert_int_equal(d.n, 19366);
    near_to(d.prompt.mean, 1154.70, 1e-5, "prompts"); /* its publishers' notes */
    near_to(d.output.mean, 211.13, 1e-4, "answers");
    near_to(d.prompt.p50, 1020, 1e-9, "median");
    assert_true(d.arrivals.dispersion[2] > 1 && chosen(&d.output)->distance < .25);
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_drawn), cmocka_unit_test(test_arrivals),
                                       cmocka_unit_test(test_by_hand), cmocka_unit_test(test_public)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
