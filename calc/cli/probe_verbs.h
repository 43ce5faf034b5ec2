/* probe_verbs -- what `ridge probe` can be told to do; private to the command. Each verb is a function on the options;
 * v holds the operands behind the verb. */
#ifndef RIDGE_CLI_PROBE_VERBS_H
#define RIDGE_CLI_PROBE_VERBS_H

#include "calc/base/table.h"
#include "calc/cli/option.h"
#include "probe/run.h"

typedef enum err_code probe_verb(struct arena *a, const struct option_values *v, const char *command, struct err *e);

/* probe_list.c */
probe_verb probe_list;

/* probe_measure.c */
probe_verb probe_run;

/* probe_ceilings.c */
probe_verb probe_ceilings;

/* probe_kept.c */
probe_verb probe_history, probe_show;

/* probe_export.c */
probe_verb probe_export;

/* probe_import.c */
probe_verb probe_import;

/* How long a store that another program has locked is waited for, s. */
enum { PROBE_STORE_PATIENCE_S = 20 };

/* probe_store_path -- of --store, else the default. probe_store_open -- that store. probe_draw -- the roofline of
 * measured rows and ceilings. */
enum err_code probe_store_path(struct arena *a, const struct option_values *v, const char **out, struct err *e);
enum err_code probe_store_open(struct arena *a, const struct option_values *v, bool write, struct store **out,
                               struct err *e);

/* probe_check_found -- where nothing was found, or a kernel of the list has no result, say which, with names that are
 * near, or whether there is anything else. Errors: ERR_NO; as store_read. */
enum err_code probe_check_found(struct arena *a, struct store *s, const struct store_filter *f, size_t found,
                                struct err *e);

/* probe_read_filter -- --device, --kernel, --outcome, --kind, --last. probe_write_out -- a table where -o says, in the
 * format of -f, else the usual one; sheet: text on its side. */
enum err_code probe_read_filter(const struct option_values *v, struct store_filter *out, struct err *e);

/* probe_device_name -- the name of the device that --device means: of this-cpu, this-cpu@N that of the core or its
 * threads; "": none was given. Errors: as this_cpu_load. */
enum err_code probe_device_name(struct arena *a, const struct option_values *v, const char **out, struct err *e);
enum err_code probe_write_out(struct arena *a, const struct option_values *v, const struct table *all,
                              enum table_format usual, bool sheet, struct err *e);

struct probe_row;
enum err_code probe_draw(struct arena *a, const struct run *run, const struct probe_row *rows, size_t n,
                         const char *output, struct err *e);

#endif
