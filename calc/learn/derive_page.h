/* derive_page -- a derivation in the making: sections and lines that grow in an arena, and values at the point that is
 * asked for; private to the files of derive. */
#ifndef RIDGE_LEARN_DERIVE_PAGE_H
#define RIDGE_LEARN_DERIVE_PAGE_H

#include "calc/learn/derive.h"

struct derive_page {
    const struct derive_request *q;
    struct arena *a;
    struct sym_ctx *c;
    struct derivation *d;
    struct err *e;
    bool failed; /* memory is exhausted */
};

/* derive_page_begin -- a section; derive_page_put -- a line of the last one. */
void derive_page_begin(struct derive_page *p, const char *title, const char *about);
void derive_page_put(struct derive_page *p, struct derive_line line);

/* derive_page_text -- a text in the arena; "" when memory is exhausted. */
const char *derive_page_text(struct derive_page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* derive_page_clean -- a name from a file, fit for a terminal. */
const char *derive_page_clean(struct derive_page *p, const char *name);

/* derive_page_formula -- a line with a formula; numbers NULL: none, dropped where it says the same. */
void derive_page_formula(struct derive_page *p, const char *label, const struct sym *formula,
                         const struct sym *numbers);

/* derive_page_normal -- the same with both in canonical form, and without a minus sign above and below. Errors: as
 * sym_normal. */
enum err_code derive_page_normal(struct derive_page *p, const char *label, const struct sym *formula,
                                 const struct sym *numbers);

bool derive_page_is_zero(const struct sym *e);

/* derive_page_tokens -- query tokens per sequence at the point. */
double derive_page_tokens(const struct derive_page *p);

/* derive_page_value -- an expression of the scope with numbers at the point; NAN while symbols are left. Errors:
 * ERR_NOMEM. */
enum err_code derive_page_value(struct derive_page *p, const struct sym *e, double *out);

/* derive_point -- the section "at B = ...": amounts, side of the ridge, time, and the operators by their share of it.
 * Without a line where symbols are left. Errors: ERR_NOMEM. */
enum err_code derive_point(struct derive_page *p, const struct quantity_topic *with);

#endif
