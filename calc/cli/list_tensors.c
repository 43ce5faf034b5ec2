#include "calc/cli/list_tensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/model/tensors.h"

#define COL(row, field, kind, unit, flags, heading, help)                                                              \
    COLUMN_AT(struct row, field, COLUMN_##kind, UNITS_##unit, flags, heading, help)

struct tensor_row {
    const char *name, *dtype, *shape, *file;
    int64_t elements, bytes, shard;
};

static const struct column TENSOR_COLUMNS[] = {
    COL(tensor_row, name, STRING, NONE, COLUMN_SHOWN, "name", "as the file has it"),
    COL(tensor_row, dtype, STRING, NONE, COLUMN_SHOWN, "dtype", "as stored"),
    COL(tensor_row, shape, STRING, NONE, COLUMN_SHOWN, "shape", "slowest index first"),
    COL(tensor_row, elements, INT, NONE, COLUMN_SHOWN, "elements", "as stored: packed ones are not unpacked"),
    COL(tensor_row, bytes, INT, NONE, COLUMN_SHOWN, "bytes", "in its file"),
    COL(tensor_row, shard, INT, NONE, 0, "shard", "which file, from 1"),
    COL(tensor_row, file, STRING, NONE, 0, "file", "the shard's path"),
};

struct type_row {
    const char *dtype;
    int64_t tensors, elements, bytes;
    double bits_per_element;
};

static const struct column TYPE_COLUMNS[] = {
    COL(type_row, dtype, STRING, NONE, COLUMN_SHOWN, "dtype", "as stored; all: the checkpoint"),
    COL(type_row, tensors, INT, NONE, COLUMN_SHOWN, "tensors", "how many"),
    COL(type_row, elements, INT, NONE, COLUMN_SHOWN, "elements", "as stored"),
    COL(type_row, bytes, INT, NONE, COLUMN_SHOWN, "bytes", "without headers and padding"),
    COL(type_row, bits_per_element, REAL, NONE, COLUMN_SHOWN, "bits each", "bytes * 8 / elements"),
};

static const char *shape_text(struct arena *a, const struct tensor *t)
{
    char text[TENSOR_DIMS_MAX * 24] = "";
    size_t n = 0;
    if (!t->type) return NULL;
    if (t->dims == 0) return "scalar";
    for (int i = 0; i < t->dims; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%lld", i ? " x " : "", (long long)t->shape[i]);
    return arena_strndup(a, text, n);
}

/* For a terminal: of a long name the end, which tells tensors apart. */
static const char *short_name(struct arena *a, const char *name)
{
    enum { SHOWN = 34 };
    const size_t len = strlen(name);
    if (len <= SHOWN) return name;
    const char *tail = name + len - (SHOWN - 2);
    while (((unsigned char)*tail & 0xC0) == 0x80) tail++;
    return arena_printf(a, "..%s", tail);
}

static enum err_code tensor_table(struct arena *a, const struct tensor_set *s, bool shorten, struct table *t,
                                  struct err *e)
{
    struct tensor_row *rows = arena_array(a, s->n ? s->n : 1, sizeof *rows);
    const char *shape = NULL;
    if (!rows) return err_nomem(e);
    for (size_t i = 0; i < s->n; i++) {
        const struct tensor *x = &s->tensors[i];
        if (i == 0 || x->shape != s->tensors[i - 1].shape) shape = shape_text(a, x); /* equal ones are mostly one */
        rows[i] = (struct tensor_row){.name = shorten ? short_name(a, x->name) : x->name,
                                      .dtype = x->type ? x->type->name : NULL,
                                      .shape = shape,
                                      .elements = x->elems,
                                      .bytes = x->bytes,
                                      .shard = x->shard + 1,
                                      .file = s->shards[x->shard].path};
        if (!rows[i].name || (x->type && !rows[i].shape)) return err_nomem(e);
    }
    *t = (struct table){.columns = TENSOR_COLUMNS,
                        .n_columns = sizeof TENSOR_COLUMNS / sizeof TENSOR_COLUMNS[0],
                        .rows = rows,
                        .n_rows = s->n,
                        .stride_bytes = sizeof *rows};
    return ERR_OK;
}

static struct type_row type_row(const char *name, int64_t tensors, int64_t elems, int64_t bytes)
{
    const bool known = elems != TENSOR_UNKNOWN && elems > 0;
    return (struct type_row){.dtype = name,
                             .tensors = tensors,
                             .elements = elems,
                             .bytes = bytes,
                             .bits_per_element = known ? (double)bytes * 8 / (double)elems : (double)NAN};
}

static enum err_code type_table(struct arena *a, const struct tensor_set *s, struct table *t, struct err *e)
{
    struct tensor_total *totals;
    size_t n;
    TRY(tensors_totals(a, s, &totals, &n, e));
    struct type_row *rows = arena_array(a, n + 1, sizeof *rows);
    if (!rows) return err_nomem(e);
    for (size_t i = 0; i < n; i++)
        rows[i] = type_row(totals[i].type ? totals[i].type->name : "unknown", totals[i].tensors, totals[i].elems,
                           totals[i].bytes);
    rows[n] = type_row("all", (int64_t)s->n, s->total_elems, s->total_bytes);
    *t = (struct table){.columns = TYPE_COLUMNS,
                        .n_columns = sizeof TYPE_COLUMNS / sizeof TYPE_COLUMNS[0],
                        .rows = rows,
                        .n_rows = n + 1,
                        .stride_bytes = sizeof *rows};
    return ERR_OK;
}

enum err_code list_tensors(struct arena *a, const char *path, bool by_type, enum table_format format, struct out *o,
                           struct err *e)
{
    struct tensor_set s;
    struct table tensors, types;
    const char *notes[2];
    size_t notes_n = 0;
    TRY(tensors_open(a, path, &s, e));
    if (by_type)
        tensors = (struct table){.n_rows = 0};
    else
        TRY(tensor_table(a, &s, format == TABLE_TEXT, &tensors, e));
    TRY(type_table(a, &s, &types, e));
    tensors.tool = types.tool = commands_tool();
    tensors.schema = "ridge.tensors.1";
    types.schema = "ridge.tensor_types.1";
    if (s.notes) notes[notes_n++] = s.notes;
    if (s.headers_missing) {
        notes[notes_n] = isnan(s.index_total_bytes)
                             ? "only the index is there: names, and neither shapes nor bytes"
                             : arena_printf(a, "only the index is there; it says %.0f bytes", s.index_total_bytes);
        if (!notes[notes_n++]) return err_nomem(e);
    }
    const bool people = format == TABLE_TEXT || format == TABLE_MD;
    struct table *last = by_type || people ? &types : &tensors;
    last->notes = notes;
    last->n_notes = notes_n;
    if (!by_type) TRY(table_write(&tensors, format, o, e));
    if (!by_type && people) out_char(o, '\n');
    return by_type || people ? table_write(&types, format, o, e) : ERR_OK;
}
