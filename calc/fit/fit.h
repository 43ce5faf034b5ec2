/* fit -- parameters of kernel forms from measured rows.
 *
 * Per class the sum of rho(ln(predicted/measured)) is least, rho being the soft absolute value
 * 2 d^2 (sqrt(1 + (x/d)^2) - 1), which a few strange rows do not lead; by trust-region least squares (GSL) from several
 * starts, on parameters that a logistic curve keeps within their bounds. Held-out errors: FIT_SPLITS random splits in
 * which whole shape families (rows.h) are left out of the fit. Everything is deterministic. */
#ifndef RIDGE_FIT_FIT_H
#define RIDGE_FIT_FIT_H

#include "calc/fit/rows.h"

/* FIT_SHAPES_MIN: different shapes of a class that is fitted, however many rows are of each; HOST: of calls of one
 * core, whose form has few parameters. */
enum { FIT_SPLITS = 20, FIT_SHAPES_MIN = 20, FIT_SHAPES_MIN_HOST = 12 };

enum fit_regime { FIT_TINY, FIT_MEMORY, FIT_COMPUTE, FIT_REGIMES_N };

/* Factors of measured over predicted. */
struct fit_band {
    size_t n; /* held-out residuals behind it */
    double p10, p50, p90;
};

struct fit_mean {
    double mean, sd; /* over the splits */
};

/* Parameters of one class and how good they are. NAN where there was nothing to measure. */
struct fit_class {
    const char *name;                   /* rows.h: class_name */
    struct kernel like;                 /* kind, unit and quantisation of its rows */
    size_t rows_n, families_n, large_n; /* large: bound above FIT_LARGE_S */
    size_t shapes_n;                    /* different ones: fit_count_shapes */
    size_t n_params;
    double p[KERNEL_PARAMS_MAX], lo[KERNEL_PARAMS_MAX], hi[KERNEL_PARAMS_MAX]; /* value, 95 % interval */
    double baseline[KERNEL_BASELINE_PARAMS_N];
    double mape_frac, baseline_mape_frac;            /* of the rows fitted */
    struct fit_mean held_out, held_out_baseline;     /* MAPE of families left out */
    double held_out_median_frac, held_out_most_frac; /* of the errors of all rows left out in any split */
    struct fit_mean large, large_baseline;           /* the same, rows whose bound exceeds FIT_LARGE_S */
    struct fit_band band[FIT_REGIMES_N];
    struct fit_band moved[FIT_REGIMES_N]; /* n > 0: of parameters taken to another device; the band is this one */
    struct fit_mean coverage_frac;        /* held-out rows within the P10..P90 band of other families */
};

/* fit_band_of -- the band of a regime: moved, where parameters are another device's, else the own one; n 0: none. */
const struct fit_band *fit_band_of(const struct fit_class *c, enum fit_regime regime);

#define FIT_TINY_S 5e-6   /* a bound below it: start-up is most of the time */
#define FIT_LARGE_S 20e-6 /* a bound above it: what large batches are made of */

/* fit_regime_of -- tiny, or whichever term is the bound. fit_regime_name -- "tiny" "memory" "compute". */
enum fit_regime fit_regime_of(const struct kernel_work *w);
const char *fit_regime_name(enum fit_regime regime);

/* Rows of one class, ready to be fitted; made by fit_points. */
struct fit_point {
    struct kernel_features features;
    struct kernel_work work;
    double time_s;
    size_t family;
};

/* fit_points -- features and work of n rows (pointers) on hw; families numbered in order of name; *families_n of them.
 * Errors: as kernel_prepare, naming file and line; ERR_NOMEM. */
enum err_code fit_points(struct arena *a, const struct hw *hw, const struct row *const *rows, size_t n,
                         struct fit_point **out, size_t *families_n, struct err *e);

/* Who is told how far a fit is, in rows: a piece of work that is `rows` of them, behind `before` others of `of`. */
struct fit_watch {
    void (*done)(void *closure, size_t n, size_t of);
    void *closure;
    double before, rows;
    size_t of;
};

/* fit_params -- parameters of a form for the points at[n]; deviation (may be NULL): standard deviation of each
 * parameter's logarithm; watch (may be NULL) is told after every step. Errors: ERR_NOMEM. Cost: some 500 evaluations of
 * every point per start. */
enum err_code fit_params(const struct kernel *like, const struct fit_point *points, const size_t *at, size_t n,
                         int starts, const struct fit_watch *watch, double *p, double *deviation, struct err *e);

/* fit_baseline -- the same of the three-parameter model (kernel_baseline_s). */
enum err_code fit_baseline(const struct fit_point *points, const size_t *at, size_t n, double *p, struct err *e);

/* fit_class -- all of struct fit_class from rows of one class. splits 0: no held-out errors. watch may be NULL. Errors:
 * as fit_points; ERR_NOMEM. */
enum err_code fit_class(struct arena *a, const struct hw *hw, const struct row *const *rows, size_t n, int splits,
                        const struct fit_watch *watch, struct fit_class *out, struct err *e);

/* fit_count_shapes -- how many different shapes n rows of one class are of: rows that agree in every size that files of
 * their kind have, and in being cold or not, are repeats of one. Errors: ERR_NOMEM. Cost: O(n log n). */
enum err_code fit_count_shapes(struct arena *a, const struct row *const *rows, size_t n, size_t *out, struct err *e);

/* fit_shapes_min -- how many a class needs: FIT_SHAPES_MIN or FIT_SHAPES_MIN_HOST. */
size_t fit_shapes_min(const struct kernel *like);

/* fit_rows -- every class of the rows with at least fit_shapes_min different shapes, in order of name; done (may be
 * NULL) is told again and again how many rows of all are behind, n <= of. Errors: as fit_class. */
enum err_code fit_rows(struct arena *a, const struct hw *hw, const struct rows *rows, int splits,
                       void (*done)(void *closure, size_t n, size_t of), void *closure, struct fit_class **out,
                       size_t *out_n, struct err *e);

#endif
