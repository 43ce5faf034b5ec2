/* print_piece -- what the printers of this room share. Private to it.
 *
 * An expression is a few pieces, each literal text or an operand; the pieces give both the length (memoised over the
 * shared graph, so a text too long to write is still measured) and the text, without recursion. */
#ifndef RIDGE_SYM_PRINT_PIECE_H
#define RIDGE_SYM_PRINT_PIECE_H

#include "calc/sym/node.h"
#include "calc/sym/print.h"

struct piece {
    const struct sym *e; /* NULL: text */
    bool bare;           /* without the minus sign, which is then one character */
    char text[32];
};

struct pieces {
    size_t n;
    struct piece at[5 * SYM_BLOCK]; /* of each factor: ( factor ) ^n * */
};

struct print_sink {
    char *buf;
    size_t cap, used, total; /* total: what was offered */
};

/* print_put -- append n characters; false when the sink is full (one of cap 0 only counts, and never is). */
bool print_put(struct print_sink *s, const char *text, size_t n);

void print_text(struct pieces *p, const char *text);
void print_expr(struct pieces *p, const struct sym *e, bool bare);
/* print_sum -- of a SYM_ADD: a + b or a - b. */
void print_sum(struct pieces *p, const struct sym *e, bool bare);

/* print_is_decimal -- 0.85 rather than 7656119366529843/9007199254740992: a double whose decimal is the same number to
 * a reader. */
bool print_is_decimal(const struct sym *e);
bool print_has_denominator(const struct sym *e);
/* print_decimal -- |value| in as few digits as read back the same. */
void print_decimal(const struct sym *e, char *out, size_t cap);
/* print_takes_minus -- its minus sign is its own text; a sum takes it from its first operand. */
bool print_takes_minus(const struct sym *e);

struct print_style {
    void (*pieces)(struct pieces *p, const struct sym *e, bool bare, enum sym_style style); /* of all but variables */
    bool (*name)(struct print_sink *s, const char *name);                                   /* false: full */
};

void print_infix_pieces(struct pieces *p, const struct sym *e, bool bare, enum sym_style style);
bool print_infix_name(struct print_sink *s, const char *name);
void print_latex_pieces(struct pieces *p, const struct sym *e, bool bare, enum sym_style style);
bool print_latex_name(struct print_sink *s, const char *name);

#endif
