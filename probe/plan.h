/* plan -- what is to be measured: which kernels at which shapes in which variants. */
#ifndef RIDGE_PROBE_PLAN_H
#define RIDGE_PROBE_PLAN_H

#include "probe/wire.h"

/* A shape of a kind of rows, whichever kernel has it. */
struct plan_point {
    const char *row_kind, *dtype;
    struct wire_shape shape;
    const char *ones;   /* parameters, joined by ',', that a kernel need not have when they are 1; NULL none */
    const char *kernel; /* the only one that such rows are of; NULL: all of the kind */
};

/* What the user asks for; NULL: all, or the kernels' own. Lists are joined by ','. */
struct plan_request {
    const char *kernels, *variants, *dtypes;
    bool quick;        /* the few points of each kernel that tell most */
    bool all;          /* every variant, else the first that the machine can run, and a library's */
    bool measures;     /* also kernels that measure ceilings */
    const char *shape; /* "m=1,8,n=4096,k=4096": instead of the kernels' points, all combinations */
    /* instead of both: of every kernel whose kind is a point's and that has its parameters; those that the kind does
     * not name are at their least, and equal shapes are taken once */
    const struct plan_point *points;
    size_t points_n;
};

struct plan_job {
    const struct wire_kernel *kernel;
    const struct wire_variant *variant;
    const char *dtype;
    struct wire_shape shape;
    bool quick;  /* of a point that tells much */
    double part; /* of its kernel's points before its own, 0 <= part < 1; a library's: 1 more */
    size_t nth;  /* in the order that plan_make gives */
};

struct plan {
    struct plan_job *jobs;
    size_t n;
    const char **left_out; /* sentences: what was asked for and cannot run here */
    size_t left_out_n;
};

enum { PLAN_JOBS_MAX = 10000 };

/* plan_make -- the jobs, in the order of kernels, points and variants. Errors: ERR_USAGE a kernel, variant or format
 * that there is not, with those that there are, or a shape that is of no kernel; ERR_DEVICE nothing of it can run here,
 * with the reasons; ERR_RANGE too many; ERR_NOMEM. */
enum err_code plan_make(struct arena *a, const struct wire_device *d, const struct plan_request *r, struct plan *out,
                        struct err *e);

/* plan_spread -- the jobs in an order in which every kernel has had about the same part of its points, wherever it is
 * cut off: points that tell much first, then by plan_job.part, then as before. Cost: O(n log n). */
void plan_spread(struct plan *p);

/* plan_check_kernels -- that each of the names, joined by ',', is a kernel of the device; NULL is legal. Errors:
 * ERR_USAGE with the nearest one. */
enum err_code plan_check_kernels(const struct wire_device *d, const char *list, struct err *e);

/* plan_point_is_of -- whether a kernel's results are rows as a point's. */
bool plan_point_is_of(const struct plan_point *p, const struct wire_kernel *k);

/* plan_kernel -- a kernel of the device by name; NULL unknown. */
const struct wire_kernel *plan_kernel(const struct wire_device *d, const char *name);

#endif
