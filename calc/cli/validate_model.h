/* validate_model -- the measured rows of a model's operators beside their predictions, and of its layers as their sums;
 * and measured rows on the roofline of their device. Private to `ridge validate`. */
#ifndef RIDGE_CLI_VALIDATE_MODEL_H
#define RIDGE_CLI_VALIDATE_MODEL_H

#include "calc/base/table.h"
#include "calc/fit/shapes.h"
#include "calc/fit/validate.h"

/* One operator of a step, one call of it; or a layer, or the whole step: the sum over those of its operators that were
 * measured. */
struct operator_row {
    const char *phase, *op, *sizes, *dtype, *kernel;
    int64_t batch, calls; /* calls: in all layers; of a layer, how many of its kind */
    double bound_s, calibrated_s, measured_s;
    double ratio;            /* measured over bound */
    double calibrated_ratio; /* measured over calibrated */
    double covered_frac;     /* of a layer and a step: part of the bound of their operators that was measured */
    double whole_bound_s;    /* of a layer and a step: the bound of all their calls, the unmeasured ones too */
};
extern const struct column operator_columns[];
extern const size_t operator_columns_n;

/* What the rows of the store and the model are, and which of them counts. */
struct operator_rows {
    const struct model *model;
    const struct shapes *shapes;
    const struct validate_row *rows; /* as validate_rows made them */
    size_t n;
    bool imported; /* imported rows count before own ones of a call, else after them */
};

/* validate_model_rows -- every call of the shapes, then the layers of each phase and batch, then the whole steps:
 * layers times how many of them there are, and what is outside of them. Of a call the fastest code counts, by its
 * newest cold row; a sum that lacks a call says so in its name. *missing: a sentence on what no step covers, NULL
 * nothing. Errors: ERR_NO no call was measured; ERR_NOMEM. */
enum err_code validate_model_rows(struct arena *a, const struct operator_rows *of, struct operator_row **out,
                                  size_t *out_n, const char **missing, struct err *e);

/* validate_draw -- rows on the roofline of hw. of->shapes NULL: all cold ones, the newest of each; else those of the
 * model's calls, by the names of its operators. Errors: as plot_render. */
enum err_code validate_draw(struct arena *a, const struct hw *hw, const struct operator_rows *of, const char *output,
                            struct err *e);

#endif
