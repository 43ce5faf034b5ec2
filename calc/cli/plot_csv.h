/* plot_csv -- CSV text (RFC 4180, as table_write makes it) as columns found by name. */
#ifndef RIDGE_CLI_PLOT_CSV_H
#define RIDGE_CLI_PLOT_CSV_H

#include <stddef.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"

struct plot_csv {
    const char *const *cells; /* [n_rows + 1][n_columns], the header first; all in the arena */
    size_t n_rows, n_columns;
};

/* plot_csv_parse -- blank lines are passed over; a row short of cells is filled with ""; the apostrophe that disarms a
 * formula is taken off. what names the text in messages. Errors: ERR_INPUT no header, a row with more cells than the
 * header (with its line), a quote that does not end; ERR_NOMEM. Cost: O(bytes). */
enum err_code plot_csv_parse(struct arena *a, const char *what, const char *text, struct plot_csv *out, struct err *e);

/* plot_csv_column -- index of the column with this key, or n_columns when there is none. */
size_t plot_csv_column(const struct plot_csv *csv, const char *key);

/* plot_csv_text -- the cell of data row `row` (from 0) under key; "" when there is no such column. */
const char *plot_csv_text(const struct plot_csv *csv, size_t row, const char *key);

/* plot_csv_number -- the same as a number; NAN when empty, absent, not a number or infinite. */
double plot_csv_number(const struct plot_csv *csv, size_t row, const char *key);

#endif
