#include "calc/learn/derive_page.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/learn/tidy.h"

/* room for one more of n in a list of cap elements; false when memory is exhausted */
static bool grow(struct derive_page *p, void **list, size_t n, size_t *cap, size_t size)
{
    if (n < *cap) return true;
    const size_t more = *cap ? 2 * *cap : 8;
    void *wider = arena_array(p->a, more, size);
    if (!wider) {
        p->failed = true;
        return false;
    }
    if (n) memcpy(wider, *list, n * size);
    *list = wider;
    *cap = more;
    return true;
}

void derive_page_begin(struct derive_page *p, const char *title, const char *about)
{
    struct derivation *d = p->d;
    void *list = d->section;
    if (p->failed || !grow(p, &list, d->n, &d->cap, sizeof *d->section)) return;
    d->section = list;
    d->section[d->n++] = (struct derive_section){.title = title, .about = about};
}

void derive_page_put(struct derive_page *p, struct derive_line line)
{
    if (p->failed) return;
    struct derive_section *s = &p->d->section[p->d->n - 1];
    void *list = s->line;
    if (!grow(p, &list, s->n, &s->cap, sizeof *s->line)) return;
    s->line = list;
    s->line[s->n++] = line;
}

const char *derive_page_text(struct derive_page *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = n < 0 ? NULL : arena_alloc(p->a, (size_t)n + 1);
    if (text) (void)vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    if (!text) p->failed = true;
    return text ? text : "";
}

const char *derive_page_clean(struct derive_page *p, const char *name)
{
    char clean[200];
    return derive_page_text(p, "%s", text_clean(clean, sizeof clean, name, strlen(name)));
}

bool derive_page_is_zero(const struct sym *e)
{
    double v;
    return sym_constant(e, &v) && !(v > 0) && !(v < 0);
}

void derive_page_formula(struct derive_page *p, const char *label, const struct sym *formula, const struct sym *numbers)
{
    derive_page_put(
        p, (struct derive_line){.label = label, .formula = formula, .numbers = numbers == formula ? NULL : numbers});
}

enum err_code derive_page_normal(struct derive_page *p, const char *label, const struct sym *formula,
                                 const struct sym *numbers)
{
    const struct sym *f, *n = NULL;
    TRY(tidy(p->c, formula, &f, p->e));
    if (numbers) TRY(tidy(p->c, numbers, &n, p->e));
    derive_page_formula(p, label, f, n);
    return ERR_OK;
}

double derive_page_tokens(const struct derive_page *p)
{
    const struct quantity_scope *s = p->q->numbers;
    double tokens = 1;
    const struct sym *own = quantity_tokens(s);
    if (p->q->phase != QUANTITY_DECODE || own == s->y.S) return (double)p->q->context;
    return sym_constant(own, &tokens) ? tokens : (double)NAN;
}

enum err_code derive_page_value(struct derive_page *p, const struct sym *e, double *out)
{
    const struct quantity_scope *s = p->q->numbers;
    const struct sym_binding env[] = {{s->y.B, sym_int(p->c, p->q->batch)},
                                      {s->y.S, sym_int(p->c, p->q->context)},
                                      {s->y.T, sym_num(p->c, derive_page_tokens(p))}};
    *out = (double)NAN;
    (void)sym_constant(sym_bind(p->c, e, env, sizeof env / sizeof env[0]), out);
    return sym_check(p->c, p->e);
}
