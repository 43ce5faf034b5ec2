/* marks -- the answers of a class, graded in bulk.
 *
 * Form of a file, JSON:
 *   {"seed": 7, "exercises": ["mlp-flops", 6],
 *    "answers": [{"student": "ada", "exercise": "mlp-flops", "answer": "6*B*T*D*F", "seed": 3}, ...]}
 *   seed       of the whole file or of one answer, which wins: a whole number from 0 as `ridge exercise show --seed`
 *              takes it, or "by-student", every student's own (exercise_student_seed, the class's seed being the one of
 *              the command line); left out: the class's seed
 *   exercises  what was asked, each once: the sum of every student is out of these, and what a student has not answered
 *              is a row that is not right; left out: out of what the student handed in
 *   exercise   name, or number as text or number
 *   answer     text as typed, or a number
 * The answers may also be an object, student -> exercise -> answer, and without the other members that object may be
 * the file:
 *   {"seed": "by-student", "answers": {"ada": {"mlp-flops": "6*B*T*D*F"}}}
 *   {"ada": {"mlp-flops": "6*B*T*D*F"}}
 * No other member is known. */
#ifndef RIDGE_LEARN_MARKS_H
#define RIDGE_LEARN_MARKS_H

#include "calc/base/json.h"
#include "calc/learn/exercise.h"

/* One answer. Texts live in the arena; what the entry does not say is NULL. */
struct mark {
    const char *student, *exercise, *answer;
    int64_t seed; /* -1 unknown */
    bool right;
    const char *hint; /* why not right, or what is wrong with the entry; NULL right */
};

struct marks_student {
    const char *student;
    int64_t right, of;
};

struct marks {
    struct mark *rows; /* in the order of the file, then what was asked and not answered */
    size_t rows_n;
    struct marks_student *students; /* in the order of the file, those too who answered nothing; entries without a name
                                       are left out */
    size_t students_n;
};

/* marks_grade -- read and grade. An entry that is not of the form, names no exercise or one that was not asked, or is
 * the student's second to one exercise, is a row that is not right; the others are graded. class_seed >= 0, of the
 * command line; class_wins: over a number for the whole file. Errors: ERR_INPUT the file is not of the form, has a
 * member that is not known, or no answers; ERR_NOMEM; as exercise_ask and exercise_grade. Cost: a millisecond or two an
 * answer. */
enum err_code marks_grade(struct arena *a, const struct json *file, int64_t class_seed, bool class_wins,
                          struct marks *out, struct err *e);

#endif
