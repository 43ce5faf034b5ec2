#include "calc/cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "calc/base/clock.h"

void progress_start(struct progress *p, const char *what)
{
    *p = (struct progress){.what = what, .terminal = isatty(STDERR_FILENO) == 1};
    if (p->terminal) p->start_s = clock_now_s();
}

double progress_left_s(const struct progress *p, size_t done, size_t total, double t)
{
    const double spent_s = t - p->start_s - p->idle_s, end_s = p->start_s + p->most_s - t;
    const double each_s = done ? spent_s / (double)done : p->each_s > 0 ? p->each_s : spent_s;
    const double left_s = each_s * (double)(total - done);
    if (p->most_s > 0 && left_s > end_s) return end_s > 0 ? end_s : 0;
    return left_s;
}

void progress_show(struct progress *p, size_t done, size_t total)
{
    enum { WIDTH = 40 };
    if (!p->terminal || total == 0) return;
    const double t = clock_now_s();
    if (t - p->start_s < 1 || t - p->shown_s < 0.1) return;
    char bar[WIDTH + 1];
    const size_t filled = (size_t)((double)WIDTH * (double)done / (double)total);
    for (size_t i = 0; i < WIDTH; i++) bar[i] = i < filled ? '#' : '.';
    bar[WIDTH] = '\0';
    const double left_s = progress_left_s(p, done, total, t);
    (void)fprintf(stderr, "\r[%s] %zu of %zu %s, %.0f s left ", bar, done, total, p->what, left_s);
    (void)fflush(stderr);
    p->shown_s = t;
    p->shown = true;
}

void progress_tell(void *progress, size_t done, size_t total) { progress_show(progress, done, total); }

void progress_end(struct progress *p)
{
    if (p->shown) (void)fprintf(stderr, "\r%79s\r", "");
    p->shown = false;
}

void progress_notice(struct progress *p, const char *text)
{
    if (p) progress_end(p);
    (void)fprintf(stderr, "ridge: %s\n", text);
}

void progress_line(struct progress *p, const char *text)
{
    if (!p->terminal) return;
    progress_end(p);
    (void)fprintf(stderr, "%s\n", text);
}
