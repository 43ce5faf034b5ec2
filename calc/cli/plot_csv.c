#include "calc/cli/plot_csv.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    struct arena *arena;
    const char *what, *at;
    size_t line;
    const char **cells; /* all cells so far */
    size_t n, room;
};

static enum err_code add_cell(struct reader *r, const char *cell, struct err *e)
{
    if (r->n == r->room) {
        const size_t room = r->room ? 2 * r->room : 256;
        const char **grown = arena_array(r->arena, room, sizeof *grown);
        if (!grown) return err_nomem(e);
        if (r->n) memcpy(grown, r->cells, r->n * sizeof *grown);
        r->cells = grown;
        r->room = room;
    }
    r->cells[r->n++] = cell;
    return ERR_OK;
}

/* One cell; r->at is left at the comma, the line end or the NUL behind it. */
static enum err_code read_cell(struct reader *r, struct err *e)
{
    const char *s = r->at;
    if (*s != '"') {
        const size_t n = strcspn(s, ",\r\n");
        r->at += n;
        char *cell = arena_strndup(r->arena, s, n);
        return cell ? add_cell(r, cell, e) : err_nomem(e);
    }
    const char *end = ++s;
    while (*end && !(end[0] == '"' && end[1] != '"')) end += *end == '"' ? 2 : 1;
    if (!*end) return err_set(e, ERR_INPUT, "%s: line %zu: a quote does not end", r->what, r->line);
    char *cell = arena_strndup(r->arena, s, (size_t)(end - s));
    if (!cell) return err_nomem(e);
    char *w = cell;
    for (; s < end; s++) {
        if (*s == '\n') r->line++;
        *w++ = *s;
        if (*s == '"') s++;
    }
    *w = '\0';
    r->at = end + 1;
    return add_cell(r, cell, e);
}

/* One line with at least one character. */
static enum err_code read_row(struct reader *r, struct err *e)
{
    for (;;) {
        TRY(read_cell(r, e));
        const char *cell = r->cells[r->n - 1];
        if (cell[0] == '\'' && cell[1] && strchr("=+-@\t\r", cell[1])) r->cells[r->n - 1] = cell + 1;
        if (*r->at != ',') break;
        r->at++;
    }
    if (*r->at && *r->at != '\n' && *r->at != '\r')
        return err_set(e, ERR_INPUT, "%s: line %zu: text after a closing quote", r->what, r->line);
    return ERR_OK;
}

static bool skip_line_ends(struct reader *r)
{
    for (; *r->at == '\n' || *r->at == '\r'; r->at++)
        if (*r->at == '\n') r->line++;
    return *r->at != '\0';
}

enum err_code plot_csv_parse(struct arena *a, const char *what, const char *text, struct plot_csv *out, struct err *e)
{
    struct reader r = {.arena = a, .what = what, .at = text ? text : "", .line = 1};
    if (!skip_line_ends(&r)) return err_set(e, ERR_INPUT, "%s: empty, wanted a header and rows", what);
    TRY(read_row(&r, e));
    const size_t n_columns = r.n;
    size_t n_rows = 0;
    while (skip_line_ends(&r)) {
        const size_t line = r.line;
        TRY(read_row(&r, e));
        n_rows++;
        if (r.n > (n_rows + 1) * n_columns)
            return err_set(e, ERR_INPUT, "%s: line %zu has more cells than the header, which has %zu", what, line,
                           n_columns);
        while (r.n < (n_rows + 1) * n_columns) TRY(add_cell(&r, "", e));
    }
    *out = (struct plot_csv){.cells = r.cells, .n_rows = n_rows, .n_columns = n_columns};
    return ERR_OK;
}

size_t plot_csv_column(const struct plot_csv *csv, const char *key)
{
    size_t i = 0;
    while (i < csv->n_columns && strcmp(csv->cells[i], key) != 0) i++;
    return i;
}

const char *plot_csv_text(const struct plot_csv *csv, size_t row, const char *key)
{
    const size_t column = plot_csv_column(csv, key);
    return column < csv->n_columns ? csv->cells[(row + 1) * csv->n_columns + column] : "";
}

double plot_csv_number(const struct plot_csv *csv, size_t row, const char *key)
{
    const char *s = plot_csv_text(csv, row, key);
    char *end = NULL;
    const double v = strtod(s, &end);
    return end == s || *end || !isfinite(v) ? (double)NAN : v;
}
