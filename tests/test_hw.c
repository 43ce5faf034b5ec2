/* Linked with the embedded files of the build. Runs in the root of the checkout. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calc/base/embed.h"
#include "calc/time/hw.h"
#include "tests/scratch.h"

static int open_arena(void **state)
{
    *state = arena_open();
    return *state == NULL;
}

static int close_arena(void **state)
{
    arena_close(*state);
    return 0;
}

static void assert_near(double found, double wanted, double tolerance)
{
    if (!(fabs(found - wanted) <= tolerance)) fail_msg("found %.17g, wanted %.17g", found, wanted);
}

static struct hw load(struct arena *a, const char *name)
{
    struct hw hw = {.file = NULL};
    struct err e = {.code = ERR_OK};
    if (hw_load(a, name, &hw, &e) != ERR_OK) fail_msg("%s: %s", name, e.text);
    return hw;
}

static struct hw parse(struct arena *a, const char *text)
{
    struct json j;
    struct hw hw = {.file = NULL};
    struct err e = {.code = ERR_OK};
    if (json_parse(a, "mine.json", text, strlen(text), &j, &e) != ERR_OK || hw_parse(&j, &hw, &e) != ERR_OK)
        fail_msg("%s: %s", text, e.text);
    return hw;
}

static void refuses(struct arena *a, const char *text, const char *sentence)
{
    struct json j;
    struct hw hw = {.sm_count = 1237};
    struct err e = {.code = ERR_OK};
    assert_int_equal(json_parse(a, "mine.json", text, strlen(text), &j, &e), ERR_OK);
    assert_int_equal(hw_parse(&j, &hw, &e), ERR_INPUT);
    assert_int_equal(e.code, ERR_INPUT);
    if (!strstr(e.text, sentence) || !strstr(e.text, "mine.json: "))
        fail_msg("\"%s\" does not say \"%s\"", e.text, sentence);
    assert_true(hw.sm_count == 1237); /* untouched */
    assert_int_equal(hw_parse(&j, &hw, NULL), ERR_INPUT);
}

/* -- the files -- */

static void test_every_file_loads_with_sources(void **state)
{
    glob_t g;
    assert_int_equal(glob("configs/hardware/*.json", 0, NULL, &g), 0);
    assert_true(g.gl_pathc >= 60);
    assert_int_equal(g.gl_pathc, hw_builtins_n());
    for (size_t i = 0; i < g.gl_pathc; i++) {
        const struct hw hw = load(*state, g.gl_pathv[i]);
        assert_non_null(hw.vendor);
        assert_non_null(hw.device_kind);
        assert_true(hw_capacity_bytes(&hw) > 1e8);
        for (int f = 0; f < HW_FIELDS_N; f++) {
            const struct hw_origin *o = &hw.origin[f];
            assert_int_equal(isnan(hw_value(&hw, (enum hw_field)f)), o->status == HW_ABSENT);
            if (o->status == HW_ABSENT) continue;
            if (!o->source || !o->source[0] || !o->date || strlen(o->date) != 7)
                fail_msg("%s: %s: no source or date", hw.file, hw_field_key((enum hw_field)f));
            if (o->status == HW_CONFLICT && !o->note)
                fail_msg("%s: %s: the note must name the values", hw.file, hw_field_key((enum hw_field)f));
            const bool memory = strstr(o->source, "not read") || strstr(o->source, "not observed");
            if (memory && o->status == HW_READ)
                fail_msg("%s: %s: read or not?", hw.file, hw_field_key((enum hw_field)f));
        }
    }
    globfree(&g);
}

static void test_embedded_is_what_is_on_disk(void **state)
{
    (void)state;
    size_t n;
    const struct embed_file *f = embed_under("configs/hardware/", &n);
    for (size_t i = 0; i < n; i++) {
        FILE *in = fopen(f[i].path, "rb");
        assert_non_null(in);
        size_t k = 0;
        int c;
        while ((c = getc(in)) != EOF && k < f[i].size && f[i].bytes[k] == c) k++;
        assert_int_equal(c, EOF);
        assert_int_equal(k, f[i].size);
        assert_int_equal(f[i].bytes[k], 0);
        assert_int_equal(fclose(in), 0);
    }
}

static void test_no_name_means_two_devices(void **state)
{
    struct err e;
    for (size_t i = 0; i < hw_builtins_n(); i++) {
        struct hw hw;
        assert_int_equal(hw_load_builtin(*state, i, &hw, &e), ERR_OK);
        assert_string_equal(load(*state, hw.key).key, hw.key);
        assert_string_equal(load(*state, hw.name).key, hw.key);
        for (size_t k = 0; k < hw.aliases_n; k++) assert_string_equal(load(*state, hw.aliases[k]).key, hw.key);
    }
    struct hw hw = {.file = NULL};
    assert_int_equal(hw_load_builtin(*state, hw_builtins_n(), &hw, &e), ERR_RANGE);
}

static void test_h100_in_base_units(void **state)
{
    const struct hw hw = load(*state, "H100_SXM");
    assert_string_equal(hw.file, "configs/hardware/h100-sxm.json");
    assert_string_equal(hw.key, "h100-sxm");
    assert_true(hw.memory_label_bytes == 80e9);
    assert_near(hw.memory_visible_bytes, 79.65 * 1073741824, 1);
    assert_near(hw_capacity_bytes(&hw), 79.19 * 1073741824, 1);
    assert_near(hw.bandwidth_bytes_per_s, 3.35e12, 1);
    assert_near(hw.peak_flops_per_s[HW_BF16], 989.4e12, 1);
    assert_near(hw.peak_flops_per_s[HW_INT8], 1978.9e12, 1);
    assert_near(hw_ridge(&hw, HW_BF16), 295.3, 0.05);
    assert_near(hw_ridge(&hw, HW_FP8), 1978.9 / 3.35, 1e-9);
    assert_true(isnan(hw_ridge(&hw, HW_FP4)));
    assert_true(hw.sm_count == 132 && hw.l2_bytes == 50 * 1048576.0 && hw.power_w == 700 && hw.nvls);
    assert_near(hw.link_bytes_per_s, 450e9, 1);
    assert_near(hw.pcie_bytes_per_s, 64e9, 1);
    assert_true(hw.price_low_usd_per_h == 1.99 && hw.price_high_usd_per_h == 10.8);
    assert_int_equal(hw.origin[HW_BANDWIDTH].status, HW_READ);
    assert_int_equal(hw.origin[HW_PEAK + HW_FP4].status, HW_ABSENT);
    assert_string_equal(hw_field_key(HW_PEAK + HW_BF16), "peak.bf16");
    assert_int_equal(hw_field_kind(HW_POWER), UNITS_WATTS);

    double peak = 17;
    struct err e;
    assert_int_equal(hw_peak(&hw, HW_FP16, &peak, &e), ERR_OK);
    assert_near(peak, 989.4e12, 1);
    assert_int_equal(hw_peak(&hw, HW_INT4, &peak, &e), ERR_INPUT);
    assert_near(peak, 989.4e12, 1);
    assert_non_null(strstr(e.text, "configs/hardware/h100-sxm.json: peak.int4"));
}

/* Traps: a rate that is easily taken for another. */
static void test_traps(void **state)
{
    assert_near(load(*state, "h100-nvl").bandwidth_bytes_per_s, 3.938e12, 1);
    assert_near(load(*state, "mi250x").memory_label_bytes, 64e9, 1);
    assert_near(load(*state, "a10g").peak_flops_per_s[HW_BF16], 70e12, 1);
    assert_near(load(*state, "l40s").peak_flops_per_s[HW_FP8], 733e12, 1);
    assert_near(load(*state, "rtx-4090").peak_flops_per_s[HW_FP16], 165.2e12, 1);
    assert_near(load(*state, "b300-sxm").peak_flops_per_s[HW_INT8], 153.5e12, 1);
    assert_true(isnan(load(*state, "a100-80g").peak_flops_per_s[HW_FP8]));
    assert_true(isnan(load(*state, "t4").peak_flops_per_s[HW_BF16]));
    assert_false(load(*state, "a100-80g").nvls);
}

static void test_link_rate(void **state)
{
    const struct hw h100 = load(*state, "h100-sxm"), mesh = load(*state, "mi300x"), alone = load(*state, "l4");
    assert_near(hw_link_rate(&h100, 2), 450e9, 1); /* a switch: a pair gets all of it */
    assert_near(hw_link_rate(&mesh, 2), 64e9, 1);
    assert_near(hw_link_rate(&mesh, 5), 256e9, 1);
    assert_near(hw_link_rate(&mesh, 8), 448e9, 1);
    assert_true(isnan(hw_link_rate(&mesh, 9)) && isnan(hw_link_rate(&mesh, 1)) && isnan(hw_link_rate(&alone, 2)));
}

/* -- against the table of 66 devices -- */

enum { COLUMNS_MAX = 40 };

/* Cut a CSV line in place; quotes around a cell are dropped, doubled ones are not rejoined (no number has any). */
static size_t cut(char *line, char **cell)
{
    size_t n = 0;
    bool quoted = false;
    cell[n++] = line;
    for (char *c = line; *c && *c != '\n'; c++) {
        if (*c == '"') quoted = !quoted;
        if (*c != ',' || quoted || n == COLUMNS_MAX) continue;
        *c = '\0';
        cell[n++] = c + 1;
    }
    for (size_t i = 0; i < n; i++)
        if (cell[i][0] == '"') cell[i]++;
    return n;
}

/* Where this collection departs from the table, and why. */
static const struct {
    const char *key, *column, *reason;
} corrections[] = {
    {"rtx-3090", "fp16_TFLOPS", "the table has the FP16-accumulate rate; engines accumulate in FP32"},
    {"rtx-4090", "fp16_TFLOPS", "the same"},
    {"rtx-5090", "fp16_TFLOPS", "the same"},
    {"a40", "int4_TOPS", "598.7, twice 299.33"},
    {"b300-sxm", "fp32_vector_TFLOPS", "75 in the HGX table"},
    {"b300-sxm", "mem_usable_GiB_observed", "275,040 MiB is what is visible, not what is left after the context"},
    {"gb300", "mem_usable_GiB_observed", "284,208 MiB is what is visible"},
    {"tpu-v5p", "mem_GB_label", "95 GiB in Google's documentation"},
    {"tpu-v6e", "mem_GB_label", "32 GiB"},
    {"tpu-v7", "mem_GB_label", "192 GiB"},
    {"rtx-pro-6000-server", "ridge_bf16_flop_per_byte", "the table divides by the 1,792 GB/s of the workstation card"},
    {"epyc-9755", "ridge_bf16_flop_per_byte", "the table divides the FP32 peak"},
    {"xeon-8480", "ridge_bf16_flop_per_byte", "the table's column has twice its own bf16 peak (2,048 is AMX int8)"},
    {"xeon-max-9480", "ridge_bf16_flop_per_byte", "the same"},
    {"xeon-6980p", "ridge_bf16_flop_per_byte", "the same"},
    {"trainium2", "mem_GB_label", "96 GiB, of which 103 GB is the rounded decimal"},
    {"groq-lpu", "last_level_cache_MB", "it is the memory itself"},
    {"wse-3", "last_level_cache_MB", "it is the memory itself"},
    {"mi250x", "mem_GB_label", "one device is half of the package"},
    {"mi250x", "mem_bw_GBps", "the same"},
    {"mi250x", "fp32_vector_TFLOPS", "the same"},
    {"mi250x", "bf16_TFLOPS", "the same"},
    {"mi250x", "fp16_TFLOPS", "the same"},
    {"mi250x", "int8_TOPS", "the same"},
    {"mi250x", "sm_or_cu", "the same"},
    {"mi250x", "last_level_cache_MB", "the same"},
    {"mi250x", "scaleup_GBps_per_dir", "differs inside and outside the package"},
    {"mi250x", "scaleup_domain", "the same"},
    {"mi250x", "pcie_GBps_per_dir", "of the package"},
    {"mi250x", "tdp_W", "one device is half of the package"},
};

static bool is_corrected(const char *key, const char *column)
{
    for (size_t i = 0; i < sizeof corrections / sizeof *corrections; i++)
        if (strcmp(corrections[i].key, key) == 0 && strcmp(corrections[i].column, column) == 0) return true;
    return false;
}

static const struct {
    const char *column;
    enum hw_field field;
    double unit;
} columns[] = {
    {"mem_GB_label", HW_MEMORY_LABEL, 1e9},
    {"mem_usable_GiB_observed", HW_MEMORY_USABLE, 1073741824},
    {"mem_bw_GBps", HW_BANDWIDTH, 1e9},
    {"mem_bw_measured_GBps", HW_BANDWIDTH_MEASURED, 1e9},
    {"fp32_vector_TFLOPS", HW_PEAK + HW_FP32_VECTOR, 1e12},
    {"tf32_TFLOPS", HW_PEAK + HW_TF32, 1e12},
    {"bf16_TFLOPS", HW_PEAK + HW_BF16, 1e12},
    {"fp16_TFLOPS", HW_PEAK + HW_FP16, 1e12},
    {"fp8_TFLOPS", HW_PEAK + HW_FP8, 1e12},
    {"int8_TOPS", HW_PEAK + HW_INT8, 1e12},
    {"fp4_TFLOPS", HW_PEAK + HW_FP4, 1e12},
    {"int4_TOPS", HW_PEAK + HW_INT4, 1e12},
    {"sm_or_cu", HW_SM_COUNT, 1},
    {"last_level_cache_MB", HW_L2, 1048576}, /* caches are binary, whatever the datasheet writes */
    {"scaleup_GBps_per_dir", HW_LINK, 1e9},
    {"scaleup_domain", HW_LINK_DOMAIN, 1},
    {"pcie_GBps_per_dir", HW_PCIE, 1e9},
    {"tdp_W", HW_POWER, 1},
    {"price_usd_per_h_low", HW_PRICE_LOW, 1},
    {"price_usd_per_h_high", HW_PRICE_HIGH, 1},
};

/* "900,000 cores" -> 900000, "rack" -> NAN. */
static double number_in(const char *cell)
{
    char digits[32];
    size_t n = 0;
    for (const char *c = cell; *c && *c != ' ' && n < sizeof digits - 1; c++)
        if (*c != ',') digits[n++] = *c;
    digits[n] = '\0';
    char *end;
    const double v = strtod(digits, &end);
    if (end == digits || *end) return (double)NAN;
    return v;
}

static int compare_row(const struct hw *hw, char **title, char **cell, size_t n)
{
    int compared = 0;
    for (size_t c = 0; c < n; c++) {
        for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
            if (strcmp(title[c], columns[k].column) != 0) continue;
            const double theirs = number_in(cell[c]) * columns[k].unit, ours = hw_value(hw, columns[k].field);
            if (isnan(theirs)) continue;
            const bool cache_in_mb = columns[k].field == HW_L2 && fabs(ours * 1.048576 - theirs) <= 1e-6 * theirs;
            const bool same = fabs(ours - theirs) <= 1e-6 * theirs || cache_in_mb;
            if (same == is_corrected(hw->key, title[c])) {
                fail_msg("%s: %s: ours %g, the table's %g%s", hw->key, title[c], ours, theirs,
                         same ? ", but listed as a correction" : "");
            }
            compared++;
        }
        if (strcmp(title[c], "ridge_bf16_flop_per_byte") == 0 && cell[c][0]) {
            const double bf16 = hw_ridge(hw, HW_BF16), ridge = isnan(bf16) ? hw_ridge(hw, HW_FP16) : bf16;
            if ((fabs(ridge - number_in(cell[c])) <= 0.1) == is_corrected(hw->key, title[c]))
                fail_msg("%s: ridge %g, not %s", hw->key, ridge, cell[c]);
        }
    }
    return compared;
}

static FILE *open_shared(const char *relative)
{
    const char *root = getenv("RIDGE_SHARED");
    char path[1024];
    const int n = snprintf(path, sizeof path, "%s/%s", root ? root : "../shared", relative);
    return n > 0 && (size_t)n < sizeof path ? fopen(path, "r") : NULL;
}

static void test_agrees_with_the_table(void **state)
{
    FILE *in = open_shared("serving/hardware.csv");
    if (!in) skip();
    char titles[4096], line[4096], *title[COLUMNS_MAX], *cell[COLUMNS_MAX];
    assert_non_null(fgets(titles, sizeof titles, in));
    const size_t n = cut(titles, title);
    int rows = 0, compared = 0;
    while (fgets(line, sizeof line, in)) {
        assert_int_equal(cut(line, cell), n);
        char *end = strstr(cell[0], " ("); /* what follows is a remark */
        if (!end) end = strstr(cell[0], " /");
        if (end) *end = '\0';
        const struct hw hw = load(*state, cell[0]);
        compared += compare_row(&hw, title, cell, n);
        rows++;
    }
    assert_int_equal(fclose(in), 0);
    assert_int_equal(rows, (int)hw_builtins_n());
    assert_true(compared > 600);
}

/* -- a user's own file -- */

static const char own[] =
    "{\"name\":\"my card\",\"memory_label\":\"37 GB\",\"bandwidth\":{\"value\":\"1.1 TB/s\","
    "\"status\":\"read\",\"source\":\"stream\",\"date\":\"2026-07\"},\"peak\":{\"bf16\":\"211 TFLOP/s\"}}";

static void test_own_file_by_path(void **state)
{
    char folder[SCRATCH_MAX], path[SCRATCH_FILE_MAX];
    (void)snprintf(path, sizeof path, "%s/card.json", scratch_dir(folder));
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, own, sizeof own - 1), sizeof own - 1);
    assert_int_equal(close(fd), 0);
    const struct hw hw = load(*state, path);
    assert_string_equal(hw.file, path);
    assert_string_equal(hw.name, "my card");
    assert_string_equal(hw.key, "card");
    assert_near(hw_capacity_bytes(&hw), 37e9, 0);
    assert_near(hw_ridge(&hw, HW_BF16), 211 / 1.1, 1e-9);
    assert_int_equal(hw.origin[HW_BANDWIDTH].status, HW_READ);
    assert_string_equal(hw.origin[HW_BANDWIDTH].date, "2026-07");
    assert_int_equal(hw.origin[HW_MEMORY_LABEL].status, HW_UNVERIFIED);
    assert_null(hw.vendor);
    assert_true(isnan(hw.power_w) && isnan(hw_link_rate(&hw, 2)));

    struct hw none;
    struct err e;
    assert_int_equal(hw_load(*state, "no/such/card.json", &none, &e), ERR_IO);
    assert_int_equal(hw_load(*state, "no-such-card.json", &none, &e), ERR_IO);
}

static void test_capacity_prefers_what_is_usable(void **state)
{
    const char *head = "{\"name\":\"x\",\"bandwidth\":\"7 GB/s\",\"memory_label\":\"13 GB\"";
    char text[300];
    (void)snprintf(text, sizeof text, "%s}", head);
    assert_near(parse(*state, text).memory_label_bytes, 13e9, 0);
    (void)snprintf(text, sizeof text, "%s,\"memory_visible\":\"11 GiB\"}", head);
    struct hw hw = parse(*state, text);
    assert_near(hw_capacity_bytes(&hw), 11 * 1073741824.0, 0);
    (void)snprintf(text, sizeof text, "%s,\"memory_visible\":\"11 GiB\",\"memory_usable\":\"10.5 GiB\"}", head);
    hw = parse(*state, text);
    assert_near(hw_capacity_bytes(&hw), 10.5 * 1073741824, 0);
    (void)snprintf(text, sizeof text, "%s,\"memory_visible\":\"11 GiB\",\"memory_usable\":\"11.5 GiB\"}", head);
    refuses(*state, text, "memory_usable: larger");
}

static void test_hostile(void **state)
{
#define CARD(rest) "{\"name\":\"x\",\"memory_label\":\"80 GB\",\"bandwidth\":\"3.35 TB/s\"" rest "}"
    refuses(*state, "[]", "wanted an object");
    refuses(*state, "{\"memory_label\":\"80 GB\",\"bandwidth\":\"3 TB/s\"}", "name: missing");
    refuses(*state, "{\"name\":\"x\",\"memory_label\":\"80 GB\"}", "bandwidth: missing");
    refuses(*state, "{\"name\":\"x\",\"bandwidth\":\"3 TB/s\"}", "memory_label: missing");
    refuses(*state, "{\"name\":\"x\",\"memory_label\":\"80 GB\",\"bandwidth\":\"3.35 TB\"}", "bandwidth: ");
    refuses(*state, "{\"name\":\"x\",\"memory_label\":\"80G\",\"bandwidth\":\"3.35 TB/s\"}", "memory_label: ");
    refuses(*state, "{\"name\":\"x\",\"memory_label\":80e9,\"bandwidth\":\"3.35 TB/s\"}", "a text with its unit");
    refuses(*state, "{\"name\":\"x\",\"memory_label\":\"0 GB\",\"bandwidth\":\"3.35 TB/s\"}", "more than zero");
    refuses(*state, "{\"name\":\"x\",\"memory_label\":\"80 GB\",\"bandwidth\":\"-3.35 TB/s\"}", "bandwidth: ");
    refuses(*state, CARD(",\"bandwith_measured\":\"3 TB/s\""), "did you mean bandwidth_measured");
    refuses(*state, CARD(",\"peak\":{\"bf61\":\"9 TFLOP/s\"}"), "peak.bf61");
    refuses(*state, CARD(",\"peak\":{\"bf16\":\"989.4 TB/s\"}"), "peak.bf16");
    refuses(*state, CARD(",\"peak\":7"), "an object");
    refuses(*state, CARD(",\"l2\":{\"size\":\"50 MiB\"}"), "l2.size");
    refuses(*state, CARD(",\"l2\":{\"source\":\"x\"}"), "\"value\"");
    refuses(*state, CARD(",\"l2\":{\"value\":\"50 MiB\",\"status\":\"sure\"}"), "\"unverified\"");
    refuses(*state, CARD(",\"power\":\"700\""), "700 W");
    refuses(*state, CARD(",\"power\":\"-700 W\""), "more than zero");
    refuses(*state, CARD(",\"power\":\"inf W\""), "more than zero");
    refuses(*state, CARD(",\"power\":\"nan W\""), "more than zero");
    refuses(*state, CARD(",\"sm_count\":0"), "sm_count");
    refuses(*state, CARD(",\"sm_count\":132.5"), "sm_count");
    refuses(*state, CARD(",\"kind\":\"toaster\""), "gpu, cpu");
    refuses(*state, CARD(",\"aliases\":\"y\""), "an array of texts");
    refuses(*state, CARD(",\"aliases\":[7]"), "aliases[0]");
    refuses(*state, CARD(",\"link\":{\"nvls\":\"yes\"}"), "link.nvls");
    refuses(*state, CARD(",\"price\":{\"low_usd_per_h\":5,\"high_usd_per_h\":3}"), "price");
    refuses(*state, CARD(",\"price\":{\"low_usd_per_h\":Infinity}"), "price.low_usd_per_h");
}

static void test_unknown_name_suggests(void **state)
{
    static const struct {
        const char *name, *near;
    } cases[] = {{"h100-sxn", "h100-sxm"},
                 {"H100", "one of h100-nvl, h100-pcie, h100-sxm"},
                 {"h200", "one of h200-sxm"},
                 {"a100", "one of a100-40g, a100-80g, a100-pcie-40g, a100-pcie-80g"},
                 {"rtx4090", "rtx-4090"}};
    struct hw hw = {.sm_count = 1237};
    struct err e;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(hw_load(*state, cases[i].name, &hw, &e), ERR_USAGE);
        if (!strstr(e.text, cases[i].near)) fail_msg("%s", e.text);
    }
    assert_int_equal(hw_load(*state, "", &hw, &e), ERR_USAGE);
    assert_int_equal(hw_load(*state, "x\x1b[31mred", &hw, &e), ERR_USAGE);
    assert_null(strchr(e.text, '\x1b'));
    assert_true(hw.sm_count == 1237);
}

static void test_dtype_names(void **state)
{
    (void)state;
    enum hw_dtype d = HW_INT4;
    for (int i = 0; i < HW_DTYPES_N; i++) {
        assert_true(hw_dtype_find(hw_dtype_name((enum hw_dtype)i), &d));
        assert_int_equal(d, i);
        assert_string_equal(hw_field_key((enum hw_field)(HW_PEAK + i)) + strlen("peak."),
                            hw_dtype_name((enum hw_dtype)i));
    }
    assert_false(hw_dtype_find("bf17", &d));
}

/* -- workloads -- */

static void check_workload(struct arena *a, const char *path, const char *trace)
{
    struct json j, v;
    struct err e = {.code = ERR_OK};
    int64_t prompt, generate;
    const char *text;
    if (json_load(a, path, &j, &e) != ERR_OK) fail_msg("%s", e.text);
    assert_true(json_get(&j, "prompt_tokens", &v) && json_int(&v, 1, 1 << 20, &prompt, &e) == ERR_OK);
    assert_true(json_get(&j, "generate_tokens", &v) && json_int(&v, 1, 1 << 20, &generate, &e) == ERR_OK);
    assert_true(json_get(&j, "description", &v) && json_str(&v, &text, &e) == ERR_OK);
    assert_true(json_get(&j, "source", &v) && json_str(&v, &text, &e) == ERR_OK);
    FILE *in = trace ? open_shared(trace) : NULL;
    if (!in) return;
    char line[256], *cell[COLUMNS_MAX];
    double n = 0, prompts = 0, answers = 0;
    assert_non_null(fgets(line, sizeof line, in));
    for (; fgets(line, sizeof line, in); n++) {
        assert_true(cut(line, cell) >= 3);
        prompts += strtod(cell[1], NULL);
        answers += strtod(cell[2], NULL);
    }
    assert_int_equal(fclose(in), 0);
    assert_true(fabs(prompts / n - (double)prompt) <= 0.5 && fabs(answers / n - (double)generate) <= 0.5);
}

static void test_workloads_are_means_of_their_traces(void **state)
{
    check_workload(*state, "configs/workloads/chat.json", "serving/traces/azure2023_conv.csv");
    check_workload(*state, "configs/workloads/code.json", "serving/traces/azure2023_code.csv");
    check_workload(*state, "configs/workloads/long-context.json", "serving/traces/mooncake_synthetic.csv");
    check_workload(*state, "configs/workloads/reasoning.json", NULL);
    check_workload(*state, "configs/workloads/course.json", NULL);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_arena, close_arena)
    const struct CMUnitTest tests[] = {
        CASE(test_every_file_loads_with_sources),
        CASE(test_embedded_is_what_is_on_disk),
        CASE(test_no_name_means_two_devices),
        CASE(test_h100_in_base_units),
        CASE(test_traps),
        CASE(test_link_rate),
        CASE(test_agrees_with_the_table),
        CASE(test_own_file_by_path),
        CASE(test_capacity_prefers_what_is_usable),
        CASE(test_hostile),
        CASE(test_unknown_name_suggests),
        CASE(test_dtype_names),
        CASE(test_workloads_are_means_of_their_traces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
