/* validate_served -- published times of servers beside their predictions, models left out. Private to `ridge validate`.
 */
#ifndef RIDGE_CLI_VALIDATE_SERVED_H
#define RIDGE_CLI_VALIDATE_SERVED_H

#include "calc/base/table.h"
#include "calc/cli/option.h"
#include "calc/serve/served.h"

extern const struct column served_columns[], served_load_columns[], served_row_columns[];
extern const size_t served_columns_n, served_load_columns_n, served_row_columns_n;

/* validate_served -- the whole command for a table of servers: --rows, --format, --output, --plot. Errors: ERR_USAGE an
 * option that is of kernels alone; as served_read, served_predict, table_write and plot_render. */
enum err_code validate_served(struct arena *a, const struct option_values *v, const char *path, struct err *e);

#endif
