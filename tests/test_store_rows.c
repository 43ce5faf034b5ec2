/* The store as measured rows: which ceilings describe this-cpu, which results are rows of which device, and one core's
 * times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calc/cli/store_rows.h"
#include "calc/cli/this_cpu.h"
#include "probe/store.h"
#include "tests/scratch.h"

#define assert_near(x, y, most) assert_true(fabs((x) - (y)) <= (most))

#define IDENTITY "{\"name\":\"Core 7\",\"cores\":3,\"memory_bytes\":6.1e10,\"cache_bytes\":[49152,2000000,37000000]}"

#define OTHER_IDENTITY                                                                                                 \
    "{\"name\":\"Core "                                                                                                \
    "7\",\"cores\":3,\"memory_bytes\":6.1e10,\"cache_bytes\":[49152,2000000,37000000],\"system\":\"5\"}"

static int begin(void **state)
{
    *state = arena_open();
    return *state ? 0 : -1;
}

static int end(void **state)
{
    arena_close(*state);
    return 0;
}

/* A measured result of so many seconds, of a run that began at `started`. */
static struct result result_of(int64_t id, const char *started, const char *kernel, const char *ceiling, double time_s)
{
    const double nan = (double)NAN;
    return (struct result){.id = id,
                           .origin = {"Core 7", IDENTITY, "ridge v1", "ridge probe ceilings", started},
                           .made = started,
                           .kernel = kernel,
                           .variant = "wide",
                           .dtype = "fp32",
                           .unit = "fp32",
                           .row_kind = "",
                           .cold = true,
                           .outcome = RESULT_MEASURED,
                           .reason = "",
                           .stop = SAMPLE_QUIET,
                           .seed = 7,
                           .calls = 1,
                           .copies = 1,
                           .checked = 11,
                           .error_frac = 0,
                           .tolerance_frac = 1e-5,
                           .flops = 7.7e9,
                           .vector_flops = 0,
                           .read_bytes = 3.1e9,
                           .written_bytes = 0,
                           .footprint_bytes = 3.1e9,
                           .before = {nan, nan, nan, nan},
                           .after = {nan, nan, nan, nan},
                           .summary = {.n = 1, .median_s = time_s, .least_s = time_s, .q1_s = time_s, .q3_s = time_s},
                           .ceiling = ceiling,
                           .cells = ""};
}

/* Two quiet runs and a noisy one behind them. */
static size_t ceilings(struct result *r)
{
    static const char FIRST[] = "2026-11-01T00:00:01Z", SECOND[] = "2026-11-02T00:00:02Z",
                      NOISY[] = "2026-11-03T00:00:03Z";
    size_t n = 0;
    r[n] = result_of(3, FIRST, "fma", "compute", 0.01);
    r[n++].origin.identity = OTHER_IDENTITY; /* other software: no ceilings of this one */
    r[n] = result_of(5, FIRST, "stream-read", "read", 0.01);
    r[n++].origin.identity = OTHER_IDENTITY;
    r[n++] = result_of(11, SECOND, "fma", "compute", 0.11); /* 7e10 */
    r[n++] = result_of(13, SECOND, "fma", "compute", 0.1);  /* 7.7e10, the best */
    r[n] = result_of(17, SECOND, "fma", "compute", 0.05);
    r[n++].unit = "bf16-dot"; /* 1.54e11 */
    r[n] = result_of(18, SECOND, "fma", "compute", 0.04);
    r[n++].unit = "int8-dot";                                    /* 1.925e11 */
    r[n++] = result_of(19, SECOND, "stream-read", "read", 0.2);  /* 1.55e10 */
    r[n++] = result_of(23, SECOND, "stream-read", "read", 0.19); /* 1.632e10 */
    r[n] = result_of(29, SECOND, "stream-copy", "bandwidth", 0.1);
    r[n++].read_bytes = 9e9; /* copying is no reading */
    r[n] = result_of(31, SECOND, "stream-read", "read", 0.01);
    r[n].cold = false;
    r[n++].footprint_bytes = 24576; /* half of the first cache: 3.1e11 */
    r[n] = result_of(37, SECOND, "stream-read", "read", 0.04);
    r[n].cold = false;
    r[n++].footprint_bytes = 18500000;                     /* half of the last one: 7.75e10 */
    r[n++] = result_of(41, NOISY, "fma", "compute", 0.15); /* 5.1e10, others had the core */
    r[n] = result_of(43, NOISY, "stream-read", "read", 0.001);
    r[n++].outcome = RESULT_NOISY;
    return n;
}

static void check_device(const struct hw *hw)
{
    assert_string_equal(hw->key, "this-cpu");
    assert_string_equal(hw->name, "Core 7");
    assert_string_equal(hw->device_kind, "cpu");
    assert_near(hw->peak_flops_per_s[HW_FP32_VECTOR], 7.7e10, 1);
    assert_near(hw->peak_flops_per_s[HW_FP16], 7.7e10, 1);
    assert_near(hw->peak_flops_per_s[HW_BF16], 1.54e11, 1);
    assert_near(hw->peak_flops_per_s[HW_INT8], 1.925e11, 1);
    assert_near(hw->peak_flops_per_s[HW_INT4], 1.54e11, 1);
    assert_near(hw->bandwidth_bytes_per_s, 3.1e9 / 0.19, 1);
    assert_near(hw->l2_bytes, 37e6, 0);
    assert_near(hw->memory_visible_bytes, 6.1e10, 0);
    assert_near(hw_capacity_bytes(hw), 6.1e10, 0);
    assert_near(hw->cache_bytes_per_s[0], 3.1e11, 1);
    assert_true(isnan(hw->cache_bytes_per_s[1]));
    assert_near(hw->cache_bytes_per_s[2], 7.75e10, 1);
    assert_int_equal(hw->origin[HW_BANDWIDTH].status, HW_READ);
    assert_int_equal(hw->origin[HW_LINK].status, HW_ABSENT);
}

static void newest_quiet_ceilings_are_the_device(void **state)
{
    struct result r[16];
    struct this_cpu cpu;
    struct err e = {.code = ERR_OK};
    const size_t n = ceilings(r);
    if (this_cpu_make(*state, "m.db", r, n, 1, &cpu, &e) != ERR_OK) fail_msg("%s", e.text);
    check_device(&cpu.hw);
    assert_string_equal(cpu.said,
                        "Core 7, one core: ceilings of 2026-11-02T00:00:02Z to 2026-11-03T00:00:03Z, results 11 to 41 "
                        "of m.db, the best of 2 sets (reading memory: 16.32 GB/s of 2026-11-02T00:00:02Z); peak fp32: "
                        "51.33 GFLOP/s in the last set, 33 % below 77 GFLOP/s of 2026-11-02T00:00:02Z: other work "
                        "on this machine; the last set is partial, without peak bf16-dot, peak int8-dot, reading "
                        "memory, moving memory, reading L1, reading the last cache; partial: no set has reading L2");
    /* another program's result between those of a run changes nothing; a card's ceilings are no CPU's */
    r[n] = result_of(47, "2026-11-04T00:00:04Z", "fma", "compute", 0.001);
    r[n].origin.identity = "{\"name\":\"Card\",\"cache_bytes\":[1,2,3]}";
    assert_int_equal(this_cpu_make(*state, "m.db", r, n + 1, 1, &cpu, &e), ERR_OK);
    check_device(&cpu.hw);
    /* without the good run the first counts, whose numbers are others */
    assert_int_equal(this_cpu_make(*state, "m.db", r, 2, 1, &cpu, &e), ERR_OK);
    assert_near(cpu.hw.peak_flops_per_s[HW_FP32_VECTOR], 7.7e11, 1);
    assert_near(cpu.hw.peak_flops_per_s[HW_BF16], 7.7e11, 1);
    assert_int_equal(this_cpu_make(*state, "m.db", r + n - 2, 2, 1, &cpu, &e), ERR_NO);
    assert_non_null(strstr(e.text, "ridge probe ceilings"));
    assert_int_equal(this_cpu_make(*state, "m.db", r, 0, 1, &cpu, &e), ERR_NO);
    r[n].origin.identity = "not JSON";
    assert_int_equal(this_cpu_make(*state, "m.db", r, n + 1, 1, &cpu, &e), ERR_OK);
    check_device(&cpu.hw);
    assert_int_equal(this_cpu_make(*state, "m.db", r + n, 1, 1, &cpu, &e), ERR_INPUT);
    /* tiles are the faster unit of bf16 where there are some */
    r[n] = result_of(48, "2026-11-02T00:00:02Z", "fma", "compute", 0.01);
    r[n].unit = "bf16-tile";
    assert_int_equal(this_cpu_make(*state, "m.db", r, n + 1, 1, &cpu, &e), ERR_OK);
    assert_near(cpu.hw.peak_flops_per_s[HW_BF16], 7.7e11, 1);
    assert_near(cpu.hw.peak_flops_per_s[HW_FP32_VECTOR], 7.7e10, 1);
}

/* What comes later and is worse, ended early or lost its fast codes is no other machine. */
static void later_and_worse_ceilings_are_noise(void **state)
{
    static const char EARLY[] = "2026-11-06T14:46:00Z", LATE[] = "2026-11-06T14:53:00Z";
    struct result r[8];
    struct this_cpu cpu;
    struct err e = {.code = ERR_OK};
    size_t n = 0;
    r[n++] = result_of(3, EARLY, "fma", "compute", 0.1);
    r[n++] = result_of(5, EARLY, "stream-read", "read", 3.1 / 29.84);
    r[n++] = result_of(7, LATE, "fma", "compute", 0.1);
    r[n] = result_of(11, LATE, "stream-read", "read", 0.1);
    r[n].variant = "fast";
    r[n++].outcome = RESULT_NOISY;
    r[n++] = result_of(13, LATE, "stream-read", "read", 3.1 / 17.67);
    if (this_cpu_make(*state, "m.db", r, n, 1, &cpu, &e) != ERR_OK) fail_msg("%s", e.text);
    assert_near(cpu.hw.bandwidth_bytes_per_s, 29.84e9, 1);
    assert_non_null(strstr(cpu.said, "reading memory: 17.67 GB/s in the last set, 41 % below 29.84 GB/s of "
                                     "2026-11-06T14:46:00Z: other work on this machine"));
    /* the slow set alone: the fast code had no number, and nobody knows how much that is */
    assert_int_equal(this_cpu_make(*state, "m.db", r + 2, n - 2, 1, &cpu, &e), ERR_OK);
    assert_near(cpu.hw.bandwidth_bytes_per_s, 17.67e9, 1);
    assert_non_null(strstr(cpu.said, "; reading memory: 1 code gave no number, so it may be too low"));
    assert_non_null(strstr(cpu.said, "; partial: no set has moving memory"));
    /* another kernel of the system, or threads: another machine */
    r[0].origin.identity = r[1].origin.identity = OTHER_IDENTITY;
    assert_int_equal(this_cpu_make(*state, "m.db", r, n, 1, &cpu, &e), ERR_OK);
    assert_near(cpu.hw.bandwidth_bytes_per_s, 17.67e9, 1);
    assert_null(strstr(cpu.said, "in the last set"));
}

static void the_store_keeps_what_measures_ceilings(void **state)
{
    static const struct store_access WRITE = {.write = true, .patience_s = 20};
    char dir[SCRATCH_MAX], path[SCRATCH_FILE_MAX];
    struct result r[16];
    struct store *s;
    struct this_cpu cpu;
    struct err e = {.code = ERR_OK};
    const size_t n = ceilings(r);
    (void)snprintf(path, sizeof path, "%s/m.db", scratch_dir(dir));
    assert_int_equal(this_cpu_load(*state, path, 1, &cpu, &e), ERR_NO);
    assert_non_null(strstr(e.text, "ridge probe ceilings"));
    for (size_t i = 0; i < n; i++) { /* a run each, as programs write them */
        struct arena *a = arena_open();
        struct result copy = r[i];
        double times[] = {copy.summary.median_s};
        copy.times_s = times;
        copy.times_n = 1;
        assert_int_equal(store_open(a, path, &WRITE, &s, &e), ERR_OK);
        if (store_add(s, &copy, &e) != ERR_OK) fail_msg("%s", e.text);
        arena_close(a);
    }
    struct arena *a = arena_open();
    if (this_cpu_load(a, path, 1, &cpu, &e) != ERR_OK) fail_msg("%s", e.text);
    check_device(&cpu.hw);
    arena_close(a);
}

/* -- rows -- */

static struct result product(int64_t id, int64_t m, int64_t n, int64_t k, double time_s)
{
    struct result r = result_of(id, "2026-11-05T00:00:05Z", "gemm", "", time_s);
    r.row_kind = "gemm";
    r.dtype = "bf16";
    r.shape = (struct wire_shape){3, {{"m", m}, {"n", n}, {"k", k}}};
    return r;
}

static struct this_cpu device(struct arena *a)
{
    struct result r[16];
    struct this_cpu cpu;
    assert_int_equal(this_cpu_make(a, "m.db", r, ceilings(r), 1, &cpu, NULL), ERR_OK);
    return cpu;
}

/* An own cache in fp8 has queries in bf16; an imported row says both. */
static void formats_of_attention(void **state)
{
    struct result r = result_of(3, "2026-11-05T00:00:05Z", "decode-attention", "", 1e-3);
    struct row row;
    r.row_kind = "decode";
    r.dtype = "fp8";
    r.shape = (struct wire_shape){
        6, {{"batch", 3}, {"kv_len", 511}, {"n_heads", 6}, {"n_kv_heads", 2}, {"head_dim", 72}, {"window", 0}}};
    assert_true(store_row(*state, &r, "m.db", NULL, &row));
    assert_string_equal(row.class_name, "decode/bf16/fp8/ridge/wide");
    assert_true(row.kernel.element_bytes == 2 && row.kernel.kv_element_bytes == 1);
    r.outcome = RESULT_IMPORTED;
    r.cells = "{\"framework\":\"mine\",\"kv_dtype\":\"int8\"}";
    assert_true(store_row(*state, &r, "m.db", NULL, &row));
    assert_string_equal(row.class_name, "decode/fp8/int8/mine");
    r.outcome = RESULT_MEASURED;
    r.dtype = "bf16";
    r.cells = "";
    assert_true(store_row(*state, &r, "m.db", NULL, &row));
    assert_string_equal(row.class_name, "decode/bf16/bf16/ridge/wide");
}

/* Caches in several pages are a class of their own; engines', which are in pages always, are those of the engine. */
static void pages_of_attention(void **state)
{
    static const struct {
        int64_t page, context;
        const char *class;
    } PAGES[] = {{0, 511, "decode/bf16/bf16/ridge/wide"},
                 {16, 511, "decode/bf16/bf16/ridge/pages/wide"},
                 {510, 511, "decode/bf16/bf16/ridge/pages/wide"},
                 {511, 511, "decode/bf16/bf16/ridge/wide"},
                 {1024, 511, "decode/bf16/bf16/ridge/wide"}};
    struct result r = result_of(3, "2026-11-05T00:00:05Z", "decode-attention", "", 1e-3);
    struct row row;
    r.row_kind = "decode";
    r.dtype = "bf16";
    for (size_t i = 0; i < sizeof PAGES / sizeof PAGES[0]; i++) {
        r.shape = (struct wire_shape){7,
                                      {{"batch", 3},
                                       {"kv_len", PAGES[i].context},
                                       {"n_heads", 6},
                                       {"n_kv_heads", 2},
                                       {"head_dim", 72},
                                       {"window", 0},
                                       {"page_tokens", PAGES[i].page}}};
        assert_true(store_row(*state, &r, "m.db", NULL, &row));
        assert_string_equal(row.class_name, PAGES[i].class);
        assert_true(row.kernel.page_tokens == (double)PAGES[i].page);
    }
    r.outcome = RESULT_IMPORTED;
    r.cells = "{\"framework\":\"mine\",\"kv_dtype\":\"bf16\"}";
    r.shape.arg[6].value = 16;
    assert_true(store_row(*state, &r, "m.db", NULL, &row));
    assert_string_equal(row.class_name, "decode/bf16/bf16/mine");
    r.shape.n = 6; /* a row from before */
    assert_true(store_row(*state, &r, "m.db", NULL, &row));
    assert_true(isnan(row.kernel.page_tokens));
}

/* What is written comes at the rate of moving, which is above that of reading: the bound is a floor of both. */
static void bound_of_what_writes(void **state)
{
    struct this_cpu cpu = device(*state);
    struct result r = result_of(3, "2026-11-05T00:00:05Z", "rmsnorm", "", 1e-3);
    const double read_bytes = (5 + 1) * 577 * 4, all_bytes = read_bytes + 5 * 577 * 4;
    const double reading = cpu.hw.bandwidth_bytes_per_s;
    struct row row;
    struct kernel_work w;
    r.row_kind = "elementwise";
    r.cells = "{\"op\":\"rmsnorm\"}";
    r.outcome = RESULT_IMPORTED;
    r.shape = (struct wire_shape){2, {{"num_tokens", 5}, {"hidden", 577}}};
    assert_true(store_row(*state, &r, "m.db", &cpu.hw, &row));
    row.kernel.cold = true;
    assert_near(cpu.hw.moved_bytes_per_s, 9e10, 1);
    assert_int_equal(kernel_work(&row.kernel, &cpu.hw, &w, NULL), ERR_OK);
    assert_near(w.bound_s, read_bytes / reading, 1e-12);
    cpu.hw.moved_bytes_per_s = 1.2 * reading;
    assert_int_equal(kernel_work(&row.kernel, &cpu.hw, &w, NULL), ERR_OK);
    assert_near(w.bound_s, all_bytes / (1.2 * reading), 1e-12);
    assert_near(w.credited_bound_s, w.bound_s, 0);
    cpu.hw.moved_bytes_per_s = (double)NAN;
    assert_int_equal(kernel_work(&row.kernel, &cpu.hw, &w, NULL), ERR_OK);
    assert_near(w.bound_s, all_bytes / reading, 1e-12);
}

static void results_are_rows(void **state)
{
    const struct this_cpu cpu = device(*state);
    const struct rows_filter all = {.hw = &cpu.hw};
    struct rows rows;
    struct err e = {.code = ERR_OK};
    struct store_left_out left_out;
    struct result r[] = {product(3, 5, 4099, 131, 1e-3), product(5, 7, 4099, 131, 2e-3),
                         product(7, 7, 257, 131, 3e-3),  product(11, 7, 257, 131, 4e-3),
                         product(13, 7, 257, 131, 5e-3), product(17, 7, 257, 131, 6e-3)};
    r[1].cold = false;
    r[2].outcome = RESULT_NOISY;     /* no number, no row */
    r[3].origin.device = "h100-sxm"; /* another device's */
    r[4].dtype = "bf17";             /* no format */
    r[5].outcome = RESULT_IMPORTED;  /* whose framework is in its cells */
    r[5].cells = "{\"framework\":\"mine\",\"version\":\"2\",\"state\":\"cold\"}";
    if (store_rows_make(*state, "m.db", r, 6, &all, false, &rows, &left_out, &e) != ERR_OK) fail_msg("%s", e.text);
    assert_int_equal(rows.n, 3);
    assert_int_equal(left_out.of_no_kind, 1);
    assert_string_equal(rows.v[0].class_name, "gemm/bf16/ridge/wide");
    assert_string_equal(rows.v[0].family, "4099,131");
    assert_string_equal(rows.v[0].state, "cold");
    assert_int_equal(rows.v[0].line, 3);
    assert_true(rows.v[0].kernel.cold && rows.v[0].kernel.host && rows.v[0].kernel.m == 5);
    assert_true(!rows.v[1].kernel.cold && rows.v[1].time_s == 2e-3);
    assert_string_equal(rows.v[2].class_name, "gemm/bf16/mine");
    assert_true(rows.v[2].kernel.cold); /* as its file says, whatever the result does */
    assert_int_equal(rows.files_n, 1);
    assert_int_equal(strlen(rows.files[0].hash), 16);
    const char *hash = rows.files[0].hash;
    assert_int_equal(left_out.impossible, 0);
    r[5].unit = "";               /* nobody saw the ceilings around it */
    r[5].summary.median_s = 1e-9; /* nobody's product of 7x257x131 */
    assert_int_equal(store_rows_make(*state, "m.db", r, 6, &all, false, &rows, &left_out, &e), ERR_OK);
    assert_int_equal(rows.n, 2);
    assert_int_equal(left_out.impossible, 1);
    r[5].summary.median_s = 6e-3;
    r[0].summary.median_s = 1.5e-3; /* other rows, another hash */
    assert_int_equal(store_rows_make(*state, "m.db", r, 6, &all, false, &rows, &left_out, &e), ERR_OK);
    assert_string_not_equal(rows.files[0].hash, hash);
    const struct rows_filter mine = {.hw = &cpu.hw, .framework = "mine"}, moe = {.hw = &cpu.hw, .kinds = "moe"},
                             bad = {.hw = &cpu.hw, .kinds = "gem"};
    assert_int_equal(store_rows_make(*state, "m.db", r, 6, &mine, false, &rows, &left_out, &e), ERR_OK);
    assert_int_equal(rows.n, 1);
    assert_int_equal(store_rows_make(*state, "m.db", r, 6, &moe, false, &rows, &left_out, &e), ERR_NO);
    assert_int_equal(store_rows_make(*state, "m.db", r, 6, &bad, false, &rows, &left_out, &e), ERR_USAGE);
    /* a built-in device, by its key, its name or an alias; its rows are not of a core */
    struct hw card;
    assert_int_equal(hw_load(*state, "h100-sxm", &card, &e), ERR_OK);
    const struct rows_filter of_card = {.hw = &card};
    assert_int_equal(store_rows_make(*state, "m.db", r, 6, &of_card, false, &rows, &left_out, &e), ERR_OK);
    assert_int_equal(rows.n, 1);
    assert_false(rows.v[0].kernel.host);
}

/* A result is held to the better of the ceilings around it; without them it is a row, and no fit has it. */
static void ceilings_around_a_result(void **state)
{
    const struct this_cpu cpu = device(*state);
    struct result r = product(3, 5, 4099, 131, 1e-3);
    struct row row;
    struct kernel_work w;
    const double peak = cpu.hw.peak_flops_per_s[HW_BF16], read = cpu.hw.bandwidth_bytes_per_s, nan = (double)NAN;
    r.flops = 2.0 * 5 * 4099 * 131;
    r.unit = "bf16-dot";
    r.before = (struct result_ceilings){0.7 * peak, 0.8 * read, nan, nan};
    r.after = (struct result_ceilings){0.9 * peak, 0.6 * read, nan, nan};
    assert_true(store_row(*state, &r, "m.db", &cpu.hw, &row));
    assert_near(row.kernel.compute_slower, 1 / 0.9, 1e-12);
    assert_near(row.kernel.memory_slower, 1 / 0.8, 1e-12);
    assert_false(row.uncalibrated);
    assert_int_equal(kernel_work(&row.kernel, &cpu.hw, &w, NULL), ERR_OK);
    assert_near(w.compute_s, r.flops / (0.9 * peak), 1e-15);
    r.unit = "fp32"; /* the unit that computed it, beside its own peak */
    assert_true(store_row(*state, &r, "m.db", &cpu.hw, &row));
    assert_near(row.kernel.compute_slower, cpu.hw.peak_flops_per_s[HW_FP32_VECTOR] / (0.9 * peak), 1e-12);
    r.before.read_bytes_per_s = nan; /* one of them is enough */
    assert_true(store_row(*state, &r, "m.db", &cpu.hw, &row));
    assert_near(row.kernel.memory_slower, 1 / 0.6, 1e-12);
    assert_false(row.uncalibrated);
    r.after.read_bytes_per_s = nan;
    assert_true(store_row(*state, &r, "m.db", &cpu.hw, &row));
    assert_true(row.uncalibrated);
    r.outcome = RESULT_IMPORTED; /* of a store that exported them, as of this one; of another file nobody knows them */
    r.before.read_bytes_per_s = 0.8 * read;
    assert_true(store_row(*state, &r, "m.db", &cpu.hw, &row));
    assert_near(row.kernel.memory_slower, 1 / 0.8, 1e-12);
    r.unit = "";
    r.cells = "{\"framework\":\"mine\",\"state\":\"cold\"}";
    assert_true(store_row(*state, &r, "m.db", &cpu.hw, &row));
    assert_true(row.kernel.compute_slower == 0 && row.kernel.memory_slower == 0 && !row.uncalibrated && row.imported);
}

/* A hot result is held to how an array of its size was read beside it. */
static void caches_around_a_result(void **state)
{
    const struct this_cpu cpu = device(*state);
    struct result r = product(3, 5, 4099, 131, 1e-3);
    struct row row;
    struct kernel_work plain, w;
    const double peak = cpu.hw.peak_flops_per_s[HW_BF16], nan = (double)NAN;
    r.flops = 2.0 * 5 * 4099 * 131;
    r.unit = "bf16-dot";
    r.cold = false;
    r.before = r.after = (struct result_ceilings){peak, nan, nan, nan};
    assert_true(store_row(*state, &r, "m.db", &cpu.hw, &row));
    assert_true(row.uncalibrated && row.kernel.memory_slower == 0);
    assert_int_equal(kernel_work(&row.kernel, &cpu.hw, &plain, NULL), ERR_OK);
    const double rate = plain.bytes / plain.memory_s;
    r.before.read_bytes_per_s = 0.7 * rate;
    r.after.read_bytes_per_s = 0.9 * rate;
    assert_true(store_row(*state, &r, "m.db", &cpu.hw, &row));
    assert_false(row.uncalibrated);
    assert_near(row.kernel.memory_slower, 1 / 0.9, 1e-12);
    assert_int_equal(kernel_work(&row.kernel, &cpu.hw, &w, NULL), ERR_OK);
    assert_near(w.memory_s / plain.memory_s, 1 / 0.9, 1e-12);
}

/* What `probe run` shows beside a result is what `validate` shows: both are held to the same ceilings, cold and hot,
 * whether flops, reading or all bytes bind. */
static void one_bound_everywhere(void **state)
{
    struct this_cpu cpu = device(*state);
    cpu.hw.moved_bytes_per_s = 1.25 * cpu.hw.bandwidth_bytes_per_s;
    static const double SHAPES[][3] = {{1, 4099, 131}, {509, 1031, 1021}, {127, 4099, 3}};
    for (size_t i = 0; i < 2 * sizeof SHAPES / sizeof SHAPES[0]; i++) {
        const double *s = SHAPES[i / 2], m = s[0], n = s[1], k = s[2];
        const double peak = cpu.hw.peak_flops_per_s[HW_BF16], read = cpu.hw.bandwidth_bytes_per_s;
        struct result r = product(3, (int64_t)m, (int64_t)n, (int64_t)k, 1e-3);
        struct row row;
        struct kernel_work w;
        r.cold = i % 2;
        r.unit = "bf16-dot";
        r.flops = 2 * m * n * k;
        r.read_bytes = 2 * (m + n) * k;
        r.written_bytes = 2 * m * n;
        r.before = (struct result_ceilings){0.7 * peak, 0.8 * read, 0.8 * 1.25 * read, (double)NAN};
        r.after = (struct result_ceilings){0.9 * peak, 0.6 * read, 0.6 * 1.25 * read, (double)NAN};
        if (!r.cold) r.before.moved_bytes_per_s = r.after.moved_bytes_per_s = (double)NAN;
        const double all = r.read_bytes + r.written_bytes, bound_s = result_bound_s(&r, r.flops, r.read_bytes, all);
        const double by_hand_s = fmax(r.flops / (0.9 * peak), r.read_bytes / (0.8 * read));
        assert_near(bound_s / fmax(by_hand_s, r.cold ? all / read : 0), 1, 1e-12);
        assert_true(store_row(*state, &r, "m.db", &cpu.hw, &row));
        assert_int_equal(kernel_work(&row.kernel, &cpu.hw, &w, NULL), ERR_OK);
        assert_near(w.bound_s / bound_s, 1, 1e-12);
    }
}

/* Of one call the results that were much slower at one time than at another, by what the ceilings allowed, are in no
 * fit. */
static void slowed_results(void **state)
{
    const struct this_cpu cpu = device(*state);
    const struct rows_filter all = {.hw = &cpu.hw};
    const double peak = cpu.hw.peak_flops_per_s[HW_BF16], read = cpu.hw.bandwidth_bytes_per_s, nan = (double)NAN;
    struct rows rows;
    struct store_left_out left_out;
    struct result r[] = {product(3, 5, 4099, 131, 1e-3),    product(5, 5, 4099, 131, 1.09e-3),
                         product(7, 5, 4099, 131, 1.13e-3), product(11, 5, 4099, 131, 1.13e-3),
                         product(13, 7, 4099, 131, 2e-3),   product(17, 5, 4099, 131, 1.3e-3)};
    for (size_t i = 0; i < 6; i++) {
        r[i].flops = 2.0 * (double)r[i].shape.arg[0].value * 4099 * 131;
        r[i].unit = "bf16-dot";
        r[i].before = r[i].after = (struct result_ceilings){peak, read, nan, nan};
    }
    r[3].before.read_bytes_per_s = r[3].after.read_bytes_per_s = read / 1.13; /* so was memory */
    r[3].before.peak_flops_per_s = r[3].after.peak_flops_per_s = peak / 1.13;
    r[5].variant = "other"; /* other code */
    assert_int_equal(store_rows_make(*state, "m.db", r, 6, &all, false, &rows, &left_out, NULL), ERR_OK);
    assert_int_equal(rows.n, 6);
    for (size_t i = 0; i < 6; i++) assert_true(rows.v[i].uncalibrated == (i == 2));
}

/* Own results before imported rows of the same call by the same code, or after them. */
static void own_before_imported(void **state)
{
    const struct this_cpu cpu = device(*state);
    const struct rows_filter all = {.hw = &cpu.hw};
    struct rows rows;
    struct store_left_out left_out;
    struct result r[] = {product(3, 5, 4099, 131, 1e-3), product(5, 5, 4099, 131, 7e-3), product(7, 5, 4099, 131, 8e-3),
                         product(11, 7, 4099, 131, 9e-3), product(13, 5, 4099, 131, 6e-3)};
    const char *cells[] = {"", "{\"framework\":\"ridge\",\"kernel\":\"wide\",\"state\":\"cold\"}",
                           "{\"framework\":\"ridge\",\"kernel\":\"wide\",\"state\":\"hot\"}",
                           "{\"framework\":\"ridge\",\"kernel\":\"wide\",\"state\":\"cold\"}",
                           "{\"framework\":\"mine\",\"kernel\":\"wide\",\"state\":\"cold\"}"};
    for (size_t i = 1; i < 5; i++) {
        r[i].outcome = RESULT_IMPORTED;
        r[i].cells = cells[i];
    }
    assert_int_equal(store_rows_make(*state, "m.db", r, 5, &all, false, &rows, &left_out, NULL), ERR_OK);
    assert_int_equal(left_out.second, 1); /* hot, of another batch, of other code: other rows */
    assert_int_equal(rows.n, 4);
    assert_true(rows.v[0].time_s == 1e-3 && rows.v[1].time_s == 8e-3);
    assert_int_equal(store_rows_make(*state, "m.db", r, 5, &all, true, &rows, &left_out, NULL), ERR_OK);
    assert_int_equal(left_out.second, 1);
    assert_true(rows.n == 4 && rows.v[0].time_s == 7e-3);
    r[0].kernel = "other"; /* nothing imported is of it: both count */
    r[0].variant = "narrow";
    assert_int_equal(store_rows_make(*state, "m.db", r, 5, &all, false, &rows, &left_out, NULL), ERR_OK);
    assert_int_equal(left_out.second, 0);
    assert_int_equal(rows.n, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(newest_quiet_ceilings_are_the_device, begin, end),
        cmocka_unit_test_setup_teardown(later_and_worse_ceilings_are_noise, begin, end),
        cmocka_unit_test_setup_teardown(the_store_keeps_what_measures_ceilings, begin, end),
        cmocka_unit_test_setup_teardown(formats_of_attention, begin, end),
        cmocka_unit_test_setup_teardown(pages_of_attention, begin, end),
        cmocka_unit_test_setup_teardown(bound_of_what_writes, begin, end),
        cmocka_unit_test_setup_teardown(results_are_rows, begin, end),
        cmocka_unit_test_setup_teardown(ceilings_around_a_result, begin, end),
        cmocka_unit_test_setup_teardown(caches_around_a_result, begin, end),
        cmocka_unit_test_setup_teardown(one_bound_everywhere, begin, end),
        cmocka_unit_test_setup_teardown(slowed_results, begin, end),
        cmocka_unit_test_setup_teardown(own_before_imported, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
