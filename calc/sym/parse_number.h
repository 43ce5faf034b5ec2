/* parse_number -- decimals of the parser, exactly. Private to this room. */
#ifndef RIDGE_SYM_PARSE_NUMBER_H
#define RIDGE_SYM_PARSE_NUMBER_H

#include "calc/sym/parse_read.h"

/* parse_number -- the number that begins at t->s[*i] with a digit, or a point and a digit; *i moves behind it.
 * upper_e: "E" begins an exponent too. */
enum err_code parse_number(const struct parse_input *in, struct sym_ctx *c, const struct parse_chars *t, bool upper_e,
                           size_t *i, const struct sym **out);

#endif
