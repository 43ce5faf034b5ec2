/* kernels of attention: every variant against the reference, at odd shapes; counts against the model's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/kernel_check.h"

/* Groups of 1 to 11, MQA, windows around the length, pages that cut chunks, lengths around chunks and splits. */
static void decode_at_odd_shapes(void **state)
{
    static const int64_t SHAPES[][7] = {
        {1, 1, 1, 1, 1, 0, 0},          {1, 2, 3, 1, 7, 0, 0},       {2, 63, 4, 2, 16, 0, 0},
        {1, 64, 6, 6, 33, 0, 0},        {3, 65, 8, 2, 128, 0, 0},    {1, 129, 11, 1, 80, 0, 0},
        {2, 255, 14, 2, 96, 0, 16},     {1, 257, 5, 5, 130, 0, 7},   {2, 300, 12, 4, 64, 100, 0},
        {1, 300, 7, 1, 72, 300, 13},    {2, 301, 4, 1, 40, 1, 16},   {1, 1021, 9, 3, 31, 257, 3},
        {1, 513, 32, 8, 128, 1000, 64}, {2, 1537, 2, 1, 17, 0, 129}, {1, 700, 16, 1, 256, 0, 1},
    };
    (void)state;
    kernel_check_all("decode-attention", SHAPES[0], sizeof SHAPES / sizeof SHAPES[0]);
}

/* Prompts around blocks of queries and chunks of keys, windows around both. */
static void prefill_at_odd_shapes(void **state)
{
    static const int64_t SHAPES[][6] = {
        {1, 1, 1, 1, 1, 0},     {2, 7, 3, 1, 5, 0},       {1, 47, 4, 2, 16, 0},   {1, 48, 2, 2, 33, 1},
        {1, 49, 6, 2, 64, 3},   {2, 65, 5, 5, 80, 64},    {1, 129, 4, 1, 128, 0}, {1, 193, 3, 3, 96, 65},
        {1, 200, 7, 1, 40, 17}, {1, 331, 2, 1, 130, 100}, {3, 64, 2, 1, 31, 400},
    };
    (void)state;
    kernel_check_all("prefill-attention", SHAPES[0], sizeof SHAPES / sizeof SHAPES[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode_at_odd_shapes),
        cmocka_unit_test(prefill_at_odd_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
