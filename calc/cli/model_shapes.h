/* model_shapes -- the kernel calls of a model's layers, as options name them: for `ridge probe run -m` and
 * `ridge validate -m`. */
#ifndef RIDGE_CLI_MODEL_SHAPES_H
#define RIDGE_CLI_MODEL_SHAPES_H

#include "calc/cli/option.h"
#include "calc/fit/shapes.h"
#include "probe/plan.h"

/* Rows of an option table. */
#define MODEL_SHAPES_OPTIONS(group_)                                                                                   \
    {.name = "model",                                                                                                  \
     .letter = 'm',                                                                                                    \
     .kind = OPTION_TEXT,                                                                                              \
     .value = "MODEL",                                                                                                 \
     .group = group_,                                                                                                  \
     .help = "the shapes of a model's operators: ridge list models, or a config.json"},                                \
        {.name = "weights", .kind = OPTION_TEXT, .value = "FORMAT", .help = "-m: number format of the weights"},       \
        {.name = "batch", .kind = OPTION_TEXT, .value = "N,...", .fallback = "1,8", .help = "-m: of decode steps"},    \
        {.name = "context",                                                                                            \
         .kind = OPTION_TEXT,                                                                                          \
         .value = "N",                                                                                                 \
         .fallback = "1024",                                                                                           \
         .help = "-m: tokens that a decode step attends to"},                                                          \
    {                                                                                                                  \
        .name = "prompt", .kind = OPTION_TEXT, .value = "N", .fallback = "128", .help = "-m: tokens of a prefill"      \
    }

/* model_shapes_check -- that nothing is said of the shapes of a model without -m. Errors: ERR_USAGE. */
enum err_code model_shapes_check(const struct option_values *v, struct err *e);

/* model_shapes_open -- decode steps of every batch and one prefill of the model of -m on hw (NULL: no bounds). Errors:
 * as model_load, shapes_of_model; ERR_USAGE a number. */
enum err_code model_shapes_open(struct arena *a, const struct option_values *v, const struct hw *hw,
                                struct model *model, struct shapes *out, struct err *e);

/* model_shapes_points -- the calls of the model of -m as points of a plan, in its formats or those of --dtype. What no
 * kernel of the device has a kind for is said in *left_out, a sentence each. Errors: as model_shapes_open; ERR_USAGE a
 * shape is given as well; ERR_NO no kernel has a kind of its operators. */
enum err_code model_shapes_points(struct arena *a, const struct option_values *v, const struct wire_device *device,
                                  struct plan_request *q, const char ***left_out, size_t *left_out_n, struct err *e);

#endif
