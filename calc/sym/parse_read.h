/* parse_read -- the first pass of the parser: typography and LaTeX become plain characters. Private to this room. */
#ifndef RIDGE_SYM_PARSE_READ_H
#define RIDGE_SYM_PARSE_READ_H

#include <stdint.h>

#include "calc/sym/parse.h"

struct parse_input {
    const char *text;
    size_t len;
    const struct parse_names *names;
    struct parse_error *where;
    struct err *e;
};

/* What has no ASCII character of its own; controls of the input are refused, so these cannot be in it. */
enum parse_mark {
    PARSE_FRAC = 1,
    PARSE_SUPER, /* then [-] digits, then */
    PARSE_SUPER_END,
    PARSE_LCEIL,
    PARSE_RCEIL,
    PARSE_LFLOOR,
    PARSE_RFLOOR,
    PARSE_SUM, /* then {name=low}^... */
};

struct parse_chars {
    char *s;      /* n bytes and a NUL: ASCII, marks, and UTF-8 within names */
    uint32_t *at; /* [n + 1] offset in the input that each came from */
    size_t n;
};

enum err_code parse_read(const struct parse_input *in, struct arena *scratch, struct parse_chars *out);

/* parse_fail -- record the sentence with " at column N" of the offset, then hint; returns code. */
enum err_code parse_fail(const struct parse_input *in, enum err_code code, size_t offset, const char *hint,
                         const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* parse_is_name_char -- letters, digits, underscore, and every byte of a character beyond ASCII */
static inline bool parse_is_digit(char c) { return c >= '0' && c <= '9'; }
static inline bool parse_is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static inline bool parse_is_name_char(char c)
{
    return parse_is_letter(c) || parse_is_digit(c) || c == '_' || (unsigned char)c >= 0x80;
}

#endif
