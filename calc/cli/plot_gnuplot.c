#define _GNU_SOURCE /* pipe2 */
#include "calc/cli/plot_gnuplot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calc/base/clock.h"
#include "calc/base/hold.h"
#include "calc/base/text.h"

enum { MESSAGES_MAX = 8192, LIMIT_S = 120, TICK_MS = 50 };

/* -- the directory -- */

static enum err_code make_directory(struct arena *a, char **path, int *fd, struct err *e)
{
    const char *base = getenv("TMPDIR");
    if (!base || !*base) base = "/tmp";
    char *dir = arena_printf(a, "%s/ridge-plot-XXXXXX", base);
    if (!dir) return err_nomem(e);
    char clean[200];
    text_clean(clean, sizeof clean, base, strlen(base));
    if (!mkdtemp(dir)) return err_set(e, ERR_IO, "%s: cannot make a temporary directory: %s", clean, strerror(errno));
    *fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0) {
        const int failed = errno;
        (void)rmdir(dir);
        return err_set(e, ERR_IO, "%s: cannot open a temporary directory: %s", clean, strerror(failed));
    }
    *path = dir;
    return ERR_OK;
}

/* Remove the directory and the plain files in it; closes fd. */
static void remove_directory(const char *path, int fd)
{
    DIR *d = fdopendir(fd);
    if (d) {
        for (const struct dirent *entry = readdir(d); entry; entry = readdir(d)) (void)unlinkat(fd, entry->d_name, 0);
        (void)closedir(d);
    } else {
        (void)close(fd);
    }
    (void)rmdir(path);
}

static bool write_file(int dir, const struct plot_source *f)
{
    const int fd = openat(dir, f->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return false;
    const char *s = f->bytes;
    size_t left = f->size;
    while (left) {
        const ssize_t n = write(fd, s, left);
        if (n < 0 && errno != EINTR) break;
        if (n > 0) {
            s += n;
            left -= (size_t)n;
        }
    }
    const int failed = errno;
    const bool closed = close(fd) == 0;
    if (left) errno = failed;
    return closed && !left;
}

/* Whether a picture has its end: gnuplot does not say that a disk was full. */
static bool is_whole(int fd)
{
    static const struct {
        const char *begins, *ends;
    } FORMS[] = {{"\x89PNG", "IEND"}, {"<?xml", "</svg>"}, {"%PDF", "%%EOF"}};
    char head[8] = "", tail[32] = "";
    struct stat st;
    if (fstat(fd, &st) != 0) return false;
    const off_t from = st.st_size > (off_t)sizeof tail ? st.st_size - (off_t)sizeof tail : 0;
    const ssize_t first = pread(fd, head, sizeof head, 0), last = pread(fd, tail, sizeof tail, from);
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++)
        if (first >= 5 && memcmp(head, FORMS[i].begins, strlen(FORMS[i].begins)) == 0)
            return last > 0 && memmem(tail, (size_t)last, FORMS[i].ends, strlen(FORMS[i].ends));
    return true; /* characters */
}

/* Append the file `name` to o. False when it is absent or empty; *cut: it ends early. */
static bool copy_result(int dir, const char *name, struct out *o, bool *cut)
{
    const int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return false;
    bool any = false;
    *cut = !is_whole(fd);
    if (*cut) {
        (void)close(fd);
        return false;
    }
    for (;;) {
        const ssize_t n = read(fd, out_room(o, OUT_ROOM_MAX), OUT_ROOM_MAX);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            any = any && n == 0;
            break;
        }
        out_used(o, (size_t)n);
        any = true;
    }
    (void)close(fd);
    return any;
}

/* -- the process -- */

struct child {
    pid_t pid;
    int messages; /* its standard output and error */
    char text[MESSAGES_MAX];
    size_t used;
    bool interrupted, late;
    int status; /* as of waitpid */
};

/* In the child: become gnuplot, or write errno to `failed`. Only calls that are safe after fork. */
static _Noreturn void become_gnuplot(int dir, const char *script, int messages, int failed, const sigset_t *mask)
{
    char name[] = "gnuplot", option[] = "--default-settings", file[64];
    (void)snprintf(file, sizeof file, "%s", script);
    char *argv[] = {name, option, file, NULL};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* what cannot be held: SIGKILL of the parent */
    (void)signal(SIGPIPE, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    const int null = open("/dev/null", O_RDONLY);
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(messages, STDOUT_FILENO) >= 0 &&
        dup2(messages, STDERR_FILENO) >= 0 && fchdir(dir) == 0)
        (void)execvp(name, argv);
    const int why = errno;
    const ssize_t told = write(failed, &why, sizeof why);
    _exit(told == (ssize_t)sizeof why ? 127 : 126);
}

static enum err_code no_gnuplot(struct err *e)
{
    return err_set(e, ERR_IO, "gnuplot not found: install it (apt-get install gnuplot-nox) or leave out --plot");
}

enum err_code plot_gnuplot_check(struct err *e)
{
    const char *p = getenv("PATH");
    char file[4096];
    if (!p) return ERR_OK; /* the system's own default */
    for (;;) {
        const size_t n = strcspn(p, ":");
        const int len =
            snprintf(file, sizeof file, "%.*s%sgnuplot", (int)(n < sizeof file ? n : sizeof file), p, n ? "/" : "");
        if (len > 0 && (size_t)len < sizeof file && access(file, X_OK) == 0) return ERR_OK;
        if (!p[n]) return no_gnuplot(e);
        p += n + 1;
    }
}

static enum err_code start_gnuplot(int dir, const char *script, const sigset_t *mask, struct child *c, struct err *e)
{
    int messages[2], failed[2];
    if (pipe2(messages, O_CLOEXEC) != 0) return err_set(e, ERR_IO, "gnuplot: no pipe: %s", strerror(errno));
    if (pipe2(failed, O_CLOEXEC) != 0) {
        const int why = errno;
        (void)close(messages[0]);
        (void)close(messages[1]);
        return err_set(e, ERR_IO, "gnuplot: no pipe: %s", strerror(why));
    }
    c->pid = fork();
    int why = c->pid < 0 ? errno : 0;
    if (c->pid == 0) become_gnuplot(dir, script, messages[1], failed[1], mask);
    (void)close(messages[1]);
    (void)close(failed[1]);
    c->messages = messages[0];
    /* ends without a byte when exec succeeds: the pipe closes */
    ssize_t n = -1;
    if (!why)
        while ((n = read(failed[0], &why, sizeof why)) < 0 && errno == EINTR) continue;
    if (n != (ssize_t)sizeof why && c->pid > 0) why = 0;
    (void)close(failed[0]);
    if (!why) return ERR_OK;
    (void)close(c->messages);
    if (c->pid > 0) (void)waitpid(c->pid, NULL, 0);
    if (why == ENOENT) return no_gnuplot(e);
    return err_set(e, ERR_IO, "gnuplot cannot be started: %s", strerror(why));
}

/* Take what there is to read; false at the end. */
static bool read_messages(struct child *c)
{
    char lost[512]; /* what is beyond the room is read all the same, lest gnuplot wait */
    char *to = c->used < sizeof c->text ? c->text + c->used : lost;
    const ssize_t n = read(c->messages, to, to == lost ? sizeof lost : sizeof c->text - c->used);
    if (n > 0 && to != lost) c->used += (size_t)n;
    return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

static void await_gnuplot(struct child *c, const sigset_t *before)
{
    const double start = clock_now_s();
    bool open = true;
    pid_t done = 0;
    while (done == 0) {
        struct pollfd p = {.fd = open ? c->messages : -1, .events = POLLIN};
        if (poll(&p, 1, open ? TICK_MS : 1) > 0) open = read_messages(c);
        c->interrupted = hold_pending(before);
        c->late = clock_now_s() - start > LIMIT_S;
        if (c->interrupted || c->late) {
            (void)kill(c->pid, SIGKILL);
            while ((done = waitpid(c->pid, &c->status, 0)) < 0 && errno == EINTR) continue;
            break;
        }
        done = waitpid(c->pid, &c->status, WNOHANG);
    }
    /* what was still in the pipe, not what a child of gnuplot may write later */
    struct pollfd rest = {.fd = c->messages, .events = POLLIN};
    while (open && poll(&rest, 1, 0) > 0) open = read_messages(c);
    (void)close(c->messages);
}

/* The line of gnuplot's messages that says what is wrong: the first `... line 12: ...`, else the first not blank. */
static enum err_code complain(const struct child *c, struct err *e)
{
    const char *best = NULL;
    size_t best_len = 0;
    for (size_t i = 0; i < c->used;) {
        const char *line = c->text + i;
        const char *end = memchr(line, '\n', c->used - i);
        size_t len = end ? (size_t)(end - line) : c->used - i;
        i += len + 1;
        const bool blank = strspn(line, " \t\r") >= len;
        const bool located = memmem(line, len, "\" line ", 7) && !memmem(line, len, "warning:", 8);
        if (blank || (best && !located)) continue;
        best = line;
        best_len = len;
        if (located) break;
    }
    char clean[400];
    if (!best && WIFSIGNALED(c->status)) return err_set(e, ERR_IO, "gnuplot: ended by signal %d", WTERMSIG(c->status));
    if (!best) return err_set(e, ERR_IO, "gnuplot: no picture and no message, exit status %d", WEXITSTATUS(c->status));
    return err_set(e, ERR_IO, "gnuplot: %s", text_clean(clean, sizeof clean, best, best_len));
}

static enum err_code run_there(int dir, const struct plot_source *files, size_t n, const char *script,
                               const char *result, const sigset_t *before, struct out *to, struct err *e)
{
    for (size_t i = 0; i < n; i++)
        if (!write_file(dir, &files[i]))
            return err_set(e, ERR_IO, "%s: cannot write in the temporary directory: %s", files[i].name,
                           strerror(errno));
    struct child c = {.pid = -1};
    TRY(start_gnuplot(dir, script, before, &c, e));
    await_gnuplot(&c, before);
    if (c.interrupted) return err_set(e, ERR_STOPPED, "gnuplot: interrupted");
    if (c.late) return err_set(e, ERR_IO, "gnuplot: not done in %d s", LIMIT_S);
    bool cut = false;
    if (WIFEXITED(c.status) && WEXITSTATUS(c.status) == 0 && copy_result(dir, result, to, &cut))
        return out_check(to, e);
    if (cut)
        return err_set(e, ERR_IO,
                       "gnuplot: the picture ends early: is the disk of temporary files full, or files limited?");
    return complain(&c, e);
}

enum err_code plot_gnuplot_run(struct arena *a, const struct plot_source *files, size_t n, const char *script,
                               const char *result, struct out *to, struct err *e)
{
    sigset_t before;
    char *path = NULL;
    int dir = -1;
    hold_begin(&before);
    enum err_code code = make_directory(a, &path, &dir, e);
    if (code == ERR_OK) {
        code = run_there(dir, files, n, script, result, &before, to, e);
        remove_directory(path, dir);
    }
    hold_end(&before);
    return code;
}
