/* table_text -- what table.c and table_text.c share; others include table.h. */
#ifndef RIDGE_BASE_TABLE_TEXT_H
#define RIDGE_BASE_TABLE_TEXT_H

#include "calc/base/table.h"

enum table_type { TABLE_UNKNOWN, TABLE_STRING, TABLE_TRUE, TABLE_FALSE, TABLE_WHOLE, TABLE_REAL };

/* One field, read from its row; real is set for every number. */
struct table_field {
    enum table_type type;
    const char *text;
    int64_t whole;
    double real;
};

struct table_field table_field_of(const struct column *c, const void *row);

/* table_write_text -- the TABLE_TEXT and TABLE_MD side of table_write. */
enum err_code table_write_text(const struct table *t, enum table_format format, struct out *o, struct err *e);

#endif
