/* cells -- a CSV file (RFC 4180) as cells, for files from outside: every fault names file and line. */
#ifndef RIDGE_FIT_CELLS_H
#define RIDGE_FIT_CELLS_H

#include <stdbool.h>
#include <stddef.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"

enum { CELLS_COLUMNS_MAX = 256, CELLS_TEXT_MAX = 4096, CELLS_FILE_MAX = 1 << 26 };

struct cells {
    const char *name; /* of the file, clean */
    char *at, *end;   /* what is still to be read */
    size_t line;      /* of what is read next, from 1 */
    size_t row_line;  /* of the row last read */
    size_t n;         /* cells of the row last read */
    const char *cell[CELLS_COLUMNS_MAX];
};

/* cells_open -- read a regular file of at most CELLS_FILE_MAX bytes. Errors: ERR_IO; ERR_INPUT too large, or a NUL
 * byte; ERR_NOMEM. */
enum err_code cells_open(struct arena *a, const char *path, struct cells *out, struct err *e);

/* cells_next -- the next row that is not blank; *more false at the end. Cells live as long as the arena. Errors:
 * ERR_INPUT a quote that does not end, text behind a closing quote, too many or too long cells. */
enum err_code cells_next(struct cells *c, bool *more, struct err *e);

#endif
