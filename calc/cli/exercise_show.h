/* exercise_show -- questions as text, as a page to hand out (Markdown), or as rows. */
#ifndef RIDGE_CLI_EXERCISE_SHOW_H
#define RIDGE_CLI_EXERCISE_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"
#include "calc/base/out.h"

struct exercise_shown {
    struct arena *arena;
    int64_t class_seed, seed; /* seed: the student's own when one is named */
    const char *student;      /* NULL none */
    bool seed_typed, solution;
    const char *format; /* one of table.h */
};

/* exercise_show -- the exercises of n names or numbers, in their order; "all" is all of them. text and md are pages,
 * the others a row an exercise. Errors: ERR_USAGE an unknown name or format; as exercise_ask and out_check. */
enum err_code exercise_show(const struct exercise_shown *k, size_t n, const char *const *names, struct out *o,
                            struct err *e);

#endif
