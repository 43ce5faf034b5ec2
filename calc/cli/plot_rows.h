/* plot_rows -- what rows of a sweep share and what tells them apart. */
#ifndef RIDGE_CLI_PLOT_ROWS_H
#define RIDGE_CLI_PLOT_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"
#include "calc/cli/plot_csv.h"

enum { PLOT_NAMING_N = 5 };

/* The columns that name a configuration: model, hardware, batch, context, fidelity. */
struct plot_rows {
    const struct plot_csv *csv;
    bool alike[PLOT_NAMING_N]; /* all rows have the same text there */
};

/* plot_rows_look -- find out what is alike. Cost: O(rows). */
struct plot_rows plot_rows_look(const struct plot_csv *csv);

/* plot_rows_shared -- what all rows have alike: "Llama-2-13b, h100-sxm, batch 64, context 4096, roofline"; "" when
 * nothing. Errors: ERR_NOMEM. */
enum err_code plot_rows_shared(struct arena *a, const struct plot_rows *r, const char **out, struct err *e);

/* plot_rows_name -- what is not alike, of one row, without the column `except`: the name of its series.
 * Errors: ERR_NOMEM. */
enum err_code plot_rows_name(struct arena *a, const struct plot_rows *r, size_t row, const char *except,
                             const char **out, struct err *e);

/* plot_rows_alike -- whether all rows have the same text under key (also when there is no such column). */
bool plot_rows_alike(const struct plot_csv *csv, const char *key);

/* plot_rows_fit -- 1 yes, 0 no, NAN unknown: the column fits ("yes"/"no", "true"/"false"), or where it says nothing
 * memory_bytes against capacity_bytes. */
double plot_rows_fit(const struct plot_csv *csv, size_t row);

#endif
