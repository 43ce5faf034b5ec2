/* learn -- what tests of calc/learn share: a scope with a model and a device, and values at a point. */
#ifndef RIDGE_TESTS_LEARN_H
#define RIDGE_TESTS_LEARN_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/learn/quantity.h"

struct learn {
    struct arena *a;
    struct model model;
    struct hw hw;
    struct quantity_scope scope;
};

/* model, gpu: NULL none. scope.hw is set only where the layout divides and can be timed. */
static inline enum err_code learn_open(struct learn *f, const char *model, const char *gpu, int64_t tp, bool course,
                                       struct err *e)
{
    f->a = arena_open();
    if (!f->a) return err_nomem(e);
    TRY(quantity_open(f->a, NULL, course, &f->scope, e));
    f->scope.tp = tp;
    if (model) {
        TRY(model_load(f->a, model, NULL, 0, &f->model, e));
        f->scope.model = &f->model;
    }
    if (!gpu) return ERR_OK;
    TRY(hw_load(f->a, gpu, &f->hw, e));
    if (course) hw_pin_course(&f->hw);
    return quantity_device(&f->scope, &f->hw, e);
}

/* NAN while symbols are left */
static inline double learn_at(const struct quantity_scope *s, const struct sym *e, int64_t B, int64_t S)
{
    const struct sym_binding env[] = {{s->y.B, sym_int(s->c, B)}, {s->y.S, sym_int(s->c, S)}};
    double v = (double)NAN;
    return sym_constant(sym_bind(s->c, e, env, 2), &v) ? v : (double)NAN;
}

static inline const struct sym *learn_named(const struct quantity_scope *s, const char *name, struct err *e)
{
    struct quantity_named list[QUANTITY_NAMED_MAX];
    size_t n = 0;
    if (quantity_named_all(s, list, &n, e) != ERR_OK) return NULL;
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0) return list[i].value;
    (void)err_set(e, ERR_USAGE, "no quantity %s", name);
    return NULL;
}

#endif
