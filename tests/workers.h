/* workers -- programs that a test starts, and those that they have started: found in /proc, as nobody else tells. */
#ifndef RIDGE_TESTS_WORKERS_H
#define RIDGE_TESTS_WORKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "calc/base/arena.h"

enum { WORKERS_MAX = 16 };

/* workers_beside -- the path of a program beside the test's: "fake-worker", "../ridge". */
const char *workers_beside(struct arena *a, const char *name);

/* workers_numbers -- entries of a folder of /proc that are numbers, `most` at most; their count. */
size_t workers_numbers(const char *path, pid_t *out, size_t most);

/* workers_of -- living programs of this name whose only argument is the number of `parent`, who started them. */
size_t workers_of(pid_t parent, const char *name, pid_t out[WORKERS_MAX]);

/* workers_gone -- whether within some seconds there is none left. */
bool workers_gone(pid_t parent, const char *name);

#endif
