/* Verification of drafts for a card, on the host: the reference's tokens at odd vocabularies, in chains and in trees.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/simt_check.h"

/* Around lanes of four, chunks of 256, more chunks than a warp has lanes; refused at every place of a chain and of a
 * tree. */
static const struct simt_check_shape SHAPES[] = {
    /* batch, gamma, vocab, accepted, branches */
    {"spec-verify", {3, 1, 2, 0, 1}},   {"spec-verify", {2, 2, 7, 2, 1}},    {"spec-verify", {5, 3, 131, 1, 1}},
    {"spec-verify", {2, 1, 260, 0, 1}}, {"spec-verify", {3, 1, 9001, 0, 1}}, {"spec-verify", {5, 2, 37, 1, 2}},
    {"spec-verify", {2, 3, 68, 2, 2}},  {"spec-verify", {2, 1, 1031, 0, 3}}, {"spec-verify", {1, 1, 29, 0, 16}},
};
/* More chunks than threads: once. */
static const struct simt_check_shape LONG[] = {{"spec-verify", {1, 1, 66001, 0, 1}},
                                               {"spec-verify", {1, 1, 4100, 0, 5}}};
#define ALL SHAPES, sizeof SHAPES / sizeof SHAPES[0]

static void test_forward(void **state) { (void)state, simt_check_order(ALL, SIMT_FORWARD, 0); }
static void test_backward(void **state) { (void)state, simt_check_order(ALL, SIMT_BACKWARD, 0); }
static void test_shuffled(void **state) { (void)state, simt_check_order(ALL, SIMT_SHUFFLED, 15485863); }
static void test_long(void **state) { (void)state, simt_check_order(LONG, 2, SIMT_SHUFFLED, 7); }
static void test_mistakes(void **state) { (void)state, simt_check_mistakes(ALL); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward), cmocka_unit_test(test_backward), cmocka_unit_test(test_shuffled),
        cmocka_unit_test(test_long),    cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
