/* Routed experts of a card on the host: right at odd shapes in every order, and mistakes are seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/simt_check.h"

/* Tiles of 16, 64 and 128 rows, several of one expert and such that are not full; widths that are no multiples of 8;
 * one plan block and several; more experts than a round of the scan has. */
static const struct simt_check_shape SHAPES[] = {
    /* tokens, hidden, inter, topk, experts, active */
    {"moe", {17, 520, 24, 1, 3, 2}}, {"moe", {70, 24, 40, 1, 2, 1}}, {"moe", {19, 67, 35, 2, 5, 2}},
    {"moe", {5, 16, 8, 3, 600, 15}}, {"moe", {97, 72, 9, 1, 2, 1}},  {"moe", {1, 8, 8, 1, 1, 1}},
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
