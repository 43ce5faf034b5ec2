#define _GNU_SOURCE /* O_TMPFILE */
#include "calc/base/out.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calc/base/text.h"

enum { BUFFER_BYTES = 256 * 1024, TRIES_MAX = 100, PATH_TEXT_MAX = 200 }; /* not a unit */

enum out_kind {
    OUT_STDOUT, /* not ours to close */
    OUT_DIRECT, /* a device, a fifo */
    OUT_NEW,    /* a nameless file that takes a name at commit (O_TMPFILE) */
    OUT_COPIED, /* a nameless file, copied to a named one at commit, where the file system has no O_TMPFILE */
    OUT_MEMORY,
    OUT_DONE,
};

struct out {
    enum out_kind kind;
    int fd;
    int failed;  /* errno of the first failure, 0 when none */
    mode_t mode; /* of the file replaced */
    bool replaces;
    const char *path; /* what the user called it, cleaned, for messages */
    char *target;     /* where the name goes, links followed; malloc */
    char *buffer;
    size_t used, room;
    char scratch[OUT_ROOM_MAX]; /* what out_room gives when memory ran out */
};

/* A kill between the making of a name and its last rename would leave a temporary: hold signals for that moment. */
static void hold_signals(sigset_t *old)
{
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, old);
}

static void release_signals(const sigset_t *old)
{
    const int kept = errno;
    (void)sigprocmask(SIG_SETMASK, old, NULL);
    errno = kept;
}

static bool write_all(int fd, const char *s, size_t n)
{
    while (n) {
        const ssize_t w = write(fd, s, n);
        if (w < 0 && errno == EINTR) continue;
        if (w < 0) return false;
        s += w;
        n -= (size_t)w;
    }
    return true;
}

/* -- opening -- */

static void out_release(void *what)
{
    struct out *o = what;
    out_abandon(o);
    free(o->target);
    free(o->buffer);
    free(o);
}

static struct out *out_new(enum out_kind kind, int fd, size_t room)
{
    struct out *o = calloc(1, sizeof *o);
    if (!o) return NULL;
    *o = (struct out){.kind = kind, .fd = fd, .room = room, .buffer = malloc(room)};
    if (o->buffer) return o;
    free(o);
    return NULL;
}

/* "dir/.name.pid-i" beside target, malloc; NULL when memory ran out. */
static char *temporary_name(const char *target, int i)
{
    const char *slash = strrchr(target, '/');
    const char *base = slash ? slash + 1 : target;
    const size_t room = strlen(target) + 40;
    char *name = malloc(room);
    /* a name of 255 bytes has no room for more: keep 200 of it */
    if (name) (void)snprintf(name, room, "%.*s.%.200s.%ld-%d", (int)(base - target), target, base, (long)getpid(), i);
    return name;
}

/* Make a fresh named file beside target; its name to *name. -1 with errno on failure. */
static int open_named(const char *target, char **name)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        char *candidate = temporary_name(target, i);
        if (!candidate) break;
        const int fd = open(candidate, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) {
            *name = candidate;
            return fd;
        }
        const int kept = errno;
        free(candidate);
        errno = kept;
        if (errno != EEXIST) break;
    }
    return -1;
}

static int open_nameless(const char *target, enum out_kind *kind)
{
    const char *slash = strrchr(target, '/');
    char *dir = slash ? strndup(target, slash == target ? 1 : (size_t)(slash - target)) : strdup(".");
    if (!dir) return -1;
    int fd = -1;
#ifdef O_TMPFILE
    if (access("/proc/self/fd", X_OK) == 0) fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
#endif
    free(dir);
    *kind = OUT_NEW;
    if (fd >= 0) return fd;
    *kind = OUT_COPIED;
    sigset_t old;
    char *name = NULL;
    hold_signals(&old);
    fd = open_named(target, &name);
    if (fd >= 0) (void)unlink(name);
    release_signals(&old);
    const int kept = errno;
    free(name);
    errno = kept;
    return fd;
}

/* Fill in the parts of o that depend on what stands at path. False with errno on failure. */
static bool open_path(struct out *o, const char *path)
{
    struct stat st;
    const bool exists = stat(path, &st) == 0;
    const size_t len = strlen(path);
    if (!exists && len > 0 && path[len - 1] == '/') errno = EISDIR;
    if (len == 0) errno = EINVAL;
    if (!exists && errno != ENOENT) return false;
    if ((exists && !S_ISREG(st.st_mode)) || (!exists && lstat(path, &st) == 0)) { /* also a link to nothing */
        o->kind = OUT_DIRECT;
        o->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | (exists ? 0 : O_CREAT), 0666);
        return o->fd >= 0;
    }
    if (exists && access(path, W_OK) != 0) return false;
    o->target = exists ? realpath(path, NULL) : strdup(path);
    if (!o->target) return false;
    o->replaces = exists;
    o->mode = exists ? st.st_mode & 0777 : 0;
    o->fd = open_nameless(o->target, &o->kind);
    return o->fd >= 0;
}

enum err_code out_open(struct arena *a, const char *path, struct out **out, struct err *e)
{
    const bool standard = !path || strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0;
    char clean[PATH_TEXT_MAX];
    text_clean(clean, sizeof clean, standard ? "standard output" : path, strlen(standard ? "standard output" : path));
    struct out *o = out_new(standard ? OUT_STDOUT : OUT_DONE, standard ? STDOUT_FILENO : -1, BUFFER_BYTES);
    if (!o) return err_nomem(e);
    TRY(arena_defer(a, out_release, o, e));
    o->path = arena_strndup(a, clean, strlen(clean));
    if (!o->path) return err_nomem(e);
    if (!standard && !open_path(o, path)) {
        if (errno == ENOMEM) return err_nomem(e);
        return err_set(e, ERR_IO, "%s: cannot write: %s", clean, strerror(errno));
    }
    *out = o;
    return ERR_OK;
}

enum err_code out_check_path(const char *path, struct err *e)
{
    struct stat st;
    struct out *o;
    if (!path || strcmp(path, "-") == 0) return ERR_OK;
    const bool there = stat(path, &st) == 0;
    if (there && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) return ERR_OK;
    if (!there && lstat(path, &st) == 0) return ERR_OK; /* a link to nothing: opened, it would make something */
    struct arena *a = arena_open();
    if (!a) return err_nomem(e);
    const enum err_code code = out_open(a, path, &o, e);
    arena_close(a); /* abandons it */
    return code;
}

enum err_code out_memory(struct arena *a, struct out **out, struct err *e)
{
    struct out *o = out_new(OUT_MEMORY, -1, 2 * OUT_ROOM_MAX);
    if (!o) return err_nomem(e);
    o->path = "memory";
    TRY(arena_defer(a, out_release, o, e));
    *out = o;
    return ERR_OK;
}

/* -- writing -- */

/* Hand the buffer on; on return it is empty, except in memory. */
static void flush(struct out *o)
{
    if (o->kind == OUT_MEMORY) return;
    if (o->kind == OUT_DONE && !o->failed) o->failed = EBADF;
    if (!o->failed && !write_all(o->fd, o->buffer, o->used)) o->failed = errno ? errno : EIO;
    o->used = 0;
}

/* Make room for n more bytes in memory. */
static bool grow(struct out *o, size_t n)
{
    size_t room = o->room;
    while (room - o->used < n) {
        if (room > (size_t)1 << 40) return false;
        room *= 2;
    }
    char *grown = realloc(o->buffer, room);
    if (!grown) return false;
    o->buffer = grown;
    o->room = room;
    return true;
}

char *out_room(struct out *o, size_t n)
{
    if (o->room - o->used >= n) return o->buffer + o->used;
    flush(o);
    if (o->room - o->used < n && !grow(o, n)) {
        if (!o->failed) o->failed = ENOMEM;
        return o->scratch;
    }
    return o->buffer + o->used;
}

void out_used(struct out *o, size_t n)
{
    if (o->room - o->used >= n) o->used += n; /* else it went to scratch */
}

void out_write(struct out *o, const char *s, size_t n)
{
    while (n) {
        const size_t part = n < OUT_ROOM_MAX ? n : OUT_ROOM_MAX;
        memcpy(out_room(o, part), s, part);
        out_used(o, part);
        s += part;
        n -= part;
    }
}

void out_str(struct out *o, const char *s) { out_write(o, s, strlen(s)); }
void out_char(struct out *o, char c) { out_write(o, &c, 1); }

void out_printf(struct out *o, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    const int n = vsnprintf(out_room(o, OUT_ROOM_MAX), OUT_ROOM_MAX, fmt, ap);
    va_end(ap);
    if (n >= 0 && n < OUT_ROOM_MAX) {
        out_used(o, (size_t)n);
    } else {
        char *s = n < 0 ? NULL : malloc((size_t)n + 1);
        if (s) {
            (void)vsnprintf(s, (size_t)n + 1, fmt, again);
            out_write(o, s, (size_t)n);
        } else if (!o->failed) {
            o->failed = ENOMEM;
        }
        free(s);
    }
    va_end(again);
}

const char *out_text(struct out *o, size_t *len)
{
    char *end = out_room(o, 1);
    if (o->kind != OUT_MEMORY || o->failed) return NULL;
    *end = '\0';
    if (len) *len = o->used;
    return o->buffer;
}

/* -- ending -- */

enum err_code out_check(const struct out *o, struct err *e)
{
    if (!o->failed) return ERR_OK;
    if (o->failed == ENOMEM) return err_nomem(e);
    if (o->failed == EPIPE) return err_set(e, ERR_IO, "%s", "");
    return err_set(e, ERR_IO, "%s: cannot write: %s", o->path, strerror(o->failed));
}

static bool copy_file(int from, int to, char *buffer, size_t room)
{
    if (lseek(from, 0, SEEK_SET) != 0) return false;
    for (;;) {
        const ssize_t n = read(from, buffer, room);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n == 0;
        if (!write_all(to, buffer, (size_t)n)) return false;
    }
}

/* Give the nameless file a name of its own beside the target. NULL with errno on failure. */
static char *link_nameless(const struct out *o)
{
    char from[40];
    (void)snprintf(from, sizeof from, "/proc/self/fd/%d", o->fd);
    for (int i = 0; i < TRIES_MAX; i++) {
        char *name = temporary_name(o->target, i);
        if (!name || linkat(AT_FDCWD, from, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0) return name;
        const int kept = errno;
        free(name);
        errno = kept;
        if (errno != EEXIST) return NULL;
    }
    return NULL;
}

/* The contents under a temporary name, whose descriptor is o->fd. NULL with errno on failure. */
static char *named_temporary(struct out *o)
{
    if (o->kind == OUT_NEW) return link_nameless(o);
    char *name = NULL;
    const int fd = open_named(o->target, &name);
    if (fd < 0) return NULL;
    if (copy_file(o->fd, fd, o->buffer, o->room)) {
        (void)close(o->fd);
        o->fd = fd;
        return name;
    }
    const int kept = errno;
    (void)unlink(name);
    (void)close(fd);
    free(name);
    errno = kept;
    return NULL;
}

static int put_in_place(struct out *o)
{
    sigset_t old;
    hold_signals(&old);
    int failed = 0;
    char *name = named_temporary(o);
    if (!name) failed = errno ? errno : EIO;
    if (name && o->replaces) (void)fchmod(o->fd, o->mode);
    if (!failed && close(o->fd) != 0) failed = errno; /* a full or remote disk may say so only here */
    if (!failed) o->fd = -1;
    if (!failed && rename(name, o->target) != 0) failed = errno;
    if (failed && name) (void)unlink(name);
    free(name);
    release_signals(&old);
    return failed;
}

enum err_code out_commit(struct out *o, struct err *e)
{
    if (o->kind == OUT_MEMORY) return out_check(o, e);
    flush(o);
    const bool file = o->kind == OUT_NEW || o->kind == OUT_COPIED;
    if (!o->failed && file) o->failed = put_in_place(o);
    if (!o->failed && o->kind == OUT_DIRECT) {
        if (close(o->fd) != 0) o->failed = errno;
        o->fd = -1;
    }
    if (!o->failed && o->kind == OUT_STDOUT) {
        const int again = dup(o->fd); /* a remote file may refuse only at a close */
        if (again >= 0 && close(again) != 0) o->failed = errno;
    }
    const enum err_code code = out_check(o, e);
    out_abandon(o);
    return code;
}

void out_abandon(struct out *o)
{
    o->used = 0;
    if (o->kind == OUT_MEMORY) return;
    if (o->kind != OUT_STDOUT && o->fd >= 0) (void)close(o->fd);
    o->fd = -1;
    o->kind = OUT_DONE;
}
