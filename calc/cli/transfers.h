/* transfers -- whose measured kernels stand for those of a device that nobody measured. */
#ifndef RIDGE_CLI_TRANSFERS_H
#define RIDGE_CLI_TRANSFERS_H

#include "calc/fit/source.h"

/* How far off such transfers were on devices that were measured. */
struct transfer {
    enum source_transfer kind; /* SOURCE_OWN: kernels are the device's own, and nothing else is set */
    const char *device;        /* whose kernels stand for them */
    double low, high;          /* times, four of five kernels */
};

/* transfer_of -- of a device. efficiency, framework: as source_open. Errors: as source_open. transfer_words -- a
 * sentence on one that is not SOURCE_OWN, of the devices that are named; NULL: no memory. transfer_text -- of one
 * device; NULL where kernels are its own. */
enum err_code transfer_of(struct arena *a, const struct hw *hw, const char *efficiency, const char *framework,
                          struct transfer *out, struct err *e);
const char *transfer_words(struct arena *a, const struct transfer *t, const char *names);
enum err_code transfer_text(struct arena *a, const struct hw *hw, const char *efficiency, const char *framework,
                            const char **out, struct err *e);

#endif
