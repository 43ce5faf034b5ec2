/* progress -- a bar on standard error for work over a second, on a terminal only. */
#ifndef RIDGE_CLI_PROGRESS_H
#define RIDGE_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

struct progress {
    const char *what; /* "points" */
    double start_s, shown_s;
    double most_s; /* it takes no longer; 0: not known. Set after progress_start */
    double idle_s; /* of the time since the start, what was for no part of the work: preparations, over by now */
    double each_s; /* what a part is thought to take until one is done; 0: not known */
    bool terminal, shown;
};

void progress_start(struct progress *p, const char *what);
/* progress_left_s -- what is still to do at t: the parts that are left, each as long as those done were on average, or
 * as each_s says, and no longer than most_s allows. Cost: O(1). */
double progress_left_s(const struct progress *p, size_t done, size_t total, double t);
/* progress_show -- draw done of total when a second has passed since the start and a tenth since the last time. */
void progress_show(struct progress *p, size_t done, size_t total);
/* progress_tell -- the same for who calls back. */
void progress_tell(void *progress, size_t done, size_t total);
void progress_end(struct progress *p); /* wipe the bar */
/* progress_line -- a line that stays, above the bar; on a terminal only. */
void progress_line(struct progress *p, const char *text);

/* progress_notice -- what is to be known before long work, whether somebody watches or not; p NULL without a bar. */
void progress_notice(struct progress *p, const char *text);

#endif
