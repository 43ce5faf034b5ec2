/* Exercises: all of them with many seeds, and their table. Linked with the embedded files of the build. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/draws.h"
#include "tests/exercises.h"

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
    {UNITS_COUNT_PER_S, "", "", 1},
    {UNITS_COUNT_PER_S, "", " 1/s", 1},
    {UNITS_COUNT_PER_S, "", "/min", 1.0 / 60},
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

/* What a question asks and what is right, as text: those that ask the same must want the same. */
struct asked {
    const char *text, *wants;
};

static struct asked asked(struct arena *kept, const struct exercise_question *q)
{
    char answer[TEXT_MAX] = "";
    if (q->kind == EXERCISE_FORMULA) assert_true(sym_print(q->answer, answer, sizeof answer) < sizeof answer);
    const struct asked r = {
        arena_printf(kept, "%s", q->text),
        arena_printf(kept, "%.12g, choice %zu, %zu slips, %s", q->value, (size_t)q->right, q->slips_n, answer)};
    assert_true(r.text && r.wants);
    return r;
}

/* Asked again in a place of its own, it is the same question. */
static void check_again(const struct exercise *x, uint64_t seed, const struct exercise_question *q, const char *wants)
{
    struct fixture f = begin();
    struct exercise_question twice;
    struct err e = {0};
    assert_int_equal(exercise_ask(f.a, f.c, x, seed, &twice, &e), ERR_OK);
    assert_string_equal(q->text, twice.text);
    assert_string_equal(wants, asked(f.a, &twice).wants);
    end(&f);
}

/* A question that comes again is graded as before: only the first of its kind is answered, and asked twice. */
static void check_seeds(size_t at, size_t seeds)
{
    const struct exercise *x = exercise_at(at);
    struct asked all[SEEDS];
    size_t different = 0;
    bool drawn = true; /* numbers, not only which formula */
    struct arena *kept = arena_open();
    for (size_t s = 0; s < seeds; s++) {
        struct fixture f = begin();
        struct exercise_question q;
        struct err e = {0};
        if (exercise_ask(f.a, f.c, x, s, &q, &e) != ERR_OK) fail_msg("%s, seed %zu: %s", x->name, s, e.text);
        all[s] = asked(kept, &q);
        drawn = q.kind != EXERCISE_FORMULA;
        size_t i = 0;
        while (i < s && strcmp(all[i].text, all[s].text) != 0) i++;
        if (i < s) {
            assert_string_equal(all[i].wants, all[s].wants);
        } else {
            check_again(x, s, &q, all[s].wants);
            check_form(x->name, &q);
            check_sample(&f, x->name, &q);
            check_right(&f, x->name, &q);
            check_slips(&f, x->name, &q);
            if (different < 20) check_off(&f, x->name, &q);
            if (different++ == 0) check_hostile(&f, x->name, &q);
        }
        end(&f);
    }
    arena_close(kept);
    if (different < (drawn ? 5 : 2)) fail_msg("%s: only %zu different questions", x->name, different);
}

static void test_every_exercise(void **state)
{
    (void)state;
    assert_true(exercise_count() >= 9);
    for (size_t i = 0; i < exercise_count(); i++) check_seeds(i, draws(SEEDS));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_every_exercise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
