/* Collectives: the calls of NCCL, their results against sums in double, and everything that can be missing, with an
 * NCCL of the tests and a place of several cards that is memory of the host: no card was asked. */
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/cli/probe_rows.h"
#include "calc/cli/store_rows.h"
#include "kernels/collective.h"
#include "kernels/nccl.h"
#include "probe/session.h"
#include "probe/worker/work.h"
#include "tests/worker/nccl_fake.h"

enum { CARDS = 5 };

struct scene {
    struct place place; /* first */
    struct arena *a;
    const char *path;
    void *library;
    struct nccl_fake *fake;
    struct nccl nccl;
    void *streams[KERN_DEVICES_MAX];
    struct kern_machine machine;
    struct {
        char *memory;
        size_t bytes;
    } taken[KERN_DEVICES_MAX];
    size_t given;
    char said[256];
};

static void *take(struct place *p, unsigned device, size_t bytes)
{
    struct scene *const s = (struct scene *)p;
    void *memory = NULL;
    assert_true(device < CARDS);
    if (posix_memalign(&memory, 256, bytes)) return NULL;
    s->taken[device].memory = memory;
    s->taken[device].bytes = bytes;
    return memory;
}

static void give(struct place *p, void *memory)
{
    ((struct scene *)p)->given++;
    free(memory);
}

static void copy(struct place *p, void *to, const void *from, size_t bytes) { (void)p, memcpy(to, from, bytes); }
static void set(struct place *p, void *at, int byte, size_t bytes) { (void)p, memset(at, byte, bytes); }

static const char *wait(struct place *p)
{
    struct scene *const s = (struct scene *)p;
    return nccl_failed(&s->nccl, s->said, sizeof s->said);
}

static const struct place_code CODE = {take, give, copy, set, wait, NULL, NULL};

static int begin(void **state)
{
    struct scene *s = calloc(1, sizeof *s);
    *state = s;
    if (!s || !(s->a = arena_open())) return -1;
    if (session_worker_path(s->a, "libnccl_fake.so", &s->path, NULL) != ERR_OK) return -1;
    s->library = dlopen(s->path, RTLD_NOW | RTLD_LOCAL);
    s->fake = s->library ? dlsym(s->library, "nccl_fake") : NULL;
    if (!s->fake) return -1;
    *s->fake = (struct nccl_fake){.fails = NULL};
    s->place.code = &CODE;
    for (size_t i = 0; i < KERN_DEVICES_MAX; i++) s->streams[i] = &s->taken[i];
    nccl_open(&s->nccl, s->path, s->streams);
    s->machine = (struct kern_machine){.blas_name = "", .cards = CARDS, .nccl = &s->nccl, .cache_bytes = {0, 0, 20000}};
    return 0;
}

static int end(void **state)
{
    struct scene *s = *state;
    nccl_close(&s->nccl);
    (void)dlclose(s->library);
    arena_close(s->a);
    free(s);
    return 0;
}

/* One check of a kernel; NULL or what is wrong. */
static const char *check(struct scene *s, const struct kern *k, struct kern_shape shape, bool cold, char *text,
                         size_t cap)
{
    size_t n, checked;
    double error;
    const struct work_spec spec = {
        .kernel = k, .variant = nccl_variants(k, &n), .shape = shape, .cold = cold, .seed = 12, .place = &s->place};
    struct work w;
    const char *why = work_open(&spec, &s->machine, 1e8, &w, text, cap);
    if (why) return why;
    for (size_t i = 0; i < w.copies; i++) w.calls[i].shape = &w.spec.shape;
    const size_t cards = (size_t)shape.v[COLLECTIVE_CARDS];
    assert_int_equal(w.devices, cards);
    for (size_t i = 0; i < w.copies; i++)
        for (size_t b = 0; b < w.buffers_n; b++) { /* on its own card */
            const char *at = w.calls[i].buffer[b];
            assert_true(at >= s->taken[b / 2].memory && at < s->taken[b / 2].memory + s->taken[b / 2].bytes);
        }
    why = work_check(&w, &error, &checked, text, cap);
    if (!why) {
        assert_true(checked > 0 && error <= k->tolerance(&shape));
        w.spec.variant->run(&w.calls[w.copies - 1]);
        w.last = w.copies - 1;
        why = work_check_again(&w, text, cap);
    }
    const size_t given = s->given;
    work_close(&w);
    assert_int_equal(s->given, given + cards);
    assert_false(s->fake->confused);
    return why;
}

static void sums_and_gathers(void **state)
{
    static const struct kern_shape REDUCE[] = {
        {{2, 4 * 1543}, KERN_FP32}, {{5, 2 * 1543}, KERN_BF16}, {{3, 4}, KERN_FP32}};
    static const struct kern_shape GATHER[] = {
        {{2, 8 * 701}, KERN_FP32}, {{5, 10 * 701}, KERN_BF16}, {{3, 6}, KERN_BF16}};
    struct scene *s = *state;
    char text[256] = "";
    for (size_t i = 0; i < 3; i++)
        for (int cold = 0; cold < 2; cold++) {
            const char *why = check(s, &kern_all_reduce, REDUCE[i], cold, text, sizeof text);
            if (!why) why = check(s, &kern_all_gather, GATHER[i], cold, text, sizeof text);
            if (why) fail_msg("%zu: %s", i, why);
        }
    /* for each card of 2 x (2 + 5 + 3), twice, both ways; communicators once for so many cards */
    assert_true(s->fake->groups == 24 && s->fake->reduced == 40 && s->fake->gathered == 40);
    assert_true(s->fake->made == 2 + 5 + 3 && s->fake->destroyed == 0);
    for (size_t i = 0; i < CARDS; i++) assert_ptr_equal(s->fake->stream[i], s->streams[i]);
    nccl_close(&s->nccl);
    assert_int_equal(s->fake->destroyed, 10);
}

static void wrong_ones_are_seen(void **state)
{
    static const struct kern_shape SHAPE = {{3, 12 * 101}, KERN_FP32};
    struct scene *s = *state;
    char text[256] = "";
    s->fake->forgets = true;
    assert_non_null(strstr(check(s, &kern_all_reduce, SHAPE, false, text, sizeof text), "off by"));
    s->fake->forgets = false;
    s->fake->swaps = true;
    assert_non_null(strstr(check(s, &kern_all_gather, SHAPE, false, text, sizeof text), "off by"));
}

static void failures_are_told(void **state)
{
    static const char *const NAMES[] = {"ncclCommInitAll", "ncclGroupStart", "ncclAllReduce", "ncclGroupEnd"};
    static const struct kern_shape SHAPE = {{3, 12 * 101}, KERN_FP32};
    struct scene *s = *state;
    char text[256] = "", wanted[64];
    for (size_t i = 0; i < 4; i++) {
        s->fake->fails = NAMES[i];
        (void)snprintf(wanted, sizeof wanted, "%s: internal error", NAMES[i]);
        const char *why = check(s, &kern_all_reduce, SHAPE, false, text, sizeof text);
        assert_non_null(why);
        assert_string_equal(why, wanted);
    }
    s->fake->fails = "ncclAllGather";
    assert_string_equal(check(s, &kern_all_gather, SHAPE, false, text, sizeof text), "ncclAllGather: internal error");
    s->fake->fails = NULL; /* and then goes on */
    assert_null(check(s, &kern_all_gather, SHAPE, false, text, sizeof text));
}

static void what_is_missing(void **state)
{
    static const struct kern_shape SHAPE = {{2, 4096}, KERN_BF16}, MANY = {{6, 4104}, KERN_BF16},
                                   ODD = {{5, 4102}, KERN_BF16};
    struct scene *s = *state;
    struct nccl none;
    struct kern_machine m = s->machine;
    size_t n;
    char text[256];
    const struct kern_variant *v = nccl_variants(&kern_all_reduce, &n);
    assert_int_equal(n, 1);
    assert_null(v->lacks(&m, &SHAPE));
    assert_string_equal(v->lacks(&m, &MANY), "there are fewer cards here");
    assert_non_null(kern_shape_check(&kern_all_gather, &ODD, text, sizeof text));
    assert_non_null(strstr(text, "no whole elements for each card"));
    assert_null(kern_shape_check(&kern_all_reduce, &ODD, text, sizeof text));
    m.cards = 1;
    assert_string_equal(v->lacks(&m, &SHAPE), "two cards are wanted, and here is one");
    m.cards = 2;
    m.nccl = NULL;
    assert_string_equal(v->lacks(&m, &SHAPE), "no NCCL is installed (libnccl.so.2)");
    m.nccl = &none;
    nccl_open(&none, "/nowhere/libnccl.so", s->streams);
    assert_non_null(strstr(v->lacks(&m, &SHAPE), "NCCL cannot be loaded: /nowhere/libnccl.so"));
    nccl_close(&none);
    nccl_open(&none, "libm.so.6", s->streams);
    assert_string_equal(v->lacks(&m, &SHAPE), "this NCCL has no ncclCommInitAll");
    nccl_close(&none);
    assert_int_equal(setenv("RIDGE_NCCL", s->path, 1), 0);
    nccl_open(&none, NULL, s->streams);
    assert_string_equal(none.name, "NCCL 2.27.7");
    nccl_close(&none);
    assert_int_equal(unsetenv("RIDGE_NCCL"), 0);
}

/* Two cards, and all that there are; each shape one that both kernels take. */
static void shapes_for_cards(void **state)
{
    static const struct {
        unsigned cards;
        size_t points;
    } CASES[] = {{2, 5}, {3, 10}, {8, 10}, {9, 5}};
    struct kern_point p[NCCL_POINTS_MAX];
    char text[128];
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        const size_t n = nccl_points(CASES[i].cards, p);
        assert_int_equal(n, CASES[i].points);
        for (size_t j = 0; j < n; j++) {
            assert_true(p[j].shape.v[0] == (j < 5 ? 2 : CASES[i].cards));
            if (kern_shape_check(&kern_all_reduce, &p[j].shape, text, sizeof text)) fail_msg("%s", text);
            if (kern_shape_check(&kern_all_gather, &p[j].shape, text, sizeof text)) fail_msg("%s", text);
        }
    }
}

/* A result is a row of collectives, held against links: 2 (n - 1) / n of the sum, (n - 1) / n of the gathered. */
static void results_are_rows(void **state)
{
    struct scene *s = *state;
    struct hw hw;
    assert_int_equal(hw_load(s->a, "a100-80g", &hw, NULL), ERR_OK);
    for (int i = 0; i < 2; i++) {
        const struct kern *k = i ? &kern_all_gather : &kern_all_reduce;
        struct result r = {.id = 7,
                           .origin = {hw.name, "{}", "ridge v1", "ridge probe run", "2026-11-05T00:00:05Z"},
                           .made = "",
                           .kernel = k->name,
                           .variant = "nccl",
                           .dtype = "bf16",
                           .unit = "fp32",
                           .row_kind = k->row_kind,
                           .outcome = RESULT_MEASURED,
                           .reason = "",
                           .cells = "",
                           .ceiling = "",
                           .read_bytes = 4e6,
                           .written_bytes = 4e6,
                           .before = {1e12, 1e12, 1e12, 1e12},
                           .after = {1e12, 1e12, 1e12, 1e12},
                           .summary = {.n = 1, .median_s = 1e-4, .least_s = 1e-4},
                           .shape = {2, {{"n_gpus", 4}, {"bytes", 4000000}}}};
        struct row row;
        struct kernel_work w;
        struct probe_row shown;
        double flops, bytes;
        assert_true(store_row(s->a, &r, "m.db", &hw, &row));
        assert_string_equal(row.class_name,
                            i ? "collective/all_gather/ridge/nccl" : "collective/all_reduce/ridge/nccl");
        assert_true(row.kernel.ranks == 4 && row.kernel.per_node == 4);
        assert_int_equal(kernel_work(&row.kernel, &hw, &w, NULL), ERR_OK);
        assert_true(fabs(w.bytes - (i ? 3e6 : 6e6)) < 1e-6);
        assert_true(w.bound_s == w.bytes / hw_link_rate(&hw, 4));
        /* no link is measured beside it: the prediction is of one card's memory alone */
        assert_false(probe_row_work(s->a, &r, &flops, &bytes));
        assert_int_equal(probe_row_fill(s->a, &r, &shown, NULL), ERR_OK);
        assert_true(shown.predicted_s == 8e6 / 1e12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sums_and_gathers, begin, end),
        cmocka_unit_test_setup_teardown(wrong_ones_are_seen, begin, end),
        cmocka_unit_test_setup_teardown(failures_are_told, begin, end),
        cmocka_unit_test_setup_teardown(what_is_missing, begin, end),
        cmocka_unit_test_setup_teardown(shapes_for_cards, begin, end),
        cmocka_unit_test_setup_teardown(results_are_rows, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
