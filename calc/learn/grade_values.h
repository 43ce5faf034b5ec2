/* grade_values -- an answer that is a formula against what is right, by the values of both in doubles: what its hint
 * says where algebra has said that it is not equal, at a cost that does not grow with what an expansion would take. */
#ifndef RIDGE_LEARN_GRADE_VALUES_H
#define RIDGE_LEARN_GRADE_VALUES_H

#include "calc/learn/grade.h"

enum { GRADE_SYMBOLS_MAX = 16 };

/* Values of the answer, of what is right and of the slips: some points of small whole numbers, some of large ones, and
 * one with its neighbours, where one symbol is twice as large. */
enum { GRADE_SMALL_N = 16, GRADE_LARGE_N = 16, GRADE_POINTS_N = GRADE_SMALL_N + GRADE_LARGE_N + 1 + GRADE_SYMBOLS_MAX };

struct grade_values {
    const struct grade *g;
    double at[GRADE_SYMBOLS_MAX][GRADE_POINTS_N];
    double given[GRADE_POINTS_N], right[GRADE_POINTS_N], slip[EXERCISE_SLIPS_MAX][GRADE_POINTS_N];
    bool varies[GRADE_SYMBOLS_MAX];          /* whether the answer or what is right depends on the symbol */
    size_t given_depends_n, right_depends_n; /* on how many symbols */
};

/* grade_values_make -- Errors: ERR_NOMEM, ERR_RANGE a symbol that the question has not. */
enum err_code grade_values_make(const struct grade *g, const struct sym *given, struct grade_values *out,
                                struct err *e);

/* grade_values_agree -- whether two columns have the same values, to rounding, wherever both have one, and do
 * somewhere.
 */
bool grade_values_agree(const double *a, const double *b);

/* grade_values_say -- the hint of a wrong answer: a slip, the factor that it is off by, else a point where it differs.
 * Errors: ERR_NOMEM. */
enum err_code grade_values_say(const struct grade_values *v, struct exercise_verdict *out, struct err *e);

#endif
