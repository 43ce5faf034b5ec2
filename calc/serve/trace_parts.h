/* trace_parts -- what the readers of traces share: trace.c (lines, CSV, the whole) and trace_blocks.c (Mooncake's JSON
 * lines, whose blocks have names). */
#ifndef RIDGE_SERVE_TRACE_PARTS_H
#define RIDGE_SERVE_TRACE_PARTS_H

#include "calc/serve/workload.h"

enum { TRACE_HASH_TOKENS = 512 }; /* of a name, in Mooncake's traces */

/* What a row is made of; a form of trace names its columns. */
enum cell { ARRIVAL, PROMPT, OUTPUT, CACHED, TOTAL, CELLS_N };

struct form {
    const char *column[CELLS_N]; /* NULL: has none */
    bool dated;                  /* arrivals are dates */
    bool failures;               /* no output: the request failed */
};

/* Who looks on; go_on NULL: nobody. */
struct watch {
    bool (*go_on)(void *closure, size_t done, size_t all);
    void *closure;
};

struct reader {
    struct arena *arena;
    const char *name; /* clean */
    const char *at, *end;
    size_t line, cells_n; /* of the header */
    struct workload_request *row;
    size_t n, room, failed, late;
    size_t odd, odd_line; /* rows whose total is no sum, and the first of them */
    uint32_t *hash;
    size_t hash_n, hash_room;
    const struct form *form;
    int column[CELLS_N];
    int64_t first_day; /* of dated rows; -1 before the first */
    const struct watch *watch;
    const char *text; /* the first byte */
    struct err *err;
};

struct piece {
    const char *s;
    size_t n;
};

/* trace_line -- the next line, without its end; false: there is none. trace_tell -- now and then, to who looks on.
 * trace_refuse -- ERR_INPUT "FILE:LINE: what, not 'piece'" (NULL: without). trace_add -- one more request. Errors:
 * ERR_STOPPED who looks on says so; ERR_INPUT too many; ERR_NOMEM. */
bool trace_line(struct reader *r, struct piece *out);
enum err_code trace_tell(const struct reader *r);
enum err_code trace_refuse(struct reader *r, const char *what, const struct piece *p);
enum err_code trace_add(struct reader *r, const struct workload_request *q);

/* trace_json -- Mooncake's lines, from this one on. trace_chain -- hash [hash_n]: names of blocks become those of all
 * blocks up to them, as what was cached is found if all before it is the same; apart: names that stand behind different
 * ones. */
enum err_code trace_json(struct reader *r, struct piece line);
enum err_code trace_chain(struct reader *r, uint32_t *hash, size_t *apart);

#endif
