#include "calc/cli/explain_page.h"

#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/option.h"
#include "calc/sym/print.h"

enum { FORMULA_MAX = 1 << 18, LABEL = 16, WIDTH = 79 };

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
