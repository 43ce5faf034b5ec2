/* Machine formats: csv, json, jsonl; column selection. Text and md are in table_text.c. */
#include "calc/base/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/table_text.h"
#include "calc/base/text.h"

/* -- fields -- */

static double field_real(const struct column *c, const void *row)
{
    double v;
    memcpy(&v, (const char *)row + c->offset, sizeof v);
    return v;
}

static const char *field_string(const struct column *c, const void *row)
{
    const char *s;
    memcpy(&s, (const char *)row + c->offset, sizeof s);
    return s;
}

struct table_field table_field_of(const struct column *c, const void *row)
{
    const char *at = (const char *)row + c->offset;
    struct table_field f = {.type = TABLE_UNKNOWN};
    switch (c->kind) {
    case COLUMN_STRING:
        f.text = field_string(c, row);
        if (f.text) f.type = TABLE_STRING;
        break;
    case COLUMN_BOOL: f.type = *(const bool *)at ? TABLE_TRUE : TABLE_FALSE; break;
    case COLUMN_MAYBE:
        f.real = field_real(c, row);
        if (!isnan(f.real)) f.type = f.real != 0 ? TABLE_TRUE : TABLE_FALSE;
        break;
    case COLUMN_INT:
        memcpy(&f.whole, at, sizeof f.whole);
        f.real = (double)f.whole;
        if (f.whole != TABLE_INT_UNKNOWN) f.type = TABLE_WHOLE;
        break;
    case COLUMN_COUNT:
    case COLUMN_REAL:
        f.real = field_real(c, row);
        if (isfinite(f.real)) f.type = TABLE_REAL;
        break;
    }
    return f;
}

static void put_number(const struct table_field *f, struct out *o)
{
    char *at = out_room(o, TEXT_NUMBER_MAX);
    out_used(o, f->type == TABLE_WHOLE ? text_int(at, f->whole) : text_real(at, f->real));
}

/* -- csv -- */

/* A formula would run in a spreadsheet, so it gets an apostrophe in front; controls other than newline and tab, and
 * ill-formed bytes, become '?', for CSV has no escape for them. */
static void put_csv_string(const char *s, struct out *o)
{
    const size_t len = strlen(s);
    const bool disarm = len > 0 && strchr("=+-@\t\r", s[0]) != NULL;
    const bool quote = strpbrk(s, ",\"\n\r\t") != NULL || (len > 0 && (s[0] == ' ' || s[len - 1] == ' '));
    if (quote) out_char(o, '"');
    if (disarm) out_char(o, '\'');
    for (size_t i = 0; i < len;) {
        uint32_t code = 0;
        const size_t n = text_utf8_len(s + i, len - i, &code);
        if (n == 0 || (text_is_hostile(code) && code != '\n' && code != '\t')) {
            out_char(o, '?');
        } else {
            if (code == '"') out_char(o, '"');
            out_write(o, s + i, n);
        }
        i += n ? n : 1;
    }
    if (quote) out_char(o, '"');
}

static void put_csv_row(const struct table *t, const void *row, struct out *o)
{
    for (size_t i = 0; i < t->n_columns; i++) {
        if (i) out_char(o, ',');
        const struct table_field f = table_field_of(&t->columns[i], row);
        switch (f.type) {
        case TABLE_UNKNOWN: break;
        case TABLE_TRUE: out_write(o, "true", 4); break;
        case TABLE_FALSE: out_write(o, "false", 5); break;
        case TABLE_WHOLE:
        case TABLE_REAL: put_number(&f, o); break;
        case TABLE_STRING: put_csv_string(f.text, o); break;
        }
    }
    out_char(o, '\n');
}

/* -- json -- */

static void put_json_string(const char *s, struct out *o)
{
    out_char(o, '"');
    for (size_t len = strlen(s), used; len; s += used, len -= used) {
        used = 0; /* a run of plain characters at once */
        while (used < len && s[used] >= ' ' && s[used] <= '~' && s[used] != '"' && s[used] != '\\') used++;
        if (used)
            out_write(o, s, used);
        else
            out_used(o, text_json_char(out_room(o, TEXT_JSON_MAX), s, len, &used));
    }
    out_char(o, '"');
}

static void put_json_row(const struct table *t, const void *row, struct out *o)
{
    out_char(o, '{');
    for (size_t i = 0; i < t->n_columns; i++) {
        if (i) out_char(o, ',');
        put_json_string(t->columns[i].key, o);
        out_char(o, ':');
        const struct table_field f = table_field_of(&t->columns[i], row);
        switch (f.type) {
        case TABLE_UNKNOWN: out_write(o, "null", 4); break;
        case TABLE_TRUE: out_write(o, "true", 4); break;
        case TABLE_FALSE: out_write(o, "false", 5); break;
        case TABLE_WHOLE:
        case TABLE_REAL: put_number(&f, o); break;
        case TABLE_STRING: put_json_string(f.text, o); break;
        }
    }
    out_char(o, '}');
}

static void put_json_frame(const struct table *t, struct out *o)
{
    out_str(o, "{\"schema\":");
    put_json_string(t->schema ? t->schema : "", o);
    out_str(o, ",\n\"tool\":");
    put_json_string(t->tool ? t->tool : "", o);
    out_str(o, ",\n\"scenario\":");
    out_str(o, t->scenario_json ? t->scenario_json : "null");
    if (t->n_notes) out_str(o, ",\n\"notes\":[");
    for (size_t i = 0; i < t->n_notes; i++) {
        if (i) out_char(o, ',');
        put_json_string(t->notes[i], o);
    }
    if (t->n_notes) out_char(o, ']');
    out_str(o, ",\n\"rows\":[");
}

/* -- streaming -- */

static enum err_code only_machine_formats(enum table_format format, struct err *e)
{
    if (format == TABLE_CSV || format == TABLE_JSON || format == TABLE_JSONL) return ERR_OK;
    return err_set(e, ERR_USAGE, "rows one by one can be written as csv, json or jsonl only");
}

enum err_code table_begin(const struct table *t, enum table_format format, struct out *o, struct err *e)
{
    TRY(only_machine_formats(format, e));
    if (format == TABLE_JSON) put_json_frame(t, o);
    if (format == TABLE_CSV) {
        for (size_t i = 0; i < t->n_columns; i++) {
            if (i) out_char(o, ',');
            put_csv_string(t->columns[i].key, o);
        }
        out_char(o, '\n');
    }
    return out_check(o, e);
}

enum err_code table_row(const struct table *t, enum table_format format, const void *row, bool first, struct out *o,
                        struct err *e)
{
    TRY(only_machine_formats(format, e));
    if (format == TABLE_CSV) {
        put_csv_row(t, row, o);
    } else {
        if (format == TABLE_JSON) out_str(o, first ? "\n" : ",\n");
        put_json_row(t, row, o);
        if (format == TABLE_JSONL) out_char(o, '\n');
    }
    return out_check(o, e);
}

enum err_code table_end(const struct table *t, enum table_format format, struct out *o, struct err *e)
{
    (void)t;
    TRY(only_machine_formats(format, e));
    if (format == TABLE_JSON) out_str(o, "\n]}\n");
    return out_check(o, e);
}

enum err_code table_write(const struct table *t, enum table_format format, struct out *o, struct err *e)
{
    if (format == TABLE_TEXT || format == TABLE_MD) return table_write_text(t, format, o, e);
    TRY(table_begin(t, format, o, e));
    for (size_t i = 0; i < t->n_rows; i++)
        TRY(table_row(t, format, (const char *)t->rows + i * t->stride_bytes, i == 0, o, e));
    return table_end(t, format, o, e);
}

/* -- choosing -- */

enum err_code table_format_parse(const char *name, enum table_format *out, struct err *e)
{
    static const char *const names[] = {"text", "md", "csv", "json", "jsonl"};
    enum { N = sizeof names / sizeof names[0] };
    for (int i = 0; i < N; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *out = (enum table_format)i;
        return ERR_OK;
    }
    char clean[60], near[120];
    text_clean(clean, sizeof clean, name, strlen(name));
    return err_set(e, ERR_USAGE, "\"%s\": wanted text, md, csv, json or jsonl%s", clean,
                   text_suggest(near, sizeof near, name, names, sizeof names[0], N));
}

/* Whether two keys are made of the same words, between underscores, in any order. */
static bool same_words(const char *a, const char *b)
{
    if (strlen(a) != strlen(b)) return false;
    for (const char *w = a; *w;) {
        const size_t n = strcspn(w, "_");
        size_t here = 0, there = 0;
        for (const char *x = a; *x; x += strcspn(x, "_"), x += *x == '_')
            here += strcspn(x, "_") == n && memcmp(x, w, n) == 0;
        for (const char *x = b; *x; x += strcspn(x, "_"), x += *x == '_')
            there += strcspn(x, "_") == n && memcmp(x, w, n) == 0;
        if (here != there) return false;
        w += n;
        w += *w == '_';
    }
    return true;
}

/* Whether each word of a, between underscores, is one of b. */
static bool words_within(const char *a, const char *b)
{
    if (!*a) return false;
    for (const char *w = a; *w;) {
        const size_t n = strcspn(w, "_");
        bool found = false;
        for (const char *x = b; *x && !found; x += strcspn(x, "_"), x += *x == '_')
            found = n > 0 && strcspn(x, "_") == n && memcmp(x, w, n) == 0;
        if (!found) return false;
        w += n;
        w += *w == '_';
    }
    return true;
}

/* "; did you mean total_params or active_params?": the first keys that have all words of one, or those alike. */
static const char *suggest_keys(char *out, size_t cap, const struct table *t, const char *clean)
{
    enum { MOST = 3 };
    const char *found[MOST];
    size_t n = 0, w = 0;
    (void)text_suggest(out, cap, clean, &t->columns[0].key, sizeof t->columns[0], t->n_columns);
    if (out[0]) return out;
    for (size_t i = 0; i < t->n_columns && n < MOST; i++)
        if (words_within(clean, t->columns[i].key)) found[n++] = t->columns[i].key;
    for (size_t i = 0; i < n && w < cap; i++) {
        const char *before = i == 0 ? "; did you mean " : i + 1 < n ? ", " : " or ";
        const int put = snprintf(out + w, cap - w, "%s%s%s", before, found[i], i + 1 == n ? "?" : "");
        w += put > 0 ? (size_t)put : 0;
    }
    return out;
}

static enum err_code unknown_key(const struct table *t, const char *key, size_t len, struct err *e)
{
    char clean[64], near[240];
    text_clean(clean, sizeof clean, key, len);
    if (len == 0) return err_set(e, ERR_USAGE, "an empty column name, wanted keys such as %s", t->columns[0].key);
    for (size_t i = 0; i < t->n_columns; i++) /* what people see over it, or its words in another order */
        if (strcmp(t->columns[i].heading, clean) == 0 || same_words(t->columns[i].key, clean))
            return err_set(e, ERR_USAGE, "\"%s\": no such column; did you mean %s?", clean, t->columns[i].key);
    return err_set(e, ERR_USAGE, "\"%s\": no such column%s", clean, suggest_keys(near, sizeof near, t, clean));
}

enum err_code table_select(struct arena *a, const struct table *t, const char *keys, struct table *out, struct err *e)
{
    struct column *chosen = arena_array(a, t->n_columns, sizeof *chosen);
    if (!chosen) return err_nomem(e);
    size_t n = 0;
    for (const char *p = keys;; p++) {
        while (*p == ' ') p++;
        const size_t part = strcspn(p, ",");
        size_t len = part, at = 0;
        while (len && p[len - 1] == ' ') len--;
        for (; at < t->n_columns; at++)
            if (strlen(t->columns[at].key) == len && memcmp(t->columns[at].key, p, len) == 0) break;
        if (at == t->n_columns) return unknown_key(t, p, len, e);
        for (size_t i = 0; i < n; i++)
            if (chosen[i].key == t->columns[at].key)
                return err_set(e, ERR_USAGE, "\"%s\": this column is named twice", chosen[i].key);
        chosen[n] = t->columns[at];
        chosen[n].flags |= COLUMN_SHOWN;
        chosen[n++].flags &= ~(unsigned)COLUMN_SPARE;
        p += part;
        if (*p == '\0') break;
    }
    *out = *t;
    out->columns = chosen;
    out->n_columns = n;
    return ERR_OK;
}
