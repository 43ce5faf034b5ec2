#include <stdio.h>
#include <string.h>

#include "calc/learn/grade.h"
#include "calc/sym/normal.h"
#include "calc/sym/parse.h"

enum { SYMBOLS_MAX = 16, TEXT_MAX = 200 };

/* Refusals of algebra (too large, division by zero) are the answer's fault; anything else is ours. */
static bool is_refusal(enum err_code code) { return code == ERR_RANGE || code == ERR_NO; }

static bool has_symbol(const struct sym *e) { return !sym_constant(e, NULL); }

/* The value of r where every symbol is 1, as an expression. */
static const struct sym *at_ones(const struct grade *g, const struct sym *r)
{
    struct sym_binding env[SYMBOLS_MAX];
    for (size_t i = 0; i < g->q->symbols_n; i++) env[i] = (struct sym_binding){g->q->symbols[i], sym_int(g->c, 1)};
    return sym_bind(g->c, r, env, g->q->symbols_n);
}

/* Whether r is coefficient * product of symbols to whole powers: x * r' / r is then a number for every symbol x. */
static enum err_code read_monomial(const struct grade *g, const struct sym *r, double power[SYMBOLS_MAX], bool *is,
                                   struct err *e)
{
    *is = false;
    for (size_t i = 0; i < g->q->symbols_n; i++) {
        const struct sym *d, *k, *x = g->q->symbols[i];
        struct err refused;
        enum err_code code = sym_diff(g->c, r, x, &d, &refused);
        if (code == ERR_OK) code = sym_normal(g->c, sym_div(g->c, sym_mul(g->c, x, d), r), &k, &refused);
        if (is_refusal(code)) return ERR_OK;
        if (code != ERR_OK) {
            *e = refused;
            return code;
        }
        if (!sym_constant(k, &power[i])) return ERR_OK;
    }
    *is = true;
    return ERR_OK;
}

/* Off by a number: answer = ratio * expected. */
static enum err_code say_number(const struct grade *g, const struct sym *ratio, struct exercise_verdict *out,
                                struct err *e)
{
    char text[TEXT_MAX];
    double x;
    (void)sym_constant(ratio, &x);
    const bool sign = x<0, more = x> 1 || x < -1;
    if (x == -1) return grade_wrong(g, out, e, "off by the sign");
    const struct sym *factor = more ? ratio : sym_div(g->c, sym_int(g->c, 1), ratio);
    if (sign) factor = sym_mul(g->c, sym_int(g->c, -1), factor);
    (void)sym_print(factor, text, sizeof text);
    return grade_wrong(g, out, e, "%s by a factor of exactly %s%s", more ? "too large" : "too small", text,
                       sign ? ", and of the wrong sign" : "");
}

/* How many symbols the answer depends on. */
static size_t count_symbols(const struct grade *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->q->symbols_n; i++) {
        const struct sym_binding one = {g->q->symbols[i], sym_int(g->c, 1)};
        n += sym_bind(g->c, g->q->answer, &one, 1) != g->q->answer;
    }
    return n;
}

/* Off by a product of symbols: said when it has fewer of them than the answer, which it would give away otherwise. */
static enum err_code say_monomial(const struct grade *g, const struct sym *ratio, const double *power, bool *said,
                                  struct exercise_verdict *out, struct err *e)
{
    char text[TEXT_MAX];
    size_t up = 0, down = 0;
    for (size_t i = 0; i < g->q->symbols_n; i++) {
        up += power[i] > 0;
        down += power[i] < 0;
    }
    *said = up + down <= 2 && up + down < count_symbols(g);
    if (!*said) return ERR_OK;
    const struct sym *shown = ratio;
    const char *how = "off by";
    if (down == 0) how = "too large by";
    if (up == 0) {
        how = "too small by";
        TRY(sym_normal(g->c, sym_div(g->c, sym_int(g->c, 1), ratio), &shown, e));
    }
    (void)sym_print(shown, text, sizeof text);
    return grade_wrong(g, out, e, "%s a factor of %s", how, text);
}

/* The factor between the answer and what is right; *said when it is one that helps. */
static enum err_code say_factor(const struct grade *g, const struct sym *given, bool *said,
                                struct exercise_verdict *out, struct err *e)
{
    const struct sym *ratio;
    double power[SYMBOLS_MAX], x;
    bool monomial;
    *said = false;
    if (sym_constant(given, &x) && x == 0) return ERR_OK;
    TRY(sym_normal(g->c, sym_div(g->c, given, g->q->answer), &ratio, e));
    if (sym_constant(ratio, NULL)) {
        *said = true;
        return say_number(g, ratio, out, e);
    }
    TRY(read_monomial(g, ratio, power, &monomial, e));
    if (!monomial) return ERR_OK;
    double coefficient;
    if (!sym_constant(at_ones(g, ratio), &coefficient)) return ERR_OK;
    return say_monomial(g, ratio, power, said, out, e);
}

static enum err_code say_counterexample(const struct grade *g, const struct sym *given, struct exercise_verdict *out,
                                        struct err *e)
{
    struct sym_point x;
    char at[TEXT_MAX] = "", number[64];
    double value[2] = {0, 0};
    TRY(sym_counterexample(g->c, given, g->q->answer, &x, e));
    for (size_t i = 0; i < x.n; i++) {
        const size_t n = strlen(at);
        (void)sym_print(x.at[i].value, number, sizeof number);
        (void)snprintf(at + n, sizeof at - n, "%s%s = %s", i ? ", " : "", sym_name(x.at[i].var), number);
    }
    for (size_t i = 0; i < 2; i++) (void)sym_constant(x.value[i], &value[i]);
    return grade_wrong(g, out, e, "at %s this gives %.6g, and it should be %.6g", at, value[0], value[1]);
}

static enum err_code compare(const struct grade *g, const struct sym *given, struct exercise_verdict *out,
                             struct err *e)
{
    bool said;
    TRY(sym_equal(g->c, given, g->q->answer, &out->right, e));
    if (out->right) return ERR_OK;
    for (size_t i = 0; i < g->q->slips_n; i++) {
        bool is;
        TRY(sym_equal(g->c, given, g->q->slips[i].formula, &is, e));
        if (is) return grade_wrong(g, out, e, "%s", g->q->slips[i].hint);
    }
    if (!has_symbol(given) && has_symbol(g->q->answer))
        return grade_wrong(g, out, e, "a number; what is asked depends on the symbols: %s", g->q->form);
    TRY(say_factor(g, given, &said, out, e));
    return said ? ERR_OK : say_counterexample(g, given, out, e);
}

enum err_code grade_formula(const struct grade *g, struct exercise_verdict *out, struct err *e)
{
    struct parse_symbol symbols[SYMBOLS_MAX];
    size_t equals;
    const char *text = grade_right_side(g->text, &equals);
    const struct sym *given, *normal;
    struct err refused;
    if (equals > 1) return grade_wrong(g, out, e, "more than one '=': give the last expression alone");
    for (size_t i = 0; i < g->q->symbols_n; i++)
        symbols[i] = (struct parse_symbol){sym_name(g->q->symbols[i]), g->q->symbols[i]};
    const struct parse_names names = {.symbols = symbols, .n_symbols = g->q->symbols_n};
    enum err_code code = sym_parse(g->c, text, strlen(text), &names, &given, NULL, &refused);
    if (code == ERR_USAGE || code == ERR_RANGE) return grade_wrong(g, out, e, "cannot be read: %s", refused.text);
    if (code == ERR_OK) code = sym_normal(g->c, given, &normal, &refused);
    if (code == ERR_OK) {
        char *shown = arena_alloc(g->arena, TEXT_MAX);
        if (!shown) return err_nomem(e);
        (void)sym_print(normal, shown, TEXT_MAX);
        out->given = shown;
        code = compare(g, given, out, &refused);
    }
    if (is_refusal(code)) return grade_wrong(g, out, e, "cannot be compared: %s", refused.text);
    if (code != ERR_OK && e) *e = refused;
    return code;
}
