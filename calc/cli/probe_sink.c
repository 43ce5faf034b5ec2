#include "calc/cli/probe_sink.h"

#include <string.h>

enum err_code probe_sink_open(struct arena *a, const struct option_values *v, const struct table *t,
                              enum table_format usual, struct probe_sink *out, struct err *e)
{
    *out = (struct probe_sink){.arena = a, .table = *t, .format = usual};
    if (option_get(v, "format")) TRY(table_format_parse(option_get(v, "format"), &out->format, e));
    if (option_get(v, "columns")) TRY(table_select(a, t, option_get(v, "columns"), &out->table, e));
    out->kept = out->format == TABLE_TEXT || out->format == TABLE_MD;
    TRY(out_open(a, option_get(v, "output"), &out->out, e));
    return out->kept ? ERR_OK : table_begin(&out->table, out->format, out->out, e);
}

enum err_code probe_sink_row(struct probe_sink *s, const void *row, struct err *e)
{
    const size_t bytes = s->table.stride_bytes;
    if (!s->kept) return table_row(&s->table, s->format, row, s->n++ == 0, s->out, e);
    if (s->n == s->room) {
        const size_t room = s->room ? 2 * s->room : 64;
        unsigned char *grown = arena_array(s->arena, room, bytes);
        if (!grown) return err_nomem(e);
        if (s->n) memcpy(grown, s->rows, s->n * bytes);
        s->rows = grown;
        s->room = room;
    }
    memcpy(s->rows + s->n++ * bytes, row, bytes);
    return ERR_OK;
}

enum err_code probe_sink_end(struct probe_sink *s, struct err *e)
{
    s->table.rows = s->rows;
    s->table.n_rows = s->n;
    TRY(s->kept ? table_write(&s->table, s->format, s->out, e) : table_end(&s->table, s->format, s->out, e));
    return out_commit(s->out, e);
}
