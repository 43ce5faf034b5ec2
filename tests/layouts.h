/* layouts -- what tests of layouts share: models, devices, steps and their operators, ready or failing. */
#ifndef RIDGE_TESTS_LAYOUTS_H
#define RIDGE_TESTS_LAYOUTS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "calc/serve/layouts.h"
#include "calc/time/kernel.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static inline void near_to(double got, double want, double within)
{
    if (!(fabs(got - want) <= within * fabs(want))) fail_msg("found %.17g, wanted %.17g", got, want);
}

static inline struct model load(struct arena *a, const char *name)
{
    struct err e = {0};
    struct model m;
    if (model_load(a, name, NULL, 0, &m, &e) != ERR_OK) fail_msg("%s", e.text);
    return m;
}

static inline struct hw device(struct arena *a, const char *name)
{
    struct err e = {0};
    struct hw hw;
    if (hw_load(a, name, &hw, &e) != ERR_OK) fail_msg("%s", e.text);
    return hw;
}

static inline struct step *compile(struct arena *a, const struct model *m, const struct hw *hw, struct step_setup setup)
{
    struct err e = {0};
    struct step *s;
    setup.model = m;
    setup.hw = hw;
    setup.block_tokens = 16;
    if (step_compile(a, &setup, &s, &e) != ERR_OK) fail_msg("%s: %s", m->name, e.text);
    return s;
}

/* One point: B, T, S. */
static inline void eval(struct step *s, const struct layout *l, double B, double T, double S, double *out)
{
    struct err e = {0};
    if (step_eval_layout(s, l, B, T, S, 1, out, &e) != ERR_OK) fail_msg("%s", e.text);
}

static inline struct step_op find_op(struct arena *a, struct step *s, enum step_phase phase, double B, double S,
                                     const char *name, size_t nth)
{
    struct step_op *ops;
    struct err e = {0};
    size_t n;
    assert_int_equal(step_ops(a, s, phase, B, S, S, 1, &ops, &n, &e), ERR_OK);
    for (size_t i = 0; i < n; i++)
        if (strcmp(ops[i].name, name) == 0 && nth-- == 0) return ops[i];
    fail_msg("no operator %s", name);
    return ops[0];
}

#endif
