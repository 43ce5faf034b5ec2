/* expr -- expressions: read by precedence, written back with a switch at every mutation. Operands are evaluated once,
 * in variables of their own (GNU statement expressions), so the text grows with the number of operators only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/mutate/mutate.h"

/* ---- mutants ---- */

int mutate_add(struct mutate *m, const struct tok *t, const char *before, const char *after)
{
    m->list = mutate_grow(m->list, m->n, &m->cap, sizeof *m->list);
    const char *line = t->line_text;
    const size_t column = (size_t)t->column, indent = strspn(line, " ");
    const char *tail = line + column + t->shown;
    const char *text = mutate_text("%.*s[%s -> %s]%s", (int)(column - indent), line + indent, before, after, tail);
    m->list[m->n++] =
        (struct mutant){.line = t->line, .owner = m->owner, .file = m->file, .function = m->function, .text = text};
    return (int)m->n;
}

static int change(struct mutate *m, const struct tok *t, const char *after) { return mutate_add(m, t, t->s, after); }

/* n+1, and 2n or (of 1) 0. */
char *mutate_number(struct mutate *m, const struct tok *t)
{
    const double value = strtod(t->s, NULL);
    char *more = mutate_text("%s + 1", t->s);
    char *other = value == 1 ? mutate_text("0") : mutate_text("2 * %s", t->s);
    const int first = change(m, t, more);
    if (value == 0) return mutate_text("(mutant_is(%d) ? %s : %s)", first, more, t->s);
    return mutate_text("(mutant_is(%d) ? %s : mutant_is(%d) ? %s : %s)", first, more, change(m, t, other), other, t->s);
}

char *mutate_copy(struct mutate *m, size_t n)
{
    char *s = mutate_text("%s", "");
    for (; n > 0; n--, m->at++) {
        if (m->at->kind == TOK_END) mutate_fail(m, "the end");
        const char *end = m->at->kind == TOK_DIRECTIVE ? "\n" : "";
        s = mutate_text("%s%s%s%s ", s, end, m->at->s, end);
    }
    return s;
}

static void want(struct mutate *m, const char *s)
{
    if (!mutate_is(m->at, s)) mutate_fail(m, mutate_text("found %s, wanted %s", m->at->s, s));
    m->at++;
}

bool mutate_type_starts(const struct tok *t)
{
    static const char *const WORDS[] = {"const", "static", "struct", "enum", "union",  "unsigned", "signed", "int",
                                        "char",  "double", "float",  "void", "size_t", "bool",     "long",   "short"};
    if (t->kind != TOK_ID) return false;
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++)
        if (mutate_is(t, WORDS[i])) return true;
    const size_t n = strlen(t->s);
    return n > 2 && strcmp(t->s + n - 2, "_t") == 0;
}

/* ---- calls ---- */

static const char *swapped(const char *name)
{
    static const char *const PAIRS[][2] = {
        {"sym_add", "sym_sub"},    {"sym_mul", "sym_div"},  {"sym_min", "sym_max"},
        {"sym_ceil", "sym_floor"}, {"sym_sum", "sym_prod"}, {"fmin", "fmax"},
        {"ceil", "floor"},         {"log1p", "expm1"},      {"sym_log", "sym_exp"},
    };
    for (size_t i = 0; i < sizeof PAIRS / sizeof PAIRS[0]; i++)
        for (size_t k = 0; k < 2; k++)
            if (strcmp(PAIRS[i][k], name) == 0) return PAIRS[i][1 - k];
    return NULL;
}

/* Calls whose arguments are no part of a formula: sentences for a user, memory, sizes. */
static bool copied(const char *name)
{
    static const char *const NAMES[] = {"err_set",      "err_prepend", "err_nomem",  "json_want",
                                        "text_clean",   "offsetof",    "sizeof",     "snprintf",
                                        "text_suggest", "check_keys",  "arena_array"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        if (strcmp(NAMES[i], name) == 0) return true;
    return false;
}

/* A factor becomes a divisor, a term is subtracted. */
static char *flipped(struct mutate *m, const char *context, bool product)
{
    const struct tok *from = m->at;
    char *arg = mutate_assign(m);
    if (m->quiet) return arg;
    const struct tok mark = {
        .s = product ? "*" : "+", .line = from->line, .column = from->column, .line_text = from->line_text, .shown = 0};
    const int id = mutate_add(m, &mark, product ? "*" : "+", product ? "/" : "-");
    return mutate_text("%s(%d, %s, %s)", product ? "mutant_divided" : "mutant_subtracted", id, context, arg);
}

static char *call(struct mutate *m)
{
    const struct tok *name = m->at;
    if (copied(name->s)) return mutate_copy(m, 1 + mutate_group(name + 1));
    const bool product = mutate_is(name, "SYM_PROD"), sum = mutate_is(name, "SYM_SUM");
    const bool power = mutate_is(name, "pow"), symbolic = mutate_is(name, "sym_pow");
    m->at += 2;
    char *s = mutate_text("%s(", "");
    const char *context = "";
    for (size_t i = 0; !mutate_is(m->at, ")"); i++) {
        const struct tok *from = m->at;
        char *arg = i > 0 && (product || sum) ? flipped(m, context, product) : mutate_assign(m);
        if (i == 0) context = arg;
        if (!m->quiet && ((power && i == 1) || (symbolic && i == 2))) {
            const struct tok mark = {
                .line = from->line, .column = from->column, .line_text = from->line_text, .shown = 0};
            const int id = mutate_add(m, &mark, "exponent", "exponent + 1");
            arg = symbolic ? mutate_text("mutant_more(%d, %s, %s)", id, context, arg)
                           : mutate_text("(%s) + mutant_is(%d)", arg, id);
        }
        s = mutate_text("%s%s%s", s, i ? ", " : "", arg);
        if (!mutate_is(m->at, ")")) want(m, ",");
    }
    want(m, ")");
    const char *other = m->quiet ? NULL : swapped(name->s);
    if (other) return mutate_text("(mutant_is(%d) ? %s : %s)%s)", change(m, name, other), other, name->s, s);
    return mutate_text("%s%s)", name->s, s);
}

static char *expanded(struct mutate *m, const struct macro *macro)
{
    size_t used;
    const struct toks body = mutate_expand(m, macro, m->at, &used);
    const struct tok *after = m->at + used;
    m->at = body.at;
    char *s = mutate_expr(m);
    if (m->at->kind != TOK_END) mutate_fail(m, "a macro that is no expression");
    m->at = after;
    return mutate_text("(%s)", s);
}

/* ---- primary and postfix ---- */

static char *identifier(struct mutate *m)
{
    const struct macro *macro = mutate_macro(m, m->at);
    if (macro) return expanded(m, macro);
    if (mutate_is(m->at, "sizeof")) {
        const bool group = mutate_is(m->at + 1, "(");
        if (group) return mutate_copy(m, 1 + mutate_group(m->at + 1));
        char *s = mutate_copy(m, 1);
        m->quiet++;
        s = mutate_text("%s%s", s, mutate_copy(m, 1)); /* a unary operator, or a name */
        while (m->at->kind == TOK_ID || mutate_is(m->at, "->") || mutate_is(m->at, ".") || mutate_is(m->at, "[") ||
               (mutate_is(m->at, "(") && m->at[-1].kind == TOK_PUNCT))
            s = mutate_text("%s%s", s,
                            mutate_copy(m, mutate_is(m->at, "[") || mutate_is(m->at, "(") ? mutate_group(m->at) : 1));
        m->quiet--;
        return s;
    }
    if (mutate_is(m->at + 1, "(")) return call(m);
    for (size_t i = 0; i < m->constants_n && !m->quiet; i++) {
        struct constant *k = &m->constants[i];
        if (strcmp(k->name, m->at->s) != 0) continue;
        if (k->table && !mutate_is(m->at + 1, "[")) continue;
        k->used = true;
        const char *name = m->at->s;
        m->at++;
        if (!k->table) return mutate_text("mutant_%s()", name);
        m->at++;
        char *index = mutate_expr(m);
        want(m, "]");
        return mutate_text("mutant_%s(%s)", name, index);
    }
    return mutate_text("%s", (m->at++)->s);
}

static char *braces(struct mutate *m);

static char *item(struct mutate *m)
{
    if (mutate_is(m->at, "{")) return braces(m);
    if (mutate_is(m->at, "0") && (mutate_is(m->at + 1, "}") || mutate_is(m->at + 1, ","))) return mutate_copy(m, 1);
    return mutate_assign(m);
}

static char *braces(struct mutate *m)
{
    char *s = mutate_copy(m, 1);
    while (!mutate_is(m->at, "}")) {
        while (mutate_is(m->at, ".") || mutate_is(m->at, "["))
            s = mutate_text("%s%s", s, mutate_copy(m, mutate_is(m->at, ".") ? 2 : mutate_group(m->at)));
        if (mutate_is(m->at, "=")) s = mutate_text("%s%s", s, mutate_copy(m, 1));
        s = mutate_text("%s%s", s, item(m));
        if (mutate_is(m->at, ",")) s = mutate_text("%s%s", s, mutate_copy(m, 1));
    }
    return mutate_text("%s%s", s, mutate_copy(m, 1));
}

static char *primary(struct mutate *m)
{
    switch (m->at->kind) {
    case TOK_NUMBER: {
        const struct tok *t = m->at++;
        return m->quiet ? mutate_text("%s", t->s) : mutate_number(m, t);
    }
    case TOK_STRING: {
        char *s = mutate_copy(m, 1);
        while (m->at->kind == TOK_STRING) s = mutate_text("%s%s", s, mutate_copy(m, 1));
        return s;
    }
    case TOK_CHAR: return mutate_copy(m, 1);
    case TOK_ID: return identifier(m);
    case TOK_PUNCT:
        if (mutate_is(m->at, "(")) {
            m->at++;
            char *s = mutate_expr(m);
            want(m, ")");
            return mutate_text("(%s)", s);
        }
        if (mutate_is(m->at, "{")) return braces(m);
        break;
    case TOK_DIRECTIVE:
    case TOK_END: break;
    }
    mutate_fail(m, mutate_text("found %s, wanted an expression", m->at->s));
}

static char *postfix(struct mutate *m, char *s)
{
    for (;;) {
        if (mutate_is(m->at, "[")) {
            m->at++;
            s = mutate_text("%s[%s]", s, mutate_expr(m));
            want(m, "]");
        } else if (mutate_is(m->at, "(")) {
            m->at++;
            s = mutate_text("%s(%s)", s, mutate_is(m->at, ")") ? "" : mutate_expr(m));
            want(m, ")");
        } else if (mutate_is(m->at, ".") || mutate_is(m->at, "->")) {
            s = mutate_text("%s%s", s, mutate_copy(m, 2));
        } else if (mutate_is(m->at, "++") || mutate_is(m->at, "--")) {
            s = mutate_text("%s%s", s, mutate_copy(m, 1));
        } else {
            return s;
        }
    }
}

static char *unary(struct mutate *m)
{
    static const char *const OPS[] = {"-", "+", "!", "~", "*", "&", "++", "--"};
    if (mutate_is(m->at, "(") && mutate_type_starts(m->at + 1)) {
        char *type = mutate_copy(m, mutate_group(m->at));
        if (mutate_is(m->at, "{")) return postfix(m, mutate_text("(%s%s)", type, braces(m)));
        /* a length of text: pointers may be subtracted, not added */
        const bool length = strncmp(type, "( size_t )", 10) == 0 && mutate_is(m->at, "(");
        m->quiet += length;
        char *s = unary(m);
        m->quiet -= length;
        return mutate_text("%s%s", type, s);
    }
    for (size_t i = 0; i < sizeof OPS / sizeof OPS[0]; i++) {
        if (!mutate_is(m->at, OPS[i])) continue;
        const struct tok *t = m->at++;
        char *s = unary(m);
        if (i > 0 || m->quiet) return mutate_text("%s %s", OPS[i], s);
        const int id = change(m, t, ""), v = ++m->names;
        return mutate_text("({ __auto_type v%d_ = (%s); mutant_is(%d) ? v%d_ : -v%d_; })", v, s, id, v, v);
    }
    return postfix(m, primary(m));
}

/* ---- binary operators, ?:, assignment ---- */

static int precedence(const struct tok *t)
{
    static const struct {
        const char *op;
        int level;
    } OPS[] = {{"*", 10}, {"/", 10}, {"%", 10}, {"+", 9},  {"-", 9}, {"<<", 8}, {">>", 8}, {"<", 7},  {">", 7},
               {"<=", 7}, {">=", 7}, {"==", 6}, {"!=", 6}, {"&", 5}, {"^", 4},  {"|", 3},  {"&&", 2}, {"||", 1}};
    if (t->kind != TOK_PUNCT) return 0;
    for (size_t i = 0; i < sizeof OPS / sizeof OPS[0]; i++)
        if (mutate_is(t, OPS[i].op)) return OPS[i].level;
    return 0;
}

/* What an operator becomes; the second of a comparison is its opposite. */
static const char *other_operator(const char *op, size_t i)
{
    static const char *const OTHER[][3] = {{"*", "/"},        {"/", "*"},       {"%", "*"},        {"+", "-"},
                                           {"-", "+"},        {"<<", ">>"},     {"<", "<=", ">="}, {"<=", "<", ">"},
                                           {">", ">=", "<="}, {">=", ">", "<"}, {"==", "!="},      {"!=", "=="}};
    for (size_t k = 0; k < sizeof OTHER / sizeof OTHER[0]; k++)
        if (strcmp(OTHER[k][0], op) == 0) return OTHER[k][1 + i];
    return NULL;
}

static char *joined(struct mutate *m, const struct tok *op, const char *left, const char *right)
{
    if (m->quiet) return mutate_text("%s %s %s", left, op->s, right);
    if (mutate_is(op, "&&") || mutate_is(op, "||")) {
        /* !(!a && !b) is a || b */
        const int id = change(m, op, mutate_is(op, "&&") ? "||" : "&&"), v = ++m->names;
        return mutate_text("({ const int v%d_ = mutant_is(%d); ((!!(%s) ^ v%d_) %s (!!(%s) ^ v%d_)) ^ v%d_; })", v, id,
                           left, v, op->s, right, v, v);
    }
    const char *first = other_operator(op->s, 0);
    if (!first) return mutate_text("%s %s %s", left, op->s, right);
    const int v = ++m->names, id = change(m, op, first);
    char *s = mutate_text("({ __auto_type l%d_ = (%s); __auto_type r%d_ = (%s); mutant_is(%d) ? l%d_ %s r%d_ : ", v,
                          left, v, right, id, v, first, v);
    const char *second = other_operator(op->s, 1);
    if (second) s = mutate_text("%smutant_is(%d) ? l%d_ %s r%d_ : ", s, change(m, op, second), v, second, v);
    return mutate_text("%sl%d_ %s r%d_; })", s, v, op->s, v);
}

static char *binary(struct mutate *m, int least)
{
    m->compare = false;
    char *left = unary(m);
    bool compare = false;
    for (int level; (level = precedence(m->at)) >= least && level > 0;) {
        const struct tok *op = m->at++;
        /* whether there is one: the operator is a formula's, the 0 is not */
        const bool presence = (level == 6 || level == 7) && mutate_is(m->at, "0") && precedence(m->at + 1) < 6;
        char *right = presence ? mutate_copy(m, 1) : binary(m, level + 1);
        left = joined(m, op, left, right);
        compare = (level == 7 || level == 6 || level <= 2);
    }
    m->compare = compare;
    return left;
}

/* Whether it holds, or (of what is no comparison itself) does not. */
char *mutate_condition(struct mutate *m, const struct tok *from)
{
    char *s = mutate_expr(m);
    if (m->quiet || m->compare) return s;
    const struct tok mark = {.line = from->line, .column = from->column, .line_text = from->line_text, .shown = 0};
    return mutate_text("!!(%s) ^ mutant_is(%d)", s, mutate_add(m, &mark, "", "!"));
}

static char *conditional(struct mutate *m)
{
    const struct tok *from = m->at;
    const size_t first = m->n;
    char *s = binary(m, 1);
    if (!mutate_is(m->at, "?")) return s;
    const bool texts = m->at[1].kind == TOK_STRING && mutate_is(m->at + 2, ":") && m->at[3].kind == TOK_STRING;
    for (size_t i = first; i < m->n && texts; i++) m->list[i].text = NULL; /* a name or shape, no number */
    if (!m->quiet && !m->compare && !texts) {
        const struct tok mark = {.line = from->line, .column = from->column, .line_text = from->line_text, .shown = 0};
        s = mutate_text("!!(%s) ^ mutant_is(%d)", s, mutate_add(m, &mark, "", "!"));
    }
    m->at++;
    char *yes = mutate_expr(m);
    want(m, ":");
    char *no = conditional(m);
    m->compare = false;
    return mutate_text("(%s) ? (%s) : (%s)", s, yes, no);
}

char *mutate_assign(struct mutate *m)
{
    char *left = conditional(m);
    const struct tok *op = m->at;
    if (mutate_is(op, "=")) {
        m->at++;
        return mutate_text("%s = %s", left, mutate_assign(m));
    }
    static const char *const OPS[][2] = {{"+=", "-="}, {"-=", "+="}, {"*=", "/="},
                                         {"/=", "*="}, {"|=", "&="}, {"&=", "|="}};
    for (size_t i = 0; i < sizeof OPS / sizeof OPS[0]; i++) {
        if (!mutate_is(op, OPS[i][0])) continue;
        m->at++;
        char *right = mutate_assign(m);
        if (m->quiet) return mutate_text("%s %s %s", left, op->s, right);
        const int v = ++m->names, id = change(m, op, OPS[i][1]);
        return mutate_text("({ __auto_type r%d_ = (%s); if (mutant_is(%d)) %s %s r%d_; else %s %s r%d_; })", v, right,
                           id, left, OPS[i][1], v, left, op->s, v);
    }
    return left;
}

char *mutate_expr(struct mutate *m)
{
    char *s = mutate_assign(m);
    while (mutate_is(m->at, ",")) {
        m->at++;
        s = mutate_text("%s, %s", s, mutate_assign(m));
    }
    return s;
}
