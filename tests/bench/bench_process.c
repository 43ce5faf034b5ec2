/* bench_process -- what one run of the program costs: wall time, processor time and memory, from fork to wait4.
 *
 * Each command runs TIMES times, all in turn, its output thrown away; `true` among them is the least that a run can
 * cost. RIDGE names the program (build/ridge). Needs _DEFAULT_SOURCE for wait4. */
#define _DEFAULT_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "calc/base/err.h"

enum { TIMES = 50, WORDS = 16 };

static const struct command_line {
    const char *what;
    const char *word[WORDS]; /* NULL at the end; the program itself is not among them */
} LINES[] = {
    {"true", {NULL}},
    {"help", {"help", NULL}},
    {"one point", {"estimate", "-m", "llama-3.1-8b", "-g", "h100-sxm", NULL}},
    {"make demo",
     {"estimate", "-m", "llama-2-13b", "-g", "h100-sxm", "--batch", "1,16,64,256", "--context", "1024", NULL}},
    {"671B, 8 GPUs", {"estimate", "-m", "deepseek-v3", "-g", "h200-sxm:8", "--batch", "1,16,64,256", NULL}},
    {"by operator", {"estimate", "-m", "llama-3.1-8b", "-g", "h100-sxm", "--batch", "64", "--by-op", NULL}},
    {"5632 rows CSV",
     {"estimate", "-m", "llama-3.1-8b", "-g", "h100-sxm", "--batch", "1..512", "--context", "1Ki..1Mi*2", "-f", "csv",
      NULL}},
};
enum { LINES_N = sizeof LINES / sizeof LINES[0] };

struct cost {
    double wall_s[TIMES], cpu_s[TIMES];
    double rss_bytes; /* the most of any run */
};

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double seconds(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec / 1e6; }

/* The child's part: never returns. */
static void become(const char *program, char *const *argv)
{
    const int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0) _exit(126);
    (void)execvp(program, argv);
    _exit(127);
}

static enum err_code run_once(const char *program, const struct command_line *line, struct cost *cost, size_t time,
                              struct err *e)
{
    char name[] = "ridge", text[WORDS][32], *argv[WORDS + 1] = {name};
    for (size_t i = 0; line->word[i]; i++) {
        (void)snprintf(text[i], sizeof text[i], "%s", line->word[i]);
        argv[i + 1] = text[i];
    }
    struct rusage used;
    int status;
    const double start = now_s();
    const pid_t child = fork();
    if (child == 0) become(program, argv);
    if (child < 0 || wait4(child, &status, 0, &used) != child)
        return err_set(e, ERR_IO, "%s: %s", program, strerror(errno));
    cost->wall_s[time] = now_s() - start;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return err_set(e, ERR_IO, "%s: \"%s\" ended with status %d", program, line->what,
                       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    cost->cpu_s[time] = seconds(used.ru_utime) + seconds(used.ru_stime);
    const double rss_bytes = 1024.0 * (double)used.ru_maxrss; /* ru_maxrss is in KiB on Linux */
    if (rss_bytes > cost->rss_bytes) cost->rss_bytes = rss_bytes;
    return ERR_OK;
}

static int ascending(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* nearest rank: the smallest value that a part of at least frac is not above */
static double quantile(const double *sorted, double frac)
{
    size_t rank = (size_t)(frac * TIMES);
    if ((double)rank < frac * TIMES) rank++;
    return sorted[rank ? rank - 1 : 0];
}

static void print_costs(struct cost *cost)
{
    (void)printf("  %-16s %9s %9s %9s %9s %9s %9s\n", "command", "median ms", "p90 ms", "x true", "cpu ms", "MB",
                 "x true");
    for (size_t i = 0; i < LINES_N; i++) {
        qsort(cost[i].wall_s, TIMES, sizeof(double), ascending);
        qsort(cost[i].cpu_s, TIMES, sizeof(double), ascending);
        const double wall_s = quantile(cost[i].wall_s, 0.5);
        (void)printf("  %-16s %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f\n", LINES[i].what, 1e3 * wall_s,
                     1e3 * quantile(cost[i].wall_s, 0.9), wall_s / quantile(cost[0].wall_s, 0.5),
                     1e3 * quantile(cost[i].cpu_s, 0.5), cost[i].rss_bytes / 1e6,
                     cost[i].rss_bytes / cost[0].rss_bytes);
    }
}

int main(void)
{
    const char *given = getenv("RIDGE"), *ridge = given ? given : "build/ridge";
    static struct cost cost[LINES_N];
    struct err e = {.code = ERR_OK};
    if (access(ridge, X_OK) != 0) {
        (void)fprintf(stderr, "bench_process: %s is not there; make all builds it, RIDGE names another\n", ridge);
        return ERR_SKIP;
    }
    for (size_t time = 0; time < TIMES; time++)
        for (size_t i = 0; i < LINES_N; i++) {
            if (run_once(i == 0 ? "true" : ridge, &LINES[i], &cost[i], time, &e) == ERR_OK) continue;
            (void)fprintf(stderr, "bench_process: %s\n", e.text);
            return (int)e.code;
        }
    (void)printf("  %s, %d runs each (bars: median 10 ms, 20 MB); `true` is the least, fork, exec and exit\n", ridge,
                 TIMES);
    print_costs(cost);
    return 0;
}
