/* kernels of a layer: every variant against the reference, at odd shapes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/kernel_check.h"

/* Inner sizes around groups of 128, also odd ones; columns that leave a rest of 1 to 3. */
static void int4_at_odd_shapes(void **state)
{
    static const int64_t SHAPES[][3] = {{1, 1, 1},    {2, 5, 127},  {1, 6, 128},   {3, 7, 129},  {1, 64, 255},
                                        {5, 9, 1000}, {1, 33, 511}, {7, 13, 1281}, {1, 31, 4097}};
    (void)state;
    kernel_check_all("int4-matvec", SHAPES[0], sizeof SHAPES / sizeof SHAPES[0]);
}

static void mlp_at_odd_shapes(void **state)
{
    static const int64_t SHAPES[][3] = {{1, 1, 1}, {1, 17, 33}, {3, 40, 7}, {7, 129, 65}, {13, 64, 100}, {26, 31, 257}};
    (void)state;
    kernel_check_all("mlp", SHAPES[0], sizeof SHAPES / sizeof SHAPES[0]);
}

/* A loop that multiplies and touches, and the kernel's own count. */
static void mlp_counts_agree(void **state)
{
    const struct kern *k = kern_find("mlp");
    const struct kern_shape s = {{5, 7, 11}, KERN_BF16};
    struct kern_counts c;
    double flops = 0, vector = 0, reads = 0, writes = 0;
    (void)state;
    for (int64_t t = 0; t < 5; t++)
        for (int64_t f = 0; f < 11; f++) {
            vector += 5; /* minus, exponential, sum, quotient; times the other branch */
            for (int64_t d = 0; d < 7; d++) {
                flops += 3 * 2;
                if (t == 0) reads += 3 * 2;
                if (f == 0) reads += 2, writes += 2;
            }
        }
    k->counts(&s, &c);
    assert_true(c.flops == flops && c.vector_flops == vector);
    assert_true(c.read_bytes == reads && c.written_bytes == writes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(int4_at_odd_shapes),
        cmocka_unit_test(mlp_at_odd_shapes),
        cmocka_unit_test(mlp_counts_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
