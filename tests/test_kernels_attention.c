/* kernels of attention: every variant against the reference, at odd shapes; counts against the model's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "calc/cli/probe_rows.h"
#include "tests/kernel_check.h"

/* Groups of 1 to 11, MQA, windows around the length, pages that cut chunks, lengths around chunks and splits. */
static void decode_at_odd_shapes(void **state)
{
    static const int64_t SHAPES[][7] = {
        {1, 1, 1, 1, 1, 0, 0},          {1, 2, 3, 1, 7, 0, 0},       {2, 63, 4, 2, 16, 0, 0},
        {1, 64, 6, 6, 33, 0, 0},        {3, 65, 8, 2, 128, 0, 0},    {1, 129, 11, 1, 80, 0, 0},
        {2, 255, 14, 2, 96, 0, 16},     {1, 257, 5, 5, 130, 0, 7},   {2, 300, 12, 4, 64, 100, 0},
        {1, 300, 7, 1, 72, 300, 13},    {2, 301, 4, 1, 40, 1, 16},   {1, 1021, 9, 3, 31, 257, 3},
        {1, 513, 32, 8, 128, 1000, 64}, {2, 277, 6, 6, 128, 0, 16},  {2, 191, 16, 2, 128, 0, 14},
        {2, 1537, 2, 1, 17, 0, 129},    {1, 700, 16, 1, 256, 0, 1},  {1, 611, 3, 3, 128, 0, 4},
        {2, 401, 20, 4, 128, 0, 12},    {2, 523, 6, 2, 128, 0, 20},  {1, 911, 9, 1, 128, 457, 28},
        {2, 331, 16, 2, 128, 0, 0},     {1, 197, 24, 2, 64, 101, 0}, {3, 1, 13, 1, 192, 0, 0},
        {1, 134, 27, 3, 128, 0, 0},     {2, 67, 32, 2, 128, 0, 0},
    };
    const struct kern *k = kern_find("decode-attention");
    struct kern_machine m;
    (void)state;
    kern_machine_open(&m);
    for (int i = 0; i < 2; i++, m.asked = !m.asked) /* of either maker */
        for (size_t j = 0; j < sizeof SHAPES / sizeof SHAPES[0]; j++) assert_true(kernel_check(k, &m, SHAPES[j]) > 0);
    kern_machine_close(&m);
}

/* Prompts around blocks of queries and chunks of keys, windows around both; one whose result goes past the caches. */
static void prefill_at_odd_shapes(void **state)
{
    static const int64_t SHAPES[][6] = {
        {1, 1, 1, 1, 1, 0},      {2, 7, 3, 1, 5, 0},       {1, 47, 4, 2, 16, 0},   {1, 48, 2, 2, 33, 1},
        {1, 49, 6, 2, 64, 3},    {2, 65, 5, 5, 80, 64},    {1, 129, 4, 1, 128, 0}, {1, 193, 3, 3, 96, 65},
        {1, 200, 7, 1, 40, 17},  {1, 331, 2, 1, 130, 100}, {3, 64, 2, 1, 31, 400}, {1, 613, 2, 1, 128, 0},
        {1, 545, 2, 1, 64, 300}, {2, 290, 6, 2, 100, 33},  {13, 90, 16, 1, 64, 0},
    };
    (void)state;
    kernel_check_all("prefill-attention", SHAPES[0], sizeof SHAPES / sizeof SHAPES[0]);
}

/* -- counts: loops that touch and multiply, the kernel's, the model's -- */

static void agree(const struct kern *k, const struct kern_shape *s, double flops, double reads, double writes)
{
    struct kern_counts c;
    double model_flops, model_bytes;
    struct arena *a = arena_open();
    struct result row = {.kernel = k->name,
                         .variant = "x",
                         .dtype = kern_dtype_name(s->dtype),
                         .row_kind = k->row_kind,
                         .shape = {.n = k->args_n}};
    for (size_t i = 0; i < k->args_n; i++) {
        row.shape.arg[i].name = k->args[i].name;
        row.shape.arg[i].value = s->v[i];
    }
    k->counts(s, &c);
    assert_true(c.flops == flops);
    assert_true(c.read_bytes == reads);
    assert_true(c.written_bytes == writes);
    assert_true(probe_row_work(a, &row, &model_flops, &model_bytes));
    assert_true(model_flops == flops);
    assert_true(model_bytes == reads + writes);
    arena_close(a);
}

static void decode_counts_agree(void **state)
{
    static const int64_t SHAPES[][7] = {
        {3, 11, 6, 2, 5, 0, 0}, {2, 13, 5, 1, 7, 4, 0}, {1, 7, 3, 3, 11, 19, 3}, {2, 9, 4, 2, 3, 9, 4}};
    static const struct {
        enum kern_dtype dtype;
        double bytes, cached_bytes;
    } FORMATS[] = {{KERN_FP32, 4, 4}, {KERN_BF16, 2, 2}, {KERN_FP8, 2, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof SHAPES / sizeof SHAPES[0]; i++)
        for (size_t j = 0; j < sizeof FORMATS / sizeof FORMATS[0]; j++) {
            const int64_t *v = SHAPES[i], len = v[1], window = v[5];
            const double bytes = FORMATS[j].bytes;
            struct kern_shape s = {.dtype = FORMATS[j].dtype};
            double flops = 0, reads = 0, writes = 0;
            memcpy(s.v, v, sizeof SHAPES[i]);
            for (int64_t b = 0; b < v[0]; b++)
                for (int64_t h = 0; h < v[2]; h++)
                    for (int64_t e = 0; e < v[4]; e++) {
                        reads += bytes; /* the query */
                        writes += bytes;
                        for (int64_t t = 0; t < len; t++) {
                            if (window && t < len - window) continue;
                            flops += 2 + 2; /* score, weighted value */
                            if (h % (v[2] / v[3]) == 0) reads += 2 * FORMATS[j].cached_bytes;
                        }
                    }
            agree(kern_find("decode-attention"), &s, flops, reads, writes);
        }
}

static void prefill_counts_agree(void **state)
{
    static const int64_t SHAPES[][6] = {{3, 11, 6, 2, 5, 0}, {2, 13, 5, 1, 7, 4}, {1, 7, 3, 3, 11, 19}};
    (void)state;
    for (size_t i = 0; i < sizeof SHAPES / sizeof SHAPES[0]; i++)
        for (int d = 0; d <= KERN_BF16; d++) {
            const int64_t *v = SHAPES[i], len = v[1], window = v[5];
            const double bytes = d == KERN_FP32 ? 4 : 2;
            struct kern_shape s = {.dtype = (enum kern_dtype)d};
            double flops = 0, reads = 0, writes = 0;
            memcpy(s.v, v, sizeof SHAPES[i]);
            for (int64_t b = 0; b < v[0]; b++)
                for (int64_t h = 0; h < v[2]; h++)
                    for (int64_t t = 0; t < len; t++) {
                        reads += bytes * (double)v[4];
                        writes += bytes * (double)v[4];
                        if (h % (v[2] / v[3]) == 0) reads += 2 * bytes * (double)v[4];
                        for (int64_t j = 0; j <= t; j++)
                            if (!window || j > t - window) flops += 4 * (double)v[4];
                    }
            agree(kern_find("prefill-attention"), &s, flops, reads, writes);
        }
}

/* The latent is key and value, and is read once for all heads. */
static void latent_counts_agree(void **state)
{
    (void)state;
    for (int d = 0; d <= KERN_BF16; d++) {
        const struct kern_shape s = {{3, 13, 5, 11, 7}, (enum kern_dtype)d};
        const double bytes = d == KERN_FP32 ? 4 : 2;
        double flops = 0, reads = 0, writes = 0;
        for (int b = 0; b < 3; b++)
            for (int h = 0; h < 5; h++)
                for (int t = 0; t < 13; t++)
                    for (int i = 0; i < 11 + 7; i++) {
                        flops += i < 11 ? 4 : 2;
                        reads += (h == 0 ? bytes : 0) + (t == 0 ? bytes : 0);
                        writes += t == 0 && i < 11 ? bytes : 0;
                    }
        agree(kern_find("mla-decode"), &s, flops, reads, writes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode_at_odd_shapes), cmocka_unit_test(prefill_at_odd_shapes),
        cmocka_unit_test(decode_counts_agree),  cmocka_unit_test(prefill_counts_agree),
        cmocka_unit_test(latent_counts_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
