/* store -- measurements in an SQLite file: every result with all its samples, by which machine, software and command.
 *
 * One result is one transaction: it is there whole or not at all, whatever happens to the program. Write-ahead logging
 * lets several programs write at once; each waits for its turn. The layout has a number (PRAGMA user_version); an older
 * file is brought up to date when it is opened for writing, in one transaction, and a newer one refused. */
#ifndef RIDGE_PROBE_STORE_H
#define RIDGE_PROBE_STORE_H

#include "probe/result.h"

enum { STORE_LAYOUT = 6 };

struct store;

struct store_access {
    bool write;                                     /* else only read: a file that is absent is then an error */
    double patience_s;                              /* how long to wait for others, in all until they let go */
    void (*waits)(void *closure, const char *text); /* is told once that others have it locked; NULL: nobody is */
    void *closure;
};

/* store_default_path -- $XDG_DATA_HOME/ridge/measurements.db, else $HOME/.local/share/ridge/measurements.db. Errors:
 * ERR_IO neither is set, ERR_NOMEM. */
enum err_code store_default_path(struct arena *a, const char **out, struct err *e);

/* store_open -- the file, made with its folders when it is absent and to be written. Closed with the arena. Errors:
 * ERR_IO cannot open, locked beyond patience, disk full; ERR_INPUT another program's database, damaged, or of a newer
 * layout; ERR_NO to read and not there; ERR_NOMEM. */
enum err_code store_open(struct arena *a, const char *path, const struct store_access *how, struct store **out,
                         struct err *e);

/* store_add -- one result with its samples, in a transaction; sets r->id. Errors: as store_open; nothing of it is then
 * in the file. */
enum err_code store_add(struct store *s, struct result *r, struct err *e);

/* Results that come one by one and are in the file together, or not at all (imported rows). Nothing of them is kept in
 * memory: SQLite writes ahead what its cache has no room for. Other writers wait meanwhile. */
struct store_batch;

/* store_batch_open -- begin; what store_batch_commit has not ended when the arena closes is taken back.
 * store_batch_add -- one result, whose id is set, and whose texts are the caller's. store_batch_commit -- all are
 * there. Errors: as store_open; after one the batch is taken back, and so is the result. */
enum err_code store_batch_open(struct arena *a, struct store *s, struct store_batch **out, struct err *e);
enum err_code store_batch_add(struct store_batch *b, struct result *r, struct err *e);
enum err_code store_batch_commit(struct store_batch *b, struct err *e);

/* What to read; NULL and 0: all. */
struct store_filter {
    const char *kernel; /* names joined by ',' */
    const char *row_kind, *device, *outcome;
    int64_t id;
    int64_t last;  /* at most so many, the newest */
    bool ceilings; /* only what measures one */
    bool samples;  /* with times_s and discards_s, else only their numbers */
};

/* store_each -- open a reading of results in the order they were made, without those that make no sense, which
 * store_senseless says afterwards. store_next -- the next, whose texts and samples are in a; *more false: there is
 * none. All of a reading is of one moment. store_end -- ends it before its arena does. Errors: as store_open. Cost:
 * O(1) memory. */
struct store_reading;
enum err_code store_each(struct arena *a, struct store *s, const struct store_filter *f, struct store_reading **out,
                         struct err *e);
enum err_code store_next(struct store_reading *c, struct arena *a, struct result *r, bool *more, struct err *e);
void store_share(struct store_reading *c);
void store_end(struct store_reading *c);

/* store_count -- how many results there are of a filter, f->last left aside, those that make no sense among them.
 * Errors: as store_open. */
enum err_code store_count(struct store *s, const struct store_filter *f, int64_t *n, struct err *e);

/* store_hold -- what is read until store_let_go, or the end, is of one moment, whoever writes meanwhile. Errors: as
 * store_open. */
enum err_code store_hold(struct store *s, struct err *e);
void store_let_go(struct store *s);

/* store_kernels -- the kernels of all results, each once in order of name, and how many results there are. Errors: as
 * store_open. */
enum err_code store_kernels(struct arena *a, struct store *s, const char ***out, size_t *n, size_t *results_n,
                            struct err *e);

/* store_read -- results in the order they were made, without those that make no sense, which store_senseless says
 * afterwards. Errors: as store_open. */
enum err_code store_read(struct arena *a, struct store *s, const struct store_filter *f, struct result **out, size_t *n,
                         struct err *e);

/* A file of parameters that were fitted to results of a device. */
struct store_fitted {
    const char *path, *made; /* absolute; time of day */
};

/* store_add_fitted, store_last_fitted -- note one, and read the newest of a device (path NULL: none). Errors: as
 * store_open. */
enum err_code store_add_fitted(struct store *s, const char *device, const struct store_fitted *f, struct err *e);
enum err_code store_last_fitted(struct arena *a, struct store *s, const char *device, struct store_fitted *out,
                                struct err *e);

/* store_check -- whether the pages of the file hold together. Errors: ERR_INPUT damaged, with the first thing found; as
 * store_open. Cost: O(bytes). */
enum err_code store_check(struct store *s, struct err *e);

/* store_senseless -- what all reads so far passed over, as an error to end with behind what could be read: which
 * results, and of the first why. Errors: ERR_INPUT there are some. */
enum err_code store_senseless(const struct store *s, struct err *e);

#endif
