/* fuzz_parse -- any bytes as an expression or an equation: refused with one clean sentence and a place, or read; and
 * what is read prints as text and as LaTeX that reads back to the same value. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/sym/parse.h"
#include "calc/sym/print.h"
#include "tests/sym_mod.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_SYMBOLS = 12 };

static void require(int holds, const char *what, const char *text)
{
    if (holds) return;
    (void)fprintf(stderr, "fuzz_parse: %s: %s\n", what, text);
    abort();
}

static void check_clean(const char *text, const char *what)
{
    const size_t n = strlen(text);
    for (size_t i = 0; i < n;) {
        uint32_t code = 0;
        const size_t k = text_utf8_len(text + i, n - i, &code);
        require(k > 0 && !text_is_hostile(code), what, text);
        i += k ? k : 1;
    }
}

static void check_refusal(enum err_code code, const struct err *e, const struct parse_error *w, size_t size)
{
    require(e->code == code, "the error holds another code than the one returned", e->text);
    require(code == ERR_USAGE || code == ERR_RANGE || code == ERR_NOMEM, "refused with a strange code", e->text);
    require(e->text[0] != '\0', "refused without a sentence", "");
    check_clean(e->text, "the sentence is not clean");
    check_clean(w->excerpt, "the excerpt is not clean");
    require(code == ERR_NOMEM || (w->column >= 1 && w->column <= size + 1), "no column", e->text);
    const size_t n = strlen(w->caret);
    require(n >= 1 && w->caret[n - 1] == '^' && strspn(w->caret, " ") == n - 1, "no caret", w->caret);
    require(n <= text_width(w->excerpt, strlen(w->excerpt)) + 1, "the caret is beyond the excerpt", w->excerpt);
}

/* a decimal in the text stands for the double nearest to it, which need not be the constant read back */
static int has_decimal(const char *text)
{
    return strpbrk(text, ".") != NULL || strstr(text, "e+") || strstr(text, "e-");
}

static void check_round_trip(struct sym_ctx *c, const struct sym *e, const struct parse_names *names,
                             enum sym_style style)
{
    const size_t n = sym_print_as(e, style, NULL, 0);
    if (n == 0 || n > PARSE_BYTES_MAX) return;
    char *text = malloc(n + 1);
    if (!text) return;
    require(sym_print_as(e, style, text, n + 1) == n && strlen(text) == n, "another length than measured", text);
    const struct sym *back = NULL;
    struct err err = {.code = ERR_OK};
    const enum err_code code = sym_parse(c, text, n, names, &back, NULL, &err);
    require(code == ERR_OK || code == ERR_RANGE || code == ERR_NOMEM, err.text, text);
    uint64_t x = 0, y = 0;
    if (code == ERR_OK && back != e && !has_decimal(text) && !strstr(text, "\\cdot 10^") && sym_mod(e, &x) &&
        sym_mod(back, &y))
        require(x == y, "reads back to another value", text);
    free(text);
}

static void check_others(const struct sym *e)
{
    char buf[512];
    for (int style = SYM_C; style <= SYM_GNUPLOT; style++) {
        const size_t n = sym_print_as(e, (enum sym_style)style, buf, sizeof buf);
        require(n > 0 && strlen(buf) == (n < sizeof buf ? n : sizeof buf - 1), "another length than measured", buf);
    }
    (void)sym_print_wrapped(e, 24, 4, buf, sizeof buf);
}

static enum err_code no_calls(void *user, const char *name, const char *argument, const struct sym **out, struct err *e)
{
    check_clean(argument, "the argument is not clean");
    if (argument[0] == 'x') return err_set(e, ERR_USAGE, "%s has no such operator", name);
    *out = *(const struct sym *const *)user;
    return ERR_OK;
}

/* that of an equation, not of \sum_{i=1} */
static int has_equals_sign(const char *text, size_t size)
{
    int depth = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '=' && depth == 0) return 1;
        depth += (text[i] == '{') - (text[i] == '}');
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const NAMES[N_SYMBOLS] = {"B",  "S",    "T",        "D",     "F", "H",
                                                 "Hv", "b_kv", "kv_bytes", "gamma", "E", "\xce\xb3"};
    static const char *const CALLS[] = {"flops", "intensity"};
    struct arena *a = arena_open();
    struct sym_ctx *c = a ? sym_open(a) : NULL;
    if (!c) {
        arena_close(a);
        return 0;
    }
    struct parse_symbol symbols[N_SYMBOLS];
    for (size_t i = 0; i < N_SYMBOLS; i++) symbols[i] = (struct parse_symbol){NAMES[i], sym_var(c, NAMES[i])};
    const struct sym *value = symbols[3].e;
    const struct parse_names names = {symbols, N_SYMBOLS, CALLS, 2, no_calls, &value, size % 2 == 0, size % 4 == 0};
    const struct sym *side[2] = {NULL, NULL};
    struct err e = {.code = ERR_OK};
    struct parse_error w;
    const int equation = has_equals_sign((const char *)data, size);
    const enum err_code code = equation
                                   ? sym_parse_equation(c, (const char *)data, size, &names, &side[0], &side[1], &w, &e)
                                   : sym_parse(c, (const char *)data, size, &names, &side[0], &w, &e);
    if (code != ERR_OK) {
        require(!side[0] && !side[1], "a result although refused", e.text);
        check_refusal(code, &e, &w, size);
    }
    for (int i = 0; code == ERR_OK && i <= equation; i++) {
        check_round_trip(c, side[i], &names, SYM_TEXT);
        check_round_trip(c, side[i], &names, SYM_LATEX);
        check_others(side[i]);
    }
    arena_close(a);
    return 0;
}
