/* fit_plot -- calibrated times against measured ones as a picture. */
#ifndef RIDGE_CLI_FIT_PLOT_H
#define RIDGE_CLI_FIT_PLOT_H

#include "calc/fit/validate.h"

/* fit_plot_check -- whether output would be accepted. Errors: ERR_USAGE. */
enum err_code fit_plot_check(const char *output, struct err *e);

/* fit_plot -- measured over calibrated against measured, one mark a row, a colour a kind. Errors: as plot_render;
 * ERR_NO no row is calibrated. */
enum err_code fit_plot(struct arena *a, const struct validate_row *rows, size_t n, const char *device,
                       const char *output, struct err *e);

#endif
