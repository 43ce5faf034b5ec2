/* plot_ops -- operators and ceilings of a roofline, out of their CSV. */
#ifndef RIDGE_CLI_PLOT_OPS_H
#define RIDGE_CLI_PLOT_OPS_H

#include <stdbool.h>
#include <stddef.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"
#include "calc/cli/plot_csv.h"

enum { PLOT_CEILINGS_MAX = 16, PLOT_PHASES_MAX = 4, PLOT_OPS_MAX = 2000 };

struct plot_ceiling {
    const char *dtypes; /* "fp8/int8": those with the same peak and bandwidth */
    double peak_flops_per_s, bandwidth_bytes_per_s;
};

struct plot_op {
    const char *name;
    size_t phase; /* index into phases */
    double intensity_flops_per_byte, rate_flops_per_s;
    double share_frac; /* of the phase's time, 0 when unknown */
};

struct plot_ops {
    struct plot_ceiling ceilings[PLOT_CEILINGS_MAX]; /* in the order of the file */
    size_t n_ceilings;
    struct plot_op *ops;
    size_t n_ops, n_without_flops; /* the latter are not in ops */
    const char *phases[PLOT_PHASES_MAX];
    size_t n_phases;
    bool any_share;
};

/* plot_ops_read -- intensity is flops / bytes where its column is empty, the rate flops / time_s, or what the first
 * ceiling allows where the time is empty. Errors: ERR_INPUT no column op, no ceiling or no operator to show; ERR_USAGE
 * more ceilings, phases or operators than there is room for; ERR_NOMEM. */
enum err_code plot_ops_read(struct arena *a, const struct plot_csv *csv, const char *ceilings_csv, struct plot_ops *out,
                            struct err *e);

/* plot_ops_ridge -- peak / bandwidth of a ceiling, flops per byte. */
double plot_ops_ridge(const struct plot_ceiling *c);

#endif
