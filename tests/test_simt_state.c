/* Steps of recurrent states for a card, on the host: right at odd shapes in every order, and mistakes are seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/simt_check.h"

/* Widths around lanes of 4 and pieces of 128, rows around fours and parts of 32, groups of one head and of several. */
static const struct simt_check_shape SHAPES[] = {
    /* batch, key heads, key, value heads, value, delta, bytes of the state, decays of channels */
    {"linear-step", {1, 1, 1, 1, 1, 1, 4, 0}},
    {"linear-step", {2, 2, 36, 4, 37, 1, 4, 1}},
    {"linear-step", {1, 3, 131, 3, 35, 0, 2, 1}},
    {"linear-step", {1, 1, 128, 2, 18, 1, 2, 0}},
    {"linear-step", {1, 2, 259, 2, 5, 1, 4, 0}},
    {"linear-step", {1, 1, 260, 1, 66, 0, 4, 1}},
    {"linear-step", {1, 1, 257, 1, 3, 1, 2, 1}},
    {"linear-step", {1, 1, 132, 1, 33, 1, 4, 0}},
    /* batch, heads, head, state, groups, bytes of the state */
    {"mamba2-step", {1, 1, 1, 1, 1, 4}},
    {"mamba2-step", {2, 6, 37, 36, 2, 2}},
    {"mamba2-step", {1, 4, 18, 131, 4, 4}},
    {"mamba2-step", {1, 2, 34, 128, 1, 4}},
    {"mamba2-step", {1, 2, 7, 200, 2, 2}},
    {"mamba2-step", {1, 1, 5, 389, 1, 4}},
    {"mamba2-step", {1, 1, 3, 388, 1, 2}},
};
#define ALL SHAPES, sizeof SHAPES / sizeof SHAPES[0]

static void test_forward(void **state) { (void)state, simt_check_order(ALL, SIMT_FORWARD, 0); }
static void test_backward(void **state) { (void)state, simt_check_order(ALL, SIMT_BACKWARD, 0); }
static void test_shuffled(void **state) { (void)state, simt_check_order(ALL, SIMT_SHUFFLED, 15485863); }
static void test_mistakes(void **state) { (void)state, simt_check_mistakes(ALL); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward),
        cmocka_unit_test(test_backward),
        cmocka_unit_test(test_shuffled),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
