/* exercises -- what tests of exercises share: a place for them, and grades that must be right or hint at something. */
#ifndef RIDGE_TESTS_EXERCISES_H
#define RIDGE_TESTS_EXERCISES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "calc/base/text.h"
#include "calc/learn/bank.h"
#include "calc/learn/exercise.h"
#include "calc/learn/marks.h"
#include "calc/sym/normal.h"
#include "calc/sym/print.h"

enum { SEEDS = 200, TEXT_MAX = 4096 };

struct fixture {
    struct arena *a;
    struct sym_ctx *c;
};

static inline struct fixture begin(void)
{
    struct fixture f = {.a = arena_open()};
    assert_non_null(f.a);
    f.c = sym_open(f.a);
    assert_non_null(f.c);
    return f;
}

static inline void end(struct fixture *f)
{
    assert_int_equal(sym_check(f->c, NULL), ERR_OK);
    arena_close(f->a);
}

static inline struct exercise_verdict grade(struct fixture *f, const struct exercise_question *q, const char *answer)
{
    struct exercise_verdict v;
    struct err e = {0};
    if (exercise_grade(f->a, f->c, q, answer, &v, &e) != ERR_OK) fail_msg("'%.80s': %s", answer, e.text);
    assert_non_null(v.given);
    assert_true(v.right == !v.hint);
    if (v.hint) assert_true(strlen(v.hint) > 5);
    return v;
}

static inline void assert_right(struct fixture *f, const char *name, const struct exercise_question *q,
                                const char *answer)
{
    const struct exercise_verdict v = grade(f, q, answer);
    if (!v.right) fail_msg("%s: %s\n'%s' is refused: %s", name, q->text, answer, v.hint);
}

static inline void assert_hint(struct fixture *f, const struct exercise_question *q, const char *answer,
                               const char *hint)
{
    const struct exercise_verdict v = grade(f, q, answer);
    if (v.right) fail_msg("'%.80s' is taken", answer);
    if (!v.hint || !strstr(v.hint, hint))
        fail_msg("'%.80s': wanted '%s', found '%s'", answer, hint, v.hint ? v.hint : "no hint");
}

static inline struct exercise_question number(enum units_kind unit, double value, double tolerance_frac)
{
    return (struct exercise_question){.kind = EXERCISE_NUMBER,
                                      .text = "q",
                                      .form = "f",
                                      .unit = unit,
                                      .value = value,
                                      .tolerance_frac = tolerance_frac};
}

static inline struct exercise_question formula(struct fixture *f, const struct cost_symbols *y,
                                               const struct sym *answer)
{
    struct exercise_question q = {
        .kind = EXERCISE_FORMULA, .text = "q", .form = "an expression in B, S, T", .answer = answer};
    q.unit = UNITS_FLOPS_PER_BYTE;
    q.symbols[q.symbols_n++] = y->B;
    q.symbols[q.symbols_n++] = y->S;
    q.symbols[q.symbols_n++] = y->T;
    (void)f;
    return q;
}

static inline struct exercise_question ask(struct fixture *f, const char *name, uint64_t seed)
{
    const struct exercise *x = NULL;
    struct exercise_question q = {.text = NULL};
    struct err e = {0};
    if (exercise_find(name, NULL, &x, &e) != ERR_OK || exercise_ask(f->a, f->c, x, seed, &q, &e) != ERR_OK)
        fail_msg("%s: %s", name, e.text);
    return q;
}

#endif
