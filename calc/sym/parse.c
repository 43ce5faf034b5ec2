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

enum { WORD_MAX = 64, CLEAN_MAX = 80, SUPER_DIGITS = 6 };

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

enum err_code parse_quotient(struct parser *p, const struct sym *a, const struct sym *b, size_t at,
                             const struct sym **out)
{
    if (sym_is_int(b, 0)) return parse_refuse(p, ERR_RANGE, at, "a division by zero");
    *out = sym_div(p->c, a, b);
    return ERR_OK;
}

enum err_code parse_raised(struct parser *p, const struct sym *a, const struct sym *b, size_t at,
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

/* ---- names ---- */

static bool before_bracket(const struct parser *p, size_t i)
{
    while (p->t.s[i] == ' ') i++;
    return p->t.s[i] == '(';
}

/* bytes of name, if it is at p->i and longer than best */
static size_t longer(const struct parser *p, const char *name, size_t best)
{
    const char *s = p->t.s + p->i;
    if (!name || name[0] != s[0]) return 0;
    const size_t n = strlen(name);
    return n > best && strncmp(name, s, n) == 0 ? n : 0;
}

/* the same where the text has one underscore more: H_{v} is Hv when there is no H_v */
static size_t longer_with_underscore(const struct parser *p, const char *name, size_t best)
{
    const char *s = p->t.s + p->i;
    size_t n = 0, k = 0;
    if (!name) return 0;
    while (name[n] && name[n] == s[k]) n++, k++;
    if (n == 0 || !name[n] || s[k] != '_') return 0;
    for (k++; name[n] && name[n] == s[k];) n++, k++;
    return !name[n] && k > best && !parse_is_name_char(s[k]) ? k : 0;
}

static bool is_call(const struct parse_names *names, const char *word)
{
    for (size_t k = 0; k < names->n_calls; k++)
        if (names->calls[k] && strcmp(names->calls[k], word) == 0) return true;
    return false;
}

static enum err_code unknown_name(struct parser *p)
{
    const struct parse_names *names = p->in->names;
    const char *s = p->t.s;
    size_t from = p->i, to = p->i, n;
    while (from > 0 && parse_is_name_char(s[from - 1])) from--;
    while (parse_is_name_char(s[to])) to++;
    char word[WORD_MAX], shown[CLEAN_MAX], within[CLEAN_MAX], hint[200];
    (void)snprintf(word, sizeof word, "%.*s", (int)(to - from < WORD_MAX ? to - from : WORD_MAX - 1), s + from);
    (void)text_clean(shown, sizeof shown, s + p->i, to - p->i);
    (void)text_clean(within, sizeof within, s + from, to - from);
    const char *const *calls = names->calls;
    const struct parse_function *f = parse_functions(&n);
    for (size_t k = 0; k < n; k++)
        if (strcmp(word, f[k].name) == 0)
            return parse_fail(p->in, ERR_USAGE, p->t.at[from], "", "the function %s without brackets", word);
    if (is_call(names, word))
        return parse_fail(p->in, ERR_USAGE, p->t.at[from], "", "%s wants an argument, as in %s(...),", word, word);
    if (strcmp(word, "abs") == 0)
        return parse_fail(p->in, ERR_USAGE, p->t.at[from], "",
                          "no abs: symbols are positive, and a distance is max(a - b, b - a),");
    (void)text_suggest(hint, sizeof hint, word, names->n_symbols ? &names->symbols[0].text : NULL,
                       sizeof names->symbols[0], names->n_symbols);
    if (!hint[0] && names->n_calls) (void)text_suggest(hint, sizeof hint, word, calls, sizeof *calls, names->n_calls);
    if (!hint[0]) (void)text_suggest(hint, sizeof hint, word, &f[0].name, sizeof f[0], n);
    if (from == p->i) return parse_fail(p->in, ERR_USAGE, p->t.at[p->i], hint, "unknown name '%s'", shown);
    return parse_fail(p->in, ERR_USAGE, p->t.at[p->i], hint, "unknown name '%s' in '%s'", shown, within);
}

static enum err_code parse_name(struct parser *p, int depth, const struct sym **out)
{
    const struct parse_names *names = p->in->names;
    const struct parse_symbol *symbol = NULL;
    const struct parse_function *f = NULL;
    const struct sym *bound = NULL;
    const char *call = NULL;
    size_t best = 0, n, n_functions;
    const struct parse_function *all = parse_functions(&n_functions);
    for (size_t k = 0; k < n_functions; k++) {
        if ((n = longer(p, all[k].name, best)) == 0 || !parse_function_begins(p, &all[k], p->i + n)) continue;
        best = n;
        f = &all[k];
    }
    for (size_t k = 0; k < names->n_calls; k++) {
        if ((n = longer(p, names->calls[k], best)) == 0 || !before_bracket(p, p->i + n)) continue;
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
    for (size_t k = 0; k < names->n_symbols; k++) {
        if ((n = longer_with_underscore(p, names->symbols[k].text, best)) == 0) continue;
        best = n;
        symbol = &names->symbols[k];
    }
    if (best == 0) return parse_is_name_char(parse_peek(p)) ? unknown_name(p) : parse_unexpected(p);
    if (++p->n_symbols > PARSE_SYMBOLS_MAX)
        return parse_fail(p->in, ERR_RANGE, p->t.at[p->i], "", "more than %d symbols", PARSE_SYMBOLS_MAX);
    const size_t at = p->i;
    p->i += best;
    if (f && !symbol && !bound && !call) return parse_function(p, depth, f, at, out);
    if (symbol || bound) {
        *out = symbol ? symbol->e : bound;
        return ERR_OK;
    }
    return parse_call(p, call, at, out);
}

/* ---- the grammar ---- */

enum err_code parse_operand(struct parser *p, int depth, const struct sym **out)
{
    const struct sym *x = NULL;
    const char c = parse_peek(p);
    const bool exponent = p->exponent;
    p->exponent = false;
    if (parse_begins_operand(c)) TRY(deeper(p, depth));
    switch (c) {
    case '(': return parse_bracketed(p, depth, ')', out);
    case '[': return parse_bracketed(p, depth, ']', out);
    case '{': return parse_bracketed(p, depth, '}', out);
    case PARSE_FRAC: return parse_fraction(p, depth, out);
    case PARSE_SUM: return parse_range_latex(p, depth, out);
    case PARSE_LCEIL:
    case PARSE_LFLOOR:
        TRY(parse_bracketed(p, depth, c == PARSE_LCEIL ? PARSE_RCEIL : PARSE_RFLOOR, &x));
        *out = c == PARSE_LCEIL ? sym_ceil(p->c, x) : sym_floor(p->c, x);
        return ERR_OK;
    default: break;
    }
    if (parse_is_digit(c) || (c == '.' && parse_is_digit(p->t.s[p->i + 1]))) {
        TRY(parse_number(p->in, p->c, &p->t, p->upper_e, &p->i, out));
        return p->in->names->units && !exponent ? parse_unit(p, out) : ERR_OK;
    }
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
    return parse_raised(p, *x, sym_int(p->c, strtol(s, NULL, 10)), at, x);
}

enum err_code parse_power(struct parser *p, int depth, const struct sym **out)
{
    const struct sym *x = NULL, *y = NULL;
    const bool number = parse_is_digit(parse_peek(p)), inner = p->exponent;
    TRY(parse_operand(p, depth, &x));
    if (parse_peek(p) == PARSE_SUPER) TRY(parse_superscript(p, &x));
    const size_t at = (parse_peek(p), p->i);
    const size_t n = p->t.s[at] == '^' ? 1 : p->t.s[at] == '*' && p->t.s[at + 1] == '*' ? 2 : 0;
    if (n) {
        p->i += n;
        const bool minus = take_signs(p), unit = number && !inner && parse_is_digit(parse_peek(p));
        p->exponent = true; /* the unit of 2^30 bytes is not that of 30 */
        TRY(parse_power(p, depth + 1, &y));
        p->exponent = false;
        TRY(parse_raised(p, x, negated(p, minus, y), at, &x));
        if (unit && p->in->names->units) TRY(parse_unit(p, &x));
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
            const bool power = at > 1 && p->t.s[at - 1] == 'E' && parse_is_digit(p->t.s[at - 2]);
            return parse_refuse(p, ERR_USAGE, at,
                                power ? "E is a symbol here, a power of ten is written 1e3: a number behind an operand"
                                      : "a number behind an operand without an operator");
        } else if (parse_begins_operand(c)) {
            TRY(parse_power(p, depth, &x));
        } else {
            break;
        }
        if (c == '/')
            TRY(parse_quotient(p, r, x, at, &r));
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
