/* probe_kept -- `ridge probe history`, `show` and `export`: the store, read. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/json_scan.h"
#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/probe_rows.h"
#include "calc/cli/probe_verbs.h"
#include "calc/cli/store_rows.h"
#include "calc/fit/rows_formats.h"

enum err_code probe_store_path(struct arena *a, const struct option_values *v, const char **out, struct err *e)
{
    const char *path = option_get(v, "store");
    if (!path) return store_default_path(a, out, e);
    *out = path;
    return ERR_OK;
}

enum err_code probe_store_open(struct arena *a, const struct option_values *v, bool write, struct store **out,
                               struct err *e)
{
    const struct store_access how = {.write = write, .patience_s = 20};
    const char *path;
    TRY(probe_store_path(a, v, &path, e));
    return store_open(a, path, &how, out, e);
}

static enum err_code read_filter(const struct option_values *v, struct store_filter *out, struct err *e)
{
    enum result_outcome outcome;
    *out = (struct store_filter){.kernel = option_get(v, "kernel"),
                                 .outcome = option_get(v, "outcome"),
                                 .row_kind = option_get(v, "kind"),
                                 .device = option_given(v, "device") ? option_get(v, "device") : NULL};
    TRY(rows_check_kinds(out->row_kind, e));
    if (out->row_kind && strchr(out->row_kind, ','))
        return err_set(e, ERR_USAGE, "--kind: one kind, since those of others have other columns");
    if (out->outcome && !result_outcome_find(out->outcome, &outcome))
        return err_set(e, ERR_USAGE,
                       "--outcome: wanted measured, noisy, wrong, refused, above, crashed, hung, garbage or imported");
    const char *last = option_get(v, "last");
    if (!last || units_parse_count(last, 1, INT64_MAX, &out->last, e) == ERR_OK) return ERR_OK;
    return e ? err_prepend(e, "--last: ") : ERR_USAGE;
}

static enum err_code write_out(struct arena *a, const struct option_values *v, const struct table *all,
                               enum table_format usual, bool sheet, struct err *e)
{
    enum table_format format = usual;
    struct table t = *all;
    struct out *o;
    if (option_get(v, "format")) TRY(table_format_parse(option_get(v, "format"), &format, e));
    if (option_get(v, "columns")) TRY(table_select(a, all, option_get(v, "columns"), &t, e));
    TRY(out_open(a, option_get(v, "output"), &o, e));
    if (sheet && format == TABLE_TEXT)
        TRY(table_write_sheet(&t, o, e));
    else
        TRY(table_write(&t, format, o, e));
    return out_commit(o, e);
}

static enum err_code rows_of(struct arena *a, const struct result *r, size_t n, struct probe_row **out, struct err *e)
{
    struct probe_row *rows = arena_array(a, n + 1, sizeof *rows);
    if (!rows) return err_nomem(e);
    for (size_t i = 0; i < n; i++) TRY(probe_row_fill(a, &r[i], &rows[i], e));
    *out = rows;
    return ERR_OK;
}

/* -- history, show -- */

enum err_code probe_history(struct arena *a, const struct option_values *v, const char *command, struct err *e)
{
    struct store *s;
    struct store_filter f;
    struct result *r;
    struct probe_row *rows;
    size_t n;
    (void)command;
    TRY(read_filter(v, &f, e));
    TRY(probe_store_open(a, v, false, &s, e));
    TRY(store_read(a, s, &f, &r, &n, e));
    if (!n) return err_set(e, ERR_NO, "no such results");
    TRY(rows_of(a, r, n, &rows, e));
    struct table t = {.columns = probe_row_columns,
                      .n_columns = probe_row_columns_n,
                      .rows = rows,
                      .n_rows = n,
                      .stride_bytes = sizeof *rows,
                      .schema = "ridge.probe.1",
                      .tool = commands_tool()};
    t.scenario_json = option_scenario_json(a, v);
    return write_out(a, v, &t, TABLE_TEXT, false, e);
}

struct sample_row {
    int64_t sample;
    bool discarded;
    double time_s;
};

static const struct column SAMPLES[] = {
    COLUMN_AT(struct sample_row, sample, COLUMN_INT, UNITS_NONE, COLUMN_SHOWN, "sample",
              "in the order they were taken"),
    COLUMN_AT(struct sample_row, discarded, COLUMN_BOOL, UNITS_NONE, COLUMN_SHOWN, "discarded",
              "the thread lost the processor meanwhile"),
    COLUMN_AT(struct sample_row, time_s, COLUMN_REAL, UNITS_SECONDS, COLUMN_SHOWN, "time", "of one call"),
};

static enum err_code show_samples(struct arena *a, const struct option_values *v, const struct result *r, struct err *e)
{
    const size_t n = r->times_n + r->discards_n;
    struct sample_row *rows = arena_array(a, n + 1, sizeof *rows);
    if (!rows) return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        const bool discarded = i >= r->times_n;
        const size_t j = discarded ? i - r->times_n : i;
        rows[i] = (struct sample_row){(int64_t)j + 1, discarded, discarded ? r->discards_s[j] : r->times_s[j]};
    }
    const struct table t = {.columns = SAMPLES,
                            .n_columns = sizeof SAMPLES / sizeof SAMPLES[0],
                            .rows = rows,
                            .n_rows = n,
                            .stride_bytes = sizeof *rows,
                            .schema = "ridge.probe.samples.1",
                            .tool = commands_tool()};
    return write_out(a, v, &t, TABLE_TEXT, false, e);
}

enum err_code probe_show(struct arena *a, const struct option_values *v, const char *command, struct err *e)
{
    struct store *s;
    struct store_filter f = {.samples = true};
    struct result *r;
    struct probe_row *rows;
    struct column all[64];
    size_t n;
    (void)command;
    if (units_parse_count(v->operands[0], 1, INT64_MAX, &f.id, e) != ERR_OK)
        return e ? err_prepend(e, "probe show: ") : ERR_USAGE;
    TRY(probe_store_open(a, v, false, &s, e));
    TRY(store_read(a, s, &f, &r, &n, e));
    if (!n) return err_set(e, ERR_NO, "no result %lld", (long long)f.id);
    if (option_given(v, "each")) return show_samples(a, v, r, e);
    TRY(rows_of(a, r, n, &rows, e));
    for (size_t i = 0; i < probe_row_columns_n && i < sizeof all / sizeof all[0]; i++) {
        all[i] = probe_row_columns[i];
        all[i].flags |= COLUMN_SHOWN;
    }
    const struct table t = {.columns = all,
                            .n_columns = probe_row_columns_n,
                            .rows = rows,
                            .n_rows = 1,
                            .stride_bytes = sizeof *rows,
                            .schema = "ridge.probe.1",
                            .tool = commands_tool()};
    return write_out(a, v, &t, TABLE_TEXT, true, e);
}

/* -- export: one kind of rows, in the columns that ridge fit reads -- */

enum { CELLS_MAX = 64 };

/* A table whose columns follow from the rows: cells of 8 bytes, text or number. */
struct sheet {
    struct column columns[CELLS_MAX];
    size_t n;
};

union cell {
    const char *text;
    int64_t count;
    double real;
    bool flag;
};

static bool add_column(struct sheet *s, const char *key, enum column_kind kind)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->columns[i].key, key) == 0) return true;
    if (s->n == CELLS_MAX) return false;
    s->columns[s->n] = (struct column){.key = key,
                                       .heading = key,
                                       .help = "",
                                       .kind = kind,
                                       .unit = UNITS_NONE,
                                       .offset = s->n * sizeof(union cell),
                                       .flags = COLUMN_SHOWN};
    s->n++;
    return true;
}

static union cell *find_cell(const struct sheet *s, union cell *row, const char *key)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->columns[i].key, key) == 0) return &row[i];
    return NULL;
}

/* The cells of an imported row, one by one. */
static enum err_code each_cell(struct arena *a, const struct result *r,
                               enum err_code (*take)(void *closure, const char *key, const char *text, struct err *e),
                               void *closure, struct err *e)
{
    struct json_text key, value;
    bool more;
    if (!*r->cells) return ERR_OK;
    struct json_scan s = json_scan_open(a, "cells", r->cells, strlen(r->cells), e);
    TRY(json_scan_object(&s));
    for (;;) {
        TRY(json_scan_member(&s, &key, &more));
        if (!more) return ERR_OK;
        TRY(json_scan_text(&s, &value));
        const char *name = arena_strndup(a, key.s, key.len), *text = arena_strndup(a, value.s, value.len);
        if (!name || !text) return err_nomem(e);
        TRY(take(closure, name, text, e));
    }
}

static enum err_code take_column(void *closure, const char *key, const char *text, struct err *e)
{
    (void)text;
    return add_column(closure, key, COLUMN_STRING) ? ERR_OK : err_set(e, ERR_RANGE, "more than %d columns", CELLS_MAX);
}

struct filling {
    const struct sheet *sheet;
    union cell *row;
};

static enum err_code take_cell(void *closure, const char *key, const char *text, struct err *e)
{
    const struct filling *f = closure;
    union cell *c = find_cell(f->sheet, f->row, key);
    (void)e;
    if (c) c->text = text;
    return ERR_OK;
}

/* Rows of attention name two formats. */
static bool two_formats(const char *row_kind)
{
    for (size_t i = 0; i < rows_formats_n; i++)
        if (strcmp(kernel_kind_name(rows_formats[i].kind), row_kind) == 0)
            return wire_list_has(rows_formats[i].texts, "kv_dtype");
    return false;
}

/* The columns that files of a result's kind must have and its kernel has no parameter for. */
static bool is_implied(const struct result *r, const struct rows_number *w)
{
    int64_t v;
    return w->absent != ROWS_NEEDED && !w->optional && !wire_shape_get(&r->shape, w->column, &v);
}

/* Whether rows of a result's kind say which operator it was: of own ones the kernel. */
static bool has_op(const struct result *r)
{
    const struct rows_format *f = store_row_format(r);
    return f && wire_list_has(f->texts, "op");
}

static enum err_code plan_sheet(struct arena *a, const struct result *r, size_t n, bool two, struct sheet *s,
                                struct err *e)
{
    static const char *const OWN[] = {"framework", "version", "kernel", "device", "state", "made"};
    bool room = true;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < r[i].shape.n; j++) room = add_column(s, r[i].shape.arg[j].name, COLUMN_INT) && room;
    for (size_t i = 0; i < n; i++) {
        const struct rows_format *f = store_row_format(&r[i]);
        for (size_t j = 0; f && j < f->numbers_n; j++)
            if (is_implied(&r[i], &f->numbers[j])) room = add_column(s, f->numbers[j].column, COLUMN_INT) && room;
    }
    room = add_column(s, two ? "q_dtype" : "dtype", COLUMN_STRING) && room;
    if (two) room = add_column(s, "kv_dtype", COLUMN_STRING) && room;
    for (size_t i = 0; i < n; i++) TRY(each_cell(a, &r[i], take_column, s, e));
    if (n && has_op(&r[0])) room = add_column(s, "op", COLUMN_STRING) && room;
    for (size_t i = 0; i < sizeof OWN / sizeof OWN[0]; i++) room = add_column(s, OWN[i], COLUMN_STRING) && room;
    for (size_t i = 0; i < n; i++)
        if (!isnan(r[i].dram_read_bytes) && r[i].outcome != RESULT_IMPORTED)
            room =
                add_column(s, "dram_read_bytes", COLUMN_REAL) && add_column(s, "dram_write_bytes", COLUMN_REAL) && room;
    room = add_column(s, "spread_frac", COLUMN_REAL) && add_column(s, "samples", COLUMN_INT) && room;
    room = add_column(s, "time_s", COLUMN_REAL) && room;
    return room ? ERR_OK : err_set(e, ERR_RANGE, "more than %d columns", CELLS_MAX);
}

static enum err_code fill_sheet(struct arena *a, const struct result *r, bool two, const struct sheet *s,
                                union cell *row, struct err *e)
{
    struct filling filling = {s, row};
    const bool imported = r->outcome == RESULT_IMPORTED;
    for (size_t i = 0; i < s->n; i++) {
        row[i].text = NULL;
        if (s->columns[i].kind == COLUMN_INT) row[i].count = TABLE_INT_UNKNOWN;
        if (s->columns[i].kind == COLUMN_REAL) row[i].real = (double)NAN;
    }
    for (size_t j = 0; j < r->shape.n; j++) find_cell(s, row, r->shape.arg[j].name)->count = r->shape.arg[j].value;
    const struct rows_format *f = store_row_format(r);
    for (size_t j = 0; f && j < f->numbers_n; j++) {
        const struct rows_number *w = &f->numbers[j];
        int64_t v = w->absent == ROWS_ONE ? 1 : TABLE_INT_UNKNOWN;
        if (w->own) (void)wire_shape_get(&r->shape, w->own, &v);
        if (is_implied(r, w)) find_cell(s, row, w->column)->count = v;
    }
    find_cell(s, row, two ? "q_dtype" : "dtype")->text = r->dtype;
    if (two) find_cell(s, row, "kv_dtype")->text = r->dtype;
    find_cell(s, row, "framework")->text = imported ? NULL : "ridge";
    find_cell(s, row, "version")->text = imported                                    ? NULL
                                         : strncmp(r->origin.tool, "ridge ", 6) == 0 ? r->origin.tool + 6
                                                                                     : r->origin.tool;
    if (!imported && has_op(r)) find_cell(s, row, "op")->text = r->kernel;
    find_cell(s, row, "kernel")->text = imported ? NULL : r->variant;
    find_cell(s, row, "device")->text = r->origin.device;
    find_cell(s, row, "state")->text = imported ? NULL : r->cold ? "cold" : "hot";
    find_cell(s, row, "made")->text = r->made;
    if (two && !imported) find_cell(s, row, "q_dtype")->text = store_query_dtype(r->dtype);
    if (!imported && find_cell(s, row, "dram_read_bytes")) {
        find_cell(s, row, "dram_read_bytes")->real = r->dram_read_bytes;
        find_cell(s, row, "dram_write_bytes")->real = r->dram_write_bytes;
    }
    find_cell(s, row, "spread_frac")->real = r->summary.spread_frac;
    find_cell(s, row, "samples")->count = imported ? TABLE_INT_UNKNOWN : (int64_t)r->times_n;
    find_cell(s, row, "time_s")->real = result_time_s(r);
    return each_cell(a, r, take_cell, &filling, e);
}

/* The one kind of all results. */
static enum err_code one_kind(const struct result *r, size_t n, const char **kind, struct err *e)
{
    *kind = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!*r[i].row_kind) continue;
        if (*kind && strcmp(*kind, r[i].row_kind) != 0)
            return err_set(e, ERR_USAGE, "probe export: rows of %s and of %s have other columns: --kind KIND picks one",
                           *kind, r[i].row_kind);
        *kind = r[i].row_kind;
    }
    const struct result *first = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct rows_format *f = *r[i].row_kind ? store_row_format(&r[i]) : NULL;
        if (f && first && f != store_row_format(first))
            return err_set(e, ERR_USAGE,
                           "probe export: rows of %.40s and of %.40s have other columns: --kernel NAME picks one",
                           first->kernel, r[i].kernel);
        if (f && !first) first = &r[i];
    }
    return *kind ? ERR_OK : err_set(e, ERR_NO, "no results with a number that are of a kind of rows");
}

enum err_code probe_export(struct arena *a, const struct option_values *v, const char *command, struct err *e)
{
    struct store *s;
    struct store_filter f;
    struct result *r;
    struct sheet sheet = {.n = 0};
    const char *kind;
    size_t n, kept = 0;
    (void)command;
    TRY(read_filter(v, &f, e));
    f.samples = true;
    TRY(probe_store_open(a, v, false, &s, e));
    TRY(store_read(a, s, &f, &r, &n, e));
    for (size_t i = 0; i < n; i++)
        if (!isnan(result_time_s(&r[i])) && *r[i].row_kind) r[kept++] = r[i];
    TRY(one_kind(r, kept, &kind, e));
    const bool two = two_formats(kind);
    TRY(plan_sheet(a, r, kept, two, &sheet, e));
    union cell *rows = arena_array(a, kept * CELLS_MAX, sizeof *rows);
    if (!rows) return err_nomem(e);
    for (size_t i = 0; i < kept; i++) TRY(fill_sheet(a, &r[i], two, &sheet, rows + i * CELLS_MAX, e));
    const struct table t = {.columns = sheet.columns,
                            .n_columns = sheet.n,
                            .rows = rows,
                            .n_rows = kept,
                            .stride_bytes = CELLS_MAX * sizeof *rows,
                            .schema = "ridge.probe.rows.1",
                            .tool = commands_tool()};
    return write_out(a, v, &t, TABLE_CSV, false, e);
}
