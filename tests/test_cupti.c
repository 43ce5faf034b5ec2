/* cupti: the calls that count bytes of a card's memory, in their order, and a sentence for everything that can go
 * wrong, with a libcupti of the tests: no card was asked. */
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

#include "probe/session.h"
#include "probe/worker/cupti.h"
#include "probe/worker/work.h"
#include "tests/worker/cupti_fake.h"

struct scene {
    struct arena *a;
    const char *path;
    void *library;
    struct cupti_fake *fake;
    const char *fails; /* what run says */
    struct cupti_bytes bytes;
    char text[400];
};

static const char ORDER[] =
    "cuptiProfilerInitialize cuptiProfilerDeviceSupported cuptiDeviceGetChipName cuptiProfilerHostInitialize "
    "cuptiProfilerHostConfigAddMetrics cuptiProfilerHostGetConfigImageSize cuptiProfilerHostGetConfigImage "
    "cuptiProfilerHostGetNumOfPasses cuptiRangeProfilerEnable cuptiRangeProfilerGetCounterDataSize "
    "cuptiRangeProfilerCounterDataImageInitialize cuptiRangeProfilerSetConfig cuptiRangeProfilerStart "
    "cuptiRangeProfilerPushRange calls cuptiRangeProfilerPopRange cuptiRangeProfilerStop "
    "cuptiRangeProfilerDecodeData cuptiRangeProfilerGetCounterDataInfo cuptiProfilerHostEvaluateToGpuValues "
    "cuptiRangeProfilerDisable cuptiProfilerHostDeinitialize cuptiProfilerDeInitialize ";

static int open_fake(void **state)
{
    struct scene *s = calloc(1, sizeof *s);
    *state = s;
    if (!s || !(s->a = arena_open())) return -1;
    if (session_worker_path(s->a, "libcupti_fake.so", &s->path, NULL) != ERR_OK) return -1;
    s->library = dlopen(s->path, RTLD_NOW | RTLD_LOCAL);
    s->fake = s->library ? dlsym(s->library, "cupti_fake") : NULL;
    return s->fake ? 0 : -1;
}

static int close_fake(void **state)
{
    struct scene *s = *state;
    (void)dlclose(s->library);
    arena_close(s->a);
    free(s);
    return 0;
}

static const char *run(void *closure)
{
    struct scene *s = closure;
    (void)strncat(s->fake->log, "calls ", sizeof s->fake->log - strlen(s->fake->log) - 1);
    return s->fails;
}

/* One that counts 7001 and 211 bytes. */
static void reset(struct scene *s)
{
    *s->fake = (struct cupti_fake){.passes = 1,
                                   .ranges = 1,
                                   .all_passes = true,
                                   .levels = {3, 3, 3, 3, 3, 3, 3},
                                   .values = {7001, 211},
                                   .context = s,
                                   .device = 2};
    s->fails = NULL;
}

static const char *count(struct scene *s)
{
    const struct cupti_job job = {.library = s->path, .device = 2, .context = s, .run = run, .closure = s};
    const char *why = cupti_count(&job, &s->bytes, s->text, sizeof s->text);
    /* nothing stays open, and nothing was called with what it does not want */
    assert_true(s->fake->hosts == 0 && s->fake->enabled == 0 && s->fake->started == 0 && s->fake->pushed == 0);
    assert_int_equal(s->fake->initialized, 0);
    assert_null(strchr(s->fake->log, '?'));
    assert_true((why == NULL) == !isnan(s->bytes.read) && isnan(s->bytes.read) == isnan(s->bytes.written));
    return why;
}

static void says(struct scene *s, const char *wanted)
{
    const char *why = count(s);
    if (!why || !strstr(why, wanted)) fail_msg("wanted \"%s\", found \"%s\"", wanted, why ? why : "no error");
}

static void counts_in_their_order(void **state)
{
    struct scene *s = *state;
    for (int i = 0; i < 2; i++) { /* and once more */
        reset(s);
        assert_null(count(s));
        assert_true(s->bytes.read == 7001 && s->bytes.written == 211);
        assert_string_equal(s->fake->log, ORDER);
    }
}

/* Each function in turn. What closes fails without a word: the bytes are known by then. */
static void every_failure_has_its_sentence(void **state)
{
    struct scene *s = *state;
    char name[128];
    for (const char *p = ORDER; *p; p += strcspn(p, " ") + 1) {
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(p, " "), p);
        reset(s);
        if (strcmp(name, "calls") == 0) continue;
        if (p >= strstr(ORDER, "cuptiRangeProfilerDisable")) continue;
        s->fake->fails = name;
        s->fake->code = 999;                                                       /* not a unit: CUPTI_ERROR_UNKNOWN */
        if (strcmp(name, "cuptiRangeProfilerPopRange") == 0) s->fake->pushed = -1; /* it stays in */
        const struct cupti_job job = {.library = s->path, .device = 2, .context = s, .run = run, .closure = s};
        const char *why = cupti_count(&job, &s->bytes, s->text, sizeof s->text);
        char wanted[200];
        (void)snprintf(wanted, sizeof wanted, "%s: CUPTI_ERROR_UNKNOWN", name);
        assert_non_null(why);
        assert_string_equal(why, wanted);
        assert_true(isnan(s->bytes.read) && isnan(s->bytes.written));
        assert_true(s->fake->hosts == 0 && s->fake->enabled == 0 && s->fake->started == 0 && s->fake->initialized == 0);
    }
    reset(s);
    s->fake->fails = "cuptiRangeProfilerStart";
    s->fake->code = 4711; /* one that has no name */
    says(s, "cuptiRangeProfilerStart: error 4711");
}

static void known_reasons_are_told(void **state)
{
    static const struct {
        const char *function;
        int code;
        const char *says;
    } CASES[] = {
        {"cuptiRangeProfilerEnable", 35,
         "cuptiRangeProfilerEnable: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES: this user may not read the card's counters;"},
        {"cuptiRangeProfilerEnable", 35, "NVreg_RestrictProfilingToAdminUsers=0"},
        {"cuptiRangeProfilerSetConfig", 35, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES: this user may not"},
        {"cuptiRangeProfilerEnable", 40, "_DEVICE_INSUFFICIENT_PRIVILEGES: the counters of this virtual card"},
        {"cuptiRangeProfilerEnable", 41, "a card in confidential computing does not count"},
        {"cuptiRangeProfilerEnable", 43, "a part of a card (MIG) does not count"},
        {"cuptiProfilerInitialize", 15, "there is no driver, or no context"},
        {"cuptiProfilerHostConfigAddMetrics", 17,
         "CUPTI_ERROR_INVALID_METRIC_NAME: chip GH100 has no counters dram__bytes_read.sum and dram__bytes_write.sum"},
        {"cuptiProfilerHostInitialize", 46, "CUPTI_ERROR_INVALID_CHIP_NAME: this libcupti does not know chip GH100"},
    };
    struct scene *s = *state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        reset(s);
        s->fake->fails = CASES[i].function;
        s->fake->code = CASES[i].code;
        says(s, CASES[i].says);
    }
}

static void cards_that_do_not_count(void **state)
{
    static const char *const PARTS[] = {"compute capability 7.0", "SLI",    "virtual",
                                        "confidential",           "mining", "Windows"};
    struct scene *s = *state;
    for (int i = 0; i < 6; i++) {
        reset(s);
        s->fake->levels[0] = s->fake->levels[i + 1] = 1 + i % 2;
        says(s, PARTS[i]);
        assert_null(strstr(s->fake->log, "calls"));
    }
    reset(s);
    s->fake->levels[0] = 1;
    says(s, "CUPTI does not say why");
    reset(s);
    memset(s->fake->levels, 0, sizeof s->fake->levels); /* not known: the rest will tell */
    assert_null(count(s));
}

static void counts_that_are_none(void **state)
{
    struct scene *s = *state;
    reset(s);
    s->fake->passes = 3;
    says(s, "take 3 passes on chip GH100, and one is made");
    reset(s);
    s->fake->all_passes = false;
    says(s, "once more");
    reset(s);
    s->fake->dropped = 1;
    says(s, "of one range 1 were counted and 1 dropped");
    reset(s);
    s->fake->ranges = 0;
    says(s, "of one range 0 were counted and 0 dropped");
    reset(s);
    s->fake->values[1] = (double)NAN;
    says(s, "dram__bytes_write.sum came out as ");
    reset(s);
    s->fake->values[0] = -5;
    says(s, "dram__bytes_read.sum came out as -5");
    reset(s);
    s->fails = "an illegal memory access was encountered";
    says(s, "the calls that were counted failed: an illegal memory access");
}

static void which_library(void **state)
{
    struct scene *s = *state;
    struct cupti_job job = {.library = "/nowhere/libcupti.so", .context = s, .run = run, .closure = s};
    assert_non_null(cupti_count(&job, &s->bytes, s->text, sizeof s->text));
    assert_non_null(strstr(s->text, "libcupti cannot be loaded: /nowhere/libcupti.so"));
    job.library = "libm.so.6";
    assert_non_null(cupti_count(&job, &s->bytes, s->text, sizeof s->text));
    assert_string_equal(s->text, "libcupti has no cuptiProfilerInitialize: that of CUDA 12.6 or later has");
    reset(s);
    job.library = NULL;
    job.device = 2;
    assert_int_equal(setenv("RIDGE_CUPTI", s->path, 1), 0);
    assert_null(cupti_count(&job, &s->bytes, s->text, sizeof s->text));
    assert_true(s->bytes.read == 7001);
    assert_int_equal(unsetenv("RIDGE_CUPTI"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counts_in_their_order, open_fake, close_fake),
        cmocka_unit_test_setup_teardown(every_failure_has_its_sentence, open_fake, close_fake),
        cmocka_unit_test_setup_teardown(known_reasons_are_told, open_fake, close_fake),
        cmocka_unit_test_setup_teardown(cards_that_do_not_count, open_fake, close_fake),
        cmocka_unit_test_setup_teardown(counts_that_are_none, open_fake, close_fake),
        cmocka_unit_test_setup_teardown(which_library, open_fake, close_fake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
