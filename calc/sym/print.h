/* print -- expressions as text, LaTeX, C and gnuplot, and text broken into lines.
 *
 * The structure of the expression is kept: nothing is expanded or reduced. Like sym_print, every function returns the
 * length that the whole needs (as snprintf does; 0 when memory is exhausted), stores at most cap-1 characters and a
 * NUL, and costs time linear in distinct nodes plus the characters stored. */
#ifndef RIDGE_SYM_PRINT_H
#define RIDGE_SYM_PRINT_H

#include <stddef.h>

#include "calc/sym/sym.h"

/* SYM_TEXT     what sym_print writes; sym_parse reads it back.
 * SYM_LATEX    math mode: \frac{2 B D F}{3}, \min\left(S, W\right), \log\left(x\right), \left\lceil x \right\rceil;
 *              products by juxtaposition, with \cdot before a number; b_kv is b_{\mathrm{kv}}, Hv is \mathrm{Hv}, gamma
 *              is \gamma. sym_parse reads it back.
 * SYM_C        an expression of doubles, for <math.h>: fmin, fmax, ceil, floor, pow, log, exp; every number a double
 *              (2.0). Names are identifiers: of any other byte the code (_x and two hexadecimal digits), an underscore
 *              before a leading digit. fmin and fmax pass over a NAN, which a tape does not.
 * SYM_GNUPLOT  ** for powers, min and max as (a < b ? a : b), so nested ones double the text; never integer division,
 *              whatever the type of the variables. Names as in C. */
enum sym_style { SYM_TEXT, SYM_LATEX, SYM_C, SYM_GNUPLOT };

size_t sym_print_as(const struct sym *e, enum sym_style style, char *buf, size_t cap);

enum { SYM_WRAP_MAX = 1 << 20 };

/* sym_print_wrapped -- the text of sym_print in lines of at most width columns, those after the first indented by
 * indent spaces (at most width/2). Lines end before an operator or after a comma, outside parentheses where that fills
 * half a line; a name or number wider than a line has a line of its own. Of a text over SYM_WRAP_MAX bytes the first
 * SYM_WRAP_MAX are written and counted. sym_parse reads it back. */
size_t sym_print_wrapped(const struct sym *e, size_t width, size_t indent, char *buf, size_t cap);

#endif
