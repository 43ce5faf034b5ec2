#include "calc/base/hold.h"

#include <stddef.h>

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum { ENDING_N = sizeof ending / sizeof ending[0] };

bool hold_is_ignored(int signal)
{
    struct sigaction now;
    return sigaction(signal, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

void hold_begin(sigset_t *before)
{
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < ENDING_N; i++)
        if (!hold_is_ignored(ending[i])) (void)sigaddset(&set, ending[i]);
    (void)sigprocmask(SIG_BLOCK, &set, before);
}

bool hold_pending(const sigset_t *before)
{
    sigset_t pending;
    if (sigpending(&pending) != 0) return false;
    for (size_t i = 0; i < ENDING_N; i++)
        if (sigismember(&pending, ending[i]) == 1 && sigismember(before, ending[i]) == 0) return true;
    return false;
}

void hold_end(const sigset_t *before) { (void)sigprocmask(SIG_SETMASK, before, NULL); }
