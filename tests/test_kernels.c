/* kernels: every variant that this machine can run against the reference, at odd shapes; counts against the model's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/cli/probe_rows.h"
#include "kernels/kernel.h"
#include "probe/worker/flush.h"
#include "probe/worker/work.h"
#include "tests/kernel_check.h"

static const double ROOM_BYTES = 1e9; /* not a unit */

static void gemm_at_odd_shapes(void **state)
{
    static const int64_t SHAPES[][3] = {
        {1, 1, 1},      {1, 17, 3},     {2, 15, 7},      {3, 16, 1},     {4, 33, 129},  {5, 127, 64},   {6, 31, 65},
        {7, 130, 13},   {8, 48, 255},   {9, 37, 100},    {10, 65, 33},   {11, 19, 77},  {12, 97, 41},   {13, 131, 383},
        {14, 16, 384},  {15, 40, 385},  {16, 129, 769},  {25, 63, 391},  {37, 71, 131}, {145, 33, 400}, {289, 17, 29},
        {49, 95, 1057}, {64, 31, 2113}, {273, 65, 1025}, {530, 100, 33},
    };
    struct kern_machine m;
    (void)state;
    kern_machine_open(&m);
    const struct kern *k = kern_find("gemm");
    size_t ran = 0;
    for (size_t i = 0; i < sizeof SHAPES / sizeof SHAPES[0]; i++) ran += kernel_check(k, &m, SHAPES[i]);
    assert_true(ran >= 2 * sizeof SHAPES / sizeof SHAPES[0]);
    kern_machine_close(&m);
}

static void streams_at_odd_sizes(void **state)
{
    static const int64_t SIZES[] = {1, 2, 15, 16, 17, 63, 64, 65, 127, 1000, 1023, 4096, 10007, 65537};
    static const int64_t PIECES[][2] = {{64, 64}, {128, 64}, {7 * 320, 320}, {9 * 1024, 1024}, {31 * 192, 192}};
    static const char *const NAMES[] = {"stream-read", "stream-copy", "stream-triad", "stream-update"};
    struct kern_machine m;
    (void)state;
    kern_machine_open(&m);
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        for (size_t j = 0; j < sizeof SIZES / sizeof SIZES[0]; j++) {
            const int64_t v[3] = {SIZES[j]};
            assert_true(kernel_check(kern_find(NAMES[i]), &m, v) > 0);
        }
    kern_machine_close(&m);
    kernel_check_all("stream-gather", PIECES[0], sizeof PIECES / sizeof PIECES[0]);
}

static void peaks_compute(void **state)
{
    static const int64_t SHAPES[][3] = {{192, 1}, {192, 17}, {384, 1001}, {1920, 3}, {1536, 16}, {1728, 31}};
    struct kern_machine m;
    (void)state;
    kern_machine_open(&m);
    for (size_t i = 0; i < sizeof SHAPES / sizeof SHAPES[0]; i++)
        assert_true(kernel_check(kern_find("fma"), &m, SHAPES[i]) > 0);
    const struct kern_shape odd = {{193, 1}, KERN_FP32};
    char text[128];
    assert_non_null(kern_shape_check(kern_find("fma"), &odd, text, sizeof text));
    kern_machine_close(&m);
}

/* -- a variant that is wrong is found -- */

static void wrong_factor(const struct kern_call *c)
{
    for (int64_t i = 0; i < c->shape->v[0]; i++)
        ((float *)c->buffer[2])[i] = ((const float *)c->buffer[0])[i] + 3.001F * ((const float *)c->buffer[1])[i];
}

static void skips_last(const struct kern_call *c)
{
    for (int64_t i = 0; i + 1 < c->shape->v[0]; i++)
        ((float *)c->buffer[2])[i] = ((const float *)c->buffer[0])[i] + 3 * ((const float *)c->buffer[1])[i];
}

static void writes_beyond(const struct kern_call *c)
{
    for (int64_t i = 0; i < c->shape->v[0]; i++)
        ((float *)c->buffer[2])[i] = ((const float *)c->buffer[0])[i] + 3 * ((const float *)c->buffer[1])[i];
    ((float *)c->buffer[2])[c->shape->v[0]] = 1;
}

static void does_nothing(const struct kern_call *c) { (void)c; }

static void wrong_code_is_found(void **state)
{
    static const struct kern_variant WRONG[] = {
        {.name = "factor", .dtypes = KERN_HAS(KERN_FP32), .run = wrong_factor},
        {.name = "last", .dtypes = KERN_HAS(KERN_FP32), .run = skips_last},
        {.name = "beyond", .dtypes = KERN_HAS(KERN_FP32), .run = writes_beyond},
        {.name = "nothing", .dtypes = KERN_HAS(KERN_FP32), .run = does_nothing},
    };
    struct kern_machine m;
    (void)state;
    kern_machine_open(&m);
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        const struct work_spec spec = {
            .kernel = kern_find("stream-triad"), .variant = &WRONG[i], .shape = {{100003}, KERN_FP32}, .seed = 3};
        struct work w;
        char text[256];
        double error;
        size_t checked;
        assert_null(work_open(&spec, &m, ROOM_BYTES, &w, text, sizeof text));
        assert_non_null(work_check(&w, &error, &checked, text, sizeof text));
        work_close(&w);
    }
    kern_machine_close(&m);
}

/* Cold calls go through copies that together exceed the last cache several times; each is called and right. */
static void cold_calls_rotate(void **state)
{
    struct kern_machine m = {.cache_bytes = {1e4, 1e5, 1e6}, .blas_name = ""};
    const struct kern *k = kern_find("gemm");
    static struct work_times t;
    (void)state;
    for (size_t i = 0; i < k->variants_n; i++) {
        if (strcmp(k->variants[i].name, "portable") != 0) continue;
        struct work_spec spec = {
            .kernel = k, .variant = &k->variants[i], .shape = {{3, 101, 257}, KERN_FP32}, .cold = true, .seed = 5};
        struct work w;
        char text[256];
        double error;
        size_t checked;
        const struct sample_rule rule = {10, 0.9, 5};
        assert_null(work_open(&spec, &m, ROOM_BYTES, &w, text, sizeof text));
        assert_true((double)w.copies * w.footprint_bytes >= 8e6);
        for (size_t c = 1; c < w.copies; c++) assert_ptr_not_equal(w.calls[c].packed, w.calls[c - 1].packed);
        assert_null(work_check(&w, &error, &checked, text, sizeof text));
        work_time(&w, &rule, &t);
        assert_true(t.n + t.discards_n >= 10);
        assert_null(work_check_again(&w, text, sizeof text));
        /* what a later copy holds is compared too */
        w.last = w.copies - 1;
        memset(w.calls[w.last].buffer[2], 0, 8);
        assert_non_null(work_check_again(&w, text, sizeof text));
        work_close(&w);
        spec.cold = false;
        spec.shape.v[1] = 4001;
        assert_non_null(work_open(&spec, &m, ROOM_BYTES, &w, text, sizeof text)); /* beyond the cache: never hot */
        spec.cold = true;
        assert_non_null(work_open(&spec, &m, 1e6, &w, text, sizeof text)); /* no room */
    }
}

/* What is flushed is what it was, beyond the ends of the array too, which are in the middle of lines. */
static void flushed_lines_keep_values(void **state)
{
    enum { BYTES = 5000 };
    static unsigned char data[BYTES], is[BYTES];
    (void)state;
    for (size_t from = 0; from < 130; from += 13)
        for (size_t n = 0; n < BYTES - 200; n = 3 * n + 7) {
            for (size_t i = 0; i < BYTES; i++) data[i] = is[i] = (unsigned char)(i * 37 + from + n);
            flush_lines(data + from, n);
            assert_memory_equal(data, is, BYTES);
        }
}

/* Where lines can be flushed cold calls rotate over no more than a sample takes, whatever the caches; of several
 * threads what writes more than a thirty-second of what it reads rotates through memory, since its lines are written
 * back behind the sample. */
static void cold_calls_are_flushed(void **state)
{
    static const struct {
        const char *kernel, *variant;
        struct kern_shape shape;
        unsigned threads;
        bool flushes;
    } CASES[] = {
        {"gemm", "portable", {{1, 401, 257}, KERN_FP32}, 1, true}, /* 4 * 401 of 4 * (401 + 1) * 257 bytes: 1/257 */
        {"gemm", "portable", {{64, 64, 32}, KERN_FP32}, 1, true},  /* as much as it reads */
        {"gemm", "portable", {{1, 401, 257}, KERN_FP32}, 2, true},
        {"gemm", "portable", {{64, 64, 32}, KERN_FP32}, 2, false},
        {"stream-read", "portable", {{100003}, KERN_FP32}, 2, true},
        {"stream-update", "portable", {{100003}, KERN_FP32}, 1, true},
        {"stream-update", "portable", {{100003}, KERN_FP32}, 2, false},
    };
    struct kern_machine m = {.cache_bytes = {1e4, 1e5, 1e7}, .blas_name = ""};
    static struct work_times t;
    const struct sample_rule rule = {10, 0.9, 5};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const struct kern *k = kern_find(CASES[i].kernel);
        const struct kern_variant *v = kern_variant_find(k, CASES[i].variant);
        if (!v) v = &k->variants[k->variants_n - 1];
        struct work_spec spec = {
            .kernel = k, .variant = v, .shape = CASES[i].shape, .cold = true, .seed = 5, .flush = true};
        spec.team = CASES[i].threads > 1 ? team_open(CASES[i].threads) : NULL;
        struct work w;
        char text[256];
        double error;
        size_t checked;
        assert_null(work_open(&spec, &m, ROOM_BYTES, &w, text, sizeof text));
        assert_true(w.flushes == CASES[i].flushes);
        const double bytes = (double)w.copies * w.footprint_bytes;
        if (w.flushes) assert_true(bytes < WORK_FLUSHED_BYTES * CASES[i].threads + w.footprint_bytes);
        if (!w.flushes) assert_true(bytes >= 7e7);
        assert_null(work_check(&w, &error, &checked, text, sizeof text));
        work_time(&w, &rule, &t);
        assert_true(t.n + t.discards_n >= 10);
        if (w.flushes) assert_true(t.calls <= w.copies); /* a copy is cold once */
        assert_null(work_check_again(&w, text, sizeof text));
        work_close(&w);
        spec.flush = false; /* as on a processor that cannot */
        assert_null(work_open(&spec, &m, ROOM_BYTES, &w, text, sizeof text));
        assert_true(!w.flushes && (double)w.copies * w.footprint_bytes >= 7e7);
        work_close(&w);
        team_close(spec.team);
    }
}

/* Memory that was given back serves the next work of about its size, whatever is in it; what is larger replaces it. */
static void spare_memory_is_taken(void **state)
{
    static const int64_t SIZES[] = {100003, 100003, 60000, 300000, 100, 250000};
    static const bool TAKES[] = {false, true, true, false, false, true};
    struct kern_machine m = {.cache_bytes = {1e4, 1e5, 1e6}, .blas_name = ""};
    struct spare spare = {.at = NULL};
    (void)state;
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
        const struct kern *k = kern_find("stream-triad");
        const struct work_spec spec = {.kernel = k,
                                       .variant = &k->variants[k->variants_n - 1],
                                       .shape = {{SIZES[i]}, KERN_FP32},
                                       .seed = i,
                                       .spare = &spare};
        const char *const before = spare.at;
        struct work w;
        char text[256];
        double error;
        size_t checked;
        m.cache_bytes[2] = 1e9; /* hot: one copy */
        assert_null(work_open(&spec, &m, ROOM_BYTES, &w, text, sizeof text));
        assert_true((before && w.memory[0] == before) == TAKES[i]);
        assert_null(work_check(&w, &error, &checked, text, sizeof text));
        work_close(&w);
        assert_non_null(spare.at);
    }
    spare_close(&spare);
    assert_null(spare.at);
}

/* -- counts -- */

/* A naive loop that counts: equal to the kernel's own count, and to what the cost model says of the row. */
static void counts_agree(void **state)
{
    static const int64_t SHAPES[][3] = {{7, 11, 13}, {1, 37, 5}, {16, 3, 29}};
    const struct kern *k = kern_find("gemm");
    (void)state;
    for (size_t i = 0; i < sizeof SHAPES / sizeof SHAPES[0]; i++)
        for (int d = 0; d <= KERN_BF16; d++) {
            const struct kern_shape s = {{SHAPES[i][0], SHAPES[i][1], SHAPES[i][2]}, (enum kern_dtype)d};
            struct kern_counts c;
            double flops = 0, reads = 0, writes = 0, model_flops, model_bytes;
            const double bytes = d == KERN_FP32 ? 4 : 2;
            for (int64_t r = 0; r < s.v[0]; r++)
                for (int64_t n = 0; n < s.v[1]; n++) {
                    writes += bytes;
                    for (int64_t l = 0; l < s.v[2]; l++) {
                        flops += 2;
                        if (n == 0) reads += bytes; /* each of a once, each of w once */
                        if (r == 0) reads += bytes;
                    }
                }
            k->counts(&s, &c);
            assert_true(c.flops == flops && c.read_bytes == reads && c.written_bytes == writes);
            struct arena *a = arena_open();
            const struct result row = {.kernel = "gemm",
                                       .variant = "x",
                                       .dtype = kern_dtype_name(s.dtype),
                                       .row_kind = k->row_kind,
                                       .shape = {3, {{"m", s.v[0]}, {"n", s.v[1]}, {"k", s.v[2]}}}};
            assert_true(probe_row_work(a, &row, &model_flops, &model_bytes));
            assert_true(model_flops == flops && model_bytes == reads + writes);
            arena_close(a);
        }
}

/* -- every kernel fills the interface -- */

static void tables_are_whole(void **state)
{
    size_t n;
    char text[256];
    (void)state;
    const struct kern *const *table = kern_table(&n);
    for (size_t i = 0; i < n; i++) {
        const struct kern *k = table[i];
        assert_ptr_equal(kern_find(k->name), k);
        assert_true(k->args_n <= KERN_ARGS_MAX && k->variants_n > 0 && k->points_n > 0);
        assert_non_null(k->buffers);
        assert_non_null(k->reference);
        assert_non_null(k->reference_cost);
        assert_non_null(k->counts);
        assert_non_null(k->tolerance);
        for (size_t j = 0; j < k->points_n; j++) {
            struct kern_buffer b[KERN_BUFFERS_MAX];
            struct kern_counts c;
            double results = 0;
            assert_null(kern_shape_check(k, &k->points[j].shape, text, sizeof text));
            const size_t buffers = k->buffers(&k->points[j].shape, b);
            assert_in_range(buffers, 1, KERN_BUFFERS_MAX);
            for (size_t l = 0; l < buffers; l++) {
                if (b[l].role != KERN_OUTPUT && b[l].role != KERN_STATE) continue;
                assert_true(b[l].granule > 0 && b[l].elements % b[l].granule == 0);
                results++;
            }
            assert_true(results > 0);
            k->counts(&k->points[j].shape, &c);
            assert_true(c.flops >= 0 && (c.read_bytes > 0 || k->ceiling == KERN_CEILING_LAUNCH) && c.written_bytes > 0);
        }
        bool always = false;
        for (size_t j = 0; j < k->variants_n; j++) {
            assert_true((k->variants[j].dtypes & ~k->dtypes) == 0);
            assert_true(!k->variants[j].pack == !k->variants[j].pack_bytes);
            always = always || !k->variants[j].lacks;
        }
        assert_true(always); /* something runs on any processor */
    }
    assert_null(kern_find("no-such"));
}

/* Code for a set of instructions says what a processor without it lacks, and nothing where all of them are. */
static void code_says_what_it_lacks(void **state)
{
    size_t n;
    const struct kern *const *table = kern_table(&n);
    const struct kern_machine none = {.neon = true}, all = {.avx2_fma = true,
                                                            .avx512 = true,
                                                            .avx512_bf16 = true,
                                                            .avx512_vnni = true,
                                                            .amx_bf16 = true,
                                                            .neon = true,
                                                            .neon_bf16 = true,
                                                            .neon_dot = true};
    size_t extensions = 0;
    (void)state;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < table[i]->variants_n; j++) {
            const struct kern_variant *v = &table[i]->variants[j];
            const struct kern_shape *shape = &table[i]->points[0].shape;
            const bool basic = strcmp(v->name, "portable") == 0 || strcmp(v->name, "neon") == 0;
            if (basic) assert_null(v->lacks);
            if (!v->lacks || v->library) continue;
            assert_non_null(v->lacks(&none, shape));
            assert_null(v->lacks(&all, shape));
            extensions++;
        }
#if defined(__x86_64__) || defined(__aarch64__)
    assert_true(extensions > 9);
#endif
}

/* What multiplies by pairs goes behind one in fp32, and nothing else changes place; every variant stays. */
static void slow_pairs_stand_back(void **state)
{
    enum { MOST = 16 };
    static const struct kern_variant TABLE[] = {
        {.name = "tiles", .unit = KERN_UNIT_BF16_TILE, .dtypes = KERN_HAS(KERN_BF16)},
        {.name = "pairs", .unit = KERN_UNIT_BF16_DOT, .dtypes = KERN_HAS(KERN_BF16)},
        {.name = "wide", .unit = KERN_UNIT_FP32, .dtypes = KERN_HAS(KERN_BF16) | KERN_HAS(KERN_FP32)},
        {.name = "narrow", .unit = KERN_UNIT_FP32, .dtypes = KERN_HAS(KERN_BF16)},
        {.name = "last", .unit = KERN_UNIT_BF16_DOT, .dtypes = KERN_HAS(KERN_BF16)},
        {.name = "other", .unit = KERN_UNIT_FP32, .dtypes = KERN_HAS(KERN_FP32)},
    };
    static const size_t SLOW[] = {0, 2, 1, 3, 4, 5};
    const struct kern k = {.variants = TABLE, .variants_n = sizeof TABLE / sizeof TABLE[0]};
    const struct kern_variant *order[MOST];
    struct kern_machine m = {.pairs_slow = true};
    (void)state;
    kern_order(&k, &m, order);
    for (size_t i = 0; i < k.variants_n; i++) assert_ptr_equal(order[i], &TABLE[SLOW[i]]);
    m.pairs_slow = false;
    kern_order(&k, &m, order);
    for (size_t i = 0; i < k.variants_n; i++) assert_ptr_equal(order[i], &TABLE[i]);
}

static void elements_round(void **state)
{
    (void)state;
    assert_int_equal(kern_bf16_from(1), 0x3f80);
    assert_int_equal(kern_bf16_from(1.00390625F), 0x3f80); /* 1 + 2^-8: a tie, to even */
    assert_int_equal(kern_bf16_from(1.01171875F), 0x3f82); /* 1 + 3*2^-8: a tie, to even */
    assert_int_equal(kern_bf16_from(1.00390637F), 0x3f81); /* just above the tie */
    assert_true(isnan((double)kern_bf16_to(kern_bf16_from((float)NAN))));
    assert_true(isinf((double)kern_bf16_to(kern_bf16_from(3.4e38F)))); /* beyond the largest bf16, 3.39e38 */
    uint16_t half;
    static const struct {
        uint16_t bits;
        double v;
    } HALVES[] = {{0x3c00, 1},       {0x3555, 0.333251953125}, {0x7bff, 65504},
                  {0x0001, 0x1p-24}, {0x0400, 0x1p-14},        {0xc000, -2}};
    for (size_t i = 0; i < sizeof HALVES / sizeof HALVES[0]; i++) {
        half = HALVES[i].bits;
        assert_true(kern_read(&half, KERN_TYPE_FP16, 0) == HALVES[i].v);
    }
    enum { N = 3001 };
    static uint16_t halves[N];
    static float floats[N];
    kern_fill_normal(halves, KERN_TYPE_FP16, N, 1, 77);
    kern_fill_normal(floats, KERN_TYPE_F32, N, 1, 77);
    double mean = 0, square = 0;
    for (size_t i = 0; i < N; i++) {
        assert_true(fabs(kern_read(halves, KERN_TYPE_FP16, i) - (double)floats[i]) <=
                    fabs((double)floats[i]) * 0x1p-11 + 0x1p-25);
        mean += (double)floats[i] / N;
        square += (double)floats[i] * (double)floats[i] / N;
    }
    assert_true(fabs(mean) < 0.06 && fabs(square - 1) < 0.08);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemm_at_odd_shapes),
        cmocka_unit_test(streams_at_odd_sizes),
        cmocka_unit_test(peaks_compute),
        cmocka_unit_test(wrong_code_is_found),
        cmocka_unit_test(cold_calls_rotate),
        cmocka_unit_test(flushed_lines_keep_values),
        cmocka_unit_test(cold_calls_are_flushed),
        cmocka_unit_test(spare_memory_is_taken),
        cmocka_unit_test(counts_agree),
        cmocka_unit_test(tables_are_whole),
        cmocka_unit_test(code_says_what_it_lacks),
        cmocka_unit_test(slow_pairs_stand_back),
        cmocka_unit_test(elements_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
