/* mutate-run DIR EXCLUDED COMMAND... -- run the tests on every mutant of DIR/mutants and write DIR/report.
 *
 * A COMMAND is a test program, or a line for the shell when it has blanks. Each is run once as it is: it must succeed,
 * and says which mutants it reaches. A mutant is run by those that reach it, the quickest first, until one fails,
 * crashes or takes ten times the processor's time it did (not the clock's: a loaded machine kills nothing). EXCLUDED
 * lists what is no formula or changes nothing, each with its reason. Tests of more than 15 s of the processor are left
 * out: what survives is run by every one.
 *
 * - MUTATE_JOBS: runs at once (all processors).
 * - MUTATE_SAMPLE: so many mutants, drawn at random (all); MUTATE_SEED draws others.
 * - MUTATE_KEEP: 1: mutants that the results in DIR call killed are not run again.
 * - MUTATE_PART: only files that have one of these texts, parted by commas, in their name.
 *
 * Exit status: 0 at least 95 % killed, 1 fewer, 2 usage, 4 cannot read, write or run, 6 memory. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/mutate/mutant.h"
#include "tools/mutate/run.h"

enum { FUNCTIONS_MAX = 1000, LINE_MAX_BYTES = 4096, STATUS_USE = 2, STATUS_IO = 4, STATUS_MEMORY = 6 };
/* Times as it is, and seconds at least: of the processor, and of the clock for what sleeps. */
enum { SLOWER = 10, LEAST_S = 2, SLEEPS = 100, SLEEPS_LEAST_S = 120 };
/* Of the processor: a longer test is left out, as what survives is run by every one. */
enum { MOST_S = 15 };

void run_cannot(const char *what)
{
    perror(what);
    exit(STATUS_IO);
}

static void *room(void *p)
{
    if (p) return p;
    (void)fprintf(stderr, "mutate: out of memory\n");
    exit(STATUS_MEMORY);
}

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of the children that are waited for, theirs included. */
static double children_s(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static long setting(const char *name, long otherwise)
{
    const char *s = getenv(name);
    return s && *s ? strtol(s, NULL, 10) : otherwise;
}

static char *keep(const char *s) { return room(strdup(s)); }

/* Tests may change their folder. */
static char *whole_path(const char *dir)
{
    char here[LINE_MAX_BYTES], path[2 * LINE_MAX_BYTES];
    if (!getcwd(here, sizeof here)) run_cannot("getcwd");
    (void)snprintf(path, sizeof path, "%s%s%s", dir[0] == '/' ? "" : here, dir[0] == '/' ? "" : "/", dir);
    return keep(path);
}

FILE *run_open(const struct all *a, const char *name, const char *mode)
{
    char path[LINE_MAX_BYTES];
    (void)snprintf(path, sizeof path, "%s/%s", a->dir, name);
    FILE *f = fopen(path, mode);
    if (!f && *mode != 'r') run_cannot(path);
    return f;
}

/* ---- what there is ---- */

static void read_mutants(struct all *a)
{
    char line[LINE_MAX_BYTES];
    FILE *in = run_open(a, "mutants", "r");
    if (!in) run_cannot("mutants");
    while (fgets(line, sizeof line, in)) {
        char *field[5], *s = line;
        line[strcspn(line, "\n")] = '\0';
        for (size_t i = 0; i < 5; i++) {
            field[i] = s;
            if (i == 4) break;
            s += strcspn(s, "\t");
            if (*s) *s++ = '\0';
        }
        if (a->n == a->cap) a->mutant = room(realloc(a->mutant, (a->cap = 2 * a->cap + 64) * sizeof *a->mutant));
        a->mutant[a->n++] = (struct mutant){.id = (int)strtol(field[0], NULL, 10),
                                            .file = keep(field[1]),
                                            .line = (int)strtol(field[2], NULL, 10),
                                            .function = keep(field[3]),
                                            .text = keep(field[4]),
                                            .killer = -1,
                                            .tried = -1};
        a->ids = a->mutant[a->n - 1].id + 1;
    }
    (void)fclose(in);
}

static bool starts(const char **s, const char *with)
{
    const size_t n = strlen(with);
    if (strncmp(*s, with, n) != 0) return false;
    *s += n;
    return true;
}

/* "FILE FUNCTION: TEXT", or * for all of it. */
static bool matches(const struct mutant *m, const char *rule)
{
    if (!starts(&rule, m->file) || !starts(&rule, " ")) return false;
    if (!starts(&rule, m->function) || !starts(&rule, ": ")) return false;
    return strcmp(rule, "*") == 0 || strcmp(rule, m->text) == 0;
}

/* A rule on a line of its own, then its reason on lines that begin with a blank; several rules may share one. */
static int exclude(struct all *a, const char *path)
{
    char line[LINE_MAX_BYTES];
    char **rule = NULL;
    size_t rules = 0, cap = 0;
    bool reasoned = true;
    int idle = 0;
    FILE *in = fopen(path, "r");
    if (!in) run_cannot(path);
    while (fgets(line, sizeof line, in)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#' || line[0] == '\0') continue;
        if (line[0] != ' ') {
            if (reasoned) rules = 0;
            reasoned = false;
            if (rules == cap) rule = room(realloc(rule, (cap = 2 * cap + 16) * sizeof *rule));
            rule[rules++] = keep(line);
            continue;
        }
        const char *reason = keep(line + strspn(line, " "));
        for (size_t r = 0; r < rules && !reasoned; r++) {
            bool used = false;
            for (size_t i = 0; i < a->n; i++) {
                if (!matches(&a->mutant[i], rule[r])) continue;
                a->mutant[i].state = EXCLUDED;
                a->mutant[i].reason = reason;
                used = true;
            }
            if (!used) (void)fprintf(stderr, "mutate: %s: of no mutant: %s\n", path, rule[r]);
            idle += !used;
        }
        reasoned = true;
    }
    (void)fclose(in);
    return idle;
}

/* ---- one run ---- */

static pid_t start(const struct all *a, const struct test *t, int id)
{
    const pid_t pid = fork();
    if (pid < 0) run_cannot("fork");
    if (pid > 0) return pid;
    char text[32], seen[LINE_MAX_BYTES];
    (void)setpgid(0, 0);
    (void)snprintf(text, sizeof text, "%d", id);
    (void)setenv("RIDGE_MUTANT", text, 1);
    (void)setenv("CMOCKA_TEST_ABORT", "1", 1); /* the first failure decides */
    (void)snprintf(seen, sizeof seen, "%s/seen", a->dir);
    if (id == 0) (void)setenv("RIDGE_MUTANT_SEEN", seen, 1);
    const struct rlimit none = {0, 0}, much = {(rlim_t)8 << 30, (rlim_t)8 << 30};
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)setrlimit(RLIMIT_AS, &much);
    if (id != 0) {
        const rlim_t most = (rlim_t)(SLOWER * t->cpu_s) + LEAST_S;
        (void)setrlimit(RLIMIT_CPU, &(const struct rlimit){most, most + 1});
    }
    const int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++) (void)dup2(null, fd);
    (void)snprintf(text, sizeof text, "%d", t->function);
    if (t->function >= 0) (void)setenv("RIDGE_MUTANT_TEST", text, 1);
    if (strchr(t->command, ' '))
        (void)execl("/bin/sh", "sh", "-c", t->command, (char *)NULL);
    else
        (void)execl(t->command, t->command, (char *)NULL);
    _exit(127);
}

/* Whether the test succeeds on the program as it is; MUTANT_NO_TEST: there is no such function. */
static int try_test(struct all *a, struct test *t)
{
    int status;
    t->seen = room(calloc((size_t)a->ids, 1));
    FILE *f = run_open(a, "seen", "wb");
    if (fwrite(t->seen, 1, (size_t)a->ids, f) != (size_t)a->ids || fclose(f) != 0) run_cannot("seen");
    const double from = now_s(), cpu_from = children_s();
    const pid_t pid = start(a, t, 0);
    if (waitpid(pid, &status, 0) != pid) run_cannot("waitpid");
    t->base_s = now_s() - from;
    t->cpu_s = children_s() - cpu_from;
    f = run_open(a, "seen", "rb");
    if (!f || fread(t->seen, 1, (size_t)a->ids, f) != (size_t)a->ids) run_cannot("seen");
    (void)fclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}

/* Every test once on the program as it is. Those that fail are told and left out, those that reach no mutant too. */
static void measure(struct all *a)
{
    for (size_t i = 0; i < a->commands_n; i++) {
        const bool program = !strchr(a->command[i], ' ');
        for (int function = 0; function < (program ? FUNCTIONS_MAX : 1); function++) {
            struct test t = {.command = a->command[i], .function = program ? function : -1};
            const int status = try_test(a, &t);
            if (status == MUTANT_NO_TEST) break;
            if (status != 0) (void)fprintf(stderr, "mutate: %s %d fails as it is; not used\n", t.command, t.function);
            const bool slow = t.cpu_s > MOST_S;
            if (slow) (void)fprintf(stderr, "mutate: %s takes %.0f s; not used\n", t.command, t.cpu_s);
            if (slow || status != 0 || !memchr(t.seen, 1, (size_t)a->ids)) {
                free(t.seen);
                continue;
            }
            if (a->tests_n == a->tests_cap)
                a->test = room(realloc(a->test, (a->tests_cap = 2 * a->tests_cap + 64) * sizeof *a->test));
            size_t at = a->tests_n++;
            for (; at > 0 && a->test[at - 1].base_s > t.base_s; at--) a->test[at] = a->test[at - 1];
            a->test[at] = t;
        }
    }
}

/* ---- all of them ---- */

static size_t next_test(const struct all *a, const struct mutant *m, size_t from)
{
    while (from < a->tests_n && !(a->test[from].seen[m->id] && (int)from != m->tried)) from++;
    return from;
}

static void launch(struct all *a, size_t mutant, size_t test, bool first)
{
    const struct test *t = &a->test[test];
    const double limit_s = SLEEPS * t->base_s + SLEEPS_LEAST_S;
    a->job[a->jobs_n++] = (struct job){start(a, t, a->mutant[mutant].id), first, mutant, test, now_s() + limit_s};
}

static void settle(struct all *a, struct mutant *m, enum state state, int killer)
{
    m->state = state;
    m->killer = killer;
    a->done++;
    FILE *f = run_open(a, "results", "a");
    (void)fprintf(f, "%s\t%s\t%s\t%s\n", state == KILLED ? "killed" : "survived", m->file, m->function, m->text);
    (void)fclose(f);
    if (a->done % 50 == 0) (void)fprintf(stderr, "mutate: %zu of %zu\n", a->done, a->chosen);
}

/* Of a program, or of a shell that tells of one. */
static bool out_of_time(int status)
{
    if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL;
    return WIFEXITED(status) && (WEXITSTATUS(status) == 128 + SIGXCPU || WEXITSTATUS(status) == 128 + SIGKILL);
}

/* Takes finished jobs off; what survived one test goes to its next. */
static void collect(struct all *a)
{
    for (size_t i = 0; i < a->jobs_n; i++) {
        const struct job j = a->job[i];
        int status = 0;
        if (waitpid(j.pid, &status, WNOHANG) == 0) {
            if (now_s() < j.until_s) continue;
            (void)kill(-j.pid, SIGKILL);
            (void)waitpid(j.pid, &status, 0);
        }
        a->job[i--] = a->job[--a->jobs_n];
        struct mutant *m = &a->mutant[j.mutant];
        if (status != 0) {
            m->timed_out = out_of_time(status);
            settle(a, m, KILLED, (int)j.test);
            continue;
        }
        if (j.first) m->tried = (int)j.test;
        const size_t next = next_test(a, m, j.first ? 0 : j.test + 1);
        if (next == a->tests_n)
            settle(a, m, SURVIVED, -1);
        else
            launch(a, j.mutant, next, false);
    }
}

/* The test that killed the nearest mutant before it in the same function, when it reaches this one. */
static int killer_near(const struct all *a, size_t at)
{
    const struct mutant *m = &a->mutant[at];
    for (size_t i = at; i-- > 0;) {
        const struct mutant *o = &a->mutant[i];
        if (strcmp(o->function, m->function) != 0 || strcmp(o->file, m->file) != 0) return -1;
        if (o->killer >= 0 && a->test[o->killer].seen[m->id]) return o->killer;
    }
    return -1;
}

static void run_all(struct all *a)
{
    const long want = setting("MUTATE_JOBS", sysconf(_SC_NPROCESSORS_ONLN));
    const size_t jobs = want < 1 ? 1 : want > JOBS_MAX ? JOBS_MAX : (size_t)want;
    const struct timespec pause = {0, 1000000};
    for (size_t i = 0; i < a->n;) {
        struct mutant *m = &a->mutant[i];
        if (m->state != WAITING) {
            i++;
        } else if (next_test(a, m, 0) == a->tests_n) {
            settle(a, m, UNREACHED, -1);
        } else if (a->jobs_n < jobs) {
            const int killer = killer_near(a, i);
            if (killer >= 0)
                launch(a, i++, (size_t)killer, true);
            else
                launch(a, i++, next_test(a, m, 0), false);
        } else {
            collect(a);
            if (a->jobs_n == jobs) (void)nanosleep(&pause, NULL);
        }
    }
    while (a->jobs_n > 0) {
        collect(a);
        (void)nanosleep(&pause, NULL);
    }
}

/* ---- which of them ---- */

static uint64_t draw(uint64_t *state) /* splitmix64 */
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Whether a name has any of the texts of a list in it, which commas part. */
static bool has_part(const char *name, const char *list)
{
    char part[LINE_MAX_BYTES];
    while (*list) {
        const size_t n = strcspn(list, ",");
        (void)snprintf(part, sizeof part, "%.*s", (int)n, list);
        if (n > 0 && strstr(name, part)) return true;
        list += n + (list[n] == ',');
    }
    return false;
}

static void choose(struct all *a)
{
    const char *part = getenv("MUTATE_PART");
    size_t waiting = 0;
    for (size_t i = 0; i < a->n; i++) {
        struct mutant *m = &a->mutant[i];
        if (part && *part && !has_part(m->file, part) && m->state == WAITING) m->state = LEFT_OUT;
        waiting += m->state == WAITING;
    }
    const long sample = setting("MUTATE_SAMPLE", 0);
    uint64_t state = (uint64_t)setting("MUTATE_SEED", 1);
    size_t wanted = sample > 0 && (size_t)sample < waiting ? (size_t)sample : waiting;
    a->chosen = wanted;
    for (size_t i = 0; i < a->n; i++) { /* each subset of that size is as likely as any other */
        struct mutant *m = &a->mutant[i];
        if (m->state != WAITING) continue;
        if (draw(&state) % waiting-- < wanted)
            wanted--;
        else
            m->state = LEFT_OUT;
    }
}

static void keep_killed(struct all *a)
{
    char line[LINE_MAX_BYTES], own[LINE_MAX_BYTES];
    FILE *in = run_open(a, "results", "r");
    if (!in) return;
    while (fgets(line, sizeof line, in)) {
        for (size_t i = 0; i < a->n; i++) {
            struct mutant *m = &a->mutant[i];
            if (m->state != WAITING) continue;
            (void)snprintf(own, sizeof own, "killed\t%s\t%s\t%s\n", m->file, m->function, m->text);
            if (strcmp(own, line) != 0) continue;
            m->state = KILLED;
            a->done++;
        }
    }
    (void)fclose(in);
}

int main(int argc, char **argv)
{
    static struct all a;
    if (argc < 4 || argc - 3 > COMMANDS_MAX) {
        (void)fprintf(stderr, "usage: mutate-run DIR EXCLUDED COMMAND... (at most %d)\n", COMMANDS_MAX);
        return STATUS_USE;
    }
    a.dir = whole_path(argv[1]);
    read_mutants(&a);
    const int idle = exclude(&a, argv[2]);
    for (int i = 3; i < argc; i++) a.command[a.commands_n++] = argv[i];
    choose(&a);
    if (setting("MUTATE_KEEP", 0))
        keep_killed(&a);
    else
        (void)fclose(run_open(&a, "results", "w"));
    measure(&a);
    run_all(&a);
    const int low = run_report(&a);
    return low || idle > 0;
}
