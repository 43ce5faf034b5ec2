/* report -- the table of a run, its survivors, and how sure a sample makes one. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/mutate/run.h"

enum { WANTED_PERCENT = 95 };

struct count {
    size_t all, run, killed, timed_out, survived, unreached, excluded;
};

static struct count count_of(const struct all *a, const char *file)
{
    struct count c = {0};
    for (size_t i = 0; i < a->n; i++) {
        const struct mutant *m = &a->mutant[i];
        if (file && strcmp(file, m->file) != 0) continue;
        c.all++;
        c.excluded += m->state == EXCLUDED;
        c.killed += m->state == KILLED;
        c.timed_out += m->timed_out;
        c.survived += m->state == SURVIVED;
        c.unreached += m->state == UNREACHED;
    }
    c.run = c.killed + c.survived + c.unreached;
    return c;
}

static void print_count(FILE *out, const char *name, const struct count *c)
{
    (void)fprintf(out, "| %s | %zu | %zu | %zu | %zu | %zu | %zu | %zu |", name, c->all, c->excluded, c->run, c->killed,
                  c->timed_out, c->survived, c->unreached);
    if (c->run > 0)
        (void)fprintf(out, " %.1f |\n", 100 * (double)c->killed / (double)c->run);
    else
        (void)fprintf(out, " - |\n");
}

/* Wilson's 95 % interval of a share that a sample has. */
static void print_interval(FILE *out, const struct count *c, size_t of)
{
    const double n = (double)c->run, p = (double)c->killed / n, z = 1.96, w = z * z / n;
    const double middle = (p + w / 2) / (1 + w), half = z * sqrt(p * (1 - p) / n + w / (4 * n)) / (1 + w);
    (void)fprintf(out, "\nA sample of %zu of %zu: with 95 %% confidence %.1f to %.1f %% of all are killed.\n", c->run,
                  of, 100 * (middle - half), 100 * fmin(1, middle + half));
}

static void print_tests(FILE *out, const struct all *a)
{
    (void)fprintf(out,
                  "\n## Tests\n\n| test | function | s | reaches | kills first |\n| --- | --- | --- | --- | --- |\n");
    for (size_t t = 0; t < a->tests_n; t++) {
        size_t reached = 0, kills = 0;
        for (size_t i = 0; i < a->n; i++) {
            reached += a->test[t].seen[a->mutant[i].id];
            kills += a->mutant[i].state == KILLED && a->mutant[i].killer == (int)t;
        }
        if (reached > 0)
            (void)fprintf(out, "| %s | %d | %.2f | %zu | %zu |\n", a->test[t].command, a->test[t].function,
                          a->test[t].base_s, reached, kills);
    }
}

int run_report(const struct all *a)
{
    FILE *out = run_open(a, "report", "w");
    const struct count total = count_of(a, NULL);
    (void)fprintf(
        out, "# Mutants\n\n| file | all | excluded | run | killed | of them by time | survived | not reached | killed "
             "%% |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < a->n; i++) {
        if (i > 0 && strcmp(a->mutant[i].file, a->mutant[i - 1].file) == 0) continue;
        const struct count c = count_of(a, a->mutant[i].file);
        print_count(out, a->mutant[i].file, &c);
    }
    print_count(out, "all", &total);
    if (total.run > 0 && total.run < total.all - total.excluded)
        print_interval(out, &total, total.all - total.excluded);
    (void)fprintf(out, "\n## Survivors\n\n");
    for (size_t i = 0; i < a->n; i++) {
        const struct mutant *m = &a->mutant[i];
        if (m->state == SURVIVED || m->state == UNREACHED)
            (void)fprintf(out, "- %s:%d %s: `%s`%s\n", m->file, m->line, m->function, m->text,
                          m->state == UNREACHED ? ", not reached" : "");
    }
    (void)fprintf(out, "\n## Excluded\n\n");
    for (size_t i = 0; i < a->n; i++) {
        const struct mutant *m = &a->mutant[i];
        if (m->state == EXCLUDED)
            (void)fprintf(out, "- %s:%d %s: `%s`: %s\n", m->file, m->line, m->function, m->text, m->reason);
    }
    print_tests(out, a);
    if (fclose(out) != 0) run_cannot("report");
    (void)printf("%zu of %zu mutants killed (%zu by time), %zu survived, %zu not reached, %zu excluded\n", total.killed,
                 total.run, total.timed_out, total.survived, total.unreached, total.excluded);
    return 100 * total.killed < WANTED_PERCENT * total.run;
}
