#include "calc/cli/probe_sheet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/json_scan.h"
#include "calc/base/text.h"
#include "calc/cli/probe_cells.h"
#include "calc/cli/store_rows.h"
#include "calc/fit/rows_formats.h"

enum { SPARE = COLUMN_SHOWN | COLUMN_SPARE };

/* Where a row comes from, behind all others; what there is of its samples, and its time, at the end. */
static const char *const ORIGIN[] = {"op", "framework", "version", "kernel", "device", "state", "made"};
enum { ORIGIN_N = sizeof ORIGIN / sizeof ORIGIN[0] };
static const struct {
    const char *key;
    enum column_kind kind;
    unsigned flags;
} MEASURED[] = {{"dram_read_bytes", COLUMN_REAL, SPARE}, {"dram_write_bytes", COLUMN_REAL, SPARE},
                {"spread_frac", COLUMN_REAL, SPARE},     {"samples", COLUMN_INT, SPARE},
                {"times_s", COLUMN_STRING, 0},           {"discards_s", COLUMN_STRING, 0},
                {"time_s", COLUMN_REAL, COLUMN_SHOWN}};
enum { MEASURED_N = sizeof MEASURED / sizeof MEASURED[0] };

static bool has_place(const char *key)
{
    static const char *const PLACED[] = {"dtype", "q_dtype", "kv_dtype", PROBE_CELLS_PRECEDENCE};
    for (size_t i = 0; i < ORIGIN_N; i++)
        if (strcmp(ORIGIN[i], key) == 0) return true;
    for (size_t i = 0; i < MEASURED_N; i++)
        if (strcmp(MEASURED[i].key, key) == 0) return true;
    for (size_t i = 0; i < sizeof PLACED / sizeof PLACED[0]; i++)
        if (strcmp(PLACED[i], key) == 0) return true;
    return false;
}

static void add_column(struct sheet *s, const char *key, enum column_kind kind, unsigned flags)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->columns[i].key, key) == 0) return;
    s->full = s->full || s->n == SHEET_COLUMNS_MAX;
    if (s->full) return;
    s->columns[s->n] = (struct column){.key = key,
                                       .heading = key,
                                       .help = "",
                                       .kind = kind,
                                       .unit = UNITS_NONE,
                                       .offset = s->n * sizeof(union sheet_cell),
                                       .flags = flags};
    s->n++;
}

static union sheet_cell *find_cell(const struct sheet *s, union sheet_cell *row, const char *key,
                                   enum column_kind *kind)
{
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->columns[i].key, key) != 0) continue;
        if (kind) *kind = s->columns[i].kind;
        return &row[i];
    }
    return NULL;
}

/* Cells of columns that may not be there. */
static void set_text(const struct sheet *s, union sheet_cell *row, const char *key, const char *text)
{
    union sheet_cell *c = find_cell(s, row, key, NULL);
    if (c) c->text = text;
}

static void set_count(const struct sheet *s, union sheet_cell *row, const char *key, int64_t v)
{
    union sheet_cell *c = find_cell(s, row, key, NULL);
    if (c) c->count = v;
}

static void set_real(const struct sheet *s, union sheet_cell *row, const char *key, double v)
{
    union sheet_cell *c = find_cell(s, row, key, NULL);
    if (c) c->real = v;
}

/* The cells of an imported row, one by one. */
static enum err_code each_cell(struct arena *a, const struct result *r,
                               void (*take)(void *closure, const char *key, const char *text), void *closure,
                               struct err *e)
{
    struct json_text key, value;
    bool more = r->outcome == RESULT_IMPORTED && *r->cells;
    if (!more) return ERR_OK;
    struct json_scan s = json_scan_open(a, "cells", r->cells, strlen(r->cells), e);
    TRY(json_scan_object(&s));
    for (;;) {
        TRY(json_scan_member(&s, &key, &more));
        if (!more) return ERR_OK;
        TRY(json_scan_text(&s, &value));
        const char *name = arena_strndup(a, key.s, key.len), *text = arena_strndup(a, value.s, value.len);
        if (!name || !text) return err_nomem(e);
        take(closure, name, text);
    }
}

struct filling {
    const struct sheet *sheet;
    union sheet_cell *row;
};

static void take_cell(void *closure, const char *key, const char *text)
{
    const struct filling *f = closure;
    enum column_kind kind = COLUMN_STRING;
    union sheet_cell *c = find_cell(f->sheet, f->row, key, &kind);
    if (!c) return;
    if (kind == COLUMN_STRING)
        c->text = text;
    else if (kind == COLUMN_INT)
        c->count = strtoll(text, NULL, 10);
    else
        c->real = strtod(text, NULL);
}

/* Rows of attention name two formats. */
static bool two_formats(const struct rows_format *f) { return f && wire_list_has(f->texts, "kv_dtype"); }

/* A column that files of a result's kind must have and its kernel has no parameter for. */
static bool is_implied(const struct result *r, const struct rows_number *w)
{
    int64_t v;
    return w->absent != ROWS_NEEDED && !w->optional && !wire_shape_get(&r->shape, w->column, &v);
}

static bool has_implied(const struct result *r, const char *column)
{
    const struct rows_format *f = store_row_format(r);
    for (size_t j = 0; f && j < f->numbers_n; j++)
        if (strcmp(f->numbers[j].column, column) == 0) return is_implied(r, &f->numbers[j]);
    return false;
}

/* Whether rows of a result's kind say which operator it was: of own ones the kernel. */
static bool has_op(const struct rows_format *f) { return f && wire_list_has(f->texts, "op"); }

/* -- what the probe knows -- */

bool sheet_is_ceiling(const struct result *r) { return *r->ceiling && !*r->row_kind; }

static bool has_cell(const struct result *r, const struct probe_cell *c)
{
    const char *at = (const char *)r + c->offset, *text;
    double v;
    const bool of_ceilings =
        strcmp(c->column, PROBE_CELLS_IDENTITY) == 0 || strcmp(c->column, PROBE_CELLS_STARTED) == 0;
    if (!store_is_probed(r) || (of_ceilings && !sheet_is_ceiling(r))) return false;
    if (!c->text) return !isnan(*(const double *)memcpy(&v, at, sizeof v));
    memcpy(&text, at, sizeof text);
    return text && *text;
}

static enum err_code fill_probed(struct arena *a, const struct result *r, const struct sheet *s, union sheet_cell *row,
                                 struct err *e)
{
    struct out *o;
    if (!store_is_probed(r)) return ERR_OK;
    TRY(out_memory(a, &o, e));
    wire_write_shape(o, &r->shape);
    const char *shape = out_text(o, NULL);
    if (!shape) return err_nomem(e);
    set_text(s, row, PROBE_CELLS_SHAPE, shape);
    for (size_t i = 0; i < probe_cells_n; i++) {
        union sheet_cell *c = find_cell(s, row, probe_cells[i].column, NULL);
        const char *at = (const char *)r + probe_cells[i].offset;
        if (!c || !has_cell(r, &probe_cells[i])) continue;
        if (probe_cells[i].text)
            memcpy(&c->text, at, sizeof c->text);
        else
            memcpy(&c->real, at, sizeof c->real);
    }
    return ERR_OK;
}

/* -- columns -- */

enum { FORMATS_MAX = 32, CELLS_MAX = 32, NAMES_MAX = 512 };

/* What results have, as far as they were seen. */
struct sheet_plan {
    struct arena *arena;
    bool any, kinds, probed, one, two, op, counted, sampled, disturbed;
    const struct rows_format *first;
    /* numbers of formats that some result has, or must have, by the column's name and by the kernel's */
    bool used[FORMATS_MAX], column[FORMATS_MAX][ROWS_NUMBERS_MAX], own[FORMATS_MAX][ROWS_NUMBERS_MAX];
    bool cell[CELLS_MAX];                   /* of probe_cells */
    const char *further[SHEET_COLUMNS_MAX]; /* other columns, in the order they were first met */
    size_t further_n;
    bool full;
    /* of the last result, whose like has no other numbers; last NULL: none */
    const struct rows_format *last;
    struct wire_shape shape;
    const char *names[NAMES_MAX]; /* of its numbers, each kept once */
    size_t names_n;
};

enum err_code sheet_plan_open(struct arena *a, struct sheet_plan **out, struct err *e)
{
    *out = arena_alloc(a, sizeof **out);
    if (!*out) return err_nomem(e);
    (*out)->arena = a;
    return rows_formats_n <= FORMATS_MAX && probe_cells_n <= CELLS_MAX
               ? ERR_OK
               : err_set(e, ERR_RANGE, "more kinds of rows than there is room for");
}

static bool is_like_last(const struct sheet_plan *p, const struct result *r)
{
    if (!p->last || p->last != store_row_format(r) || p->shape.n != r->shape.n) return false;
    for (size_t i = 0; i < r->shape.n; i++)
        if (strcmp(p->shape.arg[i].name, r->shape.arg[i].name) != 0) return false;
    return true;
}

static enum err_code keep_name(struct sheet_plan *p, const char *name, const char **out, struct err *e)
{
    size_t i = 0;
    *out = NULL;
    while (i < p->names_n && strcmp(p->names[i], name) != 0) i++;
    if (i == NAMES_MAX) return ERR_OK;
    if (i == p->names_n && !(p->names[p->names_n++] = arena_strndup(p->arena, name, strlen(name)))) return err_nomem(e);
    *out = p->names[i];
    return ERR_OK;
}

static enum err_code add_further(struct sheet_plan *p, const char *key, struct err *e)
{
    for (size_t i = 0; i < p->further_n; i++)
        if (strcmp(p->further[i], key) == 0) return ERR_OK;
    p->full = p->full || p->further_n == SHEET_COLUMNS_MAX;
    if (p->full) return ERR_OK;
    const char *copy = arena_strndup(p->arena, key, strlen(key));
    if (copy) p->further[p->further_n++] = copy;
    return copy ? ERR_OK : err_nomem(e);
}

/* The numbers of a result, and of its format those that it must have. */
static enum err_code see_shape(struct sheet_plan *p, const struct result *r, struct err *e)
{
    if (is_like_last(p, r)) return ERR_OK;
    const struct rows_format *own = store_row_format(r);
    for (size_t i = 0; i < rows_formats_n; i++) {
        p->used[i] = p->used[i] || own == &rows_formats[i];
        for (size_t j = 0; j < rows_formats[i].numbers_n; j++) {
            const struct rows_number *w = &rows_formats[i].numbers[j];
            int64_t v;
            p->column[i][j] = p->column[i][j] || wire_shape_get(&r->shape, w->column, &v) || has_implied(r, w->column);
            p->own[i][j] = p->own[i][j] || (w->own && wire_shape_get(&r->shape, w->own, &v));
        }
    }
    p->last = own;
    p->shape.n = 0;
    for (size_t j = 0; j < r->shape.n; j++) {
        const char *name = r->shape.arg[j].name, **const kept = &p->shape.arg[p->shape.n++].name;
        TRY(keep_name(p, name, kept, e));
        if (!*kept) p->last = NULL;
        if (!sheet_is_ceiling(r)) TRY(add_further(p, name, e));
    }
    return ERR_OK;
}

struct taking {
    struct sheet_plan *plan;
    enum err_code code;
    struct err *err;
};

static void take_column(void *closure, const char *key, const char *text)
{
    struct taking *t = closure;
    (void)text;
    if (t->code == ERR_OK && !has_place(key)) t->code = add_further(t->plan, key, t->err);
}

enum err_code sheet_see(struct sheet_plan *p, struct arena *a, const struct result *r, struct err *e)
{
    const struct rows_format *f = store_row_format(r);
    struct taking t = {p, ERR_OK, e};
    if (!p->any) p->first = f;
    p->kinds = p->kinds || f != p->first;
    p->probed = p->probed || store_is_probed(r);
    TRY(see_shape(p, r, e));
    p->any = true;
    for (size_t i = 0; i < probe_cells_n; i++) p->cell[i] = p->cell[i] || has_cell(r, &probe_cells[i]);
    TRY(each_cell(a, r, take_column, &t, e));
    TRY(t.code);
    p->one = p->one || (sheet_is_ceiling(r) && *r->dtype);
    if (sheet_is_ceiling(r)) return ERR_OK;
    p->sampled = p->sampled || r->times_n;
    p->one = p->one || !two_formats(f);
    p->two = p->two || two_formats(f);
    p->op = p->op || has_op(f);
    p->counted = p->counted || !isnan(r->dram_read_bytes);
    p->disturbed = p->disturbed || r->discards_n;
    return ERR_OK;
}

static void plan_numbers(const struct sheet_plan *p, struct sheet *s)
{
    for (size_t i = 0; i < rows_formats_n; i++)
        for (size_t j = 0; j < rows_formats[i].numbers_n && p->used[i]; j++) {
            const struct rows_number *w = &rows_formats[i].numbers[j];
            if (p->column[i][j]) add_column(s, w->column, w->mean ? COLUMN_REAL : COLUMN_INT, SPARE);
            if (p->own[i][j]) add_column(s, w->own, COLUMN_INT, SPARE);
        }
}

enum err_code sheet_columns(const struct sheet_plan *p, bool ranked, struct sheet *s, struct err *e)
{
    *s = (struct sheet){.kinds = p->kinds, .probed = p->probed, .ranked = ranked, .full = p->full};
    if (p->kinds) add_column(s, ROWS_KIND_COLUMN, COLUMN_STRING, COLUMN_SHOWN);
    plan_numbers(p, s);
    if (p->one) add_column(s, "dtype", COLUMN_STRING, COLUMN_SHOWN);
    if (p->two) add_column(s, "q_dtype", COLUMN_STRING, COLUMN_SHOWN);
    if (p->two) add_column(s, "kv_dtype", COLUMN_STRING, COLUMN_SHOWN);
    for (size_t i = 0; i < p->further_n; i++)
        if (!p->probed || !probe_cells_has(p->further[i])) add_column(s, p->further[i], COLUMN_STRING, SPARE);
    for (size_t i = p->op ? 0 : 1; i < ORIGIN_N; i++)
        add_column(s, ORIGIN[i], COLUMN_STRING, strcmp(ORIGIN[i], "state") == 0 ? COLUMN_SHOWN : SPARE);
    if (p->probed) add_column(s, PROBE_CELLS_SHAPE, COLUMN_STRING, SPARE);
    for (size_t i = 0; i < probe_cells_n; i++)
        if (p->cell[i]) add_column(s, probe_cells[i].column, probe_cells[i].text ? COLUMN_STRING : COLUMN_REAL, SPARE);
    if (ranked) add_column(s, PROBE_CELLS_PRECEDENCE, COLUMN_INT, SPARE);
    for (size_t i = 0; i < MEASURED_N; i++) {
        const char *key = MEASURED[i].key;
        if (!p->counted && strncmp(key, "dram_", 5) == 0) continue;
        if (!p->sampled && strcmp(key, "times_s") == 0) continue;
        if (!p->disturbed && strcmp(key, "discards_s") == 0) continue;
        add_column(s, key, MEASURED[i].kind, MEASURED[i].flags);
    }
    return s->full ? err_set(e, ERR_RANGE, "more than %d columns: --kind or --kernel picks some", SHEET_COLUMNS_MAX)
                   : ERR_OK;
}

/* -- rows -- */

/* "1.25e-05 1.3e-05", which reads back exactly; NULL none. */
static enum err_code list_times(struct arena *a, const double *times, size_t n, const char **out, struct err *e)
{
    *out = NULL;
    if (!n) return ERR_OK;
    char *text = arena_array(a, n, TEXT_NUMBER_MAX), *at = text;
    if (!text) return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        if (i) *at++ = ' ';
        at += text_real(at, times[i]);
    }
    *at = '\0';
    *out = text;
    return ERR_OK;
}

static enum err_code fill_shape(struct arena *a, const struct result *r, const struct sheet *s, union sheet_cell *row,
                                struct err *e)
{
    for (size_t j = 0; j < r->shape.n && !sheet_is_ceiling(r); j++) {
        const int64_t value = r->shape.arg[j].value;
        enum column_kind kind = COLUMN_INT;
        union sheet_cell *c = find_cell(s, row, r->shape.arg[j].name, &kind);
        if (kind == COLUMN_INT)
            c->count = value;
        else if (kind == COLUMN_REAL)
            c->real = (double)value;
        else if (!(c->text = arena_printf(a, "%lld", (long long)value)))
            return err_nomem(e);
    }
    const struct rows_format *f = store_row_format(r);
    for (size_t j = 0; f && j < f->numbers_n; j++) {
        const struct rows_number *w = &f->numbers[j];
        int64_t v = w->absent == ROWS_ONE ? 1 : TABLE_INT_UNKNOWN;
        if (w->own) (void)wire_shape_get(&r->shape, w->own, &v);
        if (!is_implied(r, w)) continue;
        if (w->mean)
            set_real(s, row, w->column, v == TABLE_INT_UNKNOWN ? (double)NAN : (double)v);
        else
            set_count(s, row, w->column, v);
    }
    return ERR_OK;
}

static void fill_own(const struct result *r, const struct sheet *s, union sheet_cell *row)
{
    const struct rows_format *f = store_row_format(r);
    const char *tool = r->origin.tool;
    set_text(s, row, "framework", "ridge");
    set_text(s, row, "version", strncmp(tool, "ridge ", 6) == 0 ? tool + 6 : tool);
    set_text(s, row, "kernel", r->variant);
    set_text(s, row, "state", r->cold ? "cold" : "hot");
    if (has_op(f)) set_text(s, row, "op", r->kernel);
    if (two_formats(f)) set_text(s, row, "q_dtype", store_query_dtype(r->dtype));
}

enum err_code sheet_fill(struct arena *a, const struct result *r, int64_t precedence, const struct sheet *s,
                         union sheet_cell *row, struct err *e)
{
    struct filling filling = {s, row};
    const bool two = two_formats(store_row_format(r));
    const char *times, *discards;
    for (size_t i = 0; i < s->n; i++) {
        row[i].text = NULL;
        if (s->columns[i].kind == COLUMN_INT) row[i].count = TABLE_INT_UNKNOWN;
        if (s->columns[i].kind == COLUMN_REAL) row[i].real = (double)NAN;
    }
    TRY(fill_shape(a, r, s, row, e));
    TRY(fill_probed(a, r, s, row, e));
    TRY(list_times(a, r->times_s, sheet_is_ceiling(r) ? 0 : r->times_n, &times, e));
    TRY(list_times(a, r->discards_s, sheet_is_ceiling(r) ? 0 : r->discards_n, &discards, e));
    set_text(s, row, ROWS_KIND_COLUMN, sheet_is_ceiling(r) ? ROWS_KIND_CEILING : r->row_kind);
    set_text(s, row, two ? "q_dtype" : "dtype", *r->dtype ? r->dtype : NULL);
    if (two) set_text(s, row, "kv_dtype", r->dtype);
    set_text(s, row, "device", r->origin.device);
    set_text(s, row, "made", r->made);
    set_real(s, row, "dram_read_bytes", r->dram_read_bytes);
    set_real(s, row, "dram_write_bytes", r->dram_write_bytes);
    if (r->times_n) set_real(s, row, "spread_frac", r->summary.spread_frac);
    if (r->times_n) set_count(s, row, "samples", (int64_t)r->times_n);
    set_text(s, row, "times_s", times);
    set_text(s, row, "discards_s", discards);
    set_real(s, row, "time_s", result_time_s(r));
    if (r->outcome != RESULT_IMPORTED) fill_own(r, s, row);
    TRY(each_cell(a, r, take_cell, &filling, e));
    set_count(s, row, PROBE_CELLS_PRECEDENCE, precedence ? precedence : TABLE_INT_UNKNOWN);
    return ERR_OK;
}
