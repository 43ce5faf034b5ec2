/* bank.h -- checking the exercises of a bank: every answer and every slip again, from the numbers that the question's
 * text states and by arithmetic that knows nothing of the cost model. So the text holds all that is needed. */
#ifndef RIDGE_TESTS_BANK_H
#define RIDGE_TESTS_BANK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calc/learn/bank.h"
#include "calc/sym/normal.h"
#include "tests/draws.h"

enum { SEEDS = 300, FRESH = 20 };

/* -- reading a question -- */

static inline bool in_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* The number at s, "1,234.5", and where it ends. */
static inline double read_number(const char *s, const char **end)
{
    char digits[64];
    size_t n = 0;
    for (; n + 1 < sizeof digits; s++) {
        const bool group = *s == ',' && s[1] >= '0' && s[1] <= '9', point = *s == '.' && s[1] >= '0' && s[1] <= '9';
        if (!(*s >= '0' && *s <= '9') && !group && !point) break;
        if (!group) digits[n++] = *s;
    }
    digits[n] = '\0';
    *end = s;
    return n ? strtod(digits, NULL) : (double)NAN;
}

/* A number behind a word: "L = 40", "bandwidth of 3.35 TB/s" times its prefix. */
static inline double behind(const char *text, const char *word)
{
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++) {
        if (at > text && in_word(at[-1])) continue;
        const char *end;
        double v = read_number(at + strlen(word), &end);
        if (isnan(v)) continue;
        const char *const UNITS[] = {" GB", " TB", " PB", " TFLOP", " PFLOP", " GFLOP"};
        const double FACTORS[] = {1e9, 1e12, 1e15, 1e12, 1e15, 1e9};
        for (size_t i = 0; i < 6; i++)
            if (strncmp(end, UNITS[i], strlen(UNITS[i])) == 0) return v * FACTORS[i];
        return v;
    }
    fail_msg("no number behind '%s' in: %s", word, text);
    return (double)NAN;
}

/* A number in front of a word: "13,015,449,600 parameters". */
static inline double before(const char *text, const char *word)
{
    const char *at = strstr(text, word), *end;
    if (!at) fail_msg("no '%s' in: %s", word, text);
    while (at > text && ((at[-1] >= '0' && at[-1] <= '9') || at[-1] == ',' || at[-1] == '.')) at--;
    const double v = read_number(at, &end);
    if (isnan(v)) fail_msg("no number in front of '%s' in: %s", word, text);
    return v;
}

static inline bool says(const char *text, const char *word) { return strstr(text, word) != NULL; }

/* -- checking one -- */

struct checked {
    const struct exercise *x;
    const struct exercise_question *q;
    struct sym_ctx *c;
    bool seen[EXERCISE_SLIPS_MAX];
};

static inline bool near_to(double a, double b) { return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)); }

static inline void answer(struct checked *k, double want)
{
    if (k->q->tolerance_frac == 0 ? k->q->value != want : !near_to(k->q->value, want))
        fail_msg("%s: %.17g, want %.17g: %s", k->x->name, k->q->value, want, k->q->text);
}

/* Whether the words are in a further hint of one that joins several: "Either: ... Or: ...". */
static inline bool is_joined(const char *hint, const char *words)
{
    const char *further = strstr(hint, " Or: ");
    return further && strstr(hint, words) > further;
}

/* The slip whose hint holds these words, where this draw has it. */
static inline void slip(struct checked *k, const char *words, double want)
{
    for (size_t i = 0; i < k->q->slips_n; i++) {
        const bool joined = is_joined(k->q->slips[i].hint, words);
        if ((k->seen[i] && !joined) || !says(k->q->slips[i].hint, words)) continue;
        if (joined) { /* within the tolerance of the slip that it is joined to */
            if (fabs(want / k->q->slips[i].value - 1) > 2.1 * k->q->tolerance_frac)
                fail_msg("%s, %s: %.17g is joined to %.17g", k->x->name, words, want, k->q->slips[i].value);
            return;
        }
        k->seen[i] = true;
        if (!near_to(k->q->slips[i].value, want))
            fail_msg("%s, %s: %.17g, want %.17g: %s", k->x->name, words, k->q->slips[i].value, want, k->q->text);
        return;
    }
}

/* An expression at a point where no two sizes are alike. */
static const struct {
    const char *name;
    double value;
} POINT[] = {{"V", 101}, {"D", 53}, {"F", 89}, {"L", 7},    {"N", 29},   {"K", 11}, {"H", 13},
             {"B", 17},  {"S", 83}, {"w", 31}, {"bw", 211}, {"b_kv", 3}, {"C", 61}, {"R", 19}};
enum { POINT_N = sizeof POINT / sizeof POINT[0] };

static inline double at(const char *name)
{
    for (size_t i = 0; i < POINT_N; i++)
        if (strcmp(POINT[i].name, name) == 0) return POINT[i].value;
    fail_msg("no symbol %s", name);
    return (double)NAN;
}

static inline double at_point(const struct checked *k, const struct sym *e)
{
    struct sym_binding env[POINT_N];
    double v = (double)NAN;
    for (size_t i = 0; i < POINT_N; i++)
        env[i] = (struct sym_binding){sym_var(k->c, POINT[i].name), sym_num(k->c, POINT[i].value)};
    assert_true(sym_constant(sym_bind(k->c, e, env, POINT_N), &v));
    return v;
}

static inline void formula(struct checked *k, double want)
{
    if (!near_to(at_point(k, k->q->answer), want)) fail_msg("%s: %s", k->x->name, k->q->text);
}

static inline void slip_formula(struct checked *k, const char *words, double want)
{
    for (size_t i = 0; i < k->q->slips_n; i++) {
        if (k->seen[i] || !says(k->q->slips[i].hint, words)) continue;
        k->seen[i] = true;
        if (!near_to(at_point(k, k->q->slips[i].formula), want)) fail_msg("%s, %s: %s", k->x->name, words, k->q->text);
        return;
    }
}

/* -- all of them -- */

struct check {
    const char *name;
    void (*check)(struct checked *k);
};

static inline const struct exercise *found(const char *name)
{
    const struct exercise *x = NULL;
    struct err e = {0};
    if (exercise_find(name, NULL, &x, &e) != ERR_OK) fail_msg("%s", e.text);
    return x;
}

static inline bool apart(double a, double b, double tolerance_frac)
{
    return fabs(a - b) > tolerance_frac * fmax(fabs(a), fabs(b));
}

/* No slip is taken for right, nor for another slip; a number has several; texts are there and keep within their room.
 */
static inline void check_shape(const struct checked *k)
{
    const struct exercise_question *q = k->q;
    assert_true(q->slips_n < EXERCISE_SLIPS_MAX && q->steps_n >= 2 && q->steps_n < EXERCISE_STEPS_MAX);
    assert_true(q->slips_n >= (q->kind == EXERCISE_CHOICE ? 1 : 2));
    assert_true(q->text && q->form && strlen(q->text) > 80 && !says(q->text, "nan") && !says(q->text, "inf"));
    for (size_t i = 0; i < q->steps_n; i++) assert_true(q->steps[i][0] && !says(q->steps[i], "nan"));
    for (size_t i = 0; i < q->slips_n; i++) {
        assert_true(strlen(q->slips[i].hint) > 15);
        if (q->kind != EXERCISE_NUMBER) continue;
        assert_true(apart(q->slips[i].value, q->value, q->tolerance_frac));
        for (size_t j = 0; j < i; j++) assert_true(apart(q->slips[i].value, q->slips[j].value, q->tolerance_frac));
    }
    if (q->kind == EXERCISE_NUMBER) assert_true(isfinite(q->value) && q->value > 0 && q->tolerance_frac <= .02);
}

static inline void follow_from_the_text(const struct check *checks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (uint64_t seed = 0; seed < draws(SEEDS); seed++) {
            struct arena *a = arena_open();
            struct sym_ctx *c = sym_open(a);
            struct exercise_question q;
            struct err e = {0};
            if (exercise_ask(a, c, found(checks[i].name), seed, &q, &e) != ERR_OK)
                fail_msg("%s: %s", checks[i].name, e.text);
            struct checked k = {.x = found(checks[i].name), .q = &q, .c = c};
            check_shape(&k);
            checks[i].check(&k);
            for (size_t j = 0; j < q.slips_n; j++)
                if (!k.seen[j]) fail_msg("%s: not checked: %s", checks[i].name, q.slips[j].hint);
            arena_close(a);
        }
}

/* Formulas: by algebra, no slip equals the answer or another slip. */
static inline void formula_slips_differ(const struct check *checks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (uint64_t seed = 0; seed < 24; seed++) {
            struct arena *a = arena_open();
            struct sym_ctx *c = sym_open(a);
            struct exercise_question q;
            struct err e = {0};
            assert_int_equal(exercise_ask(a, c, found(checks[i].name), seed, &q, &e), ERR_OK);
            for (size_t j = 0; q.kind == EXERCISE_FORMULA && j < q.slips_n; j++)
                for (size_t l = 0; l <= j; l++) {
                    const struct sym *other = l < j ? q.slips[l].formula : q.answer;
                    bool equal = true;
                    const enum err_code code = sym_equal(c, q.slips[j].formula, other, &equal, &e);
                    if (code == ERR_IO) skip();
                    assert_int_equal(code, ERR_OK);
                    if (equal) fail_msg("%s: %s", checks[i].name, q.slips[j].hint);
                }
            arena_close(a);
        }
}

/* Seeds differ: of 300 draws 20 or more have numbers of their own (formulas have a few variants); no more are drawn
 * than show it. */
static inline void numbers_are_fresh(const struct check *checks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double seen[SEEDS];
        size_t met = 0;
        bool number = false;
        for (uint64_t seed = 0; seed < SEEDS && met < FRESH; seed++) {
            struct arena *a = arena_open();
            struct sym_ctx *c = sym_open(a);
            struct exercise_question q;
            struct err e = {0};
            assert_int_equal(exercise_ask(a, c, found(checks[i].name), seed, &q, &e), ERR_OK);
            number = q.kind == EXERCISE_NUMBER;
            size_t j = 0;
            while (number && j < met && seen[j] != q.value) j++;
            if (number && j == met) seen[met++] = q.value;
            arena_close(a);
            if (!number) break;
        }
        if (number && met < FRESH) fail_msg("%s: %zu different answers", checks[i].name, met);
    }
}

/* What the program itself prints for an answer is right. */
static inline void grading_takes_what_people_type(const struct check *checks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct arena *a = arena_open();
        struct sym_ctx *c = sym_open(a);
        struct exercise_question q;
        struct exercise_verdict v;
        struct err e = {0};
        char text[512];
        assert_int_equal(exercise_ask(a, c, found(checks[i].name), 7, &q, &e), ERR_OK);
        if (q.kind == EXERCISE_FORMULA)
            (void)sym_print(q.answer, text, sizeof text);
        else if (q.kind == EXERCISE_CHOICE)
            (void)snprintf(text, sizeof text, "%s", q.choices[q.right]);
        else if (q.tolerance_frac == 0)
            (void)snprintf(text, sizeof text, "%.0f", q.value);
        else {
            char shown[UNITS_TEXT_MAX];
            (void)snprintf(text, sizeof text, "%s", units_format(shown, q.unit, q.value));
        }
        const enum err_code code = exercise_grade(a, c, &q, text, &v, &e);
        if (code != ERR_IO || q.kind != EXERCISE_FORMULA) assert_int_equal(code, ERR_OK);
        if (code == ERR_OK && !v.right) fail_msg("%s: '%s': %s", checks[i].name, text, v.hint ? v.hint : "");
        arena_close(a);
    }
}

#endif
