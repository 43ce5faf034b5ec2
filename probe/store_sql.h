/* store_sql -- SQLite as the store uses it; for store.c, store_add.c, store_read.c. */
#ifndef RIDGE_PROBE_STORE_SQL_H
#define RIDGE_PROBE_STORE_SQL_H

#include <sqlite3.h>

#include "probe/store.h"

enum { STORE_SENSELESS_MAX = 8 };

struct store {
    sqlite3 *db;
    const char *path;        /* clean, for messages */
    int64_t origin;          /* row of the run that is being written; 0: none yet */
    struct result_origin is; /* that run */
    struct arena *of_origin; /* its texts; NULL: none */
    struct store_access how;
    double waited_s; /* for others, since it was last written */
    bool told;       /* that it is waited for */
    size_t senseless_n;
    int64_t senseless[STORE_SENSELESS_MAX]; /* the first results that make no sense */
    struct err why;                         /* of the first */
};

/* store_fail -- the sentence for what SQLite last complained of. */
enum err_code store_fail(const struct store *s, struct err *e);

/* store_run -- statements without values. */
enum err_code store_run(struct store *s, const char *sql, struct err *e);

/* store_prepare -- one statement; sqlite3_finalize it. */
enum err_code store_prepare(struct store *s, const char *sql, sqlite3_stmt **out, struct err *e);

/* store_roll_back -- end the transaction that failed, if code says so; returns code. */
enum err_code store_roll_back(struct store *s, enum err_code code);

/* Columns of a result, in the order of the tables of store_add.c and store_read.c. */
#define STORE_RESULT_COLUMNS                                                                                           \
    "origin, made, kernel, variant, dtype, unit, row_kind, cold, shape, outcome, reason, stop, seed, calls, copies, "  \
    "checked, error_frac, tolerance_frac, flops, vector_flops, read_bytes, written_bytes, footprint_bytes, "           \
    "before_peak_flops_per_s, before_read_bytes_per_s, before_moved_bytes_per_s, after_peak_flops_per_s, "             \
    "after_read_bytes_per_s, after_moved_bytes_per_s, median_s, least_s, q1_s, q3_s, n, discards, cells, ceiling, "    \
    "dram_read_bytes, dram_write_bytes, dram_reason, piece_bytes, before_gather_bytes_per_s, "                         \
    "after_gather_bytes_per_s"

#endif
