/* sample for a card, on the host: token for token the definition's and the CPU's, at odd shapes in every order;
 * mistakes are seen; what is at the edge. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/simt_check.h"

/* batch, vocab, top_k, top_p, temperature: rows that begin anywhere in a piece, less and more pieces than threads, the
 * three ways, one and all of a top k. */
static const struct simt_check_shape SHAPES[] = {
    {"sample", {7, 37, 0, 1000, 1}}, /* so cold that a largest logit that is not does harm */
    {"sample", {2, 1031, 53, 850, 1300}},
    {"sample", {2, 1031, 0, 900, 1000}},
    {"sample", {2, 5003, 0, 1000, 2000}}, /* warps walk more than once */
};
#define ALL SHAPES, sizeof SHAPES / sizeof SHAPES[0]

static void test_forward(void **state) { (void)state, simt_check_order(ALL, SIMT_FORWARD, 0); }
static void test_backward(void **state) { (void)state, simt_check_order(ALL, SIMT_BACKWARD, 0); }
static void test_shuffled(void **state) { (void)state, simt_check_order(ALL, SIMT_SHUFFLED, 15485863); }
static void test_mistakes(void **state) { (void)state, simt_check_mistakes(ALL); }

/* The tokens of a variant, rows one after the other. */
static void draw(const struct kern_variant *v, const struct kern_shape *s, void *logits, void *uniforms, int32_t *out)
{
    struct kern_call c = {.shape = s, .buffer = {logits, uniforms, out}};
    c.buffer[3] = malloc(16 * (size_t)s->v[1]);
    assert_non_null(c.buffer[3]);
    simt_start(&(struct simt_config){.order = SIMT_SHUFFLED, .seed = 5, .strict = true});
    v->run(&c);
    assert_null(simt_failure());
    free(c.buffer[3]);
}

/* Rows with many equal, masked, NAN, infinite and no logits, at any uniform: what the portable code draws. */
static void test_edges(void **state)
{
    enum { ROWS = 12, VOCAB = 61 };
    const struct kern_variant *card = kern_cuda_find(kern_find("sample"))->variants;
    const struct kern_variant *portable = kern_variant_find(kern_find("sample"), "portable");
    static const int64_t CASES[][3] = {{0, 1000, 1000}, {1, 1000, 1000}, {7, 1000, 1000}, {0, 1, 1000},
                                       {0, 333, 500},   {40, 990, 3000}, {60, 500, 1},    {61, 1000, 1000}};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof CASES / sizeof CASES[0]; i++) {
        const int64_t *v = CASES[i / 2];
        const struct kern_shape s = {{ROWS, VOCAB, v[0], v[1], v[2]}, i % 2 ? KERN_BF16 : KERN_FP32};
        int32_t want[ROWS], have[ROWS];
        uint32_t uniforms[ROWS];
        void *logits = NULL;
        assert_int_equal(posix_memalign(&logits, 64, ROWS * VOCAB * (i % 2 ? 2 : 4)), 0);
        for (size_t j = 0; j < ROWS * VOCAB; j++) {
            const size_t row = j / VOCAB, at = j % VOCAB;
            float z = (float)kern_normal(3 + i, j);
            if (row < 4) z = rintf(z);                                    /* zeros of both signs */
            if (row == 4) z = 1.5F;                                       /* all equal */
            if (row == 5 && at % 7) z = -(float)INFINITY;                 /* nine are not masked */
            if (row == 6 || (row == 7 && at != 59)) z = -(float)INFINITY; /* all, and all but one */
            if (row == 8 && at == 60) z = (float)NAN;
            if (row == 9 && at == 0) z = (float)INFINITY;
            if (i % 2)
                ((uint16_t *)logits)[j] = kern_bf16_from(z);
            else
                ((float *)logits)[j] = z;
        }
        for (size_t row = 0; row < ROWS; row++) uniforms[row] = (uint32_t)(kern_hash(i, row) >> 32);
        uniforms[0] = 0, uniforms[4] = 0xffffffffu;
        draw(portable, &s, logits, uniforms, want);
        draw(card, &s, logits, uniforms, have);
        assert_memory_equal(have, want, sizeof want);
        assert_true(have[6] == -1 && have[7] == 59 && have[8] == -1 && have[9] == -1);
        free(logits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edges),    cmocka_unit_test(test_forward),  cmocka_unit_test(test_backward),
        cmocka_unit_test(test_shuffled), cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
