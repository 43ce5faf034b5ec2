/* derive -- where a number comes from, as lines of formulas: generated from the operators that `ridge estimate`
 * evaluates, so that an explanation cannot differ from the figure it explains. */
#ifndef RIDGE_LEARN_DERIVE_H
#define RIDGE_LEARN_DERIVE_H

#include "calc/learn/quantity.h"

/* "label  formula", below it "= numbers" where a model puts them in; or a text. */
struct derive_line {
    const char *label;
    const struct sym *formula, *numbers; /* NULL: none */
    const char *text;                    /* instead of, or behind, a formula */
};

struct derive_section {
    const char *title, *about; /* about NULL: none */
    struct derive_line *line;
    size_t n, cap;
};

struct derivation {
    const char *title, *about;
    struct derive_section *section;
    size_t n, cap;
};

/* What a derivation puts in. */
struct derive_request {
    const struct quantity_scope *symbols; /* formulas in symbols */
    const struct quantity_scope *numbers; /* the same in the same context with a model's numbers; NULL: none */
    enum quantity_phase phase;
    int64_t batch, context; /* the point of the last section; used with a model */
};

/* derive_topic -- of a topic of quantity_names, a plain name of quantity_named_all or one of derive_story_names: every
 * operator's shapes, FLOPs and bytes; sums grouped as weights, cache, activations; intensity and its limits; seconds;
 * with a model the numbers at a point, with a device the resource that binds. Errors: as quantity_topic. */
enum err_code derive_topic(const struct derive_request *q, const char *topic, struct derivation *out, struct err *e);

#endif
