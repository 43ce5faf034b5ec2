/* table -- one description of columns feeds every output format; output code formats fields and computes nothing.
 *
 * A row is a struct of the caller; a column says where its field lies (offsetof), what it holds and what it measures.
 * Keys are the names in CSV and JSON: stable, ending in their unit. Unknown (NAN, NULL string, TABLE_INT_UNKNOWN) and
 * infinite are empty in CSV, null in JSON, "-" in text. Strings are untrusted whatever their origin: text and md
 * replace what would steer a terminal, md escapes markup, CSV quotes and disarms formulas, JSON escapes. */
#ifndef RIDGE_BASE_TABLE_H
#define RIDGE_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"
#include "calc/base/out.h"
#include "calc/base/units.h"

/* The C type of the field. */
enum column_kind {
    COLUMN_STRING, /* const char *, NULL unknown */
    COLUMN_BOOL,   /* bool */
    COLUMN_MAYBE,  /* double: 0 false, NAN unknown, otherwise true */
    COLUMN_INT,    /* int64_t, TABLE_INT_UNKNOWN unknown */
    COLUMN_COUNT,  /* double that holds a whole number (bytes, flops, parameters): all its digits in CSV and JSON */
    COLUMN_REAL,   /* double */
};

#define TABLE_INT_UNKNOWN INT64_MIN

enum {
    COLUMN_SHOWN = 1, /* in text and md also when no columns were selected */
    COLUMN_FULL = 2,  /* in text all digits of a count rather than 4 and a prefix */
    COLUMN_SPARE = 4, /* in text left out, the last first, and named below, where the line is too long for a terminal */
    COLUMN_ALIKE = 8, /* in text and md one prefix with the column of its unit before it, which it is compared with */
    COLUMN_WHOLE = 16, /* in text strings are never cut: names that are typed again */
};

struct column {
    const char *key;     /* "weight_bytes" */
    const char *heading; /* short, for people: "weights" */
    const char *help;    /* one sentence, what the number is */
    enum column_kind kind;
    enum units_kind unit;
    size_t offset; /* of the field in the row */
    unsigned flags;
};

/* COLUMN_AT -- an entry of a column array: COLUMN_AT(struct row, weight_bytes, COLUMN_COUNT, UNITS_BYTES, COLUMN_SHOWN,
 * "weights", "bytes of all weights"); the key is the field's name. */
#define COLUMN_AT(row, field, kind_, unit_, flags_, heading_, help_)                                                   \
    {                                                                                                                  \
        .key = #field, .heading = (heading_), .help = (help_), .kind = (kind_), .unit = (unit_),                       \
        .offset = offsetof(row, field), .flags = (flags_)                                                              \
    }

struct table {
    const struct column *columns;
    size_t n_columns;
    const void *rows; /* n_rows structs, stride_bytes apart */
    size_t n_rows, stride_bytes;
    const char *schema;        /* JSON "schema": name and version of the record */
    const char *tool;          /* JSON "tool": program and version */
    const char *scenario_json; /* JSON text put in as it is; NULL becomes null */
    const char *const *notes;  /* sentences under the table; JSON "notes" */
    size_t n_notes;
    bool sectioned; /* text: rows that follow each other with one string at this place of theirs go under it */
    size_t section_offset;
};

enum table_format { TABLE_TEXT, TABLE_MD, TABLE_CSV, TABLE_JSON, TABLE_JSONL };

/* table_format_parse -- "text", "md", "csv", "json", "jsonl". Errors: ERR_USAGE naming them. */
enum err_code table_format_parse(const char *name, enum table_format *out, struct err *e);

/* table_select -- *out is t with the columns of a comma-separated list of keys, in its order, all shown. Errors:
 * ERR_USAGE unknown key with the nearest names, a key twice, an empty list; ERR_NOMEM. What is selected is not spare.
 */
enum err_code table_select(struct arena *a, const struct table *t, const char *keys, struct table *out, struct err *e);

/* table_write -- all rows in one format:
 *   text   aligned columns under two heading lines (name, unit), 4 significant digits, one prefix a column; notes in
 *          lines of 80 columns at most
 *   md     a GitHub table of the same cells
 *   csv    RFC 4180 with "\n" line ends, a header of keys; notes are left out
 *   json   {"schema", "tool", "scenario", "notes", "rows"}
 *   jsonl  one object a row
 * Numbers in csv, json and jsonl read back exactly. Text and md show the columns with COLUMN_SHOWN, the others all.
 * Cost: O(cells), and memory for the text of all cells in text and md. Errors: as out_check; ERR_NOMEM. */
enum err_code table_write(const struct table *t, enum table_format format, struct out *o, struct err *e);

/* table_write_sheet -- a table of few rows as text on its side: one line per shown column, heading, then a value with
 * its own prefix and unit for every row; of a lone row strings whole, in lines of 80 columns. Errors: as out_check;
 * ERR_NOMEM. */
enum err_code table_write_sheet(const struct table *t, struct out *o, struct err *e);

/* table_begin, table_row, table_end -- the same for rows that come one by one and are not kept; t gives the columns and
 * the frame, its rows are not looked at. csv, json and jsonl only (ERR_USAGE). first says whether row is the first.
 * Errors: as out_check. */
enum err_code table_begin(const struct table *t, enum table_format format, struct out *o, struct err *e);
enum err_code table_row(const struct table *t, enum table_format format, const void *row, bool first, struct out *o,
                        struct err *e);
enum err_code table_end(const struct table *t, enum table_format format, struct out *o, struct err *e);

#endif
