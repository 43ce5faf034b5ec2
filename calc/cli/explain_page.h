/* explain_page -- a derivation as text of 80 columns or as a LaTeX document; private to `ridge explain`. */
#ifndef RIDGE_CLI_EXPLAIN_PAGE_H
#define RIDGE_CLI_EXPLAIN_PAGE_H

#include "calc/base/out.h"
#include "calc/learn/derive.h"

/* explain_page_text -- labels in a column, formulas broken at operators. Errors: ERR_NOMEM. */
enum err_code explain_page_text(struct arena *a, struct out *o, const struct derivation *d, struct err *e);

/* explain_page_latex -- a document that pdflatex compiles. */
enum err_code explain_page_latex(struct arena *a, struct out *o, const struct derivation *d, struct err *e);

#endif
