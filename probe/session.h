/* session -- one worker process: started, asked, watched, ended.
 *
 * The worker is a child in a process group of its own, dies with `ridge`, and whatever it does costs one answer: a
 * crash, silence beyond the deadline and lines that are no answer are outcomes here, not errors. */
#ifndef RIDGE_PROBE_SESSION_H
#define RIDGE_PROBE_SESSION_H

#include <signal.h>

#include "probe/wire.h"

struct session;

enum session_end {
    SESSION_ANSWERED,
    SESSION_CRASHED, /* the worker ended */
    SESSION_HUNG,    /* no answer in time: it was killed */
    SESSION_GARBAGE, /* what it wrote is no answer to what was asked: it was killed */
    SESSION_STOPPED  /* a held signal arrived (calc/base/hold.h): it was killed */
};

/* session_open -- start the worker at path. Ends with the arena at the latest. before: the mask that hold_begin gave,
 * which the worker gets. Errors: ERR_DEVICE it cannot be started, ERR_NOMEM. */
enum err_code session_open(struct arena *a, const char *path, const sigset_t *before, struct session **out,
                           struct err *e);

/* session_ask -- send a request (its id is set here) and wait deadline_s for the answer; progress (may be NULL) hears
 * of phases meanwhile. SESSION_ANSWERED: *reply is of the kind that was asked for, in arena a. Otherwise why[cap] is a
 * sentence without a full stop, and the session is of no more use: session_close it. */
typedef void session_progress(void *closure, const char *phase);
enum session_end session_ask(struct session *s, struct arena *a, const struct wire_request *request, double deadline_s,
                             session_progress *progress, void *closure, struct wire_reply *reply, char *why,
                             size_t cap);

/* session_close -- ask it to quit, wait a moment, kill its group; no process is left. NULL is legal. */
void session_close(struct session *s);

/* session_worker_path -- the worker called name in the folder of this program. Errors: ERR_IO, ERR_NOMEM. */
enum err_code session_worker_path(struct arena *a, const char *name, const char **out, struct err *e);

#endif
