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

/* grade_plain -- text without the frame of a formula ($...$, \(...\)): a side of '=' or what a unit follows may have
 * one of its own. NULL when memory is exhausted. */
const char *grade_plain(struct arena *a, const char *text);

/* grade_sides -- split "I = 2*x = x + x" at '=' outside brackets, and at the sign of almost equal; what is
 * in front of an arrow (I -> x) only says what tends there and is none; the sides are
 * trimmed and live in the arena, GRADE_SIDES_MAX at most. Returns how many there are, 0 when memory is exhausted. */
enum { GRADE_SIDES_MAX = 8 };
size_t grade_sides(const struct grade *g, const char *side[GRADE_SIDES_MAX]);

/* grade_is_label -- whether a side is a name and no expression: "I", "KV cache", "t_step", "C(S)". */
bool grade_is_label(const char *side);

/* grade_plain_units -- spacing, products and words set upright of LaTeX as plain text, in place. */
void grade_plain_units(char *text);

/* A number as typed: value in the base unit of the kind asked for, raw as in front of its unit, and the factor of that
 * (1: there was no unit). */
struct grade_number {
    double value, raw, factor;
};

/* grade_read_number -- text as such. Where it is none, *why is one sentence, else NULL. Errors: ERR_NOMEM. */
enum err_code grade_read_number(const struct grade *g, const char *text, struct grade_number *out, const char **why,
                                struct err *e);

#endif
