/* planned -- questions to the planner, for its tests. */
#ifndef RIDGE_TESTS_PLANNED_H
#define RIDGE_TESTS_PLANNED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "calc/serve/planner_parts.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* A question with everything that it needs. */
struct asked {
    struct arena *a;
    struct hw hw[3];
    struct planner_device device[3];
    struct model model[4];
    struct planner_format format[4];
    struct workload work;
    struct planner_request q;
};

static inline void must(enum err_code code, const struct err *e)
{
    if (code != ERR_OK) fail_msg("%s", e->text);
}

extern const int64_t STEPS[2], SEQS[2];

/* ask -- `rate` requests a second on up to `most` of each of some GPUs, weights as stored or fp8, limits STEPS and
 * SEQS, by floors; what is promised and allowed may be set afterwards. same_plan -- one layout with the same limits,
 * times equal to 1e-9; what: said where they differ. */
struct asked *ask(struct arena *a, const char *model, const char *const *gpus, size_t gpus_n, int64_t most, double rate,
                  const char *prompt, const char *output);
void same_plan(const struct planner_plan *x, const struct planner_plan *y, const char *what);

#endif
