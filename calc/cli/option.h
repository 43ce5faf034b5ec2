/* option -- command lines from tables: one row per option feeds parsing, scenario files, help, the manual page and the
 * scenario that JSON output echoes. */
#ifndef RIDGE_CLI_OPTION_H
#define RIDGE_CLI_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"
#include "calc/base/out.h"

enum option_kind {
    OPTION_TEXT, /* takes a value; the last one counts */
    OPTION_MANY, /* takes a value; all count, joined by ',' */
    OPTION_FLAG, /* takes none */
};

struct option {
    const char *name; /* long form without "--" */
    char letter;      /* short form, 0 none */
    enum option_kind kind;
    const char *value;    /* placeholder in help: "NAME[:COUNT],..." */
    const char *fallback; /* default, shown in help; NULL none */
    const char *help;
    int alternative;   /* options of different nonzero numbers exclude each other: a typed one drops a scenario's others
                        */
    bool typed_only;   /* names a file of this machine: never taken from a scenario */
    bool single;       /* two values could be meant together, and are not: another one is refused */
    bool written;      /* that file is written at the end: one that cannot be is refused before any work */
    const char *group; /* heading in help; the row that starts a group names it, others NULL */
};

/* Rows that tables share: -f among five formats (the first of its group), and files to write, which only a person
 * names, no scenario. */
#define OPTION_FORMAT(help_)                                                                                           \
    {                                                                                                                  \
        .name = "format", .letter = 'f', .kind = OPTION_TEXT, .value = "NAME", .fallback = "text", .group = "Output",  \
        .help = help_                                                                                                  \
    }
#define OPTION_FILE(name_, letter_, help_)                                                                             \
    {                                                                                                                  \
        .name = name_, .letter = letter_, .kind = OPTION_TEXT, .value = "FILE", .typed_only = true, .written = true,   \
        .help = help_                                                                                                  \
    }

struct command {
    const char *name, *summary;
    const char *usage; /* after the name */
    const struct option *options;
    size_t options_n;
    const char *examples; /* lines for help */
    const char *reads; /* another command whose scenarios it takes, passing over options that only that one has; NULL */
    bool formulas;     /* operands are formulas: "-B" is one, where B is no short option */
    enum err_code (*run)(struct arena *a, const struct command *c, int argc, char **argv, struct err *e);
};

/* The values of a command's options, in the order of its table. */
struct option_values {
    const struct command *command;
    const char **text;     /* NULL: not given and no default; a flag is "" */
    bool *given;           /* on the command line or in a scenario */
    const bool *typed;     /* on the command line */
    const char **operands; /* what is not an option */
    size_t operands_n;
};

/* option_parse -- read argv[1..]. "--name value", "--name=value", "-x value", "-xvalue", "--" ends options; --gpu and
 * --device are one; of a command with formulas "-2*B" is an operand. A
 * --scenario FILE is a JSON object of long names (or a record that ridge wrote, whose "scenario" is taken); the command
 * line wins over it. Errors: ERR_USAGE unknown option (nearest offered), missing or unwanted value; those of the
 * scenario file; those of out_check_path, of files that are to be written. */
enum err_code option_parse(struct arena *a, const struct command *c, int argc, char **argv, struct option_values *out,
                           struct err *e);

/* option_blame -- of the error that a command ended with: where it is about options of a scenario (it names them, or
 * quotes their value), the file and the members are put in front of it, and what was usage is a wrong file; it stays
 * usage where it names an option of the command line too. Returns e->code. */
enum err_code option_blame(struct arena *a, const struct command *c, int argc, char **argv, struct err *e);

/* option_get, option_given -- by long name, which must be in the command's table. */
const char *option_get(const struct option_values *v, const char *name);
bool option_given(const struct option_values *v, const char *name);

/* option_count, option_real, option_time -- the number of an option within bounds, a whole one also as 64Ki, seconds of
 * a time; *out stays where it has none. Errors: ERR_USAGE, with the option's name. */
enum err_code option_count(const struct option_values *v, const char *name, int64_t least, int64_t most, int64_t *out,
                           struct err *e);
enum err_code option_real(const struct option_values *v, const char *name, double least, double most, double *out,
                          struct err *e);
enum err_code option_time(const struct option_values *v, const char *name, double *out, struct err *e);

/* option_scenario_json -- the given options as a JSON object that --scenario takes; NULL when memory is exhausted. */
const char *option_scenario_json(struct arena *a, const struct option_values *v);

/* option_wrap -- text in words from column `at` on, further lines indented, no line beyond 79 columns where words
 * allow. */
void option_wrap(struct out *o, const char *text, size_t at, size_t indent);

/* option_help -- the help page of a command; option_man -- its part of the manual page. */
void option_help(struct out *o, const struct command *c);
void option_man(struct out *o, const struct command *c);

#endif
