#include "calc/fit/rows_cells.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "calc/base/text.h"

enum err_code rows_cells_open(struct arena *a, const char *path, struct rows_cells *out, struct err *e)
{
    char shown[256];
    struct stat st;
    (void)text_clean(shown, sizeof shown, path, strlen(path));
    FILE *f = fopen(strcmp(path, "-") == 0 ? "/dev/stdin" : path, "rb");
    if (!f) return err_set(e, ERR_IO, "%s: cannot read: %s", shown, strerror(errno));
    if (fstat(fileno(f), &st) != 0 || !S_ISREG(st.st_mode)) {
        (void)fclose(f);
        return err_set(e, ERR_IO, "%s: cannot read: not a regular file", shown);
    }
    if (st.st_size > ROWS_CELLS_FILE_MAX) {
        (void)fclose(f);
        return err_set(e, ERR_INPUT, "%s: larger than 512 MiB; ridge probe export --kind or --kernel writes a part",
                       shown);
    }
    const size_t size = (size_t)st.st_size;
    char *text = arena_alloc(a, size + 1), *name = arena_strndup(a, shown, strlen(shown));
    const size_t got = text ? fread(text, 1, size, f) : 0;
    const bool failed = ferror(f) != 0;
    (void)fclose(f);
    if (!text || !name) return err_nomem(e);
    if (failed) return err_set(e, ERR_IO, "%s: cannot read", shown);
    if (got >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
        return err_set(e, ERR_INPUT, "%s: in UTF-16, wanted CSV text in UTF-8 (iconv -f UTF-16 -t UTF-8)", shown);
    if (memchr(text, '\0', got)) return err_set(e, ERR_INPUT, "%s: holds a NUL byte, wanted CSV text", shown);
    const size_t mark = got >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* byte order mark */
    *out = (struct rows_cells){.name = name, .at = text + mark, .end = text + got, .line = 1};
    return ERR_OK;
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
    for (; c->at < c->end && (*c->at == '\n' || *c->at == '\r'); c->at++) c->line += *c->at == '\n';
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
