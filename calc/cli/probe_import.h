/* probe_import -- rows of files as results: what `ridge probe import` makes of one, and what it refuses. */
#ifndef RIDGE_CLI_PROBE_IMPORT_H
#define RIDGE_CLI_PROBE_IMPORT_H

#include "calc/fit/rows.h"
#include "calc/fit/rows_cells.h"
#include "probe/account.h"

/* A file's columns that are a result's own, and where they stand; -1 nowhere. */
struct import_columns {
    const char *names[ROWS_CELLS_COLUMNS_MAX];
    size_t n;
    int device, made, dtype, times, discards, dram_read, dram_write, kind, probed;
};

#define NAME_WANTED "a name of one line, at most 200 bytes"

/* import_read_header -- of the line of columns. import_cell -- of column `at`, "" where that is -1. */
void import_read_header(const struct rows_cells *c, struct import_columns *out);
const char *import_cell(const struct rows_cells *c, int at);

/* import_is_name -- whether tables and messages can show it: of one line, at most 200 bytes. */
bool import_is_name(const char *text);

/* import_row -- a row that rows_read_file took, as a result: filled in as it is without a file. import_ceiling -- a row
 * of a ceiling. What a probe measured is held against account. Errors: ERR_INPUT naming file, line and column;
 * ERR_USAGE nothing says the device; as account_check. */
enum err_code import_row(struct arena *a, const struct rows_cells *c, const struct import_columns *h,
                         const struct row *row, struct account *account, struct result *r, struct err *e);
enum err_code import_ceiling(struct arena *a, const struct rows_cells *c, const struct import_columns *h,
                             struct account *account, struct result *r, struct err *e);

#endif
