/* Exercises: draws, and the grading of formulas, numbers and words. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/exercises.h"

static void test_draws(void **state)
{
    (void)state;
    struct exercise_maker m = {.rng = 0};
    /* the first two of splitmix64 from 0: published with the reference code, https://prng.di.unimi.it/splitmix64.c */
    assert_true((uint64_t)bank_draw(&m, INT64_MIN, INT64_MAX) == UINT64_C(0xe220a8397b1dcdaf));
    assert_true((uint64_t)bank_draw(&m, INT64_MIN, INT64_MAX) == UINT64_C(0x6e789e6aa1b965f4));
    int seen[7] = {0};
    for (int i = 0; i < 7000; i++) {
        const int64_t x = bank_draw(&m, -3, 3);
        assert_in_range(x + 3, 0, 6);
        seen[x + 3]++;
    }
    for (size_t i = 0; i < 7; i++) assert_in_range(seen[i], 850, 1150); /* 1000 +- 5 sigma */
    assert_int_equal(bank_draw(&m, 41, 41), 41);
    static const int64_t OF[] = {7, 11, 13};
    for (int i = 0; i < 50; i++) {
        const int64_t x = bank_pick(&m, 3, OF);
        assert_true(x == 7 || x == 11 || x == 13);
    }
    /* FNV-1a of "ada", NUL and the class's seed in eight bytes, low ones first; by hand from the definition */
    assert_true(exercise_student_seed(1, "ada") != exercise_student_seed(2, "ada"));
    assert_true(exercise_student_seed(1, "ada") != exercise_student_seed(1, "bob"));
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    static const uint8_t BYTES[] = {'a', 'd', 'a', 0, 1, 0, 0, 0, 0, 0, 0, 0};
    for (size_t i = 0; i < sizeof BYTES; i++) h = (h ^ BYTES[i]) * UINT64_C(0x100000001b3); /* not a unit */
    assert_true(exercise_student_seed(1, "ada") == (int64_t)(h >> 11));
}

/* A slip that the draw makes equal to the answer or to an earlier one is left out. */
static enum err_code make_coinciding(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    (void)e;
    *q = (struct exercise_question){.kind = EXERCISE_NUMBER,
                                    .text = "how many",
                                    .form = "a count",
                                    .value = 17,
                                    .unit = UNITS_COUNT,
                                    .tolerance_frac = 0.01};
    bank_slip(q, 17.1, "the answer");
    bank_slip(q, 34, "first");
    bank_slip(q, 34.2, "the same");
    bank_slip(q, 34, "first");
    bank_slip(q, 33.9, "a third");
    bank_slip(q, (double)NAN, "not a number");
    bank_slip(q, 51, "second");
    for (int i = 0; i < 20; i++) bank_step(q, "step");
    (void)m;
    return ERR_OK;
}

static void test_coinciding(void **state)
{
    (void)state;
    struct fixture f = begin();
    struct err e;
    struct exercise_question q = {.text = NULL};
    const struct exercise x = {.name = "x", .make = make_coinciding};
    assert_int_equal(exercise_ask(f.a, f.c, &x, 3, &q, &e), ERR_OK);
    assert_int_equal(q.slips_n, 2);
    assert_string_equal(q.slips[0].hint, "Either: first Or: the same Or: a third");
    assert_string_equal(q.slips[1].hint, "second");
    assert_int_equal(q.steps_n, EXERCISE_STEPS_MAX);
    end(&f);
}

static void test_times(void **state)
{
    (void)state;
    struct fixture f = begin();
    struct exercise_question q = number(UNITS_SECONDS, 0.0079, 0.01);
    bank_slip(&q, 0.0237, "three of them");
    static const char *const RIGHT[] = {
        "7.9 ms",           "0.0079 s",  "7900 us", "7,900 us",    "7900\xC2\xB5s", "7900 \xCE\xBCs",     "7.9e-3s",
        "7.9 milliseconds", "t = 7.9ms", "~7.9 ms", "7.9*10^-3 s", "7.9 x 10^-3 s", "7.9\303\22710^-3 s", "7.9e6 ns",
        "0.0001317 min",    "7.9 msec",  "7.93 ms", "79/10 ms",    "7.9 ms."};
    for (size_t i = 0; i < sizeof RIGHT / sizeof RIGHT[0]; i++) assert_right(&f, "time", &q, RIGHT[i]);
    assert_hint(&f, &q, "7.9", "a time (s, ms, us) was asked: give the unit");
    assert_hint(&f, &q, "7.9 GB", "a time (s, ms, us) was asked; this is a number of bytes");
    assert_hint(&f, &q, "7.9 tok/s", "this is tokens per second");
    assert_hint(&f, &q, "7.9 parsec", "'parsec' is not known");
    assert_hint(&f, &q, "7.9 MS", "'MS' is not known");
    assert_hint(&f, &q, "7.9 s", "factor of 1000");
    assert_hint(&f, &q, "7.9 us", "factor of 1000");
    assert_hint(&f, &q, "7.9 ns", "million");
    assert_hint(&f, &q, "15.8 ms", "constant factor: a 2");
    assert_hint(&f, &q, "126.4 ms", "constant factor: a power of 2");
    assert_right(&f, "time", &q, "26.5/3.35 = 7.91 ms");
    assert_right(&f, "time", &q, "26.5e9/3.35e12 = 7.91 ms");
    assert_right(&f, "time", &q, "t \xE2\x89\x88 7.91 ms");
    assert_right(&f, "time", &q, "\xE2\x89\x88 7.91 ms");
    assert_right(&f, "time", &q, "0.0079 s = 7.9 ms");
    assert_right(&f, "time", &q, "$t \\approx 7.9\\,\\text{ms}$");
    assert_right(&f, "time", &q, "7.9 \\times 10^{-3}\\,\\mathrm{s}");
    assert_right(&f, "time", &q, "7.9 ms per step");
    assert_right(&f, "time", &q, "7.9 ms/step");
    assert_hint(&f, &q, "8.5 ms = 7.9 ms", "not equal");
    assert_hint(&f, &q, "7.9 s = 7.9 ms = 7.9 GB", "this is a number of bytes");
    assert_hint(&f, &q, "26.5 GB/3.35 TB/s = 7.91 ms", "in front of '='");
    assert_hint(&f, &q, "= 7.9 ms", "in front of '='");
    assert_hint(&f, &q, "23.7 ms", "three of them");
    assert_hint(&f, &q, "8 ms", "rounded too early");
    assert_hint(&f, &q, "12 ms", "too large");
    assert_hint(&f, &q, "5 ms", "too small");
    assert_hint(&f, &q, "-7.9 ms", "below zero");
    assert_hint(&f, &q, "7,9 ms", "a comma groups thousands");
    assert_hint(&f, &q, "ms", "finite number");
    assert_string_equal(grade(&f, &q, "7900 us").given, "0.0079 s");
    end(&f);
}

static void test_bytes_and_counts(void **state)
{
    (void)state;
    struct fixture f = begin();
    const struct exercise_question bytes = number(UNITS_BYTES, 12.5 * 0x1p30, 0.005);
    assert_right(&f, "bytes", &bytes, "12.5 GiB");
    assert_right(&f, "bytes", &bytes, "13.42 GB");
    assert_right(&f, "bytes", &bytes, "12,800 MiB");
    assert_right(&f, "bytes", &bytes, "13,421,772,800 bytes");
    assert_right(&f, "bytes", &bytes, "107.4 Gbit");
    assert_hint(&f, &bytes, "12.5 GB", "ratio of GiB");
    assert_hint(&f, &bytes, "13.42 GiB", "ratio of GiB");
    assert_hint(&f, &bytes, "13.42 Gb", "bits for bytes");
    assert_hint(&f, &bytes, "107.4 GB", "bits for bytes");
    assert_hint(&f, &bytes, "13.42 G", "'G' is not known");
    assert_hint(&f, &bytes, "13421772800", "give the unit");

    struct exercise_question count = number(UNITS_COUNT, 13015449600, 0);
    count.things = "parameter,param";
    assert_right(&f, "count", &count, "13,015,449,600");
    assert_right(&f, "count", &count, "13015449600");
    assert_right(&f, "count", &count, "13.0154496B");
    assert_right(&f, "count", &count, "13.0154496 billion parameters");
    assert_right(&f, "count", &count, "13015.4496 M");
    assert_right(&f, "count", &count, "1.30154496e10");
    assert_hint(&f, &count, "13.02B", "give all digits");
    assert_hint(&f, &count, "13,015,449,601", "give all digits");
    assert_right(&f, "count", &count, "13,015,449,600 parameters");
    assert_right(&f, "count", &count, "13.0154496 Gparams");
    assert_right(&f, "count", &count, "13.0154496G");
    assert_right(&f, "count", &count, "13015.4496 Mparam");
    assert_hint(&f, &count, "13,015,449,600 potatoes", "'potatoes' is not known; a count (of parameters) was asked");
    assert_hint(&f, &count, "13,015,449,600 tokens", "'tokens' is not known");
    assert_hint(&f, &count, "13.0154496 GB", "a count (of parameters) was asked; this is a number of bytes");
    assert_hint(&f, &count, "26,030,899,200", "constant factor");
    assert_hint(&f, &count, "13,0154,49600", "a comma groups thousands");
    assert_right(&f, "count", &count, "13 015 449 600");
    assert_right(&f, "count", &count, "13_015_449_600 parameters");
    assert_hint(&f, &count, "13 0154 49600", "without an operator");
    assert_hint(&f, &count, "13 015 449 60", "without an operator");
    assert_hint(&f, &count, "13.015,449", "a comma groups thousands");

    const struct exercise_question part = number(UNITS_FRAC, 0.43, 0.01);
    assert_right(&f, "part", &part, "43%");
    assert_right(&f, "part", &part, "0.43");
    assert_hint(&f, &part, "43", "factor of 100");
    assert_hint(&f, &part, "0.43%", "factor of 100");
    const struct exercise_question ridge = number(UNITS_FLOPS_PER_BYTE, 989 / 3.35, 0.01);
    assert_right(&f, "ridge", &ridge, "989e12/3.35e12");
    assert_right(&f, "ridge", &ridge, "295");
    assert_right(&f, "ridge", &ridge, "I = 295 flops per byte");
    assert_right(&f, "ridge", &ridge, "989/3.35 = 295.2 flop/byte");
    assert_hint(&f, &ridge, "302", "rounded too early");
    assert_hint(&f, &ridge, "317", "too large");   /* 1.074 times: no GiB in flops per byte */
    assert_hint(&f, &ridge, "303.1", "too early"); /* 1.027 */
    assert_hint(&f, &ridge, "590.4", "constant factor");
    assert_right(&f, "part", &part, "43 per cent");
    assert_right(&f, "part", &part, "43% of the layer");

    const struct exercise_question rate = number(UNITS_TOK_PER_S, 2898, 0.01);
    static const char *const RATES[] = {
        "2898 1/s", "2898 / s", "2898/s", "2898 t/s", "2.898 ktok/s", "2898 tokens/s", "2898 tok per second",
        "2898 tps"};
    for (size_t i = 0; i < sizeof RATES / sizeof RATES[0]; i++) assert_right(&f, "rate", &rate, RATES[i]);
    assert_hint(&f, &rate, "2898", "give the unit");
    struct exercise_question requests = number(UNITS_COUNT_PER_S, 1.663, 0.01);
    requests.things = "request,req";
    static const char *const COME[] = {
        "1.663",  "1.663/s",       "1.663 1/s", "1.663 req/s", "1.663 requests a second", "99.8 req a minute",
        "5987/h", "1.663 requests"};
    for (size_t i = 0; i < sizeof COME / sizeof COME[0]; i++) assert_right(&f, "requests", &requests, COME[i]);
    assert_hint(&f, &requests, "1.663 tok/s", "requests a second was asked; this is tokens per second");
    assert_hint(&f, &requests, "1.663 potatoes/s", "'potatoes/s' is not known");
    assert_hint(&f, &requests, "99.8", "too large");
    const struct exercise_question token = number(UNITS_BYTES_PER_TOKEN, 131072, 0.01);
    assert_right(&f, "token", &token, "131.1 kB/token");
    assert_right(&f, "token", &token, "128 KiB");
    assert_hint(&f, &token, "131.1 KiB", "ratio of KiB");
    assert_hint(&f, &token, "128 kB", "ratio of KiB");

    struct exercise_question days = number(UNITS_SECONDS, 616.9 * 86400, 0.01);
    days.bare = "days";
    static const char *const DAYS[] = {"617",        "617 days", "617 d",      "14805 h",
                                       "88.1 weeks", "t = 617",  "1.69 years", "6*10^10/97.26e6 = 617"};
    for (size_t i = 0; i < sizeof DAYS / sizeof DAYS[0]; i++) assert_right(&f, "days", &days, DAYS[i]);
    assert_hint(&f, &days, "617 GB", "this is a number of bytes");
    assert_hint(&f, &days, "617 potatoes", "as days or with its unit");

    struct exercise_question few = number(UNITS_COUNT, 248, 0);
    few.things = "sequence,seq";
    assert_right(&f, "few", &few, "248 seqs");
    assert_hint(&f, &few, "247", "this is not it");
    assert_hint(&f, &few, "248.2", "a whole number is asked");
    assert_hint(&f, &few, "248 potatoes", "a count (of sequences)");
    assert_hint(&f, &few, "300", "too large");
    const struct exercise_question half = number(UNITS_RATIO, 0.5, 0.01);
    assert_right(&f, "half", &half, "\xC2\xBD");
    assert_hint(&f, &half, "2\xC2\xBD", "cannot be read");
    assert_right(&f, "half", &half, "0.5 times smaller");
    end(&f);
}

static void test_formulas(void **state)
{
    (void)state;
    struct fixture f = begin();
    const struct cost_symbols y = cost_symbols_make(f.c);
    const struct sym *product = sym_mul(f.c, y.S, y.T), *sum = sym_add(f.c, y.S, y.T);
    struct exercise_question q = formula(&f, &y, sym_div(f.c, product, sum));
    bank_slip_formula(&q, sym_div(f.c, product, y.S), "the bytes of queries are missing");
    static const char *const RIGHT[] = {"S*T/(S+T)",
                                        "ST/(T+S)",
                                        "1/(1/S + 1/T)",
                                        "\\frac{S T}{S + T}",
                                        "I = S T / (S + T)",
                                        "I -> S T / (S + T)",
                                        "T \\to S T / (S + T)",
                                        "\xE2\x89\x88 S T / (S + T)",
                                        "2*S*T/(2*(S+T))",
                                        "\\frac{1}{S+T} \\sum_{i=1}^{S} T",
                                        "(S^2*T + S*T^2)/(S+T)^2"};
    for (size_t i = 0; i < sizeof RIGHT / sizeof RIGHT[0]; i++) assert_right(&f, "formula", &q, RIGHT[i]);
    assert_hint(&f, &q, "T", "the bytes of queries are missing");
    assert_hint(&f, &q, "2*S*T/(S+T)", "too large by a constant factor");
    assert_hint(&f, &q, "S*T/(2*S+2*T)", "too small by a constant factor");
    assert_hint(&f, &q, "2*S*T/(3*(S+T))", "too small by a constant factor");
    assert_hint(&f, &q, "-S*T/(S+T)", "off by the sign");
    assert_hint(&f, &q, "-4*S*T/(S+T)", "constant factor, and of the wrong sign");
    assert_hint(&f, &q, "B*S*T/(S+T)", "too large by a factor of B");
    assert_hint(&f, &q, "S/(S+T)", "too small by a factor of T");
    assert_hint(&f, &q, "S^2/(S+T)", "it should be");
    assert_hint(&f, &q, "S+T", "it should be");
    assert_hint(&f, &q, "min(S, T)", "it should be");
    assert_hint(&f, &q, "17", "depends on the symbols");
    assert_hint(&f, &q, "0", "depends on the symbols");
    assert_hint(&f, &q, "S - S", "depends on the symbols");
    assert_hint(&f, &q, "S*T/(S+X)", "unknown name 'X'");
    assert_hint(&f, &q, "S*T/(S+T", "bracket");
    assert_hint(&f, &q, "a = b = S", "in front of '=' cannot be read");
    static const char *const SIDES[] = {"I = 2*S*T/(2*S+2*T) = ST/(S+T)",
                                        "1/(1/S+1/T) = S*T/(S+T)",
                                        "I_{attn} = S*T/(S+T)",
                                        "C(S) = S*T/(S+T)",
                                        "$I = \\frac{ST}{S+T}$",
                                        "\\(\\frac{ST}{S+T}\\)",
                                        "S*T/(S+T) flop/byte",
                                        "S*T/(S+T) flops per byte",
                                        "\\frac{ST}{S+T}\\,\\text{FLOP/B}",
                                        "S*T/(S+T) [flop/byte]",
                                        "2(\xC2\xBD S T)/(S+T)"};
    for (size_t i = 0; i < sizeof SIDES / sizeof SIDES[0]; i++) assert_right(&f, "sides", &q, SIDES[i]);
    assert_hint(&f, &q, "2*S*T/(S+T) = S*T/(S+T)", "not equal");
    assert_hint(&f, &q, "B = S*T/(S+T)", "not equal");
    assert_hint(&f, &q, "I = S = S*T/(S+T)", "not equal");
    assert_hint(&f, &q, "I + J = S*T/(S+T)", "in front of '='");
    assert_hint(&f, &q, "S*T/(S+T) GB", "this is a number of bytes");
    assert_hint(&f, &q, "S*T/(S+T) kflop/byte", "no prefix");
    assert_hint(&f, &q, "s*t/(s+t)", "case counts");
    assert_hint(&f, &q, "st/(s+T)", "case counts");
    /* proved, or said not to be */
    assert_right(&f, "root", &q, "S*T/(sqrt(S+T)^2)");
    const struct exercise_verdict v = grade(&f, &q, "S*T/(S+T)*ceil(B + 1)/(ceil(B) + 1)");
    assert_true(v.right || strstr(v.hint, "could not be proved equal: write it without ceil"));
    assert_hint(&f, &q, "intensity(attention)", "cannot be read");
    assert_hint(&f, &q, "S/(T-T)", "cannot be");
    assert_string_equal(grade(&f, &q, "2*S*T/(2*T+2*S)").given, "S*T/(S + T)");
    q = formula(&f, &y, SYM_PROD(f.c, sym_int(f.c, 6), y.B, y.S, y.T));
    assert_hint(&f, &q, "6*B*T^2", "off by a factor of T/S");
    assert_hint(&f, &q, "6*B", "too small by a factor of S*T");
    assert_hint(&f, &q, "12*B*S", "too small by a factor of T, and off by a constant");
    assert_hint(&f, &q, "6*S^3*T/B", "off by a factor of S^2/B^2");
    q = formula(&f, &y, sym_mul(f.c, sym_int(f.c, 2), y.B)); /* the factor would say it */
    assert_hint(&f, &q, "T", "it should be");
    assert_hint(&f, &q, "4*B^2", "it should be");
    end(&f);
}

static void test_choices(void **state)
{
    (void)state;
    struct fixture f = begin();
    const struct exercise_question q = {.kind = EXERCISE_CHOICE,
                                        .text = "q",
                                        .form = "a word",
                                        .choices = {"memory", "compute", "both"},
                                        .also = {"bandwidth,mem"},
                                        .choices_n = 3,
                                        .right = 1,
                                        .slips = {{.value = 2, .hint = "only one of them"}},
                                        .slips_n = 1};
    assert_right(&f, "choice", &q, "compute");
    assert_right(&f, "choice", &q, " COMPUTE.");
    assert_right(&f, "choice", &q, "Compute!?");
    assert_hint(&f, &q, "both", "only one of them");
    assert_hint(&f, &q, "memory", "numbers of the question");
    assert_hint(&f, &q, "bandwidth", "numbers of the question");
    static const char *const RIGHT[] = {"compute bound",    "compute-bound",       "Compute-Bound.",
                                        "bound by compute", "It is compute-bound", "limited by compute"};
    for (size_t i = 0; i < sizeof RIGHT / sizeof RIGHT[0]; i++) assert_right(&f, "choice", &q, RIGHT[i]);
    assert_hint(&f, &q, "memory-bandwidth bound", "numbers of the question");
    static const char *const NONE[] = {"not memory", "memory or compute", "bound", "-", "it is", "computer", "comput"};
    for (size_t i = 0; i < sizeof NONE / sizeof NONE[0]; i++)
        assert_hint(&f, &q, NONE[i], "one of: memory, compute, both");
    end(&f);
}

static void test_long(void **state)
{
    (void)state;
    struct fixture f = begin();
    const struct exercise_question time = number(UNITS_SECONDS, 0.0079, 0.01);
    enum { LONG = 1 << 20 };
    char *text = malloc(LONG + 1);
    assert_non_null(text);
    memset(text, '1', LONG);
    text[LONG] = '\0';
    assert_hint(&f, &time, text, "longer than 4096 bytes");
    text[EXERCISE_ANSWER_MAX_BYTES] = '\0';
    assert_hint(&f, &time, text, "cannot be read");
    memset(text, '(', EXERCISE_ANSWER_MAX_BYTES);
    assert_hint(&f, &time, text, "cannot be read");
    free(text);
    assert_hint(&f, &time, "7.9 ms\x80", "not UTF-8");
    assert_hint(&f, &time, "7.9\nms", "control characters");
    assert_hint(&f, &time, "", "empty");
    end(&f);
}

/* What would take seconds to expand, for the answer, for each slip, or at each point: the whole costs no more than one
 * proof. */
static void test_bounded(void **state)
{
    (void)state;
    static const char *const HEAVY[] = {"(B+S+T)^40*(B+S+1)^40",
                                        "(B+S+T+1)^43",
                                        "((B+S+T)^31+7)^31",
                                        "x = (B+S+T+1)^43 = (B+S+T+1)^44",
                                        "469**999999.29999999999999999999**9999999999999999999999999**S",
                                        "0007187182055329890302**999**S",
                                        "B**99999999999999**S",
                                        "exp(exp(exp(S)))",
                                        "ceil((B+S+T+1)^43/7)",
                                        "log((B+S+T)^99)*log(B^2+S)^99",
                                        "sqrt((B+S+T+1)^43)"};
    for (size_t i = 0; i < sizeof HEAVY / sizeof HEAVY[0]; i++) {
        struct fixture f = begin();
        const struct cost_symbols y = cost_symbols_make(f.c);
        struct exercise_question q = formula(&f, &y, sym_div(f.c, sym_mul(f.c, y.S, y.T), sym_add(f.c, y.S, y.T)));
        for (int64_t n = 2; n < 12; n++)
            bank_slip_formula(&q, sym_mul(f.c, sym_int(f.c, n), q.answer), "this is a multiple of what is right");
        assert_hint(&f, &q, HEAVY[i], "");
        end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draws),    cmocka_unit_test(test_coinciding),
        cmocka_unit_test(test_times),    cmocka_unit_test(test_bytes_and_counts),
        cmocka_unit_test(test_formulas), cmocka_unit_test(test_choices),
        cmocka_unit_test(test_long),     cmocka_unit_test(test_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
