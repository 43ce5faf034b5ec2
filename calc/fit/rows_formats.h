/* rows_formats -- which columns files of each kind have; one table for rows_read.c. */
#ifndef RIDGE_FIT_ROWS_FORMATS_H
#define RIDGE_FIT_ROWS_FORMATS_H

#include "calc/fit/rows.h"

enum { ROWS_NUMBERS_MAX = 24, ROWS_TEXTS_N = 11, ROWS_OPTIONAL_N = 3 };

/* What a number is in results of kernels that have no such parameter. */
enum rows_absent {
    ROWS_NEEDED, /* there must be one */
    ROWS_ONE,    /* 1 */
    ROWS_UNKNOWN /* its expected value; so is an empty cell of a file */
};

/* A number of a row: its column, its place in struct kernel, its range. */
struct rows_number {
    const char *column;
    size_t offset;
    double lo, hi;
    bool mean; /* need not be whole */
    enum rows_absent absent;
    bool optional;   /* the same where a file has no such column */
    const char *own; /* what the probe's kernels call it; NULL: as the column */
};

/* The column that says of each row of which kind it is, in files of several kinds. Of such a file a row has the columns
 * whose cells are not empty, and all that may be unknown. */
#define ROWS_KIND_COLUMN "row_kind"

/* What it says of a ceiling of the machine, which is no call of a kernel: passed over but by `ridge probe import`. */
#define ROWS_KIND_CEILING "ceiling"

/* rows_number_is -- whether a column, or a parameter of a kernel, is this number. */
bool rows_number_is(const struct rows_number *n, const char *name);

/* A text of a row: its column, its place in struct row. */
struct rows_text {
    const char *column;
    size_t offset;
};

/* What stands where in files of one kind. */
struct rows_format {
    enum kernel_kind kind;
    const struct rows_number *numbers;
    size_t numbers_n;
    const char *texts; /* further columns that must be there, joined by ',' */
    const char *dtype; /* where the file has no such column; NULL it has */
    const char *op;    /* the only one of such rows, and the probe's kernel for it; NULL: others too */
    /* what a row means: completes the kernel, names class and family. Errors: ERR_INPUT without file and line. */
    enum err_code (*finish)(struct arena *a, struct row *r, struct err *e);
};

/* In this order: the first whose columns are all there is the file's. */
extern const struct rows_format rows_formats[];
extern const size_t rows_formats_n;

/* rows_format_of -- the columns of a call: of its kind the first that have what it has; NULL none. */
const struct rows_format *rows_format_of(const struct kernel *k);

/* What a line of a file is. */
enum rows_line {
    ROWS_END,
    ROWS_ROW,
    ROWS_CEILING,   /* of the machine: ROWS_KIND_CEILING */
    ROWS_NO_NUMBER, /* by its outcome */
    ROWS_OF_OTHERS, /* of another device than the filter's */
    ROWS_UNASKED    /* of another framework or kind */
};

/* rows_lines_open -- a file of rows of any size, line by line; filter lives as long. rows_lines_next -- the next line,
 * r where it is a row: its texts live until the next, what was made of them in a. rows_lines_header, _cells -- of the
 * columns, and of the line last read. Errors: as rows_read_file. */
struct rows_lines;
struct rows_cells;
enum err_code rows_lines_open(struct arena *a, const char *path, const struct rows_filter *filter,
                              struct rows_lines **out, struct err *e);
enum err_code rows_lines_next(struct rows_lines *l, struct arena *a, struct row *r, enum rows_line *what,
                              struct err *e);
const struct rows_cells *rows_lines_header(const struct rows_lines *l);
const struct rows_cells *rows_lines_cells(const struct rows_lines *l);

/* rows_move -- of a call of turned positions (rope), of sampling or of judging drafts, whose sizes and element_bytes
 * are known, moved_bytes and written_bytes: MODEL.md "Calibrated times", "Rows of the probe's kernels". */
void rows_move(struct kernel *k);

/* Texts and numbers that any file may have. */
extern const struct rows_text rows_texts[ROWS_TEXTS_N];
extern const struct rows_number rows_optional[ROWS_OPTIONAL_N];

#endif
