/* session and run: a worker may do what it likes; ridge may be killed at any time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "calc/base/hold.h"
#include "kernels/kernel.h"
#include "probe/run.h"
#include "tests/scratch.h"
#include "tests/workers.h"

#define WORKER "fake-worker"

/* -- one answer each -- */

static void outcomes(void **state)
{
    static const struct {
        const char *kernel;
        enum result_outcome outcome;
    } CASES[] = {{"good", RESULT_MEASURED},   {"crash", RESULT_CRASHED}, {"quit", RESULT_CRASHED},
                 {"hang", RESULT_HUNG},       {"good", RESULT_MEASURED}, {"other", RESULT_GARBAGE},
                 {"garbage", RESULT_GARBAGE}, {"lie", RESULT_GARBAGE},   {"long", RESULT_GARBAGE},
                 {"noisy", RESULT_NOISY},     {"endless", RESULT_HUNG},  {"wrong", RESULT_WRONG},
                 {"above", RESULT_ABOVE},     {"good", RESULT_MEASURED}};
    sigset_t before;
    (void)state;
    struct arena *a = arena_open();
    hold_begin(&before);
    struct run r = {.arena = a,
                    .set = {.worker = workers_beside(a, WORKER),
                            .before = &before,
                            .deadline_s = 0.05,
                            .patience_s = 0.4,
                            .noise_frac = 0.005,
                            .least = 10,
                            .seed = 7},
                    .origin = {"", "{}", "test", "test", "now"}};
    struct err e = {.code = ERR_OK};
    assert_int_equal(run_open(&r, &e), ERR_OK);
    assert_string_equal(r.device.name, "Fake 7");
    assert_int_equal(run_measure_ceilings(&r, &e), ERR_OK);
    assert_true(fabs(run_peak(&r.ceilings, "fp32") / 1e9 - 1) < 1e-3); /* not a unit */
    assert_true(fabs(r.ceilings.read.per_s / 1e9 - 1) < 1e-3);         /* not a unit */
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const struct wire_kernel *k = plan_kernel(&r.device, CASES[i].kernel);
        const struct plan_job job = {
            .kernel = k, .variant = &k->variants[0], .dtype = "fp32", .shape = k->points[0].shape};
        struct result x;
        assert_int_equal(run_job(&r, &job, true, &x, &e), ERR_OK);
        assert_int_equal(x.outcome, CASES[i].outcome);
        assert_true((x.outcome == RESULT_MEASURED) == (*x.reason == '\0'));
        assert_true((x.outcome == RESULT_MEASURED) == !isnan(result_time_s(&x)));
    }
    run_close(&r);
    assert_true(workers_gone(getpid(), WORKER));
    hold_end(&before);
    arena_close(a);
}

/* Bytes come from another worker than times; why not is said, and costs the result nothing. */
static void bytes_of_memory(void **state)
{
    static const struct {
        const char *kernel, *says;
        enum result_outcome outcome;
    } CASES[] = {{"good", "", RESULT_MEASURED},
                 {"noisy", "", RESULT_NOISY},
                 {"slow", "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES: this user may not", RESULT_MEASURED},
                 {"mute", "", RESULT_WRONG}, /* what is wrong is not counted */
                 {"above", "the worker ended", RESULT_ABOVE},
                 {"gemm", "this worker does not know how to count", RESULT_MEASURED},
                 {"good", "", RESULT_MEASURED}};
    sigset_t before;
    pid_t pid[WORKERS_MAX];
    (void)state;
    struct arena *a = arena_open();
    hold_begin(&before);
    struct run r = {.arena = a,
                    .set = {.worker = workers_beside(a, WORKER),
                            .before = &before,
                            .deadline_s = 0.05,
                            .patience_s = 0.4,
                            .noise_frac = 0.005,
                            .least = 10,
                            .dram_bytes = true},
                    .origin = {"", "{}", "test", "test", "now"}};
    struct err e = {.code = ERR_OK};
    assert_int_equal(run_open(&r, &e), ERR_OK);
    assert_int_equal(run_measure_ceilings(&r, &e), ERR_OK);
    assert_int_equal(workers_of(getpid(), WORKER, pid), 1);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const struct wire_kernel *k = plan_kernel(&r.device, CASES[i].kernel);
        const struct plan_job job = {
            .kernel = k, .variant = &k->variants[0], .dtype = "fp32", .shape = k->points[0].shape};
        struct result x;
        assert_int_equal(run_job(&r, &job, true, &x, &e), ERR_OK);
        assert_int_equal(x.outcome, CASES[i].outcome);
        if (!strstr(x.dram_reason, CASES[i].says)) fail_msg("%s: %s", CASES[i].kernel, x.dram_reason);
        const bool counted = strcmp(CASES[i].kernel, "good") == 0 || strcmp(CASES[i].kernel, "noisy") == 0;
        assert_true(counted == (x.dram_read_bytes == 1.25e6 && x.dram_write_bytes == 3e4));
        assert_true(counted == !isnan(x.dram_read_bytes));
        assert_int_equal(workers_of(getpid(), WORKER, pid), strcmp(CASES[i].kernel, "above") == 0 ? 1 : 2);
    }
    run_close(&r);
    assert_true(workers_gone(getpid(), WORKER));
    hold_end(&before);
    arena_close(a);
}

static void no_worker(void **state)
{
    sigset_t before;
    struct session *s;
    struct err e = {.code = ERR_OK};
    (void)state;
    struct arena *a = arena_open();
    hold_begin(&before);
    assert_int_equal(session_open(a, workers_beside(a, "no-such-worker"), &before, &s, &e), ERR_DEVICE);
    assert_non_null(strstr(e.text, "no-such-worker"));
    hold_end(&before);
    arena_close(a);
}

/* -- kills -- */

static pid_t start_ridge(struct arena *a, const char *db)
{
    const char *ridge = workers_beside(a, "../ridge"), *worker = workers_beside(a, WORKER);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) return pid;
    if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(1);
    (void)execl(ridge, "ridge", "probe", "run", "--worker", worker, "--store", db, "--kernel", "slow", "--shape",
                "n=1..8", "--state", "cold", "--deadline", "50ms", "--patience", "5s", (char *)NULL);
    _exit(127);
}

/* All that is there is whole, and what was there before still is. Returns how many. */
static size_t check_store(const char *db, size_t at_least)
{
    struct arena *a = arena_open();
    struct store *s;
    struct result *r;
    size_t n = 0;
    const struct store_access write = {.write = true, .patience_s = 20};
    const struct store_filter all = {.samples = true};
    assert_int_equal(store_open(a, db, &write, &s, NULL), ERR_OK);
    assert_int_equal(store_read(a, s, &all, &r, &n, NULL), ERR_OK);
    assert_true(n >= at_least);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(r[i].id, (int64_t)i + 1);
        const bool right = r[i].outcome == RESULT_MEASURED && r[i].times_n >= 12 && r[i].times_n % 12 == 0 &&
                           fabs(result_time_s(&r[i]) / 1e-3 - 1) < 1e-3;
        assert_true(right || (r[i].outcome == RESULT_CRASHED && r[i].times_n == 0));
    }
    arena_close(a);
    return n;
}

static void killed_200_times(void **state)
{
    enum { KILLS = 200, LATEST_MS = 120 };
    char dir[SCRATCH_MAX], db[SCRATCH_FILE_MAX];
    pid_t worker[WORKERS_MAX];
    size_t n = 0, hit_ridge = 0, hit_worker = 0, done = 0;
    (void)state;
    struct arena *a = arena_open();
    if (access(workers_beside(a, "../ridge"), X_OK) != 0) skip();
    (void)snprintf(db, sizeof db, "%s/m.db", scratch_dir(dir));
    for (int i = 0; i < KILLS; i++) {
        int status = 0;
        const uint64_t dice = kern_hash(4242, (uint64_t)i);
        const pid_t ridge = start_ridge(a, db);
        (void)poll(NULL, 0, (int)(dice >> 8 & 0xffff) % LATEST_MS);
        if (dice % 2 && workers_of(ridge, WORKER, worker) > 0) {
            hit_worker += kill(worker[0], SIGKILL) == 0;
            /* the run goes on with another worker; now it is killed too, or left to end */
            (void)poll(NULL, 0, (int)(dice >> 24 & 0xffff) % LATEST_MS);
        }
        if (dice >> 1 & 1) hit_ridge += kill(ridge, SIGKILL) == 0;
        if (!(dice >> 1 & 1)) hit_ridge += kill(ridge, dice >> 2 & 1 ? SIGINT : SIGKILL) == 0;
        assert_int_equal(waitpid(ridge, &status, 0), ridge);
        done += WIFEXITED(status);
        assert_true(workers_gone(ridge, WORKER));
        if (access(db, F_OK) == 0) n = check_store(db, n);
    }
    sqlite3 *s;
    sqlite3_stmt *q;
    assert_int_equal(sqlite3_open(db, &s), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(s, "PRAGMA integrity_check", -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(q, 0), "ok");
    (void)sqlite3_finalize(q);
    (void)sqlite3_close(s);
    assert_true(n > 0 && hit_ridge > 100 && hit_worker > 10);
    (void)done;
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outcomes),
        cmocka_unit_test(bytes_of_memory),
        cmocka_unit_test(no_worker),
        cmocka_unit_test(killed_200_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
