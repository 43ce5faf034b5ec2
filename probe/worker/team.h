/* team -- threads that make one call together, each on a processor of its own.
 *
 * The one that opens a team is part 0 of it. Between runs the others sleep; within one they wait for each other by
 * turning, so that a start costs no wake-up. */
#ifndef RIDGE_PROBE_WORKER_TEAM_H
#define RIDGE_PROBE_WORKER_TEAM_H

#include <stdbool.h>
#include <stddef.h>

struct team;

/* team_processors -- how many this process may run on. */
unsigned team_processors(void);

/* team_open -- n threads, each bound to a processor: first of each core one, then the others; more threads than
 * processors share them, which is right and slow. NULL: they cannot be had. team_close -- ends them; the thread that
 * opened it may run anywhere again. */
struct team *team_open(unsigned n);
void team_close(struct team *t);
unsigned team_size(const struct team *t);

/* team_caches -- how many caches of a level (1 data, 2, 3) the threads have between them; 0 unknown. */
unsigned team_caches(const struct team *t, int level);

/* team_run -- body(closure, part) by every thread, all started at once. *wall_s: from the common start to the last end;
 * *lost_s: the most that one of them was not running meanwhile. Either may be NULL. */
void team_run(struct team *t, void (*body)(void *closure, unsigned part), void *closure, double *wall_s,
              double *lost_s);

/* team_meet -- within body: wait until all are here. The last to come first does last(closure) (NULL: nothing). */
void team_meet(struct team *t, void (*last)(void *closure), void *closure);

#endif
