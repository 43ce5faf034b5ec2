#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calc/base/out.h"
#include "tests/scratch.h"

struct place {
    struct arena *arena;
    char dir[SCRATCH_MAX], path[SCRATCH_FILE_MAX];
};

static int open_place(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    if (!p) return 1;
    p->arena = arena_open();
    *state = p;
    if (!p->arena) return 1;
    (void)snprintf(p->path, sizeof p->path, "%s/rows.csv", scratch_dir(p->dir));
    return 0;
}

static int close_place(void **state)
{
    struct place *p = *state;
    arena_close(p->arena);
    free(p);
    return 0;
}

static size_t files_in(const char *dir)
{
    DIR *d = opendir(dir);
    assert_non_null(d);
    size_t n = 0;
    for (struct dirent *f; (f = readdir(d)) != NULL;) n += strcmp(f->d_name, ".") != 0 && strcmp(f->d_name, "..") != 0;
    (void)closedir(d);
    return n;
}

static void assert_holds(const char *path, const char *text)
{
    char got[256] = {0};
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    (void)fread(got, 1, sizeof got - 1, f);
    (void)fclose(f);
    assert_string_equal(got, text);
}

static void put_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void test_file_appears_when_complete(void **state)
{
    struct place *p = *state;
    struct out *o;
    struct err e = {.code = ERR_OK};
    assert_int_equal(out_open(p->arena, p->path, &o, &e), ERR_OK);
    out_str(o, "batch,flops\n");
    out_printf(o, "%d,%s\n", 17, "26030899200");
    out_char(o, '#');
    assert_int_equal(files_in(p->dir), 0);
    assert_int_equal(out_commit(o, &e), ERR_OK);
    assert_holds(p->path, "batch,flops\n17,26030899200\n#");
    assert_int_equal(files_in(p->dir), 1);
    struct stat st;
    assert_int_equal(stat(p->path, &st), 0);
    const mode_t mask = umask(0);
    (void)umask(mask);
    assert_int_equal(st.st_mode & 0777, 0666 & ~mask);
}

static void test_replaces_and_keeps_mode(void **state)
{
    struct place *p = *state;
    struct out *o;
    struct err e = {.code = ERR_OK};
    put_file(p->path, "old and longer than the new one\n");
    assert_int_equal(chmod(p->path, 0640), 0);
    assert_int_equal(out_open(p->arena, p->path, &o, &e), ERR_OK);
    out_str(o, "new\n");
    assert_holds(p->path, "old and longer than the new one\n");
    assert_int_equal(out_commit(o, &e), ERR_OK);
    assert_holds(p->path, "new\n");
    struct stat st;
    assert_int_equal(stat(p->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(files_in(p->dir), 1);
}

static void test_follows_links(void **state)
{
    struct place *p = *state;
    char link[SCRATCH_FILE_MAX];
    (void)snprintf(link, sizeof link, "%s/link", p->dir);
    put_file(p->path, "old");
    assert_int_equal(symlink("rows.csv", link), 0);
    struct out *o;
    struct err e = {.code = ERR_OK};
    assert_int_equal(out_open(p->arena, link, &o, &e), ERR_OK);
    out_str(o, "new");
    assert_int_equal(out_commit(o, &e), ERR_OK);
    struct stat st;
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_holds(p->path, "new");
    assert_int_equal(unlink(link), 0);
}

static void test_abandoned_leaves_nothing(void **state)
{
    struct place *p = *state;
    struct out *o;
    struct err e = {.code = ERR_OK};
    put_file(p->path, "old");
    assert_int_equal(out_open(p->arena, p->path, &o, &e), ERR_OK);
    out_str(o, "new");
    out_abandon(o);
    assert_holds(p->path, "old");
    assert_int_equal(out_open(p->arena, p->path, &o, &e), ERR_OK);
    out_str(o, "new"); /* neither committed nor abandoned: the arena does it */
    arena_close(p->arena);
    p->arena = arena_open();
    assert_holds(p->path, "old");
    assert_int_equal(files_in(p->dir), 1);
}

static void test_killed_leaves_nothing(void **state)
{
    struct place *p = *state;
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct out *o;
        struct err e;
        if (out_open(p->arena, p->path, &o, &e) == ERR_OK)
            for (int i = 0; i < 100003; i++) out_printf(o, "%d\n", i);
        if (write(ready[1], "x", 1) == 1) (void)pause();
        _exit(0);
    }
    char x;
    assert_int_equal(read(ready[0], &x, 1), 1);
    assert_int_equal(kill(child, SIGTERM), 0);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    (void)close(ready[0]);
    (void)close(ready[1]);
    assert_int_equal(files_in(p->dir), 0);
}

static void test_refusals(void **state)
{
    struct place *p = *state;
    struct out *o = NULL;
    struct err e = {.code = ERR_OK};
    assert_int_equal(out_open(p->arena, "/nonexistent/dir/rows.csv", &o, &e), ERR_IO);
    assert_string_equal(e.text, "/nonexistent/dir/rows.csv: cannot write: No such file or directory");
    assert_int_equal(out_open(p->arena, p->dir, &o, &e), ERR_IO);
    assert_non_null(strstr(e.text, "Is a directory"));
    assert_int_equal(out_open(p->arena, "", &o, &e), ERR_IO);
    assert_int_equal(out_open(p->arena, "/dev/null/x\x1b[2J", &o, &e), ERR_IO);
    assert_null(strchr(e.text, '\x1b'));
    assert_null(o);
}

/* What would be refused at the end is told at once; nothing is made, opened or changed by looking. */
static void test_check_path(void **state)
{
    struct place *p = *state;
    struct err e = {.code = ERR_OK};
    char link[SCRATCH_FILE_MAX], fifo[SCRATCH_FILE_MAX];
    struct stat st;
    assert_int_equal(out_check_path(NULL, &e), ERR_OK);
    assert_int_equal(out_check_path("-", &e), ERR_OK);
    assert_int_equal(out_check_path("/dev/null", &e), ERR_OK);
    assert_int_equal(out_check_path(p->path, &e), ERR_OK);
    assert_int_equal(files_in(p->dir), 0);
    assert_int_equal(out_check_path(p->dir, &e), ERR_IO);
    assert_non_null(strstr(e.text, "Is a directory"));
    assert_int_equal(out_check_path("/nonexistent/dir/rows.csv", &e), ERR_IO);
    assert_int_equal(out_check_path("", &e), ERR_IO);
    (void)snprintf(link, sizeof link, "%s/link", p->dir);
    assert_int_equal(symlink("nothing", link), 0);
    assert_int_equal(out_check_path(link, &e), ERR_OK);
    assert_int_equal(files_in(p->dir), 1);
    (void)snprintf(fifo, sizeof fifo, "%s/fifo", p->dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(out_check_path(fifo, &e), ERR_OK); /* nobody reads it yet: opening would wait */
    FILE *f = fopen(p->path, "w");
    assert_non_null(f);
    assert_true(fputs("old", f) >= 0 && fclose(f) == 0 && stat(p->path, &st) == 0);
    assert_int_equal(out_check_path(p->path, &e), ERR_OK);
    assert_holds(p->path, "old");
}

static void test_full_device(void **state)
{
    struct place *p = *state;
    if (access("/dev/full", W_OK) != 0) skip();
    struct out *o;
    struct err e = {.code = ERR_OK};
    assert_int_equal(out_open(p->arena, "/dev/full", &o, &e), ERR_OK);
    out_str(o, "x");
    assert_int_equal(out_check(o, &e), ERR_OK);
    assert_int_equal(out_commit(o, &e), ERR_IO);
    assert_string_equal(e.text, "/dev/full: cannot write: No space left on device");
    assert_int_equal(out_open(p->arena, "/dev/full", &o, &e), ERR_OK);
    for (int i = 0; i < 100003; i++) out_str(o, "0123456789");
    assert_int_equal(out_check(o, &e), ERR_IO);
    out_abandon(o);
    struct stat st;
    assert_int_equal(stat("/dev/full", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    assert_int_equal(out_open(p->arena, "/dev/null", &o, &e), ERR_OK);
    out_str(o, "x");
    assert_int_equal(out_commit(o, &e), ERR_OK);
}

static void test_closed_pipe_is_quiet(void **state)
{
    struct place *p = *state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    (void)close(ends[0]);
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction before;
    assert_int_equal(sigaction(SIGPIPE, &ignore, &before), 0);
    const int kept = dup(STDOUT_FILENO);
    struct out *o;
    struct err e = {.code = ERR_OK};
    enum err_code code = out_open(p->arena, NULL, &o, &e);
    (void)fflush(stdout);
    (void)dup2(ends[1], STDOUT_FILENO);
    if (code == ERR_OK) out_str(o, "x");
    if (code == ERR_OK) code = out_commit(o, &e);
    (void)dup2(kept, STDOUT_FILENO);
    (void)close(kept);
    (void)close(ends[1]);
    (void)sigaction(SIGPIPE, &before, NULL);
    assert_int_equal(code, ERR_IO);
    assert_string_equal(e.text, "");
}

static void test_memory(void **state)
{
    struct place *p = *state;
    struct out *o;
    struct err e = {.code = ERR_OK};
    assert_int_equal(out_memory(p->arena, &o, &e), ERR_OK);
    size_t len = 1;
    assert_string_equal(out_text(o, &len), "");
    assert_int_equal(len, 0);
    char *big = malloc(70001);
    assert_non_null(big);
    memset(big, 'b', 70000);
    big[70000] = '\0';
    out_str(o, "a");
    out_str(o, big);
    out_printf(o, "%s%d", big, 13);
    const char *text = out_text(o, &len);
    assert_int_equal(len, 1 + 2 * 70000 + 2);
    assert_int_equal(text[0], 'a');
    assert_int_equal(text[70001], 'b');
    assert_string_equal(text + 140001, "13");
    assert_int_equal(out_commit(o, &e), ERR_OK);
    assert_string_equal(out_text(o, NULL) + 140001, "13");
    free(big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_file_appears_when_complete, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_replaces_and_keeps_mode, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_follows_links, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_abandoned_leaves_nothing, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_killed_leaves_nothing, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_refusals, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_check_path, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_full_device, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_closed_pipe_is_quiet, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_memory, open_place, close_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
