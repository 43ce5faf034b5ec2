/* fit_workload -- distributions that stand for a trace's requests: `ridge fit --workload`; private to the command. */
#ifndef RIDGE_CLI_FIT_WORKLOAD_H
#define RIDGE_CLI_FIT_WORKLOAD_H

#include "calc/base/table.h"
#include "calc/cli/option.h"

/* fit_workload_run -- the summary in a format, and the workload as JSON where --output says so. Errors: ERR_USAGE
 * options of kernels; those of the trace. */
enum err_code fit_workload_run(struct arena *a, const struct option_values *v, enum table_format format, struct err *e);

#endif
