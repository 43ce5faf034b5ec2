#include "calc/cli/explain_page.h"

#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/option.h"
#include "calc/sym/print.h"

enum { FORMULA_MAX = 1 << 18, LABEL = 16, WIDTH = 79 };

/* ---- text ---- */

static void text_formula(struct out *o, char *buf, const char *lead, const struct sym *f)
{
    const size_t at = LABEL + strlen(lead);
    (void)sym_print_wrapped(f, WIDTH - at, 4, buf, FORMULA_MAX);
    out_str(o, lead);
    for (const char *p = buf; *p;) {
        const size_t line = strcspn(p, "\n");
        if (p != buf) out_printf(o, "%*s", (int)at, "");
        out_write(o, p, line);
        out_char(o, '\n');
        p += line + (p[line] == '\n');
    }
}

static void text_line(struct out *o, char *buf, const struct derive_line *l)
{
    const int width = LABEL - 2;
    out_printf(o, "  %-*s", width, l->label);
    if ((int)strlen(l->label) >= width) out_printf(o, "\n%*s", LABEL, "");
    if (l->formula) text_formula(o, buf, "", l->formula);
    if (l->text && l->formula) out_printf(o, "%*s", LABEL, "");
    if (l->text && LABEL + text_width(l->text, strlen(l->text)) <= WIDTH)
        out_printf(o, "%s\n", l->text);
    else if (l->text)
        option_wrap(o, l->text, LABEL, LABEL);
    if (!l->numbers) return;
    out_printf(o, "%*s", LABEL, "");
    text_formula(o, buf, "= ", l->numbers);
}

enum err_code explain_page_text(struct arena *a, struct out *o, const struct derivation *d, struct err *e)
{
    char *buf = arena_alloc(a, FORMULA_MAX);
    if (!buf) return err_nomem(e);
    option_wrap(o, d->title, 0, 4);
    if (d->about) {
        out_str(o, "  ");
        option_wrap(o, d->about, 2, 4);
    }
    for (size_t i = 0; i < d->n; i++) {
        const struct derive_section *s = &d->section[i];
        out_printf(o, "\n%s", s->title);
        if (s->about) {
            out_str(o, ": ");
            option_wrap(o, s->about, strlen(s->title) + 2, 4);
        } else {
            out_char(o, '\n');
        }
        for (size_t k = 0; k < s->n; k++) text_line(o, buf, &s->line[k]);
    }
    return ERR_OK;
}

/* ---- LaTeX ---- */

static void latex_text(struct out *o, const char *s)
{
    for (; *s; s++) {
        if (strchr("#$%&_{}", *s))
            out_printf(o, "\\%c", *s);
        else if (*s == '\\')
            out_str(o, "\\textbackslash{}");
        else if (*s == '~' || *s == '^')
            out_printf(o, "\\%c{}", *s);
        else if (*s == '<' || *s == '>')
            out_printf(o, "$%c$", *s);
        else
            out_char(o, *s);
    }
}

static void latex_line(struct out *o, char *buf, const struct derive_line *l)
{
    out_str(o, "\\item[");
    latex_text(o, l->label);
    out_str(o, "] ");
    if (l->formula) {
        (void)sym_print_as(l->formula, SYM_LATEX, buf, FORMULA_MAX);
        out_printf(o, "$%s$", buf);
    }
    if (l->text) {
        out_str(o, l->formula ? " " : "");
        latex_text(o, l->text);
    }
    if (l->numbers) {
        (void)sym_print_as(l->numbers, SYM_LATEX, buf, FORMULA_MAX);
        out_printf(o, "\n\n$= %s$", buf);
    }
    out_char(o, '\n');
}

enum err_code explain_page_latex(struct arena *a, struct out *o, const struct derivation *d, struct err *e)
{
    char *buf = arena_alloc(a, FORMULA_MAX);
    if (!buf) return err_nomem(e);
    out_str(o, "\\documentclass{article}\n\\usepackage[T1]{fontenc}\n\\usepackage[utf8]{inputenc}\n"
               "\\usepackage[a4paper,margin=2cm]{geometry}\n\\setlength{\\parindent}{0pt}\n"
               "\\binoppenalty=0\n\\relpenalty=0\n"
               "\\begin{document}\n\\raggedright\n\\section*{");
    latex_text(o, d->title);
    out_str(o, "}\n");
    if (d->about) latex_text(o, d->about);
    out_char(o, '\n');
    for (size_t i = 0; i < d->n; i++) {
        const struct derive_section *s = &d->section[i];
        out_str(o, "\n\\subsection*{");
        latex_text(o, s->title);
        out_str(o, "}\n");
        if (s->about) {
            latex_text(o, s->about);
            out_char(o, '\n');
        }
        if (s->n == 0) continue;
        out_str(o, "\\begin{description}\n");
        for (size_t k = 0; k < s->n; k++) latex_line(o, buf, &s->line[k]);
        out_str(o, "\\end{description}\n");
    }
    out_str(o, "\\end{document}\n");
    return ERR_OK;
}
