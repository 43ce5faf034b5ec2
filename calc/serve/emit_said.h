/* emit_said -- the lines of a command for a shell, and what is said above them whichever engine it is. Private to
 * emit.c. */
#ifndef RIDGE_SERVE_EMIT_SAID_H
#define RIDGE_SERVE_EMIT_SAID_H

#include "calc/serve/emit.h"

enum { EMIT_BYTES = 4096 };

struct emit_lines {
    char text[EMIT_BYTES];
    size_t used, column; /* of the line that is written */
    bool cut;
};

/* Words that the shell, or a person, has to replace: it stops at the first until it is set. */
#define EMIT_STORED_SO "${CHECKPOINT:?}"
#define EMIT_HEAD "HEAD"

/* emit_put -- as it is. emit_word -- a word of the command; the line goes on below when it is full. emit_comment -- a
 * comment of lines that fit a terminal; a text with line ends is broken already. emit_is_plain -- whether a name needs
 * no quoting but for a dash in front. */
void emit_put(struct emit_lines *o, const char *text);
void emit_word(struct emit_lines *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void emit_comment(struct emit_lines *o, const char *text);
bool emit_is_plain(const char *s);

/* emit_stored_otherwise -- whether the engine needs a checkpoint whose weights are stored as planned. emit_nodes -- of
 * a copy. */
bool emit_stored_otherwise(const struct emit_plan *p, enum emit_engine engine);
int64_t emit_nodes(const struct layout *l);

/* emit_say_copies -- how often the line is to be run, behind which router. emit_say_checkpoint -- which directories are
 * to be put in. emit_say_weights -- which checkpoint is needed. emit_say_length -- from which length on a request is
 * refused. emit_say_draft -- whose heads. emit_say_nodes -- what the shell has to know on every node; ranked: of ranks,
 * NULL none. */
void emit_say_copies(struct emit_lines *o, const struct emit_plan *p, const char *router);
void emit_say_checkpoint(struct emit_lines *o, const struct emit_plan *p);
void emit_say_weights(struct emit_lines *o, const struct emit_plan *p, enum emit_engine engine, const char *model);
void emit_say_length(struct emit_lines *o, const struct emit_plan *p);
void emit_say_draft(struct emit_lines *o, const struct emit_plan *p);
void emit_say_nodes(struct emit_lines *o, const struct layout *l, const char *ranked);

#endif
