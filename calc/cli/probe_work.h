/* probe_work -- a verb of `ridge probe` that starts a worker, while it runs: its options, the store, what is said below
 * its table. Private to the command. */
#ifndef RIDGE_CLI_PROBE_WORK_H
#define RIDGE_CLI_PROBE_WORK_H

#include "calc/base/table.h"
#include "calc/cli/probe_verbs.h"
#include "calc/cli/progress.h"

enum { WORK_NOTES_MAX = 320 };

struct work {
    struct arena *a;
    const struct option_values *v;
    struct run run;
    struct progress bar;
    const char *notes[WORK_NOTES_MAX];
    size_t notes_n;
    const char *store_path;
    size_t done, total;
    bool no_store; /* the usual one cannot be had */
    int folder;    /* of the store, locked while this program measures; -1: none */
    bool another;  /* program has it locked */
};

/* work_note -- a sentence below the table; NULL is no memory. Errors: ERR_NOMEM. */
enum err_code work_note(struct work *w, const char *text, struct err *e);

/* work_read_time -- a time of an option, within lo to hi seconds; *out stays without one. Errors: ERR_USAGE. */
enum err_code work_read_time(const struct option_values *v, const char *name, double lo, double hi, double *out,
                             struct err *e);

/* work_devices -- the devices that there can be, NULL at the end. work_find_worker -- the program that measures on one.
 * Errors: ERR_USAGE no such device; ERR_DEVICE its worker is not built. */
extern const char *const work_devices[];
enum err_code work_find_worker(struct arena *a, const char *device, const char **out, struct err *e);

/* work_check_output -- formats, columns and pictures that would be refused are refused before hours of measuring (files
 * are by option_parse). Errors: as of table_format_parse, table_select, plot_check. */
enum err_code work_check_output(struct work *w, const struct column *columns, size_t n, struct err *e);

/* work_begin -- settings from the options, and a worker that has said what it can: the one of --worker, that of
 * run.set.worker, or that of --device. Errors: ERR_USAGE, as run_open. */
enum err_code work_begin(struct work *w, const char *command, struct err *e);

/* work_who -- whose ceilings they are: the device and how many threads. NULL: no memory. */
const char *work_who(const struct work *w);

/* work_open_store -- that of --store, or the usual one. Without the usual one results are measured and printed all the
 * same, and that is said; one that was named is wanted. One that is locked is waited for, which is said, in all no
 * longer than left_s, what is left of the budget, or 20 s. Errors: as store_open. */
enum err_code work_open_store(struct work *w, double left_s, struct err *e);

/* work_say_stored -- a sentence on what became of the results. work_all_stored -- whether all are where they are to be;
 * for the end. Errors: ERR_NOMEM; of work_all_stored that of the first that is not. */
enum err_code work_say_stored(struct work *w, struct err *e);
enum err_code work_all_stored(const struct work *w, struct err *e);

/* work_say_failed -- a sentence on codes of ceilings that crashed, hung or were wrong, where there are some. Errors:
 * ERR_NOMEM. */
enum err_code work_say_failed(struct work *w, struct err *e);

/* work_write_table -- the rows, and all notes, where -o says. */
enum err_code work_write_table(struct work *w, const char *schema, const struct column *columns, size_t columns_n,
                               const void *rows, size_t n, size_t stride, struct err *e);

/* work_held -- a verb with signals held while a worker runs, so that the table of what was measured still comes out;
 * they take effect at the end, when the store is closed. */
enum err_code work_held(const struct option_values *v, const char *command,
                        enum err_code (*verb)(struct work *w, const char *command, struct err *e), struct err *e);

#endif
