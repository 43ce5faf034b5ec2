/* Brackets, fractions, functions and the caller's own calls. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/sym/node.h"
#include "calc/sym/parse_grammar.h"

enum { ARGUMENT_MAX = 256, BASE_DIGITS = 6 };

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
enum err_code parse_bracketed(struct parser *p, int depth, char close, const struct sym **out)
{
    const size_t open = p->i++;
    TRY(parse_sum(p, depth + 1, out));
    return parse_close(p, open, close);
}

enum err_code parse_fraction(struct parser *p, int depth, const struct sym **out)
{
    const struct sym *x[2] = {NULL, NULL};
    const size_t at = p->i++;
    for (int k = 0; k < 2; k++) {
        const char c = parse_peek(p);
        if (c == '{') {
            TRY(parse_bracketed(p, depth, '}', &x[k]));
        } else if (parse_is_digit(c)) { /* \frac12 is a half */
            x[k] = sym_int(p->c, c - '0');
            p->i++;
        } else {
            return parse_refuse(p, ERR_USAGE, at, "\\frac without two arguments in braces");
        }
    }
    return parse_quotient(p, x[0], x[1], at, out);
}

static const struct parse_function FUNCTIONS[] = {
    {"min", SYM_MIN, 2, SIZE_MAX}, {"max", SYM_MAX, 2, SIZE_MAX}, {"ceil", SYM_CEIL, 1, 1}, {"floor", SYM_FLOOR, 1, 1},
    {"pow", SYM_POW, 2, 2},        {"sqrt", SYM_POW, 1, 1},       {"log", SYM_LOG, 1, 1},   {"ln", SYM_LOG, 1, 1},
    {"exp", SYM_EXP, 1, 1},        {"sum", SYM_ADD, 4, 4},        {"log2", SYM_LOG, 1, 1},  {"log10", SYM_LOG, 1, 1},
};

const struct parse_function *parse_functions(size_t *n)
{
    *n = sizeof FUNCTIONS / sizeof FUNCTIONS[0];
    return FUNCTIONS;
}

static enum err_code apply(struct parser *p, const struct parse_function *f, const struct sym *a, const struct sym *b,
                           size_t at, const struct sym **out)
{
    double x = 1.0;
    if (f->op == SYM_POW) return parse_raised(p, a, b, at, out);
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
static bool takes_braces(const struct parse_function *f)
{
    return f->op == SYM_LOG || f->op == SYM_EXP || f->op == SYM_POW;
}

static bool is_sqrt(const struct parse_function *f) { return f->op == SYM_POW && f->n_max == 1; }
static bool is_plain_log(const struct parse_function *f) { return strcmp(f->name, "log") == 0; }

bool parse_function_begins(const struct parser *p, const struct parse_function *f, size_t i)
{
    const char *s = p->t.s;
    const bool one = f->n_max == 1 && takes_braces(f);
    if (is_plain_log(f) && s[i] == '_') {
        const size_t n = strspn(s + i + 1, "0123456789");
        if (n == 0) return false;
        i += 1 + n;
    } else if (one && parse_is_name_char(s[i])) {
        return false; /* logB is no name of a function */
    }
    while (s[i] == ' ') i++;
    if (s[i] == '(') return true;
    if (is_sqrt(f) && s[i] == '[') return true;
    if (takes_braces(f) && s[i] == '{') return true;
    return one && (parse_is_name_char(s[i]) || s[i] == PARSE_FRAC || s[i] == PARSE_LCEIL || s[i] == PARSE_LFLOOR);
}

/* log_2 and log10: what to divide the natural logarithm by; NULL: nothing */
static enum err_code log_base(struct parser *p, const struct parse_function *f, size_t name, const struct sym **base)
{
    long n = strncmp(f->name, "log", 3) == 0 ? strtol(f->name + 3, NULL, 10) : 0;
    *base = NULL;
    if (is_plain_log(f) && p->t.s[p->i] == '_') {
        const size_t digits = strspn(p->t.s + p->i + 1, "0123456789");
        n = digits <= BASE_DIGITS ? strtol(p->t.s + p->i + 1, NULL, 10) : 0;
        if (n < 2) return parse_refuse(p, ERR_RANGE, name, "a logarithm of a base below 2 or beyond 999999");
        p->i += 1 + digits;
    }
    if (n) *base = sym_log(p->c, sym_int(p->c, n));
    return ERR_OK;
}

/* sqrt[3]: the exponent 1/3 */
static enum err_code root_index(struct parser *p, int depth, const struct sym **exponent)
{
    const struct sym *n = NULL;
    *exponent = sym_rat(p->c, 1, 2);
    if (parse_peek(p) != '[') return ERR_OK;
    const size_t at = p->i;
    TRY(parse_bracketed(p, depth, ']', &n));
    if (!sym_is_rational(n) || n->den != 1 || n->num < 2 || n->num > PARSE_EXPONENT_MAX)
        return parse_refuse(p, ERR_USAGE, at, "a root whose index is no whole number from 2 to 1000");
    *exponent = sym_rat(p->c, 1, n->num);
    return ERR_OK;
}

/* log B, \sqrt 2: one operand with its power, and nothing behind it that might belong there, too */
static enum err_code bare_argument(struct parser *p, int depth, const struct parse_function *f, size_t name,
                                   const struct sym **out)
{
    TRY(is_sqrt(f) ? parse_operand(p, depth + 1, out) : parse_power(p, depth + 1, out));
    const char c = parse_peek(p);
    if (!parse_begins_operand(c) && !parse_is_digit(c)) return ERR_OK;
    return parse_fail(p->in, ERR_USAGE, p->t.at[name], "", "%s of several factors without brackets", f->name);
}

/* from behind the name on */
enum err_code parse_function(struct parser *p, int depth, const struct parse_function *f, size_t name,
                             const struct sym **out)
{
    const struct sym *r = NULL, *x = NULL, *base, *exponent = NULL;
    size_t n = 0;
    if (f->op == SYM_ADD) return parse_range_call(p, depth, name, out);
    TRY(log_base(p, f, name, &base));
    if (is_sqrt(f)) TRY(root_index(p, depth, &exponent));
    const char c = parse_peek(p), close = c == '{' ? '}' : ')';
    const size_t open = p->i;
    if (c == '(' || c == '{') {
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
    } else {
        TRY(bare_argument(p, depth, f, name, &r));
        n = 1;
    }
    if (n < f->n_min || n > f->n_max)
        return parse_fail(p->in, ERR_USAGE, p->t.at[name], "", "%s of %zu argument%s, wanted %s", f->name, n,
                          n == 1 ? "" : "s",
                          f->n_max == 1   ? "one"
                          : f->n_max == 2 ? "two"
                                          : "two or more");
    if (f->n_max == 1) TRY(apply(p, f, r, exponent, name, &r));
    *out = base ? sym_div(p->c, r, base) : r;
    return ERR_OK;
}

/* name(argument) of the caller's */
enum err_code parse_call(struct parser *p, const char *name, size_t at, const struct sym **out)
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
