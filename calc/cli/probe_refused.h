/* probe_refused -- what of a plan is refused before anything is measured, and how a run ends that has no number.
 * Private to the command. */
#ifndef RIDGE_CLI_PROBE_REFUSED_H
#define RIDGE_CLI_PROBE_REFUSED_H

#include "calc/cli/probe_rows.h"
#include "calc/cli/probe_work.h"

/* probe_wants_memory -- whether a worker's reason is that operands have no room. */
bool probe_wants_memory(const char *why);

/* probe_check_refused -- shapes of --shape that are all refused are so before the ceilings: relations of sizes are
 * known to the worker alone, which refuses at once; the first that it takes ends the asking. Errors: ERR_RANGE. */
enum err_code probe_check_refused(struct work *w, const struct plan *plan, bool cold, struct err *e);

/* probe_check_plotted -- a roofline has points of calls with flops: a plan that has none is refused. Errors:
 * ERR_USAGE. */
enum err_code probe_check_plotted(struct work *w, const struct plan *plan, struct err *e);

/* probe_no_number -- the status of n rows without a number: ERR_DEVICE the worker answered nothing that is an answer,
 * ERR_NOMEM all want more memory than there is, ERR_RANGE no shape of --shape is one that its kernel takes, else
 * ERR_NO. */
enum err_code probe_no_number(const struct probe_row *rows, size_t n, bool shaped);

#endif
