/* plot_rows -- what rows of a sweep share and what tells them apart. */
#ifndef RIDGE_CLI_PLOT_ROWS_H
#define RIDGE_CLI_PLOT_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"
#include "calc/cli/plot_csv.h"

enum { PLOT_NAMING_N = 8 };

/* What names a configuration: model, device, weights, kv, batch, context, generate_tokens, fidelity. The device is
 * hardware with gpus and tp: "h100-sxm", "8 x h100-sxm TP 4". Any of the columns may be absent. */
struct plot_rows {
    const struct plot_csv *csv;
    bool alike[PLOT_NAMING_N]; /* all rows have the same texts there */
    bool axis[PLOT_NAMING_N];  /* an axis of the picture, not part of the names of series */
};

/* plot_rows_look -- find out what is alike. Cost: O(rows). */
struct plot_rows plot_rows_look(const struct plot_csv *csv);

/* plot_rows_axis -- make the column key an axis. */
void plot_rows_axis(struct plot_rows *r, const char *key);

/* plot_rows_same -- whether two rows belong to one series: the same texts in all that names a configuration, axes
 * apart. */
bool plot_rows_same(const struct plot_rows *r, size_t row, size_t other);

/* plot_rows_shared -- what all rows have alike: "Llama-2-13b, 8 x h100-sxm TP 4, weights int4-g128, KV fp8, batch 64,
 * context 4096, roofline"; "" when nothing. Errors: ERR_NOMEM. */
enum err_code plot_rows_shared(struct arena *a, const struct plot_rows *r, const char **out, struct err *e);

/* plot_rows_name -- what is not alike, of one row, axes apart: the name of its series. Errors: ERR_NOMEM. */
enum err_code plot_rows_name(struct arena *a, const struct plot_rows *r, size_t row, const char **out, struct err *e);

/* plot_rows_device -- the device of one row, "2 x h100-sxm TP 2"; NULL when there is no memory. */
const char *plot_rows_device(struct arena *a, const struct plot_rows *r, size_t row);

/* plot_rows_alike -- whether all rows have the same text under key (also when there is no such column). */
bool plot_rows_alike(const struct plot_csv *csv, const char *key);

/* plot_rows_gpus -- number of GPUs of a row; 1 where the column gpus is absent or empty. */
double plot_rows_gpus(const struct plot_csv *csv, size_t row);

/* plot_rows_any_gpus -- whether some row has more than one GPU. */
bool plot_rows_any_gpus(const struct plot_csv *csv);

/* plot_rows_any_copies -- whether some row has copies of the model side by side, gpus > tp: its batch is that of one,
 * its throughput that of all. */
bool plot_rows_any_copies(const struct plot_csv *csv);

/* plot_rows_fit -- 1 yes, 0 no, NAN unknown: the column fits ("yes"/"no", "true"/"false"), or where it says nothing
 * memory_bytes against capacity_bytes. */
double plot_rows_fit(const struct plot_csv *csv, size_t row);

#endif
