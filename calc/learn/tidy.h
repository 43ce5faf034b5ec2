/* tidy -- canonical forms as a person would write them. */
#ifndef RIDGE_LEARN_TIDY_H
#define RIDGE_LEARN_TIDY_H

#include "calc/sym/sym.h"

/* tidy -- the canonical form of e, but a/(c - b) for the -a/(b - c) that an order of symbols may ask for. Errors: as
 * sym_normal. */
enum err_code tidy(struct sym_ctx *c, const struct sym *e, const struct sym **out, struct err *err);

#endif
