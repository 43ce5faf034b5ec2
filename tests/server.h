/* server -- a replica of a plan and requests for it, for tests of the simulator. */
#ifndef RIDGE_TESTS_SERVER_H
#define RIDGE_TESTS_SERVER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "calc/serve/simulate.h"

struct server {
    struct arena *arena;
    struct model model;
    struct hw hw;
    struct mix_plan *plan;
};

static inline void near_to(double found, double wanted, double within, const char *what)
{
    if (!(fabs(found - wanted) <= within * fabs(wanted))) fail_msg("%s: %.12g, wanted %.12g", what, found, wanted);
}

/* server_open -- a model on one device. server_setup -- 256 places, 2048 tokens a step, blocks for all. */
void server_open(struct server *b, const char *model, const char *hw, enum step_fidelity f);
struct simulate_setup server_setup(const struct server *b, const struct workload *w, enum simulate_policy p);

/* server_make -- requests at a rate, of clients, or all at once (both 0). server_run -- them through it. */
struct workload server_make(struct arena *a, double rate, int64_t clients, int64_t n, const char *prompt,
                            const char *output, uint64_t seed);
struct simulate_result server_run(struct arena *a, const struct simulate_setup *s);

#endif
