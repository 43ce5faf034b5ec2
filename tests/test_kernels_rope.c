/* rope: every variant against the reference at odd shapes; counts; the reference against turns known by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/kernel_check.h"

/* Pairs around pieces of 16, halves and neighbours, heads that turn in part. */
static void rope_at_odd_shapes(void **state)
{
    static const int64_t SHAPES[][7] = {
        {1, 1, 1, 2, 2, 0, 10000},       {1, 1, 1, 3, 2, 1, 10000},       {7, 3, 2, 37, 34, 0, 500000},
        {5, 2, 3, 67, 30, 1, 1000003},   {13, 5, 1, 64, 64, 0, 10000},    {11, 1, 5, 96, 62, 1, 10007},
        {3, 32, 8, 128, 128, 0, 500000}, {2, 3, 1, 1024, 1024, 1, 10000}, {2, 3, 1, 1023, 1006, 0, 10000}};
    (void)state;
    kernel_check_all("rope", SHAPES[0], sizeof SHAPES / sizeof SHAPES[0]);
}

static void rope_refuses_what_cannot_be(void **state)
{
    const struct kern_shape odd = {{3, 4, 1, 16, 7, 0, 10000}, KERN_FP32};
    const struct kern_shape wide = {{3, 4, 1, 16, 18, 0, 10000}, KERN_FP32};
    char text[128];
    (void)state;
    assert_non_null(kern_shape_check(kern_find("rope"), &odd, text, sizeof text));
    assert_non_null(kern_shape_check(kern_find("rope"), &wide, text, sizeof text));
}

static void rope_counts(void **state)
{
    (void)state;
    for (int bytes = 2; bytes <= 4; bytes += 2) {
        const struct kern_shape s = {{7, 5, 3, 29, 22, bytes / 4, 10000}, bytes == 2 ? KERN_BF16 : KERN_FP32};
        struct kern_counts c, have;
        c = (struct kern_counts){.flops = 0};
        for (int pair = 0; pair < 11; pair++) c.read_bytes += 8;
        for (int t = 0; t < 7; t++) {
            c.read_bytes += 4;
            for (int pair = 0; pair < 11; pair++) {
                c.vector_flops += 3; /* angle, cosine, sine */
                for (int head = 0; head < 5 + 3; head++) {
                    c.vector_flops += 4 + 2;
                    c.read_bytes += 2 * bytes;
                    c.written_bytes += 2 * bytes;
                }
            }
        }
        kern_find("rope")->counts(&s, &have);
        assert_true(have.flops == 0 && have.vector_flops == c.vector_flops);
        assert_true(have.read_bytes == c.read_bytes && have.written_bytes == c.written_bytes);
    }
}

/* theta 10000, four elements that turn: at position 3 pair 0 by 3, pair 1 by 3 / 100 radians. */
static void rope_by_hand(void **state)
{
    (void)state;
    for (int interleaved = 0; interleaved < 2; interleaved++) {
        const struct kern_shape s = {{1, 1, 1, 5, 4, interleaved, 10000}, KERN_FP32};
        int32_t position = 3;
        float q[] = {1, 2, 5, 7, 11}, k[5] = {0};
        double out[5];
        const struct kern_call c = {.shape = &s, .buffer = {&position, NULL, q, k}};
        kern_find("rope")->reference(&c, 2, 0, out);
        const double x[2] = {1, interleaved ? 5 : 2}, y[2] = {interleaved ? 2 : 5, 7}, angle[2] = {3, 0.03};
        for (int i = 0; i < 2; i++) {
            const int at = interleaved ? 2 * i : i, other = interleaved ? at + 1 : at + 2;
            assert_true(fabs(out[at] - (x[i] * cos(angle[i]) - y[i] * sin(angle[i]))) < 1e-12);
            assert_true(fabs(out[other] - (y[i] * cos(angle[i]) + x[i] * sin(angle[i]))) < 1e-12);
        }
        assert_true(fabs(out[4] - 11) < 1e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rope_at_odd_shapes),
        cmocka_unit_test(rope_refuses_what_cannot_be),
        cmocka_unit_test(rope_counts),
        cmocka_unit_test(rope_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
