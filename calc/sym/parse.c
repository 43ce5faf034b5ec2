#include "calc/sym/parse.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/sym/node.h"
#include "calc/sym/parse_grammar.h"
#include "calc/sym/parse_number.h"
#include "calc/sym/range.h"

enum { ARGUMENT_MAX = 256, WORD_MAX = 64, CLEAN_MAX = 80, SUPER_DIGITS = 6 };

static enum err_code parse_power(struct parser *p, int depth, const struct sym **out);

enum err_code parse_refuse(const struct parser *p, enum err_code code, size_t at, const char *what)
{
    return parse_fail(p->in, code, p->t.at[at], "", "%s", what);
}

enum err_code parse_unexpected(struct parser *p)
{
    const char c = parse_peek(p);
    const size_t offset = p->t.at[p->i];
    const char *s = p->in->text + offset;
    const size_t n = text_utf8_len(s, p->in->len - offset, NULL);
    char shown[8] = "?";
    switch (c) {
    case '\0': return parse_refuse(p, ERR_USAGE, p->i, "the text ends where an operand is wanted");
    case '=': return parse_refuse(p, ERR_USAGE, p->i, "an '=' that does not belong there");
    case ',': return parse_refuse(p, ERR_USAGE, p->i, "a comma outside min, max, pow and sum");
    case PARSE_SUPER: return parse_refuse(p, ERR_USAGE, p->i, "a second or misplaced superscript");
    default: break;
    }
    if (n) (void)text_clean(shown, sizeof shown, s, n);
    return parse_fail(p->in, ERR_USAGE, offset, "", "'%s' is not expected", shown);
}

static enum err_code deeper(const struct parser *p, int depth)
{
    if (depth <= PARSE_DEPTH_MAX) return ERR_OK;
    return parse_fail(p->in, ERR_RANGE, p->t.at[p->i], "", "more than %d nested brackets and exponents",
                      PARSE_DEPTH_MAX);
}

/* a run of signs: whether they amount to a minus */
static bool take_signs(struct parser *p)
{
    bool minus = false;
    for (char c = parse_peek(p); c == '-' || c == '+'; c = parse_peek(p)) {
        minus = minus != (c == '-');
        p->i++;
    }
    return minus;
}

static const struct sym *negated(struct parser *p, bool minus, const struct sym *e)
{
    return minus ? sym_mul(p->c, sym_int(p->c, -1), e) : e;
}

/* ---- checked arithmetic; at: where the operator is ---- */

static enum err_code quotient(struct parser *p, const struct sym *a, const struct sym *b, size_t at,
                              const struct sym **out)
{
    if (sym_is_int(b, 0)) return parse_refuse(p, ERR_RANGE, at, "a division by zero");
    *out = sym_div(p->c, a, b);
    return ERR_OK;
}

static enum err_code raised(struct parser *p, const struct sym *a, const struct sym *b, size_t at,
                            const struct sym **out)
{
    double n = 0.0;
    if (sym_constant(b, &n)) {
        if (!(fabs(n) <= (double)PARSE_EXPONENT_MAX))
            return parse_fail(p->in, ERR_RANGE, p->t.at[at], "", "an exponent beyond %d", PARSE_EXPONENT_MAX);
        if (n < 0.0 && sym_is_int(a, 0)) return parse_refuse(p, ERR_RANGE, at, "a negative power of zero");
    }
    *out = sym_pow(p->c, a, b);
    return ERR_OK;
}

/* ---- brackets and functions ---- */

enum err_code parse_close(struct parser *p, size_t open, char close)
{
    if (parse_peek(p) == close) {
        p->i++;
        return ERR_OK;
    }
    if (parse_peek(p)) return parse_unexpected(p);
    return parse_refuse(p, ERR_USAGE, open, "a bracket that is not closed");
}

/* the sum in brackets at p->i */
static enum err_code bracketed(struct parser *p, int depth, char close, const struct sym **out)
{
    const size_t open = p->i++;
    TRY(parse_sum(p, depth + 1, out));
    return parse_close(p, open, close);
}

static enum err_code parse_fraction(struct parser *p, int depth, const struct sym **out)
{
    const struct sym *x[2] = {NULL, NULL};
    const size_t at = p->i++;
    for (int k = 0; k < 2; k++) {
        if (parse_peek(p) != '{') return parse_refuse(p, ERR_USAGE, at, "\\frac without two arguments in braces");
        TRY(bracketed(p, depth, '}', &x[k]));
    }
    return quotient(p, x[0], x[1], at, out);
}

static const struct function {
    const char *name;
    enum sym_op op;
    size_t n_min, n_max;
} FUNCTIONS[] = {
    {"min", SYM_MIN, 2, SIZE_MAX}, {"max", SYM_MAX, 2, SIZE_MAX}, {"ceil", SYM_CEIL, 1, 1}, {"floor", SYM_FLOOR, 1, 1},
    {"pow", SYM_POW, 2, 2},        {"sqrt", SYM_POW, 1, 1},       {"log", SYM_LOG, 1, 1},   {"ln", SYM_LOG, 1, 1},
    {"exp", SYM_EXP, 1, 1},        {"sum", SYM_ADD, 4, 4},
};
enum { N_FUNCTIONS = sizeof FUNCTIONS / sizeof FUNCTIONS[0] };

static enum err_code apply(struct parser *p, const struct function *f, const struct sym *a, const struct sym *b,
                           size_t at, const struct sym **out)
{
    double x = 1.0;
    if (f->op == SYM_POW) return raised(p, a, b ? b : sym_rat(p->c, 1, 2), at, out);
    if (f->op == SYM_LOG && sym_constant(a, &x) && !(x > 0.0))
        return parse_refuse(p, ERR_RANGE, at, "a logarithm of what is not positive");
    if (f->op == SYM_EXP && sym_constant(a, &x) && !(fabs(x) <= (double)PARSE_EXPONENT_MAX))
        return parse_fail(p->in, ERR_RANGE, p->t.at[at], "", "an exponent beyond %d", PARSE_EXPONENT_MAX);
    *out = f->op == SYM_MIN     ? sym_min(p->c, a, b)
           : f->op == SYM_MAX   ? sym_max(p->c, a, b)
           : f->op == SYM_CEIL  ? sym_ceil(p->c, a)
           : f->op == SYM_FLOOR ? sym_floor(p->c, a)
           : f->op == SYM_LOG   ? sym_log(p->c, a)
                                : sym_exp(p->c, a);
    return ERR_OK;
}

/* \log{x} and \sqrt{x} are LaTeX, \min{x} is not */
static bool takes_braces(const struct function *f) { return f->op == SYM_LOG || f->op == SYM_EXP || f->op == SYM_POW; }

/* the arguments at the bracket, which is there */
static enum err_code parse_function(struct parser *p, int depth, const struct function *f, size_t name,
                                    const struct sym **out)
{
    const struct sym *r = NULL, *x = NULL;
    size_t n = 0;
    if (f->op == SYM_ADD) return parse_range_call(p, depth, name, out);
    const char close = parse_peek(p) == '{' ? '}' : ')';
    const size_t open = p->i;
    do {
        p->i++;
        TRY(parse_sum(p, depth + 1, &x));
        n++;
        if (n == 1)
            r = x;
        else if (n <= f->n_max)
            TRY(apply(p, f, r, x, name, &r));
    } while (parse_peek(p) == ',');
    TRY(parse_close(p, open, close));
    if (n < f->n_min || n > f->n_max)
        return parse_fail(p->in, ERR_USAGE, p->t.at[name], "", "%s of %zu argument%s, wanted %s", f->name, n,
                          n == 1 ? "" : "s",
                          f->n_max == 1   ? "one"
                          : f->n_max == 2 ? "two"
                                          : "two or more");
    if (f->n_max == 1) return apply(p, f, r, NULL, name, out);
    *out = r;
    return ERR_OK;
}

/* name(argument) of the caller's */
static enum err_code parse_call(struct parser *p, const char *name, size_t at, const struct sym **out)
{
    char argument[ARGUMENT_MAX];
    (void)parse_peek(p);
    const size_t open = p->i;
    size_t n = 0;
    for (p->i++; p->t.s[p->i] && p->t.s[p->i] != ')'; p->i++) {
        const char c = p->t.s[p->i];
        if (c == '(' || (c > 0 && c < ' '))
            return parse_refuse(p, ERR_USAGE, p->i, "an argument that is no plain text");
        if (n + 1 == sizeof argument) return parse_refuse(p, ERR_USAGE, p->i, "an argument that is too long");
        if (n || c != ' ') argument[n++] = c;
    }
    while (n && argument[n - 1] == ' ') n--;
    argument[n] = '\0';
    TRY(parse_close(p, open, ')'));
    if (n == 0) return parse_fail(p->in, ERR_USAGE, p->t.at[open], "", "%s of nothing", name);
    const struct sym *r = NULL;
    struct err e = {0};
    const enum err_code code = p->in->names->resolve(p->in->names->user, name, argument, &r, &e);
    if (code != ERR_OK) return parse_fail(p->in, code, p->t.at[at], "", "%s", e.text);
    *out = r;
    return ERR_OK;
}

/* ---- names ---- */

static bool before_bracket(const struct parser *p, size_t i, bool braces)
{
    while (p->t.s[i] == ' ') i++;
    return p->t.s[i] == '(' || (braces && p->t.s[i] == '{');
}

/* bytes of name, if it is at p->i and longer than best */
static size_t longer(const struct parser *p, const char *name, size_t best)
{
    const char *s = p->t.s + p->i;
    if (!name || name[0] != s[0]) return 0;
    const size_t n = strlen(name);
    return n > best && strncmp(name, s, n) == 0 ? n : 0;
}

static enum err_code unknown_name(struct parser *p)
{
    const struct parse_names *names = p->in->names;
    const char *s = p->t.s;
    size_t from = p->i, to = p->i;
    while (from > 0 && parse_is_name_char(s[from - 1])) from--;
    while (parse_is_name_char(s[to])) to++;
    char word[WORD_MAX], shown[CLEAN_MAX], within[CLEAN_MAX], hint[200];
    (void)snprintf(word, sizeof word, "%.*s", (int)(to - from < WORD_MAX ? to - from : WORD_MAX - 1), s + from);
    (void)text_clean(shown, sizeof shown, s + p->i, to - p->i);
    (void)text_clean(within, sizeof within, s + from, to - from);
    const char *const *calls = names->calls;
    (void)text_suggest(hint, sizeof hint, word, names->n_symbols ? &names->symbols[0].text : NULL,
                       sizeof names->symbols[0], names->n_symbols);
    if (!hint[0] && names->n_calls) (void)text_suggest(hint, sizeof hint, word, calls, sizeof *calls, names->n_calls);
    if (!hint[0]) (void)text_suggest(hint, sizeof hint, word, &FUNCTIONS[0].name, sizeof FUNCTIONS[0], N_FUNCTIONS);
    for (size_t k = 0; k < N_FUNCTIONS; k++)
        if (strcmp(word, FUNCTIONS[k].name) == 0)
            return parse_fail(p->in, ERR_USAGE, p->t.at[from], "", "the function %s without brackets", word);
    if (from == p->i) return parse_fail(p->in, ERR_USAGE, p->t.at[p->i], hint, "unknown name '%s'", shown);
    return parse_fail(p->in, ERR_USAGE, p->t.at[p->i], hint, "unknown name '%s' in '%s'", shown, within);
}

static enum err_code parse_name(struct parser *p, int depth, const struct sym **out)
{
    const struct parse_names *names = p->in->names;
    const struct parse_symbol *symbol = NULL;
    const struct function *f = NULL;
    const struct sym *bound = NULL;
    const char *call = NULL;
    size_t best = 0, n;
    for (size_t k = 0; k < N_FUNCTIONS; k++) {
        if ((n = longer(p, FUNCTIONS[k].name, best)) == 0 || !before_bracket(p, p->i + n, takes_braces(&FUNCTIONS[k])))
            continue;
        best = n;
        f = &FUNCTIONS[k];
    }
    for (size_t k = 0; k < names->n_calls; k++) {
        if ((n = longer(p, names->calls[k], best)) == 0 || !before_bracket(p, p->i + n, false)) continue;
        best = n;
        call = names->calls[k];
    }
    for (const struct parse_bound *b = p->bound; b; b = b->outer) {
        if ((n = longer(p, b->text, best)) == 0) continue;
        best = n;
        bound = b->var;
    }
    for (size_t k = 0; k < names->n_symbols; k++) {
        if ((n = longer(p, names->symbols[k].text, best)) == 0) continue;
        best = n;
        symbol = &names->symbols[k];
    }
    if (best == 0) return parse_is_name_char(parse_peek(p)) ? unknown_name(p) : parse_unexpected(p);
    if (++p->n_symbols > PARSE_SYMBOLS_MAX)
        return parse_fail(p->in, ERR_RANGE, p->t.at[p->i], "", "more than %d symbols", PARSE_SYMBOLS_MAX);
    const size_t at = p->i;
    p->i += best;
    if (symbol || bound) {
        *out = symbol ? symbol->e : bound;
        return ERR_OK;
    }
    return call ? parse_call(p, call, at, out) : parse_function(p, depth, f, at, out);
}

/* ---- the grammar ---- */

static bool begins_operand(char c)
{
    return parse_is_name_char(c) || c == '.' || c == '(' || c == '[' || c == '{' || c == PARSE_FRAC ||
           c == PARSE_LCEIL || c == PARSE_LFLOOR || c == PARSE_SUM;
}

enum err_code parse_operand(struct parser *p, int depth, const struct sym **out)
{
    const struct sym *x = NULL;
    const char c = parse_peek(p);
    if (begins_operand(c)) TRY(deeper(p, depth));
    switch (c) {
    case '(': return bracketed(p, depth, ')', out);
    case '[': return bracketed(p, depth, ']', out);
    case '{': return bracketed(p, depth, '}', out);
    case PARSE_FRAC: return parse_fraction(p, depth, out);
    case PARSE_SUM: return parse_range_latex(p, depth, out);
    case PARSE_LCEIL:
    case PARSE_LFLOOR:
        TRY(bracketed(p, depth, c == PARSE_LCEIL ? PARSE_RCEIL : PARSE_RFLOOR, &x));
        *out = c == PARSE_LCEIL ? sym_ceil(p->c, x) : sym_floor(p->c, x);
        return ERR_OK;
    default: break;
    }
    if (parse_is_digit(c) || (c == '.' && parse_is_digit(p->t.s[p->i + 1])))
        return parse_number(p->in, p->c, &p->t, p->upper_e, &p->i, out);
    return c ? parse_name(p, depth, out) : parse_unexpected(p);
}

static enum err_code parse_superscript(struct parser *p, const struct sym **x)
{
    const size_t at = p->i++;
    const char *s = p->t.s + p->i;
    const bool minus = *s == '-';
    const size_t digits = strspn(s + (minus ? 1 : 0), "0123456789");
    p->i += digits + (minus ? 1 : 0);
    if (digits == 0 || p->t.s[p->i] != PARSE_SUPER_END)
        return parse_refuse(p, ERR_USAGE, at, "a superscript that is no number");
    p->i++;
    if (digits > SUPER_DIGITS)
        return parse_fail(p->in, ERR_RANGE, p->t.at[at], "", "an exponent beyond %d", PARSE_EXPONENT_MAX);
    return raised(p, *x, sym_int(p->c, strtol(s, NULL, 10)), at, x);
}

static enum err_code parse_power(struct parser *p, int depth, const struct sym **out)
{
    const struct sym *x = NULL, *y = NULL;
    TRY(parse_operand(p, depth, &x));
    if (parse_peek(p) == PARSE_SUPER) TRY(parse_superscript(p, &x));
    const size_t at = (parse_peek(p), p->i);
    const size_t n = p->t.s[at] == '^' ? 1 : p->t.s[at] == '*' && p->t.s[at + 1] == '*' ? 2 : 0;
    if (n) {
        p->i += n;
        const bool minus = take_signs(p);
        TRY(parse_power(p, depth + 1, &y));
        TRY(raised(p, x, negated(p, minus, y), at, &x));
    }
    *out = x;
    return ERR_OK;
}

enum err_code parse_term(struct parser *p, int depth, const struct sym **out)
{
    const struct sym *r = NULL, *x = NULL;
    TRY(parse_power(p, depth, &r));
    for (;;) {
        const char c = parse_peek(p);
        const size_t at = p->i;
        if (c == '*' || c == '/') {
            p->i++;
            const bool minus = take_signs(p);
            TRY(parse_power(p, depth, &x));
            x = negated(p, minus, x);
        } else if (parse_is_digit(c) || c == '.') {
            return parse_refuse(p, ERR_USAGE, at, "a number behind an operand without an operator");
        } else if (begins_operand(c)) {
            TRY(parse_power(p, depth, &x));
        } else {
            break;
        }
        if (c == '/')
            TRY(quotient(p, r, x, at, &r));
        else
            r = sym_mul(p->c, r, x);
    }
    *out = r;
    return ERR_OK;
}

enum err_code parse_sum(struct parser *p, int depth, const struct sym **out)
{
    const size_t first = p->n_terms;
    const struct sym *x = NULL;
    do {
        const bool minus = take_signs(p);
        TRY(parse_term(p, depth, &x));
        p->terms[p->n_terms++] = negated(p, minus, x);
    } while (parse_peek(p) == '+' || parse_peek(p) == '-');
    const size_t n = p->n_terms - first;
    p->n_terms = first;
    *out = n == 1 ? p->terms[first] : sym_sum(p->c, n, &p->terms[first]);
    return ERR_OK;
}

static enum err_code read_sides(struct parser *p, struct arena *scratch, size_t n, const struct sym **side)
{
    TRY(parse_read(p->in, scratch, &p->t));
    p->terms = arena_array(scratch, p->t.n + 1, sizeof *p->terms);
    if (!p->terms) return err_nomem(p->in->e);
    for (size_t k = 0; k < n; k++) {
        if (k && parse_peek(p) != '=')
            return parse_peek(p) ? parse_unexpected(p) : parse_refuse(p, ERR_USAGE, p->i, "an equation without '='");
        if (k) p->i++;
        TRY(parse_sum(p, 0, &side[k]));
    }
    if (parse_peek(p)) return parse_unexpected(p);
    return sym_check(p->c, p->in->e);
}

static enum err_code parse_sides(struct sym_ctx *c, const struct parse_input *in, size_t n, const struct sym **side)
{
    struct parser p = {.in = in, .c = c, .upper_e = true, .steps = RANGE_WORK};
    struct arena *scratch = arena_open();
    if (in->where) *in->where = (struct parse_error){0};
    if (!scratch) return err_nomem(in->e);
    for (size_t k = 0; k < in->names->n_symbols; k++)
        if (strcmp(in->names->symbols[k].text, "E") == 0) p.upper_e = false;
    const enum err_code code = read_sides(&p, scratch, n, side);
    arena_close(scratch);
    return code;
}

enum err_code sym_parse(struct sym_ctx *c, const char *text, size_t len, const struct parse_names *names,
                        const struct sym **out, struct parse_error *where, struct err *e)
{
    const struct parse_input in = {text, len, names, where, e};
    const struct sym *r = NULL;
    TRY(parse_sides(c, &in, 1, &r));
    *out = r;
    return ERR_OK;
}

enum err_code sym_parse_equation(struct sym_ctx *c, const char *text, size_t len, const struct parse_names *names,
                                 const struct sym **lhs, const struct sym **rhs, struct parse_error *where,
                                 struct err *e)
{
    const struct parse_input in = {text, len, names, where, e};
    const struct sym *r[2] = {NULL, NULL};
    TRY(parse_sides(c, &in, 2, r));
    *lhs = r[0];
    *rhs = r[1];
    return ERR_OK;
}
