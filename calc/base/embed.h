/* embed -- the data files of the checkout, carried inside the program (written by tools/embed.c at build time).
 *
 * Paths are as in the checkout, "configs/hardware/h100-sxm.json", and sorted by byte value, so that the files below one
 * folder are neighbours. All functions here are pure. */
#ifndef RIDGE_BASE_EMBED_H
#define RIDGE_BASE_EMBED_H

#include <stddef.h>

struct embed_file {
    const char *path;
    const unsigned char *bytes; /* size bytes, then a NUL that size does not count */
    size_t size;
};

/* The table itself, defined by the generated file. */
extern const struct embed_file embed_files[];
extern const size_t embed_files_n;

/* embed_find -- the file with exactly this path, NULL when there is none. Cost: O(log files). */
const struct embed_file *embed_find(const char *path);

/* embed_under -- the files whose path begins with prefix ("configs/hardware/"; "" is all of them): returns the first
 * and sets *n, the others follow it. *n is 0 and the result NULL when there is none. Cost: O(log files). */
const struct embed_file *embed_under(const char *prefix, size_t *n);

#endif
