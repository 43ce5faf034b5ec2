/* trace_read -- a trace with a bar while it is read, and an end where the user wants one. */
#ifndef RIDGE_CLI_TRACE_READ_H
#define RIDGE_CLI_TRACE_READ_H

#include "calc/serve/workload.h"

/* trace_read -- Errors: as workload_read_watched; ERR_NO interrupted. */
enum err_code trace_read(struct arena *a, const char *path, struct workload *out, struct err *e);

#endif
