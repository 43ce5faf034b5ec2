/* Sums over a range: the only construct that binds a name. */
#include <string.h>

#include "calc/sym/node.h"
#include "calc/sym/parse_grammar.h"
#include "calc/sym/range.h"

static const char WANTED[] = "a sum is written sum(expression, name, low, high)";

/* the first comma outside brackets from i on; 0 when the bracket around ends before */
static size_t comma_from(const struct parser *p, size_t i)
{
    size_t depth = 0;
    for (; p->t.s[i]; i++) {
        const char c = p->t.s[i];
        if (c == ',' && depth == 0) return i;
        if (c == '(' || c == '[' || c == '{' || c == PARSE_LCEIL || c == PARSE_LFLOOR) depth++;
        if (c != ')' && c != ']' && c != '}' && c != PARSE_RCEIL && c != PARSE_RFLOOR) continue;
        if (depth-- == 0) break;
    }
    return 0;
}

/* the name at p->i, made the innermost one. Its symbol has a name that nobody can type: what the caller's symbols
 * stand for may hold one of this name. */
static enum err_code read_name(struct parser *p, struct parse_bound *out)
{
    size_t n = 0, outer = 1;
    if (parse_is_digit(parse_peek(p)))
        return parse_refuse(p, ERR_USAGE, p->i, "a number where a sum's variable is wanted");
    while (parse_is_name_char(p->t.s[p->i + n])) n++;
    if (n == 0) return parse_refuse(p, ERR_USAGE, p->i, "the variable of a sum is wanted here: a name");
    for (const struct parse_bound *b = p->bound; b; b = b->outer) outer++;
    char *text = arena_strndup(p->c->arena, p->t.s + p->i, n);
    char *name = text ? arena_printf(p->c->arena, "%s#%zu", text, outer) : NULL;
    if (!name) return err_nomem(p->in->e);
    p->i += n;
    *out = (struct parse_bound){text, sym_var(p->c, name), p->bound};
    return ERR_OK;
}

static enum err_code read_body(struct parser *p, const struct parse_bound *bound, int depth, bool whole,
                               const struct sym **out)
{
    const bool upper_e = p->upper_e;
    p->bound = bound;
    if (strcmp(bound->text, "E") == 0) p->upper_e = false;
    TRY(whole ? parse_sum(p, depth + 1, out) : parse_term(p, depth + 1, out));
    p->bound = bound->outer;
    p->upper_e = upper_e;
    return ERR_OK;
}

static enum err_code add_up(struct parser *p, const struct sym *body, const struct parse_bound *bound,
                            const struct sym *const *limit, size_t at, const struct sym **out)
{
    struct err e = {.code = ERR_OK};
    const enum err_code code = sym_sum_range_within(p->c, body, bound->var, limit[0], limit[1], &p->steps, out, &e);
    if (code == ERR_OK) return ERR_OK;
    return parse_fail(p->in, code, p->t.at[at], "", "%s", e.text);
}

/* the second argument is read first: the first one needs it */
enum err_code parse_range_call(struct parser *p, int depth, size_t name, const struct sym **out)
{
    struct parse_bound bound;
    const struct sym *body = NULL, *limit[2] = {NULL, NULL};
    (void)parse_peek(p);
    const size_t open = p->i, comma = comma_from(p, open + 1);
    if (!comma) return parse_refuse(p, ERR_USAGE, name, WANTED);
    p->i = comma + 1;
    TRY(read_name(p, &bound));
    if (parse_peek(p) != ',') return parse_refuse(p, ERR_USAGE, p->i, WANTED);
    const size_t after = p->i;
    p->i = open + 1;
    TRY(read_body(p, &bound, depth, true, &body));
    if (parse_peek(p) != ',') return parse_unexpected(p);
    p->i = after;
    for (int k = 0; k < 2; k++) {
        if (parse_peek(p) != ',') return parse_refuse(p, ERR_USAGE, p->i, WANTED);
        p->i++;
        TRY(parse_sum(p, depth + 1, &limit[k]));
    }
    TRY(parse_close(p, open, ')'));
    return add_up(p, body, &bound, limit, name, out);
}

enum err_code parse_range_latex(struct parser *p, int depth, const struct sym **out)
{
    struct parse_bound bound;
    const struct sym *body = NULL, *limit[2] = {NULL, NULL};
    const size_t at = p->i++;
    if (parse_peek(p) != '{') return parse_refuse(p, ERR_USAGE, at, "\\sum without _{name=low}");
    const size_t open = p->i++;
    TRY(read_name(p, &bound));
    if (parse_peek(p) != '=') return parse_refuse(p, ERR_USAGE, at, "\\sum without _{name=low}");
    p->i++;
    TRY(parse_sum(p, depth + 1, &limit[0]));
    TRY(parse_close(p, open, '}'));
    if (parse_peek(p) != '^') return parse_refuse(p, ERR_USAGE, at, "\\sum without ^{high} behind _{name=low}");
    p->i++;
    TRY(parse_operand(p, depth + 1, &limit[1]));
    TRY(read_body(p, &bound, depth, false, &body));
    return add_up(p, body, &bound, limit, at, out);
}
