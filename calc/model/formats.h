/* formats -- which matrix of which layer a quantisation stores how; private to calc/model. */
#ifndef RIDGE_MODEL_FORMATS_H
#define RIDGE_MODEL_FORMATS_H

#include "calc/model/modules.h"

/* What one pattern says: modules that it names have this format; NULL: they stay floats. */
struct format_rule {
    struct module_pattern pattern;
    const struct dtype *format;
    int64_t experts; /* how many of a layer's experts were named one by one */
    bool used;
};

/* A quantisation as read: the format of linear layers and experts, and rules of which the first that names a module
 * holds. */
struct format_plan {
    const char *file;
    bool parts;                    /* names are parts of modules' names (module_pattern_as_part) */
    bool of_tensors;               /* read from a checkpoint's tensors, not from a statement */
    const struct dtype *linear;    /* NULL: nothing that no rule names is converted */
    const struct dtype *elsewhere; /* embedding, head and routers, when no rule names them; NULL: floats */
    const struct dtype *head;      /* the head alone, in place of elsewhere; NULL floats */
    struct format_rule *rule;
    size_t rules_n, room;
};

/* format_plan_add -- one more rule at the end; regex: see module_pattern_read. Errors: as there. */
enum err_code format_plan_add(struct arena *a, struct format_plan *p, const char *pattern, bool regex,
                              const struct dtype *format, struct err *e);

/* format_plan_apply -- m->weights by class, and where a rule cuts through a class the formats of single matrices:
 * layers of a kind that differ in them become kinds of their own. m->kinds and m->order are those of the layers;
 * WEIGHT_OTHER has the float format, WEIGHT_ROUTER that of routers. Sets m->weights_unknown, naming the pattern, where
 * a rule names nothing that is known or some experts of a layer but not all. Errors: ERR_INPUT, ERR_NOMEM. Cost:
 * O(layers * modules * rules). */
enum err_code format_plan_apply(struct arena *a, const struct format_plan *p, struct model *m, struct err *e);

#endif
