#define _XOPEN_SOURCE 700 /* nftw */
#include "tests/scratch.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { FILES_OPEN = 8 };

/* The folder of this program; a child that it forks must leave it alone. */
static char root[SCRATCH_MAX];
static pid_t owner;

static void stop(const char *what)
{
    perror(what);
    abort();
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    (void)remove(path);
    return 0;
}

void scratch_remove(const char *path) { (void)nftw(path, remove_one, FILES_OPEN, FTW_DEPTH | FTW_PHYS); }

static void remove_root(void)
{
    if (owner == getpid()) scratch_remove(root);
}

static void begin(void)
{
    if (root[0] && owner == getpid()) return;
    const char *tmp = getenv("TMPDIR");
    const int n = snprintf(root, sizeof root, "%s/ridge-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (n < 0 || (size_t)n + sizeof "/XXXXXX" > sizeof root) stop("TMPDIR is too long");
    if (!mkdtemp(root)) stop(root);
    if (!owner && atexit(remove_root) != 0) stop("atexit");
    owner = getpid();
}

const char *scratch_dir(char out[SCRATCH_MAX])
{
    begin();
    (void)snprintf(out, SCRATCH_MAX, "%.*s/XXXXXX", SCRATCH_MAX - 8, root);
    if (!mkdtemp(out)) stop(out);
    return out;
}

int scratch_file(char out[SCRATCH_MAX])
{
    begin();
    (void)snprintf(out, SCRATCH_MAX, "%.*s/XXXXXX", SCRATCH_MAX - 8, root);
    const int fd = mkstemp(out);
    if (fd < 0) stop(out);
    return fd;
}

const char *scratch_text(char out[SCRATCH_MAX], const char *text)
{
    const int fd = scratch_file(out);
    const size_t n = strlen(text);
    if (write(fd, text, n) != (ssize_t)n || close(fd) != 0) stop(out);
    return out;
}
