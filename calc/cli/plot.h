/* plot -- pictures of results, drawn by gnuplot from the rows a command would print as CSV.
 *
 * The scripts (those below plots/, carried in the program) draw axes, curves and bars from tables whose columns they
 * find by name; where text stands is decided here, from estimated character widths, so that no label covers another.
 * gnuplot runs without a shell, in a private directory that is removed afterwards, and sees text of the caller only as
 * fields of a data file: no such text is ever part of a command or a string of the language. */
#ifndef RIDGE_CLI_PLOT_H
#define RIDGE_CLI_PLOT_H

#include "calc/base/arena.h"
#include "calc/base/err.h"

/* What to draw. Texts are UTF-8 and untrusted; controls in them are left out. NULL where optional.
 *
 * kind "roofline": arithmetic intensity against attainable FLOP/s, log-log. csv holds operator rows of one model on one
 * device in one set of formats: op (required), phase, flops, bytes or intensity_flops_per_byte, time_s, share_frac;
 * with several GPUs, of one of them. ceilings_csv holds dtype, peak_flops_per_s, bandwidth_bytes_per_s, one row per
 * compute dtype, the one computed in first: its ridge point is the one marked. The rate of a point is flops / time_s,
 * or what the first ceiling allows when time_s is empty. Operators without flops have no place on the axes; their
 * number is said.
 *
 * kind "batch": decode step time and aggregate throughput against batch, or against context when only that varies
 * (log2); one series per distinct rest of (model, hardware, gpus, tp, weights, kv, batch, context, generate_tokens,
 * fidelity), at most 12. csv holds sweep rows: batch (required), decode_step_s, throughput_tok_per_s, fits. Rows of
 * phase "prefill" are passed over.
 *
 * kind "memory": stacked weight_bytes, kv_bytes, state_bytes, activation_bytes (what memory_bytes holds beyond them is
 * "other") against batch or context, whichever varies; with several GPUs, of one of them; capacity_bytes as a line
 * per device. One model.
 *
 * kind "scatter": calibrated over measured against measured times, one mark a row, a look per text of `group` (at most
 * 12; further ones share the last). csv holds group, measured_s, calibrated_s. Ratios beyond 5 stand at the edge.
 *
 * kind "charts": lines side by side (chart.h, which writes both tables). csv holds chart (from 1), series (at most 8),
 * x, y, kept; charts_csv a row a chart: title, x_title, y_title, x_mark_name, y_mark_name, x0, x1, y0, y1, log_x,
 * x_limit, x_mark, y_mark.
 *
 * kind "timeline": batch, queue and blocks_percent over time_s, a panel each. */
struct plot_request {
    const char *kind;
    const char *csv;          /* text of the data file, header first */
    const char *ceilings_csv; /* roofline only */
    const char *charts_csv;   /* charts only */
    const char *title;        /* optional */
    const char *subtitle;     /* optional; otherwise what all rows share is said, as plot_rows_shared puts it */
    const char *output;       /* a path ending .png .svg .pdf, or "-": drawn in 79x24 characters on standard output */
};

/* plot_check -- whether kind and output would be accepted; to be asked before long work.
 * Errors: ERR_USAGE naming the kinds or the endings. */
enum err_code plot_check(const char *kind, const char *output, struct err *e);

/* plot_render -- draw r. The file appears complete or not at all; one that was there stays as it was on failure.
 * Errors: as plot_check; ERR_USAGE rows that one picture cannot show (two devices in a roofline, more than 12 series);
 * ERR_INPUT csv without a column it needs, or without a row to draw; ERR_IO gnuplot not found, or its first line of
 * complaint, or the file cannot be written; ERR_NOMEM. Cost: some 0.1 s, in gnuplot. */
enum err_code plot_render(struct arena *a, const struct plot_request *r, struct err *e);

#endif
