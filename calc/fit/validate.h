/* validate -- measured rows against what they cannot beat and what was fitted. */
#ifndef RIDGE_FIT_VALIDATE_H
#define RIDGE_FIT_VALIDATE_H

#include "calc/fit/efficiency.h"

/* One measured row beside its predictions; NAN where there are no parameters for its class, and all of them where the
 * row is unbounded. */
struct validate_row {
    const struct row *row;
    const char *kind, *regime, *framework, *class_name, *file;
    int64_t line;
    double bound_s, credited_bound_s, baseline_s, calibrated_s, p10_s, p90_s, measured_s;
};

/* validate_rows -- all rows on hw, in their order. f NULL: bounds alone. Errors: ERR_INPUT as kernel_prepare;
 * ERR_NOMEM.
 */
enum err_code validate_rows(struct arena *a, const struct hw *hw, const struct rows *rows, const struct efficiency *f,
                            struct validate_row **out, struct err *e);

/* validate_doubt -- a sentence when rows can hardly be what they say: a tenth of them or more below the credited bound,
 * or a median over a hundred times the bound and DOUBT_START_S: another unit, another device. NULL: none. *below: rows
 * under the bound. Errors: ERR_NOMEM. */
enum err_code validate_doubt(struct arena *a, const struct validate_row *rows, size_t n, const char *device,
                             size_t *below, const char **out, struct err *e);

/* Rows that share what is grouped by. Errors are |predicted - measured| / measured. */
struct validate_group {
    const char *group; /* "gemm, memory, vllm"; "all" of everything */
    int64_t rows;
    int64_t below_bound;        /* measured below the credited bound: the bound is wrong, or the measurement */
    int64_t below_bound_fitted; /* calibrated below it: never */
    int64_t weak;               /* bytes below the cache: the check rests on flops alone */
    int64_t calibrated;         /* rows with parameters */
    double bound_ratio;         /* geometric mean of measured over bound */
    double mape_frac, median_frac, p90_frac; /* of the calibrated time */
    double baseline_mape_frac;               /* of the three-parameter model, the same rows */
    double coverage_frac;                    /* measured within P10..P90 */
};

/* validate_groups -- by: any of kind, regime, framework, class joined by ','; NULL or "": one group. In order of the
 * groups' names, then "all". Errors: ERR_USAGE another word in by; ERR_NOMEM. */
enum err_code validate_groups(struct arena *a, const struct validate_row *rows, size_t n, const struct hw *hw,
                              const char *by, struct validate_group **out, size_t *out_n, struct err *e);

#endif
