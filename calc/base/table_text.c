#include "calc/base/table_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"

enum { CELL_MAX = 128, STRING_COLUMNS_MAX = 40, STRING_COLUMNS_MIN = 14, LINE_COLUMNS = 80, GAP = 2 };

/* How a column is shown, found by looking over all its rows. */
struct face {
    const struct column *column;
    struct units_scale scale;
    bool all_whole; /* shown as whole numbers without prefix */
    size_t width;
    size_t gap; /* blanks behind it */
};

static const void *row_at(const struct table *t, size_t i) { return (const char *)t->rows + i * t->stride_bytes; }

static bool is_number(const struct column *c)
{
    return c->kind == COLUMN_INT || c->kind == COLUMN_COUNT || c->kind == COLUMN_REAL;
}

static bool shows_digits(const struct column *c)
{
    return c->kind == COLUMN_INT || (c->kind == COLUMN_COUNT && (c->flags & COLUMN_FULL) != 0);
}

static bool has_prefixes(enum units_kind kind)
{
    return kind != UNITS_NONE && kind != UNITS_COUNT && kind != UNITS_RATIO && kind != UNITS_FRAC &&
           kind != UNITS_FLOPS_PER_BYTE;
}

/* 4 significant digits as %#.4g gives them, without its trailing point; from 1000 on whole. What is so far below the
 * rest of its column that the prefix is not for it has 5 decimals, or 2 digits. */
static void format_scaled(char out[UNITS_TEXT_MAX], const struct face *f, double v)
{
    const double x = v / f->scale.divisor;
    if (f->column->unit == UNITS_FRAC) { /* shares, in percent */
        (void)snprintf(out, UNITS_TEXT_MAX, "%.1f", x);
        return;
    }
    if (f->all_whole || v == 0 || fabs(x) >= 999.95) {
        units_format_plain(out, x);
        return;
    }
    const double m = fabs(x);
    const int decimals = m >= 99.995 ? 1 : m >= 9.9995 ? 2 : m >= 0.99995 ? 3 : m >= 0.099995 ? 4 : 5;
    const bool prefixed = has_prefixes(f->column->unit);
    if (m < 0.00099995 && prefixed)
        (void)snprintf(out, UNITS_TEXT_MAX, "%.1e", x);
    else if (m < 0.0099995 && !prefixed)
        units_format_plain(out, x);
    else
        (void)snprintf(out, UNITS_TEXT_MAX, "%.*f", decimals, x);
}

/* The text of one cell; strings cleaned. */
static const char *format_cell(char out[CELL_MAX], const struct face *f, const void *row)
{
    const struct table_field v = table_field_of(f->column, row);
    char number[UNITS_TEXT_MAX];
    switch (v.type) {
    case TABLE_UNKNOWN: return "-";
    case TABLE_TRUE: return "yes";
    case TABLE_FALSE: return "no";
    case TABLE_STRING: return text_clean(out, CELL_MAX, v.text, strlen(v.text));
    case TABLE_WHOLE:
    case TABLE_REAL: break;
    }
    if (shows_digits(f->column)) {
        const size_t n = v.type == TABLE_WHOLE ? text_int(out, v.whole) : text_real(out, v.real);
        out[n] = '\0';
        return out;
    }
    format_scaled(number, f, v.real);
    return memcpy(out, number, sizeof number);
}

/* Between what numbers a column lies. */
struct span {
    double min, max;
    bool whole, any;
};

static void find_span(const struct table *t, const struct column *c, struct span *s)
{
    for (size_t i = 0; i < t->n_rows; i++) {
        const struct table_field v = table_field_of(c, row_at(t, i));
        if (v.type != TABLE_REAL && v.type != TABLE_WHOLE) continue;
        s->any = true;
        if (v.real == 0) continue;
        const double x = fabs(v.real);
        if (!(x >= s->min)) s->min = x;
        if (!(x <= s->max)) s->max = x;
        s->whole = s->whole && x == floor(x);
    }
}

static bool is_shown_like(const struct column *x, const struct column *c)
{
    return x->unit == c->unit && (x->flags & COLUMN_SHOWN) != 0;
}

/* The same of all columns that have one prefix with c. */
static void find_span_alike(const struct table *t, const struct column *c, struct span *s)
{
    const struct column *first = c, *end = t->columns + t->n_columns;
    for (const struct column *x = c; first->flags & COLUMN_ALIKE && x > t->columns;)
        if (is_shown_like(--x, c)) first = x;
    find_span(t, first, s);
    for (const struct column *x = first + 1; x < end; x++) {
        if (!is_shown_like(x, c)) continue;
        if (!(x->flags & COLUMN_ALIKE)) break;
        find_span(t, x, s);
    }
}

static void find_scale(const struct table *t, struct face *f)
{
    struct span own = {(double)NAN, (double)NAN, true, false};
    f->scale = units_scale_for(UNITS_NONE, own.min, own.max);
    if (!is_number(f->column)) return;
    find_span(t, f->column, &own);
    struct span all = own;
    find_span_alike(t, f->column, &all);
    const bool whole = own.whole, any = own.any;
    f->scale = units_scale_for(f->column->unit, all.min, all.max);
    if (f->column->unit == UNITS_FRAC) f->scale = (struct units_scale){.divisor = 0.01, .label = "%"};
    if (shows_digits(f->column)) { /* all digits go with the unit without prefix */
        f->scale = units_scale_for(f->column->unit, (double)NAN, (double)NAN);
        f->scale.divisor = 1;
    }
    if (!any) f->scale.label = "";                 /* dashes have no unit */
    f->all_whole = whole && f->scale.divisor == 1; /* numbers such as 1, 8, 64 without decimals */
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }
static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* The faces of the columns to show, malloc; *n of them. NULL when memory ran out. */
static struct face *faces_of(const struct table *t, size_t *n)
{
    struct face *faces = calloc(t->n_columns + 1, sizeof *faces);
    *n = 0;
    for (size_t i = 0; faces && i < t->n_columns; i++) {
        if (!(t->columns[i].flags & COLUMN_SHOWN)) continue;
        struct face *f = &faces[(*n)++];
        f->column = &t->columns[i];
        find_scale(t, f);
    }
    return faces;
}

static void pad(struct out *o, size_t n, char with)
{
    while (n-- > 0) out_char(o, with);
}

/* -- text -- */

/* s in width columns, numbers to the right; no blanks at the end of a line. */
static void put_aligned(struct out *o, const struct face *f, const char *s, bool last)
{
    const size_t len = strlen(s), w = text_width(s, len), fill = f->width > w ? f->width - w : 0;
    if (is_number(f->column)) pad(o, fill, ' ');
    out_write(o, s, len);
    if (!last) pad(o, f->gap + (is_number(f->column) ? 0 : fill), ' ');
}

static bool is_cut(const struct face *f, size_t limit)
{
    return f->column->kind == COLUMN_STRING && !(f->column->flags & COLUMN_WHOLE) && f->width > limit;
}

/* Strings give way until the line fits a terminal with one blank between columns, to STRING_COLUMNS_MIN at least. */
static size_t string_limit(const struct face *faces, size_t n)
{
    size_t limit = STRING_COLUMNS_MAX;
    for (; limit > STRING_COLUMNS_MIN; limit--) {
        const size_t gap = limit > STRING_COLUMNS_MAX / 2 ? GAP : 1;
        size_t total = 0;
        for (size_t i = 0; i < n; i++) {
            total += (is_cut(&faces[i], limit) ? limit : faces[i].width) + (i ? gap : 0);
        }
        if (total <= LINE_COLUMNS) break;
    }
    return limit;
}

/* Cut s to at most columns wide, marked "...": a path at its start, for its end says more, and a name of three parts or
 * more in its middle. */
static void cut_to(char *s, size_t columns)
{
    const size_t len = strlen(s);
    if (text_width(s, len) <= columns) return;
    size_t at = 0;
    if ((s[0] == '/' || s[0] == '.') && strchr(s, '/') && columns > 3) {
        while (at < len && text_width(s + at, len - at) > columns - 3)
            at += larger(1, text_utf8_len(s + at, len - at, NULL));
        memmove(s + 3, s + at, len - at + 1);
        memcpy(s, "...", 3);
        return;
    }
    const char *part = strrchr(s, '/');
    const bool named = part && strchr(s, '/') != part;
    if (named && columns >= STRING_COLUMNS_MIN) {
        size_t end = len - larger(1, smaller(strlen(part) - 1, columns - columns / 3 - 3));
        for (; text_width(s + end, len - end) > columns - columns / 3 - 3; end++) continue;
        while (end < len && ((unsigned char)s[end] & 0xC0) == 0x80) end++; /* within a character */
        char tail[CELL_MAX];
        memcpy(tail, s + end, len - end + 1);
        const size_t room = columns - 3 - text_width(tail, len - end);
        for (size_t n; at < end && text_width(s, at) < room; at += n) {
            n = larger(1, text_utf8_len(s + at, len - at, NULL));
            if (text_width(s, at + n) > room) break;
        }
        memcpy(s + at, "...", 3);
        memcpy(s + at + 3, tail, strlen(tail) + 1);
        return;
    }
    while (at < len) {
        const size_t n = larger(1, text_utf8_len(s + at, len - at, NULL));
        if (text_width(s, at + n) > columns - 3) break;
        at += n;
    }
    memcpy(s + at, "...", 4);
}

static void put_text_headings(struct out *o, const struct face *faces, size_t n)
{
    size_t units = 0; /* columns up to the last that has a unit */
    for (size_t i = 0; i < n; i++) {
        put_aligned(o, &faces[i], faces[i].column->heading, i + 1 == n);
        if (faces[i].scale.label[0]) units = i + 1;
    }
    out_char(o, '\n');
    for (size_t i = 0; i < units; i++) put_aligned(o, &faces[i], faces[i].scale.label, i + 1 == units);
    if (units) out_char(o, '\n');
    for (size_t i = 0; i < n; i++) {
        pad(o, faces[i].width, '-');
        if (i + 1 < n) pad(o, faces[i].gap, ' ');
    }
    out_char(o, '\n');
}

/* A sentence in words behind a mark, further lines indented by a gap; words too long for a line stay whole. */
static void put_note(struct out *o, const char *mark, const char *s)
{
    size_t at = strlen(mark);
    out_str(o, mark);
    for (bool fresh = true; *s; fresh = false) {
        const size_t len = strcspn(s, " "), width = text_width(s, len);
        const bool wraps = !fresh && at + 1 + width > LINE_COLUMNS;
        if (wraps) {
            out_char(o, '\n');
            pad(o, GAP, ' ');
        } else if (!fresh) {
            out_char(o, ' ');
        }
        at = (wraps ? GAP : at + !fresh) + width;
        out_write(o, s, len);
        s += len + strspn(s + len, " ");
    }
    out_char(o, '\n');
}

static enum err_code put_notes(const struct table *t, struct out *o, struct err *e)
{
    if (t->n_notes) out_char(o, '\n');
    for (size_t i = 0; i < t->n_notes; i++) {
        const size_t len = strlen(t->notes[i]);
        char *clean = malloc(len + 4);
        if (!clean) return err_nomem(e);
        put_note(o, "note: ", text_clean(clean, len + 4, t->notes[i], len));
        free(clean);
    }
    return ERR_OK;
}

/* Columns of the line with strings cut to `limit`, one blank between them. */
static size_t line_columns(const struct face *faces, size_t n, size_t limit)
{
    size_t total = n ? n - 1 : 0;
    for (size_t i = 0; i < n; i++) total += is_cut(&faces[i], limit) ? limit : faces[i].width;
    return total;
}

/* Takes spare columns out until the line fits a terminal, the last first. out: which they were, in their order; how
 * many. */
static size_t take_spare(struct face *faces, size_t *n, const struct column **out)
{
    size_t taken = 0;
    for (size_t i = *n; i-- > 0 && line_columns(faces, *n, STRING_COLUMNS_MAX / 2) > LINE_COLUMNS;) {
        if (!(faces[i].column->flags & COLUMN_SPARE)) continue;
        memmove(out + 1, out, taken * sizeof(const struct column *));
        out[0] = faces[i].column;
        taken++;
        memmove(&faces[i], &faces[i + 1], (--*n - i) * sizeof *faces);
    }
    return taken;
}

static void put_taken(struct out *o, const struct column *const *taken, size_t n)
{
    static const char BEFORE[] = "left out for width (-f csv, md or json has all):";
    size_t at = n ? strlen(BEFORE) : 0;
    if (n) out_printf(o, "\n%s", BEFORE);
    for (size_t i = 0; i < n; i++) {
        const size_t len = strlen(taken[i]->key) + 1 + (i + 1 < n);
        const bool wraps = at + len > LINE_COLUMNS;
        out_printf(o, "%s%s%s", wraps ? "\n  " : " ", taken[i]->key, i + 1 < n ? "," : "\n");
        at = wraps ? len + 1 : at + len;
    }
}

/* A line before rows of another section than those above. */
static void put_section(const struct table *t, size_t r, struct out *o)
{
    const char *const *now, *const *before;
    char clean[CELL_MAX];
    if (!t->sectioned) return;
    now = (const void *)((const char *)row_at(t, r) + t->section_offset);
    before = r > 0 ? (const void *)((const char *)row_at(t, r - 1) + t->section_offset) : NULL;
    if (before && strcmp(*now, *before) == 0) return;
    out_printf(o, "-- %s\n", text_clean(clean, sizeof clean, *now, strlen(*now)));
}

static enum err_code put_text(const struct table *t, struct face *faces, size_t n, const struct column **taken,
                              struct out *o, struct err *e)
{
    char cell[CELL_MAX];
    for (size_t i = 0; i < n; i++) {
        struct face *f = &faces[i];
        f->width = larger(text_width(f->column->heading, strlen(f->column->heading)), strlen(f->scale.label));
        for (size_t r = 0; r < t->n_rows; r++) {
            const char *s = format_cell(cell, f, row_at(t, r));
            f->width = larger(f->width, text_width(s, strlen(s)));
        }
    }
    const size_t taken_n = take_spare(faces, &n, taken);
    const size_t limit = string_limit(faces, n);
    const size_t wish = n ? faces[n - 1].width : 0; /* of the last column */
    for (size_t i = 0; i < n; i++)
        if (is_cut(&faces[i], limit)) faces[i].width = limit;
    /* The last column takes what is left of the line. */
    size_t used = (n - 1) * GAP;
    for (size_t i = 0; i < n; i++) used += faces[i].width;
    if (used < LINE_COLUMNS && wish > faces[n - 1].width)
        faces[n - 1].width = smaller(wish, faces[n - 1].width + LINE_COLUMNS - used);
    /* A line too wide for a terminal gives up one blank between columns. */
    size_t total = (n - 1) * GAP;
    for (size_t i = 0; i < n; i++) total += faces[i].width;
    for (size_t i = 0; i < n; i++) faces[i].gap = total > LINE_COLUMNS ? 1 : GAP;
    put_text_headings(o, faces, n);
    for (size_t r = 0; r < t->n_rows; r++) {
        put_section(t, r, o);
        for (size_t i = 0; i < n; i++) {
            const char *s = format_cell(cell, &faces[i], row_at(t, r));
            if (faces[i].column->kind == COLUMN_STRING && s == cell) cut_to(cell, faces[i].width);
            put_aligned(o, &faces[i], s, i + 1 == n);
        }
        out_char(o, '\n');
    }
    put_taken(o, taken, taken_n);
    return put_notes(t, o, e);
}

/* -- md -- */

static void put_md(struct out *o, const char *s)
{
    for (; *s; s++) {
        if (*s == '<')
            out_str(o, "&lt;");
        else if (*s == '>')
            out_str(o, "&gt;");
        else if (*s == '&')
            out_str(o, "&amp;");
        else {
            if (strchr("\\`*[]|~", *s)) out_char(o, '\\');
            out_char(o, *s);
        }
    }
}

static void put_md_table(const struct table *t, const struct face *faces, size_t n, struct out *o)
{
    char cell[CELL_MAX];
    for (size_t i = 0; i < n; i++) {
        out_str(o, i ? " | " : "| ");
        put_md(o, faces[i].column->heading);
        if (faces[i].scale.label[0]) out_printf(o, " (%s)", faces[i].scale.label);
    }
    out_str(o, " |\n|");
    for (size_t i = 0; i < n; i++) out_str(o, is_number(faces[i].column) ? " ---: |" : " --- |");
    out_char(o, '\n');
    for (size_t r = 0; r < t->n_rows; r++) {
        for (size_t i = 0; i < n; i++) {
            out_str(o, i ? " | " : "| ");
            put_md(o, format_cell(cell, &faces[i], row_at(t, r)));
        }
        out_str(o, " |\n");
    }
}

static enum err_code put_md_notes(const struct table *t, struct out *o, struct err *e)
{
    if (t->n_notes) out_char(o, '\n');
    for (size_t i = 0; i < t->n_notes; i++) {
        const size_t len = strlen(t->notes[i]);
        char *clean = malloc(len + 4);
        if (!clean) return err_nomem(e);
        out_str(o, "- ");
        put_md(o, text_clean(clean, len + 4, t->notes[i], len));
        out_char(o, '\n');
        free(clean);
    }
    return ERR_OK;
}

enum err_code table_write_text(const struct table *t, enum table_format format, struct out *o, struct err *e)
{
    size_t n;
    struct face *faces = faces_of(t, &n);
    const struct column **taken = faces ? calloc(t->n_columns + 1, sizeof *taken) : NULL;
    if (!taken) {
        free(faces);
        return err_nomem(e);
    }
    enum err_code code;
    if (format == TABLE_MD) {
        put_md_table(t, faces, n, o);
        code = put_md_notes(t, o, e);
    } else {
        code = put_text(t, faces, n, taken, o, e);
    }
    free(taken);
    free(faces);
    return code == ERR_OK ? out_check(o, e) : code;
}

/* -- sheet -- */

/* A value with its own prefix; a count in full as well, for that is what one compares with a model card. */
static const char *format_alone(char out[CELL_MAX], const struct column *c, const void *row)
{
    const struct face f = {.column = c, .scale = {.divisor = 1, .label = ""}};
    const struct table_field v = table_field_of(c, row);
    if (v.type != TABLE_WHOLE && v.type != TABLE_REAL) return format_cell(out, &f, row);
    char number[UNITS_TEXT_MAX], full[UNITS_TEXT_MAX];
    units_format(number, c->unit, v.real);
    units_format_digits(full, v.real);
    const bool whole = shows_digits(c) || (c->kind == COLUMN_COUNT && c->unit == UNITS_COUNT);
    if (whole && (c->unit == UNITS_COUNT || c->unit == UNITS_NONE))
        (void)snprintf(out, CELL_MAX, "%s", full);
    else if (whole)
        (void)snprintf(out, CELL_MAX, "%s (%s)", number, full);
    else
        (void)snprintf(out, CELL_MAX, "%s", number);
    return out;
}

/* A string in lines of a terminal behind `at` columns, broken at blanks where there are some. */
static void put_string(struct out *o, const char *s, size_t at)
{
    const size_t room = at + STRING_COLUMNS_MIN < LINE_COLUMNS ? LINE_COLUMNS - at : STRING_COLUMNS_MIN;
    for (bool first = true; *s || first; first = false) {
        const size_t len = strlen(s);
        size_t end = 0, blank = 0;
        while (end < len) {
            const size_t n = larger(1, text_utf8_len(s + end, len - end, NULL));
            if (text_width(s, end + n) > room) break;
            if (s[end] == ' ') blank = end;
            end += n;
        }
        if (end < len && s[end] != ' ' && 2 * blank > end) end = blank;
        if (!first) pad(o, at, ' ');
        out_write(o, s, end);
        out_char(o, '\n');
        s += end + strspn(s + end, " ");
    }
}

/* The value of a lone row, strings whole. */
static enum err_code put_alone(struct out *o, const struct column *c, const void *row, size_t at, struct err *e)
{
    const struct table_field v = table_field_of(c, row);
    char cell[CELL_MAX];
    if (v.type != TABLE_STRING) {
        out_printf(o, "%s\n", format_alone(cell, c, row));
        return ERR_OK;
    }
    const size_t len = strlen(v.text);
    char *clean = malloc(len + 4);
    if (!clean) return err_nomem(e);
    put_string(o, text_clean(clean, len + 4, v.text, len), at);
    free(clean);
    return ERR_OK;
}

enum err_code table_write_sheet(const struct table *t, struct out *o, struct err *e)
{
    char cell[CELL_MAX];
    size_t name = 0;
    size_t *widths = calloc(t->n_rows + 1, sizeof *widths);
    if (!widths) return err_nomem(e);
    for (size_t i = 0; i < t->n_columns; i++) {
        const struct column *c = &t->columns[i];
        if (!(c->flags & COLUMN_SHOWN)) continue;
        name = larger(name, text_width(c->heading, strlen(c->heading)));
        for (size_t r = 0; r < t->n_rows; r++) {
            const char *s = format_alone(cell, c, row_at(t, r));
            widths[r] = larger(widths[r], text_width(s, strlen(s)));
        }
    }
    for (size_t i = 0; i < t->n_columns; i++) {
        const struct column *c = &t->columns[i];
        if (!(c->flags & COLUMN_SHOWN)) continue;
        out_str(o, c->heading);
        size_t fill = name - text_width(c->heading, strlen(c->heading));
        if (t->n_rows == 1) {
            pad(o, GAP + fill, ' ');
            const enum err_code code = put_alone(o, c, t->rows, name + GAP, e);
            if (code == ERR_OK) continue;
            free(widths);
            return code;
        }
        for (size_t r = 0; r < t->n_rows; r++) {
            pad(o, GAP + fill, ' ');
            const char *s = format_alone(cell, c, row_at(t, r));
            out_str(o, s);
            fill = widths[r] - text_width(s, strlen(s));
        }
        out_char(o, '\n');
    }
    free(widths);
    TRY(put_notes(t, o, e));
    return out_check(o, e);
}
