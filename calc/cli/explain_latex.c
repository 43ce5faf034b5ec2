/* A derivation as a LaTeX document. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/explain_page.h"
#include "calc/sym/print.h"

/* FORMULA_SHORT: characters of plain text that have room for fractions on a line. */
enum { FORMULA_MAX = 1 << 18, FORMULA_SHORT = 64 };

/* ---- text ---- */

static void put_ascii(struct out *o, char c)
{
    switch (c) {
    case '\\': out_str(o, "\\textbackslash{}"); return;
    case '~': out_str(o, "\\textasciitilde{}"); return;
    case '^': out_str(o, "\\textasciicircum{}"); return;
    case '`': out_str(o, "\\textasciigrave{}"); return;
    case '"': out_str(o, "\\char34{}"); return;
    case '<': out_str(o, "\\textless{}"); return;
    case '>': out_str(o, "\\textgreater{}"); return;
    case '|': out_str(o, "\\textbar{}"); return;
    case '-':
    case ',':
    case '\'': out_printf(o, "%c{}", c); return; /* no ligatures: --, ,, and '' */
    default: break;
    }
    if (strchr("#$%&_{}", c)) out_char(o, '\\');
    out_char(o, c);
}

/* Latin letters that every font encoding of LaTeX has, or composes. */
static bool is_letter(uint32_t code)
{
    return code >= 0xc0 && code <= 0xff && code != 0xd7 && code != 0xf7 && code != 0xd0 && code != 0xf0 &&
           code != 0xde && code != 0xfe;
}

/* Every character stands for itself; what the fonts lack is named by its number, and columns keep a distance. */
static void put_text(struct out *o, const char *s)
{
    for (const char *end = s + strlen(s); s < end;) {
        uint32_t code = 0;
        const size_t n = text_utf8_len(s, (size_t)(end - s), &code);
        if (s[0] == ' ' && s[1] == ' ') {
            out_str(o, "\\quad ");
            s += strspn(s, " ");
            continue;
        }
        if (n == 1 && code >= ' ' && code < 0x7f)
            put_ascii(o, *s);
        else if (n == 2 && is_letter(code))
            out_write(o, s, n);
        else if (n > 1)
            out_printf(o, "[U+%04lX]", (unsigned long)code);
        else
            out_char(o, '?');
        s += n ? n : 1;
    }
}

/* ---- formulas ---- */

/* A long formula as one that TeX can break anywhere: plain brackets, strokes for fractions, from its text. */

static size_t closing(const char *s)
{
    size_t depth = 0;
    for (size_t i = 0; s[i]; i++) {
        depth += s[i] == '(';
        if (s[i] == ')' && --depth == 0) return i;
    }
    return strlen(s);
}

static void put_name(struct out *o, const char *s, size_t n)
{
    const char *low = memchr(s, '_', n);
    const size_t head = low ? (size_t)(low - s) : n;
    out_printf(o, head > 1 ? "\\mathrm{%.*s}" : "%.*s", (int)head, s);
    if (low) out_printf(o, "_{\\mathrm{%.*s}}", (int)(n - head - 1), low + 1);
}

static void put_breakable(struct out *o, const char *s, size_t n);

/* What follows a ^: a name, a number or a bracket, which is dropped. Returns its length. */
static size_t put_exponent(struct out *o, const char *s)
{
    const bool bracket = *s == '(';
    size_t n = bracket ? closing(s) + 1 : strcspn(s, " */+^(),");
    if (bracket && n > strlen(s)) n = strlen(s);
    out_str(o, "^{");
    if (bracket)
        put_breakable(o, s + 1, n - 2);
    else
        put_breakable(o, s, n);
    out_char(o, '}');
    return n;
}

static const struct {
    const char *name, *before, *after;
} FUNCTIONS[] = {{"min", "\\min(", ")"}, {"max", "\\max(", ")"},           {"log", "\\log(", ")"},
                 {"exp", "\\exp(", ")"}, {"ceil", "\\lceil ", "\\rceil "}, {"floor", "\\lfloor ", "\\rfloor "}};

/* "name(...)" of a function; how much of s it was, 0: none. */
static size_t put_function(struct out *o, const char *s, size_t name)
{
    if (s[name] != '(') return 0;
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof FUNCTIONS[0]; i++) {
        if (strlen(FUNCTIONS[i].name) != name || strncmp(s, FUNCTIONS[i].name, name) != 0) continue;
        const size_t close = closing(s + name);
        out_str(o, FUNCTIONS[i].before);
        put_breakable(o, s + name + 1, close - 1);
        out_str(o, FUNCTIONS[i].after);
        return name + close + 1;
    }
    return 0;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* A number, with the e of 2.5e-07 as a power of ten. Returns its length. */
static size_t put_number(struct out *o, const char *s)
{
    const size_t n = strspn(s, "0123456789.");
    out_write(o, s, n);
    if (s[n] != 'e') return n;
    const size_t sign = s[n + 1] == '-' || s[n + 1] == '+', digits = strspn(s + n + 1 + sign, "0123456789");
    if (digits == 0) return n;
    out_printf(o, "\\cdot 10^{%s%.*s}", s[n + 1] == '-' ? "-" : "", (int)digits, s + n + 1 + sign);
    return n + 1 + sign + digits;
}

/* one token of s; its length */
static size_t put_token(struct out *o, const char *s)
{
    static const char NAME[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    if (is_digit(*s)) return put_number(o, s);
    const size_t name = strspn(s, NAME);
    if (name) {
        const size_t call = put_function(o, s, name);
        if (!call) put_name(o, s, name);
        return call ? call : name;
    }
    if (*s == '^') return 1 + put_exponent(o, s + 1);
    if (*s == '*')
        out_str(o, is_digit(s[1]) ? "\\cdot " : "\\,\\penalty700 ");
    else if (*s == '/')
        out_str(o, "/\\penalty500 ");
    else if (*s == ',')
        out_str(o, ",\\penalty0 ");
    else
        out_char(o, *s);
    return 1;
}

static void put_breakable(struct out *o, const char *s, size_t n)
{
    for (size_t i = 0; i < n;) i += put_token(o, s + i);
}

static void put_formula(struct out *o, char *buf, const char *lead, const struct sym *f)
{
    const size_t n = sym_print(f, buf, FORMULA_MAX);
    const bool is_long = n > FORMULA_SHORT && n < FORMULA_MAX;
    out_printf(o, is_long ? "$%s" : "$\\displaystyle %s", lead);
    if (is_long) {
        put_breakable(o, buf, n);
    } else {
        (void)sym_print_as(f, SYM_LATEX, buf, FORMULA_MAX);
        out_str(o, buf);
    }
    out_char(o, '$');
}

/* ---- the document ---- */

static void put_line(struct out *o, char *buf, const struct derive_line *l)
{
    out_str(o, "\\item[");
    put_text(o, l->label);
    out_str(o, "] ");
    if (l->formula) put_formula(o, buf, "", l->formula);
    if (l->formula && l->text) out_char(o, ' ');
    if (l->text) put_text(o, l->text);
    if (l->numbers) {
        out_str(o, " \\newline ");
        put_formula(o, buf, "= ", l->numbers);
    }
    out_char(o, '\n');
}

/* lmodern: scalable fonts with all letters, where it is installed; the old fonts else */
static const char PREAMBLE[] = "\\documentclass{article}\n"
                               "\\IfFileExists{lmodern.sty}{\\usepackage[T1]{fontenc}\\usepackage{lmodern}}{}\n"
                               "\\usepackage[utf8]{inputenc}\n"
                               "\\usepackage[a4paper,margin=2cm]{geometry}\n"
                               "\\setlength{\\parindent}{0pt}\n"
                               "\\binoppenalty=0\n"
                               "\\relpenalty=0\n"
                               "\\begin{document}\n"
                               "\\raggedright\n";

enum err_code explain_page_latex(struct arena *a, struct out *o, const struct derivation *d, struct err *e)
{
    char *buf = arena_alloc(a, FORMULA_MAX);
    if (!buf) return err_nomem(e);
    out_printf(o, "%s\\section*{", PREAMBLE);
    put_text(o, d->title);
    out_str(o, "}\n");
    if (d->about) put_text(o, d->about);
    out_char(o, '\n');
    for (size_t i = 0; i < d->n; i++) {
        const struct derive_section *s = &d->section[i];
        out_str(o, "\n\\subsection*{");
        put_text(o, s->title);
        out_str(o, "}\n");
        if (s->about) {
            put_text(o, s->about);
            out_char(o, '\n');
        }
        if (s->n == 0) continue;
        out_str(o, "\\begin{description}\n");
        for (size_t k = 0; k < s->n; k++) put_line(o, buf, &s->line[k]);
        out_str(o, "\\end{description}\n");
    }
    out_str(o, "\\end{document}\n");
    return ERR_OK;
}
