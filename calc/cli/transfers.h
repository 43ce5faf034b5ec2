/* transfers -- whose measured kernels stand for those of a device that nobody measured. */
#ifndef RIDGE_CLI_TRANSFERS_H
#define RIDGE_CLI_TRANSFERS_H

#include "calc/fit/source.h"

/* transfer_text -- a sentence, with how far off such transfers were on devices that were measured; NULL where kernels
 * are the device's own. efficiency, framework: as source_open. Errors: as source_open. */
enum err_code transfer_text(struct arena *a, const struct hw *hw, const char *efficiency, const char *framework,
                            const char **out, struct err *e);

#endif
