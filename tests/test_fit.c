/* The fit finds what made synthetic rows, keeps bounds, and says the same twice; efficiency files that are not what
 * they should be are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calc/fit/efficiency.h"
#include "calc/fit/validate.h"
#include "tests/csv.h"
#include "tests/scratch.h"

struct place {
    struct arena *arena;
    struct hw hw;
};

static int open_place(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    struct err e;
    if (!p || !(p->arena = arena_open())) return -1;
    *state = p;
    return hw_load(p->arena, "h100-sxm", &p->hw, &e) == ERR_OK ? 0 : -1;
}

static int close_place(void **state)
{
    struct place *p = *state;
    arena_close(p->arena);
    free(p);
    return 0;
}

static double noise(uint64_t *seed) /* in (-1, 1) */
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (double)(*seed >> 11) / 4503599627370496.0 - 1;
}

/* Rows of a class whose parameters are known, with noise of the given size. */
static struct rows synthetic(struct place *p, const struct kernel *shapes, size_t n, const char *class_name,
                             const double *params, double size)
{
    struct rows rows = {.v = arena_array(p->arena, n, sizeof(struct row)), .n = n};
    double room[KERNEL_FEATURES_MAX];
    uint64_t seed = 12345677;
    for (size_t i = 0; i < n; i++) {
        struct kernel_features f;
        struct err e = {.code = ERR_OK};
        if (kernel_prepare(&shapes[i], &p->hw, room, &f, &e) != ERR_OK) fail_msg("%s", e.text);
        const double exact = kernel_time_s(kernel_form_of(&shapes[i]), &f, params);
        rows.v[i] = (struct row){.kernel = shapes[i],
                                 .class_name = class_name,
                                 .family = arena_printf(p->arena, "%g,%g", shapes[i].n, shapes[i].heads),
                                 .framework = "",
                                 .file = "synthetic.csv",
                                 .line = i + 2,
                                 .time_s = exact * exp(size * noise(&seed))};
    }
    return rows;
}

enum { N = 240 };

static void products(struct kernel *k)
{
    static const double sizes[] = {256, 768, 1536, 2048, 4096, 5120, 7168, 14336};
    for (int i = 0; i < N; i++)
        k[i] = (struct kernel){.kind = KERNEL_GEMM,
                               .unit = HW_BF16,
                               .element_bytes = 2,
                               .groups = 1,
                               .m = 1 + pow(1.9, i % 15),
                               .n = sizes[i / 15 % 8],
                               .k = sizes[(i * 7 + i / 30) % 8]};
    for (int i = 0; i < N; i++) k[i].m = floor(k[i].m);
}

static struct fit_class only_class(struct place *p, const struct rows *rows, int splits)
{
    struct fit_class *classes;
    size_t n;
    struct err e = {.code = ERR_OK};
    if (fit_rows(p->arena, &p->hw, rows, splits, NULL, NULL, &classes, &n, &e) != ERR_OK) fail_msg("%s", e.text);
    assert_int_equal(n, 1);
    return classes[0];
}

struct told {
    size_t times, last, of;
    bool fell, over;
};

static void hear(void *closure, size_t n, size_t of)
{
    struct told *t = closure;
    t->fell = t->fell || n < t->last;
    t->over = t->over || n > of || (t->times && of != t->of);
    t->times++;
    t->last = n;
    t->of = of;
}

/* Who watches hears of it within a class, in order, to the end. */
static void test_progress_is_told(void **state)
{
    struct place *p = *state;
    struct kernel shapes[N];
    struct told told = {.times = 0};
    struct fit_class *classes;
    size_t n;
    struct err e;
    products(shapes);
    double truth[KERNEL_PARAMS_MAX];
    for (size_t i = 0; i < kernel_params_n(&shapes[0]); i++) truth[i] = kernel_param(&shapes[0], i)->start[0];
    const struct rows rows = synthetic(p, shapes, N, "gemm/bf16", truth, 0);
    assert_int_equal(fit_rows(p->arena, &p->hw, &rows, 2, hear, &told, &classes, &n, &e), ERR_OK);
    assert_true(told.times > 14); /* a step at least of 8 starts, and of 3 of each split, and the end */
    assert_false(told.fell);
    assert_false(told.over);
    assert_int_equal(told.last, N);
    assert_int_equal(told.of, N);
}

static void test_known_parameters_are_found(void **state)
{
    struct place *p = *state;
    struct kernel shapes[N];
    products(shapes);
    double truth[KERNEL_PARAMS_MAX];
    for (size_t i = 0; i < kernel_params_n(&shapes[0]); i++) truth[i] = kernel_param(&shapes[0], i)->start[0];
    truth[0] = 4.1e-6;
    truth[1] = 0.71;
    truth[4] = 0.77;
    const struct rows rows = synthetic(p, shapes, N, "gemm/bf16", truth, 0);
    const struct fit_class c = only_class(p, &rows, 0);
    assert_true(c.mape_frac < 0.01);
    assert_true(c.baseline_mape_frac > 3 * c.mape_frac);
    assert_true(fabs(c.p[0] / truth[0] - 1) < 0.03);
    assert_true(fabs(c.p[1] / truth[1] - 1) < 0.03);
    assert_true(fabs(c.p[4] / truth[4] - 1) < 0.03);
    assert_true(isnan(c.held_out.mean) && c.band[FIT_TINY].n == 0);
}

static void test_baseline_is_found(void **state)
{
    struct place *p = *state;
    struct kernel shapes[N];
    products(shapes);
    struct rows rows = {.v = arena_array(p->arena, N, sizeof(struct row)), .n = N};
    const double truth[] = {6.3e-6, 0.67, 0.83};
    const struct row *pointers[N];
    size_t at[N], families;
    for (size_t i = 0; i < N; i++) {
        struct kernel_work w;
        struct err e;
        assert_int_equal(kernel_work(&shapes[i], &p->hw, &w, &e), ERR_OK);
        rows.v[i] = (struct row){.kernel = shapes[i], .family = "x", .time_s = kernel_baseline_s(&w, truth)};
        if (i % 31 == 5) rows.v[i].time_s *= 40; /* what went wrong in the measurement leads nobody */
        pointers[i] = &rows.v[i];
        at[i] = i;
    }
    struct fit_point *points;
    struct err e = {.code = ERR_OK};
    double found[KERNEL_BASELINE_PARAMS_N];
    assert_int_equal(fit_points(p->arena, &p->hw, pointers, N, &points, &families, &e), ERR_OK);
    assert_int_equal(families, 1);
    assert_int_equal(fit_baseline(points, at, N, found, &e), ERR_OK);
    for (size_t i = 0; i < 3; i++)
        if (!(fabs(found[i] / truth[i] - 1) < 0.02)) fail_msg("parameter %zu: %g, wanted %g", i, found[i], truth[i]);
}

static void test_held_out_and_bands(void **state)
{
    struct place *p = *state;
    struct kernel shapes[N];
    products(shapes);
    double truth[KERNEL_PARAMS_MAX];
    for (size_t i = 0; i < kernel_params_n(&shapes[0]); i++) truth[i] = kernel_param(&shapes[0], i)->start[0];
    const struct rows rows = synthetic(p, shapes, N, "gemm/bf16", truth, 0.2);
    const struct fit_class c = only_class(p, &rows, 6);
    /* noise even in (-0.2, 0.2): its mean magnitude is 0.1, its P10 and P90 are at -0.16 and 0.16 */
    assert_true(c.held_out.mean > 0.07 && c.held_out.mean < 0.14);
    assert_true(c.coverage_frac.mean > 0.7 && c.coverage_frac.mean < 0.9);
    assert_true(fabs(log(c.band[FIT_MEMORY].p90) - 0.16) < 0.06 && fabs(log(c.band[FIT_MEMORY].p10) + 0.16) < 0.06);
    assert_true(c.families_n == 8 && c.rows_n == N && c.large_n > 10);
    for (size_t i = 0; i < c.n_params; i++) {
        const struct kernel_param *k = kernel_param(&c.like, i);
        assert_true(c.p[i] >= k->lo && c.p[i] <= k->hi && c.lo[i] <= c.p[i] && c.p[i] <= c.hi[i]);
    }
}

static const char *file_of(struct place *p, const struct rows *rows, const struct fit_class *c)
{
    struct out *o;
    struct err e = {.code = ERR_OK};
    const struct efficiency_origin origin = {"h100-sxm", NULL, "a \"source\"\n", "2026-08"};
    assert_int_equal(out_memory(p->arena, &o, &e), ERR_OK);
    assert_int_equal(efficiency_write(o, &origin, rows, c, 1, &e), ERR_OK);
    return out_text(o, NULL);
}

static enum err_code load_text(struct place *p, const char *text, struct efficiency *f, struct err *e)
{
    char path[SCRATCH_MAX];
    const enum err_code code = efficiency_load(p->arena, scratch_text(path, text), f, e);
    assert_int_equal(unlink(path), 0);
    return code;
}

/* The text with one piece replaced. */
static const char *swap(struct place *p, const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    assert_non_null(at);
    return arena_printf(p->arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static void refuse(struct place *p, const char *text, const char *sentence)
{
    struct efficiency f = {.n = 1237};
    struct err e = {.code = ERR_OK};
    assert_int_equal(load_text(p, text, &f, &e), ERR_INPUT);
    if (!strstr(e.text, sentence)) fail_msg("\"%s\" does not say \"%s\"", e.text, sentence);
    assert_int_equal(f.n, 1237);
}

static void test_files(void **state)
{
    struct place *p = *state;
    struct kernel shapes[N];
    products(shapes);
    double truth[KERNEL_PARAMS_MAX];
    for (size_t i = 0; i < kernel_params_n(&shapes[0]); i++) truth[i] = kernel_param(&shapes[0], i)->start[1];
    const struct rows rows = synthetic(p, shapes, N, "gemm/bf16", truth, 0.1);
    const struct fit_class c = only_class(p, &rows, 3), again = only_class(p, &rows, 3);
    const char *text = file_of(p, &rows, &c);
    assert_string_equal(text, file_of(p, &rows, &again)); /* same rows, same bytes */
    struct efficiency f;
    struct err e = {.code = ERR_OK};
    if (load_text(p, text, &f, &e) != ERR_OK) fail_msg("%s", e.text);
    assert_int_equal(f.n, 1);
    assert_string_equal(f.source, "a \"source\"\n");
    const struct fit_class *read = efficiency_find(&f, "gemm/bf16");
    assert_non_null(read);
    assert_null(efficiency_find(&f, "gemm"));
    for (size_t i = 0; i < c.n_params; i++) assert_true(fabs(read->p[i] / c.p[i] - 1) < 1e-5);
    assert_true(fabs(read->band[FIT_MEMORY].p90 / c.band[FIT_MEMORY].p90 - 1) < 1e-5);
    /* what comes out again is what the rows say */
    struct validate_row *v;
    struct validate_group *g;
    size_t n;
    assert_int_equal(validate_rows(p->arena, &p->hw, &rows, &f, &v, &e), ERR_OK);
    assert_int_equal(validate_groups(p->arena, v, rows.n, &p->hw, "kind", &g, &n, &e), ERR_OK);
    assert_int_equal(n, 2);
    assert_true(fabs(g[0].mape_frac - c.mape_frac) < 1e-4 && g[0].rows == N && g[0].below_bound_fitted == 0);
    assert_string_equal(g[0].group, "gemm");
    assert_string_equal(g[1].group, "all");
    assert_true(fabs(g[1].baseline_mape_frac - c.baseline_mape_frac) < 1e-4);
    assert_int_equal(validate_groups(p->arena, v, rows.n, &p->hw, "colour", &g, &n, &e), ERR_USAGE);

    refuse(p, "[]", "schema: missing");
    refuse(p, swap(p, text, "efficiency.1", "efficiency.7"), "schema");
    refuse(p, swap(p, text, "\"gemm/bf16\"", "\"gem/bf16\""), "form");
    refuse(p, swap(p, text, "\"gemm/bf16\"", "\"decode/bf16\""), "form");
    refuse(p, swap(p, text, "\"form\": \"tiles\"", "\"form\": 7"), "form");
    refuse(p, swap(p, text, "\"start_s\"", "\"stop_s\""), "start_s");
    refuse(p, swap(p, text, "\"value\": ", "\"value\": -"), "wanted a number");
    refuse(p, swap(p, text, "\"value\": ", "\"value\": 1e9, \"was\": "), "wanted a number");
    refuse(p, swap(p, text, "\"value\": ", "\"value\": NaN, \"was\": "), "wanted a number");
    refuse(p, swap(p, text, "\"value\": ", "\"value\": null, \"was\": "), "value: missing");
    refuse(p, swap(p, text, "\"p90\": ", "\"p90\": 0.0001, \"was\": "), "p90");
    refuse(p, swap(p, text, "\"regime\": \"", "\"regime\": \"x"), "regime");
    refuse(p, swap(p, text, "\"quantises\": false", "\"quantises\": true"), "14 parameters");
    refuse(p, swap(p, text, "\"baseline\": [", "\"baseline\": [0, "), "baseline");
    assert_int_equal(efficiency_load(p->arena, "no-such-device", &f, &e), ERR_INPUT);
    assert_non_null(strstr(e.text, "there are"));
}

/* Few rows, one family, one row: an answer or none, never a crash. */
static void test_little_to_go_by(void **state)
{
    struct place *p = *state;
    struct kernel shapes[N];
    products(shapes);
    double truth[KERNEL_PARAMS_MAX];
    for (size_t i = 0; i < kernel_params_n(&shapes[0]); i++) truth[i] = kernel_param(&shapes[0], i)->start[0];
    struct rows rows = synthetic(p, shapes, N, "gemm/bf16", truth, 0.1);
    struct fit_class *classes;
    size_t n = 7;
    struct err e = {.code = ERR_OK};
    rows.n = FIT_SHAPES_MIN - 1;
    assert_int_equal(fit_rows(p->arena, &p->hw, &rows, 3, NULL, NULL, &classes, &n, &e), ERR_OK);
    assert_int_equal(n, 0);
    rows.n = FIT_SHAPES_MIN;
    for (size_t i = 0; i < rows.n; i++) rows.v[i].family = "one";
    const struct fit_class c = only_class(p, &rows, 3);
    assert_true(isnan(c.held_out.mean));
    const struct row *alike[FIT_SHAPES_MIN];
    struct fit_class flat;
    for (size_t i = 0; i < rows.n; i++) {
        rows.v[i] = rows.v[0]; /* all alike: no parameter is determined */
        alike[i] = &rows.v[i];
    }
    assert_int_equal(fit_class(p->arena, &p->hw, alike, rows.n, 3, NULL, &flat, &e), ERR_OK);
    assert_true(flat.mape_frac < 0.05);
}

static size_t shapes_of(struct place *p, const struct rows *rows)
{
    struct err e = {.code = ERR_OK};
    const struct row **v = arena_array(p->arena, rows->n, sizeof *v);
    size_t n;
    for (size_t i = 0; i < rows->n; i++) v[i] = &rows->v[i];
    assert_int_equal(fit_count_shapes(p->arena, v, rows->n, &n, &e), ERR_OK);
    return n;
}

/* Repeats of a shape are no further shapes, however noisy the machine was around each and whatever their times; a call
 * in the caches is another than one in memory, and so is a size that a file does not say. */
static void test_repeats_are_no_shapes(void **state)
{
    struct place *p = *state;
    enum { SHAPES = FIT_SHAPES_MIN - 1, REPEATS = 10 };
    struct kernel shapes[N], repeated[SHAPES * REPEATS];
    struct fit_class *classes;
    size_t n = 7;
    struct err e = {.code = ERR_OK};
    products(shapes);
    for (size_t i = 0; i < SHAPES * REPEATS; i++) {
        repeated[i] = shapes[i % SHAPES];
        repeated[i].memory_slower = 1 + 0.01 * (double)i;
    }
    double truth[KERNEL_PARAMS_MAX];
    for (size_t i = 0; i < kernel_params_n(&shapes[0]); i++) truth[i] = kernel_param(&shapes[0], i)->start[0];
    struct rows rows = synthetic(p, repeated, SHAPES * REPEATS, "gemm/bf16", truth, 0.1);
    assert_int_equal(shapes_of(p, &rows), SHAPES);
    assert_int_equal(fit_rows(p->arena, &p->hw, &rows, 3, NULL, NULL, &classes, &n, &e), ERR_OK);
    assert_int_equal(n, 0);
    rows.v[0].kernel.m++; /* one more */
    assert_int_equal(shapes_of(p, &rows), SHAPES + 1);
    const struct fit_class c = only_class(p, &rows, 3);
    assert_int_equal(c.rows_n, SHAPES * REPEATS);
    assert_int_equal(c.shapes_n, FIT_SHAPES_MIN);
    rows.n = 2;
    rows.v[1] = rows.v[0];
    rows.v[1].kernel.cold = !rows.v[0].kernel.cold;
    assert_int_equal(shapes_of(p, &rows), 2);
    for (size_t i = 0; i < 2; i++)
        rows.v[i].kernel = (struct kernel){.kind = KERNEL_DECODE, .page_tokens = (double)NAN};
    assert_int_equal(shapes_of(p, &rows), 1); /* unknown is unknown */
    rows.v[1].kernel.page_tokens = 16;
    assert_int_equal(shapes_of(p, &rows), 2);
    for (size_t i = 0; i < 2; i++) rows.v[i].kernel = (struct kernel){.kind = KERNEL_CONV, .taps = (double)(3 + i)};
    assert_int_equal(shapes_of(p, &rows), 2); /* in files of scans */
}

static int by_class_and_family(const void *x, const void *y)
{
    const struct row *a = x, *b = y;
    const int d = strcmp(a->class_name, b->class_name);
    return d ? d : strcmp(a->family, b->family);
}

/* No shape is of two families, so that none is on both sides of a split: of all published rows there are as many shapes
 * in the families of a class, counted one by one, as in the class. */
static void test_no_shape_on_both_sides(void **state)
{
    struct place *p = *state;
    const char *dir = csv_shared(p->arena, "measured");
    const struct rows_filter any = {.hw = &p->hw};
    struct stat st;
    struct rows rows;
    struct err e = {.code = ERR_OK};
    size_t seen = 0;
    if (!dir || stat(dir, &st) != 0) skip();
    if (rows_read(p->arena, dir, &any, &rows, &e) != ERR_OK) fail_msg("%s", e.text);
    qsort(rows.v, rows.n, sizeof *rows.v, by_class_and_family);
    for (size_t from = 0, to; from < rows.n; from = to) {
        size_t all = 0;
        for (to = from; to < rows.n && strcmp(rows.v[to].class_name, rows.v[from].class_name) == 0;) {
            struct rows family = {.v = rows.v + to};
            while (to < rows.n && by_class_and_family(&rows.v[to], family.v) == 0) {
                family.n++;
                to++;
            }
            all += shapes_of(p, &family);
        }
        const struct rows of_class = {.v = rows.v + from, .n = to - from};
        assert_int_equal(shapes_of(p, &of_class), all);
        seen++;
    }
    assert_true(seen > 10);
}

/* Built-in files load, belong to a device, and their calibrated times keep the bounds of all published rows. */
static void test_built_in_files(void **state)
{
    struct place *p = *state;
    static const char *const names[] = {"h100-sxm.vllm", "h100-sxm.trtllm", "h100-sxm.sglang", "h200-sxm", "a100-80g"};
    const char *dir = csv_shared(p->arena, "measured");
    struct stat st;
    const bool measured = dir && stat(dir, &st) == 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct efficiency f;
        struct rows rows;
        struct validate_row *v;
        struct validate_group *g;
        size_t n;
        struct err e = {.code = ERR_OK};
        if (efficiency_load(p->arena, names[i], &f, &e) != ERR_OK) fail_msg("%s", e.text);
        assert_non_null(f.source);
        assert_int_equal(hw_load(p->arena, f.device, &p->hw, &e), ERR_OK);
        assert_string_equal(p->hw.key, f.device);
        if (!measured) continue;
        const struct rows_filter filter = {.hw = &p->hw};
        assert_int_equal(rows_read(p->arena, dir, &filter, &rows, &e), ERR_OK);
        assert_int_equal(validate_rows(p->arena, &p->hw, &rows, &f, &v, &e), ERR_OK);
        assert_int_equal(validate_groups(p->arena, v, rows.n, &p->hw, NULL, &g, &n, &e), ERR_OK);
        assert_int_equal(n, 1);
        assert_int_equal(g[0].below_bound, 0);
        assert_int_equal(g[0].below_bound_fitted, 0);
        assert_true(g[0].calibrated > 500 && g[0].mape_frac < g[0].baseline_mape_frac);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_progress_is_told, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_known_parameters_are_found, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_baseline_is_found, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_held_out_and_bands, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_files, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_repeats_are_no_shapes, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_no_shape_on_both_sides, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_little_to_go_by, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_built_in_files, open_place, close_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
