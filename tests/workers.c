#include "tests/workers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/session.h"

const char *workers_beside(struct arena *a, const char *name)
{
    const char *path;
    assert_int_equal(session_worker_path(a, name, &path, NULL), ERR_OK);
    return path;
}

size_t workers_numbers(const char *path, pid_t *out, size_t most)
{
    DIR *d = opendir(path);
    size_t n = 0;
    for (struct dirent *f; d && n < most && (f = readdir(d)) != NULL;)
        if (isdigit((unsigned char)f->d_name[0])) out[n++] = (pid_t)strtol(f->d_name, NULL, 10);
    if (d) (void)closedir(d);
    return n;
}

/* Whether a process is such a program with that argument. */
static bool is_worker(pid_t pid, pid_t parent, const char *name)
{
    char path[64], line[400], *end;
    (void)snprintf(path, sizeof path, "/proc/%ld/cmdline", (long)pid);
    FILE *c = fopen(path, "r");
    if (!c) return false;
    const size_t got = fread(line, 1, sizeof line - 1, c);
    (void)fclose(c);
    line[got] = '\0';
    const char *slash = strrchr(line, '/'), *argument = line + strlen(line) + 1;
    return strcmp(slash ? slash + 1 : line, name) == 0 && argument < line + got &&
           strtol(argument, &end, 10) == (long)parent;
}

size_t workers_of(pid_t parent, const char *name, pid_t out[WORKERS_MAX])
{
    enum { ALL_MAX = 4096 };
    static pid_t all[ALL_MAX];
    const size_t all_n = workers_numbers("/proc", all, ALL_MAX);
    size_t n = 0;
    assert_true(all_n < ALL_MAX);
    for (size_t i = 0; i < all_n && n < WORKERS_MAX; i++)
        if (is_worker(all[i], parent, name)) out[n++] = all[i];
    return n;
}

bool workers_gone(pid_t parent, const char *name)
{
    enum { TRIES = 300, EACH_MS = 10 };
    pid_t pid[WORKERS_MAX];
    for (int i = 0; i < TRIES; i++) {
        if (workers_of(parent, name, pid) == 0) return true;
        (void)poll(NULL, 0, EACH_MS);
    }
    return false;
}
