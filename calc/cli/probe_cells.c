#include "calc/cli/probe_cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/json.h"

#define AT(field) offsetof(struct result, field)

const struct probe_cell probe_cells[] = {
    {PROBE_CELLS_KERNEL, AT(kernel), true},
    {"unit", AT(unit), true},
    {"ceiling", AT(ceiling), true},
    {"flops", AT(flops), false},
    {"vector_flops", AT(vector_flops), false},
    {"read_bytes", AT(read_bytes), false},
    {"written_bytes", AT(written_bytes), false},
    {"footprint_bytes", AT(footprint_bytes), false},
    {"piece_bytes", AT(piece_bytes), false},
    {"before_peak_flops_per_s", AT(before.peak_flops_per_s), false},
    {"before_read_bytes_per_s", AT(before.read_bytes_per_s), false},
    {"before_moved_bytes_per_s", AT(before.moved_bytes_per_s), false},
    {"before_gather_bytes_per_s", AT(before.gather_bytes_per_s), false},
    {"after_peak_flops_per_s", AT(after.peak_flops_per_s), false},
    {"after_read_bytes_per_s", AT(after.read_bytes_per_s), false},
    {"after_moved_bytes_per_s", AT(after.moved_bytes_per_s), false},
    {"after_gather_bytes_per_s", AT(after.gather_bytes_per_s), false},
    {PROBE_CELLS_IDENTITY, AT(origin.identity), true},
    {PROBE_CELLS_STARTED, AT(origin.started), true},
};
const size_t probe_cells_n = sizeof probe_cells / sizeof probe_cells[0];

bool probe_cells_has(const char *column)
{
    size_t i = 0;
    while (i < probe_cells_n && strcmp(probe_cells[i].column, column) != 0) i++;
    return i < probe_cells_n || strcmp(column, PROBE_CELLS_SHAPE) == 0;
}

enum err_code probe_cells_read(struct arena *a, const char *column, const char *text, struct result *r, struct err *e)
{
    struct json j;
    if (!*text) return ERR_OK;
    if (strcmp(column, PROBE_CELLS_SHAPE) == 0) return wire_read_shape(a, text, &r->shape, e);
    if (strcmp(column, PROBE_CELLS_IDENTITY) == 0) {
        TRY(json_parse(a, column, text, strlen(text), &j, e));
        if (!json_is_object(&j)) return err_set(e, ERR_INPUT, "wanted an object");
    }
    for (size_t i = 0; i < probe_cells_n; i++) {
        char *const at = (char *)r + probe_cells[i].offset, *end;
        if (strcmp(probe_cells[i].column, column) != 0) continue;
        if (probe_cells[i].text) {
            memcpy(at, &text, sizeof text);
            return ERR_OK;
        }
        const double v = strtod(text, &end);
        if (*end || !isfinite(v)) return err_set(e, ERR_INPUT, "wanted a number");
        memcpy(at, &v, sizeof v);
    }
    return ERR_OK;
}
