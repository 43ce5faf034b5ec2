/* run -- what the runner of mutants knows; shared by run.c and report.c. */
#ifndef RIDGE_TOOLS_MUTATE_RUN_H
#define RIDGE_TOOLS_MUTATE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

enum { COMMANDS_MAX = 256, JOBS_MAX = 256 };

enum state { WAITING, LEFT_OUT, EXCLUDED, UNREACHED, SURVIVED, KILLED };

struct mutant {
    int id, line;
    const char *file, *function, *text, *reason;
    enum state state;
    int killer; /* index of the test, or -1 */
    int tried;  /* test that was run out of turn, or -1 */
    bool timed_out;
};

struct test {
    const char *command;
    int function; /* of a test program, or -1: all of the command */
    double base_s, cpu_s;
    unsigned char *seen; /* a byte a mutant */
};

struct job {
    pid_t pid;
    bool first; /* run out of turn: it killed the mutant before */
    size_t mutant, test;
    double until_s;
};

struct all {
    const char *dir;
    struct mutant *mutant;
    size_t n, cap;
    int ids;
    const char *command[COMMANDS_MAX];
    size_t commands_n;
    struct test *test;
    size_t tests_n, tests_cap;
    struct job job[JOBS_MAX];
    size_t jobs_n, done, chosen;
};

/* run_open -- a file of the run's folder; NULL only where one to be read is missing. run_cannot -- says why and ends.
 */
FILE *run_open(const struct all *a, const char *name, const char *mode);
_Noreturn void run_cannot(const char *what);

/* run_report -- table, survivors, what is excluded and the tests, into the file "report" of the folder; one line to
 * standard output. 1: fewer are killed than wanted. */
int run_report(const struct all *a);

#endif
