/* probe_sheet -- results as rows of a file, in the columns that ridge fit and import read.
 *
 * Columns stand in an order that does not depend on where a result comes from, so that what was exported and imported
 * again is exported the same: the kind, where there are rows of several; numbers in the order of rows_formats; formats;
 * what else a row says, in the order it first occurs; where it comes from; what the probe knows of it; what counts
 * before it; its samples and its time. */
#ifndef RIDGE_CLI_PROBE_SHEET_H
#define RIDGE_CLI_PROBE_SHEET_H

#include "calc/base/table.h"
#include "probe/result.h"

enum { SHEET_COLUMNS_MAX = 200 };

/* A table whose columns follow from the rows: cells of 8 bytes, text or number. */
struct sheet {
    struct column columns[SHEET_COLUMNS_MAX];
    size_t n;
    bool full;   /* there are more columns than room */
    bool kinds;  /* rows of several kinds, or of several formats of one */
    bool probed; /* rows of a probe */
    bool ranked; /* rows of several precedences */
};

union sheet_cell {
    const char *text;
    int64_t count;
    double real;
};

/* sheet_is_ceiling -- of the machine: a row of the kind ROWS_KIND_CEILING. */
bool sheet_is_ceiling(const struct result *r);

/* sheet_plan_open -- of no result yet; sheet_see -- one more (a is for a moment); sheet_columns -- the columns of all
 * that were seen, of some; ranked: they are of several precedences. Errors: ERR_RANGE more columns than there is room
 * for; ERR_NOMEM. */
struct sheet_plan;
enum err_code sheet_plan_open(struct arena *a, struct sheet_plan **out, struct err *e);
enum err_code sheet_see(struct sheet_plan *p, struct arena *a, const struct result *r, struct err *e);
enum err_code sheet_columns(const struct sheet_plan *p, bool ranked, struct sheet *s, struct err *e);

/* sheet_fill -- the cells of one of them, s->n of them. Errors: ERR_NOMEM. */
enum err_code sheet_fill(struct arena *a, const struct result *r, int64_t precedence, const struct sheet *s,
                         union sheet_cell *row, struct err *e);

#endif
