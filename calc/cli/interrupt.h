/* interrupt -- SIGINT and SIGTERM held back and looked at between pieces of work, so that what is there can be written.
 */
#ifndef RIDGE_CLI_INTERRUPT_H
#define RIDGE_CLI_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

struct interrupt {
    sigset_t held, before;
};

/* interrupt_hold -- from now on; keys: SIGINT alone. interrupt_pending -- whether one came. interrupt_release -- as
 * before; one that came is taken. */
void interrupt_hold(struct interrupt *i, bool keys);
bool interrupt_pending(void);
void interrupt_release(struct interrupt *i);

#endif
