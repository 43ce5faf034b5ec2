/* parse_grammar -- the second pass of the parser: what its files share. Private to this room. */
#ifndef RIDGE_SYM_PARSE_GRAMMAR_H
#define RIDGE_SYM_PARSE_GRAMMAR_H

#include "calc/sym/parse_read.h"

/* A name bound by a sum; inner ones hide outer ones and the caller's. */
struct parse_bound {
    const char *text;
    const struct sym *var;
    const struct parse_bound *outer;
};

struct parser {
    const struct parse_input *in;
    struct sym_ctx *c;
    struct parse_chars t;
    size_t i;                 /* next character of t */
    const struct sym **terms; /* of the sums being read, a stack; a term has at least one character */
    size_t n_terms, n_symbols;
    bool upper_e;  /* E is no name, so 2E3 is 2000 */
    bool exponent; /* the next operand is one, and has no unit */
    const struct parse_bound *bound;
    uint64_t steps; /* left for sums over ranges, all together */
};

/* parse_peek -- the next character that is no blank */
static inline char parse_peek(struct parser *p)
{
    while (p->t.s[p->i] == ' ') p->i++;
    return p->t.s[p->i];
}

/* parse_refuse -- parse_fail at a character of t */
enum err_code parse_refuse(const struct parser *p, enum err_code code, size_t at, const char *what);
enum err_code parse_unexpected(struct parser *p);

enum err_code parse_sum(struct parser *p, int depth, const struct sym **out);
enum err_code parse_term(struct parser *p, int depth, const struct sym **out);
enum err_code parse_operand(struct parser *p, int depth, const struct sym **out);
enum err_code parse_power(struct parser *p, int depth, const struct sym **out);
enum err_code parse_close(struct parser *p, size_t open, char close);
static inline bool parse_begins_operand(char c)
{
    return parse_is_name_char(c) || c == '.' || c == '(' || c == '[' || c == '{' || c == PARSE_FRAC ||
           c == PARSE_LCEIL || c == PARSE_LFLOOR || c == PARSE_SUM;
}

/* parse_bracketed -- the sum in brackets at p->i. parse_fraction -- from its mark on.
 * parse_quotient, parse_raised -- a/b and a^b, checked; at: where the operator is. */
enum err_code parse_bracketed(struct parser *p, int depth, char close, const struct sym **out);
enum err_code parse_fraction(struct parser *p, int depth, const struct sym **out);
enum err_code parse_quotient(struct parser *p, const struct sym *a, const struct sym *b, size_t at,
                             const struct sym **out);
enum err_code parse_raised(struct parser *p, const struct sym *a, const struct sym *b, size_t at,
                           const struct sym **out);

/* parse_functions -- all n. parse_function_begins -- whether f is called at i, behind its name. parse_function -- the
 * call, from behind the name on. parse_call -- name(argument) of the caller's, from behind the name on. */
struct parse_function {
    const char *name;
    enum sym_op op;
    size_t n_min, n_max;
};
const struct parse_function *parse_functions(size_t *n);
bool parse_function_begins(const struct parser *p, const struct parse_function *f, size_t i);
enum err_code parse_function(struct parser *p, int depth, const struct parse_function *f, size_t name,
                             const struct sym **out);
enum err_code parse_call(struct parser *p, const char *name, size_t at, const struct sym **out);

/* parse_unit -- *out, a number that ends at p->i, times the unit behind it, if there is one. */
enum err_code parse_unit(struct parser *p, const struct sym **out);

/* parse_range_call -- sum(body, i, low, high) from its "(" on; name: where "sum" is.
 * parse_range_latex -- \sum_{i=low}^{high} term, from its mark on. */
enum err_code parse_range_call(struct parser *p, int depth, size_t name, const struct sym **out);
enum err_code parse_range_latex(struct parser *p, int depth, const struct sym **out);

#endif
