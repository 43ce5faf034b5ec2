/* store_rows -- results of the probe as measured rows, for `ridge fit` and `ridge validate --from store`. */
#ifndef RIDGE_CLI_STORE_ROWS_H
#define RIDGE_CLI_STORE_ROWS_H

#include "calc/cli/option.h"
#include "calc/cli/this_cpu.h"
#include "calc/fit/fit.h"

struct rows_format;
struct store;

/* The value of --from that means the store, and the option that says which. */
#define STORE_FROM "store"
#define STORE_OPTION                                                                                                   \
    {                                                                                                                  \
        .name = "store", .kind = OPTION_TEXT, .value = "FILE", .typed_only = true,                                     \
        .help = "of --from store and -g this-cpu: another store than $XDG_DATA_HOME/ridge/measurements.db"             \
    }
#define IMPORTED_OPTION                                                                                                \
    {                                                                                                                  \
        .name = "imported", .kind = OPTION_FLAG,                                                                       \
        .help =                                                                                                        \
            "where own results and imported rows are of one call by one code, the imported ones count; also of files " \
            "that ridge probe export wrote"                                                                            \
    }

/* store_row_format -- the columns of rows that a result has the numbers of; NULL: its kernel is of no kind of rows. */
const struct rows_format *store_row_format(const struct result *r);

/* store_row -- a result as a row, whose file is store and whose line is the result's number; false where its kernel is
 * of no kind of rows, or its numbers make none. host, and what a cold call is, follow from the result and hw (NULL: not
 * of a core). The time is NAN where the result has none. */
bool store_row(struct arena *a, const struct result *r, const char *store, const struct hw *hw, struct row *out);

/* store_query_dtype -- the format of the queries of an own result of attention in this format, that of its cache: of a
 * cache in fp8 bf16. */
const char *store_query_dtype(const char *dtype);

/* store_state -- "cold" or "hot"; of an imported row what its file says, "" nothing. */
const char *store_state(struct arena *a, const struct result *r);

/* store_precedence -- what counts first, of one call by one code and of ceilings: 0 own results, 1 imported ones, more
 * where a file says that others of its store came before. Errors: none; cells that make no sense say nothing. */
int64_t store_precedence(struct arena *a, const struct result *r);

/* store_is_probed -- whether a probe measured a result, here or, of an imported one, elsewhere: its work and the
 * ceilings around it are known. */
bool store_is_probed(const struct result *r);

/* store_calibrate -- how the ceilings around a result of a core that a probe measured were, beside those of hw: of a
 * hot call those of the caches that its operands were in. Sets compute_slower, memory_slower, unbounded and
 * uncalibrated of its row, whose kernel is known. */
void store_calibrate(const struct result *r, const struct hw *hw, struct row *row);

/* store_find_noisy -- marks rows as uncalibrated that other programs slowed: where memory, or the
 * peak that binds, was much slower than it often is, and of a call those that took much longer than at another time.
 * Rows with ceilings are calibrated before. Errors: ERR_NOMEM. Cost: O(rows^2). */
enum err_code store_find_noisy(struct arena *a, const struct hw *hw, struct rows *rows, struct err *e);

/* Results of a device that are not among its rows, and samples of those that are. */
struct store_left_out {
    size_t samples, discards; /* discards: disturbed by other programs, not counted */
    size_t of_no_kind;        /* their numbers make no row */
    size_t impossible;        /* imported, and below half of their bound */
    size_t second;            /* of a call of which rows of another precedence count, those that do not */
    bool own;                 /* some are measured here */
};

/* store_rows_make -- the rows of n results that were measured, or imported, on hw: a device is hw's when it has its
 * key, its name or an alias. Of one call by one code those of the least precedence count, or imported: of the greatest.
 * Errors: ERR_NO none, with what there is; ERR_USAGE an unknown kind; ERR_NOMEM. */
enum err_code store_rows_make(struct arena *a, const char *store, const struct result *r, size_t n,
                              const struct rows_filter *filter, bool imported, struct rows *out,
                              struct store_left_out *left_out, struct err *e);

/* What fit and validate were told to work on. */
struct measured {
    struct hw hw;
    struct rows rows;
    const char *said; /* whose ceilings; NULL: the device is a file's */
    struct store_left_out left_out;
    const struct store *from; /* the rows are the store's; NULL: of files. store_senseless ends what reads it */
    bool probed;              /* rows of files say the ceilings around them */
    bool imported;            /* of which imported ones count before own ones */
    bool picked;              /* kinds were named */
};

/* measured_senseless -- what of the store made no sense, to end with. Errors: as store_senseless. */
enum err_code measured_senseless(const struct measured *m, struct err *e);

/* measured_open -- --device (of no file: a CPU by the name that the store has its ceilings under), --from, --framework,
 * --kind and --store. The rows are those of --from alone, files or the store; a store beside files says what this-cpu
 * is, and no row. Of one call by one code the rows of the least precedence count (--imported: of the greatest),
 * wherever they are read from. Errors: as hw_load, this_cpu_load, rows_read, store_read, store_rows_make; ERR_USAGE
 * --imported of files that know no precedence. */
enum err_code measured_open(struct arena *a, const struct option_values *v, struct measured *out, struct err *e);

/* measured_notes -- sentences: whose ceilings; how well classes of a core foretell rows left out of their fit, and
 * which classes have too few rows to be fitted, or are told apart by too few shapes: where kinds were named, or nothing
 * could be fitted, each; else how many. Errors: ERR_NOMEM. */
enum err_code measured_notes(struct arena *a, const struct measured *m, const struct fit_class *classes, size_t n,
                             const char ***out, size_t *out_n, struct err *e);

#endif
