/* session with a worker whose threads make calls together: killed, stopped, or at fault at any moment, it costs one
 * result, and leaves nothing behind. */
#define _GNU_SOURCE /* tgkill by syscall */
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
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calc/base/hold.h"
#include "kernels/kernel.h"
#include "probe/run.h"
#include "probe/worker/team.h"
#include "tests/scratch.h"
#include "tests/workers.h"

enum { THREADS = 2 };

#define WORKER "ridge-worker-cpu"

static struct run run_of(struct arena *a, const sigset_t *before, const char *worker)
{
    return (struct run){.arena = a,
                        .set = {.worker = worker,
                                .before = before,
                                .deadline_s = 0.01,
                                .patience_s = 0.4,
                                .noise_frac = 0.005,
                                .least = 10,
                                .seed = 7,
                                .threads = THREADS},
                        .origin = {"", "{}", "test", "test", "now"}};
}

/* A product of two threads, without ceilings around it: what is right here is asked for, not how fast. */
static struct plan_job product(const struct run *r, int64_t m)
{
    const struct wire_kernel *k = plan_kernel(&r->device, "gemm");
    assert_non_null(k);
    size_t i = 0;
    while (i < k->variants_n && strcmp(k->variants[i].name, "portable") != 0) i++;
    assert_true(i < k->variants_n && k->variants[i].splits && !*k->variants[i].lacks);
    return (struct plan_job){
        .kernel = k, .variant = &k->variants[i], .dtype = "fp32", .shape = {3, {{"m", m}, {"n", 67}, {"k", 131}}}};
}

/* -- one fault each -- */

/* A worker of several threads that answers as it should not, ends or says nothing. */
static void outcomes(void **state)
{
    static const struct {
        const char *kernel;
        enum result_outcome outcome;
    } CASES[] = {{"good", RESULT_MEASURED}, {"crash", RESULT_CRASHED}, {"garbage", RESULT_GARBAGE},
                 {"hang", RESULT_HUNG},     {"lie", RESULT_GARBAGE},   {"other", RESULT_GARBAGE},
                 {"endless", RESULT_HUNG},  {"long", RESULT_GARBAGE},  {"slow", RESULT_MEASURED},
                 {"good", RESULT_MEASURED}};
    sigset_t before;
    (void)state;
    assert_int_equal(setenv("RIDGE_FAKE_THREADS", "n=2", 1), 0);
    struct arena *a = arena_open();
    hold_begin(&before);
    struct run r = run_of(a, &before, workers_beside(a, "fake-worker"));
    struct err e = {.code = ERR_OK};
    assert_int_equal(run_open(&r, &e), ERR_OK);
    assert_int_equal(r.device.threads, THREADS);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const struct wire_kernel *k = plan_kernel(&r.device, CASES[i].kernel);
        const struct plan_job job = {
            .kernel = k, .variant = &k->variants[0], .dtype = "fp32", .shape = k->points[0].shape};
        struct result x;
        assert_int_equal(run_job(&r, &job, false, &x, &e), ERR_OK);
        assert_int_equal(x.outcome, CASES[i].outcome);
        assert_true((x.outcome == RESULT_MEASURED) == !isnan(result_time_s(&x)));
    }
    run_close(&r);
    hold_end(&before);
    arena_close(a);
    assert_int_equal(unsetenv("RIDGE_FAKE_THREADS"), 0);
}

/* A call that is longer than the time for all of them: no number, and the reason; the next one has one. */
static void deadline(void **state)
{
    sigset_t before;
    (void)state;
    struct arena *a = arena_open();
    if (access(workers_beside(a, "../" WORKER), X_OK) != 0) skip();
    hold_begin(&before);
    struct run r = run_of(a, &before, workers_beside(a, "../" WORKER));
    struct err e = {.code = ERR_OK};
    struct result x;
    r.set.patience_s = 20;                           /* the reference takes its time too */
    const bool several = run_open(&r, &e) == ERR_OK; /* one processor has no two threads */
    for (int i = 0; i < 2 && several; i++) {
        struct plan_job job = product(&r, i ? 5 : 1021);
        if (!i) job.shape.arg[1].value = job.shape.arg[2].value = 307;
        assert_int_equal(run_job(&r, &job, false, &x, &e), ERR_OK);
        if (!i) assert_int_equal(x.outcome, RESULT_NOISY);
        if (!i) assert_true(x.stop == SAMPLE_DEADLINE && strstr(x.reason, "10"));
        assert_true(x.error_frac <= x.tolerance_frac && x.checked > 0);
        assert_true((x.outcome == RESULT_MEASURED) == !isnan(result_time_s(&x)));
    }
    run_close(&r);
    assert_true(workers_gone(getpid(), WORKER));
    hold_end(&before);
    arena_close(a);
    if (!several) skip();
}

/* -- faults at any moment -- */

/* Measures until it is killed or told to stop. */
static void measure_forever(const char *worker, const char *db)
{
    static const struct store_access WRITE = {.write = true, .patience_s = 20};
    sigset_t before;
    struct err e = {.code = ERR_OK};
    struct arena *a = arena_open();
    if (!a || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) _exit(1);
    hold_begin(&before);
    struct run r = run_of(a, &before, worker);
    if (store_open(a, db, &WRITE, &r.store, &e) != ERR_OK || run_open(&r, &e) != ERR_OK) _exit(2);
    for (int64_t m = 1; !r.stopped; m = m % 13 + 1) {
        struct plan_job job = product(&r, m);
        struct result x;
        if (run_job(&r, &job, false, &x, &e) != ERR_OK || r.not_stored) _exit(3);
    }
    run_close(&r);
    arena_close(a);
    _exit(0);
}

/* How many results of some outcomes, a list in SQL, a store holds; none where it is not there yet. */
static size_t count_of(const char *db, const char *outcomes)
{
    char sql[160];
    sqlite3 *s = NULL;
    sqlite3_stmt *q = NULL;
    size_t n = 0;
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM result WHERE outcome IN (%s)", outcomes);
    if (sqlite3_open_v2(db, &s, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(s, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
        n = (size_t)sqlite3_column_int64(q, 0);
    (void)sqlite3_finalize(q);
    (void)sqlite3_close(s);
    return n;
}

#define RIGHT "'measured','noisy'"
#define FAULTY "'crashed','hung'"

/* Until there are more of them than n, however slowly the machine goes: a moment by the clock may be one in which the
 * worker, beside other programs, has not even started. */
static bool wait_for_more(const char *db, const char *outcomes, size_t n, int most_ms)
{
    enum { EVERY_MS = 5 };
    for (int i = 0; i < most_ms / EVERY_MS; i++) {
        if (count_of(db, outcomes) > n) return true;
        (void)poll(NULL, 0, EVERY_MS);
    }
    return false;
}

enum fault { KILL_WORKER, FAULT_IN_THREAD, STOP_WORKER, KILL_BOTH, KILL_PARENT, TELL_PARENT, FAULTS_N };

/* Whether a worker was struck that its parent had not replaced yet. */
static bool strike(enum fault fault, pid_t parent)
{
    pid_t worker[WORKERS_MAX], thread[WORKERS_MAX];
    char tasks[64];
    const bool there = workers_of(parent, WORKER, worker) > 0;
    if (there && (fault == KILL_WORKER || fault == KILL_BOTH)) (void)kill(worker[0], SIGKILL);
    if (there && fault == STOP_WORKER) (void)kill(worker[0], SIGSTOP);
    if (there && fault == FAULT_IN_THREAD) {
        (void)snprintf(tasks, sizeof tasks, "/proc/%ld/task", (long)worker[0]);
        const size_t n = workers_numbers(tasks, thread, WORKERS_MAX);
        if (n) (void)syscall(SYS_tgkill, (long)worker[0], (long)thread[n - 1], SIGSEGV);
    }
    if (fault == KILL_PARENT || fault == KILL_BOTH) (void)kill(parent, SIGKILL);
    if (fault == TELL_PARENT) (void)kill(parent, SIGTERM);
    return there && fault <= STOP_WORKER;
}

/* What is there is whole, what was there before still is, and what is called measured was checked by two threads.
 * Returns how many; of[outcome] counts. */
static size_t check_store(const char *db, size_t at_least, size_t of[RESULT_OUTCOMES_N])
{
    static const struct store_access READ = {.write = true, .patience_s = 20};
    static const struct store_filter ALL = {.samples = true};
    struct arena *a = arena_open();
    struct store *s;
    struct result *r;
    size_t n = 0;
    assert_int_equal(store_open(a, db, &READ, &s, NULL), ERR_OK);
    assert_int_equal(store_read(a, s, &ALL, &r, &n, NULL), ERR_OK);
    assert_true(n >= at_least);
    memset(of, 0, RESULT_OUTCOMES_N * sizeof *of);
    for (size_t i = 0; i < n; i++) {
        of[r[i].outcome]++;
        assert_int_equal(r[i].id, (int64_t)i + 1);
        assert_non_null(strstr(r[i].origin.device, "2 threads"));
        const bool right = r[i].outcome == RESULT_MEASURED || r[i].outcome == RESULT_NOISY;
        if (right) assert_true(r[i].error_frac <= r[i].tolerance_frac && r[i].checked > 0);
        if (!right) assert_true(r[i].outcome == RESULT_CRASHED || r[i].outcome == RESULT_HUNG);
        if (!right) assert_true(isnan(result_time_s(&r[i])) && *r[i].reason);
        if (r[i].outcome == RESULT_MEASURED) assert_true(r[i].times_n >= 10);
    }
    arena_close(a);
    return n;
}

static void check_integrity(const char *db)
{
    sqlite3 *s;
    sqlite3_stmt *q;
    assert_int_equal(sqlite3_open(db, &s), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(s, "PRAGMA integrity_check", -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(q, 0), "ok");
    (void)sqlite3_finalize(q);
    (void)sqlite3_close(s);
}

static void struck_at_any_moment(void **state)
{
    enum { ROUNDS = 18, LATEST_MS = 150 };
    char dir[SCRATCH_MAX], db[SCRATCH_FILE_MAX];
    size_t n = 0, of[RESULT_OUTCOMES_N] = {0};
    (void)state;
    struct arena *a = arena_open();
    const char *worker = workers_beside(a, "../" WORKER);
    if (access(worker, X_OK) != 0 || team_processors() < THREADS) skip();
    (void)snprintf(db, sizeof db, "%s/m.db", scratch_dir(dir));
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t dice = kern_hash(104729, (uint64_t)i);
        const enum fault fault = (enum fault)(i % FAULTS_N);
        int status = 0;
        const pid_t parent = fork();
        assert_true(parent >= 0);
        if (parent == 0) measure_forever(worker, db);
        /* every second time it measures by then; else it may be about to start */
        if (i / FAULTS_N % 2 == 0) assert_true(wait_for_more(db, RIGHT, count_of(db, RIGHT), 30000));
        (void)poll(NULL, 0, (int)(dice >> 8 & 0xffff) % LATEST_MS);
        const size_t faulty = count_of(db, FAULTY);
        /* of a worker alone: it costs a result, or a ceiling around one, and another one takes its place */
        if (strike(fault, parent) && i / FAULTS_N % 2 == 0) (void)wait_for_more(db, FAULTY, faulty, 3000);
        if (fault <= STOP_WORKER) (void)kill(parent, dice & 1 ? SIGKILL : SIGTERM);
        assert_int_equal(waitpid(parent, &status, 0), parent);
        if (WIFEXITED(status)) assert_in_range(WEXITSTATUS(status), 0, 2);
        assert_true(workers_gone(parent, WORKER));
        if (access(db, F_OK) == 0) n = check_store(db, n, of);
    }
    check_integrity(db);
    assert_true(of[RESULT_MEASURED] + of[RESULT_NOISY] > 0 && of[RESULT_CRASHED] + of[RESULT_HUNG] > 0);
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outcomes),
        cmocka_unit_test(deadline),
        cmocka_unit_test(struck_at_any_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
