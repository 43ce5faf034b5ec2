/* plan_hosted -- weights of the winner that stay at the host (--cpu-offload-gb). */
#include <string.h>

#include "calc/cli/plan.h"

enum err_code plan_hosted_of(struct arena *a, struct plan_case *c, struct err *e)
{
    const struct planner_plan *x = &c->result.best[0];
    struct planner_request whole = c->request;
    struct planner_device *device = arena_array(a, whole.devices_n, sizeof *device);
    struct planner_plan y;
    if (!device) return err_nomem(e);
    if (!(c->device[x->device].offload.bytes > 0)) return ERR_OK;
    memcpy(device, c->device, whole.devices_n * sizeof *device);
    device[x->device].offload.bytes = 0;
    whole.device = device;
    TRY(planner_at(a, &whole, x, &y, e)); /* whether it fits so or not, it has weights */
    c->hosted_bytes = y.weight_bytes - x->weight_bytes;
    return ERR_OK;
}

void plan_hosted(struct out *o, const struct plan_case *c, const char *prefix)
{
    const struct offload *away = &c->device[c->result.best[0].device].offload;
    char s[UNITS_TEXT_MAX], t[UNITS_TEXT_MAX];
    if (!(away->bytes > 0)) return;
    plan_say(o, prefix, "at the host %s of weights a GPU, read by every step that needs them at %s",
             units_format_bytes(s, c->hosted_bytes), units_format(t, UNITS_BYTES_PER_S, away->host_bytes_per_s));
    if (c->hosted_bytes < away->bytes * (1 - 1e-9))
        plan_say(o, prefix, "note: --cpu-offload-gb asks for %s of each GPU, and its layers have no more than those %s",
                 units_format_bytes(s, away->bytes), units_format_bytes(t, c->hosted_bytes));
}
