#include "calc/learn/exercise.h"

#include <math.h>
#include <string.h>

#include "calc/base/hash.h"
#include "calc/base/text.h"
#include "calc/learn/bank.h"
#include "calc/sym/normal.h"

enum { NAMES_MAX = 256 };

static const struct exercise *(*const SETS[])(size_t *n) = {bank_intensity,     bank_memory, bank_time,
                                                            bank_architectures, bank_scale,  bank_serving};

const struct exercise *exercise_at(size_t i)
{
    for (size_t k = 0; k < sizeof SETS / sizeof SETS[0]; k++) {
        size_t n;
        const struct exercise *rows = SETS[k](&n);
        if (i < n) return &rows[i];
        i -= n;
    }
    return NULL;
}

size_t exercise_count(void)
{
    size_t all = 0, n;
    for (size_t k = 0; k < sizeof SETS / sizeof SETS[0]; k++) {
        (void)SETS[k](&n);
        all += n;
    }
    return all;
}

enum err_code exercise_find(const char *name, size_t *at, const struct exercise **out, struct err *e)
{
    const size_t n = exercise_count();
    int64_t number;
    size_t i = 0;
    if (units_parse_count(name, 1, (int64_t)n, &number, NULL) == ERR_OK)
        i = (size_t)number - 1;
    else
        while (i < n && strcmp(exercise_at(i)->name, name) != 0) i++;
    if (i < n) {
        if (at) *at = i;
        *out = exercise_at(i);
        return ERR_OK;
    }
    const char *names[NAMES_MAX];
    char near[200], clean[64];
    size_t k = 0;
    for (; k < n && k < NAMES_MAX; k++) names[k] = exercise_at(k)->name;
    text_suggest(near, sizeof near, name, names, sizeof names[0], k);
    return err_set(e, ERR_USAGE, "no exercise '%s'%s (1 to %zu: ridge exercise list)",
                   text_clean(clean, sizeof clean, name, strlen(name)), near, n);
}

/* Text and number, whatever the byte order of the machine. */
static uint64_t mix(const char *text, uint64_t number)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(number >> (8 * i));
    return hash_more(hash_more(hash_start(), text, strlen(text) + 1), bytes, sizeof bytes);
}

int64_t exercise_student_seed(int64_t class_seed, const char *student)
{
    return (int64_t)(mix(student, (uint64_t)class_seed) >> 11);
}

/* Whether b could be taken for a. */
static bool close_to(double a, double b, double tolerance_frac)
{
    return fabs(a - b) <= 2.0 * tolerance_frac * fmax(fabs(a), fabs(b));
}

/* Whether two slips, or a slip and the answer, cannot be told apart. */
static enum err_code is_same(struct sym_ctx *c, const struct exercise_question *q, const struct exercise_slip *a,
                             const struct exercise_slip *b, bool *same, struct err *e)
{
    switch (q->kind) {
    case EXERCISE_FORMULA: return sym_equal(c, a->formula, b->formula, same, e);
    case EXERCISE_NUMBER: *same = close_to(a->value, b->value, q->tolerance_frac); break;
    case EXERCISE_CHOICE: *same = a->value == b->value; break;
    }
    return ERR_OK;
}

/* Leave out slips that cannot be told from the answer; of those that are one answer, the hint says them all. */
static enum err_code prune(struct arena *a, struct sym_ctx *c, struct exercise_question *q, struct err *e)
{
    const double value = q->kind == EXERCISE_CHOICE ? (double)q->right : q->value;
    const struct exercise_slip right = {.formula = q->answer, .value = value};
    bool joined[EXERCISE_SLIPS_MAX] = {false};
    size_t kept = 0;
    for (size_t i = 0; i < q->slips_n; i++) {
        struct exercise_slip s = q->slips[i];
        bool same = q->kind == EXERCISE_NUMBER && !isfinite(s.value);
        size_t k = 0;
        if (q->kind == EXERCISE_FORMULA)
            TRY(sym_normal(c, s.formula, &s.formula, e)); /* sizes cancel that no one sees */
        if (!same) TRY(is_same(c, q, &s, &right, &same, e));
        if (same) continue;
        for (; k < kept && !same; k += !same) TRY(is_same(c, q, &s, &q->slips[k], &same, e));
        if (!same) {
            q->slips[kept++] = s;
            continue;
        }
        if (strstr(q->slips[k].hint, s.hint)) continue;
        q->slips[k].hint = arena_printf(a, "%s%s Or: %s", joined[k] ? "" : "Either: ", q->slips[k].hint, s.hint);
        if (!q->slips[k].hint) return err_nomem(e);
        joined[k] = true;
    }
    q->slips_n = kept;
    return ERR_OK;
}

/* How a number of each kind may look, with the digits that its tolerance asks for; the second where the first is near
 * what is right. */
static const struct {
    const char *text;
    double value;
} SAMPLES[][2] = {
    [UNITS_NONE] = {{"143.9", 143.9}, {"61.37", 61.37}},
    [UNITS_COUNT] = {{"31.74", 31.74}, {"4653", 4653}},
    [UNITS_BYTES] = {{"26.87 GB", 26.87e9}, {"4.713 GB", 4.713e9}},                   /* not a unit */
    [UNITS_FLOPS] = {{"26.61 TFLOP", 26.61e12}, {"481.3 TFLOP", 481.3e12}},           /* not a unit */
    [UNITS_SECONDS] = {{"7.913 ms", 7.913e-3}, {"31.64 ms", 31.64e-3}},               /* not a unit */
    [UNITS_BYTES_PER_S] = {{"2.147 TB/s", 2.147e12}, {"861.3 GB/s", 861.3e9}},        /* not a unit */
    [UNITS_FLOPS_PER_S] = {{"417.9 TFLOP/s", 417.9e12}, {"83.16 TFLOP/s", 83.16e12}}, /* not a unit */
    [UNITS_TOK_PER_S] = {{"2689 tok/s", 2689}, {"517.3 tok/s", 517.3}},
    [UNITS_COUNT_PER_S] = {{"31.74", 31.74}, {"4653", 4653}},
    [UNITS_FRAC] = {{"0.4316 or 43.16%", 0.4316}, {"0.2718 or 27.18%", 0.2718}},
    [UNITS_RATIO] = {{"3.517", 3.517}, {"12.83", 12.83}},
    [UNITS_FLOPS_PER_BYTE] = {{"12.53", 12.53}, {"187.3", 187.3}},
    [UNITS_BYTES_PER_TOKEN] = {{"786.3 kB", 786.3e3}, {"97.46 kB", 97.46e3}},    /* not a unit */
    [UNITS_BYTES_PER_SEQUENCE] = {{"26.87 GB", 26.87e9}, {"713.4 MB", 713.4e6}}, /* not a unit */
    [UNITS_USD] = {{"$41.73", 41.73}, {"$8.316", 8.316}},
    [UNITS_USD_PER_MTOK] = {{"0.5247 $/Mtok", 0.5247}, {"2.318 $/Mtok", 2.318}},
    [UNITS_WATTS] = {{"683.4 W", 683.4}, {"91.37 W", 91.37}},
};

/* The maker's form, a sample that is not the answer, and the tolerance. */
static enum err_code finish_form(struct arena *a, struct exercise_question *q, struct err *e)
{
    if (q->kind != EXERCISE_NUMBER) return ERR_OK;
    const double large = 1e6; /* not a unit */
    const bool many = q->unit == UNITS_COUNT && fabs(q->value) >= large;
    double unit = many ? 1e9 : 1; /* not a unit */
    enum units_kind kind;
    if (q->bare) (void)units_read_word(q->bare, strlen(q->bare), q->unit, q->things, &kind, &unit);
    const enum units_kind shown = q->bare || many ? UNITS_NONE : q->unit;
    const size_t which = close_to(SAMPLES[shown][0].value * unit, q->value, 0.05);
    const char *text = SAMPLES[shown][which].text, *behind = q->bare ? q->bare : many ? "billion" : "";
    if (q->tolerance_frac > 0)
        q->form = arena_printf(a, "%s, such as %s%s%s, within %g%%", q->form, text, *behind ? " " : "", behind,
                               100 * q->tolerance_frac);
    else
        q->form = arena_printf(a, "%s, exact", q->form);
    return q->form ? ERR_OK : err_nomem(e);
}

enum err_code exercise_ask(struct arena *a, struct sym_ctx *c, const struct exercise *x, uint64_t seed,
                           struct exercise_question *out, struct err *e)
{
    const struct cost_symbols y = cost_symbols_make(c);
    /* as `ridge explain --course` */
    struct quantity_scope textbook;
    TRY(quantity_open(a, c, true, &textbook, e));
    struct exercise_maker m = {.arena = a, .c = c, .y = y, .textbook = textbook, .rng = mix(x->name, seed)};
    struct exercise_question q = {.text = NULL};
    TRY(x->make(&m, &q, e));
    TRY(sym_check(c, e));
    TRY(prune(a, c, &q, e));
    TRY(finish_form(a, &q, e));
    *out = q;
    return ERR_OK;
}
