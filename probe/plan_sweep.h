/* plan_sweep -- the shapes of --shape; for plan.c. */
#ifndef RIDGE_PROBE_PLAN_SWEEP_H
#define RIDGE_PROBE_PLAN_SWEEP_H

#include "probe/plan.h"

struct sweep {
    size_t n;
    struct {
        char name[64];
        const int64_t *values;
        size_t values_n;
    } arg[WIRE_ARGS_MAX];
};

/* sweep_read -- of r->shape, "m=1,8,n=4096": a piece with '=' begins a parameter, one without goes on with its values.
 * Errors: ERR_USAGE it is no such text; ERR_RANGE a size below zero; ERR_NOMEM. */
enum err_code sweep_read(struct arena *a, const struct wire_device *d, const struct plan_request *r, struct sweep *out,
                         struct err *e);

/* sweep_is_of -- whether it names the parameters of a kernel, all of them and no other. */
bool sweep_is_of(const struct sweep *s, const struct wire_kernel *k);

/* sweep_combination -- the i-th of it, the last parameter fastest, in the order of the kernel. */
struct wire_shape sweep_combination(const struct sweep *s, const struct wire_kernel *k, size_t i);

#endif
