#include "calc/fit/rows_cells.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "calc/base/text.h"

/* What of a file is in memory, where not all of it is: text[0..] from the row that is read on. */
struct rows_window {
    FILE *f; /* NULL: all was read */
    char *text;
    size_t room;
};

enum { WINDOW_BYTES = 1 << 16 };

static enum err_code check_text(const char *name, const char *text, size_t n, bool first, struct err *e)
{
    if (first && n >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
        return err_set(e, ERR_INPUT, "%s: in UTF-16, wanted CSV text in UTF-8 (iconv -f UTF-16 -t UTF-8)", name);
    if (memchr(text, '\0', n)) return err_set(e, ERR_INPUT, "%s: holds a NUL byte, wanted CSV text", name);
    return ERR_OK;
}

static size_t mark_bytes(const char *text, size_t n) { return n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; }

/* A regular file, and the name that messages call it. */
static enum err_code open_file(struct arena *a, const char *path, FILE **out, size_t *size, const char **name,
                               struct err *e)
{
    char shown[256];
    struct stat st;
    (void)text_clean(shown, sizeof shown, path, strlen(path));
    if (!(*name = arena_strndup(a, shown, strlen(shown)))) return err_nomem(e);
    FILE *f = fopen(strcmp(path, "-") == 0 ? "/dev/stdin" : path, "rb");
    if (!f) return err_set(e, ERR_IO, "%s: cannot read: %s", shown, strerror(errno));
    if (fstat(fileno(f), &st) != 0 || !S_ISREG(st.st_mode)) {
        (void)fclose(f);
        return err_set(e, ERR_IO, "%s: cannot read: not a regular file", shown);
    }
    *out = f;
    *size = (size_t)st.st_size;
    return ERR_OK;
}

enum err_code rows_cells_open(struct arena *a, const char *path, struct rows_cells *out, struct err *e)
{
    FILE *f;
    size_t size;
    const char *name;
    TRY(open_file(a, path, &f, &size, &name, e));
    if (size > ROWS_CELLS_FILE_MAX) {
        (void)fclose(f);
        return err_set(e, ERR_INPUT, "%s: larger than 512 MiB; ridge probe export --kind or --kernel writes a part",
                       name);
    }
    char *text = arena_alloc(a, size + 1);
    const size_t got = text ? fread(text, 1, size, f) : 0;
    const bool failed = ferror(f) != 0;
    (void)fclose(f);
    if (!text) return err_nomem(e);
    if (failed) return err_set(e, ERR_IO, "%s: cannot read", name);
    TRY(check_text(name, text, got, true, e));
    *out = (struct rows_cells){.name = name, .at = text + mark_bytes(text, got), .end = text + got, .line = 1};
    return ERR_OK;
}

/* -- a window -- */

static void release(void *what)
{
    struct rows_window *w = what;
    if (w->f) (void)fclose(w->f);
    free(w->text);
}

enum err_code rows_cells_stream(struct arena *a, const char *path, struct rows_cells *out, struct err *e)
{
    struct rows_window *w = arena_alloc(a, sizeof *w);
    size_t size;
    if (!w) return err_nomem(e);
    *out = (struct rows_cells){.line = 1, .window = w};
    TRY(open_file(a, path, &w->f, &size, &out->name, e));
    return arena_defer(a, release, w, e);
}

/* More of the file behind what is left of it. */
static enum err_code read_more(struct rows_cells *c, struct err *e)
{
    struct rows_window *w = c->window;
    const bool first = !w->text;
    const size_t left = (size_t)(c->end - c->at);
    if (left) memmove(w->text, c->at, left);
    if (left + WINDOW_BYTES + 1 > w->room) {
        const size_t room = 2 * (left + WINDOW_BYTES + 1);
        char *grown = realloc(w->text, room);
        if (!grown) return err_nomem(e);
        w->text = grown;
        w->room = room;
    }
    const size_t got = fread(w->text + left, 1, WINDOW_BYTES, w->f);
    if (ferror(w->f)) return err_set(e, ERR_IO, "%s: cannot read", c->name);
    TRY(check_text(c->name, w->text + left, got, first, e));
    c->at = w->text + (first ? mark_bytes(w->text, got) : 0);
    c->end = w->text + left + got;
    *c->end = '\0';
    if (got) return ERR_OK;
    (void)fclose(w->f);
    w->f = NULL;
    return ERR_OK;
}

/* As much of the file as the next row needs: up to a line that ends outside of quotes, which a cell begins with. */
static enum err_code need_row(struct rows_cells *c, struct err *e)
{
    enum { START, PLAIN, QUOTED, CLOSED } in = START;
    size_t n = 0;
    while (c->window && c->window->f) {
        for (; n < (size_t)(c->end - c->at); n++) {
            const char ch = c->at[n];
            if (in == QUOTED) {
                in = ch == '"' ? CLOSED : QUOTED;
            } else if (ch == '"' && in != PLAIN) {
                in = QUOTED; /* the first, or one of a pair */
            } else if (ch == '\n') {
                return ERR_OK;
            } else {
                in = ch == ',' ? START : PLAIN;
            }
        }
        if (n > ROWS_CELLS_ROW_MAX)
            return err_set(e, ERR_INPUT, "%s: line %zu: a row of more than 64 MiB, or a quote that does not end",
                           c->name, c->line);
        TRY(read_more(c, e));
    }
    return ERR_OK;
}

static void skip_blank(struct rows_cells *c)
{
    for (; c->at < c->end && (*c->at == '\n' || *c->at == '\r'); c->at++) c->line += *c->at == '\n';
}

/* A quoted cell in place; c->at is left behind the closing quote. */
static enum err_code quoted(struct rows_cells *c, const char **cell, size_t *len, struct err *e)
{
    const size_t line = c->line;
    char *from = c->at + 1, *to = from;
    *cell = from;
    for (;; from++) {
        if (from >= c->end) return err_set(e, ERR_INPUT, "%s: line %zu: a quote does not end", c->name, line);
        if (*from == '"' && from + 1 < c->end && from[1] == '"')
            from++;
        else if (*from == '"')
            break;
        if (*from == '\n') c->line++;
        *to++ = *from;
    }
    *len = (size_t)(to - *cell);
    c->at = from + 1;
    *to = '\0';
    if (c->at < c->end && !strchr(",\r\n", *c->at))
        return err_set(e, ERR_INPUT, "%s: line %zu: text behind a closing quote", c->name, c->line);
    return ERR_OK;
}

static enum err_code next_cell(struct rows_cells *c, struct err *e)
{
    size_t len = 0;
    const char *cell = c->at;
    if (c->n == ROWS_CELLS_COLUMNS_MAX)
        return err_set(e, ERR_INPUT, "%s: line %zu: more than %d columns", c->name, c->line, ROWS_CELLS_COLUMNS_MAX);
    if (c->at < c->end && *c->at == '"') {
        TRY(quoted(c, &cell, &len, e));
    } else {
        len = strcspn(c->at, ",\r\n");
        c->at += len;
    }
    if (len > ROWS_CELLS_TEXT_MAX)
        return err_set(e, ERR_INPUT, "%s: line %zu: a cell of more than %d bytes", c->name, c->line,
                       ROWS_CELLS_TEXT_MAX);
    c->cell[c->n++] = cell;
    return ERR_OK;
}

enum err_code rows_cells_next(struct rows_cells *c, bool *more, struct err *e)
{
    skip_blank(c);
    while (c->at == c->end && c->window && c->window->f) {
        TRY(read_more(c, e));
        skip_blank(c);
    }
    TRY(need_row(c, e));
    c->n = 0;
    c->row_line = c->line;
    *more = c->at < c->end;
    if (!*more) return ERR_OK;
    for (bool last = false; !last;) {
        TRY(next_cell(c, e));
        last = c->at >= c->end || *c->at != ',';
        if (last && c->at < c->end && *c->at == '\r') *c->at++ = '\0';
        if (last && c->at < c->end && *c->at != '\n')
            return err_set(e, ERR_INPUT, "%s: line %zu: a carriage return inside a line", c->name, c->line);
        c->line += last && c->at < c->end;
        if (c->at < c->end) *c->at++ = '\0';
    }
    return ERR_OK;
}
