/* rows_cells -- a CSV file (RFC 4180) as cells, for files from outside: every fault names file and line. */
#ifndef RIDGE_FIT_ROWS_CELLS_H
#define RIDGE_FIT_ROWS_CELLS_H

#include <stdbool.h>
#include <stddef.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"

enum {
    ROWS_CELLS_COLUMNS_MAX = 256,
    ROWS_CELLS_TEXT_MAX = 1 << 18,
    ROWS_CELLS_ROW_MAX = ROWS_CELLS_COLUMNS_MAX * ROWS_CELLS_TEXT_MAX,
    ROWS_CELLS_FILE_MAX = 1 << 29
};

struct rows_window;

struct rows_cells {
    const char *name; /* of the file, clean */
    char *at, *end;   /* what is still to be read */
    size_t line;      /* of what is read next, from 1 */
    size_t row_line;  /* of the row last read */
    size_t n;         /* cells of the row last read */
    const char *cell[ROWS_CELLS_COLUMNS_MAX];
    struct rows_window *window; /* NULL: all of the file is in memory */
};

/* rows_cells_open -- read a file of at most ROWS_CELLS_FILE_MAX bytes. Errors: ERR_IO no regular file; ERR_INPUT too
 * large, in UTF-16, or a NUL byte; ERR_NOMEM. "-" is the standard input, if that is a regular file. */
enum err_code rows_cells_open(struct arena *a, const char *path, struct rows_cells *out, struct err *e);

/* rows_cells_stream -- the same of a file of any size, of which no more is in memory than a row needs. */
enum err_code rows_cells_stream(struct arena *a, const char *path, struct rows_cells *out, struct err *e);

/* rows_cells_next -- the next row that is not blank; *more false at the end. Cells live as long as the arena, those of
 * a stream until the next row. Errors: of a stream as rows_cells_open; ERR_INPUT a quote that does not end, text behind
 * a closing quote, too many or too long cells. */
enum err_code rows_cells_next(struct rows_cells *c, bool *more, struct err *e);

#endif
