/* Exercises: answers against a count by hand, what students answer most, and the formulas of the lecture. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tests/exercises.h"

/* The numbers of a text in their order. */
static size_t numbers_of(const char *text, double *out, size_t max)
{
    size_t n = 0;
    for (const char *p = text; *p && n < max;) {
        char *stop;
        const bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
        if (letter || *p < '0' || *p > '9') {
            p += letter ? strcspn(p, " ,.;:)/") : 1; /* fp32 is a word */
            continue;
        }
        out[n++] = strtod(p, &stop);
        p = stop;
    }
    return n;
}

static void test_against_counts(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct fixture f = begin();
        double x[16];
        struct exercise_question q = ask(&f, "ridge-cpu", seed);
        /* cores, GHz, bits, "fp32" has no number of its own, channels, million transfers, 64 */
        assert_int_equal(numbers_of(q.text, x, 16), 6);
        const double peak = x[0] * x[1] * 1e9 * 2 * (x[2] / 32) * 2, bandwidth = x[3] * x[4] * 1e6 * x[5] / 8;
        assert_true(fabs(q.value / (peak / bandwidth) - 1) < 1e-12);

        q = ask(&f, "ridge-h100", seed);
        assert_true(numbers_of(strstr(q.text, "has"), x, 16) >= 4);
        const char *reaches = strstr(q.text, "reaches");
        double part[2];
        assert_int_equal(numbers_of(reaches, part, 2), 2);
        assert_true(fabs(q.value - 989e12 / 3.35e12 * part[0] / part[1]) < 1e-9);

        /* elements of x, W and the result, one by one in bytes */
        q = ask(&f, "matvec-intensity", seed);
        assert_true(numbers_of(q.text, x, 16) >= 4);
        const double bytes = strstr(q.text, "fp8") ? 1 : strstr(q.text, "bf16") ? 2 : 4;
        assert_true(fabs(q.value - 2 * x[1] * x[2] / (bytes * (x[1] * x[2] + x[1] + x[2]))) < 1e-12);
        end(&f);
    }
}

/* What batch-ridge says of other batches, from the ridge and the sizes of the text. */
static void test_batch_slips(void **state)
{
    (void)state;
    size_t met = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct fixture f = begin();
        double x[3], ridge;
        const struct exercise_question q = ask(&f, "batch-ridge", seed);
        assert_true(numbers_of(q.text, x, 3) == 3);
        assert_int_equal(numbers_of(strstr(q.steps[1], "bandwidth = "), &ridge, 1), 1);
        for (size_t i = 0; i < q.slips_n; i++) {
            const double B = q.slips[i].value, elements = B * x[0] + B * x[2] + x[0] * x[2];
            const double intensity = 2 * B * x[0] * x[2] / (2 * elements);
            const char *hint = q.slips[i].hint;
            if (strncmp(hint, "This takes the sparse", 20) == 0) {
                assert_true(fabs(intensity / (2 * ridge) - 1) < 1e-4);
                met |= 1;
            } else if (strncmp(hint, "This divides by elements", 20) == 0) {
                assert_true(fabs(2 * intensity / ridge - 1) < 1e-4);
                met |= 2;
            } else if (strncmp(hint, "This leaves out the bytes of the result", 38) == 0) {
                assert_true(fabs(B * x[0] * x[2] / (elements - B * x[2]) / ridge - 1) < 1e-4);
                met |= 4;
            } else if (strncmp(hint, "This leaves out the bytes of X", 30) == 0) {
                assert_true(fabs(B * x[0] * x[2] / (elements - B * x[0]) / ridge - 1) < 1e-4);
                met |= 8;
            }
        }
        end(&f);
    }
    assert_int_equal(met, 15);
}

/* Below B the product is under the ridge, at B not. */
static void test_batch_meets_ridge(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct fixture f = begin();
        double x[8], ridge[2];
        const struct exercise_question q = ask(&f, "batch-ridge", seed);
        assert_true(numbers_of(q.text, x, 3) == 3);
        const double D = x[0], F = x[2];
        assert_int_equal(numbers_of(strstr(q.steps[1], "bandwidth = "), ridge, 1), 1);
        for (int i = 0; i < 2; i++) {
            const double B = q.value - 1 + i, intensity = 2 * B * D * F / (2 * (B * D + B * F + D * F));
            if (i ? intensity < ridge[0] * (1 - 1e-4) : intensity > ridge[0] * (1 + 1e-4))
                fail_msg("seed %d: B = %g has %g flops per byte, ridge %g", (int)seed, B, intensity, ridge[0]);
        }
        end(&f);
    }
}

/* The formulas of the lecture: CS336 Spring 2025, lecture 10. */
/* Answers that students give most, to questions that say this and that, and what the hint must speak of. */
static void test_typical(void **state)
{
    (void)state;
    static const struct {
        const char *exercise, *says[3], *answer, *hint;
    } TYPICAL[] = {
        {"matmul-limit",
         {"W of D x F; all elements are bf16", "X of B x D"},
         "B*D*F/(B*D + B*F + D*F)",
         "intensity itself"},
        {"mlp-limit",
         {"T tokens each", "elements are bf16"},
         "6*B*T*D*F/(4*B*T*D + 4*B*T*F + 6*D*F)",
         "intensity itself"},
        {"parameters-formula",
         {"is tied", "and K KV", "is gated"},
         "L*(3*D*F + 2*D*N*H + 2*D*K*H)",
         "leaves out the embedding"},
        {"parameters-formula",
         {"not tied", "and K KV", "is gated"},
         "V*D + L*(3*D*F + 2*D*N*H + 2*D*K*H)",
         "leaves out the embedding"},
        {"parameters-formula",
         {"not tied", "and K KV", "is gated"},
         "L*(3*D*F + 2*D*N*H + 2*D*K*H)",
         "leaves out embedding and output head"},
        {"parameters-formula",
         {"not tied", "and K KV", "is gated"},
         "2*V*D + L*(3*D*F + 2*D^2 + 2*D*K*H)",
         "N*H need not be D"},
        {"parameters-formula",
         {"not tied", "as many KV", "is gated"},
         "2*V*D + L*(3*D*F + 4*D^2)",
         "N*H need not be D"},
        {"latency-formula", {"seconds of one step"}, "B*bw/(w + 4*B*S*L*K*H)", "the time of a step is asked"},
        {"latency-formula", {"tokens per second"}, "(w + 4*B*S*L*K*H)/bw", "tokens per second are asked"},
        {"latency-formula", {"seconds of one step"}, "(w + 4*B*S*K*H)/bw", "one layer"},
        {"attention-intensity",
         {"cached in bf16 (2 bytes an element), queries and outputs are fp32"},
         "S*T/(S + T)",
         "which formats"},
        {"attention-intensity", {"cached in fp8", "outputs are fp8"}, "S*T/(S + T)", "Or: "},
        {"mlp-flops", {"in all L layers", "T tokens each"}, "12*B*T*D*F*L", "too large by a constant factor"},
    };
    for (size_t i = 0; i < sizeof TYPICAL / sizeof TYPICAL[0]; i++) {
        size_t met = 0;
        for (uint64_t seed = 0; seed < 400 && met < 2; seed++) {
            struct fixture f = begin();
            const struct exercise_question q = ask(&f, TYPICAL[i].exercise, seed);
            bool says = true;
            for (size_t k = 0; k < 3 && TYPICAL[i].says[k]; k++) says &= strstr(q.text, TYPICAL[i].says[k]) != NULL;
            if (says) assert_hint(&f, &q, TYPICAL[i].answer, TYPICAL[i].hint);
            met += says;
            end(&f);
        }
        if (!met) fail_msg("%s, '%s': not met", TYPICAL[i].exercise, TYPICAL[i].answer);
    }
}

static void test_lecture(void **state)
{
    (void)state;
    size_t met = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct fixture f = begin();
        struct exercise_question q = ask(&f, "mlp-intensity", seed);
        if (strstr(q.text, "T tokens each") && strstr(q.text, "bf16")) {
            assert_right(&f, "mlp", &q, "3*B*D*F*T/(2*B*D*T + 2*B*F*T + 3*D*F)");
            met |= 1;
        }
        q = ask(&f, "mlp-limit", seed);
        if (strstr(q.text, "T tokens each") && strstr(q.text, "bf16")) {
            assert_right(&f, "mlp", &q, "B*T");
            met |= 2;
        }
        q = ask(&f, "attention-intensity", seed);
        if (strstr(q.text, "cached in bf16") && strstr(q.text, "outputs are bf16")) {
            assert_right(&f, "attention", &q, "S*T/(S + T)");
            assert_hint(&f, &q, "2*S*T/(S + 2*T)", "K and V");
            met |= 4;
        }
        q = ask(&f, "attention-phase", seed);
        if (strstr(q.text, "cached in bf16") && strstr(q.text, "outputs are bf16")) {
            const bool prefill = strstr(q.text, "prefilled") != NULL;
            assert_right(&f, "attention", &q, prefill ? "S/2" : "S/(S + 1)");
            met |= prefill ? 8 : 16;
        }
        q = ask(&f, "mlp-flops", seed);
        if (strstr(q.text, "T tokens each") && strstr(q.text, "one layer")) {
            assert_right(&f, "mlp", &q, "6*B*T*D*F");
            assert_hint(&f, &q, "4*B*T*D*F", "three");
            met |= 32;
        }
        q = ask(&f, "matmul-intensity", seed);
        if (strstr(q.text, "B x D") && strstr(q.text, "D x F") && strstr(q.text, "elements are bf16")) {
            assert_right(&f, "matmul", &q, "B*D*F/(B*D + B*F + D*F)");
            met |= 64;
        }
        end(&f);
    }
    assert_int_equal(met, 127);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_counts), cmocka_unit_test(test_batch_meets_ridge),
        cmocka_unit_test(test_batch_slips),    cmocka_unit_test(test_lecture),
        cmocka_unit_test(test_typical),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
