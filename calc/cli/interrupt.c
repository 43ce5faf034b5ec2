#include "calc/cli/interrupt.h"

#include <stddef.h>

#include "calc/base/hold.h"

static const int ENDING[] = {SIGINT, SIGTERM, SIGHUP};
enum { ENDING_N = sizeof ENDING / sizeof ENDING[0] };

void interrupt_hold(struct interrupt *i, bool keys)
{
    (void)sigemptyset(&i->held);
    for (size_t k = 0; k < (keys ? 1 : ENDING_N); k++)
        if (!hold_is_ignored(ENDING[k])) (void)sigaddset(&i->held, ENDING[k]);
    (void)sigprocmask(SIG_BLOCK, &i->held, &i->before);
}

bool interrupt_pending(void)
{
    sigset_t now;
    if (sigpending(&now) != 0) return false;
    for (size_t k = 0; k < ENDING_N; k++)
        if (sigismember(&now, ENDING[k]) == 1) return true;
    return false;
}

enum err_code interrupt_release(struct interrupt *i)
{
    enum err_code came = ERR_OK;
    int which;
    while (interrupt_pending() && sigwait(&i->held, &which) == 0)
        came = which == SIGHUP || came == ERR_HUNG_UP ? ERR_HUNG_UP : ERR_STOPPED;
    (void)sigprocmask(SIG_SETMASK, &i->before, NULL);
    return came;
}

enum err_code interrupt_relay(enum err_code code, enum err_code came, struct err *e)
{
    if (code != ERR_STOPPED || came == ERR_OK) return code;
    if (e) e->code = came;
    return came;
}
