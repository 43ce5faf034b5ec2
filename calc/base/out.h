/* out -- where results go: standard output, a file that appears only when complete, or memory.
 *
 * A regular file is written to a nameless temporary in the same directory and gets its name at out_commit; a run that
 * fails or is killed before leaves nothing behind and the old file whole. What exists and is no regular file
 * (/dev/null, a fifo) is written directly. Writing never fails in place: the first failure is remembered, later writes
 * are dropped, out_check and out_commit report it. Not for use from two threads. */
#ifndef RIDGE_BASE_OUT_H
#define RIDGE_BASE_OUT_H

#include <stdbool.h>
#include <stddef.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"

struct out;

/* out_open -- path NULL, "-" or "/dev/stdout" is standard output. An out that was not committed when the arena closes
 * is abandoned. Errors: ERR_IO with path and reason, ERR_NOMEM. */
enum err_code out_open(struct arena *a, const char *path, struct out **out, struct err *e);

/* out_check_path -- whether out_open would work; makes nothing, and leaves alone what exists and is no regular file
 * nor folder, and links to nothing.
 * Errors: as out_open. */
enum err_code out_check_path(const char *path, struct err *e);

/* out_memory -- collect in memory; out_text gives what was written. Errors: ERR_NOMEM. */
enum err_code out_memory(struct arena *a, struct out **out, struct err *e);

/* out_text -- what an out_memory holds, NUL at the end, its length to *len when len is not NULL; lives until the next
 * write or the end of the arena; NULL when memory ran out. */
const char *out_text(struct out *o, size_t *len);

void out_write(struct out *o, const char *s, size_t n);
void out_str(struct out *o, const char *s);
void out_char(struct out *o, char c);
void out_printf(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

enum { OUT_ROOM_MAX = 4096 };

/* out_room, out_used -- the fast way for short pieces: n <= OUT_ROOM_MAX bytes to write into (never NULL), then how
 * many of them were written. */
char *out_room(struct out *o, size_t n);
void out_used(struct out *o, size_t n);

/* out_check -- whether all went well so far, for those who write much. Errors: as out_commit. Cost: O(1). */
enum err_code out_check(const struct out *o, struct err *e);

/* out_commit -- write what is buffered; give the file its name (mode of the file replaced, or by umask). The out is
 * finished either way; on failure nothing is left behind. Errors: ERR_IO with path and reason, ERR_NOMEM. A reader that
 * closed its end of the pipe is ERR_IO with an empty sentence: there is nobody to tell, the program just ends.
 * (SIGPIPE must be ignored for that.) */
enum err_code out_commit(struct out *o, struct err *e);

/* out_abandon -- drop what was written; the file at the path stays as it was. */
void out_abandon(struct out *o);

#endif
