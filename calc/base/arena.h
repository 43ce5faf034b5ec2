/* arena -- the one owner of memory.
 *
 * Everything reachable from a struct loaded or built lives in the arena passed in and dies with it; functions never
 * keep a pointer to their arguments beyond it; whoever calls _open calls _close. */
#ifndef RIDGE_BASE_ARENA_H
#define RIDGE_BASE_ARENA_H

#include <stddef.h>

#include "calc/base/err.h"

struct arena;

/* arena_open -- a new empty arena, NULL when memory is exhausted. */
struct arena *arena_open(void);

/* arena_close -- run the deferred releases in reverse order, then free everything. NULL is legal. */
void arena_close(struct arena *a);

/* arena_alloc -- size zeroed bytes, aligned for any type; NULL when exhausted. */
void *arena_alloc(struct arena *a, size_t size);

/* arena_array -- n zeroed elements of size bytes; NULL when exhausted or when n*size overflows. */
void *arena_array(struct arena *a, size_t n, size_t size);

/* arena_printf, arena_strndup -- strings in the arena; NULL when exhausted. */
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_strndup(struct arena *a, const char *s, size_t len);

/* arena_defer -- call release(what) when the arena closes (for objects of libraries). On failure release is called at
 * once, so the caller never leaks. Errors: ERR_NOMEM. */
enum err_code arena_defer(struct arena *a, void (*release)(void *), void *what, struct err *e);

#endif
