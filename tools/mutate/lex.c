/* lex -- tokens of a C source, and its macros. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/mutate/mutate.h"

void mutate_push(struct toks *list, struct tok t)
{
    list->at = mutate_grow(list->at, list->n, &list->cap, sizeof *list->at);
    list->at[list->n++] = t;
}

bool mutate_is(const struct tok *t, const char *s) { return t->kind != TOK_END && strcmp(t->s, s) == 0; }

static size_t punctuator(const char *s)
{
    static const char *const LONG[] = {"<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=",
                                       "&&",  "||",  "+=",  "-=", "*=", "/=", "%=", "&=", "|=", "^=", "##"};
    for (size_t i = 0; i < sizeof LONG / sizeof LONG[0]; i++)
        if (strncmp(s, LONG[i], strlen(LONG[i])) == 0) return strlen(LONG[i]);
    return 1;
}

static size_t quoted(const char *s)
{
    size_t n = 1;
    while (s[n] && s[n] != s[0]) n += s[n] == '\\' && s[n + 1] ? 2 : 1;
    return s[n] ? n + 1 : n;
}

/* A directive with its continued lines, as one line. */
static size_t directive(const char *s)
{
    size_t n = 0;
    while (s[n] && s[n] != '\n') n += s[n] == '\\' && s[n + 1] == '\n' ? 2 : 1;
    return n;
}

static size_t blank(const char *s)
{
    if (isspace((unsigned char)*s)) return 1;
    if (s[0] == '/' && s[1] == '/') return strcspn(s, "\n");
    if (s[0] != '/' || s[1] != '*') return 0;
    const char *end = strstr(s + 2, "*/");
    return end ? (size_t)(end - s) + 2 : strlen(s);
}

static size_t word(const char *s, enum tok_kind *kind)
{
    size_t n = 0;
    if (isalpha((unsigned char)*s) || *s == '_') {
        *kind = TOK_ID;
        while (isalnum((unsigned char)s[n]) || s[n] == '_') n++;
        return n;
    }
    if (isdigit((unsigned char)*s) || (*s == '.' && isdigit((unsigned char)s[1]))) {
        *kind = TOK_NUMBER;
        while (isalnum((unsigned char)s[n]) || s[n] == '.' || ((s[n] == '-' || s[n] == '+') && strchr("eE", s[n - 1])))
            n++;
        return n;
    }
    *kind = *s == '"' ? TOK_STRING : *s == '\'' ? TOK_CHAR : TOK_PUNCT;
    return *kind == TOK_PUNCT ? punctuator(s) : quoted(s);
}

struct toks mutate_lex(const char *text)
{
    struct toks list = {0};
    int line = 1;
    const char *start = text; /* of the line */
    bool first = true;        /* on its line */
    for (const char *s = text; *s;) {
        size_t n = blank(s);
        const bool skipped = n > 0;
        struct tok t = {.line = line, .column = (int)(s - start)};
        if (!skipped) {
            n = first && *s == '#' ? directive(s) : word(s, &t.kind);
            if (first && *s == '#') t.kind = TOK_DIRECTIVE;
            t.s = mutate_text("%.*s", (int)n, s);
            t.line_text = mutate_text("%.*s", (int)strcspn(start, "\n"), start);
            t.shown = (int)n;
            mutate_push(&list, t);
            first = false;
        }
        for (size_t i = 0; i < n; i++)
            if (s[i] == '\n') {
                line++;
                start = s + i + 1;
                first = true;
            }
        s += n;
    }
    mutate_push(&list, (struct tok){.kind = TOK_END, .s = "", .line_text = "", .line = line});
    return list;
}

size_t mutate_group(const struct tok *t)
{
    int depth = 0;
    for (size_t n = 0; t[n].kind != TOK_END; n++) {
        if (mutate_is(t + n, "(") || mutate_is(t + n, "[") || mutate_is(t + n, "{")) depth++;
        if (mutate_is(t + n, ")") || mutate_is(t + n, "]") || mutate_is(t + n, "}")) depth--;
        if (depth == 0) return n + 1;
    }
    return 0;
}

/* ---- macros ---- */

void mutate_define(struct mutate *m, const struct tok *directive_)
{
    char *body = mutate_text("%s", directive_->s);
    for (char *s = body; *s; s++)
        if (*s == '\\' || *s == '\n') *s = ' ';
    body++; /* the sign */
    const struct toks all = mutate_lex(body);
    const struct tok *t = all.at;
    if (!mutate_is(t, "define") || t[1].kind != TOK_ID || !mutate_is(t + 2, "(") ||
        t[2].column != t[1].column + t[1].shown)
        return;
    const size_t params = mutate_group(t + 2);
    struct macro macro = {.name = t[1].s};
    for (size_t i = 3; i < 1 + params; i++) {
        if (mutate_is(t + i, "...")) macro.variadic = true;
        if (t[i].kind == TOK_ID) mutate_push(&macro.params, t[i]);
    }
    for (const struct tok *b = t + 2 + params; b->kind != TOK_END; b++) {
        /* no expression, or one of sizes alone */
        if (mutate_is(b, ";") || mutate_is(b, "#") || mutate_is(b, "{") || mutate_is(b, "sizeof") ||
            mutate_is(b, "##") || mutate_is(b, "[") || b->kind == TOK_STRING)
            return;
        mutate_push(&macro.body, *b);
    }
    if (macro.body.n == 0) return;
    if (m->macros_n == MACROS_MAX) mutate_fail(m, "too many macros");
    m->macros[m->macros_n++] = macro;
}

const struct macro *mutate_macro(const struct mutate *m, const struct tok *name)
{
    if (name->kind != TOK_ID || !mutate_is(name + 1, "(")) return NULL;
    for (size_t i = 0; i < m->macros_n; i++)
        if (strcmp(m->macros[i].name, name->s) == 0) return &m->macros[i];
    return NULL;
}

struct toks mutate_expand(const struct mutate *m, const struct macro *macro, const struct tok *name, size_t *used)
{
    const size_t group = mutate_group(name + 1);
    struct {
        size_t from, to;
    } arg[16];
    size_t n = 0, from = 2;
    if (group == 0) mutate_fail(m, "an open bracket");
    for (size_t i = 2; i <= group; i++) {
        if (mutate_is(name + i, "(") || mutate_is(name + i, "[") || mutate_is(name + i, "{")) {
            i += mutate_group(name + i) - 1;
            continue;
        }
        const bool last = i == group;
        if (!last && (!mutate_is(name + i, ",") || macro->variadic)) continue;
        if (n == sizeof arg / sizeof arg[0]) mutate_fail(m, "too many arguments");
        arg[n].from = from;
        arg[n++].to = i;
        from = i + 1;
    }
    struct toks out = {0};
    for (size_t i = 0; i < macro->body.n; i++) {
        struct tok t = macro->body.at[i];
        size_t k = 0;
        while (k < macro->params.n && strcmp(macro->params.at[k].s, t.s) != 0) k++;
        if (mutate_is(&t, "__VA_ARGS__")) k = 0;
        const bool is_arg = mutate_is(&t, "__VA_ARGS__") || k < macro->params.n;
        if (is_arg && k < n) {
            for (size_t j = arg[k].from; j < arg[k].to; j++) mutate_push(&out, name[j]);
            continue;
        }
        t.line = name->line;
        t.column = name->column;
        t.line_text = name->line_text;
        t.shown = name->shown;
        mutate_push(&out, t);
    }
    mutate_push(&out, (struct tok){.kind = TOK_END, .s = "", .line_text = "", .line = name->line});
    *used = 1 + group;
    return out;
}
