#define _GNU_SOURCE /* pipe2, posix_spawn_file_actions, strsignal */
#include "probe/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calc/base/clock.h"
#include "calc/base/hold.h"
#include "calc/base/text.h"

enum { TICK_MS = 50, PATH_LENGTH_MAX = 4096 };

static const double QUIT_S = 0.5;

struct session {
    pid_t pid; /* 0: ended and waited for */
    int to, from;
    const sigset_t *before;
    char *line; /* [WIRE_LINE_MAX + 1] */
    size_t have;
    int64_t id;
    int status;
};

/* -- start and end -- */

static void close_fd(int *fd)
{
    if (*fd >= 0) (void)close(*fd);
    *fd = -1;
}

static void end_worker(struct session *s, bool kindly)
{
    close_fd(&s->to);
    const double start = clock_now_s();
    while (s->pid > 0) {
        const pid_t done = waitpid(s->pid, &s->status, WNOHANG);
        if (done == s->pid || (done < 0 && errno == ECHILD)) break;
        if (!kindly || clock_now_s() - start > QUIT_S) {
            (void)kill(-s->pid, SIGKILL);
            while (waitpid(s->pid, &s->status, 0) < 0 && errno == EINTR) continue;
            break;
        }
        (void)poll(NULL, 0, 2);
    }
    if (s->pid > 0) (void)kill(-s->pid, SIGKILL); /* what it may have started */
    s->pid = 0;
    close_fd(&s->from);
}

void session_close(struct session *s)
{
    if (s) end_worker(s, true);
}

static void release(void *what) { end_worker(what, true); }

/* Pipes keep clear of 0, 1 and 2, which the child gets anew. */
static bool make_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    for (int i = 0; i < 2; i++) {
        if (ends[i] > STDERR_FILENO) continue;
        const int moved = fcntl(ends[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        (void)close(ends[i]);
        ends[i] = moved;
    }
    if (ends[0] >= 0 && ends[1] >= 0) return true;
    close_fd(&ends[0]);
    close_fd(&ends[1]);
    return false;
}

static int spawn(struct session *s, const char *path, int in, int out)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t usual;
    char parent[24], program[PATH_LENGTH_MAX];
    extern char **environ;
    (void)snprintf(parent, sizeof parent, "%ld", (long)getpid());
    (void)snprintf(program, sizeof program, "%s", path);
    char *argv[] = {program, parent, NULL};
    int why = posix_spawn_file_actions_init(&files);
    if (why) return why;
    why = posix_spawnattr_init(&attr);
    if (why) {
        (void)posix_spawn_file_actions_destroy(&files);
        return why;
    }
    (void)sigemptyset(&usual);
    (void)sigaddset(&usual, SIGPIPE);
    (void)sigaddset(&usual, SIGXFSZ);
    why = posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    if (!why) why = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    if (!why) why = posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (!why) why = posix_spawnattr_setpgroup(&attr, 0);
    if (!why) why = posix_spawnattr_setsigmask(&attr, s->before);
    if (!why) why = posix_spawnattr_setsigdefault(&attr, &usual);
    if (!why)
        why = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (!why) why = posix_spawn(&s->pid, program, &files, &attr, argv, environ);
    if (why) s->pid = 0;
    (void)posix_spawnattr_destroy(&attr);
    (void)posix_spawn_file_actions_destroy(&files);
    return why;
}

enum err_code session_open(struct arena *a, const char *path, const sigset_t *before, struct session **out,
                           struct err *e)
{
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    struct session *s = arena_alloc(a, sizeof *s);
    char clean[200];
    if (!s) return err_nomem(e);
    s->line = arena_alloc(a, WIRE_LINE_MAX + 1);
    s->to = s->from = -1;
    s->before = before;
    if (!s->line) return err_nomem(e);
    TRY(arena_defer(a, release, s, e));
    int why = make_pipe(to) && make_pipe(from) ? 0 : errno;
    if (!why) why = strlen(path) < PATH_LENGTH_MAX ? spawn(s, path, to[0], from[1]) : ENAMETOOLONG;
    close_fd(&to[0]);
    close_fd(&from[1]);
    s->to = to[1];
    s->from = from[0];
    if (why) {
        end_worker(s, false);
        return err_set(e, ERR_DEVICE, "%s: the worker cannot be started: %s",
                       text_clean(clean, sizeof clean, path, strlen(path)), strerror(why));
    }
    (void)fcntl(s->to, F_SETFL, O_NONBLOCK);
    *out = s;
    return ERR_OK;
}

/* -- asking -- */

static enum session_end crashed(struct session *s, char *why, size_t cap)
{
    end_worker(s, true);
    if (WIFSIGNALED(s->status))
        (void)snprintf(why, cap, "the worker was ended by signal %d (%s)", WTERMSIG(s->status),
                       strsignal(WTERMSIG(s->status)));
    else
        (void)snprintf(why, cap, "the worker ended with exit status %d", WEXITSTATUS(s->status));
    return SESSION_CRASHED;
}

static enum session_end killed(struct session *s, enum session_end end)
{
    end_worker(s, false);
    return end;
}

/* Wait until fd is ready. SESSION_ANSWERED: it is. */
static enum session_end await(struct session *s, int fd, short events, double until_s, char *why, size_t cap)
{
    for (;;) {
        if (hold_pending(s->before)) {
            (void)snprintf(why, cap, "stopped by a signal");
            return killed(s, SESSION_STOPPED);
        }
        const double left_s = until_s - clock_now_s();
        if (left_s <= 0) {
            (void)snprintf(why, cap, "the worker did not answer in time");
            return killed(s, SESSION_HUNG);
        }
        struct pollfd p = {.fd = fd, .events = events};
        const int n = poll(&p, 1, left_s * 1e3 < TICK_MS ? (int)(left_s * 1e3) + 1 : TICK_MS);
        if (n > 0) return SESSION_ANSWERED;
    }
}

static enum session_end send_line(struct session *s, const char *text, size_t n, double until_s, char *why, size_t cap)
{
    while (n) {
        const enum session_end end = await(s, s->to, POLLOUT, until_s, why, cap);
        if (end != SESSION_ANSWERED) return end;
        const ssize_t done = write(s->to, text, n);
        if (done < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (done < 0) return crashed(s, why, cap);
        text += done;
        n -= (size_t)done;
    }
    return SESSION_ANSWERED;
}

/* The next line: its length without the end; it stays at s->line until drop_line. */
static enum session_end next_line(struct session *s, size_t *len, double until_s, char *why, size_t cap)
{
    size_t seen = 0;
    for (;;) {
        const char *end = memchr(s->line + seen, '\n', s->have - seen);
        if (end) {
            *len = (size_t)(end - s->line);
            return SESSION_ANSWERED;
        }
        seen = s->have;
        if (s->have == WIRE_LINE_MAX + 1) {
            (void)snprintf(why, cap, "the worker wrote a line of more than %d bytes", WIRE_LINE_MAX);
            return killed(s, SESSION_GARBAGE);
        }
        const enum session_end ready = await(s, s->from, POLLIN, until_s, why, cap);
        if (ready != SESSION_ANSWERED) return ready;
        const ssize_t n = read(s->from, s->line + s->have, WIRE_LINE_MAX + 1 - s->have);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n <= 0) return crashed(s, why, cap);
        s->have += (size_t)n;
    }
}

static void drop_line(struct session *s, size_t len)
{
    memmove(s->line, s->line + len + 1, s->have - len - 1);
    s->have -= len + 1;
}

enum session_end session_ask(struct session *s, struct arena *a, const struct wire_request *request, double deadline_s,
                             session_progress *progress, void *closure, struct wire_reply *reply, char *why, size_t cap)
{
    struct wire_request q = *request;
    struct out *o;
    struct err e = {.code = ERR_OK};
    size_t n, len = 0;
    const double until_s = clock_now_s() + deadline_s;
    const enum wire_is wanted = q.ask == WIRE_DESCRIBE ? WIRE_IS_DEVICE
                                : q.ask == WIRE_COUNT  ? WIRE_IS_WORK
                                                       : WIRE_IS_RESULT;
    q.id = ++s->id;
    if (s->pid == 0 || out_memory(a, &o, NULL) != ERR_OK) return crashed(s, why, cap);
    wire_write_request(o, &q);
    const char *text = out_text(o, &n);
    enum session_end end = text ? send_line(s, text, n, until_s, why, cap) : crashed(s, why, cap);
    while (end == SESSION_ANSWERED) {
        end = next_line(s, &len, until_s, why, cap);
        if (end != SESSION_ANSWERED) break;
        const enum err_code code = wire_read_reply(a, s->line, len, reply, &e);
        drop_line(s, len);
        if (code != ERR_OK || reply->id != q.id || (reply->is != wanted && reply->is != WIRE_IS_PROGRESS)) {
            (void)snprintf(why, cap, "the worker wrote no answer: %s",
                           code != ERR_OK ? e.text : "it is to something that was not asked");
            return killed(s, SESSION_GARBAGE);
        }
        if (reply->is == wanted) return SESSION_ANSWERED;
        if (progress) progress(closure, reply->phase);
    }
    return end;
}

enum err_code session_worker_path(struct arena *a, const char *name, const char **out, struct err *e)
{
    char path[PATH_LENGTH_MAX];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0) return err_set(e, ERR_IO, "cannot tell where this program is: %s", strerror(errno));
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    *out = arena_printf(a, "%.*s/%s", slash ? (int)(slash - path) : 0, path, name);
    return *out ? ERR_OK : err_nomem(e);
}
