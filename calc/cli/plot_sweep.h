/* plot_sweep -- rows of a sweep as series over batch or context. */
#ifndef RIDGE_CLI_PLOT_SWEEP_H
#define RIDGE_CLI_PLOT_SWEEP_H

#include <stddef.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"
#include "calc/cli/plot_canvas.h"
#include "calc/cli/plot_csv.h"
#include "calc/cli/plot_rows.h"

enum { PLOT_SWEEP_FITS = PLOT_SERIES_MAX };

struct plot_series {
    const char *name;
    size_t first_row;                     /* in the CSV */
    double *at, *step_s, *rate_tok_per_s; /* [n], by at: batch or context */
    size_t n, n_points;                   /* rows, and those with a time or a rate */
    double last_fit, first_unfit;         /* batch or context, NAN when there is none */
    double need_bytes, have_bytes;        /* of the first that does not fit */
    size_t unfit_region;                  /* shared by those that cease to fit alike; PLOT_SWEEP_FITS: all rows fit */
};

struct plot_sweep {
    const struct plot_csv *csv;
    struct plot_rows naming;
    const char *x_key; /* "batch", or "context" when only that varies */
    double *at;        /* [n_rows], ascending: of all rows but those of prefill */
    size_t n_rows;
    struct plot_series series[PLOT_SERIES_MAX]; /* in the order of the rows */
    size_t n_series, n_unfit, n_unfit_regions;
};

/* plot_sweep_read -- sort rows into series by all that names a configuration (plot_rows). csv must outlive out.
 * Errors: ERR_INPUT no column batch or no row with one; ERR_USAGE more than PLOT_SERIES_MAX series; ERR_NOMEM.
 * Cost: O(rows (log rows + series)). */
enum err_code plot_sweep_read(struct arena *a, const struct plot_csv *csv, struct plot_sweep *out, struct err *e);

#endif
