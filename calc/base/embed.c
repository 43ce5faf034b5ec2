#include "calc/base/embed.h"

#include <string.h>

/* First index whose path, cut to len bytes, is not below key (bound 0) or is above it (bound 1). */
static size_t bound_of(const char *key, size_t len, int bound)
{
    size_t lo = 0, hi = embed_files_n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (strncmp(embed_files[mid].path, key, len) < bound)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

const struct embed_file *embed_find(const char *path)
{
    const size_t i = bound_of(path, strlen(path) + 1, 0);
    return i < embed_files_n && strcmp(embed_files[i].path, path) == 0 ? &embed_files[i] : NULL;
}

const struct embed_file *embed_under(const char *prefix, size_t *n)
{
    const size_t len = strlen(prefix), first = bound_of(prefix, len, 0);
    *n = bound_of(prefix, len, 1) - first;
    return *n ? &embed_files[first] : NULL;
}
