/* Kernels of a token that are no products, on the host: right at odd shapes in every order, and mistakes are seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/device.h"
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
    /* tokens, heads, kv_heads, dim, rotary_dim, interleaved, theta */
    {"rope", {1, 1, 1, 2, 2, 0, 10000}},
    {"rope", {5, 3, 2, 67, 66, 0, 500000}},
    {"rope", {3, 5, 1, 64, 48, 0, 10000}},
    {"rope", {3, 2, 3, 136, 128, 1, 1000000}},
    {"rope", {2, 5, 2, 35, 26, 1, 10007}},
    {"rope", {2, 1, 1, 520, 512, 0, 1000003}},
};
#define ALL SHAPES, sizeof SHAPES / sizeof SHAPES[0]

static void test_forward(void **state) { (void)state, simt_check_order(ALL, SIMT_FORWARD, 0); }
static void test_backward(void **state) { (void)state, simt_check_order(ALL, SIMT_BACKWARD, 0); }
static void test_shuffled(void **state) { (void)state, simt_check_order(ALL, SIMT_SHUFFLED, 15485863); }
static void test_mistakes(void **state) { (void)state, simt_check_mistakes(ALL); }

/* Every bf16 number to e4m3 by integers, against the code whose number is nearest, the even one of two. */
static void test_e4m3(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000u; bits++) {
        const float v = kern_bf16_to((uint16_t)bits);
        const uint8_t code = (uint8_t)kern_one_e4m3(v);
        uint8_t best = 0;
        if (isnan(v)) {
            assert_int_equal(code & 0x7f, 0x7f);
            continue;
        }
        for (uint8_t i = 1; i <= 0x7e; i++) {
            const double far = fabs(kern_read(&i, KERN_TYPE_F8, 0) - fabs((double)v));
            const double near = fabs(kern_read(&best, KERN_TYPE_F8, 0) - fabs((double)v));
            if (far < near || (far <= near && i % 2 == 0)) best = i;
        }
        if (isinf(v)) best = 0x7e;
        assert_int_equal(code, best | (signbit(v) ? 0x80 : 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_e4m3),     cmocka_unit_test(test_forward),  cmocka_unit_test(test_backward),
        cmocka_unit_test(test_shuffled), cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
