/* kernels of what surrounds the products of a layer: every variant against the reference, at odd shapes; counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/kernel_check.h"

#define CHECK(name, shapes) kernel_check_all(name, (shapes)[0], sizeof(shapes) / sizeof(shapes)[0])

static void counted(const char *name, const struct kern_shape *s, const struct kern_counts *wanted)
{
    struct kern_counts c;
    kern_find(name)->counts(s, &c);
    assert_true(c.flops == wanted->flops);
    assert_true(c.vector_flops == wanted->vector_flops);
    assert_true(c.read_bytes == wanted->read_bytes);
    assert_true(c.written_bytes == wanted->written_bytes);
}

/* Vocabularies around blocks of 512 and pieces of 16 and 32; refused at every position, and nowhere. */
static void verify_at_odd_shapes(void **state)
{
    static const int64_t SHAPES[][4] = {{1, 1, 2, 0},    {1, 1, 2, 1},      {3, 2, 7, 1},      {5, 3, 31, 3},
                                        {7, 4, 511, 0},  {2, 4, 512, 2},    {13, 5, 513, 4},   {97, 1, 1023, 0},
                                        {3, 7, 1031, 6}, {41, 2, 10007, 1}, {29, 3, 32003, 3}, {31, 2, 50021, 0}};
    (void)state;
    CHECK("spec-verify", SHAPES);
}

static void verify_refuses_what_cannot_be(void **state)
{
    const struct kern_shape s = {{3, 4, 101, 5}, KERN_FP32};
    char text[128];
    (void)state;
    assert_non_null(kern_shape_check(kern_find("spec-verify"), &s, text, sizeof text));
}

static void verify_counts(void **state)
{
    (void)state;
    for (int64_t accepted = 0; accepted <= 4; accepted++) {
        const struct kern_shape s = {{3, 4, 101, accepted}, KERN_FP32};
        struct kern_counts c = {.flops = 0};
        for (int64_t b = 0; b < 3; b++) {
            c.read_bytes += 4; /* its seed */
            c.written_bytes += 5 * 4;
            for (int64_t i = 0; i <= accepted && i < 4; i++) {
                c.vector_flops += 1;
                c.read_bytes += i < accepted ? 3 * 4 : 4; /* draft, p, q; the row of a refused one is read below */
            }
            for (int64_t v = 0; v < 101; v++) {
                c.vector_flops += accepted < 4 ? 4 : 1;
                c.read_bytes += accepted < 4 ? 2 * 4 : 4;
            }
        }
        counted("spec-verify", &s, &c);
    }
}

/* Widths around pieces of 16 and 64. */
static void norm_at_odd_shapes(void **state)
{
    static const int64_t SHAPES[][2] = {{1, 1},   {3, 2},   {5, 15},   {2, 16},    {7, 17},   {3, 63},
                                        {11, 64}, {13, 65}, {2, 1021}, {97, 1103}, {5, 4096}, {3, 14341}};
    (void)state;
    CHECK("rmsnorm", SHAPES);
}

static void norm_counts(void **state)
{
    (void)state;
    for (int bytes = 2; bytes <= 4; bytes += 2) {
        const struct kern_shape s = {{7, 29}, bytes == 2 ? KERN_BF16 : KERN_FP32};
        struct kern_counts c = {.flops = 0};
        for (int t = 0; t < 7; t++) {
            c.vector_flops += 4; /* mean, epsilon, root, quotient */
            for (int d = 0; d < 29; d++) {
                c.vector_flops += 4; /* square, sum, scale, weight */
                c.read_bytes += t == 0 ? 2 * bytes : bytes;
                c.written_bytes += bytes;
            }
        }
        counted("rmsnorm", &s, &c);
    }
}

/* Rows that leave a rest of 1 to 3, states around pieces of 16, groups of one head and of several. */
static void mamba_at_odd_shapes(void **state)
{
    static const int64_t SHAPES[][5] = {{1, 1, 1, 1, 1},    {2, 3, 5, 15, 1},   {3, 6, 7, 16, 2},  {1, 4, 11, 17, 4},
                                        {5, 10, 13, 31, 5}, {2, 2, 64, 128, 1}, {7, 9, 6, 127, 3}, {3, 8, 37, 129, 2}};
    (void)state;
    CHECK("mamba2-step", SHAPES);
}

static void mamba_counts(void **state)
{
    (void)state;
    for (int bytes = 2; bytes <= 4; bytes += 2) {
        const struct kern_shape s = {{3, 10, 7, 11, 5}, bytes == 2 ? KERN_BF16 : KERN_FP32};
        struct kern_counts c = {.flops = 0};
        for (int b = 0; b < 3; b++)
            for (int h = 0; h < 10; h++) {
                c.vector_flops += 6;
                c.read_bytes += b == 0 ? 4 * 4 : 4; /* dt; a, bias and d of all sequences */
                for (int p = 0; p < 7; p++) {
                    c.vector_flops += 3;
                    c.read_bytes += bytes;
                    c.written_bytes += bytes;
                    for (int n = 0; n < 11; n++) {
                        c.flops += 2 * 2;
                        c.vector_flops += 1;
                        c.read_bytes += h % 2 == 0 && p == 0 ? 3 * bytes : bytes; /* b and c of its group */
                        c.written_bytes += bytes;
                    }
                }
            }
        counted("mamba2-step", &s, &c);
    }
}

/* Lengths around chunks and splits, widths that leave a rest of 16 and of 32. */
static void latent_at_odd_shapes(void **state)
{
    static const int64_t SHAPES[][5] = {{1, 1, 1, 1, 1},     {2, 3, 5, 17, 3},      {1, 67, 7, 33, 13},
                                        {3, 259, 2, 48, 31}, {1, 513, 16, 512, 64}, {2, 1031, 3, 127, 65},
                                        {5, 29, 13, 96, 32}};
    (void)state;
    CHECK("mla-decode", SHAPES);
}

static void latent_counts(void **state)
{
    (void)state;
    for (int bytes = 2; bytes <= 4; bytes += 2) {
        const struct kern_shape s = {{3, 13, 5, 11, 7}, bytes == 2 ? KERN_BF16 : KERN_FP32};
        struct kern_counts c = {.flops = 0};
        for (int b = 0; b < 3; b++)
            for (int h = 0; h < 5; h++)
                for (int t = 0; t < 13; t++) {
                    c.vector_flops += 5;
                    for (int d = 0; d < 11 + 7; d++) {
                        c.flops += d < 11 ? 4 : 2; /* the latent is key and value, and is read once */
                        c.read_bytes += (h == 0 ? bytes : 0) + (t == 0 ? bytes : 0);
                        c.written_bytes += t == 0 && d < 11 ? bytes : 0;
                    }
                }
        counted("mla-decode", &s, &c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_at_odd_shapes), cmocka_unit_test(verify_refuses_what_cannot_be),
        cmocka_unit_test(verify_counts),        cmocka_unit_test(norm_at_odd_shapes),
        cmocka_unit_test(norm_counts),          cmocka_unit_test(mamba_at_odd_shapes),
        cmocka_unit_test(mamba_counts),         cmocka_unit_test(latent_at_odd_shapes),
        cmocka_unit_test(latent_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
