/* Kernels of a token that are no products, on the host: right at odd shapes in every order, and mistakes are seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/simt_check.h"

/* Around pieces of 4 and 8 elements, lanes of a warp, and what a thread holds; rows that begin between pieces. */
static const struct simt_check_shape SHAPES[] = {
    /* tokens, hidden */
    {"rmsnorm", {1, 1}},
    {"rmsnorm", {13, 37}},
    {"rmsnorm", {9, 128}},
    {"rmsnorm", {3, 264}},
    {"rmsnorm", {2, 1031}},
    {"rmsnorm", {2, 8328}},
    /* tokens, kv_heads, dim */
    {"kv-write", {1, 1, 1}},
    {"kv-write", {7, 3, 67}},
    {"kv-write", {11, 2, 128}},
    {"kv-write", {3, 1, 264}},
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
