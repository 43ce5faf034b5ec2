/* store: whole results or none, whoever else writes, whatever fails; old layouts are brought up to date. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/store.h"
#include "tests/scratch.h"

/* The first layout as it was: never to be changed here. */
static const char LAYOUT_1[] =
    "CREATE TABLE origin (id INTEGER PRIMARY KEY, device TEXT NOT NULL, identity TEXT NOT NULL, tool TEXT NOT NULL,"
    " command TEXT NOT NULL, started TEXT NOT NULL);"
    "CREATE TABLE result (id INTEGER PRIMARY KEY AUTOINCREMENT, origin INTEGER NOT NULL REFERENCES origin(id),"
    " made TEXT NOT NULL, kernel TEXT NOT NULL, variant TEXT NOT NULL, dtype TEXT NOT NULL, unit TEXT NOT NULL,"
    " row_kind TEXT NOT NULL, cold INTEGER NOT NULL, shape TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL,"
    " stop TEXT NOT NULL, seed INTEGER NOT NULL, calls INTEGER NOT NULL, copies INTEGER NOT NULL,"
    " checked INTEGER NOT NULL, error_frac REAL, tolerance_frac REAL, flops REAL, vector_flops REAL, read_bytes REAL,"
    " written_bytes REAL, footprint_bytes REAL, before_peak_flops_per_s REAL, before_read_bytes_per_s REAL,"
    " before_moved_bytes_per_s REAL, after_peak_flops_per_s REAL, after_read_bytes_per_s REAL,"
    " after_moved_bytes_per_s REAL, median_s REAL, least_s REAL, q1_s REAL, q3_s REAL, n INTEGER NOT NULL,"
    " discards INTEGER NOT NULL);"
    "CREATE TABLE sample (result INTEGER NOT NULL REFERENCES result(id), discarded INTEGER NOT NULL, i INTEGER NOT "
    "NULL,"
    " time_s REAL NOT NULL, PRIMARY KEY (result, discarded, i)) WITHOUT ROWID;"
    "CREATE INDEX result_kernel ON result(kernel);";

struct scene {
    struct arena *a;
    char dir[SCRATCH_MAX], path[SCRATCH_FILE_MAX];
};

static const struct store_access WRITE = {.write = true, .patience_s = 20}, READ = {.write = false, .patience_s = 20};

static int begin(void **state)
{
    struct scene *s = calloc(1, sizeof *s);
    if (!s || !(s->a = arena_open())) return -1;
    (void)snprintf(s->path, sizeof s->path, "%s/sub/folder/m.db", scratch_dir(s->dir));
    *state = s;
    return 0;
}

static int end(void **state)
{
    struct scene *s = *state;
    arena_close(s->a);
    scratch_remove(s->dir);
    free(s);
    return 0;
}

enum { TIMES = 13, DISCARDS = 3 };

/* Result i: all its numbers follow from i. */
static struct result make(struct arena *a, int64_t i)
{
    const double nan = (double)NAN;
    double *room = arena_array(a, TIMES, sizeof *room);
    struct result r = {
        .origin = {"Machine 7", "{\"name\":\"Machine 7\"}", "ridge v1", "ridge probe run", "2026-11-30T01:02:03Z"},
        .made = "2026-11-30T01:02:05Z",
        .kernel = "gemm",
        .variant = "avx512",
        .dtype = "bf16",
        .unit = "fp32",
        .row_kind = "gemm",
        .cold = true,
        .shape = {3, {{"m", i}, {"n", 4099}, {"k", 131}}},
        .outcome = RESULT_MEASURED,
        .reason = "",
        .ceiling = "read",
        .stop = SAMPLE_PLATEAU,
        .seed = 7,
        .calls = 3,
        .copies = 5,
        .checked = 11,
        .error_frac = 1.3e-3,
        .tolerance_frac = 1e-2,
        .flops = 1e3 * (double)i,
        .vector_flops = 0,
        .read_bytes = 17,
        .written_bytes = 19,
        .footprint_bytes = 23,
        .piece_bytes = 31,
        .dram_read_bytes = 29,
        .dram_write_bytes = nan,
        .dram_reason = "half of it",
        .before = {1e11, 2e10, nan, 1.9e10},
        .after = {1.1e11, nan, nan, nan},
        .cells = ""};
    r.times_s = arena_array(a, TIMES, sizeof *r.times_s);
    r.discards_s = arena_array(a, DISCARDS, sizeof *r.discards_s);
    assert_true(room && r.times_s && r.discards_s);
    r.times_n = TIMES;
    r.discards_n = DISCARDS;
    for (size_t j = 0; j < TIMES; j++) r.times_s[j] = 1e-3 * (double)i + 1e-6 * (double)(j * 5 % 13);
    for (size_t j = 0; j < DISCARDS; j++) r.discards_s[j] = 0.5 + (double)j;
    r.summary = sample_summarise(r.times_s, TIMES, room);
    return r;
}

static void assert_is(const struct result *r, int64_t i)
{
    int64_t m = -1;
    assert_true(wire_shape_get(&r->shape, "m", &m));
    assert_int_equal(m, i);
    assert_int_equal(r->times_n, TIMES);
    assert_int_equal(r->discards_n, DISCARDS);
    for (size_t j = 0; j < TIMES; j++) assert_true(r->times_s[j] == 1e-3 * (double)i + 1e-6 * (double)(j * 5 % 13));
    for (size_t j = 0; j < DISCARDS; j++) assert_true(r->discards_s[j] == 0.5 + (double)j);
}

static size_t read_all(struct scene *s, struct result **r)
{
    struct store *store;
    size_t n = 0;
    const struct store_filter all = {.samples = true};
    assert_int_equal(store_open(s->a, s->path, &READ, &store, NULL), ERR_OK);
    assert_int_equal(store_read(s->a, store, &all, r, &n, NULL), ERR_OK);
    return n;
}

static void results_read_back(void **state)
{
    struct scene *s = *state;
    struct store *store;
    struct result *r;
    assert_int_equal(store_open(s->a, s->path, &READ, &store, NULL), ERR_NO); /* not there yet */
    assert_int_equal(store_open(s->a, s->path, &WRITE, &store, NULL), ERR_OK);
    for (int64_t i = 1; i <= 3; i++) {
        struct result one = make(s->a, i);
        assert_int_equal(store_add(store, &one, NULL), ERR_OK);
        assert_int_equal(one.id, i);
    }
    assert_int_equal(read_all(s, &r), 3);
    for (int64_t i = 0; i < 3; i++) assert_is(&r[i], i + 1);
    assert_string_equal(r[1].origin.device, "Machine 7");
    assert_string_equal(r[1].origin.command, "ridge probe run");
    assert_string_equal(r[1].origin.started, "2026-11-30T01:02:03Z");
    assert_string_equal(r[1].variant, "avx512");
    assert_true(r[1].cold);
    assert_int_equal(r[1].outcome, RESULT_MEASURED);
    assert_int_equal(r[1].stop, SAMPLE_PLATEAU);
    assert_int_equal(r[1].seed + r[1].calls + r[1].copies + r[1].checked, 7 + 3 + 5 + 11);
    assert_true(r[1].flops == 2e3 && r[1].read_bytes == 17 && r[1].written_bytes == 19 && r[1].footprint_bytes == 23);
    assert_true(r[1].before.peak_flops_per_s == 1e11 && isnan(r[1].before.moved_bytes_per_s));
    assert_true(r[1].after.peak_flops_per_s == 1.1e11 && isnan(r[1].after.read_bytes_per_s));
    assert_true(r[1].summary.median_s == make(s->a, 2).summary.median_s);
    const struct store_filter last = {.last = 2}, third = {.id = 3}, none = {.kernel = "scan"};
    size_t n;
    assert_int_equal(store_read(s->a, store, &last, &r, &n, NULL), ERR_OK);
    assert_int_equal(n, 2);
    assert_int_equal(r[0].id, 2);
    assert_int_equal(store_read(s->a, store, &third, &r, &n, NULL), ERR_OK);
    assert_int_equal(n, 1);
    assert_int_equal(r[0].id, 3);
    assert_int_equal(store_read(s->a, store, &none, &r, &n, NULL), ERR_OK);
    assert_int_equal(n, 0);
}

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void make_folders(struct scene *s)
{
    char path[SCRATCH_FILE_MAX];
    (void)snprintf(path, sizeof path, "%s/sub", s->dir);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/sub/folder", s->dir);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void old_layouts_are_brought_up_to_date(void **state)
{
    struct scene *s = *state;
    struct store *store;
    struct result *r;
    make_folders(s);
    run_sql(s->path, LAYOUT_1);
    run_sql(
        s->path,
        "INSERT INTO origin VALUES (1, 'Old', '{}', 'ridge v0', 'ridge probe run', '2026-01-01T00:00:00Z');"
        "INSERT INTO result (origin, made, kernel, variant, dtype, unit, row_kind, cold, shape, outcome, reason, stop,"
        " seed, calls, copies, checked, median_s, n, discards) VALUES (1, 'then', 'gemm', 'avx2', 'fp32', 'fp32',"
        " 'gemm', 0, '{\"m\":3,\"n\":5,\"k\":7}', 'measured', '', 'quiet', 7, 1, 1, 9, 0.019, 1, 0);"
        "INSERT INTO result (origin, made, kernel, variant, dtype, unit, row_kind, cold, shape, outcome, reason, stop,"
        " seed, calls, copies, checked, n, discards) VALUES (1, 'then', 'stream-triad', 'avx2', 'fp32', 'fp32',"
        " '', 1, '{\"n\":7}', 'noisy', '', 'deadline', 7, 1, 1, 9, 0, 0);"
        "INSERT INTO sample VALUES (1, 0, 0, 0.019); PRAGMA user_version = 1");
    assert_int_equal(store_open(s->a, s->path, &READ, &store, NULL), ERR_INPUT); /* only a writer changes it */
    assert_int_equal(store_open(s->a, s->path, &WRITE, &store, NULL), ERR_OK);
    assert_int_equal(read_all(s, &r), 2);
    assert_string_equal(r[0].origin.device, "Old");
    assert_string_equal(r[0].ceiling, ""); /* told by the kernels' names */
    assert_string_equal(r[1].ceiling, "bandwidth");
    assert_string_equal(r[0].cells, "");
    assert_true(isnan(r[0].dram_read_bytes) && isnan(r[0].dram_write_bytes) && *r[0].dram_reason == '\0');
    assert_true(r[0].summary.median_s == 0.019 && isnan(r[0].flops));
    assert_true(isnan(r[0].piece_bytes) && isnan(r[0].before.gather_bytes_per_s));
    struct result more = make(s->a, 5);
    assert_int_equal(store_add(store, &more, NULL), ERR_OK);
    assert_int_equal(read_all(s, &r), 3);
    assert_string_equal(r[2].ceiling, "read");
    assert_true(r[2].dram_read_bytes == 29 && isnan(r[2].dram_write_bytes));
    assert_true(r[2].piece_bytes == 31 && r[2].before.gather_bytes_per_s == 1.9e10);
    assert_true(isnan(r[2].after.gather_bytes_per_s));
    assert_string_equal(r[2].dram_reason, "half of it");
    assert_string_equal(r[2].origin.started, "2026-11-30T01:02:03Z");
}

enum { SCRATCH_ROOM = 1 << 16 };

static size_t read_bytes(const char *path, char *to, size_t cap)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(to, 1, cap, f);
    (void)fclose(f);
    assert_true(n < cap);
    return n;
}

static void what_is_no_store_is_left_alone(void **state)
{
    struct scene *s = *state;
    struct store *store;
    struct err e = {.code = ERR_OK};
    make_folders(s);
    const int fd = open(s->path, O_CREAT | O_WRONLY, 0600);
    static const char TEXT[] = "these are somebody's notes, and no database at all, however long they may be";
    assert_true(fd >= 0 && write(fd, TEXT, sizeof TEXT) == (ssize_t)sizeof TEXT);
    (void)close(fd);
    assert_int_equal(store_open(s->a, s->path, &WRITE, &store, &e), ERR_INPUT);
    assert_non_null(strstr(e.text, "something else"));
    struct stat st;
    assert_int_equal(stat(s->path, &st), 0);
    assert_int_equal(st.st_size, sizeof TEXT);
    (void)unlink(s->path);
    /* another program's database: refused to write and to read, and not a page of it is changed */
    static const char *const THEIRS[] = {"CREATE TABLE notes (id INTEGER); INSERT INTO notes VALUES (7)",
                                         "CREATE TABLE notes (id INTEGER); PRAGMA user_version = 3",
                                         "PRAGMA user_version = 3", "PRAGMA user_version = 99",
                                         "PRAGMA application_id = 1234567; CREATE TABLE notes (id INTEGER)"};
    static const struct store_access READ_ONLY = {.write = false, .patience_s = 1};
    for (size_t i = 0; i < sizeof THEIRS / sizeof THEIRS[0]; i++) {
        char before[SCRATCH_ROOM], after[SCRATCH_ROOM];
        run_sql(s->path, THEIRS[i]);
        const size_t n = read_bytes(s->path, before, sizeof before);
        assert_int_equal(store_open(s->a, s->path, &WRITE, &store, &e), ERR_INPUT);
        assert_non_null(strstr(e.text, "no store of measurements: the file is something else"));
        assert_int_equal(store_open(s->a, s->path, &READ_ONLY, &store, &e), ERR_INPUT);
        assert_non_null(strstr(e.text, "something else"));
        assert_int_equal(read_bytes(s->path, after, sizeof after), n);
        assert_memory_equal(before, after, n);
        (void)unlink(s->path);
    }
    /* our own of a program to come, and of one before there was a number in the header */
    struct arena *a = arena_open();
    assert_int_equal(store_open(a, s->path, &WRITE, &store, &e), ERR_OK);
    arena_close(a);
    run_sql(s->path, "PRAGMA application_id = 0");
    a = arena_open();
    assert_int_equal(store_open(a, s->path, &WRITE, &store, &e), ERR_OK);
    arena_close(a);
    run_sql(s->path, "PRAGMA user_version = 99");
    assert_int_equal(store_open(s->a, s->path, &WRITE, &store, &e), ERR_INPUT);
    assert_non_null(strstr(e.text, "newer"));
    assert_int_equal(store_open(s->a, s->dir, &WRITE, &store, &e), ERR_IO); /* a folder */
}

static void locked_by_another(void **state)
{
    struct scene *s = *state;
    struct store *store;
    struct err e = {.code = ERR_OK};
    struct result *r, one = make(s->a, 1);
    const struct store_access hasty = {.write = true, .patience_s = 0.05};
    sqlite3 *other;
    assert_int_equal(store_open(s->a, s->path, &hasty, &store, NULL), ERR_OK);
    assert_int_equal(sqlite3_open(s->path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(store_add(store, &one, &e), ERR_IO);
    assert_non_null(strstr(e.text, "locked"));
    assert_int_equal(one.id, 0);
    assert_int_equal(read_all(s, &r), 0); /* readers do not wait */
    assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    assert_int_equal(store_add(store, &one, NULL), ERR_OK); /* the same store goes on */
    assert_int_equal(read_all(s, &r), 1);
    assert_is(&r[0], 1);
}

static void two_at_once(void **state)
{
    enum { WRITERS = 3, EACH = 40 };
    struct scene *s = *state;
    struct result *r;
    pid_t pid[WRITERS];
    for (int w = 0; w < WRITERS; w++) {
        pid[w] = fork();
        assert_true(pid[w] >= 0);
        if (pid[w] > 0) continue;
        struct arena *a = arena_open();
        struct store *store;
        int bad = store_open(a, s->path, &WRITE, &store, NULL) != ERR_OK;
        for (int64_t i = 0; i < EACH && !bad; i++) {
            struct result one = make(a, 1000 * (w + 1) + i);
            bad = store_add(store, &one, NULL) != ERR_OK;
        }
        arena_close(a);
        _exit(bad);
    }
    for (int w = 0; w < WRITERS; w++) {
        int status = -1;
        assert_true(waitpid(pid[w], &status, 0) == pid[w] && status == 0);
    }
    assert_int_equal(read_all(s, &r), WRITERS * EACH);
    int64_t next[WRITERS] = {0};
    for (size_t i = 0; i < WRITERS * EACH; i++) {
        int64_t m = 0;
        assert_true(wire_shape_get(&r[i].shape, "m", &m));
        assert_is(&r[i], m);
        assert_int_equal(m % 1000, next[m / 1000 - 1]++); /* in order, none lost */
    }
}

static void disk_full(void **state)
{
    enum { MOST = 400 };
    struct scene *s = *state;
    struct store *store;
    struct err e = {.code = ERR_OK};
    struct result *r;
    struct rlimit before, small;
    int64_t added = 0;
    assert_int_equal(store_open(s->a, s->path, &WRITE, &store, NULL), ERR_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*usual)(int) = signal(SIGXFSZ, SIG_IGN);
    small = before;
    small.rlim_cur = 300000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum err_code code = ERR_OK;
    while (added < MOST && code == ERR_OK) {
        struct result one = make(s->a, added + 1);
        code = store_add(store, &one, &e);
        if (code == ERR_OK)
            added++;
        else
            assert_int_equal(one.id, 0);
    }
    const int lifted = setrlimit(RLIMIT_FSIZE, &before);
    (void)signal(SIGXFSZ, usual);
    assert_int_equal(lifted, 0);
    assert_int_equal(code, ERR_IO);
    assert_true(added > 0 && added < MOST);
    assert_int_equal(read_all(s, &r), added);
    for (int64_t i = 0; i < added; i++) assert_is(&r[i], i + 1);
    struct result one = make(s->a, added + 1); /* room again */
    assert_int_equal(store_add(store, &one, &e), ERR_OK);
    assert_int_equal(read_all(s, &r), added + 1);
}

static void senseless_rows(void **state)
{
    struct scene *s = *state;
    struct store *store;
    struct result one = make(s->a, 1), *r;
    size_t n;
    struct err e = {.code = ERR_OK};
    const struct store_filter all = {.samples = true};
    static const char *const CHANGES[] = {"UPDATE result SET outcome = 'perfect'",
                                          "UPDATE result SET outcome = 'measured', n = 14",
                                          "UPDATE result SET n = 13, shape = 'm=1'",
                                          "UPDATE result SET shape = '{}', n = -1", "UPDATE result SET n = 1000000000"};
    assert_int_equal(store_open(s->a, s->path, &WRITE, &store, NULL), ERR_OK);
    assert_int_equal(store_add(store, &one, NULL), ERR_OK);
    for (size_t i = 0; i < sizeof CHANGES / sizeof CHANGES[0]; i++) {
        run_sql(s->path, CHANGES[i]);
        assert_int_equal(store_read(s->a, store, &all, &r, &n, &e), ERR_OK);
        assert_int_equal(n, 0);
        assert_int_equal(store_senseless(store, &e), ERR_INPUT);
        assert_non_null(strstr(e.text, ": result 1 makes no sense and is left out ("));
    }
}

/* What is bad is passed over, each once, and the rest is read. */
/* Numbers that no machine has, one at a time, each put right again. */
static void senseless_rates(void **state)
{
    struct scene *s = *state;
    struct store *store;
    struct result one = make(s->a, 1), *r;
    size_t n;
    struct err e = {.code = ERR_OK};
    static const char *const CHANGES[] = {"read_bytes = -1",
                                          "flops = -1",
                                          "written_bytes = -3",
                                          "read_bytes = 9e999",
                                          "median_s = 1e-30",
                                          "median_s = -1",
                                          "after_peak_flops_per_s = 1e19",
                                          "before_read_bytes_per_s = -5"};
    assert_int_equal(store_open(s->a, s->path, &WRITE, &store, NULL), ERR_OK);
    assert_int_equal(store_add(store, &one, NULL), ERR_OK);
    run_sql(s->path, "CREATE TABLE kept AS SELECT * FROM result");
    for (size_t i = 0; i < sizeof CHANGES / sizeof CHANGES[0]; i++) {
        run_sql(s->path, arena_printf(s->a, "UPDATE result SET %s", CHANGES[i]));
        assert_int_equal(store_read(s->a, store, &(struct store_filter){.kernel = NULL}, &r, &n, &e), ERR_OK);
        if (n != 0) fail_msg("%s", CHANGES[i]);
        assert_int_equal(store_senseless(store, &e), ERR_INPUT);
        run_sql(s->path, "DELETE FROM result; INSERT INTO result SELECT * FROM kept");
    }
    assert_int_equal(store_read(s->a, store, &(struct store_filter){.kernel = NULL}, &r, &n, &e), ERR_OK);
    assert_int_equal(n, 1);
}

static void some_senseless_rows(void **state)
{
    struct scene *s = *state;
    struct store *store;
    struct result *r;
    size_t n;
    struct err e = {.code = ERR_OK};
    const struct store_filter all = {.samples = true}, bare = {.samples = false};
    assert_int_equal(store_open(s->a, s->path, &WRITE, &store, NULL), ERR_OK);
    for (int64_t i = 1; i <= 13; i++) {
        struct result one = make(s->a, i);
        assert_int_equal(store_add(store, &one, NULL), ERR_OK);
    }
    assert_int_equal(store_senseless(store, &e), ERR_OK);
    run_sql(s->path, "UPDATE result SET cells = '{\"clock\":1' WHERE id = 3");
    run_sql(s->path, "UPDATE result SET stop = 'never' WHERE id = 11");
    run_sql(s->path, "UPDATE sample SET time_s = -1 WHERE result = 7 AND i = 0");
    run_sql(s->path, "DELETE FROM sample WHERE result = 5 AND i = 1");
    assert_int_equal(store_read(s->a, store, &bare, &r, &n, &e), ERR_OK);
    assert_int_equal(n, 11);
    assert_int_equal(store_read(s->a, store, &all, &r, &n, &e), ERR_OK);
    assert_int_equal(n, 9);
    for (size_t i = 0; i < n; i++) assert_true(r[i].id != 3 && r[i].id != 5 && r[i].id != 7 && r[i].id != 11);
    assert_int_equal(store_senseless(store, &e), ERR_INPUT);
    assert_non_null(strstr(e.text, ": results 3, 11, 5, 7 make no sense and are left out (of the first: cells"));
}

/* Results of several runs and devices through one store. */
static void origins(void **state)
{
    struct scene *s = *state;
    struct store *store;
    struct result r[3] = {make(s->a, 1), make(s->a, 2), make(s->a, 3)}, *got;
    r[1].origin.device = "another";
    assert_int_equal(store_open(s->a, s->path, &WRITE, &store, NULL), ERR_OK);
    for (size_t i = 0; i < 3; i++) assert_int_equal(store_add(store, &r[i], NULL), ERR_OK);
    assert_int_equal(read_all(s, &got), 3);
    for (size_t i = 0; i < 3; i++) assert_string_equal(got[i].origin.device, r[i].origin.device);
}

/* Results of a batch are all there once it is committed, and none before; their texts are copied, those of their run
 * too. What is read one by one is what was there when the reading began. */
static void batches(void **state)
{
    struct scene *s = *state;
    struct store *store, *reader;
    struct store_batch *b;
    struct store_reading *c;
    struct result r[3] = {make(s->a, 1), make(s->a, 2), make(s->a, 3)}, *got, one;
    static const struct store_filter ALL = {.samples = true};
    const char **kernels;
    size_t kernels_n, results_n, n = 0;
    bool more;
    char device[] = "another";
    struct arena *taken = arena_open();
    assert_int_equal(store_open(s->a, s->path, &WRITE, &store, NULL), ERR_OK);
    assert_int_equal(store_add(store, &r[0], NULL), ERR_OK);
    assert_int_equal(store_batch_open(taken, store, &b, NULL), ERR_OK);
    r[1].origin.device = device;
    for (size_t i = 1; i < 3; i++) assert_int_equal(store_batch_add(b, &r[i], NULL), ERR_OK);
    assert_int_equal(read_all(s, &got), 1);
    arena_close(taken); /* taken back */
    assert_int_equal(read_all(s, &got), 1);
    assert_int_equal(store_batch_open(s->a, store, &b, NULL), ERR_OK);
    assert_int_equal(store_batch_add(b, &r[1], NULL), ERR_OK);
    memset(device, 'x', sizeof device - 1);
    r[1].origin.device = "another"; /* of the same run, whatever became of the text */
    assert_int_equal(store_batch_add(b, &r[1], NULL), ERR_OK);
    assert_int_equal(store_open(s->a, s->path, &(struct store_access){.patience_s = 1}, &reader, NULL), ERR_OK);
    assert_int_equal(store_hold(reader, NULL), ERR_OK);
    assert_int_equal(store_kernels(s->a, reader, &kernels, &kernels_n, &results_n, NULL), ERR_OK);
    assert_int_equal(results_n, 1);
    assert_int_equal(store_batch_commit(b, NULL), ERR_OK);
    for (int reading = 0; reading < 2; reading++, n = 0) {
        assert_int_equal(store_each(s->a, reader, &ALL, &c, NULL), ERR_OK);
        for (;;) {
            struct arena *row = arena_open();
            assert_int_equal(store_next(c, row, &one, &more, NULL), ERR_OK);
            if (more) assert_string_equal(one.origin.device, n ? "another" : r[0].origin.device);
            if (more) assert_int_equal(one.times_n, r[n != 0].times_n);
            arena_close(row);
            if (!more) break;
            n++;
        }
        assert_int_equal(n, reading ? 3 : 1);
        store_end(c);
        store_let_go(reader);
    }
    assert_int_equal(store_kernels(s->a, reader, &kernels, &kernels_n, &results_n, NULL), ERR_OK);
    assert_int_equal(results_n, 3);
    assert_int_equal(kernels_n, 1);
    assert_string_equal(kernels[0], r[0].kernel);
    assert_int_equal(read_all(s, &got), 3);
    assert_ptr_equal(got[1].origin.device, got[2].origin.device); /* of one run: kept once */
}

/* The file that was fitted last, of each device its own. */
static void what_was_fitted(void **state)
{
    struct scene *s = *state;
    struct store *store;
    struct store_fitted f;
    static const struct store_fitted ADDED[] = {
        {"/home/x/a.json", "2026-11-03"}, {"/home/x/b 'b'.json", "2026-11-05"}, {"/home/y/c.json", "2026-11-07"}};
    assert_int_equal(store_open(s->a, s->path, &WRITE, &store, NULL), ERR_OK);
    assert_int_equal(store_last_fitted(s->a, store, "Core 7", &f, NULL), ERR_OK);
    assert_null(f.path);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(store_add_fitted(store, i < 2 ? "Core 7" : "Core 8", &ADDED[i], NULL), ERR_OK);
    assert_int_equal(store_last_fitted(s->a, store, "Core 7", &f, NULL), ERR_OK);
    assert_string_equal(f.path, ADDED[1].path);
    assert_string_equal(f.made, ADDED[1].made);
    assert_int_equal(store_last_fitted(s->a, store, "Core 9", &f, NULL), ERR_OK);
    assert_null(f.path);
}

static void where_it_is(void **state)
{
    struct scene *s = *state;
    const char *path;
    assert_int_equal(setenv("XDG_DATA_HOME", "/data/of mine", 1), 0);
    assert_int_equal(setenv("HOME", "/home/x", 1), 0);
    assert_int_equal(store_default_path(s->a, &path, NULL), ERR_OK);
    assert_string_equal(path, "/data/of mine/ridge/measurements.db");
    assert_int_equal(setenv("XDG_DATA_HOME", "relative", 1), 0);
    assert_int_equal(store_default_path(s->a, &path, NULL), ERR_OK);
    assert_string_equal(path, "/home/x/.local/share/ridge/measurements.db");
    assert_int_equal(unsetenv("XDG_DATA_HOME"), 0);
    assert_int_equal(unsetenv("HOME"), 0);
    assert_int_equal(store_default_path(s->a, &path, NULL), ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(results_read_back, begin, end),
        cmocka_unit_test_setup_teardown(old_layouts_are_brought_up_to_date, begin, end),
        cmocka_unit_test_setup_teardown(what_is_no_store_is_left_alone, begin, end),
        cmocka_unit_test_setup_teardown(locked_by_another, begin, end),
        cmocka_unit_test_setup_teardown(two_at_once, begin, end),
        cmocka_unit_test_setup_teardown(disk_full, begin, end),
        cmocka_unit_test_setup_teardown(senseless_rows, begin, end),
        cmocka_unit_test_setup_teardown(some_senseless_rows, begin, end),
        cmocka_unit_test_setup_teardown(senseless_rates, begin, end),
        cmocka_unit_test_setup_teardown(what_was_fitted, begin, end),
        cmocka_unit_test_setup_teardown(origins, begin, end),
        cmocka_unit_test_setup_teardown(batches, begin, end),
        cmocka_unit_test_setup_teardown(where_it_is, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
