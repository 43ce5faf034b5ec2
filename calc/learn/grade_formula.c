#include <stdio.h>
#include <string.h>

#include "calc/learn/grade_values.h"
#include "calc/sym/normal.h"
#include "calc/sym/parse.h"

enum { SHOWN_MAX = 200, PRINTED_MAX = 4096 };

/* Refusals of algebra (too large, division by zero) are the answer's fault; anything else is ours. */
static bool is_refusal(enum err_code code) { return code == ERR_RANGE || code == ERR_NO; }

/* What the reader refuses is the answer's fault too. */
static bool is_unread(enum err_code code) { return code == ERR_USAGE || code == ERR_RANGE; }

/* ---- reading ---- */

/* text in the question's symbols; any_case: a letter stands for a symbol of the other case too, where that is no symbol
 * of its own. */
static enum err_code read_in_case(const struct grade *g, const char *text, bool any_case, const struct sym **out,
                                  struct err *e)
{
    struct parse_symbol symbols[2 * GRADE_SYMBOLS_MAX];
    char other[GRADE_SYMBOLS_MAX][2];
    size_t n = 0;
    for (size_t i = 0; i < g->q->symbols_n; i++)
        symbols[n++] = (struct parse_symbol){sym_name(g->q->symbols[i]), g->q->symbols[i]};
    for (size_t i = 0; i < g->q->symbols_n && any_case; i++) {
        const char *name = sym_name(g->q->symbols[i]), letter = *name;
        if (name[1] || !((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z'))) continue;
        other[i][0] = (char)(letter ^ ('a' ^ 'A'));
        other[i][1] = '\0';
        symbols[n++] = (struct parse_symbol){other[i], g->q->symbols[i]}; /* of two equal ones the first counts */
    }
    const struct parse_names names = {.symbols = symbols, .n_symbols = n};
    return sym_parse(g->c, text, strlen(text), &names, out, NULL, e);
}

static enum err_code read_expression(const struct grade *g, const char *text, const struct sym **out, struct err *e)
{
    return read_in_case(g, text, false, out, e);
}

/* A unit without its brackets, and as plain text. */
static const char *plain_unit(const struct grade *g, const char *text)
{
    char *unit = arena_strndup(g->arena, text, strlen(text));
    if (!unit) return NULL;
    grade_plain_units(unit);
    while (*unit == ' ' || *unit == '(' || *unit == '[') unit++;
    size_t n = strlen(unit);
    while (n && strchr(" )].", unit[n - 1])) unit[--n] = '\0';
    return unit;
}

/* Where a unit may begin: behind a blank, or at a word that LaTeX sets upright. */
static bool may_begin_unit(const char *text, size_t i)
{
    return text[i] == ' ' || strncmp(text + i, "\\,", 2) == 0 || strncmp(text + i, "\\text{", 6) == 0 ||
           strncmp(text + i, "\\mathrm{", 8) == 0;
}

/* An expression with the unit of its values behind it; *why: what is wrong with that. ERR_USAGE: it is none. */
static enum err_code read_with_unit(const struct grade *g, const char *text, const struct sym **out, const char **why,
                                    struct err *e)
{
    *why = NULL;
    for (size_t i = strlen(text); i-- > 1;) {
        enum units_kind kind;
        double factor;
        if (!may_begin_unit(text, i)) continue;
        const char *unit = plain_unit(g, text + i), *front = arena_strndup(g->arena, text, i);
        if (front) front = grade_plain(g->arena, front); /* $...$ flop/byte */
        if (!unit || !front) return err_nomem(e);
        if (!units_read_word(unit, strlen(unit), g->q->unit, g->q->things, &kind, &factor)) continue;
        const enum err_code code = read_expression(g, front, out, e);
        if (is_unread(code)) continue;
        TRY(code);
        if (kind != g->q->unit && g->q->unit != UNITS_NONE)
            *why =
                arena_printf(g->arena, "%s was asked; this is %s", units_kind_name(g->q->unit), units_kind_name(kind));
        else if (factor != 1)
            *why = "the unit behind a formula has no prefix: give the formula alone";
        return ERR_OK;
    }
    return ERR_USAGE;
}

/* The last side as an expression; *why one sentence when it is none. */
static enum err_code read_answer(const struct grade *g, const char *text, const struct sym **out, const char **why,
                                 struct err *e)
{
    const struct sym *other;
    struct err refused, ignored;
    *why = NULL;
    const enum err_code code = read_expression(g, text, out, &refused);
    if (!is_unread(code)) {
        if (code != ERR_OK && e) *e = refused;
        return code;
    }
    const enum err_code with_unit = read_with_unit(g, text, out, why, e);
    if (with_unit != ERR_USAGE) return with_unit;
    if (read_in_case(g, text, true, &other, &ignored) == ERR_OK)
        *why = arena_printf(g->arena, "case counts: what is asked is %s", g->q->form);
    else
        *why = arena_printf(g->arena, "cannot be read: %s", refused.text);
    return *why ? ERR_OK : err_nomem(e);
}

/* A side in front of the last: a name that is no expression, or what is equal to the last. */
static enum err_code check_side(const struct grade *g, const char *side, bool first, const struct sym *last,
                                const char **why, struct err *e)
{
    const struct sym *s;
    struct err refused;
    enum sym_verdict verdict = SYM_VERDICT_DIFFER;
    *why = NULL;
    enum err_code code = read_expression(g, side, &s, &refused);
    if (is_unread(code)) {
        if (!first || !grade_is_label(side))
            *why = arena_printf(g->arena, "what is in front of '=' cannot be read: %s", refused.text);
        return ERR_OK;
    }
    if (code == ERR_OK) code = sym_compare(g->c, s, last, &verdict, NULL, &refused);
    if (code == ERR_NOMEM || code == ERR_IO) {
        if (e) *e = refused;
        return code;
    }
    if (verdict != SYM_VERDICT_EQUAL) *why = "the sides of '=' are not equal: give one expression";
    return ERR_OK;
}

/* ---- comparing ---- */

/* What the algebra may not have seen through. */
static const char *atoms_of(const struct grade *g, const struct sym *e)
{
    static const char *const ATOMS[][2] = {{"sqrt(", "square roots"}, {"^(", "powers that are not whole"},
                                           {"log(", "logarithms"},    {"exp(", "exponentials"},
                                           {"min(", "min"},           {"max(", "max"},
                                           {"ceil(", "ceil"},         {"floor(", "floor"}};
    char *text = arena_alloc(g->arena, PRINTED_MAX);
    const char *all = "";
    if (!text) return NULL;
    (void)sym_print(e, text, PRINTED_MAX);
    for (size_t i = 0; i < sizeof ATOMS / sizeof ATOMS[0] && all; i++)
        if (strstr(text, ATOMS[i][0])) all = arena_printf(g->arena, "%s%s%s", all, *all ? ", " : "", ATOMS[i][1]);
    return all && !*all ? "powers of sums" : all;
}

static enum err_code say_unproved(const struct grade *g, const struct sym *given, struct exercise_verdict *out,
                                  struct err *e)
{
    const char *atoms = atoms_of(g, given);
    if (!atoms) return err_nomem(e);
    return grade_wrong(g, out, e,
                       "this gives the right values wherever it was tried, but could not be proved equal: write it "
                       "without %s",
                       atoms);
}

/* The answer as read: in canonical form, or as it stands where that has not been worked out. */
static enum err_code show_given(const struct grade *g, const struct sym *given, bool canonical,
                                struct exercise_verdict *out, struct err *e)
{
    const struct sym *normal = given;
    char *shown = arena_alloc(g->arena, SHOWN_MAX);
    if (!shown) return err_nomem(e);
    if (canonical) TRY(sym_normal(g->c, given, &normal, e));
    (void)sym_print(normal, shown, SHOWN_MAX);
    out->given = shown;
    return ERR_OK;
}

/* Where the values differ a point proves it, and nothing is expanded; else algebra decides. */
static enum err_code decide(const struct grade *g, const struct sym *given, bool agree, enum sym_verdict *verdict,
                            struct err *e)
{
    struct sym_point point;
    *verdict = SYM_VERDICT_DIFFER;
    if (agree) return sym_compare(g->c, given, g->q->answer, verdict, NULL, e);
    const enum err_code code = sym_counterexample(g->c, given, g->q->answer, &point, e);
    return is_refusal(code) ? sym_compare(g->c, given, g->q->answer, verdict, NULL, e) : code;
}

static enum err_code compare(const struct grade *g, const struct sym *given, struct exercise_verdict *out,
                             struct err *e)
{
    struct err refused;
    enum sym_verdict verdict;
    struct grade_values *v = arena_alloc(g->arena, sizeof *v);
    if (!v) return err_nomem(e);
    TRY(grade_values_make(g, given, v, e));
    const enum err_code code = decide(g, given, grade_values_agree(v->given, v->right), &verdict, &refused);
    if (is_refusal(code)) return grade_wrong(g, out, e, "cannot be compared: %s", refused.text);
    if (code != ERR_OK) {
        if (e) *e = refused;
        return code;
    }
    out->right = verdict == SYM_VERDICT_EQUAL;
    TRY(show_given(g, given, out->right, out, e));
    if (out->right) return ERR_OK;
    return verdict == SYM_VERDICT_UNKNOWN ? say_unproved(g, given, out, e) : grade_values_say(v, out, e);
}

enum err_code grade_formula(const struct grade *g, struct exercise_verdict *out, struct err *e)
{
    const char *side[GRADE_SIDES_MAX], *why;
    const struct sym *given;
    const size_t n = grade_sides(g, side);
    if (n == 0) return err_nomem(e);
    TRY(read_answer(g, side[n - 1], &given, &why, e));
    for (size_t i = 0; i + 1 < n && !why; i++) TRY(check_side(g, side[i], i == 0, given, &why, e));
    if (why) return grade_wrong(g, out, e, "%s", why);
    return compare(g, given, out, e);
}
