#include "calc/cli/interrupt.h"

#include <stddef.h>

#include "calc/base/hold.h"

void interrupt_hold(struct interrupt *i, bool keys)
{
    (void)sigemptyset(&i->held);
    if (!hold_is_ignored(SIGINT)) (void)sigaddset(&i->held, SIGINT);
    if (!keys && !hold_is_ignored(SIGTERM)) (void)sigaddset(&i->held, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &i->held, &i->before);
}

bool interrupt_pending(void)
{
    sigset_t now;
    return sigpending(&now) == 0 && (sigismember(&now, SIGINT) == 1 || sigismember(&now, SIGTERM) == 1);
}

void interrupt_release(struct interrupt *i)
{
    int which;
    while (interrupt_pending() && sigwait(&i->held, &which) == 0) continue;
    (void)sigprocmask(SIG_SETMASK, &i->before, NULL);
}
