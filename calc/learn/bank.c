#include "calc/learn/bank.h"

#include <stdarg.h>
#include <stdio.h>

#include "calc/sym/normal.h"

static uint64_t next(struct exercise_maker *m)
{
    m->rng += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = m->rng;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9); /* not a unit */
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb); /* not a unit */
    return z ^ (z >> 31);
}

int64_t bank_draw(struct exercise_maker *m, int64_t lo, int64_t hi)
{
    const uint64_t n = (uint64_t)hi - (uint64_t)lo + 1;
    if (n == 0) return (int64_t)next(m);
    const uint64_t fair = UINT64_MAX - UINT64_MAX % n; /* below it every remainder is equally frequent */
    uint64_t x = next(m);
    while (x >= fair) x = next(m);
    return (int64_t)((uint64_t)lo + x % n);
}

int64_t bank_pick(struct exercise_maker *m, size_t n, const int64_t *of) { return of[bank_draw(m, 0, (int64_t)n - 1)]; }

enum err_code bank_device(struct exercise_maker *m, size_t n, const char *const *keys, struct hw *out, struct err *e)
{
    return hw_load(m->arena, keys[bank_draw(m, 0, (int64_t)n - 1)], out, e);
}

enum err_code bank_model(struct exercise_maker *m, size_t n, const char *const *names, struct model *out, struct err *e)
{
    return model_load(m->arena, names[bank_draw(m, 0, (int64_t)n - 1)], NULL, 0, out, e);
}

const char *bank_printf(struct exercise_maker *m, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = n < 0 ? NULL : arena_alloc(m->arena, (size_t)n + 1);
    if (text) (void)vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    return text ? text : "";
}

const char *bank_show(struct exercise_maker *m, const struct sym *e)
{
    const size_t n = sym_print(e, NULL, 0);
    char *text = arena_alloc(m->arena, n + 1);
    if (text) (void)sym_print(e, text, n + 1);
    return text ? text : "";
}

const char *bank_show_normal(struct exercise_maker *m, const struct sym *e)
{
    const struct sym *normal;
    return sym_normal(m->c, e, &normal, NULL) == ERR_OK ? bank_show(m, normal) : "";
}

void bank_step(struct exercise_question *q, const char *text)
{
    if (q->steps_n < EXERCISE_STEPS_MAX) q->steps[q->steps_n++] = text;
}

void bank_slip(struct exercise_question *q, double value, const char *hint)
{
    if (q->slips_n < EXERCISE_SLIPS_MAX) q->slips[q->slips_n++] = (struct exercise_slip){.value = value, .hint = hint};
}

void bank_slip_formula(struct exercise_question *q, const struct sym *formula, const char *hint)
{
    if (q->slips_n < EXERCISE_SLIPS_MAX)
        q->slips[q->slips_n++] = (struct exercise_slip){.formula = formula, .hint = hint};
}
