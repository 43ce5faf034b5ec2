/* Unit tests of the exercises: all of them with many seeds, the grading of formulas, numbers and words, and the marks
 * of a class. Linked with the embedded files of the build. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

static struct fixture begin(void)
{
    struct fixture f = {.a = arena_open()};
    assert_non_null(f.a);
    f.c = sym_open(f.a);
    assert_non_null(f.c);
    return f;
}

static void end(struct fixture *f)
{
    assert_int_equal(sym_check(f->c, NULL), ERR_OK);
    arena_close(f->a);
}

static struct exercise_verdict grade(struct fixture *f, const struct exercise_question *q, const char *answer)
{
    struct exercise_verdict v;
    struct err e = {0};
    if (exercise_grade(f->a, f->c, q, answer, &v, &e) != ERR_OK) fail_msg("'%.80s': %s", answer, e.text);
    assert_non_null(v.given);
    assert_true(v.right == !v.hint);
    if (v.hint) assert_true(strlen(v.hint) > 5);
    return v;
}

static void assert_right(struct fixture *f, const char *name, const struct exercise_question *q, const char *answer)
{
    const struct exercise_verdict v = grade(f, q, answer);
    if (!v.right) fail_msg("%s: %s\n'%s' is refused: %s", name, q->text, answer, v.hint);
}

static void assert_hint(struct fixture *f, const struct exercise_question *q, const char *answer, const char *hint)
{
    const struct exercise_verdict v = grade(f, q, answer);
    if (v.right) fail_msg("'%.80s' is taken", answer);
    if (!strstr(v.hint, hint)) fail_msg("'%.80s': wanted '%s', found '%s'", answer, hint, v.hint);
}

/* ---- every exercise ---- */

/* Ways to write a number of a kind: the factor that the unit stands for. */
struct spelling {
    enum units_kind kind;
    const char *before, *unit;
    double factor;
};

static const struct spelling SPELLINGS[] = {
    {UNITS_NONE, "", "", 1},
    {UNITS_NONE, "x = ", "", 1},
    {UNITS_COUNT, "", "", 1},
    {UNITS_COUNT, "", "M", 1e6},
    {UNITS_COUNT, "", " billion", 1e9},
    {UNITS_BYTES, "", " B", 1},
    {UNITS_BYTES, "", "GB", 1e9},
    {UNITS_BYTES, "~ ", " MiB", 0x1p20},
    {UNITS_FLOPS, "", " FLOP", 1},
    {UNITS_FLOPS, "", " TFLOPs", 1e12},
    {UNITS_FLOPS, "", " gflop", 1e9},
    {UNITS_SECONDS, "", " s", 1},
    {UNITS_SECONDS, "", "ms", 1e-3},
    {UNITS_SECONDS, "t = ", " us", 1e-6},
    {UNITS_BYTES_PER_S, "", " B/s", 1},
    {UNITS_BYTES_PER_S, "", " GB/s", 1e9},
    {UNITS_BYTES_PER_S, "", " GiB per second", 0x1p30},
    {UNITS_FLOPS_PER_S, "", " FLOP/s", 1},
    {UNITS_FLOPS_PER_S, "", " TFLOPS", 1e12},
    {UNITS_FLOPS_PER_S, "", " PFLOP/s", 1e15},
    {UNITS_TOK_PER_S, "", " tok/s", 1},
    {UNITS_TOK_PER_S, "", " tokens per second", 1},
    {UNITS_TOK_PER_S, "", " ktok/s", 1e3},
    {UNITS_FRAC, "", "", 1},
    {UNITS_FRAC, "", "%", 0.01},
    {UNITS_FRAC, "", " percent", 0.01},
    {UNITS_RATIO, "", "", 1},
    {UNITS_RATIO, "", "x", 1},
    {UNITS_RATIO, "", "%", 0.01},
    {UNITS_FLOPS_PER_BYTE, "", "", 1},
    {UNITS_FLOPS_PER_BYTE, "", " flop/byte", 1},
    {UNITS_FLOPS_PER_BYTE, "", " kFLOP/B", 1e3},
    {UNITS_BYTES_PER_TOKEN, "", " B/token", 1},
    {UNITS_BYTES_PER_TOKEN, "", " KiB/tok", 1024},
    {UNITS_BYTES_PER_TOKEN, "", " kB", 1000},
    {UNITS_BYTES_PER_SEQUENCE, "", " B/sequence", 1},
    {UNITS_BYTES_PER_SEQUENCE, "", " GiB/seq", 0x1p30},
    {UNITS_BYTES_PER_SEQUENCE, "", " GB", 1e9},
    {UNITS_USD, "$", "", 1},
    {UNITS_USD, "", " USD", 1},
    {UNITS_USD, "", " cents", 0.01},
    {UNITS_USD_PER_MTOK, "$", "/Mtok", 1},
    {UNITS_USD_PER_MTOK, "", " $ per million tokens", 1},
    {UNITS_USD_PER_MTOK, "$", "/1M tokens", 1},
    {UNITS_WATTS, "", " W", 1},
    {UNITS_WATTS, "", " kW", 1e3},
    {UNITS_WATTS, "", " watts", 1},
};

enum { SPELLINGS_N = sizeof SPELLINGS / sizeof SPELLINGS[0] };

static const char *spelled(struct fixture *f, const struct spelling *s, double value)
{
    return arena_printf(f->a, "%s%.17g%s", s->before, value / s->factor, s->unit);
}

/* A value in the base unit of a kind, with full digits. */
static const char *in_base(struct fixture *f, enum units_kind kind, double value)
{
    for (size_t i = 0; i < SPELLINGS_N; i++)
        if (SPELLINGS[i].kind == kind && SPELLINGS[i].factor == 1) return spelled(f, &SPELLINGS[i], value);
    fail_msg("kind %d has no spelling", (int)kind);
    return "";
}

static void assert_text(const char *name, const char *text)
{
    if (!text || strlen(text) < 3) fail_msg("%s: a text is missing", name);
    for (size_t i = 0, n; text[i]; i += n) {
        uint32_t code = 0;
        n = text_utf8_len(text + i, strlen(text + i), &code);
        if (n == 0 || text_is_hostile(code)) fail_msg("%s: not clean text: %s", name, text);
    }
    static const char *const WRONG[] = {"nan", "NAN", "NaN", " inf ", "(null)", "%l", "  "};
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++)
        if (strstr(text, WRONG[i])) fail_msg("%s: '%s' in: %s", name, WRONG[i], text);
}

static void check_form(const char *name, const struct exercise_question *q)
{
    assert_text(name, q->text);
    assert_text(name, q->form);
    assert_true(q->slips_n < EXERCISE_SLIPS_MAX);
    assert_true(q->steps_n >= 1 && q->steps_n < EXERCISE_STEPS_MAX);
    for (size_t i = 0; i < q->steps_n; i++) assert_text(name, q->steps[i]);
    for (size_t i = 0; i < q->slips_n; i++) assert_text(name, q->slips[i].hint);
    if (q->kind == EXERCISE_FORMULA) {
        assert_non_null(q->answer);
        assert_in_range(q->symbols_n, 1, 16);
        assert_true(q->unit != UNITS_NONE);
    } else if (q->kind == EXERCISE_NUMBER) {
        if (!isfinite(q->value) || q->value <= 0) fail_msg("%s: the answer is %g", name, q->value);
        assert_true(q->tolerance_frac >= 0 && q->tolerance_frac <= 0.05);
    } else {
        assert_in_range(q->choices_n, 2, EXERCISE_CHOICES_MAX);
        assert_true(q->right < q->choices_n);
    }
}

/* The form says the tolerance, and shows a number that is none of the answer, with the digits that it takes. */
static void check_sample(struct fixture *f, const char *name, const struct exercise_question *q)
{
    if (q->kind != EXERCISE_NUMBER) return;
    assert_true(q->unit != UNITS_COUNT || q->things);
    if (q->tolerance_frac == 0) {
        assert_non_null(strstr(q->form, ", exact"));
        return;
    }
    const char *within = arena_printf(f->a, ", within %g%%", 100 * q->tolerance_frac);
    const char *at = strstr(q->form, ", such as "), *end = strstr(q->form, within);
    if (!at || !end || strlen(end) != strlen(within)) fail_msg("%s: the form '%s'", name, q->form);
    char *sample = arena_strndup(f->a, at + 10, (size_t)(end - at) - 10);
    char *other = strstr(sample, " or ");
    if (other) *other = '\0';
    size_t digits = 0;
    for (const char *p = sample + strspn(sample, "$0."); (*p >= '0' && *p <= '9') || *p == '.'; p++)
        digits += *p != '.';
    assert_int_equal(digits, 4);
    const struct exercise_verdict v = grade(f, q, sample);
    if (v.right) fail_msg("%s: the sample '%s' is the answer", name, sample);
    if (strstr(v.hint, "was asked") || strstr(v.hint, "cannot be")) fail_msg("%s: '%s': %s", name, sample, v.hint);
}

static void check_right(struct fixture *f, const char *name, const struct exercise_question *q)
{
    if (q->kind == EXERCISE_FORMULA) {
        char text[TEXT_MAX], latex[TEXT_MAX], normal[TEXT_MAX];
        const struct sym *canonical;
        assert_int_equal(sym_normal(f->c, q->answer, &canonical, NULL), ERR_OK);
        assert_true(sym_print(q->answer, text, sizeof text) < sizeof text);
        assert_true(sym_print_as(q->answer, SYM_LATEX, latex, sizeof latex) < sizeof latex);
        assert_true(sym_print(canonical, normal, sizeof normal) < sizeof normal);
        assert_right(f, name, q, text);
        assert_right(f, name, q, latex);
        assert_right(f, name, q, normal);
        assert_right(f, name, q, arena_printf(f->a, "  answer = (%s)*2/2 ", text));
    } else if (q->kind == EXERCISE_NUMBER) {
        size_t ways = 0;
        char digits[UNITS_TEXT_MAX];
        for (size_t i = 0; i < SPELLINGS_N; i++) {
            if (SPELLINGS[i].kind != q->unit) continue;
            ways++;
            assert_right(f, name, q, spelled(f, &SPELLINGS[i], q->value));
        }
        assert_true(ways >= 2);
        if (q->unit == UNITS_COUNT && q->value == floor(q->value))
            assert_right(f, name, q, units_format_digits(digits, q->value));
    } else {
        assert_right(f, name, q, q->choices[q->right]);
        assert_right(f, name, q, arena_printf(f->a, " %s. ", q->choices[q->right]));
    }
}

/* The text without blanks. */
static const char *packed(struct fixture *f, const char *s)
{
    char *out = arena_strndup(f->a, s, strlen(s));
    size_t w = 0;
    for (; *s; s++)
        if (*s != ' ') out[w++] = *s;
    out[w] = '\0';
    return out;
}

static bool has_word(const char *text, const char *word)
{
    const size_t n = strlen(word);
    for (const char *p = text; (p = strstr(p, word)) != NULL; p++) {
        const char before = p == text ? ' ' : p[-1], after = p[n];
        if (!strchr("0123456789.abcdefghijklmnopqrstuvwxyz", before) &&
            (!after || !strchr("0123456789abcdefghijklmnopqrstuvwxyz", after)))
            return true;
    }
    return false;
}

/* A hint must not say the answer; answers of one or two characters are in many sentences. */
static void check_secret(struct fixture *f, const char *name, const struct exercise_question *q, const char *hint)
{
    char text[TEXT_MAX] = "";
    if (q->kind == EXERCISE_FORMULA) {
        (void)sym_print(q->answer, text, sizeof text);
        if (strlen(text) > 2 && strstr(packed(f, hint), packed(f, text)))
            fail_msg("%s: the hint '%s' says the answer", name, hint);
        return;
    }
    if (q->kind == EXERCISE_CHOICE) {
        if (has_word(hint, q->choices[q->right])) fail_msg("%s: the hint '%s' says the answer", name, hint);
        return;
    }
    for (int digits = 3; digits < 7; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, q->value);
        if (strlen(text) > 2 && has_word(hint, text)) fail_msg("%s: the hint '%s' says the answer", name, hint);
    }
}

static const char *slip_text(struct fixture *f, const struct exercise_question *q, const struct exercise_slip *s)
{
    if (q->kind == EXERCISE_CHOICE) return q->choices[(size_t)s->value];
    if (q->kind == EXERCISE_NUMBER) return in_base(f, q->unit, s->value);
    char *text = arena_alloc(f->a, TEXT_MAX);
    const struct sym *normal;
    assert_int_equal(sym_normal(f->c, s->formula, &normal, NULL), ERR_OK);
    assert_true(sym_print(normal, text, TEXT_MAX) < TEXT_MAX);
    return text;
}

static void check_slips(struct fixture *f, const char *name, const struct exercise_question *q)
{
    for (size_t i = 0; i < q->slips_n; i++) {
        const char *text = slip_text(f, q, &q->slips[i]);
        const struct exercise_verdict v = grade(f, q, text);
        if (v.right) fail_msg("%s: %s\nthe slip '%s' is taken: %s", name, q->text, text, q->slips[i].hint);
        if (strcmp(v.hint, q->slips[i].hint) != 0)
            fail_msg("%s: %s\nthe slip '%s' gives '%s', not its own '%s'", name, q->text, text, v.hint,
                     q->slips[i].hint);
        check_secret(f, name, q, v.hint);
    }
}

/* Answers that are off by something no slip knows: wrong, with a hint that does not say what is right. */
static void check_off(struct fixture *f, const char *name, const struct exercise_question *q)
{
    static const double FACTORS[] = {2, 0.5, 3, 8, 0.125, 1000, 1e-3, 1.0737, 1.04, 0.2, 17};
    char text[TEXT_MAX];
    for (size_t i = 0; i < sizeof FACTORS / sizeof FACTORS[0] && q->kind == EXERCISE_NUMBER; i++) {
        if (fabs(FACTORS[i] - 1) <= q->tolerance_frac) continue;
        const struct exercise_verdict v = grade(f, q, in_base(f, q->unit, q->value * FACTORS[i]));
        if (v.right) fail_msg("%s takes %g times the answer", name, FACTORS[i]);
        check_secret(f, name, q, v.hint);
    }
    if (q->kind != EXERCISE_FORMULA) return;
    (void)sym_print(q->answer, text, sizeof text);
    const char *first = sym_name(q->symbols[0]), *last = sym_name(q->symbols[q->symbols_n - 1]);
    const char *const wrong[] = {arena_printf(f->a, "3*(%s)", text),
                                 arena_printf(f->a, "(%s)/7", text),
                                 arena_printf(f->a, "-(%s)", text),
                                 arena_printf(f->a, "(%s)*%s", text, first),
                                 arena_printf(f->a, "(%s)/%s/%s", text, first, last),
                                 arena_printf(f->a, "%s + 1", text),
                                 arena_printf(f->a, "(%s)^2", text),
                                 arena_printf(f->a, "min(%s, %s)", first, last),
                                 "1",
                                 "0",
                                 first,
                                 last};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const struct exercise_verdict v = grade(f, q, wrong[i]);
        if (v.right && i < 7) fail_msg("%s takes '%s'", name, wrong[i]);
        if (!v.right) check_secret(f, name, q, v.hint);
    }
}

static const char *const HOSTILE[] = {
    "",
    "   \t ",
    "nan",
    "NaN ms",
    "inf",
    "-inf s",
    "1e999",
    "1e-999",
    "0",
    "-1",
    "-0",
    "1/0",
    "0/0 ms",
    "\xff\xfe",
    "7.9 \xc0\xaf",
    "1\x1b[31m",
    "B*T\n+1",
    "a\x01",
    "\342\200\2561",
    "$",
    "%",
    "/",
    "=",
    "==",
    "1 =",
    "1 = 2 = 3",
    "1,2,3",
    ",",
    "1,,000",
    "1.2.3",
    "e",
    "e5",
    ".",
    "1e",
    "2^2^2^2^2^2",
    "9^9^9",
    "1 /s",
    "1 s/",
    "1 s/s/s",
    "1 B/s/tok",
    "((((((((",
    "\xc3\x97",
    "5 \xc3\x97",
    "1 GGB",
    "1 kk",
    "%n%s%n",
    "'; drop table students; --",
    "x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x",
    "min(",
    "B^1000*D^1000",
    "(B+D+T+S+F+1)^60",
};

static void check_hostile(struct fixture *f, const char *name, const struct exercise_question *q)
{
    for (size_t i = 0; i < sizeof HOSTILE / sizeof HOSTILE[0]; i++) {
        const struct exercise_verdict v = grade(f, q, HOSTILE[i]);
        if (v.right) fail_msg("%s takes '%s'", name, HOSTILE[i]);
        for (size_t k = 0, n; v.hint[k]; k += n) {
            uint32_t code = 0;
            n = text_utf8_len(v.hint + k, strlen(v.hint + k), &code);
            if (n == 0 || text_is_hostile(code)) fail_msg("%s, '%s': the hint is not clean", name, HOSTILE[i]);
        }
    }
}

static void check_seeds(size_t at, size_t seeds)
{
    const struct exercise *x = exercise_at(at);
    const char *texts[SEEDS];
    size_t different = 0;
    bool drawn = true; /* numbers, not only which formula */
    struct arena *kept = arena_open();
    for (size_t s = 0; s < seeds; s++) {
        struct fixture f = begin(), again = begin();
        struct exercise_question q, twice;
        struct err e = {0};
        if (exercise_ask(f.a, f.c, x, s, &q, &e) != ERR_OK) fail_msg("%s, seed %zu: %s", x->name, s, e.text);
        assert_int_equal(exercise_ask(again.a, again.c, x, s, &twice, &e), ERR_OK);
        assert_string_equal(q.text, twice.text);
        assert_true(q.value == twice.value && q.slips_n == twice.slips_n && q.right == twice.right);
        drawn = q.kind != EXERCISE_FORMULA;
        check_form(x->name, &q);
        check_sample(&f, x->name, &q);
        check_right(&f, x->name, &q);
        check_slips(&f, x->name, &q);
        if (s < 20) check_off(&f, x->name, &q);
        if (s == 0) check_hostile(&f, x->name, &q);
        texts[s] = arena_strndup(kept, q.text, strlen(q.text));
        size_t i = 0;
        while (i < s && strcmp(texts[i], texts[s]) != 0) i++;
        different += i == s;
        end(&f);
        end(&again);
    }
    arena_close(kept);
    if (different < (drawn ? 5 : 2)) fail_msg("%s: only %zu different questions", x->name, different);
}

static void test_every_exercise(void **state)
{
    (void)state;
    assert_true(exercise_count() >= 9);
    for (size_t i = 0; i < exercise_count(); i++) check_seeds(i, SEEDS);
}

static void test_table(void **state)
{
    (void)state;
    struct err e;
    const struct exercise *x = NULL, *y = NULL;
    const size_t n = exercise_count();
    assert_null(exercise_at(n));
    for (size_t i = 0; i < n; i++) {
        size_t at;
        const struct exercise *r = exercise_at(i);
        assert_text(r->name, r->name);
        assert_text(r->name, r->set);
        assert_text(r->name, r->title);
        assert_true(strspn(r->name, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(r->name));
        assert_int_equal(exercise_find(r->name, &at, &x, &e), ERR_OK);
        assert_true(x == r && at == i); /* no name twice */
        char number[24];
        (void)snprintf(number, sizeof number, "%zu", i + 1);
        assert_int_equal(exercise_find(number, NULL, &y, &e), ERR_OK);
        assert_true(y == r);
    }
    static const char *const WRONG[] = {"", "0", "-1", "999", "1.5", "mlp-flop", "\x1b[31m"};
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++)
        assert_int_equal(exercise_find(WRONG[i], NULL, &x, &e), ERR_USAGE);
    assert_int_equal(exercise_find("mlp-flop", NULL, &x, &e), ERR_USAGE);
    assert_non_null(strstr(e.text, "mlp-flops"));
}

/* ---- draws ---- */

static void test_draws(void **state)
{
    (void)state;
    struct exercise_maker m = {.rng = 0};
    /* the first two of splitmix64 from 0: published with the reference code, https://prng.di.unimi.it/splitmix64.c */
    assert_true((uint64_t)bank_draw(&m, INT64_MIN, INT64_MAX) == UINT64_C(0xe220a8397b1dcdaf));
    assert_true((uint64_t)bank_draw(&m, INT64_MIN, INT64_MAX) == UINT64_C(0x6e789e6aa1b965f4));
    int seen[7] = {0};
    for (int i = 0; i < 7000; i++) {
        const int64_t x = bank_draw(&m, -3, 3);
        assert_in_range(x + 3, 0, 6);
        seen[x + 3]++;
    }
    for (size_t i = 0; i < 7; i++) assert_in_range(seen[i], 850, 1150); /* 1000 +- 5 sigma */
    assert_int_equal(bank_draw(&m, 41, 41), 41);
    static const int64_t OF[] = {7, 11, 13};
    for (int i = 0; i < 50; i++) {
        const int64_t x = bank_pick(&m, 3, OF);
        assert_true(x == 7 || x == 11 || x == 13);
    }
    /* FNV-1a of "ada", NUL and the class's seed in eight bytes, low ones first; by hand from the definition */
    assert_true(exercise_student_seed(1, "ada") != exercise_student_seed(2, "ada"));
    assert_true(exercise_student_seed(1, "ada") != exercise_student_seed(1, "bob"));
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    static const uint8_t BYTES[] = {'a', 'd', 'a', 0, 1, 0, 0, 0, 0, 0, 0, 0};
    for (size_t i = 0; i < sizeof BYTES; i++) h = (h ^ BYTES[i]) * UINT64_C(0x100000001b3); /* not a unit */
    assert_true(exercise_student_seed(1, "ada") == (int64_t)(h >> 11));
}

/* A slip that the draw makes equal to the answer or to an earlier one is left out. */
static enum err_code make_coinciding(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    (void)e;
    *q = (struct exercise_question){.kind = EXERCISE_NUMBER,
                                    .text = "how many",
                                    .form = "a count",
                                    .value = 17,
                                    .unit = UNITS_COUNT,
                                    .tolerance_frac = 0.01};
    bank_slip(q, 17.1, "the answer");
    bank_slip(q, 34, "first");
    bank_slip(q, 34.2, "the same");
    bank_slip(q, 34, "first");
    bank_slip(q, 33.9, "a third");
    bank_slip(q, (double)NAN, "not a number");
    bank_slip(q, 51, "second");
    for (int i = 0; i < 20; i++) bank_step(q, "step");
    (void)m;
    return ERR_OK;
}

static void test_coinciding(void **state)
{
    (void)state;
    struct fixture f = begin();
    struct err e;
    struct exercise_question q = {.text = NULL};
    const struct exercise x = {.name = "x", .make = make_coinciding};
    assert_int_equal(exercise_ask(f.a, f.c, &x, 3, &q, &e), ERR_OK);
    assert_int_equal(q.slips_n, 2);
    assert_string_equal(q.slips[0].hint, "Either: first Or: the same Or: a third");
    assert_string_equal(q.slips[1].hint, "second");
    assert_int_equal(q.steps_n, EXERCISE_STEPS_MAX);
    end(&f);
}

/* ---- grading ---- */

static struct exercise_question number(enum units_kind unit, double value, double tolerance_frac)
{
    return (struct exercise_question){.kind = EXERCISE_NUMBER,
                                      .text = "q",
                                      .form = "f",
                                      .unit = unit,
                                      .value = value,
                                      .tolerance_frac = tolerance_frac};
}

static void test_times(void **state)
{
    (void)state;
    struct fixture f = begin();
    struct exercise_question q = number(UNITS_SECONDS, 0.0079, 0.01);
    bank_slip(&q, 0.0237, "three of them");
    static const char *const RIGHT[] = {
        "7.9 ms",           "0.0079 s",  "7900 us", "7,900 us",    "7900\xC2\xB5s", "7900 \xCE\xBCs",     "7.9e-3s",
        "7.9 milliseconds", "t = 7.9ms", "~7.9 ms", "7.9*10^-3 s", "7.9 x 10^-3 s", "7.9\303\22710^-3 s", "7.9e6 ns",
        "0.0001317 min",    "7.9 msec",  "7.93 ms", "79/10 ms",    "7.9 ms."};
    for (size_t i = 0; i < sizeof RIGHT / sizeof RIGHT[0]; i++) assert_right(&f, "time", &q, RIGHT[i]);
    assert_hint(&f, &q, "7.9", "a time (s, ms, us) was asked: give the unit");
    assert_hint(&f, &q, "7.9 GB", "a time (s, ms, us) was asked; this is a number of bytes");
    assert_hint(&f, &q, "7.9 tok/s", "this is tokens per second");
    assert_hint(&f, &q, "7.9 parsec", "'parsec' is not known");
    assert_hint(&f, &q, "7.9 MS", "'MS' is not known");
    assert_hint(&f, &q, "7.9 s", "factor of 1000");
    assert_hint(&f, &q, "7.9 us", "factor of 1000");
    assert_hint(&f, &q, "7.9 ns", "million");
    assert_hint(&f, &q, "15.8 ms", "constant factor: a 2");
    assert_hint(&f, &q, "126.4 ms", "constant factor: a power of 2");
    assert_right(&f, "time", &q, "26.5/3.35 = 7.91 ms");
    assert_right(&f, "time", &q, "26.5e9/3.35e12 = 7.91 ms");
    assert_right(&f, "time", &q, "t \xE2\x89\x88 7.91 ms");
    assert_right(&f, "time", &q, "\xE2\x89\x88 7.91 ms");
    assert_right(&f, "time", &q, "0.0079 s = 7.9 ms");
    assert_right(&f, "time", &q, "$t \\approx 7.9\\,\\text{ms}$");
    assert_right(&f, "time", &q, "7.9 \\times 10^{-3}\\,\\mathrm{s}");
    assert_right(&f, "time", &q, "7.9 ms per step");
    assert_right(&f, "time", &q, "7.9 ms/step");
    assert_hint(&f, &q, "8.5 ms = 7.9 ms", "not equal");
    assert_hint(&f, &q, "7.9 s = 7.9 ms = 7.9 GB", "this is a number of bytes");
    assert_hint(&f, &q, "26.5 GB/3.35 TB/s = 7.91 ms", "in front of '='");
    assert_hint(&f, &q, "= 7.9 ms", "in front of '='");
    assert_hint(&f, &q, "23.7 ms", "three of them");
    assert_hint(&f, &q, "8 ms", "rounded too early");
    assert_hint(&f, &q, "12 ms", "too large");
    assert_hint(&f, &q, "5 ms", "too small");
    assert_hint(&f, &q, "-7.9 ms", "below zero");
    assert_hint(&f, &q, "7,9 ms", "a comma groups thousands");
    assert_hint(&f, &q, "ms", "finite number");
    assert_string_equal(grade(&f, &q, "7900 us").given, "0.0079 s");
    end(&f);
}

static void test_bytes_and_counts(void **state)
{
    (void)state;
    struct fixture f = begin();
    const struct exercise_question bytes = number(UNITS_BYTES, 12.5 * 0x1p30, 0.005);
    assert_right(&f, "bytes", &bytes, "12.5 GiB");
    assert_right(&f, "bytes", &bytes, "13.42 GB");
    assert_right(&f, "bytes", &bytes, "12,800 MiB");
    assert_right(&f, "bytes", &bytes, "13,421,772,800 bytes");
    assert_right(&f, "bytes", &bytes, "107.4 Gbit");
    assert_hint(&f, &bytes, "12.5 GB", "ratio of GiB");
    assert_hint(&f, &bytes, "13.42 GiB", "ratio of GiB");
    assert_hint(&f, &bytes, "13.42 Gb", "bits for bytes");
    assert_hint(&f, &bytes, "107.4 GB", "bits for bytes");
    assert_hint(&f, &bytes, "13.42 G", "'G' is not known");
    assert_hint(&f, &bytes, "13421772800", "give the unit");

    struct exercise_question count = number(UNITS_COUNT, 13015449600, 0);
    count.things = "parameter,param";
    assert_right(&f, "count", &count, "13,015,449,600");
    assert_right(&f, "count", &count, "13015449600");
    assert_right(&f, "count", &count, "13.0154496B");
    assert_right(&f, "count", &count, "13.0154496 billion parameters");
    assert_right(&f, "count", &count, "13015.4496 M");
    assert_right(&f, "count", &count, "1.30154496e10");
    assert_hint(&f, &count, "13.02B", "give all digits");
    assert_hint(&f, &count, "13,015,449,601", "give all digits");
    assert_right(&f, "count", &count, "13,015,449,600 parameters");
    assert_right(&f, "count", &count, "13.0154496 Gparams");
    assert_right(&f, "count", &count, "13.0154496G");
    assert_right(&f, "count", &count, "13015.4496 Mparam");
    assert_hint(&f, &count, "13,015,449,600 potatoes", "'potatoes' is not known; a count (of parameters) was asked");
    assert_hint(&f, &count, "13,015,449,600 tokens", "'tokens' is not known");
    assert_hint(&f, &count, "13.0154496 GB", "a count (of parameters) was asked; this is a number of bytes");
    assert_hint(&f, &count, "26,030,899,200", "constant factor");
    assert_hint(&f, &count, "13,0154,49600", "a comma groups thousands");
    assert_hint(&f, &count, "13.015,449", "a comma groups thousands");

    const struct exercise_question part = number(UNITS_FRAC, 0.43, 0.01);
    assert_right(&f, "part", &part, "43%");
    assert_right(&f, "part", &part, "0.43");
    assert_hint(&f, &part, "43", "factor of 100");
    assert_hint(&f, &part, "0.43%", "factor of 100");
    const struct exercise_question ridge = number(UNITS_FLOPS_PER_BYTE, 989 / 3.35, 0.01);
    assert_right(&f, "ridge", &ridge, "989e12/3.35e12");
    assert_right(&f, "ridge", &ridge, "295");
    assert_right(&f, "ridge", &ridge, "I = 295 flops per byte");
    assert_right(&f, "ridge", &ridge, "989/3.35 = 295.2 flop/byte");
    assert_hint(&f, &ridge, "302", "rounded too early");
    assert_hint(&f, &ridge, "317", "too large");   /* 1.074 times: no GiB in flops per byte */
    assert_hint(&f, &ridge, "303.1", "too early"); /* 1.027 */
    assert_hint(&f, &ridge, "590.4", "constant factor");
    assert_right(&f, "part", &part, "43 per cent");
    assert_right(&f, "part", &part, "43% of the layer");

    const struct exercise_question rate = number(UNITS_TOK_PER_S, 2898, 0.01);
    static const char *const RATES[] = {
        "2898 1/s", "2898 / s", "2898/s", "2898 t/s", "2.898 ktok/s", "2898 tokens/s", "2898 tok per second",
        "2898 tps"};
    for (size_t i = 0; i < sizeof RATES / sizeof RATES[0]; i++) assert_right(&f, "rate", &rate, RATES[i]);
    assert_hint(&f, &rate, "2898", "give the unit");
    const struct exercise_question token = number(UNITS_BYTES_PER_TOKEN, 131072, 0.01);
    assert_right(&f, "token", &token, "131.1 kB/token");
    assert_right(&f, "token", &token, "128 KiB");
    assert_hint(&f, &token, "131.1 KiB", "ratio of KiB");
    assert_hint(&f, &token, "128 kB", "ratio of KiB");

    struct exercise_question days = number(UNITS_SECONDS, 616.9 * 86400, 0.01);
    days.bare = "days";
    static const char *const DAYS[] = {"617",        "617 days", "617 d",      "14805 h",
                                       "88.1 weeks", "t = 617",  "1.69 years", "6*10^10/97.26e6 = 617"};
    for (size_t i = 0; i < sizeof DAYS / sizeof DAYS[0]; i++) assert_right(&f, "days", &days, DAYS[i]);
    assert_hint(&f, &days, "617 GB", "this is a number of bytes");
    assert_hint(&f, &days, "617 potatoes", "as days or with its unit");

    struct exercise_question few = number(UNITS_COUNT, 248, 0);
    few.things = "sequence,seq";
    assert_right(&f, "few", &few, "248 seqs");
    assert_hint(&f, &few, "247", "this is not it");
    assert_hint(&f, &few, "248.2", "a whole number is asked");
    assert_hint(&f, &few, "248 potatoes", "a count (of sequences)");
    assert_hint(&f, &few, "300", "too large");
    const struct exercise_question half = number(UNITS_RATIO, 0.5, 0.01);
    assert_right(&f, "half", &half, "\xC2\xBD");
    assert_hint(&f, &half, "2\xC2\xBD", "cannot be read");
    assert_right(&f, "half", &half, "0.5 times smaller");
    end(&f);
}

static struct exercise_question formula(struct fixture *f, const struct cost_symbols *y, const struct sym *answer)
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

static void test_formulas(void **state)
{
    (void)state;
    struct fixture f = begin();
    const struct cost_symbols y = cost_symbols_make(f.c);
    const struct sym *product = sym_mul(f.c, y.S, y.T), *sum = sym_add(f.c, y.S, y.T);
    struct exercise_question q = formula(&f, &y, sym_div(f.c, product, sum));
    bank_slip_formula(&q, sym_div(f.c, product, y.S), "the bytes of queries are missing");
    static const char *const RIGHT[] = {"S*T/(S+T)",
                                        "ST/(T+S)",
                                        "1/(1/S + 1/T)",
                                        "\\frac{S T}{S + T}",
                                        "I = S T / (S + T)",
                                        "2*S*T/(2*(S+T))",
                                        "\\frac{1}{S+T} \\sum_{i=1}^{S} T",
                                        "(S^2*T + S*T^2)/(S+T)^2"};
    for (size_t i = 0; i < sizeof RIGHT / sizeof RIGHT[0]; i++) assert_right(&f, "formula", &q, RIGHT[i]);
    assert_hint(&f, &q, "T", "the bytes of queries are missing");
    assert_hint(&f, &q, "2*S*T/(S+T)", "too large by a constant factor");
    assert_hint(&f, &q, "S*T/(2*S+2*T)", "too small by a constant factor");
    assert_hint(&f, &q, "2*S*T/(3*(S+T))", "too small by a constant factor");
    assert_hint(&f, &q, "-S*T/(S+T)", "off by the sign");
    assert_hint(&f, &q, "-4*S*T/(S+T)", "constant factor, and of the wrong sign");
    assert_hint(&f, &q, "B*S*T/(S+T)", "too large by a factor of B");
    assert_hint(&f, &q, "S/(S+T)", "too small by a factor of T");
    assert_hint(&f, &q, "S^2/(S+T)", "it should be");
    assert_hint(&f, &q, "S+T", "it should be");
    assert_hint(&f, &q, "min(S, T)", "it should be");
    assert_hint(&f, &q, "17", "depends on the symbols");
    assert_hint(&f, &q, "0", "depends on the symbols");
    assert_hint(&f, &q, "S - S", "depends on the symbols");
    assert_hint(&f, &q, "S*T/(S+X)", "unknown name 'X'");
    assert_hint(&f, &q, "S*T/(S+T", "bracket");
    assert_hint(&f, &q, "a = b = S", "in front of '=' cannot be read");
    static const char *const SIDES[] = {"I = 2*S*T/(2*S+2*T) = ST/(S+T)",
                                        "1/(1/S+1/T) = S*T/(S+T)",
                                        "I_{attn} = S*T/(S+T)",
                                        "C(S) = S*T/(S+T)",
                                        "$I = \\frac{ST}{S+T}$",
                                        "\\(\\frac{ST}{S+T}\\)",
                                        "S*T/(S+T) flop/byte",
                                        "S*T/(S+T) flops per byte",
                                        "\\frac{ST}{S+T}\\,\\text{FLOP/B}",
                                        "S*T/(S+T) [flop/byte]",
                                        "2(\xC2\xBD S T)/(S+T)"};
    for (size_t i = 0; i < sizeof SIDES / sizeof SIDES[0]; i++) assert_right(&f, "sides", &q, SIDES[i]);
    assert_hint(&f, &q, "2*S*T/(S+T) = S*T/(S+T)", "not equal");
    assert_hint(&f, &q, "B = S*T/(S+T)", "not equal");
    assert_hint(&f, &q, "I = S = S*T/(S+T)", "not equal");
    assert_hint(&f, &q, "I + J = S*T/(S+T)", "in front of '='");
    assert_hint(&f, &q, "S*T/(S+T) GB", "this is a number of bytes");
    assert_hint(&f, &q, "S*T/(S+T) kflop/byte", "no prefix");
    assert_hint(&f, &q, "s*t/(s+t)", "case counts");
    assert_hint(&f, &q, "st/(s+T)", "case counts");
    /* proved, or said not to be */
    assert_right(&f, "root", &q, "S*T/(sqrt(S+T)^2)");
    const struct exercise_verdict v = grade(&f, &q, "S*T/(S+T)*ceil(B + 1)/(ceil(B) + 1)");
    assert_true(v.right || strstr(v.hint, "could not be proved equal: write it without ceil"));
    assert_hint(&f, &q, "intensity(attention)", "cannot be read");
    assert_hint(&f, &q, "S/(T-T)", "cannot be");
    assert_string_equal(grade(&f, &q, "2*S*T/(2*T+2*S)").given, "S*T/(S + T)");
    q = formula(&f, &y, SYM_PROD(f.c, sym_int(f.c, 6), y.B, y.S, y.T));
    assert_hint(&f, &q, "6*B*T^2", "off by a factor of T/S");
    assert_hint(&f, &q, "6*B", "too small by a factor of S*T");
    assert_hint(&f, &q, "12*B*S", "too small by a factor of T, and off by a constant");
    assert_hint(&f, &q, "6*S^3*T/B", "off by a factor of S^2/B^2");
    q = formula(&f, &y, sym_mul(f.c, sym_int(f.c, 2), y.B)); /* the factor would say it */
    assert_hint(&f, &q, "T", "it should be");
    assert_hint(&f, &q, "4*B^2", "it should be");
    end(&f);
}

static void test_choices(void **state)
{
    (void)state;
    struct fixture f = begin();
    const struct exercise_question q = {.kind = EXERCISE_CHOICE,
                                        .text = "q",
                                        .form = "a word",
                                        .choices = {"memory", "compute", "both"},
                                        .also = {"bandwidth,mem"},
                                        .choices_n = 3,
                                        .right = 1,
                                        .slips = {{.value = 2, .hint = "only one of them"}},
                                        .slips_n = 1};
    assert_right(&f, "choice", &q, "compute");
    assert_right(&f, "choice", &q, " COMPUTE.");
    assert_right(&f, "choice", &q, "Compute!?");
    assert_hint(&f, &q, "both", "only one of them");
    assert_hint(&f, &q, "memory", "numbers of the question");
    assert_hint(&f, &q, "bandwidth", "numbers of the question");
    static const char *const RIGHT[] = {"compute bound",    "compute-bound",       "Compute-Bound.",
                                        "bound by compute", "It is compute-bound", "limited by compute"};
    for (size_t i = 0; i < sizeof RIGHT / sizeof RIGHT[0]; i++) assert_right(&f, "choice", &q, RIGHT[i]);
    assert_hint(&f, &q, "memory-bandwidth bound", "numbers of the question");
    static const char *const NONE[] = {"not memory", "memory or compute", "bound", "-", "it is", "computer", "comput"};
    for (size_t i = 0; i < sizeof NONE / sizeof NONE[0]; i++)
        assert_hint(&f, &q, NONE[i], "one of: memory, compute, both");
    end(&f);
}

static void test_long(void **state)
{
    (void)state;
    struct fixture f = begin();
    const struct exercise_question time = number(UNITS_SECONDS, 0.0079, 0.01);
    enum { LONG = 1 << 20 };
    char *text = malloc(LONG + 1);
    assert_non_null(text);
    memset(text, '1', LONG);
    text[LONG] = '\0';
    assert_hint(&f, &time, text, "longer than 4096 bytes");
    text[EXERCISE_ANSWER_MAX_BYTES] = '\0';
    assert_hint(&f, &time, text, "cannot be read");
    memset(text, '(', EXERCISE_ANSWER_MAX_BYTES);
    assert_hint(&f, &time, text, "cannot be read");
    free(text);
    assert_hint(&f, &time, "7.9 ms\x80", "not UTF-8");
    assert_hint(&f, &time, "7.9\nms", "control characters");
    assert_hint(&f, &time, "", "empty");
    end(&f);
}

/* What would take seconds to expand, for the answer, for each slip, or at each point: the whole costs no more than one
 * proof. */
static void test_bounded(void **state)
{
    (void)state;
    static const char *const HEAVY[] = {"(B+S+T)^40*(B+S+1)^40",
                                        "(B+S+T+1)^43",
                                        "((B+S+T)^31+7)^31",
                                        "x = (B+S+T+1)^43 = (B+S+T+1)^44",
                                        "469**999999.29999999999999999999**9999999999999999999999999**S",
                                        "0007187182055329890302**999**S",
                                        "B**99999999999999**S",
                                        "exp(exp(exp(S)))",
                                        "ceil((B+S+T+1)^43/7)",
                                        "log((B+S+T)^99)*log(B^2+S)^99",
                                        "sqrt((B+S+T+1)^43)"};
    for (size_t i = 0; i < sizeof HEAVY / sizeof HEAVY[0]; i++) {
        struct fixture f = begin();
        const struct cost_symbols y = cost_symbols_make(f.c);
        struct exercise_question q = formula(&f, &y, sym_div(f.c, sym_mul(f.c, y.S, y.T), sym_add(f.c, y.S, y.T)));
        for (int64_t n = 2; n < 12; n++)
            bank_slip_formula(&q, sym_mul(f.c, sym_int(f.c, n), q.answer), "this is a multiple of what is right");
        const clock_t from = clock();
        assert_hint(&f, &q, HEAVY[i], "");
        const double s = (double)(clock() - from) / CLOCKS_PER_SEC;
        if (s > 2.5) fail_msg("'%s' takes %.1f s", HEAVY[i], s); /* well under 1 s; instruments are slower */
        end(&f);
    }
}

/* ---- answers against a count by hand ---- */

/* The numbers of a text in their order. */
static size_t numbers_of(const char *text, double *out, size_t max)
{
    size_t n = 0;
    for (const char *p = text; *p && n < max;) {
        char *stop;
        const bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
        if (letter || *p < '0' || *p > '9') {
            p += letter ? strcspn(p, " ,.;:)/") : 1; /* fp32 is a word */
            continue;
        }
        out[n++] = strtod(p, &stop);
        p = stop;
    }
    return n;
}

static struct exercise_question ask(struct fixture *f, const char *name, uint64_t seed)
{
    const struct exercise *x = NULL;
    struct exercise_question q = {.text = NULL};
    struct err e = {0};
    if (exercise_find(name, NULL, &x, &e) != ERR_OK || exercise_ask(f->a, f->c, x, seed, &q, &e) != ERR_OK)
        fail_msg("%s: %s", name, e.text);
    return q;
}

static void test_against_counts(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct fixture f = begin();
        double x[16];
        struct exercise_question q = ask(&f, "ridge-cpu", seed);
        /* cores, GHz, bits, "fp32" has no number of its own, channels, million transfers, 64 */
        assert_int_equal(numbers_of(q.text, x, 16), 6);
        const double peak = x[0] * x[1] * 1e9 * 2 * (x[2] / 32) * 2, bandwidth = x[3] * x[4] * 1e6 * x[5] / 8;
        assert_true(fabs(q.value / (peak / bandwidth) - 1) < 1e-12);

        q = ask(&f, "ridge-h100", seed);
        assert_true(numbers_of(strstr(q.text, "has"), x, 16) >= 4);
        const char *reaches = strstr(q.text, "reaches");
        double part[2];
        assert_int_equal(numbers_of(reaches, part, 2), 2);
        assert_true(fabs(q.value - 989e12 / 3.35e12 * part[0] / part[1]) < 1e-9);

        /* elements of x, W and the result, one by one in bytes */
        q = ask(&f, "matvec-intensity", seed);
        assert_true(numbers_of(q.text, x, 16) >= 4);
        const double bytes = strstr(q.text, "fp8") ? 1 : strstr(q.text, "bf16") ? 2 : 4;
        assert_true(fabs(q.value - 2 * x[1] * x[2] / (bytes * (x[1] * x[2] + x[1] + x[2]))) < 1e-12);
        end(&f);
    }
}

/* What batch-ridge says of other batches, from the ridge and the sizes of the text. */
static void test_batch_slips(void **state)
{
    (void)state;
    size_t met = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct fixture f = begin();
        double x[3], ridge;
        const struct exercise_question q = ask(&f, "batch-ridge", seed);
        assert_true(numbers_of(q.text, x, 3) == 3);
        assert_int_equal(numbers_of(strstr(q.steps[1], "bandwidth = "), &ridge, 1), 1);
        for (size_t i = 0; i < q.slips_n; i++) {
            const double B = q.slips[i].value, elements = B * x[0] + B * x[2] + x[0] * x[2];
            const double intensity = 2 * B * x[0] * x[2] / (2 * elements);
            const char *hint = q.slips[i].hint;
            if (strncmp(hint, "This takes the sparse", 20) == 0) {
                assert_true(fabs(intensity / (2 * ridge) - 1) < 1e-4);
                met |= 1;
            } else if (strncmp(hint, "This divides by elements", 20) == 0) {
                assert_true(fabs(2 * intensity / ridge - 1) < 1e-4);
                met |= 2;
            } else if (strncmp(hint, "This leaves out the bytes of the result", 38) == 0) {
                assert_true(fabs(B * x[0] * x[2] / (elements - B * x[2]) / ridge - 1) < 1e-4);
                met |= 4;
            } else if (strncmp(hint, "This leaves out the bytes of X", 30) == 0) {
                assert_true(fabs(B * x[0] * x[2] / (elements - B * x[0]) / ridge - 1) < 1e-4);
                met |= 8;
            }
        }
        end(&f);
    }
    assert_int_equal(met, 15);
}

/* Below B the product is under the ridge, at B not. */
static void test_batch_meets_ridge(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct fixture f = begin();
        double x[8], ridge[2];
        const struct exercise_question q = ask(&f, "batch-ridge", seed);
        assert_true(numbers_of(q.text, x, 3) == 3);
        const double D = x[0], F = x[2];
        assert_int_equal(numbers_of(strstr(q.steps[1], "bandwidth = "), ridge, 1), 1);
        for (int i = 0; i < 2; i++) {
            const double B = q.value - 1 + i, intensity = 2 * B * D * F / (2 * (B * D + B * F + D * F));
            if (i ? intensity < ridge[0] * (1 - 1e-4) : intensity > ridge[0] * (1 + 1e-4))
                fail_msg("seed %d: B = %g has %g flops per byte, ridge %g", (int)seed, B, intensity, ridge[0]);
        }
        end(&f);
    }
}

/* The formulas of the lecture: CS336 Spring 2025, lecture 10. */
/* Answers that students give most, to questions that say this and that, and what the hint must speak of. */
static void test_typical(void **state)
{
    (void)state;
    static const struct {
        const char *exercise, *says[3], *answer, *hint;
    } TYPICAL[] = {
        {"matmul-limit",
         {"W of D x F; all elements are bf16", "X of B x D"},
         "B*D*F/(B*D + B*F + D*F)",
         "intensity itself"},
        {"mlp-limit",
         {"T tokens each", "elements are bf16"},
         "6*B*T*D*F/(4*B*T*D + 4*B*T*F + 6*D*F)",
         "intensity itself"},
        {"parameters-formula",
         {"is tied", "and K KV", "is gated"},
         "L*(3*D*F + 2*D*N*H + 2*D*K*H)",
         "leaves out the embedding"},
        {"parameters-formula",
         {"not tied", "and K KV", "is gated"},
         "V*D + L*(3*D*F + 2*D*N*H + 2*D*K*H)",
         "leaves out the embedding"},
        {"parameters-formula",
         {"not tied", "and K KV", "is gated"},
         "L*(3*D*F + 2*D*N*H + 2*D*K*H)",
         "leaves out embedding and output head"},
        {"parameters-formula",
         {"not tied", "and K KV", "is gated"},
         "2*V*D + L*(3*D*F + 2*D^2 + 2*D*K*H)",
         "N*H need not be D"},
        {"parameters-formula",
         {"not tied", "as many KV", "is gated"},
         "2*V*D + L*(3*D*F + 4*D^2)",
         "N*H need not be D"},
        {"latency-formula", {"seconds of one step"}, "B*bw/(w + 4*B*S*L*K*H)", "the time of a step is asked"},
        {"latency-formula", {"tokens per second"}, "(w + 4*B*S*L*K*H)/bw", "tokens per second are asked"},
        {"latency-formula", {"seconds of one step"}, "(w + 4*B*S*K*H)/bw", "one layer"},
        {"attention-intensity",
         {"cached in bf16 (2 bytes an element), queries and outputs are fp32"},
         "S*T/(S + T)",
         "which formats"},
        {"attention-intensity", {"cached in fp8", "outputs are fp8"}, "S*T/(S + T)", "Or: "},
        {"mlp-flops", {"in all L layers", "T tokens each"}, "12*B*T*D*F*L", "too large by a constant factor"},
    };
    for (size_t i = 0; i < sizeof TYPICAL / sizeof TYPICAL[0]; i++) {
        size_t met = 0;
        for (uint64_t seed = 0; seed < 400 && met < 2; seed++) {
            struct fixture f = begin();
            const struct exercise_question q = ask(&f, TYPICAL[i].exercise, seed);
            bool says = true;
            for (size_t k = 0; k < 3 && TYPICAL[i].says[k]; k++) says &= strstr(q.text, TYPICAL[i].says[k]) != NULL;
            if (says) assert_hint(&f, &q, TYPICAL[i].answer, TYPICAL[i].hint);
            met += says;
            end(&f);
        }
        if (!met) fail_msg("%s, '%s': not met", TYPICAL[i].exercise, TYPICAL[i].answer);
    }
}

static void test_lecture(void **state)
{
    (void)state;
    size_t met = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct fixture f = begin();
        struct exercise_question q = ask(&f, "mlp-intensity", seed);
        if (strstr(q.text, "T tokens each") && strstr(q.text, "bf16")) {
            assert_right(&f, "mlp", &q, "3*B*D*F*T/(2*B*D*T + 2*B*F*T + 3*D*F)");
            met |= 1;
        }
        q = ask(&f, "mlp-limit", seed);
        if (strstr(q.text, "T tokens each") && strstr(q.text, "bf16")) {
            assert_right(&f, "mlp", &q, "B*T");
            met |= 2;
        }
        q = ask(&f, "attention-intensity", seed);
        if (strstr(q.text, "cached in bf16") && strstr(q.text, "outputs are bf16")) {
            assert_right(&f, "attention", &q, "S*T/(S + T)");
            assert_hint(&f, &q, "2*S*T/(S + 2*T)", "K and V");
            met |= 4;
        }
        q = ask(&f, "attention-phase", seed);
        if (strstr(q.text, "cached in bf16") && strstr(q.text, "outputs are bf16")) {
            const bool prefill = strstr(q.text, "prefilled") != NULL;
            assert_right(&f, "attention", &q, prefill ? "S/2" : "S/(S + 1)");
            met |= prefill ? 8 : 16;
        }
        q = ask(&f, "mlp-flops", seed);
        if (strstr(q.text, "T tokens each") && strstr(q.text, "one layer")) {
            assert_right(&f, "mlp", &q, "6*B*T*D*F");
            assert_hint(&f, &q, "4*B*T*D*F", "three");
            met |= 32;
        }
        q = ask(&f, "matmul-intensity", seed);
        if (strstr(q.text, "B x D") && strstr(q.text, "D x F") && strstr(q.text, "elements are bf16")) {
            assert_right(&f, "matmul", &q, "B*D*F/(B*D + B*F + D*F)");
            met |= 64;
        }
        end(&f);
    }
    assert_int_equal(met, 127);
}

/* ---- a class ---- */

static struct marks marked_with(struct arena *a, const char *json, int64_t class_seed, bool wins, enum err_code want,
                                const char *why)
{
    struct json j;
    struct marks m = {.rows_n = 0};
    struct err e = {0};
    assert_int_equal(json_parse(a, "class.json", json, strlen(json), &j, &e), ERR_OK);
    const enum err_code code = marks_grade(a, &j, class_seed, wins, &m, &e);
    if (code != want || (why && !strstr(e.text, why))) fail_msg("%s: %s", json, e.text);
    return m;
}

static struct marks marked(struct arena *a, const char *json, enum err_code want)
{
    return marked_with(a, json, 1, false, want, NULL);
}

/* The right answer to an exercise, as text. */
static const char *right_answer(struct arena *a, const char *name, uint64_t seed)
{
    struct fixture f = begin();
    char text[TEXT_MAX];
    const struct exercise_question q = ask(&f, name, seed);
    if (q.kind == EXERCISE_NUMBER)
        (void)snprintf(text, sizeof text, "%.17g", q.value);
    else
        (void)sym_print(q.answer, text, sizeof text);
    end(&f);
    return arena_strndup(a, text, strlen(text));
}

static void test_marks(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const char *at7 = right_answer(a, "ridge-cpu", 7), *at3 = right_answer(a, "ridge-cpu", 3),
               *at1 = right_answer(a, "ridge-cpu", 1);
    const char *own = right_answer(a, "ridge-cpu", (uint64_t)exercise_student_seed(1, "eve"));
    const struct marks m =
        marked(a,
               arena_printf(
                   a,
                   "{\"seed\": 7, \"answers\": ["
                   "{\"student\": \"ada\", \"exercise\": \"ridge-cpu\", \"answer\": \"%s\"},"
                   "{\"student\": \"bob\", \"exercise\": \"ridge-cpu\", \"answer\": %s, \"seed\": 3},"
                   "{\"student\": \"ada\", \"exercise\": 7, \"answer\": \"-1\"},"
                   "{\"student\": \"eve\", \"exercise\": \"ridge-cpu\", \"answer\": \"%s\", \"seed\": \"by-student\"},"
                   "{\"student\": \"eve\", \"exercise\": \"ridge-cpus\", \"answer\": \"1\"},"
                   "{\"student\": \"eve\", \"exercise\": \"ridge-cpu\", \"answer\": \"1\", \"seed\": -4},"
                   "{\"student\": \"eve\", \"exercise\": \"ridge-cpu\", \"answer\": [1]},"
                   "{\"student\": null, \"exercise\": \"ridge-cpu\", \"answer\": 1}, {}, null, 17]}",
                   at7, at3, own),
               ERR_OK);
    assert_int_equal(m.rows_n, 11);
    static const bool RIGHT[11] = {true, true, false, true};
    for (size_t i = 0; i < 11; i++) {
        assert_true(m.rows[i].right == RIGHT[i]);
        assert_true(RIGHT[i] == !m.rows[i].hint);
    }
    assert_int_equal(m.rows[1].seed, 3);
    assert_string_equal(m.rows[2].exercise, "bound");
    assert_non_null(strstr(m.rows[4].hint, "did you mean ridge-cpu"));
    assert_non_null(strstr(m.rows[5].hint, "answers[5].seed"));
    assert_non_null(strstr(m.rows[6].hint, "answers[6].answer"));
    assert_int_equal(m.students_n, 3);
    assert_string_equal(m.students[0].student, "ada");
    assert_true(m.students[0].right == 1 && m.students[0].of == 2);
    assert_true(m.students[1].right == 1 && m.students[1].of == 1);
    assert_true(m.students[2].right == 1 && m.students[2].of == 4);

    (void)marked(a, "{\"ada\": {\"bound\": 3}, \"answers\": {\"x\": 1}}", ERR_INPUT); /* ada is no member beside it */
    const struct marks bare =
        marked(a, arena_printf(a, "{\"ada\": {\"ridge-cpu\": \"%s\", \"bound\": 3}, \"bob\": 4}", at1), ERR_OK);
    assert_int_equal(bare.rows_n, 3);
    assert_true(bare.rows[0].right && !bare.rows[1].right && !bare.rows[2].right);
    assert_int_equal(bare.students_n, 2);
    const struct marks by = marked(
        a, arena_printf(a, "{\"seed\": \"by-student\", \"answers\": {\"eve\": {\"ridge-cpu\": \"%s\"}}}", own), ERR_OK);
    assert_true(by.rows[0].right);
    static const char *const WRONG[] = {"[]",
                                        "3",
                                        "{}",
                                        "{\"answers\": 3}",
                                        "{\"answers\": null}",
                                        "{\"seed\": -1, \"answers\": []}",
                                        "{\"seed\": \"mine\", \"answers\": []}",
                                        "{\"awnsers\": [1]}",
                                        "{\"answers\": []}",
                                        "{\"answers\": {}}",
                                        "\"x\"",
                                        "null"};
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) (void)marked(a, WRONG[i], ERR_INPUT);
    arena_close(a);
}

/* What was asked is what sums are out of; nothing counts twice, and nothing is lost without a word. */
static void test_marks_of_what_was_asked(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const char *right = right_answer(a, "ridge-cpu", 7);
    struct marks m =
        marked(a,
               arena_printf(a,
                            "{\"seed\": 7, \"exercises\": [\"ridge-cpu\", 7, \"mlp-flops\"], \"answers\": "
                            "{\"ada\": {\"6\": \"%s\", \"ridge-cpu\": \"%s\", \"1\": \"x\"}, \"bob\": {}}}",
                            right, right),
               ERR_OK);
    assert_int_equal(m.students_n, 2);
    assert_string_equal(m.students[1].student, "bob");
    assert_true(m.students[0].right == 1 && m.students[0].of == 3 && m.students[1].right == 0 && m.students[1].of == 3);
    /* three that were given, then two and three that were not */
    assert_int_equal(m.rows_n, 8);
    assert_true(m.rows[0].right && !m.rows[1].right && !m.rows[2].right);
    assert_non_null(strstr(m.rows[1].hint, "a second answer"));
    assert_non_null(strstr(m.rows[2].hint, "not among"));
    for (size_t i = 3; i < 8; i++) {
        assert_string_equal(m.rows[i].hint, "no answer");
        assert_string_equal(m.rows[i].student, i < 5 ? "ada" : "bob");
        assert_int_equal(m.rows[i].seed, 7);
        assert_null(m.rows[i].answer);
    }
    assert_string_equal(m.rows[3].exercise, "bound");
    assert_string_equal(m.rows[5].exercise, "ridge-cpu");

    /* without a list out of what was handed in, once each, "1" and its name being one */
    m = marked(a, "{\"ada\": {\"1\": \"x\", \"matmul-intensity\": \"y\", \"2\": \"z\"}, \"bob\": {}}", ERR_OK);
    assert_true(m.students[0].of == 2 && m.students[0].right == 0 && m.students[1].of == 0 && m.rows_n == 3);
    /* a second right answer adds nothing, in a list of entries either, whatever the seed */
    m = marked(a,
               arena_printf(a,
                            "{\"seed\": 7, \"answers\": ["
                            "{\"student\": \"ada\", \"exercise\": 6, \"answer\": \"%s\"},"
                            "{\"student\": \"bob\", \"exercise\": 6, \"answer\": \"%s\"},"
                            "{\"student\": \"ada\", \"exercise\": \"ridge-cpu\", \"answer\": \"%s\"}]}",
                            right, right, right),
               ERR_OK);
    assert_true(m.rows[0].right && m.rows[1].right && !m.rows[2].right);
    assert_true(m.students[0].of == 1 && m.students[0].right == 1 && m.students[1].of == 1);

    /* a seed typed on the command line wins over the file's, not over an answer's own */
    const char *file = arena_printf(a,
                                    "{\"seed\": 3, \"answers\": ["
                                    "{\"student\": \"ada\", \"exercise\": 6, \"answer\": \"%s\"},"
                                    "{\"student\": \"bob\", \"exercise\": 6, \"answer\": \"%s\", \"seed\": 3}]}",
                                    right, right);
    m = marked_with(a, file, 7, true, ERR_OK, NULL);
    assert_true(m.rows[0].right && m.rows[0].seed == 7 && m.rows[1].seed == 3);
    m = marked_with(a, file, 7, false, ERR_OK, NULL);
    assert_true(!m.rows[0].right && m.rows[0].seed == 3);

    static const struct {
        const char *json, *why;
    } WRONG[] = {
        {"{\"Seed\": 3, \"answers\": {\"ada\": {}}}", "unknown member \"Seed\"; did you mean seed"},
        {"{\"Seed\": 3, \"ada\": {}}", "found a member \"Seed\""},
        {"{\"exercises\": [1], \"ada\": {}}", "found a member \"exercises\""},
        {"{\"exercises\": [\"ridge-cpus\"], \"answers\": {\"ada\": {}}}", "exercises[0]: no exercise 'ridge-cpus'"},
        {"{\"exercises\": [\"ridge-cpu\", 6], \"answers\": {\"ada\": {}}}", "exercises[1]: ridge-cpu is there twice"},
        {"{\"exercises\": [], \"answers\": {\"ada\": {}}}", "a list of exercises"},
        {"{\"exercises\": null, \"answers\": {\"ada\": {}}}", "a list of exercises"},
        {"{\"answers\": []}", "at least one answer"},
        {"{\"answers\": {}}", "students with their answers"},
    };
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++)
        (void)marked_with(a, WRONG[i].json, 1, false, ERR_INPUT, WRONG[i].why);
    m = marked(a, "{\"answers\": [{\"student\": \"ada\", \"exercise\": 6, \"anwser\": 1, \"answer\": 2}]}", ERR_OK);
    assert_non_null(strstr(m.rows[0].hint, "unknown member \"anwser\"; did you mean answer"));
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_coinciding),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_bytes_and_counts),
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_against_counts),
        cmocka_unit_test(test_batch_meets_ridge),
        cmocka_unit_test(test_batch_slips),
        cmocka_unit_test(test_lecture),
        cmocka_unit_test(test_typical),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_marks_of_what_was_asked),
        cmocka_unit_test(test_every_exercise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
