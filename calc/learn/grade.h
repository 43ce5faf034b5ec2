/* grade -- the parts of exercise_grade: one file for each kind of answer. */
#ifndef RIDGE_LEARN_GRADE_H
#define RIDGE_LEARN_GRADE_H

#include "calc/learn/exercise.h"

/* One answer being graded: text is trimmed, not empty, UTF-8 without controls. */
struct grade {
    struct arena *arena;
    struct sym_ctx *c;
    const struct exercise_question *q;
    const char *text;
};

/* grade_formula, grade_number -- as exercise_grade. */
enum err_code grade_formula(const struct grade *g, struct exercise_verdict *out, struct err *e);
enum err_code grade_number(const struct grade *g, struct exercise_verdict *out, struct err *e);

/* grade_wrong -- a verdict with a hint, printed. Errors: ERR_NOMEM. */
enum err_code grade_wrong(const struct grade *g, struct exercise_verdict *out, struct err *e, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* grade_right_side -- "I = S*T/(S+T)" without what is in front of a single '='. *n: how many '=' there are. */
const char *grade_right_side(const char *text, size_t *n);

/* grade_read_number -- text as a number in the base unit of the kind asked for. Where it is none, *why is one sentence,
 * else NULL. Errors: ERR_NOMEM. */
enum err_code grade_read_number(const struct grade *g, double *value, const char **why, struct err *e);

#endif
