#include "calc/cli/trace_read.h"

#include "calc/cli/interrupt.h"
#include "calc/cli/progress.h"

static bool show(void *closure, size_t done, size_t all)
{
    progress_show(closure, done, all);
    return !interrupt_pending();
}

enum err_code trace_read(struct arena *a, const char *path, struct workload *out, struct err *e)
{
    struct interrupt held;
    struct progress bar;
    interrupt_hold(&held, true);
    progress_start(&bar, "bytes of the trace");
    const enum err_code code = workload_read_watched(a, path, show, &bar, out, e);
    progress_end(&bar);
    return interrupt_relay(code, interrupt_release(&held), e);
}
