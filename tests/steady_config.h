/* steady_config -- settings of a replica, drawn from a number or of given lengths, for the steady state and for the
 * simulator. */
#ifndef RIDGE_TESTS_STEADY_CONFIG_H
#define RIDGE_TESTS_STEADY_CONFIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "calc/serve/steady.h"

struct config {
    struct arena *arena;
    struct model model;
    struct hw hw;
    struct mix_plan *plan;
    struct workload work;
    struct steady_lengths lengths;
    struct steady_setup steady;
    struct simulate_setup simulated;
    char name[256];
};

static inline void must(enum err_code code, const struct err *e)
{
    if (code != ERR_OK) fail_msg("%s", e->text);
}

static inline void near_to(double found, double wanted, double within, const char *what)
{
    if (!(fabs(found - wanted) <= within * fabs(wanted))) fail_msg("%s: %.9g, wanted %.9g", what, found, wanted);
}

/* config_uniform -- in [0, 1), a generator of its own: the configurations are the same everywhere. config_between --
 * its logarithm is uniform. */
double config_uniform(uint64_t *s);
double config_between(uint64_t *s, double low, double high);

/* config_open -- the i-th: a model, a device, lengths, a scheduler's limits; no arrivals yet. config_open_fixed -- the
 * third's model and device with these lengths, 256 places and 4099 tokens a step; two requests. */
void config_open(struct config *c, enum simulate_policy policy, int i, int64_t requests);
void config_open_fixed(struct config *c, enum simulate_policy policy, const char *prompt, const char *output);

/* config_hasten -- arrivals made at one a second come so many times as fast. config_close_loop -- so many clients, each
 * asking again as soon as it is answered. */
void config_hasten(struct config *c, double rate_per_s);
void config_close_loop(struct config *c, size_t clients);

struct steady_result config_solve(struct arena *a, const struct steady_setup *s);
struct simulate_result config_simulate(struct arena *a, const struct simulate_setup *s);

/* config_answers_per_s -- between two parts of the answers: without the beginning and the end of a run. */
double config_answers_per_s(struct arena *a, const struct simulate_result *q, double from, double to);

/* config_step_s -- of sequences that decode at a context and a whole prompt. */
double config_step_s(struct arena *a, struct mix_plan *plan, double decoding, double context, double prompt);

#endif
