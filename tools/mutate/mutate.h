/* mutate -- host tool of `make mutate`: rewrites C sources so that every place where a formula could be wrong is a
 * switch on one number that is read once, when a program starts (mutant schemata). All mutants are compiled once; a
 * test run is of one of them. Reads the C of this project: no typedefs but the standard ones, local macros that are
 * expressions. */
#ifndef RIDGE_TOOLS_MUTATE_MUTATE_H
#define RIDGE_TOOLS_MUTATE_MUTATE_H

#include <stdbool.h>
#include <stddef.h>

enum tok_kind { TOK_END, TOK_ID, TOK_NUMBER, TOK_STRING, TOK_CHAR, TOK_PUNCT, TOK_DIRECTIVE };

/* A token and where it stands; of a macro's body: where the macro is used. */
struct tok {
    enum tok_kind kind;
    const char *s; /* owned by the tool until it ends */
    const char *line_text;
    int line, column;
    int shown; /* characters of the line that the mark of a mutant stands for */
};

struct toks {
    struct tok *at;
    size_t n, cap;
};

/* A mutant: the line of the source with its change marked, "x + [2 -> 3]". */
struct mutant {
    int line;
    int owner; /* constant that it belongs to, or -1 */
    const char *file, *function, *text;
};

/* A function-like macro of the file whose body is an expression. */
struct macro {
    const char *name;
    struct toks params, body;
    bool variadic;
};

/* A named number of the file: an enumerator with a value, or a table of numbers. */
struct constant {
    const char *name;
    bool table, used;
};

enum { MACROS_MAX = 64, CONSTANTS_MAX = 256 };

struct mutate {
    const char *file, *function;
    const struct tok *at; /* the next token; the list ends in TOK_END */
    struct macro macros[MACROS_MAX];
    size_t macros_n;
    struct constant constants[CONSTANTS_MAX];
    size_t constants_n;
    struct mutant *list; /* mutant i has the number i + 1 */
    size_t n, cap;
    int quiet;    /* > 0: copied as it stands */
    int owner;    /* index of the constant whose value is read, or -1 */
    int names;    /* variables made so far */
    bool compare; /* the expression read last is a comparison */
};

/* Text that lives until the tool ends. mutate_fail ends it: the file, the line, what was found. */
char *mutate_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void *mutate_grow(void *old, size_t n, size_t *cap, size_t size);
_Noreturn void mutate_fail(const struct mutate *m, const char *what);

/* lex.c */
struct toks mutate_lex(const char *text);
void mutate_push(struct toks *list, struct tok t);
bool mutate_is(const struct tok *t, const char *s);
size_t mutate_group(const struct tok *t); /* tokens from an opening bracket to its closing one, both counted */
void mutate_define(struct mutate *m, const struct tok *directive);
const struct macro *mutate_macro(const struct mutate *m, const struct tok *name);
/* The body of a macro with its arguments in; *used: tokens from the name on. */
struct toks mutate_expand(const struct mutate *m, const struct macro *macro, const struct tok *name, size_t *used);

/* expr.c -- read an expression at m->at and return its rewritten text. */
char *mutate_assign(struct mutate *m);
char *mutate_expr(struct mutate *m);
char *mutate_condition(struct mutate *m, const struct tok *from);
char *mutate_copy(struct mutate *m, size_t n); /* tokens as they stand */
bool mutate_type_starts(const struct tok *t);
int mutate_add(struct mutate *m, const struct tok *t, const char *before, const char *after);
char *mutate_number(struct mutate *m, const struct tok *t);

/* file.c -- a whole file. */
char *mutate_file(struct mutate *m, const struct toks *all);

#endif
