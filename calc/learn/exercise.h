/* exercise -- questions with fresh numbers from a seed; answers come from the cost model, and are graded by algebra, or
 * by a tolerance with units, with a hint that names the likely slip.
 *
 * The same name and seed give the same question on every machine. An exercise is one row of a bank (bank.h); its maker
 * draws numbers, states the question and derives the answer from the same operators that `ridge estimate` evaluates.
 */
#ifndef RIDGE_LEARN_EXERCISE_H
#define RIDGE_LEARN_EXERCISE_H

#include "calc/base/units.h"
#include "calc/learn/quantity.h"

/* What an answer is. */
enum exercise_kind {
    EXERCISE_FORMULA, /* an expression in the question's symbols, equal by algebra */
    EXERCISE_NUMBER,  /* a number, with a unit where its kind has one, within a tolerance */
    EXERCISE_CHOICE,  /* one of a few words: "memory" or "compute", "yes" or "no" */
};

/* A wrong answer that people give, and what they forgot. */
struct exercise_slip {
    const struct sym *formula; /* EXERCISE_FORMULA */
    double value;              /* EXERCISE_NUMBER: base units; EXERCISE_CHOICE: which of the choices */
    const char *hint;          /* one sentence: "This counts keys only: the cache holds K and V, twice as much." */
};

enum { EXERCISE_SLIPS_MAX = 12, EXERCISE_CHOICES_MAX = 6, EXERCISE_STEPS_MAX = 10 };

/* A question as asked. Texts live in the maker's arena. */
struct exercise_question {
    enum exercise_kind kind;
    const char *text;              /* the question; plain text, wrapped when shown */
    const char *form;              /* how to answer: "an expression in B, T, D, F", "a time, such as 7.9 ms" */
    const struct sym *answer;      /* EXERCISE_FORMULA; unit says of what kind its values are */
    const struct sym *symbols[16]; /* that an answer may use */
    size_t symbols_n;
    double value;                              /* EXERCISE_NUMBER: base units */
    enum units_kind unit;                      /* of value */
    const char *things;                        /* that a count counts, as of units_read_word: "sequence,seq" */
    const char *bare;                          /* the unit of a number without one: "days"; NULL: units_kind_bare */
    double tolerance_frac;                     /* relative; 0: exact (whole numbers) */
    const char *choices[EXERCISE_CHOICES_MAX]; /* EXERCISE_CHOICE; the right one is choices[right] */
    const char *also[EXERCISE_CHOICES_MAX];    /* other words for each, with commas; NULL none */
    size_t choices_n, right;
    struct exercise_slip slips[EXERCISE_SLIPS_MAX];
    size_t slips_n;
    const char *steps[EXERCISE_STEPS_MAX]; /* the solution, step by step, formulas first, then the numbers */
    size_t steps_n;
};

struct exercise_maker; /* the draw, and helpers for makers: bank.h */

struct exercise {
    const char *name;  /* "mlp-intensity" */
    const char *set;   /* "1 intensity"; sets follow the course */
    const char *title; /* one line for the list */
    const char *see;   /* what to read: "ridge explain mlp --course"; NULL none */
    enum err_code (*make)(struct exercise_maker *m, struct exercise_question *q, struct err *e);
};

/* exercise_count, exercise_at -- all exercises, in the order of the course: number i + 1 is exercise_at(i); NULL past
 * the end. exercise_find -- by name or number from 1; at may be NULL. Errors: ERR_USAGE with the nearest names. */
size_t exercise_count(void);
const struct exercise *exercise_at(size_t i);
enum err_code exercise_find(const char *name, size_t *at, const struct exercise **out, struct err *e);

/* exercise_student_seed -- a student's own seed in a class that has one: from the bytes of the name, below 2^53 so that
 * JSON keeps it. */
int64_t exercise_student_seed(int64_t class_seed, const char *student);

/* exercise_ask -- the question of a seed, in an arena and a context of expressions. A slip that this draw makes equal
 * to the answer, within the tolerance, is left out; one that it makes equal to a slip before it is said in its hint,
 * "Either: ... Or: ...". The form of a number gets a sample and the tolerance. Errors: ERR_NOMEM, and what the cost
 * model reports. Cost: a millisecond, most of it reading a device or a model. */
enum err_code exercise_ask(struct arena *a, struct sym_ctx *c, const struct exercise *x, uint64_t seed,
                           struct exercise_question *out, struct err *e);

struct exercise_verdict {
    bool right;
    const char
        *hint; /* on a wrong answer: the slip it is, or what is known (the wrong unit, a counterexample); NULL none */
    const char *given; /* the answer as read, in base units or canonical form */
};

enum { EXERCISE_ANSWER_MAX_BYTES = 4096 };

/* exercise_grade -- an answer as typed.
 *   a formula  in the question's symbols, as sym_parse reads it, also in $...$ and with the unit of its values behind.
 *              Right when algebra proves it. On a wrong one: a slip of the question, else the symbols it is off by,
 *              else a counterexample; where values agree and there is no proof, that is said.
 *   a number   "7.9 ms", "0.0079 s", "12.5 GiB", "13,015,449,600", "13.02B" and "13 billion" of a count, "43%" of a
 *              part, "989e12/3.35e12"; the unit may have any prefix, decimal or binary, and must be there, except of
 *              counts, parts, ratios and flops per byte. Behind a count may stand what was asked for, nothing else.
 *              Right when within the tolerance. On a wrong one: a slip, the wrong or missing unit, else GiB for GB, a
 *              power of 1000, bits for bytes, rounded too early, a small constant factor, else the direction.
 *   a choice   one of the words, or another for it, alone or as "memory-bound" and "bound by memory".
 * "I = S*T/(S+T)": in front of '=' stands a name that is none of the symbols, or what is equal to the right side; the
 * last side counts. What cannot be read, is empty, longer than EXERCISE_ANSWER_MAX_BYTES, not UTF-8 or has control
 * characters is wrong and its hint says why; that is no error. Errors: ERR_NOMEM, ERR_IO no FLINT. Cost: well under a
 * second whatever is typed: a point disproves, else one proof, which the algebra bounds; doubles make the hint. */
enum err_code exercise_grade(struct arena *a, struct sym_ctx *c, const struct exercise_question *q, const char *answer,
                             struct exercise_verdict *out, struct err *e);

#endif
