/* probe_rows -- results of the probe as table rows, predictions beside them; private to the command. */
#ifndef RIDGE_CLI_PROBE_ROWS_H
#define RIDGE_CLI_PROBE_ROWS_H

#include "calc/base/table.h"
#include "probe/run.h"

struct probe_row {
    int64_t id, samples, discards, calls, copies, checked, seed;
    const char *made, *device, *kernel, *variant, *dtype, *unit, *row_kind, *shape, *sizes, *state, *outcome, *reason,
        *stop, *bound_by, *over, *dram_reason, *conditions, *tool, *command, *identity;
    double predicted_s, measured_s, roofline_frac, rate_flops_per_s, rate_bytes_per_s, least_s, q1_s, q3_s, spread_frac,
        median_error_frac, error_frac, tolerance_frac, flops, vector_flops, read_bytes, written_bytes, footprint_bytes,
        dram_read_bytes, dram_write_bytes, dram_ratio, intensity_flops_per_byte, peak_flops_per_s, read_bytes_per_s,
        moved_bytes_per_s, gather_bytes_per_s, piece_bytes;
};

extern const struct column probe_row_columns[];
extern const size_t probe_row_columns_n;

/* probe_row_fill -- of one result. The prediction is the least time on the ceilings around it, of the work that
 * calc/time/kernel.h counts for the row's kind, or of the kernel's own counts where it is of none. Errors: ERR_NOMEM.
 */
enum err_code probe_row_fill(struct arena *a, const struct result *r, struct probe_row *out, struct err *e);

/* probe_rows_over -- whether some row is faster than its ceilings, by however little: tables then show the column. */
bool probe_rows_over(const struct probe_row *rows, size_t n);

/* probe_show_over -- shows that column; the ratio says what the prediction does, which then makes room for it. */
void probe_show_over(struct column *columns, size_t columns_n);

/* probe_row_work -- flops and bytes of a result's row by calc/time/kernel.h; false when its kind or format has none. */
bool probe_row_work(struct arena *a, const struct result *r, double *flops, double *bytes);

/* probe_shape_text -- "m=1 n=4096 k=4096". Errors: NULL when memory is exhausted. */
const char *probe_shape_text(struct arena *a, const struct wire_shape *s);

#endif
