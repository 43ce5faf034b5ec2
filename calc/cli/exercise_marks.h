/* exercise_marks -- a file of a class's answers, graded and written. */
#ifndef RIDGE_CLI_EXERCISE_MARKS_H
#define RIDGE_CLI_EXERCISE_MARKS_H

#include <stdint.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"
#include "calc/base/out.h"

/* exercise_marks -- path: a file, or "-". format: "tap" (version 13: a plan, a line an answer, what is wrong in a YAML
 * block), "json" ({"schema", "tool", "rows", "students"}), or one of table.h, where text is a summary. Errors: ERR_NO
 * an answer is not right (with an empty sentence, all is written), ERR_USAGE unknown format, as marks_grade. */
enum err_code exercise_marks(struct arena *a, const char *path, int64_t class_seed, const char *format, struct out *o,
                             struct err *e);

#endif
