/* interrupt -- SIGINT, SIGTERM and SIGHUP held back and looked at between pieces of work, so that what is there can be
 * written. */
#ifndef RIDGE_CLI_INTERRUPT_H
#define RIDGE_CLI_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

#include "calc/base/err.h"

struct interrupt {
    sigset_t held, before;
};

/* interrupt_hold -- from now on, those that are not ignored; keys: SIGINT alone. interrupt_pending -- whether one came.
 * interrupt_release -- as before; those that came are taken, and tell the exit status: ERR_HUNG_UP where one was
 * SIGHUP, else ERR_STOPPED; ERR_OK none came. */
void interrupt_hold(struct interrupt *i, bool keys);
bool interrupt_pending(void);
enum err_code interrupt_release(struct interrupt *i);

/* interrupt_relay -- the code of work that was watched: where it was stopped, what came, in e too. */
enum err_code interrupt_relay(enum err_code code, enum err_code came, struct err *e);

#endif
