#include "calc/cli/probe_rows.h"

#include <math.h>
#include <string.h>

#include "calc/cli/store_rows.h"

#define ROW(field, kind, unit, flags, heading, help)                                                                   \
    COLUMN_AT(struct probe_row, field, kind, unit, flags, heading, help)

const struct column probe_row_columns[] = {
    ROW(id, COLUMN_INT, UNITS_NONE, COLUMN_SHOWN, "id", "number in the store; unknown: not stored"),
    ROW(made, COLUMN_STRING, UNITS_NONE, 0, "made", "when, UTC"),
    ROW(device, COLUMN_STRING, UNITS_NONE, 0, "device", "what it was measured on"),
    ROW(kernel, COLUMN_STRING, UNITS_NONE, COLUMN_SHOWN, "kernel", "what was measured"),
    ROW(variant, COLUMN_STRING, UNITS_NONE, COLUMN_SHOWN, "variant", "which code of it"),
    ROW(dtype, COLUMN_STRING, UNITS_NONE, COLUMN_SHOWN | COLUMN_SPARE, "dtype", "format of weights or cache"),
    ROW(unit, COLUMN_STRING, UNITS_NONE, 0, "unit", "whose peak counts"),
    ROW(row_kind, COLUMN_STRING, UNITS_NONE, 0, "row kind", "kind of measured row, as ridge fit reads them"),
    ROW(sizes, COLUMN_STRING, UNITS_NONE, COLUMN_SHOWN, "sizes",
        "of the shape, in the order of the kernel's parameters"),
    ROW(shape, COLUMN_STRING, UNITS_NONE, 0, "shape", "parameters of the kernel by name"),
    ROW(state, COLUMN_STRING, UNITS_NONE, COLUMN_SHOWN, "state",
        "cold: operands in memory; hot: in the caches that hold them"),
    ROW(predicted_s, COLUMN_REAL, UNITS_SECONDS, COLUMN_SHOWN, "predicted",
        "least time on the ceilings measured around it"),
    ROW(measured_s, COLUMN_REAL, UNITS_SECONDS, COLUMN_SHOWN | COLUMN_ALIKE, "measured", "median of the samples"),
    ROW(roofline_frac, COLUMN_REAL, UNITS_FRAC, COLUMN_SHOWN, "ratio", "predicted over measured: part of the roofline"),
    ROW(over, COLUMN_STRING, UNITS_NONE, 0, "over",
        "faster than its ceilings: > 1 by no more than they are known to, > 1.03 beyond, and then no number"),
    ROW(bound_by, COLUMN_STRING, UNITS_NONE, COLUMN_SHOWN | COLUMN_SPARE, "bound by", "what binds the prediction"),
    ROW(rate_flops_per_s, COLUMN_REAL, UNITS_FLOPS_PER_S, 0, "rate", "counted flops over measured time"),
    ROW(rate_bytes_per_s, COLUMN_REAL, UNITS_BYTES_PER_S, 0, "moved", "counted bytes over measured time"),
    ROW(spread_frac, COLUMN_REAL, UNITS_FRAC, 0, "spread", "relative spread of the samples"),
    ROW(median_error_frac, COLUMN_REAL, UNITS_FRAC, 0, "+-",
        "relative standard error of the median: another series, taken then, is within twice it 95 times in 100"),
    ROW(samples, COLUMN_INT, UNITS_NONE, COLUMN_SHOWN | COLUMN_SPARE, "n", "samples kept"),
    ROW(discards, COLUMN_INT, UNITS_NONE, 0, "lost", "samples disturbed by other programs, discarded"),
    ROW(outcome, COLUMN_STRING, UNITS_NONE, COLUMN_SHOWN | COLUMN_SPARE, "outcome",
        "measured, or why there is no number"),
    ROW(reason, COLUMN_STRING, UNITS_NONE, 0, "reason", "of an outcome that is no number"),
    ROW(stop, COLUMN_STRING, UNITS_NONE, 0, "stop", "why sampling ended: quiet, plateau, deadline, full"),
    ROW(least_s, COLUMN_REAL, UNITS_SECONDS, 0, "least", "fastest sample"),
    ROW(q1_s, COLUMN_REAL, UNITS_SECONDS, 0, "Q1", "first quartile"),
    ROW(q3_s, COLUMN_REAL, UNITS_SECONDS, 0, "Q3", "third quartile"),
    ROW(calls, COLUMN_INT, UNITS_NONE, 0, "calls", "calls in a sample"),
    ROW(copies, COLUMN_INT, UNITS_NONE, 0, "copies", "of the operands, in turn"),
    ROW(checked, COLUMN_INT, UNITS_NONE, 0, "checked", "elements compared with the reference"),
    ROW(error_frac, COLUMN_REAL, UNITS_FRAC, 0, "error", "distance to the reference, in norm"),
    ROW(tolerance_frac, COLUMN_REAL, UNITS_FRAC, 0, "tolerance", "largest error that passes"),
    ROW(flops, COLUMN_COUNT, UNITS_FLOPS, 0, "flops", "of products, counted"),
    ROW(vector_flops, COLUMN_COUNT, UNITS_FLOPS, 0, "other flops", "elementwise, counted"),
    ROW(read_bytes, COLUMN_COUNT, UNITS_BYTES, 0, "read", "bytes of the inputs"),
    ROW(written_bytes, COLUMN_COUNT, UNITS_BYTES, 0, "written", "bytes of the outputs"),
    ROW(dram_read_bytes, COLUMN_REAL, UNITS_BYTES, 0, "memory read", "by the device's counters, of one call"),
    ROW(dram_write_bytes, COLUMN_REAL, UNITS_BYTES, 0, "memory written", "by the device's counters, of one call"),
    ROW(dram_ratio, COLUMN_REAL, UNITS_RATIO, 0, "memory/counted", "both over the counted bytes, read and written"),
    ROW(dram_reason, COLUMN_STRING, UNITS_NONE, 0, "not counted", "why the device's counters say nothing"),
    ROW(footprint_bytes, COLUMN_COUNT, UNITS_BYTES, 0, "footprint", "of one copy of the buffers"),
    ROW(intensity_flops_per_byte, COLUMN_REAL, UNITS_FLOPS_PER_BYTE, 0, "intensity", "counted flops per counted byte"),
    ROW(peak_flops_per_s, COLUMN_REAL, UNITS_FLOPS_PER_S, 0, "peak", "of the unit, around the measurement"),
    ROW(read_bytes_per_s, COLUMN_REAL, UNITS_BYTES_PER_S, 0, "reading", "bandwidth, around the measurement"),
    ROW(moved_bytes_per_s, COLUMN_REAL, UNITS_BYTES_PER_S, 0, "moving", "best bandwidth, around the measurement"),
    ROW(piece_bytes, COLUMN_REAL, UNITS_BYTES, 0, "pieces", "of what is read in pieces that lie in no order"),
    ROW(gather_bytes_per_s, COLUMN_REAL, UNITS_BYTES_PER_S, 0, "gathering",
        "bandwidth of such pieces at best, around the measurement"),
    ROW(conditions, COLUMN_STRING, UNITS_NONE, 0, "conditions",
        "how cold was made, clocks, power, JSON; of an imported row its further cells"),
    ROW(seed, COLUMN_INT, UNITS_NONE, 0, "seed", "of the inputs"),
    ROW(tool, COLUMN_STRING, UNITS_NONE, 0, "tool", "program and version"),
    ROW(command, COLUMN_STRING, UNITS_NONE, 0, "command", "command line"),
    ROW(identity, COLUMN_STRING, UNITS_NONE, 0, "identity", "machine and software, JSON"),
};
const size_t probe_row_columns_n = sizeof probe_row_columns / sizeof probe_row_columns[0];

const char *probe_shape_text(struct arena *a, const struct wire_shape *s)
{
    const char *text = "";
    for (size_t i = 0; i < s->n && text; i++)
        text = arena_printf(a, "%s%s%s=%lld", text, i ? " " : "", s->arg[i].name, (long long)s->arg[i].value);
    return text;
}

/* "1x4096x4096" */
static const char *sizes_text(struct arena *a, const struct wire_shape *s)
{
    const char *text = "";
    for (size_t i = 0; i < s->n && text; i++)
        text = arena_printf(a, "%s%s%lld", text, i ? "x" : "", (long long)s->arg[i].value);
    return text;
}

bool probe_rows_over(const struct probe_row *rows, size_t n)
{
    size_t i = 0;
    while (i < n && !rows[i].over) i++;
    return i < n;
}

void probe_show_over(struct column *columns, size_t columns_n)
{
    for (size_t i = 0; i < columns_n; i++) {
        if (strcmp(columns[i].key, "over") == 0) columns[i].flags |= COLUMN_SHOWN;
        if (strcmp(columns[i].key, "predicted_s") == 0) columns[i].flags |= COLUMN_SPARE;
    }
}

bool probe_row_work(struct arena *a, const struct result *r, double *flops, double *bytes)
{
    struct row row;
    /* what collectives are held against are links, whose rates are none of the ceilings around a result */
    if (!store_row(a, r, "", NULL, &row) || row.kernel.kind == KERNEL_COLLECTIVE) return false;
    struct hw unit = {.file = "", .bandwidth_bytes_per_s = 1, .l2_bytes = 0};
    for (size_t i = 0; i < HW_DTYPES_N; i++) unit.peak_flops_per_s[i] = 1;
    struct kernel_work w;
    struct err ignored = {.code = ERR_OK};
    if (kernel_work(&row.kernel, &unit, &w, &ignored) != ERR_OK) return false;
    *flops = w.flops;
    *bytes = w.bytes;
    return true;
}

static void predict(struct arena *a, const struct result *r, struct probe_row *row)
{
    double flops = r->flops, bytes = r->read_bytes + r->written_bytes;
    (void)probe_row_work(a, r, &flops, &bytes);
    const double reads = bytes - r->written_bytes;
    const double compute_s = result_bound_s(r, flops, 0, 0);
    /* in pages, whose rate a CPU measures: that of an array is none of theirs */
    const bool paged = r->cold && r->piece_bytes > 0 && isnan(result_ceilings_of(r).gather_bytes_per_s);
    const bool unmoved = result_lacks_move(r, flops, reads, bytes);
    row->predicted_s = paged || unmoved ? (double)NAN : result_bound_s(r, flops, reads, bytes);
    row->bound_by = isnan(row->predicted_s)                                   ? NULL
                    : compute_s == row->predicted_s                           ? "compute"
                    : r->cold && reads / result_gather(r) == row->predicted_s ? "gather"
                    : r->cold                                                 ? "memory"
                                                                              : "cache";
}

enum err_code probe_row_fill(struct arena *a, const struct result *r, struct probe_row *out, struct err *e)
{
    const double time_s = result_time_s(r);
    const struct result_ceilings c = result_ceilings_of(r);
    *out = (struct probe_row){.id = r->id ? r->id : TABLE_INT_UNKNOWN,
                              .made = r->made,
                              .device = r->origin.device,
                              .kernel = r->kernel,
                              .variant = r->variant,
                              .dtype = r->dtype,
                              .unit = r->unit,
                              .row_kind = *r->row_kind ? r->row_kind : NULL,
                              .shape = probe_shape_text(a, &r->shape),
                              .sizes = sizes_text(a, &r->shape),
                              .outcome = result_outcome_name(r->outcome),
                              .reason = *r->reason ? r->reason : NULL,
                              .stop = r->stop == SAMPLE_GOING ? NULL : sample_stop_name(r->stop),
                              .samples = (int64_t)r->times_n,
                              .discards = (int64_t)r->discards_n,
                              .calls = r->calls,
                              .copies = r->copies,
                              .checked = r->checked,
                              .seed = r->seed,
                              .measured_s = time_s,
                              .rate_flops_per_s = r->flops > 0 ? r->flops / time_s : (double)NAN,
                              .rate_bytes_per_s = (r->read_bytes + r->written_bytes) / time_s,
                              .least_s = r->summary.least_s,
                              .q1_s = r->summary.q1_s,
                              .q3_s = r->summary.q3_s,
                              .spread_frac = r->summary.spread_frac,
                              .median_error_frac = r->summary.error_frac,
                              .error_frac = r->error_frac,
                              .tolerance_frac = r->tolerance_frac,
                              .flops = r->flops,
                              .vector_flops = r->vector_flops,
                              .read_bytes = r->read_bytes,
                              .written_bytes = r->written_bytes,
                              .dram_reason = r->dram_reason && *r->dram_reason ? r->dram_reason : NULL,
                              .footprint_bytes = r->footprint_bytes,
                              .dram_read_bytes = r->dram_read_bytes,
                              .dram_write_bytes = r->dram_write_bytes,
                              .dram_ratio =
                                  (r->dram_read_bytes + r->dram_write_bytes) / (r->read_bytes + r->written_bytes),
                              .intensity_flops_per_byte = r->flops / (r->read_bytes + r->written_bytes),
                              .peak_flops_per_s = c.peak_flops_per_s,
                              .read_bytes_per_s = c.read_bytes_per_s,
                              .moved_bytes_per_s = c.moved_bytes_per_s,
                              .gather_bytes_per_s = c.gather_bytes_per_s,
                              .piece_bytes = r->piece_bytes > 0 ? r->piece_bytes : (double)NAN,
                              .tool = r->origin.tool,
                              .command = r->origin.command,
                              .conditions = r->cells && *r->cells ? r->cells : NULL,
                              .identity = r->origin.identity};
    const char *state = store_state(a, r);
    out->state = *state ? state : NULL;
    predict(a, r, out);
    out->roofline_frac = out->predicted_s / time_s;
    if (out->roofline_frac > 1) out->over = "> 1";
    if (r->outcome == RESULT_ABOVE) out->over = "> 1.03";
    return out->shape && out->sizes ? ERR_OK : err_nomem(e);
}
