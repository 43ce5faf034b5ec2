/* progress -- a bar on standard error for work over a second, on a terminal only. */
#ifndef RIDGE_CLI_PROGRESS_H
#define RIDGE_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

struct progress {
    const char *what; /* "points" */
    double start_s, shown_s;
    double most_s; /* it takes no longer; 0: not known. Set after progress_start */
    bool terminal, shown;
};

/* progress_now_s -- seconds of a clock that only goes on; 0 where there is none. */
double progress_now_s(void);

void progress_start(struct progress *p, const char *what);
/* progress_show -- draw done of total when a second has passed since the start and a tenth since the last time. */
void progress_show(struct progress *p, size_t done, size_t total);
/* progress_tell -- the same for who calls back. */
void progress_tell(void *progress, size_t done, size_t total);
void progress_end(struct progress *p); /* wipe the bar */
/* progress_line -- a line that stays, above the bar; on a terminal only. */
void progress_line(struct progress *p, const char *text);

#endif
