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
    static const int64_t SHAPES[][5] = {
        {1, 1, 2, 0, 1},     {1, 1, 2, 1, 1},      {3, 2, 7, 1, 1},     {5, 3, 31, 3, 1},   {7, 4, 511, 0, 1},
        {2, 4, 512, 2, 1},   {13, 5, 513, 4, 1},   {97, 1, 1023, 0, 1}, {3, 7, 1031, 6, 1}, {41, 2, 10007, 1, 1},
        {3, 3, 32003, 3, 1}, {31, 2, 20021, 0, 1}, {29, 1, 101, 0, 2},  {31, 3, 37, 2, 2},  {17, 2, 513, 1, 3},
        {7, 2, 1031, 2, 5},  {5, 1, 67, 0, 16},
    };
    (void)state;
    CHECK("spec-verify", SHAPES);
}

static void verify_refuses_what_cannot_be(void **state)
{
    const struct kern_shape s = {{3, 4, 101, 5, 1}, KERN_FP32};
    char text[128];
    (void)state;
    assert_non_null(kern_shape_check(kern_find("spec-verify"), &s, text, sizeof text));
}

/* Chains, and trees of three: at level 0 the second candidate stays, at 1 the third, at 2 the first. */
static void verify_counts(void **state)
{
    static const int REFUSED[] = {1, 2, 0, 1};
    (void)state;
    for (int64_t accepted = 0; accepted <= 9; accepted++) {
        const int64_t ends = accepted % 5;
        const bool tree = accepted > 4;
        const struct kern_shape s = {{3, 4, 101, ends, tree ? 3 : 1}, KERN_FP32};
        struct kern_counts c = {.flops = 0};
        for (int64_t b = 0; b < 3; b++) {
            c.read_bytes += 4; /* its seed */
            c.written_bytes += 5 * 4;
            for (int64_t i = 0; i <= ends; i++) {
                const int refused = i == 4 ? 0 : i == ends ? (tree ? 3 : 1) : tree ? REFUSED[i] : 0;
                const int tried = i < ends ? refused + 1 : refused;
                c.vector_flops += tried;
                c.read_bytes += 4 * tried;                       /* drafts */
                if (!refused && i < ends) c.read_bytes += 2 * 4; /* p and q of a token that stays */
                for (int64_t v = 0; v < 101; v++) {
                    if (!refused && i < ends) continue;
                    c.vector_flops += 1 + 3 * refused;
                    c.read_bytes += refused ? 2 * 4 : 4;
                }
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
    static const int64_t SHAPES[][6] = {{1, 1, 1, 1, 1, 4},   {2, 3, 5, 15, 1, 2},   {3, 6, 7, 16, 2, 4},
                                        {1, 4, 11, 17, 4, 2}, {5, 10, 13, 31, 5, 4}, {2, 2, 64, 128, 1, 2},
                                        {7, 9, 6, 127, 3, 4}, {3, 8, 37, 129, 2, 2}};
    (void)state;
    CHECK("mamba2-step", SHAPES);
}

static void mamba_counts(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const int bytes = i < 2 ? 2 : 4, kept = i % 2 ? 2 : 4;
        const struct kern_shape s = {{3, 10, 7, 11, 5, kept}, bytes == 2 ? KERN_BF16 : KERN_FP32};
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
                        c.read_bytes += kept + (h % 2 == 0 && p == 0 ? 2 * bytes : 0); /* b and c of its group */
                        c.written_bytes += kept;
                    }
                }
            }
        counted("mamba2-step", &s, &c);
    }
}

/* Lengths around chunks and splits, widths that leave a rest of 16 and of 32; pages of one token, within chunks, over
 * splits, and none. */
static void latent_at_odd_shapes(void **state)
{
    static const int64_t SHAPES[][6] = {{1, 1, 1, 1, 1, 0},       {2, 3, 5, 17, 3, 1},       {1, 67, 7, 33, 13, 0},
                                        {3, 259, 2, 48, 31, 13},  {1, 513, 16, 512, 64, 0},  {2, 1031, 3, 127, 65, 64},
                                        {5, 29, 13, 96, 32, 113}, {2, 150, 40, 64, 32, 64},  {2, 777, 70, 96, 32, 64},
                                        {1, 13, 65, 32, 32, 0},   {2, 300, 128, 64, 32, 16}, {2, 107, 9, 64, 7, 33}};
    (void)state;
    CHECK("mla-decode", SHAPES);
}

/* One token and many, experts that get none, one expert for all. */
static void experts_at_odd_shapes(void **state)
{
    static const int64_t SHAPES[][6] = {{1, 1, 1, 1, 1, 1},      {3, 17, 5, 2, 7, 5},  {13, 33, 31, 3, 11, 11},
                                        {29, 40, 65, 1, 5, 1},   {7, 65, 17, 4, 4, 4}, {37, 129, 48, 8, 61, 53},
                                        {5, 257, 100, 2, 97, 10}};
    (void)state;
    CHECK("moe", SHAPES);
}

static void experts_counts(void **state)
{
    const struct kern_shape s = {{3, 7, 11, 2, 9, 5}, KERN_BF16};
    struct kern_counts c = {.flops = 0};
    (void)state;
    for (int t = 0; t < 3; t++) {
        c.read_bytes += 7 * 2 + 9 * 4;
        c.written_bytes += 7 * 2;
        for (int j = 0; j < 2; j++) {
            c.vector_flops += 9 + 4 + 2 * 7;
            for (int f = 0; f < 11; f++) {
                c.vector_flops += 5;
                for (int d = 0; d < 7; d++) {
                    c.flops += 3 * 2;
                    if (t * 2 + j < 5) c.read_bytes += 3 * 2; /* an expert is read for its first token */
                }
            }
        }
    }
    counted("moe", &s, &c);
}

static void writes_at_odd_shapes(void **state)
{
    static const int64_t SHAPES[][3] = {{1, 1, 1},    {2, 3, 15},  {7, 1, 16},   {13, 5, 17},
                                        {29, 2, 127}, {3, 8, 128}, {101, 3, 129}};
    (void)state;
    CHECK("kv-write", SHAPES);
}

/* Stores past the caches: as on a machine whose second cache holds next to nothing. */
static void past_the_caches(void **state)
{
    static const int64_t WRITES[][3] = {{29, 2, 128}, {3, 3, 64}, {5, 1, 96}, {7, 2, 33}};
    static const int64_t NORMS[][2] = {{5, 4096}, {3, 2048 + 32}, {11, 96}, {2, 1021}};
    struct kern_machine m;
    (void)state;
    kern_machine_open(&m);
    m.cache_bytes[1] = 1;
    for (size_t i = 0; i < sizeof WRITES / sizeof WRITES[0]; i++) kernel_check(kern_find("kv-write"), &m, WRITES[i]);
    for (size_t i = 0; i < sizeof NORMS / sizeof NORMS[0]; i++) kernel_check(kern_find("rmsnorm"), &m, NORMS[i]);
    kern_machine_close(&m);
}

static void writes_counts(void **state)
{
    (void)state;
    for (int f = 0; f < 3; f++) {
        static const enum kern_dtype FORMATS[] = {KERN_INT8, KERN_BF16, KERN_FP8};
        const struct kern_shape s = {{5, 3, 7}, FORMATS[f]};
        const int bytes = FORMATS[f] == KERN_BF16 ? 2 : 1;
        struct kern_counts c = {.flops = 0};
        for (int t = 0; t < 5; t++) {
            c.read_bytes += 4; /* its slot */
            for (int row = 0; row < 2 * 3; row++) {
                c.vector_flops += bytes == 1 ? 2 : 0;
                c.written_bytes += bytes == 1 ? 4 : 0;
                for (int d = 0; d < 7; d++) {
                    c.vector_flops += bytes == 1 ? 4 : 0;
                    c.read_bytes += 2;
                    c.written_bytes += bytes;
                }
            }
        }
        counted("kv-write", &s, &c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_at_odd_shapes),  cmocka_unit_test(verify_refuses_what_cannot_be),
        cmocka_unit_test(verify_counts),         cmocka_unit_test(norm_at_odd_shapes),
        cmocka_unit_test(norm_counts),           cmocka_unit_test(mamba_at_odd_shapes),
        cmocka_unit_test(mamba_counts),          cmocka_unit_test(latent_at_odd_shapes),
        cmocka_unit_test(experts_at_odd_shapes), cmocka_unit_test(experts_counts),
        cmocka_unit_test(writes_at_odd_shapes),  cmocka_unit_test(past_the_caches),
        cmocka_unit_test(writes_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
