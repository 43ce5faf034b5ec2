/* scope -- the options that explain and check share: which conventions, which model. */
#ifndef RIDGE_CLI_SCOPE_H
#define RIDGE_CLI_SCOPE_H

#include "calc/cli/option.h"
#include "calc/learn/quantity.h"

/* scope_open -- a context and the scope that --model and --course name; model (borrowed by the scope) is filled when
 * one is named. Errors: as model_load; ERR_NOMEM. */
enum err_code scope_open(struct arena *a, const struct option_values *v, struct model *model,
                         struct quantity_scope *out, struct err *e);

/* scope_phase -- --phase as a quantity_phase. Errors: ERR_USAGE. */
enum err_code scope_phase(const struct option_values *v, enum quantity_phase *out, struct err *e);

#endif
