/* probed_rows -- rows of files that a probe measured (`ridge probe export`), with the ceilings that stand beside them:
 * they are calibrated as those of a store. */
#ifndef RIDGE_CLI_PROBED_ROWS_H
#define RIDGE_CLI_PROBED_ROWS_H

#include "calc/fit/rows.h"

/* probed_rows_mark -- the rows of files on hw, of which those of a core that have columns of the probe (probe_cells.h)
 * become what store_calibrate makes of the same rows of a store. *any: there are such rows. Errors:
 * ERR_INPUT a cell that is no number, no shape, or a rate that no machine has, with file and line; ERR_IO; ERR_NOMEM.
 * Cost: reads each file once more. */
enum err_code probed_rows_mark(struct arena *a, const struct hw *hw, struct rows *rows, bool *any, struct err *e);

#endif
