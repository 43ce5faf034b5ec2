/* probe_sink -- rows of a table that come one by one: csv, json and jsonl are written as they come, text and md, whose
 * columns are as wide as their widest cell, are kept until the end. Private to `ridge probe`. */
#ifndef RIDGE_CLI_PROBE_SINK_H
#define RIDGE_CLI_PROBE_SINK_H

#include "calc/base/table.h"
#include "calc/cli/option.h"

struct probe_sink {
    struct arena *arena;
    struct table table;
    enum table_format format;
    struct out *out;
    bool kept; /* rows live as long as arena; else they are for a moment */
    unsigned char *rows;
    size_t n, room;
};

/* probe_sink_open -- where -o says, in the format of -f, else the usual one, with the columns of --columns; of t all
 * but the rows. probe_sink_row -- t->stride_bytes of one. probe_sink_end -- the table is whole; of what is kept the
 * columns may have been changed in place before. Errors: as table_format_parse, table_select, out_open, table_write. */
enum err_code probe_sink_open(struct arena *a, const struct option_values *v, const struct table *t,
                              enum table_format usual, struct probe_sink *out, struct err *e);
enum err_code probe_sink_row(struct probe_sink *s, const void *row, struct err *e);
enum err_code probe_sink_end(struct probe_sink *s, struct err *e);

#endif
