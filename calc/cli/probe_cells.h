/* probe_cells -- what files of rows say of a result of the probe beside its row, so that a store that imports them can
 * fit and validate them as the one that measured: which kernel it was, its shape as the kernel has it, its work, and
 * the ceilings around it. Behind the rows stand the ceilings of their devices, rows of the kind ROWS_KIND_CEILING. */
#ifndef RIDGE_CLI_PROBE_CELLS_H
#define RIDGE_CLI_PROBE_CELLS_H

#include "calc/fit/rows.h"
#include "probe/result.h"

/* The columns: a row that has a cell of the first, the kernel, has the others as the probe means them. */
#define PROBE_CELLS_KERNEL "probe_kernel"
#define PROBE_CELLS_SHAPE "shape"       /* JSON: {"m":1,...} */
#define PROBE_CELLS_IDENTITY "identity" /* of a ceiling: machine and software, JSON */
#define PROBE_CELLS_STARTED "started"   /* of a ceiling: the run that measured its set */

/* Of a row, and of a ceiling likewise: how many kinds of rows count before it (rows.h). */
#define PROBE_CELLS_PRECEDENCE ROWS_PRECEDENCE
enum { PROBE_CELLS_PRECEDENCE_MAX = ROWS_PRECEDENCE_MAX };

struct probe_cell {
    const char *column;
    size_t offset; /* in struct result: of a text, or of a double */
    bool text;
};
extern const struct probe_cell probe_cells[];
extern const size_t probe_cells_n;

/* probe_cells_has -- whether a column is one of all these. */
bool probe_cells_has(const char *column);

/* probe_cells_read -- a cell of a row that has a kernel, into r; one that is empty, or of another column, changes
 * nothing. Errors: ERR_INPUT without file, line and column: no number, no shape, no object; ERR_NOMEM. */
enum err_code probe_cells_read(struct arena *a, const char *column, const char *text, struct result *r, struct err *e);

#endif
