/* exercise_marks -- a file of a class's answers, graded and written. */
#ifndef RIDGE_CLI_EXERCISE_MARKS_H
#define RIDGE_CLI_EXERCISE_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"
#include "calc/base/out.h"

struct exercise_marking {
    int64_t class_seed;
    bool seed_typed; /* then it wins over the file's */
    bool totals;     /* a row a student instead of a row an answer */
    const char *format;
};

/* exercise_marks -- path: a file, or "-". format: "tap" (version 13: a plan, a line an answer, what is wrong in a YAML
 * block), "json" ({"schema", "tool", "rows", "students"}), or one of table.h, where text is a summary and md has both
 * tables. Errors: ERR_NO an answer is not right (with an empty sentence, all is written), ERR_USAGE unknown format, or
 * totals as TAP; ERR_INPUT not strict JSON; as marks_grade. */
enum err_code exercise_marks(struct arena *a, const char *path, const struct exercise_marking *how, struct out *o,
                             struct err *e);

#endif
