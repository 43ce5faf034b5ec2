/* Latent attention of a card on the host: right at odd shapes in every order, and mistakes are seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/simt_check.h"

/* 16, 32 and 64 heads a block and one beyond; chunks of 32 tokens; rows that begin between pieces of 8; splits of one
 * and of several chunks; pages within and over chunks; the latent's last 16 columns only partly there. */
static const struct simt_check_shape SHAPES[] = {
    /* batch, kv_len, heads, rank, rope, page */
    {"mla-decode", {1, 1, 1, 8, 1}},          {"mla-decode", {2, 97, 5, 67, 12, 16}},
    {"mla-decode", {1, 259, 16, 40, 8, 7}},   {"mla-decode", {1, 67, 19, 200, 24}},
    {"mla-decode", {1, 131, 33, 72, 16, 64}}, {"mla-decode", {1, 33, 65, 139, 5}},
    {"mla-decode", {1, 35, 3, 512, 64}},
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
