/* plan -- the columns of `ridge plan --layouts`. */
#ifndef RIDGE_CLI_PLAN_H
#define RIDGE_CLI_PLAN_H

#include "calc/base/table.h"

/* plan_columns -- all columns of a layout; n of them. */
const struct column *plan_columns(size_t *n);

#endif
