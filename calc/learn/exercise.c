#include "calc/learn/exercise.h"

#include <math.h>
#include <string.h>

#include "calc/base/hash.h"
#include "calc/base/text.h"
#include "calc/learn/bank.h"
#include "calc/sym/normal.h"

enum { NAMES_MAX = 256 };

static const struct exercise *(*const SETS[])(size_t *n) = {bank_intensity, bank_memory, bank_time};

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

/* Whether a slip's formula is the answer's, or one of those kept before it. */
static enum err_code is_known(struct sym_ctx *c, const struct exercise_question *q, const struct sym *formula,
                              size_t kept, bool *known, struct err *e)
{
    TRY(sym_equal(c, formula, q->answer, known, e));
    for (size_t i = 0; i < kept && !*known; i++) TRY(sym_equal(c, formula, q->slips[i].formula, known, e));
    return ERR_OK;
}

static bool is_near(const struct exercise_question *q, double value, size_t kept)
{
    if (!isfinite(value) || close_to(value, q->value, q->tolerance_frac)) return true;
    for (size_t i = 0; i < kept; i++)
        if (close_to(value, q->slips[i].value, q->tolerance_frac)) return true;
    return false;
}

/* Leave out slips that cannot be told from the answer or from one before them. */
static enum err_code prune(struct sym_ctx *c, struct exercise_question *q, struct err *e)
{
    size_t kept = 0;
    for (size_t i = 0; i < q->slips_n; i++) {
        const struct exercise_slip *s = &q->slips[i];
        bool known = false;
        switch (q->kind) {
        case EXERCISE_FORMULA: TRY(is_known(c, q, s->formula, kept, &known, e)); break;
        case EXERCISE_NUMBER: known = is_near(q, s->value, kept); break;
        case EXERCISE_CHOICE: known = s->value == (double)q->right; break;
        }
        if (!known) q->slips[kept++] = *s;
    }
    q->slips_n = kept;
    return ERR_OK;
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
    TRY(prune(c, &q, e));
    *out = q;
    return ERR_OK;
}
