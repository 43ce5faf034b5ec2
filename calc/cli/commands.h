/* commands -- the commands of the program, one cmd_*.c each, and the table of all. */
#ifndef RIDGE_CLI_COMMANDS_H
#define RIDGE_CLI_COMMANDS_H

#include "calc/cli/option.h"

extern const struct command command_estimate, command_compare, command_plan, command_simulate, command_explain,
    command_check, command_solve, command_exercise, command_probe, command_fit, command_validate, command_report,
    command_list, command_help;

/* commands_table -- all commands in the order of the help page; n of them. commands_find -- by name; NULL unknown. */
const struct command *const *commands_table(size_t *n);
const struct command *commands_find(const char *name);

const char *commands_tool(void); /* "ridge 0.1.0", or with the git description */

/* commands_convention -- the i-th of ridge list conventions: name, default, meaning; false past the end. */
bool commands_convention(size_t i, const char *out[3]);

/* commands_no_column -- e, of a --columns that a table refused, with where else such a column is, or where all are
 * listed; returns e->code. */
enum err_code commands_no_column(struct err *e);

#endif
