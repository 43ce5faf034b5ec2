/* plot_kinds -- what each kind of picture puts on the canvas. One function a kind, in plot_<kind>.c; plot.c has the
 * table. Errors of all: ERR_USAGE rows that one picture cannot show, ERR_INPUT a column or every row missing,
 * ERR_NOMEM. */
#ifndef RIDGE_CLI_PLOT_KINDS_H
#define RIDGE_CLI_PLOT_KINDS_H

#include "calc/cli/plot.h"
#include "calc/cli/plot_canvas.h"

enum err_code plot_roofline_build(const struct plot_request *r, struct plot_canvas *c, struct err *e);
enum err_code plot_batch_build(const struct plot_request *r, struct plot_canvas *c, struct err *e);
enum err_code plot_memory_build(const struct plot_request *r, struct plot_canvas *c, struct err *e);
enum err_code plot_scatter_build(const struct plot_request *r, struct plot_canvas *c, struct err *e);
enum err_code plot_timeline_build(const struct plot_request *r, struct plot_canvas *c, struct err *e);
enum err_code plot_charts_build(const struct plot_request *r, struct plot_canvas *c, struct err *e);

#endif
