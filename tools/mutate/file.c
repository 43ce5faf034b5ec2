/* file -- declarations, functions and statements. What stands outside functions is copied, but for enumerators with a
 * value and tables of numbers: those become functions that every use calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/mutate/mutate.h"

static char *statement(struct mutate *m);

static char *placed(const struct mutate *m, const struct tok *t, const char *s)
{
    return mutate_text("\n#line %d \"%s\"\n%s", t->line, m->file, s);
}

static char *copy_to(struct mutate *m, const char *end)
{
    char *s = mutate_text("%s", "");
    while (!mutate_is(m->at, end)) {
        const bool group = mutate_is(m->at, "(") || mutate_is(m->at, "[") || mutate_is(m->at, "{");
        s = mutate_text("%s%s", s, mutate_copy(m, group ? mutate_group(m->at) : 1));
    }
    return mutate_text("%s%s", s, mutate_copy(m, 1));
}

/* ---- statements ---- */

/* A list made by a macro that is defined within it: fields of every name, no formula. */
static bool lists_macro(const struct tok *t)
{
    const size_t n = mutate_is(t, "{") ? mutate_group(t) : 0;
    for (size_t i = 0; i < n; i++)
        if (t[i].kind == TOK_DIRECTIVE) return true;
    return false;
}

/* Declarators and their values. Fixed storage and types made in place are copied. */
static char *declaration(struct mutate *m)
{
    const struct tok *t = m->at;
    while (t->kind == TOK_ID || mutate_is(t, "*")) t++;
    if (mutate_is(m->at, "static") || mutate_is(t, "{")) return copy_to(m, ";");
    char *s = mutate_text("%s", "");
    for (;;) {
        if (mutate_is(m->at, "=")) {
            s = mutate_text("%s%s", s, mutate_copy(m, 1));
            const bool copied = lists_macro(m->at);
            s = mutate_text("%s%s", s,
                            copied ? mutate_copy(m, mutate_group(m->at))
                                   : mutate_assign(m)); /* braces are a primary expression here */
        }
        const bool last = mutate_is(m->at, ";");
        const bool group = mutate_is(m->at, "[") || mutate_is(m->at, "(");
        s = mutate_text("%s%s", s, mutate_copy(m, group ? mutate_group(m->at) : 1));
        if (last) return s;
    }
}

static char *block(struct mutate *m)
{
    char *s = mutate_copy(m, 1);
    while (!mutate_is(m->at, "}")) s = mutate_text("%s%s", s, statement(m));
    return mutate_text("%s%s\n", s, mutate_copy(m, 1));
}

/* Memory that is exhausted is no part of a formula. */
static bool guards_memory(const struct tok *condition)
{
    const struct tok *then = condition + mutate_group(condition);
    return mutate_is(then, "return") && mutate_is(then + 1, "err_nomem");
}

static char *condition_of(struct mutate *m, bool quiet)
{
    m->quiet += quiet;
    m->at++;
    char *s = mutate_condition(m, m->at);
    m->at++;
    m->quiet -= quiet;
    return mutate_text("(%s)", s);
}

/* Loops over the places of a list (size_t, int, an enumeration, a pointer) are no formulas; over a quantity they are.
 */
static char *loop(struct mutate *m)
{
    char *s = mutate_copy(m, 2);
    const bool quiet = !mutate_is(m->at, "int64_t") && !mutate_is(m->at, "double");
    m->quiet += quiet;
    if (mutate_type_starts(m->at))
        s = mutate_text("%s%s", s, declaration(m));
    else
        s = mutate_text("%s%s;", s, mutate_is(m->at, ";") ? "" : mutate_expr(m)), m->at++;
    s = mutate_text("%s%s;", s, mutate_is(m->at, ";") ? "" : mutate_expr(m));
    m->at++;
    s = mutate_text("%s%s)", s, mutate_is(m->at, ")") ? "" : mutate_expr(m));
    m->at++;
    m->quiet -= quiet;
    return mutate_text("%s%s", s, statement(m));
}

static char *branch(struct mutate *m)
{
    char *s = mutate_copy(m, 1);
    s = mutate_text("%s%s", s, condition_of(m, guards_memory(m->at)));
    s = mutate_text("%s%s", s, statement(m));
    if (!mutate_is(m->at, "else")) return s;
    s = mutate_text("%s%s", s, mutate_copy(m, 1));
    return mutate_text("%s%s", s, statement(m));
}

static char *simple(struct mutate *m)
{
    if (mutate_is(m->at, "case") || mutate_is(m->at, "default")) return copy_to(m, ":");
    if (mutate_is(m->at, "break") || mutate_is(m->at, "continue") || mutate_is(m->at, "goto")) return copy_to(m, ";");
    char *s = mutate_text("%s", "");
    if (mutate_is(m->at, "return")) {
        s = mutate_copy(m, 1);
        if (mutate_is(m->at, ";")) return mutate_text("%s%s", s, mutate_copy(m, 1));
    }
    s = mutate_text("%s%s", s, mutate_expr(m));
    if (m->at->kind == TOK_DIRECTIVE) return s; /* a list of macros, which needs no semicolon */
    if (!mutate_is(m->at, ";")) mutate_fail(m, mutate_text("found %s, wanted ;", m->at->s));
    return mutate_text("%s%s", s, mutate_copy(m, 1));
}

static char *statement(struct mutate *m)
{
    const struct tok *from = m->at;
    if (from->kind == TOK_DIRECTIVE) return mutate_text("\n%s\n", (m->at++)->s);
    if (mutate_is(from, "{")) return block(m);
    if (mutate_is(from, ";")) return mutate_copy(m, 1);
    if (mutate_type_starts(from)) return placed(m, from, declaration(m));
    if (mutate_is(from, "if")) return placed(m, from, branch(m));
    if (mutate_is(from, "for")) return placed(m, from, loop(m));
    if (mutate_is(from, "while") || mutate_is(from, "switch")) {
        char *s = mutate_copy(m, 1);
        s = mutate_text("%s%s", s, condition_of(m, mutate_is(from, "switch")));
        return placed(m, from, mutate_text("%s%s", s, statement(m)));
    }
    if (mutate_is(from, "do")) {
        char *s = mutate_copy(m, 1);
        s = mutate_text("%s%s", s, statement(m));
        s = mutate_text("%s%s", s, mutate_copy(m, 1));
        s = mutate_text("%s%s", s, condition_of(m, false));
        return placed(m, from, mutate_text("%s%s", s, mutate_copy(m, 1)));
    }
    return placed(m, from, simple(m));
}

/* ---- outside functions ---- */

static int constant_add(struct mutate *m, const char *name, bool table)
{
    if (m->constants_n == CONSTANTS_MAX) mutate_fail(m, "too many constants");
    m->constants[m->constants_n] = (struct constant){.name = name, .table = table};
    return (int)m->constants_n++;
}

/* Functions for the enumerators that have a value of their own. */
static char *enumerators(struct mutate *m, const struct tok *t)
{
    const struct tok *after = m->at;
    char *s = mutate_text("%s", "");
    while (!mutate_is(t, "{")) t++;
    for (t++; !mutate_is(t, "}"); t++) {
        if (t->kind != TOK_ID || !mutate_is(t + 1, "=")) continue;
        m->owner = (int)m->constants_n;
        m->at = t + 2;
        char *value = mutate_assign(m);
        const int k = constant_add(m, t->s, false);
        m->owner = -1;
        s = mutate_text("%sstatic inline __typeof__(%s) mutant_%s(void) { return %s; }\n", s, m->constants[k].name,
                        m->constants[k].name, value);
        t = m->at;
        if (mutate_is(t, "}")) break;
    }
    m->at = after;
    return s;
}

/* static const double NAME[] = {numbers}: a function of the place. */
static char *table(struct mutate *m, const struct tok *t)
{
    const struct tok *name = t;
    while (!mutate_is(name, "[") && !mutate_is(name, "=") && !mutate_is(name, ";")) name++;
    if (!mutate_is(name, "[") || !mutate_is(name + 1, "]") || !mutate_is(name + 2, "=") || !mutate_is(name + 3, "{"))
        return mutate_text("%s", "");
    const struct tok *from = name + 4;
    name--;
    for (const struct tok *k = from; !mutate_is(k, "}"); k++)
        if (k->kind != TOK_NUMBER && !mutate_is(k, ",")) return mutate_text("%s", "");
    m->owner = constant_add(m, name->s, true);
    char *s = mutate_text("static inline __typeof__(*%s) mutant_%s(size_t at) { switch (at) {\n", name->s, name->s);
    size_t i = 0;
    for (const struct tok *k = from; !mutate_is(k, "}"); k++)
        if (k->kind == TOK_NUMBER) s = mutate_text("%scase %zu: return %s;\n", s, i++, mutate_number(m, k));
    m->owner = -1;
    return mutate_text("%s} return %s[at]; }\n", s, name->s);
}

static const char *function_name(const struct tok *from, const struct tok *body)
{
    for (const struct tok *t = from; t < body; t++)
        if (t->kind == TOK_ID && mutate_is(t + 1, "(") && t + 1 + mutate_group(t + 1) == body) return t->s;
    return NULL;
}

static char *outside(struct mutate *m)
{
    const struct tok *from = m->at, *t = from;
    while (t->kind != TOK_END && !mutate_is(t, ";") && !mutate_is(t, "{") && !mutate_is(t, "=")) t++;
    m->function = mutate_is(t, "{") ? function_name(from, t) : NULL;
    if (!m->function) {
        m->function = "-";
        char *s = copy_to(m, ";");
        if (mutate_is(from, "enum") && mutate_is(from + 1, "{")) return mutate_text("%s\n%s", s, enumerators(m, from));
        const bool numbers = mutate_is(from, "static") && mutate_is(from + 1, "const") && mutate_is(from + 2, "double");
        return numbers ? mutate_text("%s\n%s", s, table(m, from)) : s;
    }
    char *head = mutate_copy(m, (size_t)(t - from));
    return mutate_text("%s%s", head, block(m));
}

char *mutate_file(struct mutate *m, const struct toks *all)
{
    char *s = mutate_text("%s", "");
    m->at = all->at;
    m->owner = -1;
    m->macros_n = m->constants_n = 0;
    const size_t first = m->n;
    for (size_t i = 0; i < all->n; i++)
        if (all->at[i].kind == TOK_DIRECTIVE) mutate_define(m, &all->at[i]);
    while (m->at->kind != TOK_END) {
        if (m->at->kind == TOK_DIRECTIVE)
            s = mutate_text("%s\n%s\n", s, (m->at++)->s);
        else
            s = mutate_text("%s%s", s, placed(m, m->at, outside(m)));
    }
    for (size_t i = first; i < m->n; i++) /* numbers that only size arrays */
        if (m->list[i].owner >= 0 && !m->constants[m->list[i].owner].used) m->list[i].text = NULL;
    return s;
}
