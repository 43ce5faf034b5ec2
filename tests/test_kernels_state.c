/* linear-step: every variant against the reference at odd shapes; counts by a loop; the rule by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "tests/kernel_check.h"

/* Rows that leave a rest of 1 to 3, keys around pieces of 16, groups of one head and of several; both rules, both
 * states, decays of heads and of channels. */
static void right_at_odd_shapes(void **state)
{
    static const int64_t SHAPES[][8] = {
        {1, 1, 1, 1, 1, 0, 4, 0},    {1, 1, 1, 1, 1, 1, 2, 1},   {2, 3, 15, 3, 5, 1, 4, 0},
        {3, 2, 16, 6, 7, 0, 2, 1},   {1, 4, 17, 4, 11, 1, 4, 1}, {5, 5, 31, 10, 13, 0, 4, 0},
        {2, 1, 128, 2, 64, 1, 2, 0}, {7, 3, 127, 9, 6, 1, 4, 1}, {3, 4, 129, 8, 37, 0, 2, 0},
        {2, 2, 33, 6, 18, 1, 2, 1},
    };
    (void)state;
    kernel_check_all("linear-step", SHAPES[0], sizeof SHAPES / sizeof SHAPES[0]);
}

static void refuses_what_cannot_be(void **state)
{
    const struct kern_shape apart = {{1, 3, 7, 4, 5, 0, 4, 0}, KERN_FP32}, odd = {{1, 3, 7, 3, 5, 0, 3, 0}, KERN_FP32};
    char text[128];
    (void)state;
    assert_non_null(kern_shape_check(kern_find("linear-step"), &apart, text, sizeof text));
    assert_non_null(kern_shape_check(kern_find("linear-step"), &odd, text, sizeof text));
}

/* Batch 3, 2 key heads of 11, 6 value heads of 7. */
static void counts_by_a_loop(void **state)
{
    (void)state;
    for (int i = 0; i < 16; i++) {
        const int bytes = i & 1 ? 2 : 4, kept = i & 2 ? 2 : 4, delta = i / 4 % 2, channels = i / 8;
        const struct kern_shape s = {{3, 2, 11, 6, 7, delta, kept, channels}, bytes == 2 ? KERN_BF16 : KERN_FP32};
        struct kern_counts c = {.flops = 0}, have;
        for (int one = 0; one < 3 * 6; one++) {
            if (delta) c.read_bytes += 4;
            for (int n = 0; n < (channels ? 11 : 1); n++) {
                c.vector_flops += 1;
                c.read_bytes += 4;
            }
            for (int p = 0; p < 7; p++) {
                c.vector_flops += delta ? 2 : 0;
                c.read_bytes += bytes;
                c.written_bytes += bytes;
                for (int n = 0; n < 11; n++) {
                    c.flops += delta ? 3 * 2 : 2 * 2;
                    c.vector_flops += 1;
                    c.read_bytes += kept + (one % 3 == 0 && p == 0 ? 2 * bytes : 0); /* key and query of three heads */
                    c.written_bytes += kept;
                }
            }
        }
        kern_find("linear-step")->counts(&s, &have);
        assert_true(have.flops == c.flops && have.vector_flops == c.vector_flops);
        assert_true(have.read_bytes == c.read_bytes && have.written_bytes == c.written_bytes);
    }
}

/* The delta rule by hand, keys and values of 2: with s = [[1, 2], [3, 4]], decay 1/2, k = (1/2, 1), beta 1/4, v = (3,
 * -1), q = (2, -1): the state answers (1.25, 2.75); u = (0.4375, -0.9375); s = [[0.71875, 1.4375], [1.03125, 1.0625]];
 * y = (0, 1). Without it u = v: s = [[2, 4], [1, 1]], y = (0, 1). */
static void rules_by_hand(void **state)
{
    static const float Q[] = {2, -1}, K[] = {0.5F, 1}, VALUE[] = {3, -1};
    static const double WANT[2][6] = {{2, 4, 1, 1, 0, 1}, {0.71875, 1.4375, 1.03125, 1.0625, 0, 1}};
    const struct kern *k = kern_find("linear-step");
    struct kern_machine m;
    (void)state;
    kern_machine_open(&m);
    for (int delta = 0; delta < 2; delta++)
        for (size_t v = 0; v < k->variants_n; v++) {
            const struct kern_shape s = {{1, 1, 2, 1, 2, delta, 4, 0}, KERN_FP32};
            float q[2], key[2], value[2], decay[] = {-0.69314718F}, beta[] = {0.25F}, old[] = {1, 2, 3, 4}, y[2],
                                          room[10];
            const struct kern_call c = {.shape = &s, .buffer = {q, key, value, decay, beta, old, y, room}};
            memcpy(q, Q, sizeof q);
            memcpy(key, K, sizeof key);
            memcpy(value, VALUE, sizeof value);
            for (size_t i = 0; i < 2; i++) {
                double row[2], one;
                k->reference(&c, 5, i, row);
                k->reference(&c, 6, i, &one);
                for (size_t j = 0; j < 2; j++) assert_true(fabs(row[j] - WANT[delta][2 * i + j]) < 1e-7);
                assert_true(fabs(one - WANT[delta][4 + i]) < 1e-6);
            }
            if (k->variants[v].lacks && k->variants[v].lacks(&m, &s)) continue;
            k->variants[v].run(&c);
            for (size_t i = 0; i < 4; i++) assert_true(fabs((double)old[i] - WANT[delta][i]) < 1e-6);
            for (size_t i = 0; i < 2; i++) assert_true(fabs((double)y[i] - WANT[delta][4 + i]) < 1e-6);
        }
    kern_machine_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_at_odd_shapes),
        cmocka_unit_test(refuses_what_cannot_be),
        cmocka_unit_test(counts_by_a_loop),
        cmocka_unit_test(rules_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
