/* csv -- a small reader of quoted CSV for tests: columns by name. */
#ifndef RIDGE_TESTS_CSV_H
#define RIDGE_TESTS_CSV_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/arena.h"

enum { CSV_COLUMNS = 64, CSV_RECORD = 1 << 16 };

struct csv {
    FILE *file;
    char head[CSV_RECORD], record[CSV_RECORD];
    const char *name[CSV_COLUMNS], *cell[CSV_COLUMNS];
    size_t names_n, cells_n;
};

/* csv_shared -- a file of the shared test data. */
static inline const char *csv_shared(struct arena *a, const char *file)
{
    const char *root = getenv("RIDGE_SHARED");
    return arena_printf(a, "%s/%s", root ? root : "../shared", file);
}

static inline bool csv_split(FILE *f, char *buf, const char **cell, size_t *n)
{
    size_t len = 0;
    bool quoted = false, any = false;
    *n = 0;
    cell[(*n)++] = buf;
    for (int c; (c = fgetc(f)) != EOF && len < CSV_RECORD - 1;) {
        any = true;
        if (c == '"') {
            quoted = !quoted;
        } else if (c == ',' && !quoted) {
            buf[len++] = '\0';
            if (*n < CSV_COLUMNS) cell[(*n)++] = buf + len;
        } else if (c == '\n' && !quoted) {
            break;
        } else if (c != '\r') {
            buf[len++] = (char)c;
        }
    }
    buf[len] = '\0';
    return any;
}

static inline bool csv_open(struct csv *t, const char *path)
{
    memset(t, 0, sizeof *t);
    t->file = path ? fopen(path, "r") : NULL;
    return t->file && csv_split(t->file, t->head, t->name, &t->names_n);
}

static inline bool csv_next(struct csv *t) { return csv_split(t->file, t->record, t->cell, &t->cells_n); }

static inline const char *csv_get(const struct csv *t, const char *name)
{
    for (size_t i = 0; i < t->names_n && i < t->cells_n; i++)
        if (strcmp(t->name[i], name) == 0) return t->cell[i];
    return "";
}

static inline double csv_num(const struct csv *t, const char *name)
{
    const char *s = csv_get(t, name);
    return *s ? strtod(s, NULL) : (double)NAN;
}

static inline void csv_close(struct csv *t)
{
    if (t->file) (void)fclose(t->file);
}

#endif
