#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/sym/print_piece.h"

/* its text, or may: of a product too long to be flat it is not looked up */
static bool begins_with_digit(const struct sym *e)
{
    for (int i = 0; i < SYM_BLOCK && e->op == SYM_MUL; i++) e = e->a;
    if (e->op == SYM_POW) e = e->a;
    return e->op == SYM_MUL || (e->op == SYM_CONST && !print_has_denominator(e));
}

/* 2.5e-07 is 2.5 \cdot 10^{-7} */
static bool is_scientific(const struct sym *e)
{
    char text[32];
    if (!print_is_decimal(e) || !isfinite(e->value)) return false;
    print_decimal(e, text, sizeof text);
    return strchr(text, 'e') != NULL;
}

static bool is_atom(const struct sym *e)
{
    switch (sym_op(e)) {
    case SYM_VAR:
    case SYM_MIN:
    case SYM_MAX:
    case SYM_CEIL:
    case SYM_FLOOR: return true;
    case SYM_CONST: return !e->minus && !print_has_denominator(e) && !is_scientific(e);
    case SYM_ADD:
    case SYM_MUL:
    case SYM_DIV:
    case SYM_POW:
    case SYM_LOG: /* \log(x)^2 would be read as the logarithm of a square */
    case SYM_EXP: break;
    }
    return false;
}

static void add_operand(struct pieces *p, const struct sym *e, bool parenthesised)
{
    if (parenthesised) print_text(p, "\\left(");
    print_expr(p, e, false);
    if (parenthesised) print_text(p, "\\right)");
}

static void add_factor(struct pieces *p, const struct sym *e) { add_operand(p, e, e->op == SYM_ADD || e->minus); }

static void add_times(struct pieces *p, const struct sym *next)
{
    print_text(p, begins_with_digit(next) ? " \\cdot " : " ");
}

static void add_integer(struct pieces *p, uint64_t n)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    print_text(p, text);
}

/* |numerator| of a constant, or its decimal */
static void add_magnitude(struct pieces *p, const struct sym *e)
{
    char text[32];
    if (!print_is_decimal(e)) {
        add_integer(p, rat_magnitude(e->num));
        return;
    }
    print_decimal(e, text, sizeof text);
    char *exponent = strchr(text, 'e');
    if (!isfinite(e->value)) {
        print_text(p, isnan(e->value) ? "\\mathrm{NaN}" : "\\infty");
    } else if (!exponent) {
        print_text(p, text);
    } else {
        *exponent++ = '\0';
        const bool minus = *exponent == '-';
        exponent += minus || *exponent == '+';
        print_text(p, text);
        print_text(p, minus ? " \\cdot 10^{-" : " \\cdot 10^{");
        print_text(p, exponent + strspn(exponent, "0"));
        print_text(p, "}");
    }
}

static void add_constant(struct pieces *p, const struct sym *e)
{
    if (print_has_denominator(e)) print_text(p, "\\frac{");
    add_magnitude(p, e);
    if (!print_has_denominator(e)) return;
    print_text(p, "}{");
    add_integer(p, (uint64_t)e->den);
    print_text(p, "}");
}

static void add_scaled(struct pieces *p, const struct sym *k, const struct sym *m)
{
    const bool unit = !print_is_decimal(k) && rat_magnitude(k->num) == 1, below = print_has_denominator(k);
    const struct sym *over = below && m->op == SYM_DIV ? m->a : m;
    if (below) print_text(p, "\\frac{");
    if (!unit) {
        add_magnitude(p, k);
        add_times(p, over);
    }
    if (unit && below)
        print_expr(p, over, false);
    else
        add_factor(p, over);
    if (!below) return;
    print_text(p, "}{");
    add_integer(p, (uint64_t)k->den);
    if (over != m) {
        add_times(p, m->b);
        add_factor(p, m->b);
    }
    print_text(p, "}");
}

/* equal factors are neighbours: S S is S^{2} */
static void add_product(struct pieces *p, const struct sym *e)
{
    const struct sym *f[SYM_BLOCK] = {e->a, e->b};
    const size_t n = sym_n_factors(e) > 1 ? sym_factors(e, f) : 2;
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && f[j] == f[i];) j++;
        if (i) add_times(p, f[i]);
        if (j - i == 1) {
            add_factor(p, f[i]);
            continue;
        }
        char text[32];
        add_operand(p, f[i], !is_atom(f[i]));
        (void)snprintf(text, sizeof text, "^{%zu}", j - i);
        print_text(p, text);
    }
}

static void add_around(struct pieces *p, const char *before, const struct sym *e, const char *after)
{
    print_text(p, before);
    print_expr(p, e->a, false);
    if (e->b) {
        print_text(p, ", ");
        print_expr(p, e->b, false);
    }
    print_text(p, after);
}

void print_latex_pieces(struct pieces *p, const struct sym *e, bool bare, enum sym_style style)
{
    (void)style;
    if (print_takes_minus(e) && !bare) print_text(p, "-");
    switch (sym_op(e)) {
    case SYM_CONST: add_constant(p, e); break;
    case SYM_VAR: print_expr(p, e, false); break;
    case SYM_ADD: print_sum(p, e, bare); break;
    case SYM_MUL:
        if (e->a->op == SYM_CONST)
            add_scaled(p, e->a, e->b);
        else
            add_product(p, e);
        break;
    case SYM_DIV:
        print_text(p, "\\frac{");
        print_expr(p, e->a, e->minus);
        print_text(p, "}{");
        print_expr(p, e->b, false);
        print_text(p, "}");
        break;
    case SYM_POW:
        add_operand(p, e->a, !is_atom(e->a));
        print_text(p, "^{");
        print_expr(p, e->b, false);
        print_text(p, "}");
        break;
    case SYM_MIN: add_around(p, "\\min\\left(", e, "\\right)"); break;
    case SYM_MAX: add_around(p, "\\max\\left(", e, "\\right)"); break;
    case SYM_CEIL: add_around(p, "\\left\\lceil ", e, " \\right\\rceil"); break;
    case SYM_FLOOR: add_around(p, "\\left\\lfloor ", e, " \\right\\rfloor"); break;
    case SYM_LOG: add_around(p, "\\log\\left(", e, "\\right)"); break;
    case SYM_EXP: add_around(p, "\\exp\\left(", e, "\\right)"); break;
    }
}

/* ---- names ---- */

static bool put(struct print_sink *s, const char *text) { return print_put(s, text, strlen(text)); }

static bool is_greek(const char *name)
{
    static const char *const GREEK[] = {"alpha", "beta",  "gamma",  "delta", "epsilon", "zeta", "eta", "theta",
                                        "iota",  "kappa", "lambda", "mu",    "nu",      "xi",   "pi",  "rho",
                                        "sigma", "tau",   "phi",    "chi",   "psi",     "omega"};
    for (size_t i = 0; i < sizeof GREEK / sizeof GREEK[0]; i++)
        if (strcmp(name, GREEK[i]) == 0) return true;
    return false;
}

/* letters and digits as they are, the characters special to LaTeX escaped */
static bool put_word(struct print_sink *s, const char *word, size_t n)
{
    static const char SPECIAL[] = "_#$%&{}";
    for (size_t i = 0; i < n; i++) {
        const char *c = &word[i];
        if (*c == '\\' || *c == '~' || *c == '^') {
            if (!put(s, *c == '\\' ? "\\textbackslash{}" : *c == '~' ? "\\textasciitilde{}" : "\\textasciicircum{}"))
                return false;
            continue;
        }
        if (memchr(SPECIAL, *c, sizeof SPECIAL - 1) && !put(s, "\\")) return false;
        if (!print_put(s, c, 1)) return false;
    }
    return true;
}

static bool put_part(struct print_sink *s, const char *word, size_t n, bool upright)
{
    return (!upright || put(s, "\\mathrm{")) && put_word(s, word, n) && (!upright || put(s, "}"));
}

/* b_kv is b with the subscript kv; further underscores belong to the subscript */
bool print_latex_name(struct print_sink *s, const char *name)
{
    const char *low = strchr(name, '_');
    if (is_greek(name)) return put(s, "\\") && put(s, name);
    if (!low || low == name || !low[1]) return put_part(s, name, strlen(name), name[0] && name[1]);
    const size_t n = (size_t)(low - name);
    return put_part(s, name, n, n > 1) && put(s, "_{") && put_part(s, low + 1, strlen(low + 1), true) && put(s, "}");
}
